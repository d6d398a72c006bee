//! Honesty: a number that is about something else gets that name, and a number that nothing supports is withheld.
//!
//! The provocations are functions of their own: what each sets up and runs is repeated by [`crate::long`] too.

use crate::disk::{Disk, Image};
use crate::stage::{Outcome, Stage, is_root, skip};
use std::path::Path;

/// Short runs whose report is JSON.
const SHORT: &str = "--time 300ms --warmup 50ms --runs 3 --quiet --format json";

/// A provocation: sets something up and measures it; `None`, and said, where the machine cannot have it.
pub(crate) type Provocation = fn(&Stage) -> Option<Outcome>;

/// Reads through the page cache of a file just read.
#[expect(clippy::unnecessary_wraps, reason = "all provocations have one shape")]
pub(crate) fn reads_of_a_cached_file(stage: &Stage) -> Option<Outcome> {
    Some(reads_of_a_cached_file_accepting(stage, ""))
}

fn reads_of_a_cached_file_accepting(stage: &Stage, accept: &str) -> Outcome {
    let file = stage.path("data");
    if !file.exists() {
        stage.file("data", 64);
    }
    std::fs::read(&file).unwrap();
    stage.fathom(&format!("run --rw randread --cache buffered --depth 1 {accept} {SHORT}"), &file)
}

#[test]
fn reads_of_a_file_just_read_are_about_the_page_cache() {
    let stage = Stage::new();
    let out = reads_of_a_cached_file(&stage).unwrap();
    let report = out.report();
    assert!(report.name().contains("page cache"), "{}", report.name());
    let finding = report.must_say("A01", "finding");
    assert_eq!(finding["severity"], "rename");
    assert!(!finding["evidence"].as_object().unwrap().is_empty(), "{finding:#}");
    assert_eq!((report.verdict(), out.code), ("SUSPECT", Some(1)));

    let accepted = reads_of_a_cached_file_accepting(&stage, "--accept a01");
    // A cached file is also as fast as a CPU; only what was accepted is forgiven.
    let others = ["D06"].iter().any(|id| accepted.report().says(id, "finding"));
    assert!(accepted.code == Some(0) || others, "{accepted:?}");
}

#[test]
fn direct_reads_arrive_at_the_device_one_by_one_on_ext4() {
    direct_reads_arrive("ext4");
}

#[test]
fn direct_reads_arrive_at_the_device_one_by_one_on_xfs() {
    direct_reads_arrive("xfs");
}

#[test]
fn direct_reads_arrive_at_the_device_one_by_one_on_btrfs() {
    direct_reads_arrive("btrfs");
}

fn direct_reads_arrive(kind: &str) {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, kind, Image::Direct) else { return };
    let out = disk.fathom(&stage, &format!("run --rw randread --depth 4 --size 64m {SHORT}"), &disk.dir);
    let report = out.report();
    for device in report.devices() {
        let of = |name: &str| device[name].as_f64().unwrap_or_else(|| panic!("{name} is missing: {device}"));
        let near = |seen: f64, issued: f64| (seen / issued - 1.0).abs() < 0.01;
        assert!(of("issued_ops") > 100.0, "{device}");
        assert!(near(of("ios"), of("issued_ops")) && near(of("bytes"), of("issued_bytes")), "{device}");
    }
    report.must_say("A01", "holds");
    assert!(!report.says("A04", "finding") && !report.says("A12", "finding"), "{report:#?}");
    assert!(report.name().ends_with("direct") || report.says("D06", "finding"), "{}", report.name());
    assert!(report.0["headline"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(disk.sh("ls -A | grep -v lost+found || true"), "");
}

/// Reads of a file of which nothing was ever written.
pub(crate) fn reads_of_a_truncated_file(stage: &Stage) -> Option<Outcome> {
    reads_of_a_hollow_file(stage, "truncate -s 64m hollow")
}

/// Reads of a file that was allocated and never written.
pub(crate) fn reads_of_an_allocated_file(stage: &Stage) -> Option<Outcome> {
    reads_of_a_hollow_file(stage, "fallocate -l 64m hollow")
}

fn reads_of_a_hollow_file(stage: &Stage, script: &str) -> Option<Outcome> {
    let disk = disk(stage, Image::Direct)?;
    disk.sh(&format!("{script} && sync"));
    Some(disk.fathom(stage, &format!("run --rw randread {SHORT}"), &disk.dir.join("hollow")))
}

/// An ext4 of the story's own; `None`, and said, where there can be none.
fn disk(stage: &Stage, image: Image) -> Option<Disk> {
    if is_root() { Disk::new(stage, "ext4", image) } else { None }
}

#[test]
fn a_truncated_file_has_no_number() {
    hollow(reads_of_a_truncated_file);
}

#[test]
fn an_allocated_and_never_written_file_has_no_number() {
    hollow(reads_of_an_allocated_file);
}

fn hollow(provocation: Provocation) {
    let Some(out) = provocation(&Stage::new()) else { return };
    let report = out.report();
    report.must_say("A04", "finding");
    assert_eq!((report.verdict(), out.code), ("INVALID", Some(1)));
    assert!(report.0["headline"]["value"].is_null() && report.0["headline"]["interval"].is_null());
}

/// Reads of a file in memory.
pub(crate) fn reads_of_memory(stage: &Stage) -> Option<Outcome> {
    let memory = Path::new("/dev/shm");
    if !std::fs::read_to_string("/proc/mounts").unwrap_or_default().contains(" /dev/shm tmpfs ") {
        skip("/dev/shm is no tmpfs here");
        return None;
    }
    Some(stage.fathom(&format!("run --rw randread --size 64m {SHORT}"), memory))
}

#[test]
fn memory_is_called_memory() {
    let Some(out) = reads_of_memory(&Stage::new()) else { return };
    let report = out.report();
    report.must_say("A11", "finding");
    assert!(report.name().contains("memory"), "{}", report.name());
    assert_eq!(out.code, Some(1));
}

/// Reads of a loop device whose image is in the page cache, and the device's name.
fn reads_above_a_cached_image_on(stage: &Stage) -> Option<(Outcome, String)> {
    let disk = disk(stage, Image::Buffered)?;
    let out = disk.fathom(stage, &format!("run --rw randread --size 64m {SHORT}"), &disk.dir);
    Some((out, disk.name().to_owned()))
}

/// Reads of a loop device whose image is in the page cache.
pub(crate) fn reads_above_a_cached_image(stage: &Stage) -> Option<Outcome> {
    reads_above_a_cached_image_on(stage).map(|(out, _)| out)
}

#[test]
fn a_loop_device_on_a_cached_image_is_found_out() {
    let Some((out, name)) = reads_above_a_cached_image_on(&Stage::new()) else { return };
    let report = out.report();
    report.must_say("A12", "finding");
    assert!(report.name().contains(&format!("cache below {name}")), "{}", report.name());
    assert_eq!(out.code, Some(1));
}

/// Reads of a device that the kernel does not count.
pub(crate) fn reads_that_nobody_counts(stage: &Stage) -> Option<Outcome> {
    let disk = disk(stage, Image::Direct)?;
    let _blind = disk.stop_counting();
    Some(disk.fathom(stage, &format!("run --rw randread --size 64m {SHORT}"), &disk.dir))
}

#[test]
fn counters_that_are_switched_off_are_no_pass() {
    let Some(out) = reads_that_nobody_counts(&Stage::new()) else { return };
    let report = out.report();
    let blind = report.must_say("A13", "not_checked");
    assert!(blind["sentence"].as_str().unwrap().contains("iostats"), "{blind:#}");
    for id in ["A01", "A12", "D01"] {
        assert!(!report.says(id, "holds"), "{id} held without counters: {:#?}", report.answers(id));
    }
    assert_ne!(report.verdict(), "VALID");
    assert!(report.devices().iter().all(|d| d.is_null()), "{:#?}", report.devices());
}

/// Reads beside somebody else's on the same disk.
pub(crate) fn reads_beside_others(stage: &Stage) -> Option<Outcome> {
    let disk = disk(stage, Image::Direct)?;
    disk.file("foreign", 64);
    let _beside = disk.sh_beside(
        "exec sh -c 'while dd if=foreign of=/dev/null bs=64k iflag=direct status=none; do :; done'",
    );
    Some(disk.fathom(stage, &format!("run --rw randread --depth 1 --size 64m {SHORT}"), &disk.dir))
}

#[test]
fn others_on_the_same_disk_are_noticed() {
    let Some(out) = reads_beside_others(&Stage::new()) else { return };
    let report = out.report();
    report.must_say("D01", "finding");
    assert_ne!(report.verdict(), "VALID");
}

/// A depth asked of an engine that does one at a time.
#[expect(clippy::unnecessary_wraps, reason = "all provocations have one shape")]
pub(crate) fn depth_of_an_engine_that_has_none(stage: &Stage) -> Option<Outcome> {
    let words = format!("run --rw randread --engine sync --depth 16 --size 64m {SHORT}");
    Some(stage.fathom(&words, &stage.folder("here")))
}

#[test]
fn an_engine_that_does_one_at_a_time_cannot_claim_a_depth() {
    let out = depth_of_an_engine_that_has_none(&Stage::new()).unwrap();
    let report = out.report();
    report.must_say("B05", "finding");
    let name = report.name();
    assert!(name.contains("depth 1,") || name.contains("depth ~1,"), "{name}");
    assert_eq!(out.code, Some(1));
}
