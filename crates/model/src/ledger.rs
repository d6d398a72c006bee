//! The ledger of a result and the comparison of layers, as they stand in a report.
//!
//! For: data of the JSON contract (format 1). Not for: adding them up (the crate `analysis`) nor laying them out.

use crate::check_id::CheckId;
use crate::not_measured::NotMeasured;
use serde::{Deserialize, Serialize};

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
