//! The cards of studies: layers, interfaces, targets, hosts, load curves and sweeps.
//!
//! A study that does the same work in several ways (such as through several interfaces) has a row for each way, with its interval, on one
//! axis. A load curve shows latency over load with knee, target and overloads. A sweep has maps with a shade for each cell.

use super::page::{
    card, facts, folded, key, multiples, plain_card, rate_tick, short_number, time, time_or_dash, time_tick,
    with_micro_sign,
};
use super::plot::{
    Axis, Label, Plot, SIDE, Whisker, interval_range, label_classes, map_shade, spread_labels, whisker,
};
use super::{page, plot, size_curves};
use crate::view::lists::{count_of, distinct_by};
use crate::view::numbers::{interval_ends, interval_in_parentheses, percentile_ns, with_supported_digits};
use crate::view::report::main_table;
use crate::view::results::{MAX_HOSTS, describe_fairness, slowest_hosts};
use crate::view::studies::{OTHER_BLOCK_SIZES, describe_raw_rate, raw_rate};
use crate::view::sweep::{
    BEST_SETTINGS_LEGEND, Marks, Sides, best_settings, best_settings_table, best_settings_title, best_value,
    cells_of_work, describe_choice, describe_duration, maps, marks_of_work, share_of_best,
};
use crate::view::table::or_dash;
use askama::Template;
use model::distinct;
use model::figures::{LayerRow, Layers, OperationFigures, by_reason};
use model::fleet::{FleetFigures, HostFigures, HostRate};
use model::report::{Report, Verdict};
use model::study::{Api, ApiRow, LoadCurve, LoadPoint, LoadState, Scaling, Targets};
use model::sweep::{BestSettings, CellFigures, Chosen, Measure, Setting, Sweep, Work};
use model::units::{show_change, show_count, show_ns, show_rate, show_share};
use std::collections::BTreeMap;

/// Whether a result has no number or is not VALID. Also true if the report lacks the result.
fn is_not_valid(report: &Report, result: usize) -> bool {
    report.results.get(result).is_none_or(|r| r.void || r.verdict != Verdict::Valid)
}

/// Returns the main table of a report with all of its rows.
pub(super) fn full_table(report: &Report, caption: &str) -> String {
    page::table(caption, &main_table(report, true))
}

/// Returns the card of the costs of each layer.
pub(super) fn layers_card(report: &Report, layers: &Layers) -> String {
    let rows = |figures: fn(&LayerRow) -> IntervalRow| -> Vec<IntervalRow> {
        let mut before = "";
        let mut out = Vec::new();
        for row in &layers.rows {
            let title = if row.work == before { String::new() } else { row.work.clone() };
            before = &row.work;
            let name = row.name.clone();
            out.push(IntervalRow {
                title,
                name,
                is_hollow: is_not_valid(report, row.result),
                ..figures(row)
            });
        }
        out
    };
    let rates = IntervalHeadings {
        caption: "Operations per second at each layer, with the device's own count for all processes",
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
    let explained = "From the lowest layer up. Dot: fathom's figure; line: its 95 % interval, with an arrow where it \
                     exceeds the axis; dashed: what the topmost device below counted; hollow: the verdict is not VALID.";
    let missing = layers.missing.iter().map(|reason| format!("Not measured: {reason}."));
    let lead: Vec<String> = std::iter::once(explained.to_owned()).chain(missing).collect();
    let body = format!(
        "<h3>Operations per second</h3>{}<h3>Mean latency</h3>{}",
        draw_intervals(&rates, rows(layer_rate_row), rate_tick),
        draw_intervals(&latencies, rows(layer_latency_row), time_tick)
    );
    card("What each layer costs", &lead, &body)
}

fn layer_rate_row(row: &LayerRow) -> IntervalRow {
    let iops = |pace: Option<OperationFigures>| or_dash(pace, |p| show_count(p.iops));
    let against = row.against.as_ref().map(|d| format!("{}: {}", d.name, show_change(d.factor)));
    IntervalRow {
        value: row.tool.map(|t| (t.iops, row.iops_interval)),
        device: row.device.map(|d| d.iops),
        cells: vec![
            iops(row.tool),
            interval_ends(row.iops_interval),
            iops(row.device),
            against.unwrap_or_default(),
        ],
        ..IntervalRow::default()
    }
}

fn layer_latency_row(row: &LayerRow) -> IntervalRow {
    let latency = |pace: Option<OperationFigures>| pace.and_then(|p| p.latency_ns);
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

/// Returns a card that compares interfaces for reads, one for writes, and a card with all figures. The cards for reads and writes each
/// have sequential and random access on one axis, and the device's own sequential rate as a mark. For writes, an interface
/// has two rows: without and with the final sync.
pub(super) fn interface_cards(report: &Report, api: &Api) -> String {
    let mut out = String::new();
    for (writes, heading) in [(false, "Reads"), (true, "Writes")] {
        let api_rows: Vec<&ApiRow> =
            api.rows.iter().filter(|row| row.stored_after.is_some() == writes).collect();
        if api_rows.is_empty() {
            continue;
        }
        let raw = raw_rate(api, &report.results, writes);
        let raw_mb_per_s = raw.and_then(|row| row.mb_per_s);
        let mut rows = Vec::new();
        let mut lead = Vec::new();
        for rows_of_work in api_rows.chunk_by(|a, b| a.work == b.work) {
            let Some(first) = rows_of_work.first() else { continue };
            let advice = api.advice.iter().find(|a| a.work == first.work);
            lead.extend(advice.map(|a| a.sentence.clone()).or_else(|| {
                let none = api.no_advice.iter().find(|n| n.work == first.work)?;
                Some(format!("{}: no recommendation, because {}.", none.work, none.why))
            }));
            let first_row = rows.len();
            for row in rows_of_work {
                let star = if advice.is_some_and(|a| a.interface == row.interface) { "★ " } else { "" };
                let ns = |ns: Option<u64>| time_or_dash(ns.map(|ns| ns as f64));
                let interval_row = |name, value: Option<f64>, interval, latencies| IntervalRow {
                    name,
                    value: value.map(|v| (v, interval)),
                    device: raw_mb_per_s,
                    is_hollow: is_not_valid(report, row.result),
                    cells: [
                        [or_dash(value, |v| with_supported_digits(v, interval)), interval_ends(interval)],
                        latencies,
                    ]
                    .concat(),
                    ..IntervalRow::default()
                };
                let name = format!("{star}{}", row.interface);
                let latencies = [ns(row.p50_ns), ns(row.p99_ns)];
                rows.push(interval_row(name, row.mb_per_s, row.mb_per_s_interval, latencies));
                if row.synced_mb_per_s.is_some() {
                    let name = format!("{}, with sync", row.interface);
                    let blank = [String::new(), String::new()];
                    rows.push(interval_row(name, row.synced_mb_per_s, row.synced_mb_per_s_interval, blank));
                }
            }
            rows[first_row].title.clone_from(&first.work);
        }
        let marks = "Dot: 10^6 bytes per second; line: its 95 % interval, with an arrow where it exceeds the axis; \
                     hollow: the verdict is not VALID; ★ the one to use; with sync: the final sync is in the time.";
        lead.push(marks.to_owned());
        lead.extend(raw.map(|row| format!("Dashed: {}", describe_raw_rate(row))));
        let caption = format!("{heading} through each interface");
        let labels = IntervalHeadings {
            caption: &caption,
            first: "Interface",
            axis: "MB/s with its 95 % interval, logarithmic",
            headings: &["MB/s", "95 %", "p50", "p99"],
        };
        out += &card(heading, &lead, &draw_intervals(&labels, rows, rate_tick));
    }
    let missing =
        by_reason(&api.not_measured).into_iter().map(|(names, why)| (names.join("; "), with_micro_sign(why)));
    let mut body = full_table(report, "All figures of all interfaces");
    body += &page::facts(&missing.collect::<Vec<_>>());
    let legend = "synced: MB/s including the final sync; user, kernel: ns of CPU per byte; calls, faults: per MiB; \
                  device: bytes that the device moved, for all processes, per byte of the row; with a +, read and \
                  written.";
    out + &card("All figures", &[legend, OTHER_BLOCK_SIZES], &body)
}

/// Returns the card that compares targets, and a card with all figures.
pub(super) fn target_cards(report: &Report, targets: &Targets) -> String {
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
                is_hollow: is_not_valid(report, row.result),
                cells: vec![
                    rate.and_then(|r| {
                        Some(format!("{} {}", with_supported_digits(r.value?, r.interval), r.unit))
                    })
                    .unwrap_or_else(|| "-".into()),
                    metric.map_or_else(String::new, |m| show_change(m.ratio)),
                    metric.map_or_else(String::new, |m| m.answer.word().into()),
                ],
                ..IntervalRow::default()
            });
        }
    }
    let labels = IntervalHeadings {
        caption: "Every test on every target",
        first: "Target",
        axis: "Rate with its 95 % interval, logarithmic",
        headings: &["Rate", "Against the first", "Answer"],
    };
    let lead = ["Dot: the rate; line: its 95 % interval; hollow: the verdict is not VALID."];
    out += &card("Which target is faster", &lead, &draw_intervals(&labels, rows, rate_tick));
    out + &plain_card("All figures", &full_table(report, "Every test on every target, with its intervals"))
}

/// Returns the card with the hosts of each result, at most the [`MAX_HOSTS`] slowest; `None` if one
/// host measured alone.
pub(super) fn hosts_card(report: &Report) -> Option<String> {
    let fleet = report.fleet.as_ref()?;
    let mut body = String::new();
    for result in &report.results {
        let (hosts, others) = slowest_hosts(fleet, &result.name, false);
        let hosts: Vec<(&HostFigures, &HostRate)> =
            hosts.into_iter().filter_map(|(host, rate)| Some((host, rate?))).collect();
        if hosts.is_empty() {
            continue;
        }
        let (shown, all) = (hosts.len(), hosts.len() + others);
        let of_hosts = if others > 0 { format!(", the {shown} slowest of {all}") } else { String::new() };
        let rates_caption = format!("{}: the rate of each host{of_hosts}", result.name);
        let rates = IntervalHeadings {
            caption: &rates_caption,
            first: "Host",
            axis: "IOPS, logarithmic",
            headings: &["IOPS", "Share", "Limited by"],
        };
        let caption = format!("{}: the latency of each host{of_hosts}", result.name);
        let latencies = IntervalHeadings {
            caption: &caption,
            first: "Host",
            axis: "Dot: median latency; line: to the 99th percentile; logarithmic",
            headings: &["p50", "p99"],
        };
        let rate_rows = hosts.iter().map(|(host, rate)| host_rate_row(host, rate)).collect();
        let latency_rows = hosts.iter().flat_map(|(host, rate)| host_latency_rows(host, rate)).collect();
        let mut plots = draw_intervals(&rates, with_title(&result.name, rate_rows), rate_tick);
        plots += &draw_intervals(
            &latencies,
            with_title(&format!("{}, latency", result.name), latency_rows),
            time_tick,
        );
        body += &page::with_caveat(report, result, plots);
    }
    body += &facts(&fleet_rows(fleet));
    let lead = ["All hosts of a result on one axis; hollow: the verdict on that host is not VALID."];
    Some(card("Every host", &lead, &body))
}

/// Adds a title above the first row.
pub(super) fn with_title(title: &str, mut rows: Vec<IntervalRow>) -> Vec<IntervalRow> {
    rows.iter_mut().take(1).for_each(|row| title.clone_into(&mut row.title));
    rows
}

fn host_rate_row(host: &HostFigures, rate: &HostRate) -> IntervalRow {
    IntervalRow {
        name: host.name.clone(),
        value: rate.iops.map(|iops| (iops, None)),
        is_hollow: rate.verdict != Verdict::Valid,
        cells: vec![or_dash(rate.iops, show_rate), or_dash(rate.share, show_share), rate.limiter.clone()],
        ..IntervalRow::default()
    }
}

/// Returns the latencies of a host, a row for each direction.
fn host_latency_rows<'r>(
    host: &'r HostFigures,
    rate: &'r HostRate,
) -> impl Iterator<Item = IntervalRow> + 'r {
    let several = rate.p50_ns.len() > 1;
    rate.p50_ns.iter().map(move |(kind, p50)| {
        // The keys of `p99_ns` are directions.
        let p99 = percentile_ns(&rate.p99_ns, kind);
        let number = |ns: Option<u64>| ns.map(|ns| ns as f64);
        IntervalRow {
            name: if several { format!("{}, {kind}", host.name) } else { host.name.clone() },
            value: number(*p50).map(|p50| (p50, number(p99).map(|p99| [p50, p99]))),
            is_hollow: rate.verdict != Verdict::Valid,
            cells: vec![time_or_dash(number(*p50)), time_or_dash(number(p99))],
            ..IntervalRow::default()
        }
    })
}

/// Returns the facts about all hosts together.
fn fleet_rows(fleet: &FleetFigures) -> Vec<(String, String)> {
    let fair = fleet.fairness.iter().map(|fair| (fair.name.clone(), describe_fairness(fair)));
    let kept = fleet
        .hosts
        .iter()
        .take(MAX_HOSTS)
        .filter_map(|host| Some((format!("Session of {}", host.name), host.session.clone()?)));
    let more = fleet.hosts.len().saturating_sub(MAX_HOSTS);
    let more = (more > 0)
        .then(|| ("More sessions".into(), format!("hosts whose sessions only the JSON report has: {more}")));
    fair.chain(kept).chain(more).collect()
}

/// Returns the card of results by number of hosts, and a card with all figures.
pub(super) fn host_count_cards(report: &Report, scaling: &Scaling) -> String {
    let rows = scaling.rows.iter().map(|row| {
        let result = report.results.get(row.result).filter(|r| !r.void);
        let total = result.and_then(|r| r.total.as_ref());
        let is_knee = scaling.knee.is_some_and(|knee| knee.reached && knee.hosts == row.hosts);
        let is_valid = result.is_some_and(|r| r.verdict == Verdict::Valid);
        IntervalRow {
            name: format!("{}{}", row.hosts, if is_knee { ", the knee" } else { "" }),
            value: total.map(|t| (t.iops, t.iops_interval)),
            is_hollow: !is_valid,
            cells: vec![
                or_dash(total, |t| with_supported_digits(t.iops, t.iops_interval)),
                or_dash(row.iops_per_host, show_rate),
                or_dash(row.efficiency, show_share),
            ],
            ..IntervalRow::default()
        }
    });
    let labels = IntervalHeadings {
        caption: "Results by number of hosts",
        first: "Hosts",
        axis: "IOPS of all hosts with its 95 % interval, logarithmic",
        headings: &["IOPS", "Per host", "Efficiency"],
    };
    let lead = [
        "Dot: operations per second of all hosts; line: its 95 % interval; hollow: the verdict is not VALID. Efficiency: IOPS per host relative \
         to the fewest hosts.",
    ];
    card("Scaling with the number of hosts", &lead, &draw_intervals(&labels, rows.collect(), rate_tick))
        + &plain_card("All figures", &full_table(report, "Every number of hosts"))
}

/// Distance of labels at the right edge of a load curve: a line of text, in units of the drawing.
const LABEL_DISTANCE: f64 = 52.0;
/// Half the width of the line that ends an error bar.
const BAR_END: f64 = 4.0;

/// Returns the card of a load curve.
pub(super) fn load_curve_card(report: &Report, curve: &LoadCurve) -> String {
    let mut lead = Vec::new();
    if report.answer.as_ref().is_none_or(|answer| answer.sentence != curve.sentence) {
        lead.push(curve.sentence.clone());
    }
    if let Some(capacity) = curve.capacity_iops {
        let interval = interval_in_parentheses(curve.capacity_interval);
        lead.push(format!("Capacity: {} operations per second in a closed loop{interval}. Latency counts from the intended start.", show_rate(capacity)));
    }
    let drawn = CurveDrawing::from_curve(curve);
    let mut body = drawn.key();
    body += &drawn.draw(&common_curve_axes(&[&drawn])).html();
    body += &folded("Every load as a table", &full_table(report, "Every load that was offered"));
    card("Latency against load", &lead, &body)
}

/// Draws the load curves of several sessions by name, on common axes.
pub(super) fn draw_load_curves(curves: &[(String, &LoadCurve)]) -> Vec<(String, String)> {
    let mut all: Vec<CurveDrawing> =
        curves.iter().map(|(_, curve)| CurveDrawing::from_curve(curve)).collect();
    // Use absolute loads: in shares of its capacity, a device with half the capacity would look the same.
    for drawn in &mut all {
        drawn.in_shares = false;
    }
    let axes = common_curve_axes(&all.iter().collect::<Vec<_>>());
    let html =
        |drawn: &CurveDrawing| format!("{}{}", drawn.key(), Plot { height: 220, ..drawn.draw(&axes) }.html());
    curves.iter().zip(&all).map(|((name, _), drawn)| (name.clone(), html(drawn))).collect()
}

/// The axes of a load curve.
struct CurveAxes {
    load: Axis,
    latency: Axis,
}

/// Returns axes that include all points of these curves.
fn common_curve_axes(all: &[&CurveDrawing]) -> CurveAxes {
    let loads = all.iter().flat_map(|drawn| drawn.curve.points.iter().map(|p| drawn.load(p)));
    let most = loads.fold(0.0, f64::max);
    let in_shares = all.iter().any(|drawn| drawn.in_shares);
    let x = Axis::linear(0.0, 1.04 * most.max(if in_shares { 100.0 } else { 1.0 }));
    CurveAxes { load: x, latency: Axis::log(all.iter().flat_map(|drawn| drawn.latencies())) }
}

struct CurveDrawing<'c> {
    curve: &'c LoadCurve,
    /// The percentile that is drawn in addition to the median, without the letter `p`.
    rank: &'c str,
    /// Whether loads are drawn in percent of the capacity.
    in_shares: bool,
}

impl<'c> CurveDrawing<'c> {
    fn from_curve(curve: &'c LoadCurve) -> Self {
        Self { curve, rank: curve.percentile(), in_shares: curve.points.iter().all(|p| p.share.is_some()) }
    }

    fn key(&self) -> String {
        let rank = format!("p{}", self.rank);
        let has = |state| self.curve.points.iter().any(|p| p.state == state);
        let mut items = vec![
            ("ours", "p50"),
            ("third", rank.as_str()),
            ("mean", "mean"),
            ("bar", "95 % interval over runs"),
        ];
        if has(LoadState::Overload) {
            items.push(("mark", "overload: more operations arrived than were served"));
        }
        key(&items)
    }

    /// Returns the load of a point: in percent of the capacity if `in_shares` is set, otherwise in
    /// IOPS.
    fn load(&self, point: &LoadPoint) -> f64 {
        let share = point.share.filter(|_| self.in_shares);
        share.map_or(point.offered_iops as f64, |share| 100.0 * share)
    }

    /// Returns a percentile of a point in ns; NaN if it is unknown.
    fn latency(point: &LoadPoint, rank: &str) -> f64 {
        percentile_ns(&point.percentiles_ns, rank).map_or(f64::NAN, |ns| ns as f64)
    }

    /// Returns the latencies that the axis must include.
    fn latencies(&self) -> Vec<f64> {
        let points = &self.curve.points;
        let values = points.iter().flat_map(|p| {
            let known = [Self::latency(p, "50"), Self::latency(p, self.rank), p.mean_ns.unwrap_or(f64::NAN)];
            known.into_iter().chain(p.percentile_intervals_ns.get(self.rank).copied().into_iter().flatten())
        });
        let target = self.curve.latency_target.as_ref().map(|t| t.latency_ns as f64);
        // The interval of three runs can be absurdly wide: leave out values below a third of the lowest percentile or above three times the
        // highest one.
        let bounds: Vec<f64> =
            points.iter().flat_map(|p| [Self::latency(p, "50"), Self::latency(p, self.rank)]).collect();
        let (low, high) = bounds
            .iter()
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), v| (l.min(*v), h.max(*v)));
        values.filter(|v| *v >= low / 3.0 && *v <= 3.0 * high).chain(target).collect()
    }

    fn draw(&self, axes: &CurveAxes) -> Plot {
        let CurveAxes { load: x, latency: y } = axes;
        let percent = |v: f64| format!("{} %", short_number(v));
        let capacity = self.curve.capacity_iops.map_or_else(|| "?".into(), show_rate);
        let mut plot = Plot {
            title: "Latency (logarithmic)".into(),
            description: self.describe(),
            height: 300,
            y: y.ticks_down(time_tick),
            x: if self.in_shares { x.ticks(percent) } else { x.ticks(rate_tick) },
            x_title: if self.in_shares {
                format!("Offered load, share of the capacity ({capacity} operations per second)")
            } else {
                "Offered load, operations per second".into()
            },
            ..Plot::default()
        };
        self.draw_ground(&mut plot, x, y);
        self.draw_lines(&mut plot, x, y);
        plot.right = spread_labels(std::mem::take(&mut plot.right), LABEL_DISTANCE);
        let stops = self.curve.points.iter().map(|p| (x.along(self.load(p)), self.describe_point(p)));
        plot.set_crosshair_points(&stops.collect::<Vec<_>>());
        plot
    }

    /// Draws the zone of the latency target, the knee and the overloads.
    fn draw_ground(&self, plot: &mut Plot, x: &Axis, y: &Axis) {
        if let Some(target) = &self.curve.latency_target {
            let at = y.down(target.latency_ns as f64);
            plot.draw("over", &plot::full_width(0.0, at));
            plot.draw("target", &plot::line([(0.0, at), (SIDE, at)]));
            let text = format!("p{} <= {}", target.percentile, time(target.latency_ns as f64));
            plot.right.push(Label { at, text, class: "of-mark" });
        }
        if let Some(knee) = &self.curve.knee {
            let load = knee.share.filter(|_| self.in_shares).map_or(knee.iops, |share| 100.0 * share);
            let at = x.along(load);
            plot.draw("knee", &plot::line([(at, 0.0), (at, SIDE)]));
            let word = if knee.reached { "knee" } else { "knee, or above" };
            // In the right part of the plot, a label is to the left of its line.
            let class = if at > 600.0 { "end" } else { "" };
            plot.labels.push(Label { at, text: format!("{word}: {}/s", show_rate(knee.iops)), class });
        }
        for point in self.curve.points.iter().filter(|p| p.state == LoadState::Overload) {
            let at = x.along(self.load(point));
            // An overload has no latency, so draw a cross at the upper edge.
            let cross = [[(at - 7.0, 20.0), (at + 7.0, 60.0)], [(at - 7.0, 60.0), (at + 7.0, 20.0)]];
            for stroke in cross {
                plot.draw("mark", &plot::line(stroke));
            }
        }
    }

    fn draw_lines(&self, plot: &mut Plot, x: &Axis, y: &Axis) {
        let points = &self.curve.points;
        let through = |latency: &dyn Fn(&LoadPoint) -> f64| {
            points.iter().map(|p| (x.along(self.load(p)), y.down(latency(p)))).collect::<Vec<_>>()
        };
        let mean = through(&|p| p.mean_ns.unwrap_or(f64::NAN));
        plot.draw("mean", &plot::line(mean));
        for (rank, class, dot, bar, ink) in [
            ("50", "ours", "dot", "bar", "of-ours"),
            (self.rank, "third", "dot of-third", "bar of-third", "of-third"),
        ] {
            let places = through(&|p| Self::latency(p, rank));
            plot.draw(class, &plot::line(places.iter().copied()));
            for (point, (at, _)) in points.iter().zip(&places) {
                if let Some([low, high]) = point.percentile_intervals_ns.get(rank) {
                    let [top, bottom] = [y.down(*high), y.down(*low)].map(|v| v.clamp(0.0, SIDE));
                    plot.draw(bar, &plot::line([(*at, top), (*at, bottom)]));
                    for end in [top, bottom] {
                        plot.draw(bar, &plot::line([(at - BAR_END, end), (at + BAR_END, end)]));
                    }
                }
            }
            plot.draw(dot, &plot::dots(places.iter().copied()));
            if let Some((_, at)) = places.iter().rev().find(|(_, v)| v.is_finite()) {
                plot.right.push(Label { at: *at, text: format!("p{rank}"), class: ink });
            }
        }
    }

    fn describe_point(&self, point: &LoadPoint) -> String {
        let state = match point.state {
            LoadState::Served => "",
            LoadState::Late => {
                "\nlate: fathom submitted late by more than a tenth of the latency at some percentile"
            }
            LoadState::Overload => "\noverload: more operations arrived than were served",
            LoadState::Void => "\nvoid: a finding invalidates it",
        };
        let ns = |rank: &str| page::time_or_dash(Some(Self::latency(point, rank)).filter(|v| v.is_finite()));
        let share = point.share.map_or_else(String::new, |s| format!(" ({})", show_share(s)));
        format!(
            "{}/s{share}\np50 {}, p{} {}{state}",
            show_rate(point.offered_iops as f64),
            ns("50"),
            self.rank,
            ns(self.rank)
        )
    }

    fn describe(&self) -> String {
        let all: Vec<String> =
            self.curve.points.iter().map(|p| self.describe_point(p).replace('\n', ", ")).collect();
        format!("Latency against offered load: {}", all.join("; "))
    }
}

/// Maximum number of maps per workload; the JSON has all cells.
const MAX_MAPS: usize = 12;
/// A cell with at least this many runs counts as repeated.
const REPEATED_FROM: usize = 3;

#[derive(Template)]
#[template(path = "map.html")]
struct SweepMap {
    title: String,
    corner: String,
    columns: Vec<String>,
    rows: Vec<MapRow>,
    legend: String,
    /// Whether the legend explains withheld values.
    has_void: bool,
}

struct MapRow {
    name: String,
    cells: Vec<Option<MapCell>>,
}

struct MapCell {
    value: String,
    /// Tooltip.
    title: String,
    /// Shade of the fill; `None` if a finding invalidates the value.
    shade: Option<usize>,
    is_best: bool,
    is_cheapest: bool,
    is_repeated: bool,
}

/// Returns the cards of a sweep: the best settings of each device, a card for each workload, and a table of settings along with the cells
/// that were not measured.
pub(super) fn sweep_cards(report: &Report, sweep: &Sweep) -> String {
    let mut out = best_settings_card(&best_settings(report, sweep));
    out.extend(sweep.works.iter().map(|work| work_card(report, sweep, work)));
    if sweep.works.is_empty() {
        let marks = Marks { report: Some(report), ..Marks::default() };
        let drawn = distinct(sweep.cells.iter().map(|cell| cell.setting.work())).into_iter().map(|work| {
            let cells: Vec<&CellFigures> =
                sweep.cells.iter().filter(|cell| cell.setting.work() == work).collect();
            (work, draw_work_maps(&cells, Measure::Bandwidth, marks, None))
        });
        out += &plain_card("All settings", &multiples("tables", drawn));
    }
    let lead = [describe_duration(sweep)];
    // Cells measured in a fixed order are not ranked, so there is no best setting.
    let (heading, caption) = if sweep.is_in_order() {
        ("All settings", "Each setting, in the order of the grid")
    } else {
        ("The best settings", "The best setting of each workload, and the settings that it is compared with")
    };
    let best = page::table(caption, &main_table(report, true));
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    sweep.skipped.iter().for_each(|cell| *reasons.entry(&cell.why).or_default() += 1);
    let skipped: Vec<_> = reasons
        .iter()
        .map(|(why, times)| (format!("Skipped {}", count_of(*times, "setting")), with_micro_sign(why)))
        .collect();
    out + &card(heading, &lead, &format!("{best}{}", folded("What was not measured", &facts(&skipped))))
}

/// Returns a card with a table for each workload: the values of all devices at each device's best setting. Empty without tables.
pub(super) fn best_settings_card(tables: &[BestSettings]) -> String {
    let draw = |best: &BestSettings| {
        (best.work.clone(), page::table(&best_settings_title(best), &best_settings_table(best)))
    };
    let body = multiples("tables", tables.iter().map(draw));
    if body.is_empty() {
        body
    } else {
        card("Every device at each device's best setting", &[BEST_SETTINGS_LEGEND], &body)
    }
}

fn work_card(report: &Report, sweep: &Sweep, work: &Work) -> String {
    let cells = cells_of_work(sweep, work);
    let knees = work.knees.iter().map(|knee| knee.sentence.clone());
    let marks = marks_of_work(report, sweep, work);
    let heading = marks.best.filter(|_| work.chosen == Chosen::Fastest).map_or_else(
        || work.name.clone(),
        |best| format!("{}: {} {}", work.name, best.load(), best.access_path()),
    );
    // A cell with a void result leaves a gap in its line.
    let without_number = |c: &CellFigures| CellFigures { iops: None, mb_per_s: None, ..c.clone() };
    let drawn = cells.iter().map(|c| if marks.is_void(c) { without_number(c) } else { (*c).clone() });
    let drawn: Vec<CellFigures> = drawn.collect();
    let curves = size_curves::draw(&drawn.iter().collect::<Vec<_>>(), marks.best, &work.name);
    let voids = cells.iter().filter(|c| marks.is_void(c)).count();
    let gaps = if curves.is_empty() { "" } else { ", so the lines have gaps" };
    let withheld =
        (voids > 0).then(|| format!("Settings without a valid number: {voids} of {}{gaps}.", cells.len()));
    let lead: Vec<String> = std::iter::once(describe_choice(work)).chain(knees).chain(withheld).collect();
    card(&heading, &lead, &format!("{curves}{}", draw_work_maps(&cells, work.measure, marks, None)))
}

/// Draws the maps of several sessions by name, with a common scale of shades for each workload.
pub(super) fn draw_maps(sweeps: &[(String, &Report, &Sweep)]) -> String {
    let all = sweeps.iter().flat_map(|(_, _, sweep)| &sweep.works);
    let works: Vec<&Work> = distinct_by(all, |one, other| one.name == other.name);
    works.iter().map(|work| work_maps_of_sessions(sweeps, work)).collect()
}

fn work_maps_of_sessions(sweeps: &[(String, &Report, &Sweep)], work: &Work) -> String {
    let valid = sweeps.iter().flat_map(|(_, report, sweep)| {
        let marks = marks_of_work(report, sweep, work);
        cells_of_work(sweep, work).into_iter().filter(move |cell| !marks.is_void(cell))
    });
    let best = best_value(valid, work.measure);
    let small = sweeps.iter().map(|(name, report, sweep)| {
        let cells = cells_of_work(sweep, work);
        let marks = marks_of_work(report, sweep, work);
        let body = if cells.is_empty() {
            String::new()
        } else {
            draw_work_maps(&cells, work.measure, marks, Some(best))
        };
        (name.clone(), body)
    });
    let lead = ["Shades show the share of the best value in all sessions."];
    card(&format!("{}: every setting", work.name), &lead, &multiples("tables", small))
}

/// Describes a cell: its known values or, if `void` is given, this reason why it has no number.
fn describe_cell(cell: &CellFigures, measure: Measure, void: Option<String>) -> String {
    let named_value = |name: &str, value: Option<String>| value.map(|v| format!("{name} {v}"));
    let interval = cell.interval_of(measure).map(|ends| ends.map(|end| measure.show(end)).join(" to "));
    let values = [
        named_value("MB/s", cell.mb_per_s.map(show_rate)),
        named_value("IOPS", cell.iops.map(show_rate)),
        named_value("p99", cell.latency_p99_ns.map(show_ns)),
        named_value("95 % interval", interval),
    ];
    let values: Vec<String> =
        if void.is_some() { void.into_iter().collect() } else { values.into_iter().flatten().collect() };
    [vec![cell.setting.describe()], values, vec![count_of(cell.runs, "run")]].concat().join("; ")
}

/// Draws a map for each combination of the settings that are neither rows nor columns. Shades show the share of
/// `common_best`, or of the best valid value of these cells if `common_best` is `None`.
fn draw_work_maps(
    cells: &[&CellFigures],
    measure: Measure,
    marks: Marks,
    common_best: Option<f64>,
) -> String {
    let all = maps(cells, marks.best);
    let valid = cells.iter().copied().filter(|cell| !marks.is_void(cell));
    let best = common_best.unwrap_or_else(|| best_value(valid, measure));
    let scale = if best.is_finite() && best > 0.0 {
        format!("shares of the best, {}", with_micro_sign(&measure.show(best)))
    } else {
        "no valid value".into()
    };
    let mut out = String::new();
    for map in all.iter().take(MAX_MAPS) {
        let Sides { rows: down, columns: across } = map.sides;
        let cell = |row: &String, column: &String| {
            let found = map.cell(row, column)?;
            let is = |marked: Option<&Setting>| marked == Some(&found.setting);
            let void = marks.why_void(found);
            let value = found.value(measure);
            Some(MapCell {
                value: if void.is_some() {
                    "void".into()
                } else {
                    or_dash(value, |v| with_micro_sign(&measure.show_short(v)))
                },
                shade: void.is_none().then(|| map_shade(share_of_best(value, best, measure))),
                title: with_micro_sign(&describe_cell(found, measure, void)),
                is_best: is(marks.best),
                is_cheapest: is(marks.cheapest) && !is(marks.best),
                is_repeated: found.runs >= REPEATED_FROM,
            })
        };
        let row = |name: &String| MapRow {
            name: name.clone(),
            cells: map.columns.iter().map(|column| cell(name, column)).collect(),
        };
        let drawn = SweepMap {
            corner: format!("{} \\ {}", down.name, across.name),
            title: format!(
                "{}: {} by {} and {}",
                map.shared_settings,
                measure.heading(),
                down.name,
                across.name
            ),
            rows: map.rows.iter().map(row).collect(),
            columns: map.columns.clone(),
            legend: format!(
                "{scale}; ★ best; = cheapest setting with similar speed; bold: measured {REPEATED_FROM} times or more"
            ),
            has_void: map.cells.iter().any(|cell| marks.is_void(cell)),
        };
        out += &drawn.render().unwrap_or_default();
    }
    if all.len() > MAX_MAPS {
        out += &format!(
            "<p class=\"sub\">Maps not drawn: {}. The JSON has all values.</p>",
            all.len() - MAX_MAPS
        );
    }
    out
}

/// Maximum number of ticks on the axis above the intervals, if possible.
const MAX_TICKS: usize = 6;

/// A row of a table of intervals.
#[derive(Default)]
pub(super) struct IntervalRow {
    /// Title above the row, at the start of a group.
    pub(super) title: String,
    pub(super) name: String,
    /// The value and its interval; `None` without a number.
    pub(super) value: Option<(f64, Option<[f64; 2]>)>,
    /// The device's value, which is marked on the same axis: its own count, or the sequential rate
    /// of [`raw_rate`]. `None` if there is no value to mark.
    pub(super) device: Option<f64>,
    /// Whether the value has a hollow dot, because its verdict is not VALID or the comparison is undecided.
    pub(super) is_hollow: bool,
    /// The range that counts as no difference; `None` if the row has no such range.
    pub(super) margin: Option<[f64; 2]>,
    /// Cells of the columns next to the plot.
    pub(super) cells: Vec<String>,
}

#[derive(Template)]
#[template(path = "whiskers.html")]
struct IntervalTable<'w> {
    labels: &'w IntervalHeadings<'w>,
    ticks: Vec<Label>,
    rows: Vec<DrawnRow>,
}

struct DrawnRow {
    row: IntervalRow,
    whisker: Option<Whisker>,
    device: Option<Whisker>,
    /// Start and width of the row's margin, in percent of the axis; `None` if the row has no
    /// margin.
    margin: Option<[f64; 2]>,
}

impl IntervalTable<'_> {
    /// Returns the ticks of the axis, each with the CSS class that hides its label if there is too little room.
    fn ticks_above(&self) -> impl Iterator<Item = (&Label, &'static str)> {
        self.ticks.iter().zip(label_classes(&self.ticks))
    }
}

/// Headings of a table of intervals.
pub(super) struct IntervalHeadings<'w> {
    /// Caption of the table.
    pub(super) caption: &'w str,
    /// Heading of the first column.
    pub(super) first: &'w str,
    /// Quantity and unit of the axis.
    pub(super) axis: &'w str,
    /// Headings of the columns next to the plot.
    pub(super) headings: &'w [&'w str],
}

/// Returns a logarithmic axis that includes all values.
pub(super) fn common_axis<'r>(rows: impl Iterator<Item = &'r IntervalRow> + Clone) -> Axis {
    let known: Vec<(f64, Option<[f64; 2]>)> = rows.clone().filter_map(|r| r.value).collect();
    let devices = rows.clone().filter_map(|r| r.device);
    Axis::log(interval_range(&known).chain(devices).chain(rows.filter_map(|r| r.margin).flatten()))
}

/// Draws the rows on their own axis.
pub(super) fn draw_intervals(
    labels: &IntervalHeadings,
    rows: Vec<IntervalRow>,
    show: impl Fn(f64) -> String,
) -> String {
    draw_intervals_on(&common_axis(rows.iter()), labels, rows, show)
}

/// Draws the rows on a given axis, which other tables may share.
pub(super) fn draw_intervals_on(
    axis: &Axis,
    labels: &IntervalHeadings,
    rows: Vec<IntervalRow>,
    show: impl Fn(f64) -> String,
) -> String {
    let place = |v: f64| axis.within(v) / 10.0;
    let drawn = rows.into_iter().map(|row| DrawnRow {
        whisker: row.value.map(|(value, interval)| whisker(axis, value, interval)),
        device: row.device.filter(|v| *v > 0.0).map(|v| whisker(axis, v, None)),
        margin: row.margin.map(|[low, high]| [place(low), place(high) - place(low)]),
        row,
    });
    let table = IntervalTable { labels, rows: drawn.collect(), ticks: axis.few_ticks(MAX_TICKS, show) };
    table.render().unwrap_or_default()
}

#[test]
fn load_curves_of_several_sessions_share_axes() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/pieces/limit.json");
    let one: LoadCurve = serde_json::from_str(golden)?;
    let mut slower = one.clone();
    for point in &mut slower.points {
        point.percentiles_ns.values_mut().for_each(|ns| *ns = ns.map(|ns| ns * 4));
        point.percentile_intervals_ns.clear();
    }
    let drawn = [CurveDrawing::from_curve(&one), CurveDrawing::from_curve(&slower)];
    let axes = common_curve_axes(&drawn.iter().collect::<Vec<_>>());
    let plots = drawn.iter().map(|d| d.draw(&axes)).collect::<Vec<_>>();
    assert_eq!((&plots[0].x, &plots[0].y), (&plots[1].x, &plots[1].y));
    let first = |curve: &LoadCurve| {
        curve.points.first().map_or(f64::NAN, |p| axes.latency.down(CurveDrawing::latency(p, "50")))
    };
    assert!(first(&slower) < first(&one), "a latency four times as long is drawn higher up");
    assert_eq!(draw_load_curves(&[("a".into(), &one), ("b".into(), &slower)]).len(), 2);
    Ok(())
}

/// Returns a sweep with a fast cell, `read 4 x 64K`, that a finding invalidates, and its report.
#[cfg(test)]
fn sweep_with_void_cell() -> Result<(Report, Sweep), Box<dyn std::error::Error>> {
    let mut report: Report = serde_json::from_str(include_str!("../../../tests/golden/valid.json"))?;
    let invalid: Report = serde_json::from_str(include_str!("../../../tests/golden/invalid.json"))?;
    let void = report.results.get_mut(1).ok_or("no second result")?;
    void.void = true;
    let mut hole = invalid.checks.first().ok_or("no finding")?.clone();
    hole.about = vec![void.name.clone()];
    report.checks.push(hole);
    let mut sweep: Sweep = serde_json::from_str(include_str!("../../../tests/golden/pieces/sweep.json"))?;
    sweep.cells.truncate(9);
    sweep.cells[2] =
        CellFigures { result: Some(1), mb_per_s: Some(9103.0), iops: Some(9104.0), ..sweep.cells[2].clone() };
    Ok((report, sweep))
}

#[test]
fn a_map_withholds_invalid_values_and_explains_it() -> Result<(), Box<dyn std::error::Error>> {
    const LEGEND: &str = "void: withheld, because a finding invalidates it";
    let (report, sweep) = sweep_with_void_cell()?;
    let of_sessions = |report: &Report, sweep: &Sweep| {
        draw_maps(&[("a".into(), report, sweep), ("b".into(), report, sweep)])
    };
    for (html, times) in [(sweep_cards(&report, &sweep), 1), (of_sessions(&report, &sweep), 2)] {
        assert_eq!(html.matches(" class=\"withheld\">void</td>").count(), times, "{html}");
        let title = "title=\"read 4 x 64K direct, io_uring; void by A04; 1 run\"";
        assert_eq!(html.matches(title).count(), times, "{html}");
        assert!(!html.contains("9,103") && !html.contains("9,104"), "{html}");
        // The best valid value has the darkest shade.
        assert_eq!(html.matches("shares of the best, 2,655 MB/s;").count(), times, "{html}");
        assert_eq!(
            (html.matches(LEGEND).count(), html.matches("class=\"c8 win rep\"").count()),
            (times, times)
        );
    }
    let cards = sweep_cards(&report, &sweep);
    assert!(cards.contains("Settings without a valid number: 1 of 9, so the lines have gaps."), "{cards}");
    // The lowest latency is invalid.
    let mut by_latency = sweep.clone();
    by_latency.works.iter_mut().for_each(|work| work.measure = Measure::P99);
    for cell in &mut by_latency.cells {
        cell.latency_p99_ns = Some(if cell.result == Some(1) { 1e3 } else { 1e6 });
    }
    let html = sweep_cards(&report, &by_latency);
    assert!(
        html.contains(&format!("shares of the best, {};", time(1e6))) && !html.contains(&time(1e3)),
        "{html}"
    );
    // Without findings, nothing is withheld. If all values are invalid, the shades have no scale.
    let with_void = |void: bool| {
        let mut report = report.clone();
        report.results.iter_mut().for_each(|result| result.void = void);
        of_sessions(&report, &sweep)
    };
    assert!(!with_void(false).contains("withheld") && with_void(false).contains(">9,103</td>"));
    assert!(with_void(true).contains("no valid value;") && !with_void(true).contains("shares of the best,"));
    Ok(())
}

#[test]
fn a_sweep_without_a_choice_has_a_map_for_each_workload() -> Result<(), Box<dyn std::error::Error>> {
    let (report, mut sweep) = sweep_with_void_cell()?;
    sweep.works.clear();
    // The same size and depth as those of the first cell.
    sweep.cells[8].setting = Setting { rw: "write".into(), ..sweep.cells[0].setting.clone() };
    let html = sweep_cards(&report, &sweep);
    assert_eq!(html.matches("<table class=\"heat\">").count(), 2, "{html}");
    assert!(
        html.contains("<h3>write</h3>") && html.contains(">2,655</td>") && html.contains(">915</td>"),
        "{html}"
    );
    assert_eq!(html.matches(" class=\"withheld\">void</td>").count(), 1, "{html}");
    assert!(!html.contains("9,103"), "{html}");
    Ok(())
}

#[test]
fn values_are_placed_on_the_shared_axis() {
    let row = |value: f64| vec![IntervalRow { value: Some((value, None)), ..IntervalRow::default() }];
    let labels = IntervalHeadings { caption: "", first: "", axis: "", headings: &[] };
    let axis = common_axis([row(1.0), row(100.0)].iter().flatten());
    let place = |value: f64| {
        let html = draw_intervals_on(&axis, &labels, row(value), |v| v.to_string());
        html.split("class=\"pt\" style=\"left:").nth(1).and_then(|r| r.split('%').next()?.parse::<f64>().ok())
    };
    assert!(place(1.0) < place(10.0) && place(10.0) < place(100.0), "{:?}", place(10.0));
    assert!(place(10.0).is_some_and(|at| (at - 50.0).abs() < 0.2), "{:?}", place(10.0));
}
