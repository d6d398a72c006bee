//! Settings of the whole plan: attempts at a disturbed run (`--attempts`), preconditioning, conditions (`--fail-if`, `--fail-if-slower`), the
//! operation log, and the idle watch.

use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::plan::{explain_refusal, profile};
use crate::request::{BenchSpec, Request, Work};
use engine::engines::{self, Entry};
use model::job::{Access, Cache, Job, Kind, Pattern, Stream};
use model::plan::{Precondition, Role, Target};
use model::spec::JobSpec;
use model::spec::axes::Preset;
use model::spec::number::ATTEMPTS;
use model::units::{parse_duration_ns, show_block, show_bytes, show_ns};
use model::verdict::{Condition, Limit, SlowdownLimit};

/// How often a run may be measured if it is disturbed each time.
pub(super) fn choose_attempts(spec: &JobSpec, origins: &mut Origins) -> u32 {
    origins.note("--attempts", spec.attempts, u32::to_string);
    spec.attempts.unwrap_or(ATTEMPTS)
}

/// Number of complete passes, and bytes of a write, as in the workload independent preconditioning of SNIA SSS PTS 2.0.
const PASSES: u32 = 2;
const BLOCK_BYTES: u32 = 128 << 10;
/// Writes in flight: enough to keep a fast drive busy.
const DEPTH: u32 = 32;
/// Most rounds, as in the SNIA specification: a rate that has not settled by then will not settle.
const ROUNDS_AT_MOST: u32 = 25;

/// Plans the preconditioning of these jobs; `None` if nothing requests it, or if the preset requests it and no job uses a target.
pub(super) fn plan_precondition(
    request: &Request,
    jobs: &[Job],
    targets: &[Target],
    denial: Option<&str>,
    origins: &mut Origins,
) -> Result<Option<Precondition>, Failure> {
    // A preset only fills the target: its rounds are the measurement.
    let is_filled = matches!(&request.work, Work::Sweep(given) if given.preset.is_some_and(Preset::fills));
    if request.job.precondition != Some(true) && !is_filled {
        return Ok(None);
    }
    let mut fills: Vec<Stream> = Vec::new();
    for stream in jobs.iter().flat_map(Job::streams) {
        for index in &stream.targets {
            let Some(target) = targets.get(*index).filter(|t| t.role != Role::None) else { continue };
            // Jobs of this session have permission to write; jobs of an earlier session may lack it.
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
    if fills.is_empty() && is_filled {
        return Ok(None);
    }
    if fills.is_empty() {
        return Err(Failure::Usage(
            "--precondition has no effect: the job uses no target; leave --precondition out".into(),
        ));
    }
    let writes = |job: &Job| job.streams().any(|s| s.access.kinds().any(|k| k == Kind::Write));
    let writing =
        jobs.iter().enumerate().filter(|(_, job)| writes(job) && !is_filled).map(|(at, _)| at).collect();
    let planned = Precondition { fills, passes: PASSES, jobs: writing, rounds_at_most: ROUNDS_AT_MOST };
    let words = describe_precondition(&planned, jobs);
    if is_filled {
        origins.record("precondition", &words, &request.origin("precondition"));
    } else {
        origins.note("--precondition", request.job.precondition, |_| words.clone());
    }
    Ok(Some(planned))
}

/// Returns the stream that fills the part of a target that the given stream touches.
fn fill_stream(
    stream: &Stream,
    index: usize,
    target: &Target,
    denial: Option<&str>,
) -> Result<Stream, Failure> {
    if !stream.turns.is_empty() {
        return Err(Failure::Usage(
            "--precondition writes a single region, and each turn of a stream has its own; write the target first, or leave --precondition out".into(),
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

/// Returns the stream's own engine, or another one if the stream's engine cannot write with direct I/O.
fn fill_engine(stream: &Stream, denial: Option<&str>) -> &'static Entry {
    let able =
        |e: &&Entry| e.moves_bytes && e.caches.contains(&Cache::Direct) && e.kinds.contains(&Kind::Write);
    let own = engines::find(&stream.engine).filter(able);
    let usual = || crate::plan::engine::default_engine(denial);
    own.or_else(usual).unwrap_or(&engines::ENGINES[0])
}

fn describe_precondition(planned: &Precondition, jobs: &[Job]) -> String {
    let block = show_block(u64::from(BLOCK_BYTES));
    let fill =
        format!("everything that the jobs touch is written {} times ({block}, direct)", planned.passes);
    let phase_ns =
        |job: &Job| job.phases.iter().map(|p| p.warmup_ns + p.time_ns + p.cooldown_ns).sum::<u64>();
    if planned.jobs.is_empty() {
        let why = if jobs.iter().any(|j| j.streams().any(|s| s.access.writes())) {
            "the rounds of the sweep follow"
        } else {
            "no job writes, so no rounds follow"
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
/// A usage failure if the study cannot decide a condition, or if no result has the name or the kind
/// of operation in the condition.
pub(super) fn check_conditions(
    spec: &JobSpec,
    jobs: &[Job],
    check_study: impl Fn(&Condition) -> Result<(), String>,
    origins: &mut Origins,
) -> Result<Vec<Condition>, Failure> {
    let given = spec.fail_if.clone().unwrap_or_default();
    for condition in &given {
        check_study(condition)
            .and_then(|()| check_condition(condition, jobs))
            .map_err(|why| Failure::Usage(format!("--fail-if {}: {why}", condition.to_flag())))?;
    }
    let list_conditions =
        |given: &Vec<Condition>| given.iter().map(Condition::to_flag).collect::<Vec<_>>().join(",");
    origins.note("--fail-if", spec.fail_if.as_ref(), |given| list_conditions(given));
    Ok(given)
}

/// Returns the limit of `--fail-if-slower`; `None` if it was not typed. Also checks that `--settle` has a condition.
///
/// # Errors
/// A usage failure if no earlier session is measured along with this one, or `--settle` has no condition.
pub(super) fn check_slower(
    request: &Request,
    origins: &mut Origins,
) -> Result<Option<SlowdownLimit>, Failure> {
    let given = request.fail_if_slower;
    if given.is_some() && request.against.is_none() {
        return Err(Failure::Usage(
            "--fail-if-slower compares with an earlier session, and none is measured along with this one; type --against SESSION too, or compare two sessions with `fathom compare A B --fail-if-slower 5%`"
                .into(),
        ));
    }
    let has_condition = given.is_some() || request.job.fail_if.is_some();
    if request.job.settle == Some(true) && !has_condition {
        return Err(Failure::Usage(
            "--settle measures until a condition is decided, and there is none; type a condition such as --fail-if 'p99>10ms' too, or leave --settle out"
                .into(),
        ));
    }
    origins.note("--fail-if-slower", given, SlowdownLimit::to_flags);
    Ok(given)
}

fn check_condition(condition: &Condition, jobs: &[Job]) -> Result<(), String> {
    if let Limit::Time { .. } = condition.limit {
        return Err("time is a condition of `fathom time`; type p99>10ms, iops<20000 or mb/s<90 here".into());
    }
    let results = jobs.iter().flat_map(|job| {
        job.numbered_streams().map(|(phase, index, stream)| (job.result_name(phase, index), stream))
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
    let kinds = model::distinct(named.iter().flat_map(|(_, stream)| stream.kinds()));
    let conditions: Vec<String> = kinds.iter().map(|kind| format!("{}.p99", kind.word())).collect();
    Err(format!("this condition covers no job that does a {}; type {}", kind.word(), conditions.join(" or ")))
}

/// The file of the operation log; `None` without a log. Marks all streams as logged if there is
/// one.
///
/// # Errors
/// A usage failure for log settings without a log.
pub(super) fn plan_op_log(
    spec: &JobSpec,
    jobs: &mut [Job],
    origins: &mut Origins,
) -> Result<Option<String>, Failure> {
    let streams = jobs.iter_mut().flat_map(Job::streams_mut);
    let Some(file) = &spec.op_log else {
        let mut streams = streams;
        // Logs of other tools have their own options.
        let lost = streams.find(|s| s.log_interval_ns.is_some()).filter(|_| spec.typed.is_none());
        return lost.map_or(Ok(None), |_| {
            Err(Failure::Usage(
                "--op-log-interval needs an operation log; type --op-log FILE too, or leave --op-log-interval out".into(),
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

/// How long the machine is watched before the first run. Records if [`IDLE_VARIABLE`] shortens the watch.
pub(super) fn idle_watch_ns(request: &Request, origins: &mut Origins) -> u64 {
    let usual = match &request.work {
        Work::Profile(BenchSpec { quick: true, .. }) => profile::WATCH_NS,
        // The imitated tool starts at once.
        _ if request.is_of_other_tool() => return 0,
        _ => IDLE_WATCH_NS,
    };
    let ns = shorten_idle_watch(usual);
    if ns < usual {
        origins.record("idle watch", &show_ns(ns as f64), IDLE_VARIABLE);
    }
    ns
}

/// Returns the usual length of an idle watch, or the shorter one in [`IDLE_VARIABLE`].
pub(crate) fn shorten_idle_watch(usual: u64) -> u64 {
    let given = std::env::var(IDLE_VARIABLE).ok().and_then(|words| parse_duration_ns(&words).ok());
    given.map_or(usual, |ns| ns.min(usual))
}
