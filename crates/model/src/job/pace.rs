//! Pace: when operations are submitted, how many at once, and what ends them.
//!
//! For: closed and open loops, batches and stop rules. Not for: how many are in flight ([`super::stream`]).

use serde::{Deserialize, Serialize};

/// Bursts that end by a time, and the pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bursts {
    /// How long a burst lasts, in ns.
    pub time_ns: u64,
    /// How long the pause behind it lasts, in ns, from the completion of its last operation.
    pub pause_ns: u64,
    /// Operations after which it ends before its time; `None` where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u32>,
}

/// How many operations one call submits and waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Batch {
    /// Operations gathered before they are submitted; 1 is eager: each as soon as it is prepared.
    pub submit: u32,
    /// Completions waited for when the queue is full.
    pub complete: u32,
}

/// When operations are submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As soon as there is room: closed loop.
    #[default]
    Closed,
    /// Closed loop, and never more than this per second over all workers: operations, bytes; 0 for no limit.
    Limited {
        /// Operations per second.
        iops: f64,
        /// Bytes per second.
        bytes_per_s: f64,
    },
    /// At times that are fixed in advance, whatever the target does; latency counts from them. Over all workers.
    Open {
        /// Operations per second.
        iops: f64,
        /// Distances between them.
        arrivals: Arrivals,
    },
}

impl Pace {
    /// An open loop of so many operations per second, its arrivals drawn as they were.
    #[must_use]
    pub fn offering(self, iops: f64) -> Self {
        match self {
            Self::Open { arrivals, .. } => Self::Open { iops, arrivals },
            Self::Closed | Self::Limited { .. } => Self::Open { iops, arrivals: Arrivals::default() },
        }
    }
}

/// Distances between arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential, as of many independent users.
    #[default]
    Poisson,
    /// All the same.
    Constant,
}

/// What ends a stream before its time, over all its workers, warm-up not counted. The first to be reached counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopRule {
    /// Operations submitted.
    pub operations: Option<u64>,
    /// Their bytes.
    pub bytes: Option<u64>,
    /// Time in ns since its first operation, where its phase lasts longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
}

impl StopRule {
    /// Whether nothing ends a stream before its phase.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
