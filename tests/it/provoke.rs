//! Provoked problems that checks must find: throttles, journals, compression, disabled flushes; and iostat as a second witness.

use crate::disk::{Disk, Image, Room};
use crate::scene;
use crate::stage::{Stage, is_root, skip, wait};
use std::process::Command;
use std::time::Duration;

/// Short runs whose report is JSON.
const SHORT: &str = "--time 1s --warmup 100ms --runs 1 --quiet --format json";

#[test]
fn throttle_is_named_as_the_limiter() {
    let Some(report) = scene::THROTTLED.assert_found(&Stage::watching()) else { return };
    let limit = report.expect_answer("D04", "finding");
    assert!(limit["sentence"].as_str().unwrap().contains("250"), "{limit:#}");
    let above = report.expect_answer("D05", "finding");
    let share = above["evidence"]["above_share"].as_f64().unwrap_or_else(|| panic!("{above:#}"));
    assert!(share >= 0.95, "{share} of the waiting was above the device");
    assert_eq!(report.0["limiter"]["name"], "throttle", "{:#}", report.0["limiter"]);
}

#[test]
fn throttle_starting_during_a_run_is_a_cliff() {
    let Some(report) = scene::THROTTLED_MEANWHILE.assert_found(&Stage::watching()) else { return };
    let cliff = report.expect_answer("E02", "finding");
    let sentence = cliff["sentence"].as_str().unwrap();
    assert!(sentence.contains("so the cause is probably above the device"), "{sentence}");
    let of = |name: &str| cliff["evidence"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {cliff:#}"));
    assert!(of("before_iops") > 3.0 * of("after_iops"), "{cliff:#}");
    assert!((0.5..6.0).contains(&of("at_s")), "{cliff:#}");
    assert_eq!(
        report.0["results"][0]["steadiness"]["state"], "CLIFF",
        "{:#}",
        report.0["results"][0]["steadiness"]
    );
}

#[test]
fn direct_writes_through_a_data_journal_are_named() {
    let Some(report) = scene::JOURNALLED.assert_found(&Stage::shared()) else { return };
    assert!(!report.name().ends_with("direct"), "{}", report.name());
}

#[test]
fn compressible_data_on_btrfs_are_found() {
    let Some(report) = scene::COMPRESSED.assert_found(&Stage::shared()) else { return };
    let found = |id| report.has_answer(id, "finding");
    assert!(found("A02") || found("A03") || found("A07"), "{report:#?}");
}

#[test]
fn overlays_are_named_and_resolved_to_their_disk() {
    let Some(report) = scene::OVERLAY.assert_found(&Stage::shared()) else { return };
    for device in report.devices() {
        let of = |name: &str| device[name].as_f64().unwrap_or_else(|| panic!("no {name}: {device}"));
        assert!((of("ios") / of("issued_ops") - 1.0).abs() < 0.01, "{device}");
    }
}

/// Mounts an overlay whose files are on a disk and whose upper directory is in memory.
const UPPER_IN_MEMORY: &str = "mkdir -p lower/sub memory merged && head -c 4M /dev/urandom > lower/file && ln lower/file lower/link && \
    sync && mount -t tmpfs none memory && mkdir memory/upper memory/work && \
    mount -t overlay overlay -o lowerdir=$PWD/lower,upperdir=$PWD/memory/upper,workdir=$PWD/memory/work merged";

#[test]
fn overlay_writes_are_placed_in_the_upper_directory() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh(UPPER_IN_MEMORY);
    let run = |words: &str, target: &str| {
        let path = disk.dir.join(target);
        let words = format!(
            "run --time 200ms --warmup 0 --runs 2 --quiet --format json --expect-device {} {words}",
            disk.name()
        );
        let out = disk.fathom(&stage, &words.replace("$TARGET", &path.display().to_string()), &path);
        assert!(matches!(out.code, Some(0 | 1)), "{target}: {out:?}");
        out.report()
    };
    // A file that is only read is on the disk.
    let read = run("--rw randread --cache direct", "merged/file");
    read.expect_answer("A14", "holds");
    read.expect_answer("A11", "holds");
    // A file that is written is copied to memory. Its other hard link still leads to the disk.
    let write = "--rw randwrite --engine sync --cache direct-dsync --destroy $TARGET";
    for (words, target) in [
        (write, "merged/file"),
        ("--rw randwrite --size 16m", "merged/sub"),
        ("--rw randread --size 16m", "merged/sub"),
    ] {
        let report = run(words, target);
        assert_eq!(report.expect_answer("A14", "finding")["severity"], "void", "{target}");
        report.expect_answer("A11", "finding");
        assert!(report.name().contains("memory (tmpfs)"), "{}", report.name());
    }
    run("--rw randread --cache direct", "merged/link").expect_answer("A14", "holds");
    disk.sh("test -s memory/upper/file && test ! -e memory/upper/link && umount merged memory");
}

#[test]
fn overlay_metacopy_files_have_no_certain_device() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    // With metacopy, changing the owner copies only metadata to the upper directory.
    disk.sh(&format!(
        "{} && chown 1 merged/file",
        UPPER_IN_MEMORY.replace("workdir=", "metacopy=on,workdir=")
    ));
    let path = disk.dir.join("merged/file");
    let words = format!(
        "run --rw randread --cache direct --time 200ms --warmup 0 --runs 2 --quiet --format json --expect-device {}",
        disk.name()
    );
    let report = disk.fathom(&stage, &words, &path).report();
    report.expect_answer("A11", "not_checked");
    report.expect_answer("A14", "not_checked");
    disk.sh("umount merged memory");
}

#[test]
fn fuse_file_systems_are_not_local_disks() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let (real, shown) = (stage.folder("real"), stage.folder("shown"));
    let script = "bindfs -f \"$1\" \"$2\" & while kill -0 $! && ! mountpoint -q \"$2\"; do sleep 0.05; done; \
                  mountpoint -q \"$2\" || exit 1; echo ready; cat; umount --lazy \"$2\"; kill $!; wait";
    let mut serve = Command::new("bash");
    serve.args(["-c", script, "bash"]).arg(&real).arg(&shown);
    let Some(room) = Room::keep(&mut serve) else { return };
    let words = format!("run --rw randread --engine sync --depth 1 --size 16m {SHORT}");
    let report = wait(&mut stage.command(&room.enter(), &words, &shown)).report();
    let remote = report.expect_answer("D24", "finding");
    assert_eq!(remote["severity"], "rename");
    report.expect_answer("A13", "not_checked");
}

#[test]
fn syncs_without_device_flushes_are_not_durable() {
    for scene in [scene::WRITE_THROUGH, scene::WITHOUT_BARRIERS] {
        let Some(report) = scene.assert_found(&Stage::one_per_cpu()) else { return };
        assert!(report.name().contains("not durable"), "{}", report.name());
    }
    let Some(honest) = scene::SYNCED.play(&Stage::one_per_cpu()) else { return };
    let honest = honest.report();
    // The host decides how long a flush takes, so C03 may have either answer. Some hosts answer within 100 us at first, and take longer
    // later.
    assert!(honest.has_answer("C03", "finding") || honest.has_answer("C03", "holds"), "{honest:#?}");
    assert!(!honest.has_answer("C01", "finding") && !honest.name().contains("not durable"), "{honest:#?}");
}

#[test]
fn iostat_agrees_with_a_run() {
    if !is_root() {
        return;
    }
    if Command::new("iostat").arg("-V").output().is_err() {
        return skip("iostat is not installed (package sysstat)");
    }
    let stage = Stage::one_per_cpu().watching_as_for_users();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let file = disk.file("data", 64);
    let count = |text: &str| -> f64 {
        let lines = text.lines().filter(|l| l.starts_with(disk.name()));
        // Each report has the device and its transfers per second. Skip the first report, which covers the time since boot.
        lines.skip(1).filter_map(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok()).sum()
    };
    let iostat = Command::new("iostat")
        .args(["-d", disk.name(), "1", "7"])
        .env("LC_ALL", "C")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let words =
        "run --rw randread --depth 4 --time 3s --warmup 0 --runs 1 --attempts 1 --quiet --format json";
    let report = disk.fathom(&stage, words, &file).report();
    let seen = count(&String::from_utf8_lossy(&iostat.wait_with_output().unwrap().stdout));
    let ours: f64 = report.devices().iter().map(|d| d["ios"].as_f64().unwrap()).sum();
    assert!((seen / ours - 1.0).abs() < 0.02, "iostat saw {seen} transfers, the report has {ours}");
}
