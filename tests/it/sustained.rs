//! Sustained writes: bursts of a known size, and preconditioning seen from the device.

use crate::disk::{Device, Disk, Image};
use crate::group::Group;
use crate::stage::{Stage, is_root, names, wait};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Bytes per second that the throttle lets through at first and later.
const RATES: [u64; 2] = [24_000_000, 4_000_000];
/// The file of this limit.
const THROTTLE: &str = "blkio.throttle.write_bps_device";

#[test]
#[ignore = "long"]
fn write_burst_has_its_size_and_both_rates() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let first = format!("$NUMBER {}", RATES[0]);
    let Some(group) = Group::limited(&disk, &("blkio", THROTTLE, &first)) else { return };
    // The test makes the file itself, so that all writes of the group belong to the job.
    let file = disk.file("data", 64);
    let number = disk.number();
    let words = format!(
        "run --rw write --bs 32k --depth 8 --time 10s --warmup 500ms --runs 1 --quiet --format json --destroy {}",
        file.display()
    );
    let mut command = stage.command(&[disk.enter(), group.enter()].concat(), &words, &file);
    let (out, burst, rate) = std::thread::scope(|scope| {
        let run = scope.spawn(|| wait(&mut command));
        // The file system may write a little before the job begins.
        let begun = until(&group, &number, RATES[0] / 4);
        let bytes = until(&group, &number, 5 * RATES[0]);
        let limit = of_fathom(&group).unwrap().join(THROTTLE);
        std::fs::write(limit, format!("{number} {}", RATES[1])).unwrap();
        let seconds = (bytes.1 - begun.1).as_secs_f64();
        (run.join().unwrap(), bytes.0 as f64, (bytes.0 - begun.0) as f64 / seconds)
    });
    let report = out.report();
    let all = report.0["deductions"].as_array().unwrap();
    let reported =
        all.iter().find(|d| d["name"] == "burst").unwrap_or_else(|| panic!("no burst: {report:#?}"));
    let of =
        |name: &str| reported["evidence"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {reported:#}"));
    let near = |got: f64, truth: f64, share: f64| {
        assert!((got / truth - 1.0).abs() < share, "{got} is not {truth}: {reported:#}");
    };
    near(of("burst_bytes"), burst, 0.10);
    near(of("before_mb_per_s") * 1e6, rate, 0.10);
    near(of("after_mb_per_s"), RATES[1] as f64 / 1e6, 0.15);
    report.expect_answer("E02", "finding");
}

/// Waits until the cgroup of fathom has written this many bytes. Returns the bytes and the time.
fn until(group: &Group, device: &str, bytes: u64) -> (u64, Instant) {
    let since = Instant::now();
    loop {
        let written = written(group, device);
        if written >= bytes {
            return (written, Instant::now());
        }
        assert!(since.elapsed() < Duration::from_secs(20), "only {written} bytes were written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The cgroup that fathom made below the cgroup of the test.
fn of_fathom(group: &Group) -> Option<PathBuf> {
    names(group.dir()).into_iter().find(|p| p.is_dir())
}

/// Bytes that the kernel charged to fathom's own cgroup.
fn written(group: &Group, device: &str) -> u64 {
    let file = of_fathom(group).map(|g| g.join("blkio.throttle.io_service_bytes"));
    let text = file.and_then(|f| std::fs::read_to_string(f).ok()).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(device)?.trim().strip_prefix("Write"));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// The shortest rounds that are allowed, and one run.
const SHORT: &str = "--size 32m --time 200ms --warmup 0 --runs 1";

#[test]
fn preconditioning_writes_the_device_twice() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let words = format!("run --rw randwrite --depth 4 --precondition {SHORT} --quiet --format json");
    let report = disk.fathom(&stage, &words, &disk.dir).report();
    let done = &report.0["preconditioned"];
    assert_eq!(done["filled_bytes"].as_u64(), Some(64 * MIB), "{done:#}");
    let rounds = done["rounds"][0]["iops"].as_array().unwrap_or_else(|| panic!("no rounds: {done:#}"));
    assert!((5..=25).contains(&rounds.len()) && rounds.iter().all(|r| r.as_f64() > Some(0.0)), "{done:#}");
    assert!(done["settled"].is_boolean(), "{done:#}");
    // Compare with the kernel's counters, from before the file was made to the start of the run.
    let file = format!("/sys/class/block/{}/stat", disk.name());
    let at = |moment: &str| sectors_written(&stage.sessions()[0], moment, &file) * 512;
    let least = 32 * MIB + done["filled_bytes"].as_u64().unwrap() + done["rounds_bytes"].as_u64().unwrap();
    let seen = at("start") - at("before_prepare");
    assert!(seen >= least && seen < least + least / 4, "{seen} bytes, and {least} were said");
    let notes = report.0["notes"].as_array().unwrap();
    assert!(notes.iter().any(|n| n.as_str().unwrap().starts_with("preconditioned: 64 MiB")), "{notes:?}");
    assert_eq!(disk.sh("ls -A | grep -v lost+found || true"), "");
}

/// Sectors that a device had written, in the first snapshot of this moment in a session.
fn sectors_written(session: &Path, moment: &str, file: &str) -> u64 {
    let text = std::fs::read_to_string(session).unwrap();
    let frames = text.lines().skip(1).map(|l| serde_json::from_str::<Value>(&l[9..]).unwrap());
    let evidence = frames.filter_map(|mut f| Some(f.get_mut("evidence")?.take()));
    let snapshot = evidence.into_iter().find(|e| e["moment"] == moment).unwrap();
    let stat = snapshot["files"][file]["Ok"].as_str().unwrap_or_else(|| panic!("{snapshot:#}")).to_owned();
    stat.split_whitespace().nth(6).unwrap().parse().unwrap()
}

#[test]
fn interrupt_during_preconditioning_leaves_no_file() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    for words in ["preconditioning: writing", "preconditioning: round 2"] {
        let mut running =
            disk.start(&stage, "run --rw randwrite --precondition --size 128m --time 1s --runs 1", &disk.dir);
        running.wait_for_output(words);
        running.signal(Signal::INT);
        let out = running.end();
        assert_eq!(out.code, Some(130), "{out:?}");
        assert!(!out.stderr.contains("run 1 of"), "{out:?}");
        assert_eq!(disk.sh("ls -A | grep -v lost+found || true"), "");
    }
}

#[test]
fn preconditioning_is_announced() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let explained = |words: &str| {
        let out = stage.fathom(words, &folder);
        assert_eq!(out.code, Some(0), "{out:?}");
        // A long value continues on indented lines.
        let mut row = out.stdout.lines().skip_while(|l| !l.starts_with("--precondition"));
        let rest = row.clone().skip(1).take_while(|l| l.starts_with(' '));
        let line = row.next().into_iter().chain(rest).map(str::trim).collect::<Vec<_>>().join(" ");
        (line, out.stdout)
    };
    let (line, _) = explained("run --rw randwrite --time 4s --warmup 0 --precondition --explain");
    assert!(line.contains("written 2 times") && line.contains("at most 25 (100 s)"), "{line}");
    assert!(line.contains("command line"), "{line}");
    let (line, _) = explained("run --rw randread --precondition --explain");
    assert!(line.contains("no job writes, so no rounds follow"), "{line}");
    let (line, all) = explained("run --rw randwrite --explain");
    assert!(line.is_empty() && !all.contains("precondition"), "{all}");
    let job = stage.path("job.toml");
    std::fs::write(&job, "rw = \"randwrite\"\nprecondition = true\n").unwrap();
    let (line, _) = explained(&format!("run {} --explain", job.display()));
    assert!(line.contains("job.toml"), "{line}");
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
}

#[test]
fn user_file_is_preconditioned_only_when_named() {
    let stage = Stage::shared();
    let file = stage.file("mine", 16);
    let before = std::fs::read(&file).unwrap();
    let words = "run --rw randread --precondition --time 50ms --warmup 0 --runs 1 --quiet";
    let refused = stage.fathom(words, &file);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--precondition") && refused.stderr.contains("--destroy"), "{refused:?}");
    assert!(std::fs::read(&file).unwrap() == before, "it was written");
    let named = stage.fathom(&format!("{words} --format json --destroy {}", file.display()), &file);
    let done = &named.report().0["preconditioned"];
    assert_eq!((done["filled_bytes"].as_u64(), &done["settled"]), (Some(32 * MIB), &Value::Null), "{done:#}");
    let after = std::fs::read(&file).unwrap();
    assert!(after.len() == before.len(), "it has another size");
    assert!(after.chunks(4096).zip(before.chunks(4096)).all(|(a, b)| a != b), "a block was left out");
}

#[test]
fn preconditioning_stays_within_the_measured_span() {
    let stage = Stage::shared();
    let file = stage.file("mine", 16);
    let before = std::fs::read(&file).unwrap();
    let words =
        "run --rw randread --precondition --offset 4m --size 8m --time 50ms --warmup 0 --runs 1 --quiet";
    let out = stage.fathom(&format!("{words} --destroy {}", file.display()), &file);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let after = std::fs::read(&file).unwrap();
    let (head, tail) = ((4 * MIB) as usize, (12 * MIB) as usize);
    assert!(after[..head] == before[..head] && after[tail..] == before[tail..], "too much was written");
    let (now, then) = (after[head..tail].chunks(4096), before[head..tail].chunks(4096));
    assert!(now.zip(then).all(|(a, b)| a != b), "a block was left out");
}

#[test]
fn device_is_preconditioned_only_when_named() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let before = device.checksum();
    let words = "run --rw randread --precondition --time 50ms --warmup 0 --runs 1 --quiet";
    let refused = stage.fathom(words, &device.path);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--destroy"), "{refused:?}");
    assert_eq!(device.checksum(), before);
    let named = stage.fathom(&format!("{words} --format json --destroy {}", device.name()), &device.path);
    assert_eq!(named.report().0["preconditioned"]["filled_bytes"].as_u64(), Some(128 * MIB), "{named:?}");
    let now = std::fs::read(&device.image).unwrap();
    assert!(now.chunks(4096).all(|block| block.iter().any(|b| *b != 0)), "a block was left out");
}

#[test]
fn preconditioning_ends_for_a_job_that_reads_back_its_writes() {
    let stage = Stage::shared();
    let (file, job) = (stage.file("mine", 16), stage.path("job.fio"));
    let text = format!("[j]\nfilename={}\nsize=16m\nrw=randwrite\nbs=64k\nverify=crc32c\n", file.display());
    std::fs::write(&job, text).unwrap();
    let words = format!("run --precondition --runs 1 --quiet --format json --destroy {}", file.display());
    let report = stage.fathom(&words, &job).report();
    let done = &report.0["preconditioned"];
    assert!(done["rounds"][0]["iops"].as_array().is_some_and(|rounds| rounds.len() >= 5), "{done:#}");
    assert_eq!(done["notes"].as_array().map(Vec::len), Some(0), "{done:#}");
    let ops = |at: usize, kind: &str| report.0["results"][at][kind]["ops"].as_u64();
    assert_eq!(ops(0, "write"), Some(256), "{report:#?}");
}

#[test]
fn preconditioning_reports_an_operation_that_is_too_slow() {
    let stage = Stage::shared();
    let words = "run --rw randwrite --size 16m --max-latency 1us --precondition --runs 1 --quiet";
    let out = stage.fathom(words, &stage.folder("here"));
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(out.stderr.contains("preconditioning: a write took"), "{out:?}");
}

#[test]
fn jobs_without_targets_cannot_be_preconditioned() {
    let stage = Stage::shared();
    let out = stage.fathom("run --engine null --rw randwrite --precondition --quiet", Path::new(""));
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stderr.contains("--precondition has no effect"), "{out:?}");
    let out = stage.fathom("run --size 64k --precondition --quiet", &stage.file("small", 1));
    assert_eq!(out.code, Some(2), "{out:?}");
}
