//! Results of `fathom fio` compared with fio: how much a job moves, and its percentiles, depths and units.
//!
//! Each test runs the same command line under both. If fio is not installed, only the expected values are checked.

use crate::fio::fio;
use crate::stage::{Outcome, Stage, tool, wait};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs a command line in two new folders, under fathom and, if it is installed, under fio. `DIR` is the folder.
fn both(stage: &Stage, name: &str, words: &str) -> Vec<(&'static str, Outcome, std::path::PathBuf)> {
    let (ours, theirs) = (stage.folder(&format!("{name}-fathom")), stage.folder(&format!("{name}-fio")));
    let at = |folder: &Path| words.replace("DIR", &folder.display().to_string());
    let mut all = vec![("fathom", fio(stage, &at(&ours)), ours)];
    if tool(&[&"fio", &"--version"]).is_ok() {
        let out = wait(Command::new("fio").current_dir(&theirs).args(at(&theirs).split_whitespace()));
        all.push(("fio", out, theirs));
    }
    all
}

fn json(out: &Outcome) -> Value {
    let text = out.stdout.find('{').map_or("", |at| &out.stdout[at..]);
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {out:?}"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().map(|keys| keys.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[test]
fn jobs_move_as_many_bytes_as_under_fio() {
    let stage = Stage::shared();
    for (at, (words, moved)) in [
        ("--rw=read:64k --size=256k", vec![[64, 0]]),
        ("--rw=read:60k --size=260k", vec![[5, 0]]),
        ("--rw=write:128k --size=1m", vec![[0, 256]]),
        ("--rw=read:-4k --bs=4k --size=64k", vec![[16, 0]]),
        ("--rw=read --size=1m --number_ios=10 --loops=3", vec![[30, 0]]),
        ("--rw=read --size=16k --number_ios=10 --loops=3", vec![[12, 0]]),
        (
            "--rw=write --bs=1m --filesize=4m --numjobs=3 --offset_increment=1m --stonewall",
            vec![[0, 4], [0, 3], [0, 2]],
        ),
        ("--rw=read --size=64k --offset=0%", vec![[16, 0]]),
        ("--rw=read --size=1m --kb_base=1000 --bs=4k", vec![[262, 0]]),
        ("--rw=write --size=64k --loops=2 --verify=crc32c", vec![[32, 32]]),
    ]
    .into_iter()
    .enumerate()
    {
        let words = format!("--name=x --directory=DIR --output-format=json {words}");
        for (who, out, _) in both(&stage, &format!("moves{at}"), &words) {
            assert_eq!(out.code, Some(0), "{who} {words}: {out:?}");
            let json = json(&out);
            let ios =
                |job: &Value| ["read", "write"].map(|kind| job[kind]["total_ios"].as_u64().unwrap_or(0));
            let mut all: Vec<_> = json["jobs"].as_array().unwrap().iter().map(ios).collect();
            // fio reports clones in varying order.
            all.sort_by_key(|ios| std::cmp::Reverse(*ios));
            assert_eq!(all, moved, "{who} {words}");
        }
    }
}

#[test]
fn blocks_written_twice_are_verified_once_as_under_fio() {
    let stage = Stage::shared();
    let words = "--name=x --directory=DIR --rw=randwrite --norandommap --size=256k --verify=crc32c --write_iolog=DIR/log \
                 --output-format=json";
    for (who, out, folder) in both(&stage, "twice", words) {
        assert_eq!(out.code, Some(0), "{who}: {out:?}");
        let json = json(&out);
        let log = std::fs::read_to_string(folder.join("log")).unwrap();
        let mut written: Vec<&str> =
            log.lines().filter_map(|line| Some(line.split_once(" write ")?.1)).collect();
        assert_eq!(written.len(), 64, "{who}: {log}");
        written.sort_unstable();
        written.dedup();
        let read = json["jobs"][0]["read"]["total_ios"].as_u64();
        assert!(written.len() < 64, "{who}: {log}");
        assert_eq!(read, Some(written.len() as u64), "{who}: {log}");
    }
}

#[test]
fn repeated_filename_options_add_files_as_under_fio() {
    let stage = Stage::shared();
    let words = "--filename=DIR/a --name=x --filename=DIR/b --rw=write --size=64k --output-format=json";
    for (who, out, folder) in both(&stage, "names", words) {
        let sizes = ["a", "b"].map(|name| std::fs::metadata(folder.join(name)).unwrap().len());
        assert_eq!((out.code, sizes), (Some(0), [32768, 32768]), "{who}: {out:?}");
    }
}

#[test]
fn errors_of_fio_are_errors_here_and_make_no_file() {
    let stage = Stage::shared();
    for (name, words, why, makes) in [
        ("folder", "--name=x --filename=DIR --rw=read --size=64k", "is a directory", false),
        ("readonly", "--name=x --directory=DIR --rw=read --size=64k --readonly", "x.0.0", false),
        ("trim", "--name=x --directory=DIR --rw=trim --size=64k", "Inappropriate ioctl for device", true),
    ] {
        for (who, out, folder) in both(&stage, name, words) {
            assert_eq!(out.code, Some(1), "{who} {words}: {out:?}");
            if who == "fathom" {
                assert!(out.stderr.contains(why), "{words}: {out:?}");
            }
            let is_empty = std::fs::read_dir(&folder).unwrap().next().is_none();
            // fio lays out the file before it refuses the trim.
            assert!(is_empty || (makes && who == "fio"), "{who} {words}");
        }
    }
}

#[test]
fn percentile_list_is_used_as_typed() {
    let stage = Stage::shared();
    let always = "--name=x --directory=DIR --rw=read --size=1m --percentile_list=99.9:50:97";
    for (at, more) in
        ["", "--lat_percentiles=1", "--lat_percentiles=1 --clat_percentiles=0", "--clat_percentiles=0"]
            .into_iter()
            .enumerate()
    {
        let words = format!("{always} {more} --output-format=json+");
        for (who, out, _) in both(&stage, &format!("json{at}"), &words) {
            let read = json(&out)["jobs"][0]["read"].clone();
            for (kind, has) in
                [("clat_ns", !more.contains("clat_percentiles=0")), ("lat_ns", more.contains("=1"))]
            {
                let all: &[&str] = if has { &["50.000000", "97.000000", "99.900000"] } else { &[] };
                assert_eq!(keys(&read[kind]["percentile"]), all, "{who} {more} {kind}: {read:#}");
                assert_eq!(read[kind].get("bins").is_some(), has, "{who} {more} {kind}: {read:#}");
            }
        }
        for (who, out, _) in both(&stage, &format!("terse{at}"), &format!("{always} {more} --minimal")) {
            let fields: Vec<&str> = out.stdout.trim().split(';').collect();
            let names: Vec<&str> = fields[17..37].iter().filter_map(|f| Some(f.split_once('=')?.0)).collect();
            let has = !more.ends_with("clat_percentiles=0") || more.contains("=1");
            let first = if has { ["50.000000%", "97.000000%", "99.900000%"] } else { ["0%"; 3] };
            assert_eq!((&names[..3], names.len()), (first.as_slice(), 20), "{who} {more}: {out:?}");
        }
    }
    for (who, out, _) in both(&stage, "text", &format!("{always} --lat_percentiles=1")) {
        for kind in ["    clat percentiles (", "    lat percentiles ("] {
            let table = out.stdout.split(kind).nth(1).unwrap_or_else(|| panic!("{who}: {out:?}"));
            for rank in ["50.0th=[", "97.0th=[", "99.9th=["] {
                assert!(
                    table.lines().nth(1).is_some_and(|line| line.contains(rank)),
                    "{who} {rank}: {table}"
                );
            }
        }
    }
}

#[test]
fn percentiles_and_syncs_are_reported_as_by_fio() {
    let stage = Stage::shared();
    for (at, (words, has_percentiles, syncs, has_depth)) in [
        ("--gtod_reduce=1 --fsync=4", false, 3, true),
        ("--disable_clat=1 --fsync=4", false, 3, true),
        ("--fdatasync=4", true, 0, true),
        ("--create_only=1", false, 0, false),
    ]
    .into_iter()
    .enumerate()
    {
        let words = format!("--name=x --directory=DIR --rw=write --size=64k --output-format=json {words}");
        for (who, out, _) in both(&stage, &format!("reduced{at}"), &words) {
            let job = &json(&out)["jobs"][0];
            assert_eq!(job["write"]["clat_ns"].get("percentile").is_some(), has_percentiles, "{who} {words}");
            assert_eq!(job["sync"]["total_ios"], syncs, "{who} {words}: {job:#}");
            assert_eq!(job.get("latency_depth").is_some(), has_depth, "{who} {words}: {job:#}");
        }
    }
}

#[test]
fn depth_distribution_counts_every_depth() {
    let stage = Stage::shared();
    for (at, (words, level, submit)) in [
        ("--iodepth=8", 3, 1),
        ("--iodepth=32 --iodepth_batch_submit=16 --iodepth_batch_complete_min=16", 5, 3),
        ("--iodepth=32 --numjobs=2 --group_reporting", 5, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let always = "--name=x --directory=DIR --rw=randread --size=8m --direct=1 --ioengine=libaio";
        for (who, out, _) in
            both(&stage, &format!("depth{at}"), &format!("{always} {words} --output-format=json"))
        {
            let job = &json(&out)["jobs"][0];
            for (table, names) in [
                ("iodepth_level", ["1", "16", "2", "32", "4", "8", ">=64"]),
                ("iodepth_submit", ["0", "16", "32", "4", "64", "8", ">=64"]),
                ("iodepth_complete", ["0", "16", "32", "4", "64", "8", ">=64"]),
            ] {
                let mut all = keys(&job[table]);
                all.sort_unstable();
                assert_eq!(all, names, "{who} {words} {table}: {job:#}");
            }
            let share = |table: &str, key: &str| job[table][key].as_f64().unwrap_or(0.0);
            let levels = ["1", "2", "4", "8", "16", "32", ">=64"];
            let calls = ["0", "4", "8", "16", "32", "64", ">=64"];
            // The device decides how many operations complete together, so only the largest column is certain.
            assert!(share("iodepth_level", levels[level]) > 0.0, "{who} {words}: {job:#}");
            assert!(
                levels[level + 1..].iter().all(|key| share("iodepth_level", key) == 0.0),
                "{who} {words}: {job:#}"
            );
            assert!(share("iodepth_submit", calls[submit]) > 50.0, "{who} {words}: {job:#}");
            let sum: f64 = levels.iter().map(|key| share("iodepth_level", key)).sum();
            assert!((99.0..101.0).contains(&sum), "{who} {words}: {job:#}");
        }
        for (who, out, _) in both(&stage, &format!("line{at}"), &format!("{always} {words} --minimal")) {
            let fields: Vec<&str> = out.stdout.trim().split(';').collect();
            // Fields 92 to 98, counted from 1.
            let shares: Vec<f64> =
                fields[91..98].iter().map(|f| f.trim_end_matches('%').parse().unwrap()).collect();
            assert!(shares[level] > 0.0 && shares.iter().sum::<f64>() > 99.0, "{who} {words}: {shares:?}");
        }
    }
}

#[test]
fn units_and_descriptions_are_printed_as_under_fio() {
    let stage = Stage::shared();
    let always =
        "--name=x --directory=DIR --rw=read --size=4m --description=nightly --kb_base=1000 --unit_base=1";
    for (who, out, _) in both(&stage, "text", always) {
        let check_outcome = |text: &str| assert!(out.stdout.contains(text), "{who} {text}: {out:?}");
        check_outcome("  Description  : [nightly]\n");
        let line = out.stdout.lines().find(|line| line.starts_with("  read: IOPS=")).unwrap();
        let (first, second) = line.split_once("BW=").and_then(|(_, rest)| rest.split_once(" (")).unwrap();
        assert!(first.ends_with("bit/s"), "{who}: {line}");
        assert!(!first.contains("ibit/s") && second.contains("ibit/s)"), "{who}: {line}");
        let group = out.stdout.lines().find(|line| line.trim_start().starts_with("READ: bw=")).unwrap();
        assert!(group.contains("io=4194kB (4096KiB)"), "{who}: {group}");
        check_outcome("(R) 4096B-4096B");
    }
    for (who, out, _) in both(&stage, "json", &format!("{always} --output-format=json")) {
        assert_eq!(json(&out)["jobs"][0]["desc"], "nightly", "{who}");
    }
    for (who, out, _) in both(&stage, "terse", &format!("{always} --minimal")) {
        assert!(out.stdout.trim_end().ends_with(";nightly"), "{who}: {out:?}");
    }
}

#[test]
fn logs_start_after_the_ramp() {
    let stage = Stage::shared();
    let words = "--name=x --directory=DIR --rw=randread --size=1m --ramp_time=1 --runtime=1 --time_based --rate_iops=50 \
                 --write_lat_log=DIR/l";
    for (who, out, folder) in both(&stage, "ramp", words) {
        let log = std::fs::read_to_string(folder.join("l_lat.1.log")).unwrap();
        let time =
            |line: Option<&str>| line.and_then(|l| l.split(',').next()?.trim().parse::<u64>().ok()).unwrap();
        let (first, last) = (time(log.lines().next()), time(log.lines().last()));
        assert!(first < 500 && (600..1400).contains(&last), "{who}: {first} {last}: {out:?}");
    }
}
