//! A lane: one source of operations with its own depth inside a worker.
//!
//! For: which operation is next, on which slot, and from when on. Not for: handing it over, nor its data.

use crate::engines::Time;
use crate::source::{LOOK_AHEAD, Op, Source};

/// One source with its own depth.
pub(crate) struct Lane {
    source: Box<dyn Source>,
    ops: [Op; LOOK_AHEAD],
    /// Index of the next operation among the first `ahead`.
    next: usize,
    ahead: usize,
    /// Slots that nothing uses.
    free: Vec<u32>,
    /// A slot whose operation and data are prepared already, with the conditions of handing it over.
    ready: Option<(u32, Wait)>,
    /// Operations on their way.
    pub(crate) in_flight: u32,
    /// Stamp of the last completion, or of the beginning.
    pub(crate) last_completion: u64,
}

/// What an operation must wait for.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    flags: u8,
    at_ns: u64,
}

/// Whether the next operation of a lane may be handed over.
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
        Self { source, ops, next: ahead, ahead, free, ready: None, in_flight: 0, last_completion: 0 }
    }

    /// The next operation on a slot of its own. Callers see to it that the lane has one free.
    #[inline]
    pub(crate) fn take(&mut self) -> (u32, Op) {
        self.fill();
        let op = self.ops[self.next];
        self.next += 1;
        (self.free.pop().unwrap_or_default(), op)
    }

    #[inline]
    fn fill(&mut self) {
        if self.next == self.ahead {
            self.source.refill(&mut self.ops[..self.ahead]);
            self.next = 0;
        }
    }

    /// Gives a slot back.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
        self.in_flight -= 1;
    }

    /// Keeps a prepared slot for the next hand-over.
    pub(crate) fn keep(&mut self, slot: u32, op: &Op) {
        self.ready = Some((slot, Wait { flags: op.flags, at_ns: op.at_ns }));
    }

    /// Takes the prepared slot, if there is one.
    #[inline]
    pub(crate) fn take_ready(&mut self) -> Option<u32> {
        self.ready.take().map(|(slot, _)| slot)
    }

    /// Whether another operation can be prepared ahead.
    pub(crate) fn can_prepare(&self) -> bool {
        self.ready.is_none() && !self.free.is_empty()
    }

    /// The conditions of the next operation; `None` for the plain case of none.
    #[inline]
    pub(crate) fn wait(&mut self) -> Option<Wait> {
        if let Some((_, wait)) = self.ready {
            return (wait.flags != 0).then_some(wait);
        }
        self.fill();
        let op = &self.ops[self.next];
        (op.flags != 0).then_some(Wait { flags: op.flags, at_ns: op.at_ns })
    }

    /// Whether an operation with these conditions may go at the stamp `now`; `begin` is the stamp from which [`Op::AT`] counts.
    pub(crate) fn turn(&self, wait: Wait, begin: u64, now: u64, time: &impl Time) -> Turn {
        let Wait { flags, at_ns } = wait;
        if flags & (Op::DRAINED | Op::AFTER) != 0 && self.in_flight > 0 {
            return Turn::Later;
        }
        let after = if flags & Op::AFTER != 0 { self.last_completion + time.ticks_of(at_ns) } else { 0 };
        let due = if flags & Op::AT != 0 { begin + time.ticks_of(at_ns) } else { 0 };
        let earliest = due.max(after);
        match earliest {
            e if e > now => Turn::At(e),
            _ if flags & Op::AT != 0 => Turn::Now(due),
            _ => Turn::Now(now),
        }
    }
}
