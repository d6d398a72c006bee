//! Verifying: write, read back, and say what became of every block; also over a crash in between.
//!
//! For: the flow of `fathom verify` from what was said to the exit code. Not for: speed, which is measured elsewhere, nor for
//! knowing what must be where (`model::verification`), nor what is wrong with it (`model::stamp`).
//!
//! It is planned like any other workload of random writes, so that it meets the same refusals and the same two locks.

mod show;
mod state;

use crate::failure::Failure;
use crate::live::Live;
use crate::plan;
use crate::request::{Request, Work};
use crate::signals;
use crate::target::Ready;
use engine::engines;
use engine::verifier::{self, Through, Writing};
use machine::rest;
use machine::root::Root;
use model::job::{Cache, PerKind, Sizes, Stream};
use model::machine::{Machine, Place};
use model::payload::split_mix;
use model::plan::{Plan, Role};
use model::report::Producer;
use model::spec::{EngineSpec, JobSpec, PhaseSpec, Rw, StreamSpec};
use model::units::{show_bytes, show_count};
use model::verification::{Mark, State, Verification};
use model::verified::{Ending, Failures, Verified};
use report::Format;
use state::Keeper;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the user said.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where.
    pub target: Option<PathBuf>,
    /// What.
    pub task: Task,
    /// Operations in flight.
    pub depth: u32,
    /// What writes and reads back.
    pub engine: Option<EngineSpec>,
    /// What the target is opened with.
    pub cache: Option<Cache>,
    /// Read back without evicting the target.
    pub cached: bool,
    /// The format of the outcome.
    pub format: &'static Format,
    /// No progress.
    pub quiet: bool,
}

/// To write and read back, or only to read back.
#[derive(Clone, Debug)]
pub enum Task {
    /// Write and read back.
    Write(ToWrite),
    /// Read back what the state of this file says.
    Check(PathBuf),
}

/// What is to be written.
#[derive(Clone, Debug)]
pub struct ToWrite {
    /// Bytes; all there is where nothing was said.
    pub size_bytes: Option<u64>,
    /// First byte.
    pub offset_bytes: Option<u64>,
    /// What one operation writes.
    pub block_bytes: u32,
    /// Times each block is written.
    pub passes: u32,
    /// Time after which nothing more is written.
    pub time_ns: Option<u64>,
    /// Writes after which everything is made stable.
    pub sync_every: u64,
    /// Seed of the orders.
    pub seed: Option<u64>,
    /// Name of what may be overwritten.
    pub destroy: Option<String>,
    /// Where to keep what a check has to know.
    pub state: Option<PathBuf>,
}

/// Verifies, and prints what came of it.
///
/// # Errors
/// Where nothing could be verified: usage, the machine's refusal, or an interruption before anything was written.
pub fn verify(asked: &Options) -> Result<ExitCode, Failure> {
    let work = match &asked.task {
        Task::Check(file) => Meant::Check(Box::new(state::read(file)?)),
        Task::Write(to_write) => {
            to_write.state.as_deref().map_or(Ok(()), state::decide)?;
            Meant::Write(to_write)
        }
    };
    let (plan, machine) = plan::plan(&request(asked, &work))?;
    refuse_made(&plan, &work)?;
    let stop = signals::watch(machine::test_file::remove_all_now)
        .map_err(|e| Failure::Refused(format!("signals cannot be watched: {e}{}", sys::cause(&e))))?;
    // The thread that watches them reads them, so that no I/O call here is interrupted.
    sys::thread::block_signals().map_err(|e| Failure::Refused(format!("signals cannot be blocked: {e}")))?;
    let mut bench = Bench::prepare(asked, plan, machine, &work, stop)?;
    let mut outcome = match &work {
        Meant::Write(to_write) => bench.write_and_read(to_write)?,
        Meant::Check(state) => bench.check(state.mark)?,
    };
    outcome.notes.append(&mut bench.notes);
    show::print(&outcome, asked.format)
}

/// What is to be done, with all that is known of it.
enum Meant<'a> {
    Write(&'a ToWrite),
    Check(Box<State>),
}

/// The verification as a workload like any other.
fn request(asked: &Options, work: &Meant) -> Request {
    let (rw, block_bytes, offset, size, seed, destroy, target) = match work {
        Meant::Write(w) => {
            (Rw::Randwrite, w.block_bytes, w.offset_bytes, w.size_bytes, w.seed, w.destroy.clone(), None)
        }
        Meant::Check(state) => {
            let v = &state.verification;
            let (offset, size) = (Some(v.offset_bytes), Some(v.span_bytes()));
            (Rw::Randread, v.block_bytes, offset, size, None, None, Some(model::name::path(&state.target)))
        }
    };
    let size_of_block = Sizes::Fixed(block_bytes);
    let stream = StreamSpec {
        rw: Some(rw),
        bs: Some(PerKind::all(size_of_block)),
        offset,
        size,
        depth: Some(asked.depth),
        engine: asked.engine.clone(),
        cache: asked.cache,
        ..StreamSpec::default()
    };
    let phase = PhaseSpec { streams: vec![stream], ..PhaseSpec::default() };
    Request {
        command: std::env::args_os().map(model::name::text).collect(),
        work: Work::Job,
        job: JobSpec { seed, phases: vec![phase], ..JobSpec::default() },
        source: None,
        flags: Vec::new(),
        targets: asked.target.clone().or(target).into_iter().collect(),
        destroy: destroy.into_iter().collect(),
        hook: None,
        against: None,
        fail_if_slower: None,
        keep: false,
        expect_device: None,
        ranks_per_host: None,
        hosts: Vec::new(),
    }
}

/// A file that is gone with this process cannot be checked after a crash.
fn refuse_made(plan: &Plan, work: &Meant) -> Result<(), Failure> {
    if plan.targets.iter().all(|t| t.role != Role::Made) {
        return Ok(());
    }
    match work {
        Meant::Write(ToWrite { state: None, .. }) => Ok(()),
        Meant::Write(_) => Err(Failure::Usage(
            "--state is for what is still there after a crash, and a file that fathom makes in a directory is not; name an \
             existing file (as `fallocate -l 1g FILE` or `truncate -s 1g FILE` make one) or a block device, with --destroy"
                .into(),
        )),
        Meant::Check(_) => Err(Failure::Usage(
            "--check reads the file or device that was written with --state, and TARGET is a directory; name that file".into(),
        )),
    }
}

/// A verification under way.
struct Bench {
    root: Root,
    plan: Plan,
    ready: Ready,
    place: Place,
    verification: Verification,
    through: Through,
    cached: bool,
    stop: Arc<AtomicBool>,
    live: Live,
    notes: Vec<String>,
}

impl Bench {
    fn prepare(
        asked: &Options,
        plan: Plan,
        machine: Machine,
        work: &Meant,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let root = Root::real();
        let live = Live::plain(asked.quiet);
        let Some((stream, target)) = stream_of(&plan).zip(plan.targets.first()) else {
            return Err(Failure::Usage("there is nothing to verify".into()));
        };
        crate::run::name_leftovers(&plan, &live);
        if target.role == Role::Made {
            live.begin(&format!("making a test file in {}", target.path));
        }
        let since = Instant::now();
        let mut progress = |done, total| live.tick(done, total, left(since, done, total));
        let ready = Ready::prepare(&root, &plan, 0, &stop, &mut progress);
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        let ready = ready?;
        let mut place = machine.places.into_iter().next().unwrap_or_default();
        if let Some(handle) = ready.handle().filter(|_| target.role == Role::Made)
            && let Ok(found) = machine::resolve::resolve_open(&root, handle, &model::name::path(&target.path))
        {
            place = found;
        }
        let mut notes = ready.notes().to_vec();
        let engine = engines::find(&stream.engine)
            .ok_or_else(|| Failure::Usage(format!("--engine {}: there is no such engine", stream.engine)))?;
        if engine.max_depth < stream.depth {
            notes.push(format!(
                "the engine {} has {} operation in flight at most",
                engine.name, engine.max_depth
            ));
        }
        if let Some(ram) = &place.ram {
            notes.push(format!("this is memory ({ram}): it says nothing about what storage does with data"));
        }
        let verification = match work {
            Meant::Write(to_write) => new_verification(to_write, &plan, stream, ready.bytes()),
            Meant::Check(state) => Some(state.verification),
        };
        let Some(verification) = verification else {
            return Err(Failure::Usage(
                "not a single block fits; use a smaller --bs or a larger --size".into(),
            ));
        };
        verification.check().map_err(Failure::Usage)?;
        let (clock, _) = sys::clock::Clock::calibrate(false);
        let through = Through {
            engine,
            options: stream.options.clone(),
            cache: stream.cache,
            depth: stream.depth,
            clock,
        };
        Ok(Self { root, ready, place, verification, through, cached: asked.cached, stop, live, notes, plan })
    }

    fn write_and_read(&mut self, to_write: &ToWrite) -> Result<Verified, Failure> {
        let v = self.verification;
        let path = self.plan.targets.first().map_or_else(String::new, |t| t.path.clone());
        let mut keeper = match &to_write.state {
            Some(file) => Some(Keeper::create(file, State::new(path.clone(), v, v.mark(0)))?),
            None => None,
        };
        let file = self.ready.open(&self.root, self.through.cache, true)?;
        let words = |pass: u64| format!("writing pass {pass} of {}", v.passes);
        self.live.begin(&words(1));
        let since = Instant::now();
        let live = &self.live;
        let writing = Writing {
            verification: &v,
            until: to_write.time_ns.and_then(|ns| since.checked_add(Duration::from_nanos(ns))),
            stop: &self.stop,
            progress: &mut |done| live.tick(done, v.writes(), left(since, done, v.writes())),
            marked: &mut |mark| {
                if mark.synced.is_multiple_of(v.blocks) && mark.synced < v.writes() {
                    live.begin(&words(mark.synced / v.blocks + 1));
                }
                keeper.as_mut().map_or(Ok(()), |k| k.keep(mark))
            },
        };
        let written = verifier::write(&self.through, file, writing).map_err(|e| refused(&path, &e))?;
        let took = since.elapsed();
        if let Some(refusal) = refusal(&path, &written.failures) {
            return Err(refusal);
        }
        if written.ending == Ending::Time {
            self.notes.push(format!(
                "--time ended the writing after {} of {} writes",
                show_count(written.mark.begun as f64),
                show_count(v.writes() as f64)
            ));
        }
        let mut outcome = self.outcome(written.mark);
        outcome.state.clone_from(&to_write.state);
        let interrupted = written.ending == Ending::Interrupted;
        outcome.written = Some((written, took));
        if !interrupted {
            self.read(&mut outcome)?;
        }
        Ok(outcome)
    }

    fn check(&mut self, mark: Mark) -> Result<Verified, Failure> {
        let mut outcome = self.outcome(mark);
        self.read(&mut outcome)?;
        Ok(outcome)
    }

    fn outcome(&self, mark: Mark) -> Verified {
        Verified {
            fathom: Producer { format: 1, version: env!("CARGO_PKG_VERSION").into() },
            verification: self.verification,
            mark,
            target: self.plan.targets.first().map_or_else(String::new, |t| t.path.clone()),
            place: self.place.clone(),
            written: None,
            read: None,
            source: String::new(),
            notes: Vec::new(),
            state: None,
        }
    }

    /// Reads back, past the page cache as far as that can be had.
    fn read(&mut self, outcome: &mut Verified) -> Result<(), Failure> {
        outcome.source = self.evict();
        let v = &self.verification;
        let file = self.ready.open(&self.root, self.through.cache, false)?;
        self.live.begin("reading back");
        let since = Instant::now();
        let mut progress = |done| self.live.tick(done, v.blocks, left(since, done, v.blocks));
        let seen = verifier::read_back(&self.through, file, v, outcome.mark, &self.stop, &mut progress)
            .map_err(|e| refused(&outcome.target, &e))?;
        let none_read = seen.blocks == 0 && !seen.interrupted;
        if let Some(refusal) = refusal(&outcome.target, &seen.failures).filter(|_| none_read) {
            return Err(refusal);
        }
        if seen.must == 0 && seen.damaged == 0 && seen.failures == Failures::default() && !seen.interrupted {
            return Err(Failure::Refused(format!(
                "{}: nothing to verify: no write was known to be stable when the writer stopped; let it write for longer, or \
                 use a smaller --sync-every",
                outcome.target
            )));
        }
        outcome.read = Some((seen, since.elapsed()));
        Ok(())
    }

    /// Where the reads will come from, in words.
    fn evict(&self) -> String {
        if self.cached {
            return "the page cache as it was: this says what the kernel holds, not what the device does"
                .into();
        }
        let Some(handle) = self.ready.handle() else { return "the target as it was".into() };
        match rest::evict(handle) {
            Ok(pages) if pages.cached == 0 => "the device: no page was left in the page cache".into(),
            Ok(pages) => format!(
                "the device, but for {} pages ({}) that stayed in the page cache and may have been read instead",
                show_count(pages.cached as f64),
                show_bytes(pages.cached.saturating_mul(pages.page_bytes))
            ),
            Err(why) => format!("the device or the page cache; which is not known: {why}"),
        }
    }
}

fn stream_of(plan: &Plan) -> Option<&Stream> {
    plan.jobs.first()?.phases.first()?.streams.first()
}

/// `None` where not a single block fits.
fn new_verification(to_write: &ToWrite, plan: &Plan, stream: &Stream, bytes: u64) -> Option<Verification> {
    let offset_bytes = stream.access.offset_bytes;
    let span = stream.access.span_bytes.min(bytes.checked_sub(offset_bytes)?);
    let now = jiff::Timestamp::now().as_nanosecond() as u64;
    let blocks = span.checked_div(u64::from(to_write.block_bytes)).filter(|b| *b > 0)?;
    Some(Verification {
        id: split_mix(now ^ split_mix(u64::from(std::process::id()))),
        seed: plan.seed,
        offset_bytes,
        block_bytes: to_write.block_bytes,
        blocks,
        passes: to_write.passes,
        sync_every: to_write.sync_every,
    })
}

/// What is left to wait, as far as what is done tells.
fn left(since: Instant, done: u64, total: u64) -> Duration {
    let rest = total.saturating_sub(done) as f64 / done.max(1) as f64;
    Duration::try_from_secs_f64(since.elapsed().as_secs_f64() * rest).unwrap_or_default()
}

fn refused(path: &str, why: &str) -> Failure {
    Failure::Refused(format!("{path}: {why}"))
}

/// The refusal behind failed operations, where what failed says what a target cannot do and nothing about what it does with data.
fn refusal(path: &str, failures: &Failures) -> Option<Failure> {
    let errors = failures.counts.keys().map(|(_, errno)| io::Error::from_raw_os_error(*errno));
    errors.into_iter().find_map(|error| {
        let cure = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room, or use a smaller --size",
            ErrorKind::FileTooLarge => "use a smaller --size, or raise `ulimit -f`",
            ErrorKind::InvalidInput | ErrorKind::Unsupported => {
                "type --cache buffered, or another --engine or --bs"
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "name a target that may be written"
            }
            _ => return None,
        };
        Some(Failure::Refused(format!("{path}: {error}; {cure}")))
    })
}
