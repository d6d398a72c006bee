//! What was seen of a result, all its complete runs together, or without any the last one as far as it came: distributions as a whole, costs of the workers, counters of disks.
//!
//! For: formats that other tools read, which show more than the JSON contract does. Not for: that contract, in which none of this
//! stands, nor for what follows from it ([`crate::report`]).

use crate::evidence::BlockStat;
use crate::finding::CheckId;
use crate::histogram::Distribution;
use crate::job::{IoPriority, Kind, Steadied, Steady};
use crate::plan::TypedResult;
use crate::record::Bucket;
use crate::record::stream::DepthCounts;
use crate::study::NotMeasured;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was seen of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// What its stream touches; empty where that is nothing.
    pub targets: Vec<ObservedTarget>,
    /// Length of the measured windows in ns.
    pub window_ns: u64,
    /// When its last run ended, in ns since the session began.
    pub ended_ns: u64,
    /// Whether none of its runs failed: they are complete, or a signal ended them.
    pub in_order: bool,
    /// Whether it is of a run that ended before its time, since none is complete. No result is made of it.
    pub is_cut: bool,
    /// What completed in the windows; kinds of which nothing did are not in it.
    pub kinds: BTreeMap<Kind, ObservedKind>,
    /// Errors by errno, of all its runs.
    pub errors: BTreeMap<i32, u64>,
    /// How many of them its stream goes on after, as it is to.
    pub ignored_errors: u64,
    /// Error number of the first sync or close after its writes that failed, where the user of another tool asked for that sync.
    pub sync_error: Option<i32>,
    /// Costs of its workers, warm-up and drain included.
    pub workers: ObservedWorkers,
    /// What the disks below the phase did meanwhile, for all its streams; empty where they were not counted.
    pub disks: Vec<ObservedDisk>,
    /// The depth that its first worker found in the last run, where it was searched for.
    pub found_depth: Option<u32>,
    /// What makes it steady, and what its last values were, where it ends by that.
    pub steadied: Option<(Steady, Steadied)>,
    /// What was typed of it in the language of another tool.
    pub typed: Option<TypedResult>,
    /// What each worker did on each target, where that was asked for.
    pub lanes: Vec<ObservedLane>,
    /// What CPUs did meanwhile, for all streams of the phase; empty where that was not counted.
    pub cpus: Vec<ObservedCpu>,
}

/// What a worker did on a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedLane {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of the target in [`Observed::targets`].
    pub target: usize,
    /// What completed; kinds of which nothing did are not in it.
    pub kinds: BTreeMap<Kind, ObservedLaneKind>,
}

/// A worker's operations of one kind on a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedLaneKind {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies.
    pub latency: Distribution,
    /// The course in stretches of the length that was asked for; empty where none was.
    pub course: Vec<Bucket>,
}

/// Times of a CPU between the snapshots around the runs, in ticks of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedCpu {
    /// Its number.
    pub cpu: u32,
    /// In programs.
    pub user: u64,
    /// In the kernel, interrupts included.
    pub kernel: u64,
    /// Without work, or waiting for I/O.
    pub idle: u64,
}

/// A file or device that was touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedTarget {
    /// Its path; the directory where fathom made a file of its own.
    pub path: String,
    /// Whether that is so.
    pub is_made: bool,
    /// Bytes that may be touched.
    pub bytes: u64,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedKind {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations that moved fewer bytes than asked, warm-up and drain included.
    pub short: u64,
    /// From the intended start in an open loop, from the submission otherwise.
    pub latency: Distribution,
    /// In an open loop: from the submission to the completion.
    pub service: Option<Distribution>,
    /// Their course, a stretch of time after the other.
    pub course: Vec<Stretch>,
    /// From the submission to the completion, apart by what the kernel was told of their priority; empty where none had one of its own.
    pub priorities: Vec<(Option<IoPriority>, Distribution)>,
}

/// What completed in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stretch {
    /// ns of measured time before it, runs one behind the other.
    pub start_ns: u64,
    /// Its length in ns.
    pub ns: u64,
    /// Operations.
    pub ops: u64,
    /// What they moved.
    pub bytes: u64,
}

/// Costs of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObservedWorkers {
    /// ns between first and last stamp, of all together.
    pub wall_ns: u64,
    /// CPU time in user space.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Times that one gave up the CPU.
    pub switches: u64,
    /// Page faults without and with I/O; `None` where a worker does not say.
    pub faults: Option<[u64; 2]>,
    /// Operations in flight and per call; `None` if a worker did not count them.
    pub depth_counts: Option<DepthCounts>,
}

impl ObservedWorkers {
    /// Of no workers.
    pub const NONE: Self = Self {
        wall_ns: 0,
        user_ns: 0,
        system_ns: 0,
        switches: 0,
        faults: Some([0, 0]),
        depth_counts: Some(DepthCounts::NONE),
    };

    /// Those of others too.
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

/// What a disk did between the snapshots around the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedDisk {
    /// Kernel name.
    pub name: String,
    /// Its counters.
    pub stat: BlockStat,
    /// ns between the snapshots.
    pub ns: u64,
}

/// What was issued, charged and completed in all complete runs of a result, each from the snapshot before the first
/// operation to the one behind the last; warm-up and drain are in it. Streams that run at once share one ledger, because
/// devices do not know streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ledger {
    /// Runs that it adds up.
    pub runs: u32,
    /// Reads; `None` where none were issued.
    pub read: Option<Account>,
    /// Writes; `None` where none were issued.
    pub write: Option<Account>,
}

/// One direction of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Account {
    /// What fathom issued, in operations.
    pub issued: Moved,
    /// What the kernel charged to fathom's cgroup on the disk that the topmost layer is or is a part of.
    pub charged: Entry,
    /// What each layer of the stack completed, from the top down.
    pub layers: Vec<Entry>,
}

/// What one counter says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Whose counter: `fathom's cgroup`, `vda`.
    pub name: String,
    /// Steps from the top, which has 0. Layers of one step stand side by side.
    pub step: u32,
    /// From start to stop; `None` where it was not counted.
    pub counted: Option<Moved>,
    /// From start to the end of the final sync; `None` where nothing was written or that was not counted.
    pub with_sync: Option<Moved>,
    /// Bytes of all layers of this step above those issued, as a share of these; below zero where they are less. `None`
    /// where it was not counted.
    pub difference: Option<f64>,
    /// Bytes that may differ for requests in flight at the snapshots.
    pub tolerance_bytes: u64,
    /// `agrees`, `0.3 % more`, `72 % less`, or `not counted: ` and why.
    pub word: String,
}

/// Operations or requests, and what they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// Operations, or requests of a device.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Requests that were merged into others before; `None` for who does not merge.
    pub merges: Option<u64>,
    /// ms that all of them took together; `None` where that is not counted.
    pub ms: Option<u64>,
}

/// The same work at each layer of one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layers {
    /// One per layer and cache mode, in the order of the table: from the lowest layer up, one work after another.
    pub rows: Vec<LayerRow>,
    /// Layers that could not be measured, each with the reason: `vda, 8K random write: ...`.
    pub missing: Vec<String>,
}

/// What one layer made of the work, and what the device below it saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerRow {
    /// `vda`, `ext4, direct`.
    pub name: String,
    /// `8K random read`.
    pub work: String,
    /// Index of its result.
    pub result: usize,
    /// What the tool counted; `None` where a finding invalidates it or there is no number.
    pub tool: Option<Pace>,
    /// 95 % interval of the tool's operations per second; `None` with fewer than three runs.
    pub iops_interval: Option<[f64; 2]>,
    /// 95 % interval of the tool's mean latency in ns; `None` with fewer than three runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_interval_ns: Option<[f64; 2]>,
    /// What the topmost device below it counted in the same time, of the same directions; `None` where it was not counted.
    pub device: Option<Pace>,
    /// What that device completed from the first operation to the end of the final sync, all runs together; `None` where
    /// nothing was written or that was not counted.
    pub device_with_sync: Option<Moved>,
    /// Its rate against that of the layer below; `None` for the lowest.
    pub against: Option<Difference>,
    /// Ids of findings that void, rename or bias this row and are not what it is there to show. A comparison with such a
    /// row compares something else.
    pub findings: Vec<CheckId>,
}

/// How often, how large and how long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pace {
    /// Operations or requests per second.
    pub iops: f64,
    /// Mean bytes of one; `None` where there was none.
    pub bytes: Option<f64>,
    /// Mean latency of one in ns; `None` where there was none, or a device counted less than a ms in all.
    pub latency_ns: Option<f64>,
}

/// A rate against another, from runs of the same rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Name of the other.
    pub name: String,
    /// Its result's index.
    pub result: usize,
    /// Rate by rate: geometric mean over rounds. 0.97 costs 3 %.
    pub factor: f64,
    /// 95 % interval of it over rounds; `None` with fewer than three.
    pub interval: Option<[f64; 2]>,
}

/// The same work at the layers of one place, from the device up: what a plan says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerComparison {
    /// One per job that takes part, in the order of the table.
    #[serde(rename = "rungs")]
    pub layers: Vec<ComparedLayer>,
    /// Layers that could not be measured.
    pub missing: Vec<NotMeasured>,
}

/// One layer of the place, with one way through the page cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedLayer {
    /// Index of the job.
    pub job: usize,
    /// What the table calls it: `vda`, `ext4, direct`.
    pub name: String,
    /// What the job does, which its rows stand under: `8K random read`.
    pub work: String,
    /// Index of the layer that it is compared with; `None` for the lowest.
    pub below: Option<usize>,
    /// Whether its target is read into the page cache before each run: it shows what the cache does.
    pub warm: bool,
    /// Whether it reads a device below the place, at the blocks where the place's own target is stored.
    #[serde(default)]
    pub stored: bool,
}

/// A second of a run, or several in a run of more than an hour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Second {
    /// Index of the run within its job.
    pub run: u32,
    /// Seconds from the beginning of the measured window.
    pub start_s: f64,
    /// Length in seconds; the last one may be shorter.
    pub seconds: f64,
    /// Operations per second, all directions.
    pub iops: f64,
    /// 10^6 bytes per second, all directions.
    pub mb_per_s: f64,
    /// The largest 99th percentile of its stretches in ns: that of the whole second is no larger. `None` where nothing
    /// completed.
    pub p99_at_most_ns: Option<u64>,
    /// The topmost device in the same time, drawn straight between looks at its counters; `None` where it was not counted.
    pub device: Option<DeviceSecond>,
}

/// What the topmost device did in a second, for all streams of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceSecond {
    /// Requests per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Mean time of a request in ns; `None` where none completed.
    pub latency_ns: Option<f64>,
    /// Mean requests in its queue.
    pub in_flight: f64,
}

/// The course of all runs in the stretches in which it was kept: a hundredth of a run each, 10 ms to 1 s. Each list has an entry per
/// stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Course {
    /// Index of the run within its job.
    pub run: Vec<u32>,
    /// Seconds from the beginning of the measured window.
    pub start_s: Vec<f64>,
    /// Length in seconds.
    pub seconds: Vec<f64>,
    /// Mean operations in flight, all directions.
    pub depth_mean: Vec<f64>,
    /// What completed, by direction (`read`).
    pub directions: BTreeMap<String, CourseOf>,
    /// How many neighbouring stretches each entry has at most: 1, or more where there were too many. Of several the median is the mean
    /// of theirs by operations, and the 99th percentile the largest of theirs: that of all of it is no larger.
    pub joined: u32,
}

/// The course of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CourseOf {
    /// Operations per second.
    pub iops: Vec<f64>,
    /// 10^6 bytes per second.
    pub mb_per_s: Vec<f64>,
    /// Median of latency in ns; `None` where nothing completed, as in the next two.
    pub p50_ns: Vec<Option<u64>>,
    /// 99th percentile of latency in ns, however few operations there were.
    pub p99_ns: Vec<Option<u64>>,
    /// Largest latency in ns.
    pub max_ns: Vec<Option<u64>>,
}

/// Latencies as a histogram of [`LatencyBuckets::PER_DECADE`] buckets to a power of ten.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyBuckets {
    /// Where each bucket begins in ns, ascending: 10^(k/50) for a whole k. It ends where 10^((k+1)/50) begins. Empty ones are left out.
    pub from_ns: Vec<f64>,
    /// Operations in each.
    pub ops: Vec<u64>,
}

impl LatencyBuckets {
    /// Buckets to a power of ten.
    pub const PER_DECADE: f64 = 50.0;

    /// Where the bucket that begins here ends.
    pub fn end_ns(from_ns: f64) -> f64 {
        from_ns * 10_f64.powf(1.0 / Self::PER_DECADE)
    }

    /// How many operations there are.
    pub fn count(&self) -> u64 {
        self.ops.iter().fold(0, |sum, ops| sum.saturating_add(*ops))
    }
}

impl From<&Distribution> for LatencyBuckets {
    fn from(of: &Distribution) -> Self {
        let mut buckets: BTreeMap<i64, u64> = BTreeMap::new();
        for (ns, ops) in of.bins.iter().filter(|(_, ops)| *ops > 0) {
            // A bit above, since the logarithm of a whole power may be a bit below it.
            let k = ((*ns).max(1) as f64).log10().mul_add(Self::PER_DECADE, 1e-9).floor() as i64;
            let bucket = buckets.entry(k).or_default();
            *bucket = bucket.saturating_add(*ops);
        }
        let from = |k: i64| {
            let ns = 10_f64.powf(k as f64 / Self::PER_DECADE);
            // Four digits are finer than a bucket.
            (ns * 1e3).round() / 1e3
        };
        Self { from_ns: buckets.keys().map(|k| from(*k)).collect(), ops: buckets.into_values().collect() }
    }
}

/// How the rate of a result behaved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steadiness {
    /// In one word.
    pub state: State,
    /// Why, in one sentence with its numbers.
    pub sentence: String,
    /// Seconds at the beginning of the window that were still warm-up (MSER-5), the most of all runs.
    pub warm_up_s: f64,
    /// Change of the rate per minute as a share of its mean, with its 95 % interval; `None` where too few stretches are
    /// independent of one another, or the run is too short to speak of minutes.
    pub drift_per_minute: Option<Estimate>,
    /// What the rule of the SNIA says about the same rates; `None` with fewer than five rounds.
    pub snia: Option<Snia>,
}

/// The five answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum State {
    /// Surely no drift larger than allowed.
    Steady,
    /// Surely a drift larger than allowed.
    Drifting,
    /// A step from one level to another.
    Cliff,
    /// No steady part was reached.
    WarmUp,
    /// Neither could be shown: it takes longer runs.
    Unproven,
}

impl State {
    /// What the word means, for a reader who sees it for the first time.
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
    /// Its interval.
    pub interval: [f64; 2],
}

/// The steady state criterion of the SNIA Solid State Storage Performance Test Specification 2.0: five rounds whose largest
/// and smallest value differ by at most 20 % of their mean, and whose fitted line by at most 10 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snia {
    /// Whether the last five rounds meet it.
    pub met: bool,
    /// Rounds that there were; a round is a run, or in a single run a fifth or more of its window.
    pub rounds: u32,
    /// Largest less smallest of the last five, as a share of their mean.
    pub excursion: f64,
    /// Largest less smallest value of the line fitted to the last five, as a share of their mean.
    pub slope: f64,
}

impl State {
    /// The word that every format shows.
    pub fn word(self) -> &'static str {
        match self {
            Self::Steady => "STEADY",
            Self::Drifting => "DRIFTING",
            Self::Cliff => "CLIFF",
            Self::WarmUp => "WARM-UP",
            Self::Unproven => "UNPROVEN",
        }
    }
}

/// What the topmost device saw of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFigures {
    /// Operations that fathom issued, warm-up and drain included, to be compared with `ios`.
    pub issued_ops: u64,
    /// Bytes that fathom issued.
    pub issued_bytes: u64,
    /// Requests that the device completed.
    pub ios: u64,
    /// Bytes that it completed.
    pub bytes: u64,
    /// Mean requests in its queue: its time in queue over the time.
    pub depth_mean: f64,
    /// ms of waiting in it, all requests together.
    pub busy_ms: u64,
}

/// What the topmost device did for the operations of a result, in all runs that say so. Its counters span warm-up and drain, as the
/// operations issued do; what it did of each carries over to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtDevice {
    /// Operations per second in the window, the mean of these runs.
    pub iops: f64,
    issued_ops: u64,
    ios: u64,
    bytes: u64,
}

impl AtDevice {
    /// The sum of runs, each with its operations per second; `None` where nothing was issued.
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

    /// Requests that it completed per second, where so many operations per second were carried out.
    pub fn requests_per_s(&self, iops: f64) -> f64 {
        iops * self.ios as f64 / self.issued_ops as f64
    }

    /// Bytes that it moved per second, where so many operations per second were carried out.
    pub fn bytes_per_s(&self, iops: f64) -> f64 {
        iops * self.bytes as f64 / self.issued_ops as f64
    }

    /// Mean size of its requests; `None` where there was none.
    pub fn request_bytes(&self) -> Option<u64> {
        self.bytes.checked_div(self.ios)
    }
}

/// What the CPUs and the memory of the host were busy with during a run, warm-up and drain included. Each is a share of the run's time;
/// `None` where it was not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFigures {
    /// CPU time of the worker that used most, as a share of one CPU.
    pub worker_cpu: Option<f64>,
    /// Time in which CPUs worked, as a share of all CPUs' (`/proc/stat`): neither idle nor waiting for I/O.
    pub cpu: Option<f64>,
    /// Time in which some task waited for I/O (`/proc/pressure/io`, `some`).
    pub io_pressure: Option<f64>,
    /// Time in which some task waited for a CPU (`/proc/pressure/cpu`, `some`).
    pub cpu_pressure: Option<f64>,
    /// Time in which some task waited for memory (`/proc/pressure/memory`, `some`).
    pub memory_pressure: Option<f64>,
    /// Time for which a CPU quota paused threads of fathom's cgroup (`cpu.stat`), all of them together: it may be more than 1.
    pub quota_paused: Option<f64>,
}

impl HostFigures {
    /// Whether nothing of it is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Memory of all logs of a measurement: what is longer is no longer read by people or their tools.
pub const MAX_BYTES: usize = 1 << 30;

/// An operation that was counted in a measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// When its completion was seen, in ns since the phase began.
    pub end_ns: u64,
    /// From its submission to that, in ns; in an open loop from the time at which it was due.
    pub latency_ns: u64,
    /// The part of it behind the submission, in ns.
    pub service_ns: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Index of its target among those of the worker.
    pub file: u16,
    /// What it did.
    pub kind: Kind,
    /// Number of the share of its stream's `op_priorities` that it is of, from 1; 0 for none.
    pub share: u8,
}

/// What the operations of one kind came to in an interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it was over, in ns since the phase began.
    pub end_ns: u64,
    /// What they did.
    pub kind: Kind,
    /// How many completed.
    pub operations: u64,
    /// What they moved.
    pub bytes: u64,
    /// The sum of their latencies in ns.
    pub latency_ns: u64,
    /// The largest of them in ns.
    pub max_ns: u64,
}

/// The log of a worker in one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All operations, in the order in which their completions were seen.
    Each(Vec<Operation>),
    /// What they came to, interval by interval.
    Intervals(Intervals),
}

/// Intervals of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    /// Where the first one begins, in ns since the phase began.
    pub from_ns: u64,
    /// Length of each in ns.
    pub length_ns: u64,
    /// Those in which anything completed, in their order.
    pub all: Vec<Interval>,
    /// When the last operation completed, in ns since the phase began.
    pub last_ns: u64,
}

/// Who did what a log tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLog {
    /// Number of the run, attempts counted, from 1.
    pub run: usize,
    /// Index of the job.
    pub job: usize,
    /// Index of its phase.
    pub phase: usize,
    /// Index of the stream in the phase.
    pub stream: usize,
    /// Number of the worker over all phases of the job, from 1.
    pub number: u32,
    /// When the phase began, in ms since 1970.
    pub began_unix_ms: u64,
    /// What it did.
    pub rows: Rows,
}

impl Rows {
    /// An empty log, of intervals that count from a time; of each operation by itself where they have no length.
    pub fn new(from_ns: u64, length_ns: u64) -> Self {
        let intervals = Intervals { from_ns, length_ns, ..Intervals::default() };
        if length_ns == 0 { Self::Each(Vec::new()) } else { Self::Intervals(intervals) }
    }

    /// Takes operations over that come behind those before. Gives the bytes of memory that it grew by.
    pub fn take(&mut self, operations: &[Operation]) -> usize {
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

    /// The log as intervals of such a length from such a time on, both in ns; what are intervals already stays as it is.
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
    /// Adds an operation to the interval that it ended in: one of the last, since they come in their order.
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

#[cfg(test)]
fn operation(end_ns: u64, latency_ns: u64, kind: Kind) -> Operation {
    Operation { end_ns, latency_ns, service_ns: latency_ns, offset: 0, length: 512, file: 0, kind, share: 0 }
}

#[test]
fn each_latency_is_in_its_bucket_and_none_is_lost() {
    let of = Distribution {
        count: 7,
        bins: vec![(0, 1), (1000, 2), (1040, 3), (100_000, 1)],
        ..Distribution::default()
    };
    let buckets = LatencyBuckets::from(&of);
    assert_eq!((buckets.count(), buckets.ops.as_slice()), (7, [1, 5, 1].as_slice()));
    assert_eq!(buckets.from_ns, [1.0, 1000.0, 100_000.0]);
    assert!((LatencyBuckets::end_ns(1000.0) - 1_047.128_5).abs() < 1e-3);
    assert_eq!(LatencyBuckets::from(&Distribution::default()), LatencyBuckets::default());
}

#[test]
fn intervals_lose_nothing_and_tell_kinds_apart() {
    let all: Vec<Operation> =
        (0..100).map(|i| operation(i * 7, i, if i % 3 == 0 { Kind::Write } else { Kind::Read })).collect();
    let mut taken = Rows::new(0, 50);
    let grown: usize = all.chunks(9).map(|some| taken.take(some)).sum();
    let mut each = Rows::new(0, 0);
    each.take(&all);
    assert_eq!(each.intervals(0, 50), taken.intervals(0, 1));
    let intervals = taken.intervals(0, 1).all;
    assert_eq!(grown, size_of_val(&intervals[..]));
    assert_eq!(intervals.iter().map(|s| s.operations).sum::<u64>(), 100);
    assert_eq!(intervals.iter().map(|s| s.latency_ns).sum::<u64>(), 4950);
    assert!(intervals.iter().all(|s| s.end_ns % 50 == 0 && s.max_ns < s.end_ns / 7 + 1));
    assert!(intervals.is_sorted_by_key(|s| s.end_ns));
    assert_eq!(intervals.iter().filter(|s| s.end_ns == 100).count(), 2);
}

#[test]
fn the_end_of_time_is_an_interval() {
    let mut rows = Rows::new(1, 3);
    rows.take(&[operation(u64::MAX, u64::MAX, Kind::Read), operation(u64::MAX, 7, Kind::Read)]);
    let intervals = rows.intervals(0, 0).all;
    assert_eq!((intervals.len(), intervals[0].operations, intervals[0].latency_ns), (1, 2, u64::MAX));
}
