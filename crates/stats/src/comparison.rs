//! Comparisons of two or more sets of runs.
//!
//! - [`Shift`]: difference of two means of logarithms with Welch's interval, the p-value for a difference beyond a margin, the smallest
//!   detectable difference and the runs needed (B. L. Welch, "The generalization of Student's problem when several different population
//!   variances are involved", Biometrika 34, 1947).
//! - [`Ratio`]: ratio of the rates of two sets of runs. It counts as above or below a limit only if its whole 95 % interval is above or
//!   below the limit.
//! - [`hodges_lehmann`], [`mann_whitney`], [`exact_rank_test`]: shift of Hodges and Lehmann and
//!   rank test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947). They assume no
//!   distribution, and an outlier weighs no more than any other value. [`compare_times`] applies
//!   [`hodges_lehmann`] and [`mann_whitney`] to the logarithms of times.
//! - [`adjust_with_holm`]: Holm's step-down correction for several comparisons (Scandinavian Journal of Statistics 6, 1979).
//! - [`gaps`]: comparisons with the best (J. C. Hsu, "Multiple Comparisons", 1996, chapter 4).

use crate::intervals::{FEWEST_RUNS, find_smallest};
use crate::sample::{self, mean, variance};
use statrs::distribution::{ContinuousCDF, Normal};
use std::collections::BTreeMap;

/// Allowed probability of error: of both tails of a 95 % interval together, or of the one tail of a 95 % bound.
pub const SIGNIFICANCE: f64 = 0.05;
/// Share of the comparisons that should find a true difference.
pub const POWER: f64 = 0.80;
/// Required power for each end of an interval. If each end is inside the tolerance in 90 % of the comparisons, both ends
/// are inside it in at least 80 % ([`POWER`]).
const POWER_OF_AN_END: f64 = 0.90;
/// Maximum number of runs on each side that is reported as needed.
pub const MAX_NEEDED_RUNS: u32 = 1000;
/// Minimum number of runs on each side for a significant rank test. The smallest p of 4 against 4 is 2.9 %.
const MIN_RUNS_FOR_RANKS: u32 = 4;

/// Difference of the means of logarithms, B minus A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The difference of the means.
    pub delta: f64,
    /// Standard error of the difference.
    standard_error: f64,
    /// Degrees of freedom by Welch and Satterthwaite; NaN if nothing varies.
    degrees: f64,
    /// Variance of a single run, averaged over both sides.
    variance: f64,
}

impl Shift {
    /// Compares two lists of logarithms; `None` if a list has fewer than three, or if the result is not finite.
    pub fn new(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.len().min(b.len()) < FEWEST_RUNS {
            return None;
        }
        let (var_a, var_b) = (variance(a), variance(b));
        let parts = [(var_a / a.len() as f64, a.len()), (var_b / b.len() as f64, b.len())];
        let sum: f64 = parts.iter().map(|(v, _)| v).sum();
        let degrees = sum * sum / parts.iter().map(|(v, n)| v * v / (*n as f64 - 1.0)).sum::<f64>();
        let shift = Self {
            delta: mean(b) - mean(a),
            standard_error: sum.sqrt(),
            degrees,
            variance: f64::midpoint(var_a, var_b),
        };
        (shift.delta.is_finite() && shift.standard_error.is_finite()).then_some(shift)
    }

    /// Returns the 95 % interval of the difference.
    pub fn interval(&self) -> [f64; 2] {
        self.interval_at(SIGNIFICANCE / 2.0)
    }

    /// Returns the interval of the difference that leaves the probability `tail` beyond each end.
    pub fn interval_at(&self, tail: f64) -> [f64; 2] {
        let half = self.distance_at(1.0 - tail);
        [self.delta - half, self.delta + half]
    }

    /// Returns the quantile `level` of Student's t, multiplied by the standard error; 0 if nothing varies.
    fn distance_at(&self, level: f64) -> f64 {
        if self.standard_error > 0.0 { quantile(self.degrees, level) * self.standard_error } else { 0.0 }
    }

    /// Returns the degrees of freedom; `None` if nothing varies.
    pub fn degrees(&self) -> Option<f64> {
        self.degrees.is_finite().then_some(self.degrees)
    }

    /// Returns the two-sided p of the observed difference if the true difference equals the margin;
    /// 1 if the observed difference is not beyond the margin. The p is below 5 % exactly if the whole
    /// 95 % interval is beyond the margin.
    pub fn p_beyond(&self, margin: f64) -> f64 {
        let beyond = self.delta.abs() - margin;
        if beyond <= 0.0 {
            return 1.0;
        }
        if self.standard_error <= 0.0 {
            return 0.0;
        }
        sample::probability_above(beyond / self.standard_error, self.degrees)
            .map_or(1.0, |one_tail| 2.0 * one_tail)
    }

    /// Returns the smallest true difference that [`POWER`] of such comparisons would find, corrected for the number of comparisons. The
    /// difference includes the margin, because the whole interval must be beyond the margin.
    pub fn smallest_detectable(&self, margin: f64, comparisons: usize) -> f64 {
        margin + self.distance_at(upper_level(comparisons)) + self.distance_at(POWER)
    }

    /// Returns the number of runs on each side with which [`POWER`] of such comparisons would be
    /// decided, assuming the observed difference and variance. `None` above [`MAX_NEEDED_RUNS`], or if
    /// no number of runs would decide.
    ///
    /// A comparison is decided if its interval is beyond the margin or within the tolerance. If both can be reached, returns the smaller
    /// number of runs. Only the number for the margin is corrected for the number of comparisons.
    pub fn runs_needed(&self, [margin, tolerance]: [f64; 2], comparisons: usize) -> Option<u32> {
        let (beyond, within) = (self.delta.abs() - margin, tolerance - self.delta.abs());
        let runs_to_differ = || self.runs_for(beyond, upper_level(comparisons), POWER, MIN_RUNS_FOR_RANKS);
        let runs_to_be_same = || self.runs_for(within, upper_level(1), POWER_OF_AN_END, FEWEST_RUNS as u32);
        let ways = [(beyond > 0.0).then(runs_to_differ), (within > 0.0).then(runs_to_be_same)];
        ways.into_iter().flatten().flatten().min()
    }

    /// Returns the number of runs on each side that would halve the 95 % interval, assuming the observed variance; `None` above
    /// [`MAX_NEEDED_RUNS`], or if nothing varies.
    pub fn runs_to_halve(&self) -> Option<u32> {
        let half = self.distance_at(upper_level(1));
        let narrow = |runs: u32| {
            let error = (2.0 * self.variance / f64::from(runs)).sqrt();
            2.0 * quantile(2.0 * f64::from(runs) - 2.0, upper_level(1)) * error <= half
        };
        (half > 0.0).then(|| find_smallest(FEWEST_RUNS as u32, MAX_NEEDED_RUNS, narrow)).flatten()
    }

    /// Returns the number of runs on each side with which [`POWER`] of such comparisons would decide whether the difference is above or
    /// below a limit. Assumes a one-sided bound that errs with the probability `tail`, and the observed difference and variance. `None`
    /// above [`MAX_NEEDED_RUNS`].
    pub fn runs_to_decide(&self, limit: f64, tail: f64) -> Option<u32> {
        self.runs_for((self.delta - limit).abs(), 1.0 - tail, POWER, MIN_RUNS_FOR_RANKS)
    }

    /// Returns the smallest number of runs on each side, at least `least`, with which the sum of the quantiles `level` and `power` of
    /// Student's t, times the standard error, is at most `gap`. `None` above [`MAX_NEEDED_RUNS`].
    fn runs_for(&self, gap: f64, level: f64, power: f64, least: u32) -> Option<u32> {
        let is_enough = |runs: u32| {
            let degrees = 2.0 * f64::from(runs) - 2.0;
            let error = (2.0 * self.variance / f64::from(runs)).sqrt();
            (quantile(degrees, level) + quantile(degrees, power)) * error <= gap
        };
        find_smallest(least, MAX_NEEDED_RUNS, is_enough)
    }
}

/// Returns the quantile of the upper end of a two-sided interval for one of several comparisons (Bonferroni, the first step of Holm).
fn upper_level(comparisons: usize) -> f64 {
    1.0 - SIGNIFICANCE / 2.0 / comparisons.max(1) as f64
}

fn quantile(degrees: f64, level: f64) -> f64 {
    sample::quantile(level, degrees).unwrap_or(f64::INFINITY)
}

/// Ratio of the rates of two sets of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Ratio of the geometric means.
    pub value: f64,
    /// 95 % interval of the ratio; `None` with fewer than three runs on a side.
    pub interval: Option<[f64; 2]>,
}

impl Ratio {
    /// Divides the mean of `rates` by the mean of `base`; each has one rate per run. `None` if a list is empty or a rate is not positive.
    pub fn from_rates(rates: &[f64], base: &[f64]) -> Option<Self> {
        let logs = |rates: &[f64]| -> Option<Vec<f64>> {
            let all = rates.iter().all(|r| r.is_finite() && *r > 0.0) && !rates.is_empty();
            all.then(|| rates.iter().map(|r| r.ln()).collect())
        };
        let (rates, base) = (logs(rates)?, logs(base)?);
        let interval = Shift::new(&base, &rates).map(|shift| shift.interval().map(f64::exp));
        Some(Self { value: (mean(&rates) - mean(&base)).exp(), interval })
    }

    /// Whether the whole interval is above `limit`; false without an interval.
    pub fn is_above(&self, limit: f64) -> bool {
        self.interval.is_some_and(|[low, _]| low > limit)
    }

    /// Whether the whole interval is below `limit`; false without an interval.
    pub fn is_below(&self, limit: f64) -> bool {
        self.interval.is_some_and(|[_, high]| high < limit)
    }

    /// Whether the whole interval is between 1 / `within` and `within`; false without an interval.
    pub fn is_one(&self, within: f64) -> bool {
        self.is_above(1.0 / within) && self.is_below(within)
    }
}

/// Minimum number of measured times in each list. With about eight or more, the normal approximation of the test is good.
pub const MIN_TIMES: usize = 8;
/// Maximum number of values used per list. The work grows with the number of pairs, so a forged list must not take forever.
const MAX_VALUES: usize = 256;

/// The comparison of two lists of times, `b` with `a`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimesComparison {
    /// Factor from `a` to `b`: the median ratio of all pairs.
    pub ratio: f64,
    /// The p of the rank test: the probability of ranks at least this uneven if both lists have the same distribution.
    pub p: f64,
}

/// Compares two lists of times in ns; `None` if a list has fewer than [`MIN_TIMES`]. Uses only the
/// first 256 of a longer list.
pub fn compare_times(a: &[u64], b: &[u64]) -> Option<TimesComparison> {
    let (a, b) = (logs(a)?, logs(b)?);
    Some(TimesComparison { ratio: hodges_lehmann(&a, &b)?.exp(), p: mann_whitney(&a, &b) })
}

/// Returns the shift of Hodges and Lehmann from `a` to `b`: the median difference of all pairs.
/// Uses only the first 256 values of a longer list. `None` if a list is empty.
pub fn hodges_lehmann(a: &[f64], b: &[f64]) -> Option<f64> {
    let few = |values: &[f64]| values.iter().take(MAX_VALUES).copied().collect::<Vec<f64>>();
    let (a, b) = (few(a), few(b));
    let mut pairs: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
    pairs.sort_unstable_by(f64::total_cmp);
    // An even number of pairs has two middle values.
    let (low, high) = (pairs.get(pairs.len().checked_sub(1)? / 2)?, pairs.get(pairs.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Returns the logarithms of the first [`MAX_VALUES`] times, so that differences are ratios. A time
/// of zero counts as 1 ns. `None` with fewer than [`MIN_TIMES`] times.
fn logs(times: &[u64]) -> Option<Vec<f64>> {
    let logs: Vec<f64> = times.iter().take(MAX_VALUES).map(|ns| (*ns).max(1) as f64).map(f64::ln).collect();
    (logs.len() >= MIN_TIMES).then_some(logs)
}

/// Returns the two-sided p of the rank test by its normal approximation, corrected for ties and
/// continuity; 1 if all values are equal.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let (size_a, size_b) = (a.len() as f64, b.len() as f64);
    let (mut rank_sum_a, mut ties, mut below) = (0.0, 0.0, 0.0);
    for (count, count_of_a) in groups_of_equal(a, b) {
        let (size, size_of_a) = (count as f64, count_of_a as f64);
        rank_sum_a += size_of_a * (below + f64::midpoint(size, 1.0));
        ties += size * (size * size - 1.0);
        below += size;
    }
    let both = size_a + size_b;
    let u = rank_sum_a - size_a * (size_a + 1.0) / 2.0;
    let variance = size_a * size_b / 12.0 * ((both + 1.0) - ties / (both * (both - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((u - size_a * size_b / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    (2.0 * Normal::standard().sf(z)).clamp(0.0, 1.0)
}

/// Maximum number of values of both lists together for the exact test: about 30 runs on each side.
const MAX_EXACT_VALUES: usize = 60;

/// Returns the two-sided p of the exact rank test. Every assignment of the values to the two sides
/// counts as equally likely, so ties need no correction. With more than 60 values in total, returns
/// the result of [`mann_whitney`]. `None` if a list is empty.
pub fn exact_rank_test(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    if a.len() + b.len() > MAX_EXACT_VALUES {
        return Some(mann_whitney(a, b));
    }
    // `ranks` has twice the rank of every value, so that the ranks of ties are whole numbers. `rank_sum_a` is their sum
    // over `a`.
    let (mut ranks, mut rank_sum_a) = (Vec::with_capacity(a.len() + b.len()), 0);
    for (count, count_of_a) in groups_of_equal(a, b) {
        let rank = 2 * ranks.len() + count + 1;
        ranks.extend(std::iter::repeat_n(rank, count));
        rank_sum_a += rank * count_of_a;
    }
    let ways = count_ways(&ranks, a.len());
    let all: f64 = ways.iter().sum();
    let below: f64 = ways[..=rank_sum_a].iter().sum();
    let above: f64 = ways[rank_sum_a..].iter().sum();
    Some((2.0 * below.min(above) / all).min(1.0))
}

/// Returns the smallest possible p of the exact rank test with these numbers of values.
pub fn smallest_p(size_a: usize, size_b: usize) -> f64 {
    let ways = (1..=size_a).fold(1.0, |ways, i| ways * (size_b + i) as f64 / i as f64);
    (2.0 / ways).min(1.0)
}

/// Groups the equal values of both lists, in ascending order. Returns the number of values in each group, and how many
/// of them are from `a`.
fn groups_of_equal(a: &[f64], b: &[f64]) -> Vec<(usize, usize)> {
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|v| (*v, true)).chain(b.iter().map(|v| (*v, false))).collect();
    all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let groups = all.chunk_by(|x, y| x.0.total_cmp(&y.0).is_eq());
    groups.map(|equal| (equal.len(), equal.iter().filter(|(_, is_from_a)| *is_from_a).count())).collect()
}

/// Returns, at the index of each sum, the number of ways in which `chosen` of the ranks have this sum.
fn count_ways(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let most: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0; most + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for taken in (0..chosen).rev() {
            for sum in 0..=most - rank {
                let more = ways[taken][sum];
                ways[taken + 1][sum + rank] += more;
            }
        }
    }
    ways.pop().unwrap_or_default()
}

/// The gap between a candidate and the best one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// Maximum share by which the best candidate is larger than this one: 0.04 for 4 %. Infinite if
    /// this one shares fewer than three rounds with another candidate.
    pub at_most: f64,
    /// Whether another candidate is larger than this one, with 95 % confidence.
    pub is_surely_below: bool,
}

/// Returns the gap between each candidate and the best one, which has the largest values. `candidates[i][round]` is positive, or `None`
/// if the candidate has no value in that round.
///
/// 1. Two candidates are compared by the differences of their logarithms within rounds, so effects of a round on both cancel.
/// 2. Each difference gets a one-sided t bound. The 5 % are divided among all candidates but one: only the comparisons of the truly
///    largest candidate can make a statement false.
/// 3. A candidate is below the best by at most its largest upper bound. It is surely below if a lower bound is above zero.
///
/// All statements about one set of candidates hold together with 95 % confidence, also for a candidate that was picked by them.
pub fn gaps(candidates: &[Vec<Option<f64>>]) -> Vec<Gap> {
    let tail = SIGNIFICANCE / candidates.len().saturating_sub(1).max(1) as f64;
    let mut factors = BTreeMap::new();
    let mut gap_of = |at: usize| {
        let mut gap = Gap { at_most: 0.0, is_surely_below: false };
        for (_, rival) in candidates.iter().enumerate().filter(|(other, _)| *other != at) {
            let differences = differences(&candidates[at], rival);
            let runs = differences.len();
            let factor =
                *factors.entry(runs).or_insert_with(|| sample::quantile(1.0 - tail, runs as f64 - 1.0));
            let Some(factor) = factor.filter(|_| runs >= FEWEST_RUNS) else {
                gap.at_most = f64::INFINITY;
                continue;
            };
            let half = factor * (variance(&differences) / runs as f64).sqrt();
            let by = mean(&differences);
            gap.at_most = gap.at_most.max((by + half).exp_m1());
            gap.is_surely_below |= by > half;
        }
        gap
    };
    (0..candidates.len()).map(&mut gap_of).collect()
}

/// Returns for each round with both values the logarithm of the rival's value minus that of the
/// candidate.
fn differences(own: &[Option<f64>], rival: &[Option<f64>]) -> Vec<f64> {
    let usable = |value: Option<f64>| value.filter(|v| v.is_finite() && *v > 0.0);
    let both = own.iter().zip(rival).filter_map(|(own, rival)| usable(*own).zip(usable(*rival)));
    both.map(|(own, rival)| (rival / own).ln()).collect()
}

/// Returns the corrected p of each comparison (Holm), in the order of `ps`. If each
/// corrected p is compared with 5 %, the probability of any false finding is at most 5 %.
pub fn adjust_with_holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|x, y| ps[*x].total_cmp(&ps[*y]));
    let mut out = vec![1.0; ps.len()];
    let mut largest = 0.0_f64;
    for (step, at) in order.into_iter().enumerate() {
        largest = largest.max(ps[at] * (ps.len() - step) as f64);
        out[at] = largest.min(1.0);
    }
    out
}

/// Results of scipy.stats.ttest_ind(b, a, equal_var=False): statistic, df, confidence_interval(), pvalue.
#[cfg(test)]
const WELCH: [f64; 5] = [
    -3.280_019_361_953_590_5,
    3.915_556_891_080_908,
    -0.202_055_527_753_379_87,
    -0.015_944_472_246_623_653,
    0.031_473_638_916_996_89,
];

#[cfg(test)]
fn near(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-6 * expected.abs()
}

#[cfg(test)]
fn near_within(got: f64, expected: f64, within: f64) -> bool {
    (got - expected).abs() <= within
}

/// Results of scipy.stats.mannwhitneyu(a, b, method="exact"); for lists with ties, of permutation_test() over all permutations.
#[cfg(test)]
const SCIPY: &[(&[f64], &[f64], f64)] = &[
    (&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.1),
    (&[1.0, 2.0, 3.0, 4.0, 7.0], &[5.0, 6.0, 8.0, 9.0, 10.0], 0.031_746_031_746),
    (&[3.1, 2.9, 3.4, 3.0, 3.3], &[3.2, 3.5, 3.6, 2.8, 3.7, 3.9], 0.177_489_177_489),
    (
        &[10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0],
        &[13.5, 14.5, 15.5, 16.5, 17.0, 18.0, 19.0],
        0.017_482_517_482,
    ),
    (&[1.0, 1.0, 2.0, 3.0], &[1.0, 2.0, 2.0, 4.0, 5.0], 0.380_952_380_952),
    (&[1.0, 2.0, 2.0, 2.0, 3.0], &[2.0, 3.0, 3.0, 3.0, 4.0], 0.134_920_634_921),
    (&[5.0, 5.0, 5.0], &[5.0, 5.0, 5.0], 1.0),
];

#[cfg(test)]
fn near_chance(got: Option<f64>, expected: f64) -> bool {
    got.is_some_and(|g| (g - expected).abs() <= 1e-9)
}

#[cfg(test)]
fn gaps_of_rows(values: &[&[f64]]) -> Vec<Gap> {
    gaps(&values.iter().map(|v| v.iter().copied().map(Some).collect()).collect::<Vec<_>>())
}

#[test]
fn the_interval_matches_scipy() {
    let a = [11.21, 11.25, 11.18, 11.23, 11.20];
    let b = [11.10, 11.14, 11.02, 11.16];
    let shift = Shift::new(&a, &b).unwrap();
    assert!(near(shift.delta / shift.standard_error, WELCH[0]), "{shift:?}");
    assert!(near(shift.degrees, WELCH[1]), "{shift:?}");
    let [low, high] = shift.interval();
    assert!(near(low, WELCH[2]) && near(high, WELCH[3]), "{low} {high}");
    assert!(near(shift.p_beyond(0.0), WELCH[4]), "{}", shift.p_beyond(0.0));
}

#[test]
fn p_is_five_percent_if_the_interval_ends_at_the_margin() {
    let shift = Shift::new(&[1.0, 1.1, 0.9, 1.05], &[1.5, 1.4, 1.65, 1.45]).unwrap();
    let [low, _] = shift.interval();
    assert!(near(shift.p_beyond(low), SIGNIFICANCE), "{}", shift.p_beyond(low));
    assert!(near(shift.p_beyond(1.0), 1.0));
}

#[test]
fn two_runs_have_no_shift_and_constant_runs_have_a_certain_one() {
    assert_eq!(Shift::new(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
    assert_eq!(Shift::new(&[1.0, f64::INFINITY, 2.0], &[1.0, 2.0, 3.0]), None);
    let sure = Shift::new(&[1.0; 5], &[1.5; 5]).unwrap();
    assert_eq!((sure.interval(), sure.degrees()), ([0.5, 0.5], None));
    assert_eq!((sure.p_beyond(0.1), sure.p_beyond(0.6)), (0.0, 1.0));
    assert_eq!((sure.smallest_detectable(0.1, 9), sure.runs_needed([0.1; 2], 1)), (0.1, Some(4)));
}

#[test]
fn larger_differences_need_fewer_runs() {
    let sure = Shift::new(&[1.0; 5], &[1.5; 5]).unwrap();
    let away = |delta: f64| Shift { delta, standard_error: 0.019, degrees: 8.0, variance: 0.0009 };
    let needed = |delta: f64| away(delta).runs_needed([0.01; 2], 1);
    // 2 ((2.10 + 0.86) 0.03 / 0.04)^2 = 9.9, with Student's t for 18 degrees of freedom.
    assert_eq!(needed(0.05), Some(10));
    assert!(needed(0.1) < needed(0.05) && needed(-0.05) == needed(0.05));
    assert_eq!(needed(0.01), None);
    assert!(
        needed(0.0) > needed(0.05),
        "showing a difference takes fewer runs than showing that there is none"
    );
    // 2 ((1.64 + 0.84) 0.03 / 0.05)^2 = 4.4 with the normal quantiles, and 2 ((1.81 + 0.88) 0.03 / 0.05)^2 = 5.2 with Student's t for 10
    // degrees of freedom, those of 6 runs on each side.
    assert_eq!([away(0.0), away(-0.1)].map(|s| s.runs_to_decide(-0.05, 0.05)), [Some(6); 2]);
    assert_eq!(away(-0.05).runs_to_decide(-0.05, 0.05), None);
    assert!(away(0.05).runs_needed([0.01; 2], 40) > needed(0.05), "many comparisons need more");
    let wider = |delta: f64| away(delta).runs_needed([0.01, 0.05], 1);
    assert!(
        wider(0.0) < needed(0.0) && wider(0.01) < Some(40),
        "a wide tolerance takes fewer runs than a narrow margin"
    );
    assert_eq!(
        wider(0.1),
        needed(0.1),
        "for a difference beyond the tolerance, the tolerance changes nothing"
    );
    // Half the width is 2.306 x 0.019 = 4.38 % with 5 runs on each side. 2.04 x 0.0424 / sqrt(n) is at most half of that, 2.19 %, from n =
    // 16 on.
    assert_eq!((away(0.0).runs_to_halve(), sure.runs_to_halve()), (Some(16), None));
}

#[test]
fn an_interval_around_one_decides_nothing() {
    // Measured on a virtual disk: 12,677 IOPS with a deviation of 50 %, against 14,573 with 10 %.
    let shaky = [6_000.0, 9_000.0, 13_000.0, 17_000.0, 27_000.0];
    let calm = [13_000.0, 13_900.0, 14_500.0, 15_300.0, 16_200.0];
    let ratio = Ratio::from_rates(&shaky, &calm).unwrap();
    assert!(
        ratio.value < 1.0 && !ratio.is_below(1.0) && !ratio.is_above(1.0) && !ratio.is_one(1.1),
        "{ratio:?}"
    );
    let half: Vec<f64> = calm.iter().map(|r| r / 2.0).collect();
    assert!(Ratio::from_rates(&half, &calm).unwrap().is_below(1.0 / 1.1));
    assert!(Ratio::from_rates(&calm, &half).unwrap().is_above(1.1));
    assert!(Ratio::from_rates(&[100.0, 101.0, 99.0], &[100.0; 3]).unwrap().is_one(1.1));
}

#[test]
fn a_ratio_of_two_runs_has_no_interval() {
    let ratio = Ratio::from_rates(&[9.0, 9.0], &[1.0, 1.0, 1.0]).unwrap();
    assert!(ratio.interval.is_none() && !ratio.is_above(1.0) && !ratio.is_below(99.0));
    assert_eq!(Ratio::from_rates(&[], &[1.0]), None);
    assert_eq!(Ratio::from_rates(&[0.0, 1.0], &[1.0]), None);
}

#[test]
fn compare_finds_the_factor_and_the_p_of_published_tables() {
    let a: Vec<u64> = (1..=20).map(|i| 1_000 + 10 * i).collect();
    let b: Vec<u64> = a.iter().map(|v| v * 3).collect();
    let c = compare_times(&a, &b).unwrap();
    assert!(near_within(c.ratio, 3.0, 0.05) && c.p < 1e-6, "{c:?}");
    // 8 values all below 8 others: u = 0, z = (32 - 0.5) / sqrt(64 * 17 / 12).
    let low: Vec<u64> = (1..=8).collect();
    let high: Vec<u64> = (11..=18).collect();
    assert!(near_within(compare_times(&low, &high).unwrap().p, 0.000_939, 0.000_01));
}

#[test]
fn equal_lists_do_not_differ_and_short_ones_are_not_compared() {
    let a: Vec<u64> = (0..64).map(|i| 80_000 + 100 * (i % 7)).collect();
    assert_eq!(compare_times(&a, &a), Some(TimesComparison { ratio: 1.0, p: 1.0 }));
    assert_eq!(compare_times(&[5; 9], &[5; 9]), Some(TimesComparison { ratio: 1.0, p: 1.0 }));
    assert_eq!(compare_times(&a, &[1; MIN_TIMES - 1]), None);
    assert_eq!(compare_times(&[], &[]), None);
}

#[test]
fn extreme_times_stay_finite_and_one_outlier_has_no_effect() {
    let c = compare_times(&vec![0; 100_000], &vec![u64::MAX; 100_000]).unwrap();
    assert!(c.ratio.is_finite() && c.p.is_finite());
    let a: Vec<u64> = (0..64).map(|i| 50_000 + 10 * i).collect();
    let mut b = a.clone();
    b[3] = 1_000_000_000;
    assert!(near_within(compare_times(&a, &b).unwrap().ratio, 1.0, 0.01));
}

#[test]
fn the_exact_p_matches_scipy() {
    for (a, b, expected) in SCIPY {
        let got = exact_rank_test(a, b);
        assert!(near_chance(got, *expected), "{a:?} {b:?}: {got:?}, not {expected}");
        assert_eq!(got, exact_rank_test(b, a));
    }
}

#[test]
fn lists_that_do_not_overlap_have_the_smallest_p() {
    for (n, m, expected) in
        [(3, 3, 0.1), (4, 4, 0.028_571_428_571), (5, 5, 0.007_936_507_936), (3, 5, 0.035_714_285_714)]
    {
        let low: Vec<f64> = (0..n).map(f64::from).collect();
        let high: Vec<f64> = (100..100 + m).map(f64::from).collect();
        assert!(near_chance(exact_rank_test(&low, &high), expected), "{n} {m}");
        assert!(near_chance(Some(smallest_p(n as usize, m as usize)), expected), "{n} {m}");
    }
    assert_eq!((exact_rank_test(&[], &[1.0]), smallest_p(0, 5)), (None, 1.0));
}

#[test]
fn the_approximation_agrees_with_the_exact_test() {
    let a: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 30)).collect();
    let b: Vec<f64> = a.iter().map(|v| v + 6.5).collect();
    let (exact, rough) = (exact_rank_test(&a, &b).unwrap(), mann_whitney(&a, &b));
    assert!((exact / rough - 1.0).abs() < 0.1, "{exact} {rough}");
    let longer = [b.as_slice(), &[3.25]].concat();
    assert_eq!(exact_rank_test(&a, &longer), Some(mann_whitney(&a, &longer)));
}

#[test]
fn a_gap_matches_published_tables() {
    // Differences 0.1, 0.2, 0.3 of logarithms: mean 0.2, standard error 0.1 / sqrt(3). With three candidates, the 5 % are divided by two:
    // t(2 degrees, 0.975) = 4.302653.
    let base = [1.0_f64, 1.0, 1.0];
    let more = [0.1_f64.exp(), 0.2_f64.exp(), 0.3_f64.exp()];
    let gaps = gaps_of_rows(&[&base, &more, &[0.5, 0.5, 0.5]]);
    let half = 4.302_652_729_9 * 0.1 / 3_f64.sqrt();
    assert!((gaps[0].at_most - (0.2 + half).exp_m1()).abs() < 1e-6 && !gaps[0].is_surely_below, "{gaps:?}");
    assert!((gaps[1].at_most - (half - 0.2).exp_m1()).abs() < 1e-6 && !gaps[1].is_surely_below, "{gaps:?}");
    assert!(gaps[2].is_surely_below, "half as large in every round: {gaps:?}");
}

#[test]
fn effects_of_a_round_on_all_candidates_cancel() {
    let rounds = [1.0, 0.4, 2.0, 0.9, 0.1];
    let gaps = gaps_of_rows(&[&rounds, &rounds.map(|r| r * 1.01), &rounds.map(|r| r * 0.5)]);
    assert!(
        (gaps[0].at_most - 0.01).abs() < 1e-9 && gaps[0].is_surely_below && gaps[1].at_most == 0.0,
        "{gaps:?}"
    );
}

#[test]
fn candidates_without_three_common_rounds_have_no_bound() {
    let few =
        gaps(&[vec![Some(1.0), Some(1.0), None, Some(1.0)], vec![None, Some(1.0), Some(2.0), Some(1.0)]]);
    assert!(few.iter().all(|g| g.at_most.is_infinite() && !g.is_surely_below), "{few:?}");
    assert_eq!(
        gaps_of_rows(&[&[3.0, 4.0]]),
        [Gap { at_most: 0.0, is_surely_below: false }],
        "alone it is the best"
    );
    assert_eq!(gaps(&[]), []);
    assert!(gaps_of_rows(&[&[0.0; 5], &[f64::NAN; 5]]).iter().all(|g| g.at_most.is_infinite()));
}

#[test]
fn holm_matches_statsmodels() {
    // statsmodels' multipletests(p, method="holm").
    let got = adjust_with_holm(&[0.01, 0.04, 0.03, 0.005]);
    for (got, expected) in got.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!((got - expected).abs() < 1e-12, "{got} {expected}");
    }
    assert_eq!(adjust_with_holm(&[0.03]), [0.03]);
    assert_eq!(adjust_with_holm(&[]), Vec::<f64>::new());
    assert_eq!(adjust_with_holm(&[0.9, 0.8, f64::NAN]).len(), 3);
}
