//! The engine `null`: completes every operation as soon as it is submitted and moves nothing.
//!
//! For: the cost of fathom itself per operation. Not for: anything about storage.

use crate::interface::{Done, Engine, Granted, Queue};
use crate::source::Op;
use crate::spec::WorkerSpec;
use std::io;
use sys::clock::Clock;

pub(super) struct Null {
    clock: Clock,
    queued: Vec<Done>,
    data: Vec<u8>,
}

impl Engine for Null {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let data = vec![0; spec.slot_bytes as usize];
        Ok((Self { clock: spec.clock, queued: Vec::with_capacity(spec.slots()), data }, Granted::default()))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }
}

impl Queue for Null {
    /// All slots share one buffer: nothing is moved, so nobody can tell.
    #[inline]
    fn slot_mut(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.data
    }

    #[inline]
    fn queue(&mut self, slot: u32, op: &Op) {
        self.queued.push(Done { slot, result: op.length as i32 });
    }

    #[inline]
    fn submit(&mut self, _wait: u32) -> io::Result<()> {
        Ok(())
    }

    #[inline]
    fn reap(&mut self, done: &mut [Done]) -> usize {
        let taken = self.queued.len().min(done.len());
        let from = self.queued.len() - taken;
        done[..taken].copy_from_slice(&self.queued[from..]);
        self.queued.truncate(from);
        taken
    }
}
