//! What it would take: how many runs, of what length, for an interval as narrow as asked.
//!
//! For: advice to people. Runs vary by a part that longer runs average out and one that they do not; where time is best spent
//! follows from both and from what a run costs beside its window (Kalibera and Jones, Rigorous Benchmarking in Reasonable
//! Time, ISMM 2013). Not for: deciding while measuring (`strategy`).

use crate::interval::FEWEST_RUNS;
use crate::student;

/// Half width of an interval that is worth asking for, by the value.
pub const ASKED: f64 = 0.025;
/// Runs above which it is no advice any more.
pub const MOST_RUNS: u32 = 100;

/// How the rates of runs vary, relative to their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variability {
    /// Variance of the runs' rates.
    pub variance: f64,
    /// The part of it that comes from within the runs, and shrinks as they get longer.
    pub within: f64,
    /// Length of a run's window in seconds.
    pub seconds: f64,
    /// What a run takes beside that: preparation, warm-up, rest.
    pub beside_s: f64,
}

/// Runs in all until the 95 % interval of their geometric mean is no wider than the share `asked` to either side, where the
/// logarithms of their rates have this variance; `None` above [`MOST_RUNS`].
pub fn runs(variance: f64, asked: f64) -> Option<u32> {
    let half = |n: u32| student::factor(f64::from(n) - 1.0).map(|t| t * (variance / f64::from(n)).sqrt());
    (FEWEST_RUNS as u32..=MOST_RUNS).find(|n| half(*n).is_some_and(|h| h <= asked.ln_1p()))
}

/// The fewest of so many that are enough, where more are enough too; `None` where even the most are not.
pub fn fewest(least: u32, most: u32, enough: impl Fn(u32) -> bool) -> Option<u32> {
    if !enough(most) {
        return None;
    }
    let (mut low, mut high) = (least.min(most), most);
    while low < high {
        let middle = u32::midpoint(low, high);
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// The length of runs in seconds that makes the interval narrowest in a given time: the square root of what a run costs beside
/// its window times the ratio of the variances. `None` where nothing varies from run to run beyond what varies within
/// them: there only the time in all counts.
pub fn best_seconds(spread: &Variability) -> Option<f64> {
    let between = spread.variance - spread.within;
    let best = (spread.beside_s * spread.within * spread.seconds / between).sqrt();
    (between > 0.0 && best.is_finite()).then_some(best)
}

#[test]
fn the_fewest_are_found_at_either_end_and_between() {
    let of = |from: u32| fewest(3, 1000, |n| n >= from);
    assert_eq!([1, 3, 4, 517, 1000].map(of), [3, 3, 4, 517, 1000].map(Some));
    assert_eq!((of(1001), fewest(9, 5, |_| true)), (None, Some(5)));
}

#[test]
fn runs_are_those_of_the_formula() {
    // 5 % from run to run: (t 0.05 / ln 1.025)^2 with t(17) = 2.11.
    assert_eq!(runs(0.05_f64.powi(2), 0.025), Some(19));
    assert_eq!(runs(0.0, 0.025), Some(3));
    assert_eq!(runs(0.01_f64.powi(2), 0.025), Some(4));
    assert_eq!((runs(0.25, 0.025), runs(f64::NAN, 0.025)), (None, None));
}

#[test]
fn runs_get_longer_as_they_cost_more_and_as_more_varies_within() {
    let spread = Variability { variance: 5e-4, within: 1e-4, seconds: 4.0, beside_s: 1.0 };
    // Per second within 4e-4, between 4e-4: a second of window for each second beside it.
    assert!((best_seconds(&spread).unwrap() - 1.0).abs() < 1e-9);
    assert!((best_seconds(&Variability { beside_s: 9.0, ..spread }).unwrap() - 3.0).abs() < 1e-9);
    assert_eq!(best_seconds(&Variability { variance: 1e-4, ..spread }), None);
}
