//! A comparison as text: the answer, the table of numbers, the findings, and what each side is.

use crate::format::{Detail, Style};
use crate::page::Page;
use crate::rows::{PAIR_LEGEND, describe_source, hidden_numbers, left_out_notes, pair_table, shown_gate};
use crate::side_by_side;
use crate::worst::{rest_summary_of, worst_of};
use model::answer::CountsAs;
use model::check_id::CheckId;
use model::comparison::{Answer, Comparison, Comparisons, Gate, Passing, Side};
use model::finding::{Finding, Outcome, Severity};
use std::io::{self, Write};

/// How what is left out is seen: a comparison has no session.
const TO_SEE_ALL: &str = "--verbose shows them";

pub(super) fn write(comparison: &Comparison, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let all = style.detail == Detail::All;
    let rows = pair_table(&comparison.pairs, all);
    show_gate(&mut out, shown_gate(comparison.gate.as_ref(), std::iter::once(comparison.answer)));
    if style.detail == Detail::Brief {
        out.table(&rows);
        return out.write(to);
    }
    show_answer(&mut out, comparison);
    out.line("");
    if !comparison.pairs.is_empty() {
        out.table(&rows);
        out.prose("", "", PAIR_LEGEND);
        if let Some(words) = hidden_numbers(&comparison.pairs, all) {
            out.prose("", "  ", &words);
        }
    }
    for words in left_out_notes(comparison, "B") {
        out.prose("  ", "    ", &format!("Left out: {words}."));
    }
    out.line("");
    show_findings(&mut out, &comparison.findings, comparison.pairs.len(), all);
    show_side(&mut out, "A", &comparison.a);
    show_side(&mut out, "B", &comparison.b);
    out.write(to)
}

pub(super) fn write_several(comparisons: &Comparisons, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let all = style.detail == Detail::All;
    let of = |joined| side_by_side::sides_table(comparisons, all, joined);
    let fits = [of(true), of(false)].into_iter().find(|table| table.is_table_in(style.width));
    let rows = fits.unwrap_or_else(|| of(true));
    let words = comparisons.others.iter().map(|other| other.comparison.answer);
    show_gate(&mut out, shown_gate(comparisons.gate.as_ref(), words));
    if style.detail == Detail::Brief {
        out.table(&rows);
        return out.write(to);
    }
    for other in &comparisons.others {
        show_answer(&mut out, &other.comparison);
    }
    out.line("");
    if !rows.is_empty() {
        out.table(&rows);
        out.prose("", "", side_by_side::SIDES_LEGEND);
        if let Some(words) = side_by_side::hidden_side_numbers(comparisons, all) {
            out.prose("", "  ", &words);
        }
    }
    for other in &comparisons.others {
        for words in left_out_notes(&other.comparison, &other.name) {
            out.prose("  ", "    ", &format!("Left out of {}: {words}.", other.name));
        }
    }
    out.line("");
    show_findings(&mut out, &side_by_side::side_findings(comparisons), usize::MAX, all);
    if let Some(first) = comparisons.others.first() {
        show_side(&mut out, "A", &first.comparison.a);
    }
    comparisons.others.iter().for_each(|other| show_side(&mut out, &other.name, &other.comparison.b));
    out.write(to)
}

/// The gate, where one was asked.
fn show_gate(out: &mut Page, gate: Option<&Gate>) {
    let Some(gate) = gate else { return };
    let code = match gate.outcome {
        Passing::Passed => "1;32",
        Passing::Undecided => "1;33",
        Passing::Invalid | Passing::Failed => "1;31",
    };
    let word = out.paint(gate.outcome.word().word(), code);
    let remark = gate.counts_as.map_or("", CountsAs::remark);
    out.prose(&format!("{word}{remark}  "), "  ", &gate.sentence);
}

fn show_answer(out: &mut Page, comparison: &Comparison) {
    let code = match comparison.answer {
        Answer::Faster | Answer::Same => "1;32",
        Answer::NoDifferenceSeen | Answer::CannotTell => "1;33",
        Answer::Slower | Answer::Incomparable | Answer::Invalid => "1;31",
    };
    let word = out.paint(comparison.answer.word(), code);
    out.prose(&format!("{word}  "), "  ", &comparison.sentence);
}

/// What was put on a side.
fn show_side(out: &mut Page, name: &str, side: &Side) {
    for of in &side.sessions {
        out.prose(&format!("{name:<8}"), "        ", &describe_source(of));
    }
}

/// All of them, or the worst and how many more there are. `results` of them are all.
fn show_findings(out: &mut Page, findings: &[Finding], results: usize, all: bool) {
    if !all {
        let first = worst_of(findings.to_vec());
        list_findings(out, first.iter(), results);
        if let Some(rest) = rest_summary_of(findings) {
            out.prose("", "  ", &format!("{rest}: {TO_SEE_ALL}"));
        }
        return;
    }
    let of = |outcome| findings.iter().filter(move |f| f.outcome == outcome);
    list_findings(out, of(Outcome::Finding), results);
    if of(Outcome::NotChecked).next().is_some() {
        out.line("Not checked");
    }
    for f in of(Outcome::NotChecked) {
        out.prose(
            "  ",
            "      ",
            &format!("{} {}{}: {}", f.id, f.name, results_suffix(f, results), f.sentence),
        );
    }
    let silent = |f: &&Finding| !findings.iter().any(|g| g.id == f.id && g.outcome != Outcome::Holds);
    let mut held: Vec<CheckId> = of(Outcome::Holds).filter(silent).map(|f| f.id).collect();
    held.dedup();
    if !held.is_empty() {
        out.prose("Passed  ", "        ", &CheckId::list(&held, " "));
    }
}

fn list_findings<'f>(out: &mut Page, findings: impl Iterator<Item = &'f Finding>, results: usize) {
    let mut findings = findings.peekable();
    if findings.peek().is_some() {
        out.line("Findings");
    }
    for f in findings {
        let severity = f.severity.unwrap_or(Severity::Note);
        let accepted = if f.accepted { ", accepted" } else { "" };
        let mark = out.paint(&format!("{} {} ({}{accepted})", f.id, f.name, severity.effect()), "1");
        out.prose("  ", "      ", &format!("{mark}{}: {}", results_suffix(f, results), f.sentence));
        if !f.cure.is_empty() {
            out.prose("      -> ", "         ", &f.cure);
        }
    }
}

/// Which results a finding is about, where not all.
fn results_suffix(finding: &Finding, results: usize) -> String {
    let all = finding.about.is_empty() || finding.about.len() >= results;
    if all { String::new() } else { format!(" [{}]", finding.about.join(", ")) }
}
