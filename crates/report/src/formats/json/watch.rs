//! An interval that was watched as lines of JSON: an object for the CPUs, each device, each process and each remark.
//!
//! Programs read it line by line while watching continues. `docs/reference/watch.md` explains the keys.

use super::Numbered;
use crate::format::Style;
use model::machine::LayerKind;
use model::watch::{
    Conclusion, CpuShares, DeviceInterval, Latencies, Load, Watched, WatchedDevice, WatchedProcess,
};
use serde::Serialize;
use std::io::{self, Write};

/// What a line is about, with the end of its interval.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Line<'w> {
    /// What a device did in the interval.
    Device {
        time: &'w str,
        #[serde(flatten)]
        device: Device<'w>,
    },
    /// What the CPUs did in the interval.
    Cpu {
        time: &'w str,
        #[serde(flatten)]
        shares: CpuShares,
    },
    /// What a process did in the interval.
    Process {
        time: &'w str,
        seconds: f64,
        #[serde(flatten)]
        process: &'w WatchedProcess,
    },
    /// What appeared, disappeared or is not known.
    Remark { time: &'w str, text: &'w str },
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Device<'w> {
    #[serde(rename = "device")]
    name: &'w str,
    volume: Option<&'w str>,
    number: &'w str,
    layer: LayerKind,
    level: usize,
    below: &'w [String],
    /// Its figures; absent where they are not known.
    #[serde(flatten)]
    figures: Option<&'w DeviceInterval>,
    /// Why they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_known: Option<&'w str>,
    load: Option<&'w Load>,
    /// Why the load is not told; absent where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_unknown: Option<&'w str>,
    /// Conclusions that the figures support.
    conclusions: &'w [Conclusion],
    /// `null` if it is not known or was not observed.
    latency: Option<&'w Latencies>,
    /// Why it is not; absent where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_not_known: Option<&'w str>,
}

pub(super) fn write_watched(watched: &Watched, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let time = watched.time.as_str();
    let mut line = |line: &Line<'_>| -> io::Result<()> {
        serde_json::to_writer(&mut *to, &Numbered::new(line))?;
        to.write_all(b"\n")
    };
    for text in &watched.remarks {
        line(&Line::Remark { time, text })?;
    }
    if let Some(shares) = watched.cpu {
        line(&Line::Cpu { time, shares })?;
    }
    for device in watched.devices.iter().filter(|d| !watched.layout.active_only || d.is_active()) {
        line(&Line::Device { time, device: to_json(device) })?;
    }
    let Some(processes) = &watched.processes else { return Ok(()) };
    if let Some(why) = &processes.calls_not_known {
        line(&Line::Remark { time, text: &format!("calls not known: {why}") })?;
    }
    for process in &processes.most {
        line(&Line::Process { time, seconds: processes.seconds, process })?;
    }
    Ok(())
}

fn to_json(device: &WatchedDevice) -> Device<'_> {
    Device {
        name: &device.name,
        volume: device.volume.as_deref(),
        number: &device.number,
        layer: device.kind,
        level: device.level,
        below: &device.below,
        figures: device.figures.as_ref().ok(),
        not_known: device.figures.as_ref().err().map(String::as_str),
        load: device.load.as_ref().and_then(|load| load.as_ref().ok()),
        limit_unknown: device.load.as_ref().and_then(|load| load.as_ref().err()).map(String::as_str),
        conclusions: &device.conclusions,
        latency: device.latency.as_ref().and_then(|l| l.as_ref().ok()),
        latency_not_known: device.latency.as_ref().and_then(|l| l.as_ref().err()).map(String::as_str),
    }
}

#[test]
fn every_line_is_an_object_of_its_own_and_what_is_not_known_is_null_or_told() {
    let mut bytes = Vec::new();
    write_watched(&crate::fixture::watched(), Style::default(), &mut bytes).unwrap_or_else(|e| panic!("{e}"));
    let text = String::from_utf8(bytes).unwrap_or_default();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    let kinds: Vec<&str> = lines.iter().filter_map(|l| l["kind"].as_str()).collect();
    assert_eq!(kinds, ["remark", "cpu", "device", "device", "process", "process"]);
    assert!(lines.iter().all(|line| line["format"] == 1), "{text}");
    assert_eq!((&lines[1]["iowait_percent"], &lines[1]["idle_percent"]), (&1.7.into(), &96.4.into()));
    let lines = &lines[1..];
    let (known, unknown) = (&lines[1], &lines[2]);
    assert_eq!((&known["device"], &known["read"]["per_s"]), (&"loop0".into(), &500.0.into()));
    assert!(known["write"]["await_ms"].is_null() && known["flush"].is_null() && known["util_percent"] == 4.0);
    assert_eq!(known["load"]["at_most_percent"], 40.0);
    assert_eq!(known["load"]["sessions"][0]["session"], "20261123-1");
    assert_eq!(known["latency"]["read"]["p99_ms"], 0.31);
    assert!(known["latency"]["write"].is_null() && known["latency"]["flush"]["p99_ms"].is_null());
    assert!(unknown["latency"].is_null() && lines[4]["requests"].is_null());
    let read = &lines[3]["requests"]["read"];
    assert_eq!((&read["p50_bytes"], &read["sequential_percent"]), (&4096.into(), &2.0.into()));
    let calls = &lines[3]["calls"];
    assert_eq!(
        (&calls["calls"][0]["name"], &calls["calls"][0]["count"]),
        (&"io_uring_enter".into(), &500.into())
    );
    assert!(calls["faults"]["minor_per_s"] == 12.0 && lines[4]["calls"].is_null());
    assert!(
        unknown.get("read").is_none() && unknown["not_known"].as_str().is_some_and(|w| w.contains("jumped"))
    );
    assert_eq!((&lines[3]["open"]["direct"], &lines[3]["seconds"]), (&true.into(), &1.0.into()));
}
