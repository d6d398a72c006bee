//! The hosts of a measurement on several: a row each, and what is told of them.
//!
//! For: what stands below the results. Not for: the figures (crate `analysis`), nor notes on how hosts began and differ, which stand with
//! the others.

use crate::page::Page;
use crate::table::Table;
use model::fleet::{FleetFigures, HostFigures, HostRate};
use model::report::{Report, Verdict};
use model::units::{show_ns, show_rate, show_share};
use std::collections::BTreeMap;

/// Headings of the table.
const HOST_HEADINGS: [&str; 9] =
    ["host", "verdict", "MB/s", "IOPS", "share", "p50", "p99", "CPU per op", "limited by"];
/// Columns that leave where there is no room, the first of them first.
const HOST_DROP_ORDER: [usize; 3] = [7, 8, 5];

/// Most hosts that have a row: those that were lost, and the slowest, since one looks for those.
const MAX_HOSTS: usize = 64;

/// Shows the hosts of the main result; with `all` those of every one.
pub(super) fn show_hosts(out: &mut Page, report: &Report, all: bool) {
    let Some(fleet) = &report.fleet else { return };
    let main = report.results.iter().find(|r| r.true_name == report.headline.name).or(report.results.first());
    for result in report.results.iter().filter(|r| all || main.is_some_and(|main| main.name == r.name)) {
        out.prose("Hosts   ", "        ", &result.name);
        let (table, more) = host_table(fleet, &result.name);
        out.table(&table);
        if more > 0 {
            let more =
                format!("{more} more hosts are faster than these; all of them are in the JSON report.");
            out.prose("  ", "  ", &more);
        }
        if let Some(fair) = fleet.fairness.iter().find(|f| f.name == result.name) {
            let slowest = format!("The slowest host has {} of the mean.", show_share(fair.least_by_mean));
            out.prose("  ", "  ", if fair.sentence.is_empty() { &slowest } else { &fair.sentence });
        }
        out.line("");
    }
}

/// A row for each host, of many for the slowest; and how many have none.
fn host_table(fleet: &FleetFigures, result: &str) -> (Table, usize) {
    let mut table = Table::new(&HOST_HEADINGS, &HOST_DROP_ORDER).aligned(1, true);
    // Whoever was lost has a row, and whoever had no part in it none.
    let rate = |host: &'_ HostFigures| host.results.iter().find(|r| r.name == result).cloned();
    let taking_part = fleet.hosts.iter().map(|host| (host, rate(host)));
    let mut of: Vec<(&HostFigures, Option<HostRate>)> =
        taking_part.filter(|(host, rate)| rate.is_some() || host.verdict.is_none()).collect();
    let all = of.len();
    let iops = |rate: &Option<HostRate>| rate.as_ref().and_then(|r| r.iops).unwrap_or(0.0);
    of.sort_by(|(_, a), (_, b)| iops(a).total_cmp(&iops(b)));
    of.truncate(MAX_HOSTS);
    of.sort_by_key(|(host, _)| host.rank);
    table.add_all(of.iter().map(|(host, rate)| host_row(host, rate.as_ref())));
    (table, all - of.len())
}

fn host_row(host: &HostFigures, rate: Option<&HostRate>) -> [String; HOST_HEADINGS.len()] {
    let Some(rate) = rate else {
        let mut row: [String; HOST_HEADINGS.len()] = std::array::from_fn(|_| "-".into());
        row[0].clone_from(&host.name);
        host.verdict.map_or("lost", Verdict::word).clone_into(&mut row[1]);
        return row;
    };
    let of = |value: Option<f64>, words: fn(f64) -> String| value.map_or_else(|| "-".into(), words);
    [
        host.name.clone(),
        rate.verdict.word().to_owned(),
        of(rate.mb_per_s, show_rate),
        of(rate.iops, show_rate),
        of(rate.share, show_share),
        host_latency(&rate.p50_ns),
        host_latency(&rate.p99_ns),
        of(rate.cpu_ns_per_op, show_ns),
        rate.limiter.replace("the ", ""),
    ]
}

/// `180 us`; of several directions `read 180 us, write 2.1 ms`.
fn host_latency(of: &BTreeMap<String, Option<u64>>) -> String {
    let words = |ns: &Option<u64>| ns.map_or_else(|| "-".into(), |ns| show_ns(ns as f64));
    match of.iter().collect::<Vec<_>>().as_slice() {
        [] => "-".into(),
        [(_, ns)] => words(ns),
        several => {
            let each: Vec<String> =
                several.iter().map(|(kind, ns)| format!("{kind} {}", words(ns))).collect();
            each.join(", ")
        }
    }
}
