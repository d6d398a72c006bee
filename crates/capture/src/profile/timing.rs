//! When requests came: gaps and burstiness, requests in flight, and time series.
//!
//! 1. Burstiness is the index of dispersion of counts in 10 ms and 100 ms.
//! 2. The depth is the time average of the requests that were issued and not yet completed. Waiting in the scheduler does not count.
//! 3. A time series has the requests, bytes and latencies of equal intervals, and where on the device the requests began. Neither the
//!    duration nor the largest offset is known beforehand. Therefore intervals and offset rows begin short. Whenever a request is beyond
//!    the last interval or row, neighbours are merged in pairs. Memory grows neither with requests nor with time.

use crate::profile::{latency, share};
use model::captured::{Arrivals, Depth, DepthShare, KindSeries, LoadSeries, Op, Place, Places};
use model::histogram::Histogram;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use trace::row::Row;

/// Intervals for counting requests, in ns.
const INTERVALS_NS: [u64; 2] = [10_000_000, 100_000_000];
/// Minimum number of intervals for computing a dispersion.
const MIN_INTERVALS: u64 = 10;

/// Arrivals of one kind of request.
#[derive(Debug, Default)]
pub(crate) struct ArrivalCounter {
    /// Label of the requests: all, reads, or writes.
    label: &'static str,
    last_ns: Option<u64>,
    /// Times between consecutive arrivals.
    pub(crate) gaps: Histogram,
    counts: [Counts; 2],
}

/// Counts in intervals of one length: the count of the current interval, and sums over the earlier ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    interval: u64,
    current: f64,
    sum: f64,
    squares: f64,
}

/// Arrivals of all requests, of reads and of writes.
#[derive(Debug, Default)]
pub(super) struct ArrivalCounts {
    from_ns: u64,
    arrivals: [ArrivalCounter; 3],
}

impl ArrivalCounts {
    pub(super) fn new(from_ns: u64) -> Self {
        let arrivals = |label| ArrivalCounter { label, ..ArrivalCounter::default() };
        Self { from_ns, arrivals: ["all", "read", "write"].map(arrivals) }
    }

    pub(super) fn add(&mut self, op: Op, issue_ns: u64) {
        let at_ns = issue_ns.saturating_sub(self.from_ns);
        self.arrivals[0].add(at_ns);
        match op {
            Op::Read => self.arrivals[1].add(at_ns),
            Op::Write => self.arrivals[2].add(at_ns),
            _ => {}
        }
    }

    pub(super) fn finish(self, duration_ns: u64) -> Vec<Arrivals> {
        let reported = self.arrivals.into_iter().filter_map(|arrivals| {
            let [idc_10ms, idc_100ms] = arrivals.dispersion(duration_ns);
            Some(Arrivals {
                requests_of: arrivals.label.into(),
                gap_ns: latency(&arrivals.gaps)?,
                idc_10ms,
                idc_100ms,
            })
        });
        reported.collect()
    }
}

impl ArrivalCounter {
    /// Returns the index of dispersion of counts in intervals of 10 and 100 ms, over this duration.
    pub(crate) fn dispersion(&self, duration_ns: u64) -> [Option<f64>; 2] {
        [0, 1].map(|at| self.counts[at].dispersion(duration_ns / INTERVALS_NS[at]))
    }

    /// Adds an arrival, `at_ns` after the beginning of the capture.
    pub(crate) fn add(&mut self, at_ns: u64) {
        if let Some(last) = self.last_ns.replace(at_ns) {
            self.gaps.record(at_ns.saturating_sub(last));
        }
        for (counts, length) in self.counts.iter_mut().zip(INTERVALS_NS) {
            counts.add(at_ns / length);
        }
    }
}

impl Counts {
    fn add(&mut self, interval: u64) {
        if interval != self.interval {
            self.close();
            self.interval = interval;
        }
        self.current += 1.0;
    }

    fn close(&mut self) {
        self.sum += self.current;
        self.squares += self.current * self.current;
        self.current = 0.0;
    }

    /// Returns the variance of the counts divided by their mean, over complete intervals, including
    /// those without requests. `None` with too few intervals, or without requests.
    fn dispersion(mut self, intervals: u64) -> Option<f64> {
        if intervals < MIN_INTERVALS {
            return None;
        }
        // Count the current interval only if it is complete.
        if self.interval < intervals {
            self.close();
        }
        let count = intervals as f64;
        let mean = self.sum / count;
        (mean > 0.0).then(|| (self.squares / count - mean * mean).max(0.0) / mean)
    }
}

/// Maximum number of requests in flight that are counted, more than any device accepts.
const MAX_IN_FLIGHT: usize = 1 << 18;
/// Highest depth that has its own class. Above it, classes end at powers of two.
const MAX_SINGLE_DEPTH: u64 = 2;

/// Requests in flight, from rows in order of issue.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    ends: BinaryHeap<Reverse<u64>>,
    now_ns: u64,
    most: u64,
    /// Time in ns at each depth class: 0, 1, 2, up to 4, up to 8, ...
    times: Vec<u64>,
    /// Integral of the depth over time, in requests times ns.
    integral: u128,
}

impl InFlight {
    pub(super) fn add(&mut self, row: &Row) {
        let Some(latency) = row.latency_ns else { return };
        self.until(row.issue_ns);
        if self.ends.len() >= MAX_IN_FLIGHT {
            self.ends.pop();
        }
        self.ends.push(Reverse(row.issue_ns.saturating_add(latency)));
        self.most = self.most.max(self.ends.len() as u64);
    }

    /// Advances the time to `at_ns`.
    fn until(&mut self, at_ns: u64) {
        while let Some(&Reverse(end)) = self.ends.peek().filter(|Reverse(end)| *end <= at_ns) {
            self.pass(end);
            self.ends.pop();
        }
        self.pass(at_ns);
    }

    fn pass(&mut self, to_ns: u64) {
        let passed = to_ns.saturating_sub(self.now_ns);
        let depth = self.ends.len() as u64;
        let class = class(depth);
        if self.times.len() <= class {
            self.times.resize(class + 1, 0);
        }
        self.times[class] += passed;
        self.integral += u128::from(depth) * u128::from(passed);
        self.now_ns = self.now_ns.max(to_ns);
    }

    pub(super) fn finish(mut self, duration_ns: u64) -> Option<Depth> {
        if self.most == 0 {
            return None;
        }
        self.until(u64::MAX - 1);
        // Nothing was in flight for the rest of the time.
        let busy: u64 = self.times.iter().skip(1).sum();
        let whole = duration_ns.max(busy);
        let over = |time: u64| if time == 0 { 0.0 } else { self.integral as f64 / time as f64 };
        let (mean, busy_mean) = (over(whole), over(busy));
        if let Some(idle) = self.times.first_mut() {
            *idle = whole - busy;
        }
        let reported = self.times.iter().enumerate().filter(|(_, time)| **time > 0).map(|(class, time)| {
            let (from, to) = bounds(class as u64);
            DepthShare { from, to, share: share(*time, whole) }
        });
        Some(Depth { mean, busy_mean, max: self.most, shares: reported.collect() })
    }
}

/// Returns the class of a depth.
fn class(depth: u64) -> usize {
    if depth <= MAX_SINGLE_DEPTH {
        depth as usize
    } else {
        depth.next_power_of_two().trailing_zeros() as usize + 1
    }
}

/// Returns the minimum and maximum depth of a class.
fn bounds(class: u64) -> (u64, u64) {
    if class <= MAX_SINGLE_DEPTH { (class, class) } else { ((1 << (class - 2)) + 1, 1 << (class - 1)) }
}

/// Maximum number of intervals.
const MAX_STEPS: usize = 256;
/// Initial length of an interval in ns.
const INITIAL_STEP_NS: u64 = 1_000_000;
/// Maximum number of offset rows while counting. It is far larger than the number of reported rows, because a load may use only a small
/// part of a large device.
const MAX_ROWS: usize = 4096;

const INITIAL_ROW_BYTES: u64 = 4096;
/// Maximum number of reported offset rows. These rows cover the part between the first and the last touched row.
const MAX_REPORTED_ROWS: usize = 96;

/// The requests with one [`Op`] by interval.
#[derive(Debug)]
struct OpSteps {
    steps: Vec<Step>,
    /// Requests that began in each offset row and interval; empty for operations other than reads and writes.
    grid: Vec<u32>,
}

/// The requests with one [`Op`] in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    requests: u64,
    bytes: u64,
    /// Number of requests with a known latency.
    timed: u64,
    /// Sum of the known latencies.
    latency_ns: u64,
}

/// Computes time series.
#[derive(Debug, Default)]
pub(super) struct TimeSeries {
    from_ns: u64,
    step_ns: u64,
    row_bytes: u64,
    kinds: BTreeMap<Op, OpSteps>,
}

impl TimeSeries {
    pub(super) fn new(from_ns: u64) -> Self {
        Self { from_ns, step_ns: INITIAL_STEP_NS, row_bytes: INITIAL_ROW_BYTES, kinds: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, op: Op, row: &Row) {
        let at_ns = row.issue_ns.saturating_sub(self.from_ns);
        while at_ns / self.step_ns >= MAX_STEPS as u64 {
            self.step_ns *= 2;
            self.kinds.values_mut().for_each(OpSteps::halve_steps);
        }
        let has_place = matches!(op, Op::Read | Op::Write);
        let offset = row.sector.saturating_mul(trace::SECTOR);
        while has_place && offset / self.row_bytes >= MAX_ROWS as u64 {
            self.row_bytes *= 2;
            self.kinds.values_mut().for_each(OpSteps::halve_rows);
        }
        let step = (at_ns / self.step_ns) as usize;
        let kind = self.kinds.entry(op).or_insert_with(|| {
            let grid = if has_place { vec![0; MAX_STEPS * MAX_ROWS] } else { Vec::new() };
            OpSteps { steps: vec![Step::default(); MAX_STEPS], grid }
        });
        kind.steps[step].add(row);
        if has_place {
            let count = &mut kind.grid[step * MAX_ROWS + (offset / self.row_bytes) as usize];
            *count = count.saturating_add(1);
        }
    }

    /// Returns the time series over this duration; `None` without requests.
    pub(super) fn finish(self, duration_ns: u64) -> Option<LoadSeries> {
        let last =
            self.kinds.values().filter_map(|kind| kind.steps.iter().rposition(|s| s.requests > 0)).max()?;
        let steps = (duration_ns.div_ceil(self.step_ns) as usize).clamp(last + 1, MAX_STEPS.max(last + 1));
        let places = self.places(steps);
        let series = self.kinds.into_iter().map(|(op, kind)| kind.into_series(op, steps)).collect();
        Some(LoadSeries { step_ns: self.step_ns, steps, kinds: series, places })
    }

    /// Returns where reads and writes began, in offset rows of equal size between the first and the last touched row.
    fn places(&self, steps: usize) -> Option<Places> {
        let touched = |row: &usize| {
            self.kinds
                .values()
                .any(|kind| kind.grid.iter().skip(*row).step_by(MAX_ROWS).any(|count| *count > 0))
        };
        let first = (0..MAX_ROWS).find(touched)?;
        let last = (0..MAX_ROWS).rev().find(touched)?;
        let merged_rows = (last + 1 - first).div_ceil(MAX_REPORTED_ROWS);
        let rows = (last + 1 - first).div_ceil(merged_rows);
        let reported = |(op, kind): (&Op, &OpSteps)| {
            let mut cells = Vec::new();
            for step in 0..steps {
                for row in 0..rows {
                    let from = first + row * merged_rows;
                    let counts = &kind.grid
                        [step * MAX_ROWS + from..step * MAX_ROWS + (from + merged_rows).min(MAX_ROWS)];
                    let requests: u64 = counts.iter().map(|count| u64::from(*count)).sum();
                    if requests > 0 {
                        cells.push(Place { step, row, requests });
                    }
                }
            }
            (*op, cells)
        };
        Some(Places {
            first_byte: first as u64 * self.row_bytes,
            row_bytes: self.row_bytes.saturating_mul(merged_rows as u64),
            rows,
            kinds: self.kinds.iter().filter(|(_, kind)| !kind.grid.is_empty()).map(reported).collect(),
        })
    }
}

impl Step {
    fn add(&mut self, row: &Row) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(row.bytes());
        if let Some(ns) = row.latency_ns {
            self.timed += 1;
            self.latency_ns = self.latency_ns.saturating_add(ns);
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            bytes: self.bytes.saturating_add(other.bytes),
            timed: self.timed + other.timed,
            latency_ns: self.latency_ns.saturating_add(other.latency_ns),
        }
    }
}

impl OpSteps {
    /// Merges neighbouring intervals, so that there are half as many.
    fn halve_steps(&mut self) {
        for at in 0..MAX_STEPS {
            let [one, other] = [2 * at, 2 * at + 1].map(|at| self.steps.get(at).copied().unwrap_or_default());
            self.steps[at] = one.with(other);
        }
        if self.grid.is_empty() {
            return;
        }
        for at in 0..MAX_STEPS {
            for row in 0..MAX_ROWS {
                let count = |step: usize| self.grid.get(step * MAX_ROWS + row).copied().unwrap_or(0);
                self.grid[at * MAX_ROWS + row] = count(2 * at).saturating_add(count(2 * at + 1));
            }
        }
    }

    /// Merges neighbouring rows, so that there are half as many.
    fn halve_rows(&mut self) {
        for step in self.grid.chunks_mut(MAX_ROWS) {
            for row in 0..MAX_ROWS {
                let count = |row: usize| step.get(row).copied().unwrap_or(0);
                step[row] = count(2 * row).saturating_add(count(2 * row + 1));
            }
        }
    }

    fn into_series(self, op: Op, steps: usize) -> KindSeries {
        let kept = || self.steps.iter().take(steps);
        let mean = |step: &Step| (step.timed > 0).then(|| step.latency_ns as f64 / step.timed as f64);
        KindSeries {
            op,
            requests: kept().map(|step| step.requests).collect(),
            bytes: kept().map(|step| step.bytes).collect(),
            latency_mean_ns: kept().map(mean).collect(),
        }
    }
}

#[test]
fn even_requests_have_no_dispersion_and_bursts_have_much() {
    let mut even = ArrivalCounts::new(0);
    (0..10_000_u64).for_each(|at| even.add(Op::Read, at * 100_000));
    let reported = even.finish(1_000_000_000);
    assert_eq!(
        (reported.len(), reported[0].requests_of.as_str(), reported[1].requests_of.as_str()),
        (2, "all", "read")
    );
    assert_eq!((reported[0].gap_ns.mean, reported[0].idc_10ms), (100_000.0, Some(0.0)));
    let mut burst = ArrivalCounts::new(0);
    // Every tenth interval has a thousand requests.
    (0..10_000_u64).for_each(|at| burst.add(Op::Write, at / 1000 * 100_000_000 + at % 1000));
    let reported = burst.finish(1_000_000_000);
    assert!(reported[0].idc_10ms.is_some_and(|idc| (idc - 900.0).abs() < 1.0), "{reported:?}");
    let mut few = ArrivalCounts::new(0);
    (0..10).for_each(|at| few.add(Op::Read, at));
    assert_eq!(few.finish(50_000_000)[0].idc_10ms, None);
}

#[test]
fn depth_is_the_integral_over_the_time() {
    let mut flight = InFlight::default();
    let row = |issue_ns, ns| Row { issue_ns, latency_ns: Some(ns), ..Row::default() };
    for one in [row(10, 20), row(20, 20), row(60, 10)] {
        flight.add(&one);
    }
    let reported = flight.finish(100).unwrap_or_default();
    assert_eq!((reported.mean, reported.busy_mean, reported.max), (0.5, 50.0 / 40.0, 2));
    let shares: Vec<(u64, u64, f64)> = reported.shares.iter().map(|s| (s.from, s.to, s.share)).collect();
    assert_eq!(shares, [(0, 0, 0.6), (1, 1, 0.3), (2, 2, 0.1)]);
    for depth in 0..200 {
        let (from, to) = bounds(class(depth) as u64);
        assert!((from..=to).contains(&depth), "{depth}");
    }
    assert_eq!(InFlight::default().finish(100), None);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(issue_ms: u64, mib: u64) -> Row {
        Row {
            issue_ns: issue_ms * 1_000_000,
            latency_ns: Some(issue_ms * 1000),
            sector: mib * 2048,
            sectors: 8,
            ..Row::default()
        }
    }

    #[test]
    fn merged_intervals_and_rows_keep_all_requests() {
        let mut series = TimeSeries::new(0);
        for i in 0..10_000 {
            series.add(if i % 4 == 0 { Op::Write } else { Op::Read }, &row(i, 1000 + i % 64));
        }
        series.add(Op::Flush, &row(9_000, 0));
        let time_series = series.finish(10_000_000_000).unwrap_or_else(|| panic!("none"));
        assert_eq!((time_series.step_ns, time_series.steps), (64_000_000, 157));
        let all: Vec<(Op, u64, u64)> = time_series
            .kinds
            .iter()
            .map(|series| (series.op, series.requests.iter().sum(), series.bytes.iter().sum::<u64>()))
            .collect();
        assert_eq!(
            all,
            [(Op::Read, 7500, 7500 * 4096), (Op::Write, 2500, 2500 * 4096), (Op::Flush, 1, 4096)]
        );
        // Each interval has 64 requests. The latency of each request is a thousandth of the time of its issue.
        let mean = time_series.kinds[0].latency_mean_ns[10].unwrap_or_default();
        assert!((mean - 671_500.0).abs() < 1500.0, "{mean}");
        let places = time_series.places.unwrap_or_else(|| panic!("no places"));
        assert_eq!((places.row_bytes, places.rows), (1 << 20, 64));
        assert_eq!(places.first_byte, 1000 << 20);
        for (op, cells) in &places.kinds {
            let requests: u64 = cells.iter().map(|cell| cell.requests).sum();
            assert_eq!(requests, if *op == Op::Read { 7500 } else { 2500 });
            assert!(cells.iter().all(|cell| cell.row < places.rows && cell.step < time_series.steps));
        }
    }

    #[test]
    fn a_wide_device_has_few_rows() {
        let mut series = TimeSeries::new(0);
        series.add(Op::Read, &row(0, 0));
        series.add(Op::Read, &row(1, 8 << 20));
        let places = series
            .finish(0)
            .and_then(|time_series| time_series.places)
            .unwrap_or_else(|| panic!("no places"));
        assert!(places.rows <= MAX_REPORTED_ROWS && places.row_bytes * places.rows as u64 > 8 << 40);
        assert_eq!(places.kinds[0].1.len(), 2);
        assert_eq!(TimeSeries::new(0).finish(1_000_000_000), None);
        // Requests without an offset have a time series too.
        let mut flushes = TimeSeries::new(5);
        flushes.add(Op::Flush, &row(0, 0));
        assert!(
            flushes
                .finish(1_000_000)
                .is_some_and(|time_series| time_series.places.is_none() && time_series.steps == 1)
        );
    }
}
