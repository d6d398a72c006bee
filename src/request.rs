//! The request: what the user said, checked as far as that needs no look at the machine.
//!
//! For: the value between the command line and the plan. Not for: defaults, which the plan fills in and gives a reason for.

use model::job::{Batch, Cache, Pattern};
use model::plan::Hook;
use model::profile::Profile;
use std::path::PathBuf;

/// What the user said.
#[derive(Clone, Debug)]
pub struct Request {
    /// The command line as typed.
    pub command: Vec<String>,
    /// What to measure.
    pub work: Work,
    /// Where; the current directory where nothing was said.
    pub target: Option<PathBuf>,
    /// Bytes to touch.
    pub size_bytes: Option<u64>,
    /// First byte.
    pub offset_bytes: Option<u64>,
    /// Length of each measured window.
    pub time_ns: Option<u64>,
    /// Time before it.
    pub warmup_ns: Option<u64>,
    /// Times each job is measured.
    pub runs: Option<u32>,
    /// Seed of everything random.
    pub seed: Option<u64>,
    /// Name of the engine.
    pub engine: Option<String>,
    /// Open flags.
    pub cache: Option<Cache>,
    /// How operations are handed over.
    pub batch: Option<Batch>,
    /// Name or serial of what may be overwritten.
    pub destroy: Option<String>,
    /// A fault on purpose.
    pub hook: Option<Hook>,
}

/// What to measure.
#[derive(Clone, Debug)]
pub enum Work {
    /// All tests of a profile; `None` where none was named.
    Profile(Option<&'static Profile>),
    /// One workload from flags.
    Workload(Workload),
}

/// One workload from flags.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Order of offsets.
    pub pattern: Pattern,
    /// Share of reads where the pattern alone says it: 100, 0, or `None` for a mix.
    pub read_percent: Option<u8>,
    /// Share of reads of a mix.
    pub mix_percent: Option<u8>,
    /// Bytes per operation.
    pub block_bytes: Option<u64>,
    /// Operations in flight per worker.
    pub depth: Option<u32>,
    /// Threads.
    pub workers: Option<u32>,
}
