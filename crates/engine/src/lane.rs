//! A lane: one source of operations with its own depth inside a worker. It decides which operation is next, on which slot, and when it may be
//! submitted.

use crate::interface::Time;
use crate::source::{Choice, LOOK_AHEAD, Op, Source};
use model::job::Kind;

/// A source with its own depth.
pub(crate) struct Lane {
    source: Box<dyn Source>,
    ops: [Op; LOOK_AHEAD],
    /// Index of the next operation among the first `ahead`.
    next: usize,
    ahead: usize,
    /// Free slots.
    free: Vec<u32>,
    /// The slot of the next operation, if its data is already prepared.
    ready: Option<u32>,
    /// Operations that others wait for; boxed, so that a lane without conditions is not larger.
    noted: Box<Noted>,
    /// Operations in flight.
    pub(crate) in_flight: u32,
    /// Timestamp of the last completion, or of the start.
    pub(crate) last_completion: u64,
}

/// Operations whose completion others wait for.
#[derive(Default)]
struct Noted {
    /// The slot of the last trim of a pair.
    trim: Option<u32>,
    /// Slots with the last operation on each, for operations that wait for others on the same bytes.
    serial: Vec<(u32, Op)>,
}

/// Whether the next operation of a lane may be submitted.
pub(crate) enum Turn {
    /// Yes. In an open loop its latency counts from this timestamp.
    Now(u64),
    /// Not before this timestamp.
    At(u64),
    /// Not before an operation completes.
    Later,
}

impl Lane {
    pub(crate) fn new(source: Box<dyn Source>, slots: std::ops::Range<u32>) -> Self {
        let ahead = source.look_ahead().clamp(1, LOOK_AHEAD);
        let (ops, free) = ([Op::NONE; LOOK_AHEAD], slots.rev().collect());
        let (ready, noted) = (None, Box::default());
        Self { source, ops, next: ahead, ahead, free, ready, noted, in_flight: 0, last_completion: 0 }
    }

    /// Returns the next operation.
    #[inline]
    pub(crate) fn peek(&mut self) -> Op {
        if self.next >= self.ahead.min(LOOK_AHEAD) {
            self.source.refill(&mut self.ops[..self.ahead]);
            self.next = 0;
        }
        self.ops[self.next]
    }

    /// Takes the next operation and returns its slot: a free one (true), or the one with its prepared data (false). The caller ensures that a
    /// slot is free.
    #[inline]
    pub(crate) fn take(&mut self) -> (u32, bool) {
        self.next += 1;
        self.in_flight += 1;
        match self.ready.take() {
            Some(slot) => (slot, false),
            None => (self.free.pop().unwrap_or_default(), true),
        }
    }

    /// Frees a slot.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: u32, now: u64) {
        self.free.push(slot);
        self.in_flight -= 1;
        self.last_completion = now;
    }

    /// Reserves a slot for the next operation, to prepare its data; `None` if it has one or none is free.
    pub(crate) fn prepare(&mut self) -> Option<(u32, Op)> {
        if self.ready.is_some() {
            return None;
        }
        let slot = self.free.pop()?;
        self.ready = Some(slot);
        Some((slot, self.peek()))
    }

    /// Reports to the source that its next choice is the first of a call.
    pub(crate) fn begin_call(&mut self) {
        self.source.begin_call();
    }

    /// Asks the source for a choice at this time since the start.
    pub(crate) fn choose(&mut self, now_ns: u64) -> Choice {
        self.source.choose(now_ns)
    }

    /// Reports a completion to the source.
    pub(crate) fn report_completion(&mut self, op: &Op, now_ns: u64) {
        self.source.completed(op, now_ns);
    }

    /// Notes the slot of an operation with conditions before it is taken, if others wait for its completion, and evicts its file if required.
    pub(crate) fn note(&mut self, op: &Op) {
        if op.flags & Op::EVICTED != 0 {
            self.source.evict(op.file);
        }
        let Some(slot) = self.ready.or(self.free.last().copied()) else { return };
        if op.flags & Op::PAIR != 0 && op.kind == Kind::Trim {
            self.noted.trim = Some(slot);
        }
        if op.flags & Op::SERIAL != 0 {
            match self.noted.serial.iter_mut().find(|(at, _)| *at == slot) {
                Some((_, last)) => *last = *op,
                None => self.noted.serial.push((slot, *op)),
            }
        }
    }

    /// Whether the operation on a slot is in flight: the slot is neither free nor reserved.
    fn is_in_flight(&self, slot: u32) -> bool {
        self.ready != Some(slot) && !self.free.iter().rev().any(|free| *free == slot)
    }

    /// Whether an operation in flight overlaps this one.
    // Not inlined: it would cost operations without conditions one instruction.
    #[inline(never)]
    fn overlaps(&self, op: &Op) -> bool {
        let meets = |other: &Op| {
            other.file == op.file
                && other.offset < op.offset.saturating_add(u64::from(op.length))
                && op.offset < other.offset.saturating_add(u64::from(other.length))
        };
        self.noted.serial.iter().any(|(slot, other)| meets(other) && self.is_in_flight(*slot))
    }

    /// Whether an operation with conditions may be submitted at `now`. [`Op::AT`] counts from `begin`.
    pub(crate) fn turn(&self, op: &Op, begin: u64, now: u64, time: &impl Time) -> Turn {
        let is = |flag| op.flags & flag != 0;
        if is(Op::DRAINED | Op::AFTER) && self.in_flight > 0 {
            return Turn::Later;
        }
        let is_trimming = || self.noted.trim.is_some_and(|slot| self.is_in_flight(slot));
        if is(Op::PAIR) && op.kind != Kind::Trim && is_trimming() {
            return Turn::Later;
        }
        if is(Op::SERIAL) && self.overlaps(op) {
            return Turn::Later;
        }
        let ticks = time.ticks_of(op.at_ns);
        let after = if is(Op::AFTER) { self.last_completion + ticks } else { 0 };
        let due = if is(Op::AT) { begin + ticks } else { 0 };
        match due.max(after) {
            earliest if earliest > now => Turn::At(earliest),
            _ if is(Op::SHARED) => match self.source.hold() {
                Some(0) => Turn::Later,
                Some(ns) => Turn::At(now + time.ticks_of(ns)),
                None => Turn::Now(if is(Op::AT) { due } else { now }),
            },
            _ if is(Op::AT) => Turn::Now(due),
            _ => Turn::Now(now),
        }
    }
}
