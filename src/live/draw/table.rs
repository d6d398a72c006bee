//! The table of results as it fills.
//!
//! For: a row for each job that has run, the last one in sight. Not for: verdicts, which the report has.

use super::{NARROW, Paint, fitting, take};
use crate::live::state::{Named, State};
use model::units::{show_count, show_ns, show_rate};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

/// Columns of a figure.
const CELL_COLUMNS: usize = 11;
/// What columns are called, on a wide screen and on a narrow one.
const WIDE_HEADINGS: &[&str] = &["runs", "IOPS", "MB/s", "p50", "p99", "max"];
const MEDIUM_HEADINGS: &[&str] = &["IOPS", "MB/s", "p99"];
const NARROW_HEADINGS: &[&str] = &["IOPS"];
/// Columns of a screen from which all of them are shown.
const WIDE_TABLE_COLUMNS: u16 = 100;

/// Draws it on all that is left.
pub(super) fn draw_results(frame: &mut Frame, mut rest: Rect, state: &State, paint: Paint) {
    if state.rows.is_empty() || rest.height == 0 {
        return;
    }
    let columns = match rest.width {
        w if w < NARROW => NARROW_HEADINGS,
        w if w < WIDE_TABLE_COLUMNS => MEDIUM_HEADINGS,
        _ => WIDE_HEADINGS,
    };
    if rest.height > 1 {
        let all = state.rows_in_all.map_or(String::new(), |n| format!(" of {}", show_count(n as f64)));
        let title = format!("results: {}{all}", show_count(state.rows.len() as f64));
        let cells = columns.iter().map(|name| (*name).to_owned());
        let at = take(&mut rest, 1);
        frame.render_widget(Line::styled(table_row(&title, cells, at.width), paint.label()), at);
    }
    let shown = usize::from(rest.height);
    // So many from the top that the last one is in sight.
    let from = (state.last_row + 1).saturating_sub(shown).min(state.rows.len().saturating_sub(shown));
    for (index, named) in state.rows.iter().enumerate().skip(from).take(shown) {
        let at = take(&mut rest, 1);
        let style = if index == state.last_row { paint.title() } else { Style::new() };
        let cells = columns.iter().map(|name| result_cell(named, name));
        frame.render_widget(Line::styled(table_row(&named.name, cells, at.width), style), at);
    }
}

/// A name, and figures below each other.
pub(super) fn table_row(name: &str, cells: impl ExactSizeIterator<Item = String>, width: u16) -> String {
    let room = usize::from(width).saturating_sub(cells.len() * CELL_COLUMNS);
    let name = fitting(name, room.saturating_sub(1));
    let blanks = room.saturating_sub(ratatui::text::Span::raw(name.as_str()).width());
    let start = format!("{name}{}", " ".repeat(blanks));
    cells.fold(start, |line, cell| format!("{line}{cell:>CELL_COLUMNS$}"))
}

/// A figure of a row; what is not known is no zero.
fn result_cell(named: &Named, column: &str) -> String {
    let row = &named.row;
    let [p50, p99, max] = row.latency_ns.map(|ns| ns.map(|ns| show_ns(ns as f64)));
    let words = match column {
        "runs" => Some(row.runs.to_string()),
        "IOPS" => row.iops.map(show_rate),
        "MB/s" => row.iops.zip(named.op_bytes).map(|(iops, bytes)| show_rate(iops * bytes / 1e6)),
        "p50" => p50,
        "p99" => p99,
        _ => max,
    };
    words.unwrap_or_else(|| "-".into())
}
