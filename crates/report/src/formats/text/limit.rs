//! The load curve as a table and a small plot: what each offered load became, the knee, and the latency target.
//!
//! In a report of `fathom limit` it replaces the table of results. If there are many loads, only those next to the answer are shown.

use crate::command::how_to_see_all;
use crate::page::{Page, verdict_mark};
use crate::table::Table;
use model::load::{LoadCurve, LoadPoint, LoadState};
use model::report::{Measured, Report};
use model::units::{show_ns, show_rate, show_share};

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
/// Columns that leave where there is no room, the first of them first.
const LOAD_DROP_ORDER: [usize; 7] = [9, 8, 4, 5, 7, 3, 6];
/// Columns and rows of the drawing at most.
const PLOT_WIDTH: usize = 64;
const PLOT_HEIGHT: usize = 8;
/// Columns beside the drawing.
const PLOT_LABEL_WIDTH: usize = 13;
/// Loads that the table has where not all are wanted.
const MAX_LOADS: usize = 12;
/// The load whose latency a curve without a target is about, by the capacity.
const QUOTED_SHARE: f64 = 0.7;

pub(super) fn show_load_curve(out: &mut Page, curve: &LoadCurve, report: &Report, all: bool) {
    let shown = shown_loads(curve, all);
    out.table(&load_table(curve, &report.results, all));
    for words in state_legend(&shown) {
        out.prose("", "  ", &words);
    }
    if shown.len() < curve.points.len() {
        let (some, of) = (shown.len(), curve.points.len());
        let how = how_to_see_all(report);
        out.prose("", "  ", &format!("{some} of {of} loads, those that matter most: {how}"));
    }
    if let Some(capacity) = curve.capacity_iops {
        let interval = curve.capacity_interval.map_or_else(String::new, |[low, high]| {
            format!(" (95 % interval {} to {})", show_rate(low), show_rate(high))
        });
        out.prose(
            "  ",
            "    ",
            &format!("Capacity: {} operations/s in a closed loop{interval}.", show_rate(capacity)),
        );
    }
    if let Some(words) = describe_knee(curve) {
        out.prose("  ", "    ", &words);
    }
    if report.answer.as_ref().is_none_or(|answer| answer.sentence != curve.sentence) {
        out.prose("  ", "    ", &curve.sentence);
    }
    out.line("");
    if all {
        let width = out.width().saturating_sub(PLOT_LABEL_WIDTH).min(PLOT_WIDTH);
        for line in draw_curve(curve, width) {
            out.line(&line);
        }
    }
}

/// The loads that are shown, ascending. Where there are too many: those that the answer rests on, both ends, the knee, and what lies
/// nearest to the answer.
fn shown_loads(curve: &LoadCurve, all: bool) -> Vec<&LoadPoint> {
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

/// What stands in the table, in sentences: each state that it has once.
fn state_legend(shown: &[&LoadPoint]) -> Vec<String> {
    let has = |state| shown.iter().any(|p| p.state == state);
    let of_states = [
        (
            LoadState::Overload,
            "overload: more operations arrived than were served, so latency grows as long as the run \
             lasts, and is withheld.",
        ),
        (LoadState::Void, "void: a finding withholds what was measured at this load."),
    ];
    let first = "Latencies count from the scheduled start of an operation, so they are at most too long; late: the share that fathom's \
                 own lateness adds to the percentile of the target (without one, p99); - = not enough samples, or overload.";
    let states = of_states.into_iter().filter(|(state, _)| has(*state)).map(|(_, words)| words);
    std::iter::once(first).chain(states).map(str::to_owned).collect()
}

/// A row for each load that was offered, or for those that matter most.
pub(super) fn load_table(curve: &LoadCurve, results: &[Measured], all: bool) -> Table {
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

/// `met`, `overload, missed`, ...; with the percentile of the target where no column has it.
fn describe_state(point: &LoadPoint, curve: &LoadCurve) -> String {
    let mut words = Vec::new();
    let rank = curve.percentile();
    if !["50", "99", "99.9"].contains(&rank)
        && let Some(ns) = point.percentiles_ns.get(rank).copied().flatten()
    {
        words.push(format!("p{rank} {}", show_ns(ns as f64)));
    }
    match point.state {
        LoadState::Served | LoadState::Late => {}
        LoadState::Overload => words.push("overload".into()),
        LoadState::Void => words.push("void".into()),
    }
    match point.met {
        Some(met) => words.push(if met { "met".into() } else { "missed".into() }),
        None if curve.latency_target.is_some() && point.state != LoadState::Void => {
            words.push("open".into());
        }
        None => {}
    }
    words.join(", ")
}

fn describe_knee(curve: &LoadCurve) -> Option<String> {
    let knee = curve.knee?;
    let share = knee.share.map_or_else(String::new, |s| format!(", {} of the capacity", show_share(s)));
    let load = format!("{} operations/s{share}", show_rate(knee.iops));
    Some(if knee.reached {
        format!("Knee: {load}. Beyond it 1 % more load adds more than 1 % to the mean latency.")
    } else {
        format!("Knee: not below {load}. Up to there 1 % more load adds less than 1 % to the mean latency.")
    })
}

/// The percentile over the load in so many columns, on a logarithmic scale: a mark for each load, `!` where it is overload; the latency target as a line.
fn draw_curve(curve: &LoadCurve, width: usize) -> Vec<String> {
    let rank = curve.percentile();
    let value = |p: &LoadPoint| p.percentiles_ns.get(rank).copied().flatten().map(|ns| (ns.max(1)) as f64);
    let latency_target = curve.latency_target.as_ref().map(|p| p.latency_ns.max(1) as f64);
    let seen: Vec<f64> = curve.points.iter().filter_map(value).chain(latency_target).collect();
    let most = curve.points.iter().filter_map(|p| p.share).fold(1.0, f64::max);
    let (low, high) = seen.iter().fold((f64::MAX, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
    if curve.points.iter().filter_map(value).count() < 3 || curve.capacity_iops.is_none() {
        return Vec::new();
    }
    let row = |ns: f64| {
        let part = (ns / low).ln() / (high / low).ln().max(f64::MIN_POSITIVE);
        PLOT_HEIGHT - 1 - (part * (PLOT_HEIGHT - 1) as f64).round() as usize
    };
    let mut cells = vec![vec![' '; width + 1]; PLOT_HEIGHT];
    let mut put = |row: usize, column: usize, mark: char| {
        if let Some(cell) = cells.get_mut(row).and_then(|r| r.get_mut(column)) {
            *cell = mark;
        }
    };
    let line = latency_target.map(row);
    if let Some(row) = line {
        for column in 0..=width {
            put(row, column, '-');
        }
    }
    for point in &curve.points {
        let Some(share) = point.share else { continue };
        let column = (share / most * width as f64).round() as usize;
        match value(point) {
            Some(ns) => put(row(ns), column, '*'),
            None if point.state == LoadState::Overload => put(0, column, '!'),
            None => {}
        }
    }
    let label = |at: usize| match at {
        0 => show_ns(high),
        at if Some(at) == line => latency_target.map_or_else(String::new, show_ns),
        at if at == PLOT_HEIGHT - 1 => show_ns(low),
        _ => String::new(),
    };
    let mut lines = vec![format!(
        "  p{rank} over load (* measured, ! overload{})",
        if line.is_some() { ", --- target" } else { "" }
    )];
    lines.extend(cells.iter().enumerate().map(|(at, row)| {
        let drawn: String = row.iter().collect();
        format!("  {:>8} |{}", label(at), drawn.trim_end())
    }));
    lines.push(format!("  {:>8} +{}", "", "-".repeat(width + 1)));
    let end = format!("{} of capacity", show_share(most));
    lines.push(format!("  {:>8} 0 %{end:>width$}", "", width = width.saturating_sub(1)));
    lines.push(String::new());
    lines
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
    let latency_target = model::load::MetLoad {
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
fn of_many_loads_those_are_shown_that_the_answer_rests_on() {
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
    // Without a target the load that is quoted, at 70 % of the capacity.
    let plain = shown(&example_curve(thousands(), None, None), false);
    assert!(plain.len() == MAX_LOADS && plain.contains(&7_000), "{plain:?}");
    // A forged knee that is no number, and no load at all.
    let nowhere = model::load::Knee { iops: f64::NAN, share: None, reached: false };
    let forged =
        LoadCurve { knee: Some(nowhere), capacity_iops: None, ..example_curve(thousands(), None, None) };
    assert_eq!(shown(&forged, false).len(), MAX_LOADS);
    assert_eq!(shown(&example_curve([], Some(1), None), false), [0; 0]);
    assert_eq!(shown(&example_curve(1..=12, Some(1), None), false).len(), 12, "twelve are not too many");
}
