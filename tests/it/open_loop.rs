//! Open loop: what users wait for while storage stalls, which a closed loop never asks.
//!
//! For: latencies of both loops on a file that stops answering for a tenth of a second every 200 reads. Not for: schedules
//! themselves (unit tests of the sources, and [`crate::fidelity`]).

use crate::disk::Disk;
use crate::stage::{Report, Stage, is_root};

const MS: f64 = 1e6;

/// Runs reads of 4 KiB on such a file.
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
    let Some(report) = on_a_stalling_file(Stage::beside_few, "--ops 3000") else { return };
    // Fifteen stalls are half a percent of the operations, and a third of the time or more.
    let p99 = percentile(&report, "latency_ns", "99").unwrap();
    assert!(p99 < 20.0 * MS, "{p99}");
    assert!(report.0["results"][0]["read"]["latency_ns"]["max"].as_f64().unwrap() > 90.0 * MS);
    // The same histogram, weighted with its times, tells what such a user meets.
    let met = report.must_say("E09", "finding")["evidence"]["p99_of_moments_ns"].as_f64().unwrap();
    assert!(met > 90.0 * MS, "{met}");
}

#[test]
fn open_loop_shows_the_waiting_during_a_stall() {
    // So many workers that none of them has two arrivals during one stall. With another test beside them they begin too late.
    let words = "--rate 500 --arrivals constant --workers 128 --time 4s";
    let Some(report) = on_a_stalling_file(Stage::new, words) else { return };
    let p99 = percentile(&report, "latency_ns", "99").unwrap();
    assert!((50.0 * MS..400.0 * MS).contains(&p99), "{p99}");
    assert!(percentile(&report, "lateness_ns", "99").unwrap() < 0.1 * p99);
}

#[test]
fn percentiles_dominated_by_own_lateness_are_withheld() {
    // One worker: what arrives during a stall queues up in front of it, and its own service times look harmless.
    let Some(report) = on_a_stalling_file(Stage::beside_few, "--rate 500 --workers 1 --time 4s") else {
        return;
    };
    assert_eq!(percentile(&report, "latency_ns", "99"), None);
    let late = percentile(&report, "lateness_ns", "99").unwrap();
    let service = percentile(&report, "service_ns", "99").unwrap();
    assert!(late > 50.0 * MS && service < 20.0 * MS, "late {late}, service {service}");
    report.must_say("E10", "finding");
}
