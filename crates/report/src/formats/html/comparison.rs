//! Comparisons: the change of every number with its interval, on one axis around no change at all.
//!
//! For: two sides, and several against the first. Not for: deciding, which the comparison has done.

use super::filters;
use super::intervals::{IntervalHeadings, IntervalRow, common_axis, draw_intervals_on};
use super::page::{card, facts, folded, icon, multiples, page};
use super::plot::axis::Axis;
use super::table;
use super::words::{short_number, with_micro_sign};
use crate::format::Style;
use crate::rows::{self, PAIR_LEGEND, describe_source, interval, left_out_notes, value};
use crate::side_by_side;
use askama::Template;
use model::comparison::{Answer, Comparison, Comparisons, Metric, Pair, Side};
use model::finding::{Finding, Outcome};
use model::units::{show_change, show_rate};
use std::io::{self, Write};

#[derive(Template)]
#[template(path = "verdict.html")]
pub(super) struct Head<'c> {
    /// The first word, and the class that gives it its colour.
    pub(super) word: &'c str,
    pub(super) class: &'c str,
    pub(super) icon: &'static str,
    pub(super) heading: &'c str,
    pub(super) sentences: Vec<String>,
}

/// The first card of pages that have a word and a sentence. Its colour is that of a word without its further ones.
pub(super) fn head_card(word: &str, like: &str, heading: &str, sentences: &[String]) -> String {
    let class = like.split(' ').next().unwrap_or_default();
    let sentences = sentences.iter().map(|s| with_micro_sign(s)).collect();
    Head { word, class, icon: icon(class), heading, sentences }.render().unwrap_or_default()
}

/// Writes two sides.
pub(super) fn write_comparison(of: &Comparison, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let gate = of.gate.as_ref().map(|g| format!("{}: {}", g.outcome.word().word(), g.sentence));
    let sentences: Vec<String> = gate.into_iter().chain([of.sentence.clone()]).collect();
    let mut sections = vec![head_card(of.answer.word(), of.answer.word(), "B against A", &sentences)];
    let changes = ratios(&of.pairs);
    if !changes.is_empty() {
        sections.push(card("Change of every number", &[ROWS_EXPLAINED], &changes));
    }
    sections.extend(headline_runs(&of.pairs));
    sections.push(card(
        "All numbers",
        &[PAIR_LEGEND.to_owned()],
        &table::table("Every number of A and B", &rows::pair_table(&of.pairs, true)),
    ));
    sections.push(sides_card(
        &[("A", &of.a), ("B", &of.b)],
        &differing_circumstances(of),
        &left_out_notes(of, "B"),
    ));
    sections.push(answer_list(&of.findings));
    sections.retain(|section| !section.is_empty());
    let title = format!("{} · B against A · fathom", of.answer.word());
    let eye = ["compare".to_owned(), side_names(&of.a), side_names(&of.b)];
    to.write_all(page(&of.fathom.version, &title, &eye, &sections).as_bytes())
}

/// What the rows of a comparison show.
const ROWS_EXPLAINED: &str = "B by A: right of 1 is more. Dot: the change; line: its 95 % interval, with an arrow where it continues; green: the \
                         tolerance within which both count as the same; hollow: neither a difference nor the same was shown.";

/// Writes several sides, each against the first.
pub(super) fn write_several(of: &Comparisons, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let words: Vec<String> = of
        .others
        .iter()
        .map(|o| format!("{}: {}. {}", o.name, o.comparison.answer.word(), o.comparison.sentence))
        .collect();
    let each: Vec<String> =
        of.others.iter().map(|o| format!("{} {}", o.name, o.comparison.answer.word())).collect();
    let order = [
        Answer::Invalid,
        Answer::Slower,
        Answer::Incomparable,
        Answer::CannotTell,
        Answer::NoDifferenceSeen,
        Answer::Faster,
        Answer::Same,
    ];
    let worst = order.into_iter().find(|word| of.others.iter().any(|o| o.comparison.answer == *word));
    let like = worst.unwrap_or(Answer::CannotTell).word();
    let mut sections = vec![head_card(&each.join(", "), like, "Several sessions against A", &words)];
    let changes = multiples("tables", ratios_of_sides(of).into_iter());
    if !changes.is_empty() {
        let lead = [ROWS_EXPLAINED.replacen("B by A", "Each by A", 1)];
        sections.push(card("Change of every number, side by side", &lead, &changes));
    }
    sections.push(card(
        "All numbers",
        &[side_by_side::SIDES_LEGEND.to_owned()],
        &table::table("Every number on every side", &side_by_side::sides_table(of, true, true)),
    ));
    for other in &of.others {
        let c = &other.comparison;
        sections.push(sides_card(
            &[("A", &c.a), (&other.name, &c.b)],
            &differing_circumstances(c),
            &left_out_notes(c, &other.name),
        ));
    }
    let all: Vec<Finding> = of.others.iter().flat_map(|o| o.comparison.findings.clone()).collect();
    sections.push(answer_list(&all));
    sections.retain(|section| !section.is_empty());
    let eye: Vec<String> = std::iter::once("compare".to_owned())
        .chain(of.others.first().map(|o| side_names(&o.comparison.a)))
        .chain(of.others.iter().map(|o| side_names(&o.comparison.b)))
        .collect();
    to.write_all(
        page(
            &of.fathom.version,
            &format!("{} sessions compared · fathom", of.others.len() + 1),
            &eye,
            &sections,
        )
        .as_bytes(),
    )
}

fn side_names(side: &Side) -> String {
    side.sessions.iter().map(|s| format!("{} {}", s.title, s.started)).collect::<Vec<_>>().join(", ")
}

/// Every number as a ratio with its interval and all that there is to know beside it; nothing where none is compared.
pub(super) fn ratios(pairs: &[Pair]) -> String {
    let rows = ratio_rows(pairs);
    if rows.is_empty() {
        return String::new();
    }
    let axis = common_axis(&rows);
    draw_ratios(&axis, &["A", "B", "Change", "95 % interval", "Answer"], rows)
}

/// Every number of several sides as a ratio with its interval and nothing but the change and the answer beside it, all on one axis.
fn ratios_of_sides(of: &Comparisons) -> Vec<(String, String)> {
    let sides: Vec<Vec<IntervalRow>> = of.others.iter().map(|o| ratio_rows(&o.comparison.pairs)).collect();
    let axis =
        common_axis(&of.others.iter().flat_map(|o| ratio_rows(&o.comparison.pairs)).collect::<Vec<_>>());
    let html = |rows: Vec<IntervalRow>| {
        let alone = |row: IntervalRow| IntervalRow {
            cells: row
                .cells
                .into_iter()
                .enumerate()
                .filter(|(at, _)| [2, 4].contains(at))
                .map(|(_, cell)| cell)
                .collect(),
            ..row
        };
        let rows: Vec<IntervalRow> = rows.into_iter().map(alone).collect();
        if rows.is_empty() { String::new() } else { draw_ratios(&axis, &["Change", "Answer"], rows) }
    };
    of.others.iter().zip(sides).map(|(o, rows)| (format!("{} against A", o.name), html(rows))).collect()
}

fn draw_ratios(axis: &Axis, headings: &[&str], rows: Vec<IntervalRow>) -> String {
    let words = IntervalHeadings {
        caption: "Change of every number with its 95 % interval",
        first: "Number",
        axis: "B by A, logarithmic",
        headings,
    };
    // A mark at no change at all, whatever else there is.
    let mark = |ratio: f64| {
        if (ratio - 1.0).abs() < 1e-9 { "same".into() } else { format!("x {}", short_number(ratio)) }
    };
    draw_intervals_on(axis, &words, rows, mark)
}

fn ratio_rows(pairs: &[Pair]) -> Vec<IntervalRow> {
    let of = |pair: &Pair| {
        let title = |at: usize| if at == 0 { pair.name.clone() } else { String::new() };
        let rows = pair
            .metrics
            .iter()
            .enumerate()
            .map(|(at, metric)| IntervalRow { title: title(at), ..ratio_row(metric) });
        rows.collect::<Vec<_>>()
    };
    pairs.iter().flat_map(of).collect()
}

fn ratio_row(metric: &Metric) -> IntervalRow {
    let tolerance = metric.tolerance.unwrap_or(metric.margin);
    let direction = if metric.more_is_better { "" } else { ", less is better" };
    IntervalRow {
        name: format!("{}{direction}", metric.name),
        value: Some((metric.ratio, metric.interval)),
        hollow: matches!(metric.answer, Answer::CannotTell | Answer::NoDifferenceSeen),
        margin: Some([1.0 / (1.0 + tolerance), 1.0 + tolerance]),
        cells: vec![
            with_micro_sign(&value(metric, metric.a)),
            with_micro_sign(&value(metric, metric.b)),
            show_change(metric.ratio),
            interval(metric).unwrap_or_else(|| "-".into()),
            metric.answer.word().into(),
        ],
        ..IntervalRow::default()
    }
}

/// Every run of the headline's number on both sides.
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
    Some(card(&format!("Every run: {}, {}", pair.name, metric.name), &[] as &[&str], &facts(&items)))
}

/// Circumstances that differ, each once.
fn differing_circumstances(of: &Comparison) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for d in of.pairs.iter().flat_map(|p| &p.differences) {
        let item = (d.aspect.clone(), format!("{} -> {}", d.a, d.b));
        if !out.contains(&item) {
            out.push(item);
        }
    }
    out
}

fn sides_card(sides: &[(&str, &Side)], differences: &[(String, String)], left_out: &[String]) -> String {
    let sessions = sides
        .iter()
        .flat_map(|(name, side)| side.sessions.iter().map(|s| ((*name).to_owned(), describe_source(s))));
    let mut items: Vec<(String, String)> = sessions.collect();
    items.extend(differences.iter().map(|(aspect, words)| (format!("{aspect} differs"), words.clone())));
    items.extend(left_out.iter().map(|words| ("left out".to_owned(), words.clone())));
    let names: Vec<&str> = sides.iter().map(|(name, _)| *name).collect();
    card(&format!("What was compared: {}", names.join(" and ")), &[] as &[&str], &facts(&items))
}

fn answer_list(findings: &[Finding]) -> String {
    let mut of = crate::table::Table::new(&["check", "name", "answer", "sentence"], &[])
        .aligned(1, true)
        .aligned(2, true);
    for f in findings {
        let answer = match f.outcome {
            Outcome::Finding => f.severity.map_or("note", model::finding::Severity::effect),
            Outcome::NotChecked => "not checked",
            Outcome::Holds => "passed",
        };
        of.add([f.id.to_string(), f.name.clone(), answer.into(), f.sentence.clone()]);
    }
    let body = folded("Every check of the comparison", &table::table("Every check of the comparison", &of));
    if body.is_empty() { body } else { card::<&str>("What was checked", &[], &body) }
}
