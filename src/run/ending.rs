//! Ending: the last frame of a session, and what is said where it is not the end that was planned.
//!
//! For: closing the session file, whatever ended the measurement. Not for: deciding when it ends.

use super::{Finished, Measurement};
use crate::failure::Failure;
use crate::fleet::{Fleet, Gathered, HostOutcome};
use crate::target::Ready;
use model::evidence::Snapshot;
use model::record::{End, Frame, Run, RunEnd, RunEnding, RunStart};

impl Finished {
    /// What was measured on all hosts, where several took part and this one tells it; what was measured here otherwise.
    ///
    /// # Errors
    /// Where another host ended it, and tells that.
    pub fn of_all(self, fleet: &Fleet) -> Result<Self, Failure> {
        let Self { interrupted, failed, epoch, .. } = self;
        let all = fleet.gather(&HostOutcome { session: &self.session, interrupted, failed, epoch })?;
        Ok(match all {
            Some(Gathered { session, interrupted, failed }) => Self { session, interrupted, failed, ..self },
            None => self,
        })
    }
}

impl Measurement {
    /// How a run ended, by what failed in it.
    pub(super) fn ending_of(&self, failure: Option<String>, stopped: bool) -> RunEnding {
        match failure.or_else(|| self.fleet.over()) {
            Some(why) => RunEnding::Failed(why),
            None if stopped => RunEnding::Interrupted,
            None => RunEnding::Complete,
        }
    }

    /// Ends the session file.
    pub(super) fn close(mut self, ending: RunEnding) -> Result<Finished, Failure> {
        let mut notes: Vec<String> = self.targets.iter().flat_map(Ready::notes).cloned().collect();
        notes.extend(self.busy_host.take());
        if self.session.left_out() > 0 {
            notes.push(format!(
                "the session file reached its limit; {} frames of its course were left out",
                self.session.left_out()
            ));
        }
        let interrupted = ending == RunEnding::Interrupted;
        let failed = matches!(ending, RunEnding::Failed(_));
        if let RunEnding::Failed(why) = &ending {
            self.tell_failure(why);
        }
        if interrupted && self.live.is_enough() && !self.stopped() {
            let runs = match self.session.runs() {
                1 => "1 run".to_owned(),
                n => format!("{n} runs"),
            };
            notes.push(format!("ended by the key q after {runs}; what was to follow was not measured"));
        }
        let clock_drift_ppm = self.clock.drift_ppm();
        self.session.append(&Frame::End(End { ending, notes, clock_drift_ppm }))?;
        self.session.sync()?;
        let Self { session, op_log, epoch, targets, .. } = self;
        Ok(Finished { session, op_log, interrupted, failed, epoch, _targets: targets })
    }

    /// Says why it ended, and that what was measured before is not lost.
    fn tell_failure(&self, why: &str) {
        let before = match (self.session.runs(), self.session.is_kept()) {
            (0, _) => String::new(),
            (n, true) => {
                let id = crate::history::id(self.session.path());
                format!("; the {n} runs that were recorded are kept: `fathom show {id}`")
            }
            (n, false) => format!("; the report has the {n} runs that were recorded"),
        };
        self.live.tell(&format!("fathom: {why}{before}"));
    }
}

pub(super) fn run_of(start: RunStart, evidence: Vec<Snapshot>, end: RunEnd) -> Run {
    Run { start, intervals: Vec::new(), evidence, end: Some(end), disturbed: None }
}
