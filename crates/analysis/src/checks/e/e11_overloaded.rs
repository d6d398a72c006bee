//! E11: an open loop whose rate is more than the storage serves, so that latency grows with the run. Fires if the
//! median latency grows from quarter to quarter in most runs. E10 reports operations that were never served.

use crate::checks::prelude::*;
use crate::figures::time_series::{moved, rows_of};
use crate::runs::{SERVED_FROM, falls_short};
use stats::sample::median;

/// Growth from quarter to quarter. A backlog that grows steadily from zero triples, then grows by two thirds and
/// two fifths.
const GROWS_BY: f64 = 1.25;
/// Growth of latency divided by the window, which is the excess share of the load. Less is noise.
const TOO_MUCH_FROM: Share = Share(0.002);
/// Fewest intervals of a run.
const FEWEST_ROWS: usize = 8;

pub(in crate::checks) const CHECK: Check = Check {
    id: CheckId::E11,
    name: "OVERLOADED",
    belief: "the storage keeps up with the requested load",
    reads: "fathom's own intervals of an open loop: the median latency from the intended start.",
    formula: formula!(
        "The medians of the four quarters of a run must each be at least {GROWS_BY} times the one before, \
         and latency must grow by more than {TOO_MUCH_FROM} of the window, which is (rate - capacity) / \
         rate. Fires if most runs do that. If more than {unserved} of the operations were not served at all, \
         E10 reports that instead. Runs with fewer than {FEWEST_ROWS} intervals are not checked.",
        unserved = Share(1.0 - SERVED_FROM)
    ),
    provoke: "`fathom run --engine sim:servers=4 --depth 64 --rate 40200 --arrivals constant --time 40s \
              --warmup 0 --runs 1`: four servers of 100 us serve 40,000 operations per second. On storage, \
              `fathom limit DIR` shows the capacity; a `--rate` half a percent above it overloads the \
              storage.",
    fix: "Use a --rate below the capacity. A closed loop (no --rate) or `fathom limit` shows the capacity.",
    accept: "Accept it if you want to see the queue grow. Latencies at 70 % of the capacity are a fair \
             result to quote.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| growing(0.006)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest_open().record();
        record.runs.iter_mut().for_each(|r| r.intervals.clear());
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    let Pace::Open { iops: requested, arrivals } = case.stream.pace else { return Ok(Answer::DoesNotApply) };
    let ops: u64 = super::TIMED.iter().map(|k| case.in_windows(*k).ops).sum();
    case.need_run()?;
    // E10 reports operations that were not served.
    if falls_short(ops as f64, requested, case.window_ns() / 1e9, arrivals) {
        return Ok(Answer::DoesNotApply);
    }
    let growths: Vec<Growth> = case.runs.iter().map(growth).collect::<Known<_>>()?;
    let overloaded: Vec<&Growth> =
        growths.iter().filter(|g| g.grows_steadily && g.too_much > TOO_MUCH_FROM).collect();
    let worst = growths.iter().map(|g| g.too_much).fold(0.0, f64::max);
    let numbers = evidence([
        ("asked_iops", requested),
        ("too_much_share", worst),
        ("runs_overloaded", overloaded.len() as f64),
    ]);
    match overloaded.first() {
        Some(g) if 2 * overloaded.len() > growths.len() => finding!(
            Severity::Void,
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
    /// Growth of latency divided by time: the share of the load beyond capacity.
    too_much: f64,
}

fn growth(ran: &CaseRun) -> Known<Growth> {
    let rows: Vec<_> = rows_of(ran).filter(|r| moved(r).0 > 0).collect();
    if rows.len() < FEWEST_ROWS {
        return Err(format!(
            "the run is too short: it has {} intervals, and {FEWEST_ROWS} are needed",
            rows.len()
        ));
    }
    let slowest = |cells: &std::collections::BTreeMap<Kind, model::record::Cell>| {
        cells.iter().filter(|(k, _)| **k != Kind::Sync).map(|(_, c)| c.2 as f64).fold(0.0, f64::max)
    };
    // Merged intervals are longer than others, so quarters are divided by time.
    let (begin, end) =
        rows.last().zip(rows.first()).map_or((0, 0), |(last, first)| (first.start_ns, last.end_ns));
    let span = end.saturating_sub(begin);
    let quarter = |i: u64| {
        let (from, until) = (begin + span / 4 * i, begin + span / 4 * (i + 1));
        let within = rows.iter().filter(|r| (from..until).contains(&(r.start_ns.midpoint(r.end_ns))));
        let medians: Vec<f64> = within.map(|r| slowest(&r.cells)).collect();
        if medians.is_empty() {
            Err("a quarter of the run has no interval".to_owned())
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

/// An open loop whose rate exceeds the capacity by a share of `too_much`.
#[cfg(test)]
fn growing(too_much: f64) -> model::record::Record {
    let mut record = super::shaped(&Fixture::honest_open(), 20, 1, |_, _| 10_000.0);
    for row in record.runs.iter_mut().flat_map(|r| &mut r.intervals) {
        for cell in row.cells.values_mut() {
            cell.2 = 100_000 + (too_much * row.end_ns as f64) as u64;
        }
    }
    record
}

#[test]
fn a_growing_backlog_is_void_and_noise_is_silent() {
    assert_eq!(CHECK.severity(&growing(0.006)), Some(Severity::Void));
    assert!(matches!(CHECK.answer(&growing(0.001)), Ok(Answer::Holds(..))));
    let mut stall = growing(0.0);
    for row in stall.runs.iter_mut().flat_map(|r| r.intervals.iter_mut().rev().take(4)) {
        row.cells.values_mut().for_each(|c| c.2 = 50_000_000);
    }
    assert!(matches!(CHECK.answer(&stall), Ok(Answer::Holds(..))), "a stall at the end is no backlog");
}

#[test]
fn unserved_operations_are_left_to_e10() {
    let unserved = Fixture { open_loop: Some((20_000.0, Some(1_000))), ..Fixture::honest() };
    assert_eq!(CHECK.answer(&unserved.record()), Ok(Answer::DoesNotApply));
    assert_eq!(CHECK.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}
