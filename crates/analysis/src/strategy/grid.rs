//! Going through a grid: by whichever way the plan says, and over runs that others disturbed.
//!
//! For: one face for the loop that measures. Not for: the ways ([`super::sweep`], [`super::in_order`]).
//!
//! A run that others disturbed counts until it was measured again: then the way is gone through anew, without it.

use super::disturbed::{Again, waiting_of};
use super::in_order::InOrder;
use super::sample::{Sample, Try, timed};
use super::sweep::Search;
use model::plan::Plan;
use model::record::{Attempt, Pairing};
use model::sweep::{Grid, Search as How};

/// A sweep as far as it came.
#[derive(Debug)]
pub struct Going<'g> {
    grid: &'g Grid,
    runs: u32,
    seed: u64,
    /// Times that a run which others disturb is measured at most.
    attempts: u32,
    tries: Vec<Try>,
    way: Mode<'g>,
}

/// What decides.
#[derive(Debug)]
enum Mode<'g> {
    /// Cells race, and the best is sought.
    Race(Search<'g>),
    /// Cells in their order.
    InOrder(InOrder<'g>),
}

impl<'g> Mode<'g> {
    fn after(grid: &'g Grid, runs: u32, seed: u64, samples: &[Sample]) -> Self {
        match grid.search {
            How::InOrder(until) => Self::InOrder(InOrder::after(grid, until, samples)),
            How::Exhaustive | How::Adaptive { .. } => Self::Race(Search::after(grid, runs, seed, samples)),
        }
    }
}

impl<'g> Going<'g> {
    /// The sweep after these runs.
    pub fn after(grid: &'g Grid, plan: &Plan, tries: &[Try]) -> Self {
        let Plan { runs, seed, attempts, .. } = *plan;
        let way = Mode::after(grid, runs, seed, &timed(tries));
        Self { grid, runs, seed, attempts, tries: tries.to_vec(), way }
    }

    /// Takes a run in.
    pub fn take(&mut self, one: Try) {
        self.tries.push(one);
        let samples = timed(&self.tries);
        match (&mut self.way, samples.last()) {
            (Mode::Race(search), Some(last)) if one.attempt.attempt == 0 => search.take(last),
            (Mode::InOrder(cells), Some(last)) => cells.take(last),
            _ => self.way = Mode::after(self.grid, self.runs, self.seed, &samples),
        }
    }

    /// The run to measure next; `None` where nothing is left.
    pub fn next(&self) -> Option<Attempt> {
        let again = self.waiting().first().map(|again| again.at);
        if let (Some(again), Mode::Race(search)) = (again, &self.way)
            && search.may_repeat(again.repeat)
        {
            return Some(again);
        }
        let job = match &self.way {
            Mode::Race(search) => search.next(),
            Mode::InOrder(cells) => cells.next(),
        }?;
        let repeat = self.times(job) as u32;
        Some(Attempt { job, repeat, attempt: 0, offered_iops: None, disturbed: false, complete: false })
    }

    /// The runs that are to be measured again. Cells in order never are: each changes the device for the next.
    fn waiting(&self) -> Vec<Again> {
        let Mode::Race(search) = &self.way else { return Vec::new() };
        let tried: Vec<Attempt> = self.tries.iter().map(|t| t.attempt).collect();
        if tried.iter().all(|a| !a.disturbed) {
            return Vec::new();
        }
        waiting_of(&tried, Pairing::Runs, search.to_come(), self.attempts)
    }

    /// How often a job was measured, attempts at one run counted once.
    fn times(&self, job: usize) -> usize {
        match &self.way {
            Mode::Race(search) => search.times(job),
            Mode::InOrder(cells) => cells.times(job),
        }
    }

    /// ns that are left, where a run takes so long that was never measured yet.
    pub fn left_ns(&self, run_ns: u64) -> u64 {
        match &self.way {
            // Within a budget of time there is no more than that.
            Mode::Race(search) if self.grid.search == How::Exhaustive => {
                let again = (self.waiting().len() as u64).saturating_mul(search.each_ns(run_ns));
                search.left_ns(run_ns).saturating_add(again)
            }
            Mode::Race(search) => search.left_ns(run_ns),
            Mode::InOrder(cells) => cells.left_ns(run_ns),
        }
    }

    /// Where it is, in words.
    pub fn stage(&self) -> String {
        match &self.way {
            Mode::Race(search) => search.stage(),
            Mode::InOrder(cells) => cells.stage(),
        }
    }
}
