//! Planning: from what was said, and what the machine is, to a plan with nothing left open.
//!
//! For: filling every default with the place it came from, and refusing what is impossible or dangerous before anything is
//! touched. Not for: touching anything.

use crate::failure::Failure;
use crate::request::{Request, Work, Workload};
use engine::engines::{self, Entry, MAX_DEPTH};
use machine::root::Root;
use model::job::{Access, Batch, Cache, Job, Pattern, Phase, Stream};
use model::machine::{Machine, Place};
use model::plan::{Origin, Plan, Role, Target};
use model::profile::{PROFILES, Profile};
use model::units::{GIB, show_bytes, show_ns};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Size of a made test file: beyond most device caches' reach and written in seconds.
const MADE_BYTES: u64 = GIB;
/// Largest operation: a whole GiB is far above any device's, and its length still fits the kernel's answer.
const MAX_BLOCK_BYTES: u64 = GIB;
/// Most threads of one stream.
const MAX_WORKERS: u32 = 1024;
/// Most repeats of one job.
const MAX_RUNS: u32 = 1000;
/// Window and warm-up of each run of a bench: eight tests, five times, in about a minute and a half.
const BENCH_TIMES_NS: (u64, u64) = (1_500_000_000, 250_000_000);
/// The same of `run`.
const RUN_TIMES_NS: (u64, u64) = (3_000_000_000, 250_000_000);
/// Longest window or warm-up: a day. Longer ones are a slip of the keyboard.
const MAX_TIME_NS: u64 = 86_400_000_000_000;
/// Repeats from which a headline has an interval worth printing (statistics: at least five).
const RUNS: u32 = 5;
/// Idle watch before the first run.
const BASELINE_NS: u64 = 1_000_000_000;
/// Share of memory that buffers may take.
const BUFFER_SHARE: u64 = 2;

/// Fills a plan.
///
/// # Errors
/// [`Failure::Usage`] for what nobody could do, [`Failure::Refused`] for what this machine or its owner does not allow.
pub fn plan(request: &Request) -> Result<(Plan, Machine), Failure> {
    let root = Root::real();
    let mut origins = Origins::default();
    let mut machine = machine::host::look(&root);
    let engine_name = origins.choose("--engine", request.engine.clone(), "io_uring".into(), Clone::clone);
    let engine = engines::find(&engine_name)
        .ok_or_else(|| Failure::Usage(format!("--engine {engine_name}: no such engine")))?;
    let cache = origins.choose("--cache", request.cache, Cache::Direct, |c| c.word().into());
    let batch = batch(request, engine, &mut origins)?;
    let drafts = drafts(request, &mut origins)?;
    let drafts = leave_out_writes(request, drafts, &mut origins);
    let writes = drafts.iter().any(|d| d.access.writes());
    refuse_idle_flags(request, engine, writes)?;
    let (target, place) = find_target(request, &root, engine, cache, writes, &drafts, &mut origins)?;
    let (time_ns, warmup_ns) = times(request, &mut origins)?;
    let runs = origins.choose("--runs", request.runs, RUNS, u32::to_string);
    within("--runs", u64::from(runs), 1, u64::from(MAX_RUNS))?;
    let from_clock = jiff::Timestamp::now().as_nanosecond() as u64 >> 10;
    let seed = origins.choose_from("--seed", request.seed, from_clock, "the clock", u64::to_string);
    let jobs: Vec<Job> = drafts
        .into_iter()
        .map(|draft| draft.job(engine, batch, cache, &target, (time_ns, warmup_ns)))
        .collect::<Result<_, _>>()?;
    check_memory(&jobs, machine.memory_bytes.as_ref().ok().copied())?;
    // A file of the user's that is read through the page cache is measured as it is; anything else begins cold.
    let cold = engine.moves_bytes && (target.role != Role::File || cache.is_direct());
    origins.fixed(
        "cold",
        if cold { "yes: evicted before each run" } else { "no: measured as it is" },
        "role and --cache",
    );
    machine.places.extend(place);
    let title = match &request.work {
        Work::Profile(said) => format!("bench {}", said.unwrap_or(&PROFILES[0]).name),
        Work::Workload(_) => "run".into(),
    };
    let baseline_ns = if engine.moves_bytes { BASELINE_NS } else { 0 };
    let plan = Plan {
        command: request.command.clone(),
        title,
        targets: vec![target],
        jobs,
        headline: 0,
        runs,
        seed,
        cold,
        baseline_ns,
        origins: origins.0,
        hook: request.hook,
    };
    Ok((plan, machine))
}

/// How operations are handed over; `None` stands for the whole depth at once.
fn batch(request: &Request, engine: &Entry, origins: &mut Origins) -> Result<Option<Batch>, Failure> {
    if let Some(said) = request.batch.filter(|b| b.submit > engine.max_depth) {
        return Err(Failure::Usage(format!(
            "--batch {}: the engine {} takes {} operation at a time; leave --batch out, or type --engine io_uring",
            said.submit, engine.name, engine.max_depth
        )));
    }
    let by_engine = (engine.default_batch > 0).then_some(Batch { submit: engine.default_batch, complete: 1 });
    let words = |b: &Option<Batch>| {
        b.map_or_else(|| "the whole depth,1".into(), |b| format!("{},{}", b.submit, b.complete))
    };
    let from = format!("engine {}", engine.name);
    Ok(origins.choose_from("--batch", request.batch.map(Some), by_engine, &from, words))
}

/// A flag that would change nothing is a slip: it must not be taken for one that did.
fn refuse_idle_flags(request: &Request, engine: &Entry, writes: bool) -> Result<(), Failure> {
    let idle = |flag: &str, why: &str| {
        Err(Failure::Usage(format!("{flag} changes nothing here: {why}; leave it out")))
    };
    let untouched = format!("the engine {} touches no target", engine.name);
    if !engine.moves_bytes && request.target.is_some() {
        return idle("TARGET", &untouched);
    }
    if !engine.moves_bytes && request.cache.is_some() {
        return idle("--cache", &untouched);
    }
    let overwrites = request.target.as_ref().is_some_and(|t| !t.is_dir());
    if request.destroy.is_some() && !(writes && engine.moves_bytes && overwrites) {
        return idle("--destroy", "nothing of anybody's is overwritten");
    }
    Ok(())
}

/// Settings with the place they came from.
#[derive(Default)]
struct Origins(Vec<Origin>);

impl Origins {
    fn choose<T>(&mut self, setting: &str, said: Option<T>, default: T, words: impl Fn(&T) -> String) -> T {
        self.choose_from(setting, said, default, "default", words)
    }

    fn choose_from<T>(
        &mut self,
        setting: &str,
        said: Option<T>,
        default: T,
        from: &str,
        words: impl Fn(&T) -> String,
    ) -> T {
        let from = if said.is_some() { "command line" } else { from };
        let value = said.unwrap_or(default);
        self.fixed(setting, &words(&value), from);
        value
    }

    fn fixed(&mut self, setting: &str, value: &str, from: &str) {
        self.0.push(Origin { setting: setting.into(), value: value.into(), from: from.into() });
    }
}

/// A job before the target's size is known.
struct Draft {
    name: String,
    access: Access,
    depth: u32,
    workers: u32,
}

fn drafts(request: &Request, origins: &mut Origins) -> Result<Vec<Draft>, Failure> {
    match &request.work {
        Work::Profile(said) => {
            Ok(profile_drafts(origins.choose("--profile", *said, &PROFILES[0], |p| p.name.into())))
        }
        Work::Workload(workload) => Ok(vec![workload_draft(workload, request.offset_bytes, origins)?]),
    }
}

/// A bench of a file or device of the user's reads it; writing has to be asked for by name. One workload says what it does.
fn leave_out_writes(request: &Request, mut drafts: Vec<Draft>, origins: &mut Origins) -> Vec<Draft> {
    let theirs = request.target.as_ref().is_some_and(|t| t.exists() && !t.is_dir());
    if matches!(request.work, Work::Profile(_)) && theirs && request.destroy.is_none() {
        drafts.retain(|d| !d.access.writes());
        origins.fixed("directions", "reads only", "TARGET is yours; --destroy with its name adds writes");
    }
    drafts
}

fn profile_drafts(profile: &Profile) -> Vec<Draft> {
    let tests = profile.read_percents.iter().flat_map(|p| profile.tests.iter().map(move |t| (*p, t)));
    let draft = |(read_percent, test): (u8, &model::profile::Test)| {
        let access = Access {
            pattern: test.pattern,
            block_bytes: test.block_bytes,
            read_percent,
            offset_bytes: 0,
            span_bytes: u64::MAX,
        };
        let name = format!("{} {}", test.name(), access.direction());
        Draft { name, access, depth: test.depth, workers: test.workers }
    };
    tests.map(draft).collect()
}

fn workload_draft(w: &Workload, offset: Option<u64>, origins: &mut Origins) -> Result<Draft, Failure> {
    let random = w.pattern == Pattern::Random;
    let block =
        origins.choose("--bs", w.block_bytes, if random { 4096 } else { 1 << 20 }, |b| show_bytes(*b));
    within("--bs", block, 1, MAX_BLOCK_BYTES)?;
    let depth = origins.choose("--depth", w.depth, if random { 32 } else { 8 }, u32::to_string);
    within("--depth", u64::from(depth), 1, u64::from(MAX_DEPTH))?;
    let workers = origins.choose("--workers", w.workers, 1, u32::to_string);
    within("--workers", u64::from(workers), 1, u64::from(MAX_WORKERS))?;
    let read_percent = match w.read_percent {
        Some(percent) => percent,
        None => origins.choose("--mix", w.mix_percent, 50, |p| format!("{p} % reads")),
    };
    let offset_bytes = origins.choose("--offset", offset, 0, |o| show_bytes(*o));
    let access = Access {
        pattern: w.pattern,
        block_bytes: block as u32,
        read_percent,
        offset_bytes,
        span_bytes: u64::MAX,
    };
    let name = format!("{} Q{depth}T{workers}", access.words());
    Ok(Draft { name, access, depth, workers })
}

impl Draft {
    fn job(
        mut self,
        engine: &Entry,
        batch: Option<Batch>,
        cache: Cache,
        target: &Target,
        (time_ns, warmup_ns): (u64, u64),
    ) -> Result<Job, Failure> {
        let block = u64::from(self.access.block_bytes);
        let left = target.bytes.saturating_sub(self.access.offset_bytes);
        if left < block {
            return Err(Failure::Usage(format!(
                "{}: no block of {} fits behind offset {} of {} ({}); type a smaller --bs or --offset, or a larger --size",
                self.name,
                show_bytes(block),
                show_bytes(self.access.offset_bytes),
                target.path,
                show_bytes(target.bytes),
            )));
        }
        let align = u64::from(target.block_bytes.max(1));
        let misaligned = |what: &str, value: u64| {
            Failure::Usage(format!(
                "--{what} {value}: direct I/O to {} needs multiples of {align} bytes; type --{what} {} or --cache buffered",
                target.path,
                value.next_multiple_of(align)
            ))
        };
        if cache.is_direct() && !block.is_multiple_of(align) {
            return Err(misaligned("bs", block));
        }
        if cache.is_direct() && !self.access.offset_bytes.is_multiple_of(align) {
            return Err(misaligned("offset", self.access.offset_bytes));
        }
        self.access.span_bytes = left;
        let batch = batch.unwrap_or(Batch { submit: self.depth, complete: 1 });
        let stream = Stream {
            access: self.access,
            targets: vec![0],
            workers: self.workers,
            depth: self.depth,
            engine: engine.name.into(),
            cache,
            batch,
        };
        Ok(Job { name: self.name, phases: vec![Phase { warmup_ns, time_ns, streams: vec![stream] }] })
    }
}

fn times(request: &Request, origins: &mut Origins) -> Result<(u64, u64), Failure> {
    let (window, before) = match request.work {
        Work::Profile(_) => BENCH_TIMES_NS,
        Work::Workload(_) => RUN_TIMES_NS,
    };
    let words = |ns: &u64| show_ns(*ns as f64);
    let time = origins.choose("--time", request.time_ns, window, words);
    let warmup = origins.choose("--warmup", request.warmup_ns, before, words);
    if !(1_000_000..=MAX_TIME_NS).contains(&time) || warmup > MAX_TIME_NS {
        return Err(Failure::Usage("--time goes from 1ms to 24h, --warmup from 0 to 24h".into()));
    }
    Ok((time, warmup))
}

fn within(flag: &str, value: u64, least: u64, most: u64) -> Result<(), Failure> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Failure::Usage(format!("{flag} {value}: type a number from {least} to {most}")))
}

/// Refuses buffers that would push the machine into its swap.
fn check_memory(jobs: &[Job], memory: Option<u64>) -> Result<(), Failure> {
    let Some(memory) = memory else { return Ok(()) };
    for job in jobs {
        let streams = job.phases.iter().flat_map(|p| &p.streams);
        let needed: u64 = streams
            .map(|s| s.total_depth().saturating_mul(u64::from(s.access.block_bytes)))
            .fold(0, u64::saturating_add);
        if needed > memory / BUFFER_SHARE {
            return Err(Failure::Usage(format!(
                "{}: the buffers alone would take {} of {} memory; type a smaller --bs, --depth or --workers",
                job.name,
                show_bytes(needed),
                show_bytes(memory)
            )));
        }
    }
    Ok(())
}

/// What is measured, and where it lives. No place for engines that touch nothing.
fn find_target(
    request: &Request,
    root: &Root,
    engine: &Entry,
    cache: Cache,
    writes: bool,
    drafts: &[Draft],
    origins: &mut Origins,
) -> Result<(Target, Option<Place>), Failure> {
    if request.size_bytes == Some(0) {
        return Err(Failure::Usage(
            "--size 0: there is nothing to measure; type a size such as 1g, or leave it out".into(),
        ));
    }
    if !engine.moves_bytes {
        let bytes = origins.choose("--size", request.size_bytes, MADE_BYTES, |b| show_bytes(*b));
        let path = format!("nothing: engine {}", engine.name);
        return Ok((Target { path, role: Role::None, bytes, block_bytes: 1, writable: false }, None));
    }
    let said = request.target.clone().unwrap_or_else(|| PathBuf::from("."));
    let path = said.canonicalize().map_err(|e| unreachable_path(&said, &e))?;
    let facts = std::fs::metadata(&path).map_err(|e| unreachable_path(&said, &e))?;
    let place = machine::resolve::resolve(root, &path)?;
    let from = if request.target.is_some() { "command line" } else { "default: the current directory" };
    origins.fixed("TARGET", &path.display().to_string(), from);
    let kind = facts.file_type();
    let (role, there) = if kind.is_dir() {
        if let Some(size) = request.size_bytes {
            machine::test_file::fits(&path, size)?;
        }
        (Role::Made, None)
    } else if kind.is_file() {
        (Role::File, Some(facts.len()))
    } else if kind.is_block_device() {
        (Role::Device, Some(place.tops.first().and_then(|t| place.layers.get(*t)).map_or(0, |l| l.bytes)))
    } else {
        let what = "neither a directory, a file nor a block device";
        return Err(Failure::Usage(format!("{} is {what}; name one of these", said.display())));
    };
    let bytes = choose_size(request, role, there, &said, origins)?;
    let block_bytes = direct_alignment(&place);
    if writes {
        guard_writing(request, root, &said, &path, role)?;
    }
    if let Some(largest) = drafts.iter().map(|d| u64::from(d.access.block_bytes)).max().filter(|b| *b > bytes)
    {
        return Err(Failure::Usage(format!(
            "{} of {} holds no block of {}; type a smaller --bs or a larger --size",
            show_bytes(bytes),
            said.display(),
            show_bytes(largest)
        )));
    }
    let block_bytes = if cache.is_direct() { block_bytes } else { 1 };
    let path = path.display().to_string();
    Ok((Target { path, role, bytes, block_bytes, writable: writes || role == Role::Made }, Some(place)))
}

/// The second look, right before a file or device is opened for writing, is in `machine::safety`.
fn guard_writing(
    request: &Request,
    root: &Root,
    said: &Path,
    path: &Path,
    role: Role,
) -> Result<(), Failure> {
    let destroy = request.destroy.as_deref();
    match role {
        Role::File => machine::safety::may_write_file(root, said, path, destroy)?,
        Role::Device => machine::safety::may_write_device(root, path, destroy)?,
        Role::Made | Role::None => {}
    }
    Ok(())
}

fn choose_size(
    request: &Request,
    role: Role,
    there: Option<u64>,
    said: &Path,
    origins: &mut Origins,
) -> Result<u64, Failure> {
    let Some(there) = there else {
        return Ok(origins.choose("--size", request.size_bytes, MADE_BYTES, |b| show_bytes(*b)));
    };
    if there == 0 && role == Role::Device {
        return Err(Failure::Refused(format!("{} has no capacity: it is not set up", said.display())));
    }
    if there == 0 {
        return Err(Failure::Usage(format!(
            "{} is empty, so there is nothing to read or overwrite; name its directory, and fathom makes a test file there",
            said.display()
        )));
    }
    let wish = request.size_bytes.unwrap_or(there);
    let end = request.offset_bytes.unwrap_or(0).checked_add(request.size_bytes.unwrap_or(0));
    if wish > there || end.is_none_or(|e| e > there) {
        return Err(Failure::Usage(format!(
            "--size {} from --offset {} goes beyond {}, which has {}; type less, or leave --size out",
            show_bytes(wish),
            show_bytes(request.offset_bytes.unwrap_or(0)),
            said.display(),
            show_bytes(there)
        )));
    }
    let from = if request.size_bytes.is_some() { "command line" } else { "all of the target" };
    origins.fixed("--size", &show_bytes(wish), from);
    // The span counts from the beginning of the target, the size from the offset.
    Ok(request.size_bytes.map_or(there, |size| size + request.offset_bytes.unwrap_or(0)))
}

/// Alignment of offsets that direct I/O needs: statx says, else the device's logical block, else the safest common size.
fn direct_alignment(place: &Place) -> u32 {
    if let Some(direct) = place.direct.filter(|d| d.offset_align > 0) {
        return direct.offset_align;
    }
    let blocks = place.tops.iter().filter_map(|t| place.layers.get(*t)?.queue.get("logical_block_size"));
    blocks.filter_map(|b| b.trim().parse().ok()).max().unwrap_or(512)
}

fn unreachable_path(said: &Path, error: &std::io::Error) -> Failure {
    let path = said.display();
    match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Usage(format!(
            "{path} does not exist; name a directory (a test file is made in it), an existing file or a block device"
        )),
        std::io::ErrorKind::PermissionDenied => Failure::Refused(format!(
            "{path} may not be looked at by this user ({error}); name a place of yours, or run as its owner"
        )),
        _ => Failure::Refused(format!("{path}: {error}")),
    }
}
