//! A comparison as text: the answer first, then every number, then what stands against it.
//!
//! For: people. Not for: machines; that is `json`.

use crate::format::Style;
use crate::page::Page;
use crate::rows::{LEGEND, left_out, rows, source, table};
use model::check_id::CheckId;
use model::comparison::{Answer, Comparison};
use model::finding::{Finding, Outcome, Severity};
use std::io::{self, Write};

pub(super) fn write(comparison: &Comparison, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let code = match comparison.answer {
        Answer::Faster | Answer::Same => "1;32",
        Answer::CannotTell => "1;33",
        Answer::Slower | Answer::Incomparable => "1;31",
    };
    let word = out.paint(comparison.answer.word(), code);
    out.prose(&format!("{word}  "), "  ", &comparison.sentence);
    if let Some(gate) = &comparison.gate {
        out.prose("  ", "  ", &gate.sentence);
    }
    out.line("");
    if !comparison.pairs.is_empty() {
        out.table_of(&table(comparison.pairs.iter().flat_map(rows)));
        out.prose("", "", LEGEND);
    }
    for words in left_out(comparison) {
        out.prose("  ", "    ", &format!("Left out: {words}."));
    }
    out.line("");
    findings(&mut out, comparison);
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        for of in &side.sessions {
            out.prose(&format!("{name}       "), "        ", &source(of));
        }
    }
    out.write(to)
}

fn findings(out: &mut Page, comparison: &Comparison) {
    let of = |outcome| comparison.findings.iter().filter(move |f| f.outcome == outcome);
    if of(Outcome::Finding).next().is_some() {
        out.line("Findings");
    }
    for f in of(Outcome::Finding) {
        let severity = f.severity.unwrap_or(Severity::Note);
        let accepted = if f.accepted { ", accepted" } else { "" };
        let mark = out.paint(&format!("{} {} ({}{accepted})", f.id, f.name, severity.word()), "1");
        out.prose("  ", "      ", &format!("{mark}{}: {}", about(f, comparison), f.sentence));
        if !f.cure.is_empty() {
            out.prose("      -> ", "         ", &f.cure);
        }
    }
    if of(Outcome::NotChecked).next().is_some() {
        out.line("Not checked");
    }
    for f in of(Outcome::NotChecked) {
        out.prose("  ", "      ", &format!("{} {}{}: {}", f.id, f.name, about(f, comparison), f.sentence));
    }
    let silent =
        |f: &&Finding| !comparison.findings.iter().any(|g| g.id == f.id && g.outcome != Outcome::Holds);
    let held: Vec<CheckId> = of(Outcome::Holds).filter(silent).map(|f| f.id).collect();
    if !held.is_empty() {
        out.prose("Held    ", "        ", &CheckId::list(&held, " "));
    }
}

/// Which results a finding is about, where not all.
fn about(finding: &Finding, comparison: &Comparison) -> String {
    let all = finding.about.is_empty() || finding.about.len() >= comparison.pairs.len();
    if all { String::new() } else { format!(" [{}]", finding.about.join(", ")) }
}
