//! Compares a replay with its capture.
//!
//! 1. [`sum_at_driver`] adds up the requests that the driver completed for the replay's workers. If these match the operations,
//!    latencies and depth come from the driver, otherwise from the program.
//! 2. [`pair_figures`] puts the figures of the replay and of the capture next to each other.
//! 3. [`list_differences`] lists what differs and why.

use crate::case::{Case, CaseRun};
use crate::figures::timely_quantile_ns;
use model::Known;
use model::captured::RowUnit;
use model::job::{Kind, Original, Replay, ReplayPace};
use model::record::{AtDriver, Replayed};
use model::replay::{Compared, ReplayComparison};
use model::units::{show_count, show_counted, show_ns, show_share};

/// The times of two runs of the same load usually differ by at most this share.
const ELAPSED_WITHIN: f64 = 0.1;

/// Median latencies and depths of two runs of the same load usually differ by at most this share.
const LATENCY_WITHIN: f64 = 0.15;

/// The number of the driver's requests may differ from that of the operations by this share, because the last requests
/// may be missing.
const SAME_WITHIN: f64 = 0.01;

/// Compares the replay of a case with its original; `None` if the case is no replay, or no run completed.
pub(crate) fn compare(case: &Case) -> Option<ReplayComparison> {
    let replay = case.stream.replay.as_deref()?;
    let runs = case.runs.len() as f64;
    let elapsed_ns = (runs > 0.0).then(|| case.window_ns() / runs).filter(|ns| *ns > 0.0)?;
    let driver = sum_at_driver(case);
    let figures = pair_figures(case, replay, elapsed_ns, driver.as_ref().ok());
    let counted = add_up_counts(&case.runs);
    let differs = list_differences(case, replay, &figures, counted.as_ref(), &driver);
    Some(ReplayComparison {
        capture: replay.file.clone(),
        pace: replay.pace.word().into(),
        speed: replay.speed,
        seen_at: if driver.is_ok() { "driver" } else { "program" }.into(),
        figures,
        counted,
        differs,
    })
}

/// Adds up the requests at the driver in all runs.
///
/// # Errors
/// Why there are no requests of the driver, or that their number does not match the operations.
fn sum_at_driver(case: &Case) -> Known<AtDriver> {
    let mut sum = AtDriver::default();
    let mut depths = Vec::new();
    for run in case.runs.iter() {
        let one =
            run.stream.at_driver.as_ref().ok_or("they were not recorded")?.as_ref().map_err(String::clone)?;
        depths.push(one.depth);
        for (kind, (requests, latency)) in &one.kinds {
            let (all_requests, all_latencies) = sum.kinds.entry(*kind).or_default();
            *all_requests += requests;
            all_latencies.merge(latency);
        }
    }
    for kind in Kind::ALL {
        let issued = case.in_windows(kind).ops;
        let completed = sum.kinds.get(&kind).map_or(0, |(requests, _)| *requests);
        if issued.abs_diff(completed) as f64 > SAME_WITHIN * issued as f64 {
            let issued = show_counted(issued, &format!("{} operation", kind.word()));
            let completed = show_counted(completed, "request");
            return Err(format!(
                "{issued} of the replay became {completed} at the driver, so the two cannot be compared"
            ));
        }
    }
    let all: Option<Vec<f64>> = depths.into_iter().collect();
    sum.depth = all.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>() / all.len() as f64);
    Ok(sum)
}

fn pair_figures(case: &Case, replay: &Replay, elapsed_ns: f64, driver: Option<&AtDriver>) -> Vec<Compared> {
    let original = &replay.original;
    let runs = case.runs.len() as f64;
    let amount = |kind: Kind| case.in_windows(kind);
    let ops = |kinds: &[Kind]| kinds.iter().map(|k| amount(*k).ops).sum::<u64>() as f64 / runs;
    let bytes: f64 = Kind::MOVING.iter().map(|k| amount(*k).bytes as f64).sum::<f64>() / runs;
    let (seconds, original_seconds) = (elapsed_ns / 1e9, original.elapsed_ns as f64 / 1e9);
    let original_rate = |amount: f64| (original_seconds > 0.0).then(|| amount / original_seconds);
    let moved: u64 = Kind::MOVING.iter().filter_map(|k| original.for_kind(*k)).map(|k| k.bytes).sum();
    let original_ops = original.operations() as f64;
    let depth = driver.map_or_else(|| case.depth_mean().ok(), |driver| driver.depth);
    let mut out = vec![
        Compared::from_figures("elapsed", "ns", Some(original.elapsed_ns as f64), Some(elapsed_ns)),
        Compared::from_figures("operations", "", Some(original_ops), Some(ops(&Kind::ALL))),
        Compared::from_figures("IOPS", "", original_rate(original_ops), Some(ops(&Kind::ALL) / seconds)),
        Compared::from_figures("MB/s", "", original_rate(moved as f64 / 1e6), Some(bytes / 1e6 / seconds)),
        Compared::from_figures("depth", "", original.depth_mean, depth),
    ];
    for recorded in &original.kinds {
        let (kind, word) = (recorded.kind, recorded.kind.word());
        let amount = amount(kind);
        let now = ops(&[kind]);
        let share = Compared::from_figures(
            &format!("{word} share"),
            "share",
            Some(recorded.operations as f64 / original_ops),
            Some(now / ops(&Kind::ALL).max(1.0)),
        );
        out.push(share);
        if kind != Kind::Sync {
            let size = (amount.ops > 0).then(|| amount.bytes as f64 / amount.ops as f64);
            out.push(Compared::from_figures(
                &format!("{word} size"),
                "bytes",
                Some(recorded.bytes as f64 / recorded.operations.max(1) as f64),
                size,
            ));
        }
        for (rank, q, then) in [("p50", 0.5, recorded.p50_ns), ("p99", 0.99, recorded.p99_ns)] {
            let now = driver.map_or_else(
                || percentile_ns(case, kind, q),
                |driver| driver.kinds.get(&kind)?.1.supported_quantile_ns(q).map(|ns| ns as f64),
            );
            out.push(Compared::from_figures(&format!("{word} {rank}"), "ns", then.map(|ns| ns as f64), now));
        }
    }
    out
}

/// Returns a latency percentile of a kind of operation; `None` with too few operations, or if fathom's lateness makes
/// up too much of the percentile.
fn percentile_ns(case: &Case, kind: Kind, q: f64) -> Option<f64> {
    let lateness = case.open_loop(kind).map(|open| open.lateness);
    timely_quantile_ns(&case.latency(kind)?, lateness.as_ref(), q).map(|ns| ns as f64)
}

/// Adds up the counts of all runs. `starved_ns` and `outside` are the largest value of any run, and
/// `is_whole` is true if it is true for all runs.
fn add_up_counts(runs: &[CaseRun]) -> Option<Replayed> {
    let all: Vec<&Replayed> = runs.iter().filter_map(|run| run.stream.replayed.as_ref()).collect();
    let sum = |count: fn(&Replayed) -> u64| all.iter().map(|one| count(one)).sum();
    (!all.is_empty()).then(|| Replayed {
        starved: sum(|one| one.starved),
        starved_ns: all.iter().map(|one| one.starved_ns).max().unwrap_or(0),
        held_by_depth: sum(|one| one.held_by_depth),
        held_by_order: sum(|one| one.held_by_order),
        outside: all.iter().map(|one| one.outside).max().unwrap_or(0),
        is_whole: all.iter().all(|one| one.is_whole),
    })
}

/// Lists the differences with their reasons: first those from the capture and the runs, then those between the figures.
fn list_differences(
    case: &Case,
    replay: &Replay,
    figures: &[Compared],
    counted: Option<&Replayed>,
    driver: &Known<AtDriver>,
) -> Vec<String> {
    let mut out = capture_differences(&replay.original);
    let original = &replay.original;
    let is_logged = original.unit == RowUnit::Operations;
    let has_latencies =
        original.depth_mean.is_some() || original.kinds.iter().any(|kind| kind.p50_ns.is_some());
    out.push(match driver {
        _ if !has_latencies => "The capture has no completions, so there is no latency or depth to compare.".into(),
        _ if is_logged => format!(
            "The latencies and the depth of {} are those that were logged, at an unknown level. Those of the replay are measured {}.",
            if original.device.is_empty() { "the original" } else { &original.device },
            if driver.is_ok() { "at the driver" } else { "in the program" }
        ),
        Ok(_) => "Latency and depth are measured at the driver, from issue to completion, in the replay as in the capture.".into(),
        Err(why) => format!(
            "The replay's latencies and depth are those that a program sees, with system calls and \
             wake-ups; the capture's are those of the driver. Why the replay has no figures of the \
             driver: {why}."
        ),
    });
    out.extend(counted.into_iter().flat_map(|counted| run_differences(case, replay, counted)));
    if replay.dense {
        out.push("The blocks that the capture touched are on the target without gaps, in their order, so distances on the device are shorter.".into());
    }
    match replay.pace {
        ReplayPace::Fast => out.push("Operations ignored their recorded times (--pace fast), so rates, depth and latencies are those of the target at its limit.".into()),
        _ if (replay.speed - 1.0).abs() > f64::EPSILON => out.push(format!(
            "Times were divided by {} (--speed), so rates and depth are meant to differ.",
            replay.speed
        )),
        ReplayPace::Dependent | ReplayPace::Timed => out.extend(figure_differences(replay, figures, driver.is_ok())),
    }
    out
}

/// Returns the differences that come from the capture.
fn capture_differences(original: &Original) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(damage) = &original.damage {
        out.push(format!("The capture was read up to the point where it is {damage}."));
    }
    if original.completeness == "incomplete" {
        out.push("The capture is incomplete: requests of the original are missing from it.".into());
    }
    if original.left_out > 0 {
        out.push(format!(
            "{} {} left out, because a replay has no counterpart (commands to the device, operations on zones).",
            show_count(original.left_out as f64),
            by_count(original.left_out, "request was", "requests were")
        ));
    }
    out
}

/// Returns `one` for a count of 1, otherwise `many`.
fn by_count(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// Returns the differences that come from the runs.
fn run_differences(case: &Case, replay: &Replay, counted: &Replayed) -> Vec<String> {
    let (most_late, depth) = (show_ns(counted.starved_ns as f64), case.stream.depth);
    let counts = [
        (
            counted.starved,
            format!(
                "{} read from the capture too late, by up to {most_late}, and so submitted late.",
                by_count(counted.starved, "operation was", "operations were")
            ),
        ),
        (
            counted.held_by_depth,
            format!(
                "{} an operation was due while every slot was taken; use a --depth above {depth}.",
                by_count(counted.held_by_depth, "time", "times")
            ),
        ),
        (
            counted.held_by_order,
            format!(
                "{} late, because the table of 65,536 pending operations was full: earlier operations waited for \
                 others.",
                by_count(counted.held_by_order, "operation came", "operations came")
            ),
        ),
        (
            counted.outside,
            format!(
                "{} left out: outside the ranges that were read or written.",
                by_count(counted.outside, "discard was", "discards were")
            ),
        ),
    ];
    let occurred = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut out: Vec<String> =
        occurred.map(|(count, what)| format!("{} {what}", show_count(count as f64))).collect();
    if !counted.is_whole && replay.pace != ReplayPace::Fast {
        out.push("The replay ended before it had submitted the whole capture.".into());
    }
    out
}

/// Returns the differences between the figures.
fn figure_differences(replay: &Replay, figures: &[Compared], is_at_driver: bool) -> Vec<String> {
    let change = |name: &str| figures.iter().find(|f| f.name == name).and_then(|f| f.change);
    let by =
        |change: f64| format!("{}{}", show_share(change.abs()), if change > 0.0 { " more" } else { " less" });
    let mut out = Vec::new();
    if let Some(elapsed) = change("elapsed").filter(|change| change.abs() > ELAPSED_WITHIN) {
        let why = match replay.pace {
            ReplayPace::Dependent if elapsed > 0.0 => {
                "operations that others wait for took longer in the replay, or tasks of the original waited for each other, which a capture does not record"
            }
            ReplayPace::Dependent => "operations that others wait for took less time in the replay",
            _ if elapsed > 0.0 => "its last operations completed later",
            _ => "its last operations completed earlier",
        };
        out.push(format!("The replay took {} time than the original: {why}.", by(elapsed)));
    }
    if let Some(depth) = change("depth").filter(|change| change.abs() > LATENCY_WITHIN) {
        let why = if replay.pace == ReplayPace::Timed && depth > 0.0 {
            "submissions do not wait for completions, so late operations pile up"
        } else {
            "depth is rate times latency, and these differ"
        };
        out.push(format!("Mean depth is {} than in the capture: {why}.", by(depth)));
    }
    for kind in Kind::ALL {
        let p50 = change(&format!("{} p50", kind.word()));
        let Some(p50) = p50.filter(|change| change.abs() > LATENCY_WITHIN) else { continue };
        let why = match kind {
            _ if is_at_driver => "the device, its state or its load differs",
            Kind::Sync => "a sync here is an fdatasync of the target, which the kernel hands to a thread",
            _ => {
                "the capture counts from the driver and the replay from its system call, and the device or its state may differ"
            }
        };
        out.push(format!("The median {} takes {} than in the capture: {why}.", kind.word(), by(p50)));
    }
    out
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A record of a replay of a thousand reads in a second.
#[cfg(test)]
pub(crate) fn replaying(
    pace: ReplayPace,
    change: impl FnOnce(&mut Replay),
    counted: Option<&Replayed>,
) -> model::record::Record {
    let mut record = Fixture::honest().record();
    make_replay(&mut record, pace, change);
    for stream in record.runs.iter_mut().filter_map(|run| run.end.as_mut()).flat_map(|end| &mut end.streams) {
        stream.replayed = counted.cloned();
    }
    record
}

/// Makes the first stream of a record a replay of reads that took one second.
#[cfg(test)]
pub(crate) fn make_replay(
    record: &mut model::record::Record,
    pace: ReplayPace,
    change: impl FnOnce(&mut Replay),
) {
    let read = model::job::OriginalKind {
        kind: Kind::Read,
        operations: 1000,
        bytes: 4_096_000,
        sizes: [4096; 2],
        p50_ns: Some(1),
        p99_ns: None,
    };
    let original = Original {
        elapsed_ns: 1_000_000_000,
        depth_mean: Some(1.0),
        kinds: vec![read],
        ..Original::default()
    };
    let mut replay = Replay {
        file: "x.capture".into(),
        pace,
        speed: 1.0,
        dense: false,
        stable_writes: false,
        largest_bytes: 4096,
        original,
        changes: model::job::Changes::default(),
    };
    change(&mut replay);
    record.header.plan.jobs[0].phases[0].streams[0].replay = Some(Box::new(replay));
}

#[cfg(test)]
fn compare_replay(
    pace: ReplayPace,
    change: impl FnOnce(&mut Replay),
    counted: Option<&Replayed>,
) -> ReplayComparison {
    let record = replaying(pace, change, counted);
    compare(&crate::case::cases(&record)[0]).unwrap_or_else(|| panic!("no comparison"))
}

#[test]
fn figures_of_replay_and_original_are_compared_with_reasons() {
    let same = compare_replay(ReplayPace::Dependent, |_| {}, None);
    let figure =
        |name: &str| same.figures.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!((figure("IOPS").original, figure("read size").change), (Some(1000.0), Some(0.0)));
    assert_eq!((figure("read p99").original, figure("read p99").change), (None, None));
    assert!(same.differs.iter().any(|why| why.contains("median read")), "{:?}", same.differs);
    assert!(compare(&crate::case::cases(&Fixture::honest().record())[0]).is_none());
    let counted = Replayed {
        starved: 3,
        starved_ns: 5_000_000,
        held_by_depth: 7,
        is_whole: true,
        ..Replayed::default()
    };
    let held = compare_replay(ReplayPace::Timed, |replay| replay.dense = true, Some(&counted));
    // The counts of all five runs are added up.
    for part in ["15 operations were read", "35 times an operation was due", "without gaps"] {
        assert!(held.differs.iter().any(|why| why.contains(part)), "{part}: {:?}", held.differs);
    }
    let logged = |has_latencies: bool| {
        let log = |replay: &mut Replay| {
            replay.original.unit = RowUnit::Operations;
            if !has_latencies {
                replay.original.depth_mean = None;
                replay.original.kinds.iter_mut().for_each(|kind| (kind.p50_ns, kind.p99_ns) = (None, None));
            }
        };
        compare_replay(ReplayPace::Timed, log, None).differs[0].clone()
    };
    assert!(logged(true).contains("at an unknown level"), "{}", logged(true));
    assert!(logged(false).contains("no completions"), "{}", logged(false));
    let fast = compare_replay(ReplayPace::Fast, |replay| replay.original.left_out = 1, None);
    assert!(fast.differs.len() == 3 && fast.differs[0].starts_with("1 request was "), "{:?}", fast.differs);
}

#[test]
fn latencies_come_from_the_driver_if_its_requests_match_the_operations() {
    let seen_by = |driver: &dyn Fn(u64) -> Known<AtDriver>| {
        let mut record = replaying(ReplayPace::Dependent, |_| {}, None);
        for end in record.runs.iter_mut().filter_map(|run| run.end.as_mut()) {
            let ops = end.streams[0].kinds[&Kind::Read].latency.count();
            end.streams[0].at_driver = Some(driver(ops));
        }
        compare(&crate::case::cases(&record)[0]).unwrap_or_else(|| panic!("no comparison"))
    };
    let at_driver = |requests: u64| {
        let mut latency = model::histogram::Histogram::default();
        (0..requests).for_each(|_| latency.record(1));
        Ok(AtDriver { depth: Some(0.5), kinds: [(Kind::Read, (requests, latency))].into() })
    };
    let figure = |of: &ReplayComparison, name: &str| {
        of.figures.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let seen = seen_by(&at_driver);
    assert_eq!(seen.seen_at, "driver");
    assert_eq!((figure(&seen, "read p50").change, figure(&seen, "depth").replay), (Some(0.0), Some(0.5)));
    // The number of requests differs if operations were split, merged, or served by the page cache.
    let split = seen_by(&|ops| at_driver(2 * ops));
    assert_eq!((split.seen_at.as_str(), figure(&split, "depth").replay == Some(0.5)), ("program", false));
    assert!(split.differs[0].contains("read operations of the replay became"), "{:?}", split.differs);
    let lost = seen_by(&|_| Err("the kernel's tracer lost 7 events".into()));
    assert!(lost.differs[0].ends_with("the kernel's tracer lost 7 events."), "{:?}", lost.differs);
}
