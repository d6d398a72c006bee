//! Distributions: think times of closed loops, and arrivals of open loops. Of those that fit, the simplest is chosen.
//!
//! 1. [`fit_think_law`] tries a fixed time, an exponential and a lognormal distribution, then quantiles.
//! 2. [`fit_bursts`] chooses arrivals from the rate and the index of dispersion of counts, IDC(t) = Var N(t) / E N(t). For every interval
//!    length t it is 1 for independent arrivals, and 2 b - 1 for geometric batches of mean b. If there are periods without arrivals, it
//!    rises with t: for an interrupted Poisson process of rate l, on for a share p of the time and changing at rate r, IDC(t) = 1 + 2 l
//!    (1 - p) / (p r) g(r t), g(x) = 1 - (1 - exp(-x)) / x (Fischer and Meier-Hellstern, 1993).
//!
//! Distances are those of Kolmogorov and Smirnov.

use model::histogram::Histogram;
use model::job::{Arrivals, Quantile, Think, ThinkLaw};
use model::spec::number::MAX_TIME_NS;

/// Maximum distance (Kolmogorov-Smirnov) for accepting a distribution with one or two parameters.
const MAX_DISTANCE: f64 = 0.03;
/// Half width of the interval in which times count as equal, as a share of the mean.
const EQUAL_HALF_WIDTH: f64 = 0.1;
/// Half width of a histogram bucket, as a share of its middle.
const BUCKET_HALF_WIDTH: f64 = 1.0 / 128.0;

const QUANTILE_PERCENTAGES: [f64; 17] =
    [0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 100.0];
/// Quantile of the pauses that counts as the overhead of the program: any program spends this time between a completion and its next
/// operation, and the fitted job spends it too.
const OVERHEAD_QUANTILE: f64 = 0.01;
/// Maximum overhead of a program that is subtracted from the pauses.
const MAX_OVERHEAD_NS: u64 = 10_000;

/// A distribution and its distance from the observation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Law {
    pub(super) think: Think,
    /// Maximum difference between the fitted and the observed distribution function; `None` for a fixed time.
    pub(super) distance: Option<f64>,
    /// Overhead that was subtracted from the pauses, in ns.
    pub(super) overhead_ns: u64,
}

/// Fits the pauses between a completion and the next operation as the driver saw them, minus the
/// overhead of the program; `None` without pauses.
pub(super) fn fit_observed_pauses(observed: &Histogram) -> Option<Law> {
    let overhead_ns = observed.quantile_ns(OVERHEAD_QUANTILE)?.min(MAX_OVERHEAD_NS);
    let mut own = Histogram::new();
    for (ns, count) in observed.counts() {
        (0..count).for_each(|_| own.record(ns.saturating_sub(overhead_ns)));
    }
    Some(Law { overhead_ns, ..fit_think_law(&own)? })
}

/// Returns the simplest distribution that is near the observed one; `None` without pauses.
pub(super) fn fit_think_law(observed: &Histogram) -> Option<Law> {
    let (mean, median) = (observed.mean_ns()?, observed.quantile_ns(0.5)?);
    let mean_ns = (mean.round() as u64).max(1);
    let [low, high] = [0.05, 0.95].map(|q| observed.quantile_ns(q).unwrap_or(0) as f64);
    if low >= mean * (1.0 - EQUAL_HALF_WIDTH) && high <= mean * (1.0 + EQUAL_HALF_WIDTH) {
        return Some(Law { think: Think::fixed(mean_ns), distance: None, overhead_ns: 0 });
    }
    let law = |law: ThinkLaw, at: &dyn Fn(f64) -> f64| {
        let think = Think { mean_ns, law };
        Law { think, distance: Some(distance(observed, at, 0.0)), overhead_ns: 0 }
    };
    let exponential = law(ThinkLaw::Exponential, &|ns| 1.0 - (-ns / mean).exp());
    let median_ns = median.max(1);
    let sigma = (2.0 * (mean / median_ns as f64).ln()).sqrt();
    let lognormal = law(ThinkLaw::Lognormal { median_ns }, &|ns| {
        if ns <= 0.0 { 0.0 } else { normal((ns / median_ns as f64).ln() / sigma) }
    });
    let is_lognormal = sigma.is_finite() && sigma > 0.0;
    let near = |law: &Law| law.distance.is_some_and(|distance| distance <= MAX_DISTANCE);
    if near(&exponential) {
        return Some(exponential);
    }
    if is_lognormal && near(&lognormal) {
        return Some(lognormal);
    }
    Some(quantiles(observed, mean))
}

/// Fits quantiles. The last quantile is chosen so that the mean equals the observed mean: a straight line to the longest pause would
/// give a larger mean.
fn quantiles(observed: &Histogram, mean: f64) -> Law {
    let at = |percent: f64| Quantile { percent, ns: observed.quantile_ns(percent / 100.0).unwrap_or(0) };
    let mut all: Vec<Quantile> = QUANTILE_PERCENTAGES.into_iter().map(at).collect();
    if let (Some(first), Some(least)) = (all.first_mut(), observed.min_ns()) {
        first.ns = least;
    }
    for at in 1..all.len() {
        all[at].ns = all[at].ns.max(all[at - 1].ns);
    }
    let last = all.len() - 1;
    let (longest_ns, floor_ns) = (all[last].ns, all[last - 1].ns);
    all[last].ns = floor_ns;
    let missing = mean - Think::quantiles(all.clone()).mean_ns as f64;
    let share = (all[last].percent - all[last - 1].percent) / 100.0;
    let stretched_ns = floor_ns.saturating_add((2.0 * missing.max(0.0) / share) as u64);
    all[last].ns = stretched_ns.min(longest_ns.max(floor_ns).saturating_mul(2));
    let share = |ns: f64| {
        let next = all.partition_point(|q| q.ns as f64 <= ns);
        match (next.checked_sub(1).and_then(|at| all.get(at)), all.get(next)) {
            (Some(low), Some(high)) => {
                let part = (ns - low.ns as f64) / (high.ns as f64 - low.ns as f64);
                (low.percent + (high.percent - low.percent) * part) / 100.0
            }
            (None, _) => 0.0,
            (_, None) => 1.0,
        }
    };
    let distance = Some(distance(observed, &share, 0.0));
    Law { think: Think::quantiles(all), distance, overhead_ns: 0 }
}

/// Returns the maximum difference between the observation and the distribution function `at`. Times below
/// `from_ns` count as one time.
pub(super) fn distance(observed: &Histogram, at: &dyn Fn(f64) -> f64, from_ns: f64) -> f64 {
    let all = observed.count().max(1) as f64;
    let (mut before, mut worst) = (0.0, 0.0_f64);
    for (ns, count) in observed.counts() {
        let after = before + count as f64 / all;
        if (ns as f64) < from_ns {
            before = after;
            continue;
        }
        // The times within a bucket are unknown, so count only the difference that exists wherever in the bucket they are.
        let [low, high] =
            [1.0 - BUCKET_HALF_WIDTH, 1.0 + BUCKET_HALF_WIDTH].map(|factor| at(ns as f64 * factor));
        worst = worst.max(low - before).max((before - high).max(after - high));
        before = after;
    }
    worst
}

/// The normal distribution function (Abramowitz and Stegun 26.2.17, error below 1e-7).
fn normal(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let sum = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let upper = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if x < 0.0 { upper } else { 1.0 - upper }
}

/// The two interval lengths, in seconds, over which the dispersion is computed.
const LENGTHS_S: [f64; 2] = [0.01, 0.1];
/// Maximum dispersion of independent arrivals, in 10 ms and in 100 ms.
const MAX_INDEPENDENT_IDC: [f64; 2] = [1.5, 2.0];
/// Maximum dispersion of even arrivals.
const MAX_EVEN_IDC: f64 = 0.3;
/// Arrivals can be on-off only if the dispersion grows by more than this factor from the short to the long interval.
/// The gaps then decide.
const MIN_CONFIRMED_GROWTH: f64 = 1.02;
/// The same factor if there are no gaps that could decide.
const MIN_GROWTH: f64 = 1.1;
/// Arrivals with a gap below this number of ns count as simultaneous.
const SIMULTANEOUS_NS: f64 = 20_000.0;
/// The mean number of changes between on and off in the short interval is searched in this range.
const CHANGES_RANGE: [f64; 2] = [0.02, 50.0];

/// Arrivals and their fit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fit {
    pub(super) arrivals: Arrivals,
    /// Maximum difference between the fitted and the observed distribution function of the gaps; `None` without gaps.
    pub(super) distance: Option<f64>,
    /// Index of dispersion of the fitted arrivals in 10 ms and in 100 ms.
    pub(super) idc: [f64; 2],
}

/// Fits arrivals to a rate per second, to gaps, and to the dispersion in 10 ms and in 100 ms.
pub(super) fn fit_bursts(rate: f64, gaps: &Histogram, idc: [Option<f64>; 2]) -> Fit {
    let fit = match idc {
        [Some(short), long] => {
            prefer_independent(choose(rate, gaps, short, long.unwrap_or(short)), rate, gaps)
        }
        _ => Fit::new(Arrivals::Poisson, rate, gaps),
    };
    let even = Fit::new(Arrivals::Constant, rate, gaps);
    let is_even = idc[0].is_some_and(|short| short < MAX_EVEN_IDC) && even.distance < fit.distance;
    if is_even { even } else { fit }
}

fn choose(rate: f64, gaps: &Histogram, short: f64, long: f64) -> Fit {
    if short <= MAX_INDEPENDENT_IDC[0] && long <= MAX_INDEPENDENT_IDC[1] {
        return Fit::new(Arrivals::Poisson, rate, gaps);
    }
    let batches = Fit::new(Arrivals::Batch { mean: f64::midpoint(short, 1.0).max(1.0) }, rate, gaps);
    if long <= short * MIN_CONFIRMED_GROWTH {
        return batches;
    }
    let times_off = Fit::new(times_off(rate, short, long), rate, gaps);
    let is_nearer = match (times_off.distance, batches.distance) {
        (Some(off), Some(batches)) => off < batches,
        _ => long > short * MIN_GROWTH,
    };
    if is_nearer { times_off } else { batches }
}

/// Returns independent arrivals if the fitted bursts do not match the gaps better.
fn prefer_independent(fit: Fit, rate: f64, gaps: &Histogram) -> Fit {
    let plain = Fit::new(Arrivals::Poisson, rate, gaps);
    match (plain.distance, fit.distance) {
        (Some(plainly), Some(distance)) if plainly <= distance => plain,
        _ => fit,
    }
}

fn times_off(rate: f64, short: f64, long: f64) -> Arrivals {
    // The growth of g from the short to the long interval falls from 10 to 1 as the rate of changes rises.
    let growth = (long - 1.0) / (short - 1.0).max(0.05);
    let [mut low, mut high] = CHANGES_RANGE;
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        let grows = growth_factor(10.0 * middle) / growth_factor(middle);
        if grows > growth { low = middle } else { high = middle }
    }
    let changes = (low * high).sqrt() / LENGTHS_S[0];
    // If no arrivals match both dispersions, match that of the long interval, because it determines queues.
    let amount = (long - 1.0) / growth_factor(changes * LENGTHS_S[1]);
    let on = 1.0 / (1.0 + amount * changes / (2.0 * rate));
    let ns = |seconds: f64| ((seconds * 1e9).round() as u64).clamp(1, MAX_TIME_NS);
    Arrivals::OnOff { on_ns: ns(1.0 / (changes * (1.0 - on))), off_ns: ns(1.0 / (changes * on)) }
}

/// How the variance of a count grows with the length of the interval: g(x) = 1 - (1 - exp(-x)) / x.
fn growth_factor(x: f64) -> f64 {
    1.0 - (1.0 - (-x).exp()) / x
}

impl Fit {
    fn new(arrivals: Arrivals, rate: f64, gaps: &Histogram) -> Self {
        let share: Box<dyn Fn(f64) -> f64> = match arrivals {
            Arrivals::Poisson => Box::new(move |ns| 1.0 - (-rate * ns / 1e9).exp()),
            Arrivals::Constant => Box::new(move |ns| f64::from(u8::from(ns >= 1e9 / rate * 0.999))),
            Arrivals::Batch { mean } => Box::new(move |ns| 1.0 - (-rate / mean * ns / 1e9).exp() / mean),
            Arrivals::OnOff { on_ns, off_ns } => {
                let (ends, begins) = (1e9 / on_ns as f64, 1e9 / off_ns as f64);
                let fast = rate * (ends + begins) / begins;
                let (sum, root) =
                    (fast + begins + ends, ((fast + begins + ends).powi(2) - 4.0 * fast * begins).sqrt());
                let (first, second) = (f64::midpoint(sum, root), f64::midpoint(sum, -root));
                let share = (fast - second) / (first - second);
                Box::new(move |ns| {
                    let s = ns / 1e9;
                    1.0 - share * (-first * s).exp() - (1.0 - share) * (-second * s).exp()
                })
            }
        };
        // Gaps that no device distinguishes count as simultaneous if they are far below the mean.
        let from_ns = SIMULTANEOUS_NS.min(0.1 * 1e9 / rate);
        let distance = (gaps.count() > 0).then(|| distance(gaps, &share, from_ns));
        Self { arrivals, distance, idc: LENGTHS_S.map(|length| dispersion(arrivals, rate, length)) }
    }
}

/// Returns the theoretical dispersion of arrivals in intervals of `length`.
fn dispersion(arrivals: Arrivals, rate: f64, length: f64) -> f64 {
    match arrivals {
        Arrivals::Poisson => 1.0,
        Arrivals::Constant => 0.0,
        Arrivals::Batch { mean } => 2.0 * mean - 1.0,
        Arrivals::OnOff { on_ns, off_ns } => {
            let (on_ns, off_ns) = (on_ns as f64, off_ns as f64);
            let (changes, on) = (1e9 / on_ns + 1e9 / off_ns, on_ns / (on_ns + off_ns));
            1.0 + 2.0 * rate * (1.0 - on) / (on * changes) * growth_factor(changes * length)
        }
    }
}

/// Returns the dispersion of a random share of the arrivals.
pub(super) fn dispersion_of_share(idc: Option<f64>, share: f64) -> Option<f64> {
    idc.map(|idc| 1.0 + share * (idc - 1.0))
}

#[cfg(test)]
fn observed(quantile: impl Fn(f64) -> f64) -> Histogram {
    let mut observed = Histogram::new();
    (0..100_000).for_each(|at| observed.record(quantile((f64::from(at) + 0.5) / 1e5) as u64));
    observed
}

#[test]
fn each_distribution_is_recovered() {
    assert_eq!(fit_think_law(&Histogram::new()), None);
    assert_eq!(fit_think_law(&observed(|_| 50_000.0)).map(|law| law.think), Some(Think::fixed(50_000)));
    let exponential = fit_think_law(&observed(|u| -80_000.0 * (1.0 - u).ln())).map(|law| law.think);
    let Some(Think { mean_ns, law: ThinkLaw::Exponential }) = exponential else { panic!("{exponential:?}") };
    assert!(mean_ns.abs_diff(80_000) < 800, "{mean_ns}");
    // Two kinds of pauses, which no simple distribution fits.
    let two =
        fit_think_law(&observed(|u| if u < 0.7 { 10_000.0 + 1000.0 * u } else { 900_000.0 + 1000.0 * u }));
    let Some(Law { think, distance: Some(distance), .. }) = two else { panic!("{two:?}") };
    assert!(matches!(think.law, ThinkLaw::Quantiles(_)) && distance < 0.11, "{think:?} {distance}");
    let mean = 0.7 * 10_350.0 + 0.3 * 900_850.0;
    assert!((think.mean_ns as f64 / mean - 1.0).abs() < 0.2, "{think:?}");
    assert!((normal(1.0) - 0.841_344_7).abs() < 1e-6 && (normal(-1.96) - 0.024_997_9).abs() < 1e-6);
}

#[test]
fn arrivals_are_recovered_by_their_dispersion() {
    let none = Histogram::new();
    assert_eq!(fit_bursts(100.0, &none, [Some(1.02), Some(0.97)]).arrivals, Arrivals::Poisson);
    assert_eq!(fit_bursts(100.0, &none, [None, None]).arrivals, Arrivals::Poisson);
    let batches = fit_bursts(100.0, &none, [Some(7.0), Some(7.1)]).arrivals;
    assert!(matches!(batches, Arrivals::Batch { mean } if (mean - 4.0).abs() < 1e-9), "{batches:?}");
    for (on_ns, off_ns) in [(5_000_000, 15_000_000), (2_000_000, 200_000_000), (40_000_000, 60_000_000)] {
        let truth = Arrivals::OnOff { on_ns, off_ns };
        let idc = LENGTHS_S.map(|length| Some(dispersion(truth, 2000.0, length)));
        let fit = fit_bursts(2000.0, &none, idc);
        let Arrivals::OnOff { on_ns: on, off_ns: off } = fit.arrivals else { panic!("{fit:?}") };
        let near = |a: u64, b: u64| (a as f64 / b as f64 - 1.0).abs() < 0.02;
        assert!(near(on, on_ns) && near(off, off_ns), "{on_ns} {off_ns}: {fit:?}");
    }
    assert_eq!(dispersion_of_share(Some(9.0), 0.5), Some(5.0));
}
