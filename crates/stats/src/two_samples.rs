//! Two lists of times compared with each other: by what factor one is the other's, and whether that could be chance.
//!
//! For: the shift of Hodges and Lehmann on logarithms, and the rank test of Mann and Whitney. Both need no assumption about
//! how times are distributed, and an outlier counts as one time and no more. Not for: means, nor whole histograms.

use statrs::distribution::{ContinuousCDF, Normal};

/// The test is a normal approximation, which is good from about eight on each side.
pub const FEWEST: usize = 8;
/// Most times of a list that are looked at. All pairs are formed, so a forged list must not take forever.
const MOST: usize = 256;

/// How the times of `b` compare with those of `a`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Factor from `a` to `b`: the median of all pairs' ratios.
    pub ratio: f64,
    /// Chance of ranks this uneven, or more so, where both lists are of one kind.
    pub p: f64,
}

/// Compares two lists of times; `None` where one has fewer than [`FEWEST`].
pub fn compare(a: &[u64], b: &[u64]) -> Option<Compared> {
    let (a, b) = (logs(a)?, logs(b)?);
    Some(Compared { ratio: shift(&a, &b)?.exp(), p: mann_whitney(&a, &b)? })
}

/// By how much the values of `b` exceed those of `a`: the median of all pairs' differences. Of very long lists the first
/// values are looked at. `None` where one is empty.
pub fn shift(a: &[f64], b: &[f64]) -> Option<f64> {
    let few = |values: &[f64]| values.iter().take(MOST).copied().collect::<Vec<f64>>();
    let (a, b) = (few(a), few(b));
    let mut pairs: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
    pairs.sort_unstable_by(f64::total_cmp);
    // An even number of pairs has two in the middle.
    let (low, high) = (pairs.get(pairs.len().checked_sub(1)? / 2)?, pairs.get(pairs.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Logarithms, so that the difference of two is a ratio. A time of zero counts as the shortest that can be told.
fn logs(times: &[u64]) -> Option<Vec<f64>> {
    let logs: Vec<f64> = times.iter().take(MOST).map(|ns| (*ns).max(1) as f64).map(f64::ln).collect();
    (logs.len() >= FEWEST).then_some(logs)
}

/// The two-sided chance of the ranks, with the correction for equal values and for the steps of a count.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    let (size_a, size_b) = (a.len() as f64, b.len() as f64);
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|v| (*v, true)).chain(b.iter().map(|v| (*v, false))).collect();
    all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let (mut rank_sum, mut ties, mut below) = (0.0, 0.0, 0.0);
    for equal in all.chunk_by(|x, y| x.0.total_cmp(&y.0).is_eq()) {
        let size = equal.len() as f64;
        let of_a = equal.iter().filter(|v| v.1).count() as f64;
        rank_sum += of_a * (below + f64::midpoint(size, 1.0));
        ties += size * (size * size - 1.0);
        below += size;
    }
    let both = size_a + size_b;
    let u = rank_sum - size_a * (size_a + 1.0) / 2.0;
    let variance = size_a * size_b / 12.0 * ((both + 1.0) - ties / (both * (both - 1.0)));
    if variance <= 0.0 {
        // Every value is the same: nothing could be less uneven.
        return Some(1.0);
    }
    let z = ((u - size_a * size_b / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    let normal = Normal::new(0.0, 1.0).ok()?;
    Some((2.0 * normal.sf(z)).clamp(0.0, 1.0))
}

#[cfg(test)]
fn near_within(got: f64, expected: f64, within: f64) -> bool {
    (got - expected).abs() <= within
}

#[test]
fn the_factor_is_the_one_that_was_put_in_and_chance_is_that_of_the_tables() {
    let a: Vec<u64> = (1..=20).map(|i| 1_000 + 10 * i).collect();
    let b: Vec<u64> = a.iter().map(|v| v * 3).collect();
    let c = compare(&a, &b).unwrap();
    assert!(near_within(c.ratio, 3.0, 0.05) && c.p < 1e-6, "{c:?}");
    // All of one side below all of the other, 8 and 8: u = 0, z = (32 - 0.5) / sqrt(64 * 17 / 12).
    let low: Vec<u64> = (1..=8).collect();
    let high: Vec<u64> = (11..=18).collect();
    assert!(near_within(compare(&low, &high).unwrap().p, 0.000_939, 0.000_01));
}

#[test]
fn lists_of_one_kind_do_not_differ_and_short_ones_are_not_compared() {
    let a: Vec<u64> = (0..64).map(|i| 80_000 + 100 * (i % 7)).collect();
    assert_eq!(compare(&a, &a), Some(Compared { ratio: 1.0, p: 1.0 }));
    assert_eq!(compare(&[5; 9], &[5; 9]), Some(Compared { ratio: 1.0, p: 1.0 }));
    assert_eq!(compare(&a, &[1; FEWEST - 1]), None);
    assert_eq!(compare(&[], &[]), None);
}

#[test]
fn absurd_times_give_numbers_and_one_outlier_moves_nothing() {
    let c = compare(&vec![0; 100_000], &vec![u64::MAX; 100_000]).unwrap();
    assert!(c.ratio.is_finite() && c.p.is_finite());
    let a: Vec<u64> = (0..64).map(|i| 50_000 + 10 * i).collect();
    let mut b = a.clone();
    b[3] = 1_000_000_000;
    assert!(near_within(compare(&a, &b).unwrap().ratio, 1.0, 0.01));
}
