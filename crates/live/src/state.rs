//! The data that the views show, independent of how it is drawn.
//!
//! [`State`] is the state of a measurement, [`Recent`] the figures from the blocks of the workers, and [`WatchState`] the
//! state of `fathom watch`. Workers hand in blocks at different times. So the rate of each worker is computed over the
//! time that its blocks cover, and the rates are added up.

use crate::{Progress, RemainingTime};
use analysis::under_way::{CountersBetween, ReportedOps, Row, latencies};
use engine::link::Block;
use engine::workers::WorkerId;
use model::Known;
use model::finding::Checked;
use model::histogram::Histogram;
use model::job::Kind;
use model::units::{show_ns, show_rate};
use model::watch::{CpuShares, Processes, Watched, WatchedDevice};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// Maximum number of points of a time series, more than the widest terminal shows.
pub(super) const POINTS_MAX: usize = 400;
/// Maximum number of findings.
const FINDINGS_MAX: usize = 32;
/// Maximum number of notes.
const NOTES_MAX: usize = 8;

/// The data of the view.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The current step.
    pub(super) step: String,
    /// The time left, if known.
    pub(super) left: Option<RemainingTime>,
    /// The progress of the measurement. If that is unknown, the progress of the step.
    pub(super) done: Progress,
    /// The queue depth of the current run in operations; `None` between runs.
    pub(super) run_depth: Option<u64>,
    /// The latest figures of the workers.
    pub(super) recent: RecentFigures,
    /// The latest sample of the counters; `None` before the first sample of a run.
    pub(super) sample: Option<Sample>,
    /// Time series over all runs.
    pub(super) series: TimeSeries,
    /// The progress of some hosts. Hosts that need attention come first.
    pub(super) hosts: Vec<HostProgress>,
    /// The number of all hosts.
    pub(super) host_count: usize,
    /// The results so far, a row per job; in a load curve, a row per load.
    pub(super) results: Vec<JobResult>,
    /// The expected number of results; `None` if unknown.
    pub(super) result_count: Option<usize>,
    /// Index of the result that changed last.
    pub(super) last_changed: usize,
    /// Findings so far.
    pub(super) findings: Vec<CountedFinding>,
    /// Lasting messages.
    pub(super) notes: VecDeque<String>,
    /// Whether and when the measurement should end, as the user asked.
    pub(super) end: End,
    /// Whether help is shown.
    pub(super) help: bool,
}

/// One sample of the kernel's counters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) counted: CountersBetween,
    /// CPU time of the busiest worker as a share of the elapsed time: 1 is one CPU.
    pub(super) busiest_worker: Known<f64>,
    /// The process that moved the most data; a reason if none can be named.
    pub(super) busiest_process: Known<String>,
}

/// The progress of one of several hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct HostProgress {
    /// Rank of the host, from 0.
    pub rank: usize,
    /// The host name, with the rank if several hosts share it.
    pub name: String,
    /// Recent operations per second; `None` if unknown, or if the host is lost.
    pub iops: Option<f64>,
    /// 99th percentile of latency since the run began, in ns; `None` if unknown, or while the host
    /// waits.
    pub p99_ns: Option<u64>,
    /// What the host is doing.
    pub state: HostState,
}

/// The state of a host. States that need attention come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostState {
    /// Lost: the host sends no heartbeats.
    Lost,
    /// Hung: operations of the host do not complete.
    Hung,
    /// The host runs its load.
    Measuring,
    /// The host has no load: it prepares, or waits for other hosts.
    Waiting,
}

impl HostState {
    /// Returns the state as the table of hosts shows it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Hung => "hung",
            Self::Measuring => "measuring",
            Self::Waiting => "waiting",
        }
    }
}

/// What the runs of a job have measured so far.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    /// Name of the job, with its load in a load curve.
    pub name: String,
    /// Rate and latencies.
    pub figures: Row,
    /// Mean bytes per operation; `None` for operations without data.
    pub op_bytes: Option<f64>,
}

impl JobResult {
    /// Formats the result as a line, such as
    /// `result  SEQ1M Q8T1 read: 3,563 MB/s, 3,398 IOPS, p50 2.30 ms (5 runs, not judged yet)`.
    pub(super) fn line(&self, found: &BTreeSet<String>) -> String {
        let runs = match self.figures.runs {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        };
        let rate = self.figures.iops.map_or_else(
            || vec!["no number".to_owned()],
            |iops| {
                let bytes = self.op_bytes.map(|bytes| format!("{} MB/s", show_rate(iops * bytes / 1e6)));
                bytes.into_iter().chain([format!("{} IOPS", show_rate(iops))]).collect()
            },
        );
        let median = self.figures.latency_ns[0].map(|ns| format!("p50 {}", show_ns(ns as f64)));
        let figures = rate.into_iter().chain(median).collect::<Vec<_>>().join(", ");
        let found = found.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let found = if found.is_empty() { found } else { format!("; found: {found}") };
        format!("result  {}: {figures} ({runs}, not judged yet{found})", self.name)
    }
}

/// A finding, and the number of runs that have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CountedFinding {
    pub(super) finding: Checked,
    pub(super) runs: u32,
}

/// When the measurement should end, as the user asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    #[default]
    No,
    /// After the current run.
    AfterRun,
    /// At once.
    Now,
}

/// Values over time, one point per update of the figures; `None` for an unknown value, and between
/// runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TimeSeries {
    pub(super) iops: Points,
    pub(super) p99_ns: Points,
    pub(super) device_iops: Points,
    pub(super) device_ns: Points,
}

/// One series, oldest point first.
pub(super) type Points = VecDeque<Option<f64>>;

impl State {
    /// Begins a step.
    pub(super) fn step(&mut self, name: &str, left: Option<RemainingTime>) {
        name.clone_into(&mut self.step);
        (self.left, self.done) = (left, Progress::default());
        (self.recent, self.sample) = (RecentFigures::default(), None);
    }

    /// Shows the progress and the time left.
    pub(super) fn tick(&mut self, done: Progress, left: RemainingTime) {
        (self.done, self.left) = (done, Some(left));
    }

    /// Begins a run with this queue depth.
    pub(super) fn begin_run(&mut self, depth: u64) {
        self.run_depth = Some(depth);
        (self.recent, self.sample) = (RecentFigures::default(), None);
        // An empty point separates runs.
        if !self.series.iops.is_empty() {
            self.series.push([None; 4]);
        }
    }

    /// Shows new figures of the workers. If no operation completed since the previous figures, keeps the shown latencies, unless the
    /// rate is 0: then the latencies become unknown.
    pub(super) fn show_figures(&mut self, figures: RecentFigures) {
        let is_silent = figures.rate.is_some_and(|r| r.iops == 0.0);
        let latency_ns =
            if figures.is_new || is_silent { figures.latency_ns } else { self.recent.latency_ns };
        self.recent = RecentFigures { latency_ns, ..figures };
        let device = self.sample.as_ref().and_then(|s| s.counted.device.as_ref().ok());
        self.series.push([
            self.recent.rate.map(|r| r.iops),
            latency_ns[1].map(|ns| ns as f64),
            device.map(|d| d.iops),
            device.and_then(|d| d.latency_ns),
        ]);
    }

    /// Shows the result of a run and its findings.
    pub(super) fn show_result(&mut self, result: JobResult, findings: Vec<Checked>) {
        let key = |result: &JobResult| (result.figures.job, result.figures.offered_iops);
        let at = self.results.iter().position(|known| key(known) == key(&result));
        self.last_changed = at.unwrap_or(self.results.len());
        match self.results.get_mut(self.last_changed) {
            Some(known) => *known = result,
            None => self.results.push(result),
        }
        for finding in findings {
            self.add_finding(finding);
        }
    }

    fn add_finding(&mut self, finding: Checked) {
        let same = |f: &&mut CountedFinding| (f.finding.id, &f.finding.about) == (finding.id, &finding.about);
        if let Some(known) = self.findings.iter_mut().find(same) {
            known.runs += 1;
            known.finding = finding;
        } else {
            self.findings.push(CountedFinding { finding, runs: 1 });
        }
        self.findings.sort_by_key(|f| f.finding.severity);
        self.findings.truncate(FINDINGS_MAX);
    }

    /// Ends the current run.
    pub(super) fn end_run(&mut self) {
        self.run_depth = None;
    }

    /// Adds a lasting message.
    pub(super) fn say(&mut self, message: &str) {
        append(&mut self.notes, [message.to_owned()], NOTES_MAX);
    }

    /// Handles the key `q`: ends after the current run. Ends at once if no run is under way, or if the key was pressed
    /// before.
    pub(super) fn ask_to_end(&mut self) {
        self.end = if self.run_depth.is_some() && self.end == End::No { End::AfterRun } else { End::Now };
    }
}

impl TimeSeries {
    fn push(&mut self, points: [Option<f64>; 4]) {
        let all = [&mut self.iops, &mut self.p99_ns, &mut self.device_iops, &mut self.device_ns];
        for (series, point) in all.into_iter().zip(points) {
            append(series, [point], POINTS_MAX);
        }
    }
}

/// Appends to a queue and keeps the newest `max_items` items.
fn append<T>(queue: &mut VecDeque<T>, new: impl IntoIterator<Item = T>, max_items: usize) {
    queue.extend(new);
    let surplus = queue.len().saturating_sub(max_items);
    queue.drain(..surplus);
}

/// Minimum time between two updates of the figures.
const FIGURES_INTERVAL: Duration = Duration::from_millis(500);
/// A worker counts as idle if its next block is late by more than this.
const IDLE_AFTER: Duration = Duration::from_millis(500);

/// Sums of the workers' blocks that were not shown yet, and the last rate of each worker.
pub struct Recent {
    /// A worker whose last block is older than this is idle: the length of a block and [`IDLE_AFTER`].
    max_block_age: Duration,
    workers: BTreeMap<u32, WorkerBlocks>,
    latency: Histogram,
    so_far: ReportedOps,
    last_update: Instant,
}

/// The sums and the rate of one worker's blocks.
struct WorkerBlocks {
    /// Sums of blocks that were not shown yet.
    unshown: BlockSums,
    /// The rate that was shown last.
    rate: Rate,
    last_block_at: Instant,
}

#[derive(Default)]
struct BlockSums {
    ops: u64,
    bytes: u64,
    depth_ns: u64,
    ns: u64,
}

/// Rate and queue depth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rate {
    /// Operations per second.
    pub(crate) iops: f64,
    /// Bytes per second.
    pub(crate) bytes_per_s: f64,
    /// Mean operations in flight.
    pub(crate) depth: f64,
}

/// The figures of the workers' most recent intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecentFigures {
    /// `None` before the first block.
    pub(crate) rate: Option<Rate>,
    /// p50, p99 and maximum of the latency in ns; `None` with too few operations.
    pub(crate) latency_ns: [Option<u64>; 3],
    /// Whether an operation completed in the intervals that the workers sent since the previous
    /// update. The interval of the workers may be longer than that of the view, so some
    /// updates have no new interval.
    pub(crate) is_new: bool,
    /// Totals since the run began.
    pub(crate) so_far: ReportedOps,
}

impl Recent {
    /// Creates a collector for blocks of `interval_ns` each.
    pub(crate) fn new(interval_ns: u64) -> Self {
        Self {
            max_block_age: Duration::from_nanos(interval_ns) + IDLE_AFTER,
            workers: BTreeMap::new(),
            latency: Histogram::new(),
            so_far: ReportedOps::default(),
            last_update: Instant::now(),
        }
    }

    /// Adds a block.
    pub fn add(&mut self, id: WorkerId, block: &Block) {
        let now = Instant::now();
        let worker = self.workers.entry(id.worker).or_insert_with(|| WorkerBlocks {
            unshown: BlockSums::default(),
            rate: Rate::default(),
            last_block_at: now,
        });
        worker.last_block_at = now;
        worker.unshown.ns += block.end_ns.saturating_sub(block.start_ns);
        worker.unshown.depth_ns += block.depth_ns;
        let tallies = block.lanes.iter().flat_map(|lane| Kind::ALL.into_iter().zip(&lane.kinds));
        // Syncs do not count as operations, as in the rate of a run.
        for (kind, tally) in tallies.filter(|(kind, _)| *kind != Kind::Sync) {
            worker.unshown.ops += tally.latency.count();
            worker.unshown.bytes += tally.bytes;
            self.so_far.ops += tally.latency.count();
            self.so_far.bytes[kind as usize] += tally.bytes;
            self.latency.merge(&tally.latency);
        }
    }

    /// Returns the figures since the last update, if an update is due.
    pub(crate) fn take_figures(&mut self, now: Instant) -> Option<RecentFigures> {
        if now.duration_since(self.last_update) < FIGURES_INTERVAL {
            return None;
        }
        self.last_update = now;
        let is_new = !self.latency.is_empty();
        let mut all = Rate::default();
        for worker in self.workers.values_mut() {
            let BlockSums { ops, bytes, depth_ns, ns } = std::mem::take(&mut worker.unshown);
            if ns > 0 {
                let per_s = |n: u64| n as f64 * 1e9 / ns as f64;
                worker.rate =
                    Rate { iops: per_s(ops), bytes_per_s: per_s(bytes), depth: depth_ns as f64 / ns as f64 };
            } else if now.duration_since(worker.last_block_at) > self.max_block_age {
                worker.rate = Rate::default();
            }
            all.iops += worker.rate.iops;
            all.bytes_per_s += worker.rate.bytes_per_s;
            all.depth += worker.rate.depth;
        }
        let latency_ns = latencies(&self.latency);
        self.latency.clear();
        let rate = (!self.workers.is_empty()).then_some(all);
        Some(RecentFigures { rate, latency_ns, is_new, so_far: self.so_far.clone() })
    }
}

#[cfg(test)]
fn block(ms: u64, ops: u64) -> Block {
    let mut block = *Block::new(1, false);
    (block.start_ns, block.end_ns, block.depth_ns) = (0, ms * 1_000_000, 4 * ms * 1_000_000);
    for _ in 0..ops {
        block.lanes[0].kinds[0].latency.record(1000);
        block.lanes[0].kinds[0].bytes += 4096;
    }
    block
}

/// Maximum number of remarks.
const REMARKS_MAX: usize = 8;

/// The data of `fathom watch`.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchState {
    /// Length of an interval.
    pub(super) interval: Duration,
    /// End of the last interval as text; empty before the first interval.
    pub(super) time: String,
    /// How the CPUs spent the last interval; `None` if unknown.
    pub(super) cpu: Option<CpuShares>,
    pub(super) devices: Vec<WatchedDevice>,
    /// Requests per second of each device, by its name.
    pub(super) device_series: BTreeMap<String, Points>,
    /// The processes of the newest sample; `None` before the first sample.
    pub(super) processes: Option<Processes>,
    /// Remarks, newest last.
    pub(super) remarks: VecDeque<String>,
}

impl WatchState {
    /// Creates the data of `fathom watch` before its first interval.
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, ..Self::default() }
    }
    pub(super) fn add_interval(&mut self, watched: &Watched) {
        watched.time.clone_into(&mut self.time);
        self.cpu = watched.cpu;
        self.devices.clone_from(&watched.devices);
        if watched.processes.is_some() {
            self.processes.clone_from(&watched.processes);
        }
        append(&mut self.remarks, watched.remarks.iter().cloned(), REMARKS_MAX);
        self.device_series.retain(|name, _| watched.devices.iter().any(|device| device.name == *name));
        for device in &watched.devices {
            let series = self.device_series.entry(device.name.clone()).or_default();
            let rate = device.figures.as_ref().ok();
            append(series, [rate.map(|figures| figures.read.per_s + figures.write.per_s)], POINTS_MAX);
        }
    }
}

#[test]
fn a_result_without_a_view_is_one_line() {
    let figures = Row {
        job: 0,
        offered_iops: None,
        runs: 5,
        iops: Some(2_000.0),
        latency_ns: [Some(441_000), None, None],
    };
    let result = JobResult { name: "SEQ1M Q1T1 read".into(), figures, op_bytes: Some(1_048_576.0) };
    assert_eq!(
        result.line(&BTreeSet::new()),
        "result  SEQ1M Q1T1 read: 2,097 MB/s, 2,000 IOPS, p50 441 us (5 runs, not judged yet)"
    );
    let none = Row { runs: 1, iops: None, latency_ns: [None; 3], ..result.figures.clone() };
    let found = ["D08 RUNQUEUE_WAIT".to_owned()].into();
    assert_eq!(
        JobResult { figures: none, ..result }.line(&found),
        "result  SEQ1M Q1T1 read: no number (1 run, not judged yet; found: D08 RUNQUEUE_WAIT)"
    );
}

#[test]
fn unknown_values_have_no_point_and_rare_values_remain() {
    let mut state = State::default();
    state.begin_run(32);
    state.show_figures(RecentFigures::default());
    let rate = Some(Rate { iops: 5.0, ..Rate::default() });
    let new = RecentFigures {
        rate,
        latency_ns: [Some(1), Some(2), Some(3)],
        is_new: true,
        ..RecentFigures::default()
    };
    state.show_figures(new.clone());
    state.show_figures(RecentFigures { is_new: false, latency_ns: [None; 3], ..new });
    assert_eq!(state.series.iops, [None, Some(5.0), Some(5.0)]);
    assert_eq!(state.series.p99_ns, [None, Some(2.0), Some(2.0)]);
    assert_eq!(state.series.device_iops, [None, None, None]);
    state.show_figures(RecentFigures { rate: Some(Rate::default()), ..RecentFigures::default() });
    assert_eq!((state.series.iops.back(), state.series.p99_ns.back()), (Some(&Some(0.0)), Some(&None)));
    state.begin_run(1);
    assert_eq!((state.series.iops.len(), state.series.iops.back()), (5, Some(&None)));
    (0..1_000).for_each(|_| state.show_figures(RecentFigures::default()));
    assert_eq!(state.series.iops.len(), POINTS_MAX);
}

#[test]
fn first_q_ends_after_the_run_and_second_q_at_once() {
    let mut state = State::default();
    state.begin_run(1);
    state.ask_to_end();
    assert_eq!(state.end, End::AfterRun);
    state.ask_to_end();
    assert_eq!(state.end, End::Now);
    let mut preparing = State::default();
    preparing.ask_to_end();
    assert_eq!(preparing.end, End::Now);
}

#[test]
fn worker_rates_use_their_own_time_and_unknown_is_not_zero() {
    let mut recent = Recent::new(2_000_000_000);
    let begun = recent.last_update;
    assert_eq!(recent.take_figures(begun), None);
    let first = recent.take_figures(begun + FIGURES_INTERVAL);
    assert_eq!(first.map(|p| (p.rate, p.latency_ns, p.is_new)), Some((None, [None; 3], false)));
    recent.add(WorkerId { worker: 0, stream: 0 }, &block(100, 100));
    recent.add(WorkerId { worker: 1, stream: 0 }, &block(200, 100));
    let pulse = recent.take_figures(begun + 2 * FIGURES_INTERVAL).unwrap_or_default();
    assert_eq!(pulse.rate, Some(Rate { iops: 1_500.0, bytes_per_s: 1_500.0 * 4096.0, depth: 8.0 }));
    assert_eq!((pulse.latency_ns[0], pulse.latency_ns[2], pulse.so_far.ops), (Some(1000), Some(1000), 200));
    // A worker keeps its rate until its next block. After a long time without a block, it is idle.
    let next = recent.take_figures(begun + 3 * FIGURES_INTERVAL).unwrap_or_default();
    assert_eq!((next.rate, next.is_new), (pulse.rate, false));
    let silent = recent.take_figures(begun + 20 * FIGURES_INTERVAL).unwrap_or_default();
    assert_eq!((silent.rate, silent.latency_ns), (Some(Rate::default()), [None; 3]));
}
