//! A sweep whose cells were measured in order: what is told of each, and how the rounds went.
//!
//! For: the part of the report that is about such a grid. Not for: grids whose best cell is sought ([`super`]).

use super::knees;
use crate::findings::CaseAnswers;
use crate::strategy::in_order::InOrder;
use crate::strategy::sample::{Sample, samples};
use model::measure::Measure;
use model::plan::Role;
use model::record::Record;
use model::sweep::{
    CellFigures, Chosen, Grid, IN_ORDER, Rounds, Setting, Skipped, Sweep, SweptTarget, Until, Work,
    least_iops,
};
use model::units::{MIB, show_rate};
use std::collections::BTreeMap;

pub(super) fn sweep_in_order(record: &Record, grid: &Grid, until: Until, answered: &[CaseAnswers]) -> Sweep {
    let order = InOrder::after(grid, until, &samples(record));
    let late = order.left_out();
    let left_out = |job: usize| late.iter().any(|(late, _)| *late == job);
    let measured = grid.cells.iter().filter(|c| !left_out(c.job));
    let result_of = |job: usize| answered.iter().position(|a| a.case.at == job);
    let cells: Vec<CellFigures> =
        measured.map(|c| cell_in_order(&c.setting, &order, c.job, result_of(c.job))).collect();
    let late = late.iter().filter_map(|(job, (slow, iops))| {
        let why = too_slow(grid.setting(*slow)?, *iops);
        Some(Skipped { setting: grid.setting(*job)?.clone(), why })
    });
    let late: Vec<Skipped> = late.collect();
    let works = if until == Until::Slow { works(grid, &cells, answered) } else { Vec::new() };
    Sweep {
        search: IN_ORDER.into(),
        preset: grid.preset.clone(),
        seconds: order.spent_ns() as f64 / 1e9,
        budget_seconds: None,
        tolerance: grid.tolerance,
        skipped: grid.skipped.iter().cloned().chain(late).collect(),
        winner: BTreeMap::new(),
        cheapest: BTreeMap::new(),
        works,
        reference: None,
        place: place(record),
        rounds: rounds(grid, until, &order),
        cells,
    }
}

fn too_slow(setting: &Setting, iops: f64) -> String {
    let least = least_iops(setting.workers);
    format!(
        "{} gave {} operations a second, and {least} or fewer of {} threads end it",
        setting.describe(),
        show_rate(iops),
        setting.workers
    )
}

/// Plain means over the runs that a cell is told by, as the specification has them.
fn cell_in_order(setting: &Setting, order: &InOrder, job: usize, result: Option<usize>) -> CellFigures {
    let told: Vec<&Sample> = order.window_samples(job).collect();
    let mean = |of: fn(&Sample) -> Option<f64>| {
        let values: Vec<f64> = told.iter().filter_map(|s| of(s)).filter(|v| v.is_finite()).collect();
        (!values.is_empty()).then(|| stats::sample::mean(&values))
    };
    let rate = mean(|s| s.bytes_per_s);
    CellFigures {
        mib_per_s: rate.map(|r| r / MIB as f64),
        mb_per_s: rate.map(|r| r / 1e6),
        iops: rate.map(|r| r / f64::from(setting.block_bytes.max(1))),
        interval: None,
        latency_p99_ns: mean(|s| Some(s.p99_ns? as f64)),
        latency_p99_interval_ns: None,
        latency_interval_ns: None,
        latency_mean_ns: mean(|s| Some(s.latency_ns?.0)),
        latency_max_ns: told.iter().filter_map(|s| Some(s.latency_ns?.1)).max(),
        runs: told.iter().filter(|s| s.bytes_per_s.is_some()).count(),
        memory_bytes: setting.memory_bytes(),
        cpu_ns_per_mib: mean(|s| s.cpu_ns_per_byte).map(|ns| ns * MIB as f64),
        result,
        setting: setting.clone(),
    }
}

/// From where on the size gains nothing; what a finding invalidates says nothing of it.
fn works(grid: &Grid, cells: &[CellFigures], answered: &[CaseAnswers]) -> Vec<Work> {
    let void = |c: &CellFigures| c.result.and_then(|at| answered.get(at)).is_some_and(CaseAnswers::is_void);
    let of = |name: String| {
        let mine: Vec<&CellFigures> =
            cells.iter().filter(|c| c.setting.work() == name && !void(c) && c.mib_per_s.is_some()).collect();
        let first = mine.first().map(|c| c.setting.clone());
        let is_random = grid.cells.iter().any(|c| c.setting.work() == name && c.setting.is_random());
        Work {
            sentence: format!("{} cells were measured once each.", mine.len()),
            by: if is_random { Measure::Iops } else { Measure::Bandwidth },
            name,
            chosen: Chosen::NoChoice,
            faster_at_most: None,
            decided: false,
            rivals: Vec::new(),
            runs: mine.iter().map(|c| c.runs).sum(),
            spread: None,
            cheapest_by_winner: None,
            baselines: Vec::new(),
            knees: first
                .as_ref()
                .map_or_else(Vec::new, |first| knees((Measure::Bandwidth, grid.tolerance), first, &mine)),
        }
    };
    grid.works().into_iter().map(of).collect()
}

/// What was measured; a made file has the size that it came to.
fn place(record: &Record) -> Option<SweptTarget> {
    let target = record.header.plan.targets.iter().enumerate().find(|(_, t)| t.role != Role::None);
    let (at, target) = target?;
    let came_to = record.runs.first().and_then(|r| r.start.target_bytes.get(at)).copied();
    Some(SweptTarget { path: target.path.clone(), bytes: came_to.unwrap_or(target.bytes) })
}

fn rounds(grid: &Grid, until: Until, order: &InOrder) -> Option<Rounds> {
    let Until::Rounds { tracked, variable, bytes, rounds_at_most } = until else { return None };
    Some(Rounds {
        tracked: grid.setting(tracked)?.clone(),
        variable,
        by_round: order.tracked(),
        at_most: rounds_at_most,
        bytes_wanted: bytes,
        bytes_written: order.written_bytes(),
        window: order.window(),
        window_mean: order.window_mean(),
        rule: order.rule(),
    })
}
