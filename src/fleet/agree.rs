//! Agreeing: what a run came to on all hosts, by which all of them decide alike what comes next.
//!
//! For: the steps behind each run. First all learn when the load of all hosts ran, then what each did is added up, both through the tree
//! ([`super::tree`]); rank 0 keeps the sum and tells all. Not for: the sums themselves ([`super::merge`]).

use super::clock::Reading;
use super::hosts::Hosts;
use super::letter::{Agreed, Letter};
use super::merge::{self, Phase, RunParts};
use super::parts;
use crate::failure::Failure;
use analysis::strategy::{self, Summary};
use model::fleet::RunSeen;
use model::record::{Disturbance, Disturbed, Interval, Run, RunEnd, RunEnding, RunStart};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Hosts {
    /// What a run came to on all hosts, from what it came to here; of a sweep with how its last phase ended on all of them.
    pub(super) fn agree(
        &self,
        (runs, courses): (&[Run], &[Vec<Interval>]),
        own: &Summary,
        tell: impl Fn(&[String]),
    ) -> Result<(Summary, Option<RunEnd>), Failure> {
        let by = own.disturbed.as_ref().map_or_else(Vec::new, |d| d.by.clone());
        let mut ran = self.ran(runs, courses, by);
        // Whoever had no part in it waits for the others, and looks for their letters as seldom as they do.
        let is_idle = ran.phases.is_empty();
        self.shared.is_measuring.store(is_idle, Ordering::Relaxed);
        let times = self.add_up(ran.times(), &tell)?;
        let common = times.map(|times| Letter::Common(merge::common_times(&times)));
        match self.hand_down(common)? {
            Letter::Common(common) => ran.cut(courses, &common),
            other => return Err(self.misunderstood(0, &other)),
        }
        let sum = self.add_up(ran, &tell)?;
        let agreed = sum.map(|all| self.all_agree(all, own.attempt)).transpose()?;
        let agreed = match self.hand_down(agreed.map(|agreed| Letter::Agreed(Box::new(agreed))))? {
            Letter::Agreed(agreed) => *agreed,
            other => return Err(self.misunderstood(0, &other)),
        };
        self.shared.is_measuring.store(false, Ordering::Relaxed);
        self.state().agreed += runs.len();
        let Agreed { iops, latency, service, disturbed, ended_ns, end } = agreed;
        let (latency, service) = (Arc::new(latency), Arc::new(service));
        Ok((Summary { iops, latency, service, disturbed, ended_ns, ..own.clone() }, end))
    }

    /// Runs as they are added up.
    pub(super) fn ran(
        &self,
        runs: &[Run],
        courses: &[Vec<Interval>],
        disturbed: Vec<Disturbance>,
    ) -> RunParts {
        let state = self.state();
        let phase = |(at, run): (usize, &Run)| {
            let course = courses.get(at).unwrap_or(&run.intervals);
            Phase::from_run(self.rank as u32, run, course, state.late_ns.get(at).copied().flatten())
        };
        let mut by = Vec::new();
        parts::add_disturbances(&mut by, disturbed);
        RunParts { phases: runs.iter().enumerate().filter_map(phase).collect(), disturbed: by }
    }

    /// Rank 0: keeps what all came to together, and says what follows.
    fn all_agree(&self, mut all: RunParts, attempt: u32) -> Result<Agreed, Failure> {
        let after = self.clocks();
        let disturbed = merge::disturbed(attempt, std::mem::take(&mut all.disturbed));
        self.keep(all, &after, disturbed)
    }

    /// Rank 0: keeps the phases of a run that hosts have measured, those that were kept before aside. Those of a host that was lost are
    /// missing.
    pub(super) fn keep(
        &self,
        all: RunParts,
        after: &[Option<Reading>],
        disturbed: Option<Disturbed>,
    ) -> Result<Agreed, Failure> {
        let job = all.phases.first().map(|phase| phase.start.job);
        let taking_part = job.map_or(self.size, |job| self.taking_part(job));
        let state = &mut *self.state();
        let mut ends = Vec::new();
        for (at, phase) in all.phases.into_iter().enumerate() {
            let (which, offered_iops) = phase.which();
            if state.whole.runs.iter().any(|run| (run.which, run.offered_iops) == (which, offered_iops)) {
                continue;
            }
            let mut merged = phase.merged(&self.names);
            if (merged.hosts as usize) < taking_part && merged.end.ending == RunEnding::Complete {
                merged.end.ending = RunEnding::Interrupted;
            }
            let before = state.before.get(at).map_or(&[][..], Vec::as_slice);
            state.whole.runs.push(RunSeen {
                which,
                offered_iops,
                common_ns: merged.common_ns,
                longest_ns: merged.longest_ns,
                ..merge::began(&merged.late, taking_part, before, after)
            });
            ends.push(merged.end.clone());
            state.whole.append(merged.start, merged.end)?;
        }
        if let Some(disturbed) = &disturbed {
            state.whole.append_disturbed(disturbed)?;
        }
        let iops = strategy::rate(ends.iter());
        let (latency, service) = (strategy::latencies(ends.iter()), strategy::service_times(ends.iter()));
        let ended_ns = ends.iter().map(|end| end.at_ns).max().unwrap_or(0);
        let end = ends.pop().filter(|_| state.is_sweep);
        Ok(Agreed { iops, latency, service, disturbed, ended_ns, end })
    }

    /// A run that a host could not begin, and so none has: rank 0 keeps it with its reason.
    pub(super) fn keep_refused(&self, start: &RunStart, end: &RunEnd) -> Result<(), Failure> {
        let state = &mut *self.state();
        state.agreed += 1;
        if self.rank > 0 {
            return Ok(());
        }
        let RunStart { job, phase, repeat, attempt, offered_iops, .. } = *start;
        let which = [job as u32, phase as u32, repeat, attempt];
        state.whole.runs.push(RunSeen { which, offered_iops, ..RunSeen::default() });
        state.whole.append(start.clone(), end.clone())
    }
}
