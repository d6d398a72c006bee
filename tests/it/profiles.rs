//! Profiles that print results like a well-known tool: their tests, layouts and scores.
//!
//! Source of AS SSD's score: <https://ssd-tester.com/text_score.php>.

use crate::disk::{Device, Image};
use crate::stage::{Outcome, Stage, fill, is_root, tool};
use serde_json::Value;
use std::fs::File;
use std::path::Path;

/// The results of a report in the layout of a tool.
fn card(out: &Outcome) -> Value {
    out.report().0["card"].clone()
}

fn names(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect()
}

/// All reported differences from the original tool.
fn differs(card: &Value) -> String {
    card["differs"].as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// A row of a layout by its name.
fn row<'a>(card: &'a Value, name: &str) -> &'a Value {
    card["rows"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap()
}

#[test]
fn known_latency_gives_the_known_score() {
    let stage = Stage::shared();
    let words =
        "bench --profile asssd --engine sim --time 5ms --warmup 0 --runs 3 --seed 7 --quiet --format json";
    let out = stage.fathom(words, Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    let card = card(&out);
    assert_eq!(names(&card["rows"]), ["Seq", "4K", "4K-64Thrd", "Acc.time"]);
    // Every operation takes 100 us, at any depth.
    let mb = |bytes: f64, threads: f64| bytes * threads * 10_000.0 / 1e6;
    let (seq, one, many) = (mb(f64::from(16 << 20), 1.0), mb(4096.0, 1.0), mb(4096.0, 64.0));
    let near = |value: &Value, truth: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / truth - 1.0).abs() < 0.002, "{value} is not {truth}");
    };
    for side in ["read", "write"] {
        near(&row(&card, "Seq")[side]["value"], seq);
        near(&row(&card, "4K")[side]["value"], one);
        near(&row(&card, "4K-64Thrd")[side]["value"], many);
        near(&row(&card, "Acc.time")[side]["value"], 0.1);
        near(&card["score"][side]["value"], 0.1 * seq + one + many);
    }
    near(&card["score"]["total"]["value"], 0.15 * seq + 0.1 * seq + 2.0 * one + one + many + 1.5 * many);
    assert_eq!(row(&card, "Acc.time")["unit"], "ms");
    let shown = stage.fathom("show last", Path::new("")).stdout;
    assert!(shown.contains("As AS SSD Benchmark shows it") && shown.contains("total score: "), "{shown}");
}

#[test]
fn atto_skips_and_names_sizes_that_do_not_fit() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let words = "bench --profile atto --size 16m --time 10ms --warmup 0 --runs 1 --quiet --format json";
    let out = stage.fathom(words, &folder);
    let card = card(&out);
    let names = names(&card["rows"]);
    assert_eq!(names.last(), Some(&"16M"), "{names:?}");
    let differs = differs(&card);
    assert!(differs.contains("Left out: 32M, 64M: the region has only 16 MiB"), "{differs}");
    assert!(differs.contains("incompressible data"), "{differs}");
    // Sizes that direct I/O does not allow are left out, so the number of sizes depends on the machine.
    let results = out.report().0["results"].as_array().unwrap().len();
    assert!((13..=16).contains(&names.len()) && results == 2 * names.len(), "{names:?}");
    let shown = stage.fathom("show last", Path::new("")).stdout;
    assert!(shown.contains("As ATTO Disk Benchmark shows it"), "{shown}");
}

#[test]
fn four_kib_sectors_skip_small_sizes_and_raise_the_access_time() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Buffered) else { return };
    tool(&[&"losetup", &"--sector-size", &"4096", &device.path]).unwrap();
    let quick = "--time 10ms --warmup 0 --runs 1 --quiet --format json";
    let read_only = stage.fathom(&format!("bench --profile atto {quick}"), &device.path);
    let of_atto = card(&read_only);
    assert_eq!(names(&of_atto["rows"]).first(), Some(&"4K"), "{of_atto}");
    assert!(of_atto["rows"].as_array().unwrap().iter().all(|r| r["write"].is_null()), "{of_atto}");
    assert!(differs(&of_atto).contains("Left out: 512, 1K, 2K: direct I/O to /dev/"), "{of_atto}");
    let words = format!("bench --profile asssd {quick} --destroy {}", device.name());
    let written = stage.fathom(&words, &device.path);
    let of_asssd = card(&written);
    let raised = "Acc.time write uses 4 KiB instead of 512 B";
    assert!(differs(&of_asssd).contains(raised), "{of_asssd}");
    assert!(!differs(&of_asssd).contains("part of the drive"), "{of_asssd}");
    let at = row(&of_asssd, "Acc.time")["write"]["result"].as_u64().unwrap() as usize;
    let line = &written.report().0["results"][at]["job"]["phases"][0]["streams"][0]["access"]["lines"][0];
    assert_eq!(line["sizes"]["write"], serde_json::json!({"fixed": 4096}), "{line}");
}

#[test]
fn user_file_is_only_read_and_write_scores_are_withheld() {
    let stage = Stage::shared();
    let file = stage.file("mine", 64);
    let before = std::fs::read(&file).unwrap();
    let quick = "--time 20ms --warmup 0 --runs 2 --quiet --format json";
    let out = stage.fathom(&format!("bench --profile asssd {quick} --cache buffered"), &file);
    let read = card(&out)["score"]["read"].clone();
    // Numbers from the page cache are relabelled.
    assert!(read["value"].as_f64().is_some() || read["withheld"].is_string(), "{read}");
    for name in ["write", "total"] {
        let score = &card(&out)["score"][name];
        assert!(score["value"].is_null(), "{score}");
        assert!(score["withheld"].as_str().unwrap().contains("4K-64Thrd write"), "{score}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn invalid_results_withhold_the_score_and_access_time_spans_the_target() {
    let stage = Stage::shared();
    let file = stage.path("holes");
    File::create(&file).unwrap().set_len(3 << 29).unwrap();
    let out =
        stage.fathom("bench --profile asssd --time 10ms --warmup 0 --runs 1 --quiet --format json", &file);
    let report = out.report();
    report.expect_answer("A04", "finding");
    let card = card(&out);
    let read = &card["score"]["read"];
    assert!(read["value"].is_null(), "{read}");
    assert_eq!(read["withheld"], "no number for Seq read, 4K read, 4K-64Thrd read");
    let span = |name: &str| {
        let at = row(&card, name)["read"]["result"].as_u64().unwrap() as usize;
        report.0["results"][at]["job"]["phases"][0]["streams"][0]["access"]["span_bytes"].as_u64().unwrap()
    };
    assert_eq!((span("4K"), span("Acc.time")), (1 << 30, 3 << 29));
    assert!(differs(&card).contains("Acc.time read is measured in a part of the drive"), "{card}");
}

#[test]
fn compression_curve_writes_then_reads_each_point() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let words = "bench --profile asssd-compression --size 32m --runs 1 --quiet --format json";
    let out = stage.fathom(words, &folder);
    let report = out.report();
    let results = report.0["results"].as_array().unwrap();
    assert_eq!(results.len(), 22, "{out:?}");
    let card = card(&out);
    for (i, row) in card["rows"].as_array().unwrap().iter().enumerate() {
        assert_eq!(row["name"], format!("{} %", 10 * i));
        let of = |side: &str| &results[row[side]["result"].as_u64().unwrap() as usize];
        let (write, read) = (of("write"), of("read"));
        let ops = |r: &Value, side: &str| r[side]["ops"].as_u64();
        assert_eq!((ops(write, "write"), ops(read, "read")), (Some(2), Some(2)), "{row}");
        assert!(write["read"].is_null() && read["write"].is_null());
        let saved = write["data"]["compress_percent"].as_f64().unwrap();
        assert!((saved - 10.0 * i as f64).abs() < 6.0, "{saved} of {i}");
    }
}

#[test]
fn impossible_profile_options_are_refused_first() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let file = stage.path("mine");
    File::create(&file).unwrap();
    fill(&file, 32);
    let cases = [
        ("--profile asssd-compression --time 1s", &folder, "--time"),
        ("--profile asssd-compression --size 8m", &folder, "the region has only 8 MiB"),
        ("--profile asssd-compression", &file, "--destroy"),
        ("--profile atto --size 100", &folder, "the region has only 100 B"),
        ("--size 64k", &folder, "--size"),
    ];
    for (words, target, must) in cases {
        let out = stage.fathom(&format!("bench {words} --quiet"), target);
        assert_eq!(out.code, Some(2), "{words}: {out:?}");
        assert!(out.stderr.contains(must), "{words}: {}", out.stderr);
    }
    assert!(stage.sessions().is_empty() && crate::stage::names(&folder).is_empty());
}

#[test]
fn profile_plan_names_the_origins_of_settings() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let out = stage.fathom("bench --profile atto --explain", &folder).stdout;
    let size = out.lines().find(|l| l.starts_with("--size")).unwrap();
    assert!(size.contains("256 MiB") && size.ends_with("profile atto"), "{size}");
    assert!(out.contains("SEQ1M Q4T1 read (headline: the number to quote)"), "{out}");
    for profile in ["cdm", "asssd", "asssd-compression"] {
        let printed =
            stage.fathom(&format!("bench --profile {profile} --size 32m --explain"), &folder).stdout;
        let sizes: Vec<&str> = printed.lines().filter(|l| l.starts_with("--size")).collect();
        let [size] = sizes.as_slice() else { panic!("{printed}") };
        assert!(size.contains("32 MiB") && size.ends_with("command line"), "{size}");
    }
}
