//! How much a series rises or falls from its beginning to its end, and how sure that is.
//!
//! For: a straight line by least squares, and its error: widened by the correlation of neighbours within a run, with each run
//! as one observation over several. Not for: steps (`change`).

use crate::autocorrelation::{FEWEST, correlation_time};
use crate::sample::mean;
use crate::student;

/// Runs that a line from run to run takes: two lie on one, whatever they are.
pub const FEWEST_RUNS: usize = 3;

/// A drift over a whole series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Change from the first value to the last on the line, as a share of the mean.
    pub share: f64,
    /// Half the 95 % interval of it.
    pub half: f64,
}

impl Drift {
    /// Whether it is surely larger than a share, either way.
    pub fn exceeds(&self, limit: f64) -> bool {
        self.share.abs() - self.half > limit
    }

    /// Whether it is surely no larger.
    pub fn is_within(&self, limit: f64) -> bool {
        self.share.abs() + self.half <= limit
    }
}

/// A straight line through values at equal distances, by least squares.
pub struct Line {
    /// Mean of the values, which the line has in their middle.
    pub centre: f64,
    /// Change from one value to the next.
    pub slope: f64,
    /// Sum of the squared distances of the places from their middle.
    spread: f64,
    /// What is left of the values without the line.
    rest: Vec<f64>,
}

impl Line {
    /// `None` through fewer than two values, or around a mean that is not positive.
    pub fn through(values: &[f64]) -> Option<Self> {
        let centre = mean(values);
        let middle = (values.len() as f64 - 1.0) / 2.0;
        let spread: f64 = (0..values.len()).map(|i| (i as f64 - middle).powi(2)).sum();
        if centre <= 0.0 || spread <= 0.0 {
            return None;
        }
        let off = |i: usize| i as f64 - middle;
        let slope = values.iter().enumerate().map(|(i, v)| off(i) * (v - centre)).sum::<f64>() / spread;
        let rest = values.iter().enumerate().map(|(i, v)| v - centre - slope * off(i)).collect();
        Some(Self { centre, slope, spread, rest })
    }

    /// Independent observations around the line.
    pub fn independent(&self) -> f64 {
        let n = self.rest.len() as f64;
        // What is left of a constant is rounding; it has no correlation worth the name.
        let time = if self.power() <= 1e-18 * self.centre * self.centre * n {
            1.0
        } else {
            correlation_time(&self.rest)
        };
        n / time
    }

    /// The change over all values, where so many of them are independent.
    fn drift(&self, independent: f64) -> Option<Drift> {
        // The variance of a slope is that of the rest by the spread; both the rest's degrees of freedom and the weight of
        // each value shrink by the correlation time, of which one cancels.
        let degrees = independent - 2.0;
        let error = (self.power() / degrees / self.spread).sqrt();
        let of_mean = (self.rest.len() as f64 - 1.0) / self.centre;
        Some(Drift { share: self.slope * of_mean, half: student::factor(degrees)? * error * of_mean })
    }

    fn power(&self) -> f64 {
        self.rest.iter().map(|r| r * r).sum()
    }
}

/// The drift of a series; `None` where it holds fewer than [`FEWEST`] independent observations around the line.
pub fn drift(values: &[f64]) -> Option<Drift> {
    let line = Line::through(values)?;
    let independent = line.independent();
    if independent < FEWEST { None } else { line.drift(independent) }
}

/// The drift from the first run to the last, each run one value; `None` with fewer than [`FEWEST_RUNS`].
pub fn over_runs(rates: &[f64]) -> Option<Drift> {
    if rates.len() < FEWEST_RUNS { None } else { Line::through(rates)?.drift(rates.len() as f64) }
}

#[cfg(test)]
use crate::known::flat;

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
fn runs_that_fall_surely_do_and_two_tell_nothing() {
    let falling = over_runs(&[100.0, 98.1, 96.0, 94.0, 92.1]).unwrap();
    assert!(falling.exceeds(0.05) && !falling.exceeds(0.09), "{falling:?}");
    assert!(over_runs(&[100.0, 100.4, 99.8, 100.1, 100.0]).is_some_and(|d| d.is_within(0.05)));
    let wild = over_runs(&[100.0, 80.0, 120.0, 90.0, 115.0]).unwrap();
    assert!(!wild.exceeds(0.05) && !wild.is_within(0.05), "{wild:?}");
    assert_eq!((over_runs(&[1.0, 2.0]), over_runs(&[0.0; 5])), (None, None));
}

#[test]
fn a_constant_is_within_any_limit_and_nothing_is_unknown() {
    assert!(drift(&[7.0; 10]).is_some_and(|d| d.is_within(0.01)));
    assert_eq!(drift(&[]), None);
    assert_eq!(drift(&[0.0; 30]), None);
}
