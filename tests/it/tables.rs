//! Tables of many sessions, and short tables of one: their rows and columns, in every format.

use crate::stage::{Outcome, Stage};
use serde_json::Value;
use std::path::Path;

/// A run on the simulated device, which ends at once.
const SIM: &str = "run --engine sim --time 20ms --warmup 0 --runs 3 --quiet";

#[track_caller]
fn say(stage: &Stage, words: &str) -> Outcome {
    let out = stage.fathom(words, Path::new(""));
    assert_eq!(out.code, Some(0), "{words}: {out:?}");
    out
}

#[test]
fn table_has_sessions_as_rows_and_results_as_columns() {
    let stage = Stage::shared();
    assert!(say(&stage, "list --table").stdout.contains("fathom bench"));
    for depth in [8, 4, 4] {
        say(&stage, &format!("{SIM} --depth {depth}"));
    }
    say(&stage, "tag last newest");
    let text = say(&stage, "list --table").stdout;
    let heading: Vec<&str> = text.lines().take_while(|line| !line.starts_with("---")).collect();
    assert!(heading[0].starts_with("session ") && heading.join(" ").contains("IOPS"), "{text}");
    let rows: Vec<&str> = text.lines().skip(heading.len() + 1).take(2).collect();
    assert!(rows[0].starts_with("newest ") && rows.iter().all(|row| row.contains("40,000")), "{text}");
    assert!(text.contains("Left out: 1 session of other jobs"), "{text}");

    let json: Value = serde_json::from_str(&say(&stage, "list --table --format json").stdout).unwrap();
    assert_eq!(
        (&json["rows_of"], json["rows"].as_array().unwrap().len()),
        (&"sessions".into(), 2),
        "{json:#}"
    );
    let figure = &json["rows"][1]["figures"][0];
    assert_eq!((&figure["unit"], &figure["verdict"]), (&"IOPS".into(), &"VALID".into()), "{json:#}");
    let csv = say(&stage, "list --table --format csv").stdout;
    assert!(csv.starts_with("session,started,verdict,") && csv.lines().count() == 3, "{csv}");
    let markdown = say(&stage, "list --table --format markdown").stdout;
    assert!(markdown.starts_with("| session ") && markdown.contains("\n| :--"), "{markdown}");

    // The filters of `fathom list` select the rows, and thereby the columns.
    let tagged: Value =
        serde_json::from_str(&say(&stage, "list --table --tag newest --format json").stdout).unwrap();
    assert_eq!(tagged["rows"].as_array().unwrap().len(), 1, "{tagged:#}");
    let other = say(&stage, "list --table --job Q8T1").stdout;
    assert!(other.contains("80,000") && !other.contains("Left out"), "{other}");
    assert_eq!(stage.fathom("list --table=disks", Path::new("")).code, Some(2));
}

#[test]
fn device_table_shows_the_newest_session() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    for _ in 0..2 {
        let words = "run --rw randread --size 16m --time 50ms --warmup 0 --runs 1 --quiet";
        assert!(matches!(stage.fathom(words, &folder).code, Some(0 | 1)));
    }
    let json: Value =
        serde_json::from_str(&say(&stage, "list --table=devices --format json").stdout).unwrap();
    assert_eq!((json["rows"].as_array().unwrap().len(), &json["older"]), (1, &1.into()), "{json:#}");
    let newest: Value = serde_json::from_str(&say(&stage, "list --limit 1 --format json").stdout).unwrap();
    assert_eq!(json["rows"][0]["session"], newest[0]["id"]);
    if let Some(device) = newest[0]["devices"][0]["name"].as_str() {
        assert!(say(&stage, "list --table=devices").stdout.contains(device));
    }
}

#[test]
fn bench_of_several_targets_ends_with_the_table_of_their_devices() {
    let stage = Stage::shared();
    let [one, other] = ["one", "other"].map(|name| stage.folder(name));
    let page = stage.path("devices.html");
    let flags = "--profile six --size 16m --time 50ms --warmup 0 --runs 1 --quiet";
    let words = format!("bench {flags} --format json -o {} {}", page.display(), one.display());
    let out = stage.fathom(&words, &other);
    let table: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    let listed: Value = serde_json::from_str(&say(&stage, "list --format json").stdout).unwrap();
    assert_eq!((&table["rows_of"], listed.as_array().unwrap().len()), (&"devices".into(), 2), "{table:#}");
    for (row, session) in [(0, 1), (1, 0)] {
        assert_eq!(table["rows"][row]["session"], listed[session]["id"], "{table:#}");
        assert_eq!(table["rows"][row]["targets"], listed[session]["targets"], "{table:#}");
    }
    let columns = table["columns"].as_array().unwrap();
    assert!(columns.len() == 6 && columns.iter().all(|column| column["unit"] == "MB/s"), "{columns:?}");
    assert!(!out.stderr.contains("It takes"), "{out:?}");
    let loud = flags.trim_end_matches(" --quiet");
    let out = stage.fathom(&format!("bench {loud} --no-history {}", one.display()), &other);
    let total = "All 2 targets together: It takes about ";
    assert!(out.stderr.starts_with(total) && out.stderr.contains("at most 32 MiB of test files"), "{out:?}");
    let text = out.stdout;
    // Both folders are on one device, so the rows have their paths.
    let has_row = |name: &str| text.lines().any(|line| line.contains(&format!("/{name} ")));
    assert!(text.starts_with("device ") && has_row("one") && has_row("other"), "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains("2 sessions side by side"));
    let plans = stage.fathom(&format!("bench --explain {}", one.display()), &other);
    assert!(plans.code == Some(0) && plans.stdout.matches("bench cdm: ").count() == 2, "{plans:?}");
    for flag in ["--verbose", "--op-log x", "--against last"] {
        let refused = stage.fathom(&format!("bench {flag} {}", one.display()), &other);
        let named = flag.split(' ').next().unwrap();
        assert!(refused.code == Some(2) && refused.stderr.contains(named), "{refused:?}");
    }
    let twice = stage.fathom(&format!("bench {flags} {0} {0}/../one", one.display()), &other);
    assert!(twice.code == Some(2) && twice.stderr.contains("/one is named twice"), "{twice:?}");
    let missing = stage.fathom(&format!("bench {flags} {}", one.display()), &stage.path("missing"));
    assert!(missing.code == Some(2) && !missing.stdout.contains("device"), "{missing:?}");
}

#[test]
fn load_curve_shows_important_loads_or_all() {
    let stage = Stage::shared();
    say(&stage, "limit --engine sim:servers=1 --p99 300us --curve --time 5s --warmup 100ms --seed 7 --quiet");
    let json: Value = serde_json::from_str(&say(&stage, "show last --format json").stdout).unwrap();
    let points = json["limit"]["points"].as_array().unwrap();
    assert!(points.len() > 12, "{}", points.len());
    let text = say(&stage, "show last").stdout;
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("MET  Highest load that meets p99 within 300 us: "), "{text}");
    let rows = |text: &str| {
        let below = text.lines().skip_while(|line| !line.starts_with("---"));
        below.skip(1).take_while(|line| line.contains(" %")).count()
    };
    assert_eq!(rows(&text), 12, "{text}");
    assert!(text.contains(&format!("12 of {} loads", points.len())), "{text}");
    assert_eq!(rows(&say(&stage, "show last --verbose").stdout), points.len());
    let brief = say(&stage, "show last --brief --format markdown").stdout;
    assert_eq!(brief.lines().filter(|line| line.starts_with('|')).count(), 2 + 12, "{brief}");
}

#[test]
fn named_sessions_are_tabulated_in_every_format() {
    let stage = Stage::shared();
    for words in ["--depth 8", "--depth 4", "--depth 4 --fail-if iops<1000000"] {
        let out = stage.fathom(&format!("{SIM} {words}"), Path::new(""));
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    }
    say(&stage, "tag last~2 deep");
    let [json, page, csv] = ["all.json", "all.html", "all.csv"].map(|name| stage.path(name));
    let files = [&json, &page, &csv].map(|path| format!("-o {}", path.display())).join(" ");
    let text = say(&stage, &format!("show deep last~1 {files}")).stdout;
    // Rows are in the typed order. Each session has a single result, so they share a column and have distinct names.
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("---")).skip(1).take(2).collect();
    assert!(rows[0].starts_with("deep ") && rows[0].contains("80,000"), "{text}");
    assert!(
        rows[1].contains("40,000") && text.contains("deep: 4K random read, depth 8, simulated."),
        "{text}"
    );
    let all: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let one: Value = serde_json::from_str(&say(&stage, "show deep --format json").stdout).unwrap();
    assert_eq!(all["reports"][0]["headline"], one["headline"], "as it is shown alone");
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 3);
    assert!(std::fs::read_to_string(page).unwrap().contains("2 sessions side by side"));
    let markdown = say(&stage, "show deep last~1 --format markdown").stdout;
    assert!(
        markdown.starts_with("| session") && markdown.lines().filter(|l| l.starts_with("| ")).count() == 4
    );

    let failed = stage.fathom("show deep last", Path::new(""));
    assert!(failed.code == Some(1) && failed.stdout.contains(", FAIL: "), "{failed:?}");
    assert_eq!(stage.fathom("show deep last~1 --inconclusive pass", Path::new("")).code, Some(2));
    for flag in ["--explain", "--ledger", "--verbose", "--brief"] {
        let refused = stage.fathom(&format!("show deep last {flag}"), Path::new(""));
        assert!(refused.code == Some(2) && refused.stderr.contains(flag), "{refused:?}");
    }
    let refused = stage.fathom("show deep last --format fio", Path::new(""));
    assert!(refused.code == Some(2) && refused.stderr.contains("--format text or"), "{refused:?}");
    // A session is never overwritten, whatever its name.
    let session = one["session"].as_str().unwrap();
    let linked = stage.path("linked.json");
    std::fs::hard_link(session, &linked).unwrap();
    let refused = stage.fathom(&format!("show deep last -o {}", linked.display()), Path::new(""));
    assert!(refused.code == Some(2) && refused.stderr.contains("a session that is shown"), "{refused:?}");
}
