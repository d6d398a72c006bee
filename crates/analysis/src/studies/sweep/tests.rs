//! Tests of the report of a sweep: forged records whose cells have known rates.

use super::*;
use crate::fixture::{Fixture, together};
use crate::{Judging, exit_code, judge};
use model::finding::{CheckId, Outcome};
use model::report::{Report, Verdict};
use model::study::{Studied, Study};
use model::sweep::{Baseline, Cell, Skipped};

fn setting(depth: u32, rw: &str) -> Setting {
    Setting::plain(rw, 4096, depth)
}

/// Cells of random reads by depth and operations in a second, and what `cp` does: three rounds, and five more when the race
/// is over.
fn record(cells: &[(u32, u64)]) -> Record {
    let fixture = |(depth, ops): &(u32, u64)| {
        let setting = setting(*depth, "randread");
        let depth_seen = f64::from(*depth) * 0.98;
        Fixture {
            name: setting.describe(),
            depth: *depth,
            ops: *ops,
            depth_seen,
            runs: 8,
            ..Fixture::honest()
        }
    };
    let mut fixtures: Vec<Fixture> = cells.iter().map(fixture).collect();
    fixtures.push(Fixture {
        name: "cp".into(),
        depth: 1,
        ops: 5_000,
        depth_seen: 0.98,
        runs: 8,
        ..Fixture::honest()
    });
    let mut record = together(&fixtures);
    record.runs.sort_by_key(|r| r.start.repeat);
    let cell = |(job, (depth, _)): (usize, &(u32, u64))| Cell { setting: setting(*depth, "randread"), job };
    let cp = Baseline { name: "cp".into(), setting: setting(1, "randread"), job: cells.len() };
    let too_much = Skipped { setting: setting(4096, "randread"), why: "its buffers take too much".into() };
    record.header.plan.runs = 3;
    record.header.plan.study = Study::Sweep(Grid {
        preset: None,
        cells: cells.iter().enumerate().map(cell).collect(),
        skipped: vec![too_much],
        baselines: vec![cp],
        search: How::Exhaustive,
        tolerance: 0.03,
        measures: BTreeMap::new(),
    });
    record
}

fn judged(record: &Record) -> (Report, Sweep) {
    let report = judge(record, &Judging::default());
    let Studied::Sweep(sweep) = &report.study else { panic!("no sweep: {:?}", report.study) };
    let sweep = (**sweep).clone();
    (report, sweep)
}

fn grid(record: &mut Record) -> &mut Grid {
    let Study::Sweep(grid) = &mut record.header.plan.study else { panic!("no grid") };
    grid
}

#[test]
fn the_fastest_wins_and_the_cheapest_as_fast_is_named() {
    let record = record(&[(1, 4_000), (8, 9_900), (32, 10_000), (64, 9_950)]);
    let (report, sweep) = judged(&record);
    let (winner, cheapest) = (&sweep.winner["randread"], &sweep.cheapest["randread"]);
    assert_eq!((winner.setting.depth, cheapest.setting.depth), (32, 8), "{:#?}", sweep.works);
    assert_eq!((report.headline.unit.as_str(), report.verdict), ("IOPS", Verdict::Valid));
    // The fixture issues a tenth more than the second of its window.
    assert!((winner.iops.unwrap() / 11_000.0 - 1.0).abs() < 1e-9, "{winner:?}");
    let work = &sweep.works[0];
    let by = work.cheapest_by_winner.unwrap();
    assert!((by.value - 0.99).abs() < 1e-6, "{by:?}");
    assert!((work.baselines[0].by_winner.unwrap().value - 0.5).abs() < 1e-6);
    let knee = work.knees.iter().find(|k| k.axis == "depth").unwrap();
    assert_eq!(knee.value, 8, "{knee:?}");
    assert!(sweep.skipped.len() == 1 && sweep.cells.len() == 4);
    assert_eq!(exit_code(&report), 0);
}

#[test]
fn only_quoted_cells_decide_the_verdict() {
    let mut bad = record(&[(1, 4_000), (32, 10_000)]);
    for run in bad.runs.iter_mut().filter(|r| r.start.job == 0) {
        run.end.as_mut().unwrap().streams[0]
            .issued
            .values_mut()
            .for_each(|i| i.errors = BTreeMap::from([(5, 9)]));
    }
    let (report, _) = judged(&bad);
    let found = report.findings.iter().find(|f| f.id == CheckId::B12 && f.outcome == Outcome::Finding);
    assert_eq!(found.map(|f| f.about.len()), Some(1), "it is there");
    assert_eq!((report.verdict, report.counts.invalid), (Verdict::Valid, 0), "and not about the winner");
}

#[test]
fn a_winner_that_falls_back_leaves_the_work_undecided() {
    let mut slower = record(&[(1, 4_000), (32, 10_000)]);
    for run in slower.runs.iter_mut().filter(|r| r.start.job == 1 && r.start.repeat >= 3) {
        run.end.as_mut().unwrap().streams[0].issued.values_mut().for_each(|i| i.bytes /= 2);
    }
    let (_, sweep) = judged(&slower);
    let work = &sweep.works[0];
    assert!(!work.decided && work.sentence.contains("50 % less afterwards"), "{}", work.sentence);
    let (_, sweep) = judged(&record(&[(1, 4_000), (32, 10_000)]));
    assert!(!sweep.works[0].sentence.contains("less afterwards"), "{}", sweep.works[0].sentence);
}

#[test]
fn a_search_that_was_cut_has_cells_and_no_winner() {
    let mut cut = record(&[(1, 4_000), (8, 9_900), (32, 10_000)]);
    cut.runs.truncate(4);
    cut.end.as_mut().unwrap().ending = RunEnding::Interrupted;
    let (report, sweep) = judged(&cut);
    assert_eq!((report.verdict, report.headline.value), (Verdict::Invalid, None));
    assert!(sweep.winner.is_empty() && sweep.cells.iter().any(|c| c.mib_per_s.is_some()));
    assert!(report.verdict_reason.contains("--resume last"), "{}", report.verdict_reason);
    let empty = Record { runs: Vec::new(), ..cut };
    assert!(judged(&empty).1.cells.iter().all(|c| c.mib_per_s.is_none() && c.runs == 0));
}

#[test]
fn indistinguishable_cells_are_named_and_a_single_cell_does_not_win() {
    let mut near = record(&[(1, 4_000), (8, 9_990), (32, 10_000)]);
    for run in &mut near.runs {
        let vary = |bytes: u64| bytes / 1_000 * [1_002, 998, 1_000][run.start.repeat as usize % 3];
        let streams = &mut run.end.as_mut().unwrap().streams;
        streams[0].issued.values_mut().for_each(|i| i.bytes = vary(i.bytes));
    }
    let work = &judged(&near).1.works[0];
    assert_eq!((work.chosen, work.decided), (Chosen::Fastest, true), "{}", work.sentence);
    assert_eq!(work.rivals.iter().map(|s| s.depth).collect::<Vec<_>>(), [8], "{}", work.sentence);
    assert!(work.sentence.contains("not told apart from it: 8 x 4K"), "{}", work.sentence);

    let (report, sweep) = judged(&record(&[(32, 10_000)]));
    assert_eq!((sweep.works[0].chosen, sweep.winner.len()), (Chosen::NoChoice, 0));
    assert!(report.headline.value.is_some() && report.verdict == Verdict::Valid, "{report:#?}");
}

#[test]
fn too_few_repeats_give_no_winner_but_advice() {
    let mut once = record(&[(1, 4_000), (8, 9_990), (32, 10_000)]);
    once.header.plan.runs = 1;
    // One run of each cell, and killed before the winner was measured again.
    once.runs.retain(|r| r.start.repeat == 0);
    let (_, sweep) = judged(&once);
    let work = &sweep.works[0];
    assert_eq!((work.chosen, work.decided), (Chosen::CannotTell, false), "{}", work.sentence);
    assert!(work.sentence.contains("`--exhaustive --runs 3` settles it"), "{}", work.sentence);
}

#[test]
fn a_forged_grid_has_a_report() {
    let mut odd = record(&[(1, 4_000), (8, 9_900)]);
    let made_up = grid(&mut odd);
    made_up.cells[0].job = usize::MAX;
    made_up.baselines[0].job = 77;
    made_up.cells[1].setting.block_bytes = 0;
    judged(&odd);
    grid(&mut odd).cells.clear();
    assert_eq!(judged(&odd).0.verdict, Verdict::Invalid);
}

#[test]
fn random_costs_nothing_from_some_size_on() {
    let cell = |bs: u32, rw: &str, rate: f64| CellFigures {
        latency_p99_ns: None,
        latency_p99_interval_ns: None,
        latency_interval_ns: None,
        latency_mean_ns: None,
        latency_max_ns: None,
        setting: Setting { block_bytes: bs, ..setting(8, rw) },
        mib_per_s: Some(rate),
        mb_per_s: None,
        iops: None,
        interval: None,
        runs: 1,
        memory_bytes: 0,
        cpu_ns_per_mib: None,
        result: None,
    };
    let (_, mut sweep) = judged(&record(&[(1, 4_000)]));
    let grid = [(4 << 10, 500.0, 100.0), (64 << 10, 900.0, 600.0), (1 << 20, 1_000.0, 990.0)];
    sweep.cells =
        grid.iter().flat_map(|(bs, s, r)| [cell(*bs, "read", *s), cell(*bs, "randread", *r)]).collect();
    let deductions = deduce(&sweep);
    assert!(deductions[0].sentence.contains("as fast as read from 1M on"), "{}", deductions[0].sentence);
    assert!(deductions[0].sentence.contains("at 4K 20 %"), "{}", deductions[0].sentence);
    sweep.cells.retain(|c| c.setting.rw == "read");
    assert!(deduce(&sweep).is_empty());
}
