//! Figures of one result: observations for the formats of other tools, the ledger and its layers,
//! time series, latency buckets, steadiness, device and host figures, and logs of operations.
//!
//! The types with a JSON schema are part of the JSON report (format 1). [`Observed`] and the logs ([`WorkerLog`]) only
//! feed the formats of other tools. The crate `analysis` computes the figures.

use crate::evidence::BlockStat;
use crate::finding::CheckId;
use crate::histogram::Distribution;
use crate::job::{IoPriority, Kind, Steadied, Steady};
use crate::record::Bucket;
use crate::record::stream::DepthCounts;
use crate::spec::TypedResult;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Observations of one result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Targets of the stream; empty if it has none.
    pub targets: Vec<ObservedTarget>,
    /// Total length of the measured windows of all runs, in ns.
    pub window_ns: u64,
    /// When the last run of the result ended, in ns since the session began.
    pub ended_ns: u64,
    /// Whether no run failed and at least one run ended. If a signal ended the session, no run needs to have ended.
    pub succeeded: bool,
    /// Whether the figures are those of the last, incomplete run, because no run is complete.
    pub is_from_incomplete_run: bool,
    /// Completed operations in the windows, by kind; only kinds with operations.
    pub kinds: BTreeMap<Kind, ObservedKind>,
    /// Number of errors of all runs, by errno.
    pub errors: BTreeMap<i32, u64>,
    /// Number of errors that the stream ignores.
    pub ignored_errors: u64,
    /// Error number of the first failed sync or close after the stream's writes. `None` if none failed, or if no option of
    /// another tool, such as fio's `end_fsync`, requested a final sync.
    pub sync_error: Option<i32>,
    /// Costs of the workers, including warm-up and drain.
    pub workers: ObservedWorkers,
    /// Counters of the disks below the targets of the phase, all streams together; empty if they were not read.
    pub disks: Vec<ObservedDisk>,
    /// The depth that the first worker found in the last run; `None` without a search.
    pub found_depth: Option<u32>,
    /// The steadiness rule that ends the stream, and its last values; `None` without a rule.
    pub steadied: Option<(Steady, Steadied)>,
    /// Options that the user typed in the language of another tool; `None` if there are none.
    pub typed: Option<TypedResult>,
    /// Operations of each worker on each target in the last run; empty unless the plan requests
    /// them.
    pub lanes: Vec<ObservedLane>,
    /// CPU times during the runs, for all streams of the phase; empty if `/proc/stat` was not read.
    pub cpus: Vec<ObservedCpu>,
}

/// Operations of one worker on one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedLane {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of the target in [`Observed::targets`].
    pub target: usize,
    /// Completed operations by kind; only kinds with operations.
    pub kinds: BTreeMap<Kind, ObservedLaneKind>,
}

/// A worker's operations of one kind on a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedLaneKind {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies of the completed operations.
    pub latency: Distribution,
    /// Time series in intervals of the requested length; empty if none was requested.
    pub time_series: Vec<Bucket>,
}

/// Times of a CPU between the snapshots around the runs, in kernel ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedCpu {
    /// Index of the CPU in the kernel, from 0.
    pub cpu: u32,
    /// Time in user space.
    pub user: u64,
    /// Time in the kernel, including interrupts.
    pub kernel: u64,
    /// Idle time, including waiting for I/O.
    pub idle: u64,
}

/// A file or device that was touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedTarget {
    /// Path; for a file that fathom created, its directory.
    pub path: String,
    /// Whether fathom made the file.
    pub is_made: bool,
    /// Size of the region that operations may touch, in bytes.
    pub bytes: u64,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedKind {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations that moved fewer bytes than requested, including warm-up and drain.
    pub short: u64,
    /// Latency: in an open loop from the intended start, otherwise from the submission.
    pub latency: Distribution,
    /// Service time, from the submission to the completion; `None` in a closed loop.
    pub service: Option<Distribution>,
    /// Time series of the completed operations.
    pub time_series: Vec<ObservedInterval>,
    /// Latency from the submission to the completion, by the priority given to the kernel; empty if no operation
    /// had its own priority.
    pub priorities: Vec<(Option<IoPriority>, Distribution)>,
}

/// Operations completed in an interval of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObservedInterval {
    /// Start of the interval in ns of measured time, as if all runs followed each other directly.
    pub start_ns: u64,
    /// Length of the interval in ns.
    pub ns: u64,
    /// Completed operations.
    pub ops: u64,
    /// Bytes moved.
    pub bytes: u64,
}

/// Costs of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObservedWorkers {
    /// Sum over the workers of the time between their first and last timestamp, in ns.
    pub wall_ns: u64,
    /// CPU time in user space in ns.
    pub user_ns: u64,
    /// CPU time in the kernel in ns.
    pub system_ns: u64,
    /// Context switches.
    pub switches: u64,
    /// Page faults without and with I/O; `None` if a worker did not report them.
    pub faults: Option<[u64; 2]>,
    /// Distributions of the operations in flight and of the operations per call; `None` if a worker did not count them.
    pub depth_counts: Option<DepthCounts>,
}

impl ObservedWorkers {
    /// All costs are 0.
    pub const NONE: Self = Self {
        wall_ns: 0,
        user_ns: 0,
        system_ns: 0,
        switches: 0,
        faults: Some([0, 0]),
        depth_counts: Some(DepthCounts::NONE),
    };

    /// Adds the costs of other workers.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            wall_ns: self.wall_ns.saturating_add(other.wall_ns),
            user_ns: self.user_ns.saturating_add(other.user_ns),
            system_ns: self.system_ns.saturating_add(other.system_ns),
            switches: self.switches.saturating_add(other.switches),
            faults: self.faults.zip(other.faults).map(|(a, b)| [0, 1].map(|i| a[i].saturating_add(b[i]))),
            depth_counts: self.depth_counts.zip(other.depth_counts).map(|(a, b)| a.plus(&b)),
        }
    }
}

/// Counters of a disk between the snapshots around the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedDisk {
    /// Kernel name.
    pub name: String,
    /// Counters of the disk.
    pub stat: BlockStat,
    /// Time between the snapshots in ns.
    pub ns: u64,
}

/// Operations issued, charged and completed in all complete runs of a result. The counts are the difference of two snapshots, one before
/// the first operation and one after the last operation, so they include warm-up and drain. Streams that run at the same time share one
/// ledger, because devices do not distinguish streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ledger {
    /// Number of runs added up.
    pub runs: u32,
    /// Reads; `None` if none were issued.
    pub read: Option<Account>,
    /// Writes; `None` if none were issued.
    pub write: Option<Account>,
}

/// One direction of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Account {
    /// Operations that fathom issued.
    pub issued: IoTotals,
    /// I/O that the kernel charged to fathom's cgroup: on the topmost layer, or on its disk if that layer is a partition.
    pub charged: LedgerEntry,
    /// Requests that each layer of the stack completed, from the top down.
    pub layers: Vec<LedgerEntry>,
}

/// One counter of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Entry"))]
pub struct LedgerEntry {
    /// The owner of the counter, such as `fathom's cgroup` or `vda`.
    pub name: String,
    /// Level of the layer in the stack: 0 at the top. Layers of the same level are side by side, such as the members of
    /// a RAID.
    pub step: u32,
    /// Operations or requests counted from before the first operation to after the last one; `None` if unknown.
    pub counted: Option<IoTotals>,
    /// Operations or requests counted from before the first operation to the end of the final sync; `None` if nothing
    /// was written, or if unknown.
    pub with_sync: Option<IoTotals>,
    /// Bytes of all layers of this level minus the issued bytes, as a share of the issued bytes. `None` if not counted.
    pub difference: Option<f64>,
    /// Bytes by which the counts may differ, because requests were in flight at the snapshots.
    pub tolerance_bytes: u64,
    /// `agrees`, `0.3 % more`, `72 % less`, or `not counted: ` and the reason.
    pub word: String,
}

/// Number and bytes of operations or requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Moved"))]
pub struct IoTotals {
    /// Number of operations, or of a device's requests.
    pub ios: u64,
    /// Sum of the lengths of these operations or requests in bytes.
    pub bytes: u64,
    /// Requests that were merged into others; `None` if this layer does not merge.
    pub merges: Option<u64>,
    /// Total time of all requests in ms; `None` if unknown.
    pub ms: Option<u64>,
}

/// The results of `fathom layers`: the same work at each layer, from the device up to the file
/// system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layers {
    /// One row for each layer and cache mode, in the order of the table: from the lowest layer up, for one kind of
    /// work after another.
    pub rows: Vec<LayerRow>,
    /// Layers that could not be measured, each with the reason: `vda, 8K random write: ...`.
    pub missing: Vec<String>,
}

/// Figures of one layer for one kind of work, and of the device below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerRow {
    /// `vda`, `ext4, direct`.
    pub name: String,
    /// `8K random read`.
    pub work: String,
    /// Index of the layer's result in the report's `results`.
    pub result: usize,
    /// Figures that fathom counted; `None` if a finding invalidates them, or if no run was complete.
    pub tool: Option<OperationFigures>,
    /// Figures that fathom counted, even if a finding invalidates them; `None` if no run was complete.
    #[serde(default, rename = "tool_did", skip_serializing_if = "Option::is_none")]
    pub tool_even_if_invalid: Option<OperationFigures>,
    /// 95 % interval of the operations per second that fathom counted; `None` with fewer than three runs.
    pub iops_interval: Option<[f64; 2]>,
    /// 95 % interval of the mean latency that fathom counted, in ns; `None` with fewer than three runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_interval_ns: Option<[f64; 2]>,
    /// Figures of the topmost device below this layer, for the same time and directions; `None` if not counted.
    pub device: Option<OperationFigures>,
    /// Requests that the topmost device completed in all runs, from the first operation to the end of the final sync;
    /// `None` if nothing was written or they were not counted.
    pub device_with_sync: Option<IoTotals>,
    /// The rate compared with that of the layer below; `None` for the lowest layer.
    pub against: Option<LayerDifference>,
    /// Ids of findings that invalidate, relabel or bias this row. With such a finding, a comparison with another row
    /// shows more than the cost of the layer. The list leaves out the findings that every row through the page cache has.
    pub findings: Vec<CheckId>,
}

/// Rate, size and latency of operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Pace"))]
pub struct OperationFigures {
    /// Operations or requests per second.
    pub iops: f64,
    /// Mean bytes per operation; `None` without operations.
    pub bytes: Option<f64>,
    /// Mean latency of an operation in ns; `None` without operations, or if a device counted less than 1 ms in
    /// total.
    pub latency_ns: Option<f64>,
}

/// The ratio of two rates, from runs of the same rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Difference"))]
pub struct LayerDifference {
    /// Name of the layer that this layer is compared with.
    pub name: String,
    /// Index of the result of the layer that this layer is compared with.
    pub result: usize,
    /// Ratio of the rates, as a geometric mean over rounds. 0.97 means a cost of 3 %.
    pub factor: f64,
    /// 95 % interval of the factor over rounds; `None` with fewer than three rounds.
    pub interval: Option<[f64; 2]>,
}

/// The part of a plan for `fathom layers`: which layers are compared, from the device up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerComparison {
    /// The compared layers, one per job, in the order of the table.
    #[serde(rename = "rungs")]
    pub layers: Vec<ComparedLayer>,
    /// Layers that could not be measured.
    pub missing: Vec<NotMeasured>,
}

/// One layer, with one cache mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedLayer {
    /// Index of the job.
    pub job: usize,
    /// Name in the table: `vda`, `ext4, direct`.
    pub name: String,
    /// Work of the job, the heading of its rows: `8K random read`.
    pub work: String,
    /// Index of the layer that this layer is compared with; `None` for the lowest layer.
    pub below: Option<usize>,
    /// Whether fathom reads the target into the page cache before each run, to show the effect of the cache.
    pub warm: bool,
    /// Whether the job reads a device below the file system, in the blocks that store the target's file.
    #[serde(default)]
    pub stored: bool,
}

/// One second of a run; several seconds if the run is longer than an hour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Second {
    /// Index of the run within its job.
    pub run: u32,
    /// Seconds from the beginning of the measured window.
    pub start_s: f64,
    /// Length in seconds; the last second may be shorter.
    pub seconds: f64,
    /// Operations per second, all directions.
    pub iops: f64,
    /// 10^6 bytes per second, all directions.
    pub mb_per_s: f64,
    /// The largest 99th percentile of the second's intervals in ns: an upper bound for the second. `None` if
    /// nothing completed.
    pub p99_at_most_ns: Option<u64>,
    /// The topmost device in the same second, interpolated between samples of its counters; `None` if not counted.
    pub device: Option<DeviceSecond>,
}

/// Figures of the topmost device in a second, for all streams of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceSecond {
    /// Requests per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Mean latency of a request in ns; `None` if none completed.
    pub latency_ns: Option<f64>,
    /// Mean number of requests in the queue.
    pub in_flight: f64,
}

/// Time series of all runs in the recorded intervals. An interval is a hundredth of a run, but at least 10 ms and at
/// most 1 s. Each list has one entry for each interval, or for several adjacent ones (`joined`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Course"))]
pub struct TimeSeries {
    /// Index of the run within its job.
    pub run: Vec<u32>,
    /// Seconds from the beginning of the measured window.
    pub start_s: Vec<f64>,
    /// Length in seconds.
    pub seconds: Vec<f64>,
    /// Mean number of operations in flight in all directions.
    pub depth_mean: Vec<f64>,
    /// Completed operations by direction (`read`).
    pub directions: BTreeMap<String, DirectionSeries>,
    /// Maximum number of adjacent intervals that an entry joins; more than 1 if there were too many intervals. The
    /// median of an entry is the mean of the joined medians, weighted by operations. Its 99th percentile is the largest
    /// of the joined ones, an upper bound.
    pub joined: u32,
}

/// Time series of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CourseOf"))]
pub struct DirectionSeries {
    /// Operations per second.
    pub iops: Vec<f64>,
    /// 10^6 bytes per second.
    pub mb_per_s: Vec<f64>,
    /// Median latency in ns; `None` if nothing completed.
    pub p50_ns: Vec<Option<u64>>,
    /// 99th percentile of the latency in ns, even from few operations; `None` if nothing completed.
    pub p99_ns: Vec<Option<u64>>,
    /// Maximum latency in ns; `None` if nothing completed.
    pub max_ns: Vec<Option<u64>>,
}

/// Latencies as a histogram with [`LatencyBuckets::PER_DECADE`] buckets per power of ten.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyBuckets {
    /// Start of each bucket in ns, ascending: 10^(k/50) for a whole k. The bucket ends at 10^((k+1)/50). Empty
    /// buckets are omitted.
    pub from_ns: Vec<f64>,
    /// Operations in each bucket.
    pub ops: Vec<u64>,
}

impl LatencyBuckets {
    /// Number of buckets per power of ten.
    pub const PER_DECADE: f64 = 50.0;

    /// Returns the end in ns of the bucket that starts at `from_ns`.
    pub fn end_ns(from_ns: f64) -> f64 {
        from_ns * 10_f64.powf(1.0 / Self::PER_DECADE)
    }

    /// Returns the number of operations.
    pub fn count(&self) -> u64 {
        self.ops.iter().fold(0, |sum, ops| sum.saturating_add(*ops))
    }
}

impl From<&Distribution> for LatencyBuckets {
    fn from(of: &Distribution) -> Self {
        let mut buckets: BTreeMap<i64, u64> = BTreeMap::new();
        for (ns, ops) in of.bins.iter().filter(|(_, ops)| *ops > 0) {
            // Add a little: the logarithm of a whole power may be slightly too small.
            let k = ((*ns).max(1) as f64).log10().mul_add(Self::PER_DECADE, 1e-9).floor() as i64;
            let bucket = buckets.entry(k).or_default();
            *bucket = bucket.saturating_add(*ops);
        }
        let from = |k: i64| {
            let ns = 10_f64.powf(k as f64 / Self::PER_DECADE);
            // Round to picoseconds, much finer than any bucket.
            (ns * 1e3).round() / 1e3
        };
        Self { from_ns: buckets.keys().map(|k| from(*k)).collect(), ops: buckets.into_values().collect() }
    }
}

/// Whether the rate of a result was steady.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steadiness {
    /// The answer in one word.
    pub state: State,
    /// The reason in one sentence with its numbers.
    pub sentence: String,
    /// Longest warm-up within a measured window of any run, in seconds (MSER-5).
    pub warm_up_s: f64,
    /// Change of the rate per minute as a share of its mean, with its 95 % confidence interval.
    /// `None` if too few samples of the time series are independent, if the run is too short to
    /// extrapolate to minutes, or for a cliff.
    pub drift_per_minute: Option<Estimate>,
    /// The steady-state criterion of the SNIA for the rates of the rounds; `None` with fewer than five rounds.
    pub snia: Option<Snia>,
}

enum_of_words! {
    /// How steady a rate was.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    State {
        /// The confidence interval of the drift is within the allowed drift.
        Steady = "STEADY",
        /// The confidence interval of the drift is beyond the allowed drift.
        Drifting = "DRIFTING",
        /// The rate steps from one level to another.
        Cliff = "CLIFF",
        /// The run ended before the rate became steady.
        WarmUp = "WARM-UP",
        /// The runs show none of the other states. Longer runs are needed.
        Unproven = "UNPROVEN",
    }
}

impl State {
    /// Returns the meaning of the word, for a reader who sees it for the first time.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Steady => "no drift above the limit",
            Self::Drifting => "the rate rises or falls",
            Self::Cliff => "the rate changes in a step",
            Self::WarmUp => "the rate was not steady yet",
            Self::Unproven => "the runs are too short to tell",
        }
    }
}

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Lower and upper bound at 95 % confidence.
    pub interval: [f64; 2],
}

/// The steady-state criterion of the SNIA Solid State Storage Performance Test Specification 2.0 over five rounds.
/// The largest and smallest value differ by at most 20 % of the mean, and the fitted line rises or falls by at most
/// 10 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snia {
    /// Whether the last five rounds meet the criterion.
    pub met: bool,
    /// Number of rounds. A round is a run. If there is a single run, a round is a minute of its
    /// window, or a fifth of a window that is shorter than five minutes.
    pub rounds: u32,
    /// Largest minus smallest value of the last five rounds, as a share of their mean.
    pub excursion: f64,
    /// Largest minus smallest value of the line fitted to the last five rounds, as a share of their mean.
    pub slope: f64,
}

/// Counters of the topmost device during one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFigures {
    /// Operations that fathom issued, including warm-up and drain, for comparison with `ios`.
    pub issued_ops: u64,
    /// Bytes that fathom issued.
    pub issued_bytes: u64,
    /// Requests that the device completed.
    pub ios: u64,
    /// Bytes that the completed requests moved.
    pub bytes: u64,
    /// Mean number of requests in the queue.
    pub depth_mean: f64,
    /// Total time of all requests in ms, including waiting.
    pub busy_ms: u64,
}

/// Requests that the topmost device completed and operations that fathom issued, over those runs of a result in which both were counted.
/// Both include warm-up and drain; their ratio is applied to the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtDevice {
    /// Mean operations per second in the measured windows of the runs for which the device's counters are known.
    pub iops: f64,
    issued_ops: u64,
    ios: u64,
    bytes: u64,
}

impl AtDevice {
    /// Adds up the counters of all runs and averages the operations per second. Each pair is a run: its operations per
    /// second, and its counters. `None` if nothing was issued.
    pub fn sum_runs(runs: &[(f64, DeviceFigures)]) -> Option<Self> {
        let sum =
            |of: fn(&DeviceFigures) -> u64| runs.iter().fold(0u64, |sum, (_, d)| sum.saturating_add(of(d)));
        let issued_ops = sum(|d| d.issued_ops);
        (issued_ops > 0).then(|| Self {
            iops: runs.iter().map(|(iops, _)| iops).sum::<f64>() / runs.len() as f64,
            issued_ops,
            ios: sum(|d| d.ios),
            bytes: sum(|d| d.bytes),
        })
    }

    /// Returns the requests that the device completes per second while fathom completes `iops` operations per second.
    pub fn requests_per_s(&self, iops: f64) -> f64 {
        iops * self.ios as f64 / self.issued_ops as f64
    }

    /// Returns the bytes that the device moves per second while fathom completes `iops` operations
    /// per second.
    pub fn bytes_per_s(&self, iops: f64) -> f64 {
        iops * self.bytes as f64 / self.issued_ops as f64
    }

    /// Returns the mean size of the device's requests in bytes; `None` without requests.
    pub fn request_bytes(&self) -> Option<u64> {
        self.bytes.checked_div(self.ios)
    }
}

/// Use of the host's CPUs and memory during a run, including warm-up and drain. Each value is a
/// share of the run's time, or `None` if it was not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFigures {
    /// CPU time of the busiest worker, as a share of one CPU.
    pub worker_cpu: Option<f64>,
    /// Time in which CPUs worked, neither idle nor waiting for I/O, as a share of the time of all CPUs
    /// (`/proc/stat`).
    pub cpu: Option<f64>,
    /// Time in which at least one task waited for I/O (`/proc/pressure/io`, `some`).
    pub io_pressure: Option<f64>,
    /// Time in which at least one task waited for a CPU (`/proc/pressure/cpu`, `some`).
    pub cpu_pressure: Option<f64>,
    /// Time in which at least one task waited for memory (`/proc/pressure/memory`, `some`).
    pub memory_pressure: Option<f64>,
    /// Total time for which a CPU quota paused threads of fathom's cgroup (`cpu.stat`). The sum
    /// over several threads may exceed 1.
    pub quota_paused: Option<f64>,
}

impl HostFigures {
    /// Whether none of the values is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Maximum memory in bytes for all logs of a measurement.
pub const MAX_LOG_BYTES: usize = 1 << 30;

/// An operation that was counted in a measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// When fathom saw the completion of the operation, in ns since the phase began.
    pub end_ns: u64,
    /// Latency in ns: in an open loop from the intended start, otherwise from the submission.
    pub latency_ns: u64,
    /// The part of the latency after the submission, in ns.
    pub service_ns: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// Index of the operation's target among the targets of the worker.
    pub file: u16,
    /// Kind of the operation: read, write, trim or sync.
    pub kind: Kind,
    /// Which entry of the stream's `op_priorities` gave the operation its priority, from 1; 0 for none.
    pub share: u8,
}

/// Operations of one kind, summed over an interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// End of the interval, in ns since the phase began.
    pub end_ns: u64,
    /// Kind of the operations.
    pub kind: Kind,
    /// Number of completed operations.
    pub operations: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Sum of the latencies in ns.
    pub latency_ns: u64,
    /// Largest latency in ns.
    pub max_ns: u64,
}

/// The log of a worker in one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All operations, in the order of their completions.
    Each(Vec<Operation>),
    /// Sums over intervals.
    Intervals(Intervals),
}

/// Intervals of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    /// Start of the first interval, in ns since the phase began.
    pub from_ns: u64,
    /// Time that an interval covers, in ns.
    pub length_ns: u64,
    /// Intervals with completions, in order of time.
    pub all: Vec<Interval>,
    /// When the last operation completed, in ns since the phase began.
    pub last_ns: u64,
}

/// The log of one worker, with its place in the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLog {
    /// Serial number of the run in the session, from 1; each attempt has its own number.
    pub run: usize,
    /// Index of the job.
    pub job: usize,
    /// Index of the phase in the job.
    pub phase: usize,
    /// Index of the stream in the phase.
    pub stream: usize,
    /// Serial number of the worker, from 1, counted over all phases of the job.
    pub number: u32,
    /// When the phase began, in ms since 1970.
    pub began_unix_ms: u64,
    /// Logged operations.
    pub rows: Rows,
}

impl Rows {
    /// Creates an empty log. With `length_ns` above 0 it sums over intervals that begin at `from_ns`. With 0 it
    /// keeps each operation.
    pub fn new(from_ns: u64, length_ns: u64) -> Self {
        let intervals = Intervals { from_ns, length_ns, ..Intervals::default() };
        if length_ns == 0 { Self::Each(Vec::new()) } else { Self::Intervals(intervals) }
    }

    /// Appends operations. Returns the growth of the log's memory in bytes.
    pub fn append(&mut self, operations: &[Operation]) -> usize {
        match self {
            Self::Each(all) => {
                all.extend_from_slice(operations);
                size_of_val(operations)
            }
            Self::Intervals(intervals) => {
                let before = intervals.all.len();
                for operation in operations {
                    intervals.add(operation);
                }
                (intervals.all.len() - before) * size_of::<Interval>()
            }
        }
    }

    /// Returns the log as intervals of `length_ns` from `from_ns` on. A log of intervals is returned unchanged.
    pub fn intervals(&self, from_ns: u64, length_ns: u64) -> Intervals {
        match self {
            Self::Each(operations) => {
                let mut intervals = Intervals { from_ns, length_ns, ..Intervals::default() };
                for operation in operations {
                    intervals.add(operation);
                }
                intervals
            }
            Self::Intervals(intervals) => intervals.clone(),
        }
    }
}

impl Intervals {
    /// Adds an operation to the interval in which the operation ended. Each kind has its own intervals. Operations arrive in the order of
    /// completion, so the search begins at the last interval.
    fn add(&mut self, operation: &Operation) {
        let Operation { kind, latency_ns, length, .. } = *operation;
        let each = self.length_ns.max(1);
        let number = operation.end_ns.saturating_sub(self.from_ns) / each + 1;
        let end_ns = self.from_ns.saturating_add(number.saturating_mul(each));
        let first = self.all.iter().rposition(|i| i.end_ns < end_ns).map_or(0, |at| at + 1);
        let found = self.all[first..].iter().position(|i| i.kind == kind);
        let at = found.map_or(self.all.len(), |at| first + at);
        if at == self.all.len() {
            self.all.push(Interval { end_ns, kind, operations: 0, bytes: 0, latency_ns: 0, max_ns: 0 });
        }
        let interval = &mut self.all[at];
        interval.operations += 1;
        interval.bytes += u64::from(length);
        interval.latency_ns = interval.latency_ns.saturating_add(latency_ns);
        interval.max_ns = interval.max_ns.max(latency_ns);
        self.last_ns = operation.end_ns;
    }
}

/// A layer or an interface that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotMeasured {
    /// Name in the table, followed by the work: `vda, 8K random write`. Empty if an old session has
    /// only a sentence, which is then in `why`.
    pub name: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = if self.name.is_empty() { "" } else { ": " };
        write!(f, "{}{between}{}", self.name, self.why)
    }
}

/// Returns each reason once, with the names of everything that was not measured for this reason.
pub fn by_reason(all: &[NotMeasured]) -> Vec<(Vec<&str>, &str)> {
    let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
    for NotMeasured { name, why } in all {
        let name = Some(name.as_str()).filter(|name| !name.is_empty());
        match reasons.iter_mut().find(|(_, known)| known == why) {
            Some((names, _)) => names.extend(name),
            None => reasons.push((name.into_iter().collect(), why)),
        }
    }
    reasons
}

/// Deserializes the entries. Older sessions have sentences instead.
///
/// # Errors
/// The error of the deserializer.
pub(crate) fn or_sentences<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<NotMeasured>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Kept {
        Apart(NotMeasured),
        Sentence(String),
    }
    let apart = |kept| match kept {
        Kept::Apart(both) => both,
        Kept::Sentence(why) => NotMeasured { name: String::new(), why },
    };
    Ok(Vec::<Kept>::deserialize(from)?.into_iter().map(apart).collect())
}

#[cfg(test)]
fn operation(end_ns: u64, latency_ns: u64, kind: Kind) -> Operation {
    Operation { end_ns, latency_ns, service_ns: latency_ns, offset: 0, length: 512, file: 0, kind, share: 0 }
}

#[test]
fn latency_buckets_keep_all_operations() {
    let latencies = Distribution {
        count: 7,
        bins: vec![(0, 1), (1000, 2), (1040, 3), (100_000, 1)],
        ..Distribution::default()
    };
    let buckets = LatencyBuckets::from(&latencies);
    assert_eq!((buckets.count(), buckets.ops.as_slice()), (7, [1, 5, 1].as_slice()));
    assert_eq!(buckets.from_ns, [1.0, 1000.0, 100_000.0]);
    assert!((LatencyBuckets::end_ns(1000.0) - 1_047.128_5).abs() < 1e-3);
    assert_eq!(LatencyBuckets::from(&Distribution::default()), LatencyBuckets::default());
}

#[test]
fn intervals_keep_all_operations_by_kind() {
    let all: Vec<Operation> =
        (0..100).map(|i| operation(i * 7, i, if i % 3 == 0 { Kind::Write } else { Kind::Read })).collect();
    let mut appended = Rows::new(0, 50);
    let grown: usize = all.chunks(9).map(|some| appended.append(some)).sum();
    let mut each = Rows::new(0, 0);
    each.append(&all);
    assert_eq!(each.intervals(0, 50), appended.intervals(0, 1));
    let intervals = appended.intervals(0, 1).all;
    assert_eq!(grown, size_of_val(&intervals[..]));
    assert_eq!(intervals.iter().map(|s| s.operations).sum::<u64>(), 100);
    assert_eq!(intervals.iter().map(|s| s.latency_ns).sum::<u64>(), 4950);
    assert!(intervals.iter().all(|s| s.end_ns % 50 == 0 && s.max_ns < s.end_ns / 7 + 1));
    assert!(intervals.is_sorted_by_key(|s| s.end_ns));
    assert_eq!(intervals.iter().filter(|s| s.end_ns == 100).count(), 2);
}

#[test]
fn intervals_at_the_largest_time_do_not_overflow() {
    let mut rows = Rows::new(1, 3);
    rows.append(&[operation(u64::MAX, u64::MAX, Kind::Read), operation(u64::MAX, 7, Kind::Read)]);
    let intervals = rows.intervals(0, 0).all;
    assert_eq!((intervals.len(), intervals[0].operations, intervals[0].latency_ns), (1, 2, u64::MAX));
}

#[test]
fn reasons_are_grouped_except_sentences_of_old_sessions() {
    let not_measured = |name: &str, why: &str| NotMeasured { name: name.into(), why: why.into() };
    let all = [
        not_measured("a, b: c", "no: it is late"),
        not_measured("", "d: gone"),
        not_measured("e", "no: it is late"),
    ];
    assert_eq!(by_reason(&all), [(vec!["a, b: c", "e"], "no: it is late"), (vec![], "d: gone")]);
    assert_eq!(all.map(|n| n.to_string()), ["a, b: c: no: it is late", "d: gone", "e: no: it is late"]);
}
