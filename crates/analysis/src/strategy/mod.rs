//! Decides what to measure next, while measuring.
//!
//! Strategies are pure functions from the runs so far to the next run. So replaying the summaries
//! of a record resumes the measurement. This file selects the strategy of a plan and has the parts
//! that all strategies share: their part of the plan, the time limit, and the remaining work.

pub mod cost;
pub mod disturbed;
pub(crate) mod limit;
pub mod repeats;
pub mod sweep;
mod targets;

use crate::runs::rates_by_repeat;
pub use crate::runs::{Summary, latencies, rate, service_times};
use model::plan::{Plan, Strategy};
use model::record::{Pairing, Record};
use model::report::{Ending, Report};
use model::verdict::{AnswerWord, Limit};

/// The part of a plan that a strategy needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StrategyPlan {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of times that each job is measured; the minimum for strategies that may measure it more often.
    pub runs: u32,
    /// The rule that decides what to measure next.
    pub strategy: Strategy,
    /// Seed of the random order of runs.
    pub seed: u64,
    /// Whether runs of one round are compared with each other.
    pub paired: bool,
    /// Maximum number of attempts at a run that is disturbed each time.
    pub max_attempts: u32,
    /// Time in ns since the start of the session after which no run begins; `None` for no limit.
    pub ends_ns: Option<u64>,
    /// The block number of each job. In each round, the jobs of one block are measured one after another, so that a slow drift of the
    /// device is the same for all of them. Empty if all jobs are mixed.
    pub blocks: Vec<usize>,
    /// Operations per second that conditions on a load curve require.
    pub required_loads: Vec<u64>,
}

impl StrategyPlan {
    /// Takes this part from a plan.
    pub fn from_plan(plan: &Plan) -> Self {
        let Plan { runs, strategy, seed, attempts: max_attempts, budget_ns: ends_ns, .. } = *plan;
        let (jobs, paired, blocks) = (plan.jobs.len(), plan.is_paired(), blocks(plan));
        let required_loads = plan.fail_if.iter().filter_map(|c| required_load(plan, &c.limit)).collect();
        Self { jobs, runs, strategy, seed, paired, max_attempts, ends_ns, blocks, required_loads }
    }

    /// Returns which runs are repeated together if one of them was disturbed.
    fn pairing(&self) -> Pairing {
        match self.strategy {
            Strategy::Targets(layout) => Pairing::Tests(layout),
            _ if self.paired => Pairing::Rounds,
            _ => Pairing::Runs,
        }
    }
}

/// Returns the block number of each job; empty if there are no blocks. In a comparison of interfaces, the jobs of one work form a block.
fn blocks(plan: &Plan) -> Vec<usize> {
    let Some(comparison) = plan.study.interfaces() else { return Vec::new() };
    let mut blocks = vec![usize::MAX; plan.jobs.len()];
    for (number, work) in comparison.candidates.chunk_by(|a, b| a.work == b.work).enumerate() {
        for candidate in work {
            blocks.get_mut(candidate.job).into_iter().for_each(|block| *block = number);
        }
    }
    blocks
}

/// The next step of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// One more run.
    Measure {
        /// Index of the job.
        job: usize,
        /// Number of earlier runs of the job; in a load curve, of runs at the same load.
        repeat: u32,
        /// Number of earlier attempts at this run.
        attempt: u32,
        /// Operations per second to offer in an open loop; `None` for the job's own pace.
        offered_iops: Option<u64>,
    },
    /// The measurement is complete. The text has the reason.
    Done(String),
}

/// The work that remains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemainingRuns {
    /// Remaining runs of each job, including repeats.
    pub runs: Vec<u32>,
    /// Whether the strategy may end before all these runs.
    pub at_most: bool,
    /// How many of these runs are repeats because of a disturbance.
    pub repeats: u32,
}

/// Returns the next run. It may repeat a disturbed run.
pub fn next(done: &[Summary], plan: &StrategyPlan) -> Next {
    let counting = disturbed::counting_runs(done, plan);
    match plan.strategy {
        // The time limit includes repeats.
        Strategy::Targets(layout) => targets::next(done, &counting, plan, layout),
        Strategy::Fixed | Strategy::Precision { .. } if is_time_up(done, plan) => {
            Next::Done("the time was up before all runs were measured".into())
        }
        _ => match next_without_repeats(&counting, plan) {
            // The planned rounds come before repeats if the time may not be enough for both.
            first @ Next::Measure { .. } if is_time_short(done, &counting, plan) => first,
            otherwise => disturbed::next(done, plan, otherwise),
        },
    }
}

/// Returns the next run that is no repeat. `counting` has the runs that count.
fn next_without_repeats(counting: &[Summary], plan: &StrategyPlan) -> Next {
    match plan.strategy {
        // With `--settle`, the caller sets the number of runs of the plan.
        Strategy::Fixed | Strategy::Settle { .. } => repeats::next_in_rounds(counting, plan),
        Strategy::Targets(layout) => targets::next(counting, counting, plan, layout),
        Strategy::Limit(latency_target) => limit::next(counting, plan, &latency_target),
        Strategy::Precision { share, at_most } => repeats::next_until_precise(counting, plan, share, at_most),
        Strategy::Steady { at_most } => repeats::next_until_steady(counting, plan, at_most),
    }
}

/// Returns how long the storage rests before the next run, in ns.
pub fn rest_ns(done: &[Summary], plan: &StrategyPlan) -> u64 {
    match plan.strategy {
        Strategy::Limit(latency_target) => limit::rest_ns(done, &latency_target),
        _ => 0,
    }
}

/// Returns the remaining work, as far as it can be known.
pub fn remaining_runs(done: &[Summary], plan: &StrategyPlan) -> RemainingRuns {
    let mut remaining = remaining_without_repeats(done, plan);
    for repeat in disturbed::waiting_repeats(done, plan) {
        remaining.repeats += 1;
        remaining.runs.iter_mut().skip(repeat.attempt.job).take(1).for_each(|runs| *runs += 1);
    }
    // Add the runs that the first runs may call for.
    if let Strategy::Settle { at_most } = plan.strategy {
        remaining.runs.iter_mut().for_each(|runs| *runs += at_most.saturating_sub(plan.runs));
        remaining.at_most = true;
    }
    remaining
}

/// Returns the remaining work without repeats.
fn remaining_without_repeats(done: &[Summary], plan: &StrategyPlan) -> RemainingRuns {
    let counting = disturbed::counting_runs(done, plan);
    let rates = (0..plan.jobs).map(|job| rates(&counting, job));
    let (runs, at_most): (Vec<u32>, bool) = match plan.strategy {
        Strategy::Fixed | Strategy::Settle { .. } => {
            (rates.map(|r| plan.runs.saturating_sub(r.len() as u32)).collect(), false)
        }
        Strategy::Targets(layout) => (targets::remaining_runs(done, &counting, plan, layout), true),
        Strategy::Limit(latency_target) => (limit::remaining_runs(&counting, plan, &latency_target), false),
        Strategy::Precision { share, at_most } => {
            let open = repeats::open_jobs_for_precision(&counting, plan, share, at_most);
            // With a time limit, count only the next round: the time decides whether more rounds follow.
            let next = |r: &[f64]| plan.runs.max(r.len() as u32 + 1);
            let most = |r: &[f64]| if plan.ends_ns.is_some() { next(r) } else { at_most };
            let runs = rates.zip(open).map(|(r, is_open)| runs_up_to(&r, most(&r), is_open));
            (runs.collect(), plan.ends_ns.is_none())
        }
        Strategy::Steady { at_most } => {
            let is_open = |r: &[f64]| repeats::needs_runs_until_steady(r, at_most);
            (rates.map(|r| runs_up_to(&r, at_most, is_open(&r))).collect(), true)
        }
    };
    RemainingRuns { runs, at_most, repeats: 0 }
}

/// Returns how many runs a job still needs to have `at_most` runs; 0 unless the job `is_open`.
fn runs_up_to(rates: &[f64], at_most: u32, is_open: bool) -> u32 {
    if is_open { at_most.saturating_sub(rates.len() as u32) } else { 0 }
}

/// Returns the lowest load in operations per second that satisfies the limit of a condition. `None` if the limit is not a rate, or if it is
/// in MB/s and the block size varies.
fn required_load(plan: &Plan, limit: &Limit) -> Option<u64> {
    let iops = match limit {
        Limit::Iops { at_least } => *at_least,
        Limit::MbPerS { at_least } => {
            let stream = plan.jobs.first()?.phases.first()?.streams.first()?;
            at_least * 1e6 / f64::from(stream.access.block_bytes()?)
        }
        Limit::Latency { .. } | Limit::Time { .. } => return None,
    };
    Some(iops.ceil() as u64)
}

/// Whether another run would probably end after the time limit.
pub(crate) fn is_time_up(done: &[Summary], plan: &StrategyPlan) -> bool {
    runs_that_fit(done, plan) == Some(0)
}

/// Returns how many runs probably end before the time limit. A run is assumed to take as long as the slowest so far, with the pause
/// before it. Before two runs have ended, it is assumed to take no time. `None` without a time limit, or before the first run has ended.
pub(crate) fn runs_that_fit(done: &[Summary], plan: &StrategyPlan) -> Option<u64> {
    let mut ends = done.iter().filter(|s| !s.refused).map(|s| s.ended_ns);
    let (ends_ns, mut last) = (plan.ends_ns?, ends.next()?);
    let mut longest = 1;
    for end in ends {
        longest = longest.max(end.saturating_sub(last));
        last = end;
    }
    Some(ends_ns.saturating_sub(last) / longest)
}

/// Whether the rest of the time is needed for the planned runs that were not measured yet. A run is assumed to take the mean time of the
/// runs so far. `counting` has the runs that count.
fn is_time_short(done: &[Summary], counting: &[Summary], plan: &StrategyPlan) -> bool {
    let mut ends = done.iter().filter(|s| !s.refused).map(|s| s.ended_ns);
    let (Some(ends_ns), Some(first)) = (plan.ends_ns, ends.next()) else { return false };
    let (count, last) = ends.fold((0_u64, first), |(count, _), end| (count + 1, end));
    let planned = plan.jobs as u64 * u64::from(plan.runs);
    let counted = (0..plan.jobs).map(|job| rates(counting, job).len().min(plan.runs as usize) as u64);
    let remaining = planned.saturating_sub(counted.sum());
    let mean_run_ns = last.saturating_sub(first) / count.max(1);
    remaining > 0 && last.saturating_add(mean_run_ns.saturating_mul(remaining + 1)) > ends_ns
}

/// Returns the rates of a job so far, in the order of its runs.
fn rates(done: &[Summary], job: usize) -> Vec<f64> {
    done.iter().filter(|s| s.job == job).map(|s| s.iops).collect()
}

/// Explains the number of runs of `--settle`; `None` for other strategies, for a session that did not end as planned, and if no further runs
/// were measured because a finding withholds or relabels the number.
pub(crate) fn settle_note(record: &Record, report: &Report) -> Option<String> {
    let Strategy::Settle { at_most } = record.header.plan.strategy else { return None };
    let (first, measured) = (record.header.plan.runs, rates_by_repeat(record, 0).len() as u32);
    let is_decided = match report.answer.as_ref()?.word {
        AnswerWord::Pass | AnswerWord::Fail => true,
        AnswerWord::Inconclusive => false,
        _ if measured <= first => return None,
        _ => true,
    };
    let is_complete = report.ending == Ending::Complete;
    repeats::settle_note(first, measured, at_most, is_decided).filter(|_| is_complete)
}

/// Describes how the strategy of a record ended for each job; empty if the strategy decided nothing.
pub(crate) fn notes(record: &Record) -> Vec<String> {
    let plan = &record.header.plan;
    let note_of = |(at, job): (usize, &model::job::Job)| {
        let rates: Vec<f64> = rates_by_repeat(record, at).into_iter().map(|(_, rate)| rate).collect();
        match plan.strategy {
            // The note of --settle depends on the answer, and covers all jobs.
            Strategy::Fixed | Strategy::Limit(_) | Strategy::Targets(_) | Strategy::Settle { .. } => None,
            // The table of interfaces has the interval of each row.
            Strategy::Precision { .. } if plan.study.interfaces().is_some() => None,
            Strategy::Precision { share, .. } => repeats::precision_note(&job.name, &rates, share),
            Strategy::Steady { at_most } => repeats::steady_note(&job.name, &rates, at_most),
        }
    };
    let targets_note = match plan.strategy {
        Strategy::Targets(layout) => targets::note(record, layout),
        _ => None,
    };
    plan.jobs.iter().enumerate().filter_map(note_of).chain(targets_note).collect()
}

/// Lists jobs, numbered from 1: `jobs 1, 3 and 4`.
fn jobs_in_words(jobs: &[usize]) -> String {
    let numbers: Vec<String> = jobs.iter().map(|j| (j + 1).to_string()).collect();
    match numbers.as_slice() {
        [] => "no job".into(),
        [one] => format!("job {one}"),
        [rest @ .., last] => format!("jobs {} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
fn a_summary(job: usize, repeat: u32, iops: f64) -> Summary {
    Summary { refused: false, iops, ..Summary::refused(job, repeat) }
}

/// Plays a strategy to its end, with a rate for each run of each job.
#[cfg(test)]
fn play(plan: &StrategyPlan, rate: impl Fn(usize, u32) -> f64) -> Vec<Summary> {
    let mut done = Vec::new();
    while let Next::Measure { job, repeat, .. } = next(&done, plan) {
        let before = remaining_runs(&done, plan).runs;
        done.push(a_summary(job, repeat, rate(job, repeat)));
        assert!(before[job] > remaining_runs(&done, plan).runs[job], "every run leaves fewer runs");
    }
    assert!(remaining_runs(&done, plan).runs.iter().all(|r| *r == 0));
    done
}

#[test]
fn jobs_are_counted_from_one() {
    assert_eq!(jobs_in_words(&[0]), "job 1");
    assert_eq!(jobs_in_words(&[0, 2, 3]), "jobs 1, 3 and 4");
}
