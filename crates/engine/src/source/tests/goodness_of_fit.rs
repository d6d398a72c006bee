//! Assertions of goodness of fit for random draws.

use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::ops::Range;

/// Fewest expected draws per class for the chi-squared distribution.
const FEWEST: f64 = 10.0;

/// Fails if counts do not fit weights (Pearson's chi-squared test, one false alarm in 10^5).
pub(crate) fn assert_fit(seen: &[u64], weights: &[f64]) {
    assert_eq!(seen.len(), weights.len());
    let (draws, sum) = (seen.iter().sum::<u64>() as f64, weights.iter().sum::<f64>());
    let mut classes: Vec<(f64, f64)> = vec![(0.0, 0.0)];
    for (s, w) in seen.iter().zip(weights) {
        assert!(*w > 0.0 || *s == 0, "{s} draws with probability 0");
        if classes.last().is_some_and(|c| c.1 >= FEWEST) {
            classes.push((0.0, 0.0));
        }
        if let Some(class) = classes.last_mut() {
            *class = (class.0 + *s as f64, class.1 + w / sum * draws);
        }
    }
    // The rest of the tail joins the previous class.
    if let Some(rest) = classes.pop_if(|c| c.1 < FEWEST) {
        match classes.last_mut() {
            Some(class) => *class = (class.0 + rest.0, class.1 + rest.1),
            None => classes.push(rest),
        }
    }
    if classes.len() < 2 {
        return;
    }
    let chi: f64 = classes.iter().map(|(s, e)| (s - e).powi(2) / e).sum();
    let freedom = (classes.len() - 1) as f64;
    let limit = ChiSquared::new(freedom).unwrap_or_else(|e| panic!("{e}")).inverse_cdf(1.0 - 1e-5);
    assert!(chi < limit, "chi-squared {chi} of {freedom} degrees of freedom; {limit} is the limit");
}

/// Fails if counts are not uniform.
pub(crate) fn assert_even(seen: &[u64]) {
    assert_fit(seen, &vec![1.0; seen.len()]);
}

/// Returns ranges that cover `0..count`, single numbers first, then increasingly wide ones.
pub(crate) fn bins(count: u64) -> Vec<Range<u64>> {
    let mut bins = Vec::new();
    let mut start = 0;
    while start < count {
        let end = (start + (start / 8).max(1)).min(count);
        bins.push(start..end);
        start = end;
    }
    bins
}

/// Fails if a share of draws differs from `expected` by more than five standard deviations.
pub(crate) fn assert_share(hits: usize, draws: usize, expected: f64) {
    let deviation = (expected * (1.0 - expected) * draws as f64).sqrt();
    let off = hits as f64 - expected * draws as f64;
    assert!(off.abs() <= 5.0 * deviation, "{hits} of {draws}, where {expected} was expected");
}
