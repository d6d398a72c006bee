//! The loop of a sweep: ask the search, measure a cell, append, ask again.
//!
//! For: going through a grid, over cells that cannot be measured, and on from an earlier session. Not for: which cell comes
//! next (crate `analysis`).

use super::Measurement;
use super::ending::run_of;
use crate::failure::Failure;
use crate::fleet::Fleet;
use analysis::runs::{Try, tries};
use analysis::strategy::Summary;
use analysis::strategy::cost::search_left;
use analysis::strategy::sweep::Going;
use model::record::attempts::Attempt;
use model::record::{Frame, Intervals, Preconditioned, Record, Run, RunEnd, RunEnding, RunStart};
use std::time::Duration;

/// Cells in a row that break off: then it is not the cell.
const PATIENCE: usize = 3;

/// What is left of an earlier session that is gone on with.
pub(super) struct Earlier {
    /// What was written before its first run.
    preconditioned: Option<Preconditioned>,
    runs: Vec<Run>,
    tries: Vec<Try>,
}

impl Earlier {
    /// Its runs that ended.
    pub(super) fn from_record(mut record: Record) -> Self {
        let ended = |r: &&Run| r.end.as_ref().is_some_and(|e| e.ending != RunEnding::Interrupted);
        let runs = record.measured().into_iter().filter(ended).cloned().collect();
        Self { tries: tries(&record), preconditioned: record.preconditioned.take(), runs }
    }

    /// ns from its beginning to the end of its last run: the time goes on from there.
    pub(super) fn until(&self) -> Duration {
        Duration::from_nanos(self.runs.last().and_then(|r| r.end.as_ref()).map_or(0, |e| e.at_ns))
    }

    /// Its runs as frames, word for word.
    pub(super) fn frames(&self) -> impl Iterator<Item = Frame> {
        self.runs.iter().flat_map(|run| {
            let Run { start, intervals, evidence, end, disturbed } = run.clone();
            let course =
                (!intervals.is_empty()).then_some(Frame::Intervals(Intervals { rows: intervals, merged: 0 }));
            let seen = evidence.into_iter().map(|e| Frame::Evidence(Box::new(e)));
            let end = end.map(|e| Frame::RunEnd(Box::new(e)));
            let disturbed = disturbed.map(Frame::Disturbed);
            std::iter::once(Frame::RunStart(start)).chain(seen).chain(course).chain(end).chain(disturbed)
        })
    }

    /// What was written before its first run.
    pub(super) fn preconditioned(&self) -> Option<&Preconditioned> {
        self.preconditioned.as_ref()
    }
}

impl Measurement {
    /// The loop.
    pub(super) fn sweep(&mut self, earlier: Option<&Earlier>) -> Result<RunEnding, Failure> {
        let Some(grid) = self.plan.study.grid().cloned() else { return Ok(RunEnding::Complete) };
        let before = earlier.map_or(&[][..], |e| &e.tries);
        let mut search = Going::after(&grid, &self.plan, before);
        // How many there were says which data and offsets come next.
        self.done = before.iter().map(|t| Summary::of(t.attempt, std::iter::empty())).collect();
        let mut broken = 0;
        while let Some(at) = search.next() {
            if self.is_enough() {
                return Ok(RunEnding::Interrupted);
            }
            let left = search_left(&search, &self.plan).into();
            self.left = Some(left);
            let name = &self.plan.jobs[at.job].name;
            self.live.step(&format!("{}  {name}{}", search.stage(), self.why_again(&at)), left);
            let ending = self.job(&at)?;
            let Some(end) = self.last.runs.last().and_then(|r| r.end.clone()) else { return Ok(ending) };
            // What never began says something about the cell alone.
            let began = !end.workers.is_empty();
            let Some((summary, end)) = self.cell(&at, (ending, end), began)? else {
                return Ok(RunEnding::Interrupted);
            };
            match &end.ending {
                RunEnding::Failed(why) if began => {
                    broken += 1;
                    if broken == PATIENCE {
                        return Ok(RunEnding::Failed(why.clone()));
                    }
                }
                RunEnding::Complete => broken = 0,
                _ => {}
            }
            let complete = end.ending == RunEnding::Complete;
            let at = Attempt { disturbed: summary.disturbed.is_some(), complete, ..at };
            search.take(Try::from_attempt(at, &self.plan.jobs[at.job], &end));
            self.done.push(summary);
            self.show_row(&at);
            self.session.sync()?;
        }
        Ok(RunEnding::Complete)
    }

    /// What a run of a cell came to and how it ended, on all hosts where several measure it; `None` where it was interrupted.
    fn cell(
        &mut self,
        at: &Attempt,
        (ending, end): (RunEnding, RunEnd),
        began: bool,
    ) -> Result<Option<(Summary, RunEnd)>, Failure> {
        let refused = Summary::refused(at.job, at.repeat);
        // One that failed here may have ended in order on other hosts, which wait.
        let is_alone = matches!(self.fleet, Fleet::Alone);
        match ending {
            RunEnding::Interrupted => return Ok(None),
            RunEnding::Failed(_) if !began || is_alone => return Ok(Some((refused, end))),
            RunEnding::Failed(_) | RunEnding::NotMeasured(_) | RunEnding::Complete => {}
        }
        let (summary, all) = self.of_all(at)?;
        let end = all.unwrap_or(end);
        Ok(Some((if end.ending == RunEnding::Complete { summary } else { refused }, end)))
    }

    /// A run that could not begin: kept with its reason, so that the cell is out in every replay.
    pub(super) fn cannot_begin(&mut self, start: RunStart, why: String) -> Result<Run, Failure> {
        let at_ns = self.now_ns();
        let start = RunStart { at_ns, ..start };
        self.session.append(&Frame::RunStart(start.clone()))?;
        let end = RunEnd { at_ns, ..RunEnd::without(RunEnding::Failed(why)) };
        self.session.append(&Frame::RunEnd(Box::new(end.clone())))?;
        self.fleet.refused(&start, &end)?;
        Ok(run_of(start, Vec::new(), end))
    }
}
