//! Conditions of `--fail-if`: from text to what a result has to reach.
//!
//! For: `[RESULT: ][KIND.]NUMBER<LIMIT`, several of them with commas between. Not for: whether there is such a result, which the plan
//! knows, nor for deciding one.

use super::check::Problem;
use super::limits::{FEWEST_GATED_RUNS, MAX_TIME_NS};
use super::number::{decimal, rate, shown, time_limit};
use super::{JobSpec, Until};
use crate::gate::{Condition, Limit};
use crate::job::Kind;

/// Percentiles that a condition can be about: those of every report.
const PERCENTILES: [&str; 6] = ["50", "90", "95", "99", "99.9", "99.99"];
const FORM: &str = "type one such as p99>10ms, sync.p99>10ms, iops<20000 or mb/s<90";

/// Conditions with commas between.
///
/// # Errors
/// What was wrong and what to type.
pub fn conditions(text: &str) -> Result<Vec<Condition>, String> {
    let mut all = Vec::new();
    let mut name = String::new();
    for part in text.split(',') {
        // The name of a result may have commas of its own.
        name += part;
        if part.contains(['<', '>']) {
            all.push(condition(&std::mem::take(&mut name))?);
        } else {
            name.push(',');
        }
    }
    if name.is_empty() { Ok(all) } else { Err(format!("{} is no condition; {FORM}", shown(text))) }
}

fn condition(text: &str) -> Result<Condition, String> {
    let none = || format!("{} is no condition; {FORM}", shown(text));
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
        "mb/s" => Limit::MbPerS { at_least: megabytes(right)? },
        "time" => Limit::Time { at_most_ns: time_limit(right, 1, MAX_TIME_NS)? },
        _ => latency(&number, right).ok_or_else(none)??,
    };
    let (wrong, why) = match limit {
        Limit::Latency { .. } => (!above, "a latency fails above its limit; type > in place of <"),
        Limit::Time { .. } => (!above, "a time fails above its limit; type > in place of <"),
        Limit::Iops { .. } | Limit::MbPerS { .. } => {
            (above, "a rate fails below its limit; type < in place of >")
        }
    };
    if wrong { Err(format!("{}: {why}", shown(text))) } else { Ok(Condition { result, limit }) }
}

/// `None` where it is no percentile of any kind.
fn latency(number: &str, limit: &str) -> Option<Result<Limit, String>> {
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
fn megabytes(text: &str) -> Result<f64, String> {
    decimal(text).filter(|n| *n > 0.0).ok_or_else(|| {
        format!(
            "{} is no rate in MB/s; type millions of bytes per second above 0, such as mb/s<90",
            shown(text)
        )
    })
}

impl JobSpec {
    /// Whether a condition is about a percentile.
    pub fn gates_a_percentile(&self) -> bool {
        self.fail_if.iter().flatten().any(|c| c.limit.is_of_percentile())
    }

    /// What is said about how often, and is too seldom for a condition.
    pub(super) fn check_gated(&self) -> Option<Problem> {
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
fn names_of_results_may_have_commas_and_colons() {
    let said = conditions("4K random read, depth 32: p99>1ms,a: b: iops<5k").unwrap_or_default();
    let names: Vec<Option<&str>> = said.iter().map(|c| c.result.as_deref()).collect();
    assert_eq!(names, [Some("4K random read, depth 32"), Some("a: b")]);
    assert_eq!(said[1].limit, Limit::Iops { at_least: 5000.0 });
}

#[test]
fn what_is_no_condition_says_what_to_type() {
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
fn a_percentile_takes_eight_runs() {
    let fail_if = || conditions("p99>1ms").ok();
    let few = JobSpec { fail_if: fail_if(), runs: Some(7), ..JobSpec::default() };
    assert!(few.check_gated().is_some_and(|p| p.in_flags().contains("--runs 8")));
    assert_eq!(JobSpec { runs: Some(8), ..few.clone() }.check_gated(), None);
    let rate = conditions("iops<5").ok();
    assert_eq!(JobSpec { fail_if: rate, ..few }.check_gated(), None);
    let steady = JobSpec { fail_if: fail_if(), until: Some(Until::Steady), ..JobSpec::default() };
    assert!(steady.check_gated().is_some());
}
