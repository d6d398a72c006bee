//! Turns: a task that does two things one after another, such as commits and then a checkpoint.
//!
//! For: the keys of a job file that say it. Not for: what each of the two is like ([`super::side`], [`super::gather`]).

use super::closed::worded;
use super::entry::Entry;
use super::law;
use super::side::Side;
use super::stream::{About, Described, fraction};
use model::job::Kind;
use model::units::{show_count, show_ns};

/// Part of a turn that a burst is in the mean, from which on it is all of it.
const WHOLE: f64 = 0.6;

/// Mean number of bursts in a turn whose length is one of the two whole numbers beside this, as often as its mean asks for.
fn bursts(length: f64, burst: f64) -> f64 {
    let (below, above) = (length.floor(), length.ceil());
    let share = length - below;
    (1.0 - share) * (below / burst).ceil() + share * (above / burst).ceil()
}

impl About<'_> {
    /// A stream that goes through both by turns: what it is, and each by itself.
    pub(super) fn by_turns(&self, sides: [(&About<'_>, &Side); 2]) -> Described {
        let cycles = sides.iter().map(|(_, side)| side.turns).min().unwrap_or(1).max(1);
        let mut stream = self.named("");
        let turns = sides.map(|(about, side)| about.turn(side, cycles));
        let depth =
            sides.iter().map(|(about, side)| side.pacing.most.min(about.room_at_most())).max().unwrap_or(1);
        let comment =
            format!("{depth} were in flight at most; one thing after the other, {cycles} times each");
        stream.entries.push(Entry::bare("depth", &depth.max(1).to_string(), comment));
        stream.entries.extend(sides.iter().find_map(|(about, side)| {
            let classes = about.classes();
            Self::calls(&side.pacing, &about.shape(&classes), depth)
        }));
        stream.entries.extend(self.times.iter().cloned());
        stream.turns = turns.into();
        stream
    }

    /// What is said of one of them.
    fn turn(&self, side: &Side, cycles: u64) -> Vec<Entry> {
        let classes = self.classes();
        let shape = self.shape(&classes);
        let operations = shape.operations();
        let length = operations as f64 / cycles as f64;
        let range =
            side.lengths.map_or_else(String::new, |(least, most)| format!(", {least} to {most} in one"));
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
        if let Some(law) = law::fit_think_law(&side.periods) {
            // All of them together take as long as they did.
            let factor = side.periods.count() as f64 / cycles as f64 / bursts(length.max(1.0), burst);
            let (period, fits) = worded(&law, factor);
            let [mean, think] =
                [&side.periods, &side.pacing.think].map(|of| show_ns(of.mean_ns().unwrap_or(0.0)));
            let comment =
                format!("mean {mean}, {think} of it idle (as `think` it goes as fast as its target); {fits}");
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

#[test]
fn a_turn_of_a_mean_length_has_a_mean_number_of_bursts() {
    let near = |found: f64, truth: f64| assert!((found - truth).abs() < 1e-9, "{found}, not {truth}");
    near(bursts(69.25, 1.0), 69.25);
    near(bursts(339.2, 86.0), 4.0);
    near(bursts(3.0, 96.0), 1.0);
    near(bursts(8.5, 8.0), 1.5);
}
