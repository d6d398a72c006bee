//! A capture file as `fathom show` presents it: its origin, its completeness, and the profile of the load over
//! time.
//!
//! The crate `capture` computes these values, the crate `report` renders them.

use crate::Known;
use crate::machine::Layer;
use crate::units::{show_bytes, show_count, show_counted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of capture files and of the JSON of `fathom show`.
pub const FORMAT: u32 = 1;

/// A capture file, as `fathom show` presents it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Captured {
    /// Version of this JSON: [`FORMAT`].
    pub format: u32,
    /// Path of the file, as typed.
    pub file: String,
    /// The header: the captured device or file, when the capture began, and on which host.
    pub origin: Origin,
    /// How the capture ended; `None` if the file has no trailer.
    pub ending: Option<Ending>,
    /// Why the file could not be read to its end: cut off or damaged, and at which byte. `None` if it was read
    /// completely.
    pub damage: Option<String>,
    /// Whether the capture has all requests that the device completed.
    pub completeness: Completeness,
    /// The time range and the task that the profile is limited to; `None` for all requests.
    #[serde(rename = "restricted")]
    pub filter: Option<RequestFilter>,
    /// The profile of the captured requests.
    pub profile: Profile,
}

/// The header of a capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Start time, RFC 3339; empty if a foreign trace does not state it.
    pub started: String,
    /// The path that the user named: the captured device or file, or the file of an imported trace.
    #[serde(rename = "asked")]
    pub named_path: String,
    /// The format of an imported trace, such as `fio iolog v3`; `None` for a capture made by fathom.
    pub imported: Option<String>,
    /// The captured block device, without the devices above or below it; `None` for an imported
    /// trace.
    pub device: Option<Layer>,
    /// The captured part of the device if the user named a partition; `None` for the whole device.
    pub partition: Option<Partition>,
    /// What one row of the capture file describes.
    pub unit: RowUnit,
    /// Clock of the timestamps: `mono` for CLOCK_MONOTONIC.
    pub clock: String,
    /// Whether rows include the time that a request waited in the I/O scheduler before it was issued.
    pub queue: bool,
    /// Id of the only process or thread whose requests were kept; `None` for all.
    pub pid: Option<u32>,
    /// Bytes of each CPU's buffer in the kernel; 0 for an imported trace.
    pub buffer_bytes: u64,
    /// Name of the host.
    pub host: String,
    /// Name, release and version, as `uname -srv` prints them.
    pub kernel: String,
    /// Number of CPUs that fathom could run on while capturing.
    pub cpus: u32,
    /// Version of fathom.
    pub version: String,
    /// The device's counters (`stat`) at the beginning, word for word; `None` for an imported
    /// trace.
    pub stat: Option<Known<String>>,
}

/// Position of a partition on its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Kernel name.
    pub name: String,
    /// First sector of the partition, in units of 512 bytes. Sector numbers in the rows count from here.
    pub first_sector: u64,
    /// Length in sectors of 512 bytes.
    pub sectors: u64,
}

/// What one row of a capture file describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RowUnit {
    /// A request that was issued to the driver, after splitting and merging.
    #[default]
    Requests,
    /// A bio as it was queued, for devices without requests (zram, device mapper, RAID).
    Bios,
    /// An operation of a program, as logged by another tool.
    Operations,
}

/// The trailer of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why the capture ended: `--time`, `a signal`, or the end of an imported trace.
    pub why: String,
    /// Time in ns from the start to the last reading of counters. For an imported trace, to the last completion.
    pub duration_ns: u64,
    /// Events that were read from the kernel.
    pub events: u64,
    /// Events that the kernel overwrote before fathom read them, according to the kernel's count.
    pub lost_events: u64,
    /// Number of rows in the file.
    pub rows: u64,
    /// Number of requests with a completion but no issue: they were in flight at the beginning, or
    /// their issue event was lost.
    pub without_issue: u64,
    /// Requests with an issue but no completion.
    pub without_completion: u64,
    /// Requests that the driver gave back to the queue.
    pub requeued: u64,
    /// Requests that were left out because they do not belong to the process or thread [`Origin::pid`]. Includes `of_unknown`.
    pub of_others: u64,
    /// Requests that were left out because their process is unknown.
    pub of_unknown: u64,
    /// Requests that completed between the first and the last reading of the device's counters.
    pub completed: Completed,
    /// The device's counters at the end; `None` for an imported trace.
    pub stat: Option<Known<String>>,
    /// Number of a program's operations that began or ended inside a sector. Such a sector counts as a whole one.
    #[serde(default)]
    pub within_sectors: u64,
    /// Counts of the capture of selected files; `None` if the capture kept the requests of all files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_files: Option<OfFiles>,
}

/// Requests that completed between the first and the last reading of the device's counters, according to the captured
/// events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// Requests that the kernel counts as reads.
    pub reads: u64,
    /// Writes that carried data.
    pub writes: u64,
    /// Flushes without data, which the kernel also counts as writes (iostats documentation).
    pub empty_flushes: u64,
    /// Requests that the kernel counts as discards.
    pub discards: u64,
    /// Flushes that the device received.
    pub flushes: u64,
    /// Requests that completed while the device's counters were being read. The counters may or may not include them.
    pub at_edges: u64,
}

/// Whether the capture has all requests that the device completed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// `complete`, `incomplete` or `unknown`.
    pub word: String,
    /// The same answer as a sentence with the figures.
    pub sentence: String,
    /// Kernel count and captured count for each kind of request. Empty if nothing could be compared with counters.
    pub counters: Vec<Counter>,
}

/// A kernel counter and the captured count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// `reads`, `writes`, `discards`, `flushes`.
    pub name: String,
    /// Number of requests that the kernel counted.
    pub counted: u64,
    /// Number of requests that the capture has.
    pub captured: u64,
}

/// Selects the requests of a profile by time and task. A field that is `None` does not limit them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFilter {
    /// Start of the range, in ns since the capture began.
    pub from_ns: Option<u64>,
    /// End of the range, excluded, in ns since the capture began.
    pub to_ns: Option<u64>,
    /// Name of a task, or the id of a thread or process.
    pub task: Option<String>,
}

enum_of_words! {
    /// The kind of a request.
    #[derive(PartialOrd, Ord, Hash)]
    Op {
        /// Moves data from the device.
        Read = "read",
        /// Moves data to the device.
        Write = "write",
        /// Informs the device that data is no longer needed (trim).
        Discard = "discard",
        /// Writes zeroes without transferring them.
        Zeroes = "zeroes",
        /// Flushes the device's cache.
        Flush = "flush",
        /// Other requests: commands to the device, operations on zones.
        Other = "other",
    }
}

impl Op {
    /// All kinds, in display order.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::Discard, Self::Zeroes, Self::Flush, Self::Other];
}

/// The profile of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Number of requests, including flushes that reached the device.
    pub requests: u64,
    /// Duration of the profiled part, in ns.
    pub duration_ns: u64,
    /// One entry for each kind of request that occurs.
    pub operations: Vec<Operation>,
    /// Distinct bytes that were touched.
    pub footprint: Footprint,
    /// When requests were issued.
    pub arrivals: Vec<Arrivals>,
    /// Requests in flight; `None` if no completion is known.
    pub depth: Option<Depth>,
    /// Flushes that reached the device, and the tasks that requested them.
    pub flushes: Flushes,
    /// The time series; `None` without requests.
    #[serde(rename = "course")]
    pub time_series: Option<LoadSeries>,
    /// Tasks with the most requests first; at most [`TASKS`].
    pub tasks: Vec<Task>,
    /// Tasks that are not in `tasks`, and their requests.
    pub other_tasks: OtherTasks,
    /// Requests of kernel workers. The process that wrote the data is unknown.
    pub of_kernel_workers: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests without a completion in the file.
    pub without_completion: u64,
    /// Requests that completed so late that the file has them after requests that were issued later. Arrivals, depth and sequences exclude
    /// them.
    pub late: u64,
}

/// Maximum number of listed tasks.
pub const TASKS: usize = 20;

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    /// Kind of the requests.
    pub op: Op,
    /// Number of requests.
    pub requests: u64,
    /// Share of this kind in all requests.
    pub share: f64,
    /// Bytes that the requests moved or discarded.
    pub bytes: u64,
    /// Requests per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Requests with FUA, which are stable when they complete.
    pub fua: u64,
    /// Requests marked as read-ahead.
    pub read_ahead: u64,
    /// Requests marked as metadata.
    pub metadata: u64,
    /// Requests marked as synchronous: a process waits for them.
    pub synchronous: u64,
    /// Sizes; `None` for kinds without a size.
    pub sizes: Option<Sizes>,
    /// Sequential and random requests; `None` for kinds other than reads and writes.
    pub sequence: Option<Sequence>,
    /// Time from issue to completion; `None` if no completion is known.
    pub latency_ns: Option<Latency>,
    /// Time from insertion into the scheduler to the issue; `None` if the capture did not record it.
    pub queued_ns: Option<Latency>,
}

/// Sizes of requests, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sizes {
    /// Arithmetic mean.
    pub mean: f64,
    /// The smallest value.
    pub min: u64,
    /// Sizes by percentile: 10, 50, 90, 99.
    pub percentiles: BTreeMap<String, u64>,
    /// The largest value.
    pub max: u64,
    /// The most frequent sizes, at most six, each with at least 0.5 % of the requests.
    pub frequent: Vec<SizeShare>,
}

/// A size of requests and its share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeShare {
    /// Size in bytes; a multiple of 512.
    pub bytes: u64,
    /// Share of the requests that have this size.
    pub share: f64,
}

/// Sequences of requests. A request is sequential if it begins where one of the last 64 requests of its direction
/// ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sequence {
    /// Share of the requests that are sequential.
    pub share: f64,
    /// Share of all bytes that sequential requests moved.
    pub byte_share: f64,
    /// Number of sequential runs. A run has two or more requests; each request after the first begins where an earlier request ended.
    pub runs: u64,
    /// Requests per sequential run: mean, median and maximum.
    pub run_requests: [f64; 3],
    /// Bytes per sequential run: mean, median and maximum.
    pub run_bytes: [f64; 3],
    /// Number of concurrent sequential runs that have three or more requests: mean over all requests, and maximum.
    pub streams: [f64; 2],
}

/// Latencies or gaps in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Number of values.
    pub count: u64,
    /// The smallest value.
    pub min: u64,
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// Values by percentile: 50, 99, 99.9. `None` for a percentile with fewer than ten values above
    /// it.
    pub percentiles: BTreeMap<String, Option<u64>>,
    /// The largest value.
    pub max: u64,
}

/// Distinct bytes that were touched by reads and writes, in blocks. Requests that write zeroes count as writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Footprint {
    /// Bytes per block. A partly touched block counts completely.
    pub block_bytes: u64,
    /// Whether the byte counts are lower bounds, because there were too many blocks to distinguish.
    #[serde(rename = "is_least")]
    pub is_lower_bound: bool,
    /// Distinct bytes of reads and writes together.
    pub bytes: u64,
    /// Distinct bytes that were read.
    pub read_bytes: u64,
    /// Distinct bytes that were written.
    pub write_bytes: u64,
    /// Bytes from the first to the last touched byte.
    pub span_bytes: u64,
    /// Mean number of requests to each touched block.
    pub reuse: f64,
    /// Smallest share of the device that received half of the reads and writes, in steps of 1/1024.
    /// `None` if the size of the device is unknown, or without reads and writes.
    #[serde(rename = "half_in")]
    pub half_of_requests_in: Option<f64>,
}

/// When requests were issued.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrivals {
    /// The kind of requests: `all`, `read` or `write`.
    #[serde(rename = "of")]
    pub requests_of: String,
    /// Time between consecutive requests.
    pub gap_ns: Latency,
    /// Index of dispersion of counts, Var N(t) / E N(t), in intervals of 10 ms: 1 for random arrivals, higher for
    /// bursts, lower for even arrivals. `None` with fewer than ten intervals.
    pub idc_10ms: Option<f64>,
    /// Index of dispersion of counts, Var N(t) / E N(t), in intervals of 100 ms; `None` with fewer than ten
    /// intervals.
    pub idc_100ms: Option<f64>,
}

/// Requests in flight at the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Depth {
    /// Mean over the whole time.
    pub mean: f64,
    /// Mean over the time with at least one request in flight.
    pub busy_mean: f64,
    /// Maximum number of requests in flight.
    pub max: u64,
    /// Shares of the time at each depth.
    pub shares: Vec<DepthShare>,
}

/// The share of the time during which the number of requests in flight was within a range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DepthShare {
    /// Smallest number of the range.
    pub from: u64,
    /// Largest number of the range.
    pub to: u64,
    /// Share of the time.
    pub share: f64,
}

/// Flushes that reached the device, and the tasks that requested them. The kernel may merge concurrent requests
/// into one flush.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Flushes {
    /// Flushes that the device received.
    pub at_device: u64,
    /// Requested flushes without data.
    #[serde(rename = "asked")]
    pub requested: u64,
    /// Writes with data and the flag PREFLUSH (flush before the write) or FUA (the write is stable when it completes).
    pub with_data: u64,
    /// Time from queueing a requested flush to its completion; `None` if no such flush completed.
    #[serde(rename = "asked_ns")]
    pub requested_ns: Option<Latency>,
    /// The tasks that requested the most flushes, most first; at most five.
    #[serde(rename = "owners")]
    pub tasks: Vec<FlushingTask>,
}

/// A task that requested flushes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlushingTask {
    /// Name in the kernel, such as `postgres`.
    pub name: String,
    /// Thread id.
    pub tid: u32,
    /// Number of flushes that the task requested.
    #[serde(rename = "asked")]
    pub requested: u64,
    /// Number of the task's writes with data per requested flush.
    #[serde(rename = "writes_each")]
    pub writes_per_flush: f64,
}

/// Requests of one task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Task {
    /// Kernel name of up to 15 characters (comm).
    pub name: String,
    /// Thread id.
    pub tid: u32,
    /// Process id; `None` if the process had ended when fathom looked it up.
    pub pid: Option<u32>,
    /// Whether the task is a kernel thread.
    pub kernel: bool,
    /// Issued requests of all kinds except flushes.
    pub requests: u64,
    /// Share of this task in all requests.
    pub share: f64,
    /// Number of reads.
    pub reads: u64,
    /// Sum of the sizes of the reads in bytes.
    pub read_bytes: u64,
    /// Number of writes, including requests that write zeroes.
    pub writes: u64,
    /// Bytes written, including zeroes.
    pub write_bytes: u64,
    /// Share of the requests that were issued while another request of the task was in flight; `None` if fewer than
    /// two completions are known.
    pub overlapping: Option<f64>,
    /// Time from the completion of a request to the issue of the next one. `None` if 5 % or more of
    /// the task's requests overlap, for a task with fewer than 16 requests, and for kernel workers. At most 256 tasks
    /// have this figure.
    pub think_ns: Option<Latency>,
}

/// Tasks that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OtherTasks {
    /// Number of tasks.
    pub tasks: u64,
    /// Number of requests of these tasks.
    pub requests: u64,
}

/// Time series of a load, in intervals of equal length from the beginning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadSeries {
    /// Length of an interval in ns.
    pub step_ns: u64,
    /// Number of intervals, at most 256.
    pub steps: usize,
    /// Time series for each kind of request that occurs.
    #[serde(rename = "of")]
    pub kinds: Vec<KindSeries>,
    /// Offsets of reads and writes over time; `None` without reads and writes. Omitted from the JSON, because
    /// `--events` prints every offset.
    #[serde(skip)]
    pub places: Option<Places>,
}

/// Time series of one kind of request: a number for each interval, by time of issue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindSeries {
    /// Kind of the requests.
    pub op: Op,
    /// Number of requests.
    pub requests: Vec<u64>,
    /// Bytes that the requests moved or discarded.
    pub bytes: Vec<u64>,
    /// Mean latency in ns; `None` if no latency is known.
    pub latency_mean_ns: Vec<Option<f64>>,
}

/// The offsets of the first bytes of requests, in rows of equal size from the first touched byte to the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// Offset of the first row.
    pub first_byte: u64,
    /// Bytes covered by a row.
    pub row_bytes: u64,
    /// Number of rows, at most 96.
    pub rows: usize,
    /// The places of reads and of writes, each list ordered by interval and then by row. A kind without requests is
    /// left out.
    pub kinds: Vec<(Op, Vec<Place>)>,
}

/// Requests of one interval whose first byte is in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the interval.
    pub step: usize,
    /// Index of the row.
    pub row: usize,
    /// Number of requests; never 0.
    pub requests: u64,
}

/// The requests that a capture of selected files kept. A request is kept if it touches only places
/// on the device that belonged to the files at the beginning or at the end of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfFiles {
    /// Number of files at the end.
    pub files: u64,
    /// Number of contiguous ranges of the files at the end.
    pub stretches: u64,
    /// Bytes of the device that belonged to the files at the end.
    pub bytes: u64,
    /// Bytes of the files that had no range on the device at the end: inside inodes, or not
    /// allocated yet.
    pub unplaced_bytes: u64,
    /// Kept requests that touch a range that belonged to the files only at the beginning or only at the end. At the
    /// other time the range may have belonged to another file.
    pub moved: u64,
    /// Excluded requests that touch none of the files.
    pub elsewhere: u64,
    /// Excluded requests that touch both the files and other parts of the device.
    pub partly: u64,
    /// Excluded requests without an offset: flushes.
    pub without_place: u64,
}

impl OfFiles {
    /// Describes the kept and the excluded requests.
    pub fn describe(&self) -> String {
        let mut out = format!(
            "Only requests to {} ({} in {}). Excluded: {} to other places, {} partly to other places and {} without an offset (flushes)",
            show_counted(self.files, "file"),
            show_bytes(self.bytes),
            show_counted(self.stretches, "contiguous range"),
            show_counted(self.elsewhere, "request"),
            show_count(self.partly as f64),
            show_count(self.without_place as f64),
        );
        if self.moved > 0 {
            let verb = if self.moved == 1 { "touches" } else { "touch" };
            out += &format!(
                "; {} {verb} a range that belonged to the files only at the beginning or only at the end of the capture",
                show_counted(self.moved, "kept request")
            );
        }
        if self.unplaced_bytes > 0 {
            let bytes = show_bytes(self.unplaced_bytes);
            out += &format!("; {bytes} of the files are inside inodes or not allocated yet");
        }
        out
    }
}

#[test]
fn one_kept_request_is_described_in_the_singular() {
    let moved = |moved| OfFiles { moved, ..OfFiles::default() }.describe();
    assert!(moved(1).contains("; 1 kept request touches a range"), "{}", moved(1));
    assert!(moved(2).contains("; 2 kept requests touch a range"), "{}", moved(2));
}
