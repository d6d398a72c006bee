//! Engines made of a call that returns when its operation is complete: [`BlockingEngine`] turns a [`Call`] into an [`Engine`] with a depth of
//! one.

use crate::interface::{Done, Engine, Granted, Queue};
use crate::source::Op;
use crate::spec::WorkerSpec;
use std::io;
use sys::clock::Clock;

/// A call that executes one operation and returns when it is complete.
pub(super) trait Call: Sized {
    /// Like [`Engine::open`].
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)>;
    /// Returns the buffer of a slot.
    fn slot_mut(&mut self, slot: u32) -> &mut [u8];
    /// Executes an operation. Returns the bytes moved or trimmed, 0 for a sync.
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize>;
}

/// The engine of a call.
pub(super) struct BlockingEngine<C> {
    call: C,
    clock: Clock,
    queued: Option<(u32, Op)>,
    done: Option<Done>,
}

impl<C: Call> Engine for BlockingEngine<C> {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let clock = spec.clock;
        let (call, granted) = C::open(spec)?;
        Ok((Self { call, clock, queued: None, done: None }, granted))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }
}

impl<C: Call> Queue for BlockingEngine<C> {
    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.call.slot_mut(slot)
    }

    #[inline]
    fn queue(&mut self, slot: u32, op: &Op) {
        debug_assert!(self.queued.is_none(), "the table allows one operation at a time");
        self.queued = Some((slot, *op));
    }

    #[inline]
    fn submit(&mut self, _wait: u32) -> io::Result<()> {
        let Some((slot, op)) = self.queued.take() else { return Ok(()) };
        let result = match self.call.carry(slot, &op) {
            Ok(bytes) => bytes as i32,
            Err(e) => -e.raw_os_error().unwrap_or(i32::MAX),
        };
        self.done = Some(Done { slot, result });
        Ok(())
    }

    #[inline]
    fn reap(&mut self, done: &mut [Done]) -> usize {
        let (Some(finished), Some(place)) = (self.done, done.first_mut()) else { return 0 };
        *place = finished;
        self.done = None;
        1
    }
}
