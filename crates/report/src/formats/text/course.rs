//! The course of a result's runs as a compact table: ours and the device's, second by second.
//!
//! For: `--explain` of the text. Not for: machines, which find it in the JSON; nor conclusions.

use comfy_table::{CellAlignment, Table, presets::NOTHING};
use model::report::{DeviceSecond, DisturbedRun, Measured, Second};
use model::units::{show_ns, show_rate};

const HEADINGS: [&str; 9] =
    ["run", "second", "IOPS", "MB/s", "p99 <=", "device IOPS", "device MB/s", "device latency", "in flight"];

/// The table with its heading, then the disturbed attempts, an empty line last; nothing where neither was kept.
pub(super) fn lines(result: &Measured) -> Vec<String> {
    let mut out = table(result);
    if !result.disturbed.is_empty() {
        out.push(format!("Runs of {} that others disturbed", result.name));
        out.extend(result.disturbed.iter().map(|d| format!("  {}", attempt(d))));
    }
    if !out.is_empty() {
        out.push(String::new());
    }
    out
}

/// `run 2, attempt 1: 9,412 IOPS, left out: 240 MB/s of others on vda (1,920 requests/s)`.
fn attempt(of: &DisturbedRun) -> String {
    let (run, attempt) = (of.run.saturating_add(1), of.attempt.saturating_add(1));
    let why = of.why.as_deref().unwrap_or("measured again with its round");
    let word = if of.counts { "counts" } else { "left out" };
    format!("run {run}, attempt {attempt}: {} IOPS, {word}: {why}", show_rate(of.iops))
}

fn table(result: &Measured) -> Vec<String> {
    if result.series.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(HEADINGS);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        column.set_cell_alignment(CellAlignment::Right);
    }
    for second in &result.series {
        table.add_row(row(second));
    }
    let mut out = vec![format!("Course of {}", result.name)];
    out.extend(table.to_string().lines().map(|l| format!("  {}", l.trim_end())));
    out
}

fn row(second: &Second) -> [String; HEADINGS.len()] {
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
