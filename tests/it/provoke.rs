//! Provocations: throttles, journals, compression, switched-off flushes, and a second witness.
//!
//! For: what the checks must see where it was done on purpose. Not for: the first stories of each kind ([`crate::honesty`]).

use crate::disk::{Disk, Image, Room};
use crate::stage::{Outcome, Report, Stage, is_root, skip, wait};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Short runs whose report is JSON.
const SHORT: &str = "--time 1s --warmup 100ms --runs 1 --quiet --format json";
/// Where version 1 of the block controller is on machines that have it.
const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// A cgroup of the story's own, gone with it.
pub(crate) struct Group(PathBuf);

impl Group {
    /// `None`, and said, where the machine has no such controller.
    pub(crate) fn new() -> Option<Self> {
        if !Path::new(BLKIO).join("blkio.throttle.read_iops_device").exists() {
            skip("there is no cgroup controller blkio of version 1 here");
            return None;
        }
        let dir = Path::new(BLKIO).join(format!("it-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Some(Self(dir))
    }

    /// Limits reads of a device, operations per second.
    pub(crate) fn limit_reads(&self, device: &str, iops: u32) {
        std::fs::write(self.0.join("blkio.throttle.read_iops_device"), format!("{device} {iops}")).unwrap();
    }

    /// Limits writes of a device, bytes per second, of whoever is in it by now too.
    pub(crate) fn limit_writes(&self, device: &str, bytes: u64) {
        for dir in self.of_fathom().iter().chain([&self.0]) {
            let file = dir.join("blkio.throttle.write_bps_device");
            std::fs::write(file, format!("{device} {bytes}")).unwrap();
        }
    }

    /// What a command must be prefixed with to run in it.
    pub(crate) fn enter(&self) -> Vec<String> {
        let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        ["sh", "-c", script, &self.0.to_string_lossy()].map(str::to_owned).into()
    }

    /// The group that fathom made in it.
    pub(crate) fn of_fathom(&self) -> Option<PathBuf> {
        let mut below = std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().path());
        below.find(|p| p.is_dir())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The program on a disk, in the group.
pub(crate) fn inside(disk: &Disk, group: &Group, stage: &Stage, words: &str) -> Command {
    stage.command(&[disk.enter(), group.enter()].concat(), words, &disk.dir)
}

#[test]
fn a_throttle_is_named_with_its_limit_and_is_what_limits() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let Some(group) = Group::new() else { return };
    group.limit_reads(&disk.number(), 1000);
    let words =
        "run --rw randread --depth 4 --size 32m --time 3s --warmup 500ms --runs 1 --quiet --format json";
    let report = wait(&mut inside(&disk, &group, &stage, words)).report();
    let limit = report.must_say("D04", "finding");
    assert!(limit["sentence"].as_str().unwrap().contains("1,000"), "{limit:#}");
    let above = report.must_say("D05", "finding");
    let share = above["evidence"]["above_share"].as_f64().unwrap_or_else(|| panic!("{above:#}"));
    assert!(share >= 0.95, "{share} of the waiting was above the device");
    assert_eq!(report.0["limiter"]["name"], "throttle", "{:#}", report.0["limiter"]);
}

#[test]
fn a_throttle_that_begins_in_mid_run_is_a_cliff_above_the_device() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let Some(group) = Group::new() else { return };
    let words =
        "run --rw randread --depth 4 --size 32m --time 6s --warmup 200ms --runs 1 --quiet --format json";
    let mut command = inside(&disk, &group, &stage, words);
    let number = disk.number();
    let story = std::thread::scope(|scope| {
        let run = scope.spawn(|| wait(&mut command));
        // The measured window is open when our group on this device counts thousands of reads.
        let since = Instant::now();
        while reads(&group, &number) < 20_000 && since.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(1500));
        let of_fathom = group.of_fathom().expect("fathom has a group of its own below the present one");
        std::fs::write(of_fathom.join("blkio.throttle.read_iops_device"), format!("{number} 500")).unwrap();
        run.join().unwrap()
    });
    let report = story.report();
    let cliff = report.must_say("E02", "finding");
    let sentence = cliff["sentence"].as_str().unwrap();
    assert!(sentence.contains("so the cause is above it"), "{sentence}");
    let of = |name: &str| cliff["evidence"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {cliff:#}"));
    assert!(of("before_iops") > 3.0 * of("after_iops"), "{cliff:#}");
    assert!((0.5..6.0).contains(&of("at_s")), "{cliff:#}");
}

/// Reads charged to the group that fathom made.
fn reads(group: &Group, device: &str) -> u64 {
    let text =
        group.of_fathom().and_then(|g| std::fs::read_to_string(g.join("blkio.throttle.io_serviced")).ok());
    let text = text.unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(device)?.trim().strip_prefix("Read"));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// Runs on a file system mounted with options, after a script in it.
fn on(kind: &str, options: &str, script: &str, words: &str) -> Option<Report> {
    if !is_root() {
        return None;
    }
    let stage = Stage::new();
    let disk = Disk::mounted(&stage, kind, Image::Direct, options)?;
    disk.sh(script);
    let out: Outcome = disk.fathom(&stage, &format!("run {words} {SHORT}"), &disk.dir);
    Some(out.report())
}

#[test]
fn direct_writes_through_a_data_journal_are_called_what_they_are() {
    let Some(report) = on("ext4", "data=journal", "true", "--rw randwrite --depth 4 --size 32m") else {
        return;
    };
    assert!(report.says("A03", "finding") || report.says("A02", "finding"), "{report:#?}");
    assert!(!report.name().ends_with("direct"), "{}", report.name());
}

#[test]
fn compressed_files_are_found_out_on_btrfs() {
    let words = "--rw randrw --mix 70 --depth 4 --size 32m --compress 60";
    let Some(report) = on("btrfs", "compress-force=zstd", "true", words) else { return };
    let found = |id| report.says(id, "finding");
    assert!(found("A02") || found("A03") || found("A07"), "{report:#?}");
    // Compressible data on a file system that compresses are too easy, too.
    assert!(found("A08"), "{report:#?}");
}

#[test]
fn direct_writes_with_checksums_on_btrfs_are_not_called_direct() {
    let Some(report) = on("btrfs", "defaults", "true", "--rw randwrite --depth 4 --size 32m") else { return };
    assert!(report.says("A02", "finding") || report.says("A03", "finding"), "{report:#?}");
}

#[test]
fn an_overlay_is_named_and_followed_to_its_disk() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh("mkdir lower upper work shown && \
             mount -t overlay overlay -o lowerdir=$PWD/lower,upperdir=$PWD/upper,workdir=$PWD/work shown");
    let words = format!("run --rw randread --depth 4 --size 32m {SHORT}");
    let report = disk.fathom(&stage, &words, &disk.dir.join("shown")).report();
    report.must_say("D25", "finding");
    for device in report.devices() {
        let of = |name: &str| device[name].as_f64().unwrap_or_else(|| panic!("no {name}: {device}"));
        assert!((of("ios") / of("issued_ops") - 1.0).abs() < 0.01, "{device}");
    }
}

#[test]
fn a_file_system_that_a_program_serves_is_no_local_disk() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let (real, shown) = (stage.folder("real"), stage.folder("shown"));
    let script = "bindfs -f \"$1\" \"$2\" & while kill -0 $! && ! mountpoint -q \"$2\"; do sleep 0.05; done; \
                  mountpoint -q \"$2\" || exit 1; echo ready; cat; umount --lazy \"$2\"; kill $!; wait";
    let mut serve = Command::new("bash");
    serve.args(["-c", script, "bash"]).arg(&real).arg(&shown);
    let Some(room) = Room::keep(&mut serve) else { return };
    let words = format!("run --rw randread --engine sync --depth 1 --size 16m {SHORT}");
    let report = wait(&mut stage.command(&room.enter(), &words, &shown)).report();
    let remote = report.must_say("D24", "finding");
    assert_eq!(remote["severity"], "rename");
    report.must_say("A13", "not_checked");
}

#[test]
fn syncs_that_never_reach_the_device_are_not_durable() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let words = format!("run --rw randwrite --depth 1 --fsync 1 --size 32m {SHORT}");
    let honest = disk.fathom(&stage, &words, &disk.dir).report();
    assert!(!honest.says("C01", "finding"), "{honest:#?}");
    let _switched = disk.switch("write_cache", "write through");
    let report = disk.fathom(&stage, &words, &disk.dir).report();
    report.must_say("C01", "finding");
    assert!(report.name().contains("not durable"), "{}", report.name());
}

#[test]
fn mounts_without_barriers_are_not_durable() {
    let words = "--rw randwrite --depth 1 --fsync 1 --size 32m";
    let Some(report) = on("ext4", "nobarrier", "true", words) else { return };
    report.must_say("C02", "finding");
    assert!(report.name().contains("not durable"), "{}", report.name());
}

#[test]
fn iostat_beside_a_run_sees_the_same() {
    if !is_root() {
        return;
    }
    if Command::new("iostat").arg("-V").output().is_err() {
        return skip("iostat is not installed (package sysstat)");
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let file = disk.file("data", 64);
    let count = |text: &str| -> f64 {
        let lines = text.lines().filter(|l| l.starts_with(disk.name()));
        // Device, then transfers a second, in each report of a second but the first, which is since the start of the machine.
        lines.skip(1).filter_map(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok()).sum()
    };
    let beside = Command::new("iostat")
        .args(["-d", disk.name(), "1", "7"])
        .env("LC_ALL", "C")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let words = "run --rw randread --depth 4 --time 3s --warmup 0 --runs 1 --quiet --format json";
    let report = disk.fathom(&stage, words, &file).report();
    let seen = count(&String::from_utf8_lossy(&beside.wait_with_output().unwrap().stdout));
    let ours: f64 = report.devices().iter().map(|d| d["ios"].as_f64().unwrap()).sum();
    assert!((seen / ours - 1.0).abs() < 0.02, "iostat saw {seen} transfers, the report has {ours}");
}
