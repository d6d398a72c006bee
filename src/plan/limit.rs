//! The jobs of `fathom limit`: a closed loop that measures the capacity, and the same work as an open loop.
//!
//! The open loop gets as many slots as a long tail needs at the capacity. Which loads it offers is decided while measuring
//! (`analysis::strategy::limit`), within the time budget that is chosen here.

use super::origins::Origins;
use super::{DraftJob, budget};
use crate::failure::Failure;
use analysis::strategy::cost::run_ns;
use model::job::{Arrivals, Job, Pace, Stream};
use model::plan::LatencyTarget;
use model::spec::parsers::of_arrivals;
use model::units::{MIB, minutes, show_bytes};

/// Open-loop slots by those of the closed one. At its capacity a closed loop has rate times mean latency in flight
/// (Little's law); so these are four times rate times p99.9 where p99.9 is up to eight means.
const PLACES: u64 = 32;
/// Fewest places: a stall of 100 ms at 1000 a second fills as many.
const FEWEST_PLACES: u64 = 128;
/// Most bytes that their buffers take.
const MOST_BYTES: u64 = 256 * MIB;
/// Runs that the default time budget holds for each of `--runs`, which is 3 by default: those of the closed loop, 20 to 25 of a search or
/// a curve, and some that are measured again.
const RUNS_IN_BUDGET: u64 = 11;
/// Runs of a load by default; fewer need no smaller budget, since then more loads are measured.
const USUAL_RUNS: u32 = 3;
/// Fewest runs at loads that may answer: one at each load of a curve, or the proof of both ends.
const FEWEST_LOAD_RUNS: u64 = 7;
/// Most threads, for engines that carry one operation each.
const MOST_WORKERS: u64 = 256;

/// The time budget in ns: as typed, or room for a search or a curve, and twice that for both.
///
/// # Errors
/// A usage failure if what was typed has no room for the closed loop and a few loads.
pub(super) fn budget_ns(
    typed: Option<u64>,
    target: &LatencyTarget,
    (jobs, runs, baseline_ns): (&[Job], u32, u64),
    origins: &mut Origins,
) -> Result<u64, Failure> {
    let run = jobs.first().map_or(0, run_ns);
    let least = baseline_ns.saturating_add(run.saturating_mul(u64::from(runs) + FEWEST_LOAD_RUNS));
    let work = format!("{runs} runs of the closed loop and {FEWEST_LOAD_RUNS} at loads");
    budget::refuse_short(typed, least, &work, "shorter runs (--time)")?;
    let answers = u64::from(target.latency_ns.is_some()) + u64::from(target.curve);
    let runs = RUNS_IN_BUDGET * u64::from(runs.max(USUAL_RUNS)) * answers;
    let default = baseline_ns.saturating_add(run.saturating_mul(runs));
    Ok(origins.choose_from("--budget", typed, default, &format!("default: {runs} runs"), |ns| minutes(*ns)))
}

/// The open loop that goes with a closed one.
///
/// # Errors
/// A usage failure where the arrivals are those of one worker, and the engine needs several for it.
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
        // The strategy says the rate of each run; this is none.
        draft.stream.pace = Pace::Open { iops: 0.0, arrivals };
        places(&mut draft.stream, draft.engine.max_depth);
        if matches!(arrivals, Arrivals::OnOff { .. }) && draft.stream.workers > 1 {
            return Err(Failure::Usage(format!(
                "--arrivals on-off is on for one worker at a time, and the engine {} needs {} of them for an open loop; type --engine io_uring or libaio, or other --arrivals",
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
        origins.fixed("open-loop slots", &value, "32 times those of the closed loop, 128 at least");
    }
    Ok(open)
}

/// Gives a stream enough places: deeper queues first, then more workers where an engine has no deeper ones.
fn places(stream: &mut Stream, max_depth: u32) {
    // Targets are not known yet; there is one.
    let closed = u64::from(stream.depth) * u64::from(stream.workers);
    let block = u64::from(stream.access.largest_bytes()).max(1);
    let wanted = (PLACES * closed).max(FEWEST_PLACES).min((MOST_BYTES / block).max(closed));
    let workers = u64::from(stream.workers);
    let depth = wanted.div_ceil(workers).clamp(1, u64::from(max_depth));
    stream.workers = wanted.div_ceil(depth).clamp(workers, MOST_WORKERS.max(workers)) as u32;
    stream.depth = depth as u32;
}

#[cfg(test)]
fn curve_point(block_bytes: u32, depth: u32, workers: u32, max_depth: u32) -> (u32, u32) {
    let access = model::job::Access::plain(model::job::Pattern::Random, block_bytes, 100);
    let mut stream = Stream::plain(access, depth, workers, "io_uring");
    places(&mut stream, max_depth);
    (stream.depth, stream.workers)
}

#[test]
fn there_are_places_for_a_tail_of_eight_means_four_times() {
    assert_eq!(curve_point(4096, 32, 1, 16_384), (1024, 1));
    assert_eq!(curve_point(4096, 1, 1, 16_384), (128, 1));
    assert_eq!(curve_point(4096, 1, 1, 1), (1, 128), "one operation per worker");
    assert_eq!(curve_point(4096, 1, 8, 1), (1, 256));
    assert_eq!(curve_point(4096, 1, 512, 1), (1, 512), "never fewer workers than were asked for");
    assert_eq!(curve_point(1 << 20, 8, 4, 16_384), (64, 4), "256 MiB of buffers");
    assert_eq!(curve_point(1 << 30, 2, 1, 16_384), (2, 1), "what was asked for has room");
}
