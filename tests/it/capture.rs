//! `fathom capture` on real devices: what a capture contains, what it reports as missing, what it leaves on the machine, and the import and export of
//! traces of other tools.

use crate::disk::{Background, Device, Disk, Image};
use crate::stage::{Outcome, Running, Stage, is_root, skip, tool};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The control file for zram devices.
const ZRAM: &str = "/sys/class/zram-control";

/// Starts to capture, and waits until events are recorded.
fn start(stage: &Stage, words: &str, target: &Path) -> Running {
    let file = file(stage);
    let mut running = stage.start(&format!("capture -o {} {words}", file.display()), target);
    running.wait_for_output("capturing ");
    running
}

/// The capture file of a test, in memory, so that its own writes are not captured.
fn file(stage: &Stage) -> PathBuf {
    PathBuf::from("/dev/shm").join(format!("{}.capture", stage.name()))
}

/// Removes the capture file at the end of the test.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Ends a capture like Ctrl-C at a terminal.
fn stop(running: Running) -> Outcome {
    running.signal(Signal::INT);
    running.end()
}

fn shown(stage: &Stage, words: &str) -> Value {
    let out = stage.fathom(&format!("show --format json {words}"), &file(stage));
    serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {out:?}"))
}

/// Runs fio with a fixed seed, and returns its reads, writes and syncs.
fn fio(words: &[&str], on: &Path) -> [u64; 3] {
    let name = format!("--filename={}", on.display());
    let all = [
        "fio",
        "--name=load",
        "--randseed=7",
        "--direct=1",
        "--ioengine=psync",
        "--output-format=json",
        &name,
    ];
    let words: Vec<&dyn AsRef<std::ffi::OsStr>> = all.iter().chain(words).map(|word| word as _).collect();
    let text = tool(&words).unwrap();
    let json: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let job = &json["jobs"][0];
    let syncs = &job["sync"]["lat_ns"]["N"];
    [&job["read"]["total_ios"], &job["write"]["total_ios"], syncs].map(|n| n.as_u64().unwrap_or(0))
}

fn requests(capture: &Value, op: &str) -> u64 {
    let all = capture["profile"]["operations"].as_array().unwrap();
    all.iter().find(|of| of["op"] == op).map_or(0, |of| of["requests"].as_u64().unwrap())
}

/// Returns a counter of the device and the captured count.
fn counter(capture: &Value, name: &str) -> (u64, u64) {
    let all = capture["completeness"]["counters"].as_array().unwrap();
    let counter = all.iter().find(|counter| counter["name"] == name).unwrap_or_else(|| panic!("{all:?}"));
    (counter["counted"].as_u64().unwrap(), counter["captured"].as_u64().unwrap())
}

/// Lists the tracer instances of fathom.
fn instances(stage: &Stage) -> Vec<String> {
    let script = "mount -t tracefs none \"$0\" && ls \"$0/instances\"";
    let dir = stage.folder("tracefs");
    let all = tool(&[&"unshare", &"-m", &"--propagation", &"private", &"sh", &"-c", &script, &dir]).unwrap();
    all.lines().filter(|name| name.starts_with("fathom-")).map(str::to_owned).collect()
}

/// The tracer instances of a process.
pub(crate) fn instances_of(stage: &Stage, id: u32) -> Vec<String> {
    let mut all = instances(stage);
    all.retain(|name| name.starts_with(&format!("fathom-{id}-")));
    all
}

/// Returns a loop device. Skips the test and returns `None` if the machine does not allow tracing.
fn device(stage: &Stage) -> Option<Device> {
    if !is_root() {
        return None;
    }
    Device::new(stage, 64, Image::Direct)
}

/// A device of compressed memory for this test alone.
struct Memory(String);

impl Memory {
    /// Makes the device. Skips the test and returns `None` if the kernel cannot add one.
    fn new() -> Option<Self> {
        if !is_root() {
            return None;
        }
        let Ok(number) = std::fs::read_to_string(format!("{ZRAM}/hot_add")) else {
            skip("no zram can be added");
            return None;
        };
        let memory = Self(number.trim().to_owned());
        std::fs::write(format!("/sys/block/zram{}/disksize", memory.0), "64M").unwrap();
        Some(memory)
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/zram{}", self.0))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = std::fs::write(format!("{ZRAM}/hot_remove"), &self.0);
    }
}

#[test]
fn capture_matches_device_counters_and_fio() {
    let stage = Stage::shared();
    let Some(device) = device(&stage) else { return };
    let _removed = Removed(file(&stage));
    let running = start(&stage, "--queue", &device.path);
    let [reads, writes, syncs] =
        fio(&["--rw=randrw", "--bs=4k", "--size=8m", "--fdatasync=16"], &device.path);
    let id = running.id();
    let out = stop(running);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.starts_with("COMPLETE: ") && out.stderr.contains(device.name()), "{out:?}");
    let capture = shown(&stage, "");
    assert_eq!(capture["completeness"]["word"], "complete", "{}", capture["completeness"]);
    for name in ["reads", "writes", "flushes"] {
        let (counted, captured) = counter(&capture, name);
        assert_eq!(counted, captured, "{name}");
        assert!(counted > 0, "{name}");
    }
    let ending = &capture["ending"];
    for none in ["lost_events", "without_issue", "without_completion"] {
        assert_eq!(ending[none], 0, "{none}: {ending}");
    }
    let by_fio = shown(&stage, "--task fio");
    assert_eq!([requests(&by_fio, "read"), requests(&by_fio, "write")], [reads, writes]);
    assert_eq!(by_fio["profile"]["flushes"]["asked"], syncs);
    assert!(syncs > 0 && reads > 0 && writes > 0);
    let size = &by_fio["profile"]["operations"][0]["sizes"];
    assert_eq!((&size["min"], &size["max"]), (&4096.into(), &4096.into()));
    assert!(by_fio["profile"]["footprint"]["bytes"].as_u64().unwrap() <= 8 << 20);
    assert!(!instances(&stage).iter().any(|name| name.starts_with(&format!("fathom-{id}-"))));
}

#[test]
fn captured_requests_can_be_listed_and_filtered() {
    let stage = Stage::shared();
    let Some(device) = device(&stage) else { return };
    let _removed = Removed(file(&stage));
    let running = start(&stage, "", &device.path);
    let [reads, ..] = fio(&["--rw=read", "--bs=64k", "--size=4m"], &device.path);
    assert_eq!(stop(running).code, Some(0));
    let file = file(&stage);
    let csv = stage.fathom("show --events --format csv", &file).stdout;
    let of_fio = || csv.lines().filter(|line| line.contains(",read,0,") && line.contains(",65536,fio,"));
    assert_eq!(of_fio().count() as u64, reads, "{csv}");
    let text = stage.fathom("show --events", &file);
    assert!(text.stdout.lines().all(|line| line.len() <= 100) && text.stdout.starts_with("      issue s"));
    // Select about half of the requests, by the issue time of the middle one.
    let middle: f64 = of_fio().nth(reads as usize / 2).unwrap().split(',').next().unwrap().parse().unwrap();
    let half = |words: &str| requests(&shown(&stage, &format!("{words} {:.0}us", middle / 1e3)), "read");
    assert!(half("--from") < reads && half("--to") < reads);
    let sequence = &shown(&stage, "")["profile"]["operations"][0]["sequence"];
    assert!(sequence["share"].as_f64().unwrap() > 0.9, "{sequence}");
    let text = stage.fathom("show", &file).stdout;
    for words in ["COMPLETE", "order     read:", "footprint", "depth", "arrivals  all:", "requests"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = stage.fathom("show --format html", &file).stdout;
    assert!(page.contains("Offsets of reads") && page.contains("cell shade-5"), "{page}");
    let time_series = &shown(&stage, "")["profile"]["course"];
    let all: u64 =
        time_series["of"][0]["requests"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(all, requests(&shown(&stage, ""), "read"), "{time_series:#}");
    let refused = stage.fathom("show --ledger", &file);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn overwritten_trace_events_are_counted_exactly() {
    let stage = Stage::shared();
    let Some(device) = device(&stage) else { return };
    let _removed = Removed(file(&stage));
    let (events, counted) = overrun(&stage, &device.path);
    // Each request has two events, and a third one if it waited in the scheduler.
    assert!((2 * counted..=3 * counted).contains(&events), "{events} events of {counted} reads");
    let Some(memory) = Memory::new() else { return };
    let (events, counted) = overrun(&stage, &memory.path());
    assert_eq!(events, 2 * counted, "of a bio there are two");
}

/// Reads so fast that the smallest trace buffers overflow. Returns the numbers of events, of lost events, and of reads.
fn overrun(stage: &Stage, device: &Path) -> (u64, u64) {
    let running = start(stage, "--force --buffer 8k", device);
    let [reads, ..] = fio(&["--rw=randread", "--bs=4k", "--size=32m"], device);
    let out = stop(running);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stdout.starts_with("INCOMPLETE: ") && out.stdout.contains("--buffer"), "{out:?}");
    let capture = shown(stage, "");
    let (counted, captured) = counter(&capture, "reads");
    assert!(counted >= reads && captured < counted, "{counted} {captured}");
    let sentence = capture["completeness"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("reads missing, according to the device's own counters"), "{sentence}");
    assert_eq!(counter(&capture, "writes").0 + counter(&capture, "flushes").0, 0, "it only reads");
    let ending = |name: &str| capture["ending"][name].as_u64().unwrap();
    assert!(ending("lost_events") > 0);
    (ending("events") + ending("lost_events"), counted)
}

#[test]
fn killed_capture_is_readable_and_cleaned_up_by_the_next() {
    // Run alone, because the next capture must not be that of another test.
    let stage = Stage::new();
    let Some(device) = device(&stage) else { return };
    let _removed = Removed(file(&stage));
    let running = start(&stage, "", &device.path);
    let [reads, ..] = fio(&["--rw=randread", "--bs=4k", "--size=4m"], &device.path);
    // The capture writes its rows to the file within two seconds.
    std::thread::sleep(Duration::from_millis(2600));
    running.signal(Signal::KILL);
    let name = format!("fathom-{}-", running.id());
    running.end();
    let left = || instances(&stage).iter().any(|instance| instance.starts_with(&name));
    assert!(left());
    let out = stage.fathom("show", &file(&stage));
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stdout.starts_with("CUT the file is cut off at byte"), "{out:?}");
    assert!(requests(&shown(&stage, ""), "read") >= reads);
    let next =
        stage.fathom(&format!("capture --force --time 100ms -o {}", file(&stage).display()), &device.path);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(next.stderr.contains("removed the tracer instance") && next.stderr.contains(&name), "{next:?}");
    assert!(!left());
    let empty = stage.fathom("show", &file(&stage));
    assert_eq!(empty.code, Some(0), "{empty:?}");
    assert!(empty.stdout.contains("The capture contains no requests."), "{empty:?}");
}

#[test]
fn partitions_are_captured_with_their_own_sectors() {
    let stage = Stage::shared();
    let Some(device) = device(&stage) else { return };
    let _removed = Removed(file(&stage));
    let part = match device.partition(1, 32_768, 65_536) {
        Ok(part) => part,
        Err(why) => return skip(&why),
    };
    let running = start(&stage, "", &part);
    let [reads, ..] = fio(&["--rw=randread", "--bs=4k", "--size=4m"], &part);
    fio(&["--rw=randread", "--bs=4k", "--size=4m"], &device.path);
    let out = stop(running);
    assert_eq!(out.code, Some(0), "{out:?}");
    let capture = shown(&stage, "");
    let (counted, captured) = counter(&capture, "reads");
    assert!(counted == captured && captured >= reads, "{}", capture["completeness"]);
    assert_eq!(capture["origin"]["partition"]["first_sector"], 32_768);
    assert!(capture["profile"]["footprint"]["span_bytes"].as_u64().unwrap() <= 32 << 20);
    assert!(out.stderr.contains(&format!("(of {})", device.name())), "{out:?}");
}

#[test]
fn zram_is_captured_by_bios() {
    let stage = Stage::shared();
    let Some(memory) = Memory::new() else { return };
    let _removed = Removed(file(&stage));
    let running = start(&stage, "", &memory.path());
    let [reads, writes, _] = fio(&["--rw=randrw", "--bs=4k", "--size=8m"], &memory.path());
    let out = stop(running);
    assert_eq!(out.code, Some(0), "{out:?}");
    let capture = shown(&stage, "");
    assert_eq!(capture["origin"]["unit"], "bios");
    assert_eq!(capture["completeness"]["word"], "complete", "{}", capture["completeness"]);
    assert!(requests(&capture, "read") >= reads && requests(&capture, "write") >= writes);
}

#[test]
fn directories_are_captured_on_the_device_of_their_file_system() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    let _removed = Removed(file(&stage));
    let running = start(&stage, "--time 1500ms", &stage.path(""));
    let data = stage.file("data", 4);
    tool(&[&"dd", &format!("if={}", data.display()), &"of=/dev/null", &"bs=64k", &"iflag=direct"]).unwrap();
    let out = running.end();
    assert_eq!(out.code, Some(0), "{out:?}");
    let capture = shown(&stage, "");
    assert_eq!(capture["ending"]["why"], "--time");
    assert_eq!(capture["completeness"]["word"], "complete", "{}", capture["completeness"]);
    let by_dd = shown(&stage, "--task dd");
    assert!(by_dd["profile"]["operations"][0]["bytes"].as_u64().unwrap() >= 4 << 20, "{by_dd}");
}

/// Reads and writes two files at the same time. Returns the reads and writes of each.
fn both(disk: &Disk) -> [[u64; 2]; 2] {
    let load = |name: &str| {
        format!(
            "--name=load --filename={name} --rw=randrw --bs=4k --size=8m --direct=1 --ioengine=psync --randseed=7 "
        )
    };
    let text = disk.sh(&format!("fio --output-format=json {}{}", load("sub/one"), load("two")));
    let json: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let count = |at: usize, way: &str| json["jobs"][at][way]["total_ios"].as_u64().unwrap();
    [0, 1].map(|at| [count(at, "read"), count(at, "write")])
}

#[test]
fn files_are_captured_by_extents_and_other_requests_are_counted() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let _removed = Removed(file(&stage));
    disk.file("one", 8);
    disk.file("two", 8);
    disk.sh("mkdir sub && mv one sub && sync");
    let words = format!("capture --force --extents -o {}", file(&stage).display());
    for target in ["sub/one", "sub"] {
        let mut running = disk.start(&stage, &words, &disk.dir.join(target));
        running.wait_for_output("capturing ");
        let [[reads, writes], [other_reads, other_writes]] = both(&disk);
        let out = stop(running);
        assert_eq!(out.code, Some(0), "{out:?}");
        let capture = shown(&stage, "");
        assert_eq!([requests(&capture, "read"), requests(&capture, "write")], [reads, writes], "{target}");
        assert!(reads > 500 && writes > 500);
        assert_eq!(capture["completeness"]["word"], "complete", "{}", capture["completeness"]);
        let of = &capture["ending"]["of_files"];
        assert_eq!((&of["files"], &of["partly"], &of["moved"]), (&1.into(), &0.into(), &0.into()), "{of}");
        assert!(of["elsewhere"].as_u64().unwrap() >= other_reads + other_writes, "{of}");
        assert!(out.stdout.contains("Only requests to 1 file (8 MiB in "), "{out:?}");
        assert_eq!(capture["ending"]["rows"].as_u64().unwrap(), reads + writes);
    }
    let refused = disk.fathom(&stage, &words, &disk.device);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("neither a file nor a directory"), "{refused:?}");
}

#[test]
fn one_process_can_be_captured_and_others_are_counted() {
    let stage = Stage::shared();
    let Some(device) = device(&stage) else { return };
    let _removed = Removed(file(&stage));
    let load = |size: &str| {
        let mut fio = Command::new("fio");
        fio.args([
            "--name=load",
            "--thread",
            "--rw=randread",
            "--direct=1",
            "--ioengine=psync",
            "--runtime=20",
        ]);
        fio.args(["--time_based", "--size=32m", &format!("--bs={size}"), "--output=/dev/null"]);
        Background::start(fio.arg(format!("--filename={}", device.path.display())))
    };
    let (one, _other) = (load("4k"), load("16k"));
    let words = format!("capture --queue --time 1s --pid {} -o {}", one.id(), file(&stage).display());
    let out = stage.fathom(&words, &device.path);
    assert_eq!(out.code, Some(0), "{out:?}");
    let capture = shown(&stage, "");
    let sizes = &capture["profile"]["operations"][0]["sizes"];
    assert_eq!((&sizes["min"], &sizes["max"]), (&4096.into(), &4096.into()));
    assert!(capture["ending"]["of_others"].as_u64().unwrap() > 0);
    let tasks = capture["profile"]["tasks"].as_array().unwrap();
    assert!(!tasks.is_empty() && tasks.iter().all(|task| task["pid"] == one.id()), "{tasks:?}");
    let missing =
        stage.fathom(&format!("capture --pid 4194999 -o {}", stage.path("x").display()), &device.path);
    assert_eq!((missing.code, missing.stderr.contains("no such process")), (Some(2), true), "{missing:?}");
}

#[test]
fn fio_logs_are_imported_exported_and_replayed_by_fio() {
    let stage = Stage::shared();
    let Some(device) = device(&stage) else { return };
    let _removed = Removed(file(&stage));
    let running = start(&stage, "--queue", &device.path);
    fio(&["--rw=randrw", "--bs=4k", "--size=2m", "--fdatasync=8"], &device.path);
    assert_eq!(stop(running).code, Some(0));
    let original = shown(&stage, "");
    // The log gets the name of the capture, even if that name contains a dot, and no file is overwritten.
    let (logs, dated) = (stage.folder("logs"), stage.path("load.1.capture"));
    std::fs::copy(file(&stage), &dated).unwrap();
    let into = format!("export -o {}", logs.display());
    assert_eq!([stage.fathom(&into, &dated).code, stage.fathom(&into, &dated).code], [Some(0), Some(2)]);
    let log = logs.join("load.1.iolog");
    let log_words = format!("--read_iolog={}", log.display());
    let target = stage.file("replayed", 64);
    let redirect = format!("--replay_redirect={}", target.display());
    let all = [
        "fio",
        "--name=again",
        &log_words,
        &redirect,
        "--ioengine=psync",
        "--replay_no_stall=1",
        "--output-format=json",
    ];
    let words: Vec<&dyn AsRef<std::ffi::OsStr>> = all.iter().map(|word| word as _).collect();
    let text = tool(&words).unwrap();
    let json: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    for op in ["read", "write"] {
        assert_eq!(json["jobs"][0][op]["total_ios"].as_u64().unwrap(), requests(&original, op), "{op}");
    }
    let back = stage.path("back.capture");
    let words = format!("capture -o {} --import", back.display());
    assert_eq!(stage.fathom(&words, &log).code, Some(0));
    let again = stage.fathom("show --format json", &back);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["origin"]["imported"], "fio iolog v3");
    assert_eq!(again["completeness"]["word"], "unknown");
    for op in ["read", "write"] {
        assert_eq!(requests(&again, op), requests(&original, op), "{op}");
    }
    assert_eq!(again["profile"]["flushes"]["asked"], original["profile"]["flushes"]["asked"]);
}

#[test]
fn capture_without_trace_permission_prints_a_fix() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    let out = stage.fathom_unprivileged("capture -o /tmp/none.capture", Path::new("/var/tmp"));
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(
        out.stderr.contains("requests cannot be captured") && out.stderr.contains("run as root"),
        "{out:?}"
    );
    assert!(!Path::new("/tmp/none.capture").exists());
}

#[test]
fn impossible_captures_are_refused_with_a_reason() {
    let stage = Stage::shared();
    let put = |name: &str, bytes: &[u8]| {
        let path = stage.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    for (bytes, words) in [
        (&b"fathom capture 1\n"[..], "header is cut off"),
        (b"fathom capture 1\nH\xff\xff\xff\xff1234{}", "header is damaged"),
        (b"fathom capture 7\n", "the capture has format 7"),
    ] {
        let out = stage.fathom("show", &put("bad.capture", bytes));
        assert_eq!(out.code, Some(2), "{out:?}");
        assert!(out.stderr.contains(words), "{words}: {out:?}");
    }
    let to = stage.path("x.capture");
    let import = |path: &Path| stage.fathom(&format!("capture -o {} --import", to.display()), path);
    for (text, words) in [("hello\n", "its format is unknown"), ("fio version 3 iolog\nx f add\n", "line 2")]
    {
        let out = import(&put("bad.trace", text.as_bytes()));
        assert_eq!(out.code, Some(2), "{out:?}");
        assert!(out.stderr.contains(words) && !to.exists(), "{words}: {out:?}");
    }
    let memory = stage.fathom(&format!("capture -o {}", to.display()), Path::new("/dev/shm"));
    assert_eq!((memory.code, memory.stderr.contains("no block device")), (Some(2), true), "{memory:?}");
    let session = stage.fathom("show --events", &put("no.capture", b"fathom session 1\n"));
    assert_eq!(
        (session.code, session.stderr.contains("--events applies to captures")),
        (Some(2), true),
        "{session:?}"
    );
    let twice = stage.fathom(
        &format!("show --from 2s --to 1s {}", put("bad.capture", b"fathom capture 1\n").display()),
        Path::new(""),
    );
    assert_eq!(
        (twice.code, twice.stderr.contains("--from must be before --to")),
        (Some(2), true),
        "{twice:?}"
    );
}
