//! A comparison in Markdown: what a machine writes below a change for people to read.
//!
//! For: the answer, the table and the findings. Not for: everything; that is `json`.

use super::code;
use crate::command;
use crate::format::{Detail, Style};
use crate::rows::{PAIR_LEGEND, describe_source, left_out_notes, pair_table, shown_gate};
use crate::side_by_side;
use crate::table::escaped;
use crate::worst::{rest_summary_of, worst_of};
use model::comparison::{Comparison, Comparisons, Gate, Side};
use model::finding::{Finding, Outcome};
use model::report::CountsAs;
use std::io::{self, Write};
use std::path::Path;

pub(super) fn write_comparison(comparison: &Comparison, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let all = style.detail == Detail::All;
    let rows = pair_table(&comparison.pairs, all).markdown();
    let mut out = gate_text(shown_gate(comparison.gate.as_ref(), std::iter::once(comparison.answer)));
    if style.detail == Detail::Brief {
        return to.write_all((out + &rows).as_bytes());
    }
    out += &comparison_answer(comparison);
    if !comparison.pairs.is_empty() {
        out += &format!("\n{rows}\n{PAIR_LEGEND}\n");
    }
    let mut items: Vec<String> =
        left_out_notes(comparison, "B").iter().map(|words| format!("Left out: {words}.")).collect();
    items.extend(finding_items(&comparison.findings, all));
    items.extend(side_items("A", &comparison.a).chain(side_items("B", &comparison.b)));
    out += &bullet_list(&items);
    out += &compare_command([&comparison.a, &comparison.b].into_iter());
    to.write_all(out.as_bytes())
}

pub(super) fn write_several(comparisons: &Comparisons, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let all = style.detail == Detail::All;
    let rows = side_by_side::sides_table(comparisons, all, true).markdown();
    let words = comparisons.others.iter().map(|other| other.comparison.answer);
    let mut out = gate_text(shown_gate(comparisons.gate.as_ref(), words));
    if style.detail == Detail::Brief {
        return to.write_all((out + &rows).as_bytes());
    }
    let answers: Vec<String> =
        comparisons.others.iter().map(|other| comparison_answer(&other.comparison)).collect();
    out += &answers.join("\n");
    out += &format!("\n{rows}\n{}\n", side_by_side::SIDES_LEGEND);
    let mut items = Vec::new();
    for other in &comparisons.others {
        let words = left_out_notes(&other.comparison, &other.name);
        items.extend(words.iter().map(|words| format!("Left out of {}: {words}.", other.name)));
    }
    items.extend(finding_items(&side_by_side::side_findings(comparisons), all));
    let first = comparisons.others.first().map(|other| &other.comparison.a);
    items.extend(first.into_iter().flat_map(|a| side_items("A", a)));
    items.extend(comparisons.others.iter().flat_map(|other| side_items(&other.name, &other.comparison.b)));
    out += &bullet_list(&items);
    out +=
        &compare_command(first.into_iter().chain(comparisons.others.iter().map(|other| &other.comparison.b)));
    to.write_all(out.as_bytes())
}

fn comparison_answer(comparison: &Comparison) -> String {
    format!("**{}** {}\n", comparison.answer.word(), escaped(&comparison.sentence))
}

fn gate_text(gate: Option<&Gate>) -> String {
    gate.map_or_else(String::new, |gate| {
        let remark = gate.counts_as.map_or("", CountsAs::remark);
        format!("**{}**{remark} {}\n\n", gate.outcome.word().word(), escaped(&gate.sentence))
    })
}

/// All that was found and not checked, or the worst and how many more there are.
fn finding_items(findings: &[Finding], all: bool) -> Vec<String> {
    let shown = if all { findings.to_vec() } else { worst_of(findings.to_vec()) };
    let item = |f: &Finding| {
        let not_checked = if f.outcome == Outcome::NotChecked { ", not checked" } else { "" };
        format!("{} {}{not_checked}: {}", f.id, f.name, f.sentence)
    };
    let items = shown.iter().filter(|f| f.outcome != Outcome::Holds).map(item);
    let rest = rest_summary_of(findings).filter(|_| !all).map(|rest| format!("{rest}: --verbose shows them"));
    items.chain(rest).collect()
}

fn side_items<'s>(name: &'s str, side: &'s Side) -> impl Iterator<Item = String> + 's {
    side.sessions.iter().map(move |session| format!("{name}: {}", describe_source(session)))
}

fn bullet_list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("- {}\n", escaped(item))).collect();
    format!("\n{}", items.concat())
}

/// The command that compares these sides; nothing where a session is not kept, and so cannot be named.
fn compare_command<'s>(sides: impl Iterator<Item = &'s Side>) -> String {
    let side = |side: &Side| -> Option<String> {
        let ids = side.sessions.iter().map(|source| {
            let id = Path::new(source.session.as_ref()?).file_stem()?;
            Some(id.to_string_lossy().into_owned())
        });
        ids.collect::<Option<Vec<String>>>().map(|ids| ids.join(","))
    };
    let words = ["fathom", "compare"].map(|word| Some(word.to_owned())).into_iter().chain(sides.map(side));
    let words: Option<Vec<String>> = words.collect();
    words.map_or_else(String::new, |words| format!("\n{}\n", code(&command::command_line(&words))))
}
