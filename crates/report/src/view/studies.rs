//! Studies: a table of each study, which replaces the table of results.

use crate::view::numbers::{
    change_ends, half_width, percentile, short_bytes, verdict_mark, verdict_word, with_supported_digits,
};
use crate::view::results::directions_without_sync;
use crate::view::table::{Columns, Table, or_dash};
use model::Known;
use model::comparison::{ComparisonAnswer, Pair};
use model::evidence::Extents;
use model::figures::{LayerDifference, Layers, OperationFigures};
use model::finding::CheckId;
use model::job::Pattern;
use model::report::{Figures, Measured, Rates};
use model::study::{Api, ApiRow, LoadCurve, LoadPoint, LoadState, Scaling, TargetRow, Targets};
use model::units::{show_bytes, show_change, show_change_ends, show_count, show_ns, show_rate, show_share};

/// Text for a number that a finding invalidates.
const NO_NUMBER: &str = "no number";

/// Returns a row for each layer under the name of its workload. The columns of fathom's and of the device's IOPS are never dropped. A
/// number that a finding invalidates is in parentheses.
pub(crate) fn layer_table(layers: &Layers, results: &[Measured]) -> Table {
    let format_pace = |pace: &OperationFigures, iops: String| match pace.bytes {
        Some(_) => format!("{iops} x {}", or_dash(pace.bytes, |bytes| short_bytes(bytes.round() as u64))),
        None => iops,
    };
    Columns::new(&layers.rows)
        .text("layer", |row| format!("  {}", row.name))
        .text("verdict", |row| results.get(row.result).map(verdict_word))
        .text("accepted", |row| results.get(row.result).map(|result| CheckId::list(&result.accepted, " ")))
        .value("fathom IOPS", |row| match (&row.tool, &row.tool_even_if_invalid) {
            (Some(tool), _) => format_pace(tool, with_supported_digits(tool.iops, row.iops_interval)),
            (None, Some(tool)) => format!("({})", format_pace(tool, show_count(tool.iops))),
            (None, None) => NO_NUMBER.into(),
        })
        .value("±95 %", |row| row.tool.map(|tool| half_width(tool.iops, row.iops_interval)))
        .value("latency", |row| row.tool.as_ref().map(layer_latency))
        .value("device IOPS", |row| {
            or_dash(row.device, |device| format_pace(&device, show_count(device.iops)))
        })
        .value("device latency", |row| row.tool.and(row.device.as_ref()).map(layer_latency))
        .text("against", |row| {
            row.tool.and(row.against.as_ref()).map(|against| describe_difference(&row.name, against))
        })
        .text("95 % interval", |row| {
            let against = row.tool.and(row.against.as_ref())?;
            against.interval.map(|ends| show_change_ends(against.factor, ends))
        })
        .text("findings", |row| CheckId::list(&row.findings, " "))
        .grouped(
            |row| &row.work,
            &["accepted", "findings", "device latency", "latency", "±95 %", "95 % interval", "against"],
        )
}

fn layer_latency(pace: &OperationFigures) -> String {
    or_dash(pace.latency_ns, show_ns)
}

/// Describes the change against another row: `vda -2.1 %`, or `vda x 3.10`. Leaves out the name of
/// the file system if `layer` is on the same file system.
fn describe_difference(layer: &str, against: &LayerDifference) -> String {
    let file_system = layer.split_once(' ').map_or("", |(file_system, _)| file_system);
    let in_file_system = against.name.strip_prefix(file_system).and_then(|rest| rest.strip_prefix(' '));
    format!("{} {}", in_file_system.unwrap_or(&against.name), show_change(against.factor))
}

/// Two shares of a span are equal if they differ by no more than this. The bytes that a device read and wrote are
/// shown separately only if both exceed this many bytes for each byte of the program.
pub(crate) const COVERAGE_TOLERANCE: f64 = 0.005;

/// Returns a table with the run time of each interface and the layout of the file.
pub(crate) fn interface_run_table(api: &Api) -> Table {
    Columns::new(&api.rows)
        .text("interface", |row| format!("  {}", row.interface))
        .value("run time", |row| or_dash(row.run_seconds, |s| show_ns(1e9 * s)))
        .value("bytes", |row| or_dash(row.run_bytes, |bytes| show_bytes(bytes.round() as u64)))
        .value("pieces", |row| before_and_after(row, |extents| Some(show_count(extents.count as f64))))
        .text("largest piece", |row| before_and_after(row, |extents| extents.largest_share().map(show_share)))
        .grouped(|row| &row.work, &["largest piece"])
}

/// Formats a property of a file before the first run and after the last: `1 -> 8,270`. A single
/// value if nothing was written.
fn before_and_after(row: &ApiRow, show: impl Fn(&Extents) -> Option<String>) -> String {
    let shown =
        |extents: &Known<Extents>| extents.as_ref().ok().and_then(&show).unwrap_or_else(|| "-".into());
    let before = shown(&row.stored_before);
    row.stored_after.as_ref().map_or(before.clone(), |after| format!("{before} -> {}", shown(after)))
}

/// Returns the row with the device's own sequential rate: the fastest sequential access past the
/// page cache, for writes if `writes` is set, otherwise for reads. `None` without such a row.
pub(crate) fn raw_rate<'a>(api: &'a Api, results: &[Measured], writes: bool) -> Option<&'a ApiRow> {
    let is_raw = |row: &&ApiRow| {
        let mut streams = results.get(row.result).into_iter().flat_map(|result| result.job.streams());
        row.stored_after.is_some() == writes
            && streams.any(|s| s.cache.is_direct() && s.access.pattern() == Some(Pattern::Sequential))
    };
    let measured = api.rows.iter().filter(is_raw).filter(|row| row.mb_per_s.is_some());
    measured.max_by(|a, b| a.mb_per_s.unwrap_or(0.0).total_cmp(&b.mb_per_s.unwrap_or(0.0)))
}

/// Describes the result of [`raw_rate`]:
/// `the device's own sequential rate, 3,558 MB/s (io_uring O_DIRECT, 128K sequential read).`
pub(crate) fn describe_raw_rate(row: &ApiRow) -> String {
    let rate = or_dash(row.mb_per_s, |v| with_supported_digits(v, row.mb_per_s_interval));
    format!("the device's own sequential rate, {rate} MB/s ({}, {}).", row.interface, row.work)
}

/// How to measure other block sizes than those of the table.
pub(crate) const OTHER_BLOCK_SIZES: &str = "Type --bs for other block sizes, such as --bs 16k,1m.";

/// Returns the table of interfaces.
pub(crate) fn interface_table(api: &Api, results: &[Measured]) -> Table {
    let time = |ns: Option<u64>| or_dash(ns, |ns| show_ns(ns as f64));
    let fine = |value: Option<f64>| or_dash(value, |v| format!("{v:.2}"));
    let faults = |row: &ApiRow| row.minor_faults_per_mib.zip(row.major_faults_per_mib).map(|(a, b)| a + b);
    Columns::new(&api.rows)
        .text("interface", |row| format!("  {}", row.interface))
        .text("verdict", |row| results.get(row.result).map(verdict_word))
        .text("accepted", |row| results.get(row.result).map(|result| CheckId::list(&result.accepted, " ")))
        .value("MB/s", |row| or_dash(row.mb_per_s, |v| with_supported_digits(v, row.mb_per_s_interval)))
        .value("±95 %", |row| or_dash(row.mb_per_s, |v| half_width(v, row.mb_per_s_interval)))
        .value("synced", |row| {
            let synced =
                || or_dash(row.synced_mb_per_s, |v| with_supported_digits(v, row.synced_mb_per_s_interval));
            row.stored_after.is_some().then(synced)
        })
        .value("p50", |row| time(row.p50_ns))
        .value("p99", |row| time(row.p99_ns))
        .value("user", |row| fine(row.user_ns_per_byte))
        .value("kernel", |row| fine(row.system_ns_per_byte))
        .value("calls", |row| or_dash(row.calls_per_mib.clone().ok(), show_rate))
        .value("faults", |row| or_dash(faults(row), show_rate))
        .text("device", |row| match &row.device_bytes_per_byte {
            Ok([read, written]) if *read > COVERAGE_TOLERANCE && *written > COVERAGE_TOLERANCE => {
                format!("{read:.2} + {written:.2}")
            }
            Ok([read, written]) => format!("{:.2}", read + written),
            Err(_) => "-".into(),
        })
        .grouped(
            |row| &row.work,
            &["accepted", "faults", "calls", "p50", "p99", "user", "kernel", "device", "synced"],
        )
}

/// Returns a row for each target under the name of its test.
pub(crate) fn target_table(targets: &Targets, measured: &[Measured]) -> Table {
    let rows = targets.rows.iter().map(|row| RowWithResult::new(row, measured.get(row.result)));
    Columns::new(rows)
        .text("test", |row| format!("  {}", target_name(targets, row.row.target)))
        .text("verdict", |row| row.result.map(verdict_mark))
        .value("MB/s", RowWithResult::mb_per_s)
        .value("IOPS", RowWithResult::iops)
        .value("±95 %", RowWithResult::half_width)
        .value("p50", |row| row.percentile("50"))
        .value("p99", |row| row.percentile("99"))
        .text("against the first", |row| row.against().map(describe_pair))
        .text("faster", |row| row.against().map(|pair| faster_target(targets, row.row.target, pair)))
        .grouped(|row| &row.row.test, &["p50", "p99", "±95 %", "MB/s", "verdict"])
}

fn target_name(targets: &Targets, at: usize) -> &str {
    targets.names.get(at).map_or("-", String::as_str)
}

/// A row of a study with its result.
struct RowWithResult<'r, R> {
    row: &'r R,
    result: Option<&'r Measured>,
    /// Rates of all directions together; `None` without a result, or if a finding invalidates it.
    total: Option<&'r Rates>,
}

impl<'r> RowWithResult<'r, TargetRow> {
    fn against(&self) -> Option<&'r Pair> {
        self.result.and(self.row.against.as_ref())
    }
}

impl<'r, R> RowWithResult<'r, R> {
    fn new(row: &'r R, result: Option<&'r Measured>) -> Self {
        Self { row, result, total: result.filter(|r| !r.void).and_then(|r| r.total.as_ref()) }
    }

    fn mb_per_s(&self) -> Option<String> {
        self.total.map(|total| with_supported_digits(total.mb_per_s, total.mb_per_s_interval))
    }

    fn iops(&self) -> Option<String> {
        self.result?;
        Some(
            self.total.map_or_else(
                || NO_NUMBER.into(),
                |total| with_supported_digits(total.iops, total.iops_interval),
            ),
        )
    }

    fn half_width(&self) -> Option<String> {
        self.total.map(|total| half_width(total.iops, total.iops_interval))
    }

    fn percentile(&self, rank: &str) -> Option<String> {
        self.total?;
        only_direction(self.result?).map(|figures| percentile(&figures.latency_ns.percentiles, rank))
    }
}

/// Returns the figures of a result with a single direction; `None` with several, because percentiles exist only per
/// direction.
fn only_direction(result: &Measured) -> Option<&Figures> {
    let mut all = directions_without_sync(result).map(|(_, figures)| figures);
    all.next().filter(|_| all.next().is_none())
}

/// Formats the change of the rate and its interval: `+7.4 % (+3.1 % to +12.0 %)`.
fn describe_pair(pair: &Pair) -> String {
    let Some(metric) = pair.metrics.first() else { return "-".into() };
    let interval = change_ends(metric).map_or_else(String::new, |ends| format!(" ({ends})"));
    format!("{}{interval}", show_change(metric.ratio))
}

/// Names the faster of the two targets, or returns the answer if neither is faster.
fn faster_target(targets: &Targets, own: usize, pair: &Pair) -> String {
    match pair.metrics.first().map_or_else(|| pair.refusal(), |m| m.answer) {
        ComparisonAnswer::Faster => target_name(targets, own).into(),
        ComparisonAnswer::Slower => target_name(targets, 0).into(),
        ComparisonAnswer::Same => "neither".into(),
        word @ (ComparisonAnswer::NoDifferenceSeen
        | ComparisonAnswer::CannotTell
        | ComparisonAnswer::Incomparable
        | ComparisonAnswer::Invalid) => word.word().into(),
    }
}

/// Returns a row for each number of hosts.
pub(crate) fn host_count_table(scaling: &Scaling, measured: &[Measured]) -> Table {
    let knee = scaling.knee.filter(|knee| knee.reached).map(|knee| knee.hosts);
    let text = |text: String| text;
    let half = |[low, high]: [f64; 2]| show_share((high - low) / 2.0);
    Columns::new(scaling.rows.iter().map(|row| RowWithResult::new(row, measured.get(row.result))))
        .text("hosts", |row| {
            format!("{}{}", row.row.hosts, if knee == Some(row.row.hosts) { " knee" } else { "" })
        })
        .text("verdict", |row| or_dash(row.result, verdict_mark))
        .value("MB/s", |row| or_dash(row.mb_per_s(), text))
        .value("IOPS", |row| or_dash(row.iops(), text))
        .value("±95 %", |row| or_dash(row.half_width(), text))
        .value("p50", |row| or_dash(row.percentile("50"), text))
        .value("p99", |row| or_dash(row.percentile("99"), text))
        .value("per host", |row| or_dash(row.total.and(row.row.iops_per_host), show_rate))
        .value("efficiency", |row| or_dash(row.total.and(row.row.efficiency), show_share))
        .text("±95 %", |row| or_dash(row.total.and(row.row.efficiency_interval), half))
        .table(&["p50", "p99", "±95 %", "MB/s", "±95 %", "verdict"])
}

/// Maximum number of loads in the short table.
pub(crate) const MAX_LOADS: usize = 12;

/// Share of the capacity at which the latency is quoted if there is no latency target.
const QUOTED_SHARE: f64 = 0.7;

/// Returns the loads to show, ascending. If there are too many, chooses the loads that support the answer, both ends, the
/// knee, and the loads nearest to the answer.
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
    let distance = |to: f64| move |at: &usize| (points[*at].offered_iops.max(1) as f64 / to).ln().abs();
    let nearest = |to: f64| {
        let mut all: Vec<usize> = (0..points.len()).collect();
        all.sort_by(|a, b| distance(to)(a).total_cmp(&distance(to)(b)));
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
    let target_column = format!("p{}", curve.percentile());
    let drop_order = ["device depth", "late", "mean", "p50", "p99.9", "served/s", "p99"];
    let drop_order: Vec<&str> = drop_order.into_iter().filter(|name| *name != target_column).collect();
    Columns::new(shown_loads(curve, all))
        .value("load", |point| share_of_capacity(point, results))
        .text("verdict", |point| results.get(point.result).map(verdict_mark))
        .value("offered/s", |point| show_rate(point.offered_iops as f64))
        .value("served/s", |point| or_dash(point.achieved_iops, show_rate))
        .value("mean", |point| or_dash(point.mean_ns, show_ns))
        .value("p50", |point| percentile_or_side(point, curve, "50"))
        .value("p99", |point| percentile_or_side(point, curve, "99"))
        .value("p99.9", |point| percentile_or_side(point, curve, "99.9"))
        .value("late", |point| or_dash(point.lateness_share(curve.percentile()), show_share))
        .value("device depth", |point| or_dash(point.device_depth, show_rate))
        .text("state", |point| describe_state(point, curve))
        .table(&drop_order)
}

/// Returns the load as a share of the capacity. If a finding invalidates the capacity, returns the
/// share that is part of the result's name.
fn share_of_capacity(point: &LoadPoint, results: &[Measured]) -> String {
    let named = || Some(results.get(point.result)?.name.split_once(" of capacity: ")?.0.to_owned());
    or_dash(point.share.map(show_share).or_else(named), |share| share)
}

/// Formats a percentile of a load. With too few operations for the percentile of the target, returns the side of the target that the runs
/// prove: `<= 2.00 ms` or `> 2.00 ms`.
fn percentile_or_side(point: &LoadPoint, curve: &LoadCurve, rank: &str) -> String {
    match (&curve.latency_target, point.met) {
        (Some(target), Some(met)) if target.percentile == rank && point.has_too_few_operations(rank) => {
            format!("{} {}", if met { "<=" } else { ">" }, show_ns(target.latency_ns as f64))
        }
        _ => percentile(&point.percentiles_ns, rank),
    }
}

/// Describes a load: `met`, `overload, missed`, `open: 1 run`, ... Includes the percentile of the target if the table has no column for it.
fn describe_state(point: &LoadPoint, curve: &LoadCurve) -> String {
    let mut parts = Vec::new();
    let rank = curve.percentile();
    let shown = percentile_or_side(point, curve, rank);
    if !["50", "99", "99.9"].contains(&rank) && shown != "-" {
        parts.push(format!("p{rank} {shown}"));
    }
    match point.state {
        LoadState::Served | LoadState::Late => {}
        LoadState::Overload => parts.push("overload".into()),
        LoadState::Void => parts.push("void".into()),
    }
    let undecided_reason = curve.latency_target.as_ref().and_then(|target| point.undecided_reason(target));
    match (point.met, undecided_reason) {
        (Some(met), _) => parts.push(if met { "met".into() } else { "missed".into() }),
        (None, Some(why)) => parts.push(format!("open: {}", why.describe()[0])),
        (None, None) => {}
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
        headline_results: Vec::new(),
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

#[test]
fn the_words_of_a_load_agree_with_its_figures() {
    let mut curve = example_curve([1_000], Some(500), None);
    curve.points[0].met = None;
    let mut row = |change: fn(&mut LoadPoint)| {
        change(&mut curve.points[0]);
        let point = &curve.points[0];
        (percentile_or_side(point, &curve, "99"), describe_state(point, &curve))
    };
    let with = |figure: &str, state: &str| (figure.to_owned(), state.to_owned());
    assert_eq!(row(|_| {}), with("-", "open: too short"));
    assert_eq!(row(|p| p.met = Some(false)), with("> 1.00 ms", "missed"));
    assert_eq!(row(|p| p.met = Some(true)), with("<= 1.00 ms", "met"));
    assert_eq!(
        row(|p| {
            p.met = None;
            p.percentiles_ns.insert("99".into(), Some(1_100_000));
            p.service_percentiles_ns.insert("99".into(), Some(1_090_000));
        }),
        with("1.10 ms", "open: may meet")
    );
    assert_eq!(row(|p| p.runs = 1), with("1.10 ms", "open: 1 run"));
    assert_eq!(
        row(|p| _ = p.service_percentiles_ns.insert("99".into(), Some(700_000))),
        with("1.10 ms", "open: late")
    );
    assert_eq!(
        row(|p| {
            p.runs = 3;
            p.percentiles_ns.insert("99".into(), Some(900_000));
        }),
        with("900 us", "open: may miss")
    );
    assert_eq!(
        row(|p| (p.state, p.percentiles_ns) = (LoadState::Overload, std::collections::BTreeMap::new())),
        with("-", "overload, open: backlog")
    );
    assert_eq!(row(|p| p.met = Some(false)), with("-", "overload, missed"));
    assert_eq!(row(|p| (p.state, p.met) = (LoadState::Void, None)), with("-", "void"));
}

#[test]
fn layers_fit_80_columns_with_the_change_from_row_to_row() -> serde_json::Result<()> {
    let layers: Layers = serde_json::from_str(include_str!("../../tests/golden/pieces/layers.json"))?;
    let table = layer_table(&layers, &[]);
    let (lines, left_out) = table.lines(80);
    assert!(
        lines.iter().any(|line| line.ends_with("215,000 x 8K            0  direct x 3.14")),
        "{lines:#?}"
    );
    assert!(left_out.contains(&"95 % interval") && !left_out.contains(&"against"), "{left_out:?}");
    Ok(())
}
