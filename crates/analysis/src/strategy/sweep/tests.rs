//! Tests of the search: surfaces whose best cell is known, and noise drawn by seed.

use super::*;
use model::sweep::{Baseline, Cell, Setting, TOLERANCE};
use std::collections::BTreeMap;

/// Time of a run of an exhaustive search, including preparation and pauses.
const EXHAUSTIVE_RUN_NS: u64 = 1_120_000_000;
/// Time of a run of an adaptive search, including preparation and pauses.
const ADAPTIVE_RUN_NS: u64 = 320_000_000;
/// Number of times that an exhaustive search measures each cell.
const RUNS: u32 = 3;

fn setting(block_kib: u32, depth: u32, rw: &str) -> Setting {
    Setting::plain(rw, block_kib << 10, depth)
}

/// The true rate of a setting.
type Truth = fn(&Setting) -> f64;

/// The block sizes and depths of CCSIO Benchmark, for some works. Leaves out settings above the benchmark's limit for buffers.
fn grid(works: &[&str], search: Search) -> Grid {
    let mut cells = Vec::new();
    for work in works {
        for block_kib in (3..15).map(|i| 1_u32 << i) {
            for depth in [1, 2, 4, 8, 16] {
                if block_kib * depth <= 64 << 10 {
                    cells.push(Cell { setting: setting(block_kib, depth, work), job: cells.len() });
                }
            }
        }
    }
    Grid {
        preset: None,
        cells,
        skipped: Vec::new(),
        baselines: Vec::new(),
        search,
        tolerance: TOLERANCE,
        measures: BTreeMap::new(),
    }
}

/// The default budget for this number of cells, each of which takes [`ADAPTIVE_RUN_NS`].
fn budget(cells: usize) -> Search {
    Search::Adaptive { budget_ns: (4 * (cells + 20) as u64 * ADAPTIVE_RUN_NS).min(110_000_000_000) }
}

/// One cell for each depth, all with the same size.
fn row(cells: u32) -> Grid {
    let cells = (0..cells).map(|at| Cell { setting: setting(4, at + 1, "read"), job: at as usize });
    Grid { cells: cells.collect(), ..grid(&[], Search::Exhaustive) }
}

/// A device that is full at a few MiB in flight, and a little slower when it is flooded.
fn plateau(setting: &Setting) -> f64 {
    let flying = setting.memory_bytes() as f64;
    let depth = f64::from(setting.depth);
    let full = flying / (flying + 700e3);
    let flooded = 1.0 - 0.04 * (flying / 32e6).min(1.0);
    3e9 * full * flooded * (1.0 - 0.1 / depth)
}

/// A device that is fastest with one setting, and slower the further a setting is from that one.
fn peak(setting: &Setting) -> f64 {
    let away = |value: u32, best: f64| (f64::from(value).log2() - best).abs();
    1e9 * (-0.12 * away(setting.block_bytes, 19.0) - 0.09 * away(setting.depth, 3.0)).exp()
}

/// One cell is a little more than the tolerance faster than all others, which is the hardest case for the bound.
fn slippage(setting: &Setting) -> f64 {
    1e9 * if setting.depth == 1 { 1.0 + TOLERANCE + 0.001 } else { 1.0 }
}

/// All cells are equally fast.
fn level(_: &Setting) -> f64 {
    1e9
}

/// Noise that is added to the true rates: a spread of logarithms, and states of the device.
#[derive(Clone, Copy, Default)]
struct Noise {
    spread: f64,
    /// Share of the runs in which a stall takes four fifths of the time.
    stalls: f64,
    /// Share of the runs that are a sixth slower.
    slow: f64,
    /// Change over a minute, as a logarithm.
    drift: f64,
    /// Mean seconds between slow periods of three seconds, in which a quarter of the rate is lost; 0 for none.
    bursts_s: f64,
    /// Mean seconds that the device remains in each of two states, which differ by a sixth; 0 for one state.
    states_s: f64,
}

const QUIET: Noise = Noise { spread: 0.01, stalls: 0.0, slow: 0.0, drift: 0.0, bursts_s: 0.0, states_s: 0.0 };

/// Noises that disks have.
const NOISES: [(&str, Noise); 9] = [
    ("1 %", QUIET),
    ("3 %", Noise { spread: 0.03, ..QUIET }),
    ("6 %", Noise { spread: 0.06, ..QUIET }),
    ("3 %, 2 % stalls", Noise { spread: 0.03, stalls: 0.02, ..QUIET }),
    ("2 %, 20 % slower in a minute", Noise { spread: 0.02, drift: -0.2, ..QUIET }),
    ("2 %, 20 % faster in a minute", Noise { spread: 0.02, drift: 0.2, ..QUIET }),
    ("2 %, bursts", Noise { spread: 0.02, bursts_s: 30.0, ..QUIET }),
    ("1 %, two modes", Noise { slow: 0.3, ..QUIET }),
    ("1.5 %, two states", Noise { spread: 0.015, states_s: 8.0, ..QUIET }),
];

/// A device whose rate changes over time.
struct Device {
    draws: Draws,
    noise: Noise,
    /// When the next burst begins, in seconds.
    burst_s: f64,
    /// When the state changes next, in seconds.
    change_s: f64,
    is_slow: bool,
}

impl Device {
    fn new(noise: Noise, seed: u64) -> Self {
        let mut draws = Draws(split_mix(seed));
        let (burst_s, change_s) = (draws.wait(noise.bursts_s), draws.wait(noise.states_s));
        Self { draws, noise, burst_s, change_s, is_slow: false }
    }

    /// Draws the amount that is added to the logarithm of a rate at some time.
    fn draw_log(&mut self, seconds: f64) -> f64 {
        while seconds > self.burst_s + 3.0 {
            self.burst_s += 3.0 + self.draws.wait(self.noise.bursts_s);
        }
        while seconds > self.change_s {
            self.change_s += self.draws.wait(self.noise.states_s);
            self.is_slow = !self.is_slow;
        }
        let mut log = self.noise.spread * self.draws.normal() + self.noise.drift * seconds / 60.0;
        log -= if self.draws.uniform() < self.noise.stalls { 1.6 } else { 0.0 };
        log -= if self.draws.uniform() < self.noise.slow { 0.15 } else { 0.0 };
        log -= if seconds > self.burst_s { 0.25 } else { 0.0 };
        log - if self.is_slow { 0.15 } else { 0.0 }
    }
}

/// A run of a job with this rate; without a rate, the run failed.
fn sample(job: usize, bytes_per_s: Option<f64>, took_ns: u64) -> CellRun {
    CellRun { job, bytes_per_s, took_ns, ..CellRun::default() }
}

/// Numbers between 0 and 1, drawn by seed.
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 = split_mix(self.0);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Seconds until the next of events that happen every `mean` seconds on average; infinite if `mean` is 0.
    fn wait(&mut self, mean: f64) -> f64 {
        if mean > 0.0 { -mean * (1.0 - self.uniform()).ln() } else { f64::INFINITY }
    }

    /// Draws a normal value (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Plays a search to its end; returns its samples.
fn play(grid: &Grid, truth: Truth, noise: Noise, seed: u64) -> Vec<CellRun> {
    let mut device = Device::new(noise, seed);
    let mut samples = Vec::new();
    let mut search = BestCellSearch::new(grid, RUNS, seed);
    while let Some(job) = search.next() {
        let rate = truth(grid.setting(job).unwrap()) * device.draw_log(search.spent_ns() as f64 / 1e9).exp();
        let took_ns = if grid.search == Search::Exhaustive { EXHAUSTIVE_RUN_NS } else { ADAPTIVE_RUN_NS };
        let sample = CellRun {
            job,
            bytes_per_s: Some(rate),
            cpu_ns_per_byte: Some(0.1),
            took_ns,
            ..CellRun::default()
        };
        search.add(&sample);
        samples.push(sample);
        assert!(samples.len() < 20_000, "it does not end");
    }
    samples
}

/// Shares of the searches of one surface.
#[derive(Clone, Copy, Default)]
struct Shares {
    /// The best cell is faster than the winner by more than the bound.
    wrong: f64,
    /// The winner is further from the best cell than the tolerance.
    far: f64,
    /// No cell may be faster by more than the tolerance.
    decided: f64,
    /// The target is reported to have become slower.
    fallen: f64,
    /// Mean bound, as a share.
    bound: f64,
    /// The longest time of a search, divided by its budget.
    longest: f64,
}

/// Plays searches of a grid with one work.
fn play_all(grid: &Grid, truth: Truth, noise: Noise, seeds: u64) -> Shares {
    let log = |job: usize| truth(grid.setting(job).unwrap()).ln();
    let best = grid.jobs().into_iter().map(log).fold(f64::NEG_INFINITY, f64::max);
    let mut shares = Shares::default();
    for seed in 0..seeds {
        let samples = play(grid, truth, noise, seed);
        let search = BestCellSearch::after(grid, RUNS, seed, &samples);
        let race = &search.races[0];
        let rivals = race.rivals().unwrap();
        let lost = best - log(race.winner().unwrap().job);
        let each = 1.0 / seeds as f64;
        let decided = rivals.above_tolerance == 0;
        let bound = if decided { race.tolerance } else { rivals.bound };
        let add = |to: &mut f64, is: bool| *to += if is { each } else { 0.0 };
        if race.slowdown().is_none() {
            add(&mut shares.wrong, lost > bound);
            add(&mut shares.decided, decided);
        }
        add(&mut shares.far, lost > race.tolerance + 1e-9);
        add(&mut shares.fallen, race.slowdown().is_some());
        shares.bound += each * bound.min(1.0);
        if let Search::Adaptive { budget_ns } = grid.search {
            shares.longest = shares.longest.max(search.spent_ns() as f64 / budget_ns as f64);
        }
    }
    shares
}

#[test]
fn progress_counts_cells_and_passes() {
    let stages = |search: Search| {
        let grid = Grid { search, ..row(3) };
        let mut search = BestCellSearch::new(&grid, 2, 1);
        let mut stages = Vec::new();
        while let Some(job) = search.next().filter(|_| stages.len() < 7) {
            stages.push(search.describe_progress());
            search.add(&CellRun {
                job,
                bytes_per_s: Some(1.0),
                took_ns: EXHAUSTIVE_RUN_NS,
                ..CellRun::default()
            });
        }
        stages
    };
    let passes = [1, 2].map(|pass| [1, 2, 3].map(|cell| format!("pass {pass} of 2, cell {cell} of 3")));
    assert_eq!(stages(Search::Exhaustive)[..6], passes.concat());
    let adaptive = stages(budget(3));
    assert_eq!(adaptive[..4], ["cell 1 of 3", "cell 2 of 3", "cell 3 of 3", "3 of 3 cells may be the best"]);
}

/// Checks that bounds hold in 95 % of the searches of each surface with each noise. Where the time is enough, the winner is within the
/// tolerance of the best cell in 95 %.
fn check_bounds(seeds: u64, names: &[&str]) {
    let whole = || grid(&["read"], Search::Exhaustive);
    let surfaces: [(&str, Grid, Truth, bool); 7] = [
        ("plateau", whole(), plateau, true),
        ("peak", whole(), peak, true),
        ("2 cells", row(2), slippage, true),
        ("5 cells", row(5), slippage, true),
        ("20 cells", row(20), slippage, false),
        ("55 cells", row(55), slippage, false),
        ("20 equals", row(20), level, true),
    ];
    let allowed = 0.05 + 2.0 * (0.05 * 0.95 / seeds as f64).sqrt();
    for (name, mut grid, truth, finds) in surfaces {
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        grid.search = budget(grid.cells.len());
        for (noise_name, noise) in NOISES {
            let Shares { wrong, far, decided, fallen, bound, longest } = play_all(&grid, truth, noise, seeds);
            let [wrong_p, far_p, decided_p, fallen_p, bound_p] =
                [wrong, far, decided, fallen, bound].map(|share| 100.0 * share);
            println!(
                "{name:10} {noise_name:30} wrong {wrong_p:4.1} %, far {far_p:4.1} %, decided {decided_p:5.1} %, \
                 fallen {fallen_p:4.1} %, bound {bound_p:4.1} %, {longest:.2} of the time"
            );
            assert!(wrong <= allowed, "{name}, {noise_name}: wrong in {wrong}");
            assert!(far <= allowed || !finds, "{name}, {noise_name}: far in {far}");
            // A run that begins before the time is up is measured to its end, and the winner has five more.
            assert!(longest <= 1.1, "{name}, {noise_name}: {longest} of the time");
        }
    }
}

#[test]
fn bounds_hold_in_95_percent_of_the_searches() {
    check_bounds(8, &["peak", "2 cells", "5 cells"]);
}

#[test]
#[ignore = "long"]
fn bounds_hold_in_95_percent_of_200_searches() {
    check_bounds(200, &[]);
}

#[test]
fn the_recommended_budget_is_likely_to_reach_the_tolerance() {
    let (mut open, mut reached) = (0, 0);
    for seed in 0..12 {
        let mut grid = row(12);
        grid.search = Search::Adaptive { budget_ns: 25_000_000_000 };
        let noise = Noise { spread: 0.06, ..QUIET };
        let samples = play(&grid, level, noise, seed);
        let search = BestCellSearch::after(&grid, RUNS, seed, &samples);
        let Some(budget_ns) = search.sufficient_budget_ns().filter(|ns| *ns > 25_000_000_000) else {
            continue;
        };
        grid.search = Search::Adaptive { budget_ns };
        let samples = play(&grid, level, noise, seed);
        open += 1;
        let search = BestCellSearch::after(&grid, RUNS, seed, &samples);
        reached += u32::from(search.races[0].rivals().is_some_and(|r| r.above_tolerance == 0));
        println!(
            "{:.0} s: {:?}",
            budget_ns as f64 / 1e9,
            search.races[0].rivals().map(|r| (r.above_tolerance, r.bound))
        );
    }
    assert!(open >= 8 && reached * 3 >= open * 2, "{reached} of {open}");
}

#[test]
fn a_stall_rules_no_cell_out() {
    let mut grid = grid(&["read"], Search::Exhaustive);
    grid.search = budget(grid.cells.len());
    let best = grid.cells.iter().max_by(|a, b| peak(&a.setting).total_cmp(&peak(&b.setting))).unwrap().job;
    for stalled in [0, 1] {
        let (mut search, mut draws) = (BestCellSearch::new(&grid, RUNS, 3), Draws(3));
        while let Some(job) = search.next() {
            let is_stalled = job == best && search.count_runs_of(job) == stalled;
            let log = 0.01 * draws.normal() - if is_stalled { 1.6 } else { 0.0 };
            let rate = peak(grid.setting(job).unwrap()) * log.exp();
            search.add(&sample(job, Some(rate), ADAPTIVE_RUN_NS));
        }
        let race = &search.races[0];
        assert_eq!(race.winner().map(|w| w.job), Some(best), "stalled in run {stalled}: {:?}", race.rivals());
        assert_eq!(race.rivals().map(|r| r.above_tolerance), Some(0), "stalled in run {stalled}");
    }
}

#[test]
fn a_disturbed_run_is_measured_again_after_its_pass_or_at_once() {
    let mut grid = grid(&["read"], Search::Exhaustive);
    grid.search = budget(grid.cells.len());
    let samples = play(&grid, plateau, Noise { spread: 0.03, ..QUIET }, 5);
    let cells = grid.cells.len();
    let may =
        |runs: usize, repeat: u32| BestCellSearch::after(&grid, RUNS, 5, &samples[..runs]).may_repeat(repeat);
    assert!(!may(cells / 2, 0), "other cells were not measured at all yet");
    // The reference cell was measured more often.
    let pass = (cells..2 * cells)
        .find(|runs| BestCellSearch::after(&grid, RUNS, 5, &samples[..*runs]).missing_runs() == 0);
    let pass = pass.unwrap();
    assert!(may(pass, 0) && may(pass + 1, 4), "each cell was measured");
}

#[test]
fn a_search_that_an_earlier_version_ended_has_a_winner() {
    let mut grid = grid(&["read"], Search::Exhaustive);
    grid.search = budget(grid.cells.len());
    let samples = play(&grid, plateau, Noise { spread: 0.03, ..QUIET }, 5);
    let mut search = BestCellSearch::after(&grid, RUNS, 5, &samples[..grid.cells.len() * 3 / 2]);
    assert!(search.races[0].winner().is_none());
    search.decide_open_races();
    assert!(search.races[0].winner().is_some());
}

#[test]
fn a_quiet_device_is_decided_early() {
    let mut grid = grid(&["read"], Search::Exhaustive);
    grid.search = budget(grid.cells.len());
    let samples = play(&grid, peak, Noise { spread: 0.002, ..QUIET }, 7);
    let search = BestCellSearch::after(&grid, RUNS, 7, &samples);
    let rivals = search.races[0].rivals().unwrap();
    assert_eq!(rivals.above_tolerance, 0, "surely nothing is 5 % faster: {rivals:?}");
    assert_eq!(
        search.races[0].winner().and_then(|w| grid.setting(w.job)).map(Setting::load),
        Some("8 x 512K".into())
    );
    let Search::Adaptive { budget_ns } = grid.search else { panic!("it is adaptive") };
    assert!(search.spent_ns() < budget_ns * 7 / 10, "{} of {budget_ns}", search.spent_ns());
}

/// Plays an exhaustive search without noise. `rate` gets the job, and whether the race is decided.
fn play_race(grid: &Grid, rate: fn(usize, bool) -> f64) -> BestCellSearch<'_> {
    let mut search = BestCellSearch::new(grid, RUNS, 1);
    while let Some(job) = search.next() {
        let rate = rate(job, search.races[0].decision.is_some());
        search.add(&sample(job, Some(rate), EXHAUSTIVE_RUN_NS));
        assert!(search.races[0].count_runs() < 1_000, "it does not end");
    }
    search
}

#[test]
fn cheaper_cells_are_confirmed_one_after_another_until_one_is_as_fast() {
    let grid = row(6);
    // The four cheapest cells were fast by luck.
    let search = play_race(&grid, |job, is_decided| match job {
        0..=3 if is_decided => 0.9e9,
        5 if !is_decided => 1.01e9,
        _ => 1e9,
    });
    let race = &search.races[0];
    let job = |cell: Option<&RacingCell>| cell.map(|cell| cell.job);
    assert_eq!((job(race.winner()), job(race.cheapest_equal())), (Some(5), Some(4)));
    assert!(race.cells[..5].iter().all(RacingCell::has_fresh_runs));
    assert!(race.passed_over().is_none(), "all cheaper cells are more than the tolerance slower");
}

#[test]
fn a_cheaper_cell_within_the_tolerance_that_was_not_confirmed_is_passed_over() {
    let grid = row(3);
    // The winner was lucky, so the first cell seemed to be slower by more than the tolerance.
    let search = play_race(&grid, |job, is_decided| match job {
        0 => 1e9,
        1 => 0.5e9,
        _ if is_decided => 1.02e9,
        _ => 1.06e9,
    });
    let race = &search.races[0];
    assert_eq!(race.cheapest_equal().map(|cell| cell.job), Some(2));
    let (cell, lead) = race.passed_over().unwrap();
    assert_eq!((cell.job, cell.has_fresh_runs(), cell.figure_scores().len()), (0, false, RUNS as usize));
    assert!((lead + 1.02_f64.ln()).abs() < 1e-9, "{lead}");
    // A cell that is clearly slower is not passed over.
    let search = play_race(&grid, |job, _| if job == 2 { 1e9 } else { 0.5e9 });
    assert!(search.races[0].passed_over().is_none());
}

#[test]
fn every_cell_is_seen_and_the_winner_has_fresh_runs() {
    let mut grid = grid(&["read", "write"], Search::Exhaustive);
    grid.search = budget(grid.cells.len());
    let jobs = grid.cells.len();
    let cp = Baseline { name: "cp".into(), setting: setting(128, 1, "read"), job: jobs };
    grid.baselines.push(cp);
    let samples = play(&grid, plateau, Noise { spread: 0.03, ..QUIET }, 3);
    let search = BestCellSearch::after(&grid, RUNS, 3, &samples);
    assert!((0..jobs).all(|job| search.count_runs_of(job) > 0));
    for race in &search.races {
        let (winner, cheapest) = (race.winner().unwrap(), race.cheapest_equal().unwrap());
        assert!(
            winner.fresh_scores.len() >= FRESH_RUNS && cheapest.fresh_scores.len() >= FRESH_RUNS,
            "{race:#?}"
        );
        assert!(cheapest.memory_bytes <= winner.memory_bytes);
    }
    assert_eq!(search.races[0].baselines[0].fresh_scores.len(), FRESH_RUNS);
    assert!(search.races[1].baselines.is_empty());
    let references: Vec<usize> = search.races.iter().filter_map(|r| search.reference_of(r)).collect();
    assert_eq!(references.len(), 2, "each work has its own");
    let watched = samples.iter().filter(|s| references.contains(&s.job)).count();
    assert!(watched >= samples.len() / REFERENCE_EVERY, "{watched} of {}", samples.len());
}

#[test]
fn with_one_run_each_any_cell_may_win_and_the_noise_is_that_of_the_reference() {
    let grid = grid(&["read", "write"], Search::Exhaustive);
    let best = grid.cells.iter().map(|c| peak(&c.setting)).fold(0.0, f64::max);
    for seed in 0..50 {
        let mut random = Draws(split_mix(seed));
        let mut search = BestCellSearch::new(&grid, 1, seed);
        while let Some(job) = search.next() {
            let rate = peak(grid.setting(job).unwrap()) * (0.02 * random.normal()).exp();
            search.add(&sample(job, Some(rate), EXHAUSTIVE_RUN_NS));
        }
        for race in &search.races {
            assert!(race.knows_its_noise(), "{seed}: {}", race.work);
            let (winner, rivals) = (race.winner().unwrap(), race.rivals().unwrap());
            assert_ne!(
                Some(winner.job),
                search.reference_of(race),
                "{seed}: the reference is far from the peak"
            );
            let rate = |cell: &RacingCell| peak(grid.setting(cell.job).unwrap());
            let known = |at: &usize| rate(&race.cells[*at]) >= best;
            assert!(
                rate(winner) >= best || rivals.within_noise.iter().any(known),
                "{seed}: the best is not named"
            );
            assert!(rivals.within_noise.len() < race.cells.len() / 3, "{seed}: {rivals:?}");
            assert_eq!(race.slowdown(), None, "{seed}: luck is no change of the target");
        }
    }
}

#[test]
fn an_exhaustive_search_measures_all_equally_often() {
    let grid = grid(&["read"], Search::Exhaustive);
    let samples = play(&grid, peak, Noise { spread: 0.03, ..QUIET }, 1);
    let search = BestCellSearch::after(&grid, RUNS, 1, &samples);
    let reference = search.reference();
    for cell in search.races[0].cells.iter().filter(|l| Some(l.job) != reference) {
        assert_eq!(cell.race_scores.len(), RUNS as usize);
    }
    let first: Vec<usize> = samples.iter().take(20).map(|s| s.job).collect();
    assert!(!first.is_sorted(), "the order is random: {first:?}");
}

#[test]
fn replaying_a_part_continues_identically() {
    let mut grid = grid(&["read", "write"], Search::Exhaustive);
    grid.search = budget(grid.cells.len());
    let samples = play(&grid, plateau, Noise { spread: 0.05, stalls: 0.01, ..QUIET }, 11);
    for cut in (0..samples.len()).step_by(7) {
        let search = BestCellSearch::after(&grid, RUNS, 11, &samples[..cut]);
        assert_eq!(search.next(), Some(samples[cut].job), "after {cut} runs");
    }
    assert_eq!(BestCellSearch::after(&grid, RUNS, 11, &samples).next(), None);
}

#[test]
fn failed_cells_are_out_and_without_cells_there_is_no_winner() {
    let mut grid = grid(&["read"], Search::Exhaustive);
    grid.search = budget(grid.cells.len());
    let mut search = BestCellSearch::new(&grid, RUNS, 5);
    let mut runs = 0;
    while let Some(job) = search.next() {
        let broken = grid.setting(job).is_some_and(|s| s.depth != 1);
        let rate = (!broken).then(|| plateau(grid.setting(job).unwrap()));
        search.add(&sample(job, rate, ADAPTIVE_RUN_NS));
        runs += 1;
        assert!(runs < 2_000);
    }
    let winner = search.races[0].winner().and_then(|w| grid.setting(w.job)).unwrap();
    assert_eq!(winner.depth, 1);

    let mut search = BestCellSearch::new(&grid, RUNS, 5);
    while let Some(job) = search.next() {
        search.add(&sample(job, None, ADAPTIVE_RUN_NS));
    }
    assert!(search.races[0].decision.is_some() && search.races[0].winner().is_none());
}

#[test]
fn no_forged_sample_stops_the_search() {
    let empty = Grid { cells: Vec::new(), ..grid(&[], Search::Exhaustive) };
    assert_eq!(BestCellSearch::new(&empty, 0, 0).next(), None);
    let mut search = BestCellSearch::new(&empty, 3, 0);
    search.add(&sample(usize::MAX, None, ADAPTIVE_RUN_NS));
    let one = grid(&["read"], Search::Adaptive { budget_ns: 0 });
    let mut search = BestCellSearch::new(&one, 3, 0);
    for rate in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        let job = search.next().unwrap();
        search.add(&CellRun {
            job,
            bytes_per_s: Some(rate),
            bytes_per_operation: Some(f64::NAN),
            cpu_ns_per_byte: Some(f64::NAN),
            took_ns: u64::MAX,
            ..CellRun::default()
        });
    }
    assert!(search.next().is_some());
}

#[cfg(test)]
mod in_order {
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

    fn sample(job: usize, bytes_per_s: Option<f64>) -> CellRun {
        CellRun { job, bytes_per_s, took_ns: 2, written_bytes: 1_000, ..CellRun::default() }
    }

    /// Plays a sweep to its end; `rate` gets the job and the round.
    fn play(grid: &Grid, until: Until, rate: impl Fn(usize, usize) -> Option<f64>) -> OrderedSweep<'_> {
        let mut done = Vec::new();
        loop {
            let mut sweep = OrderedSweep::after(grid, until, &done);
            let Some(job) = sweep.next() else { return sweep };
            let next = sample(job, rate(job, sweep.count_runs_of(job)));
            sweep.add(&next);
            done.push(next);
            assert_eq!(sweep.next(), OrderedSweep::after(grid, until, &done).next(), "replayed");
        }
    }

    fn rounds(tracked: usize, bytes: Option<u64>) -> Until {
        Until::Rounds { tracked, variable: Variable::Iops, bytes, rounds_at_most: 25 }
    }

    #[test]
    fn one_round_measures_all_cells_in_order() {
        let grid = grid(&[512, 1024, 2048], 32, Until::Slow);
        let sweep = play(&grid, Until::Slow, |_, _| Some(1e9));
        assert_eq!(sweep.runs.iter().map(|s| s.job).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(sweep.skipped_cells().is_empty() && sweep.window().is_none());
    }

    #[test]
    fn a_cell_with_too_few_operations_per_second_is_the_last() {
        // Thirty-two threads: eight operations a second are too few, nine are not.
        let grid32 = grid(&[1 << 20, 2 << 20, 4 << 20, 8 << 20], 32, Until::Slow);
        let at = |iops: f64, block: usize| Some(iops * f64::from(1 << (20 + block)));
        let sweep = play(&grid32, Until::Slow, |job, _| at(if job == 1 { 8.0 } else { 9.0 }, job));
        assert_eq!(sweep.skipped_cells(), [2, 3].map(|job| (job, SlowCell { job: 1, iops: 8.0 })));
        let sweep = play(&grid32, Until::Slow, |job, _| at(8.1, job));
        assert!(sweep.skipped_cells().is_empty());
        // One thread: one operation a second.
        let alone = grid(&[1 << 20, 2 << 20, 4 << 20, 8 << 20], 1, Until::Slow);
        let sweep = play(&alone, Until::Slow, |job, _| at(if job == 2 { 1.0 } else { 2.0 }, job));
        assert_eq!(sweep.skipped_cells(), [(3, SlowCell { job: 2, iops: 1.0 })]);
        // Smaller blocks than those of a slow cell are measured, in any order.
        let descending = grid(&[8 << 20, 1 << 20, 4 << 20], 1, Until::Slow);
        let slow_first = play(&descending, Until::Slow, |job, _| Some(if job == 0 { 8e6 } else { 9e9 }));
        assert_eq!((slow_first.runs.len(), slow_first.skipped_cells().len()), (3, 0));
        // A failed cell shows nothing about larger ones.
        let sweep = play(&grid32, Until::Slow, |job, _| if job == 1 { None } else { at(9.0, job) });
        assert_eq!((sweep.runs.len(), sweep.skipped_cells().len()), (4, 0));
    }

    #[test]
    fn each_number_of_threads_ends_on_its_own() {
        let cells = |workers: u32, from: usize| {
            let cells = grid(&[1 << 20, 2 << 20, 4 << 20], workers, Until::Slow).cells;
            cells.into_iter().map(move |c| Cell { job: c.job + from, ..c })
        };
        let both = Grid { cells: cells(32, 0).chain(cells(4, 3)).collect(), ..grid(&[], 1, Until::Slow) };
        let at = |iops: f64, block: usize| Some(iops * f64::from(1 << (20 + block)));
        // Eight operations a second are too few for 32 threads and enough for four.
        let sweep = play(&both, Until::Slow, |job, _| at(if job == 0 { 8.0 } else { 2.0 }, job % 3));
        assert_eq!(sweep.runs.iter().map(|s| s.job).collect::<Vec<_>>(), [0, 3, 4, 5]);
        assert_eq!(sweep.skipped_cells(), [1, 2].map(|job| (job, SlowCell { job: 0, iops: 8.0 })));
        assert_eq!(sweep.left_ns(5), 0);
    }

    #[test]
    fn rounds_end_when_the_tracked_cell_is_steady() {
        let grid = grid(&[1024, 4096], 2, rounds(1, None));
        // The rate halves from round to round, down to 100 in round 4, and stays there.
        let rate = |job: usize, round: usize| {
            let iops = if job == 1 { 100.0 * 2_f64.powi(3 - round.min(3) as i32) } else { 7.0 };
            Some(iops * if job == 1 { 4096.0 } else { 1024.0 })
        };
        let sweep = play(&grid, rounds(1, None), rate);
        assert_eq!((sweep.rounds(), sweep.window()), (8, Some([4, 8])));
        assert!(sweep.snia().is_some_and(|r| r.met && r.rounds == 8));
        assert_eq!(sweep.window_mean(), Some(100.0));
        assert_eq!((sweep.window_runs(0).count(), sweep.count_runs_of(0)), (5, 8));
        assert!(
            sweep.window_runs(1).all(|s| s.bytes_per_s == Some(409_600.0)),
            "what came before the window counts nowhere"
        );
    }

    #[test]
    fn rounds_that_never_settle_end_at_the_most() {
        let grid = grid(&[4096], 2, rounds(0, None));
        let sweep =
            play(&grid, rounds(0, None), |_, round| Some(4096.0 * if round % 2 == 0 { 50.0 } else { 100.0 }));
        assert_eq!((sweep.rounds(), sweep.window()), (25, Some([21, 25])));
        assert!(sweep.snia().is_some_and(|r| !r.met));
        // A round without the value has no answer, and no window over it is steady.
        let holes = play(&grid, rounds(0, None), |_, round| (round % 3 > 0).then_some(4096.0));
        assert_eq!((holes.rounds(), holes.snia(), holes.window_mean()), (25, None, None));
    }

    #[test]
    fn written_bytes_end_rounds_before_the_rule() {
        let until = rounds(0, Some(7_000));
        let grid = grid(&[4096], 2, until);
        let sweep = play(&grid, until, |_, _| Some(4096.0));
        assert_eq!((sweep.rounds(), sweep.written_bytes()), (7, 7_000));
        assert!(sweep.snia().is_some_and(|r| r.met), "steady long before the last round");
    }

    #[test]
    fn forged_grids_are_over_and_do_not_panic() {
        let none = grid(&[], 32, Until::Slow);
        assert_eq!(OrderedSweep::after(&none, Until::Slow, &[sample(3, Some(1.0))]).next(), None);
        let until =
            Until::Rounds { tracked: 9, variable: Variable::LatencyMeanNs, bytes: None, rounds_at_most: 2 };
        let one = grid(&[512], 32, until);
        let mut sweep = OrderedSweep::after(&one, until, &[]);
        for job in [0, 5] {
            sweep.add(&sample(job, Some(f64::NAN)));
        }
        assert_eq!((sweep.next(), sweep.tracked_values(), sweep.left_ns(1)), (None, vec![None, None], 0));
        assert!(sweep.describe_progress().contains("round 3"));
    }
}
