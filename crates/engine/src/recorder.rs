//! Recorders: what a loop does with single operations beside counting them, which is nothing unless a log or a check is asked for.
//!
//! For: two loops out of one text, of which the plain one has not an instruction of the other: that of logs, of checks and of replays, whose
//! sources are told of each completion. Not for: figures ([`crate::tally`]), what
//! becomes of the log (the collector), nor what should stand in a block ([`model::job::Content`]).

use crate::by_target::ByTarget;
use crate::link::Link;
use crate::outcome::{Difference, Outcome};
use crate::priorities::Priorities;
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::figures::Operation;
use model::job::{Kind, Verify};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

/// Operations on their way to the collector, of all workers together, and of each at least.
const ROOM: usize = 1 << 18;
const LEAST_ROOM: usize = 1 << 10;

/// What a loop tells of its operations.
pub(crate) trait Recorder: Sized {
    /// Whether it keeps anything.
    const KEEPS: bool;
    /// For a worker whose sources it still has.
    fn for_worker(spec: &WorkerSpec, link: &mut Link) -> Self;
    /// An operation has got its slot, whose data it may write.
    fn begin(&mut self, slot: u32, op: &Op, data: &mut [u8]);
    /// The operation on a slot.
    fn op(&self, slot: u32) -> Op;
    /// What the kernel is told of its priority; 0 for nothing.
    fn priority(&self, slot: u32) -> u16;
    /// Whether a read has found what should be there.
    fn is_right(&mut self, slot: u32, data: &[u8]) -> bool;
    /// An operation was counted in the measured window.
    fn end(&mut self, slot: u32, seen: Completion);
    /// Whether a difference ends it all.
    fn is_fatal(&self) -> bool;
    /// What is left of it when all is over.
    fn close(&self, outcome: Outcome) -> Outcome;
}

/// What the loop has measured of an operation, in ns.
#[derive(Clone, Copy)]
pub(crate) struct Completion {
    /// Since the phase began.
    pub(crate) end: u64,
    pub(crate) latency: u64,
    pub(crate) service: u64,
}

/// Keeps nothing.
pub(crate) struct Off;

impl Recorder for Off {
    const KEEPS: bool = false;

    fn for_worker(_: &WorkerSpec, _: &mut Link) -> Self {
        Self
    }

    #[inline]
    fn begin(&mut self, _: u32, _: &Op, _: &mut [u8]) {}

    #[inline]
    fn op(&self, _: u32) -> Op {
        Op::NONE
    }

    fn priority(&self, _: u32) -> u16 {
        0
    }

    #[inline]
    fn is_right(&mut self, _: u32, _: &[u8]) -> bool {
        true
    }

    #[inline]
    fn end(&mut self, _: u32, _: Completion) {}

    #[inline]
    fn is_fatal(&self) -> bool {
        false
    }

    fn close(&self, outcome: Outcome) -> Outcome {
        outcome
    }
}

/// Hands each operation to the collector, compares what reads find with what should be there, and tells targets apart, as far as each is
/// asked for.
pub(crate) struct Watched {
    /// Of each slot the operation on it.
    ops: Vec<Op>,
    /// `None` where nobody takes them.
    to: Option<Producer<Operation>>,
    verify: Option<Verify>,
    difference: Option<Difference>,
    /// `None` where no operation has one of its own.
    priorities: Option<Box<Priorities>>,
    /// `None` where lanes tell enough.
    by_target: Option<Box<ByTarget>>,
    waits: u64,
    /// Index of the worker in the phase.
    worker: u32,
}

impl Recorder for Watched {
    const KEEPS: bool = true;

    fn for_worker(spec: &WorkerSpec, link: &mut Link) -> Self {
        let ops = vec![Op::NONE; spec.slots()];
        let priorities = Priorities::from_spec(spec).map(Box::new);
        Self {
            ops,
            to: link.log.take(),
            verify: spec.verify.clone(),
            difference: None,
            priorities,
            by_target: ByTarget::from_spec(spec).map(Box::new),
            waits: 0,
            worker: spec.worker,
        }
    }

    #[inline]
    fn begin(&mut self, slot: u32, op: &Op, data: &mut [u8]) {
        self.ops[slot as usize] = *op;
        if let (Some(verify), Kind::Write) = (&self.verify, op.kind) {
            verify.content.put(op.offset, &mut data[..op.length as usize]);
        }
        if let Some(priorities) = &mut self.priorities {
            priorities.draw(slot, op);
        }
    }

    #[inline]
    fn op(&self, slot: u32) -> Op {
        self.ops[slot as usize]
    }

    #[inline]
    fn priority(&self, slot: u32) -> u16 {
        self.priorities.as_ref().map_or(0, |priorities| priorities.number(slot))
    }

    #[inline]
    fn is_right(&mut self, slot: u32, data: &[u8]) -> bool {
        let Some(verify) = self.verify.as_ref().filter(|verify| verify.checks) else { return true };
        let Op { file, offset, length, .. } = self.ops[slot as usize];
        let Some(at) = verify.content.difference(offset, &data[..length as usize]) else { return true };
        self.difference.get_or_insert(Difference { file, offset, length, at });
        false
    }

    #[inline]
    fn end(&mut self, slot: u32, seen: Completion) {
        let Op { offset, length, file, kind, .. } = self.ops[slot as usize];
        let Completion { end: end_ns, latency: latency_ns, service: service_ns } = seen;
        let share = self.priorities.as_mut().map_or(0, |priorities| {
            priorities.count(slot, kind, service_ns);
            priorities.share(slot)
        });
        if let Some(by_target) = &mut self.by_target {
            by_target.count(&self.ops[slot as usize], end_ns, latency_ns);
        }
        self.put(Operation { end_ns, latency_ns, service_ns, offset, length, file, kind, share });
    }

    #[inline]
    fn is_fatal(&self) -> bool {
        self.difference.is_some() && self.verify.as_ref().is_some_and(|verify| verify.fatal)
    }

    fn close(&self, outcome: Outcome) -> Outcome {
        let priorities = self.priorities.as_ref().map(|priorities| priorities.ends()).unwrap_or_default();
        let lanes = self.by_target.as_ref().map(|all| all.ends(self.worker)).unwrap_or_default();
        Outcome { log_waits: self.waits, difference: self.difference, priorities, lanes, ..outcome }
    }
}

impl Watched {
    /// Hands an operation over. A log with gaps would be a false one, so what finds no room waits, and is counted.
    #[inline]
    fn put(&mut self, operation: Operation) {
        let Some(to) = &mut self.to else { return };
        let Err(PushError::Full(mut operation)) = to.push(operation) else { return };
        self.waits += 1;
        while let Err(PushError::Full(back)) = to.push(operation) {
            // Whoever took them is gone where a worker is given up.
            if to.is_abandoned() {
                return;
            }
            operation = back;
            std::thread::yield_now();
        }
    }
}

/// A way for the operations of one of so many workers.
pub(crate) fn connect(workers: usize) -> (Producer<Operation>, Consumer<Operation>) {
    RingBuffer::new((ROOM / workers.max(1)).max(LEAST_ROOM))
}

#[test]
fn what_finds_no_room_waits_and_nothing_is_lost() {
    let (to, mut from) = RingBuffer::new(4);
    let mut each = Watched {
        ops: vec![Op { offset: 7, length: 512, ..Op::NONE }],
        to: Some(to),
        verify: None,
        difference: None,
        priorities: None,
        by_target: None,
        waits: 0,
        worker: 0,
    };
    let reader = std::thread::spawn(move || {
        let mut seen: Vec<u64> = Vec::new();
        while seen.len() < 1000 {
            seen.extend(from.pop().ok().map(|o| o.end_ns));
        }
        seen
    });
    for end in 0..1000 {
        each.end(0, Completion { end, latency: 1, service: 1 });
    }
    assert_eq!(reader.join().ok(), Some((0..1000).collect()));
}

#[test]
fn nobody_waits_for_a_reader_that_is_gone() {
    let (to, from) = RingBuffer::new(1);
    let mut each = Watched {
        ops: vec![Op::NONE],
        to: Some(to),
        verify: None,
        difference: None,
        priorities: None,
        by_target: None,
        waits: 0,
        worker: 0,
    };
    drop(from);
    for end in 0..3 {
        each.end(0, Completion { end, latency: 1, service: 1 });
    }
    assert_eq!(each.waits, 2);
}
