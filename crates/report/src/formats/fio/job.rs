//! Jobs and groups as fio reports them, computed from the results of a report, for all of fio's formats.
//!
//! - [`Job`] and [`Group`]: results that fio reports as one job, and jobs that ran at once.
//! - [`Direction`]: rates and latencies of one direction, with samples of the rate over steps of equal length.
//! - [`Depths`]: shares of operations by queue depth, and shares of calls by the number of
//!   operations that they submitted or reaped. The workers of `fathom fio` count these. Other
//!   commands only integrate the depth over time, so their tables are known only if just one value
//!   is possible.
//! - [`LatencyShares`]: shares of operations by latency.
//! - The time stamps of fio's formats, in the local time of the measurement.

use crate::formats::local_time;
use crate::view::lists::grouped;
use jiff::{SignedDuration, Zoned};
use model::figures::{Observed, ObservedDisk, ObservedInterval, ObservedKind, ObservedWorkers};
use model::histogram::Distribution;
use model::job::{IoPriority, Kind, LatencyTarget, Phase, Steadied, Steady, Stream, SyncCall};
pub(super) use model::record::stream::COLUMNS;
use model::record::stream::DepthCounts;
use model::report::{Measured, Report};
use model::spec::{FioLayout, Idle};
use std::collections::BTreeMap;

/// The directions, in fio's order.
pub(super) const DIRECTIONS: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];
/// Reported as the error number of a job that ended early without an `errno`.
const NO_ERRNO: i64 = -1;

/// A job of fio: a single result, or several that fio reports as one.
pub(super) struct Job<'r> {
    /// Members in order; the first one names the job.
    pub(super) members: Vec<Member<'r>>,
    /// Number of the job's group, from 0. A group has the jobs that ran at once, unless the user set another grouping.
    pub(super) group: usize,
    /// Whether all directions are reported together.
    pub(super) mixed: bool,
    /// Whether all directions are reported together in addition to each direction.
    pub(super) also_mixed: bool,
}

/// A result of a job.
#[derive(Clone, Copy)]
pub(super) struct Member<'r> {
    /// Figures of the stream over all runs.
    pub(super) result: &'r Measured,
    /// The stream that ran.
    pub(super) stream: &'r Stream,
    /// The phase that ran.
    pub(super) phase: &'r Phase,
    /// Observations of the stream.
    pub(super) observed: &'r Observed,
    /// Index of the phase among the phases of all jobs.
    phase_index: usize,
}

/// Returns the results of a report as jobs. Leaves out results that fio's formats do not have, and
/// results without observations, as in a report read from JSON.
pub(super) fn jobs(report: &Report) -> Vec<Job<'_>> {
    let mut out: Vec<Job> = Vec::new();
    for member in members(report) {
        let typed = member.observed.typed.as_ref().map(|typed| &typed.stream);
        if typed.is_some_and(|typed| typed.hidden) {
            continue;
        }
        let group = typed.map_or(member.phase_index, |typed| typed.group);
        let joins = typed.is_some_and(|typed| typed.joins);
        let wrote = |job: &Job| job.members.iter().any(|other| member.reads_back(other));
        if let Some(writer) = out.iter_mut().find(|job| wrote(job)) {
            writer.members.push(member);
        } else if let Some(before) = out.last_mut().filter(|before| joins && before.group == group) {
            before.members.push(member);
        } else {
            let mixed = typed.is_some_and(|typed| typed.mixed);
            let also_mixed = typed.is_some_and(|typed| typed.also_mixed);
            out.push(Job { members: vec![member], group, mixed, also_mixed });
        }
    }
    out
}

fn members(report: &Report) -> Vec<Member<'_>> {
    let mut out: Vec<Member> = Vec::new();
    for result in &report.results {
        let phase = result.job.phases.get(result.phase as usize);
        let stream = phase.and_then(|p| p.streams.get(result.stream as usize));
        let (Some(phase), Some(stream), Some(observed)) = (phase, stream, &result.observed) else { continue };
        let is_same_phase = |before: &Member| {
            let next = before.result.stream.checked_add(1) == Some(result.stream);
            next && before.result.phase == result.phase && before.result.job == result.job
        };
        let phase_index =
            out.last().map_or(0, |before| before.phase_index + usize::from(!is_same_phase(before)));
        out.push(Member { result, stream, phase, observed, phase_index });
    }
    out
}

impl<'r> Member<'r> {
    /// Whether this member reads back what `writer` wrote.
    fn reads_back(&self, writer: &Self) -> bool {
        self.result.job == writer.result.job
            && writer.result.phase.checked_add(1) == Some(self.result.phase)
            && self.stream.reads_back() == usize::try_from(writer.result.stream).ok()
    }

    /// Returns the name of the stream, as fio does, or the name of the result if the stream has
    /// none.
    pub(super) fn name(&self) -> &'r str {
        if self.stream.name.is_empty() { &self.result.name } else { &self.stream.name }
    }
}

impl<'r> Job<'r> {
    /// Returns how fio prints the job: percentiles from the last result, description and units from the first.
    pub(super) fn layout(&self) -> FioLayout {
        let layout = |member: Option<&Member>| {
            let typed = member.and_then(|member| member.observed.typed.as_ref());
            typed.map(|typed| typed.stream.layout.clone()).unwrap_or_default()
        };
        let FioLayout { description, decimal_first, bits, .. } = layout(self.members.first());
        FioLayout { description, decimal_first, bits, ..layout(self.members.last()) }
    }

    /// Returns the first member.
    pub(super) fn first(&self) -> Member<'r> {
        self.members[0]
    }

    /// Returns the name of the first member.
    pub(super) fn name(&self) -> &'r str {
        self.first().name()
    }

    /// Returns the queue depth per worker of the last member, as in fio.
    pub(super) fn depth(&self) -> u32 {
        self.members.last().map_or(0, |member| member.observed.found_depth.unwrap_or(member.stream.depth))
    }

    fn observed(&self) -> Vec<&'r Observed> {
        self.members.iter().map(|member| member.observed).collect()
    }

    /// Whether no operation completed.
    pub(super) fn is_empty(&self) -> bool {
        self.members.iter().all(|member| member.observed.kinds.is_empty())
    }

    /// Returns the number of threads of all members.
    pub(super) fn workers(&self) -> u64 {
        self.members.iter().map(|member| u64::from(member.stream.workers)).sum()
    }

    /// Returns the end of the last run, in ns since the start of the session.
    pub(super) fn ended_ns(&self) -> u64 {
        self.members.iter().map(|member| member.observed.ended_ns).max().unwrap_or(0)
    }

    /// Returns the figures of each reported direction by its name.
    pub(super) fn directions(&self) -> Vec<(&'static str, Direction)> {
        let mut kinds: Vec<(&'static str, &[Kind])> = named_directions(self.mixed);
        kinds.extend(named_directions(true).into_iter().filter(|_| self.also_mixed));
        kinds
            .into_iter()
            .map(|(word, kinds)| (word, Direction::from_observed(&self.observed(), kinds)))
            .collect()
    }

    /// Returns the shares of the latencies of all directions, from submission to completion.
    pub(super) fn latency_shares(&self) -> LatencyShares {
        let directions = self.directions();
        // Leave out the sum of all directions, which `also_mixed` adds.
        let latencies = directions.iter().take(DIRECTIONS.len()).map(|(_, direction)| &direction.clat);
        LatencyShares::from_distributions(&latencies.collect::<Vec<_>>())
    }

    /// Returns the latencies of sync calls between writes; empty without any.
    pub(super) fn sync(&self) -> Distribution {
        let all = self.members.iter().filter_map(|member| member.observed.kinds.get(&Kind::Sync));
        all.map(|kind| &kind.latency).collect()
    }

    /// Returns the number of sync calls that fio counts as operations: all except `fdatasync` and
    /// `sync_file_range` between writes.
    pub(super) fn fsync_count(&self) -> u64 {
        let calls_fsync =
            |member: &&Member| member.stream.flush.is_none_or(|flush| flush.call == SyncCall::Fsync);
        let all = self.members.iter().filter(calls_fsync);
        all.filter_map(|member| member.observed.kinds.get(&Kind::Sync)).map(|kind| kind.latency.count).sum()
    }

    /// Returns the number of errors by errno.
    pub(super) fn errors(&self) -> BTreeMap<i32, u64> {
        let mut out: BTreeMap<i32, u64> = BTreeMap::new();
        for (errno, count) in self.members.iter().flat_map(|member| &member.observed.errors) {
            let sum = out.entry(*errno).or_default();
            *sum = sum.saturating_add(*count);
        }
        out
    }

    /// Returns the lowest error number of the operations. Without one, returns the error number of
    /// a sync. Without that, returns -1 if a run ended early, otherwise 0.
    pub(super) fn error(&self) -> i64 {
        let succeeded = self.members.iter().all(|member| member.observed.succeeded);
        let sync = self.members.iter().find_map(|member| member.observed.sync_error);
        let errno = self.errors().keys().next().copied().or(sync);
        errno.map_or(if succeeded { 0 } else { NO_ERRNO }, i64::from)
    }

    /// Returns the latency target of the last member.
    pub(super) fn latency_target(&self) -> Option<LatencyTarget> {
        self.members.last().and_then(|member| member.stream.latency_target)
    }

    /// Returns the steady-state rule and its outcome, if the job has a single member with such a rule.
    pub(super) fn steadied(&self) -> Option<(&Steady, &Steadied)> {
        let [member] = self.members.as_slice() else { return None };
        member.observed.steadied.as_ref().map(|(rule, observed)| (rule, observed))
    }

    /// Returns the costs of all workers.
    pub(super) fn costs(&self) -> ObservedWorkers {
        self.members.iter().fold(ObservedWorkers::NONE, |sum, member| sum.plus(&member.observed.workers))
    }
}

/// Returns the CPU time in user space and in the kernel, in percent of the time of the workers.
pub(super) fn cpu_percent(costs: &ObservedWorkers) -> [f64; 2] {
    [costs.user_ns, costs.system_ns].map(|ns| 100.0 * ns as f64 / (costs.wall_ns as f64).max(1.0))
}

/// Returns the names of directions, each with its kinds.
pub(super) fn named_directions(mixed: bool) -> Vec<(&'static str, &'static [Kind])> {
    const EACH: [(&str, &[Kind]); 3] =
        [("read", &[Kind::Read]), ("write", &[Kind::Write]), ("trim", &[Kind::Trim])];
    if mixed { vec![("mixed", &DIRECTIONS)] } else { EACH.to_vec() }
}

/// Rates of a direction over the jobs of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Group {
    /// Bytes that all jobs moved.
    pub(super) bytes: u64,
    /// Bytes per second of all jobs together.
    pub(super) bytes_per_s: f64,
    /// Minimum and maximum bytes per second of a job.
    pub(super) job_bytes_per_s: [f64; 2],
    /// Minimum and maximum duration of a job in ms.
    pub(super) runtime_ms: [u64; 2],
}

impl Group {
    /// Sums one direction over the jobs of a group; `None` if no job moved data in this direction.
    pub(super) fn from_jobs(jobs: &[Job], group: usize, word: &str) -> Option<Self> {
        let all = jobs.iter().filter(|j| j.group == group).flat_map(Job::directions);
        let all: Vec<Direction> =
            all.filter(|(name, d)| *name == word && d.runtime_ms > 0).map(|(_, d)| d).collect();
        let rates = || all.iter().map(|d| d.bytes_per_s);
        let times = || all.iter().map(|d| d.runtime_ms);
        let bytes = all.iter().fold(0, |sum: u64, d| sum.saturating_add(d.bytes));
        // Jobs may end at different times, so their rates must not be added up.
        let bytes_per_s = match all.as_slice() {
            [only] => only.bytes_per_s,
            _ => bytes as f64 * 1e3 / times().max()? as f64,
        };
        Some(Self {
            bytes,
            bytes_per_s,
            job_bytes_per_s: [rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)],
            runtime_ms: [times().min()?, times().max()?],
        })
    }
}

/// Returns the I/O of each disk, summed over all phases. All jobs of a phase have the same
/// counters, so each phase counts once.
pub(super) fn disk_totals(jobs: &[Job]) -> Vec<ObservedDisk> {
    let members = jobs.iter().flat_map(|job| &job.members);
    let phases: BTreeMap<usize, &Observed> =
        members.map(|member| (member.phase_index, member.observed)).collect();
    let mut out: Vec<ObservedDisk> = Vec::new();
    for disk in phases.values().flat_map(|observed| &observed.disks) {
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

/// Returns the idle time of the CPUs in percent over all phases: the mean, and if requested the value of each CPU.
/// `None` if the user did not request the idle time, or if the kernel did not report it.
pub(super) fn idleness(jobs: &[Job]) -> Option<(f64, Vec<(u32, f64)>)> {
    let members = || jobs.iter().flat_map(|job| &job.members);
    let asked = members().find_map(|member| member.observed.typed.as_ref()?.idle)?;
    let phases: BTreeMap<usize, &Observed> =
        members().map(|member| (member.phase_index, member.observed)).collect();
    let mut ticks: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
    for cpu in phases.values().flat_map(|observed| &observed.cpus) {
        let [idle, busy] = ticks.entry(cpu.cpu).or_default();
        *idle += cpu.idle as f64;
        *busy += cpu.user as f64 + cpu.kernel as f64;
    }
    let counted = ticks.into_iter().filter(|(_, [idle, busy])| idle + busy > 0.0);
    let each: Vec<_> = counted.map(|(cpu, [idle, busy])| (cpu, 100.0 * idle / (idle + busy))).collect();
    let mean = each.iter().map(|(_, percent)| percent).sum::<f64>() / each.len() as f64;
    (!each.is_empty()).then(|| (mean, if asked == Idle::Each { each } else { Vec::new() }))
}

/// Returns the time in which a disk had a request in flight, in percent.
pub(super) fn util_percent(disk: &ObservedDisk) -> f64 {
    (100.0 * disk.stat.busy_ms as f64 * 1e6 / (disk.ns as f64).max(1.0)).min(100.0)
}

const KIB: f64 = 1024.0;
/// Minimum length of a sample of a rate, as in fio.
const SAMPLE_NS: u64 = 500_000_000;
/// The last sample may be this much shorter than the others: the last interval ends with the last
/// operation, slightly before the end of the run.
const SAMPLE_SLACK_NS: u64 = 5_000_000;

/// Figures of one direction, or of all directions together. All are 0 if no operation completed, as
/// in fio.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    /// Bytes moved.
    pub(super) bytes: u64,
    /// Bytes moved per second.
    pub(super) bytes_per_s: f64,
    /// Number of completed operations.
    pub(super) ops: u64,
    /// Operations per second.
    pub(super) iops: f64,
    /// Length of the longest measured window in ms.
    pub(super) runtime_ms: u64,
    /// Operations that moved fewer bytes than requested.
    pub(super) short: u64,
    /// Latencies from submission to completion.
    pub(super) clat: Distribution,
    /// Latencies as fathom reports them: from submission to completion, in an open loop from the
    /// intended start to completion.
    pub(super) lat: Distribution,
    /// The latencies of `clat` by priority class and level; empty if all operations have the same priority.
    pub(super) priorities: Vec<([u32; 2], Distribution)>,
    /// Samples of the rate in KiB/s.
    pub(super) bw: RateSamples,
    /// Samples of operations per second.
    pub(super) iops_samples: RateSamples,
}

impl Direction {
    /// Sums the operations of `kinds` over all results of a job.
    pub(super) fn from_observed(all: &[&Observed], kinds: &[Kind]) -> Self {
        let own: Vec<&ObservedKind> = all
            .iter()
            .flat_map(|observed| kinds.iter().filter_map(|kind| observed.kinds.get(kind)))
            .collect();
        let moved = |observed: &&&Observed| kinds.iter().any(|kind| observed.kinds.contains_key(kind));
        let Some(window_ns) = all.iter().filter(moved).map(|observed| observed.window_ns).max() else {
            return Self::default();
        };
        let seconds = (window_ns as f64 / 1e9).max(1e-9);
        let lat: Distribution = own.iter().map(|k| &k.latency).collect();
        let bytes = own.iter().fold(0, |sum: u64, k| sum.saturating_add(k.bytes));
        let time_series: Vec<&ObservedInterval> = own.iter().flat_map(|k| &k.time_series).collect();
        Self {
            bytes,
            bytes_per_s: bytes as f64 / seconds,
            ops: lat.count,
            iops: lat.count as f64 / seconds,
            runtime_ms: (window_ns / 1_000_000).max(1),
            short: own.iter().fold(0, |sum: u64, k| sum.saturating_add(k.short)),
            clat: own.iter().map(|k| k.service.as_ref().unwrap_or(&k.latency)).collect(),
            lat,
            priorities: latencies_by_priority(&own),
            bw: RateSamples::from_intervals(&time_series, |step| step.bytes / KIB),
            iops_samples: RateSamples::from_intervals(&time_series, |step| step.ops),
        }
    }
}

/// Returns latencies by priority class and level; empty if all operations have the same priority.
fn latencies_by_priority(own: &[&ObservedKind]) -> Vec<([u32; 2], Distribution)> {
    let class_and_level = |priority: Option<IoPriority>| {
        let number = priority.map_or(0, IoPriority::number);
        [number >> 13, number & 7]
    };
    let each = own.iter().flat_map(|kind| &kind.priorities);
    let all = grouped(each.map(|(priority, latency)| (class_and_level(*priority), latency)));
    if all.len() < 2 {
        return Vec::new();
    }
    all.into_iter().map(|(number, latencies)| (number, latencies.into_iter().collect())).collect()
}

/// Statistics of a rate that is sampled once per step of a time series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RateSamples {
    /// Number of samples.
    pub(super) count: u64,
    /// Smallest sample, in the unit of the rate.
    pub(super) min: u64,
    /// Largest sample, in the unit of the rate.
    pub(super) max: u64,
    /// Arithmetic average, in the unit of the rate; 0 without samples.
    pub(super) mean: f64,
    /// Standard deviation, in the unit of the rate; 0 with fewer than two samples.
    pub(super) deviation: f64,
}

impl RateSamples {
    /// Samples a rate in steps of at least half a second; an incomplete last step is dropped.
    fn from_intervals(time_series: &[&ObservedInterval], value: impl Fn(&Step) -> f64) -> Self {
        let all = || time_series.iter().copied();
        let step_ns = step_length(all(), SAMPLE_NS);
        let end = all().map(|s| s.start_ns.saturating_add(s.ns)).max().unwrap_or(0);
        let rate = |step: &Step| value(step) / (step_ns as f64 / 1e9);
        let rates: Vec<f64> = steps(all(), step_ns)
            .range(..end.saturating_add(SAMPLE_SLACK_NS) / step_ns)
            .map(|(_, step)| rate(step))
            .collect();
        if rates.is_empty() {
            return Self::default();
        }
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares: f64 = rates.iter().map(|r| (r - mean).powi(2)).sum();
        Self {
            count: rates.len() as u64,
            min: rates.iter().copied().fold(f64::INFINITY, f64::min) as u64,
            max: rates.iter().copied().fold(0.0, f64::max) as u64,
            mean,
            deviation: if rates.len() > 1 { (squares / (rates.len() - 1) as f64).sqrt() } else { 0.0 },
        }
    }

    /// Returns the mean, which must be in KiB/s, as a percentage of the group's rate, which is in bytes
    /// per second: at most 100, and 0 without samples or without a rate.
    pub(super) fn percent_of(&self, group_bytes_per_s: f64) -> f64 {
        if self.count == 0 || group_bytes_per_s <= 0.0 {
            return 0.0;
        }
        (100.0 * self.mean * KIB / group_bytes_per_s).min(100.0)
    }
}

/// Maximum number of steps of a time series; later data is left out.
const MAX_STEPS: u64 = 1 << 20;

/// Operations that completed in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// Number of operations. An interval across two steps is divided between them by time.
    pub(super) ops: f64,
    /// Number of bytes. An interval across two steps is divided between them by time.
    pub(super) bytes: f64,
}

/// Divides a time series into steps of equal length. Returns the non-empty steps by their index.
pub(super) fn steps<'s>(
    time_series: impl IntoIterator<Item = &'s ObservedInterval>,
    step_ns: u64,
) -> BTreeMap<u64, Step> {
    let step_ns = step_ns.max(1);
    let mut out: BTreeMap<u64, Step> = BTreeMap::new();
    for interval in time_series.into_iter().filter(|s| s.ns > 0) {
        let end = interval.start_ns.saturating_add(interval.ns);
        for at in interval.start_ns / step_ns..=((end - 1) / step_ns).min(MAX_STEPS) {
            let (begin, end_ns) = (at.saturating_mul(step_ns), (at + 1).saturating_mul(step_ns));
            let (from, to) = (interval.start_ns.max(begin), end.min(end_ns));
            let share = to.saturating_sub(from) as f64 / interval.ns as f64;
            let step = out.entry(at).or_default();
            step.ops += share * interval.ops as f64;
            step.bytes += share * interval.bytes as f64;
        }
    }
    out
}

/// Returns the step length: the median length of an interval, multiplied by the smallest integer
/// that makes it at least `least_ns`.
pub(super) fn step_length<'s>(
    time_series: impl IntoIterator<Item = &'s ObservedInterval>,
    least_ns: u64,
) -> u64 {
    let mut lengths: Vec<u64> = time_series.into_iter().map(|s| s.ns).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0).max(1);
    usual.saturating_mul(least_ns.div_ceil(usual))
}

/// A column of queue depths that has any operations shows at least this share in percent, as in
/// fio.
const MIN_DEPTH_SHARE: f64 = 0.1;
/// Names of the columns of queue depths.
pub(super) const DEPTH_LEVELS: [&str; COLUMNS] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Names of the columns of operations per call.
pub(super) const CALL_LEVELS: [&str; COLUMNS] = ["0", "4", "8", "16", "32", "64", ">=64"];
/// Maximum number of operations per call in the column `4`.
const SMALLEST_CALL: u64 = 4;

/// fio's three tables of depths, in percent. An unknown table is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Depths {
    /// Shares of operations by the number in flight when they were submitted, see [`DEPTH_LEVELS`].
    pub(super) level: Option<[f64; COLUMNS]>,
    /// Shares of submission calls by the number of operations that they submitted, see
    /// [`CALL_LEVELS`].
    pub(super) submit: Option<[f64; COLUMNS]>,
    /// Shares of calls by the number of completed operations that they reaped, see [`CALL_LEVELS`].
    pub(super) complete: Option<[f64; COLUMNS]>,
}

impl Depths {
    /// Returns the tables of a job from the counts of its workers. Without counts, returns the mean
    /// of the tables of its members, weighted by their operations.
    pub(super) fn from_job(job: &Job) -> Self {
        if let Some(counts) = job.costs().depth_counts.filter(|counts| *counts != DepthCounts::NONE) {
            return Self::from_counts(&counts);
        }
        let mut ops = 0.0;
        let mut sum: Option<Self> = None;
        for member in &job.members {
            let kinds = member.observed.kinds.values();
            let own = kinds.fold(0, |sum: u64, k| sum.saturating_add(k.latency.count)) as f64;
            let counts = member.observed.workers.depth_counts.filter(|counts| *counts != DepthCounts::NONE);
            let one =
                counts.map_or_else(|| Self::of_stream(member.stream), |counts| Self::from_counts(&counts));
            sum = Some(sum.map_or(one, |sum| sum.mean_with(&one, own / (ops + own).max(1.0))));
            ops += own;
        }
        sum.unwrap_or_default()
    }

    /// Returns the weighted mean of two sets of tables: `others` has the weight `share`, `self` the
    /// rest. A table that is unknown in one of them is unknown.
    fn mean_with(&self, others: &Self, share: f64) -> Self {
        let both = |a: Option<[f64; COLUMNS]>, b: Option<[f64; COLUMNS]>| {
            a.zip(b).map(|(a, b)| std::array::from_fn(|at| (1.0 - share) * a[at] + share * b[at]))
        };
        Self {
            level: both(self.level, others.level),
            submit: both(self.submit, others.submit),
            complete: both(self.complete, others.complete),
        }
    }

    fn from_counts(counts: &DepthCounts) -> Self {
        let shares = |counts: &[u64; COLUMNS]| {
            let all: u64 = counts.iter().fold(0, |sum, count| sum.saturating_add(*count));
            Some(counts.map(|count| visible_percent(count, all, MIN_DEPTH_SHARE)))
        };
        Self {
            level: shares(&counts.level),
            submit: shares(&counts.submit),
            complete: shares(&counts.complete),
        }
    }

    /// Returns the tables that follow from the settings of a stream: those in which only one column
    /// is possible.
    fn of_stream(stream: &Stream) -> Self {
        let per_worker = u64::from(stream.depth).saturating_mul(stream.lanes());
        let all_in = |column: usize, known: bool| {
            known.then(|| std::array::from_fn(|at| if at == column { 100.0 } else { 0.0 }))
        };
        Self {
            level: all_in(0, per_worker == 1),
            submit: all_in(1, u64::from(stream.batch.submit).min(per_worker) <= SMALLEST_CALL),
            complete: all_in(1, per_worker <= SMALLEST_CALL),
        }
    }
}

/// Number of percentiles of each direction in a terse line.
pub(super) const TERSE_PERCENTILES: usize = 20;

/// Upper limits of the latency columns. The columns of nanoseconds and microseconds end at 1000. The columns of
/// milliseconds end at 2000, followed by a column for latencies of 2000 and more.
const LATENCY_LIMITS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// Shares of latencies in percent, by unit and [`LATENCY_LIMITS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LatencyShares {
    /// Latencies below a microsecond.
    pub(super) ns: [f64; 10],
    /// Latencies from a microsecond to below a millisecond.
    pub(super) us: [f64; 10],
    /// Latencies of a millisecond or more.
    pub(super) ms: [f64; 12],
}

impl LatencyShares {
    /// Pairs the shares of one unit of time (ns, us or ms) with the names of their columns.
    pub(super) fn named(shares: &[f64]) -> impl Iterator<Item = (String, f64)> {
        let names = LATENCY_LIMITS.iter().map(u64::to_string).chain([">=2000".to_owned()]);
        names.zip(shares.iter().copied())
    }

    /// Computes the shares of several distributions together.
    pub(super) fn from_distributions(all: &[&Distribution]) -> Self {
        let total: u64 = all.iter().fold(0, |sum, d| sum.saturating_add(d.count));
        let share = |from: u64, to: u64| {
            let count = all.iter().fold(0, |sum: u64, d| sum.saturating_add(d.count_between(from, to)));
            visible_percent(count, total, MIN_LATENCY_SHARE)
        };
        let row = |unit: u64, at: usize| {
            // The first column of microseconds and milliseconds starts at 1: shorter latencies are
            // in the columns of the smaller unit.
            let from =
                if at == 0 && unit == 1 { 0 } else { at.checked_sub(1).map_or(1, |at| LATENCY_LIMITS[at]) };
            share(
                from.saturating_mul(unit),
                LATENCY_LIMITS.get(at).map_or(u64::MAX, |to| to.saturating_mul(unit)),
            )
        };
        Self {
            ns: std::array::from_fn(|at| row(1, at)),
            us: std::array::from_fn(|at| row(1_000, at)),
            ms: std::array::from_fn(|at| row(1_000_000, at)),
        }
    }
}

/// A column of latencies that has any operations shows at least this share in percent, as in fio.
const MIN_LATENCY_SHARE: f64 = 0.01;

/// Returns a share in percent: 0 if `part` is 0, otherwise at least `least`.
fn visible_percent(part: u64, whole: u64, least: f64) -> f64 {
    if part == 0 || whole == 0 { 0.0 } else { (100.0 * part as f64 / whole as f64).max(least) }
}

/// The format of times in fio's text: that of `ctime(3)`.
const CTIME: &str = "%a %b %e %H:%M:%S %Y";

/// Returns the end of the last run; `None` if the report has no start time.
pub(super) fn end_time(report: &Report, jobs: &[Job]) -> Option<Zoned> {
    local_time(report, SignedDuration::from_millis((elapsed_ns(jobs) / 1_000_000) as i64))
}

/// Formats a time like `ctime(3)`: `Sun Nov 22 17:37:37 2026`.
pub(super) fn ctime(at: &Zoned) -> String {
    at.strftime(CTIME).to_string()
}

/// Returns the time from the start of the session to the end of its last run, in ns.
pub(super) fn elapsed_ns(jobs: &[Job]) -> u64 {
    jobs.iter().map(Job::ended_ns).max().unwrap_or(0)
}

#[cfg(test)]
fn example_observed(kinds: &[Kind]) -> Observed {
    let latency = Distribution { count: 100, min_ns: 10, max_ns: 10, mean_ns: 10.0, bins: vec![(10, 100)] };
    let interval = |start_ns, ops| ObservedInterval { start_ns, ns: SAMPLE_NS, ops, bytes: ops * 4096 };
    let time_series = vec![interval(0, 30), interval(SAMPLE_NS, 50)];
    let one = ObservedKind { bytes: 409_600, short: 0, latency, time_series, ..ObservedKind::default() };
    let kinds: BTreeMap<Kind, ObservedKind> = kinds.iter().map(|k| (*k, one.clone())).collect();
    Observed { kinds, window_ns: 1_000_000_000, ..Observed::default() }
}

#[cfg(test)]
fn example_interval(start_ns: u64, ns: u64, ops: u64) -> ObservedInterval {
    ObservedInterval { start_ns, ns, ops, bytes: ops * 512 }
}

#[test]
fn rates_cover_the_window_and_samples_the_time_series() {
    let d = Direction::from_observed(&[&example_observed(&[Kind::Read])], &[Kind::Read]);
    assert_eq!((d.ops, d.iops, d.bytes_per_s, d.runtime_ms), (100, 100.0, 409_600.0, 1000));
    let RateSamples { count, min, max, mean, deviation } = d.iops_samples;
    assert_eq!((count, min, max, mean), (2, 60, 100, 80.0));
    assert!((deviation - 28.284).abs() < 0.001 && d.bw.max == 400);
    assert!((d.bw.percent_of(409_600.0) - 80.0).abs() < 1e-9);
    let none = Direction::from_observed(&[&example_observed(&[Kind::Read])], &[Kind::Write]);
    assert_eq!((none.ops, none.runtime_ms, none.bw), (0, 0, RateSamples::default()));
}

#[test]
fn results_reported_as_one_are_summed_over_time() {
    let (one, mut other) = (example_observed(&[Kind::Read]), example_observed(&[Kind::Read, Kind::Write]));
    other.window_ns = 2_000_000_000;
    let d = Direction::from_observed(&[&one, &other], &[Kind::Read]);
    assert_eq!((d.ops, d.bytes, d.runtime_ms, d.iops), (200, 819_200, 2000, 100.0));
    assert_eq!((d.iops_samples.count, d.iops_samples.min, d.iops_samples.max), (2, 120, 200));
    let mixed = Direction::from_observed(&[&one, &other], &[Kind::Read, Kind::Write, Kind::Trim]);
    assert_eq!((mixed.ops, mixed.iops_samples.max), (300, 300));
}

#[test]
fn an_interval_across_two_steps_is_divided_without_loss() {
    let time_series = [
        example_interval(0, 10, 7),
        example_interval(10, 20, 40),
        example_interval(30, 10, 1),
        example_interval(0, 10, 3),
    ];
    let steps = steps(&time_series, 20);
    assert_eq!(steps.values().map(|s| s.ops).collect::<Vec<_>>(), [30.0, 21.0]);
    assert_eq!(steps.values().map(|s| s.bytes).collect::<Vec<_>>(), [30.0 * 512.0, 21.0 * 512.0]);
    assert_eq!([50, 20, 3].map(|least| step_length(&time_series, least)), [50, 20, 10]);
    assert_eq!(step_length(&[], 5), 5);
}

#[test]
fn very_long_times_are_limited() {
    let time_series = [example_interval(u64::MAX - 5, u64::MAX, 7), example_interval(0, u64::MAX, 1)];
    assert!(steps(&time_series, 1).len() <= 2 + MAX_STEPS as usize);
    assert_eq!(step_length(&time_series, 9), u64::MAX);
    let half = (1 << 63) + 1;
    assert_eq!(steps(&[example_interval(half, half, 7)], half).len(), 1);
}

#[test]
fn tables_with_a_single_possible_value_are_known() {
    use model::job::{Access, Pattern};
    let stream = |depth| Stream::plain(Access::plain(Pattern::Random, 4096, 100), depth, 3, "io_uring");
    let known = |s: &Stream| {
        let d = Depths::of_stream(s);
        [d.level, d.submit, d.complete].map(|table| table.map(|t| t.iter().position(|share| *share > 0.0)))
    };
    assert_eq!(known(&stream(1)), [Some(Some(0)), Some(Some(1)), Some(Some(1))]);
    assert_eq!(known(&stream(32)), [None, Some(Some(1)), None]);
    let mut batches = stream(32);
    batches.batch.submit = 8;
    assert_eq!(known(&batches), [None; 3]);
    batches.targets = vec![0, 1];
    batches.depth = 1;
    assert_eq!(known(&batches), [None, Some(Some(1)), Some(Some(1))]);
}

#[test]
fn a_table_of_several_results_is_known_if_all_are() {
    let table = |column: usize| Some(std::array::from_fn(|at| if at == column { 100.0 } else { 0.0 }));
    let one = Depths { level: table(0), submit: table(1), complete: None };
    let both = one.mean_with(&Depths { level: table(2), ..one }, 0.25);
    assert_eq!(both.level, Some([75.0, 0.0, 25.0, 0.0, 0.0, 0.0, 0.0]));
    assert_eq!((both.submit, both.complete), (table(1), None));
}

#[test]
fn shares_of_counts_total_100_percent_and_rare_ones_are_visible() {
    let mut counts = DepthCounts::default();
    (0..9999).for_each(|_| counts.submitted(1, 32));
    counts.submitted(1, 1);
    counts.completed(6);
    let Depths { level, submit, complete } = Depths::from_counts(&counts);
    assert_eq!(level, Some([MIN_DEPTH_SHARE, 0.0, 0.0, 0.0, 0.0, 99.99, 0.0]));
    assert_eq!(submit.map(|shares| shares[1]), Some(100.0));
    assert_eq!(complete.map(|shares| shares[2]), Some(100.0));
}

#[test]
fn each_latency_is_in_one_share() {
    let bins: Vec<(u64, u64)> =
        [0, 1, 3, 999, 1_000, 1_999, 2_000, 999_999, 1_000_000, 1_999_999_999, 2_000_000_000, u64::MAX - 1]
            .map(|ns| (ns, 1))
            .to_vec();
    let d = Distribution { count: bins.len() as u64, bins, ..Distribution::default() };
    let LatencyShares { ns, us, ms } = LatencyShares::from_distributions(&[&d, &d]);
    let sum: f64 = ns.iter().chain(&us).chain(&ms).sum();
    assert!((sum - 100.0).abs() < 1e-9, "{ns:?} {us:?} {ms:?}");
    let one = 100.0 / 12.0;
    let twelfths = |shares: &[f64]| shares.iter().map(|s| (s / one).round() as u32).collect::<Vec<_>>();
    assert_eq!(twelfths(&ns), [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(twelfths(&us), [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(twelfths(&ms), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn rare_latencies_are_visible_and_absent_ones_are_zero() {
    let d =
        Distribution { count: 1_000_001, bins: vec![(60, 1_000_000), (5_000, 1)], ..Distribution::default() };
    assert_eq!(
        (LatencyShares::from_distributions(&[&d]).us[2], LatencyShares::from_distributions(&[]).us[2]),
        (0.01, 0.0)
    );
}
