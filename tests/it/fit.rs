//! `fathom fit`: fitted jobs run unchanged and behave like the captured load, and impossible fits are refused.

use crate::disk::{Device, Image};
use crate::replay::capture;
use crate::stage::{Stage, is_root, tool};
use rustix::process::Signal;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Two thousand reads a second for two seconds, at random times, of 4 KiB and one in ten of 16 KiB, within 24 MiB.
fn reads(stage: &Stage) -> PathBuf {
    let mut number = 7_u64;
    let mut random = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) as f64 / (1_u64 << 31) as f64
    };
    let mut at = 0.0;
    let mut all = Vec::new();
    while at < 2e6 {
        at += -500.0 * (1.0 - random()).ln();
        let bytes = if random() < 0.1 { 16_384 } else { 4096 };
        all.push((at as u64, "Read", 4096 + (random() * 6000.0) as u64 * 4096, bytes, 900));
    }
    capture(stage, "reads", &all)
}

#[test]
fn fitted_job_has_the_rate_and_sizes_of_its_capture() {
    let stage = Stage::shared();
    let file = reads(&stage);
    let job = stage.path("job.toml");
    let out = stage.fathom(&format!("fit -o {}", job.display()), &file);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    let text = std::fs::read_to_string(&job).unwrap();
    for words in ["# Run:", "IDC", "KS 0.0", "arrivals = \"poisson\"", "rw = \"randread\"", "bs = \"4k:"] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    assert!(!text.contains("It writes"), "{text}");
    // Without -o the job is printed.
    let printed = stage.fathom("fit", &file).stdout;
    assert_eq!(printed.lines().skip(4).collect::<Vec<_>>(), text.lines().skip(4).collect::<Vec<_>>());
    let explained = stage.fathom(&format!("run --explain {}", job.display()), &stage.folder("made"));
    assert_eq!(explained.code, Some(0), "{explained:?}");
    std::fs::write(&job, text.replacen("\ntime", "\ncache = \"buffered\"\ntime", 1)).unwrap();
    let out = stage
        .fathom(&format!("run --format json --quiet --no-history {}", job.display()), &stage.folder("made"));
    let report: Value =
        serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {out:?}"));
    let read = &report["results"][0]["read"];
    let (ops, bytes) = (read["ops"].as_f64().unwrap(), read["bytes"].as_f64().unwrap());
    assert!((3400.0..4600.0).contains(&ops), "{read}");
    let mean = bytes / ops;
    assert!((4096.0 * 1.2..4096.0 * 1.4).contains(&mean), "{mean}");
}

#[test]
fn captures_that_cannot_be_fitted_are_refused() {
    let stage = Stage::shared();
    let file = reads(&stage);
    let refused = |words: &str, on: &Path, why: &str| {
        let out = stage.fathom(&format!("fit {words}"), on);
        assert_eq!(out.code, Some(2), "{words}: {out:?}");
        assert!(out.stderr.contains(why), "{words}: {}", out.stderr);
    };
    let folder = stage.folder("folder");
    refused(&format!("{}", file.display()), &folder, "type --check too");
    refused("--format json", &file, "a job file is always TOML");
    refused("--check", &file, "TARGET");
    refused(&format!("-o {0} -o {0}", stage.path("a.toml").display()), &file, "type -o once");
    refused(
        &format!("--check --format json -o {} {}", stage.path("x.csv").display(), file.display()),
        &folder,
        ".json",
    );
    let text = stage.path("text");
    std::fs::write(&text, "hello\n").unwrap();
    refused("", &text, "not a fathom capture");
    // Logs without requests, without reads and writes, and with all requests at one time.
    let log = stage.path("load.iolog");
    let imported = stage.path("log.capture");
    for (lines, why) in [
        ("", "contains no requests"),
        ("5 /x datasync 0 0\n900 /x datasync 0 0\n", "only flushes (2)"),
        ("5 /x read 0 4096\n", "the same time"),
    ] {
        std::fs::write(&log, format!("fio version 3 iolog\n0 /x add\n0 /x open\n{lines}1000 /x close\n"))
            .unwrap();
        let out = stage.fathom(&format!("capture --force -o {} --import", imported.display()), &log);
        assert_eq!(out.code, Some(0), "{out:?}");
        refused("", &imported, why);
    }
    // Without known completions the job becomes an open loop, and a remark reports this.
    let many: String = (0..400).fold(String::new(), |mut all, at| {
        writeln!(all, "{} /x read {} 4096", at * 1000, at * 8192).unwrap();
        all
    });
    std::fs::write(&log, format!("fio version 3 iolog\n0 /x add\n0 /x open\n{many}900000 /x close\n"))
        .unwrap();
    stage.fathom(&format!("capture --force -o {} --import", imported.display()), &log);
    let blind = stage.fathom("fit", &imported);
    assert_eq!(blind.code, Some(0), "{blind:?}");
    assert!(blind.stdout.contains("their tasks are unknown): 400."), "{}", blind.stdout);
    assert!(blind.stdout.contains("arrivals = \"constant\""), "{}", blind.stdout);
    // A capture that is cut off is fitted up to that point; one that is cut off in its header is refused.
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 20]).unwrap();
    let cut = stage.fathom("fit", &file);
    assert_eq!(cut.code, Some(1), "{cut:?}");
    assert!(cut.stderr.contains("cut off") && cut.stdout.contains("cut off"), "{cut:?}");
    std::fs::write(&file, &bytes[..60]).unwrap();
    refused("", &file, "header");
}

/// Returns the difference of a figure in a check.
fn difference(check: &Value, name: &str) -> f64 {
    let all = check["figures"].as_array().unwrap_or_else(|| panic!("{check}"));
    let of = all.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{name}: {all:?}"));
    of["difference"].as_f64().unwrap_or_else(|| panic!("{of}"))
}

#[test]
fn fitted_mix_is_compared_with_its_capture() {
    let stage = Stage::new();
    if !is_root() {
        return;
    }
    crate::stage::fill(&stage.path("image"), 64);
    let Some(device) = Device::on(&stage.path("image"), Image::Direct) else { return };
    let file = stage.path("mix.capture");
    let mut running = stage.start(&format!("capture -o {}", file.display()), &device.path);
    running.wait_for_output("capturing ");
    let filename = format!("--filename={}", device.path.display());
    let words: [&dyn AsRef<std::ffi::OsStr>; 22] = [
        &"fio",
        &filename,
        &"--direct=1",
        &"--runtime=4",
        &"--time_based",
        &"--randseed=7",
        &"--output=/dev/null",
        &"--name=oltp",
        &"--rw=randrw",
        &"--rwmixread=70",
        &"--bssplit=4k/80:16k/20",
        &"--ioengine=libaio",
        &"--iodepth=16",
        &"--rate_iops=700,300",
        &"--rate_process=poisson",
        &"--size=32m",
        &"--name=log",
        &"--rw=write",
        &"--bs=4k",
        &"--fdatasync=3",
        &"--rate_iops=,150",
        &"--offset=40m",
    ];
    let all: Vec<_> = words.into_iter().chain([&"--size=8m" as _, &"--ioengine=psync" as _]).collect();
    tool(&all).unwrap_or_else(|why| panic!("{why}"));
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(0));
    let job = stage.fathom("fit", &file).stdout;
    for words in ["rw = \"write\"", "fdatasync = 3", "offset = \"40m\"", "--destroy", "randread"] {
        assert!(job.contains(words), "{words}:\n{job}");
    }
    let check = |words: &str| {
        stage.fathom(&format!("fit --check --format json {words} {}", file.display()), &device.path)
    };
    let before = device.checksum();
    let refused = check("");
    assert!(refused.code == Some(2) && refused.stderr.contains("--destroy"), "{refused:?}");
    assert_eq!(device.checksum(), before);
    let kept = stage.path("check.txt");
    let out = check(&format!("--destroy {} -o {}", device.name(), kept.display()));
    let checked: Value =
        serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {out:?}"));
    // Other load on this machine may cause missed goals, but the fitted figures must be close.
    assert!([Some(0), Some(1)].contains(&out.code), "{out:?}");
    assert_eq!(out.code == Some(0), checked["word"] == "MET", "{checked}");
    for (name, most) in
        [("operations", 0.15), ("bytes", 0.2), ("sizes", 0.06), ("offsets", 0.08), ("flushes", 0.25)]
    {
        assert!(difference(&checked, name).abs() <= most, "{name}: {checked}");
    }
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains("goal") && text.contains("flushes"), "{text}");
    assert_ne!(device.checksum(), before);
}

#[test]
fn jobs_with_phases_run_them_in_sequence() {
    let stage = Stage::shared();
    let (job, log) = (stage.path("turns.toml"), stage.path("ops.csv"));
    let text = format!(
        "op-log = {:?}\ntime = \"1s\"\nwarmup = 0\nruns = 1\ndepth = 8\n\
         [[turn]]\nops = 3\nrw = \"write\"\nbs = \"16k\"\nsize = \"1m\"\nfdatasync = 1\ndrain = true\n\
         [[turn]]\nops = 8\nrw = \"randwrite\"\noffset = \"2m\"\nsize = \"14m\"\nperiod = \"2ms\"\nburst = 8\n",
        log.display().to_string()
    );
    std::fs::write(&job, text).unwrap();
    let out = stage.fathom(&format!("run --attempts 1 {}", job.display()), &stage.folder("data"));
    assert!([Some(0), Some(1)].contains(&out.code), "{out:?}");
    assert!(out.stdout.contains("3 x 16K sequential write, then 8 x 4K random write"), "{out:?}");
    let log = std::fs::read_to_string(log).unwrap();
    // Rows are in the order in which operations complete, and by slot if several complete together.
    let rows: Vec<Vec<&str>> = log.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let (direction, bytes, offset) = (3, 6, 11);
    let turns: Vec<&[Vec<&str>]> = rows.chunks_exact(14).take(20).collect();
    assert!(turns.len() >= 5, "{log}");
    let mut next = 0;
    for turn in turns {
        for pair in turn[..6].chunks(2) {
            assert_eq!(
                (pair[0][direction], pair[0][bytes], pair[1][direction]),
                ("write", "16384", "sync"),
                "{log}"
            );
            assert_eq!(pair[0][offset].parse::<u64>().unwrap(), next % (1 << 20), "{log}");
            next += 16_384;
        }
        let inside = |row: &Vec<&str>| {
            let at: u64 = row[offset].parse().unwrap();
            row[bytes] == "4096" && (2 << 20..16 << 20).contains(&at)
        };
        assert!(turn[6..].iter().all(inside), "{log}");
    }
}
