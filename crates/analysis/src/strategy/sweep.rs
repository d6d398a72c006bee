//! The search over a grid: which cell to measure next, and which one wins.
//!
//! For: a pure fold over what was measured so far, so that replaying it resumes a sweep and judges a record alike. Not for:
//! measuring, nor for the report of it (`crate::sweep`).
//!
//! Cells of one work race. Every cell is measured once (or as often as an exhaustive search says) in random order. Then, in an
//! adaptive search, always the leader or the cell that may beat it by most is measured again, whichever is known worse: the
//! algorithm LUCB of Kalyanakrishnan et al. (ICML 2012) with bounds from the spread of repeats on logarithms. A race is closed
//! when surely no cell is more than 3 % faster than the leader, or when the time is up. What is printed of the winner is
//! measured afterwards: the best of many noisy figures is too good, and fresh runs are not.

mod race;

pub use race::{Closed, FEWEST_REPEATS, FRESH, Lane, Race, Rivals};

use race::{Noise, TWICE};

use super::sample::Sample;
use model::measure::Measure;
use model::payload::split_mix;
use model::sweep::{Grid, Search as How, Setting};

/// Every so many runs of a work one more is of its reference cell.
pub const REFERENCE_EVERY: usize = 12;

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
    spent_ns: u64,
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
            let baselines = grid.baselines.iter().filter(|y| y.setting.work() == work);
            Race {
                lanes: grid.jobs_of(&work).into_iter().map(|job| lane(job, by)).collect(),
                baselines: baselines.map(|y| lane(y.job, by)).collect(),
                closed: None,
                by,
                work,
            }
        };
        let races = grid.works().into_iter().map(race).collect();
        Self { grid, runs: runs.max(1) as usize, seed, races, done: 0, spent_ns: 0 }
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
        for race in &mut self.races {
            let closed = race.closed.is_some();
            let lanes = race.lanes.iter_mut().chain(&mut race.baselines);
            if let Some(lane) = lanes.into_iter().find(|l| l.job == sample.job) {
                lane.take(sample, closed);
            }
        }
        for at in 0..self.races.len() {
            if self.races[at].closed.is_none() {
                self.races[at].closed = self.closing(at);
            }
        }
    }

    /// The job to measure next; `None` where nothing is left.
    pub fn next(&self) -> Option<usize> {
        let pick = self.unseen().or_else(|| self.undecided()).or_else(|| self.unproven())?;
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
            How::Adaptive { budget_ns } => budget_ns.saturating_sub(self.spent_ns).max(each),
            // Cells in order are another fold's ([`super::in_order`]); were they this one's, each would be measured so often.
            How::Exhaustive | How::InOrder(_) => {
                let cells = self.races.iter().flat_map(|r| &r.lanes).filter(|l| !l.failed);
                let open: usize = cells.map(|l| self.runs.saturating_sub(l.tries())).sum();
                (open as u64 + finals).saturating_mul(each)
            }
        }
    }

    /// Whether the round of a run is over, so that it may be measured again; once the time is up it is not.
    pub fn may_repeat(&self, repeat: u32) -> bool {
        !self.time_is_up() && self.unseen().is_none_or(|job| self.times(job) as u32 > repeat)
    }

    /// Runs that every cell gets and has not yet.
    pub(super) fn to_come(&self) -> usize {
        let cells = self.races.iter().flat_map(|r| &r.lanes).filter(|l| !l.failed);
        cells.map(|l| self.least().saturating_sub(l.tries())).sum()
    }

    /// Where it is, in words.
    pub fn stage(&self) -> String {
        let runs = if self.grid.search == How::Exhaustive { self.runs } else { 1 };
        let cells = || self.races.iter().flat_map(|r| &r.lanes);
        let seen: usize = cells().map(|l| l.tries().min(runs)).sum();
        let all = cells().count() * runs;
        if self.unseen().is_some() {
            return format!("cell {} of {all}", seen + 1);
        }
        match self.races.iter().filter(|r| r.closed.is_none()).count() {
            0 => "the winners once more".into(),
            _ => format!("choosing among {all} cells"),
        }
    }

    /// ns spent.
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

    /// A cell that was not measured as often as every cell is, in an order drawn anew for each round.
    fn unseen(&self) -> Option<usize> {
        let cells: Vec<&Lane> = self.races.iter().flat_map(|r| &r.lanes).filter(|l| !l.failed).collect();
        (0..self.least()).find_map(|round| {
            let open = cells.iter().filter(|l| l.tries() <= round);
            open.map(|l| l.job).min_by_key(|job| split_mix(self.seed ^ split_mix((round << 32 | job) as u64)))
        })
    }

    /// The cell that says most about the open race that was given least.
    fn undecided(&self) -> Option<usize> {
        let race = self.races.iter().filter(|r| r.closed.is_none()).min_by_key(|r| r.tries())?;
        let (leader, challenger, _) =
            race.closest_two().or_else(|| Some((race.leader()?, race.leader()?, 0.0)))?;
        if race.lanes[leader].logs.len() < TWICE {
            return Some(race.lanes[leader].job);
        }
        let spread = Noise::supposed(&race.lanes);
        let unsure = |at: usize| spread.of_mean(&race.lanes[at].logs);
        let at = if unsure(leader) > unsure(challenger) { leader } else { challenger };
        Some(race.lanes[at].job)
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

    fn time_is_up(&self) -> bool {
        matches!(self.grid.search, How::Adaptive { budget_ns } if self.spent_ns >= budget_ns)
    }

    /// How a race is decided by now; `None` where it is not.
    fn closing(&self, at: usize) -> Option<Closed> {
        let race = &self.races[at];
        let sound = || race.lanes.iter().filter(|l| !l.failed);
        if sound().any(|l| l.logs.len() < self.least()) {
            return None;
        }
        let over = match self.grid.search {
            How::Exhaustive | How::InOrder(_) => true,
            How::Adaptive { budget_ns } => self.spent_ns.saturating_add(self.reserve_ns()) >= budget_ns,
        };
        (over || race.is_decided()).then(|| race.close())
    }

    /// What measuring the winners once more will take.
    fn reserve_ns(&self) -> u64 {
        let each = self.spent_ns / self.done.max(1) as u64;
        let finals: usize = self.races.iter().map(|r| FRESH * (2 + r.baselines.len())).sum();
        each.saturating_mul(finals as u64)
    }
}

#[cfg(test)]
mod tests;
