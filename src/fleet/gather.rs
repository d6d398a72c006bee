//! Gathering: what every host says when it has measured, and what rank 0 makes of it when some of them say nothing.
//!
//! For: the end of a measurement on several hosts, in order or not. Not for: its runs ([`super::hosts`]), nor judging them together (crate
//! `analysis`).

use super::hosts::Hosts;
use super::letter::{Letter, Over, Ran};
use crate::failure::Failure;
use crate::session::Session;
use crate::signals::INTERRUPTED;
use analysis::Judging;
use model::finding::Outcome;
use model::fleet::{HostResult, HostSeen, Lost};
use model::name;
use model::record::{Record, RunEnding};
use model::report::{Figures, Measured, Report};
use model::units::{show_bytes, show_count};
use std::time::{Duration, Instant};

/// How long rank 0 waits for the others where one of them is lost: launchers kill a second after they have asked to end.
const LAST_WORDS: Duration = Duration::from_millis(400);
/// How long the others wait until rank 0 has written its report: whoever leaves before makes the launcher end that too.
const REPORT: Duration = Duration::from_secs(5);
/// Silence behind which a host was lost, where a signal ended the measurement: launchers notice a dead process before rank 0 does.
const SILENT: Duration = Duration::from_millis(700);

/// What was measured on one host.
pub struct Seen<'s> {
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
    pub(super) fn gather(&self, seen: &Seen) -> Result<Option<Gathered>, Failure> {
        let record = seen.session.record()?;
        self.notice(seen, &record);
        let file = seen.session.is_kept().then(|| name::text(seen.session.path()));
        let own = host_seen(&self.names[self.rank], &record, file);
        let left = self.state().agreed;
        let rest: Vec<_> = record.measured().into_iter().skip(left).cloned().collect();
        let rest = self.ran(&rest, &[], Vec::new());
        if self.rank > 0 {
            self.send(0, Letter::Done(Box::new(own), Box::new(rest)));
            return self.wait_for_report(seen);
        }
        self.conclude(seen, &record, (own, rest))
    }

    /// Says that it is over where it ended here before its time, and finds out who was lost where a signal ended it.
    fn notice(&self, seen: &Seen, record: &Record) {
        if self.shared.over().is_some() || !(seen.failed || seen.interrupted) {
            return;
        }
        if let Some((rank, silent)) = self.shared.most_silent().filter(|(_, silent)| *silent > SILENT)
            && self.rank == 0
        {
            let why = format!(
                "had been silent for {:.1} s when the launcher ended the measurement",
                silent.as_secs_f64()
            );
            let over = Over { rank, why, code: 3 };
            self.shared.end(over.clone());
            self.send_each(|_| Letter::Over(over.clone()));
            return;
        }
        if self.rank > 0 || seen.failed {
            self.end_all(match record.end.as_ref().map(|e| &e.ending) {
                Some(RunEnding::Failed(why)) => Failure::Refused(why.clone()),
                _ => Failure::Interrupted,
            });
        } else {
            self.send_each(|_| {
                Letter::Over(Over { rank: 0, why: "was interrupted".into(), code: INTERRUPTED })
            });
        }
    }

    /// Rank 0 writes the report while the others wait, so that a launcher that notices their end does not end it.
    fn wait_for_report(&self, seen: &Seen) -> Result<Option<Gathered>, Failure> {
        let mut until = None;
        // Where it is rank 0 that was lost nobody writes one.
        while !self.is_orphan() {
            match self.hear_until(0, until) {
                Ok(Letter::Bye) => break,
                Ok(_) => {}
                // It is over meanwhile: the report says so, and takes its time.
                Err(_) if until.is_none() => until = Some(Instant::now() + REPORT),
                Err(_) => break,
            }
        }
        match self.shared.over() {
            Some((over, _)) => Err(Failure::Elsewhere(over.code)),
            None if seen.interrupted => Err(Failure::Elsewhere(INTERRUPTED)),
            None => Ok(None),
        }
    }

    /// Whether it is rank 0 that was lost.
    fn is_orphan(&self) -> bool {
        self.shared.over().is_some_and(|(over, _)| over.rank == 0 && over.code == 3)
    }

    /// Rank 0: gathers what the others say, and closes the session of all.
    fn conclude(
        &self,
        seen: &Seen,
        record: &Record,
        (own, rest): (HostSeen, Ran),
    ) -> Result<Option<Gathered>, Failure> {
        let (mut hosts, mut rests) = (vec![own], vec![rest]);
        for rank in 1..self.size {
            let (said, rest) = self.last_words(rank, seen.interrupted);
            hosts.push(said);
            rests.push(rest);
        }
        for (host, kernel) in hosts.iter_mut().zip(&self.state().kernels) {
            host.kernel = *kernel;
        }
        // A run that was broken off, or measured by some of them alone.
        if rests.iter().any(|rest| !rest.phases.is_empty()) {
            self.keep(&rests, &[], None)?;
        }
        let over = self.shared.over();
        let lost = over.as_ref().map(|(over, at)| Lost {
            host: self.name(over.rank),
            why: over.why.clone(),
            at_s: at.saturating_duration_since(seen.epoch).as_secs_f64(),
        });
        let interrupted = over.as_ref().is_some_and(|(over, _)| over.code == INTERRUPTED);
        let (ending, notes, drift) = match (&record.end, &over) {
            (Some(end), None) => (end.ending.clone(), end.notes.clone(), end.clock_drift_ppm),
            (_, Some(_)) if interrupted => (RunEnding::Interrupted, self.until_then(&rests), None),
            (_, Some((over, _))) => {
                let why = format!("{} {}", self.name(over.rank), over.why);
                (RunEnding::Failed(why), self.until_then(&rests), None)
            }
            (None, None) => (RunEnding::Interrupted, Vec::new(), None),
        };
        let failed = matches!(ending, RunEnding::Failed(_));
        let notes = notes.into_iter().chain(self.shared.course().hung().iter().cloned()).collect();
        let session = self.state().whole.end(hosts, lost, (ending, notes, drift))?;
        let interrupted = seen.interrupted && !failed;
        Ok(session.map(|session| Gathered { session, interrupted, failed }))
    }

    /// What each host had done of the run that was broken off, as far as it is known.
    fn until_then(&self, rests: &[Ran]) -> Vec<String> {
        let of = |(rank, rest): (usize, &Ran)| {
            let name = self.name(rank);
            let issued = || rest.phases.iter().flat_map(|p| &p.end.streams).flat_map(|s| s.issued.values());
            let (ops, bytes) = issued().fold((0, 0), |sum, i| (sum.0 + i.ops, sum.1 + i.bytes));
            if ops > 0 {
                let (ops, bytes) = (show_count(ops as f64), show_bytes(bytes));
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
        rests.iter().enumerate().filter_map(of).collect()
    }

    /// What a host says at the end; a host that is lost says nothing.
    fn last_words(&self, rank: usize, interrupted: bool) -> (HostSeen, Ran) {
        let over = self.shared.over().is_some() || interrupted;
        let until = over.then(|| Instant::now() + LAST_WORDS);
        loop {
            match self.hear_until(rank, until) {
                Ok(Letter::Done(said, rest)) => return (*said, *rest),
                // Of a run that was not agreed on any more.
                Ok(Letter::Ran(ran)) => return (self.silent(rank), *ran),
                Ok(_) => {}
                Err(_) if until.is_none() && self.shared.over().is_some() => {
                    return self.last_words(rank, true);
                }
                Err(_) => return (self.silent(rank), Ran::default()),
            }
        }
    }

    fn silent(&self, rank: usize) -> HostSeen {
        let reason = "it did not say what it measured".to_owned();
        HostSeen { name: self.name(rank), reason, ..HostSeen::default() }
    }
}

/// What a host says of what it measured.
fn host_seen(host: &str, record: &Record, session: Option<String>) -> HostSeen {
    let version = env!("CARGO_PKG_VERSION").into();
    let report =
        analysis::judge(record, &Judging { session: session.clone(), version, ..Judging::default() });
    let Report { verdict, verdict_reason, results, findings, .. } = report;
    let (held, told): (Vec<_>, Vec<_>) = findings.into_iter().partition(|f| f.outcome == Outcome::Holds);
    HostSeen {
        name: host.to_owned(),
        session,
        verdict: Some(verdict),
        reason: verdict_reason,
        results: results.into_iter().map(result).collect(),
        findings: told,
        held: held.into_iter().map(|f| (f.id, f.about)).collect(),
        kernel: None,
        target_bytes: record.runs.last().map_or_else(Vec::new, |run| run.start.target_bytes.clone()),
    }
}

fn result(of: Measured) -> HostResult {
    let parts: [(&str, &Option<Figures>); 4] =
        [("read", &of.read), ("write", &of.write), ("trim", &of.trim), ("sync", &of.sync)];
    let latency =
        |figures: &Figures| ["50", "99"].map(|p| figures.latency_ns.percentiles.get(p).copied().flatten());
    let latency_ns =
        parts.into_iter().filter_map(|(kind, f)| Some((kind.to_owned(), latency(f.as_ref()?)))).collect();
    let total = of.total.as_ref().filter(|_| !of.void);
    HostResult {
        verdict: of.verdict,
        iops: total.map(|t| t.iops),
        mb_per_s: total.map(|t| t.mb_per_s),
        latency_ns,
        cpu_ns_per_op: of.cost.as_ref().map(|c| c.user_ns + c.system_ns),
        limiter: of.limiter,
        name: of.name,
        true_name: of.true_name,
        renamed: of.renamed,
    }
}
