//! The schema: what `fathom export --schema` prints is true of every report.
//!
//! For: real reports of every kind of measurement, and the golden ones. Not for: what a report says.

use crate::stage::{Stage, names};
use serde_json::Value;
use std::path::Path;

/// A run that is over at once, on a device that is none.
const QUICK: &str = "run --engine sim --depth 4 --time 20ms --warmup 0 --runs 3 --quiet";

#[test]
fn the_schema_is_that_of_every_report() {
    let stage = Stage::beside_others();
    let say = |words: &str| stage.fathom(words, Path::new(""));
    let schema: Value = serde_json::from_str(&say("export --schema").stdout).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let folder = stage.folder("here");
    let real = [
        say(&format!("{QUICK} --format json")),
        say(&format!("{QUICK} --rw randrw --mix 70 --rate 1000 --format json")),
        stage.fathom(
            "run --rw randwrite --size 16m --time 50ms --warmup 0 --runs 1 --fsync 8 --quiet --format json",
            &folder,
        ),
        stage.fathom("layers --size 16m --time 50ms --runs 3 --quiet --format json", &folder),
        say("limit --engine sim --depth 4 --time 100ms --warmup 0 --runs 2 --p99 2ms --quiet --format json"),
        say("bench --profile asssd --engine sim --time 5ms --warmup 0 --runs 2 --quiet --format json"),
        say(&format!("{QUICK} --format json")),
        say(&format!("{QUICK} --against last --format json")),
    ];
    for out in &real {
        conforms(&schema, &out.report().0);
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/report/tests/golden");
    for path in names(&golden).iter().filter(|p| p.extension().is_some_and(|e| e == "json")) {
        conforms(&schema, &serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap());
    }
    // It refuses what is none.
    for (key, value) in [("verdict", "GREAT".into()), ("results", 7.into()), ("headline", Value::Null)] {
        let mut bent = real[0].report().0;
        bent[key] = value;
        assert!(!schema.is_valid(&bent), "{key}");
    }
    let mut poor = real[0].report().0;
    poor.as_object_mut().unwrap().remove("findings");
    assert!(!schema.is_valid(&poor));
}

#[track_caller]
fn conforms(schema: &jsonschema::Validator, report: &Value) {
    let wrong: Vec<String> =
        schema.iter_errors(report).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
