//! The workload language: what is to be done to targets, with nothing left to a default.
//!
//! For: jobs as plain data. Not for: what the user said (that is the command line) nor how it is carried out (the engine).

use crate::units::show_block;
use serde::{Deserialize, Serialize};

/// A complete workload: phases one after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// What tables and findings call it: `RND4K Q32T1 read`.
    pub name: String,
    /// Phases in their order; at least one.
    pub phases: Vec<Phase>,
}

/// A stretch of time in which streams run at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Time before the measured window, in which operations run but do not count.
    pub warmup_ns: u64,
    /// Length of the measured window.
    pub time_ns: u64,
    /// Streams that run together; at least one.
    pub streams: Vec<Stream>,
}

/// One access with its workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Which blocks, in which order and direction.
    pub access: Access,
    /// Indices into the plan's targets; each gives every worker a lane.
    pub targets: Vec<usize>,
    /// Threads.
    pub workers: u32,
    /// Operations in flight per worker and target.
    pub depth: u32,
    /// Name of the engine, from the engine table.
    pub engine: String,
    /// Open flags that decide about the page cache and durability.
    pub cache: Cache,
    /// How many operations one call hands over and waits for.
    pub batch: Batch,
}

/// Which blocks are touched, in which order and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Order of offsets.
    pub pattern: Pattern,
    /// Size of each operation.
    pub block_bytes: u32,
    /// Share of reads, 0 to 100; the rest are writes. Drawn per operation.
    pub read_percent: u8,
    /// First byte of the span.
    pub offset_bytes: u64,
    /// Bytes from there that may be touched.
    pub span_bytes: u64,
}

/// Order of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One block after another, around at the end of the span; each worker starts at its own share of the span.
    Sequential,
    /// Every block of the span equally likely each time, with replacement.
    Random,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Moves bytes from the target.
    Read,
    /// Moves bytes to the target.
    Write,
}

impl Kind {
    /// All kinds, in the order of their indices.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// `read` or `write`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// Open flags that decide about the page cache and durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// `O_DIRECT`: past the page cache, where the file system obeys.
    Direct,
    /// No flag: through the page cache.
    Buffered,
    /// `O_DSYNC`: through the page cache, each write waits for stable storage.
    Sync,
    /// `O_DIRECT | O_DSYNC`.
    DirectSync,
}

impl Cache {
    /// Whether `O_DIRECT` is asked for.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::DirectSync)
    }

    /// Whether each write must be stable before it completes (`O_DSYNC`).
    pub fn is_sync(self) -> bool {
        matches!(self, Self::Sync | Self::DirectSync)
    }

    /// The word of the flag `--cache`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
            Self::Sync => "sync",
            Self::DirectSync => "direct-sync",
        }
    }
}

/// How many operations one call hands over and waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Operations gathered before they are handed over; 1 is eager: each as soon as it is prepared.
    pub submit: u32,
    /// Completions waited for when the queue is full.
    pub complete: u32,
}

impl Stream {
    /// Operations in flight over all workers and targets when every queue is full.
    pub fn total_depth(&self) -> u64 {
        u64::from(self.depth) * u64::from(self.workers) * self.targets.len() as u64
    }
}

impl Access {
    /// `4K random read`, `1M sequential write`, `4K random 70/30`.
    pub fn words(&self) -> String {
        let order = match self.pattern {
            Pattern::Sequential => "sequential",
            Pattern::Random => "random",
        };
        format!("{} {order} {}", show_block(u64::from(self.block_bytes)), self.direction())
    }

    /// `read`, `write` or the mix as `70/30`.
    pub fn direction(&self) -> String {
        match self.read_percent {
            100 => "read".into(),
            0 => "write".into(),
            p => format!("{p}/{}", 100 - p),
        }
    }

    /// The kinds of operation that this access draws.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        let p = self.read_percent;
        Kind::ALL.into_iter().filter(move |k| match k {
            Kind::Read => p > 0,
            Kind::Write => p < 100,
        })
    }

    /// Whether any operation is a write.
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }
}
