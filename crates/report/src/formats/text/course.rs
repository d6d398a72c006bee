//! The course of a result's runs as a compact table: ours and the device's, second by second.
//!
//! For: `--explain` of the text. Not for: machines, which find it in the JSON; nor conclusions.

use crate::page::Page;
use crate::table::Table;
use model::report::{DeviceSecond, DisturbedRun, Measured, Second};
use model::units::{show_ns, show_rate};

const SECOND_HEADINGS: [&str; 9] =
    ["run", "second", "IOPS", "MB/s", "p99 <=", "device IOPS", "device MB/s", "device latency", "in flight"];
/// Columns that leave where there is no room, the first of them first.
const SECOND_DROP_ORDER: [usize; 6] = [6, 8, 7, 5, 3, 4];

/// The table with its heading, then the disturbed attempts, an empty line last; nothing where neither was kept.
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
        out.line(&format!("Runs of {} that others disturbed", result.name));
        result.disturbed.iter().for_each(|d| out.prose("  ", "    ", &describe_disturbed_attempt(d)));
    }
    if !result.series.is_empty() || !result.disturbed.is_empty() {
        out.line("");
    }
}

/// `run 2, attempt 1: 9,412 IOPS, left out: 240 MB/s of others on vda (1,920 requests/s)`.
fn describe_disturbed_attempt(of: &DisturbedRun) -> String {
    let (run, attempt) = (of.run.saturating_add(1), of.attempt.saturating_add(1));
    let why = of.why.as_deref().unwrap_or("repeated with its round");
    let word = if of.counts { "counts" } else { "left out" };
    format!("run {run}, attempt {attempt}: {} IOPS, {word}: {why}", show_rate(of.iops))
}

fn second_row(second: &Second) -> [String; SECOND_HEADINGS.len()] {
    let none = || "-".to_owned();
    let device = |of: fn(&DeviceSecond) -> String| second.device.as_ref().map_or_else(none, of);
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
