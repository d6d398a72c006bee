//! The interval of a difference of percentiles, by drawing runs anew.
//!
//! For: percentiles, whose values over runs are rarely normal even on a logarithmic axis. Not for: drawing operations: a run's
//! percentile varies by its operations and by its run at once, so drawing whole runs covers both (Davison and Hinkley,
//! "Bootstrap Methods and their Application", 1997, section 3.8).

use super::sample;
use super::student;
use model::payload::split_mix;
use statrs::distribution::{ContinuousCDF, Normal};

/// Runs on each side from which there is enough to draw from.
pub const FEWEST: usize = 6;
/// Times that both sides are drawn.
const DRAWS: usize = 2000;
/// The same runs always have the same interval.
const SEED: u64 = 0x5eed;

/// The interval of the mean of `b` less the mean of `a` that leaves this much at each end, with the degrees of freedom that Welch gives
/// these runs.
///
/// Plain quantiles of the draws are too narrow for few runs, by a factor of sqrt(1 - 1/n) and by the normal distribution in
/// place of Student's. Both are made up for (T. Hesterberg, "What Teachers Should Know About the Bootstrap", The American
/// Statistician 69, 2015, section 5.3: "expanded percentile interval").
pub fn interval(a: &[f64], b: &[f64], degrees: Option<f64>, tail: f64) -> Option<[f64; 2]> {
    let delta = sample::mean(b) - sample::mean(a);
    let Some(degrees) = degrees else { return Some([delta, delta]) };
    let errors = student::quantile(tail, degrees)?;
    let tail = Normal::new(0.0, 1.0).ok()?.cdf(errors);
    let mut state = SEED;
    let mut draws: Vec<f64> =
        (0..DRAWS).map(|_| delta + deviation(b, &mut state) - deviation(a, &mut state)).collect();
    draws.sort_unstable_by(f64::total_cmp);
    let at = (tail * DRAWS as f64) as usize;
    Some([*draws.get(at)?, *draws.get(DRAWS - 1 - at)?])
}

/// By how much the mean of runs drawn anew is off, as wide as the mean of as many new runs would be.
fn deviation(runs: &[f64], state: &mut u64) -> f64 {
    let n = runs.len();
    let mut sum = 0.0;
    for _ in 0..n {
        *state = split_mix(*state);
        // The upper half of a product is as good as a remainder, and cheaper.
        sum += runs[((u128::from(*state) * n as u128) >> 64) as usize];
    }
    (sum / n as f64 - sample::mean(runs)) * (n as f64 / (n as f64 - 1.0)).sqrt()
}

#[cfg(test)]
use super::welch::ALLOWED;

#[test]
fn an_interval_holds_the_difference_and_is_the_same_each_time() {
    let a = [1.00, 1.02, 0.98, 1.01, 0.99, 1.03];
    let b = a.map(|v| v + 0.5);
    let interval = |a: &[f64], b: &[f64], degrees| super::bootstrap::interval(a, b, degrees, ALLOWED / 2.0);
    let [low, high] = interval(&a, &b, Some(10.0)).unwrap();
    assert!(low < 0.5 && 0.5 < high && high - low < 0.1, "{low} {high}");
    assert_eq!(interval(&a, &b, Some(10.0)), Some([low, high]));
    assert_eq!(interval(&[1.0; 6], &[1.25; 6], None), Some([0.25, 0.25]));
    let [of_low, of_high] = super::bootstrap::interval(&a, &b, Some(10.0), ALLOWED).unwrap();
    assert!(low < of_low && of_high < high, "{of_low} {of_high}");
}
