//! Pages of loads that fathom observed: a capture over time and over the device, and watched devices over time.

use super::page::{
    card, facts, head_card, key, plain_card, rate_tick, short_number, time, time_tick, with_micro_sign,
};
use super::plot::{Axis, Level, Plot, SIDE, count_cells};
use super::{page, plot};
use crate::Style;
use crate::view::captures::{
    describe_aspects, describe_filter, describe_origin, describe_other_tasks, operation_table, task_table,
};
use model::captured::{Captured, KindSeries, LoadSeries, Op, Places};
use model::units::{show_bytes, show_count, show_rate, show_share};
use model::watch::{DeviceOverTime, LoadOverTime, LoadPoint};
use std::io::{self, Write};

/// Link name of all plots of a capture over time. Plots with the same link share a crosshair.
const CAPTURE_LINK: &str = "capture";

pub(super) fn write_capture(captured: &Captured, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let word = captured.completeness.word.to_uppercase();
    let colour_word = match captured.completeness.word.as_str() {
        "complete" => "OK",
        "incomplete" => "SUSPECT",
        _ => "",
    };
    let cut = captured
        .damage
        .as_ref()
        .map(|damage| format!("The file is {damage}; the part before that is shown."));
    let shown = captured.filter.as_ref().map(describe_filter);
    let sentences: Vec<String> =
        [Some(captured.completeness.sentence.clone()), cut, shown].into_iter().flatten().collect();
    let mut sections = vec![head_card(&word, colour_word, &describe_origin(captured), &sentences)];
    if captured.profile.requests == 0 {
        sections.push(plain_card("The capture contains no requests", ""));
    } else {
        sections.push(plain_card(
            "Operations",
            &page::table("Operations", &operation_table(&captured.profile.operations)),
        ));
        if let Some(time_series) = &captured.profile.time_series {
            sections.push(plain_card("Over time", &draw_over_time(time_series)));
            sections.extend(time_series.places.as_ref().map(|places| draw_places(time_series, places)));
        }
        let aspects = describe_aspects(captured)
            .into_iter()
            .map(|(what, text)| (what.to_owned(), with_micro_sign(&text)));
        sections.push(plain_card("Profile", &facts(&aspects.collect::<Vec<_>>())));
        let others = describe_other_tasks(&captured.profile);
        let who = page::table("Tasks", &task_table(&captured.profile.tasks));
        if !who.is_empty() {
            sections.push(card("Tasks", &[others], &who));
        }
    }
    page::write_page(to, &format!("{word} · capture"), &["capture".into(), captured.file.clone()], &sections)
}

/// Returns the CSS class of a line: one colour on the whole page for each of reads, writes and flushes, and one for all other requests.
fn line_class(op: Op) -> &'static str {
    match op {
        Op::Read => "ours",
        Op::Write => "third",
        Op::Flush => "fourth",
        Op::Discard | Op::Zeroes | Op::Other => "mean",
    }
}

fn plural(op: Op) -> &'static str {
    match op {
        Op::Read => "reads",
        Op::Write => "writes",
        Op::Discard => "discards",
        Op::Zeroes => "writes of zeroes",
        Op::Flush => "flushes",
        Op::Other => "other requests",
    }
}

/// An interval of a plot over time, in seconds.
struct Interval {
    start: f64,
    end: f64,
    middle: f64,
}

/// A line of a plot over time. An unknown value is NaN.
struct Line {
    class: &'static str,
    name: &'static str,
    /// A value for each interval.
    values: Vec<f64>,
}

/// A plot over time.
struct TimePlot {
    title: &'static str,
    lines: Vec<Line>,
    y: Axis,
    y_tick: fn(f64) -> String,
    show: fn(f64) -> String,
    /// A value that is marked with a horizontal line; `None` for no line.
    limit: Option<f64>,
}

fn draw_over_time(time_series: &LoadSeries) -> String {
    let step_s = time_series.step_ns as f64 / 1e9;
    let line =
        |one: &KindSeries, values: Vec<f64>| Line { class: line_class(one.op), name: plural(one.op), values };
    let count_plot = |title, number: fn(&KindSeries) -> &[u64], per: f64| {
        let moved = time_series.kinds.iter().filter(|one| number(one).iter().any(|n| *n > 0));
        let lines = moved.map(|one| line(one, number(one).iter().map(|n| *n as f64 / per).collect()));
        rate_plot(title, lines.collect(), None, show_rate)
    };
    let rate = count_plot("Requests issued per second", |one| &one.requests, step_s);
    let bytes = count_plot("MB/s", |one| &one.bytes, 1e6 * step_s);
    let means = time_series
        .kinds
        .iter()
        .map(|one| line(one, one.latency_mean_ns.iter().map(|ns| ns.unwrap_or(f64::NAN)).collect()));
    let lines: Vec<Line> = means.filter(|line| line.values.iter().any(|ns| ns.is_finite())).collect();
    let y = Axis::log(lines.iter().flat_map(|line| line.values.iter().copied()));
    let title = "Latency, from issue to completion, mean (logarithmic)";
    let latency = TimePlot { title, lines, y, y_tick: time_tick, show: time, limit: None };
    let interval = |at: usize| Interval {
        start: at as f64 * step_s,
        end: (at + 1) as f64 * step_s,
        middle: (at as f64 + 0.5) * step_s,
    };
    let intervals: Vec<Interval> = (0..time_series.steps).map(interval).collect();
    let items: Vec<(&str, &str)> =
        time_series.kinds.iter().map(|one| (line_class(one.op), plural(one.op))).collect();
    let plots = [rate, bytes, latency].into_iter().filter(|plot| !plot.lines.is_empty());
    key(&items)
        + &plots.map(|plot| plot.html(&time_axis(time_series), &intervals, CAPTURE_LINK)).collect::<String>()
}

/// Returns the plot of rates, whose axis begins at zero.
fn rate_plot(title: &'static str, lines: Vec<Line>, limit: Option<f64>, show: fn(f64) -> String) -> TimePlot {
    let y = Axis::from_zero(lines.iter().flat_map(|line| line.values.iter().copied()).chain(limit));
    TimePlot { title, lines, y, y_tick: rate_tick, show, limit }
}

/// Returns the time axis of a capture.
fn time_axis(time_series: &LoadSeries) -> Axis {
    Axis::linear(0.0, time_series.steps as f64 * time_series.step_ns as f64 / 1e9)
}

fn second_tick(second: f64) -> String {
    format!("{} s", short_number(second))
}

impl TimePlot {
    /// Draws the lines on the time axis `x`. Plots with the same `link` share a crosshair.
    fn html(&self, x: &Axis, intervals: &[Interval], link: &str) -> String {
        let names: Vec<&str> = self.lines.iter().map(|line| line.name).collect();
        let mut plot = Plot {
            title: self.title.into(),
            description: format!("{} over time: {}", self.title, names.join(", ")),
            height: 150,
            y: self.y.ticks_down(self.y_tick),
            x: x.ticks(second_tick),
            link: link.into(),
            ..Plot::default()
        };
        for line in &self.lines {
            let level = |(interval, value): (&Interval, &f64)| Level {
                from: x.along(interval.start),
                to: x.along(interval.end),
                y: self.y.down(*value),
            };
            plot.draw(line.class, &plot::steps(intervals.iter().zip(&line.values).map(level)));
        }
        if let Some(limit) = self.limit {
            let y = self.y.down(limit);
            plot.draw("target", &plot::line([(0.0, y), (SIDE, y)]));
        }
        let crosshair_point = |(at, interval): (usize, &Interval)| {
            let known = |line: &Line| line.values.get(at).copied().filter(|value| value.is_finite());
            let values = self.lines.iter().filter_map(|line| Some((line.name, known(line)?)));
            let values = values.map(|(name, value)| format!("\n{name}: {}", (self.show)(value)));
            let middle = interval.middle;
            (x.along(middle), format!("{}{}", second_tick(middle), values.collect::<String>()))
        };
        plot.set_crosshair_points(&intervals.iter().enumerate().map(crosshair_point).collect::<Vec<_>>());
        plot.html()
    }
}

/// Returns the largest binary unit that `bytes` reaches, in bytes, and its name. An axis in this
/// unit has round ticks.
fn byte_unit(bytes: u64) -> (f64, &'static str) {
    let all = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (unit, name) = all.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1, "B"));
    (unit as f64, name)
}

/// Draws the start offsets of reads and of writes over time.
fn draw_places(time_series: &LoadSeries, places: &Places) -> String {
    let x = time_axis(time_series);
    let end = places.first_byte.saturating_add(places.row_bytes.saturating_mul(places.rows as u64));
    let (unit, name) = byte_unit(end - places.first_byte);
    let y = Axis::linear(places.first_byte as f64 / unit, end as f64 / unit);
    let mut body = String::new();
    for (op, cells) in &places.kinds {
        let requests: u64 = cells.iter().map(|cell| cell.requests).sum();
        let mut plot = Plot {
            // The unit is in the title, because next to each tick it would not fit on a narrow screen.
            title: format!("Offsets of {}, {name}", plural(*op)),
            description: format!(
                "Where {} {} began, from {} to {} of the device, over time",
                show_count(requests as f64),
                plural(*op),
                show_bytes(places.first_byte),
                show_bytes(end)
            ),
            height: 240,
            y: y.ticks_down(short_number),
            x: x.ticks(second_tick),
            ..Plot::default()
        };
        let paths = count_cells(
            [time_series.steps, places.rows],
            cells.iter().map(|cell| (cell.step, cell.row, cell.requests)),
        );
        for (shade, path) in paths.iter().enumerate() {
            let colour = if *op == Op::Read { "" } else { " of-third" };
            plot.draw(&format!("cell shade-{}{colour}", shade + 1), path);
        }
        body += &plot.html();
    }
    let lead = format!(
        "Each cell covers {} of the device and {}. In darker cells more requests began (logarithmic).",
        show_bytes(places.row_bytes),
        time(time_series.step_ns as f64)
    );
    card("On the device", &[lead], &body)
}

pub(super) fn write_load(load: &LoadOverTime, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let date_time = |text: &str| text.get(..19).unwrap_or(text).replace('T', " ");
    let mut sentences = vec![format!("{} to {}.", date_time(&load.started), date_time(&load.ended))];
    if load.intervals_per_point > 1 {
        sentences.push(format!("Each point is the mean of {} intervals.", load.intervals_per_point));
    }
    let mut sections = vec![head_card("WATCHED", "", "load over time", &sentences)];
    if !load.conclusions.is_empty() {
        let items = load.conclusions.iter().map(|c| (date_time(&c.since), with_micro_sign(&c.text)));
        sections.push(plain_card("What the figures mean", &facts(&items.collect::<Vec<_>>())));
    }
    sections.extend(load.devices.iter().enumerate().map(|(at, device)| device_card(device, at)));
    let mut header = vec!["watch".to_owned()];
    header.extend(load.targets.iter().cloned());
    page::write_page(to, "watch", &header, &sections)
}

fn device_card(device: &DeviceOverTime, number: usize) -> String {
    let points = &device.points;
    let [from, to] =
        [points.first().map_or(0.0, |p| p.span_s[0]), points.last().map_or(1.0, |p| p.span_s[1])];
    let x = Axis::linear(from, to);
    let interval = |point: &LoadPoint| {
        let [start, end] = point.span_s;
        Interval { start, end, middle: f64::midpoint(start, end) }
    };
    let intervals: Vec<Interval> = points.iter().map(interval).collect();
    let link = format!("load{number}");
    let line = |class, name, value: fn(&LoadPoint) -> Option<f64>| Line {
        class,
        name,
        values: points.iter().map(|point| value(point).unwrap_or(f64::NAN)).collect(),
    };
    let draw = |plot: TimePlot| plot.html(&x, &intervals, &link);
    let rates =
        vec![line("ours", "reads", |p| Some(p.per_s?[0])), line("third", "writes", |p| Some(p.per_s?[1]))];
    let bytes = vec![
        line("ours", "reads", |p| Some(p.mb_per_s?[0])),
        line("third", "writes", |p| Some(p.mb_per_s?[1])),
    ];
    let mut body = key(&[("ours", "reads"), ("third", "writes")]);
    body += &draw(rate_plot("Requests per second", rates, None, show_rate));
    body += &draw(rate_plot("MB/s (10^6 bytes)", bytes, None, show_rate));
    let mut lead = Vec::new();
    if points.iter().any(|p| p.at_least_percent.is_some()) {
        body +=
            &key(&[("ours", "load, at least"), ("mean", "load, at most"), ("target", "measured capacity")]);
        let shares = vec![
            line("ours", "at least", |p| p.at_least_percent),
            line("mean", "at most", |p| p.at_most_percent),
        ];
        let title = "Load, % of the measured capacity";
        body += &draw(rate_plot(title, shares, Some(100.0), |percent| show_share(percent / 100.0)));
        let highest = points.iter().filter_map(|p| p.at_least_percent).fold(0.0, f64::max);
        lead.push(format!(
            "The highest load was at least {} of the measured capacity.",
            show_share(highest / 100.0)
        ));
    } else if let Some(why) = &device.limit_unknown {
        lead.push(format!("The load cannot be compared with a measured capacity: {why}."));
    }
    card(&device.name, &lead, &body)
}

#[test]
fn a_page_has_plots_of_each_device_and_the_reasons_of_unknown_limits() {
    let point = |at: f64, percent: Option<f64>| LoadPoint {
        span_s: [at, at + 1.0],
        per_s: Some([500.0 * at, 10.0]),
        mb_per_s: Some([2.0 * at, 0.1]),
        at_least_percent: percent,
        at_most_percent: None,
    };
    let device = |name: &str, percent, unknown: Option<&str>| DeviceOverTime {
        name: name.into(),
        points: vec![point(0.0, percent), point(1.0, percent)],
        limit_unknown: unknown.map(str::to_owned),
    };
    let load = LoadOverTime {
        targets: vec!["/data<b>".into()],
        started: "2026-11-23T15:00:00.000+00:00".into(),
        ended: "2026-11-23T15:00:01.000+00:00".into(),
        intervals_per_point: 2,
        devices: vec![
            device("vda", Some(92.0), None),
            device("loop0", None, Some("limit unknown: run `fathom bench`")),
        ],
        conclusions: vec![model::watch::TimedConclusion {
            since: "2026-11-23T15:00:00.000+00:00".into(),
            text: "vda is at 92 % of the IOPS".into(),
        }],
    };
    let mut bytes = Vec::new();
    write_load(&load, Style::default(), &mut bytes).unwrap_or_else(|e| panic!("{e}"));
    let page = String::from_utf8(bytes).unwrap_or_default();
    for expected in [
        "at least 92 % of the measured capacity",
        "limit unknown",
        "vda is at 92 % of the IOPS",
        "mean of 2 intervals",
        "2026-11-23 15:00:00",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert_eq!((page.matches("<figure").count(), page.contains("/data<b>")), (5, false), "{page}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::captures::captured;
    use model::captured::Place;

    fn page(captured: &Captured) -> String {
        let mut out = Vec::new();
        write_capture(captured, Style::default(), &mut out).unwrap_or_else(|e| panic!("{e}"));
        String::from_utf8(out).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_load_is_drawn_over_time_and_over_the_device() {
        let mut capture = captured();
        capture.file = "<b>.capture".into();
        let reads = KindSeries {
            op: Op::Read,
            requests: vec![5, 0, 7],
            bytes: vec![20_480, 0, 28_672],
            latency_mean_ns: vec![Some(1e5), None, Some(3e5)],
        };
        let cells = [(0, 0, 5), (2, 1, 7)].map(|(step, row, requests)| Place { step, row, requests });
        let places = Places {
            first_byte: 1 << 30,
            row_bytes: 1 << 20,
            rows: 2,
            kinds: vec![(Op::Read, cells.to_vec())],
        };
        capture.profile.time_series =
            Some(LoadSeries { step_ns: 500_000_000, steps: 3, kinds: vec![reads], places: Some(places) });
        let html = page(&capture);
        assert!(!html.contains("<b>.capture") && !html.contains("NaN"), "{html}");
        for text in [
            "Requests issued per second",
            "MB/s",
            "Latency, from issue",
            "Offsets of reads",
            "1 MiB of the device",
        ] {
            assert!(html.contains(text), "{text}");
        }
        assert!(html.contains("cell shade-5") && !html.contains("Offsets of writes"));
        // Ten per second in the first half second, none in the next half.
        assert!(html.contains("0.25 s\\nreads: 10"), "{html}");
        assert!(html.contains("0.75 s\\nreads: 0"), "{html}");
    }

    #[test]
    fn a_capture_without_requests_is_a_page_too() {
        let mut capture = captured();
        capture.profile = model::captured::Profile::default();
        assert!(page(&capture).contains("The capture contains no requests"));
    }
}
