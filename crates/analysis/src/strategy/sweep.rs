//! Decides which cell of a grid to measure next, and which one wins.
//!
//! The decisions are a pure function of the runs so far. So a sweep can be resumed, a record judged, and several hosts decide alike, all from
//! the runs. The plan selects one of two ways:
//!
//! [`BestCellSearch`] finds the best cell, and repeats disturbed runs:
//! 1. Every cell is measured once, in random order. If the first pass of a race ends within a third of the budget, a second pass follows, so that a
//!    single stall does not rule a cell out. An exhaustive search has as many passes as the plan has runs, and skips step 2.
//! 2. Then each round measures the contenders: the best cell, and those that may be faster by more than the tolerance (`race`). A race
//!    ends when no contender is left, or when only the time for step 3 is left.
//! 3. Then the winner, cheaper cells that seem equally fast, and settings of well-known programs get five fresh runs each, in turns; the
//!    winner gets five more with each further cheaper cell.
//!
//! The cells of each work (order and direction, such as `randread`) race among themselves. The race with the fewest runs comes next.
//!
//! [`OrderedSweep`] measures the cells in the order of the grid, once or in rounds until a rule ends it, like `iops` and the SNIA's test
//! specification.

mod race;

use crate::runs::{CellAttempt, CellRun, counting_cell_runs};
use crate::strategy::disturbed::{Repeat, repeats_of};
use model::figures::Snia;
use model::payload::split_mix;
use model::plan::Plan;
use model::record::{Attempt, Pairing};
use model::spec::axes::SIZES;
use model::sweep::{Grid, Measure, Search, Setting, Until, Variable, least_iops};
pub use race::{Decision, FEWEST_NOISE_PAIRS, FRESH_RUNS, Race, RacingCell, Rivals};
use stats::{sample, steady_state};

/// Number of runs of a work after which the reference cell of the work is measured once more.
pub const REFERENCE_EVERY: usize = 12;

/// If the budget is at least this many times as long as the first pass took, a second pass follows.
const FIRST_PASSES_IN_BUDGET: u64 = 3;

/// The longest recommended budget: within a longer time the device changes.
const MAX_BUDGET_NS: f64 = 3_600e9;

/// A run after a race is assumed to take this fraction (5/4) of the mean time of a run, because runs with the settings of
/// well-known programs take longer.
const LONGER_NUMERATOR: u64 = 5;
const LONGER_DENOMINATOR: u64 = 4;

/// A search with its runs so far.
#[derive(Debug)]
pub struct BestCellSearch<'g> {
    grid: &'g Grid,
    /// Number of times that an exhaustive search measures each cell.
    runs: usize,
    seed: u64,
    /// The races, one for each work, in the order of the grid.
    pub races: Vec<Race>,
    runs_done: usize,
    /// Total time of all runs in ns, including preparation and pauses.
    spent_ns: u64,
    /// When the last run ended, in ns since the start of the session.
    ended_ns: u64,
}

impl<'g> BestCellSearch<'g> {
    /// Creates a search without runs.
    pub fn new(grid: &'g Grid, runs: u32, seed: u64) -> Self {
        let cell = |job: usize, measure: Measure| {
            let memory_bytes = grid.setting(job).map_or(u64::MAX, Setting::memory_bytes);
            RacingCell::new(job, memory_bytes, measure)
        };
        let race = |work: String| {
            let measure = grid.measure_of(&work).unwrap_or_default();
            let cells = grid.jobs_of(&work).into_iter().map(|job| cell(job, measure)).collect();
            let baselines = grid.baselines.iter().filter(|baseline| baseline.setting.work() == work);
            let baselines = baselines.map(|baseline| cell(baseline.job, measure)).collect();
            Race::new(work, measure, grid.tolerance, cells, baselines)
        };
        let races = grid.works().into_iter().map(race).collect();
        Self { grid, runs: runs.max(1) as usize, seed, races, runs_done: 0, spent_ns: 0, ended_ns: 0 }
    }

    /// Creates a search after these runs.
    pub fn after(grid: &'g Grid, runs: u32, seed: u64, runs_so_far: &[CellRun]) -> Self {
        let mut search = Self::new(grid, runs, seed);
        for run in runs_so_far {
            search.add(run);
        }
        search
    }

    /// Adds a run.
    pub fn add(&mut self, run: &CellRun) {
        self.runs_done += 1;
        self.spent_ns = self.spent_ns.saturating_add(run.took_ns);
        self.ended_ns = self.ended_ns.max(run.ended_ns);
        self.races.iter_mut().for_each(|race| race.add(run));
        for at in 0..self.races.len() {
            self.advance(at);
        }
    }

    /// Begins the next round of a race if no run of this round is due, or ends the race if it is decided or its time is up.
    fn advance(&mut self, at: usize) {
        let race = &self.races[at];
        if race.decision.is_some() {
            return;
        }
        let is_round_over = race.due_cells().next().is_none();
        let contenders = if is_round_over { self.next_contenders(race) } else { Vec::new() };
        let race = &mut self.races[at];
        if is_round_over && !contenders.is_empty() {
            (race.round, race.contenders) = (race.round + 1, contenders);
        } else if is_round_over {
            race.decision = Some(race.decide());
        }
        if self.must_decide(&self.races[at]) {
            self.races[at].decision = Some(self.races[at].decide());
        }
    }

    /// Returns the indices of the cells that the next round measures; empty if the race is decided.
    fn next_contenders(&self, race: &Race) -> Vec<usize> {
        let sound = || race.without_failures().map(|(at, _)| at).collect();
        match self.grid.search {
            Search::Exhaustive | Search::InOrder(_) if race.round + 1 < self.runs => sound(),
            Search::Exhaustive | Search::InOrder(_) => Vec::new(),
            Search::Adaptive { budget_ns } => {
                let has_second_pass = race.round == 0
                    && race.cells.len() > 1
                    && self.now_ns() <= budget_ns / FIRST_PASSES_IN_BUDGET;
                if has_second_pass { sound() } else { race.choose_contenders() }
            }
        }
    }

    /// Whether an open race must end now, because the remaining time is needed for fresh runs.
    fn must_decide(&self, race: &Race) -> bool {
        let Search::Adaptive { budget_ns } = self.grid.search else { return false };
        race.decision.is_none()
            && race.round > 0
            && self.now_ns().saturating_add(self.fresh_runs_ns()) >= budget_ns
    }

    /// Ends all open races.
    pub fn decide_open_races(&mut self) {
        for race in self.races.iter_mut().filter(|race| race.decision.is_none()) {
            race.decision = Some(race.decide());
        }
    }

    /// Returns the job to measure next; `None` at the end.
    pub fn next(&self) -> Option<usize> {
        let pick = self.due_cell().or_else(|| self.cell_for_fresh_run())?;
        Some(self.due_reference().unwrap_or(pick))
    }

    /// Returns the job of the first work's reference cell. The runs of this cell show whether the target changes.
    pub fn reference(&self) -> Option<usize> {
        self.reference_of(self.races.first()?)
    }

    /// Returns the job of a reference cell that is due. Each work has its own reference cell, since writes vary more than reads.
    fn due_reference(&self) -> Option<usize> {
        let due = |race: &Race| {
            let job = self.reference_of(race)?;
            let extra_runs = self.count_runs_of(job).checked_sub(self.min_runs())?;
            (extra_runs < race.count_runs() / REFERENCE_EVERY).then_some(job)
        };
        self.races.iter().find_map(due)
    }

    /// Returns the job of a work's reference cell: of the cells without a failed run, the middle one of those that have the access path of
    /// the first one.
    fn reference_of(&self, race: &Race) -> Option<usize> {
        let cells = &race.cells;
        let way = |cell: &RacingCell| self.grid.setting(cell.job).map(Setting::access_path);
        let sound = || cells.iter().filter(|cell| !cell.failed);
        let first = way(sound().next()?);
        let alike: Vec<&RacingCell> = sound().filter(|cell| way(cell) == first).collect();
        alike.get(alike.len() / 2).map(|cell| cell.job)
    }

    /// Returns how often a job was measured.
    pub fn count_runs_of(&self, job: usize) -> usize {
        self.cells().filter(|cell| cell.job == job).map(RacingCell::count_runs).sum()
    }

    /// Returns the mean time of a run in ns, including preparation and pauses; `run_ns` if no run was measured yet.
    pub(super) fn mean_run_ns(&self, run_ns: u64) -> u64 {
        self.spent_ns.checked_div(self.runs_done as u64).unwrap_or(run_ns)
    }

    /// Returns the remaining time in ns; a run is assumed to take `run_ns` if no run was measured yet.
    pub fn left_ns(&self, run_ns: u64) -> u64 {
        let each_ns = self.mean_run_ns(run_ns);
        let fresh_runs = self.races.iter().map(Race::remaining_fresh_runs).sum::<usize>() as u64;
        match self.grid.search {
            Search::Adaptive { budget_ns } => budget_ns.saturating_sub(self.now_ns()).max(each_ns),
            // [`OrderedSweep`] handles cells in order.
            Search::Exhaustive | Search::InOrder(_) => {
                let cells = self.races.iter().flat_map(|r| &r.cells).filter(|cell| !cell.failed);
                let open: usize = cells.map(|cell| self.runs.saturating_sub(cell.count_runs())).sum();
                (open as u64 + fresh_runs).saturating_mul(each_ns)
            }
        }
    }

    /// Whether a disturbed run with this repeat number (from 0) may be repeated now: every cell has its minimum number of runs, or the next
    /// due cell has more than `repeat` runs. `false` after the time is up.
    pub fn may_repeat(&self, repeat: u32) -> bool {
        let is_round_over = || self.due_cell().is_none_or(|job| self.count_runs_of(job) as u32 > repeat);
        !self.is_time_up() && (self.missing_runs() == 0 || is_round_over())
    }

    /// Counts the runs that are missing until every cell has its minimum number of runs.
    pub(super) fn missing_runs(&self) -> usize {
        let cells = self.races.iter().flat_map(|r| &r.cells).filter(|cell| !cell.failed);
        cells.map(|cell| self.min_runs().saturating_sub(cell.count_runs())).sum()
    }

    /// Returns the current cell and pass, or how many cells may still be the best.
    pub fn describe_progress(&self) -> String {
        let cells = || self.races.iter().flat_map(|r| &r.cells);
        let measured: usize = cells().map(|cell| cell.count_runs().min(self.min_runs())).sum();
        let all = cells().count();
        if self.missing_runs() > 0 {
            let cell = format!("cell {} of {all}", measured % all.max(1) + 1);
            return match self.min_runs() {
                1 => cell,
                passes => format!("pass {} of {passes}, {cell}", measured / all.max(1) + 1),
            };
        }
        match self.races.iter().filter(|r| r.decision.is_none()).map(|r| r.contenders.len()).sum::<usize>() {
            0 => "measuring the winners again".into(),
            open => format!("{open} of {all} cells may be the best"),
        }
    }

    /// Returns the total time of all runs in ns, including preparation and pauses.
    pub fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    fn cells(&self) -> impl Iterator<Item = &RacingCell> {
        self.races.iter().flat_map(|r| r.cells.iter().chain(&r.baselines))
    }

    /// Returns the minimum number of runs of a cell: all passes of an exhaustive search, otherwise 1.
    fn min_runs(&self) -> usize {
        if self.grid.search == Search::Exhaustive { self.runs } else { 1 }
    }

    /// Returns the job of the cell that is due in the current round. Cells of a pass through all cells come before cells
    /// of a later round. Of later rounds, the race with the fewest runs comes first. The order within a round is random.
    fn due_cell(&self) -> Option<usize> {
        let draw =
            |race: &Race, job: usize| split_mix(self.seed ^ split_mix((race.round << 32 | job) as u64));
        // The last round that may be a pass through all cells.
        let last_pass = if self.grid.search == Search::Exhaustive { usize::MAX } else { 1 };
        let rank = |race: &Race, job: usize| {
            let runs = if race.round > last_pass { race.count_runs() } else { 0 };
            (race.round.min(last_pass.saturating_add(1)), runs, draw(race, job), job)
        };
        let due = self.races.iter().flat_map(|race| race.due_cells().map(move |cell| (race, cell.job)));
        due.map(|(race, job)| rank(race, job)).min().map(|(.., job)| job)
    }

    /// Returns the job of the cell with the fewest fresh runs among the cells that need more;
    /// `None` if no cell does. If the winner needs several sets of five, only its runs in the
    /// latest set count. Ties are decided at random.
    fn cell_for_fresh_run(&self) -> Option<usize> {
        // Each candidate: the number of its fresh runs in the latest set, a random number, and its job.
        let mut candidates: Vec<(usize, u64, usize)> = Vec::new();
        for race in &self.races {
            for (cell, wanted) in race.cells_for_fresh_runs(self.is_time_up()) {
                if cell.fresh_scores.len() < wanted && !cell.failed {
                    let runs_in_set = (cell.fresh_scores.len() + FRESH_RUNS).saturating_sub(wanted);
                    let draw = split_mix(self.seed ^ split_mix((self.runs_done << 32 | cell.job) as u64));
                    candidates.push((runs_in_set, draw, cell.job));
                }
            }
        }
        candidates.into_iter().min().map(|(.., job)| job)
    }

    /// Returns when the last run ended, in ns since the start of the session; at least the total
    /// time of all runs.
    fn now_ns(&self) -> u64 {
        self.ended_ns.max(self.spent_ns)
    }

    fn is_time_up(&self) -> bool {
        matches!(self.grid.search, Search::Adaptive { budget_ns } if self.now_ns() >= budget_ns)
    }

    /// Estimates the time that the fresh runs after all races will take, in ns.
    fn fresh_runs_ns(&self) -> u64 {
        let each_ns = self.mean_run_ns(0);
        let fresh_runs: usize = self.races.iter().map(|r| FRESH_RUNS * (2 + r.baselines.len())).sum();
        each_ns.saturating_mul(fresh_runs as u64) / LONGER_DENOMINATOR * LONGER_NUMERATOR
    }

    /// Estimates, from the runs so far, the total budget in ns that would be enough to prove that
    /// no cell beats the winner of its race by more than the tolerance. `None` if that is more than
    /// an hour, if no number of runs would prove it, or if the search has no budget.
    pub fn sufficient_budget_ns(&self) -> Option<u64> {
        let Search::Adaptive { budget_ns } = self.grid.search else { return None };
        let each_ns = self.spent_ns as f64 / self.runs_done.max(1) as f64;
        let more: f64 = self.races.iter().map(Race::runs_to_prove).sum::<Option<f64>>()?;
        let budget = more.mul_add(each_ns, budget_ns as f64);
        (budget <= MAX_BUDGET_NS).then_some(budget as u64)
    }
}

/// A sweep with its runs so far.
#[derive(Debug)]
pub struct SweepProgress<'g> {
    grid: &'g Grid,
    runs: u32,
    seed: u64,
    /// Maximum number of attempts at a run that is disturbed each time.
    max_attempts: u32,
    /// All attempts so far.
    attempts: Vec<CellAttempt>,
    mode: Mode<'g>,
}

/// How a sweep goes through the grid.
#[derive(Debug)]
enum Mode<'g> {
    /// A search for the best cell by races.
    Race(BestCellSearch<'g>),
    /// All cells, in the order of the grid.
    InOrder(OrderedSweep<'g>),
}

impl<'g> Mode<'g> {
    fn after(grid: &'g Grid, runs: u32, seed: u64, runs_so_far: &[CellRun]) -> Self {
        match grid.search {
            Search::InOrder(until) => Self::InOrder(OrderedSweep::after(grid, until, runs_so_far)),
            Search::Exhaustive | Search::Adaptive { .. } => {
                Self::Race(BestCellSearch::after(grid, runs, seed, runs_so_far))
            }
        }
    }
}

impl<'g> SweepProgress<'g> {
    /// Creates a sweep after these attempts.
    pub fn after(grid: &'g Grid, plan: &Plan, attempts: &[CellAttempt]) -> Self {
        let Plan { runs, seed, attempts: max_attempts, .. } = *plan;
        let mode = Mode::after(grid, runs, seed, &counting_cell_runs(attempts));
        Self { grid, runs, seed, max_attempts, attempts: attempts.to_vec(), mode }
    }

    /// Adds an attempt.
    pub fn add(&mut self, attempt: CellAttempt) {
        self.attempts.push(attempt);
        let runs = counting_cell_runs(&self.attempts);
        match (&mut self.mode, runs.last()) {
            (Mode::Race(search), Some(last)) if attempt.attempt.attempt == 0 => search.add(last),
            (Mode::InOrder(ordered), Some(last)) => ordered.add(last),
            _ => self.mode = Mode::after(self.grid, self.runs, self.seed, &runs),
        }
    }

    /// Returns the attempt to measure next; `None` at the end.
    pub fn next(&self) -> Option<Attempt> {
        let waiting = self.waiting().first().map(|repeat| repeat.attempt);
        if let (Some(attempt), Mode::Race(search)) = (waiting, &self.mode)
            && search.may_repeat(attempt.repeat)
        {
            return Some(attempt);
        }
        let job = match &self.mode {
            Mode::Race(search) => search.next(),
            Mode::InOrder(ordered) => ordered.next(),
        }?;
        let repeat = self.count_runs_of(job) as u32;
        Some(Attempt { job, repeat, attempt: 0, offered_iops: None, disturbed: false, complete: false })
    }

    /// Returns the runs that wait for a repeat; none for cells measured in order, because each run changes the device
    /// for the next.
    fn waiting(&self) -> Vec<Repeat> {
        let Mode::Race(search) = &self.mode else { return Vec::new() };
        let attempts: Vec<Attempt> = self.attempts.iter().map(|run| run.attempt).collect();
        if attempts.iter().all(|a| !a.disturbed) {
            return Vec::new();
        }
        repeats_of(&attempts, Pairing::Runs, search.missing_runs(), self.max_attempts)
    }

    /// Returns how often a job was measured. Attempts at one run count once.
    fn count_runs_of(&self, job: usize) -> usize {
        match &self.mode {
            Mode::Race(search) => search.count_runs_of(job),
            Mode::InOrder(ordered) => ordered.count_runs_of(job),
        }
    }

    /// Returns the remaining time in ns; a run is assumed to take `run_ns` if no run was measured yet.
    pub fn left_ns(&self, run_ns: u64) -> u64 {
        match &self.mode {
            // A time budget already includes repeats.
            Mode::Race(search) if self.grid.search == Search::Exhaustive => {
                let repeats_ns = (self.waiting().len() as u64).saturating_mul(search.mean_run_ns(run_ns));
                search.left_ns(run_ns).saturating_add(repeats_ns)
            }
            Mode::Race(search) => search.left_ns(run_ns),
            Mode::InOrder(ordered) => ordered.left_ns(run_ns),
        }
    }

    /// Describes how far the sweep is, for the screen.
    pub fn describe_progress(&self) -> String {
        match &self.mode {
            Mode::Race(search) => search.describe_progress(),
            Mode::InOrder(ordered) => ordered.describe_progress(),
        }
    }
}

/// Number of rounds in the window that must be steady.
pub(crate) const WINDOW: usize = 5;

/// A cell with so few operations per second that larger block sizes are not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SlowCell {
    /// Index of its job.
    pub(crate) job: usize,
    /// Operations per second of the cell.
    pub(crate) iops: f64,
}

/// A sweep through the cells in order, with its runs so far.
#[derive(Debug)]
pub struct OrderedSweep<'g> {
    grid: &'g Grid,
    until: Until,
    jobs: Vec<usize>,
    runs: Vec<CellRun>,
}

impl<'g> OrderedSweep<'g> {
    /// Creates a sweep after these runs.
    pub fn after(grid: &'g Grid, until: Until, runs_so_far: &[CellRun]) -> Self {
        Self { grid, until, jobs: grid.jobs(), runs: runs_so_far.to_vec() }
    }

    /// Adds a run.
    pub fn add(&mut self, run: &CellRun) {
        self.runs.push(*run);
    }

    /// Returns the job to measure next; `None` at the end.
    pub fn next(&self) -> Option<usize> {
        if self.is_over() {
            return None;
        }
        match self.until {
            Until::Slow => self.open_cells().next(),
            Until::Rounds { .. } => self.jobs.get(self.runs.len() % self.jobs.len()).copied(),
        }
    }

    /// Returns the jobs of the cells that have no run yet and are not left out because of a slow cell.
    fn open_cells(&self) -> impl Iterator<Item = usize> {
        self.jobs
            .iter()
            .copied()
            .filter(|job| self.count_runs_of(*job) == 0 && self.slow_cell_of(*job).is_none())
    }

    fn is_over(&self) -> bool {
        if self.jobs.is_empty() {
            return true;
        }
        match self.until {
            Until::Slow => self.open_cells().next().is_none(),
            Until::Rounds { bytes, rounds_at_most, .. } => {
                let is_round_complete = self.runs.len().is_multiple_of(self.jobs.len());
                let is_enough = match bytes {
                    Some(bytes) => self.written_bytes() >= bytes,
                    None => self.snia().is_some_and(|r| r.met),
                };
                is_round_complete && (self.rounds() >= rounds_at_most as usize || is_enough)
            }
        }
    }

    /// Returns the first slow cell among the cells that have smaller blocks than the cell of this job and otherwise equal settings: larger
    /// blocks would take even longer.
    fn slow_cell_of(&self, job: usize) -> Option<SlowCell> {
        if self.until != Until::Slow {
            return None;
        }
        let own = self.grid.setting(job)?;
        let series = (SIZES.without)(own);
        let is_earlier = |s: &&Setting| s.block_bytes < own.block_bytes && (SIZES.without)(s) == series;
        self.runs.iter().find_map(|run| {
            let setting = self.grid.setting(run.job).filter(is_earlier)?;
            let iops = run.bytes_per_s? / f64::from(setting.block_bytes.max(1));
            (iops <= f64::from(least_iops(setting.workers))).then_some(SlowCell { job: run.job, iops })
        })
    }

    /// Returns the jobs of the cells that are left out, each with the slow cell that is the reason.
    pub(crate) fn skipped_cells(&self) -> Vec<(usize, SlowCell)> {
        let unmeasured = self.jobs.iter().filter(|job| self.count_runs_of(**job) == 0);
        unmeasured.filter_map(|job| Some((*job, self.slow_cell_of(*job)?))).collect()
    }

    /// Counts the complete rounds.
    pub(crate) fn rounds(&self) -> usize {
        self.runs.len() / self.jobs.len().max(1)
    }

    /// Returns the bytes written by all runs.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.runs.iter().map(|s| s.written_bytes).fold(0, u64::saturating_add)
    }

    /// Returns the time of all runs so far, in ns.
    pub(crate) fn spent_ns(&self) -> u64 {
        self.runs.iter().map(|s| s.took_ns).fold(0, u64::saturating_add)
    }

    /// Returns the tracked value of each complete round; `None` for a round without the value.
    pub(crate) fn tracked_values(&self) -> Vec<Option<f64>> {
        let Until::Rounds { tracked, variable, .. } = self.until else { return Vec::new() };
        let rounds = self.runs.chunks_exact(self.jobs.len().max(1));
        rounds.map(|r| self.value(variable, r.iter().find(|s| s.job == tracked)?)).collect()
    }

    fn value(&self, variable: Variable, run: &CellRun) -> Option<f64> {
        match variable {
            Variable::Iops => {
                Some(run.bytes_per_s? / f64::from(self.grid.setting(run.job)?.block_bytes.max(1)))
            }
            Variable::MbPerS => Some(run.bytes_per_s? / 1e6),
            Variable::LatencyMeanNs => run.latency_mean_ns,
        }
    }

    /// Returns the first and last round of the window, counted from 1; `None` with too few rounds,
    /// or if each cell is measured once.
    pub(crate) fn window(&self) -> Option<[u32; 2]> {
        let rounds = self.rounds();
        (rounds >= WINDOW && self.until != Until::Slow).then(|| [(rounds - WINDOW + 1) as u32, rounds as u32])
    }

    /// Returns the tracked values of the window; `None` if one is missing.
    fn tracked_in_window(&self) -> Option<Vec<f64>> {
        let tracked = self.tracked_values();
        tracked.get(tracked.len().checked_sub(WINDOW)?..)?.iter().copied().collect()
    }

    /// Applies the SNIA's criterion to the tracked values; `None` if a value of the window is missing.
    pub(crate) fn snia(&self) -> Option<Snia> {
        let snia = steady_state::apply_snia(&self.tracked_in_window()?)?;
        Some(Snia { rounds: self.rounds() as u32, ..snia })
    }

    /// Returns the mean of the tracked value in the window; `None` if a value of the window is missing.
    pub(crate) fn window_mean(&self) -> Option<f64> {
        Some(sample::mean(&self.tracked_in_window()?))
    }

    /// Returns the runs of a cell that count: those in the window, or all of them if there is no window.
    pub(crate) fn window_runs(&self, job: usize) -> impl Iterator<Item = &CellRun> {
        let len = self.jobs.len();
        let range = self
            .window()
            .map_or(0..self.runs.len(), |[first, last]| (first as usize - 1) * len..last as usize * len);
        self.runs.get(range).unwrap_or_default().iter().filter(move |s| s.job == job)
    }

    /// Returns how often a job was measured.
    pub fn count_runs_of(&self, job: usize) -> usize {
        self.runs.iter().filter(|s| s.job == job).count()
    }

    /// Returns the maximum remaining time in ns; a run is assumed to take `run_ns` if no run was measured yet.
    pub fn left_ns(&self, run_ns: u64) -> u64 {
        if self.is_over() {
            return 0;
        }
        let each_ns = self.spent_ns().checked_div(self.runs.len() as u64).unwrap_or(run_ns);
        let runs_left = match self.until {
            Until::Slow => self.open_cells().count(),
            Until::Rounds { rounds_at_most, .. } => {
                let all = self.jobs.len().saturating_mul(rounds_at_most as usize);
                all.saturating_sub(self.runs.len())
            }
        };
        (runs_left as u64).saturating_mul(each_ns)
    }

    /// Returns the current cell, and in a sweep by rounds also the current round.
    pub fn describe_progress(&self) -> String {
        let cell = self.runs.len() % self.jobs.len().max(1) + 1;
        let cells = self.jobs.len();
        match self.until {
            Until::Slow => format!("cell {cell} of at most {cells}"),
            Until::Rounds { rounds_at_most, .. } => {
                format!("round {} of at most {rounds_at_most}, cell {cell} of {cells}", self.rounds() + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests;
