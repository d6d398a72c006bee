//! The work of each run of `fathom api`: how many operations it has at most.
//!
//! A run ends after its time, or at the end of the file. The page cache takes writes faster than the storage does, and the final sync has
//! no limit in time. So writes get fewer operations:
//!
//! 1. No row has more operations than the file, which may have been made smaller than planned. Random order takes half of the blocks.
//! 2. For each work that writes, the first interface writes 4 MiB and syncs them, then eight times as much, until that takes 100 ms.
//! 3. All rows of that work get as many operations as this rate writes in the time of a run, the sync included.

use super::Measurement;
use super::trial::moved;
use model::job::{Pattern, Stream};
use model::study::Study;
use std::time::{Duration, Instant};

/// Bytes of the first probe of a write rate, and how much more the next one writes.
const FIRST_BYTES: u64 = 4 << 20;
const TIMES_MORE: u64 = 8;
/// Time from which a probe says enough.
const ENOUGH: Duration = Duration::from_millis(100);
/// Writes are sized for this much more than the time of a run, since the rate of a probe is a rough one.
const SPARE: f64 = 1.25;

impl Measurement {
    /// Limits every job of a comparison of interfaces to what the file has.
    pub(super) fn limit_to_targets(&mut self) {
        let Study::Interfaces(comparison) = &self.plan.study else { return };
        let jobs = comparison.candidates.iter().map(|candidate| candidate.job);
        let limited: Vec<(usize, u64)> =
            jobs.filter_map(|job| Some((job, self.operations_there(self.only_stream(job)?)))).collect();
        self.limit_operations(limited);
    }

    /// Limits the writes of a comparison of interfaces to what the storage takes in the time of a run.
    pub(super) fn size_writes(&mut self) {
        let Study::Interfaces(comparison) = &self.plan.study else { return };
        let mut sized: Vec<(usize, u64)> = Vec::new();
        for work in comparison.candidates.chunk_by(|a, b| a.work == b.work) {
            let mut jobs = work.iter().map(|c| c.job).filter(|job| !self.refused.contains(job));
            let Some(stream) = work.first().and_then(|first| self.only_stream(first.job)) else { continue };
            if !stream.access.writes() || self.stopped() {
                continue;
            }
            let there = self.operations_there(stream);
            let most_bytes = there.saturating_mul(block_bytes(stream));
            if let Some(rate) = jobs.find_map(|job| self.written_per_s(job, most_bytes)) {
                let operations = self.operations_in_a_run(stream, rate).min(there);
                sized.extend(work.iter().map(|candidate| (candidate.job, operations)));
            }
        }
        self.limit_operations(sized);
    }

    fn limit_operations(&mut self, of_jobs: Vec<(usize, u64)>) {
        for (job, operations) in of_jobs {
            let phases = self.plan.jobs.get_mut(job).into_iter().flat_map(|job| &mut job.phases);
            for stream in phases.flat_map(|phase| &mut phase.streams) {
                stream.limit.operations = Some(operations);
            }
        }
    }

    fn only_stream(&self, job: usize) -> Option<&Stream> {
        self.plan.jobs.get(job)?.phases.first()?.streams.first()
    }

    /// Operations that fit into the span, of which the smallest target may have less.
    fn operations_there(&self, stream: &Stream) -> u64 {
        let access = &stream.access;
        let targets = stream.targets.iter().filter_map(|at| self.targets.get(*at));
        let bytes = targets.map(|ready| ready.bytes().saturating_sub(access.offset_bytes)).min().unwrap_or(0);
        let blocks = bytes.min(access.span_bytes) / block_bytes(stream);
        if access.pattern() == Some(Pattern::Sequential) { blocks.max(1) } else { (blocks / 2).max(1) }
    }

    /// Operations of a stream that a rate does in the time of a run.
    fn operations_in_a_run(&self, stream: &Stream, bytes_per_s: f64) -> u64 {
        let ns = self.plan.jobs.first().and_then(|job| job.phases.first()).map_or(0, |phase| phase.time_ns);
        let bytes = SPARE * bytes_per_s * ns as f64 / 1e9;
        (bytes as u64 / block_bytes(stream)).max(1)
    }

    /// Bytes per second that a job writes and syncs, of at most so many; `None` if it failed.
    fn written_per_s(&self, job: usize, most_bytes: u64) -> Option<f64> {
        let mut bytes = FIRST_BYTES.min(most_bytes);
        loop {
            let outcomes = self.try_job(job, bytes, false).ok()?;
            let written = moved(&outcomes).ok()?;
            let synced = Instant::now();
            for ready in self.only_stream(job)?.targets.iter().filter_map(|at| self.targets.get(*at)) {
                ready.handle()?.sync_data().ok()?;
            }
            let wall = outcomes.iter().map(|outcome| outcome.wall_ns).max()?;
            let took = Duration::from_nanos(wall) + synced.elapsed();
            if took >= ENOUGH || bytes >= most_bytes || self.stopped() {
                return Some(written as f64 / took.as_secs_f64().max(1e-9));
            }
            bytes = bytes.saturating_mul(TIMES_MORE).min(most_bytes);
        }
    }
}

fn block_bytes(stream: &Stream) -> u64 {
    u64::from(stream.access.largest_bytes()).max(1)
}
