//! The mean of several runs and how far it can be trusted.
//!
//! For: geometric means with t-intervals on logarithms. Not for: intervals inside one run, nor comparing two results.
//! Runs vary by factors rather than by amounts, hence logarithms (Maricq et al., OSDI 2018).

use crate::student;

/// Runs below which no interval is given: two runs have one degree of freedom and an interval of a factor of ten.
pub const FEWEST_RUNS: usize = 3;

/// A mean over runs with its 95 % interval, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Geometric mean.
    pub value: f64,
    /// 95 % interval; `None` with fewer than [`FEWEST_RUNS`].
    pub interval: Option<[f64; 2]>,
}

/// The mean of one value per run. `None` where there is no value, or one that is no number.
pub fn mean(values: &[f64]) -> Option<Mean> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite() || *v < 0.0) {
        return None;
    }
    let n = values.len() as f64;
    if values.contains(&0.0) {
        // Zero has no logarithm. Runs have equal windows, so this is operations over time.
        return finite(values.iter().sum::<f64>() / n, None);
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let centre = logs.iter().sum::<f64>() / n;
    let half = (values.len() >= FEWEST_RUNS).then(|| standard_half_width(&logs, centre)).flatten();
    finite(centre.exp(), half.map(|h| [(centre - h).exp(), (centre + h).exp()]))
}

/// t times the standard error of the mean of `logs`.
fn standard_half_width(logs: &[f64], centre: f64) -> Option<f64> {
    let n = logs.len() as f64;
    let variance = logs.iter().map(|l| (l - centre).powi(2)).sum::<f64>() / (n - 1.0);
    Some(student::factor(n - 1.0)? * (variance / n).sqrt())
}

fn finite(value: f64, interval: Option<[f64; 2]>) -> Option<Mean> {
    let interval = interval.filter(|i| i.iter().all(|v| v.is_finite()));
    value.is_finite().then_some(Mean { value, interval })
}

#[cfg(test)]
fn near(got: f64, expected: f64) -> bool {
    (got - expected).abs() < 1e-6 * expected.abs()
}

#[test]
fn the_interval_is_that_of_the_tables() {
    // Logs 0, 1, 2: mean 1, deviation 1, t(2 degrees) = 4.302653.
    let m = mean(&[1.0, 1_f64.exp(), 2_f64.exp()]).unwrap();
    assert!(near(m.value, std::f64::consts::E));
    let [low, high] = m.interval.unwrap();
    let half = 4.302_652_729_911_275 / 3_f64.sqrt();
    assert!(near(low, (1.0 - half).exp()) && near(high, (1.0 + half).exp()), "{low} {high}");
    // Five runs: t(4 degrees) = 2.776445.
    let m = mean(&[98.0, 99.0, 100.0, 101.0, 102.0]).unwrap();
    let [low, high] = m.interval.unwrap();
    assert!((low - 98.046).abs() < 0.01 && (high - 101.973).abs() < 0.01, "{low} {high}");
}

#[test]
fn few_runs_have_a_mean_and_no_interval() {
    assert_eq!(mean(&[]), None);
    assert_eq!(mean(&[7.0]).map(|m| m.interval), Some(None));
    let two = mean(&[4.0, 9.0]).unwrap();
    assert!(near(two.value, 6.0) && two.interval.is_none());
}

#[test]
fn what_has_no_logarithm_never_becomes_a_nan() {
    assert_eq!(mean(&[0.0, 4.0, 8.0]), Some(Mean { value: 4.0, interval: None }));
    assert_eq!(mean(&[f64::NAN, 1.0]), None);
    assert_eq!(mean(&[f64::INFINITY]), None);
    assert_eq!(mean(&[-1.0]), None);
    assert_eq!(mean(&[5.0; 4]).and_then(|m| m.interval).map(|i| (i[1] - i[0]).abs() < 1e-9), Some(true));
}
