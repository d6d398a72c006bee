//! Limits on what can be asked for, so that a slip of the keyboard is answered at once and nothing overflows later.
//!
//! For: numbers with their reasons. Not for: what this machine can bear, which the plan finds out.

use crate::units::GIB;

/// Largest operation in bytes: far above any device's, and its length still fits the kernel's answer.
pub const MAX_BLOCK_BYTES: u64 = GIB;
/// Most operations in flight per worker: half of what one io_uring can hold (`IORING_MAX_ENTRIES` is 32768).
pub const MAX_DEPTH: u32 = 16_384;
/// Most threads of one stream: more than the CPUs of any machine that this is for.
pub const MAX_WORKERS: u32 = 1024;
/// Most repeats of one job.
pub const MAX_RUNS: u32 = 1000;
/// Times that a run which others disturb is measured at most, unless something else is said.
pub const ATTEMPTS: u32 = 3;
/// The most of that which can be said.
pub const MAX_ATTEMPTS: u32 = 100;
/// Runs that an interval or a trend is decided on at least: below, what looks narrow or flat is so by luck too often.
pub const FEWEST_ROUNDS: u32 = 5;
/// Fewest runs in which a percentile is compared with a limit: fewer are too often alike by chance.
pub const FEWEST_GATED_RUNS: u32 = 8;
/// Widest precision that can be asked for, in percent: beyond, the runs say no more than an order of magnitude.
pub const MAX_PRECISION_PERCENT: f64 = 50.0;
/// Longest time in ns: a day. Longer ones are a slip.
pub const MAX_TIME_NS: u64 = 86_400_000_000_000;
/// Shortest measured window in ns: below, the ramp is all there is.
pub const MIN_TIME_NS: u64 = 1_000_000;
/// Highest rate per second: above what any engine hands over.
pub const MAX_RATE: f64 = 1e9;
/// Largest exponent of a zipf law; far below it all goes to one block already.
pub const MAX_THETA: f64 = 100.0;
/// Most zones of an order.
pub const MAX_ZONES: usize = 1000;
/// Most quantiles of a think time.
pub const MAX_QUANTILES: usize = 1000;
/// Most sequential runs at once of a stream: more positions than any reader or writer keeps.
pub const MAX_INTERLEAVED: u32 = 1024;
/// Longest mean of a sequential run, in operations.
pub const MAX_RUN: f64 = 1e9;
/// Most calls that make writes stable behind one write, and most writes before one; in between shares are held to four digits.
pub const MAX_SYNCS: f64 = 1e4;
/// Largest mean of a batch of arrivals.
pub const MAX_BATCH: f64 = 1e6;
/// Most lines of an access specification, as in Iometer.
pub const MAX_LINES: usize = 100;
/// Most turns of a stream.
pub const MAX_TURNS: usize = 100;
/// Most sizes of a split.
pub const MAX_SPLIT: usize = 100;
/// Most phases of a job.
pub const MAX_PHASES: usize = 1000;
/// Most streams of a phase.
pub const MAX_STREAMS: usize = 1000;
/// Most streams of a job, over all its phases.
pub const MAX_JOB_STREAMS: usize = 1000;
/// Most targets of a stream.
pub const MAX_TARGETS: usize = 1000;
/// Longest path in bytes: the kernel's `PATH_MAX`, its final zero aside.
pub const MAX_PATH: usize = 4095;
/// Most hosts from the part that a host works on to its own.
pub const MAX_SHIFT: u32 = 1 << 20;
/// Highest number of a CPU: the kernel's `NR_CPUS` goes to 8192.
pub const MAX_CPU: u32 = 8191;
/// Highest number of a NUMA node: the kernel's `MAX_NUMNODES` goes to 1024.
pub const MAX_NODE: u32 = 1023;
/// Most characters of a name: it has to fit a table.
pub const MAX_NAME: usize = 100;
