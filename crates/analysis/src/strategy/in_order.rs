//! Cells in order: one after another as the grid has them, once or in rounds, until a rule ends it.
//!
//! For: what `iops` and the SNIA's test specification do; a pure fold over what was measured so far, so that replaying it
//! resumes a sweep and judges a record alike. Not for: finding a best cell ([`super::sweep`]), nor for measuring.

use super::sample::Sample;
use model::figures::Snia;
use model::spec::axes::SIZES;
use model::sweep::{Grid, Until, Variable, least_iops};
use stats::{sample, snia};

/// Rounds of a window.
pub(crate) const WINDOW: usize = 5;

/// The sweep as far as it came.
#[derive(Debug)]
pub struct InOrder<'g> {
    grid: &'g Grid,
    until: Until,
    jobs: Vec<usize>,
    samples: Vec<Sample>,
}

impl<'g> InOrder<'g> {
    /// The sweep after these runs.
    pub fn after(grid: &'g Grid, until: Until, samples: &[Sample]) -> Self {
        Self { grid, until, jobs: grid.jobs(), samples: samples.to_vec() }
    }

    /// Takes a run in.
    pub fn take(&mut self, sample: &Sample) {
        self.samples.push(*sample);
    }

    /// The job to measure next; `None` where nothing is left.
    pub fn next(&self) -> Option<usize> {
        if self.is_over() {
            return None;
        }
        match self.until {
            Until::Slow => self.open().next(),
            Until::Rounds { .. } => self.jobs.get(self.samples.len() % self.jobs.len()).copied(),
        }
    }

    /// Cells that are measured once and were not yet.
    fn open(&self) -> impl Iterator<Item = usize> {
        self.jobs.iter().copied().filter(|job| self.times(*job) == 0 && self.too_slow(*job).is_none())
    }

    fn is_over(&self) -> bool {
        if self.jobs.is_empty() {
            return true;
        }
        match self.until {
            Until::Slow => self.open().next().is_none(),
            Until::Rounds { bytes, rounds_at_most, .. } => {
                let whole = self.samples.len().is_multiple_of(self.jobs.len());
                let enough = match bytes {
                    Some(bytes) => self.written_bytes() >= bytes,
                    None => self.rule().is_some_and(|r| r.met),
                };
                whole && (self.rounds() >= rounds_at_most as usize || enough)
            }
        }
    }

    /// The first cell that was too slow for larger ones like this one to be measured, and its operations per second: it differs
    /// from it in nothing but the size.
    fn too_slow(&self, job: usize) -> Option<(usize, f64)> {
        if self.until != Until::Slow {
            return None;
        }
        let series = (SIZES.without)(self.grid.setting(job)?);
        self.samples.iter().find_map(|sample| {
            let setting = self.grid.setting(sample.job).filter(|s| (SIZES.without)(s) == series)?;
            let iops = sample.bytes_per_s? / f64::from(setting.block_bytes.max(1));
            (iops <= f64::from(least_iops(setting.workers))).then_some((sample.job, iops))
        })
    }

    /// Cells that are left out, each with the one that was too slow and its operations per second.
    pub(crate) fn left_out(&self) -> Vec<(usize, (usize, f64))> {
        let unseen = self.jobs.iter().filter(|job| self.times(**job) == 0);
        unseen.filter_map(|job| Some((*job, self.too_slow(*job)?))).collect()
    }

    /// Complete rounds.
    pub(crate) fn rounds(&self) -> usize {
        self.samples.len() / self.jobs.len().max(1)
    }

    /// Bytes written by all runs.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.samples.iter().map(|s| s.written_bytes).fold(0, u64::saturating_add)
    }

    /// ns spent.
    pub(crate) fn spent_ns(&self) -> u64 {
        self.samples.iter().map(|s| s.took_ns).fold(0, u64::saturating_add)
    }

    /// The tracked value in each complete round.
    pub(crate) fn tracked(&self) -> Vec<Option<f64>> {
        let Until::Rounds { tracked, variable, .. } = self.until else { return Vec::new() };
        let rounds = self.samples.chunks_exact(self.jobs.len().max(1));
        rounds.map(|r| self.value(variable, r.iter().find(|s| s.job == tracked)?)).collect()
    }

    fn value(&self, variable: Variable, sample: &Sample) -> Option<f64> {
        match variable {
            Variable::Iops => {
                Some(sample.bytes_per_s? / f64::from(self.grid.setting(sample.job)?.block_bytes.max(1)))
            }
            Variable::MbPerS => Some(sample.bytes_per_s? / 1e6),
            Variable::LatencyMeanNs => Some(sample.latency_ns?.0),
        }
    }

    /// The last rounds, from 1; `None` where there are not enough.
    pub(crate) fn window(&self) -> Option<[u32; 2]> {
        let rounds = self.rounds();
        (rounds >= WINDOW && self.until != Until::Slow).then(|| [(rounds - WINDOW + 1) as u32, rounds as u32])
    }

    /// The tracked values of the window; `None` where one of them is missing.
    fn tracked_in_window(&self) -> Option<Vec<f64>> {
        let tracked = self.tracked();
        tracked.get(tracked.len().checked_sub(WINDOW)?..)?.iter().copied().collect()
    }

    /// What the rule says of the tracked value; `None` where the window misses one.
    pub(crate) fn rule(&self) -> Option<Snia> {
        let rule = snia::rule(&self.tracked_in_window()?)?;
        Some(Snia { rounds: self.rounds() as u32, ..rule })
    }

    /// Mean of the tracked value in the window.
    pub(crate) fn window_mean(&self) -> Option<f64> {
        Some(sample::mean(&self.tracked_in_window()?))
    }

    /// The runs that a cell is told by: those of the window where there is one.
    pub(crate) fn window_samples(&self, job: usize) -> impl Iterator<Item = &Sample> {
        let len = self.jobs.len();
        let range = self
            .window()
            .map_or(0..self.samples.len(), |[first, last]| (first as usize - 1) * len..last as usize * len);
        self.samples.get(range).unwrap_or_default().iter().filter(move |s| s.job == job)
    }

    /// How often a job was measured.
    pub fn times(&self, job: usize) -> usize {
        self.samples.iter().filter(|s| s.job == job).count()
    }

    /// ns that are left at most, where a run takes so long that was never measured yet.
    pub fn left_ns(&self, run_ns: u64) -> u64 {
        if self.is_over() {
            return 0;
        }
        let each = self.spent_ns().checked_div(self.samples.len() as u64).unwrap_or(run_ns);
        let left = match self.until {
            Until::Slow => self.open().count(),
            Until::Rounds { rounds_at_most, .. } => {
                let all = self.jobs.len().saturating_mul(rounds_at_most as usize);
                all.saturating_sub(self.samples.len())
            }
        };
        (left as u64).saturating_mul(each)
    }

    /// Where it is, in words.
    pub fn stage(&self) -> String {
        let cell = self.samples.len() % self.jobs.len().max(1) + 1;
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
