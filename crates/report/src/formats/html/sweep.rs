//! A sweep as maps: a shade for every cell, the best one framed.
//!
//! For: reports about a grid of settings. Not for: which cell wins, which the report says.

use super::page::{card, facts, folded, multiples};
use super::plot::heat::map_shade;
use super::table;
use super::words::with_micro_sign;
use crate::formats::text::map::{labels, sides};
use crate::formats::text::report::table as text_table;
use askama::Template;
use model::measure::Measure;
use model::report::Report;
use model::sweep::{CellFigures, Chosen, Sweep, Work};
use model::units::{show_ns, show_rate};
use std::collections::BTreeMap;

/// Maps of a work at most; the JSON has all cells.
const MAX_MAPS: usize = 12;
/// Runs from which a cell counts as repeated.
const REPEATED_FROM: usize = 3;

#[derive(Template)]
#[template(path = "map.html")]
struct SweepMap {
    title: String,
    corner: String,
    columns: Vec<String>,
    rows: Vec<MapRow>,
    legend: String,
}

struct MapRow {
    name: String,
    cells: Vec<Option<MapCell>>,
}

struct MapCell {
    value: String,
    /// What a pointer that rests on it is told.
    title: String,
    shade: usize,
    best: bool,
    cheapest: bool,
    repeated: bool,
}

/// A card for each work, and one for what was not measured.
pub(super) fn sweep_cards(report: &Report, sweep: &Sweep) -> String {
    let mut out: String = sweep.works.iter().map(|work| work_card(sweep, work)).collect();
    if sweep.works.is_empty() {
        out += &card::<&str>(
            "Cells",
            &[],
            &draw_work_maps(&sweep.cells.iter().collect::<Vec<_>>(), Measure::Bandwidth, (None, None), None),
        );
    }
    let budget = sweep.budget_seconds.map_or_else(String::new, |b| format!(" of {b:.0} s"));
    let lead = [format!("The {} search took {:.0} s{budget}.", sweep.search, sweep.seconds)];
    // Cells in order are measured for their own sake: none of them wins.
    let (heading, caption) = if sweep.is_in_order() {
        ("All cells", "Each cell, in the order of the grid")
    } else {
        ("The best settings", "The best of each work, and what it is compared with")
    };
    let best = table::table(caption, &text_table(report, true));
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    sweep.skipped.iter().for_each(|cell| *reasons.entry(&cell.why).or_default() += 1);
    let skipped: Vec<_> =
        reasons.iter().map(|(why, times)| (format!("Skipped {times}"), with_micro_sign(why))).collect();
    out + &card(heading, &lead, &format!("{best}{}", folded("What was not measured", &facts(&skipped))))
}

fn work_card(sweep: &Sweep, work: &Work) -> String {
    let mine: Vec<&CellFigures> = sweep.cells.iter().filter(|c| c.setting.work() == work.name).collect();
    let winner = sweep.winner.get(&work.name).or_else(|| sweep.only_cell(&work.name));
    let cheapest = sweep.cheapest.get(&work.name);
    let word = if work.chosen == Chosen::CannotTell { "CANNOT TELL: " } else { "" };
    let knees = work.knees.iter().map(|knee| knee.sentence.clone());
    let lead: Vec<String> = std::iter::once(format!("{word}{}", work.sentence)).chain(knees).collect();
    let heading = winner.filter(|_| work.chosen == Chosen::Fastest).map_or_else(
        || work.name.clone(),
        |w| format!("{}: {} {}", work.name, w.setting.shape(), w.setting.way()),
    );
    card(&heading, &lead, &draw_work_maps(&mine, work.by, (winner, cheapest), None))
}

/// The maps of several sessions by name, those of each work under one scale of shades.
pub(super) fn draw_maps(sweeps: &[(String, &Sweep)]) -> String {
    let mut works: Vec<&Work> = Vec::new();
    for work in sweeps.iter().flat_map(|(_, sweep)| &sweep.works) {
        if works.iter().all(|known| known.name != work.name) {
            works.push(work);
        }
    }
    works.iter().map(|work| work_maps_of_sessions(sweeps, work)).collect()
}

fn work_maps_of_sessions(sweeps: &[(String, &Sweep)], work: &Work) -> String {
    let best = best_value(sweeps.iter().flat_map(|(_, sweep)| cells_of_work(sweep, work)), work.by);
    let small = sweeps.iter().map(|(name, sweep)| {
        let cells: Vec<&CellFigures> = cells_of_work(sweep, work).collect();
        let winner = sweep.winner.get(&work.name).or_else(|| sweep.only_cell(&work.name));
        let marked = (winner, sweep.cheapest.get(&work.name));
        let body = if cells.is_empty() {
            String::new()
        } else {
            draw_work_maps(&cells, work.by, marked, Some(best))
        };
        (name.clone(), body)
    });
    let lead = ["Shades are shares of the best cell of all sessions."];
    card(&format!("{}: every cell", work.name), &lead, &multiples("tables", small))
}

fn cells_of_work<'s>(sweep: &'s Sweep, work: &Work) -> impl Iterator<Item = &'s CellFigures> {
    sweep.cells.iter().filter(|cell| cell.setting.work() == work.name)
}

/// The best value of these cells.
fn best_value<'c>(cells: impl Iterator<Item = &'c CellFigures>, by: Measure) -> f64 {
    let values = cells.filter_map(|c| c.value(by)).filter(|v| v.is_finite());
    if by.is_latency() { values.fold(f64::INFINITY, f64::min) } else { values.fold(0.0, f64::max) }
}

/// Everything that is known of a cell.
fn describe_cell(cell: &CellFigures, by: Measure) -> String {
    let told = |name: &str, value: Option<String>| value.map(|v| format!("{name} {v}"));
    let interval = cell.interval_of(by).map(|ends| ends.map(|end| by.show(end)).join(" to "));
    let parts = [
        Some(cell.setting.describe()),
        told("MB/s", cell.mb_per_s.map(show_rate)),
        told("IOPS", cell.iops.map(show_rate)),
        told("p99", cell.latency_p99_ns.map(show_ns)),
        told("95 % interval", interval),
        Some(format!("{} runs", cell.runs)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A map for each setting of everything that is on neither side, shaded by the best of these cells where no other best is given.
fn draw_work_maps(
    cells: &[&CellFigures],
    by: Measure,
    (winner, cheapest): (Option<&CellFigures>, Option<&CellFigures>),
    of_all: Option<f64>,
) -> String {
    let (rows, columns) = sides(cells);
    let way = |c: &CellFigures| columns.left_open(&rows.left_open(&c.setting)).way();
    let mut ways: Vec<String> = Vec::new();
    // The best one's first.
    for name in winner.into_iter().map(way).chain(cells.iter().map(|c| way(c))) {
        if !ways.contains(&name) {
            ways.push(name);
        }
    }
    let best = of_all.unwrap_or_else(|| best_value(cells.iter().copied(), by));
    let share = |v: f64| if by.is_latency() { best / v } else { v / best };
    let mut out = String::new();
    for name in ways.iter().take(MAX_MAPS) {
        let these: Vec<&CellFigures> = cells.iter().copied().filter(|c| way(c) == *name).collect();
        let (down, across) = (labels(&these, rows), labels(&these, columns));
        let cell = |row: &String, column: &String| {
            let found = these
                .iter()
                .find(|c| rows.label_of(&c.setting) == *row && columns.label_of(&c.setting) == *column)?;
            let is = |marked: Option<&CellFigures>| marked.is_some_and(|m| m.setting == found.setting);
            let value = found.value(by);
            Some(MapCell {
                title: with_micro_sign(&describe_cell(found, by)),
                value: value.map_or_else(|| "-".into(), |v| with_micro_sign(&by.show_short(v))),
                shade: value.map_or(0, |v| map_shade(share(v))),
                best: is(winner),
                cheapest: is(cheapest) && !is(winner),
                repeated: found.runs >= REPEATED_FROM,
            })
        };
        let lines = down
            .iter()
            .map(|row| MapRow { name: row.clone(), cells: across.iter().map(|c| cell(row, c)).collect() });
        let map = SweepMap {
            corner: format!("{} \\ {}", rows.name(), columns.name()),
            title: format!("{name}: {} by {} and {}", by.heading(), rows.name(), columns.name()),
            rows: lines.collect(),
            columns: across.clone(),
            legend: format!(
                "shares of the best, {}; ★ best; = cheapest setting with similar speed; bold: measured {REPEATED_FROM} times or more",
                with_micro_sign(&by.show(best))
            ),
        };
        out += &map.render().unwrap_or_default();
    }
    if ways.len() > MAX_MAPS {
        out +=
            &format!("<p class=\"sub\">{} more maps are in the JSON, as cells.</p>", ways.len() - MAX_MAPS);
    }
    out
}
