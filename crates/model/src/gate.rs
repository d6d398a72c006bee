//! Gates: what a result has to reach, and what came of it.
//!
//! For: a condition as it was said with `--fail-if` or `--fail-if-slower`, kept in the plan, and the outcome of the former in a report. Not
//! for: reading one from text ([`crate::spec::gate`]), deciding it (crate `analysis`), nor the outcome between two sides
//! ([`crate::comparison::Gate`]).

use crate::answer::AnswerWord;
use crate::job::Kind;
use crate::units::{show_ns, show_rate};
use serde::{Deserialize, Serialize};

/// By how much the other side of a comparison may be slower.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slower {
    /// As a share: 0.05.
    pub by: f64,
    /// Whether every number counts, instead of the headline alone.
    #[serde(default)]
    pub all: bool,
}

impl Slower {
    /// As it is typed: `5% --fail-on all`.
    pub fn to_flags(&self) -> String {
        let on = if self.all { " --fail-on all" } else { "" };
        format!("{}%{on}", (self.by * 1e6).round() / 1e4)
    }
}

/// Under which condition a measurement fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Name of the result that it is about; `None` for every result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What it limits.
    pub limit: Limit,
}

/// A limit on one number of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The latency of this rank is at most so long.
    Latency {
        /// Operations that it is about; `None` for all reads, writes and trims that there are, each by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<Kind>,
        /// The rank as reports name it: `99.9`.
        percentile: String,
        /// The longest that meets it, in ns.
        at_most_ns: u64,
    },
    /// Operations per second are at least so many.
    Iops {
        /// Operations per second.
        at_least: f64,
    },
    /// The wall time of a command is at most this.
    Time {
        /// The longest that meets it, in ns.
        at_most_ns: u64,
    },
    /// Bytes per second are at least so many.
    MbPerS {
        /// 10^6 bytes per second.
        at_least: f64,
    },
}

impl Limit {
    /// Whether it is about a percentile, which takes more runs than a rate.
    pub fn is_of_percentile(&self) -> bool {
        matches!(self, Self::Latency { .. })
    }

    /// The number that is limited, in words: `sync p99`.
    pub fn number(&self) -> String {
        match self {
            Self::Latency { kind: Some(kind), percentile, .. } => format!("{} p{percentile}", kind.word()),
            Self::Latency { kind: None, percentile, .. } => format!("p{percentile}"),
            Self::Time { .. } => "time".into(),
            Self::Iops { .. } => "IOPS".into(),
            Self::MbPerS { .. } => "MB/s".into(),
        }
    }

    /// A value of that number with its unit.
    pub fn show(&self, value: f64) -> String {
        match self {
            Self::Latency { .. } | Self::Time { .. } => show_ns(value),
            Self::Iops { .. } => format!("{} IOPS", show_rate(value)),
            Self::MbPerS { .. } => format!("{} MB/s", show_rate(value)),
        }
    }

    /// The limit itself, in ns, operations per second or 10^6 bytes per second.
    pub fn value(&self) -> f64 {
        match self {
            Self::Latency { at_most_ns, .. } | Self::Time { at_most_ns } => *at_most_ns as f64,
            Self::Iops { at_least } | Self::MbPerS { at_least } => *at_least,
        }
    }
}

impl Gate {
    /// Whether it cannot be told since the number is too near to its limit, so that more runs would tell.
    pub fn is_near(&self) -> bool {
        let between = self.bounds.is_some_and(|[low, high]| low <= self.limit && self.limit <= high);
        self.word == AnswerWord::Inconclusive && between
    }
}

impl Condition {
    /// As it is typed: `sync.p99>10ms`.
    pub fn to_flag(&self) -> String {
        let result = self.result.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let limit = match &self.limit {
            Limit::Latency { kind, percentile, at_most_ns } => {
                let kind = kind.map_or_else(String::new, |kind| format!("{}.", kind.word()));
                format!("{kind}p{percentile}>{}", typed(*at_most_ns))
            }
            Limit::Time { at_most_ns } => format!("time>{}", typed(*at_most_ns)),
            Limit::Iops { at_least } => format!("iops<{at_least}"),
            Limit::MbPerS { at_least } => format!("mb/s<{at_least}"),
        };
        result + &limit
    }
}

/// A duration in the largest unit that says it exactly.
fn typed(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let exact = units.into_iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    exact.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

/// What came of a condition at one number of one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// The condition as it is typed.
    pub condition: String,
    /// Name of the result; the name that was typed where there is no such result.
    pub result: String,
    /// The number that is limited: `sync p99`, `IOPS`.
    pub number: String,
    /// `ns`, `IOPS` or `MB/s`.
    pub unit: String,
    /// What it is compared with.
    pub limit: f64,
    /// What was measured: the mean of the runs on a logarithmic scale; `None` where there are too few operations to say.
    pub value: Option<f64>,
    /// Between these it lies: each bound holds with 95 % confidence, with `--settle` over both times that it is asked. `None` where there
    /// are too few runs or operations.
    pub bounds: Option<[f64; 2]>,
    /// Runs that it rests on.
    pub runs: u32,
    /// Runs in all that would settle it four times of five, where it is too near to the limit to tell and a thousand would.
    pub runs_needed: Option<u32>,
    /// `PASS`, `FAIL`, `INCONCLUSIVE` or `INVALID`.
    pub word: AnswerWord,
    /// Why, in a sentence.
    pub sentence: String,
}

#[test]
fn a_share_is_written_as_it_is_typed() {
    let words = |by: f64, all| Slower { by, all }.to_flags();
    assert_eq!([words(0.05, false), words(0.025, true)], ["5%", "2.5% --fail-on all"]);
    assert_eq!(words(0.07, false), "7%", "no digits of the machine's");
}

#[test]
fn a_condition_is_written_as_it_is_typed() {
    for typed in ["sync.p99>10ms", "a, b: p99.9>1500us", "iops<20000", "mb/s<90.5", "read.p50>1s", "time>2s"]
    {
        let said = crate::spec::gate::conditions(typed).unwrap_or_default();
        assert_eq!(said.iter().map(Condition::to_flag).collect::<Vec<_>>(), [typed]);
    }
}
