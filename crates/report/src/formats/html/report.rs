//! The page of a measurement, in its order: verdict and headline, conditions of `--fail-if`, main figures, replays, findings that affect
//! numbers, further figures and plots, hosts, the comparison with an earlier session, notes and checks, what was derived from the results,
//! how to repeat it, and the machine with the settings.

use super::page::filters;
use super::page::{card, facts, folded, icon, page, plain_card, repeat_card, time, with_micro_sign};
use super::plot::{Axis, Label, Plot, SIDE};
use super::time_series::Events;
use super::{page, plot, results, studies};
use crate::Style;
use crate::view::findings::{affects_number, answer_word, merge_repeated};
use crate::view::lists::count_of;
use crate::view::numbers::{accepted_suffix, percentile_ns, with_supported_digits};
use crate::view::report::{chains, describe_commits, describe_ending, headline_number};
use crate::view::results::{directions, main_figures, read_write_tests, replay_caption, replay_table};
use crate::view::table::{Columns, or_dash};
use crate::view::{comparison, findings};
use askama::Template;
use model::finding::{Checked, Outcome, Severity};
use model::machine::Place;
use model::report::{CountsAs, Figures, Measured, Quick, Report, RunFigures, StoredFile, Verdict};
use model::study::Studied;
use model::units::{show_bytes, show_count, show_rate, show_share};
use model::verdict::Gate;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes the page of a measurement.
pub(super) fn write_report(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let shown = findings::shown_checks(report);
    let (study, below) = study_cards(report);
    let mut sections = vec![hero_card(report, &shown)];
    sections.extend(gate_card(report));
    sections.push(study);
    sections.extend(report.results.iter().filter(|result| !result.void).filter_map(replay_card));
    sections.extend([findings_card(report, &shown), below]);
    sections.extend(studies::hosts_card(report));
    sections.extend(rerun_card(report));
    sections.extend([checks_card(report, &shown), foot_cards(report)]);
    // The title of the tab has the most important words first.
    let number = findings::headline_value(&report.headline);
    let title = format!("{} · {number} · {}", report.verdict.word(), report.headline.name);
    to.write_all(page(&report.fathom.version, &title, &page_header(report), &sections).as_bytes())
}

/// Returns the line at the top of the page.
fn page_header(report: &Report) -> Vec<String> {
    let (title, started) = (vec![report.title.clone()], vec![report.started.clone()]);
    [title, chains(&report.machine.places), started, report.annotations.tags.clone()].concat()
}

/// Returns the cards with the main figures, which are above the findings, and the cards below the findings.
fn study_cards(report: &Report) -> (String, String) {
    match &report.study {
        Studied::Jobs | Studied::Profile(_) => {
            let cards = results::result_cards(report);
            if let [only] = report.results.as_slice() {
                return (tiles(only), cards);
            }
            let lead = [
                "Latency from submission to completion; - where too few operations support it; ~ rounded, since the interval is wide.",
            ];
            let all = card("All figures", &lead, &studies::full_table(report, "Every result"));
            (grid_card(report), cards + &all)
        }
        Studied::Layers(layers) => {
            let figures = plain_card("All figures", &studies::full_table(report, "Every layer"));
            (studies::layers_card(report, layers), format!("{}{figures}", results::result_cards(report)))
        }
        Studied::Limit(curve) => (studies::load_curve_card(report, curve), String::new()),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => {
            let cells = studies::full_table(report, "Every setting");
            (plain_card("Every setting", &cells), studies::sweep_cards(report, sweep))
        }
        Studied::Sweep(sweep) => (studies::sweep_cards(report, sweep), String::new()),
        Studied::Interfaces(api) => (studies::interface_cards(report, api), String::new()),
        Studied::Targets(targets) => (studies::target_cards(report, targets), results::result_cards(report)),
        Studied::Commands(results) => {
            let lead: Vec<&str> = results.commands.iter().map(|one| one.sentence.as_str()).collect();
            let runs = studies::full_table(report, "Every run");
            (card("Commands", &lead, &runs), String::new())
        }
        Studied::Hosts(scaling) => {
            (studies::host_count_cards(report, scaling), results::result_cards(report))
        }
    }
}

/// Returns the card with the grid of reads and writes, or with a table of all results if there is
/// no grid. For a profile with a grid, adds how the profile differs from the imitated tool, and the
/// score.
fn grid_card(report: &Report) -> String {
    let mut body = test_grid(&report.results);
    let mut lead = vec!["MB/s = 10^6 bytes per second; each bar is relative to the fastest test.".to_owned()];
    if let Studied::Profile(shown) = &report.study {
        lead.extend(shown.differs.iter().cloned());
        if let Some(score) = &shown.score {
            let points = |p: &model::profile::Points| or_dash(p.value, show_rate);
            lead.push(format!(
                "Score of {}: read {}, write {}, total {}.",
                shown.tool,
                points(&score.read),
                points(&score.write),
                points(&score.total)
            ));
        }
    }
    if body.is_empty() {
        lead.clear();
        body = studies::full_table(report, "Every result");
    }
    card("Every test", &lead, &body)
}

/// Returns the comparison of a replay with its original; `None` if the result is not a replay.
fn replay_card(result: &Measured) -> Option<String> {
    let replay = result.replay.as_deref()?;
    let heading = replay_caption(replay);
    Some(card(&heading, &replay.differs, &page::table("Every figure of both", &replay_table(replay))))
}

/// Returns a table of the conditions of `--fail-if` with their answers; `None` without conditions.
fn gate_card(report: &Report) -> Option<String> {
    let show = |gate: &Gate, v: f64| {
        if gate.unit == "ns" { time(v) } else { format!("{} {}", show_rate(v), gate.unit) }
    };
    let table = Columns::new(&report.gates)
        .borrowed_text("condition", |gate| &gate.condition)
        .borrowed_text("answer", |gate| gate.word.word())
        .borrowed_text("result", |gate| &gate.result)
        .value("measured", |gate| or_dash(gate.value, |value| show(gate, value)))
        .value("limit", |gate| show(gate, gate.limit))
        .borrowed_text("sentence", |gate| &gate.sentence)
        .table(&[]);
    (!table.is_empty())
        .then(|| plain_card("Conditions", &page::table("Every condition and its answer", &table)))
}

/// Returns the comparison with an earlier session that was measured again; `None` without one.
fn rerun_card(report: &Report) -> Option<String> {
    let rerun = report.against.as_ref()?;
    let pairs = &rerun.workload_comparison.pairs;
    let lead = [
        format!("{}: {}", rerun.workload_comparison.answer.word(), rerun.workload_comparison.sentence),
        comparison::pair_legend(pairs, &["A", "visible", "runs"]),
    ];
    let heading = format!("Against {}, measured again in alternation", rerun.session);
    let body = format!(
        "{}{}",
        super::sessions::draw_pair_ratios(&rerun.workload_comparison.pairs),
        page::table("Every number of both", &comparison::pair_table(&rerun.workload_comparison.pairs, true))
    );
    Some(card(&heading, &lead, &body))
}

/// Maximum number of runs whose dots are drawn at different heights.
const MAX_STAGGERED_RUNS: usize = 12;
/// If an end of the interval is beyond the axis, the label of that end keeps at least this distance
/// from the edge of the drawing, in units of the drawing.
const CUT_LABEL_INSET: f64 = 60.0;

#[derive(Template)]
#[template(path = "hero.html")]
struct Hero {
    answers: Vec<AnswerLine>,
    verdict: &'static str,
    icon: &'static str,
    /// How many results have each verdict; empty for a single result.
    counts: String,
    /// Verdict on the result of the headline. Empty if the headline has no result or no number.
    /// Also empty if there is a single result, because the session has the same verdict.
    own_verdict: &'static str,
    own_icon: &'static str,
    /// Value of the headline as it is shown, or `no number`.
    number: String,
    /// Value of the headline with all digits, for programs; empty without a number.
    raw: String,
    unit: String,
    name: String,
    sentences: Vec<String>,
    /// HTML of the plot of runs; empty without a plot.
    runs: String,
    /// Text below the plot of runs; empty without a plot.
    runs_description: String,
}

/// An answer with its reason.
struct AnswerLine {
    word: &'static str,
    /// How the answer counts for the exit code; usually empty.
    remark: &'static str,
    sentence: String,
}

impl AnswerLine {
    fn new(word: &'static str, remark: &'static str, sentence: &str) -> Self {
        Self { word, remark, sentence: with_micro_sign(sentence) }
    }
}

/// Returns the result of the headline: the only result, or the one with the headline's name and value, if any. For a load curve or a
/// sweep, returns the first result that the headline depends on.
pub(super) fn headline_result(report: &Report) -> Option<&Measured> {
    let is_headline =
        |r: &&Measured| r.true_name == report.headline.name && r.quoted_rate().value == report.headline.value;
    match report.results.as_slice() {
        [only] => Some(only),
        all => match &report.study {
            Studied::Limit(curve) => all.get(*curve.headline_results.first()?),
            Studied::Sweep(sweep) => all.get(sweep.winner.values().next()?.result?),
            _ => all.iter().find(is_headline),
        },
    }
}

/// Returns the first card: answers, verdict, headline and the plot of runs.
pub(super) fn hero_card(report: &Report, shown: &[Checked]) -> String {
    let value = report.headline.value;
    let full_headline = headline_number(&report.headline, report);
    let number = value.map_or_else(|| "no number".to_owned(), show_rate);
    let beyond =
        full_headline.strip_prefix(&format!("{number} {}", report.headline.unit)).unwrap_or("").trim();
    let beyond = beyond.trim_start_matches(['(', ',']).trim_end_matches(')').trim();
    let reason = findings::verdict_reason(report, shown).map(str::to_owned);
    let accepted = as_sentence(accepted_suffix(&report.headline.accepted).trim_start_matches(", "));
    let busy = report.busy_machine.iter().map(|sentence| as_sentence(sentence));
    let sentences = [Some(as_sentence(beyond)), describe_commits(report), Some(accepted), reason]
        .into_iter()
        .flatten()
        .chain(busy);
    let sentences =
        sentences.chain(describe_ending(report)).chain([findings::describe_limiter(report, shown)]);
    let sentences = sentences.filter(|s| !s.is_empty()).map(|s| with_micro_sign(&s));
    let runs =
        headline_result(report).filter(|_| !matches!(report.study, Studied::Limit(_) | Studied::Sweep(_)));
    let drawn = runs.and_then(|result| draw_runs(report, result));
    let has_own = report.results.len() > 1 && value.is_some();
    let own = headline_result(report).filter(|_| has_own).map_or("", |result| result.verdict.word());
    let hero = Hero {
        own_verdict: own,
        own_icon: icon(own),
        answers: answer_lines(report),
        verdict: report.verdict.word(),
        icon: icon(report.verdict.word()),
        counts: report.counts.sentence.clone().unwrap_or_default(),
        raw: value.map_or_else(String::new, |v| v.to_string()),
        unit: if value.is_some() { report.headline.unit.replace("us", "µs") } else { String::new() },
        number,
        name: with_micro_sign(&report.headline.name),
        sentences: sentences.collect(),
        runs_description: runs.filter(|_| drawn.is_some()).map_or_else(String::new, describe_runs_plot),
        runs: drawn.map_or_else(String::new, |plot| {
            plot.html().replacen("class=\"plot\"", "class=\"plot narrow\"", 1)
        }),
    };
    hero.render().unwrap_or_default()
}

/// Turns text into a sentence with a capital letter and a full stop. Empty text remains empty.
fn as_sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), letters.as_str().trim_end_matches('.'))
    })
}

/// Returns the note of a quick run, the answer to the command's question, and the answer of the comparison with an earlier session.
fn answer_lines(report: &Report) -> Vec<AnswerLine> {
    let quick = report.quick.as_ref().map(|quick| AnswerLine::new(Quick::WORD, "", &quick.sentence()));
    let answer = report.answer.as_ref().map(|answer| {
        let remark = report.counts_as.map_or("", CountsAs::remark);
        AnswerLine::new(answer.word.word(), remark, &answer.sentence)
    });
    let against = report.against.as_ref().map(|rerun| {
        let sentence = format!(
            "against {}, measured again in alternation: {}",
            rerun.session, rerun.workload_comparison.sentence
        );
        AnswerLine::new(rerun.workload_comparison.answer.word(), "", &sentence)
    });
    quick.into_iter().chain(answer).chain(against).collect()
}

/// Explains the plot of runs.
fn describe_runs_plot(result: &Measured) -> String {
    let count = result.runs.len();
    let hollow = if result.disturbed.iter().any(|d| d.counts) { " Hollow: a disturbed run." } else { "" };
    let first = if count <= MAX_STAGGERED_RUNS { ", the first at the top" } else { "" };
    let band = if result.quoted_rate().interval.is_some() { "; band: its 95 % interval" } else { "" };
    format!("{}{first}. Line: their mean{band}.{hollow}", count_of(count, "run"))
}

/// Draws every run with the mean and its interval; `None` with one run or without a number.
fn draw_runs(report: &Report, result: &Measured) -> Option<Plot> {
    let quoted = result.quoted_rate();
    let value = quoted.value.filter(|_| result.runs.len() > 1)?;
    let rate = |r: &RunFigures| if quoted.unit == "IOPS" { r.iops } else { r.mb_per_s };
    let rates: Vec<f64> = result.runs.iter().map(rate).collect();
    let (low, high) = rates.iter().fold((value, value), |(l, h), v| (l.min(*v), h.max(*v)));
    // The interval of three runs can be absurdly wide: limit it to a multiple of their range.
    let room = (4.0 * (high - low)).max(0.02 * value);
    let [from, to] = quoted.interval.map_or([low, high], |[l, h]| [l.max(low - room), h.min(high + room)]);
    let around = 0.08 * (to.max(high) - from.min(low)).max(1e-9 * value);
    let x = Axis::linear(from.min(low) - around, to.max(high) + around);
    let events = Events::from_result(report, result);
    let is_disturbed = |run: &RunFigures| events.disturbed.iter().any(|(disturbed, _)| *disturbed == run.run);
    let height = |at: usize| {
        if rates.len() > MAX_STAGGERED_RUNS { 500.0 } else { SIDE * (at as f64 + 0.5) / rates.len() as f64 }
    };
    let mut plot = Plot {
        title: "Each run and the mean".into(),
        description: format!(
            "Runs {}; mean {}",
            rates.iter().take(20).map(|v| show_rate(*v)).collect::<Vec<_>>().join(", "),
            show_rate(value)
        ),
        height: if rates.len() > MAX_STAGGERED_RUNS { 56 } else { 26 + 13 * rates.len() as u32 },
        ..Plot::default()
    };
    if let Some([low, high]) = quoted.interval {
        plot.draw("band", &plot::full_height(x.within(low), x.within(high)));
    }
    plot.draw("ours", &plot::line([(x.along(value), 0.0), (x.along(value), SIDE)]));
    let places = || rates.iter().enumerate().map(|(at, v)| (x.along(*v), height(at)));
    plot.draw("dot", &plot::dots(places()));
    let hollow = places().zip(&result.runs).filter(|(_, run)| is_disturbed(run)).map(|(place, _)| place);
    plot.draw("hollow-in", &plot::dots(hollow));
    let mark = |v: f64, sign: &str| {
        if (0.0..=SIDE).contains(&x.along(v)) {
            Label::tick(x.along(v), show_rate(v))
        } else {
            // Keep the label inside the card.
            let at = x.within(v).clamp(CUT_LABEL_INSET, SIDE - CUT_LABEL_INSET);
            Label::tick(at, format!("{sign} {}", show_rate(v)))
        }
    };
    let ends = quoted.interval.map(|[low, high]| [mark(low, "◂"), mark(high, "▸")]);
    plot.x = ends.into_iter().flatten().collect();
    // Leave out the labels of a narrow interval, because they would overlap each other.
    plot.x.retain(|tick| (tick.at - x.along(value)).abs() > 60.0);
    Some(plot)
}

#[derive(Template)]
#[template(path = "tiles.html")]
struct Tiles {
    tiles: Vec<Tile>,
}

struct Tile {
    name: String,
    value: String,
    note: String,
}

/// Returns a row of figures of a result: latencies, rate, CPU time, device bytes against issued bytes; empty for a void result.
pub(super) fn tiles(result: &Measured) -> String {
    if result.void {
        return String::new();
    }
    let latencies = main_figures(result).map(|figures| latency_tiles(figures, result));
    let tiles: Vec<Tile> = latencies.into_iter().flatten().chain(rate_tiles(result)).collect();
    if tiles.is_empty() { String::new() } else { Tiles { tiles }.render().unwrap_or_default() }
}

fn latency_tiles(figures: &Figures, result: &Measured) -> Vec<Tile> {
    let own = directions(result).find(|(_, of_direction)| std::ptr::eq(*of_direction, figures));
    let has_several = directions(result).count() > 1;
    let prefix = own.filter(|_| has_several).map_or_else(String::new, |(word, _)| format!("{word} "));
    let value = |rank: &str| percentile_ns(&figures.latency_ns.percentiles, rank);
    let last = ["99.99", "99.9"].into_iter().find(|rank| value(rank).is_some()).unwrap_or("99.9");
    let names = [
        ("50", "Median latency".to_owned()),
        ("99", "99 % within".into()),
        (last, format!("{last} % within")),
    ];
    let tile = |(rank, name): (&str, String)| Tile {
        name,
        value: page::time_or_dash(value(rank).map(|ns| ns as f64)),
        note: if value(rank).is_some() { format!("{prefix}p{rank}") } else { "not enough operations".into() },
    };
    names.into_iter().map(tile).collect()
}

fn rate_tiles(result: &Measured) -> Vec<Tile> {
    let mut out = Vec::new();
    if let Some(total) = &result.total {
        let (value, note) = if result.quoted_rate().unit == "IOPS" {
            (format!("{} MB/s", show_rate(total.mb_per_s)), format!("{} MiB/s", show_rate(total.mib_per_s)))
        } else {
            (format!("{} IOPS", show_rate(total.iops)), format!("{} MiB/s", show_rate(total.mib_per_s)))
        };
        out.push(Tile { name: "Throughput".into(), value, note });
    }
    if let Some(cost) = &result.cost {
        let note = format!("{} in user space", time(cost.user_ns));
        out.push(Tile { name: "CPU per operation".into(), value: time(cost.user_ns + cost.system_ns), note });
    }
    let mut accounts = result.ledger.iter().flat_map(|l| [l.read.as_ref(), l.write.as_ref()]).flatten();
    if let Some(entry) = accounts.find_map(|a| a.layers.first()) {
        let counted = entry.with_sync.or(entry.counted);
        let value = entry.difference.map_or_else(
            || "not counted".into(),
            |d| format!("{}{}", if d >= 0.0 { "+" } else { "" }, show_share(d)),
        );
        let note = counted.map_or_else(
            || entry.word.clone(),
            |m| format!("bytes on {}, in {} requests", entry.name, show_count(m.ios as f64)),
        );
        out.push(Tile { name: "Device against issued".into(), value, note });
    }
    out
}

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
    /// Width of the bar, in thousandths of the widest bar.
    width: u32,
}

/// Returns the grid of reads and writes; empty if the results have neither.
pub(super) fn test_grid(results: &[Measured]) -> String {
    let both = |r: &Measured| [r.read.as_ref(), r.write.as_ref()].map(|f| f.map(|f| f.mb_per_s));
    let most = results.iter().filter(|r| !r.void).flat_map(both).flatten().fold(0.0, f64::max);
    let tests = read_write_tests(results.iter().filter(|r| r.trim.is_none())).into_iter();
    let rows = tests.filter(|test| test.halves.iter().any(Option::is_some)).map(|test| GridRow {
        name: test.name.to_owned(),
        cells: test.halves.map(|half| half.map(|(result, figures)| grid_cell(result, figures, most))),
    });
    let rows: Vec<GridRow> = rows.collect();
    if rows.is_empty() { String::new() } else { TestGrid { rows }.render().unwrap_or_default() }
}

fn grid_cell(result: &Measured, figures: &Figures, most: f64) -> GridCell {
    if result.void {
        let verdict = Verdict::Invalid.word();
        return GridCell { number: "no number".into(), raw: None, note: String::new(), verdict, width: 0 };
    }
    let mut note = format!("{} IOPS", with_supported_digits(figures.iops, figures.iops_interval));
    if let Some(ns) = percentile_ns(&figures.latency_ns.percentiles, "50") {
        let _ = write!(note, ", p50 {}", time(ns as f64));
    }
    let part = if most > 0.0 { figures.mb_per_s / most } else { 0.0 };
    GridCell {
        number: with_supported_digits(figures.mb_per_s, figures.mb_per_s_interval),
        raw: Some(figures.mb_per_s.to_string()),
        note: with_micro_sign(&note),
        verdict: result.verdict.word(),
        width: (1000.0 * part.clamp(0.0, 1.0)) as u32,
    }
}

#[derive(Template)]
#[template(path = "findings.html")]
struct FindingList {
    findings: Vec<FindingItem>,
}

struct FindingItem {
    class: &'static str,
    id: String,
    severity: String,
    about: String,
    sentence: String,
    fix: String,
}

/// Returns the card of findings that affect numbers; empty without any.
pub(super) fn findings_card(report: &Report, checks: &[Checked]) -> String {
    let found = merge_repeated(checks.iter().filter(|f| affects_number(f)).cloned());
    if found.is_empty() {
        return String::new();
    }
    plain_card("Findings that affect the numbers", &finding_list(&found, report.results.len()))
}

/// Returns the card of notes, of checks that could not be made, and of every check with its answer; empty without checks.
pub(super) fn checks_card(report: &Report, checks: &[Checked]) -> String {
    if checks.is_empty() {
        return String::new();
    }
    let is_note =
        |f: &&Checked| f.outcome == Outcome::Finding && f.severity.is_none_or(|s| s == Severity::Note);
    let notes = merge_repeated(checks.iter().filter(is_note).cloned());
    let unchecked = merge_repeated(checks.iter().filter(|f| f.outcome == Outcome::NotChecked).cloned());
    let held = merge_repeated(checks.iter().filter(|f| f.outcome == Outcome::Holds).cloned());
    let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let lead = [
        count(notes.len(), "note", "notes"),
        count(unchecked.len(), "check could not be made", "checks could not be made"),
        count(held.len(), "check passed", "checks passed"),
    ];
    let mut body = if notes.is_empty() { String::new() } else { finding_list(&notes, report.results.len()) };
    let not_made =
        if unchecked.is_empty() { String::new() } else { finding_list(&unchecked, report.results.len()) };
    body += &folded("What could not be checked, and why", &not_made);
    body += &folded("Every check and its answer", &check_table(checks));
    card("What was checked", &[format!("{}.", lead.join(", "))], &body)
}

fn finding_list(checks: &[Checked], results: usize) -> String {
    let item = |f: &Checked| {
        let class = match (f.outcome, f.severity) {
            (Outcome::NotChecked, _) => "unchecked",
            (_, Some(Severity::Invalidates)) => "void",
            (_, Some(Severity::Relabels)) => "rename",
            (_, Some(Severity::Biases)) => "biased",
            (_, Some(Severity::Note) | None) => "note",
        };
        let accepted = if f.accepted { ", accepted" } else { "" };
        FindingItem {
            class,
            id: f.id.to_string(),
            severity: format!("{}{accepted}", answer_word(f)),
            about: findings::results_suffix(f, results),
            sentence: with_micro_sign(&f.sentence),
            fix: with_micro_sign(&f.fix),
        }
    };
    FindingList { findings: checks.iter().map(item).collect() }.render().unwrap_or_default()
}

/// Returns a row for each check, or several rows if the check has different answers for different results. A row names
/// the first of its results and counts the others.
fn check_table(checks: &[Checked]) -> String {
    let mut seen = BTreeSet::new();
    let first = checks.iter().filter(|checked| seen.insert((checked.id, checked.outcome, checked.severity)));
    let about = |checked: &Checked| {
        let key = |f: &Checked| (f.id, f.outcome, f.severity);
        let same = checks.iter().filter(|f| key(f) == key(checked));
        let first = checked.about.first().map_or("", String::as_str);
        match same.map(|f| f.about.len()).sum::<usize>() {
            0 => String::new(),
            1 => first.to_owned(),
            n => format!("{first} and {} more", n - 1),
        }
    };
    let table = Columns::new(first)
        .text("check", |checked| checked.id.to_string())
        .borrowed_text("name", |checked| &checked.name)
        .borrowed_text("answer", |checked| answer_word(checked))
        .text("about", |checked| about(checked))
        .borrowed_text("sentence", |checked| &checked.sentence)
        .table(&[]);
    page::table("Every check and its answer", &table)
}

/// Maximum number of results whose settings are listed.
const MAX_LISTED_RESULTS: usize = 12;

/// Returns the cards below the checks.
pub(super) fn foot_cards(report: &Report) -> String {
    let mut out = String::new();
    let derived = report.deductions.iter().map(|d| (d.name.clone(), with_micro_sign(&d.sentence)));
    let derived = facts(&derived.collect::<Vec<_>>());
    if !derived.is_empty() {
        out += &plain_card("Derived from these results", &derived);
    }
    let commands = repeat_commands(report);
    if !commands.is_empty() {
        out += &plain_card("Repeat it", &repeat_card(commands));
    }
    let settings = folded("Settings", &settings_table(report));
    out + &plain_card("Where and how", &(facts(&machine_facts(report)) + &settings))
}

/// Returns the commands that repeat the measurement, show its session, and compare a later session with it.
fn repeat_commands(report: &Report) -> Vec<(&'static str, String)> {
    let mut commands = Vec::new();
    let measured = findings::command_line(&report.command);
    if !measured.is_empty() {
        commands.push(("Measure it again:", measured));
    }
    if let Some(name) = findings::name_to_type(report) {
        let show = findings::fathom_command(["show", &name, "--verbose"]);
        let is_from_file = report.json_file.is_some();
        let aim =
            if is_from_file { "Show this report again:" } else { "Check this session again and show it:" };
        commands.push((aim, show));
        let compare = findings::fathom_command(["compare", &name, "last"]);
        commands.push(("Compare a later session with it:", compare));
    }
    commands
}

/// Returns the targets, the file, the machine, the time and title, notes, tags, the user's comments, and the session.
fn machine_facts(report: &Report) -> Vec<(String, String)> {
    let machine = &report.machine;
    let unknown = || "unknown".to_owned();
    let mut out: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() && out.last().is_none_or(|last| (last.0.as_str(), &last.1) != (name, &value)) {
            out.push((name.to_owned(), value));
        }
    };
    for place in &machine.places {
        add("Target", Place::chain(place));
    }
    add("File", StoredFile::describe(&report.files).unwrap_or_default());
    add("Host", machine.host.clone());
    add("Kernel", machine.kernel.clone());
    add(
        "CPU",
        format!(
            "{}, {}",
            machine.cpu.clone().unwrap_or_else(|_| unknown()),
            count_of(machine.cpus as usize, "CPU")
        ),
    );
    add("Memory", machine.memory_bytes.as_ref().map_or_else(|_| unknown(), |b| show_bytes(*b)));
    add("Measured", format!("{}, fathom {}, {}", report.started, report.fathom.version, report.title));
    for note in &report.notes {
        add("Note", with_micro_sign(note));
    }
    add("Tags", report.annotations.tags.join(" "));
    for note in &report.annotations.notes {
        add("Comment", format!("{}: {}", note.at, note.text));
    }
    add("Session", report.session.clone().unwrap_or_else(|| "not kept".into()));
    out
}

/// Returns the job of each result as it ran: the values of the JSON, one per line.
fn settings_table(report: &Report) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for result in report.results.iter().take(MAX_LISTED_RESULTS) {
        rows.push((result.name.clone(), result.true_name.clone()));
        if let Ok(job) = serde_json::to_value(&result.job) {
            flatten("", &job, &mut rows);
        }
    }
    let rest = report.results.len().saturating_sub(MAX_LISTED_RESULTS);
    if rest > 0 {
        rows.push(("more".into(), format!("results only in the JSON: {rest}")));
    }
    facts(&rows)
}

/// Flattens nested values into rows with dotted names.
fn flatten(name: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(all) => all.iter().for_each(|(key, value)| flatten(&below(key), value, rows)),
        Value::Array(all) if all.iter().any(|v| v.is_object() || v.is_array()) => {
            all.iter().enumerate().for_each(|(at, value)| flatten(&below(&at.to_string()), value, rows));
        }
        Value::Array(all) if all.is_empty() => {}
        Value::Null => {}
        Value::String(text) => rows.push((name.to_owned(), text.clone())),
        other => rows.push((name.to_owned(), other.to_string())),
    }
}
