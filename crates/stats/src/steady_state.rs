//! Steady state of rounds: fathom's own rule and the criterion of the SNIA.
//!
//! [`is_steady`] accepts the last five rounds if two conditions hold:
//!
//! 1. Some tail of five rounds or more drifts by at most 5 % over five rounds. The proof is the interval of the slope of a line through
//!    the logarithms, with 99 % confidence for the whole session. Quiet rounds prove it after five rounds, noisy ones need a longer tail.
//! 2. The line through the last five rounds alone is no steeper than 5 % over five rounds, so that earlier rounds do not hide a fall that
//!    has just begun.
//!
//! Without proof the state is not steady, so noise that hides a drift does not pass. The rule is applied to every tail after every round.
//! So the allowed error of a session is divided by the number of applications (Bonferroni). Rounds count as independent, because their
//! residuals are too few to prove correlation.
//!
//! [`apply_snia`] applies the criterion of the SNIA, word for word (Solid State Storage Performance Test Specification 2.0).
//! Within five rounds, the largest and the smallest value differ by at most 20 % of the average, and the ends of the
//! fitted line by at most 10 %. The criterion accepts a decay of 2 % per round as steady, and rejects the noise of a
//! shared disk as unsteady. [`is_settled`] uses it to end the preconditioning.

use crate::sample::{self, mean};
use crate::series::{Line, Series};
use model::figures::Snia;
use model::spec::number::{FEWEST_ROUNDS, MAX_RUNS};

/// Number of rounds that must be steady.
pub const WINDOW: usize = FEWEST_ROUNDS as usize;
/// Maximum drift over [`WINDOW`] rounds of a steady state: the limit of check E01 for runs of a minute.
pub const DRIFT: f64 = 0.05;
/// Maximum probability that a session whose drift is exactly [`DRIFT`] is reported as steady.
const MAX_ERROR: f64 = 0.01;

/// Returns whether the last five rates are steady, in a session of at most `max_rounds` rounds.
pub fn is_steady(rates: &[f64], max_rounds: u32) -> bool {
    if rates.len() < WINDOW || rates.iter().any(|r| !r.is_finite() || *r <= 0.0) {
        return false;
    }
    let logs: Vec<f64> = rates.iter().map(|r| r.ln()).collect();
    let max_slope = DRIFT / (WINDOW - 1) as f64;
    let tail = |rounds: usize| logs.get(logs.len() - rounds..).and_then(Line::fit);
    let rank = 1.0 - MAX_ERROR / count_applications(max_rounds);
    tail(WINDOW).is_some_and(|line| line.slope.abs() <= max_slope)
        && (WINDOW..=logs.len())
            .any(|rounds| tail(rounds).is_some_and(|line| is_slope_within(&line, rounds, max_slope, rank)))
}

/// Returns how often the rule is applied in a session: after each round, once for each tail.
fn count_applications(max_rounds: u32) -> f64 {
    // Clamp the limit of a forged file.
    let rounds_judged = f64::from(max_rounds.clamp(FEWEST_ROUNDS, MAX_RUNS) - FEWEST_ROUNDS + 1);
    rounds_judged * (rounds_judged + 1.0) / 2.0
}

/// Whether the interval of the line's slope is within `max_slope` in either direction. The interval ends at the quantile `rank` of
/// Student's t.
fn is_slope_within(line: &Line, rounds: usize, max_slope: f64, rank: f64) -> bool {
    let degrees = rounds as f64 - 2.0;
    let error = line.error_of_slope(degrees);
    // Skip the expensive quantile if possible: it is never below 1 for such a small probability of error.
    line.slope.abs() + error <= max_slope
        && sample::quantile(rank, degrees).is_some_and(|t| line.slope.abs() + t * error <= max_slope)
}

/// Number of rounds that the SNIA criterion uses: the last five.
const SNIA_WINDOW: usize = 5;
/// Maximum difference between the largest and the smallest of the five rounds, relative to the average of all five.
const MAX_EXCURSION: f64 = 0.20;
/// Maximum change from end to end of the fitted line, relative to the average.
const MAX_SLOPE: f64 = 0.10;
/// Length of a round in the SNIA specification, in seconds.
const ROUND_S: f64 = 60.0;

/// Applies the SNIA criterion to one rate per round; `None` with fewer than five rounds, or if the mean of the last five is not positive.
pub fn apply_snia(rounds: &[f64]) -> Option<Snia> {
    let last = rounds.get(rounds.len().checked_sub(SNIA_WINDOW)?..)?;
    let line = Line::fit_rates(last)?;
    let (lowest, highest) = last.iter().fold((f64::MAX, 0.0_f64), |(a, b), r| (a.min(*r), b.max(*r)));
    let excursion = (highest - lowest) / line.centre;
    let slope = line.slope.abs() * (SNIA_WINDOW - 1) as f64 / line.centre;
    (excursion.is_finite() && slope.is_finite()).then_some(Snia {
        met: excursion <= MAX_EXCURSION && slope <= MAX_SLOPE,
        rounds: rounds.len() as u32,
        excursion,
        slope,
    })
}

/// Divides a run into rounds, and returns the mean rate of each. A round is about a minute if the
/// run has at least five minutes, otherwise a fifth of the run.
pub fn divide_into_rounds(series: &Series) -> Vec<f64> {
    let steps = series.rates.len();
    let rounds = ((series.seconds() / ROUND_S) as usize).clamp(SNIA_WINDOW, steps.max(SNIA_WINDOW));
    let edge = |i: usize| i * steps / rounds;
    (0..rounds).filter_map(|i| Some(mean(series.rates.get(edge(i)..edge(i + 1))?))).collect()
}

/// Returns whether preconditioning may end: the rates of the rounds meet the SNIA criterion, which other tools use for preconditioning too.
/// False with fewer than five rounds.
pub fn is_settled(rates: &[f64]) -> bool {
    apply_snia(rates).is_some_and(|s| s.met)
}

#[cfg(test)]
use crate::series::{Noise, generate_series};

#[cfg(test)]
const MAX_ROUNDS: u32 = 25;

/// Returns the round after which the rates are steady.
#[cfg(test)]
fn first_steady_round(rates: &[f64]) -> Option<usize> {
    (1..=rates.len()).find(|rounds| is_steady(&rates[..*rounds], MAX_ROUNDS))
}

/// Simulates sessions. Returns the share that became steady, and the number of rounds after which 90 % of these sessions were steady.
#[cfg(test)]
fn simulate_sessions(sessions: u64, rates: impl Fn(u64) -> Vec<f64>) -> (f64, usize) {
    let mut rounds: Vec<usize> = (0..sessions).filter_map(|seed| first_steady_round(&rates(seed))).collect();
    rounds.sort_unstable();
    let accepted = rounds.len() as f64 / sessions as f64;
    (accepted, rounds.get(rounds.len() * 9 / 10).copied().unwrap_or(0))
}

#[test]
fn a_fall_of_two_percent_per_round_is_steady_in_at_most_one_of_500_sessions() {
    for deviation in [0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05] {
        let falling = |seed: u64| {
            let noise = generate_series(MAX_ROUNDS as usize, deviation, 0.0, seed);
            noise.iter().enumerate().map(|(i, v)| v * 0.98_f64.powi(i as i32)).collect::<Vec<_>>()
        };
        let (accepted, _) = simulate_sessions(500, falling);
        assert!(accepted <= 0.002, "deviation {deviation}: {accepted}");
    }
}

#[test]
fn noise_without_a_drift_becomes_steady() {
    for (deviation, rounds) in [(0.0, 5), (0.003, 7), (0.01, 11), (0.02, 15), (0.03, 18)] {
        let (accepted, nine_of_ten) =
            simulate_sessions(300, |seed| generate_series(MAX_ROUNDS as usize, deviation, 0.0, seed));
        assert!(accepted >= 0.97 && nine_of_ten <= rounds, "{deviation}: {accepted}, {nine_of_ten}");
    }
    let (wild, _) = simulate_sessions(300, |seed| generate_series(MAX_ROUNDS as usize, 0.15, 0.0, seed));
    assert!(wild <= 0.05, "{wild}: too noisy to prove anything");
}

#[test]
fn a_decay_and_a_cliff_delay_the_steady_state() {
    let mut late = 0;
    for seed in 0..200 {
        let mut noise = Noise(seed);
        let decay: Vec<f64> = (0..MAX_ROUNDS)
            .map(|i| (1.0 + 2.0 * (-f64::from(i) / 2.0).exp()) * (1.0 + 0.01 * noise.normal()))
            .collect();
        let settled = first_steady_round(&decay).unwrap_or(0);
        late += usize::from(settled >= 9);
        let cliff: Vec<f64> =
            (0..MAX_ROUNDS).map(|i| if i < 4 { 9.0 } else { 3.0 } * (1.0 + 0.01 * noise.normal())).collect();
        assert!(first_steady_round(&cliff).is_none_or(|rounds| rounds >= 9), "five rounds after the cliff");
    }
    assert!(late >= 195, "{late} of 200");
}

#[test]
fn a_fall_that_has_just_begun_is_not_outvoted() {
    let rates: Vec<f64> = (0..15).map(|i| 100.0 * 0.98_f64.powi((i - 10).max(0))).collect();
    assert!(!is_steady(&rates, MAX_ROUNDS));
    assert!(is_steady(&rates[..10], MAX_ROUNDS));
}

#[test]
fn invalid_rates_are_never_steady() {
    for rates in [&[][..], &[1.0; 4], &[0.0; 9], &[f64::NAN; 9], &[-1.0; 9]] {
        assert!(!is_steady(rates, MAX_ROUNDS));
    }
    assert!(is_steady(&[7.0; 5], 0), "a forged limit changes nothing");
    assert!(is_steady(&[7.0; 5], u32::MAX));
}

#[test]
fn the_snia_limits_match_the_specification() {
    // An excursion of 20 % without a slope; then an excursion just above 20 %.
    let snia = |rounds: [f64; 5]| apply_snia(&rounds).unwrap();
    assert!(snia([105.0, 90.0, 110.0, 90.0, 105.0]).met);
    let apart = snia([105.0, 89.9, 110.2, 89.9, 105.0]);
    assert!(!apart.met && apart.slope < 1e-9);
    // A line of 10 % from end to end; then 12 %.
    let (met, missed) = (snia([105.0, 102.5, 100.0, 97.5, 95.0]), snia([106.0, 103.0, 100.0, 97.0, 94.0]));
    assert!(met.met && (met.slope - 0.1).abs() < 1e-12 && !missed.met && missed.excursion < 0.13);
}

#[test]
fn the_snia_criterion_uses_the_last_five_rounds() {
    let snia = apply_snia(&[9.0, 900.0, 100.0, 100.0, 100.0, 100.0, 100.0]).unwrap();
    assert!(snia.met && snia.rounds == 7);
    assert_eq!((apply_snia(&[1.0; 4]), apply_snia(&[0.0; 5]), apply_snia(&[])), (None, None, None));
}

#[test]
fn a_long_run_is_divided_into_minutes_and_a_short_one_into_fifths() {
    let run = |seconds: usize| Series {
        from_ns: 0.0,
        step_ns: seconds as f64 * 1e9 / 100.0,
        rates: (0..100).map(f64::from).collect(),
    };
    assert_eq!(divide_into_rounds(&run(20)), [9.5, 29.5, 49.5, 69.5, 89.5]);
    assert_eq!((divide_into_rounds(&run(600)).len(), divide_into_rounds(&run(60_000)).len()), (10, 100));
}

#[test]
fn five_equal_rates_have_settled() {
    assert!(is_settled(&[400.0, 250.0, 100.0, 101.0, 99.0, 100.0, 102.0]));
    assert!(is_settled(&[100.0; 5]) && !is_settled(&[100.0; 4]));
}

#[test]
fn a_decline_or_a_jump_has_not_settled() {
    assert!(!is_settled(&[106.0, 103.0, 100.0, 97.0, 94.0]));
    assert!(!is_settled(&[85.0, 115.0, 100.0, 115.0, 85.0]));
    assert!(!is_settled(&[0.0; 5]) && !is_settled(&[]) && !is_settled(&[f64::NAN; 5]));
}
