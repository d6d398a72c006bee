//! The findings that matter most, and how many answers there are beside them.
//!
//! For: what is told of a measurement where not everything is. Not for: the words of all findings, nor for deciding anything.

use model::check_id::CheckId;
use model::finding::{Finding, Outcome, Severity};
use model::report::{Limiter, Report, Verdict};
use std::collections::BTreeSet;

/// Findings that are told.
const MAX_SHOWN: usize = 3;

/// The findings that act on numbers, each once for all results that it is about, worst first and those that the user accepts last.
fn acting_findings(findings: Vec<Finding>) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    for finding in findings.into_iter().filter(acts) {
        match out.iter_mut().find(|known| (known.id, known.severity) == (finding.id, finding.severity)) {
            Some(known) => {
                let others = finding.about.into_iter().filter(|name| !known.about.contains(name));
                known.about.extend(others.collect::<Vec<_>>());
            }
            None => out.push(finding),
        }
    }
    out.sort_by_key(|f| (f.accepted, f.severity));
    out
}

/// Why the verdict is no better, for above the table: where neither the answer nor a finding that is shown below it tells that.
pub(crate) fn verdict_reason<'r>(report: &'r Report, shown: &[Finding]) -> Option<&'r str> {
    let answered = report.answer.as_ref().is_some_and(|answer| answer.sentence == report.verdict_reason);
    let below = |f: &Finding| Some(f.id) == report.verdict_by && f.outcome != Outcome::Holds;
    let told = answered || shown.iter().any(below);
    (report.verdict != Verdict::Valid && !told).then_some(report.verdict_reason.as_str())
}

/// The finding that decides the verdict of the headline; `None` if the headline is valid or no finding decides.
pub(crate) fn headline_finding(report: &Report) -> Option<Finding> {
    let result = report.headline_result().filter(|r| r.verdict != Verdict::Valid)?;
    let mine = shown_findings(report).into_iter().filter(|f| acts(f) && f.about.contains(&result.name));
    mine.min_by_key(|f| (f.accepted, f.severity))
}

/// What limits the headline, with the evidence, or the check whose finding, shown below, is that evidence.
pub(crate) fn describe_limiter(report: &Report, shown: &[Finding]) -> String {
    let Limiter { name, sentence, .. } = &report.limiter;
    let below = |f: &&Finding| f.outcome == Outcome::Finding && f.sentence == *sentence;
    match shown.iter().find(below) {
        Some(f) => format!("Limited by: {name} ({} below).", f.id),
        None => format!("Limited by: {name}. {sentence}"),
    }
}

/// The first of those of a report.
pub(crate) fn worst_findings(report: &Report) -> Vec<Finding> {
    worst_of(shown_findings(report))
}

/// The first of these.
pub(crate) fn worst_of(findings: Vec<Finding>) -> Vec<Finding> {
    let mut all = acting_findings(findings);
    all.truncate(MAX_SHOWN);
    all
}

/// `1 more finding, 12 notes, 3 not checked, 66 passed`; `None` where the findings that are told are all there is to tell.
pub(crate) fn rest_summary(report: &Report) -> Option<String> {
    rest_summary_of(&shown_findings(report))
}

/// `1 more finding, 12 notes, 3 not checked, 66 passed` of these findings; `None` where those that are told are all there is to tell.
pub(crate) fn rest_summary_of(findings: &[Finding]) -> Option<String> {
    rest_summary_after(findings, MAX_SHOWN)
}

/// The same after the first `shown` findings.
pub(crate) fn rest_summary_after(findings: &[Finding], shown: usize) -> Option<String> {
    let ids = |of: &dyn Fn(&&Finding) -> bool| -> BTreeSet<CheckId> {
        findings.iter().filter(of).map(|f| f.id).collect()
    };
    let notes = ids(&|f| f.outcome == Outcome::Finding && !acts(f));
    let unchecked = ids(&|f| f.outcome == Outcome::NotChecked);
    let spoke = ids(&|f| f.outcome != Outcome::Holds);
    let held = ids(&|f| f.outcome == Outcome::Holds && !spoke.contains(&f.id));
    let more = acting_findings(findings.to_vec()).len().saturating_sub(shown);
    let parts = [
        (more, if more == 1 { "more finding" } else { "more findings" }),
        (notes.len(), if notes.len() == 1 { "note" } else { "notes" }),
        (unchecked.len(), "not checked"),
        (held.len(), "passed"),
    ];
    let parts =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let words = parts.collect::<Vec<_>>().join(", ");
    (!words.is_empty()).then_some(words)
}

fn acts(finding: &Finding) -> bool {
    finding.outcome == Outcome::Finding && finding.severity.is_some_and(|s| s < Severity::Note)
}

/// The findings that are told: of a grid those about its best cells, and of these only about these.
pub(crate) fn shown_findings(report: &Report) -> Vec<Finding> {
    let Some(sweep) = report.study.sweep().filter(|s| !s.is_in_order()) else {
        return report.findings.clone();
    };
    let best = sweep.winner.values().chain(sweep.cheapest.values());
    let names: Vec<&str> = best.filter_map(|c| Some(report.results.get(c.result?)?.name.as_str())).collect();
    let mut out = Vec::new();
    for finding in &report.findings {
        let about: Vec<String> =
            finding.about.iter().filter(|a| names.contains(&a.as_str())).cloned().collect();
        if !about.is_empty() {
            out.push(Finding { about, ..finding.clone() });
        }
    }
    out
}

/// Which results a finding is about, where not all of so many: ` [RND4K Q1T1 read]`.
pub(crate) fn results_suffix(finding: &Finding, all: usize) -> String {
    match finding.about.len() {
        0 => String::new(),
        n if n == all && all > 1 => String::new(),
        n if n > 3 => format!(" [{} and {} more]", join_names(&finding.about[..2]), n - 2),
        _ if all == 1 => String::new(),
        _ => format!(" [{}]", join_names(&finding.about)),
    }
}

/// Names in a row; those with commas of their own are told apart otherwise.
pub(crate) fn join_names(names: &[String]) -> String {
    names.join(if names.iter().any(|n| n.contains(',')) { "; " } else { ", " })
}
