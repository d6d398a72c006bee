//! Studies: a table of each study, which replaces the table of results.

use crate::page::{Table, half_width, percentile, short_bytes, supported, verdict_mark};
use model::Known;
use model::comparison::{Answer, Pair};
use model::evidence::Extents;
use model::figures::{Difference, LayerRow, Layers, Pace};
use model::finding::CheckId;
use model::report::{Figures, Measured};
use model::study::{Api, ApiRow, LoadCurve, LoadPoint, LoadState, Scaling, ScalingRow, TargetRow, Targets};
use model::units::{show_bytes, show_change, show_count, show_ns, show_rate, show_share};

const LAYER_HEADINGS: [&str; 11] = [
    "layer",
    "verdict",
    "IOPS",
    "±95 %",
    "size",
    "latency",
    "device IOPS",
    "device size",
    "device latency",
    "against",
    "findings",
];

/// Columns to drop if the width is too small, in this order: the device's size and latency before its rate.
const LAYER_DROP_ORDER: [usize; 8] = [7, 8, 4, 6, 10, 5, 3, 9];

/// Factor from which a ratio is printed as a multiple and not in percent.
const RATIO_FROM: f64 = 2.0;

/// Returns a row for each layer under the name of its work.
pub(crate) fn layer_table(layers: &Layers, results: &[Measured]) -> Table {
    let table = Table::new(&LAYER_HEADINGS, &LAYER_DROP_ORDER).aligned(1, true).aligned(9, true);
    with_titles(
        table,
        &layers.rows,
        |row| &row.work,
        |row| layer_cells(row, results.get(row.result)).to_vec(),
    )
}

/// Adds a row for each item, and a title above the first row of each group.
fn with_titles<R>(
    mut table: Table,
    rows: &[R],
    title: impl Fn(&R) -> &str,
    cells: impl Fn(&R) -> Vec<String>,
) -> Table {
    for group in rows.chunk_by(|a, b| title(a) == title(b)) {
        for (at, row) in group.iter().enumerate() {
            let cells = cells(row);
            if at == 0 {
                let blank = cells.iter().skip(1).map(|_| String::new());
                table.add(std::iter::once(format!("{}:", title(row))).chain(blank));
            }
            table.add(cells);
        }
    }
    table
}

fn layer_cells(row: &LayerRow, result: Option<&Measured>) -> [String; LAYER_HEADINGS.len()] {
    let mut cells: [String; LAYER_HEADINGS.len()] = std::array::from_fn(|_| String::new());
    cells[0] = format!("  {}", row.name);
    cells[1] = result.map_or_else(String::new, verdict_mark);
    cells[10] = CheckId::list(&row.findings, " ");
    let Some(tool) = &row.tool else {
        "no number".clone_into(&mut cells[2]);
        return cells;
    };
    cells[2] = supported(tool.iops, row.iops_interval);
    cells[3] = half_width(tool.iops, row.iops_interval);
    cells[4] = request_size(tool);
    cells[5] = layer_latency(tool);
    let device = row.device.as_ref();
    cells[6] = device.map_or_else(|| "-".into(), |d| show_count(d.iops));
    cells[7] = device.map_or_else(String::new, request_size);
    cells[8] = device.map_or_else(String::new, layer_latency);
    cells[9] = row.against.as_ref().map_or_else(String::new, describe_difference);
    cells
}

fn request_size(pace: &Pace) -> String {
    pace.bytes.map_or_else(|| "-".into(), |b| short_bytes(b.round() as u64))
}

fn layer_latency(pace: &Pace) -> String {
    pace.latency_ns.map_or_else(|| "-".into(), show_ns)
}

/// `vda -2.1 % (-3.0 to -1.2)`, or `vda x 3.1 (3.0 to 3.2)`.
fn describe_difference(against: &Difference) -> String {
    let multiple = against.factor >= RATIO_FROM;
    let value = |v: f64| if multiple { show_rate(v) } else { format!("{:+.1}", 100.0 * (v - 1.0)) };
    let sign = if multiple { "x " } else { "" };
    let unit = if multiple { "" } else { " %" };
    let interval = match against.interval {
        Some([low, high]) => format!(" ({} to {})", value(low), value(high)),
        None => String::new(),
    };
    format!("{} {sign}{}{unit}{interval}", against.name, value(against.factor))
}

const INTERFACE_HEADINGS: [&str; 12] = [
    "interface",
    "verdict",
    "MB/s",
    "±95 %",
    "synced",
    "p50",
    "p99",
    "user",
    "kernel",
    "calls",
    "faults",
    "device",
];

/// Columns to drop if the width is too small, in this order.
const INTERFACE_DROP_ORDER: [usize; 8] = [10, 9, 11, 5, 7, 8, 4, 6];

/// Headings of the table of runs, and the columns to drop.
const INTERFACE_RUN_HEADINGS: [&str; 5] = ["interface", "run time", "bytes", "pieces", "largest piece"];

const INTERFACE_RUN_DROP_ORDER: [usize; 1] = [4];

/// Tolerance within which a share of the span counts as all or half of it.
pub(crate) const COVERAGE_TOLERANCE: f64 = 0.005;

/// Returns the run time of each interface and the layout of the file it wrote.
pub(crate) fn interface_run_table(api: &Api) -> Table {
    let table = Table::new(&INTERFACE_RUN_HEADINGS, &INTERFACE_RUN_DROP_ORDER);
    with_titles(
        table,
        &api.rows,
        |row| &row.work,
        |row| {
            let number = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".into(), show);
            vec![
                format!("  {}", row.interface),
                number(row.run_seconds, |s| show_ns(1e9 * s)),
                number(row.run_bytes, |bytes| show_bytes(bytes.round() as u64)),
                before_and_after(row, |extents| Some(show_count(extents.count as f64))),
                before_and_after(row, |extents| extents.largest_share().map(show_share)),
            ]
        },
    )
}

/// `1 -> 8,270`; a single value if nothing was written.
fn before_and_after(row: &ApiRow, show: impl Fn(&Extents) -> Option<String>) -> String {
    let shown =
        |extents: &Known<Extents>| extents.as_ref().ok().and_then(&show).unwrap_or_else(|| "-".into());
    let before = shown(&row.stored_before);
    row.stored_after.as_ref().map_or(before.clone(), |after| format!("{before} -> {}", shown(after)))
}

/// Returns the table of interfaces.
pub(crate) fn interface_table(api: &Api, results: &[Measured]) -> Table {
    let table = Table::new(&INTERFACE_HEADINGS, &INTERFACE_DROP_ORDER).aligned(1, true);
    with_titles(
        table,
        &api.rows,
        |row| &row.work,
        |row| interface_cells(row, results.get(row.result)).to_vec(),
    )
}

fn interface_cells(row: &ApiRow, result: Option<&Measured>) -> [String; INTERFACE_HEADINGS.len()] {
    let rate = |v: Option<f64>| v.map_or_else(|| "-".into(), show_rate);
    let time = |v: Option<u64>| v.map_or_else(|| "-".into(), |ns| show_ns(ns as f64));
    let fine = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{v:.2}"));
    let faults = row.minor_faults_per_mib.zip(row.major_faults_per_mib).map(|(a, b)| a + b);
    let device = match &row.device_bytes_per_byte {
        Ok([read, written]) if *read > COVERAGE_TOLERANCE && *written > COVERAGE_TOLERANCE => {
            format!("{read:.2} + {written:.2}")
        }
        Ok([read, written]) => format!("{:.2}", read + written),
        Err(_) => "-".into(),
    };
    [
        format!("  {}", row.interface),
        result.map_or_else(String::new, verdict_mark),
        row.mb_per_s.map_or_else(|| "-".into(), |v| supported(v, row.mb_per_s_interval)),
        row.mb_per_s.map_or_else(|| "-".into(), |v| half_width(v, row.mb_per_s_interval)),
        if row.stored_after.is_some() {
            row.synced_mb_per_s.map_or_else(|| "-".into(), |v| supported(v, row.synced_mb_per_s_interval))
        } else {
            String::new()
        },
        time(row.p50_ns),
        time(row.p99_ns),
        fine(row.user_ns_per_byte),
        fine(row.system_ns_per_byte),
        row.calls_per_mib.as_ref().map_or_else(|_| "-".into(), |v| show_rate(*v)),
        rate(faults),
        device,
    ]
}

const TARGET_HEADINGS: [&str; 9] =
    ["test", "verdict", "MB/s", "IOPS", "±95 %", "p50", "p99", "against the first", "faster"];

/// Columns to drop if the width is too small, in this order.
const TARGET_DROP_ORDER: [usize; 5] = [5, 6, 4, 2, 1];

/// Returns a row for each target under the name of its test.
pub(crate) fn target_table(targets: &Targets, measured: &[Measured]) -> Table {
    let table = Table::new(&TARGET_HEADINGS, &TARGET_DROP_ORDER).aligned(1, true).aligned(7, true);
    let cells = |row: &TargetRow| target_cells(targets, row, measured.get(row.result)).to_vec();
    with_titles(table, &targets.rows, |row| &row.test, cells)
}

fn target_name(targets: &Targets, at: usize) -> &str {
    targets.names.get(at).map_or("-", String::as_str)
}

fn target_cells(
    targets: &Targets,
    row: &TargetRow,
    result: Option<&Measured>,
) -> [String; TARGET_HEADINGS.len()] {
    let mut cells: [String; TARGET_HEADINGS.len()] = std::array::from_fn(|_| String::new());
    cells[0] = format!("  {}", target_name(targets, row.target));
    let Some(result) = result else { return cells };
    cells[1] = verdict_mark(result);
    match result.total.as_ref().filter(|_| !result.void) {
        None => "no number".clone_into(&mut cells[3]),
        Some(total) => {
            cells[2] = supported(total.mb_per_s, total.mb_per_s_interval);
            cells[3] = supported(total.iops, total.iops_interval);
            cells[4] = half_width(total.iops, total.iops_interval);
            if let Some(figures) = only_direction(result) {
                cells[5] = percentile(&figures.latency_ns, "50");
                cells[6] = percentile(&figures.latency_ns, "99");
            }
        }
    }
    if let Some(pair) = &row.against {
        cells[7] = describe_pair(pair);
        cells[8] = faster_target(targets, row.target, pair);
    }
    cells
}

/// Returns the figures of a result with a single direction: a percentile exists only per direction.
fn only_direction(result: &Measured) -> Option<&Figures> {
    let mut all = [&result.read, &result.write, &result.trim].into_iter().flatten();
    all.next().filter(|_| all.next().is_none())
}

/// `+7.4 % (+3.1 % to +12.0 %)`.
fn describe_pair(pair: &Pair) -> String {
    let Some(metric) = pair.metrics.first() else { return "-".into() };
    let interval = metric
        .interval
        .map_or_else(String::new, |[low, high]| format!(" ({} to {})", show_change(low), show_change(high)));
    format!("{}{interval}", show_change(metric.ratio))
}

/// Names the faster of the two targets.
fn faster_target(targets: &Targets, own: usize, pair: &Pair) -> String {
    match pair.metrics.first().map_or(Answer::Incomparable, |m| m.answer) {
        Answer::Faster => target_name(targets, own).into(),
        Answer::Slower => target_name(targets, 0).into(),
        Answer::Same => "neither".into(),
        word @ (Answer::NoDifferenceSeen | Answer::CannotTell | Answer::Incomparable | Answer::Invalid) => {
            word.word().into()
        }
    }
}

const HOST_COUNT_HEADINGS: [&str; 10] =
    ["hosts", "verdict", "MB/s", "IOPS", "±95 %", "p50", "p99", "per host", "efficiency", "±95 %"];

/// Columns to drop if the width is too small, in this order.
const HOST_COUNT_DROP_ORDER: [usize; 6] = [5, 6, 4, 2, 9, 1];

/// Returns a row for each number of hosts.
pub(crate) fn host_count_table(scaling: &Scaling, measured: &[Measured]) -> Table {
    let mut table = Table::new(&HOST_COUNT_HEADINGS, &HOST_COUNT_DROP_ORDER).aligned(1, true);
    table.add_all(scaling.rows.iter().map(|row| host_count_cells(scaling, row, measured.get(row.result))));
    table
}

fn host_count_cells(
    scaling: &Scaling,
    row: &ScalingRow,
    result: Option<&Measured>,
) -> [String; HOST_COUNT_HEADINGS.len()] {
    let mut cells: [String; HOST_COUNT_HEADINGS.len()] = std::array::from_fn(|_| "-".into());
    let is_knee = scaling.knee.is_some_and(|knee| knee.reached && knee.hosts == row.hosts);
    cells[0] = format!("{}{}", row.hosts, if is_knee { " knee" } else { "" });
    let Some(result) = result else { return cells };
    cells[1] = verdict_mark(result);
    let Some(total) = result.total.as_ref().filter(|_| !result.void) else {
        "no number".clone_into(&mut cells[3]);
        return cells;
    };
    cells[2] = supported(total.mb_per_s, total.mb_per_s_interval);
    cells[3] = supported(total.iops, total.iops_interval);
    cells[4] = half_width(total.iops, total.iops_interval);
    if let Some(only) = only_direction(result) {
        cells[5] = percentile(&only.latency_ns, "50");
        cells[6] = percentile(&only.latency_ns, "99");
    }
    let value_or_dash = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".into(), show);
    cells[7] = value_or_dash(row.iops_per_host, show_rate);
    cells[8] = value_or_dash(row.efficiency, show_share);
    let half = |[low, high]: [f64; 2]| show_share((high - low) / 2.0);
    cells[9] = row.efficiency_interval.map_or_else(|| "-".into(), half);
    cells
}

const LOAD_HEADINGS: [&str; 11] = [
    "load",
    "verdict",
    "offered/s",
    "served/s",
    "mean",
    "p50",
    "p99",
    "p99.9",
    "late",
    "device depth",
    "state",
];

/// Columns to drop if the width is too small, in this order.
const LOAD_DROP_ORDER: [usize; 7] = [9, 8, 4, 5, 7, 3, 6];

/// Limits the loads in the table, unless all are wanted.
pub(crate) const MAX_LOADS: usize = 12;

/// Share of the capacity at which a curve without a target quotes its latency.
const QUOTED_SHARE: f64 = 0.7;

/// Returns the loads to show, ascending. If there are too many: those that support the answer, both ends, the knee, and the loads
/// nearest to the answer.
pub(crate) fn shown_loads(curve: &LoadCurve, all: bool) -> Vec<&LoadPoint> {
    let points = &curve.points;
    if all || points.len() <= MAX_LOADS {
        return points.iter().collect();
    }
    let at = |iops: u64| points.iter().position(|p| p.offered_iops == iops);
    let target = curve.latency_target.as_ref();
    let [met, missed] = [target.and_then(|t| t.met_iops), target.and_then(|t| t.missed_iops)];
    let knee = curve.knee.map(|k| k.iops);
    let centre =
        met.or(missed).map(|iops| iops as f64).or(curve.capacity_iops.map(|c| QUOTED_SHARE * c)).or(knee);
    let from = |to: f64| move |at: &usize| (points[*at].offered_iops.max(1) as f64 / to).ln().abs();
    let nearest = |to: f64| {
        let mut all: Vec<usize> = (0..points.len()).collect();
        all.sort_by(|a, b| from(to)(a).total_cmp(&from(to)(b)));
        all
    };
    let ends = [Some(0), points.len().checked_sub(1)];
    let first = [met.and_then(at), missed.and_then(at)].into_iter().chain(ends);
    let first = first.chain([knee.and_then(|k| nearest(k).first().copied())]).flatten();
    let mut chosen: Vec<usize> = Vec::new();
    for load in first.chain(nearest(centre.unwrap_or(1.0))) {
        if chosen.len() < MAX_LOADS && !chosen.contains(&load) {
            chosen.push(load);
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().filter_map(|at| points.get(at)).collect()
}

/// Returns a row for each offered load, or for those that matter most.
pub(crate) fn load_table(curve: &LoadCurve, results: &[Measured], all: bool) -> Table {
    let of_target = LOAD_HEADINGS.iter().position(|h| h.strip_prefix('p') == Some(curve.percentile()));
    let leaving: Vec<usize> = LOAD_DROP_ORDER.into_iter().filter(|at| Some(*at) != of_target).collect();
    let mut table = Table::new(&LOAD_HEADINGS, &leaving).aligned(0, false).aligned(1, true);
    let shown = shown_loads(curve, all).into_iter();
    table.add_all(shown.map(|point| load_cells(point, curve, results.get(point.result))));
    table
}

fn load_cells(
    point: &LoadPoint,
    curve: &LoadCurve,
    result: Option<&Measured>,
) -> [String; LOAD_HEADINGS.len()] {
    let none = || "-".to_owned();
    let at = |rank: &str| {
        point.percentiles_ns.get(rank).copied().flatten().map_or_else(none, |ns| show_ns(ns as f64))
    };
    [
        point.share.map_or_else(none, show_share),
        result.map_or_else(String::new, verdict_mark),
        show_rate(point.offered_iops as f64),
        point.achieved_iops.map_or_else(none, show_rate),
        point.mean_ns.map_or_else(none, show_ns),
        at("50"),
        at("99"),
        at("99.9"),
        point.lateness_share(curve.percentile()).map_or_else(none, show_share),
        point.device_depth.map_or_else(none, show_rate),
        describe_state(point, curve),
    ]
}

/// `met`, `overload, missed`, ...; with the percentile of the target if it has no column.
fn describe_state(point: &LoadPoint, curve: &LoadCurve) -> String {
    let mut parts = Vec::new();
    let rank = curve.percentile();
    if !["50", "99", "99.9"].contains(&rank)
        && let Some(ns) = point.percentiles_ns.get(rank).copied().flatten()
    {
        parts.push(format!("p{rank} {}", show_ns(ns as f64)));
    }
    match point.state {
        LoadState::Served | LoadState::Late => {}
        LoadState::Overload => parts.push("overload".into()),
        LoadState::Void => parts.push("void".into()),
    }
    match point.met {
        Some(met) => parts.push(if met { "met".into() } else { "missed".into() }),
        None if curve.latency_target.is_some() && point.state != LoadState::Void => {
            parts.push("open".into());
        }
        None => {}
    }
    parts.join(", ")
}

#[cfg(test)]
fn example_curve(offered: impl IntoIterator<Item = u64>, met: Option<u64>, missed: Option<u64>) -> LoadCurve {
    let point = |offered_iops: u64| LoadPoint {
        result: 0,
        offered_iops,
        achieved_iops: None,
        achieved_interval: None,
        share: None,
        runs: 3,
        mean_ns: None,
        percentiles_ns: std::collections::BTreeMap::new(),
        percentile_intervals_ns: std::collections::BTreeMap::new(),
        service_percentiles_ns: std::collections::BTreeMap::new(),
        lateness_p99_ns: None,
        device_depth: None,
        state: LoadState::Served,
        met: None,
    };
    let latency_target = model::study::MetLoad {
        percentile: "99".into(),
        latency_ns: 1_000_000,
        met_iops: met,
        missed_iops: missed,
    };
    LoadCurve {
        capacity_iops: Some(10_000.0),
        capacity_interval: None,
        capacity_result: None,
        points: offered.into_iter().map(point).collect(),
        knee: None,
        latency_target: (met.is_some() || missed.is_some()).then_some(latency_target),
        sentence: String::new(),
        rests_on: Vec::new(),
    }
}

#[test]
fn many_loads_are_reduced_to_those_that_support_the_answer() {
    let shown =
        |curve: &LoadCurve, all| shown_loads(curve, all).iter().map(|p| p.offered_iops).collect::<Vec<_>>();
    let thousands = || (1..=30).map(|n| n * 1_000);
    let found = example_curve(thousands(), Some(9_000), Some(20_000));
    assert_eq!(shown(&found, true).len(), 30);
    let some = shown(&found, false);
    assert!(some.len() == MAX_LOADS && some.is_sorted(), "{some:?}");
    for load in [1_000, 8_000, 9_000, 10_000, 20_000, 30_000] {
        assert!(some.contains(&load), "{load}: {some:?}");
    }
    // Without a target: the quoted load, at 70 % of the capacity.
    let plain = shown(&example_curve(thousands(), None, None), false);
    assert!(plain.len() == MAX_LOADS && plain.contains(&7_000), "{plain:?}");
    // A forged knee that is not a number, and a curve without loads.
    let nowhere = model::study::Knee { iops: f64::NAN, share: None, reached: false };
    let forged =
        LoadCurve { knee: Some(nowhere), capacity_iops: None, ..example_curve(thousands(), None, None) };
    assert_eq!(shown(&forged, false).len(), MAX_LOADS);
    assert_eq!(shown(&example_curve([], Some(1), None), false), [0; 0]);
    assert_eq!(shown(&example_curve(1..=12, Some(1), None), false).len(), 12, "twelve are not too many");
}
