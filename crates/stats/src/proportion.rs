//! Whether a proportion is below a limit: the share of operations that take longer than a latency target.
//!
//! For: a question with a yes, a no and a "cannot tell", each at 95 %. Not for: quantiles themselves (the histogram), nor how
//! many operations a quantile needs to be printed.

use crate::student;
use statrs::distribution::{Beta, ContinuousCDF};

/// One-sided confidence of either answer.
const CONFIDENCE: f64 = 0.95;

/// Of how many operations of a run how many were beyond the target.
pub struct Part {
    /// Operations that took longer than the target.
    pub beyond: u64,
    /// Operations that completed.
    pub all: u64,
}

/// Whether the true share is at most `allowed`; `None` where runs do not tell, or there are no two.
///
/// Two bounds, the wider one counts: Student's over the shares of the runs, since slow operations come in bursts and a run is
/// what repeats; and that of Clopper and Pearson (Biometrika 1934) over all operations, since runs without a single slow one
/// agree by luck.
pub fn is_within(parts: &[Part], allowed: f64) -> Option<bool> {
    let shares: Vec<f64> =
        parts.iter().filter(|p| p.all > 0).map(|p| p.beyond as f64 / p.all as f64).collect();
    let runs = shares.len() as f64;
    let factor = student::quantile(CONFIDENCE, runs - 1.0)?;
    let mean = shares.iter().sum::<f64>() / runs;
    let squares: f64 = shares.iter().map(|s| (s - mean).powi(2)).sum();
    let half = factor * (squares / (runs - 1.0) / runs).sqrt();
    let beyond: u64 = parts.iter().map(|p| p.beyond).fold(0, u64::saturating_add);
    let all: u64 = parts.iter().map(|p| p.all).fold(0, u64::saturating_add);
    let (low, high) = exact(beyond, all);
    match () {
        () if high.max(mean + half) <= allowed => Some(true),
        () if low.min(mean - half) > allowed => Some(false),
        () => None,
    }
}

/// The exact bounds of the proportion `beyond / all` (Clopper and Pearson), each one-sided at 95 %.
pub fn exact(beyond: u64, all: u64) -> (f64, f64) {
    let (k, n) = (beyond as f64, all as f64);
    let quantile = |a: f64, b: f64, q: f64| Beta::new(a, b).map(|beta| beta.inverse_cdf(q)).ok();
    let low = quantile(k, n - k + 1.0, 1.0 - CONFIDENCE).unwrap_or(0.0);
    let high = quantile(k + 1.0, n - k, CONFIDENCE).unwrap_or(1.0);
    (low, high)
}

#[cfg(test)]
fn parts(beyond: &[u64], all: u64) -> Vec<Part> {
    beyond.iter().map(|beyond| Part { beyond: *beyond, all }).collect()
}

#[test]
fn clear_shares_have_an_answer_and_near_ones_have_none() {
    assert_eq!(is_within(&parts(&[50, 52, 48], 10_000), 0.01), Some(true));
    assert_eq!(is_within(&parts(&[150, 152, 148], 10_000), 0.01), Some(false));
    assert_eq!(is_within(&parts(&[99, 101, 97], 10_000), 0.01), None);
    assert_eq!(is_within(&parts(&[10, 150, 60], 10_000), 0.01), None, "runs that disagree do not tell");
}

#[test]
fn too_little_tells_nothing() {
    assert_eq!(is_within(&parts(&[0, 0, 0], 90), 0.01), None, "270 without a slow one: the bound is 1.1 %");
    assert_eq!(is_within(&parts(&[0, 0, 0], 110), 0.01), Some(true));
    for none in [&[][..], &[0], &[9_999]] {
        assert_eq!(is_within(&parts(none, 10_000), 0.01), None);
    }
    assert_eq!(is_within(&parts(&[0, 0], 0), 0.01), None);
    assert_eq!(is_within(&parts(&[110, 110], 110), 0.01), Some(false));
}

#[test]
fn the_exact_bounds_are_those_of_the_tables() {
    let (low, high) = exact(10, 100);
    assert!((low - 0.0553).abs() < 1e-3 && (high - 0.1637).abs() < 1e-3, "{low} {high}");
}
