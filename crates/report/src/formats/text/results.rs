//! The results of plain jobs and profiles: the table with a row for each direction, and what follows it.
//!
//! - The runs of each result in one line, which shows whether the rate was steady; with `--explain` second by second.
//! - The ledger (`--ledger`): issued, charged, and completed by each layer.
//! - The hosts of a measurement on several hosts, a row each.
//! - The layout of a tool: results as a well-known tool shows them, with bars or a score.
//! - A replay next to its original.

use crate::page::{Page, display_width};
use crate::view::numbers::{interval_ends, percentile, short_bytes};
use crate::view::results::{
    describe_fairness, directions_without_sync, host_table, replay_caption, replay_table, result_table,
};
use crate::view::table::{Columns, Table, or_dash};
use model::figures::{Account, IoTotals, LedgerEntry, Snia, State, Steadiness};
use model::finding::{Checked, Severity};
use model::profile::{Points, Score, ToolCell, ToolResults, ToolRow};
use model::report::{DeviceSecond, DisturbedRun, Latency, Measured, Report, Second, Verdict};
use model::units::{show_bytes, show_count, show_ns, show_rate, show_share};
use std::collections::BTreeSet;

/// A full report prints the rate with the final sync if the sync lowers the rate by at least this share. The JSON
/// always has the rate with the sync.
const MIN_SYNC_CHANGE: f64 = 0.01;
/// A short report prints the rate with the final sync if the sync lowers the rate by at least this share.
const LARGE_SYNC_CHANGE: f64 = 0.1;
/// Maximum number of relabelled results that a short report lists below its table.
const MAX_TRUE_NAMES: usize = 2;

/// Prints the table, and below it remarks on single results. With several results, prints fewer remarks unless `all` is
/// set.
pub(super) fn show_results(out: &mut Page, results: &[Measured], shown: &[Checked], all: bool) {
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
    out.line(&format!("MB/s = 10^6 bytes/s; latency from submission; - = not known{rounded}."));
    let relabels =
        |f: &Checked, r: &Measured| f.severity == Some(Severity::Relabels) && f.about.contains(&r.name);
    // In a short report, a shown finding already says that the result was relabelled.
    let by_finding = |r: &Measured| is_short && shown.iter().any(|f| relabels(f, r));
    let renamed: Vec<&Measured> = results.iter().filter(|r| !r.void && r.renamed && !by_finding(r)).collect();
    let most = if is_short { MAX_TRUE_NAMES } else { usize::MAX };
    for result in renamed.iter().take(most) {
        out.line(&format!("  {}, as measured: {}", result.name, result.true_name));
    }
    if renamed.len() > most {
        out.line(&format!(
            "  Results that were also relabelled: {}; --verbose shows all.",
            renamed.len() - most
        ));
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

/// Prints service time and lateness of an open loop separately. The latencies in the table include
/// both.
fn show_open_loop(out: &mut Page, result: &Measured) {
    for (word, figures) in directions_without_sync(result) {
        let (Some(service), Some(late)) = (&figures.service_ns, &figures.lateness_ns) else { continue };
        let text = format!(
            "{}, {word}s: open loop, so latencies count from the intended start; service {}; lateness of the submission {}.",
            result.name,
            median_and_tail(service),
            median_and_tail(late)
        );
        out.note(&text);
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
    out.note(&text);
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

/// Formats the median and the 99th percentile: `p50 180 us, p99 1.20 ms`.
fn median_and_tail(latency: &Latency) -> String {
    let [p50, p99] = ["50", "99"].map(|rank| percentile(&latency.percentiles, rank));
    format!("p50 {p50}, p99 {p99}")
}

/// Maximum width of the table of runs.
const MAX_TABLE_WIDTH: usize = 110;
/// Minimum width of the column with the time series. The column is wider if the other columns leave room.
const SPARKLINE_WIDTH: usize = 12;
/// Heights of a bar, up to the highest rate of the result.
const BAR_HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Prints the table of runs. With a single result, adds why it is not steady; with several, the
/// meaning of the words in the column of steadiness. Prints nothing if no run has a time series.
pub(super) fn show_runs(out: &mut Page, results: &[Measured]) {
    let shown: Vec<&Measured> =
        results.iter().filter(|r| !r.void && !r.runs.is_empty() && !r.series.is_empty()).collect();
    if shown.is_empty() {
        return;
    }
    // The widest line is the rule below the headings. The other columns with their gaps take one
    // character more.
    let (taken, _) = run_table(&shown, |_| String::new()).lines(usize::MAX);
    let taken = taken.iter().map(|line| display_width(line)).max().unwrap_or(0) + 1;
    let room = out.width().min(MAX_TABLE_WIDTH).saturating_sub(taken).max(SPARKLINE_WIDTH);
    let table = run_table(&shown, |result| sparkline(&result.series, room));
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
        out.paragraph(&format!("{}.", states.join("; ")));
    }
}

/// Returns a row for each result. `draw` draws the time series of a result.
fn run_table(results: &[&Measured], draw: impl Fn(&Measured) -> String) -> Table {
    Columns::new(results)
        .borrowed_text("runs", |result| &result.name)
        .text("over time", |result| draw(result))
        .value("IOPS", |result| match result.runs.as_slice() {
            [only] => show_rate(only.iops),
            runs => {
                let rates = runs.iter().map(|run| run.iops);
                let (low, high) = rates.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
                format!("{} to {}", show_rate(low), show_rate(high))
            }
        })
        .value("95 % interval", |result| match result.runs.as_slice() {
            // The interval within a single run does not predict the next run, so it is marked.
            [only] => {
                or_dash(only.iops_within, |_| format!("{} within this run", interval_ends(only.iops_within)))
            }
            _ => interval_ends(result.total.as_ref().and_then(|total| total.iops_interval)),
        })
        .text("steadiness, drift", |result| or_dash(result.steadiness.as_ref(), describe_steadiness))
        .table(&["over time", "IOPS"])
}

/// Returns the word for the steadiness, with the drift and its interval if they are known:
/// `STEADY, +0.3 %/min (-0.2 to 0.8)`.
fn describe_steadiness(steadiness: &Steadiness) -> String {
    let word = steadiness.state.word();
    let Some(drift) = steadiness.drift_per_minute else { return word.into() };
    let percent = |share: f64| 100.0 * share;
    let [low, high] = drift.interval.map(percent);
    format!("{word}, {:+.1} %/min ({low:.1} to {high:.1})", percent(drift.value))
}

/// Prints why a single result is not steady, and whether it meets the criterion of SNIA for a
/// steady state.
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
    let has_gaps = 2 * runs.len() <= room + 1;
    let gaps = if has_gaps { runs.len().saturating_sub(1) } else { 0 };
    let run_width = (room.saturating_sub(gaps) / runs.len().max(1)).max(1);
    let mut bars: Vec<Vec<f64>> = runs.iter().map(|run| downsample(run, run_width)).collect();
    if !has_gaps {
        // There is no room for gaps: draw one bar for each run, or for the mean of several neighbouring runs.
        let all: Vec<f64> = bars.concat();
        let bar_runs = all.len().div_ceil(room.max(1)).max(1);
        bars = vec![all.chunks(bar_runs).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect()];
    }
    let highest = bars.iter().flatten().copied().fold(0.0, f64::max);
    let drawn = |run: &Vec<f64>| run.iter().map(|rate| bar_of_height(*rate, highest)).collect::<String>();
    bars.iter().map(drawn).collect::<Vec<_>>().join(" ")
}

/// Reduces the rates of a run to at most `max_values` values, each the mean over a part of the run.
fn downsample(run: &[Second], max_values: usize) -> Vec<f64> {
    let mean = |part: &[Second]| {
        let seconds: f64 = part.iter().map(|s| s.seconds).sum();
        part.iter().map(|s| s.iops * s.seconds).sum::<f64>() / seconds.max(f64::MIN_POSITIVE)
    };
    run.chunks(run.len().div_ceil(max_values.max(1)).max(1)).map(mean).collect()
}

/// Returns the bar of a rate, or a dot if no operation completed.
fn bar_of_height(rate: f64, highest: f64) -> char {
    if rate <= 0.0 || highest <= 0.0 {
        return '.';
    }
    let eighth = (rate / highest * BAR_HEIGHTS.len() as f64).round() as usize;
    BAR_HEIGHTS[eighth.clamp(1, BAR_HEIGHTS.len()) - 1]
}

/// Prints the time series as a table, and the disturbed attempts. Prints nothing if there are
/// neither.
pub(super) fn show_seconds(out: &mut Page, result: &Measured) {
    if !result.series.is_empty() {
        out.line(&format!("{} over time", result.name));
        let device = |second: &Second, value: fn(DeviceSecond) -> Option<f64>, show: fn(f64) -> String| {
            or_dash(second.device.and_then(value), show)
        };
        let table = Columns::new(&result.series)
            .value("run", |second| second.run.saturating_add(1))
            .value("second", |second| format!("{:.0}", second.start_s))
            .value("IOPS", |second| show_rate(second.iops))
            .value("MB/s", |second| show_rate(second.mb_per_s))
            .value("p99 <=", |second| or_dash(second.p99_at_most_ns, |ns| show_ns(ns as f64)))
            .value("device IOPS", |second| device(second, |d| Some(d.iops), show_rate))
            .value("device MB/s", |second| device(second, |d| Some(d.mb_per_s), show_rate))
            .value("device latency", |second| device(second, |d| d.latency_ns, show_ns))
            .value("in flight", |second| device(second, |d| Some(d.in_flight), show_rate))
            .table(&["device MB/s", "in flight", "device latency", "device IOPS", "MB/s", "p99 <="]);
        out.indented_table("  ", &table);
    }
    if !result.disturbed.is_empty() {
        out.line(&format!("Disturbed runs of {}", result.name));
        result.disturbed.iter().for_each(|d| out.note(&describe_disturbed_attempt(d)));
    }
    if !result.series.is_empty() || !result.disturbed.is_empty() {
        out.line("");
    }
}

/// Describes a disturbed attempt:
/// `run 2, attempt 1: 9,412 IOPS, left out: 240 MB/s of other processes on vda (1,920 requests/s)`.
fn describe_disturbed_attempt(disturbed: &DisturbedRun) -> String {
    let (run, attempt) = (disturbed.run.saturating_add(1), disturbed.attempt.saturating_add(1));
    let why = disturbed.why.as_deref().unwrap_or("another run of its round was disturbed");
    let word = if disturbed.counts { "counted although disturbed" } else { "left out" };
    format!("run {run}, attempt {attempt}: {} IOPS, {word}: {why}", show_rate(disturbed.iops))
}

/// Start of the text of a missing count. The table shows only this part, and the reason is below the table.
const NOT_COUNTED: &str = "not counted";

pub(super) fn show_ledger(out: &mut Page, results: &[Measured]) {
    let mut rows: Vec<LedgerRow> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for result in results {
        let Some(ledger) = &result.ledger else {
            rows.push(LedgerRow { name: result.name.clone(), moved: None, word: "no storage" });
            continue;
        };
        for (word, account) in [("reads", &ledger.read), ("writes", &ledger.write)] {
            let Some(account) = account else { continue };
            rows.push(LedgerRow { name: format!("{}, {word}", result.name), moved: None, word: "" });
            rows.extend(ledger_rows(account, &mut reasons));
        }
    }
    let table = Columns::new(rows)
        .borrowed_text("ledger", |row| &row.name)
        .value("requests", |row| row.moved.map(|m| show_count(m.ios as f64)))
        .value("bytes", |row| row.moved.map(|m| show_bytes(m.bytes)))
        .value("merged", |row| Some(show_count(row.moved?.merges? as f64)))
        .value("size", |row| row.moved.map(|m| or_dash(m.bytes.checked_div(m.ios), short_bytes)))
        .value("total time", |row| Some(show_ns(row.moved.filter(|m| m.ios > 0)?.ms? as f64 * 1e6)))
        .text("against issued", |row| row.word)
        .table(&["merged", "total time", "size", "requests"]);
    out.table(&table);
    out.line("Totals of all runs, from the snapshot before the first operation to the one after the last.");
    for reason in reasons {
        out.note(&reason);
    }
    out.line("");
}

struct LedgerRow<'r> {
    name: String,
    /// What was moved; `None` in a heading, and if it was not counted.
    moved: Option<IoTotals>,
    /// How the count compares with what fathom issued.
    word: &'r str,
}

fn ledger_rows<'r>(account: &'r Account, reasons: &mut Vec<String>) -> Vec<LedgerRow<'r>> {
    let without_word = |name: String, moved| LedgerRow { name, moved: Some(moved), word: "" };
    let mut out = vec![without_word("  issued by fathom".into(), account.issued)];
    let charged = &account.charged;
    out.push(ledger_entry_row(charged, format!("  charged to {}", charged.name), reasons));
    for layer in &account.layers {
        // Limit the indent, because a forged file may contain any number of levels.
        let indent = "  ".repeat(layer.step.min(8) as usize + 1);
        out.push(ledger_entry_row(layer, format!("{indent}{}", layer.name), reasons));
        // The final sync has its own row if it changed the count.
        let with_sync = layer.with_sync.filter(|m| layer.counted.is_some_and(|c| c.ios != m.ios));
        out.extend(with_sync.map(|moved| without_word(format!("{indent}  with the final sync"), moved)));
    }
    out
}

fn ledger_entry_row<'r>(entry: &'r LedgerEntry, name: String, reasons: &mut Vec<String>) -> LedgerRow<'r> {
    if entry.counted.is_some() {
        return LedgerRow { name, moved: entry.counted, word: &entry.word };
    }
    let reason = format!("{}: {}", entry.name, entry.word);
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
    LedgerRow { name, moved: None, word: NOT_COUNTED }
}

/// Prints the hosts of the main result; with `all`, of every result.
pub(super) fn show_hosts(out: &mut Page, report: &Report, all: bool) {
    let Some(fleet) = &report.fleet else { return };
    let main = report.results.iter().find(|r| r.true_name == report.headline.name).or(report.results.first());
    for result in report.results.iter().filter(|r| all || main.is_some_and(|main| main.name == r.name)) {
        out.field("Hosts", &result.name);
        let (table, more) = host_table(fleet, &result.name);
        out.table(&table);
        if more > 0 {
            let more = format!(
                "Hosts without a row: {more}, none slower than these; the JSON report has all hosts."
            );
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
/// Printed instead of a withheld number, because the tables of other tools have no column for verdicts.
const VOID: &str = "void";
/// Eighths of a column, from 0 to 7.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

pub(super) fn show_tool_layout(out: &mut Page, results: &ToolResults) {
    out.line(&format!("As {} shows it", results.tool));
    match &results.score {
        None => show_bars(out, &results.rows),
        Some(score) => show_scores(out, &results.rows, score),
    }
    for differs in &results.differs {
        out.note(differs);
    }
    out.line("");
}

/// Prints a bar for each number, all on one scale.
fn show_bars(out: &mut Page, rows: &[ToolRow]) {
    let cells = rows.iter().flat_map(|r| [&r.write, &r.read]).flatten();
    let most = cells.filter_map(|c| c.value).fold(0.0, f64::max);
    // Each bar is padded to the full width, so that the columns do not depend on the values.
    let bar = |cell: &Option<ToolCell>| {
        let bar = |cell: &ToolCell| cell.value.map_or_else(String::new, |value| fractional_bar(value, most));
        cell.as_ref().map(|cell| format!("{:CARD_BAR_WIDTH$}", bar(cell)))
    };
    let table = Columns::new(rows)
        .value("", |row| row.name.clone())
        .text("write", |row| bar(&row.write))
        .value("MB/s", |row| tool_number(row, row.write.as_ref()))
        .text("read", |row| bar(&row.read))
        .value("MB/s", |row| tool_number(row, row.read.as_ref()))
        .table(&["write", "read"]);
    out.table(&table);
    out.line(&format!("MB/s = 10^6 bytes per second: medians over runs{}.", void_meaning(&table)));
}

/// Explains `void` if the table contains it.
fn void_meaning(table: &Table) -> &'static str {
    if table.has(VOID) { "; void = withheld, because a finding invalidates it" } else { "" }
}

/// Draws the bar of a value: full blocks and a partial one. `most` is the value of the longest bar.
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
    let [read, write, total] =
        [&score.read, &score.write, &score.total].map(|points| or_dash(points.value, show_count));
    table.add(["Score".into(), read, write, "points".into()]);
    table.add(["Total".into(), String::new(), total, "points".into()]);
    out.table(&table);
    let void = void_meaning(&table);
    out.line(&format!(
        "MB/s = 10^6 bytes per second: medians over runs; Acc.time is the mean latency{void}."
    ));
    for (name, points) in [("read", &score.read), ("write", &score.write), ("total", &score.total)] {
        out.note(&format!("{name} score: {}", describe_basis(points)));
    }
}

/// Formats a number as the imitated tool does: milliseconds with three decimals.
fn tool_number(row: &ToolRow, cell: Option<&ToolCell>) -> String {
    match cell {
        None => "-".into(),
        Some(ToolCell { value: Some(ms), .. }) if row.unit == "ms" => format!("{ms:.3}"),
        Some(ToolCell { value: Some(rate), .. }) => show_rate(*rate),
        Some(ToolCell { verdict: Verdict::Invalid, .. }) => VOID.into(),
        Some(_) => "none".into(),
    }
}

/// Describes what the points are computed from.
fn describe_basis(points: &Points) -> String {
    if points.value.is_none() {
        return format!("withheld: {}.", points.withheld.as_deref().unwrap_or("the score was not computed"));
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
    out.paragraph(&replay_caption(replay));
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
