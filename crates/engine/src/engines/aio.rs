//! The engines `libaio` and `posixaio`: the asynchronous interfaces that are older than io_uring.
//!
//! `libaio` is `io_submit` and `io_getevents` of the kernel, for any depth with direct I/O. With
//! buffered files the submission blocks until the operation is complete, so the depth has no
//! effect. `posixaio` is `aio_read` and `aio_write` of the C library: its threads execute the
//! operations, in glibc one at a time per file. Neither supports trims.

use crate::engines::targets;
use crate::engines::targets::{flush_of, refuse_sync_range};
use crate::interface::{self, Done, Engine, Granted, Queue, USE_SYNC, refusal};
use crate::source::Op;
use crate::spec::{EngineOption, WorkerSpec};
use model::job::Kind;
use std::io;
use sys::aio::Aio;
use sys::arena::Arena;
use sys::clock::Clock;
use sys::file_pages::Flush;
use sys::posix_aio::PosixAio;

/// Implements [`Queue`] for an engine struct with the fields `aio` and `flush`. The braces contain
/// methods that only this engine has.
macro_rules! impl_queue {
    ($engine:ident { $($more:tt)* }) => {
        impl Queue for $engine {
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
                    Kind::Trim => unreachable!("the entry in ENGINES has no such kind"),
                }
            }

            $($more)*

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
    };
}

pub(super) const LIBAIO_OPTIONS: &[EngineOption] =
    &[EngineOption::new(targets::ATOMIC, targets::ABOUT_ATOMIC)];

pub(super) struct Libaio {
    aio: Aio,
    clock: Clock,
    flush: Flush,
}

impl Engine for Libaio {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        refuse_sync_range(spec)?;
        let slots = spec.slots();
        let arena = Arena::new(slots, spec.slot_bytes as usize)?;
        let atomic = targets::check_atomic_writes(spec)?;
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

impl_queue!(Libaio {
    fn queue_with_priority(&mut self, slot: u32, op: &Op, priority: u16) {
        self.queue(slot, op);
        self.aio.prioritize(priority);
    }
});

/// Explains why `io_setup` failed, and what to type instead.
fn explain(error: &io::Error, slots: usize) -> io::Error {
    let (why, instead) = match error.kind() {
        io::ErrorKind::WouldBlock => (
            format!("the system's limit of asynchronous operations leaves no room for {slots} more"),
            format!("use a smaller --depth, or raise sysctl fs.aio-max-nr above fs.aio-nr + {slots}"),
        ),
        io::ErrorKind::Unsupported => (
            "this kernel has no asynchronous I/O (CONFIG_AIO), or a seccomp filter hides it".into(),
            "type --engine io_uring or sync".into(),
        ),
        io::ErrorKind::OutOfMemory => ("no memory for this depth".into(), "use a smaller --depth".into()),
        _ => ("the kernel refuses asynchronous I/O".into(), USE_SYNC.into()),
    };
    refusal(error.kind(), format!("{why} ({error})"), instead)
}

pub(super) struct Posixaio {
    aio: PosixAio,
    clock: Clock,
    flush: Flush,
}

impl Engine for Posixaio {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        refuse_sync_range(spec)?;
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let aio = PosixAio::new(arena, std::mem::take(&mut spec.files));
        let granted = Granted { used: vec!["threads of the C library".into()], fallbacks: Vec::new() };
        Ok((Self { aio, clock: spec.clock, flush: flush_of(spec.sync_call) }, granted))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }
}

impl_queue!(Posixaio {});
