//! What to measure next, decided while measuring.
//!
//! For: pure functions from what was measured to what comes next; replaying the summaries resumes. Not for: measuring.
//!
//! Every job is measured once per round, in an order drawn anew for each round. So a slow drift of the device falls on
//! all jobs alike, and no job always follows the same neighbour.

use model::payload::split_mix;
use std::collections::BTreeSet;

/// A run that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Summary {
    /// Index of the job.
    pub job: usize,
    /// How many times it was measured before.
    pub repeat: u32,
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Number of jobs.
    pub jobs: usize,
    /// Times each is measured.
    pub runs: u32,
    /// Seed of the order.
    pub seed: u64,
}

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Measure this.
    Measure {
        /// Index of the job.
        job: usize,
        /// How many times it was measured before.
        repeat: u32,
    },
    /// Nothing more, and why.
    Done(String),
}

/// The first run of the order that is not done yet.
pub fn next(done: &[Summary], budget: &Budget) -> Next {
    let done: BTreeSet<&Summary> = done.iter().collect();
    for repeat in 0..budget.runs {
        let open =
            round(budget, repeat).into_iter().find(|job| !done.contains(&Summary { job: *job, repeat }));
        if let Some(job) = open {
            return Next::Measure { job, repeat };
        }
    }
    Next::Done(format!("{} jobs were measured {} times each", budget.jobs, budget.runs))
}

/// The jobs in the order of one round (Fisher and Yates).
fn round(budget: &Budget, repeat: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..budget.jobs).collect();
    let mut state = split_mix(budget.seed ^ split_mix(u64::from(repeat)));
    for last in (1..order.len()).rev() {
        state = split_mix(state);
        // The bias of the remainder is below 2^-50 for any list of jobs that fits in memory.
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
fn played(budget: &Budget) -> Vec<Summary> {
    let mut done = Vec::new();
    while let Next::Measure { job, repeat } = next(&done, budget) {
        done.push(Summary { job, repeat });
    }
    done
}

#[test]
fn every_job_is_measured_once_per_round_and_rounds_follow_one_another() {
    let budget = Budget { jobs: 8, runs: 5, seed: 7 };
    let order = played(&budget);
    assert_eq!(order.len(), 40);
    for (r, round) in order.chunks(8).enumerate() {
        assert!(round.iter().all(|s| s.repeat == r as u32));
        assert_eq!(round.iter().map(|s| s.job).collect::<BTreeSet<_>>().len(), 8);
    }
    let first: Vec<usize> = order[..8].iter().map(|s| s.job).collect();
    assert!(order.chunks(8).any(|c| c.iter().map(|s| s.job).ne(first.iter().copied())), "rounds differ");
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_seed_another() {
    let budget = Budget { jobs: 6, runs: 3, seed: 1 };
    assert_eq!(played(&budget), played(&budget));
    assert_ne!(played(&budget), played(&Budget { seed: 2, ..budget }));
}

#[test]
fn a_replay_of_the_summaries_goes_on_where_it_stopped() {
    let budget = Budget { jobs: 4, runs: 3, seed: 9 };
    let whole = played(&budget);
    let cut = 5;
    let Next::Measure { job, repeat } = next(&whole[..cut], &budget) else { panic!("not done") };
    assert_eq!(Summary { job, repeat }, whole[cut]);
    assert!(matches!(next(&whole, &budget), Next::Done(_)));
    assert!(matches!(next(&[], &Budget { jobs: 0, ..budget }), Next::Done(_)));
}
