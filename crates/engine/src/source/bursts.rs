//! Bursts that last a time, and the pauses between them.
//!
//! For: `--burst-time`: whether a burst is over is known when there is room for an operation, so this source is asked for each. Not for:
//! bursts of so many operations alone, which [`super::lines`] marks in advance.

use super::{Choice, Op, Source};
use model::job::Bursts;

/// A source that rests between bursts.
pub(super) struct Timed {
    inner: Box<dyn Source>,
    bursts: Bursts,
    /// An operation that waits until nothing is in flight.
    next: Option<Op>,
    in_flight: u32,
    /// Operations of the present burst, and when it began.
    done: u32,
    since_ns: u64,
    /// Whether the burst is over, and when the last operation completed.
    is_over: bool,
    completed_ns: u64,
}

impl Timed {
    pub(super) fn new(inner: Box<dyn Source>, bursts: Bursts) -> Self {
        Self {
            inner,
            bursts,
            next: None,
            in_flight: 0,
            done: 0,
            since_ns: 0,
            is_over: false,
            completed_ns: 0,
        }
    }
}

impl Source for Timed {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op { flags: Op::CHOSEN, ..Op::NONE });
    }

    fn look_ahead(&self) -> usize {
        1
    }

    fn choose(&mut self, now_ns: u64) -> Choice {
        let Bursts { time_ns, pause_ns, operations } = self.bursts;
        let has_all = operations.is_some_and(|most| self.done >= most);
        self.is_over |= has_all || now_ns.saturating_sub(self.since_ns) >= time_ns;
        if self.is_over {
            if self.in_flight > 0 {
                return Choice::Later;
            }
            let due_ns = self.completed_ns.saturating_add(pause_ns);
            if now_ns < due_ns {
                return Choice::At(due_ns);
            }
            (self.is_over, self.done, self.since_ns) = (false, 0, now_ns);
        }
        let op = self.next.take().unwrap_or_else(|| {
            let mut drawn = [Op::NONE];
            self.inner.refill(&mut drawn);
            drawn[0]
        });
        if op.flags & Op::DRAINED != 0 && self.in_flight > 0 {
            self.next = Some(op);
            return Choice::Later;
        }
        self.done = self.done.saturating_add(1);
        self.in_flight += 1;
        Choice::Now(Op { flags: Op::CHOSEN, at_ns: 0, ..op }, now_ns)
    }

    fn completed(&mut self, _op: &Op, now_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.completed_ns = now_ns;
    }
}

#[cfg(test)]
struct Same(Op);

#[cfg(test)]
impl Source for Same {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(self.0);
    }
}

#[test]
fn a_burst_ends_by_its_time_or_its_operations_and_a_pause_follows_the_last_completion() {
    let bursts = Bursts { time_ns: 100, pause_ns: 50, operations: Some(3) };
    let mut source = Timed::new(Box::new(Same(Op { length: 8, ..Op::NONE })), bursts);
    let op = Op { length: 8, flags: Op::CHOSEN, ..Op::NONE };
    assert_eq!([source.choose(0), source.choose(99)], [Choice::Now(op, 0), Choice::Now(op, 99)]);
    assert_eq!(source.choose(100), Choice::Later, "the time is over, and two are in flight");
    source.completed(&op, 110);
    assert_eq!(source.choose(110), Choice::Later);
    source.completed(&op, 120);
    assert_eq!([source.choose(120), source.choose(169)], [Choice::At(170); 2]);
    assert_eq!([170, 171, 172].map(|ns| source.choose(ns)), [170, 171, 172].map(|ns| Choice::Now(op, ns)));
    assert_eq!(source.choose(173), Choice::Later, "three were submitted");
    for ns in [180, 181, 182] {
        source.completed(&op, ns);
    }
    assert_eq!([source.choose(183), source.choose(232)], [Choice::At(232), Choice::Now(op, 232)]);
}

#[test]
fn what_drains_waits_for_what_is_in_flight() {
    let bursts = Bursts { time_ns: 100, pause_ns: 50, operations: None };
    let drained = Op { flags: Op::DRAINED, ..Op::NONE };
    let mut source = Timed::new(Box::new(Same(drained)), bursts);
    assert!(matches!(source.choose(0), Choice::Now(..)));
    assert_eq!(source.choose(1), Choice::Later);
    source.completed(&drained, 2);
    assert!(matches!(source.choose(3), Choice::Now(..)));
}
