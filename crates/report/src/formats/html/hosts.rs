//! Hosts: what each of several contributed, and what growing numbers of them bring.
//!
//! For: a row for each host on one axis, result by result, and the table of `--hosts`. Not for: one host's own course and ledger, which
//! are in its own session.

use super::intervals::{IntervalHeadings, IntervalRow, draw_intervals};
use super::page::{card, facts};
use super::table;
use super::words::{rate_tick, time_or_dash, time_tick};
use crate::formats::text::report::table as text_table;
use crate::page::supported;
use model::fleet::{FleetFigures, HostFigures, HostRate};
use model::report::{Report, Verdict};
use model::scaling::Scaling;
use model::units::{show_rate, show_share};

/// Most hosts that are drawn of a result: the slowest, since one looks for those.
const MAX_HOSTS: usize = 64;

/// Every host of every result.
pub(super) fn hosts_card(report: &Report) -> Option<String> {
    let fleet = report.fleet.as_ref()?;
    let mut body = String::new();
    for result in &report.results {
        let mut of: Vec<(&HostFigures, &HostRate)> = fleet
            .hosts
            .iter()
            .filter_map(|host| Some((host, host.results.iter().find(|r| r.name == result.name)?)))
            .collect();
        if of.is_empty() {
            continue;
        }
        let all = of.len();
        of.sort_by(|a, b| a.1.iops.unwrap_or(0.0).total_cmp(&b.1.iops.unwrap_or(0.0)));
        of.truncate(MAX_HOSTS);
        of.sort_by_key(|(host, _)| host.rank);
        let of_all =
            if all > of.len() { format!(", the {} slowest of {all}", of.len()) } else { String::new() };
        let rates = IntervalHeadings {
            caption: &format!("{}: the rate of each host{of_all}", result.name),
            first: "Host",
            axis: "IOPS, logarithmic",
            headings: &["IOPS", "Share", "Limited by"],
        };
        let latencies = IntervalHeadings {
            caption: &format!("{}: the latency of each host{of_all}", result.name),
            first: "Host",
            axis: "Dot: median latency; line: to the 99th percentile; logarithmic",
            headings: &["p50", "p99"],
        };
        let of_rates = of.iter().map(|(host, rate)| host_rate_row(host, rate)).collect();
        let of_latencies = of.iter().flat_map(|(host, rate)| host_latency_rows(host, rate)).collect();
        body += &draw_intervals(&rates, with_title(&result.name, of_rates), rate_tick);
        body += &draw_intervals(
            &latencies,
            with_title(&format!("{}, latency", result.name), of_latencies),
            time_tick,
        );
    }
    body += &facts(&fleet_rows(fleet));
    Some(card(
        "Every host",
        &["All hosts of a result on one axis; hollow: a finding on that host qualifies it."],
        &body,
    ))
}

/// With words above the first.
fn with_title(title: &str, mut rows: Vec<IntervalRow>) -> Vec<IntervalRow> {
    rows.iter_mut().take(1).for_each(|row| title.clone_into(&mut row.title));
    rows
}

fn host_rate_row(host: &HostFigures, rate: &HostRate) -> IntervalRow {
    IntervalRow {
        name: host.name.clone(),
        value: rate.iops.map(|iops| (iops, None)),
        hollow: rate.verdict != Verdict::Valid,
        cells: vec![
            rate.iops.map_or_else(|| "-".into(), show_rate),
            rate.share.map_or_else(|| "-".into(), show_share),
            rate.limiter.clone(),
        ],
        ..IntervalRow::default()
    }
}

/// A row per direction.
fn host_latency_rows<'r>(
    host: &'r HostFigures,
    rate: &'r HostRate,
) -> impl Iterator<Item = IntervalRow> + 'r {
    let several = rate.p50_ns.len() > 1;
    rate.p50_ns.iter().map(move |(kind, p50)| {
        let p99 = rate.p99_ns.get(kind).copied().flatten();
        let number = |ns: Option<u64>| ns.map(|ns| ns as f64);
        IntervalRow {
            name: if several { format!("{}, {kind}", host.name) } else { host.name.clone() },
            value: number(*p50).map(|p50| (p50, number(p99).map(|p99| [p50, p99]))),
            hollow: rate.verdict != Verdict::Valid,
            cells: vec![time_or_dash(number(*p50)), time_or_dash(number(p99))],
            ..IntervalRow::default()
        }
    })
}

/// What is told of them together.
fn fleet_rows(fleet: &FleetFigures) -> Vec<(String, String)> {
    let fair = fleet.fairness.iter().map(|fair| {
        let slowest = format!("The slowest host has {} of the mean.", show_share(fair.least_by_mean));
        (fair.name.clone(), if fair.sentence.is_empty() { slowest } else { fair.sentence.clone() })
    });
    let kept = fleet
        .hosts
        .iter()
        .take(MAX_HOSTS)
        .filter_map(|host| Some((format!("Session of {}", host.name), host.session.clone()?)));
    let more = fleet.hosts.len().saturating_sub(MAX_HOSTS);
    let more =
        (more > 0).then(|| ("More sessions".into(), format!("of {more} other hosts, in the JSON report")));
    fair.chain(kept).chain(more).collect()
}

/// What growing numbers of hosts bring.
pub(super) fn host_count_card(report: &Report, scaling: &Scaling) -> String {
    let rows = scaling.rows.iter().map(|row| {
        let result = report.results.get(row.result).filter(|r| !r.void);
        let total = result.and_then(|r| r.total.as_ref());
        let is_knee = scaling.knee.is_some_and(|knee| knee.reached && knee.hosts == row.hosts);
        let is_valid = result.is_some_and(|r| r.verdict == Verdict::Valid);
        IntervalRow {
            name: format!("{}{}", row.hosts, if is_knee { ", the knee" } else { "" }),
            value: total.map(|t| (t.iops, t.iops_interval)),
            hollow: !is_valid,
            cells: vec![
                total.map_or_else(|| "-".into(), |t| supported(t.iops, t.iops_interval)),
                row.iops_per_host.map_or_else(|| "-".into(), show_rate),
                row.efficiency.map_or_else(|| "-".into(), show_share),
            ],
            ..IntervalRow::default()
        }
    });
    let words = IntervalHeadings {
        caption: "Growing numbers of hosts",
        first: "Hosts",
        axis: "IOPS of all with its 95 % interval, logarithmic",
        headings: &["IOPS", "Per host", "Efficiency"],
    };
    let lead = [
        "Dot: operations per second of all; line: its 95 % interval; hollow: a finding qualifies it. Efficiency: the rate of a host beside \
         that of a host among the fewest.",
    ];
    card("What more hosts bring", &lead, &draw_intervals(&words, rows.collect(), rate_tick))
        + &card::<&str>("All figures", &[], &table::table("Every number of hosts", &text_table(report, true)))
}
