//! Tests of `fathom api`: which interfaces are compared, that every row moved the bytes it reports, counts of system calls compared with
//! those of strace, and that it keeps its time budget. No test bounds a rate.

use crate::stage::{Outcome, Stage, is_root, skip, tool};
use serde_json::Value;
use std::path::Path;
use std::time::Instant;

/// One round, without confidence intervals. Its runs end with their span, long before this time.
const SHORT: &str = "--runs 1 --time 20s --quiet --format json";

fn rows(report: &Value) -> &Vec<Value> {
    report["api"]["rows"].as_array().unwrap()
}

fn row<'r>(report: &'r Value, interface: &str) -> &'r Value {
    let found = rows(report).iter().find(|r| r["interface"] == interface);
    found.unwrap_or_else(|| panic!("no row {interface}: {:#}", report["api"]))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn interface_list_has_no_duplicates() {
    let stage = Stage::shared();
    let out = stage.fathom("api --list", Path::new(""));
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert!(out.code == Some(0) && lines.len() >= 28, "{out:?}");
    for word in [
        "pread ",
        "fread ",
        "fgetc",
        "BufReader",
        "mmap",
        "O_DIRECT",
        "O_SYNC",
        "O_DSYNC",
        "POSIX aio",
        "libaio",
    ] {
        assert!(lines.iter().any(|l| l.contains(word)), "{word}: {}", out.stdout);
    }
    for word in [
        "io_uring",
        "SQPOLL",
        "IOPOLL",
        "threads",
        "readahead",
        "splice",
        "sendfile",
        "copy_file_range",
        "fallocate",
    ] {
        assert!(lines.iter().any(|l| l.starts_with(word) || l.contains(word)), "{word}: {}", out.stdout);
    }
}

#[test]
fn common_interfaces_are_compared_by_default() {
    let stage = Stage::shared();
    let file = stage.file("mine", 4);
    let out = stage.fathom(&format!("api --rw randread --bs 4k {SHORT}"), &file);
    let report = out.report().0;
    let names: Vec<&str> = rows(&report).iter().map(|row| row["interface"].as_str().unwrap()).collect();
    let missing = report["api"]["missing"].to_string();
    // libaio is compared too if io_uring is denied.
    let ring = if missing.contains("io_uring cannot be used") { "libaio" } else { "io_uring" };
    let direct = format!("{ring} O_DIRECT");
    assert_eq!(names, ["pread", "BufReader", "mmap", ring, "pread O_DIRECT", direct.as_str()], "{missing}");
    let both = stage.fathom("api --all --interface pread", &file);
    assert!(both.code == Some(2) && both.stderr.contains("--interface"), "{both:?}");
}

#[test]
fn time_budget_is_announced_and_kept() {
    let stage = Stage::new();
    let file = stage.file("mine", 16);
    let begun = Instant::now();
    let words = "api --rw randread --bs 4k --interface pread,preadv2,mmap";
    let out = stage.fathom(&format!("{words} --budget 15s --format json"), &file);
    let took = begun.elapsed().as_secs_f64();
    assert!(took <= 1.1 * 15.0, "{took} s");
    let report = out.report().0;
    assert!(out.stderr.contains("It takes at most "), "{}", out.stderr);
    let runs_of = |row: &Value| {
        let result = &report["results"][row["result"].as_u64().unwrap() as usize];
        result["runs"].as_array().unwrap().len()
    };
    let runs: Vec<usize> = rows(&report).iter().map(runs_of).collect();
    // 15 s have room for 50 runs of at least 300 ms. Rows that vary more get more of them.
    assert!(runs.iter().all(|runs| *runs >= 3) && runs.iter().sum::<usize>() <= 50, "{runs:?}");
    let answered = ["advice", "no_advice"].map(|key| report["api"][key].as_array().map_or(0, Vec::len));
    assert_eq!(answered.iter().sum::<usize>(), 1, "one work has one answer: {:#}", report["api"]);
    for advice in report["api"]["advice"].as_array().unwrap() {
        assert!((0.0..=1.0).contains(&number(&advice["others_faster_at_most"])), "{advice:#}");
    }
    let plan = stage.fathom(&format!("{words} --budget 15s --explain"), &file).stdout;
    assert!(plan.contains("--budget") && plan.contains("15.0 s"), "{plan}");
    let short = stage.fathom(&format!("{words} --budget 3s"), &file);
    assert!(short.code == Some(2) && short.stderr.contains("type --budget "), "{short:?}");
}

#[test]
fn write_rows_are_sized_by_the_speed_of_the_storage() {
    let stage = Stage::new();
    let dir = stage.folder("place");
    let words =
        "api --rw write --bs 128k --size 1g --interface pread --runs 3 --time 300ms --quiet --format json";
    let report = stage.fathom(words, &dir).report().0;
    let row = row(&report, "pwrite");
    let (planned, touched) = (number(&row["planned_coverage"]), number(&row["coverage"]));
    assert!(planned > 0.0 && planned <= 1.0 && touched > 0.0 && touched <= planned + 1e-9, "{row:#}");
    // One probe before the first run limits the operations of all runs.
    let limit = &report["results"][0]["job"]["phases"][0]["streams"][0]["limit"]["operations"];
    assert!((number(limit) / (planned * f64::from(1 << 13)) - 1.0).abs() < 1e-9, "{report:#}");
}

#[test]
fn every_interface_reads_the_same_bytes_from_a_cold_start() {
    let stage = Stage::shared();
    let file = stage.file("mine", 1);
    for (rw, kind, bytes) in [
        ("read", "read", 1 << 20),
        ("randread", "read", 1 << 19),
        ("write", "write", 1 << 20),
        ("randwrite", "write", 1 << 19),
    ] {
        let out =
            stage.fathom(&format!("api --all --rw {rw} --bs 4k {} {SHORT}", destroy(kind, &file)), &file);
        let report = out.report().0;
        // Polling interfaces need a device that can be polled, and some kernels lack some flags.
        assert!(rows(&report).len() >= 28, "missing: {:#}", report["api"]["missing"]);
        for row in rows(&report) {
            let result = &report["results"][row["result"].as_u64().unwrap() as usize];
            assert_eq!(result[kind]["bytes"], bytes, "{row:#}");
            assert_eq!(row["coverage"], f64::from(bytes) / f64::from(1 << 20), "{row:#}");
            assert_eq!(row["cached_pages_at_start"]["Ok"], 0, "{row:#}");
            assert_eq!(row["stored_after"].is_null(), kind == "read", "{row:#}");
        }
        for missing in report["api"]["missing"].as_array().unwrap().iter().map(|m| m.as_str().unwrap()) {
            let known = ["HIPRI", "IOPOLL", "DONTCACHE", "NOWAIT", "fstream", "fallocate", "pwrite new file"];
            assert!(known.iter().any(|k| missing.split(", ").next().unwrap().contains(k)), "{missing}");
        }
    }
}

#[test]
fn interfaces_that_deallocate_use_their_own_file() {
    let stage = Stage::shared();
    let dir = stage.folder("place");
    let words = format!("api --size 16m --bs 64k --interface pread,fallocate {SHORT}");
    let report = stage.fathom(&words, &dir).report().0;
    let (fresh, plain) = (row(&report, "fallocate"), row(&report, "pread"));
    assert!(
        fresh["stored_before"]["Err"].is_string() && fresh["stored_after"]["Ok"]["count"].is_u64(),
        "{fresh:#}"
    );
    assert!(plain["stored_before"]["Ok"]["largest_piece_bytes"].is_u64(), "{plain:#}");
    // Interfaces that deallocate blocks use their own file, so the user's file has no holes.
    assert!(!crate::stage::Report(report).has_answer("A04", "finding"));
}

#[test]
fn system_call_counts_match_strace() {
    if !is_root() {
        return;
    }
    if tool(&[&"strace", &"-V"]).is_err() {
        return skip("there is no strace");
    }
    let stage = Stage::shared();
    let file = stage.file("data", 16);
    let names = "pread,fread 64K,BufReader";
    let mut command =
        stage.command(&[], &format!("api --rw read --bs 4k --size 16m {SHORT} --interface"), Path::new(""));
    let report = crate::stage::wait(command.arg(names).arg(&file)).report().0;
    for (name, engine, call) in [
        ("pread", "sync", "pread64"),
        ("fread 64K", "stdio:buffer=65536", "read"),
        ("BufReader", "std:buffer=8192", "read"),
    ] {
        let counted = |mib: u64| {
            let words = format!(
                "run --engine {engine} --cache buffered --rw read --bs 4k --bytes {mib}m --time 20s --runs 1 --attempts 1 --quiet"
            );
            calls_of(&stage, &words, &file, call)
        };
        // The calls that fathom itself makes on the file are equal in both runs and cancel out.
        let by_strace = (counted(12) as f64 - counted(4) as f64) / 8.0;
        let by_fathom = number(&row(&report, name)["calls_per_mib"]["Ok"]);
        assert!((by_strace - by_fathom).abs() <= 2.0, "{name}: strace {by_strace}, fathom {by_fathom}");
    }
}

/// Returns the number of calls of one system call on a file during a run, according to strace.
fn calls_of(stage: &Stage, words: &str, file: &Path, call: &str) -> u64 {
    let summary = stage.path("strace");
    let prefix = ["strace", "-f", "-c", "-P", &file.to_string_lossy(), "-e", &format!("trace={call}"), "-o"]
        .map(str::to_owned);
    let mut prefix = prefix.to_vec();
    prefix.push(summary.to_string_lossy().into_owned());
    let out = crate::stage::wait(&mut stage.command(&prefix, words, file));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let text = std::fs::read_to_string(&summary).unwrap();
    let line = text.lines().find(|l| l.ends_with(&format!(" {call}"))).unwrap_or_else(|| panic!("{text}"));
    line.split_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn without_root_only_call_counts_are_missing() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let dir = stage.unprivileged_folder("theirs");
    let out = stage.fathom_unprivileged(
        &format!("api --size 16m --bs 4k --rw read --interface pread,mmap {SHORT}"),
        &dir,
    );
    let report = out.report().0;
    for name in ["pread", "mmap"] {
        let why = row(&report, name)["calls_per_mib"]["Err"].as_str().unwrap();
        assert!(why.contains("root"), "{why}");
        assert_eq!(row(&report, name)["coverage"], 1.0);
    }
}

#[test]
fn user_files_are_only_read_unless_named_for_writing() {
    let stage = Stage::shared();
    let file = stage.file("mine", 4);
    let before = std::fs::read(&file).unwrap();
    let words = format!("api --bs 64k --interface pread,fallocate {SHORT}");
    let report = stage.fathom(&words, &file).report().0;
    assert_eq!(
        rows(&report).len(),
        2,
        "one row for sequential reads and one for random reads: {:#}",
        report["api"]
    );
    let missing = report["api"]["missing"].to_string();
    assert!(missing.contains("--destroy"), "{missing}");
    assert!(std::fs::read(&file).unwrap() == before, "it was written");
    let none = stage.fathom("api --rw write", &file);
    assert!(
        none.code == Some(2) && none.stderr.matches("--destroy").count() == 1,
        "each reason once: {none:?}"
    );
    let words = format!("{words} --destroy {}", file.display());
    let report = stage.fathom(&words, &file).report().0;
    assert_eq!(rows(&report).len(), 4);
    assert!(report["api"]["missing"].to_string().contains("name a directory"), "{:#}", report["api"]);
    assert!(std::fs::read(&file).unwrap() != before, "it was not written");
    let whole =
        stage.fathom(&format!("run --engine sync:new --rw write --destroy {0}", file.display()), &file);
    assert!(whole.code == Some(2) && whole.stderr.contains("name a directory"), "{whole:?}");
}

#[test]
fn table_is_available_as_text_and_csv() {
    let stage = Stage::shared();
    let dir = stage.folder("place");
    let csv = stage.path("rows.csv");
    let words = format!(
        "api --size 16m --bs 4k --rw randwrite --interface pread,mmap --runs 3 --quiet --verbose -o {}",
        csv.display()
    );
    let out = stage.fathom(&words, &dir);
    assert!(out.stdout.contains("4K random write:") && out.stdout.contains("\n  pwrite "), "{out:?}");
    assert!(out.stdout.contains("No page of the file was in the page cache"), "{out:?}");
    let text = std::fs::read_to_string(&csv).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].starts_with("interface,work,block_bytes,mb_per_s,")
            && lines[1].starts_with("pwrite,4K random write,4096,")
    );
    let fields = |l: &str| l.split(',').count();
    assert!(fields(lines[0]) == fields(lines[1]) && fields(lines[0]) == fields(lines[2]), "{text}");
}

#[test]
fn wrong_options_are_answered_with_valid_ones() {
    let stage = Stage::shared();
    let dir = stage.folder("place");
    let refused = |words: &str, expected: &str| {
        let Outcome { code, stderr, .. } = stage.fathom(&format!("api {words}"), &dir);
        assert!(code == Some(2) && stderr.contains(expected), "{words}: {code:?} {stderr}");
    };
    refused("--bs 100", "between 512 and 8m");
    refused("--bs 4k,16m", "between 512 and 8m");
    refused("--bs soon", "is not a size");
    refused("--interface preda", "did you mean 'pread'");
    refused("--rw trim", "randwrite");
    refused("--rw randrw", "randwrite");
    refused("--bs 8m --size 1m", "larger --size");
    refused("--interface fallocate --rw read", "nothing can be compared");
    refused("--destroy sda", "--destroy has no effect");
    refused("--runs 0", "--runs");
    refused("--budget soon", "--budget");
}

fn destroy(kind: &str, file: &Path) -> String {
    if kind == "write" { format!("--destroy {}", file.display()) } else { String::new() }
}
