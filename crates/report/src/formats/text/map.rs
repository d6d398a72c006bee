//! Maps: one number of every cell of a sweep, by two of the things that its cells differ in.
//!
//! For: which two those are, shades, and bars where there is but one. Not for: what won ([`super::sweep`]).

use crate::page::Page;
use crate::prose::display_width;
use model::measure::Measure;
use model::sweep::{CellFigures, Setting};
use model::units::show_block;

/// Shades of a map, from a small share of the best to all of it.
const MAP_SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Most maps of a work: one per way through the page cache, mostly.
const MAX_MAPS: usize = 4;
/// Widest map in columns.
const MAX_MAP_COLUMNS: usize = 10;
/// Least columns of the terminal for a value, and for the names of rows.
const VALUE_WIDTH: usize = 7;
const ROW_NAME_WIDTH: usize = 6;
/// Longest bar, in columns of the terminal.
const BAR_WIDTH: usize = 40;

/// Cells that have a mark of their own.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks<'s> {
    /// The one that has won.
    pub(super) best: Option<&'s Setting>,
    /// The cheapest that is as good.
    pub(super) cheapest: Option<&'s Setting>,
}

/// One side of a map.
#[derive(Clone, Copy)]
pub(in crate::formats) struct Side {
    name: &'static str,
    /// Where a setting is on it, as it is shown.
    label: fn(&Setting) -> String,
    /// In which order; of equals the one that comes first in the grid.
    rank: fn(&Setting) -> u64,
    /// The setting with nothing said of it.
    without: fn(&Setting) -> Setting,
}

impl Side {
    /// What it is: `depth`.
    pub(in crate::formats) fn name(self) -> &'static str {
        self.name
    }

    /// Where a setting is on it, as it is shown.
    pub(in crate::formats) fn label_of(self, setting: &Setting) -> String {
        (self.label)(setting)
    }

    /// The setting with nothing said of it.
    pub(in crate::formats) fn left_open(self, setting: &Setting) -> Setting {
        (self.without)(setting)
    }
}

const SIZE: Side = Side {
    name: "size",
    label: |s| show_block(u64::from(s.block_bytes)),
    rank: |s| u64::from(s.block_bytes),
    without: |s| Setting { block_bytes: 0, ..s.clone() },
};
const DEPTH: Side = Side {
    name: "depth",
    label: |s| s.depth.to_string(),
    rank: |s| u64::from(s.depth),
    without: |s| Setting { depth: 0, ..s.clone() },
};
const WORKERS: Side = Side {
    name: "workers",
    label: |s| s.workers.to_string(),
    rank: |s| u64::from(s.workers),
    without: |s| Setting { workers: 1, ..s.clone() },
};
/// On one target, where a setting names none.
const TARGETS: Side = Side {
    name: "targets",
    label: |s| s.targets.unwrap_or(1).to_string(),
    rank: |s| u64::from(s.targets.unwrap_or(1)),
    without: |s| Setting { targets: None, ..s.clone() },
};
/// Where workers get one target after another.
const QUEUES: Side = Side {
    name: "targets of all workers",
    label: |s| s.queues().to_string(),
    rank: Setting::queues,
    without: |s| Setting { workers: 1, targets: None, targets_of_last: None, ..s.clone() },
};
const TARGET: Side = Side {
    name: "target",
    label: |s| s.target.clone().unwrap_or_default(),
    rank: |_| 0,
    without: |s| Setting { target: None, ..s.clone() },
};
const POSITION: Side = Side {
    name: "position",
    label: |s| s.position().unwrap_or_default(),
    rank: |s| s.offset_percent.map_or(s.offset_bytes.unwrap_or(0), u64::from),
    without: Setting::at_no_position,
};

/// A map for each setting of everything else, the best one's first. Ways that are measured as one have one.
pub(super) fn show_maps(out: &mut Page, cells: &[&CellFigures], by: Measure, marks: Marks) {
    let sides = sides(cells);
    let way = |s: &Setting| (sides.1.without)(&(sides.0.without)(s)).way();
    let mut ways: Vec<(Vec<String>, Vec<&CellFigures>)> = Vec::new();
    for name in marks.best.into_iter().chain(cells.iter().map(|c| &c.setting)).map(way) {
        if ways.iter().any(|(known, _)| known.contains(&name)) {
            continue;
        }
        let these: Vec<&CellFigures> = cells.iter().copied().filter(|c| way(&c.setting) == name).collect();
        let results = |all: &[&CellFigures]| all.iter().map(|c| c.result).collect::<Vec<_>>();
        match ways.iter_mut().find(|(_, known)| results(known) == results(&these)) {
            Some((known, _)) => known.push(name),
            None => ways.push((vec![name], these)),
        }
    }
    for (names, these) in ways.iter().take(MAX_MAPS) {
        Map::from_cells(these, sides, by, marks).show(out, &names.join("; "));
    }
    if ways.len() > MAX_MAPS {
        out.line(&format!("  {} more maps are in the JSON, as cells.", ways.len() - MAX_MAPS));
        out.line("");
    }
}

/// What the rows and the columns are: what the cells differ in; sizes and depths where that is nothing else.
pub(in crate::formats) fn sides(cells: &[&CellFigures]) -> (Side, Side) {
    let differ = |side: &Side| labels(cells, *side).len() > 1;
    if cells.iter().any(|c| c.setting.targets_of_last.is_some()) {
        return (QUEUES, DEPTH);
    }
    // An access specification draws its sizes.
    let plain = cells.iter().all(|c| c.setting.spec.is_none());
    let sizes = Some(SIZE).filter(|_| plain);
    let all = sizes.into_iter().chain([TARGET, POSITION, TARGETS, WORKERS, DEPTH]);
    let through: Vec<Side> = all.filter(differ).collect();
    let (rows, columns) = match through.as_slice() {
        [first, .., last] if first.name == SIZE.name => (*first, *last),
        [.., rows, columns] => (*rows, *columns),
        [side] if side.name != DEPTH.name => (*side, DEPTH),
        _ => (if plain { SIZE } else { WORKERS }, DEPTH),
    };
    // There is no end to rows, and they have room for a name.
    let long = labels(cells, columns).len() > MAX_MAP_COLUMNS || columns.name == TARGET.name;
    if long { (columns, rows) } else { (rows, columns) }
}

/// Where cells are on a side, each once.
pub(in crate::formats) fn labels(cells: &[&CellFigures], side: Side) -> Vec<String> {
    let mut all: Vec<&Setting> = cells.iter().map(|c| &c.setting).collect();
    all.sort_by_key(|s| (side.rank)(s));
    let mut out: Vec<String> = Vec::new();
    for label in all.into_iter().map(side.label) {
        if !out.contains(&label) {
            out.push(label);
        }
    }
    out
}

/// A map that is being drawn.
struct Map<'c> {
    cells: &'c [&'c CellFigures],
    rows: Side,
    columns: Side,
    by: Measure,
    best: f64,
    marks: Marks<'c>,
}

impl<'c> Map<'c> {
    fn from_cells(
        cells: &'c [&'c CellFigures],
        (rows, columns): (Side, Side),
        by: Measure,
        marks: Marks<'c>,
    ) -> Self {
        let values = || cells.iter().filter_map(|c| c.value(by)).filter(|v| v.is_finite());
        let best = if by.is_latency() {
            values().fold(f64::INFINITY, f64::min)
        } else {
            values().fold(0.0, f64::max)
        };
        Self { cells, rows, columns, by, best, marks }
    }

    fn show(&self, out: &mut Page, way: &str) {
        let (rows, columns) = (labels(self.cells, self.rows), labels(self.cells, self.columns));
        if columns.len() * rows.len() < 2 {
            return;
        }
        let title = format!("  {way}: {} by {} and {}", self.by.heading(), self.rows.name, self.columns.name);
        let drawn = if columns.len() == 1 {
            out.line(&format!("  {way}: {} by {}", self.by.heading(), self.rows.name));
            self.bars(out, &rows);
            "bars"
        } else {
            out.line(&title);
            self.grid(out, &rows, columns);
            "shades"
        };
        let marks = match (self.marks.best, self.marks.cheapest) {
            (Some(_), Some(_)) => "* best, = cheapest setting with similar speed; ",
            (Some(_), None) => "* best; ",
            (None, _) => "",
        };
        out.line(&format!("  {marks}{drawn} are shares of the best"));
        out.line("");
    }

    /// One value a row, and how long it is beside the best.
    fn bars(&self, out: &mut Page, rows: &[String]) {
        let name = row_name_width(rows);
        let value = self.value_columns();
        let room = out.width().saturating_sub(name + value + 5).min(BAR_WIDTH);
        for row in rows {
            let cell = self.cells.iter().find(|c| (self.rows.label)(&c.setting) == *row);
            let bar = "█".repeat((self.share(cell) * room as f64).round() as usize);
            let (mark, shown) = (self.mark(cell, ' '), self.shown(cell));
            out.line(format!("  {row:>name$} {mark}{shown:>value$} {bar}").trim_end());
        }
    }

    fn grid(&self, out: &mut Page, rows: &[String], mut columns: Vec<String>) {
        let name = row_name_width(rows);
        let widest = columns.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let value = self.value_columns().max(widest);
        let has = columns.len();
        let room = out.width().saturating_sub(name + 2) / (value + 2);
        columns.truncate(MAX_MAP_COLUMNS.min(room).max(1));
        let width = value + 2;
        let head = columns.iter().fold(String::new(), |head, label| head + &format!("{label:>width$}"));
        out.line(&format!("  {:>name$}{head}", ""));
        for row in rows {
            let mut line = format!("  {row:>name$}");
            for column in &columns {
                let at = |c: &&&CellFigures| {
                    (self.rows.label)(&c.setting) == *row && (self.columns.label)(&c.setting) == *column
                };
                let Some(cell) = self.cells.iter().find(at) else {
                    line += &" ".repeat(width);
                    continue;
                };
                let mark = self.mark(Some(cell), map_shade(self.share(Some(cell))));
                line += &format!(" {mark}{:>value$}", self.shown(Some(cell)));
            }
            out.line(line.trim_end());
        }
        if columns.len() < has {
            out.line(&format!("  {} more columns are in the JSON, as cells", has - columns.len()));
        }
    }

    /// Its value by the best, or of a latency the best by it.
    fn share(&self, cell: Option<&&CellFigures>) -> f64 {
        let value = cell.and_then(|c| c.value(self.by)).unwrap_or(0.0);
        let share = if self.by.is_latency() { self.best / value } else { value / self.best };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    fn mark(&self, cell: Option<&&CellFigures>, other: char) -> char {
        let is = |marked: Option<&Setting>| cell.is_some_and(|c| marked == Some(&c.setting));
        match () {
            () if is(self.marks.best) => '*',
            () if is(self.marks.cheapest) => '=',
            () => other,
        }
    }

    fn shown(&self, cell: Option<&&CellFigures>) -> String {
        cell.and_then(|c| c.value(self.by)).map_or_else(|| "-".into(), |v| self.by.show_short(v))
    }

    fn value_columns(&self) -> usize {
        let widths = self.cells.iter().map(|c| self.shown(Some(c)).chars().count());
        widths.max().unwrap_or(0).max(VALUE_WIDTH)
    }
}

/// Columns of the terminal that the names of rows take.
fn row_name_width(rows: &[String]) -> usize {
    rows.iter().map(|row| display_width(row)).max().unwrap_or(0).max(ROW_NAME_WIDTH)
}

fn map_shade(share: f64) -> char {
    MAP_SHADES.get((share * MAP_SHADES.len() as f64) as usize).or(MAP_SHADES.last()).copied().unwrap_or(' ')
}

#[test]
fn shades_go_from_nothing_to_all() {
    assert_eq!((map_shade(0.0), map_shade(0.5), map_shade(1.0)), (' ', '▒', '█'));
    let fast = with_rate(example_cell(1, None, 1), Some(100.0));
    let (none, odd) = (with_rate(fast.clone(), None), with_rate(fast.clone(), Some(f64::NAN)));
    let cells = [&fast, &none, &odd];
    let map = Map::from_cells(&cells, (SIZE, DEPTH), Measure::Bandwidth, Marks::default());
    assert!((map.share(Some(&cells[0])) - 1.0).abs() < 1e-9);
    assert!(map.share(Some(&cells[1])).abs() < 1e-9 && map.share(Some(&cells[2])).abs() < 1e-9);
}

#[cfg(test)]
fn with_rate(cell: CellFigures, mb_per_s: Option<f64>) -> CellFigures {
    CellFigures { mb_per_s, ..cell }
}

#[cfg(test)]
fn example_cell(workers: u32, targets: Option<u32>, depth: u32) -> CellFigures {
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
    let (rows, columns) = sides(&all.iter().collect::<Vec<_>>());
    (rows.name, columns.name)
}

#[test]
fn the_sides_of_a_map_are_what_was_gone_through() {
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
fn sizes_stand_against_whatever_else_was_gone_through() {
    let plain = |block_bytes: u32, workers: u32, depth: u32| {
        let setting = Setting { workers, ..Setting::plain("randread", block_bytes, depth) };
        CellFigures { setting, ..example_cell(1, None, 1) }
    };
    assert_eq!(side_names(&[plain(512, 1, 1)]), ("size", "depth"));
    assert_eq!(side_names(&[plain(512, 1, 1), plain(1024, 8, 1)]), ("size", "workers"));
    assert_eq!(
        side_names(&[plain(512, 1, 1), plain(1024, 8, 4)]),
        ("size", "depth"),
        "one map for each other number"
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
    assert_eq!(labels(&cells, POSITION), ["5 %", "50 %"], "by where they are and not by letters");
}

#[test]
fn the_title_of_a_map_says_each_way_once() {
    let of = |mode: &str, block_bytes: u32, result: usize| {
        let setting = Setting { mode: Some(mode.into()), ..Setting::plain("read", block_bytes, 1) };
        CellFigures { setting, mib_per_s: Some(1.0), result: Some(result), ..example_cell(1, None, 1) }
    };
    // Twenty sizes of two ways that are measured as one.
    let all: Vec<CellFigures> = (0..20)
        .flat_map(|at| ["unbuffered", "unbuffered-sequential"].map(|mode| of(mode, 512 << at, at as usize)))
        .collect();
    let mut page = Page::new(crate::Style { width: 200, ..crate::Style::default() });
    show_maps(&mut page, &all.iter().collect::<Vec<_>>(), Measure::Bandwidth, Marks::default());
    let mut text = Vec::new();
    page.write(&mut text).unwrap_or_else(|e| panic!("{e}"));
    let text = String::from_utf8_lossy(&text);
    let titles = text.lines().filter(|line| line.contains(" by size")).count();
    assert_eq!((titles, text.matches("unbuffered-sequential").count()), (1, 1), "{text}");
}
