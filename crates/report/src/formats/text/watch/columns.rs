//! The columns of devices that are watched, named as iostat names them: which of them a width has room for, and figures that never take
//! more room than their column has.

use model::watch::{DeviceInterval, RateUnit, Requests};

/// Columns of a device's name.
pub(super) const DEVICE_NAME_WIDTH: usize = 11;
/// Bytes of a KiB.
const KIB: f64 = 1024.0;

/// A column of figures.
pub(super) struct Column {
    /// Its name in iostat, without the unit if it is a throughput.
    name: &'static str,
    /// Its unit; empty if the name says it.
    pub(super) unit: &'static str,
    /// Its width, the gap before it included.
    pub(super) width: usize,
    /// Its priority if there is little room: 0 comes first.
    rank: u8,
    value: ColumnValue,
}

/// How a column gets its figure; `None` if that is not known.
enum ColumnValue {
    Figure(fn(&DeviceInterval) -> Option<f64>),
    Throughput(fn(&DeviceInterval) -> Option<&Requests>),
}

impl Column {
    /// Its name: `r/s`, `rMB/s`.
    pub(super) fn heading(&self, unit: RateUnit) -> String {
        match self.value {
            ColumnValue::Figure(_) => self.name.to_owned(),
            ColumnValue::Throughput(_) => format!("{}{}", self.name, unit.symbol()),
        }
    }

    /// Its figure; `None` if that is not known.
    pub(super) fn value(&self, figures: &DeviceInterval, unit: RateUnit) -> Option<f64> {
        match self.value {
            ColumnValue::Figure(value) => value(figures),
            ColumnValue::Throughput(requests) => requests(figures).map(|r| unit.throughput(r)),
        }
    }
}

const fn column(
    name: &'static str,
    unit: &'static str,
    width: usize,
    rank: u8,
    value: fn(&DeviceInterval) -> Option<f64>,
) -> Column {
    Column { name, unit, width, rank, value: ColumnValue::Figure(value) }
}

const fn throughput(
    name: &'static str,
    rank: u8,
    requests: fn(&DeviceInterval) -> Option<&Requests>,
) -> Column {
    Column { name, unit: "", width: 7, rank, value: ColumnValue::Throughput(requests) }
}

/// The name of `%util`, which needs a note.
pub(super) const UTIL_HEADING: &str = "%util";

/// All of them, from left to right.
const COLUMNS: [Column; 22] = [
    column("r/s", "", 7, 0, |d| Some(d.read.per_s)),
    throughput("r", 1, |d| Some(&d.read)),
    column("rrqm/s", "", 7, 11, |d| Some(d.read.merged_per_s)),
    column("rmrg", "%", 5, 16, |d| d.read.merged_percent),
    column("r_await", "ms", 8, 4, |d| d.read.await_ms),
    column("rareq", "KiB", 6, 7, |d| d.read.request_bytes.map(|b| b / KIB)),
    column("w/s", "", 7, 2, |d| Some(d.write.per_s)),
    throughput("w", 3, |d| Some(&d.write)),
    column("wrqm/s", "", 7, 12, |d| Some(d.write.merged_per_s)),
    column("wmrg", "%", 5, 17, |d| d.write.merged_percent),
    column("w_await", "ms", 8, 5, |d| d.write.await_ms),
    column("wareq", "KiB", 6, 8, |d| d.write.request_bytes.map(|b| b / KIB)),
    column("d/s", "", 6, 13, |d| Some(d.discard?.per_s)),
    throughput("d", 14, |d| d.discard.as_ref()),
    column("drqm/s", "", 7, 21, |d| Some(d.discard?.merged_per_s)),
    column("dmrg", "%", 5, 20, |d| d.discard?.merged_percent),
    column("d_await", "ms", 8, 18, |d| d.discard?.await_ms),
    column("dareq", "KiB", 6, 19, |d| d.discard?.request_bytes.map(|b| b / KIB)),
    column("f/s", "", 5, 10, |d| Some(d.flush?.per_s)),
    column("f_await", "ms", 8, 15, |d| d.flush?.await_ms),
    column("aqu-sz", "", 7, 6, |d| Some(d.depth_mean)),
    column(UTIL_HEADING, "", 6, 9, |d| Some(d.util_percent)),
];

/// Returns the columns that a width has room for, by rank: a column is left out if one with a lower rank is.
pub(super) fn columns_for_width(width: usize) -> Vec<&'static Column> {
    let mut by_rank: Vec<&Column> = COLUMNS.iter().collect();
    by_rank.sort_by_key(|c| c.rank);
    let mut used = DEVICE_NAME_WIDTH;
    let fits = |column: &&&Column| {
        used += column.width;
        used <= width
    };
    let most = by_rank.iter().take_while(fits).map(|c| c.rank).max();
    COLUMNS.iter().filter(|c| most.is_some_and(|most| c.rank <= most)).collect()
}

/// Returns all columns, in as many tables as the width needs.
pub(super) fn column_tables(width: usize) -> Vec<Vec<&'static Column>> {
    let mut tables: Vec<Vec<&Column>> = Vec::new();
    let mut used = usize::MAX;
    for column in &COLUMNS {
        if used.saturating_add(column.width) > width {
            tables.push(Vec::new());
            used = DEVICE_NAME_WIDTH;
        }
        used += column.width;
        if let Some(table) = tables.last_mut() {
            table.push(column);
        }
    }
    tables
}

/// A figure in no more letters than there is room for, as finely as that goes: `12.34`, `1234.5`, `1.2M`.
pub(super) fn fit_figure(value: f64, room: usize) -> String {
    const LARGER: [(f64, &str); 5] = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
    for (scale, suffix) in LARGER {
        for decimals in [2, 1, 0] {
            let text = format!("{:.decimals$}{suffix}", value / scale);
            if text.len() <= room {
                return text;
            }
        }
    }
    // No counter comes so far.
    ">".repeat(room.min(1))
}

#[test]
fn figures_never_take_more_than_their_room() {
    let at = |room| [0.0, 9.994, 99.994, 1234.56, 99_999.4, 1_234_567.0, 9.9e11].map(|v| fit_figure(v, room));
    assert_eq!(at(6), ["0.00", "9.99", "99.99", "1234.6", "99999", "1235k", "990.0G"]);
    assert_eq!(at(5), ["0.00", "9.99", "99.99", "1235", "99999", "1235k", "990G"]);
    assert_eq!(at(4), ["0.00", "9.99", "100", "1235", "100k", "1.2M", "990G"]);
    for room in 4..8 {
        assert!((0..18).all(|e| fit_figure(10_f64.powi(e) * 9.999, room).len() <= room), "{room}");
    }
}

#[test]
fn all_columns_are_in_tables_that_fit() {
    for width in [40, 80, 120, 200] {
        let tables = column_tables(width);
        assert_eq!(tables.iter().map(Vec::len).sum::<usize>(), COLUMNS.len());
        let widths: Vec<usize> =
            tables.iter().map(|t| DEVICE_NAME_WIDTH + t.iter().map(|c| c.width).sum::<usize>()).collect();
        assert!(widths.iter().all(|w| *w <= width), "{width}: {widths:?}");
    }
    assert_eq!((column_tables(80).len(), column_tables(200).len()), (3, 1));
}
