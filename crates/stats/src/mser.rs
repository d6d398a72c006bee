//! How much of the beginning of a series is warm-up.
//!
//! For: MSER (White 1997), the rule that keeps what makes the mean surest. Not for: steps in the middle, which it overlooks
//! by design (`change`).

use crate::sample::{mean, variance};

/// Values that are averaged before the rule is applied, where there are enough: MSER-5 of the literature.
const BATCH: usize = 5;
/// Batches that the rule wants to choose among; a short series gets smaller ones.
const BATCHES: usize = 24;

/// How many values at the beginning to leave out; `None` where the rule finds no steady part.
pub fn warm_up(values: &[f64]) -> Option<usize> {
    let batch = (values.len() / BATCHES).clamp(1, BATCH);
    let means: Vec<f64> = values.chunks_exact(batch).map(mean).collect();
    let half = means.len() / 2;
    let error = |cut: usize| {
        let kept = means.get(cut..).unwrap_or_default();
        variance(kept) * kept.len().saturating_sub(1) as f64 / (kept.len().max(1) as f64).powi(2)
    };
    let best = (0..=half).min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
    (best == 0 || best < half).then_some(best * batch)
}

#[cfg(test)]
use crate::known::flat;

#[test]
fn a_warm_up_is_cut_and_a_flat_series_hardly() {
    let mut good = 0;
    for seed in 0..40 {
        let mut warm = flat(120, 0.03, 0.0, seed);
        warm.iter_mut().enumerate().for_each(|(i, v)| *v *= 1.0 + (-(i as f64) / 10.0).exp());
        let whole = mean(&warm) - 1.0;
        let Some(cut) = warm_up(&warm) else { continue };
        let rest = mean(&warm[cut..]) - 1.0;
        assert!(whole > 0.06 && rest.abs() < 0.02, "seed {seed}: {whole} and {rest}");
        good += 1;
    }
    assert!(good >= 36, "{good} of 40");
}

#[test]
fn a_series_that_never_settles_has_no_steady_part_and_a_constant_one_is_all_steady() {
    let never: Vec<f64> = (0..120).map(|i| 100.0 - f64::from(i) / 2.0).collect();
    assert_eq!(warm_up(&never), None);
    assert_eq!(warm_up(&[3.0; 50]), Some(0));
    assert_eq!(warm_up(&[]), Some(0));
}
