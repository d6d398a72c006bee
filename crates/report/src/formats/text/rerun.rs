//! An earlier session, measured again beside this one.
//!
//! For: the numbers of both sides below the table of this one, and whether the machine is still the same. Not for: the findings
//! about the earlier workloads, nor every number of many results; the JSON has them.

use crate::page::Page;
use crate::rows::{PAIR_LEGEND, pair_table};
use model::comparison::{Answer, Comparison};
use model::report::Rerun;

pub(super) fn show_rerun(out: &mut Page, against: &Rerun) {
    let beside = &against.beside;
    out.prose(
        "",
        "  ",
        &format!("Against {} (A), measured again, alternating with this one (B)", against.session),
    );
    show_rerun_brief(out, against);
    if !beside.pairs.is_empty() {
        out.prose("", "", PAIR_LEGEND);
    }
    out.prose("  ", "    ", &describe_machine_changes(&against.since));
    out.line("");
}

/// The answer and its table alone.
pub(super) fn show_rerun_brief(out: &mut Page, against: &Rerun) {
    let beside = &against.beside;
    out.prose(&format!("  {}  ", beside.answer.word()), "    ", &beside.sentence);
    if !beside.pairs.is_empty() {
        out.table(&pair_table(&beside.pairs, false));
    }
}

/// Whether the machine is what it was.
fn describe_machine_changes(since: &Comparison) -> String {
    let Some(pair) = since.headline() else { return format!("A then: {}", since.sentence) };
    let Some(metric) = pair.metrics.first() else { return format!("A then: {}", since.sentence) };
    let numbers = format!("A then: {}, now: {}", metric.show(metric.a), metric.show(metric.b));
    let word = match metric.answer {
        Answer::Same => "the machine has not changed".to_owned(),
        Answer::NoDifferenceSeen => {
            let bound = metric.bound().unwrap_or_default();
            format!("no change of the machine was seen: it is {bound} now")
        }
        Answer::CannotTell | Answer::Incomparable | Answer::Invalid => {
            format!("whether the machine has changed cannot be told: {}", metric.why)
        }
        other => format!("{}: the machine has changed", other.word()),
    };
    let different: Vec<String> =
        pair.differences.iter().map(|d| format!("{} {} -> {}", d.aspect, d.a, d.b)).collect();
    let different = if different.is_empty() { String::new() } else { format!(" ({})", different.join("; ")) };
    format!("{numbers}; {word}{different}.")
}
