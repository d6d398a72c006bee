//! The sweep as text: who wins each work, who is as fast for less, what well-known programs lose, and the map of the rest.
//!
//! For: a report about a grid; it stands in place of the table of results. Not for: other reports.

use crate::page::{Page, half_width, mark, supported};
use crate::table::Table;
use model::finding::{Finding, Outcome, Severity};
use model::report::Report;
use model::spec::axes::{self, Scale};
use model::steadiness::Estimate;
use model::sweep::{CellFigures, Chosen, Setting, Sweep, Work};
use model::units::{show_bytes, show_count, show_ns};

const HEADINGS: [&str; 8] =
    ["", "setting", "verdict", "MB/s", "±95 %", "memory", "CPU/MiB", "against the fastest"];
/// Columns that leave where there is no room, the first of them first.
const LEAVING: [usize; 2] = [6, 5];
/// Shades of a map, from a small share of the best to all of it.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Most maps of a work: one per way through the page cache, mostly.
const MAPS: usize = 4;
/// Widest map in columns.
const MOST_COLUMNS: usize = 10;
/// Columns of the terminal that a column of a map takes, and the names of its rows.
const MAP_COLUMN: usize = 9;
const MAP_ROW: usize = 8;
/// Reasons for skipping that are told; `--skipped` and the JSON have all.
const REASONS: usize = 4;

/// One side of a map.
#[derive(Clone, Copy)]
struct Side {
    name: &'static str,
    scale: Scale,
}

const SIZE: Side = Side { name: "size", scale: axes::SIZES };
const DEPTH: Side = Side { name: "depth", scale: axes::DEPTHS };
const WORKERS: Side = Side { name: "workers", scale: axes::WORKERS };
const TARGETS: Side = Side { name: "targets", scale: axes::TARGETS };
/// Where workers get one target after another.
const QUEUES: Side = Side {
    name: "targets of all workers",
    scale: Scale {
        of: |s| Some(u32::try_from(s.queues()).unwrap_or(u32::MAX)),
        show: |v| v.to_string(),
        without: |s| Setting { workers: 1, targets: None, targets_of_last: None, ..s.clone() },
    },
};

impl Side {
    /// Where a setting is on it: on one target, where it names none.
    fn of(self, setting: &Setting) -> u32 {
        (self.scale.of)(setting).unwrap_or(1)
    }
}

pub(super) fn show(out: &mut Page, sweep: &Sweep, report: &Report, all: bool) {
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
                reference.setting.words(),
                reference.runs,
                changed(reference.change.value, reference.change.interval)
            ),
        );
    }
    skipped(out, sweep);
    let budget = sweep.budget_seconds.map_or_else(String::new, |b| format!(" of {b:.0} s"));
    let luck = if sweep.budget_seconds.is_some() {
        " Most cells were measured once, shortly, and the fastest again at the end: one above it in a map may have been lucky."
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
pub(super) fn table(sweep: &Sweep, report: &Report) -> Table {
    let mut all = Table::new(&HEADINGS, &LEAVING).aligned(1, true).aligned(2, true);
    for work in &sweep.works {
        let mut title: [String; HEADINGS.len()] = std::array::from_fn(|_| String::new());
        title[0] = format!("{}:", work.name);
        all.add(title);
        all.add_all(rows(sweep, work, report));
    }
    all
}

/// Rows of a work: the best, the cheapest where that is another one, and settings of well-known programs.
fn rows(sweep: &Sweep, work: &Work, report: &Report) -> Vec<[String; HEADINGS.len()]> {
    let only = sweep.only_cell(&work.name);
    let Some(winner) = sweep.winner.get(&work.name).or(only) else { return Vec::new() };
    let against = |estimate: &Option<Estimate>| estimate.as_ref().map(by).unwrap_or_default();
    let mut rows = vec![row(if only.is_some() { "" } else { best_word(work.chosen) }, winner, "", report)];
    if let Some(cheapest) = sweep.cheapest.get(&work.name).filter(|c| c.setting != winner.setting) {
        rows.push(row("cheapest", cheapest, &against(&work.cheapest_by_winner), report));
    }
    let of_programs = work.baselines.iter();
    rows.extend(of_programs.map(|l| row(&format!("as {}", l.name), &l.cell, &against(&l.by_winner), report)));
    rows
}

fn show_work(out: &mut Page, sweep: &Sweep, work: &Work, report: &Report, all: bool) {
    let word = if work.chosen == Chosen::CannotTell { "CANNOT TELL: " } else { "" };
    out.prose("", "  ", &format!("{}: {word}{}", work.name, work.sentence));
    let only = sweep.only_cell(&work.name);
    let Some(winner) = sweep.winner.get(&work.name).or(only) else {
        out.line("");
        return;
    };
    if sweep.cheapest.get(&work.name).is_some_and(|c| c.setting == winner.setting) {
        out.line("  No cell that costs less looks as fast.");
    }
    let mut table = Table::new(&HEADINGS, &LEAVING).aligned(1, true).aligned(2, true);
    table.add_all(rows(sweep, work, report));
    out.table_of(&table);
    if !work.baselines.is_empty() {
        let names: Vec<String> = work.baselines.iter().map(|loss| format!("as {}", loss.name)).collect();
        out.prose("  ", "    ", &format!("{}: {}.", names.join(", "), half(&work.name)));
    }
    for loss in &work.baselines {
        if let Some(name) = loss.cell.result.and_then(|at| renamed(report, at)) {
            out.prose("  ", "    ", &format!("What is called as {} here is {name}.", loss.name));
        }
    }
    for knee in &work.knees {
        out.prose("  ", "    ", &knee.sentence);
    }
    out.line("");
    if !all {
        return;
    }
    let mine: Vec<&CellFigures> = sweep.cells.iter().filter(|c| c.setting.work() == work.name).collect();
    maps(out, &mine, winner, sweep.cheapest.get(&work.name));
}

/// Which half of a copy a baseline does.
fn half(work: &str) -> &'static str {
    if work == "write" {
        "writing a file that is new and grows, the half of a copy"
    } else {
        "reading a file that is not cached once, the half of a copy"
    }
}

/// What the first row of the table is called: what was not shown to be the fastest is only the best that was seen.
fn best_word(chosen: Chosen) -> &'static str {
    if chosen == Chosen::Fastest { "fastest" } else { "best seen" }
}

/// The true name of a result, where a finding gave it another than was asked for: the sentences of those are not shown.
fn renamed(report: &Report, at: usize) -> Option<&str> {
    let result = report.results.get(at)?;
    let renames = |f: &&Finding| f.outcome == Outcome::Finding && f.severity == Some(Severity::Rename);
    let is_about = |f: &Finding| f.about.contains(&result.name);
    report.findings.iter().filter(renames).any(is_about).then_some(result.true_name.as_str())
}

fn row(name: &str, cell: &CellFigures, against: &str, report: &Report) -> [String; HEADINGS.len()] {
    let none = || "-".to_owned();
    let result = cell.result.and_then(|at| report.results.get(at));
    // The interval is that of the same rate in other units.
    let per_mib = cell.mb_per_s.zip(cell.mib_per_s).map_or(1.0, |(mb, mib)| mb / mib);
    let interval = cell.interval.map(|ends| ends.map(|end| end * per_mib));
    [
        name.to_owned(),
        format!("{} {}", cell.setting.shape(), cell.setting.way()),
        result.map_or("", |r| mark(r)).into(),
        cell.mb_per_s.map_or_else(none, |rate| supported(rate, interval)),
        half_width(cell.mib_per_s.unwrap_or(0.0), cell.interval),
        show_bytes(cell.memory_bytes),
        cell.cpu_ns_per_mib.map_or_else(none, show_ns),
        against.to_owned(),
    ]
}

/// `-2.1 % (-3.0 to -1.2)`.
fn by(estimate: &Estimate) -> String {
    changed(estimate.value - 1.0, estimate.interval.map(|v| v - 1.0))
}

fn changed(share: f64, [low, high]: [f64; 2]) -> String {
    format!("{} ({:+.1} to {:+.1})", percent(share), 100.0 * low, 100.0 * high)
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// A map for each setting of everything else, the winner's first. Ways that are measured as one have one.
fn maps(out: &mut Page, cells: &[&CellFigures], winner: &CellFigures, cheapest: Option<&CellFigures>) {
    let sides = sides(cells);
    let way = |c: &CellFigures| (sides.1.scale.without)(&(sides.0.scale.without)(&c.setting)).way();
    let mut ways: Vec<(Vec<String>, Vec<&CellFigures>)> = Vec::new();
    for name in std::iter::once(winner).chain(cells.iter().copied()).map(way) {
        if ways.iter().any(|(known, _)| known.contains(&name)) {
            continue;
        }
        let these: Vec<&CellFigures> = cells.iter().copied().filter(|c| way(c) == name).collect();
        let results = |all: &[&CellFigures]| all.iter().map(|c| c.result).collect::<Vec<_>>();
        match ways.iter_mut().find(|(_, known)| results(known) == results(&these)) {
            Some((known, _)) => known.push(name),
            None => ways.push((vec![name], these)),
        }
    }
    for (names, these) in ways.iter().take(MAPS) {
        map(out, &names.join("; "), sides, these, winner, cheapest);
    }
    if ways.len() > MAPS {
        out.line(&format!("  {} more maps are in the JSON, as cells.", ways.len() - MAPS));
        out.line("");
    }
}

/// What the rows and the columns of maps are: sizes and depths; of an access specification what was gone through.
fn sides(cells: &[&CellFigures]) -> (Side, Side) {
    if cells.iter().all(|c| c.setting.spec.is_none()) {
        return (SIZE, DEPTH);
    }
    if cells.iter().any(|c| c.setting.targets_of_last.is_some()) {
        return (QUEUES, DEPTH);
    }
    let through: Vec<Side> =
        [TARGETS, WORKERS, DEPTH].into_iter().filter(|side| axis(cells, *side).len() > 1).collect();
    let (rows, columns) = match through.as_slice() {
        [.., rows, columns] => (*rows, *columns),
        [side] if side.name != DEPTH.name => (*side, DEPTH),
        _ => (WORKERS, DEPTH),
    };
    // There is no end to rows.
    if axis(cells, columns).len() > MOST_COLUMNS { (columns, rows) } else { (rows, columns) }
}

fn map(
    out: &mut Page,
    way: &str,
    (of_rows, of_columns): (Side, Side),
    cells: &[&CellFigures],
    winner: &CellFigures,
    cheapest: Option<&CellFigures>,
) {
    let mut columns = axis(cells, of_columns);
    let rows = axis(cells, of_rows);
    if columns.len() * rows.len() < 2 {
        return;
    }
    let has = columns.len();
    columns.truncate(MOST_COLUMNS.min(out.width().saturating_sub(MAP_ROW) / MAP_COLUMN).max(1));
    let head =
        columns.iter().fold(String::new(), |head, c| head + &format!("{:>9}", (of_columns.scale.show)(*c)));
    out.line(&format!("  {way}: MB/s by {} and {}", of_rows.name, of_columns.name));
    out.line(&format!("  {:>6}{head}", ""));
    let best = winner.mb_per_s.unwrap_or(0.0);
    let is = |c: &CellFigures, other: Option<&CellFigures>| other.is_some_and(|o| o.setting == c.setting);
    for row in &rows {
        let mut line = format!("  {:>6}", (of_rows.scale.show)(*row));
        for column in &columns {
            let at =
                |c: &&&CellFigures| (of_rows.of(&c.setting), of_columns.of(&c.setting)) == (*row, *column);
            let Some(cell) = cells.iter().find(at) else {
                line += &format!("{:>9}", "");
                continue;
            };
            let mark = match cell {
                c if is(c, Some(winner)) => '*',
                c if is(c, cheapest) => '=',
                c => shade(c.mb_per_s.unwrap_or(0.0), best),
            };
            let value = cell.mb_per_s.map_or_else(|| "-".into(), show_count);
            line += &format!(" {mark}{value:>7}");
        }
        out.line(line.trim_end());
    }
    if columns.len() < has {
        out.line(&format!("  {} more columns are in the JSON, as cells", has - columns.len()));
    }
    out.line("  * best, = cheapest setting with similar speed; shades are shares of the best");
    out.line("");
}

fn axis(cells: &[&CellFigures], side: Side) -> Vec<u32> {
    let mut all: Vec<u32> = cells.iter().map(|c| side.of(&c.setting)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn shade(value: f64, best: f64) -> char {
    let share = if best > 0.0 { (value / best).clamp(0.0, 1.0) } else { 0.0 };
    SHADES.get((share * SHADES.len() as f64) as usize).or(SHADES.last()).copied().unwrap_or(' ')
}

/// What was not measured, by reason.
pub(super) fn skipped(out: &mut Page, sweep: &Sweep) {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for cell in &sweep.skipped {
        match reasons.iter_mut().find(|(why, _)| *why == cell.why) {
            Some((_, times)) => *times += 1,
            None => reasons.push((&cell.why, 1)),
        }
    }
    for (why, times) in reasons.iter().take(REASONS) {
        out.prose("  ", "    ", &format!("Skipped {times}: {why}."));
    }
    let more: usize = reasons.iter().skip(REASONS).map(|r| r.1).sum();
    if more > 0 {
        out.line(&format!("  Skipped {more} for other reasons: --skipped names them."));
    }
}

#[test]
fn shades_go_from_nothing_to_all() {
    assert_eq!((shade(0.0, 100.0), shade(50.0, 100.0), shade(100.0, 100.0)), (' ', '▒', '█'));
    assert_eq!((shade(1.0, 0.0), shade(f64::NAN, 1.0)), (' ', ' '));
    assert_eq!(percent(-0.021), "-2.1 %");
}

#[cfg(test)]
fn cell(workers: u32, targets: Option<u32>, depth: u32) -> CellFigures {
    let spec = Some("Database".into());
    let setting = Setting { workers, spec, targets, ..Setting::plain("", 4096, depth) };
    CellFigures {
        setting,
        mib_per_s: None,
        mb_per_s: None,
        iops: None,
        interval: None,
        latency_mean_ns: None,
        latency_max_ns: None,
        runs: 0,
        memory_bytes: 0,
        cpu_ns_per_mib: None,
        result: None,
    }
}

#[test]
fn the_sides_of_a_map_are_what_was_gone_through() {
    let named = |all: &[CellFigures]| {
        let (rows, columns) = sides(&all.iter().collect::<Vec<_>>());
        (rows.name, columns.name)
    };
    assert_eq!(named(&[cell(2, None, 1), cell(2, None, 8)]), ("workers", "depth"));
    assert_eq!(named(&[cell(2, Some(1), 1), cell(2, Some(2), 1)]), ("targets", "depth"));
    assert_eq!(named(&[cell(2, Some(1), 1), cell(1, Some(2), 1)]), ("targets", "workers"));
    assert_eq!(named(&[cell(2, Some(1), 1), cell(2, Some(2), 8)]), ("targets", "depth"));
    let mut last = cell(2, Some(2), 1);
    last.setting.targets_of_last = Some(1);
    assert_eq!(named(&[cell(1, Some(2), 1), last]), ("targets of all workers", "depth"));
    let many: Vec<CellFigures> = (1..=16).map(|depth| cell(1, None, depth)).collect();
    assert_eq!(named(&many), ("depth", "workers"), "rows have no end");
    let mut plain = cell(1, None, 1);
    plain.setting.spec = None;
    assert_eq!(named(&[plain]), ("size", "depth"));
}
