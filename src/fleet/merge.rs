//! Merging: the phases of a run on all hosts as one run.
//!
//! For: sums of what they did, of it what completed while all of them ran, and how they began. Pure. Not for: judging any of it.

use super::clock::Reading;
use super::letter::Phase;
use model::fleet::RunSeen;
use model::histogram::Histogram;
use model::job::Kind;
use model::record::disturbed::{Disturbance, Disturbed};
use model::record::{Common, Interval, OpenLoop, PriorityEnd, RunEnd, RunEnding, RunStart, StreamEnd};
use std::collections::BTreeMap;

/// Share of the longest window from which all windows are as long as each other.
const AS_LONG: f64 = 0.99;

/// One phase of a run on all hosts, with the time in which all ran and that in which any did, in ns.
pub(super) struct Merged {
    pub(super) start: RunStart,
    pub(super) end: RunEnd,
    pub(super) common_ns: u64,
    pub(super) longest_ns: u64,
}

/// Merges a phase of all hosts, with their names.
pub(super) fn merge(phases: &[(&str, &Phase)]) -> Option<Merged> {
    let ((_, first), rest) = phases.split_first()?;
    let mut end = RunEnd {
        notes: notes(phases),
        workers: Vec::new(),
        process_ns: None,
        still: None,
        ..first.end.clone()
    };
    end.workers = phases.iter().flat_map(|(_, p)| p.end.workers.clone()).collect();
    end.sync_ns = phases.iter().map(|(_, p)| p.end.sync_ns).max().flatten();
    for (name, other) in rest {
        for stream in &other.end.streams {
            match end.streams.iter_mut().find(|s| s.stream == stream.stream) {
                Some(sum) => add(sum, stream),
                None => end.streams.push(stream.clone()),
            }
        }
        if end.ending == RunEnding::Complete {
            end.ending = match &other.end.ending {
                RunEnding::Failed(why) => RunEnding::Failed(format!("{name}: {why}")),
                ending => ending.clone(),
            };
        }
    }
    let (mut common_ns, mut longest_ns) = (u64::MAX, 0);
    for stream in &mut end.streams {
        // Those of one worker on one target are a host's own.
        stream.lanes.clear();
        let windows = windows(phases, stream.stream);
        let [from, until] = [windows.iter().map(|w| w.0).max(), windows.iter().map(|w| w.1).min()];
        let whole = windows.iter().map(|w| w.1).max().zip(windows.iter().map(|w| w.0).min());
        let (Some(from), Some(until), Some((last, begun))) = (from, until, whole) else { continue };
        let (together, all) = (until.saturating_sub(from), last.saturating_sub(begun));
        (common_ns, longest_ns) = (common_ns.min(together), longest_ns.max(all));
        if (together as f64) < AS_LONG * all as f64 {
            stream.common =
                Some(Common { window_ns: together, kinds: within(phases, stream.stream, (from, until)) });
        }
    }
    let common_ns = if common_ns == u64::MAX { 0 } else { common_ns };
    Some(Merged { start: first.start.clone(), end, common_ns, longest_ns })
}

/// First and last ns of a stream on each host, counted from the common start.
fn windows(phases: &[(&str, &Phase)], stream: usize) -> Vec<(u64, u64)> {
    let of = |(_, phase): &(&str, &Phase)| {
        let rows = || phase.course.iter().filter(|row| row.stream == stream);
        Some((rows().map(|r| r.start_ns).min()?, rows().map(|r| r.end_ns).max()?))
    };
    phases.iter().filter_map(of).collect()
}

/// What a stream completed on all hosts within a time: of intervals that it cuts, the part that lies in it.
fn within(phases: &[(&str, &Phase)], stream: usize, (from, until): (u64, u64)) -> BTreeMap<Kind, [u64; 2]> {
    let mut sums: BTreeMap<Kind, [f64; 2]> = BTreeMap::new();
    let rows = phases.iter().flat_map(|(_, phase)| &phase.course).filter(|row| row.stream == stream);
    for Interval { start_ns, end_ns, cells, .. } in rows {
        let length = end_ns.saturating_sub(*start_ns);
        let inside = until.min(*end_ns).saturating_sub(from.max(*start_ns));
        let part = match length {
            0 => f64::from(u8::from((from..=until).contains(start_ns))),
            length => inside as f64 / length as f64,
        };
        for (kind, cell) in cells {
            let sum = sums.entry(*kind).or_default();
            sum[0] += cell.0 as f64 * part;
            sum[1] += cell.1 as f64 * part;
        }
    }
    sums.into_iter().map(|(kind, [ops, bytes])| (kind, [ops.round() as u64, bytes.round() as u64])).collect()
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

/// What happened, with the names of the hosts that it happened on where not on all of them.
fn notes(phases: &[(&str, &Phase)]) -> Vec<String> {
    let mut all: Vec<(&String, Vec<&str>)> = Vec::new();
    for (name, phase) in phases {
        for note in &phase.end.notes {
            match all.iter_mut().find(|(known, _)| *known == note) {
                Some((_, hosts)) => hosts.push(name),
                None => all.push((note, vec![name])),
            }
        }
    }
    let told = |(note, hosts): (&String, Vec<&str>)| {
        if hosts.len() == phases.len() { note.clone() } else { format!("{}: {note}", hosts.join(", ")) }
    };
    all.into_iter().map(told).collect()
}

/// What others did on any host; `None` where they disturbed none.
pub(super) fn disturbed<'d>(attempt: u32, all: impl Iterator<Item = &'d Disturbance>) -> Option<Disturbed> {
    let mut by: Vec<Disturbance> = Vec::new();
    for one in all {
        if !by.contains(one) {
            by.push(one.clone());
        }
    }
    (!by.is_empty()).then_some(Disturbed { attempt, by })
}

/// Latencies of all reads, writes and trims of some ends.
pub(super) fn latencies<'e>(ends: impl Iterator<Item = &'e RunEnd>) -> Histogram {
    let mut all = Histogram::new();
    for (kind, end) in ends.flat_map(|e| &e.streams).flat_map(|s| &s.kinds) {
        if *kind != Kind::Sync {
            all.merge(&end.latency);
        }
    }
    all
}

/// How a run began, from how late each host was, and its clock before and behind the run.
pub(super) fn began(late: &[Option<u64>], before: &[Option<Reading>], after: &[Option<Reading>]) -> RunSeen {
    let known: Vec<(u64, usize)> =
        late.iter().zip(0..).filter_map(|(ns, rank)| Some(((*ns)?, rank))).collect();
    let (first, last) = (known.iter().min(), known.iter().max());
    if known.len() < late.len() || late.len() < 2 {
        return RunSeen::default();
    }
    let error = |(rank, then): (usize, &Option<Reading>)| {
        let then = (*then)?;
        Some(after.get(rank).copied().flatten().map_or(then.error_ns(), |now| now.error_since(then)))
    };
    RunSeen {
        spread_ns: first.zip(last).map(|(first, last)| last.0 - first.0),
        clock_error_ns: before.iter().take(late.len()).enumerate().map(error).max().flatten(),
        last: last.map(|(_, rank)| *rank as u32),
        ..RunSeen::default()
    }
}

#[cfg(test)]
fn phase(ops: u64, ns: u64, until_ns: u64) -> Phase {
    use model::record::{Cell, KindEnd};
    let mut latency = Histogram::new();
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
    let end = RunEnd { streams: vec![stream], ..RunEnd::without(RunEnding::Complete) };
    Phase { start, end, course: (0..10).map(row).collect(), late_ns: Some(0) }
}

#[test]
fn percentiles_of_all_hosts_are_those_of_all_their_operations() {
    let (fast, slow) = (phase(900, 1_000, 1_000_000), phase(100, 50_000, 1_000_000));
    let merged = merge(&[("a", &fast), ("b", &slow)]).unwrap_or_else(|| panic!("nothing"));
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
    let (fast, slow) = (phase(1_000, 1_000, 1_000_000), phase(1_000, 1_000, 2_000_000));
    let merged = merge(&[("a", &fast), ("b", &slow)]).unwrap_or_else(|| panic!("nothing"));
    let common = merged.end.streams[0].common.clone().unwrap_or_default();
    assert_eq!((common.window_ns, common.kinds[&Kind::Read][0]), (1_000_000, 1_500));
    assert_eq!((merged.common_ns, merged.longest_ns), (1_000_000, 2_000_000));
    assert_eq!(merged.end.streams[0].kinds[&Kind::Read].latency.count(), 2_000, "no operation is lost");
}

#[test]
fn one_host_that_fails_fails_the_run_and_notes_have_names() {
    let (mut one, mut other) = (phase(10, 1, 1_000), phase(10, 1, 1_000));
    other.end.ending = RunEnding::Failed("the disk is gone".into());
    (one.end.notes, other.end.notes) = (vec!["alike".into()], vec!["alike".into(), "its own".into()]);
    let merged = merge(&[("a", &one), ("b", &other)]).unwrap_or_else(|| panic!("nothing"));
    assert_eq!(merged.end.ending, RunEnding::Failed("b: the disk is gone".into()));
    assert_eq!(merged.end.notes, ["alike", "b: its own"]);
}

#[test]
fn the_spread_is_that_of_all_hosts_and_unknown_where_one_is_missing() {
    let reading = |offset_ns, round_trip_ns| Some(Reading { offset_ns, round_trip_ns });
    let (before, after) = ([reading(0, 0), reading(50, 600)], [reading(0, 0), reading(850, 500)]);
    let seen = began(&[Some(100), Some(700)], &before, &after);
    assert_eq!((seen.spread_ns, seen.clock_error_ns, seen.last), (Some(600), Some(800), Some(1)));
    assert_eq!(began(&[Some(100), None], &before, &after), RunSeen::default());
}
