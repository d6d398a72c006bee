//! Strategies that repeat jobs: a fixed number of rounds, until the interval is narrow, until the rate is steady, or as many as a gate needs.
//!
//! 1. Rounds (`Fixed`): every job once in each round, in an order drawn anew. A slow drift of the device affects all jobs alike, and no job
//!    always follows the same neighbour.
//! 2. `Precision`: a job is measured until its interval is narrow enough. If it stopped at the first narrow interval, it would stop too
//!    often by luck, and the interval would cover the truth less often than it claims (Anscombe 1953; Law and Kelton, Simulation Modeling
//!    and Analysis, section 9.4.1). So there is a minimum number of runs, and the interval must be narrow twice: after the last run and
//!    after the one before. A simulation below checks the remaining error.
//! 3. `Steady`: a job is measured round after round until its rate no longer drifts (`stats::steady_state`).
//! 4. `Settle`: after the first runs, one more set of runs, as many as should decide the gates (C. Stein, "A Two-Sample
//!    Test for a Linear Hypothesis Whose Power is Independent of the Variance", Annals of Mathematical Statistics 16,
//!    1945). A gate that decides after every run would pass by luck sooner or later. So a gate decides at most twice,
//!    and each decision may err only half as often.

use crate::strategy::{Next, StrategyPlan, Summary, jobs_in_words, rates};
use model::comparison::{Comparison, GateOutcome};
use model::payload::split_mix;
use model::plan::{Plan, Strategy};
use model::report::{AnswerWord, Report};
use model::units::{show_counted, show_rate, show_share};
use stats::intervals;
use stats::sample::variance;
use stats::steady_state::{DRIFT, WINDOW, is_steady};
use std::collections::BTreeMap;

/// Returns the next run of a fixed number of rounds: the first one that is not done yet, in the
/// order of the rounds. `Done` after the last round.
pub(super) fn next_in_rounds(done: &[Summary], plan: &StrategyPlan) -> Next {
    next_among(done, plan, |_, rates| (rates.len() as u32) < plan.runs).unwrap_or_else(|| {
        Next::Done(format!(
            "all planned runs were measured (jobs: {}, runs of each: {})",
            plan.jobs, plan.runs
        ))
    })
}

/// Returns the next run of the jobs that need more runs; `None` if no job does. `is_open` gets the
/// index and the rates of a job, and returns whether the job needs another run. The jobs with the
/// fewest runs come first.
fn next_among(
    done: &[Summary],
    plan: &StrategyPlan,
    is_open: impl Fn(usize, &[f64]) -> bool,
) -> Option<Next> {
    let open: Vec<(usize, u32)> = (0..plan.jobs)
        .map(|job| (job, rates(done, job)))
        .filter(|(job, rates)| is_open(*job, rates))
        .map(|(job, rates)| (job, rates.len() as u32))
        .collect();
    let repeat = open.iter().map(|(_, runs)| *runs).min()?;
    let job = order(plan, repeat).into_iter().find(|job| open.contains(&(*job, repeat)))?;
    Some(Next::Measure { job, repeat, attempt: 0, offered_iops: None })
}

/// Returns the numbers below `count` in the random order of a round (Fisher and Yates).
pub(super) fn random_order(count: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = split_mix(seed ^ split_mix(u64::from(round)));
    for last in (1..order.len()).rev() {
        state = split_mix(state);
        // The bias of the remainder is below 2^-40 for fewer than 2^24 jobs.
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}

/// Returns the jobs in the order of a round. Jobs of a block stay together, at the place of the block's first job.
pub(super) fn order(plan: &StrategyPlan, repeat: u32) -> Vec<usize> {
    let mut order = random_order(plan.jobs, plan.seed, repeat);
    if !plan.blocks.is_empty() {
        let shuffled = order.clone();
        let block = |job: usize| plan.blocks.get(job);
        order.sort_by_key(|job| shuffled.iter().position(|first| block(*first) == block(*job)));
    }
    order
}

/// Maximum number of rates that a note lists.
const MAX_SHOWN: usize = 25;

/// Returns the next round of the first job that is not steady. Jobs are measured one after another, because rounds of
/// other jobs in between would let the device rest.
pub(super) fn next_until_steady(done: &[Summary], plan: &StrategyPlan, at_most: u32) -> Next {
    let is_open = |job: &usize| needs_runs_until_steady(&rates(done, *job), at_most);
    if let Some(job) = order(plan, 0).into_iter().find(is_open) {
        let repeat = rates(done, job).len() as u32;
        return Next::Measure { job, repeat, attempt: 0, offered_iops: None };
    }
    end_with_reason(
        done,
        plan,
        |rates| is_steady(rates, at_most),
        ["is steady", "became steady"],
        &format!("{at_most} rounds"),
    )
}

/// Ends a strategy. The reason names the jobs that reached the strategy's goal, and those that did not within the maximum number of
/// rounds or runs (`within`). `all` completes the sentence `every job ...`, and `some` follows the names of the jobs that reached the
/// goal: `is steady` and `became steady`.
fn end_with_reason(
    done: &[Summary],
    plan: &StrategyPlan,
    is_achieved: impl Fn(&[f64]) -> bool,
    [all, some]: [&str; 2],
    within: &str,
) -> Next {
    let (achieved, missed): (Vec<usize>, Vec<usize>) =
        (0..plan.jobs).partition(|job| is_achieved(&rates(done, *job)));
    if missed.is_empty() {
        return Next::Done(format!("every job {all}"));
    }
    let (achieved, missed) = (jobs_in_words(&achieved), jobs_in_words(&missed));
    Next::Done(format!("{achieved} {some}; {missed} did not within {within}"))
}

/// Whether a job with these rates needs another round. The decision depends on `at_most` also because
/// the allowed error is divided among the rounds after which a job may end.
pub(super) fn needs_runs_until_steady(rates: &[f64], at_most: u32) -> bool {
    (rates.len() as u32) < at_most && !is_steady(rates, at_most)
}

/// Returns a note for a job with `--until steady`: whether it became steady, and its rate in each round.
/// `None` without a run.
pub(super) fn steady_note(job: &str, rates: &[f64], at_most: u32) -> Option<String> {
    if rates.is_empty() {
        return None;
    }
    let rounds = rates.len();
    let shown: Vec<String> = rates.iter().take(MAX_SHOWN).map(|r| show_rate(*r)).collect();
    let more = if rounds > MAX_SHOWN { "; ..." } else { "" };
    let by_round = format!("IOPS by round: {}{more}", shown.join("; "));
    Some(if is_steady(rates, at_most) {
        format!("{job}: steady after {rounds} rounds, of which the last {WINDOW} count. {by_round}")
    } else {
        format!(
            "{job}: not steady within {}: the rate may still drift by {} % or more over {WINDOW} rounds. \
             The result uses the last {}. {by_round}",
            show_counted(rounds as u64, "round"),
            DRIFT * 100.0,
            if rounds == 1 { "one".to_owned() } else { rounds.min(WINDOW).to_string() }
        )
    })
}

/// The interval must be narrow after each of this many successive runs. A single narrow interval may be luck.
pub(super) const IN_A_ROW: usize = 2;

/// Returns the next run of the jobs whose interval is too wide, and of all jobs of their blocks.
pub(super) fn next_until_precise(done: &[Summary], plan: &StrategyPlan, share: f64, at_most: u32) -> Next {
    let is_open = open_jobs_for_precision(done, plan, share, at_most);
    next_among(done, plan, |job, _| is_open.get(job) == Some(&true)).unwrap_or_else(|| {
        let reached = format!("reached {}", show_share(share));
        let within = format!("{at_most} runs");
        end_with_reason(done, plan, |rates| is_precise(rates, share), [&reached, &reached], &within)
    })
}

/// Returns for each job whether it needs another run. A block begins another round if the interval of one of
/// its jobs is too wide. A round that has begun is completed, so that all jobs of the block are compared over
/// the same rounds. A refused job has a rate of zero, and needs no run after the planned rounds.
pub(super) fn open_jobs_for_precision(
    done: &[Summary],
    plan: &StrategyPlan,
    share: f64,
    at_most: u32,
) -> Vec<bool> {
    let rates: Vec<Vec<f64>> = (0..plan.jobs).map(|job| rates(done, job)).collect();
    let block = |job: usize| plan.blocks.get(job).copied().unwrap_or(job);
    // The most runs of a job, and whether an interval is too wide, for each block.
    let mut blocks: BTreeMap<usize, (usize, bool)> = BTreeMap::new();
    for (job, rates) in rates.iter().enumerate() {
        let (runs, is_wide) = blocks.entry(block(job)).or_default();
        *runs = rates.len().max(*runs);
        let is_refused = plan.blocks.len() > job && rates.len() as u32 >= plan.runs && rates.contains(&0.0);
        *is_wide |= !is_refused && needs_runs_for_precision(rates, plan.runs, share, at_most);
    }
    let is_open = |(job, rates): (usize, &Vec<f64>)| {
        let (runs, is_wide) = blocks.get(&block(job)).copied().unwrap_or_default();
        let is_complete = rates.len() as u32 >= plan.runs && rates.len() == runs;
        !is_complete || is_wide
    };
    rates.iter().enumerate().map(is_open).collect()
}

/// Whether a job with these rates needs another run.
fn needs_runs_for_precision(rates: &[f64], at_least: u32, share: f64, at_most: u32) -> bool {
    let runs = rates.len() as u32;
    runs < at_least || (runs < at_most && !is_precise(rates, share))
}

/// Whether the interval of these rates is narrow enough, and already was before the last rate.
fn is_precise(rates: &[f64], share: f64) -> bool {
    let narrow = |runs: usize| half_share(rates.get(..runs).unwrap_or_default()).is_some_and(|h| h <= share);
    rates.len() >= IN_A_ROW && (0..IN_A_ROW).all(|back| narrow(rates.len() - back))
}

/// Returns half the width of the 95 % interval of the mean rate, as a share of the mean; `None`
/// without an interval, or if the mean is 0.
fn half_share(rates: &[f64]) -> Option<f64> {
    let mean = intervals::mean(rates)?;
    let [low, high] = mean.interval?;
    (mean.value > 0.0).then(|| (high - low) / 2.0 / mean.value)
}

/// Returns a note on whether the interval of a job became as narrow as requested; `None` without a run.
pub(super) fn precision_note(job: &str, rates: &[f64], share: f64) -> Option<String> {
    let (runs, requested_share) = (rates.len(), show_share(share));
    let Some(half) = half_share(rates) else {
        return (runs > 0).then(|| {
            format!(
                "{job}: the rate has no interval (runs measured: {runs}), and {requested_share} was requested"
            )
        });
    };
    let reached = show_share(half);
    if is_precise(rates, share) {
        return Some(format!(
            "{job}: adaptive: stopped after {runs} runs, when the interval was {reached} to either side ({requested_share} was requested)"
        ));
    }
    let more = match estimate_needed_runs(rates, share) {
        Some(needed) if needed > runs as u32 => {
            format!("about {needed} runs would be enough if they vary like these")
        }
        // The interval was narrow only once, or the session was interrupted.
        Some(_) => "one or two more runs should be enough; type a larger --max-runs, or measure again without interruption"
            .into(),
        None => {
            format!(
                "more than {} runs would be needed; longer runs may vary less (--time)",
                intervals::MAX_RECOMMENDED_RUNS
            )
        }
    };
    Some(format!(
        "{job}: the interval is {reached} to either side after {runs} runs, and {requested_share} was requested: {more}"
    ))
}

/// Returns the number of runs that would make the interval narrow enough with the same variation; `None` above [`intervals::MAX_RECOMMENDED_RUNS`].
fn estimate_needed_runs(rates: &[f64], share: f64) -> Option<u32> {
    intervals::runs_for(variance(&rates.iter().map(|r| r.ln()).collect::<Vec<_>>()), share)
}

/// Returns the total number of runs of each workload that should decide the gates, limited to `at_most` of the plan.
/// `None` if the first runs decided, if more runs would not help, or without `--settle`.
pub fn runs_to_settle(report: &Report, plan: &Plan) -> Option<u32> {
    let Strategy::Settle { at_most } = plan.strategy else { return None };
    report.answer.as_ref().filter(|a| a.word == AnswerWord::Inconclusive)?;
    // `runs_needed` is `None` if even `gate::MAX_ADVISED_RUNS` runs seem too few. Measure `at_most` runs then, because
    // more runs may change this estimate.
    let for_conditions =
        report.gates.iter().filter(|g| g.is_undecided_near_limit()).map(|g| g.runs_needed.unwrap_or(at_most));
    let for_comparison =
        report.against.as_ref().and_then(|against| runs_for_sides(&against.workload_comparison, at_most));
    let needed = for_conditions.chain(for_comparison).max()?;
    Some(needed.min(at_most)).filter(|runs| *runs > plan.runs)
}

/// Returns the number of runs that would decide a gate between two sides, or `at_most` if that number is unknown. `None` if the
/// gate is decided already, or if the headline has no number to compare.
fn runs_for_sides(comparison: &Comparison, at_most: u32) -> Option<u32> {
    let gate = comparison.gate.as_ref().filter(|g| g.outcome == GateOutcome::Undecided)?;
    let has_number =
        comparison.headline().is_some_and(|pair| pair.refused.is_none() && !pair.metrics.is_empty());
    has_number.then(|| gate.runs_needed.unwrap_or(at_most))
}

/// Notes that a second set of runs was needed, or why there was none. `first` and `at_most` are the planned runs, `is_decided` whether the
/// answer is PASS or FAIL. `None` if runs are missing, or if no more were allowed.
pub(super) fn settle_note(first: u32, measured: u32, at_most: u32, is_decided: bool) -> Option<String> {
    if measured > first {
        return Some(format!(
            "settle: the first {first} runs did not decide, so {measured} runs were measured in total; the 95 % \
             confidence covers both sets"
        ));
    }
    let why = if is_decided { "they decided" } else { "more would not decide" };
    (measured == first && first < at_most)
        .then(|| format!("settle: stopped after the first {first} of at most {at_most} runs, because {why}"))
}

#[cfg(test)]
use crate::strategy::{play, remaining_runs, targets};
#[cfg(test)]
use crate::{Judging, fixture::Fixture, judge};
#[cfg(test)]
use stats::series::Noise;

#[cfg(test)]
use std::collections::BTreeSet;

/// Returns the total number of runs that an honest record with this condition needs, as estimated from its first runs.
#[cfg(test)]
fn runs_called_for(condition: &str, strategy: Strategy, runs_first: u32) -> Option<u32> {
    let mut record = Fixture { runs: runs_first, ..Fixture::honest() }.record();
    let plan = &mut record.header.plan;
    plan.fail_if = model::spec::conditions::conditions(condition).unwrap();
    (plan.strategy, plan.runs) = (strategy, runs_first);
    runs_to_settle(&judge(&record, &Judging::default()), &record.header.plan)
}

#[cfg(test)]
const MAX_ROUNDS: u32 = 25;

#[cfg(test)]
fn precision_plan(jobs: usize, share: f64) -> StrategyPlan {
    StrategyPlan {
        jobs,
        runs: 5,
        strategy: Strategy::Precision { share, at_most: 10 },
        seed: 3,
        max_attempts: 3,
        ..StrategyPlan::default()
    }
}

#[cfg(test)]
fn fixed_plan(jobs: usize, runs: u32, seed: u64) -> StrategyPlan {
    StrategyPlan { jobs, runs, seed, max_attempts: 3, ..StrategyPlan::default() }
}

#[test]
fn jobs_of_a_block_stay_together_in_an_order_that_changes() {
    let plan = StrategyPlan { blocks: vec![0, 0, 0, 1, 1, 2, 2, 2], ..fixed_plan(8, 3, 5) };
    let orders: Vec<Vec<usize>> = (0..20).map(|repeat| order(&plan, repeat)).collect();
    for order in &orders {
        let mut blocks: Vec<usize> = order.iter().map(|job| plan.blocks[*job]).collect();
        blocks.dedup();
        assert_eq!(blocks.len(), 3, "{order:?}");
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 8, "{order:?}");
    }
    let firsts: BTreeSet<usize> = orders.iter().map(|order| order[0]).collect();
    assert!(firsts.len() > 5, "any job may be the first: {firsts:?}");
}

#[cfg(test)]
fn measured_order(plan: &StrategyPlan) -> Vec<(usize, u32)> {
    play(plan, |_, _| 1.0).iter().map(|s| (s.job, s.repeat)).collect()
}

#[test]
fn every_job_is_measured_once_per_round_and_rounds_follow_one_another() {
    let order = measured_order(&fixed_plan(8, 5, 7));
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
    assert_eq!(measured_order(&fixed_plan(6, 3, 1)), measured_order(&fixed_plan(6, 3, 1)));
    assert_ne!(measured_order(&fixed_plan(6, 3, 1)), measured_order(&fixed_plan(6, 3, 2)));
}

#[test]
fn a_replay_of_the_summaries_continues_where_it_stopped() {
    let plan = fixed_plan(4, 3, 9);
    let complete = play(&plan, |_, _| 1.0);
    for cut in 0..complete.len() {
        let Next::Measure { job, repeat, .. } = next_in_rounds(&complete[..cut], &plan) else {
            panic!("not done")
        };
        assert_eq!((job, repeat), (complete[cut].job, complete[cut].repeat));
        assert_eq!(
            remaining_runs(&complete[..cut], &plan).runs.iter().sum::<u32>(),
            (complete.len() - cut) as u32
        );
    }
    assert!(matches!(next_in_rounds(&complete, &plan), Next::Done(_)));
    assert!(matches!(next_in_rounds(&[], &fixed_plan(0, 3, 9)), Next::Done(_)));
}

#[test]
fn jobs_are_measured_one_after_another_and_each_until_it_is_steady() {
    let plan = StrategyPlan { strategy: Strategy::Steady { at_most: MAX_ROUNDS }, ..fixed_plan(3, 5, 3) };
    let rate = |job: usize, repeat: u32| match job {
        0 => 100.0,
        1 => 100.0 * 0.95_f64.powi(repeat.min(8) as i32),
        _ => 100.0 * 0.95_f64.powi(repeat as i32),
    };
    let done = play(&plan, rate);
    let counts: Vec<usize> = (0..3).map(|job| rates(&done, job).len()).collect();
    assert_eq!(counts, [5, 13, 25]);
    assert_eq!(done.chunk_by(|a, b| a.job == b.job).count(), 3, "no rounds in between");
    let Next::Done(why) = crate::strategy::next(&done, &plan) else { panic!("the strategy continues") };
    assert_eq!(why, "jobs 1 and 2 became steady; job 3 did not within 25 rounds");
    for cut in 0..done.len() {
        let Next::Measure { job, repeat, .. } = crate::strategy::next(&done[..cut], &plan) else {
            panic!("not done")
        };
        assert_eq!((job, repeat), (done[cut].job, done[cut].repeat));
    }
}

#[test]
fn a_note_lists_the_rates_by_round() {
    let sentence = steady_note("4K", &[300.0, 200.0, 100.0, 100.0, 100.0, 100.0, 100.0], MAX_ROUNDS).unwrap();
    assert!(sentence.contains("after 7 rounds") && sentence.contains("300; 200; 100"), "{sentence}");
    let sentence = steady_note("4K", &[300.0, 200.0], MAX_ROUNDS).unwrap();
    assert!(sentence.contains("not steady within 2 rounds") && sentence.contains("last 2"), "{sentence}");
    assert_eq!(steady_note("4K", &[], MAX_ROUNDS), None);
}

#[test]
fn quiet_jobs_stop_early_and_noisy_ones_at_the_limit() {
    let rate_of = |job: usize, repeat: u32| match (job, repeat % 2) {
        (1, 0) => 80.0,
        (1, _) => 120.0,
        _ => 100.0 + f64::from(repeat % 3) / 10.0,
    };
    let done = play(&precision_plan(3, 0.025), rate_of);
    let runs: Vec<usize> = (0..3).map(|job| rates(&done, job).len()).collect();
    assert_eq!(runs, [5, 10, 5]);
    let Next::Done(why) = crate::strategy::next(&done, &precision_plan(3, 0.025)) else {
        panic!("the strategy continues")
    };
    assert_eq!(why, "jobs 1 and 3 reached 2.5 %; job 2 did not within 10 runs");
    // The noisy job is alone in its last rounds.
    assert!(done[15..].iter().all(|s| s.job == 1));
    assert!(matches!(
        crate::strategy::next(&done[..15], &precision_plan(3, 0.025)),
        Next::Measure { job: 1, repeat: 5, .. }
    ));
}

/// Two blocks of three jobs with a budget of `seconds`. The tests let each run take a second.
#[cfg(test)]
fn blocks_plan(seconds: u64) -> StrategyPlan {
    let strategy = Strategy::Precision { share: 0.10, at_most: 30 };
    let (blocks, ends_ns) = (vec![0, 0, 0, 1, 1, 1], Some(seconds * 1_000_000_000));
    StrategyPlan {
        jobs: 6,
        runs: 5,
        strategy,
        blocks,
        ends_ns,
        seed: 3,
        max_attempts: 3,
        ..StrategyPlan::default()
    }
}

#[test]
fn blocks_with_a_wide_interval_share_the_rest_of_the_budget_and_stay_complete() {
    let plan = blocks_plan(60);
    let mut noise = Noise(4);
    // Only job 1 varies, by 15 %.
    let rate = |run: &Summary| if run.job == 1 { (0.15 * noise.normal()).exp() } else { 1.0 };
    let (done, why) = targets::play(&plan, rate);
    let counts: Vec<usize> = (0..6).map(|job| rates(&done, job).len()).collect();
    assert_eq!(counts[3..], [5; 3], "{counts:?}");
    // The time may be up within a round.
    assert!(counts[..3].iter().all(|n| n.abs_diff(14) <= 1), "{counts:?}");
    assert!(done.len() > 30 && done.last().is_some_and(|run| run.ended_ns <= 60_000_000_000), "{why}");
    // A refused job gets no number, and asks for no more rounds.
    let (done, _) = targets::play(&plan, |run| if run.job == 4 { 0.0 } else { 100.0 });
    assert_eq!(done.len(), 30);
}

#[test]
fn planned_rounds_come_before_repeats_and_repeats_fill_the_rest_of_the_budget() {
    let disturbed = |run: &Summary| run.repeat == 0 && run.attempt == 0 && run.job < 4;
    let order = |seconds: u64| {
        let (done, _) = targets::play_disturbed(&blocks_plan(seconds), |_| 100.0, disturbed);
        done.iter().map(|run| (run.repeat, run.attempt)).collect::<Vec<_>>()
    };
    let long = order(200);
    assert!(long[6..10].iter().all(|run| *run == (0, 1)), "repeats follow their round: {long:?}");
    // There is time for a single repeat.
    let short = order(33);
    assert_eq!(short.iter().filter(|(_, attempt)| *attempt == 0).count(), 30, "{short:?}");
    assert_eq!(short.len(), 31, "{short:?}");
}

/// Simulates sessions of two blocks of three jobs, with time for `rounds` rounds. Returns the share
/// of jobs whose interval covers the truth.
#[cfg(test)]
fn coverage_of_blocks(deviations: [f64; 3], rounds: u64, has_two_modes: bool) -> f64 {
    let tables = 1000;
    let mut covered = 0;
    for seed in 0..tables {
        let mut noise = Noise(seed * 7919 + 11);
        // Seven planned rounds, as in the default budget.
        let plan = StrategyPlan { seed, runs: 7, ..blocks_plan(rounds * 6 + 4) };
        let (done, _) = targets::play(&plan, |run| {
            let normal = noise.normal();
            let own = if has_two_modes { normal.signum() + 0.2 * normal } else { normal };
            (deviations[run.job % 3] * own).exp()
        });
        for job in 0..6 {
            let interval = intervals::mean(&rates(&done, job)).and_then(|mean| mean.interval);
            covered += u64::from(interval.is_some_and(|[low, high]| low <= 1.0 && 1.0 <= high));
        }
    }
    covered as f64 / (6 * tables) as f64
}

#[test]
fn intervals_of_blocks_that_got_more_rounds_cover_the_truth() {
    for deviations in [[0.03, 0.05, 0.08], [0.1, 0.1, 0.1], [0.02, 0.02, 0.2]] {
        // Student's t covers less if runs have two modes, whatever ends the rounds.
        let of_seven = coverage_of_blocks(deviations, 7, true);
        for (rounds, has_two_modes) in [(7, false), (8, false), (10, false), (10, true)] {
            let covered = coverage_of_blocks(deviations, rounds, has_two_modes);
            let expected = if has_two_modes { of_seven.min(0.95) } else { 0.95 };
            // Three deviations of a share of 95 % of 6,000 rows are 0.85 %.
            assert!(
                covered >= expected - 0.0085,
                "{deviations:?}, {rounds} rounds, two modes: {has_two_modes}: {covered}"
            );
        }
    }
}

#[test]
fn a_job_without_operations_ends_at_the_limit() {
    assert_eq!(play(&precision_plan(1, 0.025), |_, _| 0.0).len(), 10);
}

#[test]
fn a_note_has_the_reached_precision_and_the_needed_runs() {
    let note = |rates: &[f64], share| precision_note("4K", rates, share).unwrap();
    assert!(note(&[100.0; 5], 0.025).contains("stopped after 5 runs"));
    // The deviation on logarithms is 0.0837: t(9) = 2.262 gives 6.0 %, and 47 runs with t(46) = 2.013 give 2.46 %.
    let noisy: Vec<f64> = (0..10).map(|i| if i % 2 == 0 { 108.265 } else { 92.366 }).collect();
    let sentence = note(&noisy, 0.025);
    assert!(
        sentence.contains("6.0 % to either side after 10 runs")
            && sentence.contains("about 47 runs would be enough"),
        "{sentence}"
    );
    assert!(note(&[1.0, 1000.0, 1.0], 0.001).contains("more than 100 runs would be needed"));
    assert!(note(&[1.0], 0.025).contains("no interval"));
    assert_eq!(precision_note("4K", &[], 0.025), None);
}

/// Simulates sessions. Returns the share of sessions whose interval covers the truth, the share of
/// sessions that reach the precision, and the mean number of runs of a session.
#[cfg(test)]
fn simulate_sessions(sessions: u64, deviation: f64, share: f64, at_most: u32) -> (f64, f64, f64) {
    let (mut covered, mut reached, mut runs) = (0.0, 0.0, 0.0);
    for seed in 0..sessions {
        let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(17));
        let mut rates = Vec::new();
        while needs_runs_for_precision(&rates, 5, share, at_most) {
            rates.push((deviation * noise.normal()).exp());
        }
        let [low, high] = intervals::mean(&rates).and_then(|m| m.interval).unwrap();
        covered += f64::from(u8::from(low <= 1.0 && 1.0 <= high));
        reached += f64::from(u8::from(is_precise(&rates, share)));
        runs += rates.len() as f64;
    }
    let n = sessions as f64;
    (covered / n, reached / n, runs / n)
}

#[test]
fn intervals_of_jobs_that_stopped_when_they_were_narrow_still_cover_the_truth() {
    for at_most in [10, 40] {
        for deviation in [0.005, 0.01, 0.02, 0.03, 0.05, 0.08] {
            let (covered, reached, runs) = simulate_sessions(1000, deviation, 0.025, at_most);
            assert!(
                (0.92..=0.98).contains(&covered),
                "{deviation} to {at_most}: {covered}, {reached}, {runs}"
            );
        }
    }
}

#[test]
fn only_undecided_conditions_call_for_more_runs() {
    let settle = Strategy::Settle { at_most: 50 };
    // The runs of the record are equal, so only a limit at their rate could be undecided.
    assert_eq!(runs_called_for("iops<10000", settle, 5), None, "at the limit and within it");
    assert_eq!(runs_called_for("iops<1", settle, 5), None, "decided");
    assert_eq!(runs_called_for("iops<1m", settle, 5), None, "decided");
    assert_eq!(runs_called_for("p99>1h", settle, 5), None, "more runs do not give this a number");
    assert_eq!(runs_called_for("other: iops<1", settle, 5), None);
    assert_eq!(runs_called_for("iops<1", Strategy::Fixed, 5), None);
}

#[test]
fn remaining_runs_include_those_that_may_be_called_for() {
    let mut plan = Fixture::honest().record().header.plan;
    plan.strategy = Strategy::Settle { at_most: 50 };
    let remaining = remaining_runs(&[], &StrategyPlan::from_plan(&plan));
    assert_eq!((remaining.runs, remaining.at_most), (vec![50], true));
}

#[test]
fn a_note_mentions_the_second_set_of_runs_or_why_there_is_none() {
    let note =
        |measured, at_most, is_decided| settle_note(5, measured, at_most, is_decided).unwrap_or_default();
    assert!(
        note(23, 50, true).contains("the first 5 runs did not decide, so 23 runs were measured in total")
    );
    let stopped = "settle: stopped after the first 5 of at most 50 runs, because";
    assert_eq!(note(5, 50, true), format!("{stopped} they decided"));
    assert_eq!(note(5, 50, false), format!("{stopped} more would not decide"));
    assert_eq!((note(4, 50, false), note(5, 5, false)), (String::new(), String::new()));
    // The answer of the report decides the text.
    let mut record = Fixture { runs: 5, ..Fixture::honest() }.record();
    record.header.plan.fail_if = model::spec::conditions::conditions("iops<1").unwrap();
    record.header.plan.strategy = Strategy::Settle { at_most: 50 };
    let notes = judge(&record, &Judging::default()).notes;
    assert!(notes.contains(&format!("{stopped} they decided")), "{notes:?}");
    // Nothing was decided about a number that a finding withholds.
    let mut withheld = Fixture { hole_share: 1.0, runs: 5, ..Fixture::honest() }.record();
    withheld.header.plan = record.header.plan.clone();
    let report = judge(&withheld, &Judging::default());
    assert_eq!(report.answer.map(|a| a.word), Some(model::report::AnswerWord::Invalid));
    assert!(!report.notes.iter().any(|note| note.starts_with("settle:")), "{:?}", report.notes);
    withheld.header.plan.runs = 3;
    let notes = judge(&withheld, &Judging::default()).notes;
    assert!(
        notes.iter().any(|note| note.starts_with("settle: the first 3 runs did not decide")),
        "{notes:?}"
    );
}
