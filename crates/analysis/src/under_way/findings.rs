//! Findings about one run that has ended.
//!
//! For: what is certain about it whatever later runs come to: the checks of caches, shapes, flushes and the machine. Not for: those
//! of group E, which ask what several runs say together, nor for notes.

use crate::findings::{ask, merge};
use crate::{case, studies};
use model::finding::{Finding, Outcome, Severity};
use model::record::Record;

/// Group of the checks that need all runs.
const OF_ALL_RUNS: char = 'E';

/// The findings about the one run of a record, worst first; nothing of what its study shows on purpose.
pub fn of_run(record: &Record) -> Vec<Finding> {
    let Some(job) = record.runs.first().map(|r| r.start.job) else { return Vec::new() };
    let measured = case::of_job(record, job).into_iter().filter(|case| !case.runs.is_empty());
    let answered: Vec<_> = measured.map(ask).collect();
    let acts = |f: &Finding| {
        f.outcome == Outcome::Finding
            && f.severity.is_some_and(|s| s < Severity::Note)
            && f.id.group() != OF_ALL_RUNS
            && !studies::is_expected(record, &answered, f)
    };
    merge(&answered, &[]).into_iter().filter(acts).collect()
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::finding::CheckId;

#[test]
fn one_run_tells_what_more_runs_cannot_take_back() {
    let ids = |fixture: &Fixture| -> Vec<CheckId> {
        let mut record = Fixture { runs: 1, ..fixture.clone() }.record();
        record.end = None;
        of_run(&record).iter().map(|f| f.id).collect()
    };
    assert_eq!(ids(&Fixture::honest()), []);
    let holes = Fixture { hole_share: 1.0, ..Fixture::honest() };
    assert!(ids(&holes).contains(&CheckId::A04), "{:?}", ids(&holes));
    assert_eq!(of_run(&Fixture { runs: 0, ..holes }.record()), []);
}
