//! Watching: figures beside a live iostat, load beside a throttle that was typed in, processes by what they really do, latencies and requests by
//! the kernel's events, and every way to end.
//!
//! For: `fathom watch` as users type it. Not for: formulas and bounds, which have tests beside them.

use crate::capture::instances_of;
use crate::disk::{Device, Disk, Image, ahead_of_others};
use crate::group::Group;
use crate::stage::{Outcome, Report, Running, Stage, is_root, skip, tool, wait};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Reads that the throttle lets through.
const LIMIT: u32 = 2000;

/// A loop device full of random bytes, past the page cache.
fn device(stage: &Stage, mib: usize) -> Option<Device> {
    Device::on(&stage.file("image", mib), Image::Direct)
}

/// Words of a call that watches something: what is watched stands before the interval.
fn words(flags: &str, target: &Path, interval: &str) -> String {
    format!("watch {flags} {} {interval}", target.display())
}

/// Watches something to the end.
fn watched(stage: &Stage, flags: &str, target: &Path, interval: &str) -> Outcome {
    stage.fathom(&words(flags, target, interval), Path::new(""))
}

/// The lines of JSON, those of this kind.
fn lines(out: &Outcome, kind: &str) -> Vec<Value> {
    let all = out.stdout.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")));
    all.filter(|line: &Value| line["kind"] == kind).collect()
}

/// Those of a device.
fn of_device(out: &Outcome, name: &str) -> Vec<Value> {
    lines(out, "device").into_iter().filter(|line| line["device"] == name).collect()
}

/// Seconds of an interval times its rate, over all intervals.
fn total(lines: &[Value], of: fn(&Value) -> &Value) -> f64 {
    lines.iter().filter_map(|l| Some(l["seconds"].as_f64()? * of(l).as_f64()?)).sum()
}

#[test]
fn totals_are_those_of_iostat_within_a_percent() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(device) = device(&stage, 64) else { return };
    let mut iostat = Command::new("iostat");
    iostat.args(["-x", "-y", "-k", "-o", "JSON", device.name(), "1", "5"]).env("S_TIME_FORMAT", "ISO");
    let Ok(mut iostat) = iostat.stdout(Stdio::piped()).spawn() else { return skip("there is no iostat") };
    let watching = stage.start(&words("--format json", &device.path, "1 5"), Path::new(""));
    // All of it lies within both windows, wherever their intervals begin.
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
    let told = std::io::read_to_string(iostat.stdout.take().unwrap()).unwrap();
    assert!(iostat.wait().unwrap().success());
    let told: Value = serde_json::from_str(&told).unwrap();
    let told = told["sysstat"]["hosts"][0]["statistics"].as_array().unwrap();
    let iostat = |key: &str| told.iter().filter_map(|s| s["disk"][0][key].as_f64()).sum::<f64>();
    let own = of_device(&out, device.name());
    assert_eq!((own.len(), out.code), (5, Some(0)), "{out:?}");
    for (what, theirs, ours) in [
        ("reads", iostat("r/s"), total(&own, |l| &l["read"]["per_s"])),
        ("writes", iostat("w/s"), total(&own, |l| &l["write"]["per_s"])),
        ("read bytes", iostat("rkB/s") * 1024.0, total(&own, |l| &l["read"]["mib_per_s"]) * 1_048_576.0),
        ("written bytes", iostat("wkB/s") * 1024.0, total(&own, |l| &l["write"]["mb_per_s"]) * 1e6),
        ("queue", iostat("aqu-sz"), total(&own, |l| &l["depth_mean"])),
    ] {
        // What iostat rounds to two digits, per interval.
        let rounded = 5.0 * 0.005;
        assert!(
            theirs > 0.0 && (ours - theirs).abs() <= theirs * 0.01 + rounded,
            "{what}: {ours} of {theirs}"
        );
    }
    assert!(iostat("r/s") >= 1024.0 && iostat("w/s") >= 128.0, "the windows did not hold the load");
}

#[test]
fn a_load_is_told_as_the_share_of_what_was_measured_on_this_device() {
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
    // So large that what others move meanwhile is little beside them.
    let load = "--rw randread --bs 64k --depth 4 --warmup 100ms --runs 1 --time";
    let unknown = watched(&stage, "", &disk.device, "100ms 1");
    let to_type = format!("limit unknown: run `fathom bench {}`", disk.device.display());
    assert!(unknown.stdout.contains(&to_type), "{unknown:?}");
    let run = |words: &str| ahead_of_others(&stage.command(&group.enter(), words, &disk.device));
    // What others do to the disk below makes a result no limit.
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
        let [line] = &of_device(&out, disk.name())[..] else { panic!("{out:?}") };
        let bounds =
            ["at_least_percent", "at_most_percent"].map(|bound| line["load"][bound].as_f64().unwrap());
        let near = |told: f64| (told - f64::from(percent)).abs() <= 4.0 + f64::from(percent) * 0.06;
        assert!(bounds.into_iter().all(near), "{percent} %: {line:#} {ended:?}");
        assert_eq!(line["load"]["same_by"], "backing_file");
        assert_eq!(line["load"]["throttled"], true);
    }
    let text = watched(&stage, "", &disk.device, "100ms 1").stdout;
    let id = stage.sessions().pop().unwrap().file_stem().unwrap().to_string_lossy().into_owned();
    assert!(text.contains("load is 0.0 % of what was measured (session ") && text.contains(&id), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("a cgroup's limit was measured"), "{text}");
}

/// Waits until a device is read from in every look of a while: the few reads that make ready are over before.
fn until_busy(name: &str) {
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
fn a_process_is_named_with_how_it_has_files_open() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let data = disk.file("data", 16);
    let writer = disk.sh_beside("exec dd if=/dev/zero of=direct bs=4k oflag=direct,dsync status=none");
    let reader = disk.start(&stage, "run --rw randread --depth 4 --time 4s --runs 1 --no-history", &data);
    // Its workers have descriptors of their own, with a ring.
    let open = |pid: u32, is_there: fn(&Value) -> bool| {
        let seen = (0..20).find_map(|_| {
            let flags = format!("--format json --pid {pid}");
            let out = disk.fathom(&stage, &words(&flags, &disk.dir, "200ms 1"), Path::new(""));
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
fn threads_of_one_process_are_told_and_its_end_ends_watching() {
    let stage = Stage::beside_others();
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
fn what_cannot_be_watched_is_refused_in_words() {
    let stage = Stage::beside_others();
    for (words, said) in [
        ("watch no-such-disk", "no block device of that name"),
        ("watch /nowhere/at/all", "does not exist"),
        ("watch /proc/stat", "is on no block device that could be watched"),
        ("watch 0", "100ms or more"),
        ("watch 1 0", "is no COUNT"),
        ("watch 1 2 3", "targets before them"),
        ("watch --pid 4194305 1 1", "there is no such process"),
        ("watch --pid 0 1 1", "--pid"),
        ("watch --format html 1 1", "html"),
        ("watch -o x.csv 1 1", "--format csv > FILE"),
        ("watch --force 1 1", "--output"),
    ] {
        let out = stage.fathom(words, Path::new(""));
        assert_eq!(out.code, Some(2), "{words}: {out:?}");
        assert!(out.stderr.contains(said) && out.stdout.is_empty(), "{words}: {out:?}");
    }
}

#[test]
fn what_is_watched_is_not_written_over() {
    let stage = Stage::beside_others();
    let file = stage.path("watched.prom");
    std::fs::write(&file, "text\n").unwrap();
    let out = watched(&stage, &format!("-o {}", file.display()), &file, "100ms 1");
    assert!(out.code == Some(2) && out.stderr.contains("watched by this call"), "{out:?}");
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
fn a_file_for_monitoring_is_renewed_whole_and_nothing_is_printed_beside_it() {
    let stage = Stage::beside_others();
    let file = stage.path("fathom.prom");
    let watching =
        stage.start(&format!("watch --format openmetrics -o {} 200ms", file.display()), Path::new(""));
    let mut seen = Vec::new();
    for _ in 0..60 {
        sleep(Duration::from_millis(20));
        if let Ok(text) = std::fs::read_to_string(&file) {
            assert!(text.ends_with("# EOF\n"), "a part of it: {text}");
            seen.push(std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap()));
        }
    }
    watching.signal(Signal::INT);
    let out = watching.end();
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), ""), "{out:?}");
    seen.dedup();
    assert!(seen.len() >= 2, "it was never renewed: {seen:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("fathom_disk_read_bytes_total{device=\""), "{text}");
    let printed = stage.fathom("watch --format openmetrics 100ms 2", Path::new("")).stdout;
    assert_eq!(printed.matches("# EOF\n").count(), 2);
}

#[test]
fn without_a_target_all_disks_in_use_are_shown_in_lines_that_fit() {
    let stage = Stage::beside_others();
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
        // In a pipe the names stand once.
        assert_eq!(out.stdout.lines().filter(|l| l.starts_with("device ")).count(), 1, "{}", out.stdout);
    }
    let csv = stage.fathom("watch --format csv 100ms 2", Path::new("")).stdout;
    assert_eq!(csv.matches("time,device").count(), 1, "{csv}");
    let fields: Vec<usize> = csv.lines().map(|l| l.split(',').count()).collect();
    assert!(fields.len() >= 3 && fields.iter().all(|n| *n == fields[0]), "{csv}");
}

#[test]
fn it_ends_with_a_signal_and_where_nobody_reads_any_more() {
    let stage = Stage::beside_others();
    let watching = stage.start("watch 200ms", Path::new(""));
    sleep(Duration::from_millis(700));
    watching.signal(Signal::INT);
    let out = watching.end();
    assert!(out.code == Some(0) && out.stdout.contains("r/s") && out.stderr.is_empty(), "{out:?}");
    let mut child =
        stage.command(&[], "watch --format csv 100ms", Path::new("")).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    // The pipe is closed behind its first line.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("time,device"), "{first}");
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
fn a_disk_that_comes_goes_or_gets_another_file_is_said_and_has_no_wild_figure() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let (one, two) = (stage.file("one", 8), stage.file("two", 8));
    let Some(device) = Device::on(&one, Image::Direct) else { return };
    let watching = stage.start(&words("--format json", &device.path, "300ms 8"), Path::new(""));
    sleep(Duration::from_millis(750));
    tool(&[&"losetup", &"--detach", &device.path]).unwrap();
    tool(&[&"losetup", &device.path, &two]).unwrap();
    let out = watching.end();
    let remarks = lines(&out, "remark");
    let said = remarks.iter().any(|r| r["text"].as_str().unwrap().contains("its figures begin anew"));
    assert!(said, "{out:?}");
    let all = of_device(&out, device.name());
    assert_eq!(all.len(), 8, "{out:?}");
    assert!(all.iter().any(|l| l["not_known"].is_string()), "{out:?}");
    assert!(all.iter().all(|l| l["read"]["per_s"].as_f64().is_none_or(|rate| rate < 1e6)), "{out:?}");
}

/// Sleeps until a device has served so many more reads, and gives whether it did in time.
fn until_reads(name: &str, reads: u64) -> bool {
    let count = || {
        let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let first = count();
    (0..600).any(|_| {
        sleep(Duration::from_millis(50));
        count() - first >= reads
    })
}

#[test]
fn latencies_and_what_a_process_asks_for_are_those_of_a_load_that_is_known() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(device) = device(&stage, 64) else { return };
    let flags = "--depth 8 --warmup 100ms --runs 1 --time 5s --no-history --format json";
    for (load, size, sequential) in
        [("randread --bs 4k", 4096, 0.0..5.0), ("read --bs 64k", 65_536, 90.0..100.1)]
    {
        let loading = stage.start(&format!("run --rw {load} {flags}"), &device.path);
        until_busy(device.name());
        let out = watched(&stage, "--format json", &device.path, "1 2");
        let pid = loading.id();
        let report = loading.end().report();
        let own = &report.0["results"][0]["read"]["latency_ns"];
        let lines = of_device(&out, device.name());
        assert_eq!(lines.len(), 2, "{out:?}");
        for line in &lines {
            let read = &line["latency"]["read"];
            // Nothing is lost between counters and events but what completes around the ends of the interval.
            let counted = line["read"]["per_s"].as_f64().unwrap() * line["seconds"].as_f64().unwrap();
            let seen = read["requests"].as_f64().unwrap_or_else(|| panic!("{line:#}"));
            assert!((seen - counted).abs() < counted * 0.15 + 50.0, "{seen} of {counted}");
            // What fathom measures is the same and the way there and back, which takes long on a busy machine.
            let ms = |key: &str| read[key].as_f64().unwrap_or_else(|| panic!("{key}: {line:#}"));
            let [median, longest] = [percentile(&own["percentiles"], "50"), percentile(own, "max")];
            assert!(
                ms("p50_ms") * 1e6 > median * 0.1 && ms("p50_ms") * 1e6 < median * 1.5,
                "{median}: {line:#}"
            );
            assert!(ms("max_ms") * 1e6 <= longest * 1.01, "{longest}: {line:#}");
            assert!(ms("p50_ms") <= ms("p99_ms") && ms("p99_ms") <= ms("max_ms"), "{line:#}");
            let mean = line["read"]["await_ms"].as_f64().unwrap();
            assert!(mean > ms("p50_ms") * 0.5 && mean < ms("max_ms"), "{line:#}");
            assert!(line["latency"]["write"].is_null(), "{line:#}");
        }
        let processes = lines_of(&out, pid);
        let [process] = &processes[..1] else { panic!("{out:?}") };
        assert_eq!(process["name"], "fathom");
        let asked = &process["requests"];
        assert_eq!(asked["read"]["p50_bytes"], size, "{asked:#}");
        let share = asked["read"]["sequential_percent"].as_f64().unwrap();
        assert!(sequential.contains(&share), "{asked:#}");
        let depth = asked["depth_mean"].as_f64().unwrap();
        assert!(depth > 2.0 && depth < 8.5, "{asked:#}");
        assert!(asked["write"].is_null(), "{asked:#}");
        // One before the run.
        assert!(asked["flush_per_s"].as_f64().is_some_and(|rate| rate < 3.0), "{asked:#}");
    }
    let text = watched(&stage, "", &device.path, "200ms 1").stdout;
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("about 1 us of a CPU per request; --no-events leaves them off"), "{text}");
    let off = watched(&stage, "--no-events --format json", &device.path, "200ms 1");
    assert!(
        of_device(&off, device.name())[0]["latency"].is_null() && !off.stdout.contains("block events"),
        "{off:?}"
    );
}

/// A percentile of a report.
fn percentile(of: &Value, share: &str) -> f64 {
    of[share].as_f64().unwrap_or_else(|| panic!("{of:#}"))
}

/// What was said of a process.
fn lines_of(out: &Outcome, pid: u32) -> Vec<Value> {
    lines(out, "process").into_iter().filter(|line| line["pid"] == pid).collect()
}

#[test]
fn calls_of_a_process_are_counted_where_that_is_asked_for() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let writer = disk.sh_beside("exec dd if=/dev/zero of=direct bs=4k oflag=direct,dsync status=none");
    let flags = format!("--format json --syscalls --pid {}", writer.id());
    let out = disk.fathom(&stage, &words(&flags, &disk.dir, "500ms 3"), Path::new(""));
    let processes = lines(&out, "process");
    let process = processes.last().unwrap_or_else(|| panic!("{out:?}"));
    let call = |name: &str| {
        let all = process["calls"]["calls"].as_array().unwrap_or_else(|| panic!("{process:#}"));
        all.iter().find(|call| call["name"] == name).map_or(0.0, |call| call["per_s"].as_f64().unwrap())
    };
    // What its own counter says, which is read a moment earlier.
    for (name, counter) in [("write", "write_calls_per_s"), ("read", "read_calls_per_s")] {
        let counted = process[counter].as_f64().unwrap();
        assert!(counted > 0.0 && (call(name) - counted).abs() < counted * 0.15 + 20.0, "{name}: {process:#}");
    }
    assert_eq!((call("pwrite64"), call("fsync")), (0.0, 0.0), "{process:#}");
    assert!(process["calls"]["faults"]["major_per_s"].is_f64(), "{process:#}");
    let said = lines(&out, "remark");
    assert!(said.iter().any(|r| r["text"].as_str().unwrap().contains("about 1 us more")), "{out:?}");
    let quiet = disk.fathom(&stage, &words("--format json", &disk.dir, "200ms 1"), Path::new(""));
    assert!(lines(&quiet, "process").iter().all(|process| process["calls"].is_null()), "{quiet:?}");
}

#[test]
fn lost_events_make_latencies_unknown_and_are_counted() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(device) = device(&stage, 64) else { return };
    let load = "run --rw randread --bs 4k --depth 32 --warmup 100ms --runs 1 --time 30s --no-history";
    let on_one_cpu = ["taskset", "-c", "0"].map(str::to_owned);
    let loading = Running::start(&mut stage.command(&on_one_cpu, load, &device.path));
    until_busy(device.name());
    let watching = stage.start(&words("--format json", &device.path, "500ms"), Path::new(""));
    let id = watching.id();
    sleep(Duration::from_millis(1200));
    watching.signal(Signal::STOP);
    // More than a buffer holds, of a CPU that submits all of them.
    let is_over = until_reads(device.name(), 120_000);
    watching.signal(Signal::CONT);
    sleep(Duration::from_millis(1200));
    watching.signal(Signal::INT);
    let out = watching.end();
    loading.signal(Signal::INT);
    loading.end();
    if !is_over {
        return skip("the device is too slow to overrun the kernel's buffers");
    }
    let all = of_device(&out, device.name());
    assert!(all[0]["latency"]["read"]["p50_ms"].is_f64(), "{:#}", all[0]);
    let lost = all.iter().position(|line| {
        line["latency_not_known"].as_str().is_some_and(|why| why.contains("the kernel's tracer lost "))
    });
    let lost = lost.unwrap_or_else(|| panic!("{out:?}"));
    // As long as what was in flight then may be mistaken.
    assert!(all[lost..].iter().all(|line| line["latency"].is_null()), "{out:?}");
    let by_counters = all[lost]["read"]["per_s"].as_f64().unwrap();
    assert!(by_counters > 0.0, "what counters tell is not lost");
    assert_eq!(instances_of(&stage, id), Vec::<String>::new());
}

#[test]
fn the_tracers_instance_goes_with_every_end_and_one_of_a_killed_watch_with_the_next() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let Some(device) = device(&stage, 8) else { return };
    let left = |signal: Signal| {
        let watching = stage.start(&words("--format json", &device.path, "200ms"), Path::new(""));
        let id = watching.id();
        let begun = (0..100).any(|_| {
            sleep(Duration::from_millis(50));
            !instances_of(&stage, id).is_empty()
        });
        assert!(begun, "it records no events");
        watching.signal(signal);
        watching.end();
        (id, instances_of(&stage, id))
    };
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        assert_eq!(left(signal).1, Vec::<String>::new(), "{signal:?}");
    }
    let (killed, stays) = left(Signal::KILL);
    assert_eq!(stays.len(), 1);
    watched(&stage, "", &device.path, "100ms 1");
    assert_eq!(instances_of(&stage, killed), Vec::<String>::new());
}

#[test]
fn a_user_who_may_not_trace_is_told_once_what_is_missing() {
    let stage = Stage::beside_others();
    if !is_root() {
        return;
    }
    let out = stage.fathom_as_nobody("watch --format json 200ms 3", Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    let said = lines(&out, "remark");
    let missing =
        said.iter().filter(|r| r["text"].as_str().unwrap().contains("latency percentiles and the requests"));
    assert_eq!(missing.count(), 1, "{out:?}");
    assert!(lines(&out, "device").iter().all(|line| line["latency"].is_null()), "{out:?}");
    assert!(lines(&out, "process").iter().all(|line| line["requests"].is_null()), "{out:?}");
    let out = stage.fathom_as_nobody("watch --syscalls 200ms 3", Path::new(""));
    assert!(out.code == Some(3) && out.stderr.contains("--syscalls: calls cannot be counted"), "{out:?}");
}
