//! What a worker cost over a run, and how it ended.
//!
//! For: its CPU time, what its engine used and what the kernel refused it. Not for: its operations, which are its stream's
//! ([`super::stream`]).

use crate::Known;
use crate::job::FoundDepth;
use serde::{Deserialize, Serialize};

/// What [`WorkerEnd::used`] says where the data of the next write are made while the queue is full.
pub const PREPARES_AHEAD: &str = "data of the next write made while waiting";

/// What a worker cost and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// Index of the worker.
    pub worker: u32,
    /// Index of its stream.
    pub stream: usize,
    /// ns between its first and last stamp.
    pub wall_ns: u64,
    /// CPU time in user space in that time.
    pub user_ns: u64,
    /// CPU time in the kernel in that time.
    pub system_ns: u64,
    /// Times it gave up the CPU by itself and by force.
    pub switches: [u64; 2],
    /// Page faults without and with I/O; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<[u64; 2]>,
    /// Cycles and instructions in that time, or why they were not counted.
    #[serde(default = "not_asked")]
    pub counted: Known<[u64; 2]>,
    /// How many operations it had in flight, where that was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<FoundDepth>,
    /// Turns of the loop; operations per turn tell how eager it was.
    pub turns: u64,
    /// Operations that completed, warm-up and drain included.
    #[serde(default)]
    pub ops: u64,
    /// ns that it was ready to run and waited for a CPU, or why that is not known.
    #[serde(default = "not_asked_for_waiting")]
    pub ready_ns: Known<u64>,
    /// What the engine really used: `registered buffers`, ...
    pub used: Vec<String>,
    /// What was asked of the kernel and refused, with the reason.
    pub fallbacks: Vec<String>,
    /// Why it ended early.
    pub error: Option<String>,
}

impl Default for WorkerEnd {
    fn default() -> Self {
        Self {
            worker: 0,
            stream: 0,
            wall_ns: 0,
            user_ns: 0,
            system_ns: 0,
            switches: [0, 0],
            faults: None,
            counted: not_asked(),
            depth: None,
            turns: 0,
            ops: 0,
            ready_ns: not_asked_for_waiting(),
            used: Vec::new(),
            fallbacks: Vec::new(),
            error: None,
        }
    }
}

/// What older files say of cycles and instructions.
fn not_asked() -> Known<[u64; 2]> {
    Err("cycles and instructions were not asked for".into())
}

/// What older files say of waiting for a CPU.
fn not_asked_for_waiting() -> Known<u64> {
    Err("waiting for a CPU was not asked for".into())
}
