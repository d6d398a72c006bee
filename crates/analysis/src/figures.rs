//! The figures of a case: rates, latencies and device counts over its complete runs.
//!
//! 1. [`compute_rates`] and [`figures_of_kind`]: the rate of a run is its operations divided by its time,
//!    and the rate of a case is the geometric mean over its runs. Latency histograms are merged,
//!    never averaged.
//! 2. [`observe_case`] adds the same runs up without intervals, for the output formats of other tools.
//! 3. [`why_too_short`] decides whether the windows are long enough for a rate. A count is off by up to one operation at each edge, and a
//!    scheduler tick may delay a worker. The spread does not show that: runs that are all too short agree with each other.

pub(crate) mod kernel_text;
pub(crate) mod replay;
pub(crate) mod steadiness;
pub(crate) mod time_series;
pub(crate) mod traffic;

use crate::case::{Amount, Case, CaseRun};
use kernel_text::each_cpu;
use model::evidence::Moment;
use model::figures::{
    Observed, ObservedCpu, ObservedDisk, ObservedInterval, ObservedKind, ObservedLane, ObservedLaneKind,
    ObservedTarget, ObservedWorkers,
};
use model::histogram::{Distribution, Histogram};
use model::job::{ALL_ERRORS, IoPriority, Kind, StopRule};
use model::machine::Layer;
use model::plan::Role;
use model::record::{
    Cell, Disturbed, KindEnd, LaneEnd, LaneKind, PriorityEnd, RunEnding, StreamEnd, WorkerEnd,
};
use model::report::{CpuCost, DeviceFigures, DisturbedRun, Figures, FinalSync, Latency, Rates, RunFigures};
pub(crate) use model::study::LATE_SHARE;
use stats::intervals::{self, Mean, half_width};
use stats::sample::mean;
use std::collections::BTreeMap;
use time_series::{intervals_of, series_of_run};

/// Percentiles by their names in the report.
pub(crate) const PERCENTILES: &[(&str, f64)] =
    &[("50", 0.5), ("90", 0.9), ("95", 0.95), ("99", 0.99), ("99.9", 0.999), ("99.99", 0.9999)];

const MB: f64 = 1e6;

/// The kinds of operations in the rate and the latencies of a result. Syncs are shown separately: their time is part of
/// the cost of writes.
pub(crate) const RATED_KINDS: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];

/// Lists disturbed attempts, and attempts that a repeat replaced.
pub(crate) fn list_disturbed_runs(case: &Case) -> Vec<DisturbedRun> {
    let counting = case.runs.iter().filter(|r| r.run.disturbed.is_some()).map(|r| (true, r));
    let mut all: Vec<(bool, &CaseRun)> =
        counting.chain(case.replaced_attempts.iter().map(|r| (false, r))).collect();
    all.sort_by_key(|(_, ran)| ran.run.start.at_ns);
    let disturbed_run = |(counts, ran): (bool, &CaseRun)| {
        let rates = run_rates(ran, &RATED_KINDS)?;
        let by = ran.run.disturbed.as_ref();
        Some(DisturbedRun {
            run: ran.run.start.repeat,
            attempt: ran.run.start.attempt,
            counts,
            why: by.map(Disturbed::describe),
            by: by.map_or_else(Vec::new, |d| d.disturbances.clone()),
            iops: rates.iops,
            mb_per_s: rates.bytes_per_s / MB,
        })
    };
    all.into_iter().filter_map(disturbed_run).collect()
}

/// Computes the figures of one kind of operations. `None` without such operations, never zero.
pub(crate) fn figures_of_kind(case: &Case, kind: Kind) -> Option<Figures> {
    let open = case.open_loop(kind);
    let latency = to_latency(&case.latency(kind)?, open.as_ref().map(|open| &open.lateness))?;
    let rates = compute_rates(case, &[kind])?;
    let amount = case.in_windows(kind);
    Some(Figures {
        ops: amount.ops,
        bytes: amount.bytes,
        iops: rates.iops,
        mb_per_s: rates.mb_per_s,
        mib_per_s: rates.mib_per_s,
        iops_interval: rates.iops_interval,
        mb_per_s_interval: rates.mb_per_s_interval,
        depth_mean: case.depth_mean().ok()?,
        latency_ns: latency,
        submit_ns: case.submit().and_then(|submit| to_latency(&submit, None)),
        service_ns: open.as_ref().and_then(|open| to_latency(&open.service, None)),
        lateness_ns: open.as_ref().and_then(|open| to_latency(&open.lateness, None)),
    })
}

/// Whether fathom's lateness at percentile `q` is more than [`LATE_SHARE`] of the latency
/// `value_ns` at the same percentile.
pub(crate) fn is_late(value_ns: u64, lateness: &Histogram, q: f64) -> bool {
    lateness.quantile_ns(q).is_some_and(|late| late as f64 > LATE_SHARE * value_ns as f64)
}

/// Computes the rates with the final sync included in the time. `None` without writes, or if a run has no final sync.
pub(crate) fn rates_with_final_sync(case: &Case) -> Option<FinalSync> {
    if !case.stream.access.writes() || case.runs.is_empty() {
        return None;
    }
    let sync_ns = case.sync_ns()? / case.runs.len() as f64;
    let mean_of_runs = |rate: fn(RunRates) -> f64| -> Option<f64> {
        let rates = case.runs.iter().filter_map(|ran| {
            let (window, sync) = (ran.stream.window_ns as f64, ran.sync_ns()? as f64);
            Some(rate(run_rates(ran, &RATED_KINDS)?) * window / (window + sync))
        });
        intervals::mean(&rates.collect::<Vec<_>>()).map(|m| m.value)
    };
    let (iops, bytes_per_s) = (mean_of_runs(|r| r.iops)?, mean_of_runs(|r| r.bytes_per_s)?);
    (iops > 0.0).then_some(FinalSync { sync_ns, iops, mb_per_s: bytes_per_s / MB })
}

/// Returns the cost of an operation for the workers of the stream; `None` without operations or CPU times.
pub(crate) fn cost_per_operation(case: &Case) -> Option<CpuCost> {
    let workers = || case.workers();
    let ops: f64 = case.runs.iter().map(CaseRun::issued_of_all_kinds).sum();
    let cpu: f64 = workers().map(|w| w.user_ns as f64 + w.system_ns as f64).sum();
    if ops <= 0.0 || cpu <= 0.0 {
        return None;
    }
    let per_op = |value: &dyn Fn(&WorkerEnd) -> f64| workers().map(value).sum::<f64>() / ops;
    let counted: Result<Vec<[u64; 2]>, &String> = workers().map(|w| w.counted.as_ref().copied()).collect();
    let events = |i: usize| counted.as_ref().ok().map(|c| c.iter().map(|c| c[i] as f64).sum::<f64>() / ops);
    Some(CpuCost {
        user_ns: per_op(&|w| w.user_ns as f64),
        system_ns: per_op(&|w| w.system_ns as f64),
        switches: per_op(&|w| w.switches[0] as f64 + w.switches[1] as f64),
        cycles: events(0),
        instructions: events(1),
        not_counted: counted.as_ref().err().map(|why| (*why).clone()),
        tool_ns: case.ceiling().and_then(|c| c.loop_ns.clone()).ok(),
    })
}

fn to_latency(histogram: &Histogram, lateness: Option<&Histogram>) -> Option<Latency> {
    Some(Latency {
        min: histogram.min_ns()?,
        mean: histogram.mean_ns()?,
        max: histogram.max_ns()?,
        percentiles: percentiles_by_name(histogram, lateness),
    })
}

/// Returns the percentiles by name; `None` for a percentile that [`timely_quantile_ns`] withholds.
fn percentiles_by_name(histogram: &Histogram, lateness: Option<&Histogram>) -> BTreeMap<String, Option<u64>> {
    let percentile =
        |(name, q): &(&str, f64)| ((*name).to_owned(), timely_quantile_ns(histogram, lateness, *q));
    PERCENTILES.iter().map(percentile).collect()
}

/// Returns a percentile. `None` with too few operations above the percentile, or if fathom's
/// lateness in an open loop is too large a share of it.
pub(crate) fn timely_quantile_ns(histogram: &Histogram, lateness: Option<&Histogram>, q: f64) -> Option<u64> {
    let value_ns = histogram.supported_quantile_ns(q)?;
    lateness.is_none_or(|lateness| !is_late(value_ns, lateness, q)).then_some(value_ns)
}

/// Computes the rates of some kinds of operations together, without intervals if the windows are too short. `None` if no
/// operation completed in a window.
pub(crate) fn compute_rates(case: &Case, kinds: &[Kind]) -> Option<Rates> {
    let per_run: Vec<RunRates> = case.runs.iter().filter_map(|r| run_rates(r, kinds)).collect();
    let iops_per_run: Vec<f64> = per_run.iter().map(|r| r.iops).collect();
    let iops = intervals::mean(&iops_per_run)?;
    let bytes_per_s = intervals::mean(&per_run.iter().map(|r| r.bytes_per_s).collect::<Vec<_>>())?;
    let is_enough = why_too_short(case).is_none();
    let interval_of = |m: Mean| m.interval.filter(|_| is_enough);
    (iops.value > 0.0).then(|| Rates {
        iops: iops.value,
        mb_per_s: bytes_per_s.value / MB,
        mib_per_s: bytes_per_s.value / model::units::MIB as f64,
        iops_interval: interval_of(iops),
        mb_per_s_interval: interval_of(bytes_per_s).map(|i| i.map(|v| v / MB)),
        iops_median: intervals::median_of_runs(&iops_per_run),
    })
}

/// Returns the operations per second of a run; `None` without a window.
pub(crate) fn iops(ran: &CaseRun) -> Option<f64> {
    run_rates(ran, &RATED_KINDS).map(|rates| rates.iops)
}

/// Operations and bytes per second of a run.
struct RunRates {
    iops: f64,
    bytes_per_s: f64,
}

/// Computes the rates of some kinds of operations in a run; `None` without a window.
fn run_rates(ran: &CaseRun, kinds: &[Kind]) -> Option<RunRates> {
    let seconds = ran.rate_ns() as f64 / 1e9;
    let sum = |count: fn(&crate::case::Amount) -> u64| {
        kinds.iter().map(|k| count(&ran.for_rate(*k)) as f64).sum::<f64>() / seconds
    };
    (seconds > 0.0).then(|| RunRates { iops: sum(|a| a.ops), bytes_per_s: sum(|a| a.bytes) })
}

/// Computes the figures of each of these runs that has a window.
pub(crate) fn figures_of_runs(case: &Case, runs: &[CaseRun]) -> Vec<RunFigures> {
    let tops = case.has_storage().then(|| case.top_layers().ok()).flatten();
    // The device's counters include all streams that share the device, so the issued operations do too.
    let sharers = case.with_sharers();
    let device_figures = |ran: &CaseRun| device_figures(ran, tops.as_ref()?, &sharers.issued_in(ran));
    runs.iter().filter_map(|ran| figures_of_run(ran, device_figures(ran))).collect()
}

fn figures_of_run(ran: &CaseRun, device: Option<DeviceFigures>) -> Option<RunFigures> {
    let RunRates { iops, bytes_per_s } = run_rates(ran, &RATED_KINDS)?;
    let percentiles_of_kind = |(kind, end): (&Kind, &KindEnd)| {
        let lateness = end.open.as_ref().map(|open| &open.lateness);
        (kind.word().into(), percentiles_by_name(&end.latency, lateness))
    };
    Some(RunFigures {
        run: ran.run.start.repeat,
        started_s: Some(ran.run.start.at_ns as f64 / 1e9),
        iops,
        mb_per_s: bytes_per_s / MB,
        depth_mean: ran.stream.depth_ns as f64 / ran.stream.window_ns as f64,
        device,
        iops_within: interval_within(ran, iops),
        percentiles_ns: ran.stream.kinds.iter().map(percentiles_of_kind).collect(),
        cpu_ns_per_op: cpu_per_op(ran),
        host: kernel_text::host_figures(ran),
        // `time_series::add_tails` adds them, unless there are too many runs.
        tails_ns: BTreeMap::new(),
    })
}

fn cpu_per_op(ran: &CaseRun) -> Option<f64> {
    let cpu: f64 = ran.workers().map(|w| w.user_ns as f64 + w.system_ns as f64).sum();
    let ops = ran.issued_of_all_kinds();
    (ops > 0.0 && cpu > 0.0).then(|| cpu / ops)
}

/// Returns the confidence interval of a run's rate, computed from the variation within the run.
fn interval_within(ran: &CaseRun, iops: f64) -> Option<[f64; 2]> {
    let rates = series_of_run(ran).ok()?.rates;
    // The half width is scaled to the run's rate, because intervals may lack operations at the edges of the window.
    let share = half_width(&rates)? / mean(&rates);
    let interval = [iops * (1.0 - share).max(0.0), iops * (1.0 + share)];
    interval.iter().all(|v| v.is_finite()).then_some(interval)
}

fn device_figures(ran: &CaseRun, tops: &[&Layer], issued: &[Amount]) -> Option<DeviceFigures> {
    let delta = ran.layer_io(tops).ok()?;
    let total = delta.total();
    Some(DeviceFigures {
        issued_ops: issued.iter().fold(0, |sum, a| sum.saturating_add(a.ops)),
        issued_bytes: issued.iter().fold(0, |sum, a| sum.saturating_add(a.bytes)),
        ios: total.ios,
        bytes: total.bytes,
        depth_mean: delta.queue_ms as f64 * 1e6 / ran.active_ns().ok()? as f64,
        busy_ms: total.ms,
    })
}

/// Adds up the complete runs of a case, or takes its last run if none is complete.
pub(crate) fn observe_case(case: &Case) -> Observed {
    match case.with_cut_run() {
        Some(cut) => Observed { is_from_incomplete_run: true, ..add_up_runs(&cut) },
        None => add_up_runs(case),
    }
}

fn add_up_runs(case: &Case) -> Observed {
    let sum = |count: fn(&StreamEnd) -> u64| {
        case.runs.iter().fold(0, |sum: u64, r| sum.saturating_add(count(r.stream)))
    };
    let targets = case.stream.targets.iter().filter_map(|t| case.record.header.plan.targets.get(*t));
    Observed {
        targets: targets
            .filter(|t| t.role != Role::None)
            .map(|t| ObservedTarget { path: t.path.clone(), is_made: t.role == Role::Made, bytes: t.bytes })
            .collect(),
        window_ns: sum(|s| s.window_ns),
        ended_ns: case.ends.iter().map(|e| e.at_ns).max().unwrap_or(0),
        succeeded: has_succeeded(case),
        is_from_incomplete_run: false,
        kinds: Kind::ALL.into_iter().filter_map(|kind| Some((kind, observe_kind(case, kind)?))).collect(),
        errors: count_errors(case),
        ignored_errors: count_ignored_errors(case),
        sync_error: sync_error(case),
        workers: observe_workers(case),
        disks: observe_disks(case),
        found_depth: found_depth(case),
        steadied: case.stream.steady.zip(case.runs.last().and_then(|r| r.stream.steadied.clone())),
        lanes: observe_lanes(case),
        cpus: observe_cpus(case),
        typed: case
            .record
            .header
            .plan
            .typed
            .as_ref()
            .and_then(|t| t.result(case.phase_index, case.stream_index)),
    }
}

/// Whether no run failed. False if no run ended, unless Ctrl-C ended the session.
fn has_succeeded(case: &Case) -> bool {
    let all = case.record.end.as_ref().map(|end| &end.ending);
    let begun = !case.ends.is_empty() || all == Some(&RunEnding::Interrupted);
    begun && !case.ends.iter().any(|e| matches!(e.ending, RunEnding::Failed(_)))
}

fn observe_kind(case: &Case, kind: Kind) -> Option<ObservedKind> {
    let latency = Distribution::from(&case.latency(kind)?);
    let issued = case.runs.iter().filter_map(|r| r.stream.issued.get(&kind));
    // Other tools count the length of an operation even if it moves no data.
    let bytes = case.runs.iter().filter_map(|r| r.stream.kinds.get(&kind)).map(|k| k.bytes);
    Some(ObservedKind {
        bytes: bytes.fold(0, u64::saturating_add),
        short: issued.fold(0, |sum: u64, issued| sum.saturating_add(issued.short)),
        latency,
        service: case.open_loop(kind).map(|open| Distribution::from(&open.service)),
        time_series: join_intervals(case, kind),
        priorities: latencies_by_priority(case, kind),
    })
}

/// Returns the latencies over all runs, by I/O priority.
fn latencies_by_priority(case: &Case, kind: Kind) -> Vec<(Option<IoPriority>, Distribution)> {
    let mut all: Vec<PriorityEnd> = Vec::new();
    for end in case.runs.iter().flat_map(|run| &run.stream.priorities).filter(|end| end.kind == kind) {
        PriorityEnd::add(&mut all, end);
    }
    all.into_iter().map(|end| (end.priority, Distribution::from(&end.latency))).collect()
}

/// Joins the intervals of all runs into one time series. The time of a run counts from the first interval of any stream.
fn join_intervals(case: &Case, kind: Kind) -> Vec<ObservedInterval> {
    let mut out = Vec::new();
    let mut before = 0_u64;
    for ran in case.runs.iter() {
        let began = ran.run.intervals.iter().map(|row| row.start_ns).min().unwrap_or(0);
        for row in intervals_of(ran) {
            let Cell { ops, bytes, .. } = row.cells.get(&kind).copied().unwrap_or_default();
            out.push(ObservedInterval {
                start_ns: before.saturating_add(row.start_ns.saturating_sub(began)),
                ns: row.end_ns - row.start_ns,
                ops,
                bytes,
            });
        }
        before = before.saturating_add(ran.stream.window_ns);
    }
    out
}

/// Returns the work of each lane in the last run.
fn observe_lanes(case: &Case) -> Vec<ObservedLane> {
    let Some(last) = case.runs.last() else { return Vec::new() };
    let lane_kind = |kind: &LaneKind| ObservedLaneKind {
        bytes: kind.bytes,
        latency: Distribution::from(&kind.latency),
        time_series: kind.time_series.clone(),
    };
    let lane = |lane: &LaneEnd| ObservedLane {
        worker: lane.worker,
        target: lane.lane as usize,
        kinds: lane.kinds.iter().map(|(kind, figures)| (*kind, lane_kind(figures))).collect(),
    };
    last.stream.lanes.iter().map(lane).collect()
}

/// Returns the times of each CPU over all runs, in ticks.
fn observe_cpus(case: &Case) -> Vec<ObservedCpu> {
    let passed = |ran: &CaseRun| -> Option<Vec<ObservedCpu>> {
        let (start, stop) = (ran.snapshot(Moment::Start).ok()?, ran.snapshot(Moment::Stop).ok()?);
        // The time of an idle CPU may decrease by a tick.
        Some(combine_cpus(each_cpu(stop), each_cpu(start), u64::saturating_sub))
    };
    let all = case.runs.iter().filter_map(passed);
    all.reduce(|sum, one| combine_cpus(sum, one, u64::saturating_add)).unwrap_or_default()
}

/// Combines two lists of CPU times, CPU by CPU.
fn combine_cpus(
    first: Vec<ObservedCpu>,
    second: Vec<ObservedCpu>,
    combine: fn(u64, u64) -> u64,
) -> Vec<ObservedCpu> {
    let combine_cpu = |(a, b): (ObservedCpu, ObservedCpu)| ObservedCpu {
        cpu: a.cpu,
        user: combine(a.user, b.user),
        kernel: combine(a.kernel, b.kernel),
        idle: combine(a.idle, b.idle),
    };
    first.into_iter().zip(second).map(combine_cpu).collect()
}

/// Returns the depth that the first worker reached under its latency target in the last run; `None` without a latency target.
fn found_depth(case: &Case) -> Option<u32> {
    case.runs.last()?.workers().next()?.depth.map(|found| found.depth)
}

/// Returns the number of errors of the case's stream in all runs, by error number.
pub(crate) fn count_errors(case: &Case) -> BTreeMap<i32, u64> {
    let mut out: BTreeMap<i32, u64> = BTreeMap::new();
    for (_, errno, count) in each_error(case) {
        let sum = out.entry(errno).or_default();
        *sum = sum.saturating_add(count);
    }
    out
}

/// Returns the errors of the case's stream in all runs: kind of operation, error number and count.
fn each_error(case: &Case) -> impl Iterator<Item = (Kind, i32, u64)> {
    let streams = case.ends.iter().flat_map(|e| &e.streams).filter(|s| s.stream == case.stream_index);
    let issued = streams.flat_map(|s| &s.issued);
    issued.flat_map(|(kind, issued)| issued.errors.iter().map(|(errno, count)| (*kind, *errno, *count)))
}

/// Returns the error of a final sync that the user requested, such as fio's `end_fsync`.
fn sync_error(case: &Case) -> Option<i32> {
    let typed =
        case.record.header.plan.typed.as_ref()?.phases.get(case.phase_index)?.get(case.stream_index)?;
    if !typed.final_sync {
        return None;
    }
    case.ends.iter().find_map(|end| case.sync_failures(end).next()).map(|failure| failure.errno)
}

/// Returns the number of errors that the job tells the stream to ignore.
fn count_ignored_errors(case: &Case) -> u64 {
    let is_ignored = |kind, errno| {
        case.stream.max_errors == ALL_ERRORS
            || case.stream.ignored_errors.iter().any(|ignored| ignored.is(kind, Some(errno)))
    };
    let ignored = each_error(case).filter(|(kind, errno, _)| is_ignored(*kind, *errno));
    ignored.fold(0, |sum: u64, (.., count)| sum.saturating_add(count))
}

fn observe_workers(case: &Case) -> ObservedWorkers {
    case.workers().fold(ObservedWorkers::NONE, |sum, w| {
        sum.plus(&ObservedWorkers {
            wall_ns: w.wall_ns,
            user_ns: w.user_ns,
            system_ns: w.system_ns,
            switches: w.switches.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)),
            faults: w.faults,
            depth_counts: w.depth_counts,
        })
    })
}

/// Returns the work of each whole disk over all runs.
fn observe_disks(case: &Case) -> Vec<ObservedDisk> {
    let layers = case.shared_layers().unwrap_or_default().into_iter().filter(|_| case.has_storage());
    layers.filter_map(|layer| observe_disk(case, layer)).collect()
}

fn observe_disk(case: &Case, layer: &Layer) -> Option<ObservedDisk> {
    let zero = ObservedDisk { name: layer.name.clone(), ..ObservedDisk::default() };
    let add_run = |sum: ObservedDisk, ran: &CaseRun| -> Option<ObservedDisk> {
        let (start, stop) = (ran.snapshot(Moment::Start).ok()?, ran.snapshot(Moment::Stop).ok()?);
        let stat = ran.layer_io(&[layer]).ok()?;
        let ns = stop.at_ns.checked_sub(start.at_ns)?;
        Some(ObservedDisk { stat: sum.stat.plus(&stat), ns: sum.ns.saturating_add(ns), ..sum })
    };
    case.runs.iter().try_fold(zero, add_run).filter(|disk| disk.ns > 0)
}

/// The longest tick of Linux (100 Hz).
pub(crate) const TICK_NS: f64 = 10_000_000.0;

/// The largest error of a rate that the length of a window may cause, as a share.
pub(crate) const MAX_RATE_ERROR: f64 = 0.1;

/// The engine with a virtual clock: no scheduler delays its workers.
pub(crate) const SIMULATED_ENGINE: &str = "sim";

/// Share of [`MIN_WINDOW_NS`] that is enough: windows end some us early or late.
const ENOUGH_SHARE: f64 = 0.95;

/// Minimum number of operations of a window. One more or less changes the rate by at most [`MAX_RATE_ERROR`].
pub(crate) const MIN_WINDOW_OPS: f64 = 1.0 / MAX_RATE_ERROR;

/// Minimum length of a window in ns. A tick is at most [`MAX_RATE_ERROR`] of it.
pub(crate) const MIN_WINDOW_NS: f64 = TICK_NS / MAX_RATE_ERROR;

/// The reason why the windows of a case are too short for a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TooShort {
    /// The windows are too short: their mean length in ns.
    Time(f64),
    /// The windows have too few operations: the mean number in a window.
    Operations(f64),
}

/// Returns why the windows are too short for a rate, or `None` if they are long enough. Only windows that end by the
/// clock can be too short in time.
pub(crate) fn why_too_short(case: &Case) -> Option<TooShort> {
    let runs = case.runs.len() as f64;
    let ops = |ran: &CaseRun| RATED_KINDS.iter().map(|k| ran.in_window(*k).ops as f64).sum::<f64>();
    let counted: f64 = case.runs.iter().map(ops).sum();
    let length = case.window_ns() / runs;
    let by_clock = case.stream.limit == StopRule::default() && case.stream.engine != SIMULATED_ENGINE;
    if runs == 0.0 || counted == 0.0 {
        return None;
    }
    if by_clock && length < ENOUGH_SHARE * MIN_WINDOW_NS {
        return Some(TooShort::Time(length));
    }
    (counted < MIN_WINDOW_OPS * runs).then_some(TooShort::Operations(counted / runs))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn observed_in(fixture: &Fixture) -> Observed {
    let record = fixture.record();
    observe_case(&crate::case::cases(&record)[0])
}

#[cfg(test)]
fn too_little_in(record: &model::record::Record) -> Option<TooShort> {
    why_too_short(&crate::case::cases(record)[0])
}

#[cfg(test)]
fn figures_from(fixture: &Fixture) -> model::report::Measured {
    crate::judge(&fixture.record(), &crate::Judging::default()).results.remove(0)
}

#[test]
fn a_rate_is_operations_over_time_and_has_an_interval_from_three_runs() {
    let f = figures_from(&Fixture::honest());
    let total = f.total.unwrap();
    assert!((total.iops - 10_000.0).abs() < 1e-6 && (total.mb_per_s - 40.96).abs() < 1e-9);
    assert!(total.iops_interval.is_some() && f.write.is_none());
    let read = f.read.unwrap();
    assert_eq!((read.ops, read.bytes), (50_000, 50_000 * 4096));
    assert!((read.depth_mean - 31.5).abs() < 0.01);
    assert_eq!(figures_from(&Fixture { runs: 2, ..Fixture::honest() }).total.unwrap().iops_interval, None);
}

#[test]
fn percentiles_of_few_operations_are_withheld() {
    let p = figures_from(&Fixture { ops: 200, runs: 1, ..Fixture::honest() })
        .read
        .unwrap()
        .latency_ns
        .percentiles;
    assert!(p["90"].is_some() && p["99"].is_none() && p["99.99"].is_none());
    assert_eq!(p.len(), PERCENTILES.len());
}

#[test]
fn device_counts_come_with_issued_operations() {
    let device = figures_from(&Fixture::honest()).runs[0].device.unwrap();
    assert_eq!((device.issued_ops, device.ios), (11_000, 11_000));
    assert!(device.depth_mean > 25.0 && device.depth_mean < 33.0, "{}", device.depth_mean);
    assert_eq!(figures_from(&Fixture { stat_unreadable: true, ..Fixture::honest() }).runs[0].device, None);
}

#[test]
fn operations_without_data_have_a_rate_and_no_bytes() {
    let fixture = Fixture { engine: "fallocate", ..Fixture::honest_sequential() };
    let f = figures_from(&fixture);
    let total = f.total.unwrap();
    assert!(total.iops > 0.0 && total.iops_interval.is_some());
    assert_eq!((total.mb_per_s, total.mb_per_s_interval, f.read.unwrap().bytes), (0.0, None, 0));
    let record = fixture.record();
    let case = &crate::case::cases(&record)[0];
    assert_eq!(case.issued(Kind::Read), crate::case::Amount::default(), "no device is asked for them");
    let report = crate::judge(&record, &crate::Judging::default());
    assert_eq!((report.headline.unit.as_str(), report.verdict), ("IOPS", model::report::Verdict::Valid));
    assert_eq!(report.limiter.name, "file system");
}

#[test]
fn nothing_completed_is_none_and_not_zero() {
    let f = figures_from(&Fixture { ops: 0, ..Fixture::honest() });
    assert!(f.total.is_none() && f.read.is_none());
    assert!(figures_from(&Fixture { runs: 0, ..Fixture::honest() }).runs.is_empty());
}

#[test]
fn all_runs_are_added_up() {
    let seen = observed_in(&Fixture::honest());
    assert!(seen.succeeded && !seen.is_from_incomplete_run && seen.errors.is_empty());
    assert_eq!((seen.window_ns, seen.targets.len()), (5_000_000_000, 1));
    let read = &seen.kinds[&Kind::Read];
    assert_eq!((read.bytes, read.latency.count), (50_000 * 4096, 50_000));
    assert_eq!((seen.kinds.len(), read.service.is_none()), (1, true));
    let ops: u64 = read.time_series.iter().map(|s| s.ops).sum();
    assert_eq!(ops, read.latency.count);
    let ends = read.time_series.iter().map(|s| s.start_ns + s.ns);
    let gaps = read
        .time_series
        .iter()
        .skip(1)
        .zip(ends)
        .filter(|(next, end)| next.start_ns.abs_diff(*end) > 1_000_000);
    assert_eq!(gaps.count(), 0, "{:?}", read.time_series);
    assert_eq!((seen.disks.len(), seen.disks[0].name.as_str()), (1, "vda"));
    assert_eq!(seen.disks[0].stat.read.ios, 55_000);
    assert!(seen.workers.wall_ns > 0 && seen.workers.user_ns > 0);
}

#[test]
fn uncounted_values_are_absent() {
    assert!(observed_in(&Fixture { stat_unreadable: true, ..Fixture::honest() }).disks.is_empty());
    assert!(observed_in(&Fixture { role: Role::None, engine: "null", ..Fixture::honest() }).disks.is_empty());
    let mut record = Fixture::honest().record();
    record.runs.iter_mut().filter_map(|r| r.end.as_mut()).for_each(|end| {
        end.ending = RunEnding::Failed("no".into());
        end.streams[0].issued.entry(Kind::Read).or_default().errors.insert(5, 2);
    });
    let seen = observe_case(&crate::case::cases(&record)[0]);
    assert!(!seen.succeeded && seen.is_from_incomplete_run && seen.errors.get(&5) == Some(&10));
}

#[test]
fn an_interrupted_run_is_observed_only_without_a_complete_one() {
    let complete = Fixture { runs: 2, ..Fixture::honest() }.record();
    let seen = |interrupted: &[usize]| {
        let mut record = complete.clone();
        for run in interrupted {
            record.runs[*run].end.as_mut().unwrap().ending = RunEnding::Interrupted;
        }
        observe_case(&crate::case::cases(&record)[0])
    };
    let count = |seen: &Observed| seen.kinds[&Kind::Read].latency.count;
    let (one, cut) = (seen(&[1]), seen(&[0, 1]));
    assert_eq!([count(&seen(&[])), count(&one), count(&cut)], [20_000, 10_000, 10_000]);
    assert_eq!(
        [one.is_from_incomplete_run, cut.is_from_incomplete_run, one.succeeded, cut.succeeded],
        [false, true, true, true]
    );
}

#[test]
fn an_open_loop_has_latency_and_service_time() {
    let seen = observed_in(&Fixture::honest_open());
    let read = &seen.kinds[&Kind::Read];
    let service = read.service.as_ref().unwrap();
    assert!(service.count == read.latency.count && service.mean_ns <= read.latency.mean_ns);
}

#[test]
fn ten_operations_and_ten_ticks_are_enough() {
    assert_eq!(too_little_in(&Fixture { ops: 10, ..Fixture::honest() }.record()), None);
    assert_eq!(
        too_little_in(&Fixture { ops: 9, ..Fixture::honest() }.record()),
        Some(TooShort::Operations(9.0))
    );
    let with_window_ms = |ms: u64| {
        let mut record = Fixture::honest().record();
        let ends = record.runs.iter_mut().filter_map(|r| r.end.as_mut());
        ends.flat_map(|e| &mut e.streams).for_each(|s| s.window_ns = ms * 1_000_000);
        record
    };
    assert_eq!(too_little_in(&with_window_ms(100)), None);
    assert_eq!(too_little_in(&with_window_ms(50)), Some(TooShort::Time(5e7)));
    let mut simulated = with_window_ms(50);
    simulated.header.plan.jobs[0].phases[0].streams[0].engine = SIMULATED_ENGINE.into();
    assert_eq!(too_little_in(&simulated), None);
    let mut by_operations = with_window_ms(50);
    by_operations.header.plan.jobs[0].phases[0].streams[0].limit.operations = Some(11_000);
    assert_eq!(too_little_in(&by_operations), None);
}
