//! The JSON schema of `fathom export --schema` matches real reports of every kind of measurement, and the golden ones.

use crate::stage::{Stage, names, skip, tool};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A run on the simulated device, which ends at once.
const QUICK: &str = "run --engine sim --depth 4 --time 20ms --warmup 0 --runs 3 --quiet";

/// Validates documents against a schema in one process of the validator. Returns the errors.
fn conform(schema: &Path, documents: &[PathBuf]) -> Result<(), String> {
    let mut words: Vec<&dyn AsRef<OsStr>> = vec![&"jsonschema", &"--output", &"pretty"];
    for document in documents {
        words.extend([&"--instance" as &dyn AsRef<OsStr>, document]);
    }
    words.push(&schema);
    tool(&words).map(drop)
}

#[test]
fn schema_matches_every_report() {
    let stage = Stage::shared();
    if tool(&[&"jsonschema", &"--help"]).is_err() {
        return skip("jsonschema is not installed (package python3-jsonschema)");
    }
    let say = |words: &str| stage.fathom(words, Path::new(""));
    let kept = |name: &str, text: &str| {
        let path = stage.path(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let schema = kept("schema", &say("export --schema").stdout);
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
    let mut documents: Vec<PathBuf> =
        real.iter().enumerate().map(|(at, out)| kept(&format!("real-{at}"), &out.stdout)).collect();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/report/tests/golden");
    documents.extend(names(&golden).into_iter().filter(|p| p.extension().is_some_and(|e| e == "json")));
    assert!(documents.len() > real.len(), "{documents:?}");
    conform(&schema, &documents).unwrap();
    // The schema refuses invalid documents, and names each.
    let bent = [
        ("verdict", Some("GREAT".into())),
        ("results", Some(7.into())),
        ("headline", Some(Value::Null)),
        ("findings", None),
    ];
    let bent = bent.map(|(key, value)| {
        let mut report = real[0].report().0;
        match value {
            Some(value) => report[key] = value,
            None => drop(report.as_object_mut().unwrap().remove(key)),
        }
        kept(&format!("bent-{key}"), &report.to_string())
    });
    let printed = conform(&schema, &bent).unwrap_err();
    for path in &bent {
        assert!(printed.contains(&format!("({})", path.display())), "{}: {printed}", path.display());
    }
}

#[test]
fn schemas_match_lists_tables_and_watch_output() {
    let stage = Stage::shared();
    if tool(&[&"jsonschema", &"--help"]).is_err() {
        return skip("jsonschema is not installed (package python3-jsonschema)");
    }
    let say = |words: &str| stage.fathom(words, Path::new(""));
    for _ in 0..2 {
        assert!(matches!(say(QUICK).code, Some(0 | 1)));
    }
    assert_eq!(say("tag last word").code, Some(0));
    assert_eq!(say("note last words").code, Some(0));
    let kept = |name: &str, text: &str| {
        let path = stage.path(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let watched = say("watch --format json 100ms 2");
    let printed = [
        ("list", vec![say("list --format json").stdout]),
        (
            "table",
            vec![say("list --table --format json").stdout, say("list --table=devices --format json").stdout],
        ),
        ("watch", watched.stdout.lines().map(str::to_owned).collect::<Vec<_>>()),
    ];
    for (kind, documents) in printed {
        let schema = kept(kind, &say(&format!("export --schema={kind}")).stdout);
        let paths: Vec<PathBuf> =
            documents.iter().enumerate().map(|(at, text)| kept(&format!("{kind}-{at}"), text)).collect();
        assert!(!paths.is_empty(), "{kind}: nothing was printed");
        conform(&schema, &paths).unwrap();
        // The schema refuses a document without the format number.
        let other = documents[0].replacen("\"format\"", "\"other\"", 1);
        assert_ne!(other, documents[0]);
        conform(&schema, &[kept(&format!("bent-{kind}"), &other)]).unwrap_err();
    }
    assert_eq!(say("export --schema=report").stdout, say("export --schema").stdout);
}
