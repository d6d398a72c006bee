//! The results of runs as plain numbers: the summary of a run, the rounds of a job that count, the capacity of a load curve, and the runs of
//! a grid's cells. Strategies use them while measuring, cases while judging.

use model::histogram::Histogram;
use model::job::{Arrivals, Job, Kind, Stream};
use model::plan::Strategy;
use model::record;
use model::record::{Attempt, Disturbed, KindEnd, Pairing, Record, Run, RunEnd, RunEnding, StreamEnd};
use model::sweep::Measure;
use stats::intervals;
use stats::steady_state::{WINDOW, is_steady};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Minimum share of an open loop's offered operations that must complete within the windows.
pub(crate) const SERVED_FROM: f64 = 0.99;

/// Number of standard deviations by which random arrivals may fall below the requested rate. By chance, one run in a
/// thousand falls below it by more.
pub(crate) const MAX_ARRIVAL_DEVIATIONS: f64 = 3.0;

/// A run that ended, or that the machine refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Index of the job.
    pub job: usize,
    /// Number of earlier runs of the job; in a load curve, of runs at the same load.
    pub repeat: u32,
    /// Number of earlier attempts at this run.
    pub attempt: u32,
    /// The load in operations per second that the strategy chose; `None` if the job sets its own pace.
    pub offered_iops: Option<u64>,
    /// What disturbed the run; `None` if nothing did.
    pub disturbed: Option<Disturbed>,
    /// Whether the machine refuses the job. The run then counts as done.
    pub refused: bool,
    /// End of the last phase in ns since the start of the session.
    pub ended_ns: u64,
    /// Operations per second of all phases and streams.
    pub iops: f64,
    /// Operations per second that the hard limits of the cgroup allow; `None` without a limit.
    pub limit_iops: Option<f64>,
    /// Latencies of all reads, writes and trims.
    pub latency: Arc<Histogram>,
    /// Times from submission to completion in an open loop; empty in a closed loop.
    pub service: Arc<Histogram>,
}

impl Summary {
    /// Adds up the phases of a run.
    pub fn from_phases<'e>(at: Attempt, phases: impl Iterator<Item = &'e RunEnd> + Clone) -> Self {
        let Attempt { job, repeat, attempt, offered_iops, .. } = at;
        Self {
            job,
            repeat,
            attempt,
            offered_iops,
            ended_ns: phases.clone().map(|end| end.at_ns).max().unwrap_or(0),
            latency: Arc::new(latencies(phases.clone())),
            service: Arc::new(service_times(phases.clone())),
            iops: rate(phases),
            ..Self::default()
        }
    }

    /// Returns a run of a job that this machine refuses.
    pub fn refused(job: usize, repeat: u32) -> Self {
        Self { job, repeat, refused: true, ..Self::default() }
    }
}

/// Returns the latencies of all reads, writes and trims of some phases.
pub fn latencies<'e>(phases: impl Iterator<Item = &'e RunEnd>) -> Histogram {
    let mut all = Histogram::new();
    timed_kinds(phases).for_each(|end| all.merge(&end.latency));
    all
}

/// Returns the times from submission to completion of all reads, writes and trims of the open loops among some phases.
pub fn service_times<'e>(phases: impl Iterator<Item = &'e RunEnd>) -> Histogram {
    let mut all = Histogram::new();
    timed_kinds(phases).filter_map(|end| end.open.as_ref()).for_each(|open| all.merge(&open.service));
    all
}

fn timed_kinds<'e>(phases: impl Iterator<Item = &'e RunEnd>) -> impl Iterator<Item = &'e KindEnd> {
    let streams = phases.flat_map(|phase| &phase.streams);
    streams.flat_map(|s| s.kinds.iter().filter(|(kind, _)| **kind != Kind::Sync).map(|(_, end)| end))
}

/// Returns the operations per second of a run: the operations of all streams except syncs, divided by the windows of the phases.
pub fn rate<'a>(phases: impl Iterator<Item = &'a RunEnd>) -> f64 {
    let (mut ops, mut seconds) = (0.0, 0.0);
    for phase in phases {
        // Computed in floating point, because the counts of a forged file could overflow.
        ops += phase.streams.iter().map(count_ops_for_rate).sum::<f64>();
        let window = |s: &StreamEnd| s.common.as_ref().map_or(s.window_ns, |common| common.window_ns);
        seconds += phase.streams.iter().map(window).max().unwrap_or(0) as f64 / 1e9;
    }
    if seconds > 0.0 { ops / seconds } else { 0.0 }
}

/// Counts the operations of a stream, except syncs, for [`rate`]: those completed while all hosts ran
/// (`common`), or in the window if there is no `common`.
fn count_ops_for_rate(stream: &StreamEnd) -> f64 {
    let counts = |kind: &Kind| *kind != Kind::Sync;
    match &stream.common {
        Some(common) => common.kinds.iter().filter(|(k, _)| counts(k)).map(|(_, n)| n[0] as f64).sum(),
        None => {
            stream.kinds.iter().filter(|(k, _)| counts(k)).map(|(_, end)| end.latency.count() as f64).sum()
        }
    }
}

/// Whether `ops` operations in `seconds` fall short of an offered load of `iops`. The gap must exceed both the variation of
/// random arrivals and the share 1 - [`SERVED_FROM`] of the offered operations.
pub(crate) fn falls_short(ops: f64, iops: f64, seconds: f64, arrivals: Arrivals) -> bool {
    let offered = iops * seconds;
    let by_chance = MAX_ARRIVAL_DEVIATIONS * (offered * arrivals.dispersion(iops)).max(0.0).sqrt();
    ops + by_chance < offered && ops < SERVED_FROM * offered
}

/// Returns the repeat number (`repeat`, from 0) and the rate of each complete run of a job, in order.
pub(crate) fn rates_by_repeat(record: &Record, job: usize) -> Vec<(u32, f64)> {
    let phases = record.header.plan.jobs.get(job).map_or(0, |j| j.phases.len());
    let mut ends: BTreeMap<u32, Vec<&RunEnd>> = BTreeMap::new();
    for run in (0..phases).flat_map(|phase| record.complete_runs(job, phase)) {
        ends.entry(run.start.repeat).or_default().extend(&run.end);
    }
    let complete = ends.into_iter().filter(|(_, ends)| ends.len() == phases);
    complete.map(|(repeat, ends)| (repeat, rate(ends.into_iter()))).collect()
}

/// The rounds of a job that count, if it was measured until it was steady.
pub(crate) struct Rounds {
    /// Repeat number (from 0) of the first run that counts; the earlier runs only led to the steady state.
    pub(crate) first_run: u32,
    /// Number of all measured rounds, if the last rounds are not steady; `None` if they are steady.
    pub(crate) unsteady_rounds: Option<usize>,
}

/// Returns which rounds of a job count; `None` unless the plan measures until the rate is steady. If the rate never became steady, the
/// last rounds count nevertheless, and the report mentions it.
pub(crate) fn rounds_that_count(record: &Record, job: usize) -> Option<Rounds> {
    let Strategy::Steady { at_most } = record.header.plan.strategy else { return None };
    let (repeats, rates): (Vec<u32>, Vec<f64>) = rates_by_repeat(record, job).into_iter().unzip();
    let first_run = repeats.get(repeats.len().saturating_sub(WINDOW)).copied().unwrap_or(0);
    Some(Rounds { first_run, unsteady_rounds: (!is_steady(&rates, at_most)).then_some(rates.len()) })
}

/// Returns the complete runs of a load curve: those at an offered load if `is_offered`, otherwise those of the closed loop.
pub(crate) fn summaries(record: &Record, is_offered: bool) -> Vec<Summary> {
    let runs = record.runs.iter().filter(|r| r.start.offered_iops.is_some() == is_offered);
    let complete =
        runs.filter_map(|r| Some((r, r.end.as_ref().filter(|e| e.ending == RunEnding::Complete)?)));
    complete.map(|(r, end)| Summary::from_phases(r.attempt(), std::iter::once(end))).collect()
}

/// Returns the operations per second that the closed loop can sustain: the mean over its runs, at
/// most the limit of the cgroup, because a short run may exceed that limit in a burst. `None`
/// without runs, or if no operation completed.
pub(crate) fn capacity(done: &[Summary]) -> Option<f64> {
    let rates: Vec<f64> = done.iter().filter(|s| s.offered_iops.is_none()).map(|s| s.iops).collect();
    let measured = intervals::mean(&rates).map(|m| m.value).filter(|c| *c > 0.0)?;
    Some(lowest_limit(done).map_or(measured, |limit| measured.min(limit)))
}

/// Returns the lowest limit of the cgroup during some runs, in operations per second; `None`
/// without a limit.
pub(crate) fn lowest_limit(done: &[Summary]) -> Option<f64> {
    done.iter().filter_map(|s| s.limit_iops).min_by(f64::total_cmp)
}

/// Returns the capacity of a record with a load curve, in operations per second; `None` without a
/// load curve, or before the closed loop was measured.
pub(crate) fn capacity_of(record: &Record) -> Option<f64> {
    record.header.plan.study.latency_target().and_then(|_| capacity(&summaries(record, false)))
}

/// A run of a cell of a sweep, as plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellRun {
    /// Index of the job of the cell.
    pub job: usize,
    /// Bytes per second; `None` if the run failed, moved nothing, or lacks the final sync that it needs.
    pub bytes_per_s: Option<f64>,
    /// Mean bytes per operation; `None` if the run is incomplete or has no operations.
    pub bytes_per_operation: Option<f64>,
    /// CPU time of the workers per byte in ns; `None` if the run is incomplete or no worker
    /// reported its CPU time.
    pub cpu_ns_per_byte: Option<f64>,
    /// Mean latency within the window in ns; `None` if the run is incomplete or has no operations.
    pub latency_mean_ns: Option<f64>,
    /// Longest latency within the window in ns; `None` if the run is incomplete or has no operations.
    pub latency_max_ns: Option<u64>,
    /// 99th percentile of the latencies in ns; `None` if the run is incomplete or has too few operations.
    pub p99_ns: Option<u64>,
    /// All bytes written, also those outside the window.
    pub written_bytes: u64,
    /// Time of the run in ns. Includes the preparation and the attempts before the run, except for the first run.
    pub took_ns: u64,
    /// End of the run in ns since the start of the session.
    pub ended_ns: u64,
}

impl CellRun {
    /// Computes the numbers of a run that ended. The rate is the bytes of all submitted operations
    /// divided by the time until the last one completed. So even large operations on slow storage have
    /// a rate, and the end of the window cuts no operation. The time of writes that may still be in
    /// memory includes the final sync.
    fn from_run(job_index: usize, job: &Job, end: &RunEnd) -> Self {
        let issued =
            || end.streams.iter().flat_map(|s| s.issued.iter()).filter(|(kind, _)| **kind != Kind::Sync);
        let moved: f64 = issued().map(|(_, i)| i.bytes as f64).sum();
        let operations: f64 = issued().map(|(_, i)| i.ops as f64).sum();
        let wall = end.workers.iter().map(|w| w.wall_ns).max().unwrap_or(0);
        let may_need_sync = job.streams().any(may_be_in_memory);
        // Without a final sync, the time at which the bytes were stable is unknown.
        let sync = if may_need_sync { end.sync_ns } else { Some(0) };
        let seconds = sync.map(|sync| (wall as f64 + sync as f64) / 1e9);
        let is_complete = end.ending == RunEnding::Complete && moved > 0.0;
        let latencies = latencies(std::iter::once(end));
        let cpu: f64 = end.workers.iter().map(|w| w.user_ns as f64 + w.system_ns as f64).sum();
        Self {
            job: job_index,
            bytes_per_s: seconds.filter(|s| is_complete && *s > 0.0).map(|s| moved / s),
            bytes_per_operation: (is_complete && operations > 0.0).then(|| moved / operations),
            cpu_ns_per_byte: (is_complete && cpu > 0.0).then(|| cpu / moved),
            latency_mean_ns: latencies.mean_ns().filter(|_| is_complete),
            latency_max_ns: latencies.max_ns().filter(|_| is_complete),
            p99_ns: latencies.supported_quantile_ns(0.99).filter(|_| is_complete),
            written_bytes: end
                .streams
                .iter()
                .filter_map(|s| s.issued.get(&Kind::Write))
                .map(|i| i.bytes)
                .sum(),
            took_ns: wall.saturating_add(end.sync_ns.unwrap_or(0)),
            ended_ns: end.at_ns,
        }
    }

    /// Returns the logarithm of the measure that ranks cells, negated for latencies: higher is better. `None` if the run has no value.
    pub fn score(&self, by: Measure) -> Option<f64> {
        let log = match by {
            Measure::Iops => (self.bytes_per_s? / self.bytes_per_operation?).ln(),
            Measure::Bandwidth => self.bytes_per_s?.ln(),
            Measure::P99 => -(self.p99_ns? as f64).ln(),
            Measure::Latency => -self.latency_mean_ns?.ln(),
        };
        Some(log).filter(|log| log.is_finite())
    }
}

/// Returns the counting runs of all cells, in order of time. Leaves out interrupted runs.
pub fn cell_runs(record: &Record) -> Vec<CellRun> {
    counting_cell_runs(&cell_attempts(record))
}

/// An attempt at a run of a cell. The attempt may have been disturbed.
#[derive(Clone, Copy, Debug)]
pub struct CellAttempt {
    /// Which attempt at which run this is.
    pub attempt: Attempt,
    /// The numbers that the attempt measured.
    run: CellRun,
}

impl CellAttempt {
    /// Computes the numbers of an attempt that ended. The attempt took as long as its longest worker ran,
    /// plus the final sync.
    pub fn from_attempt(attempt: Attempt, job: &Job, end: &RunEnd) -> Self {
        Self { attempt, run: CellRun::from_run(attempt.job, job, end) }
    }
}

/// Returns all attempts of a record in order of time. Leaves out interrupted ones.
pub fn cell_attempts(record: &Record) -> Vec<CellAttempt> {
    let attempt_of = |run: &Run| {
        let end = run.end.as_ref().filter(|e| e.ending != RunEnding::Interrupted)?;
        Some(CellAttempt::from_attempt(run.attempt(), record.header.plan.jobs.get(run.start.job)?, end))
    };
    record.all_attempts().into_iter().filter_map(attempt_of).collect()
}

/// Returns the runs that count. A run's time begins at the end of the previous run that counts, because the attempts in
/// between took time too. The first run keeps its own time.
pub(crate) fn counting_cell_runs(runs: &[CellAttempt]) -> Vec<CellRun> {
    let attempts: Vec<Attempt> = runs.iter().map(|run| run.attempt).collect();
    let mut previous_end_ns = None;
    let counting =
        runs.iter().zip(record::which_count(&attempts, Pairing::Runs)).filter(|(_, counts)| *counts);
    let with_whole_time = |(CellAttempt { run, .. }, _): (&CellAttempt, bool)| {
        let took_ns = previous_end_ns.map_or(run.took_ns, |previous| run.ended_ns.saturating_sub(previous));
        previous_end_ns = Some(run.ended_ns);
        CellRun { took_ns, ..*run }
    };
    counting.map(with_whole_time).collect()
}

/// Whether completed writes of a stream may still be in memory.
fn may_be_in_memory(stream: &Stream) -> bool {
    stream.access.writes() && !stream.cache.is_direct() && !stream.cache.is_sync()
}

#[test]
fn a_summary_adds_up_phases_and_streams() {
    let record = crate::fixture::Fixture::honest().record();
    let end = record.runs[0].end.clone().unwrap();
    let two = [end.clone(), end];
    let summary = Summary::from_phases(record.runs[0].attempt(), two.iter());
    assert!((summary.iops - 10_000.0).abs() < 1e-6 && summary.latency.count() == 20_000);
    assert_eq!(rates_by_repeat(&record, 0), [0, 1, 2, 3, 4].map(|repeat| (repeat, 10_000.0)));
    assert_eq!(rates_by_repeat(&record, 7), []);
}

#[test]
fn only_the_last_rounds_count() {
    let mut record = crate::fixture::Fixture { runs: 8, ..crate::fixture::Fixture::honest() }.record();
    assert!(rounds_that_count(&record, 0).is_none(), "another strategy");
    record.header.plan.strategy = Strategy::Steady { at_most: 25 };
    let case = &crate::case::cases(&record)[0];
    assert_eq!((case.runs.len(), case.earlier_runs.len(), case.unsteady_rounds), (5, 3, None));
    let report = crate::judge(&record, &crate::Judging::default());
    let numbers = |runs: &[model::report::RunFigures]| runs.iter().map(|r| r.run).collect::<Vec<_>>();
    assert_eq!(numbers(&report.results[0].uncounted_runs), [0, 1, 2]);
    assert_eq!(numbers(&report.results[0].runs), [3, 4, 5, 6, 7]);
    assert!(report.notes[0].contains("steady after 8 rounds"), "{:?}", report.notes);
    record.runs.truncate(3);
    let case = &crate::case::cases(&record)[0];
    assert_eq!((case.runs.len(), case.earlier_runs.len(), case.unsteady_rounds), (3, 0, Some(3)));
}

#[test]
fn random_arrivals_may_fall_short_by_chance_but_overload_is_detected() {
    let random = |ops, offered| falls_short(ops, offered, 1.0, Arrivals::Poisson);
    assert!(!random(380.0, 400.0), "one deviation");
    assert!(falls_short(380.0, 400.0, 1.0, Arrivals::Constant));
    // In batches of 8.5 on average, arrivals deviate four times as much.
    assert!(!falls_short(300.0, 400.0, 1.0, Arrivals::Batch { mean: 8.5 }));
    assert!(!falls_short(300.0, 400.0, 1.0, Arrivals::OnOff { on_ns: 5_000_000, off_ns: 95_000_000 }));
    assert!(random(300.0, 400.0) && random(98_000.0, 100_000.0));
    assert!(!random(99_500.0, 100_000.0) && !random(0.0, 0.0) && !random(1.0, -1.0));
}
