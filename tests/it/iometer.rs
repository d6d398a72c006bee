//! Sweeps in the manner of Iometer: access specifications, test types and several targets, with a known winner.

use crate::stage::{Outcome, Stage};
use serde_json::Value;
use std::path::Path;

/// The simulated device takes 100 us for every operation, so the most operations in flight win.
const SIM: &str = "sweep --preset iometer --engine sim --time 50ms --seed 7 --quiet --format json";

fn nothing() -> &'static Path {
    Path::new("")
}

fn sweep(out: &Outcome) -> Value {
    out.report().0["sweep"].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn cells(sweep: &Value) -> &[Value] {
    sweep["cells"].as_array().unwrap()
}

/// Two folders, each for a test file.
fn two_folders(stage: &Stage) -> String {
    format!("{} {}", stage.folder("a").display(), stage.folder("b").display())
}

#[test]
fn library_specifications_are_listed_and_accepted() {
    let stage = Stage::shared();
    let out = stage.fathom("sweep --list-specs", nothing());
    let names: Vec<&str> = out.stdout.lines().filter(|l| !l.starts_with(' ')).collect();
    assert_eq!((out.code, names.len()), (Some(0), 36), "{out:?}");
    assert!(names.starts_with(&[
        "4K OLTP",
        "File Server",
        "Web Server",
        "Workstation",
        "Database",
        "Default"
    ]));
    assert!(out.stdout.contains("    share=60,bs=4k,mix=80,random=100"), "{}", out.stdout);
    for name in names {
        let words = format!("sweep --engine sim --depth 1 --list --spec {}", name.replace(' ', ""));
        let list = stage.fathom(&words, nothing());
        assert_eq!(list.stdout, format!("{name} depth 1 direct, sim\n"), "{}", list.stderr);
    }
    let all = stage.fathom("sweep --preset iometer --engine sim --spec all --list", nothing());
    assert_eq!(all.stdout.lines().count(), 36, "a normal test runs each once");
    assert_eq!(stage.sessions().len(), 0);
}

#[test]
fn each_test_type_gives_its_cells() {
    let stage = Stage::shared();
    let folders = two_folders(&stage);
    let list = |words: &str| {
        let words = format!("sweep --preset iometer --spec web-server --list {words} {folders}");
        let out = stage.fathom(&words, nothing());
        assert_eq!(out.code, Some(0), "{words}: {out:?}");
        out.stdout
    };
    for (words, count) in [
        ("--cycle normal", 1),
        ("--cycle cycle_targets", 2),
        ("--cycle cycle_workers --workers 3", 3),
        ("--cycle cycle_workers --workers 3,5", 2),
        ("--cycle increment_targets_parallel --workers 3", 6),
        ("--cycle increment_targets_serial --workers 3 --step exponential", 4),
        ("--cycle cycle_workers_and_targets --workers 4 --step exponential", 6),
        ("--cycle CYCLE_OUTSTANDING_IOS", 6),
        ("--cycle cycle_outstanding_ios --step linear", 16),
        ("--cycle cycle_outstanding_ios_and_targets", 12),
        ("--cycle cycle-outstanding-ios --depth 3..27*3", 3),
    ] {
        assert_eq!(list(words).lines().count(), count, "{words}");
    }
    let increments = |word: &str| list(&format!("--cycle {word} --workers 2"));
    assert_eq!(increments("increment_targets_serial"), increments("increment_targets_parallel"));
    let printed = list("--cycle increment_targets_serial --workers 2");
    assert!(printed.contains("2 workers, 2 targets, the last worker on 1"), "{printed}");
    let explained = stage.fathom(
        &format!("sweep --preset iometer --cycle increment_targets_serial --workers 2 --explain {folders}"),
        nothing(),
    );
    let words = explained.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for must in ["on a single computer the same as INCREMENT_TARGETS_PARALLEL", "per worker and target"] {
        assert!(words.contains(must), "'{must}' is not in {}", explained.stdout);
    }
    let heavy = format!(
        "sweep --preset iometer --spec web-server --cycle cycle_outstanding_ios --workers 1 --memory 8m --skipped {folders}"
    );
    let skipped = stage.fathom(&heavy, nothing());
    assert_eq!(skipped.stdout.lines().count(), 2, "16 and 32 of 512 KiB on two targets: {}", skipped.stdout);
    assert_eq!(stage.sessions().len(), 0);
}

#[test]
fn outstanding_ios_decide_on_a_parallel_device() {
    let stage = Stage::shared();
    let words = format!("{SIM} --cycle cycle_outstanding_ios --workers 2 --spec file-server,database");
    let sweep = sweep(&stage.fathom(&words, nothing()));
    assert_eq!((sweep["search"].as_str(), cells(&sweep).len()), (Some("exhaustive"), 12), "{sweep:#}");
    for spec in ["File Server", "Database"] {
        let winner = &sweep["winner"][spec];
        assert_eq!((winner["depth"].as_u64(), winner["spec"].as_str()), (Some(32), Some(spec)), "{winner:#}");
    }
    for cell in cells(&sweep) {
        // Each operation takes 100 us, whatever its size: sizes are drawn, and operations are counted.
        let truth = 2.0 * number(&cell["depth"]) * 10_000.0;
        assert!((number(&cell["iops"]) / truth - 1.0).abs() < 0.02, "{cell:#}");
        assert!(number(&cell["runs"]) >= 3.0 && cell["rw"] == "", "{cell:#}");
    }
}

#[test]
fn eight_servers_saturate_with_eight_outstanding_ios() {
    let stage = Stage::shared();
    let words = SIM.replace("--engine sim", "--engine sim:servers=8");
    let words = format!("{words} --cycle cycle_outstanding_ios --workers 1 --spec database");
    let out = stage.fathom(&words, nothing());
    let sweep = sweep(&out);
    assert_eq!(sweep["cheapest"]["Database"]["depth"], 8, "{sweep:#}");
    let knees = sweep["works"][0]["knees"].as_array().unwrap();
    assert!(knees.iter().any(|k| k["axis"] == "depth" && k["value"] == 8), "{knees:#?}");
    let report = out.report().0;
    let name = report["headline"]["name"].as_str().unwrap();
    assert!(name.starts_with("Database, 8K random 67/33") && report["headline"]["unit"] == "IOPS", "{name}");
}

#[test]
fn worker_cycles_and_budgeted_searches_work() {
    let stage = Stage::shared();
    let words = format!("{SIM} --cycle cycle_workers --workers 1..4 --spec workstation");
    let sweep_all = sweep(&stage.fathom(&words, nothing()));
    assert_eq!(sweep_all["winner"]["Workstation"]["workers"], 4, "{sweep_all:#}");
    let searched = sweep(&stage.fathom(&format!("{words} --budget 30s"), nothing()));
    assert_eq!(
        (&searched["search"], &searched["winner"]["Workstation"]["workers"]),
        (&"adaptive".into(), &4.into())
    );
    let text = stage.fathom(&words.replace(" --format json", " --verbose"), nothing());
    let joined = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("(no other is more than 5.0 % faster, 95 % sure)"), "{text:?}");
    for must in [
        "Workstation by IOPS: 3 cells were measured",
        "IOPS by workers",
        "longest",
        "CPU",
        "1 worker ",
        "4 workers",
    ] {
        assert!(text.stdout.contains(must), "'{must}' is not in {}", text.stdout);
    }
}

#[test]
fn targets_are_used_as_their_cell_requires() {
    let stage = Stage::shared();
    let words = format!(
        "sweep --preset iometer --cycle increment_targets_parallel --workers 2 --spec 4K-OLTP --size 16m --time 100ms --runs 1 --quiet --format json {}",
        two_folders(&stage)
    );
    let out = stage.fathom(&words, nothing());
    let report = out.report().0;
    assert_eq!(report["ending"]["how"], "complete", "{}", out.stderr);
    let results = report["results"].as_array().unwrap();
    let seen: Vec<(Vec<(u64, usize)>, u64)> = cells(&report["sweep"])
        .iter()
        .map(|cell| {
            assert!(number(&cell["mib_per_s"]) > 0.0, "{cell:#}");
            let result = &results[cell["result"].as_u64().unwrap() as usize];
            let streams = result["job"]["phases"][0]["streams"].as_array().unwrap();
            let of = |s: &Value| (s["workers"].as_u64().unwrap(), s["targets"].as_array().unwrap().len());
            (streams.iter().map(of).collect(), cell["memory_bytes"].as_u64().unwrap() / 4096)
        })
        .collect();
    let expected = [(vec![(1, 1)], 1), (vec![(1, 2)], 2), (vec![(1, 2), (1, 1)], 3), (vec![(2, 2)], 4)];
    assert_eq!(seen, expected);
    assert!(results.iter().all(|r| r["ledger"].is_object()));
}

#[test]
fn user_files_are_only_read() {
    let stage = Stage::shared();
    let files = format!("{} {}", stage.file("one", 4).display(), stage.file("two", 4).display());
    let list =
        stage.fathom(&format!("sweep --preset iometer --cycle cycle_targets --list {files}"), nothing());
    assert!(list.stdout.lines().count() == 2, "{list:?}");
    assert!(list.stdout.lines().all(|l| l.starts_with("Web Server depth 1")), "{}", list.stdout);
    let refused = stage.fathom(&format!("sweep --preset iometer --spec database --list {files}"), nothing());
    assert!(refused.code == Some(2) && refused.stderr.contains("--destroy"), "{refused:?}");
    let plain = format!(
        "sweep --bs 4k --depth 1 --rw read --targets 1,2 --time 100ms --budget 5s --quiet --format json {files}"
    );
    let sweep = sweep(&stage.fathom(&plain, nothing()));
    let targets: Vec<u64> = cells(&sweep).iter().map(|c| c["targets"].as_u64().unwrap()).collect();
    assert_eq!(targets, [1, 2], "an axis like any other");
}

#[test]
fn options_unknown_to_iometer_are_refused() {
    let stage = Stage::shared();
    let folder = stage.folder("place");
    for (words, must) in [
        ("--preset iometer --cycle sideways", "NORMAL, CYCLE_TARGETS"),
        ("--preset iometer --step cubic", "linear or exponential"),
        ("--preset iometer --step linear", "has no effect"),
        ("--preset iometer --spec idle", "--list-specs"),
        ("--preset iometer --spec database,database", "twice"),
        ("--preset iometer --rw read", "--rw cannot be combined with"),
        ("--preset iometer --align 4k", "--align cannot be combined with"),
        ("--preset iometer --targets 2", "--targets 2: the sweep has only 1 target"),
        ("--preset iometer --cycle increment_targets_serial --workers 1,2", "one number"),
        ("--preset iometer --cycle cycle_targets --targets 1,2", "--targets 2: the sweep has only 1 target"),
        ("--cycle normal", "--preset iometer"),
        ("--step linear", "--preset iometer"),
        ("--spec database --bs 4k", "--bs cannot be combined with"),
        ("--line share=50,bs=4k", "sum to 50"),
        ("--line bs=4k,reply=100", "its reply has 100 bytes"),
        ("--line bs=4k --rw read", "--rw cannot be combined with"),
        ("--resume last --cycle normal", "the session defines what is measured"),
    ] {
        let target = if words.contains("--resume") { nothing() } else { &folder };
        let out = stage.fathom(&format!("sweep {words} --quiet"), target);
        assert!(out.code == Some(2) && out.stderr.contains(must), "{words}: {out:?}");
    }
    let twice = format!("sweep --bs 4k {} {}", folder.display(), folder.display());
    let out = stage.fathom(&twice, nothing());
    assert!(out.code == Some(2) && out.stderr.contains("is named twice"), "{out:?}");
    let own = "sweep --engine sim --depth 1 --list --line share=50,bs=4k --line share=50,bs=8k,mix=0";
    let own = stage.fathom(own, nothing());
    assert_eq!(own.stdout, "own lines depth 1 direct, sim\n", "{}", own.stderr);
    assert_eq!(stage.sessions().len(), 0);
}
