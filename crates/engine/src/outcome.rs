//! What a worker leaves behind.
//!
//! For: the last block, totals and costs of one worker. Not for: adding workers up.

use crate::interface::Granted;
use crate::tally::{Block, Totals};
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
    /// The same in cycles and instructions, or why they were not counted; `None` where it did not begin.
    pub counted: Option<Result<Counted, String>>,
    /// ns of that time that it was ready to run and waited for a CPU, or why that is not known; `None` where it did not begin.
    pub ready_ns: Option<Result<u64, String>>,
    /// System calls in that time, or why they were not counted; `None` where that was not asked for.
    pub calls: Option<Result<u64, String>>,
    /// Turns of the loop.
    pub turns: u64,
}

impl Outcome {
    pub(crate) fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}
