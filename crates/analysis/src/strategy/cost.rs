//! The cost of a plan: the time of all its runs, the remaining time, and the bytes that it writes. The lines before the first run, the
//! progress and `--explain` use this estimate. The speed of the storage is unknown, so writes without a limit have no estimate in bytes.

use crate::strategy::sweep::SweepProgress;
use crate::strategy::{self, StrategyPlan, Summary};
use model::job::{Filling, Job, Kind, Pace, Phase, Stream};
use model::plan::{ExpectedCost, MadeFor, Plan, Role, Strategy, Target};
use model::spec::number::MAX_TIME_NS;
use model::sweep::{Grid, Search};

/// Estimated time of a phase in ns, in addition to its warm-up, window and cool-down.
pub const OVERHEAD_NS: u64 = 120_000_000;
/// Guessed time in ns, without the overhead, of a phase that ends only after a number of operations or bytes.
const COUNTED_PHASE_NS: u64 = 300_000_000;

/// The remaining time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeft {
    /// Remaining time in ns, as far as the plan determines it.
    pub ns: u64,
    /// Whether the measurement may end earlier.
    pub at_most: bool,
    /// Whether runs are left that end only after a number of operations or bytes. Then `ns` is only a guess.
    pub is_unknown: bool,
}

/// Returns the time of the remaining runs. For a sweep, returns the time of all its runs;
/// [`sweep_time_left`] returns the rest of a sweep that has begun.
pub fn time_left(plan: &Plan, done: &[Summary]) -> TimeLeft {
    if let Some(grid) = plan.study.grid() {
        let all = sweep_time_left(&SweepProgress::after(grid, plan, &[]), plan);
        let before_ns = if has_budget(grid) { plan.baseline_ns } else { 0 };
        return TimeLeft { ns: all.ns.saturating_sub(before_ns), ..all };
    }
    let budget = StrategyPlan::from_plan(plan);
    let strategy::RemainingRuns { runs, at_most, .. } = strategy::remaining_runs(done, &budget);
    let is_left_with = |ends: fn(&Phase) -> bool| {
        plan.jobs.iter().zip(&runs).any(|(job, runs)| *runs > 0 && job.phases.iter().any(ends))
    };
    let is_unknown = is_left_with(has_unknown_end);
    let at_most = at_most || is_left_with(|phase| ends_by_count(phase) && !has_unknown_end(phase));
    let ns: u64 = plan
        .jobs
        .iter()
        .map(run_ns)
        .zip(runs)
        .map(|(ns, runs)| ns.saturating_mul(runs.into()))
        .fold(0, u64::saturating_add);
    let Some(budget_ns) = plan.budget_ns else {
        let repeated_share = strategy::disturbed::expected_share_of_repeats(done, &budget);
        return TimeLeft { ns: ns.saturating_add((ns as f64 * repeated_share) as u64), at_most, is_unknown };
    };
    let spent_ns = done.last().map_or(plan.baseline_ns, |last| last.ended_ns);
    let ns = match plan.strategy {
        // Jobs with wide intervals are repeated until the budget is used up.
        Strategy::Targets(_) | Strategy::Precision { .. } if ns > 0 => u64::MAX,
        // The next run may be the first one that other load disturbs.
        _ => ns.saturating_mul(plan.attempts.into()),
    };
    TimeLeft { ns: ns.min(budget_ns.saturating_sub(spent_ns)), at_most: true, is_unknown: false }
}

/// Whether each run changes the state of the device for the next run, so that no run is repeated.
fn changes_state(plan: &Plan) -> bool {
    let in_order = plan.study.grid().is_some_and(|grid| matches!(grid.search, Search::InOrder(_)));
    in_order || matches!(plan.strategy, Strategy::Steady { .. })
}

/// Whether a budget limits the time of the whole sweep, including creating its test files.
fn has_budget(grid: &Grid) -> bool {
    matches!(grid.search, Search::Adaptive { .. })
}

/// Returns the time left of a sweep. Every search except an exhaustive one may end earlier.
pub fn sweep_time_left(sweep: &SweepProgress, plan: &Plan) -> TimeLeft {
    let at_most = plan.study.grid().is_some_and(|g| g.search != Search::Exhaustive);
    let phase_ns = |p: &Phase| planned_phase_ns(p).saturating_add(OVERHEAD_NS);
    let round_ns = plan.jobs.iter().flat_map(|j| &j.phases).map(phase_ns).fold(0, u64::saturating_add);
    let run_ns = round_ns / (plan.jobs.len() as u64).max(1);
    TimeLeft { ns: sweep.left_ns(run_ns), at_most, is_unknown: false }
}

/// Estimates the time of one run of a job in ns, with its overhead.
pub fn run_ns(job: &Job) -> u64 {
    job.phases.iter().map(estimated_phase_ns).fold(0, u64::saturating_add)
}

/// Returns the bytes that this host writes to create a target before the first run; `None` if it
/// does not create the target.
fn creation_bytes(plan: &Plan, at: usize, target: &Target) -> Option<u64> {
    if target.role != Role::Made {
        return None;
    }
    match (plan.common(at), plan.fleet_rank) {
        // The hosts share the work of creating this target.
        (Some(_), Some(part)) if target.made_for == MadeFor::All => {
            Some(target.bytes / u64::from(part.hosts.max(1)))
        }
        // Another host creates this target.
        (Some(common), _) if !plan.is_rank(common.maker) => None,
        _ => Some(target.bytes),
    }
}

/// Estimates the cost of a whole plan.
pub fn estimate_cost(plan: &Plan) -> ExpectedCost {
    let TimeLeft { ns, at_most, .. } = time_left(plan, &[]);
    let created_bytes: Vec<u64> =
        plan.targets.iter().enumerate().filter_map(|(at, target)| creation_bytes(plan, at, target)).collect();
    let kept_bytes =
        plan.targets.iter().filter_map(|t| t.create).filter(|c| c.filling == Filling::Data).map(|c| c.bytes);
    // Within a budget, creating files and repeating runs leaves less time for other runs.
    let in_budget = plan.budget_ns.is_some() || plan.study.grid().is_some_and(has_budget);
    let mut cost = ExpectedCost {
        time_ns: plan.baseline_ns.saturating_add(ns),
        may_end_earlier: at_most,
        repeats_disturbed: plan.attempts > 1 && !in_budget && !changes_state(plan),
        made_bytes: created_bytes.iter().copied().chain(kept_bytes).fold(0, u64::saturating_add),
        making_ns: if in_budget { 0 } else { plan.making_ns.saturating_mul(created_bytes.len() as u64) },
        ..ExpectedCost::default()
    };
    match plan.study.grid() {
        // The results decide how many runs each cell gets.
        Some(_)
            if plan
                .jobs
                .iter()
                .any(|j| j.phases.iter().any(|p| writing_streams(plan, p).next().is_some())) =>
        {
            cost.unbounded_ns = ns;
        }
        Some(_) => {}
        None => add_runs(plan, &mut cost),
    }
    add_precondition(plan, &mut cost);
    cost
}

/// Adds the bytes that all runs write. Subtracts the guessed time of phases whose end is unknown.
fn add_runs(plan: &Plan, cost: &mut ExpectedCost) {
    // Each interface has a trial before its first run, with at most the work of one run.
    let trials = u64::from(plan.study.interfaces().is_some());
    for (job, runs) in
        plan.jobs.iter().zip(strategy::remaining_runs(&[], &StrategyPlan::from_plan(plan)).runs)
    {
        let times = u64::from(runs).saturating_add(trials);
        for phase in &job.phases {
            if has_unknown_end(phase) {
                cost.has_runs_without_end_time = true;
                // `time_left` guessed the time of the phase.
                cost.time_ns =
                    cost.time_ns.saturating_sub(estimated_phase_ns(phase).saturating_mul(runs.into()));
            }
            add_writes(plan, phase, times, cost);
        }
    }
    // Further rounds may write until the budget is used up.
    if plan.budget_ns.is_some()
        && matches!(plan.strategy, Strategy::Precision { .. })
        && cost.unbounded_ns > 0
    {
        cost.unbounded_ns = cost.time_ns;
    }
}

/// Adds the bytes that preconditioning writes, and the time of its rounds.
fn add_precondition(plan: &Plan, cost: &mut ExpectedCost) {
    let Some(planned) = &plan.precondition else { return };
    for fill in &planned.fills {
        let span = |at: &usize| {
            let bytes = plan.targets.get(*at).map_or(0, |t| t.bytes);
            bytes.saturating_sub(fill.access.offset_bytes).min(fill.access.span_bytes)
        };
        let bytes_per_pass = fill.targets.iter().map(span).fold(0, u64::saturating_add);
        cost.filled_bytes =
            cost.filled_bytes.saturating_add(bytes_per_pass.saturating_mul(planned.passes.into()));
    }
    let jobs: Vec<&Job> = planned.jobs.iter().filter_map(|at| plan.jobs.get(*at)).collect();
    cost.may_end_earlier |= !jobs.is_empty();
    let rounds = u64::from(planned.rounds_at_most);
    for phase in jobs.iter().flat_map(|j| &j.phases) {
        if has_unknown_end(phase) {
            cost.has_runs_without_end_time = true;
        } else {
            cost.time_ns = cost.time_ns.saturating_add(planned_phase_ns(phase).saturating_mul(rounds));
        }
        add_writes(plan, phase, rounds, cost);
    }
}

/// Adds the bytes that a phase writes when it runs `times` times.
fn add_writes(plan: &Plan, phase: &Phase, times: u64, cost: &mut ExpectedCost) {
    let mut unbounded = 0;
    for stream in writing_streams(plan, phase) {
        match max_written_bytes(stream, phase) {
            Some(bytes) => {
                cost.bounded_bytes = cost.bounded_bytes.saturating_add(bytes.saturating_mul(times));
            }
            // The streams of a phase run at the same time, so their time counts once.
            None => unbounded = planned_phase_ns(phase).saturating_mul(times),
        }
    }
    cost.unbounded_ns = cost.unbounded_ns.saturating_add(unbounded);
}

/// Returns the streams of a phase that write to a file or device.
fn writing_streams<'p>(plan: &'p Plan, phase: &'p Phase) -> impl Iterator<Item = &'p Stream> {
    let has_target =
        |s: &&Stream| s.targets.iter().any(|t| plan.targets.get(*t).is_some_and(|t| t.role != Role::None));
    let writes = |s: &&Stream| s.access.kinds().any(|k| k == Kind::Write) && !s.moves_no_data();
    phase.streams.iter().filter(writes).filter(has_target)
}

/// Returns the maximum number of bytes that a stream writes in a phase; `None` if only the speed of the storage limits them.
fn max_written_bytes(stream: &Stream, phase: &Phase) -> Option<u64> {
    let largest = u64::from(stream.access.largest_bytes());
    let seconds = planned_phase_ns(phase) as f64 / 1e9;
    let in_flight = stream.total_depth().saturating_mul(largest);
    // The number of arrivals is practically never more than five standard deviations above its mean.
    let max_ops =
        |iops: f64, dispersion: f64| (iops * seconds + 5.0 * (iops * seconds * dispersion).sqrt()) as u64;
    let by_pace = match stream.pace {
        Pace::Open { iops, arrivals } if iops > 0.0 => {
            Some(max_ops(iops, arrivals.dispersion(iops).max(1.0)).saturating_mul(largest))
        }
        Pace::Limited { .. } | Pace::Each { .. } => {
            let (iops, bytes_per_s) = write_limits(&stream.pace);
            let operations = (iops > 0.0).then(|| max_ops(iops, 1.0).saturating_mul(largest));
            let bytes = (bytes_per_s > 0.0).then_some((bytes_per_s * seconds) as u64);
            operations.into_iter().chain(bytes).min()
        }
        // The rate of an open loop is 0 until the capacity is measured.
        Pace::Closed | Pace::Open { .. } => None,
    };
    // The stop rule does not count the warm-up, so it limits the written bytes only if there is no warm-up.
    let limit_covers_all = phase.warmup_ns == 0;
    let by_count = stream.limit.operations.filter(|_| limit_covers_all).map(|n| n.saturating_mul(largest));
    let by_bytes = stream.limit.bytes.filter(|_| limit_covers_all);
    let least = [by_pace, by_count, by_bytes].into_iter().flatten().min()?;
    Some(least.saturating_add(in_flight))
}

/// Returns the maximum writes and the maximum written bytes per second of a pace; 0 means no limit.
fn write_limits(pace: &Pace) -> (f64, f64) {
    match pace {
        Pace::Limited { iops, bytes_per_s } => (*iops, *bytes_per_s),
        Pace::Each { iops, bytes_per_s } => (iops.write, bytes_per_s.write),
        Pace::Closed | Pace::Open { .. } => (0.0, 0.0),
    }
}

/// Whether a phase ends only after a number of operations or bytes.
fn has_unknown_end(phase: &Phase) -> bool {
    ends_by_count(phase) && phase.time_ns >= MAX_TIME_NS
}

fn ends_by_count(phase: &Phase) -> bool {
    phase.streams.iter().all(|s| !s.limit.is_none() || s.reads_back().is_some())
}

/// Estimates the time of a phase in ns, with its overhead.
fn estimated_phase_ns(phase: &Phase) -> u64 {
    let phase_ns = if has_unknown_end(phase) { COUNTED_PHASE_NS } else { planned_phase_ns(phase) };
    phase_ns.saturating_add(OVERHEAD_NS)
}

/// Returns the planned time of a phase in ns, with its warm-up and cool-down.
fn planned_phase_ns(phase: &Phase) -> u64 {
    phase.warmup_ns.saturating_add(phase.time_ns).saturating_add(phase.cooldown_ns)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn plan_of(fixture: &Fixture) -> Plan {
    let mut plan = fixture.record().header.plan;
    for phase in plan.jobs.iter_mut().flat_map(|j| &mut j.phases) {
        (phase.warmup_ns, phase.time_ns, phase.cooldown_ns) = (0, 2_000_000_000, 0);
    }
    (plan.runs, plan.attempts, plan.baseline_ns) = (5, 1, 1_000_000_000);
    plan
}

#[test]
fn reads_write_nothing_and_take_their_runs_plus_the_idle_watch() {
    let plan = plan_of(&Fixture::honest());
    let cost = estimate_cost(&plan);
    assert_eq!(cost.time_ns, 1_000_000_000 + 5 * (2_000_000_000 + OVERHEAD_NS));
    assert_eq!((cost.unbounded_ns, cost.bounded_bytes, cost.filled_bytes), (0, 0, 0));
    assert!(!cost.may_end_earlier && !cost.repeats_disturbed && !cost.has_runs_without_end_time);
}

#[test]
fn writes_are_bounded_by_rate_or_count_or_unbounded() {
    let mut plan = plan_of(&Fixture::honest_write());
    assert_eq!((estimate_cost(&plan).unbounded_ns, estimate_cost(&plan).bounded_bytes), (10_000_000_000, 0));
    let in_flight = 32 * 4096;
    plan.jobs[0].phases[0].streams[0].limit.operations = Some(1_000);
    assert_eq!(
        (estimate_cost(&plan).unbounded_ns, estimate_cost(&plan).bounded_bytes),
        (0, 5 * (1_000 * 4096 + in_flight))
    );
    // Operations before the window are not in the count.
    plan.jobs[0].phases[0].warmup_ns = 1;
    assert_eq!((estimate_cost(&plan).bounded_bytes, estimate_cost(&plan).unbounded_ns), (0, 10_000_000_005));
    plan.jobs[0].phases[0].streams[0].pace = Pace::Limited { iops: 0.0, bytes_per_s: 1e6 };
    assert_eq!(estimate_cost(&plan).bounded_bytes, 5 * (2_000_000 + in_flight));
    // The load of an open loop is unknown before the capacity is measured.
    plan.jobs[0].phases[0].streams[0].pace = Pace::Closed.offering(0.0);
    assert!(estimate_cost(&plan).unbounded_ns > 0);
    plan.jobs[0].phases[0].streams[0].pace = Pace::Closed.offering(50.0);
    assert_eq!(estimate_cost(&plan).bounded_bytes, 5 * (150 * 4096 + in_flight));
    // 100 arrivals in batches of 8.5 on average have a deviation of 40.
    let arrivals = model::job::Arrivals::Batch { mean: 8.5 };
    plan.jobs[0].phases[0].streams[0].pace = Pace::Open { iops: 50.0, arrivals };
    assert_eq!(estimate_cost(&plan).bounded_bytes, 5 * (300 * 4096 + in_flight));
    plan.targets[0].role = Role::None;
    assert_eq!(
        (estimate_cost(&plan).unbounded_ns, estimate_cost(&plan).bounded_bytes),
        (0, 0),
        "nothing is touched"
    );
}

#[test]
fn phases_that_end_by_count_have_no_time_and_test_files_have_theirs() {
    let mut plan = plan_of(&Fixture::honest_write());
    plan.jobs[0].phases[0].time_ns = MAX_TIME_NS;
    plan.jobs[0].phases[0].streams[0].limit.bytes = Some(1 << 20);
    plan.targets[0].role = Role::Made;
    assert!(time_left(&plan, &[]).is_unknown);
    let cost = estimate_cost(&plan);
    assert!(cost.has_runs_without_end_time && !cost.may_end_earlier);
    // With a time limit, runs end at that time at the latest.
    let mut limited = plan.clone();
    limited.jobs[0].phases[0].time_ns = 60_000_000_000;
    let cost_of_limited = estimate_cost(&limited);
    assert!(cost_of_limited.may_end_earlier && !cost_of_limited.has_runs_without_end_time);
    assert!(cost_of_limited.time_ns >= u64::from(plan.runs) * 60_000_000_000, "{cost_of_limited:?}");
    let left = time_left(&limited, &[]);
    assert!(left.at_most && !left.is_unknown, "{left:?}");
    assert_eq!((cost.time_ns, cost.made_bytes), (plan.baseline_ns, plan.targets[0].bytes));
    assert_eq!(cost.making_ns, model::plan::MAKING_NS);
    // Kept files are written too, unless they are created without data.
    plan.targets[0].role = Role::File;
    for (filling, bytes) in [(Filling::Data, 1 << 20), (Filling::Blocks, 0), (Filling::Nothing, 0)] {
        plan.targets[0].create = Some(model::job::Create { bytes: 1 << 20, filling, unlink: false });
        assert_eq!(super::cost::estimate_cost(&plan).made_bytes, bytes, "{filling:?}");
    }
}

#[test]
fn preconditioning_counts_its_fills_and_at_most_its_rounds() {
    let mut plan = plan_of(&Fixture::honest_write());
    let fill = plan.jobs[0].phases[0].streams[0].clone();
    let before = estimate_cost(&plan);
    plan.precondition =
        Some(model::plan::Precondition { fills: vec![fill], passes: 2, jobs: vec![0], rounds_at_most: 25 });
    let cost = estimate_cost(&plan);
    assert_eq!(cost.filled_bytes, 2 * plan.targets[0].bytes);
    assert_eq!(cost.time_ns - before.time_ns, 25 * 2_000_000_000);
    assert_eq!(cost.unbounded_ns - before.unbounded_ns, 25 * 2_000_000_000);
    assert!(cost.may_end_earlier);
}

#[test]
fn the_budget_of_a_search_holds_from_its_start_to_its_end() {
    let mut plan = plan_of(&Fixture::honest());
    (plan.targets[0].role, plan.attempts) = (Role::Made, 3);
    plan.study = Grid {
        preset: None,
        cells: vec![model::sweep::Cell { setting: model::sweep::Setting::plain("read", 4096, 1), job: 0 }],
        skipped: Vec::new(),
        baselines: Vec::new(),
        search: Search::Adaptive { budget_ns: 60_000_000_000 },
        tolerance: model::sweep::TOLERANCE,
        measures: std::collections::BTreeMap::new(),
    }
    .into();
    let cost = estimate_cost(&plan);
    assert_eq!(
        (cost.time_ns, cost.making_ns, cost.repeats_disturbed, cost.may_end_earlier),
        (60_000_000_000, 0, false, true)
    );
    let sentence = cost.sentence();
    assert!(sentence.starts_with("It takes at most 60 s. It writes at most "), "{sentence}");
}

#[test]
fn a_budget_includes_repeats_before_the_first_one() {
    let mut plan = plan_of(&Fixture::honest());
    plan.baseline_ns = 0;
    let once = estimate_cost(&plan).time_ns;
    (plan.attempts, plan.budget_ns) = (3, Some(u64::MAX));
    assert_eq!(estimate_cost(&plan).time_ns, 3 * once);
    plan.budget_ns = Some(2 * once);
    assert_eq!(estimate_cost(&plan).time_ns, 2 * once, "repeats that no longer fit are not made");
}
