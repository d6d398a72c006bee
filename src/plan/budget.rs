//! Time budgets of the commands that answer a question: `api`, `bench --compare`, `limit` and `sweep`.
//!
//! The budget is the typed one, or a default that is usually less than two minutes. A typed budget that is too short for the fewest runs
//! is refused with the budget to type instead. Strategies decide while measuring how many runs fit into it.

use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::plan::study::Timing;
use analysis::strategy::cost::run_ns;
use model::plan::LatencyTarget;
use model::units::{minutes, show_counted};

/// Default budget of a comparison of interfaces.
pub(super) const INTERFACES_NS: u64 = 115_000_000_000;
/// Default budget of a comparison of targets, and the longest default budget of a search for a
/// setting. Both are longer if the fewest runs take longer.
const USUAL_NS: u64 = 110_000_000_000;
/// The default budget of a comparison of targets, or of a search, is at least the time of the
/// fewest runs plus that time divided by this.
const SPARE: u64 = 4;
/// The default budget of `limit` has room for this many times `--runs`. With the default of 3 these
/// are 33 runs: 3 of the closed loop, and 30 of a search, or 25 of a curve and some repeats.
const RUNS_IN_BUDGET: u64 = 11;
/// Default runs of each load. With fewer `--runs`, the default budget is the same and measures more loads.
const USUAL_RUNS: u32 = 3;
/// Fewest open-loop runs that give an answer: one at each load of a curve, or enough to show that one load meets a latency target and a
/// higher one does not.
const FEWEST_LOAD_RUNS: u64 = 7;
/// The default budget of a search for a setting is this many times the time of the fewest runs.
const CELL_PASSES: u64 = 6;
/// In a small grid, the default budget of a search is larger, with room for this many runs.
const CELL_RUNS: u64 = 300;

/// The budget of `limit`: enough for a search or a curve, and twice that for both.
pub(super) fn for_latency_target(
    target: &LatencyTarget,
    timing: &Timing,
    origins: &mut Origins,
) -> Result<u64, Failure> {
    let Timing { request, runs, baseline_ns, .. } = *timing;
    let run = timing.jobs.first().map_or(0, run_ns);
    let time_of = |runs: u64| baseline_ns.saturating_add(run.saturating_mul(runs));
    let work = format!(
        "{} of the closed loop and {FEWEST_LOAD_RUNS} of the open loop",
        show_counted(runs.into(), "run")
    );
    let least_ns = time_of(u64::from(runs) + FEWEST_LOAD_RUNS);
    refuse_short(request.budget_ns, least_ns, &work, "shorter runs (--time)")?;
    let answers = u64::from(target.latency_ns.is_some()) + u64::from(target.curve);
    let runs = RUNS_IN_BUDGET * u64::from(runs.max(USUAL_RUNS)) * answers;
    Ok(choose_budget(request.budget_ns, time_of(runs), &format!("default: time for {runs} runs"), origins))
}

/// The budget of `bench --compare`.
pub(super) fn for_targets(timing: &Timing, origins: &mut Origins) -> Result<u64, Failure> {
    let Timing { request, jobs, runs, baseline_ns, .. } = *timing;
    let round = jobs.iter().map(run_ns).fold(0, u64::saturating_add);
    let least = baseline_ns.saturating_add(round.saturating_mul(runs.into()));
    let work =
        format!("{} of {}", show_counted(runs.into(), "round"), show_counted(jobs.len() as u64, "test"));
    refuse_short(request.budget_ns, least, &work, "shorter runs (--time) or fewer runs (--runs)")?;
    let default = USUAL_NS.max(least.saturating_add(least / SPARE));
    let from = "default: 110 s, or more if the first rounds take longer";
    Ok(choose_budget(request.budget_ns, default, from, origins))
}

/// The budget of a search among this many cells. `least_ns` is the time of the fewest runs, `run_ns` the time of one run, and `making_ns`
/// the time to make test files.
pub(super) fn for_search(
    typed_ns: Option<u64>,
    cells: usize,
    least_ns: u64,
    run_ns: u64,
    making_ns: u64,
    origins: &mut Origins,
) -> Result<u64, Failure> {
    let usual = least_ns.saturating_mul(CELL_PASSES).max(run_ns.saturating_mul(CELL_RUNS)).min(USUAL_NS);
    let default = usual.max(least_ns.saturating_add(least_ns / SPARE).saturating_add(making_ns));
    refuse_short(
        typed_ns,
        least_ns,
        &format!("one run of each of {}", show_counted(cells as u64, "cell")),
        "fewer cells",
    )?;
    let from = format!(
        "default: time for {CELL_PASSES} runs of each cell and at least {CELL_RUNS} runs, but at most {} unless one run of each cell takes longer",
        minutes(USUAL_NS)
    );
    Ok(choose_budget(typed_ns, default, &from, origins))
}

fn choose_budget(typed_ns: Option<u64>, default_ns: u64, from: &str, origins: &mut Origins) -> u64 {
    origins.choose_from("--budget", typed_ns, default_ns, from, |ns| minutes(*ns))
}

/// Refuses a typed budget that is too short for the fewest runs. `work` describes the fewest runs,
/// as in `3 rounds of 8 tests`; `instead` describes a choice that needs less time, as in
/// `fewer cells`.
///
/// # Errors
/// A usage failure with the budget to type.
pub(super) fn refuse_short(
    typed_ns: Option<u64>,
    least_ns: u64,
    work: &str,
    instead: &str,
) -> Result<(), Failure> {
    let Some(budget_ns) = typed_ns.filter(|typed| *typed < least_ns) else { return Ok(()) };
    Err(Failure::Usage(format!(
        "--budget {} is too short for {work} (about {}); type --budget {}s or more, or choose {instead}",
        minutes(budget_ns),
        minutes(least_ns),
        least_ns.div_ceil(1_000_000_000)
    )))
}
