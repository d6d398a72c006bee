//! Hosts as threads of this process: what they say to each other at each step, and when one of them says nothing.
//!
//! For: the protocol without MPI. Not for: what is measured.

use super::hosts::Hosts;
use super::letter::Hello;
use super::net::{Net, Threads};
use crate::failure::Failure;
use model::record::RunStart;
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
