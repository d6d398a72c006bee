//! Preconditioning: what is written before the first run, so that the storage is in the state that lasts.
//!
//! For: who writes what how often, and how long that may go on. Not for: doing it (`run::precondition`), nor whether a rate
//! has settled (crate `analysis`).

use super::origins::Origins;
use super::streams;
use crate::failure::Failure;
use crate::request::{Request, Work};
use engine::engines::{self, Entry};
use model::job::{Access, Cache, Job, Kind, Pattern, Stream};
use model::plan::{Precondition, Role, Target};
use model::spec::presets::Preset;
use model::units::{show_block, show_bytes, show_ns};

/// Times that everything is written from end to end, and bytes of a write: those of the SNIA (SSS PTS 2.0, workload
/// independent preconditioning).
const PASSES: u32 = 2;
const BLOCK_BYTES: u32 = 128 << 10;
/// Writes in flight: enough that a fast drive is not kept waiting.
const DEPTH: u32 = 32;
/// Rounds of the SNIA's, after which a rate that has not settled is not going to.
const ROUNDS_AT_MOST: u32 = 25;

/// What preconditioning means for these jobs; `None` where nobody asked for it.
pub(super) fn plan_precondition(
    request: &Request,
    (jobs, targets): (&[Job], &[Target]),
    denial: Option<&str>,
    origins: &mut Origins,
) -> Result<Option<Precondition>, Failure> {
    // What a preset asks for is written once, and its rounds are what is measured.
    let filled = matches!(&request.work, Work::Sweep(said) if said.preset.is_some_and(Preset::fills));
    if request.job.precondition != Some(true) && !filled {
        return Ok(None);
    }
    let mut fills: Vec<Stream> = Vec::new();
    for stream in jobs.iter().flat_map(streams) {
        for index in &stream.targets {
            let Some(target) = targets.get(*index).filter(|t| t.role != Role::None) else { continue };
            // Jobs of this session were asked for with the right to write; those of an earlier one need not have been.
            if !target.writable {
                return Err(explain_refusal(Failure::Usage(format!(
                    "{} is only read by the session that is measured again; leave --precondition out",
                    target.path
                ))));
            }
            let fill = fill(stream, (*index, target), denial)?;
            if !fills.contains(&fill) {
                fills.push(fill);
            }
        }
    }
    if fills.is_empty() && filled {
        return Ok(None);
    }
    if fills.is_empty() {
        return Err(Failure::Usage(
            "--precondition changes nothing here: no target is touched; leave it out".into(),
        ));
    }
    let writes = |job: &Job| streams(job).any(|s| s.access.kinds().any(|k| k == Kind::Write));
    let writing =
        jobs.iter().enumerate().filter(|(_, job)| writes(job) && !filled).map(|(at, _)| at).collect();
    let meant = Precondition { fills, passes: PASSES, jobs: writing, rounds_at_most: ROUNDS_AT_MOST };
    if filled {
        origins.fixed("precondition", &describe_precondition(&meant, jobs), &request.origin("precondition"));
    } else {
        origins.note("--precondition", request.job.precondition, |_| describe_precondition(&meant, jobs));
    }
    Ok(Some(meant))
}

/// Why a target may not be written by it, where the work itself would only read.
pub(super) fn explain_refusal(why: Failure) -> Failure {
    let with = |text: String| format!("--precondition writes over the target before it is measured: {text}");
    match why {
        Failure::Usage(text) => Failure::Usage(with(text)),
        Failure::Refused(text) => Failure::Refused(with(text)),
        other @ (Failure::Pointed { .. } | Failure::Interrupted | Failure::Elsewhere(_)) => other,
    }
}

/// What writes the part of a target that a stream touches. Never more: the rest is somebody's.
fn fill(stream: &Stream, (index, target): (usize, &Target), denial: Option<&str>) -> Result<Stream, Failure> {
    if !stream.turns.is_empty() {
        return Err(Failure::Usage(
            "--precondition writes one region, and turns have several; write the target before, or leave --precondition out".into(),
        ));
    }
    let access = &stream.access;
    let left = target.bytes.saturating_sub(access.offset_bytes).min(access.span_bytes);
    if left < u64::from(BLOCK_BYTES) {
        return Err(Failure::Usage(format!(
            "--precondition writes {} at once, and only {} of {} are touched; use a larger --size, or leave --precondition out",
            show_bytes(u64::from(BLOCK_BYTES)),
            show_bytes(left),
            target.path
        )));
    }
    let engine = writer(stream, denial);
    let access = Access {
        offset_bytes: access.offset_bytes,
        span_bytes: access.span_bytes,
        ..Access::plain(Pattern::Sequential, BLOCK_BYTES, 0)
    };
    let plain = Stream::plain(access, DEPTH.min(engine.max_depth), 1, engine.name);
    Ok(Stream { targets: vec![index], ..plain })
}

/// The stream's own engine, which works here if any does; another where that cannot write past the page cache.
fn writer(stream: &Stream, denial: Option<&str>) -> &'static Entry {
    let able =
        |e: &&Entry| e.moves_bytes && e.caches.contains(&Cache::Direct) && e.kinds.contains(&Kind::Write);
    let own = engines::find(&stream.engine).filter(able);
    let usual = || super::fallback::default_engine(denial);
    own.or_else(usual).unwrap_or(&engines::ENGINES[0])
}

fn describe_precondition(meant: &Precondition, jobs: &[Job]) -> String {
    let block = show_block(u64::from(BLOCK_BYTES));
    let fill = format!("all written {} times over ({block}, direct)", meant.passes);
    let of = |job: &Job| job.phases.iter().map(|p| p.warmup_ns + p.time_ns + p.cooldown_ns).sum::<u64>();
    if meant.jobs.is_empty() {
        let why = if jobs.iter().any(|j| streams(j).any(|s| s.access.writes())) {
            "the rounds of the sweep are the rest"
        } else {
            "nothing here writes, so no rounds"
        };
        return format!("{fill}; {why}");
    }
    let round: u64 = meant.jobs.iter().filter_map(|at| jobs.get(*at)).map(of).fold(0, u64::saturating_add);
    let longest = show_ns(round as f64 * f64::from(meant.rounds_at_most));
    format!(
        "{fill}, then rounds of the work until its rate settles, {} at most ({longest})",
        meant.rounds_at_most
    )
}
