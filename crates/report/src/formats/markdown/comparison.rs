//! A comparison in Markdown: what a machine writes below a change for people to read.
//!
//! For: the answer, the table and the findings. Not for: everything; that is `json`.

use super::code;
use crate::format::{Detail, Style};
use crate::rows::{LEGEND, asked, left_out, source, table};
use crate::table::escaped;
use crate::worst::{first_of, rest_of};
use crate::{command, side_by_side};
use model::comparison::{Comparison, Comparisons, Gate, Side};
use model::finding::{Finding, Outcome};
use model::report::CountsAs;
use std::io::{self, Write};
use std::path::Path;

pub(super) fn write(comparison: &Comparison, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let all = style.detail == Detail::All;
    let rows = table(&comparison.pairs, all).markdown();
    let mut out = gated(asked(comparison.gate.as_ref(), std::iter::once(comparison.answer)));
    if style.detail == Detail::Brief {
        return to.write_all((out + &rows).as_bytes());
    }
    out += &answer(comparison);
    if !comparison.pairs.is_empty() {
        out += &format!("\n{rows}\n{LEGEND}\n");
    }
    let mut items: Vec<String> =
        left_out(comparison, "B").iter().map(|words| format!("Left out: {words}.")).collect();
    items.extend(found(&comparison.findings, all));
    items.extend(sides("A", &comparison.a).chain(sides("B", &comparison.b)));
    out += &listed(&items);
    out += &typed([&comparison.a, &comparison.b].into_iter());
    to.write_all(out.as_bytes())
}

pub(super) fn write_several(comparisons: &Comparisons, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let all = style.detail == Detail::All;
    let rows = side_by_side::table(comparisons, all, true).markdown();
    let words = comparisons.others.iter().map(|other| other.comparison.answer);
    let mut out = gated(asked(comparisons.gate.as_ref(), words));
    if style.detail == Detail::Brief {
        return to.write_all((out + &rows).as_bytes());
    }
    let answers: Vec<String> = comparisons.others.iter().map(|other| answer(&other.comparison)).collect();
    out += &answers.join("\n");
    out += &format!("\n{rows}\n{}\n", side_by_side::LEGEND);
    let mut items = Vec::new();
    for other in &comparisons.others {
        let words = left_out(&other.comparison, &other.name);
        items.extend(words.iter().map(|words| format!("Left out of {}: {words}.", other.name)));
    }
    items.extend(found(&side_by_side::findings(comparisons), all));
    let first = comparisons.others.first().map(|other| &other.comparison.a);
    items.extend(first.into_iter().flat_map(|a| sides("A", a)));
    items.extend(comparisons.others.iter().flat_map(|other| sides(&other.name, &other.comparison.b)));
    out += &listed(&items);
    out += &typed(first.into_iter().chain(comparisons.others.iter().map(|other| &other.comparison.b)));
    to.write_all(out.as_bytes())
}

fn answer(comparison: &Comparison) -> String {
    format!("**{}** {}\n", comparison.answer.word(), escaped(&comparison.sentence))
}

fn gated(gate: Option<&Gate>) -> String {
    gate.map_or_else(String::new, |gate| {
        let remark = gate.counts_as.map_or("", CountsAs::remark);
        format!("**{}**{remark} {}\n\n", gate.outcome.word().word(), escaped(&gate.sentence))
    })
}

/// All that was found and not checked, or the worst and how many more there are.
fn found(findings: &[Finding], all: bool) -> Vec<String> {
    let shown = if all { findings.to_vec() } else { first_of(findings.to_vec()) };
    let item = |f: &Finding| {
        let not_checked = if f.outcome == Outcome::NotChecked { ", not checked" } else { "" };
        format!("{} {}{not_checked}: {}", f.id, f.name, f.sentence)
    };
    let items = shown.iter().filter(|f| f.outcome != Outcome::Holds).map(item);
    let rest = rest_of(findings).filter(|_| !all).map(|rest| format!("{rest}: --verbose shows them"));
    items.chain(rest).collect()
}

fn sides<'s>(name: &'s str, side: &'s Side) -> impl Iterator<Item = String> + 's {
    side.sessions.iter().map(move |session| format!("{name}: {}", source(session)))
}

fn listed(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("- {}\n", escaped(item))).collect();
    format!("\n{}", items.concat())
}

/// The command that compares these sides; nothing where a session is not kept, and so cannot be named.
fn typed<'s>(sides: impl Iterator<Item = &'s Side>) -> String {
    let side = |side: &Side| -> Option<String> {
        let ids = side.sessions.iter().map(|source| {
            let id = Path::new(source.session.as_ref()?).file_stem()?;
            Some(id.to_string_lossy().into_owned())
        });
        ids.collect::<Option<Vec<String>>>().map(|ids| ids.join(","))
    };
    let words = ["fathom", "compare"].map(|word| Some(word.to_owned())).into_iter().chain(sides.map(side));
    let words: Option<Vec<String>> = words.collect();
    words.map_or_else(String::new, |words| format!("\n{}\n", code(&command::line(&words))))
}
