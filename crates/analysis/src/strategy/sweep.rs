//! The search over a grid: which cell to measure next, and which one wins.
//!
//! A pure fold over the runs so far: to replay them resumes a sweep, judges a record, and lets several hosts decide alike.
//!
//! 1. Every cell is measured once, in random order; twice if both passes fit into two thirds of the budget, so that a single
//!    stall rules no cell out. An exhaustive search does this as often as the plan has runs, and nothing else.
//! 2. Then each round measures the contenders: the best cell, and those that may be faster by more than the tolerance
//!    (`race`). A race ends when there is none, or when the time is up.
//! 3. The winner, cheaper cells that look as fast, and settings of well-known programs are measured five times, in turns.
//!
//! The cells of each work race among themselves. The race that was given least comes next.

mod levels;
mod race;

pub use race::{Closed, FEWEST_REPEATS, FRESH, Lane, Race, Rivals};

use super::sample::Sample;
use model::payload::split_mix;
use model::sweep::{Grid, Measure, Search as How, Setting};

/// Runs of a work after which one more is of its reference cell.
pub const REFERENCE_EVERY: usize = 12;
/// Part of the budget, as a divisor, in which the first pass has to fit so that a second one follows.
const FIRST_PASS: u64 = 3;
/// Longest budget that is recommended: what takes longer will find another device.
const MOST_BUDGET_NS: f64 = 3_600e9;
/// What the runs after a race take at most, as a multiple of a mean run: those of well-known programs take longer.
const LONGER: (u64, u64) = (5, 4);

/// The search as far as it came.
#[derive(Debug)]
pub struct Search<'g> {
    grid: &'g Grid,
    /// Times each cell is measured by an exhaustive search.
    runs: usize,
    seed: u64,
    /// One per work, in the order of the grid.
    pub races: Vec<Race>,
    done: usize,
    /// What all runs took with everything around them, in ns.
    spent_ns: u64,
    /// When the last run ended, in ns since the start of the session.
    ended_ns: u64,
}

impl<'g> Search<'g> {
    /// A search of which nothing is done.
    pub fn new(grid: &'g Grid, runs: u32, seed: u64) -> Self {
        let lane = |job: usize, by: Measure| {
            let memory = grid.setting(job).map_or(u64::MAX, Setting::memory_bytes);
            Lane::new(job, memory, by)
        };
        let race = |work: String| {
            let by = grid.measure(&work);
            let lanes = grid.jobs_of(&work).into_iter().map(|job| lane(job, by)).collect();
            let baselines = grid.baselines.iter().filter(|y| y.setting.work() == work);
            let baselines = baselines.map(|y| lane(y.job, by)).collect();
            Race::new(work, by, grid.tolerance, lanes, baselines)
        };
        let races = grid.works().into_iter().map(race).collect();
        Self { grid, runs: runs.max(1) as usize, seed, races, done: 0, spent_ns: 0, ended_ns: 0 }
    }

    /// The search after these runs.
    pub fn after(grid: &'g Grid, runs: u32, seed: u64, samples: &[Sample]) -> Self {
        let mut search = Self::new(grid, runs, seed);
        for sample in samples {
            search.take(sample);
        }
        search
    }

    /// Takes a run in.
    pub fn take(&mut self, sample: &Sample) {
        self.done += 1;
        self.spent_ns = self.spent_ns.saturating_add(sample.took_ns);
        self.ended_ns = self.ended_ns.max(sample.ended_ns);
        self.races.iter_mut().for_each(|race| race.take(sample));
        for at in 0..self.races.len() {
            self.advance(at);
        }
    }

    /// Ends the race in which no run is due, or begins its next round; ends every race that has to, once its time is up.
    fn advance(&mut self, at: usize) {
        let race = &self.races[at];
        if race.closed.is_some() {
            return;
        }
        let is_over = race.due().next().is_none();
        let members = if is_over { self.next_members(race) } else { Vec::new() };
        let race = &mut self.races[at];
        if is_over && !members.is_empty() {
            race.begin_round(members);
        } else if is_over {
            race.closed = Some(race.close());
        }
        if self.must_close(&self.races[at]) {
            self.races[at].closed = Some(self.races[at].close());
        }
    }

    /// The lanes of the round after this one; none if the race is decided.
    fn next_members(&self, race: &Race) -> Vec<usize> {
        let sound = || race.sound().map(|(at, _)| at).collect();
        match self.grid.search {
            How::Exhaustive | How::InOrder(_) if race.round + 1 < self.runs => sound(),
            How::Exhaustive | How::InOrder(_) => Vec::new(),
            How::Adaptive { budget_ns } => {
                let again =
                    race.round == 0 && race.lanes.len() > 1 && self.now_ns() <= budget_ns / FIRST_PASS;
                if again { sound() } else { race.contenders() }
            }
        }
    }

    /// Whether an open race has to end with what is known: every cell was measured, and the rest of the time is for the winners.
    fn must_close(&self, race: &Race) -> bool {
        let How::Adaptive { budget_ns } = self.grid.search else { return false };
        race.closed.is_none()
            && race.round > 0
            && self.now_ns().saturating_add(self.reserve_ns()) >= budget_ns
    }

    /// Ends all races with what is known, for a search that ends here.
    pub fn close(&mut self) {
        for race in self.races.iter_mut().filter(|race| race.closed.is_none()) {
            race.closed = Some(race.close());
        }
    }

    /// The job to measure next; `None` where nothing is left.
    pub fn next(&self) -> Option<usize> {
        let pick = self.due().or_else(|| self.unproven())?;
        Some(self.due_reference().unwrap_or(pick))
    }

    /// The reference cell of the first work, by which it is seen whether the target changes.
    pub fn reference(&self) -> Option<usize> {
        self.reference_of(self.races.first()?)
    }

    /// A reference cell whose turn it is: each work has its own, since writes repeat themselves less well than reads.
    fn due_reference(&self) -> Option<usize> {
        let due = |race: &Race| {
            let job = self.reference_of(race)?;
            let extra = self.times(job).checked_sub(self.least())?;
            (extra < race.tries() / REFERENCE_EVERY).then_some(job)
        };
        self.races.iter().find_map(due)
    }

    /// The cell of a work that is measured again and again: the one in the middle of the first way through it.
    fn reference_of(&self, race: &Race) -> Option<usize> {
        let lanes = &race.lanes;
        let way = |lane: &Lane| self.grid.setting(lane.job).map(Setting::way);
        let sound = || lanes.iter().filter(|l| !l.failed);
        let first = way(sound().next()?);
        let alike: Vec<&Lane> = sound().filter(|l| way(l) == first).collect();
        alike.get(alike.len() / 2).map(|l| l.job)
    }

    /// How often a job was measured.
    pub fn times(&self, job: usize) -> usize {
        self.lanes().filter(|l| l.job == job).map(Lane::tries).sum()
    }

    /// ns that a run takes with everything around it, where that was never measured yet so long.
    pub(super) fn each_ns(&self, run_ns: u64) -> u64 {
        self.spent_ns.checked_div(self.done as u64).unwrap_or(run_ns)
    }

    /// ns that are left, where a run takes so long that was never measured yet.
    pub fn left_ns(&self, run_ns: u64) -> u64 {
        let each = self.each_ns(run_ns);
        let finals = self.races.iter().map(Race::finals).sum::<usize>() as u64;
        match self.grid.search {
            How::Adaptive { budget_ns } => budget_ns.saturating_sub(self.now_ns()).max(each),
            // Cells in order are another fold's ([`super::in_order`]); were they this one's, each would be measured so often.
            How::Exhaustive | How::InOrder(_) => {
                let cells = self.races.iter().flat_map(|r| &r.lanes).filter(|l| !l.failed);
                let open: usize = cells.map(|l| self.runs.saturating_sub(l.tries())).sum();
                (open as u64 + finals).saturating_mul(each)
            }
        }
    }

    /// Whether a run that others disturbed may be measured again now: in a pass through all cells after its round, later at
    /// once, so that the next round begins with it. Once the time is up it is not.
    pub fn may_repeat(&self, repeat: u32) -> bool {
        let is_over = || self.due().is_none_or(|job| self.times(job) as u32 > repeat);
        !self.time_is_up() && (self.to_come() == 0 || is_over())
    }

    /// Runs that every cell gets and has not yet.
    pub(super) fn to_come(&self) -> usize {
        let cells = self.races.iter().flat_map(|r| &r.lanes).filter(|l| !l.failed);
        cells.map(|l| self.least().saturating_sub(l.tries())).sum()
    }

    /// Where it is, in words.
    pub fn stage(&self) -> String {
        let cells = || self.races.iter().flat_map(|r| &r.lanes);
        let seen: usize = cells().map(|l| l.tries().min(self.least())).sum();
        let all = cells().count() * self.least();
        if self.to_come() > 0 {
            return format!("cell {} of {all}", seen + 1);
        }
        match self.races.iter().filter(|r| r.closed.is_none()).map(|r| r.members.len()).sum::<usize>() {
            0 => "the winners once more".into(),
            open => format!("{open} of {all} cells may be the best"),
        }
    }

    /// ns from the first run to the last.
    pub fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.races.iter().flat_map(|r| r.lanes.iter().chain(&r.baselines))
    }

    /// Runs that every cell gets.
    fn least(&self) -> usize {
        if self.grid.search == How::Exhaustive { self.runs } else { 1 }
    }

    /// A cell that is due in a round: first the passes through all cells, then the race that was given least. The order within
    /// a round is drawn.
    fn due(&self) -> Option<usize> {
        let draw =
            |race: &Race, job: usize| split_mix(self.seed ^ split_mix((race.round << 32 | job) as u64));
        let passes = if self.grid.search == How::Exhaustive { usize::MAX } else { 1 };
        let key = |race: &Race, job: usize| {
            let given = if race.round > passes { race.tries() } else { 0 };
            (race.round.min(passes.saturating_add(1)), given, draw(race, job), job)
        };
        let due = self.races.iter().flat_map(|race| race.due().map(move |lane| (race, lane.job)));
        due.map(|(race, job)| key(race, job)).min().map(|(.., job)| job)
    }

    /// Among what is measured when races are closed, the cell that has least of it; ties are drawn.
    fn unproven(&self) -> Option<usize> {
        let mut wanted: Vec<(usize, u64, usize)> = Vec::new();
        for race in &self.races {
            for (lane, want) in race.wanted(self.time_is_up()) {
                if lane.fresh.len() < want && !lane.failed {
                    let begun = (lane.fresh.len() + FRESH).saturating_sub(want);
                    let draw = split_mix(self.seed ^ split_mix((self.done << 32 | lane.job) as u64));
                    wanted.push((begun, draw, lane.job));
                }
            }
        }
        wanted.into_iter().min().map(|(.., job)| job)
    }

    /// ns since the start of the session.
    fn now_ns(&self) -> u64 {
        self.ended_ns.max(self.spent_ns)
    }

    fn time_is_up(&self) -> bool {
        matches!(self.grid.search, How::Adaptive { budget_ns } if self.now_ns() >= budget_ns)
    }

    /// What measuring the winners once more will take.
    fn reserve_ns(&self) -> u64 {
        let each = self.spent_ns / self.done.max(1) as u64;
        let finals: usize = self.races.iter().map(|r| FRESH * (2 + r.baselines.len())).sum();
        each.saturating_mul(finals as u64) / LONGER.1 * LONGER.0
    }

    /// A budget with which no cell may be faster than the winner of its work by more than the tolerance, as far as the runs so
    /// far tell; `None` if more runs do not do that, or in a search without a budget.
    pub fn sufficient_budget_ns(&self) -> Option<u64> {
        let How::Adaptive { budget_ns } = self.grid.search else { return None };
        let each = self.spent_ns as f64 / self.done.max(1) as f64;
        let more: f64 = self.races.iter().map(Race::more_runs).sum::<Option<f64>>()?;
        let budget = more.mul_add(each, budget_ns as f64);
        (budget <= MOST_BUDGET_NS).then_some(budget as u64)
    }
}

#[cfg(test)]
mod tests;
