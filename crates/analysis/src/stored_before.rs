//! Decides before the first run whether the targets hold anything to measure.
//!
//! Holes (A04) and zeros (A05) are known as soon as the targets are prepared. If they would invalidate every result, measuring
//! takes the user's time for numbers that are withheld. So both checks are asked of a record that has no run yet. A target that
//! another stream writes first is left to the checks after the run.

use crate::case::{self, Case};
use crate::checks::{Answer, Answers, Check, Detail};
use crate::{checks, findings, studies};
use model::check_id::CheckId;
use model::finding::Severity;
use model::job::Phase;
use model::record::Record;

/// The checks that need no run, in the order of the catalogue.
const NEED_NO_RUN: [CheckId; 2] = [CheckId::A04, CheckId::A05];

/// What is known before the first run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownBefore {
    /// Every result is invalid. Why, with what to type.
    All(String),
    /// Some results are invalid. Which and why, with what to type.
    Some(String),
}

/// Returns which results are known to be invalid; `None` if no result is. `record` ends before its first run, and `accept` has the
/// findings that the user accepts.
pub fn known_before(record: &Record, accept: &[CheckId]) -> Option<KnownBefore> {
    let mut cases = case::cases(record);
    cases.retain(|case| !studies::is_refused(record, case));
    let invalid: Vec<(&Case, &Check, Detail)> =
        cases.iter().filter_map(|case| invalid_by(record, case, accept)).collect();
    let (case, check, found) = invalid.first()?;
    let names: Vec<String> = invalid.iter().map(|(case, ..)| case.name.clone()).collect();
    let id = check.id;
    let what = format!("{id} {} invalidates {} before the first run", check.name, findings::about(&names));
    let why = format!("{}: {}", targets(case), found.sentence);
    let fix = found.cure.as_deref().unwrap_or(check.page.fix);
    Some(if invalid.len() == cases.len() {
        KnownBefore::All(format!(
            "{what}, so nothing was measured. {why} {fix} To measure all the same, type --accept {id}."
        ))
    } else {
        KnownBefore::Some(format!("{what}. {why} Type --accept {id} to see the number all the same."))
    })
}

/// The check that invalidates a case before its first run, and its finding.
fn invalid_by<'c, 'r>(
    record: &Record,
    case: &'c Case<'r>,
    accept: &[CheckId],
) -> Option<(&'c Case<'r>, &'static Check, Detail)> {
    if is_written_first(record, case) {
        return None;
    }
    let mut answers = Answers::new();
    for check in checks::all().filter(|check| NEED_NO_RUN.contains(&check.id)) {
        match check.ask(case, &answers) {
            Ok(Answer::Finding(found)) if found.severity == Severity::Void && !accept.contains(&check.id) => {
                return Some((case, check, found));
            }
            answer => answers.insert(check.id, answer),
        };
    }
    None
}

/// The paths of the targets of a stream, of many the first.
fn targets(case: &Case) -> String {
    let all = &case.record.header.plan.targets;
    let mut paths = case.stream.targets.iter().filter_map(|at| Some(all.get(*at)?.path.as_str()));
    let first = paths.next().unwrap_or("the target").to_owned();
    match paths.count() {
        0 => first,
        1 => format!("{first} and 1 more"),
        more => format!("{first} and {more} more"),
    }
}

/// Whether a stream of another phase writes to a target of the case, so that what it holds now is not what will be read.
fn is_written_first(record: &Record, case: &Case) -> bool {
    let writes = |phase: &Phase| {
        let shares = |targets: &[usize]| targets.iter().any(|target| case.stream.targets.contains(target));
        phase.streams.iter().any(|stream| stream.access.writes() && shares(&stream.targets))
    };
    let jobs = record.header.plan.jobs.iter().enumerate();
    let mut phases =
        jobs.flat_map(|(job, of)| of.phases.iter().enumerate().map(move |(at, phase)| ((job, at), phase)));
    phases.any(|(at, phase)| at != (case.at, case.phase) && writes(phase))
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::evidence::{Moment, Snapshot};

/// A record that ends before its first run, with the targets as `fixture` has them.
#[cfg(test)]
fn prepared(fixture: &Fixture, change: impl FnOnce(&mut Snapshot)) -> Record {
    let mut record = fixture.record();
    let start = record.runs[0].evidence.iter().find(|s| s.moment == Moment::Start).cloned();
    record.runs.clear();
    let snapshot = record.evidence.iter_mut().find(|s| s.moment == Moment::AfterPrepare);
    let (snapshot, start) = snapshot.zip(start).unwrap();
    for (prepared, start) in snapshot.targets.iter_mut().zip(start.targets) {
        prepared.extents = start.extents;
    }
    change(snapshot);
    record
}

#[test]
fn holes_and_zeros_are_known_before_the_first_run_unless_they_are_accepted_or_written_first() {
    let why = |record: &Record, accept: &[CheckId]| match known_before(record, accept) {
        Some(KnownBefore::All(why)) => Some(why),
        Some(KnownBefore::Some(why)) => panic!("{why}"),
        None => None,
    };
    let holes = |share| prepared(&Fixture { hole_share: share, ..Fixture::honest() }, |_| ());
    assert_eq!(why(&holes(0.0), &[]), None);
    assert_eq!(why(&holes(0.0005), &[]), None, "one block of many");
    for share in [0.01, 1.0] {
        let said = why(&holes(share), &[CheckId::A05]).unwrap();
        for words in ["A04 HOLES_READ", "nothing was measured", "--accept A04", "returns zeros"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert_eq!(why(&holes(share), &[CheckId::A04]), None);
    }
    let zeros = prepared(&Fixture::honest(), |s| {
        let probe = s.targets[0].probe.as_mut().unwrap().as_mut().unwrap();
        probe.zero_blocks = probe.first_ns.len() as u64;
    });
    assert!(why(&zeros, &[CheckId::A04]).is_some_and(|said| said.contains("--accept A05")));
    assert_eq!(why(&zeros, &[CheckId::A05]), None);
    let unknown = prepared(&Fixture { hole_share: 1.0, no_fiemap: true, ..Fixture::honest() }, |_| ());
    assert_eq!(why(&unknown, &[]), None, "not known is no reason");
    assert_eq!(why(&prepared(&Fixture { hole_share: 1.0, ..Fixture::honest_write() }, |_| ()), &[]), None);
    // Another phase, or another job, writes the same target.
    let mut written = holes(1.0);
    let writer = Fixture::honest_write().record().header.plan.jobs[0].clone();
    written.header.plan.jobs.push(writer.clone());
    assert_eq!(why(&written, &[]), None);
    let mut phases = holes(1.0);
    phases.header.plan.jobs[0].phases.insert(0, writer.phases[0].clone());
    assert_eq!(why(&phases, &[]), None);
    phases.header.plan.jobs[0].phases[0].streams[0].targets = vec![7];
    assert!(
        matches!(known_before(&phases, &[]), Some(KnownBefore::Some(_))),
        "it writes to another target, which has a number"
    );
}

#[test]
fn a_session_that_ended_before_its_first_run_is_invalid_and_says_why() {
    let mut record = prepared(&Fixture { hole_share: 1.0, ..Fixture::honest() }, |_| ());
    let Some(KnownBefore::All(why)) = known_before(&record, &[]) else { panic!("not known") };
    record.end.as_mut().unwrap().ending = model::record::RunEnding::NotMeasured(why.clone());
    record.header.plan.fail_if = model::spec::gate::conditions("iops<1").unwrap();
    for accept in [&[][..], &[CheckId::A04]] {
        let report =
            crate::judge(&record, &crate::Judging { accept: accept.to_vec(), ..crate::Judging::default() });
        assert_eq!((report.verdict, &report.verdict_reason), (model::report::Verdict::Invalid, &why));
        assert_eq!(report.answer.as_ref().map(|a| a.word), Some(model::report::AnswerWord::Invalid));
        assert_eq!((report.headline.value, crate::exit_code(&report)), (None, 1));
    }
}
