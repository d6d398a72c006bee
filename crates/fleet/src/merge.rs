//! Adds up what several hosts measured: phases of a run, reports of hosts, and the session file that rank 0 keeps.
//!
//! Hosts are added in the order in which their messages arrive; the result is the same in any order. Besides sums, the following are
//! kept: notes with the names of the hosts, the time in which all loads ran, the spread of the start times, the largest disturbances.
//! These values need little memory for any number of hosts.

use super::clock::Reading;
use analysis::Judging;
use history::session::Session;
use model::finding::{Checked, Outcome};
use model::fleet::{
    CheckedOnHosts, Fleet, HostGroup, HostRecord, HostResult, LimitedHosts, RunIndex, RunOnHosts, SlowestHost,
};
use model::job::Kind;
use model::record::{
    Common, Disturbance, Disturbed, End, Frame, Header, Interval, OpenLoop, PriorityEnd, Record, Run, RunEnd,
    RunEnding, RunStart, StreamEnd, ThreadIo, WorkerEnd,
};
use model::report::{Figures, Limiter, Measured, Report};
use output::failure::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Hosts count as running equally long if all hosts ran during at least this share of the time in which any host ran.
const EQUALLY_LONG_SHARE: f64 = 0.99;
/// Maximum number of notes of a stream's workers, in each of `used` and `fallbacks`. The first ones in alphabetical order are kept.
const WORKER_NOTES_MAX: usize = 16;
/// Operations and bytes of the common time are counted in thousandths, because an interval may be only partly in this time.
const THOUSANDTHS: f64 = 1_000.0;

/// The phases of a run, added up over some hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunParts {
    pub(super) phases: Vec<Phase>,
    /// Disturbances by other processes and limits.
    pub(super) disturbed: Vec<Disturbance>,
}

/// When the load of each stream ran, by phase.
pub(super) type Times = BTreeMap<usize, Windows>;
/// When all hosts ran, by phase and stream: `[from, until]` in ns after the common start. Contains only streams that ran longer on some
/// hosts than on others.
pub(super) type CommonTimes = BTreeMap<usize, BTreeMap<usize, [u64; 2]>>;

impl RunParts {
    /// Adds the phases of other hosts.
    pub(super) fn add(&mut self, other: Self) {
        for phase in other.phases {
            match self.phases.iter_mut().find(|mine| mine.index_and_load() == phase.index_and_load()) {
                Some(mine) => mine.add(phase),
                None => self.phases.push(phase),
            }
        }
        add_disturbances(&mut self.disturbed, other.disturbed);
    }

    /// Returns for each phase when the load of its streams ran.
    pub(super) fn times(&self) -> Times {
        self.phases.iter().map(|phase| (phase.start.phase, phase.windows.clone())).collect()
    }

    /// Counts the operations and bytes that this host completed while all hosts ran, from the intervals of its phases.
    pub(super) fn count_common(&mut self, interval_series: &[Vec<Interval>], common: &CommonTimes) {
        for (phase, intervals) in self.phases.iter_mut().zip(interval_series) {
            let times = common.get(&phase.start.phase).into_iter().flatten();
            phase.common = Some(
                times.map(|(stream, time)| (*stream, completed_within(intervals, *stream, *time))).collect(),
            );
        }
    }
}

/// Adds the times of other hosts.
pub(super) fn add_times(all: &mut Times, others: Times) {
    for (phase, windows) in others {
        add_windows(all.entry(phase).or_default(), windows);
    }
}

/// Returns when all hosts ran, for the streams that ran longer on some hosts than on others.
pub(super) fn common_times(all: &Times) -> CommonTimes {
    let unequal_windows = |windows: &Windows| -> BTreeMap<usize, [u64; 2]> {
        let unlike = windows.iter().filter(|(_, window)| !ran_equally_long(window));
        unlike.map(|(stream, window)| (*stream, [window.from_ns, window.until_ns])).collect()
    };
    all.iter().map(|(phase, windows)| (*phase, unequal_windows(windows))).collect()
}

/// Whether all hosts ran equally long.
fn ran_equally_long(window: &Window) -> bool {
    window.together_ns() as f64 >= EQUALLY_LONG_SHARE * window.total_ns() as f64
}

/// One phase, added up over some hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Phase {
    /// The lowest rank among the hosts. `start` and the end time are those of this rank.
    first: u32,
    /// The number of hosts.
    hosts: u32,
    pub(super) start: RunStart,
    /// The sums over the hosts. The ending is in `ended`, and the notes are in `notes`.
    pub(super) end: RunEnd,
    /// The lowest rank that did not complete the phase, and why; `None` if all hosts completed it.
    ended: Option<(u32, RunEnding)>,
    notes: Notes,
    windows: Windows,
    late: StartDelay,
    /// Operations and bytes that completed while all hosts ran, by stream and kind. The unit is a thousandth
    /// of an operation or byte. `None` if a host did not count them.
    common: Option<BTreeMap<usize, BTreeMap<Kind, [u64; 2]>>>,
}

/// One phase of a run on all hosts. `common_ns` is the time in which all hosts ran, of the stream for which this time is shortest.
/// `longest_ns` is the time in which any host ran, of the stream for which this time is longest.
pub(super) struct Merged {
    pub(super) start: RunStart,
    pub(super) end: RunEnd,
    pub(super) common_ns: u64,
    pub(super) longest_ns: u64,
    pub(super) late: StartDelay,
    /// Number of hosts that measured the phase.
    pub(super) hosts: u32,
}

impl Phase {
    /// Returns the phase of one host, which began `late_ns` after the start time; `None` if the run has no end.
    pub(super) fn from_run(
        rank: u32,
        run: &Run,
        intervals: &[Interval],
        late_ns: Option<u64>,
    ) -> Option<Self> {
        let mut end = run.end.clone()?;
        let ending = std::mem::replace(&mut end.ending, RunEnding::Complete);
        let error = |w: &WorkerEnd| w.error.as_ref().map(|why| format!("worker {}: {why}", w.worker));
        let errors: Vec<String> = end.workers.iter().filter_map(error).collect();
        let notes = Notes::from_host(rank, std::mem::take(&mut end.notes).into_iter().chain(errors));
        let mut workers = Vec::new();
        for worker in std::mem::take(&mut end.workers) {
            add_worker(&mut workers, WorkerEnd { worker: 0, depth: None, error: None, ..worker });
        }
        // Counts per lane have a meaning only on one host.
        end.streams.iter_mut().for_each(|stream| stream.lanes.clear());
        let window = |stream: usize| {
            let rows = || intervals.iter().filter(|row| row.stream == stream);
            Some(Window::from_host(rows().map(|r| r.start_ns).min()?, rows().map(|r| r.end_ns).max()?))
        };
        let windows = end.streams.iter().filter_map(|s| Some((s.stream, window(s.stream)?))).collect();
        Some(Self {
            first: rank,
            hosts: 1,
            start: run.start.clone(),
            end: RunEnd { workers, process_ns: None, stops: None, ..end },
            ended: (ending != RunEnding::Complete).then_some((rank, ending)),
            notes,
            windows,
            late: late_ns.map_or_else(StartDelay::default, |ns| StartDelay::from_host(rank, ns)),
            common: None,
        })
    }

    /// Returns the index of the phase and its offered load. The load distinguishes the runs of a
    /// load curve.
    pub(super) fn index_and_load(&self) -> (RunIndex, Option<u64>) {
        (self.start.index(), self.start.offered_iops)
    }

    /// Adds the same phase of other hosts.
    fn add(&mut self, other: Self) {
        let other = if other.first < self.first { std::mem::replace(self, other) } else { other };
        self.hosts += other.hosts;
        if other.ended.as_ref().map(|e| e.0) < self.ended.as_ref().map(|e| e.0) || self.ended.is_none() {
            self.ended = other.ended.or(self.ended.take());
        }
        for stream in other.end.streams {
            match self.end.streams.iter_mut().find(|s| s.stream == stream.stream) {
                Some(sum) => add(sum, &stream),
                None => self.end.streams.push(stream),
            }
        }
        self.end.streams.sort_by_key(|s| s.stream);
        other.end.workers.into_iter().for_each(|worker| add_worker(&mut self.end.workers, worker));
        self.end.sync_ns = self.end.sync_ns.max(other.end.sync_ns);
        for failure in other.end.sync_failures {
            if !self.end.sync_failures.contains(&failure) {
                self.end.sync_failures.push(failure);
            }
        }
        self.notes.add(other.notes);
        add_windows(&mut self.windows, other.windows);
        self.late.add(other.late);
        self.common = self.common.take().zip(other.common).map(|(mut mine, its)| {
            for (stream, kinds) in its {
                let sums = mine.entry(stream).or_default();
                for (kind, n) in kinds {
                    add_pair(sums.entry(kind).or_default(), n);
                }
            }
            mine
        });
    }

    /// Returns the phase as one run. `names` are the names of all hosts by rank.
    pub(super) fn merged(self, names: &[String]) -> Merged {
        let Self { start, mut end, hosts, late, .. } = self;
        end.notes = self.notes.merge_in_order(names, hosts);
        end.ending = match self.ended {
            None => RunEnding::Complete,
            Some((rank, RunEnding::Failed(why))) if rank > 0 => {
                let name = names.get(rank as usize).cloned().unwrap_or_else(|| format!("rank {rank}"));
                RunEnding::Failed(format!("{name}: {why}"))
            }
            Some((_, ending)) => ending,
        };
        for stream in &mut end.streams {
            let Some(window) = self.windows.get(&stream.stream).filter(|window| !ran_equally_long(window))
            else {
                continue;
            };
            let Some(counted) = self.common.as_ref().and_then(|common| common.get(&stream.stream)) else {
                continue;
            };
            let from_thousandths = |n: u64| (n as f64 / THOUSANDTHS).round() as u64;
            let kinds = counted.iter().map(|(kind, sums)| (*kind, sums.map(from_thousandths))).collect();
            stream.common = Some(Common { window_ns: window.together_ns(), kinds });
        }
        let common_ns = self.windows.values().map(Window::together_ns).min().unwrap_or(0);
        let longest_ns = self.windows.values().map(Window::total_ns).max().unwrap_or(0);
        Merged { start, end, common_ns, longest_ns, late, hosts }
    }
}

/// Returns the operations and bytes that a stream completed on one host between `from` and `until`,
/// in thousandths, by kind. An interval that is only partly in this period counts in proportion.
fn completed_within(
    intervals: &[Interval],
    stream: usize,
    [from, until]: [u64; 2],
) -> BTreeMap<Kind, [u64; 2]> {
    let mut sums: BTreeMap<Kind, [u64; 2]> = BTreeMap::new();
    for Interval { start_ns, end_ns, cells, .. } in intervals.iter().filter(|row| row.stream == stream) {
        let length = end_ns.saturating_sub(*start_ns);
        let inside = until.min(*end_ns).saturating_sub(from.max(*start_ns));
        let part = match length {
            0 => f64::from(u8::from((from..=until).contains(start_ns))),
            length => inside as f64 / length as f64,
        };
        let parts = |n: u64| (n as f64 * part * THOUSANDTHS).round() as u64;
        for (kind, cell) in cells {
            add_pair(sums.entry(*kind).or_default(), [parts(cell.ops), parts(cell.bytes)]);
        }
    }
    sums
}

fn add_pair(sum: &mut [u64; 2], other: [u64; 2]) {
    *sum = [sum[0].saturating_add(other[0]), sum[1].saturating_add(other[1])];
}

/// Adds the cost of a worker to the sum of its stream. The duration is that of the longest worker.
fn add_worker(all: &mut Vec<WorkerEnd>, other: WorkerEnd) {
    let Some(sum) = all.iter_mut().find(|w| w.stream == other.stream) else {
        all.push(other);
        all.sort_by_key(|w| w.stream);
        return;
    };
    sum.wall_ns = sum.wall_ns.max(other.wall_ns);
    sum.user_ns = sum.user_ns.saturating_add(other.user_ns);
    sum.system_ns = sum.system_ns.saturating_add(other.system_ns);
    sum.loop_iterations = sum.loop_iterations.saturating_add(other.loop_iterations);
    sum.ops = sum.ops.saturating_add(other.ops);
    add_pair(&mut sum.switches, other.switches);
    let pair = |(mut mine, its): ([u64; 2], [u64; 2])| {
        add_pair(&mut mine, its);
        mine
    };
    sum.faults = sum.faults.zip(other.faults).map(pair);
    sum.depth_counts = sum.depth_counts.zip(other.depth_counts).map(|(mine, its)| mine.plus(&its));
    sum.counted = combine_known(&sum.counted, other.counted, |mine, its| pair((mine, its)));
    sum.ready_ns = combine_known(&sum.ready_ns, other.ready_ns, u64::saturating_add);
    sum.io = combine_known(&sum.io, other.io, ThreadIo::plus);
    for (notes, others) in [(&mut sum.used, other.used), (&mut sum.fallbacks, other.fallbacks)] {
        notes.extend(others);
        notes.sort_unstable();
        notes.dedup();
        notes.truncate(WORKER_NOTES_MAX);
    }
}

/// Adds two values. The sum is unknown if one of the values is. If both are unknown, keeps the reason that is first in alphabetical order.
fn combine_known<T: Copy>(
    one: &model::Known<T>,
    other: model::Known<T>,
    add: impl Fn(T, T) -> T,
) -> model::Known<T> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(add(*one, other)),
        (Err(one), Err(other)) => Err(one.clone().min(other)),
        (Err(why), Ok(_)) => Err(why.clone()),
        (Ok(_), Err(why)) => Err(why),
    }
}

/// Adds another host's figures of the same stream.
fn add(sum: &mut StreamEnd, other: &StreamEnd) {
    sum.window_ns = sum.window_ns.max(other.window_ns);
    sum.depth_ns = sum.depth_ns.saturating_add(other.depth_ns);
    sum.submit.merge(&other.submit);
    sum.data = sum.data.or(other.data);
    for (kind, its) in &other.kinds {
        let mine = sum.kinds.entry(*kind).or_default();
        mine.bytes = mine.bytes.saturating_add(its.bytes);
        mine.latency.merge(&its.latency);
        if let Some(OpenLoop { service, lateness }) = &its.open {
            let open = mine.open.get_or_insert_default();
            open.service.merge(service);
            open.lateness.merge(lateness);
        }
    }
    other.priorities.iter().for_each(|its| PriorityEnd::add(&mut sum.priorities, its));
    for (kind, its) in &other.issued {
        let mine = sum.issued.entry(*kind).or_default();
        mine.ops = mine.ops.saturating_add(its.ops);
        mine.bytes = mine.bytes.saturating_add(its.bytes);
        mine.short = mine.short.saturating_add(its.short);
        mine.max_ns = mine.max_ns.max(its.max_ns);
        for (errno, count) in &its.errors {
            *mine.errors.entry(*errno).or_default() += count;
        }
    }
}

/// Returns the disturbances on all hosts; `None` if there were none.
pub(super) fn disturbed(attempt: u32, disturbances: Vec<Disturbance>) -> Option<Disturbed> {
    (!disturbances.is_empty()).then_some(Disturbed { attempt, disturbances })
}

/// Returns the spread of the start times of a run, from each host's delay and its clock readings
/// before and after the run. The values are `None` if there is only one host, or if the delay of a
/// host is unknown.
pub(super) fn start_spread(
    late: &StartDelay,
    hosts: usize,
    before: &[Option<Reading>],
    after: &[Option<Reading>],
) -> RunOnHosts {
    if (late.hosts as usize) < hosts || hosts < 2 {
        return RunOnHosts::default();
    }
    let error = |(rank, then): (usize, &Option<Reading>)| {
        let then = (*then)?;
        Some(after.get(rank).copied().flatten().map_or(then.error_ns(), |now| now.error_since(then)))
    };
    RunOnHosts {
        spread_ns: Some(late.last.0 - late.first_ns),
        clock_error_ns: before.iter().take(hosts).enumerate().map(error).max().flatten(),
        last: Some(late.last.1),
        ..RunOnHosts::default()
    }
}

/// A run on one host, with its intervals: `ops` reads that took `ns` each. The run ended `until_ns` after the start.
#[cfg(test)]
fn run_on_host(
    rank: u32,
    (ops, ns, until_ns): (u64, u64, u64),
    ending: RunEnding,
    notes: &[&str],
) -> (RunParts, Vec<Vec<Interval>>) {
    use model::record::{Cell, KindEnd};
    let mut latency = model::histogram::Histogram::new();
    (0..ops).for_each(|_| latency.record(ns));
    let kinds = [(Kind::Read, KindEnd { bytes: ops * 4096, latency, open: None })].into();
    let stream = StreamEnd { window_ns: until_ns, kinds, ..StreamEnd::default() };
    let row = |at: u64| Interval {
        stream: 0,
        start_ns: at * until_ns / 10,
        end_ns: (at + 1) * until_ns / 10,
        depth_ns: 0,
        cells: [(
            Kind::Read,
            Cell { ops: ops / 10, bytes: ops / 10 * 4096, p50_ns: ns, p99_ns: ns, max_ns: ns },
        )]
        .into(),
    };
    let start = RunStart {
        job: 0,
        phase: 0,
        repeat: 0,
        attempt: 0,
        offered_iops: None,
        host: 0,
        at_ns: 0,
        target_bytes: vec![],
    };
    let notes = notes.iter().map(|note| (*note).to_owned()).collect();
    let end = RunEnd { streams: vec![stream], notes, ..RunEnd::without(ending) };
    let run = Run { start, intervals: Vec::new(), evidence: Vec::new(), end: Some(end), disturbed: None };
    let intervals: Vec<Interval> = (0..10).map(row).collect();
    let phases = Phase::from_run(rank, &run, &intervals, Some(u64::from(rank))).into_iter().collect();
    (RunParts { phases, disturbed: Vec::new() }, vec![intervals])
}

/// Adds up the runs of the hosts `a` and `b`, and returns the first phase.
#[cfg(test)]
fn merged(hosts: [(RunParts, Vec<Vec<Interval>>); 2]) -> Merged {
    let mut times = Times::new();
    for (ran, _) in &hosts {
        add_times(&mut times, ran.times());
    }
    let common = common_times(&times);
    let mut all = RunParts::default();
    for (mut ran, interval_series) in hosts {
        ran.count_common(&interval_series, &common);
        all.add(ran);
    }
    all.phases.remove(0).merged(&["a".to_owned(), "b".to_owned()])
}

#[cfg(test)]
fn run_parts(rank: u32, did: (u64, u64, u64)) -> (RunParts, Vec<Vec<Interval>>) {
    run_on_host(rank, did, RunEnding::Complete, &[])
}

/// Maximum number of different notes per run. The first ones in alphabetical order are kept, so
/// that the order in which hosts are added has no effect.
const NOTES_MAX: usize = 64;
/// Maximum number of disturbances per run and kind. The largest ones are kept.
const DISTURBANCES_MAX: usize = 8;

/// Notes of several hosts about a run, each once with the hosts that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Notes {
    /// For each note: the hosts that wrote it, and its position among the notes of the lowest rank
    /// of these hosts.
    notes: BTreeMap<String, (HostGroup, u32)>,
    /// Sum over all hosts: the number of different notes of each host.
    count: u32,
}

impl Notes {
    /// Creates the notes of one host, and keeps their order.
    pub(super) fn from_host(rank: u32, notes: impl Iterator<Item = String>) -> Self {
        let mut all = Self::default();
        for (note, at) in notes.zip(0..) {
            all.notes.entry(note).or_insert_with(|| (HostGroup::only(rank), at));
        }
        all.count = all.notes.len() as u32;
        all.shorten();
        all
    }

    /// Adds the notes of other hosts.
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        for (note, (its, at)) in other.notes {
            match self.notes.get_mut(&note) {
                Some((mine, first)) => {
                    if its.first < mine.first {
                        *first = at;
                    }
                    mine.add(&its);
                }
                None => drop(self.notes.insert(note, (its, at))),
            }
        }
        self.shorten();
    }

    fn shorten(&mut self) {
        while self.notes.len() > NOTES_MAX {
            self.notes.pop_last();
        }
    }

    /// Returns the notes, sorted by the lowest rank that wrote each. A note that not all hosts wrote begins with the names of its hosts. If
    /// notes were left out, a last line counts them.
    pub(super) fn merge_in_order(self, names: &[String], hosts: u32) -> Vec<String> {
        let kept: u32 = self.notes.values().map(|(which, _)| which.count).sum();
        let mut all: Vec<(String, (HostGroup, u32))> = self.notes.into_iter().collect();
        all.sort_by(|(_, (a, at)), (_, (b, other))| (a.first.first(), at).cmp(&(b.first.first(), other)));
        let with_names = |(note, (which, _)): (String, (HostGroup, u32))| {
            if which.count == hosts { note } else { format!("{}: {note}", join_names(&which, names)) }
        };
        let rest = self.count - kept;
        let more = (rest > 0).then(|| format!("further notes in the hosts' own sessions: {rest}"));
        all.into_iter().map(with_names).chain(more).collect()
    }
}

/// Formats names: `a, b and 30 more`.
pub(super) fn join_names(which: &HostGroup, names: &[String]) -> String {
    let name = |rank: &u32| names.get(*rank as usize).cloned().unwrap_or_else(|| format!("rank {rank}"));
    let first: Vec<String> = which.first.iter().map(name).collect();
    match which.count as usize - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// When the load of a stream ran on some hosts, in ns after the common start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "names end with their unit")]
pub(super) struct Window {
    /// When the first host began.
    pub(super) begun_ns: u64,
    /// When the last host began.
    pub(super) from_ns: u64,
    /// When the first host ended.
    pub(super) until_ns: u64,
    /// When the last host ended.
    pub(super) ended_ns: u64,
}

impl Window {
    /// The window of one host.
    pub(super) fn from_host(from_ns: u64, until_ns: u64) -> Self {
        Self { begun_ns: from_ns, from_ns, until_ns, ended_ns: until_ns }
    }

    fn add(&mut self, other: Self) {
        self.begun_ns = self.begun_ns.min(other.begun_ns);
        self.from_ns = self.from_ns.max(other.from_ns);
        self.until_ns = self.until_ns.min(other.until_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
    }

    /// The time in which all hosts ran, in ns.
    pub(super) fn together_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }

    /// Returns the time from the start of the first host to the end of the last one, in ns.
    pub(super) fn total_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.begun_ns)
    }
}

/// When the load of each stream ran on some hosts, by the index of the stream.
pub(super) type Windows = BTreeMap<usize, Window>;

/// Adds the windows of other hosts.
pub(super) fn add_windows(all: &mut Windows, others: Windows) {
    for (stream, its) in others {
        all.entry(stream).and_modify(|mine| mine.add(its)).or_insert(its);
    }
}

/// How late the last worker of each host began, in ns after the common start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartDelay {
    /// The number of hosts with a known delay.
    pub(super) hosts: u32,
    /// The smallest delay.
    pub(super) first_ns: u64,
    /// The largest delay, and the rank of its host.
    pub(super) last: (u64, u32),
}

impl StartDelay {
    pub(super) fn from_host(rank: u32, ns: u64) -> Self {
        Self { hosts: 1, first_ns: ns, last: (ns, rank) }
    }

    pub(super) fn add(&mut self, other: Self) {
        if self.hosts == 0 || other.hosts == 0 {
            *self = if self.hosts == 0 { other } else { *self };
            return;
        }
        self.hosts += other.hosts;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last = self.last.max(other.last);
    }
}

/// Adds the disturbances of other hosts, each once. Of each kind keeps the largest, at most [`DISTURBANCES_MAX`].
pub(super) fn add_disturbances(all: &mut Vec<Disturbance>, others: Vec<Disturbance>) {
    for one in others {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    let size = |one: &Disturbance| match one {
        Disturbance::ForeignIo { bytes_per_s, .. } => (0, *bytes_per_s),
        Disturbance::StolenCpu { share } => (1, *share),
        Disturbance::LimitChanged { .. } => (2, 0.0),
    };
    all.sort_by(|a, b| {
        let ((kind, mine), (other, its)) = (size(a), size(b));
        kind.cmp(&other).then(its.total_cmp(&mine)).then_with(|| a.describe().cmp(&b.describe()))
    });
    for kind in 0..3 {
        let mut kept = 0;
        all.retain(|one| {
            let is_of_kind = size(one).0 == kind;
            kept += usize::from(is_of_kind);
            !is_of_kind || kept <= DISTURBANCES_MAX
        });
    }
}

/// The reports of some hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct HostReports {
    /// A row for each host, in any order.
    pub(super) hosts: Vec<HostRecord>,
    pub(super) checks: Vec<CheckedOnHosts>,
    pub(super) limited: Vec<LimitedHosts>,
    /// Parts of runs that the hosts had not merged when the measurement ended.
    pub(super) rest: RunParts,
}

impl HostReports {
    /// The report of one host, from the record of its session and the file that keeps the session.
    pub(super) fn on(rank: u32, name: &str, record: &Record, file: Option<String>, rest: RunParts) -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        let report =
            analysis::judge(record, &Judging { session: file.clone(), version, ..Judging::default() });
        let Report { verdict, verdict_reason, results, checks, .. } = report;
        let count =
            |outcome: Outcome| checks.iter().filter(|f: &&Checked| f.outcome == outcome).count() as u32;
        let (rows, limits): (Vec<HostResult>, Vec<Limiter>) = results.into_iter().map(result).unzip();
        let mut limited = Vec::new();
        for (row, limiter) in rows.iter().zip(limits) {
            let slowest = SlowestHost { rank, iops: row.iops.unwrap_or(0.0) };
            LimitedHosts::add(
                &mut limited,
                [LimitedHosts { result: row.name.clone(), hosts: 1, slowest, limiter }],
            );
        }
        let host = HostRecord {
            rank,
            name: name.to_owned(),
            session: file,
            verdict: Some(verdict),
            reason: verdict_reason,
            results: rows,
            findings: [count(Outcome::Finding), count(Outcome::NotChecked)],
            kernel: None,
            target_bytes: record.runs.last().map_or_else(Vec::new, |run| run.start.target_bytes.clone()),
        };
        Self { checks: CheckedOnHosts::from_host(rank, &checks), hosts: vec![host], limited, rest }
    }

    /// Adds the reports of other hosts.
    pub(super) fn add(&mut self, other: Self) {
        self.hosts.extend(other.hosts);
        CheckedOnHosts::add(&mut self.checks, other.checks);
        LimitedHosts::add(&mut self.limited, other.limited);
        self.rest.add(other.rest);
    }
}

fn result(measured: Measured) -> (HostResult, Limiter) {
    let parts: [(Kind, &Option<Figures>); 4] = [
        (Kind::Read, &measured.read),
        (Kind::Write, &measured.write),
        (Kind::Trim, &measured.trim),
        (Kind::Sync, &measured.sync),
    ];
    let latency =
        |figures: &Figures| ["50", "99"].map(|p| figures.latency_ns.percentiles.get(p).copied().flatten());
    let latency_ns = parts.into_iter().filter_map(|(kind, f)| Some((kind, latency(f.as_ref()?)))).collect();
    let total = measured.total.as_ref().filter(|_| !measured.void);
    let row = HostResult {
        verdict: measured.verdict,
        iops: total.map(|t| t.iops),
        mb_per_s: total.map(|t| t.mb_per_s),
        latency_ns,
        cpu_ns_per_op: measured.cost.as_ref().map(|c| c.user_ns + c.system_ns),
        limiter: measured.limiter.name.clone(),
        name: measured.name,
        renamed: measured.renamed.then_some(measured.true_name),
    };
    (row, measured.limiter)
}

/// The session of all hosts, on rank 0. Each run is appended as soon as it ends, so that the results survive the loss of a host.
#[derive(Default)]
pub(super) struct MergedSession {
    session: Option<Session>,
    pub(super) runs: Vec<RunOnHosts>,
    pub(super) differences: Vec<String>,
}

impl MergedSession {
    /// Creates the session file.
    pub(super) fn begin(&mut self, header: Header, name: &str, keep: bool) -> Result<(), Failure> {
        let hosts = header.hosts.len();
        let mut session = Session::open(&format!("{name}-{hosts}-hosts"), keep)?;
        session.append(&Frame::Header(Box::new(header)))?;
        self.session = Some(session);
        Ok(())
    }

    /// Appends a run that has ended on all hosts.
    pub(super) fn append(&mut self, start: RunStart, end: RunEnd) -> Result<(), Failure> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.append(&Frame::RunStart(start))?;
        session.append(&Frame::RunEnd(Box::new(end)))?;
        session.sync()
    }

    /// Appends the frame that lists the disturbances of the last run.
    pub(super) fn append_disturbed(&mut self, disturbed: &Disturbed) -> Result<(), Failure> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.append(&Frame::Disturbed(disturbed.clone()))
    }

    /// Closes the session file and returns it; `None` if it was never created.
    pub(super) fn end(&mut self, seen: Fleet, end: End) -> Result<Option<Session>, Failure> {
        let Some(mut session) = self.session.take() else { return Ok(None) };
        let (runs, differences) = (std::mem::take(&mut self.runs), std::mem::take(&mut self.differences));
        session.append(&Frame::Fleet(Box::new(Fleet { runs, differences, ..seen })))?;
        session.append(&Frame::End(end))?;
        session.sync()?;
        Ok(Some(session))
    }
}

#[test]
fn merged_percentiles_cover_the_operations_of_all_hosts() {
    let merged = merged([run_parts(0, (900, 1_000, 1_000_000)), run_parts(1, (100, 50_000, 1_000_000))]);
    let read = &merged.end.streams[0].kinds[&Kind::Read];
    assert_eq!((read.latency.count(), read.bytes), (1_000, 1_000 * 4096));
    assert!(read.latency.quantile_ns(0.5).is_some_and(|ns| ns <= 1_010));
    assert_eq!(read.latency.quantile_ns(0.95), Some(50_000));
    assert_eq!(merged.end.streams[0].common, None, "all ran as long");
    assert_eq!((merged.common_ns, merged.longest_ns), (1_000_000, 1_000_000));
}

#[test]
fn rate_counts_only_the_time_in_which_all_hosts_ran() {
    // Both hosts complete 1,000 operations, but one host takes twice as long.
    let merged = merged([run_parts(0, (1_000, 1_000, 1_000_000)), run_parts(1, (1_000, 1_000, 2_000_000))]);
    let common = merged.end.streams[0].common.clone().unwrap_or_default();
    assert_eq!((common.window_ns, common.kinds[&Kind::Read][0]), (1_000_000, 1_500));
    assert_eq!((merged.common_ns, merged.longest_ns), (1_000_000, 2_000_000));
    assert_eq!(merged.end.streams[0].kinds[&Kind::Read].latency.count(), 2_000, "no operation is lost");
}

#[test]
fn failure_of_one_host_fails_the_run_and_notes_name_hosts() {
    let failed = RunEnding::Failed("the disk is gone".into());
    let one = run_on_host(0, (10, 1, 1_000), RunEnding::Complete, &["alike"]);
    let merged = merged([one, run_on_host(1, (10, 1, 1_000), failed, &["alike", "its own"])]);
    assert_eq!(merged.end.ending, RunEnding::Failed("b: the disk is gone".into()));
    assert_eq!(merged.end.notes, ["alike", "b: its own"]);
}

#[test]
fn start_spread_is_unknown_if_a_host_is_missing() {
    let reading = |offset_ns, round_trip_ns| Some(Reading { offset_ns, round_trip_ns });
    let (before, after) = ([reading(0, 0), reading(50, 600)], [reading(0, 0), reading(850, 500)]);
    let mut late = StartDelay::from_host(0, 100);
    late.add(StartDelay::from_host(1, 700));
    let seen = start_spread(&late, 2, &before, &after);
    assert_eq!((seen.spread_ns, seen.clock_error_ns, seen.last), (Some(600), Some(800), Some(1)));
    assert_eq!(start_spread(&StartDelay::from_host(0, 100), 2, &before, &after), RunOnHosts::default());
}

#[test]
fn loads_of_a_curve_are_not_merged() {
    let load = |rank, offered| {
        let mut load = run_parts(rank, (1_000, 1_000, 1_000_000)).0;
        load.phases[0].start.offered_iops = Some(offered);
        load
    };
    let names = ["a", "b"].map(str::to_owned);
    let mut all = load(0, 5_000);
    for (rank, offered) in [(1, 5_000), (0, 9_000), (1, 9_000)] {
        all.add(load(rank, offered));
    }
    let hosts: Vec<u32> = all.phases.into_iter().map(|phase| phase.merged(&names).hosts).collect();
    assert_eq!(hosts, [2, 2]);
}

#[test]
fn notes_of_all_hosts_name_no_host_and_notes_of_many_hosts_name_a_few() {
    let names: Vec<String> = (0..100).map(|rank| format!("h{rank}")).collect();
    let notes_of = |rank: u32| {
        let own = (rank == 7).then(|| "its own".to_owned());
        let most = (rank != 7).then(|| "most of them".to_owned());
        Notes::from_host(rank, ["from all hosts".to_owned()].into_iter().chain(own).chain(most))
    };
    let sum = |ranks: &mut dyn Iterator<Item = u32>| {
        let mut all = Notes::default();
        ranks.for_each(|rank| all.add(notes_of(rank)));
        all
    };
    let all = sum(&mut (0..100));
    assert_eq!(sum(&mut (0..100).rev()), all);
    let lines = all.merge_in_order(&names, 100);
    assert_eq!(
        lines,
        ["from all hosts", "h0, h1, h2, h3, h4, h5, h6, h8 and 91 more: most of them", "h7: its own"]
    );
}

#[test]
fn notes_beyond_the_limit_are_counted() {
    let notes_of = |rank: u32| Notes::from_host(rank, [format!("{rank:03} pages stayed")].into_iter());
    let (mut all, mut other) = (Notes::default(), Notes::default());
    (0..300).for_each(|rank| all.add(notes_of(rank)));
    (150..300).rev().for_each(|rank| other.add(notes_of(rank)));
    (0..150).for_each(|rank| other.add(notes_of(rank)));
    assert_eq!(all, other);
    let lines = all.merge_in_order(&[], 300);
    assert_eq!((lines.len(), lines[0].as_str()), (NOTES_MAX + 1, "rank 0: 000 pages stayed"));
    assert!(lines.last().is_some_and(|last| last.ends_with("own sessions: 236")), "{lines:?}");
}

#[test]
fn largest_disturbances_are_kept() {
    let foreign = |mb: u64| Disturbance::ForeignIo {
        device: "vda".into(),
        bytes_per_s: mb as f64 * 1e6,
        ios_per_s: Some(1.0),
    };
    let stolen = Disturbance::StolenCpu { share: 0.1 };
    let (mut up, mut down) = (Vec::new(), Vec::new());
    (0..50).for_each(|mb| add_disturbances(&mut up, vec![foreign(mb), stolen.clone()]));
    (0..50).rev().for_each(|mb| add_disturbances(&mut down, vec![stolen.clone(), foreign(mb)]));
    assert_eq!(up, down);
    assert_eq!((up.len(), &up[0], up.last()), (DISTURBANCES_MAX + 1, &foreign(49), Some(&stolen)));
}
