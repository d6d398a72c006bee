//! Gates: the conditions of `--fail-if`, their parser, and their outcome in a report.
//!
//! A condition is `[RESULT: ][KIND.]NUMBER<LIMIT`; several are separated by commas. [`crate::comparison::Gate`] is
//! the gate between two sides of a comparison.

use crate::job::Kind;
use crate::report::AnswerWord;
use crate::spec::Problem;
use crate::spec::number::{FEWEST_GATED_RUNS, MAX_TIME_NS, decimal, quoted_excerpt, rate, time_limit};
use crate::spec::{JobSpec, Until};
use crate::units::{show_ns, show_rate};
use serde::{Deserialize, Serialize};

/// How much slower the other side of a comparison may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slower {
    /// As a share: 0.05.
    pub by: f64,
    /// Whether every number counts, instead of the headline alone.
    #[serde(default)]
    pub all: bool,
}

impl Slower {
    /// As typed: `5% --fail-on all`.
    pub fn to_flags(&self) -> String {
        let on = if self.all { " --fail-on all" } else { "" };
        format!("{}%{on}", (self.by * 1e6).round() / 1e4)
    }
}

/// A condition under which a measurement fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Name of the result; `None` for every result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The limit.
    pub limit: Limit,
}

/// A limit on one number of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The latency of this rank is at most so long.
    Latency {
        /// Kind of operation; `None` for all reads, writes and trims separately.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<Kind>,
        /// The percentile as named in reports: `99.9`.
        percentile: String,
        /// The largest allowed latency in ns.
        at_most_ns: u64,
    },
    /// Lower limit of operations per second.
    Iops {
        /// Operations per second.
        at_least: f64,
    },
    /// The wall time of a command is at most this.
    Time {
        /// The largest allowed time in ns.
        at_most_ns: u64,
    },
    /// Lower limit of bytes per second.
    MbPerS {
        /// 10^6 bytes per second.
        at_least: f64,
    },
}

impl Limit {
    /// Whether it is about a percentile, which needs more runs than a rate.
    pub fn is_of_percentile(&self) -> bool {
        matches!(self, Self::Latency { .. })
    }

    /// The limited number in words: `sync p99`.
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
    /// Whether it is undecided because the number is too near to its limit, so that more runs would decide it.
    pub fn is_near(&self) -> bool {
        let between = self.bounds.is_some_and(|[low, high]| low <= self.limit && self.limit <= high);
        self.word == AnswerWord::Inconclusive && between
    }
}

impl Condition {
    /// As typed: `sync.p99>10ms`.
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

/// A duration in the largest unit that represents it exactly.
fn format_duration(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let exact = units.into_iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    exact.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

/// The outcome of a condition for one number of one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// The condition as typed.
    pub condition: String,
    /// Name of the result; the typed name if there is no such result.
    pub result: String,
    /// The limited number: `sync p99`, `IOPS`.
    pub number: String,
    /// `ns`, `IOPS` or `MB/s`.
    pub unit: String,
    /// The limit.
    pub limit: f64,
    /// The measured value: the mean of the runs on a logarithmic scale; `None` if there are too few operations.
    pub value: Option<f64>,
    /// Bounds of the value, each with 95 % confidence; with `--settle`, over both decisions together. `None` with
    /// too few runs or operations.
    pub bounds: Option<[f64; 2]>,
    /// Number of runs behind it.
    pub runs: u32,
    /// Runs in all that would decide it four times of five, if it is too near to the limit to decide and a thousand
    /// would.
    pub runs_needed: Option<u32>,
    /// `PASS`, `FAIL`, `INCONCLUSIVE` or `INVALID`.
    pub word: AnswerWord,
    /// Why, in a sentence.
    pub sentence: String,
}

/// Percentiles that a condition may name: those of every report.
const PERCENTILES: [&str; 6] = ["50", "90", "95", "99", "99.9", "99.99"];
const FORM: &str = "type one such as p99>10ms, sync.p99>10ms, iops<20000 or mb/s<90";

/// Parses conditions separated by commas.
///
/// # Errors
/// What is wrong and what to type.
pub fn conditions(text: &str) -> Result<Vec<Condition>, String> {
    let mut all = Vec::new();
    let mut name = String::new();
    for part in text.split(',') {
        // The name of a result may contain commas.
        name += part;
        if part.contains(['<', '>']) {
            all.push(parse_condition(&std::mem::take(&mut name))?);
        } else {
            name.push(',');
        }
    }
    if name.is_empty() { Ok(all) } else { Err(format!("{} is no condition; {FORM}", quoted_excerpt(text))) }
}

fn parse_condition(text: &str) -> Result<Condition, String> {
    let none = || format!("{} is no condition; {FORM}", quoted_excerpt(text));
    let at = text.rfind(['<', '>']).ok_or_else(none)?;
    let (left, above, right) = (&text[..at], text[at..].starts_with('>'), &text[at + 1..]);
    let (result, number) = match left.rsplit_once(':') {
        Some((name, number)) => (Some(name.trim().to_owned()), number.trim()),
        None => (None, left.trim()),
    };
    if result.as_ref().is_some_and(String::is_empty) {
        return Err(none());
    }
    let number = number.to_ascii_lowercase();
    let limit = match number.as_str() {
        "iops" => Limit::Iops { at_least: rate(right)? },
        "mb/s" => Limit::MbPerS { at_least: parse_mb_per_s(right)? },
        "time" => Limit::Time { at_most_ns: time_limit(right, 1, MAX_TIME_NS)? },
        _ => parse_latency_limit(&number, right).ok_or_else(none)??,
    };
    let (wrong, why) = match limit {
        Limit::Latency { .. } => (!above, "a latency fails above its limit; type > in place of <"),
        Limit::Time { .. } => (!above, "a time fails above its limit; type > in place of <"),
        Limit::Iops { .. } | Limit::MbPerS { .. } => {
            (above, "a rate fails below its limit; type < in place of >")
        }
    };
    if wrong { Err(format!("{}: {why}", quoted_excerpt(text))) } else { Ok(Condition { result, limit }) }
}

/// `None` if `number` is not a percentile.
fn parse_latency_limit(number: &str, limit: &str) -> Option<Result<Limit, String>> {
    let (kind, rank) = match number.split_once('.') {
        Some((word, rank)) if rank.starts_with('p') => {
            (Some(Kind::ALL.into_iter().find(|kind| kind.word() == word)?), rank)
        }
        _ => (None, number),
    };
    let rank = rank.strip_prefix('p')?;
    let percentile = PERCENTILES.into_iter().find(|known| *known == rank)?.to_owned();
    Some(time_limit(limit, 1, MAX_TIME_NS).map(|at_most_ns| Limit::Latency { kind, percentile, at_most_ns }))
}

/// 10^6 bytes per second, above 0.
fn parse_mb_per_s(text: &str) -> Result<f64, String> {
    decimal(text).filter(|n| *n > 0.0).ok_or_else(|| {
        format!(
            "{} is no rate in MB/s; type millions of bytes per second above 0, such as mb/s<90",
            quoted_excerpt(text)
        )
    })
}

impl JobSpec {
    /// Whether a condition is about a percentile.
    pub fn gates_a_percentile(&self) -> bool {
        self.fail_if.iter().flatten().any(|c| c.limit.is_of_percentile())
    }

    /// Checks how often the job is measured: too few runs for a condition are a problem.
    pub(crate) fn check_gated(&self) -> Option<Problem> {
        if !self.gates_a_percentile() {
            return None;
        }
        match (self.runs, self.until) {
            (Some(runs), _) if runs < FEWEST_GATED_RUNS => Some(Problem::new(
                &["runs", "fail-if"],
                format!(
                    "{{runs {runs}}} is too few for a percentile in {{fail-if}}; type {{runs {FEWEST_GATED_RUNS}}} or more, or leave it out"
                ),
            )),
            (_, Some(Until::Steady)) => Some(Problem::new(
                &["until", "fail-if"],
                format!(
                    "{{until steady}} counts five rounds, and a percentile in {{fail-if}} takes {FEWEST_GATED_RUNS} runs; type {{runs {FEWEST_GATED_RUNS}}} in its place"
                ),
            )),
            _ => None,
        }
    }
}

#[test]
fn allowed_slowdowns_are_formatted_as_typed() {
    let words = |by: f64, all| Slower { by, all }.to_flags();
    assert_eq!([words(0.05, false), words(0.025, true)], ["5%", "2.5% --fail-on all"]);
    assert_eq!(words(0.07, false), "7%", "no digits of the machine's");
}

#[test]
fn conditions_are_formatted_as_typed() {
    for typed in ["sync.p99>10ms", "a, b: p99.9>1500us", "iops<20000", "mb/s<90.5", "read.p50>1s", "time>2s"]
    {
        let parsed = conditions(typed).unwrap_or_default();
        assert_eq!(parsed.iter().map(Condition::to_flag).collect::<Vec<_>>(), [typed]);
    }
}

#[test]
fn result_names_may_contain_commas_and_colons() {
    let parsed = conditions("4K random read, depth 32: p99>1ms,a: b: iops<5k").unwrap_or_default();
    let names: Vec<Option<&str>> = parsed.iter().map(|c| c.result.as_deref()).collect();
    assert_eq!(names, [Some("4K random read, depth 32"), Some("a: b")]);
    assert_eq!(parsed[1].limit, Limit::Iops { at_least: 5000.0 });
}

#[test]
fn invalid_conditions_are_rejected_with_a_suggestion() {
    for bad in [
        "",
        "p99",
        "p99>",
        "p98>1ms",
        "p99<1ms",
        "iops>5",
        "iops<0",
        "iops<",
        "mb/s<-1",
        "mb/s<x",
        ": p99>1ms",
        "flush.p99>1ms",
        "p99>1ms,",
        "p99>1ms,x",
        ",",
        ">",
        "<5",
        "sync.>1ms",
        "mean>1ms",
        "p99>0",
        "p99>10",
        "sync.p99>1.5",
        "time>2",
    ] {
        assert!(conditions(bad).is_err_and(|e| e.contains("; type")), "{bad}: {:?}", conditions(bad));
    }
}

#[test]
fn percentile_conditions_need_eight_runs() {
    let fail_if = || conditions("p99>1ms").ok();
    let few = JobSpec { fail_if: fail_if(), runs: Some(7), ..JobSpec::default() };
    assert!(few.check_gated().is_some_and(|p| p.in_flags().contains("--runs 8")));
    assert_eq!(JobSpec { runs: Some(8), ..few.clone() }.check_gated(), None);
    let rate = conditions("iops<5").ok();
    assert_eq!(JobSpec { fail_if: rate, ..few }.check_gated(), None);
    let steady = JobSpec { fail_if: fail_if(), until: Some(Until::Steady), ..JobSpec::default() };
    assert!(steady.check_gated().is_some());
}
