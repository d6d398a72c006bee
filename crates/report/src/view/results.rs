//! Results of jobs: the table with a row for each direction, the hosts, and a replay next to its original.

use crate::page::{Table, device_rate, half_width, percentile, supported, verdict_mark};
use model::fleet::{Fairness, FleetFigures, HostFigures, HostRate};
use model::replay::{Compared, ReplayComparison};
use model::report::{Figures, Measured, Verdict};
use model::units::{show_bytes, show_change, show_count, show_ns, show_rate, show_share};
use std::collections::BTreeMap;

/// Headings of the table.
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

/// Columns to drop if the width is too small, in this order.
const RESULT_DROP_ORDER: [usize; 6] = [3, 9, 10, 8, 11, 6];

/// Cells of a row.
type ResultRow = [String; RESULT_HEADINGS.len()];

/// Returns a row for each direction, with the verdict on its result next to its name.
pub(crate) fn result_table(results: &[Measured]) -> Table {
    let mut table = Table::new(&RESULT_HEADINGS, &RESULT_DROP_ORDER).aligned(1, true);
    table.add_all(results.iter().flat_map(result_rows));
    table
}

/// Returns a row for each direction; a mix starts with a row for both.
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
    // Without the article, the longest of these fits the width.
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

/// Returns the row of sync calls: they move no data, and share the depth of the writes.
fn sync_row(figures: &Figures) -> ResultRow {
    let mut cells = direction_row("sync", figures);
    for moved in [2, 3, 9] {
        cells[moved].clear();
    }
    cells
}

/// Returns the row of one of several directions.
fn direction_row(word: &str, figures: &Figures) -> ResultRow {
    let mut cells: ResultRow = std::array::from_fn(|_| String::new());
    cells[0] = format!("  its {word}s");
    fill_figures(&mut cells, figures);
    cells
}

fn fill_figures(cells: &mut ResultRow, figures: &Figures) {
    fill_rates(cells, [figures.mb_per_s, figures.mib_per_s, figures.iops], figures.iops_interval);
    for (at, rank) in [(6, "50"), (7, "99"), (8, "99.9")] {
        cells[at] = percentile(&figures.latency_ns, rank);
    }
    cells[9] = show_rate(figures.depth_mean);
}

/// Fills MB/s, MiB/s and IOPS, limiting the digits of all three by the interval of the IOPS.
fn fill_rates(cells: &mut ResultRow, rates: [f64; 3], interval: Option<[f64; 2]>) {
    let [_, _, iops] = rates;
    let scaled = |to: f64| interval.filter(|_| iops > 0.0).map(|ends| ends.map(|end| end / iops * to));
    for (at, rate) in rates.into_iter().enumerate() {
        cells[at + 2] = supported(rate, scaled(rate));
    }
    cells[5] = half_width(iops, interval);
}

/// Headings of the table.
const HOST_HEADINGS: [&str; 9] =
    ["host", "verdict", "MB/s", "IOPS", "share", "p50", "p99", "CPU per op", "limited by"];

/// Columns to drop if the width is too small, in this order.
const HOST_DROP_ORDER: [usize; 3] = [7, 8, 5];

/// Limits the rows of hosts: the lost and the slowest hosts come first.
const MAX_HOSTS: usize = 64;

/// Describes how evenly the hosts share the rate.
pub(crate) fn describe_fairness(fair: &Fairness) -> String {
    if fair.sentence.is_empty() {
        return format!("The slowest host has {} of the mean.", show_share(fair.least_by_mean));
    }
    fair.sentence.clone()
}

/// Returns a row for each host, of many only the slowest, and the number of hosts without a row.
pub(crate) fn host_table(fleet: &FleetFigures, result: &str) -> (Table, usize) {
    let mut table = Table::new(&HOST_HEADINGS, &HOST_DROP_ORDER).aligned(1, true);
    // A lost host has a row; a host that did not run the job has none.
    let rate = |host: &'_ HostFigures| host.results.iter().find(|r| r.name == result).cloned();
    let taking_part = fleet.hosts.iter().map(|host| (host, rate(host)));
    let mut hosts: Vec<(&HostFigures, Option<HostRate>)> =
        taking_part.filter(|(host, rate)| rate.is_some() || host.verdict.is_none()).collect();
    let all = hosts.len();
    let iops = |rate: &Option<HostRate>| rate.as_ref().and_then(|r| r.iops).unwrap_or(0.0);
    hosts.sort_by(|(_, a), (_, b)| iops(a).total_cmp(&iops(b)));
    hosts.truncate(MAX_HOSTS);
    hosts.sort_by_key(|(host, _)| host.rank);
    table.add_all(hosts.iter().map(|(host, rate)| host_row(host, rate.as_ref())));
    (table, all - hosts.len())
}

fn host_row(host: &HostFigures, rate: Option<&HostRate>) -> [String; HOST_HEADINGS.len()] {
    let Some(rate) = rate else {
        let mut row: [String; HOST_HEADINGS.len()] = std::array::from_fn(|_| "-".into());
        row[0].clone_from(&host.name);
        host.verdict.map_or("lost", Verdict::word).clone_into(&mut row[1]);
        return row;
    };
    let value_or_dash = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".into(), show);
    [
        host.name.clone(),
        rate.verdict.word().to_owned(),
        value_or_dash(rate.mb_per_s, show_rate),
        value_or_dash(rate.iops, show_rate),
        value_or_dash(rate.share, show_share),
        host_latency(&rate.p50_ns),
        host_latency(&rate.p99_ns),
        value_or_dash(rate.cpu_ns_per_op, show_ns),
        rate.limiter.replace("the ", ""),
    ]
}

/// `180 us`; with several directions `read 180 us, write 2.1 ms`.
fn host_latency(latencies: &BTreeMap<String, Option<u64>>) -> String {
    let latency_or_dash = |ns: &Option<u64>| ns.map_or_else(|| "-".into(), |ns| show_ns(ns as f64));
    match latencies.iter().collect::<Vec<_>>().as_slice() {
        [] => "-".into(),
        [(_, ns)] => latency_or_dash(ns),
        several => {
            let each: Vec<String> =
                several.iter().map(|(kind, ns)| format!("{kind} {}", latency_or_dash(ns))).collect();
            each.join(", ")
        }
    }
}

/// Headings of the table.
const REPLAY_HEADINGS: [&str; 4] = ["figure", "original", "replay", "change"];

/// Numbers from this value on have no decimals.
const NO_DECIMALS_FROM: f64 = 1000.0;

/// Returns the caption of the table.
pub(crate) fn heading(replay: &ReplayComparison) -> String {
    format!("{} and its replay, --pace {}, --speed {}", replay.capture, replay.pace, replay.speed)
}

/// Returns a row for each figure.
pub(crate) fn replay_table(replay: &ReplayComparison) -> Table {
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
