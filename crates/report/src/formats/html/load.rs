//! The page of `fathom watch -o FILE.html`: the load of each device over time, with the room that is left up to what was measured on it.

use super::comparison::head_card;
use super::page::{card, facts, key};
use super::plot::axis::Axis;
use super::plot::{Plot, line};
use super::words::{rate_tick, short_number, with_micro_sign};
use crate::format::Style;
use model::units::{show_rate, show_share};
use model::watch::{DeviceOverTime, LoadOverTime, LoadPoint};
use std::io::{self, Write};

/// A series of a plot: its style, its name and its values.
type Series = (&'static str, &'static str, Vec<Option<f64>>);

pub(super) fn write_load(load: &LoadOverTime, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let time = |text: &str| text.get(..19).unwrap_or(text).replace('T', " ");
    let mut sentences = vec![format!("{} to {}.", time(&load.started), time(&load.ended))];
    if load.intervals_per_point > 1 {
        sentences.push(format!("Each point is the mean of {} intervals.", load.intervals_per_point));
    }
    let mut sections = vec![head_card("WATCHED", "", "load over time", &sentences)];
    if !load.conclusions.is_empty() {
        let items = load.conclusions.iter().map(|(at, text)| (time(at), with_micro_sign(text)));
        sections.push(card::<&str>("What the figures mean", &[], &facts(&items.collect::<Vec<_>>())));
    }
    sections.extend(load.devices.iter().enumerate().map(|(at, device)| device_card(device, at)));
    let mut eye = vec!["watch".to_owned()];
    eye.extend(load.targets.iter().cloned());
    super::others::write_page(to, "watch", &eye, &sections)
}

fn device_card(device: &DeviceOverTime, number: usize) -> String {
    let points = &device.points;
    let values = |of: &dyn Fn(&LoadPoint) -> Option<f64>| points.iter().map(of).collect::<Vec<_>>();
    let link = format!("load{number}");
    let rates: [Series; 2] = [
        ("ours", "reads", values(&|p| Some(p.per_s?[0]))),
        ("third", "writes", values(&|p| Some(p.per_s?[1]))),
    ];
    let bytes: [Series; 2] = [
        ("ours", "reads", values(&|p| Some(p.mb_per_s?[0]))),
        ("third", "writes", values(&|p| Some(p.mb_per_s?[1]))),
    ];
    let mut body = key(&[("ours", "reads"), ("third", "writes")]);
    body += &draw_load("Requests per second", &rates, points, None, &link, show_rate);
    body += &draw_load("MB/s (10^6 bytes)", &bytes, points, None, &link, show_rate);
    let share: [Series; 2] = [
        ("ours", "at least", values(&|p| p.at_least_percent)),
        ("mean", "at most", values(&|p| p.at_most_percent)),
    ];
    let mut lead = Vec::new();
    if points.iter().any(|p| p.at_least_percent.is_some()) {
        body += &key(&[
            ("ours", "load, at least"),
            ("mean", "load, at most"),
            ("target", "what was measured on it"),
        ]);
        body += &draw_load("Load, % of what was measured", &share, points, Some(100.0), &link, |v| {
            show_share(v / 100.0)
        });
        let highest = points.iter().filter_map(|p| p.at_least_percent).fold(0.0, f64::max);
        lead.push(format!(
            "The highest load was at least {} of what was measured on it.",
            show_share(highest / 100.0)
        ));
    } else if let Some(why) = &device.limit_unknown {
        lead.push(format!("Its load cannot be compared with what was measured: {why}."));
    }
    card(&device.name, &lead, &body)
}

/// A plot of some series over time, with a line at a limit.
fn draw_load(
    title: &str,
    series: &[Series],
    points: &[LoadPoint],
    limit: Option<f64>,
    link: &str,
    show: fn(f64) -> String,
) -> String {
    let [from, to] =
        [points.first().map_or(0.0, |p| p.span_s[0]), points.last().map_or(1.0, |p| p.span_s[1])];
    let x = Axis::linear(from, to);
    let y = Axis::from_zero(series.iter().flat_map(|s| s.2.iter().copied().flatten()).chain(limit));
    let mark_of_second = |second: f64| format!("{} s", short_number(second));
    let names: Vec<&str> = series.iter().map(|s| s.1).collect();
    let mut plot = Plot {
        title: title.into(),
        says: format!("{title} over time: {}", names.join(", ")),
        height: 150,
        y: y.ticks_down(rate_tick),
        x: x.ticks(mark_of_second),
        link: link.into(),
        ..Plot::default()
    };
    for (style, _, values) in series {
        let place = |(point, value): (&LoadPoint, &Option<f64>)| {
            let [start, end] = point.span_s.map(|s| x.along(s));
            (start, end, value.map_or(f64::NAN, |v| y.down(v)))
        };
        plot.draw(style, &line::steps(points.iter().zip(values).map(place)));
    }
    if let Some(limit) = limit {
        plot.draw("target", &line::line([(x.along(from), y.down(limit)), (x.along(to), y.down(limit))]));
    }
    let stop = |(at, point): (usize, &LoadPoint)| {
        let middle = f64::midpoint(point.span_s[0], point.span_s[1]);
        let values = series.iter().filter_map(|(_, name, values)| Some((name, (*values.get(at)?)?)));
        let words: Vec<String> = values.map(|(name, value)| format!("\n{name}: {}", show(value))).collect();
        (x.along(middle), format!("{}{}", mark_of_second(middle), words.concat()))
    };
    plot.stop_at(&points.iter().enumerate().map(stop).collect::<Vec<_>>());
    plot.html()
}

#[test]
fn a_page_has_the_plots_of_each_device_and_names_what_is_not_known() {
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
        conclusions: vec![("2026-11-23T15:00:00.000+00:00".into(), "vda is at 92 % of the IOPS".into())],
    };
    let mut bytes = Vec::new();
    write_load(&load, Style::default(), &mut bytes).unwrap_or_else(|e| panic!("{e}"));
    let page = String::from_utf8(bytes).unwrap_or_default();
    for words in [
        "at least 92 % of what was measured",
        "limit unknown",
        "vda is at 92 % of the IOPS",
        "mean of 2 intervals",
        "2026-11-23 15:00:00",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!((page.matches("<figure").count(), page.contains("/data<b>")), (5, false), "{page}");
}
