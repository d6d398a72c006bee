//! Layers, interfaces and targets: the same work in several ways, on one axis for each work.
//!
//! For: what is compared within one measurement. Not for: sessions compared with each other ([`super::comparison`]).

use super::intervals::{IntervalHeadings, IntervalRow, draw_intervals};
use super::page::card;
use super::table;
use super::words::{rate_tick, time, time_or_dash, time_tick, with_micro_sign};
use crate::formats::text::report::table as text_table;
use crate::page::supported;
use model::api::Api;
use model::ledger::{LayerRow, Layers, Pace};
use model::not_measured::by_reason;
use model::report::{Report, Verdict};
use model::targets::Targets;
use model::units::{show_change, show_count, show_rate};

fn is_qualified(report: &Report, result: usize) -> bool {
    report.results.get(result).is_none_or(|r| r.void || r.verdict != Verdict::Valid)
}

/// `1,000 - 1,200`.
fn format_interval(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(|| "-".into(), |[low, high]| format!("{} to {}", show_rate(low), show_rate(high)))
}

/// What each layer costs.
pub(super) fn layers_card(report: &Report, layers: &Layers) -> String {
    let rows = |of: fn(&LayerRow) -> IntervalRow| -> Vec<IntervalRow> {
        let mut before = "";
        let mut out = Vec::new();
        for row in &layers.rows {
            let title = if row.work == before { String::new() } else { row.work.clone() };
            before = &row.work;
            let name = row.name.clone();
            out.push(IntervalRow { title, name, hollow: is_qualified(report, row.result), ..of(row) });
        }
        out
    };
    let rates = IntervalHeadings {
        caption: "Operations per second at each layer, with the device's own count",
        first: "Layer",
        axis: "IOPS with its 95 % interval, logarithmic",
        headings: &["IOPS", "95 %", "Device", "Against the layer below"],
    };
    let latencies = IntervalHeadings {
        caption: "Mean latency at each layer, with the device's own",
        first: "Layer",
        axis: "Mean latency with its 95 % interval, logarithmic",
        headings: &["Latency", "95 %", "Device"],
    };
    let explained = "From the lowest layer up. Dot: ours; line: its 95 % interval, with an arrow where it goes on; dashed: what the \
                     topmost device below counted; hollow: a finding qualifies it.";
    let missing = layers.missing.iter().map(|words| format!("Not measured: {words}."));
    let lead: Vec<String> = std::iter::once(explained.to_owned()).chain(missing).collect();
    let body = format!(
        "<h3>Operations per second</h3>{}<h3>Mean latency</h3>{}",
        draw_intervals(&rates, rows(layer_rate_row), rate_tick),
        draw_intervals(&latencies, rows(layer_latency_row), time_tick)
    );
    card("What each layer costs", &lead, &body)
}

fn layer_rate_row(row: &LayerRow) -> IntervalRow {
    let iops = |pace: Option<Pace>| pace.map_or_else(|| "-".into(), |p| show_count(p.iops));
    let against = row.against.as_ref().map(|d| format!("{}: {}", d.name, show_change(d.factor)));
    IntervalRow {
        value: row.tool.map(|t| (t.iops, row.iops_interval)),
        device: row.device.map(|d| d.iops),
        cells: vec![
            iops(row.tool),
            format_interval(row.iops_interval),
            iops(row.device),
            against.unwrap_or_default(),
        ],
        ..IntervalRow::default()
    }
}

fn layer_latency_row(row: &LayerRow) -> IntervalRow {
    let latency = |pace: Option<Pace>| pace.and_then(|p| p.latency_ns);
    let ends = row.latency_interval_ns.map(|[low, high]| format!("{} to {}", time(low), time(high)));
    let cells = [
        time_or_dash(latency(row.tool)),
        ends.unwrap_or_else(|| "-".into()),
        time_or_dash(latency(row.device)),
    ];
    IntervalRow {
        value: latency(row.tool).map(|ns| (ns, row.latency_interval_ns)),
        device: latency(row.device),
        cells: cells.to_vec(),
        ..IntervalRow::default()
    }
}

/// Which interface is the fastest.
pub(super) fn interfaces_card(report: &Report, api: &Api) -> String {
    let mut out = String::new();
    for rows in api.rows.chunk_by(|a, b| a.work == b.work) {
        let Some(first) = rows.first() else { continue };
        let advice = api.advice.iter().find(|a| a.work == first.work);
        let drawn = rows.iter().map(|row| {
            let star = if advice.is_some_and(|a| a.interface == row.interface) { "★ " } else { "" };
            let ns = |ns: Option<u64>| time_or_dash(ns.map(|ns| ns as f64));
            IntervalRow {
                name: format!("{star}{}", row.interface),
                value: row.mb_per_s.map(|v| (v, row.mb_per_s_interval)),
                hollow: is_qualified(report, row.result),
                cells: vec![
                    row.mb_per_s.map_or_else(|| "-".into(), |v| supported(v, row.mb_per_s_interval)),
                    format_interval(row.mb_per_s_interval),
                    ns(row.p50_ns),
                    ns(row.p99_ns),
                ],
                ..IntervalRow::default()
            }
        });
        let words = IntervalHeadings {
            caption: &format!("{} through each interface", first.work),
            first: "Interface",
            axis: "MB/s with its 95 % interval, logarithmic",
            headings: &["MB/s", "95 %", "p50", "p99"],
        };
        let told = advice.map(|a| a.sentence.clone()).or_else(|| {
            let none = api.no_advice.iter().find(|n| n.work == first.work)?;
            Some(format!("No recommendation, because {}.", none.why))
        });
        let marks = "Dot: 10^6 bytes per second; line: its 95 % interval, with an arrow where it goes on; hollow: a finding qualifies it; ★ the one to use.";
        let lead: Vec<String> = told.into_iter().chain([marks.to_owned()]).collect();
        out += &card(&first.work, &lead, &draw_intervals(&words, drawn.collect(), rate_tick));
    }
    let missing =
        by_reason(&api.not_measured).into_iter().map(|(names, why)| (names.join("; "), with_micro_sign(why)));
    let mut body = table::table("All figures of all interfaces", &text_table(report, true));
    body += &super::page::facts(&missing.collect::<Vec<_>>());
    let lead = [
        "synced: MB/s with the final sync in the time; user, kernel: ns of CPU per byte; calls, faults: per MiB; device: bytes it moved per byte.",
    ];
    out + &card("All figures", &lead, &body)
}

/// Which target is faster.
pub(super) fn targets_card(report: &Report, targets: &Targets) -> String {
    let mut out = String::new();
    let name = |at: usize| targets.names.get(at).cloned().unwrap_or_default();
    let mut rows = Vec::new();
    for test in targets.rows.chunk_by(|a, b| a.test == b.test) {
        for (at, row) in test.iter().enumerate() {
            let rate = report.results.get(row.result).map(model::report::Measured::quoted_rate);
            let metric = row.against.as_ref().and_then(|pair| pair.metrics.first());
            rows.push(IntervalRow {
                title: if at == 0 { row.test.clone() } else { String::new() },
                name: name(row.target),
                value: rate.and_then(|r| Some((r.value?, r.interval))),
                hollow: is_qualified(report, row.result),
                cells: vec![
                    rate.and_then(|r| Some(format!("{} {}", supported(r.value?, r.interval), r.unit)))
                        .unwrap_or_else(|| "-".into()),
                    metric.map_or_else(String::new, |m| show_change(m.ratio)),
                    metric.map_or_else(String::new, |m| m.answer.word().into()),
                ],
                ..IntervalRow::default()
            });
        }
    }
    let words = IntervalHeadings {
        caption: "Every test on every target",
        first: "Target",
        axis: "Rate with its 95 % interval, logarithmic",
        headings: &["Rate", "Against the first", "Answer"],
    };
    let lead = ["Dot: the rate; line: its 95 % interval; hollow: a finding qualifies it."];
    out += &card("Which target is faster", &lead, &draw_intervals(&words, rows, rate_tick));
    out + &card::<&str>(
        "All figures",
        &[],
        &table::table("Every test on every target, with its intervals", &text_table(report, true)),
    )
}
