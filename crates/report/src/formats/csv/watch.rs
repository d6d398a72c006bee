//! An interval that was watched as CSV: a line per device.
//!
//! For: spreadsheets and plots; an empty field is not known. Not for: processes and remarks, which have other columns: `json` has them.

use crate::format::Style;
use model::watch::{FlushRequests, Latency, Requests, Watched, WatchedDevice};
use std::io;

/// Names of the fields.
const WATCH_HEADINGS: [&str; 40] = [
    "time",
    "device",
    "level",
    "seconds",
    "read_per_s",
    "read_mb_per_s",
    "read_request_bytes",
    "read_await_ms",
    "read_merged_per_s",
    "read_merged_percent",
    "write_per_s",
    "write_mb_per_s",
    "write_request_bytes",
    "write_await_ms",
    "write_merged_per_s",
    "write_merged_percent",
    "discard_per_s",
    "discard_mb_per_s",
    "discard_request_bytes",
    "discard_await_ms",
    "flush_per_s",
    "flush_await_ms",
    "depth_mean",
    "in_flight",
    "util_percent",
    "load_at_least_percent",
    "load_at_most_percent",
    "load_session",
    "read_p50_ms",
    "read_p99_ms",
    "read_max_ms",
    "write_p50_ms",
    "write_p99_ms",
    "write_max_ms",
    "discard_p50_ms",
    "discard_p99_ms",
    "discard_max_ms",
    "flush_p50_ms",
    "flush_p99_ms",
    "flush_max_ms",
];

pub(super) fn write_watched(watched: &Watched, _: Style, to: &mut dyn io::Write) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(to);
    if watched.first {
        out.write_record(WATCH_HEADINGS)?;
    }
    for device in watched.devices.iter().filter(|d| !watched.layout.active_only || d.is_active()) {
        out.write_record(device_fields(&watched.time, device))?;
    }
    out.flush()
}

fn device_fields(time: &str, device: &WatchedDevice) -> Vec<String> {
    let figures = device.figures.as_ref().ok();
    let load = device.load.as_ref().and_then(|l| l.as_ref().ok());
    let mut all = vec![time.to_owned(), device.name.clone(), device.level.to_string()];
    all.push(number_field(figures.map(|f| f.seconds)));
    all.extend(request_fields(figures.map(|f| f.read)));
    all.extend(request_fields(figures.map(|f| f.write)));
    all.extend(request_fields(figures.and_then(|f| f.discard)).into_iter().take(4));
    let flush: Option<FlushRequests> = figures.and_then(|f| f.flush);
    all.extend([number_field(flush.map(|f| f.per_s)), number_field(flush.and_then(|f| f.await_ms))]);
    all.push(number_field(figures.map(|f| f.depth_mean)));
    all.push(figures.map_or_else(String::new, |f| f.in_flight.to_string()));
    all.push(number_field(figures.map(|f| f.util_percent)));
    all.push(number_field(load.map(|l| l.at_least_percent)));
    all.push(number_field(load.and_then(|l| l.at_most_percent)));
    all.push(load.and_then(|l| l.sessions.first()).map_or_else(String::new, |s| s.session.clone()));
    let latency = device.latency.as_ref().and_then(|l| l.as_ref().ok());
    let directions = [
        latency.map(|l| l.read),
        latency.map(|l| l.write),
        latency.map(|l| l.discard),
        latency.map(|l| l.flush),
    ];
    all.extend(directions.into_iter().flat_map(|of| latency_fields(of.flatten())));
    all
}

fn latency_fields(of: Option<Latency>) -> [String; 3] {
    [
        number_field(of.and_then(|l| l.p50_ms)),
        number_field(of.and_then(|l| l.p99_ms)),
        number_field(of.map(|l| l.max_ms)),
    ]
}

fn request_fields(of: Option<Requests>) -> [String; 6] {
    [
        number_field(of.map(|r| r.per_s)),
        number_field(of.map(|r| r.mb_per_s)),
        number_field(of.and_then(|r| r.request_bytes)),
        number_field(of.and_then(|r| r.await_ms)),
        number_field(of.map(|r| r.merged_per_s)),
        number_field(of.and_then(|r| r.merged_percent)),
    ]
}

fn number_field(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

#[test]
fn names_stand_once_and_each_line_has_all_fields() -> io::Result<()> {
    let mut watched = crate::fixture::watched();
    let mut bytes = Vec::new();
    write_watched(&watched, Style::default(), &mut bytes)?;
    watched.first = false;
    write_watched(&watched, Style::default(), &mut bytes)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|l| l.split(',').count() == WATCH_HEADINGS.len()), "{text}");
    assert!(lines[0].starts_with("time,device,level,seconds,read_per_s"), "{text}");
    let known: Vec<&str> = lines[1].split(',').collect();
    assert_eq!((known[1], known[4], known[13], known[20], known[26]), ("loop0", "500", "", "", "40"));
    assert_eq!(&known[28..34], ["0.07", "0.31", "1.25", "", "", ""], "no write completed");
    assert_eq!(&known[37..], ["0.07", "", "1.25"]);
    // What is not known is no zero.
    assert!(lines[2].split(',').skip(3).all(str::is_empty), "{text}");
    Ok(())
}
