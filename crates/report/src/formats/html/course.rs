//! The course of a result: its rate, its latencies and its depth over time, all runs on one axis.
//!
//! For: ours as finely as it was kept beside the device as often as it was looked at, and what was found at its second. Not for:
//! conclusions about it.

use super::directions::{self, Direction};
use super::events::Events;
use super::page::{folded, key};
use super::plot::axis::{Axis, SIDE};
use super::plot::{LOWEST_LINE, Label, Plot, band, dots, line, spread_labels};
use super::strips::draw_strips;
use super::table;
use super::timeline::Timeline;
use super::words::{rate_tick, short_number, time, time_tick};
use crate::table::Table;
use model::report::{Course, Measured, Second};
use model::units::show_rate;

/// Least length of a stretch of the device's line: its counters are looked at twice a second.
const MIN_DEVICE_STRETCH_S: f64 = 0.5;
/// Rows of the table second by second; the JSON has all.
const MAX_TABLE_ROWS: usize = 120;
/// Runs that are named below their course.
const MAX_NAMED_RUNS: usize = 5;

/// The drawings; nothing where no course was kept.
pub(super) fn time_series(result: &Measured, events: &Events, link: &str) -> String {
    if result.series.is_empty() {
        return String::new();
    }
    let timeline = Timeline::from_stretches(run_extents(result));
    let drawing = TimeDrawing { result, events, timeline, link: format!("{link}-time"), beside: None };
    let mut out = drawing.key();
    out += &drawing.rates().html();
    out +=
        &draw_strips(result, &drawing.timeline, &drawing.link).map_or_else(String::new, |plot| plot.html());
    if let Some(course) = &result.course {
        out += &drawing.latencies(course).html();
        out += &drawing.depths(course).html();
    }
    out + &folded("Second by second as a table", &second_table(result))
}

/// Scales that the courses of several results can be compared on.
pub(super) struct CommonScale {
    /// The highest rate of them.
    most: f64,
    /// Seconds of the longest.
    seconds: f64,
}

impl CommonScale {
    /// Of these results.
    pub(super) fn from_results(results: &[&Measured]) -> Self {
        let most = |result: &&Measured| {
            let in_bytes = result.quoted_rate().unit != "IOPS";
            let rate = |iops: f64, mb: f64| if in_bytes { mb } else { iops };
            let ours = result.series.iter().map(|s| rate(s.iops, s.mb_per_s));
            let devices =
                result.series.iter().filter(|s| s.seconds >= MIN_DEVICE_STRETCH_S).filter_map(|s| s.device);
            ours.chain(devices.map(|d| rate(d.iops, d.mb_per_s))).fold(0.0, f64::max)
        };
        Self {
            most: results.iter().map(most).fold(0.0, f64::max),
            seconds: results
                .iter()
                .map(|r| Timeline::from_stretches(run_extents(r)).seconds())
                .fold(0.0, f64::max),
        }
    }
}

/// Its rate over time beside others on their scales, by the second and without names of runs; `None` where no course was kept.
pub(super) fn draw_rates_on(
    result: &Measured,
    events: &Events,
    link: &str,
    beside: &CommonScale,
) -> Option<Plot> {
    let timeline = Timeline::with_room_for(beside.seconds, run_extents(result));
    let drawing = TimeDrawing { result, events, timeline, link: link.to_owned(), beside: Some(beside) };
    (!result.series.is_empty()).then(|| drawing.rates())
}

/// Run, begin and length in seconds of everything that is drawn.
fn run_extents(result: &Measured) -> impl Iterator<Item = (u32, f64, f64)> + '_ {
    let of_seconds = result.series.iter().map(|s| (s.run, s.start_s, s.seconds));
    let of_course =
        result.course.iter().flat_map(|c| stretches(c).map(|(_, run, from, seconds)| (run, from, seconds)));
    of_seconds.chain(of_course)
}

/// Index, run, begin and length of every stretch.
fn stretches(course: &Course) -> impl Iterator<Item = (usize, u32, f64, f64)> {
    let times = course.start_s.iter().zip(&course.seconds);
    course.run.iter().zip(times).enumerate().map(|(at, (run, (from, seconds)))| (at, *run, *from, *seconds))
}

struct TimeDrawing<'r> {
    result: &'r Measured,
    events: &'r Events,
    timeline: Timeline,
    link: String,
    /// The scales of others that it stands beside.
    beside: Option<&'r CommonScale>,
}

impl TimeDrawing<'_> {
    fn key(&self) -> String {
        let fine = self.result.course.is_some();
        let device = self.result.series.iter().any(|s| s.device.is_some());
        let items: [(bool, &str, &str); 8] = [
            (true, "ours", "ours, by the second"),
            (fine, "ours thin", "ours, as finely as it was kept"),
            (device, "device", "the device below, from its own counters"),
            (self.interval().is_some(), "band", "95 % interval of the mean over runs"),
            (fine, "max", "slowest operation"),
            (!self.events.marks.is_empty(), "mark", "found at that second"),
            (!self.events.foreign.is_empty(), "foreign", "others disturbed this run"),
            (!self.events.warm_up.is_empty(), "warm", "warm-up in the mean"),
        ];
        let shown: Vec<_> =
            items.into_iter().filter(|i| i.0).map(|(_, class, words)| (class, words)).collect();
        key(&shown)
    }

    /// Whether bytes are what its rate is quoted in.
    fn in_bytes(&self) -> bool {
        self.result.quoted_rate().unit != "IOPS"
    }

    fn rate(&self, iops: f64, mb_per_s: f64) -> f64 {
        if self.in_bytes() { mb_per_s } else { iops }
    }

    fn interval(&self) -> Option<[f64; 2]> {
        self.result.quoted_rate().interval
    }

    fn begin_and_end(&self, second: &Second) -> [f64; 2] {
        [second.start_s, second.start_s + second.seconds].map(|s| self.timeline.at(second.run, s))
    }

    /// What lies behind every drawing over time.
    fn draw_ground(&self, plot: &mut Plot) {
        for (run, _) in &self.events.foreign {
            if let Some([from, to]) = self.timeline.span(*run) {
                plot.draw("foreign", &band::full_height(from, to));
            }
        }
        for (run, seconds) in &self.events.warm_up {
            let [from, to] = [0.0, *seconds].map(|s| self.timeline.at(*run, s));
            plot.draw("warm", &band::full_height(from, to));
        }
    }

    /// What was found at a second, above everything.
    fn marks(&self, plot: &mut Plot) {
        for mark in &self.events.marks {
            let at = self.timeline.at(mark.run, mark.second);
            plot.draw("mark", &line::line([(at, 0.0), (at, SIDE)]));
        }
    }

    fn rates(&self) -> Plot {
        let (series, unit) = (&self.result.series, self.result.quoted_rate().unit);
        let fine = self.fine_rates();
        let devices = || {
            series
                .iter()
                .filter_map(|s| Some((s, s.device?)))
                .filter(|(s, _)| s.seconds >= MIN_DEVICE_STRETCH_S)
        };
        let ours = series.iter().map(|s| self.rate(s.iops, s.mb_per_s));
        let values =
            ours.chain(devices().map(|(_, d)| self.rate(d.iops, d.mb_per_s))).chain(fine.iter().map(|f| f.2));
        let interval = self.interval().filter(|_| self.beside.is_none());
        let most = self.beside.map(|beside| beside.most);
        let y =
            Axis::from_zero(values.chain(interval.into_iter().flatten().filter(|v| *v < 1e15)).chain(most));
        let mut plot = self.frame(
            if self.beside.is_some() { format!("{unit} of each run") } else { format!("{unit}, from zero") },
            if self.beside.is_some() { 110 } else { 170 },
        );
        plot.says = self.describe(unit);
        plot.y = y.ticks_down(rate_tick);
        self.draw_ground(&mut plot);
        if let Some([low, high]) = self.interval() {
            plot.draw("band", &band::full_width(y.down(high).max(0.0), y.down(low).max(0.0)));
        }
        plot.draw(
            "ours thin",
            &Self::steps_by_run(fine.iter().map(|(run, x, v)| (*run, [x[0], x[1], y.down(*v)]))),
        );
        let seconds = series.iter().map(|s| {
            let [from, to] = self.begin_and_end(s);
            (s.run, [from, to, y.down(self.rate(s.iops, s.mb_per_s))])
        });
        plot.draw("ours", &Self::steps_by_run(seconds));
        let below = devices().map(|(s, d)| {
            let [from, to] = self.begin_and_end(s);
            (s.run, [from, to, y.down(self.rate(d.iops, d.mb_per_s))])
        });
        plot.draw("device", &Self::steps_by_run(below));
        self.marks(&mut plot);
        self.draw_run_names(&mut plot);
        if let Some(value) = self.result.quoted_rate().value {
            plot.right.push(Label { at: y.down(value), text: show_rate(value), class: "strong" });
        }
        plot.stop_at(&self.stops(unit));
        plot
    }

    /// Steps of each run, which are not joined to the next one's.
    fn steps_by_run(steps: impl Iterator<Item = (u32, [f64; 3])>) -> String {
        let all: Vec<(u32, [f64; 3])> = steps.collect();
        let runs = all.chunk_by(|a, b| a.0 == b.0);
        runs.map(|run| line::steps(run.iter().map(|(_, [from, to, y])| (*from, *to, *y)))).collect()
    }

    /// Run, begin and end, and rate of all directions in each stretch.
    fn fine_rates(&self) -> Vec<(u32, [f64; 2], f64)> {
        let Some(course) = self.result.course.as_ref().filter(|_| self.beside.is_none()) else {
            return Vec::new();
        };
        let moving = || course.directions.iter().filter(|(word, _)| *word != "sync").map(|(_, of)| of);
        let rate = |at: usize| {
            moving().filter_map(|of| Some(self.rate(*of.iops.get(at)?, *of.mb_per_s.get(at)?))).sum()
        };
        let place = |run, from: f64, seconds: f64| [from, from + seconds].map(|s| self.timeline.at(run, s));
        stretches(course).map(|(at, run, from, s)| (run, place(run, from, s), rate(at))).collect()
    }

    fn latencies(&self, course: &Course) -> Plot {
        let directions: Vec<Direction> =
            directions::result_directions(self.result).filter(|d| d.word != "sync").collect();
        let devices = || self.result.series.iter().filter(|s| s.seconds >= MIN_DEVICE_STRETCH_S);
        let of = |d: &Direction| course.directions.get(d.word);
        let all =
            directions.iter().filter_map(of).flat_map(|of| of.p50_ns.iter().chain(&of.max_ns).flatten());
        let below = devices().filter_map(|s| s.device?.latency_ns);
        let y = Axis::log(all.map(|ns| *ns as f64).chain(below));
        let mut plot = self.frame("Latency: median to p99, and the slowest (logarithmic)".into(), 190);
        plot.says = "Latency over time: median, 99th percentile and the slowest of each stretch".into();
        plot.y = y.ticks_down(time_tick);
        self.draw_ground(&mut plot);
        for direction in &directions {
            self.latency_of(&mut plot, course, *direction, &y);
        }
        let mean = devices().filter_map(|s| {
            let [from, to] = self.begin_and_end(s);
            Some((s.run, [from, to, y.down(s.device?.latency_ns?)]))
        });
        plot.draw("device", &Self::steps_by_run(mean));
        if let Some(ns) = devices().filter_map(|s| s.device?.latency_ns).next_back() {
            plot.right.push(Label { at: y.down(ns), text: "device mean".into(), class: "of-device" });
        }
        plot.right = spread_labels(std::mem::take(&mut plot.right), 76.0);
        self.marks(&mut plot);
        plot.stop_at(&self.latency_stops(course, &directions));
        plot
    }

    fn latency_of(&self, plot: &mut Plot, course: &Course, direction: Direction, y: &Axis) {
        let Some(of) = course.directions.get(direction.word) else { return };
        let ns = |list: &[Option<u64>], at: usize| {
            list.get(at).copied().flatten().map_or(f64::NAN, |ns| y.down(ns as f64))
        };
        let middle = |run, from: f64, seconds: f64| self.timeline.at(run, from + seconds / 2.0);
        let rows: Vec<(u32, [f64; 4])> = stretches(course)
            .map(|(at, run, from, s)| {
                (run, [middle(run, from, s), ns(&of.p50_ns, at), ns(&of.p99_ns, at), ns(&of.max_ns, at)])
            })
            .collect();
        for run in rows.chunk_by(|a, b| a.0 == b.0) {
            let between: Vec<_> = run.iter().map(|(_, [x, p50, p99, _])| (*x, *p99, *p50)).collect();
            plot.draw(direction.band, &band::area_between(&between));
            plot.draw(
                &format!("{} thin", direction.line),
                &line::line(run.iter().map(|(_, [x, _, p99, _])| (*x, *p99))),
            );
            plot.draw(direction.line, &line::line(run.iter().map(|(_, [x, p50, ..])| (*x, *p50))));
        }
        plot.draw("max", &dots::dots(rows.iter().map(|(_, [x, _, _, most])| (*x, *most))));
        if let Some((_, [_, p50, p99, most])) =
            rows.iter().rev().find(|(_, r)| r.iter().all(|v| v.is_finite()))
        {
            let name =
                if course.directions.len() > 1 { format!(" {}", direction.word) } else { String::new() };
            let label = |at: f64, words: &str, class| Label { at, text: format!("{words}{name}"), class };
            let ends = [
                label(*most, "slowest", ""),
                label(*p99, "p99", direction.ink),
                label(*p50, "p50", direction.ink),
            ];
            plot.right.extend(ends);
        }
    }

    fn depths(&self, course: &Course) -> Plot {
        let below = || {
            self.result
                .series
                .iter()
                .filter(|s| s.seconds >= MIN_DEVICE_STRETCH_S)
                .filter_map(|s| Some((s, s.device?.in_flight)))
        };
        let y = Axis::from_zero(course.depth_mean.iter().copied().chain(below().map(|(_, depth)| depth)));
        let mut plot = self.frame("Operations in flight; dashed: requests in the device's queue".into(), 60);
        plot.says = "Mean operations in flight over time, and requests in the queue of the device".into();
        plot.y = y.ticks_down(rate_tick).into_iter().step_by(2).collect();
        plot.x_title = "Seconds into each run".into();
        self.draw_ground(&mut plot);
        let ours = stretches(course).filter_map(|(at, run, from, s)| {
            let [begin, end] = [from, from + s].map(|s| self.timeline.at(run, s));
            Some((run, [begin, end, y.down(*course.depth_mean.get(at)?)]))
        });
        plot.draw("ours", &Self::steps_by_run(ours));
        let device = below().map(|(s, depth)| {
            let [from, to] = self.begin_and_end(s);
            (s.run, [from, to, y.down(depth)])
        });
        plot.draw("device", &Self::steps_by_run(device));
        let stops = stretches(course).filter_map(|(at, run, from, s)| {
            let depth = show_rate(*course.depth_mean.get(at)?);
            let words = format!("run {}, {} s\n{depth} in flight", run.saturating_add(1), short_number(from));
            Some((self.timeline.at(run, from + s / 2.0), words))
        });
        plot.stop_at(&stops.collect::<Vec<_>>());
        plot
    }

    /// A plot over time without content.
    fn frame(&self, title: String, height: u32) -> Plot {
        let x = if self.beside.is_some() { self.timeline.few_ticks() } else { self.timeline.ticks() };
        Plot { title, height, x, link: self.link.clone(), ..Plot::default() }
    }

    /// Runs by their number and rate, and what was found at its second.
    fn draw_run_names(&self, plot: &mut Plot) {
        let middle = |[from, to]: [f64; 2]| f64::midpoint(from, to);
        if self.result.runs.len() <= MAX_NAMED_RUNS && self.beside.is_none() {
            plot.labels.extend(self.result.runs.iter().filter_map(|run| {
                let at = middle(self.timeline.span(run.run)?);
                let rate = show_rate(self.rate(run.iops, run.mb_per_s));
                Some(Label { at, text: format!("{}: {rate}", run.run.saturating_add(1)), class: LOWEST_LINE })
            }));
        }
        for mark in &self.events.marks {
            let at = self.timeline.at(mark.run, mark.second);
            let class = if at > 600.0 { "of-mark end" } else { "of-mark" };
            plot.labels.push(Label { at, text: mark.words.clone(), class });
        }
        for (run, words) in &self.events.foreign {
            if let Some([from, to]) = self.timeline.span(*run) {
                // Words have room on the side where more of the drawing is.
                let (at, class) = if from > SIDE / 2.0 {
                    (to, "of-foreign second end")
                } else {
                    (from, "of-foreign second")
                };
                plot.labels.push(Label { at, text: words.clone(), class });
            }
        }
    }

    fn describe(&self, unit: &str) -> String {
        let runs = self.result.runs.iter().map(|r| show_rate(self.rate(r.iops, r.mb_per_s)));
        let marks = self.events.marks.iter().map(|m| {
            format!("; {} at {} s of run {}", m.words, short_number(m.second), m.run.saturating_add(1))
        });
        let runs: Vec<String> = runs.take(20).collect();
        format!("{unit} over time; runs: {}{}", runs.join(", "), marks.collect::<String>())
    }

    fn stops(&self, unit: &str) -> Vec<(f64, String)> {
        let words = |s: &Second| {
            let device = s.device.map_or_else(String::new, |d| {
                format!(
                    "\ndevice {}, {} in its queue",
                    show_rate(self.rate(d.iops, d.mb_per_s)),
                    show_rate(d.in_flight)
                )
            });
            let others = self.events.foreign.iter().filter(|(run, _)| *run == s.run);
            let others = others.fold(String::new(), |all, (_, words)| all + "\n" + words);
            let rate = show_rate(self.rate(s.iops, s.mb_per_s));
            format!(
                "run {}, {} s\n{rate} {unit}{device}{others}",
                s.run.saturating_add(1),
                short_number(s.start_s)
            )
        };
        let middle = |s: &Second| self.timeline.at(s.run, s.start_s + s.seconds / 2.0);
        self.result.series.iter().map(|s| (middle(s), words(s))).collect()
    }

    fn latency_stops(&self, course: &Course, directions: &[Direction]) -> Vec<(f64, String)> {
        let stop = |(at, run, from, seconds): (usize, u32, f64, f64)| {
            let told = directions.iter().filter_map(|d| {
                let of = course.directions.get(d.word)?;
                let ns = |list: &[Option<u64>]| list.get(at).copied().flatten().map(|ns| time(ns as f64));
                Some(format!(
                    "\n{}: p50 {}, p99 {}, slowest {}",
                    d.words,
                    ns(&of.p50_ns)?,
                    ns(&of.p99_ns)?,
                    ns(&of.max_ns)?
                ))
            });
            let words = format!(
                "run {}, {} s{}",
                run.saturating_add(1),
                short_number(from),
                told.collect::<String>()
            );
            (self.timeline.at(run, from + seconds / 2.0), words)
        };
        stretches(course).map(stop).collect()
    }
}

/// The first rows of the course in numbers.
fn second_table(result: &Measured) -> String {
    let headings =
        ["run, second", "IOPS", "MB/s", "p99 at most", "device IOPS", "device latency", "in its queue"];
    let mut of = Table::new(&headings, &[]).aligned(6, false);
    for s in result.series.iter().take(MAX_TABLE_ROWS) {
        let ns = |ns: Option<f64>| super::words::time_or_dash(ns);
        let told = |value: Option<f64>| value.map_or_else(|| "-".into(), show_rate);
        of.add([
            format!("{}, {}", s.run.saturating_add(1), short_number(s.start_s)),
            show_rate(s.iops),
            show_rate(s.mb_per_s),
            ns(s.p99_at_most_ns.map(|ns| ns as f64)),
            told(s.device.map(|d| d.iops)),
            ns(s.device.and_then(|d| d.latency_ns)),
            told(s.device.map(|d| d.in_flight)),
        ]);
    }
    let rest = result.series.len().saturating_sub(MAX_TABLE_ROWS);
    let more = if rest > 0 { format!("; {rest} more rows are in the JSON") } else { String::new() };
    table::table(&format!("The course of {} second by second{more}", result.name), &of)
}
