//! The end of a measurement on several hosts: collects the reports of all hosts on rank 0, and decides which host was lost.
//!
//! 1. Each host sends its report to rank 0, which waits for all of them.
//! 2. If a host may be lost, or a signal came, rank 0 waits only a short time for the last messages. The lost host is one that sent no
//!    last message and has been silent.
//! 3. Rank 0 closes the merged session and writes the report. The other hosts wait for the report, because the launcher would end rank 0
//!    if a host left earlier.

use super::merge::RunParts;
use super::protocol::Hosts;
use crate::merge;
use crate::merge::HostReports;
use crate::message::{EarlyEnd, Message};
use crate::transport::HEARTBEAT_INTERVAL;
use history::session::Session;
use model::fleet::{Fleet, HostGroup, HostRecord, Lost};
use model::name;
use model::record::{End, Record, RunEnding};
use model::units::{show_bytes, show_counted};
use output::failure::Failure;
use output::failure::INTERRUPTED;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// If the measurement ended early without a signal, rank 0 waits at most this long for the last message of one more host.
const NEXT_LAST_MESSAGE: Duration = Duration::from_millis(400);
/// How long rank 0 waits in total for the last messages of all hosts, if the measurement ended early without a signal.
const ALL_LAST_MESSAGES: Duration = Duration::from_secs(2);
/// How long rank 0 waits for last messages after a signal. A launcher kills the process one second after the signal, and the report must
/// be written by then.
const LAST_MESSAGES_AFTER_SIGNAL: Duration = Duration::from_millis(300);
/// How long rank 0 waits for last messages after a signal if a host without a last message was heard less than [`LOST_AFTER`] ago. That
/// host may be dead: it counts as silent only after [`LOST_AFTER`].
const LAST_MESSAGES_OF_RECENT_HOST: Duration = Duration::from_millis(600);
/// Maximum number of hosts with a note about the broken run.
const BROKEN_RUN_NOTES_MAX: usize = 16;
/// How long the other hosts wait for the report of rank 0 after the measurement ended early or was stopped. If a host left earlier, the
/// launcher would end rank 0.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// A host without a last message is lost if it has been silent for this long: two heartbeats are missing.
const LOST_AFTER: Duration = HEARTBEAT_INTERVAL.saturating_mul(2);

/// The outcome of the measurement on this host.
pub struct HostOutcome<'s> {
    /// The session that this host recorded in its own file.
    pub session: &'s Session,
    /// Whether a signal ended the measurement.
    pub interrupted: bool,
    /// Whether an error ended the measurement.
    pub failed: bool,
    /// When the measurement began.
    pub epoch: Instant,
}

/// The outcome of the measurement on all hosts.
pub struct MergedOutcome {
    /// The session of all hosts.
    pub session: Session,
    /// Whether a signal ended the measurement.
    pub interrupted: bool,
    /// Whether an error on any host ended the measurement.
    pub failed: bool,
}

/// The reports that rank 0 has received.
#[derive(Default)]
struct Reports {
    all: HostReports,
    /// Ranks of the hosts that have reported.
    heard: BTreeSet<u32>,
    /// Operations and bytes that each host issued in a broken run, by rank.
    issued: Vec<(u64, u64)>,
}

impl Reports {
    /// Adds the report of one host.
    fn add(&mut self, report: HostReports) {
        let Some(rank) = report.hosts.first().map(|host| host.rank).filter(|rank| self.heard.insert(*rank))
        else {
            return;
        };
        if let Some(issued) = self.issued.get_mut(rank as usize) {
            *issued = issued_totals(&report.rest);
        }
        self.all.add(report);
    }
}

impl Hosts {
    /// Sends this host's reports to rank 0, which merges them. Returns the merged session of all
    /// hosts on rank 0, and `None` on all other ranks.
    ///
    /// # Errors
    /// [`Failure::Elsewhere`] on other ranks if an error or a signal ended the measurement. A
    /// failure on any rank if its session cannot be read back, and on rank 0 if the merged session
    /// cannot be written.
    pub fn gather(&self, seen: &HostOutcome) -> Result<Option<MergedOutcome>, Failure> {
        let record = seen.session.record()?;
        self.notice(seen, &record);
        let file = seen.session.is_kept().then(|| name::text(seen.session.path()));
        let agreed_runs = self.state().agreed_runs;
        let rest: Vec<_> = record.all_attempts().into_iter().skip(agreed_runs).cloned().collect();
        let rest = self.local_run_parts(&rest, &[], Vec::new());
        let own = HostReports::on(self.rank as u32, &self.names[self.rank], &record, file, rest);
        if self.rank > 0 {
            self.send(0, Message::Done(Box::new(own)));
            self.wait_for_bye();
            return self.outcome_reported_by_rank_0(seen.interrupted).map(|()| None);
        }
        let (all, broken_run_notes) = self.collect_reports(own, seen);
        self.conclude(seen, &record, all, broken_run_notes)
    }

    /// Rank 0: returns whether a signal ended the measurement, on this host or another one.
    pub(super) fn ended_by_signal(&self, interrupted: bool) -> bool {
        self.shared.early_end().map_or(interrupted, |(over, _)| over.code == INTERRUPTED)
    }

    /// Rank 0: returns the deadline for last messages, counted from `began`.
    pub(super) fn last_messages_deadline(
        &self,
        began: Instant,
        by_signal: bool,
        has_answered: impl Fn(usize) -> bool,
    ) -> Instant {
        let may_be_alive =
            |(rank, silent): (usize, Duration)| rank > 0 && !has_answered(rank) && silent <= LOST_AFTER;
        began
            + match by_signal {
                false => ALL_LAST_MESSAGES,
                true if self.shared.silences().into_iter().any(may_be_alive) => LAST_MESSAGES_OF_RECENT_HOST,
                true => LAST_MESSAGES_AFTER_SIGNAL,
            }
    }

    /// Rank 0, after it has read the last messages: decides which host was lost. Only a host that
    /// sent no last message and has been silent for more than [`LOST_AFTER`] can be lost. If a process is killed, the
    /// launcher notices it before rank 0 and ends the other processes with a signal. Then the lost
    /// host, not the signal, is the cause. On further hosts, MPI calls may hang until the launcher
    /// ends these hosts. The reason names or counts them after the lost host.
    ///
    /// Changes nothing if no host was lost, or if a host has reported an error or is already known to be lost.
    pub(super) fn identify_lost_host(&self, ended: Instant, has_answered: impl Fn(usize) -> bool) {
        let is_lost = |rank: usize| rank > 0 && !has_answered(rank);
        let is_certain =
            |over: &EarlyEnd| over.code != INTERRUPTED && (!over.is_silence || is_lost(over.rank));
        if self.shared.early_end().is_some_and(|(over, _)| is_certain(&over)) {
            return;
        }
        let silent = self.shared.most_silent(is_lost).filter(|(_, silent)| *silent > LOST_AFTER);
        let Some((rank, silent)) = silent else { return };
        let others = match self.shared.silent_about_as_long(rank, silent, is_lost).as_slice() {
            [] => String::new(),
            [(other, theirs)] => format!("; {} for {:.1} s", self.name(*other), theirs.as_secs_f64()),
            more => format!("; {} other hosts for almost as long", more.len()),
        };
        let why =
            format!("has been silent for {:.1} s, without a last message{others}", silent.as_secs_f64());
        self.shared.replace_reason(EarlyEnd { rank, why, code: 3, is_silence: true }, ended);
    }

    /// Informs the other hosts if the measurement ended early on this one.
    fn notice(&self, seen: &HostOutcome, record: &Record) {
        if self.shared.early_end().is_some() || !(seen.failed || seen.interrupted) {
            return;
        }
        if self.rank > 0 || seen.failed {
            self.end_all(match record.end.as_ref().map(|e| &e.ending) {
                Some(RunEnding::Failed(why)) => Failure::Refused(why.clone()),
                _ => Failure::Interrupted,
            });
        } else {
            self.announce_signal();
        }
    }

    /// Rank 0: informs all other hosts of a signal. A lost host is identified later, after the last messages.
    pub(super) fn announce_signal(&self) {
        let over = EarlyEnd { rank: 0, why: "was interrupted".into(), code: INTERRUPTED, is_silence: false };
        self.send_each(|_| Message::EarlyEnd(over.clone()));
    }

    /// Waits until rank 0 has written its report, so that the launcher does not end rank 0. Also waits if rank 0 ended the
    /// measurement: it still writes its report, unless it is lost, which this host cannot know for sure.
    pub(super) fn wait_for_bye(&self) {
        let mut until = None;
        loop {
            match self.receive_until(0, until) {
                Ok(Message::Bye) => break,
                Ok(_) => {}
                // The measurement ended early or was stopped. Rank 0 still writes its report.
                Err(_) if until.is_none() => until = Some(Instant::now() + REPORT_TIMEOUT),
                Err(_) => break,
            }
        }
    }

    /// Returns the failure with which a host other than rank 0 ends. Rank 0 has reported the outcome.
    pub(super) fn outcome_reported_by_rank_0(&self, interrupted: bool) -> Result<(), Failure> {
        match self.shared.early_end() {
            Some((over, _)) => Err(Failure::Elsewhere(over.code)),
            None if interrupted => Err(Failure::Elsewhere(INTERRUPTED)),
            None => Ok(()),
        }
    }

    /// Whether rank 0 was lost, or ended the measurement with an error of exit code 3.
    pub(super) fn has_lost_rank_0(&self) -> bool {
        self.shared.early_end().is_some_and(|(over, _)| over.rank == 0 && over.code == 3)
    }

    /// Rank 0: closes the session of all hosts with the reports of the hosts and with notes about the broken run.
    fn conclude(
        &self,
        seen: &HostOutcome,
        record: &Record,
        all: HostReports,
        broken_run_notes: Vec<String>,
    ) -> Result<Option<MergedOutcome>, Failure> {
        let HostReports { mut hosts, checks, limited, rest } = all;
        let reported: BTreeSet<u32> = hosts.iter().map(|host| host.rank).collect();
        let silent: Vec<usize> = (0..self.size).filter(|rank| !reported.contains(&(*rank as u32))).collect();
        hosts.extend(silent.iter().map(|rank| self.record_without_results(*rank)));
        hosts.sort_by_key(|host| host.rank);
        for (host, kernel) in hosts.iter_mut().zip(&self.state().kernels) {
            host.kernel = *kernel;
        }
        // These runs were broken off, or only some hosts measured them.
        if !rest.phases.is_empty() {
            self.keep(rest, &[], None)?;
        }
        let was_interrupted = seen.interrupted;
        let over = self.shared.early_end();
        let lost = over.as_ref().map(|(over, at)| Lost {
            host: self.name(over.rank),
            why: over.why.clone(),
            at_s: at.saturating_duration_since(seen.epoch).as_secs_f64(),
        });
        let interrupted = over.as_ref().is_some_and(|(over, _)| over.code == INTERRUPTED);
        let (ending, notes, clock_drift_ppm) = match (&record.end, &over) {
            (Some(end), None) => (end.ending.clone(), end.notes.clone(), end.clock_drift_ppm),
            (_, Some(_)) if interrupted => (RunEnding::Interrupted, broken_run_notes, None),
            (_, Some((over, _))) => {
                let why = format!("{} {}", self.name(over.rank), over.why);
                (RunEnding::Failed(why), broken_run_notes, None)
            }
            (None, None) => (RunEnding::Interrupted, Vec::new(), None),
        };
        let failed = matches!(ending, RunEnding::Failed(_));
        let missing = (silent.len() > 1).then(|| {
            let which = silent.iter().map(|rank| *rank as u32);
            format!("{} sent no results", merge::join_names(&HostGroup::from_ranks(which), &self.names))
        });
        let notes = notes.into_iter().chain(missing);
        let notes = notes.chain(self.shared.progress().hung().iter().cloned()).collect();
        let seen = Fleet { hosts, checks, limited, lost, ..Fleet::default() };
        let session = self.state().merged_session.end(seen, End { ending, notes, clock_drift_ppm })?;
        let interrupted = was_interrupted && !failed;
        Ok(session.map(|session| MergedOutcome { session, interrupted, failed }))
    }

    /// Rank 0: receives the reports of all hosts. If the measurement ends early, waits only for last messages, decides which host was lost,
    /// and notes the progress of the hosts in the broken run.
    fn collect_reports(&self, own: HostReports, seen: &HostOutcome) -> (HostReports, Vec<String>) {
        let mut reports = Reports { issued: vec![(0, 0); self.size], ..Reports::default() };
        reports.add(own);
        let mut is_early = seen.interrupted || self.shared.early_end().is_some();
        for rank in 1..self.size {
            if is_early {
                break;
            }
            match self.receive(rank) {
                Ok(Message::Done(report)) => reports.add(*report),
                Ok(other) => {
                    self.unexpected_message(rank, &other);
                    is_early = true;
                }
                Err(_) => is_early = true,
            }
        }
        if !is_early {
            return (reports.all, Vec::new());
        }
        if !seen.interrupted && self.shared.early_end().is_none() {
            // The signal came while rank 0 waited for the other hosts.
            self.end_all(Failure::Interrupted);
        }
        let (began, by_signal) = (Instant::now(), self.ended_by_signal(seen.interrupted));
        while reports.heard.len() < self.size {
            let each = Instant::now() + NEXT_LAST_MESSAGE;
            let most =
                self.last_messages_deadline(began, by_signal, |rank| reports.heard.contains(&(rank as u32)));
            match self.receive_any(if by_signal { most } else { most.min(each) }) {
                Some((_, Message::Done(report))) => reports.add(*report),
                Some(_) => {}
                None => break,
            }
        }
        self.identify_lost_host(began, |rank| reports.heard.contains(&(rank as u32)));
        let notes = self.broken_run_notes(&reports.issued);
        (reports.all, notes)
    }

    /// Returns a note on the progress of each host in the broken run, as far as known.
    fn broken_run_notes(&self, done: &[(u64, u64)]) -> Vec<String> {
        let describe_progress = |(rank, (ops, bytes)): (usize, &(u64, u64))| {
            let name = self.name(rank);
            if *ops > 0 {
                let (ops, bytes) = (show_counted(*ops, "operation"), show_bytes(*bytes));
                return Some(format!("{name} had issued {ops} ({bytes}) in the interrupted run"));
            }
            let operations = self.shared.progress().operations(rank);
            (operations > 0).then(|| {
                let ops = show_counted(operations, "operation");
                format!("{name} had completed {ops} of the interrupted run at its last heartbeat")
            })
        };
        let mut all: Vec<String> = done.iter().enumerate().filter_map(describe_progress).collect();
        let more = all.len().saturating_sub(BROKEN_RUN_NOTES_MAX);
        all.truncate(BROKEN_RUN_NOTES_MAX);
        all.extend((more > 0).then(|| format!("further hosts that had begun the interrupted run: {more}")));
        all
    }

    fn record_without_results(&self, rank: usize) -> HostRecord {
        let reason = "the host sent no results".to_owned();
        HostRecord { rank: rank as u32, name: self.name(rank), reason, ..HostRecord::default() }
    }
}

/// Returns how many operations and bytes were issued in all phases together.
fn issued_totals(ran: &RunParts) -> (u64, u64) {
    let issued = ran.phases.iter().flat_map(|p| &p.end.streams).flat_map(|s| s.issued.values());
    issued.fold((0, 0), |sum, i| (sum.0 + i.ops, sum.1 + i.bytes))
}
