//! The sweep as text: who wins each work, who is as fast for less, what well-known programs lose, and the map of the rest.
//!
//! For: a report about a grid; it stands in place of the table of results. Not for: other reports.

use super::map::{self, Marks};
use crate::page::{Page, half_width, supported, verdict_mark};
use crate::table::Table;
use model::finding::{Finding, Outcome, Severity};
use model::measure::Measure;
use model::report::{AnswerWord, Report};
use model::spec::presets::IOMETER;
use model::steadiness::Estimate;
use model::sweep::{CellFigures, Chosen, Loss, Setting, Sweep, Work};
use model::units::{show_bytes, show_ns, show_share};

const SWEEP_HEADINGS: [&str; 13] = [
    "",
    "setting",
    "verdict",
    "IOPS",
    "MB/s",
    "±95 %",
    "p99",
    "mean",
    "longest",
    "CPU",
    "memory",
    "CPU/MiB",
    "against the fastest",
];
/// Columns that leave where there is no room, the first of them first.
const SWEEP_DROP_ORDER: [usize; 8] = [11, 10, 2, 5, 9, 8, 7, 4];
/// Reasons for skipping that are told; `--skipped` and the JSON have all.
const MAX_REASONS: usize = 4;
/// Rows of a work that are shown where each of its cells has one; `--verbose` has all.
const MAX_WORK_ROWS: usize = 24;

/// What stands below a table of all cells.
const EACH_LEGEND: &str = "mean, longest: latency from submission to completion; CPU: of the workers, 100 % is one CPU the whole time.";

type SweepRow = [String; SWEEP_HEADINGS.len()];

/// The sweep of a report whose answer is a setting for each work.
pub(super) fn ranked_sweep(report: &Report) -> Option<&Sweep> {
    let word = report.answer.as_ref()?.word;
    let is_choice = matches!(word, AnswerWord::Fastest | AnswerWord::Tied | AnswerWord::CannotTell);
    let sweep = report.study.sweep().filter(|s| !s.is_in_order() && s.rounds.is_none());
    sweep.filter(|_| is_choice && report.gates.is_empty())
}

/// Prints the answer: a line for each work, after the word of the first.
pub(super) fn show_ranking(out: &mut Page, sweep: &Sweep, report: &Report) {
    let word = report.answer.as_ref().map_or("", |answer| answer.word.word());
    let mut first = format!("{}  ", out.paint(word, "1"));
    for work in &sweep.works {
        out.prose(&first, "    ", &describe_best(sweep, work));
        "  ".clone_into(&mut first);
    }
}

/// `Reads: depth 4, 4 MiB, direct, io_uring: 3,558 MB/s (18 other settings may be as fast)`.
fn describe_best(sweep: &Sweep, work: &Work) -> String {
    let name = match work.name.as_str() {
        "read" => "Reads",
        "write" => "Writes",
        "randread" => "Random reads",
        "randwrite" => "Random writes",
        other => other,
    };
    let Some(best) = sweep.winner.get(&work.name) else { return format!("{name}: {}", work.sentence) };
    let setting = &best.setting;
    let size = setting.spec.clone().unwrap_or_else(|| show_bytes(setting.block_bytes.into()));
    let value = best.value(work.by).map_or_else(none, |v| work.by.show(v));
    let unit = if work.by.is_latency() { String::new() } else { format!(" {}", work.by.heading()) };
    let as_good = if work.by.is_latency() { "as low" } else { "as fast" };
    let sure = match (work.chosen, work.rivals.len()) {
        (Chosen::Tied, 1) => format!("1 other setting may be {as_good}"),
        (Chosen::Tied, n) if n > 0 => format!("{n} other settings may be {as_good}"),
        (Chosen::NoChoice, _) => "the only setting".into(),
        (Chosen::Fastest, _) => {
            format!("no other setting is {}", work.by.better_by(&show_share(sweep.tolerance)))
        }
        (Chosen::Tied | Chosen::CannotTell, _) => {
            let why = work.sentence.split(';').next().unwrap_or_default();
            format!("not decided: {}", why.trim_end_matches('.'))
        }
    };
    format!("{name}: depth {}, {size}, {}: {value}{unit} ({sure})", setting.depth, setting.way())
}

pub(super) fn show_sweep(out: &mut Page, sweep: &Sweep, report: &Report, all: bool) {
    for work in &sweep.works {
        show_work(out, sweep, work, report, all);
    }
    if let Some(reference) = &sweep.reference {
        let word = if reference.drifted {
            "the target changed meanwhile, so early and late cells compare less"
        } else {
            "no drift that matters can be told from noise"
        };
        out.prose(
            "  ",
            "    ",
            &format!(
                "Reference: {}, measured {} times, changed by {} over the sweep: {word}.",
                reference.setting.describe(),
                reference.runs,
                describe_change(reference.change.value, reference.change.interval)
            ),
        );
    }
    show_skipped(out, sweep);
    let budget = sweep.budget_seconds.map_or_else(String::new, |b| format!(" of {b:.0} s"));
    let luck = if sweep.budget_seconds.is_some() {
        " Most cells were measured only once or twice, briefly, and the winner again at the end, so a higher value in a map may be \
         chance."
    } else {
        ""
    };
    out.prose(
        "  ",
        "    ",
        &format!("The {} search took {:.0} s{budget}.{luck}", sweep.search, sweep.seconds),
    );
    out.line("");
}

/// The best of each work, and below it what it is compared with.
pub(super) fn sweep_table(sweep: &Sweep, report: &Report) -> Table {
    let mut all = Table::new(&SWEEP_HEADINGS, &SWEEP_DROP_ORDER).aligned(1, true).aligned(2, true);
    for work in &sweep.works {
        let mut title: [String; SWEEP_HEADINGS.len()] = std::array::from_fn(|_| String::new());
        title[0] = format!("{}:", work.name);
        all.add(title);
        all.add_all(work_rows(sweep, work, report));
    }
    all
}

/// Whether each cell is an answer of its own, and not only the best: the loads of a test type, positions, targets.
fn shows_each_cell(sweep: &Sweep) -> bool {
    let apart = |s: &Setting| s.offset_bytes.is_some() || s.target.is_some();
    sweep.preset.as_deref() == Some(IOMETER) || sweep.cells.iter().any(|c| apart(&c.setting))
}

/// A row for each cell of a work, by what sets it apart from the others.
fn cell_rows(sweep: &Sweep, work: &Work, report: &Report) -> Vec<SweepRow> {
    let mine: Vec<&CellFigures> = sweep.cells.iter().filter(|c| c.setting.work() == work.name).collect();
    let parts = |c: &CellFigures| -> Vec<String> {
        let way = c.setting.way();
        // One worker needs no word but beside several.
        let alone = (c.setting.workers == 1).then(|| "1 worker".to_owned());
        let words = way.split(", ").map(str::to_owned).chain(alone);
        std::iter::once(c.setting.shape()).chain(words).collect()
    };
    let common = |part: &String| mine.len() > 1 && mine.iter().all(|c| parts(c).contains(part));
    let winner = sweep.winner.get(&work.name);
    let row = |cell: &&CellFigures| {
        let is_best = winner.is_some_and(|w| w.setting == cell.setting);
        // What was measured again at the end is told by that.
        let cell = winner.filter(|_| is_best).unwrap_or(cell);
        let apart: Vec<String> = parts(cell).into_iter().filter(|part| !common(part)).collect();
        let name = if is_best { first_row_name(work) } else { "" };
        let mut row = sweep_row(name, cell, work.by, "", report);
        row[1] = apart.join(", ");
        row[3] = cell.iops.map_or_else(none, |v| supported(v, cell.interval_of(Measure::Iops)));
        row[4] = cell.mb_per_s.map_or_else(none, |v| supported(v, cell.interval_of(Measure::Bandwidth)));
        row[7] = cell.latency_mean_ns.map_or_else(none, show_ns);
        row[8] = cell.latency_max_ns.map_or_else(none, |ns| show_ns(ns as f64));
        row[9] = cell.cpus().map_or_else(none, show_share);
        (row[10], row[11]) = (String::new(), String::new());
        row
    };
    mine.iter().map(row).collect()
}

/// Rows of a work: the best, the cheapest where that is another one, and settings of well-known programs; or all of its cells.
fn work_rows(sweep: &Sweep, work: &Work, report: &Report) -> Vec<SweepRow> {
    if shows_each_cell(sweep) {
        return cell_rows(sweep, work, report);
    }
    let only = sweep.only_cell(&work.name);
    let Some(winner) = sweep.winner.get(&work.name).or(only) else { return Vec::new() };
    let against = |estimate: &Option<Estimate>| estimate.as_ref().map(describe_estimate).unwrap_or_default();
    let by = work.by;
    let mut rows =
        vec![sweep_row(if only.is_some() { "" } else { first_row_name(work) }, winner, by, "", report)];
    if let Some(cheapest) = sweep.cheapest.get(&work.name).filter(|c| c.setting != winner.setting) {
        rows.push(sweep_row("cheapest", cheapest, by, &against(&work.cheapest_by_winner), report));
    }
    let of_programs = work.baselines.iter();
    let of_program =
        |l: &Loss| sweep_row(&format!("as {}", l.name), &l.cell, by, &against(&l.by_winner), report);
    rows.extend(of_programs.map(of_program));
    rows
}

fn show_work(out: &mut Page, sweep: &Sweep, work: &Work, report: &Report, all: bool) {
    let word = if work.chosen == Chosen::CannotTell { "CANNOT TELL: " } else { "" };
    // Bytes per second are what sequential work is about, and need no word.
    let by = Some(work.by).filter(|by| *by != Measure::Bandwidth);
    let by = by.map_or_else(String::new, |by| format!(" by {}", by.heading()));
    out.prose("", "  ", &format!("{}{by}: {word}{}", work.name, work.sentence));
    let only = sweep.only_cell(&work.name);
    let Some(winner) = sweep.winner.get(&work.name).or(only) else {
        out.line("");
        return;
    };
    if !shows_each_cell(sweep) && sweep.cheapest.get(&work.name).is_some_and(|c| c.setting == winner.setting)
    {
        out.line("  No cell that costs less looks as fast.");
    }
    let mut table = Table::new(&SWEEP_HEADINGS, &SWEEP_DROP_ORDER).aligned(1, true).aligned(2, true);
    let mut rows = work_rows(sweep, work, report);
    let has = rows.len();
    rows.truncate(if all { has } else { MAX_WORK_ROWS });
    table.add_all(rows);
    out.table(&table);
    if has > MAX_WORK_ROWS && !all {
        out.line(&format!("  {} more rows: --verbose shows them.", has - MAX_WORK_ROWS));
    }
    if shows_each_cell(sweep) {
        out.prose("  ", "    ", EACH_LEGEND);
    }
    if !work.baselines.is_empty() {
        let names: Vec<String> = work.baselines.iter().map(|loss| format!("as {}", loss.name)).collect();
        out.prose("  ", "    ", &format!("{}: {}.", names.join(", "), copy_half(&work.name)));
    }
    for loss in &work.baselines {
        if let Some(name) = loss.cell.result.and_then(|at| relabelled_name(report, at)) {
            out.prose("  ", "    ", &format!("What is called as {} here is {name}.", loss.name));
        }
    }
    for knee in &work.knees {
        out.prose("  ", "    ", &knee.sentence);
    }
    out.line("");
    let mine: Vec<&CellFigures> = sweep.cells.iter().filter(|c| c.setting.work() == work.name).collect();
    // Positions are told to be seen as a line.
    if all || mine.iter().any(|c| c.setting.offset_bytes.is_some()) {
        // Where each cell is an answer nobody asks which of them is cheap.
        let cheapest = sweep.cheapest.get(&work.name).filter(|_| !shows_each_cell(sweep)).map(|c| &c.setting);
        map::show_maps(out, &mine, work.by, Marks { best: Some(&winner.setting), cheapest });
    }
}

/// Which half of a copy a baseline does.
fn copy_half(work: &str) -> &'static str {
    if work == "write" {
        "writing a file that is new and grows until it is stable, the half of a copy"
    } else {
        "reading a file that is not cached once, the half of a copy"
    }
}

/// What the first row of the table is called: what was not shown to be the fastest is only the best that was seen.
fn first_row_name(work: &Work) -> &'static str {
    match work.chosen {
        Chosen::Fastest if work.by.is_latency() => "lowest",
        Chosen::Fastest => "fastest",
        _ => "best seen",
    }
}

/// The true name of a result, where a finding gave it another than was asked for: the sentences of those are not shown.
fn relabelled_name(report: &Report, at: usize) -> Option<&str> {
    let result = report.results.get(at)?;
    let renames = |f: &&Finding| f.outcome == Outcome::Finding && f.severity == Some(Severity::Rename);
    let is_about = |f: &Finding| f.about.contains(&result.name);
    report.findings.iter().filter(renames).any(is_about).then_some(result.true_name.as_str())
}

fn none() -> String {
    "-".into()
}

/// The number that it is ranked by, and beside IOPS or a latency the rates.
fn sweep_row(name: &str, cell: &CellFigures, by: Measure, against: &str, report: &Report) -> SweepRow {
    let result = cell.result.and_then(|at| report.results.get(at));
    let interval = cell.interval_of(by);
    let told = |measure: Measure| {
        let interval = if measure == by { interval } else { cell.interval_of(measure) };
        cell.value(measure).map_or_else(none, |v| {
            if measure.is_latency() { measure.show(v) } else { supported(v, interval) }
        })
    };
    let mut row: SweepRow = std::array::from_fn(|_| String::new());
    name.clone_into(&mut row[0]);
    row[1] = format!("{} {}", cell.setting.shape(), cell.setting.way());
    row[2] = result.map_or_else(String::new, verdict_mark);
    if by != Measure::Bandwidth {
        row[3] = told(Measure::Iops);
    }
    row[4] = told(Measure::Bandwidth);
    row[5] = half_width(cell.value(by).unwrap_or(0.0), interval);
    match by {
        Measure::P99 => row[6] = told(by),
        Measure::Latency => row[7] = told(by),
        Measure::Iops | Measure::Bandwidth => {}
    }
    row[10] = show_bytes(cell.memory_bytes);
    row[11] = cell.cpu_ns_per_mib.map_or_else(none, show_ns);
    against.clone_into(&mut row[12]);
    row
}

/// `-2.1 % (-3.0 to -1.2)`.
fn describe_estimate(estimate: &Estimate) -> String {
    describe_change(estimate.value - 1.0, estimate.interval.map(|v| v - 1.0))
}

fn describe_change(share: f64, [low, high]: [f64; 2]) -> String {
    format!("{} ({:+.1} to {:+.1})", percent(share), 100.0 * low, 100.0 * high)
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// What was not measured, by reason.
pub(super) fn show_skipped(out: &mut Page, sweep: &Sweep) {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for cell in &sweep.skipped {
        match reasons.iter_mut().find(|(why, _)| *why == cell.why) {
            Some((_, times)) => *times += 1,
            None => reasons.push((&cell.why, 1)),
        }
    }
    for (why, times) in reasons.iter().take(MAX_REASONS) {
        out.prose("  ", "    ", &format!("Skipped {times}: {why}."));
    }
    let more: usize = reasons.iter().skip(MAX_REASONS).map(|r| r.1).sum();
    if more > 0 {
        out.line(&format!("  Skipped {more} for other reasons: --skipped names them."));
    }
}

#[test]
fn a_change_has_its_sign_and_its_interval() {
    assert_eq!(percent(-0.021), "-2.1 %");
    assert_eq!(describe_change(0.091, [-0.16, 0.418]), "+9.1 % (-16.0 to +41.8)");
}
