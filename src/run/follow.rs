//! Follows a run until its workers have ended.
//!
//! 1. The loop receives the workers' blocks (the counts and latencies of a short time), reads device
//!    counters, and updates the display.
//! 2. [`StopRules`] ends streams before their time: steady state, minimum rates, latency limits, streams that end others. Workers check limits
//!    of amount and time themselves; crate `model` has the rules.
//! 3. After each run, the display shows the job's figures over its runs so far, and the certain findings about this run,
//!    unless `--quiet` is set. The report is judged later from the record.
//! 4. [`StatusSender`] hands out the record so far, for `--status-interval` and `SIGUSR1` of `fathom fio`. The receiver judges
//!    and writes it on its own thread.

use super::{COLLECT_EVERY, Measurement};
use crate::failure::Failure;
use crate::live::JobResult;
use crate::run::collector::Collector;
use crate::run::evidence::StallWatchdog;
use crate::run::run_of;
use crate::run::stop_rules::StopRules;
use crate::signals;
use analysis::strategy::{StrategyPlan, Summary};
use analysis::{strategy, under_way};
use engine::workers::Workers;
use model::evidence::Snapshot;
use model::job::Kind;
use model::plan::Strategy;
use model::record::{Attempt, Record, RunEnd, RunEnding, RunStart, Stops, StreamEnd};
use model::units::show_count;
use model::{Known, record};
use std::cell::Cell;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// How often device counters are read inside a window.
const EVIDENCE_EVERY: Duration = Duration::from_millis(500);

/// How often the display of several hosts is updated.
const SHOW_HOSTS_EVERY: Duration = Duration::from_millis(500);

/// What was observed while the workers of a phase ran.
pub(super) struct FollowResult {
    /// Why the phase failed: a worker is stuck, or a stream missed its minimum rate. `None` if it
    /// did not fail.
    pub(super) failure: Option<String>,
    /// How often and how long fathom was stopped or frozen.
    pub(super) stops: Known<Stops>,
}

impl Measurement {
    /// Receives the workers' blocks until all workers have ended, stores device counters, and shows
    /// progress. Applies the stop rules, which may end single streams or all.
    pub(super) fn follow(
        &mut self,
        workers: &mut Workers,
        stop_rules: &mut StopRules,
        collector: &mut Collector,
        mut last: Snapshot,
        opened: Instant,
        total: Duration,
    ) -> Result<FollowResult, Failure> {
        self.begin_status_interval();
        let watchdog = StallWatchdog::begin();
        let mut recent = self.live.collect_recent(collector.interval_ns());
        let all = self.remaining();
        let shown = Cell::new(Instant::now());
        while !workers.is_done() {
            std::thread::sleep(COLLECT_EVERY);
            workers.collect(|id, block| {
                collector.add(id, block);
                stop_rules.add(id, block);
                if let Some(recent) = &mut recent {
                    recent.add(id, block);
                }
            });
            workers.take_logged(|id, operations| self.op_log.add(id, operations));
            stop_rules.apply(workers);
            if let (Some(recorder), [above]) = (&mut self.driver_recorder, collector.streams_mut()) {
                recorder.follow(above);
            }
            if self.is_stopped() || workers.any_failed() || self.op_log.full_reason().is_some() {
                workers.stop();
            }
            if let Some(why) = workers.find_stuck() {
                return Ok(FollowResult { failure: Some(why), stops: watchdog.end() });
            }
            let at = opened.elapsed();
            if Duration::from_nanos(self.now_ns() - last.at_ns) >= EVIDENCE_EVERY && at < total {
                self.store_changes(&mut last)?;
                self.store_intervals(collector, at.as_nanos().saturating_sub(1_000_000_000) as u64)?;
            }
            let messages = self.fleet.progress(collector.operations(), || collector.p99_ns());
            for message in &messages {
                self.live.say_even_if_quiet(message);
            }
            self.show_hosts(&shown);
            self.send_status(collector, at);
            self.live.tick(all.after(at));
            if let Some(recent) = &mut recent {
                self.live.show_recent(recent);
            }
        }
        Ok(FollowResult { failure: stop_rules.failure(), stops: watchdog.end() })
    }

    /// Shows the progress of each host in the live view if several measure, at most every
    /// [`SHOW_HOSTS_EVERY`]. `shown` is the time of the last update.
    pub(super) fn show_hosts(&self, shown: &Cell<Instant>) {
        if self.live.has_view() && shown.get().elapsed() >= SHOW_HOSTS_EVERY {
            shown.set(Instant::now());
            self.fleet.host_progress().into_iter().for_each(|(rows, all)| self.live.show_hosts(rows, all));
        }
    }

    /// CPU time of fathom in user space and in the kernel, in ns, without the CPU time of the display. `None` if the kernel reports no CPU
    /// time.
    pub(super) fn cpu_ns(&self) -> Option<[u64; 2]> {
        let (all, view) = (sys::thread::usage_of_process().ok()?, self.live.cpu_ns());
        Some([all.user_ns.saturating_sub(view[0]), all.system_ns.saturating_sub(view[1])])
    }

    /// Shows the figures of the last run's job over its runs so far. Without a live view, prints one line per job, after the job's last
    /// run, and none for a sweep.
    pub(super) fn show_row(&self, at: &Attempt) {
        let is_search = self.plan.study.grid().is_some();
        if !self.live.shows_results() || is_search && !self.live.has_view() {
            return;
        }
        let row = under_way::job_row(
            &self.summaries,
            &StrategyPlan::from_plan(&self.plan),
            at.job,
            at.offered_iops,
        );
        let load = at.offered_iops.map_or(String::new(), |iops| format!(" at {}/s", show_count(iops as f64)));
        let name = format!("{}{load}", self.plan.jobs[at.job].name);
        let ends = self.last_run.runs.iter().filter_map(|r| r.end.as_ref());
        let op_bytes = op_bytes(ends.flat_map(|end| &end.streams));
        // Show no findings of a disturbed run that may be repeated.
        let counts = |run: &Summary| !run.refused && (run.disturbed.is_none() || self.plan.attempts == 1);
        let findings = if self.summaries.last().is_some_and(counts) {
            under_way::findings_of_run(&self.last_run)
        } else {
            Vec::new()
        };
        self.live.show_result(JobResult { name, figures: row, op_bytes }, findings, self.is_last(at));
    }

    /// Whether the row of a job is complete: after its last run, or after each run at a load of
    /// `limit`.
    fn is_last(&self, at: &Attempt) -> bool {
        let mut strategy_plan = StrategyPlan::from_plan(&self.plan);
        // With `--settle`, conditions may require more runs later.
        if matches!(strategy_plan.strategy, Strategy::Settle { .. }) {
            strategy_plan.strategy = Strategy::Fixed;
        }
        at.offered_iops.is_some()
            || strategy::remaining_runs(&self.summaries, &strategy_plan).runs.get(at.job) == Some(&0)
    }
}

/// Mean bytes of an operation other than a sync; `None` if no bytes were moved.
fn op_bytes<'s>(streams: impl Iterator<Item = &'s StreamEnd>) -> Option<f64> {
    let (mut ops, mut bytes) = (0.0, 0.0);
    for (_, end) in streams.flat_map(|s| &s.kinds).filter(|(kind, _)| **kind != Kind::Sync) {
        ops += end.latency.count() as f64;
        bytes += end.bytes as f64;
    }
    (bytes > 0.0 && ops > 0.0).then(|| bytes / ops)
}

/// Sends the state of a running measurement to a receiver.
#[derive(Debug)]
pub struct StatusSender {
    every: Option<Duration>,
    to: SyncSender<RunStatus>,
    /// Time since the start of the phase at which the next status is due; `None` if only signals request one.
    due: Option<Duration>,
}

/// The state of a running measurement. The receiver computes the record, so that the measuring thread is not delayed.
#[derive(Debug)]
pub struct RunStatus {
    /// The session file so far, without an end of the current run.
    session: Vec<u8>,
    at_ns: u64,
    streams: Vec<StreamEnd>,
}

impl StatusSender {
    /// Sends a status after each `every` of a phase, and whenever a signal requests one.
    pub fn new(every: Option<Duration>, to: SyncSender<RunStatus>) -> Self {
        Self { every, to, due: every }
    }
}

impl RunStatus {
    /// The record as if the run had ended when the status was sent; `None` if no run was active, or the session cannot be read.
    pub fn record(self) -> Option<Record> {
        let mut record = record::decode(&self.session).ok()?.record;
        let run = record.runs.last_mut().filter(|run| run.end.is_none())?;
        let now = |streams| RunEnd { at_ns: self.at_ns, streams, ..RunEnd::without(RunEnding::Complete) };
        run.end = Some(now(self.streams));
        let start = run.start.clone();
        let phases = record.header.plan.jobs.get(start.job).map(|job| job.phases.clone()).unwrap_or_default();
        for (at, phase) in phases.iter().enumerate().skip(start.phase + 1) {
            // A phase that has not begun has no operations.
            let streams = Collector::new(phase.streams.len(), 1).so_far();
            let start = RunStart { phase: at, ..start.clone() };
            record.runs.push(run_of(start, Vec::new(), now(streams)));
        }
        Some(record)
    }
}

impl Measurement {
    /// Starts the first status interval of a phase.
    pub(super) fn begin_status_interval(&mut self) {
        if let Some(sender) = &mut self.status_sender {
            sender.due = sender.every;
        }
    }

    /// Sends a status if one is due or a signal requested one. Never waits for the receiver: while the receiver is busy, a status that is
    /// due is skipped and a requested one is sent later.
    pub(super) fn send_status(&mut self, collector: &Collector, at: Duration) {
        let Some(sender) = &mut self.status_sender else { return };
        let is_due = sender.due.is_some_and(|due| at >= due);
        let is_requested = signals::is_status_requested();
        if !is_due && !is_requested {
            return;
        }
        if let (Some(due), Some(every)) = (&mut sender.due, sender.every) {
            while *due <= at {
                *due += every;
            }
        }
        let Ok(session) = self.session.content() else { return };
        let at_ns = self.epoch.elapsed().as_nanos() as u64;
        let sent = sender.to.try_send(RunStatus { session, at_ns, streams: collector.so_far() });
        if is_requested && sent.is_ok() {
            signals::clear_status_request();
        }
    }
}

#[test]
fn operations_without_bytes_have_no_mean() {
    use model::record::KindEnd;
    let end = |bytes| {
        let mut end = KindEnd { bytes, ..KindEnd::default() };
        (0..4).for_each(|_| end.latency.record(1));
        StreamEnd { kinds: [(Kind::Read, end)].into(), ..StreamEnd::default() }
    };
    assert_eq!(op_bytes([end(16_384)].iter()), Some(4_096.0));
    assert_eq!((op_bytes([end(0)].iter()), op_bytes([].iter())), (None, None));
}
