//! A comparison in Markdown: what a machine writes below a change for people to read.
//!
//! For: the answer, the table and the findings. Not for: everything; that is `json`.

use super::code;
use crate::command;
use crate::format::Style;
use crate::rows::{LEGEND, left_out, rows, source, table};
use crate::table::escaped;
use model::comparison::{Comparison, Side};
use model::finding::Outcome;
use std::io::{self, Write};
use std::path::Path;

pub(super) fn write(comparison: &Comparison, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = format!("**{}** {}\n", comparison.answer.word(), escaped(&comparison.sentence));
    if let Some(gate) = &comparison.gate {
        out += &format!("\n{}\n", escaped(&gate.sentence));
    }
    if !comparison.pairs.is_empty() {
        let table = table(comparison.pairs.iter().flat_map(rows));
        out += &format!("\n{}\n{LEGEND}\n", table.markdown());
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
    if let Some(words) = typed(comparison) {
        out += &format!("\n{}\n", code(&command::line(&words)));
    }
    to.write_all(out.as_bytes())
}

/// The command that compares them; `None` where a session is not kept, and so cannot be named.
fn typed(comparison: &Comparison) -> Option<Vec<String>> {
    let side = |side: &Side| -> Option<String> {
        let ids = side.sessions.iter().map(|source| {
            let id = Path::new(source.session.as_ref()?).file_stem()?;
            Some(id.to_string_lossy().into_owned())
        });
        ids.collect::<Option<Vec<String>>>().map(|ids| ids.join(","))
    };
    Some(vec!["fathom".into(), "compare".into(), side(&comparison.a)?, side(&comparison.b)?])
}
