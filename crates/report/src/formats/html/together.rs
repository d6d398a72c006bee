//! Several sessions on one page: one table, and each result of all of them on one scale.
//!
//! For: `fathom list --table`, and `fathom show` of several, of which there are plots too. Not for: which is faster, which is a
//! comparison's to say ([`super::comparison`]).

use super::comparison::head_card;
use super::events::Events;
use super::foot::repeat_card;
use super::intervals::{IntervalHeadings, IntervalRow, draw_intervals};
use super::page::{card, facts, multiples, page};
use super::words::{rate_tick, time_or_dash};
use super::{course, latency, limit, sweep, table};
use crate::command;
use crate::format::Style;
use crate::formats::text::session_table;
use crate::page::supported;
use model::load::LoadCurve;
use model::machine::Place;
use model::report::{Measured, Report, Verdict};
use model::session_table::{Column, SessionTable};
use model::study::Studied;
use model::sweep::Sweep;
use model::units::show_rate;
use std::io::{self, Write};

/// Results of sessions of which there are plots: beyond these the page would be too large.
const MAX_PLOTS: usize = 120;
const NO_LEAD: &[&str] = &[];

/// Writes what sessions came to, result by result.
pub(super) fn write_session_table(of: &SessionTable, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let rows = session_table::session_table(of);
    let lead: Vec<String> = std::iter::once(session_table::session_table_legend(&rows))
        .chain(session_table::session_table_foot(of))
        .collect();
    let figures = card("Every result", &lead, &table::table("Results of sessions side by side", &rows));
    let mut sections = vec![summary_card(of), figures];
    let mut plots = 0;
    for (at, column) in of.columns.iter().enumerate() {
        let all = results_of_column(of, at);
        plots += all.len();
        if plots <= MAX_PLOTS {
            sections.push(result_plots(&all, column, at));
        }
    }
    if plots > MAX_PLOTS {
        sections.push(card(
            "More results",
            &["The other results are in the table above, and as plots in the pages of single sessions."],
            "",
        ));
    }
    sections.push(load_curves(of));
    sections.push(sweep_maps(of));
    sections.push(source_facts(of));
    sections.push(session_commands(of));
    sections.retain(|section| !section.is_empty());
    let (title, eye) = if of.reports.is_empty() {
        ("sessions side by side".to_owned(), "list --table")
    } else {
        (format!("{} sessions side by side", of.rows.len()), "show")
    };
    let html = page(env!("CARGO_PKG_VERSION"), &format!("{title} · fathom"), &[eye.to_owned()], &sections);
    to.write_all(html.as_bytes())
}

/// The worst verdict, and what there is to know of each session.
fn summary_card(of: &SessionTable) -> String {
    let Some(worst) = of.reports.iter().map(|report| report.verdict).max() else {
        return head_card("SESSIONS", "", "Results of sessions side by side", &[]);
    };
    let count = |verdict: Verdict| of.reports.iter().filter(|r| r.verdict == verdict).count();
    let all = [Verdict::Valid, Verdict::Suspect, Verdict::Invalid];
    let counted = all.into_iter().filter(|v| count(*v) > 0).map(|v| format!("{} {}", count(v), v.word()));
    let heading =
        format!("{} sessions side by side: {}", of.rows.len(), counted.collect::<Vec<_>>().join(", "));
    head_card(worst.word(), worst.word(), &heading, &session_table::session_remarks(of))
}

/// What each session is called, by its tags where it has some, and its report.
fn named_reports(of: &SessionTable) -> impl Iterator<Item = (String, &Report)> {
    let name = |row: &model::session_table::Row| {
        if row.tags.is_empty() {
            row.session.clone()
        } else {
            format!("{} ({})", row.tags.join(" "), row.session)
        }
    };
    of.rows.iter().map(name).zip(&of.reports)
}

/// A result of a session.
struct SessionResult<'t> {
    name: String,
    report: &'t Report,
    result: &'t Measured,
}

/// Those of a column.
fn results_of_column(of: &SessionTable, column: usize) -> Vec<SessionResult<'_>> {
    let figures = of.rows.iter().map(|row| row.figures.get(column).and_then(Option::as_ref));
    let all = named_reports(of).zip(figures).filter_map(|((name, report), figure)| {
        let is_it =
            |r: &&Measured| figure.is_some_and(|f| r.name == f.name && r.quoted_rate().unit == f.unit);
        let result = report.results.iter().find(is_it)?;
        let name = if of.columns[column].name == Column::MAIN {
            format!("{name}: {}", result.true_name)
        } else {
            name
        };
        Some(SessionResult { name, report, result })
    });
    all.collect()
}

/// A result of all sessions: its rate with its interval, its course and its tail.
fn result_plots(all: &[SessionResult], column: &Column, at: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let lead = [
        "All sessions on one scale. Dot: the mean; line: its 95 % interval, with an arrow where it goes on; hollow: a finding qualifies \
         it. Dashed: the device below.",
    ];
    let results: Vec<&Measured> = all.iter().map(|one| one.result).collect();
    let (times, tails) =
        (course::CommonScale::from_results(&results), latency::CommonAxes::from_results(&results));
    let small = all.iter().map(|one| {
        let events = Events::from_result(one.report, one.result);
        let rates = course::draw_rates_on(one.result, &events, &format!("s{at}-time"), &times);
        let tail =
            tails.as_ref().and_then(|t| latency::draw_tail_on(one.result, &format!("s{at}-latency"), t));
        let plots = rates.into_iter().chain(tail).map(|plot| plot.html());
        (one.name.clone(), plots.collect::<String>())
    });
    let small = multiples("plots", small);
    let name = if column.name == Column::MAIN { "What each measured" } else { &column.name };
    card(&format!("{name}, {}", column.unit), &lead, &format!("{}{small}", draw_session_rates(all, column)))
}

/// The rate of each session with its interval, and its latencies beside it.
fn draw_session_rates(all: &[SessionResult], column: &Column) -> String {
    let row = |one: &SessionResult| {
        let rate = one.result.quoted_rate();
        let figures = [&one.result.read, &one.result.write, &one.result.trim].into_iter().flatten();
        let main = figures.max_by_key(|f| f.ops).filter(|_| !one.result.void);
        let ns = |rank: &str| {
            let ns = main.and_then(|f| f.latency_ns.percentiles.get(rank).copied().flatten());
            time_or_dash(ns.map(|ns| ns as f64))
        };
        let interval = rate.interval.map(|[low, high]| format!("{} to {}", show_rate(low), show_rate(high)));
        IntervalRow {
            name: one.name.clone(),
            value: rate.value.map(|value| (value, rate.interval)),
            hollow: one.result.verdict != Verdict::Valid,
            cells: vec![
                rate.value.map_or_else(|| "void".into(), |v| supported(v, rate.interval)),
                interval.unwrap_or_else(|| "-".into()),
                ns("50"),
                ns("99"),
                one.result.verdict.word().into(),
            ],
            ..IntervalRow::default()
        }
    };
    let words = IntervalHeadings {
        caption: &format!("{} of each session", column.name),
        first: "Session",
        axis: &format!("{} with its 95 % interval, logarithmic", column.unit),
        headings: &[&column.unit, "95 %", "p50", "p99", "Verdict"],
    };
    draw_intervals(&words, all.iter().map(row).collect(), rate_tick)
}

/// The load curves of all sessions that have one.
fn load_curves(of: &SessionTable) -> String {
    let curves: Vec<(String, &LoadCurve)> = named_reports(of)
        .filter_map(|(name, report)| match &report.study {
            Studied::Limit(curve) => Some((name, curve)),
            _ => None,
        })
        .collect();
    let lead = ["All sessions on the same axes. A line has a gap where a percentile is withheld."];
    let small = multiples("plots", limit::draw_load_curves(&curves).into_iter());
    if small.is_empty() { small } else { card("Latency against load", &lead, &small) }
}

/// The maps of all sessions that have some.
fn sweep_maps(of: &SessionTable) -> String {
    let sweeps: Vec<(String, &Sweep)> = named_reports(of)
        .filter_map(|(name, report)| match &report.study {
            Studied::Sweep(sweep) => Some((name, sweep.as_ref())),
            _ => None,
        })
        .collect();
    sweep::draw_maps(&sweeps)
}

/// Where each session was measured, and how.
fn source_facts(of: &SessionTable) -> String {
    let source = |(name, report): (String, &Report)| {
        let chains: Vec<String> = report.machine.places.iter().map(Place::chain).collect();
        let facts = [report.title.clone(), report.started.clone(), report.machine.host.clone()];
        let words = facts.into_iter().chain(chains).chain([command::command_line(&report.command)]);
        (name, words.filter(|w| !w.is_empty()).collect::<Vec<_>>().join("\n"))
    };
    let all: Vec<(String, String)> = named_reports(of).map(source).collect();
    if all.is_empty() { String::new() } else { card("Where and how", NO_LEAD, &facts(&all)) }
}

fn session_commands(of: &SessionTable) -> String {
    let ids = || of.rows.iter().map(|row| row.session.clone());
    if of.reports.is_empty() {
        return String::new();
    }
    let line = |command: &str| {
        model::shell::line(
            &["fathom".to_owned(), command.into()].into_iter().chain(ids()).collect::<Vec<_>>(),
        )
    };
    let all = vec![
        ("Check and show these sessions again:", line("show")),
        ("Say whether the others are faster than the first:", line("compare")),
    ];
    card("Repeat it", NO_LEAD, &repeat_card(all))
}

#[cfg(test)]
fn example() -> Result<SessionTable, Box<dyn std::error::Error>> {
    use model::entry::Figure;
    let valid: Report = serde_json::from_str(include_str!("../../../tests/golden/valid.json"))?;
    let result = valid.results.first().ok_or("no result")?;
    let unit = result.quoted_rate().unit;
    let column = Column { name: result.name.clone(), unit: unit.into() };
    let figure = Figure {
        name: column.name.clone(),
        unit: unit.into(),
        value: result.quoted_rate().value,
        interval: None,
        verdict: result.verdict,
    };
    let row = |session: &str| model::session_table::Row {
        session: session.into(),
        started: None,
        verdict: Some(valid.verdict),
        device: None,
        targets: vec!["/a".into()],
        tags: Vec::new(),
        figures: vec![Some(figure.clone())],
    };
    let mut faster = valid.clone();
    for second in faster.results.iter_mut().flat_map(|r| &mut r.series) {
        second.iops *= 2.0;
        second.mb_per_s *= 2.0;
    }
    Ok(SessionTable {
        columns: vec![column],
        rows: vec![row("one"), row("two")],
        reports: vec![valid.clone(), faster],
        ..SessionTable::default()
    })
}

#[test]
fn sessions_stand_side_by_side_on_one_scale() -> Result<(), Box<dyn std::error::Error>> {
    let table = example()?;
    let mut bytes = Vec::new();
    write_session_table(&table, Style::default(), &mut bytes)?;
    let html = String::from_utf8(bytes)?;
    assert!(html.contains("2 sessions side by side: 2 VALID"), "{html}");
    assert!(html.contains("fathom compare one two") && html.contains("<h3>one</h3>"), "{html}");
    // The same marks beside both drawings, though one goes twice as high.
    let all = results_of_column(&table, 0);
    let results: Vec<&Measured> = all.iter().map(|one| one.result).collect();
    let beside = course::CommonScale::from_results(&results);
    let plots: Vec<_> = all
        .iter()
        .filter_map(|one| course::draw_rates_on(one.result, &Events::default(), "x", &beside))
        .collect();
    assert_eq!(plots.len(), 2);
    assert_eq!((&plots[0].y, &plots[0].x), (&plots[1].y, &plots[1].x));
    assert_ne!(plots[0].marks, plots[1].marks);
    Ok(())
}

#[test]
fn a_table_of_the_index_has_no_plots_and_no_verdict() -> Result<(), Box<dyn std::error::Error>> {
    let table = SessionTable { reports: Vec::new(), ..example()? };
    let mut bytes = Vec::new();
    write_session_table(&table, Style::default(), &mut bytes)?;
    let html = String::from_utf8(bytes)?;
    assert!(html.contains("SESSIONS") && !html.contains("<figure") && !html.contains("Repeat it"), "{html}");
    Ok(())
}
