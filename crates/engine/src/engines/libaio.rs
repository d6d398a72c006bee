//! The engine `libaio`: `io_submit` and `io_getevents`, the kernel's asynchronous I/O before io_uring.
//!
//! For: any depth on one thread with direct I/O. Not for: trims, which it has not; buffered files, where submitting blocks
//! until the operation is done and the depth means nothing.

use super::atomic;
use super::targets::{flush_of, no_range};
use crate::facts::{EngineOption, Number};
use crate::interface::{self, Done, Engine, Granted, Queue};
use crate::refusal::{SYNC, refusal};
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use std::io;
use sys::aio::Aio;
use sys::arena::Arena;
use sys::clock::Clock;
use sys::stable::Flush;

/// Options of libaio by their names.
pub(super) const OPTIONS: &[EngineOption] =
    &[EngineOption { name: atomic::ATOMIC, about: atomic::ABOUT_ATOMIC, number: Number::No }];

pub(super) struct Libaio {
    aio: Aio,
    clock: Clock,
    flush: Flush,
}

impl Engine for Libaio {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        no_range(spec)?;
        let slots = spec.slots();
        let arena = Arena::new(slots, spec.slot_bytes as usize)?;
        let atomic = atomic::check_atomic_writes(spec)?;
        let (aio, mut granted) =
            Aio::new(arena, std::mem::take(&mut spec.files), atomic).map_err(|e| explain(&e, slots))?;
        granted.used.extend(atomic.then(|| "RWF_ATOMIC".into()));
        Ok((Self { aio, clock: spec.clock, flush: flush_of(spec.sync_call) }, granted))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }
}

impl Queue for Libaio {
    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.aio.slot_mut(slot)
    }

    #[inline]
    fn queue(&mut self, slot: u32, op: &Op) {
        let file = u32::from(op.file);
        match op.kind {
            Kind::Read => self.aio.read(slot, file, op.offset, op.length),
            Kind::Write => self.aio.write(slot, file, op.offset, op.length),
            Kind::Sync => self.aio.flush(slot, file, self.flush),
            Kind::Trim => unreachable!("not in the table's kinds"),
        }
    }

    fn queue_prior(&mut self, slot: u32, op: &Op, priority: u16) {
        self.queue(slot, op);
        self.aio.prioritize(priority);
    }

    #[inline]
    fn submit(&mut self, wait: u32) -> io::Result<()> {
        self.aio.submit(wait)
    }

    fn pause(&mut self, ns: u64) -> io::Result<()> {
        if self.aio.in_flight() == 0 {
            interface::pause(ns);
            return Ok(());
        }
        interface::wake_early(ns, |ns| self.aio.wait_within(ns))
    }

    #[inline]
    fn reap(&mut self, done: &mut [Done]) -> usize {
        self.aio.reap(done)
    }
}

/// Names the likely cause where the kernel refuses a context.
fn explain(error: &io::Error, slots: usize) -> io::Error {
    let (why, instead) = match error.kind() {
        io::ErrorKind::WouldBlock => (
            format!("the system's asynchronous operations are used up: {slots} more do not fit"),
            format!("use a smaller --depth, or raise sysctl fs.aio-max-nr above fs.aio-nr + {slots}"),
        ),
        io::ErrorKind::Unsupported => (
            "this kernel was built without asynchronous I/O (CONFIG_AIO)".into(),
            "type --engine io_uring or sync".into(),
        ),
        io::ErrorKind::OutOfMemory => ("no memory for this depth".into(), "use a smaller --depth".into()),
        _ => ("the kernel refuses asynchronous I/O".into(), SYNC.into()),
    };
    refusal(error.kind(), format!("{why} ({error})"), instead)
}
