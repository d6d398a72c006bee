//! Confidence intervals of means, medians, percentiles and proportions, and the number of runs that they need.
//!
//! - [`mean`]: geometric mean over runs with a t-interval on logarithms, since runs vary by factors (Maricq et al., OSDI 2018).
//! - [`median_of_runs`]: median over runs with an interval from order statistics, without assuming a distribution.
//! - [`half_width`]: interval of a mean within one run, which accounts for the correlation of neighbours. It says nothing about the next
//!   run, whose level may differ.
//! - [`bootstrap_interval`]: interval of a difference of percentiles. It resamples whole runs, since a percentile varies by its operations
//!   and by its run (Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8).
//! - [`share_bounds`]: bounds of a proportion, such as the share of operations slower than a latency target.
//! - [`runs_for`] and [`best_run_seconds`]: the number and length of runs for a narrow interval (Kalibera and Jones, Rigorous
//!   Benchmarking in Reasonable Time, ISMM 2013).

use crate::sample::{self, median, variance};
use crate::series::{self, count_independent};
use model::figures::Estimate;
use model::payload::split_mix;
use statrs::distribution::{Beta, Binomial, ContinuousCDF, DiscreteCDF, Normal};

/// Minimum number of runs for an interval. With two runs an interval would reach nine standard
/// deviations to either side: t(1) / sqrt(2) = 12.7 / 1.41.
pub const FEWEST_RUNS: usize = 3;

/// A mean over runs with its 95 % interval, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Geometric mean; the arithmetic mean if a value is zero.
    pub value: f64,
    /// Two-sided 95 % interval; `None` with fewer than [`FEWEST_RUNS`] values, or if a value is zero.
    pub interval: Option<[f64; 2]>,
}

/// Returns the mean of one value per run; `None` without values, or if a value is negative or not finite.
pub fn mean(values: &[f64]) -> Option<Mean> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite() || *v < 0.0) {
        return None;
    }
    let n = values.len() as f64;
    if values.contains(&0.0) {
        // Zero has no logarithm, so use the arithmetic mean. For the rates of runs with equal windows, it is all operations divided by all
        // time.
        return finite_mean(values.iter().sum::<f64>() / n, None);
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let centre = sample::mean(&logs);
    let half = (values.len() >= FEWEST_RUNS).then(|| half_width_of_mean(variance(&logs), n)).flatten();
    finite_mean(centre.exp(), half.map(|h| [(centre - h).exp(), (centre + h).exp()]))
}

fn finite_mean(value: f64, interval: Option<[f64; 2]>) -> Option<Mean> {
    let interval = interval.filter(|i| i.iter().all(|v| v.is_finite()));
    value.is_finite().then_some(Mean { value, interval })
}

/// Minimum coverage of the interval of a median. With five runs, no interval covers more than 93.75 %.
const COVERAGE: f64 = 0.95;

/// Returns the median of one value per run, with its 95 % interval. `None` with fewer than six
/// runs, or if a value is not finite.
///
/// The true median is between the k-th smallest and the k-th largest run, unless fewer than k runs are on one side of it. Each run is on
/// either side with probability 1/2.
pub fn median_of_runs(values: &[f64]) -> Option<Estimate> {
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let rank = find_rank(values.len())?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let interval = [*sorted.get(rank - 1)?, *sorted.get(values.len() - rank)?];
    Some(Estimate { value: median(values), interval })
}

/// Returns the largest rank k, from 1, for which the k-th smallest and the k-th largest run enclose
/// the median with a probability of at least [`COVERAGE`]; `None` with fewer than six runs.
fn find_rank(runs: usize) -> Option<usize> {
    let coin = Binomial::new(0.5, runs as u64).ok()?;
    (1..=runs / 2).take_while(|k| 1.0 - 2.0 * coin.cdf(*k as u64 - 1) >= COVERAGE).last()
}

/// Number of batches of a series. Their means count as independent. In simulations of correlated series, the interval from five batches
/// contains the true mean more often than that from ten.
const BATCHES: usize = 5;

/// Returns half the width of the 95 % interval of the mean of a series. Takes the wider of two
/// intervals that account for the correlation of neighbours: by independent observations, and by
/// the means of batches. `None` with fewer than [`series::MIN_INDEPENDENT`] independent observations.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let independent = count_independent(values);
    // A rounding error of the estimate must not decide.
    if independent < series::MIN_INDEPENDENT - 1e-6 {
        return None;
    }
    let batches: Vec<f64> = (0..BATCHES).map(|i| sample::mean(batch(values, i))).collect();
    let by_observations = half_width_of_mean(variance(values), independent)?;
    Some(by_observations.max(half_width_of_mean(variance(&batches), BATCHES as f64)?))
}

fn batch(values: &[f64], index: usize) -> &[f64] {
    let edge = |i: usize| i * values.len() / BATCHES;
    values.get(edge(index)..edge(index + 1)).unwrap_or_default()
}

/// Returns half the width of the 95 % interval of a mean of `count` independent values with this
/// variance; `None` if `count` is at most 1.
fn half_width_of_mean(variance: f64, count: f64) -> Option<f64> {
    Some(sample::critical_value(count - 1.0)? * (variance / count).sqrt())
}

/// Minimum number of runs on each side for the bootstrap.
pub const FEWEST_FOR_BOOTSTRAP: usize = 6;
/// Number of times that both sides are resampled.
const RESAMPLES: usize = 2000;
/// Seed of the resamples. It is fixed, so that the same runs always give the same interval.
const SEED: u64 = 0x5eed;

/// Returns the bootstrap interval of a difference: the mean of `b` minus the mean of `a`. The
/// interval leaves the probability `tail` beyond each end. Each side has one value per run.
/// `degrees` are the degrees of freedom by Welch, or `None` if nothing varies: then both ends equal
/// the difference. Returns `None` if there is no quantile of Student's t for these degrees.
///
/// Plain quantiles of the resamples are too narrow for few runs, by a factor of sqrt(1 - 1/n) and by using the normal distribution
/// instead of Student's. Both are corrected (T. Hesterberg, "What Teachers Should Know About the Bootstrap", The American
/// Statistician 69, 2015, section 5.3: "expanded percentile interval").
pub fn bootstrap_interval(a: &[f64], b: &[f64], degrees: Option<f64>, tail: f64) -> Option<[f64; 2]> {
    let delta = sample::mean(b) - sample::mean(a);
    let Some(degrees) = degrees else { return Some([delta, delta]) };
    let standard_errors = sample::quantile(tail, degrees)?;
    let wider_tail = Normal::new(0.0, 1.0).ok()?.cdf(standard_errors);
    let mut state = SEED;
    let mut draws: Vec<f64> =
        (0..RESAMPLES).map(|_| delta + deviation(b, &mut state) - deviation(a, &mut state)).collect();
    draws.sort_unstable_by(f64::total_cmp);
    let at = (wider_tail * RESAMPLES as f64) as usize;
    Some([*draws.get(at)?, *draws.get(RESAMPLES - 1 - at)?])
}

/// Returns the deviation of a resampled mean from the mean of the runs. The factor sqrt(n / (n - 1)) corrects the spread, which resamples
/// of n runs underestimate.
fn deviation(runs: &[f64], state: &mut u64) -> f64 {
    let n = runs.len();
    let mut sum = 0.0;
    for _ in 0..n {
        *state = split_mix(*state);
        // The upper half of the product is a uniform index, and cheaper than a remainder.
        sum += runs[((u128::from(*state) * n as u128) >> 64) as usize];
    }
    (sum / n as f64 - sample::mean(runs)) * (n as f64 / (n as f64 - 1.0)).sqrt()
}

/// The operations of a run, and how many of them were slower than a latency target.
#[derive(Clone, Copy, Debug)]
pub struct RunCounts {
    /// Number of operations that took longer than the latency target.
    pub slow: u64,
    /// Number of completed operations.
    pub all: u64,
}

/// How much the share of slow operations varies between runs of the same load.
#[derive(Clone, Copy, Debug)]
pub struct ShareVariance {
    /// Variance of the logarithm of the odds: slow operations divided by all others.
    pub of_log_odds: f64,
    /// Degrees of freedom of the variance.
    pub degrees: f64,
}

/// Returns the variance of the share of slow operations, pooled over loads. Each load has the counts of its runs. The variance includes an
/// imaginary run with `unseen` times the usual odds, because the measured runs may have missed a part of the variation.
pub fn pooled_variance<'r>(loads: impl IntoIterator<Item = &'r [RunCounts]>, unseen: f64) -> ShareVariance {
    let (mut squares, mut degrees) = (unseen.ln().powi(2), 1.0);
    for load in loads {
        // Add half an operation to both counts, because zero has no logarithm.
        let log_odds =
            |r: &RunCounts| ((r.slow as f64 + 0.5) / (r.all.saturating_sub(r.slow) as f64 + 0.5)).ln();
        let logs: Vec<f64> = load.iter().filter(|r| r.all > 0).map(log_odds).collect();
        if logs.len() > 1 {
            squares += variance(&logs) * (logs.len() as f64 - 1.0);
            degrees += logs.len() as f64 - 1.0;
        }
    }
    ShareVariance { of_log_odds: squares / degrees, degrees }
}

/// Returns the lower and the upper bound of the true share of slow operations, each one-sided with this confidence; `None` without an
/// operation. With fewer runs than `fewest`, Student's bound assumes further runs, up to `fewest`, whose shares equal the mean so far. The
/// exact bound uses only the operations so far.
///
/// Two bounds are computed, and the wider one counts. Student's bound counts each run as one observation, since slow operations come in
/// bursts. It is a bound of the logarithm of the odds, because the share varies by factors. The exact bound (Clopper and Pearson, Biometrika
/// 1934) is the wider one if the runs agree by luck, for example because none has a slow operation.
pub fn share_bounds(
    runs: &[RunCounts],
    fewest: usize,
    variance: ShareVariance,
    confidence: f64,
) -> Option<(f64, f64)> {
    let shares: Vec<f64> = runs.iter().filter(|r| r.all > 0).map(|r| r.slow as f64 / r.all as f64).collect();
    let (mean, count) = (sample::mean(&shares), shares.len().max(fewest) as f64);
    let degrees = variance.degrees + count - shares.len() as f64;
    let deviation = (variance.of_log_odds * variance.degrees / degrees / count).sqrt();
    let factor = (sample::quantile(confidence, degrees)? * deviation).exp();
    let sum = |part: fn(&RunCounts) -> u64| runs.iter().map(part).fold(0, u64::saturating_add);
    let (low, high) = exact_bounds(sum(|r| r.slow), sum(|r| r.all), confidence);
    let with_odds = |factor: f64| mean * factor / (mean * factor + 1.0 - mean);
    (!shares.is_empty()).then(|| (low.min(with_odds(1.0 / factor)), high.max(with_odds(factor))))
}

/// Returns the exact lower and upper bound of the proportion `slow / all` (Clopper and Pearson),
/// each one-sided with this confidence.
pub fn exact_bounds(slow: u64, all: u64, confidence: f64) -> (f64, f64) {
    let (k, n) = (slow as f64, all as f64);
    let quantile = |a: f64, b: f64, q: f64| Beta::new(a, b).map(|beta| beta.inverse_cdf(q)).ok();
    let low = quantile(k, n - k + 1.0, 1.0 - confidence).unwrap_or(0.0);
    let high = quantile(k + 1.0, n - k, confidence).unwrap_or(1.0);
    (low, high)
}

/// Goal of recommended numbers of runs: half the width of the 95 % interval, relative to the mean.
pub const GOAL_HALF_WIDTH: f64 = 0.025;
/// Maximum number of runs that is recommended.
pub const MAX_RECOMMENDED_RUNS: u32 = 100;

/// Variability of the rates of runs, relative to their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variability {
    /// Variance of the runs' rates.
    pub variance: f64,
    /// The part of `variance` that arises within the runs and shrinks with their length.
    pub variance_within: f64,
    /// Length of a run's window in seconds.
    pub run_seconds: f64,
    /// Seconds that a run takes in addition to its window, for preparation, warm-up and rest.
    pub overhead_s: f64,
}

/// Returns the smallest number of runs with which the 95 % interval of the geometric mean reaches
/// at most the share `goal` to either side. `variance` is that of the logarithms of the rates.
/// `None` if [`MAX_RECOMMENDED_RUNS`] are not enough.
pub fn runs_for(variance: f64, goal: f64) -> Option<u32> {
    let half_width = |runs: u32| half_width_of_mean(variance, f64::from(runs));
    (FEWEST_RUNS as u32..=MAX_RECOMMENDED_RUNS)
        .find(|runs| half_width(*runs).is_some_and(|half| half <= goal.ln_1p()))
}

/// Returns the smallest number from `least` to `most` for which `is_enough` is true, by bisection;
/// `None` if `is_enough` is false for `most`. If `is_enough` is true for a number, it must be true
/// for every larger one.
pub fn find_smallest(least: u32, most: u32, is_enough: impl Fn(u32) -> bool) -> Option<u32> {
    if !is_enough(most) {
        return None;
    }
    let (mut low, mut high) = (least.min(most), most);
    while low < high {
        let middle = u32::midpoint(low, high);
        if is_enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// Returns the length of runs in seconds that gives the narrowest interval in a given total time. It is the square root of a quotient: the
/// overhead per run times the variance within a run of one second, divided by the variance between runs. `None` if the variance within the
/// runs explains all of the variance: then only the total time counts.
pub fn best_run_seconds(spread: &Variability) -> Option<f64> {
    let between = spread.variance - spread.variance_within;
    let best = (spread.overhead_s * spread.variance_within * spread.run_seconds / between).sqrt();
    (between > 0.0 && best.is_finite()).then_some(best)
}

#[cfg(test)]
use crate::comparison::SIGNIFICANCE;
#[cfg(test)]
use crate::series::generate_series;

#[cfg(test)]
fn runs_with(slow: &[u64], all: u64) -> Vec<RunCounts> {
    slow.iter().map(|slow| RunCounts { slow: *slow, all }).collect()
}

#[cfg(test)]
fn near(got: f64, expected: f64) -> bool {
    (got - expected).abs() < 1e-6 * expected.abs()
}

#[test]
fn the_interval_of_a_mean_matches_published_tables() {
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
fn a_mean_of_two_runs_has_no_interval() {
    assert_eq!(mean(&[]), None);
    assert_eq!(mean(&[7.0]).map(|m| m.interval), Some(None));
    let two = mean(&[4.0, 9.0]).unwrap();
    assert!(near(two.value, 6.0) && two.interval.is_none());
}

#[test]
fn values_without_a_logarithm_do_not_become_nan() {
    assert_eq!(mean(&[0.0, 4.0, 8.0]), Some(Mean { value: 4.0, interval: None }));
    assert_eq!(mean(&[f64::NAN, 1.0]), None);
    assert_eq!(mean(&[f64::INFINITY]), None);
    assert_eq!(mean(&[-1.0]), None);
    assert_eq!(mean(&[5.0; 4]).and_then(|m| m.interval).map(|i| (i[1] - i[0]).abs() < 1e-9), Some(true));
}

#[test]
fn ranks_match_published_tables() {
    for (runs, expected) in [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (30, 10)] {
        assert_eq!(find_rank(runs), Some(expected), "{runs}");
    }
    assert!((0..=5).all(|runs| find_rank(runs).is_none()));
}

#[test]
fn the_interval_of_a_median_needs_six_runs() {
    let nine = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0];
    assert_eq!(median_of_runs(&nine), Some(Estimate { value: 5.0, interval: [2.0, 8.0] }));
    assert_eq!((median_of_runs(&nine[..5]), median_of_runs(&[f64::NAN; 9])), (None, None));
}

#[test]
fn a_constant_series_has_zero_width_and_a_correlated_one_has_no_interval() {
    assert!(half_width(&[7.0; 10]).is_some_and(|h| h.abs() < 1e-12));
    assert_eq!((half_width(&[]), half_width(&[1.0; 9])), (None, None));
    let waves: Vec<f64> = (0..100).map(|i| 1.0 + 0.5 * (f64::from(i) * 0.09).sin()).collect();
    assert_eq!(half_width(&waves), None);
}

#[test]
fn correlation_of_neighbours_widens_the_interval() {
    let typical = |rho| {
        let halves = (0..60).filter_map(|seed| half_width(&generate_series(120, 0.05, rho, seed)));
        sample::mean(&halves.collect::<Vec<_>>())
    };
    let (alone, alike) = (typical(0.0), typical(0.5));
    // Without correlation, half of one interval is 1.98 standard errors, and the wider of two intervals is a little wider.
    assert!(alone > 0.009 && alone < 0.014, "{alone}");
    assert!(alike / alone > 1.4, "{alike} and {alone}");
}

#[test]
fn a_bootstrap_interval_contains_the_difference_and_is_reproducible() {
    let a = [1.00, 1.02, 0.98, 1.01, 0.99, 1.03];
    let b = a.map(|v| v + 0.5);
    let two_sided = |a: &[f64], b: &[f64], degrees| bootstrap_interval(a, b, degrees, SIGNIFICANCE / 2.0);
    let [low, high] = two_sided(&a, &b, Some(10.0)).unwrap();
    assert!(low < 0.5 && 0.5 < high && high - low < 0.1, "{low} {high}");
    assert_eq!(two_sided(&a, &b, Some(10.0)), Some([low, high]));
    assert_eq!(two_sided(&[1.0; 6], &[1.25; 6], None), Some([0.25, 0.25]));
    let [narrow_low, narrow_high] = bootstrap_interval(&a, &b, Some(10.0), SIGNIFICANCE).unwrap();
    assert!(low < narrow_low && narrow_high < high, "{narrow_low} {narrow_high}");
}

/// Bounds by the variance of these runs and of an imaginary run with 1.5 times their odds.
#[cfg(test)]
fn bounds_of(slow: &[u64], all: u64) -> Option<(f64, f64)> {
    let runs = runs_with(slow, all);
    share_bounds(&runs, 0, pooled_variance([&runs[..]], 1.5), 0.95)
}

#[test]
fn a_share_is_known_as_well_as_the_runs_agree() {
    let (low, high) = bounds_of(&[50, 52, 48], 10_000).unwrap();
    assert!(low > 0.003 && high < 0.01, "{low} {high}");
    let (low, high) = bounds_of(&[30, 90, 60], 10_000).unwrap();
    assert!(low < 0.0035 && high > 0.01, "runs that disagree decide nothing: {low} {high}");
}

#[test]
fn too_few_operations_decide_nothing() {
    let highest = |slow: &[u64], all| bounds_of(slow, all).map(|(_, high)| high);
    assert!(highest(&[0, 0, 0], 90) > Some(0.01), "270 without a slow one: the bound is 1.1 %");
    assert!(highest(&[0, 0, 0], 110).is_some_and(|high| high < 0.01));
    assert_eq!((bounds_of(&[], 10_000), bounds_of(&[0, 0], 0)), (None, None));
    assert!(bounds_of(&[110, 110], 110).is_some_and(|(low, _)| low > 0.9));
}

#[test]
fn a_run_that_differs_at_one_load_widens_the_bounds_of_all_loads() {
    let [steady, burst] = [&[80, 83, 78][..], &[40, 45, 210]].map(|slow| runs_with(slow, 10_000));
    let variance = |loads: &[&[RunCounts]]| pooled_variance(loads.iter().copied(), 2.0);
    let high = |variance| share_bounds(&steady, 0, variance, 0.99).unwrap().1;
    let (alone, with_burst) = (variance(&[&steady, &steady]), variance(&[&steady, &burst]));
    assert!((alone.degrees, with_burst.degrees) == (5.0, 5.0));
    assert!(high(alone) < 0.6 * high(with_burst), "{} {}", high(alone), high(with_burst));
    // Runs that are always slow miss any limit.
    let always = runs_with(&[10_000; 3], 10_000);
    assert!(share_bounds(&always, 0, variance(&[&always]), 0.99).is_some_and(|(low, _)| low > 0.9));
}

#[test]
fn the_exact_bounds_match_published_tables() {
    let (low, high) = exact_bounds(10, 100, 0.95);
    assert!((low - 0.0553).abs() < 1e-3 && (high - 0.1637).abs() < 1e-3, "{low} {high}");
}

#[test]
fn bisection_finds_the_threshold() {
    let from_threshold = |threshold: u32| find_smallest(3, 1000, |n| n >= threshold);
    assert_eq!([1, 3, 4, 517, 1000].map(from_threshold), [3, 3, 4, 517, 1000].map(Some));
    assert_eq!((from_threshold(1001), find_smallest(9, 5, |_| true)), (None, Some(5)));
}

#[test]
fn the_number_of_runs_matches_the_formula() {
    // 5 % from run to run: 19 runs are enough, because (t 0.05 / ln 1.025)^2 is 18.1 with t(18) = 2.101. 18 runs are not, because it is
    // 18.3 with t(17) = 2.110.
    assert_eq!(runs_for(0.05_f64.powi(2), 0.025), Some(19));
    assert_eq!(runs_for(0.0, 0.025), Some(3));
    assert_eq!(runs_for(0.01_f64.powi(2), 0.025), Some(4));
    assert_eq!((runs_for(0.25, 0.025), runs_for(f64::NAN, 0.025)), (None, None));
}

#[test]
fn the_best_length_grows_with_the_extra_time_per_run() {
    let spread = Variability { variance: 5e-4, variance_within: 1e-4, run_seconds: 4.0, overhead_s: 1.0 };
    // The variance within a window of one second is 4e-4, and the variance between runs is 4e-4: one second of overhead calls for one
    // second of window.
    assert!((best_run_seconds(&spread).unwrap() - 1.0).abs() < 1e-9);
    assert!((best_run_seconds(&Variability { overhead_s: 9.0, ..spread }).unwrap() - 3.0).abs() < 1e-9);
    assert_eq!(best_run_seconds(&Variability { variance: 1e-4, ..spread }), None);
}
