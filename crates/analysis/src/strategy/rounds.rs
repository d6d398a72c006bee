//! Rounds: every job once, in an order drawn anew for each round.
//!
//! For: the order of all strategies that measure several jobs side by side, and the one that measures each a fixed number of
//! times. Not for: deciding when a job has enough.
//!
//! A slow drift of the device falls on all jobs alike, and no job always follows the same neighbour.

use super::{Budget, Next, Summary};
use model::payload::split_mix;

/// The first run of the order that is not done yet.
pub(super) fn next_in_rounds(done: &[Summary], budget: &Budget) -> Next {
    next_among(done, budget, |rates| (rates.len() as u32) < budget.runs).unwrap_or_else(|| {
        Next::Done(format!("{} jobs were measured {} times each", budget.jobs, budget.runs))
    })
}

/// The next run among the jobs that are open, as their rates say; `None` where none is. Who was measured least often comes
/// first.
pub(super) fn next_among(
    done: &[Summary],
    budget: &Budget,
    is_open: impl Fn(&[f64]) -> bool,
) -> Option<Next> {
    let open: Vec<(usize, u32)> = (0..budget.jobs)
        .map(|job| (job, super::rates(done, job)))
        .filter(|(_, rates)| is_open(rates))
        .map(|(job, rates)| (job, rates.len() as u32))
        .collect();
    let repeat = open.iter().map(|(_, times)| *times).min()?;
    let job = order(budget, repeat).into_iter().find(|job| open.contains(&(*job, repeat)))?;
    Some(Next::Measure { job, repeat, attempt: 0, offered_iops: None })
}

/// The numbers below `count` in the random order of one round (Fisher and Yates).
pub(super) fn shuffled(count: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = split_mix(seed ^ split_mix(u64::from(round)));
    for last in (1..order.len()).rev() {
        state = split_mix(state);
        // The bias of the remainder is below 2^-50 for any list of jobs that fits in memory.
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}

/// The jobs in the order of one round. Jobs of a block stay together, in the order of the first of each.
pub(super) fn order(budget: &Budget, repeat: u32) -> Vec<usize> {
    let mut order = shuffled(budget.jobs, budget.seed, repeat);
    if !budget.blocks.is_empty() {
        let shuffled = order.clone();
        let block = |job: usize| budget.blocks.get(job);
        order.sort_by_key(|job| shuffled.iter().position(|first| block(*first) == block(*job)));
    }
    order
}

#[cfg(test)]
use super::{left, played};
#[cfg(test)]
use model::plan::Strategy;
#[cfg(test)]
use std::collections::BTreeSet;

#[cfg(test)]
fn fixed(jobs: usize, runs: u32, seed: u64) -> Budget {
    Budget {
        jobs,
        runs,
        strategy: Strategy::Fixed,
        seed,
        paired: false,
        attempts: 3,
        ends_ns: None,
        blocks: Vec::new(),
    }
}

#[test]
fn jobs_of_a_block_stay_together_in_an_order_that_changes() {
    let budget = Budget { blocks: vec![0, 0, 0, 1, 1, 2, 2, 2], ..fixed(8, 3, 5) };
    let orders: Vec<Vec<usize>> = (0..20).map(|repeat| order(&budget, repeat)).collect();
    for order in &orders {
        let mut blocks: Vec<usize> = order.iter().map(|job| budget.blocks[*job]).collect();
        blocks.dedup();
        assert_eq!(blocks.len(), 3, "{order:?}");
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 8, "{order:?}");
    }
    let firsts: BTreeSet<usize> = orders.iter().map(|order| order[0]).collect();
    assert!(firsts.len() > 5, "any job may be the first: {firsts:?}");
}

#[cfg(test)]
fn order_of(budget: &Budget) -> Vec<(usize, u32)> {
    played(budget, |_, _| 1.0).iter().map(|s| (s.job, s.repeat)).collect()
}

#[test]
fn every_job_is_measured_once_per_round_and_rounds_follow_one_another() {
    let order = order_of(&fixed(8, 5, 7));
    assert_eq!(order.len(), 40);
    for (r, round) in order.chunks(8).enumerate() {
        assert!(round.iter().all(|s| s.1 == r as u32));
        assert_eq!(round.iter().map(|s| s.0).collect::<BTreeSet<_>>().len(), 8);
    }
    let first: Vec<usize> = order[..8].iter().map(|s| s.0).collect();
    assert!(order.chunks(8).any(|c| c.iter().map(|s| s.0).ne(first.iter().copied())), "rounds differ");
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_seed_another() {
    assert_eq!(order_of(&fixed(6, 3, 1)), order_of(&fixed(6, 3, 1)));
    assert_ne!(order_of(&fixed(6, 3, 1)), order_of(&fixed(6, 3, 2)));
}

#[test]
fn a_replay_of_the_summaries_goes_on_where_it_stopped() {
    let budget = fixed(4, 3, 9);
    let whole = played(&budget, |_, _| 1.0);
    for cut in 0..whole.len() {
        let Next::Measure { job, repeat, .. } = next_in_rounds(&whole[..cut], &budget) else {
            panic!("not done")
        };
        assert_eq!((job, repeat), (whole[cut].job, whole[cut].repeat));
        assert_eq!(left(&whole[..cut], &budget).runs.iter().sum::<u32>(), (whole.len() - cut) as u32);
    }
    assert!(matches!(next_in_rounds(&whole, &budget), Next::Done(_)));
    assert!(matches!(next_in_rounds(&[], &fixed(0, 3, 9)), Next::Done(_)));
}
