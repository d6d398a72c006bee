//! Bimodality: whether latencies form two groups.
//!
//! 1. Latencies are counted in classes of a quarter of an octave and smoothed.
//! 2. The deepest valley that leaves at least 10 % of the operations on each side divides the latencies into two groups.
//! 3. Two groups exist if the valley is at most a quarter of the lower peak and the medians differ by a factor of at least two.
//!
//! Three peaks are reported as two groups.

use model::histogram::Histogram;

/// Classes per octave: narrow enough to show a valley, and wide enough to contain several operations each.
const CLASSES_PER_OCTAVE: f64 = 4.0;
/// Minimum number of operations. With fewer the shape is random.
pub const MIN_OPS: u64 = 1_000;
/// Minimum share of the operations in each group.
pub const MIN_GROUP_SHARE: f64 = 0.10;
/// Minimum ratio of the medians of the two groups.
pub const MIN_RATIO: f64 = 2.0;
/// Maximum height of the valley relative to the lower peak. Queues make distributions uneven, so the valley must be clear.
pub const MAX_VALLEY: f64 = 0.25;

/// Two groups of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modes {
    /// Median of the fast group in ns.
    pub fast_ns: f64,
    /// Median of the slow group in ns.
    pub slow_ns: f64,
    /// Share of the operations that are in the slow group.
    pub slow_share: f64,
}

/// Finds two groups of latencies; `None` if there is only one group, or if there are fewer than
/// [`MIN_OPS`] operations.
pub fn find_modes(latencies: &Histogram) -> Option<Modes> {
    if latencies.count() < MIN_OPS {
        return None;
    }
    let heights = smooth(&count_by_class(latencies));
    let total: f64 = heights.iter().sum();
    let mut deepest: Option<(f64, usize)> = None;
    let mut below = 0.0;
    for (at, height) in heights.iter().enumerate() {
        let is_group = |operations: f64| operations >= MIN_GROUP_SHARE * total;
        let lower_peak = highest(&heights[..at]).min(highest(&heights[at..]));
        let relative_height = height / lower_peak.max(f64::MIN_POSITIVE);
        if is_group(below)
            && is_group(total - below - height)
            && relative_height <= MAX_VALLEY
            && deepest.is_none_or(|(lowest, _)| relative_height < lowest)
        {
            deepest = Some((relative_height, at));
        }
        below += height;
    }
    let (_, valley) = deepest?;
    let found = split(latencies, valley);
    (found.slow_ns >= MIN_RATIO * found.fast_ns
        && (MIN_GROUP_SHARE..=1.0 - MIN_GROUP_SHARE).contains(&found.slow_share))
    .then_some(found)
}

/// Returns the index of the class that contains a latency.
fn class_of(ns: u64) -> usize {
    ((ns.max(1) as f64).log2() * CLASSES_PER_OCTAVE) as usize
}

fn count_by_class(latencies: &Histogram) -> Vec<f64> {
    let mut out = vec![0.0; class_of(u64::MAX) + 2];
    for (ns, count) in latencies.counts() {
        if let Some(slot) = out.get_mut(class_of(ns)) {
            *slot += count as f64;
        }
    }
    out
}

/// Averages each class with its neighbours, so that an empty class is not taken for a valley.
fn smooth(heights: &[f64]) -> Vec<f64> {
    let at = |i: Option<usize>| i.and_then(|i| heights.get(i)).copied().unwrap_or(0.0);
    (0..heights.len())
        .map(|i| (at(i.checked_sub(1)) + 2.0 * at(Some(i)) + at(i.checked_add(1))) / 4.0)
        .collect()
}

fn highest(heights: &[f64]) -> f64 {
    heights.iter().copied().fold(0.0, f64::max)
}

/// Splits the operations: those below the class `valley` are the fast group, and the others the slow group.
fn split(latencies: &Histogram, valley: usize) -> Modes {
    let fast: u64 = latencies.counts().filter(|(ns, _)| class_of(*ns) < valley).map(|(_, c)| c).sum();
    let total = latencies.count();
    let latency_of = |rank: u64| latencies.quantile_ns(rank as f64 / total as f64).unwrap_or(0) as f64;
    Modes {
        fast_ns: latency_of(fast / 2),
        slow_ns: latency_of(fast + (total - fast) / 2),
        slow_share: (total - fast) as f64 / total as f64,
    }
}

#[cfg(test)]
use crate::series::Noise;

/// Generates log-normal latencies from (count, median, sigma).
#[cfg(test)]
fn mixture(parts: &[(u32, f64, f64)]) -> Histogram {
    let (mut noise, mut h) = (Noise(11), Histogram::new());
    for (count, median, sigma) in parts {
        (0..*count).for_each(|_| h.record((median * (sigma * noise.normal()).exp()) as u64));
    }
    h
}

#[test]
fn two_groups_are_found() {
    let m = find_modes(&mixture(&[(6_000, 5e3, 0.3), (4_000, 80e3, 0.3)])).unwrap();
    assert!((m.fast_ns / 5e3 - 1.0).abs() < 0.1 && (m.slow_ns / 80e3 - 1.0).abs() < 0.1, "{m:?}");
    assert!((m.slow_share - 0.4).abs() < 0.02);
    assert!(find_modes(&mixture(&[(8_800, 50e3, 0.15), (1_200, 300e3, 0.15)])).is_some());
}

#[test]
fn one_group_with_a_tail_is_not_divided() {
    assert_eq!(find_modes(&mixture(&[(10_000, 50e3, 0.6)])), None);
    assert_eq!(find_modes(&mixture(&[(10_000, 50e3, 0.01)])), None);
    assert_eq!(find_modes(&mixture(&[(9_500, 50e3, 0.3), (500, 5e6, 0.3)])), None, "5 %");
    assert_eq!(find_modes(&mixture(&[(5_000, 50e3, 0.2), (5_000, 85e3, 0.2)])), None, "no valley");
    assert_eq!(find_modes(&mixture(&[(300, 5e3, 0.3), (300, 80e3, 0.3)])), None, "too few");
}
