//! Pace: when operations are submitted, how many at once, and what ends them.
//!
//! For: closed and open loops, batches and stop rules. Not for: how many are in flight ([`super::stream`]).

use super::kind::Kind;
use super::sizes::PerKind;
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
    /// Closed loop, and each direction never faster than this per second over all workers; 0 for no limit.
    Each {
        /// Operations per second.
        iops: PerKind<f64>,
        /// Bytes per second.
        bytes_per_s: PerKind<f64>,
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
            Self::Closed | Self::Limited { .. } | Self::Each { .. } => {
                Self::Open { iops, arrivals: Arrivals::default() }
            }
        }
    }

    /// Whether operations of a kind are never faster than so many per second, or so many bytes.
    pub fn limits(&self, kind: Kind) -> bool {
        match self {
            Self::Closed => false,
            Self::Limited { iops, bytes_per_s } => *iops > 0.0 || *bytes_per_s > 0.0,
            Self::Each { iops, bytes_per_s } => iops.for_kind(kind) > 0.0 || bytes_per_s.for_kind(kind) > 0.0,
            Self::Open { .. } => true,
        }
    }
}

/// Distances between arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential, as of many independent users.
    #[default]
    Poisson,
    /// All the same.
    Constant,
    /// Several at once, at exponential distances; their number is geometric.
    Batch {
        /// Mean of that number, at least 1.
        mean: f64,
    },
    /// At random while it is on and none while it is off, both for exponential times.
    OnOff {
        /// Mean time on in ns.
        on_ns: u64,
        /// Mean time off in ns.
        off_ns: u64,
    },
}

impl Arrivals {
    /// Variance of their number in a long time, as a multiple of the mean, at so many a second (Fischer and Meier-Hellstern, "The
    /// Markov-modulated Poisson process cookbook", 1993).
    pub fn dispersion(self, iops: f64) -> f64 {
        match self {
            Self::Poisson => 1.0,
            Self::Constant => 0.0,
            Self::Batch { mean } => 2.0 * mean - 1.0,
            Self::OnOff { on_ns, off_ns } => {
                let (on, off) = (on_ns as f64 / 1e9, off_ns as f64 / 1e9);
                1.0 + 2.0 * iops * off * off / (on + off).max(f64::MIN_POSITIVE)
            }
        }
    }
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
