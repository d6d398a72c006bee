//! A diagnosis as text.
//!
//! For: one line per look, and at the end what to do before measuring, worst first. Not for: JSON, which is the data itself.

use crate::format::Style;
use crate::page::Page;
use model::diagnosis::{Diagnosis, Look};
use model::finding::{Outcome, Severity};
use std::io::{self, Write};

/// Columns of the longest word that a line begins with.
const WORD_WIDTH: usize = "NOT CHECKED".len();
/// Columns of the gap between a word and what it is about.
const WORD_GAP: usize = 2;

pub(super) fn write_diagnosis(diagnosis: &Diagnosis, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    out.prose("", "  ", &diagnosis.chain);
    for group in &diagnosis.groups {
        out.line("");
        out.line(&group.heading);
        group.looks.iter().for_each(|look| show_line(&mut out, look));
    }
    before_you_measure(&mut out, diagnosis);
    out.write(to)
}

fn show_line(out: &mut Page, look: &Look) {
    let (word, code) = match look.outcome {
        Outcome::Holds => ("OK", "32"),
        Outcome::Finding => ("FINDING", "33"),
        Outcome::NotChecked => ("NOT CHECKED", "2"),
    };
    let indent = " ".repeat(2 + WORD_WIDTH + WORD_GAP);
    let about = match look.severity {
        Some(severity) => format!("{} ({}{})", look.about, effect(severity), check_name(look)),
        None => look.about.clone(),
    };
    let word = out.paint(&format!("{word:WORD_WIDTH$}"), code);
    out.prose(&format!("  {word}  "), &format!("{indent}  "), &format!("{about}: {}", look.sentence));
    if !look.cure.is_empty() {
        out.prose(&format!("{indent}  -> "), &format!("{indent}     "), &look.cure);
    }
}

/// What a finding would do to a number measured now.
fn effect(severity: Severity) -> &'static str {
    match severity {
        Severity::Void => "invalidates a number",
        Severity::Rename => "relabels it",
        Severity::Biased => "biases it",
        Severity::Note => "note",
    }
}

fn check_name(look: &Look) -> String {
    look.check.map_or_else(String::new, |id| format!(", {id}"))
}

fn before_you_measure(out: &mut Page, diagnosis: &Diagnosis) {
    out.line("");
    let looks = || diagnosis.groups.iter().flat_map(|g| &g.looks);
    let blind = looks().filter(|l| l.outcome == Outcome::NotChecked).count();
    let unseen = match blind {
        0 => String::new(),
        1 => " 1 thing could not be checked and does not count as passed.".into(),
        n => format!(" {n} things could not be checked and do not count as passed."),
    };
    let worst = diagnosis.worst_first();
    let acting: Vec<&&Look> = worst.iter().filter(|l| l.severity != Some(Severity::Note)).collect();
    let notes = worst.len() - acting.len();
    let notes = match notes {
        0 => String::new(),
        1 => " 1 note is worth knowing.".into(),
        n => format!(" {n} notes are worth knowing."),
    };
    if acting.is_empty() {
        let said = format!(
            "Before you measure: nothing was found that would change what a number means.{notes}{unseen}"
        );
        out.prose("", "  ", &said);
        return;
    }
    out.line("Before you measure:");
    for (i, look) in acting.iter().enumerate() {
        let todo = if look.cure.is_empty() { "nothing can be done about it here" } else { &look.cure };
        let about =
            format!("{} ({}{}): {todo}", look.about, look.severity.map_or("", effect), check_name(look));
        out.prose(&format!("  {}. ", i + 1), "     ", &about);
    }
    let rest = format!("{notes}{unseen}");
    if !rest.is_empty() {
        out.prose("", "  ", rest.trim());
    }
}
