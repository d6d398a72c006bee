//! The grid of `fathom sweep`: one job per setting that can be measured, and a reason for each one that cannot.
//!
//! For: from axes to cells, what a cell may cost, and how long the search may take. Not for: measuring (the jobs are ordinary
//! ones) nor for choosing among them (crate `analysis`).

use super::origins::Origins;
use super::target;
use crate::failure::Failure;
use crate::request::{Request, SweepWish};
use analysis::strategy::sweep::{FRESH, REFERENCE_EVERY};
use engine::engines::{self, Entry};
use machine::root::Root;
use model::job::{Batch, Cache, Kind, Mix, PerKind, Sizes};
use model::machine::Place;
use model::plan::Role;
use model::sweep::{Cell, Grid, Search, Setting, Skipped, Until, Yardstick};
use model::units::{show_block, show_bytes, show_ns};
use model::wish::axes::{Axes, MAX_CELLS, MEMORY_BYTES, Mode, Preset, Rounds, Way, names};
use model::wish::limits::MIN_TIME_NS;
use model::wish::{EngineWish, JobWish, Rw, StreamWish};
use std::path::PathBuf;

/// Settings that cells say for themselves, or that are told in words of the sweep's own.
pub(super) const OF_CELLS: &[&str] = &[
    "--rw",
    "--bs",
    "--depth",
    "--workers",
    "--engine",
    "engine options",
    "--cache",
    "--mix",
    "--batch",
    "--time",
    "--warmup",
    "--runs",
];
/// What a cell gets in an exhaustive search: the second of CCSIO.
const TIME_NS: u64 = 1_000_000_000;
/// Parts of that time: what a run of an adaptive search gets, so that good cells get many and bad ones a single one.
const PIECES: u64 = 5;
/// Times an exhaustive search measures each cell unless said otherwise: the fewest that have an interval.
pub(super) const RUNS: u32 = 3;
/// Longest search unless said otherwise: what the original takes for its 285 cells.
const BUDGET_NS: u64 = 300_000_000_000;
/// Part of an exhaustive search's time that an adaptive one gets.
const QUARTER: u64 = 4;
/// Guess of what a run costs beside its window: snapshots, eviction, the final sync.
const OVERHEAD_NS: u64 = 120_000_000;
/// What well-known programs do unless told otherwise: one operation at a time, through the page cache. Sources: `cp` of GNU
/// coreutils 8 and 9 (`ioblksize.h`: 128 KiB), `dd` by POSIX (512 bytes).
const YARDSTICKS: [(&str, u32); 2] = [("cp", 128 << 10), ("dd", 512)];

/// A grid with its jobs, in the order of their indices.
pub(super) struct Spread {
    pub(super) wishes: Vec<JobWish>,
    pub(super) grid: Grid,
}

/// Where it is measured, as far as cells depend on it.
struct Ground {
    role: Role,
    path: PathBuf,
    /// Bytes that may be touched.
    bytes: u64,
    /// Alignment of direct I/O; `None` where there is none.
    align: Option<u32>,
}

/// A grid while it grows.
struct Growing<'a> {
    base: JobWish,
    memory_bytes: u64,
    ground: Option<Ground>,
    cache_said: bool,
    wishes: Vec<JobWish>,
    cells: Vec<Cell>,
    skipped: Vec<Skipped>,
    said: &'a SweepWish,
}

/// One point of the axes.
struct Point<'a> {
    rw: Rw,
    mix: Option<Mix>,
    mode: Option<&'static Mode>,
    cache: Cache,
    engine: &'a EngineWish,
    entry: &'static Entry,
    workers: u32,
    batch: Option<u32>,
    bs: u32,
    depth: u32,
}

/// Makes the grid.
pub(super) fn spread(
    request: &Request,
    said: &SweepWish,
    (root, memory): (&Root, Option<u64>),
    origins: &mut Origins,
) -> Result<Spread, Failure> {
    let axes = &said.axes;
    let engines = if axes.engine.is_empty() { vec![default_engine(axes)] } else { axes.engine.clone() };
    let entries: Vec<&'static Entry> = engines.iter().map(|e| entry(e)).collect::<Result<_, _>>()?;
    let ground = if entries.iter().any(|e| e.moves_bytes) { Some(look(request, root)?) } else { None };
    let works = works(request, said, ground.as_ref(), origins)?;
    let memory_bytes = memory_cap(said, memory, origins);
    let base = base(request, said, ground.as_ref());
    let mut growing = Growing {
        base,
        memory_bytes,
        ground,
        cache_said: said.flags.contains(&"cache"),
        wishes: Vec::new(),
        cells: Vec::new(),
        skipped: Vec::new(),
        said,
    };
    for work in works {
        for (engine, entry) in engines.iter().zip(&entries) {
            growing.of_engine(work, engine, entry)?;
        }
    }
    let Growing { cells, skipped, .. } = &growing;
    if cells.is_empty() {
        let why = skipped
            .first()
            .map_or("the axes have no cell".to_owned(), |s| format!("{}: {}", s.setting.words(), s.why));
        return Err(Failure::Usage(format!(
            "no cell of the grid can be measured: {why}; `--skipped` names all of them"
        )));
    }
    tell_axes(axes, said, origins);
    origins.fixed("cells", &format!("{} to measure, {} skipped", cells.len(), skipped.len()), "the axes");
    if let Some(way) = said.preset.map(|p| p.way).filter(|w| *w != Way::Sought) {
        return in_order(request, said, growing, way, origins);
    }
    let yardsticks = growing.yardsticks();
    let works = works_of(&growing.cells);
    let runs = request.job.runs.unwrap_or(RUNS);
    let jobs = growing.wishes.len() - yardsticks.len();
    let finals = works.len() * 2 * FRESH + yardsticks.len() * FRESH;
    let search = search(said, (jobs, finals, runs), &mut growing, request, origins)?;
    let Growing { wishes, cells, skipped, .. } = growing;
    let preset = said.preset.map(|p| p.name.to_owned());
    Ok(Spread { wishes, grid: Grid { preset, cells, skipped, yardsticks, search } })
}

/// A grid whose cells are measured in their order.
fn in_order(
    request: &Request,
    said: &SweepWish,
    growing: Growing,
    way: Way,
    origins: &mut Origins,
) -> Result<Spread, Failure> {
    let until = match way {
        Way::Rounds(rounds) => growing.rounds(rounds)?,
        Way::UntilSlow { .. } | Way::Sought => Until::Slow,
    };
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
    let Growing { wishes, cells, skipped, .. } = growing;
    let grid = Grid {
        preset: said.preset.map(|p| p.name.to_owned()),
        cells,
        skipped,
        yardsticks: Vec::new(),
        search: Search::InOrder(until),
    };
    Ok(Spread { wishes, grid })
}

/// Most bytes of a cell's buffers: the cap of the searches, or what the machine has where a preset knows none.
fn memory_cap(said: &SweepWish, memory: Option<u64>, origins: &mut Origins) -> u64 {
    let (default, from) = match said.preset.map(|p| p.way) {
        Some(Way::UntilSlow { .. }) => {
            (memory.map_or(MEMORY_BYTES, |m| m / super::BUFFER_SHARE), "half of what the machine has")
        }
        _ => (MEMORY_BYTES, "default"),
    };
    origins.choose_from("--memory", said.memory, default, from, |b| show_bytes(*b))
}

fn default_engine(axes: &Axes) -> EngineWish {
    let mapped = !axes.cache.is_empty() && axes.cache.iter().all(|c| *c == Cache::Mmap);
    let name = if mapped { "mmap" } else { "io_uring" };
    EngineWish { name: name.into(), options: model::job::Options::new() }
}

fn entry(said: &EngineWish) -> Result<&'static Entry, Failure> {
    let stream = StreamWish { engine: Some(said.clone()), ..StreamWish::default() };
    super::engine::find(&stream).map_err(|problem| Failure::Usage(problem.in_flags()))
}

fn look(request: &Request, root: &Root) -> Result<Ground, Failure> {
    let said = request.targets.first().cloned().unwrap_or_else(|| ".".into());
    let path = said.canonicalize().map_err(|e| target::unreachable_path(&said, &e))?;
    let (found, place) = target::look(root, &said, &path)?;
    Ok(Ground { role: found.role, bytes: found.bytes, align: alignment(&place), path })
}

/// Alignment of direct I/O at a place; `None` where it has none.
fn alignment(place: &Place) -> Option<u32> {
    if place.direct.is_some_and(|d| d.offset_align == 0) {
        return None;
    }
    Some(target::direct_alignment(place).max(1))
}

/// What is done. Writes to a file or device of the user's have to be asked for by its name.
fn works(
    request: &Request,
    said: &SweepWish,
    ground: Option<&Ground>,
    origins: &mut Origins,
) -> Result<Vec<(Rw, Option<Mix>)>, Failure> {
    let axes = &said.axes;
    let mut all = if axes.rw.is_empty() { vec![Rw::Read, Rw::Write] } else { axes.rw.clone() };
    let theirs = ground.is_some_and(|g| g.role != Role::Made);
    if theirs && !said.flags.contains(&"rw") && request.destroy.is_empty() {
        if let Some(preset) = said.preset.filter(|p| matches!(p.way, Way::Rounds(_))) {
            let path = ground.map(|g| g.path.display().to_string()).unwrap_or_default();
            return Err(Failure::Refused(format!(
                "--preset {} writes over all of {path}; type --destroy {path} if nothing on it is needed, or name a \
                 directory to have a test file made there",
                preset.name
            )));
        }
        all.retain(|rw| rw.fixed_mix().is_some_and(|m| m.read_percent == 100));
        origins.fixed("directions", "reads only", "TARGET is yours; --destroy with its name adds writes");
    }
    if !axes.mix.is_empty() && !all.iter().any(|rw| rw.is_mixed()) {
        return Err(Failure::Usage(
            "--mix changes nothing here: no --rw leaves the directions open; type --rw rw or --rw randrw"
                .into(),
        ));
    }
    let even = Mix { read_percent: 50, trim_percent: 0 };
    idle(request, "random", all.iter().any(|rw| rw.is_random()), "--rw randread")?;
    for key in ["compress", "dedup"] {
        idle(request, key, all.iter().any(|rw| writes(*rw)), "--rw write")?;
    }
    let mixes = if axes.mix.is_empty() { vec![even] } else { axes.mix.clone() };
    let of = |rw: Rw| -> Vec<(Rw, Option<Mix>)> {
        if rw.is_mixed() { mixes.iter().map(|m| (rw, Some(*m))).collect() } else { vec![(rw, None)] }
    };
    Ok(all.into_iter().flat_map(of).collect())
}

/// A flag that would change no cell is a slip: it must not be taken for one that did.
fn idle(request: &Request, key: &str, used: bool, cure: &str) -> Result<(), Failure> {
    if used || !request.flags.contains(&key) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--{key} changes nothing here: no cell does such a thing; leave it out, or type {cure}"
    )))
}

/// Whether anything may be changed.
fn writes(rw: Rw) -> bool {
    rw.fixed_mix().is_none_or(|m| m.read_percent < 100)
}

/// What all jobs have in common.
fn base(request: &Request, said: &SweepWish, ground: Option<&Ground>) -> JobWish {
    let mut job = request.job.clone();
    // A preset's size is a wish of ours and not the user's: where it does not fit, the usual one is made, and shrinks.
    let wished = said.preset.map(|p| p.size_bytes).zip(ground.filter(|g| g.role == Role::Made));
    let fits = wished.filter(|(bytes, g)| machine::test_file::fits(&g.path, *bytes).is_ok());
    for stream in job.phases.iter_mut().flat_map(|p| &mut p.streams) {
        stream.size = stream.size.or(fits.map(|(bytes, _)| bytes));
    }
    for phase in &mut job.phases {
        let whole = phase.time.unwrap_or(said.preset.and_then(Preset::time_ns).unwrap_or(TIME_NS));
        let in_order = said.preset.is_some_and(|p| p.way != Way::Sought);
        let parts = if said.exhaustive || in_order { 1 } else { PIECES };
        phase.time = Some((whole / parts).max(MIN_TIME_NS));
        phase.warmup = Some(phase.warmup.unwrap_or(0));
    }
    job
}

impl Growing<'_> {
    /// Every cell of a work with an engine.
    fn of_engine(
        &mut self,
        (rw, mix): (Rw, Option<Mix>),
        engine: &EngineWish,
        entry: &'static Entry,
    ) -> Result<(), Failure> {
        let axes = &self.said.axes;
        let default = entry.caches.first().copied().unwrap_or(Cache::Direct);
        let writes = writes(rw);
        let modes: Vec<(Option<&'static Mode>, Cache)> = match self.said.preset {
            Some(preset) if axes.cache.is_empty() && !preset.modes.is_empty() => preset
                .modes
                .iter()
                .filter(|m| !(m.reads_only && writes))
                .map(|m| (Some(m), m.cache))
                .collect(),
            _ if axes.cache.is_empty() => vec![(None, default)],
            _ => axes.cache.iter().map(|c| (None, *c)).collect(),
        };
        let or = |all: &[u32], default: &[u32]| if all.is_empty() { default.to_vec() } else { all.to_vec() };
        let sizes: Vec<u32> = (12..=22).map(|i| 1 << i).collect();
        let (bs, depth) = (or(&axes.bs, &sizes), or(&axes.depth, &[1, 2, 4, 8, 16]));
        let workers = or(&axes.workers, &[1]);
        let batches: Vec<Option<u32>> =
            if axes.batch.is_empty() { vec![None] } else { axes.batch.iter().map(|b| Some(*b)).collect() };
        let cells = modes.len() * bs.len() * depth.len() * workers.len() * batches.len();
        if self.cells.len() + self.skipped.len() + cells > MAX_CELLS {
            return Err(Failure::Usage(format!(
                "the grid has more than {MAX_CELLS} cells; type fewer values of one of --{}",
                names().join(", --")
            )));
        }
        for (mode, cache) in modes {
            for workers in &workers {
                for batch in &batches {
                    for bs in &bs {
                        for depth in &depth {
                            let (workers, batch, bs, depth) = (*workers, *batch, *bs, *depth);
                            self.add(&Point {
                                rw,
                                mix,
                                mode,
                                cache,
                                engine,
                                entry,
                                workers,
                                batch,
                                bs,
                                depth,
                            });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, point: &Point) {
        let setting = point.setting();
        if let Some(why) = self.hindrance(point, &setting) {
            self.skipped.push(Skipped { setting, why });
            return;
        }
        let job = self.job(point.wish(&self.base, point.entry.moves_bytes || self.cache_said), &setting);
        self.cells.push(Cell { setting, job });
    }

    /// The index of a job: that of another cell where this system makes no difference.
    fn job(&mut self, wish: JobWish, setting: &Setting) -> usize {
        let same = |known: &JobWish| known.phases == wish.phases;
        self.wishes.iter().position(same).unwrap_or_else(|| {
            self.wishes.push(JobWish { name: Some(setting.words()), ..wish });
            self.wishes.len() - 1
        })
    }

    /// Why a cell cannot be measured.
    fn hindrance(&self, point: &Point, setting: &Setting) -> Option<String> {
        let Point { entry, cache, .. } = *point;
        let memory = setting.memory_bytes();
        if memory > self.memory_bytes {
            let (needs, cap) = (show_bytes(memory), show_bytes(self.memory_bytes));
            return Some(format!("its buffers take {needs}, and --memory is {cap}"));
        }
        if point.depth > entry.max_depth {
            return Some(format!("the engine {} has {} in flight at most", entry.name, entry.max_depth));
        }
        if !entry.caches.contains(&cache) {
            return Some(format!("the engine {} does not work with --cache {}", entry.name, cache.word()));
        }
        if let Some(kind) = kinds(point).into_iter().find(|k| !entry.kinds.contains(k)) {
            return Some(format!("the engine {} cannot {}", entry.name, kind.word()));
        }
        if let Some(batch) = point.batch.filter(|b| *b > point.depth) {
            return Some(format!("a batch of {batch} is never gathered from {} in flight", point.depth));
        }
        let bs = u64::from(point.bs);
        let size = self.base.phases.first().and_then(|p| p.streams.first()).and_then(|s| s.size);
        if let Some(size) = size.filter(|s| *s < bs) {
            return Some(format!("only {} are touched", show_bytes(size)));
        }
        let ground = self.ground.as_ref().filter(|_| entry.moves_bytes)?;
        let all = size.or((ground.role != Role::Made).then_some(ground.bytes));
        let until_slow = self.said.preset.is_some_and(|p| matches!(p.way, Way::UntilSlow { .. }));
        if until_slow && all == Some(bs) {
            return Some("one such block is all there is".into());
        }
        if ground.role != Role::Made && bs > ground.bytes {
            return Some(format!("{} has {}", ground.path.display(), show_bytes(ground.bytes)));
        }
        if !cache.is_direct() {
            return None;
        }
        match ground.align {
            None => Some("its file system has no direct I/O".into()),
            Some(align) if !point.bs.is_multiple_of(align) => {
                Some(format!("direct I/O there needs multiples of {align} bytes"))
            }
            Some(_) => None,
        }
    }

    /// When rounds end. The tracked cell has to be among them.
    fn rounds(&self, said: Rounds) -> Result<Until, Failure> {
        let Rounds { tracked_bytes, variable, capacities, at_most } = said;
        let is = |c: &&Cell| {
            let work = c.setting.work();
            c.setting.block_bytes == tracked_bytes
                && work.split(' ').next_back().is_some_and(|w| w.ends_with("write"))
        };
        let Some(tracked) = self.cells.iter().find(is).map(|c| c.job) else {
            let preset = self.said.preset.map_or("pts", |p| p.name);
            return Err(Failure::Usage(format!(
                "--preset {preset} follows writes of {} until they are steady, and no cell that can be measured does them; \
                 leave that size in --bs, and 0 in --mix",
                show_block(u64::from(tracked_bytes))
            )));
        };
        let size = self.base.phases.first().and_then(|p| p.streams.first()).and_then(|s| s.size);
        let size = size.or(self.ground.as_ref().map(|g| g.bytes));
        let bytes = capacities.map(|times| size.unwrap_or(0).saturating_mul(times));
        Ok(Until::Rounds { tracked, variable, bytes, rounds_at_most: at_most })
    }

    /// Settings of well-known programs, for works that these do too.
    fn yardsticks(&mut self) -> Vec<Yardstick> {
        if self.ground.is_none() {
            return Vec::new();
        }
        let engine = EngineWish { name: "sync".into(), options: model::job::Options::new() };
        let Some(entry) = engines::find(&engine.name) else { return Vec::new() };
        let mut out = Vec::new();
        for work in works_of(&self.cells) {
            let Some(rw) = [Rw::Read, Rw::Write].into_iter().find(|rw| rw.word() == work) else { continue };
            for (name, bs) in YARDSTICKS {
                let point = Point {
                    rw,
                    mix: None,
                    mode: None,
                    cache: Cache::Buffered,
                    engine: &engine,
                    entry,
                    workers: 1,
                    batch: None,
                    bs,
                    depth: 1,
                };
                let setting = point.setting();
                let wish = JobWish {
                    name: Some(format!("{name}: {}", setting.words())),
                    ..point.wish(&self.base, true)
                };
                out.push(Yardstick { name: name.into(), setting, job: self.wishes.len() });
                self.wishes.push(wish);
            }
        }
        out
    }
}

impl Point<'_> {
    fn setting(&self) -> Setting {
        Setting {
            block_bytes: self.bs,
            depth: self.depth,
            workers: self.workers,
            engine: engine_words(self.engine),
            cache: self.cache,
            rw: self.rw.word().into(),
            mix: self.mix.map(Mix::words),
            batch: self.batch,
            mode: self.mode.map(|m| m.name.into()),
        }
    }

    fn wish(&self, base: &JobWish, with_cache: bool) -> JobWish {
        let size = Sizes::Fixed(self.bs);
        let mut job = base.clone();
        for stream in job.phases.iter_mut().flat_map(|p| &mut p.streams) {
            stream.rw = Some(self.rw);
            stream.mix = self.mix;
            stream.bs = Some(PerKind { read: size.clone(), write: size.clone(), trim: size.clone() });
            stream.depth = Some(self.depth);
            stream.workers = Some(self.workers);
            stream.engine = Some(self.engine.clone());
            stream.cache = with_cache.then_some(self.cache);
            stream.batch = self.batch.map(|submit| Batch { submit, complete: 1 });
            stream.random = stream.random.take().filter(|_| self.rw.is_random());
            stream.compress = stream.compress.filter(|_| writes(self.rw));
            stream.dedup = stream.dedup.filter(|_| writes(self.rw));
        }
        job
    }
}

/// Kinds of operation that a cell does.
fn kinds(point: &Point) -> Vec<Kind> {
    let Mix { read_percent, trim_percent } =
        point.mix.or_else(|| point.rw.fixed_mix()).unwrap_or(Mix { read_percent: 50, trim_percent: 0 });
    let writes = 100_u8.saturating_sub(read_percent).saturating_sub(trim_percent);
    let shares = [(Kind::Read, read_percent), (Kind::Write, writes), (Kind::Trim, trim_percent)];
    shares.into_iter().filter(|(_, share)| *share > 0).map(|(kind, _)| kind).collect()
}

fn engine_words(engine: &EngineWish) -> String {
    let option = |(name, value): (&String, &Option<u64>)| match value {
        Some(value) => format!("{name}={value}"),
        None => name.clone(),
    };
    let options: Vec<String> = engine.options.iter().map(option).collect();
    if options.is_empty() { engine.name.clone() } else { format!("{}:{}", engine.name, options.join(",")) }
}

fn works_of(cells: &[Cell]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for work in cells.iter().map(|c| c.setting.work()) {
        if !out.contains(&work) {
            out.push(work);
        }
    }
    out
}

/// Each axis with its values and where they came from.
fn tell_axes(axes: &Axes, said: &SweepWish, origins: &mut Origins) {
    let preset = said.preset.map(|p| format!("preset {}", p.name));
    let numbers =
        |all: &[u32], show: fn(u32) -> String| all.iter().map(|v| show(*v)).collect::<Vec<_>>().join(",");
    let plain = |v: u32| v.to_string();
    let told = [
        ("bs", numbers(&axes.bs, |v| show_block(u64::from(v)))),
        ("depth", numbers(&axes.depth, plain)),
        ("workers", numbers(&axes.workers, plain)),
        ("batch", numbers(&axes.batch, plain)),
        ("engine", axes.engine.iter().map(engine_words).collect::<Vec<_>>().join(",")),
        ("cache", axes.cache.iter().map(|c| c.word()).collect::<Vec<_>>().join(",")),
        ("rw", axes.rw.iter().map(|r| r.word()).collect::<Vec<_>>().join(",")),
        ("mix", axes.mix.iter().map(|m| m.words()).collect::<Vec<_>>().join(",")),
    ];
    for (axis, values) in told.into_iter().filter(|(_, values)| !values.is_empty()) {
        let from = if said.flags.contains(&axis) { None } else { preset.as_deref() };
        origins.fixed(&format!("axis {axis}"), &values, from.unwrap_or("command line"));
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

/// How long it may take, and what decides.
fn search(
    said: &SweepWish,
    (jobs, finals, runs): (usize, usize, u32),
    growing: &mut Growing,
    request: &Request,
    origins: &mut Origins,
) -> Result<Search, Failure> {
    let piece = growing.base.phases.first().and_then(|p| p.time).unwrap_or(TIME_NS);
    let warmup = growing.base.phases.first().and_then(|p| p.warmup).unwrap_or(0);
    let whole = request.job.phases.first().and_then(|p| p.time).unwrap_or(TIME_NS);
    let looks = |runs: u64| runs + runs.div_ceil(REFERENCE_EVERY as u64 - 1) + finals as u64;
    let each = |window: u64| window + warmup + OVERHEAD_NS;
    let exhaustive = looks(jobs as u64 * u64::from(runs)).saturating_mul(each(whole));
    let from = |set: bool| if set { "command line" } else { "default" };
    let timed = request.job.phases.first().is_some_and(|p| p.time.is_some());
    if said.exhaustive {
        origins.fixed("--time", &format!("{} a run, {runs} runs a cell", show_ns(whole as f64)), from(timed));
        origins.fixed("time", &format!("about {}", minutes(exhaustive)), "all cells");
        return Ok(Search::Exhaustive);
    }
    origins.fixed(
        "--time",
        &format!("{} a cell, in pieces of {}", show_ns(whole as f64), show_ns(piece as f64)),
        from(timed),
    );
    // Seeing every cell once, and the winners once more.
    let least = looks(jobs as u64).saturating_mul(each(piece));
    let default = (exhaustive / QUARTER).min(BUDGET_NS).max(least + least / 4);
    if let Some(budget) = said.budget.filter(|b| *b < least) {
        return Err(Failure::Usage(format!(
            "--budget {}: seeing each of {jobs} cells once takes about {}; type --budget {}s or more, or fewer cells",
            minutes(budget),
            minutes(least),
            least.div_ceil(1_000_000_000)
        )));
    }
    let words = format!(
        "a quarter of the {} that --exhaustive takes, 5 min at most where that is enough",
        minutes(exhaustive)
    );
    let budget_ns = origins.choose_from("--budget", said.budget, default, &words, |ns| minutes(*ns));
    Ok(Search::Adaptive { budget_ns })
}

/// A time as people plan with it: `45 s`, `5 min`.
pub(crate) fn minutes(ns: u64) -> String {
    match ns.div_ceil(1_000_000_000) {
        s if s >= 120 => format!("{} min", (s + 30) / 60),
        s => format!("{s} s"),
    }
}
