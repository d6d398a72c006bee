//! The plan of `fathom limit`: a closed loop that measures the capacity, and the open loop whose loads the strategy chooses.
//!
//! The open loop does the same work as the closed one, with enough slots for a long tail at the capacity.

use super::study::{StudyPlan, Timing};
use super::{DraftJob, Times};
use crate::failure::Failure;
use crate::plan::budget;
use crate::plan::origins::Origins;
use crate::request::{Request, Work};
use model::job::{Arrivals, Pace, Stream};
use model::plan::{LatencyTarget, Strategy};
use model::units::{MIB, show_bytes, show_ns};
use model::verdict::Condition;

/// Window and warm-up of each run of `limit`: at 400 operations a second, three runs have 12 operations beyond p99.
pub(super) const TIMES: Times = Times { window_ns: 1_000_000_000, warmup_ns: 250_000_000 };
/// Runs of each load. The strategy measures more if they disagree.
const RUNS: u32 = 3;
/// Open-loop slots per closed-loop slot. At its capacity, the closed loop has rate times mean latency in flight (Little's law). An open
/// loop at this rate needs about rate times p99.9. If p99.9 is up to eight times the mean, 32 slots are four times the need.
const SLOTS_PER_DEPTH: u64 = 32;
/// Fewest slots: enough for a stall of about 100 ms at 1000 operations per second.
const MIN_SLOTS: u64 = 128;
/// Maximum size of the buffers of all slots, in bytes.
const MAX_SLOT_BYTES: u64 = 256 * MIB;
/// Maximum number of threads, for engines with one operation in flight per thread.
const MAX_WORKERS: u64 = 256;

impl StudyPlan for LatencyTarget {
    fn repeats(&self, request: &Request, _by_budget: Option<u32>, origins: &mut Origins) -> (u32, Strategy) {
        (origins.choose("--runs", request.job.runs, RUNS, u32::to_string), Strategy::Limit(*self))
    }

    fn budget_ns(&self, timing: &Timing, origins: &mut Origins) -> Result<Option<u64>, Failure> {
        budget::for_latency_target(self, timing, origins).map(Some)
    }

    fn check(&self, condition: &Condition) -> Result<(), String> {
        if condition.result.is_some() {
            return Err("a load curve has a single result; leave the name out, as in iops<20000".into());
        }
        if condition.limit.is_on_percentile() {
            return Err("a load curve has no condition on a percentile; type --p99 10ms --fail-if 'iops<20000', which fails if the highest rate within that latency is lower".into());
        }
        Ok(())
    }
}

/// Returns the latency target of `limit`, and adds the open loop to the jobs. `None` for other commands.
pub(super) fn add_open_loop(
    request: &Request,
    drafts: &mut Vec<DraftJob>,
    origins: &mut Origins,
) -> Result<Option<LatencyTarget>, Failure> {
    let Work::Limit(latency_target) = request.work else { return Ok(None) };
    let open_loops = drafts.iter().map(|closed| make_open_loop(closed, latency_target.arrivals, origins));
    let open_loops = open_loops.collect::<Result<Vec<_>, _>>()?;
    drafts.extend(open_loops);
    let words = |ns: u64| format!("p{} within {}", 100.0 * latency_target.quantile, show_ns(ns as f64));
    origins.record("latency target", &latency_target.latency_ns.map_or("none".into(), words), "command line");
    Ok(Some(latency_target))
}

/// Returns the open loop that does the work of a closed one.
///
/// # Errors
/// A usage failure if the arrivals are on-off and the engine needs several workers: only a single worker can make on-off arrivals.
fn make_open_loop(closed: &DraftJob, arrivals: Arrivals, origins: &mut Origins) -> Result<DraftJob, Failure> {
    let mut open = closed.clone();
    open.name = format!("{}, loads", closed.name);
    let from = if arrivals == Arrivals::default() { "default" } else { "command line" };
    origins.record("--arrivals", &arrivals.to_flag(), from);
    for draft in open.phases.iter_mut().flat_map(|phase| &mut phase.drafts) {
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
        origins.record(
            "open-loop slots",
            &value,
            "32 times those of the closed loop, at least 128, limited by 256 MiB of buffers and 256 workers",
        );
    }
    Ok(open)
}

/// Gives a stream enough slots: first with a larger depth, then with more workers if the engine's largest depth is not enough.
fn set_slots(stream: &mut Stream, max_depth: u32) {
    // The number of targets is not known yet; assume one.
    let closed = u64::from(stream.depth) * u64::from(stream.workers);
    let block = u64::from(stream.access.largest_bytes()).max(1);
    let wanted = (SLOTS_PER_DEPTH * closed).max(MIN_SLOTS).min((MAX_SLOT_BYTES / block).max(closed));
    let workers = u64::from(stream.workers);
    let depth = wanted.div_ceil(workers).clamp(1, u64::from(max_depth));
    stream.workers = wanted.div_ceil(depth).clamp(workers, MAX_WORKERS.max(workers)) as u32;
    stream.depth = depth as u32;
}

#[cfg(test)]
fn slots_of(block_bytes: u32, depth: u32, workers: u32, max_depth: u32) -> (u32, u32) {
    let access = model::job::Access::plain(model::job::Pattern::Random, block_bytes, 100);
    let mut stream = Stream::plain(access, depth, workers, "io_uring");
    set_slots(&mut stream, max_depth);
    (stream.depth, stream.workers)
}

#[test]
fn slots_cover_a_tail_of_eight_means_four_times() {
    assert_eq!(slots_of(4096, 32, 1, 16_384), (1024, 1));
    assert_eq!(slots_of(4096, 1, 1, 16_384), (128, 1));
    assert_eq!(slots_of(4096, 1, 1, 1), (1, 128), "one operation per worker");
    assert_eq!(slots_of(4096, 1, 8, 1), (1, 256));
    assert_eq!(slots_of(4096, 1, 512, 1), (1, 512), "never fewer workers than were asked for");
    assert_eq!(slots_of(1 << 20, 8, 4, 16_384), (64, 4), "256 MiB of buffers");
    assert_eq!(slots_of(1 << 30, 2, 1, 16_384), (2, 1), "what was asked for has room");
}
