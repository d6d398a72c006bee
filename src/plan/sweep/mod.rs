//! The grid of `fathom sweep`: one job per setting that can be measured, and a reason for each one that cannot.
//!
//! For: from axes to a grid. What is done is in `doing`, with which settings in `cell`, for how long in `course`. Not for: measuring
//! (the jobs are ordinary ones) nor for choosing among them (crate `analysis`).

mod cell;
mod doing;
mod schedule;
mod target_facts;

use super::origins::Origins;
use super::repeats::CELL_RUNS;
use super::{cycle, fallback};
use crate::failure::Failure;
use crate::request::{Request, SweepSpec};
use analysis::strategy::sweep::FRESH;
use cell::Growing;
use engine::engines::Entry;
use machine::root::Root;
use model::job::Cache;
use model::plan::Role;
use model::spec::axes::{AXES, Axes, IOMETER, MEMORY_BYTES, Preset, Procedure};
use model::spec::number::MIN_TIME_NS;
use model::spec::{EngineSpec, JobSpec, StreamSpec};
use model::sweep::{Grid, Measure, TOLERANCE};
use model::units::show_bytes;
use target_facts::{TargetFacts, target_facts};

/// Settings that cells say for themselves, or that are told in words of the sweep's own.
pub(in crate::plan) const OF_CELLS: &[&str] = &[
    "--rw",
    "--bs",
    "--depth",
    "--workers",
    "--engine",
    "engine options",
    "--cache",
    "--mix",
    "--batch",
    "--line",
    "--time",
    "--warmup",
    "--runs",
];
/// What a cell gets in an exhaustive search: the second of CCSIO.
const TIME_NS: u64 = 1_000_000_000;
/// Parts of that time: what a run of an adaptive search gets, so that good cells get many and bad ones a single one.
const PIECES: u64 = 5;

/// A grid with its jobs, in the order of their indices.
pub(in crate::plan) struct GridJobs {
    pub(in crate::plan) specs: Vec<JobSpec>,
    pub(in crate::plan) grid: Grid,
}

/// Makes the grid.
pub(in crate::plan) fn grid(
    request: &Request,
    said: &SweepSpec,
    (root, memory, denial): (&Root, Option<u64>, Option<&str>),
    origins: &mut Origins,
) -> Result<GridJobs, Failure> {
    let axes = &said.axes;
    if let Some(cause) = denial.filter(|_| axes.engine.iter().any(|engine| engine.name == fallback::WANTED)) {
        return Err(fallback::refuse_axis(cause));
    }
    let engines =
        if axes.engine.is_empty() { vec![default_engine(axes, denial)] } else { axes.engine.clone() };
    let entries: Vec<&'static Entry> = engines.iter().map(|e| entry(e)).collect::<Result<_, _>>()?;
    let targets =
        if entries.iter().any(|e| e.moves_bytes) { target_facts(request, root)? } else { Vec::new() };
    let loads = cycle::loads(said, (targets.len() as u32).max(1), origins)?;
    let works = doing::works(request, said, &targets, origins)?;
    let measures = doing::measures(said, &works, origins);
    let memory_bytes = memory_cap(said, memory, origins);
    let base = base(request, said, &targets);
    let mut growing = Growing {
        base,
        memory_bytes,
        targets,
        loads,
        denial: denial.filter(|_| axes.engine.is_empty()).map(str::to_owned),
        cache_said: said.flags.contains(&"cache"),
        specs: Vec::new(),
        cells: Vec::new(),
        skipped: Vec::new(),
        said,
    };
    for work in works {
        for (engine, entry) in engines.iter().zip(&entries) {
            growing.of_engine(&work, engine, entry)?;
        }
    }
    let Growing { cells, skipped, .. } = &growing;
    if cells.is_empty() {
        let why = skipped
            .first()
            .map_or("the axes have no cell".to_owned(), |s| format!("{}: {}", s.setting.describe(), s.why));
        return Err(Failure::Usage(format!(
            "no cell of the grid can be measured: {why}; `--skipped` names all of them"
        )));
    }
    tell_axes(axes, said, origins);
    origins.fixed("cells", &format!("{} to measure, {} skipped", cells.len(), skipped.len()), "the axes");
    if let Some(preset) = said.preset.filter(|p| p.is_in_order()) {
        return schedule::in_order(request, said, growing, preset.rounds(), origins);
    }
    let baselines = growing.baselines();
    let works = model::sweep::works(&growing.cells);
    let runs = request.job.runs.unwrap_or(CELL_RUNS);
    let jobs = growing.specs.len() - baselines.len();
    let finals = works.len() * 2 * FRESH + baselines.len() * FRESH;
    let tolerance = origins.choose("--tolerance", said.tolerance, TOLERANCE, |share| {
        format!("{}%", (1000.0 * share).round() / 10.0)
    });
    let search = schedule::search(said, (jobs, finals, runs), &growing, request, origins)?;
    let Growing { specs, cells, skipped, .. } = growing;
    let preset = said.preset.map(|p| p.name.to_owned());
    Ok(GridJobs { specs, grid: Grid { preset, cells, skipped, baselines, search, tolerance, measures } })
}

/// Most bytes of a cell's buffers: the cap of the searches, or what the machine has where a preset knows none.
fn memory_cap(said: &SweepSpec, memory: Option<u64>, origins: &mut Origins) -> u64 {
    let (default, from) = match said.preset.map(|p| p.way) {
        Some(Procedure::UntilSlow { .. }) => {
            (memory.map_or(MEMORY_BYTES, |m| m / crate::plan::BUFFER_SHARE), "half of what the machine has")
        }
        _ => (MEMORY_BYTES, "default"),
    };
    origins.choose_from("--memory", said.memory, default, from, |b| show_bytes(*b))
}

fn default_engine(axes: &Axes, denial: Option<&str>) -> EngineSpec {
    let mapped = !axes.cache.is_empty() && axes.cache.iter().all(|c| *c == Cache::Mmap);
    let usual = fallback::default_engine(denial).map_or(fallback::WANTED, |entry| entry.name);
    let name = if mapped { "mmap" } else { usual };
    EngineSpec { name: name.into(), options: model::job::Options::new() }
}

fn entry(said: &EngineSpec) -> Result<&'static Entry, Failure> {
    let stream = StreamSpec { engine: Some(said.clone()), ..StreamSpec::default() };
    let entry = crate::plan::engine::find(&stream).map_err(|problem| Failure::Usage(problem.in_flags()))?;
    if entry.touches_targets() && !entry.moves_bytes {
        return Err(Failure::Usage(format!(
            "--engine {}: cells are compared by the data that they move, and it moves none; type `fathom run --engine {0}`",
            entry.name
        )));
    }
    Ok(entry)
}

/// What all jobs have in common.
fn base(request: &Request, said: &SweepSpec, targets: &[TargetFacts]) -> JobSpec {
    let mut job = request.job.clone();
    // A preset's size is a default of ours and not the user's: where it does not fit, the usual one is made, and shrinks.
    let room = |bytes: &u64| {
        let fits =
            |t: &TargetFacts| t.role == Role::Made && machine::test_file::fits(&t.path, *bytes).is_ok();
        !targets.is_empty() && targets.iter().all(fits)
    };
    let wished = said.preset.map(|p| p.size_bytes).filter(room);
    for stream in job.phases.iter_mut().flat_map(|p| &mut p.streams) {
        stream.size = stream.size.or(wished);
    }
    for phase in &mut job.phases {
        let whole = phase.time.unwrap_or(said.preset.and_then(Preset::time_ns).unwrap_or(TIME_NS));
        let in_order = said.preset.is_some_and(Preset::is_in_order);
        // A percentile takes many operations, and pieces of its time have few.
        let whole_at_once = said.exhaustive || in_order || said.by == Some(Measure::P99);
        let parts = if whole_at_once { 1 } else { PIECES };
        phase.time = Some((whole / parts).max(MIN_TIME_NS));
        phase.warmup = Some(phase.warmup.unwrap_or(0));
    }
    job
}

/// Each axis with its values and where they came from.
fn tell_axes(axes: &Axes, said: &SweepSpec, origins: &mut Origins) {
    let preset = said.preset.map(|p| format!("preset {}", p.name));
    let cycled = said.preset.is_some_and(|p| p.name == IOMETER);
    // What a test type makes of these was told with it.
    let of_cycle = |axis: &str| cycled && ["depth", "workers", "targets"].contains(&axis);
    for axis in AXES.iter().filter(|axis| !of_cycle(axis.name)) {
        let values = (axis.words)(axes);
        if !values.is_empty() {
            let from = preset.as_deref().filter(|_| !said.flags.contains(&axis.name));
            origins.fixed(&format!("axis {}", axis.name), &values, from.unwrap_or("command line"));
        }
    }
    let modes = said.preset.filter(|_| axes.cache.is_empty()).map_or(&[][..], |p| p.modes);
    for mode in modes {
        let value = format!("{}: {}", mode.name, mode.cache.word());
        let from = preset.as_deref().unwrap_or_default();
        origins.fixed(
            "mode",
            &if mode.remark.is_empty() { value } else { format!("{value}; {}", mode.remark) },
            from,
        );
    }
}
