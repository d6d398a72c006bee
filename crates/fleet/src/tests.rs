//! The protocol between hosts, with a thread of this process in place of each host: normal runs, and hosts that fail or stop answering.

use super::gather::HostOutcome;
use super::protocol::Hosts;
use crate::message::Hello;
use crate::transport::{Network, ThreadNetwork};
use analysis::strategy::Summary;
use history::session::Session;
use model::job::Kind;
use model::record::{Attempt, Clock, Disturbance, Disturbed, End, Frame, Header, RunEnding};
use output::failure::Failure;
use simulated::{first_run, simulated_run};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

fn run_hosts(size: usize, each: impl Fn(Hosts) + Send + Sync) {
    run_hosts_on(ThreadNetwork::connect(size), each);
}

fn run_hosts_on(nets: Vec<ThreadNetwork>, each: impl Fn(Hosts) + Send + Sync) {
    let each = &each;
    std::thread::scope(|scope| {
        for net in nets {
            scope.spawn(move || {
                let me = Hello {
                    host: format!("h{}", net.rank()),
                    boot: net.rank().to_string(),
                    version: "1".into(),
                };
                let net = move || Ok(Box::new(net) as Box<dyn Network>);
                each(Hosts::join(net, me, 1).unwrap_or_else(|why| panic!("{why:?}")));
            });
        }
    });
}

#[test]
fn all_hosts_begin_at_the_same_time_and_leave_together() {
    let begun = Mutex::new(Vec::new());
    run_hosts(3, |hosts| {
        assert_eq!(hosts.names, ["h0", "h1", "h2"]);
        let Ok(Ok(at)) = hosts.common_start(&first_run(), None) else { panic!("no start") };
        assert!(at > Instant::now(), "messages arrive before the start time");
        begun.lock().unwrap_or_else(PoisonError::into_inner).push(at);
        hosts.end_phase(1_000);
        hosts.leave();
    });
    let begun = begun.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (first, last) = (begun.iter().min(), begun.iter().max());
    let apart = first.zip(last).map(|(first, last)| *last - *first);
    assert!(begun.len() == 3 && apart.is_some_and(|apart| apart < Duration::from_millis(20)), "{apart:?}");
}

#[test]
fn a_host_that_cannot_measure_ends_the_measurement_and_is_named() {
    run_hosts(3, |hosts| {
        if hosts.rank == 1 {
            let failure = hosts.end_all(Failure::Refused("no space is left".into()));
            assert!(matches!(failure, Failure::Elsewhere(3)), "rank 0 tells it");
            return hosts.leave();
        }
        let ended = hosts.common_start(&first_run(), None).err();
        match (hosts.rank, ended) {
            (0, Some(Failure::Refused(why))) => {
                assert!(why.starts_with("h1 cannot measure: no space"), "{why}");
                // Keep this host until the other hosts have received the message.
                std::thread::sleep(Duration::from_millis(100));
            }
            (2, Some(Failure::Elsewhere(3))) => {}
            (rank, other) => panic!("rank {rank}: {other:?}"),
        }
        hosts.leave();
    });
}

#[test]
fn rank_0_names_a_silent_host_and_stops_the_others() {
    let mut nets = ThreadNetwork::connect(3);
    for net in &mut nets {
        net.blocks_on_ended = true;
    }
    run_hosts_on(nets, |hosts| {
        let stop = Arc::default();
        hosts.shared.register_stop(&stop);
        if hosts.rank == 1 {
            // End without a message: the transport thread ends when the measuring thread does.
            return;
        }
        let since = Instant::now();
        let ended = hosts.common_start(&first_run(), None).err();
        assert!(since.elapsed() < Duration::from_secs(5) && stop.load(Ordering::Relaxed));
        match (hosts.rank, ended) {
            (0, Some(Failure::Refused(why))) => {
                assert!(why.starts_with("h1 has been silent for 3"), "{why}");
                std::thread::sleep(Duration::from_millis(100));
            }
            (2, Some(Failure::Elsewhere(3))) => {
                // Rank 0 announced why it ended the measurement, so rank 2 names host 1, not rank 0.
                assert_eq!(hosts.shared.early_end().map(|(over, _)| over.rank), Some(1));
            }
            (rank, other) => panic!("rank {rank}: {other:?}"),
        }
        hosts.leave();
    });
}

#[test]
fn no_host_begins_a_phase_that_one_cannot_begin() {
    run_hosts(3, |hosts| {
        let refused = (hosts.rank == 2).then(|| "queue depth 4096 is refused".to_owned());
        match hosts.common_start(&first_run(), refused) {
            Ok(Err(why)) => assert_eq!(why, "h2: queue depth 4096 is refused"),
            other => panic!("{other:?}"),
        }
        assert!(matches!(hosts.common_start(&first_run(), None), Ok(Ok(_))), "the next phase begins");
        hosts.end_phase(0);
        hosts.leave();
    });
}

/// With this number of hosts, the parent of the last host in the tree is rank 1, not rank 0.
const TWO_LEVELS: usize = 18;

#[test]
fn clocks_are_read_through_the_tree_except_that_of_a_lost_host() {
    for lost in [None, Some(TWO_LEVELS - 1)] {
        let read = Mutex::new(None);
        let is_gone = AtomicBool::new(lost.is_none());
        run_hosts(TWO_LEVELS, |hosts| {
            if Some(hosts.rank) == lost {
                // Drop the requests and wait until the transport thread has ended: until then it answers pings.
                let transport = hosts.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
                drop(hosts);
                if let Some(transport) = transport {
                    transport.join().unwrap_or_else(|_| panic!("the transport thread panicked"));
                }
                return is_gone.store(true, Ordering::SeqCst);
            }
            if hosts.rank == 0 {
                while !is_gone.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let readings = hosts.read_clocks();
                *read.lock().unwrap_or_else(PoisonError::into_inner) = Some(readings);
            }
            // The other hosts remain until all clocks are read, because they must answer pings.
            while read.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            hosts.leave();
        });
        let readings = read.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_default();
        assert_eq!(readings.len(), TWO_LEVELS);
        for (rank, reading) in readings.iter().enumerate() {
            // All hosts read the same clock here, so the offset of a reading is its error.
            let is_right = reading.is_some_and(|r| r.offset_ns.unsigned_abs() <= r.error_ns() + 2);
            assert_eq!(is_right, Some(rank) != lost, "{rank}: {readings:?}");
        }
    }
}

/// The summary of a run on a host. The run was disturbed on the last host.
fn summary(rank: usize) -> Summary {
    let at = Attempt { job: 0, repeat: 0, attempt: 0, offered_iops: None, disturbed: false, complete: true };
    let by = vec![Disturbance::StolenCpu { share: 0.2 }];
    let disturbed = (rank == TWO_LEVELS - 1).then_some(Disturbed { attempt: 0, disturbances: by });
    Summary { disturbed, ..Summary::from_phases(at, std::iter::empty()) }
}

#[test]
fn all_hosts_agree_on_the_sum_of_a_run_and_on_disturbances_of_any_host() {
    let agreed = Mutex::new(Vec::new());
    run_hosts(TWO_LEVELS, |hosts| {
        let (run, intervals) = simulated_run(hosts.rank as u64);
        let own = summary(hosts.rank);
        let (summary, _) = hosts
            .merge_run(&[run], &[intervals], &own, |_| {})
            .unwrap_or_else(|why| panic!("rank {}: {why:?}, {:?}", hosts.rank, hosts.shared.early_end()));
        agreed.lock().unwrap_or_else(PoisonError::into_inner).push(summary);
        hosts.leave();
    });
    let agreed = agreed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let own = simulated_run(0).0.end.map_or(0, |e| e.streams[0].kinds[&Kind::Read].latency.count());
    assert_eq!((agreed.len(), agreed[0].latency.count()), (TWO_LEVELS, own * TWO_LEVELS as u64));
    assert!(agreed.iter().all(|one| *one == agreed[0]), "all hosts get the same summary");
    assert!(agreed[0].disturbed.is_some(), "all hosts measure the run again");
}

#[test]
fn hosts_without_heartbeats_between_them_are_not_lost_between_runs() {
    run_hosts(TWO_LEVELS, |hosts| {
        for round in 0..2 {
            let (run, intervals) = simulated_run(hosts.rank as u64);
            let agreed = hosts.merge_run(&[run], &[intervals], &summary(hosts.rank), |_| {});
            agreed
                .unwrap_or_else(|why| panic!("rank {}: {why:?}, {:?}", hosts.rank, hosts.shared.early_end()));
            // The first round lasts longer than the maximum silence of a host.
            std::thread::sleep(Duration::from_millis(1300 * (1 - round)));
            assert!(hosts.shared.end_if_silent().is_none(), "rank {}", hosts.rank);
        }
        hosts.leave();
    });
}

/// The session of a host without measurements.
fn session(name: &str) -> Session {
    let model::plan::Planned { plan, machine } = super::settle::planned("sync", 1 << 30, "6.1");
    let mut session = Session::open(name, false).unwrap_or_else(|why| panic!("{why:?}"));
    session.append(&Frame::Header(Box::new(header(plan, machine)))).unwrap_or_else(|why| panic!("{why:?}"));
    let (ending, notes) = (RunEnding::Complete, Vec::new());
    let end = Frame::End(End { ending, notes, clock_drift_ppm: None });
    session.append(&end).unwrap_or_else(|why| panic!("{why:?}"));
    session
}

fn header(plan: model::plan::Plan, machine: model::machine::Machine) -> Header {
    let clock = Clock { name: "clock_monotonic".into(), reason: None, cost_ps: 0 };
    let (version, started, hosts) = ("1".into(), "2026-01-01T00:00:00Z".into(), vec![machine]);
    Header { format: 1, version, started, plan, hosts, clock, self_test: model::record::SelfTest::default() }
}

/// The fleet in rank 0's result if these hosts fall silent before they report.
fn gathered(silent: &[usize]) -> model::fleet::Fleet {
    let all = Mutex::new(None);
    run_hosts(TWO_LEVELS, |hosts| {
        let session = session(&format!("gathered-{}", hosts.rank));
        let own = session.record().unwrap_or_else(|why| panic!("{why:?}"));
        hosts.begin(&own.header, "gathered", false).unwrap_or_else(|why| panic!("{why:?}"));
        if silent.contains(&hosts.rank) {
            return;
        }
        let seen =
            HostOutcome { session: &session, interrupted: false, failed: false, epoch: Instant::now() };
        let gathered = hosts.gather(&seen);
        if hosts.rank == 0 {
            let Ok(Some(gathered)) = gathered else { panic!("rank 0 has no session of all") };
            let record = gathered.session.record().unwrap_or_else(|why| panic!("{why:?}"));
            *all.lock().unwrap_or_else(PoisonError::into_inner) = record.fleet;
        }
        hosts.leave();
    });
    let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    *all.unwrap_or_else(|| panic!("no session of all"))
}

#[test]
fn rank_0_gets_the_final_reports_of_all_hosts() {
    let fleet = gathered(&[]);
    let ranks: Vec<u32> = fleet.hosts.iter().map(|h| h.rank).collect();
    assert_eq!(ranks, (0..TWO_LEVELS as u32).collect::<Vec<_>>());
    assert!(fleet.hosts.iter().all(|h| h.verdict.is_some()) && fleet.lost.is_none(), "{fleet:?}");
}

#[test]
fn losing_a_host_keeps_the_reports_of_all_others() {
    let fleet = gathered(&[1]);
    assert_eq!(fleet.lost.map(|lost| lost.host).as_deref(), Some("h1"));
    let silent: Vec<&str> =
        fleet.hosts.iter().filter(|h| h.verdict.is_none()).map(|h| h.name.as_str()).collect();
    assert_eq!((silent, fleet.hosts.len()), (vec!["h1"], TWO_LEVELS));
}

/// Returns what rank 0 concludes about the lost host if host 1 is killed at 450 ms and the launcher sends a signal to the others at 1,400
/// ms. Host 2 gets the signal `earlier` than rank 0, and no MPI call on it returns during `pause`, in ms.
fn lost_host(earlier: Duration, pause: Option<[u64; 2]>) -> model::fleet::Fleet {
    let (began, ms) = (Instant::now(), Duration::from_millis);
    let mut nets = ThreadNetwork::connect(3);
    nets[2].pause = pause.map(|pause| pause.map(|at| began + ms(at)));
    let all = Mutex::new(None);
    run_hosts_on(nets, |hosts| {
        let session = session(&format!("lost-{}-{}", earlier.as_millis(), hosts.rank));
        let own = session.record().unwrap_or_else(|why| panic!("{why:?}"));
        hosts.begin(&own.header, "lost", false).unwrap_or_else(|why| panic!("{why:?}"));
        let at = [ms(1400), ms(450), ms(1400).saturating_sub(earlier)][hosts.rank];
        std::thread::sleep(at.saturating_sub(began.elapsed()));
        if hosts.rank == 1 {
            return;
        }
        let seen = HostOutcome { session: &session, interrupted: true, failed: false, epoch: began };
        if let Ok(Some(gathered)) = hosts.gather(&seen) {
            let record = gathered.session.record().unwrap_or_else(|why| panic!("{why:?}"));
            assert!(hosts.rank == 0 && gathered.failed && !gathered.interrupted);
            *all.lock().unwrap_or_else(PoisonError::into_inner) = record.fleet;
        }
        hosts.leave();
    });
    let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    *all.unwrap_or_else(|| panic!("no session of all"))
}

#[test]
fn a_killed_host_is_lost_even_if_another_reports_the_launchers_signal_first() {
    let lost = lost_host(Duration::from_millis(200), None).lost.unwrap_or_else(|| panic!("no host is lost"));
    assert!(lost.host == "h1" && lost.why.starts_with("has been silent for "), "{lost:?}");
}

#[test]
fn a_host_that_sends_its_last_message_is_not_lost() {
    let fleet = lost_host(Duration::ZERO, Some([300, 1500]));
    let lost = fleet.lost.as_ref().unwrap_or_else(|| panic!("no host is lost: {fleet:?}"));
    assert!(lost.host == "h1" && !lost.why.contains("h2"), "{lost:?}");
    let missing: Vec<&str> =
        fleet.hosts.iter().filter(|host| host.verdict.is_none()).map(|host| host.name.as_str()).collect();
    assert_eq!(missing, ["h1"]);
}

#[test]
fn hosts_wait_until_all_have_made_their_files() {
    let made = std::sync::atomic::AtomicUsize::new(0);
    run_hosts(3, |hosts| {
        for round in 1..=2 {
            std::thread::sleep(Duration::from_millis(20 * (hosts.rank as u64 + round) % 50));
            made.fetch_add(1, Ordering::SeqCst);
            let reason = hosts.first_reason(None).unwrap_or_else(|why| panic!("{why:?}"));
            assert!(made.load(Ordering::SeqCst) >= 3 * round as usize && reason.is_none());
        }
        hosts.leave();
    });
}

#[test]
fn all_hosts_learn_the_first_reason_and_its_host() {
    run_hosts(4, |hosts| {
        let own = (hosts.rank >= 2).then(|| format!("a file of rank {} is sparse", hosts.rank));
        let reason = hosts.first_reason(own).unwrap_or_else(|why| panic!("{why:?}"));
        assert_eq!(reason.as_deref(), Some("h2: a file of rank 2 is sparse"));
        hosts.leave();
    });
}

#[cfg(test)]
mod simulated;
