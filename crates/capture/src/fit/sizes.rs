//! Sizes: which there are, with their shares, as a job can say them.
//!
//! For: exact counts, and few enough classes that keep the bytes. Not for: what moves them.

use std::collections::BTreeMap;

/// Sizes that are told apart; what comes beyond counts as the largest below it.
const MAX_DISTINCT_SIZES: usize = 1 << 16;
/// Classes of a job: no more than it takes, and each with so little that the distribution is near.
const MAX_SIZE_CLASSES: usize = 98;
/// The digits of a share, in parts of all.
pub(super) const PARTS: u64 = 1_000_000;

/// How often each size occurred, in sectors.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    counts: BTreeMap<u32, u64>,
}

/// Sizes in sectors with their shares in parts of a million, which sum to that.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shares {
    pub(super) all: Vec<(u32, u64)>,
    /// The largest difference of the two distribution functions.
    pub(super) distance: f64,
}

impl Counted {
    pub(super) fn add(&mut self, sectors: u32) {
        let known = self.counts.len() < MAX_DISTINCT_SIZES || self.counts.contains_key(&sectors);
        let below = || self.counts.range(..sectors).next_back().map_or(sectors, |(size, _)| *size);
        let size = if known { sectors } else { below() };
        *self.counts.entry(size).or_default() += 1;
    }

    pub(super) fn join(&mut self, other: &Self) {
        other.counts.iter().for_each(|(size, count)| *self.counts.entry(*size).or_default() += count);
    }

    pub(super) fn operations(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(super) fn bytes(&self) -> f64 {
        self.counts.iter().map(|(size, count)| f64::from(*size) * crate::SECTOR as f64 * *count as f64).sum()
    }

    /// The smallest of them in sectors.
    pub(super) fn smallest(&self) -> Option<u32> {
        self.counts.keys().next().copied()
    }

    pub(super) fn largest(&self) -> u32 {
        self.counts.keys().next_back().copied().unwrap_or(0)
    }

    /// Few sizes that stand for all, each a multiple of so many sectors. Those that are frequent are themselves; what lies between two of
    /// them is one, as large as its mean.
    pub(super) fn shares(&self, align: u32) -> Shares {
        let operations = self.operations().max(1);
        let few = self.counts.len() <= MAX_SIZE_CLASSES;
        let is_frequent = |count: u64| few || count * MAX_SIZE_CLASSES as u64 / 2 >= operations;
        let mut classes: Vec<(u32, u64)> = Vec::new();
        let mut between = (0_f64, 0_u64);
        let rounded = |sectors: f64| ((sectors / f64::from(align)).round() as u32).max(1) * align;
        let close = |between: &mut (f64, u64), classes: &mut Vec<(u32, u64)>| {
            let (sum, count) = std::mem::take(between);
            if count > 0 {
                merge(classes, rounded(sum / count as f64), count);
            }
        };
        for (size, count) in &self.counts {
            if is_frequent(*count) {
                close(&mut between, &mut classes);
                merge(&mut classes, rounded(f64::from(*size)), *count);
                continue;
            }
            between = (between.0 + f64::from(*size) * *count as f64, between.1 + count);
            if between.1 * MAX_SIZE_CLASSES as u64 / 2 >= operations {
                close(&mut between, &mut classes);
            }
        }
        close(&mut between, &mut classes);
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

/// Shares that sum to all: rounded down, and the rest where most was lost (Hamilton). What rounds to nothing is left out.
pub(super) fn to_parts(classes: &[(u32, u64)], operations: u64) -> Vec<(u32, u64)> {
    let exact = |count: u64| u128::from(count) * u128::from(PARTS);
    let all = u128::from(operations.max(1));
    let mut parts: Vec<(u32, u64)> =
        classes.iter().map(|(size, count)| (*size, (exact(*count) / all) as u64)).collect();
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(exact(classes[*at].1) % all));
    let missing = PARTS.saturating_sub(parts.iter().map(|part| part.1).sum());
    for at in order.into_iter().cycle().take(if parts.is_empty() { 0 } else { missing as usize }) {
        parts[at].1 += 1;
    }
    parts.retain(|part| part.1 > 0);
    parts
}

#[test]
fn rare_sizes_keep_their_share_and_many_become_few() {
    let mut counted = Counted::default();
    (0..9949).for_each(|_| counted.add(8));
    (0..51).for_each(|_| counted.add(1024));
    assert_eq!(counted.shares(8), Shares { all: vec![(8, 994_900), (1024, 5100)], distance: 0.0 });
    let mut many = Counted::default();
    (1..=2000_u32).for_each(|size| many.add(size * 8));
    let shares = many.shares(8);
    assert!(shares.all.len() <= MAX_SIZE_CLASSES && shares.distance < 0.06, "{shares:?}");
    assert_eq!(shares.all.iter().map(|share| share.1).sum::<u64>(), PARTS);
    let mean: f64 = shares.all.iter().map(|(size, part)| f64::from(*size) * *part as f64 / 1e6).sum();
    assert!((mean / (8.0 * 2001.0 / 2.0) - 1.0).abs() < 0.01, "{mean}");
    let thirds = to_parts(&[(8, 1), (16, 1), (24, 1)], 3);
    assert_eq!(thirds.iter().map(|part| part.1).sum::<u64>(), PARTS);
}
