//! A diagnosis in Markdown: what was seen of a place, for whoever is asked about it.
//!
//! For: the worst first, then every look in a table. Not for: programs; that is `json`.

use super::code;
use crate::command;
use crate::format::Style;
use crate::table::{Table, escaped};
use model::diagnosis::{Diagnosis, Look};
use model::finding::{Outcome, Severity};
use std::io::{self, Write};

/// Findings that stand before the table.
const MAX_DIAGNOSIS_ITEMS: usize = 3;

pub(super) fn write_diagnosis(diagnosis: &Diagnosis, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let looks = || diagnosis.groups.iter().flat_map(|g| &g.looks);
    let count = |outcome| looks().filter(|l| l.outcome == outcome).count();
    let mut out = format!(
        "**{} findings, {} not checked, {} in order** {}\n",
        count(Outcome::Finding),
        count(Outcome::NotChecked),
        count(Outcome::Holds),
        escaped(&diagnosis.chain)
    );
    let acts = |look: &&&Look| look.severity != Some(Severity::Note);
    let worst: Vec<String> = diagnosis
        .worst_first()
        .iter()
        .filter(acts)
        .take(MAX_DIAGNOSIS_ITEMS)
        .map(|l| diagnosis_item(l))
        .collect();
    if !worst.is_empty() {
        out += &format!("\n{}", worst.concat());
    }
    let mut table = Table::new(&["what", "answer", "seen"], &[]).aligned(1, true);
    table.add_all(looks().map(|look| [look.about.clone(), check_answer(look), look.sentence.clone()]));
    out += &format!(
        "\n{}\n{}\n",
        table.markdown(),
        code(&command::command_line(&["fathom".into(), "doctor".into(), diagnosis.target.clone()]))
    );
    to.write_all(out.as_bytes())
}

fn diagnosis_item(look: &Look) -> String {
    let cure = if look.cure.is_empty() { String::new() } else { format!(" -> {}", look.cure) };
    format!("- **{}**: {}\n", escaped(&look.about), escaped(&format!("{}{cure}", look.sentence)))
}

fn check_answer(look: &Look) -> String {
    let id = look.check.map_or_else(String::new, |id| format!(" {id}"));
    match (look.outcome, look.severity) {
        (Outcome::Holds, _) => "OK".into(),
        (Outcome::NotChecked, _) => "NOT CHECKED".into(),
        (Outcome::Finding, severity) => format!("{}{id}", severity.unwrap_or(Severity::Note).effect()),
    }
}
