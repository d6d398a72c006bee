//! An unfinished measurement: the counters of the current run, findings about a run that has ended, and a row for each job so far. The live
//! view and the lines of progress show them. The report is judged from the whole record.

use crate::case::Case;
use crate::checks::most_iops;
use crate::figures::kernel_text;
use crate::figures::time_series::DeviceWork;
use crate::findings::{ask, merge};
use crate::idle::empty_record;
use crate::runs::Summary;
use crate::strategy::disturbed::{ForeignTraffic, foreign_traffic};
use crate::strategy::{StrategyPlan, disturbed};
use crate::{case, studies};
use model::Known;
use model::evidence::{Moment, Snapshot};
use model::finding::{Checked, Outcome, Severity};
use model::histogram::Histogram;
use model::job::Kind;
use model::machine::Machine;
use model::plan::{Plan, Strategy};
use model::record::{Disturbance, Issued, Record, Run, RunEnd, RunEnding, RunStart, StreamEnd};
use stats::intervals;
use stats::steady_state::WINDOW;

/// A session whose current run has not ended.
pub struct UnfinishedSession {
    record: Record,
    /// The counters at the start of the current run.
    first: Option<Snapshot>,
    /// The counters at the last sample.
    last: Option<Snapshot>,
    /// Traffic of other processes up to the last sample, by disk.
    others: Vec<ForeignTraffic>,
}

/// The kernel's counters between two samples.
#[derive(Clone, Debug, PartialEq)]
pub struct CountersBetween {
    /// The topmost devices, or why they were not counted.
    pub device: Known<Device>,
    /// Shares of the time in which at least one task of the machine waited: for I/O, for a CPU, and
    /// for memory. Each may be unknown, with the reason.
    pub pressure: [Known<f64>; 3],
    /// Traffic of other processes that is enough to disturb a run, `None` if there is less, or why
    /// it cannot be separated from fathom's.
    pub others: Known<Option<Disturbance>>,
}

/// The work of the topmost devices below the targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Kernel names of the devices, as one text.
    pub name: String,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean time of a request in ns; `None` without requests.
    pub latency_ns: Option<f64>,
    /// Mean requests in flight.
    pub in_flight: f64,
}

/// The operations that workers have reported since the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportedOps {
    /// Operations of all streams.
    pub ops: u64,
    /// Bytes by kind.
    pub bytes: [u64; Kind::ALL.len()],
}

impl UnfinishedSession {
    /// Creates a session without runs, of a plan on a machine.
    pub fn new(plan: &Plan, machine: &Machine) -> Self {
        let record = empty_record(plan.clone(), machine.clone());
        Self { record, first: None, last: None, others: Vec::new() }
    }

    /// Starts a run with the counters at its start.
    pub fn begin(&mut self, start: RunStart, first: Snapshot) {
        let run = Run { start, intervals: Vec::new(), evidence: Vec::new(), end: None, disturbed: None };
        self.record.runs = vec![run];
        (self.first, self.last) = (Some(first.clone()), Some(first));
        self.others.clear();
    }

    /// Takes a sample. Returns the counters since the last one; `None` if there is no run or no time has passed.
    pub fn sample(&mut self, now: Snapshot, so_far: &ReportedOps) -> Option<CountersBetween> {
        let (first, last) = (self.first.clone()?, self.last.replace(now.clone())?);
        if now.at_ns <= last.at_ns {
            return None;
        }
        self.limit_run(last, now.clone());
        let (device, pressure) = {
            let case = self.case()?;
            let waited = |file: &str| kernel_text::pressure_share(&case, file);
            (
                device_work(&case),
                [
                    kernel_text::IO_PRESSURE_FILE,
                    kernel_text::CPU_PRESSURE_FILE,
                    kernel_text::MEMORY_PRESSURE_FILE,
                ]
                .map(waited),
            )
        };
        // Traffic of others is summed from the start of the run.
        self.limit_run(first, now);
        Some(CountersBetween { device, pressure, others: self.sample_others(so_far) })
    }

    /// Limits the run to the time from sample `from` to sample `to`.
    fn limit_run(&mut self, from: Snapshot, to: Snapshot) {
        let Some(run) = self.record.runs.first_mut() else { return };
        run.evidence =
            vec![Snapshot { moment: Moment::Start, ..from }, Snapshot { moment: Moment::Stop, ..to }];
        let planned = self.record.header.plan.jobs.get(run.start.job);
        let streams = planned.and_then(|j| j.phases.get(run.start.phase)).map_or(0, |p| p.streams.len());
        let streams = (0..streams).map(|stream| StreamEnd { stream, ..StreamEnd::default() }).collect();
        run.end = Some(RunEnd { streams, ..RunEnd::without(RunEnding::Complete) });
    }

    /// Returns a case for the whole phase, because devices do not count streams separately. The case is built from the
    /// first stream that moves data, otherwise from the first stream.
    fn case(&self) -> Option<Case<'_>> {
        let start = &self.record.runs.first()?.start;
        let mut cases = case::cases_of_job(&self.record, start.job);
        cases.retain(|c| c.phase_index == start.phase);
        let moves = cases.iter().position(|c| !c.stream.moves_no_data()).unwrap_or(0);
        (moves < cases.len()).then(|| cases.swap_remove(moves).of_phase())
    }

    /// Returns the traffic of other processes since the last sample, if it is enough to disturb a run.
    fn sample_others(&mut self, so_far: &ReportedOps) -> Known<Option<Disturbance>> {
        if so_far.ops == 0 {
            return Err("no operation was counted yet".into());
        }
        self.set_issued(so_far)?;
        let case = self.case().ok_or("the run belongs to no job of the plan")?;
        if !case.on_device() {
            return Ok(None);
        }
        // Require the kernel's charges: workers report later than the counters, so fathom's part cannot be inferred
        // from their reports.
        case.own_io()?;
        let (all, completeness) = case::split_known(Ok(foreign_traffic(&case)));
        let before = std::mem::replace(&mut self.others, all);
        let now = self.others.iter().find_map(|disk| disk.since(&before).disturbance());
        if now.is_none() {
            completeness?;
        }
        Ok(now)
    }

    /// Sets the issued operations of the run: the reported bytes, and as many operations as the devices completed requests. So no operation
    /// counts as split before the run has ended.
    fn set_issued(&mut self, so_far: &ReportedOps) -> Known<()> {
        let (at, device) = {
            let case = self.case().ok_or("the run belongs to no job of the plan")?;
            if !case.on_device() {
                return Ok(());
            }
            (case.stream_index, case.device_io()?)
        };
        let ends = self.record.runs.first_mut().and_then(|r| r.end.as_mut());
        let stream = ends.and_then(|e| e.streams.get_mut(at)).ok_or("the run has no such stream")?;
        for (kind, flow) in [(Kind::Read, device.read), (Kind::Write, device.write)] {
            let bytes = so_far.bytes[kind as usize];
            stream.issued.insert(kind, Issued { ops: flow.ios, bytes, ..Issued::default() });
        }
        Ok(())
    }
}

fn device_work(case: &Case) -> Known<Device> {
    let tops = case.top_layers()?;
    let run = case.runs.first().ok_or_else(case::no_run)?;
    let done = DeviceWork::from_run(run, &tops)?.between(0.0, f64::INFINITY).ok_or("no time has passed")?;
    let names: Vec<&str> = tops.iter().map(|l| l.name.as_str()).collect();
    Ok(Device {
        name: names.join(" and "),
        iops: done.ios / done.seconds,
        bytes_per_s: done.bytes / done.seconds,
        latency_ns: done.latency_ns,
        in_flight: done.in_flight,
    })
}

/// The results of a job so far, at one load if the strategy chooses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the job.
    pub job: usize,
    /// The load in operations per second that the strategy chose; `None` if the job sets its own pace.
    pub offered_iops: Option<u64>,
    /// Number of runs that the figures use.
    pub runs: usize,
    /// Geometric mean of the operations per second of these runs; `None` without runs.
    pub iops: Option<f64>,
    /// p50, p99 and maximum of all latencies of these runs in ns; `None` with too few operations.
    pub latency_ns: [Option<u64>; 3],
}

/// p50, p99 and maximum in ns, each `None` with too few operations.
pub fn latencies(all: &Histogram) -> [Option<u64>; 3] {
    [all.supported_quantile_ns(0.5), all.supported_quantile_ns(0.99), all.max_ns()]
}

/// Returns the results of a job so far.
pub fn job_row(done: &[Summary], plan: &StrategyPlan, job: usize, offered_iops: Option<u64>) -> Row {
    let counting = disturbed::counting_runs(done, plan);
    let mut runs: Vec<&Summary> =
        counting.iter().filter(|s| (s.job, s.offered_iops) == (job, offered_iops) && !s.refused).collect();
    if matches!(plan.strategy, Strategy::Steady { .. }) {
        // Earlier rounds only led to the steady state.
        runs.drain(..runs.len().saturating_sub(WINDOW));
    }
    let rates: Vec<f64> = runs.iter().map(|s| s.iops).collect();
    let mut latency = Histogram::new();
    for run in &runs {
        latency.merge(&run.latency);
    }
    Row {
        job,
        offered_iops,
        runs: runs.len(),
        iops: intervals::mean(&rates).map(|mean| mean.value),
        latency_ns: latencies(&latency),
    }
}

/// Group of the checks that need all runs.
const GROUP_OF_ALL_RUNS: char = 'E';

/// Returns the findings about the one run of a record, worst first. Leaves out notes, findings of checks
/// that need all runs, and findings that the record's study exists to show.
pub fn findings_of_run(record: &Record) -> Vec<Checked> {
    let Some(job) = record.runs.first().map(|r| r.start.job) else { return Vec::new() };
    let measured = case::cases_of_job(record, job).into_iter().filter(|case| !case.runs.is_empty());
    let answered: Vec<_> = measured.map(ask).collect();
    let acts = |f: &Checked| {
        f.outcome == Outcome::Finding
            && f.severity.is_some_and(|s| s < Severity::Note)
            && f.id.group() != GROUP_OF_ALL_RUNS
            && !studies::question(&record.header.plan.study).is_expected(record, &answered, f)
    };
    merge(&answered, &[]).into_iter().filter(acts).collect()
}

/// Returns the operations per second that the hard limits of the cgroup allow in the run of a record. `None` without a limit, or if this
/// host offers only a part of each load.
pub fn limit_iops(record: &Record) -> Option<f64> {
    let job = record.runs.first().filter(|_| record.header.plan.fleet_rank.is_none())?.start.job;
    case::cases_of_job(record, job).iter().filter(|c| !c.runs.is_empty()).find_map(most_iops)
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::finding::CheckId;
#[cfg(test)]
use std::sync::Arc;

/// Samples the one run of a forged record at its end.
#[cfg(test)]
fn seen(fixture: &Fixture, so_far: &ReportedOps) -> CountersBetween {
    let mut record = Fixture { runs: 1, ..fixture.clone() }.record();
    crate::figures::kernel_text::fixture(&mut record, crate::figures::kernel_text::IO_PRESSURE_FILE, 0.25);
    let run = record.runs.remove(0);
    let mut going = UnfinishedSession::new(&record.header.plan, &record.header.hosts[0]);
    assert_eq!(going.sample(run.evidence[1].clone(), so_far), None, "no run has started");
    going.begin(run.start, run.evidence[0].clone());
    assert_eq!(going.sample(run.evidence[0].clone(), so_far), None, "no time has passed");
    let mut now = run.evidence[1].clone();
    now.files.remove(crate::figures::kernel_text::MEMORY_PRESSURE_FILE);
    going.sample(now, so_far).unwrap()
}

#[test]
fn findings_of_one_run_are_those_that_more_runs_cannot_revoke() {
    let ids = |fixture: &Fixture| -> Vec<CheckId> {
        let mut record = Fixture { runs: 1, ..fixture.clone() }.record();
        record.end = None;
        findings_of_run(&record).iter().map(|f| f.id).collect()
    };
    assert_eq!(ids(&Fixture::honest()), []);
    let holes = Fixture { hole_share: 1.0, ..Fixture::honest() };
    assert!(ids(&holes).contains(&CheckId::A04), "{:?}", ids(&holes));
    assert_eq!(findings_of_run(&Fixture { runs: 0, ..holes }.record()), []);
}

#[test]
fn a_row_has_the_counting_runs_and_withholds_unsupported_percentiles() {
    let run = |repeat: u32, iops: f64| {
        let mut latency = Histogram::new();
        (0..200).for_each(|ns| latency.record(1_000 + ns));
        Summary { iops, latency: Arc::new(latency), refused: false, ..Summary::refused(0, repeat) }
    };
    let plan = StrategyPlan { jobs: 2, runs: 2, seed: 1, max_attempts: 1, ..StrategyPlan::default() };
    let row = job_row(&[run(0, 4.0), run(1, 9.0), Summary::refused(1, 0)], &plan, 0, None);
    assert_eq!((row.runs, row.iops.map(f64::round)), (2, Some(6.0)));
    assert!(row.latency_ns[0].is_some() && row.latency_ns[1].is_none() && row.latency_ns[2] == Some(1_199));
    let refused = job_row(&[Summary::refused(1, 0)], &plan, 1, None);
    assert_eq!((refused.runs, refused.iops, refused.latency_ns), (0, None, [None; 3]));
}

#[test]
fn a_part_of_a_run_is_judged_like_a_complete_run() {
    // Workers have reported a tenth of the run.
    let so_far = ReportedOps { ops: 1_000, bytes: [4_096_000, 0, 0, 0] };
    let counted = seen(&Fixture::honest(), &so_far);
    let device = counted.device.unwrap();
    assert_eq!((device.name.as_str(), device.iops.round() > 9_000.0), ("vda", true), "{device:?}");
    assert!(counted.pressure[0].as_ref().is_ok_and(|s| (s - 0.25).abs() < 1e-3));
    assert!(counted.pressure[2].is_err(), "missing is not zero: {:?}", counted.pressure);
    assert_eq!(counted.others, Ok(None));
    let disturbed = seen(&Fixture { foreign_ios: 5_000, ..Fixture::honest() }, &so_far);
    let sentence = disturbed.others.unwrap().map(|d| d.describe()).unwrap_or_default();
    assert!(sentence.contains("of other processes on vda"), "{sentence}");
}

#[test]
fn traffic_of_others_is_unknown_without_charges() {
    let so_far = ReportedOps { ops: 1_000, bytes: [4_096_000, 0, 0, 0] };
    let without = seen(&Fixture { cgroup: false, foreign_ios: 5_000, ..Fixture::honest() }, &so_far);
    assert!(without.others.is_err() && without.device.is_ok());
    assert!(
        seen(&Fixture::honest(), &ReportedOps::default())
            .others
            .is_err_and(|why| why.contains("no operation"))
    );
    assert!(seen(&Fixture { stat_unreadable: true, ..Fixture::honest() }, &so_far).device.is_err());
}
