//! The specification of a worker: everything it needs before it starts, with the facts of its engine. The plan decides it.

use crate::source::Source;
use crate::source::replay::Counts;
use model::job::{
    Batch, Cache, Data, IgnoredError, Kind, LatencyTarget, MAX_ERRORS, OpPriority, Options, Placement,
    StopRule, SyncCall, Verify, WITHOUT_DATA,
};
use model::payload::Maker;
use std::sync::Arc;
use sys::clock::Clock;
use sys::open_file::OpenFile;

/// Block size from which the data of the next write is prepared while the queue is full. Below it the extra call costs more than filling.
const FILL_AHEAD_BYTES: u32 = 32 * 1024;
/// Longest time without a completion before a worker gives up on the target.
pub const STALL_LIMIT_NS: u64 = 10_000_000_000;

/// Separate counts of a worker's operations by target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Length of the buckets of the time series in ns; 0 for totals only.
    pub stretch_ns: u64,
    /// Number of targets, as counted by [`crate::source::Op::file`].
    pub targets: usize,
}

/// Everything a worker needs, and owns.
#[allow(clippy::struct_excessive_bools, reason = "independent settings")]
pub struct WorkerSpec {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of its stream.
    pub stream: usize,
    /// Facts of its engine.
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
    /// Cache mode of the files.
    pub cache: Cache,
    /// The call for operations of the kind `Sync`.
    pub sync_call: SyncCall,
    /// Whether latency counts from the time of [`crate::source::Op::AT`] instead of the submission.
    pub open_loop: bool,
    /// Time from the start to the first operation.
    pub delay_ns: u64,
    /// Time after the measured window in which operations continue.
    pub cooldown_ns: u64,
    /// Limits of this worker that end it before its time.
    pub limit: StopRule,
    /// Failed operations before it gives up.
    pub max_errors: u64,
    /// Errors that do not count as failures.
    pub ignored_errors: Vec<IgnoredError>,
    /// Latency target that limits the depth; `None` for a constant depth.
    pub latency_target: Option<LatencyTarget>,
    /// Placement of its thread and memory.
    pub place: Placement,
    /// Shares of its operations with their own priority.
    pub op_priorities: Vec<OpPriority>,
    /// Seed of the random choice of those operations.
    pub priority_seed: u64,
    /// How operations are submitted.
    pub batch: Batch,
    /// Time before the measured window.
    pub warmup_ns: u64,
    /// Length of the measured window.
    pub time_ns: u64,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Whether system calls are counted, which makes each slower.
    pub count_calls: bool,
    /// Whether operations in flight are counted at each submission.
    pub count_depth: bool,
    /// Whether each operation is handed over for a log.
    pub log: bool,
    /// Counters of a replay, whose source chooses each operation after completions ([`crate::source::Op::CHOSEN`]).
    pub replay: Option<Arc<Counts>>,
    /// Whether its sources choose each operation by a time ([`crate::source::Op::CHOSEN`]).
    pub chooses: bool,
    /// Separate counts by target; `None` if counts by lane are enough.
    pub by_target: Option<Apart>,
    /// Busy waiting at the start of each pause, in ns.
    pub spin_ns: u64,
    /// Verification of its data: what it writes, and whether reads are checked.
    pub verify: Option<Verify>,
    /// Generates the data of writes; every worker of a session has different data.
    pub maker: Maker,
    /// The clock of the timestamps.
    pub clock: Clock,
}

impl WorkerSpec {
    /// Specifies a worker that reads through the page cache for `time_ns`, in one interval, without placement.
    ///
    /// # Errors
    /// If no data can be generated.
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

    /// Returns the number of slots: one per operation in flight, and one more per lane if data is prepared ahead.
    pub fn slots(&self) -> usize {
        self.sources.len() * (self.depth + u32::from(self.fills_ahead())) as usize
    }

    /// Whether single operations are recorded.
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
        // A chosen operation is not known before there is room for it.
        let is_known = self.replay.is_none() && !self.chooses;
        is_known && self.writes && self.slot_bytes >= FILL_AHEAD_BYTES && !self.engine.in_the_call
    }
}

/// Facts of an engine: its name, capabilities and options.
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Its name in `--engine`.
    pub name: &'static str,
    /// Its line in `--help`.
    pub about: &'static str,
    /// Whether it moves bytes of a target.
    pub moves_bytes: bool,
    /// Whether operations are complete when the submitting call returns, so that nothing can be prepared meanwhile.
    pub in_the_call: bool,
    /// Whether threads of a library execute its operations. They live across runs with their first file table, so workers must share theirs.
    pub library_threads: bool,
    /// Most operations in flight per worker.
    pub max_depth: u32,
    /// Default of operations per submitting call; 0 for the whole depth.
    pub default_batch: u32,
    /// The kinds of operations it supports.
    pub kinds: &'static [Kind],
    /// The cache modes of its files; the first is its default.
    pub caches: &'static [Cache],
    /// Whether each read and write can have its own priority.
    pub takes_priorities: bool,
    /// Its options, as in `--engine io_uring:iopoll`.
    pub options: &'static [EngineOption],
}

impl Facts {
    /// Whether it opens targets, to move their bytes or to change them.
    pub fn touches_targets(&self) -> bool {
        self.moves_bytes || WITHOUT_DATA.contains(&self.name)
    }
}

/// A setting after the colon of `--engine`.
#[derive(Clone, Copy, Debug)]
pub struct EngineOption {
    /// Its name after the colon of `--engine`.
    pub name: &'static str,
    /// Its line in `--help`.
    pub about: &'static str,
    /// Whether a number follows it.
    pub number: Number,
}

/// Whether a number follows an option, as in `sqpoll=1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Never.
    No,
    /// It may.
    May,
    /// Always.
    Must,
}
