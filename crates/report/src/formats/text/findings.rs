//! The findings of a report, what could not be checked, and what held.
//!
//! For: each question to the results once, whatever number of them it is about. Not for: deciding anything; what is told stands in
//! the report.

use crate::page::Page;
use crate::worst::{about, first, listed, rest, told};
use model::check_id::CheckId;
use model::finding::{Finding, Outcome, Severity};
use model::report::Report;
use model::study::Studied;
use model::sweep::Sweep;

/// Most results of which a finding is told each: those of `--profile mix`.
const MANY: usize = 12;

pub(super) fn show(out: &mut Page, report: &Report) {
    if report.findings.is_empty() {
        return;
    }
    let told = told(report);
    let all = report.results.len();
    // What any finding says of one load, or of one of many results, differs from the next in its numbers alone.
    let brief = of_many(report) || all > MANY;
    found(out, &told, all, brief);
    not_checked(out, &told, all, brief);
    held(out, &told);
    if told.len() < report.findings.len() {
        out.line("What was found about other cells is in the JSON.");
    }
    out.line("");
}

fn of(told: &[Finding], outcome: Outcome) -> impl Iterator<Item = &Finding> {
    told.iter().filter(move |f| f.outcome == outcome)
}

fn found(out: &mut Page, told: &[Finding], all: usize, brief: bool) {
    let mut findings = of(told, Outcome::Finding).peekable();
    if findings.peek().is_some() {
        out.line("Findings");
    }
    while let Some(f) = findings.next() {
        let severity = f.severity.unwrap_or(Severity::Note);
        one(out, f, all);
        // So does what a note says of the other results; the JSON has all of them.
        let mut alike: Vec<String> = Vec::new();
        while (severity == Severity::Note || brief)
            && let Some(next) = findings.next_if(|n| n.id == f.id && n.severity == f.severity)
        {
            alike.extend(next.about.iter().cloned());
        }
        if !alike.is_empty() {
            let more = alike.len().saturating_sub(if brief { MANY } else { alike.len() });
            let named = listed(&alike[..alike.len() - more]);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            out.prose("      also ", "           ", &(named + &more));
        }
        cure(out, f);
    }
}

/// Which check found what about which results.
fn one(out: &mut Page, f: &Finding, all: usize) {
    let severity = f.severity.unwrap_or(Severity::Note);
    let code = match severity {
        Severity::Void => "1;31",
        Severity::Rename | Severity::Biased => "1;33",
        Severity::Note => "1",
    };
    let accepted = if f.accepted { ", accepted" } else { "" };
    let mark = out.paint(&format!("{} {} ({}{accepted})", f.id, f.name, severity.word()), code);
    let about = about(f, all);
    out.prose("  ", "      ", &format!("{mark}{about}: {}", f.sentence));
}

fn cure(out: &mut Page, f: &Finding) {
    if !f.cure.is_empty() {
        out.prose("      -> ", "         ", &f.cure);
    }
}

/// The findings that matter most, and how many answers more there are and what shows them.
pub(super) fn show_first(out: &mut Page, report: &Report, all_of_it: &str) {
    let findings = first(report);
    if !findings.is_empty() {
        out.line("Findings");
    }
    for f in &findings {
        one(out, f, report.results.len());
        cure(out, f);
    }
    if let Some(words) = rest(report) {
        out.prose("", "  ", &format!("{words}: {all_of_it}"));
    }
    out.line("");
}

/// Checks that need the same thing to be seen have the same reason, which is told once.
fn not_checked(out: &mut Page, told: &[Finding], all: usize, brief: bool) {
    let mut unchecked = of(told, Outcome::NotChecked).peekable();
    if unchecked.peek().is_some() {
        out.line("Not checked");
    }
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    while let Some(f) = unchecked.next() {
        let why = format!("{}: {}", about(f, all), f.sentence);
        let name = format!("{} {}", f.id, f.name);
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
        while brief && unchecked.next_if(|n| n.id == f.id).is_some() {}
    }
    for (why, names) in &reasons {
        out.prose("  ", "      ", &format!("{}{why}", names.join(", ")));
    }
}

/// A check that found something about one result did not hold, whatever it says of the others.
fn held(out: &mut Page, told: &[Finding]) {
    let silent = |f: &&Finding| !told.iter().any(|g| g.id == f.id && g.outcome != Outcome::Holds);
    let mut held: Vec<CheckId> = of(told, Outcome::Holds).filter(silent).map(|f| f.id).collect();
    held.dedup();
    if !held.is_empty() {
        out.prose("Passed  ", "        ", &CheckId::list(&held, " "));
    }
}

/// Whether results are many of one kind, so that a finding says the same of each with other numbers.
fn of_many(report: &Report) -> bool {
    matches!(report.study, Studied::Limit(_)) || report.study.sweep().is_some_and(Sweep::is_in_order)
}
