//! The course of a case as finely as it was kept, and its latencies in buckets.
//!
//! For: what a report shows and draws. Not for: the table second by second ([`crate::per_second`]), nor conclusions.

use crate::case::Case;
use crate::figures::is_late;
use crate::run_series::rows_of;
use model::job::Kind;
use model::observed::Observed;
use model::record::{Cell, Interval, KindEnd};
use model::report::{self, CourseOf, LatencyBuckets, RunFigures};
use std::collections::BTreeMap;

/// Most stretches of a result: what a page draws, and a report of a thousand runs stays a report.
const MOST: usize = 3000;
/// Most runs whose tails are told one by one: more are not told apart in a drawing.
const MOST_TAILS: usize = 40;
/// Entries of a tail to a power of ten.
const STEPS_A_DECADE: f64 = 10.0;

/// The course of all complete runs; `None` where it was not kept.
pub(crate) fn course(case: &Case) -> Option<report::Course> {
    let rows: usize = case.runs.iter().map(|ran| rows_of(ran).count()).sum();
    let joined = rows.div_ceil(MOST).max(1);
    let mut out = report::Course { joined: joined as u32, ..report::Course::default() };
    for kind in case.runs.iter().flat_map(|ran| ran.stream.kinds.keys()) {
        out.directions.entry(kind.word().into()).or_default();
    }
    for ran in &case.runs {
        let mut rows: Vec<&Interval> = rows_of(ran).collect();
        rows.sort_by_key(|row| row.start_ns);
        let from = rows.first().map_or(0, |row| row.start_ns);
        for part in rows.chunks(joined) {
            add(&mut out, ran.run.start.repeat, from, part);
        }
    }
    (!out.run.is_empty()).then_some(out)
}

/// Adds neighbouring stretches as one.
fn add(out: &mut report::Course, run: u32, from: u64, part: &[&Interval]) {
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return };
    let ns: f64 = part.iter().map(|row| (row.end_ns - row.start_ns) as f64).sum();
    let depth: f64 = part.iter().map(|row| row.depth_ns as f64).sum();
    let span_ns = last.end_ns.saturating_sub(first.start_ns).max(1) as f64;
    out.run.push(run);
    out.start_s.push(rounded((first.start_ns - from) as f64 / 1e9, 1e4));
    out.seconds.push(rounded(span_ns / 1e9, 1e4));
    out.depth_mean.push(rounded(depth / ns.max(1.0), 1e2));
    for (word, of) in &mut out.directions {
        let of_kind =
            |row: &&Interval| row.cells.iter().find(|(kind, _)| kind.word() == word).map(|(_, cell)| *cell);
        add_direction(of, span_ns / 1e9, &part.iter().filter_map(of_kind).collect::<Vec<Cell>>());
    }
}

fn add_direction(out: &mut CourseOf, seconds: f64, cells: &[Cell]) {
    let ops: f64 = cells.iter().map(|cell| cell.0 as f64).sum();
    let bytes: f64 = cells.iter().map(|cell| cell.1 as f64).sum();
    let medians: f64 = cells.iter().map(|cell| cell.0 as f64 * cell.2 as f64).sum();
    out.iops.push(rounded(ops / seconds, 10.0));
    out.mb_per_s.push(rounded(bytes / seconds / 1e6, 1e2));
    let some = |ns: Option<u64>| ns.filter(|_| ops > 0.0);
    out.p50_ns.push(some(Some((medians / ops.max(1.0)).round() as u64)));
    out.p99_ns.push(some(cells.iter().map(|cell| cell.3).max()));
    out.max_ns.push(some(cells.iter().map(|cell| cell.4).max()));
}

/// Digits beyond these are only bytes of a report.
fn rounded(value: f64, scale: f64) -> f64 {
    (value * scale).round() / scale
}

/// Latencies of all complete runs, by direction.
pub(crate) fn latencies(seen: Option<&Observed>) -> BTreeMap<String, LatencyBuckets> {
    let kinds = seen.into_iter().filter(|seen| !seen.is_cut).flat_map(|seen| &seen.kinds);
    kinds.map(|(kind, of): (&Kind, _)| (kind.word().into(), LatencyBuckets::from(&of.latency))).collect()
}

/// Gives each run its tails, where they are not too many.
pub(crate) fn add_tails(case: &Case, runs: &mut [RunFigures]) {
    if runs.len() > MOST_TAILS {
        return;
    }
    for run in runs {
        let Some(ran) = case.runs.iter().find(|ran| ran.run.start.repeat == run.run) else { continue };
        let kinds = ran.stream.kinds.iter().filter(|(_, end)| end.latency.count() > 0);
        run.tails_ns = kinds.map(|(kind, end)| (kind.word().into(), tail(end))).collect();
    }
}

/// What one operation in 10^(k/10) took longer than. Where ten operations lie beyond one they do beyond all before it.
fn tail(end: &KindEnd) -> Vec<Option<u64>> {
    let quantile = |k: u32| 1.0 - 10_f64.powf(-f64::from(k) / STEPS_A_DECADE);
    let told = (1..).map(|k| (quantile(k), end.latency.supported_quantile_ns(quantile(k))));
    let late = |q: f64, ns: u64| end.open.as_ref().is_some_and(|open| is_late(ns, &open.lateness, q));
    told.map_while(|(q, ns)| Some((q, ns?))).map(|(q, ns)| (!late(q, ns)).then_some(ns)).collect()
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn every_operation_is_in_the_course_and_in_the_buckets() {
    let record = Fixture { runs: 2, ..Fixture::honest() }.record();
    let case = &crate::case::cases(&record)[0];
    let course = course(case).unwrap();
    let reads = &course.directions["read"];
    let ops: f64 = reads.iops.iter().zip(&course.seconds).map(|(iops, s)| iops * s).sum();
    assert!((ops - 20_000.0).abs() < 20.0, "{ops}");
    assert_eq!((course.joined, course.run.first(), course.run.last()), (1, Some(&0), Some(&1)));
    assert!(reads.p50_ns.iter().zip(&reads.max_ns).all(|(p50, max)| p50 <= max && p50.is_some()));
    assert!(course.depth_mean.iter().all(|depth| (depth - 31.5).abs() < 2.0), "{:?}", course.depth_mean);
    let latencies = latencies(Some(&crate::observed::observed(case)));
    assert_eq!(latencies["read"].count(), 20_000);
}

#[test]
fn what_was_not_kept_has_no_course_and_too_many_stretches_are_joined() {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    let rows = record.runs[0].intervals.clone();
    let span = rows.iter().map(|r| r.end_ns).max().unwrap();
    record.runs[0].intervals = (0..800_u64)
        .flat_map(|i| {
            rows.iter().cloned().map(move |r| Interval {
                start_ns: r.start_ns + i * span,
                end_ns: r.end_ns + i * span,
                ..r
            })
        })
        .collect();
    let many = course(&crate::case::cases(&record)[0]).unwrap();
    assert!(many.run.len() <= MOST && many.joined > 1, "{} of {}", many.run.len(), many.joined);
    record.runs[0].intervals.clear();
    assert_eq!(course(&crate::case::cases(&record)[0]), None);
}

#[test]
fn a_tail_ends_where_ten_operations_lie_beyond_and_few_runs_have_one() {
    let record = Fixture { runs: 3, ..Fixture::honest() }.record();
    let case = &crate::case::cases(&record)[0];
    let mut runs = crate::figures::figures(case).runs;
    add_tails(case, &mut runs);
    let tail = &runs[1].tails_ns["read"];
    // 10,000 operations: one in a thousand has ten beyond it.
    assert_eq!(tail.len(), 30, "{tail:?}");
    assert_eq!(tail[19], runs[1].percentiles_ns["read"]["99"], "one in a hundred");
    assert!(tail.is_sorted());
    let mut many = vec![runs[0].clone(); MOST_TAILS + 1];
    many.iter_mut().for_each(|run| run.tails_ns.clear());
    add_tails(case, &mut many);
    assert!(many.iter().all(|run| run.tails_ns.is_empty()));
}
