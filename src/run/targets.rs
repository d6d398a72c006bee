//! Targets around a run: whether they may still be touched, brought to rest before it, made stable after it.
//!
//! For: what is asked of and done to prepared targets between runs. Not for: making or opening one (`target`), nor for who uses it
//! and what it is (crate `machine`).

use super::Measurement;
use crate::failure::Failure;
use machine::page_cache;
use model::evidence::Moment;
use model::job::{Phase, Stream};
use model::plan::Role;
use model::record::{SyncFailure, SyncedBy, WorkerEnd};
use std::io;
use std::time::{Duration, Instant};

/// Longest wait for dirty pages to be written back before a run.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);

impl Measurement {
    /// Whether what a phase is about to touch is still what the plan was made for; and of what it writes, whether nobody has begun
    /// to use it since.
    pub(super) fn targets_may_be_used(&self, phase: &Phase) -> Result<(), Failure> {
        for (index, ready) in self.targets.iter().enumerate() {
            let mut streams = phase.streams.iter().filter(|s| s.targets.contains(&index)).peekable();
            if streams.peek().is_some() {
                ready.may_be_used(&self.root, streams.any(Stream::changes_targets))?;
            }
        }
        Ok(())
    }

    /// Brings the machine back to rest: nothing of the job's targets, or of any, cached where runs begin cold, nothing left to
    /// write back.
    pub(super) fn rest(&mut self, job: Option<usize>) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.plan.cold {
            return notes;
        }
        for (index, ready) in self.targets.iter().enumerate() {
            let target = &self.plan.targets[index];
            // What other hosts read of this host's files they shall not have from its cache either.
            let by_others = self.plan.common(index).is_some();
            if job.is_some_and(|j| !self.plan.jobs[j].touches(index)) && !by_others {
                continue;
            }
            // Pages that stay of a device which is only read are those of the file system on it.
            let theirs = target.role == Role::Device && !target.writable;
            let Some(handle) = ready.handle() else { continue };
            if let Err(why) = page_cache::write_back(handle) {
                notes.push(format!("what others left dirty could not be written back: {why}"));
            }
            match page_cache::evict(handle) {
                Ok(pages) if pages.cached > 0 && !theirs => {
                    notes.push(format!("{} pages of the target stayed in the page cache", pages.cached));
                }
                Ok(_) => {}
                Err(why) => notes.push(format!("whether the target was evicted is not known: {why}")),
            }
        }
        notes.extend(page_cache::settle(&self.root, SETTLE_LIMIT, &self.stop).note());
        notes
    }

    /// Makes what was written stable, and says how long that took from the last completion on: what the workers leave dirty begins
    /// to reach the device while they end and counters are read, so the call alone would be too short. Returns every sync, and every
    /// close of a worker's file, that failed.
    pub(super) fn sync_targets(
        &mut self,
        (opened, workers): (Instant, &[WorkerEnd]),
        notes: &mut Vec<String>,
    ) -> Result<(Option<u64>, Vec<SyncFailure>), Failure> {
        let start = last_completion(opened, workers);
        let mut synced = false;
        let mut failures = Vec::new();
        for (target, ready) in self.targets.iter().enumerate() {
            let Some(handle) = ready.handle() else { continue };
            synced = true;
            if let Err(e) = handle.sync_data() {
                notes.push(format!("the final sync of {} failed: {e}", self.path_of(target)));
                let errno = e.raw_os_error().unwrap_or(0);
                failures.push(SyncFailure { target, call: SyncedBy::FinalSync, errno });
            }
        }
        for (target, errno) in self.close_errors.take() {
            let failure = SyncFailure { target, call: SyncedBy::Close, errno };
            if !failures.contains(&failure) {
                let path = self.path_of(target);
                notes.push(format!("closing {path} failed: {}", io::Error::from_raw_os_error(errno)));
                failures.push(failure);
            }
        }
        // What has no files has a clock of its own, and nothing to make stable.
        let took = if synced { start.elapsed().as_nanos() as u64 } else { 0 };
        self.keep(Moment::Synced, true)?;
        Ok((failures.is_empty().then_some(took), failures))
    }
}

impl Measurement {
    /// The path of a target, as the plan has it.
    pub(super) fn path_of(&self, target: usize) -> &str {
        self.plan.targets.get(target).map_or("a target", |target| target.path.as_str())
    }
}

/// When the last worker was done: an instant that has not come yet where their clock is not the machine's.
fn last_completion(opened: Instant, workers: &[WorkerEnd]) -> Instant {
    let wall_ns = workers.iter().map(|w| w.wall_ns).max().unwrap_or(0);
    opened.checked_add(Duration::from_nanos(wall_ns)).unwrap_or(opened)
}

#[test]
fn what_passes_before_the_sync_is_part_of_its_time() {
    let worker = |wall_ns| WorkerEnd { wall_ns, ..WorkerEnd::default() };
    let opened = Instant::now();
    let last = last_completion(opened, &[worker(1_000_000), worker(3_000_000), worker(2_000_000)]);
    assert_eq!(last - opened, Duration::from_millis(3));
}
