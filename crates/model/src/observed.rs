//! What was seen of a result, all its complete runs together, or without any the last one as far as it came: distributions as a whole, costs of the workers, counters of disks.
//!
//! For: formats that other tools read, which show more than the JSON contract does. Not for: that contract, in which none of this
//! stands, nor for what follows from it ([`crate::report`]).

use crate::depth_counts::DepthCounts;
use crate::distribution::Distribution;
use crate::evidence::BlockStat;
use crate::job::{IoPriority, Kind, Steadied, Steady};
use crate::record::Bucket;
use crate::typed::TypedResult;
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
