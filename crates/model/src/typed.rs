//! What was typed in the language of another tool, as far as it says how that tool tells of its results.
//!
//! For: the formats of that tool, which repeat it. Not for: what is done ([`crate::job`]), nor for reading such a language.

use crate::diskspd::Profile;
use crate::fio_layout::FioLayout;
use serde::{Deserialize, Serialize};

/// Options with their values, in the order of typing. What was typed without a value is not among them.
pub type Options = Vec<(String, String)>;

/// What was typed of all streams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Typed {
    /// Options that were typed for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Options,
    /// What was typed of each, by phase and stream.
    pub phases: Vec<Vec<TypedStream>>,
    /// The whole of it, where it was typed in the language of DISKSPD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// How much is told of the time without work of the CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// Whether workers count the operations in flight at each submission, which the tables of fio's formats need.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_depth: bool,
}

/// How much is told of the time without work of the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// Their mean.
    All,
    /// That of each too.
    Each,
}

/// What was typed of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TypedStream {
    /// Its own options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Options,
    /// Number of its group.
    pub group: usize,
    /// Whether it is told as one result with the stream before it, where that is of the same group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
    /// Whether its directions are told as one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Whether a sync after its last write was asked for, so that its failure is the job's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub final_sync: bool,
    /// Files that its operations are logged to, of fio's kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<Logs>,
    /// How fio's formats print it.
    #[serde(default, skip_serializing_if = "FioLayout::is_default")]
    pub layout: FioLayout,
}

/// Logs as fio writes them: a file of each kind that was asked for, for each worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Logs {
    /// Each kind with the beginning of its files' names.
    pub files: Vec<(LogKind, String)>,
    /// Milliseconds that a line of latencies stands for; 0 for one operation.
    pub latency_ms: u64,
    /// Milliseconds that a line of bandwidth stands for; 0 for one operation.
    pub bandwidth_ms: u64,
    /// Milliseconds that a line of operations per second stands for; 0 for one operation.
    pub iops_ms: u64,
    /// Milliseconds that a histogram stands for.
    pub histogram_ms: u64,
    /// How often the number of a histogram's columns is halved.
    pub coarseness: u32,
    /// What of several latencies a line has.
    pub value: LogValue,
    /// Whether a line has the offset.
    pub offset: bool,
    /// Whether the priority is written in full.
    pub priority: bool,
    /// Whether a line has the time of the submission.
    pub issue_time: bool,
    /// Whether times count from 1970 instead of the beginning.
    pub unix_epoch: bool,
    /// Whether all workers write to one file.
    pub together: bool,
}

/// What a log of fio's is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// Latency.
    Lat,
    /// Its part before the submission, which is nothing here.
    Slat,
    /// Its part behind that.
    Clat,
    /// Bandwidth.
    Bw,
    /// Operations per second.
    Iops,
    /// Histograms of latencies.
    ClatHist,
    /// What was done, to be done again.
    Iolog,
}

/// What of several latencies a line of a log has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogValue {
    /// Their mean.
    #[default]
    Mean,
    /// That of the slowest operation.
    Largest,
    /// One and the other.
    Both,
}

impl LogKind {
    /// How it is called in names of files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lat => "lat",
            Self::Slat => "slat",
            Self::Clat => "clat",
            Self::Bw => "bw",
            Self::Iops => "iops",
            Self::ClatHist => "clat_hist",
            Self::Iolog => "iolog",
        }
    }
}

impl Logs {
    /// Length in ns of the intervals that its files can be made from; 0 where they need each operation.
    pub fn interval_ns(&self) -> u64 {
        let each = |(kind, _): &(LogKind, String)| match kind {
            LogKind::Lat | LogKind::Slat | LogKind::Clat => self.latency_ms,
            LogKind::Bw => self.bandwidth_ms,
            LogKind::Iops => self.iops_ms,
            LogKind::ClatHist | LogKind::Iolog => 0,
        };
        let mut all = self.files.iter().map(each);
        let first = all.next().unwrap_or(0);
        if all.all(|ms| ms == first) { first.saturating_mul(1_000_000) } else { 0 }
    }
}

/// What was typed of one result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypedResult {
    /// Options that were typed for all streams.
    pub defaults: Options,
    /// What was typed of its own.
    pub stream: TypedStream,
    /// All of what was typed, in the language of DISKSPD.
    pub profile: Option<Profile>,
    /// How much is told of the time without work of the CPUs.
    pub idle: Option<Idle>,
}

impl Typed {
    /// What was typed of a result.
    pub fn result(&self, phase: usize, stream: usize) -> Option<TypedResult> {
        let stream = self.phases.get(phase)?.get(stream)?.clone();
        let (defaults, profile) = (self.defaults.clone(), self.profile.clone());
        Some(TypedResult { defaults, stream, profile, idle: self.idle })
    }
}
