//! List entries and watched intervals for the tests of several formats. Reports for tests are golden files.

use model::Known;
use model::evidence::BlockStat;
use model::history::Entry;
use model::machine::{LayerKind, SameBy};
use model::report::{Ending, Headline, Verdict};
use model::watch::{
    Call, CpuShares, DeviceInterval, FaultRates, Latencies, Latency, Layout, Load, MeasuredIn, Open,
    ProcessCalls, ProcessRequests, Processes, RequestFigures, Requests, Watched, WatchedDevice,
    WatchedProcess,
};

/// Returns a complete session of two targets with a suspect headline.
pub(crate) fn entry(id: &str) -> Entry {
    Entry {
        id: id.into(),
        started: Some("2026-11-21T16:12:26+01:00".into()),
        verdict: Some(Verdict::Suspect),
        headline: Some(Headline {
            name: "4K random read".into(),
            value: Some(2000.0),
            unit: "IOPS".into(),
            interval: Some([1900.0, 2100.0]),
            accepted: Vec::new(),
        }),
        ending: Some(Ending::Complete),
        targets: vec!["/a".into(), "/b".into()],
        ..Entry::default()
    }
}

/// Returns an interval with a loop device, its disk and two processes.
pub(crate) fn watched() -> Watched {
    let requests = |per_s: f64, bytes: f64, await_ms: f64| Requests {
        per_s,
        mb_per_s: per_s * bytes / 1e6,
        mib_per_s: per_s * bytes / 1_048_576.0,
        request_bytes: (per_s > 0.0).then_some(bytes),
        await_ms: (per_s > 0.0).then_some(await_ms),
        merged_per_s: 0.0,
        merged_percent: (per_s > 0.0).then_some(0.0),
    };
    let figures = DeviceInterval {
        seconds: 1.0,
        read: requests(500.0, 4096.0, 0.08),
        write: requests(0.0, 0.0, 0.0),
        discard: None,
        flush: None,
        depth_mean: 0.04,
        in_flight: 1,
        util_percent: 4.0,
    };
    let device = |name: &str, level, figures, load| WatchedDevice {
        name: name.into(),
        volume: None,
        number: format!("7:{level}"),
        kind: if level == 0 { LayerKind::Loop } else { LayerKind::Disk },
        level,
        below: if level == 0 { vec!["vda".into()] } else { Vec::new() },
        figures,
        load,
        conclusions: Vec::new(),
        counters: BlockStat::parse("10 1 80 5 20 2 160 7 3 44 42 4 3 8 9 6 11").ok(),
        latency: if level == 0 { Some(Ok(latencies())) } else { None },
    };
    let open = Open { files: 1, direct: true, sync: true, io_uring: true, ..Open::default() };
    Watched {
        is_first: true,
        has_headings: true,
        time: "2026-11-23T15:00:00+00:00".into(),
        devices: vec![
            device("loop0", 0, Ok(figures), Some(Ok(load()))),
            device(
                "vda",
                1,
                Err("the kernel's counter of reads jumped back; figures begin anew".into()),
                None,
            ),
        ],
        cpu: Some(CpuShares {
            user_percent: 1.4,
            nice_percent: 0.0,
            system_percent: 0.5,
            iowait_percent: 1.7,
            steal_percent: 0.0,
            idle_percent: 96.4,
        }),
        processes: Some(Processes {
            seconds: 1.0,
            listed: vec![
                process("fio", 12_345, false, Ok(open)),
                process("kworker/u8:1-loop0-very-long", 77, true, Ok(Open::default())),
            ],
            unlisted: 3,
            unreadable: 12,
            calls_not_known: None,
        }),
        remarks: vec!["/mnt is ext4 on loop0 on vda".into()],
        layout: Layout::default(),
    }
}

fn process(name: &str, pid: u32, kernel: bool, open: Known<Open>) -> WatchedProcess {
    WatchedProcess {
        pid,
        tid: None,
        name: name.into(),
        kernel,
        children_of: None,
        read_mb_per_s: 2.05,
        write_mb_per_s: 0.0,
        rchar_mb_per_s: 2.05,
        wchar_mb_per_s: 0.0,
        read_calls_per_s: 500.0,
        write_calls_per_s: 0.0,
        requests: (!kernel).then(asked),
        calls: (!kernel).then(calls),
        open,
    }
}

fn latencies() -> Latencies {
    let latency = |requests, p99_ms| Latency {
        requests,
        p50_ms: Some(0.07),
        p99_ms,
        max_ms: 1.25,
        sequential_percent: None,
        random_bytes: None,
    };
    let order = |latency| Latency { sequential_percent: Some(0.3), random_bytes: Some(4096.0), ..latency };
    Latencies {
        read: Some(order(latency(1500, Some(0.31)))),
        flush: Some(latency(20, None)),
        ..Latencies::default()
    }
}

fn asked() -> ProcessRequests {
    let read = RequestFigures {
        per_s: 500.0,
        mb_per_s: 2.05,
        p50_bytes: 4096,
        min_bytes: 4096,
        max_bytes: 65536,
        sequential_percent: 2.0,
    };
    ProcessRequests { read: Some(read), write: None, flush_per_s: 0.5, depth_mean: 3.9 }
}

fn calls() -> ProcessCalls {
    let call = |name: &str, count: u64| Call { name: name.into(), count, per_s: count as f64 };
    ProcessCalls {
        seconds: 1.0,
        calls: vec![call("io_uring_enter", 500), call("fdatasync", 3)],
        faults: Some(FaultRates { major_per_s: 0.0, minor_per_s: 12.0 }),
    }
}

fn load() -> Load {
    let session =
        |id: &str| MeasuredIn { session: id.into(), started: Some("2026-11-23T14:52:01+00:00".into()) };
    Load {
        at_least_percent: 25.0,
        at_most_percent: Some(40.0),
        not_measured: Vec::new(),
        throttled: false,
        same_by: SameBy::BackingFile,
        sessions: vec![session("20261123-1"), session("20261123-2")],
    }
}
