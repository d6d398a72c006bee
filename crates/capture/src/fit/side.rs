//! Sides: one of the two things that a task does one after another.
//!
//! For: how long each goes on, and when its operations come by a clock of its own, which stands while the other one has its turn. Not for:
//! telling the two apart ([`super::gather`]), nor for what a job says of them ([`super::turns`]).

use super::pace::Pacing;
use crate::replay::operations::Operation;
use model::histogram::Histogram;
use model::job::Kind;

/// Turns from which on their length says something.
const MIN_TURNS: u64 = 3;

/// One of the two things.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) pacing: Pacing,
    clock_ns: u64,
    /// Times from the stretch of either side before to one of its own, from beginning to beginning.
    pub(super) periods: Histogram,
    /// How often it had its turn, the operations of the present one, and those of the shortest and the longest before.
    pub(super) turns: u64,
    present: u64,
    pub(super) lengths: Option<(u64, u64)>,
}

impl Side {
    /// It is its turn.
    pub(super) fn begin(&mut self) {
        self.turns += 1;
    }

    /// It is the other one's.
    pub(super) fn end(&mut self) {
        let length = std::mem::take(&mut self.present);
        if length > 0 {
            self.lengths =
                Some(self.lengths.map_or((length, length), |(a, b)| (a.min(length), b.max(length))));
        }
    }

    /// A stretch with data of its own begins so long after the one before.
    pub(super) fn begins_after(&mut self, ns: u64) {
        self.periods.record(ns);
    }

    /// A stretch of its operations with their times in ns, so long after the stretch before, until a time.
    pub(super) fn add(&mut self, stretch: &[(Operation, u64)], idle_ns: u64, until_ns: u64) {
        let Some((_, since_ns)) = stretch.first() else { return };
        let begin_ns = self.clock_ns.saturating_add(idle_ns);
        for (operation, at_ns) in stretch {
            self.pacing.add(operation, begin_ns.saturating_add(at_ns.saturating_sub(*since_ns)));
            self.present += u64::from(operation.kind != Kind::Sync);
        }
        self.clock_ns = begin_ns.saturating_add(until_ns.saturating_sub(*since_ns));
    }

    /// Whether its operations come one by one and wait for those before.
    pub(super) fn waits(&self) -> bool {
        self.pacing.is_serial() && self.pacing.waits(self.clock_ns)
    }

    /// Whether there are enough turns, and all completions are known.
    pub(super) fn is_told(&self) -> bool {
        self.turns >= MIN_TURNS && self.pacing.is_known()
    }
}
