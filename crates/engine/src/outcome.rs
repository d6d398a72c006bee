//! What a worker leaves behind.
//!
//! For: the last block, totals and costs of one worker. Not for: adding workers up.

use crate::interface::Granted;
use crate::tally::{Block, Totals};
use model::job::FoundDepth;
use model::record::stream::DepthCounts;
use model::record::{LaneEnd, PriorityEnd, Replayed, ThreadIo};
use sys::perf::Counted;
use sys::thread::Usage;

/// What a worker leaves behind.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it ended early.
    pub error: Option<String>,
    /// What the engine asked the kernel for.
    pub granted: Granted,
    /// The last block, which the collector has not seen.
    pub last: Option<Box<Block>>,
    /// All its operations.
    pub totals: Totals,
    /// Length of the window really measured.
    pub window_ns: u64,
    /// ns from its first stamp to its last.
    pub wall_ns: u64,
    /// What it cost in that time.
    pub usage: Usage,
    /// Cycles and instructions from its first stamp to its last, or why they were not counted; `None` where it did not begin.
    pub counted: Option<Result<Counted, String>>,
    /// ns of that time that it was ready to run and waited for a CPU, or why that is not known; `None` where it did not begin.
    pub ready_ns: Option<Result<u64, String>>,
    /// Bytes and calls that the kernel counted for it in that time, or why that is not known; `None` where it did not begin.
    pub io: Option<Result<ThreadIo, String>>,
    /// System calls in that time, or why they were not counted; `None` where that was not asked for.
    pub calls: Option<Result<u64, String>>,
    /// How many operations may be in flight, where that was searched for.
    pub depth: Option<FoundDepth>,
    /// Operations in flight and per call, where that was asked for.
    pub depth_counts: Option<DepthCounts>,
    /// How far its source could follow a capture; `None` where it follows none.
    pub replayed: Option<Replayed>,
    /// Its operations apart by their priority, where some have one of their own.
    pub priorities: Vec<PriorityEnd>,
    /// Its totals within the window by target, where its lanes do not tell enough; else empty.
    pub lanes: Vec<LaneEnd>,
    /// Turns of the loop.
    pub turns: u64,
    /// The first read that found something else than what should be there.
    pub difference: Option<Difference>,
    /// Operations that were held up because their log was not taken over as fast.
    pub log_waits: u64,
}

/// A read that found something else than what should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Index of its file among those of the worker.
    pub file: u16,
    /// First byte of the read.
    pub offset: u64,
    /// Its bytes.
    pub length: u32,
    /// The first of them that is another.
    pub at: usize,
}

impl Outcome {
    pub(crate) fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}
