//! A diagnosis as text.
//!
//! For: one line per look, and at the end what to do before measuring, worst first. Not for: JSON, which is the data itself.

use model::diagnosis::{Diagnosis, Look};
use model::finding::{Outcome, Severity};
use report::prose::prose;

/// Columns of the longest word that a line begins with.
const WORD: usize = "NOT CHECKED".len();
/// Columns of the gap between a word and what it is about.
const GAP: usize = 2;

pub(super) fn text(diagnosis: &Diagnosis, colour: bool) -> String {
    let mut out = prose("", "  ", &diagnosis.chain);
    for group in &diagnosis.groups {
        out += &format!("\n{}\n", group.heading);
        for look in &group.looks {
            out += &line(look, colour);
        }
    }
    out + &before_you_measure(diagnosis)
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
        1 => " 1 thing could not be looked at, which is no pass.".into(),
        n => format!(" {n} things could not be looked at, which is no pass."),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnose;
    use crate::doctor::seen::tests::in_order;

    #[test]
    fn a_place_in_order_ends_with_nothing_to_do() {
        let mut seen = in_order();
        // The forged machine has no CPU time between its two looks.
        seen.start.files.insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0\n".into()));
        let text = text(&diagnose(seen), false);
        assert!(!text.contains("FINDING") && !text.contains("NOT CHECKED"), "{text}");
        assert!(
            text.ends_with("Before you measure: nothing was found that would change what a number means.\n"),
            "{text}"
        );
    }

    #[test]
    fn what_acts_is_listed_worst_first_and_notes_and_the_unseen_are_counted() {
        let mut seen = in_order();
        seen.machine.virtual_by = Ok(Some("KVM".into()));
        seen.machine.places[0].layers[1].queue.insert("iostats".into(), "0".into());
        seen.end.targets[0].room = None;
        if let Some(Ok(extents)) = &mut seen.end.targets[0].extents {
            extents.hole_bytes = extents.span_bytes;
        }
        let diagnosis = diagnose(seen);
        let plain = text(&diagnosis, false);
        let (_, list) = plain.split_once("Before you measure:\n").unwrap_or_default();
        assert!(list.starts_with("  1. holes (voids a number, A04): "), "{list}");
        assert!(list.contains("\n  2. counters of sda (biases it, A13): as root: echo 1"), "{list}");
        // Room, and all that needs counters or CPU time that moves.
        assert!(
            list.ends_with("1 note is worth knowing. 4 things could not be looked at, which is no pass.\n"),
            "{list}"
        );
        assert!(text(&diagnosis, true).contains("\x1b[33mFINDING    \x1b[0m"));
        assert!(plain.lines().all(|l| l.chars().count() <= report::prose::WIDTH), "{plain}");
    }
}
