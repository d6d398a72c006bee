//! When the rates of rounds are steady, so that nobody needs to measure another one.
//!
//! For: the rule alone. Not for: steadiness within a run (checks E01 to E03), nor the rule of the SNIA, which stands beside this one
//! in the report under its own name.
//!
//! The last five rounds count where both hold:
//!
//! - some last rounds, five or more, drift by less than 5 % (95 % confidence) over five rounds: the interval of the slope of a line
//!   through their logarithms lies within that. Five rounds prove it where they hardly vary, noisy ones need a longer tail.
//! - the line through the last five alone is no steeper, so that a fall that has just begun is not outvoted.
//!
//! Absence of proof is no steadiness: noise does not pass because it hides a drift. And who asks after every round, about every
//! tail, gets a yes by luck in the end; so the error that is allowed in a whole session is divided by all the questions that
//! could be asked in it (Bonferroni). The rule of the SNIA asks once per round without that, allows 10 %, and by simulation calls
//! a fall of 2 % a round steady nearly always.
//!
//! Rounds are taken to be independent of one another. Their residuals are too few to prove anything else.

use super::student;
use model::spec::number::{FEWEST_ROUNDS, MAX_RUNS};

/// Rounds that count.
pub const WINDOW: usize = FEWEST_ROUNDS as usize;
/// Drift over [`WINDOW`] rounds that is still steady, as of E01 for a minute.
pub const DRIFT: f64 = 0.05;
/// Chance that a session calls a drift of just that size steady.
const ERROR: f64 = 0.01;
/// Whether the last five of these rates are steady, in a session of so many rounds at most.
pub fn is_steady(rates: &[f64], at_most: u32) -> bool {
    if rates.len() < WINDOW || rates.iter().any(|r| !r.is_finite() || *r <= 0.0) {
        return false;
    }
    let logs: Vec<f64> = rates.iter().map(|r| r.ln()).collect();
    let allowed = DRIFT / (WINDOW - 1) as f64;
    let tail = |rounds: usize| logs.get(logs.len() - rounds..).and_then(Line::through);
    let rank = 1.0 - ERROR / questions(at_most);
    tail(WINDOW).is_some_and(|line| line.slope.abs() <= allowed)
        && (WINDOW..=logs.len()).any(|rounds| tail(rounds).is_some_and(|l| l.is_within(allowed, rank)))
}

/// Tails of five rounds or more that can be asked about after any round.
fn questions(at_most: u32) -> f64 {
    // A forged limit has its limits too.
    let looks = f64::from(at_most.clamp(FEWEST_ROUNDS, MAX_RUNS) - FEWEST_ROUNDS + 1);
    looks * (looks + 1.0) / 2.0
}

/// A straight line by least squares, one value per round.
struct Line {
    /// Change per round.
    slope: f64,
    /// Standard error of that.
    error: f64,
    /// Values more than the line has parameters.
    freedom: f64,
}

impl Line {
    fn through(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let (centre, middle) = (values.iter().sum::<f64>() / n, (n - 1.0) / 2.0);
        let at = |i: usize| i as f64 - middle;
        let spread: f64 = (0..values.len()).map(|i| at(i).powi(2)).sum();
        let slope = values.iter().enumerate().map(|(i, v)| at(i) * (v - centre)).sum::<f64>() / spread;
        let rest: f64 = values.iter().enumerate().map(|(i, v)| (v - centre - slope * at(i)).powi(2)).sum();
        let freedom = n - 2.0;
        (freedom > 0.0).then(|| Self { slope, error: (rest / freedom / spread).sqrt(), freedom })
    }

    /// Whether the slope is surely no steeper than that, either way; `rank` is what one side of the interval leaves below.
    fn is_within(&self, slope: f64, rank: f64) -> bool {
        // The quantile is dear, and never below 1 where so little error is allowed.
        self.slope.abs() + self.error <= slope
            && student::quantile(rank, self.freedom)
                .is_some_and(|t| self.slope.abs() + t * self.error <= slope)
    }
}

#[cfg(test)]
use super::known::{Noise, flat};
#[cfg(test)]
const AT_MOST: u32 = 25;

/// The round after which it is steady, if ever.
#[cfg(test)]
fn settles(rates: &[f64]) -> Option<usize> {
    (1..=rates.len()).find(|rounds| is_steady(&rates[..*rounds], AT_MOST))
}

/// Of so many sessions, how many were ever called steady, and after how many rounds nine of ten of these were.
#[cfg(test)]
fn simulated(sessions: u64, rates: impl Fn(u64) -> Vec<f64>) -> (f64, usize) {
    let mut rounds: Vec<usize> = (0..sessions).filter_map(|seed| settles(&rates(seed))).collect();
    rounds.sort_unstable();
    let accepted = rounds.len() as f64 / sessions as f64;
    (accepted, rounds.get(rounds.len() * 9 / 10).copied().unwrap_or(0))
}

#[test]
fn a_fall_of_two_per_cent_a_round_is_never_steady() {
    for deviation in [0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05] {
        let falling = |seed: u64| {
            let noise = flat(AT_MOST as usize, deviation, 0.0, seed);
            noise.iter().enumerate().map(|(i, v)| v * 0.98_f64.powi(i as i32)).collect::<Vec<_>>()
        };
        let (accepted, _) = simulated(500, falling);
        assert!(accepted <= 0.002, "deviation {deviation}: {accepted}");
    }
}

#[test]
fn noise_without_a_drift_becomes_steady() {
    for (deviation, rounds) in [(0.0, 5), (0.003, 7), (0.01, 11), (0.02, 15), (0.03, 18)] {
        let (accepted, nine_of_ten) = simulated(300, |seed| flat(AT_MOST as usize, deviation, 0.0, seed));
        assert!(accepted >= 0.97 && nine_of_ten <= rounds, "{deviation}: {accepted}, {nine_of_ten}");
    }
    let (wild, _) = simulated(300, |seed| flat(AT_MOST as usize, 0.15, 0.0, seed));
    assert!(wild <= 0.05, "{wild}: nothing can be proven of it");
}

#[test]
fn a_decay_is_waited_out_and_a_cliff_too() {
    let mut late = 0;
    for seed in 0..200 {
        let mut noise = Noise(seed);
        let decay: Vec<f64> = (0..AT_MOST)
            .map(|i| (1.0 + 2.0 * (-f64::from(i) / 2.0).exp()) * (1.0 + 0.01 * noise.normal()))
            .collect();
        let settled = settles(&decay).unwrap_or(0);
        late += usize::from(settled >= 9);
        let cliff: Vec<f64> =
            (0..AT_MOST).map(|i| if i < 4 { 9.0 } else { 3.0 } * (1.0 + 0.01 * noise.normal())).collect();
        assert!(settles(&cliff).is_none_or(|rounds| rounds >= 9), "five rounds behind the cliff");
    }
    assert!(late >= 195, "{late} of 200");
}

#[test]
fn a_fall_that_has_just_begun_is_not_outvoted() {
    let rates: Vec<f64> = (0..15).map(|i| 100.0 * 0.98_f64.powi((i - 10).max(0))).collect();
    assert!(!is_steady(&rates, AT_MOST));
    assert!(is_steady(&rates[..10], AT_MOST));
}

#[test]
fn what_is_no_rate_is_never_steady() {
    for rates in [&[][..], &[1.0; 4], &[0.0; 9], &[f64::NAN; 9], &[-1.0; 9]] {
        assert!(!is_steady(rates, AT_MOST));
    }
    assert!(is_steady(&[7.0; 5], 0), "a forged limit changes nothing");
    assert!(is_steady(&[7.0; 5], u32::MAX));
}
