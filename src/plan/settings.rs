//! Settings of the whole plan.
//!
//! - Runs: `--runs`, `--precision`, `--until`, `--settle`, `--max-runs`, `--attempts`, and time budgets. Crate `model`
//!   checks which of them fit together, crate `analysis` decides while measuring.
//! - `fathom limit`: the open loop for a closed one, with enough slots for a long tail at the capacity.
//! - Preconditioning, conditions (`--fail-if`, `--fail-if-slower`), the operation log, and the idle watch.

use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::plan::{DraftJob, explain_refusal, profile, refuse_short, streams};
use crate::request::{BenchSpec, JobSource, Request, Work};
use analysis::strategy::cost::run_ns;
use analysis::strategy::sweep::FRESH;
use engine::engines;
use engine::engines::Entry;
use model::job::{Access, Arrivals, Cache, Job, Kind, Pace, Pattern, Stream};
use model::plan::{LatencyTarget, Precondition, Role, Strategy, Target};
use model::spec::axes::Preset;
use model::spec::number::{ATTEMPTS, FEWEST_GATED_RUNS, FEWEST_ROUNDS, MAX_RUNS};
use model::spec::parsers::of_arrivals;
use model::spec::{JobSpec, Until};
use model::study::Study;
use model::units::{MIB, minutes, parse_duration_ns, show_block, show_bytes, show_ns};
use model::verdict::{Condition, Limit, Slower};

/// Default runs of a headline: the fewest with a useful confidence interval.
const RUNS: u32 = 5;
/// Runs of each load of `limit`. It measures more if they disagree.
const LIMIT_RUNS: u32 = 3;
/// Default runs of each cell in an exhaustive search: the fewest with an interval.
pub(super) const CELL_RUNS: u32 = 3;
/// Limit of `--settle` as a multiple of the first runs.
const SETTLED_WITHIN: u32 = 10;
/// Rounds after which an unsteady device is given up, as in the SNIA specification.
const ROUNDS: u32 = 25;

/// The minimum number of runs, and the strategy that decides about more. `by_budget` is the number that the budget of
/// `fathom api` allows.
pub(super) fn repeats(
    study: &Study,
    request: &Request,
    is_quick: bool,
    by_budget: Option<u32>,
    origins: &mut Origins,
) -> (u32, Strategy) {
    if is_quick {
        origins.fixed("--runs", "1", "--quick");
        return (1, Strategy::Fixed);
    }
    let spec = &request.job;
    let mut choose = |default| origins.choose("--runs", spec.runs, default, u32::to_string);
    match study {
        Study::Limit(target) => (choose(LIMIT_RUNS), Strategy::Limit(*target)),
        // The runs of a cell are recorded along with its time.
        Study::Sweep(_) => (spec.runs.unwrap_or(CELL_RUNS), Strategy::Fixed),
        Study::Interfaces(_) if spec.gates_a_percentile() => runs_of_jobs(request, origins),
        Study::Interfaces(_) => {
            let runs = by_budget.unwrap_or(RUNS);
            (origins.choose_from("--runs", spec.runs, runs, "--budget", u32::to_string), Strategy::Fixed)
        }
        Study::Targets(comparison) if profile::is_timed(request) => {
            let (default, from) = first_runs(spec);
            let runs = origins.choose_from("--runs", spec.runs, default, from, u32::to_string);
            (runs, Strategy::Targets(comparison.layout()))
        }
        Study::Jobs
        | Study::Layers(_)
        | Study::Profile(_)
        | Study::Targets(_)
        | Study::Hosts(_)
        | Study::Commands(_) => runs_of_jobs(request, origins),
    }
}

/// Default number of runs of an ordinary job, and its reason.
fn first_runs(spec: &JobSpec) -> (u32, &'static str) {
    if spec.gates_a_percentile() {
        (FEWEST_GATED_RUNS, "default: --fail-if has a percentile")
    } else if spec.phases.iter().flat_map(|phase| &phase.streams).any(|stream| stream.replay.is_some()) {
        // A replay takes as long as its capture.
        (1, "default of a replay")
    } else {
        (RUNS, "default")
    }
}

/// The minimum number of runs of ordinary jobs, and the strategy.
fn runs_of_jobs(request: &Request, origins: &mut Origins) -> (u32, Strategy) {
    let spec = &request.job;
    let format_runs = |n: &u32| n.to_string();
    if let Some(Until::Steady) = spec.until {
        origins.note("--until", spec.until, |_| "steady: the last five rounds count".into());
        let at_most = origins.choose("--max-runs", spec.max_runs, ROUNDS, format_runs);
        return (FEWEST_ROUNDS, Strategy::Steady { at_most });
    }
    let (default, from) = first_runs(spec);
    let runs = origins.choose_from("--runs", spec.runs, default, from, format_runs);
    if spec.settle == Some(true) {
        origins.note("--settle", Some(()), |()| "once more, if the first runs are inconclusive".into());
        let most = runs.saturating_mul(SETTLED_WITHIN).min(MAX_RUNS);
        let at_most =
            origins.choose_from("--max-runs", spec.max_runs, most, "default: ten times --runs", format_runs);
        return (runs, Strategy::Settle { at_most });
    }
    let Some(share) = spec.precision else { return (runs, Strategy::Fixed) };
    origins.note("--precision", Some(share), |share| format!("{} % to either side", share * 100.0));
    let twice = runs.saturating_mul(2).min(MAX_RUNS);
    let at_most =
        origins.choose_from("--max-runs", spec.max_runs, twice, "default: twice --runs", format_runs);
    (runs, Strategy::Precision { share, at_most })
}

/// Most measurements of a run that is disturbed each time.
pub(super) fn attempts(spec: &JobSpec, origins: &mut Origins) -> u32 {
    origins.note("--attempts", spec.attempts, u32::to_string);
    spec.attempts.unwrap_or(ATTEMPTS)
}

/// Open-loop slots per closed-loop slot. At its capacity a closed loop has rate times mean latency in flight (Little's
/// law), so this covers rate times p99.9 with a reserve of four if p99.9 is up to eight means.
const SLOTS_PER_DEPTH: u64 = 32;
/// Fewest slots: a stall of 100 ms at 1000 operations per second fills this many.
const MIN_SLOTS: u64 = 128;
/// Most bytes of their buffers.
const MAX_SLOT_BYTES: u64 = 256 * MIB;
/// Runs in the default time budget for each of `--runs` (3): those of the closed loop, 20 to 25 of a search or a curve,
/// and some repeats.
const RUNS_IN_BUDGET: u64 = 11;
/// Default runs of a load. With fewer, the same budget measures more loads.
const USUAL_RUNS: u32 = 3;
/// Fewest runs that can answer: one at each load of a curve, or the proof of both ends.
const FEWEST_LOAD_RUNS: u64 = 7;
/// Most threads, for engines with one operation each.
const MAX_WORKERS: u64 = 256;

/// The time budget in ns: as typed, or enough for a search or a curve, and twice that for both.
///
/// # Errors
/// A usage failure if the typed budget does not fit the closed loop and a few loads.
pub(super) fn budget_ns(
    typed: Option<u64>,
    target: &LatencyTarget,
    jobs: &[Job],
    runs: u32,
    baseline_ns: u64,
    origins: &mut Origins,
) -> Result<u64, Failure> {
    let run = jobs.first().map_or(0, run_ns);
    let least = baseline_ns.saturating_add(run.saturating_mul(u64::from(runs) + FEWEST_LOAD_RUNS));
    let work = format!("{runs} runs of the closed loop and {FEWEST_LOAD_RUNS} at loads");
    refuse_short(typed, least, &work, "shorter runs (--time)")?;
    let answers = u64::from(target.latency_ns.is_some()) + u64::from(target.curve);
    let runs = RUNS_IN_BUDGET * u64::from(runs.max(USUAL_RUNS)) * answers;
    let default = baseline_ns.saturating_add(run.saturating_mul(runs));
    Ok(origins.choose_from("--budget", typed, default, &format!("default: {runs} runs"), |ns| minutes(*ns)))
}

/// The open loop for a closed one.
///
/// # Errors
/// A usage failure if the arrivals belong to one worker, and the engine needs several.
pub(super) fn open(
    closed: &DraftJob,
    arrivals: Arrivals,
    origins: &mut Origins,
) -> Result<DraftJob, Failure> {
    let mut open = closed.clone();
    open.name = format!("{}, loads", closed.name);
    let from = if arrivals == Arrivals::default() { "default" } else { "command line" };
    origins.fixed("--arrivals", &of_arrivals(arrivals), from);
    for draft in open.phases.iter_mut().flat_map(|(_, drafts)| drafts) {
        // The strategy sets the rate of each run; this is a placeholder.
        draft.stream.pace = Pace::Open { iops: 0.0, arrivals };
        set_slots(&mut draft.stream, draft.engine.max_depth);
        if matches!(arrivals, Arrivals::OnOff { .. }) && draft.stream.workers > 1 {
            return Err(Failure::Usage(format!(
                "--arrivals on-off works with a single worker, and the engine {} needs {} workers for an open loop; type --engine io_uring or libaio, or other --arrivals",
                draft.engine.name, draft.stream.workers
            )));
        }
        let Stream { depth, workers, access, .. } = &draft.stream;
        let buffers = u64::from(*depth) * u64::from(*workers) * u64::from(access.largest_bytes());
        let value = format!(
            "{} in flight: depth {depth}, workers {workers}, {} of buffers",
            u64::from(*depth) * u64::from(*workers),
            show_bytes(buffers)
        );
        origins.fixed("open-loop slots", &value, "32 times those of the closed loop, at least 128");
    }
    Ok(open)
}

/// Gives a stream enough slots: deeper queues first, then more workers if the engine has no deeper ones.
fn set_slots(stream: &mut Stream, max_depth: u32) {
    // The targets are not known yet; assume one.
    let closed = u64::from(stream.depth) * u64::from(stream.workers);
    let block = u64::from(stream.access.largest_bytes()).max(1);
    let wanted = (SLOTS_PER_DEPTH * closed).max(MIN_SLOTS).min((MAX_SLOT_BYTES / block).max(closed));
    let workers = u64::from(stream.workers);
    let depth = wanted.div_ceil(workers).clamp(1, u64::from(max_depth));
    stream.workers = wanted.div_ceil(depth).clamp(workers, MAX_WORKERS.max(workers)) as u32;
    stream.depth = depth as u32;
}

#[cfg(test)]
fn curve_point(block_bytes: u32, depth: u32, workers: u32, max_depth: u32) -> (u32, u32) {
    let access = model::job::Access::plain(model::job::Pattern::Random, block_bytes, 100);
    let mut stream = Stream::plain(access, depth, workers, "io_uring");
    set_slots(&mut stream, max_depth);
    (stream.depth, stream.workers)
}

/// Passes of complete writes and bytes of a write, from the SNIA (SSS PTS 2.0, workload independent preconditioning).
const PASSES: u32 = 2;
const BLOCK_BYTES: u32 = 128 << 10;
/// Writes in flight: enough to keep a fast drive busy.
const DEPTH: u32 = 32;
/// Most rounds, from the SNIA: a rate that has not settled by then will not settle.
const ROUNDS_AT_MOST: u32 = 25;

/// Plans the preconditioning of these jobs; `None` if it was not requested.
pub(super) fn plan_precondition(
    request: &Request,
    jobs: &[Job],
    targets: &[Target],
    denial: Option<&str>,
    origins: &mut Origins,
) -> Result<Option<Precondition>, Failure> {
    // A preset fills the target once, and its rounds are the measurement.
    let filled = matches!(&request.work, Work::Sweep(given) if given.preset.is_some_and(Preset::fills));
    if request.job.precondition != Some(true) && !filled {
        return Ok(None);
    }
    let mut fills: Vec<Stream> = Vec::new();
    for stream in jobs.iter().flat_map(streams) {
        for index in &stream.targets {
            let Some(target) = targets.get(*index).filter(|t| t.role != Role::None) else { continue };
            // Jobs of this session have permission to write; those of an earlier one may not.
            if !target.writable {
                return Err(explain_refusal(Failure::Usage(format!(
                    "the earlier session only reads {}, so fathom must not write it; leave --precondition out",
                    target.path
                ))));
            }
            let fill_stream = fill_stream(stream, *index, target, denial)?;
            if !fills.contains(&fill_stream) {
                fills.push(fill_stream);
            }
        }
    }
    if fills.is_empty() && filled {
        return Ok(None);
    }
    if fills.is_empty() {
        return Err(Failure::Usage(
            "--precondition has no effect: the job uses no target; leave --precondition out".into(),
        ));
    }
    let writes = |job: &Job| streams(job).any(|s| s.access.kinds().any(|k| k == Kind::Write));
    let writing =
        jobs.iter().enumerate().filter(|(_, job)| writes(job) && !filled).map(|(at, _)| at).collect();
    let planned = Precondition { fills, passes: PASSES, jobs: writing, rounds_at_most: ROUNDS_AT_MOST };
    if filled {
        origins.fixed(
            "precondition",
            &describe_precondition(&planned, jobs),
            &request.origin("precondition"),
        );
    } else {
        origins.note("--precondition", request.job.precondition, |_| describe_precondition(&planned, jobs));
    }
    Ok(Some(planned))
}

/// The stream that fills the touched part of a target, and no more.
fn fill_stream(
    stream: &Stream,
    index: usize,
    target: &Target,
    denial: Option<&str>,
) -> Result<Stream, Failure> {
    if !stream.turns.is_empty() {
        return Err(Failure::Usage(
            "--precondition writes one region, and turns have several; write the target first, or leave --precondition out".into(),
        ));
    }
    let access = &stream.access;
    let left = target.bytes.saturating_sub(access.offset_bytes).min(access.span_bytes);
    if left < u64::from(BLOCK_BYTES) {
        return Err(Failure::Usage(format!(
            "--precondition writes blocks of {}, and the job uses only {} of {}; use a larger --size, or leave --precondition out",
            show_bytes(u64::from(BLOCK_BYTES)),
            show_bytes(left),
            target.path
        )));
    }
    let engine = fill_engine(stream, denial);
    let access = Access {
        offset_bytes: access.offset_bytes,
        span_bytes: access.span_bytes,
        ..Access::plain(Pattern::Sequential, BLOCK_BYTES, 0)
    };
    let plain = Stream::plain(access, DEPTH.min(engine.max_depth), 1, engine.name);
    Ok(Stream { targets: vec![index], ..plain })
}

/// The stream's own engine, or another one if that cannot write directly.
fn fill_engine(stream: &Stream, denial: Option<&str>) -> &'static Entry {
    let able =
        |e: &&Entry| e.moves_bytes && e.caches.contains(&Cache::Direct) && e.kinds.contains(&Kind::Write);
    let own = engines::find(&stream.engine).filter(able);
    let usual = || crate::plan::engine::default_engine(denial);
    own.or_else(usual).unwrap_or(&engines::ENGINES[0])
}

fn describe_precondition(planned: &Precondition, jobs: &[Job]) -> String {
    let block = show_block(u64::from(BLOCK_BYTES));
    let fill = format!("all written {} times ({block}, direct)", planned.passes);
    let phase_ns =
        |job: &Job| job.phases.iter().map(|p| p.warmup_ns + p.time_ns + p.cooldown_ns).sum::<u64>();
    if planned.jobs.is_empty() {
        let why = if jobs.iter().any(|j| streams(j).any(|s| s.access.writes())) {
            "the rounds of the sweep are the rest"
        } else {
            "nothing here writes, so no rounds"
        };
        return format!("{fill}; {why}");
    }
    let round: u64 =
        planned.jobs.iter().filter_map(|at| jobs.get(*at)).map(phase_ns).fold(0, u64::saturating_add);
    let longest = show_ns(round as f64 * f64::from(planned.rounds_at_most));
    format!(
        "{fill}, then rounds of the job until its rate settles, at most {} ({longest})",
        planned.rounds_at_most
    )
}

/// Checks the conditions of `--fail-if`.
///
/// # Errors
/// A usage failure that lists the available results if no result has the name or the operations.
pub(super) fn conditions(
    spec: &JobSpec,
    jobs: &[Job],
    study: &Study,
    origins: &mut Origins,
) -> Result<Vec<Condition>, Failure> {
    let given = spec.fail_if.clone().unwrap_or_default();
    for condition in &given {
        check_study(condition, study)
            .and_then(|()| check_condition(condition, jobs))
            .map_err(|why| Failure::Usage(format!("--fail-if {}: {why}", condition.to_flag())))?;
    }
    let list_conditions =
        |given: &Vec<Condition>| given.iter().map(Condition::to_flag).collect::<Vec<_>>().join(",");
    origins.note("--fail-if", spec.fail_if.as_ref(), |given| list_conditions(given));
    Ok(given)
}

/// The limit of `--fail-if-slower`.
///
/// # Errors
/// A usage failure if no earlier session is measured along with this one, or `--settle` has no condition.
pub(super) fn slower(request: &Request, origins: &mut Origins) -> Result<Option<Slower>, Failure> {
    let given = request.fail_if_slower;
    if given.is_some() && request.against.is_none() {
        return Err(Failure::Usage(
            "--fail-if-slower compares with an earlier session, and none is measured along with this one; type --against SESSION too, or compare two sessions with `fathom compare A B --fail-if-slower 5%`"
                .into(),
        ));
    }
    let gated = given.is_some() || request.job.fail_if.is_some();
    if request.job.settle == Some(true) && !gated {
        return Err(Failure::Usage(
            "--settle measures until a condition is decided, and there is none; type a condition such as --fail-if 'p99>10ms' too, or leave --settle out"
                .into(),
        ));
    }
    origins.note("--fail-if-slower", given, Slower::to_flags);
    Ok(given)
}

/// Checks a condition on a study that answers one question.
fn check_study(condition: &Condition, study: &Study) -> Result<(), String> {
    let of_percentile = condition.limit.is_of_percentile();
    match (study, &condition.result) {
        (Study::Limit(_), Some(_)) => {
            Err("a load curve has a single result; leave the name out, as in iops<20000".into())
        }
        (Study::Limit(_), None) if of_percentile => Err(
            "--p99 limits the latency of a load curve; type --p99 10ms --fail-if 'iops<20000', which fails if that latency does not allow this rate"
                .into(),
        ),
        (Study::Sweep(_), None) if of_percentile => Err(format!(
            "the winner of a sweep has {FRESH} runs, and a percentile requires {FEWEST_GATED_RUNS}; type iops<20000 or mb/s<90 here, and check the percentile in a run of the winner"
        )),
        _ => Ok(()),
    }
}

fn check_condition(condition: &Condition, jobs: &[Job]) -> Result<(), String> {
    if let Limit::Time { .. } = condition.limit {
        return Err("time is a condition of `fathom time`; type p99>10ms, iops<20000 or mb/s<90 here".into());
    }
    let results = jobs.iter().flat_map(|job| {
        let phases = job.phases.iter().enumerate();
        phases.flat_map(move |(phase, of_phase)| {
            let streams = of_phase.streams.iter().enumerate();
            streams.map(move |(index, stream)| (job.result_name(phase, index), stream))
        })
    });
    let results: Vec<_> = results.collect();
    let named: Vec<_> = results
        .iter()
        .filter(|(name, _)| condition.result.as_ref().is_none_or(|given| given == name))
        .collect();
    if named.is_empty() {
        let names: Vec<String> = results.iter().map(|(name, _)| format!("'{name}'")).collect();
        return Err(format!("no result has this name; type one of {}", names.join(", ")));
    }
    let Limit::Latency { kind: Some(kind), .. } = condition.limit else { return Ok(()) };
    if named.iter().any(|(_, stream)| stream.kinds().any(|k| k == kind)) {
        return Ok(());
    }
    let mut kinds: Vec<String> = Vec::new();
    for kind in named.iter().flat_map(|(_, stream)| stream.kinds()) {
        let word = format!("{}.p99", kind.word());
        if !kinds.contains(&word) {
            kinds.push(word);
        }
    }
    Err(format!("nothing here does a {}; type {}", kind.word(), kinds.join(" or ")))
}

/// The file of the operation log. Marks all streams as logged if there is one.
///
/// # Errors
/// A usage failure for log settings without a log.
pub(super) fn plan_op_log(
    spec: &JobSpec,
    jobs: &mut [Job],
    origins: &mut Origins,
) -> Result<Option<String>, Failure> {
    let streams = jobs.iter_mut().flat_map(|job| &mut job.phases).flat_map(|phase| &mut phase.streams);
    let Some(file) = &spec.op_log else {
        let mut streams = streams;
        // Logs of other tools have their own options.
        let lost = streams.find(|s| s.log_interval_ns.is_some()).filter(|_| spec.typed.is_none());
        return lost.map_or(Ok(None), |_| {
            Err(Failure::Usage(
                "--op-log-interval sets the lines of an operation log, and there is no log; type --op-log FILE too, or leave --op-log-interval out".into(),
            ))
        });
    };
    origins.note("--op-log", Some(file), |file| (*file).clone());
    for stream in streams {
        let interval = *stream.log_interval_ns.get_or_insert(0);
        origins.note("--op-log-interval", Some(interval).filter(|ns| *ns > 0), |ns| show_ns(*ns as f64));
    }
    Ok(Some(file.clone()))
}

/// Default length of the idle watch.
const IDLE_WATCH_NS: u64 = 1_000_000_000;
/// Shortens the idle watch in fathom's own tests.
const IDLE_VARIABLE: &str = "FATHOM_TEST_IDLE";

/// How long the idle machine is watched before the first run. A reason for a shorter watch is recorded.
pub(super) fn before_runs_ns(request: &Request, origins: &mut Origins) -> u64 {
    let usual = match (&request.work, &request.source) {
        (Work::Profile(BenchSpec { quick: true, .. }), _) => profile::WATCH_NS,
        // Other tools start at once.
        (_, Some(JobSource::CommandOf(_))) => return 0,
        _ => IDLE_WATCH_NS,
    };
    let ns = at_most_ns(usual);
    if ns < usual {
        origins.fixed("idle watch", &show_ns(ns as f64), IDLE_VARIABLE);
    }
    ns
}

/// The default, or the shorter time of the environment variable.
pub(crate) fn at_most_ns(usual: u64) -> u64 {
    let given = std::env::var(IDLE_VARIABLE).ok().and_then(|words| parse_duration_ns(&words).ok());
    given.map_or(usual, |ns| ns.min(usual))
}

#[test]
fn slots_cover_a_tail_of_eight_means_four_times() {
    assert_eq!(curve_point(4096, 32, 1, 16_384), (1024, 1));
    assert_eq!(curve_point(4096, 1, 1, 16_384), (128, 1));
    assert_eq!(curve_point(4096, 1, 1, 1), (1, 128), "one operation per worker");
    assert_eq!(curve_point(4096, 1, 8, 1), (1, 256));
    assert_eq!(curve_point(4096, 1, 512, 1), (1, 512), "never fewer workers than were asked for");
    assert_eq!(curve_point(1 << 20, 8, 4, 16_384), (64, 4), "256 MiB of buffers");
    assert_eq!(curve_point(1 << 30, 2, 1, 16_384), (2, 1), "what was asked for has room");
}
