//! The interval of a mean inside one run: what the run says about itself.
//!
//! For: the wider of two intervals that both allow for the correlation of neighbours. Not for: the next run, which may be on
//! another level altogether (`interval`).

use crate::autocorrelation::{self, observations};
use crate::sample::{self, variance};
use crate::student;

/// Batches whose means are taken as independent. In simulations of correlated series five of them cover the truth more often
/// than ten.
const BATCHES: usize = 5;

/// Half the 95 % interval of the mean of a series; `None` where it holds fewer than [`autocorrelation::FEWEST`] independent observations.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let independent = observations(values);
    // A course of ten equal stretches is ten, whatever rounding says.
    if independent < autocorrelation::FEWEST - 1e-6 {
        return None;
    }
    let batches: Vec<f64> = (0..BATCHES).map(|i| sample::mean(batch(values, i))).collect();
    Some(of_mean(variance(values), independent)?.max(of_mean(variance(&batches), BATCHES as f64)?))
}

fn batch(values: &[f64], index: usize) -> &[f64] {
    let edge = |i: usize| i * values.len() / BATCHES;
    values.get(edge(index)..edge(index + 1)).unwrap_or_default()
}

/// Half the interval of a mean of so many values.
fn of_mean(variance: f64, count: f64) -> Option<f64> {
    Some(student::factor(count - 1.0)? * (variance / count).sqrt())
}

#[cfg(test)]
use crate::known::flat;

#[test]
fn a_constant_has_no_width_and_few_or_slow_values_have_no_interval() {
    assert!(half_width(&[7.0; 10]).is_some_and(|h| h.abs() < 1e-12));
    assert_eq!((half_width(&[]), half_width(&[1.0; 9])), (None, None));
    let waves: Vec<f64> = (0..100).map(|i| 1.0 + 0.5 * (f64::from(i) * 0.09).sin()).collect();
    assert_eq!(half_width(&waves), None);
}

#[test]
fn what_neighbours_share_makes_it_wider() {
    let typical = |rho| {
        let halves = (0..60).filter_map(|seed| half_width(&flat(120, 0.05, rho, seed)));
        sample::mean(&halves.collect::<Vec<_>>())
    };
    let (alone, alike) = (typical(0.0), typical(0.5));
    // 1.98 standard errors at least; the wider of two is wider.
    assert!(alone > 0.009 && alone < 0.014, "{alone}");
    assert!(alike / alone > 1.4, "{alike} and {alone}");
}
