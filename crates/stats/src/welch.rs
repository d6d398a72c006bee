//! The difference of two means of logarithms, and how far it can be trusted.
//!
//! For: Welch's interval, the chance that a difference is beyond a margin, the difference that could have been seen, and the
//! runs that would settle it. Not for: the four words, which need a second witness too.
//! B. L. Welch, "The generalization of Student's problem when several different population variances are involved",
//! Biometrika 34 (1947).

use crate::interval::FEWEST_RUNS;
use crate::sample::{mean, variance};
use crate::sample_size::fewest;
use crate::student;

/// Chance of being wrong that is allowed: both tails of a 95 % interval together.
pub const ALLOWED: f64 = 0.05;
/// Share of comparisons in which a true difference should be found.
pub const POWER: f64 = 0.80;
/// What each end of an interval must reach so that both are inside the margin in [`POWER`] of the comparisons.
const POWER_OF_AN_END: f64 = 0.90;
/// Runs up to which "runs needed" is worth a number.
pub const MOST_RUNS: u32 = 1000;
/// Runs on each side with which ranks can say anything: 4 against 4 has a least chance of 2.9 %.
const RUNS_FOR_RANKS: u32 = 4;

/// A difference of means, B less A, of logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The difference.
    pub delta: f64,
    /// Its standard error.
    error: f64,
    /// Its degrees of freedom, by Welch and Satterthwaite; no number where nothing varies.
    degrees: f64,
    /// Variance of a single run, the mean of both sides'.
    variance: f64,
}

impl Shift {
    /// The difference of two lists of logarithms; `None` with fewer than three on a side.
    pub fn new(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.len().min(b.len()) < FEWEST_RUNS {
            return None;
        }
        let (var_a, var_b) = (variance(a), variance(b));
        let parts = [(var_a / a.len() as f64, a.len()), (var_b / b.len() as f64, b.len())];
        let sum: f64 = parts.iter().map(|(v, _)| v).sum();
        let degrees = sum * sum / parts.iter().map(|(v, n)| v * v / (*n as f64 - 1.0)).sum::<f64>();
        let shift = Self {
            delta: mean(b) - mean(a),
            error: sum.sqrt(),
            degrees,
            variance: f64::midpoint(var_a, var_b),
        };
        (shift.delta.is_finite() && shift.error.is_finite()).then_some(shift)
    }

    /// The 95 % interval of the difference.
    pub fn interval(&self) -> [f64; 2] {
        self.between(ALLOWED / 2.0)
    }

    /// The interval of the difference that leaves this much at each end.
    pub fn between(&self, tail: f64) -> [f64; 2] {
        let half = self.times_error(1.0 - tail);
        [self.delta - half, self.delta + half]
    }

    /// Quantile of Student by the standard error; nothing where nothing varies.
    fn times_error(&self, q: f64) -> f64 {
        if self.error > 0.0 { quantile(self.degrees, q) * self.error } else { 0.0 }
    }

    /// Its degrees of freedom; `None` where nothing varies.
    pub fn degrees(&self) -> Option<f64> {
        self.degrees.is_finite().then_some(self.degrees)
    }

    /// Two-sided chance of a difference so far beyond the margin, where the truth is at the margin. It is below 5 % exactly
    /// where the 95 % interval lies beyond the margin.
    pub fn chance_beyond(&self, margin: f64) -> f64 {
        let beyond = self.delta.abs() - margin;
        if beyond <= 0.0 {
            return 1.0;
        }
        if self.error <= 0.0 {
            return 0.0;
        }
        student::beyond(beyond / self.error, self.degrees).map_or(1.0, |one_tail| 2.0 * one_tail)
    }

    /// Smallest difference that would be seen as one in [`POWER`] of such comparisons, among so many that are looked at.
    /// The interval must lie beyond the margin, so the margin is a part of it.
    pub fn visible(&self, margin: f64, looks: usize) -> f64 {
        margin + self.times_error(tail(looks)) + self.times_error(POWER)
    }

    /// Runs on each side with which [`POWER`] of such comparisons would be settled, if the difference and the variation are
    /// what they seem: the interval lies beyond the margin or within the tolerance, whichever takes fewer. `None` above [`MOST_RUNS`].
    pub fn runs_needed(&self, [margin, tolerance]: [f64; 2], looks: usize) -> Option<u32> {
        let (beyond, within) = (self.delta.abs() - margin, tolerance - self.delta.abs());
        let differs = || self.runs_for(beyond, tail(looks), POWER, RUNS_FOR_RANKS);
        let is_same = || self.runs_for(within, tail(1), POWER_OF_AN_END, FEWEST_RUNS as u32);
        let ways = [(beyond > 0.0).then(differs), (within > 0.0).then(is_same)];
        ways.into_iter().flatten().flatten().min()
    }

    /// Runs on each side with which the 95 % interval would be half as wide, if the variation is what it seems; `None` above
    /// [`MOST_RUNS`], and where nothing varies.
    pub fn runs_to_halve(&self) -> Option<u32> {
        let half = self.times_error(tail(1));
        let narrow = |runs: u32| {
            let error = (2.0 * self.variance / f64::from(runs)).sqrt();
            2.0 * quantile(2.0 * f64::from(runs) - 2.0, tail(1)) * error <= half
        };
        (half > 0.0).then(|| fewest(FEWEST_RUNS as u32, MOST_RUNS, narrow)).flatten()
    }

    /// Runs on each side with which a bound that leaves this much beyond it would be on one side of a limit in [`POWER`] of such
    /// comparisons, if the difference and the variation are what they seem; `None` above [`MOST_RUNS`].
    pub fn runs_to_tell(&self, limit: f64, tail: f64) -> Option<u32> {
        self.runs_for((self.delta - limit).abs(), 1.0 - tail, POWER, RUNS_FOR_RANKS)
    }

    /// The fewest runs on each side, from so many on, with which both quantiles fit into a gap.
    fn runs_for(&self, gap: f64, q: f64, power: f64, least: u32) -> Option<u32> {
        let enough = |runs: u32| {
            let degrees = 2.0 * f64::from(runs) - 2.0;
            let error = (2.0 * self.variance / f64::from(runs)).sqrt();
            (quantile(degrees, q) + quantile(degrees, power)) * error <= gap
        };
        fewest(least, MOST_RUNS, enough)
    }
}

/// The quantile at which one of so many looks ends, by Bonferroni: the first step of Holm.
fn tail(looks: usize) -> f64 {
    1.0 - ALLOWED / 2.0 / looks.max(1) as f64
}

fn quantile(degrees: f64, q: f64) -> f64 {
    student::quantile(q, degrees).unwrap_or(f64::INFINITY)
}

/// scipy.stats.ttest_ind(b, a, equal_var=False) of the test: statistic, df, confidence_interval(), pvalue.
#[cfg(test)]
const WELCH: [f64; 5] = [
    -3.280_019_361_953_590_5,
    3.915_556_891_080_908,
    -0.202_055_527_753_379_87,
    -0.015_944_472_246_623_653,
    0.031_473_638_916_996_89,
];

#[cfg(test)]
fn near(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-6 * expected.abs()
}

#[test]
fn the_interval_is_that_of_welch() {
    let a = [11.21, 11.25, 11.18, 11.23, 11.20];
    let b = [11.10, 11.14, 11.02, 11.16];
    let shift = Shift::new(&a, &b).unwrap();
    assert!(near(shift.delta / shift.error, WELCH[0]), "{shift:?}");
    assert!(near(shift.degrees, WELCH[1]), "{shift:?}");
    let [low, high] = shift.interval();
    assert!(near(low, WELCH[2]) && near(high, WELCH[3]), "{low} {high}");
    assert!(near(shift.chance_beyond(0.0), WELCH[4]), "{}", shift.chance_beyond(0.0));
}

#[test]
fn the_chance_is_five_per_cent_where_the_interval_ends_at_the_margin() {
    let shift = Shift::new(&[1.0, 1.1, 0.9, 1.05], &[1.5, 1.4, 1.65, 1.45]).unwrap();
    let [low, _] = shift.interval();
    assert!(near(shift.chance_beyond(low), ALLOWED), "{}", shift.chance_beyond(low));
    assert!(near(shift.chance_beyond(1.0), 1.0));
}

#[test]
fn few_values_have_no_difference_and_equal_ones_a_sure_one() {
    assert_eq!(Shift::new(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
    assert_eq!(Shift::new(&[1.0, f64::INFINITY, 2.0], &[1.0, 2.0, 3.0]), None);
    let sure = Shift::new(&[1.0; 5], &[1.5; 5]).unwrap();
    assert_eq!((sure.interval(), sure.degrees()), ([0.5, 0.5], None));
    assert_eq!((sure.chance_beyond(0.1), sure.chance_beyond(0.6)), (0.0, 1.0));
    assert_eq!((sure.visible(0.1, 9), sure.runs_needed([0.1; 2], 1)), (0.1, Some(4)));
}

#[test]
fn fewer_runs_are_needed_for_more_and_none_suffice_at_the_margin() {
    let sure = Shift::new(&[1.0; 5], &[1.5; 5]).unwrap();
    let away = |delta: f64| Shift { delta, error: 0.019, degrees: 8.0, variance: 0.0009 };
    let needed = |delta: f64| away(delta).runs_needed([0.01; 2], 1);
    // 2 ((2.10 + 0.86) 0.03 / 0.04)^2 = 9.9, with Student of 18 degrees.
    assert_eq!(needed(0.05), Some(10));
    assert!(needed(0.1) < needed(0.05) && needed(-0.05) == needed(0.05));
    assert_eq!(needed(0.01), None);
    assert!(needed(0.0) > needed(0.05), "a difference is shown more easily than that there is none");
    // 2 ((1.70 + 0.86) 0.03 / 0.05)^2 = 4.7 with the normal quantiles; Student of 10 degrees asks for 6.
    assert_eq!([away(0.0), away(-0.1)].map(|s| s.runs_to_tell(-0.05, 0.05)), [Some(6); 2]);
    assert_eq!(away(-0.05).runs_to_tell(-0.05, 0.05), None);
    assert!(away(0.05).runs_needed([0.01; 2], 40) > needed(0.05), "many looks need more");
    let wider = |delta: f64| away(delta).runs_needed([0.01, 0.05], 1);
    assert!(
        wider(0.0) < needed(0.0) && wider(0.01) < Some(40),
        "a tolerance is shown sooner than the margin"
    );
    assert_eq!(wider(0.1), needed(0.1), "beyond the tolerance it changes nothing");
    // 2.306 x 0.019 = 4.38 % with 10 runs in all; 2.04 x 0.0424 / sqrt(n) = 2.19 % takes 16 on each side.
    assert_eq!((away(0.0).runs_to_halve(), sure.runs_to_halve()), (Some(16), None));
}
