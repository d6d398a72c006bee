//! The whole: the session file with the runs of all hosts merged, on rank 0.
//!
//! For: appending to it as runs end, so that no host that is lost takes what was measured with it. Not for: the session that each host
//! has of its own.

use crate::failure::Failure;
use crate::session::Session;
use model::fleet::{Fleet, RunSeen};
use model::record::{Disturbed, End, Frame, Header, RunEnd, RunEnding, RunStart};

/// What all hosts came to so far.
#[derive(Default)]
pub(super) struct Whole {
    session: Option<Session>,
    pub(super) runs: Vec<RunSeen>,
    pub(super) differences: Vec<String>,
}

impl Whole {
    /// Begins the file.
    pub(super) fn begin(&mut self, header: Header, name: &str, keep: bool) -> Result<(), Failure> {
        let hosts = header.hosts.len();
        let mut session = Session::open(&format!("{name}-{hosts}-hosts"), keep)?;
        session.append(&Frame::Header(Box::new(header)))?;
        self.session = Some(session);
        Ok(())
    }

    /// Appends a run that has ended on all hosts.
    pub(super) fn append(&mut self, start: RunStart, end: RunEnd) -> Result<(), Failure> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.append(&Frame::RunStart(start))?;
        session.append(&Frame::RunEnd(Box::new(end)))?;
        session.sync()
    }

    /// Appends that others disturbed the run before it.
    pub(super) fn append_disturbed(&mut self, disturbed: &Disturbed) -> Result<(), Failure> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.append(&Frame::Disturbed(disturbed.clone()))
    }

    /// Ends the file with what was seen of the hosts, and hands it over; `None` where it never began.
    pub(super) fn end(
        &mut self,
        seen: Fleet,
        (ending, notes, clock_drift_ppm): (RunEnding, Vec<String>, Option<f64>),
    ) -> Result<Option<Session>, Failure> {
        let Some(mut session) = self.session.take() else { return Ok(None) };
        let (runs, differences) = (std::mem::take(&mut self.runs), std::mem::take(&mut self.differences));
        session.append(&Frame::Fleet(Box::new(Fleet { runs, differences, ..seen })))?;
        session.append(&Frame::End(End { ending, notes, clock_drift_ppm }))?;
        session.sync()?;
        Ok(Some(session))
    }
}
