//! Replays of captures with `fathom run x.capture`: what the target receives and when, and what is refused.

use crate::disk::{Device, Image, rings_discard};
use crate::stage::{Outcome, Stage, is_root, tool};
use rustix::process::Signal;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Ticks per microsecond in a trace of MSR Cambridge.
const TICKS: u64 = 10;
const BEGINS: u64 = 128_166_372_000_000_000;
/// Service time of the simulated device in us.
const SIMULATED_US: u64 = 100;

/// A capture of one task. Each request has its time in us, kind, offset, length, and latency in us.
pub(crate) fn capture(stage: &Stage, name: &str, requests: &[(u64, &str, u64, u64, u64)]) -> PathBuf {
    let mut text = String::new();
    for (at_us, what, offset, bytes, took_us) in requests {
        let at = BEGINS + at_us * TICKS;
        writeln!(text, "{at},host,0,{what},{offset},{bytes},{}", took_us * TICKS).unwrap();
    }
    let (trace, file) = (stage.path(&format!("{name}.csv")), stage.path(&format!("{name}.capture")));
    std::fs::write(&trace, text).unwrap();
    let out = stage.fathom(&format!("capture -o {} --import", file.display()), &trace);
    assert_eq!(out.code, Some(0), "{out:?}");
    file
}

/// A chain of reads with this latency and this pause after each read.
fn chain(stage: &Stage, name: &str, reads: u64, took_us: u64, gap_us: u64) -> PathBuf {
    let step = took_us + gap_us;
    let all: Vec<_> = (0..reads).map(|at| (at * step, "Read", at * 8192, 4096, took_us)).collect();
    capture(stage, name, &all)
}

/// The comparison of a replay with its original, of the only result.
fn replayed(out: &Outcome) -> Value {
    let report: Value =
        serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {out:?}"));
    report["results"][0]["replay"].clone()
}

/// A figure of the original and of the replay.
fn figure(replay: &Value, name: &str) -> (f64, f64) {
    let all = replay["figures"].as_array().unwrap_or_else(|| panic!("{replay}"));
    let of = all.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{name}: {all:?}"));
    (of["original"].as_f64().unwrap(), of["replay"].as_f64().unwrap())
}

#[test]
fn replay_on_a_known_device_takes_the_expected_time() {
    let stage = Stage::shared();
    // In the original each read took twice as long as the simulated device does.
    let (reads, gap_us) = (200, 300);
    let file = chain(&stage, "chain", reads, 2 * SIMULATED_US, gap_us);
    let run = |words: &str| {
        let out =
            stage.fathom(&format!("run --engine sim --format json --quiet --no-history {words}"), &file);
        replayed(&out)
    };
    let us = |ns: f64| (ns / 1000.0).round() as u64;
    let dependent = run("");
    let (then, now) = figure(&dependent, "elapsed");
    assert_eq!(us(then), reads * 2 * SIMULATED_US + (reads - 1) * gap_us);
    assert_eq!(us(now), reads * SIMULATED_US + (reads - 1) * gap_us);
    assert_eq!(figure(&dependent, "operations"), (reads as f64, reads as f64));
    assert_eq!(us(figure(&dependent, "read p50").1), SIMULATED_US);
    assert_eq!(dependent["seen_at"], "program", "the simulated device has no driver");
    assert_eq!((&dependent["pace"], &dependent["counted"]["is_whole"]), (&"dependent".into(), &true.into()));
    // With halved gaps, with the times of the capture, and without gaps.
    assert_eq!(us(figure(&run("--speed 2"), "elapsed").1), reads * SIMULATED_US + (reads - 1) * gap_us / 2);
    let begun = (reads - 1) * (2 * SIMULATED_US + gap_us);
    assert_eq!(us(figure(&run("--pace timed"), "elapsed").1), begun + SIMULATED_US);
    assert_eq!(us(figure(&run("--pace fast --depth 10"), "elapsed").1), reads / 10 * SIMULATED_US);
    let cut = run("--time 20ms");
    assert!(figure(&cut, "operations").1 < reads as f64, "{cut}");
    assert_eq!(cut["counted"]["is_whole"], false);
    let shown = stage.fathom("run --engine sim --quiet --no-history", &file);
    for words in ["replay of chain.capture, dependent", "original", "elapsed", "IOPS"] {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
}

#[test]
fn late_submissions_have_no_latency() {
    let stage = Stage::shared();
    // Twenty requests arrive at once every 10 ms. At depth 1, the last request of each burst waits for all others.
    let all: Vec<_> = (0..2000_u64).map(|at| (at / 20 * 10_000, "Read", at * 4096, 4096, 50)).collect();
    let file = capture(&stage, "bursts", &all);
    let words = "run --engine sim --format json --quiet --no-history --pace timed";
    let late = stage.fathom(&format!("{words} --depth 1"), &file);
    assert!(late.report().has_answer("E10", "finding"), "{}", late.stdout);
    let replay = replayed(&late);
    let p99 = replay["figures"].as_array().unwrap().iter().find(|f| f["name"] == "read p99").unwrap();
    assert!(p99["replay"].is_null(), "{p99}");
    assert!(replay["counted"]["held_by_depth"].as_u64().unwrap() > 0, "{replay}");
    let in_time = stage.fathom(&format!("{words} --depth 32"), &file);
    assert!(in_time.report().has_answer("E10", "holds"), "{}", in_time.stdout);
}

#[test]
fn impossible_replays_are_refused_with_a_reason() {
    let stage = Stage::shared();
    let file = chain(&stage, "chain", 20, 200, 300);
    let refused = |words: &str, on: &Path, why: &str| {
        let out = stage.fathom(&format!("run --quiet --no-history {words}"), on);
        assert_eq!(out.code, Some(2), "{words}: {out:?}");
        assert!(out.stderr.contains(why), "{words}: {}", out.stderr);
    };
    refused("--engine sim --bs 4k", &file, "--bs cannot be combined with the capture");
    refused("--engine sim --speed 0", &file, "from 0.001 to 1000");
    refused("--engine sim --pace soon", &file, "dependent");
    refused("--engine sim --workers 2", &file, "--workers cannot be combined");
    refused("--pace fast", &stage.folder("empty"), "--pace is for a captured load");
    let other = chain(&stage, "other", 30, 200, 300);
    refused(&format!("--engine sim {}", other.display()), &file, "one run replays one capture");
    // If no completion is known, no operation can wait for one.
    let log = stage.path("load.iolog");
    std::fs::write(
        &log,
        "fio version 3 iolog\n0 /x add\n0 /x open\n5 /x read 0 4096\n900 /x read 8192 4096\n1000 /x close\n",
    )
    .unwrap();
    let imported = stage.path("log.capture");
    let out = stage.fathom(&format!("capture -o {} --import", imported.display()), &log);
    assert_eq!(out.code, Some(0), "{out:?}");
    refused("--engine sim --pace dependent", &imported, "has no completion times");
    let timed = stage.fathom("run --engine sim --format json --quiet --no-history", &imported);
    assert_eq!(replayed(&timed)["pace"], "timed");
    // An empty capture; and a truncated one, whose beginning is replayed and reported as incomplete.
    std::fs::write(&log, "fio version 3 iolog\n0 /x add\n0 /x open\n1000 /x close\n").unwrap();
    let out = stage.fathom(&format!("capture --force -o {} --import", imported.display()), &log);
    assert_eq!(out.code, Some(0), "{out:?}");
    refused("--engine sim", &imported, "has no request that could be replayed");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 20]).unwrap();
    let cut = stage.fathom("run --engine sim --format json --quiet --no-history", &file);
    let replay = replayed(&cut);
    assert!(replay["differs"][0].as_str().unwrap().contains("cut off"), "{replay}");
    assert_eq!(figure(&replay, "operations").1 as u64, 20);
    std::fs::write(&file, &bytes[..60]).unwrap();
    refused("--engine sim", &file, "header");
}

#[test]
fn smaller_targets_get_the_touched_blocks_compacted() {
    let stage = Stage::shared();
    // Reads of 8 MiB in all, spread over 64 GiB.
    let all: Vec<_> =
        (0..128_u64).map(|at| (at * 100, "Read", ((at * 37) % 128) << 29, 65_536, 50)).collect();
    let file = capture(&stage, "wide", &all);
    let run = |on: &Path| {
        stage.fathom(
            &format!("run --cache buffered --format json --quiet --no-history {}", file.display()),
            on,
        )
    };
    let small = run(&stage.file("small", 4));
    assert_eq!(small.code, Some(2), "{small:?}");
    assert!(small.stderr.contains("touches 8 MiB of data"), "{}", small.stderr);
    let fits = run(&stage.file("fits", 16));
    let replay = replayed(&fits);
    assert_eq!(figure(&replay, "operations"), (128.0, 128.0));
    assert!(replay["differs"].to_string().contains("without gaps"), "{replay}");
    assert!(fits.stdout.contains("\"dense\":true") || fits.stdout.contains("\"dense\": true"));
    // In a directory, fathom makes a file of the needed size.
    let made = run(&stage.folder("made"));
    assert_eq!(figure(&replayed(&made), "operations"), (128.0, 128.0));
}

/// Requests of tasks whose names begin like this, in order of offset: kind, first byte and bytes; and the requested flushes.
fn requests(stage: &Stage, capture: &Path, tasks: &[&str]) -> (Vec<(String, u64, u64)>, usize) {
    let out = stage.fathom("show --events --format csv", capture);
    let mut lines = out.stdout.lines();
    let heading: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column =
        |name: &str| heading.iter().position(|h| *h == name).unwrap_or_else(|| panic!("{heading:?}"));
    let [op, asked, offset, bytes, task] = ["op", "asked", "offset_bytes", "bytes", "task"].map(column);
    let mut all = Vec::new();
    let mut flushes = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if !tasks.iter().any(|name| cells[task].starts_with(name)) {
            continue;
        }
        if cells[asked] == "1" {
            flushes += 1;
        } else if cells[op] != "flush" {
            all.push((cells[op].to_owned(), cells[offset].parse().unwrap(), cells[bytes].parse().unwrap()));
        }
    }
    all.sort();
    (all, flushes)
}

#[test]
fn captured_mix_is_replayed_unchanged_and_only_with_permission() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    crate::stage::fill(&stage.path("image"), 64);
    let Some(device) = Device::on(&stage.path("image"), Image::Direct) else { return };
    let [first, again] = ["first", "again"].map(|name| stage.path(&format!("{name}.capture")));
    let captured = |file: &Path, load: &dyn Fn() -> Outcome| {
        let mut running = stage.start(&format!("capture -o {}", file.display()), &device.path);
        running.wait_for_output("capturing ");
        let out = load();
        running.signal(Signal::INT);
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        out
    };
    let filename = format!("--filename={}", device.path.display());
    let fio = || {
        let words: [&dyn AsRef<std::ffi::OsStr>; 10] = [
            &"fio",
            &"--name=load",
            &filename,
            &"--rw=randrw",
            &"--bsrange=4k-16k",
            &"--size=6m",
            &"--direct=1",
            &"--fdatasync=16",
            &"--randseed=7",
            &"--output=/dev/null",
        ];
        tool(&words).unwrap_or_else(|why| panic!("{why}"));
        stage.fathom("list", Path::new(""))
    };
    captured(&first, &fio);
    let run = |words: &str| {
        stage.fathom(
            &format!("run --format json --quiet --no-history {words} {}", first.display()),
            &device.path,
        )
    };
    let before = device.checksum();
    let refused = run("");
    assert!(refused.code == Some(2) && refused.stderr.contains("--destroy"), "{refused:?}");
    assert_eq!(device.checksum(), before);
    let out = captured(&again, &|| run(&format!("--destroy {}", device.name())));
    let replay = replayed(&out);
    let (then, flushes) = requests(&stage, &first, &["fio"]);
    let (now, flushed) = requests(&stage, &again, &["fathom-0", "iou-wrk"]);
    assert!(then.len() > 100 && flushes > 5, "{} {flushes}", then.len());
    let more: Vec<_> = now.iter().filter(|request| !then.contains(request)).collect();
    let fewer: Vec<_> = then.iter().filter(|request| !now.contains(request)).collect();
    assert_eq!(
        (now == then, flushed),
        (true, flushes),
        "{} and {}, only replayed: {more:?}, only captured: {fewer:?}",
        then.len(),
        now.len()
    );
    assert_ne!(device.checksum(), before);
    // Another capture is running, and each has its own tracer.
    assert_eq!(replay["seen_at"], "driver", "{replay}");
    for name in ["operations", "read size", "write size", "sync share"] {
        let (then, now) = figure(&replay, name);
        assert!((then - now).abs() < 1e-9, "{name}: {then} {now}");
    }
}

#[test]
fn replayed_trims_discard_through_io_uring() {
    let stage = Stage::shared();
    let Some(device) = is_root().then(|| Device::new(&stage, 64, Image::Direct)).flatten() else { return };
    // Discards completed and their sectors, from `stat`.
    let discarded = || -> Vec<u64> {
        let stat = std::fs::read_to_string(format!("/sys/block/{}/stat", device.name())).unwrap();
        stat.split_whitespace().skip(11).step_by(2).take(2).map(|n| n.parse().unwrap()).collect()
    };
    let before = discarded();
    let words = format!(
        "run --rw randtrim --bs 64k --size 32m --ops 100 --engine io_uring --runs 1 --attempts 1 --destroy {}",
        device.name()
    );
    let out = stage.fathom(&words, &device.path);
    assert!([Some(0), Some(1)].contains(&out.code), "{out:?}");
    let after = discarded();
    if !rings_discard() {
        return crate::stage::skip("this kernel's rings have no discard");
    }
    assert!(after[0] >= before[0] + 100, "{before:?} {after:?}");
    assert!(after[1] >= before[1] + 100 * 128, "{before:?} {after:?}");
}
