//! One time axis for all runs: side by side, in the order in which they ran.
//!
//! For: from a second of a run to a place. Not for: what is drawn there.

use super::plot::axis::{SIDE, Tick};
use super::words::short_number;
use std::collections::BTreeMap;

/// Part of the width that is left between neighbouring runs, and of all of it at most.
const RUN_GAP: f64 = 0.012;
const MAX_GAPS: f64 = 0.15;
/// Runs whose seconds have marks of their own.
const MAX_RUNS_WITH_SECONDS: usize = 12;
/// Numbers of runs that a small drawing has room for.
const MAX_RUN_NUMBERS: usize = 6;

/// Runs side by side.
pub(super) struct Timeline {
    /// Where each begins, and how long it is, in seconds.
    runs: BTreeMap<u32, (f64, f64)>,
    /// Units of the drawing for a second.
    per_second: f64,
}

impl Timeline {
    /// Of the stretches that there are: run, begin and length in seconds.
    pub(super) fn from_stretches(stretches: impl Iterator<Item = (u32, f64, f64)>) -> Self {
        Self::with_room_for(0.0, stretches)
    }

    /// Of the stretches that there are (run, begin and length in seconds), where so many seconds have room at least: beside others that
    /// take longer.
    pub(super) fn with_room_for(room_s: f64, stretches: impl Iterator<Item = (u32, f64, f64)>) -> Self {
        let mut lengths: BTreeMap<u32, f64> = BTreeMap::new();
        for (run, start, seconds) in stretches.filter(|(_, start, s)| start.is_finite() && s.is_finite()) {
            let length = lengths.entry(run).or_default();
            *length = length.max(start + seconds);
        }
        let seconds: f64 = lengths.values().sum();
        let between = lengths.len().saturating_sub(1).max(1) as f64;
        let gap = SIDE * RUN_GAP.min(MAX_GAPS / between);
        let gaps = gap * lengths.len().saturating_sub(1) as f64;
        let per_second = (SIDE - gaps) / seconds.max(room_s).max(f64::MIN_POSITIVE);
        let mut at = 0.0;
        let mut runs = BTreeMap::new();
        for (run, length) in lengths {
            runs.insert(run, (at, length));
            at += length * per_second + gap;
        }
        Self { runs, per_second }
    }

    /// Where a second of a run lies; no number where there is no such run.
    pub(super) fn at(&self, run: u32, second: f64) -> f64 {
        self.runs.get(&run).map_or(f64::NAN, |(from, _)| from + second * self.per_second)
    }

    /// From where to where a run is.
    pub(super) fn span(&self, run: u32) -> Option<[f64; 2]> {
        let (from, length) = self.runs.get(&run)?;
        Some([*from, from + length * self.per_second])
    }

    /// Seconds of all runs together.
    pub(super) fn seconds(&self) -> f64 {
        self.runs.values().map(|(_, length)| length).sum()
    }

    /// Marks where there is room for few: where runs begin, by their numbers; of one run its seconds.
    pub(super) fn few_ticks(&self) -> Vec<Tick> {
        if self.runs.len() < 2 {
            return self.ticks();
        }
        let every = self.runs.len().div_ceil(MAX_RUN_NUMBERS);
        let begins = self.runs.iter().step_by(every);
        begins.map(|(run, (from, _))| Tick { at: *from, label: run.saturating_add(1).to_string() }).collect()
    }

    /// Marks: seconds of each run, or of many runs where each tenth of them begins.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let few = self.runs.len() <= MAX_RUNS_WITH_SECONDS;
        let every = self.runs.len().div_ceil(10).max(1);
        let longest = self.runs.values().map(|r| r.1).fold(0.0, f64::max);
        let step = tick_step(longest, self.runs.len());
        let mut out = Vec::new();
        for (at, (run, (from, length))) in self.runs.iter().enumerate() {
            if !few {
                if at % every == 0 {
                    out.push(Tick { at: *from, label: format!("run {}", run.saturating_add(1)) });
                }
                continue;
            }
            let marks = (0..=(length / step) as u32).map(|i| f64::from(i) * step);
            // A mark at the very end would stand on the next run's first.
            out.extend(
                marks.filter(|s| *s < 0.9 * length || self.runs.len() == 1).map(|s| Tick {
                    at: from + s * self.per_second,
                    label: format!("{} s", short_number(s)),
                }),
            );
        }
        out
    }
}

/// Seconds between marks, so that a dozen of them or fewer stand below all runs.
fn tick_step(longest: f64, runs: usize) -> f64 {
    let each = (12 / runs.max(1)).max(1) as f64;
    let rough = (longest / each).max(1e-3);
    let power = 10_f64.powf(rough.log10().floor());
    // Runs last a bit longer than they were asked to.
    let has_room = |s: &f64| *s >= 0.95 * rough;
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(has_room).unwrap_or(rough)
}

#[test]
fn runs_stand_side_by_side_and_each_second_is_as_wide_as_any() {
    let of = Timeline::from_stretches([(0, 0.0, 5.0), (0, 5.0, 5.0), (1, 0.0, 10.0)].into_iter());
    let [from, to] = of.span(1).unwrap_or_default();
    assert!(
        (of.at(0, 10.0) - 494.0).abs() < 1e-9 && (from - 506.0).abs() < 1e-9 && (to - 1000.0).abs() < 1e-9
    );
    assert!((of.at(1, 5.0) - 753.0).abs() < 1e-9 && of.at(7, 0.0).is_nan());
    assert!(of.ticks().iter().any(|t| t.label == "2 s"), "{:?}", of.ticks());
    let five = Timeline::from_stretches((0..5).map(|run| (run, 0.0, 2.003)));
    assert!(five.ticks().iter().any(|t| t.label == "1 s"), "a bit more than 2 s: {:?}", five.ticks());
}

#[test]
fn beside_a_longer_one_a_second_is_as_wide_as_there() {
    let [long, short] = [10.0, 5.0].map(|s| Timeline::with_room_for(10.0, [(0, 0.0, s)].into_iter()));
    assert!((long.at(0, 4.0) - short.at(0, 4.0)).abs() < 1e-9);
    let many = Timeline::from_stretches((0..12).map(|run| (run, 0.0, 1.0)));
    let marks: Vec<String> = many.few_ticks().into_iter().map(|tick| tick.label).collect();
    assert_eq!(marks, ["1", "3", "5", "7", "9", "11"]);
    assert!(
        (short.span(0).unwrap_or_default()[1] - 500.0).abs() < 1e-9 && (short.seconds() - 5.0).abs() < 1e-9
    );
}

#[test]
fn a_thousand_runs_have_few_marks_and_none_has_none() {
    let of = Timeline::from_stretches((0..1000).map(|run| (run, 0.0, 0.1)));
    assert!(of.ticks().len() <= 10 && of.span(999).is_some_and(|s| s[1] <= 1000.1 && s[1] > s[0]));
    let none = Timeline::from_stretches(std::iter::empty());
    assert!(none.ticks().is_empty() && none.at(0, 1.0).is_nan());
}
