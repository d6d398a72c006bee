//! Announced costs, the quick bench of ten seconds, and the comparison of two targets.

use crate::output::check_outcome;
use crate::stage::{Stage, wait, wait_long};
use std::path::Path;

#[test]
fn cost_is_announced_as_in_explain() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    for words in [
        "bench --profile demo --size 16m",
        "run --rw write --size 16m",
        "run --size 16m",
        "limit --size 16m",
        "layers --size 16m",
        "api --size 16m",
        "sweep --size 16m --bs 4k --depth 1",
        "recipe etcd",
    ] {
        let out = stage.fathom(&format!("{words} --explain"), &here);
        assert_eq!(out.code, Some(0), "{words}: {out:?}");
        let text = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("It takes ") && text.contains("It writes "), "{words}: {out:?}");
    }
    let words = "run --engine sim --time 60ms --warmup 0 --runs 1 --no-history";
    let out = stage.fathom(words, Path::new(""));
    assert!(out.stderr.contains("It takes about ") && out.stderr.contains("It writes nothing."), "{out:?}");
    let quiet = stage.fathom(&format!("{words} --quiet"), Path::new(""));
    assert!(!quiet.stderr.contains("It takes"), "{quiet:?}");
}

#[test]
fn quick_bench_takes_ten_seconds_and_claims_little() {
    let stage = Stage::new();
    let here = stage.folder("here");
    let mut command = stage.command(&[], "bench --quick", &here);
    let out = wait(&mut command);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    // Other load on the machine may delay the end.
    assert!(out.took.as_secs() < 15, "{:?}", out.took);
    assert!(
        out.stdout
            .contains("\n  Quick look. One run of 500 ms per row, so there are no confidence intervals."),
        "{out:?}"
    );
    assert!(
        !out.stdout.contains("95 % interval") && !out.stdout.contains("Derived from these results"),
        "{out:?}"
    );
    let brief = stage.fathom("show last --brief", Path::new(""));
    assert!(brief.stdout.starts_with("Quick look."), "{brief:?}");
    let report = stage.fathom("show last --format json", Path::new("")).report();
    assert_eq!(report.0["quick"]["run_ns"], 500_000_000, "{:#}", report.0["quick"]);
    assert!(
        report.0["headline"]["interval"].is_null() && report.0["deductions"].as_array().unwrap().is_empty()
    );
    let allowed = ["not judged", "throttle", "page cache", "memory", "CPU", "CPU quota", "run queue", "tool"];
    for result in report.0["results"].as_array().unwrap() {
        let limiter = result["limiter"]["name"].as_str().unwrap();
        assert!(allowed.contains(&limiter), "{limiter}");
    }
    for (words, word) in [
        ("--quick --runs 3", "--runs"),
        ("--quick --fail-if iops<1", "--fail-if"),
        ("--quick --profile atto", "10 s"),
    ] {
        check_outcome(&stage.fathom(&format!("bench {words}"), &here), 2, &[word]);
    }
}

#[test]
fn two_targets_are_compared_row_by_row() {
    let stage = Stage::shared();
    let (a, b) = (stage.folder("one"), stage.folder("two"));
    let words =
        "bench --profile peak --size 16m --time 100ms --warmup 0 --runs 4 --attempts 1 --quiet --compare";
    let out = wait_long(stage.command(&[], words, &a).arg(&b));
    let first = out.stdout.split("  ").next().unwrap();
    // The file is small, so the page cache or the CPU may have been measured.
    match first {
        "FASTEST" | "TIED" | "NO DIFFERENCE SEEN" | "CANNOT TELL" => assert_eq!(out.code, Some(0), "{out:?}"),
        other => assert_eq!((other, out.code), ("INVALID", Some(1)), "{out:?}"),
    }
    assert!(out.stdout.contains("RND4K Q32T1 read:") && out.stdout.contains("against the first"), "{out:?}");
    let report = stage.fathom("show last --format json", Path::new("")).report();
    let compared = &report.0["beside"];
    assert_eq!(compared["names"], serde_json::json!(["one", "two"]));
    let rows = compared["rows"].as_array().unwrap();
    assert_eq!((rows.len(), report.0["results"].as_array().unwrap().len()), (8, 8));
    for row in rows {
        let against = &row["against"];
        assert_eq!(against.is_object(), row["target"] == 1, "{row:#}");
        // A result that a finding invalidates has no number to compare, and the row contains the reason.
        if against["refused"].is_null() && row["target"] == 1 {
            assert_eq!(against["metrics"][0]["a_runs"].as_array().unwrap().len(), 4, "{row:#}");
            assert_eq!(against["metrics"][0]["b_runs"].as_array().unwrap().len(), 4, "{row:#}");
        }
    }
    check_outcome(&wait(stage.command(&[], "bench --compare", &a).arg(&a)), 2, &["are the same"]);
    for (words, expected) in [
        ("--budget 1s", "is too short for 5 rounds of 8 tests (about"),
        ("--budget 60s --precision 2", "--precision is another rule for the end"),
        ("--budget never", "--budget"),
    ] {
        let words = format!("bench --profile peak --size 16m {words} --compare");
        check_outcome(&wait(stage.command(&[], &words, &a).arg(&b)), 2, &[expected]);
    }
    check_outcome(&stage.fathom("bench --budget 60s", &a), 2, &["no --compare"]);
    let plan = wait(stage.command(&[], "bench --explain --compare", &a).arg(&b));
    for words in ["then more runs of the tests that vary most", "It takes at most 110 s", "--budget"] {
        assert!(
            plan.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(words),
            "{words}: {plan:?}"
        );
    }
    check_outcome(&stage.fathom("bench --compare", &a), 2, &["--compare"]);
}

#[test]
fn target_comparison_uses_its_time_budget() {
    let stage = Stage::shared();
    let (a, b) = (stage.folder("one"), stage.folder("two"));
    let words = "bench --profile peak --size 16m --time 50ms --warmup 0 --attempts 1 --budget 15s --quiet \
                 --format json --compare";
    let began = std::time::Instant::now();
    let out = wait_long(stage.command(&[], words, &a).arg(&b));
    assert!(began.elapsed().as_secs_f64() < 18.0, "{:?}", began.elapsed());
    let report = out.report().0;
    let runs: Vec<[usize; 2]> = report["beside"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["against"]["metrics"].get(0).cloned())
        .map(|metric| ["a_runs", "b_runs"].map(|side| metric[side].as_array().unwrap().len()))
        .collect();
    assert!(runs.iter().all(|[a, b]| a == b && *a >= 5), "as often on both targets: {runs:?}");
    assert!(report["notes"].to_string().contains("compare: each test ran "), "{report:#}");
    // Judging the session again gives the same report.
    assert_eq!(stage.fathom("show last --format json", Path::new("")).report().0, report);
}
