//! A replay beside its original: figures of both, and why they differ.
//!
//! For: what stands below the results of `fathom run x.capture`. Not for: the figures (crate `analysis`).

use crate::page::Page;
use crate::table::Table;
use model::replay::{Compared, ReplayComparison};
use model::report::Measured;
use model::units::{show_bytes, show_change, show_count, show_ns, show_rate, show_share};

/// Headings of the table.
const REPLAY_HEADINGS: [&str; 4] = ["figure", "original", "replay", "change"];
/// From this value on a plain number is shown whole.
const NO_DECIMALS_FROM: f64 = 1000.0;

pub(super) fn show_replay(out: &mut Page, result: &Measured) {
    let Some(replay) = result.replay.as_deref().filter(|_| !result.void) else { return };
    out.line("");
    out.prose("", "  ", &heading(replay));
    out.table(&replay_table(replay));
    for why in &replay.differs {
        out.prose("- ", "  ", why);
    }
}

/// What the table is about.
pub(in crate::formats) fn heading(replay: &ReplayComparison) -> String {
    format!("{} and its replay, --pace {}, --speed {}", replay.capture, replay.pace, replay.speed)
}

/// A row for each figure.
pub(in crate::formats) fn replay_table(replay: &ReplayComparison) -> Table {
    let mut table = Table::new(&REPLAY_HEADINGS, &[]).aligned(3, false);
    table.add_all(replay.figures.iter().map(|figure| {
        let shown =
            |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format_compared(figure, value));
        let change = figure.change.map_or_else(|| "-".into(), |change| show_change(1.0 + change));
        [figure.name.clone(), shown(figure.original), shown(figure.replay), change]
    }));
    table
}

fn format_compared(figure: &Compared, value: f64) -> String {
    match figure.unit.as_str() {
        "ns" => show_ns(value),
        "bytes" => show_bytes(value.round() as u64),
        "share" => show_share(value),
        _ if value >= NO_DECIMALS_FROM => show_count(value),
        _ => show_rate(value),
    }
}
