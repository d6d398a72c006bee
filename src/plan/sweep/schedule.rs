//! How long a sweep takes: the time of a run, the budget of a search, and the last round of cells in order.

use super::cell::Growing;
use super::{GridJobs, TIME_NS};
use crate::failure::Failure;
use crate::plan::budget;
use crate::plan::origins::Origins;
use crate::request::{Request, SweepSpec};
use analysis::strategy::sweep::REFERENCE_EVERY;
use model::plan::{MAKING_NS, Role};
use model::spec::axes::Rounds;
use model::sweep::{Cell, Grid, Search, TOLERANCE, Until};
use model::units::{minutes, show_block, show_bytes, show_ns};
use std::collections::BTreeMap;

/// Times that each cell could be measured once in the default budget.
const PASSES: u64 = 6;
/// Runs that there is time for in the default budget of a small grid.
const RUNS: u64 = 300;
/// Longest default budget.
const LONGEST_NS: u64 = 110_000_000_000;
/// Guess of what a run costs beside its window: snapshots, eviction, the final sync. Direct reads were seen to take 10 ms.
const OVERHEAD_NS: u64 = 20_000_000;

/// A grid whose cells are measured in their order.
pub(super) fn in_order(
    request: &Request,
    said: &SweepSpec,
    growing: Growing,
    in_rounds: Option<Rounds>,
    origins: &mut Origins,
) -> Result<GridJobs, Failure> {
    let until = in_rounds.map_or(Ok(Until::Slow), |said| rounds(&growing, said))?;
    let time = growing.base.phases.first().and_then(|p| p.time).unwrap_or(TIME_NS);
    let timed = request.job.phases.first().is_some_and(|p| p.time.is_some());
    let from = if timed { "command line".into() } else { request.origin("time") };
    origins.fixed("--time", &format!("{} a cell", show_ns(time as f64)), &from);
    let words = match until {
        Until::Slow => {
            "the last cell, or one of no more operations a second than a quarter of the threads".into()
        }
        Until::Rounds { bytes: Some(bytes), rounds_at_most, .. } => {
            format!("{} written, or {rounds_at_most} rounds", show_bytes(bytes))
        }
        Until::Rounds { rounds_at_most, .. } => {
            format!("five rounds of the tracked cell are steady, or {rounds_at_most} rounds")
        }
    };
    origins.fixed("ends by", &words, &request.origin("preset"));
    let Growing { specs, cells, skipped, .. } = growing;
    let grid = Grid {
        preset: said.preset.map(|p| p.name.to_owned()),
        cells,
        skipped,
        baselines: Vec::new(),
        search: Search::InOrder(until),
        tolerance: TOLERANCE,
        measures: BTreeMap::new(),
    };
    Ok(GridJobs { specs, grid })
}

/// When rounds end. The tracked cell has to be among them.
fn rounds(growing: &Growing, said: Rounds) -> Result<Until, Failure> {
    let Rounds { tracked_bytes, variable, capacities, at_most } = said;
    let is = |c: &&Cell| c.setting.block_bytes == tracked_bytes && c.setting.only_writes();
    let Some(tracked) = growing.cells.iter().find(is).map(|c| c.job) else {
        let preset = growing.said.preset.map_or("pts", |p| p.name);
        return Err(Failure::Usage(format!(
            "--preset {preset} follows writes of {} until they are steady, and no cell that can be measured does them; \
             leave that size in --bs, and 0 in --mix",
            show_block(u64::from(tracked_bytes))
        )));
    };
    let size = growing.base.phases.first().and_then(|p| p.streams.first()).and_then(|s| s.size);
    let size = size.or(growing.targets.first().map(|t| t.bytes));
    let bytes = capacities.map(|times| size.unwrap_or(0).saturating_mul(times));
    Ok(Until::Rounds { tracked, variable, bytes, rounds_at_most: at_most })
}

/// How long it may take, and what decides.
pub(super) fn search(
    said: &SweepSpec,
    (jobs, finals, runs): (usize, usize, u32),
    growing: &Growing,
    request: &Request,
    origins: &mut Origins,
) -> Result<Search, Failure> {
    let piece = growing.base.phases.first().and_then(|p| p.time).unwrap_or(TIME_NS);
    let warmup = growing.base.phases.first().and_then(|p| p.warmup).unwrap_or(0);
    let whole = request.job.phases.first().and_then(|p| p.time).unwrap_or(TIME_NS);
    let looks = |runs: u64| runs + runs.div_ceil(REFERENCE_EVERY as u64 - 1) + finals as u64;
    let each = |window: u64| window + warmup + OVERHEAD_NS;
    let from = |set: bool| if set { "command line" } else { "default" };
    let timed = request.job.phases.first().is_some_and(|p| p.time.is_some());
    if said.exhaustive {
        let exhaustive = looks(jobs as u64 * u64::from(runs)).saturating_mul(each(whole));
        origins.fixed("--time", &format!("{} a run, {runs} runs a cell", show_ns(whole as f64)), from(timed));
        origins.fixed("time", &format!("about {}", minutes(exhaustive)), "all cells");
        return Ok(Search::Exhaustive);
    }
    let words = format!("runs of {}, a part of {}", show_ns(piece as f64), show_ns(whole as f64));
    origins.fixed("--time", &words, from(timed));
    // Each cell once, and the winners once more.
    let least = looks(jobs as u64).saturating_mul(each(piece));
    let makes_files = growing.targets.iter().any(|t| t.role == Role::Made);
    let making = if makes_files { MAKING_NS } else { 0 };
    let usual = least.saturating_mul(PASSES).max(each(piece).saturating_mul(RUNS)).min(LONGEST_NS);
    let default = usual.max(least.saturating_add(least / 4).saturating_add(making));
    let work = format!("{jobs} cells, each measured once,");
    budget::refuse_short(request.budget_ns, least, &work, "fewer cells")?;
    let words = format!("{PASSES} runs of each cell, at least {RUNS} runs, at most {}", minutes(LONGEST_NS));
    let budget_ns = origins.choose_from("--budget", request.budget_ns, default, &words, |ns| minutes(*ns));
    Ok(Search::Adaptive { budget_ns })
}
