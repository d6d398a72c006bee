//! A race compares the cells of one work with each other.
//!
//! 1. Cells are measured in rounds, each contender once in a round.
//! 2. After a round, [`Levels`] fits a level for each cell and the noise, and bounds by how much each cell may be faster than another.
//! 3. The winner is the cell that no other can beat by much: its worst bound is the lowest.
//! 4. The contenders of the next round are the winner and the cells that may be faster by more than the tolerance.
//!    Without such cells, the race is decided. While too few cells were repeated to know the noise, all cells are contenders.
//! 5. The winner, cheaper cells that seem equally fast, and settings of well-known programs then get fresh runs for
//!    their figures, because the runs that chose a winner are faster than it usually is.

use crate::runs::Sample;
use model::sweep::Measure;
use stats::sample;
use stats::sample::median;

/// Maximum number of cheaper cells that are compared with a winner, the cheapest first.
const MAX_CHEAPER: usize = 3;

/// Minimum number of rounds before an adaptive search decides a race, unless its time is up. A single fast run may be luck.
const FEWEST_ROUNDS: usize = 2;

/// The number of cells with the highest levels that may win.
const CANDIDATES: usize = 20;

/// A cell with as much memory as the winner is cheaper if it uses less than this share of the winner's CPU time.
const LESS_CPU: f64 = 0.9;

/// The target has changed if the winner's fresh runs are slower than its slowest run in the race by more than this, as a logarithm.
const MIN_FALL: f64 = 0.1;

/// Fresh runs of a winner and of each setting that it is compared with: enough for a useful interval.
pub const FRESH_RUNS: usize = 5;

/// Minimum number of pairs of successive runs of one cell for an estimate of the noise between runs. Five runs of one
/// cell make four pairs.
pub const FEWEST_REPEATS: usize = 4;

/// Minimum number of pairs for deciding a race before its time is up.
const REPEATS_TO_DECIDE: usize = 8;

/// A cell with its runs so far.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Index of its job.
    pub job: usize,
    /// Bytes of its buffers.
    pub(super) memory: u64,
    /// The measure that ranks the runs.
    by: Measure,
    /// Scores of its runs while the race was open: logarithms, higher is better.
    pub logs: Vec<f64>,
    /// The round of each score in `logs`.
    rounds: Vec<usize>,
    /// Scores of its runs after the race was decided.
    pub fresh: Vec<f64>,
    /// The runs of `logs` and of `fresh`.
    runs: [Vec<Sample>; 2],
    /// Whether a run of the cell failed, which excludes the cell.
    pub(super) failed: bool,
}

/// The cells of one work.
#[derive(Clone, Debug)]
pub struct Race {
    /// The work of its cells, named by [`Setting::work`](model::sweep::Setting::work).
    pub work: String,
    /// The measure that ranks the cells.
    pub by: Measure,
    /// Tolerance for how much faster than the winner a cell may be, as a logarithm.
    pub(super) tolerance: f64,
    /// Cells of the race.
    pub lanes: Vec<Lane>,
    /// Settings of well-known programs, which are measured after the race.
    pub baselines: Vec<Lane>,
    /// The current round, counted from 0.
    pub(super) round: usize,
    /// Indices of the lanes that the current round measures.
    pub(super) members: Vec<usize>,
    /// The decision; `None` while the race is open.
    pub decision: Option<Decision>,
}

/// How a race was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Index of the winning lane; `None` if every cell failed.
    pub winner: Option<usize>,
    /// Cheaper lanes that may be as fast, the cheapest first.
    cheaper: Vec<usize>,
}

/// The lanes that may be faster than the winner.
#[derive(Clone, Debug, PartialEq)]
pub struct Rivals {
    /// Indices of the lanes. The lane that may be fastest comes first.
    pub within_noise: Vec<usize>,
    /// How many of the lanes, counted from the first, may be faster by more than the tolerance.
    pub open: usize,
    /// Upper bound on how much faster any lane may be, as a logarithm.
    pub at_most: f64,
}

impl Lane {
    /// Creates a cell without runs.
    pub(super) fn new(job: usize, memory: u64, by: Measure) -> Self {
        Self { job, memory, by, ..Self::default() }
    }

    fn take(&mut self, sample: &Sample, round: Option<usize>) {
        let Some(score) = sample.score(self.by) else {
            self.failed = true;
            return;
        };
        if let Some(round) = round {
            self.logs.push(score);
            self.rounds.push(round);
        } else {
            self.fresh.push(score);
        }
        self.runs[usize::from(round.is_none())].push(*sample);
    }

    /// Counts the runs of the lane; a failed one counts too.
    pub(super) fn count_runs(&self) -> usize {
        self.logs.len() + self.fresh.len() + usize::from(self.failed)
    }

    /// Whether the lane has not failed, and has no run in this round yet.
    pub(super) fn is_due(&self, round: usize) -> bool {
        !self.failed && self.rounds.last() != Some(&round)
    }

    /// Returns the runs of the race; none of a failed lane.
    fn scored_runs(&self) -> Vec<ScoredRun> {
        if self.failed {
            return Vec::new();
        }
        self.rounds
            .iter()
            .zip(&self.logs)
            .map(|(round, score)| ScoredRun { round: *round, score: *score })
            .collect()
    }

    /// Returns the scores of the runs that the figures use: the fresh runs if there are enough, because they did not
    /// select the winner.
    pub fn figure_scores(&self) -> &[f64] {
        if self.uses_fresh_runs() { &self.fresh } else { &self.logs }
    }

    /// The number of the first run that the figures use.
    pub fn first_figure_run(&self) -> usize {
        if self.uses_fresh_runs() { self.logs.len() } else { 0 }
    }

    fn uses_fresh_runs(&self) -> bool {
        self.fresh.len() >= FRESH_RUNS || self.logs.is_empty()
    }

    /// Returns the measure that ranks the runs.
    pub fn by(&self) -> Measure {
        self.by
    }

    /// Returns the runs that the lane's figures use.
    pub fn figure_samples(&self) -> &[Sample] {
        &self.runs[usize::from(self.uses_fresh_runs())]
    }

    /// Returns the mean bytes of an operation in the runs that the figures use; `None` if unknown. The sizes of an
    /// access specification are random.
    pub fn bytes_per_operation(&self) -> Option<f64> {
        mean_of(self.figure_samples(), |s| s.bytes_per_operation.filter(|b| *b > 0.0))
    }

    /// Returns the mean CPU time per byte of all runs of the lane in ns; `None` without a value.
    pub fn cpu_ns_per_byte(&self) -> Option<f64> {
        mean_of(self.runs.iter().flatten(), |s| s.cpu_ns_per_byte.filter(|c| c.is_finite()))
    }

    fn cpu_or_worst(&self) -> f64 {
        self.cpu_ns_per_byte().unwrap_or(f64::INFINITY)
    }

    fn cost(&self) -> (u64, f64) {
        (self.memory, self.cpu_or_worst())
    }

    /// Whether the lane needs no more fresh runs: it has enough, or it failed.
    fn is_complete(&self) -> bool {
        self.failed || self.fresh.len() >= FRESH_RUNS
    }
}

impl Race {
    /// Creates a race without runs.
    pub(super) fn new(work: String, by: Measure, share: f64, lanes: Vec<Lane>, baselines: Vec<Lane>) -> Self {
        // A better latency has a higher score but a lower value.
        let tolerance = if by.is_latency() { -(-share).ln_1p() } else { share.ln_1p() };
        let members = (0..lanes.len()).collect();
        Self { work, by, tolerance, lanes, baselines, round: 0, members, decision: None }
    }

    /// Adds a run to its lane. Ignores runs of jobs that have no lane in this race.
    pub(super) fn take(&mut self, sample: &Sample) {
        let round = self.decision.is_none().then_some(self.round);
        let lanes = self.lanes.iter_mut().chain(&mut self.baselines);
        if let Some(lane) = lanes.into_iter().find(|l| l.job == sample.job) {
            lane.take(sample, round);
        }
    }

    pub(super) fn count_runs(&self) -> usize {
        self.lanes.iter().map(Lane::count_runs).sum()
    }

    /// Returns the lanes whose run of the current round is missing.
    pub(super) fn due(&self) -> impl Iterator<Item = &Lane> {
        let open = self.decision.is_none().then_some(&self.members);
        open.into_iter().flatten().filter_map(|at| self.lanes.get(*at)).filter(|lane| lane.is_due(self.round))
    }

    /// Returns the lanes without a failed run.
    pub(super) fn sound(&self) -> impl Iterator<Item = (usize, &Lane)> {
        self.lanes.iter().enumerate().filter(|(_, lane)| !lane.failed)
    }

    /// Fits a level for each lane, and the noise. If the race has few repeats, the noise is
    /// estimated from its runs and from the fresh runs.
    fn fit_levels(&self) -> Levels {
        let runs: Vec<Vec<ScoredRun>> = self.lanes.iter().map(Lane::scored_runs).collect();
        let levels = Levels::fit(&runs, &[]);
        if levels.pairs >= REPEATS_TO_DECIDE {
            return levels;
        }
        let fresh = self.lanes.iter().flat_map(|l| l.fresh.windows(2)).map(|pair| (pair[1] - pair[0]).abs());
        Levels::fit(&runs, &fresh.collect::<Vec<f64>>())
    }

    /// Returns the index of each other lane with the upper bound on how much faster than the winner
    /// the lane may be, as a logarithm. The largest bound comes first.
    fn bounds(&self, levels: &Levels, winner: usize) -> Vec<(usize, f64)> {
        let others = self.sound().filter(|(at, lane)| *at != winner && !lane.logs.is_empty());
        let mut bounds: Vec<(usize, f64)> = others.map(|(at, _)| (at, levels.at_most(at, winner))).collect();
        bounds.sort_by(|a, b| b.1.total_cmp(&a.1));
        bounds
    }

    /// Returns the index of the best lane: among the lanes with the highest levels, the one that
    /// other lanes can beat by the least. Without bounds, this is the lane with the highest level.
    /// `None` without a run.
    fn find_best(&self, levels: &Levels) -> Option<usize> {
        let mut order: Vec<(usize, f64)> =
            (0..self.lanes.len()).filter_map(|at| Some((at, levels.value(at)?))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        let worst = |at: usize| {
            let others = order.iter().filter(|(other, _)| *other != at);
            others.map(|(other, _)| levels.at_most(*other, at)).fold(f64::NEG_INFINITY, f64::max)
        };
        let candidates = order.iter().take(CANDIDATES).map(|(at, _)| (*at, worst(*at)));
        // If bounds are equal, the first lane wins, because it has the higher level.
        candidates.reduce(|best, one| if one.1 < best.1 { one } else { best }).map(|(at, _)| at)
    }

    /// Returns the lanes that the next round of an adaptive search measures: the best lane, and the lanes that may be
    /// faster by more than the tolerance. All lanes while the noise is unknown. Empty if the race is decided.
    pub(super) fn contenders(&self) -> Vec<usize> {
        let levels = self.fit_levels();
        let Some(best) = self.find_best(&levels) else { return Vec::new() };
        if self.sound().nth(1).is_none() {
            return if self.round + 1 < FEWEST_ROUNDS { vec![best] } else { Vec::new() };
        }
        if levels.pairs < REPEATS_TO_DECIDE && self.round > 0 {
            return self.sound().map(|(at, _)| at).collect();
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
        let at_most = bounds.first().map_or(f64::NEG_INFINITY, |(_, bound)| *bound);
        bounds.retain(|(_, bound)| *bound > 0.0);
        let open = bounds.iter().take_while(|(_, bound)| *bound > self.tolerance).count();
        Some(Rivals { within_noise: bounds.into_iter().map(|(at, _)| at).collect(), open, at_most })
    }

    /// Returns the number of further runs that would prove that no lane is faster than the winner by more than the
    /// tolerance, if levels and noise do not change. `None` if no number of runs would.
    pub fn more_runs(&self) -> Option<f64> {
        let winner = self.decision.as_ref()?.winner?;
        let levels = self.fit_levels();
        let open = self.bounds(&levels, winner).into_iter().filter(|(_, bound)| *bound > self.tolerance);
        let runs: Vec<f64> =
            open.map(|(at, _)| levels.more_runs(at, winner, self.tolerance)).collect::<Option<_>>()?;
        Some(runs.iter().sum::<f64>() + runs.iter().fold(0.0, |most: f64, runs| most.max(*runs)))
    }

    /// Whether cells were repeated often enough to know the noise.
    pub fn knows_its_noise(&self) -> bool {
        self.fit_levels().pairs >= FEWEST_REPEATS
    }

    /// Turns a difference of scores into a share: how much higher a rate is, or how much lower a latency.
    pub fn share(&self, log: f64) -> f64 {
        if self.by.is_latency() { -(-log).exp_m1() } else { log.exp_m1() }
    }

    /// Returns the lanes that cost less than the winner and seem equally fast, the cheapest first.
    fn find_cheaper(&self, levels: &Levels, winner: usize) -> Vec<usize> {
        let best = &self.lanes[winner];
        let costs_less = |l: &Lane| {
            l.memory < best.memory
                || (l.memory == best.memory && l.cpu_or_worst() < LESS_CPU * best.cpu_or_worst())
        };
        let near = |at: usize| {
            let slower_by = levels.value(winner).zip(levels.value(at)).map(|(best, own)| best - own);
            slower_by.is_some_and(|slower_by| slower_by <= self.tolerance)
        };
        let mut all: Vec<(usize, &Lane)> =
            self.sound().filter(|(at, lane)| costs_less(lane) && near(*at)).collect();
        all.sort_by(|a, b| a.1.cost().partial_cmp(&b.1.cost()).unwrap_or(std::cmp::Ordering::Equal));
        all.into_iter().take(MAX_CHEAPER).map(|(at, _)| at).collect()
    }

    /// Returns the noise: the standard deviation of the logarithms of runs of one cell. It is
    /// estimated from the cells with many runs if they suffice, otherwise from all cells. `None` if
    /// no cell was repeated.
    pub fn spread(&self) -> Option<f64> {
        self.fit_levels().deviation
    }

    /// Returns the lane that won.
    pub fn winner(&self) -> Option<&Lane> {
        self.lanes.get(self.decision.as_ref()?.winner?)
    }

    /// Returns by how much the winner's fresh runs are slower than the runs that chose it: the
    /// logarithm of the ratio, which is negative. Returns `None` if the target did not become
    /// slower. It became slower if chance does not explain the difference, and even the slowest run
    /// that chose the winner was much faster.
    pub fn fall(&self) -> Option<f64> {
        let at = self.decision.as_ref()?.winner?;
        let winner = self.lanes.get(at).filter(|w| w.fresh.len() >= FRESH_RUNS)?;
        let fresh = centre(&winner.fresh);
        let shift = fresh - centre(&winner.logs);
        let slowest = winner.logs.iter().copied().fold(f64::INFINITY, f64::min);
        let luck = self.fit_levels().luck(at, winner.fresh.len());
        (fresh < slowest - MIN_FALL && shift < -luck).then_some(shift)
    }

    /// Returns the first cheaper lane whose fresh runs are as fast as the winner's; else the winner. `None` without a winner.
    pub fn cheapest(&self) -> Option<&Lane> {
        let winner = self.winner()?;
        let cheaper = self.decision.as_ref()?.cheaper.iter().filter_map(|at| self.lanes.get(*at));
        Some(cheaper.take_while(|l| l.is_complete()).find(|l| self.is_as_fast(l, winner)).unwrap_or(winner))
    }

    /// Whether the fresh runs of a lane are slower than those of the winner by no more than the tolerance.
    fn is_as_fast(&self, lane: &Lane, winner: &Lane) -> bool {
        !lane.failed && centre(&lane.fresh) >= centre(&winner.fresh) - self.tolerance
    }

    /// Returns the lanes that are measured after the race, each with the number of fresh runs that it needs. After the
    /// time is up, only the winner.
    pub(super) fn lanes_for_fresh_runs(&self, is_time_up: bool) -> Vec<(&Lane, usize)> {
        let Some((decision, winner)) = self.decision.as_ref().zip(self.winner()) else { return Vec::new() };
        if is_time_up {
            return vec![(winner, FRESH_RUNS)];
        }
        let mut out: Vec<(&Lane, usize)> = self.baselines.iter().map(|y| (y, FRESH_RUNS)).collect();
        let cheaper = decision.cheaper.iter().filter_map(|at| self.lanes.get(*at)).enumerate();
        // Measure one cheaper cell after another, in turns with fresh runs of the winner.
        let mut rounds = 1;
        for (at, lane) in cheaper {
            if !lane.is_complete() {
                out.push((lane, FRESH_RUNS));
            }
            rounds = at + 1;
            if !lane.is_complete() || self.is_as_fast(lane, winner) {
                break;
            }
        }
        out.push((winner, FRESH_RUNS * rounds));
        out
    }

    /// Counts the fresh runs that are still to come; an estimate while the race is open.
    pub(super) fn fresh_runs_to_come(&self) -> usize {
        if self.decision.is_none() {
            return FRESH_RUNS * (2 + self.baselines.len());
        }
        self.lanes_for_fresh_runs(false).iter().map(|(l, want)| want.saturating_sub(l.fresh.len())).sum()
    }
}

/// Returns the mean of a value over the runs that have one.
fn mean_of<'s>(
    runs: impl IntoIterator<Item = &'s Sample>,
    value: impl Fn(&Sample) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = runs.into_iter().filter_map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Allowed chance that any statement about a race is wrong.
const ERROR: f64 = 0.05;

/// Added to the number of cells that share the allowed error, because a race is checked after each round and not only
/// at its end.
const CHECKS: f64 = 4.0;

/// A trimmed mean leaves out one in this many of a cell's runs at either end.
const TRIM_DIVISOR: usize = 5;

/// The noise is estimated from the difference that this share of all pairs of successive runs does
/// not exceed.
const SHARE_OF_PAIRS: f64 = 0.9;
/// A normal deviate is within this many standard deviations with the probability [`SHARE_OF_PAIRS`].
const DEVIATIONS: f64 = 1.645;

/// Degrees of freedom for each pair. A quantile of the pairs tells less about the noise than their variance would.
const DEGREES_PER_PAIR: f64 = 0.6;

/// Maximum number of rounds of an adaptive search that are passes through all cells.
const PASSES: usize = 2;

/// Minimum number of runs for a cell to count as one with many runs.
const MANY_RUNS: usize = 8;
/// Minimum number of pairs of successive runs after the passes, counted over all cells with
/// [`MANY_RUNS`] runs or more. From this number of pairs on, the noise of these cells is estimated; with
/// fewer, from the pairs of all cells.
const MANY_PAIRS: usize = 30;

/// The noise of a cell is a weighted mean of the noise of its own runs and the noise of all cells.
/// The noise of all cells weighs as much as this many runs, and the result is never lower than it.
const RUNS_OF_OTHERS: f64 = 2.0;

/// Growth of a variance through trimming, for normal noise.
const TRIMMED_VARIANCE: f64 = 1.1;

/// Iterations of the fit.
const ITERATIONS: usize = 5;

/// A run of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredRun {
    round: usize,
    score: f64,
}

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
    /// The level of each cell; `None` for a cell without a run.
    cells: Vec<Option<Level>>,
    /// Standard deviation of a run, from the cells with many runs if they suffice, otherwise from
    /// all cells; `None` if no cell was measured twice.
    pub(super) deviation: Option<f64>,
    /// Number of pairs of successive runs of one cell, over all cells.
    pub(super) pairs: usize,
    /// Student's factor for one side.
    factor: f64,
}

impl Levels {
    /// Fits the levels of cells to their runs.
    ///
    /// 1. A run's score is the level of its cell plus the state of its round. Alternating means and medians separate the two.
    /// 2. The noise comes from the differences of successive runs of one cell, without the states.
    /// 3. If a round has few members, its state hides a part of their noise. This is corrected.
    ///
    /// `elsewhere` has further differences of successive runs for the noise.
    pub(super) fn fit(cells: &[Vec<ScoredRun>], elsewhere: &[f64]) -> Self {
        let rounds = cells.iter().flatten().map(|run| run.round + 1).max().unwrap_or(0);
        let mut members = vec![0.0_f64; rounds];
        for run in cells.iter().flatten() {
            members[run.round] += 1.0;
        }
        let mut levels: Vec<f64> = cells.iter().map(|runs| median(&scores(runs))).collect();
        let mut states = vec![0.0; rounds];
        for _ in 0..ITERATIONS {
            let mut remainders = vec![Vec::new(); rounds];
            for (runs, level) in cells.iter().zip(&levels) {
                for run in runs {
                    remainders[run.round].push(run.score - level);
                }
            }
            states = remainders.iter().map(|left| median(left)).collect();
            levels = cells.iter().map(|runs| centre(&without_states(runs, &states))).collect();
        }
        // The state of a round with few runs follows their noise and so hides a part of it.
        let hidden = |members: f64| members / (members - 1.0).max(0.5);
        let (mut pairs, mut pairs_of_many) = (elsewhere.to_vec(), Vec::new());
        for runs in cells {
            let scores = without_states(runs, &states);
            let gaps = scores.windows(2).zip(runs.windows(2)).map(|(scores, runs)| {
                let fewest = members[runs[0].round].min(members[runs[1].round]);
                (scores[1] - scores[0]).abs() * hidden(fewest).sqrt()
            });
            let gaps: Vec<f64> = gaps.collect();
            pairs.extend(&gaps);
            // Only rounds after the passes through all cells count: in the passes, the states follow the noisier cells.
            let later =
                gaps.iter().zip(runs).filter(|(_, run)| run.round >= PASSES && runs.len() >= MANY_RUNS);
            pairs_of_many.extend(later.map(|(gap, _)| gap));
        }
        let overall = deviation_of_pairs(&mut pairs);
        let frequent =
            deviation_of_pairs(&mut pairs_of_many).filter(|_| pairs_of_many.len() >= MANY_PAIRS).or(overall);
        let variance = |deviation: Option<f64>| deviation.map_or(f64::INFINITY, |d| d * d);
        let level = |(runs, value): (&Vec<ScoredRun>, &f64)| {
            let fewest = runs.iter().map(|run| members[run.round]).fold(f64::INFINITY, f64::min);
            let own = trimmed_variance(&without_states(runs, &states)) * hidden(fewest);
            let count = runs.len() as f64;
            let common = variance(if runs.len() < MANY_RUNS { overall } else { frequent });
            let common = if runs.len() < TRIM_DIVISOR { common } else { TRIMMED_VARIANCE * common };
            let mixed = (RUNS_OF_OTHERS * common + (count - 1.0) * own) / (RUNS_OF_OTHERS + count - 1.0);
            (count > 0.0).then(|| Level { value: *value, variance: common.max(mixed), runs: count })
        };
        let found: Vec<Option<Level>> = cells.iter().zip(&levels).map(level).collect();
        let chance = ERROR / (found.iter().flatten().count() as f64 + CHECKS);
        let degrees = (DEGREES_PER_PAIR * pairs.len() as f64).max(1.0);
        let factor = sample::quantile(1.0 - chance, degrees).unwrap_or(f64::INFINITY);
        Self { cells: found, deviation: frequent, pairs: pairs.len(), factor }
    }

    /// Returns the level of a cell, a logarithm; `None` without a run.
    pub(super) fn value(&self, at: usize) -> Option<f64> {
        Some(self.cells.get(at).copied()??.value)
    }

    /// Returns how much faster one cell may be than another at most, as a logarithm; infinite if one has no level or no noise.
    pub(super) fn at_most(&self, at: usize, than: usize) -> f64 {
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
    pub(super) fn luck(&self, at: usize, runs: usize) -> f64 {
        let level = self.cells.get(at).copied().flatten();
        level.map_or(f64::INFINITY, |l| {
            self.margin((l.variance * (1.0 / l.runs + 1.0 / runs.max(1) as f64)).sqrt())
        })
    }

    /// Returns the number of further runs of each of the two cells that would bring the bound
    /// within the tolerance, if the noise does not change. `None` if no number of runs would. A
    /// slower cell counts as equally fast, because luck makes a winner seem faster than it is.
    pub(super) fn more_runs(&self, at: usize, than: usize, tolerance: f64) -> Option<f64> {
        let (shift, error) = self.shift(at, than)?;
        let runs = self.cells[at]?.runs.min(self.cells[than]?.runs);
        let room = tolerance - shift.max(0.0);
        let times = (self.margin(error) / room).powi(2);
        (room > 0.0 && times.is_finite()).then(|| (runs * (times - 1.0)).max(0.0))
    }
}

/// Returns the mean of some scores; minus infinity without scores. With five or more scores, it leaves out a fifth at either end.
pub(super) fn centre(scores: &[f64]) -> f64 {
    if scores.is_empty() {
        return f64::NEG_INFINITY;
    }
    let (sorted, out) = sort_for_trimming(scores);
    let core = &sorted[out..sorted.len() - out];
    core.iter().sum::<f64>() / core.len() as f64
}

/// Returns the variance of one score from which the variance of [`centre`] follows by dividing by
/// the number of scores. The trimmed scores count as the outermost remaining ones (Tukey and
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

/// Returns the scores in order, and how many are left out at either end.
fn sort_for_trimming(scores: &[f64]) -> (Vec<f64>, usize) {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let out = sorted.len() / TRIM_DIVISOR;
    (sorted, out)
}

/// Estimates the standard deviation of a single run from the differences of pairs of runs; `None` without a pair.
fn deviation_of_pairs(pairs: &mut [f64]) -> Option<f64> {
    pairs.sort_by(f64::total_cmp);
    let rank = (SHARE_OF_PAIRS * pairs.len() as f64).ceil() as usize;
    let below = pairs.get(rank.checked_sub(1)?)?;
    Some(below / DEVIATIONS / std::f64::consts::SQRT_2)
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
    let width = |at: usize| levels.at_most(at, at + 1) + levels.at_most(at + 1, at);
    assert!(width(42) < width(10) / 3.0, "{} {}", width(42), width(10));
}

#[test]
fn cells_without_runs_or_repeats_have_no_bounds() {
    let [one, other] = [1.0, 2.0].map(|score| scored_runs([score]));
    let once = Levels::fit(&[one.clone(), other.clone(), Vec::new()], &[]);
    assert_eq!((once.deviation, once.pairs, once.value(2)), (None, 0, None));
    assert!(
        once.at_most(0, 1).is_infinite() && once.at_most(2, 1).is_infinite() && once.luck(2, 5).is_infinite()
    );
    let elsewhere = Levels::fit(&[one, other], &[0.02; 8]);
    assert!(elsewhere.at_most(0, 1) < 0.0, "{elsewhere:?}");
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
    assert!((levels.at_most(0, 1) - bound).abs() < 1e-9, "{} {bound}", levels.at_most(0, 1));
    // The bound falls with the root of the runs.
    let more = levels.more_runs(0, 1, bound / 2.0).unwrap();
    assert!((more - 12.0).abs() < 1e-6, "{more}");
    assert_eq!(levels.more_runs(2, 1, 0.05), None, "a cell that is faster stays faster");
}
