//! Runs until an interval is narrow, rounds until they are steady, and alternation with an earlier session. The rules are simulated in crate
//! `analysis`, `strategy`. The simulated device is constant; an open loop with few random arrivals varies.

use crate::stage::{Report, Stage, names};
use serde_json::Value;
use std::path::Path;

const SIM: &str = "run --engine sim --time 100ms --warmup 0 --seed 7 --format json --quiet";
/// A run has about four hundred random arrivals, so runs differ by about a twentieth.
const NOISY: &str = "run --engine sim --rate 400 --time 1s --warmup 0 --seed 7 --format json --quiet";

fn runs(report: &Report) -> Vec<u64> {
    let runs = report.0["results"][0]["runs"].as_array().unwrap();
    runs.iter().map(|r| r["run"].as_u64().unwrap()).collect()
}

fn way(report: &Report) -> usize {
    report.0["results"][0]["way"].as_array().map_or(0, Vec::len)
}

fn note(report: &Report, words: &str) -> bool {
    report.0["notes"].as_array().unwrap().iter().any(|n| n.as_str().unwrap().contains(words))
}

#[test]
fn precise_results_need_no_further_runs() {
    let stage = Stage::shared();
    let report = stage.fathom(&format!("{SIM} --precision 2.5%"), Path::new("")).report();
    assert_eq!(runs(&report).len(), 5);
    assert!(note(&report, "stopped after 5 runs"), "{:#}", report.0["notes"]);
    let [low, high] = [0, 1].map(|i| report.0["headline"]["interval"][i].as_f64().unwrap());
    assert!((high - low) / 2.0 / report.0["headline"]["value"].as_f64().unwrap() <= 0.025);
    let report = stage.fathom(&format!("{SIM} --precision 2.5% --runs 7"), Path::new("")).report();
    assert_eq!(runs(&report).len(), 7);
}

#[test]
fn noisy_results_stop_at_the_limit_and_report_the_needed_runs() {
    let stage = Stage::shared();
    let out = stage.fathom(&format!("{NOISY} --precision 1% --max-runs 8"), Path::new(""));
    let report = out.report();
    assert_eq!(runs(&report).len(), 8);
    assert!(note(&report, "after 8 runs, and 1.0 % was requested: about"), "{:#}", report.0["notes"]);
    assert_eq!(report.0, stage.show().report().0, "the session tells the same");
}

#[test]
fn steady_device_is_steady_after_five_rounds() {
    let stage = Stage::shared();
    let out = stage.fathom(&format!("{SIM} --until steady"), Path::new(""));
    let report = out.report();
    assert_eq!((runs(&report), way(&report), out.code), (vec![0, 1, 2, 3, 4], 0, Some(0)));
    assert!(note(&report, "steady after 5 rounds") && !report.name().contains("not steady"));
}

#[test]
fn unsteady_results_are_named_so() {
    let stage = Stage::shared();
    let words = format!("{NOISY} --until steady --max-runs 7");
    let out = stage.fathom(&words, Path::new(""));
    let report = out.report();
    assert_eq!((runs(&report), way(&report)), (vec![2, 3, 4, 5, 6], 2));
    assert!(report.name().ends_with("not steady after 7 rounds"), "{}", report.name());
    assert_eq!(report.expect_answer("E01", "finding")["severity"], "rename");
    assert!(note(&report, "not steady within 7 rounds") && note(&report, "IOPS by round"));
    assert_eq!(out.code, Some(1));
    assert_eq!(stage.fathom(&format!("{words} --accept E01"), Path::new("")).code, Some(0));
}

#[test]
fn rounds_on_a_disk_are_consecutive() {
    let stage = Stage::shared();
    let dir = stage.folder("place");
    let words =
        "run --rw randread --size 32m --until steady --max-runs 6 --time 200ms --warmup 0 --format json";
    let out = stage.fathom(words, &dir);
    let report = out.report();
    let rounds = runs(&report).len() + way(&report);
    assert!((5..=6).contains(&rounds) && runs(&report).len() == 5, "{rounds}");
    assert!(out.stderr.contains("run 1 of at most 6") && out.stderr.contains("at most"), "{}", out.stderr);
    assert!(names(&dir).is_empty(), "a file is left");
}

#[test]
fn job_files_accept_precision_and_the_plan_shows_it() {
    let stage = Stage::shared().watching_as_for_users();
    let file = stage.path("job.toml");
    let printed = |text: &str, words: &str| {
        std::fs::write(&file, format!("rw = \"randread\"\nengine = \"sim\"\ntime = \"100ms\"\n{text}"))
            .unwrap();
        stage.fathom(&format!("run --quiet {words}"), &file)
    };
    let out = printed("precision = 2.5\nmax-runs = 6\n", "--explain");
    assert!(out.stdout.contains("5 to 6 runs, until the interval is within ±2.5 %"), "{}", out.stdout);
    let origin = |name: &str| out.stdout.lines().find(|l| l.starts_with(name)).unwrap().to_owned();
    assert!(
        origin("--precision").contains("2.5 % to either side") && origin("--max-runs").contains("job.toml")
    );
    let out = printed("precision = \"2.5%\"\n", "--max-runs 12 --explain");
    assert!(out.stdout.contains("5 to 12 runs"), "{}", out.stdout);
    let out = printed("", "--until steady --explain");
    assert!(out.stdout.contains("each up to 25 rounds, until steady"), "{}", out.stdout);
    let out = stage.fathom("run --until steady --explain", &stage.folder("place"));
    assert!(out.stdout.contains("its rounds follow without a pause"), "{}", out.stdout);
    assert_eq!(runs(&printed("until = \"steady\"\n", "--format json").report()).len(), 5);
    let out = printed("until = \"steady\"\nruns = 7\n", "");
    assert!(out.code == Some(2) && out.stderr.contains("job.toml:5:8"), "{}", out.stderr);
}

#[test]
fn wrong_values_are_refused_with_a_fix() {
    let stage = Stage::shared();
    for (words, expected) in [
        ("run --engine sim --precision 0", "such as 2.5%"),
        ("run --engine sim --precision wide", "such as 2.5%"),
        ("run --engine sim --until bored", "type steady"),
        ("run --engine sim --max-runs 9", "--precision, --until steady or --settle"),
        ("run --engine sim --precision 5% --until steady", "type one of them"),
        ("run --engine sim --until steady --runs 9", "--max-runs"),
        ("run --engine sim --precision 5% --runs 3", "--runs 5"),
        ("bench --precision 5% --max-runs 4", "--max-runs 5"),
        ("run --engine sim --settle", "--fail-if"),
        ("run --engine sim --settle --fail-if iops<5 --runs 4", "--runs 5"),
        ("run --engine sim --settle --fail-if iops<5 --precision 5%", "type one of them"),
        ("run --engine sim --against nothing-of-that-name", "no file, tag or session has this name"),
    ] {
        let out = stage.fathom(words, Path::new(""));
        assert!(out.code == Some(2) && out.stderr.contains(expected), "{words}: {out:?}");
    }
    assert!(stage.sessions().is_empty());
}

/// The report of the earlier session, measured again.
fn repeated_report(report: &Report) -> &Value {
    &report.0["against"]["again"]
}

fn iops(report: &Value) -> f64 {
    report["results"][0]["total"]["iops"].as_f64().unwrap()
}

#[test]
fn earlier_session_is_remeasured_in_alternation() {
    let stage = Stage::shared();
    assert_eq!(stage.fathom(&format!("{SIM} --depth 4"), Path::new("")).code, Some(0));
    let out =
        stage.fathom(&format!("{} --depth 8 --against last", SIM.replace(" --quiet", "")), Path::new(""));
    let report = out.report();
    assert_eq!(report.0["results"].as_array().unwrap().len(), 1, "its own results stand alone");
    assert!(
        (iops(&report.0) / iops(repeated_report(&report)) / 2.0 - 1.0).abs() < 0.01,
        "twice as deep, twice as fast"
    );
    assert_eq!(
        (runs(&report).len(), repeated_report(&report)["results"][0]["runs"].as_array().unwrap().len()),
        (5, 5)
    );
    // The new job is faster than the earlier one, and the repeated job is as fast as before. A run has no number if its CPU time varied
    // too much.
    let printed = |which: &str| report.0["against"][which]["pairs"][0]["metrics"][0].clone();
    assert_eq!(
        (&printed("beside")["name"], &printed("beside")["answer"]),
        (&"IOPS".into(), &"FASTER".into())
    );
    assert!((printed("beside")["ratio"].as_f64().unwrap() - 2.0).abs() < 0.01, "{}", printed("beside"));
    assert_eq!(printed("since")["answer"], "SAME");
    // Each round has one run of both sides, in either order.
    let order: Vec<bool> =
        out.stderr.lines().filter(|l| l.starts_with("run ")).map(|l| l.contains(", again")).collect();
    assert!(order.len() == 10 && order.chunks(2).all(|round| round[0] != round[1]), "{}", out.stderr);
    // A session of an alternating comparison can itself be an earlier session.
    let third = stage.fathom(&format!("{SIM} --depth 2 --against last"), Path::new("")).report();
    assert!((iops(repeated_report(&third)) / iops(&report.0) - 1.0).abs() < 0.01);
    // A bench needs a directory for its plan.
    let refused = |words: &str, expected: &str| {
        let place = if words.starts_with("bench") { stage.folder("place") } else { "".into() };
        let out = stage.fathom(words, &place);
        assert!(out.code == Some(2) && out.stderr.contains(expected), "{words}: {out:?}");
    };
    refused(&format!("{SIM} --against last --until steady"), "which --until steady does not allow");
    refused("bench --against last", "none of the workloads of that session");
    // The null engine does nothing, so its operations take no time.
    let null = "run --engine null --time 50ms --warmup 0 --runs 3 --seed 7 --format json --quiet";
    stage.fathom(null, Path::new("")).report();
    let report = stage.fathom(&format!("{null} --bs 8k --against last"), Path::new("")).report();
    assert!(report.name().contains("null engine") && iops(repeated_report(&report)) > 0.0);
}

#[test]
fn alternating_comparison_uses_the_same_file() {
    let stage = Stage::shared();
    let dir = stage.folder("place");
    let words = "run --rw randread --size 32m --time 200ms --warmup 50ms --runs 3 --format json --quiet";
    stage.fathom(&format!("{words} --depth 1"), &dir).report();
    let report = stage.fathom(&format!("{words} --depth 16 --against last"), &dir).report();
    let repeated = repeated_report(&report);
    let depth = |r: &Value| r["results"][0]["job"]["phases"][0]["streams"][0]["depth"].as_u64();
    assert_eq!((depth(&report.0), depth(repeated)), (Some(16), Some(1)));
    assert_eq!((repeated["results"][0]["runs"].as_array().unwrap().len(), runs(&report).len()), (3, 3));
    // On both sides the device completed the issued operations, so the sides are counted separately.
    for side in [&report.0, repeated] {
        let device = &side["results"][0]["runs"][0]["device"];
        let [issued, done] = ["issued_ops", "ios"].map(|k| device[k].as_f64().unwrap());
        assert!(issued > 0.0 && done >= 0.9 * issued, "{device}");
    }
    assert!(names(&dir).is_empty(), "a file is left");
    std::fs::remove_dir(&dir).unwrap();
    let elsewhere = stage.folder("elsewhere");
    let out = stage.fathom(&format!("{words} --against last"), &elsewhere);
    assert!(out.code == Some(2) && out.stderr.contains("no longer exists"), "{out:?}");
    std::fs::write(&dir, "a file where the directory was").unwrap();
    let out = stage.fathom(&format!("{words} --against last"), &elsewhere);
    assert!(out.code == Some(2) && out.stderr.contains("of another kind"), "{out:?}");
}
