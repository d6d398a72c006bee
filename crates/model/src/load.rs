//! The load curve, as it stands in a report: latency against the load that was offered, its knee, and a latency target.
//!
//! For: data of the JSON contract (format 1), key `limit`. Not for: computing it (the crate `analysis`) nor laying it out.

use crate::job::Arrivals;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Latency against offered load, up to and beyond what the storage serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadCurve {
    /// Operations per second of the closed loop, which shares count from: geometric mean over runs. `None` where it has no
    /// complete run or a finding invalidates it.
    pub capacity_iops: Option<f64>,
    /// Its 95 % interval over runs; `None` with fewer than three.
    pub capacity_interval: Option<[f64; 2]>,
    /// Index of its result; `None` where no run of it was complete.
    pub capacity_result: Option<usize>,
    /// Loads that were offered in an open loop, ascending.
    pub points: Vec<LoadPoint>,
    /// Where more load begins to cost more latency than it gains; `None` where too few loads have a latency.
    pub knee: Option<Knee>,
    /// Whether the latency target is met, and up to which load; `None` where none was asked for.
    #[serde(rename = "promise")]
    pub latency_target: Option<MetLoad>,
    /// What the headline says, with all its numbers, in one sentence.
    pub sentence: String,
    /// Indices of the results that the headline rests on.
    pub rests_on: Vec<usize>,
}

impl LoadPoint {
    /// The share of a percentile that is fathom's own lateness: what separates its upper bound from its lower one. `None` without both.
    pub fn lateness_share(&self, percentile: &str) -> Option<f64> {
        let of = |all: &BTreeMap<String, Option<u64>>| all.get(percentile).copied().flatten();
        let (upper, lower) = (of(&self.percentiles_ns)?, of(&self.service_percentiles_ns)?);
        (upper > 0).then(|| upper.saturating_sub(lower) as f64 / upper as f64)
    }
}

impl LoadCurve {
    /// The percentile that the latency target is about, without its `p`; the 99th where there is none.
    pub fn percentile(&self) -> &str {
        self.latency_target.as_ref().map_or("99", |target| &target.percentile)
    }
}

/// One load that was offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPoint {
    /// Index of its result.
    pub result: usize,
    /// Operations per second that arrived.
    pub offered_iops: u64,
    /// Operations per second that completed: geometric mean over runs; `None` where none did.
    pub achieved_iops: Option<f64>,
    /// 95 % interval of it over runs; `None` with fewer than three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_interval: Option<[f64; 2]>,
    /// The offered load by the capacity; `None` where that is not known.
    pub share: Option<f64>,
    /// Complete runs.
    pub runs: u32,
    /// Mean latency of all directions from the intended start in ns; `None` in overload, and where a finding invalidates it.
    pub mean_ns: Option<f64>,
    /// Percentiles (`"99.9"`) of the same in ns, all runs together; `None` also if fewer than ten operations lie beyond. They include
    /// fathom's own lateness, so they are an upper bound on the latency of the storage.
    pub percentiles_ns: BTreeMap<String, Option<u64>>,
    /// The same percentiles of the time from submission to completion: a lower bound on the latency of storage that serves in
    /// order of arrival.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service_percentiles_ns: BTreeMap<String, Option<u64>>,
    /// 95 % interval of each over runs, of a typical one; those that are withheld and those with fewer than three runs are not in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub percentile_intervals_ns: BTreeMap<String, [f64; 2]>,
    /// 99th percentile of the lateness of submissions in ns; `None` where no operation completed.
    pub lateness_p99_ns: Option<u64>,
    /// Mean requests in the queue of the topmost device; `None` where it was not counted.
    pub device_depth: Option<f64>,
    /// What became of the load.
    pub state: LoadState,
    /// Whether the latency target was met at this load, at 95 %: `true` if the upper bound is within it, `false` if the lower bound is
    /// beyond it. `None` without a target, and if the runs prove neither.
    #[serde(rename = "kept")]
    pub met: Option<bool>,
}

/// What became of an offered load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoadState {
    /// It was served as it came.
    Served,
    /// It was served, and fathom's own lateness is more than a tenth of some percentile.
    Late,
    /// More came than was served: latency is the length of the run, and withheld.
    Overload,
    /// A finding invalidates what was measured.
    Void,
}

/// The load of greatest power: operations per second by mean latency. Below it a percent more load costs less than a percent
/// of latency, above it more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knee {
    /// Operations per second.
    pub iops: f64,
    /// By the capacity; `None` where that is not known.
    pub share: Option<f64>,
    /// Whether a higher load was measured that has less power; else the knee is at this load at least.
    pub reached: bool,
}

/// Up to which load a latency target is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetLoad {
    /// Name of the percentile: `99`.
    pub percentile: String,
    /// What it must not exceed in ns.
    pub latency_ns: u64,
    /// The highest load below the first miss that was shown to meet it, at 95 %; `None` where none was.
    #[serde(rename = "kept_iops")]
    pub met_iops: Option<u64>,
    /// The first miss: the lowest load that was shown to miss it, at 95 %; `None` where none was.
    #[serde(rename = "broken_iops")]
    pub missed_iops: Option<u64>,
}

/// A latency target: which percentile, and how requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyTarget {
    /// Rank of the latency from the intended start: 0.99.
    pub quantile: f64,
    /// What it must not exceed, in ns; `None` where only the curve is wanted.
    pub latency_ns: Option<u64>,
    /// How requests arrive.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Whether the loads of a curve and its knee are measured too. Older sessions always did.
    #[serde(default = "yes")]
    pub curve: bool,
}

fn yes() -> bool {
    true
}
