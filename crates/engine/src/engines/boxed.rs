//! An engine of any kind behind a pointer.
//!
//! For: the loop that looks at each operation, compiled once for all of them, so that the plain loops stay as they are. Not for:
//! measuring speed: each call goes through the pointer.

use crate::interface::{Done, Engine, Granted, Queue};
use crate::source::Op;
use crate::spec::WorkerSpec;
use std::io;
use sys::clock::Clock;

pub(super) struct Boxed {
    queue: Box<dyn Queue>,
    clock: Clock,
}

impl Engine for Boxed {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let name = spec.engine.name;
        let entry =
            super::find(name).ok_or_else(|| io::Error::other(format!("there is no engine {name}")))?;
        let (queue, granted) = (entry.open)(spec)?;
        Ok((Self { queue, clock: spec.clock }, granted))
    }

    fn time(&self) -> &Clock {
        &self.clock
    }
}

impl Queue for Boxed {
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.queue.slot_mut(slot)
    }

    fn queue(&mut self, slot: u32, op: &Op) {
        self.queue.queue(slot, op);
    }

    fn queue_prior(&mut self, slot: u32, op: &Op, priority: u16) {
        self.queue.queue_prior(slot, op, priority);
    }

    fn submit(&mut self, wait: u32) -> io::Result<()> {
        self.queue.submit(wait)
    }

    fn pause(&mut self, ns: u64) -> io::Result<()> {
        self.queue.pause(ns)
    }

    fn reap(&mut self, done: &mut [Done]) -> usize {
        self.queue.reap(done)
    }
}
