//! The table of results: a row per direction, and what belongs to single results below it.
//!
//! For: reports of plain jobs and profiles. Not for: studies with tables of their own.

use super::{replay, runs};
use crate::page::{Page, device_rate, half_width, percentile, supported, verdict_mark};
use crate::table::Table;
use model::finding::{Finding, Severity};
use model::report::{Figures, Latency, Measured};
use model::units::{show_ns, show_rate};

/// Change of a rate by the final sync from which it is worth a line; the JSON always has it.
const MIN_SYNC_CHANGE: f64 = 0.01;
/// Change of a rate by the final sync that is worth a line in a short report of several results.
const LARGE_SYNC_CHANGE: f64 = 0.1;
/// The maximum number of results whose true name a short report has below the table.
const MAX_TRUE_NAMES: usize = 2;
/// Headings of the table. The two last say what the topmost device saw of it.
const RESULT_HEADINGS: [&str; 12] = [
    "test",
    "verdict",
    "MB/s",
    "MiB/s",
    "IOPS",
    "±95 %",
    "p50",
    "p99",
    "p99.9",
    "depth",
    "device IOPS",
    "limited by",
];
/// Columns that leave where there is no room, the first of them first.
const RESULT_DROP_ORDER: [usize; 6] = [3, 9, 10, 8, 11, 6];

/// Cells of a row.
type ResultRow = [String; RESULT_HEADINGS.len()];

/// Prints the table and what belongs to single results. Several results have less below the table, unless `all` is wanted.
pub(super) fn show_results(out: &mut Page, results: &[Measured], shown: &[Finding], all: bool) {
    if results.is_empty() {
        return;
    }
    let rows = result_table(results);
    let is_short = results.len() > 1 && !all;
    if is_short {
        out.narrow_table(&rows);
    } else {
        out.table(&rows);
    }
    let rounded = if rows.has("~") { "; ~ = rounded" } else { "" };
    out.line(&format!("MB/s = 10^6 bytes/s; latency from submission; - = too few samples{rounded}."));
    let relabels =
        |f: &Finding, r: &Measured| f.severity == Some(Severity::Rename) && f.about.contains(&r.name);
    // In a short report, findings that are shown say it too.
    let by_finding = |r: &Measured| is_short && shown.iter().any(|f| relabels(f, r));
    let renamed: Vec<&Measured> = results.iter().filter(|r| !r.void && r.renamed && !by_finding(r)).collect();
    let most = if is_short { MAX_TRUE_NAMES } else { usize::MAX };
    for result in renamed.iter().take(most) {
        out.line(&format!("  {}, as measured: {}", result.name, result.true_name));
    }
    if renamed.len() > most {
        out.line(&format!("  {} more, as measured: see --verbose.", renamed.len() - most));
    }
    let least = if is_short { LARGE_SYNC_CHANGE } else { MIN_SYNC_CHANGE };
    for result in results.iter().filter(|r| !r.void) {
        show_open_loop(out, result);
        show_final_sync(out, result, least);
        replay::show_replay(out, result);
    }
    if let ([only], true) = (results, all) {
        show_cost(out, only);
    }
    if all {
        runs::show_runs(out, results);
        out.line("");
    }
}

/// A row per direction, the verdict on its result beside its name.
pub(super) fn result_table(results: &[Measured]) -> Table {
    let mut table = Table::new(&RESULT_HEADINGS, &RESULT_DROP_ORDER).aligned(1, true);
    table.add_all(results.iter().flat_map(result_rows));
    table
}

/// In an open loop the table's latencies are not what the storage took: the parts of them.
fn show_open_loop(out: &mut Page, result: &Measured) {
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

fn show_final_sync(out: &mut Page, result: &Measured, least: f64) {
    let (Some(with), Some(without)) = (&result.with_final_sync, &result.total) else { return };
    if with.iops > (1.0 - least) * without.iops {
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

fn show_cost(out: &mut Page, result: &Measured) {
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
fn result_rows(result: &Measured) -> Vec<ResultRow> {
    let parts: Vec<(&str, &Figures)> =
        [("read", &result.read), ("write", &result.write), ("trim", &result.trim)]
            .into_iter()
            .filter_map(|(w, f)| Some((w, f.as_ref()?)))
            .collect();
    let syncs = result.sync.as_ref().map(sync_row);
    let mut first: ResultRow = std::array::from_fn(|_| String::new());
    first[0].clone_from(&result.name);
    first[1] = verdict_mark(result);
    // Without its article the longest of these fits the width.
    if result.limiter.name != "not judged" {
        first[11] = result.limiter.name.replace("the ", "");
    }
    if result.void || parts.is_empty() {
        first[2..11].fill("-".into());
        first[2] = "none".into();
        if result.void {
            first[11].clear();
        }
        return vec![first];
    }
    first[10] = device_rate(result);
    if let [(_, only)] = parts[..] {
        fill_figures(&mut first, only);
        return [first].into_iter().chain(syncs).collect();
    }
    let mut out = Vec::new();
    if let Some(t) = &result.total {
        fill_rates(&mut first, [t.mb_per_s, t.mib_per_s, t.iops], t.iops_interval);
        out.push(first);
    }
    out.extend(parts.iter().map(|(word, figures)| direction_row(word, figures)));
    out.extend(syncs);
    out
}

/// The row of the calls that made writes stable: they move nothing, and share the depth of the writes.
fn sync_row(figures: &Figures) -> ResultRow {
    let mut cells = direction_row("sync", figures);
    for moved in [2, 3, 9] {
        cells[moved].clear();
    }
    cells
}

/// The row of a direction of several.
fn direction_row(word: &str, figures: &Figures) -> ResultRow {
    let mut cells: ResultRow = std::array::from_fn(|_| String::new());
    cells[0] = format!("  its {word}s");
    fill_figures(&mut cells, figures);
    cells
}

fn fill_figures(cells: &mut ResultRow, f: &Figures) {
    fill_rates(cells, [f.mb_per_s, f.mib_per_s, f.iops], f.iops_interval);
    for (at, rank) in [(6, "50"), (7, "99"), (8, "99.9")] {
        cells[at] = percentile(&f.latency_ns, rank);
    }
    cells[9] = show_rate(f.depth_mean);
}

/// MB/s, MiB/s and IOPS, which move together, with the interval of the last.
fn fill_rates(cells: &mut ResultRow, rates: [f64; 3], interval: Option<[f64; 2]>) {
    let [_, _, iops] = rates;
    let scaled = |to: f64| interval.filter(|_| iops > 0.0).map(|ends| ends.map(|end| end / iops * to));
    for (at, rate) in rates.into_iter().enumerate() {
        cells[at + 2] = supported(rate, scaled(rate));
    }
    cells[5] = half_width(iops, interval);
}
