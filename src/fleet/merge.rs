//! Merging: the phases of a run on several hosts as one run.
//!
//! For: sums of what they did, of it what completed while all of them ran, and how they began. Hosts are added in any order and in groups:
//! each adds up what those below it in the tree did ([`super::tree`]). Pure. Not for: judging any of it.

use super::clock::Reading;
use super::parts::{self, Late, Notes, Window, Windows};
use model::fleet::RunSeen;
use model::job::Kind;
use model::record::{
    Common, Disturbance, Disturbed, Interval, OpenLoop, PriorityEnd, Run, RunEnd, RunEnding, RunStart,
    StreamEnd, ThreadIo, WorkerEnd,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Share of the longest window from which all windows are as long as each other.
const AS_LONG: f64 = 0.99;
/// Sentences about how workers worked that are kept of a stream, the first in the alphabet.
const MOST_WORDS: usize = 16;
/// What is counted of an operation that an end of the common time cuts.
const PARTS: f64 = 1_000.0;

/// What the phases of a run came to on some hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunParts {
    pub(super) phases: Vec<Phase>,
    /// What others did there.
    pub(super) disturbed: Vec<Disturbance>,
}

/// When the load of each stream ran, by phase.
pub(super) type Times = BTreeMap<usize, Windows>;
/// First and last ns in which the load of all hosts ran, by phase and stream: of those that did not run for as long everywhere.
pub(super) type CommonTimes = BTreeMap<usize, BTreeMap<usize, [u64; 2]>>;

impl RunParts {
    /// Adds what other hosts did.
    pub(super) fn add(&mut self, other: Self) {
        for phase in other.phases {
            match self.phases.iter_mut().find(|mine| mine.which() == phase.which()) {
                Some(mine) => mine.add(phase),
                None => self.phases.push(phase),
            }
        }
        parts::add_disturbances(&mut self.disturbed, other.disturbed);
    }

    /// When its load ran.
    pub(super) fn times(&self) -> Times {
        self.phases.iter().map(|phase| (phase.start.phase, phase.windows.clone())).collect()
    }

    /// Counts what completed while the load of all hosts ran, from the courses of the phases of one host.
    pub(super) fn cut(&mut self, courses: &[Vec<Interval>], common: &CommonTimes) {
        for (phase, course) in self.phases.iter_mut().zip(courses) {
            let times = common.get(&phase.start.phase).into_iter().flatten();
            phase.common =
                Some(times.map(|(stream, time)| (*stream, within(course, *stream, *time))).collect());
        }
    }
}

/// Adds when the load of other hosts ran.
pub(super) fn add_times(all: &mut Times, others: Times) {
    for (phase, windows) in others {
        parts::add_windows(all.entry(phase).or_default(), windows);
    }
}

/// Out of when the loads of all hosts ran, when all of them did.
pub(super) fn common_times(all: &Times) -> CommonTimes {
    let of = |windows: &Windows| -> BTreeMap<usize, [u64; 2]> {
        let unlike = windows.iter().filter(|(_, window)| !is_as_long(window));
        unlike.map(|(stream, window)| (*stream, [window.from_ns, window.until_ns])).collect()
    };
    all.iter().map(|(phase, windows)| (*phase, of(windows))).collect()
}

/// Whether all hosts ran for as long as each other.
fn is_as_long(window: &Window) -> bool {
    window.together_ns() as f64 >= AS_LONG * window.whole_ns() as f64
}

/// What one phase came to on some hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Phase {
    /// The lowest rank among them, whose start and times these are.
    first: u32,
    /// How many they are.
    hosts: u32,
    pub(super) start: RunStart,
    /// The sums; how it ended and what was said is beside it.
    pub(super) end: RunEnd,
    /// The lowest rank that did not come to the end, with the reason.
    ended: Option<(u32, RunEnding)>,
    notes: Notes,
    windows: Windows,
    late: Late,
    /// What completed while all ran, by stream and kind: thousandths of operations and of bytes; `None` where a host did not count it.
    common: Option<BTreeMap<usize, BTreeMap<Kind, [u64; 2]>>>,
}

/// One phase of a run on all hosts, with the time in which all ran and that in which any did, in ns.
pub(super) struct Merged {
    pub(super) start: RunStart,
    pub(super) end: RunEnd,
    pub(super) common_ns: u64,
    pub(super) longest_ns: u64,
    pub(super) late: Late,
    /// Hosts that measured it.
    pub(super) hosts: u32,
}

impl Phase {
    /// What one host measured, which began so late; `None` of a run without an end.
    pub(super) fn from_run(rank: u32, run: &Run, course: &[Interval], late_ns: Option<u64>) -> Option<Self> {
        let mut end = run.end.clone()?;
        let ending = std::mem::replace(&mut end.ending, RunEnding::Complete);
        let error = |w: &WorkerEnd| w.error.as_ref().map(|why| format!("worker {}: {why}", w.worker));
        let errors: Vec<String> = end.workers.iter().filter_map(error).collect();
        let notes = Notes::from_host(rank, std::mem::take(&mut end.notes).into_iter().chain(errors));
        let mut workers = Vec::new();
        for worker in std::mem::take(&mut end.workers) {
            add_worker(&mut workers, WorkerEnd { worker: 0, depth: None, error: None, ..worker });
        }
        // Those of one worker on one target are a host's own.
        end.streams.iter_mut().for_each(|stream| stream.lanes.clear());
        let window = |stream: usize| {
            let rows = || course.iter().filter(|row| row.stream == stream);
            Some(Window::of_host(rows().map(|r| r.start_ns).min()?, rows().map(|r| r.end_ns).max()?))
        };
        let windows = end.streams.iter().filter_map(|s| Some((s.stream, window(s.stream)?))).collect();
        Some(Self {
            first: rank,
            hosts: 1,
            start: run.start.clone(),
            end: RunEnd { workers, process_ns: None, still: None, ..end },
            ended: (ending != RunEnding::Complete).then_some((rank, ending)),
            notes,
            windows,
            late: late_ns.map_or_else(Late::default, |ns| Late::of_host(rank, ns)),
            common: None,
        })
    }

    /// Which phase of which run it is: index of the job, of its phase, how many times the job was measured before, and this very run; and the
    /// load that was offered, by which alone those of a curve differ.
    pub(super) fn which(&self) -> ([u32; 4], Option<u64>) {
        let RunStart { job, phase, repeat, attempt, offered_iops, .. } = self.start;
        ([job as u32, phase as u32, repeat, attempt], offered_iops)
    }

    /// Adds what other hosts did.
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
        parts::add_windows(&mut self.windows, other.windows);
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

    /// As one run, with the names of all hosts by rank.
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
            let Some(window) = self.windows.get(&stream.stream).filter(|window| !is_as_long(window)) else {
                continue;
            };
            let Some(counted) = self.common.as_ref().and_then(|common| common.get(&stream.stream)) else {
                continue;
            };
            let whole = |n: u64| (n as f64 / PARTS).round() as u64;
            let kinds = counted.iter().map(|(kind, sums)| (*kind, sums.map(whole))).collect();
            stream.common = Some(Common { window_ns: window.together_ns(), kinds });
        }
        let common_ns = self.windows.values().map(Window::together_ns).min().unwrap_or(0);
        let longest_ns = self.windows.values().map(Window::whole_ns).max().unwrap_or(0);
        Merged { start, end, common_ns, longest_ns, late, hosts }
    }
}

/// What a stream completed on one host within a time, in thousandths: of intervals that it cuts, the part that lies in it.
fn within(course: &[Interval], stream: usize, [from, until]: [u64; 2]) -> BTreeMap<Kind, [u64; 2]> {
    let mut sums: BTreeMap<Kind, [u64; 2]> = BTreeMap::new();
    for Interval { start_ns, end_ns, cells, .. } in course.iter().filter(|row| row.stream == stream) {
        let length = end_ns.saturating_sub(*start_ns);
        let inside = until.min(*end_ns).saturating_sub(from.max(*start_ns));
        let part = match length {
            0 => f64::from(u8::from((from..=until).contains(start_ns))),
            length => inside as f64 / length as f64,
        };
        let parts = |n: u64| (n as f64 * part * PARTS).round() as u64;
        for (kind, cell) in cells {
            add_pair(sums.entry(*kind).or_default(), [parts(cell.0), parts(cell.1)]);
        }
    }
    sums
}

fn add_pair(sum: &mut [u64; 2], other: [u64; 2]) {
    *sum = [sum[0].saturating_add(other[0]), sum[1].saturating_add(other[1])];
}

/// Adds what workers cost to that of the other workers of their stream. How long they took is that of the longest.
fn add_worker(all: &mut Vec<WorkerEnd>, other: WorkerEnd) {
    let Some(sum) = all.iter_mut().find(|w| w.stream == other.stream) else {
        all.push(other);
        all.sort_by_key(|w| w.stream);
        return;
    };
    sum.wall_ns = sum.wall_ns.max(other.wall_ns);
    sum.user_ns = sum.user_ns.saturating_add(other.user_ns);
    sum.system_ns = sum.system_ns.saturating_add(other.system_ns);
    sum.turns = sum.turns.saturating_add(other.turns);
    sum.ops = sum.ops.saturating_add(other.ops);
    add_pair(&mut sum.switches, other.switches);
    let pair = |(mut mine, its): ([u64; 2], [u64; 2])| {
        add_pair(&mut mine, its);
        mine
    };
    sum.faults = sum.faults.zip(other.faults).map(pair);
    sum.depth_counts = sum.depth_counts.zip(other.depth_counts).map(|(mine, its)| mine.plus(&its));
    sum.counted = known(&sum.counted, other.counted, |mine, its| pair((mine, its)));
    sum.ready_ns = known(&sum.ready_ns, other.ready_ns, u64::saturating_add);
    sum.io = known(&sum.io, other.io, ThreadIo::plus);
    for (words, others) in [(&mut sum.used, other.used), (&mut sum.fallbacks, other.fallbacks)] {
        words.extend(others);
        words.sort_unstable();
        words.dedup();
        words.truncate(MOST_WORDS);
    }
}

/// Both together; why it is not known where one of them is not: of two reasons the first in the alphabet.
fn known<T: Copy>(one: &model::Known<T>, other: model::Known<T>, add: impl Fn(T, T) -> T) -> model::Known<T> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(add(*one, other)),
        (Err(one), Err(other)) => Err(one.clone().min(other)),
        (Err(why), Ok(_)) => Err(why.clone()),
        (Ok(_), Err(why)) => Err(why),
    }
}

/// Adds what a stream did on another host.
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

/// What others did on any host; `None` where they disturbed none.
pub(super) fn disturbed(attempt: u32, by: Vec<Disturbance>) -> Option<Disturbed> {
    (!by.is_empty()).then_some(Disturbed { attempt, by })
}

/// How a run began on so many hosts, from how late each was, and its clock before and behind the run.
pub(super) fn began(
    late: &Late,
    hosts: usize,
    before: &[Option<Reading>],
    after: &[Option<Reading>],
) -> RunSeen {
    if (late.hosts as usize) < hosts || hosts < 2 {
        return RunSeen::default();
    }
    let error = |(rank, then): (usize, &Option<Reading>)| {
        let then = (*then)?;
        Some(after.get(rank).copied().flatten().map_or(then.error_ns(), |now| now.error_since(then)))
    };
    RunSeen {
        spread_ns: Some(late.last.0 - late.first_ns),
        clock_error_ns: before.iter().take(hosts).enumerate().map(error).max().flatten(),
        last: Some(late.last.1),
        ..RunSeen::default()
    }
}

/// What a host did, and its course.
#[cfg(test)]
fn ran(
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
        cells: [(Kind::Read, Cell(ops / 10, ops / 10 * 4096, ns, ns, ns))].into(),
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
    let course: Vec<Interval> = (0..10).map(row).collect();
    let phases = Phase::from_run(rank, &run, &course, Some(u64::from(rank))).into_iter().collect();
    (RunParts { phases, disturbed: Vec::new() }, vec![course])
}

/// The phase of hosts `a` and `b`.
#[cfg(test)]
fn merged(hosts: [(RunParts, Vec<Vec<Interval>>); 2]) -> Merged {
    let mut times = Times::new();
    for (ran, _) in &hosts {
        add_times(&mut times, ran.times());
    }
    let common = common_times(&times);
    let mut all = RunParts::default();
    for (mut ran, courses) in hosts {
        ran.cut(&courses, &common);
        all.add(ran);
    }
    all.phases.remove(0).merged(&["a".to_owned(), "b".to_owned()])
}

#[cfg(test)]
fn run_parts(rank: u32, did: (u64, u64, u64)) -> (RunParts, Vec<Vec<Interval>>) {
    ran(rank, did, RunEnding::Complete, &[])
}

#[test]
fn percentiles_of_all_hosts_are_those_of_all_their_operations() {
    let merged = merged([run_parts(0, (900, 1_000, 1_000_000)), run_parts(1, (100, 50_000, 1_000_000))]);
    let read = &merged.end.streams[0].kinds[&Kind::Read];
    assert_eq!((read.latency.count(), read.bytes), (1_000, 1_000 * 4096));
    assert!(read.latency.quantile_ns(0.5).is_some_and(|ns| ns <= 1_010));
    assert_eq!(read.latency.quantile_ns(0.95), Some(50_000));
    assert_eq!(merged.end.streams[0].common, None, "all ran as long");
    assert_eq!((merged.common_ns, merged.longest_ns), (1_000_000, 1_000_000));
}

#[test]
fn the_rate_is_of_the_time_in_which_all_ran() {
    // Both do 1,000 operations, and one takes twice as long for them.
    let merged = merged([run_parts(0, (1_000, 1_000, 1_000_000)), run_parts(1, (1_000, 1_000, 2_000_000))]);
    let common = merged.end.streams[0].common.clone().unwrap_or_default();
    assert_eq!((common.window_ns, common.kinds[&Kind::Read][0]), (1_000_000, 1_500));
    assert_eq!((merged.common_ns, merged.longest_ns), (1_000_000, 2_000_000));
    assert_eq!(merged.end.streams[0].kinds[&Kind::Read].latency.count(), 2_000, "no operation is lost");
}

#[test]
fn one_host_that_fails_fails_the_run_and_notes_have_names() {
    let failed = RunEnding::Failed("the disk is gone".into());
    let one = ran(0, (10, 1, 1_000), RunEnding::Complete, &["alike"]);
    let merged = merged([one, ran(1, (10, 1, 1_000), failed, &["alike", "its own"])]);
    assert_eq!(merged.end.ending, RunEnding::Failed("b: the disk is gone".into()));
    assert_eq!(merged.end.notes, ["alike", "b: its own"]);
}

#[test]
fn the_spread_is_that_of_all_hosts_and_unknown_where_one_is_missing() {
    let reading = |offset_ns, round_trip_ns| Some(Reading { offset_ns, round_trip_ns });
    let (before, after) = ([reading(0, 0), reading(50, 600)], [reading(0, 0), reading(850, 500)]);
    let mut late = Late::of_host(0, 100);
    late.add(Late::of_host(1, 700));
    let seen = began(&late, 2, &before, &after);
    assert_eq!((seen.spread_ns, seen.clock_error_ns, seen.last), (Some(600), Some(800), Some(1)));
    assert_eq!(began(&Late::of_host(0, 100), 2, &before, &after), RunSeen::default());
}

#[test]
fn loads_of_a_curve_are_runs_of_their_own() {
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
