//! The table of targets: the same tests on each, and which is faster.
//!
//! For: a report of several targets; it stands in place of the table of results. Not for: deciding anything.

use super::results;
use crate::page::{Page, half_width, percentile, supported, verdict_mark};
use crate::table::Table;
use model::comparison::{Answer, Pair};
use model::report::{Figures, Measured};
use model::targets::{TargetRow, Targets};
use model::units::show_change;

const TARGET_HEADINGS: [&str; 9] =
    ["test", "verdict", "MB/s", "IOPS", "±95 %", "p50", "p99", "against the first", "faster"];
/// Columns that leave where there is no room, the first of them first.
const TARGET_DROP_ORDER: [usize; 5] = [5, 6, 4, 2, 1];

pub(super) fn show_targets(out: &mut Page, targets: &Targets, measured: &[Measured], all: bool) {
    let rows = target_table(targets, measured);
    out.table(&rows);
    let rounded = if rows.has("~") { " ~ = rounded, since the interval is wide." } else { "" };
    let first = targets.names.first().map_or("the first", String::as_str);
    let legend = format!(
        "Against {first}: change of the rate with its 95 % interval, from runs in turns; each interval stands \
         alone, and the answers allow for all tests together: neither = the same within the tolerance; NO DIFFERENCE \
         SEEN = the interval says how large one may be at most.{rounded}"
    );
    out.prose("", "  ", &legend);
    for row in missing_tests(targets) {
        out.prose("  ", "    ", &row);
    }
    out.line("");
    if all {
        results::show_results(out, measured, &[], all);
    }
}

/// A row for each target, below its test.
pub(super) fn target_table(targets: &Targets, measured: &[Measured]) -> Table {
    let mut table = Table::new(&TARGET_HEADINGS, &TARGET_DROP_ORDER).aligned(1, true).aligned(7, true);
    let mut test = "";
    for row in &targets.rows {
        if row.test != test {
            test = &row.test;
            let mut cells = blank_target_row();
            cells[0] = format!("{test}:");
            table.add(cells);
        }
        table.add(target_cells(targets, row, measured.get(row.result)));
    }
    table
}

fn blank_target_row() -> [String; TARGET_HEADINGS.len()] {
    std::array::from_fn(|_| String::new())
}

fn target_name(targets: &Targets, at: usize) -> &str {
    targets.names.get(at).map_or("-", String::as_str)
}

fn target_cells(
    targets: &Targets,
    row: &TargetRow,
    result: Option<&Measured>,
) -> [String; TARGET_HEADINGS.len()] {
    let mut cells = blank_target_row();
    cells[0] = format!("  {}", target_name(targets, row.target));
    let Some(result) = result else { return cells };
    cells[1] = verdict_mark(result);
    match result.total.as_ref().filter(|_| !result.void) {
        None => "no number".clone_into(&mut cells[3]),
        Some(total) => {
            cells[2] = supported(total.mb_per_s, total.mb_per_s_interval);
            cells[3] = supported(total.iops, total.iops_interval);
            cells[4] = half_width(total.iops, total.iops_interval);
            if let Some(figures) = only_direction(result) {
                cells[5] = percentile(&figures.latency_ns, "50");
                cells[6] = percentile(&figures.latency_ns, "99");
            }
        }
    }
    if let Some(pair) = &row.against {
        cells[7] = describe_pair(pair);
        cells[8] = faster_target(targets, row.target, pair);
    }
    cells
}

/// The figures of a result that has one direction: those of several have no common percentile.
fn only_direction(result: &Measured) -> Option<&Figures> {
    let mut all = [&result.read, &result.write, &result.trim].into_iter().flatten();
    all.next().filter(|_| all.next().is_none())
}

/// `+7.4 % (+3.1 % to +12.0 %)`.
fn describe_pair(pair: &Pair) -> String {
    let Some(metric) = pair.metrics.first() else { return "-".into() };
    let interval = metric
        .interval
        .map_or_else(String::new, |[low, high]| format!(" ({} to {})", show_change(low), show_change(high)));
    format!("{}{interval}", show_change(metric.ratio))
}

/// Which of the two it is.
fn faster_target(targets: &Targets, own: usize, pair: &Pair) -> String {
    match pair.metrics.first().map_or(Answer::Incomparable, |m| m.answer) {
        Answer::Faster => target_name(targets, own).into(),
        Answer::Slower => target_name(targets, 0).into(),
        Answer::Same => "neither".into(),
        word @ (Answer::NoDifferenceSeen | Answer::CannotTell | Answer::Incomparable | Answer::Invalid) => {
            word.word().into()
        }
    }
}

/// Tests that not every target has.
fn missing_tests(targets: &Targets) -> Vec<String> {
    let has = |test: &str, target: usize| targets.rows.iter().any(|r| r.test == test && r.target == target);
    let mut tests: Vec<&str> = targets.rows.iter().map(|r| r.test.as_str()).collect();
    tests.dedup();
    let lacking = |target: usize| tests.iter().copied().filter(move |test| !has(test, target));
    let of = |(target, name): (usize, &String)| {
        let tests: Vec<&str> = lacking(target).collect();
        (!tests.is_empty()).then(|| format!("Not measured on {name}: {}.", tests.join(", ")))
    };
    targets.names.iter().enumerate().filter_map(of).collect()
}
