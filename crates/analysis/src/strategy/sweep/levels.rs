//! Levels of the cells of a race: what each cell gives, how sure that is, and by how much one may be faster than another.
//!
//! The score of a run is the level of its cell, plus the state of the device in that round, plus noise:
//!
//! 1. The state of a round is the median of what its runs differ from the levels of their cells. So a drift or a slow minute,
//!    which all cells of a round share, changes no comparison.
//! 2. The level of a cell is the mean of its runs without these states. From five runs on a fifth is left out at either end, so
//!    that a single stall changes no level. Both steps are repeated until they agree.
//! 3. The noise is what nine of ten pairs of successive runs of a cell stay below. Single stalls do not change it, and two modes do.
//!    Cells with many runs have the noise of such cells, since others may be noisier. A cell that varies more has its own noise.
//! 4. Student's factor for the chance of an error, divided by the number of cells that could win wrongly, makes bounds of it.

use stats::sample;
use stats::sample::median;

/// Chance that a statement about a race is wrong.
const ERROR: f64 = 0.05;
/// Cells by which the chance for each is divided in addition: a race is checked after each round, not only at its end.
const CHECKS: f64 = 4.0;
/// Part of the runs of a cell, as a divisor, that is left out at either end.
const TRIMMED: usize = 5;
/// Share of the pairs of successive runs that differ by no more than the noise explains, and the normal quantile of that share.
const SHARE_OF_PAIRS: (f64, f64) = (0.9, 1.645);
/// Degrees of freedom that such a share of pairs has for each pair.
const DEGREES_PER_PAIR: f64 = 0.6;
/// Rounds that may be passes through all cells.
const PASSES: usize = 2;
/// Runs of a cell that are many, and pairs of such cells with which their noise is known.
const MANY: (usize, usize) = (8, 30);
/// Runs for which the noise of all cells counts in the noise of one cell.
const RUNS_OF_OTHERS: f64 = 2.0;
/// Growth of a variance by what is left out at both ends, of normal noise.
const TRIMMED_VARIANCE: f64 = 1.1;
/// Times that both steps of the fit are repeated.
const STEPS: usize = 5;

/// A run of a cell: the round and the score.
pub(super) type Scored = (usize, f64);

/// The level of a cell.
#[derive(Clone, Copy, Debug)]
struct Level {
    value: f64,
    /// Variance of one of its runs.
    variance: f64,
    runs: f64,
}

/// The levels of all cells of a race.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    /// `None` for a cell without a run.
    cells: Vec<Option<Level>>,
    /// Standard deviation of a run: of the cells with many runs, else of all; `None` if no cell was measured twice.
    pub(super) deviation: Option<f64>,
    /// Pairs of successive runs of a cell.
    pub(super) pairs: usize,
    /// Student's factor for one side.
    factor: f64,
}

impl Levels {
    /// The levels of cells by their runs. Differences of successive runs that were made elsewhere add to the noise.
    pub(super) fn fit(cells: &[Vec<Scored>], elsewhere: &[f64]) -> Self {
        let rounds = cells.iter().flatten().map(|(round, _)| round + 1).max().unwrap_or(0);
        let mut members = vec![0.0_f64; rounds];
        for (round, _) in cells.iter().flatten() {
            members[*round] += 1.0;
        }
        let mut levels: Vec<f64> = cells.iter().map(|runs| median(&scores(runs))).collect();
        let mut states = vec![0.0; rounds];
        for _ in 0..STEPS {
            let mut left = vec![Vec::new(); rounds];
            for (runs, level) in cells.iter().zip(&levels) {
                for (round, score) in runs {
                    left[*round].push(score - level);
                }
            }
            states = left.iter().map(|left| median(left)).collect();
            levels = cells.iter().map(|runs| centre(&without(runs, &states))).collect();
        }
        // A state that few runs make follows their noise, and hides a part of it.
        let hidden = |members: f64| members / (members - 1.0).max(0.5);
        let (mut pairs, mut pairs_of_many) = (elsewhere.to_vec(), Vec::new());
        for runs in cells {
            let scores = without(runs, &states);
            let differ = scores.windows(2).zip(runs.windows(2)).map(|(scores, runs)| {
                let fewest = members[runs[0].0].min(members[runs[1].0]);
                (scores[1] - scores[0]).abs() * hidden(fewest).sqrt()
            });
            let differ: Vec<f64> = differ.collect();
            pairs.extend(&differ);
            // The states of the passes through all cells follow the noisier ones.
            let later = differ.iter().zip(runs).filter(|(_, run)| run.0 >= PASSES && runs.len() >= MANY.0);
            pairs_of_many.extend(later.map(|(differ, _)| differ));
        }
        let of_all = deviation(&mut pairs);
        let of_many = deviation(&mut pairs_of_many).filter(|_| pairs_of_many.len() >= MANY.1).or(of_all);
        let variance = |deviation: Option<f64>| deviation.map_or(f64::INFINITY, |d| d * d);
        let level = |(runs, value): (&Vec<Scored>, &f64)| {
            let fewest = runs.iter().map(|(round, _)| members[*round]).fold(f64::INFINITY, f64::min);
            let own = trimmed_variance(&without(runs, &states)) * hidden(fewest);
            let count = runs.len() as f64;
            let common = variance(if runs.len() < MANY.0 { of_all } else { of_many });
            let common = if runs.len() < TRIMMED { common } else { TRIMMED_VARIANCE * common };
            let mixed = (RUNS_OF_OTHERS * common + (count - 1.0) * own) / (RUNS_OF_OTHERS + count - 1.0);
            (count > 0.0).then(|| Level { value: *value, variance: common.max(mixed), runs: count })
        };
        let found: Vec<Option<Level>> = cells.iter().zip(&levels).map(level).collect();
        let chance = ERROR / (found.iter().flatten().count() as f64 + CHECKS);
        let degrees = (DEGREES_PER_PAIR * pairs.len() as f64).max(1.0);
        let factor = sample::quantile(1.0 - chance, degrees).unwrap_or(f64::INFINITY);
        Self { cells: found, deviation: of_many, pairs: pairs.len(), factor }
    }

    /// The level of a cell, a logarithm; `None` without a run.
    pub(super) fn value(&self, at: usize) -> Option<f64> {
        Some(self.cells.get(at).copied()??.value)
    }

    /// By how much one cell is faster than another at most, as a logarithm: infinite if nothing is known of one of them. What
    /// both were measured by in the same rounds counts.
    pub(super) fn at_most(&self, at: usize, than: usize) -> f64 {
        self.shift(at, than).map_or(f64::INFINITY, |(shift, error)| shift + self.margin(error))
    }

    /// The difference of two levels and its standard error.
    fn shift(&self, at: usize, than: usize) -> Option<(f64, f64)> {
        let (a, b) = (self.cells.get(at).copied()??, self.cells.get(than).copied()??);
        Some((a.value - b.value, ((a.variance + b.variance) / a.runs.min(b.runs)).sqrt()))
    }

    fn margin(&self, error: f64) -> f64 {
        if error > 0.0 { self.factor * error } else { 0.0 }
    }

    /// By how much the mean of some runs may differ from the level of a cell by chance, as a logarithm.
    pub(super) fn luck(&self, at: usize, runs: usize) -> f64 {
        let level = self.cells.get(at).copied().flatten();
        level.map_or(f64::INFINITY, |l| {
            self.margin((l.variance * (1.0 / l.runs + 1.0 / runs.max(1) as f64)).sqrt())
        })
    }

    /// More runs of both cells with which the bound would be within the tolerance, if the noise remains; `None` if no number of runs
    /// does that. A cell that looks slower counts as equally fast, because luck makes a winner look faster than it is.
    pub(super) fn more_runs(&self, at: usize, than: usize, tolerance: f64) -> Option<f64> {
        let (shift, error) = self.shift(at, than)?;
        let runs = self.cells[at]?.runs.min(self.cells[than]?.runs);
        let room = tolerance - shift.max(0.0);
        let times = (self.margin(error) / room).powi(2);
        (room > 0.0 && times.is_finite()).then(|| (runs * (times - 1.0)).max(0.0))
    }
}

/// The mean of some scores; from five on without a fifth at either end. Lower than anything without a score.
pub(super) fn centre(scores: &[f64]) -> f64 {
    if scores.is_empty() {
        return f64::NEG_INFINITY;
    }
    let (sorted, out) = trimmed(scores);
    let core = &sorted[out..sorted.len() - out];
    core.iter().sum::<f64>() / core.len() as f64
}

/// The variance of one score as far as it makes the variance of [`centre`]: that of the scores with those at the ends moved
/// inward (Tukey and McLaughlin 1963). 0 with fewer than two.
fn trimmed_variance(scores: &[f64]) -> f64 {
    let (sorted, out) = trimmed(scores);
    let Some(last) = sorted.len().checked_sub(1 + out).filter(|last| *last > out) else { return 0.0 };
    let moved: Vec<f64> = sorted.iter().map(|s| s.clamp(sorted[out], sorted[last])).collect();
    let mean = moved.iter().sum::<f64>() / moved.len() as f64;
    let squares: f64 = moved.iter().map(|s| (s - mean).powi(2)).sum();
    let core = (last - out + 1) as f64;
    squares * moved.len() as f64 / (core * (core - 1.0))
}

/// The scores in order, and how many are left out at either end.
fn trimmed(scores: &[f64]) -> (Vec<f64>, usize) {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let out = sorted.len() / TRIMMED;
    (sorted, out)
}

/// The standard deviation that explains the differences of pairs; `None` without one.
fn deviation(pairs: &mut [f64]) -> Option<f64> {
    pairs.sort_by(f64::total_cmp);
    let (share, quantile) = SHARE_OF_PAIRS;
    let rank = (share * pairs.len() as f64).ceil() as usize;
    let below = pairs.get(rank.checked_sub(1)?)?;
    Some(below / quantile / std::f64::consts::SQRT_2)
}

fn scores(runs: &[Scored]) -> Vec<f64> {
    runs.iter().map(|(_, score)| *score).collect()
}

fn without(runs: &[Scored], states: &[f64]) -> Vec<f64> {
    runs.iter().map(|(round, score)| score - states[*round]).collect()
}

#[test]
fn a_slow_round_and_a_stall_change_no_level() {
    let quiet = |cell: f64| {
        (0..6).map(|round| (round, cell + 0.01 * f64::from(round as u32 % 2))).collect::<Vec<_>>()
    };
    let mut cells: Vec<Vec<Scored>> = [1.0, 2.0, 2.5, 2.6].map(quiet).to_vec();
    let difference = |cells: &[Vec<Scored>]| {
        let levels = Levels::fit(cells, &[]);
        levels.value(3).unwrap() - levels.value(2).unwrap()
    };
    assert!((difference(&cells) - 0.1).abs() < 1e-9);
    for runs in &mut cells {
        runs[4].1 -= 1.0;
    }
    assert!((difference(&cells) - 0.1).abs() < 1e-9, "all cells of a round share its state");
    cells[3][2].1 -= 1.6;
    assert!((difference(&cells) - 0.1).abs() < 0.01, "{}", difference(&cells));
}

#[test]
fn cells_with_many_runs_have_a_noise_that_noisier_cells_do_not_change() {
    let runs = |cell: usize, noise: f64, count: usize| -> Vec<Scored> {
        (0..count).map(|round| (round, cell as f64 + noise * ((round + cell) % 3) as f64)).collect()
    };
    let noisy = (0..40).map(|cell| runs(cell, 0.3, 2));
    let often = (40..46).map(|cell| runs(cell, 0.01, 9));
    let levels = Levels::fit(&noisy.chain(often).collect::<Vec<_>>(), &[]);
    assert!(levels.deviation.unwrap() < 0.03, "{:?}", levels.deviation);
    let width = |at: usize| levels.at_most(at, at + 1) + levels.at_most(at + 1, at);
    assert!(width(42) < width(10) / 3.0, "{} {}", width(42), width(10));
}

#[test]
fn nothing_is_known_of_cells_without_runs_or_without_repeats() {
    let once = Levels::fit(&[vec![(0, 1.0)], vec![(0, 2.0)], Vec::new()], &[]);
    assert_eq!((once.deviation, once.pairs, once.value(2)), (None, 0, None));
    assert!(
        once.at_most(0, 1).is_infinite() && once.at_most(2, 1).is_infinite() && once.luck(2, 5).is_infinite()
    );
    let elsewhere = Levels::fit(&[vec![(0, 1.0)], vec![(0, 2.0)]], &[0.02; 8]);
    assert!(elsewhere.at_most(0, 1) < 0.0, "{elsewhere:?}");
    assert_eq!(Levels::fit(&[], &[]).pairs, 0);
}

#[test]
fn the_bound_is_that_of_student() {
    let alike =
        |cell: f64| [0.0, 0.02, 0.0, 0.02].into_iter().enumerate().map(|(r, e)| (r, cell + e)).collect();
    let turned =
        |cell: f64| [0.02, 0.0, 0.02, 0.0].into_iter().enumerate().map(|(r, e)| (r, cell + e)).collect();
    let levels = Levels::fit(&[alike(0.0), turned(0.0), alike(1.0), turned(1.0)], &[]);
    // The states of the rounds are equal. Of 12 pairs each differs by 0.02, which two members of four hide a part of.
    let deviation = 0.02 * (4.0_f64 / 3.0).sqrt() / 1.645 / std::f64::consts::SQRT_2;
    assert!((levels.deviation.unwrap() - deviation).abs() < 1e-9, "{levels:?}");
    let factor = sample::quantile(1.0 - 0.05 / 8.0, 0.6 * 12.0).unwrap();
    // Four runs that vary by 0.01 to either side, and those of the other cells for two.
    let own = 4.0 * 0.0001 / 3.0 * 4.0 / 3.0;
    let mixed = (2.0 * deviation * deviation + 3.0 * own) / 5.0;
    let bound = factor * (2.0 * mixed.max(deviation * deviation) / 4.0).sqrt();
    assert!((levels.at_most(0, 1) - bound).abs() < 1e-9, "{} {bound}", levels.at_most(0, 1));
    // The bound falls with the root of the runs.
    let more = levels.more_runs(0, 1, bound / 2.0).unwrap();
    assert!((more - 12.0).abs() < 1e-6, "{more}");
    assert_eq!(levels.more_runs(2, 1, 0.05), None, "a cell that is faster stays faster");
}
