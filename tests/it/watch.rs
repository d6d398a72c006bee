//! `fathom watch`: figures compared with iostat, load compared with a known throttle, what it reports about known processes, and every
//! way to end.

use crate::disk::{Background, Device, Disk, Image, lock_attaching, with_high_priority};
use crate::group::Group;
use crate::stage::{Outcome, Report, Running, Stage, is_root, skip, tool, wait};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Reads per second that the throttle allows.
const LIMIT: u32 = 2000;

/// A loop device with direct I/O on an image of random bytes.
pub(crate) fn device(stage: &Stage, mib: usize) -> Option<Device> {
    Device::on(&stage.file("image", mib), Image::Direct)
}

/// Arguments of `watch` with a target, which comes before the interval.
pub(crate) fn watch_arguments(flags: &str, target: &Path, interval: &str) -> String {
    format!("watch {flags} {} {interval}", target.display())
}

/// Watches something to the end.
pub(crate) fn watched(stage: &Stage, flags: &str, target: &Path, interval: &str) -> Outcome {
    stage.fathom(&watch_arguments(flags, target, interval), Path::new(""))
}

/// The JSON lines of this kind.
pub(crate) fn lines(out: &Outcome, kind: &str) -> Vec<Value> {
    let all = out.stdout.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")));
    all.filter(|line: &Value| line["kind"] == kind).collect()
}

/// The figures of a device.
pub(crate) fn lines_of_device(out: &Outcome, name: &str) -> Vec<Value> {
    lines(out, "device").into_iter().filter(|line| line["device"] == name).collect()
}

/// Seconds of an interval times its rate, over all intervals.
fn total(lines: &[Value], of: fn(&Value) -> &Value) -> f64 {
    lines.iter().filter_map(|l| Some(l["seconds"].as_f64()? * of(l).as_f64()?)).sum()
}

#[test]
fn totals_agree_with_iostat_within_one_percent() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let Some(device) = device(&stage, 64) else { return };
    let mut iostat = Command::new("iostat");
    iostat.args(["-x", "-y", "-k", "-o", "JSON", device.name(), "1", "5"]).env("S_TIME_FORMAT", "ISO");
    let Ok(mut iostat) = iostat.stdout(Stdio::piped()).spawn() else { return skip("there is no iostat") };
    let watching = stage.start(&watch_arguments("--format json", &device.path, "1 5"), Path::new(""));
    // Make the whole load lie within both windows, wherever their intervals begin.
    sleep(Duration::from_millis(500));
    tool(&[
        &"dd",
        &format!("if={}", device.path.display()),
        &"of=/dev/null",
        &"bs=16k",
        &"count=1024",
        &"iflag=direct",
    ])
    .unwrap();
    let to = format!("of={}", device.path.display());
    tool(&[&"dd", &"if=/dev/urandom", &to, &"bs=64k", &"count=128", &"oflag=direct", &"conv=fsync"]).unwrap();
    let out = watching.end();
    let reported = std::io::read_to_string(iostat.stdout.take().unwrap()).unwrap();
    assert!(iostat.wait().unwrap().success());
    let reported: Value = serde_json::from_str(&reported).unwrap();
    let reported = reported["sysstat"]["hosts"][0]["statistics"].as_array().unwrap();
    let iostat = |key: &str| reported.iter().filter_map(|s| s["disk"][0][key].as_f64()).sum::<f64>();
    let own = lines_of_device(&out, device.name());
    assert_eq!((own.len(), out.code), (5, Some(0)), "{out:?}");
    for (what, theirs, ours) in [
        ("reads", iostat("r/s"), total(&own, |l| &l["read"]["per_s"])),
        ("writes", iostat("w/s"), total(&own, |l| &l["write"]["per_s"])),
        ("read bytes", iostat("rkB/s") * 1024.0, total(&own, |l| &l["read"]["mib_per_s"]) * 1_048_576.0),
        ("written bytes", iostat("wkB/s") * 1024.0, total(&own, |l| &l["write"]["mb_per_s"]) * 1e6),
        ("queue", iostat("aqu-sz"), total(&own, |l| &l["depth_mean"])),
    ] {
        // iostat rounds each figure to two digits.
        let rounded = 5.0 * 0.005;
        assert!(
            theirs > 0.0 && (ours - theirs).abs() <= theirs * 0.01 + rounded,
            "{what}: {ours} of {theirs}"
        );
    }
    assert!(iostat("r/s") >= 1024.0 && iostat("w/s") >= 128.0, "the windows did not hold the load");
}

#[test]
fn load_is_a_share_of_the_measured_capacity() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = device(&stage, 64).and_then(|device| Disk::bare(&stage, Some(device))) else { return };
    let limit = format!("$NUMBER {LIMIT}");
    let Some(group) = Group::limited(&disk, &("blkio", "blkio.throttle.read_iops_device", limit.as_str()))
    else {
        return;
    };
    // Large requests, so that other traffic does not matter.
    let load = "--rw randread --bs 64k --depth 4 --warmup 100ms --runs 1 --time";
    let unknown = watched(&stage, "", &disk.device, "100ms 1");
    let device = disk.device.display();
    let to_type = format!("limit unknown: no VALID result of this device; run `fathom bench {device}`");
    assert!(unknown.stdout.contains(&to_type), "{unknown:?}");
    let run = |words: &str| with_high_priority(&stage.command(&group.enter(), words, &disk.device));
    // If other load disturbs the disk below, the result is not a limit. Measure again in that case.
    let measure = || wait(&mut run(&format!("run {load} 2s --format json"))).report();
    let is_limit =
        |report: &Report| report.0["limiter"]["name"] == "throttle" && report.0["verdict"] == "SUSPECT";
    let report = (0..4).map(|_| measure()).find(is_limit).unwrap_or_else(measure);
    assert!(is_limit(&report), "{:#} {:#}", report.0["verdict_reason"], report.0["limiter"]);
    for percent in [25, 50, 75, 100] {
        let rate = if percent < 100 { format!("--rate {}", LIMIT * percent / 100) } else { String::new() };
        let loading = Running::start(&mut run(&format!("run {load} 9s --no-history {rate}")));
        until_busy(disk.name());
        let out = watched(&stage, "--format json", &disk.device, "800ms 1");
        loading.signal(Signal::INT);
        let ended = loading.end();
        let [line] = &lines_of_device(&out, disk.name())[..] else { panic!("{out:?}") };
        let bounds =
            ["at_least_percent", "at_most_percent"].map(|bound| line["load"][bound].as_f64().unwrap());
        let near = |reported: f64| (reported - f64::from(percent)).abs() <= 4.0 + f64::from(percent) * 0.06;
        assert!(bounds.into_iter().all(near), "{percent} %: {line:#} {ended:?}");
        assert_eq!(line["load"]["same_by"], "backing_file");
        assert_eq!(line["load"]["throttled"], true);
    }
    let text = watched(&stage, "", &disk.device, "100ms 1").stdout;
    let id = stage.sessions().pop().unwrap().file_stem().unwrap().to_string_lossy().into_owned();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let load = "load is 0.0 % of the measured capacity (results of session ";
    assert!(words.contains(load) && words.contains(&id), "{text}");
    assert!(words.contains("a cgroup limited that measurement"), "{text}");
}

/// Waits until a device serves reads in several consecutive samples, so that the few reads of the preparation are over.
pub(crate) fn until_busy(name: &str) {
    let reads = || {
        let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let mut busy = 0;
    for _ in 0..200 {
        let before = reads();
        sleep(Duration::from_millis(100));
        busy = if reads() > before + 5 { busy + 1 } else { 0 };
        if busy == 4 {
            return;
        }
    }
    panic!("nothing reads {name}");
}

#[test]
fn processes_are_named_with_their_open_modes() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let data = disk.file("data", 16);
    let writer = disk.spawn_sh("exec dd if=/dev/zero of=direct bs=4k oflag=direct,dsync status=none");
    let reader = disk.start(&stage, "run --rw randread --depth 4 --time 4s --runs 1 --no-history", &data);
    // Each worker thread has its own descriptors, including a ring.
    let open = |pid: u32, is_there: fn(&Value) -> bool| {
        let seen = (0..20).find_map(|_| {
            let flags = format!("--format json --pid {pid}");
            let out = disk.fathom(&stage, &watch_arguments(&flags, &disk.dir, "200ms 1"), Path::new(""));
            lines(&out, "process").into_iter().map(|p| p["open"].clone()).find(is_there)
        });
        seen.unwrap_or_default()
    };
    let dd = open(writer.id(), |open| open["direct"] == true);
    let own = open(reader.id(), |open| open["io_uring"] == true);
    reader.end();
    assert!(dd["direct"] == true && dd["sync"] == true && dd["buffered"] == false, "{dd:#}");
    assert!(own["direct"] == true && own["io_uring"] == true && own["sync"] == false, "{own:#}");
}

#[test]
fn threads_of_a_process_are_listed_until_it_ends() {
    let stage = Stage::shared();
    let mut dd = Command::new("sh");
    dd.args(["-c", "sleep 0.3; timeout 1 dd if=/dev/zero of=$0/file bs=4k oflag=dsync status=none; exit 0"])
        .arg(stage.folder("data"));
    let mut dd = dd.stdin(Stdio::null()).spawn().unwrap();
    let out = watched(&stage, &format!("--pid {}", dd.id()), &stage.path("data"), "200ms 50");
    dd.wait().unwrap();
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.contains(&format!("process {} has ended", dd.id())), "{out:?}");
    assert!(out.took < Duration::from_secs(8), "{out:?}");
}

#[test]
fn impossible_watch_targets_are_refused() {
    let stage = Stage::shared();
    for (words, printed) in [
        ("watch no-such-disk", "no block device of that name"),
        ("watch /nowhere/at/all", "does not exist"),
        ("watch /proc/stat", "is on no block device that could be watched"),
        ("watch 0", "100ms to 24h"),
        ("watch 1 0", "is not a valid COUNT"),
        ("watch 1 2 3", "third number"),
        ("watch -o JSON 1 1", "--format json"),
        ("watch --dec=1 1 1", "--dec"),
        ("watch -k -m 1 1", "cannot be used with"),
        ("watch --pid 4194305 1 1", "there is no such process"),
        ("watch --pid 0 1 1", "--pid"),
        ("watch --format html 1 1", "html"),
        ("watch -o x.csv 1 1", "FILE.html"),
        ("watch --force 1 1", "--output"),
    ] {
        let out = stage.fathom(words, Path::new(""));
        assert_eq!(out.code, Some(2), "{words}: {out:?}");
        assert!(out.stderr.contains(printed) && out.stdout.is_empty(), "{words}: {out:?}");
    }
}

#[test]
fn watched_targets_are_not_overwritten() {
    let stage = Stage::shared();
    let file = stage.path("watched.prom");
    std::fs::write(&file, "text\n").unwrap();
    let out = watched(&stage, &format!("-o {}", file.display()), &file, "100ms 1");
    assert!(out.code == Some(2) && out.stderr.contains("watched by this command"), "{out:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text\n");
    if !is_root() {
        return;
    }
    let Some(device) = device(&stage, 8) else { return };
    let before = device.checksum();
    let node = stage.path("node.prom");
    std::os::unix::fs::symlink(&device.path, &node).unwrap();
    let out = watched(&stage, &format!("-o {}", node.display()), &device.path, "100ms 1");
    assert!(out.code == Some(2) && out.stderr.contains("block device"), "{out:?}");
    assert_eq!(device.checksum(), before);
}

#[test]
fn monitoring_file_is_replaced_atomically_without_other_output() {
    let stage = Stage::shared();
    let file = stage.path("fathom.prom");
    let watching =
        stage.start(&format!("watch --format openmetrics -o {} 200ms", file.display()), Path::new(""));
    let (mut seen, since) = (BTreeSet::new(), Instant::now());
    // On a busy machine the intervals are longer than requested.
    while seen.len() < 2 && since.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(20));
        if let Ok(text) = std::fs::read_to_string(&file) {
            assert!(text.ends_with("# EOF\n"), "a part of it: {text}");
            seen.insert(std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap()));
        }
    }
    watching.signal(Signal::INT);
    let out = watching.end();
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), ""), "{out:?}");
    assert!(seen.len() >= 2, "it was never renewed: {seen:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("fathom_disk_read_bytes_total{device=\""), "{text}");
    let printed = stage.fathom("watch --format openmetrics 100ms 2", Path::new("")).stdout;
    assert_eq!(printed.matches("# EOF\n").count(), 2);
}

#[test]
fn all_used_disks_are_shown_by_default() {
    let stage = Stage::shared();
    let at = |columns: &str| {
        let mut command = stage.command(&[], "watch 100ms 2", Path::new(""));
        wait(command.env("COLUMNS", columns))
    };
    for (columns, more) in [("40", "rMB/s"), ("80", "aqu-sz"), ("120", "f_await")] {
        let out = at(columns);
        assert_eq!(out.code, Some(0), "{out:?}");
        let width = columns.parse().unwrap();
        let too_long = out.stdout.lines().find(|l| l.chars().count() > width);
        assert_eq!(too_long, None, "{}", out.stdout);
        assert!(out.stdout.contains(more), "{}", out.stdout);
        // In a pipe, the column headings are printed once.
        assert_eq!(out.stdout.lines().filter(|l| l.starts_with("device ")).count(), 1, "{}", out.stdout);
    }
    let csv = stage.fathom("watch --format csv 100ms 2", Path::new("")).stdout;
    assert_eq!(csv.matches("time,device").count(), 1, "{csv}");
    let fields: Vec<usize> = csv.lines().map(|l| l.split(',').count()).collect();
    assert!(fields.len() >= 3 && fields.iter().all(|n| *n == fields[0]), "{csv}");
}

#[test]
fn watch_ends_with_a_signal_or_a_closed_pipe() {
    let stage = Stage::one_per_cpu();
    let start = |words: &str| {
        let mut command = stage.command(&[], words, Path::new(""));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut first).unwrap();
        (child, output, first)
    };
    let (child, mut output, mut text) = start("watch 200ms");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, Signal::INT).unwrap();
    output.read_to_string(&mut text).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && text.contains("r/s") && out.stderr.is_empty(), "{out:?} {text}");
    let (mut child, output, first) = start("watch --format csv 100ms");
    assert!(first.starts_with("time,device"), "{first}");
    drop(output);
    let ended = (0..100).find_map(|_| {
        sleep(Duration::from_millis(50));
        child.try_wait().unwrap()
    });
    let ended = ended.unwrap_or_else(|| {
        child.kill().unwrap();
        panic!("it goes on without a reader")
    });
    assert!(ended.success(), "{ended:?}");
}

#[test]
fn disks_that_appear_or_vanish_are_reported() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let (one, two) = (stage.file("one", 8), stage.file("two", 8));
    let Some(device) = Device::on(&one, Image::Direct) else { return };
    let watching = stage.start(&watch_arguments("--format json", &device.path, "300ms 8"), Path::new(""));
    sleep(Duration::from_millis(750));
    let lock = lock_attaching();
    tool(&[&"losetup", &"--detach", &device.path]).unwrap();
    tool(&[&"losetup", &device.path, &two]).unwrap();
    drop(lock);
    let out = watching.end();
    let remarks = lines(&out, "remark");
    let printed = remarks.iter().any(|r| r["text"].as_str().unwrap().contains("its figures start from zero"));
    assert!(printed, "{out:?}");
    let all = lines_of_device(&out, device.name());
    assert_eq!(all.len(), 8, "{out:?}");
    assert!(all.iter().any(|l| l["not_known"].is_string()), "{out:?}");
    assert!(all.iter().all(|l| l["read"]["per_s"].as_f64().is_none_or(|rate| rate < 1e6)), "{out:?}");
}

#[test]
fn iostat_options_select_the_same_parts() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = device(&stage, 64) else { return };
    let name = device.name();
    let text = |words: &str| {
        let out = stage.fathom(&format!("watch --no-events {words}"), Path::new(""));
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{words}: {out:?}");
        out.stdout
    };
    // A remark such as "loop0 is on vda" is not a row.
    let is_row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next() == Some(name) && words.next().is_some_and(|word| word.parse::<f64>().is_ok())
    };
    let rows = |text: &str| text.lines().filter(|l| is_row(l)).count();
    // Arguments may be in any order, and flags may be combined.
    for words in [format!("-xmt 100ms 1 /dev/{name}"), format!("100ms {name} 1 -x -m -t")] {
        let text = text(&words);
        let head = text.lines().find(|l| l.starts_with("device ")).unwrap_or_default();
        for column in ["r/s", "rMiB/s", "rrqm/s", "wrqm/s", "%util"] {
            assert!(head.split_whitespace().any(|word| word == column), "{column}: {text}");
        }
        assert!(text.starts_with("20") && text.contains("\navg-cpu: %user "), "{text}");
        assert!(text.contains("100 % is not saturation") && rows(&text) == 1, "{text}");
    }
    let devices = text(&format!("-dk {name} 100ms 2"));
    assert!(rows(&devices) == 2 && devices.contains("rKiB/s"), "{devices}");
    assert!(!devices.contains("avg-cpu") && !devices.contains("files open here"), "{devices}");
    let cpu = text(&format!("-c {name} 100ms 2"));
    assert_eq!((cpu.lines().count(), rows(&cpu)), (2, 0), "{cpu}");
    assert!(cpu.lines().all(|l| l.starts_with("avg-cpu: %user ")), "{cpu}");
    let both = text(&format!("-cd {name} 100ms 1"));
    assert!(rows(&both) == 1 && both.contains("avg-cpu"), "{both}");
    assert_eq!(rows(&text(&format!("-z {name} 100ms 1"))), 0, "an idle device has no row");
    // The partition was never used, so only ALL shows it.
    assert_eq!(rows(&text("-d -p ALL 100ms 1")), 1);
    assert_eq!(rows(&text("-d ALL 100ms 1")), 1);
    let json = watched(&stage, "--format json", Path::new(name), "200ms 1");
    let [cpu] = &lines(&json, "cpu")[..] else { panic!("{json:?}") };
    let shares: f64 = cpu
        .as_object()
        .unwrap()
        .iter()
        .filter(|(k, _)| k.ends_with("_percent"))
        .filter_map(|(_, v)| v.as_f64())
        .sum();
    assert!((shares - 100.0).abs() < 1e-6, "{cpu}");
    if let Ok(node) = device.partition(1, 2048, 4096) {
        let part = node.file_name().unwrap().to_string_lossy().into_owned();
        let with = text(&format!("-d -p {name} 100ms 1"));
        assert!(with.lines().any(|l| l.starts_with(&format!(" {part} "))), "{with}");
        assert!(!text(&format!("-d {name} 100ms 1")).contains(&part));
    }
}

#[test]
fn requests_at_max_sectors_kb_are_explained() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = device(&stage, 64) else { return };
    let set = |kib: &str| {
        std::fs::write(format!("/sys/block/{}/queue/max_sectors_kb", device.name()), kib).unwrap();
    };
    set("64");
    let read = || {
        let script = "while dd if=$0 of=/dev/null bs=1M iflag=direct status=none; do :; done";
        Background::start(Command::new("sh").args(["-c", script]).arg(&device.path))
    };
    let reading = read();
    until_busy(device.name());
    let out = watched(&stage, "--no-events --format json", &device.path, "500ms 1");
    let text = watched(&stage, "--no-events --explain", &device.path, "500ms 1").stdout;
    let [line] = &lines_of_device(&out, device.name())[..] else { panic!("{out:?}") };
    assert_eq!(line["conclusions"][0]["rule"], "at_request_size_limit", "{line:#}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("max_sectors_kb = 64 allows, so the kernel splits larger ones: raising it may help"),
        "{text}"
    );
    assert!(words.contains("because the mean request is at least 95 % of max_sectors_kb"), "{text}");
    // With the largest value that the hardware supports, the figures recommend no further change.
    let most =
        std::fs::read_to_string(format!("/sys/block/{}/queue/max_hw_sectors_kb", device.name())).unwrap();
    set(most.trim());
    let out = watched(&stage, "--no-events --format json", &device.path, "500ms 1");
    drop(reading);
    let [line] = &lines_of_device(&out, device.name())[..] else { panic!("{out:?}") };
    assert_eq!(line["conclusions"], Value::Array(Vec::new()), "{line:#}");
}

#[test]
fn page_of_the_load_over_time_is_written_at_the_end() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = device(&stage, 16) else { return };
    let page = stage.path("load.html");
    let out = watched(&stage, &format!("-o {}", page.display()), &device.path, "100ms 3");
    assert_eq!(out.code, Some(0), "{out:?}");
    let text = std::fs::read_to_string(&page).unwrap();
    for words in ["<!doctype html>", "Requests per second", device.name(), "limit unknown: no VALID"] {
        assert!(text.to_lowercase().contains(&words.to_lowercase()), "{words}: {text}");
    }
}
