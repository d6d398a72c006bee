//! The results of plain jobs and profiles: the table with a row for each direction, and what follows it.
//!
//! - The runs of each result in one line, which shows whether the table describes the runs; with `--explain` second by second.
//! - The ledger (`--ledger`): issued, charged, and completed by each layer.
//! - The hosts of a measurement on several hosts, a row each.
//! - The card: results as a well-known tool shows them, with bars or a score.
//! - A replay next to its original.

use crate::page::{Page, Table, display_width, percentile, short_bytes};
use crate::view::results::{describe_fairness, heading, host_table, replay_table, result_table};
use model::figures::{Account, Entry, Moved, Snia, State, Steadiness};
use model::finding::{Finding, Severity};
use model::profile::{Points, Score, ToolCell, ToolResults, ToolRow};
use model::report::{DeviceSecond, DisturbedRun, Latency, Measured, Report, RunFigures, Second, Verdict};
use model::units::{show_bytes, show_count, show_ns, show_rate, show_share};
use std::collections::BTreeSet;

/// Minimum change of a rate by the final sync for a line in a full report; the JSON always has it.
const MIN_SYNC_CHANGE: f64 = 0.01;
/// Minimum change by the final sync for a line in a short report.
const LARGE_SYNC_CHANGE: f64 = 0.1;
/// Limits the true names below the table of a short report.
const MAX_TRUE_NAMES: usize = 2;

/// Prints the table, and remarks on single results below it: fewer with several results, unless `all` is set.
pub(super) fn show_results(out: &mut Page, results: &[Measured], shown: &[Finding], all: bool) {
    if results.is_empty() {
        return;
    }
    let rows = result_table(results);
    let is_short = results.len() > 1 && !all;
    if is_short {
        out.narrow_table(&rows);
    } else {
        out.table(&rows);
    }
    let rounded = if rows.has("~") { "; ~ = rounded" } else { "" };
    out.line(&format!("MB/s = 10^6 bytes/s; latency from submission; - = too few samples{rounded}."));
    let relabels =
        |f: &Finding, r: &Measured| f.severity == Some(Severity::Rename) && f.about.contains(&r.name);
    // In a short report, a finding that is shown already contains the note.
    let by_finding = |r: &Measured| is_short && shown.iter().any(|f| relabels(f, r));
    let renamed: Vec<&Measured> = results.iter().filter(|r| !r.void && r.renamed && !by_finding(r)).collect();
    let most = if is_short { MAX_TRUE_NAMES } else { usize::MAX };
    for result in renamed.iter().take(most) {
        out.line(&format!("  {}, as measured: {}", result.name, result.true_name));
    }
    if renamed.len() > most {
        out.line(&format!("  {} more results were relabelled: --verbose shows them.", renamed.len() - most));
    }
    let least = if is_short { LARGE_SYNC_CHANGE } else { MIN_SYNC_CHANGE };
    for result in results.iter().filter(|r| !r.void) {
        show_open_loop(out, result);
        show_final_sync(out, result, least);
        show_replay(out, result);
    }
    if let ([only], true) = (results, all) {
        show_cost(out, only);
    }
    if all {
        show_runs(out, results);
        out.line("");
    }
}

/// Prints the parts of the latencies in an open loop, where the table's latencies include waiting before submission.
fn show_open_loop(out: &mut Page, result: &Measured) {
    for (word, figures) in [("reads", &result.read), ("writes", &result.write), ("trims", &result.trim)] {
        let Some(figures) = figures else { continue };
        let (Some(service), Some(late)) = (&figures.service_ns, &figures.lateness_ns) else { continue };
        let text = format!(
            "{}, {word}: open loop, so latencies count from the intended start; service {}; lateness of the submission {}.",
            result.name,
            median_and_tail(service),
            median_and_tail(late)
        );
        out.prose("  ", "    ", &text);
    }
}

fn show_final_sync(out: &mut Page, result: &Measured, least: f64) {
    let (Some(with), Some(without)) = (&result.with_final_sync, &result.total) else { return };
    if with.iops > (1.0 - least) * without.iops {
        return;
    }
    let text = format!(
        "{}: including the final sync ({}), {} MB/s and {} IOPS.",
        result.name,
        show_ns(with.sync_ns),
        show_rate(with.mb_per_s),
        show_rate(with.iops)
    );
    out.prose("  ", "    ", &text);
}

fn show_cost(out: &mut Page, result: &Measured) {
    let Some(cost) = &result.cost else { return };
    let mut text = format!(
        "An operation cost {} of CPU in user space, {} in the kernel, {} context switches",
        show_ns(cost.user_ns),
        show_ns(cost.system_ns),
        show_rate(cost.switches)
    );
    if let (Some(cycles), Some(instructions)) = (cost.cycles, cost.instructions) {
        text += &format!(", {} cycles, {} instructions", show_rate(cycles), show_rate(instructions));
    }
    if let Some(tool) = cost.tool_ns {
        text += &format!("; fathom's own loop takes {}", show_ns(tool));
    }
    out.prose("  ", "  ", &(text + "."));
}

/// `p50 180 us, p99 1.20 ms`.
fn median_and_tail(latency: &Latency) -> String {
    format!("p50 {}, p99 {}", percentile(latency, "50"), percentile(latency, "99"))
}

const RUN_HEADINGS: [&str; 5] = ["runs", "over time", "IOPS", "95 % interval", "steadiness, drift"];
/// Columns to drop if the width is too small, in this order.
const RUN_DROP_ORDER: [usize; 2] = [1, 2];
/// Maximum width of the table.
const MAX_TABLE_WIDTH: usize = 110;
/// Minimum width of a time series; it grows if the other columns leave room.
const SPARKLINE_WIDTH: usize = 12;
/// Heights of a bar, up to the highest rate of the result.
const BAR_HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Gap between columns.
const COLUMN_GAP: usize = 2;

/// Prints the table, with details for a single result. Prints nothing if no run has a time series.
pub(super) fn show_runs(out: &mut Page, results: &[Measured]) {
    let shown: Vec<&Measured> =
        results.iter().filter(|r| !r.void && !r.runs.is_empty() && !r.series.is_empty()).collect();
    if shown.is_empty() {
        return;
    }
    let others: Vec<[String; RUN_HEADINGS.len()]> = shown.iter().map(|r| run_cells(r)).collect();
    let width = |i: usize| {
        let cells = others.iter().map(|c| display_width(&c[i]));
        cells.chain([display_width(RUN_HEADINGS[i])]).max().unwrap_or(0) + COLUMN_GAP
    };
    let taken = [0, 2, 3, 4].map(width).iter().sum::<usize>();
    let room = out.width().min(MAX_TABLE_WIDTH).saturating_sub(taken).max(SPARKLINE_WIDTH);
    let mut table = Table::new(&RUN_HEADINGS, &RUN_DROP_ORDER).aligned(1, true);
    for (result, mut cells) in shown.iter().zip(others) {
        cells[1] = sparkline(&result.series, room);
        table.add(cells);
    }
    out.line("");
    out.table(&table);
    if let [only] = results {
        show_single_result(out, only);
    } else {
        show_steadiness_legend(out, &shown);
    }
}

/// Prints the meaning of each word in the steadiness column.
fn show_steadiness_legend(out: &mut Page, shown: &[&Measured]) {
    let states: BTreeSet<String> = shown
        .iter()
        .filter_map(|r| r.steadiness.as_ref())
        .map(|s| format!("{} = {}", s.state.word(), s.state.meaning()))
        .collect();
    if !states.is_empty() {
        let states: Vec<String> = states.into_iter().collect();
        out.prose("", "  ", &format!("{}.", states.join("; ")));
    }
}

/// Returns the cells, except the time series.
fn run_cells(result: &Measured) -> [String; RUN_HEADINGS.len()] {
    let (rates, interval) = match result.runs.as_slice() {
        [only] => (show_rate(only.iops), describe_within_run(only)),
        runs => (rate_range(runs), describe_interval(result)),
    };
    let steadiness = result.steadiness.as_ref().map_or_else(|| "-".into(), describe_steadiness);
    [result.name.clone(), String::new(), rates, interval, steadiness]
}

/// Returns the smallest and the largest rate of the runs.
fn rate_range(runs: &[RunFigures]) -> String {
    let rates = runs.iter().map(|r| r.iops);
    let (low, high) = rates.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    format!("{} to {}", show_rate(low), show_rate(high))
}

fn describe_interval(result: &Measured) -> String {
    let interval = result.total.as_ref().and_then(|t| t.iops_interval);
    interval.map_or_else(|| "-".into(), |[low, high]| format!("{} to {}", show_rate(low), show_rate(high)))
}

/// Describes the interval within a single run, which does not predict the next run.
fn describe_within_run(run: &RunFigures) -> String {
    let describe =
        |[low, high]: [f64; 2]| format!("{} to {} within this run", show_rate(low), show_rate(high));
    run.iops_within.map_or_else(|| "-".into(), describe)
}

/// `STEADY, +0.3 %/min (-0.2 to 0.8)`.
fn describe_steadiness(steadiness: &Steadiness) -> String {
    let word = steadiness.state.word();
    let Some(drift) = steadiness.drift_per_minute else { return word.into() };
    let percent = |share: f64| 100.0 * share;
    let [low, high] = drift.interval.map(percent);
    format!("{word}, {:+.1} %/min ({low:.1} to {high:.1})", percent(drift.value))
}

/// Prints the details of a single result: the reason, and the SNIA's criterion.
fn show_single_result(out: &mut Page, result: &Measured) {
    let Some(steadiness) = &result.steadiness else { return };
    if steadiness.state != State::Steady {
        out.prose("  ", "  ", &format!("{}: {}", steadiness.state.word(), steadiness.sentence));
    }
    if let Some(snia) = &steadiness.snia {
        out.prose("  ", "  ", &describe_snia(snia));
    }
}

fn describe_snia(snia: &Snia) -> String {
    format!(
        "SNIA steady state: {} in the last 5 of {} rounds (excursion {}, 20 % allowed; slope excursion {}, 10 % allowed).",
        if snia.met { "met" } else { "not met" },
        snia.rounds,
        show_share(snia.excursion),
        show_share(snia.slope)
    )
}

/// Draws a bar for each second of each run, or for several seconds if there is too little room. A gap separates runs if there is room.
/// Heights count from zero, so that noise does not look like a cliff.
fn sparkline(series: &[Second], room: usize) -> String {
    let runs: Vec<&[Second]> = series.chunk_by(|a, b| a.run == b.run).collect();
    let apart = 2 * runs.len() <= room + 1;
    let gaps = if apart { runs.len().saturating_sub(1) } else { 0 };
    let each = (room.saturating_sub(gaps) / runs.len().max(1)).max(1);
    let mut bars: Vec<Vec<f64>> = runs.iter().map(|run| downsample(run, each)).collect();
    if !apart {
        // More runs than columns: one bar for the mean of neighbouring runs.
        let all: Vec<f64> = bars.concat();
        let per = all.len().div_ceil(room.max(1)).max(1);
        bars = vec![all.chunks(per).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect()];
    }
    let highest = bars.iter().flatten().copied().fold(0.0, f64::max);
    let drawn = |run: &Vec<f64>| run.iter().map(|rate| bar_of_height(*rate, highest)).collect::<String>();
    bars.iter().map(drawn).collect::<Vec<_>>().join(" ")
}

/// Reduces the rates of a run to at most `most` values, each the mean over its time.
fn downsample(run: &[Second], most: usize) -> Vec<f64> {
    let mean = |part: &[Second]| {
        let seconds: f64 = part.iter().map(|s| s.seconds).sum();
        part.iter().map(|s| s.iops * s.seconds).sum::<f64>() / seconds.max(f64::MIN_POSITIVE)
    };
    run.chunks(run.len().div_ceil(most.max(1)).max(1)).map(mean).collect()
}

/// Returns the bar of a rate, or a dot if no operation completed.
fn bar_of_height(rate: f64, highest: f64) -> char {
    if rate <= 0.0 || highest <= 0.0 {
        return '.';
    }
    let eighth = (rate / highest * BAR_HEIGHTS.len() as f64).round() as usize;
    BAR_HEIGHTS[eighth.clamp(1, BAR_HEIGHTS.len()) - 1]
}

const SECOND_HEADINGS: [&str; 9] =
    ["run", "second", "IOPS", "MB/s", "p99 <=", "device IOPS", "device MB/s", "device latency", "in flight"];
/// Columns to drop if the width is too small, in this order.
const SECOND_DROP_ORDER: [usize; 6] = [6, 8, 7, 5, 3, 4];

/// Prints the heading, the table, the disturbed attempts and an empty line. Prints nothing if the report kept neither.
pub(super) fn show_seconds(out: &mut Page, result: &Measured) {
    if !result.series.is_empty() {
        out.line(&format!("{} over time", result.name));
        let mut table = Table::new(&SECOND_HEADINGS, &SECOND_DROP_ORDER)
            .aligned(0, false)
            .aligned(SECOND_HEADINGS.len() - 1, false);
        table.add_all(result.series.iter().map(second_row));
        out.indented_table("  ", &table);
    }
    if !result.disturbed.is_empty() {
        out.line(&format!("Disturbed runs of {}", result.name));
        result.disturbed.iter().for_each(|d| out.prose("  ", "    ", &describe_disturbed_attempt(d)));
    }
    if !result.series.is_empty() || !result.disturbed.is_empty() {
        out.line("");
    }
}

/// `run 2, attempt 1: 9,412 IOPS, left out: 240 MB/s of others on vda (1,920 requests/s)`.
fn describe_disturbed_attempt(disturbed: &DisturbedRun) -> String {
    let (run, attempt) = (disturbed.run.saturating_add(1), disturbed.attempt.saturating_add(1));
    let why = disturbed.why.as_deref().unwrap_or("repeated with its round");
    let word = if disturbed.counts { "counts" } else { "left out" };
    format!("run {run}, attempt {attempt}: {} IOPS, {word}: {why}", show_rate(disturbed.iops))
}

fn second_row(second: &Second) -> [String; SECOND_HEADINGS.len()] {
    let none = || "-".to_owned();
    let device = |value: fn(&DeviceSecond) -> String| second.device.as_ref().map_or_else(none, value);
    [
        second.run.saturating_add(1).to_string(),
        format!("{:.0}", second.start_s),
        show_rate(second.iops),
        show_rate(second.mb_per_s),
        second.p99_at_most_ns.map_or_else(none, |ns| show_ns(ns as f64)),
        device(|d| show_rate(d.iops)),
        device(|d| show_rate(d.mb_per_s)),
        device(|d| d.latency_ns.map_or_else(|| "-".into(), show_ns)),
        device(|d| show_rate(d.in_flight)),
    ]
}

const LEDGER_HEADINGS: [&str; 7] =
    ["ledger", "requests", "bytes", "merged", "size", "total time", "against issued"];
/// Columns to drop if the width is too small, in this order.
const LEDGER_DROP_ORDER: [usize; 4] = [3, 5, 4, 1];
/// Start of the cell if there is no count; the reason is below the table.
const NOT_COUNTED: &str = "not counted";

pub(super) fn show_ledger(out: &mut Page, results: &[Measured]) {
    let mut table = Table::new(&LEDGER_HEADINGS, &LEDGER_DROP_ORDER);
    let mut reasons: Vec<String> = Vec::new();
    for result in results {
        let Some(ledger) = &result.ledger else {
            table.add(ledger_title_row(&result.name, "no storage"));
            continue;
        };
        for (word, account) in [("reads", &ledger.read), ("writes", &ledger.write)] {
            let Some(account) = account else { continue };
            table.add(ledger_title_row(&format!("{}, {word}", result.name), ""));
            table.add_all(ledger_rows(account, &mut reasons));
        }
    }
    out.table(&table);
    out.line("Totals of all runs, from the snapshot before the first operation to the one after the last.");
    for reason in reasons {
        out.prose("  ", "    ", &reason);
    }
    out.line("");
}

fn ledger_title_row(name: &str, word: &str) -> [String; LEDGER_HEADINGS.len()] {
    let mut cells = std::array::from_fn(|_| String::new());
    name.clone_into(&mut cells[0]);
    word.clone_into(&mut cells[LEDGER_HEADINGS.len() - 1]);
    cells
}

fn ledger_rows(account: &Account, reasons: &mut Vec<String>) -> Vec<[String; LEDGER_HEADINGS.len()]> {
    let mut out = vec![ledger_row("  issued by fathom", &account.issued, "")];
    out.push(ledger_entry_row(&account.charged, &format!("  charged to {}", account.charged.name), reasons));
    for layer in &account.layers {
        // A file may contain arbitrarily deep levels.
        let indent = "  ".repeat(layer.step.min(8) as usize + 1);
        out.push(ledger_entry_row(layer, &format!("{indent}{}", layer.name), reasons));
        out.extend(synced_row(layer, &indent));
    }
    out
}

fn ledger_entry_row(entry: &Entry, name: &str, reasons: &mut Vec<String>) -> [String; LEDGER_HEADINGS.len()] {
    if let Some(moved) = &entry.counted {
        return ledger_row(name, moved, &entry.word);
    }
    let reason = format!("{}: {}", entry.name, entry.word);
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
    ledger_title_row(name, NOT_COUNTED)
}

/// Returns what a layer had completed after the final sync, if that differs.
fn synced_row(entry: &Entry, indent: &str) -> Option<[String; LEDGER_HEADINGS.len()]> {
    let with_sync = entry.with_sync.as_ref().filter(|m| entry.counted.is_some_and(|c| c.ios != m.ios))?;
    Some(ledger_row(&format!("{indent}  with the final sync"), with_sync, ""))
}

fn ledger_row(name: &str, moved: &Moved, word: &str) -> [String; LEDGER_HEADINGS.len()] {
    [
        name.to_owned(),
        show_count(moved.ios as f64),
        show_bytes(moved.bytes),
        moved.merges.map_or_else(String::new, |m| show_count(m as f64)),
        moved.bytes.checked_div(moved.ios).map_or_else(|| "-".into(), short_bytes),
        moved.ms.filter(|_| moved.ios > 0).map_or_else(String::new, |ms| show_ns(ms as f64 * 1e6)),
        word.to_owned(),
    ]
}

/// Prints the hosts of the main result; with `all`, of every result.
pub(super) fn show_hosts(out: &mut Page, report: &Report, all: bool) {
    let Some(fleet) = &report.fleet else { return };
    let main = report.results.iter().find(|r| r.true_name == report.headline.name).or(report.results.first());
    for result in report.results.iter().filter(|r| all || main.is_some_and(|main| main.name == r.name)) {
        out.prose("Hosts   ", "        ", &result.name);
        let (table, more) = host_table(fleet, &result.name);
        out.table(&table);
        if more > 0 {
            let more =
                format!("{more} more hosts are faster than these; all of them are in the JSON report.");
            out.prose("  ", "  ", &more);
        }
        if let Some(fair) = fleet.fairness.iter().find(|f| f.name == result.name) {
            out.prose("  ", "  ", &describe_fairness(fair));
        }
        out.line("");
    }
}

/// Width of the longest bar.
const CARD_BAR_WIDTH: usize = 24;
/// The word for a withheld number, because a well-known tool has no column for verdicts.
const VOID: &str = "void";
/// Eighths of a column, from 0 to 7.
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

/// Prints a bar for each number, all on one scale.
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
    out.line(&format!("MB/s = 10^6 bytes per second: medians over runs{}.", void_meaning(&table)));
}

/// Explains `void` if the table contains it.
fn void_meaning(table: &Table) -> &'static str {
    if table.has(VOID) { "; void = withheld, because a finding invalidates it" } else { "" }
}

/// Draws full blocks and a partial one.
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
    let void = void_meaning(&table);
    out.line(&format!(
        "MB/s = 10^6 bytes per second: medians over runs; Acc.time is the mean latency{void}."
    ));
    for (name, points) in [("read", &score.read), ("write", &score.write), ("total", &score.total)] {
        out.prose("  ", "    ", &format!("{name} score: {}", describe_basis(points)));
    }
}

/// Formats a number as its tool does: milliseconds with three decimals.
fn tool_number(row: &ToolRow, cell: Option<&ToolCell>) -> String {
    match cell {
        None => "-".into(),
        Some(ToolCell { value: Some(ms), .. }) if row.unit == "ms" => format!("{ms:.3}"),
        Some(ToolCell { value: Some(rate), .. }) => show_rate(*rate),
        Some(ToolCell { verdict: Verdict::Invalid, .. }) => VOID.into(),
        Some(_) => "none".into(),
    }
}

fn short_points(points: &Points) -> String {
    points.value.map_or_else(|| "-".into(), show_count)
}

/// Describes what the points are computed from.
fn describe_basis(points: &Points) -> String {
    if points.value.is_none() {
        return format!("withheld: {}.", points.withheld.as_deref().unwrap_or("it was not computed"));
    }
    let range = points.range.map_or_else(
        || "one run, so its variation is unknown".into(),
        |[least, most]| {
            format!("{} by the slowest runs, {} by the fastest", show_count(least), show_count(most))
        },
    );
    let word = match points.verdict {
        Verdict::Valid => "",
        _ => "; SUSPECT, because it includes suspect numbers",
    };
    format!("{range}{word}.")
}

pub(super) fn show_replay(out: &mut Page, result: &Measured) {
    let Some(replay) = result.replay.as_deref().filter(|_| !result.void) else { return };
    out.line("");
    out.prose("", "  ", &heading(replay));
    out.table(&replay_table(replay));
    for why in &replay.differs {
        out.prose("- ", "  ", why);
    }
}

#[cfg(test)]
fn test_seconds(runs: &[&[f64]]) -> Vec<Second> {
    let second = |run: usize, at: usize, iops: f64| Second {
        run: run as u32,
        start_s: at as f64,
        seconds: 1.0,
        iops,
        mb_per_s: iops * 4096.0 / 1e6,
        p99_at_most_ns: None,
        device: None,
    };
    let of_run = |(run, rates): (usize, &&[f64])| {
        rates.iter().enumerate().map(move |(at, iops)| second(run, at, *iops)).collect::<Vec<_>>()
    };
    runs.iter().enumerate().flat_map(of_run).collect()
}

#[test]
fn bars_start_at_zero_and_gaps_separate_runs() {
    // Noise of a tenth barely shows; a drop to a quarter does; a standstill is a dot.
    assert_eq!(sparkline(&test_seconds(&[&[100.0, 90.0, 95.0, 100.0]]), 30), "█▇██");
    assert_eq!(sparkline(&test_seconds(&[&[100.0, 25.0, 0.0], &[100.0]]), 30), "█▂. █");
    assert_eq!(sparkline(&test_seconds(&[&[0.0, 0.0]]), 30), "..");
    assert_eq!(sparkline(&[], 30), "");
}

#[test]
fn a_long_time_series_is_downsampled_and_many_runs_have_no_gaps() {
    let long: Vec<f64> = (0..120).map(|i| if i < 60 { 100.0 } else { 50.0 }).collect();
    assert_eq!(sparkline(&test_seconds(&[&long]), 12), "██████▄▄▄▄▄▄");
    let one: &[f64] = &[100.0, 100.0];
    let few = sparkline(&test_seconds(&[one; 6]), 12);
    assert_eq!(few, "█ █ █ █ █ █");
    let many = sparkline(&test_seconds(&[one; 50]), 12);
    assert!(many.chars().count() <= 12 && many.chars().all(|c| c == '█'), "{many}");
}

#[test]
fn a_rate_that_is_not_a_number_does_not_panic() {
    assert_eq!(sparkline(&test_seconds(&[&[f64::NAN, f64::INFINITY, -1.0]]), 30).chars().count(), 3);
}

#[test]
fn the_length_of_a_bar_is_proportional_to_its_value() {
    assert_eq!(fractional_bar(100.0, 100.0), "█".repeat(CARD_BAR_WIDTH));
    assert_eq!(fractional_bar(50.0, 100.0), "█".repeat(CARD_BAR_WIDTH / 2));
    assert_eq!(fractional_bar(100.0 / (8 * CARD_BAR_WIDTH) as f64, 100.0), "▏");
    assert_eq!((fractional_bar(0.0, 100.0), fractional_bar(0.0, 0.0)), (String::new(), String::new()));
}
