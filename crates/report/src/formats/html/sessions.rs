//! Pages of several sessions: a table with each result of all sessions on one scale, and comparisons.
//!
//! A comparison draws every change with its interval on one axis around "no change".

use super::page::{
    card, facts, folded, head_card, multiples, page, plain_card, rate_tick, repeat_card, short_number,
    time_or_dash, with_micro_sign,
};
use super::plot::Axis;
use super::studies::{
    IntervalHeadings, IntervalRow, common_axis, draw_intervals, draw_intervals_on, with_title,
};
use super::time_series::Events;
use super::{page, results, studies, time_series};
use crate::Style;
use crate::view::comparison::{Compared, describe_source, format_value, left_out_notes};
use crate::view::findings;
use crate::view::lists::count_of;
use crate::view::numbers::{change_ends, interval_ends, percentile_ns, with_supported_digits};
use crate::view::results::main_figures;
use crate::view::sessions as session_view;
use crate::view::table::{Columns, or_dash};
use model::comparison::{Comparison, ComparisonAnswer, Comparisons, Metric, Pair, Side};
use model::distinct;
use model::finding::Checked;
use model::history::{Column, RowsOf, SessionTable};
use model::machine::Place;
use model::report::{Measured, Report, Verdict};
use model::study::{LoadCurve, Studied};
use model::sweep::Sweep;
use model::units::{show_change, show_rate};
use std::io::{self, Write};

/// Maximum number of results with plots, to keep the page small.
const MAX_PLOTS: usize = 120;

/// Writes a table of sessions, result by result.
pub(super) fn write_session_table(table: &SessionTable, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let rows = session_view::session_table(table);
    let lead: Vec<String> = std::iter::once(session_view::session_table_legend(&rows))
        .chain(session_view::session_table_foot(table))
        .collect();
    let figures = card("Every result", &lead, &page::table("Results of sessions side by side", &rows));
    let mut sections = vec![summary_card(table), studies::best_settings_card(&table.best_settings), figures];
    let mut plots = 0;
    for (at, column) in table.columns.iter().enumerate() {
        let all = results_of_column(table, at);
        plots += all.len();
        if plots <= MAX_PLOTS {
            // A table of devices has converted figures, but its plots have the unit of the results.
            let unit = all.first().map_or(column.unit.as_str(), |one| one.result.quoted_rate().unit);
            let column = Column { name: column.name.clone(), unit: unit.to_owned() };
            sections.push(result_plots(&all, &column, at));
        }
    }
    if plots > MAX_PLOTS {
        sections.push(card(
            "More results",
            &["The other results are in the table above, and as plots in the pages of single sessions."],
            "",
        ));
    }
    sections.extend([load_curves(table), sweep_maps(table), source_facts(table), session_commands(table)]);
    let (title, header) = if table.reports.is_empty() {
        ("sessions side by side".to_owned(), "list --table")
    } else {
        let command = if table.rows_of == RowsOf::Devices { "bench" } else { "show" };
        (format!("{} side by side", count_of(table.rows.len(), "session")), command)
    };
    page::write_page(to, &title, &[header.to_owned()], &sections)
}

/// Returns the card with the worst verdict and the remarks on the sessions.
fn summary_card(table: &SessionTable) -> String {
    let Some(worst) = table.reports.iter().map(|report| report.verdict).max() else {
        return head_card("SESSIONS", "", "Results of sessions side by side", &[]);
    };
    let count = |verdict: Verdict| table.reports.iter().filter(|r| r.verdict == verdict).count();
    let all = [Verdict::Valid, Verdict::Suspect, Verdict::Invalid];
    let counted = all.into_iter().filter(|v| count(*v) > 0).map(|v| format!("{} {}", count(v), v.word()));
    let sessions = count_of(table.rows.len(), "session");
    let heading = format!("{sessions} side by side: {}", counted.collect::<Vec<_>>().join(", "));
    head_card(worst.word(), worst.word(), &heading, &session_view::session_remarks(table))
}

/// Returns each session's report with a name: the session's tags, if any, and its id.
fn named_reports(table: &SessionTable) -> impl Iterator<Item = (String, &Report)> {
    let name = |row: &model::history::SessionRow| {
        if row.tags.is_empty() {
            row.session.clone()
        } else {
            format!("{} ({})", row.tags.join(" "), row.session)
        }
    };
    table.rows.iter().map(name).zip(&table.reports)
}

struct SessionResult<'t> {
    name: String,
    report: &'t Report,
    result: &'t Measured,
}

/// Returns the result of each session in a column. Leaves out sessions without a result there.
fn results_of_column(table: &SessionTable, column: usize) -> Vec<SessionResult<'_>> {
    let figures = table.rows.iter().map(|row| row.figures.get(column).and_then(Option::as_ref));
    let all = named_reports(table).zip(figures).filter_map(|((name, report), figure)| {
        let is_same_unit =
            |r: &Measured, unit: &str| table.rows_of == RowsOf::Devices || r.quoted_rate().unit == unit;
        let is_of_column =
            |r: &&Measured| figure.is_some_and(|f| r.name == f.name && is_same_unit(r, &f.unit));
        let result = report.results.iter().find(is_of_column)?;
        let name = if table.columns[column].name == Column::MAIN {
            format!("{name}: {}", result.true_name)
        } else {
            name
        };
        Some(SessionResult { name, report, result })
    });
    all.collect()
}

/// Draws one result as all sessions measured it: rates with intervals, time series and tails of latency.
fn result_plots(all: &[SessionResult], column: &Column, at: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let lead = [
        "All sessions on one scale. Dot: the mean; line: its 95 % interval, with an arrow where it exceeds the axis; \
         hollow: the verdict is not VALID. Dashed: the device below.",
    ];
    let results: Vec<&Measured> = all.iter().map(|one| one.result).collect();
    let (times, tails) =
        (time_series::CommonScale::from_results(&results), results::CommonAxes::from_results(&results));
    let small = all.iter().map(|one| {
        let events = Events::from_result(one.report, one.result);
        let rates = time_series::draw_rates_on(one.result, &events, &format!("s{at}-time"), &times);
        let tail =
            tails.as_ref().and_then(|t| results::draw_tail_on(one.result, &format!("s{at}-latency"), t));
        let plots = rates.into_iter().chain(tail).map(|plot| plot.html());
        (one.name.clone(), page::with_caveat(one.report, one.result, plots.collect()))
    });
    let small = multiples("plots", small);
    let name = if column.name == Column::MAIN { "What each measured" } else { &column.name };
    card(&format!("{name}, {}", column.unit), &lead, &format!("{}{small}", draw_session_rates(all, column)))
}

/// Draws the rate of each session with its interval and its latencies.
fn draw_session_rates(all: &[SessionResult], column: &Column) -> String {
    let row = |one: &SessionResult| {
        let rate = one.result.quoted_rate();
        let main = main_figures(one.result).filter(|_| !one.result.void);
        let ns = |rank: &str| {
            let ns = main.and_then(|f| percentile_ns(&f.latency_ns.percentiles, rank));
            time_or_dash(ns.map(|ns| ns as f64))
        };
        IntervalRow {
            name: one.name.clone(),
            value: rate.value.map(|value| (value, rate.interval)),
            is_hollow: one.result.verdict != Verdict::Valid,
            cells: vec![
                rate.value.map_or_else(|| "no number".into(), |v| with_supported_digits(v, rate.interval)),
                interval_ends(rate.interval),
                ns("50"),
                ns("99"),
                one.result.verdict.word().into(),
            ],
            ..IntervalRow::default()
        }
    };
    let labels = IntervalHeadings {
        caption: &format!("{} of each session", column.name),
        first: "Session",
        axis: &format!("{} with its 95 % interval, logarithmic", column.unit),
        headings: &[&column.unit, "95 %", "p50", "p99", "Verdict"],
    };
    draw_intervals(&labels, all.iter().map(row).collect(), rate_tick)
}

/// Draws the load curves of all sessions that have one.
fn load_curves(table: &SessionTable) -> String {
    let curves: Vec<(String, &LoadCurve)> = named_reports(table)
        .filter_map(|(name, report)| match &report.study {
            Studied::Limit(curve) => Some((name, curve)),
            _ => None,
        })
        .collect();
    let lead = ["All sessions on the same axes. A line has a gap where a percentile is withheld."];
    let small = multiples("plots", studies::draw_load_curves(&curves).into_iter());
    if small.is_empty() { small } else { card("Latency against load", &lead, &small) }
}

/// Draws the sweep maps of all sessions that have them.
fn sweep_maps(table: &SessionTable) -> String {
    let sweeps: Vec<(String, &Report, &Sweep)> = named_reports(table)
        .filter_map(|(name, report)| match &report.study {
            Studied::Sweep(sweep) => Some((name, report, sweep.as_ref())),
            _ => None,
        })
        .collect();
    studies::draw_maps(&sweeps)
}

/// Returns the card with the title, the start, the host, the targets and the command of each session.
fn source_facts(table: &SessionTable) -> String {
    let source = |(name, report): (String, &Report)| {
        let chains: Vec<String> = report.machine.places.iter().map(Place::chain).collect();
        let facts = [report.title.clone(), report.started.clone(), report.machine.host.clone()];
        let lines = facts.into_iter().chain(chains).chain([findings::command_line(&report.command)]);
        (name, lines.filter(|w| !w.is_empty()).collect::<Vec<_>>().join("\n"))
    };
    let all: Vec<(String, String)> = named_reports(table).map(source).collect();
    if all.is_empty() { String::new() } else { plain_card("Where and how", &facts(&all)) }
}

fn session_commands(table: &SessionTable) -> String {
    let is_kept = table.reports.iter().all(|report| report.session.is_some());
    if table.reports.is_empty() || !is_kept {
        return String::new();
    }
    let ids = || table.rows.iter().map(|row| row.session.as_str());
    let line = |command| findings::fathom_command(std::iter::once(command).chain(ids()));
    let all = vec![
        ("Check these sessions again and show them:", line("show")),
        ("Compare the others with the first:", line("compare")),
    ];
    plain_card("Repeat it", &repeat_card(all))
}

/// Writes a comparison of two sides.
pub(super) fn write_comparison(comparison: &Comparison, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let gate = comparison.gate.as_ref().map(|g| format!("{}: {}", g.outcome.word().word(), g.sentence));
    let sentences: Vec<String> = gate.into_iter().chain([comparison.sentence.clone()]).collect();
    let mut sections =
        vec![head_card(comparison.answer.word(), comparison.answer.word(), "B against A", &sentences)];
    let changes = draw_pair_ratios(&comparison.pairs);
    if !changes.is_empty() {
        sections.push(card("Change of every number", &[ROWS_EXPLAINED], &changes));
    }
    sections.extend(headline_runs(&comparison.pairs));
    let title = format!("{} · B against A", comparison.answer.word());
    write_compared(&Compared::two_sides(comparison, true), &title, "Every number of A and B", sections, to)
}

/// Writes the page of a comparison: `sections` first, then every number, the sides, and every check.
fn write_compared(
    compared: &Compared,
    title: &str,
    caption: &str,
    mut sections: Vec<String>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let headings: Vec<&str> = compared.table.headings.iter().map(String::as_str).collect();
    let legend = compared.legend(&headings);
    sections.push(card("All numbers", &[legend], &page::table(caption, &compared.table)));
    for (name, comparison) in &compared.others {
        let sides = [("A", &comparison.a), (*name, &comparison.b)];
        let left_out = left_out_notes(comparison, name);
        sections.push(sides_card(&sides, &differing_circumstances(comparison), &left_out));
    }
    let checks: Vec<Checked> =
        compared.others.iter().flat_map(|(_, comparison)| comparison.checks.clone()).collect();
    sections.push(answer_list(&checks));
    let sides = compared.sides().map(|(_, side)| side_names(side));
    let header: Vec<String> = std::iter::once("compare".to_owned()).chain(sides).collect();
    to.write_all(page(compared.version, title, &header, &sections).as_bytes())
}

/// Explains the rows of a comparison.
const ROWS_EXPLAINED: &str = "B divided by A: right of 1 is more. Dot: the change; line: its 95 % interval, with an arrow where it \
                         exceeds the axis; green: the tolerance within which both sides count as the same; hollow: the runs do not show whether the sides differ.";

/// Writes a comparison of several sides with the first.
pub(super) fn write_several(comparisons: &Comparisons, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let sentences: Vec<String> = comparisons
        .others
        .iter()
        .map(|o| format!("{}: {}. {}", o.name, o.comparison.answer.word(), o.comparison.sentence))
        .collect();
    let each: Vec<String> =
        comparisons.others.iter().map(|o| format!("{} {}", o.name, o.comparison.answer.word())).collect();
    let worst_first = [
        ComparisonAnswer::Invalid,
        ComparisonAnswer::Slower,
        ComparisonAnswer::Incomparable,
        ComparisonAnswer::CannotTell,
        ComparisonAnswer::NoDifferenceSeen,
        ComparisonAnswer::Faster,
        ComparisonAnswer::Same,
    ];
    let worst =
        worst_first.into_iter().find(|word| comparisons.others.iter().any(|o| o.comparison.answer == *word));
    let colour_word = worst.unwrap_or(ComparisonAnswer::CannotTell).word();
    let mut sections =
        vec![head_card(&each.join(", "), colour_word, "Several sessions against A", &sentences)];
    let changes = multiples("tables", draw_ratios_of_sides(comparisons).into_iter());
    if !changes.is_empty() {
        let lead = [ROWS_EXPLAINED.replacen("B divided", "Each divided", 1)];
        sections.push(card("Change of every number, side by side", &lead, &changes));
    }
    let title = format!("{} sessions compared", comparisons.others.len() + 1);
    write_compared(
        &Compared::several_sides(comparisons, true),
        &title,
        "Every number on every side",
        sections,
        to,
    )
}

fn side_names(side: &Side) -> String {
    side.sessions.iter().map(|s| format!("{} {}", s.title, s.started)).collect::<Vec<_>>().join(", ")
}

/// Draws every number as a ratio with its interval and all details; empty if no number is compared.
pub(super) fn draw_pair_ratios(pairs: &[Pair]) -> String {
    let rows = ratio_rows(pairs);
    if rows.is_empty() {
        return String::new();
    }
    let axis = common_axis(rows.iter());
    draw_ratios(&axis, &["A", "B", "Change", "95 % interval", "Answer"], rows)
}

/// Draws every number of several sides as a ratio with its interval, change and answer, all on one axis.
fn draw_ratios_of_sides(comparisons: &Comparisons) -> Vec<(String, String)> {
    let sides: Vec<Vec<IntervalRow>> =
        comparisons.others.iter().map(|o| ratio_rows(&o.comparison.pairs)).collect();
    let axis = common_axis(sides.iter().flatten());
    let html = |mut rows: Vec<IntervalRow>| {
        for row in &mut rows {
            // Keep the change and the answer.
            row.cells = [2, 4].into_iter().filter_map(|at| row.cells.get(at).cloned()).collect();
        }
        if rows.is_empty() { String::new() } else { draw_ratios(&axis, &["Change", "Answer"], rows) }
    };
    let names = comparisons.others.iter().map(|other| format!("{} against A", other.name));
    names.zip(sides.into_iter().map(html)).collect()
}

fn draw_ratios(axis: &Axis, headings: &[&str], rows: Vec<IntervalRow>) -> String {
    let labels = IntervalHeadings {
        caption: "Change of every number with its 95 % interval",
        first: "Number",
        axis: "B / A, logarithmic",
        headings,
    };
    // Always mark a ratio of 1.
    let mark = |ratio: f64| {
        if (ratio - 1.0).abs() < 1e-9 { "same".into() } else { format!("x {}", short_number(ratio)) }
    };
    draw_intervals_on(axis, &labels, rows, mark)
}

fn ratio_rows(pairs: &[Pair]) -> Vec<IntervalRow> {
    pairs
        .iter()
        .flat_map(|pair| with_title(&pair.name, pair.metrics.iter().map(ratio_row).collect()))
        .collect()
}

fn ratio_row(metric: &Metric) -> IntervalRow {
    let tolerance = metric.tolerance.unwrap_or(metric.margin);
    let direction = if metric.more_is_better { "" } else { ", less is better" };
    IntervalRow {
        name: format!("{}{direction}", metric.name),
        value: Some((metric.ratio, metric.interval)),
        is_hollow: matches!(metric.answer, ComparisonAnswer::CannotTell | ComparisonAnswer::NoDifferenceSeen),
        margin: Some([1.0 / (1.0 + tolerance), 1.0 + tolerance]),
        cells: vec![
            with_micro_sign(&format_value(metric, metric.a)),
            with_micro_sign(&format_value(metric, metric.b)),
            show_change(metric.ratio),
            or_dash(change_ends(metric), |ends| ends),
            metric.answer.word().into(),
        ],
        ..IntervalRow::default()
    }
}

/// Lists the value of the headline in every run of both sides; `None` if the headline is not
/// compared.
fn headline_runs(pairs: &[Pair]) -> Option<String> {
    let pair = pairs.iter().find(|p| p.headline)?;
    let metric = pair.metrics.first()?;
    let list = |runs: &[f64]| {
        with_micro_sign(
            &runs
                .iter()
                .map(|v| if metric.unit == "ns" { metric.show(*v) } else { show_rate(*v) })
                .collect::<Vec<_>>()
                .join(", "),
        )
    };
    let items = [("A".to_owned(), list(&metric.a_runs)), ("B".to_owned(), list(&metric.b_runs))];
    Some(plain_card(&format!("Every run: {}, {}", pair.name, metric.name), &facts(&items)))
}

/// Returns each aspect in which the sides differ, with its values on both sides. Equal entries of
/// several results are listed once.
fn differing_circumstances(comparison: &Comparison) -> Vec<(String, String)> {
    let all = comparison.pairs.iter().flat_map(|pair| &pair.differences);
    distinct(all.map(|d| (d.aspect.clone(), format!("{} -> {}", d.a, d.b))))
}

fn sides_card(sides: &[(&str, &Side)], differences: &[(String, String)], left_out: &[String]) -> String {
    let sessions = sides
        .iter()
        .flat_map(|(name, side)| side.sessions.iter().map(|s| ((*name).to_owned(), describe_source(s))));
    let mut items: Vec<(String, String)> = sessions.collect();
    items.extend(differences.iter().map(|(aspect, text)| (format!("{aspect} differs"), text.clone())));
    items.extend(left_out.iter().map(|text| ("left out".to_owned(), text.clone())));
    let names: Vec<&str> = sides.iter().map(|(name, _)| *name).collect();
    plain_card(&format!("What was compared: {}", names.join(" and ")), &facts(&items))
}

fn answer_list(checks: &[Checked]) -> String {
    let table = Columns::new(checks)
        .text("check", |checked| checked.id.to_string())
        .borrowed_text("name", |checked| &checked.name)
        .borrowed_text("answer", |checked| findings::answer_word(checked))
        .borrowed_text("sentence", |checked| &checked.sentence)
        .table(&[]);
    let body = folded("Every check of the comparison", &page::table("Every check of the comparison", &table));
    if body.is_empty() { body } else { plain_card("What was checked", &body) }
}

#[cfg(test)]
fn example() -> Result<SessionTable, Box<dyn std::error::Error>> {
    use model::history::Figure;
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
        mb_per_s: None,
    };
    let row = |session: &str| model::history::SessionRow {
        session: session.into(),
        verdict: Some(valid.verdict),
        targets: vec!["/a".into()],
        figures: vec![Some(figure.clone())],
        ..model::history::SessionRow::default()
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
fn sessions_are_side_by_side_on_one_scale() -> Result<(), Box<dyn std::error::Error>> {
    let table = example()?;
    let mut bytes = Vec::new();
    write_session_table(&table, Style::default(), &mut bytes)?;
    let html = String::from_utf8(bytes)?;
    assert!(html.contains("2 sessions side by side: 2 VALID"), "{html}");
    assert!(html.contains("fathom compare one two") && html.contains("<h3>one</h3>"), "{html}");
    // Both plots have the same ticks, although one has twice the rate.
    let all = results_of_column(&table, 0);
    let results: Vec<&Measured> = all.iter().map(|one| one.result).collect();
    let scale = time_series::CommonScale::from_results(&results);
    let plots: Vec<_> = all
        .iter()
        .filter_map(|one| time_series::draw_rates_on(one.result, &Events::default(), "x", &scale))
        .collect();
    assert_eq!(plots.len(), 2);
    assert_eq!((&plots[0].y, &plots[0].x), (&plots[1].y, &plots[1].x));
    assert_ne!(plots[0].paths, plots[1].paths);
    Ok(())
}

#[test]
fn the_plots_of_a_session_without_a_number_have_a_caveat() -> Result<(), Box<dyn std::error::Error>> {
    let mut table = example()?;
    let has_caveat = |table: &SessionTable| -> Result<bool, Box<dyn std::error::Error>> {
        let mut bytes = Vec::new();
        write_session_table(table, Style::default(), &mut bytes)?;
        Ok(String::from_utf8(bytes)?.contains("<b>The number of this result is withheld: "))
    };
    assert!(!has_caveat(&table)?);
    table.reports[1].results.iter_mut().for_each(|result| result.void = true);
    assert!(has_caveat(&table)?);
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
