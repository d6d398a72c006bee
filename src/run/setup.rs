//! Everything before the first run.
//!
//! 1. Watches signals, enters a cgroup.
//! 2. Probes each target and engine before anything is announced or written. In a directory, the probe uses a temporary sparse file. A file
//!    or device of the user is opened for reading, with each cache mode. Asynchronous engines are set up on the open file with their options
//!    and depth. Then opens the session file, announces the cost, and prepares the targets.
//! 3. Runs the self test: the highest rate that fathom itself reaches with each kind of stream in
//!    the plan (D06, D07).
//! 4. For comparisons of interfaces: tries each job, to find refused interfaces and to count system calls. Then chooses the number of
//!    writes per run.
//!
//! The number of writes must be chosen because the page cache takes writes faster than the storage,
//! and the final sync has no time limit. For each kind of access, such as random writes of 4 KiB,
//! the first interface writes 4 MiB and syncs, then eight times as much, until this takes 100 ms.
//! Every interface then gets as many operations as this rate writes and syncs in 1.25 times the
//! time of a run, but no more than fit into the file.

use super::Measurement;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live::{self, Live, ProgressMode, RemainingTime};
use crate::run::EarlierSession;
use crate::run::collector::OpLog;
use crate::run::specs::Payloads;
use crate::run::target::{OpenTarget, open_others, refuse_flags, show_progress};
use crate::session::Session;
use crate::signals;
use analysis::strategy::cost::{estimate_cost, time_left};
use engine::engines::Entry;
use engine::interface::CannotBegin;
use engine::link::WorkerOutcome;
use engine::source::{StreamState, WorkerContext};
use engine::spec::WorkerSpec;
use engine::workers::Workers;
use engine::{engines, source};
use machine::cgroup::{self, OwnCgroup};
use machine::root::Root;
use machine::snapshot::SnapshotReader;
use machine::test_file::TestFile;
use machine::{page_cache, safety};
use model::evidence::Moment;
use model::job::{Cache, Data, FALLOCATE, Job, Options, Pace, Pattern, StopRule, Stream, TaskNumber};
use model::machine::{LayerKind, Machine};
use model::plan::{Plan, Planned, Role, Target};
use model::record::{self, Ceiling, Frame, Header, Record, SelfTest, Trial};
use model::units::{show_bytes, show_ns};
use model::{Known, name};
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sys::clock::Clock;
use sys::open_file::{CloseErrors, OpenFile};

/// Begins a measurement, up to its first run.
pub(super) fn begin(
    planned: Planned,
    earlier: Option<&EarlierSession>,
    keep: bool,
    fleet: &Fleet,
    mode: ProgressMode,
) -> Result<Measurement, Failure> {
    let Planned { plan, mut machine } = planned;
    let root = Root::real();
    // The first signal sets `stop`. The second one cleans up and ends the program at once.
    let stop = signals::watch(|| {
        live::restore_terminal();
        machine::test_file::remove_all_now();
        cgroup::leave_now();
    })?;
    // Enter before any worker starts, so that each one is counted.
    let own_cgroup = enter_cgroup(&root, &plan, &machine);
    machine.cgroup = own_cgroup.as_ref().map(OwnCgroup::describe).map_err(Clone::clone);
    fleet.register_stop(&stop);
    // Refuse before the time is announced.
    probe(&root, &plan)?;
    let cost = estimate_cost(&plan);
    let live = Live::start(mode, &cost, &stop)?;
    let payloads = Payloads::load(&plan)?;
    // `clock_reason` is why a fallback clock is used; `None` for the preferred clock.
    let (clock, clock_reason) =
        Clock::calibrate(machine.clocksource.as_deref().is_ok_and(|c| c.trim() == "tsc"));
    // Resumed runs keep their times; new ones come after them.
    let passed = earlier.map_or(Duration::ZERO, EarlierSession::until);
    let epoch = Instant::now().checked_sub(passed).unwrap_or_else(Instant::now);
    let before = SnapshotReader::new(root.clone(), &machine, epoch).take(Moment::BeforePrepare, &[], false);

    // Open the session first, so that nothing is measured that cannot be stored.
    let started = jiff::Zoned::now();
    let name = started.strftime("%Y%m%d-%H%M%S").to_string();
    let session = Session::open(&name, keep)?;
    name_leftovers(&plan, &live);
    live.say(&cost.sentence());
    for sentence in analysis::engine_fallbacks(&plan) {
        live.say(&sentence);
    }
    let targets = prepare_targets(&root, &plan, &stop, &live, Some(time_left(&plan, &[]).into()), fleet)?;
    resolve_opened_files(&root, &plan, &targets, &mut machine);
    let snapshots = SnapshotReader::new(root.clone(), &machine, epoch);
    live.watch_devices(&snapshots, &plan, &machine);
    let self_test = run_self_test(&plan, &payloads, clock);
    let header = Header {
        format: record::FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        started: started.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        plan: plan.clone(),
        hosts: vec![machine],
        clock: record::Clock { name: clock.name().into(), reason: clock_reason, cost_ps: clock.cost_ps() },
        self_test,
    };
    let mut measurement = Measurement {
        plan,
        places: header.hosts.iter().flat_map(|h| h.places.clone()).collect(),
        root,
        snapshots,
        targets,
        session,
        stop,
        live,
        fleet: fleet.clone(),
        status_sender: None,
        accept: None,
        clock,
        epoch,
        payloads,
        close_errors: CloseErrors::default(),
        op_log: OpLog::default(),
        driver_recorder: None,
        written: Vec::new(),
        last_run: Record::new(header),
        interval_series: Vec::new(),
        summaries: Vec::new(),
        sweep_remaining: None,
        refused: Vec::new(),
        busy_host: None,
        _own_cgroup: own_cgroup,
    };
    // Write the first frames once it is known which jobs this machine allows.
    measurement.limit_to_targets();
    measurement.last_run.header.self_test.trials = measurement.run_trials()?;
    measurement.size_writes();
    measurement.last_run.header.plan.jobs.clone_from(&measurement.plan.jobs);
    // If this machine refuses the headline's job, another job is the headline now.
    measurement.last_run.header.plan.headline = measurement.plan.headline;
    measurement.session.append(&Frame::Header(Box::new(measurement.last_run.header.clone())))?;
    measurement.session.append(&Frame::Evidence(Box::new(before)))?;
    fleet.begin(&measurement.last_run.header, &name, keep)?;
    Ok(measurement)
}

/// Enters a new cgroup, whose counters cover only this measurement.
fn enter_cgroup(root: &Root, plan: &Plan, machine: &Machine) -> Known<OwnCgroup> {
    if plan.targets.iter().all(|t| t.role == Role::None) {
        return Err("no device is used".into());
    }
    let own = cgroup::enter(root)?;
    let layers = machine.places.iter().flat_map(|p| &p.layers);
    own.count_on(layers.filter(|l| l.kind != LayerKind::Partition).map(|l| l.number.as_str()));
    Ok(own)
}

/// Makes or opens every target of a plan. Shows `left`, the remaining time of the session, if
/// known.
pub(crate) fn prepare_targets(
    root: &Root,
    plan: &Plan,
    stop: &Arc<AtomicBool>,
    live: &Live,
    left: Option<RemainingTime>,
    fleet: &Fleet,
) -> Result<Vec<OpenTarget>, Failure> {
    let mut targets = Vec::new();
    for (index, target) in plan.targets.iter().enumerate() {
        let making = if is_made_here(plan, index) { ": making a test file" } else { "" };
        live.step_of(&format!("preparing {}{making}", target.path), left);
        let since = Instant::now();
        let mut progress = |done: u64, total: u64| show_progress(live, left, since, done, total);
        let ready = OpenTarget::prepare(root, plan, index, stop, &mut progress);
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        targets.push(ready?);
    }
    open_others(plan, &mut targets, fleet, stop, live, left)?;
    Ok(targets)
}

/// Prints the test files that killed runs left in the directories where this run makes its own. fathom does not remove them, because the
/// user may need them to find out what happened.
pub(crate) fn name_leftovers(plan: &Plan, live: &Live) {
    let dirs: BTreeSet<&str> =
        plan.targets.iter().filter(|t| t.role == Role::Made).map(|t| t.path.as_str()).collect();
    for left in dirs.into_iter().flat_map(|dir| machine::test_file::leftovers(&model::name::path(dir))) {
        let path = model::name::shown(&left.path);
        live.say(&format!(
            "an earlier run left {path} ({}); if no other host uses it, remove it with: rm '{path}'",
            show_bytes(left.bytes)
        ));
    }
}

/// Resolves the open files that fathom made or may write. Resolving an open file shows more than resolving a path before the file is open:
/// how direct I/O works on the file, and where an overlay has copied a file that was opened for writing.
fn resolve_opened_files(root: &Root, plan: &Plan, targets: &[OpenTarget], machine: &mut Machine) {
    for ((place, ready), target) in machine.places.iter_mut().zip(targets).zip(&plan.targets) {
        let may_have_moved =
            matches!(target.role, Role::Made | Role::File) && (target.writable || target.create.is_some());
        let Some(handle) = ready.handle().filter(|_| may_have_moved) else { continue };
        if let Ok(found) = machine::resolve::resolve_open(root, handle, &model::name::path(&target.path)) {
            *place = found;
        }
    }
}

/// Size of the operations for which the probe sets up an engine, in bytes. Direct I/O may need
/// larger ones.
const PROBE_BYTES: u32 = 4096;

/// Whether this host makes the test file of a target.
fn is_made_here(plan: &Plan, index: usize) -> bool {
    let is_made = plan.targets.get(index).is_some_and(|target| target.role == Role::Made);
    is_made && plan.common(index).is_none_or(|common| plan.is_rank(common.maker))
}

/// Refuses a plan whose targets or engines this machine does not allow, and test files without room.
///
/// # Errors
/// [`Failure::Refused`] with what is denied and what to type instead.
pub(crate) fn probe(root: &Root, plan: &Plan) -> Result<(), Failure> {
    for (_, target) in plan.targets.iter().enumerate().filter(|(index, _)| is_made_here(plan, *index)) {
        machine::test_file::check_room(&name::path(&target.path), machine::test_file::MIN_BYTES)?;
    }
    if plan.study.has_separate_jobs() {
        return Ok(());
    }
    for (index, target) in plan.targets.iter().enumerate().filter(|(_, t)| t.role != Role::None) {
        let mut streams: Vec<&Stream> = Vec::new();
        for stream in plan.streams() {
            let is_probed = |s: &&Stream| {
                (&s.engine, &s.options, s.cache, s.depth)
                    == (&stream.engine, &stream.options, stream.cache, stream.depth)
            };
            if stream.targets.contains(&index) && !streams.iter().any(is_probed) {
                streams.push(stream);
            }
        }
        probe_target(root, target, &streams)?;
    }
    Ok(())
}

fn probe_target(root: &Root, target: &Target, streams: &[&Stream]) -> Result<(), Failure> {
    let path = name::path(&target.path);
    let bytes = PROBE_BYTES.max(target.block_bytes);
    let probe_file = match (target.role, target.create) {
        (Role::Made, _) => Some(TestFile::make_sparse(&path, bytes.into())?),
        // If the directory refuses the file, the later attempt to make the file reports the reason.
        (_, Some(_)) => match path.parent().map(|parent| TestFile::make_sparse(parent, bytes.into())) {
            Some(Ok(probe_file)) => Some(probe_file),
            _ => return Ok(()),
        },
        _ => None,
    };
    for stream in streams {
        let Some(entry) = engines::find(&stream.engine).filter(|entry| entry.touches_targets()) else {
            continue;
        };
        let file = open(root, target, &path, probe_file.as_ref(), stream.cache)?;
        if let Some(probe_file) = &probe_file
            && (entry.name == FALLOCATE || stream.options.contains_key(FALLOCATE))
        {
            fallocate(probe_file.file(), FallocateFlags::empty(), 0, bytes.into()).map_err(|e| {
                Failure::Refused(format!(
                    "{}: its file system cannot allocate blocks ({}); use another --engine, or leave the option {FALLOCATE} out",
                    name::shown(&path),
                    std::io::Error::from(e)
                ))
            })?;
        }
        if !is_set_up(entry, stream, probe_file.is_some()) {
            continue;
        }
        let file = OpenFile::new(file, probe_file.is_some());
        engine::engines::probe(entry, &stream.options, file, stream.cache, stream.depth, bytes)
            .map_err(|why| Failure::Refused(why.sentence))?;
    }
    Ok(())
}

/// Whether the probe sets up the engine: only if the set-up can fail, and only if it changes no file of the user.
fn is_set_up(entry: &Entry, stream: &Stream, is_probe_file: bool) -> bool {
    !entry.library_threads && (!entry.completes_in_submit || (is_probe_file && !stream.options.is_empty()))
}

/// Opens a target as a worker would: a file or device of the user for reading. A test file of the probe (`probe_file`) is also opened for
/// writing, which options such as `new` need.
fn open(
    root: &Root,
    target: &Target,
    path: &Path,
    probe_file: Option<&TestFile>,
    cache: Cache,
) -> Result<File, Failure> {
    let opened = match (probe_file, target.role) {
        (Some(probe_file), _) => probe_file.reopen(cache, true),
        (None, Role::Device) => {
            return Ok(safety::open_device(root, path, target.identity.as_ref(), false, cache)?);
        }
        (None, _) => safety::open_file(path, false, cache),
    };
    opened.map_err(|e| refuse_flags(path, cache, &e))
}

/// Duration of a try: thousands of operations in less than a time slice, so that one of the tries is undisturbed on a busy
/// CPU.
const SELF_TEST_TIME_NS: u64 = 2_000_000;
/// Number of tries. The fastest counts, since other load only slows fathom down.
const SELF_TEST_TRIES: usize = 5;
/// Most streams that are tried, so that a plan of a hundred streams still begins at once.
const MAX_SHAPES: usize = 24;
/// Assumed size of the target. The self test touches no target.
const SPAN_BYTES: u64 = 1 << 30;
const COPY_BYTES: usize = 1 << 20;

/// Measures the shortest time per operation of each stream of a plan. Streams that differ only in what [`closed_loop`] removes, such as
/// pace, limits and workers, are tried once.
fn run_self_test(plan: &Plan, payloads: &Payloads, clock: Clock) -> SelfTest {
    // Each stream at full speed, with the index of its first ceiling.
    let mut tried: Vec<(Stream, usize)> = Vec::new();
    let mut ceilings: Vec<Ceiling> = Vec::new();
    let streams = plan.jobs.iter().enumerate();
    let streams =
        streams.flat_map(|(job, of_job)| of_job.numbered_streams().map(move |stream| (job, stream)));
    for (job, (phase, stream, planned)) in streams {
        let shape = closed_loop(planned);
        let known = tried.iter().find(|(tried, _)| *tried == shape).map(|(_, first)| *first);
        let ceiling = match known {
            Some(first) => Ceiling { job, phase, stream, ..ceilings[first].clone() },
            None if tried.len() == MAX_SHAPES => continue,
            None => {
                let least = |engine: &str, options: &Options| -> Known<f64> {
                    let once = || ns_per_op(&shape, engine, options.clone(), payloads, clock);
                    (1..SELF_TEST_TRIES).try_fold(once()?, |least, _| Ok(once()?.min(least)))
                };
                let loop_ns = least("null", &Options::new());
                let interface_ns = if shape.engine == "io_uring" {
                    least("io_uring", &Options::from([("nop".to_owned(), None)]))
                } else {
                    Err(format!("the engine {} has no empty operation to measure its overhead", shape.engine))
                };
                tried.push((shape, ceilings.len()));
                Ceiling { job, phase, stream, loop_ns, interface_ns }
            }
        };
        ceilings.push(ceiling);
    }
    SelfTest { copy_bytes_per_s: copy_bytes_per_s(), ceilings, trials: Vec::new() }
}

/// Returns the stream's shape for one worker at full speed, without pace and limits.
fn closed_loop(stream: &Stream) -> Stream {
    let mut shape = stream.clone();
    shape.pace = Pace::Closed;
    shape.limit = StopRule::default();
    shape.workers = 1;
    shape.targets.truncate(1);
    shape.sharing = model::job::Sharing::Each;
    shape.remove_pauses();
    shape.turns.clear();
    shape.access.offset_bytes = 0;
    shape.access.span_bytes = SPAN_BYTES.max(u64::from(shape.access.largest_bytes()));
    shape.delay_ns = 0;
    shape.op_priorities.clear();
    shape
}

fn ns_per_op(
    shape: &Stream,
    engine: &str,
    options: Options,
    payloads: &Payloads,
    clock: Clock,
) -> Known<f64> {
    let entry = engines::find(engine).ok_or("there is no such engine")?;
    if let Some(missing) = options.keys().find(|o| entry.options.iter().all(|e| e.name != o.as_str())) {
        return Err(format!("the engine {engine} has no option {missing}"));
    }
    let spec = self_test_spec(shape, entry, options, payloads, clock)?;
    let mut workers = Workers::spawn(vec![spec])?;
    workers.open();
    while !workers.is_done() {
        std::thread::sleep(Duration::from_millis(2));
        workers.collect(|_, _| {});
    }
    let (_, outcome) = workers.finish().remove(0);
    if let Some(why) = outcome.error {
        return Err(why);
    }
    // Count the window only: the totals also include completions after it.
    let lanes = outcome.last_block.iter().flat_map(|block| &block.lanes);
    let ops: u64 = lanes.flat_map(|lane| &lane.kinds).map(|tally| tally.latency.count()).sum();
    if ops == 0 { Err("no operation completed".into()) } else { Ok(outcome.window_ns as f64 / ops as f64) }
}

fn self_test_spec(
    shape: &Stream,
    engine: &'static Entry,
    options: Options,
    payloads: &Payloads,
    clock: Clock,
) -> Known<WorkerSpec> {
    let context =
        WorkerContext { worker: 0, workers: 1, seed: 1, stream_state: Arc::new(StreamState::new(1)) };
    let span = shape.access.span_bytes;
    let files = if engine.moves_bytes {
        let file = File::open("/dev/null").map_err(|e| e.to_string())?;
        vec![OpenFile::new(file, true)]
    } else {
        Vec::new()
    };
    let sources = source::lanes_of_task(shape, &[span], &[1], &context, TaskNumber { index: 0, count: 1 })?;
    Ok(WorkerSpec {
        depth: shape.depth,
        slot_bytes: shape.access.largest_bytes(),
        writes: shape.access.writes(),
        options,
        cache: shape.cache,
        place: crate::run::specs::place_of(&shape.place, 0),
        batch: shape.batch,
        maker: payloads
            .maker(&shape.data, 1)
            .or_else(|_| payloads.maker(&Data::default(), 1))
            .map_err(|_| "the data to write cannot be made")?,
        // No warm-up: a worker that loses the CPU in it would have a very short window.
        ..WorkerSpec::plain(engine, sources, files, SELF_TEST_TIME_NS, clock)?
    })
}

/// Bytes that one thread copies per second: the ceiling of its buffered reads and writes.
fn copy_bytes_per_s() -> f64 {
    let from = vec![1_u8; COPY_BYTES];
    // Touch the pages before the clock starts.
    let mut to = from.clone();
    let mut once = || {
        let start = Instant::now();
        let mut copied = 0;
        while start.elapsed() < Duration::from_nanos(SELF_TEST_TIME_NS) {
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
            copied += COPY_BYTES;
        }
        copied as f64 / start.elapsed().as_secs_f64()
    };
    (0..SELF_TEST_TRIES).map(|_| once()).fold(0.0, f64::max)
}

/// Bytes of a trial: many operations of the smallest size, some of the largest.
const TRIAL_BYTES: u64 = 4 << 20;
/// A trial that reached its time limit must have moved at least this many bytes. Fewer bytes would give too much weight to the few calls
/// that map or open a file.
const ENOUGH_TRIAL_BYTES: u64 = 1 << 20;
/// Fewest operations of a trial.
const TRIAL_OPERATIONS: u64 = 4;
/// Longest time of a trial.
const TRIAL_TIME_NS: u64 = 2_000_000_000;

impl Measurement {
    /// Tries every job of the comparison, and leaves out those that this machine refuses.
    ///
    /// # Errors
    /// [`Failure::Refused`] with all reasons if no job is left.
    fn run_trials(&mut self) -> Result<Vec<Trial>, Failure> {
        let mut trials = self.unplaced_layers();
        trials.extend(self.try_interfaces());
        if self.is_stopped() {
            return Err(Failure::Interrupted);
        }
        self.refused = trials.iter().filter(|t| t.moved_bytes.is_err()).map(|t| t.job).collect();
        let is_left = |job: &usize| !self.refused.contains(job);
        if self.plan.study.interfaces().is_some() && self.refused.len() == trials.len() {
            let reasons = trials.iter().filter_map(|t| t.refusal.as_ref().or(t.moved_bytes.as_ref().err()));
            let mut reasons: Vec<&str> = reasons.map(String::as_str).collect();
            reasons.sort_unstable();
            reasons.dedup();
            return Err(Failure::Refused(format!("no interface works here: {}", reasons.join("; "))));
        }
        // The headline must be a job that this machine can run.
        if !is_left(&self.plan.headline) {
            self.plan.headline = (0..self.plan.jobs.len()).find(is_left).unwrap_or(0);
        }
        Ok(trials)
    }

    /// Tries every job of the comparison.
    fn try_interfaces(&self) -> Vec<Trial> {
        let Some(comparison) = self.plan.study.interfaces() else { return Vec::new() };
        self.live.step("trying every interface", self.remaining());
        let all = comparison.candidates.iter().take_while(|_| !self.is_stopped());
        let tried = all.map(|candidate| {
            self.live.tick(self.remaining());
            self.try_interface(candidate.job).unwrap_or_else(|CannotBegin { sentence, reason }| Trial {
                job: candidate.job,
                refusal: (reason != sentence).then_some(reason),
                moved_bytes: Err(sentence),
                calls: Err("the trial failed".into()),
            })
        });
        tried.collect()
    }

    /// Tries a job: how many bytes it moves, and with how many system calls.
    fn try_interface(&self, job: usize) -> Result<Trial, CannotBegin> {
        let outcomes = self.try_job(job, TRIAL_BYTES, true)?;
        let moved = moved_bytes(&outcomes)?;
        let calls = self.count_calls(job, moved, outcomes);
        Ok(Trial { job, moved_bytes: Ok(moved), refusal: None, calls })
    }

    /// Returns the number of system calls in a trial that moved `moved_bytes` bytes.
    ///
    /// # Errors
    /// Why the number is unknown.
    fn count_calls(&self, job: usize, moved_bytes: u64, outcomes: Vec<WorkerOutcome>) -> Known<u64> {
        let engine = self.only_stream(job).and_then(|stream| engines::find(&stream.engine));
        if engine.is_some_and(|engine| engine.library_threads) {
            return Err(
                "the C library makes the calls in its own threads, which fathom does not count".into()
            );
        }
        if moved_bytes < ENOUGH_TRIAL_BYTES && outcomes.iter().any(|o| o.wall_ns >= TRIAL_TIME_NS) {
            return Err(format!(
                "the trial moved only {} in {}, so calls that occur once would have too much weight",
                show_bytes(moved_bytes),
                show_ns(TRIAL_TIME_NS as f64)
            ));
        }
        outcomes
            .into_iter()
            .try_fold(0_u64, |sum, o| Ok(sum + o.system_calls.ok_or("the system calls were not counted")??))
    }

    /// Runs the first phase of a job on evicted targets, for at most [`TRIAL_TIME_NS`], and for at most `bytes` bytes or
    /// [`TRIAL_OPERATIONS`] operations, whichever is more.
    fn try_job(&self, job: usize, bytes: u64, counts_calls: bool) -> Result<Vec<WorkerOutcome>, CannotBegin> {
        let phase = self
            .plan
            .jobs
            .get(job)
            .and_then(|j| j.phases.first())
            .ok_or_else(|| "the job has no phase".to_owned())?;
        self.evict_targets(job).into_iter().next().map_or(Ok(()), Err)?;
        let specs = self
            .targets_may_be_used(phase)
            .and_then(|()| self.specs(None, phase, job, 0, usize::MAX - job, 0));
        let mut specs = specs.map_err(|e| e.message().to_owned())?;
        let workers = specs.len() as u64;
        for spec in &mut specs {
            shorten(spec, bytes, workers);
            spec.count_calls = counts_calls;
        }
        let mut workers = Workers::spawn(specs)?;
        workers.open();
        while !workers.is_done() {
            std::thread::sleep(Duration::from_millis(1));
            workers.collect(|_, _| {});
            if self.is_stopped() {
                workers.stop();
            }
            if let Some(why) = workers.find_stuck() {
                return Err(why.into());
            }
        }
        Ok(workers.finish().into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Evicts the targets of a job from the page cache. Returns the reason for each target that could not be evicted.
    pub(super) fn evict_targets(&self, job: usize) -> Vec<String> {
        let touched = self.targets.iter().enumerate().filter(|(i, _)| self.plan.jobs[job].touches(*i));
        touched.filter_map(|(_, t)| page_cache::evict(t.handle()?).err()).collect()
    }
}

/// Limits a worker to its part of a trial of `bytes` bytes or [`TRIAL_OPERATIONS`] operations, whichever is more.
fn shorten(spec: &mut WorkerSpec, bytes: u64, workers: u64) {
    let least = TRIAL_OPERATIONS * u64::from(spec.slot_bytes);
    let bytes = bytes.max(least).div_ceil(workers);
    spec.limit.bytes = Some(spec.limit.bytes.map_or(bytes, |given| given.min(bytes)));
    (spec.warmup_ns, spec.time_ns, spec.cooldown_ns) = (0, TRIAL_TIME_NS, 0);
}

/// Returns the bytes that all workers moved, or the first failure.
fn moved_bytes(outcomes: &[WorkerOutcome]) -> Known<u64> {
    let totals = || outcomes.iter().flat_map(|o| &o.totals);
    // A worker gives up after many failures. The failed operation is a better reason.
    if let Some((errno, _)) = totals().find_map(|t| t.errors.first_key_value()) {
        return Err(format!("an operation failed: {}", io::Error::from_raw_os_error(*errno)));
    }
    if let Some(why) = outcomes.iter().find_map(|o| o.error.clone()) {
        return Err(why);
    }
    if totals().any(|t| t.short > 0) {
        return Err("an operation moved fewer bytes than requested".into());
    }
    match totals().map(|t| t.bytes).sum() {
        0 => Err(format!("no operation completed in {}", show_ns(TRIAL_TIME_NS as f64))),
        bytes => Ok(bytes),
    }
}

/// Bytes written by the first probe of a write rate.
const FIRST_BYTES: u64 = 4 << 20;
/// Each further probe of a write rate writes this many times as many bytes as the one before.
const WRITE_PROBE_GROWTH: u64 = 8;
/// A probe that takes at least this long is sufficient.
const ENOUGH_TIME: Duration = Duration::from_millis(100);
/// Writes are sized for this multiple of a run's time, since the probed rate is approximate.
const RATE_MARGIN: f64 = 1.25;

impl Measurement {
    /// Limits the operations of every job in an interface comparison to the number that fits into the job's file.
    fn limit_to_targets(&mut self) {
        let Some(comparison) = self.plan.study.interfaces() else { return };
        let jobs = comparison.candidates.iter().map(|candidate| candidate.job);
        let limited: Vec<(usize, u64)> =
            jobs.filter_map(|job| Some((job, self.operations_there(self.only_stream(job)?)))).collect();
        self.limit_operations(limited);
    }

    /// Limits the writes of an interface comparison to what the storage takes in the time of a run.
    fn size_writes(&mut self) {
        let Some(comparison) = self.plan.study.interfaces() else { return };
        let mut sized: Vec<(usize, u64)> = Vec::new();
        for work in comparison.candidates.chunk_by(|a, b| a.work == b.work) {
            let mut jobs = work.iter().map(|c| c.job).filter(|job| !self.refused.contains(job));
            let Some(stream) = work.first().and_then(|first| self.only_stream(first.job)) else { continue };
            if !stream.access.writes() || self.is_stopped() {
                continue;
            }
            let there = self.operations_there(stream);
            let most_bytes = there.saturating_mul(block_bytes(stream));
            if let Some(rate) = jobs.find_map(|job| self.written_per_s(job, most_bytes)) {
                let operations = self.operations_in_a_run(stream, rate).min(there);
                sized.extend(work.iter().map(|candidate| (candidate.job, operations)));
            }
        }
        self.limit_operations(sized);
    }

    fn limit_operations(&mut self, of_jobs: Vec<(usize, u64)>) {
        for (job, operations) in of_jobs {
            for stream in self.plan.jobs.get_mut(job).into_iter().flat_map(Job::streams_mut) {
                stream.limit.operations = Some(operations);
            }
        }
    }

    fn only_stream(&self, job: usize) -> Option<&Stream> {
        self.plan.jobs.get(job)?.streams().next()
    }

    /// Number of operations that fit into the stream's span on its smallest target: all blocks for sequential access, half of the blocks
    /// for random access.
    fn operations_there(&self, stream: &Stream) -> u64 {
        let access = &stream.access;
        let targets = stream.targets.iter().filter_map(|at| self.targets.get(*at));
        let bytes = targets.map(|ready| ready.bytes().saturating_sub(access.offset_bytes)).min().unwrap_or(0);
        let blocks = bytes.min(access.span_bytes) / block_bytes(stream);
        if access.pattern() == Some(Pattern::Sequential) { blocks.max(1) } else { (blocks / 2).max(1) }
    }

    /// Returns how many operations of a stream fit into the time of a run at this rate.
    fn operations_in_a_run(&self, stream: &Stream, bytes_per_s: f64) -> u64 {
        let ns = self.plan.jobs.first().and_then(|job| job.phases.first()).map_or(0, |phase| phase.time_ns);
        let bytes = RATE_MARGIN * bytes_per_s * ns as f64 / 1e9;
        (bytes as u64 / block_bytes(stream)).max(1)
    }

    /// Bytes per second that a job writes and syncs, with at most `most_bytes`; `None` if it failed.
    fn written_per_s(&self, job: usize, most_bytes: u64) -> Option<f64> {
        let mut bytes = FIRST_BYTES.min(most_bytes);
        loop {
            let outcomes = self.try_job(job, bytes, false).ok()?;
            let written = moved_bytes(&outcomes).ok()?;
            let synced = Instant::now();
            for ready in self.only_stream(job)?.targets.iter().filter_map(|at| self.targets.get(*at)) {
                ready.handle()?.sync_data().ok()?;
            }
            let wall = outcomes.iter().map(|outcome| outcome.wall_ns).max()?;
            let took = Duration::from_nanos(wall) + synced.elapsed();
            if took >= ENOUGH_TIME || bytes >= most_bytes || self.is_stopped() {
                return Some(written as f64 / took.as_secs_f64().max(1e-9));
            }
            bytes = bytes.saturating_mul(WRITE_PROBE_GROWTH).min(most_bytes);
        }
    }
}

fn block_bytes(stream: &Stream) -> u64 {
    u64::from(stream.access.largest_bytes()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::job::{Access, Pattern};

    #[test]
    fn the_self_test_measures_a_simulated_engine_exactly() {
        let (clock, _) = Clock::calibrate(true);
        let access = Access { span_bytes: SPAN_BYTES, ..Access::plain(Pattern::Random, 4096, 100) };
        for depth in [1, 4, 32] {
            let shape = closed_loop(&Stream::plain(access.clone(), depth, 1, "sim"));
            let found = ns_per_op(&shape, "sim", Options::new(), &Payloads::default(), clock);
            assert_eq!(found, Ok(100_000.0 / f64::from(depth)), "depth {depth}");
        }
    }
}
