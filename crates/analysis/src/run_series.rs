//! The course of a run as numbers of equal weight: operations per second in steps of equal length.
//!
//! For: what questions about time (warm-up, steps, drift, independence) are asked of. Not for: the answers, nor the table in
//! the report (that is `per_second`).

use crate::case::{Case, CaseRun, no_run};
use model::Known;
use model::job::Kind;
use model::record::Interval;
use stats::series::{FEWEST_STEPS, Series};

/// Steps above which a longer series tells no more, and the quadratic search for a change gets slow.
const MOST_STEPS: usize = 120;
/// Operations that a step must hold on average, so that counting whole ones makes less noise than the storage does.
const OPS_PER_STEP: f64 = 10.0;
/// Latencies that a step must be long: within less, a full queue completes or it does not.
const LATENCIES_PER_STEP: f64 = 2.0;

/// What counts as an operation of an interval: syncs are the price of writes and no rate.
pub(crate) fn moved(row: &Interval) -> (u64, u64) {
    let cells = row.cells.iter().filter(|(kind, _)| **kind != Kind::Sync);
    cells.fold((0, 0), |(ops, bytes), (_, c)| (ops.saturating_add(c.0), bytes.saturating_add(c.1)))
}

/// The intervals of a stream that have a length.
pub(crate) fn rows_of<'a>(ran: &CaseRun<'a>) -> impl Iterator<Item = &'a Interval> {
    let stream = ran.stream.stream;
    ran.run.intervals.iter().filter(move |r| r.stream == stream && r.end_ns > r.start_ns)
}

/// The series of every run.
///
/// # Errors
/// That there is no run, or why one of them has no series.
pub(crate) fn courses(case: &Case) -> Known<Vec<Series>> {
    if case.runs.is_empty() { Err(no_run()) } else { case.runs.iter().map(series).collect() }
}

/// The series of a run.
///
/// # Errors
/// That its course was not kept, or is too short for any conclusion.
pub(crate) fn series(ran: &CaseRun) -> Known<Series> {
    let rows: Vec<&Interval> = rows_of(ran).collect();
    let from = rows.iter().map(|r| r.start_ns).min().ok_or("the course of the run is not in the record")?;
    let to = rows.iter().map(|r| r.end_ns).max().unwrap_or(from);
    let span_ns = (to - from) as f64;
    let ops: f64 = rows.iter().map(|r| moved(r).0 as f64).sum();
    let latencies = || ran.stream.kinds.values().map(|k| &k.latency);
    let counted: f64 = latencies().map(|h| h.count() as f64).sum();
    let mean_ns = latencies().map(|h| h.sum_ns() as f64).sum::<f64>() / counted.max(1.0);
    let steps = (rows.len() as f64)
        .min(ops / OPS_PER_STEP)
        .min(span_ns / (LATENCIES_PER_STEP * mean_ns).max(1.0))
        .min(MOST_STEPS as f64) as usize;
    if steps < FEWEST_STEPS {
        return Err(format!(
            "the run is too short for that: stretches of time with enough operations in them are {steps}, and {FEWEST_STEPS} are needed"
        ));
    }
    Ok(spread(&rows, from as f64, span_ns / steps as f64, steps))
}

/// Divides the operations of each row among the steps that it overlaps.
fn spread(rows: &[&Interval], from_ns: f64, step_ns: f64, steps: usize) -> Series {
    let mut rates = vec![0.0; steps];
    for row in rows {
        let (a, b) = (row.start_ns as f64 - from_ns, row.end_ns as f64 - from_ns);
        let per_ns = moved(row).0 as f64 / (b - a).max(1.0);
        let first = (a / step_ns) as usize;
        for (i, rate) in rates.iter_mut().enumerate().skip(first) {
            let (begin, end) = (i as f64 * step_ns, (i + 1) as f64 * step_ns);
            if begin >= b {
                break;
            }
            *rate += (b.min(end) - a.max(begin)).max(0.0) * per_ns;
        }
    }
    for rate in &mut rates {
        *rate *= 1e9 / step_ns;
    }
    Series { from_ns, step_ns, rates }
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn rows_of_any_length_become_steps_that_lose_no_operation() {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    for (i, row) in record.runs[0].intervals.iter_mut().enumerate() {
        row.end_ns += (i as u64 % 3) * 7_000_000;
    }
    let case = &crate::case::cases(&record)[0];
    let s = series(&case.runs[0]).unwrap();
    assert_eq!(s.rates.len(), 10);
    let ops: f64 = s.rates.iter().sum::<f64>() * s.step_ns / 1e9;
    assert!((ops - 10_000.0).abs() < 1e-6, "{ops}");
}

#[test]
fn a_course_that_is_missing_or_short_is_a_reason() {
    let mut record = Fixture { runs: 1, ops: 80, latency_ns: Some(1000), ..Fixture::honest() }.record();
    assert!(series(&crate::case::cases(&record)[0].runs[0]).is_err_and(|why| why.contains("too short")));
    record.runs[0].intervals.clear();
    assert!(series(&crate::case::cases(&record)[0].runs[0]).is_err_and(|why| why.contains("record")));
}
