//! The job: a complete workload with no setting left to a default.
//!
//! A job has phases, a phase has streams that run at once, and a stream has workers. [`crate::spec`] is the user's
//! request; the plan resolves it into a job, and the engine runs the job.

mod files;
mod operations;
mod pace;

pub use crate::errno::IgnoredError;
pub use crate::payload::{Content, Data, Verify};
pub use crate::replay::{Changes, Original, OriginalKind, Replay, ReplayPace};
pub use files::{Cache, Create, Every, Filling, Flush, Layout, OwnBlocks, Shared, SyncCall, TaskNumber};
pub use operations::{
    Access, Kind, Line, Mix, Order, Pattern, PerKind, Percent, Positions, Quantile, Sizes, Start, Steps,
    Strided, Think, ThinkLaw, Zone, ZoneSize,
};
pub use pace::{
    Arrivals, Batch, Bursts, Flow, FoundDepth, LatencyTarget, MinRate, Pace, Pause, Quantity, Spread,
    Steadied, Steady, StopRule,
};

use crate::spec::number::MAX_SYNCS;
use crate::units::{show_bytes, show_count};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A complete workload: phases one after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Job {
    /// Name in tables and findings: `RND4K Q32T1 read`.
    pub name: String,
    /// Phases in their order; at least one.
    pub phases: Vec<Phase>,
}

impl Job {
    /// Returns the streams of all phases.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.phases.iter().flat_map(|p| &p.streams)
    }

    /// Returns the streams of all phases, to change them.
    pub fn streams_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.phases.iter_mut().flat_map(|p| &mut p.streams)
    }

    /// Returns each stream with the index of its phase and its index in the phase.
    pub fn numbered_streams(&self) -> impl Iterator<Item = (usize, usize, &Stream)> {
        self.phases.iter().enumerate().flat_map(|(phase, of_phase)| {
            of_phase.streams.iter().enumerate().map(move |(index, stream)| (phase, index, stream))
        })
    }

    /// Returns the name of a stream's result: the job's name, followed by what distinguishes the stream from the job's
    /// other streams.
    pub fn result_name(&self, phase: usize, stream: usize) -> String {
        self.name.clone() + &self.stream_suffix(phase, stream)
    }

    /// Returns the end of a result's name, which distinguishes the stream from the job's other streams, such as
    /// `, phase 2, mixed, stream 1`. Empty for a single stream without a name. If the phase has several streams, the stream's position
    /// (`stream 1`) follows if this stream has no name, or if any two streams have equal names.
    pub fn stream_suffix(&self, phase: usize, stream: usize) -> String {
        let mut name = String::new();
        if self.phases.len() > 1 {
            name += &format!(", phase {}", phase + 1);
        }
        let streams = self.phases.get(phase).map_or(&[][..], |p| &p.streams);
        let own = streams.get(stream).map_or("", |s| s.name.as_str());
        if !own.is_empty() {
            name += &format!(", {own}");
        }
        if streams.len() > 1 && (own.is_empty() || have_equal_names(streams)) {
            name += &format!(", stream {}", stream + 1);
        }
        name
    }

    /// Whether any stream touches this target.
    pub fn touches(&self, target: usize) -> bool {
        self.streams().any(|s| s.targets.contains(&target))
    }
}

/// Whether two of these streams have equal names. The second stream is called `stream 2` if it has no name.
fn have_equal_names(streams: &[Stream]) -> bool {
    let name = |(at, stream): (usize, &Stream)| {
        if stream.name.is_empty() { format!("stream {}", at + 1) } else { stream.name.clone() }
    };
    let distinct: BTreeSet<String> = streams.iter().enumerate().map(name).collect();
    distinct.len() < streams.len()
}

/// A period in which streams run at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// Warm-up in ns: operations run before the measured window, but do not count.
    pub warmup_ns: u64,
    /// Length of the measured window in ns, unless a stop rule of a stream ends it earlier.
    pub time_ns: u64,
    /// Time in ns after the measured window, in which operations still run but do not count.
    #[serde(default)]
    pub cooldown_ns: u64,
    /// Streams that run together; at least one.
    pub streams: Vec<Stream>,
}

/// One kind of access and the workers that do it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stream {
    /// Name of the stream in its phase; empty if the stream has none.
    #[serde(default)]
    pub name: String,
    /// The blocks, and the order and direction of the operations.
    pub access: Access,
    /// Turns: groups of consecutive operations that the stream repeats in order. `access` and `flush` then only summarize
    /// the turns. Empty for a stream without turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// Indices into the plan's targets.
    pub targets: Vec<usize>,
    /// How the target is divided into one part for each worker of all hosts; `None` if all workers
    /// use the whole target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Shared>,
    /// Distance in ranks from this host to the host whose part or file this host works on; 0 for its own part or file.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub shift_hosts: u32,
    /// How each worker divides its operations among the targets.
    #[serde(default)]
    pub sharing: Sharing,
    /// Number of threads.
    pub workers: u32,
    /// The targets of each worker, if each does the full amount of work; `None` if the workers divide the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clones: Option<Clones>,
    /// Operations in flight per worker. With [`Sharing::Each`], per worker and target.
    pub depth: u32,
    /// Name of the engine, from the engine table.
    pub engine: String,
    /// The reason why `engine` is not the default one; `None` if the user chose the engine or the default one works
    /// here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_fallback: Option<EngineFallback>,
    /// Options of the engine: each name with a number, or with `None` for an option without a value, such as `iopoll`.
    #[serde(default)]
    pub options: Options,
    /// Open flags that decide about the page cache and durability.
    pub cache: Cache,
    /// Advice to the kernel about the order of accesses through the page cache; `None` to give
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// How many operations one call submits, and how many completions a worker waits for at once.
    pub batch: Batch,
    /// When operations are submitted.
    #[serde(default)]
    pub pace: Pace,
    /// Bursts that end after a time; `None` if bursts end after a number of operations, or if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
    /// Time in ns, at the beginning of each pause, for which the thread keeps its CPU busy; 0 to sleep for the whole
    /// pause.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub think_spin_ns: u64,
    /// The stream's share of the operations of concurrent streams; `None` if the stream waits for no other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// The sync call between writes, and how often it is made; `None` without sync calls.
    #[serde(default)]
    pub flush: Option<Flush>,
    /// The data that the stream writes.
    #[serde(default)]
    pub data: Data,
    /// Limits on the work of the stream. The first limit that is reached ends the stream early.
    #[serde(default)]
    pub limit: StopRule,
    /// Number of failed operations after which a worker gives up and the run ends; [`ALL_ERRORS`]
    /// for no limit.
    #[serde(default = "max_errors", skip_serializing_if = "is_max_errors")]
    pub max_errors: u64,
    /// Errors that do not count towards `max_errors`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_errors: Vec<IgnoredError>,
    /// The latency target that chooses the depth, up to `depth`; `None` for a fixed depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTarget>,
    /// The rule that ends the stream as soon as its rate or latency is steady; `None` without such a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// The lowest allowed rate; `None` for no limit. A lower rate ends the run with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<MinRate>,
    /// Largest allowed latency of a read, write or trim in ns; `None` for no limit. A longer one
    /// ends the run with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
    /// Whether an operation waits while the same worker has one in flight on the same bytes of the same target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serialize_overlap: bool,
    /// Whether a file is evicted from the page cache before the second and each further pass over it in a run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evicts_each_pass: bool,
    /// Whether all other streams of the phase end as soon as this one has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_others: bool,
    /// Time from the phase's start to the stream's first operation, in ns.
    #[serde(default)]
    pub delay_ns: u64,
    /// CPUs, memory nodes and priority of the stream's threads.
    #[serde(default)]
    pub place: Placement,
    /// Shares of the stream's operations that have their own priority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub op_priorities: Vec<OpPriority>,
    /// The content that the stream writes, and with which it compares what it reads if `checks` is set; `None` if neither is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// Length in ns of the intervals of the operation log; 0 to log each operation, `None` without a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_interval_ns: Option<u64>,
    /// Length in ns of the intervals of each worker's time series on each target, 0 for totals only; `None` if
    /// workers are reported together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_worker_ns: Option<u64>,
    /// The captured load that the stream replays; `access` then only summarizes the load. `None` if
    /// the stream is not a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<Replay>>,
}

/// Default number of failed operations after which a worker gives up: enough to show how often each
/// error occurs, and few enough that a broken target soon ends the run.
pub const MAX_ERRORS: u64 = 1000;

/// Longest cycle of bursts or on-off arrivals, in ns, with which the load still counts as constant. The intervals of a 3 s
/// run's time series are about as long, so longer cycles would be visible in it. The limit is a constant, because the
/// length of the intervals (10 ms to 1 s) depends on the phase, which a stream does not know.
const MAX_CONSTANT_CYCLE_NS: u64 = 1_000_000_000 / 32;

/// Shortest interval in ns at which workers report.
pub const SHORTEST_INTERVAL_NS: u64 = 10_000_000;

/// Value of `max_errors` with which no worker gives up.
pub const ALL_ERRORS: u64 = u64::MAX;

fn max_errors() -> u64 {
    MAX_ERRORS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_max_errors(errors: &u64) -> bool {
    *errors == MAX_ERRORS
}

/// Options of an engine: each name with a number, or with `None` for an option without a value, such as `iopoll`.
pub type Options = BTreeMap<String, Option<u64>>;

/// Engine option: before the first write, the file is truncated to 0 and extended again, so that it has its length but
/// no blocks.
pub const NEW: &str = "new";

/// Engine option: before the first write, the file is truncated to 0, and all its blocks are allocated at once.
pub const FALLOCATE: &str = "fallocate";

/// Engine option: before the first write, the file is truncated to 0. It grows with each write, as in a copy.
pub const GROW: &str = "grow";

/// The engine that sets the length of a file with each write.
pub const FTRUNCATE: &str = "ftruncate";

/// Engines that change the length or the blocks of a file and move no data.
pub const ENGINES_WITHOUT_DATA: [&str; 2] = [FTRUNCATE, "fallocate"];

/// How a worker divides its operations among several targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Each target has `depth` operations in flight.
    #[default]
    Each,
    /// One operation on each target in turn.
    RoundRobin,
    /// A random target for every operation, all equally likely.
    Random,
    /// A random target for every operation, by weight; one weight per target.
    Weighted(Vec<u32>),
    /// Several consecutive operations on each target of a group. When the pass over a target is complete, the first
    /// target that was not in the group yet replaces it.
    Turns {
        /// Whether targets are drawn from the group at random. Otherwise they follow in order.
        drawn: bool,
        /// Number of consecutive operations on one target.
        operations: u32,
        /// Number of targets in the group.
        open: u32,
    },
}

enum_of_words! {
    /// Workers that each do the full amount of work instead of a share of it.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    Clones {
        /// All workers use the same targets. Each worker covers all blocks in its own order.
        Same = "same",
        /// Each worker has its own targets: the first worker the first targets of the list, and so on.
        Own = "own",
    }
}

enum_of_words! {
    /// Advice to the kernel about the order of accesses (`posix_fadvise(2)`), which decides how far the kernel reads ahead.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    Advice {
        /// `POSIX_FADV_SEQUENTIAL`: the kernel reads twice as far ahead.
        Sequential = "sequential",
        /// `POSIX_FADV_RANDOM`: the kernel reads nothing ahead.
        Random = "random",
    }
}

/// CPUs, memory nodes and priority of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placement {
    /// CPUs that the threads may use; empty for the CPUs of `node`, or for all CPUs without a `node`.
    pub cpus: Vec<u32>,
    /// Whether each worker runs on only one of the CPUs, assigned in turn, instead of all workers sharing all CPUs.
    pub split: bool,
    /// NUMA node of the CPUs if `cpus` is empty, and of the memory if `memory` is `None`; `None` for any node.
    pub node: Option<u32>,
    /// NUMA nodes of the memory. If `None`, the memory is on `node`; without `node`, the policy with which fathom was
    /// started applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryNodes>,
    /// Nice value of the threads, -20 to 19 (`setpriority(2)`). If `None`, that of fathom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// I/O priority of the operations (`ioprio_set(2)`). If `None`, the kernel derives the priority from the nice
    /// value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_priority: Option<IoPriority>,
}

/// Which NUMA nodes memory comes from (`set_mempolicy(2)`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryNodes {
    /// The node of the CPU that first touches the page.
    Local,
    /// Only these nodes.
    Bind(Vec<u32>),
    /// This node first, other nodes when it has no free memory.
    Prefer(u32),
    /// These nodes in turn, page by page.
    Interleave(Vec<u32>),
}

/// A stream without target, engine or operations: direct I/O in a closed loop without pauses.
impl Default for Stream {
    fn default() -> Self {
        Self {
            name: String::new(),
            access: Access { offset_bytes: 0, span_bytes: u64::MAX, strided: None, lines: Vec::new() },
            turns: Vec::new(),
            targets: Vec::new(),
            shared: None,
            shift_hosts: 0,
            sharing: Sharing::Each,
            workers: 1,
            clones: None,
            depth: 1,
            engine: String::new(),
            engine_fallback: None,
            options: Options::new(),
            cache: Cache::Direct,
            advice: None,
            batch: Batch { submit: 1, complete: 1 },
            pace: Pace::Closed,
            bursts: None,
            think_spin_ns: 0,
            flow: None,
            flush: None,
            data: Data::default(),
            limit: StopRule::default(),
            max_errors: MAX_ERRORS,
            ignored_errors: Vec::new(),
            latency_target: None,
            steady: None,
            min_rate: None,
            max_latency_ns: None,
            serialize_overlap: false,
            evicts_each_pass: false,
            ends_others: false,
            delay_ns: 0,
            place: Placement::default(),
            op_priorities: Vec::new(),
            verify: None,
            log_interval_ns: None,
            each_worker_ns: None,
            replay: None,
        }
    }
}

impl Stream {
    /// Creates a stream on the first target: direct I/O in a closed loop without pauses.
    pub fn plain(access: Access, depth: u32, workers: u32, engine: &str) -> Self {
        Self { access, depth, workers, engine: engine.into(), targets: vec![0], ..Self::default() }
    }

    /// Whether the load itself changes over time, so that changes of the rate do not come from the storage. True for
    /// replays and turns, and for pauses and on-off arrivals with a period of more than 1/32 s.
    pub fn load_changes(&self) -> bool {
        let on_off_ns = match self.pace {
            Pace::Open { arrivals: Arrivals::OnOff { on_ns, off_ns }, .. } => on_ns.saturating_add(off_ns),
            _ => 0,
        };
        let is_slow =
            self.pauses().map(|pause| pause.cycle_ns).chain([on_off_ns]).any(|ns| ns > MAX_CONSTANT_CYCLE_NS);
        is_slow || self.replay.is_some() || !self.turns.is_empty()
    }

    /// Describes the stream's work: the access, the turns, or the replayed load.
    pub fn describe(&self) -> String {
        match &self.replay {
            Some(replay) => replay.describe(),
            None if self.turns.is_empty() => {
                let shared = self.shared.map(|shared| format!(", shared {}", shared.layout.describe()));
                self.access.describe() + &shared.unwrap_or_default()
            }
            None => self.turns.iter().map(Turn::describe).collect::<Vec<_>>().join(", then "),
        }
    }

    /// Describes how the stream's files use the page cache.
    pub fn describe_cache(&self) -> String {
        let evicted = if self.evicts_each_pass { ", evicted before each pass" } else { "" };
        format!("{}{evicted}", self.cache.word())
    }

    /// Returns a copy of the stream that repeats only this turn.
    #[must_use]
    pub fn with_turn(&self, turn: &Turn) -> Self {
        Self { access: turn.access.clone(), flush: turn.flush, turns: Vec::new(), ..self.clone() }
    }

    /// Returns the ranges of bytes that operations may touch: the span of each turn, or that of a stream without turns.
    pub fn regions(&self) -> Vec<Range<u64>> {
        match self.turns.as_slice() {
            [] => vec![self.access.region()],
            turns => turns.iter().map(|turn| turn.access.region()).collect(),
        }
    }

    /// Returns the size of an operation's buffer in bytes.
    pub fn buffer_bytes(&self) -> u32 {
        self.replay.as_ref().map_or_else(|| self.access.largest_bytes(), |replay| replay.largest_bytes)
    }

    /// Returns `each_worker_ns` if fathom has to count the operations one by one: a lane has several targets, or the
    /// intervals are shorter than those of the recorder. `None` if the recorder's intervals suffice.
    pub fn separate_bucket_ns(&self) -> Option<u64> {
        let shares = self.sharing != Sharing::Each && self.targets_each() > 1;
        self.each_worker_ns.filter(|ns| shares || (1..SHORTEST_INTERVAL_NS).contains(ns))
    }

    /// Returns the number of bytes after which the stream ends, if each worker has `own_bytes` of a shared file: the
    /// bytes of the stream's passes or its byte limit, whichever is smaller. `None` without passes and byte limit.
    pub fn limit_of_parts(&self, own_bytes: u64) -> Option<u64> {
        let pass_bytes =
            own_bytes.saturating_mul(self.access.times_each()).saturating_mul(self.workers.into());
        let passes = self.shared.and_then(|shared| shared.passes);
        passes
            .map(|passes| pass_bytes.saturating_mul(passes.into()))
            .into_iter()
            .chain(self.limit.bytes)
            .min()
    }

    /// Returns the number of lanes of each worker: one per target with [`Sharing::Each`], otherwise one.
    pub fn lanes(&self) -> u64 {
        if self.sharing == Sharing::Each { self.targets_each() as u64 } else { 1 }
    }

    /// Returns the number of targets of each worker.
    pub fn targets_each(&self) -> usize {
        match self.clones {
            Some(Clones::Own) => self.targets.len() / (self.workers.max(1) as usize),
            _ => self.targets.len(),
        }
    }

    /// Returns the number of operations in flight over all workers and targets when every queue is
    /// full.
    pub fn total_depth(&self) -> u64 {
        u64::from(self.depth).saturating_mul(u64::from(self.workers)).saturating_mul(self.lanes())
    }

    /// Returns the index of the stream in the previous phase whose blocks this stream reads and compares; `None` if
    /// this stream has its own work.
    pub fn reads_back(&self) -> Option<usize> {
        self.verify.as_ref().and_then(|verify| verify.back)
    }

    /// Whether the engine submits operations that do nothing, to measure only the interface.
    pub fn does_nothing(&self) -> bool {
        self.options.contains_key("nop")
    }

    /// Whether the engine changes only the length or the allocated blocks of files, without moving data.
    pub fn moves_no_data(&self) -> bool {
        ENGINES_WITHOUT_DATA.contains(&self.engine.as_str())
    }

    /// Whether the stream changes its targets, and so needs write permission. Engines that move no data change files
    /// even if the stream's direction is `read`.
    pub fn changes_targets(&self) -> bool {
        self.access.writes() || self.moves_no_data()
    }

    /// Whether the engine truncates the whole file before the first write, even outside the span.
    pub fn renews_file(&self) -> bool {
        [NEW, FALLOCATE, GROW].iter().any(|option| self.options.contains_key(*option))
    }

    /// Whether latency counts from times fixed in advance.
    pub fn is_open_loop(&self) -> bool {
        matches!(self.pace, Pace::Open { .. })
    }

    /// Whether operations are submitted as soon as the queue has room. `false` with a schedule, pauses or a latency target,
    /// for turns and replays, and if an operation may wait for another one (`flow`, overlap, a trim before its write, a
    /// sync call with `drain`).
    pub fn submits_without_waiting(&self) -> bool {
        let waits = |l: &Line| l.has_pairs() && self.depth > 1;
        self.pace == Pace::Closed
            && self.latency_target.is_none()
            && self.waits().next().is_none()
            && self.pauses().next().is_none()
            && self.replay.is_none()
            && self.turns.is_empty()
            && !self.access.lines.iter().any(waits)
            && self.flush.is_none_or(|f| !f.drain)
    }

    /// Returns the pauses between bursts of operations, whether a burst ends after a number of operations or after a
    /// time. Empty if the stream never pauses.
    pub fn pauses(&self) -> impl Iterator<Item = Pause> {
        let after_time = self.bursts.map(|bursts| Pause {
            cycle_ns: bursts.time_ns.saturating_add(bursts.pause_ns),
            by_period: false,
        });
        let lines = self.access.lines.iter().filter(|line| line.weight > 0 && line.delay_ns > 0);
        after_time
            .into_iter()
            .chain(lines.map(|line| Pause { cycle_ns: line.delay_ns, by_period: line.by_period }))
    }

    /// Removes the pauses between bursts.
    pub fn remove_pauses(&mut self) {
        (self.bursts, self.think_spin_ns) = (None, 0);
        let of_turns = self.turns.iter_mut().flat_map(|turn| &mut turn.access.lines);
        self.access.lines.iter_mut().chain(of_turns).for_each(|line| line.delay_ns = 0);
    }

    /// Returns descriptions of the settings by which an operation waits for other operations of the job.
    pub fn waits(&self) -> impl Iterator<Item = String> {
        let overlap = self.serialize_overlap.then(|| "overlapping operations one at a time".into());
        self.flow.as_ref().map(Flow::describe).into_iter().chain(overlap)
    }

    /// Returns descriptions of everything that delays operations or comes between them, for the stream's name; empty for
    /// a plain stream.
    pub fn describe_delays(&self) -> Vec<String> {
        let mut out = Vec::new();
        match self.pace {
            Pace::Closed => {}
            Pace::Limited { iops, bytes_per_s } => {
                out.extend((iops > 0.0).then(|| format!("limited to {} IOPS", show_count(iops))));
                let bytes = bytes_per_s as u64;
                out.extend((bytes > 0).then(|| format!("limited to {}/s", show_bytes(bytes))));
            }
            Pace::Each { iops, bytes_per_s } => {
                let iops = iops.named();
                out.extend(iops.map(|(kind, n)| format!("{kind}s limited to {} IOPS", show_count(n))));
                let bytes = bytes_per_s.named();
                out.extend(bytes.map(|(kind, n)| format!("{kind}s limited to {}/s", show_bytes(n as u64))));
            }
            // The replay's description already has the pace.
            Pace::Open { .. } if self.replay.is_some() => {}
            Pace::Open { iops, .. } => out.push(format!("open loop at {}/s", show_count(iops))),
        }
        let pauses = |by_period: bool| self.pauses().any(|pause| pause.by_period == by_period);
        out.extend(pauses(false).then(|| "with pauses".into()));
        out.extend(pauses(true).then(|| "by periods".into()));
        out.extend(self.waits());
        out.extend(self.evicts_each_pass.then(|| "evicted before each pass".into()));
        out.extend(self.flush.as_ref().map(Flush::describe));
        out
    }

    /// Returns the kinds of operation that this stream submits.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        let replayed = self.replay.as_ref().is_some_and(|replay| replay.original.count(Kind::Sync) > 0);
        let sync = replayed || (self.flush.is_some() && self.access.writes());
        self.access.kinds().chain(sync.then_some(Kind::Sync))
    }
}

/// A number of consecutive operations of one access. A stream repeats its turns in order. A turn
/// begins when all operations of the previous turn have completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Turn {
    /// Number of reads, writes and trims in `turns` repetitions of this turn, spread evenly over
    /// them.
    pub operations: u32,
    /// Number of repetitions over which `operations` are spread; from 1 to `operations`.
    pub turns: u32,
    /// The blocks and directions, as a single line.
    pub access: Access,
    /// The sync call between writes, and how often it is made; `None` without sync calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<Flush>,
}

impl Turn {
    /// Returns the mean number of operations in one repetition of the turn.
    pub fn length(&self) -> f64 {
        f64::from(self.operations) / f64::from(self.turns.max(1))
    }

    /// Returns text such as `61.5 x 4K sequential write`.
    fn describe(&self) -> String {
        format!("{} x {}", self.length(), self.access.describe())
    }

    /// Returns the share of the turn's operations that write.
    fn writes(&self) -> f64 {
        let writes = |line: &Line| match line.mix.read_percent.rest(line.mix.trim_percent) {
            _ if !line.does(Kind::Write) => 0.0,
            left => left.get() / Percent::ALL.get(),
        };
        self.access.lines.first().map_or(0.0, writes)
    }

    /// Summarizes all turns: their common span, each access with its share, and the mean number of writes before a sync
    /// call.
    pub fn summarize(turns: &[Self]) -> (Access, Option<Flush>) {
        let ends = turns.iter().map(|t| t.access.offset_bytes.saturating_add(t.access.span_bytes));
        let offset_bytes = turns.iter().map(|t| t.access.offset_bytes).min().unwrap_or(0);
        let span_bytes = ends.max().map_or(u64::MAX, |end| end.saturating_sub(offset_bytes));
        let all: f64 = turns.iter().map(Self::length).sum();
        let weight = |turn: &Self| (turn.length() / all * f64::from(WEIGHTS)).round().max(1.0) as u32;
        let lines = turns.iter().flat_map(|turn| turn.access.lines.iter().map(move |line| (turn, line)));
        let lines = lines.map(|(turn, line)| Line { weight: weight(turn), ..line.clone() }).collect();
        (Access { offset_bytes, span_bytes, strided: None, lines }, Self::flush(turns))
    }

    fn flush(turns: &[Self]) -> Option<Flush> {
        let writes: f64 = turns.iter().map(|turn| turn.length() * turn.writes()).sum();
        let (mut calls, mut call, mut drain) = (0.0, None::<SyncCall>, false);
        for (turn, flush) in turns.iter().filter_map(|turn| Some((turn, turn.flush?))) {
            calls += turn.length() * turn.writes() * f64::from(flush.calls) / f64::from(flush.every.max(1));
            drain |= flush.drain;
            call = call.or(Some(flush.call));
        }
        let every = (writes / calls * MAX_SYNCS).round().max(1.0) as u32;
        call.map(|call| Flush { call, every, calls: MAX_SYNCS as u32, drain })
    }
}

/// Approximate sum of the weights that the turns get when they are summarized as lines.
const WEIGHTS: u32 = 1_000_000;

/// Priority of I/O, for the schedulers bfq and mq-deadline (`ioprio_set(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IoPriority {
    /// Served before all other classes; level 0 is served first, 7 last.
    Realtime(u8),
    /// The default class; level 0 is served first, 7 last.
    BestEffort(u8),
    /// Served only if no other process uses the device.
    Idle,
}

impl IoPriority {
    /// Returns class and level as the kernel encodes them, with the class from bit 13 up.
    pub fn number(self) -> u32 {
        match self {
            Self::Realtime(level) => 1 << 13 | u32::from(level),
            Self::BestEffort(level) => 2 << 13 | u32::from(level),
            Self::Idle => 3 << 13,
        }
    }
}

/// A share of operations with their own priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpPriority {
    /// Whether this is a share of the reads or of the writes; `None` for a share of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Size in bytes: this is a share of the operations of this size; `None` for a share of all sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u32>,
    /// Percentage of the operations of this kind and size that have the priority.
    pub percent: u8,
    /// Priority that the kernel gets with the operation.
    pub priority: IoPriority,
}

impl OpPriority {
    /// Whether the priority applies to operations of this kind and size. Only reads and writes have a priority.
    pub fn is_of(&self, kind: Kind, bytes: u32) -> bool {
        Kind::MOVING.contains(&kind)
            && self.kind.is_none_or(|of| of == kind)
            && self.bytes.is_none_or(|of| of == bytes)
    }
}

/// The engine that a stream would have used, and the reason why it uses another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineFallback {
    /// Name of the default engine.
    pub wanted: String,
    /// Why the default engine cannot be used, without a full stop at the end.
    pub cause: String,
}

impl EngineFallback {
    /// Formats the line in reports: the engine that could not be used, the reason, and the engine that replaces it.
    pub fn sentence(&self, used: &str) -> String {
        format!("cannot use {}: {}; using {used} instead, at the same queue depth", self.wanted, self.cause)
    }
}

#[cfg(test)]
fn plain_turn(operations: u32, turns: u32, offset_bytes: u64, every: u32) -> Turn {
    let access = Access { offset_bytes, span_bytes: 1 << 20, ..Access::plain(Pattern::Random, 4096, 0) };
    let flush = Flush { call: SyncCall::Fdatasync, every, calls: 1, drain: true };
    Turn { operations, turns, access, flush: Some(flush) }
}

#[test]
fn every_stream_of_a_job_has_its_own_result_name() {
    let plain = Stream::plain(Access::plain(Pattern::Random, 4096, 100), 1, 1, "null");
    let result_names = |phases: &[&[&str]]| -> Vec<String> {
        let phase = |names: &&[&str]| Phase {
            warmup_ns: 0,
            time_ns: 1,
            cooldown_ns: 0,
            streams: names.iter().map(|name| Stream { name: (*name).into(), ..plain.clone() }).collect(),
        };
        let job = Job { name: "mix".into(), phases: phases.iter().map(phase).collect() };
        job.numbered_streams().map(|(phase, stream, _)| job.result_name(phase, stream)).collect()
    };
    assert_eq!(result_names(&[&[""]]), ["mix"]);
    assert_eq!(result_names(&[&["log", ""]]), ["mix, log", "mix, stream 2"]);
    // The same name in two phases is distinguished by the phase.
    assert_eq!(
        result_names(&[&["log"], &["mixed", "mixed", "log"]]),
        [
            "mix, phase 1, log",
            "mix, phase 2, mixed, stream 1",
            "mix, phase 2, mixed, stream 2",
            "mix, phase 2, log, stream 3"
        ]
    );
    // A typed name may equal a generated one.
    for names in [&["stream 2", ""][..], &["a", "a", "a, stream 2"], &["stream 3", "stream 3", ""]] {
        let all = result_names(&[names]);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), names.len(), "{all:?}");
    }
}

#[test]
fn turns_name_their_stream_and_form_streams() {
    let access = Access::plain(Pattern::Random, 4096, 0);
    let turn = |operations| Turn { operations, turns: 2, access: access.clone(), flush: None };
    let turns = vec![turn(120), turn(181)];
    let stream = Stream { turns, ..Stream::plain(access.clone(), 32, 1, "null") };
    assert_eq!(stream.describe(), "60 x 4K random write, then 90.5 x 4K random write");
    assert!(stream.load_changes() && !stream.submits_without_waiting());
    assert_eq!(stream.with_turn(&stream.turns[0]).describe(), "4K random write");
}

#[test]
fn a_summary_of_turns_has_their_span_shares_and_calls() {
    let turns = [plain_turn(60, 1, 1 << 20, 1), plain_turn(181, 2, 4 << 20, 90)];
    let (access, flush) = Turn::summarize(&turns);
    assert_eq!((access.offset_bytes, access.span_bytes), (1 << 20, 4 << 20));
    let weights: Vec<u32> = access.lines.iter().map(|line| line.weight).collect();
    assert_eq!(weights, [398_671, 601_329]);
    // On average, 150.5 writes have 60 calls of the first turn and 90.5 / 90 calls of the second.
    let often = flush.map(|f| f64::from(f.every) / f64::from(f.calls)).unwrap_or_default();
    assert!((often - 150.5 / (60.0 + 90.5 / 90.0)).abs() < 1e-3, "{often}");
    assert_eq!(turns.map(|turn| turn.describe()), ["60 x 4K random write", "90.5 x 4K random write"]);
}

#[test]
fn bursts_that_end_by_time_pause_like_bursts_that_end_by_count() {
    let plain = Stream::plain(Access::plain(Pattern::Random, 4096, 100), 32, 1, "null");
    let by_count = |delay_ns, by_period| {
        let mut stream = plain.clone();
        let line = &mut stream.access.lines[0];
        (line.delay_ns, line.by_period) = (delay_ns, by_period);
        stream
    };
    let by_time = |pause_ns| Stream {
        bursts: Some(Bursts { time_ns: 1_000_000, pause_ns, operations: None }),
        ..plain.clone()
    };
    let traits = |stream: &Stream| {
        (stream.submits_without_waiting(), stream.load_changes(), stream.describe_delays().join(" "))
    };
    assert_eq!(traits(&plain), (true, false, String::new()));
    for stream in [by_count(1000, false), by_time(1000)] {
        assert_eq!(traits(&stream), (false, false, "with pauses".to_owned()));
    }
    for mut stream in [by_count(100_000_000, false), by_time(100_000_000)] {
        assert_eq!(traits(&stream), (false, true, "with pauses".to_owned()));
        stream.remove_pauses();
        assert_eq!(stream, plain);
    }
    assert_eq!(traits(&by_count(100_000_000, true)), (false, true, "by periods".to_owned()));
}
