//! The workload language: what is to be done to targets, with nothing left to a default.
//!
//! For: jobs as plain data. Not for: what the user said (that is [`crate::wish`]) nor how it is carried out (the engine).

use crate::units::{show_block, show_bytes, show_count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A complete workload: phases one after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// What tables and findings call it: `RND4K Q32T1 read`.
    pub name: String,
    /// Phases in their order; at least one.
    pub phases: Vec<Phase>,
}

impl Job {
    /// Whether any stream touches this target.
    pub fn touches(&self, target: usize) -> bool {
        self.phases.iter().flat_map(|p| &p.streams).any(|s| s.targets.contains(&target))
    }
}

/// A stretch of time in which streams run at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Time before the measured window, in which operations run but do not count.
    pub warmup_ns: u64,
    /// Length of the measured window, where no stop rule of a stream ends it before.
    pub time_ns: u64,
    /// Time after the measured window, in which operations still run but do not count.
    #[serde(default)]
    pub cooldown_ns: u64,
    /// Streams that run together; at least one.
    pub streams: Vec<Stream>,
}

/// One access with its workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// What it is called beside others of its phase; empty where it needs no name.
    #[serde(default)]
    pub name: String,
    /// Which blocks, in which order and direction.
    pub access: Access,
    /// Indices into the plan's targets.
    pub targets: Vec<usize>,
    /// How each worker divides its operations among the targets.
    #[serde(default)]
    pub sharing: Sharing,
    /// Threads.
    pub workers: u32,
    /// Operations in flight per worker, and per target where each has its own depth ([`Sharing::Each`]).
    pub depth: u32,
    /// Name of the engine, from the engine table.
    pub engine: String,
    /// Options of the engine by name, with their number where they take one.
    #[serde(default)]
    pub options: Options,
    /// Open flags that decide about the page cache and durability.
    pub cache: Cache,
    /// How many operations one call hands over and waits for.
    pub batch: Batch,
    /// When operations are handed over.
    #[serde(default)]
    pub pace: Pace,
    /// Calls between writes that make them stable.
    #[serde(default)]
    pub flush: Option<Flush>,
    /// What is written.
    #[serde(default)]
    pub data: Data,
    /// What ends the stream before its time.
    #[serde(default)]
    pub limit: Limit,
    /// Time from the phase's start to the stream's first operation.
    #[serde(default)]
    pub delay_ns: u64,
    /// Where its threads and their memory are.
    #[serde(default)]
    pub place: Placement,
}

/// Options of an engine by name, with their number where they take one.
pub type Options = BTreeMap<String, Option<u64>>;

/// Option of an engine: before the first write the whole file becomes as a new one is, with a length and no blocks.
pub const NEW: &str = "new";
/// The same, with all blocks allocated at once.
pub const FALLOCATE: &str = "fallocate";
/// The same without a length: the file grows by what is written, as a copy does.
pub const GROW: &str = "grow";

/// Which blocks are touched, in which order and direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Access {
    /// First byte of the span.
    pub offset_bytes: u64,
    /// Bytes from there that may be touched.
    pub span_bytes: u64,
    /// Lines of an access specification; the plain case is one. Each operation draws its line by weight.
    pub lines: Vec<Line>,
}

/// One line of an access specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Weight among the lines; a plan's weights sum to 100.
    pub weight: u32,
    /// Order of offsets.
    pub order: Order,
    /// Shares of directions, drawn per operation.
    pub mix: Mix,
    /// Sizes of reads, writes and trims.
    pub sizes: PerKind<Sizes>,
    /// Offsets are multiples of this, counted from the span's first byte; 0 stands for no constraint but the target's.
    pub align_bytes: u64,
    /// Operations in a burst; matters only with `delay_ns`.
    pub burst: u32,
    /// Pause before each burst, from the completion of the one before; 0 for none.
    pub delay_ns: u64,
    /// Size of an operation in the opposite direction after each; 0 for none.
    pub reply_bytes: u32,
}

/// The two families of orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One block after another.
    Sequential,
    /// Anywhere.
    #[default]
    Random,
}

/// Order of offsets, with all that it needs. Random offsets lie on a grid of the alignment, or of the smallest size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From the position of the last operation of the lane onwards, around at the end of the span.
    Sequential(Steps),
    /// Every block of the span equally likely each time, with replacement.
    Random,
    /// Every block of the span once per pass, in an order that differs from pass to pass; workers divide the blocks.
    Once,
    /// Random with this chance in percent, else on from the last operation: sequential runs of geometric length.
    Mixed(f64),
    /// Block of rank k with a chance proportional to k^-theta; ranks are scattered over the span.
    Zipf(f64),
    /// Self-similar: the share h (0 to 0.5) of the blocks gets 1 - h of the operations, and so on inside it. Scattered.
    Pareto(f64),
    /// Normal around the middle of the span, with this standard deviation in percent of the span; none outside it.
    Normal(f64),
    /// Zones one after another, each with its share of the operations; uniform inside.
    Zones(Vec<Zone>),
}

/// How a sequential order moves on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Steps {
    /// From the start of one operation to the start of the next; 0 for the size of the operation.
    pub stride_bytes: u64,
    /// Left out behind each operation.
    pub hole_bytes: u64,
    /// From the end of the span to its beginning.
    pub backwards: bool,
    /// Where workers begin.
    pub start: Start,
}

/// Where the workers of a sequential order begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Each at its own share of the span.
    #[default]
    Spread,
    /// All at the first byte: the same blocks, one worker after another.
    Same,
    /// Each so many bytes behind the one before.
    Every(u64),
    /// All take the next block of one shared position.
    Interlocked,
}

/// A zone of a span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Zone {
    /// Share of the operations in percent; all zones sum to 100.
    pub access_percent: f64,
    /// How much of the span it is.
    pub size: ZoneSize,
}

/// How much of a span a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZoneSize {
    /// Percent of the span.
    Percent(f64),
    /// Bytes; the last zone may ask for more than is left, and gets the rest.
    Bytes(u64),
}

/// Shares of directions in percent; what is left are writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mix {
    /// Reads.
    pub read_percent: u8,
    /// Trims.
    #[serde(default)]
    pub trim_percent: u8,
}

/// A value for each direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PerKind<T> {
    /// Of reads.
    pub read: T,
    /// Of writes.
    pub write: T,
    /// Of trims.
    pub trim: T,
}

/// Sizes of operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// Every multiple of the alignment (or of the least, where there is none) between the two, equally likely.
    Range(u32, u32),
    /// Sizes with weights.
    Split(Vec<(u32, u32)>),
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Moves bytes from the target.
    Read,
    /// Moves bytes to the target.
    Write,
    /// Gives bytes of the target back (discard, punched hole).
    Trim,
    /// Makes writes stable.
    Sync,
}

impl Kind {
    /// All kinds, in the order of their indices.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Sync];
    /// The kinds that move bytes between memory and target.
    pub const MOVING: [Self; 2] = [Self::Read, Self::Write];

    /// `read`, `write`, `trim` or `sync`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
        }
    }
}

/// Open flags that decide about the page cache and durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// `O_DIRECT`: past the page cache, where the file system obeys.
    Direct,
    /// No flag: through the page cache.
    Buffered,
    /// `O_SYNC`: through the page cache, each write waits until data and metadata are on stable storage.
    Sync,
    /// `O_DSYNC`: through the page cache, each write waits until it can be read back after a crash.
    Dsync,
    /// `O_DIRECT | O_SYNC`.
    DirectSync,
    /// `O_DIRECT | O_DSYNC`.
    DirectDsync,
    /// Memory mapped: loads and stores through the page cache. Only with the engine `mmap`.
    Mmap,
}

impl Cache {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Direct,
        Self::Buffered,
        Self::Sync,
        Self::Dsync,
        Self::DirectSync,
        Self::DirectDsync,
        Self::Mmap,
    ];

    /// Whether `O_DIRECT` is asked for.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::DirectSync | Self::DirectDsync)
    }

    /// Whether each write must be stable before it completes (`O_SYNC`, `O_DSYNC`).
    pub fn is_sync(self) -> bool {
        self.is_full_sync() || matches!(self, Self::Dsync | Self::DirectDsync)
    }

    /// Whether that includes all metadata (`O_SYNC`).
    pub fn is_full_sync(self) -> bool {
        matches!(self, Self::Sync | Self::DirectSync)
    }

    /// The word of the flag `--cache`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
            Self::Sync => "sync",
            Self::Dsync => "dsync",
            Self::DirectSync => "direct-sync",
            Self::DirectDsync => "direct-dsync",
            Self::Mmap => "mmap",
        }
    }

    /// One line for `--help`.
    pub fn about(self) -> &'static str {
        match self {
            Self::Direct => "O_DIRECT: past the page cache",
            Self::Buffered => "through the page cache",
            Self::Sync => {
                "through the page cache, each write stable with its metadata before it completes (O_SYNC)"
            }
            Self::Dsync => "through the page cache, each write stable before it completes (O_DSYNC)",
            Self::DirectSync => "O_DIRECT and O_SYNC",
            Self::DirectDsync => "O_DIRECT and O_DSYNC",
            Self::Mmap => "loads and stores to a memory mapping (engine mmap)",
        }
    }
}

/// How many operations one call hands over and waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Batch {
    /// Operations gathered before they are handed over; 1 is eager: each as soon as it is prepared.
    pub submit: u32,
    /// Completions waited for when the queue is full.
    pub complete: u32,
}

/// How a worker divides its operations among several targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Each target has operations of its own in flight, as many as the depth says.
    #[default]
    Each,
    /// One operation to each in turn.
    RoundRobin,
    /// Drawn for every operation, all equally likely.
    Random,
    /// Drawn for every operation by weight, one per target.
    Weighted(Vec<u32>),
}

/// When operations are handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As soon as there is room: closed loop.
    #[default]
    Closed,
    /// Closed loop, and never more than this per second over all workers: operations, bytes; 0 for no limit.
    Limited {
        /// Operations per second.
        iops: f64,
        /// Bytes per second.
        bytes_per_s: f64,
    },
    /// At times that are fixed in advance, whatever the target does; latency counts from them. Over all workers.
    Open {
        /// Operations per second.
        iops: f64,
        /// Distances between them.
        arrivals: Arrivals,
    },
}

impl Pace {
    /// An open loop of so many operations per second, its arrivals drawn as they were.
    #[must_use]
    pub fn offering(self, iops: f64) -> Self {
        match self {
            Self::Open { arrivals, .. } => Self::Open { iops, arrivals },
            Self::Closed | Self::Limited { .. } => Self::Open { iops, arrivals: Arrivals::default() },
        }
    }
}

/// Distances between arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential, as of many independent users.
    #[default]
    Poisson,
    /// All the same.
    Constant,
}

/// A call between writes that makes them stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flush {
    /// Which call.
    pub call: SyncCall,
    /// After so many writes of a lane.
    pub every: u32,
    /// Whether it waits for the writes in flight, and later ones for it. Without, it covers those that have completed.
    pub drain: bool,
}

/// A call that makes writes stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncCall {
    /// `fsync`: data and metadata. For a mapping `msync(MS_SYNC)`.
    #[default]
    Fsync,
    /// `fdatasync`: data, and what is needed to read them back.
    Fdatasync,
    /// `sync_file_range`: starts and awaits write back of the whole file; no metadata, no flush of the device's cache.
    SyncFileRange,
}

impl SyncCall {
    /// Its name in the manual.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::SyncFileRange => "sync_file_range",
        }
    }
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Unique and incompressible but for these shares.
    Random {
        /// How much a compressor can save, in percent of each 4 KiB.
        compress_percent: u8,
        /// Share of 4 KiB blocks that are copies of others, in percent.
        dedup_percent: u8,
    },
    /// Zeros.
    Zeros,
    /// The bytes of a file, over and over.
    File(String),
}

impl Default for Data {
    fn default() -> Self {
        Self::Random { compress_percent: 0, dedup_percent: 0 }
    }
}

/// What ends a stream before its time, over all its workers, warm-up not counted. The first to be reached counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Operations handed over.
    pub operations: Option<u64>,
    /// Their bytes.
    pub bytes: Option<u64>,
}

/// Where threads and their memory are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// CPUs that may be used; empty for all.
    pub cpus: Vec<u32>,
    /// Whether each worker gets one of them to itself in turn, instead of all sharing all.
    pub split: bool,
    /// NUMA node of its memory, and of its CPUs where none are named.
    pub node: Option<u32>,
}

impl Stream {
    /// The plain stream: direct, eager and closed, to the first target.
    pub fn plain(access: Access, depth: u32, workers: u32, engine: &str) -> Self {
        Self {
            name: String::new(),
            access,
            targets: vec![0],
            sharing: Sharing::Each,
            workers,
            depth,
            engine: engine.into(),
            options: Options::new(),
            cache: Cache::Direct,
            batch: Batch { submit: 1, complete: 1 },
            pace: Pace::Closed,
            flush: None,
            data: Data::default(),
            limit: Limit::default(),
            delay_ns: 0,
            place: Placement::default(),
        }
    }

    /// Lanes of each worker: one per target where each has its own depth, else one.
    pub fn lanes(&self) -> u64 {
        if self.sharing == Sharing::Each { self.targets.len() as u64 } else { 1 }
    }

    /// Operations in flight over all workers and targets when every queue is full.
    pub fn total_depth(&self) -> u64 {
        u64::from(self.depth).saturating_mul(u64::from(self.workers)).saturating_mul(self.lanes())
    }

    /// Whether the interface alone is exercised: the engine hands operations over that do nothing.
    pub fn does_nothing(&self) -> bool {
        self.options.contains_key("nop")
    }

    /// Whether the whole file is made new before the first write, whatever the span is.
    pub fn renews_file(&self) -> bool {
        [NEW, FALLOCATE, GROW].iter().any(|option| self.options.contains_key(*option))
    }

    /// Whether latency counts from times fixed in advance.
    pub fn is_open_loop(&self) -> bool {
        matches!(self.pace, Pace::Open { .. })
    }

    /// Whether operations are handed over as soon as there is room: no schedule, no pauses, nothing that drains the queue.
    pub fn is_unheld(&self) -> bool {
        self.pace == Pace::Closed
            && self.access.lines.iter().all(|l| l.delay_ns == 0)
            && self.flush.is_none_or(|f| !f.drain)
    }

    /// What holds operations back or comes between them, in words for its name; nothing in the plain case.
    pub fn conditions(&self) -> Vec<String> {
        let mut words = Vec::new();
        match self.pace {
            Pace::Closed => {}
            Pace::Limited { iops, bytes_per_s } => {
                words.extend((iops > 0.0).then(|| format!("limited to {} IOPS", show_count(iops))));
                let bytes = bytes_per_s as u64;
                words.extend((bytes > 0).then(|| format!("limited to {}/s", show_bytes(bytes))));
            }
            Pace::Open { iops, .. } => words.push(format!("open loop at {}/s", show_count(iops))),
        }
        let pauses = self.access.lines.iter().any(|l| l.delay_ns > 0);
        words.extend(pauses.then(|| "with pauses".into()));
        words.extend(self.flush.map(|f| format!("{} every {}", f.call.word(), f.every)));
        words
    }

    /// The kinds of operation that this stream hands over.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        let sync = self.flush.is_some() && self.access.writes();
        self.access.kinds().chain(sync.then_some(Kind::Sync))
    }
}

impl Access {
    /// The plain access: one order, one size, reads and writes.
    pub fn plain(pattern: Pattern, block_bytes: u32, read_percent: u8) -> Self {
        let order = match pattern {
            Pattern::Sequential => Order::Sequential(Steps::default()),
            Pattern::Random => Order::Random,
        };
        let sizes = Sizes::Fixed(block_bytes);
        let line = Line {
            weight: 100,
            order,
            mix: Mix { read_percent, trim_percent: 0 },
            sizes: PerKind { read: sizes.clone(), write: sizes.clone(), trim: sizes },
            align_bytes: 0,
            burst: 1,
            delay_ns: 0,
            reply_bytes: 0,
        };
        Self { offset_bytes: 0, span_bytes: u64::MAX, lines: vec![line] }
    }

    /// `4K random read`, `1M sequential write`, `4K random 70/30`, `4K-64K zipf 1.1 read`.
    pub fn words(&self) -> String {
        match self.lines.as_slice() {
            [line] => line.words(),
            lines => format!("{} lines", lines.len()),
        }
    }

    /// `read`, `write`, `trim` or the mix as `70/30`, with trims `60/30/10`.
    pub fn direction(&self) -> String {
        match self.lines.as_slice() {
            [line] => line.mix.words(),
            _ => "mixed".into(),
        }
    }

    /// Whether all is sequential, or all is random in some way; `None` for a blend.
    pub fn pattern(&self) -> Option<Pattern> {
        let mut patterns = self.lines.iter().map(|l| l.order.pattern());
        let first = patterns.next().flatten()?;
        patterns.all(|p| p == Some(first)).then_some(first)
    }

    /// The one size of all operations; `None` where they differ.
    pub fn block_bytes(&self) -> Option<u32> {
        let (least, most) = (self.smallest_bytes(), self.largest_bytes());
        (least == most && self.lines.iter().all(|l| l.reply_bytes == 0)).then_some(most)
    }

    /// The largest operation.
    pub fn largest_bytes(&self) -> u32 {
        let lines = self.lines.iter();
        lines
            .map(|l| l.drawn_sizes().map(Sizes::most).max().unwrap_or(0).max(l.reply_bytes))
            .max()
            .unwrap_or(0)
    }

    /// The smallest operation, replies aside.
    pub fn smallest_bytes(&self) -> u32 {
        self.lines.iter().flat_map(|l| l.drawn_sizes().map(Sizes::least)).min().unwrap_or(0)
    }

    /// The share of reads where it is the same in all lines and nothing is trimmed.
    pub fn read_percent(&self) -> Option<u8> {
        let first = self.lines.first()?.mix;
        (first.trim_percent == 0 && self.lines.iter().all(|l| l.mix == first)).then_some(first.read_percent)
    }

    /// The kinds of operation that this access draws, syncs aside.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|k| self.lines.iter().any(|l| l.does(*k)))
    }

    /// Whether anything is read.
    pub fn reads(&self) -> bool {
        self.kinds().any(|k| k == Kind::Read)
    }

    /// Whether anything is changed: written or trimmed.
    pub fn writes(&self) -> bool {
        self.kinds().any(|k| k != Kind::Read)
    }
}

impl Line {
    /// Whether operations of a kind are drawn.
    pub fn does(&self, kind: Kind) -> bool {
        let Mix { read_percent, trim_percent } = self.mix;
        let write = 100_u8.saturating_sub(read_percent).saturating_sub(trim_percent) > 0;
        let reply = self.reply_bytes > 0;
        match kind {
            Kind::Read => read_percent > 0 || (reply && write),
            Kind::Write => write || (reply && read_percent > 0),
            Kind::Trim => trim_percent > 0,
            Kind::Sync => false,
        }
    }

    /// Sizes of the directions that are drawn.
    pub fn drawn_sizes(&self) -> impl Iterator<Item = &Sizes> {
        let Mix { read_percent, trim_percent } = self.mix;
        let write = 100_u8.saturating_sub(read_percent).saturating_sub(trim_percent) > 0;
        let PerKind { read, write: of_writes, trim } = &self.sizes;
        [(read_percent > 0, read), (write, of_writes), (trim_percent > 0, trim)]
            .into_iter()
            .filter_map(|(drawn, sizes)| drawn.then_some(sizes))
    }

    fn words(&self) -> String {
        let mut sizes: Vec<String> = Vec::new();
        for words in self.drawn_sizes().map(Sizes::words) {
            if !sizes.contains(&words) {
                sizes.push(words);
            }
        }
        format!("{} {} {}", sizes.join("/"), self.order.words(), self.mix.words())
    }
}

impl Mix {
    /// `read`, `write`, `trim`, `70/30`, `60/30/10`.
    pub fn words(self) -> String {
        match (self.read_percent, self.trim_percent) {
            (100, _) => "read".into(),
            (0, 0) => "write".into(),
            (_, 100) => "trim".into(),
            (r, 0) => format!("{r}/{}", 100 - r.min(100)),
            (r, t) => format!("{r}/{}/{t}", 100_u8.saturating_sub(r).saturating_sub(t)),
        }
    }
}

impl Order {
    /// Whether it is sequential or random; `None` for a blend of both.
    pub fn pattern(&self) -> Option<Pattern> {
        match self {
            Self::Sequential(_) => Some(Pattern::Sequential),
            Self::Mixed(_) => None,
            _ => Some(Pattern::Random),
        }
    }

    /// `sequential`, `random`, `zipf 1.1`, ...
    pub fn words(&self) -> String {
        match self {
            Self::Sequential(steps) => {
                let mut words = String::from("sequential");
                if steps.backwards {
                    words += " backwards";
                }
                if steps.stride_bytes > 0 {
                    words += &format!(" stride {}", show_block(steps.stride_bytes));
                }
                if steps.hole_bytes > 0 {
                    words += &format!(" holes {}", show_block(steps.hole_bytes));
                }
                words
            }
            Self::Random => "random".into(),
            Self::Once => "random once".into(),
            Self::Mixed(percent) => format!("{percent} % random"),
            Self::Zipf(theta) => format!("zipf {theta}"),
            Self::Pareto(h) => format!("pareto {h}"),
            Self::Normal(deviation) => format!("normal {deviation} %"),
            Self::Zones(zones) => {
                let words = zones.iter().map(|z| {
                    let size = match z.size {
                        ZoneSize::Percent(p) => format!("{p} %"),
                        ZoneSize::Bytes(b) => show_bytes(b),
                    };
                    format!("{} % to {size}", z.access_percent)
                });
                format!("zones ({})", words.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl Sizes {
    /// The smallest.
    pub fn least(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Range(size, _) => *size,
            Self::Split(sizes) => sizes.iter().map(|s| s.0).min().unwrap_or(0),
        }
    }

    /// The largest.
    pub fn most(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Range(_, size) => *size,
            Self::Split(sizes) => sizes.iter().map(|s| s.0).max().unwrap_or(0),
        }
    }

    /// `4K`, `4K-64K`, `4K:60,64K:40`.
    pub fn words(&self) -> String {
        let block = |b: u32| show_block(u64::from(b));
        let weighted = |(size, weight): &(u32, u32)| format!("{}:{weight}", block(*size));
        match self {
            Self::Fixed(size) => block(*size),
            Self::Range(least, most) => format!("{}-{}", block(*least), block(*most)),
            Self::Split(sizes) => sizes.iter().map(weighted).collect::<Vec<_>>().join(","),
        }
    }
}

#[test]
fn words_are_those_of_the_field() {
    let plain = Access::plain(Pattern::Random, 4096, 70);
    assert_eq!((plain.words().as_str(), plain.block_bytes()), ("4K random 70/30", Some(4096)));
    let mut odd = Access::plain(Pattern::Random, 4096, 60);
    odd.lines[0].mix.trim_percent = 10;
    odd.lines[0].order = Order::Zipf(1.1);
    odd.lines[0].sizes.write = Sizes::Range(4096, 65536);
    assert_eq!(odd.words(), "4K/4K-64K zipf 1.1 60/30/10");
    assert_eq!((odd.block_bytes(), odd.largest_bytes(), odd.read_percent()), (None, 65536, None));
    assert_eq!(odd.kinds().collect::<Vec<_>>(), [Kind::Read, Kind::Write, Kind::Trim]);
}
