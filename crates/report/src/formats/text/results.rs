//! The table of results: a row per direction, and what belongs to single results below it.
//!
//! For: reports of plain jobs and profiles. Not for: studies with tables of their own.

use super::runs;
use crate::page::{Page, device, half_width, percentile, ruled};
use model::report::{Figures, Latency, Measured};
use model::units::{show_ns, show_rate};

/// Change of a rate by the final sync from which it is worth a line; the JSON always has it.
const WORTH_SAYING: f64 = 0.01;
/// Headings of the table. The two last say what the topmost device saw of it.
const HEADINGS: [&str; 11] =
    ["test", "MB/s", "MiB/s", "IOPS", "±95 %", "p50", "p99", "p99.9", "depth", "device IOPS", "limited by"];

pub(super) fn show(out: &mut Page, results: &[Measured]) {
    if results.is_empty() {
        return;
    }
    let mut table = ruled(&HEADINGS);
    for row in results.iter().flat_map(rows) {
        table.add_row(row);
    }
    out.table_of(&table);
    out.line("MB/s = 10^6 bytes per second, MiB/s = 2^20; latencies from submission to completion; - = not enough samples.");
    for result in results.iter().filter(|r| !r.void) {
        open_loop(out, result);
        final_sync(out, result);
    }
    if let [only] = results {
        cost(out, only);
    }
    for result in results.iter().filter(|r| !r.void && r.renamed) {
        out.line(&format!("  {} is {}", result.name, result.true_name));
    }
    runs::show(out, results);
    out.line("");
}

/// In an open loop the table's latencies are not what the storage took: the parts of them.
fn open_loop(out: &mut Page, result: &Measured) {
    for (word, figures) in [("reads", &result.read), ("writes", &result.write), ("trims", &result.trim)] {
        let Some(figures) = figures else { continue };
        let (Some(service), Some(late)) = (&figures.service_ns, &figures.lateness_ns) else { continue };
        let text = format!(
            "{}, {word}: open loop, so latencies count from the intended start; service {}; lateness of the submission {}.",
            result.name,
            median_and_tail(service),
            median_and_tail(late)
        );
        out.prose("  ", "    ", &text);
    }
}

fn final_sync(out: &mut Page, result: &Measured) {
    let (Some(with), Some(without)) = (&result.with_final_sync, &result.total) else { return };
    if with.iops > (1.0 - WORTH_SAYING) * without.iops {
        return;
    }
    let text = format!(
        "{}: with the sync after the last write ({}) in the time {} MB/s, {} IOPS.",
        result.name,
        show_ns(with.sync_ns),
        show_rate(with.mb_per_s),
        show_rate(with.iops)
    );
    out.prose("  ", "    ", &text);
}

fn cost(out: &mut Page, result: &Measured) {
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

/// `p50 180 us, p99 1.20 ms`.
fn median_and_tail(latency: &Latency) -> String {
    format!("p50 {}, p99 {}", percentile(latency, "50"), percentile(latency, "99"))
}

/// A row per direction; a mix has a row for both together first.
fn rows(result: &Measured) -> Vec<[String; HEADINGS.len()]> {
    let parts: Vec<(&str, &Figures)> =
        [("read", &result.read), ("write", &result.write), ("trim", &result.trim)]
            .into_iter()
            .filter_map(|(w, f)| Some((w, f.as_ref()?)))
            .collect();
    let syncs = result.sync.as_ref().map(sync_row);
    // Without its article the longest of these fits the width.
    let limit = result.limiter.name.replace("the ", "");
    if result.void || parts.is_empty() {
        let mut row: [String; HEADINGS.len()] = std::array::from_fn(|_| "-".into());
        row[0].clone_from(&result.name);
        row[1] = if result.void { "void".into() } else { "none".into() };
        row[HEADINGS.len() - 1] = if result.void { String::new() } else { limit };
        return vec![row];
    }
    if let [(_, only)] = parts[..] {
        return [row(&result.name, only, device(result), limit)].into_iter().chain(syncs).collect();
    }
    let mut out = Vec::new();
    if let Some(t) = &result.total {
        let mut total: [String; HEADINGS.len()] = std::array::from_fn(|_| String::new());
        total[0].clone_from(&result.name);
        total[1] = show_rate(t.mb_per_s);
        total[2] = show_rate(t.mib_per_s);
        total[3] = show_rate(t.iops);
        total[4] = half_width(t.iops, t.iops_interval);
        total[9] = device(result);
        total[10] = limit;
        out.push(total);
    }
    out.extend(
        parts
            .iter()
            .map(|(word, figures)| row(&format!("  {word}s of it"), figures, String::new(), String::new())),
    );
    out.extend(syncs);
    out
}

/// The row of the calls that made writes stable: they move nothing, and share the depth of the writes.
fn sync_row(figures: &Figures) -> [String; HEADINGS.len()] {
    let mut cells = row("  syncs of it", figures, String::new(), String::new());
    for moved in [1, 2, 8] {
        cells[moved].clear();
    }
    cells
}

fn row(name: &str, f: &Figures, device: String, limit: String) -> [String; HEADINGS.len()] {
    let at = |p: &str| percentile(&f.latency_ns, p);
    [
        name.to_owned(),
        show_rate(f.mb_per_s),
        show_rate(f.mib_per_s),
        show_rate(f.iops),
        half_width(f.iops, f.iops_interval),
        at("50"),
        at("99"),
        at("99.9"),
        show_rate(f.depth_mean),
        device,
        limit,
    ]
}
