//! The table of keys: every setting of a workload once, with its name, its words and its parser.
//!
//! For: flags, job files and their documentation, which are all made from it. Not for: defaults, which the plan fills in.
//! A key is its flag without the dashes.

use super::limits::{
    MAX_ATTEMPTS, MAX_BLOCK_BYTES, MAX_DEPTH, MAX_LINES, MAX_NODE, MAX_RUNS, MAX_TARGETS, MAX_TIME_NS,
    MAX_WORKERS, MIN_TIME_NS,
};
use super::number::{bandwidth, count, percent, rate, size, time, whole};
use super::{JobWish, LineWish, PhaseWish, StreamWish, order, repeat, sizes, words};

/// A setting.
#[derive(Debug)]
pub struct Key {
    /// Its name: `limit-iops`.
    pub name: &'static str,
    /// The heading it stands under.
    pub group: Group,
    /// What stands for its value in help; empty for a switch.
    pub value: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// What it is said about, and the parser of its value.
    pub set: Set,
}

/// What a key is said about, and the parser of its value.
#[derive(Clone, Copy, Debug)]
pub enum Set {
    /// The whole job.
    Job(fn(&mut JobWish, &str) -> Result<(), String>),
    /// The whole job, by yes or no.
    JobSwitch(fn(&mut JobWish, bool)),
    /// Each phase.
    Phase(fn(&mut PhaseWish, &str) -> Result<(), String>),
    /// Each stream.
    Stream(fn(&mut StreamWish, &str) -> Result<(), String>),
    /// Each stream, by yes or no.
    Switch(fn(&mut StreamWish, bool)),
    /// Each stream, by any number of values.
    List {
        /// Forgets what was said before.
        clear: fn(&mut StreamWish),
        /// Adds a value.
        add: fn(&mut StreamWish, &str) -> Result<(), String>,
    },
}

/// Headings of help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What is done.
    Workload,
    /// In which order.
    Order,
    /// How fast.
    Pace,
    /// How long.
    Stop,
    /// What makes writes stable.
    Durability,
    /// What is written.
    Data,
    /// By which threads.
    Threads,
    /// How it is measured.
    Measuring,
}

impl Group {
    /// All of them, in the order of help.
    pub const ALL: [Self; 8] = [
        Self::Workload,
        Self::Order,
        Self::Pace,
        Self::Stop,
        Self::Durability,
        Self::Data,
        Self::Threads,
        Self::Measuring,
    ];

    /// The heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Workload => "Workload",
            Self::Order => "Order",
            Self::Pace => "Pace",
            Self::Stop => "Stop",
            Self::Durability => "Durability",
            Self::Data => "Data",
            Self::Threads => "Threads",
            Self::Measuring => "Measuring",
        }
    }
}

/// The key of that name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

/// Key whose values are the stream's targets; on a command line they need no flag.
pub const TARGET: &str = "target";
/// Key whose values are lines of an access specification.
pub const LINE: &str = "line";
/// Key of the job's name; a stream in a job file has one of its own.
pub const NAME: &str = "name";

const fn key(name: &'static str, group: Group, value: &'static str, about: &'static str, set: Set) -> Key {
    Key { name, group, value, about, set }
}

/// Every key there is, in the order of help.
pub const KEYS: &[Key] = &[
    key(
        "rw",
        Group::Workload,
        "WORD",
        "Order and direction: read, write, rw, randread, randwrite, randrw, trim or randtrim [default: randread]",
        Set::Stream(|s, t| put(&mut s.rw, words::rw(t))),
    ),
    key(
        "mix",
        Group::Workload,
        "READ%",
        "Share of reads for rw and randrw, or READ/WRITE/TRIM as in 60/30/10 [default: 50]",
        Set::Stream(|s, t| put(&mut s.mix, order::mix(t))),
    ),
    key(
        "bs",
        Group::Workload,
        "SIZE",
        "Bytes per operation: 4k, 4k-64k, 4k:60,64k:40 or read=4k,write=8k [default: 4k random, 1m sequential]",
        Set::Stream(|s, t| put(&mut s.bs, sizes::per_kind(t))),
    ),
    key(
        "depth",
        Group::Workload,
        "N",
        "Operations in flight per worker [default: 32 random, 8 sequential]",
        Set::Stream(|s, t| put(&mut s.depth, count(t, 1, MAX_DEPTH))),
    ),
    key(
        "size",
        Group::Workload,
        "SIZE",
        "Bytes to touch, such as 4g [default: 1g for a file made in a directory, else all there is]",
        Set::Stream(|s, t| put(&mut s.size, size(t, 1, u64::MAX))),
    ),
    key(
        "offset",
        Group::Workload,
        "SIZE",
        "First byte that may be touched [default: 0]",
        Set::Stream(|s, t| put(&mut s.offset, size(t, 0, u64::MAX))),
    ),
    key(
        TARGET,
        Group::Workload,
        "PATH",
        "Directory, file or block device, or several [default: those of the command line]",
        Set::List { clear: |s| s.target.clear(), add: add_target },
    ),
    key(
        "sharing",
        Group::Workload,
        "WORD",
        "How several targets share the operations: each (its own depth), round-robin, random or weighted:3,1 [default: each]",
        Set::Stream(|s, t| put(&mut s.sharing, words::sharing(t))),
    ),
    key(
        LINE,
        Group::Workload,
        "KEY=VALUE,...",
        "Line of an Iometer access specification, instead of rw, mix, bs and the like; may be repeated",
        Set::List { clear: |s| s.lines.clear(), add: |s, t| add_line(s, LineWish::parse(t)?) },
    ),
    key(
        "random",
        Group::Order,
        "WORD",
        "How random offsets are drawn: uniform, once, mixed:RANDOM%, zipf:THETA, pareto:H, normal:DEVIATION% or zones:OPS%/SIZE,... [default: uniform]",
        Set::Stream(|s, t| put(&mut s.random, order::random(t))),
    ),
    key(
        "align",
        Group::Order,
        "SIZE",
        "Offsets are multiples of this [default: the smallest size of an operation]",
        Set::Stream(|s, t| put(&mut s.align, size(t, 1, MAX_BLOCK_BYTES))),
    ),
    key(
        "stride",
        Group::Order,
        "SIZE",
        "From the start of one sequential operation to the start of the next",
        Set::Stream(|s, t| put(&mut s.stride, size(t, 1, u64::MAX))),
    ),
    key(
        "hole",
        Group::Order,
        "SIZE",
        "Bytes left out behind each sequential operation",
        Set::Stream(|s, t| put(&mut s.hole, size(t, 1, u64::MAX))),
    ),
    key(
        "backwards",
        Group::Order,
        "",
        "Sequential from the end to the beginning",
        Set::Switch(|s, on| s.backwards = Some(on)),
    ),
    key(
        "start",
        Group::Order,
        "WORD",
        "Where the workers of a sequential stream begin: spread, same, interlocked or every:SIZE [default: spread]",
        Set::Stream(|s, t| put(&mut s.start, order::start(t))),
    ),
    key(
        "rate",
        Group::Pace,
        "IOPS",
        "Open loop: operations arrive so often, whatever the target does, and latency counts from their arrival",
        Set::Stream(|s, t| put(&mut s.rate, rate(t))),
    ),
    key(
        "arrivals",
        Group::Pace,
        "WORD",
        "Distances between arrivals of an open loop: poisson or constant [default: poisson]",
        Set::Stream(|s, t| put(&mut s.arrivals, words::arrivals(t))),
    ),
    key(
        "limit-iops",
        Group::Pace,
        "IOPS",
        "Closed loop, and no more operations per second than this",
        Set::Stream(|s, t| put(&mut s.limit_iops, rate(t))),
    ),
    key(
        "limit-bandwidth",
        Group::Pace,
        "SIZE",
        "Closed loop, and no more bytes per second than this, such as 200m",
        Set::Stream(|s, t| put(&mut s.limit_bandwidth, bandwidth(t))),
    ),
    key(
        "think",
        Group::Pace,
        "DURATION",
        "Pause before each burst, from the completion of the one before",
        Set::Stream(|s, t| put(&mut s.think, time(t, 1, MAX_TIME_NS))),
    ),
    key(
        "burst",
        Group::Pace,
        "N",
        "Operations in a burst; goes with think [default: 1]",
        Set::Stream(|s, t| put(&mut s.burst, count(t, 1, u32::MAX))),
    ),
    key(
        "delay",
        Group::Pace,
        "DURATION",
        "Time from the phase's start to the first operation [default: 0]",
        Set::Stream(|s, t| put(&mut s.delay, time(t, 0, MAX_TIME_NS))),
    ),
    key(
        "batch",
        Group::Pace,
        "SUBMIT[,COMPLETE]",
        "Operations handed over per call, and completions waited for [default: 1,1: each at once]",
        Set::Stream(|s, t| put(&mut s.batch, words::batch(t))),
    ),
    key(
        "ops",
        Group::Stop,
        "N",
        "End after so many operations, where that comes before the time",
        Set::Stream(|s, t| put(&mut s.limit.operations, whole(t, 1, u64::MAX))),
    ),
    key(
        "bytes",
        Group::Stop,
        "SIZE",
        "End after so many bytes, where that comes before the time",
        Set::Stream(|s, t| put(&mut s.limit.bytes, size(t, 1, u64::MAX))),
    ),
    key(
        "fsync",
        Group::Durability,
        "N",
        "fsync after so many writes",
        Set::Stream(|s, t| put(&mut s.fsync, count(t, 1, u32::MAX))),
    ),
    key(
        "fdatasync",
        Group::Durability,
        "N",
        "fdatasync after so many writes",
        Set::Stream(|s, t| put(&mut s.fdatasync, count(t, 1, u32::MAX))),
    ),
    key(
        "sync-file-range",
        Group::Durability,
        "N",
        "sync_file_range after so many writes: starts and awaits write back, promises nothing after a crash",
        Set::Stream(|s, t| put(&mut s.sync_file_range, count(t, 1, u32::MAX))),
    ),
    key(
        "drain",
        Group::Durability,
        "",
        "Such a call waits for the writes in flight, and later ones wait for it",
        Set::Switch(|s, on| s.drain = Some(on)),
    ),
    key(
        "compress",
        Group::Data,
        "%",
        "How much of the data written a compressor can save [default: 0]",
        Set::Stream(|s, t| put(&mut s.compress, percent(t))),
    ),
    key(
        "dedup",
        Group::Data,
        "%",
        "Share of the blocks written that are copies of others [default: 0]",
        Set::Stream(|s, t| put(&mut s.dedup, percent(t))),
    ),
    key("zeros", Group::Data, "", "Write zeros", Set::Switch(|s, on| s.zeros = Some(on))),
    key(
        "data",
        Group::Data,
        "FILE",
        "Write the bytes of this file, over and over",
        Set::Stream(|s, t| put(&mut s.data, words::path(t))),
    ),
    key(
        "workers",
        Group::Threads,
        "N",
        "Threads [default: 1]",
        Set::Stream(|s, t| put(&mut s.workers, count(t, 1, MAX_WORKERS))),
    ),
    key(
        "cpus",
        Group::Threads,
        "LIST",
        "CPUs that the workers may use, such as 0-3,8 [default: all]",
        Set::List { clear: |s| s.cpus = None, add: |s, t| words::cpus(s.cpus.get_or_insert_default(), t) },
    ),
    key(
        "pin",
        Group::Threads,
        "",
        "Each worker on one of the CPUs by itself, in turn",
        Set::Switch(|s, on| s.pin = Some(on)),
    ),
    key(
        "node",
        Group::Threads,
        "N",
        "NUMA node of the memory, and of the threads where no CPUs are named",
        Set::Stream(|s, t| put(&mut s.node, count(t, 0, MAX_NODE))),
    ),
    key(
        NAME,
        Group::Measuring,
        "TEXT",
        "What tables call it",
        Set::Job(|j, t| put(&mut j.name, words::name(t))),
    ),
    key(
        "time",
        Group::Measuring,
        "DURATION",
        "Length of each measured window, such as 3s or 500ms",
        Set::Phase(|p, t| put(&mut p.time, time(t, MIN_TIME_NS, MAX_TIME_NS))),
    ),
    key(
        "warmup",
        Group::Measuring,
        "DURATION",
        "Time before each window in which operations run and do not count",
        Set::Phase(|p, t| put(&mut p.warmup, time(t, 0, MAX_TIME_NS))),
    ),
    key(
        "cooldown",
        Group::Measuring,
        "DURATION",
        "Time after each window in which operations still run and do not count [default: 0]",
        Set::Phase(|p, t| put(&mut p.cooldown, time(t, 0, MAX_TIME_NS))),
    ),
    key(
        "runs",
        Group::Measuring,
        "N",
        "Times each workload is measured [default: 5]",
        Set::Job(|j, t| put(&mut j.runs, count(t, 1, MAX_RUNS))),
    ),
    key(
        "precision",
        Group::Measuring,
        "%",
        "Measure each workload, runs times at least, until the 95 % interval of its rate is so narrow to either side, such as 2.5%",
        Set::Job(|j, t| put(&mut j.precision, repeat::precision(t))),
    ),
    key(
        "until",
        Group::Measuring,
        "WORD",
        "steady: measure round after round without a rest until five rates in a row surely drift by less than 5 %; only these count",
        Set::Job(|j, t| put(&mut j.until, repeat::until(t))),
    ),
    key(
        "max-runs",
        Group::Measuring,
        "N",
        "Most times with precision or until [default: twice runs with precision, 25 until steady]",
        Set::Job(|j, t| put(&mut j.max_runs, count(t, 1, MAX_RUNS))),
    ),
    key(
        "attempts",
        Group::Measuring,
        "N",
        "Times a run that others disturb is measured at most; 1 measures none again [default: 3]",
        Set::Job(|j, t| put(&mut j.attempts, count(t, 1, MAX_ATTEMPTS))),
    ),
    key(
        "seed",
        Group::Measuring,
        "N",
        "Seed of offsets, data and the order of runs [default: from the clock]",
        Set::Job(|j, t| put(&mut j.seed, whole(t, 0, u64::MAX))),
    ),
    key(
        "precondition",
        Group::Measuring,
        "",
        "Before the first run write everything twice from end to end, then do the work itself until its rate settles (at most 25 rounds)",
        Set::JobSwitch(|j, on| j.precondition = Some(on)),
    ),
    key(
        "engine",
        Group::Measuring,
        "NAME[:OPTIONS]",
        "Interface that carries the operations, with its options as in io_uring:sqpoll=1 [default: io_uring]",
        Set::Stream(|s, t| put(&mut s.engine, words::engine(t))),
    ),
    key(
        "cache",
        Group::Measuring,
        "WORD",
        "What the target is opened with: direct, buffered, sync, dsync, direct-sync, direct-dsync or mmap [default: direct]",
        Set::Stream(|s, t| put(&mut s.cache, words::cache(t))),
    ),
];

fn put<T>(slot: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *slot = Some(value?);
    Ok(())
}

fn add_target(stream: &mut StreamWish, text: &str) -> Result<(), String> {
    if stream.target.len() == MAX_TARGETS {
        return Err(format!("there are too many targets; type {MAX_TARGETS} at most"));
    }
    stream.target.push(words::path(text)?);
    Ok(())
}

/// Adds a line.
///
/// # Errors
/// There are too many.
pub fn add_line(stream: &mut StreamWish, line: LineWish) -> Result<(), String> {
    if stream.lines.len() == MAX_LINES {
        return Err(format!("there are too many lines; type {MAX_LINES} at most"));
    }
    stream.lines.push(line);
    Ok(())
}

impl Key {
    /// Whether it is said without a value.
    pub fn is_switch(&self) -> bool {
        matches!(self.set, Set::Switch(_) | Set::JobSwitch(_))
    }

    /// Whether it may be said several times.
    pub fn is_list(&self) -> bool {
        matches!(self.set, Set::List { .. })
    }

    /// Reads values into a job of one phase with one stream, as a command line has it.
    ///
    /// # Errors
    /// What was wrong and what to type.
    pub fn say<'t>(
        &self,
        job: &mut JobWish,
        values: impl IntoIterator<Item = &'t str>,
    ) -> Result<(), String> {
        if job.phases.is_empty() {
            job.phases.push(PhaseWish::default());
        }
        let Some(phase) = job.phases.first_mut() else { return Ok(()) };
        if phase.streams.is_empty() {
            phase.streams.push(StreamWish::default());
        }
        for text in values {
            match self.set {
                Set::Job(set) => set(job, text)?,
                Set::JobSwitch(set) => words::switch(text).map(|on| set(job, on))?,
                Set::Phase(set) => job.phases.iter_mut().try_for_each(|p| set(p, text))?,
                set => {
                    let mut streams = job.phases.iter_mut().flat_map(|p| &mut p.streams);
                    streams.try_for_each(|s| match set {
                        Set::Stream(set) => set(s, text),
                        Set::List { add, .. } => add(s, text),
                        Set::Switch(set) => words::switch(text).map(|on| set(s, on)),
                        Set::Job(_) | Set::JobSwitch(_) | Set::Phase(_) => Ok(()),
                    })?;
                }
            }
        }
        Ok(())
    }
}

#[test]
fn every_key_reads_the_example_that_its_help_gives() {
    let mut names: Vec<&str> = KEYS.iter().map(|k| k.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KEYS.len(), "no name is there twice");
    for key in KEYS {
        assert_eq!(find(key.name).map(|k| k.name), Some(key.name));
        assert_eq!(key.value.is_empty(), key.is_switch(), "{}", key.name);
        let mut job = JobWish::default();
        let value = match (key.name, key.value) {
            ("rw", _) => "randrw",
            ("sharing", _) => "round-robin",
            ("random", _) => "once",
            ("start", _) => "same",
            ("arrivals", _) => "constant",
            ("cache", _) => "mmap",
            ("until", _) => "steady",
            (_, "KEY=VALUE,...") => "bs=4k",
            (_, "LIST") => "0-3,8",
            (_, "DURATION") => "500ms",
            (_, "") => "true",
            _ => "32",
        };
        key.say(&mut job, [value]).unwrap_or_else(|e| panic!("{}: {e}", key.name));
        let unsaid = JobWish {
            phases: vec![PhaseWish { streams: vec![StreamWish::default()], ..Default::default() }],
            ..Default::default()
        };
        assert_ne!(job, unsaid, "{} is read into its place", key.name);
        if !matches!(key.name, "name" | "target" | "data" | "engine") {
            let refused = key.say(&mut JobWish::default(), ["\u{e9}"]);
            assert!(refused.is_err_and(|e| e.contains("; type")), "{}", key.name);
        }
    }
}

#[test]
fn help_names_every_word() {
    for (word, _) in super::Rw::WORDS {
        assert!(find("rw").is_some_and(|k| k.about.contains(word)), "{word}");
    }
    for cache in crate::job::Cache::ALL {
        assert!(find("cache").is_some_and(|k| k.about.contains(cache.word())), "{cache:?}");
    }
}
