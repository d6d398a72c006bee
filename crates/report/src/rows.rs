//! Rows of a comparison's table: a line per number.
//!
//! For: cells that text and Markdown share. Not for: how a table looks.

use crate::table::Table;
use model::comparison::{Answer, Comparison, Metric, Pair, Source};
use model::units::{show_change, show_share};

/// Headings, the first and the last column being words.
const HEADINGS: [&str; 8] = ["number", "A", "B", "change", "95 % interval", "visible", "runs", "answer"];

/// What stands below the table.
pub(crate) const LEGEND: &str = "A and B are geometric means over runs, a percentile being that of a typical run; \
                                 visible: the smallest difference usually detected; runs: about so many on each \
                                 side would settle it.";

pub(crate) type Row = [String; HEADINGS.len()];

/// Columns that leave where there is no room, the first of them first.
const LEAVING: [usize; 5] = [5, 6, 1, 2, 4];

/// A table of these rows.
pub(crate) fn table(rows: impl IntoIterator<Item = Row>) -> Table {
    let mut table = Table::new(&HEADINGS, &LEAVING);
    table.add_all(rows);
    table
}

/// All rows of a pair, its name first. That of one that is not compared says so.
pub(crate) fn rows(pair: &Pair) -> Vec<Row> {
    let mut name: Row = std::array::from_fn(|_| String::new());
    name[0] = format!("{}:", pair.name);
    if pair.metrics.is_empty() {
        Answer::Incomparable.word().clone_into(&mut name[HEADINGS.len() - 1]);
    }
    std::iter::once(name).chain(pair.metrics.iter().map(row)).collect()
}

fn row(metric: &Metric) -> Row {
    let none = || "-".to_owned();
    let interval = metric
        .interval
        .map_or_else(none, |[low, high]| format!("{} to {}", show_change(low), show_change(high)));
    [
        format!("  {}", metric.name),
        value(metric, metric.a),
        value(metric, metric.b),
        show_change(metric.ratio),
        interval,
        metric.could_have_seen.map_or_else(none, show_share),
        runs(metric),
        metric.answer.word().into(),
    ]
}

/// Runs that would settle it, where it is not settled and they can be told.
fn runs(metric: &Metric) -> String {
    match (metric.answer, metric.runs_needed, metric.interval) {
        (_, Some(runs), _) => runs.to_string(),
        (Answer::CannotTell, None, Some(_)) => ">1000".into(),
        _ => String::new(),
    }
}

/// A value, without a unit that its name says.
fn value(metric: &Metric, value: f64) -> String {
    let shown = metric.show(value);
    let bare = shown.strip_suffix(&metric.name).map(str::trim_end);
    bare.map_or_else(|| shown.clone(), str::to_owned)
}

/// `bench cdm, 2026-11-21T10:00:00Z, VALID, FILE`.
pub(crate) fn source(source: &Source) -> String {
    let session = source.session.as_deref().map_or_else(String::new, |s| format!(", {s}"));
    format!("{}, {}, {}{session}", source.title, source.started, source.verdict.word())
}

/// What was left out, a sentence each.
pub(crate) fn left_out(comparison: &Comparison) -> Vec<String> {
    let of_pairs =
        comparison.pairs.iter().flat_map(|p| p.left_out.iter().map(|w| format!("{}, {w}", p.name)));
    let only = [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty());
    of_pairs.chain(only.map(|(side, names)| format!("only {side} has {}", names.join(", ")))).collect()
}
