//! What came of a time span: threads with their targets, and what they did there.
//!
//! For: both formats. Not for: percentiles and deviations of it ([`super::figures`]).

use model::diskspd::{Profile, Target, TimeSpan};
use model::job::{Kind, Line, Order, Stream};
use model::observed::{Observed, ObservedCpu, ObservedLane, ObservedLaneKind};
use model::report::{Measured, Report};
use std::collections::BTreeMap;

/// A time span with what came of it.
#[derive(Debug)]
pub(super) struct Span {
    /// What was asked for.
    pub(super) said: TimeSpan,
    /// Length of the measured window in s; 0 where nothing was measured.
    pub(super) seconds: f64,
    /// What each thread did on each of its targets.
    pub(super) lanes: Vec<Lane>,
    /// Times of the CPUs meanwhile.
    pub(super) cpus: Vec<ObservedCpu>,
}

/// What a thread did on a target.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// Number of the thread.
    pub(super) thread: u32,
    /// Path of the target.
    pub(super) path: String,
    /// Its size.
    pub(super) bytes: u64,
    /// What moved bytes from the target.
    pub(super) read: ObservedLaneKind,
    /// What moved bytes to it.
    pub(super) write: ObservedLaneKind,
}

/// What was asked for. A report of another language has it as far as DISKSPD has words for it.
pub(super) fn requested_profile(report: &Report) -> Profile {
    let typed = report.results.iter().find_map(|r| r.seen.as_ref()?.typed.as_ref()?.profile.clone());
    typed.unwrap_or_else(|| Profile {
        command: report.command.get(1..).unwrap_or_default().join(" "),
        spans: groups(report).values().map(|results| span_of_results(results)).collect(),
        ..Profile::default()
    })
}

/// The results of each job and phase, in their order.
pub(in crate::formats) fn groups(report: &Report) -> BTreeMap<(usize, u32), Vec<&Measured>> {
    let mut all: BTreeMap<(usize, u32), Vec<&Measured>> = BTreeMap::new();
    let (mut job, mut before) = (0, None);
    for result in &report.results {
        // Results of a job go through its phases and their streams.
        let at = (result.phase, result.stream);
        job += usize::from(before.is_some_and(|(name, last)| name != &result.job.name || last >= at));
        before = Some((&result.job.name, at));
        all.entry((job, result.phase)).or_default().push(result);
    }
    all
}

/// All time spans.
pub(super) fn measured_spans(report: &Report, profile: &Profile) -> Vec<Span> {
    let groups: Vec<Vec<&Measured>> = groups(report).into_values().collect();
    let span = |(at, said): (usize, &TimeSpan)| {
        let seen: Vec<&Observed> =
            groups.get(at).into_iter().flatten().filter_map(|r| r.seen.as_ref()).collect();
        Span {
            said: said.clone(),
            seconds: seen.iter().map(|s| s.window_ns).max().unwrap_or(0) as f64 / 1e9,
            lanes: thread_lanes(&seen, said),
            cpus: seen.first().map(|s| s.cpus.clone()).unwrap_or_default(),
        }
    };
    profile.spans.iter().enumerate().map(span).collect()
}

/// Threads in their order, each with its targets in theirs.
fn thread_lanes(seen: &[&Observed], said: &TimeSpan) -> Vec<Lane> {
    let mut out = Vec::new();
    let pools = said.pools();
    let mut first = 0;
    for (stream, seen) in seen.iter().enumerate() {
        let pool = pools.get(stream);
        if seen.lanes.is_empty() {
            // Workers were not told apart: they are one thread.
            let thread = out.last().map_or(0, |lane: &Lane| lane.thread + 1);
            out.push(combined_lane(seen, thread));
        }
        out.extend(seen.lanes.iter().map(|lane| {
            // As it was typed: a stream is a pool of threads with its targets.
            let typed = pool.and_then(|pool| said.targets.get(pool.targets.get(lane.target)?.0));
            let thread =
                lane.worker.checked_sub(first).and_then(|of| pool?.threads.get(of as usize).copied());
            Lane { thread: thread.unwrap_or(lane.worker), ..thread_lane(seen, lane, typed) }
        }));
        first += pool.map_or(0, |pool| pool.threads.len() as u32);
    }
    out.sort_by_key(|lane| lane.thread);
    out
}

fn thread_lane(seen: &Observed, lane: &ObservedLane, typed: Option<&Target>) -> Lane {
    let target = seen.targets.get(lane.target);
    let of = |kind| lane.kinds.get(&kind).cloned().unwrap_or_default();
    Lane {
        thread: lane.worker,
        path: typed.map(|t| &t.path).or(target.map(|t| &t.path)).cloned().unwrap_or_default(),
        bytes: target.map_or(0, |t| t.bytes),
        read: of(Kind::Read),
        write: of(Kind::Write),
    }
}

fn combined_lane(seen: &Observed, thread: u32) -> Lane {
    let of = |kind| {
        let of = seen.kinds.get(&kind);
        of.map_or_else(ObservedLaneKind::default, |k| ObservedLaneKind {
            bytes: k.bytes,
            latency: k.latency.clone(),
            course: Vec::new(),
        })
    };
    let paths: Vec<&str> = seen.targets.iter().map(|t| t.path.as_str()).collect();
    let bytes = seen.targets.iter().fold(0, |sum: u64, t| sum.saturating_add(t.bytes));
    Lane { thread, path: paths.join(" "), bytes, read: of(Kind::Read), write: of(Kind::Write) }
}

/// What another language asked for.
fn span_of_results(results: &[&Measured]) -> TimeSpan {
    let phase = results.first().and_then(|r| r.job.phases.get(r.phase as usize));
    let seconds = |ns: u64| u32::try_from(ns / 1_000_000_000).unwrap_or(u32::MAX);
    let target = |result: &&Measured| {
        let stream = phase?.streams.get(result.stream as usize)?;
        Some(target_of_stream(stream, result.seen.as_ref()))
    };
    TimeSpan {
        duration_s: phase.map_or(0, |p| seconds(p.time_ns)),
        warmup_s: phase.map_or(0, |p| seconds(p.warmup_ns)),
        cooldown_s: phase.map_or(0, |p| seconds(p.cooldown_ns)),
        latency: true,
        targets: results.iter().filter_map(target).collect(),
        ..TimeSpan::default()
    }
}

fn target_of_stream(stream: &Stream, seen: Option<&Observed>) -> Target {
    let order = stream.access.lines.first().map(|line: &Line| &line.order);
    let paths: Vec<&str> =
        seen.map(|s| s.targets.iter().map(|t| t.path.as_str()).collect()).unwrap_or_default();
    let reads = stream.access.lines.first().map_or(100.0, |line| line.mix.read_percent.get());
    Target {
        path: paths.join(" "),
        block: stream.access.largest_bytes(),
        random_percent: match order {
            Some(Order::Sequential(_)) | None => 0,
            Some(Order::Mixed(percent)) => *percent as u32,
            Some(_) => 100,
        },
        write_percent: (100.0 - reads) as u32,
        requests: stream.depth,
        threads: stream.workers,
        base: stream.access.offset_bytes,
        cache: if stream.cache.is_direct() {
            model::diskspd::Cache::Off
        } else {
            model::diskspd::Cache::Cached
        },
        write_through: stream.cache.is_sync(),
        mapped: stream.cache == model::job::Cache::Mmap,
        ..Target::default()
    }
}
