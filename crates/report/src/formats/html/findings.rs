//! Findings, what could not be checked, and what held.
//!
//! For: those that act on numbers first, each with what to do; the rest folded. Not for: deciding anything.

use super::filters;
use super::page::{card, folded};
use super::table;
use super::words::with_micro_sign;
use crate::table::Table;
use crate::worst;
use askama::Template;
use model::finding::{Finding, Outcome, Severity};
use model::report::Report;

#[derive(Template)]
#[template(path = "findings.html")]
struct FindingList {
    findings: Vec<FindingItem>,
}

struct FindingItem {
    class: &'static str,
    id: String,
    severity: String,
    about: String,
    sentence: String,
    cure: String,
}

/// What changes what a number means; nothing where nothing does.
pub(super) fn acting_card(report: &Report, told: &[Finding]) -> String {
    let acts = |f: &&Finding| f.outcome == Outcome::Finding && f.severity.is_some_and(|s| s < Severity::Note);
    let found = merge_repeated(told.iter().filter(acts));
    if found.is_empty() {
        return String::new();
    }
    card::<&str>("What changes what the numbers mean", &[], &finding_list(&found, report.results.len()))
}

/// Notes, and every check with its answer.
pub(super) fn other_cards(report: &Report, told: &[Finding]) -> String {
    if told.is_empty() {
        return String::new();
    }
    let is_note =
        |f: &&Finding| f.outcome == Outcome::Finding && f.severity.is_none_or(|s| s == Severity::Note);
    let notes = merge_repeated(told.iter().filter(is_note));
    let unchecked = merge_repeated(told.iter().filter(|f| f.outcome == Outcome::NotChecked));
    let held = merge_repeated(told.iter().filter(|f| f.outcome == Outcome::Holds));
    let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let lead = [
        count(notes.len(), "note", "notes"),
        count(unchecked.len(), "check could not be made", "checks could not be made"),
        count(held.len(), "check passed", "checks passed"),
    ];
    let mut body = if notes.is_empty() { String::new() } else { finding_list(&notes, report.results.len()) };
    let not_made =
        if unchecked.is_empty() { String::new() } else { finding_list(&unchecked, report.results.len()) };
    body += &folded("What could not be checked, and why", &not_made);
    body += &folded("Every check and its answer", &check_table(told));
    card("What was checked", &[format!("{}.", lead.join(", "))], &body)
}

/// Each check and severity once, for all results that it is about.
fn merge_repeated<'f>(findings: impl Iterator<Item = &'f Finding>) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    for finding in findings {
        match out.iter_mut().find(|known| (known.id, known.severity) == (finding.id, finding.severity)) {
            Some(known) => {
                let new: Vec<String> =
                    finding.about.iter().filter(|name| !known.about.contains(name)).cloned().collect();
                known.about.extend(new);
            }
            None => out.push(finding.clone()),
        }
    }
    out.sort_by_key(|f| (f.accepted, f.severity));
    out
}

fn finding_list(findings: &[Finding], results: usize) -> String {
    let item = |f: &Finding| {
        let (class, word) = match (f.outcome, f.severity) {
            (Outcome::NotChecked, _) => ("unchecked", "not checked"),
            (_, Some(Severity::Void)) => ("void", Severity::Void.effect()),
            (_, Some(Severity::Rename)) => ("rename", Severity::Rename.effect()),
            (_, Some(Severity::Biased)) => ("biased", Severity::Biased.effect()),
            (_, Some(Severity::Note) | None) => ("note", Severity::Note.effect()),
        };
        let accepted = if f.accepted { ", accepted" } else { "" };
        FindingItem {
            class,
            id: f.id.to_string(),
            severity: format!("{word}{accepted}"),
            about: worst::results_suffix(f, results),
            sentence: with_micro_sign(&f.sentence),
            cure: with_micro_sign(&f.cure),
        }
    };
    FindingList { findings: findings.iter().map(item).collect() }.render().unwrap_or_default()
}

/// A row for each check and answer; of many results the first that it is about.
fn check_table(findings: &[Finding]) -> String {
    let mut seen = std::collections::BTreeSet::new();
    let mut of = Table::new(&["check", "name", "answer", "about", "sentence"], &[])
        .aligned(1, true)
        .aligned(2, true)
        .aligned(3, true);
    for f in findings.iter().filter(|f| seen.insert((f.id, f.outcome, f.severity))) {
        let answer = match f.outcome {
            Outcome::Finding => f.severity.unwrap_or(Severity::Note).effect(),
            Outcome::NotChecked => "not checked",
            Outcome::Holds => "passed",
        };
        let same = findings.iter().filter(|g| (g.id, g.outcome, g.severity) == (f.id, f.outcome, f.severity));
        let about = match same.map(|g| g.about.len()).sum::<usize>() {
            0 => String::new(),
            1 => f.about.first().cloned().unwrap_or_default(),
            n => format!("{} and {} more", f.about.first().map_or("", String::as_str), n - 1),
        };
        of.add([f.id.to_string(), f.name.clone(), answer.into(), about, f.sentence.clone()]);
    }
    table::table("Every check and its answer", &of)
}
