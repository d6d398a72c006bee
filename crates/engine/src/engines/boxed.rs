//! An engine of any kind behind a pointer.
//!
//! For: the loop that looks at each operation, compiled once for all of them, so that the plain loops stay as they are. Not for:
//! measuring speed: each call goes through the pointer.

use crate::interface::{Done, Engine, Granted, Queue};
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::record::stream::DepthCounts;
use std::io;
use sys::clock::Clock;

pub(super) struct Boxed {
    queue: Box<dyn Queue>,
    clock: Clock,
    depth: Option<Depth>,
}

/// Counts operations in flight from the calls of the loop, so that the loop itself needs no code for it.
#[derive(Default)]
struct Depth {
    queued: u32,
    in_flight: u32,
    counts: DepthCounts,
}

impl Depth {
    /// The queued operations are submitted; a call that only waits submits none.
    fn submit(&mut self) {
        if self.queued > 0 {
            self.in_flight += self.queued;
            self.counts.submitted(self.queued, self.in_flight);
            self.queued = 0;
        }
    }

    fn complete(&mut self, operations: usize) {
        if operations > 0 {
            self.in_flight = self.in_flight.saturating_sub(operations as u32);
            self.counts.completed(operations as u32);
        }
    }
}

impl Engine for Boxed {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let name = spec.engine.name;
        let entry =
            super::find(name).ok_or_else(|| io::Error::other(format!("there is no engine {name}")))?;
        let (queue, granted) = (entry.open)(spec)?;
        let depth = spec.count_depth.then(Depth::default);
        Ok((Self { queue, clock: spec.clock, depth }, granted))
    }

    fn time(&self) -> &Clock {
        &self.clock
    }

    fn depth_counts(&self) -> Option<DepthCounts> {
        self.depth.as_ref().map(|depth| depth.counts)
    }
}

impl Queue for Boxed {
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.queue.slot_mut(slot)
    }

    fn queue(&mut self, slot: u32, op: &Op) {
        self.depth.iter_mut().for_each(|depth| depth.queued += 1);
        self.queue.queue(slot, op);
    }

    fn queue_prior(&mut self, slot: u32, op: &Op, priority: u16) {
        self.depth.iter_mut().for_each(|depth| depth.queued += 1);
        self.queue.queue_prior(slot, op, priority);
    }

    fn submit(&mut self, wait: u32) -> io::Result<()> {
        self.depth.iter_mut().for_each(Depth::submit);
        self.queue.submit(wait)
    }

    fn pause(&mut self, ns: u64) -> io::Result<()> {
        self.queue.pause(ns)
    }

    fn reap(&mut self, done: &mut [Done]) -> usize {
        let taken = self.queue.reap(done);
        self.depth.iter_mut().for_each(|depth| depth.complete(taken));
        taken
    }
}

#[test]
fn operations_in_flight_are_counted_by_submission() {
    let mut depth = Depth { queued: 4, ..Depth::default() };
    depth.submit();
    depth.submit();
    depth.complete(0);
    depth.complete(3);
    depth.queued = 1;
    depth.submit();
    let DepthCounts { level, submit, complete } = depth.counts;
    assert_eq!((level[2], level[1], submit[1], complete[1]), (4, 1, 2, 1));
    assert_eq!(level.iter().chain(&submit).chain(&complete).sum::<u64>(), 8);
}
