//! Turns: a task that does two things one after another, such as commits and then a checkpoint.
//!
//! For: how long each goes on, and the keys of a job file that say it. Not for: telling the two apart ([`super::gather`]).
//!
//! Each of the two has a clock of its own, which stands while the other one has its turn: so pauses are those before its own operations.

use super::entry::Entry;
use super::law;
use super::closed::worded;
use super::pace::Pacing;
use super::stream::{About, Described, fraction};
use crate::replay::operations::Operation;
use model::histogram::Histogram;
use model::job::Kind;
use model::units::{show_count, show_ns};

/// Turns from which on their length says something.
const FEWEST: u64 = 3;
/// Part of a turn that a burst is in the mean, from which on it is all of it.
const WHOLE: f64 = 0.6;

/// One of the two things.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) pacing: Pacing,
    clock_ns: u64,
    /// Times from the stretch of either side before to one of its own, from beginning to beginning.
    periods: Histogram,
    /// How often it had its turn, the operations of the present one, and those of the shortest and the longest before.
    pub(super) turns: u64,
    present: u64,
    lengths: Option<(u64, u64)>,
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
            self.pacing.add(operation, begin_ns.saturating_add(at_ns - since_ns));
            self.present += u64::from(operation.kind != Kind::Sync);
        }
        self.clock_ns = begin_ns.saturating_add(until_ns.saturating_sub(*since_ns));
    }

    /// Whether there are enough turns, and its operations wait for those before.
    pub(super) fn is_told(&self) -> bool {
        self.turns >= FEWEST && self.pacing.is_known()
    }
}

/// A stream that goes through both by turns: what it is, and each by itself.
pub(super) fn described(whole: &About<'_>, sides: [(&About<'_>, &Side); 2]) -> Described {
    let cycles = sides.iter().map(|(_, side)| side.turns).min().unwrap_or(1).max(1);
    let mut stream = whole.named("");
    let turns = sides.map(|(about, side)| about.turn(side, cycles));
    let depth = sides.iter().map(|(about, side)| side.pacing.most.min(about.room_at_most())).max().unwrap_or(1);
    let comment = format!("{depth} were in flight at most; one thing after the other, {cycles} times each");
    stream.entries.push(Entry::bare("depth", &depth.max(1).to_string(), comment));
    stream.entries.extend(whole.times.iter().cloned());
    stream.turns = turns.into();
    stream
}

impl About<'_> {
    /// What is said of one of them.
    fn turn(&self, side: &Side, cycles: u64) -> Vec<Entry> {
        let classes = self.classes();
        let shape = self.shape(&classes);
        let operations = shape.operations();
        let length = operations as f64 / cycles as f64;
        let range = side.lengths.map_or_else(String::new, |(least, most)| format!(", {least} to {most} in one"));
        let mut out = vec![Entry::bare(
            "ops",
            &fraction(length.max(1.0)),
            format!("{} operations in {} turns{range}", show_count(operations as f64), side.turns),
        )];
        out.extend(shape.entries());
        let mean_burst = side.pacing.at_once();
        let burst = match mean_burst {
            _ if side.pacing.is_serial() => 1.0,
            mean if mean >= WHOLE * length => length.ceil(),
            mean => mean.round().max(1.0),
        };
        if let Some(law) = law::of(&side.periods) {
            // As many periods in a turn as there were.
            let factor = (length / mean_burst.max(1.0)) / (length / burst).ceil().max(1.0);
            let (period, fits) = worded(&law, factor);
            let [mean, think] = [&side.periods, &side.pacing.think].map(|of| show_ns(of.mean_ns().unwrap_or(0.0)));
            let comment = format!("mean {mean}, {think} of it idle (as `think` it goes as fast as its target); {fits}");
            out.push(Entry::text("period", &period, comment));
        }
        if burst > 1.0 {
            let comment = format!("{mean_burst:.2} at once in the mean");
            out.push(Entry::bare("burst", &burst.to_string(), comment));
        }
        out.extend(self.flushes(shape.of_kind(Kind::Write), true));
        out
    }
}
