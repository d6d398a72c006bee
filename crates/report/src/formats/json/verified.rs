//! What came of a verification as JSON.
//!
//! For: programs: numbers, every damage that was kept, and the notes. Not for: deciding anything.

use crate::format::Style;
use crate::verified::{describe_failure, verification_notes};
use model::stamp::Damage;
use model::verified::{Failures, OnHost, Verifications, Verified};
use serde_json::{Value, json};
use std::io::{self, Write};

pub(super) fn write_verification(all: &Verifications, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut value = json!({ "fathom": all.fathom, "verdict": all.verdict().word() });
    match all.only() {
        Some(of) => add_members(&mut value, verification_json(of)),
        None => {
            add_members(&mut value, json!({ "hosts": all.hosts.iter().map(host_json).collect::<Vec<_>>() }))
        }
    }
    super::write(&value, style, to)
}

fn host_json(on: &OnHost) -> Value {
    let mut value = json!({ "host": on.host });
    match &on.outcome {
        Ok(of) => {
            add_members(&mut value, json!({ "verdict": of.verdict().word() }));
            add_members(&mut value, verification_json(of));
        }
        Err(why) => add_members(&mut value, json!({ "verdict": null, "reason": why })),
    }
    value
}

/// Appends the members of another object.
fn add_members(value: &mut Value, by: Value) {
    if let (Value::Object(value), Value::Object(by)) = (value, by) {
        value.extend(by);
    }
}

fn verification_json(of: &Verified) -> Value {
    let v = &of.verification;
    let read = of.read.as_ref().map(|(r, _)| r);
    let damage: Vec<Value> = read.iter().flat_map(|r| &r.damage).map(|(o, d)| damage_json(*o, d)).collect();
    let first =
        |f: &Failures| -> Vec<Value> { f.first.iter().map(|f| describe_failure(of, f).into()).collect() };
    json!({
        "target": of.target,
        "place": of.place.chain(),
        "verification": {
            "id": format!("{:016x}", v.id),
            "seed": v.seed,
            "offset_bytes": v.offset_bytes,
            "block_bytes": v.block_bytes,
            "blocks": v.blocks,
            "passes": v.passes,
            "sync_every": v.sync_every,
            "synced": of.mark.synced,
            "begun": of.mark.begun,
        },
        "written": of.written.as_ref().map(|(w, took)| json!({
            "bytes": of.bytes_of(of.mark.begun),
            "seconds": took.as_secs_f64(),
            "ending": w.ending,
            "failures": w.failures.counts,
            "first_failures": first(&w.failures),
        })),
        "read": of.read.as_ref().map(|(r, took)| json!({
            "from": of.source,
            "written_by": of.read_of,
            "blocks": r.blocks,
            "bytes": of.bytes_of(r.blocks),
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
        "damaged": of.damaged(),
        "damage": damage,
        "notes": verification_notes(of),
        "state": of.state,
    })
}

fn damage_json(offset: u64, damage: &Damage) -> Value {
    let mut value = json!({ "offset": offset, "sentence": damage.to_string() });
    add_members(&mut value, serde_json::to_value(damage).unwrap_or_default());
    value
}
