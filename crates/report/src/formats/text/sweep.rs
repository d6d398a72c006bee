//! Sweeps as text, in place of the table of results.
//!
//! - A search prints the best cell of each workload, the cheapest one with similar speed, the loss with the settings of
//!   well-known programs, and maps. A map shows one figure of every cell, as shades over two settings, or as bars if
//!   only one setting differs.
//! - `--preset iops`: one line per size in the form of the article that introduced this test (Stärk
//!   and Schweizer, "Fundamentals of I/O benchmarking", listings 3 and 4), then latencies, the
//!   device's counts and the limiter of each size.
//! - The presets `pts`, `pts-throughput`, `pts-latency` and `pts-wsat`: rounds as in SNIA's test
//!   specification. Prints tables of means over a window of five rounds, and the tracked variable
//!   in each round.

use crate::page::{Page, display_width};
use crate::view::findings::full_report_hint;
use crate::view::lists::{count_of, grouped, plural};
use crate::view::numbers::{SUSPECT_MARK, SUSPECT_MARK_MEANING};
use crate::view::sweep::{
    BEST_SETTINGS_LEGEND, Map, Marks, best_cell, best_settings, best_settings_table, best_settings_title,
    best_value, cells_of_work, describe_change, describe_choice, describe_duration, iops_table, maps,
    marks_of_work, ranked_sweep, round_table, round_tables, rows_table, share_of_best, shows_each_cell,
    thread_counts, work_rows,
};
use crate::view::table::or_dash;
use model::finding::{Checked, Outcome, Severity};
use model::report::Report;
use model::sweep::{BestSettings, CellFigures, Chosen, Measure, Reference, Rounds, Sweep, Variable, Work};
use model::units::{show_bytes, show_count, show_ns, show_rate, show_share};

/// Maximum number of printed reasons for skipped cells; `--skipped` and the JSON have all of them.
const MAX_REASONS: usize = 4;
/// Maximum number of rows of a workload if each cell has a row. `--verbose` prints all rows.
const MAX_WORK_ROWS: usize = 24;
/// Maximum number of cells of a sweep whose maps are in every report. `--verbose` prints the maps of larger sweeps.
const MAX_MAPPED_CELLS: usize = 20;

/// Legend of a table of all cells.
const EACH_LEGEND: &str = "mean, longest: latency from submission to completion; CPU: used by the workers; 100 % is one CPU all the time.";

/// Prints the answer, with a line for each workload.
pub(super) fn show_ranking(out: &mut Page, sweep: &Sweep, report: &Report) {
    let word = report.answer.as_ref().map_or("", |answer| answer.word.word());
    let mut first = format!("{}  ", out.paint(word, "1"));
    for work in &sweep.works {
        out.prose(&first, "    ", &describe_best(sweep, work));
        "  ".clone_into(&mut first);
    }
}

/// Prints, below the headline, the conclusion on each workload of a sweep that measured its cells in a fixed order.
pub(super) fn show_best_once(out: &mut Page, sweep: &Sweep) {
    for work in &sweep.works {
        let mut line = format!("{}: {}", work_title(work), work.sentence);
        for knee in &work.knees {
            line += " ";
            line += &knee.sentence;
        }
        out.prose("  ", "    ", &line);
    }
}

fn work_title(work: &Work) -> &str {
    match work.name.as_str() {
        "read" => "Reads",
        "write" => "Writes",
        "randread" => "Random reads",
        "randwrite" => "Random writes",
        other => other,
    }
}

/// Describes the best setting of a workload:
/// `Reads: depth 4, 4 MiB, direct, io_uring: 3,558 MB/s (18 other settings may be as fast)`.
fn describe_best(sweep: &Sweep, work: &Work) -> String {
    let name = work_title(work);
    let Some(best) = sweep.winner.get(&work.name) else { return format!("{name}: {}", work.sentence) };
    let setting = &best.setting;
    let size = setting.spec.clone().unwrap_or_else(|| show_bytes(setting.block_bytes.into()));
    let value = or_dash(best.value(work.measure), |v| work.measure.show(v));
    let as_good = if work.measure.is_latency() { "as low" } else { "as fast" };
    let certainty = match (work.chosen, work.rivals.len()) {
        (Chosen::Tied, 1) => format!("1 other setting may be {as_good}"),
        (Chosen::Tied, n) if n > 0 => format!("{n} other settings may be {as_good}"),
        (Chosen::NoChoice, _) => "the only setting".into(),
        (Chosen::Fastest, _) => {
            let better = work.measure.better_by(&show_share(sweep.tolerance));
            format!("no other is {better}, 95 % sure")
        }
        (Chosen::Tied | Chosen::CannotTell, _) => {
            format!("not decided: {}", split_first_clause(&work.sentence).0)
        }
    };
    format!("{name}: depth {}, {size}, {}: {value} ({certainty})", setting.depth, setting.access_path())
}

/// Splits a conclusion into its first clause, without the full stop, and the rest.
fn split_first_clause(sentence: &str) -> (&str, &str) {
    let end = ["; ", ". "].into_iter().filter_map(|end| sentence.find(end)).min();
    end.map_or((sentence.trim_end_matches('.'), ""), |at| (&sentence[..at], &sentence[at + 2..]))
}

/// Returns the part of the conclusion on a workload that the answer ([`describe_best`]) leaves out.
fn rest_of_conclusion<'w>(sweep: &Sweep, work: &'w Work) -> &'w str {
    if !sweep.winner.contains_key(&work.name) {
        // The answer already states the whole conclusion.
        return "";
    }
    // The answer only counts the other settings. The conclusion names them and has the bound.
    let has_only_number = work.chosen == Chosen::Tied && !work.rivals.is_empty();
    if has_only_number { work.sentence.as_str() } else { split_first_clause(&work.sentence).1 }
}

pub(super) fn show_sweep(out: &mut Page, sweep: &Sweep, report: &Report, all: bool) {
    for work in &sweep.works {
        show_work(out, sweep, work, report, all);
    }
    if !all && !shows_each_cell(sweep) && sweep.cells.len() > MAX_MAPPED_CELLS {
        let (count, how) = (show_count(sweep.cells.len() as f64), full_report_hint(report));
        out.note(&format!("The values of all {count} cells: {how}"));
    }
    show_best_settings(out, &best_settings(report, sweep));
    if let Some(reference) = &sweep.reference {
        out.note(&describe_reference(reference, sweep.tolerance));
    }
    show_skipped(out, sweep);
    out.note(&describe_search(sweep));
    out.line("");
}

/// Describes how long the sweep took and, for a search with a budget, which settings may seem better by chance.
fn describe_search(sweep: &Sweep) -> String {
    let luck = if sweep.budget_seconds.is_some() {
        " A setting that was not measured again after the search may have a better value by chance."
    } else {
        ""
    };
    format!("{}{luck}", describe_duration(sweep))
}

#[test]
fn a_search_with_a_budget_warns_of_settings_without_fresh_runs() -> Result<(), serde_json::Error> {
    let mut sweep: Sweep = serde_json::from_str(include_str!("../../../tests/golden/pieces/sweep.json"))?;
    let warning =
        " A setting that was not measured again after the search may have a better value by chance.";
    assert!(describe_search(&sweep).ends_with(warning), "{}", describe_search(&sweep));
    (sweep.search, sweep.budget_seconds) = ("exhaustive".into(), None);
    assert!(!describe_search(&sweep).contains("chance"), "{}", describe_search(&sweep));
    Ok(())
}

/// Describes whether the target changed during the sweep, by more than `tolerance`.
fn describe_reference(reference: &Reference, tolerance: f64) -> String {
    let [low, high] = reference.change.interval;
    let drift = if reference.drifted {
        "the target changed during the sweep, so settings measured early and late are less comparable".into()
    } else if low >= -tolerance && high <= tolerance {
        format!("it did not drift by more than {}", show_share(tolerance))
    } else {
        "its runs differ too much to tell a drift from noise".to_owned()
    };
    format!(
        "Reference: {}, measured {} times, changed by {} over the sweep: {drift}.",
        reference.setting.describe(),
        reference.runs,
        describe_change(reference.change.value, reference.change.interval)
    )
}

#[test]
fn a_wide_interval_is_not_called_a_lack_of_drift() -> Result<(), serde_json::Error> {
    let sweep: Sweep = serde_json::from_str(include_str!("../../../tests/golden/pieces/sweep.json"))?;
    let described = |interval, drifted| {
        let reference = sweep.reference.clone().map(|mut reference| {
            (reference.change.interval, reference.drifted) = (interval, drifted);
            reference
        });
        reference.map_or_else(String::new, |reference| describe_reference(&reference, 0.05))
    };
    assert!(described([-0.04, 0.03], false).ends_with(": it did not drift by more than 5.0 %."));
    let noise = described([-0.24, 16.4], false);
    assert!(noise.ends_with(": its runs differ too much to tell a drift from noise."), "{noise}");
    assert!(described([0.06, 0.2], true).contains("the target changed"));
    Ok(())
}

/// Prints, for each workload, a table of the devices with every device's best setting.
pub(super) fn show_best_settings(out: &mut Page, tables: &[BestSettings]) {
    for best in tables {
        out.paragraph(&best_settings_title(best));
        out.table(&best_settings_table(best));
    }
    if !tables.is_empty() {
        out.legend(&format!("{BEST_SETTINGS_LEGEND}."));
        out.line("");
    }
}

fn show_work(out: &mut Page, sweep: &Sweep, work: &Work, report: &Report, all: bool) {
    // Bytes per second are the usual measure, so only other measures are named.
    let measure = Some(work.measure).filter(|measure| *measure != Measure::Bandwidth);
    let by_measure = measure.map_or_else(String::new, |measure| format!(" by {}", measure.heading()));
    // If the answer at the top of the report is about this sweep, do not repeat it.
    let conclusion = if ranked_sweep(report).is_some() {
        rest_of_conclusion(sweep, work).to_owned()
    } else {
        describe_choice(work)
    };
    let cells = cells_of_work(sweep, work);
    let has_values = cells.iter().any(|c| c.value(work.measure).is_some());
    let is_small = sweep.cells.len() <= MAX_MAPPED_CELLS && !shows_each_cell(sweep);
    // A sweep over positions always shows its plot.
    let draws_maps =
        has_values && (all || is_small || cells.iter().any(|c| c.setting.offset_bytes.is_some()));
    let mut rows = work_rows(sweep, work);
    if conclusion.is_empty() && rows.is_empty() && !draws_maps {
        return;
    }
    let separator = if conclusion.is_empty() { "" } else { ": " };
    out.paragraph(&format!("{}{by_measure}{separator}{conclusion}", work.name));
    let best = best_cell(sweep, work);
    let cheapest = sweep.cheapest.get(&work.name).filter(|_| !shows_each_cell(sweep));
    if best.zip(cheapest).is_some_and(|(best, cheapest)| best.setting == cheapest.setting) {
        out.line("  No cheaper setting is confirmed to be as fast.");
    }
    let row_count = rows.len();
    rows.truncate(if all { row_count } else { MAX_WORK_ROWS });
    if row_count > 0 {
        out.table(&rows_table(rows, report));
    }
    if row_count > MAX_WORK_ROWS && !all {
        let hidden = row_count - MAX_WORK_ROWS;
        out.line(&format!("  {hidden} more {}: {}", plural(hidden, "row"), full_report_hint(report)));
    }
    if shows_each_cell(sweep) {
        out.note(EACH_LEGEND);
    }
    if best.is_some() && !work.baselines.is_empty() {
        let names: Vec<String> = work.baselines.iter().map(|loss| format!("as {}", loss.name)).collect();
        out.note(&format!("{}: {}.", names.join(", "), copy_half(&work.name)));
    }
    for loss in work.baselines.iter().filter(|_| best.is_some()) {
        if let Some(name) = loss.cell.result.and_then(|at| relabelled_name(report, at)) {
            out.note(&format!("The row \"as {}\" actually measured {name}.", loss.name));
        }
    }
    for knee in &work.knees {
        out.note(&knee.sentence);
    }
    out.line("");
    if draws_maps {
        // If each cell has a row, there is no cheapest one to show.
        let marks = marks_of_work(report, sweep, work);
        let cheapest = marks.cheapest.filter(|_| !shows_each_cell(sweep));
        show_maps(out, &cells, work.measure, Marks { cheapest, ..marks });
    }
}

/// Describes the half of a file copy that the baselines of a workload correspond to. Baselines are the settings of well-known programs.
fn copy_half(work: &str) -> &'static str {
    if work == "write" {
        "writing a new, growing file until it is stable, which is half of a copy"
    } else {
        "reading an uncached file once, which is half of a copy"
    }
}

/// Returns the true name of a result that a finding relabelled. The findings themselves are not printed here.
fn relabelled_name(report: &Report, at: usize) -> Option<&str> {
    let result = report.results.get(at)?;
    let renames = |f: &&Checked| f.outcome == Outcome::Finding && f.severity == Some(Severity::Relabels);
    let is_about = |f: &Checked| f.about.contains(&result.name);
    report.checks.iter().filter(renames).any(is_about).then_some(result.true_name.as_str())
}

/// Prints the cells that were not measured, by reason.
pub(super) fn show_skipped(out: &mut Page, sweep: &Sweep) {
    let reasons = grouped(sweep.skipped.iter().map(|cell| (cell.why.as_str(), cell)));
    for (why, cells) in reasons.iter().take(MAX_REASONS) {
        out.note(&format!("Skipped {}: {why}.", count_of(cells.len(), "setting")));
    }
    let more: usize = reasons.iter().skip(MAX_REASONS).map(|(_, cells)| cells.len()).sum();
    if more > 0 {
        out.line(&format!("  Skipped {more} for other reasons: --skipped lists all."));
    }
}

/// Shades of a map, from a small share of the best value to the best value.
const MAP_SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Minimum width of a value.
const VALUE_WIDTH: usize = 7;
/// Minimum width of a row's name.
const ROW_NAME_WIDTH: usize = 6;
/// Maximum width of a bar.
const BAR_WIDTH: usize = 40;

/// Draws the maps of these cells. Cache modes that were measured by the same jobs have a common map.
pub(super) fn show_maps(out: &mut Page, cells: &[&CellFigures], measure: Measure, marks: Marks) {
    if cells.len() < 2 {
        return;
    }
    let mut all: Vec<(Vec<String>, Map)> = Vec::new();
    let results = |map: &Map| map.cells.iter().map(|cell| cell.result).collect::<Vec<_>>();
    for map in maps(cells, marks.best) {
        match all.iter_mut().find(|(_, known)| results(known) == results(&map)) {
            Some((settings, _)) => settings.push(map.shared_settings),
            None => all.push((vec![map.shared_settings.clone()], map)),
        }
    }
    for (settings, map) in &all {
        // Shades and bars are relative to the best valid value.
        let valid = map.cells.iter().copied().filter(|cell| !marks.is_void(cell));
        MapDrawing { map, measure, best: best_value(valid, measure), marks }.show(out, &settings.join("; "));
    }
}

/// A map to draw.
struct MapDrawing<'m> {
    map: &'m Map<'m>,
    measure: Measure,
    best: f64,
    marks: Marks<'m>,
}

impl MapDrawing<'_> {
    fn show(&self, out: &mut Page, shared_settings: &str) {
        let Map { columns, sides, .. } = self.map;
        let title = format!("  {shared_settings}: {} by {}", self.measure.heading(), sides.rows.name);
        let drawn = if let [only] = columns.as_slice() {
            out.line(&title);
            self.draw_bars(out, only);
            "bars"
        } else {
            out.line(&format!("{title} and {}", sides.columns.name));
            self.draw_grid(out);
            "shades"
        };
        let marks = match (self.marks.best, self.marks.cheapest) {
            (Some(_), Some(_)) => "* best, = cheapest setting with similar speed; ",
            (Some(_), None) => "* best; ",
            (None, _) => "",
        };
        let has_void = self.map.cells.iter().any(|cell| self.marks.is_void(cell));
        let void = if has_void { "; in parentheses: a finding invalidates the number" } else { "" };
        out.line(&format!("  {marks}{drawn} are shares of the best{void}"));
        out.line("");
    }

    /// Draws one value in each row, with a bar relative to the best value.
    fn draw_bars(&self, out: &mut Page, column: &str) {
        let name = row_name_width(&self.map.rows);
        let value = self.value_width();
        let room = out.width().saturating_sub(name + value + 5).min(BAR_WIDTH);
        for row in &self.map.rows {
            let Some(cell) = self.map.cell(row, column) else { continue };
            let bar = "█".repeat((self.share(cell) * room as f64).round() as usize);
            let (mark, shown) = (self.mark(cell, ' '), self.show_value(cell));
            out.line(format!("  {row:>name$} {mark}{shown:>value$} {bar}").trim_end());
        }
    }

    fn draw_grid(&self, out: &mut Page) {
        let Map { rows, columns, .. } = self.map;
        let name = row_name_width(rows);
        let widest = columns.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let value = self.value_width().max(widest);
        let width = value + 2;
        let room = (out.width().saturating_sub(name + 2) / width).max(1);
        // Columns that do not fit continue below the first ones.
        for shown in columns.chunks(room) {
            let head = shown.iter().fold(String::new(), |head, label| head + &format!("{label:>width$}"));
            out.line(&format!("  {:>name$}{head}", ""));
            for row in rows {
                let mut line = format!("  {row:>name$}");
                for column in shown {
                    let Some(cell) = self.map.cell(row, column) else {
                        line += &" ".repeat(width);
                        continue;
                    };
                    let mark = self.mark(cell, map_shade(self.share(cell)));
                    line += &format!(" {mark}{:>value$}", self.show_value(cell));
                }
                out.line(line.trim_end());
            }
        }
    }

    fn share(&self, cell: &CellFigures) -> f64 {
        share_of_best(cell.value(self.measure), self.best, self.measure)
    }

    fn mark(&self, cell: &CellFigures, other: char) -> char {
        match Some(&cell.setting) {
            own if own == self.marks.best => '*',
            own if own == self.marks.cheapest => '=',
            _ => other,
        }
    }

    fn show_value(&self, cell: &CellFigures) -> String {
        or_dash(cell.value(self.measure), |value| {
            let shown = self.measure.show_short(value);
            if self.marks.is_void(cell) { format!("({shown})") } else { shown }
        })
    }

    fn value_width(&self) -> usize {
        let widths = self.map.cells.iter().map(|cell| self.show_value(cell).chars().count());
        widths.max().unwrap_or(0).max(VALUE_WIDTH)
    }
}

/// Returns the width of the row names.
fn row_name_width(rows: &[String]) -> usize {
    rows.iter().map(|row| display_width(row)).max().unwrap_or(0).max(ROW_NAME_WIDTH)
}

fn map_shade(share: f64) -> char {
    MAP_SHADES.get((share * MAP_SHADES.len() as f64) as usize).or(MAP_SHADES.last()).copied().unwrap_or(' ')
}

pub(super) fn show_iops_preset(out: &mut Page, report: &Report, sweep: &Sweep) {
    let threads = thread_counts(sweep);
    for workers in &threads {
        for line in article_lines(report, sweep, *workers) {
            out.line(&line);
        }
        out.line("");
    }
    if threads.len() > 1 {
        let void = |c: &CellFigures| c.result.and_then(|at| report.results.get(at)).is_none_or(|r| r.void);
        let cells: Vec<&CellFigures> = sweep.cells.iter().filter(|c| !void(c)).collect();
        for measure in [Measure::Iops, Measure::Bandwidth] {
            show_maps(out, &cells, measure, Marks::default());
        }
    }
    let table = iops_table(report, sweep);
    if !table.is_empty() {
        out.table(&table);
    }
    show_skipped(out, sweep);
    out.line(&format!("  The sweep took {:.0} s.", sweep.seconds));
    out.line("");
}

/// Returns the lines for a thread count in the format of the article by Stärk and Schweizer.
fn article_lines(report: &Report, sweep: &Sweep, threads: u32) -> Vec<String> {
    let cells = || sweep.cells.iter().filter(|c| c.setting.workers == threads);
    let place = sweep.target.as_ref().map_or_else(
        || sweep.cells.first().map_or_else(String::new, |c| c.setting.engine.clone()),
        |place| {
            let (value, unit) = scaled(place.bytes as f64, 1000.0);
            format!("{}, {value:6.2} {unit}B", place.path)
        },
    );
    let numbers: Vec<Result<f64, String>> = cells().map(|c| rate_or_reason(report, c)).collect();
    // The article right-aligns its numbers to the widest one.
    let widest = numbers.iter().flatten().map(|iops| format!("{iops:.1}").len()).max().unwrap_or(0).max(6);
    let mut out = vec![format!("{place}, {threads} threads:")];
    for (cell, number) in cells().zip(numbers) {
        let bytes = cell.setting.block_bytes;
        out.push(match number {
            Ok(iops) => article_line(bytes, iops, widest),
            Err(why) => format!(" {} blocks: {why}", padded_size(bytes)),
        });
    }
    out
}

/// Formats a line like the article's program: `printf(" %3d %3s blocks: %6.1f IO/s, %5.1f %3s/s (%5.1f %4s/s)")`, with
/// binary units of bytes and decimal units of bits.
fn article_line(block_bytes: u32, iops: f64, widest: usize) -> String {
    let bytes = iops * f64::from(block_bytes);
    let (binary, prefix) = scaled(bytes, 1024.0);
    let binary_unit = if prefix.is_empty() { "B".into() } else { format!("{}iB", prefix.to_uppercase()) };
    let (decimal, prefix) = scaled(8.0 * bytes, 1000.0);
    let bits = format!("{prefix}bit");
    let size = padded_size(block_bytes);
    format!(
        " {size} blocks: {iops:widest$.1} IO/s, {binary:5.1} {binary_unit:>3}/s ({decimal:5.1} {bits:>4}/s)"
    )
}

/// Returns the rate of a cell, or why it has none.
fn rate_or_reason(report: &Report, cell: &CellFigures) -> Result<f64, String> {
    let result = cell.result.and_then(|at| report.results.get(at));
    if let Some(result) = result.filter(|r| r.void) {
        let is_reason = |f: &&Checked| {
            f.outcome == Outcome::Finding
                && f.severity == Some(Severity::Invalidates)
                && f.about.contains(&result.name)
        };
        let ids: Vec<String> =
            report.checks.iter().filter(is_reason).map(|f| format!("{} {}", f.id, f.name)).collect();
        return Err(format!("no number ({})", ids.join(", ")));
    }
    cell.iops.ok_or_else(|| "no number (no run has ended)".into())
}

/// Formats a size in the largest unit that divides it: `512   B`, `  4 KiB`.
fn padded_size(bytes: u32) -> String {
    const UNITS: [(&str, u32); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
    let (unit, scale) = UNITS.into_iter().find(|(_, u)| bytes.is_multiple_of(*u)).unwrap_or(("B", 1));
    format!("{:>3} {unit:>3}", bytes / scale)
}

/// Divides a value by `base` until it is smaller than `base`. Returns it with its prefix: none, `k`, `M`, `G`, `T` or `P`.
fn scaled(mut value: f64, base: f64) -> (f64, &'static str) {
    let mut prefix = "";
    for next in ["k", "M", "G", "T", "P"] {
        if value < base {
            break;
        }
        value /= base;
        prefix = next;
    }
    (value, prefix)
}

/// Maximum number of printed rounds; the JSON has all of them.
const MAX_ROUNDS: usize = 25;

pub(super) fn show_pts_rounds(out: &mut Page, report: &Report, sweep: &Sweep) {
    let Some(rounds) = &sweep.rounds else { return };
    let when = match rounds.window {
        Some([first, last]) => format!("means of rounds {first} to {last}"),
        None => "means of fewer than five rounds, too few for a result".into(),
    };
    for (name, value) in round_tables(rounds.variable) {
        out.paragraph(&format!("{name} by size and reads/writes ({when})"));
        let table = round_table(report, sweep, *value);
        out.table(&table);
        if table.has(SUSPECT_MARK) || table.has("void") {
            out.line(&format!("{SUSPECT_MARK_MEANING}."));
        }
        out.line("");
    }
    show_tracked(out, rounds);
    show_conformance(out, report, sweep, rounds);
    show_skipped(out, sweep);
    out.line(&format!("  The rounds took {:.0} s.", sweep.seconds));
    out.line("");
}

fn format_tracked(variable: Variable, value: f64) -> String {
    match variable {
        Variable::Iops => show_count(value),
        Variable::MbPerS => show_rate(value),
        Variable::LatencyMeanNs => show_ns(value),
    }
}

fn show_tracked(out: &mut Page, rounds: &Rounds) {
    let name = round_tables(rounds.variable).first().map_or("", |(name, _)| *name);
    out.paragraph(&format!("Tracked: {name} of {}", rounds.tracked.describe()));
    let tracked_or_dash = |value: Option<f64>| or_dash(value, |v| format_tracked(rounds.variable, v));
    let from = rounds.by_round.len().saturating_sub(MAX_ROUNDS);
    let rounds_shown = rounds.by_round.iter().enumerate().skip(from);
    let rounds_text: Vec<String> =
        rounds_shown.map(|(at, v)| format!("{}: {}", at + 1, tracked_or_dash(*v))).collect();
    let before = if from > 0 { format!(" (the first {from} only in the JSON)") } else { String::new() };
    out.note(&format!("By round{before}: {}.", rounds_text.join("; ")));
    out.note(&describe_steady_state(rounds));
}

fn describe_steady_state(rounds: &Rounds) -> String {
    let done = rounds.by_round.len();
    let (Some(rule), Some([first, last]), Some(mean)) = (rounds.rule, rounds.window, rounds.window_mean)
    else {
        return format!(
            "Steady state: not reached; this needs five rounds with a tracked value, and {done} {} completed.",
            if done == 1 { "round was" } else { "rounds were" }
        );
    };
    let word = if rule.met { "reached" } else { "NOT reached" };
    let end = if !rule.met && rounds.bytes_wanted.is_none() && done >= rounds.at_most as usize {
        format!(" within the {} rounds that the specification allows", rounds.at_most)
    } else {
        String::new()
    };
    format!(
        "Steady state: {word}{end}; window rounds {first} to {last}, mean {}, excursion {} (20 % allowed), slope \
         excursion {} (10 % allowed).",
        format_tracked(rounds.variable, mean),
        show_share(rule.excursion),
        show_share(rule.slope)
    )
}

/// Prints how the run deviates from the specification.
fn show_conformance(out: &mut Page, report: &Report, sweep: &Sweep, rounds: &Rounds) {
    let filled = match &report.preconditioned {
        Some(done) => format!("Before the first round {} was written", show_bytes(done.filled_bytes)),
        None => "Before the first round nothing was written".into(),
    };
    let place = sweep.target.as_ref().map_or_else(|| "nothing is stored".into(), |p| show_bytes(p.bytes));
    out.note(&format!(
            "After SNIA SSS PTS 2.0; no conformance is claimed. Conformance would need a purge first (sanitize, format or secure \
             erase), which fathom does not do; the drive itself as the target, with its whole capacity active (here: {place}); a \
             reported write-cache state; and the specified test system. {filled}; in the rounds, {}.",
            show_bytes(rounds.bytes_written)
        ),
    );
}

#[cfg(test)]
use {crate::view::sweep::example_cell, model::sweep::Setting};

#[test]
fn shades_range_from_none_to_full() {
    assert_eq!((map_shade(0.0), map_shade(0.5), map_shade(1.0)), (' ', '▒', '█'));
}

#[test]
fn the_title_of_a_map_names_each_cache_mode_once() {
    let cell = |mode: &str, block_bytes: u32, result: usize| {
        let setting = Setting { mode: Some(mode.into()), ..Setting::plain("read", block_bytes, 1) };
        CellFigures { setting, mib_per_s: Some(1.0), result: Some(result), ..example_cell(1, None, 1) }
    };
    // Twenty sizes of two cache modes that are measured as one.
    let all: Vec<CellFigures> = (0..20)
        .flat_map(|at| ["unbuffered", "unbuffered-sequential"].map(|mode| cell(mode, 512 << at, at as usize)))
        .collect();
    let mut page = Page::new(crate::Style { width: 200, ..crate::Style::default() });
    show_maps(&mut page, &all.iter().collect::<Vec<_>>(), Measure::Bandwidth, Marks::default());
    let mut text = Vec::new();
    page.write(&mut text).unwrap_or_else(|e| panic!("{e}"));
    let text = String::from_utf8_lossy(&text);
    let titles = text.lines().filter(|line| line.contains(" by size")).count();
    assert_eq!((titles, text.matches("unbuffered-sequential").count()), (1, 1), "{text}");
}

#[test]
fn a_map_has_all_columns_and_marks_invalid_values() -> Result<(), serde_json::Error> {
    let mut report: Report = serde_json::from_str(include_str!("../../../tests/golden/valid.json"))?;
    let valid = report.results.swap_remove(0);
    report.results = (0..20).map(|at| model::report::Measured { void: at == 3, ..valid.clone() }).collect();
    let cell = |at: u32| {
        let setting = Setting::plain("read", 4096 << (at % 2), 1 << (at / 2));
        CellFigures {
            setting,
            mb_per_s: Some(f64::from(if at == 3 { 9_103 } else { 100 + at })),
            result: Some(at as usize),
            ..example_cell(1, None, 1)
        }
    };
    let all: Vec<CellFigures> = (0..20).map(cell).collect();
    let mut page = Page::new(crate::Style { width: 60, ..crate::Style::default() });
    let marks = Marks { report: Some(&report), ..Marks::default() };
    show_maps(&mut page, &all.iter().collect::<Vec<_>>(), Measure::Bandwidth, marks);
    let mut text = Vec::new();
    page.write(&mut text).unwrap_or_else(|e| panic!("{e}"));
    let text = String::from_utf8_lossy(&text);
    assert!((100..120).all(|value| text.contains(&value.to_string())), "{text}");
    assert!(text.contains("(9,103)") && text.matches('(').count() == 1, "{text}");
    assert_eq!(text.matches('█').count(), 20, "shares of the best valid value: {text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("in parentheses: a finding invalidates the number"), "{text}");
    Ok(())
}

#[test]
fn lines_equal_those_of_the_article() {
    // Listing 3. In the article, the leading blank is missing for sizes with three digits, and the rates have fewer
    // digits than the program printed.
    for (bytes, iops, expected) in [
        (512, 76.68, " 512   B blocks:   76.7 IO/s,  38.3 KiB/s (314.1 kbit/s)"),
        (1 << 10, 84.447, "   1 KiB blocks:   84.4 IO/s,  84.4 KiB/s (691.8 kbit/s)"),
        (16 << 10, 79.2, "  16 KiB blocks:   79.2 IO/s,   1.2 MiB/s ( 10.4 Mbit/s)"),
        (128 << 10, 76.0, " 128 KiB blocks:   76.0 IO/s,   9.5 MiB/s ( 79.7 Mbit/s)"),
        (2 << 20, 25.325, "   2 MiB blocks:   25.3 IO/s,  50.6 MiB/s (424.9 Mbit/s)"),
    ] {
        assert_eq!(article_line(bytes, iops, 6), expected);
    }
    // Listing 4. Its widest rate has seven characters.
    for (bytes, iops, expected) in [
        (512, 21556.8, " 512   B blocks: 21556.8 IO/s,  10.5 MiB/s ( 88.3 Mbit/s)"),
        (32 << 10, 7621.1, "  32 KiB blocks:  7621.1 IO/s, 238.2 MiB/s (  2.0 Gbit/s)"),
        (512 << 10, 448.7, " 512 KiB blocks:   448.7 IO/s, 224.3 MiB/s (  1.9 Gbit/s)"),
    ] {
        assert_eq!(article_line(bytes, iops, 7), expected);
    }
}

#[test]
fn sizes_use_the_largest_unit_that_divides_them() {
    assert_eq!(
        (padded_size(512), padded_size(1 << 10), padded_size(16 << 20)),
        ("512   B".into(), "  1 KiB".into(), " 16 MiB".into())
    );
    assert_eq!(padded_size(1536), "1536   B");
    assert_eq!(scaled(999.0, 1000.0), (999.0, ""));
    let (value, prefix) = scaled(1.00e12, 1000.0);
    assert!((value - 1.0).abs() < 1e-12 && prefix == "T");
}
