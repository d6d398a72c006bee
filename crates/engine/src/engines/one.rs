//! One operation at a time: the part that all engines share whose call returns when the operation is done.
//!
//! For: making an [`Engine`] of a [`Call`]. Not for: depth; threads are the only way to more.

use crate::interface::{Done, Engine, Granted, Queue};
use crate::source::Op;
use crate::spec::WorkerSpec;
use std::io;
use sys::clock::Clock;

/// A call that carries one operation and returns when it is done.
pub(super) trait Call: Sized {
    /// As [`Engine::open`].
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)>;
    /// The data of a slot.
    fn slot_mut(&mut self, slot: u32) -> &mut [u8];
    /// Carries an operation; the answer is the bytes moved or given back, 0 for a sync.
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize>;
}

/// The engine made of a call.
pub(super) struct One<C> {
    call: C,
    clock: Clock,
    queued: Option<(u32, Op)>,
    done: Option<Done>,
}

impl<C: Call> Engine for One<C> {
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

impl<C: Call> Queue for One<C> {
    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.call.slot_mut(slot)
    }

    #[inline]
    fn queue(&mut self, slot: u32, op: &Op) {
        debug_assert!(self.queued.is_none(), "the table says one operation at a time");
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
