//! The simulated device, the only one with known true figures.

use crate::stage::Stage;
use std::path::Path;

#[test]
fn known_device_is_measured_exactly() {
    let stage = Stage::shared();
    let words = "run --engine sim --depth 32 --time 1s --warmup 0 --runs 3 --seed 7 --format json --quiet";
    let out = stage.fathom(words, Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    let report = out.report();
    let read = &report.0["results"][0]["read"];
    let iops = read["iops"].as_f64().unwrap();
    assert!((iops / 320_000.0 - 1.0).abs() < 0.001, "{iops}");
    let median = read["latency_ns"]["percentiles"]["50"].as_f64().unwrap();
    assert!((median / 100_000.0 - 1.0).abs() < 0.01, "{median}");
    let depth = read["depth_mean"].as_f64().unwrap();
    assert!((depth / 32.0 - 1.0).abs() < 0.01, "{depth}");
    report.expect_answer("B18", "holds");
    assert!(report.name().contains("simulated"), "{}", report.name());
}

#[test]
fn equal_seeds_give_equal_figures() {
    let stage = Stage::shared();
    let words = "run --engine sim --depth 4 --time 50ms --warmup 0 --runs 2 --seed 7 --format json --quiet";
    let results = || {
        let mut results = stage.fathom(words, Path::new("")).report().0["results"].clone();
        // Remove what depends on real time: CPU costs, and the time series with its findings, because blocks are collected in real time.
        let result = results[0].as_object_mut().unwrap();
        result.remove("cost");
        for run in result["runs"].as_array_mut().unwrap() {
            let run = run.as_object_mut().unwrap();
            run.remove("cpu_ns_per_op");
            run.remove("host");
            // Remove the start time: the preparation takes real time.
            assert!(run.remove("started_s").is_some());
        }
        result.remove("steadiness");
        assert!(result.remove("series").is_some_and(|s| s.as_array().is_some_and(|s| s.len() == 2)));
        results
    };
    assert_eq!(results(), results());
}

#[test]
fn constant_device_is_steady_after_a_minute() {
    let stage = Stage::shared();
    let printed = |runs: &str| {
        let words = format!("run --engine sim --depth 1 --warmup 0 {runs} --seed 7 --format json --quiet");
        stage.fathom(&words, Path::new("")).report().0["results"][0].clone()
    };
    // Simulated minutes pass in seconds, and the time series is collected by the real clock. The run is long enough for ten of its
    // intervals.
    let long = printed("--runs 1 --time 180s");
    assert_eq!(long["steadiness"]["state"], "STEADY", "{}", long["steadiness"]);
    let within = |i: usize| long["runs"][0]["iops_within"][i].as_f64().unwrap();
    assert!(within(0) <= 10_001.0 && within(1) >= 9_999.0, "{}", long["runs"][0]);
    let short = printed("--runs 6 --time 1s");
    assert_eq!(short["steadiness"]["state"], "UNPROVEN", "{}", short["steadiness"]);
    let snia = &short["steadiness"]["snia"];
    assert!(snia["met"] == true && snia["rounds"] == 6, "{snia}");
    let median = short["total"]["iops_median"]["value"].as_f64().unwrap();
    assert!((median / 10_000.0 - 1.0).abs() < 0.001, "{median}");
    let two = printed("--runs 2 --time 1s");
    assert!(two["steadiness"]["snia"].is_null() && two["total"]["iops_median"].is_null(), "{two}");
}

#[test]
fn half_a_percent_above_capacity_is_an_overload() {
    let stage = Stage::shared();
    // Four servers of 100 us serve 40,000 a second.
    let printed = |rate: u32, seconds: u32| {
        let words = format!(
            "run --engine sim:servers=4 --depth 64 --rate {rate} --arrivals constant --time {seconds}s --warmup 0 --runs 1 --format json --quiet"
        );
        stage.fathom(&words, Path::new("")).report()
    };
    assert_eq!(printed(40_200, 40).expect_answer("E11", "finding")["severity"], "void");
    printed(36_000, 40).expect_answer("E11", "holds");
}

#[test]
fn show_prints_the_same_report() {
    let stage = Stage::shared();
    let words = "run --engine sim --depth 4 --time 50ms --warmup 0 --runs 2 --format json --quiet";
    let first = stage.fathom(words, Path::new(""));
    assert_eq!(first.report().0, stage.show().report().0);
}
