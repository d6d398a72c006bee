//! Histograms of a load: how often each size occurs, and how many operations fall on each part of the device.
//!
//! 1. [`SizeCounts`] counts sizes exactly, and reduces them to a few classes that keep the bytes.
//! 2. [`Bins`] counts operations by offset, and splits the device into zones of even density: again and again at the place
//!    where zones and counts differ most, until the difference is small enough.

use crate::profile::count_size;
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum number of size classes of a job. It is large enough to keep the distribution close to the observed one.
const MAX_SIZE_CLASSES: usize = 98;

/// The sum of all shares: shares are counted in millionths.
pub(super) const MILLION: u64 = 1_000_000;

/// How often each size in sectors occurred.
#[derive(Clone, Debug, Default)]
pub(super) struct SizeCounts {
    counts: BTreeMap<u32, u64>,
}

/// Sizes in sectors with their shares in millionths, which sum to 1,000,000.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shares {
    pub(super) all: Vec<(u32, u64)>,
    /// Maximum difference between the distribution functions of the observed sizes and of the size classes in `all`.
    pub(super) distance: f64,
}

impl SizeCounts {
    pub(super) fn add(&mut self, sectors: u32) {
        count_size(&mut self.counts, sectors, 1);
    }

    pub(super) fn join(&mut self, other: &Self) {
        other.counts.iter().for_each(|(size, count)| *self.counts.entry(*size).or_default() += count);
    }

    pub(super) fn operations(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(super) fn bytes(&self) -> f64 {
        self.counts.iter().map(|(size, count)| f64::from(*size) * trace::SECTOR as f64 * *count as f64).sum()
    }

    /// Returns the smallest size in sectors.
    pub(super) fn smallest(&self) -> Option<u32> {
        self.counts.keys().next().copied()
    }

    pub(super) fn largest(&self) -> u32 {
        self.counts.keys().next_back().copied().unwrap_or(0)
    }

    /// Reduces the sizes to a few classes, in multiples of `align` sectors. Frequent sizes remain, rounded to `align`.
    /// Neighbouring rare sizes become one class with their mean size.
    pub(super) fn shares(&self, align: u32) -> Shares {
        let operations = self.operations().max(1);
        let few = self.counts.len() <= MAX_SIZE_CLASSES;
        let is_frequent = |count: u64| few || count * MAX_SIZE_CLASSES as u64 / 2 >= operations;
        let mut classes: Vec<(u32, u64)> = Vec::new();
        let mut rare = (0_f64, 0_u64);
        let rounded = |sectors: f64| ((sectors / f64::from(align)).round() as u32).max(1) * align;
        let end_class = |rare: &mut (f64, u64), classes: &mut Vec<(u32, u64)>| {
            let (sum, count) = std::mem::take(rare);
            if count > 0 {
                merge(classes, rounded(sum / count as f64), count);
            }
        };
        for (size, count) in &self.counts {
            if is_frequent(*count) {
                end_class(&mut rare, &mut classes);
                merge(&mut classes, rounded(f64::from(*size)), *count);
                continue;
            }
            rare = (rare.0 + f64::from(*size) * *count as f64, rare.1 + count);
            if rare.1 * MAX_SIZE_CLASSES as u64 / 2 >= operations {
                end_class(&mut rare, &mut classes);
            }
        }
        end_class(&mut rare, &mut classes);
        let distance = self.distance(&classes, operations);
        Shares { all: to_parts(&classes, operations), distance }
    }

    fn distance(&self, classes: &[(u32, u64)], operations: u64) -> f64 {
        let mut edges: Vec<u32> =
            self.counts.keys().copied().chain(classes.iter().map(|class| class.0)).collect();
        edges.sort_unstable();
        let below = |at: u32| classes.iter().filter(|class| class.0 <= at).map(|class| class.1).sum::<u64>();
        let (mut seen, mut counts, mut worst) = (0_u64, self.counts.iter().peekable(), 0_u64);
        for edge in edges {
            while let Some((_, count)) = counts.next_if(|(size, _)| **size <= edge) {
                seen += count;
            }
            worst = worst.max(seen.abs_diff(below(edge)));
        }
        worst as f64 / operations as f64
    }
}

fn merge(classes: &mut Vec<(u32, u64)>, size: u32, count: u64) {
    match classes.last_mut() {
        Some(last) if last.0 == size => last.1 += count,
        _ => classes.push((size, count)),
    }
}

/// Returns shares that sum to [`MILLION`]. They are rounded down, and the remainder goes to the classes that
/// lost most (Hamilton). Omits shares of 0.
pub(super) fn to_parts(classes: &[(u32, u64)], operations: u64) -> Vec<(u32, u64)> {
    let exact = |count: u64| u128::from(count) * u128::from(MILLION);
    let all = u128::from(operations.max(1));
    let mut parts: Vec<(u32, u64)> =
        classes.iter().map(|(size, count)| (*size, (exact(*count) / all) as u64)).collect();
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(exact(classes[*at].1) % all));
    let missing = MILLION.saturating_sub(parts.iter().map(|part| part.1).sum());
    for at in order.into_iter().cycle().take(if parts.is_empty() { 0 } else { missing as usize }) {
        parts[at].1 += 1;
    }
    parts.retain(|part| part.1 > 0);
    parts
}

/// Maximum number of bins.
const MAX_BINS: u64 = 4096;
/// Minimum alignment of bins in sectors: 4 KiB.
const MIN_BIN_SECTORS: u64 = 8;
/// Maximum number of sectors that the bins cover: 2 EiB, more than any device has.
const MAX_SPAN_SECTORS: u64 = 1 << 52;
/// Maximum number of edges of zones. A stream has one zone less.
const MAX_EDGES: usize = 48;
/// A distance (Kolmogorov-Smirnov) up to this value is always small enough.
const NEAR_DISTANCE: f64 = 0.004;
/// The 95 % quantile of random distances is this factor, divided by the square root of the number
/// of operations. A distance up to that quantile is small enough too.
const CHANCE_FACTOR: f64 = 1.36;
/// A distance above this value is never small enough.
const FAR_DISTANCE: f64 = 0.1;

/// Number of operations by offset.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins {
    /// First sector of the first bin.
    pub(super) first: u64,
    /// Sectors per bin.
    pub(super) width: u64,
    counts: Vec<u64>,
}

/// A range of offsets with an even density of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Zone {
    /// Number of bins in the zone.
    pub(super) bins: u64,
    /// Operations that begin in the zone.
    pub(super) operations: u64,
}

impl Bins {
    /// Creates bins over the sectors from `first` to `after_last`, aligned to multiples of `align`.
    pub(super) fn over(first: u64, after_last: u64, align: u64) -> Self {
        let unit = align.max(MIN_BIN_SECTORS);
        let first = first / unit * unit;
        let sectors = after_last.saturating_sub(first).clamp(1, MAX_SPAN_SECTORS);
        let width = sectors.div_ceil(MAX_BINS).next_multiple_of(unit);
        Self { first, width, counts: vec![0; sectors.div_ceil(width) as usize] }
    }

    pub(super) fn add(&mut self, sector: u64) {
        let bin = (sector.saturating_sub(self.first) / self.width) as usize;
        if let Some(count) = self.counts.get_mut(bin) {
            *count += 1;
        }
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Returns the smallest range of bins that has all operations; all bins if there are none.
    pub(super) fn filled(&self) -> Range<usize> {
        let first = self.counts.iter().position(|count| *count > 0).unwrap_or(0);
        let last = self.counts.iter().rposition(|count| *count > 0);
        first..last.map_or(self.counts.len(), |last| last + 1)
    }

    /// Returns the zones of a range of bins, and the maximum difference between the distribution functions of the bins and of the zones.
    pub(super) fn zones(&self, range: Range<usize>) -> (Vec<Zone>, f64) {
        let counts = self.counts.get(range).unwrap_or_default();
        let mut sums = vec![0_u64];
        sums.extend(counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }));
        let all = sums.last().copied().unwrap_or(0).max(1) as f64;
        let near = (CHANCE_FACTOR / all.sqrt()).clamp(NEAR_DISTANCE, FAR_DISTANCE);
        let mut edges = vec![0, counts.len()];
        let mut distance = 0.0;
        // Split where the zones differ most from the observation, until the difference is small enough (Douglas and Peucker, 1973).
        while edges.len() <= MAX_EDGES {
            let worst = edges.windows(2).map(|w| furthest(&sums, w[0], w[1])).enumerate();
            let Some((at, (edge, off))) = worst.max_by(|a, b| a.1.1.total_cmp(&b.1.1)) else { break };
            distance = off / all;
            if distance <= near || edges.len() == MAX_EDGES {
                break;
            }
            edges.insert(at + 1, edge);
        }
        let zone = |w: &[usize]| Zone { bins: (w[1] - w[0]) as u64, operations: sums[w[1]] - sums[w[0]] };
        (edges.windows(2).map(zone).collect(), distance)
    }
}

/// Returns the bin at which the sums differ most from a straight line between two bins, and the difference.
fn furthest(sums: &[u64], from: usize, after_last: usize) -> (usize, f64) {
    let (low, high) = (sums[from] as f64, sums[after_last] as f64);
    let off = |at: usize| {
        let line = low + (high - low) * (at - from) as f64 / (after_last - from) as f64;
        (at, (sums[at] as f64 - line).abs())
    };
    (from + 1..after_last).map(off).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((from, 0.0))
}

#[test]
fn rare_sizes_keep_their_share_and_many_sizes_become_few_classes() {
    let mut counted = SizeCounts::default();
    (0..9949).for_each(|_| counted.add(8));
    (0..51).for_each(|_| counted.add(1024));
    assert_eq!(counted.shares(8), Shares { all: vec![(8, 994_900), (1024, 5100)], distance: 0.0 });
    let mut many = SizeCounts::default();
    (1..=2000_u32).for_each(|size| many.add(size * 8));
    let shares = many.shares(8);
    assert!(shares.all.len() <= MAX_SIZE_CLASSES && shares.distance < 0.06, "{shares:?}");
    assert_eq!(shares.all.iter().map(|share| share.1).sum::<u64>(), MILLION);
    let mean: f64 = shares.all.iter().map(|(size, part)| f64::from(*size) * *part as f64 / 1e6).sum();
    assert!((mean / (8.0 * 2001.0 / 2.0) - 1.0).abs() < 0.01, "{mean}");
    let thirds = to_parts(&[(8, 1), (16, 1), (24, 1)], 3);
    assert_eq!(thirds.iter().map(|part| part.1).sum::<u64>(), MILLION);
}

#[test]
fn two_zones_are_recovered() {
    let mut bins = Bins::over(0, 4096 * 8, 8);
    // The first quarter gets three quarters of the operations.
    (0..300_000_u64).for_each(|at| bins.add(at * 7919 % 1024 * 8));
    (0..100_000_u64).for_each(|at| bins.add((1024 + at * 7919 % 3072) * 8));
    let (zones, distance) = bins.zones(bins.filled());
    assert_eq!(zones, [Zone { bins: 1024, operations: 300_000 }, Zone { bins: 3072, operations: 100_000 }]);
    assert!(distance < 0.004, "{distance}");
    // One hot place, and nothing elsewhere.
    let mut hot = Bins::over(0, 1 << 30, 1);
    (0..1000).for_each(|_| hot.add(1 << 29));
    hot.add(0);
    hot.add((1 << 30) - 1);
    let (zones, distance) = hot.zones(hot.filled());
    assert!(zones.contains(&Zone { bins: 1, operations: 1000 }) && distance < 0.004, "{zones:?}");
    assert_eq!(Bins::over(5, 5, 8).zones(0..1).0.len(), 1);
}
