//! What was seen of a case, added up over its complete runs; where none is complete, what the last one came to until a signal or an
//! error ended it, as other tools tell it.
//!
//! For: formats of other tools. Not for: figures with intervals ([`crate::figures`]) nor opinions.

use crate::case::{Case, CaseRun};
use crate::kernel_text::each_cpu;
use crate::run_series::rows_of;
use model::distribution::Distribution;
use model::evidence::{BlockStat, Moment};
use model::job::{ALL_ERRORS, IoPriority, Kind};
use model::machine::Layer;
use model::observed::{
    Observed, ObservedCpu, ObservedDisk, ObservedKind, ObservedLane, ObservedLaneKind, ObservedTarget,
    ObservedWorkers, Stretch,
};
use model::plan::Role;
use model::record::{Cell, LaneEnd, LaneKind, PriorityEnd, RunEnding, StreamEnd};
use std::collections::BTreeMap;

/// Adds it up.
pub(crate) fn observed(case: &Case) -> Observed {
    match case.cut() {
        Some(cut) => Observed { is_cut: true, ..observe(&cut) },
        None => observe(case),
    }
}

fn observe(case: &Case) -> Observed {
    let sum =
        |of: fn(&StreamEnd) -> u64| case.runs.iter().fold(0, |sum: u64, r| sum.saturating_add(of(r.stream)));
    let targets = case.stream.targets.iter().filter_map(|t| case.record.header.plan.targets.get(*t));
    Observed {
        targets: targets
            .filter(|t| t.role != Role::None)
            .map(|t| ObservedTarget { path: t.path.clone(), is_made: t.role == Role::Made, bytes: t.bytes })
            .collect(),
        window_ns: sum(|s| s.window_ns),
        ended_ns: case.ends.iter().map(|e| e.at_ns).max().unwrap_or(0),
        in_order: in_order(case),
        is_cut: false,
        kinds: Kind::ALL.into_iter().filter_map(|kind| Some((kind, observe_kind(case, kind)?))).collect(),
        errors: errors(case),
        ignored_errors: ignored_errors(case),
        sync_error: sync_error(case),
        workers: workers(case),
        disks: disks(case),
        found_depth: found_depth(case),
        steadied: case.stream.steady.zip(case.runs.last().and_then(|r| r.stream.steadied.clone())),
        lanes: lanes(case),
        cpus: cpus(case),
        typed: case.record.header.plan.typed.as_ref().and_then(|t| t.result(case.phase, case.index)),
    }
}

fn in_order(case: &Case) -> bool {
    let all = case.record.end.as_ref().map(|end| &end.ending);
    let begun = !case.ends.is_empty() || all == Some(&RunEnding::Interrupted);
    begun && !case.ends.iter().any(|e| matches!(e.ending, RunEnding::Failed(_)))
}

fn observe_kind(case: &Case, kind: Kind) -> Option<ObservedKind> {
    let latency = Distribution::from(&case.latency(kind)?);
    let short = case
        .runs
        .iter()
        .filter_map(|r| r.stream.issued.get(&kind))
        .fold(0, |sum: u64, i| sum.saturating_add(i.short));
    // Other tools count the length of an operation whether it moves data or not.
    let bytes = case.runs.iter().filter_map(|r| r.stream.kinds.get(&kind)).map(|k| k.bytes);
    Some(ObservedKind {
        bytes: bytes.fold(0, u64::saturating_add),
        short,
        latency,
        service: case.open_loop(kind).map(|open| Distribution::from(&open.service)),
        course: course(case, kind),
        priorities: priorities(case, kind),
    })
}

/// Latencies apart by priority, over all runs.
fn priorities(case: &Case, kind: Kind) -> Vec<(Option<IoPriority>, Distribution)> {
    let mut all: Vec<PriorityEnd> = Vec::new();
    for end in case.runs.iter().flat_map(|run| &run.stream.priorities).filter(|end| end.kind == kind) {
        PriorityEnd::add(&mut all, end);
    }
    all.into_iter().map(|end| (end.priority, Distribution::from(&end.latency))).collect()
}

/// The course of all runs, one behind the other. Each begins with the first interval of any stream.
fn course(case: &Case, kind: Kind) -> Vec<Stretch> {
    let mut out = Vec::new();
    let mut before = 0_u64;
    for ran in &case.runs {
        let began = ran.run.intervals.iter().map(|row| row.start_ns).min().unwrap_or(0);
        for row in rows_of(ran) {
            let Cell(ops, bytes, ..) = row.cells.get(&kind).copied().unwrap_or(Cell(0, 0, 0, 0, 0));
            out.push(Stretch {
                start_ns: before.saturating_add(row.start_ns.saturating_sub(began)),
                ns: row.end_ns - row.start_ns,
                ops,
                bytes,
            });
        }
        before = before.saturating_add(ran.stream.window_ns);
    }
    out
}

/// What each worker did, of the last run: a language that asks for it has one.
fn lanes(case: &Case) -> Vec<ObservedLane> {
    let Some(last) = case.runs.last() else { return Vec::new() };
    let lane_kind = |kind: &LaneKind| ObservedLaneKind {
        bytes: kind.bytes,
        latency: Distribution::from(&kind.latency),
        course: kind.course.clone(),
    };
    let lane = |lane: &LaneEnd| ObservedLane {
        worker: lane.worker,
        target: lane.lane as usize,
        kinds: lane.kinds.iter().map(|(kind, of)| (*kind, lane_kind(of))).collect(),
    };
    last.stream.lanes.iter().map(lane).collect()
}

/// What each CPU did, over all runs.
fn cpus(case: &Case) -> Vec<ObservedCpu> {
    let of_run = |ran: &CaseRun| -> Option<Vec<ObservedCpu>> {
        let (start, stop) = (ran.at(Moment::Start).ok()?, ran.at(Moment::Stop).ok()?);
        Some(
            each_cpu(start)
                .into_iter()
                .zip(each_cpu(stop))
                .map(|(before, after)| grown(before, after))
                .collect(),
        )
    };
    let all = case.runs.iter().filter_map(of_run);
    all.reduce(|sum, one| sum.into_iter().zip(one).map(|(a, b)| plus(a, b)).collect()).unwrap_or_default()
}

fn grown(before: ObservedCpu, after: ObservedCpu) -> ObservedCpu {
    // Times of CPUs that are idle may go back by a tick.
    let since = |of: fn(&ObservedCpu) -> u64| of(&after).saturating_sub(of(&before));
    ObservedCpu {
        cpu: after.cpu,
        user: since(|c| c.user),
        kernel: since(|c| c.kernel),
        idle: since(|c| c.idle),
    }
}

fn plus(a: ObservedCpu, b: ObservedCpu) -> ObservedCpu {
    let sum = |of: fn(&ObservedCpu) -> u64| of(&a).saturating_add(of(&b));
    ObservedCpu { cpu: a.cpu, user: sum(|c| c.user), kernel: sum(|c| c.kernel), idle: sum(|c| c.idle) }
}

fn found_depth(case: &Case) -> Option<u32> {
    let workers = &case.runs.last()?.end.workers;
    workers.iter().find(|w| w.stream == case.index)?.depth.map(|found| found.depth)
}

fn errors(case: &Case) -> BTreeMap<i32, u64> {
    let streams = case.ends.iter().flat_map(|e| &e.streams).filter(|s| s.stream == case.index);
    let mut out: BTreeMap<i32, u64> = BTreeMap::new();
    for (errno, count) in streams.flat_map(|s| s.issued.values()).flat_map(|i| &i.errors) {
        let sum = out.entry(*errno).or_default();
        *sum = sum.saturating_add(*count);
    }
    out
}

/// The error of a final sync that was typed, as fio's `end_fsync`.
fn sync_error(case: &Case) -> Option<i32> {
    let typed = case.record.header.plan.typed.as_ref()?.phases.get(case.phase)?.get(case.index)?;
    if !typed.final_sync {
        return None;
    }
    case.ends.iter().find_map(|end| case.sync_failures(end).next()).map(|failure| failure.errno)
}

/// Errors that the stream goes on after, as it is to.
fn ignored_errors(case: &Case) -> u64 {
    let streams = case.ends.iter().flat_map(|e| &e.streams).filter(|s| s.stream == case.index);
    let all = streams.flat_map(|s| &s.issued);
    let all =
        all.flat_map(|(kind, issued)| issued.errors.iter().map(|(errno, count)| (*kind, *errno, *count)));
    let is_ignored = |kind, errno| {
        case.stream.max_errors == ALL_ERRORS
            || case.stream.ignored_errors.iter().any(|ignored| ignored.is(kind, Some(errno)))
    };
    all.filter(|(kind, errno, _)| is_ignored(*kind, *errno))
        .fold(0, |sum: u64, (.., count)| sum.saturating_add(count))
}

fn workers(case: &Case) -> ObservedWorkers {
    let all = case.runs.iter().flat_map(|r| &r.end.workers).filter(|w| w.stream == case.index);
    all.fold(ObservedWorkers::NONE, |sum, w| {
        let switches = w.switches.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let (wall_ns, user_ns, system_ns) = (w.wall_ns, w.user_ns, w.system_ns);
        sum.plus(&ObservedWorkers {
            wall_ns,
            user_ns,
            system_ns,
            switches,
            faults: w.faults,
            depth_counts: w.depth_counts,
        })
    })
}

/// Whole disks, as people and programs ask for them, each over all runs.
fn disks(case: &Case) -> Vec<ObservedDisk> {
    let layers = if case.has_storage() { case.shared().unwrap_or_default() } else { Vec::new() };
    layers.into_iter().filter_map(|layer| disk(case, layer)).collect()
}

fn disk(case: &Case, layer: &Layer) -> Option<ObservedDisk> {
    let zero = ObservedDisk { name: layer.name.clone(), ..ObservedDisk::default() };
    let sum = |sum: ObservedDisk, ran: &CaseRun| -> Option<ObservedDisk> {
        let (start, stop) = (ran.at(Moment::Start).ok()?, ran.at(Moment::Stop).ok()?);
        let stat: BlockStat = ran.counted(&[layer]).ok()?;
        let ns = stop.at_ns.checked_sub(start.at_ns)?;
        Some(ObservedDisk { stat: sum.stat.plus(&stat), ns: sum.ns.saturating_add(ns), ..sum })
    };
    case.runs.iter().try_fold(zero, sum).filter(|disk| disk.ns > 0)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn of_fixture(fixture: &Fixture) -> Observed {
    let record = fixture.record();
    observed(&crate::case::cases(&record)[0])
}

#[test]
fn all_runs_are_added_up() {
    let seen = of_fixture(&Fixture::honest());
    assert!(seen.in_order && !seen.is_cut && seen.errors.is_empty());
    assert_eq!((seen.window_ns, seen.targets.len()), (5_000_000_000, 1));
    let read = &seen.kinds[&Kind::Read];
    assert_eq!((read.bytes, read.latency.count), (50_000 * 4096, 50_000));
    assert_eq!((seen.kinds.len(), read.service.is_none()), (1, true));
    let ops: u64 = read.course.iter().map(|s| s.ops).sum();
    assert_eq!(ops, read.latency.count);
    let ends = read.course.iter().map(|s| s.start_ns + s.ns);
    let gaps =
        read.course.iter().skip(1).zip(ends).filter(|(next, end)| next.start_ns.abs_diff(*end) > 1_000_000);
    assert_eq!(gaps.count(), 0, "{:?}", read.course);
    assert_eq!((seen.disks.len(), seen.disks[0].name.as_str()), (1, "vda"));
    assert_eq!(seen.disks[0].stat.read.ios, 55_000);
    assert!(seen.workers.wall_ns > 0 && seen.workers.user_ns > 0);
}

#[test]
fn what_was_not_counted_is_not_there() {
    assert!(of_fixture(&Fixture { stat_unreadable: true, ..Fixture::honest() }).disks.is_empty());
    assert!(of_fixture(&Fixture { role: Role::None, engine: "null", ..Fixture::honest() }).disks.is_empty());
    let mut record = Fixture::honest().record();
    record.runs.iter_mut().filter_map(|r| r.end.as_mut()).for_each(|end| {
        end.ending = RunEnding::Failed("no".into());
        end.streams[0].issued.entry(Kind::Read).or_default().errors.insert(5, 2);
    });
    let seen = observed(&crate::case::cases(&record)[0]);
    assert!(!seen.in_order && seen.is_cut && seen.errors.get(&5) == Some(&10));
}

#[test]
fn a_run_that_was_cut_off_is_seen_as_far_as_it_came_and_where_another_is_complete_not_at_all() {
    let whole = Fixture { runs: 2, ..Fixture::honest() }.record();
    let seen = |interrupted: &[usize]| {
        let mut record = whole.clone();
        for run in interrupted {
            record.runs[*run].end.as_mut().unwrap().ending = RunEnding::Interrupted;
        }
        observed(&crate::case::cases(&record)[0])
    };
    let count = |seen: &Observed| seen.kinds[&Kind::Read].latency.count;
    let (one, cut) = (seen(&[1]), seen(&[0, 1]));
    assert_eq!([count(&seen(&[])), count(&one), count(&cut)], [20_000, 10_000, 10_000]);
    assert_eq!([one.is_cut, cut.is_cut, one.in_order, cut.in_order], [false, true, true, true]);
}

#[test]
fn in_an_open_loop_latency_and_service_are_apart() {
    let seen = of_fixture(&Fixture::honest_open());
    let read = &seen.kinds[&Kind::Read];
    let service = read.service.as_ref().unwrap();
    assert!(service.count == read.latency.count && service.mean_ns <= read.latency.mean_ns);
}
