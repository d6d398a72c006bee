//! The profile of a load: figures from rows in the order of their issue, in memory that does not grow with
//! their number.
//!
//! This file has the [`Profiler`], the [`RowSelector`] (`--from`, `--to`, `--task`), and the figures of
//! operations, sizes, flushes and tasks. `timing` has arrivals, depth and time series, `offsets` has
//! sequences and the footprint. The crate `report` prints profiles.

pub(crate) mod offsets;
pub(crate) mod timing;

use model::captured::{
    Flushes, FlushingTask, Latency, Op, Operation, Origin, OtherTasks, Profile, RequestFilter, RowUnit,
    SizeShare, Sizes, TASKS, Task as TaskProfile,
};
use model::histogram::Histogram;
use offsets::{FootprintCounter, SequenceCounter};
use std::collections::{BTreeMap, HashMap};
use timing::{ArrivalCounts, InFlight, TimeSeries};
use trace::row::{Flags, Names, Row, RowKind, Task};

/// Computes a profile.
#[derive(Debug, Default)]
pub struct Profiler {
    selector: RowSelector,
    has_bios: bool,
    /// The counts so far. [`Profiler::finish`] sets the other figures.
    profile: Profile,
    last_issue_ns: u64,
    last_end_ns: u64,
    operations: Operations,
    footprint: FootprintCounter,
    arrivals: ArrivalCounts,
    in_flight: InFlight,
    flushes: FlushCounts,
    time_series: TimeSeries,
    tasks: Tasks,
}

impl Profiler {
    /// Starts the profile of a capture with this header, limited to the rows that the filter selects.
    pub fn new(origin: &Origin, filter: &RequestFilter) -> Self {
        let bytes = origin.partition.as_ref().map(|part| part.sectors.saturating_mul(trace::SECTOR));
        let bytes = bytes.or_else(|| origin.device.as_ref().map(|device| device.bytes));
        let from_ns = filter.from_ns.unwrap_or(0);
        Self {
            selector: RowSelector::new(filter),
            has_bios: origin.unit == RowUnit::Bios,
            last_issue_ns: from_ns,
            footprint: FootprintCounter::new(bytes.filter(|bytes| *bytes > 0)),
            arrivals: ArrivalCounts::new(from_ns),
            time_series: TimeSeries::new(from_ns),
            ..Self::default()
        }
    }

    /// Adds the rows of a block.
    pub fn add(&mut self, rows: &[Row], names: &Names) {
        for row in rows {
            self.add_one(row, names);
        }
    }

    fn add_one(&mut self, row: &Row, names: &Names) {
        if !self.selector.selects(row, names) {
            return;
        }
        let Some(flags) = names.flags_at(row.flags) else { return };
        if flags.kind == RowKind::RequestedFlush {
            self.flushes.count_request(row, flags);
            return;
        }
        let op = flags.op(row.sectors);
        self.profile.requests += 1;
        self.profile.failed += u64::from(flags.error != 0);
        self.profile.without_completion += u64::from(row.latency_ns.is_none());
        self.operations.add(op, row, flags);
        self.footprint.add(op, row);
        self.time_series.add(op, row);
        let worker = names.task_at(row.task).is_some_and(trace::row::Task::is_worker);
        self.profile.of_kernel_workers += u64::from(worker);
        self.last_end_ns = self.last_end_ns.max(row.issue_ns.saturating_add(row.latency_ns.unwrap_or(0)));
        if row.issue_ns < self.last_issue_ns {
            self.profile.late += 1;
        } else {
            self.last_issue_ns = row.issue_ns;
            self.operations.follow(op, row);
            self.arrivals.add(op, row.issue_ns);
            self.in_flight.add(row);
        }
        // The flush of a bio belongs to the task that submitted the bio.
        if self.has_bios && (op == Op::Flush || flags.has_preflush() || (op == Op::Write && flags.has_fua()))
        {
            self.flushes.count_request(row, flags);
        }
        if op == Op::Flush {
            self.flushes.at_device += 1;
        } else {
            self.tasks.add(op, row);
        }
    }

    /// Returns the profile. Its duration is the part of `captured_ns` that the filter selects. Without
    /// `captured_ns`, the capture ends at the last completion.
    pub fn finish(self, captured_ns: Option<u64>, names: &Names) -> Profile {
        let duration_ns = self.selector.duration_ns(captured_ns.unwrap_or(self.last_end_ns));
        let requests = self.profile.requests;
        let (tasks, other_tasks) = self.tasks.finish(requests, names);
        let writes = |task| self.tasks.writes(task);
        Profile {
            duration_ns,
            flushes: self.flushes.finish(names, &writes),
            operations: self.operations.finish(requests, duration_ns),
            footprint: self.footprint.finish(),
            arrivals: self.arrivals.finish(duration_ns),
            depth: self.in_flight.finish(duration_ns),
            time_series: self.time_series.finish(duration_ns),
            tasks,
            other_tasks,
            ..self.profile
        }
    }
}

/// Selects the rows that match a filter.
#[derive(Debug, Default)]
pub struct RowSelector {
    filter: RequestFilter,
    /// Whether each task matches the filter, by task index.
    tasks: Vec<bool>,
}

impl RowSelector {
    /// Creates the selector for a filter.
    pub fn new(filter: &RequestFilter) -> Self {
        Self { filter: filter.clone(), tasks: Vec::new() }
    }

    /// Whether a row is selected.
    pub fn selects(&mut self, row: &Row, names: &Names) -> bool {
        let RequestFilter { from_ns, to_ns, task } = &self.filter;
        if from_ns.is_some_and(|from| row.issue_ns < from) || to_ns.is_some_and(|to| row.issue_ns >= to) {
            return false;
        }
        let Some(word) = task else { return true };
        // Tasks are numbered in order of appearance, so earlier results remain valid.
        let new = names.all_tasks().get(self.tasks.len()..).unwrap_or_default();
        self.tasks.extend(new.iter().map(|task: &Task| task.matches(word)));
        self.tasks.get(row.task as usize).copied().unwrap_or(false)
    }

    /// Returns the part of `captured_ns` that the filter selects.
    fn duration_ns(&self, captured_ns: u64) -> u64 {
        let to = self.filter.to_ns.map_or(captured_ns, |to| to.min(captured_ns));
        to.saturating_sub(self.filter.from_ns.unwrap_or(0))
    }
}

/// Reported percentiles of latencies, with their names.
const LATENCY_PERCENTILES: [(&str, f64); 3] = [("50", 0.5), ("99", 0.99), ("99.9", 0.999)];

/// Summarizes recorded latencies; `None` if there are none.
fn latency(histogram: &Histogram) -> Option<Latency> {
    let percentiles = LATENCY_PERCENTILES
        .iter()
        .map(|(name, q)| ((*name).to_owned(), histogram.supported_quantile_ns(*q)))
        .collect();
    Some(Latency {
        count: histogram.count(),
        min: histogram.min_ns()?,
        mean: histogram.mean_ns()?,
        percentiles,
        max: histogram.max_ns()?,
    })
}

/// Returns `part / whole`; 0 if the whole is 0.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The requests with one [`Op`].
#[derive(Debug, Default)]
struct OperationCounts {
    requests: u64,
    bytes: u64,
    fua: u64,
    read_ahead: u64,
    metadata: u64,
    synchronous: u64,
    sizes: SizeCounts,
    sequence: SequenceCounter,
    latency: Histogram,
    queued: Histogram,
}

/// The requests by their [`Op`].
#[derive(Debug, Default)]
struct Operations {
    by_op: BTreeMap<Op, Box<OperationCounts>>,
}

impl Operations {
    fn add(&mut self, op: Op, row: &Row, flags: &Flags) {
        let counts = self.by_op.entry(op).or_default();
        counts.requests += 1;
        counts.bytes = counts.bytes.saturating_add(row.bytes());
        counts.read_ahead += u64::from(op == Op::Read && flags.has(b'A'));
        counts.metadata += u64::from(flags.has(b'M'));
        counts.synchronous += u64::from(flags.has(b'S'));
        counts.fua += u64::from(op == Op::Write && flags.has_fua());
        counts.sizes.add(row.sectors);
        if let Some(ns) = row.latency_ns {
            counts.latency.record(ns);
        }
        if let Some(ns) = row.queued_ns {
            counts.queued.record(ns);
        }
    }

    /// Adds a read or write to the sequence statistics, in the order of issue. Ignores other operations.
    fn follow(&mut self, op: Op, row: &Row) {
        if let Some(counts) = self.by_op.get_mut(&op).filter(|_| matches!(op, Op::Read | Op::Write)) {
            counts.sequence.add(row);
        }
    }

    fn finish(self, requests: u64, duration_ns: u64) -> Vec<Operation> {
        let seconds = duration_ns as f64 / 1e9;
        let per_s = |figure: f64| if seconds > 0.0 { figure / seconds } else { 0.0 };
        let to_operation = |(op, counts): (Op, Box<OperationCounts>)| Operation {
            op,
            requests: counts.requests,
            share: share(counts.requests, requests),
            bytes: counts.bytes,
            iops: per_s(counts.requests as f64),
            mb_per_s: per_s(counts.bytes as f64 / 1e6),
            fua: counts.fua,
            read_ahead: counts.read_ahead,
            metadata: counts.metadata,
            synchronous: counts.synchronous,
            sizes: counts.sizes.finish(),
            sequence: counts.sequence.finish(),
            latency_ns: latency(&counts.latency),
            queued_ns: latency(&counts.queued),
        };
        self.by_op.into_iter().map(to_operation).collect()
    }
}

/// Maximum number of distinct sizes, more than a kernel generates.
const MAX_DISTINCT_SIZES: usize = 1 << 16;
/// Number of reported frequent sizes.
const MAX_FREQUENT_SIZES: usize = 6;
/// Minimum share of the requests for reporting a size as frequent.
const MIN_FREQUENT_SHARE: f64 = 0.005;
const SIZE_PERCENTILES: [(&str, f64); 4] = [("10", 0.1), ("50", 0.5), ("90", 0.9), ("99", 0.99)];

/// Adds `count` operations of a size to counts by size. Beyond [`MAX_DISTINCT_SIZES`] a new size counts as
/// the next smaller known size.
pub(crate) fn count_size(counts: &mut BTreeMap<u32, u64>, sectors: u32, count: u64) {
    let is_known = counts.len() < MAX_DISTINCT_SIZES || counts.contains_key(&sectors);
    let below = || counts.range(..sectors).next_back().map_or(sectors, |(size, _)| *size);
    let sectors = if is_known { sectors } else { below() };
    *counts.entry(sectors).or_default() += count;
}

/// How often each size occurred, in sectors.
#[derive(Debug, Default)]
struct SizeCounts {
    counts: BTreeMap<u32, u64>,
    /// The last size, and how often it has just occurred in a row. These requests are not in `counts` yet.
    last: (u32, u64),
}

impl SizeCounts {
    fn add(&mut self, sectors: u32) {
        // The previous request often had the same size.
        if sectors == self.last.0 {
            self.last.1 += 1;
            return;
        }
        self.keep();
        self.last = (sectors, 1);
    }

    fn keep(&mut self) {
        let (sectors, count) = std::mem::take(&mut self.last);
        if count > 0 {
            count_size(&mut self.counts, sectors, count);
        }
    }

    /// Returns the size statistics; `None` if no request has a size.
    fn finish(mut self) -> Option<Sizes> {
        self.keep();
        let all: u64 = self.counts.values().sum();
        let (min, max) = (*self.counts.keys().next()?, *self.counts.keys().next_back()?);
        if max == 0 {
            return None;
        }
        let bytes = |sectors: u32| u64::from(sectors) * trace::SECTOR;
        let sum: f64 = self.counts.iter().map(|(size, count)| bytes(*size) as f64 * *count as f64).sum();
        let quantile = |q: f64| {
            let rank = (q * all as f64).ceil().max(1.0) as u64;
            let mut seen = 0;
            let found = self.counts.iter().find(|(_, count)| {
                seen += **count;
                seen >= rank
            });
            found.map_or(0, |(size, _)| bytes(*size))
        };
        let percentiles =
            SIZE_PERCENTILES.iter().map(|(name, q)| ((*name).to_owned(), quantile(*q))).collect();
        let mut frequent: Vec<SizeShare> = self
            .counts
            .iter()
            .map(|(size, count)| SizeShare { bytes: bytes(*size), share: share(*count, all) })
            .collect();
        frequent.sort_by(|a, b| b.share.total_cmp(&a.share));
        frequent.retain(|size| size.share >= MIN_FREQUENT_SHARE);
        frequent.truncate(MAX_FREQUENT_SIZES);
        Some(Sizes { mean: sum / all as f64, min: bytes(min), percentiles, max: bytes(max), frequent })
    }
}

/// Maximum number of reported tasks that requested flushes.
const MAX_FLUSHING_TASKS: usize = 5;

/// Flushes, and who requested them.
#[derive(Debug, Default)]
struct FlushCounts {
    at_device: u64,
    empty: u64,
    with_data: u64,
    /// Latencies of the requested flushes.
    requested: Histogram,
    /// Number of requested flushes, by task index.
    by_task: HashMap<u32, u64>,
}

impl FlushCounts {
    fn count_request(&mut self, row: &Row, flags: &Flags) {
        if row.sectors == 0 {
            self.empty += 1;
        } else if flags.has_preflush() || flags.has_fua() {
            self.with_data += 1;
        }
        if let Some(ns) = row.latency_ns {
            self.requested.record(ns);
        }
        *self.by_task.entry(row.task).or_default() += 1;
    }

    fn finish(self, names: &Names, writes: &dyn Fn(u32) -> u64) -> Flushes {
        let mut tasks: Vec<(u32, u64)> = self.by_task.into_iter().collect();
        tasks.sort_by_key(|(task, requested)| (std::cmp::Reverse(*requested), *task));
        tasks.truncate(MAX_FLUSHING_TASKS);
        let flushing_task = |(task, requested): (u32, u64)| {
            let writes_per_flush = writes(task) as f64 / requested as f64;
            let task = names.task_at(task).cloned().unwrap_or_default();
            FlushingTask { name: task.name, tid: task.tid, requested, writes_per_flush }
        };
        Flushes {
            at_device: self.at_device,
            requested: self.empty,
            with_data: self.with_data,
            requested_ns: latency(&self.requested),
            tasks: tasks.into_iter().map(flushing_task).collect(),
        }
    }
}

/// Minimum number of requests of a task for recording its gaps.
const MIN_GAP_REQUESTS: u64 = 16;
/// Maximum number of tasks whose gaps are recorded.
const MAX_TASKS_WITH_GAPS: usize = 256;
/// A task with a higher share of overlapping requests is not serial.
const MAX_SERIAL_OVERLAP: f64 = 0.05;

/// Requests of a task in one direction, and their bytes.
#[derive(Debug, Default)]
struct Moved {
    requests: u64,
    bytes: u64,
}

impl Moved {
    fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The requests of one task.
#[derive(Debug, Default)]
struct TaskCounts {
    requests: u64,
    reads: Moved,
    writes: Moved,
    timed: u64,
    overlapping: u64,
    last_end_ns: u64,
    thinking: Option<Box<Histogram>>,
}

/// The requests of all tasks, by task index.
#[derive(Debug, Default)]
struct Tasks {
    counts: Vec<TaskCounts>,
    thinking: usize,
}

impl Tasks {
    fn add(&mut self, op: Op, row: &Row) {
        let at = row.task as usize;
        if self.counts.len() <= at {
            self.counts.resize_with(at + 1, TaskCounts::default);
        }
        let task = &mut self.counts[at];
        task.requests += 1;
        match op {
            Op::Read => task.reads.add(row.bytes()),
            Op::Write | Op::Zeroes => task.writes.add(row.bytes()),
            _ => {}
        }
        let Some(latency_ns) = row.latency_ns else { return };
        if task.timed > 0 {
            match row.issue_ns.checked_sub(task.last_end_ns) {
                None => task.overlapping += 1,
                Some(gap) => {
                    if task.thinking.is_none()
                        && task.requests >= MIN_GAP_REQUESTS
                        && self.thinking < MAX_TASKS_WITH_GAPS
                    {
                        self.thinking += 1;
                        task.thinking = Some(Box::default());
                    }
                    if let Some(thinking) = &mut task.thinking {
                        thinking.record(gap);
                    }
                }
            }
        }
        task.timed += 1;
        task.last_end_ns = task.last_end_ns.max(row.issue_ns.saturating_add(latency_ns));
    }

    /// Returns the number of writes of a task.
    fn writes(&self, task: u32) -> u64 {
        self.counts.get(task as usize).map_or(0, |task| task.writes.requests)
    }

    fn finish(&self, requests: u64, names: &Names) -> (Vec<TaskProfile>, OtherTasks) {
        let mut order: Vec<usize> =
            (0..self.counts.len()).filter(|at| self.counts[*at].requests > 0).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(self.counts[*at].requests), *at));
        let rest = order.get(TASKS..).unwrap_or_default();
        let others = OtherTasks {
            tasks: rest.len() as u64,
            requests: rest.iter().map(|at| self.counts[*at].requests).sum(),
        };
        order.truncate(TASKS);
        (order.into_iter().map(|at| self.counts[at].to_task(at as u32, requests, names)).collect(), others)
    }
}

impl TaskCounts {
    fn to_task(&self, number: u32, requests: u64, names: &Names) -> TaskProfile {
        let task = names.task_at(number).cloned().unwrap_or_default();
        let overlapping = (self.timed > 1).then(|| share(self.overlapping, self.timed - 1));
        let one_by_one = overlapping.is_some_and(|share| share < MAX_SERIAL_OVERLAP);
        let thinking = self.thinking.as_deref().filter(|_| one_by_one && !task.is_worker());
        TaskProfile {
            name: task.name,
            tid: task.tid,
            pid: task.pid,
            kernel: task.kernel,
            requests: self.requests,
            share: share(self.requests, requests),
            reads: self.reads.requests,
            read_bytes: self.reads.bytes,
            writes: self.writes.requests,
            write_bytes: self.writes.bytes,
            overlapping,
            think_ns: thinking.and_then(latency),
        }
    }
}

#[cfg(test)]
mod tests;
