//! A comparison in Markdown: what a machine writes below a change for people to read.
//!
//! For: the answer, the table and the findings. Not for: everything; that is `json`.

use crate::format::Style;
use crate::rows::{HEADINGS, LEGEND, left_out, rows, source};
use model::comparison::Comparison;
use model::finding::Outcome;
use std::io::{self, Write};

pub(super) fn write(comparison: &Comparison, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = format!("**{}** {}\n", comparison.answer.word(), escaped(&comparison.sentence));
    if let Some(gate) = &comparison.gate {
        out += &format!("\n{}\n", escaped(&gate.sentence));
    }
    if !comparison.pairs.is_empty() {
        out += &format!("\n{}|{}\n", line(&HEADINGS.map(str::to_owned)), "---|".repeat(HEADINGS.len()));
        out.extend(comparison.pairs.iter().flat_map(rows).map(|row| line(&row)));
        out += &format!("\n{LEGEND}\n");
    }
    let mut items: Vec<String> = left_out(comparison).iter().map(|w| format!("Left out: {w}.")).collect();
    for f in comparison.findings.iter().filter(|f| f.outcome != Outcome::Holds) {
        let not_checked = if f.outcome == Outcome::NotChecked { ", not checked" } else { "" };
        items.push(format!("{} {}{not_checked}: {}", f.id, f.name, f.sentence));
    }
    let sides = [("A", &comparison.a), ("B", &comparison.b)];
    items.extend(
        sides.iter().flat_map(|(n, side)| side.sessions.iter().map(move |s| format!("{n}: {}", source(s)))),
    );
    out.push('\n');
    out.extend(items.iter().map(|item| format!("- {}\n", escaped(item))));
    to.write_all(out.as_bytes())
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|c| escaped(c)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Text that no reader takes for marks: names are foreign text.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[test]
fn foreign_text_is_no_mark() {
    assert_eq!(escaped("a|b*c <d>\n`e`"), "a\\|b\\*c \\<d\\> \\`e\\`");
    assert_eq!(line(&["x|y".into(), String::new()]), "| x\\|y |  |\n");
}
