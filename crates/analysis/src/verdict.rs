//! The verdict, the headline and the exit code: what all findings come to.
//!
//! For: the first words of a report. Not for: the findings themselves.

use crate::case::no_run;
use crate::findings::{CaseAnswers, about};
use crate::studies;
use model::check_id::CheckId;
use model::finding::{Finding, Outcome, Severity};
use model::record::Record;
use model::report::{AnswerWord, Counts, CountsAs, Headline, Measured, QuotedRate, Report, Verdict};
use model::study::Studied;
use model::units::show_count;

/// Most results that are all named in a sentence; of more than these only the first [`NAMES`] are.
const MOST_NAMES: usize = 8;
const NAMES: usize = 4;

/// The result whose figure is the headline: the first of the plan's headline job.
pub(crate) fn headline_result<'m>(
    record: &Record,
    answered: &[CaseAnswers],
    results: &'m [Measured],
) -> Option<&'m Measured> {
    let at = answered.iter().position(|a| a.case.at == record.header.plan.headline)?;
    results.get(at)
}

/// Checks without whose answer nobody knows what was measured: whether it is memory that lies below (A11), whether the work
/// arrived at the device (A01, A02, A09) and at the ends of the chain (A12), and whether it was counted at all (A13). Where one of
/// them could not look, because a part of the chain or the ledger could not be seen, or the kernel counts several streams together,
/// a result is suspect.
const MUST_BE_ASKED: [CheckId; 6] =
    [CheckId::A13, CheckId::A11, CheckId::A12, CheckId::A01, CheckId::A02, CheckId::A09];

/// The number that would be quoted, under its true name. Withheld where a finding invalidates it.
pub(crate) fn headline(record: &Record, answered: &[CaseAnswers], results: &[Measured]) -> Headline {
    let Some(result) = headline_result(record, answered, results) else {
        return Headline { name: "nothing".into(), value: None, unit: "IOPS".into(), interval: None };
    };
    let QuotedRate { unit, value, interval } = result.quoted_rate();
    Headline { name: result.true_name.clone(), value, unit: unit.into(), interval }
}

/// A verdict and why.
#[derive(Debug)]
pub(crate) struct Reasoned {
    pub(crate) verdict: Verdict,
    /// In one sentence.
    pub(crate) reason: String,
    /// The check whose answer the sentence tells.
    pub(crate) by: Option<CheckId>,
}

impl Reasoned {
    /// For a reason that no check gave.
    pub(crate) fn new(verdict: Verdict, reason: String) -> Self {
        Self { verdict, reason, by: None }
    }
}

/// The verdict on what is quoted: the worst of it, with the one sentence that says why. `first` is what is told of where others
/// are as bad.
pub(crate) fn verdict(first: Option<&Measured>, quoted: &[&Measured], findings: &[Finding]) -> Reasoned {
    let nothing =
        || Reasoned::new(Verdict::Invalid, "nothing was planned that could be measured.".to_owned());
    let Some((first, worst)) = first.zip(quoted.iter().map(|r| r.verdict).max()) else { return nothing() };
    let told = std::iter::once(first).chain(quoted.iter().copied()).find(|r| r.verdict == worst);
    told.map_or_else(nothing, |result| of(result, findings))
}

/// The verdict on one result, with the one sentence that says why.
pub(crate) fn of(result: &Measured, findings: &[Finding]) -> Reasoned {
    let about_it: Vec<&Finding> = findings.iter().filter(|f| f.about.contains(&result.name)).collect();
    let worst = |severity| {
        about_it.iter().find(|f| f.outcome == Outcome::Finding && f.severity == Some(severity)).copied()
    };
    if let Some(f) = worst(Severity::Void) {
        return found(Verdict::Invalid, f, "invalidates");
    }
    if result.total.is_none() {
        let why = if result.runs.is_empty() { no_run() } else { no_operation() };
        return Reasoned::new(Verdict::Invalid, format!("{} has no number: {why}.", result.name));
    }
    if let Some(f) = worst(Severity::Rename) {
        return found(Verdict::Suspect, f, "relabels");
    }
    if let Some(f) = worst(Severity::Biased) {
        return found(Verdict::Suspect, f, "biases");
    }
    let unasked = |f: &&&Finding| MUST_BE_ASKED.contains(&f.id) && f.outcome == Outcome::NotChecked;
    if let Some(f) = about_it.iter().find(unasked) {
        let reason = format!("{}: {}.", about(&f.about), f.sentence);
        return Reasoned { verdict: Verdict::Suspect, reason, by: Some(f.id) };
    }
    Reasoned::new(Verdict::Valid, "No check found anything that changes what the number means.".into())
}

/// How many of the quoted results hold.
pub(crate) fn counts(quoted: &[&Measured]) -> Counts {
    let count = |verdict| quoted.iter().filter(|r| r.verdict == verdict).count();
    let counts = Counts {
        valid: count(Verdict::Valid),
        suspect: count(Verdict::Suspect),
        invalid: count(Verdict::Invalid),
        sentence: None,
    };
    Counts { sentence: (quoted.len() > 1).then(|| counted(&counts, quoted)), ..counts }
}

/// `5 of 8 results are valid, 3 are suspect (a, b, c)`.
fn counted(counts: &Counts, quoted: &[&Measured]) -> String {
    let all = show_count(quoted.len() as f64);
    let hold = match counts.valid {
        valid if valid == quoted.len() => return format!("all {all} results are valid"),
        0 => format!("none of {all} results is valid"),
        1 => format!("1 of {all} results is valid"),
        valid => format!("{} of {all} results are valid", show_count(valid as f64)),
    };
    let part = |verdict: Verdict, one: &str, several: &str| {
        let names: Vec<&str> =
            quoted.iter().filter(|r| r.verdict == verdict).map(|r| r.name.as_str()).collect();
        let what = if names.len() == 1 { one } else { several };
        (!names.is_empty())
            .then(|| format!("{} {what} ({})", show_count(names.len() as f64), some_of(&names)))
    };
    let parts = [
        part(Verdict::Suspect, "is suspect", "are suspect"),
        part(Verdict::Invalid, "has no number", "have no number"),
    ];
    std::iter::once(hold).chain(parts.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

/// `a, b and 3 more`: all where they are few.
fn some_of(names: &[&str]) -> String {
    // Names with commas of their own are told apart otherwise.
    let between = if names.iter().any(|n| n.contains(',')) { "; " } else { ", " };
    if names.len() <= MOST_NAMES {
        return names.join(between);
    }
    let more = show_count((names.len() - NAMES) as f64);
    format!("{} and {more} more", names[..NAMES].join(between))
}

fn no_operation() -> String {
    "no operation completed within a measured window".into()
}

fn found(verdict: Verdict, finding: &Finding, verb: &str) -> Reasoned {
    let Finding { id, name, sentence, .. } = finding;
    let reason = format!("{id} {name} {verb} {}: {sentence}", about(&finding.about));
    Reasoned { verdict, reason, by: Some(*id) }
}

/// The exit code that a report asks for: 1 where a finding invalidates a result that is quoted or relabels the main one, unless the
/// user accepted every finding that does, where there is no number to quote, and where a condition is broken; 4 where it cannot be told
/// whether one is, unless the user says what that counts as; else 0.
pub fn exit_code(report: &Report) -> u8 {
    let found = of_findings(report);
    match (report.answer.as_ref().map(|a| a.word), report.counts_as) {
        (Some(AnswerWord::Fail), _) | (Some(AnswerWord::Inconclusive), Some(CountsAs::Fail)) => 1,
        (Some(AnswerWord::Inconclusive), None) if found == 0 => 4,
        _ => found,
    }
}

/// The exit code that several reports ask for: the worst, where what is known to be wrong is worse than what cannot be told.
pub fn exit_code_of(reports: &[Report]) -> u8 {
    let codes: Vec<u8> = reports.iter().map(exit_code).collect();
    [1, 4].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
}

/// What it asks for whatever the conditions come to.
fn of_findings(report: &Report) -> u8 {
    let rests_on = |(at, result): &(usize, &Measured)| match &report.study {
        Studied::Limit(curve) => curve.rests_on.contains(at),
        _ => result.true_name == report.headline.name,
    };
    let name = |(_, result): (usize, &'_ Measured)| result.name.clone();
    let headline: Vec<String> = report.results.iter().enumerate().filter(rests_on).map(name).collect();
    let quoted: Vec<String> =
        studies::quoted(&report.study, &report.results).iter().map(|r| r.name.clone()).collect();
    let acts = |f: &&Finding| {
        let about = |names: &[String]| f.about.iter().any(|a| names.contains(a));
        match f.severity.filter(|_| f.outcome == Outcome::Finding) {
            Some(Severity::Void) => about(&quoted) || about(&headline),
            Some(Severity::Rename) => about(&headline),
            _ => false,
        }
    };
    let mut acting = report.findings.iter().filter(acts).peekable();
    let explained = acting.peek().is_some();
    let refused = acting.any(|f| !f.accepted);
    u8::from(refused || (report.headline.value.is_none() && !explained))
}

#[cfg(test)]
use crate::{Judging, fixture::Fixture, judge};
#[cfg(test)]
use model::job::Pattern;

#[cfg(test)]
fn judged(fixture: &Fixture, accept: &[CheckId]) -> Report {
    judge(&fixture.record(), &Judging { accept: accept.to_vec(), ..Judging::default() })
}

#[test]
fn an_honest_record_is_valid() {
    for fixture in [Fixture::honest(), Fixture::honest_write(), Fixture::honest_loop()] {
        let report = judged(&fixture, &[]);
        assert_eq!(report.verdict, Verdict::Valid, "{}", report.verdict_reason);
        assert_eq!(exit_code(&report), 0);
        assert!(report.headline.value.is_some() && report.headline.interval.is_some());
    }
}

#[test]
fn the_page_cache_gets_its_name_and_exit_code_and_both_can_be_accepted() {
    let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    let report = judged(&cached, &[]);
    assert_eq!(report.verdict, Verdict::Suspect);
    assert_eq!(report.headline.name, "4K random read, depth 32, page cache");
    assert!(report.headline.value.is_some());
    assert_eq!(exit_code(&report), 1);
    assert_eq!(exit_code(&judged(&cached, &[CheckId::A01])), 0);
}

#[test]
fn a_void_finding_takes_value_and_interval_away() {
    let holes = Fixture { hole_share: 1.0, ..Fixture::honest() };
    let report = judged(&holes, &[]);
    assert_eq!(
        (report.verdict, report.headline.value, report.headline.interval),
        (Verdict::Invalid, None, None)
    );
    assert!(report.results[0].void && report.verdict_reason.contains("A04"));
    assert_eq!(report.verdict_by, Some(CheckId::A04));
    assert_eq!(exit_code(&report), 1);
    assert_eq!(exit_code(&judged(&holes, &[CheckId::A04])), 0);
}

#[test]
fn an_unchecked_ledger_is_never_valid() {
    let report = judged(&Fixture { iostats_off: true, ..Fixture::honest() }, &[]);
    assert_eq!(report.verdict, Verdict::Suspect);
    assert!(report.verdict_reason.contains("iostats"), "{}", report.verdict_reason);
    assert_eq!(exit_code(&report), 0);
}

#[test]
fn a_chain_that_ends_in_the_unknown_is_never_valid() {
    let mut record = Fixture::honest_loop().record();
    record.header.hosts[0].places[0].blind = Some("the file behind loop0 cannot be found".into());
    let report = judge(&record, &Judging::default());
    assert_eq!(report.verdict, Verdict::Suspect);
    assert!(report.verdict_reason.contains("the file behind loop0"), "{}", report.verdict_reason);
}

#[test]
fn no_run_and_no_operation_are_invalid_with_a_reason() {
    for (fixture, words) in [
        (Fixture { runs: 0, ..Fixture::honest() }, "none of its runs"),
        (Fixture { ops: 0, ..Fixture::honest() }, "no operation"),
    ] {
        let report = judged(&fixture, &[]);
        assert_eq!(report.verdict, Verdict::Invalid);
        assert!(report.verdict_reason.contains(words), "{}", report.verdict_reason);
        assert_eq!(exit_code(&report), 1);
    }
}

#[test]
fn the_unit_follows_the_pattern() {
    let sequential = Fixture { pattern: Pattern::Sequential, block_bytes: 1 << 20, ..Fixture::honest() };
    assert_eq!(judged(&sequential, &[]).headline.unit, "MB/s");
    let null = Fixture { role: model::plan::Role::None, engine: "null", cpu_share: 1.0, ..Fixture::honest() };
    let report = judged(&null, &[]);
    assert_eq!(report.verdict, Verdict::Valid, "{}", report.verdict_reason);
    assert_eq!(report.headline.name, "4K random read, depth 32, null engine, no storage");
}

#[test]
fn of_many_others_few_are_named_and_of_one_there_is_no_number() {
    let names: Vec<String> = (0..12).map(|i| format!("read {i}, buffered")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(some_of(&names[..2]), "read 0, buffered; read 1, buffered");
    assert!(some_of(&names).ends_with("read 3, buffered and 8 more"), "{}", some_of(&names));
    let result = |name: &str, verdict| {
        let measured = judge(&Fixture::honest().record(), &Judging::default()).results.remove(0);
        Measured { name: name.into(), verdict, ..measured }
    };
    let (first, other) = (result("first", Verdict::Valid), result("other", Verdict::Suspect));
    let said = counts(&[&first, &other]);
    assert_eq!((said.valid, said.suspect, said.invalid), (1, 1, 0));
    assert_eq!(said.sentence.as_deref(), Some("1 of 2 results is valid, 1 is suspect (other)"));
    assert_eq!(counts(&[&first, &first]).sentence.as_deref(), Some("all 2 results are valid"));
    assert_eq!(counts(&[&other]).sentence, None);
    // The worst is told, the headline first where it is as bad.
    assert_eq!(
        verdict(Some(&first), &[&first, &other], &[]).verdict,
        Verdict::Valid,
        "by the findings, of which there are none"
    );
}
