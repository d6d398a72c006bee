//! What is watched as metrics: totals since the device appeared as counters, in seconds and bytes, and the present state as gauges.
//!
//! Rates are left to the reader, who can compute them over any time. Processes are left out: their ids would make ever new series.

use super::{EOF, escaped, head};
use crate::format::Style;
use model::disk_counters::DiskCounters;
use model::watch::{Load, Watched, WatchedDevice};
use std::io::{self, Write};

/// A metric of a device.
struct Metric {
    name: &'static str,
    /// Its base unit, with which its name ends; empty where it counts.
    unit: &'static str,
    kind: MetricType,
    help: &'static str,
    value: fn(&DiskCounters) -> Option<f64>,
}

/// What a reader may do with it: take the rate of a counter, and of a gauge the value as it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricType {
    Counter,
    Gauge,
}

/// ms of a second.
const MS_PER_SECOND: f64 = 1000.0;

const fn counter(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&DiskCounters) -> Option<f64>,
) -> Metric {
    Metric { name, unit, kind: MetricType::Counter, help, value }
}

/// All of them, named as those of node_exporter are.
const METRICS: [Metric; 17] = [
    counter("reads_completed", "", "Reads completed.", |c| Some(c.read.ios as f64)),
    counter("reads_merged", "", "Reads merged into others.", |c| Some(c.read.merges as f64)),
    counter("read_bytes", "bytes", "Bytes read.", |c| Some(c.read.bytes as f64)),
    counter("read_time_seconds", "seconds", "Time of all reads together.", |c| {
        Some(c.read.ms as f64 / MS_PER_SECOND)
    }),
    counter("writes_completed", "", "Writes completed.", |c| Some(c.write.ios as f64)),
    counter("writes_merged", "", "Writes merged into others.", |c| Some(c.write.merges as f64)),
    counter("written_bytes", "bytes", "Bytes written.", |c| Some(c.write.bytes as f64)),
    counter("write_time_seconds", "seconds", "Time of all writes together.", |c| {
        Some(c.write.ms as f64 / MS_PER_SECOND)
    }),
    counter("discards_completed", "", "Discards completed.", |c| Some(c.discard?.ios as f64)),
    counter("discards_merged", "", "Discards merged into others.", |c| Some(c.discard?.merges as f64)),
    counter("discarded_bytes", "bytes", "Bytes discarded.", |c| Some(c.discard?.bytes as f64)),
    counter("discard_time_seconds", "seconds", "Time of all discards together.", |c| {
        Some(c.discard?.ms as f64 / MS_PER_SECOND)
    }),
    counter("flush_requests", "", "Flushes completed.", |c| Some(c.flush?.ios as f64)),
    counter("flush_requests_time_seconds", "seconds", "Time of all flushes together.", |c| {
        Some(c.flush?.ms as f64 / MS_PER_SECOND)
    }),
    counter("io_time_weighted_seconds", "seconds", "Time in flight of all requests together.", |c| {
        Some(c.queue_ms as f64 / MS_PER_SECOND)
    }),
    counter(
        "io_time_seconds",
        "seconds",
        "Time with at least one request in flight; no measure of how busy a device is that serves several at once.",
        |c| Some(c.busy_ms as f64 / MS_PER_SECOND),
    ),
    Metric {
        name: "io_now",
        unit: "",
        kind: MetricType::Gauge,
        help: "Requests in flight.",
        value: |c| Some(c.in_flight as f64),
    },
];

/// What the names of all begin with.
const PREFIX: &str = "fathom_disk_";

pub(super) fn write_watched(watched: &Watched, _: Style, to: &mut dyn Write) -> io::Result<()> {
    for metric in &METRICS {
        let counted = |d: &WatchedDevice| Some((d.name.clone(), (metric.value)(d.counters.as_ref()?)?));
        let values: Vec<(String, f64)> = watched.devices.iter().filter_map(counted).collect();
        // What no device has is no metric.
        if values.is_empty() {
            continue;
        }
        let name = format!("{PREFIX}{}", metric.name);
        let (kind, suffix) = match metric.kind {
            MetricType::Counter => ("counter", "_total"),
            MetricType::Gauge => ("gauge", ""),
        };
        head(to, &name, kind, metric.unit, metric.help)?;
        for (device, value) in values {
            writeln!(to, "{name}{suffix}{{device=\"{}\"}} {value}", escaped(&device))?;
        }
    }
    write_loads(watched, to)?;
    write_latencies(watched, to)?;
    to.write_all(EOF)
}

fn write_loads(watched: &Watched, to: &mut dyn Write) -> io::Result<()> {
    let known = |d: &'_ WatchedDevice| -> Option<(String, Load)> {
        Some((d.name.clone(), d.load.as_ref()?.as_ref().ok()?.clone()))
    };
    let loads: Vec<(String, Load)> = watched.devices.iter().filter_map(known).collect();
    if loads.is_empty() {
        return Ok(());
    }
    let name = format!("{PREFIX}load_ratio");
    let help = "Share that the load of the last interval is of what fathom measured on this device.";
    head(to, &name, "gauge", "ratio", help)?;
    for (device, load) in loads {
        let ends = [("at_least", Some(load.at_least_percent)), ("at_most", load.at_most_percent)];
        for (bound, percent) in ends.into_iter().filter_map(|(bound, percent)| Some((bound, percent?))) {
            writeln!(to, "{name}{{device=\"{}\",bound=\"{bound}\"}} {}", escaped(&device), percent / 100.0)?;
        }
    }
    Ok(())
}

/// Times of the last interval, by the kernel's block events; what is not known is no line.
fn write_latencies(watched: &Watched, to: &mut dyn Write) -> io::Result<()> {
    let name = format!("{PREFIX}interval_latency_seconds");
    let mut lines = Vec::new();
    for device in &watched.devices {
        let Some(Ok(all)) = &device.latency else { continue };
        for (direction, latency) in all.all() {
            let ends = [("0.5", latency.p50_ms), ("0.99", latency.p99_ms), ("1", Some(latency.max_ms))];
            for (share, ms) in ends.into_iter().filter_map(|(share, ms)| Some((share, ms?))) {
                let device = escaped(&device.name);
                let labels = format!("device=\"{device}\",direction=\"{direction}\",share=\"{share}\"");
                lines.push(format!("{name}{{{labels}}} {}", ms / MS_PER_SECOND));
            }
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let help = "Time that this share of the requests that completed in the last interval did not exceed.";
    head(to, &name, "gauge", "seconds", help)?;
    lines.iter().try_for_each(|line| writeln!(to, "{line}"))
}

#[test]
fn counters_are_totals_in_base_units_and_what_is_not_counted_is_no_metric() -> io::Result<()> {
    let text = |watched: &Watched| -> io::Result<String> {
        let mut bytes = Vec::new();
        write_watched(watched, Style::default(), &mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap_or_default())
    };
    let mut watched = crate::fixture::watched();
    let all = text(&watched)?;
    let expected = "# TYPE fathom_disk_read_time_seconds counter\n# UNIT fathom_disk_read_time_seconds seconds\n\
                    # HELP fathom_disk_read_time_seconds Time of all reads together.\n\
                    fathom_disk_read_time_seconds_total{device=\"loop0\"} 0.005\n";
    assert!(all.contains(expected), "{all}");
    assert!(all.contains("fathom_disk_read_bytes_total{device=\"vda\"} 40960\n"), "{all}");
    assert!(all.contains("fathom_disk_load_ratio{device=\"loop0\",bound=\"at_most\"} 0.4\n"), "{all}");
    let p99 =
        "fathom_disk_interval_latency_seconds{device=\"loop0\",direction=\"read\",share=\"0.99\"} 0.00031\n";
    assert!(all.contains(p99), "{all}");
    assert!(!all.contains("direction=\"flush\",share=\"0.99\""), "{all}");
    assert!(all.ends_with("\n# EOF\n") && all.matches("# EOF").count() == 1);
    // The unit is the end of the name.
    assert!(METRICS.iter().all(|m| m.name.ends_with(m.unit)));
    for device in &mut watched.devices {
        device.counters = DiskCounters::parse("1 2 3 4 5 6 7 8 9 10 11").ok();
        device.load = Some(Err("limit unknown".into()));
        device.latency = Some(Err("lost".into()));
    }
    watched.devices[0].name = "a\"\\b".into();
    let old = text(&watched)?;
    assert!(
        !old.contains("discard")
            && !old.contains("flush")
            && !old.contains("load")
            && !old.contains("latency"),
        "{old}"
    );
    assert!(old.contains("{device=\"a\\\"\\\\b\"} 1\n"), "{old}");
    Ok(())
}
