//! Jobs as fio has them, out of the results of a report.
//!
//! For: what its three formats show alike of a job and of a group of them. Not for: how each writes it.

use super::direction::Direction;
use model::distribution::Distribution;
use model::fio_layout::FioLayout;
use model::job::{Kind, LatencyTarget, Phase, Steadied, Steady, Stream};
use model::observed::{Observed, ObservedDisk, ObservedWorkers};
use model::report::{Measured, Report};
use model::typed::Idle;
use std::collections::BTreeMap;

/// The directions that have figures, in fio's order.
pub(super) const DIRECTIONS: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];
/// What stands for the error of a job that ended early without an error number.
const NO_ERRNO: i64 = -1;

/// Results that are told as one: a single one, unless more was typed.
pub(super) struct Job<'r> {
    /// In their order; the first gives it its name.
    pub(super) members: Vec<Member<'r>>,
    /// Number of its group: jobs that ran at once, unless something else was typed.
    pub(super) group: usize,
    /// Whether directions are told as one.
    pub(super) mixed: bool,
}

/// A result.
#[derive(Clone, Copy)]
pub(super) struct Member<'r> {
    /// What it is.
    pub(super) result: &'r Measured,
    /// How it was carried out.
    pub(super) stream: &'r Stream,
    /// For how long.
    pub(super) phase: &'r Phase,
    /// What was seen of it.
    pub(super) seen: &'r Observed,
    /// Which of the phases of the report it is of.
    at: usize,
}

/// The results of a report as jobs; without those of which nothing is known but their figures, as in a report that was read from JSON.
pub(super) fn jobs(report: &Report) -> Vec<Job<'_>> {
    let mut out: Vec<Job> = Vec::new();
    for member in members(report) {
        let typed = member.seen.typed.as_ref().map(|typed| &typed.stream);
        let group = typed.map_or(member.at, |typed| typed.group);
        let joins = typed.is_some_and(|typed| typed.joins);
        let wrote = |job: &Job| job.members.iter().any(|of| member.reads_back(of));
        if let Some(writer) = out.iter_mut().find(|job| wrote(job)) {
            writer.members.push(member);
        } else if let Some(before) = out.last_mut().filter(|before| joins && before.group == group) {
            before.members.push(member);
        } else {
            let mixed = typed.is_some_and(|typed| typed.mixed);
            out.push(Job { members: vec![member], group, mixed });
        }
    }
    out
}

fn members(report: &Report) -> Vec<Member<'_>> {
    let mut out: Vec<Member> = Vec::new();
    for result in &report.results {
        let phase = result.job.phases.get(result.phase as usize);
        let stream = phase.and_then(|p| p.streams.get(result.stream as usize));
        let (Some(phase), Some(stream), Some(seen)) = (phase, stream, &result.seen) else { continue };
        let with = |before: &Member| {
            let next = before.result.stream.checked_add(1) == Some(result.stream);
            next && before.result.phase == result.phase && before.result.job == result.job
        };
        let at = out.last().map_or(0, |before| if with(before) { before.at } else { before.at + 1 });
        out.push(Member { result, stream, phase, seen, at });
    }
    out
}

impl<'r> Member<'r> {
    /// Whether it reads what that one wrote.
    fn reads_back(&self, of: &Self) -> bool {
        self.result.job == of.result.job
            && of.result.phase.checked_add(1) == Some(self.result.phase)
            && self.stream.reads_back() == usize::try_from(of.result.stream).ok()
    }

    /// Its own name where it was given one: fio calls jobs by that alone, whatever runs before or beside.
    pub(super) fn name(&self) -> &'r str {
        if self.stream.name.is_empty() { &self.result.name } else { &self.stream.name }
    }
}

impl<'r> Job<'r> {
    /// How fio prints it: percentiles by the last of its results, description and units by the first.
    pub(super) fn layout(&self) -> FioLayout {
        let layout = |member: Option<&Member>| {
            let typed = member.and_then(|member| member.seen.typed.as_ref());
            typed.map(|typed| typed.stream.layout.clone()).unwrap_or_default()
        };
        let FioLayout { description, decimal_first, bits, .. } = layout(self.members.first());
        FioLayout { description, decimal_first, bits, ..layout(self.members.last()) }
    }

    /// The member that says how it was carried out.
    pub(super) fn first(&self) -> Member<'r> {
        self.members[0]
    }

    /// What it is called.
    pub(super) fn name(&self) -> &'r str {
        self.first().name()
    }

    /// Operations in flight per worker: of the last, as in fio.
    pub(super) fn depth(&self) -> u32 {
        self.members.last().map_or(0, |member| member.seen.found_depth.unwrap_or(member.stream.depth))
    }

    fn seen(&self) -> Vec<&'r Observed> {
        self.members.iter().map(|member| member.seen).collect()
    }

    /// Whether nothing completed.
    pub(super) fn is_empty(&self) -> bool {
        self.members.iter().all(|member| member.seen.kinds.is_empty())
    }

    /// Threads of all.
    pub(super) fn workers(&self) -> u64 {
        self.members.iter().map(|member| u64::from(member.stream.workers)).sum()
    }

    /// When its last run ended, in ns since the session began.
    pub(super) fn ended_ns(&self) -> u64 {
        self.members.iter().map(|member| member.seen.ended_ns).max().unwrap_or(0)
    }

    /// Figures of each direction that is told, by its word.
    pub(super) fn directions(&self) -> Vec<(&'static str, Direction)> {
        let kinds: Vec<(&'static str, &[Kind])> = named_directions(self.mixed);
        kinds.into_iter().map(|(word, kinds)| (word, Direction::from_observed(&self.seen(), kinds))).collect()
    }

    /// Latencies of all directions, from the submission to the completion.
    pub(super) fn latencies(&self) -> Vec<Distribution> {
        self.directions().into_iter().map(|(_, direction)| direction.clat).collect()
    }

    /// Latencies of the calls between writes; empty where there was none.
    pub(super) fn sync(&self) -> Distribution {
        let all = self.members.iter().filter_map(|member| member.seen.kinds.get(&Kind::Sync));
        all.map(|kind| &kind.latency).collect()
    }

    /// Errors by errno.
    pub(super) fn errors(&self) -> BTreeMap<i32, u64> {
        let mut out: BTreeMap<i32, u64> = BTreeMap::new();
        for (errno, count) in self.members.iter().flat_map(|member| &member.seen.errors) {
            let sum = out.entry(*errno).or_default();
            *sum = sum.saturating_add(*count);
        }
        out
    }

    /// The first error by its number; 0 where there was none.
    pub(super) fn error(&self) -> i64 {
        let in_order = self.members.iter().all(|member| member.seen.in_order);
        let sync = self.members.iter().find_map(|member| member.seen.sync_error);
        let first = self.errors().keys().next().copied().or(sync);
        first.map_or(if in_order { 0 } else { NO_ERRNO }, i64::from)
    }

    /// What decided about its depth; that of the last where several are one.
    pub(super) fn latency_target(&self) -> Option<LatencyTarget> {
        self.members.last().and_then(|member| member.stream.latency_target)
    }

    /// Whether it became steady, where it ends by that; of several as one nothing is told.
    pub(super) fn steadied(&self) -> Option<(&Steady, &Steadied)> {
        let [member] = self.members.as_slice() else { return None };
        member.seen.steadied.as_ref().map(|(rule, seen)| (rule, seen))
    }

    /// Costs of all workers.
    pub(super) fn costs(&self) -> ObservedWorkers {
        self.members.iter().fold(ObservedWorkers::NONE, |sum, member| sum.plus(&member.seen.workers))
    }
}

/// CPU time in user space and in the kernel, in percent of the time of the workers.
pub(super) fn cpu_percent(costs: &ObservedWorkers) -> [f64; 2] {
    [costs.user_ns, costs.system_ns].map(|ns| 100.0 * ns as f64 / (costs.wall_ns as f64).max(1.0))
}

/// Directions by their words, each with the kinds that it has.
pub(super) fn named_directions(mixed: bool) -> Vec<(&'static str, &'static [Kind])> {
    const EACH: [(&str, &[Kind]); 3] =
        [("read", &[Kind::Read]), ("write", &[Kind::Write]), ("trim", &[Kind::Trim])];
    if mixed { vec![("mixed", &DIRECTIONS)] } else { EACH.to_vec() }
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
    pub(super) fn from_jobs(jobs: &[Job], group: usize, word: &str) -> Option<Self> {
        let all = jobs.iter().filter(|j| j.group == group).flat_map(Job::directions);
        let all: Vec<Direction> =
            all.filter(|(told, d)| *told == word && d.runtime_ms > 0).map(|(_, d)| d).collect();
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

/// What each disk did in all phases; the jobs of a phase have it in common.
pub(super) fn disk_totals(jobs: &[Job]) -> Vec<ObservedDisk> {
    let members = jobs.iter().flat_map(|job| &job.members);
    let phases: BTreeMap<usize, &Observed> = members.map(|member| (member.at, member.seen)).collect();
    let mut out: Vec<ObservedDisk> = Vec::new();
    for disk in phases.values().flat_map(|seen| &seen.disks) {
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

/// Time without work of the CPUs in percent, over all phases: of all, and of each where that was asked for; `None` where nothing was, or
/// the kernel did not say.
pub(super) fn idleness(jobs: &[Job]) -> Option<(f64, Vec<(u32, f64)>)> {
    let members = || jobs.iter().flat_map(|job| &job.members);
    let asked = members().find_map(|member| member.seen.typed.as_ref()?.idle)?;
    let phases: BTreeMap<usize, &Observed> = members().map(|member| (member.at, member.seen)).collect();
    let mut ticks: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
    for cpu in phases.values().flat_map(|seen| &seen.cpus) {
        let [idle, busy] = ticks.entry(cpu.cpu).or_default();
        *idle += cpu.idle as f64;
        *busy += cpu.user as f64 + cpu.kernel as f64;
    }
    let counted = ticks.into_iter().filter(|(_, [idle, busy])| idle + busy > 0.0);
    let each: Vec<_> = counted.map(|(cpu, [idle, busy])| (cpu, 100.0 * idle / (idle + busy))).collect();
    let mean = each.iter().map(|(_, percent)| percent).sum::<f64>() / each.len() as f64;
    (!each.is_empty()).then(|| (mean, if asked == Idle::Each { each } else { Vec::new() }))
}

/// How much of the time a disk had a request in flight, in percent.
pub(super) fn util_percent(disk: &ObservedDisk) -> f64 {
    (100.0 * disk.stat.busy_ms as f64 * 1e6 / (disk.ns as f64).max(1.0)).min(100.0)
}
