//! The log of operations: taken over from workers while they run, and written to its files at the end.
//!
//! For: memory that is bounded, and files that are decided before anything is measured. Not for: what stands in the files (crate
//! `report`), nor figures, which need no log.

use crate::failure::Failure;
use crate::output::{Outlet, Rules};
use engine::workers::Who;
use model::figures::{MAX_BYTES, Operation, Rows, WorkerLog};
use model::job::{Job, Stream};
use model::name;
use model::plan::Plan;
use model::record::RunStart;
use model::units::show_bytes;
use report::LogFile;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// What has been logged so far.
#[derive(Debug, Default)]
pub struct OpLog {
    all: Vec<WorkerLog>,
    /// Of each worker of the present phase its place in `all`, where it is logged.
    present: Vec<Option<usize>>,
    bytes: usize,
}

impl OpLog {
    /// The workers of a phase are about to begin.
    pub fn begin(&mut self, plan: &Plan, start: &RunStart, run: usize) {
        let Some(job) = plan.jobs.get(start.job) else { return };
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        self.present.clear();
        let Some(phase) = job.phases.get(start.phase) else { return };
        for (stream, of) in phase.streams.iter().enumerate() {
            let first = first_number(job, start.phase, stream);
            // Intervals of fio's logs count from the end of the ramp.
            let ramp_ns = if plan.typed.is_some() { phase.warmup_ns } else { 0 };
            for number in first..first + of.workers {
                self.present.push(of.log_interval_ns.map(|interval_ns| {
                    self.all.push(WorkerLog {
                        run,
                        job: start.job,
                        phase: start.phase,
                        stream,
                        number,
                        began_unix_ms: began,
                        rows: Rows::new(of.delay_ns.max(ramp_ns), interval_ns),
                    });
                    self.all.len() - 1
                }));
            }
        }
    }

    /// Takes over what a worker hands in.
    pub fn take(&mut self, who: Who, operations: &[Operation]) {
        let place = self.present.get(who.worker as usize).copied().flatten();
        if let Some(log) = place.and_then(|place| self.all.get_mut(place)) {
            self.bytes += log.rows.take(operations);
        }
    }

    /// Why no more of it can be kept, where that is so.
    pub fn full(&self) -> Option<String> {
        (self.bytes > MAX_BYTES).then(|| {
            format!(
                "the log of operations has reached {} of memory, the most that is kept; type --op-log-interval 100ms (of fio log_avg_msec=100) for a line per interval, or a shorter --time",
                show_bytes(MAX_BYTES as u64)
            )
        })
    }
}

/// The number of the first worker of a stream over all phases of its job, from 1. What reads back has the numbers of the writer, which
/// is one thread in fio.
fn first_number(job: &Job, phase: usize, stream: usize) -> u32 {
    let of = |phase: usize| job.phases.get(phase).map_or(&[][..], |p| &p.streams);
    let back = of(phase).get(stream).and_then(Stream::reads_back);
    let (phase, stream) = phase.checked_sub(1).zip(back).unwrap_or((phase, stream));
    let before = (0..phase).flat_map(of).chain(of(phase).iter().take(stream));
    before.filter(|s| s.reads_back().is_none()).map(|s| s.workers).sum::<u32>() + 1
}

/// The files of a log, each at a place that may be written.
#[derive(Debug)]
pub struct Files {
    all: Vec<(LogFile, Outlet)>,
    rules: Rules,
}

impl Files {
    /// Decides where the logs of a plan go, beside reports in these files.
    ///
    /// # Errors
    /// As [`Rules::decide`], and where two files have one name.
    pub fn decide(plan: &Plan, rules: Rules, reports: &[PathBuf]) -> Result<Self, Failure> {
        let files = report::log_files(plan);
        let mut paths: Vec<PathBuf> = files.iter().map(|file| name::path(&file.path)).collect();
        if !files.is_empty() {
            paths.extend_from_slice(reports);
        }
        let outlets = crate::output::decide_all(&paths, &rules)?;
        Ok(Self { all: files.into_iter().zip(outlets).collect(), rules })
    }

    /// Writes them. What one of them refuses does not keep the others from being written.
    ///
    /// # Errors
    /// [`Failure::Refused`] with each that could not be written.
    pub fn write(&self, log: &OpLog) -> Result<(), Failure> {
        let mut refused = Vec::new();
        for (file, outlet) in &self.all {
            if let Err(why) = outlet.write(&file.content(&log.all), &self.rules) {
                refused.push(why.message().to_owned());
            }
        }
        if refused.is_empty() { Ok(()) } else { Err(Failure::Refused(refused.join("; "))) }
    }
}
