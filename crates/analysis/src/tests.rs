//! Tests of the judge on records with missing and impossible parts: it is total and deterministic, and every number of
//! its report fits into JSON.

use crate::fixture::Fixture;
use crate::{Judging, checks, exit_code, judge};
use model::evidence::Snapshot;
use model::finding::CheckId;
use model::machine::Place;
use model::record::Record;
use model::report::{Report, Verdict};

/// A way to lose or forge a piece of a record.
type Damage = fn(&mut Record);

fn ends(r: &mut Record) -> impl Iterator<Item = &mut model::record::RunEnd> {
    r.runs.iter_mut().filter_map(|r| r.end.as_mut())
}

fn streams(r: &mut Record) -> impl Iterator<Item = &mut model::record::StreamEnd> {
    ends(r).flat_map(|e| &mut e.streams)
}

fn snapshots(r: &mut Record) -> impl Iterator<Item = &mut Snapshot> {
    r.runs.iter_mut().flat_map(|r| &mut r.evidence)
}

fn intervals(r: &mut Record) -> impl Iterator<Item = &mut model::record::Interval> {
    r.runs.iter_mut().flat_map(|r| &mut r.intervals)
}

fn places(r: &mut Record) -> impl Iterator<Item = &mut Place> {
    r.header.hosts.iter_mut().flat_map(|h| &mut h.places)
}

const DAMAGES: &[Damage] = &[
    |_| {},
    |r| r.runs.clear(),
    |r| r.end = None,
    |r| r.runs.iter_mut().for_each(|r| r.end = None),
    |r| r.runs.iter_mut().for_each(|r| r.evidence.clear()),
    |r| r.runs.iter_mut().for_each(|r| r.evidence.truncate(1)),
    |r| r.header.hosts.clear(),
    |r| r.header.hosts.iter_mut().for_each(|h| h.places.clear()),
    |r| r.header.plan.jobs.clear(),
    |r| r.header.plan.targets.clear(),
    |r| r.header.plan.headline = 99,
    |r| {
        use model::profile::{CellSource, LayoutKind, LayoutRow, ToolLayout};
        let at = |job, phase| Some(CellSource { job, phase });
        let row = |name: &str, latency| LayoutRow {
            name: name.into(),
            latency,
            read: at(0, 0),
            write: at(usize::MAX, usize::MAX),
        };
        let rows = vec![row("Seq", false), row("4K", true), row("4K-64Thrd", false), row("4K", false)];
        let layout = ToolLayout { tool: String::new(), kind: LayoutKind::Score, rows, differs: Vec::new() };
        r.header.plan.study = layout.into();
    },
    |r| r.header.plan.jobs.iter_mut().for_each(|j| j.phases.clear()),
    |r| r.header.plan.jobs.iter_mut().flat_map(|j| &mut j.phases).for_each(|p| p.streams.clear()),
    |r| {
        r.header.plan.jobs.iter_mut().flat_map(|j| &mut j.phases).flat_map(|p| &mut p.streams).for_each(
            |s| {
                s.targets.clear();
                s.depth = 0;
                s.access.span_bytes = 0;
                s.access.lines[0].sizes.read = model::job::Sizes::Fixed(0);
            },
        );
    },
    |r| {
        r.header.plan.jobs.iter_mut().flat_map(|j| &mut j.phases).flat_map(|p| &mut p.streams).for_each(
            |s| {
                (s.depth, s.workers, s.targets) = (u32::MAX, u32::MAX, vec![77]);
            },
        );
    },
    |r| ends(r).for_each(|e| e.streams.clear()),
    |r| ends(r).for_each(|e| e.workers.clear()),
    |r| ends(r).for_each(|e| e.sync_ns = None),
    |r| streams(r).for_each(|s| s.window_ns = 0),
    |r| streams(r).for_each(|s| s.depth_ns = 0),
    |r| streams(r).for_each(|s| s.depth_ns = u64::MAX),
    |r| streams(r).for_each(|s| s.kinds.clear()),
    |r| streams(r).for_each(|s| s.issued.clear()),
    |r| {
        streams(r)
            .flat_map(|s| s.issued.values_mut())
            .for_each(|i| (i.ops, i.bytes, i.short) = (u64::MAX, u64::MAX, u64::MAX));
    },
    |r| {
        streams(r)
            .flat_map(|s| s.issued.values_mut())
            .for_each(|i| i.errors = [(5, u64::MAX), (-3, u64::MAX)].into());
    },
    |r| {
        streams(r)
            .flat_map(|s| s.kinds.values_mut())
            .for_each(|k| (k.bytes, k.latency) = (u64::MAX, model::histogram::Histogram::new()));
    },
    |r| {
        let huge = r#"{"count":18446744073709551615,"sum_ns":9,"min_ns":1,"max_ns":1,"power":7,"buckets":[1,18446744073709551615]}"#;
        streams(r)
            .flat_map(|s| s.kinds.values_mut())
            .for_each(|k| k.latency = serde_json::from_str(huge).unwrap());
    },
    |r| snapshots(r).for_each(|s| s.targets.clear()),
    |r| snapshots(r).for_each(|s| s.at_ns = 0),
    |r| {
        snapshots(r)
            .flat_map(|s| s.files.values_mut())
            .for_each(|f| *f = Ok("18446744073709551615 ".repeat(17)));
    },
    |r| {
        snapshots(r).flat_map(|s| &mut s.targets).for_each(|t| {
            t.pages = Err("not the owner".into());
            t.extents = None;
        });
    },
    |r| {
        snapshots(r).flat_map(|s| &mut s.targets).for_each(|t| {
            t.pages =
                Ok(model::evidence::Pages { page_bytes: u64::MAX, cached: u64::MAX, dirty: Some(u64::MAX) });
            t.extents = Some(Ok(model::evidence::Extents::default()));
        });
    },
    |r| {
        let absurd = model::evidence::Probe {
            block_bytes: 0,
            zero_blocks: u64::MAX,
            first_ns: vec![0; 9],
            again_ns: vec![u64::MAX; 300],
        };
        r.evidence.iter_mut().flat_map(|s| &mut s.targets).for_each(|t| t.probe = Some(Ok(absurd.clone())));
    },
    |r| places(r).for_each(|p| p.layers.clear()),
    |r| places(r).for_each(|p| p.tops = vec![99]),
    |r| places(r).flat_map(|p| &mut p.layers).for_each(|l| l.below = vec![0, 99]),
    |r| places(r).flat_map(|p| &mut p.layers).for_each(|l| l.kind = model::machine::LayerKind::Partition),
    |r| r.runs.iter_mut().for_each(|r| r.start.repeat = u32::MAX),
    |r| r.header.hosts.iter_mut().for_each(|h| h.cgroup = Err("none".into())),
    |r| intervals(r).for_each(|i| (i.start_ns, i.end_ns) = (u64::MAX - 1, u64::MAX)),
    |r| {
        intervals(r).for_each(|i| {
            i.cells.values_mut().for_each(|c| {
                (c.ops, c.bytes, c.p50_ns, c.p99_ns) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
            });
        });
    },
];

/// Missing or meaningless kernel text.
const SILENT_KERNEL: &[Damage] = &[
    |r| snapshots(r).for_each(|s| s.files.clear()),
    |r| snapshots(r).flat_map(|s| s.files.values_mut()).for_each(|f| *f = Ok(String::new())),
    |r| snapshots(r).flat_map(|s| s.files.values_mut()).for_each(|f| *f = Ok("1 2 x".into())),
    |r| snapshots(r).flat_map(|s| s.files.values_mut()).for_each(|f| *f = Err("gone".into())),
];

fn judged(record: &Record) -> Report {
    judge(record, &Judging { version: "0.0.0".into(), ..Judging::default() })
}

/// Whether the JSON of a report reads back as the same report. A figure that is not finite becomes a null, which differs.
fn has_only_numbers(report: &Report) -> bool {
    let text = serde_json::to_string(report).unwrap();
    let mut altered = report.clone();
    // The contract of the JSON report leaves this field out.
    altered
        .results
        .iter_mut()
        .chain(altered.against.iter_mut().flat_map(|a| &mut a.measured_again.results))
        .for_each(|r| r.observed = None);
    serde_json::from_str::<Report>(&text).is_ok_and(|back| back == altered)
}

/// Tries each damage on each record, and each pair of damages on one of the four records.
#[test]
fn every_incomplete_record_has_a_report_without_nan() {
    check_damaged_records(|base, first, second| first == second || (first + second) % 4 == base);
}

#[test]
#[ignore = "long"]
fn every_record_with_any_two_damages_has_a_report() {
    check_damaged_records(|_, _, _| true);
}

/// Checks the reports of records with pairs of damages. `is_asked` selects them by the index of the record and of the damages.
fn check_damaged_records(is_asked: impl Fn(usize, usize, usize) -> bool) {
    let bases = [
        Fixture { runs: 3, ops: 100, ..Fixture::honest() },
        Fixture { runs: 1, ops: 100, ..Fixture::honest_write() },
        Fixture { runs: 2, ops: 100, cache: model::job::Cache::Buffered, ..Fixture::honest_loop() },
        Fixture { runs: 3, ops: 100, role: model::plan::Role::None, engine: "null", ..Fixture::honest() },
    ];
    for (b, base) in bases.iter().enumerate() {
        let damages: Vec<&Damage> = DAMAGES.iter().chain(SILENT_KERNEL).collect();
        for (i, first) in damages.iter().enumerate() {
            for (j, second) in damages.iter().enumerate().skip(i).filter(|(j, _)| is_asked(b, i, *j)) {
                let mut record = base.record();
                first(&mut record);
                second(&mut record);
                let report = judged(&record);
                assert!(has_only_numbers(&report), "base {b}, damages {i} and {j}");
                assert!(!report.verdict_reason.is_empty());
                if report.headline.value.is_none() {
                    assert_eq!((report.verdict, exit_code(&report)), (Verdict::Invalid, 1), "{i} {j}");
                }
                // Single damages are enough for this check. Judging pairs again would take twice the time.
                if i == j {
                    assert_eq!(report, judged(&record), "the judge is deterministic");
                }
            }
        }
    }
}

/// A function that searches all runs for each run takes quadratic time: minutes for this record.
#[test]
#[ignore = "long"]
fn ten_thousand_runs_are_judged_in_seconds() {
    let record = Fixture { runs: 10_000, ops: 100, ..Fixture::honest() }.record();
    let start = std::time::Instant::now();
    assert_eq!(judged(&record).results[0].runs.len(), 10_000);
    let seconds = start.elapsed().as_secs_f64();
    println!("10,000 runs were judged in {seconds:.2} s");
    assert!(seconds < 10.0, "{seconds}");
}

#[test]
fn a_run_of_centuries_has_a_report_of_bounded_size() {
    let mut record = Fixture { runs: 1, ops: 100, ..Fixture::honest() }.record();
    intervals(&mut record).for_each(|i| (i.start_ns, i.end_ns) = (0, u64::MAX));
    let report = judged(&record);
    assert!(has_only_numbers(&report) && report.results[0].series.len() <= 3600);
}

#[test]
fn forged_kernel_text_cannot_make_a_valid_verdict() {
    for (i, damage) in SILENT_KERNEL.iter().enumerate() {
        let mut record = Fixture::honest().record();
        damage(&mut record);
        assert_eq!(judged(&record).verdict, Verdict::Suspect, "damage {i}");
    }
}

#[test]
fn checks_that_need_counters_never_hold_without_them() {
    for fixture in [Fixture::honest(), Fixture::honest_write(), Fixture::honest_loop()] {
        let report = judged(&Fixture { stat_unreadable: true, ..fixture }.record());
        for id in
            [CheckId::A01, CheckId::A02, CheckId::A09, CheckId::A12, CheckId::A13, CheckId::B05, CheckId::D01]
        {
            let holds =
                report.checks.iter().any(|f| f.id == id && f.outcome == model::finding::Outcome::Holds);
            assert!(!holds, "{id} holds without counters");
        }
    }
}

#[test]
fn each_check_that_fires_reaches_the_report_under_its_id() {
    for check in checks::all() {
        let Some(fires) = check.fires else { continue };
        let report = judged(&fires());
        assert!(report.checks.iter().any(|f| f.id == check.id && f.severity.is_some()), "{}", check.id);
        assert_ne!(report.headline.name, "nothing");
    }
}

#[test]
fn preconditioning_comes_once_before_the_first_run_and_names_jobs_of_the_plan() {
    use model::record::{Disorder, Frame, Preconditioned, Rounds};
    let record = Fixture::honest_write().record();
    let header = || Frame::Header(Box::new(record.header.clone()));
    let done = |job| {
        let rounds = vec![Rounds { job, iops: vec![1.0] }];
        Frame::Preconditioned(Preconditioned { rounds, ..Preconditioned::default() })
    };
    let read = |frames: Vec<Frame>| Record::from_frames(frames);
    let start = || Frame::RunStart(record.runs[0].start.clone());
    let end = || Frame::RunEnd(Box::new(record.runs[0].end.clone().unwrap()));
    let complete = read(vec![header(), done(0), start(), end()]).unwrap();
    assert!(complete.preconditioned.is_some() && judged(&complete).preconditioned == complete.preconditioned);
    for wrong in [
        vec![header(), done(0), done(0)],
        vec![header(), start(), done(0)],
        vec![header(), start(), end(), done(0)],
    ] {
        assert!(matches!(read(wrong), Err(Disorder::Misplaced(_, "preconditioning"))));
    }
    assert_eq!(read(vec![header(), done(1)]), Err(Disorder::Dangling(1, "job", 1)));
}
