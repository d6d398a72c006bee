//! The grid of `fathom sweep`: one job per setting that can be measured, and a reason for each one that cannot.
//!
//! For: from axes to cells, what a cell may cost, and how long the search may take. Not for: measuring (the jobs are ordinary
//! ones) nor for choosing among them (crate `analysis`).

use super::cycle::{self, Crew, Loads};
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
use model::wish::axes::{Axes, IOMETER, MAX_CELLS, MEMORY_BYTES, Mode, Preset, Rounds, Way, names};
use model::wish::limits::MIN_TIME_NS;
use model::wish::specs::Spec;
use model::wish::{EngineWish, JobWish, LineWish, PhaseWish, Rw, StreamWish};
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
    "--line",
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
    /// Whether direct I/O goes past the page cache, as far as anybody says.
    direct: bool,
}

/// A grid while it grows.
struct Growing<'a> {
    base: JobWish,
    memory_bytes: u64,
    /// One per named target; none where nothing is touched.
    grounds: Vec<Ground>,
    loads: Loads,
    cache_said: bool,
    wishes: Vec<JobWish>,
    cells: Vec<Cell>,
    skipped: Vec<Skipped>,
    said: &'a SweepWish,
}

/// What is done.
enum Doing {
    /// One order and direction.
    Plain(Rw, Option<Mix>),
    /// What an access specification says.
    Named(Spec),
}

/// One point of the axes.
struct Point<'a> {
    doing: &'a Doing,
    mode: Option<&'static Mode>,
    cache: Cache,
    engine: &'a EngineWish,
    entry: &'static Entry,
    crew: Crew,
    /// Targets that are named.
    named: u32,
    batch: Option<u32>,
    /// Of an access specification the largest.
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
    let grounds = if entries.iter().any(|e| e.moves_bytes) { look(request, root)? } else { Vec::new() };
    let loads = cycle::loads(said, (grounds.len() as u32).max(1), origins)?;
    let works = works(request, said, &grounds, origins)?;
    let memory_bytes = memory_cap(said, memory, origins);
    let base = base(request, said, &grounds);
    let mut growing = Growing {
        base,
        memory_bytes,
        grounds,
        loads,
        cache_said: said.flags.contains(&"cache"),
        wishes: Vec::new(),
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
            .map_or("the axes have no cell".to_owned(), |s| format!("{}: {}", s.setting.words(), s.why));
        return Err(Failure::Usage(format!(
            "no cell of the grid can be measured: {why}; `--skipped` names all of them"
        )));
    }
    tell_axes(axes, said, origins);
    origins.fixed("cells", &format!("{} to measure, {} skipped", cells.len(), skipped.len()), "the axes");
    if let Some(preset) = said.preset.filter(|p| p.is_in_order()) {
        return in_order(request, said, growing, preset.way, origins);
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
        Way::UntilSlow { .. } | Way::Sought | Way::Each => Until::Slow,
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

/// Every named target, each once.
fn look(request: &Request, root: &Root) -> Result<Vec<Ground>, Failure> {
    let here = [PathBuf::from(".")];
    let named = if request.targets.is_empty() { &here[..] } else { &request.targets };
    let mut all: Vec<Ground> = Vec::new();
    for said in named {
        let path = said.canonicalize().map_err(|e| target::unreachable_path(said, &e))?;
        if all.iter().any(|known| known.path == path) {
            return Err(Failure::Usage(format!(
                "TARGET {} is there twice; name each target once",
                said.display()
            )));
        }
        let (found, place) = target::look(root, said, &path)?;
        let direct = place.without_direct().is_none();
        all.push(Ground { role: found.role, bytes: found.bytes, align: alignment(&place), direct, path });
    }
    Ok(all)
}

/// Alignment of direct I/O at a place; `None` where it has none.
pub(super) fn alignment(place: &Place) -> Option<u32> {
    if place.direct.is_some_and(|d| d.offset_align == 0) {
        return None;
    }
    Some(target::direct_alignment(place).max(1))
}

/// What is done. Writes to a file or device of the user's have to be asked for by its name.
fn works(
    request: &Request,
    said: &SweepWish,
    grounds: &[Ground],
    origins: &mut Origins,
) -> Result<Vec<Doing>, Failure> {
    let mut all = if said.axes.spec.is_empty() { plain_works(said)? } else { named_works(request, said)? };
    let theirs = grounds.iter().any(|g| g.role != Role::Made);
    let asked = said.flags.iter().any(|f| ["rw", "spec"].contains(f)) || request.flags.contains(&"line");
    if theirs && !asked && request.destroy.is_empty() {
        if let Some(preset) = said.preset.filter(|p| matches!(p.way, Way::Rounds(_))) {
            let path = grounds.first().map(|g| g.path.display().to_string()).unwrap_or_default();
            return Err(Failure::Refused(format!(
                "--preset {} writes over all of {path}; type --destroy {path} if nothing on it is needed, or name a \
                 directory to have a test file made there",
                preset.name
            )));
        }
        all.retain(|doing| !doing.writes());
        origins.fixed("directions", "reads only", "TARGET is yours; --destroy with its name adds writes");
    }
    idle(request, "random", all.iter().any(Doing::is_random), "--rw randread")?;
    for key in ["compress", "dedup"] {
        idle(request, key, all.iter().any(Doing::writes), "--rw write")?;
    }
    Ok(all)
}

fn plain_works(said: &SweepWish) -> Result<Vec<Doing>, Failure> {
    let axes = &said.axes;
    let all = if axes.rw.is_empty() { vec![Rw::Read, Rw::Write] } else { axes.rw.clone() };
    if !axes.mix.is_empty() && !all.iter().any(|rw| rw.is_mixed()) {
        return Err(Failure::Usage(
            "--mix changes nothing here: no --rw leaves the directions open; type --rw rw or --rw randrw"
                .into(),
        ));
    }
    let even = Mix { read_percent: 50, trim_percent: 0 };
    let mixes = if axes.mix.is_empty() { vec![even] } else { axes.mix.clone() };
    let of = |rw: Rw| -> Vec<Doing> {
        if rw.is_mixed() {
            mixes.iter().map(|m| Doing::Plain(rw, Some(*m))).collect()
        } else {
            vec![Doing::Plain(rw, None)]
        }
    };
    Ok(all.into_iter().flat_map(of).collect())
}

/// Access specifications say order, direction and size themselves.
fn named_works(request: &Request, said: &SweepWish) -> Result<Vec<Doing>, Failure> {
    let flags = || said.flags.iter().chain(&request.flags);
    if let Some(flag) = ["rw", "mix", "bs", "random", "align"].iter().find(|f| flags().any(|said| said == *f))
    {
        return Err(Failure::Usage(format!(
            "--{flag} does not go with access specifications, which say it themselves; leave it out, or sweep without --spec and --line"
        )));
    }
    Ok(said.axes.spec.iter().cloned().map(Doing::Named).collect())
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

impl Doing {
    /// Whether anything may be changed.
    fn writes(&self) -> bool {
        match self {
            Self::Plain(rw, _) => rw.fixed_mix().is_none_or(|m| m.read_percent < 100),
            Self::Named(spec) => spec.writes(),
        }
    }

    /// Whether a law of random offsets would be obeyed.
    fn is_random(&self) -> bool {
        matches!(self, Self::Plain(rw, _) if rw.is_random())
    }

    /// Kinds of operation that are done.
    fn kinds(&self) -> Vec<Kind> {
        let mut all = match self {
            Self::Plain(rw, mix) => {
                let even = Mix { read_percent: 50, trim_percent: 0 };
                kinds_of(mix.or_else(|| rw.fixed_mix()).unwrap_or(even))
            }
            Self::Named(spec) => spec.lines.iter().flat_map(|l: &LineWish| kinds_of(l.mix)).collect(),
        };
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn kinds_of(mix: Mix) -> Vec<Kind> {
    let Mix { read_percent, trim_percent } = mix;
    let writes = 100_u8.saturating_sub(read_percent).saturating_sub(trim_percent);
    let shares = [(Kind::Read, read_percent), (Kind::Write, writes), (Kind::Trim, trim_percent)];
    shares.into_iter().filter(|(_, share)| *share > 0).map(|(kind, _)| kind).collect()
}

/// What all jobs have in common.
fn base(request: &Request, said: &SweepWish, grounds: &[Ground]) -> JobWish {
    let mut job = request.job.clone();
    // A preset's size is a wish of ours and not the user's: where it does not fit, the usual one is made, and shrinks.
    let room = |bytes: &u64| {
        let fits = |g: &Ground| g.role == Role::Made && machine::test_file::fits(&g.path, *bytes).is_ok();
        !grounds.is_empty() && grounds.iter().all(fits)
    };
    let wished = said.preset.map(|p| p.size_bytes).filter(room);
    for stream in job.phases.iter_mut().flat_map(|p| &mut p.streams) {
        stream.size = stream.size.or(wished);
    }
    for phase in &mut job.phases {
        let whole = phase.time.unwrap_or(said.preset.and_then(Preset::time_ns).unwrap_or(TIME_NS));
        let in_order = said.preset.is_some_and(Preset::is_in_order);
        let parts = if said.exhaustive || in_order { 1 } else { PIECES };
        phase.time = Some((whole / parts).max(MIN_TIME_NS));
        phase.warmup = Some(phase.warmup.unwrap_or(0));
    }
    job
}

impl Ground {
    /// Why a cell cannot be measured there.
    fn hinders(&self, point: &Point) -> Option<String> {
        if self.role != Role::Made && u64::from(point.bs) > self.bytes {
            return Some(format!("{} has {}", self.path.display(), show_bytes(self.bytes)));
        }
        if !point.cache.is_direct() {
            return None;
        }
        let Some(align) = self.align else { return Some("its file system has no direct I/O".into()) };
        let odd = |bytes: &u32| !bytes.is_multiple_of(align);
        let (size, reply) = match point.doing {
            Doing::Plain(..) => (Some(point.bs).filter(odd), None),
            Doing::Named(spec) => (spec.sizes().find(odd), spec.replies().find(odd)),
        };
        if let Some(reply) = reply {
            return Some(format!(
                "its reply has {reply} bytes, and direct I/O there needs multiples of {align} bytes"
            ));
        }
        size.map(|_| format!("direct I/O there needs multiples of {align} bytes"))
    }
}

impl Growing<'_> {
    /// Every cell of a work with an engine.
    fn of_engine(
        &mut self,
        doing: &Doing,
        engine: &EngineWish,
        entry: &'static Entry,
    ) -> Result<(), Failure> {
        let axes = &self.said.axes;
        let default = self.default_cache(entry);
        let writes = doing.writes();
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
        let sizes: Vec<u32> = match doing {
            Doing::Named(spec) => vec![spec.largest_bytes()],
            Doing::Plain(..) if axes.bs.is_empty() => (12..=22).map(|i| 1 << i).collect(),
            Doing::Plain(..) => axes.bs.clone(),
        };
        let Loads { crews, depths } = &self.loads;
        let (crews, depths) = (crews.clone(), depths.clone());
        let batches: Vec<Option<u32>> =
            if axes.batch.is_empty() { vec![None] } else { axes.batch.iter().map(|b| Some(*b)).collect() };
        let cells = modes.len() * sizes.len() * depths.len() * crews.len() * batches.len();
        if self.cells.len() + self.skipped.len() + cells > MAX_CELLS {
            return Err(Failure::Usage(format!(
                "the grid has more than {MAX_CELLS} cells; type fewer values of one of --{}",
                names().join(", --")
            )));
        }
        let named = (self.grounds.len() as u32).max(1);
        for (mode, cache) in modes {
            for crew in &crews {
                for batch in &batches {
                    for bs in &sizes {
                        for depth in &depths {
                            let (crew, batch, bs, depth) = (*crew, *batch, *bs, *depth);
                            self.add(&Point {
                                doing,
                                mode,
                                cache,
                                engine,
                                entry,
                                crew,
                                named,
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

    /// How files are opened where nobody says: as the engine likes it best, but not in a way that a place does not know.
    fn default_cache(&self, entry: &Entry) -> Cache {
        let best = entry.caches.first().copied().unwrap_or(Cache::Direct);
        let knows = self.grounds.iter().all(|g| g.direct);
        let other = || entry.caches.iter().copied().find(|c| !c.is_direct());
        if best.is_direct() && !knows { other().unwrap_or(best) } else { best }
    }

    fn add(&mut self, point: &Point) {
        let setting = point.setting();
        if let Some(why) = self.hindrance(point, &setting) {
            self.skipped.push(Skipped { setting, why });
            return;
        }
        let job = self.job(self.wish(point), &setting);
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
        if let Some(kind) = point.doing.kinds().into_iter().find(|k| !entry.kinds.contains(k)) {
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
        let until_slow = self.said.preset.is_some_and(|p| matches!(p.way, Way::UntilSlow { .. }));
        let mut used = self.grounds.iter().take(point.crew.targets as usize).filter(|_| entry.moves_bytes);
        let is_all = |g: &Ground| size.or((g.role != Role::Made).then_some(g.bytes)) == Some(bs);
        if until_slow && used.clone().any(is_all) {
            return Some("one such block is all there is".into());
        }
        used.find_map(|ground| ground.hinders(point))
    }

    /// The job of a cell.
    fn wish(&self, point: &Point) -> JobWish {
        let mut job = point.wish(&self.base, point.entry.moves_bytes || self.cache_said);
        let first = |count: u32| -> Vec<String> {
            let used = self.grounds.iter().take(count as usize);
            used.map(|g| g.path.to_string_lossy().into_owned()).collect()
        };
        let Crew { workers, targets, of_last } = point.crew;
        for PhaseWish { streams, .. } in &mut job.phases {
            for stream in &mut *streams {
                if targets < point.named {
                    stream.target = first(targets);
                }
            }
            // What the last worker does is a stream of its own.
            if let (Some(few), Some(stream)) = (of_last, streams.first_mut()) {
                let last = StreamWish {
                    name: Some("the last worker".into()),
                    workers: Some(1),
                    target: first(few),
                    ..stream.clone()
                };
                stream.name = Some("the workers before".into());
                stream.workers = Some(workers.saturating_sub(1));
                streams.push(last);
            }
        }
        job
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
        let size = size.or(self.grounds.first().map(|g| g.bytes));
        let bytes = capacities.map(|times| size.unwrap_or(0).saturating_mul(times));
        Ok(Until::Rounds { tracked, variable, bytes, rounds_at_most: at_most })
    }

    /// Settings of well-known programs, for works that these do too.
    fn yardsticks(&mut self) -> Vec<Yardstick> {
        if self.grounds.is_empty() {
            return Vec::new();
        }
        let engine = EngineWish { name: "sync".into(), options: model::job::Options::new() };
        let Some(entry) = engines::find(&engine.name) else { return Vec::new() };
        let mut out = Vec::new();
        for work in works_of(&self.cells) {
            let Some(rw) = [Rw::Read, Rw::Write].into_iter().find(|rw| rw.word() == work) else { continue };
            let named = self.grounds.len() as u32;
            for (name, bs) in YARDSTICKS {
                let point = Point {
                    doing: &Doing::Plain(rw, None),
                    mode: None,
                    cache: Cache::Buffered,
                    engine: &engine,
                    entry,
                    crew: Crew { workers: 1, targets: 1, of_last: None },
                    named,
                    batch: None,
                    bs,
                    depth: 1,
                };
                let setting = point.setting();
                let wish =
                    JobWish { name: Some(format!("{name}: {}", setting.words())), ..self.wish(&point) };
                out.push(Yardstick { name: name.into(), setting, job: self.wishes.len() });
                self.wishes.push(wish);
            }
        }
        out
    }
}

impl Point<'_> {
    fn setting(&self) -> Setting {
        let Crew { workers, targets, of_last } = self.crew;
        let (rw, mix, spec) = match self.doing {
            Doing::Plain(rw, mix) => (rw.word().into(), mix.map(Mix::words), None),
            Doing::Named(spec) => (String::new(), None, Some(spec.name.clone())),
        };
        Setting {
            block_bytes: self.bs,
            depth: self.depth,
            workers,
            engine: engine_words(self.engine),
            cache: self.cache,
            rw,
            mix,
            batch: self.batch,
            mode: self.mode.map(|m| m.name.into()),
            spec,
            targets: (self.named > 1).then_some(targets),
            targets_of_last: of_last,
        }
    }

    fn wish(&self, base: &JobWish, with_cache: bool) -> JobWish {
        let mut job = base.clone();
        for stream in job.phases.iter_mut().flat_map(|p| &mut p.streams) {
            match self.doing {
                Doing::Plain(rw, mix) => {
                    let size = Sizes::Fixed(self.bs);
                    stream.rw = Some(*rw);
                    stream.mix = *mix;
                    stream.bs = Some(PerKind { read: size.clone(), write: size.clone(), trim: size });
                }
                Doing::Named(spec) => stream.lines.clone_from(&spec.lines),
            }
            stream.depth = Some(self.depth);
            stream.workers = Some(self.crew.workers);
            stream.engine = Some(self.engine.clone());
            stream.cache = with_cache.then_some(self.cache);
            stream.batch = self.batch.map(|submit| Batch { submit, complete: 1 });
            stream.random = stream.random.take().filter(|_| self.doing.is_random());
            stream.compress = stream.compress.filter(|_| self.doing.writes());
            stream.dedup = stream.dedup.filter(|_| self.doing.writes());
        }
        job
    }
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
        ("spec", axes.spec.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ")),
        ("targets", numbers(&axes.targets, plain)),
        ("mix", axes.mix.iter().map(|m| m.words()).collect::<Vec<_>>().join(",")),
    ];
    let cycled = said.preset.is_some_and(|p| p.name == IOMETER);
    // What a test type makes of these was told with it.
    let told =
        told.into_iter().filter(|(axis, _)| !cycled || !["depth", "workers", "targets"].contains(axis));
    for (axis, values) in told.filter(|(_, values)| !values.is_empty()) {
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
