//! Hosts as threads of this process: what they say to each other at each step, and when one of them says nothing.
//!
//! For: the protocol without MPI. Not for: what is measured.

use super::hosts::Hosts;
use super::letter::{Hello, Inbox, Letter, Phase, Ran};
use super::merge;
use super::net::{Net, Threads};
use crate::failure::Failure;
use model::histogram::Histogram;
use model::job::Kind;
use model::record::{Cell, Interval, KindEnd, RunEnd, RunEnding, RunStart, StreamEnd, WorkerEnd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

fn met(size: usize, each: impl Fn(Hosts) + Send + Sync) {
    let each = &each;
    std::thread::scope(|scope| {
        for net in Threads::of(size) {
            scope.spawn(move || {
                let me = Hello {
                    host: format!("h{}", net.rank()),
                    boot: net.rank().to_string(),
                    version: "1".into(),
                };
                let net = move || Ok(Box::new(net) as Box<dyn Net>);
                each(Hosts::join(net, (me, 1)).unwrap_or_else(|why| panic!("{why:?}")));
            });
        }
    });
}

fn first_run() -> RunStart {
    let (repeat, attempt, offered_iops) = (0, 0, None);
    RunStart { job: 0, phase: 0, repeat, attempt, offered_iops, host: 0, at_ns: 0, target_bytes: vec![4096] }
}

#[test]
fn all_begin_at_one_time_and_leave_together() {
    let begun = Mutex::new(Vec::new());
    met(3, |hosts| {
        assert_eq!(hosts.names, ["h0", "h1", "h2"]);
        let at = hosts.gate(&first_run()).unwrap_or_else(|why| panic!("{why:?}"));
        assert!(at > Instant::now(), "letters travel faster than that");
        begun.lock().unwrap_or_else(PoisonError::into_inner).push(at);
        hosts.ended_phase(1_000);
        hosts.leave();
    });
    let begun = begun.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (first, last) = (begun.iter().min(), begun.iter().max());
    let apart = first.zip(last).map(|(first, last)| *last - *first);
    assert!(begun.len() == 3 && apart.is_some_and(|apart| apart < Duration::from_millis(20)), "{apart:?}");
}

#[test]
fn a_host_that_cannot_measure_ends_it_for_all_and_is_named() {
    met(3, |hosts| {
        if hosts.rank == 1 {
            let failure = hosts.end_all(Failure::Refused("no space is left".into()));
            assert!(matches!(failure, Failure::Elsewhere(3)), "rank 0 tells it");
            return hosts.leave();
        }
        let ended = hosts.gate(&first_run()).err();
        match (hosts.rank, ended) {
            (0, Some(Failure::Refused(why))) => {
                assert!(why.starts_with("h1 cannot measure: no space"), "{why}");
                // The others hear of it before this one is gone.
                std::thread::sleep(Duration::from_millis(100));
            }
            (2, Some(Failure::Elsewhere(3))) => {}
            (rank, other) => panic!("rank {rank}: {other:?}"),
        }
        hosts.leave();
    });
}

#[test]
fn a_host_that_falls_silent_is_named_by_rank_0_and_stops_the_others() {
    met(3, |hosts| {
        let stop = Arc::default();
        hosts.shared.stops(&stop);
        if hosts.rank == 1 {
            // Gone without a word: its post ends with its orders.
            return;
        }
        let since = Instant::now();
        let ended = hosts.gate(&first_run()).err();
        assert!(since.elapsed() < Duration::from_secs(5) && stop.load(Ordering::Relaxed));
        match (hosts.rank, ended) {
            (0, Some(Failure::Refused(why))) => {
                assert!(why.starts_with("h1 has been silent for 3"), "{why}");
                std::thread::sleep(Duration::from_millis(100));
            }
            (2, Some(Failure::Elsewhere(3))) => {}
            (rank, other) => panic!("rank {rank}: {other:?}"),
        }
        hosts.leave();
    });
}

/// Hosts of a simulated measurement.
const SIMULATED: usize = 1_000;
/// Bytes that a run of ten seconds on one host may have as a letter.
const MOST_BYTES_OF_A_RUN: usize = 64 << 10;
/// How long rank 0 may take to read and merge what all of them say of a run. A release build takes a fifth.
const MOST_MERGING: Duration = Duration::from_secs(20);

/// A run of ten seconds on a host: a latency of every size from 50 us on, and a row for each interval.
fn simulated_run(rank: u64) -> Ran {
    let mut latency = Histogram::new();
    (0..20_000).for_each(|i: u64| latency.record(50_000 + (i * i) % (3_000_000 + rank)));
    let (ops, bytes) = (latency.count(), latency.count() * 4096);
    let row = |at: u64| Interval {
        stream: 0,
        start_ns: at * 31_250_000,
        end_ns: (at + 1) * 31_250_000 + rank,
        depth_ns: 1_000_000_000,
        cells: [(Kind::Read, Cell(ops / 320, bytes / 320, 60_000, 900_000, 2_900_000))].into(),
    };
    let kinds = [(Kind::Read, KindEnd { bytes, latency, open: None })].into();
    let stream = StreamEnd { window_ns: 10_000_000_000, kinds, ..StreamEnd::default() };
    let workers = vec![WorkerEnd { ops, ..WorkerEnd::default() }];
    let end = RunEnd { streams: vec![stream], workers, ..RunEnd::without(RunEnding::Complete) };
    Ran {
        phases: vec![Phase {
            start: first_run(),
            end,
            course: (0..320).map(row).collect(),
            late_ns: Some(0),
        }],
        disturbed: Vec::new(),
    }
}

#[test]
fn what_a_thousand_hosts_say_of_a_run_is_read_and_merged_in_seconds() {
    let (mut bytes, mut most, mut reading) = (0, 0, Duration::ZERO);
    let mut all = Vec::new();
    for rank in 0..SIMULATED {
        let packets = Letter::Ran(Box::new(simulated_run(rank as u64))).packets();
        let own: usize = packets.iter().map(Vec::len).sum();
        (bytes, most) = (bytes + own, most.max(own));
        let (mut inbox, began) = (Inbox::default(), Instant::now());
        for packet in &packets {
            if let Some(Letter::Ran(ran)) = inbox.take(packet).unwrap_or_else(|why| panic!("{why}")) {
                all.push(*ran);
            }
        }
        reading += began.elapsed();
    }
    let began = Instant::now();
    let phases: Vec<(&str, &Phase)> = all.iter().map(|ran| ("h", &ran.phases[0])).collect();
    let merged = merge::merge(&phases).unwrap_or_else(|| panic!("nothing"));
    let merging = began.elapsed();
    let figures = format!("{bytes} bytes, {most} of one at most; read in {reading:?}, merged in {merging:?}");
    assert_eq!(
        merged.end.streams[0].kinds[&Kind::Read].latency.count(),
        20_000 * SIMULATED as u64,
        "{figures}"
    );
    assert!(most < MOST_BYTES_OF_A_RUN && reading + merging < MOST_MERGING, "{figures}");
    println!("{SIMULATED} hosts: {figures}");
}

#[test]
fn nobody_looks_for_files_before_all_have_made_theirs() {
    let made = std::sync::atomic::AtomicUsize::new(0);
    met(3, |hosts| {
        for round in 1..=2 {
            std::thread::sleep(Duration::from_millis(20 * (hosts.rank as u64 + round) % 50));
            made.fetch_add(1, Ordering::SeqCst);
            hosts.all_made().unwrap_or_else(|why| panic!("{why:?}"));
            assert!(made.load(Ordering::SeqCst) >= 3 * round as usize);
        }
        hosts.leave();
    });
}
