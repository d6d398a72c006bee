//! Misleading numbers: they are named or withheld, and false suspicions are cleared. Covers chains that end in memory or are unknown, kernel
//! counters that count twice, files that change, operations that never happened, and a program that was stopped.

use crate::disk::{Device, Disk, Image, lock_attaching};
use crate::group::Group;
use crate::stage::{Report, Running, Stage, fill, is_root, skip, tool, wait};
use std::time::Duration;

const SHORT: &str = "--time 300ms --warmup 50ms --runs 1 --quiet --format json";

/// A loop device on a file of this many MiB in a tmpfs directory of the disk, detached with the test.
fn in_memory(disk: &Disk, mib: usize) -> Device {
    let script = format!(
        "mkdir -p memory && mountpoint -q memory || mount -t tmpfs none memory; \
         head -c {mib}M /dev/urandom > memory/image && losetup --find --show memory/image"
    );
    let image = disk.dir.join("memory/image");
    let _lock = lock_attaching();
    Device { path: disk.sh(&script).trim().into(), image }
}

#[track_caller]
fn not_valid(report: &Report) {
    assert_ne!(report.verdict(), "VALID", "{report:#?}");
}

#[test]
fn raid_half_in_memory_is_reported_with_its_share() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let Some(device) = Device::new(&stage, 320, Image::Direct) else { return };
    let Some(disk) = Disk::bare(&stage, Some(device)) else { return };
    let memory = in_memory(&disk, 320);
    let (one, other) = (disk.device.display(), memory.path.display());
    disk.sh(&format!(
        "mkfs.btrfs -q -f -K -d raid0 -m raid1 {one} {other} && mkdir raid && mount -o device={one},device={other} {one} raid"
    ));
    let raid = disk.dir.join("raid");
    // Another process reads from the disk below one half of the array. These requests must not count as requests of the array.
    let theirs = stage.file("theirs", 32);
    for others in [false, true] {
        let read = format!(
            "while :; do dd if={} of=/dev/null bs=4k iflag=direct status=none; done",
            theirs.display()
        );
        let neighbour = others.then(|| disk.spawn_sh(&read));
        let words = format!("run --rw randread --depth 4 --size 128m --attempts 1 {SHORT}");
        let report = disk.fathom(&stage, &words, &raid).report();
        drop(neighbour);
        let found = report.expect_answer("A11", "finding");
        let part = found["evidence"]["memory_share"].as_f64().unwrap();
        assert!((0.4..0.6).contains(&part), "{found:#}");
        assert!(found["sentence"].as_str().unwrap().contains("on tmpfs"), "{found:#}");
        assert!(report.name().contains("% memory"), "{}", report.name());
        not_valid(&report);
    }
    disk.sh("umount raid");
}

#[test]
fn unlinked_image_is_found_by_inode() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::bare(&stage, None) else { return };
    let memory = in_memory(&disk, 64);
    disk.sh("rm memory/image");
    let words = format!("run --rw randread --depth 4 {SHORT}");
    let report = disk.fathom(&stage, &words, &memory.path).report();
    let found = report.expect_answer("A11", "finding");
    assert!(found["sentence"].as_str().unwrap().contains("on tmpfs"), "{found:#}");
    // Outside the namespace the tmpfs is invisible, and the report marks the chain of devices as unknown from there on.
    let report = stage.fathom(&words, &memory.path).report();
    let unknown = report.expect_answer("A11", "not_checked");
    assert!(unknown["sentence"].as_str().unwrap().contains("among the mounts"), "{unknown:#}");
    assert_eq!(report.verdict(), "SUSPECT", "{report:#?}");
}

#[test]
fn missing_or_corrupt_proc_prevents_valid() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let file = stage.file("data", 64);
    for script in [
        "mount -t tmpfs none /proc",
        "mount -t tmpfs none /proc && mkdir -p /proc/self && for f in self/mountinfo self/io meminfo vmstat stat cpuinfo; do \
         echo 'what 17 - is: this' > /proc/$f; done",
        "mount -t tmpfs none /sys",
    ] {
        let inside = format!("{script} && exec \"$@\"");
        let prefix =
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", &inside, "sh"].map(str::to_owned);
        let words = format!("run --rw randread --depth 4 --no-history {SHORT}");
        let out = wait(&mut stage.command(&prefix, &words, &file));
        assert!(out.code.is_some_and(|c| c < 4), "{script}: {out:?}");
        if !out.stdout.is_empty() {
            not_valid(&out.report());
        }
    }
}

#[test]
fn split_operations_are_not_counted_twice() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let Some(device) = Device::new(&stage, 256, Image::Direct) else { return };
    fill(&device.image, 256);
    let Some(disk) = Disk::bare(&stage, Some(device)) else { return };
    for kib in ["64", "1280"] {
        let _limit = disk.switch("max_sectors_kb", kib);
        for bs in ["1m", "4m"] {
            for cache in ["direct", "buffered"] {
                let words = format!("run --rw read --bs {bs} --depth 4 --cache {cache} {SHORT}");
                let report = disk.fathom(&stage, &words, &disk.device).report();
                for id in ["A22", "B03"] {
                    assert!(report.has_answer(id, "holds"), "{kib} {bs} {cache}: {:#?}", report.answers(id));
                }
            }
        }
    }
    // A cell of a sweep has the same finding, also with several sequential buffered streams.
    let _limit = disk.switch("max_sectors_kb", "64");
    let words = "sweep --rw read --bs 1m,4m --workers 1,4 --cache direct,buffered --exhaustive --time 100ms --warmup 0 --runs 1 --quiet --format json";
    let report = disk.fathom(&stage, words, &disk.device).report();
    for id in ["A22", "B03"] {
        assert!(!report.has_answer(id, "finding"), "{:#?}", report.answers(id));
    }
}

#[test]
fn a_few_operations_or_a_millisecond_give_no_rate() {
    let stage = Stage::shared();
    let file = stage.file("data", 64);
    for words in ["--rw randread --limit-iops 1 --time 100ms", "--rw randread --time 1ms"] {
        let words = format!("run {words} --warmup 0 --runs 3 --quiet --format json");
        let report = stage.fathom(&words, &file).report();
        assert!(report.0["headline"]["interval"].is_null(), "{words}: {:#}", report.0["headline"]);
        not_valid(&report);
    }
    let words = "run --rw randread --limit-iops 1 --time 100ms --warmup 0 --runs 3 --quiet --format json";
    assert_eq!(stage.fathom(words, &file).report().expect_answer("E12", "finding")["severity"], "biased");
}

#[test]
fn misaligned_loop_device_is_reported() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    // A loop device with 4 KiB blocks.
    let Some(below) = Device::new(&stage, 128, Image::Buffered) else { return };
    fill(&below.image, 128);
    let words: [&dyn AsRef<std::ffi::OsStr>; 4] = [&"losetup", &"--sector-size", &"4096", &below.path];
    if let Err(why) = tool(&words) {
        return skip(&why);
    }
    for (offset, answer) in [("512", "finding"), ("1048576", "holds")] {
        let device = match Device::attach(&[&"--offset", &offset], &below.path) {
            Ok(device) => device,
            Err(why) => return skip(&why),
        };
        let words = format!("run --rw randread --depth 4 {SHORT}");
        let report = stage.fathom(&words, &device.path).report();
        let printed = report.expect_answer("B11", answer);
        if answer == "finding" {
            assert!(printed["sentence"].as_str().unwrap().contains("byte 512"), "{printed:#}");
            not_valid(&report);
        }
    }
}

#[test]
fn stopped_program_reports_its_stall() {
    let stage = Stage::one_per_cpu();
    let file = stage.file("data", 64);
    let words =
        "run --rw randread --depth 4 --time 3s --warmup 0 --runs 1 --attempts 1 --quiet --format json";
    let running = stage.start(words, &file);
    // Wait until measuring has begun, however slowly the program started. The test file exists by then.
    std::thread::sleep(Duration::from_millis(1_500));
    running.while_stopped(|| std::thread::sleep(Duration::from_secs(1)));
    let report = running.end().report();
    let found = report.expect_answer("D26", "finding");
    let still = found["evidence"]["longest_ns"].as_f64().unwrap();
    assert!((0.5e9..1.5e9).contains(&still), "{found:#}");
    not_valid(&report);
    let words = format!("run --rw randread --depth 4 {SHORT}");
    stage.fathom(&words, &file).report().expect_answer("D26", "holds");
}

#[test]
fn frozen_worker_is_named_while_the_program_runs() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let Some(group) = Group::create("freezer") else { return };
    let file = stage.file("data", 64);
    let words = "run --rw randread --depth 4 --time 1500ms --warmup 0 --runs 1 --attempts 1 --format json";
    let mut running = stage.start(words, &file);
    running.wait_for_load();
    // A worker that is frozen before the run begins only delays its beginning.
    std::thread::sleep(Duration::from_millis(300));
    let mut tasks = std::fs::read_dir(format!("/proc/{}/task", running.id())).unwrap().flatten();
    let is_worker = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == "fathom-0")
    };
    let worker = tasks.find(is_worker).unwrap().file_name();
    std::fs::write(group.dir().join("tasks"), worker.to_str().unwrap()).unwrap();
    std::fs::write(group.dir().join("freezer.state"), "FROZEN").unwrap();
    std::thread::sleep(Duration::from_millis(400));
    std::fs::write(group.dir().join("freezer.state"), "THAWED").unwrap();
    let report = running.end().report();
    let found = report.expect_answer("D26", "finding");
    assert!(found["evidence"]["worker_samples_stopped"].as_f64() > Some(5.0), "{found:#}");
    not_valid(&report);
}

#[test]
fn loop_device_in_memory_is_named_even_if_its_sysfs_is_covered() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(on_disk) = Device::new(&stage, 32, Image::Direct) else { return };
    let Some(disk) = Disk::bare(&stage, None) else { return };
    let memory = in_memory(&disk, 32);
    // Cover the sysfs entry of the device in memory by the entry of a device on the disk. The covering entry also comes from a genuine
    // sysfs, and claims that the image is on the disk.
    disk.sh(&format!(
        "mount --bind /sys/devices/virtual/block/{}/loop /sys/devices/virtual/block/{}/loop",
        on_disk.name(),
        memory.name()
    ));
    let report = disk.fathom(&stage, &format!("run --rw randread {SHORT}"), &memory.path).report();
    let found = report.expect_answer("A11", "finding");
    assert!(found["sentence"].as_str().unwrap().contains("on tmpfs"), "{found:#}");
    // With the whole device covered, its kind is unknown.
    disk.sh(&format!("mount -t tmpfs none /sys/devices/virtual/block/{}", memory.name()));
    let out = disk.fathom(&stage, &format!("run --rw randread {SHORT}"), &memory.path);
    assert!(out.code == Some(3) && out.stderr.contains("in /sys"), "{out:?}");
}

#[test]
fn writes_deeper_than_the_device_queue_are_measured() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    fill(&device.image, 64);
    let Some(disk) = Disk::bare(&stage, Some(device)) else { return };
    let _queue = disk.switch("nr_requests", "8");
    let words = format!("run --rw randwrite --depth 32 --destroy {} {SHORT}", disk.device.display());
    let report = disk.fathom(&stage, &words, &disk.device).report();
    for answer in report.answers("A22") {
        assert_ne!(answer["severity"], "void", "{answer:#}");
    }
}

/// How to freeze and thaw a cgroup: controller, file, and its two values.
const FREEZERS: [(&str, &str, [&str; 2]); 2] =
    [("freezer", "freezer.state", ["FROZEN", "THAWED"]), ("unified", "cgroup.freeze", ["1", "0"])];

#[test]
fn frozen_program_reports_its_stall() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let file = stage.file("data", 64);
    let mut reported = 0;
    for (controller, switch, [frozen, thawed]) in FREEZERS {
        let Some(group) = Group::create(controller) else { continue };
        reported += 1;
        let words = "run --rw randread --depth 4 --time 2s --warmup 0 --runs 1 --attempts 1 --format json";
        let mut running = Running::start(&mut stage.command(&group.enter(), words, &file));
        running.wait_for_load();
        std::thread::sleep(Duration::from_millis(300));
        std::fs::write(group.dir().join(switch), frozen).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        std::fs::write(group.dir().join(switch), thawed).unwrap();
        let report = running.end().report();
        let still = report.expect_answer("D26", "finding")["evidence"]["longest_ns"].as_f64().unwrap();
        assert!((0.5e9..1.5e9).contains(&still), "{switch}: {still}");
        not_valid(&report);
    }
    if reported == 0 {
        skip("neither version of cgroups freezes here");
    }
}

#[test]
fn other_load_below_a_loop_device_is_distinguished_from_ours() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(below) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    below.file("data", 32);
    let image = below.file("image", 96);
    for how in [Image::Direct, Image::Buffered] {
        let Some(device) = Device::on(&below.inside(&image), how) else { return };
        let work = |way: &str| {
            let words = format!("run --rw {way} --depth 2 --attempts 1 {SHORT}");
            below.fathom(&stage, &words, &device.path).report()
        };
        let measure = || work("randread");
        let read = || {
            below.sh("dd if=image iflag=nocache count=0 status=none");
            measure()
        };
        let name = format!("used {} during", below.name());
        let check_outcome = |report: &Report| {
            report.answers("D01").iter().any(|d| d["sentence"].as_str().unwrap().contains(&name))
        };
        let alone = read();
        assert!(!check_outcome(&alone), "{:#?}", alone.answers("D01"));
        let neighbour =
            below.spawn_sh("while :; do dd if=data of=/dev/null bs=64k iflag=direct status=none; done");
        let disturbed = read();
        if how == Image::Buffered {
            the_cache_shows(&below, &measure);
        }
        drop(neighbour);
        assert!(check_outcome(&disturbed), "{:#?}", disturbed.answers("D01"));
        let by = &disturbed.0["results"][0]["disturbed"][0]["by"][0];
        assert_eq!(
            (by["what"].as_str(), by["device"].as_str()),
            (Some("foreign_io"), Some(below.name())),
            "{by:#}"
        );
        not_valid(&disturbed);
        if how == Image::Buffered {
            let _neighbour = below.spawn_sh(
                "while :; do dd if=/dev/zero of=data bs=64k count=64 oflag=direct conv=notrunc status=none; done",
            );
            let name = device.path.file_name().unwrap().to_str().unwrap();
            let writes = work(&format!("randwrite --rate 2000 --destroy {name}"));
            for id in ["A12", "D01"] {
                writes.expect_answer(id, "not_checked");
            }
            not_valid(&writes);
        }
    }
}

/// Reads from the page cache are found even if another process reads as much from the disk below.
fn the_cache_shows(below: &Disk, measure: &impl Fn() -> Report) {
    below.sh(
        "cat image > /dev/null; dd if=image of=/dev/null iflag=nocache bs=1M skip=24 count=24 status=none",
    );
    let half = measure();
    half.expect_answer("A12", "finding");
    assert!(half.name().contains("cache below loop"), "{}", half.name());
    below.sh("cat image > /dev/null");
    let whole = measure();
    let printed = whole.answers("A12").iter().map(|a| a["outcome"].clone()).collect::<Vec<_>>();
    assert!(
        !printed.is_empty() && printed.iter().all(|outcome| *outcome != "holds"),
        "{:#?}",
        whole.answers("A12")
    );
    not_valid(&whole);
}

/// A preloaded library that answers reads of 64 MiB files itself, without a system call.
const ANSWERS: &str = "#include <aio.h>\n#include <stdio.h>\n#include <string.h>\n#include <sys/stat.h>\n#include <sys/syscall.h>\n\
    #include <unistd.h>\n\
    static int is_it(int f) { struct stat s; return !fstat(f, &s) && s.st_size == 64 << 20; }\n\
    int aio_read(struct aiocb *c) { memset((void *)c->aio_buf, 7, 8);\n\
    c->__return_value = c->aio_nbytes; c->__error_code = 0; return 0; }\n\
    int aio_read64(struct aiocb *c) { return aio_read(c); }\n\
    ssize_t read(int f, void *b, size_t n) { return is_it(f) ? n : syscall(SYS_read, f, b, n); }\n\
    ssize_t pread64(int f, void *b, size_t n, off_t o) { return is_it(f) ? n : syscall(SYS_pread64, f, b, n, o); }\n\
    ssize_t pread(int f, void *b, size_t n, off_t o) { return pread64(f, b, n, o); }\n\
    size_t fread(void *b, size_t s, size_t n, FILE *f) { return n; }\n";

#[test]
fn reads_without_system_calls_have_no_number() {
    let stage = Stage::shared();
    let file = stage.file("data", 64);
    let (source, library) = (stage.path("answers.c"), stage.path("answers.so"));
    std::fs::write(&source, ANSWERS).unwrap();
    if let Err(why) = tool(&[&"cc", &"-shared", &"-fPIC", &"-o", &library, &source]) {
        return skip(&why);
    }
    // The engines sync and vsync call the kernel directly, without a library.
    for (engine, cache, preload, reaches) in [
        ("posixaio", "buffered", true, false),
        ("posixaio", "direct", true, false),
        ("posixaio", "buffered", false, true),
        ("std", "buffered", true, false),
        ("stdio", "buffered", true, false),
        ("sync", "buffered", true, true),
        ("vsync", "direct", true, true),
        ("rw", "direct", true, false),
    ] {
        let words =
            format!("run --rw randread --engine {engine} --depth 1 --cache {cache} --no-history {SHORT}");
        let mut command = stage.command(&[], &words, &file);
        if preload {
            command.env("LD_PRELOAD", &library);
        }
        let report = wait(&mut command).report();
        if reaches {
            report.expect_answer("A24", "holds");
        } else {
            assert_eq!(report.expect_answer("A24", "finding")["severity"], "void");
            assert_eq!(report.verdict(), "INVALID");
        }
    }
}

/// Waits until the program is in the middle of its run.
fn started(mut running: Running) -> Running {
    running.wait_for_load();
    std::thread::sleep(Duration::from_secs(1));
    running
}

#[test]
fn files_changed_during_reads_are_reported() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    for (script, id) in [
        ("fallocate --punch-hole --offset 0 --length 32m data", "A04"),
        ("truncate -s 65m data", "A23"),
        ("cp data other && mv other data", "A23"),
        ("truncate -s 64m other && mv other data", "A23"),
        ("mv data first && cp first data", "A23"),
        (
            "cp -p data ref && dd if=/dev/urandom of=data bs=4k count=1 conv=notrunc status=none && touch -r ref data",
            "A23",
        ),
        ("dd if=/dev/urandom of=data bs=4k count=1 conv=notrunc status=none", "A23"),
    ] {
        let file = disk.file("data", 64);
        disk.sh("sync");
        let words = "run --rw randread --depth 4 --time 3s --warmup 0 --runs 1 --attempts 1 --format json";
        let running = started(disk.start(&stage, words, &file));
        disk.sh(script);
        let report = running.end().report();
        report.expect_answer(id, "finding");
        not_valid(&report);
    }
    let file = disk.file("data", 64);
    disk.sh("sync");
    let report = disk.fathom(&stage, &format!("run --rw randread --depth 4 {SHORT}"), &file).report();
    report.expect_answer("A23", "holds");

    // Holes that are not read do not count; holes in a small read region count even in a large file.
    disk.sh("fallocate --punch-hole --offset 32m --length 32m data && sync");
    for (words, answer) in [("--size 32m", "holds"), ("--offset 32m --size 1m", "finding"), ("", "finding")] {
        let words = format!("run --rw randread --depth 4 {words} {SHORT}");
        disk.fathom(&stage, &words, &file).report().expect_answer("A04", answer);
    }
    let file = disk.file("data", 64);
    disk.sh("sync");

    // Replace the file during the first of several runs. Later runs must not read the replacement.
    let words = "run --rw randread --depth 4 --time 2s --warmup 0 --runs 3 --attempts 1 --format json";
    let running = started(disk.start(&stage, words, &file));
    disk.sh("truncate -s 64m other && mv other data");
    let report = running.end().report();
    assert_eq!(report.0["ending"]["how"], "failed", "{:#}", report.0["ending"]);
    report.expect_answer("A23", "finding");
    not_valid(&report);
    let file = disk.file("data", 64);
    disk.sh("sync");

    // Reads beyond the end of a file that is cut off fail, and end the run.
    let words = "run --rw randread --time 3s --warmup 0 --runs 1 --attempts 1 --format json";
    let running = started(disk.start(&stage, words, &file));
    disk.sh("truncate -s 32m data");
    let report = running.end().report();
    assert_eq!(
        (report.verdict(), &report.0["ending"]["how"]),
        ("INVALID", &"failed".into()),
        "{:#}",
        report.0["ending"]
    );
}

#[test]
fn partial_page_writes_report_the_page_reads() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let run = |bs: &str| {
        let words =
            format!("run --rw write --bs {bs} --engine sync --depth 1 --cache buffered --size 64m {SHORT}");
        disk.fathom(&stage, &words, &disk.dir).report()
    };
    let parts = run("512");
    let found = parts.expect_answer("B20", "finding");
    assert!(found["sentence"].as_str().unwrap().contains("part of a page"), "{found:#}");
    // The ledger also has the reads of whole pages that the device counted.
    let read = &parts.0["results"][0]["ledger"]["read"];
    assert_eq!(read["issued"]["ios"], 0, "{read:#}");
    assert!(read["layers"][0]["counted"]["bytes"].as_u64().unwrap() > 1 << 20, "{read:#}");
    let whole = run("4k");
    assert!(!whole.has_answer("B20", "finding"), "{:#?}", whole.answers("B20"));
    assert!(whole.0["results"][0]["ledger"]["read"].is_null());
}

/// The answer of a check about one result of a job of two streams.
#[track_caller]
fn about<'r>(report: &'r Report, id: &str, stream: &str) -> &'r serde_json::Value {
    let name = format!("two, {stream}");
    let all = report.answers(id);
    let of_stream = |f: &&serde_json::Value| f["about"].as_array().unwrap().iter().any(|a| *a == *name);
    all.into_iter().find(of_stream).unwrap_or_else(|| panic!("{id} says nothing about {name}: {report:#?}"))
}

#[test]
fn slow_cached_stream_is_found_next_to_a_fast_direct_one() {
    let stage = Stage::one_per_cpu();
    let (direct, cached, job) = (stage.file("direct", 16), stage.file("cached", 4), stage.path("two.toml"));
    let fill_cache = || assert_eq!(std::fs::read(&cached).unwrap().len(), 4 << 20);
    for (rw, check, writes) in [("randread", "A01", false), ("randwrite", "A09", true)] {
        let stream = |name: &str, more: &str, target: &std::path::Path| {
            let target = target.display();
            format!(
                "[[stream]]\nname = \"{name}\"\nrw = \"{rw}\"\nbs = \"4k\"\n{more}\ntarget = \"{target}\"\n"
            )
        };
        let text = [
            "name = \"two\"\ntime = \"200ms\"\nwarmup = \"0s\"\nruns = 1\n".to_owned(),
            stream("direct", "depth = 4", &direct),
            stream("cached", "cache = \"buffered\"\nengine = \"sync\"\nlimit-iops = 300", &cached),
        ];
        std::fs::write(&job, text.concat()).unwrap();
        fill_cache();
        let (first, second) = (direct.display(), cached.display());
        let destroy = if writes { format!("--destroy {first} --destroy {second}") } else { String::new() };
        let report = stage.fathom(&format!("run --quiet --format json {destroy}"), &job).report();
        let found = about(&report, check, "cached");
        assert_eq!(
            (&found["outcome"], &found["severity"]),
            (&"finding".into(), &"rename".into()),
            "{found:#}"
        );
        for id in [check, "A02"] {
            let answer = about(&report, id, "direct");
            assert_eq!(answer["outcome"], "holds", "{answer:#}");
        }
        let void = about(&report, "A22", "direct");
        assert_ne!(void["outcome"], "finding", "{void:#}");
        let results = report.0["results"].as_array().unwrap();
        assert!(
            results[1]["true_name"].as_str().unwrap().contains("page cache"),
            "{:#}",
            results[1]["true_name"]
        );
        assert!(
            !results[0]["true_name"].as_str().unwrap().contains("page cache"),
            "{:#}",
            results[0]["true_name"]
        );
    }
}

#[test]
fn fast_disk_stream_is_not_called_memory() {
    let stage = Stage::one_per_cpu();
    let memory = std::path::PathBuf::from(format!("/dev/shm/fathom-two-streams-{}", std::process::id()));
    let (disk, job) = (stage.file("disk", 16), stage.path("two.toml"));
    fill(&memory, 4);
    let text = format!(
        "name = \"two\"\ntime = \"100ms\"\nwarmup = \"0s\"\nruns = 1\n\
         [[stream]]\nname = \"disk\"\nrw = \"randread\"\ndepth = 4\ntarget = \"{}\"\n\
         [[stream]]\nname = \"memory\"\nrw = \"randread\"\ncache = \"buffered\"\nengine = \"sync\"\nlimit-iops = 50\ntarget = \"{}\"\n",
        disk.display(),
        memory.display()
    );
    std::fs::write(&job, text).unwrap();
    let out = stage.fathom("run --quiet --format json", &job);
    std::fs::remove_file(&memory).unwrap();
    let report = out.report();
    assert_eq!(about(&report, "A11", "disk")["outcome"], "holds", "{report:#?}");
    assert_eq!(about(&report, "A11", "memory")["outcome"], "finding", "{report:#?}");
}

#[test]
fn page_cache_hits_of_one_phase_do_not_count_for_another() {
    let stage = Stage::one_per_cpu();
    let (direct, cached, job) =
        (stage.file("direct", 16), stage.file("cached", 4), stage.path("phases.toml"));
    assert_eq!(std::fs::read(&cached).unwrap().len(), 4 << 20);
    let stream = |name: &str, more: &str, target: &std::path::Path| {
        format!("[[phase.stream]]\nname = \"{name}\"\n{more}\ntarget = \"{}\"\n", target.display())
    };
    let text = [
        "name = \"job\"\nrw = \"randread\"\nbs = \"4k\"\ntime = \"100ms\"\nwarmup = \"0s\"\nruns = 1\n"
            .to_owned(),
        "[[phase]]\n".to_owned(),
        stream("a", "depth = 4", &direct),
        stream("b", "engine = \"sync\"\nlimit-iops = 200", &direct),
        "[[phase]]\n".to_owned(),
        stream("c", "depth = 4", &direct),
        stream("d", "cache = \"buffered\"\nengine = \"sync\"\nlimit-iops = 200", &cached),
    ];
    std::fs::write(&job, text.concat()).unwrap();
    let report = stage.fathom("run --quiet --format json", &job).report();
    let about = |stream: &str| {
        let is_of = |f: &&serde_json::Value| {
            f["about"].as_array().unwrap().iter().any(|name| name.as_str().unwrap().ends_with(stream))
        };
        report.answers("A01").into_iter().find(is_of).unwrap_or_else(|| panic!("{stream}: {report:#?}"))
    };
    assert_eq!(about(", d")["outcome"], "finding", "{report:#?}");
    for other in [", a", ", b", ", c"] {
        assert_ne!(about(other)["outcome"], "finding", "{report:#?}");
    }
    let names: Vec<&str> =
        report.0["results"].as_array().unwrap().iter().map(|r| r["true_name"].as_str().unwrap()).collect();
    assert_eq!(
        names.iter().map(|name| name.contains("page cache")).collect::<Vec<_>>(),
        [false, false, false, true]
    );
}

#[test]
fn stream_with_one_target_in_memory_is_not_valid() {
    let stage = Stage::one_per_cpu();
    let memory = std::path::PathBuf::from(format!("/dev/shm/fathom-two-targets-{}", std::process::id()));
    let disk = stage.file("disk", 16);
    fill(&memory, 16);
    let words = "run --rw randread --depth 4 --sharing round-robin --time 100ms --warmup 0 --runs 1 --quiet --format json";
    let out = wait(stage.command(&[], words, &disk).arg(&memory));
    std::fs::remove_file(&memory).unwrap();
    let report = out.report();
    let found = report.expect_answer("A11", "finding");
    assert!(found["sentence"].as_str().unwrap().starts_with("1 of 2 targets is memory"), "{found:#}");
    assert!(report.name().ends_with("partly memory (tmpfs)"), "{}", report.name());
    assert_eq!(report.0["results"][0]["limiter"]["name"], "not judged", "{report:#?}");
    not_valid(&report);
}
