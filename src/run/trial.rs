//! Trials: a part of each job of a comparison, before anything is measured.
//!
//! For: whether this machine lets an interface work, and how many system calls it makes, which is counted here because counting
//! costs time. Not for: figures; nothing of it is in a result.

use super::Measurement;
use crate::failure::Failure;
use engine::engines;
use engine::outcome::Outcome;
use engine::refusal::CannotBegin;
use engine::spec::WorkerSpec;
use engine::workers::Workers;
use machine::rest;
use model::Known;
use model::record::Trial;
use model::study::Study;
use model::units::{show_bytes, show_ns};
use std::io;
use std::time::Duration;

/// Bytes of a trial: many operations of the smallest size, some of the largest.
const TRIAL_BYTES: u64 = 4 << 20;
/// Bytes from which on the few calls that a mapping or an open file takes once do not matter in a trial that its time ended.
const ENOUGH_TRIAL_BYTES: u64 = 1 << 20;
/// Fewest operations.
const TRIAL_OPERATIONS: u64 = 4;
/// Longest time of one.
const TRIAL_TIME_NS: u64 = 2_000_000_000;

impl Measurement {
    /// Tries every job of the comparison, and leaves those out that this machine refuses.
    ///
    /// # Errors
    /// [`Failure::Refused`] with all reasons where nothing is left.
    pub(super) fn hold_trials(&mut self) -> Result<Vec<Trial>, Failure> {
        let mut trials = self.unplaced_rows();
        trials.extend(self.trials());
        if self.stopped() {
            return Err(Failure::Interrupted);
        }
        self.refused = trials.iter().filter(|t| t.moved_bytes.is_err()).map(|t| t.job).collect();
        let left = |job: &usize| !self.refused.contains(job);
        if matches!(self.plan.study, Study::Interfaces(_)) && self.refused.len() == trials.len() {
            let reasons = trials.iter().filter_map(|t| t.refusal.as_ref().or(t.moved_bytes.as_ref().err()));
            let mut reasons: Vec<&str> = reasons.map(String::as_str).collect();
            reasons.sort_unstable();
            reasons.dedup();
            return Err(Failure::Refused(format!("no interface can be tried: {}", reasons.join("; "))));
        }
        // A headline needs a number.
        if !left(&self.plan.headline) {
            self.plan.headline = (0..self.plan.jobs.len()).find(left).unwrap_or(0);
        }
        Ok(trials)
    }

    /// Tries every job of the comparison.
    fn trials(&self) -> Vec<Trial> {
        let Study::Interfaces(comparison) = &self.plan.study else { return Vec::new() };
        self.live.step("trying every interface", self.left());
        let all = comparison.candidates.iter().take_while(|_| !self.stopped());
        let tried = all.map(|candidate| {
            self.live.tick(self.left());
            let tried = self.trial(candidate.job);
            match tried {
                Ok((moved, calls)) => {
                    Trial { job: candidate.job, moved_bytes: Ok(moved), refusal: None, calls }
                }
                Err(CannotBegin { sentence, reason }) => Trial {
                    job: candidate.job,
                    refusal: (reason != sentence).then_some(reason),
                    moved_bytes: Err(sentence),
                    calls: Err("it was not tried to the end".into()),
                },
            }
        });
        tried.collect()
    }

    /// Bytes moved and calls made; or why there can be no run.
    fn trial(&self, job: usize) -> Result<(u64, Known<u64>), CannotBegin> {
        let outcomes = self.try_job(job, TRIAL_BYTES, true)?;
        let moved = moved(&outcomes)?;
        let phase = self.plan.jobs.get(job).and_then(|j| j.phases.first());
        let engines = phase.iter().flat_map(|p| &p.streams).filter_map(|s| engines::find(&s.engine));
        if engines.into_iter().any(|engine| engine.library_threads) {
            return Ok((
                moved,
                Err("threads of the C library make its calls, and they are not counted".into()),
            ));
        }
        if moved < ENOUGH_TRIAL_BYTES && outcomes.iter().any(|o| o.wall_ns >= TRIAL_TIME_NS) {
            let why = format!(
                "only {} were moved in {} of the trial, and what it calls once would count for too much",
                show_bytes(moved),
                show_ns(TRIAL_TIME_NS as f64)
            );
            return Ok((moved, Err(why)));
        }
        let calls = outcomes
            .into_iter()
            .try_fold(0_u64, |sum, o| Ok::<u64, String>(sum + o.calls.ok_or("they were not counted")??));
        Ok((moved, calls))
    }

    /// Runs the first phase of a job on evicted targets, for at most so many bytes and 2 s.
    pub(super) fn try_job(
        &self,
        job: usize,
        bytes: u64,
        counts_calls: bool,
    ) -> Result<Vec<Outcome>, CannotBegin> {
        let phase = self
            .plan
            .jobs
            .get(job)
            .and_then(|j| j.phases.first())
            .ok_or_else(|| "it has no phase".to_owned())?;
        self.evict(job).into_iter().next().map_or(Ok(()), Err)?;
        let specs = self
            .targets_may_be_used(phase)
            .and_then(|()| self.specs((None, phase), (job, 0), usize::MAX - job, 0));
        let mut specs = specs.map_err(|e| e.message().to_owned())?;
        let workers = specs.len() as u64;
        for spec in &mut specs {
            shorten(spec, bytes, workers);
            spec.count_calls = counts_calls;
        }
        let mut workers = Workers::spawn(specs)?;
        workers.open();
        while !workers.is_done() {
            std::thread::sleep(Duration::from_millis(1));
            workers.collect(|_, _| {});
            if self.stopped() {
                workers.stop();
            }
            if let Some(why) = workers.stuck() {
                return Err(why.into());
            }
        }
        Ok(workers.finish().into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Empties the page cache of what a job touches. Gives what could not be done.
    pub(super) fn evict(&self, job: usize) -> Vec<String> {
        let touched = self.targets.iter().enumerate().filter(|(i, _)| self.plan.jobs[job].touches(*i));
        touched.filter_map(|(_, t)| rest::evict(t.handle()?).err()).collect()
    }
}

/// Makes a worker's part of a run one of a trial with so many bytes in all.
fn shorten(spec: &mut WorkerSpec, bytes: u64, workers: u64) {
    let least = TRIAL_OPERATIONS * u64::from(spec.slot_bytes);
    let bytes = bytes.max(least).div_ceil(workers);
    spec.limit.bytes = Some(spec.limit.bytes.map_or(bytes, |said| said.min(bytes)));
    (spec.warmup_ns, spec.time_ns, spec.cooldown_ns) = (0, TRIAL_TIME_NS, 0);
}

/// Bytes moved by all; the first failure where anything failed.
pub(super) fn moved(outcomes: &[Outcome]) -> Known<u64> {
    let totals = || outcomes.iter().flat_map(|o| &o.totals);
    // A worker gives up after many failures; what failed says more.
    if let Some((errno, _)) = totals().find_map(|t| t.errors.first_key_value()) {
        return Err(format!("an operation failed: {}", io::Error::from_raw_os_error(*errno)));
    }
    if let Some(why) = outcomes.iter().find_map(|o| o.error.clone()) {
        return Err(why);
    }
    if totals().any(|t| t.short > 0) {
        return Err("an operation moved fewer bytes than asked".into());
    }
    match totals().map(|t| t.bytes).sum() {
        0 => Err(format!("nothing was moved in {} ms", TRIAL_TIME_NS / 1_000_000)),
        bytes => Ok(bytes),
    }
}
