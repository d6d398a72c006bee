//! Time series of a case.
//!
//! 1. [`series_of_run`]: operations per second of a run in steps of equal length. Questions about warm-up, steps, drift and independence use it.
//! 2. [`DeviceWork`]: the requests that the devices had completed at each snapshot of a run, interpolated between
//!    snapshots.
//! 3. [`seconds_of_runs`]: the table of the report, fathom and the device second by second.
//! 4. [`recorded_series`] and [`latencies`]: the intervals at the resolution of the record, and latencies in buckets, for plots.

use crate::case::{Amount, Case, CaseRun};
use crate::figures::is_late;
use model::evidence::{BlockStat, Moment};
use model::figures::Observed;
use model::job::Kind;
use model::machine::Layer;
use model::record::{Cell, Interval, KindEnd};
use model::report::{DeviceSecond, DirectionSeries, LatencyBuckets, RunFigures, Second};
use model::{Known, report};
use stats::series::{FEWEST_STEPS, Series};
use std::collections::BTreeMap;

/// Maximum number of steps of a series: more add nothing, and the quadratic search for a change gets slow.
const MAX_STEPS: usize = 120;

/// Minimum mean number of operations in a step. With fewer, counting whole operations adds more
/// noise than the storage has.
const MIN_OPS_PER_STEP: f64 = 10.0;

/// Minimum length of a step in mean latencies. In a shorter step, all operations of a full queue complete, or none.
const MIN_LATENCIES_PER_STEP: f64 = 2.0;

/// Returns the operations and bytes of an interval, without syncs.
pub(crate) fn sum_moved(row: &Interval) -> Amount {
    let cells = row.cells.iter().filter(|(kind, _)| **kind != Kind::Sync);
    cells.fold(Amount::default(), |sum, (_, cell)| sum.plus(Amount { ops: cell.ops, bytes: cell.bytes }))
}

/// Returns the intervals of the case's stream in a run, without empty ones.
pub(crate) fn intervals_of<'a>(ran: &CaseRun<'a>) -> impl Iterator<Item = &'a Interval> {
    let stream = ran.stream.stream;
    ran.run.intervals.iter().filter(move |r| r.stream == stream && r.end_ns > r.start_ns)
}

/// Returns the series of every run.
///
/// # Errors
/// If there is no run, or a run has no series.
pub(crate) fn series_of_runs(case: &Case) -> Known<Vec<Series>> {
    case.need_run()?;
    case.runs.iter().map(series_of_run).collect()
}

/// Returns the series of a run.
///
/// # Errors
/// If the record has no intervals of the run, or if the run is too short for any conclusion.
pub(crate) fn series_of_run(ran: &CaseRun) -> Known<Series> {
    let rows: Vec<&Interval> = intervals_of(ran).collect();
    let from = rows.iter().map(|r| r.start_ns).min().ok_or("the record has no intervals of the run")?;
    let to = rows.iter().map(|r| r.end_ns).max().unwrap_or(from);
    let span_ns = (to - from) as f64;
    let ops: f64 = rows.iter().map(|r| sum_moved(r).ops as f64).sum();
    let latencies = || ran.stream.kinds.values().map(|k| &k.latency);
    let counted: f64 = latencies().map(|h| h.count() as f64).sum();
    let mean_ns = latencies().map(|h| h.sum_ns() as f64).sum::<f64>() / counted.max(1.0);
    let steps = (rows.len() as f64)
        .min(ops / MIN_OPS_PER_STEP)
        .min(span_ns / (MIN_LATENCIES_PER_STEP * mean_ns).max(1.0))
        .min(MAX_STEPS as f64) as usize;
    if steps < FEWEST_STEPS {
        return Err(format!(
            "the run is too short: the number of time steps that are long enough is {steps}, and {FEWEST_STEPS} are needed"
        ));
    }
    Ok(divide_among_steps(&rows, from as f64, span_ns / steps as f64, steps))
}

/// Divides the operations of each interval among the steps that it overlaps.
fn divide_among_steps(rows: &[&Interval], from_ns: f64, step_ns: f64, steps: usize) -> Series {
    let mut rates = vec![0.0; steps];
    for row in rows {
        let (row_begin, row_end) = (row.start_ns as f64 - from_ns, row.end_ns as f64 - from_ns);
        let per_ns = sum_moved(row).ops as f64 / (row_end - row_begin).max(1.0);
        let first = (row_begin / step_ns) as usize;
        for (index, rate) in rates.iter_mut().enumerate().skip(first) {
            let (begin, end) = (index as f64 * step_ns, (index + 1) as f64 * step_ns);
            if begin >= row_end {
                break;
            }
            *rate += (row_end.min(end) - row_begin.max(begin)).max(0.0) * per_ns;
        }
    }
    for rate in &mut rates {
        *rate *= 1e9 / step_ns;
    }
    Series { from_ns, step_ns, rates }
}

/// The work that layers had completed since the start of a run, at each snapshot.
pub(crate) struct DeviceWork {
    /// The work at each snapshot, in order of time; at least two points.
    points: Vec<WorkAt>,
}

/// The work that layers had completed at a snapshot.
struct WorkAt {
    /// Time in ns since the workers started; 0 or less for the start snapshot.
    at_ns: f64,
    done: BlockStat,
}

/// The work that layers completed in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CompletedWork {
    /// Length of the stretch, as far as snapshots cover it.
    pub seconds: f64,
    /// Completed reads and writes.
    pub ios: f64,
    /// Bytes of the completed reads and writes.
    pub bytes: f64,
    /// Mean time of a request in ns; `None` without requests.
    pub latency_ns: Option<f64>,
    /// Mean requests in flight.
    pub in_flight: f64,
}

impl DeviceWork {
    /// Reads the snapshots of a run.
    ///
    /// # Errors
    /// Why a layer was not counted.
    pub(crate) fn from_run(ran: &CaseRun, layers: &[&Layer]) -> Known<Self> {
        let (start, stop) = (ran.snapshot(Moment::Start)?, ran.snapshot(Moment::Stop)?);
        let parse = |layer: &&Layer| BlockStat::parse(start.text(&layer.stat_file)?);
        let first: Vec<BlockStat> = layers.iter().map(parse).collect::<Known<_>>()?;
        let zero = workers_start_ns(ran)?;
        let mut now = first.clone();
        let mut points = vec![WorkAt { at_ns: start.at_ns as f64 - zero, done: BlockStat::default() }];
        let during = ran.run.evidence.iter().filter(|s| s.moment == Moment::During);
        for snapshot in during.chain([stop]) {
            for (layer, stat) in layers.iter().zip(&mut now) {
                // A snapshot lacks a file that has not changed.
                if snapshot.files.contains_key(&layer.stat_file) {
                    *stat = BlockStat::parse(snapshot.text(&layer.stat_file)?)?;
                }
            }
            let mut done = BlockStat::default();
            for ((stat, before), layer) in now.iter().zip(&first).zip(layers) {
                let backwards = || format!("{}: the counters went backwards", layer.stat_file);
                done = done.plus(&stat.since(before).ok_or_else(backwards)?);
            }
            let at_ns = snapshot.at_ns as f64 - zero;
            if points.last().is_some_and(|last| at_ns > last.at_ns) {
                points.push(WorkAt { at_ns, done });
            }
        }
        if points.len() < 2 {
            return Err("no time passed between the snapshots at start and stop".into());
        }
        Ok(Self { points })
    }

    /// Returns the work between two times in ns since the workers started; `None` if the span is empty or outside the
    /// snapshots.
    pub(crate) fn between(&self, from_ns: f64, to_ns: f64) -> Option<CompletedWork> {
        let (first, last) = (self.points.first()?.at_ns, self.points.last()?.at_ns);
        let (from_ns, to_ns) = (from_ns.max(first), to_ns.min(last));
        if to_ns <= from_ns {
            return None;
        }
        let (before, after) = (self.at(from_ns)?, self.at(to_ns)?);
        let [ios, bytes, ms, queue_ms] = std::array::from_fn(|i| after[i] - before[i]);
        Some(CompletedWork {
            seconds: (to_ns - from_ns) / 1e9,
            ios,
            bytes,
            latency_ns: (ios >= 0.5).then(|| ms * 1e6 / ios),
            in_flight: queue_ms * 1e6 / (to_ns - from_ns),
        })
    }

    /// Returns the work from the first to the last snapshot between two times; `None` with fewer than two
    /// snapshots.
    pub(crate) fn within(&self, from_ns: f64, to_ns: f64) -> Option<CompletedWork> {
        let mut inside = self.points.iter().map(|p| p.at_ns).filter(|at| (from_ns..=to_ns).contains(at));
        let first = inside.next()?;
        self.between(first, inside.next_back()?)
    }

    /// Returns the requests, bytes, ms and queue ms completed until this time, interpolated between snapshots.
    fn at(&self, ns: f64) -> Option<[f64; 4]> {
        let numbers = |done: &BlockStat| {
            let total = done.total();
            [total.ios, total.bytes, total.ms, done.queue_ms].map(|n| n as f64)
        };
        let index = self.points.iter().position(|p| p.at_ns >= ns)?;
        let after = self.points.get(index)?;
        let Some(before) = index.checked_sub(1).and_then(|i| self.points.get(i)) else {
            return Some(numbers(&after.done));
        };
        let part = (ns - before.at_ns) / (after.at_ns - before.at_ns);
        let (earlier, later) = (numbers(&before.done), numbers(&after.done));
        Some(std::array::from_fn(|i| earlier[i] + (later[i] - earlier[i]) * part))
    }
}

/// Returns when the workers of a run started, in ns since the session began. It is computed back from the stop snapshot
/// by the workers' running time, because the time between the start snapshot and their start is unknown.
fn workers_start_ns(ran: &CaseRun) -> Known<f64> {
    let (start, stop) = (ran.snapshot(Moment::Start)?.at_ns, ran.snapshot(Moment::Stop)?.at_ns);
    let longest = ran.end.workers.iter().map(|w| w.wall_ns).max().filter(|ns| *ns > 0);
    Ok(longest.map_or(start, |ns| stop.saturating_sub(ns).max(start)) as f64)
}

/// Maximum number of rows per run. A row covers one second, or several seconds in a run of more seconds than this. This
/// bounds the size of the report.
const MAX_ROWS: f64 = 3600.0;

const SECOND_NS: f64 = 1e9;

/// A remainder at the end that is shorter than this, in seconds, is rounding and gets no row.
const SHORTEST_REST_S: f64 = 0.01;

/// Returns the rows of all runs of a case, one for each second of a run. In a run of more than an
/// hour, each row covers several seconds.
pub(crate) fn seconds_of_runs(case: &Case) -> Vec<Second> {
    let tops = case.has_storage().then(|| case.top_layers().ok()).flatten();
    case.runs.iter().flat_map(|ran| seconds_of_run(case, ran, tops.as_deref())).collect()
}

fn seconds_of_run(case: &Case, ran: &CaseRun, tops: Option<&[&Layer]>) -> Vec<Second> {
    let (from, to) = intervals_of(ran).fold((u64::MAX, 0), |(a, b), r| (a.min(r.start_ns), b.max(r.end_ns)));
    if to <= from {
        return Vec::new();
    }
    let span = (to - from) as f64;
    let step = SECOND_NS * (span / SECOND_NS / MAX_ROWS).ceil().max(1.0);
    let count = (span / step - SHORTEST_REST_S).ceil().max(1.0) as usize;
    // A device does not count streams separately, so each stream shows the device's rows.
    let device = tops.and_then(|tops| DeviceWork::from_run(ran, tops).ok());
    let ours = own_work_by_row(ran, from, count, step);
    let moved_bytes = |bytes: f64| if case.stream.moves_no_data() { 0.0 } else { bytes };
    let second = |(index, ours): (usize, OwnWork)| {
        let (begin, end) =
            (step * index as f64, if index + 1 == count { span } else { step * (index + 1) as f64 });
        let seconds = (end - begin) / SECOND_NS;
        let zero = from as f64;
        Second {
            run: ran.run.start.repeat,
            start_s: begin / SECOND_NS,
            seconds,
            iops: ours.ops / seconds,
            mb_per_s: moved_bytes(ours.bytes) / seconds / 1e6,
            p99_at_most_ns: ours.p99_ns,
            device: device.as_ref().and_then(|d| d.between(zero + begin, zero + end)).map(|d| DeviceSecond {
                iops: d.ios / d.seconds,
                mb_per_s: d.bytes / d.seconds / 1e6,
                latency_ns: d.latency_ns,
                in_flight: d.in_flight,
            }),
        }
    };
    ours.into_iter().enumerate().map(second).collect()
}

/// fathom's part of a row.
#[derive(Clone, Default)]
struct OwnWork {
    ops: f64,
    bytes: f64,
    p99_ns: Option<u64>,
}

/// Divides every interval among the rows that it overlaps. The last row also includes operations after its end.
fn own_work_by_row(ran: &CaseRun, from: u64, count: usize, step: f64) -> Vec<OwnWork> {
    let mut out = vec![OwnWork::default(); count];
    for interval in intervals_of(ran) {
        let (start, stop) = ((interval.start_ns - from) as f64, (interval.end_ns - from) as f64);
        let Amount { ops, bytes } = sum_moved(interval);
        let p99 = interval.cells.iter().filter(|(k, _)| **k != Kind::Sync).map(|(_, c)| c.p99_ns).max();
        let first = ((start / step) as usize).min(count.saturating_sub(1));
        for (index, ours) in out.iter_mut().enumerate().skip(first) {
            let begin = step * index as f64;
            let end = if index + 1 == count { stop } else { begin + step };
            let part = (stop.min(end) - start.max(begin)) / (stop - start);
            if part <= 0.0 && index > first {
                break;
            }
            ours.ops += part.max(0.0) * ops as f64;
            ours.bytes += part.max(0.0) * bytes as f64;
            ours.p99_ns = ours.p99_ns.max(p99);
        }
    }
    out
}

/// Maximum number of points of a result, apart from one more for each run. A page cannot draw more.
const MAX_POINTS: usize = 3000;

/// With more runs than this, no run gets its own latency tail. A plot cannot distinguish more.
const MAX_RUNS_WITH_TAILS: usize = 40;

/// Number of entries in a latency tail for each factor of ten in the share of slower operations.
const ENTRIES_PER_DECADE: f64 = 10.0;

/// Returns the intervals of all complete runs; `None` if the record has none.
pub(crate) fn recorded_series(case: &Case) -> Option<report::TimeSeries> {
    let rows: usize = case.runs.iter().map(|ran| intervals_of(ran).count()).sum();
    let joined = rows.div_ceil(MAX_POINTS).max(1);
    let mut out = report::TimeSeries { joined: joined as u32, ..report::TimeSeries::default() };
    for kind in case.runs.iter().flat_map(|ran| ran.stream.kinds.keys()) {
        out.directions.entry(kind.word().into()).or_default();
    }
    for ran in case.runs.iter() {
        let mut rows: Vec<&Interval> = intervals_of(ran).collect();
        rows.sort_by_key(|row| row.start_ns);
        let from = rows.first().map_or(0, |row| row.start_ns);
        for part in rows.chunks(joined) {
            add_point(&mut out, ran.run.start.repeat, from, part);
        }
    }
    (!out.run.is_empty()).then_some(out)
}

/// Adds one point, which is the sum of neighbouring intervals.
fn add_point(out: &mut report::TimeSeries, run: u32, from: u64, part: &[&Interval]) {
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return };
    let ns: f64 = part.iter().map(|row| (row.end_ns - row.start_ns) as f64).sum();
    let depth: f64 = part.iter().map(|row| row.depth_ns as f64).sum();
    let span_ns = last.end_ns.saturating_sub(first.start_ns).max(1) as f64;
    out.run.push(run);
    out.start_s.push(round_to((first.start_ns - from) as f64 / 1e9, 1e4));
    out.seconds.push(round_to(span_ns / 1e9, 1e4));
    out.depth_mean.push(round_to(depth / ns.max(1.0), 1e2));
    for (word, direction) in &mut out.directions {
        let cell_of =
            |row: &&Interval| row.cells.iter().find(|(kind, _)| kind.word() == word).map(|(_, cell)| *cell);
        add_direction(direction, span_ns / 1e9, &part.iter().filter_map(cell_of).collect::<Vec<Cell>>());
    }
}

fn add_direction(out: &mut DirectionSeries, seconds: f64, cells: &[Cell]) {
    let ops: f64 = cells.iter().map(|cell| cell.ops as f64).sum();
    let bytes: f64 = cells.iter().map(|cell| cell.bytes as f64).sum();
    let medians: f64 = cells.iter().map(|cell| cell.ops as f64 * cell.p50_ns as f64).sum();
    out.iops.push(round_to(ops / seconds, 10.0));
    out.mb_per_s.push(round_to(bytes / seconds / 1e6, 1e2));
    let some = |ns: Option<u64>| ns.filter(|_| ops > 0.0);
    out.p50_ns.push(some(Some((medians / ops.max(1.0)).round() as u64)));
    out.p99_ns.push(some(cells.iter().map(|cell| cell.p99_ns).max()));
    out.max_ns.push(some(cells.iter().map(|cell| cell.max_ns).max()));
}

/// Rounds to a multiple of 1 / `scale`: more digits would only enlarge the report.
fn round_to(value: f64, scale: f64) -> f64 {
    (value * scale).round() / scale
}

/// Returns the latencies of all complete runs, by direction; empty if no run is complete.
pub(crate) fn latencies(seen: Option<&Observed>) -> BTreeMap<String, LatencyBuckets> {
    let kinds = seen.into_iter().filter(|seen| !seen.is_from_incomplete_run).flat_map(|seen| &seen.kinds);
    kinds.map(|(kind, seen): (&Kind, _)| (kind.word().into(), LatencyBuckets::from(&seen.latency))).collect()
}

/// Adds the latency tails of the runs, unless there are too many runs.
pub(crate) fn add_tails(case: &Case, runs: &mut [RunFigures]) {
    if runs.len() > MAX_RUNS_WITH_TAILS {
        return;
    }
    for run in runs {
        let Some(ran) = case.runs.iter().find(|ran| ran.run.start.repeat == run.run) else { continue };
        let kinds = ran.stream.kinds.iter().filter(|(_, end)| end.latency.count() > 0);
        run.tails_ns = kinds.map(|(kind, end)| (kind.word().into(), tail(end))).collect();
    }
}

/// Returns the latency that one operation in 10^(k/10) exceeds, for k = 1, 2, ... Ends before the first entry with
/// fewer than ten operations beyond it. An entry is `None` if fathom's lateness makes up too much of it.
fn tail(end: &KindEnd) -> Vec<Option<u64>> {
    let entry = |k: u32| {
        let q = 1.0 - 10_f64.powf(-f64::from(k) / ENTRIES_PER_DECADE);
        let ns = end.latency.supported_quantile_ns(q)?;
        let is_late = end.open.as_ref().is_some_and(|open| is_late(ns, &open.lateness, q));
        Some((!is_late).then_some(ns))
    };
    (1..).map_while(entry).collect()
}

#[cfg(test)]
use crate::fixture::Fixture;

/// Adds a snapshot every half second to runs that have none. `done` is the share that is completed at a point of the run, and `ms_per_io`
/// the time of a request.
#[cfg(test)]
pub(crate) fn add_snapshots(
    record: &mut model::record::Record,
    ms_per_io: impl Fn(f64) -> f64,
    done: impl Fn(f64) -> f64,
) {
    const FILE: &str = "/sys/block/vda/stat";
    for run in &mut record.runs {
        let (start, stop) = (run.evidence[0].clone(), run.evidence[1].clone());
        let span = run.end.as_ref().map_or(0, |e| e.workers.iter().map(|w| w.wall_ns).max().unwrap_or(0));
        let from = stop.at_ns - span;
        let parse = |s: &model::evidence::Snapshot| BlockStat::parse(s.text(FILE).unwrap()).unwrap();
        let (a, b) = (parse(&start), parse(&stop));
        let ios = (b.total().ios - a.total().ios) as f64;
        let mut ms = a.read.ms as f64;
        let mut before = 0.0;
        let steps = span / 500_000_000;
        for step in 1..=steps {
            let part = step as f64 / steps as f64;
            let at = (a.read.ios as f64 + ios * done(part)) as u64;
            ms += ios * (done(part) - before) * ms_per_io(part);
            before = done(part);
            let w = a.write;
            let text = format!(
                "{at} 0 {} {} {} 0 {} {} 0 0 {} 0 0 0 0 0 0\n",
                at * 8,
                ms as u64,
                w.ios,
                w.bytes / 512,
                w.ms,
                a.queue_ms + ms as u64 - a.read.ms
            );
            let files = [(FILE.to_owned(), Ok(text))].into();
            let moment = if step == steps { Moment::Stop } else { Moment::During };
            let snapshot = model::evidence::Snapshot {
                moment,
                at_ns: from + step * 500_000_000,
                files,
                targets: Vec::new(),
            };
            if step == steps {
                run.evidence[1].files.insert(FILE.to_owned(), snapshot.files[FILE].clone());
            } else {
                let last = run.evidence.len();
                run.evidence.insert(last, snapshot);
            }
        }
    }
}

#[test]
fn intervals_of_any_length_become_steps_without_losing_operations() {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    for (i, row) in record.runs[0].intervals.iter_mut().enumerate() {
        row.end_ns += (i as u64 % 3) * 7_000_000;
    }
    let case = &crate::case::cases(&record)[0];
    let s = series_of_run(&case.runs[0]).unwrap();
    assert_eq!(s.rates.len(), 10);
    let ops: f64 = s.rates.iter().sum::<f64>() * s.step_ns / 1e9;
    assert!((ops - 10_000.0).abs() < 1e-6, "{ops}");
}

#[test]
fn a_missing_or_short_series_gives_a_reason() {
    let mut record = Fixture { runs: 1, ops: 80, latency_ns: Some(1000), ..Fixture::honest() }.record();
    assert!(
        series_of_run(&crate::case::cases(&record)[0].runs[0]).is_err_and(|why| why.contains("too short"))
    );
    record.runs[0].intervals.clear();
    assert!(series_of_run(&crate::case::cases(&record)[0].runs[0]).is_err_and(|why| why.contains("record")));
}

#[test]
fn counters_are_interpolated_between_snapshots() {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    add_snapshots(&mut record, |part| if part <= 0.5 { 1.0 } else { 3.0 }, |part| part);
    let case = &crate::case::cases(&record)[0];
    let work = DeviceWork::from_run(&case.runs[0], &case.top_layers().unwrap()).unwrap();
    let first = work.between(0.0, 0.5e9).unwrap();
    let second = work.between(0.5e9, 1e9).unwrap();
    assert!((second.ios - 5_500.0).abs() < 2.0 && (second.bytes - 5_500.0 * 4096.0).abs() < 8192.0);
    assert!(first.latency_ns < second.latency_ns.map(|l| l * 0.6), "{first:?} {second:?}");
    assert!((work.between(0.5e9, 0.75e9).unwrap().ios - 2_750.0).abs() < 2.0);
    assert_eq!((work.between(2e9, 3e9), work.within(0.6e9, 0.9e9)), (None, None));
}

#[test]
fn a_run_without_counters_has_no_device_series_but_a_reason() {
    let record = Fixture { stat_unreadable: true, ..Fixture::honest() }.record();
    let case = &crate::case::cases(&record)[0];
    assert!(
        DeviceWork::from_run(&case.runs[0], &case.top_layers().unwrap())
            .is_err_and(|why| why.contains("Permission"))
    );
}

#[test]
fn each_second_has_fathoms_and_the_devices_figures() {
    let mut record = Fixture { runs: 2, ..Fixture::honest() }.record();
    let case = &crate::case::cases(&record)[0];
    let rows = seconds_of_runs(case);
    assert!(rows.iter().all(|r| (r.seconds - 1.0).abs() < 1e-9));
    assert_eq!(rows.len(), 2, "two runs of a second");
    assert!((rows[0].iops - 10_000.0).abs() < 1.0 && (rows[0].mb_per_s - 40.96).abs() < 0.01);
    let device = rows[1].device.unwrap();
    assert!(device.iops > 9_500.0 && device.iops < 11_500.0 && device.latency_ns.is_some(), "{device:?}");
    assert!(rows[1].p99_at_most_ns.is_some_and(|ns| ns > 3_000_000));
    for row in record.runs.iter_mut().flat_map(|r| &mut r.intervals) {
        (row.start_ns, row.end_ns) = (row.start_ns * 25, row.end_ns * 25);
    }
    let rows = seconds_of_runs(&crate::case::cases(&record)[0]);
    assert_eq!(rows.len(), 50);
    assert!(rows[30].device.is_none(), "the last snapshot was earlier");
}

#[test]
fn a_run_of_days_has_few_rows_and_a_run_without_intervals_none() {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    for row in record.runs.iter_mut().flat_map(|r| &mut r.intervals) {
        (row.start_ns, row.end_ns) = (row.start_ns * 500_000, row.end_ns * 500_000);
    }
    let rows = seconds_of_runs(&crate::case::cases(&record)[0]);
    assert!(rows.len() <= 3600 && rows[0].seconds > 100.0, "{}", rows.len());
    record.runs[0].intervals.clear();
    assert!(seconds_of_runs(&crate::case::cases(&record)[0]).is_empty());
}

#[test]
fn every_operation_is_in_the_series_and_in_the_buckets() {
    let record = Fixture { runs: 2, ..Fixture::honest() }.record();
    let case = &crate::case::cases(&record)[0];
    let time_series = recorded_series(case).unwrap();
    let reads = &time_series.directions["read"];
    let ops: f64 = reads.iops.iter().zip(&time_series.seconds).map(|(iops, s)| iops * s).sum();
    assert!((ops - 20_000.0).abs() < 20.0, "{ops}");
    assert_eq!(
        (time_series.joined, time_series.run.first(), time_series.run.last()),
        (1, Some(&0), Some(&1))
    );
    assert!(reads.p50_ns.iter().zip(&reads.max_ns).all(|(p50, max)| p50 <= max && p50.is_some()));
    assert!(
        time_series.depth_mean.iter().all(|depth| (depth - 31.5).abs() < 2.0),
        "{:?}",
        time_series.depth_mean
    );
    let latencies = latencies(Some(&crate::figures::observe_case(case)));
    assert_eq!(latencies["read"].count(), 20_000);
}

#[test]
fn missing_intervals_give_no_series_and_too_many_are_joined() {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    let rows = record.runs[0].intervals.clone();
    let span = rows.iter().map(|r| r.end_ns).max().unwrap();
    record.runs[0].intervals = (0..800_u64)
        .flat_map(|i| {
            rows.iter().cloned().map(move |r| Interval {
                start_ns: r.start_ns + i * span,
                end_ns: r.end_ns + i * span,
                ..r
            })
        })
        .collect();
    let many = recorded_series(&crate::case::cases(&record)[0]).unwrap();
    assert!(many.run.len() <= MAX_POINTS && many.joined > 1, "{} of {}", many.run.len(), many.joined);
    record.runs[0].intervals.clear();
    assert_eq!(recorded_series(&crate::case::cases(&record)[0]), None);
}

#[test]
fn a_tail_ends_with_ten_operations_beyond_and_only_few_runs_have_tails() {
    let record = Fixture { runs: 3, ..Fixture::honest() }.record();
    let case = &crate::case::cases(&record)[0];
    let mut runs = crate::figures::figures_of_runs(case, &case.runs);
    add_tails(case, &mut runs);
    let tail = &runs[1].tails_ns["read"];
    // Of 10,000 operations, ten are beyond the latency that one in a thousand exceeds.
    assert_eq!(tail.len(), 30, "{tail:?}");
    assert_eq!(tail[19], runs[1].percentiles_ns["read"]["99"], "one in a hundred");
    assert!(tail.is_sorted());
    let mut many = vec![runs[0].clone(); MAX_RUNS_WITH_TAILS + 1];
    many.iter_mut().for_each(|run| run.tails_ns.clear());
    add_tails(case, &mut many);
    assert!(many.iter().all(|run| run.tails_ns.is_empty()));
}
