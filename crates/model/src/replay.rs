//! Replays: a captured load as a job, the comparison of its replay with the original, and the check of a fitted
//! job.

use crate::captured::RowUnit;
use crate::job::Kind;
use crate::verdict::AnswerWord;
use serde::{Deserialize, Serialize};

/// A replay compared with its original.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayComparison {
    /// The capture, as typed.
    pub capture: String,
    /// When requests were submitted: `dependent`, `timed` or `fast`.
    pub pace: String,
    /// Requested speed factor: 2 for twice as fast as the capture.
    pub speed: f64,
    /// Where the replay's latencies and depth are measured: `driver`, like its capture, or `program`, which
    /// includes system calls and wake-ups. Reports without this field mean `program`.
    #[serde(default = "by_program")]
    pub seen_at: String,
    /// Figures of the capture and the replay. With several runs, the replay's figures are means, and its latencies
    /// cover all runs.
    pub figures: Vec<Compared>,
    /// How closely the replay followed its capture: counts of late and omitted operations over all
    /// runs; `None` if they were not counted.
    pub counted: Option<Replayed>,
    /// Sentences about where latencies are measured, and how and why capture and replay differ.
    pub differs: Vec<String>,
}

fn by_program() -> String {
    "program".into()
}

/// One figure of the capture and of the replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// Name of the figure: `elapsed`, `operations`, `IOPS`, `MB/s`, `depth`, `read share`, `read size`, `read p50`,
    /// `read p99` ...
    pub name: String,
    /// `ns`, `bytes`, `share`, or empty for plain numbers.
    pub unit: String,
    /// Figure of the capture at its original speed; `None` if unknown.
    pub original: Option<f64>,
    /// Figure of the replay; `None` if unknown or withheld.
    pub replay: Option<f64>,
    /// The difference as a share of the original; `None` if a figure is unknown, or if the original is 0.
    pub change: Option<f64>,
}

impl Compared {
    /// Compares two figures.
    pub fn from_figures(name: &str, unit: &str, original: Option<f64>, replay: Option<f64>) -> Self {
        let change = original.zip(replay).filter(|(original, _)| *original > 0.0);
        let change = change.map(|(original, replay)| replay / original - 1.0);
        Self { name: name.into(), unit: unit.into(), original, replay, change }
    }
}

enum_of_words! {
    /// When the operations of a capture are submitted again.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    ReplayPace {
        /// Each operation follows the task's last completed operation after the same time as in the capture.
        #[default]
        Dependent = "dependent",
        /// At the times of the capture, independent of the target (open loop).
        Timed = "timed",
        /// As soon as there is room in the queue.
        Fast = "fast",
    }
}

/// A captured load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replay {
    /// Path of the capture file as text ([`crate::name::text`]).
    pub file: String,
    /// When the captured requests are submitted.
    pub pace: ReplayPace,
    /// Speed factor: all times of the capture are divided by it.
    pub speed: f64,
    /// Changes to the captured operations.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub changes: Changes,
    /// Whether the touched blocks are packed without gaps, because the target is smaller than the captured device.
    pub dense: bool,
    /// Whether some writes of the capture are stable when they complete (FUA). For these writes, the target is opened a
    /// second time with `O_DSYNC`.
    pub stable_writes: bool,
    /// Largest read or write in bytes.
    pub largest_bytes: u32,
    /// Figures of the capture.
    pub original: Original,
}

/// Changes to captured operations before they run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// Divisor of offsets, which remain multiples of 512 bytes; 0 leaves offsets unchanged.
    pub divide: u64,
    /// Alignment in bytes, a power of two. Offsets are rounded down to a multiple of it, and sizes of requests up.
    /// Operations of programs keep their sizes. 0 changes nothing.
    pub align_bytes: u64,
    /// Kinds of operations that are skipped.
    pub skip: Vec<Kind>,
}

/// Figures of the captured load that is replayed, as measured during the capture. They cover only
/// the requests that are replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Original {
    /// The captured device, or the trace of another tool.
    pub device: String,
    /// What one row of the capture describes; `requests` in sessions of earlier versions.
    #[serde(default)]
    pub unit: RowUnit,
    /// `complete`, `incomplete` or `unknown`, as in `fathom show`.
    pub completeness: String,
    /// Why the file could not be read to its end; `None` if it was read completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// Time from the first issue to the last completion, in ns.
    pub elapsed_ns: u64,
    /// Mean number of operations in flight from the first issue to the last completion; `None` if no completion is
    /// known.
    pub depth_mean: Option<f64>,
    /// Maximum number of operations in flight.
    pub depth_max: u32,
    /// Number of tasks that have their own lane.
    pub tasks: u32,
    /// Distinct bytes read or written, in whole blocks of 4 KiB.
    pub footprint_bytes: u64,
    /// End of the touched range in bytes.
    pub end_bytes: u64,
    /// Largest power of two, up to 1 MiB, that divides all offsets and sizes of reads and writes, in bytes.
    pub align_bytes: u32,
    /// Share of reads and writes that begin where the previous request of the same direction ended, in percent.
    pub sequential_percent: f64,
    /// Figures of each kind of operation.
    pub kinds: Vec<OriginalKind>,
    /// Number of requests that a replay cannot issue, such as commands to the device and operations on zones.
    pub left_out: u64,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OriginalKind {
    /// Kind of the requests: reads, writes, trims or syncs.
    pub kind: Kind,
    /// Number of operations.
    pub operations: u64,
    /// Sum of the sizes in bytes.
    pub bytes: u64,
    /// Smallest and largest size in bytes.
    pub sizes: [u64; 2],
    /// Median latency in ns from issue to completion; `None` if fewer than ten operations took longer.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the latency in ns; `None` if fewer than ten operations took longer.
    pub p99_ns: Option<u64>,
}

impl Original {
    /// Returns the number of operations of all kinds.
    pub fn operations(&self) -> u64 {
        self.kinds.iter().map(|k| k.operations).sum()
    }

    /// Returns the figures of a kind; `None` if the load has no operations of this kind.
    pub fn for_kind(&self, kind: Kind) -> Option<&OriginalKind> {
        self.kinds.iter().find(|k| k.kind == kind)
    }

    /// Returns the number of operations of a kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.for_kind(kind).map_or(0, |k| k.operations)
    }
}

impl Replay {
    /// Returns the capture's name without its folders: `db.capture`.
    pub fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// Describes the replay: `replay of db.capture, dependent`, `replay of db.capture, timed, speed 2`.
    pub fn describe(&self) -> String {
        let speed = if (self.speed - 1.0).abs() < f64::EPSILON {
            String::new()
        } else {
            format!(", speed {}", self.speed)
        };
        format!("replay of {}, {}{speed}", self.file_name(), self.pace.word())
    }

    /// Returns the expected duration in ns, from the capture and the speed; `None` if the replay runs as fast as
    /// possible.
    pub fn expected_ns(&self) -> Option<u64> {
        (self.pace != ReplayPace::Fast).then_some((self.original.elapsed_ns as f64 / self.speed) as u64)
    }
}

/// Version of the JSON of a [`FitCheck`].
pub const FORMAT: u32 = 1;

/// The result of running a fitted job, compared with its capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitCheck {
    /// Version of this JSON: [`FORMAT`].
    pub format: u32,
    /// The capture as typed.
    pub capture: String,
    /// The job file as typed; `None` if the job was fitted for this check.
    pub job: Option<String>,
    /// The target as typed.
    pub target: String,
    /// Whether all goals are met.
    pub word: AnswerWord,
    /// The answer as a sentence.
    pub sentence: String,
    /// Figures of the capture and the fitted job.
    pub figures: Vec<Figure>,
    /// Notes about the figures.
    pub notes: Vec<String>,
}

/// One figure of the capture and of the fitted job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Name of the figure: `operations`, `depth`.
    pub name: String,
    /// Unit of the figure: `per_s`, `bytes_per_s`, `ns`, `in_flight`, or `ks` for a distance
    /// between distributions (Kolmogorov and Smirnov).
    pub unit: String,
    /// Figure of the capture; `None` if unknown, or if this is a distance.
    pub original: Option<f64>,
    /// Figure of the fitted job; `None` if unknown, or if this is a distance.
    pub fit: Option<f64>,
    /// The difference: a share of the original, or a distance (Kolmogorov-Smirnov) from 0 to 1;
    /// `None` if it cannot be computed.
    pub difference: Option<f64>,
    /// The largest allowed difference.
    pub goal: f64,
    /// Whether the difference is within the goal; `None` if undecided.
    pub met: Option<bool>,
    /// Why `met` is undecided; `None` if it is decided.
    pub why: Option<String>,
}

impl Figure {
    /// Creates a figure of two values. `goal` is the allowed difference as a share of `original`.
    pub fn share(name: &str, unit: &str, [original, fit]: [Option<f64>; 2], goal: f64) -> Self {
        let difference = match (original, fit) {
            (Some(original), Some(fit)) if original > 0.0 => Some(fit / original - 1.0),
            (Some(_), Some(0.0)) => Some(0.0),
            _ => None,
        };
        let why = difference.is_none().then(|| match (original, fit) {
            (None, _) => "unknown in the capture".to_owned(),
            (_, None) => "unknown for the job".to_owned(),
            _ => "0 in the capture, so there is no percentage".to_owned(),
        });
        let met = difference.map(|difference| difference.abs() <= goal);
        Self { name: name.into(), unit: unit.into(), original, fit, difference, goal, met, why }
    }

    /// Creates the figure of a distance between two distributions.
    pub fn distance(name: &str, distance: Result<f64, String>, goal: f64) -> Self {
        let (difference, why) = match distance {
            Ok(distance) => (Some(distance), None),
            Err(why) => (None, Some(why)),
        };
        let met = difference.map(|difference| difference <= goal);
        Self { name: name.into(), unit: "ks".into(), original: None, fit: None, difference, goal, met, why }
    }
}

impl FitCheck {
    /// Returns the answer over all figures, as a word and as a sentence.
    pub fn answer(figures: &[Figure]) -> (AnswerWord, String) {
        let names = |met: Option<bool>| -> Vec<&str> {
            figures.iter().filter(|figure| figure.met == met).map(|figure| figure.name.as_str()).collect()
        };
        let (missed, unknown) = (names(Some(false)), names(None));
        let undecided =
            if unknown.is_empty() { String::new() } else { format!("; undecided: {}", unknown.join(", ")) };
        let met = names(Some(true)).len();
        if missed.is_empty() {
            let word = if unknown.is_empty() && met > 0 { AnswerWord::Met } else { AnswerWord::CannotTell };
            return (word, format!("{met} of {} goals met{undecided}", figures.len()));
        }
        let sentence =
            format!("{met} of {} goals met; missed: {}{undecided}", figures.len(), missed.join(", "));
        (AnswerWord::Missed, sentence)
    }
}

/// How closely a replay followed its capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replayed {
    /// Number of operations that were late because they were read from the capture after they were
    /// due.
    pub starved: u64,
    /// Longest delay in ns of an operation that was read from the capture too late.
    pub starved_ns: u64,
    /// Number of operations that were due while the queue was full.
    pub held_by_depth: u64,
    /// Number of operations that were late because the table of pending operations was full of earlier operations,
    /// which waited for others to complete.
    pub held_by_order: u64,
    /// Number of discards that were left out because they are completely outside of the range that reads and writes
    /// touch.
    #[serde(default)]
    pub outside: u64,
    /// Whether the whole capture was submitted.
    pub is_whole: bool,
}

#[test]
fn reports_without_seen_at_are_accepted() {
    let old = r#"{"capture":"x","pace":"timed","speed":1.0,"figures":[],"counted":null,"differs":[]}"#;
    let read: Option<ReplayComparison> = serde_json::from_str(old).ok();
    assert_eq!(read.map(|replay| replay.seen_at).as_deref(), Some("program"));
}

#[test]
fn an_undecided_goal_is_not_met() {
    let near = Figure::share("rate", "per_s", [Some(100.0), Some(101.0)], 0.02);
    let far = Figure::share("depth", "in_flight", [Some(2.0), Some(1.0)], 0.2);
    let blind = Figure::share("read p50", "ns", [None, Some(1.0)], 0.1);
    let none = Figure::share("flushes", "per_s", [Some(0.0), Some(0.0)], 0.05);
    assert_eq!([near.met, far.met, blind.met, none.met], [Some(true), Some(false), None, Some(true)]);
    assert_eq!(Figure::share("flushes", "per_s", [Some(0.0), Some(3.0)], 0.05).met, None);
    let answer = |figures: &[Figure]| FitCheck::answer(figures).0;
    assert_eq!(answer(&[near.clone(), none]), AnswerWord::Met);
    assert_eq!(answer(&[near.clone(), blind.clone()]), AnswerWord::CannotTell);
    assert_eq!(
        FitCheck::answer(&[near, far, blind]).1,
        "1 of 3 goals met; missed: depth; undecided: read p50"
    );
    assert_eq!(answer(&[]), AnswerWord::CannotTell);
    assert_eq!(Figure::distance("offsets", Err("a file".into()), 0.03).met, None);
}
