//! The engine `posixaio`: `aio_read` and `aio_write` of the C library, carried by its own threads.
//!
//! For: what a portable program gets. Not for: trims, which it has not; depth on one file, which glibc serves one operation
//! at a time.

use super::targets::{flush_of, no_range};
use crate::interface::{self, Done, Engine, Granted, Queue};
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use std::io;
use sys::arena::Arena;
use sys::clock::Clock;
use sys::posix_aio::PosixAio;
use sys::stable::Flush;

pub(super) struct Posixaio {
    aio: PosixAio,
    clock: Clock,
    flush: Flush,
}

impl Engine for Posixaio {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        no_range(spec)?;
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

impl Queue for Posixaio {
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
