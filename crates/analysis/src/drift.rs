//! How much a series rises or falls from its beginning to its end, and how sure that is.
//!
//! For: a straight line by least squares, its error widened by the correlation of neighbours. Not for: steps (`change`).

use crate::independent::correlation_time;
use crate::series::mean;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Both tails outside a 95 % interval leave this much below the upper end.
const UPPER: f64 = 0.975;
/// Independent observations below which no line is fitted: rule n_eff < 10 of the literature on steady states.
pub(crate) const FEWEST: f64 = 10.0;

/// A drift over a whole series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drift {
    /// Change from the first value to the last on the line, as a share of the mean.
    pub share: f64,
    /// Half the 95 % interval of it.
    pub half: f64,
}

impl Drift {
    /// Whether it is surely larger than a share, either way.
    pub(crate) fn exceeds(&self, limit: f64) -> bool {
        self.share.abs() - self.half > limit
    }

    /// Whether it is surely no larger.
    pub(crate) fn is_within(&self, limit: f64) -> bool {
        self.share.abs() + self.half <= limit
    }
}

/// The drift of a series; `None` where it holds fewer than [`FEWEST`] independent observations around the line.
pub(crate) fn drift(values: &[f64]) -> Option<Drift> {
    let n = values.len() as f64;
    let centre = mean(values);
    let middle = (n - 1.0) / 2.0;
    let spread: f64 = (0..values.len()).map(|i| (i as f64 - middle).powi(2)).sum();
    if centre <= 0.0 || spread <= 0.0 {
        return None;
    }
    let slope =
        values.iter().enumerate().map(|(i, v)| (i as f64 - middle) * (v - centre)).sum::<f64>() / spread;
    let line = |i: usize| centre + slope * (i as f64 - middle);
    let rest: Vec<f64> = values.iter().enumerate().map(|(i, v)| v - line(i)).collect();
    let power: f64 = rest.iter().map(|r| r * r).sum();
    // What is left of a constant is rounding; it has no correlation worth the name.
    let time = if power <= 1e-18 * centre * centre * n { 1.0 } else { correlation_time(&rest) };
    let independent = n / time;
    if independent < FEWEST {
        return None;
    }
    // The variance of a slope is that of the rest by the spread; both the rest's degrees of freedom and the weight of each
    // value shrink by the correlation time, of which one cancels.
    let error = (power / (independent - 2.0) / spread).sqrt();
    let t = StudentsT::new(0.0, 1.0, independent - 2.0).ok()?.inverse_cdf(UPPER);
    let of_mean = (n - 1.0) / centre;
    Some(Drift { share: slope * of_mean, half: t * error * of_mean })
}

#[cfg(test)]
use crate::series::known::flat;

#[cfg(test)]
fn sloped(n: usize, over_all: f64, deviation: f64, rho: f64, seed: u64) -> Vec<f64> {
    let noise = flat(n, deviation, rho, seed);
    noise.iter().enumerate().map(|(i, v)| v + over_all * (i as f64 / (n as f64 - 1.0) - 0.5)).collect()
}

#[test]
fn the_interval_covers_the_truth() {
    for (truth, rho, least) in [(0.0, 0.0, 185), (-0.3, 0.0, 185), (0.2, 0.5, 175)] {
        let covers = |seed| {
            drift(&sloped(120, truth, 0.1, rho, seed)).is_some_and(|d| (d.share - truth).abs() <= d.half)
        };
        let covered = (0..200).filter(|s| covers(*s)).count();
        assert!(covered >= least, "{truth} {rho}: {covered} of 200");
    }
}

#[test]
fn a_slope_is_proven_and_flat_noise_is_not_one() {
    let surely = |truth, rho| {
        (0..200).filter(|s| drift(&sloped(100, truth, 0.05, rho, *s)).is_some_and(|d| d.exceeds(0.1))).count()
    };
    assert!(surely(-0.3, 0.0) >= 195 && surely(0.3, 0.3) >= 190);
    assert!(surely(0.0, 0.0) == 0 && surely(0.0, 0.8) <= 1 && surely(0.08, 0.0) <= 1);
}

#[test]
fn a_constant_is_within_any_limit_and_nothing_is_unknown() {
    assert!(drift(&[7.0; 10]).is_some_and(|d| d.is_within(0.01)));
    assert_eq!(drift(&[]), None);
    assert_eq!(drift(&[0.0; 30]), None);
}
