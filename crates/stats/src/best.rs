//! Comparisons with the best: how far each of several candidates may be below the largest, and which surely are.
//!
//! J. C. Hsu, "Multiple Comparisons" (1996), chapter 4. All candidates are measured once in each round.
//!
//! 1. Two candidates are compared by the differences of their logarithms within rounds. What a round did to both cancels.
//! 2. Each difference gets a one-sided t bound. The 5 % are shared among all candidates but one: whichever candidate is the largest in
//!    truth, only its own comparisons with the others can make a statement false.
//! 3. A candidate is below the best by no more than its largest upper bound. It is surely below if a lower bound is above zero.
//!
//! All statements about one set of candidates hold together with 95 % confidence, even for a candidate that is picked by them.

use crate::interval::FEWEST_RUNS;
use crate::sample::{mean, variance};
use crate::student;
use crate::welch::ALLOWED;
use std::collections::BTreeMap;

/// How a candidate compares with the best one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// The best is larger by at most this share of the candidate: 0.04 for 4 %. Infinite if too few rounds have both of a pair.
    pub at_most: f64,
    /// Whether another candidate is larger beyond chance.
    pub is_sure: bool,
}

/// The gap of each candidate to the best. `candidates[i][round]` is positive, or `None` if the candidate has no value in that round.
pub fn gaps(candidates: &[Vec<Option<f64>>]) -> Vec<Gap> {
    let tail = ALLOWED / candidates.len().saturating_sub(1).max(1) as f64;
    let mut factors = BTreeMap::new();
    let mut gap_of = |at: usize| {
        let mut gap = Gap { at_most: 0.0, is_sure: false };
        for (_, rival) in candidates.iter().enumerate().filter(|(other, _)| *other != at) {
            let differences = differences(&candidates[at], rival);
            let runs = differences.len();
            let factor =
                *factors.entry(runs).or_insert_with(|| student::quantile(1.0 - tail, runs as f64 - 1.0));
            let Some(factor) = factor.filter(|_| runs >= FEWEST_RUNS) else {
                gap.at_most = f64::INFINITY;
                continue;
            };
            let half = factor * (variance(&differences) / runs as f64).sqrt();
            let by = mean(&differences);
            gap.at_most = gap.at_most.max((by + half).exp_m1());
            gap.is_sure |= by > half;
        }
        gap
    };
    (0..candidates.len()).map(&mut gap_of).collect()
}

/// By how much the rival's logarithm is larger, in each round that has both.
fn differences(own: &[Option<f64>], rival: &[Option<f64>]) -> Vec<f64> {
    let usable = |value: Option<f64>| value.filter(|v| v.is_finite() && *v > 0.0);
    let both = own.iter().zip(rival).filter_map(|(own, rival)| usable(*own).zip(usable(*rival)));
    both.map(|(own, rival)| (rival / own).ln()).collect()
}

#[cfg(test)]
fn gaps_of_rows(values: &[&[f64]]) -> Vec<Gap> {
    gaps(&values.iter().map(|v| v.iter().copied().map(Some).collect()).collect::<Vec<_>>())
}

#[test]
fn a_gap_is_that_of_the_tables() {
    // Differences 0.1, 0.2, 0.3 of logarithms: mean 0.2, standard error 0.1 / sqrt(3). Three candidates share 5 % by two:
    // t(2 degrees, 0.975) = 4.302653.
    let base = [1.0_f64, 1.0, 1.0];
    let more = [0.1_f64.exp(), 0.2_f64.exp(), 0.3_f64.exp()];
    let gaps = gaps_of_rows(&[&base, &more, &[0.5, 0.5, 0.5]]);
    let half = 4.302_652_729_9 * 0.1 / 3_f64.sqrt();
    assert!((gaps[0].at_most - (0.2 + half).exp_m1()).abs() < 1e-6 && !gaps[0].is_sure, "{gaps:?}");
    assert!((gaps[1].at_most - (half - 0.2).exp_m1()).abs() < 1e-6 && !gaps[1].is_sure, "{gaps:?}");
    assert!(gaps[2].is_sure, "half of it beyond chance: {gaps:?}");
}

#[test]
fn what_a_round_did_to_all_cancels() {
    let rounds = [1.0, 0.4, 2.0, 0.9, 0.1];
    let gaps = gaps_of_rows(&[&rounds, &rounds.map(|r| r * 1.01), &rounds.map(|r| r * 0.5)]);
    assert!((gaps[0].at_most - 0.01).abs() < 1e-9 && gaps[0].is_sure && gaps[1].at_most == 0.0, "{gaps:?}");
}

#[test]
fn candidates_without_three_common_rounds_have_no_bound() {
    let few =
        gaps(&[vec![Some(1.0), Some(1.0), None, Some(1.0)], vec![None, Some(1.0), Some(2.0), Some(1.0)]]);
    assert!(few.iter().all(|g| g.at_most.is_infinite() && !g.is_sure), "{few:?}");
    assert_eq!(gaps_of_rows(&[&[3.0, 4.0]]), [Gap { at_most: 0.0, is_sure: false }], "alone it is the best");
    assert_eq!(gaps(&[]), []);
    assert!(gaps_of_rows(&[&[0.0; 5], &[f64::NAN; 5]]).iter().all(|g| g.at_most.is_infinite()));
}
