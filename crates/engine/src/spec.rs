//! The specification of a worker: all its settings and the facts of its engine. The plan decides them before the worker starts.

use crate::source::Source;
use crate::source::replay::ReplayCounts;
use model::job::{
    Batch, Cache, Data, ENGINES_WITHOUT_DATA, IgnoredError, Kind, LatencyTarget, MAX_ERRORS, OpPriority,
    Options, Placement, StopRule, SyncCall, Verify,
};
use model::payload::Maker;
use std::sync::Arc;
use sys::clock::Clock;
use sys::open_file::OpenFile;

/// At this block size in bytes or above, the loop fills the buffer of the next write while the
/// queue is full. That takes a second submitting call per iteration of the loop. With smaller blocks this costs more
/// than it saves.
const FILL_AHEAD_BYTES: u32 = 32 * 1024;
/// Time in ns without a completion after which a worker gives up on the target.
pub const STALL_LIMIT_NS: u64 = 10_000_000_000;

/// Settings for counting a worker's operations by target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByTargetSpec {
    /// Length of the buckets of the time series in ns; 0 for totals only.
    pub bucket_ns: u64,
    /// Number of targets. [`crate::source::Op::file`] is the index of an operation's target.
    pub targets: usize,
}

/// Everything that a worker needs. The worker owns it.
#[allow(clippy::struct_excessive_bools, reason = "independent settings")]
pub struct WorkerSpec {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of the worker's stream.
    pub stream: usize,
    /// Facts of the engine.
    pub engine: &'static EngineFacts,
    /// One source per lane. A lane is a sequence of operations with its own source and its own limit, `depth`.
    pub sources: Vec<Box<dyn Source>>,
    /// The open files. Operations refer to them by index.
    pub files: Vec<OpenFile>,
    /// Maximum number of operations in flight per lane.
    pub depth: u32,
    /// Size of the largest operation in bytes.
    pub slot_bytes: u32,
    /// Whether any operation writes.
    pub writes: bool,
    /// The engine options that are set. Their names are in [`EngineFacts::options`].
    pub options: Options,
    /// Cache mode of the files.
    pub cache: Cache,
    /// The call for operations of the kind `Sync`.
    pub sync_call: SyncCall,
    /// Open loop: whether latency counts from the time of [`crate::source::Op::AT`] instead of the submission.
    pub open_loop: bool,
    /// Time from the start to the first operation, in ns.
    pub delay_ns: u64,
    /// How long operations continue after the measured window, in ns.
    pub cooldown_ns: u64,
    /// Limits of operations and bytes, which can end the worker before the end of its window.
    pub limit: StopRule,
    /// Number of failed operations after which the worker gives up.
    pub max_errors: u64,
    /// Errors that do not count as failed operations.
    pub ignored_errors: Vec<IgnoredError>,
    /// Latency target for which the worker searches a depth; `None` for a constant depth.
    pub latency_target: Option<LatencyTarget>,
    /// CPU and memory placement of the thread.
    pub place: Placement,
    /// Priorities of operations. Each applies to a share of the operations.
    pub op_priorities: Vec<OpPriority>,
    /// Seed that selects the operations with their own priority.
    pub priority_seed: u64,
    /// How many operations one call submits and how many it waits for.
    pub batch: Batch,
    /// Warm-up before the measured window, in ns.
    pub warmup_ns: u64,
    /// Length of the measured window in ns.
    pub time_ns: u64,
    /// Length of an interval of the time series in ns.
    pub interval_ns: u64,
    /// Whether to count system calls. Counting makes each call slower.
    pub count_calls: bool,
    /// Whether to count operations in flight at each submission.
    pub count_depth: bool,
    /// Whether to log each operation.
    pub log: bool,
    /// Counters of a replay; `None` without one. The source of a replay chooses each operation when others have completed
    /// ([`crate::source::Op::CHOSEN`]).
    pub replay: Option<Arc<ReplayCounts>>,
    /// Whether the sources choose each operation at the time of submission ([`crate::source::Op::CHOSEN`]).
    pub chooses_late: bool,
    /// Settings for counts by target; `None` if counts by lane are enough.
    pub by_target: Option<ByTargetSpec>,
    /// Time after a completion, in ns, during which the worker waits busily instead of sleeping.
    pub spin_ns: u64,
    /// Verification settings: the pattern that the worker writes, and whether it checks reads;
    /// `None` without verification.
    pub verify: Option<Verify>,
    /// Generates the data of writes. Every worker of a session has different data.
    pub maker: Maker,
    /// The clock of the timestamps.
    pub clock: Clock,
}

impl WorkerSpec {
    /// Specifies a worker that reads through the page cache for `time_ns`, in one interval, without CPU or memory placement.
    ///
    /// # Errors
    /// If no data can be generated.
    pub fn plain(
        engine: &'static EngineFacts,
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
            chooses_late: false,
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

    /// Returns whether the worker needs a recorder of single operations.
    pub(crate) fn needs_recorder(&self) -> bool {
        self.log
            || self.count_depth
            || self.chooses_late
            || self.replay.is_some()
            || self.by_target.is_some()
            || self.verify.is_some()
            || !self.op_priorities.is_empty()
    }

    pub(crate) fn fills_ahead(&self) -> bool {
        // A chosen operation is unknown until the lane has room for it.
        let is_known = self.replay.is_none() && !self.chooses_late;
        is_known && self.writes && self.slot_bytes >= FILL_AHEAD_BYTES && !self.engine.completes_in_submit
    }
}

/// Facts of an engine: its name, capabilities and options.
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Copy, Debug)]
pub struct EngineFacts {
    /// The word that `--engine` takes.
    pub name: &'static str,
    /// The description in `--help`.
    pub about: &'static str,
    /// Whether the engine moves bytes of a target.
    pub moves_bytes: bool,
    /// Whether operations complete within the submitting call, so that no data can be prepared meanwhile.
    pub completes_in_submit: bool,
    /// Whether library threads execute the operations. These threads live across runs and keep the file table of the first run, so all
    /// workers must share that table.
    pub library_threads: bool,
    /// Maximum number of operations in flight per worker.
    pub max_depth: u32,
    /// Default number of operations per submitting call; 0 for the whole depth.
    pub default_batch: u32,
    /// The supported kinds of operations.
    pub kinds: &'static [Kind],
    /// The supported cache modes. The first is the default.
    pub caches: &'static [Cache],
    /// Whether each read and write can have its own priority.
    pub takes_priorities: bool,
    /// The options after the colon, as in `--engine io_uring:iopoll`.
    pub options: &'static [EngineOption],
}

impl EngineFacts {
    /// Returns whether the engine opens targets, to move bytes or to change files.
    pub fn touches_targets(&self) -> bool {
        self.moves_bytes || ENGINES_WITHOUT_DATA.contains(&self.name)
    }

    /// Returns the name, with the option if there is one, if no data arrives in this process that could be verified.
    pub fn name_without_data<'o>(&self, options: impl IntoIterator<Item = &'o String>) -> Option<String> {
        if !self.moves_bytes {
            return Some(self.name.to_owned());
        }
        let drops = |typed: &&String| self.options.iter().any(|o| !o.delivers_data && o.name == **typed);
        options.into_iter().find(drops).map(|option| format!("{}:{option}", self.name))
    }
}

/// An option that may follow the colon of `--engine`.
#[derive(Clone, Copy, Debug)]
pub struct EngineOption {
    /// The name after the colon of `--engine`.
    pub name: &'static str,
    /// The description in `--help`.
    pub about: &'static str,
    /// Whether a number follows the name.
    pub number: TakesNumber,
    /// Whether data arrives in this process with the option, so that it can be verified.
    pub delivers_data: bool,
}

impl EngineOption {
    /// Describes an option without a number.
    pub(crate) const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, number: TakesNumber::No, delivers_data: true }
    }

    /// Describes an option that requires a number.
    pub(crate) const fn with_number(name: &'static str, about: &'static str) -> Self {
        Self { number: TakesNumber::Required, ..Self::new(name, about) }
    }

    /// Describes an option with which no data arrives in this process.
    pub(crate) const fn without_data(name: &'static str, about: &'static str) -> Self {
        Self { delivers_data: false, ..Self::new(name, about) }
    }
}

/// Whether a number follows an option, as in `sqpoll=1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesNumber {
    /// The option has no number, as in `iopoll`.
    No,
    /// The option is accepted with or without a number.
    Optional,
    /// The option is refused without a number.
    Required,
}
