//! The grid: a row per test with its read and its write, as people know it from CrystalDiskMark.
//!
//! For: what a benchmark of several tests came to, at a glance. Not for: intervals and percentiles, which the table below has.

use super::words::{time, with_micro_sign};
use crate::page::supported;
use askama::Template;
use model::report::{Figures, Measured, Verdict};
use std::fmt::Write as _;

#[derive(Template)]
#[template(path = "grid.html")]
struct TestGrid {
    rows: Vec<GridRow>,
}

struct GridRow {
    name: String,
    cells: [Option<GridCell>; 2],
}

struct GridCell {
    number: String,
    raw: Option<String>,
    note: String,
    verdict: &'static str,
    /// Of 1000, by the fastest.
    width: u32,
}

/// The grid of these results; nothing where none of them is a read or a write.
pub(super) fn test_grid(results: &[Measured]) -> String {
    let both = |r: &Measured| [r.read.as_ref(), r.write.as_ref()].map(|f| f.map(|f| f.mb_per_s));
    let most = results.iter().filter(|r| !r.void).flat_map(both).flatten().fold(0.0, f64::max);
    let mut rows: Vec<GridRow> = Vec::new();
    for result in results.iter().filter(|r| r.trim.is_none()) {
        let name = [" read", " write"].iter().find_map(|end| result.name.strip_suffix(end));
        let name = name.unwrap_or(&result.name);
        let cells = [&result.read, &result.write].map(|f| f.as_ref().map(|f| grid_cell(result, f, most)));
        let is_free = |row: &GridRow| row.cells.iter().zip(&cells).all(|(a, b)| a.is_none() || b.is_none());
        match rows.iter_mut().find(|row| row.name == name && is_free(row)) {
            Some(row) => {
                for (known, new) in row.cells.iter_mut().zip(cells) {
                    *known = known.take().or(new);
                }
            }
            None => rows.push(GridRow { name: name.to_owned(), cells }),
        }
    }
    rows.retain(|row| row.cells.iter().any(Option::is_some));
    if rows.is_empty() { String::new() } else { TestGrid { rows }.render().unwrap_or_default() }
}

fn grid_cell(result: &Measured, figures: &Figures, most: f64) -> GridCell {
    let verdict = if result.void { Verdict::Invalid } else { result.verdict };
    if result.void {
        return GridCell {
            number: "void".into(),
            raw: None,
            note: String::new(),
            verdict: verdict.word(),
            width: 0,
        };
    }
    let mut note = format!("{} IOPS", supported(figures.iops, figures.iops_interval));
    if let Some(ns) = figures.latency_ns.percentiles.get("50").copied().flatten() {
        let _ = write!(note, ", p50 {}", time(ns as f64));
    }
    let part = if most > 0.0 { figures.mb_per_s / most } else { 0.0 };
    GridCell {
        number: supported(figures.mb_per_s, figures.mb_per_s_interval),
        raw: Some(figures.mb_per_s.to_string()),
        note: with_micro_sign(&note),
        verdict: verdict.word(),
        width: (1000.0 * part.clamp(0.0, 1.0)) as u32,
    }
}
