//! A race compares the cells of one work with each other.
//!
//! 1. Cells are measured in rounds, each contender once in a round.
//! 2. After a round, [`Levels`] fits a level for each cell (its score without the state of the device in each round), and the noise. Both
//!    give an upper bound on how much faster each cell may be than another.
//! 3. For each cell, take the highest bound of the other cells: by how much one of them may be faster. The winner is the cell for which
//!    this value is lowest.
//! 4. The contenders of the next round are the winner and the cells that may be faster by more than the tolerance.
//!    Without such cells, the race is decided. While too few cells were repeated to know the noise, all cells are contenders.
//! 5. Then the winner, cheaper cells that seem equally fast, and settings of well-known programs get fresh runs for their
//!    figures. The earlier runs cannot be used: a cell wins partly by luck, so the runs that chose it are too fast.

use crate::runs::CellRun;
use model::sweep::Measure;
use stats::sample;
use stats::sample::median;
use std::cmp::Ordering;

/// Minimum number of rounds before an adaptive search decides a race, unless its time is up. A single fast run may be luck.
const FEWEST_ROUNDS: usize = 2;

/// Maximum number of candidates: the cells with the highest levels.
const MAX_CANDIDATES: usize = 20;

/// A cell with as much memory as the winner is cheaper if it uses less than this share of the winner's CPU time.
const CHEAPER_CPU_SHARE: f64 = 0.9;

/// The target counts as slower only if the winner's fresh runs are slower than the winner's slowest run of the race by more than this, as a
/// logarithm.
const MIN_SLOWDOWN: f64 = 0.1;

/// Fresh runs of a winner and of each setting that it is compared with: enough for a useful interval.
pub const FRESH_RUNS: usize = 5;

/// Minimum number of pairs of successive runs of one cell for an estimate of the noise between runs. Five runs of one
/// cell make four pairs.
pub const FEWEST_NOISE_PAIRS: usize = 4;

/// Minimum number of pairs of successive runs of one cell, over all cells, for deciding a race before its time is up.
const PAIRS_TO_DECIDE: usize = 8;

/// A cell of a race with its runs so far.
#[derive(Clone, Debug, Default)]
pub struct RacingCell {
    /// Index of its job.
    pub job: usize,
    /// Bytes of its buffers.
    pub(super) memory_bytes: u64,
    /// The measure that ranks the runs.
    pub measure: Measure,
    /// Scores of its runs while the race was open: logarithms, higher is better.
    pub race_scores: Vec<f64>,
    /// The round of each score in `race_scores`.
    rounds: Vec<usize>,
    /// Scores of its fresh runs: those after the race was decided.
    pub fresh_scores: Vec<f64>,
    /// The runs of `race_scores`.
    race_runs: Vec<CellRun>,
    /// The runs of `fresh_scores`.
    fresh_runs: Vec<CellRun>,
    /// Whether a run of the cell failed, which excludes the cell.
    pub(super) failed: bool,
}

/// The cells of one work.
#[derive(Clone, Debug)]
pub struct Race {
    /// The work of its cells, named by [`Setting::work`](model::sweep::Setting::work).
    pub work: String,
    /// The measure that ranks the cells.
    pub measure: Measure,
    /// Tolerance for how much faster than the winner a cell may be, as a logarithm.
    pub(super) tolerance: f64,
    /// The cells that compete.
    pub cells: Vec<RacingCell>,
    /// Settings of well-known programs, which are measured after the race.
    pub baselines: Vec<RacingCell>,
    /// The current round, counted from 0.
    pub(super) round: usize,
    /// Indices of the cells that the current round measures.
    pub(super) contenders: Vec<usize>,
    /// The decision; `None` while the race is open.
    pub decision: Option<Decision>,
}

/// How a race was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Index of the winning cell; `None` if no cell has a valid run.
    pub winner: Option<usize>,
    /// Cheaper cells that may be as fast, the cheapest first.
    cheaper: Vec<usize>,
}

/// The cells that may be faster than the winner.
#[derive(Clone, Debug, PartialEq)]
pub struct Rivals {
    /// Indices of the cells. The cell that may be fastest comes first.
    pub within_noise: Vec<usize>,
    /// How many of the cells, counted from the first, may be faster by more than the tolerance.
    pub above_tolerance: usize,
    /// Upper bound on how much faster than the winner any cell may be, as a logarithm.
    pub bound: f64,
}

impl RacingCell {
    /// Creates a cell without runs.
    pub(super) fn new(job: usize, memory_bytes: u64, measure: Measure) -> Self {
        Self { job, memory_bytes, measure, ..Self::default() }
    }

    /// Adds a run of a round; a fresh run if `round` is `None`.
    fn add(&mut self, run: &CellRun, round: Option<usize>) {
        let Some(score) = run.score(self.measure) else {
            self.failed = true;
            return;
        };
        if let Some(round) = round {
            self.race_scores.push(score);
            self.race_runs.push(*run);
            self.rounds.push(round);
        } else {
            self.fresh_scores.push(score);
            self.fresh_runs.push(*run);
        }
    }

    /// Counts the runs of the cell; a failed one counts too.
    pub(super) fn count_runs(&self) -> usize {
        self.race_scores.len() + self.fresh_scores.len() + usize::from(self.failed)
    }

    /// Whether the cell has not failed, and has no run in this round yet.
    pub(super) fn is_due(&self, round: usize) -> bool {
        !self.failed && self.rounds.last() != Some(&round)
    }

    /// Returns the runs of the race; empty if the cell failed.
    fn scored_runs(&self) -> Vec<ScoredRun> {
        if self.failed {
            return Vec::new();
        }
        self.rounds
            .iter()
            .zip(&self.race_scores)
            .map(|(round, score)| ScoredRun { round: *round, score: *score })
            .collect()
    }

    /// Returns the scores of the runs that the figures use: the fresh runs if there are enough, because they did not
    /// select the winner.
    pub fn figure_scores(&self) -> &[f64] {
        if self.uses_fresh_runs() { &self.fresh_scores } else { &self.race_scores }
    }

    /// Returns the index of the first run that the figures use, among all runs of the cell.
    pub fn first_figure_run(&self) -> usize {
        if self.uses_fresh_runs() { self.race_scores.len() } else { 0 }
    }

    fn uses_fresh_runs(&self) -> bool {
        self.has_fresh_runs() || self.race_scores.is_empty()
    }

    /// Whether the cell has enough fresh runs for its figures.
    pub fn has_fresh_runs(&self) -> bool {
        self.fresh_scores.len() >= FRESH_RUNS
    }

    /// Whether the cell has enough fresh runs for its figures, and no failed run.
    pub fn has_valid_fresh_runs(&self) -> bool {
        !self.failed && self.has_fresh_runs()
    }

    /// Returns the runs that the cell's figures use.
    pub fn figure_runs(&self) -> &[CellRun] {
        if self.uses_fresh_runs() { &self.fresh_runs } else { &self.race_runs }
    }

    /// Returns the mean bytes of an operation in the runs that the figures use; `None` if unknown. The sizes of an
    /// access specification are random.
    pub fn bytes_per_operation(&self) -> Option<f64> {
        mean_of(self.figure_runs(), |s| s.bytes_per_operation.filter(|b| *b > 0.0))
    }

    /// Returns the mean CPU time per byte of all runs of the cell in ns; `None` without a value.
    pub fn cpu_ns_per_byte(&self) -> Option<f64> {
        mean_of(self.race_runs.iter().chain(&self.fresh_runs), |s| {
            s.cpu_ns_per_byte.filter(|c| c.is_finite())
        })
    }

    fn cpu_or_worst(&self) -> f64 {
        self.cpu_ns_per_byte().unwrap_or(f64::INFINITY)
    }

    /// Whether the cell needs less memory than another one, or the same memory and clearly less CPU time.
    fn costs_less_than(&self, other: &Self) -> bool {
        self.memory_bytes < other.memory_bytes
            || (self.memory_bytes == other.memory_bytes
                && self.cpu_or_worst() < CHEAPER_CPU_SHARE * other.cpu_or_worst())
    }

    /// Compares the costs of two cells: the memory, then the CPU time.
    fn compare_cost(&self, other: &Self) -> Ordering {
        let memory = self.memory_bytes.cmp(&other.memory_bytes);
        memory.then_with(|| self.cpu_or_worst().total_cmp(&other.cpu_or_worst()))
    }

    /// Whether the cell needs no more fresh runs: it has enough, or it failed.
    fn is_complete(&self) -> bool {
        self.failed || self.has_fresh_runs()
    }
}

impl Race {
    /// Creates a race without runs.
    pub(super) fn new(
        work: String,
        measure: Measure,
        share: f64,
        cells: Vec<RacingCell>,
        baselines: Vec<RacingCell>,
    ) -> Self {
        // A better latency has a higher score but a lower value.
        let tolerance = if measure.is_latency() { -(-share).ln_1p() } else { share.ln_1p() };
        let contenders = (0..cells.len()).collect();
        Self { work, measure, tolerance, cells, baselines, round: 0, contenders, decision: None }
    }

    /// Adds a run to its cell. Ignores runs of jobs that have no cell in this race.
    pub(super) fn add(&mut self, run: &CellRun) {
        let round = self.decision.is_none().then_some(self.round);
        let cells = self.cells.iter_mut().chain(&mut self.baselines);
        if let Some(cell) = cells.into_iter().find(|cell| cell.job == run.job) {
            cell.add(run, round);
        }
    }

    pub(super) fn count_runs(&self) -> usize {
        self.cells.iter().map(RacingCell::count_runs).sum()
    }

    /// Returns the cells whose run of the current round is missing.
    pub(super) fn due_cells(&self) -> impl Iterator<Item = &RacingCell> {
        let open = self.decision.is_none().then_some(&self.contenders);
        open.into_iter().flatten().filter_map(|at| self.cells.get(*at)).filter(|cell| cell.is_due(self.round))
    }

    /// Returns the cells without a failed run, each with its index.
    pub(super) fn without_failures(&self) -> impl Iterator<Item = (usize, &RacingCell)> {
        self.cells.iter().enumerate().filter(|(_, cell)| !cell.failed)
    }

    /// Fits a level for each cell, and the noise. If the race has few repeats, the noise is
    /// estimated from its runs and from the fresh runs.
    fn fit_levels(&self) -> Levels {
        let runs: Vec<Vec<ScoredRun>> = self.cells.iter().map(RacingCell::scored_runs).collect();
        let levels = Levels::fit(&runs, &[]);
        if levels.pairs >= PAIRS_TO_DECIDE {
            return levels;
        }
        let fresh = self
            .cells
            .iter()
            .flat_map(|cell| cell.fresh_scores.windows(2))
            .map(|pair| (pair[1] - pair[0]).abs());
        Levels::fit(&runs, &fresh.collect::<Vec<f64>>())
    }

    /// Returns the index of each other cell with the upper bound on how much faster than the winner
    /// the cell may be, as a logarithm. The largest bound comes first.
    fn bounds(&self, levels: &Levels, winner: usize) -> Vec<(usize, f64)> {
        let others =
            self.without_failures().filter(|(at, cell)| *at != winner && !cell.race_scores.is_empty());
        let mut bounds: Vec<(usize, f64)> = others.map(|(at, _)| (at, levels.max_lead(at, winner))).collect();
        bounds.sort_by(|a, b| b.1.total_cmp(&a.1));
        bounds
    }

    /// Returns the index of the best cell: among the cells with the highest levels, the one that
    /// other cells can beat by the least. Without bounds, this is the cell with the highest level.
    /// `None` without a run.
    fn find_best(&self, levels: &Levels) -> Option<usize> {
        let mut order: Vec<(usize, f64)> =
            (0..self.cells.len()).filter_map(|at| Some((at, levels.value(at)?))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        let largest_bound = |at: usize| {
            let others = order.iter().filter(|(other, _)| *other != at);
            others.map(|(other, _)| levels.max_lead(*other, at)).fold(f64::NEG_INFINITY, f64::max)
        };
        let candidates = order.iter().take(MAX_CANDIDATES).map(|(at, _)| (*at, largest_bound(*at)));
        // If bounds are equal, the first cell wins, because it has the higher level.
        candidates.reduce(|best, next| if next.1 < best.1 { next } else { best }).map(|(at, _)| at)
    }

    /// Returns the cells that the next round of an adaptive search measures: the best cell, and the cells that may be
    /// faster by more than the tolerance. All cells while there are fewer than [`PAIRS_TO_DECIDE`] pairs of repeats.
    /// Empty if the race is decided.
    pub(super) fn choose_contenders(&self) -> Vec<usize> {
        let levels = self.fit_levels();
        let Some(best) = self.find_best(&levels) else { return Vec::new() };
        if self.without_failures().nth(1).is_none() {
            return if self.round + 1 < FEWEST_ROUNDS { vec![best] } else { Vec::new() };
        }
        if levels.pairs < PAIRS_TO_DECIDE && self.round > 0 {
            return self.without_failures().map(|(at, _)| at).collect();
        }
        let open = self.bounds(&levels, best).into_iter().filter(|(_, bound)| *bound > self.tolerance);
        let open: Vec<usize> = open.map(|(at, _)| at).collect();
        let is_decided = open.is_empty() && self.round + 1 >= FEWEST_ROUNDS;
        if is_decided { open } else { std::iter::once(best).chain(open).collect() }
    }

    /// Chooses the winner. A cell that was measured once may win too.
    pub(super) fn decide(&self) -> Decision {
        let levels = self.fit_levels();
        let winner = self.find_best(&levels);
        Decision { winner, cheaper: winner.map_or_else(Vec::new, |w| self.find_cheaper(&levels, w)) }
    }

    /// Returns the cells that may be faster than the winner; `None` until it is chosen, or if the noise is unknown.
    pub fn rivals(&self) -> Option<Rivals> {
        let winner = self.decision.as_ref()?.winner?;
        let levels = self.fit_levels();
        levels.deviation?;
        let mut bounds = self.bounds(&levels, winner);
        let bound = bounds.first().map_or(f64::NEG_INFINITY, |(_, bound)| *bound);
        bounds.retain(|(_, bound)| *bound > 0.0);
        let above_tolerance = bounds.iter().take_while(|(_, bound)| *bound > self.tolerance).count();
        Some(Rivals { within_noise: bounds.into_iter().map(|(at, _)| at).collect(), above_tolerance, bound })
    }

    /// Returns the number of further runs that would prove that no cell is faster than the winner by more than the
    /// tolerance, if levels and noise do not change. `None` if no number of runs would prove it.
    pub fn runs_to_prove(&self) -> Option<f64> {
        let winner = self.decision.as_ref()?.winner?;
        let levels = self.fit_levels();
        let open = self.bounds(&levels, winner).into_iter().filter(|(_, bound)| *bound > self.tolerance);
        let runs: Vec<f64> =
            open.map(|(at, _)| levels.runs_to_prove(at, winner, self.tolerance)).collect::<Option<_>>()?;
        Some(runs.iter().sum::<f64>() + runs.iter().fold(0.0, |most: f64, runs| most.max(*runs)))
    }

    /// Whether cells were repeated often enough to know the noise.
    pub fn knows_its_noise(&self) -> bool {
        self.fit_levels().pairs >= FEWEST_NOISE_PAIRS
    }

    /// Turns a difference of scores into a share: how much higher a rate is, or how much lower a latency.
    pub fn share(&self, log: f64) -> f64 {
        if self.measure.is_latency() { -(-log).exp_m1() } else { log.exp_m1() }
    }

    /// Returns the cells that cost less than the winner and seem equally fast, the cheapest first.
    fn find_cheaper(&self, levels: &Levels, winner: usize) -> Vec<usize> {
        let best = &self.cells[winner];
        let near = |at: usize| {
            let slower_by = levels.value(winner).zip(levels.value(at)).map(|(best, own)| best - own);
            slower_by.is_some_and(|slower_by| slower_by <= self.tolerance)
        };
        let mut all: Vec<(usize, &RacingCell)> =
            self.without_failures().filter(|(at, cell)| cell.costs_less_than(best) && near(*at)).collect();
        all.sort_by(|a, b| a.1.compare_cost(b.1));
        all.into_iter().map(|(at, _)| at).collect()
    }

    /// Returns the noise: the standard deviation of the logarithms of runs of one cell. It is
    /// estimated from the cells with many runs if they suffice, otherwise from all cells. `None` if
    /// no cell was repeated.
    pub fn noise(&self) -> Option<f64> {
        self.fit_levels().deviation
    }

    /// Returns the cell that won.
    pub fn winner(&self) -> Option<&RacingCell> {
        self.cells.get(self.decision.as_ref()?.winner?)
    }

    /// Returns by how much the winner's fresh runs are slower than the runs that chose it: the
    /// logarithm of the ratio, which is negative. `None` if the target did not become slower.
    ///
    /// It became slower if chance does not explain the difference, and if the fresh runs are much
    /// slower than even the slowest run that chose the winner.
    pub fn slowdown(&self) -> Option<f64> {
        let at = self.decision.as_ref()?.winner?;
        let winner = self.cells.get(at).filter(|w| w.has_fresh_runs())?;
        let fresh_level = trimmed_mean(&winner.fresh_scores);
        let shift = fresh_level - trimmed_mean(&winner.race_scores);
        let slowest = winner.race_scores.iter().copied().fold(f64::INFINITY, f64::min);
        let by_chance = self.fit_levels().chance_deviation(at, winner.fresh_scores.len());
        (fresh_level < slowest - MIN_SLOWDOWN && shift < -by_chance).then_some(shift)
    }

    /// Returns the cheapest cell whose fresh runs are as fast as those of the winner. This is the winner if no cheaper cell is as fast.
    /// `None` without a winner.
    pub fn cheapest_equal(&self) -> Option<&RacingCell> {
        let winner = self.winner()?;
        let equal =
            self.cells.iter().filter(|cell| cell.costs_less_than(winner) && self.is_as_fast(cell, winner));
        Some(equal.min_by(|a, b| a.compare_cost(b)).unwrap_or(winner))
    }

    /// Whether the fresh runs of a cell are slower than those of the winner by no more than the tolerance. `false` if one of the two cells
    /// has too few fresh runs, or a failed run.
    fn is_as_fast(&self, cell: &RacingCell, winner: &RacingCell) -> bool {
        [cell, winner].iter().all(|one| one.has_valid_fresh_runs())
            && trimmed_mean(&cell.fresh_scores) >= trimmed_mean(&winner.fresh_scores) - self.tolerance
    }

    /// Returns the cell that a reader would expect in place of [`Self::cheapest_equal`], with its lead over the winner as a
    /// logarithm. This is the cell with the best figures among those that cost less than [`Self::cheapest_equal`] and whose
    /// figures are within the tolerance of the winner's. `None` if there is no such cell.
    pub fn passed_over(&self) -> Option<(&RacingCell, f64)> {
        let (winner, named) = (self.winner()?, self.cheapest_equal()?);
        let best = sample::mean(winner.figure_scores());
        let cheaper = self.cells.iter().filter(|cell| !cell.failed && cell.costs_less_than(named));
        let seen = cheaper.filter(|cell| !cell.figure_scores().is_empty());
        let leads = seen.map(|cell| (cell, sample::mean(cell.figure_scores()) - best));
        leads.filter(|(_, lead)| *lead >= -self.tolerance).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the cells that are measured after the race, each with the total number of fresh runs that it needs. After the
    /// time is up, returns only the winner.
    pub(super) fn cells_for_fresh_runs(&self, is_time_up: bool) -> Vec<(&RacingCell, usize)> {
        let Some((decision, winner)) = self.decision.as_ref().zip(self.winner()) else { return Vec::new() };
        if is_time_up {
            return vec![(winner, FRESH_RUNS)];
        }
        let mut out: Vec<(&RacingCell, usize)> =
            self.baselines.iter().map(|cell| (cell, FRESH_RUNS)).collect();
        let cheaper = decision.cheaper.iter().filter_map(|at| self.cells.get(*at)).enumerate();
        // Measure one cheaper cell after another, in turns with fresh runs of the winner.
        let mut sets = 1;
        for (at, cell) in cheaper {
            if !cell.is_complete() {
                out.push((cell, FRESH_RUNS));
            }
            sets = at + 1;
            let is_open = !winner.has_valid_fresh_runs() || !cell.is_complete();
            if is_open || self.is_as_fast(cell, winner) {
                break;
            }
        }
        out.push((winner, FRESH_RUNS * sets));
        out
    }

    /// Counts the fresh runs that are still to come; an estimate while the race is open.
    pub(super) fn remaining_fresh_runs(&self) -> usize {
        if self.decision.is_none() {
            return FRESH_RUNS * (2 + self.baselines.len());
        }
        self.cells_for_fresh_runs(false)
            .iter()
            .map(|(cell, want)| want.saturating_sub(cell.fresh_scores.len()))
            .sum()
    }
}

/// Returns the mean of a value over the runs that have one.
fn mean_of<'s>(
    runs: impl IntoIterator<Item = &'s CellRun>,
    value: impl Fn(&CellRun) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = runs.into_iter().filter_map(value).collect();
    (!values.is_empty()).then(|| sample::mean(&values))
}

/// Allowed chance that any statement about a race is wrong.
const MAX_ERROR: f64 = 0.05;

/// Added to the number of cells: each judgement may err with a probability of [`MAX_ERROR`] divided by the sum, because a race is judged
/// after each round and not only at its end.
const EXTRA_JUDGEMENTS: f64 = 4.0;

/// A trimmed mean leaves out the slowest and the fastest runs of a cell: at either end, the number of runs divided by this.
const TRIM_DIVISOR: usize = 5;

/// The noise is estimated from this quantile of the differences between successive runs.
const SHARE_OF_PAIRS: f64 = 0.9;
/// A normal deviate is within this many standard deviations with the probability [`SHARE_OF_PAIRS`].
const DEVIATIONS_OF_SHARE: f64 = 1.645;

/// Degrees of freedom for each pair: less than 1, because a quantile of the pairs is a less exact estimate of the noise than
/// their variance.
const DEGREES_PER_PAIR: f64 = 0.6;

/// Maximum number of rounds of an adaptive search that are passes through all cells.
const PASSES: usize = 2;

/// Minimum number of runs for a cell to count as one with many runs.
const MANY_RUNS: usize = 8;
/// Minimum number of pairs of successive runs after the passes, counted over all cells with
/// [`MANY_RUNS`] runs or more. From this number of pairs on, the noise of these cells is estimated; with
/// fewer, from the pairs of all cells.
const MANY_PAIRS: usize = 30;

/// Weight of the noise of all cells in the noise of a cell, as a number of runs. The noise of a cell is the
/// weighted mean of the noise of its own runs and the noise of all cells, but never lower than the noise of
/// all cells.
const COMMON_NOISE_WEIGHT: f64 = 2.0;

/// Factor by which trimming increases the variance of normal noise.
const TRIMMING_VARIANCE_FACTOR: f64 = 1.1;

const FIT_ITERATIONS: usize = 5;

/// A run of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredRun {
    round: usize,
    score: f64,
}

/// The level of a cell: the score that its runs have without the states of the rounds.
#[derive(Clone, Copy, Debug)]
struct Level {
    value: f64,
    /// Variance between single runs of the cell.
    variance: f64,
    runs: f64,
}

/// The levels of all cells of a race.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    /// The level of each cell; `None` for a cell without a run.
    cells: Vec<Option<Level>>,
    /// Standard deviation of a run, from the cells with many runs if they suffice, otherwise from
    /// all cells; `None` if no cell was measured twice.
    pub(super) deviation: Option<f64>,
    /// Number of pairs of successive runs of one cell, over all cells.
    pub(super) pairs: usize,
    /// One-sided quantile of Student's t: a bound is this many standard errors away; infinite if unknown.
    factor: f64,
}

impl Levels {
    /// Fits the levels of cells to their runs.
    ///
    /// 1. A run's score is the level of its cell plus the state of its round. Alternating means and medians separate the two.
    /// 2. The noise comes from the differences of successive runs of one cell, without the states.
    /// 3. If a round has few runs, its state hides a part of their noise. This is corrected.
    ///
    /// `further_differences` has differences of successive runs outside of these rounds, for the noise.
    pub(super) fn fit(cells: &[Vec<ScoredRun>], further_differences: &[f64]) -> Self {
        let rounds = cells.iter().flatten().map(|run| run.round + 1).max().unwrap_or(0);
        let mut runs_of_round = vec![0.0_f64; rounds];
        for run in cells.iter().flatten() {
            runs_of_round[run.round] += 1.0;
        }
        let mut levels: Vec<f64> = cells.iter().map(|runs| median(&scores(runs))).collect();
        let mut states = vec![0.0; rounds];
        for _ in 0..FIT_ITERATIONS {
            let mut remainders = vec![Vec::new(); rounds];
            for (runs, level) in cells.iter().zip(&levels) {
                for run in runs {
                    remainders[run.round].push(run.score - level);
                }
            }
            states = remainders.iter().map(|scores| median(scores)).collect();
            levels = cells.iter().map(|runs| trimmed_mean(&without_states(runs, &states))).collect();
        }
        // The state of a round with few runs follows their noise and so hides a part of it.
        let correction = |runs: f64| runs / (runs - 1.0).max(0.5);
        let (mut pairs, mut pairs_of_frequent) = (further_differences.to_vec(), Vec::new());
        for runs in cells {
            let scores = without_states(runs, &states);
            let gaps = scores.windows(2).zip(runs.windows(2)).map(|(scores, runs)| {
                let fewest = runs_of_round[runs[0].round].min(runs_of_round[runs[1].round]);
                (scores[1] - scores[0]).abs() * correction(fewest).sqrt()
            });
            let gaps: Vec<f64> = gaps.collect();
            pairs.extend(&gaps);
            // Only rounds after the passes through all cells count: in the passes, the states follow the noisier cells.
            let later =
                gaps.iter().zip(runs).filter(|(_, run)| run.round >= PASSES && runs.len() >= MANY_RUNS);
            pairs_of_frequent.extend(later.map(|(gap, _)| gap));
        }
        let overall = estimate_deviation(&mut pairs);
        let frequent = estimate_deviation(&mut pairs_of_frequent)
            .filter(|_| pairs_of_frequent.len() >= MANY_PAIRS)
            .or(overall);
        let variance = |deviation: Option<f64>| deviation.map_or(f64::INFINITY, |d| d * d);
        let level = |(runs, value): (&Vec<ScoredRun>, &f64)| {
            let fewest = runs.iter().map(|run| runs_of_round[run.round]).fold(f64::INFINITY, f64::min);
            let own = trimmed_variance(&without_states(runs, &states)) * correction(fewest);
            let count = runs.len() as f64;
            let common = variance(if runs.len() < MANY_RUNS { overall } else { frequent });
            let common = if runs.len() < TRIM_DIVISOR { common } else { TRIMMING_VARIANCE_FACTOR * common };
            let mixed =
                (COMMON_NOISE_WEIGHT * common + (count - 1.0) * own) / (COMMON_NOISE_WEIGHT + count - 1.0);
            (count > 0.0).then(|| Level { value: *value, variance: common.max(mixed), runs: count })
        };
        let found: Vec<Option<Level>> = cells.iter().zip(&levels).map(level).collect();
        let chance = MAX_ERROR / (found.iter().flatten().count() as f64 + EXTRA_JUDGEMENTS);
        let degrees = (DEGREES_PER_PAIR * pairs.len() as f64).max(1.0);
        let factor = sample::quantile(1.0 - chance, degrees).unwrap_or(f64::INFINITY);
        Self { cells: found, deviation: frequent, pairs: pairs.len(), factor }
    }

    /// Returns the level of a cell, a logarithm; `None` without a run.
    pub(super) fn value(&self, at: usize) -> Option<f64> {
        Some(self.cells.get(at).copied()??.value)
    }

    /// Returns the upper bound on how much faster the cell `at` may be than the cell `than`, as a logarithm; infinite if a level or the
    /// noise is unknown.
    pub(super) fn max_lead(&self, at: usize, than: usize) -> f64 {
        self.shift(at, than).map_or(f64::INFINITY, |(shift, error)| shift + self.margin(error))
    }

    /// Returns the difference of two levels and its standard error.
    fn shift(&self, at: usize, than: usize) -> Option<(f64, f64)> {
        let (a, b) = (self.cells.get(at).copied()??, self.cells.get(than).copied()??);
        Some((a.value - b.value, ((a.variance + b.variance) / a.runs.min(b.runs)).sqrt()))
    }

    /// Returns how far a difference with this standard error may be from the truth by chance.
    fn margin(&self, error: f64) -> f64 {
        if error > 0.0 { self.factor * error } else { 0.0 }
    }

    /// Returns how far the mean of this many runs may be from the level of a cell by chance, as a logarithm.
    pub(super) fn chance_deviation(&self, at: usize, runs: usize) -> f64 {
        let level = self.cells.get(at).copied().flatten();
        level.map_or(f64::INFINITY, |l| {
            self.margin((l.variance * (1.0 / l.runs + 1.0 / runs.max(1) as f64)).sqrt())
        })
    }

    /// Returns the number of further runs of each of two cells that would bring the bound within the
    /// tolerance, if the noise does not change. `None` if no number of runs would. A slower cell counts
    /// as equally fast, because luck makes a winner seem faster than it is.
    pub(super) fn runs_to_prove(&self, at: usize, than: usize, tolerance: f64) -> Option<f64> {
        let (shift, error) = self.shift(at, than)?;
        let runs = self.cells[at]?.runs.min(self.cells[than]?.runs);
        let allowed_margin = tolerance - shift.max(0.0);
        let factor = (self.margin(error) / allowed_margin).powi(2);
        (allowed_margin > 0.0 && factor.is_finite()).then(|| (runs * (factor - 1.0)).max(0.0))
    }
}

/// Returns the mean of some scores; minus infinity without scores. With five or more scores, it leaves out a fifth at either end.
pub(super) fn trimmed_mean(scores: &[f64]) -> f64 {
    if scores.is_empty() {
        return f64::NEG_INFINITY;
    }
    let (sorted, out) = sort_for_trimming(scores);
    sample::mean(&sorted[out..sorted.len() - out])
}

/// Returns the variance of the scores, adapted to [`trimmed_mean`]: divided by the number of scores, it is
/// the variance of that mean. Each trimmed score counts as the outermost remaining one on its side (Tukey and
/// McLaughlin 1963). 0 with fewer than two scores.
fn trimmed_variance(scores: &[f64]) -> f64 {
    let (sorted, out) = sort_for_trimming(scores);
    let Some(last) = sorted.len().checked_sub(1 + out).filter(|last| *last > out) else { return 0.0 };
    let moved: Vec<f64> = sorted.iter().map(|s| s.clamp(sorted[out], sorted[last])).collect();
    let mean = moved.iter().sum::<f64>() / moved.len() as f64;
    let squares: f64 = moved.iter().map(|s| (s - mean).powi(2)).sum();
    let core = (last - out + 1) as f64;
    squares * moved.len() as f64 / (core * (core - 1.0))
}

/// Returns the scores in ascending order, and how many of them a trimmed mean leaves out at either end.
fn sort_for_trimming(scores: &[f64]) -> (Vec<f64>, usize) {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let out = sorted.len() / TRIM_DIVISOR;
    (sorted, out)
}

/// Estimates the standard deviation of a single run from the differences of pairs of runs; `None` without a pair.
fn estimate_deviation(pairs: &mut [f64]) -> Option<f64> {
    pairs.sort_by(f64::total_cmp);
    let rank = (SHARE_OF_PAIRS * pairs.len() as f64).ceil() as usize;
    let below = pairs.get(rank.checked_sub(1)?)?;
    Some(below / DEVIATIONS_OF_SHARE / std::f64::consts::SQRT_2)
}

fn scores(runs: &[ScoredRun]) -> Vec<f64> {
    runs.iter().map(|run| run.score).collect()
}

/// Returns the scores without the states of their rounds.
fn without_states(runs: &[ScoredRun], states: &[f64]) -> Vec<f64> {
    runs.iter().map(|run| run.score - states[run.round]).collect()
}

/// Returns one run in each round, with these scores.
#[cfg(test)]
fn scored_runs(scores: impl IntoIterator<Item = f64>) -> Vec<ScoredRun> {
    scores.into_iter().enumerate().map(|(round, score)| ScoredRun { round, score }).collect()
}

#[test]
fn a_slow_round_and_a_stall_change_no_level() {
    let quiet = |cell: f64| scored_runs((0..6).map(|round| cell + 0.01 * f64::from(round % 2)));
    let mut cells: Vec<Vec<ScoredRun>> = [1.0, 2.0, 2.5, 2.6].map(quiet).to_vec();
    let difference = |cells: &[Vec<ScoredRun>]| {
        let levels = Levels::fit(cells, &[]);
        levels.value(3).unwrap() - levels.value(2).unwrap()
    };
    assert!((difference(&cells) - 0.1).abs() < 1e-9);
    for runs in &mut cells {
        runs[4].score -= 1.0;
    }
    assert!((difference(&cells) - 0.1).abs() < 1e-9, "all cells of a round share its state");
    cells[3][2].score -= 1.6;
    assert!((difference(&cells) - 0.1).abs() < 0.01, "{}", difference(&cells));
}

#[test]
fn cells_with_many_runs_have_a_noise_that_noisier_cells_do_not_change() {
    let runs = |cell: usize, noise: f64, count: usize| {
        scored_runs((0..count).map(|round| cell as f64 + noise * ((round + cell) % 3) as f64))
    };
    let noisy = (0..40).map(|cell| runs(cell, 0.3, 2));
    let often = (40..46).map(|cell| runs(cell, 0.01, 9));
    let levels = Levels::fit(&noisy.chain(often).collect::<Vec<_>>(), &[]);
    assert!(levels.deviation.unwrap() < 0.03, "{:?}", levels.deviation);
    let width = |at: usize| levels.max_lead(at, at + 1) + levels.max_lead(at + 1, at);
    assert!(width(42) < width(10) / 3.0, "{} {}", width(42), width(10));
}

#[test]
fn cells_without_runs_or_repeats_have_no_bounds() {
    let [one, other] = [1.0, 2.0].map(|score| scored_runs([score]));
    let once = Levels::fit(&[one.clone(), other.clone(), Vec::new()], &[]);
    assert_eq!((once.deviation, once.pairs, once.value(2)), (None, 0, None));
    assert!(
        once.max_lead(0, 1).is_infinite()
            && once.max_lead(2, 1).is_infinite()
            && once.chance_deviation(2, 5).is_infinite()
    );
    let elsewhere = Levels::fit(&[one, other], &[0.02; 8]);
    assert!(elsewhere.max_lead(0, 1) < 0.0, "{elsewhere:?}");
    assert_eq!(Levels::fit(&[], &[]).pairs, 0);
}

#[test]
fn the_bound_is_that_of_student() {
    let alike = |cell: f64| scored_runs([0.0, 0.02, 0.0, 0.02].map(|error| cell + error));
    let turned = |cell: f64| scored_runs([0.02, 0.0, 0.02, 0.0].map(|error| cell + error));
    let levels = Levels::fit(&[alike(0.0), turned(0.0), alike(1.0), turned(1.0)], &[]);
    // The states of the rounds are equal. Each of the 12 pairs of runs differs by 0.02. The states of rounds with four members hide a part
    // of the noise.
    let deviation = 0.02 * (4.0_f64 / 3.0).sqrt() / 1.645 / std::f64::consts::SQRT_2;
    assert!((levels.deviation.unwrap() - deviation).abs() < 1e-9, "{levels:?}");
    let factor = sample::quantile(1.0 - 0.05 / 8.0, 0.6 * 12.0).unwrap();
    // Four runs of the cell vary by 0.01 to either side. The noise of all cells counts like two runs.
    let own = 4.0 * 0.0001 / 3.0 * 4.0 / 3.0;
    let mixed = (2.0 * deviation * deviation + 3.0 * own) / 5.0;
    let bound = factor * (2.0 * mixed.max(deviation * deviation) / 4.0).sqrt();
    assert!((levels.max_lead(0, 1) - bound).abs() < 1e-9, "{} {bound}", levels.max_lead(0, 1));
    // The bound falls with the root of the runs.
    let more = levels.runs_to_prove(0, 1, bound / 2.0).unwrap();
    assert!((more - 12.0).abs() < 1e-6, "{more}");
    assert_eq!(levels.runs_to_prove(2, 1, 0.05), None, "a cell that is faster stays faster");
}
