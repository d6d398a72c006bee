//! Jobs as fio has them, out of the results of a report.
//!
//! For: what its three formats show alike of a job and of a group of them. Not for: how each writes it.

use super::direction::Direction;
use model::distribution::Distribution;
use model::job::{Kind, Phase, Stream};
use model::report::{Measured, Report};
use model::seen::{Seen, SeenDisk};
use std::collections::BTreeMap;

/// The directions that have figures, in fio's order.
pub(super) const DIRECTIONS: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];
/// What stands for the error of a job that ended early without an error number.
const NO_NUMBER: i64 = -1;

/// A result as a job.
pub(super) struct Job<'r> {
    /// What it is a job of.
    pub(super) result: &'r Measured,
    /// How it was carried out.
    pub(super) stream: &'r Stream,
    /// For how long.
    pub(super) phase: &'r Phase,
    /// What was seen of it.
    pub(super) seen: &'r Seen,
    /// Number of its group: jobs that ran at once.
    pub(super) group: usize,
}

/// The results of a report as jobs; without those of which nothing is known but their figures, as in a report that was read from JSON.
pub(super) fn jobs(report: &Report) -> Vec<Job<'_>> {
    let mut out: Vec<Job> = Vec::new();
    for result in &report.results {
        let phase = result.job.phases.get(result.phase as usize);
        let stream = phase.and_then(|p| p.streams.get(result.stream as usize));
        let (Some(phase), Some(stream), Some(seen)) = (phase, stream, &result.seen) else { continue };
        let with = |before: &Job| {
            let next = before.result.stream.checked_add(1) == Some(result.stream);
            next && before.result.phase == result.phase && before.result.job == result.job
        };
        let group = out.last().map_or(0, |before| if with(before) { before.group } else { before.group + 1 });
        out.push(Job { result, stream, phase, seen, group });
    }
    out
}

impl Job<'_> {
    /// Its own name where it was given one: fio calls jobs by that alone, whatever runs before or beside.
    pub(super) fn name(&self) -> &str {
        if self.stream.name.is_empty() { &self.result.name } else { &self.stream.name }
    }

    /// Figures of a direction.
    pub(super) fn direction(&self, kind: Kind) -> Direction {
        Direction::of(self.seen, kind)
    }

    /// Latencies of all directions, from the submission to the completion.
    pub(super) fn latencies(&self) -> Vec<Distribution> {
        DIRECTIONS.into_iter().map(|kind| self.direction(kind).clat).collect()
    }

    /// Latencies of the calls between writes.
    pub(super) fn sync(&self) -> Option<&Distribution> {
        self.seen.kinds.get(&Kind::Sync).map(|k| &k.latency)
    }

    /// The first error by its number; 0 where there was none.
    pub(super) fn error(&self) -> i64 {
        let first = self.seen.errors.keys().next().copied();
        first.map_or(if self.seen.is_complete { 0 } else { NO_NUMBER }, i64::from)
    }

    /// CPU time in user space and in the kernel, in percent of the time of its workers.
    pub(super) fn cpu_percent(&self) -> [f64; 2] {
        let wall = (self.seen.workers.wall_ns as f64).max(1.0);
        [self.seen.workers.user_ns, self.seen.workers.system_ns].map(|ns| 100.0 * ns as f64 / wall)
    }
}

/// Rates of a direction over the jobs of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Group {
    /// Bytes of all.
    pub(super) bytes: u64,
    /// Bytes per second of all together.
    pub(super) bytes_per_s: f64,
    /// Least and most bytes per second of a job.
    pub(super) of_jobs: [f64; 2],
    /// Least and most ms of a job.
    pub(super) runtime_ms: [u64; 2],
}

impl Group {
    /// `None` where no job of it moved anything in this direction.
    pub(super) fn of(jobs: &[Job], group: usize, kind: Kind) -> Option<Self> {
        let all: Vec<Direction> =
            jobs.iter().filter(|j| j.group == group).map(|j| j.direction(kind)).collect();
        let all: Vec<&Direction> = all.iter().filter(|d| d.runtime_ms > 0).collect();
        let rates = || all.iter().map(|d| d.bytes_per_s);
        let times = || all.iter().map(|d| d.runtime_ms);
        Some(Self {
            bytes: all.iter().fold(0, |sum: u64, d| sum.saturating_add(d.bytes)),
            bytes_per_s: rates().sum(),
            of_jobs: [rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)],
            runtime_ms: [times().min()?, times().max()?],
        })
    }
}

/// What each disk did in all groups; the jobs of a group have it in common.
pub(super) fn disks(jobs: &[Job]) -> Vec<SeenDisk> {
    let groups: BTreeMap<usize, &Seen> = jobs.iter().map(|job| (job.group, job.seen)).collect();
    let mut out: Vec<SeenDisk> = Vec::new();
    for disk in groups.values().flat_map(|seen| &seen.disks) {
        match out.iter_mut().find(|known| known.name == disk.name) {
            Some(known) => {
                known.stat = known.stat.plus(&disk.stat);
                known.ns = known.ns.saturating_add(disk.ns);
            }
            None => out.push(disk.clone()),
        }
    }
    out
}

/// How much of the time a disk had a request in flight, in percent.
pub(super) fn util_percent(disk: &SeenDisk) -> f64 {
    (100.0 * disk.stat.busy_ms as f64 * 1e6 / (disk.ns as f64).max(1.0)).min(100.0)
}
