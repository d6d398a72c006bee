//! The measuring loop: asks the strategy for the next job, measures it, appends it to the session file, and repeats.
//!
//! A sweep has its own loop over the cells of a grid, which skips cells that cannot begin and resumes earlier sessions.
//! Files in this folder: `setup` (before the first run), `specs` (workers), `target` (files and devices), `follow` (during
//! a run), `stop_rules` (ends of streams), `collector` (results), `evidence`, `precondition`.

pub mod collector;
mod evidence;
mod follow;
mod precondition;
mod setup;
mod specs;
mod stop_rules;
pub mod target;

use crate::failure::Failure;
use crate::failure::INTERRUPTED;
use crate::fleet::{CommonStart, Fleet};
use crate::live::{Live, ProgressMode, RemainingTime};
use crate::session::Session;
use analysis::runs::{CellAttempt, cell_attempts};
use analysis::strategy::cost::{run_ns, sweep_time_left, time_left};
use analysis::strategy::sweep::SweepProgress;
use analysis::strategy::{self, Next, StrategyPlan, Summary};
use analysis::{InvalidBeforeRun, Judging};
use collector::{Collector, OpLog, attempted, found_depths, interval_ns, log_waits, worker_end, wrong_reads};
use engine::link::WorkerOutcome;
use engine::workers::{WorkerId, Workers};
use evidence::DriverRecorder;
#[cfg(feature = "capture")]
pub(crate) use evidence::is_worker_of;
use follow::FollowResult;
pub use follow::{RunStatus, StatusSender};
use machine::cgroup::OwnCgroup;
use machine::processes::{BusyProcess, Processes};
use machine::root::Root;
use machine::snapshot::SnapshotReader;
use model::Known;
use model::evidence::{Moment, NEIGHBOURS, Snapshot};
use model::finding::CheckId;
use model::job::{Kind, Phase, Stream};
use model::machine::Place;
use model::plan::{Plan, Planned, Role, Strategy};
use model::record::{
    Attempt, Disturbed, End, Frame, Interval, Intervals, Preconditioned, Record, Run, RunEnd, RunEnding,
    RunStart,
};
use model::units::show_count;
pub(crate) use setup::{name_leftovers, prepare_targets, probe};
use specs::Payloads;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stop_rules::StopRules;
use sys::clock::Clock;
use sys::open_file::CloseErrors;
use target::{OpenTarget, SyncOutcome};

/// Interval at which the blocks of counters ([`engine::link::Block`]) are received from the workers. The spare blocks of a worker last for
/// at least three intervals.
const COLLECT_EVERY: Duration = Duration::from_millis(10);

/// A finished measurement: the session file, and how it ended. Dropping it removes the test files.
/// This can block forever on a dead file system, so drop it last.
pub struct Finished {
    /// The session file. If it is not kept, closing removes it.
    pub session: Session,
    /// The logged operations of all runs.
    pub op_log: OpLog,
    /// Number of writes that each worker attempted in the last run: by phase, then by worker.
    pub written: Vec<Vec<u64>>,
    /// Whether a signal ended the measurement.
    pub interrupted: bool,
    /// Whether an error ended the measurement.
    pub failed: bool,
    /// When the session began.
    #[cfg(feature = "fleet")]
    epoch: Instant,
    _targets: Vec<OpenTarget>,
}

impl Finished {
    /// Returns 130 after a signal and 3 after an error. `None` if the measurement ended normally:
    /// then the findings determine the exit code.
    pub fn exit_code(&self) -> Option<ExitCode> {
        match self {
            Self { interrupted: true, .. } => Some(ExitCode::from(INTERRUPTED)),
            Self { failed: true, .. } => Some(ExitCode::from(3)),
            _ => None,
        }
    }

    /// Returns the results of all hosts on the reporting host, and the results of this host elsewhere.
    ///
    /// # Errors
    /// If another host ended the measurement and reports the reason.
    #[cfg(feature = "fleet")]
    pub fn merge_hosts(self, fleet: &Fleet) -> Result<Self, Failure> {
        let Self { interrupted, failed, epoch, .. } = self;
        let all =
            fleet.gather(&::fleet::HostOutcome { session: &self.session, interrupted, failed, epoch })?;
        Ok(match all {
            Some(::fleet::MergedOutcome { session, interrupted, failed }) => {
                Self { session, interrupted, failed, ..self }
            }
            None => self,
        })
    }
}

/// Measures a plan into a session file, together with the other hosts of `fleet`. `earlier_record` is the session of a sweep to continue;
/// the new file begins with its results. The file remains if `keep` is set. `status_sender` sends the state during the runs. `accept` lists
/// the findings that the user accepts: if another finding invalidates every result before the first run, nothing is measured. If `accept`
/// is `None`, as for command lines of other tools, fathom measures in any case.
///
/// # Errors
/// If nothing could be measured, the sweep to continue is complete, or the session file cannot be written to its end. Other failures after
/// the first run are in the session.
pub fn measure(
    planned: Planned,
    earlier_record: Option<Record>,
    keep: bool,
    mode: ProgressMode,
    status_sender: Option<StatusSender>,
    fleet: &Fleet,
    accept: Option<&[CheckId]>,
) -> Result<Finished, Failure> {
    let end = earlier_record.as_ref().and_then(|record| record.end.as_ref());
    if end.is_some_and(|e| e.ending == RunEnding::Complete) {
        return Err(Failure::Usage("that sweep is complete; `fathom show SESSION` prints its report".into()));
    }
    let earlier = earlier_record.map(EarlierSession::from_record);
    let earlier = earlier.as_ref();
    let mut measurement = setup::begin(planned, earlier, keep, fleet, mode)?;
    measurement.status_sender = status_sender;
    measurement.accept = accept.map(<[CheckId]>::to_vec);
    let ending = match measurement.measure_all(earlier) {
        // A failure does not lose the results before it.
        Err(Failure::Refused(why) | Failure::Usage(why)) if measurement.session.runs() > 0 => {
            RunEnding::Failed(why)
        }
        Err(Failure::Interrupted | Failure::Elsewhere(_)) if measurement.session.runs() > 0 => {
            measurement.ending_of(None, true)
        }
        ending => ending?,
    };
    measurement.close(ending)
}

/// A running measurement.
struct Measurement {
    plan: Plan,
    /// Places in the block stack: one per target of the plan, except targets without a place.
    places: Vec<Place>,
    root: Root,
    snapshots: SnapshotReader,
    targets: Vec<OpenTarget>,
    session: Session,
    stop: Arc<AtomicBool>,
    live: Live,
    /// The participating hosts.
    fleet: Fleet,
    /// Sends the state during a run, if requested.
    status_sender: Option<StatusSender>,
    /// Findings that the user accepts. With `None`, fathom measures even if all results are already invalid before the first run.
    accept: Option<Vec<CheckId>>,
    clock: Clock,
    epoch: Instant,
    payloads: Payloads,
    /// Errors of closing the workers' files, until the sync after the run reports them.
    close_errors: CloseErrors,
    op_log: OpLog,
    /// Records the requests of a replay while it runs; otherwise `None`.
    driver_recorder: Option<DriverRecorder>,
    /// Number of writes that each worker attempted in the last run: by phase, then by worker. A
    /// phase that reads the data back needs it.
    written: Vec<Vec<u64>>,
    /// The session with only its last run, to find disturbances by other processes.
    last_run: Record,
    /// The time series of each phase of the last run, which several hosts compare. Empty if one
    /// host measures, so that a long run takes little memory.
    interval_series: Vec<Vec<Interval>>,
    /// Summaries of all attempts so far.
    summaries: Vec<Summary>,
    /// The remaining time of a sweep, as of the beginning of the current run. `None` for other
    /// plans, for which it is calculated from `summaries`.
    sweep_remaining: Option<RemainingTime>,
    /// Jobs of a comparison that this machine refuses.
    refused: Vec<usize>,
    /// A sentence about the host whose machine was busy before the first run. Set only if several hosts measure: their merged session has
    /// no evidence of the idle period.
    busy_host: Option<String>,
    /// Dropped last: leaves the cgroup.
    _own_cgroup: Known<OwnCgroup>,
}

/// Largest number of processes that a message names.
const MAX_NEIGHBOURS: usize = 3;

/// The processes that moved the most bytes, one per line: `dd (4711): 251658240`.
fn moved_most(busy: &[BusyProcess]) -> String {
    let mut moved: Vec<(u64, &BusyProcess)> =
        busy.iter().filter_map(|b| Some((b.io_bytes.filter(|n| *n > 0)?, b))).collect();
    moved.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let line = |(bytes, busy): &(u64, &BusyProcess)| format!("{} ({}): {bytes}\n", busy.name, busy.pid);
    moved.iter().take(MAX_NEIGHBOURS).map(line).collect()
}

impl Measurement {
    /// Preconditions, then measures all runs of the plan and, if the plan allows more, the runs that would decide an undecided condition.
    fn measure_all(&mut self, earlier: Option<&EarlierSession>) -> Result<RunEnding, Failure> {
        let ended = self.precondition_once(earlier)?;
        for frame in earlier.into_iter().flat_map(EarlierSession::frames) {
            self.session.append(&frame)?;
        }
        if let Some(ended) = ended {
            return Ok(ended);
        }
        self.store_prepared()?;
        if let Some(why) = self.invalid_before_run()? {
            return Ok(RunEnding::NotMeasured(why));
        }
        self.watch_idle()?;
        if self.plan.study.grid().is_some() {
            return self.measure_cells(earlier);
        }
        let ended = self.runs_from(0)?;
        let first = self.plan.runs;
        match self.runs_to_settle().filter(|_| ended == RunEnding::Complete) {
            Some(runs) => {
                // From here on the plan has a fixed number of runs.
                (self.plan.runs, self.plan.strategy) = (runs, Strategy::Fixed);
                self.runs_from(first)
            }
            None => Ok(ended),
        }
    }

    /// Returns why nothing is measured, if all results of a host are already invalid before the first run; otherwise `None`. If only some
    /// results are invalid, prints a warning.
    fn invalid_before_run(&self) -> Result<Option<String>, Failure> {
        let known = self
            .accept
            .as_deref()
            .and_then(|accept| analysis::find_invalid_before_run(&self.last_run, accept));
        let all = match known {
            Some(InvalidBeforeRun::All(why)) => Some(why),
            Some(InvalidBeforeRun::Some(why)) => {
                self.live.say(&format!("fathom: {why}"));
                None
            }
            None => None,
        };
        self.fleet.first_reason(all)
    }

    /// Number of runs per job that would decide an undecided condition; `None` without such a
    /// condition, or if the plan allows no more runs.
    fn runs_to_settle(&self) -> Option<u32> {
        let Strategy::Settle { .. } = self.plan.strategy else { return None };
        // If the session cannot be read, the failure is reported when the report is made.
        let record = self.session.record().ok()?;
        let judging = Judging { accept: self.accept.clone().unwrap_or_default(), ..Judging::default() };
        strategy::repeats::runs_to_settle(&analysis::judge(&record, &judging), &self.plan)
    }

    /// Measures all remaining runs from round `from` on.
    fn runs_from(&mut self, from: u32) -> Result<RunEnding, Failure> {
        // Refused jobs count as done.
        let refused = self.refused.iter().flat_map(|job| (from..self.plan.runs).map(move |n| (*job, n)));
        self.summaries.extend(refused.map(|(job, n)| Summary::refused(job, n)));
        let strategy_plan = StrategyPlan::from_plan(&self.plan);
        while let Next::Measure { job, repeat, attempt, offered_iops } =
            strategy::next(&self.summaries, &strategy_plan)
        {
            if self.should_end() {
                return Ok(RunEnding::Interrupted);
            }
            // A repeated round asks for all of its jobs, including refused ones.
            if self.refused.contains(&job) {
                self.summaries.push(Summary { attempt, ..Summary::refused(job, repeat) });
                continue;
            }
            if self.is_too_late_for(job) {
                self.summaries.push(Summary::refused(job, repeat));
                continue;
            }
            let at = Attempt { job, repeat, attempt, offered_iops, disturbed: false, complete: false };
            self.announce_run(&strategy_plan, &at);
            std::thread::sleep(Duration::from_nanos(strategy::rest_ns(&self.summaries, &strategy_plan)));
            match self.measure_job(&at)? {
                RunEnding::Complete => {}
                ended => return Ok(ended),
            }
            let (summary, _) = self.summarize(&at)?;
            self.summaries.push(summary);
            self.show_row(&at);
            self.session.sync()?;
        }
        Ok(RunEnding::Complete)
    }

    /// Whether a job's run would exceed the time of a quick bench. The headline is always measured.
    fn is_too_late_for(&self, job: usize) -> bool {
        let ends = self.now_ns().saturating_add(self.plan.jobs.get(job).map_or(0, run_ns));
        job != self.plan.headline && self.plan.quick_ns.is_some_and(|until| ends > until)
    }

    /// Returns a summary of the last run, with what disturbed it from outside fathom: other I/O,
    /// stolen CPU time, a changed cgroup limit. The second value is how the run ended on all hosts;
    /// `None` except for a sweep on several hosts.
    fn summarize(&mut self, at: &Attempt) -> Result<(Summary, Option<RunEnd>), Failure> {
        let by = strategy::disturbed::disturbances(&self.last_run);
        let disturbed = (!by.is_empty()).then_some(Disturbed { attempt: at.attempt, disturbances: by });
        // `runs` has one entry for each phase of the run.
        let phases = self.last_run.runs.iter().filter_map(|r| r.end.as_ref());
        let limit_iops = analysis::under_way::limit_iops(&self.last_run);
        let own = Summary { disturbed, limit_iops, ..Summary::from_phases(*at, phases) };
        let last_shown = std::cell::Cell::new(Instant::now());
        let report = |messages: &[String]| {
            for message in messages {
                self.live.say_even_if_quiet(message);
            }
            self.show_hosts(&last_shown);
        };
        let (summary, end) = self.fleet.merge_run(&self.last_run.runs, &self.interval_series, own, report)?;
        // If only other hosts measured this run, this session has no frames of it.
        if let Some(disturbed) = summary.disturbed.as_ref().filter(|_| !self.last_run.runs.is_empty()) {
            self.session.append(&Frame::Disturbed(disturbed.clone()))?;
        }
        Ok((summary, end))
    }

    /// Why a run is repeated: `, measured again: 240 MB/s of other processes on vda`; empty for a first attempt.
    fn why_repeated(&self, at: &Attempt) -> String {
        let pairing = self.plan.pairing();
        let before = self.summaries.iter().rev().filter(|s| s.attempt().unit(pairing) == at.unit(pairing));
        let why = before.filter(|s| s.attempt < at.attempt).find_map(|s| s.disturbed.as_ref());
        why.map_or(String::new(), |why| format!(", measured again: {}", why.describe()))
    }

    /// Preconditions before the first run, unless the resumed session has preconditioned the same targets. A file that fathom makes is new
    /// in each session, so it is preconditioned again. Returns how the session ends if preconditioning fails or is interrupted; otherwise
    /// `None`.
    fn precondition_once(&mut self, earlier: Option<&EarlierSession>) -> Result<Option<RunEnding>, Failure> {
        let same = self.plan.targets.iter().all(|t| t.role != Role::Made);
        match earlier.and_then(|session| session.preconditioned.as_ref()).filter(|_| same) {
            Some(done) => {
                self.session.append(&Frame::Preconditioned(done.clone()))?;
                Ok(None)
            }
            None => self.precondition(),
        }
    }

    /// Prints which run begins, of how many.
    fn announce_run(&self, strategy_plan: &StrategyPlan, at: &Attempt) {
        let strategy::RemainingRuns { runs, at_most, repeats } =
            strategy::remaining_runs(&self.summaries, strategy_plan);
        // Repeats do not change the run's number or the total.
        let repeated = self.summaries.iter().filter(|s| s.attempt > 0).count();
        let first_runs = self.summaries.len() - repeated;
        let all = first_runs + (runs.iter().sum::<u32>() - repeats) as usize;
        let [number, repeated] =
            if at.attempt == 0 { [first_runs + 1, repeated] } else { [first_runs, repeated + 1] };
        let repeated = if repeated > 0 { format!(" ({repeated} repeated)") } else { String::new() };
        let at_most = if at_most { "at most " } else { "" };
        let repetition =
            if self.plan.against.as_ref().is_some_and(|a| at.job >= a.first_job) { ", again" } else { "" };
        let load = at.offered_iops.map_or(String::new(), |iops| format!(" at {}/s", show_count(iops as f64)));
        let (name, why) = (&self.plan.jobs[at.job].name, self.why_repeated(at));
        let step = format!("run {number} of {at_most}{all}{repeated}  {name}{load}{repetition}{why}");
        self.live.step_run(&step, self.remaining());
    }

    /// The expected remaining time of the measurement.
    fn remaining(&self) -> RemainingTime {
        self.sweep_remaining.unwrap_or_else(|| time_left(&self.plan, &self.summaries).into())
    }

    /// Measures one run of one job: its phases without a rest between them. A phase that fails or is interrupted ends the run.
    fn measure_job(&mut self, at: &Attempt) -> Result<RunEnding, Failure> {
        let Attempt { job, repeat, attempt, offered_iops, .. } = *at;
        self.last_run.runs.clear();
        self.interval_series.clear();
        if !self.plan.participates(job) {
            return Ok(RunEnding::Complete);
        }
        // With `--until steady`, later rounds follow without a rest: a device would recover during a rest.
        let continues_rounds = repeat > 0 && matches!(self.plan.strategy, Strategy::Steady { .. });
        let mut notes = if continues_rounds { Vec::new() } else { self.evict_and_wait(Some(job)) };
        match self.place_layer(job) {
            Ok(note) => notes.extend(note),
            Err(why) => return Ok(RunEnding::Failed(why)),
        }
        notes.extend(self.warm(job));
        for phase in 0..self.plan.jobs[job].phases.len() {
            let start = RunStart {
                job,
                phase,
                repeat,
                attempt,
                offered_iops,
                host: 0,
                at_ns: 0,
                target_bytes: self.targets.iter().map(OpenTarget::bytes).collect(),
            };
            let run = self.measure_phase(start, std::mem::take(&mut notes))?;
            let ending = run.end.as_ref().map(|e| e.ending.clone());
            self.last_run.runs.push(run);
            if let Some(ended) = ending.filter(|e| *e != RunEnding::Complete) {
                return Ok(ended);
            }
        }
        let measured = !self.last_run.runs.is_empty();
        Ok(if measured { RunEnding::Complete } else { RunEnding::Failed("the job has no phase".into()) })
    }

    /// Measures one phase of a run.
    fn measure_phase(&mut self, start: RunStart, mut notes: Vec<String>) -> Result<Run, Failure> {
        let done = self.summaries.len();
        let phase = self.planned_phase(&start);
        // In one round all interfaces touch the same blocks in the same order. A run that is measured again touches the same blocks as at
        // its first attempt.
        let competes = self.plan.study.interfaces().is_some();
        let offset_seed = if competes { start.repeat as usize } else { done };
        let in_sweep = self.plan.study.grid().is_some();
        // A lost target ends the session. In a sweep, any other failure to begin concerns only this cell.
        self.targets_may_be_used(&phase)?;
        if precondition::reads_back(&phase) {
            // The run must read written data from the storage, not from the page cache.
            notes.extend(self.evict_targets(start.job));
        }
        let (workers, refused) = match self.spawn(&phase, &start, done, offset_seed) {
            Err(why) if in_sweep => (None, Some(why.message().to_owned())),
            spawned => (Some(spawned?), None),
        };
        if competes {
            // Setting up an interface may have read blocks.
            notes.extend(self.evict_targets(start.job));
        }
        let (begin, mut workers) = match (self.fleet.common_start(&start, refused)?, workers) {
            (CommonStart::Begin(at), Some(workers)) => (at, workers),
            (CommonStart::Begin(_), None) => return self.cannot_begin(start, "no worker could begin".into()),
            (CommonStart::Refused(why), _) => return self.cannot_begin(start, why),
        };
        let start = RunStart { at_ns: self.now_ns(), ..start };
        if !matches!(self.fleet, Fleet::Alone) {
            self.interval_series.push(Vec::new());
        }
        self.session.append(&Frame::RunStart(start.clone()))?;
        let first = self.store_snapshot(Moment::Start, Some(&phase))?;
        self.op_log.begin(&self.plan, &start, done + 1);
        let before = self.cpu_ns();
        let opened = collector::open(&mut workers, begin);
        let mut collector = Collector::for_phase(&phase, interval_ns(&phase));
        let mut stop_rules = StopRules::for_phase(&phase);
        let total = Duration::from_nanos(phase.warmup_ns + phase.time_ns + phase.cooldown_ns);
        self.live.begin_run(&start, &first, phase.streams.iter().map(Stream::total_depth).sum());
        let FollowResult { failure, stops } =
            self.follow(&mut workers, &mut stop_rules, &mut collector, first.clone(), opened, total)?;
        self.fleet.end_phase(workers.late_ns());
        self.live.end_run();
        let used = |(before, after): ([u64; 2], [u64; 2])| [0, 1].map(|i| after[i].saturating_sub(before[i]));
        let process_ns = before.zip(self.cpu_ns()).map(used);
        workers.collect(|id, block| collector.add(id, block));
        workers.take_logged(|id, operations| self.op_log.add(id, operations));
        let outcomes = workers.finish();
        let failure = failure.or_else(|| outcomes.iter().find_map(|(_, o)| o.error.clone()));
        let failure = failure.or_else(|| self.op_log.full_reason());
        notes.extend(self.take_outcomes(&phase, &outcomes));
        let writes = phase.streams.iter().any(Stream::changes_targets);
        let last =
            self.store_snapshot_unless_dead(Moment::Stop, failure.is_some(), (!writes).then_some(&phase))?;
        let mut workers = Vec::new();
        for (id, outcome) in outcomes {
            collector.add_outcome(id, &outcome);
            workers.push(worker_end(id, outcome));
        }
        let must_sync = writes && failure.is_none();
        let synced = if must_sync {
            self.sync_targets(&phase, opened, &workers, &mut notes)?
        } else {
            SyncOutcome::default()
        };
        self.store_intervals(&mut collector, u64::MAX)?;
        let streams = self.close_streams(&phase, collector, stop_rules, &mut notes);
        let ending = self.ending_of(
            failure.or_else(|| stop_rules::latency_violation(&phase, &streams)),
            self.is_stopped(),
        );
        let end = RunEnd {
            command: None,
            at_ns: self.now_ns(),
            ending,
            streams,
            workers,
            sync_ns: synced.took_ns,
            sync_failures: synced.failures,
            process_ns,
            stops: Some(stops),
            notes,
        };
        self.session.append(&Frame::RunEnd(Box::new(end.clone())))?;
        Ok(run_of(start, vec![first, last], end))
    }

    /// Returns the planned phase. If the run has an offered load, the phase has this host's share
    /// of it.
    fn planned_phase(&self, start: &RunStart) -> Phase {
        let mut phase = self.plan.jobs[start.job].phases[start.phase].clone();
        if let Some(iops) = start.offered_iops {
            let here = self.plan.host_load(iops);
            phase.streams.iter_mut().for_each(|s| s.pace = s.pace.offering(here));
        }
        phase
    }

    /// Makes the workers of a phase ready to begin. Runs with the same `offset_seed` draw the same offsets.
    fn spawn(
        &mut self,
        phase: &Phase,
        start: &RunStart,
        run: usize,
        offset_seed: usize,
    ) -> Result<Workers, Failure> {
        self.written.truncate(start.phase);
        let phases = &self.plan.jobs[start.job].phases;
        let before = start.phase.checked_sub(1).and_then(|at| phases.get(at));
        let mut specs = self.specs(before, phase, start.job, start.phase, run, offset_seed)?;
        for spec in &mut specs {
            spec.log = phase.streams[spec.stream].log_interval_ns.is_some();
        }
        self.driver_recorder = DriverRecorder::begin(self, phase, &specs);
        Workers::spawn(specs).map_err(|why| Failure::Refused(why.sentence))
    }

    /// Returns notes about wrong data, waits for the log, and depths that workers found. Stores the
    /// number of writes of each worker for the next phase.
    fn take_outcomes(&mut self, phase: &Phase, outcomes: &[(WorkerId, WorkerOutcome)]) -> Vec<String> {
        let written = outcomes.iter().map(|(_, outcome)| attempted(outcome, Kind::Write));
        self.written.push(written.collect());
        let wrong_reads = wrong_reads(&self.plan, phase, outcomes);
        for words in &wrong_reads {
            self.live.say_even_if_quiet(words);
        }
        log_waits(outcomes).into_iter().chain(wrong_reads).chain(found_depths(phase, outcomes)).collect()
    }

    /// Watches the machine while fathom does nothing. If other processes use the disks already, names them and does not
    /// repeat disturbed runs, since the repeats would be disturbed too. `--attempts` repeats them anyway.
    fn watch_idle(&mut self) -> Result<(), Failure> {
        let limit = Duration::from_nanos(self.plan.baseline_ns);
        if limit.is_zero() || self.is_stopped() {
            return Ok(());
        }
        self.evict_and_wait(None);
        self.live.step("watching the machine before the first run", self.remaining());
        let before = Processes::sample(&self.root);
        let start_of_idle = self.store_snapshot(Moment::IdleStart, None)?;
        let start = Instant::now();
        while start.elapsed() < limit && !self.is_stopped() {
            std::thread::sleep(Duration::from_millis(50).min(limit));
        }
        let mut end_of_idle = self.snapshots.take(Moment::IdleEnd, &self.measured_regions([].iter()), false);
        let moved =
            before.and_then(|before| Ok(moved_most(&Processes::sample(&self.root)?.busy_since(&before))));
        end_of_idle.files.insert(NEIGHBOURS.into(), moved);
        self.session.append(&Frame::Evidence(Box::new(end_of_idle.clone())))?;
        self.last_run.evidence.extend([start_of_idle, end_of_idle]);
        let neighbour =
            strategy::disturbed::find_neighbour(&self.last_run).map(|neighbour| neighbour.sentence());
        // Hosts that measure together must agree on repeats.
        let Some(mut sentence) = self.fleet.first_reason(neighbour)? else { return Ok(()) };
        let is_chosen = self.plan.origins.iter().any(|origin| origin.setting == "--attempts");
        if !is_chosen && self.plan.attempts > 1 {
            self.plan.attempts = 1;
            sentence += ", so disturbed runs are not repeated (--attempts 3 repeats them)";
        }
        self.live.say(&sentence);
        self.busy_host = Some(sentence).filter(|_| !matches!(self.fleet, Fleet::Alone));
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether to begin no more runs: after a signal, or after a key that ends the session when the current run has ended.
    fn should_end(&self) -> bool {
        self.is_stopped() || self.live.ends_after_run()
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Returns whether a run failed, was interrupted or is complete.
    fn ending_of(&self, failure: Option<String>, stopped: bool) -> RunEnding {
        match failure.or_else(|| self.fleet.early_end()) {
            Some(why) => RunEnding::Failed(why),
            None if stopped => RunEnding::Interrupted,
            None => RunEnding::Complete,
        }
    }

    /// Ends the session file.
    fn close(mut self, ending: RunEnding) -> Result<Finished, Failure> {
        let mut notes: Vec<String> = self.targets.iter().flat_map(OpenTarget::notes).cloned().collect();
        notes.extend(self.busy_host.take());
        notes.extend(self.session.omitted_note());
        let interrupted = ending == RunEnding::Interrupted;
        let failed = matches!(ending, RunEnding::Failed(_));
        if let RunEnding::Failed(why) = &ending {
            self.print_failure(why);
        }
        if interrupted && self.live.ends_after_run() && !self.is_stopped() {
            let runs = self.session.runs();
            let plural = if runs == 1 { "" } else { "s" };
            notes.push(format!(
                "ended by the key q after {runs} run{plural}; the remaining runs were not measured"
            ));
        }
        let clock_drift_ppm = self.clock.drift_ppm();
        self.session.append(&Frame::End(End { ending, notes, clock_drift_ppm }))?;
        self.session.sync()?;
        Ok(Finished {
            session: self.session,
            op_log: self.op_log,
            written: self.written,
            interrupted,
            failed,
            #[cfg(feature = "fleet")]
            epoch: self.epoch,
            _targets: self.targets,
        })
    }

    /// Prints why the session ended, and that earlier results are kept.
    fn print_failure(&self, why: &str) {
        let before = match (self.session.runs(), self.session.is_kept()) {
            (0, _) => String::new(),
            (_, true) => {
                let id = crate::history::session_id(self.session.path());
                format!("; all runs so far are kept: `fathom show {id}`")
            }
            (_, false) => "; the report has all runs so far".into(),
        };
        self.live.say_even_if_quiet(&format!("fathom: {why}{before}"));
    }
}

fn run_of(start: RunStart, evidence: Vec<Snapshot>, end: RunEnd) -> Run {
    Run { start, intervals: Vec::new(), evidence, end: Some(end), disturbed: None }
}

/// If this many cells in a row fail, the cause is not the cell, and the sweep ends.
const MAX_CONSECUTIVE_FAILURES: usize = 3;

/// An earlier session that is resumed.
struct EarlierSession {
    /// The preconditioning before the first run of that session; `None` if there was none.
    preconditioned: Option<Preconditioned>,
    runs: Vec<Run>,
    tries: Vec<CellAttempt>,
}

impl EarlierSession {
    /// Takes the runs that ended without an interruption.
    fn from_record(mut record: Record) -> Self {
        let ended = |r: &&Run| r.end.as_ref().is_some_and(|e| e.ending != RunEnding::Interrupted);
        let runs = record.all_attempts().into_iter().filter(ended).cloned().collect();
        Self { tries: cell_attempts(&record), preconditioned: record.preconditioned.take(), runs }
    }

    /// Time from the beginning of the earlier session to the end of its last run. The clock of the new session continues from there.
    fn until(&self) -> Duration {
        Duration::from_nanos(self.runs.last().and_then(|r| r.end.as_ref()).map_or(0, |e| e.at_ns))
    }

    /// The runs of the earlier session, as frames for the new session file.
    fn frames(&self) -> impl Iterator<Item = Frame> {
        self.runs.iter().flat_map(|run| {
            let Run { start, intervals, evidence, end, disturbed } = run.clone();
            let intervals =
                (!intervals.is_empty()).then_some(Frame::Intervals(Intervals { rows: intervals, merged: 0 }));
            let seen = evidence.into_iter().map(|e| Frame::Evidence(Box::new(e)));
            let end = end.map(|e| Frame::RunEnd(Box::new(e)));
            let disturbed = disturbed.map(Frame::Disturbed);
            std::iter::once(Frame::RunStart(start)).chain(seen).chain(intervals).chain(end).chain(disturbed)
        })
    }
}

impl Measurement {
    /// Measures the cells of a sweep in the order that the search chooses.
    fn measure_cells(&mut self, earlier: Option<&EarlierSession>) -> Result<RunEnding, Failure> {
        let Some(grid) = self.plan.study.grid().cloned() else { return Ok(RunEnding::Complete) };
        let before = earlier.map_or(&[][..], |e| &e.tries);
        let mut search = SweepProgress::after(&grid, &self.plan, before);
        // Data and offsets of a run depend on the number of runs before it, so count the runs of the earlier session.
        self.summaries = before.iter().map(|t| Summary::from_phases(t.attempt, std::iter::empty())).collect();
        let mut consecutive_failures = 0;
        while let Some(at) = search.next() {
            if self.should_end() {
                return Ok(RunEnding::Interrupted);
            }
            let left = sweep_time_left(&search, &self.plan).into();
            self.sweep_remaining = Some(left);
            let name = &self.plan.jobs[at.job].name;
            self.live
                .step_run(&format!("{}  {name}{}", search.describe_progress(), self.why_repeated(&at)), left);
            let ending = self.measure_job(&at)?;
            let Some(end) = self.last_run.runs.last().and_then(|r| r.end.clone()) else { return Ok(ending) };
            // A run that never began concerns only its cell.
            let began = !end.workers.is_empty();
            let Some((summary, end)) = self.summarize_cell(&at, &ending, end, began)? else {
                return Ok(RunEnding::Interrupted);
            };
            match &end.ending {
                RunEnding::Failed(why) if began => {
                    consecutive_failures += 1;
                    if consecutive_failures == MAX_CONSECUTIVE_FAILURES {
                        return Ok(RunEnding::Failed(why.clone()));
                    }
                }
                RunEnding::Complete => consecutive_failures = 0,
                _ => {}
            }
            let complete = end.ending == RunEnding::Complete;
            let at = Attempt { disturbed: summary.disturbed.is_some(), complete, ..at };
            search.add(CellAttempt::from_attempt(at, &self.plan.jobs[at.job], &end));
            self.summaries.push(summary);
            self.show_row(&at);
            self.session.sync()?;
        }
        Ok(RunEnding::Complete)
    }

    /// Returns the summary and the end of a cell's run, on all hosts if several measure; `None` after an interruption.
    fn summarize_cell(
        &mut self,
        at: &Attempt,
        ending: &RunEnding,
        end: RunEnd,
        began: bool,
    ) -> Result<Option<(Summary, RunEnd)>, Failure> {
        let refused = Summary::refused(at.job, at.repeat);
        // A run that failed here may succeed on other hosts, which wait for this host's summary.
        let is_alone = matches!(self.fleet, Fleet::Alone);
        match ending {
            RunEnding::Interrupted => return Ok(None),
            RunEnding::Failed(_) if !began || is_alone => return Ok(Some((refused, end))),
            RunEnding::Failed(_) | RunEnding::NotMeasured(_) | RunEnding::Complete => {}
        }
        let (summary, all) = self.summarize(at)?;
        let end = all.unwrap_or(end);
        Ok(Some((if end.ending == RunEnding::Complete { summary } else { refused }, end)))
    }

    /// Records a run that could not begin, with its reason, so that later judgements leave the cell out.
    fn cannot_begin(&mut self, start: RunStart, why: String) -> Result<Run, Failure> {
        let at_ns = self.now_ns();
        let start = RunStart { at_ns, ..start };
        self.session.append(&Frame::RunStart(start.clone()))?;
        let end = RunEnd { at_ns, ..RunEnd::without(RunEnding::Failed(why)) };
        self.session.append(&Frame::RunEnd(Box::new(end.clone())))?;
        self.fleet.refused(&start, &end)?;
        Ok(run_of(start, Vec::new(), end))
    }
}
