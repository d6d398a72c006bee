//! The cards of single results, each with latencies, time series and ledger.
//!
//! - Latencies: their distribution, and below it the rarity of slow operations on the same axis.
//! - The ledger as a picture: the width of each stage shows what was issued, what was charged, and what each layer completed. Merges,
//!   splits, caches and the legs of a RAID are visible at once.

use super::page::{card, folded, key, time, time_tick, with_caveat, with_micro_sign};
use super::plot::{Axis, Flow, Label, Level, Plot, SIDE, flow, spread_labels};
use super::time_series::{Direction, Events, draw_time_series, result_directions};
use super::{page, plot};
use crate::view::numbers::{accepted_suffix, percentile_ns, with_supported_digits};
use crate::view::table::{Columns, Table, or_dash};
use askama::Template;
use model::figures::{Account, IoTotals, LedgerEntry};
use model::report::{LatencyBuckets, Measured, Report, Verdict};
use model::units::{show_bytes, show_count, show_share};

/// Maximum number of results with plots, to keep the page small.
const MAX_PICTURES: usize = 16;

/// Returns the cards of all results: a single result has a card for each plot, several results have one card each.
pub(super) fn result_cards(report: &Report) -> String {
    match report.results.as_slice() {
        [only] => single_result(report, only),
        all => {
            let drawn =
                all.iter().take(MAX_PICTURES).enumerate().map(|(at, result)| result_card(report, result, at));
            let rest = all.len().saturating_sub(MAX_PICTURES);
            let note = format!(
                "Results without plots: {rest}. They are in the table above, and the JSON has all values."
            );
            let more = (rest > 0).then(|| card("More results", &[note], ""));
            drawn.chain(more).collect()
        }
    }
}

fn single_result(report: &Report, result: &Measured) -> String {
    let mut out = String::new();
    let latency = with_caveat(report, result, latency_drawings(result, "r0"));
    if !latency.is_empty() {
        let lead = [
            "Above: how latencies are distributed. Below: how rare slow operations are. Percentiles with fewer than ten operations above them are not drawn.",
        ];
        out += &card("Latency", &lead, &latency);
    }
    let time_series = draw_time_series(result, &Events::from_result(report, result), "r0");
    let time_series = with_caveat(report, result, time_series);
    if !time_series.is_empty() {
        out += &card("Over time", &time_series_notes(result), &time_series);
    }
    let ledger = ledger_pictures(result);
    if !ledger.is_empty() {
        out += &card("What each layer counted", &[LEDGER_EXPLAINED], &ledger);
    }
    out
}

/// Explains the picture of a ledger.
const LEDGER_EXPLAINED: &str = "From the top: what fathom issued, what the kernel charged to it, and what each block device completed, including warm-up \
                      and drain. Fewer operations with equal bytes: they were merged; more: split. Fewer bytes: a layer above did not pass on the rest, for example a cache.";

/// Returns the notes on the time series: how to use its plot, whether the rate was steady, and which runs were measured again.
fn time_series_notes(result: &Measured) -> Vec<String> {
    let steady = result.steadiness.as_ref().map(|s| format!("{}: {}", s.state.word(), s.sentence));
    let axis = "All runs on one axis, in the order in which they ran. Drag to zoom, Escape to see all; arrow keys move the crosshair.";
    let disturbed = result.disturbed.iter().filter(|d| !d.counts).filter_map(|d| {
        let why = d.why.as_ref()?;
        Some(format!(
            "Run {}, attempt {}, was measured again: {why}.",
            d.run.saturating_add(1),
            d.attempt.saturating_add(1)
        ))
    });
    std::iter::once(axis.to_owned()).chain(steady).chain(disturbed).collect()
}

fn result_card(report: &Report, result: &Measured, at: usize) -> String {
    let link = format!("r{at}");
    let rate = result.quoted_rate();
    let number = rate.value.map(|v| format!("{} {}", with_supported_digits(v, rate.interval), rate.unit));
    let verdict = if result.void { Verdict::Invalid } else { result.verdict };
    let word = format!("{}{}", verdict.word(), accepted_suffix(&result.accepted));
    let name = if result.renamed {
        format!("{word}, as measured: {}", result.true_name)
    } else {
        format!("{word}: {}", result.true_name)
    };
    let lead = [
        format!("{}{name}.", number.map_or_else(String::new, |n| format!("{n}, "))),
        with_micro_sign(&format!("Limited by: {}. {}", result.limiter.shown_name(), result.limiter.sentence)),
    ];
    let latency = with_caveat(report, result, latency_drawings(result, &link));
    let time_series = draw_time_series(result, &Events::from_result(report, result), &link);
    let time_series = with_caveat(report, result, time_series);
    let ledger = ledger_pictures(result);
    // The ledger has a heading for each direction below this heading.
    let ledger = if ledger.is_empty() { ledger } else { format!("<h3>What each layer counted</h3>{ledger}") };
    let ledger = folded("What each layer counted", &ledger);
    let body = if latency.is_empty() && time_series.is_empty() {
        ledger
    } else {
        // There is no common time series for the runs of several hosts. The session of each host has its own.
        let time_series = if time_series.is_empty() {
            time_series
        } else {
            format!("<div><h3>Over time</h3>{time_series}</div>")
        };
        // Place the ledger below the latencies, next to the longer time series.
        format!("<div class=\"pair\"><div><h3>Latency</h3>{latency}{ledger}</div>{time_series}</div>")
    };
    card(&result.name, &lead, &body)
}

/// Maximum share of operations that the axis of latency leaves out. These are the fastest operations.
const OMITTED_SHARE: f64 = 1e-4;
/// Distance of labels at the right edge: a line of text, in units of the drawing.
const LABEL_DISTANCE: f64 = 72.0;
/// Distance of labels in a small plot, which has fewer pixels.
const LABEL_DISTANCE_SMALL: f64 = 110.0;
/// Percentiles that are labelled in the plot.
const NAMED_RANKS: [&str; 5] = ["50", "90", "99", "99.9", "99.99"];
/// Percentiles that are labelled in a small plot, by the start of the label.
const NAMED_RANKS_SMALL: [&str; 2] = ["p50 ", "p99 "];
/// Maximum number of ticks in a small plot.
const MAX_TICKS_SMALL: usize = 3;
/// Percentiles in the table.
const TABLE_RANKS: [&str; 6] = ["50", "90", "95", "99", "99.9", "99.99"];
/// Maximum number of runs whose own percentiles are shown. If a result has more runs, the table omits
/// the runs after these, and the plot has no dots for the percentiles of single runs.
const MAX_SHOWN_RUNS: usize = 40;

/// Draws the latencies of a result. Without a histogram, returns only the table of percentiles.
pub(super) fn latency_drawings(result: &Measured, link: &str) -> String {
    let all = histograms(result);
    if all.is_empty() {
        return percentile_table(result);
    }
    let axes = CommonAxes::from_histograms(&all);
    let device = device_mean_ns(result);
    let mut out = key(&key_items(&all, result, device.is_some()));
    out += &draw_densities(&all, &axes.latency, device, link).html();
    out += &draw_tails(&all, &axes, result, link).html();
    out + &folded("Percentiles as a table", &percentile_table(result))
}

/// Axes for the latencies of one or several results.
pub(super) struct CommonAxes {
    latency: Axis,
    /// Number of decades on the axis of rarity: with 3, it ends at 1 in 1,000.
    decades: f64,
}

impl CommonAxes {
    fn from_histograms(all: &[Histogram]) -> Self {
        let latency = Axis::log(all.iter().flat_map(|one| histogram_range(one.buckets)));
        Self { latency, decades: count_decades(all) }
    }

    /// Computes the axes of several results; `None` if none has a histogram.
    pub(super) fn from_results(results: &[&Measured]) -> Option<Self> {
        let all: Vec<Histogram> = results.iter().flat_map(|result| histograms(result)).collect();
        (!all.is_empty()).then(|| Self::from_histograms(&all))
    }
}

/// Draws the tail of a result on common axes; `None` without a histogram.
pub(super) fn draw_tail_on(result: &Measured, link: &str, axes: &CommonAxes) -> Option<Plot> {
    let all = histograms(result);
    let small = || {
        let plot = draw_tails(&all, axes, result, link);
        // A small plot has no room for more labels. The table has the numbers.
        let is_named = |label: &Label| NAMED_RANKS_SMALL.iter().any(|rank| label.text.starts_with(rank));
        let named = plot.right.iter().filter(|label| is_named(label)).cloned().collect();
        Plot {
            height: 130,
            title: "Share that took longer".into(),
            x: axes.latency.few_ticks(MAX_TICKS_SMALL, time_tick),
            x_title: "Latency (logarithmic)".into(),
            right: spread_labels(named, LABEL_DISTANCE_SMALL),
            ..plot
        }
    };
    (!all.is_empty()).then(small)
}

/// The latencies of a direction.
struct Histogram<'r> {
    direction: Direction<'r>,
    buckets: &'r LatencyBuckets,
}

/// Returns the histogram of each direction that has one.
fn histograms(result: &Measured) -> Vec<Histogram<'_>> {
    let known = result_directions(result).filter_map(|direction| {
        let buckets = result.latencies.get(direction.word).filter(|buckets| buckets.count() > 0)?;
        Some(Histogram { direction, buckets })
    });
    known.collect()
}

fn key_items(all: &[Histogram], result: &Measured, has_device: bool) -> Vec<(&'static str, &'static str)> {
    let mut items: Vec<(&str, &str)> =
        all.iter().map(|one| (one.direction.classes.line, one.direction.plural)).collect();
    if result.runs.len() > 1 {
        let has_tails = result.runs.iter().any(|run| !run.tails_ns.is_empty());
        items.push(if has_tails {
            ("ours thin", "each run, with its percentiles as dots")
        } else {
            ("dot small", "percentiles of each run")
        });
    }
    if has_device {
        items.push(("device", "mean of the device below"));
    }
    items
}

/// Returns the lowest and the highest latency that the axis must include.
fn histogram_range(buckets: &LatencyBuckets) -> impl Iterator<Item = f64> {
    let all = buckets.count() as f64;
    let mut below = 0;
    let first = buckets.from_ns.iter().zip(&buckets.ops).find(|(_, ops)| {
        below += **ops;
        below as f64 > OMITTED_SHARE * all
    });
    let last = buckets.from_ns.last().map(|from| LatencyBuckets::end_ns(*from));
    [first.map(|(from, _)| *from), last].into_iter().flatten()
}

/// Returns the mean time of a request in the topmost device, in ns over all runs; `None` without
/// requests.
fn device_mean_ns(result: &Measured) -> Option<f64> {
    let devices = || result.runs.iter().filter_map(|r| r.device);
    let ios: f64 = devices().map(|d| d.ios as f64).sum();
    let busy: f64 = devices().map(|d| d.busy_ms as f64).sum();
    (ios > 0.0 && busy > 0.0).then(|| busy * 1e6 / ios)
}

fn draw_densities(all: &[Histogram], axis: &Axis, device: Option<f64>, link: &str) -> Plot {
    let shares: Vec<_> = all.iter().map(|one| (one.direction, bucket_shares(one.buckets))).collect();
    let y = Axis::from_zero(shares.iter().flat_map(|(_, shares)| shares.iter().map(|one| one.share)));
    let counts =
        all.iter().map(|one| format!("{} {}", show_count(one.buckets.count() as f64), one.direction.plural));
    let mut plot = Plot {
        title: "Share of operations by latency (50 logarithmic buckets a decade)".into(),
        description: format!("Distribution of latency of {}", counts.collect::<Vec<_>>().join(", ")),
        height: 150,
        y: y.ticks_down(|v| format!("{} %", page::short_number(100.0 * v))),
        x: axis.ticks(time_tick),
        link: format!("{link}-latency"),
        ..Plot::default()
    };
    let mut stops: Vec<(f64, String)> = Vec::new();
    for (direction, shares) in &shares {
        let step = |one: &BucketShare| Level {
            from: axis.along(one.from_ns),
            to: axis.along(one.to_ns),
            y: y.down(one.share),
        };
        let steps = || shares.iter().map(step);
        if let Some((first, last)) = shares.first().zip(shares.last()) {
            let ground = |ns: f64| Level { from: axis.along(ns), to: axis.along(ns), y: SIDE };
            let around = [ground(first.from_ns)].into_iter().chain(steps()).chain([ground(last.to_ns)]);
            plot.draw(direction.classes.area, &format!("{}Z", plot::steps(around)));
        }
        plot.draw(direction.classes.line, &plot::steps(steps()));
        stops.extend(shares.iter().filter(|one| one.share > 0.0).map(
            |BucketShare { from_ns, to_ns, share }| {
                let [from, to] = [from_ns, to_ns].map(|ns| time(*ns));
                let stop = format!("{from} to {to}\n{} of {}", show_share(*share), direction.plural);
                (axis.along((from_ns * to_ns).sqrt()), stop)
            },
        ));
    }
    if let Some(ns) = device {
        let at = axis.along(ns);
        plot.draw("device", &plot::line([(at, 0.0), (at, SIDE)]));
        let class = if at > 500.0 { "of-device end" } else { "of-device" };
        plot.labels.push(Label { at, text: format!("device mean {}", time(ns)), class });
    }
    stops.sort_by(|a, b| a.0.total_cmp(&b.0));
    plot.set_crosshair_points(&stops);
    plot
}

/// Returns the number of decades on the axis of rarity: enough for the smallest known share of operations.
fn count_decades(all: &[Histogram]) -> f64 {
    let percentiles = all.iter().flat_map(|one| &one.direction.figures.latency_ns.percentiles);
    let ranks = percentiles.filter(|(_, ns)| ns.is_some());
    let rarest = all.iter().flat_map(|one| rarity_tail(one.buckets)).map(|point| point.share);
    let rarest = rarest.chain(ranks.map(|(rank, _)| share_above(rank))).fold(1.0, f64::min);
    // Ignore rounding errors: a share slightly below a power of ten needs no further decade.
    (-rarest.log10() - 1e-6).ceil().max(1.0)
}

/// Returns the share of operations above a percentile.
fn share_above(rank: &str) -> f64 {
    rank.parse::<f64>().map_or(f64::NAN, |p| 1.0 - p / 100.0)
}

fn draw_tails(all: &[Histogram], axes: &CommonAxes, result: &Measured, link: &str) -> Plot {
    let CommonAxes { latency: axis, decades } = axes;
    let y = Axis::linear(0.0, *decades);
    let down = |share: f64| y.along(-share.log10());
    let mut plot = Plot {
        title: "Share that took longer (each step down is ten times rarer)".into(),
        description: format!("Tail of latency: {}", percentiles_sentence(result)),
        height: 210,
        y: (0..=*decades as i32).map(|zeros| rarity_tick(zeros, y.along(f64::from(zeros)))).collect(),
        x: axis.ticks(time_tick),
        x_title: "Latency, from submission to completion (logarithmic)".into(),
        link: format!("{link}-latency"),
        ..Plot::default()
    };
    let mut stops = Vec::new();
    // Draw single runs first, so that the line of all runs together covers them.
    for Histogram { direction, .. } in all {
        for run in result.runs.iter().filter(|_| result.runs.len() > 1) {
            let places = rarity_tail_of_run(run.tails_ns.get(direction.word).map_or(&[], Vec::as_slice));
            let places = places.map(|point| (axis.along(point.ns), down(point.share)));
            plot.draw(&format!("{} thin", direction.classes.line), &plot::line(places));
        }
    }
    for Histogram { direction, buckets } in all {
        let tail = rarity_tail(buckets);
        plot.draw(
            direction.classes.line,
            &plot::line(tail.iter().map(|point| (axis.along(point.ns), down(point.share)))),
        );
        stops.extend(tail.iter().map(|TailPoint { ns, share }| {
            (
                axis.along(*ns),
                format!("{} of {} took longer than {}", describe_share(*share), direction.plural, time(*ns)),
            )
        }));
        draw_percentile_dots(&mut plot, *direction, result, axis, &down);
    }
    plot.right = spread_labels(std::mem::take(&mut plot.right), LABEL_DISTANCE);
    stops.sort_by(|a, b| a.0.total_cmp(&b.0));
    plot.set_crosshair_points(&stops);
    plot
}

fn draw_percentile_dots(
    plot: &mut Plot,
    direction: Direction,
    result: &Measured,
    axis: &Axis,
    down: &dyn Fn(f64) -> f64,
) {
    if (2..=MAX_SHOWN_RUNS).contains(&result.runs.len()) {
        let of_runs = result.runs.iter().filter_map(|run| run.percentiles_ns.get(direction.word));
        let small = of_runs
            .flat_map(|run| NAMED_RANKS.iter().filter_map(|rank| Some((percentile_ns(run, rank)?, *rank))));
        let small = small.map(|(ns, rank)| (axis.along(ns as f64), down(share_above(rank))));
        plot.draw(if direction.is_first() { "dot small" } else { "dot small of-third" }, &plot::dots(small));
    }
    let percentiles = &direction.figures.latency_ns.percentiles;
    let named = || NAMED_RANKS.iter().filter_map(|rank| Some((*rank, percentile_ns(percentiles, rank)?)));
    let places = named().map(|(rank, ns)| (axis.along(ns as f64), down(share_above(rank))));
    plot.draw(if direction.is_first() { "dot" } else { "dot of-third" }, &plot::dots(places));
    plot.right.extend(named().map(|(rank, ns)| Label {
        at: down(share_above(rank)),
        text: format!("p{rank} {}", time(ns as f64)),
        class: direction.classes.ink,
    }));
}

/// Returns a tick with the label `1 in 10³` for three zeros.
fn rarity_tick(zeros: i32, at: f64) -> Label {
    const RAISED: [&str; 10] = ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"];
    let text = match usize::try_from(zeros).unwrap_or(0) {
        0 => "all".into(),
        1 => "1 in 10".into(),
        2 => "1 in 100".into(),
        more => format!("1 in 10{}", RAISED.get(more).unwrap_or(&"ⁿ")),
    };
    Label::tick(at, text)
}

fn describe_share(share: f64) -> String {
    if share >= 0.1 { show_share(share) } else { format!("1 in {}", show_count(1.0 / share)) }
}

/// Describes the percentiles in a sentence.
fn percentiles_sentence(result: &Measured) -> String {
    let describe = |d: Direction| {
        let named = NAMED_RANKS.iter().filter_map(|rank| {
            let ns = percentile_ns(&d.figures.latency_ns.percentiles, rank)?;
            Some(format!("p{rank} {}", time(ns as f64)))
        });
        format!("{}: {}", d.plural, named.collect::<Vec<_>>().join(", "))
    };
    result_directions(result).map(describe).collect::<Vec<_>>().join("; ")
}

/// Returns the percentiles of all runs together and of each run. A withheld percentile is a dash.
fn percentile_table(result: &Measured) -> String {
    let mut table =
        Table::new(&["latency", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"], &[]);
    table = table.aligned(9, false);
    for direction in result_directions(result) {
        let latency = &direction.figures.latency_ns;
        let cell = |ns: Option<u64>| page::time_or_dash(ns.map(|ns| ns as f64));
        let ranks = |known: &std::collections::BTreeMap<String, Option<u64>>| {
            TABLE_RANKS.map(|rank| cell(percentile_ns(known, rank)))
        };
        let ends = [direction.plural.to_owned(), time(latency.min as f64), time(latency.mean)];
        table.add(ends.into_iter().chain(ranks(&latency.percentiles)).chain([time(latency.max as f64)]));
        for run in result.runs.iter().take(MAX_SHOWN_RUNS) {
            let Some(own) = run.percentiles_ns.get(direction.word) else { continue };
            let name = format!("  run {}", run.run.saturating_add(1));
            table.add(
                [name, String::new(), String::new()].into_iter().chain(ranks(own)).chain([String::new()]),
            );
        }
    }
    page::table(
        "Percentiles of latency, for all runs together and for each run; - where fewer than ten operations took longer",
        &table,
    )
}

/// The plot shows the share of operations that took longer than a latency only if there are at least this many such
/// operations. The same limit applies to percentiles.
const MIN_BEYOND: u64 = 10;

/// The share of operations in a bucket of latencies.
#[derive(Clone, Copy, Debug)]
struct BucketShare {
    from_ns: f64,
    to_ns: f64,
    share: f64,
}

/// Returns the share of operations in each bucket, including empty buckets between others.
fn bucket_shares(buckets: &LatencyBuckets) -> Vec<BucketShare> {
    let all = buckets.count().max(1) as f64;
    let mut out: Vec<BucketShare> = Vec::new();
    for (from_ns, ops) in buckets.from_ns.iter().copied().zip(&buckets.ops) {
        if let Some(BucketShare { to_ns: end_ns, .. }) = out.last().copied()
            && from_ns > 1.001 * end_ns
        {
            out.push(BucketShare { from_ns: end_ns, to_ns: from_ns, share: 0.0 });
        }
        out.push(BucketShare { from_ns, to_ns: LatencyBuckets::end_ns(from_ns), share: *ops as f64 / all });
    }
    out
}

/// A latency, and the share of operations that took longer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TailPoint {
    ns: f64,
    share: f64,
}

/// Returns the share of operations that took longer than each latency. Leaves out latencies that
/// fewer than [`MIN_BEYOND`] operations exceed.
fn rarity_tail(buckets: &LatencyBuckets) -> Vec<TailPoint> {
    let all = buckets.count();
    let mut remaining = all;
    let mut out = Vec::new();
    if let Some(first) = buckets.from_ns.first() {
        out.push(TailPoint { ns: *first, share: 1.0 });
    }
    for (from, ops) in buckets.from_ns.iter().zip(&buckets.ops) {
        remaining = remaining.saturating_sub(*ops);
        if remaining < MIN_BEYOND {
            break;
        }
        out.push(TailPoint { ns: LatencyBuckets::end_ns(*from), share: remaining as f64 / all as f64 });
    }
    out
}

/// Returns the share of a run's operations that took longer than each latency. `tail_ns[k - 1]` is the latency that
/// one operation in 10^(k/10) exceeds. A withheld latency is NaN.
fn rarity_tail_of_run(tail_ns: &[Option<u64>]) -> impl Iterator<Item = TailPoint> {
    let share = |at: usize| 10_f64.powf(-(at as f64 + 1.0) / 10.0);
    let known = |ns: &Option<u64>| ns.map_or(f64::NAN, |ns| ns as f64);
    tail_ns.iter().enumerate().map(move |(at, ns)| TailPoint { ns: known(ns), share: share(at) })
}

/// Height of a stage in pixels.
const STAGE_HEIGHT: usize = 46;

#[derive(Template)]
#[template(path = "ledger.html")]
struct LedgerPicture<'l> {
    direction: &'l str,
    stages: Vec<PlacedText>,
    sides: Vec<Side>,
    height: usize,
    table: String,
}

/// Text in the middle of a stage's bar.
struct PlacedText {
    text: String,
    percent: String,
}

/// One half of the picture: the half for operations, or the half for bytes.
struct Side {
    description: String,
    flow: Flow,
    labels: Vec<PlacedText>,
}

/// A stage of the picture: its name, the data that each of its parts moved, and a note.
struct Stage {
    name: String,
    parts: Vec<IoTotals>,
    note: String,
}

impl Stage {
    /// Sums the parts.
    fn sum(&self, amount: fn(&IoTotals) -> u64) -> u64 {
        self.parts.iter().fold(0, |sum: u64, moved| sum.saturating_add(amount(moved)))
    }
}

/// Draws the ledgers of both directions; empty without a ledger.
pub(super) fn ledger_pictures(result: &Measured) -> String {
    let Some(ledger) = &result.ledger else { return String::new() };
    let both = [("Reads", &ledger.read), ("Writes", &ledger.write)];
    both.into_iter()
        .filter_map(|(direction, account)| Some(draw_ledger(direction, account.as_ref()?)))
        .collect()
}

fn draw_ledger(direction: &str, account: &Account) -> String {
    let stages = list_stages(account);
    // The bar is in the upper half of the stage.
    let middle = |at: usize| format!("{:.1}", 100.0 * (at as f64 + 0.25) / stages.len() as f64);
    let named =
        stages.iter().enumerate().map(|(at, s)| PlacedText { text: s.name.clone(), percent: middle(at) });
    let side = |amount: fn(&IoTotals) -> u64, show: fn(u64) -> String| {
        let text = |s: &Stage| if s.parts.is_empty() { "not counted".into() } else { show(s.sum(amount)) };
        let descriptions: Vec<String> = stages.iter().map(|s| format!("{} {}", s.name, text(s))).collect();
        let parts: Vec<Vec<f64>> =
            stages.iter().map(|s| s.parts.iter().map(|m| amount(m) as f64).collect()).collect();
        let labels =
            stages.iter().enumerate().map(|(at, s)| PlacedText { text: text(s), percent: middle(at) });
        Side { description: descriptions.join(", "), flow: flow(&parts), labels: labels.collect() }
    };
    let sides = vec![side(|m| m.ios, |n| show_count(n as f64)), side(|m| m.bytes, show_bytes)];
    let picture = LedgerPicture {
        direction,
        stages: named.collect(),
        sides,
        height: STAGE_HEIGHT * stages.len(),
        table: ledger_table(direction, account, &stages),
    };
    picture.render().unwrap_or_default()
}

/// Returns the stages: issued, charged, and each level of the stack.
fn list_stages(account: &Account) -> Vec<Stage> {
    let counted = |entry: &LedgerEntry| entry.with_sync.or(entry.counted);
    let mut stages =
        vec![Stage { name: "issued by fathom".into(), parts: vec![account.issued], note: String::new() }];
    let charged = &account.charged;
    stages.push(Stage {
        name: "charged by the kernel".into(),
        parts: counted(charged).into_iter().collect(),
        note: charged.word.clone(),
    });
    for step in account.layers.chunk_by(|a, b| a.step == b.step) {
        let names: Vec<&str> = step.iter().map(|e| e.name.as_str()).collect();
        let all: Option<Vec<IoTotals>> = step.iter().map(counted).collect();
        stages.push(Stage {
            name: names.join(" + "),
            parts: all.unwrap_or_default(),
            note: step.first().map_or_else(String::new, |e| e.word.clone()),
        });
    }
    stages
}

fn ledger_table(direction: &str, account: &Account, stages: &[Stage]) -> String {
    let ios = |stage: &Stage| stage.sum(|moved| moved.ios);
    let bytes = |stage: &Stage| stage.sum(|moved| moved.bytes);
    let known = |stage: &Stage, value: u64, show: fn(u64) -> String| {
        or_dash((!stage.parts.is_empty()).then_some(value), show)
    };
    let merges = |stage: &Stage| stage.parts.iter().filter_map(|m| m.merges).reduce(|a, b| a + b);
    let table = Columns::new(stages)
        .borrowed_text("counted by", |stage| &stage.name)
        .value("operations", |stage| known(stage, ios(stage), |n| show_count(n as f64)))
        .value("bytes", |stage| known(stage, bytes(stage), show_bytes))
        .value("merged", |stage| merges(stage).map(|n| show_count(n as f64)))
        .value("mean size", |stage| or_dash(bytes(stage).checked_div(ios(stage)), show_bytes))
        .borrowed_text("against issued", |stage| &stage.note)
        .table(&[]);
    let has_sync = account.layers.iter().any(|e| e.with_sync.is_some());
    let with = if has_sync { ", including the final sync" } else { "" };
    page::table(&format!("{direction} at each layer{with}"), &table)
}

#[cfg(test)]
fn example_buckets() -> LatencyBuckets {
    LatencyBuckets { from_ns: vec![100.0, 1000.0, 100_000.0], ops: vec![900, 90, 10] }
}

#[test]
fn the_tail_of_each_run_is_drawn_before_that_of_all_runs() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/valid.json");
    let report: model::report::Report = serde_json::from_str(golden)?;
    let mut result = report.results.first().ok_or("no result")?.clone();
    let word = result_directions(&result).next().ok_or("no direction")?.word;
    let buckets = LatencyBuckets { from_ns: vec![1000.0, 10_000.0], ops: vec![900, 100] };
    result.latencies = [(word.to_owned(), buckets)].into();
    let first = result.runs.first().ok_or("no run")?.clone();
    let run = |ns: u64| {
        // A tenth of the operations took longer than this.
        let tail = (1..=10).map(|k| (k == 1 || k == 10).then_some(ns)).collect();
        model::report::RunFigures { tails_ns: [(word.to_owned(), tail)].into(), ..first.clone() }
    };
    result.runs = vec![run(2000), run(3000)];
    let axis = Axis::log([1000.0, 11_000.0].into_iter());
    let axes = CommonAxes { latency: axis, decades: 2.0 };
    let plot = draw_tails(&histograms(&result), &axes, &result, "x");
    let paths: Vec<&str> = plot.paths.split("<path ").skip(1).collect();
    let is =
        |at: usize, class: &str| paths.get(at).is_some_and(|p| p.starts_with(&format!("class=\"{class}\"")));
    assert!(is(0, "ours thin") && is(1, "ours thin") && is(2, "ours"), "{paths:?}");
    // Each run has a single point at 1 in 10, in the middle of two decades, because the values around it are withheld.
    for (at, ns) in [(0, 2000.0), (1, 3000.0)] {
        let place = format!(
            "M{} 500h.01",
            plot::line([(axis.along(ns), 0.0)]).trim_start_matches('M').split(' ').next().ok_or("")?
        );
        assert!(paths[at].contains(&place), "{place}: {}", paths[at]);
    }
    Ok(())
}

#[test]
fn plots_of_a_result_without_a_number_have_a_caveat() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/valid.json");
    let mut report: Report = serde_json::from_str(golden)?;
    let invalid: Report = serde_json::from_str(include_str!("../../../tests/golden/invalid.json"))?;
    report.results.truncate(1);
    let valid = report.results.first().ok_or("no result")?.clone();
    let mut hole = invalid.checks.first().ok_or("no finding")?.clone();
    hole.about = vec![valid.name.clone()];
    hole.name = "<HOLES>".into();
    report.checks.push(hole);
    // The plots of a number that is shown have no caveat, whatever else is found.
    assert!(!result_cards(&report).contains("number of this result is withheld"));
    let void = Measured { void: true, ..valid.clone() };
    let caveat = "<b>The number of this result is withheld: A04 &#60;HOLES&#62;.</b>";
    // In both layouts (a card for each plot, a card for each result) the latencies and the time series have the caveat.
    for results in [vec![void.clone()], vec![valid, void]] {
        report.results = results;
        let cards = result_cards(&report);
        assert_eq!(cards.matches(caveat).count(), 2, "{cards}");
    }
    Ok(())
}

#[test]
fn shares_add_up_and_gaps_are_zero() {
    let drawn = bucket_shares(&example_buckets());
    assert_eq!(drawn.iter().map(|one| one.share).collect::<Vec<_>>(), [0.9, 0.0, 0.09, 0.0, 0.01]);
    assert!(drawn.windows(2).all(|w| (w[0].to_ns / w[1].from_ns - 1.0).abs() < 1e-9), "{drawn:?}");
}

#[test]
fn the_tail_ends_when_fewer_than_ten_operations_are_above() {
    let drawn = rarity_tail(&example_buckets());
    let shares: Vec<f64> = drawn.iter().map(|point| point.share).collect();
    assert_eq!(shares, [1.0, 0.1, 0.01]);
    assert!(drawn[0].ns < drawn[1].ns && (drawn[1].ns - 104.71).abs() < 0.01);
    assert_eq!(rarity_tail(&LatencyBuckets::default()), []);
}

#[test]
fn the_tail_of_a_run_has_ten_steps_per_decade() {
    let ns: Vec<Option<u64>> = (1..=20).map(|k| (k != 5).then_some(100 * k)).collect();
    let drawn: Vec<TailPoint> = rarity_tail_of_run(&ns).collect();
    assert!((drawn[9].share - 0.1).abs() < 1e-12 && (drawn[19].share - 0.01).abs() < 1e-12, "{drawn:?}");
    assert!((drawn[9].ns - 1000.0).abs() < 1e-9 && drawn[4].ns.is_nan(), "a gap where it is withheld");
    assert_eq!(rarity_tail_of_run(&[]).count(), 0);
}

#[test]
fn every_stage_has_its_number_in_picture_and_table() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/pieces/ledger.json");
    let ledger: model::figures::Ledger = serde_json::from_str(golden)?;
    let read = ledger.read.as_ref().ok_or("no reads")?;
    let html = draw_ledger("Reads", read);
    for number in ["55,000", "55,165", "0.3 % more", "loop0", "vda", "agrees"] {
        assert!(html.contains(number), "{number}: {html}");
    }
    let stages = list_stages(read);
    assert_eq!(stages.iter().map(|s| s.parts.len()).collect::<Vec<_>>(), [1, 1, 1, 1]);
    Ok(())
}
