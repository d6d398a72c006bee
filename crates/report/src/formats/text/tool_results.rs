//! The card: results as a well-known tool shows them, below the table of results.
//!
//! For: rows of a read and a write under the tool's names, with bars or with its score. Not for: what was found about them,
//! which the findings say.

use crate::page::Page;
use crate::table::Table;
use model::report::Verdict;
use model::tool_layout::{Points, Score, ToolCell, ToolResults, ToolRow};
use model::units::{show_count, show_rate};

/// Columns of the longest bar.
const CARD_BAR_WIDTH: usize = 24;
/// Parts of a column, from none to all but one.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

pub(super) fn show_card(out: &mut Page, card: &ToolResults) {
    out.line(&format!("As {} shows it", card.tool));
    match &card.score {
        None => show_bars(out, &card.rows),
        Some(score) => show_scores(out, &card.rows, score),
    }
    for differs in &card.differs {
        out.prose("  ", "    ", differs);
    }
    out.line("");
}

/// A bar per number, all of one scale.
fn show_bars(out: &mut Page, rows: &[ToolRow]) {
    let cells = rows.iter().flat_map(|r| [&r.write, &r.read]).flatten();
    let most = cells.filter_map(|c| c.value).fold(0.0, f64::max);
    let mut table = Table::new(&["", "write", "MB/s", "read", "MB/s"], &[1, 3]);
    for bar in [1, 3] {
        table = table.aligned(bar - 1, false).aligned(bar, true).at_least(bar, CARD_BAR_WIDTH);
    }
    table = table.aligned(4, false);
    for row in rows {
        let [write, read] = [&row.write, &row.read].map(Option::as_ref);
        let bar_of = |cell: Option<&ToolCell>| {
            cell.and_then(|c| c.value).map_or_else(String::new, |v| fractional_bar(v, most))
        };
        table.add([
            row.name.clone(),
            bar_of(write),
            tool_number(row, write),
            bar_of(read),
            tool_number(row, read),
        ]);
    }
    out.table(&table);
    out.line("MB/s = 10^6 bytes per second: medians over runs.");
}

/// Full blocks and a part of one.
fn fractional_bar(value: f64, most: f64) -> String {
    let eighths = if most > 0.0 { (value / most * (8 * CARD_BAR_WIDTH) as f64).round() as usize } else { 0 };
    "█".repeat(eighths / 8) + EIGHTHS.get(eighths % 8).copied().unwrap_or_default()
}

fn show_scores(out: &mut Page, rows: &[ToolRow], score: &Score) {
    let mut table = Table::new(&["", "read", "write", ""], &[]);
    for row in rows {
        let [read, write] = [&row.read, &row.write].map(|cell| tool_number(row, cell.as_ref()));
        table.add([row.name.clone(), read, write, row.unit.clone()]);
    }
    let [read, write, total] = [&score.read, &score.write, &score.total].map(short_points);
    table.add(["Score".into(), read, write, "points".into()]);
    table.add(["Total".into(), String::new(), total, "points".into()]);
    out.table(&table);
    out.line("MB/s = 10^6 bytes per second: medians over runs; Acc.time is the mean latency.");
    for (name, points) in [("read", &score.read), ("write", &score.write), ("total", &score.total)] {
        out.prose("  ", "    ", &format!("{name} score: {}", describe_basis(points)));
    }
}

/// A number as its tool has it: milliseconds with three places.
fn tool_number(row: &ToolRow, cell: Option<&ToolCell>) -> String {
    match cell {
        None => "-".into(),
        Some(ToolCell { value: Some(ms), .. }) if row.unit == "ms" => format!("{ms:.3}"),
        Some(ToolCell { value: Some(rate), .. }) => show_rate(*rate),
        Some(ToolCell { verdict: Verdict::Invalid, .. }) => "void".into(),
        Some(_) => "none".into(),
    }
}

fn short_points(points: &Points) -> String {
    points.value.map_or_else(|| "-".into(), show_count)
}

/// What the points rest on.
fn describe_basis(points: &Points) -> String {
    if points.value.is_none() {
        return format!("withheld: {}.", points.withheld.as_deref().unwrap_or("it was not made"));
    }
    let range = points.range.map_or_else(
        || "one run, so how much it varies is not known".into(),
        |[least, most]| {
            format!("{} by the slowest runs, {} by the fastest", show_count(least), show_count(most))
        },
    );
    let word = match points.verdict {
        Verdict::Valid => "",
        _ => "; SUSPECT, as are numbers that it is made of",
    };
    format!("{range}{word}.")
}

#[test]
fn a_bar_is_as_long_as_its_part_of_the_longest() {
    assert_eq!(fractional_bar(100.0, 100.0), "█".repeat(CARD_BAR_WIDTH));
    assert_eq!(fractional_bar(50.0, 100.0), "█".repeat(CARD_BAR_WIDTH / 2));
    assert_eq!(fractional_bar(100.0 / (8 * CARD_BAR_WIDTH) as f64, 100.0), "▏");
    assert_eq!((fractional_bar(0.0, 100.0), fractional_bar(0.0, 0.0)), (String::new(), String::new()));
}
