//! Tests of cells in order: what comes next, what ends it, and that a replay continues at the same place.

use crate::strategy::sweep::*;
use model::sweep::{Cell, Search, Setting};

fn grid(sizes: &[u32], workers: u32, until: Until) -> Grid {
    let setting = |block_bytes: u32| Setting {
        workers,
        engine: "sync".into(),
        ..Setting::plain("randread", block_bytes, 1)
    };
    let cells = sizes.iter().enumerate().map(|(job, bs)| Cell { setting: setting(*bs), job }).collect();
    Grid {
        preset: None,
        cells,
        skipped: Vec::new(),
        baselines: Vec::new(),
        search: Search::InOrder(until),
        tolerance: 0.05,
        measures: std::collections::BTreeMap::new(),
    }
}

fn sample(job: usize, bytes_per_s: Option<f64>) -> Sample {
    Sample { job, bytes_per_s, took_ns: 2, written_bytes: 1_000, ..Sample::default() }
}

/// Goes on until it is over; `rate` has the job and the round.
fn play(grid: &Grid, until: Until, rate: impl Fn(usize, usize) -> Option<f64>) -> InOrder<'_> {
    let mut done = Vec::new();
    loop {
        let mut sweep = InOrder::after(grid, until, &done);
        let Some(job) = sweep.next() else { return sweep };
        let next = sample(job, rate(job, sweep.times(job)));
        sweep.take(&next);
        done.push(next);
        assert_eq!(sweep.next(), InOrder::after(grid, until, &done).next(), "replayed");
    }
}

fn rounds(tracked: usize, bytes: Option<u64>) -> Until {
    Until::Rounds { tracked, variable: Variable::Iops, bytes, rounds_at_most: 25 }
}

#[test]
fn one_round_measures_all_cells_in_order() {
    let grid = grid(&[512, 1024, 2048], 32, Until::Slow);
    let sweep = play(&grid, Until::Slow, |_, _| Some(1e9));
    assert_eq!(sweep.samples.iter().map(|s| s.job).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(sweep.left_out().is_empty() && sweep.window().is_none());
}

#[test]
fn a_cell_with_too_few_operations_per_second_is_the_last() {
    // Thirty-two threads: eight operations a second are too few, nine are not.
    let grid32 = grid(&[1 << 20, 2 << 20, 4 << 20, 8 << 20], 32, Until::Slow);
    let at = |iops: f64, block: usize| Some(iops * f64::from(1 << (20 + block)));
    let sweep = play(&grid32, Until::Slow, |job, _| at(if job == 1 { 8.0 } else { 9.0 }, job));
    assert_eq!(sweep.left_out(), [(2, (1, 8.0)), (3, (1, 8.0))]);
    let sweep = play(&grid32, Until::Slow, |job, _| at(8.1, job));
    assert!(sweep.left_out().is_empty());
    // One thread: one operation a second.
    let alone = grid(&[1 << 20, 2 << 20, 4 << 20, 8 << 20], 1, Until::Slow);
    let sweep = play(&alone, Until::Slow, |job, _| at(if job == 2 { 1.0 } else { 2.0 }, job));
    assert_eq!(sweep.left_out(), [(3, (2, 1.0))]);
    // A failed cell shows nothing about larger ones.
    let sweep = play(&grid32, Until::Slow, |job, _| if job == 1 { None } else { at(9.0, job) });
    assert_eq!((sweep.samples.len(), sweep.left_out().len()), (4, 0));
}

#[test]
fn each_number_of_threads_ends_on_its_own() {
    let cells = |workers: u32, from: usize| {
        let of = grid(&[1 << 20, 2 << 20, 4 << 20], workers, Until::Slow).cells;
        of.into_iter().map(move |c| Cell { job: c.job + from, ..c })
    };
    let both = Grid { cells: cells(32, 0).chain(cells(4, 3)).collect(), ..grid(&[], 1, Until::Slow) };
    let at = |iops: f64, block: usize| Some(iops * f64::from(1 << (20 + block)));
    // Of 32 threads eight a second are too few, of four they are not.
    let sweep = play(&both, Until::Slow, |job, _| at(if job == 0 { 8.0 } else { 2.0 }, job % 3));
    assert_eq!(sweep.samples.iter().map(|s| s.job).collect::<Vec<_>>(), [0, 3, 4, 5]);
    assert_eq!(sweep.left_out(), [(1, (0, 8.0)), (2, (0, 8.0))]);
    assert_eq!(sweep.left_ns(5), 0);
}

#[test]
fn rounds_end_when_the_tracked_cell_is_steady() {
    let grid = grid(&[1024, 4096], 2, rounds(1, None));
    // Falls by half a round down to 100, from round 4 on.
    let rate = |job: usize, round: usize| {
        let iops = if job == 1 { 100.0 * 2_f64.powi(3 - round.min(3) as i32) } else { 7.0 };
        Some(iops * if job == 1 { 4096.0 } else { 1024.0 })
    };
    let sweep = play(&grid, rounds(1, None), rate);
    assert_eq!((sweep.rounds(), sweep.window()), (8, Some([4, 8])));
    assert!(sweep.rule().is_some_and(|r| r.met && r.rounds == 8));
    assert_eq!(sweep.window_mean(), Some(100.0));
    assert_eq!((sweep.window_samples(0).count(), sweep.times(0)), (5, 8));
    assert!(
        sweep.window_samples(1).all(|s| s.bytes_per_s == Some(409_600.0)),
        "what came before the window counts nowhere"
    );
}

#[test]
fn rounds_that_never_settle_end_at_the_most() {
    let grid = grid(&[4096], 2, rounds(0, None));
    let sweep =
        play(&grid, rounds(0, None), |_, round| Some(4096.0 * if round % 2 == 0 { 50.0 } else { 100.0 }));
    assert_eq!((sweep.rounds(), sweep.window()), (25, Some([21, 25])));
    assert!(sweep.rule().is_some_and(|r| !r.met));
    // A round without the value has no answer, and no window over it is steady.
    let holes = play(&grid, rounds(0, None), |_, round| (round % 3 > 0).then_some(4096.0));
    assert_eq!((holes.rounds(), holes.rule(), holes.window_mean()), (25, None, None));
}

#[test]
fn written_bytes_end_rounds_before_the_rule() {
    let until = rounds(0, Some(7_000));
    let grid = grid(&[4096], 2, until);
    let sweep = play(&grid, until, |_, _| Some(4096.0));
    assert_eq!((sweep.rounds(), sweep.written_bytes()), (7, 7_000));
    assert!(sweep.rule().is_some_and(|r| r.met), "steady long before, and gone on");
}

#[test]
fn forged_grids_are_over_and_do_not_panic() {
    let none = grid(&[], 32, Until::Slow);
    assert_eq!(InOrder::after(&none, Until::Slow, &[sample(3, Some(1.0))]).next(), None);
    let until =
        Until::Rounds { tracked: 9, variable: Variable::LatencyMeanNs, bytes: None, rounds_at_most: 2 };
    let one = grid(&[512], 32, until);
    let mut sweep = InOrder::after(&one, until, &[]);
    for job in [0, 5] {
        sweep.take(&sample(job, Some(f64::NAN)));
    }
    assert_eq!((sweep.next(), sweep.tracked(), sweep.left_ns(1)), (None, vec![None, None], 0));
    assert!(sweep.stage().contains("round 3"));
}
