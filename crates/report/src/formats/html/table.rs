//! Tables that text and Markdown show too, as HTML.
//!
//! For: headings, rows and what of them is a title. Not for: what stands in a table.

use super::filters;
use super::words::with_micro_sign;
use crate::table::Table;
use askama::Template;
use std::borrow::Cow;

#[derive(Template)]
#[template(path = "table.html")]
struct TableTemplate<'t> {
    caption: &'t str,
    columns: Vec<Column<'t>>,
    rows: Vec<TableRow>,
}

struct Column<'t> {
    heading: Cow<'t, str>,
    left: bool,
}

struct TableRow {
    cells: Vec<TableCell>,
    /// Whether it is words above the rows that follow.
    is_title: bool,
    /// Whether it is a part of the row above.
    is_part: bool,
}

struct TableCell {
    text: String,
    left: bool,
}

/// The table with all columns that have something in them; nothing where it has no rows.
pub(super) fn table(caption: &str, of: &Table) -> String {
    let shown = of.filled_columns();
    // Titles above nothing are no table.
    if of.rows().iter().all(|cells| is_title(&shown, cells)) {
        return String::new();
    }
    let columns = shown.iter().map(|at| Column { heading: heading(of.heading(*at)), left: of.is_left(*at) });
    let rows = of.rows().iter().map(|cells| table_row(of, &shown, cells));
    TableTemplate { caption, columns: columns.collect(), rows: rows.collect() }.render().unwrap_or_default()
}

/// With the letter of a unit that terminals may not have.
fn heading(words: &str) -> Cow<'_, str> {
    words.strip_suffix(" us").map_or(words.into(), |words| format!("{words} µs").into())
}

fn table_row(of: &Table, shown: &[usize], cells: &[String]) -> TableRow {
    let text = |at: usize| cells.get(at).map_or("", String::as_str);
    let is_title = is_title(shown, cells);
    let kept = if is_title { 1 } else { shown.len() };
    let cell = |at: &usize| {
        let words = if is_title { text(*at).trim_end_matches(':') } else { text(*at) };
        TableCell { text: with_micro_sign(words.trim()), left: of.is_left(*at) }
    };
    TableRow {
        cells: shown.iter().take(kept).map(cell).collect(),
        is_title,
        is_part: text(0).starts_with(' '),
    }
}

/// Whether a row is words above others.
fn is_title(shown: &[usize], cells: &[String]) -> bool {
    let rest = |at: &usize| cells.get(*at).is_none_or(String::is_empty);
    cells.first().is_some_and(|name| name.ends_with(':')) && shown.iter().skip(1).all(rest)
}

#[test]
fn titles_span_the_table_and_foreign_words_stay_words() {
    let mut of = Table::new(&["test", "p99", "empty"], &[]).aligned(1, false);
    of.add(["<b>work</b>:", "", ""].map(str::to_owned));
    of.add(["  part & whole", "12 us", ""].map(str::to_owned));
    let html = table("it's", &of);
    assert!(html.contains("scope=\"colgroup\"") && html.contains("colspan=\"2\""), "{html}");
    assert!(html.contains("12 µs") && !html.contains("<b>") && !html.contains("empty"), "{html}");
    assert_eq!(table("none", &Table::new(&["a"], &[])), "");
}
