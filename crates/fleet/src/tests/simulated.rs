//! Thousands of simulated hosts. Their messages are encoded, decoded and added up one after another. This measures bytes, time and memory
//! at rank 0, and checks that the sums equal those of values that were never encoded.

use crate::merge::{CommonTimes, HostReports, Phase, RunParts, Times};
use crate::message::Message;
use crate::{merge, message};
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::fleet::{CheckedOnHosts, HostRecord, HostResult, LimitedHosts, SlowestHost};
use model::histogram::Histogram;
use model::job::Kind;
use model::record::{Cell, Interval, KindEnd, Run, RunEnd, RunEnding, RunStart, StreamEnd, WorkerEnd};
use model::report::{Limiter, Verdict};
use std::time::{Duration, Instant};

/// Bytes per host that rank 0 may receive, for all messages of a run and of the end.
const HOST_BYTES_MAX: usize = 5_000;
/// How long rank 0 may take to decode and add up the messages of one host; ten times as long without optimization.
const HOST_TIME_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 10 } else { 1 });

pub(super) fn first_run() -> RunStart {
    let (repeat, attempt, offered_iops) = (0, 0, None);
    RunStart { job: 0, phase: 0, repeat, attempt, offered_iops, host: 0, at_ns: 0, target_bytes: vec![4096] }
}

/// A run of ten seconds on a host; some hosts take longer. The run has latencies of every size from 50 us on, and a row for each
/// interval.
pub(super) fn simulated_run(rank: u64) -> (Run, Vec<Interval>) {
    let mut latency = Histogram::new();
    (0..2_000).for_each(|i: u64| latency.record(50_000 + (i * i * 7) % (3_000_000 + rank)));
    let (ops, bytes) = (latency.count(), latency.count() * 4096);
    let row_ns = 31_250_000 + 1_000_000 * (rank % 7);
    let cell =
        Cell { ops: ops / 320, bytes: bytes / 320, p50_ns: 60_000, p99_ns: 900_000, max_ns: 2_900_000 };
    let row = |at: u64| Interval {
        stream: 0,
        start_ns: at * row_ns,
        end_ns: (at + 1) * row_ns + rank,
        depth_ns: 1_000_000_000,
        cells: [(Kind::Read, cell)].into(),
    };
    let kinds = [(Kind::Read, KindEnd { bytes, latency, open: None })].into();
    let stream = StreamEnd { window_ns: 10_000_000_000, kinds, ..StreamEnd::default() };
    let worker =
        |worker| WorkerEnd { worker, ops: ops / 4, user_ns: rank, ready_ns: Ok(1), ..WorkerEnd::default() };
    let notes = if rank.is_multiple_of(50) {
        vec![format!("{rank} pages stayed in the page cache")]
    } else {
        Vec::new()
    };
    let workers = (0..4).map(worker).collect();
    let end = RunEnd { streams: vec![stream], workers, notes, ..RunEnd::without(RunEnding::Complete) };
    let run = Run {
        start: first_run(),
        intervals: Vec::new(),
        evidence: Vec::new(),
        end: Some(end),
        disturbed: None,
    };
    (run, (0..320).map(row).collect())
}

fn run_on_host(rank: usize, common: Option<&CommonTimes>) -> RunParts {
    let (run, intervals) = simulated_run(rank as u64);
    let phases = Phase::from_run(rank as u32, &run, &intervals, Some(rank as u64)).into_iter().collect();
    let mut ran = RunParts { phases, disturbed: Vec::new() };
    if let Some(common) = common {
        ran.count_common(std::slice::from_ref(&intervals), common);
    }
    ran
}

/// The final report of a host: a result in which most checks have no finding, one could not be checked, and one has a finding on some
/// hosts.
fn host_reports(rank: usize) -> HostReports {
    let finding = |(at, id): (usize, &CheckId)| {
        let (outcome, severity) = match at {
            0 => (Outcome::NotChecked, None),
            1 if rank.is_multiple_of(3) => (Outcome::Finding, Some(Severity::Biases)),
            _ => (Outcome::Holds, None),
        };
        Checked {
            id: *id,
            name: "SOME_CHECK".into(),
            outcome,
            severity,
            about: vec!["4K random read, depth 32".into()],
            sentence: format!(
                "On host {rank} the device completed {} requests that no process had asked for.",
                rank * 977
            ),
            fix: "Stop what else uses the device.".into(),
            evidence: [("requests".into(), rank as f64 * 977.0)].into(),
            accepted: false,
        }
    };
    let findings: Vec<Checked> = CheckId::ALL.iter().take(60).enumerate().map(finding).collect();
    let (name, iops) =
        ("4K random read, depth 32".to_owned(), 20_000.0 + (rank * 7_919 % 5_000) as f64 * 1.37);
    let limiter = Limiter {
        name: if rank.is_multiple_of(9) { "throttle".into() } else { "the device".into() },
        sentence: format!(
            "The device was busy for 99 % of the time, and {iops} requests a second is what it gives."
        ),
        evidence: [("busy".into(), 0.99)].into(),
    };
    let row = HostResult {
        name: name.clone(),
        renamed: None,
        verdict: Verdict::Valid,
        iops: Some(iops),
        mb_per_s: Some(iops * 4096.0 / 1e6),
        latency_ns: vec![(Kind::Read, [Some(180_224 + rank as u64), Some(912_384 + rank as u64)])],
        cpu_ns_per_op: Some(5_123.25 + rank as f64),
        limiter: limiter.name.clone(),
    };
    let host = HostRecord {
        rank: rank as u32,
        name: format!("node{rank:05}.cluster.example.org"),
        session: Some(format!("/home/user/.local/share/fathom/20261124-101112-node{rank:05}.fathom")),
        verdict: Some(Verdict::Valid),
        reason: "60 checks hold.".into(),
        results: vec![row],
        findings: [u32::from(rank.is_multiple_of(3)), 1],
        kernel: None,
        target_bytes: vec![1 << 30],
    };
    let mut limited = Vec::new();
    LimitedHosts::add(
        &mut limited,
        [LimitedHosts { result: name, hosts: 1, slowest: SlowestHost { rank: rank as u32, iops }, limiter }],
    );
    HostReports {
        hosts: vec![host],
        checks: CheckedOnHosts::from_host(rank as u32, &findings),
        limited,
        rest: RunParts::default(),
    }
}

/// The cost of sending one value of each host to rank 0.
#[derive(Debug, Default)]
struct Traffic {
    /// Bytes that rank 0 received.
    bytes: usize,
    /// Time in which rank 0 decoded the messages and added them up.
    time: Duration,
}

/// Sends the value of each host to rank 0, and adds it there.
fn send_to_rank_0(size: usize, message: impl Fn(usize) -> Message, mut add: impl FnMut(Message)) -> Traffic {
    let mut traffic = Traffic::default();
    for rank in 1..size {
        let packets = message(rank).packets();
        traffic.bytes += packets.iter().map(Vec::len).sum::<usize>();
        let began = Instant::now();
        add(message::read(&packets).unwrap_or_else(|| panic!("no message")));
        traffic.time += began.elapsed();
    }
    traffic
}

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Adds up a run and the final reports of `size` hosts, and compares both with the sums of the values themselves. Returns the growth of
/// memory in bytes until rank 0 had everything.
fn simulate(size: usize) -> usize {
    let before = resident();
    let mut times = run_on_host(0, None).times();
    let of_times = send_to_rank_0(
        size,
        |rank| Message::Times(run_on_host(rank, None).times()),
        |message| match message {
            Message::Times(its) => merge::add_times(&mut times, its),
            other => panic!("{other:?}"),
        },
    );
    let common = merge::common_times(&times);
    let mut sum = run_on_host(0, Some(&common));
    let run = |rank| Message::RunParts(Box::new(run_on_host(rank, Some(&common))));
    let of_run = send_to_rank_0(size, run, |message| match message {
        Message::RunParts(its) => sum.add(*its),
        other => panic!("{other:?}"),
    });
    let mut end = host_reports(0);
    let of_end = send_to_rank_0(
        size,
        |rank| Message::Done(Box::new(host_reports(rank))),
        |message| match message {
            Message::Done(its) => end.add(*its),
            other => panic!("{other:?}"),
        },
    );
    let memory = resident().saturating_sub(before);
    let text = format!(
        "{size} hosts: times {of_times:?}, run {of_run:?}, reports {of_end:?}; memory grew by {memory} bytes"
    );
    println!("{text}");
    let traffic = [of_times, of_run, of_end];
    assert!(traffic.iter().map(|t| t.bytes).sum::<usize>() < size * HOST_BYTES_MAX, "{text}");
    assert!(traffic.iter().map(|t| t.time).sum::<Duration>() < HOST_TIME_MAX * size as u32, "{text}");
    let mut all: Times = run_on_host(0, None).times();
    (1..size).for_each(|rank| merge::add_times(&mut all, run_on_host(rank, None).times()));
    assert_eq!(times, all);
    let mut runs = run_on_host(0, Some(&common));
    (1..size).for_each(|rank| runs.add(run_on_host(rank, Some(&common))));
    assert!(sum == runs, "encoding a run changes nothing");
    let mut reports = host_reports(0);
    (1..size).for_each(|rank| reports.add(host_reports(rank)));
    end.hosts.sort_by_key(|host| host.rank);
    assert!(end == reports, "encoding a report changes nothing");
    let names: Vec<String> = (0..size).map(|rank| format!("h{rank}")).collect();
    let merged = sum.phases.into_iter().map(|phase| phase.merged(&names)).next();
    let merged = merged.unwrap_or_else(|| panic!("nothing"));
    let stream = &merged.end.streams[0];
    assert_eq!(stream.kinds[&Kind::Read].latency.count(), 2_000 * size as u64, "no operation is lost");
    let shortest = 10_000_000_000.0 / merged.longest_ns as f64;
    let common = stream.common.as_ref().map_or(0, |c| c.kinds[&Kind::Read][0]) as f64 / (1_920 * size) as f64;
    assert!(
        common < 1.0 && common > shortest,
        "{common} of the operations in the time of all, which is {shortest}"
    );
    memory
}

#[test]
fn rank_0_adds_up_a_thousand_hosts() {
    simulate(1_000);
}

#[test]
#[ignore = "takes a minute in a debug build, and memory is that of this test alone"]
fn ten_thousand_hosts_need_less_than_a_hundred_megabytes_at_rank_0() {
    let memory = simulate(10_000);
    assert!(memory < 100 << 20, "{memory} bytes");
}
