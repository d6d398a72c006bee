//! What is told before it is over: the record as far as it has come.
//!
//! For: fio's `--status-interval`, whose readers get whole reports while it measures. Not for: the live view ([`crate::live`]), nor for
//! judging and writing, which whoever is told does on a thread of its own.

use super::{Bench, run_of};
use crate::collector::Collector;
use model::record::{Record, RunEnd, RunEnding, RunStart};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Somebody who is told.
#[derive(Debug)]
pub struct Early {
    every: Duration,
    to: SyncSender<Record>,
    /// Time of the run under way when somebody is told next.
    due: Duration,
}

impl Early {
    /// Tells each time so much of a run has passed.
    pub fn new(every: Duration, to: SyncSender<Record>) -> Self {
        Self { every, to, due: every }
    }
}

impl Bench {
    /// A run begins.
    pub(super) fn early_begins(&mut self) {
        if let Some(early) = &mut self.early {
            early.due = early.every;
        }
    }

    /// Tells how far it is, where it is time. Nobody waits for who is told: whoever has not finished with the last one misses this one.
    pub(super) fn tell_early(&mut self, collector: &Collector, at: Duration) {
        let Some(early) = self.early.as_mut().filter(|early| at >= early.due) else { return };
        while early.due <= at {
            early.due += early.every;
        }
        let Ok(mut record) = self.session.record() else { return };
        let Some(run) = record.runs.last_mut().filter(|run| run.end.is_none()) else { return };
        let at_ns = self.epoch.elapsed().as_nanos() as u64;
        // As if it ended now: what was seen up to here holds.
        let now = |streams| RunEnd { at_ns, streams, ..RunEnd::without(RunEnding::Complete) };
        run.end = Some(now(collector.so_far()));
        let start = run.start.clone();
        let phases = self.plan.jobs.get(start.job).map_or(&[][..], |job| &job.phases);
        for (at, phase) in phases.iter().enumerate().skip(start.phase + 1) {
            // What has not begun has done nothing yet.
            let streams = Collector::new(phase.streams.len(), 1).so_far();
            let start = RunStart { phase: at, ..start.clone() };
            record.runs.push(run_of(start, Vec::new(), now(streams)));
        }
        let _ = early.to.try_send(record);
    }
}
