//! Series of rates within a run: correlation of neighbours, warm-up and drift.
//!
//! 1. [`Series`] has one rate per step of equal length.
//! 2. [`correlation_time`] estimates how many neighbouring values carry as much information as one independent value (Geyer's initial
//!    positive sequence).
//! 3. [`find_warm_up`] finds the warm-up with MSER (White 1997). [`compare_warm_ups`] decides whether the warm-up moves the mean of
//!    the runs.
//! 4. [`find_drift`] fits a straight line by least squares. Its error is widened by the correlation of neighbours; [`find_drift_over_runs`] takes
//!    each run as one observation.
//! 5. [`generate_series`] generates series with known parameters for tests.
//!
//! Steps between levels are in [`crate::change`].

use crate::sample::{self, mean, variance};
use model::payload::split_mix;

/// Minimum number of steps of a series that is analysed. With fewer there are never [`MIN_INDEPENDENT`] independent observations.
pub const FEWEST_STEPS: usize = 10;

/// Operations per second during the measured window of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Start of the first step in ns after the workers' start.
    pub from_ns: f64,
    /// Length of a step in ns.
    pub step_ns: f64,
    /// One rate per step.
    pub rates: Vec<f64>,
}

impl Series {
    /// Returns the length of the series in seconds.
    pub fn seconds(&self) -> f64 {
        self.step_ns * self.rates.len() as f64 / 1e9
    }

    /// Returns the start of a step in seconds after the first step.
    pub fn second_of(&self, step: usize) -> f64 {
        self.step_ns * step as f64 / 1e9
    }
}

/// A limit that depends on the length of a run, as a share: single seconds contain scheduler pauses that a minute averages out.
pub struct ShareByLength {
    /// The share for runs of a minute and longer.
    pub minute: f64,
    /// The share for runs of ten seconds or more, but less than a minute.
    pub ten_seconds: f64,
    /// The share for runs of less than ten seconds.
    pub shorter: f64,
}

impl ShareByLength {
    /// Returns the share for a run that is as long as its series.
    pub fn for_run(&self, series: &Series) -> f64 {
        self.for_seconds(series.seconds())
    }

    /// Returns the share for a length in seconds. A minute counts from 59.5 s and ten seconds from 9.9 s,
    /// because a window may end early.
    pub fn for_seconds(&self, seconds: f64) -> f64 {
        match seconds {
            s if s >= 59.5 => self.minute,
            s if s >= 9.9 => self.ten_seconds,
            _ => self.shorter,
        }
    }
}

/// Minimum number of independent observations for the interval of a mean, or for a drift. The literature on steady states uses
/// the same limit, n_eff < 10.
pub const MIN_INDEPENDENT: f64 = 10.0;
/// Number of standard errors above which the correlation of neighbours is significant.
const SURE_CORRELATION: f64 = 2.0;
/// Maximum correlation of neighbours that is assumed. Above it a series cannot be distinguished from a random walk.
const MAX_CORRELATION: f64 = 0.99;

/// Returns how many neighbouring values carry as much information as one independent value: from 1 to the number of values.
///
/// The result is 1 + 2 times the sum of the autocorrelations. The lags are added in pairs. The sum ends before the first pair that adds
/// nothing positive, because the later lags are only noise (Geyer, Practical Markov Chain Monte Carlo, Statistical Science 1992). Estimated
/// from n values, the correlation rho of neighbours is too low by (1 + 4 rho) / n (Marriott and Pope, Biometrika 1954). If rho is
/// significant, this bias is corrected, and the result is at least (1 + rho) / (1 - rho), the correlation time of an AR(1) process.
pub fn correlation_time(values: &[f64]) -> f64 {
    let centre = mean(values);
    let deviations: Vec<f64> = values.iter().map(|v| v - centre).collect();
    let power: f64 = deviations.iter().map(|o| o * o).sum();
    let n = values.len().max(1) as f64;
    // A variance this small is only rounding error: the values are equal.
    if power <= 1e-18 * centre * centre * n {
        return 1.0;
    }
    let rho = |lag: usize| {
        let product: f64 = deviations.iter().zip(deviations.iter().skip(lag)).map(|(a, b)| a * b).sum();
        product / power
    };
    let mut time = 1.0;
    let mut lag = 1;
    while lag + 1 < values.len() {
        let (one, other) = (rho(lag), rho(lag + 1));
        if one + other <= 0.0 {
            break;
        }
        time += 2.0 * (one + other);
        lag += 2;
    }
    let estimated = rho(1);
    if estimated > SURE_CORRELATION / n.sqrt() {
        let corrected = (estimated + (1.0 + 4.0 * estimated) / n).min(MAX_CORRELATION);
        time = time.max((1.0 + corrected) / (1.0 - corrected));
    }
    time.clamp(1.0, n)
}

/// Returns the number of independent observations that carry as much information as the series.
pub fn count_independent(values: &[f64]) -> f64 {
    values.len() as f64 / correlation_time(values)
}

/// Number of values per batch if the series is long enough: MSER-5 of the literature.
const MSER_BATCH: usize = 5;
/// Minimum number of batches. A series that is too short for this gets smaller batches.
const MSER_BATCHES: usize = 24;

/// Returns how many values at the start belong to the warm-up; `None` if MSER finds no steady part.
/// MSER keeps the part whose mean has the smallest error, so it misses steps in the middle of a
/// series.
pub fn find_warm_up(values: &[f64]) -> Option<usize> {
    let batch = (values.len() / MSER_BATCHES).clamp(1, MSER_BATCH);
    let means: Vec<f64> = values.chunks_exact(batch).map(mean).collect();
    let half = means.len() / 2;
    let squared_error = |cut: usize| {
        let kept = means.get(cut..).unwrap_or_default();
        variance(kept) * kept.len().saturating_sub(1) as f64 / (kept.len().max(1) as f64).powi(2)
    };
    let best = (0..=half).min_by(|a, b| squared_error(*a).total_cmp(&squared_error(*b)))?;
    (best == 0 || best < half).then_some(best * batch)
}

/// Minimum change of the mean, as a share, for which the warm-up matters.
pub const MATTERS_FROM: ShareByLength = ShareByLength { minute: 0.01, ten_seconds: 0.02, shorter: 0.05 };
/// Minimum change of the mean in standard errors of the mean without warm-up, so that noise at the start is not taken for a warm-up.
pub const SIGNIFICANT_ERRORS: f64 = 3.0;

/// The warm-ups of all runs that reach a steady part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUps {
    /// Mean rate of the runs with their warm-up.
    pub mean_with: f64,
    /// Mean rate of the runs without their warm-up.
    pub mean_without: f64,
    /// Mean length of the warm-up in seconds.
    pub seconds: f64,
    /// Longest warm-up in seconds.
    pub longest_s: f64,
    /// Whether most runs have a warm-up, and the two means differ significantly and by more than
    /// [`MATTERS_FROM`].
    pub matters: bool,
}

/// The warm-up of one run, and the mean rates of the run with and without it.
struct WarmUp {
    mean_with: f64,
    mean_without: f64,
    /// Variance of `mean_without`.
    variance_without: f64,
    seconds: f64,
}

/// Compares the means of runs with and without their warm-up; `None` if no run has a steady part.
pub fn compare_warm_ups(runs: &[Series]) -> Option<WarmUps> {
    let warm_ups: Vec<WarmUp> = runs.iter().filter_map(measure_warm_up).collect();
    if warm_ups.is_empty() {
        return None;
    }
    let average = |value: &dyn Fn(&WarmUp) -> f64| mean(&warm_ups.iter().map(value).collect::<Vec<_>>());
    let (mean_with, mean_without) = (average(&|w| w.mean_with), average(&|w| w.mean_without));
    let error = (average(&|w| w.variance_without) / warm_ups.len() as f64).sqrt();
    let runs_with_warm_up = warm_ups.iter().filter(|w| w.seconds > 0.0).count();
    let matters_from = runs.first().map_or(1.0, |c| MATTERS_FROM.for_run(c));
    Some(WarmUps {
        mean_with,
        mean_without,
        seconds: average(&|w| w.seconds),
        longest_s: warm_ups.iter().map(|w| w.seconds).fold(0.0, f64::max),
        matters: 2 * runs_with_warm_up > runs.len()
            && (mean_with / mean_without - 1.0).abs() > matters_from
            && (mean_with - mean_without).abs() > SIGNIFICANT_ERRORS * error,
    })
}

fn measure_warm_up(series: &Series) -> Option<WarmUp> {
    let end = find_warm_up(&series.rates)?;
    let rest = series.rates.get(end..)?;
    let mean_without = mean(rest);
    (mean_without > 0.0).then(|| WarmUp {
        mean_with: mean(&series.rates),
        mean_without,
        variance_without: variance(rest) * correlation_time(rest) / rest.len() as f64,
        seconds: series.second_of(end),
    })
}

/// Minimum number of runs for a line from run to run, because any two runs are on a line.
pub const FEWEST_RUNS: usize = 3;

/// A drift over a whole series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Change along the line from the first value to the last, as a share of the mean.
    pub share: f64,
    /// Half the width of the 95 % interval of `share`.
    pub half_width: f64,
}

impl Drift {
    /// Whether the whole interval is beyond `limit`, in either direction.
    pub fn exceeds(&self, limit: f64) -> bool {
        self.share.abs() - self.half_width > limit
    }

    /// Whether the whole interval is within `limit`.
    pub fn is_within(&self, limit: f64) -> bool {
        self.share.abs() + self.half_width <= limit
    }
}

/// A straight line through values at equal distances, by least squares.
pub struct Line {
    /// Mean of the values: the height of the line in the middle.
    pub centre: f64,
    /// Change from one value to the next.
    pub slope: f64,
    /// Sum of the squared distances of the positions from the middle.
    spread: f64,
    /// Distances of the values from the line.
    residuals: Vec<f64>,
}

impl Line {
    /// Fits a line to rates. `None` with fewer than two values, or if their mean is not positive.
    pub fn fit_rates(values: &[f64]) -> Option<Self> {
        Self::fit(values).filter(|line| line.centre > 0.0)
    }

    /// Fits a line to any values; `None` with fewer than two values.
    pub(crate) fn fit(values: &[f64]) -> Option<Self> {
        let centre = mean(values);
        let middle = (values.len() as f64 - 1.0) / 2.0;
        let spread: f64 = (0..values.len()).map(|i| (i as f64 - middle).powi(2)).sum();
        if spread <= 0.0 {
            return None;
        }
        let from_middle = |i: usize| i as f64 - middle;
        let slope =
            values.iter().enumerate().map(|(i, v)| from_middle(i) * (v - centre)).sum::<f64>() / spread;
        let residuals = values.iter().enumerate().map(|(i, v)| v - centre - slope * from_middle(i)).collect();
        Some(Self { centre, slope, spread, residuals })
    }

    /// Returns the number of residuals divided by their correlation time.
    pub fn count_independent(&self) -> f64 {
        let n = self.residuals.len() as f64;
        // The residuals of a constant are rounding errors, whose correlation means nothing.
        let time = if self.power() <= 1e-18 * self.centre * self.centre * n {
            1.0
        } else {
            correlation_time(&self.residuals)
        };
        n / time
    }

    /// Returns the drift over all values, which carry as much information as `independent` independent
    /// values. `None` if `independent` is at most 2.
    fn drift(&self, independent: f64) -> Option<Drift> {
        // Divide the sum of the squared residuals by the degrees of freedom of only the independent residuals. This widens the variance
        // of the slope by the correlation time.
        let degrees = independent - 2.0;
        let error = self.error_of_slope(degrees);
        let to_share = (self.residuals.len() as f64 - 1.0) / self.centre;
        Some(Drift {
            share: self.slope * to_share,
            half_width: sample::critical_value(degrees)? * error * to_share,
        })
    }

    /// Returns the standard error of the slope for these degrees of freedom.
    pub(crate) fn error_of_slope(&self, degrees: f64) -> f64 {
        (self.power() / degrees / self.spread).sqrt()
    }

    fn power(&self) -> f64 {
        self.residuals.iter().map(|r| r * r).sum()
    }
}

/// Returns the drift of a series; `None` with fewer than [`MIN_INDEPENDENT`] independent residuals, or if the mean is not positive.
pub fn find_drift(values: &[f64]) -> Option<Drift> {
    let line = Line::fit_rates(values)?;
    let independent = line.count_independent();
    if independent < MIN_INDEPENDENT { None } else { line.drift(independent) }
}

/// Returns the drift from the first run to the last, with one rate per run; `None` with fewer than [`FEWEST_RUNS`], or if the mean is not
/// positive.
pub fn find_drift_over_runs(rates: &[f64]) -> Option<Drift> {
    if rates.len() < FEWEST_RUNS { None } else { Line::fit_rates(rates)?.drift(rates.len() as f64) }
}

/// Generates uniform and normal random numbers from a seed (Box and Muller).
pub struct Noise(
    /// The seed at first, then the state after each number.
    pub u64,
);

impl Noise {
    /// Returns the next random number, uniform above 0 and up to 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 = split_mix(self.0);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Returns the next normal number, with mean 0 and standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Generates `n` values of an AR(1) series around 1 with this standard deviation and the
/// correlation `rho` of neighbours. Values below 0.01 become 0.01.
pub fn generate_series(n: usize, deviation: f64, rho: f64, seed: u64) -> Vec<f64> {
    let mut noise = Noise(seed.wrapping_mul(0x9e37).wrapping_add(1));
    let mut last = noise.normal();
    let step = (1.0 - rho * rho).sqrt();
    let mut next = || {
        last = rho * last + step * noise.normal();
        (1.0 + deviation * last).max(0.01)
    };
    (0..n).map(|_| next()).collect()
}

#[cfg(test)]
fn sloped(n: usize, over_all: f64, deviation: f64, rho: f64, seed: u64) -> Vec<f64> {
    let noise = generate_series(n, deviation, rho, seed);
    noise.iter().enumerate().map(|(i, v)| v + over_all * (i as f64 / (n as f64 - 1.0) - 0.5)).collect()
}

#[cfg(test)]
fn mean_correlation_time(rho: f64) -> f64 {
    mean(&(0..40).map(|seed| correlation_time(&generate_series(2000, 0.1, rho, seed))).collect::<Vec<_>>())
}

#[test]
fn the_correlation_time_of_an_ar1_process_matches_theory() {
    // (1 + rho) / (1 - rho).
    for (rho, truth) in [(0.0, 1.0), (0.5, 3.0), (0.8, 9.0)] {
        let got = mean_correlation_time(rho);
        assert!((got / truth - 1.0).abs() < 0.15, "rho {rho}: {got} against {truth}");
    }
}

#[test]
fn constant_and_empty_series_do_not_divide_by_zero() {
    assert!((correlation_time(&[5.0; 30]) - 1.0).abs() < 1e-12);
    assert!((count_independent(&[5.0; 30]) - 30.0).abs() < 1e-12);
    assert!(correlation_time(&[]) >= 1.0 && count_independent(&[]) <= 0.0);
}

#[test]
fn the_interval_of_a_drift_covers_the_true_drift() {
    for (truth, rho, least) in [(0.0, 0.0, 185), (-0.3, 0.0, 185), (0.2, 0.5, 175)] {
        let covers = |seed| {
            find_drift(&sloped(120, truth, 0.1, rho, seed))
                .is_some_and(|d| (d.share - truth).abs() <= d.half_width)
        };
        let covered = (0..200).filter(|s| covers(*s)).count();
        assert!(covered >= least, "{truth} {rho}: {covered} of 200");
    }
}

#[test]
fn a_slope_is_significant_and_flat_noise_is_not() {
    let surely = |truth, rho| {
        (0..200)
            .filter(|s| find_drift(&sloped(100, truth, 0.05, rho, *s)).is_some_and(|d| d.exceeds(0.1)))
            .count()
    };
    assert!(surely(-0.3, 0.0) >= 195 && surely(0.3, 0.3) >= 190);
    assert!(surely(0.0, 0.0) == 0 && surely(0.0, 0.8) <= 1 && surely(0.08, 0.0) <= 1);
}

#[test]
fn a_fall_over_five_runs_is_significant_and_two_runs_have_no_drift() {
    let falling = find_drift_over_runs(&[100.0, 98.1, 96.0, 94.0, 92.1]).unwrap();
    assert!(falling.exceeds(0.05) && !falling.exceeds(0.09), "{falling:?}");
    assert!(find_drift_over_runs(&[100.0, 100.4, 99.8, 100.1, 100.0]).is_some_and(|d| d.is_within(0.05)));
    let wild = find_drift_over_runs(&[100.0, 80.0, 120.0, 90.0, 115.0]).unwrap();
    assert!(!wild.exceeds(0.05) && !wild.is_within(0.05), "{wild:?}");
    assert_eq!((find_drift_over_runs(&[1.0, 2.0]), find_drift_over_runs(&[0.0; 5])), (None, None));
}

#[test]
fn a_constant_series_has_no_drift() {
    assert!(find_drift(&[7.0; 10]).is_some_and(|d| d.is_within(0.01)));
    assert_eq!(find_drift(&[]), None);
    assert_eq!(find_drift(&[0.0; 30]), None);
}

#[test]
fn a_warm_up_is_cut_off() {
    let mut good = 0;
    for seed in 0..40 {
        let mut warm = generate_series(120, 0.03, 0.0, seed);
        warm.iter_mut().enumerate().for_each(|(i, v)| *v *= 1.0 + (-(i as f64) / 10.0).exp());
        let with_warm_up = mean(&warm) - 1.0;
        let Some(cut) = find_warm_up(&warm) else { continue };
        let rest = mean(&warm[cut..]) - 1.0;
        assert!(with_warm_up > 0.06 && rest.abs() < 0.02, "seed {seed}: {with_warm_up} and {rest}");
        good += 1;
    }
    assert!(good >= 36, "{good} of 40");
}

#[test]
fn a_falling_series_has_no_steady_part_and_a_constant_one_is_steady() {
    let never: Vec<f64> = (0..120).map(|i| 100.0 - f64::from(i) / 2.0).collect();
    assert_eq!(find_warm_up(&never), None);
    assert_eq!(find_warm_up(&[3.0; 50]), Some(0));
    assert_eq!(find_warm_up(&[]), Some(0));
}
