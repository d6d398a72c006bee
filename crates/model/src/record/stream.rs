//! Totals of one run: for a stream, for its workers and for each interval of time; and counts of the operations in
//! flight.

use crate::Known;
use crate::histogram::Histogram;
use crate::job::{FoundDepth, IoPriority, Kind, Steadied};
use crate::payload::Written;
use crate::replay::Replayed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Totals of a stream over all its workers and lanes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// Index of the stream in its phase.
    pub stream: usize,
    /// Length of the measured window that was used, in ns.
    pub window_ns: u64,
    /// Integral of the operations in flight over the window, in operations times ns. It is counted separately from
    /// the latencies.
    pub depth_ns: u64,
    /// Totals per kind within the window.
    pub kinds: BTreeMap<Kind, KindEnd>,
    /// All submitted operations, including warm-up and drain. The ledger compares them with the counters of lower
    /// layers.
    pub issued: BTreeMap<Kind, Issued>,
    /// Durations of the calls in the window that only submitted operations and did not wait.
    #[serde(default)]
    pub submit: Histogram,
    /// The last rates and latencies of a stream that ends as soon as one of them is steady; `None` for any other stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steadied: Option<Steadied>,
    /// How compressible and repetitive the written data is, measured on data that was made again with the same
    /// settings; `None` if nothing is written.
    #[serde(default)]
    pub data: Option<Written>,
    /// Totals of each worker on each target within the window; empty unless requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LaneEnd>,
    /// How closely a replay followed its capture; `None` without a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// The replayed load at the device's driver, measured like the capture, or why it is unknown. `None` without a
    /// replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_driver: Option<Known<AtDriver>>,
    /// Reads and writes by priority; empty unless some operations have their own priority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<PriorityEnd>,
    /// Operations completed while the load of all hosts ran at once. Only these count in rates.
    /// `None` if there is one host, or if all hosts ran equally long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<Common>,
}

/// Operations of one kind and priority within the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PriorityEnd {
    /// Kind of operation.
    pub kind: Kind,
    /// The priority given to the kernel for the operations or their thread; `None` if neither has one.
    pub priority: Option<IoPriority>,
    /// Latency from the submission to the completion.
    pub latency: Histogram,
}

impl PriorityEnd {
    /// Adds operations to the entry with the same kind and priority, or as a new entry.
    pub fn add(all: &mut Vec<Self>, one: &Self) {
        match all.iter_mut().find(|of| of.kind == one.kind && of.priority == one.priority) {
            Some(same) => same.latency.merge(&one.latency),
            None => all.push(one.clone()),
        }
    }
}

/// Operations completed while the load of all hosts ran at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Time in ns during which the load of all hosts ran at once.
    pub window_ns: u64,
    /// Operations and bytes per kind.
    pub kinds: BTreeMap<Kind, [u64; 2]>,
}

/// Requests of a load at the driver of its device, from issue to completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AtDriver {
    /// Mean number of requests in flight, from the first issue to the last completion; `None` if completions are
    /// missing.
    pub depth: Option<f64>,
    /// Number of requests by kind, and their latencies.
    pub kinds: BTreeMap<Kind, (u64, Histogram)>,
}

/// Totals of a worker on one target; on all targets if the worker does not count them separately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneEnd {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of the target if each target has a lane, or if operations are counted separately by target; otherwise the
    /// index of the worker's only lane, 0.
    pub lane: u32,
    /// Totals per kind within the window.
    pub kinds: BTreeMap<Kind, LaneKind>,
}

/// Totals of the operations of one kind in a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneKind {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies, as in [`KindEnd::latency`].
    pub latency: Histogram,
    /// Time series in intervals of equal length from the start of the window; the last one may be shorter.
    #[serde(default, rename = "course", skip_serializing_if = "Vec::is_empty")]
    pub time_series: Vec<Bucket>,
}

stored_as_list! {
    /// Latencies in an interval.
    #[derive(Copy)]
    Bucket {
        /// Number of operations.
        count: u64,
        /// Smallest latency in ns; 0 without operations.
        min_ns: u64,
        /// Largest latency in ns.
        max_ns: u64,
        /// Sum of the latencies in ns.
        sum_ns: u64,
        /// Sum of the squares of the latencies, in ns squared.
        sum_of_squares: f64,
    }
}

impl Bucket {
    /// Summarizes the latencies of a histogram. Everything is exact except `sum_of_squares`, which uses the middle of each
    /// of the histogram's buckets.
    pub fn from_histogram(latency: &Histogram) -> Self {
        Self {
            count: latency.count(),
            min_ns: latency.min_ns().unwrap_or(0),
            max_ns: latency.max_ns().unwrap_or(0),
            sum_ns: latency.sum_ns(),
            sum_of_squares: latency.counts().map(|(ns, count)| count as f64 * (ns as f64).powi(2)).sum(),
        }
    }

    /// Adds up two buckets.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let min_ns = match (self.count, other.count) {
            (0, _) => other.min_ns,
            (_, 0) => self.min_ns,
            _ => self.min_ns.min(other.min_ns),
        };
        Self {
            count: self.count.saturating_add(other.count),
            min_ns,
            max_ns: self.max_ns.max(other.max_ns),
            sum_ns: self.sum_ns.saturating_add(other.sum_ns),
            sum_of_squares: self.sum_of_squares + other.sum_of_squares,
        }
    }

    /// Returns the mean of the latencies in ns; 0 without operations.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64
    }

    /// Returns the standard deviation of the latencies in ns; 0 without operations.
    pub fn deviation_ns(&self) -> f64 {
        (self.sum_of_squares / self.count.max(1) as f64 - self.mean_ns().powi(2)).max(0.0).sqrt()
    }
}

/// Totals of one kind of operation within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindEnd {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies of the operations that moved all their bytes: in an open loop from the intended start, otherwise
    /// from the submission. The count of the histogram is the number of these operations.
    pub latency: Histogram,
    /// The two parts of the latency in an open loop; `None` in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenLoop>,
}

/// The two parts of latency in an open loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Service time, from the submission to the completion.
    pub service: Histogram,
    /// Lateness, from the intended start to the submission.
    pub lateness: Histogram,
}

/// All submitted operations of one kind, including warm-up and drain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// Operations that completed without an error, even if they moved fewer bytes than requested.
    pub ops: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Errors by errno.
    pub errors: BTreeMap<i32, u64>,
    /// Operations that moved fewer bytes than requested.
    pub short: u64,
    /// Longest time from the submission to the completion in ns.
    pub max_ns: u64,
}

/// Entry of [`WorkerEnd::used`] if the data of the next write is made while the queue is full.
pub const PREPARES_AHEAD: &str = "data of the next write made while waiting";

/// The cost of a worker, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// Index of the worker.
    pub worker: u32,
    /// Index of the worker's stream.
    pub stream: usize,
    /// Time between the worker's first and last timestamp, in ns.
    pub wall_ns: u64,
    /// CPU time in user space during `wall_ns`, in ns.
    pub user_ns: u64,
    /// CPU time in the kernel during `wall_ns`, in ns.
    pub system_ns: u64,
    /// Voluntary and involuntary context switches.
    pub switches: [u64; 2],
    /// Page faults without and with I/O; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<[u64; 2]>,
    /// Cycles and instructions during `wall_ns`, or why they were not counted.
    #[serde(default = "not_asked")]
    pub counted: Known<[u64; 2]>,
    /// The depth that the worker found; `None` if it did not search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<FoundDepth>,
    /// Distributions of the operations in flight and of the operations per call; `None` unless a format needs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_counts: Option<DepthCounts>,
    /// Number of iterations of the hot loop. Operations per iteration show how busy the loop was.
    #[serde(rename = "turns")]
    pub loop_iterations: u64,
    /// Completed operations, including warm-up and drain.
    #[serde(default)]
    pub ops: u64,
    /// Time that the worker was ready to run but waited for a CPU, in ns, or why it is unknown.
    #[serde(default = "not_asked_for_waiting")]
    pub ready_ns: Known<u64>,
    /// Bytes and calls that the kernel charged to the worker during `wall_ns`, or why they are unknown.
    #[serde(default = "not_asked_for_io")]
    pub io: Known<ThreadIo>,
    /// Features that the engine used, such as `registered buffers`.
    pub used: Vec<String>,
    /// Features that the kernel refused, with the reason.
    pub fallbacks: Vec<String>,
    /// Why the worker ended early; `None` if it did not.
    pub error: Option<String>,
}

impl Default for WorkerEnd {
    fn default() -> Self {
        Self {
            worker: 0,
            stream: 0,
            wall_ns: 0,
            user_ns: 0,
            system_ns: 0,
            switches: [0, 0],
            faults: None,
            counted: not_asked(),
            depth: None,
            depth_counts: None,
            loop_iterations: 0,
            ops: 0,
            ready_ns: not_asked_for_waiting(),
            io: not_asked_for_io(),
            used: Vec::new(),
            fallbacks: Vec::new(),
            error: None,
        }
    }
}

/// Returns the value of `counted` for files without this field.
fn not_asked() -> Known<[u64; 2]> {
    Err("cycles and instructions were not requested".into())
}

/// Returns the value of `ready_ns` for files without this field.
fn not_asked_for_waiting() -> Known<u64> {
    Err("the time waiting for a CPU was not requested".into())
}

/// Returns the value of `io` for files without this field.
fn not_asked_for_io() -> Known<ThreadIo> {
    Err("the kernel's I/O counts of each worker were not requested".into())
}

/// The kernel's counters for a thread (`/proc/thread-self/io`). In `read_bytes` and `write_bytes`, reads and direct
/// writes count when they are submitted to a block device, other writes when they make a clean page dirty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadIo {
    /// Bytes that system calls of the read family moved.
    pub rchar: u64,
    /// Bytes that system calls of the write family moved.
    pub wchar: u64,
    /// System calls of the read family.
    pub syscr: u64,
    /// System calls of the write family.
    pub syscw: u64,
    /// Bytes submitted to block devices to be read.
    pub read_bytes: u64,
    /// Bytes submitted to block devices to be written, and bytes of pages made dirty.
    pub write_bytes: u64,
    /// Bytes of dirty pages that were dropped before they were written.
    pub cancelled_write_bytes: u64,
}

impl ThreadIo {
    /// Parses the text of `/proc/thread-self/io`.
    ///
    /// # Errors
    ///
    /// The line that is missing or is not a number.
    pub fn parse(text: &str) -> Known<Self> {
        let number = |key: &str| -> Known<u64> {
            let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
            let line = line.ok_or_else(|| format!("the kernel shows no {key} for a thread"))?;
            line.trim().parse().map_err(|_| format!("{key} is not a number: '{}'", line.trim()))
        };
        Ok(Self {
            rchar: number("rchar")?,
            wchar: number("wchar")?,
            syscr: number("syscr")?,
            syscw: number("syscw")?,
            read_bytes: number("read_bytes")?,
            write_bytes: number("write_bytes")?,
            cancelled_write_bytes: number("cancelled_write_bytes")?,
        })
    }

    /// Returns the sum of two counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    /// Returns the counts since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.combine(earlier, u64::saturating_sub)
    }

    fn combine(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            rchar: with(self.rchar, other.rchar),
            wchar: with(self.wchar, other.wchar),
            syscr: with(self.syscr, other.syscr),
            syscw: with(self.syscw, other.syscw),
            read_bytes: with(self.read_bytes, other.read_bytes),
            write_bytes: with(self.write_bytes, other.write_bytes),
            cancelled_write_bytes: with(self.cancelled_write_bytes, other.cancelled_write_bytes),
        }
    }
}

/// A part of a run's time series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervals {
    /// The intervals of all streams, for each stream in order of time.
    pub rows: Vec<Interval>,
    /// Number of intervals that were merged into a neighbour to keep the file small; 0 if none.
    pub merged: u64,
}

/// One interval of a stream, all its workers together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Index of the stream in its phase.
    #[serde(rename = "s")]
    pub stream: usize,
    /// Start in ns since the run began.
    #[serde(rename = "a")]
    pub start_ns: u64,
    /// End in ns since the run began.
    #[serde(rename = "b")]
    pub end_ns: u64,
    /// Integral of the operations in flight over the interval, in operations times ns.
    #[serde(rename = "d")]
    pub depth_ns: u64,
    /// Completed operations by kind.
    #[serde(rename = "k")]
    pub cells: BTreeMap<Kind, Cell>,
}

stored_as_list! {
    /// Operations of one kind that completed in an interval.
    #[derive(Copy, Eq)]
    Cell {
        /// Number of operations.
        ops: u64,
        /// Bytes moved.
        bytes: u64,
        /// Median latency in ns.
        p50_ns: u64,
        /// 99th percentile of the latency in ns.
        p99_ns: u64,
        /// Largest latency in ns.
        max_ns: u64,
    }
}

/// Number of columns in each distribution of [`DepthCounts`].
pub const COLUMNS: usize = 7;

/// Distributions of a worker's operations in flight, operations per submission, and completions seen together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepthCounts {
    /// Number of operations, by how many were in flight just after their submission: 1, 2 to 3, 4 to 7, 8 to 15, 16 to 31, 32 to 63, 64 and
    /// more.
    pub level: [u64; COLUMNS],
    /// Number of submissions, by how many operations each submitted: 0, 1 to 4, 5 to 8, 9 to 16, 17 to 32, 33 to 64, 65
    /// and more.
    pub submit: [u64; COLUMNS],
    /// Number of times that the worker collected completions, by how many it collected; the columns are those of `submit`.
    pub complete: [u64; COLUMNS],
}

impl DepthCounts {
    /// Counts of zero.
    pub const NONE: Self = Self { level: [0; COLUMNS], submit: [0; COLUMNS], complete: [0; COLUMNS] };

    /// Counts a submission of `operations` operations, after which `in_flight` are in flight.
    pub fn submitted(&mut self, operations: u32, in_flight: u32) {
        self.level[level_column(in_flight)] += u64::from(operations);
        self.submit[call_column(operations)] += 1;
    }

    /// Counts completions that were seen together.
    pub fn completed(&mut self, operations: u32) {
        self.complete[call_column(operations)] += 1;
    }

    /// Returns the sum of two counts.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let add =
            |a: [u64; COLUMNS], b: [u64; COLUMNS]| std::array::from_fn(|at| a[at].saturating_add(b[at]));
        Self {
            level: add(self.level, other.level),
            submit: add(self.submit, other.submit),
            complete: add(self.complete, other.complete),
        }
    }
}

/// Returns the column for this many operations in flight. The lower bounds of the columns are powers of two.
fn level_column(in_flight: u32) -> usize {
    (in_flight.max(1).ilog2() as usize).min(COLUMNS - 1)
}

/// Returns the column for a number of operations. The upper bounds are 0, and powers of two from 4 on.
fn call_column(operations: u32) -> usize {
    match operations {
        0 => 0,
        1..=4 => 1,
        more => ((more - 1).ilog2() as usize).min(COLUMNS - 1),
    }
}

#[test]
fn added_buckets_equal_one_bucket() {
    let bucket = |latencies: &[u64]| {
        let mut histogram = Histogram::new();
        for ns in latencies {
            histogram.record(*ns);
        }
        Bucket::from_histogram(&histogram)
    };
    let (one, other) = (bucket(&[10, 20]), bucket(&[30]));
    assert_eq!(one.plus(other), bucket(&[10, 20, 30]));
    assert_eq!((one.plus(Bucket::default()), Bucket::default().plus(other)), (one, other));
    assert_eq!((one.mean_ns(), one.deviation_ns()), (15.0, 5.0));
    assert_eq!((Bucket::default().mean_ns(), Bucket::default().deviation_ns()), (0.0, 0.0));
}

#[test]
fn buckets_and_cells_are_stored_as_lists() {
    let bucket = Bucket { count: 1, min_ns: 2, max_ns: 3, sum_ns: 4, sum_of_squares: 5.0 };
    let cell = Cell { ops: 1, bytes: 2, p50_ns: 3, p99_ns: 4, max_ns: 5 };
    let json = serde_json::to_string(&(bucket, cell)).unwrap_or_default();
    assert_eq!(json, "[[1,2,3,4,5.0],[1,2,3,4,5]]");
    assert_eq!(serde_json::from_str(&json).ok(), Some((bucket, cell)));
}

#[test]
fn incomplete_io_counts_are_rejected() {
    let text =
        "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
    let io = ThreadIo::parse(text).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((io.rchar, io.syscw, io.read_bytes, io.cancelled_write_bytes), (1, 4, 5, 7));
    assert_eq!(io.plus(io).since(io), io);
    for (text, why) in [("rchar: 1\n", "no wchar"), (&text.replace('4', "four"), "syscw is not a number")] {
        assert!(ThreadIo::parse(text).is_err_and(|w| w.contains(why)), "{why}");
    }
}

#[test]
fn older_records_have_no_io_count_of_workers() {
    let mut old = serde_json::to_value(WorkerEnd::default()).unwrap_or_default();
    old.as_object_mut().map(|fields| fields.remove("io"));
    let read: WorkerEnd = serde_json::from_value(old).unwrap_or_else(|e| panic!("{e}"));
    assert!(read.io.is_err_and(|why| why.contains("not requested")));
}

#[test]
fn depth_columns_equal_those_of_fio() {
    let bounds = [1, 2, 3, 4, 7, 8, 31, 32, 63, 64, 1000];
    assert_eq!(bounds.map(level_column), [0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6]);
    let bounds = [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 1000];
    assert_eq!(bounds.map(call_column), [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
}

#[test]
fn depth_counts_are_added() {
    let mut counts = DepthCounts::default();
    counts.submitted(8, 8);
    counts.completed(1);
    counts.submitted(1, 8);
    let twice = counts.plus(&counts);
    assert_eq!((twice.level[3], twice.submit[2], twice.submit[1], twice.complete[1]), (18, 2, 2, 2));
}
