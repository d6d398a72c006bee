//! A lane: one source of operations with its own depth inside a worker.
//!
//! For: which operation is next, on which slot, and from when on. Not for: submitting it, nor its data.

use crate::interface::Time;
use crate::source::{LOOK_AHEAD, Op, Source};
use model::job::Kind;

/// One source with its own depth.
pub(crate) struct Lane {
    source: Box<dyn Source>,
    ops: [Op; LOOK_AHEAD],
    /// Index of the next operation among the first `ahead`.
    next: usize,
    ahead: usize,
    /// Slots that nothing uses.
    free: Vec<u32>,
    /// The slot of the next operation, where its data are prepared already.
    ready: Option<u32>,
    /// The slot of the last trim of a pair.
    trim: Option<u32>,
    /// Operations on their way.
    pub(crate) in_flight: u32,
    /// Stamp of the last completion, or of the beginning.
    pub(crate) last_completion: u64,
}

/// Whether the next operation of a lane may be submitted.
pub(crate) enum Turn {
    /// Yes. In an open loop its latency counts from this stamp.
    Now(u64),
    /// Not before this stamp.
    At(u64),
    /// Not before something completes.
    Later,
}

impl Lane {
    pub(crate) fn new(source: Box<dyn Source>, slots: std::ops::Range<u32>) -> Self {
        let ahead = source.look_ahead().clamp(1, LOOK_AHEAD);
        let (ops, free) = ([Op::NONE; LOOK_AHEAD], slots.rev().collect());
        let (ready, trim) = (None, None);
        Self { source, ops, next: ahead, ahead, free, ready, trim, in_flight: 0, last_completion: 0 }
    }

    /// The next operation.
    #[inline]
    pub(crate) fn peek(&mut self) -> Op {
        if self.next >= self.ahead.min(LOOK_AHEAD) {
            self.source.refill(&mut self.ops[..self.ahead]);
            self.next = 0;
        }
        self.ops[self.next]
    }

    /// Goes on to the operation behind the one that was seen, which gets a slot: a fresh one (true), or the one that its data
    /// are on. Callers see to it that one is free.
    #[inline]
    pub(crate) fn take(&mut self) -> (u32, bool) {
        self.next += 1;
        self.in_flight += 1;
        match self.ready.take() {
            Some(slot) => (slot, false),
            None => (self.free.pop().unwrap_or_default(), true),
        }
    }

    /// Gives a slot back.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: u32, now: u64) {
        self.free.push(slot);
        self.in_flight -= 1;
        self.last_completion = now;
    }

    /// Gives the next operation its slot before its time, to prepare data on; `None` where it has one or none is free.
    pub(crate) fn prepare(&mut self) -> Option<(u32, Op)> {
        if self.ready.is_some() {
            return None;
        }
        let slot = self.free.pop()?;
        self.ready = Some(slot);
        Some((slot, self.peek()))
    }

    /// Notes which slot an operation with conditions is about to get, where another one waits for its completion.
    pub(crate) fn note(&mut self, op: &Op) {
        if op.flags & Op::PAIR != 0 && op.kind == Kind::Trim {
            self.trim = self.ready.or(self.free.last().copied());
        }
    }

    /// Whether the last trim of a pair is on its way: its slot is neither free nor prepared for another operation.
    fn is_trimming(&self) -> bool {
        self.trim.is_some()
            && self.ready != self.trim
            && !self.free.iter().rev().any(|s| Some(*s) == self.trim)
    }

    /// Whether an operation with conditions may go at the stamp `now`; `begin` is the stamp from which [`Op::AT`] counts.
    pub(crate) fn turn(&self, op: &Op, begin: u64, now: u64, time: &impl Time) -> Turn {
        let is = |flag| op.flags & flag != 0;
        if is(Op::DRAINED | Op::AFTER) && self.in_flight > 0 {
            return Turn::Later;
        }
        if is(Op::PAIR) && op.kind != Kind::Trim && self.is_trimming() {
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
