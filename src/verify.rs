//! `fathom verify`: writes, reads back, and reports the state of every block, also after a crash in between.
//!
//! 1. The verification becomes a workload of random writes, so that planning applies the same checks and refusals.
//! 2. The target is prepared and written. With `--state`, a file records which blocks are stable.
//! 3. The target is evicted and read back on this host, or on another one with `--shift-hosts`.
//! 4. Each block is compared with its stamp. `model::verification` determines the expected blocks, `model::stamp` describes the damage.
//! 5. The verdict of all hosts is printed and sets the exit code.

use crate::cli::verify::Args;
use crate::failure::{Failure, INTERRUPTED};
use crate::files::output::{ProtectedPaths, Replace, Rules};
use crate::files::{Readers, output};
use crate::fleet::{self, Fleet};
use crate::live::{Live, RemainingTime};
use crate::request::Request;
use crate::run::target::OpenTarget;
use crate::show::{self, Outlets};
use crate::signals;
use crate::{files, plan, run};
use analysis::strategy::cost::estimate_cost;
use engine::source::own_blocks;
use engine::verifier::{Through, Writing};
use engine::{engines, verifier};
use machine::page_cache;
use machine::root::Root;
use model::evidence::BlockStat;
use model::job::{Kind, PerKind, Sizes, Stream};
use model::machine::{LayerKind, Machine, Place};
use model::payload::split_mix;
use model::plan::{Plan, Planned, Role};
use model::report::Producer;
use model::spec::{JobSpec, PhaseSpec, Rw, StreamSpec};
use model::units::{minutes, show_bytes, show_count, show_counted, show_ns};
use model::verification::{
    Ending, FROM_DEVICE, Failures, HostVerification, State, Verdict, Verification, Verifications, Verified,
    WriterProgress, Written,
};
use model::{Known, name};
use report::Style;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::io::{ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Verifies, alone or as one of several hosts, and prints the outcome.
///
/// # Errors
/// If nothing could be verified: invalid usage, refusal by the machine, or an interruption before the first write.
pub fn verify(options: &Args) -> Result<ExitCode, Failure> {
    options.check_cached()?;
    let fleet = fleet::join(&request_of_all_hosts(options))?;
    fleet.leave(verify_in(&fleet, options))
}

fn verify_in(fleet: &Fleet, options: &Args) -> Result<ExitCode, Failure> {
    let host_task = HostTask::from_options(options, fleet)?;
    if let HostTask::Check(state) = &host_task {
        refuse_missing(&check_target(options, state))?;
    }
    if let (HostTask::Check(state), Fleet::Alone) = (&host_task, fleet)
        && let Some(outcome) = truncated_outcome(options, state)
    {
        let mut protected = ProtectedPaths::default();
        protected.add(&check_target(options, state), "the target of this command");
        if let Some(file) = &options.check {
            protected.add(file, "a state of this verification");
        }
        let outlets = show::outlets(&options.files.output, options.files.replace(), protected)?;
        return conclude(
            options,
            vec![HostVerification { host: None, outcome: Ok(outcome) }],
            &outlets,
            fleet,
        );
    }
    let Planned { plan, machine } = fleet.settle(plan::plan(&to_request(options, &host_task)))?;
    // A problem that all hosts have is reported by one of them.
    let on_one_host = |why| if fleet.reports_results() { why } else { Failure::Elsewhere(2) };
    refuse_impossible(&plan, &host_task, options).map_err(on_one_host)?;
    let outlets = outlets(options, &plan, &machine, fleet)?;
    let stop = signals::watch(machine::test_file::remove_all_now)?;
    // The watching thread reads the signals, so no I/O call here is interrupted.
    sys::thread::block_signals().map_err(|e| Failure::Refused(format!("signals cannot be blocked: {e}")))?;
    fleet.register_stop(&stop);
    let mut run = VerifyRun::prepare(options, plan, machine, &host_task, stop, fleet)?;
    let outcome = match &host_task {
        HostTask::Write(state) => run.write_and_read(state.as_deref())?,
        HostTask::Check(state) => {
            let mut outcome = run.outcome(state.writer_progress);
            run.read(state, &mut outcome)?;
            outcome.notes.append(&mut run.notes);
            outcome
        }
    };
    let Some(hosts) = fleet.collect_verified(outcome)? else { return Ok(ExitCode::SUCCESS) };
    conclude(options, hosts, &outlets, fleet)
}

/// Prints the outcome and returns the exit code.
fn conclude(
    options: &Args,
    hosts: Vec<HostVerification>,
    outlets: &Outlets,
    fleet: &Fleet,
) -> Result<ExitCode, Failure> {
    let outcome =
        Verifications { fathom: Producer { format: 1, version: env!("CARGO_PKG_VERSION").into() }, hosts };
    show::put(&outcome, options.format, Style::default(), outlets, None)?;
    Ok(match outcome.verdict() {
        Verdict::Verified => ExitCode::SUCCESS,
        Verdict::Damaged => ExitCode::from(1),
        Verdict::Interrupted => ExitCode::from(fleet.early_exit_code().unwrap_or(INTERRUPTED)),
    })
}

/// Checks the output files, which only one host writes. Refuses a path that is a state file of this
/// verification.
fn outlets(options: &Args, plan: &Plan, machine: &Machine, fleet: &Fleet) -> Result<Outlets, Failure> {
    let outputs = if fleet.reports_results() { options.files.output.as_slice() } else { &[] };
    let replace = options.files.replace();
    let state = options.check.as_ref().or(options.state.as_ref());
    let hosts = plan.fleet_rank.map_or(1, |part| part.hosts);
    let states = state.into_iter().flat_map(|file| (0..hosts).map(|by| fleet.file_of(file, Some(by))));
    let mut protected = ProtectedPaths::from_plan(plan, &machine.places);
    let mut new = outputs.to_vec();
    for state in states {
        protected.add(&state, "a state of this verification");
        // A new state file does not exist yet and cannot be protected by inode, so compare the names.
        new.extend((!outputs.is_empty() && !state.exists()).then_some(state));
    }
    output::decide_all(&new, &Rules { flag: "-o", protected: protected.clone(), replace })?;
    show::outlets(outputs, replace, protected)
}

/// Whether this host writes or checks, and the state or state file that it needs.
enum HostTask {
    /// Write and read back, with the path of the state file, if one is kept.
    Write(Option<PathBuf>),
    /// Read back, and compare with the state of an earlier verification.
    Check(Box<State>),
}

impl HostTask {
    /// The task of this host. Each host has its own state file.
    ///
    /// # Errors
    /// If the state cannot be read or cannot be kept, or if `--shift-hosts` makes each host read its own data.
    fn from_options(options: &Args, fleet: &Fleet) -> Result<Self, Failure> {
        let Some(file) = &options.check else {
            let state = options.state.as_deref().map(|file| fleet.file_of(file, None));
            state.as_deref().map_or(Ok(()), check_state_path)?;
            return Ok(Self::Write(state));
        };
        let (own, file) = (fleet.file_of(file, None), fleet.file_of(file, options.shift_hosts));
        if options.shift_hosts.is_some() && own == file {
            return Err(Failure::Usage(
                "--shift-hosts: each host would read its own data; use a number that is not a multiple of the number of hosts"
                    .into(),
            ));
        }
        Ok(Self::Check(Box::new(read(&file)?)))
    }
}

/// A request that is the same on all hosts, for joining them before this host knows its rank.
fn request_of_all_hosts(options: &Args) -> Request {
    let resolved = Stream { shift_hosts: options.shift_hosts.unwrap_or(0), ..Stream::default() };
    workload(options, vec![StreamSpec { shared: options.shared, resolved, ..StreamSpec::default() }])
}

/// The verification as an ordinary workload.
fn to_request(options: &Args, host_task: &HostTask) -> Request {
    let stream = StreamSpec {
        depth: Some(options.depth),
        engine: options.engine.clone(),
        cache: options.cache,
        ..StreamSpec::default()
    };
    match host_task {
        HostTask::Write(_) => {
            let mut stream = StreamSpec {
                bs: Some(PerKind::all(Sizes::Fixed(options.bs))),
                size: options.size,
                shared: options.shared,
                ..stream
            };
            if let Some(offset) = options.offset {
                stream.give("offset").access.offset_bytes = offset;
            }
            let write = StreamSpec { rw: Some(Rw::Randwrite), ..stream.clone() };
            // The data of another host are a separate target.
            let read = options.shift_hosts.map(|hosts| {
                let mut read = StreamSpec { rw: Some(Rw::Randread), ..stream };
                read.resolved.shift_hosts = hosts;
                read
            });
            let request = workload(options, std::iter::once(write).chain(read).collect());
            Request {
                job: JobSpec { seed: options.seed, ..request.job },
                destroy: options.destroy.iter().map(name::text).collect(),
                unseen_users: options.unseen.unseen_users.clone(),
                ..request
            }
        }
        HostTask::Check(state) => {
            let (verification, target) = (&state.verification, check_target(options, state));
            let there = whole_blocks_of(&target, verification);
            let mut read = StreamSpec {
                rw: Some(Rw::Randread),
                bs: Some(PerKind::all(Sizes::Fixed(verification.block_bytes))),
                // Blocks missing at the end of a truncated target are reported as lost, not refused.
                size: Some(verification.span_bytes().min(there)),
                ..stream
            };
            read.give("offset").access.offset_bytes = verification.offset_bytes;
            let request = workload(options, vec![read]);
            Request { targets: vec![target], ..request }
        }
    }
}

/// The typed target, or the target named in the state.
fn check_target(options: &Args, state: &State) -> PathBuf {
    options.target.clone().unwrap_or_else(|| name::path(&state.target))
}

/// Bytes of the complete blocks that a target still has.
fn whole_blocks_of(path: &Path, verification: &Verification) -> u64 {
    let there = end_of(path).saturating_sub(verification.offset_bytes);
    there - there.checked_rem(u64::from(verification.block_bytes)).unwrap_or(0)
}

/// Size of a file or block device in bytes; `u64::MAX` for anything else and if it cannot be opened.
fn end_of(path: &Path) -> u64 {
    let has_an_end =
        path.metadata().is_ok_and(|facts| facts.is_file() || facts.file_type().is_block_device());
    let end = || File::open(path).ok()?.seek(SeekFrom::End(0)).ok();
    if has_an_end { end().unwrap_or(u64::MAX) } else { u64::MAX }
}

/// A workload of phases with one stream each.
fn workload(options: &Args, streams: Vec<StreamSpec>) -> Request {
    let phase = |stream| PhaseSpec { streams: vec![stream], ..PhaseSpec::default() };
    Request {
        command: std::env::args_os().map(name::text).collect(),
        job: JobSpec { phases: streams.into_iter().map(phase).collect(), ..JobSpec::default() },
        targets: options.target.iter().cloned().collect(),
        ranks_per_host: options.fleet.ranks_per_host,
        ..Request::default()
    }
}

/// Fails if hosts would overwrite each other's data, if the state of a test file is to be saved although fathom removes the file, or if
/// the target to check is a directory.
fn refuse_impossible(plan: &Plan, host_task: &HostTask, options: &Args) -> Result<(), Failure> {
    let is_made = plan.targets.iter().any(|t| t.role == Role::Made);
    match host_task {
        HostTask::Write(..) if plan.fleet_rank.is_some() && !is_made && options.shared.is_none() => Err(Failure::Usage(
            "the hosts would overwrite each other's data in one file or device; type --shared segmented, which gives each host a part of it, or name a directory, where each host makes its own file"
                .into(),
        )),
        HostTask::Write(Some(_)) if is_made => Err(Failure::Usage(
            "--state requires a target that survives a crash, and the test file in a directory does not; name an existing file (`fallocate -l 1g FILE` or `truncate -s 1g FILE` makes one) or a block device, with --destroy"
                .into(),
        )),
        HostTask::Check(..) if is_made => Err(Failure::Usage(
            "--check reads the file or device that was written with --state, and TARGET is a directory; name the file".into(),
        )),
        _ => Ok(()),
    }
}

/// Maximum bytes read of a state file. Real state files are far smaller.
const MAX_STATE_BYTES: u64 = 64 << 10;

/// A state file, which is updated while the target is written.
struct Keeper {
    path: PathBuf,
    state: State,
}

impl Keeper {
    /// Begins a new state file.
    ///
    /// # Errors
    /// If the name is taken, or the file cannot be written.
    fn create(path: &Path, state: State) -> Result<Self, Failure> {
        refuse_existing(path)?;
        // Each update opens the directory again, so the path must not depend on the working directory.
        let path = std::path::absolute(path).map_err(|e| cannot_write_state(path, &e))?;
        files::create(&path, state.text().as_bytes(), Readers::Umask)
            .map_err(|e| cannot_write_state(&path, &e))?;
        Ok(Self { path, state })
    }

    /// Stores in the state file how far the writer got. The file is stable when this returns.
    ///
    /// # Errors
    /// Why the progress is not stable.
    fn keep(&mut self, writer_progress: WriterProgress) -> Result<(), String> {
        self.state.writer_progress = writer_progress;
        let was = self.path.metadata().ok();
        files::replace_as(&self.path, self.state.text().as_bytes(), was.as_ref())
            .map_err(|e| format!("--state {}: {e}; writing was stopped", name::shown(&self.path)))
    }
}

/// Checks before any write whether a state file can be created there.
///
/// # Errors
/// If the name is taken, or no file can be created there.
fn check_state_path(path: &Path) -> Result<(), Failure> {
    refuse_existing(path)?;
    Rules { flag: "--state", protected: ProtectedPaths::default(), replace: Replace::OnlyText }
        .decide(path)
        .map(|_| ())
}

/// Refuses an existing name: that file may be the only evidence of an earlier crash.
fn refuse_existing(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let path = name::shown(path);
    Err(Failure::Usage(format!(
        "--state {path} already exists; check it with `fathom verify --check {path}` and remove it, or type another name"
    )))
}

fn cannot_write_state(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!(
        "--state {} cannot be written: {error}; no data were written",
        name::shown(path)
    ))
}

/// Reads a state file.
///
/// # Errors
/// Why it is invalid.
fn read(path: &Path) -> Result<State, Failure> {
    let text = files::read_text(path, MAX_STATE_BYTES).map_err(|e| e.to_string());
    text.and_then(|text| State::parse(&text)).map_err(|why| {
        Failure::Usage(format!("--check {}: {why}; name the file that --state wrote", name::shown(path)))
    })
}

/// A running verification.
struct VerifyRun<'a> {
    options: &'a Args,
    root: Root,
    plan: Plan,
    fleet: &'a Fleet,
    targets: Vec<OpenTarget>,
    place: Place,
    verification: Verification,
    through: Through,
    stop: Arc<AtomicBool>,
    live: Live,
    notes: Vec<String>,
}

impl<'a> VerifyRun<'a> {
    /// Makes or opens the target, together with the other hosts.
    fn prepare(
        options: &'a Args,
        plan: Plan,
        machine: Machine,
        host_task: &HostTask,
        stop: Arc<AtomicBool>,
        fleet: &'a Fleet,
    ) -> Result<Self, Failure> {
        let root = Root::real();
        let live = Live::plain(options.quiet || !fleet.reports_results());
        let Some((stream, target)) = plan.streams().next().zip(plan.targets.first()) else {
            return Err(Failure::Usage("there is nothing to verify".into()));
        };
        run::probe(&root, &plan)?;
        run::name_leftovers(&plan, &live);
        let made_bytes = estimate_cost(&plan).made_bytes;
        live.say(&match host_task {
            HostTask::Write(_) => {
                let planned = new_verification(options, &plan, stream, target.bytes)?;
                announce_writes(&planned, made_bytes, options.time)
            }
            HostTask::Check(state) => announce_reads(&state.verification),
        });
        let targets = run::prepare_targets(&root, &plan, &stop, &live, None, fleet)?;
        let mut place = machine.places.into_iter().next().unwrap_or_default();
        if let Some(handle) = targets[0].handle().filter(|_| target.role == Role::Made)
            && let Ok(found) = machine::resolve::resolve_open(&root, handle, &name::path(&target.path))
        {
            place = found;
        }
        let mut notes: Vec<String> = targets.iter().flat_map(OpenTarget::notes).cloned().collect();
        notes.extend(analysis::engine_fallbacks(&plan));
        let engine = engines::find(&stream.engine)
            .ok_or_else(|| Failure::Usage(format!("--engine {}: there is no such engine", stream.engine)))?;
        if engine.max_depth < stream.depth {
            notes.push(format!(
                "the engine {} has at most {} in flight",
                engine.name,
                show_counted(engine.max_depth.into(), "operation")
            ));
        }
        if let Some(ram) = &place.ram {
            notes.push(format!(
                "the target is memory ({ram}), not storage: it cannot show whether storage keeps data"
            ));
        }
        let verification = match host_task {
            HostTask::Write(_) => new_verification(options, &plan, stream, targets[0].bytes())?,
            HostTask::Check(state) => state.verification,
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
        Ok(Self { options, root, plan, fleet, targets, place, verification, through, stop, live, notes })
    }

    /// Writes, then reads back the data of this host or of another one.
    fn write_and_read(&mut self, state: Option<&Path>) -> Result<Verified, Failure> {
        let verification = self.verification;
        let path = self.plan.targets.first().map_or_else(String::new, |t| t.path.clone());
        let kept = State::new(path.clone(), verification, verification.progress_after(0));
        // Another process may have begun to use the target since it was prepared. The check comes before the state file and
        // before this process opens the target again, because its own descriptor would count as a user.
        self.targets[0].may_be_used(&self.root, true)?;
        // Another verification may look for users at the same moment. Hosts share a target on purpose.
        self.targets[0].lock(self.plan.fleet_rank.is_some())?;
        let file = self.targets[0].open(&self.root, self.through.cache, true)?;
        let mut keeper = match state {
            Some(file) => Some(Keeper::create(file, kept.clone())?),
            None => None,
        };
        let words = |pass: u64| format!("writing pass {pass} of {}", verification.passes);
        self.live.begin(&words(1));
        let since = Instant::now();
        let live = &self.live;
        let completed = Cell::new(0);
        let writing = Writing {
            verification: &verification,
            until: self.options.time.and_then(|ns| since.checked_add(Duration::from_nanos(ns))),
            stop: &self.stop,
            on_completion: &mut |done| {
                completed.set(done);
                self.show(since, done, verification.writes());
            },
            on_sync: &mut |writer_progress| {
                if writer_progress.synced.is_multiple_of(verification.blocks)
                    && writer_progress.synced < verification.writes()
                {
                    live.begin(&words(writer_progress.synced / verification.blocks + 1));
                }
                keeper.as_mut().map_or(Ok(()), |k| k.keep(writer_progress))
            },
        };
        let written = verifier::write(&self.through, file, writing).map_err(|e| refused(&path, &e))?;
        let took = since.elapsed();
        if let Some(refusal) = refusal_of_writes(&path, &written, completed.get(), verification.blocks) {
            return Err(refusal);
        }
        if written.ending == Ending::Time {
            self.notes.push(format!(
                "--time ended the writing after {} of {}",
                show_count(written.writer_progress.begun as f64),
                show_counted(verification.writes(), "write")
            ));
        }
        let mut outcome = self.outcome(written.writer_progress);
        outcome.state = state.map(name::text);
        let (writer_progress, ending) = (written.writer_progress, written.ending);
        outcome.written = Some((written, took));
        if ending != Ending::Interrupted {
            self.read_back_assigned(&State { writer_progress, ..kept }, &mut outcome)?;
        }
        outcome.notes.append(&mut self.notes);
        Ok(outcome)
    }

    /// Reads back the data of this host, or of another one after all hosts have written.
    fn read_back_assigned(&mut self, own: &State, outcome: &mut Verified) -> Result<(), Failure> {
        if self.options.shift_hosts.is_some() {
            self.live.begin("waiting for the other hosts");
        }
        match self.fleet.exchange_written(own.clone(), self.options.shift_hosts) {
            Ok(theirs) => self.read(&theirs, outcome),
            // The host that ended the measurement reports why, along with the writes of this host.
            Err(_) if self.fleet.early_exit_code().is_some() || self.stop.load(Ordering::Relaxed) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    fn outcome(&self, writer_progress: WriterProgress) -> Verified {
        let target = self.plan.targets.first().map_or_else(String::new, |t| t.path.clone());
        let read_of = self.fleet.shifted_host(self.options.shift_hosts);
        Verified { read_of, ..not_read(self.verification, writer_progress, target, self.place.clone()) }
    }

    /// Reads back, bypassing the page cache as far as possible.
    fn read(&self, state: &State, outcome: &mut Verified) -> Result<(), Failure> {
        // The first stream writes, and the last one reads the data, which may be of another host.
        let last = self.plan.streams().last().and_then(|stream| self.targets.get(*stream.targets.first()?));
        let Some(target) = last else { return Err(Failure::Usage("there is nothing to read back".into())) };
        let evicted = self.evict(target);
        let before = read_by_bottom_devices(&self.root, &self.place);
        let verification = &state.verification;
        let file = target.open(&self.root, self.through.cache, false)?;
        self.live.begin("reading back");
        let since = Instant::now();
        let mut progress = |done| self.show(since, done, verification.blocks);
        let seen = verifier::read_back(
            &self.through,
            file,
            verification,
            state.writer_progress,
            &self.stop,
            &mut progress,
        )
        .map_err(|e| refused(&outcome.target, &e))?;
        let none_read = seen.blocks == 0 && !seen.interrupted;
        if let Some(refusal) = refusal(&outcome.target, &seen.failures).filter(|_| none_read) {
            return Err(refusal);
        }
        let failed = outcome.failed_writes() > 0;
        let sound = seen.damaged == 0 && seen.failures == Failures::default();
        if seen.must == 0 && sound && !failed && !seen.interrupted {
            return Err(Failure::Refused(format!(
                "{}: nothing to verify: no write was known to be stable when the writer stopped; write for longer, or use a smaller --sync-every",
                outcome.target
            )));
        }
        outcome.source = match evicted {
            None => {
                let after = read_by_bottom_devices(&self.root, &self.place);
                let read = before.and_then(|before| Ok(after?.saturating_sub(before)));
                source_of_reads(&self.place, outcome.bytes_of(seen.blocks), read)
            }
            Some(words) => words,
        };
        outcome.read = Some((seen, since.elapsed()));
        Ok(())
    }

    /// Prints progress, and checks for unresponsive hosts.
    fn show(&self, since: Instant, done: u64, total: u64) {
        self.live.tick_step(done, total, RemainingTime::by(since, done, total));
        for words in self.fleet.progress(done, || None) {
            self.live.say_even_if_quiet(&words);
        }
    }

    /// Evicts the target from the page cache. If pages may remain, returns a description of where the reads come from.
    fn evict(&self, target: &OpenTarget) -> Option<String> {
        if self.options.cached {
            return Some(
                "the page cache, which was not evicted: this shows what the kernel holds, not what the device stored".into(),
            );
        }
        let Some(handle) = target.handle() else {
            return Some("the target, which was not evicted from the page cache".into());
        };
        Some(match page_cache::evict(handle) {
            Ok(pages) if pages.cached == 0 => return None,
            Ok(pages) => format!(
                "the device or a cache of the storage, except perhaps {} ({}) that remained in the page cache",
                show_counted(pages.cached, "page"),
                show_bytes(pages.cached.saturating_mul(pages.page_bytes))
            ),
            Err(why) => format!("the device or the page cache; it is unknown which: {why}"),
        })
    }
}

/// The rate of the estimates before the first write, in bytes per second. The rate of the storage is not known yet.
const ASSUMED_RATE: u64 = 100_000_000;

/// Describes the bytes and the time of writing and reading back. `made_bytes` is the size of the test file.
fn announce_writes(verification: &Verification, made_bytes: u64, time_ns: Option<u64>) -> String {
    let once = verification.blocks.saturating_mul(verification.block_bytes.into());
    let passes = once.saturating_mul(verification.passes.into());
    let written = passes.saturating_add(made_bytes);
    let made = if made_bytes > 0 {
        format!("{} of the test file, then ", show_bytes(made_bytes))
    } else {
        String::new()
    };
    let word = if verification.passes == 1 { "pass" } else { "passes" };
    let limit = time_ns.map_or_else(String::new, |ns| {
        format!(
            " The {word} {} after {} at the latest (--time).",
            if verification.passes == 1 { "ends" } else { "end" },
            show_ns(ns as f64)
        )
    });
    format!(
        "It writes at most {} ({made}{} {word} over {}), and reads {} back. {}{limit}",
        show_bytes(written),
        verification.passes,
        show_bytes(once),
        show_bytes(once),
        estimate_time(written.saturating_add(once))
    )
}

/// Describes the bytes and the time of reading back.
fn announce_reads(verification: &Verification) -> String {
    let once = verification.blocks.saturating_mul(verification.block_bytes.into());
    format!("It writes nothing, and reads at most {} back. {}", show_bytes(once), estimate_time(once))
}

/// Describes how long it takes to move these bytes.
fn estimate_time(bytes: u64) -> String {
    let seconds = bytes.div_ceil(ASSUMED_RATE);
    let time = minutes(seconds.saturating_mul(1_000_000_000));
    format!("It takes about {time} at {} MB/s.", ASSUMED_RATE / 1_000_000)
}

/// Refuses to check a target that is not there: nothing says whether its data are lost.
fn refuse_missing(path: &Path) -> Result<(), Failure> {
    let path_shown = name::shown(path);
    let why = match path.metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            format!(
                "{path_shown} does not exist, so nothing was checked: it is lost, renamed, or not mounted"
            )
        }
        Ok(facts) if facts.file_type().is_block_device() && end_of(path) == 0 => format!(
            "{path_shown} shows no capacity, so nothing was checked: it is not set up, or failed; `fathom devices` lists the disks"
        ),
        _ => return Ok(()),
    };
    Err(Failure::Refused(format!("{why}; if the data are elsewhere, name the target after --check")))
}

/// The outcome of `--check` if the target ends before the end of the first block: all data are
/// lost, and no read can be planned. `None` if there is a block to read, or if no stable data are
/// lost.
fn truncated_outcome(options: &Args, state: &State) -> Option<Verified> {
    let (verification, path) = (state.verification, check_target(options, state));
    let end = end_of(&path);
    let first_end = verification.offset_bytes.saturating_add(u64::from(verification.block_bytes));
    if verification.check().is_err() || end >= first_end {
        return None;
    }
    let read = verifier::all_lost(&verification, state.writer_progress, end);
    if read.damaged == 0 {
        return None;
    }
    let place = machine::resolve::resolve(&Root::real(), &path).unwrap_or_default();
    Some(Verified {
        read: Some((read, Duration::ZERO)),
        source: "the length of the target, which ends before the end of the first block".into(),
        ..not_read(verification, state.writer_progress, name::text(&path), place)
    })
}

/// The outcome before anything was read back.
fn not_read(
    verification: Verification,
    writer_progress: WriterProgress,
    target: String,
    place: Place,
) -> Verified {
    Verified {
        verification,
        writer_progress,
        target,
        place,
        written: None,
        read: None,
        source: String::new(),
        notes: Vec::new(),
        state: None,
        read_of: None,
    }
}

/// At least this share of the data must come from the devices at the bottom, to name them as the source.
const SOURCE_SHARE: f64 = 0.95;

/// Returns the bytes that the devices at the bottom of the stack have read so far.
///
/// # Errors
/// If the stack is not known to the bottom, or a device has no counters.
fn read_by_bottom_devices(root: &Root, place: &Place) -> Known<u64> {
    if let Some(why) = &place.unresolved_reason {
        return Err(why.clone());
    }
    let mut sum = None;
    for device in place.lowest_layers() {
        if let Some(why) = device.counters_off_reason() {
            return Err(why);
        }
        let read = BlockStat::parse(&root.read(&device.stat_file)?)?.read.bytes;
        sum = Some(sum.unwrap_or(0_u64).saturating_add(read));
    }
    sum.ok_or_else(|| format!("no block device is known below {}", place.kind()))
}

/// Describes where the reads came from after a complete eviction. fathom read back `wanted` bytes, and meanwhile the devices at the
/// bottom read `read` bytes.
fn source_of_reads(place: &Place, wanted: u64, read: Known<u64>) -> String {
    let evicted = "no page of the target was left in the page cache";
    if let Some(ram) = &place.ram {
        return format!("memory ({ram})");
    }
    let read = match read {
        Ok(read) => read,
        Err(why) => return format!("{evicted}, but it is unknown whether a device was read: {why}"),
    };
    let names: Vec<&str> = place.lowest_layers().map(|l| l.name.as_str()).collect();
    let names = names.join(", ");
    let (shown_read, shown_wanted) = (show_bytes(read), show_bytes(wanted));
    if (read as f64) < SOURCE_SHARE * wanted as f64 {
        return format!(
            "a cache or memory above {names}, at least in part: {evicted}, but {names} read only {shown_read} of {shown_wanted}; the stored data are unknown"
        );
    }
    // Devices that read more than requested can hide reads served by an image's page cache.
    let cached = place.layers.iter().find(|l| l.kind == LayerKind::Loop && l.backing_direct != Some(true));
    match cached {
        Some(device) if read as f64 * SOURCE_SHARE > wanted as f64 => format!(
            "{names} or the page cache of the image of {}; it is unknown which: {names} read {shown_read}, but fathom only {shown_wanted}, so other load may have used {names} too",
            device.name
        ),
        _ if read as f64 * SOURCE_SHARE > wanted as f64 => format!(
            "{FROM_DEVICE} {evicted}, and {names} read {shown_read}, of which fathom asked for {shown_wanted}"
        ),
        _ => format!("{FROM_DEVICE} {evicted}, and {names} read {shown_read}"),
    }
}

/// Returns the verification of a new target: its id, and the blocks that this host writes.
///
/// # Errors
/// If not a single block fits.
fn new_verification(
    options: &Args,
    plan: &Plan,
    stream: &Stream,
    bytes: u64,
) -> Result<Verification, Failure> {
    let none_fits = || Failure::Usage("no block fits; use a smaller --bs or a larger --size".into());
    let offset = stream.access.offset_bytes;
    let span = stream.access.span_bytes.min(bytes.checked_sub(offset).ok_or_else(none_fits)?);
    let part = match stream.shared {
        Some(shared) => own_blocks(stream, shared, span, plan.first_task(0, stream))
            .map_err(Failure::Usage)?
            .places()
            .next()
            .ok_or_else(none_fits)?,
        None => 0..span,
    };
    let blocks = (part.end - part.start).checked_div(u64::from(options.bs)).filter(|b| *b > 0);
    let now = jiff::Timestamp::now().as_nanosecond() as u64;
    let here = u64::from(std::process::id()) ^ split_mix(plan.host_seed());
    Ok(Verification {
        id: split_mix(now ^ split_mix(here)),
        seed: plan.host_seed(),
        offset_bytes: offset + part.start,
        block_bytes: options.bs,
        blocks: blocks.ok_or_else(none_fits)?,
        passes: options.passes,
        sync_every: options.sync_every,
    })
}

fn refused(path: &str, why: &str) -> Failure {
    Failure::Refused(format!("{path}: {why}"))
}

/// Returns a refusal if the target does not support the writes. After a pass over all `blocks` that a sync made stable, or
/// after any write for errors other than a lack of space, the target did support them: then a failure is damage.
/// `completed` also counts the failed writes.
fn refusal_of_writes(path: &str, written: &Written, completed: u64, blocks: u64) -> Option<Failure> {
    let synced = written.writer_progress.synced;
    let failures = &written.failures;
    let lacks_space = failures.counts.iter().all(|c| {
        let kind = io::Error::from_raw_os_error(c.errno).kind();
        matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
    });
    let failed_writes: u64 = failures.counts.iter().filter(|c| c.kind == Kind::Write).map(|c| c.count).sum();
    let has_worked = if lacks_space { synced >= blocks } else { synced > 0 || completed > failed_writes };
    if has_worked { None } else { refusal(path, failures) }
}

/// Returns a refusal if all failures are of operations that the target does not support. Such failures prove nothing about
/// the data.
fn refusal(path: &str, failures: &Failures) -> Option<Failure> {
    let refusals = failures.counts.iter().map(|c| {
        let error = io::Error::from_raw_os_error(c.errno);
        let fix = match error.kind() {
            // A sync that finds no space has lost accepted writes. That is damage, not a refusal.
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded if c.kind != Kind::Sync => {
                "free some space, or use a smaller --size"
            }
            ErrorKind::FileTooLarge => "use a smaller --size, or raise `ulimit -f`",
            ErrorKind::InvalidInput | ErrorKind::Unsupported => {
                "type --cache buffered, or another --engine or --bs"
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "name a target that may be written"
            }
            _ => return None,
        };
        Some(Failure::Refused(format!("{path}: {error}; {fix}")))
    });
    refusals.collect::<Option<Vec<_>>>()?.into_iter().next()
}

#[test]
fn a_target_that_took_writes_did_support_them() {
    let refusal = |synced: u64, completed: u64, failures: &[(Kind, i32)]| {
        let mut counted = Failures::default();
        for (kind, errno) in failures {
            counted.add(*kind, 0, -errno);
        }
        let writer_progress = WriterProgress { synced, begun: completed };
        let written = Written { writer_progress, ending: Ending::Failed, failures: counted };
        refusal_of_writes("f", &written, completed, 100).is_some()
    };
    let read_only = (Kind::Write, libc::EROFS);
    assert!(refusal(0, 1, &[read_only]) && refusal(0, 2, &[(Kind::Write, libc::EINVAL); 2]));
    assert!(!refusal(100, 140, &[read_only]) && !refusal(0, 7, &[read_only]));
    // An error of the storage is not hidden by the file system that becomes read-only.
    assert!(!refusal(0, 2, &[(Kind::Write, libc::EIO), read_only]));
    // A new file finds no space in its first pass. Thin storage finds none later.
    let no_space = (Kind::Write, libc::ENOSPC);
    assert!(refusal(50, 70, &[no_space]) && !refusal(100, 120, &[no_space]));
    assert!(!refusal(0, 7, &[(Kind::Sync, libc::ENOSPC)]));
}

#[test]
fn bytes_and_time_are_announced() {
    let verification = Verification {
        id: 1,
        seed: 1,
        offset_bytes: 0,
        block_bytes: 64 << 10,
        blocks: 16 << 10,
        passes: 2,
        sync_every: 1024,
    };
    assert_eq!(
        announce_writes(&verification, 1 << 30, None),
        "It writes at most 3 GiB (1 GiB of the test file, then 2 passes over 1 GiB), and reads 1 GiB back. It takes about 43 s at 100 \
         MB/s."
    );
    assert_eq!(
        announce_writes(&Verification { passes: 1, ..verification }, 0, Some(3_000_000_000)),
        "It writes at most 1 GiB (1 pass over 1 GiB), and reads 1 GiB back. It takes about 22 s at 100 MB/s. The pass ends after 3.00 s \
         at the latest (--time)."
    );
    assert_eq!(
        announce_reads(&verification),
        "It writes nothing, and reads at most 1 GiB back. It takes about 11 s at 100 MB/s."
    );
}

#[test]
fn the_device_is_the_source_only_if_the_last_one_read_as_much() {
    let layer = |name: &str, kind, below: &[usize]| model::machine::Layer {
        name: name.into(),
        kind,
        below: below.to_vec(),
        ..Default::default()
    };
    let mut place = Place {
        layers: vec![layer("loop0", LayerKind::Loop, &[1]), layer("vda", LayerKind::Disk, &[])],
        tops: vec![0],
        ..Place::default()
    };
    let mib = |n: u64| n << 20;
    let source = |place: &Place, read| source_of_reads(place, mib(64), read);
    assert!(source(&place, Ok(8192)).starts_with("a cache or memory above vda"));
    assert!(source(&place, Ok(mib(500))).contains("it is unknown which"), "a neighbour read vda too");
    assert!(source(&place, Ok(mib(64))).starts_with("the device: "));
    place.layers[0].backing_direct = Some(true);
    assert!(source(&place, Ok(mib(500))).starts_with("the device: "));
    // A caching volume (device mapper) above the disk is judged in the same way.
    place.layers[0].kind = LayerKind::DeviceMapper;
    assert!(source(&place, Ok(mib(10))).contains("vda read only 10 MiB of 64 MiB"));
    assert!(
        source(&place, Err("no stat".into())).contains("it is unknown whether a device was read: no stat")
    );
    place.ram = Some("zram0".into());
    assert_eq!(source(&place, Ok(mib(64))), "memory (zram0)");
}
