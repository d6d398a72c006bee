//! `fathom watch` with the kernel's tracer: latencies, requests and calls of a known load, lost events, and removal of tracer instances.

use crate::capture::instances_of;
use crate::disk::{Disk, Image};
use crate::stage::{Outcome, Running, Stage, is_root, skip};
use crate::watch::{device, lines, lines_of_device, until_busy, watch_arguments, watched};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Waits until a device has served this many more reads. Returns false if that takes too long.
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
fn latencies_and_requests_match_a_known_load() {
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
        let lines = lines_of_device(&out, device.name());
        assert_eq!(lines.len(), 2, "{out:?}");
        for line in &lines {
            let read = &line["latency"]["read"];
            // Counters and events agree, except for requests that complete near the ends of the interval.
            let counted = line["read"]["per_s"].as_f64().unwrap() * line["seconds"].as_f64().unwrap();
            let seen = read["requests"].as_f64().unwrap_or_else(|| panic!("{line:#}"));
            assert!((seen - counted).abs() < counted * 0.15 + 50.0, "{seen} of {counted}");
            // fathom's latency also includes the time above the driver, which is long on a busy machine.
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
            let order = read["sequential_percent"].as_f64().unwrap();
            assert!(sequential.contains(&order), "{line:#}");
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
        // There may be one flush before the run.
        assert!(asked["flush_per_s"].as_f64().is_some_and(|rate| rate < 3.0), "{asked:#}");
    }
    let text = watched(&stage, "", &device.path, "200ms 1").stdout;
    let printed = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("about 1 us of CPU time per request; --no-events disables them"), "{text}");
    let off = watched(&stage, "--no-events --format json", &device.path, "200ms 1");
    assert!(
        lines_of_device(&off, device.name())[0]["latency"].is_null() && !off.stdout.contains("block events"),
        "{off:?}"
    );
}

/// A percentile of a report.
fn percentile(of: &Value, share: &str) -> f64 {
    of[share].as_f64().unwrap_or_else(|| panic!("{of:#}"))
}

/// The reported figures of a process.
fn lines_of(out: &Outcome, pid: u32) -> Vec<Value> {
    lines(out, "process").into_iter().filter(|line| line["pid"] == pid).collect()
}

#[test]
fn calls_of_a_process_are_counted_on_request() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let writer = disk.spawn_sh("exec dd if=/dev/zero of=direct bs=4k oflag=direct,dsync status=none");
    let flags = format!("--format json --syscalls --pid {}", writer.id());
    let out = disk.fathom(&stage, &watch_arguments(&flags, &disk.dir, "500ms 4"), Path::new(""));
    let mut processes = lines(&out, "process");
    let process = processes.last().unwrap_or_else(|| panic!("{out:?}")).clone();
    let seconds = |of: &Value| of["seconds"].as_f64().unwrap();
    // Compare the sum over all intervals, because a process's own counters are read slightly earlier than its calls. Leave out the first
    // interval, which begins before calls are counted.
    let _ = processes.remove(0);
    let call = |name: &str| {
        let per_s = |calls: &Value| {
            let all = calls["calls"].as_array().unwrap_or_else(|| panic!("{processes:#?}"));
            all.iter().find(|call| call["name"] == name).map_or(0.0, |call| call["per_s"].as_f64().unwrap())
        };
        processes
            .iter()
            .map(|process| &process["calls"])
            .map(|calls| per_s(calls) * seconds(calls))
            .sum::<f64>()
    };
    // The process's own counters.
    for (name, counter) in [("write", "write_calls_per_s"), ("read", "read_calls_per_s")] {
        let count = |process: &Value| process[counter].as_f64().unwrap() * seconds(process);
        let (called, counted) = (call(name), processes.iter().map(count).sum::<f64>());
        assert!(
            counted > 0.0 && (called - counted).abs() < counted * 0.03 + 20.0,
            "{name}, {called} of {counted}: {processes:#?}"
        );
    }
    assert_eq!((call("pwrite64"), call("fsync")), (0.0, 0.0), "{process:#}");
    assert!(process["calls"]["faults"]["major_per_s"].is_f64(), "{process:#}");
    let printed = lines(&out, "remark");
    assert!(
        printed.iter().any(|r| r["text"]
            .as_str()
            .unwrap()
            .contains("--syscalls: each system call costs a shown process about 1 us")),
        "{out:?}"
    );
    let quiet = disk.fathom(&stage, &watch_arguments("--format json", &disk.dir, "200ms 1"), Path::new(""));
    assert!(lines(&quiet, "process").iter().all(|process| process["calls"].is_null()), "{quiet:?}");
}

#[test]
fn lost_events_are_counted_and_hide_latencies() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let Some(device) = device(&stage, 64) else { return };
    let load = "run --rw randread --bs 4k --depth 32 --warmup 100ms --runs 1 --time 30s --no-history";
    let on_one_cpu = ["taskset", "-c", "0"].map(str::to_owned);
    let loading = Running::start(&mut stage.command(&on_one_cpu, load, &device.path));
    until_busy(device.name());
    let watching = stage.start(&watch_arguments("--format json", &device.path, "500ms"), Path::new(""));
    let id = watching.id();
    sleep(Duration::from_millis(1200));
    // One CPU submits more requests than its buffer holds events for.
    let is_over = watching.while_stopped(|| until_reads(device.name(), 120_000));
    sleep(Duration::from_millis(1200));
    watching.signal(Signal::INT);
    let out = watching.end();
    loading.signal(Signal::INT);
    loading.end();
    if !is_over {
        return skip("the device is too slow to overrun the kernel's buffers");
    }
    let all = lines_of_device(&out, device.name());
    assert!(all[0]["latency"]["read"]["p50_ms"].is_f64(), "{:#}", all[0]);
    let lost = all.iter().position(|line| {
        line["latency_not_known"].as_str().is_some_and(|why| why.contains("the kernel's tracer lost "))
    });
    let lost = lost.unwrap_or_else(|| panic!("{out:?}"));
    // Latencies stay unknown as long as requests in flight at the loss may be mistaken for others.
    assert!(all[lost..].iter().all(|line| line["latency"].is_null()), "{out:?}");
    let by_counters = all[lost]["read"]["per_s"].as_f64().unwrap();
    assert!(by_counters > 0.0, "what counters tell is not lost");
    assert_eq!(instances_of(&stage, id), Vec::<String>::new());
}

#[test]
fn tracer_instances_are_always_removed() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = device(&stage, 8) else { return };
    let left = |signal: Signal| {
        let watching = stage.start(&watch_arguments("--format json", &device.path, "200ms"), Path::new(""));
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
    // SIGHUP is left out: it would be ignored if the tests were started with nohup.
    for signal in [Signal::INT, Signal::TERM] {
        assert_eq!(left(signal).1, Vec::<String>::new(), "{signal:?}");
    }
    let (killed, stays) = left(Signal::KILL);
    assert_eq!(stays.len(), 1);
    watched(&stage, "", &device.path, "100ms 1");
    assert_eq!(instances_of(&stage, killed), Vec::<String>::new());
}

#[test]
fn users_without_trace_permission_get_one_message() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    let out = stage.fathom_unprivileged("watch --format json 200ms 3", Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    let printed = lines(&out, "remark");
    let missing = printed
        .iter()
        .filter(|r| r["text"].as_str().unwrap().contains("latency percentiles and the requests"));
    assert_eq!(missing.count(), 1, "{out:?}");
    assert!(lines(&out, "device").iter().all(|line| line["latency"].is_null()), "{out:?}");
    assert!(lines(&out, "process").iter().all(|line| line["requests"].is_null()), "{out:?}");
    let out = stage.fathom_unprivileged("watch --syscalls 200ms 3", Path::new(""));
    assert!(out.code == Some(3) && out.stderr.contains("--syscalls: calls cannot be counted"), "{out:?}");
}
