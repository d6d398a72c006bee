//! What came of a verification as JSON.
//!
//! For: programs: numbers, every damage that was kept, and the notes. Not for: deciding anything.

use crate::format::Style;
use crate::verified::{failure, notes};
use model::stamp::Damage;
use model::verified::{Ending, Failures, Verified};
use serde_json::{Value, json};
use std::io::{self, Write};

pub(super) fn write(of: &Verified, style: Style, to: &mut dyn Write) -> io::Result<()> {
    super::write(&json(of), style, to)
}

fn json(of: &Verified) -> Value {
    let v = &of.verification;
    let read = of.read.as_ref().map(|(r, _)| r);
    let damage: Vec<Value> = read.iter().flat_map(|r| &r.damage).map(|(o, d)| damage_json(*o, d)).collect();
    let failures = |f: &Failures| -> Vec<Value> {
        let of = f.counts.iter();
        of.map(|((kind, errno), n)| json!({ "kind": kind, "errno": errno, "count": n })).collect()
    };
    let first = |f: &Failures| -> Vec<Value> { f.first.iter().map(|f| failure(of, f).into()).collect() };
    json!({
        "fathom": of.fathom,
        "verdict": of.verdict().word(),
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
            "ending": match w.ending {
                Ending::Complete => "complete",
                Ending::Time => "time",
                Ending::Interrupted => "interrupted",
                Ending::Failed => "failed",
            },
            "failures": failures(&w.failures),
            "first_failures": first(&w.failures),
        })),
        "read": of.read.as_ref().map(|(r, took)| json!({
            "from": of.source,
            "blocks": r.blocks,
            "bytes": of.bytes_of(r.blocks),
            "seconds": took.as_secs_f64(),
            "unwritten": r.unwritten,
            "newer_than_synced": r.newer,
            "torn_in_flight": r.partials,
            "torn_in_flight_offsets": r.partial,
            "failures": failures(&r.failures),
            "first_failures": first(&r.failures),
            "interrupted": r.interrupted,
        })),
        "damaged": of.damaged(),
        "damage": damage,
        "notes": notes(of),
        "state": of.state.as_ref().map(|s| s.display().to_string()),
    })
}

fn damage_json(offset: u64, damage: &Damage) -> Value {
    let mut value = json!({ "offset": offset, "sentence": damage.to_string() });
    if let (Value::Object(value), Ok(Value::Object(facts))) = (&mut value, serde_json::to_value(damage)) {
        value.extend(facts);
    }
    value
}
