//! Replay: a captured load that a stream carries out again, and what that load was like.
//!
//! For: what is meant by `fathom run x.capture`. Not for: the requests themselves (crate `capture`), nor how it went
//! ([`crate::record::Replayed`]).

use super::kind::Kind;
use serde::{Deserialize, Serialize};

/// When captured requests are submitted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplayPace {
    /// Each as long after the last of its task that had completed as it was then.
    #[default]
    Dependent,
    /// At the times of the capture, whatever the target does: an open loop.
    Timed,
    /// As soon as there is room.
    Fast,
}

impl ReplayPace {
    /// All of them with their words.
    pub const ALL: [(&'static str, Self); 3] =
        [("dependent", Self::Dependent), ("timed", Self::Timed), ("fast", Self::Fast)];

    /// The word of the flag `--pace`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Dependent => "dependent",
            Self::Timed => "timed",
            Self::Fast => "fast",
        }
    }
}

/// A captured load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replay {
    /// The capture file, as text that leads to it.
    pub file: String,
    /// When its requests are submitted.
    pub pace: ReplayPace,
    /// What the times of the capture are divided by.
    pub speed: f64,
    /// What is changed of its operations.
    #[serde(default, skip_serializing_if = "Changes::is_none")]
    pub changes: Changes,
    /// Whether the bytes that it touched are moved together, since the target is smaller than what they were captured on.
    pub dense: bool,
    /// Whether its device was asked to make single writes stable (FUA), for which the target is opened a second time with `O_DSYNC`.
    pub stable_writes: bool,
    /// Largest read or write in bytes.
    pub largest_bytes: u32,
    /// What it was like.
    pub original: Original,
}

/// What is changed of captured operations before they are carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// What offsets are divided by, in whole sectors of 512 bytes; 0 leaves them.
    pub divide: u64,
    /// Multiple in bytes, a power of two, that offsets are rounded down to and sizes of requests up; 0 leaves them. Operations of programs keep
    /// their sizes.
    pub align_bytes: u64,
    /// Kinds that are left out.
    pub skip: Vec<Kind>,
}

impl Changes {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A captured load in figures: those of its requests that are replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Original {
    /// The device that it was captured on, or the trace of another tool.
    pub device: String,
    /// `complete`, `incomplete` or `unknown`, as `fathom show` says of the capture.
    pub completeness: String,
    /// Why the file could not be read to its end; `None` where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// From the first issue to the last completion, in ns.
    pub elapsed_ns: u64,
    /// Mean number in flight over that time; `None` where no completion is known.
    pub depth_mean: Option<f64>,
    /// Most in flight.
    pub depth_max: u32,
    /// Tasks that are kept apart.
    pub tasks: u32,
    /// Distinct bytes that were read or written, in whole blocks of 4 KiB.
    pub footprint_bytes: u64,
    /// First byte behind all that was touched.
    pub end_bytes: u64,
    /// Bytes that all offsets and sizes of reads and writes are multiples of.
    pub align_bytes: u32,
    /// Share of reads and writes that begin where the last of their direction ended, in percent.
    pub sequential_percent: f64,
    /// What it does, each with its figures.
    pub kinds: Vec<OriginalKind>,
    /// Requests that have no counterpart here: commands to the device, operations on zones.
    pub left_out: u64,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OriginalKind {
    /// Which.
    pub kind: Kind,
    /// How many.
    pub operations: u64,
    /// Sum of their sizes.
    pub bytes: u64,
    /// Smallest and largest, in bytes.
    pub sizes: [u64; 2],
    /// Median latency in ns from issue to completion; `None` where fewer than ten lie beyond.
    pub p50_ns: Option<u64>,
    /// 99th percentile in ns; `None` where fewer than ten lie beyond.
    pub p99_ns: Option<u64>,
}

impl Original {
    /// Operations of all kinds.
    pub fn operations(&self) -> u64 {
        self.kinds.iter().map(|k| k.operations).sum()
    }

    /// Those of a kind, where there are any.
    pub fn for_kind(&self, kind: Kind) -> Option<&OriginalKind> {
        self.kinds.iter().find(|k| k.kind == kind)
    }

    /// How many of a kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.for_kind(kind).map_or(0, |k| k.operations)
    }
}

impl Replay {
    /// The capture's name without its folders: `db.capture`.
    pub fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// What it is called: `replay of db.capture, dependent`, `replay of db.capture, timed, speed 2`.
    pub fn describe(&self) -> String {
        let speed = if (self.speed - 1.0).abs() < f64::EPSILON {
            String::new()
        } else {
            format!(", speed {}", self.speed)
        };
        format!("replay of {}, {}{speed}", self.file_name(), self.pace.word())
    }

    /// How long it should take in ns by the capture, at its speed; `None` where it is as fast as it can be.
    pub fn expected_ns(&self) -> Option<u64> {
        (self.pace != ReplayPace::Fast).then_some((self.original.elapsed_ns as f64 / self.speed) as u64)
    }
}
