//! Open and closed loops on a file that stalls for 0.1 s every 200 reads: only the open loop shows how long users wait.

use crate::disk::Disk;
use crate::stage::{Report, Stage, is_root};

const MS: f64 = 1e6;

/// Runs reads of 4 KiB on the stalling file.
fn on_a_stalling_file(stage: fn() -> Stage, words: &str) -> Option<Report> {
    if !is_root() {
        return None;
    }
    let stage = stage();
    let disk = Disk::slow(&stage, "stalls 200 0.1")?;
    let words = format!("run --engine sync --warmup 0 --runs 1 --quiet --format json {words}");
    let out = disk.fathom(&stage, &words, &disk.dir.join("file"));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    Some(out.report())
}

fn percentile(report: &Report, of: &str, rank: &str) -> Option<f64> {
    report.0["results"][0]["read"][of]["percentiles"][rank].as_f64()
}

#[test]
fn closed_loop_hides_a_stall() {
    let Some(report) = on_a_stalling_file(Stage::one_per_cpu, "--ops 3000") else { return };
    // The 15 stalls are 0.5 % of the operations, but at least a third of the time.
    let p99 = percentile(&report, "latency_ns", "99").unwrap();
    assert!(p99 < 20.0 * MS, "{p99}");
    assert!(report.0["results"][0]["read"]["latency_ns"]["max"].as_f64().unwrap() > 90.0 * MS);
    // Weighted by time, the same histogram shows what a user experiences.
    let met = report.expect_answer("E09", "finding")["evidence"]["p99_of_moments_ns"].as_f64().unwrap();
    assert!(met > 90.0 * MS, "{met}");
}

#[test]
fn open_loop_shows_the_waiting_during_a_stall() {
    // With enough workers, none has two arrivals during one stall. On a busy machine they begin too late.
    let words = "--rate 500 --arrivals constant --workers 128 --time 4s";
    let Some(report) = on_a_stalling_file(Stage::new, words) else { return };
    let p99 = percentile(&report, "latency_ns", "99").unwrap();
    assert!((50.0 * MS..400.0 * MS).contains(&p99), "{p99}");
    assert!(percentile(&report, "lateness_ns", "99").unwrap() < 0.1 * p99);
}

#[test]
fn percentiles_dominated_by_own_lateness_are_withheld() {
    // One worker: arrivals during a stall queue up, and its service times look harmless.
    let Some(report) = on_a_stalling_file(Stage::one_per_cpu, "--rate 500 --workers 1 --time 4s") else {
        return;
    };
    assert_eq!(percentile(&report, "latency_ns", "99"), None);
    let late = percentile(&report, "lateness_ns", "99").unwrap();
    let service = percentile(&report, "service_ns", "99").unwrap();
    assert!(late > 50.0 * MS && service < 20.0 * MS, "late {late}, service {service}");
    report.expect_answer("E10", "finding");
}
