//! The floors of the tree of hosts: who is above whom.
//!
//! For: each host's place, by its rank. Not for: what goes through the tree ([`super::tree`], [`super::post`]).

use std::ops::Range;

/// Hosts right below one. Three floors below rank 0 are four thousand hosts.
const BELOW: usize = 16;

/// The host right above one that is not rank 0.
pub(super) fn above(rank: usize) -> usize {
    rank.saturating_sub(1) / BELOW
}

/// The hosts right below one, of so many.
pub(super) fn below(rank: usize, size: usize) -> Range<usize> {
    let first = rank * BELOW + 1;
    first.min(size)..(first + BELOW).min(size)
}

#[test]
fn every_host_is_below_one_other_and_few_floors_from_rank_0() {
    for size in [1, 2, 17, 18, 1_000, 10_000] {
        let mut all: Vec<usize> = (0..size).flat_map(|rank| below(rank, size)).collect();
        assert!((0..size).all(|rank| below(rank, size).all(|lower| above(lower) == rank)));
        all.sort_unstable();
        assert_eq!(all, (1..size).collect::<Vec<_>>());
        let floors =
            std::iter::successors(Some(size - 1), |rank| (*rank > 0).then(|| above(*rank))).count() - 1;
        assert!(floors <= 4, "{size} hosts: {floors}");
    }
}
