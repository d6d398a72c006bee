//! The specification: a user's request for a workload, from flags or a job file. A setting that was not given is
//! `None`.
//!
//! A key, such as `limit-iops` in a job file, means the same as the flag `--limit-iops`. The crate `dialect` reads job
//! files. The plan fills in defaults and records their origin. If a job was made from options of fio or DISKSPD, [`Typed`]
//! keeps these options, because that tool's output formats repeat them.

pub mod axes;
mod check;
pub mod conditions;
pub mod foreign;
pub mod iometer;
pub mod keys;
pub mod number;
pub mod operations;
pub mod values;

pub use check::Problem;

use crate::diskspd::Profile;
use crate::job::{
    Arrivals, Batch, Cache, Changes, Create, Every, Kind, Layout, Line, Mix, Options as EngineOptions, Order,
    PerKind, ReplayPace, Sizes, Steps, Stream, Think,
};
use crate::verdict::Condition;
use conditions::RateLimit;
use number::{reject, size};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The request for a job. A setting that the user did not give is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobSpec {
    /// Name in tables.
    pub name: Option<String>,
    /// Number of runs; the minimum number if `precision`, `until` or `settle` decides.
    pub runs: Option<u32>,
    /// Half width of the rate's 95 % interval at which measuring ends, as a share of the rate.
    pub precision: Option<f64>,
    /// The rule that ends measuring.
    pub until: Option<Until>,
    /// Whether runs are added, once, if a condition such as `fail_if` is undecided.
    pub settle: Option<bool>,
    /// Maximum number of runs if `precision`, `until` or `settle` decides.
    pub max_runs: Option<u32>,
    /// Maximum number of attempts at a disturbed run.
    pub attempts: Option<u32>,
    /// Conditions under which the measurement fails.
    pub fail_if: Option<Vec<Condition>>,
    /// Seed of everything random.
    pub seed: Option<u64>,
    /// Whether the storage is brought into its steady state before the first run, by overwriting everything that the
    /// job touches.
    pub precondition: Option<bool>,
    /// Whether every target is evicted from the page cache before each run.
    pub cold: Option<bool>,
    /// File for the operation log.
    pub op_log: Option<String>,
    /// Remarks about the job file that are not errors.
    pub remarks: Vec<String>,
    /// Lines that another tool prints first about the files that it creates: `a: Laying out IO file (1 file / 64MiB)`.
    pub announcements: Vec<String>,
    /// Options typed in the language of another tool, with an entry for each stream.
    pub typed: Option<Typed>,
    /// Phases in their order; one, or several from a job file.
    pub phases: Vec<PhaseSpec>,
}

impl JobSpec {
    /// Returns the streams of all phases.
    pub fn streams(&self) -> impl Iterator<Item = &StreamSpec> + Clone {
        self.phases.iter().flat_map(|p| &p.streams)
    }

    /// Returns the streams of all phases, to change them.
    pub fn streams_mut(&mut self) -> impl Iterator<Item = &mut StreamSpec> {
        self.phases.iter_mut().flat_map(|p| &mut p.streams)
    }
}

/// The request for a phase. A setting that the user did not give is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseSpec {
    /// Length of the measured window in ns.
    pub time: Option<u64>,
    /// Warm-up in ns.
    pub warmup: Option<u64>,
    /// Cool-down in ns.
    pub cooldown: Option<u64>,
    /// Concurrent streams; at least one.
    pub streams: Vec<StreamSpec>,
}

/// The request for a stream. A setting that the user did not give is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch")]
pub struct StreamSpec {
    /// Names of the typed keys whose value may equal the default. Any other key was typed if its field is neither `None` nor empty.
    pub given: BTreeSet<&'static str>,
    /// The settings that the plan copies unchanged, with their defaults. The plan fills in all others.
    pub resolved: Stream,
    /// The settings of the stream's only line that the plan copies unchanged. Unused if `resolved.access` has lines of an
    /// access specification.
    pub line: Line,
    /// The steps of a sequential order.
    pub steps: Steps,
    /// Name of the stream in its phase.
    pub name: Option<String>,
    /// Paths of files, directories or devices; empty if none was given.
    pub target: Vec<String>,
    /// Order and direction in one word.
    pub rw: Option<Rw>,
    /// Shares of directions.
    pub mix: Option<Mix>,
    /// Sizes of operations.
    pub bs: Option<PerKind<Sizes>>,
    /// How random offsets are drawn: never [`Order::Sequential`].
    pub random: Option<Order>,
    /// Turns that the stream repeats in order. They replace the settings for directions, offsets, sizes, pauses and
    /// syncs. Empty for a stream without turns.
    pub turns: Vec<TurnSpec>,
    /// Size in bytes of the region of each target that may be touched.
    pub size: Option<u64>,
    /// Number of operations in flight.
    pub depth: Option<u32>,
    /// How the workers of all hosts divide a file into one part for each worker.
    pub shared: Option<Layout>,
    /// Whether each worker has its own test file.
    pub own: bool,
    /// Engine with its options.
    pub engine: Option<EngineSpec>,
    /// How missing targets are created as files.
    pub create: Option<Create>,
    /// Size in bytes of each created target; empty if all have the size in `create`.
    pub create_bytes: Vec<u64>,
    /// Cache mode.
    pub cache: Option<Cache>,
    /// Number of operations submitted per call, and number of completions waited for.
    pub batch: Option<Batch>,
    /// Arrivals per second of an open loop.
    pub rate: Option<f64>,
    /// Gaps between arrivals.
    pub arrivals: Option<Arrivals>,
    /// Limit of operations per second in a closed loop.
    pub limit_iops: Option<RateLimit>,
    /// Limit of bytes per second in a closed loop.
    pub limit_bandwidth: Option<RateLimit>,
    /// Pause before each burst.
    pub think: Option<Think>,
    /// Time from the beginning of one burst to the next.
    pub period: Option<Think>,
    /// Number of operations in a burst.
    pub burst: Option<u32>,
    /// Length of a burst in ns.
    pub burst_time: Option<u64>,
    /// Number of writes before each `fsync`.
    pub fsync: Option<Every>,
    /// Number of writes before each `fdatasync`.
    pub fdatasync: Option<Every>,
    /// Number of writes before each `sync_file_range`.
    pub sync_file_range: Option<Every>,
    /// Whether a sync call waits for the writes in flight, and later writes wait for the call.
    pub drain: bool,
    /// Share of the written data that a compressor can save, in percent.
    pub compress: Option<u8>,
    /// Share of written blocks that are copies of others, in percent.
    pub dedup: Option<u8>,
    /// Size in bytes of the set that copies repeat: the first bytes that a worker writes.
    pub dedup_set: Option<u64>,
    /// Whether a worker copies from the sets of all workers with this setting, not only from its own set.
    pub dedup_shared: bool,
    /// Whether writes contain only zeros.
    pub zeros: bool,
    /// Whether writes contain the bytes 0 to 255, repeated.
    pub counting: bool,
    /// File whose bytes the stream writes, repeated; at most its first 256 MiB.
    pub data: Option<String>,
    /// Number of passes over the region after which the stream ends.
    pub passes: Option<u32>,
    /// Number, from 1, of the stream in the previous phase whose blocks this stream reads and verifies. The stream then
    /// has no other settings.
    pub read_back: Option<u32>,
    /// The captured load that the stream replays.
    pub replay: Option<ReplaySpec>,
}

/// The request for a turn of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnSpec {
    /// Mean number of operations of a turn, at least 1; `None` if not given.
    pub operations: Option<Every>,
    /// Settings of the turn: only keys that [`is_turn_key`] allows.
    pub settings: StreamSpec,
}

/// An engine with its options: `io_uring:iopoll,sqpoll=1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSpec {
    /// The interface without options: `io_uring`, `libaio`, `sync`.
    pub name: String,
    /// The options after the colon; empty without a colon.
    pub options: EngineOptions,
}

/// The rule that ends measuring a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until the rates of the job's last rounds are steady.
    Steady,
}

/// Order and direction in one word, as in fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Sequential operations in mixed directions.
    Rw,
    /// Random reads.
    Randread,
    /// Random writes.
    Randwrite,
    /// Random operations in mixed directions.
    Randrw,
    /// Sequential trims.
    Trim,
    /// Random trims.
    Randtrim,
    /// Sequential trims, each followed by a write of the same bytes.
    Trimwrite,
    /// Random trims, each followed by a write of the same bytes.
    Randtrimwrite,
}

impl Rw {
    /// Returns the shares of directions that the word implies; `None` for a mix. A write after a trim is part of the
    /// trim.
    pub fn fixed_mix(self) -> Option<Mix> {
        match self {
            Self::Read | Self::Randread => Some(Mix::from_percents(100, 0)),
            Self::Write | Self::Randwrite => Some(Mix::from_percents(0, 0)),
            Self::Trim | Self::Randtrim | Self::Trimwrite | Self::Randtrimwrite => {
                Some(Mix::from_percents(0, 100))
            }
            Self::Rw | Self::Randrw => None,
        }
    }
}

/// Minimum and maximum speed factor of a replay.
const REPLAY_SPEEDS: RangeInclusive<f64> = 0.001..=1000.0;
/// Minimum alignment of a replay's offsets in bytes.
const SECTOR: u64 = 512;
/// Maximum divisor of a replay's offsets.
const MAX_REPLAY_DIVISOR: u64 = 1 << 20;
const MAX_REPLAY_ALIGN: u64 = 1 << 30;

/// The request for a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplaySpec {
    /// Path of a capture, or of another tool's trace; empty if only other replay keys were given.
    pub file: String,
    /// When operations are submitted; `None` if not given.
    pub pace: Option<ReplayPace>,
    /// Speed factor: all times of the capture are divided by it; `None` if not given.
    pub speed: Option<f64>,
    /// Changes to the captured operations.
    pub changes: Changes,
}

/// Parses the pace of a replay.
fn replay_pace(text: &str) -> Result<ReplayPace, String> {
    let known = ReplayPace::WORDS.iter().find(|(word, _)| *word == text);
    let wrong = || reject(text, "is not a pace; type dependent, timed or fast");
    known.map(|(_, pace)| *pace).ok_or_else(wrong)
}

/// Parses the speed of a replay.
fn replay_speed(text: &str) -> Result<f64, String> {
    let (least, most) = (REPLAY_SPEEDS.start(), REPLAY_SPEEDS.end());
    let wrong = || reject(text, &format!("is not a speed; type a number from {least} to {most}"));
    text.parse().ok().filter(|n| REPLAY_SPEEDS.contains(n)).ok_or_else(wrong)
}

/// Parses the alignment of a replay's offsets.
fn replay_align(text: &str) -> Result<u64, String> {
    let bytes = size(text, SECTOR, MAX_REPLAY_ALIGN)?;
    if bytes.is_power_of_two() {
        return Ok(bytes);
    }
    Err(reject(text, "is not a power of two; type one, such as 4k"))
}

/// Parses kinds separated by commas. Returns each kind once.
///
/// # Errors
/// The unknown word, and the known ones.
pub fn kinds(text: &str) -> Result<Vec<Kind>, String> {
    let kind = |word: &str| {
        let known = Kind::ALL.into_iter().find(|kind| kind.word() == word.trim());
        known.ok_or_else(|| reject(word, "is not a kind of operation; type some of read,write,trim,sync"))
    };
    let mut kinds: Vec<Kind> = text.split(',').map(kind).collect::<Result<_, _>>()?;
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

/// Whether a stream's key may also be in the table of a turn in a job file. These keys define the operations, and the
/// pauses and syncs between them. `false` for `ops`: in a stream it is a limit, in a turn it is the length of the turn.
pub fn is_turn_key(name: &str) -> bool {
    let region = ["clustered", "offset", "size"];
    let between = ["think", "period", "burst", "fsync", "fdatasync", "sync-file-range", "drain"];
    let access = check::ACCESS_KEYS.iter().filter(|key| **key != "start");
    access.chain(&region).chain(&between).any(|key| *key == name)
}

/// Options with their values, in typed order. Options without a value are left out.
pub type Options = Vec<(String, String)>;

/// Options that were typed in the language of another tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Typed {
    /// Options for all streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Options,
    /// Options of each stream, by phase and stream.
    pub phases: Vec<Vec<TypedStream>>,
    /// The complete profile that was typed in the language of DISKSPD; `None` for any other tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// How detailed the reported idle times of the CPUs are; `None` if they are not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// Whether workers count the operations in flight at each submission, for the tables of fio's formats.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_depth: bool,
}

/// How detailed the reported idle times of the CPUs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// The mean idle time of all CPUs.
    All,
    /// The mean, and each CPU.
    Each,
}

/// Options of one stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct TypedStream {
    /// Options of this stream only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Options,
    /// Number of the stream's group in fio's output (`groupid`).
    pub group: usize,
    /// Whether fio's formats report the stream and the previous one as one result, if both are in
    /// the same group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
    /// Whether all directions are reported together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Whether all directions are also reported together, in addition to each direction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub also_mixed: bool,
    /// Whether the job requests a sync after its last write. If this sync fails, the job fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub final_sync: bool,
    /// Whether fio's formats leave the stream's result out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Whether the stream's blocks are read into the page cache before the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pre_reads: bool,
    /// Path of the state file of the stream's verified writes; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Logs of the stream's operations in fio's formats; `None` without logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<Logs>,
    /// How fio's formats print the stream's result.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub layout: FioLayout,
}

/// Logs in fio's format: one file for each requested kind and each worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Logs {
    /// Each kind of log with the prefix of its file names.
    pub files: Vec<(LogKind, String)>,
    /// Interval between lines of the latency logs in ms; with 0, each operation has a line.
    pub latency_ms: u64,
    /// Interval between lines of the bandwidth log, in ms; with 0, each operation has a line.
    pub bandwidth_ms: u64,
    /// Interval between lines of the IOPS log in ms; with 0, each operation has a line.
    pub iops_ms: u64,
    /// Interval in ms between lines of the histogram log.
    pub histogram_ms: u64,
    /// How many times a histogram's columns are merged in pairs: 1 leaves half of the columns, 2 a quarter.
    pub coarseness: u32,
    /// Which latency a line shows if it covers several operations.
    pub value: LogValue,
    /// Whether a line of a log has the offset of the operation.
    pub offset: bool,
    /// Whether a line has the complete I/O priority, such as `0x2003`; otherwise it has 1 for real-time and 0 for any other class.
    pub priority: bool,
    /// Whether a line has the time of the submission.
    pub issue_time: bool,
    /// Whether times count from 1970 instead of from the start of the job.
    pub unix_epoch: bool,
    /// Whether all workers write to one file.
    pub together: bool,
    /// Paths in an iolog: the targets as typed.
    pub paths: Vec<String>,
}

enum_of_words! {
    /// Content of a log in fio's format.
    LogKind {
        /// Total latency; here the same as `clat`.
        Lat = "lat",
        /// Submission latency. The log is empty, because `clat` includes the submission here.
        Slat = "slat",
        /// Completion latency.
        Clat = "clat",
        /// Bandwidth.
        Bw = "bw",
        /// Operations per second.
        Iops = "iops",
        /// Histograms of latencies.
        ClatHist = "clat_hist",
        /// The operations, to be replayed.
        Iolog = "iolog",
    }
}

/// The latency that a log line shows if it covers several operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogValue {
    /// The mean of the latencies.
    #[default]
    Mean,
    /// The latency of the slowest operation.
    Largest,
    /// Both the mean and the largest value.
    Both,
}

impl Logs {
    /// Returns the length in ns of the intervals of all log files. Returns 0 if the lengths differ, or if a log needs each
    /// operation.
    pub fn interval_ns(&self) -> u64 {
        let each = |(kind, _): &(LogKind, String)| match kind {
            LogKind::Lat | LogKind::Slat | LogKind::Clat => self.latency_ms,
            LogKind::Bw => self.bandwidth_ms,
            LogKind::Iops => self.iops_ms,
            LogKind::ClatHist | LogKind::Iolog => 0,
        };
        let mut all = self.files.iter().map(each);
        let first = all.next().unwrap_or(0);
        if all.all(|ms| ms == first) { first.saturating_mul(1_000_000) } else { 0 }
    }
}

/// Typed options of one result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypedResult {
    /// Options that were typed for all streams.
    pub defaults: Options,
    /// Options of the result's stream.
    pub stream: TypedStream,
    /// The complete profile that was typed in the language of DISKSPD; `None` for any other tool.
    pub profile: Option<Profile>,
    /// How detailed the reported idle times of the CPUs are; `None` if they are not requested.
    pub idle: Option<Idle>,
}

impl Typed {
    /// Returns the typed options of a result; `None` if none were typed for its stream.
    pub fn result(&self, phase: usize, stream: usize) -> Option<TypedResult> {
        let stream = self.phases.get(phase)?.get(stream)?.clone();
        let (defaults, profile) = (self.defaults.clone(), self.profile.clone());
        Some(TypedResult { defaults, stream, profile, idle: self.idle })
    }
}

/// Percentiles that fio prints by default.
const RANKS: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// Number of decimals of the default percentiles.
const RANK_DECIMALS: usize = 2;

/// How fio prints the result of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of fio")]
pub struct FioLayout {
    /// Text of the option `description`; empty without one.
    pub description: String,
    /// Whether completion latencies have percentiles (`clat_percentiles`).
    pub clat_percentiles: bool,
    /// Whether total latencies have percentiles (`lat_percentiles`).
    pub lat_percentiles: bool,
    /// Ranks of the percentiles in percent, ascending (`percentile_list`).
    pub ranks: Vec<f64>,
    /// Number of decimals of a rank in fio's text output.
    pub rank_decimals: usize,
    /// Whether decimal units come first, and binary units follow in parentheses (`kb_base=1000`).
    pub decimal_first: bool,
    /// Whether rates are in bits per second (`unit_base=1`).
    pub bits: bool,
}

impl Default for FioLayout {
    fn default() -> Self {
        Self {
            description: String::new(),
            clat_percentiles: true,
            lat_percentiles: false,
            ranks: RANKS.to_vec(),
            rank_decimals: RANK_DECIMALS,
            decimal_first: false,
            bits: false,
        }
    }
}

#[test]
fn replay_keys_are_parsed() {
    let mut stream = StreamSpec::default();
    let parse = |stream: &mut StreamSpec, name: &str, text: &str| {
        keys::find(name).map_or(Ok(()), |key| key.parse_into(stream, text))
    };
    for (name, text) in [
        ("replay", "x.log"),
        ("pace", "fast"),
        ("speed", "0.5"),
        ("replay-scale", "4"),
        ("replay-align", "4k"),
        ("replay-skip", "trim,write,trim"),
    ] {
        parse(&mut stream, name, text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let refused = parse(&mut StreamSpec::default(), name, "\u{e9}:");
        assert!(
            refused.is_err_and(|e| e.contains("; type")) || text == "x.log",
            "{text}: only a file name may be any text"
        );
    }
    let changes = Changes { divide: 4, align_bytes: 4096, skip: vec![Kind::Write, Kind::Trim] };
    let pace = Some(ReplayPace::Fast);
    assert_eq!(stream.replay, Some(ReplaySpec { file: "x.log".into(), pace, speed: Some(0.5), changes }));
    assert!(parse(&mut stream, "replay-align", "5000").is_err_and(|e| e.contains("power of two")));
    assert!(parse(&mut stream, "speed", "0").is_err() && parse(&mut stream, "replay-scale", "0").is_err());
}

#[test]
fn turn_keys_are_stream_keys() {
    use keys::{KEYS, Set};
    let of_turns: Vec<&keys::Key> = KEYS.iter().filter(|key| is_turn_key(key.name)).collect();
    assert_eq!(of_turns.len(), 24, "every name in `is_turn_key` is a key");
    for key in of_turns {
        assert!(matches!(key.set, Set::Stream(_)), "{}", key.name);
    }
}
