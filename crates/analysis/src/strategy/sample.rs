//! What a run of a cell gave.
//!
//! For: the figures by which the cells of a sweep are compared with each other. Not for: what is made of them (`sweep`, `in_order`).

use model::histogram::Histogram;
use model::job::{Job, Kind, Stream};
use model::measure::Measure;
use model::record::attempts::{self, Attempt, Pairing};
use model::record::{Record, Run, RunEnd, RunEnding};

/// One run of one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Index of its job.
    pub job: usize,
    /// Bytes per second; `None` where the run failed or moved nothing.
    pub bytes_per_s: Option<f64>,
    /// Bytes of a mean operation.
    pub bytes_per_operation: Option<f64>,
    /// CPU time of the workers per byte in ns.
    pub cpu_ns_per_byte: Option<f64>,
    /// Mean and longest latency within the window in ns; `None` where nothing completed there.
    pub latency_ns: Option<(f64, u64)>,
    /// 99th percentile of the same in ns; `None` where too few operations support one.
    pub p99_ns: Option<u64>,
    /// What it wrote, in bytes, whether that counted as operations of the window or not.
    pub written_bytes: u64,
    /// Time that it took with everything around it, in ns.
    pub took_ns: u64,
    /// When it ended, in ns since the start of the session.
    pub ended_ns: u64,
}

impl Sample {
    /// What a run gave: all that was handed over by the time until the last of it completed, the soft limit of CCSIO. So
    /// large operations on slow storage have a rate too, and none is cut at the end of a window. Writes that went to memory
    /// count until the final sync has made them stable.
    pub fn from_run(index: usize, job: &Job, end: &RunEnd, took_ns: u64) -> Self {
        let streams = || job.phases.iter().flat_map(|p| &p.streams);
        let issued =
            || end.streams.iter().flat_map(|s| s.issued.iter()).filter(|(kind, _)| **kind != Kind::Sync);
        let moved: f64 = issued().map(|(_, i)| i.bytes as f64).sum();
        let operations: f64 = issued().map(|(_, i)| i.ops as f64).sum();
        let wall = end.workers.iter().map(|w| w.wall_ns).max().unwrap_or(0);
        let waits = streams().any(may_be_in_memory);
        // Without that sync nobody knows when the bytes were there.
        let sync = if waits { end.sync_ns } else { Some(0) };
        let seconds = sync.map(|sync| (wall as f64 + sync as f64) / 1e9);
        let whole = end.ending == RunEnding::Complete && moved > 0.0;
        let latencies = run_latencies(end);
        let cpu: f64 = end.workers.iter().map(|w| w.user_ns as f64 + w.system_ns as f64).sum();
        Self {
            job: index,
            bytes_per_s: seconds.filter(|s| whole && *s > 0.0).map(|s| moved / s),
            bytes_per_operation: (whole && operations > 0.0).then(|| moved / operations),
            cpu_ns_per_byte: (whole && cpu > 0.0).then(|| cpu / moved),
            latency_ns: latencies.mean_ns().zip(latencies.max_ns()).filter(|_| whole),
            p99_ns: latencies.supported_quantile_ns(0.99).filter(|_| whole),
            written_bytes: end
                .streams
                .iter()
                .filter_map(|s| s.issued.get(&Kind::Write))
                .map(|i| i.bytes)
                .sum(),
            took_ns,
            ended_ns: end.at_ns,
        }
    }

    /// The logarithm of the number that cells are ranked by, the better the higher; `None` where the run has none.
    pub fn score(&self, by: Measure) -> Option<f64> {
        let log = match by {
            Measure::Iops => (self.bytes_per_s? / self.bytes_per_operation?).ln(),
            Measure::Bandwidth => self.bytes_per_s?.ln(),
            Measure::P99 => -(self.p99_ns? as f64).ln(),
            Measure::Latency => -self.latency_ns?.0.ln(),
        };
        Some(log).filter(|log| log.is_finite())
    }
}

/// The runs of a record that count, in the order of happening; what was interrupted is none.
pub fn samples(record: &Record) -> Vec<Sample> {
    timed(&tries(record))
}

/// One measurement of a cell, which others may have disturbed.
#[derive(Clone, Copy, Debug)]
pub struct Try {
    /// Which attempt at which run it was.
    pub attempt: Attempt,
    /// What it gave.
    sample: Sample,
    /// When it ended, in ns since the session began.
    until_ns: u64,
}

impl Try {
    /// What a run gave.
    pub fn from_attempt(attempt: Attempt, job: &Job, end: &RunEnd) -> Self {
        let wall = end.workers.iter().map(|w| w.wall_ns).max().unwrap_or(0);
        let alone = wall.saturating_add(end.sync_ns.unwrap_or(0));
        Self { attempt, sample: Sample::from_run(attempt.job, job, end, alone), until_ns: end.at_ns }
    }
}

/// All runs of a record, whether they count or not, in the order of happening; what was interrupted is none.
pub fn tries(record: &Record) -> Vec<Try> {
    let of = |run: &Run| {
        let end = run.end.as_ref().filter(|e| e.ending != RunEnding::Interrupted)?;
        Some(Try::from_attempt(run.attempt(), record.header.plan.jobs.get(run.start.job)?, end))
    };
    record.measured().into_iter().filter_map(of).collect()
}

/// The samples that count, each with the time from the one before: what was left out took time too. The first one took what it
/// took itself.
pub(super) fn timed(tries: &[Try]) -> Vec<Sample> {
    let attempts: Vec<Attempt> = tries.iter().map(|t| t.attempt).collect();
    let mut before = None;
    let counting =
        tries.iter().zip(attempts::counting(&attempts, Pairing::Runs)).filter(|(_, counts)| *counts);
    let sample = |(one, _): (&Try, bool)| {
        let took_ns = before.map_or(one.sample.took_ns, |b| one.until_ns.saturating_sub(b));
        before = Some(one.until_ns);
        Sample { took_ns, ..one.sample }
    };
    counting.map(sample).collect()
}

/// Latencies of all operations but syncs.
fn run_latencies(end: &RunEnd) -> Histogram {
    let mut all = Histogram::new();
    let kinds = end.streams.iter().flat_map(|s| &s.kinds).filter(|(kind, _)| **kind != Kind::Sync);
    kinds.for_each(|(_, k)| all.merge(&k.latency));
    all
}

/// Whether completed writes of a stream may still be in memory alone.
fn may_be_in_memory(stream: &Stream) -> bool {
    stream.access.writes() && !stream.cache.is_direct() && !stream.cache.is_sync()
}
