//! Quick looks: what was measured of one, and what was left out since its time was over.
//!
//! For: the first words of such a report. Not for: what may be said from one short run; who would say more asks whether it is one.

use model::record::{Record, RunEnding};
use model::report::Quick;

/// What a record says of itself; `None` where it is none of a quick look.
pub(crate) fn quick(record: &Record) -> Option<Quick> {
    let plan = &record.header.plan;
    plan.quick_ns?;
    let windows = plan.jobs.iter().flat_map(|j| &j.phases).map(|p| p.time_ns);
    let left_out = plan.jobs.iter().enumerate().filter(|(at, _)| is_left_out(record, *at));
    Some(Quick {
        run_ns: windows.max().unwrap_or(0),
        not_measured: left_out.map(|(_, job)| job.name.clone()).collect(),
    })
}

/// Whether a job was never begun in a quick look that came to its end: its time was over. What anything else ended has results
/// without a number, as always.
pub(crate) fn is_left_out(record: &Record, job: usize) -> bool {
    let complete = record.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete);
    record.header.plan.quick_ns.is_some() && complete && record.runs.iter().all(|r| r.start.job != job)
}

#[cfg(test)]
use crate::fixture::{Fixture, together};
#[cfg(test)]
use crate::{Judging, judge};

#[cfg(test)]
fn quick_record() -> Record {
    let other = Fixture { name: "other".into(), runs: 1, ..Fixture::honest() };
    let mut record = together(&[Fixture { runs: 1, ..Fixture::honest() }, other]);
    record.header.plan.quick_ns = Some(9_000_000_000);
    record
}

#[test]
fn it_says_what_it_is_and_nothing_that_needs_an_interval() {
    let report = judge(&quick_record(), &Judging::default());
    assert_eq!(report.quick.as_ref().map(|q| q.not_measured.len()), Some(0));
    assert_eq!((report.results.len(), report.headline.interval), (2, None));
    assert!(report.deductions.is_empty());
    assert!(report.results.iter().all(|r| r.limiter.name == "not judged"), "{:?}", report.limiter);
    let mut usual = quick_record();
    usual.header.plan.quick_ns = None;
    let usual = judge(&usual, &Judging::default());
    assert_eq!((usual.quick, usual.limiter.name.as_str()), (None, "device"));
}

#[test]
fn what_a_fact_limits_is_told_all_the_same() {
    let cached = Fixture { runs: 1, delivered: 0.0, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    let mut record = cached.record();
    record.header.plan.quick_ns = Some(9_000_000_000);
    assert_eq!(judge(&record, &Judging::default()).limiter.name, "page cache");
}

#[test]
fn a_row_that_was_never_begun_is_named_and_one_that_was_cut_off_has_no_number() {
    let mut record = quick_record();
    record.runs.retain(|r| r.start.job == 0);
    let report = judge(&record, &Judging::default());
    assert_eq!(report.quick.map(|q| q.not_measured), Some(vec!["other".to_owned()]));
    assert_eq!(report.results.len(), 1);
    record.end = None;
    let cut = judge(&record, &Judging::default());
    assert_eq!((cut.quick.map(|q| q.not_measured.len()), cut.results.len()), (Some(0), 2));
}
