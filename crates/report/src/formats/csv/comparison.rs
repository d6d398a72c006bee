//! A comparison as CSV (RFC 4180): a line per number and side that is compared with the first.
//!
//! For: spreadsheets and scripts; an empty field is not known. Not for: findings and single runs; those are in `json`.

use crate::format::Style;
use csv::{Terminator, WriterBuilder};
use model::comparison::{Comparison, Comparisons, Metric, Pair};
use std::io;

const COMPARISON_HEADINGS: [&str; 18] = [
    "side",
    "result",
    "number",
    "unit",
    "a",
    "b",
    "ratio",
    "ratio_low",
    "ratio_high",
    "margin",
    "answer",
    "visible",
    "runs_a",
    "runs_b",
    "runs_needed",
    "why",
    "tolerance",
    "runs_to_halve",
];

/// Column of the reason.
const REASON_COLUMN: usize = 15;

pub(super) fn write_comparison(comparison: &Comparison, _: Style, to: &mut dyn io::Write) -> io::Result<()> {
    write_sides([("B", comparison)].into_iter(), to)
}

pub(super) fn write_several(comparisons: &Comparisons, _: Style, to: &mut dyn io::Write) -> io::Result<()> {
    write_sides(comparisons.others.iter().map(|other| (other.name.as_str(), &other.comparison)), to)
}

fn write_sides<'c>(
    sides: impl Iterator<Item = (&'c str, &'c Comparison)>,
    to: &mut dyn io::Write,
) -> io::Result<()> {
    let mut out: csv::Writer<_> = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(to);
    out.write_record(COMPARISON_HEADINGS)?;
    for (side, pair) in sides.flat_map(|(side, comparison)| comparison.pairs.iter().map(move |p| (side, p))) {
        if pair.metrics.is_empty() {
            out.write_record(not_compared_fields(side, pair))?;
        }
        pair.metrics.iter().try_for_each(|metric| out.write_record(number_fields(side, pair, metric)))?;
    }
    out.flush()
}

fn number_fields(side: &str, pair: &Pair, metric: &Metric) -> [String; COMPARISON_HEADINGS.len()] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    [
        side.into(),
        pair.name.clone(),
        metric.name.clone(),
        metric.unit.clone(),
        metric.a.to_string(),
        metric.b.to_string(),
        metric.ratio.to_string(),
        number(metric.interval.map(|ends| ends[0])),
        number(metric.interval.map(|ends| ends[1])),
        metric.margin.to_string(),
        metric.answer.word().into(),
        number(metric.could_have_seen),
        metric.a_runs.len().to_string(),
        metric.b_runs.len().to_string(),
        number(metric.runs_needed.map(f64::from)),
        metric.why.clone(),
        number(metric.tolerance),
        number(metric.runs_to_halve.map(f64::from)),
    ]
}

/// A result that is not compared has one line, with the reason.
fn not_compared_fields(side: &str, pair: &Pair) -> [String; COMPARISON_HEADINGS.len()] {
    let mut row: [String; COMPARISON_HEADINGS.len()] = std::array::from_fn(|_| String::new());
    side.clone_into(&mut row[0]);
    row[1].clone_from(&pair.name);
    pair.refusal().word().clone_into(&mut row[10]);
    row[REASON_COLUMN] = pair.refused.clone().unwrap_or_default();
    row
}
