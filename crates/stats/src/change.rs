//! Change points: whether a series steps from one level to another, and where.
//!
//! 1. The best split maximises the energy distance between the logarithms of both sides (E-divisive, Matteson and James 2014).
//! 2. A split counts if the levels differ by the wanted size, the difference is significant, and at least half of it happens at the split.
//! 3. If the best split does not count, it is tried together with the best second split.
//! 4. Each level is searched again.
//!
//! E-divisive tests significance by permutation. With correlated neighbours, a permutation test reports a step in one of five series that
//! have none. A permutation of blocks is never significant in short series. So the difference of the levels is compared with its standard
//! error, widened by the correlation. [`crate::series::find_drift`] finds slow drift.

use crate::sample::{mean, median};
use std::ops::Range;

/// Minimum number of values on each side of a split. A shorter side counts as a stall, not as a level.
const MIN_SIDE_VALUES: usize = 4;
/// Minimum share of the series on each side of a split.
const MIN_SIDE_SHARE: f64 = 0.125;
/// Required difference between the levels in standard errors, for a long series. It is high because the split is the best of many. In
/// simulations of noise it keeps false alarms below 1 % for series of 16 or more values.
pub const REQUIRED_ERRORS: f64 = 5.0;
/// This number divided by the length of the series is added to [`REQUIRED_ERRORS`], because the
/// error of a short series is uncertain.
pub const REQUIRED_ERRORS_BY_LENGTH: f64 = 100.0;
/// Additional required standard errors for a second cut, because there are many more pairs of cuts than single cuts to choose the best
/// from.
const SECOND_CUT_ERRORS: f64 = 1.0;
/// Minimum share of the difference that happens at the step itself, measured over the nearest values of both levels ([`NEAR_DIVISOR`]). A step
/// has the whole difference there, a straight line a third, an exponential decay less.
const MIN_SHARE_AT_STEP: f64 = 0.5;
/// The number of nearest values for [`MIN_SHARE_AT_STEP`] is the length of the shorter level, divided by this.
const NEAR_DIVISOR: usize = 3;
/// Rates below this share of the mean count as this share.
const MIN_RATE_SHARE: f64 = 0.01;

/// The steps found in a series of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// No step of at least the requested size.
    None,
    /// The levels differ, but correlated noise or a drift could explain it.
    Unclear,
    /// At least one step, in the order of time.
    Steps(Vec<Step>),
}

/// A step from one level to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Mean of the level before the step.
    pub before: f64,
    /// Mean of the level after the step.
    pub after: f64,
}

impl Step {
    /// Returns the share by which the lower level is below the higher one.
    pub fn size(&self) -> f64 {
        relative_difference(self.before, self.after)
    }
}

impl Change {
    /// Returns the steps; empty without any.
    pub fn steps(&self) -> &[Step] {
        if let Self::Steps(steps) = self { steps } else { &[] }
    }
}

/// Returns the share by which the lower of two values is below the higher one.
fn relative_difference(a: f64, b: f64) -> f64 {
    let (low, high) = (a.min(b), a.max(b));
    if high > 0.0 { 1.0 - low / high } else { 0.0 }
}

/// Finds the steps of a series at which the lower level is at least the share `min_size` below the
/// higher one.
pub fn find_steps(values: &[f64], min_size: f64) -> Change {
    let min_side = MIN_SIDE_VALUES.max((values.len() as f64 * MIN_SIDE_SHARE) as usize);
    match search(values, min_side, min_size) {
        Cuts::None => Change::None,
        Cuts::Unclear => Change::Unclear,
        Cuts::Sure(cuts) => Change::Steps(steps(values, &cuts)),
    }
}

/// The cuts of a series: the index at which each level but the first begins.
#[derive(Clone, Debug, PartialEq)]
enum Cuts {
    None,
    Unclear,
    Sure(Vec<usize>),
}

/// Cuts a series at one significant split. Without one, cuts at two splits that are significant
/// together, because a third level counts as noise until it is cut off. Then searches each level again.
fn search(values: &[f64], min_side: usize, min_size: f64) -> Cuts {
    let logs = logarithms(values);
    let Some((first, _)) = best_split(&logs, min_side) else { return Cuts::None };
    let single = check_cuts(values, &logs, vec![first], min_size);
    let found = match single {
        Cuts::Sure(_) => single,
        _ => cut_twice(values, &logs, first, min_side, min_size).unwrap_or(single),
    };
    let Cuts::Sure(cuts) = found else { return found };
    let mut all_cuts = Vec::new();
    for level in levels(&cuts, values.len()) {
        let from = level.start;
        if from > 0 {
            all_cuts.push(from);
        }
        if let Cuts::Sure(more) = search(&values[level], min_side, min_size) {
            all_cuts.extend(more.iter().map(|at| from + at));
        }
    }
    Cuts::Sure(all_cuts)
}

/// Cuts at the best split (`first`) and the best second split. `None` if a cut is not significant, or if the last level differs from the
/// first by less than `min_size`: a series that returns to its first level had a stall, not a step.
fn cut_twice(values: &[f64], logs: &[f64], first: usize, min_side: usize, min_size: f64) -> Option<Cuts> {
    let (head, tail) = logs.split_at(first);
    let seconds = [best_split(head, min_side), best_split(tail, min_side).map(|(at, s)| (at + first, s))];
    let (second, _) = seconds.into_iter().flatten().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let cuts = vec![first.min(second), first.max(second)];
    let ends_elsewhere = relative_difference(mean(&values[..cuts[0]]), mean(&values[cuts[1]..])) >= min_size;
    let found = check_cuts(values, logs, cuts, min_size);
    (ends_elsewhere && matches!(found, Cuts::Sure(_))).then_some(found)
}

/// Returns `Sure` if the levels on both sides of every cut differ by at least the share `min_size`, significantly and abruptly. Returns
/// `Unclear` if they differ by at least this share, but not significantly or not abruptly; otherwise `None`.
fn check_cuts(values: &[f64], logs: &[f64], cuts: Vec<usize>, min_size: f64) -> Cuts {
    let steps_of_rates = steps(values, &cuts);
    let levels = levels(&cuts, values.len());
    // Medians must differ too, because a stall of a few values moves the mean far.
    let median_of = |level: &Range<usize>| median(&values[level.clone()]);
    let is_large = |(step, sides): (&Step, &[Range<usize>])| {
        step.size() >= min_size && relative_difference(median_of(&sides[0]), median_of(&sides[1])) >= min_size
    };
    if !steps_of_rates.iter().zip(levels.windows(2)).all(is_large) {
        return Cuts::None;
    }
    let steps_of_logs = steps(logs, &cuts);
    let noise = Noise::from_residuals(&without_levels(logs, &steps_of_logs), levels.len());
    let errors_for_cuts = REQUIRED_ERRORS + SECOND_CUT_ERRORS * (cuts.len() as f64 - 1.0);
    let required_errors = errors_for_cuts + REQUIRED_ERRORS_BY_LENGTH / values.len() as f64;
    let is_sure = |(step, sides): (&Step, &[Range<usize>])| {
        let lengths = [sides[0].len(), sides[1].len()];
        let difference = step.after - step.before;
        difference.abs() >= required_errors * noise.error_of_difference(lengths)
            && difference_around(logs, step.at, lengths) / difference >= MIN_SHARE_AT_STEP
    };
    if steps_of_logs.iter().zip(levels.windows(2)).all(is_sure) { Cuts::Sure(cuts) } else { Cuts::Unclear }
}

/// Returns the range of indices of each level.
fn levels(cuts: &[usize], length: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    starts.zip(cuts.iter().copied().chain([length])).map(|(start, end)| start..end).collect()
}

/// Returns the steps at the cuts, with the means of the levels.
fn steps(values: &[f64], cuts: &[usize]) -> Vec<Step> {
    let levels = levels(cuts, values.len());
    let means: Vec<f64> = levels.into_iter().map(|level| mean(&values[level])).collect();
    let step = |(at, sides): (&usize, &[f64])| Step { at: *at, before: sides[0], after: sides[1] };
    cuts.iter().zip(means.windows(2)).map(step).collect()
}

/// Returns the difference between the means of the values directly after and directly before a
/// step.
fn difference_around(logs: &[f64], at: usize, lengths: [usize; 2]) -> f64 {
    let near = (lengths[0].min(lengths[1]) / NEAR_DIVISOR).max(1);
    mean(&logs[at..at + near]) - mean(&logs[at - near..at])
}

/// Returns the logarithms of rates, which vary by factors. Rates close to zero count as the share [`MIN_RATE_SHARE`] of the mean.
fn logarithms(values: &[f64]) -> Vec<f64> {
    let floor = MIN_RATE_SHARE * mean(values);
    if floor > 0.0 { values.iter().map(|v| v.max(floor).ln()).collect() } else { vec![0.0; values.len()] }
}

/// Returns the values minus the level that each belongs to; minus their mean if there is no step.
pub fn without_levels(values: &[f64], steps: &[Step]) -> Vec<f64> {
    let first = steps.first().map_or_else(|| mean(values), |s| s.before);
    let level_at = |i: usize| steps.iter().rfind(|s| s.at <= i).map_or(first, |s| s.after);
    values.iter().enumerate().map(|(i, v)| v - level_at(i)).collect()
}

/// Noise around the levels.
struct Noise {
    /// Variance of one value, multiplied by the correlation time.
    variance: f64,
}

impl Noise {
    /// Estimates the noise from the residuals around `levels` levels. The estimated correlation of a short series is too low by about
    /// (1 + 4 rho) / n for each level that was subtracted; this bias is corrected.
    fn from_residuals(residuals: &[f64], levels: usize) -> Self {
        let n = residuals.len() as f64;
        let power: f64 = residuals.iter().map(|r| r * r).sum();
        let product: f64 = residuals.iter().zip(residuals.iter().skip(1)).map(|(a, b)| a * b).sum();
        let estimated = if power > 0.0 { product / power } else { 0.0 };
        let rho = (estimated + levels as f64 * (1.0 + 4.0 * estimated.max(0.0)) / n).clamp(0.0, 0.95);
        Self { variance: power / n * (1.0 + rho) / (1.0 - rho) }
    }

    /// Returns the standard error of the difference of two levels of these lengths.
    fn error_of_difference(&self, lengths: [usize; 2]) -> f64 {
        (self.variance * lengths.map(|n| 1.0 / n as f64).iter().sum::<f64>()).sqrt()
    }
}

/// Returns the index of the split with the largest weighted energy distance, and that distance.
/// Each side has at least `min_side` values; `None` if the series is too short for that.
fn best_split(values: &[f64], min_side: usize) -> Option<(usize, f64)> {
    let n = values.len();
    // Sums of distances within the head, within the tail and between both, updated as the split moves.
    let distances = |i: usize, others: &[f64]| others.iter().map(|v| (v - values[i]).abs()).sum::<f64>();
    let mut tail: f64 = (0..n).map(|i| distances(i, values.get(i + 1..).unwrap_or_default())).sum();
    let (mut head, mut between) = (0.0, 0.0);
    let mut best: Option<(usize, f64)> = None;
    for at in 1..n {
        let (to_head, to_tail) = (distances(at - 1, &values[..at - 1]), distances(at - 1, &values[at..]));
        head += to_head;
        tail -= to_tail;
        between += to_tail - to_head;
        if at < min_side || n - at < min_side {
            continue;
        }
        let (n1, n2) = (at as f64, (n - at) as f64);
        // The sums within a side count each pair once, but the formula counts it twice.
        let energy = 2.0 * between / (n1 * n2) - 2.0 * head / (n1 * n1) - 2.0 * tail / (n2 * n2);
        let strength = n1 * n2 / (n1 + n2) * energy;
        if best.is_none_or(|(_, s)| strength > s) {
            best = Some((at, strength));
        }
    }
    best
}

#[cfg(test)]
use crate::series::generate_series;

#[cfg(test)]
fn stepped(n: usize, at: usize, factor: f64, seed: u64) -> Vec<f64> {
    let mut values = generate_series(n, 0.05, 0.0, seed);
    values[at..].iter_mut().for_each(|v| *v *= factor);
    values
}

#[test]
fn a_step_is_found_where_it_is() {
    for (n, at, factor) in
        [(25, 12, 0.05), (25, 18, 0.4), (120, 75, 1.0 / 3.0), (120, 30, 2.5), (120, 80, 0.85)]
    {
        let found = (0..40).filter(|seed| match find_steps(&stepped(n, at, factor, *seed), 0.05) {
            Change::Steps(all) => {
                let s = all[0];
                all.len() == 1 && s.at.abs_diff(at) <= 2 && (s.after / s.before / factor - 1.0).abs() < 0.1
            }
            _ => false,
        });
        let found = found.count();
        assert!(found >= 38, "{n} {at} {factor}: {found} of 40");
    }
}

#[cfg(test)]
fn false_alarms(min_size: f64, series: impl Fn(u64) -> Vec<f64>) -> usize {
    (0..400).filter(|seed| !find_steps(&series(*seed), min_size).steps().is_empty()).count()
}

#[test]
fn noise_stalls_and_drift_are_not_steps() {
    for n in [16, 25, 50, 100, 120] {
        for (deviation, rho) in [(0.3, 0.0), (0.1, 0.5), (0.3, 0.5), (0.1, 0.8), (0.3, 0.8)] {
            let seen = false_alarms(0.05, |seed| generate_series(n, deviation, rho, seed));
            assert!(seen < 4, "{seen} of 400 false alarms at n {n}, deviation {deviation}, rho {rho}");
        }
        let seen = false_alarms(0.05, |seed| {
            let mut stall = generate_series(n, 0.1, 0.3, seed);
            let (length, at) = ((n / 20).max(1), (seed as usize * 7) % n);
            stall.iter_mut().skip(at).take(length).for_each(|v| *v = 0.0);
            stall
        });
        assert!(seen < 4, "{seen} of 400 false alarms of a stall at n {n}");
    }
    let drift: Vec<f64> = (0..120).map(|i| 2.0 - f64::from(i) / 100.0).collect();
    assert_eq!(find_steps(&drift, 0.2), Change::Unclear);
}

#[test]
fn a_drop_after_correlated_noise_is_a_step() {
    let mut found = 0;
    for seed in 0..40 {
        let mut values = generate_series(100, 0.3, 0.8, seed);
        values[64..].fill(0.0125);
        found += usize::from(find_steps(&values, 0.2).steps().iter().any(|s| s.at.abs_diff(64) <= 1));
    }
    assert!(found >= 38, "{found} of 40");
}

#[test]
fn a_throttled_level_with_bursts_is_a_step() {
    let level = |i: usize| {
        if i < 60 {
            20_000.0
        } else if i.is_multiple_of(3) {
            3_000.0
        } else {
            0.0
        }
    };
    let bursts: Vec<f64> = (0..100).map(level).collect();
    let steps = find_steps(&bursts, 0.5).steps().to_vec();
    assert!(steps.len() == 1 && steps[0].at == 60 && steps[0].after < 1_100.0, "{steps:?}");
}

#[test]
fn two_steps_are_found() {
    // Two falls, and a rise and fall to another level: no single split is significant.
    for levels in [[20.0, 6.0, 1.0], [4.0, 20.0, 1.0], [1.0, 8.0, 3.0]] {
        let found = (0..40).filter(|seed| {
            let mut values = generate_series(120, 0.05, 0.3, *seed);
            values
                .iter_mut()
                .enumerate()
                .for_each(|(i, v)| *v *= levels[usize::from(i >= 40) + usize::from(i >= 85)]);
            let change = find_steps(&values, 0.05);
            let at: Vec<usize> = change.steps().iter().map(|s| s.at).collect();
            at == [40, 85]
        });
        let found = found.count();
        assert!(found >= 38, "{levels:?}: {found} of 40");
    }
}

#[test]
fn a_decay_and_a_temporary_dip_are_not_steps() {
    for time in [5.0, 10.0, 20.0] {
        let seen = false_alarms(0.05, |seed| {
            let mut warm = generate_series(120, 0.03, 0.0, seed);
            warm.iter_mut().enumerate().for_each(|(i, v)| *v *= 1.0 + (-(i as f64) / time).exp());
            warm
        });
        assert!(seen < 8, "{seen} of 400 with a time of {time}");
    }
    let mut dip = generate_series(120, 0.02, 0.0, 3);
    dip[50..70].iter_mut().for_each(|v| *v *= 0.5);
    assert_eq!(find_steps(&dip, 0.2).steps(), &[]);
}

#[test]
fn short_and_empty_series_have_no_step() {
    assert_eq!(find_steps(&[], 0.1), Change::None);
    assert_eq!(find_steps(&[1.0, 1.0, 1.0, 0.0, 0.0, 0.0], 0.1), Change::None);
    assert_eq!(find_steps(&[0.0; 40], 0.1), Change::None);
}
