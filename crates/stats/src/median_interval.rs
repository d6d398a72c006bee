//! The median of several runs with an interval that supposes no distribution.
//!
//! For: order statistics. The median lies between the k-th smallest and the k-th largest of n runs unless fewer than k fall on
//! one side of it, and each falls there like a coin. Not for: means (`interval`).

use crate::sample::median;
use model::figures::Estimate;
use statrs::distribution::{Binomial, DiscreteCDF};

/// What the interval must hold of all cases. Five runs reach 93.75 % at most.
const LEVEL: f64 = 0.95;

/// The median of one value per run with its interval; `None` with fewer than six, or with one that is no number.
pub fn of_runs(values: &[f64]) -> Option<Estimate> {
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let rank = rank(values.len())?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let interval = [*sorted.get(rank - 1)?, *sorted.get(values.len() - rank)?];
    Some(Estimate { value: median(values), interval })
}

/// The largest rank from either end whose values still enclose the median often enough; counted from 1.
fn rank(runs: usize) -> Option<usize> {
    let coin = Binomial::new(0.5, runs as u64).ok()?;
    (1..=runs / 2).take_while(|k| 1.0 - 2.0 * coin.cdf(*k as u64 - 1) >= LEVEL).last()
}

#[test]
fn ranks_are_those_of_the_tables() {
    for (runs, expected) in [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (30, 10)] {
        assert_eq!(rank(runs), Some(expected), "{runs}");
    }
    assert!((0..=5).all(|runs| rank(runs).is_none()));
}

#[test]
fn the_interval_is_made_of_runs_and_needs_six() {
    let nine = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0];
    assert_eq!(of_runs(&nine), Some(Estimate { value: 5.0, interval: [2.0, 8.0] }));
    assert_eq!((of_runs(&nine[..5]), of_runs(&[f64::NAN; 9])), (None, None));
}
