//! Rules that end streams before their time: steady state, minimum rates, latency limits, streams that end others.
//!
//! [`StopRules`] gets the operations of each interval and decides which streams end. Workers check limits of amount and time themselves; crate
//! `model` has the settings of the rules.
//!
//! Steady state and minimum rates are about all workers of a stream together. So these checks end when the first worker of the stream has
//! ended, and a note reports this. Other streams are still checked.

use engine::link::Block;
use engine::workers::{WorkerId, Workers};
use model::histogram::Histogram;
use model::job::{Kind, MinRate, Phase, Quantity, Steadied, Steady, Stream};
use model::record::StreamEnd;
use model::units::{show_bytes, show_count, show_ns};
use std::collections::BTreeMap;

/// The amounts for a minimum rate are collected in this many parts per period.
const PARTS: u64 = 10;

/// Rules that end the streams of a phase early.
pub(super) struct StopRules {
    streams: Vec<WatchedStream>,
    /// The minimum rate that was missed, as a sentence, if all streams had to end for this reason.
    failure: Option<String>,
}

/// A stream with the rules that end it.
#[derive(Default)]
struct WatchedStream {
    name: String,
    ends_others: bool,
    steady: Option<SteadyWatch>,
    min_rate: Option<RateFloor>,
    max_latency_ns: Option<u64>,
    /// Whether an operation exceeded the latency limit.
    is_too_slow: bool,
}

/// The rule of a steady state, with the newest values of the stream.
struct SteadyWatch {
    rule: Steady,
    series: Series,
    seen: Steadied,
}

/// A minimum rate, with the amounts since the last check.
struct RateFloor {
    rule: MinRate,
    series: Series,
    /// End of the last check, in ns since the start of the window; `None` before the first.
    since_ns: Option<u64>,
    was_checked: bool,
    done: [Amount; Kind::ALL.len()],
}

/// The values of a stream in intervals of equal length, from the start of its measured window.
struct Series {
    /// Length of the intervals.
    every_ns: u64,
    /// Start of the first block, in ns since the start of the run; `None` before this block has
    /// arrived.
    from_ns: Option<u64>,
    /// For each worker: the time up to which it has reported, in ns since the start of the run.
    reported_until_ns: BTreeMap<u32, u64>,
    workers: usize,
    /// Values that not all workers have reported yet, by the index of the interval.
    incomplete: BTreeMap<u64, Value>,
    /// Index of the next value to take.
    next: u64,
}

/// Amounts completed in one interval of a series.
#[derive(Clone, Copy, Default)]
struct Value {
    kinds: [Amount; Kind::ALL.len()],
    /// Sum of the latencies of all operations.
    latency_ns: u64,
}

/// Completed operations of a kind, and their bytes.
#[derive(Clone, Copy, Default)]
struct Amount {
    ops: u64,
    bytes: u64,
}

/// Returns the lengths of the intervals in which the stop rules of a stream collect operations, in ns.
pub(super) fn periods_ns(stream: &Stream) -> impl Iterator<Item = u64> {
    let steady = stream.steady.map(|rule| rule.every_ns);
    steady.into_iter().chain(stream.min_rate.as_ref().map(|rule| rule.every_ns / PARTS))
}

impl StopRules {
    pub(super) fn for_phase(phase: &Phase) -> Self {
        let watched = |(at, stream): (usize, &Stream)| WatchedStream {
            name: if stream.name.is_empty() { format!("stream {}", at + 1) } else { stream.name.clone() },
            ends_others: stream.ends_others,
            steady: stream.steady.map(|rule| SteadyWatch::from_rule(rule, stream.workers)),
            min_rate: stream.min_rate.as_ref().map(|rule| RateFloor::from_rule(rule, stream.workers)),
            max_latency_ns: stream.max_latency_ns,
            is_too_slow: false,
        };
        Self { streams: phase.streams.iter().enumerate().map(watched).collect(), failure: None }
    }

    /// Adds a block of a worker to the series of the rules.
    pub(super) fn add(&mut self, id: WorkerId, block: &Block) {
        let Some(stream) = self.streams.get_mut(id.stream) else { return };
        let steady = stream.steady.as_mut().map(|steady| &mut steady.series);
        let min_rate = stream.min_rate.as_mut().map(|least| &mut least.series);
        steady.into_iter().chain(min_rate).for_each(|series| series.add(id.worker, block));
        if let Some(most_ns) = stream.max_latency_ns {
            let mut kinds = block.lanes.iter().flat_map(|lane| Kind::ALL.into_iter().zip(&lane.kinds));
            stream.is_too_slow |= kinds.any(|(kind, tally)| is_too_slow(kind, &tally.latency, most_ns));
        }
    }

    /// Ends a stream that has become steady. Ends all streams if one exceeds its latency limit or misses its minimum rate, or if a stream
    /// with `ends_others` has ended.
    pub(super) fn apply(&mut self, workers: &Workers) {
        for at in 0..self.streams.len() {
            let stream = &mut self.streams[at];
            if stream.is_too_slow {
                // The failure is described later, from the final totals: operations that still run
                // may be slower.
                workers.stop();
            }
            if workers.has_ended(at) {
                if stream.ends_others {
                    workers.stop();
                }
                continue;
            }
            if stream.steady.as_mut().is_some_and(SteadyWatch::update) {
                workers.stop_stream(at);
            }
            if let Some(words) = stream.min_rate.as_mut().and_then(RateFloor::update)
                && self.failure.is_none()
            {
                self.failure = Some(format!("{}: {words}", stream.name));
                workers.stop();
            }
        }
    }

    /// Returns why all streams had to end; `None` if no minimum rate was missed.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    /// Stores the observations in `ends`. Returns a note for each stream that did not become steady or for which this is unknown, and for
    /// each minimum rate that was never checked, or only until the first worker ended.
    pub(super) fn close(self, ends: &mut [StreamEnd]) -> Vec<String> {
        let mut notes = Vec::new();
        for (end, stream) in ends.iter_mut().zip(self.streams) {
            let early_end = |rule: String, was_checked: bool, ns: u64| {
                let extent = if was_checked { "checked only until" } else { "never checked, because" };
                let when = show_ns(ns as f64);
                format!(
                    "{}: {rule} was {extent} the first worker ended, {when} into the measured time: the rule is about all workers together",
                    stream.name
                )
            };
            if let Some(least) = &stream.min_rate {
                let rule = &least.rule;
                if let Some(ns) = least.series.first_end_ns(rule.every_ns) {
                    notes.push(early_end(format!("--min-rate {}", rule.to_flag()), least.was_checked, ns));
                } else if !least.was_checked {
                    notes.push(format!(
                        "{}: --min-rate {} was never checked: after the first {}, a check needs completed operations over {}",
                        stream.name,
                        rule.to_flag(),
                        show_ns(MinRate::SETTLES_NS as f64),
                        show_ns(rule.every_ns as f64)
                    ));
                }
            }
            let Some(SteadyWatch { rule, seen, series }) = stream.steady else { continue };
            if !seen.attained {
                let window = show_ns(rule.window_ns as f64);
                let after = if rule.after_ns > 0 {
                    format!(" after the first {}", show_ns(rule.after_ns as f64))
                } else {
                    String::new()
                };
                let quantity = if rule.slope { "slope" } else { "largest deviation" };
                notes.push(match (series.first_end_ns(rule.every_ns), seen.criterion(&rule)) {
                    (Some(ns), criterion) => {
                        early_end(format!("--steady-state {}", rule.to_flag()), criterion.is_some(), ns)
                    }
                    (None, None) => format!(
                        "{}: it is unknown whether the stream is steady (--steady-state {}): it ended before {window} were measured{after}, or completed no operation",
                        stream.name,
                        rule.to_flag()
                    ),
                    (None, Some(_)) => format!(
                        "{} did not become steady (--steady-state {}): the {quantity} over the last {window} was {}",
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

/// Returns whether the slowest operation exceeds the limit. Syncs may take any time, as in fio.
fn is_too_slow(kind: Kind, latency: &Histogram, most_ns: u64) -> bool {
    kind != Kind::Sync && latency.max_ns().is_some_and(|ns| ns > most_ns)
}

/// Describes the operation in the final totals that exceeded its latency limit; `None` if none did.
pub(super) fn latency_violation(phase: &Phase, ends: &[StreamEnd]) -> Option<String> {
    phase.streams.iter().zip(ends).find_map(|(stream, end)| {
        let most_ns = stream.max_latency_ns?;
        let (kind, of) = end.kinds.iter().find(|(kind, of)| is_too_slow(**kind, &of.latency, most_ns))?;
        let [took, most] = [of.latency.max_ns()?, most_ns].map(|ns| show_ns(ns as f64));
        let name = if stream.name.is_empty() { String::new() } else { format!("{}: ", stream.name) };
        let word = kind.word();
        Some(format!("{name}a {word} took {took}, more than --max-latency {most}"))
    })
}

/// Describes how far from steady a stream was at its end.
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

impl SteadyWatch {
    fn from_rule(rule: Steady, workers: u32) -> Self {
        Self { rule, series: Series::new(rule.every_ns, workers), seen: Steadied::default() }
    }

    /// Reads the new values of the series, and returns whether the stream is steady.
    fn update(&mut self) -> bool {
        let Self { rule, series, seen } = self;
        while let Some((start_ns, value)) = series.next_complete() {
            if seen.attained || start_ns < rule.after_ns {
                continue;
            }
            let seconds = rule.every_ns as f64 / 1e9;
            let ops = value.kinds.iter().map(|amount| amount.ops).sum::<u64>();
            let bytes = value.kinds.iter().map(|amount| amount.bytes).sum::<u64>();
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
}

impl RateFloor {
    fn from_rule(rule: &MinRate, workers: u32) -> Self {
        let series = Series::new(rule.every_ns / PARTS, workers);
        Self { rule: rule.clone(), series, since_ns: None, was_checked: false, done: Default::default() }
    }

    /// Reads the new values of the series. Returns which rate was too low, and its value; `None` if none was. As in fio, a rate is
    /// checked at completions and over at least the rule's period, so pauses between rare
    /// operations are allowed.
    fn update(&mut self) -> Option<String> {
        while let Some((start_ns, value)) = self.series.next_complete() {
            let until = start_ns + self.series.every_ns;
            for (sum, more) in self.done.iter_mut().zip(value.kinds) {
                *sum = Amount { ops: sum.ops + more.ops, bytes: sum.bytes + more.bytes };
            }
            if start_ns < MinRate::SETTLES_NS || value.kinds.iter().all(|amount| amount.ops == 0) {
                continue;
            }
            let Some(span) = self.since_ns.map(|since| until - since) else {
                (self.since_ns, self.done) = (Some(until), Default::default());
                continue;
            };
            if span < self.rule.every_ns {
                continue;
            }
            self.was_checked = true;
            if let Some(words) = self.too_low(span, until) {
                return Some(words);
            }
            (self.since_ns, self.done) = (Some(until), Default::default());
        }
        None
    }

    fn too_low(&self, span: u64, until: u64) -> Option<String> {
        let is_bandwidth = self.rule.quantity == Quantity::Bandwidth;
        let shown = |rate: u64| {
            if is_bandwidth {
                format!("{}/s", show_bytes(rate))
            } else {
                format!("{} IOPS", show_count(rate as f64))
            }
        };
        Kind::ALL.into_iter().zip(self.done).find_map(|(kind, amount)| {
            let least = self.rule.for_kind(kind)?;
            let done = if is_bandwidth { amount.bytes } else { amount.ops };
            let rate = (u128::from(done) * 1_000_000_000 / u128::from(span.max(1))) as u64;
            (rate < least).then(|| {
                format!(
                    "{}: {} over {} (until {} into the measured time), less than --min-rate {}",
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
        let (incomplete, reported_until_ns) = (BTreeMap::new(), BTreeMap::new());
        Self {
            every_ns: every_ns.max(1),
            from_ns: None,
            reported_until_ns,
            workers: workers as usize,
            incomplete,
            next: 0,
        }
    }

    fn add(&mut self, worker: u32, block: &Block) {
        let from = *self.from_ns.get_or_insert(block.start_ns);
        let middle = block.start_ns / 2 + block.end_ns.max(block.start_ns) / 2;
        self.reported_until_ns.insert(worker, block.end_ns);
        let value = self.incomplete.entry(middle.saturating_sub(from) / self.every_ns).or_default();
        for lane in &block.lanes {
            for (sum, tally) in value.kinds.iter_mut().zip(&lane.kinds) {
                sum.ops += tally.latency.count();
                sum.bytes += tally.bytes;
                value.latency_ns = value.latency_ns.saturating_add(tally.latency.sum_ns());
            }
        }
    }

    /// Returns the next value that all workers have reported, and its start in ns since the start of the window.
    fn next_complete(&mut self) -> Option<(u64, Value)> {
        let end = self.from_ns?.saturating_add(self.every_ns.saturating_mul(self.next + 1));
        // A worker ends a block when its loop next checks the time, not exactly at the end of the
        // interval: allow 1 % of slack.
        let slack = self.every_ns / 100;
        let reported =
            self.reported_until_ns.values().filter(|until_ns| until_ns.saturating_add(slack) >= end).count();
        if reported < self.workers {
            return None;
        }
        let value = self.incomplete.remove(&self.next).unwrap_or_default();
        let start_ns = self.every_ns * self.next;
        self.next += 1;
        Some((start_ns, value))
    }

    /// Returns when the first worker ended, in ns since the start of the window. No later value is complete. `None` if the last worker ended
    /// less than `period_ns` later.
    fn first_end_ns(&self, period_ns: u64) -> Option<u64> {
        let ends = || self.reported_until_ns.values().copied();
        let (first, last) = (ends().min()?, ends().max()?);
        (last - first >= period_ns).then(|| first.saturating_sub(self.from_ns.unwrap_or(first)))
    }
}

#[test]
fn rules_about_all_workers_end_with_the_first_worker_and_say_so() {
    use model::job::{Access, Pattern, PerKind};
    let steady = Steady {
        quantity: Quantity::Iops,
        slope: false,
        limit: 1.0,
        percent: true,
        window_ns: 60_000_000_000,
        after_ns: 0,
        every_ns: 1_000_000_000,
    };
    let least = PerKind { read: 1_500, write: 0, trim: 0 };
    let min_rate = MinRate { quantity: Quantity::Iops, least, every_ns: 1_000_000_000 };
    let plain = Stream::plain(Access::plain(Pattern::Random, 4096, 100), 1, 2, "sync");
    let stream = Stream { steady: Some(steady), min_rate: Some(min_rate), ..plain };
    let phase = Phase { warmup_ns: 0, time_ns: 9_000_000_000, cooldown_ns: 0, streams: vec![stream] };
    // Each worker does 1,000 operations a second.
    let notes = |tenths: [u64; 2]| {
        let mut rules = StopRules::for_phase(&phase);
        for (worker, tenths) in (0..).zip(tenths) {
            for tenth in 0..tenths {
                let mut block = Block::new(1, false);
                (block.start_ns, block.end_ns) = (tenth * 100_000_000, (tenth + 1) * 100_000_000);
                (0..100).for_each(|_| block.lanes[0].kinds[0].latency.record(1000));
                rules.add(WorkerId { worker, stream: 0 }, &block);
            }
        }
        let stream = &mut rules.streams[0];
        assert!(!stream.steady.as_mut().is_some_and(SteadyWatch::update));
        assert_eq!(stream.min_rate.as_mut().and_then(RateFloor::update), None, "{tenths:?}");
        rules.close(&mut [StreamEnd::default()])
    };
    let both = notes([90, 90]);
    assert!(both.len() == 1 && both[0].contains("ended before 60.0 s were measured"), "{both:?}");
    // The remaining worker alone is slower than the limit, but the limit is for both workers together, so it is no longer checked.
    let one = notes([90, 60]);
    assert_eq!(one.len(), 2, "{one:?}");
    let until = "--min-rate iops:read=1500:1s was checked only until the first worker ended, 6.00 s into the measured time";
    assert!(one[0].contains(until), "{one:?}");
    assert!(one[1].contains("was never checked, because the first worker ended, 6.00 s into"), "{one:?}");
}
