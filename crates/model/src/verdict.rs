//! Verdicts and answers: the verdict on a result, its limiter, the answer to a command's question, and the gates of
//! `--fail-if`.
//!
//! These types are small and used by records, reports, comparisons and fleets, so they depend on no other part of a
//! report.

use crate::job::Kind;
use crate::units::{show_ns, show_rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer to the question that a command asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Answer"))]
#[serde(rename = "Answer")]
pub struct ReportAnswer {
    /// The word that scripts compare: `FASTEST`, `TIED`, `MET`, `MISSED`, `KNEE`, `SCALES`, `NO DIFFERENCE SEEN`,
    /// `CANNOT TELL`; for conditions `PASS`, `FAIL`, `INCONCLUSIVE` or `INVALID`.
    pub word: AnswerWord,
    /// The answer with its numbers, or how to get an answer.
    pub sentence: String,
}

/// Whether `INCONCLUSIVE` gives the exit code of a passed or of a failed condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum CountsAs {
    /// Exit code 0.
    Pass,
    /// Exit code 1.
    Fail,
}

impl CountsAs {
    /// Returns the remark that follows the word `INCONCLUSIVE`.
    pub fn remark(self) -> &'static str {
        match self {
            Self::Pass => " (counts as PASS)",
            Self::Fail => " (counts as FAIL)",
        }
    }
}

enum_of_words! {
    /// Answers to the questions that commands ask, and the outcomes of conditions.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    AnswerWord {
        /// One candidate is the fastest.
        Fastest = "FASTEST",
        /// The best candidate cannot be distinguished from others.
        Tied = "TIED",
        /// A load meets the latency target.
        Met = "MET",
        /// No offered load meets the latency target.
        Missed = "MISSED",
        /// Above some number of hosts, more hosts add more latency than rate.
        Knee = "KNEE",
        /// No knee was reached: more hosts still add more rate than latency.
        Scales = "SCALES",
        /// The runs do not show that a target is faster. The sentence of the answer states the largest
        /// possible difference.
        NoDifferenceSeen = "NO DIFFERENCE SEEN",
        /// The measurements do not answer the question.
        CannotTell = "CANNOT TELL",
        /// Every number is within the limit of its condition, with 95 % confidence.
        Pass = "PASS",
        /// A number is beyond the limit of its condition, with 95 % confidence.
        Fail = "FAIL",
        /// The runs do not decide whether a number is within its limit: there are too few, or they
        /// differ too much.
        Inconclusive = "INCONCLUSIVE",
        /// A finding that the user did not accept invalidates or relabels the number that a condition is about.
        Invalid = "INVALID",
    }
}

enum_of_words! {
    /// The verdict on a report or result.
    #[derive(PartialOrd, Ord)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    Verdict {
        /// No finding changes the meaning of a number.
        Valid = "VALID",
        /// A finding relabels or biases a number, or fathom could not check what was measured.
        Suspect = "SUSPECT",
        /// A finding invalidates a number, or there is no number.
        Invalid = "INVALID",
    }
}

impl Verdict {
    /// Returns the verdict on a result of an old file that stored no verdict.
    pub(crate) fn unknown() -> Self {
        Self::Suspect
    }
}

/// The program that made a report, and the version of its JSON contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Producer {
    /// Version of the JSON contract.
    pub format: u32,
    /// Version of fathom that judged the results.
    pub version: String,
}

/// The resource that kept a result from being higher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limiter {
    /// Short name, such as `device`, `page cache`, `CPU`, `tool` or `unknown`.
    pub name: String,
    /// The limiter in one sentence, with the evidence.
    pub sentence: String,
    /// The numbers that support the sentence.
    pub evidence: BTreeMap<String, f64>,
}

impl Limiter {
    /// Returns the name for people: `busy CPUs` in place of `run queue`.
    pub fn shown_name(&self) -> &str {
        if self.name == "run queue" { "busy CPUs" } else { &self.name }
    }
}

/// The limit on how much slower the second side of a comparison may be than the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowdownLimit {
    /// The largest allowed slowdown, such as 0.05 for 5 %.
    #[serde(rename = "by")]
    pub share: f64,
    /// Whether the limit applies to every number of a result instead of only to its headline.
    #[serde(default, rename = "all")]
    pub all_numbers: bool,
}

impl SlowdownLimit {
    /// Returns the value of the option `--fail-if-slower` and the option that follows it: `5%
    /// --fail-on all`.
    pub fn to_flags(&self) -> String {
        let on = if self.all_numbers { " --fail-on all" } else { "" };
        format!("{}%{on}", (self.share * 1e6).round() / 1e4)
    }
}

/// A condition of `--fail-if`. The measurement fails if the number is beyond the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Name of the result; `None` for every result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The limited number and its limit.
    pub limit: Limit,
}

/// A limit on one number of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Upper limit of a latency percentile.
    Latency {
        /// Kind of operation; `None` for reads, writes and trims, each separately.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<Kind>,
        /// The percentile as named in reports: `99.9`.
        percentile: String,
        /// The largest allowed latency in ns.
        at_most_ns: u64,
    },
    /// Lower limit of the rate of operations.
    Iops {
        /// The smallest allowed rate, in operations per second.
        at_least: f64,
    },
    /// Upper limit of the wall time of a command.
    Time {
        /// The largest allowed time in ns.
        at_most_ns: u64,
    },
    /// Lower limit of the throughput.
    MbPerS {
        /// The smallest allowed throughput, in 10^6 bytes per second.
        at_least: f64,
    },
}

impl Limit {
    /// Returns whether the limit is on a percentile, which needs more runs than a rate.
    pub fn is_on_percentile(&self) -> bool {
        matches!(self, Self::Latency { .. })
    }

    /// Returns the name of the limited number, such as `sync p99`.
    pub fn metric_name(&self) -> String {
        match self {
            Self::Latency { kind: Some(kind), percentile, .. } => format!("{} p{percentile}", kind.word()),
            Self::Latency { kind: None, percentile, .. } => format!("p{percentile}"),
            Self::Time { .. } => "time".into(),
            Self::Iops { .. } => "IOPS".into(),
            Self::MbPerS { .. } => "MB/s".into(),
        }
    }

    /// Formats a value of the limited number with its unit.
    pub fn show(&self, value: f64) -> String {
        match self {
            Self::Latency { .. } | Self::Time { .. } => show_ns(value),
            Self::Iops { .. } => format!("{} IOPS", show_rate(value)),
            Self::MbPerS { .. } => format!("{} MB/s", show_rate(value)),
        }
    }

    /// Returns the limit, in ns, operations per second or 10^6 bytes per second.
    pub fn value(&self) -> f64 {
        match self {
            Self::Latency { at_most_ns, .. } | Self::Time { at_most_ns } => *at_most_ns as f64,
            Self::Iops { at_least } | Self::MbPerS { at_least } => *at_least,
        }
    }
}

/// The outcome of a condition for one number of one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// The condition as typed.
    pub condition: String,
    /// Name of the result; the typed name if no result has it.
    pub result: String,
    /// The limited number: `sync p99`, `IOPS`.
    #[serde(rename = "number")]
    pub metric_name: String,
    /// `ns`, `IOPS` or `MB/s`.
    pub unit: String,
    /// The limit of the number, in `unit`.
    pub limit: f64,
    /// The measured value, as a geometric mean of the runs; `None` with too few operations.
    pub value: Option<f64>,
    /// Bounds of the value, each with 95 % confidence. With `--settle`, a condition may be decided twice: after the first
    /// runs, and after more runs. The confidence then holds for both decisions together. `None` with too few runs or
    /// operations.
    pub bounds: Option<[f64; 2]>,
    /// Number of runs in the value.
    pub runs: u32,
    /// Total number of runs that would decide the condition with a probability of 80 %; `None` if the condition is
    /// decided, or if a thousand runs are not enough.
    pub runs_needed: Option<u32>,
    /// `PASS`, `FAIL`, `INCONCLUSIVE` or `INVALID`.
    pub word: AnswerWord,
    /// The reason as a sentence.
    pub sentence: String,
}

impl Gate {
    /// Returns whether the condition is undecided because the value is close to the limit. More
    /// runs would then decide it.
    pub fn is_undecided_near_limit(&self) -> bool {
        let between = self.bounds.is_some_and(|[low, high]| low <= self.limit && self.limit <= high);
        self.word == AnswerWord::Inconclusive && between
    }
}

impl Condition {
    /// Returns the condition as typed after `--fail-if`: `sync.p99>10ms`.
    pub fn to_flag(&self) -> String {
        let result = self.result.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let limit = match &self.limit {
            Limit::Latency { kind, percentile, at_most_ns } => {
                let kind = kind.map_or_else(String::new, |kind| format!("{}.", kind.word()));
                format!("{kind}p{percentile}>{}", format_duration(*at_most_ns))
            }
            Limit::Time { at_most_ns } => format!("time>{}", format_duration(*at_most_ns)),
            Limit::Iops { at_least } => format!("iops<{at_least}"),
            Limit::MbPerS { at_least } => format!("mb/s<{at_least}"),
        };
        result + &limit
    }
}

/// Formats a duration in the largest unit that represents it exactly.
fn format_duration(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let exact = units.into_iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    exact.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

#[test]
fn allowed_slowdowns_are_formatted_as_typed() {
    let flags = |share: f64, all_numbers| SlowdownLimit { share, all_numbers }.to_flags();
    assert_eq!([flags(0.05, false), flags(0.025, true)], ["5%", "2.5% --fail-on all"]);
    assert_eq!(flags(0.07, false), "7%", "no digits from rounding");
}
