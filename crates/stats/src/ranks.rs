//! The second witness: ranks, which suppose no distribution and count an outlier as one run and no more.
//!
//! For: the exact chance of Mann and Whitney, equal values allowed. Not for: long lists, which the normal approximation serves.
//! H. B. Mann, D. R. Whitney, Annals of Mathematical Statistics 18 (1947).

use crate::two_samples;

/// Values in all up to which every order is counted: up to about 30 runs on each side.
const COUNTED_UP_TO: usize = 60;

/// Two-sided chance of ranks this uneven, or more so, where both lists are of one kind. Every assignment of the values to the
/// two sides counts as equally likely, so equal values need no correction.
pub fn chance(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    if a.len() + b.len() > COUNTED_UP_TO {
        return two_samples::mann_whitney(a, b);
    }
    let (ranks, of_a) = doubled_ranks(a, b);
    let ways = ways(&ranks, a.len());
    let all: f64 = ways.iter().sum();
    let below: f64 = ways[..=of_a].iter().sum();
    let above: f64 = ways[of_a..].iter().sum();
    Some((2.0 * below.min(above) / all).min(1.0))
}

/// The chance of the most uneven order that there is: no ranks of so many runs are less likely.
pub fn least(size_a: usize, size_b: usize) -> f64 {
    let ways = (1..=size_a).fold(1.0, |ways, i| ways * (size_b + i) as f64 / i as f64);
    (2.0 / ways).min(1.0)
}

/// Twice the rank of every value, so that those of equal values are whole, and their sum over `a`.
fn doubled_ranks(a: &[f64], b: &[f64]) -> (Vec<usize>, usize) {
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|v| (*v, true)).chain(b.iter().map(|v| (*v, false))).collect();
    all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let (mut ranks, mut of_a) = (Vec::with_capacity(all.len()), 0);
    for equal in all.chunk_by(|x, y| x.0.total_cmp(&y.0).is_eq()) {
        let rank = 2 * ranks.len() + equal.len() + 1;
        ranks.extend(equal.iter().map(|_| rank));
        of_a += rank * equal.iter().filter(|v| v.1).count();
    }
    (ranks, of_a)
}

/// In how many ways so many of the ranks add up to each sum.
fn ways(ranks: &[usize], chosen: usize) -> Vec<f64> {
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

/// scipy.stats.mannwhitneyu(a, b, method="exact"), and with equal values permutation_test() of its statistic over all
/// permutations.
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

#[test]
fn chances_are_those_of_scipy() {
    for (a, b, expected) in SCIPY {
        let got = chance(a, b);
        assert!(near_chance(got, *expected), "{a:?} {b:?}: {got:?}, not {expected}");
        assert_eq!(got, chance(b, a));
    }
}

#[test]
fn the_least_chance_is_that_of_lists_that_do_not_overlap() {
    for (n, m, expected) in
        [(3, 3, 0.1), (4, 4, 0.028_571_428_571), (5, 5, 0.007_936_507_936), (3, 5, 0.035_714_285_714)]
    {
        let low: Vec<f64> = (0..n).map(f64::from).collect();
        let high: Vec<f64> = (100..100 + m).map(f64::from).collect();
        assert!(near_chance(chance(&low, &high), expected), "{n} {m}");
        assert!(near_chance(Some(least(n as usize, m as usize)), expected), "{n} {m}");
    }
    assert_eq!((chance(&[], &[1.0]), least(0, 5)), (None, 1.0));
}

#[test]
fn long_lists_are_approximated_and_agree_where_the_two_meet() {
    let a: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 30)).collect();
    let b: Vec<f64> = a.iter().map(|v| v + 6.5).collect();
    let (exact, rough) = (chance(&a, &b).unwrap(), two_samples::mann_whitney(&a, &b).unwrap());
    assert!((exact / rough - 1.0).abs() < 0.1, "{exact} {rough}");
    let longer = [b.as_slice(), &[3.25]].concat();
    assert_eq!(chance(&a, &longer), two_samples::mann_whitney(&a, &longer));
}
