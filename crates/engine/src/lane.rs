//! A lane: one source of operations with its own depth inside a worker.
//!
//! For: which operation is next, on which slot, and from when on. Not for: submitting it, nor its data.

use crate::interface::Time;
use crate::source::{Choice, LOOK_AHEAD, Op, Source};
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
    /// What others wait for; apart, so that a lane whose operations wait for nothing is no larger for it.
    noted: Box<Noted>,
    /// Operations on their way.
    pub(crate) in_flight: u32,
    /// Stamp of the last completion, or of the beginning.
    pub(crate) last_completion: u64,
}

/// Operations whose completion others wait for.
#[derive(Default)]
struct Noted {
    /// The slot of the last trim of a pair.
    trim: Option<u32>,
    /// Slots with the operation last on each, of those that wait for others on the same bytes.
    serial: Vec<(u32, Op)>,
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
        let (ready, noted) = (None, Box::default());
        Self { source, ops, next: ahead, ahead, free, ready, noted, in_flight: 0, last_completion: 0 }
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

    /// Tells its source that what it chooses from now on is the first of a call.
    pub(crate) fn begin_call(&mut self) {
        self.source.begin_call();
    }

    /// What its source chooses at this time since the beginning.
    pub(crate) fn choose(&mut self, now_ns: u64) -> Choice {
        self.source.choose(now_ns)
    }

    /// Tells its source of a completion.
    pub(crate) fn tell(&mut self, op: &Op, now_ns: u64) {
        self.source.completed(op, now_ns);
    }

    /// Notes which slot an operation with conditions is about to get, where another one waits for its completion, and does what is to be
    /// done right before it.
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

    /// Whether the operation on a slot is on its way: the slot is neither free nor prepared for another one.
    fn is_on_its_way(&self, slot: u32) -> bool {
        self.ready != Some(slot) && !self.free.iter().rev().any(|free| *free == slot)
    }

    /// Whether one on its way is about bytes that this one is about too.
    // Inlined, it costs operations without conditions an instruction each.
    #[inline(never)]
    fn overlaps(&self, op: &Op) -> bool {
        let meets = |other: &Op| {
            other.file == op.file
                && other.offset < op.offset.saturating_add(u64::from(op.length))
                && op.offset < other.offset.saturating_add(u64::from(other.length))
        };
        self.noted.serial.iter().any(|(slot, other)| meets(other) && self.is_on_its_way(*slot))
    }

    /// Whether an operation with conditions may go at the stamp `now`; `begin` is the stamp from which [`Op::AT`] counts.
    pub(crate) fn turn(&self, op: &Op, begin: u64, now: u64, time: &impl Time) -> Turn {
        let is = |flag| op.flags & flag != 0;
        if is(Op::DRAINED | Op::AFTER) && self.in_flight > 0 {
            return Turn::Later;
        }
        let is_trimming = || self.noted.trim.is_some_and(|slot| self.is_on_its_way(slot));
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
