//! Cells of a sweep: turns a point of the axes into a job, or into the reason why there is none. Also computes the loads:
//! numbers of workers, targets and outstanding operations.
//!
//! Loads are the product of the axes, or the sequence of one of Iometer's test types. In Iometer the user gives targets to
//! each worker; here every worker may use all named targets.

use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::plan::sweep::CellWork;
use crate::plan::target::{self, TargetFacts};
use crate::request::SweepSpec;
use engine::engines::{self, Entry};
use model::job::{Advice, Batch, Cache, GROW, Mix, PerKind, Sizes, StopRule};
use model::name;
use model::plan::Role;
use model::spec::axes::{IOMETER, MAX_CELLS, Mode, Offset, Procedure, names};
use model::spec::iometer::{Cycle, Step};
use model::spec::number::MAX_WORKERS;
use model::spec::{EngineSpec, JobSpec, PhaseSpec, Rw, StreamSpec};
use model::sweep::{Baseline, Cell, Setting, Skipped, works};
use model::units::{MIB, show_bytes, show_counted};
use std::num::NonZero;
use std::thread::available_parallelism;

/// Defaults of well-known programs: one operation at a time, through the page cache. Sources: `cp` of GNU coreutils 8 and
/// 9 (`ioblksize.h`: 128 KiB), `dd` by POSIX (512 bytes).
const BASELINES: [(&str, u32); 2] = [("cp", 128 << 10), ("dd", 512)];
/// Most bytes of the single pass of `cp` or `dd`: a second pass would read the page cache.
const MAX_BASELINE_BYTES: u64 = 256 * MIB;

/// A start in percent is rounded down to a multiple of this many bytes, for direct I/O.
const POSITION_BYTES: u64 = 4096;

/// Where a cell begins on its targets, and how many bytes follow.
#[derive(Clone, Copy)]
struct CellStart {
    /// First byte of the cell.
    bytes: u64,
    /// Percent of the smallest target; `None` if not given in percent.
    percent: Option<u32>,
    /// Bytes from the first byte of the cell to the end of the smallest target.
    left: u64,
}

/// A grid while its cells are made.
pub(super) struct GridBuilder<'a> {
    pub(super) base: JobSpec,
    pub(super) memory_bytes: u64,
    /// Facts of each named target; empty if the engine touches none.
    pub(super) targets: Vec<TargetFacts>,
    pub(super) loads: Loads,
    /// What denies io_uring, if its replacement is used.
    pub(super) denial: Option<String>,
    pub(super) specs: Vec<JobSpec>,
    pub(super) cells: Vec<Cell>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) sweep_spec: &'a SweepSpec,
}

/// A value of each axis.
struct GridPoint<'a> {
    work: &'a CellWork,
    mode: Option<&'static Mode>,
    cache: Cache,
    engine: &'a EngineSpec,
    entry: &'static Entry,
    assignment: Assignment,
    /// Where the cell begins on its targets; `None` without the axis `offset`.
    at: Option<CellStart>,
    batch: Option<u32>,
    /// Block size in bytes; with an access specification, its largest one.
    bs: u32,
    depth: u32,
}

impl GridBuilder<'_> {
    /// Adds every cell of a work with this engine.
    pub(super) fn add_cells(
        &mut self,
        work: &CellWork,
        engine: &EngineSpec,
        entry: &'static Entry,
    ) -> Result<(), Failure> {
        let axes = &self.sweep_spec.axes;
        let default = self.default_cache(entry);
        let writes = work.writes();
        let modes: Vec<(Option<&'static Mode>, Cache)> = match self.sweep_spec.preset {
            Some(preset) if axes.cache.is_empty() && !preset.modes.is_empty() => preset
                .modes
                .iter()
                .filter(|m| !(m.reads_only && writes))
                .map(|m| (Some(m), m.cache))
                .collect(),
            _ if axes.cache.is_empty() => vec![(None, default)],
            _ => axes.cache.iter().map(|c| (None, *c)).collect(),
        };
        let sizes: Vec<u32> = match work {
            CellWork::Named(spec) => vec![spec.largest_bytes()],
            CellWork::Plain(..) if axes.bs.is_empty() => (12..=22).map(|i| 1 << i).collect(),
            CellWork::Plain(..) => axes.bs.clone(),
        };
        let Loads { assignments, depths } = self.loads.clone();
        let batches = optional_values(&axes.batch);
        let offsets = optional_values(&axes.offset);
        // The properties of a cell besides its cache mode, size and depth.
        let variants: Vec<(Assignment, Option<Offset>, Option<u32>)> = assignments
            .iter()
            .flat_map(|a| offsets.iter().map(move |at| (*a, *at)))
            .flat_map(|(a, at)| batches.iter().map(move |batch| (a, at, *batch)))
            .collect();
        let cells = modes.len() * sizes.len() * depths.len() * variants.len();
        if self.cells.len() + self.skipped.len() + cells > MAX_CELLS {
            return Err(Failure::Usage(format!(
                "the grid has more than {MAX_CELLS} cells; type fewer values of one of --{}",
                names().join(", --")
            )));
        }
        for (mode, cache) in modes {
            for (assignment, offset, batch) in &variants {
                let (assignment, batch) = (*assignment, *batch);
                let at = offset.map(|offset| self.cell_start(offset, assignment));
                for (bs, depth) in sizes.iter().flat_map(|bs| depths.iter().map(move |d| (*bs, *d))) {
                    self.add(&GridPoint {
                        work,
                        mode,
                        cache,
                        engine,
                        entry,
                        assignment,
                        at,
                        batch,
                        bs,
                        depth,
                    });
                }
            }
        }
        Ok(())
    }

    /// The targets of a cell; empty if nothing is touched.
    fn used_targets(&self, assignment: Assignment) -> &[TargetFacts] {
        let used = match assignment.only_target {
            Some(at) => self.targets.get(at..=at),
            None => self.targets.get(..(assignment.targets as usize).min(self.targets.len())),
        };
        used.unwrap_or_default()
    }

    /// The start of a cell. A percentage refers to the smallest target, so that the cell begins at
    /// the same byte of each.
    fn cell_start(&self, offset: Offset, assignment: Assignment) -> CellStart {
        let size = self.base.streams().next().and_then(|s| s.size);
        let made_bytes = size.unwrap_or(target::MADE_BYTES);
        let target_bytes = |t: &TargetFacts| t.known_bytes().unwrap_or(made_bytes);
        let smallest = self.used_targets(assignment).iter().map(target_bytes).min().unwrap_or(made_bytes);
        let (bytes, percent) = match offset {
            Offset::Bytes(bytes) => (bytes, None),
            Offset::Percent(percent) => {
                let bytes = (u128::from(smallest) * u128::from(percent) / 100) as u64;
                (bytes / POSITION_BYTES * POSITION_BYTES, Some(percent))
            }
        };
        CellStart { bytes, percent, left: smallest.saturating_sub(bytes) }
    }

    /// Default cache mode: the engine's preference, unless the place does not support it.
    fn default_cache(&self, entry: &Entry) -> Cache {
        let best = entry.caches.first().copied().unwrap_or(Cache::Direct);
        let is_direct_possible = self.targets.iter().all(|t| t.is_direct);
        let other = || entry.caches.iter().copied().find(|c| !c.is_direct());
        if best.is_direct() && !is_direct_possible { other().unwrap_or(best) } else { best }
    }

    fn add(&mut self, point: &GridPoint) {
        let setting = self.setting(point);
        if let Some(why) = self.find_hindrance(point, &setting) {
            self.skipped.push(Skipped { setting, why });
            return;
        }
        let job = self.add_job(self.make_spec(point), &setting);
        self.cells.push(Cell { setting, job });
    }

    /// Describes the settings of a cell.
    fn setting(&self, point: &GridPoint) -> Setting {
        let Assignment { workers, targets, targets_of_last, only_target } = point.assignment;
        let (rw, mix, spec) = match point.work {
            CellWork::Plain(rw, mix) => (rw.word().into(), mix.map(Mix::describe), None),
            CellWork::Named(spec) => (String::new(), None, Some(spec.name.clone())),
        };
        Setting {
            block_bytes: point.bs,
            depth: point.depth,
            workers,
            engine: point.engine.to_flag(),
            cache: point.cache,
            rw,
            mix,
            batch: point.batch,
            mode: point.mode.map(|m| m.name.into()),
            spec,
            targets: (self.targets.len() > 1 && only_target.is_none()).then_some(targets),
            targets_of_last,
            target: only_target.and_then(|at| self.sweep_spec.axes.target.get(at)).cloned(),
            offset_bytes: point.at.map(|at| at.bytes),
            offset_percent: point.at.and_then(|at| at.percent),
        }
    }

    /// Returns the index of the cell's job. Cells with equal jobs on this system share one, unless the preset measures each cell.
    fn add_job(&mut self, spec: JobSpec, setting: &Setting) -> usize {
        let is_once = self.sweep_spec.preset.is_some_and(|p| p.procedure == Procedure::Once);
        let same = |known: &JobSpec| !is_once && known.phases == spec.phases;
        self.specs.iter().position(same).unwrap_or_else(|| {
            self.specs.push(JobSpec { name: Some(setting.describe()), ..spec });
            self.specs.len() - 1
        })
    }

    /// Returns why a cell cannot be measured; `None` if it can.
    fn find_hindrance(&self, point: &GridPoint, setting: &Setting) -> Option<String> {
        let GridPoint { entry, cache, .. } = *point;
        let memory = setting.memory_bytes();
        if memory > self.memory_bytes {
            let (needs, cap) = (show_bytes(memory), show_bytes(self.memory_bytes));
            return Some(format!("the buffers take {needs}, which is more than --memory ({cap})"));
        }
        if point.depth > entry.max_depth {
            return Some(format!(
                "the engine {} has at most {} in flight",
                entry.name,
                show_counted(entry.max_depth.into(), "operation")
            ));
        }
        if !entry.caches.contains(&cache) {
            return Some(format!("the engine {} does not work with --cache {}", entry.name, cache.word()));
        }
        if let Some(kind) = point.work.kinds().into_iter().find(|k| !entry.kinds.contains(k)) {
            return Some(format!("the engine {} cannot {}", entry.name, kind.word()));
        }
        if let Some(cause) = self.denial.as_ref().filter(|_| point.depth > 1 && !cache.is_direct()) {
            return Some(format!(
                "io_uring cannot be used ({cause}), and libaio does buffered operations one at a time; type --cache direct, or --engine sync --depth 1"
            ));
        }
        if let Some(batch) = point.batch.filter(|b| *b > point.depth) {
            return Some(format!("a batch of {batch} is more than the depth {}", point.depth));
        }
        let bs = u64::from(point.bs);
        let size = self.base.streams().next().and_then(|s| s.size);
        if let Some(size) = size.filter(|s| *s < bs) {
            return Some(format!("the region has only {}", show_bytes(size)));
        }
        if let Some(at) = point.at.filter(|at| at.left < bs) {
            return Some(format!(
                "only {} remain after offset {}",
                show_bytes(at.left),
                show_bytes(at.bytes)
            ));
        }
        let is_until_slow =
            self.sweep_spec.preset.is_some_and(|p| matches!(p.procedure, Procedure::UntilSlow { .. }));
        let mut used = self.used_targets(point.assignment).iter().filter(|_| entry.moves_bytes);
        let is_all = |t: &TargetFacts| size.or(t.known_bytes()) == Some(bs);
        if is_until_slow && used.clone().any(is_all) {
            return Some("one block covers the whole target".into());
        }
        used.find_map(|target| find_hindrance_on(target, point))
    }

    /// Makes the job of a cell.
    fn make_spec(&self, point: &GridPoint) -> JobSpec {
        let mut job = self.base.clone();
        let first = |count: u32| -> Vec<String> {
            let used = self.targets.iter().take(count as usize);
            used.map(|t| name::text(&t.path)).collect()
        };
        let Assignment { workers, targets, targets_of_last, .. } = point.assignment;
        let mine = self.used_targets(point.assignment).iter();
        let is_part = (targets as usize) < self.targets.len();
        let has_cache = point.entry.moves_bytes || self.sweep_spec.flags.contains(&"cache");
        let mine: Vec<String> = mine.filter(|_| is_part).map(|t| name::text(&t.path)).collect();
        for PhaseSpec { streams, .. } in &mut job.phases {
            for stream in &mut *streams {
                point.apply(stream);
                stream.cache = has_cache.then_some(point.cache);
                // Plan it like a stream with the default engine, so that the replacement by libaio is recorded.
                if self.denial.is_some() && point.entry.max_depth > 1 {
                    stream.engine = None;
                }
                stream.target.clone_from(&mine);
                self.set_start(stream, point);
            }
            // If the last worker has fewer targets, it is a separate stream.
            if let (Some(few), Some(stream)) = (targets_of_last, streams.first_mut()) {
                let mut last =
                    StreamSpec { name: Some("the last worker".into()), target: first(few), ..stream.clone() };
                last.give("workers").workers = 1;
                stream.name = Some("the other workers".into());
                stream.give("workers").workers = workers.saturating_sub(1);
                streams.push(last);
            }
        }
        job
    }

    /// Sets the stream's start and limits it to the target's end.
    fn set_start(&self, stream: &mut StreamSpec, point: &GridPoint) {
        let Some(at) = point.at else { return };
        stream.give("offset").access.offset_bytes = at.bytes;
        // The offset does not shorten a file that fathom makes.
        if self.used_targets(point.assignment).iter().all(|t| t.role != Role::Made) {
            stream.size = stream.size.map(|size| size.min(at.left));
        }
    }

    /// Adds a job for each well-known program of [`BASELINES`] and each work of the sweep that the program does: reading a file that is not
    /// cached, or writing a new one. The job has the program's default settings.
    pub(super) fn add_baselines(&mut self) -> Vec<Baseline> {
        let Some(role) = self.targets.first().map(|t| t.role) else { return Vec::new() };
        // `cp` and `dd` start at the first byte of one target. With the axis `target` or `offset`, a comparison would mean nothing.
        let axes = &self.sweep_spec.axes;
        if !axes.target.is_empty() || !axes.offset.is_empty() {
            return Vec::new();
        }
        let Some(entry) = engines::find("sync") else { return Vec::new() };
        let mut out = Vec::new();
        for work in works(&self.cells) {
            let Some(rw) = [Rw::Read, Rw::Write].into_iter().find(|rw| rw.word() == work) else { continue };
            let grows = (rw == Rw::Write).then(|| (GROW.to_owned(), None));
            let engine = EngineSpec { name: "sync".into(), options: grows.into_iter().collect() };
            for (name, bs) in BASELINES {
                let Some(bytes) = self.baseline_bytes(bs) else { continue };
                let point = GridPoint {
                    work: &CellWork::Plain(rw, None),
                    mode: None,
                    cache: Cache::Buffered,
                    engine: &engine,
                    entry,
                    assignment: Assignment::new(1, 1),
                    at: None,
                    batch: None,
                    bs,
                    depth: 1,
                };
                let setting = self.setting(&point);
                // An existing file is not new, and fathom never truncates it.
                if rw == Rw::Write && role != Role::Made {
                    let why =
                        format!("{name} writes a new file; name a directory, in which fathom makes one");
                    self.skipped.push(Skipped { setting, why });
                    continue;
                }
                let name_of_job = Some(format!("{name}: {}", setting.describe()));
                let mut spec = JobSpec { name: name_of_job, ..self.make_spec(&point) };
                for phase in &mut spec.phases {
                    phase.warmup = Some(0);
                    for stream in &mut phase.streams {
                        // cp advises the kernel, dd does not.
                        let advises = name == "cp" && rw == Rw::Read;
                        stream.resolved.advice = advises.then_some(Advice::Sequential);
                        stream.resolved.limit =
                            StopRule { operations: Some(bytes / u64::from(bs)), ..StopRule::default() };
                    }
                }
                out.push(Baseline { name: name.into(), setting, job: self.specs.len() });
                self.specs.push(spec);
            }
        }
        out
    }

    /// Bytes of a baseline; `None` if no operation of its size fits.
    fn baseline_bytes(&self, bs: u32) -> Option<u64> {
        let stream = self.base.streams().next()?;
        let target_bytes = self.targets.first()?.known_bytes().unwrap_or(target::MADE_BYTES);
        let bytes =
            stream.size.unwrap_or(target_bytes).min(MAX_BASELINE_BYTES) / u64::from(bs) * u64::from(bs);
        (bytes > 0).then_some(bytes)
    }
}

/// The values of an axis; a single `None` for an unset axis.
fn optional_values<T: Copy>(axis: &[T]) -> Vec<Option<T>> {
    if axis.is_empty() { vec![None] } else { axis.iter().copied().map(Some).collect() }
}

/// Why a preset's buffered cells are not measured on a network or FUSE file system.
fn explain_client_cache(file_system: &str) -> String {
    format!(
        "buffered reads on {file_system} go through this machine's cache, and CCSIO turns local buffering off on remote volumes; type \
         --cache buffered to measure them"
    )
}

/// Returns why a cell cannot be measured on a target; `None` if it can.
fn find_hindrance_on(target: &TargetFacts, point: &GridPoint) -> Option<String> {
    if target.role != Role::Made && u64::from(point.bs) > target.bytes {
        return Some(format!("{} has only {}", name::shown(&target.path), show_bytes(target.bytes)));
    }
    if !point.cache.is_direct() {
        return point.mode.and(target.remote.as_deref()).map(explain_client_cache);
    }
    let Some(align) = target.align else { return Some("its file system has no direct I/O".into()) };
    let odd = |bytes: &u32| !bytes.is_multiple_of(align);
    let (size, reply) = match point.work {
        CellWork::Plain(..) => (Some(point.bs).filter(odd), None),
        CellWork::Named(spec) => (spec.sizes().find(odd), spec.replies().find(odd)),
    };
    if let Some(reply) = reply {
        return Some(format!(
            "its reply has {reply} bytes, and direct I/O here needs multiples of {align} bytes"
        ));
    }
    size.map(|_| format!("direct I/O here needs multiples of {align} bytes"))
}

impl GridPoint<'_> {
    /// Gives a stream the settings of the point, except its cache mode, targets and start.
    fn apply(&self, stream: &mut StreamSpec) {
        match self.work {
            CellWork::Plain(rw, mix) => {
                (stream.rw, stream.mix) = (Some(*rw), *mix);
                stream.bs = Some(PerKind::all(Sizes::Fixed(self.bs)));
            }
            CellWork::Named(spec) => stream.resolved.access.lines.clone_from(&spec.lines),
        }
        stream.depth = Some(self.depth);
        stream.give("workers").workers = self.assignment.workers;
        stream.engine = Some(self.engine.clone());
        stream.batch = self.batch.map(|submit| Batch { submit, complete: 1 });
        stream.random = stream.random.take().filter(|_| self.work.is_random());
        stream.compress = stream.compress.filter(|_| self.work.writes());
        stream.dedup = stream.dedup.filter(|_| self.work.writes());
    }
}

/// Default maximum of outstanding I/Os, as in Iometer.
const MAX_OUTSTANDING: u32 = 32;
/// Factor of exponential steps, and difference between linear steps of outstanding I/Os, as in
/// Iometer.
const STEP_FACTOR: u32 = 2;

/// Workers, and the targets that they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) workers: u32,
    /// Number of targets of each worker.
    pub(crate) targets: u32,
    /// Number of targets of the last worker if it has fewer than the others; otherwise `None`.
    pub(crate) targets_of_last: Option<u32>,
    /// Index of the only target, if each cell uses a single target; otherwise `None`.
    pub(crate) only_target: Option<usize>,
}

impl Assignment {
    fn new(workers: u32, targets: u32) -> Self {
        Self { workers, targets, targets_of_last: None, only_target: None }
    }
}

/// The loads of a grid: each assignment at each depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loads {
    pub(crate) assignments: Vec<Assignment>,
    /// Operations in flight of each worker on each target: Iometer's outstanding I/Os.
    pub(crate) depths: Vec<u32>,
}

/// Chooses the loads on this number of targets.
pub(crate) fn choose_loads(
    sweep_spec: &SweepSpec,
    targets: u32,
    origins: &mut Origins,
) -> Result<Loads, Failure> {
    let axes = &sweep_spec.axes;
    if let Some(many) = axes.targets.iter().find(|t| **t > targets) {
        return Err(Failure::Usage(format!(
            "--targets {many}: the sweep has only {}; name more targets, or use a smaller number",
            show_counted(targets.into(), "target")
        )));
    }
    if sweep_spec.preset.is_some_and(|p| p.name == IOMETER) {
        if !axes.target.is_empty() {
            return Err(Failure::Usage(
                "--target: a test type of Iometer chooses its targets itself; type them as TARGETs".into(),
            ));
        }
        let cpus = available_parallelism().map_or(1, NonZero::get);
        let cpus = u32::try_from(cpus).unwrap_or(MAX_WORKERS).min(MAX_WORKERS);
        let cycle = sweep_spec.cycle.unwrap_or(Cycle::Normal);
        let from = if sweep_spec.cycle.is_some() { "command line" } else { "default" };
        origins.record("--cycle", &format!("{}: {}", cycle.word(), cycle.about()), from);
        let loads = loads_of_cycle(sweep_spec, cycle, targets, cpus)?;
        record_loads(sweep_spec, cycle, &loads, origins);
        return Ok(loads);
    }
    let needless = [("cycle", sweep_spec.cycle.is_some()), ("step", sweep_spec.step.is_some())];
    if let Some((flag, _)) = needless.into_iter().find(|(_, is_typed)| *is_typed) {
        return Err(Failure::Usage(format!(
            "--{flag} applies only to the test types of Iometer; type --preset {IOMETER} too, or leave --{flag} out"
        )));
    }
    let workers = given_or(&axes.workers, &[1]);
    let assignments = if axes.target.is_empty() {
        product(&workers, &given_or(&axes.targets, &[targets]))
    } else if axes.targets.is_empty() {
        each_alone(&workers, axes.target.len())
    } else {
        return Err(Failure::Usage(
            "--target measures each target alone, and --targets sets how many are used at once; type one of them"
                .into(),
        ));
    };
    Ok(Loads { assignments, depths: given_or(&axes.depth, &[1, 2, 4, 8, 16]) })
}

fn given_or(typed: &[u32], default: &[u32]) -> Vec<u32> {
    if typed.is_empty() { default } else { typed }.to_vec()
}

/// Each number of workers on each number of targets.
fn product(workers: &[u32], targets: &[u32]) -> Vec<Assignment> {
    let assignment = |workers: u32| targets.iter().map(move |targets| Assignment::new(workers, *targets));
    workers.iter().flat_map(|w| assignment(*w)).collect()
}

/// Each number of workers on each target, a single target at a time.
fn each_alone(workers: &[u32], targets: usize) -> Vec<Assignment> {
    let on_each = |workers: u32| {
        (0..targets).map(move |at| Assignment { only_target: Some(at), ..Assignment::new(workers, 1) })
    };
    workers.iter().flat_map(|w| on_each(*w)).collect()
}

/// The loads of a test type. If an axis that the test type increases has one value, this value is the maximum. Several values are used as
/// they are, except in increment cycles, which refuse them.
fn loads_of_cycle(sweep_spec: &SweepSpec, cycle: Cycle, targets: u32, cpus: u32) -> Result<Loads, Failure> {
    let axes = &sweep_spec.axes;
    let rises = |is_increased: bool, values: &[u32]| is_increased && values.len() < 2;
    let workers_rise = rises(cycle.has_workers(), &axes.workers);
    let targets_rise = rises(cycle.has_targets(), &axes.targets);
    let depths_rise = rises(cycle.has_outstanding(), &axes.depth);
    if let Some(step) = sweep_spec.step.filter(|_| !workers_rise && !targets_rise && !depths_rise) {
        return Err(Failure::Usage(format!(
            "--step {} has no effect: in this test type no number of workers, targets or I/Os increases; leave --step out, or type another --cycle",
            step.word().to_lowercase()
        )));
    }
    let step = sweep_spec.step.unwrap_or(Step::Linear);
    let most = |values: &[u32], default: u32| values.first().copied().unwrap_or(default);
    let values = |rises: bool, values: &[u32], default: u32| {
        if rises { count_up_to(most(values, default), step) } else { given_or(values, &[default]) }
    };
    let depths = if depths_rise {
        let step = sweep_spec.step.unwrap_or(Step::Exponential);
        step.values(1, most(&axes.depth, MAX_OUTSTANDING), STEP_FACTOR).collect()
    } else {
        given_or(&axes.depth, &[1])
    };
    let assignments = if cycle.increments() {
        let list = [("workers", &axes.workers), ("targets", &axes.targets)];
        if let Some((flag, _)) = list.iter().find(|(_, values)| values.len() > 1) {
            return Err(Failure::Usage(format!(
                "--{flag}: {} increases the number itself; type one number, the maximum",
                cycle.word()
            )));
        }
        one_after_another(most(&axes.workers, cpus), most(&axes.targets, targets), step)
    } else {
        let workers = values(workers_rise, &axes.workers, cpus);
        product(&workers, &values(targets_rise, &axes.targets, targets))
    };
    Ok(Loads { assignments, depths })
}

/// Returns the numbers from one to the maximum, which always comes last, as in Iometer.
fn count_up_to(most: u32, step: Step) -> Vec<u32> {
    let by = if step == Step::Linear { 1 } else { STEP_FACTOR };
    let below = step.values(1, most.saturating_sub(1), by);
    below.chain([most]).collect()
}

/// Adds targets to one worker at a time: the first worker gets all of its targets before the second gets one.
fn one_after_another(workers: u32, targets: u32, step: Step) -> Vec<Assignment> {
    let targets = targets.max(1);
    let assignment = |pairs: u32| match (pairs / targets, pairs % targets) {
        (workers, 0) => Assignment::new(workers, targets),
        (0, few) => Assignment::new(1, few),
        (full, few) => Assignment { targets_of_last: Some(few), ..Assignment::new(full + 1, targets) },
    };
    count_up_to(workers.saturating_mul(targets), step).into_iter().map(assignment).collect()
}

/// Records the numbers of workers, targets and outstanding I/Os, and where they come from.
fn record_loads(sweep_spec: &SweepSpec, cycle: Cycle, loads: &Loads, origins: &mut Origins) {
    let Loads { assignments, depths } = loads;
    let list = |of: fn(&Assignment) -> u32| {
        let mut all: Vec<u32> = assignments.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        format_list(&all)
    };
    let axes = &sweep_spec.axes;
    let law = sweep_spec.step.map_or("its default steps", Step::word);
    let from = |rises: bool, values: &[u32], default: &str| match (rises, values) {
        (_, [_, _, ..]) | (false, [_]) => "command line".to_owned(),
        (true, [_]) => format!("{}, {law}; maximum from the command line", cycle.word()),
        (true, []) => format!("{}, {law}", cycle.word()),
        (false, []) => default.to_owned(),
    };
    let by =
        from(cycle.has_workers() || cycle.increments(), &axes.workers, "the number of CPUs, as in Iometer");
    origins.record("workers", &list(|c| c.workers), &by);
    let by = from(cycle.has_targets(), &axes.targets, "all that are named");
    origins.record("targets", &list(|c| c.targets), &by);
    origins.record(
        "outstanding I/Os",
        &format!("{} per worker and target: the same as depth", format_list(depths)),
        &from(cycle.has_outstanding(), &axes.depth, "as in Iometer"),
    );
}

fn format_list(all: &[u32]) -> String {
    all.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
fn iometer_sweep(cycle: Cycle, step: Option<Step>) -> SweepSpec {
    SweepSpec {
        axes: model::spec::axes::Axes::default(),
        flags: Vec::new(),
        preset: model::spec::axes::preset(IOMETER),
        memory: None,
        exhaustive: true,
        by: None,
        tolerance: None,
        cycle: Some(cycle),
        step,
    }
}

/// Expected loads for three targets and two CPUs. An assignment has the number of workers, of targets, and of targets of the last worker.
#[cfg(test)]
struct TestCase {
    assignments: Vec<(u32, u32, u32)>,
    depths: Vec<u32>,
}

#[cfg(test)]
fn loads_on_three_targets(sweep_spec: &SweepSpec) -> Result<TestCase, String> {
    let cycle = sweep_spec.cycle.unwrap_or(Cycle::Normal);
    let Loads { assignments, depths } =
        loads_of_cycle(sweep_spec, cycle, 3, 2).map_err(|e| e.message().to_owned())?;
    let assignments =
        assignments.iter().map(|c| (c.workers, c.targets, c.targets_of_last.unwrap_or(0))).collect();
    Ok(TestCase { assignments, depths })
}

#[cfg(test)]
fn valid_loads(sweep_spec: &SweepSpec) -> TestCase {
    loads_on_three_targets(sweep_spec).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn test_types_have_the_loads_of_iometer() {
    let targets = [(2, 1, 0), (2, 2, 0), (2, 3, 0)];
    let one_by_one = [(1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 3, 1), (2, 3, 2), (2, 3, 0)];
    let both = [(1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 1, 0), (2, 2, 0), (2, 3, 0)];
    let doubling = [1, 2, 4, 8, 16, 32];
    for (cycle, assignments, depths) in [
        (Cycle::Normal, &[(2, 3, 0)][..], &[1][..]),
        (Cycle::Targets, &targets, &[1]),
        (Cycle::Workers, &[(1, 3, 0), (2, 3, 0)], &[1]),
        (Cycle::IncrementParallel, &one_by_one, &[1]),
        (Cycle::IncrementSerial, &one_by_one, &[1]),
        (Cycle::WorkersAndTargets, &both, &[1]),
        (Cycle::Outstanding, &[(2, 3, 0)], &doubling),
        (Cycle::OutstandingAndTargets, &targets, &doubling),
    ] {
        let seen = valid_loads(&iometer_sweep(cycle, None));
        assert_eq!(
            (seen.assignments.as_slice(), seen.depths.as_slice()),
            (assignments, depths),
            "{}",
            cycle.word()
        );
    }
}

#[test]
fn steps_and_flags_change_the_loads() {
    let cycled_loads = |cycle: Cycle, step: Step| valid_loads(&iometer_sweep(cycle, Some(step)));
    let targets = cycled_loads(Cycle::Targets, Step::Exponential).assignments;
    assert_eq!(targets, [(2, 1, 0), (2, 2, 0), (2, 3, 0)], "the last too");
    let odd: Vec<u32> = (1..32).step_by(2).collect();
    assert_eq!(cycled_loads(Cycle::Outstanding, Step::Linear).depths, odd, "by two, as Iometer's step is");
    let mut sweep_spec = iometer_sweep(Cycle::IncrementSerial, Some(Step::Exponential));
    sweep_spec.axes.workers = vec![5];
    assert_eq!(valid_loads(&sweep_spec).assignments, [(1, 1, 0), (1, 2, 0), (2, 3, 1), (3, 3, 2), (5, 3, 0)]);
    sweep_spec.axes.workers = vec![1, 2];
    assert!(loads_on_three_targets(&sweep_spec).is_err_and(|e| e.contains("one number")));
    let mut sweep_spec = iometer_sweep(Cycle::Workers, Some(Step::Linear));
    sweep_spec.axes.workers = vec![4, 8];
    assert!(loads_on_three_targets(&sweep_spec).is_err_and(|e| e.contains("--step linear has no effect")));
    sweep_spec.step = None;
    assert_eq!(valid_loads(&sweep_spec).assignments, [(4, 3, 0), (8, 3, 0)]);
    sweep_spec.axes.workers = vec![3];
    assert_eq!(
        valid_loads(&sweep_spec).assignments,
        [(1, 3, 0), (2, 3, 0), (3, 3, 0)],
        "one number is the most"
    );
    let mut sweep_spec = iometer_sweep(Cycle::OutstandingAndTargets, None);
    (sweep_spec.axes.depth, sweep_spec.axes.targets) = (vec![5], vec![2]);
    let seen = valid_loads(&sweep_spec);
    assert_eq!(
        (seen.assignments.len(), seen.depths),
        (2, vec![1, 2, 4]),
        "none above the end, as in Iometer"
    );
    let mut sweep_spec = iometer_sweep(Cycle::IncrementParallel, None);
    sweep_spec.axes.targets = vec![1];
    assert_eq!(valid_loads(&sweep_spec).assignments, [(1, 1, 0), (2, 1, 0)]);
}

#[test]
fn buffered_cells_of_a_preset_are_skipped_where_the_client_caches() {
    assert!(["fuse.sshfs", "nfs4", "cifs"].iter().all(|kind| analysis::is_remote(kind)));
    assert!(!analysis::is_remote("ext4"));
    assert!(explain_client_cache("fuse.sshfs").contains("on fuse.sshfs go through this machine's cache"));
}
