//! Follows a run until its workers have ended.
//!
//! 1. The loop takes over the workers' blocks, reads device counters, and updates the display.
//! 2. [`Ends`] ends streams before their time: steady state, least rates, longest latencies, streams that end others.
//!    Workers end by amounts and times on their own; crate `model` has the rules.
//! 3. Rows show the last run's result and its certain findings, unless `--quiet` is set. The report is judged later from
//!    the record.
//! 4. [`Early`] hands out the record so far, for `--status-interval` and `SIGUSR1` of `fathom fio`. The receiver judges
//!    and writes it on its own thread.

use super::{COLLECT_EVERY, Measurement};
use crate::failure::Failure;
use crate::live::Named;
use crate::run::collector::Collector;
use crate::run::evidence::StillWatch;
use crate::run::run_of;
use crate::signals;
use analysis::strategy::Budget;
use analysis::{strategy, under_way};
use engine::link::Block;
use engine::workers::{Who, Workers};
use model::evidence::Snapshot;
use model::histogram::Histogram;
use model::job::{Kind, MinRate, Phase, Quantity, Steadied, Steady, Stream};
use model::plan::Strategy;
use model::record::{Attempt, Record, RunEnd, RunEnding, RunStart, Still, StreamEnd};
use model::study::Study;
use model::units::{show_bytes, show_count, show_ns};
use model::{Known, record};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// How often device counters are read inside a window.
const EVIDENCE_EVERY: Duration = Duration::from_millis(500);

/// How often the rows of hosts are updated on a display.
const SHOW_HOSTS_EVERY: Duration = Duration::from_millis(500);

impl Measurement {
    /// Takes over the workers' blocks until all have ended, stores device counters, and shows progress. The progress or
    /// end of a stream may end it or all. Returns the reason if one is stuck or too slow.
    pub(super) fn follow(
        &mut self,
        (workers, ends): (&mut Workers, &mut Ends),
        collector: &mut Collector,
        mut last: Snapshot,
        (opened, total): (Instant, Duration),
    ) -> Result<(Option<String>, Option<Known<Still>>), Failure> {
        self.early_begins();
        let watch = StillWatch::begin();
        let mut recent = self.live.recent(collector.interval_ns());
        let all = self.left();
        let shown = Cell::new(Instant::now());
        while !workers.is_done() {
            std::thread::sleep(COLLECT_EVERY);
            workers.collect(|who, block| {
                collector.add(who, block);
                ends.add(who, block);
                if let Some(recent) = &mut recent {
                    recent.add(who, block);
                }
            });
            workers.take_logged(|who, operations| self.op_log.take(who, operations));
            ends.act(workers);
            if let (Some(driver), [above]) = (&mut self.driver, collector.streams_mut()) {
                driver.follow(above);
            }
            if self.stopped() || workers.any_failed() || self.op_log.full().is_some() {
                workers.stop();
            }
            if let Some(why) = workers.stuck() {
                return Ok((Some(why), Some(watch.end())));
            }
            let at = opened.elapsed();
            if Duration::from_nanos(self.now_ns() - last.at_ns) >= EVIDENCE_EVERY && at < total {
                self.keep_during(&mut last)?;
                self.keep_rows(collector, at.as_nanos().saturating_sub(1_000_000_000) as u64)?;
            }
            let told = self.fleet.progress(collector.operations(), || collector.p99_ns());
            for words in &told {
                self.live.tell(words);
            }
            self.show_hosts(&shown);
            self.tell_early(collector, at);
            self.live.tick(all.after(at));
            if let Some(recent) = &mut recent {
                self.live.pulse(recent);
            }
        }
        Ok((ends.failure(), Some(watch.end())))
    }

    /// Shows the progress of each host if several measure, at limited intervals.
    pub(super) fn show_hosts(&self, shown: &Cell<Instant>) {
        if self.live.is_viewed() && shown.get().elapsed() >= SHOW_HOSTS_EVERY {
            shown.set(Instant::now());
            self.fleet.rows().into_iter().for_each(|(rows, all)| self.live.hosts(rows, all));
        }
    }

    /// CPU time of the process in user space and in the kernel, in ns, without the display's.
    pub(super) fn cpu_ns(&self) -> Option<[u64; 2]> {
        let (all, view) = (sys::thread::usage_of_process().ok()?, self.live.cpu_ns());
        Some([all.user_ns.saturating_sub(view[0]), all.system_ns.saturating_sub(view[1])])
    }
}

/// Number of parts of a least rate's period. The rate is checked at completions.
const PARTS: u64 = 10;

/// Rules that end the streams of a phase early.
pub(super) struct Ends {
    streams: Vec<WatchedStream>,
    /// Why all streams had to end.
    failure: Option<String>,
}

/// A stream with the rules that end it.
#[derive(Default)]
struct WatchedStream {
    name: String,
    ends_others: bool,
    steady: Option<(Steady, Series, Steadied)>,
    min_rate: Option<RateFloor>,
    max_latency_ns: Option<u64>,
    /// Whether an operation exceeded the latency limit.
    is_too_slow: bool,
}

/// A least rate, with the amounts since the last check.
struct RateFloor {
    rule: MinRate,
    series: Series,
    since: Option<u64>,
    /// Whether the rate was ever checked.
    is_seen: bool,
    /// Operations and bytes by kind.
    done: [(u64, u64); Kind::ALL.len()],
}

/// A stream as values over equal times, counted from the start of its measured window.
struct Series {
    every_ns: u64,
    /// ns since the start of the first block.
    from_ns: Option<u64>,
    /// Time up to which each worker has reported.
    seen_ns: BTreeMap<u32, u64>,
    workers: usize,
    open: BTreeMap<u64, Value>,
    /// Index of the next value.
    next: u64,
}

/// Amounts completed in one of them.
#[derive(Clone, Copy, Default)]
struct Value {
    /// Operations and bytes by kind.
    kinds: [(u64, u64); Kind::ALL.len()],
    latency_ns: u64,
}

/// How often a stream with such a rule is checked.
pub(super) fn every_ns(stream: &Stream) -> Option<u64> {
    let steady = stream.steady.map(|s| s.every_ns);
    steady.into_iter().chain(stream.min_rate.as_ref().map(|rule| rule.every_ns / PARTS)).min()
}

impl Ends {
    pub(super) fn for_phase(phase: &Phase) -> Self {
        let watched = |(at, stream): (usize, &Stream)| WatchedStream {
            name: if stream.name.is_empty() { format!("stream {}", at + 1) } else { stream.name.clone() },
            ends_others: stream.ends_others,
            steady: stream.steady.map(|s| (s, Series::new(s.every_ns, stream.workers), Steadied::default())),
            min_rate: stream.min_rate.as_ref().map(|rule| RateFloor::from_rule(rule, stream.workers)),
            max_latency_ns: stream.max_latency_ns,
            is_too_slow: false,
        };
        Self { streams: phase.streams.iter().enumerate().map(watched).collect(), failure: None }
    }

    /// Takes over a block of a worker.
    pub(super) fn add(&mut self, who: Who, block: &Block) {
        let Some(stream) = self.streams.get_mut(who.stream) else { return };
        if let Some((_, series, _)) = &mut stream.steady {
            series.add(who.worker, block);
        }
        if let Some(least) = &mut stream.min_rate {
            least.series.add(who.worker, block);
        }
        if let Some(most_ns) = stream.max_latency_ns {
            let mut kinds = block.lanes.iter().flat_map(|lane| Kind::ALL.into_iter().zip(&lane.kinds));
            stream.is_too_slow |= kinds.any(|(kind, tally)| is_too_slow(kind, &tally.latency, most_ns));
        }
    }

    /// Applies the rules.
    pub(super) fn act(&mut self, workers: &Workers) {
        for at in 0..self.streams.len() {
            let stream = &mut self.streams[at];
            if stream.is_too_slow {
                // The final totals decide about the reason, since late operations may be slow too.
                workers.stop();
            }
            if workers.has_ended(at) {
                if stream.ends_others {
                    workers.stop();
                }
                continue;
            }
            if let Some((rule, series, seen)) = &mut stream.steady
                && becomes_steady(rule, series, seen)
            {
                workers.stop_stream(at);
            }
            if let Some(words) = stream.min_rate.as_mut().and_then(RateFloor::missed)
                && self.failure.is_none()
            {
                self.failure = Some(format!("{}: {words}", stream.name));
                workers.stop();
            }
        }
    }

    /// Why all streams had to end, if one was too slow.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    /// Stores the observations in the record. Returns which streams never became steady, or were never checked.
    pub(super) fn close(self, ends: &mut [StreamEnd]) -> Vec<String> {
        let mut notes = Vec::new();
        for (end, stream) in ends.iter_mut().zip(self.streams) {
            if let Some(least) = stream.min_rate.filter(|least| !least.is_seen) {
                notes.push(format!(
                    "{} ended before its rate could be looked at (--min-rate {}): the first {} do not count, and it is taken over {} behind them",
                    stream.name,
                    least.rule.to_flag(),
                    show_ns(MinRate::SETTLES_NS as f64),
                    show_ns(least.rule.every_ns as f64)
                ));
            }
            let Some((rule, _, seen)) = stream.steady else { continue };
            if !seen.attained {
                let window = show_ns(rule.window_ns as f64);
                notes.push(match seen.criterion(&rule) {
                    None => format!(
                        "{} ended before there were {window} by which it could be steady (--steady-state {})",
                        stream.name,
                        rule.to_flag()
                    ),
                    Some(_) => format!(
                        "{} did not become steady (--steady-state {}): over its last {window} it came to {}",
                        stream.name,
                        rule.to_flag(),
                        describe_deviation(&rule, &seen)
                    ),
                });
            }
            end.steadied = Some(seen);
        }
        notes
    }
}

/// Syncs may take any time, as in fio.
fn is_too_slow(kind: Kind, latency: &Histogram, most_ns: u64) -> bool {
    kind != Kind::Sync && latency.max_ns().is_some_and(|ns| ns > most_ns)
}

/// The operation of the final totals that exceeded its latency limit.
pub(super) fn took_too_long(phase: &Phase, ends: &[StreamEnd]) -> Option<String> {
    phase.streams.iter().zip(ends).find_map(|(stream, end)| {
        let most_ns = stream.max_latency_ns?;
        let (kind, of) = end.kinds.iter().find(|(kind, of)| is_too_slow(**kind, &of.latency, most_ns))?;
        let [took, most] = [of.latency.max_ns()?, most_ns].map(|ns| show_ns(ns as f64));
        let name = if stream.name.is_empty() { String::new() } else { format!("{}: ", stream.name) };
        let word = kind.word();
        Some(format!("{name}a {word} took {took}, where at most {most} was asked for (--max-latency)"))
    })
}

/// How far from steady the stream ended.
fn describe_deviation(rule: &Steady, seen: &Steadied) -> String {
    let criterion = seen.criterion(rule).unwrap_or(0.0);
    let each = if rule.slope { format!(" per {}", show_ns(rule.every_ns as f64)) } else { String::new() };
    match rule.quantity {
        _ if rule.percent => format!("{criterion:.2} %{each}"),
        Quantity::Iops => format!("{criterion:.0} IOPS{each}"),
        Quantity::Bandwidth => format!("{} per second{each}", show_bytes(criterion.abs() as u64)),
        Quantity::Latency => format!("{}{each}", show_ns(criterion.abs())),
    }
}

/// Takes over new values, and checks whether the last ones are steady.
fn becomes_steady(rule: &Steady, series: &mut Series, seen: &mut Steadied) -> bool {
    while let Some((start_ns, value)) = series.take() {
        if seen.attained || start_ns < rule.after_ns {
            continue;
        }
        let seconds = rule.every_ns as f64 / 1e9;
        let ops = value.kinds.iter().map(|(ops, _)| ops).sum::<u64>();
        let bytes = value.kinds.iter().map(|(_, bytes)| bytes).sum::<u64>();
        seen.iops.push(ops as f64 / seconds);
        seen.bytes_per_s.push(bytes as f64 / seconds);
        seen.latency_ns.push(value.latency_ns as f64 / ops.max(1) as f64);
        for values in [&mut seen.iops, &mut seen.bytes_per_s, &mut seen.latency_ns] {
            let more = values.len().saturating_sub(rule.count());
            values.drain(..more);
        }
        seen.attained = seen.are_steady(rule);
    }
    seen.attained
}

impl RateFloor {
    fn from_rule(rule: &MinRate, workers: u32) -> Self {
        let series = Series::new(rule.every_ns / PARTS, workers);
        Self { rule: rule.clone(), series, since: None, is_seen: false, done: [(0, 0); Kind::ALL.len()] }
    }

    /// Returns which rate was too slow, and its value. As in fio a rate is checked at completions, over at least the
    /// rule's period, so rare operations are not too slow in between.
    fn missed(&mut self) -> Option<String> {
        while let Some((start_ns, value)) = self.series.take() {
            let until = start_ns + self.series.every_ns;
            for (sum, more) in self.done.iter_mut().zip(value.kinds) {
                *sum = (sum.0 + more.0, sum.1 + more.1);
            }
            if start_ns < MinRate::SETTLES_NS || value.kinds.iter().all(|(ops, _)| *ops == 0) {
                continue;
            }
            let Some(span) = self.since.map(|since| until - since) else {
                (self.since, self.done) = (Some(until), [(0, 0); Kind::ALL.len()]);
                continue;
            };
            if span < self.rule.every_ns {
                continue;
            }
            self.is_seen = true;
            if let Some(words) = self.compare(span, until) {
                return Some(words);
            }
            (self.since, self.done) = (Some(until), [(0, 0); Kind::ALL.len()]);
        }
        None
    }

    fn compare(&self, span: u64, until: u64) -> Option<String> {
        let bytes = self.rule.quantity == Quantity::Bandwidth;
        let shown = |rate: u64| {
            if bytes {
                format!("{}/s", show_bytes(rate))
            } else {
                format!("{} IOPS", show_count(rate as f64))
            }
        };
        Kind::ALL.into_iter().zip(self.done).find_map(|(kind, of)| {
            let least = self.rule.for_kind(kind)?;
            let done = if bytes { of.1 } else { of.0 };
            let rate = (u128::from(done) * 1_000_000_000 / u128::from(span.max(1))) as u64;
            (rate < least).then(|| {
                format!(
                    "{}: {} over the {} before {} of the measured time, where at least {} was asked for (--min-rate)",
                    kind.word(),
                    shown(rate),
                    show_ns(span as f64),
                    show_ns(until as f64),
                    shown(least)
                )
            })
        })
    }
}

impl Series {
    fn new(every_ns: u64, workers: u32) -> Self {
        let (open, seen_ns) = (BTreeMap::new(), BTreeMap::new());
        Self { every_ns: every_ns.max(1), from_ns: None, seen_ns, workers: workers as usize, open, next: 0 }
    }

    fn add(&mut self, worker: u32, block: &Block) {
        let from = *self.from_ns.get_or_insert(block.start_ns);
        let middle = block.start_ns / 2 + block.end_ns.max(block.start_ns) / 2;
        self.seen_ns.insert(worker, block.end_ns);
        let value = self.open.entry(middle.saturating_sub(from) / self.every_ns).or_default();
        for lane in &block.lanes {
            for (sum, tally) in value.kinds.iter_mut().zip(&lane.kinds) {
                sum.0 += tally.latency.count();
                sum.1 += tally.bytes;
                value.latency_ns = value.latency_ns.saturating_add(tally.latency.sum_ns());
            }
        }
    }

    /// The next value that all workers have reported, with its time in the window in ns.
    fn take(&mut self) -> Option<(u64, Value)> {
        let end = self.from_ns?.saturating_add(self.every_ns.saturating_mul(self.next + 1));
        // Blocks end at a worker's turn, not exactly at the end of an interval: allow 1 % of slack.
        let slack = self.every_ns / 100;
        let handed_in = self.seen_ns.values().filter(|seen| seen.saturating_add(slack) >= end).count();
        if handed_in < self.workers {
            return None;
        }
        let value = self.open.remove(&self.next).unwrap_or_default();
        let start_ns = self.every_ns * self.next;
        self.next += 1;
        Some((start_ns, value))
    }
}

impl Measurement {
    /// Shows the result of the last run. Without a display, shows a job only after its last run, if that number is known.
    pub(super) fn show_row(&self, at: &Attempt) {
        let is_search = matches!(self.plan.study, Study::Sweep(_));
        if !self.live.shows_results() || is_search && !self.live.is_viewed() {
            return;
        }
        let row = under_way::job_row(&self.done, &Budget::from_plan(&self.plan), (at.job, at.offered_iops));
        let load = at.offered_iops.map_or(String::new(), |iops| format!(" at {}/s", show_count(iops as f64)));
        let name = format!("{}{load}", self.plan.jobs[at.job].name);
        let ends = self.last.runs.iter().filter_map(|r| r.end.as_ref());
        let op_bytes = op_bytes(ends.flat_map(|end| &end.streams));
        // A disturbed run does not count if it may be repeated.
        let stands = |disturbed: bool| !disturbed || self.plan.attempts == 1;
        let stands = self.done.last().is_some_and(|s| stands(s.disturbed.is_some()) && !s.refused);
        let findings = if stands { under_way::of_run(&self.last) } else { Vec::new() };
        self.live.row(Named { name, row, op_bytes }, findings, self.is_last(at));
    }

    /// Whether the last run of a job has ended. Each load of a load curve is measured once.
    fn is_last(&self, at: &Attempt) -> bool {
        let mut budget = Budget::from_plan(&self.plan);
        // Conditions may ask for more runs later.
        if matches!(budget.strategy, Strategy::Settle { .. }) {
            budget.strategy = Strategy::Fixed;
        }
        at.offered_iops.is_some() || strategy::left(&self.done, &budget).runs.get(at.job) == Some(&0)
    }
}

/// Mean bytes of an operation; `None` if none moved any.
fn op_bytes<'s>(streams: impl Iterator<Item = &'s StreamEnd>) -> Option<f64> {
    let (mut ops, mut bytes) = (0.0, 0.0);
    for (_, end) in streams.flat_map(|s| &s.kinds).filter(|(kind, _)| **kind != Kind::Sync) {
        ops += end.latency.count() as f64;
        bytes += end.bytes as f64;
    }
    (bytes > 0.0 && ops > 0.0).then(|| bytes / ops)
}

/// A receiver of records during a run.
#[derive(Debug)]
pub struct Early {
    every: Option<Duration>,
    to: SyncSender<SoFar>,
    /// Run time at which the next status is due; `None` if only signals ask for it.
    due: Option<Duration>,
}

/// The state of a running measurement. The receiver computes the record, so that the measuring thread is not delayed.
#[derive(Debug)]
pub struct SoFar {
    /// The session file, in which this run has no end.
    session: Vec<u8>,
    at_ns: u64,
    streams: Vec<StreamEnd>,
}

impl Early {
    /// Sends a status after each `every` of a run, and whenever a signal asks for one.
    pub fn new(every: Option<Duration>, to: SyncSender<SoFar>) -> Self {
        Self { every, to, due: every }
    }
}

impl SoFar {
    /// The record as if the run had ended now; `None` if no run was active.
    pub fn record(self) -> Option<Record> {
        let (mut record, _torn) = record::decode(&self.session).ok()?;
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
    /// A run begins.
    pub(super) fn early_begins(&mut self) {
        if let Some(early) = &mut self.early {
            early.due = early.every;
        }
    }

    /// Sends a status if it is due or a signal asked for it. Never waits for the receiver: while that is busy, interval
    /// statuses are skipped and that of a signal is sent later.
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
