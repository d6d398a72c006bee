//! The findings of a report, the checks that were not possible, and the checks that passed.
//!
//! `--verbose` prints all of them, each check once for all results that it is about. Without it the worst three are printed, as far as
//! there is room.

use crate::page::Page;
use crate::worst::{join_names, rest_summary_after, results_suffix, shown_findings, worst_findings};
use model::check_id::CheckId;
use model::finding::{Finding, Outcome, Severity};
use model::report::Report;
use model::study::Studied;
use model::sweep::Sweep;

/// Most results of which a finding is told each: those of `--profile mix`.
const MANY_RESULTS: usize = 12;

pub(super) fn show_all_findings(out: &mut Page, report: &Report) {
    if report.findings.is_empty() {
        return;
    }
    let told = shown_findings(report);
    let all = report.results.len();
    // What any finding says of one load, or of one of many results, differs from the next in its numbers alone.
    let brief = has_many_results(report) || all > MANY_RESULTS;
    show_found(out, &told, all, brief);
    show_not_checked(out, &told, all, brief);
    show_passed(out, &told);
    if told.len() < report.findings.len() {
        out.line("What was found about other cells is in the JSON.");
    }
    out.line("");
}

fn with_outcome(told: &[Finding], outcome: Outcome) -> impl Iterator<Item = &Finding> {
    told.iter().filter(move |f| f.outcome == outcome)
}

fn show_found(out: &mut Page, told: &[Finding], all: usize, brief: bool) {
    let mut findings = with_outcome(told, Outcome::Finding).peekable();
    if findings.peek().is_some() {
        out.line("Findings");
    }
    while let Some(f) = findings.next() {
        let severity = f.severity.unwrap_or(Severity::Note);
        show_finding(out, f, all);
        // So does what a note says of the other results; the JSON has all of them.
        let mut alike: Vec<String> = Vec::new();
        while (severity == Severity::Note || brief)
            && let Some(next) = findings.next_if(|n| n.id == f.id && n.severity == f.severity)
        {
            alike.extend(next.about.iter().cloned());
        }
        if !alike.is_empty() {
            let more = alike.len().saturating_sub(if brief { MANY_RESULTS } else { alike.len() });
            let named = join_names(&alike[..alike.len() - more]);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            out.prose("      also ", "           ", &(named + &more));
        }
        show_fix(out, f);
    }
}

/// Prints which check found what about which results.
fn show_finding(out: &mut Page, f: &Finding, all: usize) {
    let severity = f.severity.unwrap_or(Severity::Note);
    let accepted = if f.accepted { ", accepted" } else { "" };
    let mark = out.paint(&format!("{} {}", f.id, f.name), severity_colour(severity));
    let head = match severity {
        Severity::Note => format!("{mark} (note{accepted}){}", results_suffix(f, all)),
        _ => format!("{mark} {} {}{accepted}", severity.effect(), describe_subject(f, all)),
    };
    out.prose("  ", "      ", &format!("{head}: {}", f.sentence));
}

fn severity_colour(severity: Severity) -> &'static str {
    match severity {
        Severity::Void => "1;31",
        Severity::Rename | Severity::Biased => "1;33",
        Severity::Note => "1",
    }
}

/// The results that a finding is about: `SEQ1M Q8T1 read`, `SEQ1M Q8T1 read and 4 more`, `all results`.
fn describe_subject(f: &Finding, all: usize) -> String {
    match f.about.as_slice() {
        _ if all <= 1 => "the result".into(),
        about if about.len() == all => "all results".into(),
        [] => "the results".into(),
        [one] => one.clone(),
        [one, two] if ![one, two].iter().any(|name| name.contains(',')) => format!("{one} and {two}"),
        [one, others @ ..] => format!("{one} and {} more", others.len()),
    }
}

fn show_fix(out: &mut Page, f: &Finding) {
    if !f.cure.is_empty() {
        out.prose("      -> ", "         ", &f.cure);
    }
}

/// How much of each finding is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The sentence and what to do.
    Whole,
    /// Without what to do.
    Sentence,
    /// The first sentence, in at most two lines.
    TwoLines,
}

/// Prints the finding that decides the verdict of the headline, with what to do about it.
pub(super) fn show_deciding_finding(out: &mut Page, f: &Finding, all: usize, is_short: bool) {
    let severity = f.severity.unwrap_or(Severity::Note);
    let others = match f.about.len().saturating_sub(1) {
        0 => String::new(),
        others if others + 1 == all => " and the other results".into(),
        1 => " and 1 other result".into(),
        others => format!(" and {others} other results"),
    };
    let accepted = if f.accepted { " (accepted)" } else { "" };
    let mark = out.paint(&format!("{} {}", f.id, f.name), severity_colour(severity));
    let effect = severity.effect();
    let text = format!("{mark} {effect} it{others}{accepted}: {}", f.sentence);
    if is_short {
        out.prose_within(2, "  ", "    ", &text);
    } else {
        out.prose("  ", "    ", &text);
        if !f.cure.is_empty() {
            out.prose("    -> ", "       ", &f.cure);
        }
    }
}

/// Prints the worst findings and how many other answers there are, within `lines`. If there is too little room, it omits what to do,
/// then all but two lines of each finding, then the last findings.
pub(super) fn show_worst_findings(
    out: &mut Page,
    (report, reason): (&Report, Option<&Finding>),
    lines: usize,
    all_of_it: &str,
) {
    let of_reason = |f: &&Finding| reason.is_some_and(|r| (r.id, r.severity) == (f.id, f.severity));
    let all: Vec<Finding> = worst_findings(report).into_iter().filter(|f| !of_reason(&f)).collect();
    let draw = |count: usize, extent: Extent, is_apart: bool| {
        let mut part = out.empty();
        if is_apart && !out.ends_with_gap() {
            part.line("");
        }
        for f in all.iter().take(count) {
            match extent {
                Extent::TwoLines => show_two_lines(&mut part, f, report.results.len()),
                Extent::Whole | Extent::Sentence => show_finding(&mut part, f, report.results.len()),
            }
            if extent == Extent::Whole {
                show_fix(&mut part, f);
            }
        }
        if let Some(words) =
            rest_summary_after(&shown_findings(report), count + usize::from(reason.is_some()))
        {
            part.prose("", "  ", &format!("{words}: {all_of_it}"));
        }
        part
    };
    let most = all.len();
    let extents = [Extent::Whole, Extent::Sentence, Extent::TwoLines].map(|extent| (most, extent, true));
    let fewer = (1..=most).rev().flat_map(|n| [true, false].map(|apart| (n, Extent::TwoLines, apart)));
    let mut parts = extents.into_iter().chain(fewer).map(|(n, extent, apart)| draw(n, extent, apart));
    let fitting = parts.find(|part| part.lines() <= lines);
    out.append(&fitting.unwrap_or_else(|| draw(most, Extent::TwoLines, true)));
}

/// The first sentence of a finding, in at most two lines.
fn show_two_lines(out: &mut Page, f: &Finding, all: usize) {
    let severity = f.severity.unwrap_or(Severity::Note);
    let mark = out.paint(&f.id.to_string(), severity_colour(severity));
    let accepted = if f.accepted { ", accepted" } else { "" };
    let effect = severity.effect();
    let first =
        f.sentence.split_once(". ").map_or_else(|| f.sentence.clone(), |(first, _)| format!("{first}."));
    out.prose_within(
        2,
        "  ",
        "      ",
        &format!("{mark} {effect} {}{accepted}: {first}", describe_subject(f, all)),
    );
}

/// Checks that need the same thing to be seen have the same reason, which is told once.
fn show_not_checked(out: &mut Page, told: &[Finding], all: usize, brief: bool) {
    let mut unchecked = with_outcome(told, Outcome::NotChecked).peekable();
    if unchecked.peek().is_some() {
        out.line("Not checked");
    }
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    while let Some(f) = unchecked.next() {
        let why = format!("{}: {}", results_suffix(f, all), f.sentence);
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
fn show_passed(out: &mut Page, told: &[Finding]) {
    let silent = |f: &&Finding| !told.iter().any(|g| g.id == f.id && g.outcome != Outcome::Holds);
    let mut held: Vec<CheckId> = with_outcome(told, Outcome::Holds).filter(silent).map(|f| f.id).collect();
    held.dedup();
    if !held.is_empty() {
        out.prose("Passed  ", "        ", &CheckId::list(&held, " "));
    }
}

/// Whether results are many of one kind, so that a finding says the same of each with other numbers.
fn has_many_results(report: &Report) -> bool {
    matches!(report.study, Studied::Limit(_)) || report.study.sweep().is_some_and(Sweep::is_in_order)
}
