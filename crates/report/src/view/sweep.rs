//! Sweeps: the best settings of each workload, the cells of a grid, and the sides of maps.

use crate::view::lists::distinct_by;
use crate::view::numbers::{
    device_rate, half_width, percentile, verdict_mark, with_supported_digits, with_suspect_mark,
    worst_verdict_mark,
};
use crate::view::table::{Columns, Table, or_dash};
use model::distinct;
use model::figures::Estimate;
use model::finding::CheckId;
use model::report::{AnswerWord, Measured, Report, Verdict};
use model::spec::axes::IOMETER;
use model::sweep::{
    BestSettings, CellFigures, Chosen, DeviceBySettings, Measure, Setting, Sweep, Variable, Work,
};
use model::units::{show_block, show_bytes, show_count, show_ns, show_rate, show_share};

/// Returns the sweep of a report whose answer is about the best setting of each workload; `None` for other reports.
pub(crate) fn ranked_sweep(report: &Report) -> Option<&Sweep> {
    let word = report.answer.as_ref()?.word;
    let is_choice = matches!(word, AnswerWord::Fastest | AnswerWord::Tied | AnswerWord::CannotTell);
    let sweep = report.study.sweep().filter(|s| !s.is_in_order() && s.rounds.is_none());
    sweep.filter(|_| is_choice && report.gates.is_empty())
}

/// A row of a sweep: a cell with its role, such as the best one.
pub(crate) struct SweepRow<'r> {
    work: &'r Work,
    name: String,
    cell: &'r CellFigures,
    /// The ratio of the cell's value to the best value; `None` if the cell is not compared with the
    /// best cell.
    against: Option<&'r Estimate>,
    /// The settings that distinguish the cell from the other cells; `None` if only the best cells
    /// have a row.
    distinguishing: Option<String>,
}

/// Returns the rows of each workload ([`work_rows`]) below the name of the workload.
pub(crate) fn sweep_table(sweep: &Sweep, report: &Report) -> Table {
    let mut table = rows_table(Vec::new(), report);
    for work in &sweep.works {
        table.add_title(&work.name);
        table.rows.extend(rows_table(work_rows(sweep, work), report).rows);
    }
    table
}

/// Columns to drop if the width is too small, in this order.
const SWEEP_DROP_ORDER: [&str; 8] =
    ["CPU/MiB", "memory", "verdict", "±95 %", "CPU", "longest", "mean", "MB/s"];

/// Returns the table of these cells. It has MB/s, and IOPS unless MB/s ranks the cells. If a latency
/// ranks the cells, the table has that latency. If every cell has a row, the table has IOPS, mean and
/// longest latency, whatever ranks the cells.
pub(crate) fn rows_table(rows: Vec<SweepRow>, report: &Report) -> Table {
    let result = |row: &SweepRow| row.cell.result.and_then(|at| report.results.get(at));
    let measured = |row: &SweepRow, measure: Measure| {
        let interval = row.cell.interval_of(measure);
        or_dash(row.cell.value(measure), |v| {
            if measure.is_latency() { measure.show(v) } else { with_supported_digits(v, interval) }
        })
    };
    let if_ranking =
        |row: &SweepRow, measure: Measure| (row.work.measure == measure).then(|| measured(row, measure));
    Columns::new(rows)
        .text("", |row| row.name.clone())
        .text("setting", |row| {
            let whole = || format!("{} {}", row.cell.setting.load(), row.cell.setting.access_path());
            row.distinguishing.clone().unwrap_or_else(whole)
        })
        .text("verdict", |row| result(row).map(verdict_mark))
        .value("IOPS", |row| {
            let is_shown = row.distinguishing.is_some() || row.work.measure != Measure::Bandwidth;
            is_shown.then(|| measured(row, Measure::Iops))
        })
        .value("MB/s", |row| measured(row, Measure::Bandwidth))
        .value("±95 %", |row| {
            half_width(
                row.cell.value(row.work.measure).unwrap_or(0.0),
                row.cell.interval_of(row.work.measure),
            )
        })
        .value("p99", |row| if_ranking(row, Measure::P99))
        .value("mean", |row| match row.distinguishing {
            Some(_) => Some(or_dash(row.cell.latency_mean_ns, show_ns)),
            None => if_ranking(row, Measure::Latency),
        })
        .value("longest", |row| {
            row.distinguishing.as_ref().map(|_| or_dash(row.cell.latency_max_ns, |ns| show_ns(ns as f64)))
        })
        .value("CPU", |row| row.distinguishing.as_ref().map(|_| or_dash(row.cell.cpus(), show_share)))
        .value("memory", |row| row.distinguishing.is_none().then(|| show_bytes(row.cell.memory_bytes)))
        .value("CPU/MiB", |row| {
            row.distinguishing.is_none().then(|| or_dash(row.cell.cpu_ns_per_mib, show_ns))
        })
        .text("against the fastest", |row| {
            row.against.map(|ratio| describe_change(ratio.value - 1.0, ratio.interval.map(|end| end - 1.0)))
        })
        .table(&SWEEP_DROP_ORDER)
}

/// Returns the conclusion on a workload.
pub(crate) fn describe_choice(work: &Work) -> String {
    let word = if work.chosen == Chosen::CannotTell { "CANNOT TELL: " } else { "" };
    format!("{word}{}", work.sentence)
}

/// Returns the cells of a workload.
pub(crate) fn cells_of_work<'s>(sweep: &'s Sweep, work: &Work) -> Vec<&'s CellFigures> {
    sweep.cells.iter().filter(|cell| cell.setting.work() == work.name).collect()
}

/// Returns the best cell of a workload. If no cell was chosen, returns the only cell, or `None` if
/// the workload has several.
pub(crate) fn best_cell<'s>(sweep: &'s Sweep, work: &Work) -> Option<&'s CellFigures> {
    sweep.winner.get(&work.name).or_else(|| sweep.only_cell(&work.name))
}

/// Returns the marks on the cells of a workload.
pub(crate) fn marks_of_work<'s>(report: &'s Report, sweep: &'s Sweep, work: &Work) -> Marks<'s> {
    let cheapest = sweep.cheapest.get(&work.name);
    Marks {
        best: best_cell(sweep, work).map(|cell| &cell.setting),
        cheapest: cheapest.map(|cell| &cell.setting),
        report: Some(report),
    }
}

/// Whether the report has a row for every cell instead of only for the best ones: for `--preset iometer`, and for sweeps over
/// positions.
pub(crate) fn shows_each_cell(sweep: &Sweep) -> bool {
    sweep.preset.as_deref() == Some(IOMETER) || sweep.cells.iter().any(|c| c.setting.offset_bytes.is_some())
}

/// Returns a row for each cell of a workload, with only the settings that differ between the cells.
fn cell_rows<'r>(sweep: &'r Sweep, work: &'r Work) -> Vec<SweepRow<'r>> {
    let cells = cells_of_work(sweep, work);
    let parts = |c: &CellFigures| -> Vec<String> {
        let access_path = c.setting.access_path();
        // Name a single worker only if other cells have several.
        let alone = (c.setting.workers == 1).then(|| "1 worker".to_owned());
        let settings = access_path.split(", ").map(str::to_owned).chain(alone);
        std::iter::once(c.setting.load()).chain(settings).collect()
    };
    let common = |part: &String| cells.len() > 1 && cells.iter().all(|c| parts(c).contains(part));
    let winner = sweep.winner.get(&work.name);
    let row = |cell: &&'r CellFigures| {
        let is_best = winner.is_some_and(|w| w.setting == cell.setting);
        // The winner may have been measured again at the end: print those figures.
        let cell = winner.filter(|_| is_best).unwrap_or(cell);
        let distinguishing: Vec<String> = parts(cell).into_iter().filter(|part| !common(part)).collect();
        let name = if is_best { first_row_name(work).to_owned() } else { String::new() };
        SweepRow { work, name, cell, against: None, distinguishing: Some(distinguishing.join(", ")) }
    };
    cells.iter().map(row).collect()
}

/// Returns the rows of a workload: the best, the cheapest if it differs, and the settings of well-known programs; or all cells.
pub(crate) fn work_rows<'r>(sweep: &'r Sweep, work: &'r Work) -> Vec<SweepRow<'r>> {
    if shows_each_cell(sweep) {
        return cell_rows(sweep, work);
    }
    let Some(winner) = best_cell(sweep, work) else { return Vec::new() };
    let row = |name: String, cell, against| SweepRow { work, name, cell, against, distinguishing: None };
    let first = if sweep.only_cell(&work.name).is_some() { "" } else { first_row_name(work) };
    let cheapest = sweep.cheapest.get(&work.name).filter(|c| c.setting != winner.setting);
    let cheapest = cheapest.map(|c| row("cheapest".into(), c, work.cheapest_by_winner.as_ref()));
    let of_programs =
        work.baselines.iter().map(|l| row(format!("as {}", l.name), &l.cell, l.by_winner.as_ref()));
    std::iter::once(row(first.into(), winner, None)).chain(cheapest).chain(of_programs).collect()
}

/// Returns the name of the first row: whether the cell is proven to be the fastest, or only the best observed one.
fn first_row_name(work: &Work) -> &'static str {
    match work.chosen {
        Chosen::Fastest if work.measure.is_latency() => "lowest",
        Chosen::Fastest => "fastest",
        _ => "best seen",
    }
}

/// Heading of [`best_settings_table`].
pub(crate) fn best_settings_title(best: &BestSettings) -> String {
    format!("{}: {} of every device at each device's best setting", best.work, best.measure.heading())
}

/// Legend of [`best_settings_table`].
pub(crate) const BEST_SETTINGS_LEGEND: &str =
    "best: the device's own best setting; %: the difference from the device's best; - = no number";

/// Returns a row for each device: its value with its own best setting, and with the best setting of every other device.
pub(crate) fn best_settings_table(best: &BestSettings) -> Table {
    let cell = |row: &DeviceBySettings, at: usize| {
        let value_at = |at: usize| row.values.get(at).copied().flatten();
        let own = row.best.and_then(value_at);
        or_dash(value_at(at), |value| {
            let change = own.map_or_else(String::new, |own| percent(value / own - 1.0));
            let mark = if row.best == Some(at) { BEST } else { &change };
            format!("{} {mark}", best.measure.show_in_table(value)).trim_end().to_owned()
        })
    };
    let reason = |row: &DeviceBySettings| {
        row.best.is_none().then(|| match row.invalidated_by.as_slice() {
            [] => "not decided".to_owned(),
            ids => describe_void(ids),
        })
    };
    let mut table = Columns::new(&best.rows)
        .text("device", |row| row.name.clone())
        .text("best setting", |row| reason(row));
    for (at, setting) in best.settings.iter().enumerate() {
        table = table.value(setting.clone(), |row| cell(row, at));
    }
    let last_first: Vec<&str> = best.settings.iter().skip(1).rev().map(String::as_str).collect();
    table.table(&last_first)
}

/// Names the checks that invalidate a value: `void by A04`.
fn describe_void(ids: &[CheckId]) -> String {
    format!("void by {}", CheckId::list(ids, " "))
}

/// Marks the best setting of a device. Pages print such a cell in bold.
pub(crate) const BEST: &str = "best";

/// Returns each target of a sweep at the best settings of all targets; empty unless the grid has
/// several targets as an axis.
pub(crate) fn best_settings(report: &Report, sweep: &Sweep) -> Vec<BestSettings> {
    let by_target = sweep.settings(|at| report.invalidated_by(at));
    if by_target.len() < 2 {
        return Vec::new();
    }
    BestSettings::tables(&by_target.into_iter().map(|settings| (String::new(), settings)).collect::<Vec<_>>())
}

/// Formats a change with its interval, given as shares: `-2.1 % (-3.0 to -1.2)`.
pub(crate) fn describe_change(share: f64, [low, high]: [f64; 2]) -> String {
    format!("{} ({:+.1} to {:+.1})", percent(share), 100.0 * low, 100.0 * high)
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// Maximum number of map columns, unless both sides have more labels.
const MAX_MAP_COLUMNS: usize = 10;

/// Marks on the cells of a map.
#[derive(Clone, Copy, Default)]
pub(crate) struct Marks<'s> {
    /// The best cell; `None` for no mark.
    pub(crate) best: Option<&'s Setting>,
    /// The cheapest cell with similar speed; `None` for no mark.
    pub(crate) cheapest: Option<&'s Setting>,
    /// The report with the results of the cells, to mark the cells that a finding invalidates; `None` for no such mark.
    pub(crate) report: Option<&'s Report>,
}

impl Marks<'_> {
    /// Whether a finding invalidates the cell.
    pub(crate) fn is_void(&self, cell: &CellFigures) -> bool {
        let result = self.report.zip(cell.result).and_then(|(report, at)| report.results.get(at));
        result.is_some_and(|result| result.void)
    }

    /// Describes why the cell has no number, `void by A04`; `None` unless a finding invalidates the cell.
    pub(crate) fn why_void(&self, cell: &CellFigures) -> Option<String> {
        let (report, at) = self.report.zip(cell.result).filter(|_| self.is_void(cell))?;
        Some(match report.invalidated_by(at).as_slice() {
            [] => "void".into(),
            ids => describe_void(ids),
        })
    }
}

/// Rows and columns of a map.
#[derive(Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) rows: Side,
    pub(crate) columns: Side,
}

/// A setting whose values are the rows or the columns of a map.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    pub(crate) name: &'static str,
    /// Returns the label of a setting on this side.
    pub(crate) label: fn(&Setting) -> String,
    /// Sort key; ties keep the order of the grid.
    sort_key: fn(&Setting) -> u64,
    /// Returns the setting without this side's value.
    without: fn(&Setting) -> Setting,
}

impl Sides {
    /// Describes the settings that are neither rows nor columns. All cells of a map share them.
    pub(crate) fn describe_shared_settings(self, setting: &Setting) -> String {
        if self.rows.name == ACCESS_PATH.name {
            return "all settings".into();
        }
        (self.columns.without)(&(self.rows.without)(setting)).access_path()
    }
}

pub(crate) const SIZE: Side = Side {
    name: "size",
    label: |s| show_block(u64::from(s.block_bytes)),
    sort_key: |s| u64::from(s.block_bytes),
    without: |s| Setting { block_bytes: 0, ..s.clone() },
};

pub(crate) const DEPTH: Side = Side {
    name: "depth",
    label: |s| s.depth.to_string(),
    sort_key: |s| u64::from(s.depth),
    without: |s| Setting { depth: 0, ..s.clone() },
};

pub(crate) const WORKERS: Side = Side {
    name: "workers",
    label: |s| s.workers.to_string(),
    sort_key: |s| u64::from(s.workers),
    without: |s| Setting { workers: 1, ..s.clone() },
};

/// Side of a map with the number of targets: 1 if the setting has no number of targets.
pub(crate) const TARGETS: Side = Side {
    name: "targets",
    label: |s| s.targets.unwrap_or(1).to_string(),
    sort_key: |s| u64::from(s.targets.unwrap_or(1)),
    without: |s| Setting { targets: None, ..s.clone() },
};

/// Side of a map with the number of targets of all workers together.
pub(crate) const QUEUES: Side = Side {
    name: "targets of all workers",
    label: |s| s.queues().to_string(),
    sort_key: Setting::queues,
    without: |s| Setting { workers: 1, targets: None, targets_of_last: None, ..s.clone() },
};

pub(crate) const TARGET: Side = Side {
    name: "target",
    label: |s| s.target.clone().unwrap_or_default(),
    sort_key: |_| 0,
    without: |s| Setting { target: None, ..s.clone() },
};

/// Side of a map with the cache mode, the engine and the batch, used if the cells differ in nothing else. All cells are in one map.
pub(crate) const ACCESS_PATH: Side =
    Side { name: "access path", label: Setting::access_path, sort_key: |_| 0, without: Setting::clone };

pub(crate) const POSITION: Side = Side {
    name: "position",
    label: |s| s.position().unwrap_or_default(),
    sort_key: |s| s.offset_percent.map_or(s.offset_bytes.unwrap_or(0), u64::from),
    without: Setting::at_no_position,
};

/// Chooses rows and columns: the settings that differ between cells, otherwise size and depth.
fn sides(cells: &[&CellFigures]) -> Sides {
    let differ = |side: &Side| labels(cells, *side).len() > 1;
    if cells.iter().any(|c| c.setting.targets_of_last.is_some()) {
        return Sides { rows: QUEUES, columns: DEPTH };
    }
    // Access specifications have random sizes, so maps of them have no side for the block size.
    let plain = cells.iter().all(|c| c.setting.spec.is_none());
    let sizes = Some(SIZE).filter(|_| plain);
    let all = sizes.into_iter().chain([TARGET, POSITION, TARGETS, WORKERS, DEPTH]);
    let varied: Vec<Side> = all.filter(differ).collect();
    let (rows, columns) = match varied.as_slice() {
        [first, .., last] if first.name == SIZE.name => (*first, *last),
        [.., rows, columns] => (*rows, *columns),
        [side] if side.name != DEPTH.name => (*side, DEPTH),
        [] if differ(&ACCESS_PATH) => (ACCESS_PATH, DEPTH),
        _ => (if plain { SIZE } else { WORKERS }, DEPTH),
    };
    // Put a side with many or long labels in rows: rows are unlimited in number and have more room for names.
    let long = labels(cells, columns).len() > MAX_MAP_COLUMNS || columns.name == TARGET.name;
    if long { Sides { rows: columns, columns: rows } } else { Sides { rows, columns } }
}

/// Returns the distinct labels of cells on a side, sorted by the key of the side.
fn labels(cells: &[&CellFigures], side: Side) -> Vec<String> {
    let mut all: Vec<&Setting> = cells.iter().map(|c| &c.setting).collect();
    all.sort_by_key(|s| (side.sort_key)(s));
    distinct(all.into_iter().map(side.label))
}

/// A map: a number of each cell over two settings.
pub(crate) struct Map<'c> {
    /// The settings that are neither rows nor columns. All cells share them.
    pub(crate) shared_settings: String,
    pub(crate) sides: Sides,
    pub(crate) cells: Vec<&'c CellFigures>,
    /// Labels of the rows.
    pub(crate) rows: Vec<String>,
    /// Labels of the columns.
    pub(crate) columns: Vec<String>,
}

impl<'c> Map<'c> {
    /// Returns the cell in a row and a column; `None` if it was not measured.
    pub(crate) fn cell(&self, row: &str, column: &str) -> Option<&'c CellFigures> {
        let Sides { rows, columns } = self.sides;
        let is_there = |setting: &Setting| (rows.label)(setting) == row && (columns.label)(setting) == column;
        self.cells.iter().copied().find(|cell| is_there(&cell.setting))
    }
}

/// Returns a map for each combination of the settings that are neither rows nor columns, starting with the map of the
/// best cell.
pub(crate) fn maps<'c>(cells: &[&'c CellFigures], best: Option<&Setting>) -> Vec<Map<'c>> {
    let sides = sides(cells);
    let settings = best.into_iter().chain(cells.iter().map(|c| &c.setting));
    let all_shared = settings.map(|setting| sides.describe_shared_settings(setting));
    let map = |shared_settings: String| {
        let is_on_map =
            |cell: &&CellFigures| sides.describe_shared_settings(&cell.setting) == shared_settings;
        let cells: Vec<&CellFigures> = cells.iter().copied().filter(is_on_map).collect();
        let (rows, columns) = (labels(&cells, sides.rows), labels(&cells, sides.columns));
        Map { shared_settings, sides, cells, rows, columns }
    };
    distinct(all_shared).into_iter().map(map).collect()
}

/// Returns a value as a share of the best value, from 0 to 1. For latencies, returns the best value
/// as a share of the value. 0 for an unknown value.
pub(crate) fn share_of_best(value: Option<f64>, best: f64, measure: Measure) -> f64 {
    let value = value.unwrap_or(0.0);
    let share = if measure.is_latency() { best / value } else { value / best };
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

/// Returns the best value of the cells. Without a value, the best latency is infinity, and any
/// other best value is 0.
pub(crate) fn best_value<'c>(cells: impl Iterator<Item = &'c CellFigures>, measure: Measure) -> f64 {
    let values = cells.filter_map(|c| c.value(measure)).filter(|v| v.is_finite());
    if measure.is_latency() { values.fold(f64::INFINITY, f64::min) } else { values.fold(0.0, f64::max) }
}

/// Describes how long the search took, and how much time it had.
pub(crate) fn describe_duration(sweep: &Sweep) -> String {
    let budget = sweep.budget_seconds.map_or_else(String::new, |budget| format!(" of {budget:.0} s"));
    format!("{} took {:.0} s{budget}.", sweep.describe_search(), sweep.seconds)
}

/// Returns the thread counts in the order of the grid.
pub(crate) fn thread_counts(sweep: &Sweep) -> Vec<u32> {
    distinct(sweep.cells.iter().map(|cell| cell.setting.workers))
}

/// Returns a row for each size with the values that the lines of `--preset iops` leave out: latencies, the device's
/// counts and the limiter.
pub(crate) fn iops_table(report: &Report, sweep: &Sweep) -> Table {
    // The number of threads is shown only if the cells differ in it.
    let several = thread_counts(sweep).len() > 1;
    let measured = sweep.cells.iter().filter(|c| c.iops.is_some());
    let with_results = measured.filter_map(|c| Some((c, report.results.get(c.result?)?)));
    let at = |result: &Measured, rank: &str| {
        or_dash(result.read.as_ref().or(result.write.as_ref()), |f| {
            percentile(&f.latency_ns.percentiles, rank)
        })
    };
    Columns::new(with_results.filter(|(_, result)| !result.void))
        .text("size", |(cell, _)| show_block(u64::from(cell.setting.block_bytes)))
        .value("threads", |(cell, _)| several.then_some(cell.setting.workers))
        .text("verdict", |(_, result)| verdict_mark(result))
        .value("IOPS", |(cell, _)| or_dash(cell.iops, show_rate))
        .value("MB/s", |(cell, _)| or_dash(cell.mb_per_s, show_rate))
        .value("p50", |(_, result)| at(result, "50"))
        .value("p99", |(_, result)| at(result, "99"))
        .value("device IOPS", |(_, result)| device_rate(result))
        .text("limited by", |(_, result)| result.limiter.shown_name().to_owned())
        .table(&["device IOPS", "p50", "limited by", "MB/s", "p99"])
}

/// Formats a number of a cell.
type CellValue = fn(&CellFigures) -> Option<String>;

/// Returns the titles and values of the tables for a tracked variable.
pub(crate) fn round_tables(variable: Variable) -> &'static [(&'static str, CellValue)] {
    const IOPS: &[(&str, CellValue)] = &[("IOPS", |c| c.iops.map(show_count))];
    const MB_PER_S: &[(&str, CellValue)] = &[("MB/s", |c| c.mb_per_s.map(show_rate))];
    const LATENCY: &[(&str, CellValue)] = &[
        ("mean latency", |c| c.latency_mean_ns.map(show_ns)),
        ("longest latency", |c| c.latency_max_ns.map(|ns| show_ns(ns as f64))),
    ];
    match variable {
        Variable::Iops => IOPS,
        Variable::MbPerS => MB_PER_S,
        Variable::LatencyMeanNs => LATENCY,
    }
}

/// Returns the first of the [`round_tables`]: the means of the tracked variable.
pub(crate) fn first_round_table(report: &Report, sweep: &Sweep) -> Table {
    let variable = sweep.rounds.as_ref().map_or(Variable::Iops, |rounds| rounds.variable);
    let value: CellValue = round_tables(variable).first().map_or(|_| None, |(_, value)| *value);
    round_table(report, sweep, value)
}

/// Returns a table of block sizes by workloads. Each row has the worst verdict of its cells. An
/// invalidated cell has `void` instead of its value.
pub(crate) fn round_table(report: &Report, sweep: &Sweep, value: CellValue) -> Table {
    let settings = || sweep.cells.iter().map(|cell| &cell.setting);
    let works: Vec<&Setting> = distinct_by(settings(), |one, other| one.work() == other.work());
    let sizes = distinct(settings().map(|setting| setting.block_bytes));
    let first = ["size".to_owned(), "verdict".to_owned()];
    let headings: Vec<String> =
        first.into_iter().chain(works.iter().map(|work| read_write_shares(work))).collect();
    let mut table = Table::new(&headings, &[]).aligned(1, true).aligned(headings.len() - 1, false);
    let result = |cell: &CellFigures| report.results.get(cell.result?);
    for size in sizes {
        let cells = sweep.cells.iter().filter(|c| c.setting.block_bytes == size);
        let mut row = vec![show_block(u64::from(size)), worst_verdict_mark(cells.clone().filter_map(result))];
        for work in &works {
            let cell = cells.clone().find(|c| c.setting.work() == work.work());
            row.push(or_dash(cell, |c| marked_value(c, result(c), value)));
        }
        table.add(row);
    }
    table
}

/// Returns a value of a cell with its mark.
fn marked_value(cell: &CellFigures, result: Option<&Measured>, value: CellValue) -> String {
    match value(cell) {
        _ if result.is_some_and(|r| r.void) => "void".into(),
        Some(number) => with_suspect_mark(number, result.map_or(Verdict::Suspect, |r| r.verdict)),
        None => "-".into(),
    }
}

/// Names a workload by its percentages of reads and writes, as SNIA's test specification does.
fn read_write_shares(setting: &Setting) -> String {
    let named_by = setting.spec.as_deref().or(setting.mix.as_deref()).unwrap_or(&setting.rw);
    match named_by {
        "read" | "randread" => "100/0".into(),
        "write" | "randwrite" => "0/100".into(),
        other => other.into(),
    }
}

#[test]
fn an_unknown_or_odd_value_has_no_share_of_the_best() {
    let percent = |value, measure| (100.0 * share_of_best(value, 100.0, measure)).round() as u32;
    let rates = [Some(100.0), Some(25.0), None, Some(f64::NAN)].map(|rate| percent(rate, Measure::Bandwidth));
    assert_eq!(rates, [100, 25, 0, 0]);
    assert_eq!(percent(Some(400.0), Measure::Latency), 25);
}

#[test]
fn a_change_has_a_sign_and_an_interval() {
    assert_eq!(percent(-0.021), "-2.1 %");
    assert_eq!(describe_change(0.091, [-0.16, 0.418]), "+9.1 % (-16.0 to +41.8)");
}

#[test]
fn works_are_named_by_their_shares_of_reads_and_writes() {
    let shares = |rw: &str, mix: Option<&str>| {
        read_write_shares(&Setting { mix: mix.map(str::to_owned), ..Setting::plain(rw, 4096, 1) })
    };
    assert_eq!(shares("randrw", Some("read")), "100/0");
    assert_eq!(shares("randrw", Some("write")), "0/100");
    assert_eq!(shares("randrw", Some("95/5")), "95/5");
    assert_eq!((shares("write", None), shares("read", None)), ("0/100".into(), "100/0".into()));
    let spec = Setting { spec: Some("File Server".into()), ..Setting::plain("", 4096, 1) };
    assert_eq!(read_write_shares(&spec), "File Server");
}

#[cfg(test)]
pub(crate) fn example_cell(workers: u32, targets: Option<u32>, depth: u32) -> CellFigures {
    let spec = Some("Database".into());
    let setting = Setting { workers, spec, targets, ..Setting::plain("", 4096, depth) };
    CellFigures {
        setting,
        mib_per_s: None,
        mb_per_s: None,
        iops: None,
        interval: None,
        latency_p99_ns: None,
        latency_p99_interval_ns: None,
        latency_interval_ns: None,
        latency_mean_ns: None,
        latency_max_ns: None,
        runs: 0,
        memory_bytes: 0,
        cpu_ns_per_mib: None,
        result: None,
    }
}

#[cfg(test)]
fn side_names(all: &[CellFigures]) -> (&'static str, &'static str) {
    let sides = sides(&all.iter().collect::<Vec<_>>());
    (sides.rows.name, sides.columns.name)
}

#[test]
fn a_map_has_the_varied_settings_as_sides() {
    assert_eq!(side_names(&[example_cell(2, None, 1), example_cell(2, None, 8)]), ("workers", "depth"));
    assert_eq!(side_names(&[example_cell(2, Some(1), 1), example_cell(2, Some(2), 1)]), ("targets", "depth"));
    assert_eq!(
        side_names(&[example_cell(2, Some(1), 1), example_cell(1, Some(2), 1)]),
        ("targets", "workers")
    );
    assert_eq!(side_names(&[example_cell(2, Some(1), 1), example_cell(2, Some(2), 8)]), ("targets", "depth"));
    let mut last = example_cell(2, Some(2), 1);
    last.setting.targets_of_last = Some(1);
    assert_eq!(side_names(&[example_cell(1, Some(2), 1), last]), ("targets of all workers", "depth"));
    let many: Vec<CellFigures> = (1..=16).map(|depth| example_cell(1, None, depth)).collect();
    assert_eq!(side_names(&many), ("depth", "workers"), "rows have no end");
}

#[test]
fn cells_that_differ_only_in_the_access_path_have_one_map() {
    let with = |engine: &str, mode: &str| {
        let mut cell = example_cell(1, None, 4);
        (cell.setting.engine, cell.setting.mode) = (engine.into(), Some(mode.into()));
        cell
    };
    let all = [with("io_uring", "direct"), with("libaio", "direct"), with("io_uring", "buffered")];
    assert_eq!(side_names(&all), ("access path", "depth"));
    let drawn = maps(&all.iter().collect::<Vec<_>>(), None);
    assert_eq!(drawn.len(), 1);
    assert_eq!(drawn[0].rows, ["direct, io_uring", "direct, libaio", "buffered, io_uring"]);
    assert_eq!(side_names(&all[..1]), ("workers", "depth"), "a single cell has no side");
    let mut deeper = with("libaio", "direct");
    deeper.setting.depth = 8;
    assert_eq!(side_names(&[with("io_uring", "direct"), deeper]).1, "depth", "one map for each engine");
}

#[test]
fn sizes_are_mapped_against_the_other_varied_setting() {
    let plain = |block_bytes: u32, workers: u32, depth: u32| {
        let setting = Setting { workers, ..Setting::plain("randread", block_bytes, depth) };
        CellFigures { setting, ..example_cell(1, None, 1) }
    };
    assert_eq!(side_names(&[plain(512, 1, 1)]), ("size", "depth"));
    assert_eq!(side_names(&[plain(512, 1, 1), plain(1024, 8, 1)]), ("size", "workers"));
    assert_eq!(
        side_names(&[plain(512, 1, 1), plain(1024, 8, 4)]),
        ("size", "depth"),
        "one map for each number of workers"
    );
    assert_eq!(side_names(&[plain(512, 1, 1), plain(512, 8, 1)]), ("workers", "depth"));
    let mut on = [plain(512, 1, 1), plain(1024, 1, 1)];
    on[0].setting.target = Some("/mnt/a".into());
    on[1].setting.target = Some("/mnt/b".into());
    assert_eq!(side_names(&on), ("target", "size"), "paths are rows");
    let at = |percent: u32| {
        let mut cell = plain(512, 1, 1);
        cell.setting.offset_percent = Some(percent);
        cell
    };
    assert_eq!(side_names(&[at(0), at(50)]), ("position", "depth"));
    let cells = [&at(50), &at(5)];
    assert_eq!(labels(&cells, POSITION), ["5 %", "50 %"], "sorted by position, not alphabetically");
}
