//! Rows of a comparison's table: a line per number.
//!
//! For: cells that text and Markdown share. Not for: how a table looks.

use model::comparison::{Answer, Comparison, Metric, Pair, Source};
use model::units::{show_change, show_share};

/// Headings, the last column being words.
pub(crate) const HEADINGS: [&str; 8] =
    ["test", "number", "A", "B", "change", "95 % interval", "could have seen", "answer"];

/// What stands below the table.
pub(crate) const LEGEND: &str = "A and B are geometric means over runs, a percentile being that of a typical run; could have \
                                 seen: a difference of that size mostly gets a word; ranks and Holm are in the answers.";

pub(crate) type Row = [String; HEADINGS.len()];

/// All rows of a pair; of one that is refused a single row that says so.
pub(crate) fn rows(pair: &Pair) -> Vec<Row> {
    let mut rows: Vec<Row> = pair.metrics.iter().map(row).collect();
    if rows.is_empty() {
        let mut row: Row = std::array::from_fn(|_| "-".into());
        row[1].clear();
        Answer::Incomparable.word().clone_into(&mut row[HEADINGS.len() - 1]);
        rows.push(row);
    }
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = if i == 0 { pair.name.clone() } else { String::new() };
    }
    rows
}

fn row(metric: &Metric) -> Row {
    let interval = metric
        .interval
        .map_or_else(|| "-".into(), |[low, high]| format!("{} to {}", show_change(low), show_change(high)));
    let needed = metric.runs_needed.map_or_else(String::new, |n| format!("; about {n} runs each would"));
    [
        String::new(),
        metric.name.clone(),
        value(metric, metric.a),
        value(metric, metric.b),
        show_change(metric.ratio),
        interval,
        metric.could_have_seen.map_or_else(|| "-".into(), show_share),
        format!("{}{needed}", metric.answer.word()),
    ]
}

/// A value, without a unit that its name says.
fn value(metric: &Metric, value: f64) -> String {
    let shown = metric.show(value);
    let bare = shown.strip_suffix(&metric.name).map(str::trim_end);
    bare.map_or_else(|| shown.clone(), str::to_owned)
}

/// `bench cdm, 2026-11-21T10:00:00Z, VALID, FILE`.
pub(super) fn source(source: &Source) -> String {
    let session = source.session.as_deref().map_or_else(String::new, |s| format!(", {s}"));
    format!("{}, {}, {:?}{session}", source.title, source.started, source.verdict).replace("\n", " ")
}

/// What was left out, a sentence each.
pub(super) fn left_out(comparison: &Comparison) -> Vec<String> {
    let of_pairs =
        comparison.pairs.iter().flat_map(|p| p.left_out.iter().map(|w| format!("{}, {w}", p.name)));
    let only = [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty());
    of_pairs.chain(only.map(|(side, names)| format!("only {side} has {}", names.join(", ")))).collect()
}
