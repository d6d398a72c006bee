//! Whether an open loop kept its schedule, and whether the storage kept up with it (E10, E11).
//!
//! E10 compares the lateness of submissions with the latency percentiles, and the operations served with the
//! requested rate. For a replay, it counts the operations read too late from the capture. E11 finds a rate
//! above what the storage serves: the median latency grows from quarter to quarter in most runs.

use crate::checks::prelude::*;
use crate::figures::time_series::{intervals_of, sum_moved};
use crate::figures::{LATE_SHARE, PERCENTILES, RATED_KINDS, is_late};
use crate::runs::{MAX_ARRIVAL_DEVIATIONS, SERVED_FROM, falls_short};
use model::record::Interval;
use model::replay::Replayed;
use stats::sample::median;

/// Harmless share of a replay's operations that are read too late: the operating system stops any reader thread now and
/// then.
const STARVED_TO: f64 = 0.001;

pub(in crate::checks) const GENERATOR_LATE: Check = Check {
    id: CheckId::E10,
    name: "GENERATOR_LATE",
    belief: "operations were submitted on schedule",
    reads: "fathom's own times: the intended start, the submission and the completion of every operation of \
            an open loop.",
    formula: formula!(
        "Compares the lateness of submissions with the latency at each percentile, and the operations \
         served with the requested ones.\n\
         - Invalid if less than {served} of the requested operations were served within the windows, and \
         more are missing than {MAX_ARRIVAL_DEVIATIONS} standard deviations of the number of arrivals. The \
         missing operations wait in a queue that grows with the length of the run.\n\
         - For a replay, the requested operations are those that were submitted, without the discards that were \
         left out. The first rule does not apply if the run ended before the load (--time).\n\
         - Invalid for a replay if more than {starved} of its operations were read from the capture too \
         late.\n\
         - Biased if the lateness at a percentile is more than {late} of the latency. fathom then distorts \
         this percentile, so reports withhold it.\n\
         - Not checked, without a finding, if the record does not contain the lateness.",
        starved = Share(STARVED_TO),
        late = Share(LATE_SHARE),
        served = Share(SERVED_FROM)
    ),
    provoke: "`fathom run --rate 1000000 --depth 1 DIR` requests more than any disk serves. `taskset -c 0 \
              fathom run --rate 50000 --workers 8 DIR` makes submissions late.",
    fix: "Use a lower --rate, a larger --depth or more --workers.",
    accept: "Accept it if you want to see the storage beyond its capacity.",
    applies: |case| case.stream.replay.is_some() || case.stream.is_open_loop(),
    ask: Ask::Alone(check_generator_late),
    #[cfg(test)]
    fires: Some(|| {
        let open_loop = Some((10_000.0, Some(1_000_000)));
        Fixture { open_loop, ..Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || Fixture { open_loop: Some((10_000.0, None)), ..Fixture::honest() }.record(),
};

fn check_generator_late(case: &Case) -> Known<Answer> {
    if let Some(starved) = find_starved_replay(case) {
        return Ok(starved);
    }
    let Pace::Open { iops: requested, arrivals } = case.stream.pace else { return Ok(Answer::DoesNotApply) };
    let seconds = case.window_ns() / 1e9;
    let ops: u64 = RATED_KINDS.iter().map(|k| case.in_windows(*k).ops).sum();
    let replayed = || case.runs.iter().filter_map(|run| run.stream.replayed.as_ref());
    // The rate of a load in a file is its mean over the whole file. A part of the file may have any other rate.
    let is_part = replayed().any(|one| !one.is_whole);
    let requested = requested * replayed().map(|one| submitted_share(case, one)).fold(1.0, f64::min);
    let served = share(ops as f64 / seconds.max(f64::MIN_POSITIVE), requested);
    let unserved = !is_part && falls_short(ops as f64, requested, seconds, arrivals);
    let late = late_percentiles(case);
    let worst = Kind::ALL.iter().filter_map(|k| case.open_loop(*k)?.lateness.quantile_ns(0.99)).max();
    let worst_ns = worst.map_or(f64::NAN, |ns| ns as f64);
    let numbers = evidence([
        ("asked_iops", requested),
        ("served_share", served),
        ("lateness_p99_ns", worst_ns),
        ("withheld", late.as_ref().map_or(f64::NAN, |late| late.len() as f64)),
    ]);
    // An overload is certain even if the lateness is unknown.
    if unserved {
        return finding!(
            Severity::Invalidates,
            numbers,
            "Only {} of the requested {} operations per second were served: the rest queued up, and the \
             latencies grow with the length of the run.",
            show_share(served),
            show_rate(requested)
        );
    }
    let late = late?;
    if late.is_empty() {
        return holds("Operations were submitted on schedule.", numbers);
    }
    finding!(
        Severity::Biases,
        numbers,
        "Submissions were late, by {} at the 99th percentile. At p{}, the lateness is more than {} \
         of the latency. A report withholds such percentiles; `fathom limit` shows them as upper bounds.",
        show_ns(worst_ns),
        late.join(", p"),
        Share(LATE_SHARE)
    )
}

/// Returns the share of a load's operations that a run submitted: some discards are left out.
fn submitted_share(case: &Case, replayed: &Replayed) -> f64 {
    let Some(replay) = &case.stream.replay else { return 1.0 };
    let counted = replay.original.operations().saturating_sub(replay.original.count(Kind::Sync)).max(1);
    1.0 - share(replayed.outside.min(counted) as f64, counted as f64)
}

/// Returns a finding for a replay whose operations were read too late: the reader, not the capture, decided when they were submitted.
fn find_starved_replay(case: &Case) -> Option<Answer> {
    case.stream.replay.as_ref()?;
    let replays = case.runs.iter().filter_map(|run| run.stream.replayed.as_ref());
    let late: u64 = replays.clone().map(|run| run.starved).sum();
    let most_ns = replays.map(|run| run.starved_ns).max().unwrap_or(0);
    let ops: u64 = Kind::ALL.iter().map(|kind| case.in_windows(*kind).ops).sum();
    let part = share(late as f64, ops as f64);
    (part > STARVED_TO).then(|| {
        let fix = "Put the capture on faster storage, such as /dev/shm, or use a smaller --speed.";
        let found = detail!(
            Severity::Invalidates,
            evidence([("starved_share", part), ("starved_ns", most_ns as f64)]),
            "{} of the operations were read from the capture too late, by up to {}: the reader, not the \
             capture, decided when they were submitted.",
            show_share(part),
            show_ns(most_ns as f64)
        );
        Answer::Finding(found.with_fix(fix.to_owned()))
    })
}

/// Returns the names of the percentiles that lateness distorts, for any kind of operation.
fn late_percentiles(case: &Case) -> Known<Vec<&'static str>> {
    let mut late = Vec::new();
    let mut has_latencies = false;
    for kind in Kind::ALL {
        let Some(latency) = case.latency(kind) else { continue };
        let open =
            case.open_loop(kind).ok_or("the record does not contain the lateness of the operations")?;
        has_latencies = true;
        for (name, q) in PERCENTILES {
            let is_distorted =
                latency.supported_quantile_ns(*q).is_some_and(|v| is_late(v, &open.lateness, *q));
            if is_distorted && !late.contains(name) {
                late.push(*name);
            }
        }
    }
    if has_latencies { Ok(late) } else { Err("no operation completed within a measured window".into()) }
}

/// Minimum factor by which the median latency grows from one quarter of a run to the next. If a backlog grows steadily
/// from zero, the medians of the quarters are as 1 : 3 : 5 : 7, so the smallest factor is 1.4.
const GROWS_BY: f64 = 1.25;
/// Largest growth of the latency, as a share of the window, that may be noise. This share equals (rate - capacity) / rate.
const TOO_MUCH_ABOVE: Share = Share(0.002);
/// Minimum number of intervals of a run that contain operations.
const MIN_INTERVALS: usize = 8;

pub(in crate::checks) const OVERLOADED: Check = Check {
    id: CheckId::E11,
    name: "OVERLOADED",
    belief: "the storage keeps up with the requested load",
    reads: "The median latency in each interval of an open loop's run, counted from the intended start.",
    formula: formula!(
        "The medians of the four quarters of a run must each be at least {GROWS_BY} times the one before, \
         and the latency must grow by more than {TOO_MUCH_ABOVE} of the window. This growth is (rate - \
         capacity) / rate. Fires if most runs do that. If more than {unserved} of the operations were not \
         served at all, E10 reports that instead. Not checked if a run has fewer than {MIN_INTERVALS} intervals.",
        unserved = Share(1.0 - SERVED_FROM)
    ),
    provoke: "`fathom run --engine sim:servers=4 --depth 64 --rate 40200 --arrivals constant --time 40s \
              --warmup 0 --runs 1`: four servers of 100 us serve 40,000 operations per second. On storage, \
              `fathom limit DIR` shows the capacity; a `--rate` half a percent above it overloads the \
              storage.",
    fix: "Use a --rate below the capacity. A closed loop (no --rate) or `fathom limit` shows the capacity.",
    accept: "Accept it if you want to see the queue grow. Latencies at 70 % of the capacity are a fair \
             result to quote.",
    applies: |case| case.stream.is_open_loop(),
    ask: Ask::Alone(check_overloaded),
    #[cfg(test)]
    fires: Some(|| growing(0.006)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest_open().record();
        record.runs.iter_mut().for_each(|r| r.intervals.clear());
        record
    },
};

fn check_overloaded(case: &Case) -> Known<Answer> {
    let Pace::Open { iops: requested, arrivals } = case.stream.pace else { return Ok(Answer::DoesNotApply) };
    let ops: u64 = RATED_KINDS.iter().map(|k| case.in_windows(*k).ops).sum();
    case.need_run()?;
    // E10 reports operations that were not served.
    if falls_short(ops as f64, requested, case.window_ns() / 1e9, arrivals) {
        return Ok(Answer::DoesNotApply);
    }
    let growths: Vec<Growth> = case.runs.iter().map(measure_growth).collect::<Known<_>>()?;
    let overloaded: Vec<&Growth> =
        growths.iter().filter(|g| g.grows_steadily && g.too_much > TOO_MUCH_ABOVE).collect();
    let worst = growths.iter().map(|g| g.too_much).fold(0.0, f64::max);
    let numbers = evidence([
        ("asked_iops", requested),
        ("too_much_share", worst),
        ("runs_overloaded", overloaded.len() as f64),
    ]);
    match overloaded.first() {
        Some(g) if 2 * overloaded.len() > growths.len() => finding!(
            Severity::Invalidates,
            numbers,
            "{} operations per second are more than the storage serves: the backlog grew throughout the run, \
             from a median latency of {} in its first quarter to {} in its last. Such latencies depend on \
             the length of the run.",
            show_rate(requested),
            show_ns(g.first_ns),
            show_ns(g.last_ns)
        ),
        _ => holds("The storage kept up with the load.", numbers),
    }
}

/// The growth of the backlog in one run.
struct Growth {
    first_ns: f64,
    last_ns: f64,
    grows_steadily: bool,
    /// Growth of the median latency divided by the time in which it grew: the share by which the load exceeds the capacity.
    too_much: f64,
}

fn measure_growth(ran: &CaseRun) -> Known<Growth> {
    let rows: Vec<_> = intervals_of(ran).filter(|r| sum_moved(r).ops > 0).collect();
    if rows.len() < MIN_INTERVALS {
        return Err(format!(
            "the run is too short: {MIN_INTERVALS} intervals with operations are needed, and it has {}",
            rows.len()
        ));
    }
    let largest_median = |row: &Interval| {
        row.cells.iter().filter(|(k, _)| **k != Kind::Sync).map(|(_, c)| c.p50_ns as f64).fold(0.0, f64::max)
    };
    // Merged intervals are longer than others, so the quarters have equal times, not equal numbers of intervals.
    let (begin, end) =
        rows.last().zip(rows.first()).map_or((0, 0), |(last, first)| (first.start_ns, last.end_ns));
    let span = end.saturating_sub(begin);
    let quarter = |i: u64| {
        let (from, until) = (begin + span / 4 * i, begin + span / 4 * (i + 1));
        let within = rows.iter().filter(|r| (from..until).contains(&(r.start_ns.midpoint(r.end_ns))));
        let medians: Vec<f64> = within.map(|row| largest_median(row)).collect();
        if medians.is_empty() {
            not_checked("a quarter of the run has no interval with operations")
        } else {
            Ok(median(&medians))
        }
    };
    let quarters = [quarter(0)?, quarter(1)?, quarter(2)?, quarter(3)?];
    Ok(Growth {
        first_ns: quarters[0],
        last_ns: quarters[3],
        grows_steadily: quarters.windows(2).all(|w| w[1] >= GROWS_BY * w[0]),
        // The middles of the first and last quarter are three quarters of the window apart.
        too_much: share((quarters[3] - quarters[0]) / 0.75, span as f64),
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn unserved_operations_are_void_and_late_ones_bias() {
    let overloaded = Fixture { open_loop: Some((20_000.0, Some(1_000))), ..Fixture::honest() };
    assert_eq!(GENERATOR_LATE.severity(&overloaded.record()), Some(Severity::Invalidates));
    let without_lateness = Fixture { open_loop: Some((20_000.0, None)), ..Fixture::honest() };
    let Ok(Answer::Finding(found)) = GENERATOR_LATE.answer(&without_lateness.record()) else {
        panic!("an overload is certain without the lateness")
    };
    assert_eq!(found.severity, Severity::Invalidates);
    assert!(!found.evidence.contains_key("withheld"), "{:?}", found.evidence);
    assert!(!found.evidence.contains_key("lateness_p99_ns"), "{:?}", found.evidence);
    let late = Fixture { open_loop: Some((10_000.0, Some(1_000_000))), ..Fixture::honest() };
    assert_eq!(GENERATOR_LATE.severity(&late.record()), Some(Severity::Biases));
    assert_eq!(GENERATOR_LATE.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}

#[test]
fn a_replay_is_compared_with_what_it_submitted() {
    use model::job::{OriginalKind, ReplayPace};
    // The fixture serves 10,000 operations per second, half of the rate of the load.
    let severity = |replayed: Replayed| {
        let overloaded = Fixture { open_loop: Some((20_000.0, Some(1_000))), ..Fixture::honest() };
        let mut record = overloaded.record();
        crate::figures::replay::make_replay(&mut record, ReplayPace::Timed, |replay| {
            let read = replay.original.kinds[0].clone();
            replay.original.kinds.push(OriginalKind { kind: Kind::Trim, ..read });
        });
        for stream in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|end| &mut end.streams) {
            stream.replayed = Some(replayed.clone());
        }
        GENERATOR_LATE.severity(&record)
    };
    let whole = Replayed { is_whole: true, ..Replayed::default() };
    assert_eq!(severity(whole.clone()), Some(Severity::Invalidates));
    // The discards, half of the operations, were left out.
    assert_eq!(severity(Replayed { outside: 1000, ..whole.clone() }), None);
    // The run ended before the load, whose rate may be uneven.
    assert_eq!(severity(Replayed { is_whole: false, ..whole }), None);
}

#[test]
fn a_replay_that_was_read_too_late_is_void() {
    use model::job::ReplayPace;
    use model::record::Replayed;
    let with = |starved| Replayed { starved, starved_ns: 1_000_000, is_whole: true, ..Replayed::default() };
    let severity_with = |starved| {
        let record = crate::figures::replay::replaying(ReplayPace::Dependent, |_| {}, Some(&with(starved)));
        GENERATOR_LATE.severity(&record)
    };
    assert_eq!([severity_with(0), severity_with(1)], [None, None]);
    assert_eq!(severity_with(1 << 40), Some(Severity::Invalidates));
}

/// An open loop whose rate exceeds the capacity by the share `too_much`.
#[cfg(test)]
fn growing(too_much: f64) -> model::record::Record {
    let mut record = super::shaped(&Fixture::honest_open(), 20, 1, |_, _| 10_000.0);
    for row in record.runs.iter_mut().flat_map(|r| &mut r.intervals) {
        for cell in row.cells.values_mut() {
            cell.p50_ns = 100_000 + (too_much * row.end_ns as f64) as u64;
        }
    }
    record
}

#[test]
fn a_growing_backlog_is_void_and_noise_is_silent() {
    assert_eq!(OVERLOADED.severity(&growing(0.006)), Some(Severity::Invalidates));
    assert!(matches!(OVERLOADED.answer(&growing(0.001)), Ok(Answer::Holds(..))));
    let mut stall = growing(0.0);
    for row in stall.runs.iter_mut().flat_map(|r| r.intervals.iter_mut().rev().take(4)) {
        row.cells.values_mut().for_each(|c| c.p50_ns = 50_000_000);
    }
    assert!(matches!(OVERLOADED.answer(&stall), Ok(Answer::Holds(..))), "a stall at the end is no backlog");
}

#[test]
fn unserved_operations_are_left_to_e10() {
    let unserved = Fixture { open_loop: Some((20_000.0, Some(1_000))), ..Fixture::honest() };
    assert_eq!(OVERLOADED.answer(&unserved.record()), Ok(Answer::DoesNotApply));
    assert_eq!(OVERLOADED.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}
