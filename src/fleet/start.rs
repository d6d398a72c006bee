//! The start gate: all hosts are ready, their clocks are read, and one time is named at which all begin.
//!
//! For: beginning together, and how well that was done. Not for: the workers' own barrier, which holds them until that time
//! (`engine::workers`).

use super::clock;
use super::hosts::Hosts;
use super::letter::{Letter, Over};
use crate::failure::Failure;
use model::record::RunStart;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// From when rank 0 names the start to the start: letters travel, and every host looks at its counters once more.
const START_IN_NS: u64 = 100_000_000;

impl Hosts {
    /// Waits until all hosts are ready for a phase of a run; gives the time at which all begin it.
    pub(super) fn gate(&self, start: &RunStart) -> Result<Instant, Failure> {
        let which = [start.job as u32, start.phase as u32, start.repeat, start.attempt];
        if start.phase == 0 {
            let mut state = self.state();
            (state.late_ns, state.before) = (Vec::new(), Vec::new());
        }
        let begin_ns = if self.rank > 0 {
            self.send(0, Letter::Ready(which));
            match self.hear(0)? {
                Letter::Begin(at_ns) => at_ns,
                other => return Err(self.misunderstood(0, &other)),
            }
        } else {
            self.all_begin(&which, self.taking_part(start.job))?
        };
        self.shared.operations.store(0, Ordering::Relaxed);
        self.shared.is_measuring.store(true, Ordering::Relaxed);
        self.shared.is_loaded.store(true, Ordering::Relaxed);
        Ok(clock::instant(begin_ns))
    }

    /// Rank 0: all that take part are ready, so their clocks are read and the start is named.
    fn all_begin(&self, which: &[u32; 4], taking_part: usize) -> Result<u64, Failure> {
        for (rank, letter) in self.hear_first(taking_part)? {
            match letter {
                Letter::Ready(its) if its == *which => {}
                other => return Err(self.misunderstood(rank, &other)),
            }
        }
        let readings = self.clocks();
        let begin_ns = clock::now_ns() + START_IN_NS;
        self.shared.course().begin(begin_ns);
        for rank in 1..taking_part {
            let Some(reading) = readings.get(rank).copied().flatten() else {
                let why = "does not answer when its clock is read".to_owned();
                self.shared.end(Over { rank, why, code: 3 });
                return Err(self.ended());
            };
            self.send(rank, Letter::Begin(reading.there(begin_ns)));
        }
        let mut state = self.state();
        state.before.push(readings.clone());
        state.readings = readings;
        Ok(begin_ns)
    }

    /// A phase has ended here. `late_ns` is how late its last worker began.
    pub(super) fn ended_phase(&self, late_ns: u64) {
        self.shared.is_measuring.store(false, Ordering::Relaxed);
        self.shared.is_loaded.store(false, Ordering::Relaxed);
        self.state().late_ns.push(Some(late_ns));
    }
}
