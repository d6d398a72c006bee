//! Totals: what a worker brings home, as the record keeps it.
//!
//! For: adding workers up to streams, and what each cost. Not for: their course over time ([`crate::collector`]).

use super::Measurement;
use super::ends::Ends;
use crate::collector::Collector;
use engine::link::{Difference, Outcome};
use engine::workers::Who;
use model::job::{FoundDepth, Kind, Phase};
use model::plan::Plan;
use model::record::{Issued, PriorityEnd, StreamEnd, WorkerEnd};

impl Measurement {
    /// What the streams of a phase came to.
    pub(super) fn close_streams(
        &mut self,
        phase: &Phase,
        collector: Collector,
        ends: Ends,
        notes: &mut Vec<String>,
    ) -> Vec<StreamEnd> {
        let mut streams = collector.finish();
        for (end, stream) in streams.iter_mut().zip(&phase.streams).filter(|(_, s)| s.access.writes()) {
            end.data = self.supplies.written(stream, self.plan.drawn_by());
        }
        notes.extend(ends.close(&mut streams));
        let driver = self.driver.take();
        for (end, driver) in streams.iter_mut().filter(|end| end.replayed.is_some()).zip(driver) {
            end.at_driver = Some(driver.end());
        }
        streams
    }
}

/// Adds a worker's totals to its stream's.
pub(super) fn add_totals(stream: &mut StreamEnd, outcome: &Outcome) {
    stream.window_ns = stream.window_ns.max(outcome.window_ns);
    stream.replayed = outcome.replayed.clone().or(stream.replayed.take());
    stream.lanes.extend(outcome.lanes.iter().cloned());
    for end in &outcome.priorities {
        PriorityEnd::add(&mut stream.priorities, end);
    }
    for (kind, of_worker) in Kind::ALL.into_iter().zip(&outcome.totals) {
        if *of_worker == Issued::default() {
            continue;
        }
        let sum: &mut Issued = stream.issued.entry(kind).or_default();
        sum.ops += of_worker.ops;
        sum.bytes += of_worker.bytes;
        sum.short += of_worker.short;
        sum.max_ns = sum.max_ns.max(of_worker.max_ns);
        for (errno, count) in &of_worker.errors {
            *sum.errors.entry(*errno).or_default() += count;
        }
    }
}

/// Operations of a kind that a worker submitted, whatever became of them.
pub(super) fn attempted(outcome: &Outcome, kind: Kind) -> u64 {
    let of = &outcome.totals[kind as usize];
    of.ops + of.errors.values().sum::<u64>()
}

/// What is told of the first read of each worker that found something else than what should be there.
pub(super) fn differences(plan: &Plan, phase: &Phase, outcomes: &[(Who, Outcome)]) -> Vec<String> {
    let words = |(who, outcome): &(Who, Outcome)| {
        let Difference { file, offset, length, at } = outcome.difference?;
        let target = phase.streams.get(who.stream)?.targets.get(usize::from(file))?;
        let path = &plan.targets.get(*target)?.path;
        Some(format!(
            "verify failed: {path}, offset {offset}, length {length}: byte {at} of it is not what should be there"
        ))
    };
    outcomes.iter().filter_map(words).collect()
}

/// What is told where workers had to wait until their operations were logged.
pub(super) fn log_waits(outcomes: &[(Who, Outcome)]) -> Option<String> {
    let waits: u64 = outcomes.iter().map(|(_, outcome)| outcome.log_waits).sum();
    (waits > 0).then(|| {
        format!("workers waited {waits} times until the log had taken their operations over, which made them slower")
    })
}

/// What is told of workers that searched for a depth.
pub(super) fn found_depths(phase: &Phase, outcomes: &[(Who, Outcome)]) -> Vec<String> {
    let words = |(who, outcome): &(Who, Outcome)| {
        let FoundDepth { depth, is_last } = outcome.depth?;
        let target = phase.streams.get(who.stream)?.latency_target?;
        let rule = format!("worker {}, --latency-target {}", who.worker, target.to_flag());
        Some(match (is_last || target.goes_on, depth) {
            (true, _) => format!("{rule}: {depth} in flight"),
            (false, 1) => format!("{rule}: not met with one operation in flight"),
            (false, _) => format!(
                "{rule}: the search had not ended; the figures are of the last window, with {depth} in flight"
            ),
        })
    };
    outcomes.iter().filter_map(words).collect()
}

/// What a worker cost, and how it ended.
pub(super) fn worker_end(who: Who, outcome: Outcome) -> WorkerEnd {
    WorkerEnd {
        worker: who.worker,
        stream: who.stream,
        wall_ns: outcome.wall_ns,
        user_ns: outcome.usage.user_ns,
        system_ns: outcome.usage.system_ns,
        counted: outcome.counted.map_or_else(
            || Err("the worker did not begin".into()),
            |c| c.map(|c| [c.cycles, c.instructions]),
        ),
        faults: Some([outcome.usage.minor_faults, outcome.usage.major_faults]),
        switches: [outcome.usage.voluntary_switches, outcome.usage.forced_switches],
        depth: outcome.depth,
        depth_counts: outcome.depth_counts,
        turns: outcome.turns,
        ops: outcome.totals.iter().map(|t| t.ops).sum(),
        ready_ns: outcome.ready_ns.unwrap_or_else(|| Err("the worker did not begin".into())),
        io: outcome.io.unwrap_or_else(|| Err("the worker did not begin".into())),
        used: outcome.granted.used,
        fallbacks: outcome.granted.fallbacks,
        error: outcome.error,
    }
}
