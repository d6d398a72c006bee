//! The format `json`: documents for programs. The keys of most documents are the field names of the
//! types. The object of a verification and the lines of a watched interval are built here.
//!
//! The keys are a contract (format 1): they do not change, and more may be added. A report, a
//! comparison and a verification have the number of the format in `fathom.format`. The page of a
//! check has no number. All other objects have it in `format`. [`SCHEMAS`] describes the documents
//! that scripts read most. A watched interval is several lines, each with one JSON object: for the
//! CPUs, each device, each process and each remark. `docs/reference/watch.md` explains the keys.

use crate::view::verification::{describe_failure, verification_notes};
use crate::{Content, Format, Style, writer};
use model::history::{Entry, Listing, SessionTable};
use model::machine::LayerKind;
use model::report::FORMAT as CONTRACT;
use model::stamp::Damage;
use model::verification::{Failures, HostVerification, Verifications, Verified};
use model::watch::{
    Conclusion, CpuShares, DeviceInterval, Latencies, Load, Watched, WatchedDevice, WatchedProcess,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "json",
    extension: "json",
    content: Content::Json,
    has_brief: false,
    report: writer("every value, with stable key names (format 1)", write),
    comparison: writer("everything, for programs", write),
    comparisons: writer("everything, for programs", write),
    plan: None,
    sessions: writer("an array of sessions, with every value of each", write_listing),
    session_table: writer("the columns, the rows, and what the table leaves out", write_table),
    pages: writer("every part of each page, for programs", write),
    diagnosis: writer("everything, for programs", write),
    devices: writer("everything, for programs", write),
    verified: writer("for programs", write_verification),
    watched: writer("one object per line: the CPUs, each device, process and remark", write_watched),
    load_over_time: None,
    captured: writer("everything, for programs", write),
    fitted: writer("everything, for programs", write),
};

/// The JSON schemas (draft 2020-12) of documents, by the name for `fathom export --schema=NAME`. A test generates each from the
/// types.
pub const SCHEMAS: [(&str, &str); 4] = [
    ("report", include_str!("schema.json")),
    ("list", include_str!("schema-list.json")),
    ("table", include_str!("schema-table.json")),
    ("watch", include_str!("schema-watch.json")),
];

/// A JSON object whose first member is `format`, the number of the format.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Numbered<T> {
    /// Version of the JSON contract.
    format: u32,
    #[serde(flatten)]
    object: T,
}

impl<T> Numbered<T> {
    fn new(object: T) -> Self {
        Self { format: CONTRACT, object }
    }
}

fn write<K: Serialize + ?Sized>(report: &K, _: Style, mut to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut to, report)?;
    to.write_all(b"\n")
}

fn write_listing(listing: &Listing, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let entries: Vec<Numbered<&Entry>> = listing.entries.iter().map(Numbered::new).collect();
    write(&entries, style, to)
}

fn write_table(table: &SessionTable, style: Style, to: &mut dyn Write) -> io::Result<()> {
    write(&Numbered::new(table), style, to)
}

fn write_verification(all: &Verifications, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut value = json!({ "fathom": all.fathom, "verdict": all.verdict().word() });
    match all.only() {
        Some(verified) => add_members(&mut value, verification_json(verified)),
        None => {
            add_members(&mut value, json!({ "hosts": all.hosts.iter().map(host_json).collect::<Vec<_>>() }));
        }
    }
    write(&value, style, to)
}

fn host_json(on: &HostVerification) -> Value {
    let mut value = json!({ "host": on.host });
    match &on.outcome {
        Ok(verified) => {
            add_members(&mut value, json!({ "verdict": verified.verdict().word() }));
            add_members(&mut value, verification_json(verified));
        }
        Err(why) => add_members(&mut value, json!({ "verdict": null, "reason": why })),
    }
    value
}

/// Adds the members of another object.
fn add_members(value: &mut Value, more: Value) {
    if let (Value::Object(value), Value::Object(more)) = (value, more) {
        value.extend(more);
    }
}

fn verification_json(verified: &Verified) -> Value {
    let request = &verified.verification;
    let read = verified.read.as_ref().map(|(r, _)| r);
    let damage: Vec<Value> = read.iter().flat_map(|r| &r.damage).map(|(o, d)| damage_json(*o, d)).collect();
    let first = |f: &Failures| -> Vec<Value> {
        f.first.iter().map(|f| describe_failure(verified, f).into()).collect()
    };
    json!({
        "target": verified.target,
        "place": verified.place.chain(),
        "verification": {
            "id": format!("{:016x}", request.id),
            "seed": request.seed,
            "offset_bytes": request.offset_bytes,
            "block_bytes": request.block_bytes,
            "blocks": request.blocks,
            "passes": request.passes,
            "sync_every": request.sync_every,
            "synced": verified.writer_progress.synced,
            "begun": verified.writer_progress.begun,
        },
        "written": verified.written.as_ref().map(|(w, took)| json!({
            "bytes": verified.bytes_of(verified.writer_progress.begun),
            "seconds": took.as_secs_f64(),
            "ending": w.ending,
            "failures": w.failures.counts,
            "first_failures": first(&w.failures),
        })),
        "read": verified.read.as_ref().map(|(r, took)| json!({
            "from": verified.source,
            "written_by": verified.read_of,
            "blocks": r.blocks,
            "bytes": verified.bytes_of(r.blocks),
            "seconds": took.as_secs_f64(),
            "unwritten": r.unwritten,
            "newer_than_synced": r.newer,
            "torn_in_flight": r.partials,
            "torn_in_flight_offsets": r.partial,
            "failures": r.failures.counts,
            "first_failures": first(&r.failures),
            "interrupted": r.interrupted,
            "lost": r.lost,
        })),
        "damaged": verified.damaged(),
        "damage": damage,
        "notes": verification_notes(verified),
        "state": verified.state,
    })
}

fn damage_json(offset: u64, damage: &Damage) -> Value {
    let mut value = json!({ "offset": offset, "sentence": damage.to_string() });
    add_members(&mut value, serde_json::to_value(damage).unwrap_or_default());
    value
}

/// A line of JSON about one subject in an interval. `time` is the end of the interval.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'w> {
    /// Figures of a device in the interval.
    Device {
        time: &'w str,
        #[serde(flatten)]
        device: Device<'w>,
    },
    /// Shares of the CPUs' time in the interval.
    Cpu {
        time: &'w str,
        #[serde(flatten)]
        shares: CpuShares,
    },
    /// Figures of a process in the interval.
    Process {
        time: &'w str,
        seconds: f64,
        #[serde(flatten)]
        process: &'w WatchedProcess,
    },
    /// A remark: a device or process that appeared or disappeared, or a missing fact.
    Remark { time: &'w str, text: &'w str },
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Device<'w> {
    #[serde(rename = "device")]
    name: &'w str,
    volume: Option<&'w str>,
    number: &'w str,
    layer: LayerKind,
    level: usize,
    below: &'w [String],
    /// The figures; absent if they are unknown.
    #[serde(flatten)]
    figures: Option<&'w DeviceInterval>,
    /// Why the figures are unknown; absent if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_known: Option<&'w str>,
    load: Option<&'w Load>,
    /// Why the load is unknown; absent if it is known, and for kinds of device without a load.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_unknown: Option<&'w str>,
    /// Conclusions that the figures support.
    conclusions: &'w [Conclusion],
    /// The latencies; `null` if they are unknown or were not observed.
    latency: Option<&'w Latencies>,
    /// Why the latencies are unknown; absent if they are known or were not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_not_known: Option<&'w str>,
}

fn write_watched(watched: &Watched, _: Style, to: &mut dyn Write) -> io::Result<()> {
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
    for process in &processes.listed {
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
fn every_line_is_an_object_and_unknown_values_are_null_or_have_a_reason() {
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
    assert_eq!(known["latency"]["read"]["sequential_percent"], 0.3);
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

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::Schema;
    use std::path::Path;

    type Tried = Result<(), Box<dyn std::error::Error>>;

    /// The schema of the report is checked in `tests/schema.rs`.
    #[test]
    fn schemas_of_lists_tables_and_watch_match_the_types() -> Tried {
        let schemas: [(&str, &str, Schema); 3] = [
            ("list", "Sessions as `fathom list` prints them", schemars::schema_for!(Vec<Numbered<Entry>>)),
            (
                "table",
                "A table of sessions as `fathom list --table` prints it",
                schemars::schema_for!(Numbered<SessionTable>),
            ),
            ("watch", "A line of `fathom watch`", schemars::schema_for!(Numbered<Line<'static>>)),
        ];
        for (name, title, mut schema) in schemas {
            schema.insert("title".into(), format!("{title}, format {CONTRACT}").into());
            let generated = format!("{:#}\n", schema.to_value());
            if std::env::var_os("FATHOM_BLESS").is_some() {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats/json");
                std::fs::write(folder.join(format!("schema-{name}.json")), &generated)?;
                continue;
            }
            let kept = SCHEMAS.iter().find(|(kept, _)| *kept == name).map(|(_, schema)| *schema);
            assert_eq!(
                kept,
                Some(generated.as_str()),
                "set FATHOM_BLESS=1, run this again and read git diff"
            );
        }
        Ok(())
    }

    #[test]
    fn a_list_is_an_array_and_each_session_and_table_has_the_format_number() -> Tried {
        let listing = Listing { entries: vec![crate::fixture::entry("x")], ..Listing::default() };
        let list: serde_json::Value = serde_json::from_slice(&FORMAT.bytes(&listing, Style::default())?)?;
        assert_eq!((&list[0]["format"], &list[0]["id"]), (&1.into(), &"x".into()), "{list:#}");
        // The index stores entries without the format number.
        let entry: Entry = serde_json::from_value(list[0].clone())?;
        assert_eq!(entry, listing.entries[0]);
        let table: serde_json::Value =
            serde_json::from_slice(&FORMAT.bytes(&SessionTable::default(), Style::default())?)?;
        assert!(table["format"] == 1 && table["rows"].is_array(), "{table:#}");
        Ok(())
    }
}
