//! The verdict, the headline and the exit code: what all findings come to.
//!
//! For: the first words of a report. Not for: the findings themselves.

use crate::case::no_run;
use crate::findings::{Answered, about};
use model::check_id::CheckId;
use model::finding::{Finding, Outcome, Severity};
use model::job::Pattern;
use model::record::Record;
use model::report::{Headline, Measured, Report, Verdict};
use model::study::Studied;
use model::units::show_count;

/// Most results that are all named in a sentence; of more than these only the first [`NAMES`] are.
const MOST_NAMES: usize = 8;
const NAMES: usize = 4;

/// The result whose figure is the headline: the first of the plan's headline job.
pub(crate) fn headline_result<'m>(
    record: &Record,
    answered: &[Answered],
    results: &'m [Measured],
) -> Option<&'m Measured> {
    let at = answered.iter().position(|a| a.case.at == record.header.plan.headline)?;
    results.get(at)
}

/// Checks without whose answer nobody knows what was measured: whether it is memory that lies below (A11), whether the work
/// arrived at the ends of the chain (A12), and whether it was counted at all (A13). Where one of them could not look, because a part of
/// the chain or the ledger could not be seen, a result is suspect.
const MUST_BE_ASKED: [CheckId; 3] = [CheckId::A13, CheckId::A11, CheckId::A12];

/// The number that would be quoted, under its true name. Withheld where a finding voids it.
pub(crate) fn headline(record: &Record, answered: &[Answered], results: &[Measured]) -> Headline {
    let Some(result) = headline_result(record, answered, results) else {
        return Headline { name: "nothing".into(), value: None, unit: "IOPS".into(), interval: None };
    };
    let phase = result.job.phases.get(result.phase as usize);
    let stream = phase.and_then(|p| p.streams.get(result.stream as usize));
    let sequential = stream.is_some_and(|s| s.access.pattern() == Some(Pattern::Sequential));
    let total = result.total.as_ref().filter(|_| !result.void);
    let (unit, value, interval) = if sequential {
        ("MB/s", total.map(|t| t.mb_per_s), total.and_then(|t| t.mb_per_s_interval))
    } else {
        ("IOPS", total.map(|t| t.iops), total.and_then(|t| t.iops_interval))
    };
    Headline { name: result.true_name.clone(), value, unit: unit.into(), interval }
}

/// The verdict on the headline, with the one sentence that says why.
pub(crate) fn verdict(headline: Option<&Measured>, findings: &[Finding]) -> (Verdict, String) {
    let nothing = || (Verdict::Invalid, "nothing was planned that could be measured.".to_owned());
    headline.map_or_else(nothing, |result| of(result, findings))
}

/// The verdict on one result, with the one sentence that says why.
pub(crate) fn of(result: &Measured, findings: &[Finding]) -> (Verdict, String) {
    let about_it: Vec<&Finding> = findings.iter().filter(|f| f.about.contains(&result.name)).collect();
    let worst = |severity| {
        about_it.iter().find(|f| f.outcome == Outcome::Finding && f.severity == Some(severity)).copied()
    };
    if let Some(f) = worst(Severity::Void) {
        return (Verdict::Invalid, reason(f, "voids"));
    }
    if result.total.is_none() {
        let why = if result.runs.is_empty() { no_run() } else { no_operation() };
        return (Verdict::Invalid, format!("{} has no number: {why}.", result.name));
    }
    if let Some(f) = worst(Severity::Rename) {
        return (Verdict::Suspect, reason(f, "renames"));
    }
    if let Some(f) = worst(Severity::Biased) {
        return (Verdict::Suspect, reason(f, "biases"));
    }
    let unasked = |f: &&&Finding| MUST_BE_ASKED.contains(&f.id) && f.outcome == Outcome::NotChecked;
    if let Some(f) = about_it.iter().find(unasked) {
        return (Verdict::Suspect, format!("{}: {}.", about(&f.about), f.sentence));
    }
    (Verdict::Valid, "No check found anything that changes what the number means.".into())
}

/// Which quoted results beside the headline do not hold; `None` where all do.
pub(crate) fn beside(headline: Option<&Measured>, quoted: &[&Measured]) -> Option<String> {
    let others = || quoted.iter().filter(|r| !headline.is_some_and(|h| std::ptr::eq(**r, h)));
    let count = others().count();
    let said = |verdict: Verdict, one: &str, several: &str| {
        let names: Vec<&str> = others().filter(|r| r.verdict == verdict).map(|r| r.name.as_str()).collect();
        let what = if names.len() == 1 { one } else { several };
        let how_many =
            if count == 1 { String::new() } else { format!("{} ", show_count(names.len() as f64)) };
        (!names.is_empty()).then(|| format!("{how_many}{what} ({})", some_of(&names)))
    };
    let parts = [
        said(Verdict::Suspect, "is suspect", "are suspect"),
        said(Verdict::Invalid, "has no number", "have no number"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let whose = match count {
        1 => "The other result".into(),
        count => format!("Of the {} other results", show_count(count as f64)),
    };
    (!parts.is_empty()).then(|| format!("{whose} {}.", parts.join("; ")))
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

fn reason(finding: &Finding, verb: &str) -> String {
    format!("{} {} {verb} {}: {}", finding.id, finding.name, about(&finding.about), finding.sentence)
}

/// The exit code that a report asks for: 1 where the headline has no number or not the name that was asked for, unless
/// the user accepted every finding that says so; else 0.
pub fn exit_code(report: &Report) -> u8 {
    let rests_on = |(at, result): &(usize, &Measured)| match &report.study {
        Studied::Limit(curve) => curve.rests_on.contains(at),
        _ => result.true_name == report.headline.name,
    };
    let names: Vec<&String> =
        report.results.iter().enumerate().filter(rests_on).map(|(_, r)| &r.name).collect();
    let acts = |f: &&Finding| f.outcome == Outcome::Finding && f.severity <= Some(Severity::Rename);
    let about_it = |f: &&Finding| f.about.iter().any(|a| names.contains(&a));
    let mut against = report.findings.iter().filter(acts).filter(about_it).peekable();
    let explained = against.peek().is_some();
    let refused = against.any(|f| !f.accepted);
    u8::from(refused || (report.headline.value.is_none() && !explained))
}

#[cfg(test)]
use crate::{Judging, forge::Forge, judge};

#[cfg(test)]
fn judged(forge: &Forge, accept: &[CheckId]) -> Report {
    judge(&forge.record(), &Judging { accept: accept.to_vec(), ..Judging::default() })
}

#[test]
fn an_honest_record_is_valid() {
    for forge in [Forge::honest(), Forge::honest_write(), Forge::honest_loop()] {
        let report = judged(&forge, &[]);
        assert_eq!(report.verdict, Verdict::Valid, "{}", report.verdict_reason);
        assert_eq!(exit_code(&report), 0);
        assert!(report.headline.value.is_some() && report.headline.interval.is_some());
    }
}

#[test]
fn the_page_cache_gets_its_name_and_exit_code_and_both_can_be_accepted() {
    let cached = Forge { delivered: 0.0, cache: model::job::Cache::Buffered, ..Forge::honest() };
    let report = judged(&cached, &[]);
    assert_eq!(report.verdict, Verdict::Suspect);
    assert_eq!(report.headline.name, "4K random read, depth 32, page cache");
    assert!(report.headline.value.is_some());
    assert_eq!(exit_code(&report), 1);
    assert_eq!(exit_code(&judged(&cached, &[CheckId::A01])), 0);
}

#[test]
fn a_void_finding_takes_value_and_interval_away() {
    let holes = Forge { hole_share: 1.0, ..Forge::honest() };
    let report = judged(&holes, &[]);
    assert_eq!(
        (report.verdict, report.headline.value, report.headline.interval),
        (Verdict::Invalid, None, None)
    );
    assert!(report.results[0].void && report.verdict_reason.contains("A04"));
    assert_eq!(exit_code(&report), 1);
    assert_eq!(exit_code(&judged(&holes, &[CheckId::A04])), 0);
}

#[test]
fn an_unchecked_ledger_is_never_valid() {
    let report = judged(&Forge { iostats_off: true, ..Forge::honest() }, &[]);
    assert_eq!(report.verdict, Verdict::Suspect);
    assert!(report.verdict_reason.contains("iostats"), "{}", report.verdict_reason);
    assert_eq!(exit_code(&report), 0);
}

#[test]
fn a_chain_that_ends_in_the_unknown_is_never_valid() {
    let mut record = Forge::honest_loop().record();
    record.header.hosts[0].places[0].blind = Some("the file behind loop0 cannot be found".into());
    let report = judge(&record, &Judging::default());
    assert_eq!(report.verdict, Verdict::Suspect);
    assert!(report.verdict_reason.contains("the file behind loop0"), "{}", report.verdict_reason);
}

#[test]
fn no_run_and_no_operation_are_invalid_with_a_reason() {
    for (forge, words) in [
        (Forge { runs: 0, ..Forge::honest() }, "no run"),
        (Forge { ops: 0, ..Forge::honest() }, "no operation"),
    ] {
        let report = judged(&forge, &[]);
        assert_eq!(report.verdict, Verdict::Invalid);
        assert!(report.verdict_reason.contains(words), "{}", report.verdict_reason);
        assert_eq!(exit_code(&report), 1);
    }
}

#[test]
fn the_unit_follows_the_pattern() {
    let sequential = Forge { pattern: Pattern::Sequential, block_bytes: 1 << 20, ..Forge::honest() };
    assert_eq!(judged(&sequential, &[]).headline.unit, "MB/s");
    let null = Forge { role: model::plan::Role::None, engine: "null", cpu_share: 1.0, ..Forge::honest() };
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
        let measured = judge(&Forge::honest().record(), &Judging::default()).results.remove(0);
        Measured { name: name.into(), verdict, ..measured }
    };
    let (first, other) = (result("first", Verdict::Valid), result("other", Verdict::Suspect));
    let said = beside(Some(&first), &[&first, &other]);
    assert_eq!(said.as_deref(), Some("The other result is suspect (other)."));
}
