//! Latencies of a result: where operations lie, how rare the slow ones are, and percentiles as a table.
//!
//! For: one axis of latency under two drawings. Not for: their course over time ([`super::course`]).

use super::directions::{self, Direction};
use super::page::{folded, key};
use super::plot::axis::{Axis, SIDE, Tick};
use super::plot::{Label, Plot, density, dots, line, spread_labels};
use super::table;
use super::words::{time, time_tick};
use crate::table::Table;
use model::report::{LatencyBuckets, Measured};
use model::units::{show_count, show_share};

/// Share of the operations that are faster than the axis begins with.
const OMITTED_SHARE: f64 = 1e-4;
/// Percentiles that are named in the drawing.
const NAMED_RANKS: [&str; 5] = ["50", "90", "99", "99.9", "99.99"];
/// Those that are in a small one, by how their words begin.
const NAMED_RANKS_SMALL: [&str; 2] = ["p50 ", "p99 "];
/// Marks that a small one has room for.
const MAX_TICKS_SMALL: usize = 3;
/// Percentiles that the table has.
const TABLE_RANKS: [&str; 6] = ["50", "90", "95", "99", "99.9", "99.99"];
/// Runs whose percentiles are dots of their own.
const MAX_RUN_DOTS: usize = 40;

/// The drawings; nothing where no histogram is known.
pub(super) fn latency_drawings(result: &Measured, link: &str) -> String {
    let all = histograms(result);
    if all.is_empty() {
        return percentile_table(result);
    }
    let axis = Axis::log(all.iter().flat_map(|(_, of)| histogram_range(of)));
    let device = device_mean(result).filter(|_| result.runs.iter().any(|r| r.device.is_some()));
    let mut out = key(&key_items(&all, result, device.is_some()));
    out += &draw_densities(&all, &axis, device, link).html();
    out += &draw_tails(&all, (&axis, decades(&all, result)), result, link).html();
    out + &folded("Percentiles as a table", &percentile_table(result))
}

/// Axes that the tails of several results can be compared on.
pub(super) struct CommonAxes {
    latency: Axis,
    deepest: f64,
}

impl CommonAxes {
    /// Of these results; `None` where no histogram is known of any.
    pub(super) fn from_results(results: &[&Measured]) -> Option<Self> {
        let all: Vec<_> = results.iter().map(|result| (*result, histograms(result))).collect();
        let ranges: Vec<f64> =
            all.iter().flat_map(|(_, of)| of).flat_map(|(_, of)| histogram_range(of)).collect();
        let deepest = all.iter().map(|(result, of)| decades(of, result)).fold(1.0, f64::max);
        (!ranges.is_empty()).then(|| Self { latency: Axis::log(ranges.into_iter()), deepest })
    }
}

/// The tail of a result beside others on their axes; `None` where no histogram is known.
pub(super) fn draw_tail_on(result: &Measured, link: &str, beside: &CommonAxes) -> Option<Plot> {
    let all = histograms(result);
    let small = || {
        let plot = draw_tails(&all, (&beside.latency, beside.deepest), result, link);
        // Names of the others have no room, and the numbers stand in the table.
        let is_named = |label: &Label| NAMED_RANKS_SMALL.iter().any(|rank| label.text.starts_with(rank));
        Plot {
            height: 130,
            title: "Share that took longer".into(),
            x: beside.latency.few_ticks(MAX_TICKS_SMALL, time_tick),
            x_title: "Latency (logarithmic)".into(),
            right: spread_labels(plot.right.iter().filter(|l| is_named(l)).cloned().collect(), 110.0),
            ..plot
        }
    };
    (!all.is_empty()).then(small)
}

/// Each direction of which there is a histogram.
fn histograms(result: &Measured) -> Vec<(Direction, &LatencyBuckets)> {
    directions::result_directions(result)
        .filter_map(|d| Some((d, result.latencies.get(d.word).filter(|l| l.count() > 0)?)))
        .collect()
}

fn key_items(
    all: &[(Direction, &LatencyBuckets)],
    result: &Measured,
    device: bool,
) -> Vec<(&'static str, &'static str)> {
    let mut items: Vec<(&str, &str)> = all.iter().map(|(d, _)| (d.line, d.words)).collect();
    if result.runs.len() > 1 {
        let has_tails = result.runs.iter().any(|run| !run.tails_ns.is_empty());
        items.push(if has_tails {
            ("ours thin", "each run, with its percentiles as dots")
        } else {
            ("dot small", "percentiles of each run")
        });
    }
    if device {
        items.push(("device", "mean of the device below"));
    }
    items
}

/// What the axis has to show.
fn histogram_range(of: &LatencyBuckets) -> impl Iterator<Item = f64> {
    let all = of.count() as f64;
    let mut below = 0;
    let first = of.from_ns.iter().zip(&of.ops).find(|(_, ops)| {
        below += **ops;
        below as f64 > OMITTED_SHARE * all
    });
    let last = of.from_ns.last().map(|from| LatencyBuckets::end_ns(*from));
    [first.map(|(from, _)| *from), last].into_iter().flatten()
}

/// Mean time of a request in the topmost device, over all runs.
fn device_mean(result: &Measured) -> Option<f64> {
    let devices = || result.runs.iter().filter_map(|r| r.device);
    let ios: f64 = devices().map(|d| d.ios as f64).sum();
    let busy: f64 = devices().map(|d| d.busy_ms as f64).sum();
    (ios > 0.0 && busy > 0.0).then(|| busy * 1e6 / ios)
}

fn draw_densities(
    all: &[(Direction, &LatencyBuckets)],
    axis: &Axis,
    device: Option<f64>,
    link: &str,
) -> Plot {
    let shares: Vec<_> = all.iter().map(|(d, of)| (*d, density::bucket_shares(of))).collect();
    let y = Axis::from_zero(shares.iter().flat_map(|(_, s)| s.iter().map(|b| b.2)));
    let says = all.iter().map(|(d, of)| format!("{} {}", show_count(of.count() as f64), d.words));
    let mut plot = Plot {
        title: "Share of operations by latency (50 logarithmic buckets a decade)".into(),
        says: format!("Distribution of latency of {}", says.collect::<Vec<_>>().join(", ")),
        height: 150,
        y: y.ticks_down(|v| format!("{} %", super::words::short_number(100.0 * v))),
        x: axis.ticks(time_tick),
        link: format!("{link}-latency"),
        ..Plot::default()
    };
    let mut stops: Vec<(f64, String)> = Vec::new();
    for (direction, shares) in &shares {
        let steps =
            || shares.iter().map(|(from, to, share)| (axis.along(*from), axis.along(*to), y.down(*share)));
        let outline = line::steps(steps());
        if let Some((first, last)) = shares.first().zip(shares.last()) {
            let ground = |ns: f64| (axis.along(ns), axis.along(ns), SIDE);
            let around = [ground(first.0)].into_iter().chain(steps()).chain([ground(last.1)]);
            plot.draw(direction.area, &format!("{}Z", line::steps(around)));
        }
        plot.draw(direction.line, &outline);
        stops.extend(shares.iter().filter(|s| s.2 > 0.0).map(|(from, to, share)| {
            let words =
                format!("{} to {}\n{} of {}", time(*from), time(*to), show_share(*share), direction.words);
            (axis.along((from * to).sqrt()), words)
        }));
    }
    if let Some(ns) = device {
        let at = axis.along(ns);
        plot.draw("device", &line::line([(at, 0.0), (at, SIDE)]));
        let class = if at > 500.0 { "of-device end" } else { "of-device" };
        plot.labels.push(Label { at, text: format!("device mean {}", time(ns)), class });
    }
    stops.sort_by(|a, b| a.0.total_cmp(&b.0));
    plot.stop_at(&stops);
    plot
}

/// Decades of rarity that are drawn: as many as some direction has enough operations for.
fn decades(all: &[(Direction, &LatencyBuckets)], result: &Measured) -> f64 {
    let told = |d: &Direction| d.figures(result).map(|f| &f.latency_ns.percentiles);
    let ranks = all.iter().filter_map(|(d, _)| told(d)).flatten().filter(|(_, ns)| ns.is_some());
    let rarest = all.iter().flat_map(|(_, of)| density::rarity_tail(of)).map(|(_, share)| share);
    let rarest = rarest.chain(ranks.map(|(rank, _)| share_above(rank))).fold(1.0, f64::min);
    // A bit below a whole power is that power.
    (-rarest.log10() - 1e-6).ceil().max(1.0)
}

/// The share that takes longer than a percentile.
fn share_above(rank: &str) -> f64 {
    rank.parse::<f64>().map_or(f64::NAN, |p| 1.0 - p / 100.0)
}

fn draw_tails(
    all: &[(Direction, &LatencyBuckets)],
    (axis, deepest): (&Axis, f64),
    result: &Measured,
    link: &str,
) -> Plot {
    let y = Axis::linear(0.0, deepest);
    let down = |share: f64| y.along(-share.log10());
    let mut plot = Plot {
        title: "Share that took longer (each step down is ten times rarer)".into(),
        says: format!("Tail of latency: {}", percentiles_sentence(result)),
        height: 210,
        y: (0..=deepest as i32).map(|zeros| rarity(zeros, y.along(f64::from(zeros)))).collect(),
        x: axis.ticks(time_tick),
        x_title: "Latency, from submission to completion (logarithmic)".into(),
        link: format!("{link}-latency"),
        ..Plot::default()
    };
    let mut stops = Vec::new();
    // Behind those of all runs together.
    for (direction, _) in all {
        for run in result.runs.iter().filter(|_| result.runs.len() > 1) {
            let places =
                density::rarity_tail_of_run(run.tails_ns.get(direction.word).map_or(&[], Vec::as_slice));
            let places = places.map(|(ns, share)| (axis.along(ns), down(share)));
            plot.draw(&format!("{} thin", direction.line), &line::line(places));
        }
    }
    for (direction, of) in all {
        let tail = density::rarity_tail(of);
        plot.draw(
            direction.line,
            &line::line(tail.iter().map(|(ns, share)| (axis.along(*ns), down(*share)))),
        );
        stops.extend(tail.iter().map(|(ns, share)| {
            (
                axis.along(*ns),
                format!("{} of {} took longer than {}", describe_share(*share), direction.words, time(*ns)),
            )
        }));
        percentile_dots(&mut plot, *direction, result, axis, &down);
    }
    plot.right = spread_labels(std::mem::take(&mut plot.right), 72.0);
    stops.sort_by(|a, b| a.0.total_cmp(&b.0));
    plot.stop_at(&stops);
    plot
}

fn percentile_dots(
    plot: &mut Plot,
    direction: Direction,
    result: &Measured,
    axis: &Axis,
    down: &dyn Fn(f64) -> f64,
) {
    let Some(figures) = direction.figures(result) else { return };
    if (2..=MAX_RUN_DOTS).contains(&result.runs.len()) {
        let of_runs = result.runs.iter().filter_map(|run| run.percentiles_ns.get(direction.word));
        let small = of_runs.flat_map(|run| {
            NAMED_RANKS.iter().filter_map(|rank| Some((run.get(*rank).copied().flatten()?, *rank)))
        });
        let small = small.map(|(ns, rank)| (axis.along(ns as f64), down(share_above(rank))));
        plot.draw(if direction.is_first() { "dot small" } else { "dot small of-third" }, &dots::dots(small));
    }
    let named = || {
        NAMED_RANKS
            .iter()
            .filter_map(|rank| Some((*rank, figures.latency_ns.percentiles.get(*rank).copied().flatten()?)))
    };
    let places = named().map(|(rank, ns)| (axis.along(ns as f64), down(share_above(rank))));
    plot.draw(if direction.is_first() { "dot" } else { "dot of-third" }, &dots::dots(places));
    plot.right.extend(named().map(|(rank, ns)| Label {
        at: down(share_above(rank)),
        text: format!("p{rank} {}", time(ns as f64)),
        class: direction.ink,
    }));
}

/// `1 in 10³`, by the number of zeros.
fn rarity(zeros: i32, at: f64) -> Tick {
    const RAISED: [&str; 10] = ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"];
    let label = match usize::try_from(zeros).unwrap_or(0) {
        0 => "all".into(),
        1 => "1 in 10".into(),
        2 => "1 in 100".into(),
        more => format!("1 in 10{}", RAISED.get(more).unwrap_or(&"ⁿ")),
    };
    Tick { at, label }
}

fn describe_share(share: f64) -> String {
    if share >= 0.1 { show_share(share) } else { format!("1 in {}", show_count(1.0 / share)) }
}

/// The percentiles in words.
fn percentiles_sentence(result: &Measured) -> String {
    let of = |d: Direction| {
        let figures = d.figures(result)?;
        let named = NAMED_RANKS.iter().filter_map(|rank| {
            let ns = figures.latency_ns.percentiles.get(*rank).copied().flatten()?;
            Some(format!("p{rank} {}", time(ns as f64)))
        });
        Some(format!("{}: {}", d.words, named.collect::<Vec<_>>().join(", ")))
    };
    directions::result_directions(result).filter_map(of).collect::<Vec<_>>().join("; ")
}

/// Percentiles of all runs together and of each, withheld ones as a dash.
fn percentile_table(result: &Measured) -> String {
    let mut of =
        Table::new(&["latency", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"], &[]);
    of = of.aligned(9, false);
    for direction in directions::result_directions(result) {
        let Some(figures) = direction.figures(result) else { continue };
        let latency = &figures.latency_ns;
        let told = |ns: Option<u64>| super::words::time_or_dash(ns.map(|ns| ns as f64));
        let ranks = |of: &std::collections::BTreeMap<String, Option<u64>>| {
            TABLE_RANKS.map(|rank| told(of.get(rank).copied().flatten()))
        };
        let ends = [direction.words.to_owned(), time(latency.min as f64), time(latency.mean)];
        of.add(ends.into_iter().chain(ranks(&latency.percentiles)).chain([time(latency.max as f64)]));
        for run in result.runs.iter().take(MAX_RUN_DOTS) {
            let Some(own) = run.percentiles_ns.get(direction.word) else { continue };
            let name = format!("  run {}", run.run.saturating_add(1));
            of.add([name, String::new(), String::new()].into_iter().chain(ranks(own)).chain([String::new()]));
        }
    }
    table::table(
        "Percentiles of latency, all runs together and each; - where fewer than ten operations lie beyond",
        &of,
    )
}

#[test]
fn the_tail_of_each_run_lies_behind_that_of_all() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/valid.json");
    let report: model::report::Report = serde_json::from_str(golden)?;
    let mut result = report.results.first().ok_or("no result")?.clone();
    let word = directions::result_directions(&result).next().ok_or("no direction")?.word;
    let of = LatencyBuckets { from_ns: vec![1000.0, 10_000.0], ops: vec![900, 100] };
    result.latencies = [(word.to_owned(), of)].into();
    let first = result.runs.first().ok_or("no run")?.clone();
    let run = |ns: u64| {
        // A tenth took longer than this.
        let tail = (1..=10).map(|k| (k == 1 || k == 10).then_some(ns)).collect();
        model::report::RunFigures { tails_ns: [(word.to_owned(), tail)].into(), ..first.clone() }
    };
    result.runs = vec![run(2000), run(3000)];
    let (all, axis) = (histograms(&result), Axis::log([1000.0, 11_000.0].into_iter()));
    let plot = draw_tails(&all, (&axis, 2.0), &result, "x");
    let paths: Vec<&str> = plot.marks.split("<path ").skip(1).collect();
    let is =
        |at: usize, class: &str| paths.get(at).is_some_and(|p| p.starts_with(&format!("class=\"{class}\"")));
    assert!(is(0, "ours thin") && is(1, "ours thin") && is(2, "ours"), "{paths:?}");
    // Single places, since what lies between them is withheld: at a tenth, in the middle of two decades.
    for (at, ns) in [(0, 2000.0), (1, 3000.0)] {
        let place = format!(
            "M{} 500h.01",
            line::line([(axis.along(ns), 0.0)]).trim_start_matches('M').split(' ').next().ok_or("")?
        );
        assert!(paths[at].contains(&place), "{place}: {}", paths[at]);
    }
    Ok(())
}
