//! A replay beside its original: what came of carrying a captured load out again.
//!
//! For: figures of both, and in words where they differ and why. Not for: what was meant ([`crate::job::Replay`]), nor what was counted while
//! it ran ([`crate::record::Replayed`]).

use crate::job::Kind;
use crate::record::Replayed;
use serde::{Deserialize, Serialize};

/// A replay beside its original.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayComparison {
    /// The capture, as it was typed.
    pub capture: String,
    /// When requests were submitted: `dependent`, `timed` or `fast`.
    pub pace: String,
    /// What the times of the capture were divided by.
    pub speed: f64,
    /// Where latencies and depth of the replay are seen: `driver`, where its capture saw them, or `program`, whose system calls and wake-ups
    /// they have in them, as in reports that do not say.
    #[serde(default = "by_program")]
    pub seen_at: String,
    /// Figures of both. Of several runs the replay's is the mean, its latencies are those of all together.
    pub figures: Vec<Compared>,
    /// What kept it from following its capture, over all runs; `None` where that was not counted.
    pub counted: Option<Replayed>,
    /// Where latencies are seen, where both differ, and why, in sentences.
    pub differs: Vec<String>,
}

fn by_program() -> String {
    "program".into()
}

/// A figure of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// Which: `elapsed`, `operations`, `IOPS`, `MB/s`, `depth`, `read share`, `read size`, `read p50`, `read p99` ...
    pub name: String,
    /// `ns`, `bytes`, `share`, or empty of plain numbers.
    pub unit: String,
    /// Of the capture, at its own speed; `None` where it is not known.
    pub original: Option<f64>,
    /// Of the replay; `None` where it is not known, or withheld.
    pub replay: Option<f64>,
    /// By how much the replay is more, as a share of the original; `None` where either is not known.
    pub change: Option<f64>,
}

impl Compared {
    /// Both beside each other.
    pub fn from_figures(name: &str, unit: &str, original: Option<f64>, replay: Option<f64>) -> Self {
        let change = original.zip(replay).filter(|(original, _)| *original > 0.0);
        let change = change.map(|(original, replay)| replay / original - 1.0);
        Self { name: name.into(), unit: unit.into(), original, replay, change }
    }
}

/// When captured requests are submitted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplayPace {
    /// Each as long after the last of its task that had completed as it was then.
    #[default]
    Dependent,
    /// At the times of the capture, whatever the target does: an open loop.
    Timed,
    /// As soon as there is room.
    Fast,
}

impl ReplayPace {
    /// All of them with their words.
    pub const ALL: [(&'static str, Self); 3] =
        [("dependent", Self::Dependent), ("timed", Self::Timed), ("fast", Self::Fast)];

    /// The word of the flag `--pace`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Dependent => "dependent",
            Self::Timed => "timed",
            Self::Fast => "fast",
        }
    }
}

/// A captured load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replay {
    /// The capture file, as text that leads to it.
    pub file: String,
    /// When its requests are submitted.
    pub pace: ReplayPace,
    /// What the times of the capture are divided by.
    pub speed: f64,
    /// What is changed of its operations.
    #[serde(default, skip_serializing_if = "Changes::is_none")]
    pub changes: Changes,
    /// Whether the bytes that it touched are moved together, since the target is smaller than what they were captured on.
    pub dense: bool,
    /// Whether its device was asked to make single writes stable (FUA), for which the target is opened a second time with `O_DSYNC`.
    pub stable_writes: bool,
    /// Largest read or write in bytes.
    pub largest_bytes: u32,
    /// What it was like.
    pub original: Original,
}

/// What is changed of captured operations before they are carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// What offsets are divided by, in whole sectors of 512 bytes; 0 leaves them.
    pub divide: u64,
    /// Multiple in bytes, a power of two, that offsets are rounded down to and sizes of requests up; 0 leaves them. Operations of programs keep
    /// their sizes.
    pub align_bytes: u64,
    /// Kinds that are left out.
    pub skip: Vec<Kind>,
}

impl Changes {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A captured load in figures: those of its requests that are replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Original {
    /// The device that it was captured on, or the trace of another tool.
    pub device: String,
    /// `complete`, `incomplete` or `unknown`, as `fathom show` says of the capture.
    pub completeness: String,
    /// Why the file could not be read to its end; `None` where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// From the first issue to the last completion, in ns.
    pub elapsed_ns: u64,
    /// Mean number in flight over that time; `None` where no completion is known.
    pub depth_mean: Option<f64>,
    /// Most in flight.
    pub depth_max: u32,
    /// Tasks that are kept apart.
    pub tasks: u32,
    /// Distinct bytes that were read or written, in whole blocks of 4 KiB.
    pub footprint_bytes: u64,
    /// First byte behind all that was touched.
    pub end_bytes: u64,
    /// Bytes that all offsets and sizes of reads and writes are multiples of.
    pub align_bytes: u32,
    /// Share of reads and writes that begin where the last of their direction ended, in percent.
    pub sequential_percent: f64,
    /// What it does, each with its figures.
    pub kinds: Vec<OriginalKind>,
    /// Requests that have no counterpart here: commands to the device, operations on zones.
    pub left_out: u64,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OriginalKind {
    /// Which.
    pub kind: Kind,
    /// How many.
    pub operations: u64,
    /// Sum of their sizes.
    pub bytes: u64,
    /// Smallest and largest, in bytes.
    pub sizes: [u64; 2],
    /// Median latency in ns from issue to completion; `None` where fewer than ten lie beyond.
    pub p50_ns: Option<u64>,
    /// 99th percentile in ns; `None` where fewer than ten lie beyond.
    pub p99_ns: Option<u64>,
}

impl Original {
    /// Operations of all kinds.
    pub fn operations(&self) -> u64 {
        self.kinds.iter().map(|k| k.operations).sum()
    }

    /// Those of a kind, where there are any.
    pub fn for_kind(&self, kind: Kind) -> Option<&OriginalKind> {
        self.kinds.iter().find(|k| k.kind == kind)
    }

    /// How many of a kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.for_kind(kind).map_or(0, |k| k.operations)
    }
}

impl Replay {
    /// The capture's name without its folders: `db.capture`.
    pub fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// What it is called: `replay of db.capture, dependent`, `replay of db.capture, timed, speed 2`.
    pub fn describe(&self) -> String {
        let speed = if (self.speed - 1.0).abs() < f64::EPSILON {
            String::new()
        } else {
            format!(", speed {}", self.speed)
        };
        format!("replay of {}, {}{speed}", self.file_name(), self.pace.word())
    }

    /// How long it should take in ns by the capture, at its speed; `None` where it is as fast as it can be.
    pub fn expected_ns(&self) -> Option<u64> {
        (self.pace != ReplayPace::Fast).then_some((self.original.elapsed_ns as f64 / self.speed) as u64)
    }
}

/// The version of the JSON.
pub const FORMAT: u32 = 1;

/// What came of running a fitted job beside its capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitCheck {
    /// Of this JSON: [`FORMAT`].
    pub format: u32,
    /// The capture as it was typed.
    pub capture: String,
    /// The job file as it was typed; `None` where it was fitted for this.
    pub job: Option<String>,
    /// What the job ran on, as it was typed.
    pub target: String,
    /// Whether all goals are met.
    pub word: Word,
    /// Whether all goals are met, in a sentence.
    pub sentence: String,
    /// Figures of both.
    pub figures: Vec<Figure>,
    /// What is to be known about them.
    pub notes: Vec<String>,
}

/// Whether all goals are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Word {
    /// All of them.
    #[serde(rename = "MET")]
    Met,
    /// At least one is not.
    #[serde(rename = "MISSED")]
    Missed,
    /// None is missed, and at least one could not be told.
    #[serde(rename = "CANNOT TELL")]
    CannotTell,
}

/// A figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// `per_s`, `bytes_per_s`, `ns`, `in_flight`, `ks`.
    pub unit: String,
    /// Of the capture; `None` where it is not known, and of a distance.
    pub original: Option<f64>,
    /// Of the job.
    pub fit: Option<f64>,
    /// How far they are apart: a share of the original, or a distance (Kolmogorov-Smirnov) from 0 to 1.
    pub difference: Option<f64>,
    /// How far they may be.
    pub goal: f64,
    /// Whether it is no further; `None` where that cannot be told.
    pub met: Option<bool>,
    /// Why it cannot.
    pub why: Option<String>,
}

impl Figure {
    /// Two values of which the second may differ by this share of the first.
    pub fn share(name: &str, unit: &str, [original, fit]: [Option<f64>; 2], goal: f64) -> Self {
        let difference = match (original, fit) {
            (Some(original), Some(fit)) if original > 0.0 => Some(fit / original - 1.0),
            (Some(_), Some(0.0)) => Some(0.0),
            _ => None,
        };
        let why = difference.is_none().then(|| match (original, fit) {
            (None, _) => "the capture does not say".to_owned(),
            (_, None) => "the job has too few".to_owned(),
            _ => "the capture has none".to_owned(),
        });
        let met = difference.map(|difference| difference.abs() <= goal);
        Self { name: name.into(), unit: unit.into(), original, fit, difference, goal, met, why }
    }

    /// A distance of two distributions.
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
    /// The answer of some figures, as a word and as a sentence.
    pub fn answer(figures: &[Figure]) -> (Word, String) {
        let names = |of: Option<bool>| -> Vec<&str> {
            figures.iter().filter(|figure| figure.met == of).map(|figure| figure.name.as_str()).collect()
        };
        let (missed, unknown) = (names(Some(false)), names(None));
        let untold = if unknown.is_empty() {
            String::new()
        } else {
            format!("; cannot be told: {}", unknown.join(", "))
        };
        let met = names(Some(true)).len();
        if missed.is_empty() {
            let word = if unknown.is_empty() && met > 0 { Word::Met } else { Word::CannotTell };
            return (word, format!("{met} of {} goals are met{untold}", figures.len()));
        }
        let sentence =
            format!("{met} of {} goals are met, missed: {}{untold}", figures.len(), missed.join(", "));
        (Word::Missed, sentence)
    }
}

impl Word {
    /// As it is shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Met => "MET",
            Self::Missed => "MISSED",
            Self::CannotTell => "CANNOT TELL",
        }
    }
}

#[test]
fn a_report_that_does_not_say_where_latencies_were_seen_is_read() {
    let old = r#"{"capture":"x","pace":"timed","speed":1.0,"figures":[],"counted":null,"differs":[]}"#;
    let read: Option<ReplayComparison> = serde_json::from_str(old).ok();
    assert_eq!(read.map(|replay| replay.seen_at).as_deref(), Some("program"));
}

#[test]
fn a_goal_that_cannot_be_told_is_not_met() {
    let near = Figure::share("rate", "per_s", [Some(100.0), Some(101.0)], 0.02);
    let far = Figure::share("depth", "in_flight", [Some(2.0), Some(1.0)], 0.2);
    let blind = Figure::share("read p50", "ns", [None, Some(1.0)], 0.1);
    let none = Figure::share("flushes", "per_s", [Some(0.0), Some(0.0)], 0.05);
    assert_eq!([near.met, far.met, blind.met, none.met], [Some(true), Some(false), None, Some(true)]);
    assert_eq!(Figure::share("flushes", "per_s", [Some(0.0), Some(3.0)], 0.05).met, None);
    let told = |figures: &[Figure]| FitCheck::answer(figures).0;
    assert_eq!(told(&[near.clone(), none]), Word::Met);
    assert_eq!(told(&[near.clone(), blind.clone()]), Word::CannotTell);
    assert_eq!(
        FitCheck::answer(&[near, far, blind]).1,
        "1 of 3 goals are met, missed: depth; cannot be told: read p50"
    );
    assert_eq!(told(&[]), Word::CannotTell);
    assert_eq!(Figure::distance("offsets", Err("a file".into()), 0.03).met, None);
}
