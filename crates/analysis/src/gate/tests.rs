//! Tests of conditions on forged records: the words, missing numbers, and invalid results.

use super::*;
use crate::fixture::Fixture;
use crate::{Judging, exit_code, judge};
use model::finding::CheckId;
use model::report::Report;

/// The report of an honest record with these conditions.
fn judged(fixture: &Fixture, conditions: &str, accept: &[CheckId]) -> Report {
    let mut record = fixture.record();
    record.header.plan.fail_if = model::spec::pace::conditions(conditions).unwrap();
    judge(&record, &Judging { accept: accept.to_vec(), ..Judging::default() })
}

fn word(report: &Report) -> Option<AnswerWord> {
    report.answer.as_ref().map(|a| a.word)
}

fn eight() -> Fixture {
    Fixture { runs: 8, ..Fixture::honest() }
}

#[test]
fn bounds_within_the_limit_pass_beyond_it_fail_and_around_it_are_inconclusive() {
    let p99 = judged(&eight(), "p99>10s", &[]).gates[0].value.unwrap();
    for (limit, expected, code) in [(p99 * 1.5, AnswerWord::Pass, 0), (p99 / 1.5, AnswerWord::Fail, 1)] {
        let report = judged(&eight(), &format!("p99>{}ns", limit as u64), &[]);
        assert_eq!((word(&report), exit_code(&report)), (Some(expected), code), "{:?}", report.answer);
        assert!(report.gates[0].bounds.is_some() && report.gates[0].runs == 8);
    }
    let report = judged(&eight(), "iops<1", &[]);
    assert_eq!(word(&report), Some(AnswerWord::Pass));
    let report = judged(&eight(), "iops<1,mb/s<100000", &[]);
    assert_eq!(
        (word(&report), exit_code(&report)),
        (Some(AnswerWord::Fail), 1),
        "one that is broken decides"
    );
    assert_eq!(report.gates.len(), 2);
    assert_eq!(judged(&eight(), "read.p50>1h", &[]).gates[0].number, "read p50");
}

#[test]
fn missing_numbers_never_pass() {
    let few = Fixture { runs: 5, ..Fixture::honest() };
    let report = judged(&few, "p99>1h", &[]);
    assert_eq!((word(&report), exit_code(&report)), (Some(AnswerWord::Inconclusive), 4));
    assert!(report.gates[0].sentence.contains("--runs 8"), "{}", report.gates[0].sentence);
    let thin = Fixture { runs: 8, ops: 500, ..Fixture::honest() };
    let report = judged(&thin, "p99>1h", &[]);
    assert_eq!(word(&report), Some(AnswerWord::Inconclusive));
    assert!(report.gates[0].sentence.contains("--time") && report.gates[0].value.is_none());
    for unknown in ["other: p99>1h", "sync.p99>1h"] {
        assert_eq!(word(&judged(&eight(), unknown, &[])), Some(AnswerWord::Inconclusive), "{unknown}");
    }
    let void = Fixture { hole_share: 1.0, ..eight() };
    let report = judged(&void, "p99>1h", &[]);
    assert_eq!((word(&report), exit_code(&report)), (Some(AnswerWord::Invalid), 1));
    assert!(report.gates[0].sentence.contains("--accept A04"), "{}", report.gates[0].sentence);
}

#[test]
fn a_slow_device_fails_with_fewer_operations_than_its_percentile_takes() {
    let thin = Fixture { runs: 8, ops: 500, ..Fixture::honest() };
    let report = judged(&thin, "p99>1ns", &[]);
    assert_eq!((word(&report), report.gates[0].value), (Some(AnswerWord::Fail), None));
    assert!(
        report.gates[0].sentence.contains("100 % of the reads took longer"),
        "{}",
        report.gates[0].sentence
    );
}

#[test]
fn the_page_cache_passes_only_if_the_finding_is_accepted() {
    let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..eight() };
    let report = judged(&cached, "p99>1h", &[]);
    assert_eq!((word(&report), exit_code(&report)), (Some(AnswerWord::Invalid), 1));
    assert!(report.gates[0].sentence.contains("--accept A01"), "{}", report.gates[0].sentence);
    let accepted = judged(&cached, "p99>1h", &[CheckId::A01]);
    assert_eq!((word(&accepted), exit_code(&accepted)), (Some(AnswerWord::Pass), 0));
    let slow = judged(&cached, "p99>1ns", &[]);
    assert_eq!(word(&slow), Some(AnswerWord::Fail), "slow all the same");
}

#[test]
fn near_the_limit_the_needed_runs_are_reported() {
    let values = [9.0e6, 10.0e6, 11.0e6, 9.5e6, 10.5e6, 9.2e6, 10.9e6, 10.1e6];
    let over_runs = |values: &[f64], limit| super::over_runs(values, limit, SURE);
    let seen = over_runs(&values, 10.2e6).unwrap();
    assert!(seen.bounds[0] < 10.2e6 && seen.bounds[1] > 10.2e6);
    assert!(seen.runs_needed.is_some_and(|runs| (20..1_000).contains(&runs)), "{:?}", seen.runs_needed);
    assert!(over_runs(&values, seen.value).is_some_and(|s| s.runs_needed.is_none()));
    // t(7 degrees, one side 95 %) = 1.894579.
    let logs: Vec<f64> = values.iter().map(|v: &f64| v.ln()).collect();
    let (mean, half) = mean_and_half(&logs, SURE).unwrap();
    let deviation = (logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / 7.0).sqrt();
    assert!((half - 1.894_579 * deviation / 8_f64.sqrt()).abs() < 1e-6);
    assert_eq!(over_runs(&[1.0, 0.0, 2.0], 1.0).map(|s| s.value), None);
}

#[test]
fn a_forged_condition_never_panics() {
    for percentile in ["", "100", "x"] {
        let mut record = eight().record();
        let limit = Limit::Latency { kind: Some(Kind::Read), percentile: percentile.into(), at_most_ns: 0 };
        record.header.plan.fail_if = vec![Condition { result: None, limit }];
        assert_ne!(word(&judge(&record, &Judging::default())), Some(AnswerWord::Pass), "{percentile}");
    }
}

#[cfg(test)]
mod simulation;
