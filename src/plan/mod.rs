//! Planning: turns a request and the machine's facts into a plan with every setting resolved. Nothing is measured or
//! written.
//!
//! 1. The work of the request becomes jobs: from flags or a file, per test of a profile, per layer, interface or grid
//!    cell.
//! 2. Each stream is drafted with its defaults and checked; `Origins` records where every setting came from.
//! 3. Targets are found, sized and guarded; operations are fitted to them.
//! 4. Settings of the whole plan follow: runs, conditions, preconditioning, memory limits, seed, time budget.
//!
//! Jobs of an earlier session can be added (`--against`) or continued (`sweep --resume`). Added jobs alternate with the new ones within the
//! same minutes, so they differ by the change alone. The earlier results also differ because the machine has aged, filled up and been
//! updated since.

mod api;
mod budget;
mod engine;
mod layers;
mod limit;
pub(crate) mod origins;
mod profile;
mod replay;
pub(crate) mod settings;
pub(crate) mod stream;
mod study;
mod sweep;
mod target;

use crate::failure::Failure;
use crate::request::{BenchSpec, JobSource, Request, Work};
use crate::{history, session};
use ::engine::engines::Entry;
use analysis::Judging;
pub(crate) use engine::{engine_names, find_problems};
use machine::cgroup::MemoryLimit;
use machine::root::Root;
use model::evidence::FileState;
use model::job::{Access, Job, Order, Phase, Stream};
use model::plan::{BaselineSession, MAKING_NS, Plan, Planned, Role, Strategy, Target};
use model::record::Record;
use model::report::Report;
use model::spec::number::MAX_TIME_NS;
use model::spec::{JobSpec, PhaseSpec, StreamSpec};
use model::study::{HostSteps, Study};
use model::units::{show_bytes, show_counted, show_ns};
use model::{Known, name};
use origins::Origins;
use std::os::unix::fs::MetadataExt;
use study::{Schedule, Timing, study_plan};
use target::Targets;

/// Window and warm-up of each run of `bench` and `layers`: eight tests, five times, take about a minute and a half.
const BENCH_TIMES: Times = Times { window_ns: 1_500_000_000, warmup_ns: 250_000_000 };
/// Window and warm-up of each run of `run`. The jobs of `sweep` and `api` have their own windows.
const RUN_TIMES: Times = Times { window_ns: 3_000_000_000, warmup_ns: 250_000_000 };
/// The buffers of a job may take at most the machine's memory divided by this.
const BUFFER_SHARE: u64 = 2;
/// Memory of fathom itself while it measures, without workers and buffers: 9 MiB were measured in a cgroup.
const OWN_BYTES: u64 = 12 << 20;
/// Memory of a worker besides its buffers: 0.2 MiB were measured.
const WORKER_BYTES: u64 = 256 << 10;
/// Memory overhead of buffers: their size divided by this. With 64 MiB of buffers, fathom was killed at a limit of 80 MiB; 32 buffers of 4
/// KiB ran in 16 MiB.
const SPARE_SHARE: u64 = 16;
/// Slots begin at pages, and the memory of a worker's slots is a multiple of huge pages.
const PAGE_BYTES: u64 = 4096;
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// Makes a plan.
///
/// # Errors
/// [`Failure::Usage`] for impossible requests, [`Failure::Refused`] if this machine or its settings do not allow the request.
pub fn plan(request: &Request) -> Result<Planned, Failure> {
    let root = Root::real();
    let mut machine = machine::host::read_host(&root);
    let memory = machine.memory_bytes.as_ref().ok().copied();
    let denial = engine::find_denial(&machine).map(str::to_owned);
    let denial = denial.as_deref();
    let mut origins = Origins::new(request);
    let Jobs { specs, mut headline, mut study, schedule } =
        make_jobs(request, &root, memory, denial, &mut origins)?;
    let drafts = specs.iter().map(|spec| draft_job(request, spec, &mut origins));
    let mut drafts = drafts.collect::<Result<Vec<DraftJob>, _>>()?;
    if let Some(host_steps) = plan_host_steps(request, &mut drafts, &mut origins)? {
        headline = Some(drafts.len() - 1);
        study = host_steps.into();
    }
    if let Some(latency_target) = limit::add_open_loop(request, &mut drafts, &mut origins)? {
        study = latency_target.into();
    }
    engine::replace_denied(request, &mut drafts, denial, &mut origins)?;
    let mut targets = Targets::new(request, &root);
    let jobs: Result<Vec<Job>, Failure> =
        drafts.into_iter().map(|job| targets.assign_targets(job, &mut origins)).collect();
    targets.refuse_not_named()?;
    let mut jobs = jobs?;
    let is_quick = matches!(request.work, Work::Profile(BenchSpec { quick: true, .. }));
    let (runs, strategy) = if is_quick {
        origins.record("--runs", "1", "--quick");
        (1, Strategy::Fixed)
    } else {
        study_plan(&study).repeats(request, schedule.map(|s| s.runs), &mut origins)
    };
    let fail_if =
        settings::check_conditions(&request.job, &jobs, |c| study_plan(&study).check(c), &mut origins)?;
    let fail_if_slower = settings::check_slower(request, &mut origins)?;
    let against = request
        .against
        .as_deref()
        .map(|word| append_baseline_jobs(word, strategy, denial, &mut jobs, &mut targets, &mut origins));
    let against = against.transpose()?;
    let (mut targets, places) = targets.finish(&mut jobs, study.has_separate_jobs())?;
    target::mark_unseen_users(request, &mut targets, &mut origins)?;
    let op_log = settings::plan_op_log(&request.job, &mut jobs, &mut origins)?;
    let precondition = settings::plan_precondition(request, &jobs, &targets, denial, &mut origins)?;
    check_memory(&jobs, memory)?;
    if let Some(limit) = machine::cgroup::tightest_memory_limit(&root) {
        check_memory_limit(&jobs, &limit)?;
    }
    let is_touched = targets.iter().any(|t| t.role != Role::None);
    let cold = is_cold(request, &jobs, &targets, &study, strategy, &mut origins);
    let is_foreign = request.job.typed.is_some() || request.is_of_other_tool();
    let (seed, seed_again) = choose_seed(request.job.seed, &jobs, &targets, is_foreign, cold, &mut origins);
    let expect_device = request.expect_device.as_deref().map(find_device_name).transpose()?;
    origins.note("--expect-device", expect_device.as_ref(), |name| (*name).clone());
    machine.places.extend(places);
    let baseline_ns = if is_touched { settings::idle_watch_ns(request, &mut origins) } else { 0 };
    let timing = Timing { request, jobs: &jobs, runs, strategy, baseline_ns, schedule };
    let budget_ns = study_plan(&study).budget_ns(&timing, &mut origins)?;
    let plan = Plan {
        command: request.command.clone(),
        title: make_title(request),
        targets,
        jobs,
        headline: headline.unwrap_or(0),
        runs,
        strategy,
        attempts: if is_quick { 1 } else { settings::choose_attempts(&request.job, &mut origins) },
        fail_if,
        fail_if_slower,
        seed,
        seed_again,
        cold,
        baseline_ns,
        making_ns: schedule.map_or(if is_quick { profile::MAKING_NS } else { MAKING_NS }, |s| s.making_ns),
        quick_ns: is_quick.then_some(profile::ROWS_UNTIL_NS),
        budget_ns,
        origins: origins.all,
        injected_fault: request.injected_fault,
        expect_device,
        against,
        study,
        precondition,
        op_log,
        typed: request.job.typed.clone(),
        fleet_rank: None,
    };
    Ok(Planned { plan, machine })
}

/// Whether targets are evicted from the page cache before each run. Records the origin of this
/// choice.
fn is_cold(
    request: &Request,
    jobs: &[Job],
    targets: &[Target],
    study: &Study,
    strategy: Strategy,
    origins: &mut Origins,
) -> bool {
    // By default, nothing is evicted if the page cache serves a file of the user.
    let is_direct = jobs.iter().flat_map(Job::streams).all(|s| s.cache.is_direct());
    let usual = is_direct || study.starts_cold() || targets.iter().all(|t| t.role != Role::File);
    let is_touched = targets.iter().any(|t| t.role != Role::None);
    let cold = is_touched && request.job.cold.unwrap_or(usual);
    let words = match strategy {
        _ if !cold => "no: not evicted from the page cache",
        Strategy::Steady { .. } => {
            "yes: evicted before the first round of each job; its rounds follow without a pause"
        }
        _ if study.layers().is_some() => {
            "yes: evicted before each run, and read completely before buffered reads"
        }
        _ => "yes: evicted before each run",
    };
    let from = if request.job.cold.is_some() { request.origin("cold") } else { "target and --cache".into() };
    origins.record("cold", words, &from);
    cold
}

fn make_title(request: &Request) -> String {
    match (&request.work, &request.source) {
        (Work::Profile(given), _) => {
            let quick = if given.quick { ", quick" } else { "" };
            format!("bench {}{quick}", given.chosen().name)
        }
        (Work::Layers, _) => "layers".into(),
        (Work::Limit(_), _) => "limit".into(),
        (Work::Sweep(given), _) => {
            given.preset.map_or_else(|| "sweep".into(), |p| format!("sweep {}", p.name))
        }
        (Work::Api(_), _) => "api".into(),
        (Work::Job, None) => "run".into(),
        (Work::Job, Some(JobSource::File(file, _) | JobSource::Capture(file))) => {
            format!("run {}", name::text(file))
        }
        (Work::Job, Some(source)) => source.name(),
    }
}

/// The kernel's name of a device given by a path, which may be a link such as those in /dev/disk. A word without a slash
/// is a name or a serial number and returned unchanged.
fn find_device_name(given: &str) -> Result<String, Failure> {
    if given.trim().is_empty() {
        return Err(Failure::Usage("--expect-device has no name; type a device such as nvme0n1".into()));
    }
    if !given.contains('/') {
        return Ok(given.to_owned());
    }
    let path = std::fs::canonicalize(given)
        .map_err(|e| Failure::Usage(format!("--expect-device {given}: {e}; `lsblk` lists the devices")))?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    name.ok_or_else(|| {
        Failure::Usage(format!("--expect-device {given} is not a device; type one such as nvme0n1"))
    })
}

/// The jobs of a request, and how they relate.
#[derive(Default)]
struct Jobs {
    /// The jobs in the order of the plan.
    specs: Vec<JobSpec>,
    /// Index of the headline's job, if it is not the first.
    headline: Option<usize>,
    /// The question that the jobs answer together.
    study: Study,
    /// How `fathom api` divides its time; `None` for any other command.
    schedule: Option<Schedule>,
}

/// Turns the request into jobs: one from flags or a file, or one per test of a profile, layer of a place, cell of a grid, or interface.
fn make_jobs(
    request: &Request,
    root: &Root,
    memory: Option<u64>,
    denial: Option<&str>,
    origins: &mut Origins,
) -> Result<Jobs, Failure> {
    let (jobs, defined_by_jobs) = match &request.work {
        Work::Profile(given) if given.compare => {
            return profile::compared_targets_jobs(request, given, root, origins);
        }
        Work::Profile(given) => return profile::profile_jobs(request, given, root, origins),
        Work::Job | Work::Limit(_) => {
            return Ok(Jobs { specs: vec![request.job.clone()], ..Jobs::default() });
        }
        Work::Layers => (layers::layer_jobs(request, root, denial, origins)?, layers::OF_LAYERS),
        Work::Sweep(given) => {
            (sweep::grid_jobs(request, given, root, memory, denial, origins)?, sweep::OF_CELLS)
        }
        Work::Api(given) => {
            (api::interface_jobs(request, given, root, memory, denial, origins)?, api::OF_INTERFACES)
        }
    };
    origins.leave_out(defined_by_jobs);
    Ok(jobs)
}

#[derive(Clone)]
struct DraftJob {
    name: String,
    phases: Vec<DraftPhase>,
}

/// A phase before the targets of its streams are known.
#[derive(Clone)]
struct DraftPhase {
    /// The times of the phase, without streams.
    phase: Phase,
    drafts: Vec<Draft>,
}

fn draft_job(request: &Request, spec: &JobSpec, origins: &mut Origins) -> Result<DraftJob, Failure> {
    let is_several = spec.phases.len() > 1 || spec.phases.iter().any(|p| p.streams.len() > 1);
    let mut phases = Vec::new();
    for (at, phase) in spec.phases.iter().enumerate() {
        let mut drafts = Vec::new();
        for (index, stream) in phase.streams.iter().enumerate() {
            let mut stream = stream::resolve_read_back(spec, at, stream)?;
            let replay = replay::from_capture(&mut stream)?;
            let number = || format!("phase {} stream {}", at + 1, index + 1);
            let name = || stream.name.clone().unwrap_or_else(number);
            origins.enter(&if is_several { name() } else { String::new() });
            let mut draft = stream::draft(&stream, origins)?;
            if let Some(replay) = replay {
                replay::apply_capture(request, replay, &mut draft, origins)?;
            }
            drafts.push(draft);
        }
        origins.enter(&if spec.phases.len() > 1 { format!("phase {}", at + 1) } else { String::new() });
        let phase = resolve_times(request, phase, &drafts, origins)?;
        origins.enter("");
        phases.push(DraftPhase { phase, drafts });
    }
    let stem = request.source.as_ref().map(JobSource::stem);
    let name = match (&spec.name, stem, phases.first().and_then(|p| p.drafts.first())) {
        (Some(name), ..) => name.clone(),
        (None, Some(stem), _) => stem,
        (None, None, Some(first)) => {
            let Stream { depth, workers, .. } = first.stream;
            format!("{} Q{depth}T{workers}", first.stream.describe())
        }
        (None, None, None) => String::new(),
    };
    Ok(DraftJob { name, phases })
}

/// Default lengths of the window and the warm-up of a run.
#[derive(Clone, Copy)]
struct Times {
    window_ns: u64,
    warmup_ns: u64,
}

/// Resolves the window, warm-up and cool-down of a phase.
fn resolve_times(
    request: &Request,
    spec: &PhaseSpec,
    drafts: &[Draft],
    origins: &mut Origins,
) -> Result<Phase, Failure> {
    let default = match request.work {
        Work::Profile(given) if given.compare && profile::is_timed(request) => profile::COMPARED_TIMES,
        Work::Profile(given) if given.quick => profile::quick_times(given.chosen())?,
        Work::Profile(_) | Work::Layers => BENCH_TIMES,
        // The cells of a sweep have set their own times in the spec.
        Work::Job | Work::Sweep(_) => RUN_TIMES,
        Work::Limit(_) => limit::TIMES,
        // The jobs have set their own windows in the spec. They have no warm-up, because the files are not in the page cache.
        Work::Api { .. } => Times { warmup_ns: 0, ..RUN_TIMES },
    };
    if drafts.iter().any(|d| d.stream.reads_back().is_some()) {
        // The phase must be long enough to read back all writes, and its window must include every read.
        origins.record("--time", &show_ns(MAX_TIME_NS as f64), "ends when all data are read");
        return Ok(Phase { warmup_ns: 0, time_ns: MAX_TIME_NS, cooldown_ns: 0, streams: Vec::new() });
    }
    let is_limited = |d: &Draft| !d.stream.limit.is_none() || d.spec.passes.is_some();
    // A stream that ends after a number of operations or bytes needs no time limit and no warm-up: the window has all of its operations.
    let is_api = matches!(request.work, Work::Api { .. });
    let ends_by_count = !is_api && !drafts.is_empty() && drafts.iter().all(is_limited);
    let (default, from) = if ends_by_count {
        (Times { window_ns: MAX_TIME_NS, warmup_ns: 0 }, "ends at its limit of operations, bytes or time")
    } else {
        (default, "default")
    };
    let words = |ns: &u64| show_ns(*ns as f64);
    let time_ns = origins.choose_from("--time", spec.time, default.window_ns, from, words);
    let warmup_ns = origins.choose_from("--warmup", spec.warmup, default.warmup_ns, from, words);
    let cooldown_ns = spec.cooldown.unwrap_or(0);
    origins.note("--cooldown", spec.cooldown, words);
    if let Some(late) = drafts.iter().find(|d| d.stream.delay_ns >= warmup_ns + time_ns) {
        return Err(Failure::Usage(format!(
            "--delay {}: the phase is over after {}; use a smaller --delay or a larger --time",
            show_ns(late.stream.delay_ns as f64),
            show_ns((warmup_ns + time_ns) as f64)
        )));
    }
    Ok(Phase { warmup_ns, time_ns, cooldown_ns, streams: Vec::new() })
}

/// Refuses buffers that would make the machine swap.
fn check_memory(jobs: &[Job], memory: Option<u64>) -> Result<(), Failure> {
    let Some(memory) = memory else { return Ok(()) };
    for job in jobs {
        for phase in &job.phases {
            let buffer_bytes =
                |s: &Stream| s.total_depth().saturating_mul(u64::from(s.access.largest_bytes()));
            let needed: u64 = phase.streams.iter().map(buffer_bytes).fold(0, u64::saturating_add);
            if needed > memory / BUFFER_SHARE {
                return Err(Failure::Usage(format!(
                    "{}: the buffers would take {}, which is more than half of this machine's {} of memory; use a smaller --bs, --depth or --workers",
                    job.name,
                    show_bytes(needed),
                    show_bytes(memory)
                )));
            }
        }
    }
    Ok(())
}

/// Refuses a job whose buffers do not fit into the memory limit of a cgroup: the kernel would kill fathom while it prepares.
fn check_memory_limit(jobs: &[Job], limit: &MemoryLimit) -> Result<(), Failure> {
    for (job, phase) in jobs.iter().flat_map(|job| job.phases.iter().map(move |phase| (job, phase))) {
        let needed = phase.streams.iter().map(memory_bytes_of).fold(OWN_BYTES, u64::saturating_add);
        if needed > limit.room_bytes() {
            let others = match limit.used_bytes {
                0 => String::new(),
                used => format!(", of which other processes use {}", show_bytes(used)),
            };
            return Err(Failure::Refused(format!(
                "{}: it needs {} of memory for its buffers and fathom itself, and {} allows {}{others}; use a smaller --bs, \
                 --depth or --workers, or raise that limit",
                job.name,
                show_bytes(needed),
                limit.file,
                show_bytes(limit.bytes)
            )));
        }
    }
    Ok(())
}

/// Memory of a stream's workers in bytes: for each worker its buffers, in whole huge pages if the engine uses targets, and its own memory.
fn memory_bytes_of(stream: &Stream) -> u64 {
    let workers = u64::from(stream.workers.max(1));
    let uses_targets = ::engine::engines::find(&stream.engine).is_some_and(|entry| entry.touches_targets());
    let slots = if uses_targets { stream.total_depth().div_ceil(workers) } else { 1 };
    let slot = u64::from(stream.buffer_bytes()).next_multiple_of(PAGE_BYTES);
    let buffers = slots.saturating_mul(slot);
    let buffers = if uses_targets {
        buffers.checked_next_multiple_of(HUGE_PAGE_BYTES).unwrap_or(u64::MAX)
    } else {
        buffers
    };
    let with_spare = buffers.saturating_add(buffers / SPARE_SHARE);
    workers.saturating_mul(with_spare.saturating_add(WORKER_BYTES))
}

/// Adds the jobs of the session named `word` that match a job of this request
/// ([`find_matching_jobs`]).
///
/// # Errors
/// [`Failure::Usage`] if none match, or their targets are missing or different.
fn append_baseline_jobs(
    word: &str,
    strategy: Strategy,
    denial: Option<&str>,
    jobs: &mut Vec<Job>,
    targets: &mut Targets,
    origins: &mut Origins,
) -> Result<BaselineSession, Failure> {
    let fail = |why: &str| Failure::Usage(format!("--against {word}: {why}"));
    if matches!(strategy, Strategy::Steady { .. }) {
        return Err(fail(
            "the two sides alternate, which --until steady does not allow; leave --against or --until out",
        ));
    }
    let file = history::find_session(word)?;
    let record = session::read(&file)?;
    let old = &record.header.plan;
    if !old.study.can_be_rerun() {
        return Err(fail(&format!(
            "that session is of `{}`, whose jobs cannot be measured separately; name a session of run or bench",
            old.title
        )));
    }
    let own = old.against.as_ref().map_or(old.jobs.len(), |a| a.first_job.min(old.jobs.len()));
    let matching_jobs = find_matching_jobs(jobs, old.jobs.get(..own).unwrap_or_default());
    if matching_jobs.is_empty() {
        let names = |jobs: &[Job]| jobs.iter().map(|j| j.name.clone()).collect::<Vec<_>>().join(", ");
        return Err(fail(&format!(
            "none of the workloads of that session ({}) is a workload of this command ({}); name a session with the same workloads",
            names(&old.jobs),
            names(jobs)
        )));
    }
    let first_job = jobs.len();
    for index in &matching_jobs {
        jobs.push(renumber_targets(&record, &old.jobs[*index], denial, targets).map_err(
            |why| match why {
                Failure::Usage(why) => fail(&why),
                other => other,
            },
        )?);
    }
    let headline = matching_jobs.iter().position(|index| *index == old.headline).unwrap_or(0);
    let session = history::session_id(&file);
    let workloads = show_counted(matching_jobs.len() as u64, "workload");
    let words = format!("{workloads} of {session} again, alternating");
    origins.note("--against", Some(words), Clone::clone);
    let mut baseline_report = judge_baseline(&record, &file);
    baseline_report.results.retain(|r| jobs[first_job..].iter().any(|j| j.name == r.job.name));
    Ok(BaselineSession {
        session,
        first_job,
        headline: first_job + headline,
        earlier_report: Box::new(baseline_report),
    })
}

/// Indices of the earlier jobs to measure again. If both sessions have a single job, the job of the earlier session; otherwise the jobs
/// that have the name of a current job.
fn find_matching_jobs(now: &[Job], earlier: &[Job]) -> Vec<usize> {
    if let ([_], [_]) = (now, earlier) {
        return vec![0];
    }
    (0..earlier.len()).filter(|index| now.iter().any(|j| j.name == earlier[*index].name)).collect()
}

/// Returns an earlier job with the target indices of this plan.
fn renumber_targets(
    record: &Record,
    job: &Job,
    denial: Option<&str>,
    targets: &mut Targets,
) -> Result<Job, Failure> {
    let earlier_targets = &record.header.plan.targets;
    let mut job = job.clone();
    for stream in job.streams_mut() {
        if ::engine::engines::find(&stream.engine).is_none() {
            return Err(Failure::Usage(format!(
                "that session used the engine {}, which this fathom does not have; name a session with another engine",
                stream.engine
            )));
        }
        if let Some(cause) = denial.filter(|_| stream.engine == engine::WANTED) {
            return Err(Failure::Usage(format!(
                "that session used io_uring, which cannot be used now ({cause}), and another engine would be a different workload; name a session with --engine libaio"
            )));
        }
        let mut found = Vec::new();
        for index in &stream.targets {
            let was = earlier_targets
                .get(*index)
                .ok_or_else(|| Failure::Usage("its record names no target".into()))?;
            let place = record.header.hosts.first().and_then(|h| h.places.get(*index));
            found.push(targets.find_or_add_earlier(was, place, stream)?);
        }
        stream.targets = found;
    }
    Ok(job)
}

/// Judges the baseline session. Leaves out the long time series.
fn judge_baseline(record: &Record, file: &std::path::Path) -> Report {
    let judging = Judging {
        session: Some(model::name::text(file)),
        version: env!("CARGO_PKG_VERSION").into(),
        ..Judging::default()
    };
    let mut report = analysis::judge(record, &judging);
    report.results.iter_mut().for_each(|r| r.series.clear());
    report
}

/// Plans the rest of a sweep from its own command line. Returns the plan, and whether the session
/// remains in the history.
///
/// # Errors
/// A usage failure if the session has several hosts, or if the same options mean something else today.
pub fn resume_plan(word: &str, mut request: Request, before: &Record) -> Result<(Planned, bool), Failure> {
    let refuse = |why: &str| Failure::Usage(format!("--resume {word}: {why}"));
    let old = &before.header.plan;
    if let Some(part) = old.fleet_rank {
        return Err(refuse(&format!(
            "it was measured on {} hosts, and one host cannot continue it; start a new sweep",
            part.hosts
        )));
    }
    // Use the recorded seed, in case it came from the clock.
    request.job.seed = Some(old.seed);
    request.flags.push("seed");
    let Planned { mut plan, machine } = plan(&request)?;
    // The sweep continues after the offsets already drawn, and repeats none.
    plan.seed_again = None;
    let what = if plan.targets != old.targets {
        "its target has changed, or the sweep was started in another directory; change to that directory, or start a new sweep"
    } else if plan.jobs != old.jobs || plan.study != old.study {
        "the same command line would measure other cells now, perhaps because the file system or the version of fathom has changed; start a new sweep"
    } else {
        return Ok((Planned { plan, machine }, request.keep));
    };
    Err(refuse(what))
}

/// Returns the seed, and the previous session on one of the targets if that session drew the same
/// offsets ([`model::plan::Plan::seed_again`]).
///
/// Two sessions draw the same offsets only if seed, file and accesses are equal: another span or operation size gives
/// other offsets, and a new file has other blocks.
fn choose_seed(
    typed: Option<u64>,
    jobs: &[Job],
    targets: &[Target],
    is_foreign: bool,
    is_cold: bool,
    origins: &mut Origins,
) -> (u64, Option<Known<String>>) {
    let from_clock = jiff::Timestamp::now().as_nanosecond() as u64 >> 10;
    let seed = origins.choose_from("--seed", typed, from_clock, "the clock", u64::to_string);
    // A file made by fathom is new each time, and the clock never gives the same seed twice.
    let keeps_blocks =
        |(_, t): &(usize, &Target)| typed.is_some() && matches!(t.role, Role::File | Role::Device);
    // diskspd and fio use the same seed in each invocation by default. This is harmless if the page
    // cache has none of the blocks.
    if is_foreign && (is_cold || jobs.iter().flat_map(Job::streams).all(|s| s.cache.is_direct())) {
        return (seed, None);
    }
    let seed_again = targets.iter().enumerate().filter(keeps_blocks).find_map(|(index, target)| {
        match history::last_session_on(&target.path) {
            Ok(Some((id, before))) => draws_again(seed, jobs, index, target, &before).then_some(Ok(id)),
            Ok(None) => None,
            Err(why) => Some(Err(why.message().to_owned())),
        }
    });
    (seed, seed_again)
}

/// Whether every stream with random offsets on a target draws the same offsets as in an earlier
/// session.
fn draws_again(seed: u64, jobs: &[Job], index: usize, target: &Target, before: &Record) -> bool {
    let plan = &before.header.plan;
    let Some(at) = plan.targets.iter().position(|t| t.path == target.path) else { return false };
    let (now, then) = (random_accesses(jobs, index), random_accesses(&plan.jobs, at));
    plan.seed == seed && !now.is_empty() && now == then && is_same_file(target, before, at)
}

/// The random accesses of a target, each with the indices that its random numbers depend on.
fn random_accesses(jobs: &[Job], target: usize) -> Vec<((usize, usize, usize), &Access)> {
    let mut out = Vec::new();
    for (job, of_job) in jobs.iter().enumerate() {
        for (phase, index, stream) in of_job.numbered_streams() {
            let draws = stream.access.lines.iter().any(|l| !matches!(l.order, Order::Sequential(_)));
            if draws && stream.targets.contains(&target) {
                out.push(((job, phase, index), &stream.access));
            }
        }
    }
    out
}

/// Whether a target is still the file or device that a session measured. Compares inodes of files, because a
/// path may lead to a new file.
fn is_same_file(target: &Target, before: &Record, at: usize) -> bool {
    let seen = before.runs.iter().flat_map(|r| &r.evidence).find_map(|s| s.targets.get(at)?.file.as_ref());
    match (target.role, seen) {
        (Role::File, Some(Ok(FileState { device, inode, .. }))) => {
            std::fs::metadata(name::path(&target.path))
                .is_ok_and(|now| (now.dev(), now.ino()) == (*device, *inode))
        }
        _ => before.header.plan.targets[at].identity == target.identity,
    }
}

/// Repeats the job for each number of hosts (`--hosts 1,2,4`); `None` without that option.
///
/// # Errors
/// If the job has no single rate to compare.
fn plan_host_steps(
    request: &Request,
    drafts: &mut Vec<DraftJob>,
    origins: &mut Origins,
) -> Result<Option<HostSteps>, Failure> {
    if request.hosts.is_empty() {
        return Ok(None);
    }
    let [job] = drafts.as_slice() else {
        return Err(Failure::Usage("--hosts requires a single job; name one".into()));
    };
    let streams: usize = job.phases.iter().map(|phase| phase.drafts.len()).sum();
    if streams != 1 {
        return Err(Failure::Usage(format!(
            "--hosts requires a single stream, and {} has {streams}; measure them one by one",
            job.name
        )));
    }
    let job_on = |hosts: &u32| DraftJob {
        name: format!("{} on {hosts} {}", job.name, if *hosts == 1 { "host" } else { "hosts" }),
        ..job.clone()
    };
    *drafts = request.hosts.iter().map(job_on).collect();
    let words: Vec<String> = request.hosts.iter().map(u32::to_string).collect();
    origins.record("--hosts", &format!("{}, in turns", words.join(", ")), "command line");
    Ok(Some(HostSteps { hosts: request.hosts.clone() }))
}

/// A stream before its targets are known.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) stream: Stream,
    pub(crate) engine: &'static Entry,
    /// The typed span in bytes, or the span that a replay into a new file needs; otherwise `None`. With `turns`, it covers the spans of all
    /// turns.
    pub(crate) size: Option<u64>,
    /// The settings that the user typed.
    pub(crate) spec: StreamSpec,
}

/// Explains why preconditioning is not allowed to write a target that the job itself only reads.
pub(super) fn explain_refusal(why: Failure) -> Failure {
    let with = |text: String| format!("--precondition overwrites the target before it is measured: {text}");
    match why {
        Failure::Usage(text) => Failure::Usage(with(text)),
        Failure::Refused(text) => Failure::Refused(with(text)),
        other @ (Failure::Pointed { .. } | Failure::Interrupted | Failure::Elsewhere(_)) => other,
    }
}

#[test]
fn buffers_are_refused_that_do_not_fit_into_the_memory_limit_of_a_cgroup() {
    use model::job::{Access, Pattern};
    let limit = |mib: u64| MemoryLimit { file: "/cg/memory.max".into(), bytes: mib << 20, used_bytes: 0 };
    let jobs = |block: u32, workers: u32, depth: u32| {
        let mut stream = Stream::plain(Access::plain(Pattern::Random, block, 0), depth, workers, "io_uring");
        stream.workers = workers;
        let phase = Phase { warmup_ns: 0, time_ns: 1, cooldown_ns: 0, streams: vec![stream] };
        [Job { name: "reads".into(), phases: vec![phase] }]
    };
    // Measured memory limits in MiB: one at which the kernel killed fathom, and one at which it ran.
    for (block, workers, depth, killed, ran) in
        [(1 << 20, 1, 64, 80, 96), (4096, 64, 1, 128, 180), (4096, 1, 32, 8, 16), (1 << 20, 1, 128, 128, 160)]
    {
        let jobs = jobs(block, workers, depth);
        let refused = check_memory_limit(&jobs, &limit(killed));
        assert!(
            refused.is_err_and(|why| why.message().contains("/cg/memory.max")),
            "{block} {workers} {depth}"
        );
        assert!(check_memory_limit(&jobs, &limit(ran)).is_ok(), "{block} {workers} {depth}");
    }
}
