//! Whether a series steps from one level to another, and where.
//!
//! For: one change point by energy distances (E-divisive, Matteson and James 2014), where the levels are surely apart. Not for:
//! slow drift (`drift`), nor why it happened.
//!
//! The method proves a step by permutation. That calls a series whose neighbours resemble each other a step every fifth time,
//! and in short series no permutation of blocks can prove anything; so the levels are held against their standard error
//! instead, widened by the correlation of neighbours.

use crate::series::{mean, median};

/// Values that each side must have at least, and the share of all: fewer are a stall and no level.
const SIDE: (usize, f64) = (4, 0.125);
/// Standard errors that the levels must be apart, and how many more divided by the length. The split is the best of many, and
/// the error itself is the less certain the shorter the series; in simulations of noise this keeps false alarms below one
/// in a hundred from 16 values on.
const SURELY: (f64, f64) = (5.0, 100.0);
/// Share of the mean below which a rate counts as that.
const FLOOR: f64 = 0.01;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// No step of that size.
    None,
    /// The levels differ, but neighbours resemble each other so much that chance could do that.
    Unclear,
    /// A step.
    Step(Step),
}

/// A step from one level to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Mean before.
    pub before: f64,
    /// Mean from there on.
    pub after: f64,
}

impl Step {
    /// Share by which the lower level is below the higher.
    pub(crate) fn size(&self) -> f64 {
        apart(self.before, self.after)
    }
}

/// Share by which the lower of two is below the higher.
fn apart(a: f64, b: f64) -> f64 {
    let (low, high) = (a.min(b), a.max(b));
    if high > 0.0 { 1.0 - low / high } else { 0.0 }
}

/// Looks for a step whose lower level is at least the share `smallest` below the higher.
pub(crate) fn change(values: &[f64], smallest: f64) -> Change {
    let logs = logarithms(values);
    let Some(at) = best_split(&logs) else { return Change::None };
    let (head, tail) = values.split_at(at);
    let step = Step { at, before: mean(head), after: mean(tail) };
    // Medians too: a stall of a few values moves a mean far, and is no new level.
    if step.size() < smallest || apart(median(head), median(tail)) < smallest {
        return Change::None;
    }
    let (before, after) = (mean(&logs[..at]), mean(&logs[at..]));
    let rest = without_levels(&logs, &Step { at, before, after });
    let (least, shortness) = SURELY;
    let surely = (least + shortness / values.len() as f64) * error_of_difference(&rest, at);
    if (after - before).abs() < surely { Change::Unclear } else { Change::Step(step) }
}

/// Rates vary by factors: on a logarithm a level of a few IOPS is as exact as one of many thousands. What is next to nothing
/// counts as the share [`FLOOR`] of the mean, since zero has no logarithm.
fn logarithms(values: &[f64]) -> Vec<f64> {
    let floor = FLOOR * mean(values);
    if floor > 0.0 { values.iter().map(|v| v.max(floor).ln()).collect() } else { vec![0.0; values.len()] }
}

/// What is left of the values when both levels are taken away.
pub(crate) fn without_levels(values: &[f64], step: &Step) -> Vec<f64> {
    let level = |i: usize| if i < step.at { step.before } else { step.after };
    values.iter().enumerate().map(|(i, v)| v - level(i)).collect()
}

/// Standard error of the difference of two levels, from what is left of the values without them. Short series hide their
/// correlation: the estimate of it is too low by some (1 + 4 rho) / n for each level that was taken away, which is put back.
fn error_of_difference(rest: &[f64], at: usize) -> f64 {
    let n = rest.len() as f64;
    let power: f64 = rest.iter().map(|r| r * r).sum();
    let product: f64 = rest.iter().zip(rest.iter().skip(1)).map(|(a, b)| a * b).sum();
    let seen = if power > 0.0 { product / power } else { 0.0 };
    let rho = (seen + 2.0 * (1.0 + 4.0 * seen.max(0.0)) / n).clamp(0.0, 0.95);
    let time = (1.0 + rho) / (1.0 - rho);
    (power / n * time * (1.0 / at as f64 + 1.0 / (n - at as f64))).sqrt()
}

/// The split whose sides differ most by their energy distance, weighted by the lengths.
fn best_split(values: &[f64]) -> Option<usize> {
    let n = values.len();
    let side = SIDE.0.max((n as f64 * SIDE.1) as usize);
    // Sums of distances within the head, within the tail and between both, kept up to date as the split moves on.
    let row = |i: usize, among: &[f64]| among.iter().map(|v| (v - values[i]).abs()).sum::<f64>();
    let mut tail: f64 = (0..n).map(|i| row(i, values.get(i + 1..).unwrap_or_default())).sum();
    let (mut head, mut between) = (0.0, 0.0);
    let mut best: Option<(usize, f64)> = None;
    for at in 1..n {
        let (to_head, to_tail) = (row(at - 1, &values[..at - 1]), row(at - 1, &values[at..]));
        head += to_head;
        tail -= to_tail;
        between += to_tail - to_head;
        if at < side || n - at < side {
            continue;
        }
        let (n1, n2) = (at as f64, (n - at) as f64);
        // Within sums count each pair once, the formula twice.
        let energy = 2.0 * between / (n1 * n2) - 2.0 * head / (n1 * n1) - 2.0 * tail / (n2 * n2);
        let strength = n1 * n2 / (n1 + n2) * energy;
        if best.is_none_or(|(_, s)| strength > s) {
            best = Some((at, strength));
        }
    }
    best.map(|(at, _)| at)
}

#[cfg(test)]
use crate::series::known::flat;

#[cfg(test)]
fn stepped(n: usize, at: usize, factor: f64, seed: u64) -> Vec<f64> {
    let mut values = flat(n, 0.05, 0.0, seed);
    values[at..].iter_mut().for_each(|v| *v *= factor);
    values
}

#[test]
fn a_step_is_found_where_it_is() {
    for (n, at, factor) in
        [(25, 12, 0.05), (25, 18, 0.4), (120, 75, 1.0 / 3.0), (120, 30, 2.5), (120, 80, 0.85)]
    {
        let found = (0..40).filter(|seed| match change(&stepped(n, at, factor, *seed), 0.05) {
            Change::Step(s) => s.at.abs_diff(at) <= 2 && (s.after / s.before / factor - 1.0).abs() < 0.1,
            _ => false,
        });
        let found = found.count();
        assert!(found >= 38, "{n} {at} {factor}: {found} of 40");
    }
}

#[cfg(test)]
fn alarms(smallest: f64, series: impl Fn(u64) -> Vec<f64>) -> usize {
    (0..400).filter(|seed| matches!(change(&series(*seed), smallest), Change::Step(_))).count()
}

#[test]
fn noise_and_stalls_and_drift_are_no_step() {
    for n in [16, 25, 50, 100, 120] {
        for (deviation, rho) in [(0.3, 0.0), (0.1, 0.5), (0.3, 0.5), (0.1, 0.8), (0.3, 0.8)] {
            let seen = alarms(0.05, |seed| flat(n, deviation, rho, seed));
            assert!(seen < 4, "{seen} of 400 false alarms at n {n}, deviation {deviation}, rho {rho}");
        }
        let seen = alarms(0.05, |seed| {
            let mut stall = flat(n, 0.1, 0.3, seed);
            let (length, at) = ((n / 20).max(1), (seed as usize * 7) % n);
            stall.iter_mut().skip(at).take(length).for_each(|v| *v = 0.0);
            stall
        });
        assert!(seen < 4, "{seen} of 400 false alarms of a stall at n {n}");
    }
    let drift: Vec<f64> = (0..120).map(|i| 2.0 - f64::from(i) / 100.0).collect();
    assert_eq!(change(&drift, 0.2), Change::Unclear);
}

#[test]
fn a_level_that_wanders_and_then_is_cut_off_is_a_step() {
    let mut found = 0;
    for seed in 0..40 {
        let mut values = flat(100, 0.3, 0.8, seed);
        values[64..].fill(0.0125);
        found += usize::from(matches!(change(&values, 0.2), Change::Step(s) if s.at.abs_diff(64) <= 1));
    }
    assert!(found >= 38, "{found} of 40");
}

#[test]
fn a_limit_that_lets_bursts_through_is_a_step() {
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
    assert!(matches!(change(&bursts, 0.5), Change::Step(s) if s.at == 60 && s.after < 1_100.0));
}

#[test]
fn short_and_empty_series_are_no_step() {
    assert_eq!(change(&[], 0.1), Change::None);
    assert_eq!(change(&[1.0, 1.0, 1.0, 0.0, 0.0, 0.0], 0.1), Change::None);
    assert_eq!(change(&[0.0; 40], 0.1), Change::None);
}
