//! Rerun: a session that measured the jobs of an earlier one beside its own, taken apart.
//!
//! For: two records out of one, so that each side is judged as any session, and what the sides come to. Not for: how two
//! reports are compared (`compare`).

use crate::compare::{Options, Runs, compare};
use model::finding::CheckId;
use model::plan::{self, Plan, Strategy};
use model::record::{Record, Run};
use model::report::{Report, Rerun};
#[cfg(test)]
use model::study::Studied;
use model::study::Study;

/// What the sides come to against each other. Whoever names the earlier session knows what he changed since, so other work is
/// no reason not to compare; that of then and now is the same. What comes and goes meets both sides of what was measured in turns.
pub(crate) fn against(
    earlier: &plan::Rerun,
    plan: &Plan,
    own: &Report,
    (again, accept): (Report, &[CheckId]),
) -> Rerun {
    let asked = |accept_differences| Options {
        accept_differences,
        accept: accept.to_vec(),
        version: own.fathom.version.clone(),
        ..Options::default()
    };
    let settles = matches!(plan.strategy, Strategy::Settle { .. });
    let beside = Options {
        fail_if_slower: plan.fail_if_slower,
        runs: if settles { Runs::Settling } else { Runs::InTurns },
        ..asked(true)
    };
    Rerun {
        session: earlier.session.clone(),
        beside: compare(&again, own, &beside),
        since: compare(&earlier.then, &again, &asked(false)),
        again: Box::new(again),
    }
}

/// The own jobs of a record, and those of the earlier session; `None` where it has only its own.
pub(crate) fn sides(record: &Record) -> Option<(Record, Record)> {
    let plan = &record.header.plan;
    let against = plan.against.as_ref()?;
    let from = against.from.min(plan.jobs.len());
    let own = part(record, 0..from, plan.headline);
    let mut again = part(record, from..plan.jobs.len(), against.headline);
    again.header.plan.title = format!("{}, again", against.then.title);
    // The rows of a card are jobs of this session.
    again.header.plan.study = Study::Jobs;
    // So are the conditions.
    again.header.plan.fail_if.clear();
    Some((own, again))
}

/// What a record has of some of its jobs.
fn part(record: &Record, jobs: std::ops::Range<usize>, headline: usize) -> Record {
    let mut header = record.header.clone();
    header.plan.jobs = header.plan.jobs.get(jobs.clone()).unwrap_or_default().to_vec();
    header.plan.headline = headline.saturating_sub(jobs.start);
    header.plan.against = None;
    header.self_test.ceilings.retain(|c| jobs.contains(&c.job));
    for ceiling in &mut header.self_test.ceilings {
        ceiling.job -= jobs.start;
    }
    let of_these = |run: &&Run| jobs.contains(&run.start.job);
    let part_of = |runs: &[Run]| {
        let mut runs: Vec<Run> = runs.iter().filter(of_these).cloned().collect();
        for run in &mut runs {
            run.start.job -= jobs.start;
        }
        runs
    };
    Record {
        header,
        evidence: record.evidence.clone(),
        preconditioned: record.preconditioned.clone(),
        runs: part_of(&record.runs),
        aside: part_of(&record.aside),
        fleet: record.fleet.clone(),
        end: record.end.clone(),
    }
}

#[cfg(test)]
use crate::fixture::{Fixture, together};
#[cfg(test)]
use crate::{Judging, judge};

/// A session of one job, and the same of an earlier one with another depth behind it.
#[cfg(test)]
pub(crate) fn fixture() -> Record {
    let before = Fixture { name: "before".into(), ops: 8_000, ..Fixture::honest() };
    let then = judge(&before.record(), &Judging::default());
    let mut record = together(&[Fixture::honest(), before]);
    record.header.plan.against =
        Some(model::plan::Rerun { session: "1".into(), from: 1, headline: 1, then: Box::new(then) });
    record
}

#[test]
fn each_side_is_a_record_of_its_own() {
    let record = fixture();
    let (own, again) = sides(&record).unwrap();
    for (side, name, iops) in [(&own, "RND4K Q32T1 read", 10_000.0), (&again, "before", 8_000.0)] {
        let report = judge(side, &Judging::default());
        assert_eq!((report.results.len(), report.results[0].name.as_str()), (1, name));
        assert_eq!(report.results[0].runs.len(), 5);
        assert!((report.headline.value.unwrap() - iops).abs() < 1.0, "{:?}", report.headline);
        let tested: Vec<usize> = side.header.self_test.ceilings.iter().map(|c| c.job).collect();
        assert_eq!(tested, [0], "the self test is that of the job");
    }
    assert!(sides(&own).is_none() && sides(&again).is_none());
}

#[test]
fn a_card_is_of_the_own_side() {
    let mut record = fixture();
    let rows = Vec::new();
    let (tool, look) = ("ATTO".to_owned(), model::profile::Look::Bars);
    let layout = model::profile::ToolLayout { tool, look, rows, differs: Vec::new() };
    record.header.plan.study = Study::Profile(layout);
    let report = judge(&record, &Judging::default());
    assert!(matches!(report.study, Studied::Profile(_)));
    assert_eq!(report.against.unwrap().again.study, Studied::Jobs);
}

#[test]
fn the_sides_are_compared_now_and_the_earlier_one_with_then() {
    use model::comparison::Answer;
    let report = judge(&fixture(), &Judging::default());
    assert_eq!(report.results.len(), 1);
    let against = report.against.unwrap();
    assert_eq!((against.beside.answer, against.since.answer), (Answer::Faster, Answer::Same));
    let ratio = against.beside.headline().unwrap().metrics[0].ratio;
    assert!((ratio - 1.25).abs() < 1e-6, "{ratio}");
}

#[test]
fn a_forged_border_beyond_the_jobs_is_no_panic() {
    for (from, headline) in [(0, 0), (9, 9), (usize::MAX, 0)] {
        let mut record = fixture();
        let against = record.header.plan.against.as_mut().unwrap();
        (against.from, against.headline) = (from, headline);
        judge(&record, &Judging::default());
    }
}
