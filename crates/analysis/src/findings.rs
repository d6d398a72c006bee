//! Findings: asking every check about every case, and merging equal answers.
//!
//! For: the list of the report, worst first. Not for: the questions (the checks) nor the verdict.

use crate::case::Case;
use crate::checks::{Answer, Answers, Check, Detail, Evidence, Page, Rename};
use crate::{checks, fleet};
use model::Known;
use model::check_id::CheckId;
use model::finding::{Finding, Outcome, Severity};
use model::report::Measured;
use model::units::show_count;

/// A case with what every check said about it.
pub(crate) struct CaseAnswers<'a> {
    pub(crate) case: Case<'a>,
    pub(crate) answers: Vec<(&'static Check, Known<Answer>)>,
    /// Ids of the findings that the user accepts: these withhold no number.
    pub(crate) accept: Vec<CheckId>,
}

/// Asks all checks that apply.
pub(crate) fn ask(case: Case<'_>) -> CaseAnswers<'_> {
    // Without a run the verdict says so once; sixteen times "not checked" would bury it. A finding still counts.
    let measured = !case.runs.is_empty();
    let worth = |(_, a): &(&Check, Known<Answer>)| match a {
        Ok(Answer::Finding(_)) => true,
        Ok(Answer::DoesNotApply) => false,
        _ => measured,
    };
    let mut answers: Vec<_> = ask_all(&case).into_iter().filter(worth).collect();
    answers.extend(only_inferred(&case, &answers));
    let answers = fleet::answers(&case, answers);
    CaseAnswers { case, answers, accept: Vec::new() }
}

/// Asks every check once, each after those whose answers it is given; in the order of the catalogue.
pub(crate) fn ask_all(case: &Case) -> Vec<(&'static Check, Known<Answer>)> {
    let mut answers = Answers::new();
    let mut waiting: Vec<&Check> = checks::all().collect();
    loop {
        let ready = |c: &&Check| c.after().iter().all(|id| answers.contains_key(id));
        let (now, later): (Vec<&Check>, Vec<&Check>) = waiting.into_iter().partition(ready);
        if now.is_empty() {
            break;
        }
        for check in now {
            answers.insert(check.id, check.ask(case, &answers));
        }
        waiting = later;
    }
    checks::all().filter_map(|check| Some((check, answers.remove(&check.id)?))).collect()
}

/// Where our own I/O was not counted apart, what others did is inferred, and the exact share of it is not checked.
fn only_inferred(
    case: &Case,
    answers: &[(&'static Check, Known<Answer>)],
) -> Option<(&'static Check, Known<Answer>)> {
    let (foreign, _) = answers.iter().find(|(c, a)| c.id == CheckId::D01 && a.is_ok())?;
    let why = case.with_sharers().own().err()?;
    Some((
        *foreign,
        Err(format!(
            "what others did was inferred from what fathom issued; its exact share was not counted: {why}"
        )),
    ))
}

impl CaseAnswers<'_> {
    fn found(&self) -> impl Iterator<Item = (&'static Check, &Detail)> {
        self.answers
            .iter()
            .filter_map(|(c, a)| if let Ok(Answer::Finding(f)) = a { Some((*c, f)) } else { None })
    }

    /// Whether a finding that the user does not accept takes the number away.
    pub(crate) fn is_void(&self) -> bool {
        self.void_by().next().is_some()
    }

    /// Ids of the checks that take the number away; those that the user accepts do not.
    pub(crate) fn void_by(&self) -> impl Iterator<Item = CheckId> {
        let voids = self.found().filter(|(_, f)| f.severity == Severity::Void).map(|(c, _)| c.id);
        voids.filter(|id| !self.accept.contains(id))
    }

    /// Whether the number is what its plain name says.
    pub(crate) fn is_sound(&self) -> bool {
        !self.case.runs.is_empty() && self.found().all(|(_, f)| f.severity > Severity::Rename)
    }

    /// Parts of the name that were wrong.
    pub(crate) fn renames(&self) -> Vec<&Rename> {
        self.found().filter_map(|(_, f)| f.renames.as_ref()).collect()
    }

    /// What a check found, if it did.
    pub(crate) fn finding(&self, id: CheckId) -> Option<&Detail> {
        self.found().find(|(c, _)| c.id == id).map(|(_, f)| f)
    }
}

/// All answers as findings: equal ones once, findings before what was not checked before what holds, worst first.
pub(crate) fn merge(answered: &[CaseAnswers], accept: &[CheckId]) -> Vec<Finding> {
    let mut out: Vec<Merged> = Vec::new();
    for one in answered {
        for (check, answer) in &one.answers {
            let Some(new) = Merged::new(check, answer, &one.case.name) else { continue };
            match out.iter_mut().find(|m| m.says_the_same_as(&new)) {
                Some(same) => same.absorb(new),
                None => out.push(new),
            }
        }
    }
    let mut findings: Vec<Finding> = out.into_iter().map(Merged::close).collect();
    for finding in &mut findings {
        finding.accepted = finding.outcome == Outcome::Finding && accept.contains(&finding.id);
    }
    // Stable: answers of one check stay in the order of the jobs.
    findings.sort_by_key(|f| (f.outcome, f.severity, f.id));
    findings
}

/// An answer as a finding; `None` where the question makes no sense.
pub(crate) fn finding(
    id: CheckId,
    name: &str,
    page: &Page,
    answer: &Known<Answer>,
    about: Vec<String>,
) -> Option<Finding> {
    let (outcome, severity, sentence, cure, evidence) = match answer {
        Ok(Answer::DoesNotApply) => return None,
        Ok(Answer::Finding(f)) => {
            let cure = f.cure.clone().unwrap_or_else(|| page.fix.to_owned());
            (Outcome::Finding, Some(f.severity), f.sentence.clone(), cure, f.evidence.clone())
        }
        Ok(Answer::Holds(sentence, numbers)) => {
            (Outcome::Holds, None, (*sentence).to_owned(), String::new(), numbers.clone())
        }
        Err(why) => (Outcome::NotChecked, None, why.clone(), String::new(), Evidence::new()),
    };
    Some(Finding {
        id,
        name: name.to_owned(),
        outcome,
        severity,
        about,
        sentence,
        cure,
        evidence,
        accepted: false,
    })
}

/// Ids of the findings that act on a result and that the user accepted. A note acts on no number, so accepting it changes nothing.
pub(crate) fn accepted(result: &Measured, findings: &[Finding]) -> Vec<CheckId> {
    let acts =
        |f: &&Finding| f.severity.is_some_and(|s| s < Severity::Note) && f.about.contains(&result.name);
    let mut ids: Vec<CheckId> = findings.iter().filter(|f| f.accepted).filter(acts).map(|f| f.id).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// A finding whose evidence still knows which result it belongs to.
struct Merged {
    finding: Finding,
    evidence: Vec<(String, Evidence)>,
}

impl Merged {
    fn new(check: &Check, answer: &Known<Answer>, about: &str) -> Option<Self> {
        let mut finding = finding(check.id, check.name, &check.page, answer, vec![about.to_owned()])?;
        let numbers = std::mem::take(&mut finding.evidence);
        Some(Self { evidence: vec![(about.to_owned(), numbers)], finding })
    }

    fn says_the_same_as(&self, other: &Self) -> bool {
        let said = |m: &Self| (m.finding.id, m.finding.outcome, m.finding.severity);
        said(self) == said(other) && self.finding.sentence == other.finding.sentence
    }

    fn absorb(&mut self, other: Self) {
        self.finding.about.extend(other.finding.about);
        self.evidence.extend(other.evidence);
    }

    /// One result keeps its plain keys; several get theirs prefixed, so that no number is lost.
    fn close(mut self) -> Finding {
        let alone = self.evidence.len() == 1;
        for (about, numbers) in self.evidence {
            let named =
                numbers.into_iter().map(|(k, v)| (if alone { k } else { format!("{about}: {k}") }, v));
            self.finding.evidence.extend(named);
        }
        self.finding
    }
}

/// `RND4K Q1T1 read`, or how many where there are many.
pub(crate) fn about(names: &[String]) -> String {
    match names {
        [] => "the result".into(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [one, rest @ ..] => format!("{one} and {} other results", show_count(rest.len() as f64)),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn every_check_is_asked_since_none_waits_for_itself() {
    let record = Fixture::honest().record();
    let asked: Vec<CheckId> = ask_all(&crate::case::cases(&record)[0]).iter().map(|(c, _)| c.id).collect();
    assert!(
        asked.iter().copied().eq(checks::all().map(|c| c.id)),
        "checks wait for each other in a circle: {asked:?}"
    );
}

#[test]
fn equal_answers_about_several_jobs_are_one_finding() {
    let record = Fixture { jobs: 3, runs: 1, ..Fixture::honest() }.record();
    let answered: Vec<_> = crate::case::cases(&record).into_iter().map(ask).collect();
    let findings = merge(&answered, &[CheckId::E05]);
    let e05: Vec<_> = findings.iter().filter(|f| f.id == CheckId::E05).collect();
    assert_eq!(e05.len(), 1);
    assert_eq!(e05[0].about.len(), 3);
    assert!(e05[0].accepted && e05[0].evidence.keys().any(|k| k.ends_with(": runs")));
    assert_eq!(findings.iter().filter(|f| f.id == CheckId::A13).count(), 1, "holds are one per check");
}

#[test]
fn a_finding_advises_what_its_page_does_with_the_names_of_the_case() {
    let cached = Fixture { delivered: 0.02, ..Fixture::honest() }.record();
    let merged = (checks::all().find(|c| c.id == CheckId::B01).unwrap().fires.unwrap())();
    for (id, record, disk) in [(CheckId::A01, cached, "DISK"), (CheckId::B01, merged, "vda")] {
        let answered: Vec<_> = crate::case::cases(&record).into_iter().map(ask).collect();
        let findings = merge(&answered, &[]);
        let found = findings.iter().find(|f| f.id == id).unwrap();
        let fix = checks::all().find(|c| c.id == id).unwrap().page.fix;
        assert!(!fix.is_empty());
        assert_eq!(found.cure, fix.replace("DISK", disk));
    }
}

#[test]
fn findings_come_first_and_the_worst_of_them_before_the_others() {
    let fixture = Fixture {
        errors: 1,
        runs: 1,
        delivered: 0.0,
        no_cpu_times: true,
        cached_share: 0.9,
        ..Fixture::honest()
    };
    let record = fixture.record();
    let answered: Vec<_> = crate::case::cases(&record).into_iter().map(ask).collect();
    let findings = merge(&answered, &[]);
    let order: Vec<_> = findings.iter().map(|f| (f.outcome, f.severity)).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(findings[0].id, CheckId::B12);
    assert!(answered[0].is_void() && !answered[0].is_sound());
}
