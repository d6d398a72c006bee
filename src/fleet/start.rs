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

/// What the gate says.
#[derive(Debug)]
pub enum Gate {
    /// The phase begins at this time; at once where nobody waits.
    Begin(Option<Instant>),
    /// A host cannot begin it, and so none does: why.
    Refused(String),
}

impl Hosts {
    /// Waits until all hosts are ready for a phase of a run; gives the time at which all begin it. With a reason why it cannot begin here,
    /// none of them does.
    pub(super) fn gate(&self, start: &RunStart, refused: Option<String>) -> Result<Gate, Failure> {
        let which = [start.job as u32, start.phase as u32, start.repeat, start.attempt];
        if start.phase == 0 {
            let mut state = self.state();
            (state.late_ns, state.before) = (Vec::new(), Vec::new());
        }
        let begin_ns = if self.rank > 0 {
            self.send(0, Letter::Ready(which, refused));
            match self.hear(0)? {
                Letter::Begin(at_ns) => Ok(at_ns),
                Letter::Refused(why) => Err(why),
                other => return Err(self.misunderstood(0, &other)),
            }
        } else {
            self.all_begin(&which, self.taking_part(start.job), refused)?
        };
        let begin_ns = match begin_ns {
            Ok(at_ns) => at_ns,
            Err(why) => return Ok(Gate::Refused(why)),
        };
        self.shared.operations.store(0, Ordering::Relaxed);
        self.shared.p99_ns.store(0, Ordering::Relaxed);
        self.shared.is_measuring.store(true, Ordering::Relaxed);
        self.shared.is_loaded.store(true, Ordering::Relaxed);
        Ok(Gate::Begin(Some(clock::instant(begin_ns))))
    }

    /// Rank 0: all that take part are ready, so their clocks are read and the start is named; or one of them cannot begin.
    fn all_begin(
        &self,
        which: &[u32; 4],
        taking_part: usize,
        mut refused: Option<String>,
    ) -> Result<Result<u64, String>, Failure> {
        for (rank, letter) in self.hear_first(taking_part)? {
            match letter {
                Letter::Ready(its, why) if its == *which => {
                    refused = refused.or_else(|| why.map(|why| format!("{}: {why}", self.name(rank))));
                }
                other => return Err(self.misunderstood(rank, &other)),
            }
        }
        if let Some(why) = refused {
            (1..taking_part).for_each(|rank| self.send(rank, Letter::Refused(why.clone())));
            return Ok(Err(why));
        }
        let readings = self.clocks();
        let begin_ns = clock::now_ns() + START_IN_NS;
        self.shared.course().begin(begin_ns);
        for rank in 1..taking_part {
            let Some(reading) = readings.get(rank).copied().flatten() else {
                let why = "does not answer when its clock is read".to_owned();
                self.shared.end(Over { rank, why, code: 3, is_silence: true });
                return Err(self.ended());
            };
            self.send(rank, Letter::Begin(reading.there(begin_ns)));
        }
        let mut state = self.state();
        state.before.push(readings.clone());
        state.readings = readings;
        Ok(Ok(begin_ns))
    }

    /// A phase has ended here. `late_ns` is how late its last worker began.
    pub(super) fn ended_phase(&self, late_ns: u64) {
        self.shared.is_measuring.store(false, Ordering::Relaxed);
        self.shared.is_loaded.store(false, Ordering::Relaxed);
        self.state().late_ns.push(Some(late_ns));
    }
}
