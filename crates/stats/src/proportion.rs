//! Whether a proportion is below a limit, such as the share of operations that take longer than a latency target.
//!
//! The answer is yes, no, or unknown. Two one-sided bounds decide, the wider one: Student's over the shares of the runs, and that
//! of Clopper and Pearson over all operations.

use crate::student;
use statrs::distribution::{Beta, ContinuousCDF};

/// The operations of a run, and those beyond the target.
pub struct Part {
    /// Operations that took longer than the target.
    pub beyond: u64,
    /// Operations that completed.
    pub all: u64,
}

/// Whether the true share is at most `allowed`, with a one-sided `confidence` for either answer; `None` if the runs do not show it, or
/// there are fewer than two.
///
/// Student's bound takes a run as the unit, since slow operations come in bursts. The exact bound (Clopper and Pearson, Biometrika
/// 1934) is wider if runs without a single slow operation agree by luck.
pub fn is_within(parts: &[Part], allowed: f64, confidence: f64) -> Option<bool> {
    let shares: Vec<f64> =
        parts.iter().filter(|p| p.all > 0).map(|p| p.beyond as f64 / p.all as f64).collect();
    let runs = shares.len() as f64;
    let factor = student::quantile(confidence, runs - 1.0)?;
    let mean = shares.iter().sum::<f64>() / runs;
    let squares: f64 = shares.iter().map(|s| (s - mean).powi(2)).sum();
    let half = factor * (squares / (runs - 1.0) / runs).sqrt();
    let beyond: u64 = parts.iter().map(|p| p.beyond).fold(0, u64::saturating_add);
    let all: u64 = parts.iter().map(|p| p.all).fold(0, u64::saturating_add);
    let (low, high) = exact(beyond, all, confidence);
    match () {
        () if high.max(mean + half) <= allowed => Some(true),
        () if low.min(mean - half) > allowed => Some(false),
        () => None,
    }
}

/// The exact bounds of the proportion `beyond / all` (Clopper and Pearson), each one-sided with this confidence.
pub fn exact(beyond: u64, all: u64, confidence: f64) -> (f64, f64) {
    let (k, n) = (beyond as f64, all as f64);
    let quantile = |a: f64, b: f64, q: f64| Beta::new(a, b).map(|beta| beta.inverse_cdf(q)).ok();
    let low = quantile(k, n - k + 1.0, 1.0 - confidence).unwrap_or(0.0);
    let high = quantile(k + 1.0, n - k, confidence).unwrap_or(1.0);
    (low, high)
}

#[cfg(test)]
fn parts(beyond: &[u64], all: u64) -> Vec<Part> {
    beyond.iter().map(|beyond| Part { beyond: *beyond, all }).collect()
}

#[test]
fn clear_shares_have_an_answer_and_near_ones_have_none() {
    assert_eq!(is_within(&parts(&[50, 52, 48], 10_000), 0.01, 0.95), Some(true));
    assert_eq!(is_within(&parts(&[150, 152, 148], 10_000), 0.01, 0.95), Some(false));
    assert_eq!(is_within(&parts(&[99, 101, 97], 10_000), 0.01, 0.95), None);
    assert_eq!(is_within(&parts(&[10, 150, 60], 10_000), 0.01, 0.95), None, "runs that disagree do not tell");
}

#[test]
fn too_little_tells_nothing() {
    assert_eq!(
        is_within(&parts(&[0, 0, 0], 90), 0.01, 0.95),
        None,
        "270 without a slow one: the bound is 1.1 %"
    );
    assert_eq!(is_within(&parts(&[0, 0, 0], 110), 0.01, 0.95), Some(true));
    for none in [&[][..], &[0], &[9_999]] {
        assert_eq!(is_within(&parts(none, 10_000), 0.01, 0.95), None);
    }
    assert_eq!(is_within(&parts(&[0, 0], 0), 0.01, 0.95), None);
    assert_eq!(is_within(&parts(&[110, 110], 110), 0.01, 0.95), Some(false));
}

#[test]
fn the_exact_bounds_are_those_of_the_tables() {
    let (low, high) = exact(10, 100, 0.95);
    assert!((low - 0.0553).abs() < 1e-3 && (high - 0.1637).abs() < 1e-3, "{low} {high}");
}
