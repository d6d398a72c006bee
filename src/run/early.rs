//! What is told before it is over: the record as far as it has come.
//!
//! fio's `--status-interval`, and a `SIGUSR1` to `fathom fio`, ask for whole reports while it measures. The reader of the channel judges
//! and writes them on a thread of its own.

use super::Measurement;
use super::ending::run_of;
use crate::collector::Collector;
use crate::signals;
use model::record;
use model::record::{Record, RunEnd, RunEnding, RunStart, StreamEnd};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Somebody who is told.
#[derive(Debug)]
pub struct Early {
    every: Option<Duration>,
    to: SyncSender<SoFar>,
    /// Time of the run under way when the next status is due; `None` if only a signal asks for one.
    due: Option<Duration>,
}

/// How far a run is. It is read where it is wanted: the thread that makes it takes over what workers hand in.
#[derive(Debug)]
pub struct SoFar {
    /// The session file, in which this run has no end.
    session: Vec<u8>,
    at_ns: u64,
    streams: Vec<StreamEnd>,
}

impl Early {
    /// Tells each time so much of a run has passed, and whenever a signal asks for it.
    pub fn new(every: Option<Duration>, to: SyncSender<SoFar>) -> Self {
        Self { every, to, due: every }
    }
}

impl SoFar {
    /// The record as if it had ended there; `None` where no run was under way.
    pub fn record(self) -> Option<Record> {
        let (mut record, _torn) = record::decode(&self.session).ok()?;
        let run = record.runs.last_mut().filter(|run| run.end.is_none())?;
        let now = |streams| RunEnd { at_ns: self.at_ns, streams, ..RunEnd::without(RunEnding::Complete) };
        run.end = Some(now(self.streams));
        let start = run.start.clone();
        let phases = record.header.plan.jobs.get(start.job).map(|job| job.phases.clone()).unwrap_or_default();
        for (at, phase) in phases.iter().enumerate().skip(start.phase + 1) {
            // What has not begun has done nothing yet.
            let streams = Collector::new(phase.streams.len(), 1).so_far();
            let start = RunStart { phase: at, ..start.clone() };
            record.runs.push(run_of(start, Vec::new(), now(streams)));
        }
        Some(record)
    }
}

impl Measurement {
    /// A run begins.
    pub(super) fn early_begins(&mut self) {
        if let Some(early) = &mut self.early {
            early.due = early.every;
        }
    }

    /// Tells how far it is, where it is time or a signal asked for it. The run does not wait for the reader: while it is busy with one
    /// status, those of the interval are left out, and that of a signal follows later.
    pub(super) fn tell_early(&mut self, collector: &Collector, at: Duration) {
        let Some(early) = &mut self.early else { return };
        let is_due = early.due.is_some_and(|due| at >= due);
        let is_requested = signals::is_status_requested();
        if !is_due && !is_requested {
            return;
        }
        if let (Some(due), Some(every)) = (&mut early.due, early.every) {
            while *due <= at {
                *due += every;
            }
        }
        let Ok(session) = self.session.content() else { return };
        let at_ns = self.epoch.elapsed().as_nanos() as u64;
        let sent = early.to.try_send(SoFar { session, at_ns, streams: collector.so_far() });
        if is_requested && sent.is_ok() {
            signals::status_given();
        }
    }
}
