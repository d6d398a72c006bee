//! How runs and sessions end.
//!
//! For: what is known when the last operation has completed. Not for: totals of streams and costs of workers ([`super::stream`],
//! [`super::worker`]), which an end holds.

use super::stream::StreamEnd;
use super::worker::WorkerEnd;
use crate::Known;
use crate::command::CommandEnd;
use serde::{Deserialize, Serialize};

/// A run has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// ns since the session began.
    pub at_ns: u64,
    /// How it ended.
    pub ending: RunEnding,
    /// One entry per stream of the phase.
    pub streams: Vec<StreamEnd>,
    /// One entry per worker.
    pub workers: Vec<WorkerEnd>,
    /// ns from the last completion to the end of the final sync; `None` where nothing was written or it failed.
    pub sync_ns: Option<u64>,
    /// Syncs and closes of targets after the last operation that failed. Sessions of older versions have a sentence in the notes instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sync_failures: Vec<SyncFailure>,
    /// CPU time of the whole process in user space and in the kernel while workers ran, in ns: threads of libraries and those
    /// that the kernel works on are in it. `None` where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_ns: Option<[u64; 2]>,
    /// How long fathom as a whole stood still, by the thread that watches the workers; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still: Option<Known<Still>>,
    /// What happened on the way, in sentences: pages that stayed, dirt that did not settle.
    pub notes: Vec<String>,
    /// What is known of a command of the user; `None` where fathom itself did the I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandEnd>>,
}

/// A sync or close of a target that failed: the kernel accepted writes and could not store them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFailure {
    /// Index of the target in the plan.
    pub target: usize,
    /// Which call failed.
    pub call: SyncedBy,
    /// The error number; 0 if the kernel gave none.
    pub errno: i32,
}

/// A call that makes writes stable after the last operation, or reports that they were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncedBy {
    /// `fdatasync(2)` on the target.
    FinalSync,
    /// `close(2)` of a worker's descriptor.
    Close,
}

impl SyncedBy {
    /// As a sentence names it: `final sync`, `close`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FinalSync => "final sync",
            Self::Close => "close",
        }
    }
}

/// Times for which fathom was stopped or frozen, or the machine was: a thread that only sleeps came back too late and had not waited for a
/// CPU, and samples of the workers' states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Still {
    /// How often.
    pub times: u32,
    /// ns of the one that took longest.
    pub longest_ns: u64,
    /// All together, in ns.
    pub total_ns: u64,
    /// The states of the workers, or why they could not be sampled; `None` in records of a time when nothing sampled them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Known<WorkerStates>>,
}

/// Samples of the workers' states, all workers of a run together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStates {
    /// All samples.
    pub samples: u64,
    /// Samples that found a worker stopped: by a signal, by a tracer, or in a freezer.
    pub stopped: u64,
    /// Samples that found a tracer attached to a worker.
    pub traced: u64,
    /// The tracer that was seen first: `strace (pid 4711)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracer: Option<String>,
}

impl RunEnd {
    /// The end of a run that never began.
    pub fn without(ending: RunEnding) -> Self {
        Self {
            at_ns: 0,
            ending,
            streams: Vec::new(),
            workers: Vec::new(),
            sync_ns: None,
            sync_failures: Vec::new(),
            process_ns: None,
            still: None,
            notes: Vec::new(),
            command: None,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how", content = "why")]
pub enum RunEnding {
    /// The measured window was filled.
    Complete,
    /// A signal ended it.
    Interrupted,
    /// An error ended it, in a sentence.
    Failed(String),
    /// It ended before the first run: what was known of the target would have invalidated the number, in a sentence.
    NotMeasured(String),
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// How it ended.
    pub ending: RunEnding,
    /// What happened since the last run, in sentences.
    pub notes: Vec<String>,
    /// Change of the stamps' clock against the kernel's over the session, in parts per million; `None` where it is the kernel's.
    pub clock_drift_ppm: Option<f64>,
}
