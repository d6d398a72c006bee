//! Seconds: what fathom did and what the device did beside it, second by second.
//!
//! For: the table of the report. Not for: conclusions; those ask `run_series` and `device_series`.

use crate::case::{Case, CaseRun};
use crate::device_series::Course;
use crate::run_series::{moved, rows_of};
use model::job::Kind;
use model::report::{DeviceSecond, Second};

/// Most rows per run: a run of more seconds gets rows of several, so that a report of a week stays a report.
const MOST_ROWS: f64 = 3600.0;
const SECOND_NS: f64 = 1e9;
/// Part of a second that gets no row of its own at the end: it is rounding.
const CRUMB: f64 = 0.01;

/// The course of all runs of a case.
pub(crate) fn per_second(case: &Case) -> Vec<Second> {
    case.runs.iter().flat_map(|ran| seconds_of_run(case, ran)).collect()
}

fn seconds_of_run(case: &Case, ran: &CaseRun) -> Vec<Second> {
    let (from, to) = rows_of(ran).fold((u64::MAX, 0), |(a, b), r| (a.min(r.start_ns), b.max(r.end_ns)));
    if to <= from {
        return Vec::new();
    }
    let span = (to - from) as f64;
    let step = SECOND_NS * (span / SECOND_NS / MOST_ROWS).ceil().max(1.0);
    let count = (span / step - CRUMB).ceil().max(1.0) as usize;
    // A device does not know streams: what it did for several at once is nobody's alone, and is shown with each.
    let device = case.has_storage().then(|| Course::from_run(ran, &case.tops().ok()?).ok()).flatten();
    let end_of = |i: usize| if i + 1 == count { span } else { step * (i + 1) as f64 };
    let ours = ours(ran, from, count, step);
    let moved = |bytes: f64| if case.stream.moves_no_data() { 0.0 } else { bytes };
    let second = |(i, ours): (usize, Ours)| {
        let (begin, end) = (step * i as f64, end_of(i));
        let seconds = (end - begin) / SECOND_NS;
        let zero = from as f64;
        Second {
            run: ran.run.start.repeat,
            start_s: begin / SECOND_NS,
            seconds,
            iops: ours.ops / seconds,
            mb_per_s: moved(ours.bytes) / seconds / 1e6,
            p99_at_most_ns: ours.p99_ns,
            device: device.as_ref().and_then(|d| d.between(zero + begin, zero + end)).map(|d| DeviceSecond {
                iops: d.ios / d.seconds,
                mb_per_s: d.bytes / d.seconds / 1e6,
                latency_ns: d.latency_ns,
                in_flight: d.in_flight,
            }),
        }
    };
    ours.into_iter().enumerate().map(second).collect()
}

/// What fathom did in a row of the table.
#[derive(Clone, Default)]
struct Ours {
    ops: f64,
    bytes: f64,
    p99_ns: Option<u64>,
}

/// Divides every interval among the rows that it overlaps. What is behind the last row belongs to it.
fn ours(ran: &CaseRun, from: u64, count: usize, step: f64) -> Vec<Ours> {
    let mut out = vec![Ours::default(); count];
    for row in rows_of(ran) {
        let (a, b) = ((row.start_ns - from) as f64, (row.end_ns - from) as f64);
        let (ops, bytes) = moved(row);
        let p99 = row.cells.iter().filter(|(k, _)| **k != Kind::Sync).map(|(_, c)| c.3).max();
        let first = ((a / step) as usize).min(count.saturating_sub(1));
        for (i, ours) in out.iter_mut().enumerate().skip(first) {
            let begin = step * i as f64;
            let end = if i + 1 == count { b } else { begin + step };
            let part = (b.min(end) - a.max(begin)) / (b - a);
            if part <= 0.0 && i > first {
                break;
            }
            ours.ops += part.max(0.0) * ops as f64;
            ours.bytes += part.max(0.0) * bytes as f64;
            ours.p99_ns = ours.p99_ns.max(p99);
        }
    }
    out
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn each_second_has_ours_and_the_devices() {
    let mut record = Fixture { runs: 2, ..Fixture::honest() }.record();
    let case = &crate::case::cases(&record)[0];
    let rows = per_second(case);
    assert!(rows.iter().all(|r| (r.seconds - 1.0).abs() < 1e-9));
    assert_eq!(rows.len(), 2, "two runs of a second");
    assert!((rows[0].iops - 10_000.0).abs() < 1.0 && (rows[0].mb_per_s - 40.96).abs() < 0.01);
    let device = rows[1].device.unwrap();
    assert!(device.iops > 9_500.0 && device.iops < 11_500.0 && device.latency_ns.is_some(), "{device:?}");
    assert!(rows[1].p99_at_most_ns.is_some_and(|ns| ns > 3_000_000));
    for row in record.runs.iter_mut().flat_map(|r| &mut r.intervals) {
        (row.start_ns, row.end_ns) = (row.start_ns * 25, row.end_ns * 25);
    }
    let rows = per_second(&crate::case::cases(&record)[0]);
    assert_eq!(rows.len(), 50);
    assert!(rows[30].device.is_none(), "the device was not looked at so late");
}

#[test]
fn a_run_of_days_has_few_rows_and_no_course_has_none() {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    for row in record.runs.iter_mut().flat_map(|r| &mut r.intervals) {
        (row.start_ns, row.end_ns) = (row.start_ns * 500_000, row.end_ns * 500_000);
    }
    let rows = per_second(&crate::case::cases(&record)[0]);
    assert!(rows.len() <= 3600 && rows[0].seconds > 100.0, "{}", rows.len());
    record.runs[0].intervals.clear();
    assert!(per_second(&crate::case::cases(&record)[0]).is_empty());
}
