//! What to measure next, decided while measuring.
//!
//! For: pure functions from what was measured to what comes next; replaying the summaries resumes. Not for: measuring.
//!
//! Every job is measured once per round, in an order drawn anew for each round. So a slow drift of the device falls on
//! all jobs alike, and no job always follows the same neighbour.

pub mod sweep;

use model::histogram::Histogram;
use model::job::Kind;
use model::payload::split_mix;
use model::plan::Strategy;
use model::record::RunEnd;

/// A run that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Index of the job.
    pub job: usize,
    /// How many times it was measured before.
    pub repeat: u32,
    /// Operations per second that were offered, where the strategy chose them.
    pub offered_iops: Option<u64>,
    /// Operations per second of all phases and streams.
    pub iops: f64,
    /// Latencies of all reads, writes and trims.
    pub latency: Histogram,
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Number of jobs.
    pub jobs: usize,
    /// Times each is measured.
    pub runs: u32,
    /// What decides.
    pub strategy: Strategy,
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
        /// Operations per second to offer in an open loop instead of what the job says.
        offered_iops: Option<u64>,
    },
    /// Nothing more, and why.
    Done(String),
}

impl Summary {
    /// What the ends of a run's phases add up to.
    pub fn of(job: usize, repeat: u32, offered_iops: Option<u64>, phases: &[RunEnd]) -> Self {
        let streams = || phases.iter().flat_map(|p| &p.streams);
        let mut latency = Histogram::new();
        let moving = |kind: &&Kind| **kind != Kind::Sync;
        for end in streams().flat_map(|s| s.kinds.iter().filter(|(k, _)| moving(k)).map(|(_, end)| end)) {
            latency.merge(&end.latency);
        }
        let window = |p: &RunEnd| p.streams.iter().map(|s| s.window_ns).max().unwrap_or(0);
        let seconds = phases.iter().map(window).sum::<u64>() as f64 / 1e9;
        let ops = latency.count() as f64;
        Self { job, repeat, offered_iops, iops: if seconds > 0.0 { ops / seconds } else { 0.0 }, latency }
    }
}

/// The first run of the order that is not done yet.
pub fn next(done: &[Summary], budget: &Budget) -> Next {
    for repeat in 0..budget.runs {
        let is_open = |job: &usize| !done.iter().any(|s| (s.job, s.repeat) == (*job, repeat));
        if let Some(job) = round(budget, repeat).into_iter().find(is_open) {
            return Next::Measure { job, repeat, offered_iops: None };
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
use std::collections::BTreeSet;

#[cfg(test)]
fn played(budget: &Budget) -> Vec<Summary> {
    let mut done = Vec::new();
    while let Next::Measure { job, repeat, offered_iops } = next(&done, budget) {
        done.push(Summary::of(job, repeat, offered_iops, &[]));
    }
    done
}

#[cfg(test)]
fn fixed(jobs: usize, runs: u32, seed: u64) -> Budget {
    Budget { jobs, runs, strategy: Strategy::Fixed, seed }
}

#[test]
fn every_job_is_measured_once_per_round_and_rounds_follow_one_another() {
    let order = played(&fixed(8, 5, 7));
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
    assert_eq!(played(&fixed(6, 3, 1)), played(&fixed(6, 3, 1)));
    assert_ne!(played(&fixed(6, 3, 1)), played(&fixed(6, 3, 2)));
}

#[test]
fn a_replay_of_the_summaries_goes_on_where_it_stopped() {
    let budget = fixed(4, 3, 9);
    let whole = played(&budget);
    let cut = 5;
    let Next::Measure { job, repeat, .. } = next(&whole[..cut], &budget) else { panic!("not done") };
    assert_eq!((job, repeat), (whole[cut].job, whole[cut].repeat));
    assert!(matches!(next(&whole, &budget), Next::Done(_)));
    assert!(matches!(next(&[], &fixed(0, 3, 9)), Next::Done(_)));
}
