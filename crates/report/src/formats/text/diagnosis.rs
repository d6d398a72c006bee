//! A diagnosis as text.
//!
//! For: one line per look, and at the end what to do before measuring, worst first. Not for: JSON, which is the data itself.

use crate::format::Style;
use crate::prose::prose;
use model::diagnosis::{Diagnosis, Look};
use model::finding::{Outcome, Severity};
use std::io::{self, Write};

/// Columns of the longest word that a line begins with.
const WORD: usize = "NOT CHECKED".len();
/// Columns of the gap between a word and what it is about.
const GAP: usize = 2;

pub(super) fn write(diagnosis: &Diagnosis, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = prose("", "  ", &diagnosis.chain);
    for group in &diagnosis.groups {
        out += &format!("\n{}\n", group.heading);
        for look in &group.looks {
            out += &line(look, style.colour);
        }
    }
    out += &before_you_measure(diagnosis);
    to.write_all(out.as_bytes())
}

fn line(look: &Look, colour: bool) -> String {
    let (word, code) = match look.outcome {
        Outcome::Holds => ("OK", "32"),
        Outcome::Finding => ("FINDING", "33"),
        Outcome::NotChecked => ("NOT CHECKED", "2"),
    };
    let indent = " ".repeat(2 + WORD + GAP);
    let padded = format!("{word:WORD$}");
    let about = match look.severity {
        Some(severity) => format!("{} ({}{})", look.about, effect(severity), id(look)),
        None => look.about.clone(),
    };
    let said =
        prose(&format!("  {padded}  "), &format!("{indent}  "), &format!("{about}: {}", look.sentence));
    let painted =
        if colour { said.replacen(&padded, &format!("\x1b[{code}m{padded}\x1b[0m"), 1) } else { said };
    if look.cure.is_empty() {
        return painted;
    }
    painted + &prose(&format!("{indent}  -> "), &format!("{indent}     "), &look.cure)
}

/// What a finding would do to a number measured now.
fn effect(severity: Severity) -> &'static str {
    match severity {
        Severity::Void => "voids a number",
        Severity::Rename => "renames it",
        Severity::Biased => "biases it",
        Severity::Note => "note",
    }
}

fn id(look: &Look) -> String {
    look.check.map_or_else(String::new, |id| format!(", {id}"))
}

fn before_you_measure(diagnosis: &Diagnosis) -> String {
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
        return format!("\n{}", prose("", "  ", &said));
    }
    let mut out = String::from("\nBefore you measure:\n");
    for (i, look) in acting.iter().enumerate() {
        let todo = if look.cure.is_empty() { "nothing can be done about it here" } else { &look.cure };
        let about = format!("{} ({}{}): {todo}", look.about, look.severity.map_or("", effect), id(look));
        out += &prose(&format!("  {}. ", i + 1), "     ", &about);
    }
    let rest = format!("{notes}{unseen}");
    if rest.is_empty() { out } else { out + &prose("", "  ", rest.trim()) }
}
