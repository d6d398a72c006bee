//! Going through a grid: by whichever way the plan says.
//!
//! For: one face for the loop that measures. Not for: the ways ([`super::sweep`], [`super::in_order`]).

use super::in_order::InOrder;
use super::sweep::{Sample, Search};
use model::sweep::{Grid, Search as How};

/// A sweep as far as it came.
#[derive(Debug)]
pub enum Going<'g> {
    /// Cells race, and the best is sought.
    Race(Search<'g>),
    /// Cells in their order.
    InOrder(InOrder<'g>),
}

impl<'g> Going<'g> {
    /// The sweep after these runs.
    pub fn after(grid: &'g Grid, runs: u32, seed: u64, samples: &[Sample]) -> Self {
        match grid.search {
            How::InOrder(until) => Self::InOrder(InOrder::after(grid, until, samples)),
            How::Exhaustive | How::Adaptive { .. } => Self::Race(Search::after(grid, runs, seed, samples)),
        }
    }

    /// Takes a run in.
    pub fn take(&mut self, sample: &Sample) {
        match self {
            Self::Race(search) => search.take(sample),
            Self::InOrder(cells) => cells.take(sample),
        }
    }

    /// The job to measure next; `None` where nothing is left.
    pub fn next(&self) -> Option<usize> {
        match self {
            Self::Race(search) => search.next(),
            Self::InOrder(cells) => cells.next(),
        }
    }

    /// How often a job was measured.
    pub fn times(&self, job: usize) -> usize {
        match self {
            Self::Race(search) => search.times(job),
            Self::InOrder(cells) => cells.times(job),
        }
    }

    /// ns that are left, where a run takes so long that was never measured yet.
    pub fn left_ns(&self, run_ns: u64) -> u64 {
        match self {
            Self::Race(search) => search.left_ns(run_ns),
            Self::InOrder(cells) => cells.left_ns(run_ns),
        }
    }

    /// Where it is, in words.
    pub fn stage(&self) -> String {
        match self {
            Self::Race(search) => search.stage(),
            Self::InOrder(cells) => cells.stage(),
        }
    }
}
