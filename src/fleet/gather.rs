//! Gathering: what every host says when it has measured, and what rank 0 makes of it when some of them say nothing.
//!
//! For: the end of a measurement on several hosts, in order or not. Not for: its runs ([`super::hosts`]), nor judging them together (crate
//! `analysis`).

use super::host_reports::HostReports;
use super::hosts::Hosts;
use super::letter::{Letter, Over};
use super::merge::RunParts;
use super::parts;
use super::post::BEAT;
use crate::failure::Failure;
use crate::session::Session;
use crate::signals::INTERRUPTED;
use model::fleet::{Fleet, HostSeen, Lost, Which};
use model::name;
use model::record::{Record, RunEnding};
use model::units::{show_bytes, show_count};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long rank 0 waits for the next of the last messages if a host is lost.
const LAST_WORDS: Duration = Duration::from_millis(400);
/// How long rank 0 waits for all last messages together.
const ALL_LAST_WORDS: Duration = Duration::from_secs(2);
/// How long rank 0 waits for all last messages after a signal: launchers kill a second after the signal, and the report must be written by then.
const LAST_WORDS_AFTER_SIGNAL: Duration = Duration::from_millis(300);
/// How long rank 0 waits for all last messages after a signal if a host that has not answered was heard just before the signal: it may have
/// died then, and is silent for [`SILENT`] soon.
const UNTIL_SILENT: Duration = Duration::from_millis(600);
/// Hosts whose part of a run that was broken off stands in the notes.
const MOST_TOLD: usize = 16;
/// How long the others wait until rank 0 has written its report: whoever leaves before makes the launcher end that too.
const REPORT: Duration = Duration::from_secs(5);
/// How long a host that sent no last message has been silent at least, to be called lost: two heartbeats are missing.
const SILENT: Duration = BEAT.saturating_mul(2);

/// What was measured on one host.
pub struct HostOutcome<'s> {
    /// The session of that host.
    pub session: &'s Session,
    /// A signal ended it.
    pub interrupted: bool,
    /// An error ended it.
    pub failed: bool,
    /// When it began.
    pub epoch: Instant,
}

/// What was measured on all of them.
pub struct Gathered {
    /// The session of all.
    pub session: Session,
    /// A signal ended it.
    pub interrupted: bool,
    /// An error ended it, here or on another host.
    pub failed: bool,
}

impl Hosts {
    /// Ends the measurement: rank 0 gets the session of all hosts in place of its own.
    ///
    /// # Errors
    /// [`Failure::Elsewhere`] on all other ranks where another host ended it, and where the session cannot be written.
    pub(super) fn gather(&self, seen: &HostOutcome) -> Result<Option<Gathered>, Failure> {
        let record = seen.session.record()?;
        self.notice(seen, &record);
        let file = seen.session.is_kept().then(|| name::text(seen.session.path()));
        let left = self.state().agreed;
        let rest: Vec<_> = record.measured().into_iter().skip(left).cloned().collect();
        let rest = self.ran(&rest, &[], Vec::new());
        let own = HostReports::on(self.rank as u32, &self.names[self.rank], (&record, file), rest);
        let all = if self.goes_straight(seen) { None } else { self.add_up(own.clone(), &|_| {}).ok() };
        match (self.rank, all) {
            (0, Some(Some(all))) => self.conclude(seen, &record, (all, Vec::new())),
            (0, _) => {
                self.is_interrupted_now(seen);
                let all = self.last_words(own, self.ended_by_signal(seen.interrupted));
                self.conclude(seen, &record, all)
            }
            // It went up, which is no use where somebody above is lost.
            (_, Some(_)) => self.wait_for_report(seen, Some(own)),
            (_, None) => {
                self.is_interrupted_now(seen);
                self.send(0, Letter::Done(Box::new(own)));
                self.wait_for_report(seen, None)
            }
        }
    }

    /// Whether what hosts say goes straight to rank 0: somebody may be lost, and with it what those below it say.
    fn goes_straight(&self, seen: &HostOutcome) -> bool {
        seen.interrupted || self.shared.over().is_some()
    }

    /// A signal came when all was measured and hosts waited for each other: all have to know.
    fn is_interrupted_now(&self, seen: &HostOutcome) {
        if !self.goes_straight(seen) {
            self.end_all(Failure::Interrupted);
        }
    }

    /// Rank 0: whether a signal ended the measurement, on this host or on another one that reported it first.
    pub(super) fn ended_by_signal(&self, interrupted: bool) -> bool {
        self.shared.over().map_or(interrupted, |(over, _)| over.code == INTERRUPTED)
    }

    /// Rank 0: until when it waits for last messages, which it began at `began`.
    pub(super) fn end_of_last_words(
        &self,
        began: Instant,
        by_signal: bool,
        has_answered: impl Fn(usize) -> bool,
    ) -> Instant {
        let may_be_alive =
            |(rank, silent): (usize, Duration)| rank > 0 && !has_answered(rank) && silent <= SILENT;
        began
            + match by_signal {
                false => ALL_LAST_WORDS,
                true if self.shared.silences().into_iter().any(may_be_alive) => UNTIL_SILENT,
                true => LAST_WORDS_AFTER_SIGNAL,
            }
    }

    /// Rank 0, after it has read the last messages: decides which host was lost. Only a host that sent no last message and has been
    /// silent since can be lost. If a process is killed, the launcher notices before rank 0 does, and ends the others with a signal: the
    /// lost host is the cause then. MPI may also stop on others until the launcher ends them: they are named after the lost host.
    ///
    /// Changes nothing if no host was lost, or if a host has reported an error or is already known to be lost.
    pub(super) fn decide_who_was_lost(&self, ended: Instant, has_answered: impl Fn(usize) -> bool) {
        let is_lost = |rank: usize| rank > 0 && !has_answered(rank);
        let is_certain = |over: &Over| over.code != INTERRUPTED && (!over.is_silence || is_lost(over.rank));
        if self.shared.over().is_some_and(|(over, _)| is_certain(&over)) {
            return;
        }
        let silent = self.shared.most_silent(is_lost).filter(|(_, silent)| *silent > SILENT);
        let Some((rank, silent)) = silent else { return };
        let others = match self.shared.as_silent_as(rank, silent, is_lost).as_slice() {
            [] => String::new(),
            [(other, theirs)] => format!(" and {} for {:.1} s", self.name(*other), theirs.as_secs_f64()),
            more => format!(" and {} other hosts for hardly less", more.len()),
        };
        let why =
            format!("has been silent for {:.1} s{others}, and sent no last message", silent.as_secs_f64());
        self.shared.replace_reason(Over { rank, why, code: 3, is_silence: true }, ended);
    }

    /// Tells the other hosts that the measurement is over if it ended here before its time.
    fn notice(&self, seen: &HostOutcome, record: &Record) {
        if self.shared.over().is_some() || !(seen.failed || seen.interrupted) {
            return;
        }
        if self.rank > 0 || seen.failed {
            self.end_all(match record.end.as_ref().map(|e| &e.ending) {
                Some(RunEnding::Failed(why)) => Failure::Refused(why.clone()),
                _ => Failure::Interrupted,
            });
        } else {
            self.tell_of_signal();
        }
    }

    /// Rank 0, which a signal has stopped: tells all others. Which host was lost, if any, is decided after their last messages.
    pub(super) fn tell_of_signal(&self) {
        let over = Over { rank: 0, why: "was interrupted".into(), code: INTERRUPTED, is_silence: false };
        self.send_each(|_| Letter::Over(over.clone()));
    }

    /// Waits until rank 0 has written the report of all, to which `own` goes again where it is over meanwhile: it may not have got there.
    fn wait_for_report(
        &self,
        seen: &HostOutcome,
        own: Option<HostReports>,
    ) -> Result<Option<Gathered>, Failure> {
        self.wait_for_bye(|| own.into_iter().for_each(|own| self.send(0, Letter::Done(Box::new(own)))));
        self.told_elsewhere(seen.interrupted).map(|()| None)
    }

    /// Rank 0 writes a report while the others wait, so that a launcher that notices their end does not end it. `over` is called where it is
    /// over meanwhile.
    pub(super) fn wait_for_bye(&self, over: impl FnOnce()) {
        let (mut until, mut over) = (None, Some(over));
        // Where it is rank 0 that was lost nobody writes one.
        while !self.is_orphan() {
            match self.hear_until(0, until) {
                Ok(Letter::Bye) => break,
                Ok(_) => {}
                // The report says so, and takes its time.
                Err(_) if until.is_none() => {
                    until = Some(Instant::now() + REPORT);
                    over.take().into_iter().for_each(|over| over());
                }
                Err(_) => break,
            }
        }
    }

    /// The failure of a host whose end rank 0 tells.
    pub(super) fn told_elsewhere(&self, interrupted: bool) -> Result<(), Failure> {
        match self.shared.over() {
            Some((over, _)) => Err(Failure::Elsewhere(over.code)),
            None if interrupted => Err(Failure::Elsewhere(INTERRUPTED)),
            None => Ok(()),
        }
    }

    /// Whether it is rank 0 that was lost.
    pub(super) fn is_orphan(&self) -> bool {
        self.shared.over().is_some_and(|(over, _)| over.rank == 0 && over.code == 3)
    }

    /// Rank 0: closes the session of all with what they say, and with what is told of the run that was broken off.
    fn conclude(
        &self,
        seen: &HostOutcome,
        record: &Record,
        (all, until_then): (HostReports, Vec<String>),
    ) -> Result<Option<Gathered>, Failure> {
        let HostReports { mut hosts, asked, limited, rest } = all;
        let said: BTreeSet<u32> = hosts.iter().map(|host| host.rank).collect();
        let silent: Vec<usize> = (0..self.size).filter(|rank| !said.contains(&(*rank as u32))).collect();
        hosts.extend(silent.iter().map(|rank| self.silent(*rank)));
        hosts.sort_by_key(|host| host.rank);
        for (host, kernel) in hosts.iter_mut().zip(&self.state().kernels) {
            host.kernel = *kernel;
        }
        // A run that was broken off, or measured by some of them alone.
        if !rest.phases.is_empty() {
            self.keep(rest, &[], None)?;
        }
        let was_interrupted = seen.interrupted;
        let over = self.shared.over();
        let lost = over.as_ref().map(|(over, at)| Lost {
            host: self.name(over.rank),
            why: over.why.clone(),
            at_s: at.saturating_duration_since(seen.epoch).as_secs_f64(),
        });
        let interrupted = over.as_ref().is_some_and(|(over, _)| over.code == INTERRUPTED);
        let (ending, notes, drift) = match (&record.end, &over) {
            (Some(end), None) => (end.ending.clone(), end.notes.clone(), end.clock_drift_ppm),
            (_, Some(_)) if interrupted => (RunEnding::Interrupted, until_then, None),
            (_, Some((over, _))) => {
                let why = format!("{} {}", self.name(over.rank), over.why);
                (RunEnding::Failed(why), until_then, None)
            }
            (None, None) => (RunEnding::Interrupted, Vec::new(), None),
        };
        let failed = matches!(ending, RunEnding::Failed(_));
        let missing = (silent.len() > 1).then(|| {
            let which = silent.iter().map(|rank| *rank as u32);
            format!("{} said nothing of what they measured", parts::named(&Which::of_all(which), &self.names))
        });
        let notes = notes.into_iter().chain(missing);
        let notes = notes.chain(self.shared.course().hung().iter().cloned()).collect();
        let seen = Fleet { hosts, asked, limited, lost, ..Fleet::default() };
        let session = self.state().whole.end(seen, (ending, notes, drift))?;
        let interrupted = was_interrupted && !failed;
        Ok(session.map(|session| Gathered { session, interrupted, failed }))
    }

    /// Rank 0: what hosts say straight to it where one of them is lost, which says nothing; and how far they were in the run that was broken
    /// off. What has come through the tree and was not read stands in those letters again.
    fn last_words(&self, own: HostReports, by_signal: bool) -> (HostReports, Vec<String>) {
        let began = Instant::now();
        let (mut all, mut heard) = (HostReports::default(), BTreeSet::new());
        let mut done = vec![(0, 0); self.size];
        let mut next = Some(own);
        while let Some(said) = next.take() {
            let ranks: Vec<u32> = said.hosts.iter().map(|host| host.rank).collect();
            if let [rank] = ranks.as_slice()
                && heard.insert(*rank)
            {
                if let Some(done) = done.get_mut(*rank as usize) {
                    *done = carried_out(&said.rest);
                }
                all.add(said);
            }
            while heard.len() < self.size && next.is_none() {
                let each = Instant::now() + LAST_WORDS;
                let most = self.end_of_last_words(began, by_signal, |rank| heard.contains(&(rank as u32)));
                match self.hear_any(if by_signal { most } else { most.min(each) }) {
                    Some((_, Letter::Done(said))) => next = Some(*said),
                    Some(_) => {}
                    None => break,
                }
            }
        }
        self.decide_who_was_lost(began, |rank| heard.contains(&(rank as u32)));
        let told = self.until_then(&done);
        (all, told)
    }

    /// What each host had done of the run that was broken off, as far as it is known: operations and bytes.
    fn until_then(&self, done: &[(u64, u64)]) -> Vec<String> {
        let of = |(rank, (ops, bytes)): (usize, &(u64, u64))| {
            let name = self.name(rank);
            if *ops > 0 {
                let (ops, bytes) = (show_count(*ops as f64), show_bytes(*bytes));
                return Some(format!(
                    "of the run that was broken off {name} had carried out {ops} operations, {bytes}"
                ));
            }
            let told = self.shared.course().operations(rank);
            (told > 0).then(|| {
                let ops = show_count(told as f64);
                format!("of the run that was broken off {name} had carried out {ops} operations when it was last heard")
            })
        };
        let mut all: Vec<String> = done.iter().enumerate().filter_map(of).collect();
        let more = all.len().saturating_sub(MOST_TOLD);
        all.truncate(MOST_TOLD);
        all.extend((more > 0).then(|| format!("{more} more hosts had begun the run that was broken off")));
        all
    }

    fn silent(&self, rank: usize) -> HostSeen {
        let reason = "it did not say what it measured".to_owned();
        HostSeen { rank: rank as u32, name: self.name(rank), reason, ..HostSeen::default() }
    }
}

/// Operations and bytes of all phases.
fn carried_out(ran: &RunParts) -> (u64, u64) {
    let issued = ran.phases.iter().flat_map(|p| &p.end.streams).flat_map(|s| s.issued.values());
    issued.fold((0, 0), |sum, i| (sum.0 + i.ops, sum.1 + i.bytes))
}
