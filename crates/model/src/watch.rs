//! One interval of `fathom watch`: devices, their load, and processes. `docs/reference/watch.md` documents the JSON
//! keys.
//!
//! `None` means that a value is unknown, or that its divisor is zero. Zero is a measured zero.

use crate::Known;
use crate::evidence::BlockStat;
use crate::history::Entry;
use crate::machine::{Capacity, Direction, LayerKind, SameBy};
use serde::Serialize;

/// One interval of `fathom watch`.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// Whether this is the first interval of the call.
    pub is_first: bool,
    /// Whether column headings precede the interval in the text output.
    pub has_headings: bool,
    /// End of the interval, RFC 3339.
    pub time: String,
    /// The watched devices. The layers of a target are ordered from the top down.
    pub devices: Vec<WatchedDevice>,
    /// How the CPUs spent the interval; `None` if this is not shown or unknown.
    pub cpu: Option<CpuShares>,
    /// Processes that moved the most data; `None` if they were not sampled in this interval.
    pub processes: Option<Processes>,
    /// Devices that appeared or disappeared, and missing facts, in sentences.
    pub remarks: Vec<String>,
    /// Content of the text output.
    pub layout: Layout,
}

/// Content of the text output of an interval, as set by the options of iostat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Layout {
    /// Whether to print every column, in several tables if the width is too small for one (`-x`).
    pub all_columns: bool,
    /// Whether to print the time above each interval (`-t`).
    pub time: bool,
    /// Whether to print the names of device mapper volumes instead of `dm-0` (`-N`).
    pub volume_names: bool,
    /// Whether to print only devices that completed a request in the interval (`-z`).
    pub active_only: bool,
    /// The unit of throughput (`-k`, `-m`).
    pub unit: RateUnit,
    /// Whether to print the rule and the figures of each conclusion (`--explain`).
    pub explain: bool,
}

/// The load of devices over the watched time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadOverTime {
    /// Targets as typed; empty for all disks in use.
    pub targets: Vec<String>,
    /// End of the first interval, RFC 3339; empty until then.
    pub started: String,
    /// End of the last interval, RFC 3339.
    pub ended: String,
    /// Number of intervals in the mean of each point.
    pub intervals_per_point: u32,
    /// Each device with its points.
    pub devices: Vec<DeviceOverTime>,
    /// Conclusions in order of time.
    pub conclusions: Vec<TimedConclusion>,
}

/// A conclusion about the load of the devices, and when it began to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedConclusion {
    /// End of the first interval to which the conclusion applies, RFC 3339.
    pub since: String,
    /// The conclusion, as a sentence.
    pub text: String,
}

/// The load of one device over time.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceOverTime {
    /// Kernel name.
    pub name: String,
    /// Points of the device, in order of time.
    pub points: Vec<LoadPoint>,
    /// Why the load cannot be compared with measured capacities; `None` if it can, or for a kind of device without a
    /// load, such as a partition.
    pub limit_unknown: Option<String>,
}

/// One point of a load over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// Start and end in seconds since watching began.
    pub span_s: [f64; 2],
    /// Reads and writes per second; `None` if unknown.
    pub per_s: Option<[f64; 2]>,
    /// 10^6 bytes per second read and written; `None` if unknown.
    pub mb_per_s: Option<[f64; 2]>,
    /// Lower bound of the load in percent of the measured capacity; `None` if unknown.
    pub at_least_percent: Option<f64>,
    /// Upper bound of the load in percent of the measured capacity; `None` if unknown.
    pub at_most_percent: Option<f64>,
}

/// The unit of throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateUnit {
    /// 10^6 bytes per second.
    #[default]
    Mb,
    /// 2^10 bytes per second; iostat calls them kB.
    Kib,
    /// 2^20 bytes per second; iostat calls them MB.
    Mib,
}

impl RateUnit {
    /// Returns the symbol of the unit: `MB/s`, `KiB/s` or `MiB/s`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Mb => "MB/s",
            Self::Kib => "KiB/s",
            Self::Mib => "MiB/s",
        }
    }

    /// Returns the throughput of these requests in this unit.
    pub fn throughput(self, requests: &Requests) -> f64 {
        match self {
            Self::Mb => requests.mb_per_s,
            Self::Kib => requests.mib_per_s * 1024.0,
            Self::Mib => requests.mib_per_s,
        }
    }
}

/// Shares of the time of all CPUs in an interval, in percent, from `/proc/stat`. The six shares add up to 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuShares {
    /// Time spent running programs, including guests.
    pub user_percent: f64,
    /// Time spent running programs with a lowered priority.
    pub nice_percent: f64,
    /// Time spent running the kernel, including interrupts.
    pub system_percent: f64,
    /// Idle time in which a program on this CPU waited for storage.
    pub iowait_percent: f64,
    /// Time that the hypervisor took.
    pub steal_percent: f64,
    /// Idle time without a program waiting for storage.
    pub idle_percent: f64,
}

/// A conclusion about a device in one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conclusion {
    /// The rule that applied.
    pub rule: Rule,
    /// The conclusion, as a sentence.
    pub text: String,
    /// The rule as a sentence, with the figures of this interval.
    pub basis: String,
    /// Whether the rule did not apply in the previous interval.
    #[serde(skip)]
    pub is_new: bool,
}

/// The rules that lead to conclusions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The load is at the measured capacity of the device.
    AtLimit,
    /// The load is at the measured IOPS but far below the measured throughput.
    IopsNotThroughput,
    /// Twice the load would exceed the measured capacity of the device.
    TwiceDoesNotFit,
    /// Requests are as large as the kernel's limit, which may be raised.
    AtRequestSizeLimit,
}

/// A device in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedDevice {
    /// Kernel name.
    pub name: String,
    /// The name of a device mapper volume; `None` for all other devices.
    pub volume: Option<String>,
    /// Device number, as `major:minor`.
    pub number: String,
    /// Disk, partition, RAID or another layer, as determined from the name and `/sys/class/block`.
    pub kind: LayerKind,
    /// Number of layers of the target above the device; 0 if it was not watched for a target.
    pub level: usize,
    /// Kernel names of the devices below this one.
    pub below: Vec<String>,
    /// Figures of the interval, or why they are unknown.
    pub figures: Known<DeviceInterval>,
    /// Load as a share of measured capacities, or why it is unknown; `None` for kinds of device without a load,
    /// such as partitions.
    pub load: Option<Known<Load>>,
    /// Conclusions from the figures; may be empty.
    pub conclusions: Vec<Conclusion>,
    /// The counters at the end of the interval; `None` if the device is gone.
    pub counters: Option<BlockStat>,
    /// Latencies of the requests from the kernel's block events, or why they are unknown; `None` if the device was
    /// not traced.
    pub latency: Option<Known<Latencies>>,
}

impl WatchedDevice {
    /// Returns whether the device completed a request in the interval; false if its figures are
    /// unknown.
    pub fn is_active(&self) -> bool {
        let Ok(figures) = &self.figures else { return false };
        let more = [figures.discard.map(|d| d.per_s), figures.flush.map(|f| f.per_s)];
        let rates = [figures.read.per_s, figures.write.per_s].into_iter().chain(more.into_iter().flatten());
        rates.into_iter().any(|per_s| per_s > 0.0)
    }
}

/// Figures of a device in an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceInterval {
    /// Length of the interval in seconds.
    pub seconds: f64,
    /// Requests that fetched data.
    pub read: Requests,
    /// Requests that stored data.
    pub write: Requests,
    /// Discards; `None` if the kernel does not count them.
    pub discard: Option<Requests>,
    /// Flushes; `None` if the kernel does not count them.
    pub flush: Option<FlushRequests>,
    /// Mean number of requests in flight, including waiting ones.
    pub depth_mean: f64,
    /// Requests in flight at the end of the interval.
    pub in_flight: u64,
    /// Percent of the time with at least one request in flight. Not a measure of load for a device that serves
    /// several requests at once.
    pub util_percent: f64,
}

/// Requests of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Requests {
    /// Completed requests per second.
    pub per_s: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// 2^20 bytes per second.
    pub mib_per_s: f64,
    /// Mean size in bytes; `None` if none completed.
    pub request_bytes: Option<f64>,
    /// Mean time in ms, including waiting; `None` if none completed.
    pub await_ms: Option<f64>,
    /// Requests merged into others, per second.
    pub merged_per_s: f64,
    /// Requests merged into others, in percent of all requests; `None` without requests.
    pub merged_percent: Option<f64>,
}

/// Flushes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlushRequests {
    /// Completed flushes per second.
    pub per_s: f64,
    /// Mean time in ms; `None` if none completed.
    pub await_ms: Option<f64>,
}

/// Latencies of the requests that completed in an interval; `None` for directions without completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latencies {
    /// Requests that move data from the device.
    pub read: Option<Latency>,
    /// Requests that move data to the device.
    pub write: Option<Latency>,
    /// Requests that inform the device which blocks are unused (trim).
    pub discard: Option<Latency>,
    /// Flushes that reached the device.
    pub flush: Option<Latency>,
}

impl Latencies {
    /// Returns the latencies of one direction; `None` if no request completed in this direction.
    pub fn in_direction(&self, direction: Direction) -> Option<&Latency> {
        match direction {
            Direction::Read => self.read.as_ref(),
            Direction::Write => self.write.as_ref(),
        }
    }

    /// Returns the latencies of each kind of request that completed, with the name of the kind.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, Latency)> {
        let all =
            [("read", self.read), ("write", self.write), ("discard", self.discard), ("flush", self.flush)];
        all.into_iter().filter_map(|(name, latency)| Some((name, latency?)))
    }
}

/// Time from a request's insertion into the scheduler to its completion. If a request was not inserted, the time
/// starts at its issue to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Number of completed requests.
    pub requests: u64,
    /// Median in ms; `None` if fewer than 10 requests took longer, which is too few for a reliable value.
    pub p50_ms: Option<f64>,
    /// 99th percentile in ms; `None` if fewer than 10 requests took longer.
    pub p99_ms: Option<f64>,
    /// Maximum in ms.
    pub max_ms: f64,
    /// Share of requests that began where one of the last 64 requests in this direction ended, in percent; `None` for
    /// discards and flushes.
    pub sequential_percent: Option<f64>,
    /// Mean size in bytes of the requests that did not begin where an earlier one ended; `None`
    /// without such requests, and for discards and flushes.
    pub random_bytes: Option<f64>,
}

/// Requests of a process to the watched devices, from the kernel's block events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessRequests {
    /// Reads; `None` if none completed.
    pub read: Option<RequestFigures>,
    /// Writes; `None` if none completed.
    pub write: Option<RequestFigures>,
    /// Flushes, and writes with a flush, that the process requested per second.
    pub flush_per_s: f64,
    /// Mean requests in flight: the total time of completed requests divided by elapsed time.
    pub depth_mean: f64,
}

/// System calls of a process that move data or make it stable.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessCalls {
    /// Length of the counted time in seconds.
    pub seconds: f64,
    /// Calls that the process made, the most frequent first.
    pub calls: Vec<Call>,
    /// Page faults, which replace calls for mapped files; `None` if they are not visible.
    pub faults: Option<FaultRates>,
}

/// A system call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Call {
    /// Name in its manual page.
    pub name: String,
    /// Number of calls.
    pub count: u64,
    /// Calls per second.
    pub per_s: f64,
}

/// Page faults of mapped files and of all other memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultRates {
    /// Faults that waited for storage, per second.
    pub major_per_s: f64,
    /// All other faults, per second.
    pub minor_per_s: f64,
}

/// Requests of a process in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestFigures {
    /// Completed requests per second.
    pub per_s: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Median size in bytes.
    pub p50_bytes: u64,
    /// Smallest size in bytes.
    pub min_bytes: u64,
    /// Largest size in bytes.
    pub max_bytes: u64,
    /// Percentage of requests that began at the end of one of the last 64 requests with the same process, direction and
    /// device.
    pub sequential_percent: f64,
}

/// A load compared with the measured capacity of the same device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Load {
    /// Lower bound of the load in percent of the measured capacity.
    pub at_least_percent: f64,
    /// Upper bound of the load in percent of the measured capacity; `None` if a direction in use was never
    /// measured.
    pub at_most_percent: Option<f64>,
    /// Directions of the load for which no capacity was measured.
    pub not_measured: Vec<Direction>,
    /// Whether the measured capacity was the limit of a cgroup.
    pub throttled: bool,
    /// How the device was matched with the measured one.
    pub same_by: SameBy,
    /// The sessions that measured the capacities: the one that gives the lower bound, then the others, newest first.
    pub sessions: Vec<MeasuredIn>,
}

/// Capacities of devices from earlier sessions, and sessions without any, each newest first.
#[derive(Clone, Debug, Default)]
pub struct MeasuredBefore {
    /// Capacities of devices.
    pub capacities: Vec<(MeasuredIn, Capacity)>,
    /// Sessions without a capacity of any device.
    pub without_capacity: Vec<Entry>,
}

/// A session with capacities of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredIn {
    /// Id of the session.
    pub session: String,
    /// Start of that session, RFC 3339; `None` if it is unknown.
    pub started: Option<String>,
}

impl MeasuredIn {
    /// Returns the day on which the session started, `2026-11-23`; `None` if it is unknown.
    pub fn day(&self) -> Option<&str> {
        self.started.as_deref().and_then(|at| at.get(..10))
    }
}

/// Processes that did I/O.
#[derive(Clone, Debug, PartialEq)]
pub struct Processes {
    /// Length of the time that the figures cover, in seconds.
    pub seconds: f64,
    /// Processes that moved the most data, in descending order.
    pub listed: Vec<WatchedProcess>,
    /// Number of processes that moved data and are not listed.
    pub unlisted: usize,
    /// Number of processes whose I/O fathom cannot read.
    pub unreadable: usize,
    /// Why the requested call counts are unknown; `None` if they are known.
    pub calls_not_known: Option<String>,
}

impl Processes {
    /// Returns `and 3 more processes that moved less`; `None` if all are shown.
    pub fn describe_more(&self) -> Option<String> {
        let are_threads = self.listed.first().is_some_and(|first| first.tid.is_some());
        let what = match (self.unlisted, are_threads) {
            (0, _) => return None,
            (1, false) => "process",
            (_, false) => "processes",
            (1, true) => "thread",
            (_, true) => "threads",
        };
        Some(format!("and {} more {what} that moved less", self.unlisted))
    }
}

/// I/O of a process or of one of its threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchedProcess {
    /// Process id.
    pub pid: u32,
    /// Thread id; `None` for a process as a whole.
    pub tid: Option<u32>,
    /// Name, as `ps -o comm` shows it.
    pub name: String,
    /// Whether this is a kernel thread, which moves data for other processes.
    pub kernel: bool,
    /// Name of the parent process if this entry sums up its ended children; `pid` is then the parent's id. `None`
    /// for a process or a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children_of: Option<String>,
    /// 10^6 bytes per second fetched from storage for the process, on all devices (`read_bytes`).
    pub read_mb_per_s: f64,
    /// 10^6 bytes per second that the process made dirty or sent to storage, on all devices (`write_bytes`).
    pub write_mb_per_s: f64,
    /// 10^6 bytes per second that the process's calls read, including page cache and pipes (`rchar`), without
    /// io_uring.
    pub rchar_mb_per_s: f64,
    /// 10^6 bytes per second that the process's calls wrote, including page cache and pipes (`wchar`), without
    /// io_uring.
    pub wchar_mb_per_s: f64,
    /// Read calls per second (`syscr`).
    pub read_calls_per_s: f64,
    /// Write calls per second (`syscw`).
    pub write_calls_per_s: f64,
    /// How the process opened its files on the watched devices, or why this is unknown.
    #[serde(serialize_with = "known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Open>"))]
    pub open: Known<Open>,
    /// Requests of the process to the watched devices; `None` if unknown.
    pub requests: Option<ProcessRequests>,
    /// System calls of the process that move data; `None` if they were not counted over the whole time.
    pub calls: Option<ProcessCalls>,
}

/// How a process opened its files on the watched devices. Each flag is true if it applies to at least one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own, and a key of JSON")]
pub struct Open {
    /// Number of open files and devices.
    pub files: usize,
    /// Whether a file was opened with direct I/O (`O_DIRECT`).
    pub direct: bool,
    /// Whether a file was opened without `O_DIRECT`.
    pub buffered: bool,
    /// Whether writes to a file wait until they are stable (`O_SYNC`, `O_DSYNC`).
    pub sync: bool,
    /// Whether a file is mapped for anything but execution.
    pub mmap: bool,
    /// Whether the process has an io_uring. The files that the ring uses cannot be determined.
    pub io_uring: bool,
    /// Whether files may be missing, because the process has more file descriptors than fathom
    /// examines.
    #[serde(rename = "cut")]
    pub may_be_incomplete: bool,
}

impl Open {
    /// Formats the flags: `direct, sync, io_uring`.
    pub fn describe(self) -> String {
        let all = [
            (self.direct, "direct"),
            (self.buffered, "buffered"),
            (self.sync, "sync"),
            (self.mmap, "mmap"),
            (self.io_uring, "io_uring"),
        ];
        let words: Vec<&str> = all.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
        match (self.files, words.is_empty()) {
            (0, true) => "no file open here".into(),
            (0, false) if !self.mmap => format!("no file open here, {}", words.join(", ")),
            _ => words.join(", "),
        }
    }
}

/// Writes `null` if it is unknown how a process opened its files.
fn known<S: serde::Serializer>(open: &Known<Open>, to: S) -> Result<S::Ok, S::Error> {
    open.as_ref().ok().serialize(to)
}

#[test]
fn open_modes_are_described() {
    let open = Open { files: 2, direct: true, sync: true, io_uring: true, ..Open::default() };
    assert_eq!(open.describe(), "direct, sync, io_uring");
    assert_eq!(Open::default().describe(), "no file open here");
    assert_eq!(Open { io_uring: true, ..Open::default() }.describe(), "no file open here, io_uring");
    assert_eq!(Open { mmap: true, ..Open::default() }.describe(), "mmap");
}

#[test]
fn a_session_is_dated_by_its_start() {
    let session =
        |started: Option<&str>| MeasuredIn { session: "a".into(), started: started.map(str::to_owned) };
    assert_eq!(session(Some("2026-11-23T15:00:00+01:00")).day(), Some("2026-11-23"));
    assert_eq!((session(Some("x")).day(), session(None).day()), (None, None));
}

#[test]
fn processes_that_are_not_shown_are_counted() {
    let more = |unlisted| {
        let all =
            Processes { seconds: 1.0, listed: Vec::new(), unlisted, unreadable: 0, calls_not_known: None };
        all.describe_more()
    };
    assert_eq!(more(0), None);
    assert_eq!(more(1).as_deref(), Some("and 1 more process that moved less"));
    assert_eq!(more(2).as_deref(), Some("and 2 more processes that moved less"));
}
