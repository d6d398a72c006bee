//! The columns of devices that are watched, named as iostat names them.
//!
//! For: which columns a width has room for, and figures that never take more than theirs. Not for: what the figures are.

use model::watch::DeviceInterval;

/// Columns of a device's name.
pub(super) const NAME: usize = 12;
/// Bytes of a KiB.
const KIB: f64 = 1024.0;

/// A column of figures.
pub(super) struct Column {
    /// What it is called.
    pub(super) name: &'static str,
    /// Its unit; empty where the name says it.
    pub(super) unit: &'static str,
    /// How wide it is, the gap before it included.
    pub(super) width: usize,
    /// How soon it is shown where there is little room: the lower the sooner.
    rank: u8,
    /// Its figure; `None` where that is not known.
    pub(super) value: fn(&DeviceInterval) -> Option<f64>,
}

const fn column(
    name: &'static str,
    unit: &'static str,
    width: usize,
    rank: u8,
    value: fn(&DeviceInterval) -> Option<f64>,
) -> Column {
    Column { name, unit, width, rank, value }
}

/// All of them, from left to right.
const COLUMNS: [Column; 18] = [
    column("r/s", "", 7, 0, |d| Some(d.read.per_s)),
    column("rMB/s", "", 7, 1, |d| Some(d.read.mb_per_s)),
    column("rareq", "KiB", 6, 7, |d| d.read.request_bytes.map(|b| b / KIB)),
    column("r_await", "ms", 8, 4, |d| d.read.await_ms),
    column("rmrg", "%", 5, 12, |d| d.read.merged_percent),
    column("w/s", "", 7, 2, |d| Some(d.write.per_s)),
    column("wMB/s", "", 7, 3, |d| Some(d.write.mb_per_s)),
    column("wareq", "KiB", 6, 8, |d| d.write.request_bytes.map(|b| b / KIB)),
    column("w_await", "ms", 8, 5, |d| d.write.await_ms),
    column("wmrg", "%", 5, 13, |d| d.write.merged_percent),
    column("d/s", "", 6, 10, |d| Some(d.discard?.per_s)),
    column("dMB/s", "", 7, 11, |d| Some(d.discard?.mb_per_s)),
    column("dareq", "KiB", 6, 16, |d| d.discard?.request_bytes.map(|b| b / KIB)),
    column("d_await", "ms", 8, 15, |d| d.discard?.await_ms),
    column("dmrg", "%", 5, 17, |d| d.discard?.merged_percent),
    column("f/s", "", 5, 9, |d| Some(d.flush?.per_s)),
    column("f_await", "ms", 8, 14, |d| d.flush?.await_ms),
    column("aqu-sz", "", 7, 6, |d| Some(d.depth_mean)),
];

/// Those that a width has room for, one after another by rank: none is shown where one before it is not.
pub(super) fn shown(width: usize) -> Vec<&'static Column> {
    let mut by_rank: Vec<&Column> = COLUMNS.iter().collect();
    by_rank.sort_by_key(|c| c.rank);
    let mut used = NAME;
    let fits = |column: &&&Column| {
        used += column.width;
        used <= width
    };
    let most = by_rank.iter().take_while(fits).map(|c| c.rank).max();
    COLUMNS.iter().filter(|c| most.is_some_and(|most| c.rank <= most)).collect()
}

/// A figure in no more letters than there is room for, as finely as that goes: `12.34`, `1234.5`, `1.2M`.
pub(super) fn figure(value: f64, room: usize) -> String {
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
    let at = |room| [0.0, 9.994, 99.994, 1234.56, 99_999.4, 1_234_567.0, 9.9e11].map(|v| figure(v, room));
    assert_eq!(at(6), ["0.00", "9.99", "99.99", "1234.6", "99999", "1235k", "990.0G"]);
    assert_eq!(at(5), ["0.00", "9.99", "99.99", "1235", "99999", "1235k", "990G"]);
    assert_eq!(at(4), ["0.00", "9.99", "100", "1235", "100k", "1.2M", "990G"]);
    for room in 4..8 {
        assert!((0..18).all(|e| figure(10_f64.powi(e) * 9.999, room).len() <= room), "{room}");
    }
}
