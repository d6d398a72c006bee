//! The record: what was seen, as the session file holds it.
//!
//! For: frames and the record they add up to; each part of a frame has a file of its own. Not for: bytes on disk (that is
//! [`frame`]) nor conclusions.
//! This is format 1. When a field changes its meaning, this module becomes `v1.rs` and stays readable.

pub mod attempts;
pub mod disturbed;
mod end;
pub mod frame;
mod header;
mod interval;
mod preconditioned;
mod run;
mod stream;
mod worker;

use crate::command::CommandEnd;
use crate::evidence::Snapshot;
use crate::fleet::Fleet;
use attempts::Attempt;
use disturbed::Disturbed;
pub use self::end::{End, RunEnd, RunEnding, Still, SyncFailure, SyncedBy, WorkerStates};
pub use self::header::{Ceiling, Clock, Header, SelfTest, Trial};
pub use self::interval::{Cell, Interval, Intervals};
pub use self::preconditioned::{Preconditioned, Rounds};
pub use self::run::{Run, RunStart};
use serde::{Deserialize, Serialize};
pub use self::stream::{
    AtDriver, Bucket, Common, Issued, KindEnd, LaneEnd, LaneKind, OpenLoop, PriorityEnd, Replayed, StreamEnd,
    Written,
};
pub use self::worker::{PREPARES_AHEAD, ThreadIo, WorkerEnd};

/// Version of the session file.
pub const FORMAT: u32 = 1;

/// One piece of a session, in the order of happening.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// First frame of every file.
    Header(Box<Header>),
    /// Kernel text at a moment; inside a run it belongs to that run.
    Evidence(Box<Snapshot>),
    /// What was written before the first run, where the plan asked for it.
    Preconditioned(Preconditioned),
    /// A run begins.
    RunStart(RunStart),
    /// Some time of the run.
    Intervals(Intervals),
    /// A run has ended; closes the last `RunStart`.
    RunEnd(Box<RunEnd>),
    /// Others disturbed the run that ended last.
    Disturbed(Disturbed),
    /// What all hosts came to, in the session that has the runs of all of them merged.
    Fleet(Box<Fleet>),
    /// Last frame of a file that was closed in order.
    End(End),
}

/// A whole session, as far as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What was meant and where.
    pub header: Header,
    /// Evidence outside any run.
    pub evidence: Vec<Snapshot>,
    /// What was written before the first run; `None` where nothing was, or the session ended meanwhile.
    pub preconditioned: Option<Preconditioned>,
    /// The runs that count, in the order of happening.
    pub runs: Vec<Run>,
    /// Attempts at runs that count nowhere, since another attempt does.
    pub aside: Vec<Run>,
    /// What is known of the hosts, where the runs are those of several, merged.
    pub fleet: Option<Box<Fleet>>,
    /// The end; `None` where the program was killed.
    pub end: Option<End>,
}

/// A run of a command of the user that has ended.
#[derive(Clone, Copy, Debug)]
pub struct CommandRecord<'r> {
    /// The run with the snapshots around it.
    pub run: &'r Run,
    /// What its parent knows.
    pub end: &'r CommandEnd,
}

/// Why frames do not add up to a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disorder {
    /// The first frame is not a header.
    #[error("this is no session file: it does not begin with a header")]
    NoHeader,
    /// Written by a later version.
    #[error(
        "this session file has format {0}, and this fathom reads format {FORMAT} at most; use the fathom that wrote it or a later one"
    )]
    FromTheFuture(u32),
    /// A frame that cannot stand where it stands.
    #[error("frame {0} ({1}) cannot stand there")]
    Misplaced(usize, &'static str),
    /// An index that names nothing.
    #[error("frame {0} names {1} {2}, which the plan does not have")]
    Dangling(usize, &'static str, usize),
}

impl Record {
    /// A session that has just begun.
    pub fn new(header: Header) -> Self {
        let (evidence, runs, aside) = (Vec::new(), Vec::new(), Vec::new());
        Self { header, evidence, preconditioned: None, runs, aside, fleet: None, end: None }
    }

    /// Adds frames up to a record.
    ///
    /// # Errors
    /// [`Disorder`] where they contradict one another.
    pub fn from_frames(frames: impl IntoIterator<Item = Frame>) -> Result<Self, Disorder> {
        let mut frames = frames.into_iter().enumerate();
        let Some((_, Frame::Header(header))) = frames.next() else { return Err(Disorder::NoHeader) };
        if header.format > FORMAT {
            return Err(Disorder::FromTheFuture(header.format));
        }
        if header.plan.headline >= header.plan.results() {
            return Err(Disorder::Dangling(0, "job", header.plan.headline));
        }
        if header.hosts.is_empty() {
            return Err(Disorder::Dangling(0, "host", 0));
        }
        for job in &header.plan.jobs {
            let streams = || job.phases.iter().flat_map(|p| &p.streams);
            if streams().next().is_none() {
                return Err(Disorder::Dangling(0, "stream", 0));
            }
            let target = streams().flat_map(|s| &s.targets).find(|t| **t >= header.plan.targets.len());
            if let Some(target) = target {
                return Err(Disorder::Dangling(0, "target", *target));
            }
        }
        let mut record = Self::new(*header);
        for (at, frame) in frames {
            record.take(at, frame)?;
        }
        record.set_aside();
        Ok(record)
    }

    fn take(&mut self, at: usize, frame: Frame) -> Result<(), Disorder> {
        if self.end.is_some() {
            return Err(Disorder::Misplaced(at, "after the end"));
        }
        let before_all = self.runs.is_empty() && self.preconditioned.is_none();
        let open = self.runs.last_mut().filter(|r| r.end.is_none());
        match (frame, open) {
            (Frame::Header(_), _) => return Err(Disorder::Misplaced(at, "a second header")),
            (Frame::Evidence(e), Some(run)) => run.evidence.push(*e),
            (Frame::Evidence(e), None) => self.evidence.push(*e),
            (Frame::Preconditioned(done), None) if before_all => {
                let jobs = self.header.plan.jobs.len();
                if let Some(bad) = done.rounds.iter().find(|r| r.job >= jobs) {
                    return Err(Disorder::Dangling(at, "job", bad.job));
                }
                self.preconditioned = Some(done);
            }
            (Frame::Preconditioned(_), _) => {
                return Err(Disorder::Misplaced(at, "preconditioning"));
            }
            (Frame::Intervals(i), Some(run)) => run.intervals.extend(i.rows),
            (Frame::RunEnd(e), Some(run)) => {
                let job = self.header.plan.jobs.get(run.start.job);
                let streams = job.and_then(|job| job.phases.iter().map(|p| p.streams.len()).max());
                if let Some(bad) = e.streams.iter().find(|s| Some(s.stream) >= streams) {
                    return Err(Disorder::Dangling(at, "stream", bad.stream));
                }
                run.end = Some(*e);
            }
            (Frame::Disturbed(by), None) => self.mark(at, &by)?,
            (Frame::Disturbed(_), Some(_)) => return Err(Disorder::Misplaced(at, "inside a run")),
            (Frame::Intervals(_) | Frame::RunEnd(_), None) => {
                return Err(Disorder::Misplaced(at, "outside a run"));
            }
            (Frame::RunStart(start), _) => {
                if start.job >= self.header.plan.results() {
                    return Err(Disorder::Dangling(at, "job", start.job));
                }
                let phases = self.header.plan.jobs.get(start.job).map_or(1, |job| job.phases.len());
                if start.phase >= phases {
                    return Err(Disorder::Dangling(at, "phase", start.phase));
                }
                if start.host >= self.header.hosts.len() {
                    return Err(Disorder::Dangling(at, "host", start.host));
                }
                let (intervals, evidence) = (Vec::new(), Vec::new());
                self.runs.push(Run { start, intervals, evidence, end: None, disturbed: None });
            }
            (Frame::Fleet(fleet), _) => self.fleet = Some(fleet),
            (Frame::End(end), _) => self.end = Some(end),
        }
        Ok(())
    }

    /// Marks the attempt that ended last, all its phases.
    fn mark(&mut self, at: usize, by: &Disturbed) -> Result<(), Disorder> {
        let last = self.runs.last().map(Run::attempt).filter(|a| a.attempt == by.attempt);
        let Some(last) = last else { return Err(Disorder::Misplaced(at, "behind another attempt")) };
        let phases = self.runs.iter_mut().rev().take_while(|r| r.attempt().is_of(&last));
        phases.for_each(|run| run.disturbed = Some(by.clone()));
        Ok(())
    }

    /// Takes away the attempts that do not count.
    fn set_aside(&mut self) {
        let tried: Vec<Attempt> = self.runs.iter().map(Run::attempt).collect();
        let mut counts = attempts::counting(&tried, self.header.plan.pairing()).into_iter();
        let (runs, aside) =
            std::mem::take(&mut self.runs).into_iter().partition(|_| counts.next() == Some(true));
        (self.runs, self.aside) = (runs, aside);
    }

    /// All that were measured, counting or not, in the order of happening.
    pub fn measured(&self) -> Vec<&Run> {
        let mut all: Vec<&Run> = self.runs.iter().chain(&self.aside).collect();
        // Each of the two is in order already.
        if !self.aside.is_empty() {
            all.sort_by_key(|r| r.start.at_ns);
        }
        all
    }

    /// The runs of one phase of a job, in the order of happening.
    pub fn runs_of(&self, job: usize, phase: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |r| (r.start.job, r.start.phase) == (job, phase))
    }

    /// The runs of a command that have ended, whatever its exit code.
    pub fn command_runs(&self, command: usize) -> impl Iterator<Item = CommandRecord<'_>> {
        let runs = self.runs.iter().filter(move |run| run.start.job == command);
        runs.filter_map(|run| Some(CommandRecord { run, end: run.end.as_ref()?.command.as_deref()? }))
    }

    /// Those that ended in order.
    pub fn complete_runs(&self, job: usize, phase: usize) -> impl Iterator<Item = &Run> {
        let complete = |r: &&Run| r.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete);
        self.runs_of(job, phase).filter(complete)
    }
}
