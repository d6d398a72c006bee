//! The time series of a result: rate, latencies, queue depth and the host's load over time, all runs on one axis.
//!
//! [`Timeline`] lays the runs side by side on a common axis. [`TimeDrawing`] draws fathom's values
//! by the second, and also at the recorded resolution if the report has it, next to the device's
//! counters. [`Events`] adds marks for findings with a known second, and backgrounds for warm-up
//! and for disturbed runs. Strips below the rates show CPU time and waiting, one value per run.

use super::page::{folded, key, rate_tick, short_number, time, time_tick};
use super::plot::{Axis, Block, LOWEST_LINE, Label, Level, Plot, SIDE, spread_labels, strip, strip_middle};
use super::{page, plot};
use crate::view::results::directions;
use crate::view::table::{Columns, or_dash};
use model::finding::{CheckId, Checked, Outcome};
use model::report::{DeviceSecond, Figures, HostFigures, Measured, Report, RunFigures, Second, TimeSeries};
use model::units::{show_rate, show_share};
use std::collections::BTreeMap;

/// The device's line leaves out intervals shorter than this, because the device's counters are read twice a second.
const MIN_DEVICE_INTERVAL_S: f64 = 0.5;
/// Maximum number of rows in the table of seconds; the JSON has all of them.
const MAX_TABLE_ROWS: usize = 120;
/// With more runs than this, the plot of rates has no names of runs.
const MAX_NAMED_RUNS: usize = 5;

/// Distance of labels at the right edge of the plot of latencies: a line of text, in units of the drawing.
const LABEL_DISTANCE: f64 = 76.0;

/// Draws the time series of a result; empty if the report kept none.
pub(super) fn draw_time_series(result: &Measured, events: &Events, link: &str) -> String {
    if result.series.is_empty() {
        return String::new();
    }
    let timeline = Timeline::with_room_for(0.0, run_intervals(result));
    let drawing = TimeDrawing { result, events, timeline, link: format!("{link}-time"), scale: None };
    let mut out = drawing.key();
    out += &drawing.draw_rates().html();
    out +=
        &draw_strips(result, &drawing.timeline, &drawing.link).map_or_else(String::new, |plot| plot.html());
    if let Some(time_series) = &result.time_series {
        out += &drawing.draw_latencies(time_series).html();
        out += &drawing.draw_depths(time_series).html();
    }
    out + &folded("Second by second as a table", &second_table(result))
}

/// Common scales for the time series of several results.
pub(super) struct CommonScale {
    /// The highest rate of fathom or a device in any result, in the unit in which the result is
    /// quoted (IOPS or MB/s).
    highest_rate: f64,
    /// Duration of the longest result, in seconds.
    longest_s: f64,
}

impl CommonScale {
    /// Computes the scale of several results.
    pub(super) fn from_results(results: &[&Measured]) -> Self {
        let highest_rate = |result: &&Measured| {
            let ours = result.series.iter().map(|s| quoted_rate(result, s.iops, s.mb_per_s));
            let devices = device_seconds(result).map(|(_, d)| quoted_rate(result, d.iops, d.mb_per_s));
            ours.chain(devices).fold(0.0, f64::max)
        };
        let seconds = |result: &&Measured| Timeline::with_room_for(0.0, run_intervals(result)).seconds();
        Self {
            highest_rate: results.iter().map(highest_rate).fold(0.0, f64::max),
            longest_s: results.iter().map(seconds).fold(0.0, f64::max),
        }
    }
}

/// Returns the rate in the unit in which the result is quoted.
fn quoted_rate(result: &Measured, iops: f64, mb_per_s: f64) -> f64 {
    if result.quoted_rate().unit == "IOPS" { iops } else { mb_per_s }
}

/// Returns the intervals of at least [`MIN_DEVICE_INTERVAL_S`] that have figures of the device, each with these
/// figures.
fn device_seconds(result: &Measured) -> impl Iterator<Item = (&Second, DeviceSecond)> {
    let long = result.series.iter().filter(|s| s.seconds >= MIN_DEVICE_INTERVAL_S);
    long.filter_map(|s| Some((s, s.device?)))
}

/// Draws the rate over time on a common scale, by the second and without names of runs; `None` without a time series.
pub(super) fn draw_rates_on(
    result: &Measured,
    events: &Events,
    link: &str,
    scale: &CommonScale,
) -> Option<Plot> {
    let timeline = Timeline::with_room_for(scale.longest_s, run_intervals(result));
    let drawing = TimeDrawing { result, events, timeline, link: link.to_owned(), scale: Some(scale) };
    (!result.series.is_empty()).then(|| drawing.draw_rates())
}

/// The time that a column of a plot covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunInterval {
    run: u32,
    /// Start, in seconds since the start of the run.
    start_s: f64,
    seconds: f64,
}

impl RunInterval {
    fn from_second(second: &Second) -> Self {
        Self { run: second.run, start_s: second.start_s, seconds: second.seconds }
    }

    fn describe(self) -> String {
        format!("run {}, {} s", self.run.saturating_add(1), short_number(self.start_s))
    }
}

/// Returns the intervals of one second of a result, then those at the recorded resolution.
fn run_intervals(result: &Measured) -> impl Iterator<Item = RunInterval> {
    result
        .series
        .iter()
        .map(RunInterval::from_second)
        .chain(result.time_series.iter().flat_map(series_intervals))
}

/// Returns every interval of a time series at the recorded resolution.
fn series_intervals(time_series: &TimeSeries) -> impl Iterator<Item = RunInterval> {
    let times = time_series.start_s.iter().zip(&time_series.seconds);
    let interval = |(run, (start_s, seconds)): (&u32, (&f64, &f64))| RunInterval {
        run: *run,
        start_s: *start_s,
        seconds: *seconds,
    };
    time_series.run.iter().zip(times).map(interval)
}

struct TimeDrawing<'r> {
    result: &'r Measured,
    events: &'r Events,
    timeline: Timeline,
    link: String,
    /// The common scale, if several results are compared.
    scale: Option<&'r CommonScale>,
}

impl TimeDrawing<'_> {
    fn key(&self) -> String {
        let fine = self.result.time_series.is_some();
        let device = self.result.series.iter().any(|s| s.device.is_some());
        let items: [(bool, &str, &str); 8] = [
            (true, "ours", "fathom, by the second"),
            (fine, "ours thin", "fathom, at the recorded resolution"),
            (device, "device", "the device below, from its own counters"),
            (self.confidence_interval().is_some(), "band", "95 % interval of the mean over runs"),
            (fine, "max", "slowest operation"),
            (!self.events.marks.is_empty(), "mark", "a finding at that second"),
            (!self.events.disturbed.is_empty(), "foreign", "disturbed run"),
            (!self.events.warm_up.is_empty(), "warm", "warm-up, included in the mean"),
        ];
        let shown: Vec<_> =
            items.into_iter().filter(|i| i.0).map(|(_, class, description)| (class, description)).collect();
        key(&shown)
    }

    fn rate(&self, iops: f64, mb_per_s: f64) -> f64 {
        quoted_rate(self.result, iops, mb_per_s)
    }

    fn confidence_interval(&self) -> Option<[f64; 2]> {
        self.result.quoted_rate().interval
    }

    /// Draws the background of a plot: disturbed runs and warm-up.
    fn draw_ground(&self, plot: &mut Plot) {
        for (run, _) in &self.events.disturbed {
            if let Some([from, to]) = self.timeline.span(*run) {
                plot.draw("foreign", &plot::full_height(from, to));
            }
        }
        for (run, seconds) in &self.events.warm_up {
            let [from, to] = [0.0, *seconds].map(|s| self.timeline.at(*run, s));
            plot.draw("warm", &plot::full_height(from, to));
        }
    }

    /// Draws a mark at the time of each event.
    fn draw_marks(&self, plot: &mut Plot) {
        for mark in &self.events.marks {
            let at = self.timeline.at(mark.run, mark.second);
            plot.draw("mark", &plot::line([(at, 0.0), (at, SIDE)]));
        }
    }

    fn draw_rates(&self) -> Plot {
        let (series, unit) = (&self.result.series, self.result.quoted_rate().unit);
        let fine = self.fine_rates();
        let devices = || {
            device_seconds(self.result)
                .map(|(s, d)| (RunInterval::from_second(s), self.rate(d.iops, d.mb_per_s)))
        };
        let ours = series.iter().map(|s| self.rate(s.iops, s.mb_per_s));
        let values = ours.chain(devices().chain(fine.iter().copied()).map(|(_, rate)| rate));
        let interval = self.confidence_interval().filter(|_| self.scale.is_none());
        let common = self.scale.map(|scale| scale.highest_rate);
        // The interval of few runs can be absurdly wide. No device reaches 1e15.
        let y =
            Axis::from_zero(values.chain(interval.into_iter().flatten().filter(|v| *v < 1e15)).chain(common));
        let mut plot = self.frame(
            if self.scale.is_some() { format!("{unit} of each run") } else { format!("{unit}, from zero") },
            if self.scale.is_some() { 110 } else { 170 },
        );
        plot.description = self.describe(unit);
        plot.y = y.ticks_down(rate_tick);
        self.draw_ground(&mut plot);
        if let Some([low, high]) = self.confidence_interval() {
            plot.draw("band", &plot::full_width(y.down(high).max(0.0), y.down(low).max(0.0)));
        }
        let down = |(interval, rate)| (interval, y.down(rate));
        plot.draw("ours thin", &self.steps_by_run(fine.into_iter().map(down)));
        let seconds = series.iter().map(|s| (RunInterval::from_second(s), self.rate(s.iops, s.mb_per_s)));
        plot.draw("ours", &self.steps_by_run(seconds.map(down)));
        plot.draw("device", &self.steps_by_run(devices().map(down)));
        self.draw_marks(&mut plot);
        self.draw_labels(&mut plot);
        if let Some(value) = self.result.quoted_rate().value {
            plot.right.push(Label { at: y.down(value), text: show_rate(value), class: "strong" });
        }
        plot.set_crosshair_points(&self.describe_seconds(unit));
        plot
    }

    /// Draws the steps of each run separately. `levels` pairs each interval with its y coordinate.
    fn steps_by_run(&self, levels: impl Iterator<Item = (RunInterval, f64)>) -> String {
        let all: Vec<(RunInterval, f64)> = levels.collect();
        let step = |(interval, y): &(RunInterval, f64)| {
            let ends = [interval.start_s, interval.start_s + interval.seconds];
            let [from, to] = ends.map(|second| self.timeline.at(interval.run, second));
            Level { from, to, y: *y }
        };
        let runs = all.chunk_by(|(one, _), (next, _)| one.run == next.run);
        runs.map(|run| plot::steps(run.iter().map(step))).collect()
    }

    /// Returns the total rate of reads, writes and trims for each interval of the recorded resolution; empty on a
    /// common scale.
    fn fine_rates(&self) -> Vec<(RunInterval, f64)> {
        let Some(time_series) = self.result.time_series.as_ref().filter(|_| self.scale.is_none()) else {
            return Vec::new();
        };
        let moving =
            || time_series.directions.iter().filter(|(word, _)| *word != "sync").map(|(_, figures)| figures);
        let rate = |at: usize| {
            moving()
                .filter_map(|figures| Some(self.rate(*figures.iops.get(at)?, *figures.mb_per_s.get(at)?)))
                .sum()
        };
        series_intervals(time_series).enumerate().map(|(at, interval)| (interval, rate(at))).collect()
    }

    /// Returns the place of the middle of an interval.
    fn middle(&self, interval: RunInterval) -> f64 {
        self.timeline.at(interval.run, interval.start_s + interval.seconds / 2.0)
    }

    fn draw_latencies(&self, time_series: &TimeSeries) -> Plot {
        let directions: Vec<Direction> =
            result_directions(self.result).filter(|d| d.word != "sync").collect();
        let devices = || {
            device_seconds(self.result)
                .filter_map(|(s, d)| Some((RunInterval::from_second(s), d.latency_ns?)))
        };
        let direction_data = |d: &Direction| time_series.directions.get(d.word);
        let all = directions
            .iter()
            .filter_map(direction_data)
            .flat_map(|figures| figures.p50_ns.iter().chain(&figures.max_ns).flatten());
        let y = Axis::log(all.map(|ns| *ns as f64).chain(devices().map(|(_, ns)| ns)));
        let mut plot = self.frame("Latency: median to p99, and the slowest (logarithmic)".into(), 190);
        plot.description =
            "Latency over time: median, 99th percentile and the slowest of each interval".into();
        plot.y = y.ticks_down(time_tick);
        self.draw_ground(&mut plot);
        for direction in &directions {
            self.draw_latency_of(&mut plot, time_series, *direction, &y);
        }
        plot.draw("device", &self.steps_by_run(devices().map(|(interval, ns)| (interval, y.down(ns)))));
        if let Some((_, ns)) = devices().last() {
            plot.right.push(Label { at: y.down(ns), text: "device mean".into(), class: "of-device" });
        }
        plot.right = spread_labels(std::mem::take(&mut plot.right), LABEL_DISTANCE);
        self.draw_marks(&mut plot);
        plot.set_crosshair_points(&self.describe_latencies(time_series, &directions));
        plot
    }

    fn draw_latency_of(&self, plot: &mut Plot, time_series: &TimeSeries, direction: Direction, y: &Axis) {
        let Some(figures) = time_series.directions.get(direction.word) else { return };
        let height = |list: &[Option<u64>], at: usize| {
            list.get(at).copied().flatten().map_or(f64::NAN, |ns| y.down(ns as f64))
        };
        let places = |(at, interval): (usize, RunInterval)| LatencyPlaces {
            run: interval.run,
            x: self.middle(interval),
            p50: height(&figures.p50_ns, at),
            p99: height(&figures.p99_ns, at),
            slowest: height(&figures.max_ns, at),
        };
        let all: Vec<LatencyPlaces> = series_intervals(time_series).enumerate().map(places).collect();
        for run in all.chunk_by(|one, next| one.run == next.run) {
            let between: Vec<_> = run.iter().map(|one| (one.x, one.p99, one.p50)).collect();
            plot.draw(direction.classes.band, &plot::area_between(&between));
            let p99 = plot::line(run.iter().map(|one| (one.x, one.p99)));
            plot.draw(&format!("{} thin", direction.classes.line), &p99);
            plot.draw(direction.classes.line, &plot::line(run.iter().map(|one| (one.x, one.p50))));
        }
        plot.draw("max", &plot::dots(all.iter().map(|one| (one.x, one.slowest))));
        let is_known =
            |one: &&LatencyPlaces| [one.x, one.p50, one.p99, one.slowest].iter().all(|v| v.is_finite());
        if let Some(last) = all.iter().rfind(is_known) {
            let name =
                if time_series.directions.len() > 1 { format!(" {}", direction.word) } else { String::new() };
            let label = |at: f64, line: &str, class| Label { at, text: format!("{line}{name}"), class };
            let ends = [
                label(last.slowest, "slowest", ""),
                label(last.p99, "p99", direction.classes.ink),
                label(last.p50, "p50", direction.classes.ink),
            ];
            plot.right.extend(ends);
        }
    }

    fn draw_depths(&self, time_series: &TimeSeries) -> Plot {
        let below = || device_seconds(self.result).map(|(s, d)| (RunInterval::from_second(s), d.in_flight));
        let y =
            Axis::from_zero(time_series.depth_mean.iter().copied().chain(below().map(|(_, depth)| depth)));
        let mut plot = self.frame("Operations in flight; dashed: requests in the device's queue".into(), 60);
        plot.description =
            "Mean operations in flight over time, and requests in the queue of the device".into();
        plot.y = y.ticks_down(rate_tick).into_iter().step_by(2).collect();
        plot.x_title = "Seconds into each run".into();
        self.draw_ground(&mut plot);
        let ours = || series_intervals(time_series).zip(time_series.depth_mean.iter().copied());
        let down = |(interval, depth)| (interval, y.down(depth));
        plot.draw("ours", &self.steps_by_run(ours().map(down)));
        plot.draw("device", &self.steps_by_run(below().map(down)));
        let stops = ours().map(|(interval, depth)| {
            (self.middle(interval), format!("{}\n{} in flight", interval.describe(), show_rate(depth)))
        });
        plot.set_crosshair_points(&stops.collect::<Vec<_>>());
        plot
    }

    /// Returns an empty plot over time.
    fn frame(&self, title: String, height: u32) -> Plot {
        let x = if self.scale.is_some() { self.timeline.few_ticks() } else { self.timeline.ticks() };
        Plot { title, height, x, link: self.link.clone(), ..Plot::default() }
    }

    /// Labels all events. Also labels each run with its serial number and rate, if there are at most [`MAX_NAMED_RUNS`] runs
    /// and no common scale.
    fn draw_labels(&self, plot: &mut Plot) {
        let middle = |[from, to]: [f64; 2]| f64::midpoint(from, to);
        if self.result.runs.len() <= MAX_NAMED_RUNS && self.scale.is_none() {
            plot.labels.extend(self.result.runs.iter().filter_map(|run| {
                let at = middle(self.timeline.span(run.run)?);
                let rate = show_rate(self.rate(run.iops, run.mb_per_s));
                Some(Label { at, text: format!("{}: {rate}", run.run.saturating_add(1)), class: LOWEST_LINE })
            }));
        }
        for mark in &self.events.marks {
            let at = self.timeline.at(mark.run, mark.second);
            // In the right part of the plot, a label is to the left of its mark.
            let class = if at > 600.0 { "of-mark end" } else { "of-mark" };
            plot.labels.push(Label { at, text: mark.label.clone(), class });
        }
        for (run, reason) in &self.events.disturbed {
            if let Some([from, to]) = self.timeline.span(*run) {
                // Put the label on the side with more room.
                let (at, class) = if from > SIDE / 2.0 {
                    (to, "of-foreign second end")
                } else {
                    (from, "of-foreign second")
                };
                plot.labels.push(Label { at, text: reason.clone(), class });
            }
        }
    }

    fn describe(&self, unit: &str) -> String {
        let runs = self.result.runs.iter().map(|r| show_rate(self.rate(r.iops, r.mb_per_s)));
        let marks = self.events.marks.iter().map(|m| {
            format!("; {} at {} s of run {}", m.label, short_number(m.second), m.run.saturating_add(1))
        });
        let runs: Vec<String> = runs.take(20).collect();
        format!("{unit} over time; runs: {}{}", runs.join(", "), marks.collect::<String>())
    }

    fn describe_seconds(&self, unit: &str) -> Vec<(f64, String)> {
        let describe = |s: &Second| {
            let device = s.device.map_or_else(String::new, |d| {
                format!(
                    "\ndevice {}, {} in its queue",
                    show_rate(self.rate(d.iops, d.mb_per_s)),
                    show_rate(d.in_flight)
                )
            });
            let others = self.events.disturbed.iter().filter(|(run, _)| *run == s.run);
            let others = others.fold(String::new(), |all, (_, reason)| all + "\n" + reason);
            let rate = show_rate(self.rate(s.iops, s.mb_per_s));
            format!("{}\n{rate} {unit}{device}{others}", RunInterval::from_second(s).describe())
        };
        self.result.series.iter().map(|s| (self.middle(RunInterval::from_second(s)), describe(s))).collect()
    }

    fn describe_latencies(&self, time_series: &TimeSeries, directions: &[Direction]) -> Vec<(f64, String)> {
        let stop = |(at, interval): (usize, RunInterval)| {
            let latencies = directions.iter().filter_map(|d| {
                let data = time_series.directions.get(d.word)?;
                let ns = |list: &[Option<u64>]| list.get(at).copied().flatten().map(|ns| time(ns as f64));
                Some(format!(
                    "\n{}: p50 {}, p99 {}, slowest {}",
                    d.plural,
                    ns(&data.p50_ns)?,
                    ns(&data.p99_ns)?,
                    ns(&data.max_ns)?
                ))
            });
            (self.middle(interval), format!("{}{}", interval.describe(), latencies.collect::<String>()))
        };
        series_intervals(time_series).enumerate().map(stop).collect()
    }
}

/// Returns the first rows of the time series as a table.
fn second_table(result: &Measured) -> String {
    let device =
        |second: &Second, value: fn(DeviceSecond) -> f64| or_dash(second.device.map(value), show_rate);
    let table = Columns::new(result.series.iter().take(MAX_TABLE_ROWS))
        .text("run, second", |s| format!("{}, {}", s.run.saturating_add(1), short_number(s.start_s)))
        .value("IOPS", |second| show_rate(second.iops))
        .value("MB/s", |second| show_rate(second.mb_per_s))
        .value("p99 at most", |second| page::time_or_dash(second.p99_at_most_ns.map(|ns| ns as f64)))
        .value("device IOPS", |second| device(second, |d| d.iops))
        .value("device latency", |second| page::time_or_dash(second.device.and_then(|d| d.latency_ns)))
        .value("device queue", |second| device(second, |d| d.in_flight))
        .table(&[]);
    let rest = result.series.len().saturating_sub(MAX_TABLE_ROWS);
    let more = if rest > 0 { format!("; rows only in the JSON: {rest}") } else { String::new() };
    page::table(&format!("{} second by second{more}", result.name), &table)
}

/// Where the latencies of an interval are in the drawing. An unknown latency is NaN.
struct LatencyPlaces {
    run: u32,
    x: f64,
    p50: f64,
    p99: f64,
    slowest: f64,
}

/// The reads, writes, trims or syncs of a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction<'r> {
    /// Key in the report.
    pub(super) word: &'static str,
    /// Word for the operations of this direction: `reads`.
    pub(super) plural: &'static str,
    pub(super) figures: &'r Figures,
    pub(super) classes: Classes,
}

/// CSS classes of a direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Classes {
    pub(super) line: &'static str,
    /// The area below a line.
    pub(super) area: &'static str,
    pub(super) band: &'static str,
    /// Text, such as a label.
    pub(super) ink: &'static str,
}

/// The classes of the directions of a result, in order. The first direction has fathom's colour.
const CLASSES: [Classes; 4] = [
    Classes { line: "ours", area: "area", band: "band", ink: "of-ours" },
    Classes { line: "third", area: "area of-third", band: "band of-third", ink: "of-third" },
    Classes { line: "fourth", area: "area of-none", band: "band of-none", ink: "of-fourth" },
    Classes { line: "mean", area: "area of-none", band: "band of-none", ink: "" },
];

/// Returns the directions of a result; the first one always has fathom's colour.
pub(super) fn result_directions(result: &Measured) -> impl Iterator<Item = Direction<'_>> {
    directions(result).zip(CLASSES).map(|((word, figures), classes)| {
        let plural = match word {
            "read" => "reads",
            "write" => "writes",
            "trim" => "trims",
            _ => "syncs",
        };
        Direction { word, plural, figures, classes }
    })
}

impl Direction<'_> {
    /// Whether this direction has fathom's colour.
    pub(super) fn is_first(&self) -> bool {
        self.classes.line == CLASSES[0].line
    }
}

/// Checks whose finding has a time, each with a label.
const TIMED_CHECKS: [(CheckId, &str); 3] =
    [(CheckId::E02, "cliff"), (CheckId::D15, "drive hot"), (CheckId::D19, "credits spent")];

/// Events to mark on the plots of a result.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Events that happened at a known second of a run.
    pub(super) marks: Vec<Mark>,
    /// Disturbed runs that still count, each with the disturbance.
    pub(super) disturbed: Vec<(u32, String)>,
    /// If the mean includes warm-up: every run, with the mean duration of the warm-up in seconds.
    pub(super) warm_up: Vec<(u32, f64)>,
}

/// An event at a second of a run.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) run: u32,
    pub(super) second: f64,
    pub(super) label: String,
}

impl Events {
    /// Collects the events of a result.
    pub(super) fn from_result(report: &Report, result: &Measured) -> Self {
        let is_about = |f: &&Checked| f.outcome == Outcome::Finding && f.about.contains(&result.name);
        let found = |id: CheckId| report.checks.iter().filter(is_about).filter(move |f| f.id == id);
        let number = |f: &Checked, key: &str| f.evidence.get(key).copied().filter(|v| v.is_finite());
        let at = |(id, word): &(CheckId, &str)| -> Vec<Mark> {
            let mark = |f: &Checked| {
                let run = number(f, "run")?.max(0.0) as u32;
                Some(Mark { run, second: number(f, "at_s")?, label: format!("{word} ({id})") })
            };
            found(*id).filter_map(mark).collect()
        };
        let warm = found(CheckId::E03).filter_map(|f| number(f, "warmup_s")).fold(0.0, f64::max);
        let counting = result.disturbed.iter().filter(|d| d.counts);
        Self {
            marks: TIMED_CHECKS.iter().flat_map(at).collect(),
            disturbed: counting
                .map(|d| {
                    (d.run, d.why.clone().unwrap_or_else(|| "another run of its round was disturbed".into()))
                })
                .collect(),
            warm_up: if warm > 0.0 {
                result.runs.iter().map(|r| (r.run, warm)).collect()
            } else {
                Vec::new()
            },
        }
    }
}

/// Gap between neighbouring runs, as a share of the width. With many runs it is smaller, so that all gaps together take
/// at most [`MAX_GAPS`].
const RUN_GAP: f64 = 0.012;
const MAX_GAPS: f64 = 0.15;
/// With more runs than this, ticks show the starts of runs instead of seconds.
const MAX_RUNS_WITH_SECONDS: usize = 12;
/// Maximum number of runs that have a tick in a small plot.
const MAX_RUN_NUMBERS: usize = 6;

/// The time axis: runs side by side.
pub(super) struct Timeline {
    runs: BTreeMap<u32, PlacedRun>,
    /// Units of the drawing per second.
    per_second: f64,
}

struct PlacedRun {
    /// Place of the run's start in the drawing.
    start: f64,
    length_s: f64,
}

impl Timeline {
    /// Lays out intervals on a scale with room for at least `room_s` seconds, so that plots of shorter results have the
    /// same scale.
    pub(super) fn with_room_for(room_s: f64, intervals: impl Iterator<Item = RunInterval>) -> Self {
        let mut lengths: BTreeMap<u32, f64> = BTreeMap::new();
        for RunInterval { run, start_s, seconds } in
            intervals.filter(|i| i.start_s.is_finite() && i.seconds.is_finite())
        {
            let length = lengths.entry(run).or_default();
            *length = length.max(start_s + seconds);
        }
        let seconds: f64 = lengths.values().sum();
        let between = lengths.len().saturating_sub(1).max(1) as f64;
        let gap = SIDE * RUN_GAP.min(MAX_GAPS / between);
        let gaps = gap * lengths.len().saturating_sub(1) as f64;
        let per_second = (SIDE - gaps) / seconds.max(room_s).max(f64::MIN_POSITIVE);
        let mut at = 0.0;
        let mut runs = BTreeMap::new();
        for (run, length_s) in lengths {
            runs.insert(run, PlacedRun { start: at, length_s });
            at += length_s * per_second + gap;
        }
        Self { runs, per_second }
    }

    /// Returns the place of a second of a run; NaN for an unknown run.
    pub(super) fn at(&self, run: u32, second: f64) -> f64 {
        self.runs.get(&run).map_or(f64::NAN, |placed| placed.start + second * self.per_second)
    }

    /// Returns the places of the start and end of a run; `None` for an unknown run.
    pub(super) fn span(&self, run: u32) -> Option<[f64; 2]> {
        let PlacedRun { start, length_s } = self.runs.get(&run)?;
        Some([*start, start + length_s * self.per_second])
    }

    /// Returns the duration of all runs together, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.runs.values().map(|placed| placed.length_s).sum()
    }

    /// Returns the ticks of a small plot: the run numbers at the starts of the runs, or the seconds of a single run.
    pub(super) fn few_ticks(&self) -> Vec<Label> {
        if self.runs.len() < 2 {
            return self.ticks();
        }
        let every = self.runs.len().div_ceil(MAX_RUN_NUMBERS);
        let labelled = self.runs.iter().step_by(every);
        labelled.map(|(run, placed)| Label::tick(placed.start, run.saturating_add(1).to_string())).collect()
    }

    /// Returns the ticks: the seconds of each run or, with many runs, the starts of at most ten runs.
    pub(super) fn ticks(&self) -> Vec<Label> {
        let few = self.runs.len() <= MAX_RUNS_WITH_SECONDS;
        let every = self.runs.len().div_ceil(10).max(1);
        let longest = self.runs.values().map(|placed| placed.length_s).fold(0.0, f64::max);
        let step = tick_step(longest, self.runs.len());
        let mut out = Vec::new();
        for (at, (run, PlacedRun { start, length_s })) in self.runs.iter().enumerate() {
            if !few {
                if at % every == 0 {
                    out.push(Label::tick(*start, format!("run {}", run.saturating_add(1))));
                }
                continue;
            }
            let marks = (0..=(length_s / step) as u32).map(|i| f64::from(i) * step);
            // A tick at the very end would overlap the first tick of the next run.
            let kept = marks.filter(|s| *s < 0.9 * length_s || self.runs.len() == 1);
            let tick = |s: f64| Label::tick(start + s * self.per_second, format!("{} s", short_number(s)));
            out.extend(kept.map(tick));
        }
        out
    }
}

/// Returns the seconds between ticks, for about a dozen ticks on the whole axis.
fn tick_step(longest: f64, runs: usize) -> f64 {
    let each = (12 / runs.max(1)).max(1) as f64;
    let rough = (longest / each).max(1e-3);
    let power = 10_f64.powf(rough.log10().floor());
    // Runs last slightly longer than requested.
    let has_room = |s: &f64| *s >= 0.95 * rough;
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(has_room).unwrap_or(rough)
}

/// Height of a strip in pixels, including the gap above it.
const STRIP_HEIGHT: u32 = 17;

/// A row of blocks below the plot of rates: a share for each run.
struct HostStrip {
    name: &'static str,
    description: &'static str,
    share: fn(&HostFigures) -> Option<f64>,
    /// Whether the strip is shown even if all of its values are zero.
    shows_zero: bool,
}

const HOST_STRIPS: [HostStrip; 6] = [
    HostStrip {
        name: "worker",
        description: "CPU of the busiest worker",
        share: |h| h.worker_cpu,
        shows_zero: true,
    },
    HostStrip { name: "all CPUs", description: "CPU of the host", share: |h| h.cpu, shows_zero: true },
    HostStrip {
        name: "I/O wait",
        description: "some task waited for I/O",
        share: |h| h.io_pressure,
        shows_zero: true,
    },
    HostStrip {
        name: "CPU wait",
        description: "some task waited for a CPU",
        share: |h| h.cpu_pressure,
        shows_zero: true,
    },
    HostStrip {
        name: "mem wait",
        description: "some task waited for memory",
        share: |h| h.memory_pressure,
        shows_zero: false,
    },
    HostStrip {
        name: "paused",
        description: "paused by a CPU quota",
        share: |h| h.quota_paused,
        shows_zero: false,
    },
];

/// Draws the strips of all runs; `None` if no strip has a value to show.
pub(super) fn draw_strips(result: &Measured, timeline: &Timeline, link: &str) -> Option<Plot> {
    let known = |row: &&HostStrip| {
        let mut values = result.runs.iter().filter_map(|run| (row.share)(&run.host));
        values.any(|share| row.shows_zero || share > 0.0)
    };
    let rows: Vec<&HostStrip> = HOST_STRIPS.iter().filter(known).collect();
    if rows.is_empty() {
        return None;
    }
    let descriptions: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{} {}", row.description, mean_over_runs(row, result)?)))
        .collect();
    let mut plot = Plot {
        title: "CPU and waiting, share of the time of each run".into(),
        description: format!("Means over runs: {}", descriptions.join(", ")),
        height: STRIP_HEIGHT * rows.len() as u32,
        // The ticks have no labels, because the plots above and below have the same ones.
        x: timeline.ticks().into_iter().map(|tick| Label { text: String::new(), ..tick }).collect(),
        link: link.to_owned(),
        ..Plot::default()
    };
    for (at, row) in rows.iter().enumerate() {
        let block = |run: &RunFigures| {
            let [from, to] = timeline.span(run.run)?;
            Some(Block { from, to, share: (row.share)(&run.host) })
        };
        let drawn = strip(at, rows.len(), &result.runs.iter().filter_map(block).collect::<Vec<_>>());
        plot.draw("ground", &drawn.ground);
        plot.draw("block", &drawn.blocks);
        if let Some(mean) = mean_over_runs(row, result) {
            plot.right.push(Label {
                at: strip_middle(at, rows.len()),
                text: format!("{} {mean}", row.name),
                class: "",
            });
        }
    }
    let stops = result.runs.iter().filter_map(|run| {
        let [from, to] = timeline.span(run.run)?;
        let values = rows.iter().map(|row| {
            let share = (row.share)(&run.host).map_or_else(|| "not counted".into(), show_share);
            format!("\n{}: {share}", row.description)
        });
        let text = format!("run {}{}", run.run.saturating_add(1), values.collect::<String>());
        Some((f64::midpoint(from, to), text))
    });
    plot.set_crosshair_points(&stops.collect::<Vec<_>>());
    Some(plot)
}

/// Formats the mean over the runs that have a value; `None` if no run has one.
fn mean_over_runs(row: &HostStrip, result: &Measured) -> Option<String> {
    let all: Vec<f64> = result.runs.iter().filter_map(|run| (row.share)(&run.host)).collect();
    (!all.is_empty()).then(|| short_share(all.iter().sum::<f64>() / all.len() as f64))
}

/// Formats a share with the digits that fit.
fn short_share(share: f64) -> String {
    match share {
        0.0 => "0 %".into(),
        s if s < 0.0005 => "<0.1 %".into(),
        s if s < 0.0995 => format!("{:.1} %", 100.0 * s),
        s => format!("{:.0} %", 100.0 * s),
    }
}

#[test]
fn only_findings_with_a_second_are_marked() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/valid.json");
    let mut report: Report = serde_json::from_str(golden)?;
    let result = report.results.first().ok_or("no result")?.clone();
    let like = report.checks.first().ok_or("no finding")?.clone();
    let found = |id, evidence: &[(&str, f64)]| Checked {
        id,
        outcome: Outcome::Finding,
        about: vec![result.name.clone()],
        evidence: evidence.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect(),
        ..like.clone()
    };
    let second = [("run", 1.0), ("at_s", 2.5)];
    report.checks = vec![
        found(CheckId::D15, &second),
        found(CheckId::E02, &second),
        found(CheckId::D19, &[("until_ns", 1e9)]),
        found(CheckId::A16, &second),
    ];
    let events = Events::from_result(&report, &result);
    let marks: Vec<(u32, f64, &str)> =
        events.marks.iter().map(|m| (m.run, m.second, m.label.as_str())).collect();
    assert_eq!(marks, [(1, 2.5, "cliff (E02)"), (1, 2.5, "drive hot (D15)")]);
    Ok(())
}

#[cfg(test)]
fn example_timeline(intervals: impl IntoIterator<Item = (u32, f64, f64)>) -> Timeline {
    let interval = |(run, start_s, seconds)| RunInterval { run, start_s, seconds };
    Timeline::with_room_for(0.0, intervals.into_iter().map(interval))
}

#[test]
fn runs_are_side_by_side_on_one_scale() {
    let timeline = example_timeline([(0, 0.0, 5.0), (0, 5.0, 5.0), (1, 0.0, 10.0)]);
    let [from, to] = timeline.span(1).unwrap_or_default();
    assert!(
        (timeline.at(0, 10.0) - 494.0).abs() < 1e-9
            && (from - 506.0).abs() < 1e-9
            && (to - 1000.0).abs() < 1e-9
    );
    assert!((timeline.at(1, 5.0) - 753.0).abs() < 1e-9 && timeline.at(7, 0.0).is_nan());
    assert!(timeline.ticks().iter().any(|t| t.text == "2 s"), "{:?}", timeline.ticks());
    let five = example_timeline((0..5).map(|run| (run, 0.0, 2.003)));
    assert!(five.ticks().iter().any(|t| t.text == "1 s"), "a bit more than 2 s: {:?}", five.ticks());
}

#[test]
fn a_shorter_result_uses_the_scale_of_the_longest() {
    let [long, short] = [10.0, 5.0].map(|seconds| {
        Timeline::with_room_for(10.0, [RunInterval { run: 0, start_s: 0.0, seconds }].into_iter())
    });
    assert!((long.at(0, 4.0) - short.at(0, 4.0)).abs() < 1e-9);
    let many = example_timeline((0..12).map(|run| (run, 0.0, 1.0)));
    let marks: Vec<String> = many.few_ticks().into_iter().map(|tick| tick.text).collect();
    assert_eq!(marks, ["1", "3", "5", "7", "9", "11"]);
    assert!(
        (short.span(0).unwrap_or_default()[1] - 500.0).abs() < 1e-9 && (short.seconds() - 5.0).abs() < 1e-9
    );
}

#[test]
fn a_thousand_runs_have_few_ticks_and_no_runs_have_none() {
    let timeline = example_timeline((0..1000).map(|run| (run, 0.0, 0.1)));
    assert!(
        timeline.ticks().len() <= 10 && timeline.span(999).is_some_and(|s| s[1] <= 1000.1 && s[1] > s[0])
    );
    let none = example_timeline([]);
    assert!(none.ticks().is_empty() && none.at(0, 1.0).is_nan());
}

#[test]
fn shares_have_few_digits_and_small_ones_are_not_zero() {
    assert_eq!(
        [0.0, 0.0001, 0.0072, 0.0999, 1.0].map(short_share),
        ["0 %", "<0.1 %", "0.7 %", "10 %", "100 %"]
    );
}

#[test]
fn each_counted_run_has_a_block_in_its_place() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/valid.json");
    let report: model::report::Report = serde_json::from_str(golden)?;
    let mut result = report.results.first().ok_or("no result")?.clone();
    let first = result.runs.first().ok_or("no run")?.clone();
    let host = HostFigures { worker_cpu: Some(0.5), memory_pressure: Some(0.0), ..HostFigures::default() };
    let run = |run, host| RunFigures { run, host, ..first.clone() };
    result.runs = vec![run(0, host), run(1, HostFigures::default())];
    let timeline = example_timeline([(0, 0.0, 1.0), (1, 0.0, 1.0)]);
    let plot = draw_strips(&result, &timeline, "t").ok_or("no strips")?;
    assert_eq!(plot.right.iter().map(|l| l.text.as_str()).collect::<Vec<_>>(), ["worker 50 %"]);
    assert_eq!(plot.paths.matches("<path").count(), 2, "one row for the first run: {}", plot.paths);
    let [_, end] = timeline.span(0).ok_or("no run")?;
    assert!(plot.paths.contains(&format!("H{end:.0}V")), "{}", plot.paths);
    assert!(plot.points.contains("not counted"), "{}", plot.points);
    result.runs = vec![run(0, HostFigures::default())];
    assert!(draw_strips(&result, &timeline, "t").is_none());
    Ok(())
}
