//! The grid of `fathom sweep`: one job per setting that can be measured, and a reason for each
//! setting that cannot.
//!
//! 1. List the works. A work is an order and direction, or an access specification.
//! 2. [`cell`] makes a job for each engine, size and load of a work.
//! 3. Choose the time of a run, and when the sweep ends: the budget of a search, or the end of the rounds if the cells
//!    are measured in order.
//!
//! The jobs are ordinary ones. Crate `analysis` chooses among them while measuring.

mod cell;

use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::plan::study::{StudyPlan, Timing};
use crate::plan::target::{TargetFacts, target_facts};
use crate::plan::{Jobs, budget, engine};
use crate::request::{Request, SweepSpec};
use ::engine::engines::Entry;
use analysis::strategy::sweep::{FRESH_RUNS, REFERENCE_EVERY};
use cell::GridBuilder;
use machine::root::Root;
use model::job::{Cache, Kind, Mix};
use model::name;
use model::plan::{MAKING_NS, Role, Strategy};
use model::spec::axes::{AXES, Axes, IOMETER, MEMORY_BYTES, Preset, Procedure, Rounds};
use model::spec::iometer::Spec;
use model::spec::number::{FEWEST_GATED_RUNS, MIN_TIME_NS};
use model::spec::{EngineSpec, JobSpec, Rw, StreamSpec};
use model::sweep::{Cell, Grid, Measure, Search, TOLERANCE, Until};
use model::units::{minutes, show_block, show_bytes, show_ns};
use model::verdict::Condition;
use std::collections::BTreeMap;

/// Settings that cells define, or that the sweep records itself.
#[rustfmt::skip]
pub(in crate::plan) const OF_CELLS: &[&str] = &[
    "--rw", "--bs", "--depth", "--workers", "--engine", "engine options", "--cache", "--mix", "--batch",
    "--line", "--time", "--warmup", "--runs",
];
/// Default runs of each cell in an exhaustive search: the fewest that give a 95 % interval.
const CELL_RUNS: u32 = 3;
/// Time of a cell in an exhaustive search: one second, as in CCSIO.
const TIME_NS: u64 = 1_000_000_000;
/// The runs of an adaptive search are this many times shorter than the time of a cell. Good cells are measured often,
/// bad ones once.
const PIECES: u64 = 5;

/// Makes the jobs of the grid.
pub(in crate::plan) fn grid_jobs(
    request: &Request,
    sweep_spec: &SweepSpec,
    root: &Root,
    memory: Option<u64>,
    denial: Option<&str>,
    origins: &mut Origins,
) -> Result<Jobs, Failure> {
    let axes = &sweep_spec.axes;
    if let Some(cause) = denial.filter(|_| axes.engine.iter().any(|engine| engine.name == engine::WANTED)) {
        // Refuse it: if only the other engines were measured, the user would not notice that io_uring is left out.
        return Err(Failure::Refused(format!("--engine io_uring: {cause}; type --engine libaio")));
    }
    let engines =
        if axes.engine.is_empty() { vec![default_engine(axes, denial)] } else { axes.engine.clone() };
    let entries: Vec<&'static Entry> = engines.iter().map(|e| find_entry(e)).collect::<Result<_, _>>()?;
    let targets =
        if entries.iter().any(|e| e.moves_bytes) { target_facts(request, root)? } else { Vec::new() };
    let loads = cell::choose_loads(sweep_spec, (targets.len() as u32).max(1), origins)?;
    let works = choose_works(request, sweep_spec, &targets, origins)?;
    let measures = choose_measures(sweep_spec, &works, origins);
    let memory_bytes = choose_memory_cap(sweep_spec, memory, origins);
    let base = base_job(request, sweep_spec, &targets);
    let mut builder = GridBuilder {
        base,
        memory_bytes,
        targets,
        loads,
        denial: denial.filter(|_| axes.engine.is_empty()).map(str::to_owned),
        specs: Vec::new(),
        cells: Vec::new(),
        skipped: Vec::new(),
        sweep_spec,
    };
    for work in works {
        for (engine, entry) in engines.iter().zip(&entries) {
            builder.add_cells(&work, engine, entry)?;
        }
    }
    let GridBuilder { cells, skipped, .. } = &builder;
    if cells.is_empty() {
        let why = skipped
            .first()
            .map_or("the axes define no cell".to_owned(), |s| format!("{}: {}", s.setting.describe(), s.why));
        return Err(Failure::Usage(format!(
            "no cell of the grid can be measured: {why}; type --skipped to see the reason for each cell"
        )));
    }
    record_axes(axes, sweep_spec, origins);
    origins.record("cells", &format!("{} to measure, {} skipped", cells.len(), skipped.len()), "the axes");
    let (mut baselines, mut tolerance) = (Vec::new(), TOLERANCE);
    let search = if let Some(preset) = sweep_spec.preset.filter(|p| p.is_in_order()) {
        Search::InOrder(plan_in_order(request, &builder, preset.rounds(), origins)?)
    } else {
        baselines = builder.add_baselines();
        tolerance = origins.choose("--tolerance", sweep_spec.tolerance, TOLERANCE, |share| {
            format!("{}%", (1000.0 * share).round() / 10.0)
        });
        plan_search(request, &builder, baselines.len(), origins)?
    };
    let GridBuilder { specs, cells, skipped, .. } = builder;
    let preset = sweep_spec.preset.map(|p| p.name.to_owned());
    let grid = Grid { preset, cells, skipped, baselines, search, tolerance, measures };
    Ok(Jobs { specs, study: grid.into(), ..Jobs::default() })
}

/// Chooses the limit on the buffers of a cell. The default is [`MEMORY_BYTES`]. For a preset that measures until a cell
/// is slow, it is half of the machine's memory, if that is known.
fn choose_memory_cap(sweep_spec: &SweepSpec, memory: Option<u64>, origins: &mut Origins) -> u64 {
    let (default, from) = match (sweep_spec.preset.map(|p| p.procedure), memory) {
        (Some(Procedure::UntilSlow { .. }), Some(memory)) => {
            (memory / crate::plan::BUFFER_SHARE, "half of the machine's memory")
        }
        _ => (MEMORY_BYTES, "default"),
    };
    origins.choose_from("--memory", sweep_spec.memory, default, from, |b| show_bytes(*b))
}

fn default_engine(axes: &Axes, denial: Option<&str>) -> EngineSpec {
    let is_mapped = !axes.cache.is_empty() && axes.cache.iter().all(|c| *c == Cache::Mmap);
    let usual = engine::default_engine(denial).map_or(engine::WANTED, |entry| entry.name);
    let name = if is_mapped { "mmap" } else { usual };
    EngineSpec { name: name.into(), options: model::job::Options::new() }
}

fn find_entry(engine: &EngineSpec) -> Result<&'static Entry, Failure> {
    let stream = StreamSpec { engine: Some(engine.clone()), ..StreamSpec::default() };
    let entry = crate::plan::engine::find(&stream).map_err(|problem| Failure::Usage(problem.in_flags()))?;
    if entry.touches_targets() && !entry.moves_bytes {
        return Err(Failure::Usage(format!(
            "--engine {}: a sweep compares cells by the data that they move, and this engine moves none; type `fathom run --engine {0}`",
            entry.name
        )));
    }
    Ok(entry)
}

/// The common settings of all jobs.
fn base_job(request: &Request, sweep_spec: &SweepSpec, targets: &[TargetFacts]) -> JobSpec {
    let mut job = request.job.clone();
    // A preset's size is fathom's default, not the user's. If it does not fit, the plan uses the usual size. If that
    // does not fit either, fathom makes a smaller file.
    let has_room = |bytes: &u64| {
        let fits =
            |t: &TargetFacts| t.role == Role::Made && machine::test_file::check_room(&t.path, *bytes).is_ok();
        !targets.is_empty() && targets.iter().all(fits)
    };
    let preset_size = sweep_spec.preset.map(|p| p.size_bytes).filter(has_room);
    for stream in job.streams_mut() {
        stream.size = stream.size.or(preset_size);
    }
    for phase in &mut job.phases {
        let window_ns = phase.time.unwrap_or(sweep_spec.preset.and_then(Preset::time_ns).unwrap_or(TIME_NS));
        let is_in_order = sweep_spec.preset.is_some_and(Preset::is_in_order);
        // A percentile needs many operations, and short runs have few.
        let is_one_run = sweep_spec.exhaustive || is_in_order || sweep_spec.by == Some(Measure::P99);
        let parts = if is_one_run { 1 } else { PIECES };
        phase.time = Some((window_ns / parts).max(MIN_TIME_NS));
        phase.warmup = Some(phase.warmup.unwrap_or(0));
    }
    job
}

/// Records each axis with its values and their origin.
fn record_axes(axes: &Axes, sweep_spec: &SweepSpec, origins: &mut Origins) {
    let preset = sweep_spec.preset.map(|p| format!("preset {}", p.name));
    let is_iometer = sweep_spec.preset.is_some_and(|p| p.name == IOMETER);
    // With preset iometer, `record_loads` records these axes.
    let is_of_cycle = |axis: &str| is_iometer && ["depth", "workers", "targets"].contains(&axis);
    for axis in AXES.iter().filter(|axis| !is_of_cycle(axis.name)) {
        let values = (axis.format)(axes);
        if !values.is_empty() {
            let from = preset.as_deref().filter(|_| !sweep_spec.flags.contains(&axis.name));
            origins.record(&format!("axis {}", axis.name), &values, from.unwrap_or("command line"));
        }
    }
    let modes = sweep_spec.preset.filter(|_| axes.cache.is_empty()).map_or(&[][..], |p| p.modes);
    for mode in modes {
        let remark = if mode.remark.is_empty() { String::new() } else { format!("; {}", mode.remark) };
        let value = format!("{}: {}{remark}", mode.name, mode.cache.word());
        origins.record("mode", &value, preset.as_deref().unwrap_or_default());
    }
}

/// Order and direction, or an access specification.
enum CellWork {
    /// One order and direction.
    Plain(Rw, Option<Mix>),
    /// An access specification.
    Named(Spec),
}

/// The works of a sweep. Writes to a user's file or device require its name in --destroy.
fn choose_works(
    request: &Request,
    sweep_spec: &SweepSpec,
    targets: &[TargetFacts],
    origins: &mut Origins,
) -> Result<Vec<CellWork>, Failure> {
    let mut all = if sweep_spec.axes.spec.is_empty() {
        plain_works(sweep_spec)?
    } else {
        named_works(request, sweep_spec)?
    };
    let has_user_target = targets.iter().any(|t| t.role != Role::Made);
    let is_work_typed =
        sweep_spec.flags.iter().any(|f| ["rw", "spec"].contains(f)) || request.flags.contains(&"line");
    if has_user_target && !is_work_typed && request.destroy.is_empty() {
        if let Some(preset) = sweep_spec.preset.filter(|p| p.rounds().is_some()) {
            let path = targets.first().map(|t| name::text(&t.path)).unwrap_or_default();
            return Err(Failure::Refused(format!(
                "--preset {} overwrites all of {}; type --destroy={} if its data are not needed, or name a directory, in which fathom makes a test file",
                preset.name,
                name::visible(&path),
                name::quoted(&path)
            )));
        }
        all.retain(|work| !work.writes());
        origins.record("directions", "reads only", "TARGET exists; --destroy TARGET adds writes");
    }
    refuse_unused_flag(request, "random", all.iter().any(CellWork::is_random), "--rw randread")?;
    for key in ["compress", "dedup"] {
        refuse_unused_flag(request, key, all.iter().any(CellWork::writes), "--rw write")?;
    }
    Ok(all)
}

fn plain_works(sweep_spec: &SweepSpec) -> Result<Vec<CellWork>, Failure> {
    let axes = &sweep_spec.axes;
    let all = if axes.rw.is_empty() { vec![Rw::Read, Rw::Write] } else { axes.rw.clone() };
    if !axes.mix.is_empty() && !all.iter().any(|rw| rw.is_mixed()) {
        return Err(Failure::Usage(
            "--mix has no effect: no --rw mixes reads and writes; type --rw rw or --rw randrw".into(),
        ));
    }
    let mixes = if axes.mix.is_empty() { vec![Mix::EVEN] } else { axes.mix.clone() };
    let works_of = |rw: Rw| -> Vec<CellWork> {
        if rw.is_mixed() {
            mixes.iter().map(|m| CellWork::Plain(rw, Some(*m))).collect()
        } else {
            vec![CellWork::Plain(rw, None)]
        }
    };
    Ok(all.into_iter().flat_map(works_of).collect())
}

/// Returns the access specifications as works. Refuses flags for settings that they define.
fn named_works(request: &Request, sweep_spec: &SweepSpec) -> Result<Vec<CellWork>, Failure> {
    let flags = || sweep_spec.flags.iter().chain(&request.flags);
    if let Some(flag) =
        ["rw", "mix", "bs", "random", "align"].iter().find(|key| flags().any(|flag| flag == *key))
    {
        return Err(Failure::Usage(format!(
            "--{flag} cannot be combined with access specifications, which define it; leave --{flag} out, or sweep without --spec and --line"
        )));
    }
    Ok(sweep_spec.axes.spec.iter().cloned().map(CellWork::Named).collect())
}

/// Refuses a flag that would change no cell.
fn refuse_unused_flag(request: &Request, key: &str, is_used: bool, fix: &str) -> Result<(), Failure> {
    if is_used || !request.flags.contains(&key) {
        return Ok(());
    }
    Err(Failure::Usage(format!("--{key} has no effect on any cell; leave --{key} out, or type {fix}")))
}

/// Returns the measure that ranks the cells of each work; empty if the cells are measured in order, because then no cell is ranked.
fn choose_measures(
    sweep_spec: &SweepSpec,
    works: &[CellWork],
    origins: &mut Origins,
) -> BTreeMap<String, Measure> {
    if sweep_spec.preset.is_some_and(Preset::is_in_order) {
        return BTreeMap::new();
    }
    let all: BTreeMap<String, Measure> =
        works.iter().map(|work| (work.name(), sweep_spec.by.unwrap_or(work.measure()))).collect();
    let words = model::distinct(all.values().map(|m| m.word()));
    let from = if sweep_spec.by.is_some() { "command line" } else { "default" };
    origins.record("--by", &words.join(", "), from);
    all
}

impl CellWork {
    /// Name of the work, as in [`Setting::work`](model::sweep::Setting::work).
    fn name(&self) -> String {
        match self {
            Self::Plain(rw, Some(mix)) => format!("{} {}", rw.word(), mix.describe()),
            Self::Plain(rw, None) => rw.word().into(),
            Self::Named(spec) => spec.name.clone(),
        }
    }

    /// The main measure of the work: operations for random offsets, bytes for sequential ones.
    fn measure(&self) -> Measure {
        let random = match self {
            Self::Plain(rw, _) => rw.is_random(),
            Self::Named(spec) => spec.lines.iter().any(|line| line.random_percent() > 0.0),
        };
        if random { Measure::Iops } else { Measure::Bandwidth }
    }

    /// Whether the work changes data.
    fn writes(&self) -> bool {
        match self {
            Self::Plain(rw, _) => rw.fixed_mix().is_none_or(|m| !m.does(Kind::Read)),
            Self::Named(spec) => spec.writes(),
        }
    }

    /// Whether a distribution of random offsets (`--random`) has an effect. An access specification defines its own
    /// offsets, so it is never random in this sense.
    fn is_random(&self) -> bool {
        matches!(self, Self::Plain(rw, _) if rw.is_random())
    }

    /// The kinds of operation of the work, each once.
    fn kinds(&self) -> Vec<Kind> {
        let mut all = match self {
            Self::Plain(rw, mix) => {
                let mut kinds = kinds_of(mix.or_else(|| rw.fixed_mix()).unwrap_or(Mix::EVEN));
                kinds.extend(rw.writes_after_trims().then_some(Kind::Write));
                kinds
            }
            Self::Named(spec) => spec.lines.iter().flat_map(|line| kinds_of(line.mix)).collect(),
        };
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn kinds_of(mix: Mix) -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| mix.does(*kind)).collect()
}

/// Assumed cost of a run besides its window: snapshots, eviction, final sync. 10 ms were measured with direct reads.
const OVERHEAD_NS: u64 = 20_000_000;

/// Plans the end of a grid whose cells are measured in order.
fn plan_in_order(
    request: &Request,
    builder: &GridBuilder,
    preset_rounds: Option<Rounds>,
    origins: &mut Origins,
) -> Result<Until, Failure> {
    let until =
        preset_rounds.map_or(Ok(Until::Slow), |preset_rounds| end_of_rounds(builder, preset_rounds))?;
    let time = builder.base.phases.first().and_then(|p| p.time).unwrap_or(TIME_NS);
    let is_time_typed = request.job.phases.first().is_some_and(|p| p.time.is_some());
    let from = if is_time_typed { "command line".into() } else { request.origin("time") };
    origins.record("--time", &format!("{} a cell", show_ns(time as f64)), &from);
    let words = match until {
        Until::Slow => {
            "the largest block size, or one at which every four workers together complete at most one operation per second"
                .into()
        }
        Until::Rounds { bytes: Some(bytes), rounds_at_most, .. } => {
            format!("{} written, or {rounds_at_most} rounds", show_bytes(bytes))
        }
        Until::Rounds { tracked, rounds_at_most, .. } => {
            let cell = builder.specs.get(tracked).and_then(|spec| spec.name.as_deref()).unwrap_or_default();
            format!("five rounds are steady in the cell {cell}, or {rounds_at_most} rounds")
        }
    };
    origins.record("ends by", &words, &request.origin("preset"));
    Ok(until)
}

/// Returns when the rounds of a preset end. A preset that repeats until writes of one size are steady needs a cell with these writes.
fn end_of_rounds(builder: &GridBuilder, preset_rounds: Rounds) -> Result<Until, Failure> {
    let Rounds { tracked_bytes, variable, capacities, at_most } = preset_rounds;
    let is_tracked = |c: &&Cell| c.setting.block_bytes == tracked_bytes && c.setting.only_writes();
    let Some(tracked) = builder.cells.iter().find(is_tracked).map(|c| c.job) else {
        let preset = builder.sweep_spec.preset.map_or("pts", |p| p.name);
        return Err(Failure::Usage(format!(
            "--preset {preset} repeats writes of {} until they are steady, and no measurable cell has them; include that size in --bs, and 0 in --mix",
            show_block(u64::from(tracked_bytes))
        )));
    };
    let size = builder.base.streams().next().and_then(|s| s.size);
    let size = size.or(builder.targets.first().map(|t| t.bytes));
    let bytes = capacities.map(|times| size.unwrap_or(0).saturating_mul(times));
    Ok(Until::Rounds { tracked, variable, bytes, rounds_at_most: at_most })
}

impl StudyPlan for Grid {
    fn repeats(&self, request: &Request, _: Option<u32>, _: &mut Origins) -> (u32, Strategy) {
        // The runs of a cell are recorded along with its time.
        (request.job.runs.unwrap_or(CELL_RUNS), Strategy::Fixed)
    }

    /// Returns `None`, because the grid contains the budget of its search.
    fn budget_ns(&self, _timing: &Timing, _origins: &mut Origins) -> Result<Option<u64>, Failure> {
        Ok(None)
    }

    fn check(&self, condition: &Condition) -> Result<(), String> {
        if condition.result.is_some() || !condition.limit.is_on_percentile() {
            return Ok(());
        }
        Err(format!(
            "the winner of a sweep has {FRESH_RUNS} runs, and a percentile requires {FEWEST_GATED_RUNS}; type iops<20000 or mb/s<90 here, and check the percentile in a run of the winner"
        ))
    }
}

/// Plans the time budget and strategy of a search. The jobs of the baselines are the last ones.
fn plan_search(
    request: &Request,
    builder: &GridBuilder,
    baselines: usize,
    origins: &mut Origins,
) -> Result<Search, Failure> {
    let runs = request.job.runs.unwrap_or(CELL_RUNS);
    let jobs = builder.specs.len() - baselines;
    let finals = (model::sweep::works(&builder.cells).len() * 2 + baselines) * FRESH_RUNS;
    let piece_ns = builder.base.phases.first().and_then(|p| p.time).unwrap_or(TIME_NS);
    let warmup_ns = builder.base.phases.first().and_then(|p| p.warmup).unwrap_or(0);
    let window_ns = request.job.phases.first().and_then(|p| p.time).unwrap_or(TIME_NS);
    let with_extra_runs = |runs: u64| runs + runs.div_ceil(REFERENCE_EVERY as u64 - 1) + finals as u64;
    let run_ns = |window_ns: u64| window_ns + warmup_ns + OVERHEAD_NS;
    let from = |set: bool| if set { "command line" } else { "default" };
    let is_time_typed = request.job.phases.first().is_some_and(|p| p.time.is_some());
    if builder.sweep_spec.exhaustive {
        let exhaustive = with_extra_runs(jobs as u64 * u64::from(runs)).saturating_mul(run_ns(window_ns));
        let words = format!("{} a run, {runs} runs a cell", show_ns(window_ns as f64));
        origins.record("--time", &words, from(is_time_typed));
        origins.record("time", &format!("about {}", minutes(exhaustive)), "all cells");
        return Ok(Search::Exhaustive);
    }
    let words =
        format!("runs of {} (time of a cell: {})", show_ns(piece_ns as f64), show_ns(window_ns as f64));
    origins.record("--time", &words, from(is_time_typed));
    // The fewest runs: one of each cell, then the extra ones of winners, cheapest cells and baselines.
    let least = with_extra_runs(jobs as u64).saturating_mul(run_ns(piece_ns));
    let makes_files = builder.targets.iter().any(|t| t.role == Role::Made);
    let making = if makes_files { MAKING_NS } else { 0 };
    let budget_ns = budget::for_search(request.budget_ns, jobs, least, run_ns(piece_ns), making, origins)?;
    Ok(Search::Adaptive { budget_ns })
}
