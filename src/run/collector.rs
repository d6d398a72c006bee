//! Collects what workers produce during a run.
//!
//! 1. `Collector` adds the workers' blocks (the counts and latencies of a short time) to the intervals
//!    of the time series and to the totals.
//! 2. `interval_ns` chooses the length of an interval.
//! 3. `Collector::add_outcome` adds the totals of a worker that has ended, and `close_streams` completes the totals of the streams. Notes
//!    report wrong data that workers read, and workers that had to wait.
//! 4. `OpLog` keeps logged operations in bounded memory, and `Files` writes them at the end.

use crate::failure::Failure;
use crate::files::output::{Outlet, Rules};
use crate::run::Measurement;
use crate::run::stop_rules::StopRules;
use engine::link::{Block, WorkerOutcome, WrongRead};
use engine::workers::{WorkerId, Workers};
use model::figures::{MAX_LOG_BYTES, Operation, Rows, WorkerLog};
use model::histogram::Histogram;
use model::job::{FoundDepth, Job, Kind, Phase, SHORTEST_INTERVAL_NS, Stream};
use model::name;
use model::plan::Plan;
use model::record::{
    Bucket, Cell, Frame, Interval, Intervals, Issued, KindEnd, LaneEnd, PriorityEnd, RunStart, StreamEnd,
    WorkerEnd,
};
use model::units::show_bytes;
use report::LogFile;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Maximum number of intervals stored per second of a run: about 3 KiB per second, at 100 bytes each.
const INTERVALS_PER_SECOND: u64 = 32;

/// Time series and totals of a run.
#[derive(Debug)]
pub struct Collector {
    streams: Vec<StreamEnd>,
    /// For each stream: start of its first block and end of its last block, in ns since the run's start; `None` before the first block.
    spans: Vec<Option<Range<u64>>>,
    /// The intervals that may still grow, by the index of the stream and of the interval.
    pending: BTreeMap<(usize, u64), PendingInterval>,
    interval_ns: u64,
    operations: u64,
    /// For each stream: the interval of the separate time series of each worker, in ns. 0 gives one total per worker; with `None`, workers are
    /// not separated.
    each_worker: Vec<Option<u64>>,
}

/// An interval of one stream that may still grow. A worker's block belongs to the interval that contains the block's middle.
#[derive(Debug, Default)]
struct PendingInterval {
    start_ns: u64,
    end_ns: u64,
    depth_ns: u64,
    kinds: BTreeMap<Kind, (u64, Histogram)>,
}

impl Collector {
    /// Makes the collector of a run with `streams` streams, divided into intervals of this length.
    pub fn new(streams: usize, interval_ns: u64) -> Self {
        let spans = vec![None; streams];
        let streams = (0..streams).map(|stream| StreamEnd { stream, ..StreamEnd::default() }).collect();
        let interval_ns = interval_ns.max(1);
        Self { streams, spans, pending: BTreeMap::new(), interval_ns, operations: 0, each_worker: Vec::new() }
    }

    /// Makes the collector for the streams of a phase, some of which may report their workers separately.
    pub fn for_phase(phase: &Phase, interval_ns: u64) -> Self {
        // Workers that count operations one by one (`separate_bucket_ns`) report their lanes only when they end.
        let by_block = |s: &Stream| s.each_worker_ns.filter(|_| s.separate_bucket_ns().is_none());
        let each_worker = phase.streams.iter().map(by_block).collect();
        Self { each_worker, ..Self::new(phase.streams.len(), interval_ns) }
    }

    /// Adds a block.
    pub fn add(&mut self, id: WorkerId, block: &Block) {
        let Some(stream) = self.streams.get_mut(id.stream) else { return };
        // A block cut off by a failure has no end.
        let end_ns = block.end_ns.max(block.start_ns);
        let span = self.spans[id.stream].get_or_insert(block.start_ns..end_ns);
        *span = span.start.min(block.start_ns)..span.end.max(end_ns);
        let from_ns = span.start;
        let middle = block.start_ns / 2 + end_ns / 2;
        if let Some(every_ns) = self.each_worker.get(id.stream).copied().flatten() {
            let bucket = (every_ns > 0).then(|| middle.saturating_sub(from_ns) / every_ns);
            add_lanes(&mut stream.lanes, id.worker, block, bucket);
        }
        let row = self
            .pending
            .entry((id.stream, middle / self.interval_ns))
            .or_insert_with(|| PendingInterval { start_ns: block.start_ns, ..PendingInterval::default() });
        row.start_ns = row.start_ns.min(block.start_ns);
        row.end_ns = row.end_ns.max(end_ns);
        row.depth_ns += block.depth_ns;
        stream.depth_ns += block.depth_ns;
        stream.submit.merge(&block.submit);
        for lane in &block.lanes {
            for (kind, tally) in Kind::ALL.into_iter().zip(&lane.kinds).filter(|(_, t)| !t.latency.is_empty())
            {
                self.operations += tally.latency.count();
                let end: &mut KindEnd = stream.kinds.entry(kind).or_default();
                end.bytes += tally.bytes;
                end.latency.merge(&tally.latency);
                if let Some(open) = &lane.open {
                    let parts = end.open.get_or_insert_default();
                    parts.service.merge(&open[kind as usize].service);
                    parts.lateness.merge(&open[kind as usize].lateness);
                }
                let (bytes, latency) = row.kinds.entry(kind).or_default();
                *bytes += tally.bytes;
                latency.merge(&tally.latency);
            }
        }
    }

    /// Adds the last block and the totals of a worker that has ended.
    pub fn add_outcome(&mut self, id: WorkerId, outcome: &WorkerOutcome) {
        outcome.last_block.iter().for_each(|block| self.add(id, block));
        let stream = &mut self.streams[id.stream];
        stream.window_ns = stream.window_ns.max(outcome.window_ns);
        stream.replayed = outcome.replayed.clone().or(stream.replayed.take());
        stream.lanes.extend(outcome.by_target.iter().cloned());
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

    /// Length of the run's intervals, in ns.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Operations counted so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// 99th percentile of the latencies of all reads, writes and trims so far, in ns; `None` with too few samples.
    pub fn p99_ns(&self) -> Option<u64> {
        let mut all = Histogram::new();
        let kinds = self.streams.iter().flat_map(|s| &s.kinds).filter(|(kind, _)| **kind != Kind::Sync);
        kinds.for_each(|(_, end)| all.merge(&end.latency));
        all.supported_quantile_ns(0.99)
    }

    /// Takes the intervals that end before `until_ns` and can no longer grow. Merges neighbours to keep
    /// the file small. `None` if there are no such intervals.
    pub fn take_intervals(&mut self, until_ns: u64) -> Option<Intervals> {
        let old: Vec<_> = self.pending.iter().filter(|(_, r)| r.end_ns < until_ns).map(|(k, _)| *k).collect();
        let mut rows: Vec<(usize, PendingInterval)> =
            old.into_iter().filter_map(|k| self.pending.remove(&k).map(|r| (k.0, r))).collect();
        let spans = rows.iter().map(|(_, r)| r.start_ns).min()?..rows.iter().map(|(_, r)| r.end_ns).max()?;
        let seconds = (spans.end - spans.start) as f64 / 1e9;
        let most = ((seconds * INTERVALS_PER_SECOND as f64) as usize).max(INTERVALS_PER_SECOND as usize);
        let before = rows.len();
        while rows.len() > most {
            let longer = rows.len();
            rows = merge_neighbours(rows);
            // With one row per stream, no row has a neighbour.
            if rows.len() == longer {
                break;
            }
        }
        let merged = (before - rows.len()) as u64;
        Some(Intervals { rows: rows.into_iter().map(|(stream, row)| row.close(stream)).collect(), merged })
    }

    /// Returns the totals of each stream.
    pub fn finish(self) -> Vec<StreamEnd> {
        self.streams
    }

    /// Returns the totals so far. Only completed operations are known, because workers report the rest when they end.
    pub fn so_far(&self) -> Vec<StreamEnd> {
        let issued = |end: &KindEnd| Issued {
            ops: end.latency.count(),
            bytes: end.bytes,
            max_ns: end.latency.max_ns().unwrap_or(0),
            ..Issued::default()
        };
        let stream = |(stream, span): (&StreamEnd, &Option<Range<u64>>)| StreamEnd {
            window_ns: span.as_ref().map_or(0, |span| span.end - span.start),
            issued: stream.kinds.iter().map(|(kind, end)| (*kind, issued(end))).collect(),
            ..stream.clone()
        };
        self.streams.iter().zip(&self.spans).map(stream).collect()
    }

    /// The totals of each stream, which grow during the run.
    pub fn streams_mut(&mut self) -> &mut [StreamEnd] {
        &mut self.streams
    }
}

/// Adds a block to the totals of its worker's lanes. `bucket` is the interval of the lane's time series that the block belongs to.
fn add_lanes(lanes: &mut Vec<LaneEnd>, worker: u32, block: &Block, bucket: Option<u64>) {
    for (lane, tallies) in (0..).zip(&block.lanes) {
        let known = lanes.iter().position(|l| (l.worker, l.lane) == (worker, lane));
        let at = known.unwrap_or_else(|| {
            let at = lanes.partition_point(|l| (l.worker, l.lane) < (worker, lane));
            lanes.insert(at, LaneEnd { worker, lane, ..LaneEnd::default() });
            at
        });
        for (kind, tally) in Kind::ALL.into_iter().zip(&tallies.kinds).filter(|(_, t)| !t.latency.is_empty())
        {
            let end = lanes[at].kinds.entry(kind).or_default();
            end.bytes += tally.bytes;
            end.latency.merge(&tally.latency);
            let Some(number) = bucket.and_then(|number| usize::try_from(number).ok()) else { continue };
            if end.time_series.len() <= number {
                end.time_series.resize(number + 1, Bucket::default());
            }
            end.time_series[number] = end.time_series[number].plus(Bucket::from_histogram(&tally.latency));
        }
    }
}

/// Merges pairs of neighbouring intervals of a stream.
fn merge_neighbours(rows: Vec<(usize, PendingInterval)>) -> Vec<(usize, PendingInterval)> {
    let mut out: Vec<(usize, PendingInterval)> = Vec::with_capacity(rows.len() / 2 + 1);
    let mut has_room = false;
    for (stream, row) in rows {
        match out.last_mut() {
            Some((last, into)) if has_room && *last == stream => {
                into.merge(row);
                has_room = false;
            }
            _ => {
                out.push((stream, row));
                has_room = true;
            }
        }
    }
    out
}

impl PendingInterval {
    fn merge(&mut self, other: Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.depth_ns += other.depth_ns;
        for (kind, (bytes, latency)) in other.kinds {
            let (sum, merged) = self.kinds.entry(kind).or_default();
            *sum += bytes;
            merged.merge(&latency);
        }
    }

    fn close(self, stream: usize) -> Interval {
        let cell = |(bytes, h): &(u64, Histogram)| {
            let at = |q| h.quantile_ns(q).unwrap_or(0);
            Cell {
                ops: h.count(),
                bytes: *bytes,
                p50_ns: at(0.5),
                p99_ns: at(0.99),
                max_ns: h.max_ns().unwrap_or(0),
            }
        };
        let cells = self.kinds.iter().map(|(kind, k)| (*kind, cell(k))).collect();
        let Self { start_ns, end_ns, depth_ns, .. } = self;
        Interval { stream, start_ns, end_ns, depth_ns, cells }
    }
}

#[cfg(test)]
fn block(start_ns: u64, end_ns: u64, ops: u64) -> Block {
    let mut block = *Block::new(1, false);
    (block.start_ns, block.end_ns, block.depth_ns) = (start_ns, end_ns, end_ns.saturating_sub(start_ns));
    for _ in 0..ops {
        block.lanes[0].kinds[0].latency.record(1000);
        block.lanes[0].kinds[0].bytes += 4096;
    }
    block
}

/// Shortest and longest interval, in ns. Within these bounds an interval is a hundredth of the window.
const INTERVAL_NS: (u64, u64) = (SHORTEST_INTERVAL_NS, 1_000_000_000);

impl Measurement {
    /// Stores the intervals of the run up to `until_ns` that can no longer change.
    pub(crate) fn store_intervals(
        &mut self,
        collector: &mut Collector,
        until_ns: u64,
    ) -> Result<(), Failure> {
        let Some(rows) = collector.take_intervals(until_ns) else { return Ok(()) };
        if let Some(series) = self.interval_series.last_mut() {
            series.extend(rows.rows.iter().cloned());
        }
        self.session.append(&Frame::Intervals(rows))
    }
}

/// Length of the intervals of a phase, in ns. The periods of stop rules and of the workers' separate reports are multiples of this length,
/// if possible.
pub(crate) fn interval_ns(phase: &Phase) -> u64 {
    // A replay has no planned end, but the length of its capture is known.
    let replayed = phase.streams.iter().filter_map(|s| s.replay.as_ref()?.expected_ns()).min();
    let time_ns = phase.time_ns.min(replayed.unwrap_or(u64::MAX));
    let (shortest, longest) = INTERVAL_NS;
    let interval = (time_ns / 100).clamp(shortest, longest);
    // Workers that count operations one by one do not depend on the intervals.
    let by_block = phase.streams.iter().filter(|s| s.separate_bucket_ns().is_none());
    let spans = phase
        .streams
        .iter()
        .flat_map(crate::run::stop_rules::periods_ns)
        .chain(by_block.filter_map(|s| s.each_worker_ns));
    match spans.filter(|ns| *ns > 0).reduce(gcd) {
        None => interval,
        // Periods without a common divisor, or shorter than the shortest interval, can only be approximated.
        Some(span) if span < shortest => shortest,
        Some(span) => span / span.div_ceil(interval),
    }
}

/// Greatest common divisor.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Lets workers begin, at the time agreed by all hosts or at once. Returns that time.
pub(crate) fn open(workers: &mut Workers, begin: Option<Instant>) -> Instant {
    match begin {
        Some(at) => workers.open_at(at),
        None => workers.open(),
    }
    let now = Instant::now();
    begin.map_or(now, |at| at.max(now))
}

impl Measurement {
    /// Returns the final totals of a phase's streams, with the properties of written data and the
    /// requests at the driver. Adds the notes of the stop rules.
    pub(crate) fn close_streams(
        &mut self,
        phase: &Phase,
        collector: Collector,
        stop_rules: StopRules,
        notes: &mut Vec<String>,
    ) -> Vec<StreamEnd> {
        let mut streams = collector.finish();
        for (end, stream) in streams.iter_mut().zip(&phase.streams).filter(|(_, s)| s.access.writes()) {
            end.data = self.payloads.written(stream, self.plan.host_seed());
        }
        notes.extend(stop_rules.close(&mut streams));
        let driver = self.driver_recorder.take();
        for (end, driver) in streams.iter_mut().filter(|end| end.replayed.is_some()).zip(driver) {
            end.at_driver = Some(driver.end());
        }
        streams
    }
}

/// Operations of a kind that a worker submitted, successful or not.
pub(crate) fn attempted(outcome: &WorkerOutcome, kind: Kind) -> u64 {
    let total = &outcome.totals[kind as usize];
    total.ops + total.errors.values().sum::<u64>()
}

/// Notes about the first unexpected data that each worker read.
pub(crate) fn wrong_reads(plan: &Plan, phase: &Phase, outcomes: &[(WorkerId, WorkerOutcome)]) -> Vec<String> {
    let describe = |(id, outcome): &(WorkerId, WorkerOutcome)| {
        let WrongRead { file, offset, length, at } = outcome.wrong_read?;
        let target = phase.streams.get(id.stream)?.targets.get(usize::from(file))?;
        let path = &plan.targets.get(*target)?.path;
        Some(format!("verify failed: {path}, offset {offset}, length {length}: data byte {at} is wrong"))
    };
    outcomes.iter().filter_map(describe).collect()
}

/// Note about workers that had to wait for the log; `None` if none had to.
pub(crate) fn log_waits(outcomes: &[(WorkerId, WorkerOutcome)]) -> Option<String> {
    let waits: u64 = outcomes.iter().map(|(_, outcome)| outcome.log_waits).sum();
    (waits > 0).then(|| {
        format!(
            "workers had to wait until the log had stored their operations, which slowed them down (waits: {waits})"
        )
    })
}

/// Notes about the depths that workers found with `--latency-target`.
pub(crate) fn found_depths(phase: &Phase, outcomes: &[(WorkerId, WorkerOutcome)]) -> Vec<String> {
    let describe = |(id, outcome): &(WorkerId, WorkerOutcome)| {
        let FoundDepth { depth, is_last } = outcome.found_depth?;
        let target = phase.streams.get(id.stream)?.latency_target?;
        let rule = format!("worker {}, --latency-target {}", id.worker, target.to_flag());
        Some(match (is_last || target.searches_whole_run, depth) {
            (true, _) => format!("{rule}: the search chose depth {depth}"),
            (false, 1) => format!("{rule}: not met even at depth 1"),
            (false, _) => format!(
                "{rule}: the search was not finished; the figures are from the last window, at depth {depth}"
            ),
        })
    };
    outcomes.iter().filter_map(describe).collect()
}

/// Converts the outcome of a worker to the form in the record.
pub(crate) fn worker_end(id: WorkerId, outcome: WorkerOutcome) -> WorkerEnd {
    WorkerEnd {
        worker: id.worker,
        stream: id.stream,
        wall_ns: outcome.wall_ns,
        user_ns: outcome.usage.user_ns,
        system_ns: outcome.usage.system_ns,
        counted: outcome.cpu_counters.map_or_else(
            || Err("the worker did not begin".into()),
            |c| c.map(|c| [c.cycles, c.instructions]),
        ),
        faults: Some([outcome.usage.minor_faults, outcome.usage.major_faults]),
        switches: [outcome.usage.voluntary_switches, outcome.usage.forced_switches],
        depth: outcome.found_depth,
        depth_counts: outcome.depth_counts,
        loop_iterations: outcome.iterations,
        ops: outcome.totals.iter().map(|t| t.ops).sum(),
        ready_ns: outcome.ready_ns.unwrap_or_else(|| Err("the worker did not begin".into())),
        io: outcome.io_counts.unwrap_or_else(|| Err("the worker did not begin".into())),
        used: outcome.granted.used,
        fallbacks: outcome.granted.fallbacks,
        error: outcome.error,
    }
}

/// The operations logged so far.
#[derive(Debug, Default)]
pub struct OpLog {
    all: Vec<WorkerLog>,
    /// For each worker of the current phase: its index in `all`, or `None` if its operations are not logged.
    log_of_worker: Vec<Option<usize>>,
    /// Memory of all logged operations, in bytes.
    bytes: usize,
}

impl OpLog {
    /// Prepares for the workers of a phase.
    pub fn begin(&mut self, plan: &Plan, start: &RunStart, run: usize) {
        let Some(job) = plan.jobs.get(start.job) else { return };
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        self.log_of_worker.clear();
        let Some(phase) = job.phases.get(start.phase) else { return };
        for (stream, of) in phase.streams.iter().enumerate() {
            let first = first_number(job, start.phase, stream);
            // Intervals of fio's logs count from the end of the ramp.
            let ramp_ns = if plan.typed.is_some() { phase.warmup_ns } else { 0 };
            for number in first..first + of.workers {
                self.log_of_worker.push(of.log_interval_ns.map(|interval_ns| {
                    self.all.push(WorkerLog {
                        run,
                        job: start.job,
                        phase: start.phase,
                        stream,
                        number,
                        began_unix_ms: began,
                        rows: Rows::new(of.delay_ns.max(ramp_ns), interval_ns),
                    });
                    self.all.len() - 1
                }));
            }
        }
    }

    /// Adds a worker's operations to the log of this worker, if it has one.
    pub fn add(&mut self, id: WorkerId, operations: &[Operation]) {
        let place = self.log_of_worker.get(id.worker as usize).copied().flatten();
        if let Some(log) = place.and_then(|place| self.all.get_mut(place)) {
            self.bytes += log.rows.append(operations);
        }
    }

    /// Returns why the log cannot grow further, if it is full.
    pub fn full_reason(&self) -> Option<String> {
        (self.bytes > MAX_LOG_BYTES).then(|| {
            format!(
                "the log of operations has reached its limit of {} of memory; type --op-log-interval 100ms (in fio log_avg_msec=100) for a line per interval, or a shorter --time",
                show_bytes(MAX_LOG_BYTES as u64)
            )
        })
    }
}

/// Serial number of the stream's first worker, from 1, over all phases of the job. A stream that reads data back has the numbers of the
/// stream that wrote the data, because fio does both in one thread.
fn first_number(job: &Job, phase: usize, stream: usize) -> u32 {
    let streams = |phase: usize| job.phases.get(phase).map_or(&[][..], |p| &p.streams);
    let back = streams(phase).get(stream).and_then(Stream::reads_back);
    let (phase, stream) = phase.checked_sub(1).zip(back).unwrap_or((phase, stream));
    let before = (0..phase).flat_map(streams).chain(streams(phase).iter().take(stream));
    before.filter(|s| s.reads_back().is_none()).map(|s| s.workers).sum::<u32>() + 1
}

/// The files of a log, checked for writing.
#[derive(Debug)]
pub struct Files {
    all: Vec<(LogFile, Outlet)>,
    rules: Rules,
}

impl Files {
    /// Decides where the logs of a plan go; `reports` are the other output files.
    ///
    /// # Errors
    /// As [`Rules::decide`], and if two files have the same name.
    pub fn decide(plan: &Plan, rules: Rules, reports: &[PathBuf]) -> Result<Self, Failure> {
        let files = report::log_files(plan);
        let mut paths: Vec<PathBuf> = files.iter().map(|file| name::path(&file.path)).collect();
        if !files.is_empty() {
            paths.extend_from_slice(reports);
        }
        let outlets = crate::files::output::decide_all(&paths, &rules)?;
        Ok(Self { all: files.into_iter().zip(outlets).collect(), rules })
    }

    /// Writes the logs. If one fails, the others are still written.
    ///
    /// # Errors
    /// [`Failure::Refused`] with each file that could not be written.
    pub fn write(&self, log: &OpLog) -> Result<(), Failure> {
        let mut refused = Vec::new();
        for (file, outlet) in &self.all {
            if let Err(why) = outlet.write(&file.content(&log.all), &self.rules) {
                refused.push(why.message().to_owned());
            }
        }
        if refused.is_empty() { Ok(()) } else { Err(Failure::Refused(refused.join("; "))) }
    }
}

#[test]
fn blocks_of_workers_share_rows_and_totals_lose_nothing() {
    let mut collector = Collector::new(1, 10);
    for worker in 0..2 {
        for i in 0..200 {
            collector.add(WorkerId { worker, stream: 0 }, &block(i * 10 + 1, i * 10 + 10, 3));
        }
    }
    let so_far = collector.so_far();
    assert_eq!((so_far[0].window_ns, so_far[0].issued[&Kind::Read].ops), (1999, 1200));
    let rows = collector.take_intervals(u64::MAX).map_or(0, |i| {
        assert_eq!(i.rows.iter().map(|r| r.cells[&Kind::Read].ops).sum::<u64>(), 1200);
        assert!(i.merged > 0);
        i.rows.len()
    });
    assert!(rows <= INTERVALS_PER_SECOND as usize, "{rows}");
    let totals = collector.finish();
    assert_eq!(totals[0].kinds[&Kind::Read].latency.count(), 1200);
    assert_eq!(totals[0].kinds[&Kind::Read].bytes, 1200 * 4096);
}

#[test]
fn workers_are_separate_if_requested() {
    use model::job::{Access, Pattern};
    let mut stream = Stream::plain(Access::plain(Pattern::Random, 4096, 100), 1, 2, "null");
    stream.each_worker_ns = Some(20_000_000);
    let phase = Phase { warmup_ns: 0, time_ns: 40_000_000, cooldown_ns: 0, streams: vec![stream] };
    let mut collector = Collector::for_phase(&phase, 10_000_000);
    for (worker, ops) in [(1, 5), (0, 3)] {
        for i in 0..4 {
            collector
                .add(WorkerId { worker, stream: 0 }, &block(i * 10_000_000 + 1, (i + 1) * 10_000_000, ops));
        }
    }
    let lanes = collector.finish().remove(0).lanes;
    let summary = |lane: &LaneEnd| {
        let read = &lane.kinds[&Kind::Read];
        let time_series: Vec<u64> = read.time_series.iter().map(|b| b.count).collect();
        (lane.worker, lane.lane, read.bytes, read.latency.count(), time_series)
    };
    let all: Vec<_> = lanes.iter().map(summary).collect();
    assert_eq!(all, [(0, 0, 12 * 4096, 12, vec![6, 6]), (1, 0, 20 * 4096, 20, vec![10, 10])]);
}

#[test]
fn a_block_cut_off_by_a_failure_keeps_its_operations() {
    let mut collector = Collector::new(1, 10);
    collector.add(WorkerId { worker: 0, stream: 0 }, &block(75, 0, 2));
    let rows = collector.take_intervals(u64::MAX).map(|i| i.rows).unwrap_or_default();
    let spans: Vec<_> = rows.iter().map(|r| (r.start_ns, r.end_ns, r.cells[&Kind::Read].ops)).collect();
    assert_eq!(spans, [(75, 75, 2)]);
}

#[test]
fn intervals_divide_the_periods_of_stop_rules() {
    use model::job::{Access, MinRate, Pattern, PerKind, Quantity, Steady, Stream};
    let plain = Stream::plain(Access::plain(Pattern::Random, 4096, 100), 1, 1, "sync");
    let interval = |time_ms: u64, steady_ms: Option<u64>, least_ms: Option<u64>, stretches_ms: &[u64]| {
        let ns = |ms: u64| ms * 1_000_000;
        let steady = steady_ms.map(|every_ms| Steady {
            quantity: Quantity::Iops,
            slope: false,
            limit: 20.0,
            percent: true,
            window_ns: ns(every_ms) * 3,
            after_ns: 0,
            every_ns: ns(every_ms),
        });
        let least = PerKind { read: 1, write: 1, trim: 1 };
        let min_rate = least_ms.map(|ms| MinRate { quantity: Quantity::Iops, least, every_ns: ns(ms) });
        let mut streams = vec![Stream { steady, min_rate, ..plain.clone() }];
        streams
            .extend(stretches_ms.iter().map(|ms| Stream { each_worker_ns: Some(ns(*ms)), ..plain.clone() }));
        interval_ns(&Phase { warmup_ns: 0, time_ns: ns(time_ms), cooldown_ns: 0, streams }) / 1_000_000
    };
    // A hundredth of the time, from 10 ms to 1 s.
    assert_eq!([500, 30_000, 200_000].map(|ms| interval(ms, None, None, &[])), [10, 300, 1000]);
    // 300 ms does not divide the steady state's 1 s, and 70 ms does not divide a tenth of the minimum rate's 1 s.
    assert_eq!(interval(30_000, Some(1000), None, &[]), 250);
    assert_eq!(interval(7_000, None, Some(1000), &[]), 50);
    assert_eq!(interval(30_000, Some(3000), Some(10_000), &[]), 250);
    // The interval must divide the periods of both rules of a stream: 1 s and 70 ms, or 400 ms and 300 ms.
    assert_eq!(interval(30_000, Some(1000), Some(700), &[]), 10);
    assert_eq!(interval(30_000, Some(400), Some(3000), &[]), 100);
    assert_eq!(interval(90_000, None, None, &[500]), 500);
    assert_eq!(interval(90_000, Some(1500), None, &[1000, 700]), 100);
    // No interval is shorter than 10 ms.
    assert_eq!(interval(30_000, Some(1), None, &[]), 10);
    assert_eq!(interval(30_000, Some(1000), None, &[333]), 10);
    // Streams that report only totals need no common divisor.
    assert_eq!(interval(30_000, None, None, &[0]), 300);
}
