//! A worker's spec: everything that it is told before it starts.
//!
//! For: what `run`, the verifier, benches and tests say to a worker. Not for: choosing it (the plan does), nor running
//! (`worker`).

use crate::facts::Facts;
use crate::source::Source;
use crate::source::replay::Counts;
use model::job::{
    Batch, Cache, Data, IgnoredError, LatencyTarget, MAX_ERRORS, OpPriority, Options, Placement, StopRule,
    SyncCall, Verify,
};
use model::payload::Maker;
use std::sync::Arc;
use sys::clock::Clock;
use sys::open_file::OpenFile;

/// Block size from which the data of the next write are prepared while the queue is full instead of between two operations.
/// Below it the extra call costs more than filling does.
const FILL_AHEAD_BYTES: u32 = 32 * 1024;
/// Longest time without a completion before a worker gives up on the target.
pub const STALL_LIMIT_NS: u64 = 10_000_000_000;

/// Telling the operations of a worker apart by its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Length of the stretches of time that its course is kept in, in ns; 0 for totals alone.
    pub stretch_ns: u64,
    /// Targets, as [`crate::source::Op::file`] counts them.
    pub targets: usize,
}

/// Everything a worker is told, and owns.
#[allow(clippy::struct_excessive_bools, reason = "each is said of its own")]
pub struct WorkerSpec {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of its stream.
    pub stream: usize,
    /// What is known of its engine.
    pub engine: &'static Facts,
    /// One source per lane.
    pub sources: Vec<Box<dyn Source>>,
    /// Files that its operations name by index.
    pub files: Vec<OpenFile>,
    /// Operations in flight per lane.
    pub depth: u32,
    /// Bytes of the largest operation.
    pub slot_bytes: u32,
    /// Whether any operation writes.
    pub writes: bool,
    /// Options of the engine, from its table.
    pub options: Options,
    /// What the files were opened with.
    pub cache: Cache,
    /// The call behind operations of the kind `Sync`.
    pub sync_call: SyncCall,
    /// Whether latency counts from the time of [`crate::source::Op::AT`] instead of the submission.
    pub open_loop: bool,
    /// Time from the start to the first operation.
    pub delay_ns: u64,
    /// Time after the measured window in which operations still run.
    pub cooldown_ns: u64,
    /// What ends it before its time; this worker's part.
    pub limit: StopRule,
    /// Failed operations after which it gives up.
    pub max_errors: u64,
    /// Errors that do not count to that.
    pub ignored_errors: Vec<IgnoredError>,
    /// What decides about the depth, which is then the most that may be; `None` where it is always that.
    pub latency_target: Option<LatencyTarget>,
    /// Where its thread and its memory are.
    pub place: Placement,
    /// Shares of its operations that have a priority of their own.
    pub op_priorities: Vec<OpPriority>,
    /// Seed of which those are.
    pub priority_seed: u64,
    /// How operations are submitted.
    pub batch: Batch,
    /// Time before the measured window.
    pub warmup_ns: u64,
    /// Length of the measured window.
    pub time_ns: u64,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Whether system calls are counted, which costs time in each.
    pub count_calls: bool,
    /// Whether operations in flight are counted at each submission.
    pub count_depth: bool,
    /// Whether each operation is handed over for a log.
    pub log: bool,
    /// What its source counts, where that chooses each operation by those that have completed ([`crate::source::Op::CHOSEN`]).
    pub replay: Option<Arc<Counts>>,
    /// Whether its sources choose each operation by a time ([`crate::source::Op::CHOSEN`]).
    pub chooses: bool,
    /// How its operations are told apart one by one; `None` where its lanes tell enough.
    pub by_target: Option<Apart>,
    /// The first part of each pause, in ns, in which it keeps its CPU busy.
    pub spin_ns: u64,
    /// What it writes to be checked, and whether its reads are.
    pub verify: Option<Verify>,
    /// Makes the data that are written; no other worker of the session has the same.
    pub maker: Maker,
    /// The clock of the stamps.
    pub clock: Clock,
}

impl WorkerSpec {
    /// One worker of one stream that reads through the page cache for `time_ns`, in one interval, on the calling thread's CPUs.
    ///
    /// # Errors
    /// Where no data can be made.
    pub fn plain(
        engine: &'static Facts,
        sources: Vec<Box<dyn Source>>,
        files: Vec<OpenFile>,
        time_ns: u64,
        clock: Clock,
    ) -> Result<Self, String> {
        Ok(Self {
            worker: 0,
            stream: 0,
            engine,
            sources,
            files,
            depth: 1,
            slot_bytes: 4096,
            writes: false,
            options: Options::new(),
            cache: Cache::Buffered,
            sync_call: SyncCall::Fsync,
            open_loop: false,
            delay_ns: 0,
            cooldown_ns: 0,
            limit: StopRule::default(),
            max_errors: MAX_ERRORS,
            ignored_errors: Vec::new(),
            latency_target: None,
            place: Placement::default(),
            op_priorities: Vec::new(),
            priority_seed: 1,
            batch: Batch { submit: 1, complete: 1 },
            warmup_ns: 0,
            time_ns,
            interval_ns: time_ns,
            count_calls: false,
            count_depth: false,
            log: false,
            replay: None,
            chooses: false,
            by_target: None,
            spin_ns: 0,
            verify: None,
            maker: Maker::new(&Data::default(), None, 1)?,
            clock,
        })
    }

    /// Buffers needed: one per operation in flight, and one more per lane where data are prepared ahead.
    pub fn slots(&self) -> usize {
        self.sources.len() * (self.depth + u32::from(self.fills_ahead())) as usize
    }

    /// Whether more than figures is kept of its operations.
    pub(crate) fn is_watched(&self) -> bool {
        self.log
            || self.count_depth
            || self.chooses
            || self.replay.is_some()
            || self.by_target.is_some()
            || self.verify.is_some()
            || !self.op_priorities.is_empty()
    }

    pub(crate) fn fills_ahead(&self) -> bool {
        // What a source chooses is not known before there is room for it.
        let is_known = self.replay.is_none() && !self.chooses;
        is_known && self.writes && self.slot_bytes >= FILL_AHEAD_BYTES && !self.engine.in_the_call
    }
}
