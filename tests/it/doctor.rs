//! `fathom doctor`: finds what would spoil a measurement before it runs, and changes nothing.

use crate::disk::{Device, Disk, Image};
use crate::group::Group;
use crate::stage::{Outcome, Stage, is_root, names, skip, tool, wait};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const WORDS: &str = "doctor --format json";
/// Doctor makes no measurement, so only its idle watch takes time.
const LIMIT: Duration = Duration::from_secs(2);

/// A diagnosis, read by its documented JSON keys.
struct Diagnosis(Value);

impl Diagnosis {
    /// The output of doctor, which ended in time without errors.
    #[track_caller]
    fn from_outcome(out: &Outcome) -> Self {
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
        let all: Value =
            serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {out:?}"));
        let watched = Duration::from_millis(all["watched_ms"].as_u64().unwrap());
        assert!(out.took < watched + LIMIT, "it watched for {watched:?} and took {:?}", out.took);
        Self(all)
    }

    /// The only answer whose subject begins like this.
    #[track_caller]
    fn find_answer(&self, about: &str) -> &Value {
        let answers =
            self.0["groups"].as_array().unwrap().iter().flat_map(|g| g["looks"].as_array().unwrap());
        let all: Vec<&Value> =
            answers.filter(|answer| answer["about"].as_str().unwrap().starts_with(about)).collect();
        assert_eq!(all.len(), 1, "about {about}: {all:#?}");
        all[0]
    }

    /// Fails unless the answer has this outcome; returns the answer.
    #[track_caller]
    fn expect_answer(&self, about: &str, outcome: &str) -> &Value {
        let answer = self.find_answer(about);
        assert_eq!(answer["outcome"], outcome, "{answer:#}");
        answer
    }
}

#[test]
fn written_file_on_ext4_is_clean_after_the_suggested_fix() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared().watching_as_for_users();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let file = disk.file("data", 32);
    let seen = Diagnosis::from_outcome(&disk.fathom(&stage, WORDS, &file));
    let cached = seen.expect_answer("cached", "finding");
    assert_eq!((&cached["check"], &cached["severity"]), (&"A01".into(), &"rename".into()));
    let fix = cached["cure"].as_str().unwrap().split(" (").next().unwrap();
    disk.sh(&format!("{fix} 2>&1"));

    let seen = Diagnosis::from_outcome(&disk.fathom(&stage, WORDS, &file));
    for about in
        ["what is below", "direct I/O", "flushes", "cached", "holes", "compressed", "shared", "counters"]
    {
        seen.expect_answer(about, "holds");
    }
    assert!(seen.0["chain"].as_str().unwrap().contains("ext4"), "{:#}", seen.0["chain"]);
    assert!(seen.0["watched_ms"].as_u64().unwrap() >= 3000);
    assert_eq!(seen.0["target"], file.to_str().unwrap());
}

#[test]
fn holes_are_found_before_measuring() {
    let stage = Stage::shared();
    let hollow = stage.path("it's hollow");
    std::fs::File::create(&hollow).unwrap().set_len(64 << 20).unwrap();
    let seen = Diagnosis::from_outcome(&stage.fathom(WORDS, &hollow));
    let holes = seen.expect_answer("holes", "finding");
    assert_eq!((&holes["check"], &holes["severity"]), (&"A04".into(), &"void".into()));
    assert_eq!(names(&stage.path("xdg")), Vec::<PathBuf>::new(), "fathom doctor keeps no session");

    let text = stage.fathom("doctor", &hollow);
    assert!(text.stdout.lines().next().unwrap().contains(" would change what a number means: "), "{text:?}");
    let (_, list) = text.stdout.split_once("Before you measure:\n").unwrap();
    let fix = "\n     -> name the directory and let";
    assert!(list.starts_with("  1. holes (invalidates a number, A04): ") && list.contains(fix), "{list}");
}

#[test]
fn doctor_makes_nothing_in_a_directory() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let seen = Diagnosis::from_outcome(&stage.fathom(WORDS, &folder));
    seen.expect_answer("test file", "holds");
    seen.expect_answer("direct I/O", "not_checked");
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
    std::fs::write(folder.join("old"), "content").unwrap();
    let seen = Diagnosis::from_outcome(&stage.fathom(WORDS, &folder));
    let direct = seen.find_answer("direct I/O");
    let shown = direct["sentence"].as_str().unwrap().contains("as the file 'old' in this directory shows");
    assert!(shown || direct["outcome"] == "not_checked", "{direct:#}");
}

#[test]
fn tmpfs_is_reported_as_memory() {
    if !std::fs::read_to_string("/proc/mounts").unwrap_or_default().contains(" /dev/shm tmpfs ") {
        return skip("/dev/shm is no tmpfs here");
    }
    let stage = Stage::shared();
    let seen = Diagnosis::from_outcome(&stage.fathom(WORDS, Path::new("/dev/shm")));
    assert_eq!(seen.expect_answer("what is below", "finding")["check"], "A11");
}

#[test]
fn cached_loop_device_is_found_and_the_suggested_fix_works() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 16, Image::Buffered) else { return };
    let seen = Diagnosis::from_outcome(&stage.fathom(WORDS, &device.path));
    let backing = seen.expect_answer("backing of", "finding");
    assert_eq!(backing["check"], "A12");
    let fix: Vec<&str> = backing["cure"].as_str().unwrap().split(' ').collect();
    if let Err(why) = tool(&fix.iter().map(|w| w as &dyn AsRef<std::ffi::OsStr>).collect::<Vec<_>>()) {
        return skip(&why);
    }
    Diagnosis::from_outcome(&stage.fathom(WORDS, &device.path)).expect_answer("backing of", "holds");
}

#[test]
fn cgroup_limit_is_found_only_inside_the_cgroup() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let limit = ("blkio", "blkio.throttle.read_iops_device", "$NUMBER 100000");
    let Some(group) = Group::limited(&disk, &limit) else { return };
    let enter = [disk.enter(), group.enter()].concat();
    let seen = Diagnosis::from_outcome(&wait(&mut stage.command(&enter, WORDS, &disk.dir)));
    let limit = seen.expect_answer("I/O limits", "finding");
    assert!(limit["check"] == "D04" && limit["sentence"].as_str().unwrap().contains("100,000"), "{limit:#}");
    let text = wait(&mut stage.command(&enter, "doctor", &disk.dir)).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, list) = words.split_once("Before you measure: ").unwrap();
    let parts = [". I/O limits (may limit the rate, D04): ", "100,000 IOPS", " -> raise or lift the limit"];
    for part in parts {
        assert!(list.contains(part), "{part}: {text}");
    }
    Diagnosis::from_outcome(&disk.fathom(&stage, WORDS, &disk.dir)).expect_answer("I/O limits", "holds");
}

#[test]
fn disabled_counters_and_neighbours_are_found() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared().watching_as_for_users();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let file = disk.file("data", 8);
    let neighbour = disk.spawn_sh("while dd if=data of=/dev/null iflag=direct bs=4k status=none; do :; done");
    let seen = Diagnosis::from_outcome(&disk.fathom(&stage, WORDS, &file));
    drop(neighbour);
    let others = seen.expect_answer("requests of others", "finding");
    assert_eq!((&others["check"], &others["severity"]), (&"D01".into(), &"biased".into()));

    let _uncounted = disk.disable_counters();
    let seen = Diagnosis::from_outcome(&disk.fathom(&stage, WORDS, &file));
    let counters = seen.expect_answer(&format!("counters of {}", disk.name()), "finding");
    assert!(
        counters["cure"].as_str().unwrap().contains(&format!("/sys/block/{}/queue/iostats", disk.name()))
    );
}

#[test]
fn users_without_rights_see_what_was_not_checked() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let file = stage.file("secret", 1);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let seen = Diagnosis::from_outcome(&stage.fathom_unprivileged(WORDS, &file));
    for about in ["cached", "how it is stored"] {
        let answer = seen.expect_answer(about, "not_checked");
        assert!(answer["sentence"].as_str().unwrap().contains("permission denied"), "{answer:#}");
    }
    // Missing rights are not a fault of the machine, so they are only notes.
    assert_eq!(seen.expect_answer("own cgroup", "finding")["severity"], "note");
}

#[test]
fn non_targets_are_usage_errors() {
    let stage = Stage::shared();
    let table = [
        (WORDS, stage.path("missing"), "does not exist"),
        (WORDS, PathBuf::from("/dev/null"), "block device"),
        ("doctor --format pdf", stage.folder("here"), "pdf"),
    ];
    for (words, target, must) in table {
        let out = stage.fathom(words, &target);
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{out:?}");
        assert!(out.stderr.contains(must), "{out:?}");
        assert!(out.took < Duration::from_secs(1), "what is wrong is said at once");
    }
}
