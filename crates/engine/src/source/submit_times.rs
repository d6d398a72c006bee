//! When operations are submitted: arrivals of an open loop, rate limits, think times, bursts, and
//! rates of single directions.
//!
//! - Arrivals and limits set the times of operations in advance, counted from the end of the
//!   worker's start delay. So a limited closed loop catches up after a stall, as in fio and
//!   diskspd, and reaches the requested rate over the whole run. Times have a resolution of 2^-64
//!   ns, so fractional gaps do not drift. Syncs have the time of the operation before them.
//! - [`Batches`] and [`OnOff`] are arrivals in bursts.
//! - [`Pause`] draws think times; the loop waits.
//! - [`TimedBursts`] ends bursts by their duration (`--burst-time`), so it chooses each operation when
//!   there is room for it.
//! - [`RatesByKind`] is a mix whose directions have their own rates. A direction is drawn from the mix.
//!   If that direction is ahead of its rate, the operation gets the direction that is due first. So a
//!   direction without a rate fills the remaining time, and directions with a rate catch up after a
//!   stall, as in fio.

use super::{Op, Source};
use crate::source::Choice;
use crate::source::draw::Kinds;
use crate::source::wrappers::Syncs;
use model::job::{Arrivals, Bursts, Kind, Line, Pace, PerKind, Stream, ThinkLaw};
use model::spec::number::MAX_TIME_NS;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

const NS_PER_S: f64 = 1e9;
const FRACTION_BITS: u32 = 64;

/// A time or duration in units of 2^-64 ns. Saturates after 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct Moment(u128);

impl Moment {
    /// Converts ns exactly, with saturation.
    fn from_ns(ns: f64) -> Self {
        let whole_ns = ns as u64;
        let fraction = ((ns - whole_ns as f64) * 2_f64.powi(FRACTION_BITS.cast_signed())) as u64;
        Self(u128::from(whole_ns) << FRACTION_BITS | u128::from(fraction))
    }

    fn ns(self) -> u64 {
        (self.0 >> FRACTION_BITS) as u64
    }

    fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(u128::from(factor)))
    }
}

/// A lane's place among all lanes of a stream, over all workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct LanePlace {
    /// Index of the lane.
    pub(super) lane: u64,
    /// Number of lanes.
    pub(super) lanes: u64,
    /// Seed of this lane only.
    pub(super) seed: u64,
}

/// Adds arrival times or a rate limit to the source of one lane. The rate of the lane is the stream's rate
/// divided by the number of lanes. Not for [`Pace::Each`], whose rates [`RatesByKind`] enforces.
pub(super) fn paced(inner: Box<dyn Source>, pace: Pace, place: LanePlace) -> Result<Box<dyn Source>, String> {
    Ok(match pace {
        Pace::Closed | Pace::Each { .. } => inner,
        Pace::Limited { iops, bytes_per_s } => match Limited::new(iops, bytes_per_s, place.lanes)? {
            Some(limited) => Box::new(Paced::new(inner, limited)),
            None => inner,
        },
        Pace::Open { iops, arrivals } => {
            let period = period(iops)?;
            let mean_ns = NS_PER_S / iops * place.lanes as f64;
            let rng = Xoshiro256PlusPlus::seed_from_u64(place.seed);
            match arrivals {
                Arrivals::Constant => Box::new(Paced::new(
                    inner,
                    ConstantArrivals { next: period.times(place.lane), gap: period.times(place.lanes) },
                )),
                Arrivals::Poisson => with_gaps(inner, Poisson { mean_ns, rng }),
                Arrivals::Batch { mean } => with_gaps(inner, Batches::new(mean_ns, mean, rng)?),
                Arrivals::OnOff { .. } if place.lanes > 1 => {
                    return Err(
                        "on-off arrivals need one worker on one target; type --workers 1 and name one target"
                            .into(),
                    );
                }
                Arrivals::OnOff { on_ns, off_ns } => {
                    with_gaps(inner, OnOff::new(mean_ns, on_ns, off_ns, rng)?)
                }
            }
        }
    })
}

/// Adds arrival times with these gaps between them.
fn with_gaps(inner: Box<dyn Source>, gaps: impl Gaps + 'static) -> Box<dyn Source> {
    Box::new(Paced::new(inner, Gapped { last: Moment::default(), gaps }))
}

/// Returns the time between operations at a rate per second.
fn period(rate: f64) -> Result<Moment, String> {
    if rate.is_finite() && rate > 0.0 {
        Ok(Moment::from_ns(NS_PER_S / rate))
    } else {
        Err(format!("{rate} per second is not a rate; give a number above 0"))
    }
}

/// Generates the arrival times of a lane's operations.
trait Times: Send {
    fn next(&mut self, op: &Op) -> Moment;
}

/// A source that sets the earliest submission time of each operation ([`Op::AT`]).
struct Paced<T> {
    inner: Box<dyn Source>,
    times: T,
    last_ns: u64,
}

impl<T> Paced<T> {
    fn new(inner: Box<dyn Source>, times: T) -> Self {
        Self { inner, times, last_ns: 0 }
    }
}

impl<T: Times> Source for Paced<T> {
    fn refill(&mut self, ops: &mut [Op]) {
        self.inner.refill(ops);
        for op in ops {
            if op.kind != Kind::Sync {
                self.last_ns = self.times.next(op).ns();
            }
            op.at_ns = self.last_ns;
            op.flags |= Op::AT;
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }
}

/// Evenly spaced arrivals of one lane. The lanes of a stream alternate, so the arrivals of the whole stream
/// are evenly spaced too.
struct ConstantArrivals {
    next: Moment,
    gap: Moment,
}

impl Times for ConstantArrivals {
    #[inline]
    fn next(&mut self, _: &Op) -> Moment {
        let now = self.next;
        self.next = now.plus(self.gap);
        now
    }
}

/// Generates the gaps between operations, in ns.
trait Gaps: Send {
    fn next(&mut self) -> f64;
}

/// Arrivals with drawn gaps.
struct Gapped<G> {
    last: Moment,
    gaps: G,
}

impl<G: Gaps> Times for Gapped<G> {
    fn next(&mut self, _: &Op) -> Moment {
        self.last = self.last.plus(Moment::from_ns(self.gaps.next()));
        self.last
    }
}

/// A rate limit. An operation is due when all earlier operations and bytes would be complete at exactly the
/// limited rates.
pub(super) struct Limited {
    per_op: Moment,
    per_byte: Moment,
    ops: Moment,
    bytes: Moment,
}

impl Limited {
    /// Creates one lane's part of a limit of operations and bytes per second, where 0 means unlimited; `None` if both are unlimited.
    pub(super) fn new(iops: f64, bytes_per_s: f64, lanes: u64) -> Result<Option<Self>, String> {
        let gap = |rate: f64| if rate == 0.0 { Ok(Moment::default()) } else { period(rate) };
        let (per_op, per_byte) = (gap(iops)?.times(lanes), gap(bytes_per_s)?.times(lanes));
        let start = Moment::default();
        let is_none = per_op == per_byte && per_op == start;
        Ok((!is_none).then_some(Self { per_op, per_byte, ops: start, bytes: start }))
    }

    /// Returns when the next operation is due.
    #[inline]
    fn due(&self) -> Moment {
        if self.ops > self.bytes { self.ops } else { self.bytes }
    }

    /// Returns when the next operation is due, in ns.
    pub(super) fn due_ns(&self) -> u64 {
        self.due().ns()
    }

    /// Counts a submitted operation.
    #[inline]
    pub(super) fn count(&mut self, op: &Op) {
        self.ops = self.ops.plus(self.per_op);
        self.bytes = self.bytes.plus(self.per_byte.times(u64::from(op.length)));
    }
}

impl Times for Limited {
    #[inline]
    fn next(&mut self, op: &Op) -> Moment {
        let now = self.due();
        self.count(op);
        now
    }
}

/// Exponential gaps. Several lanes together are a Poisson process with the sum of their rates.
struct Poisson {
    mean_ns: f64,
    rng: Xoshiro256PlusPlus,
}

impl Gaps for Poisson {
    #[inline]
    fn next(&mut self) -> f64 {
        exponential(self.mean_ns, &mut self.rng)
    }
}

/// Arrivals in batches: exponential gaps between batches, and a geometrically distributed number of
/// operations per batch.
#[derive(Debug)]
pub(super) struct Batches {
    /// Mean gap between batches in ns.
    gap_ns: f64,
    /// Probability that an operation begins a new batch.
    begin_chance: f64,
    rng: Xoshiro256PlusPlus,
}

impl Batches {
    /// Creates batches of `batch` operations on average, with a mean gap of `mean_ns` between operations.
    pub(super) fn new(mean_ns: f64, batch: f64, rng: Xoshiro256PlusPlus) -> Result<Self, String> {
        if !(batch >= 1.0 && batch.is_finite()) {
            return Err(format!("a batch needs at least one arrival, not {batch}; give 1 or more"));
        }
        Ok(Self { gap_ns: mean_ns * batch, begin_chance: 1.0 / batch, rng })
    }
}

impl Gaps for Batches {
    fn next(&mut self) -> f64 {
        if self.rng.random::<f64>() < self.begin_chance {
            exponential(self.gap_ns, &mut self.rng)
        } else {
            0.0
        }
    }
}

/// Poisson arrivals while on, none while off.
#[derive(Debug)]
pub(super) struct OnOff {
    /// Mean gap while on, in ns.
    gap_ns: f64,
    on_ns: f64,
    off_ns: f64,
    /// Time that remains in the current on period, in ns.
    on_left_ns: f64,
    /// Off time before the first operation, in ns.
    first_off_ns: f64,
    rng: Xoshiro256PlusPlus,
}

impl OnOff {
    /// Creates arrivals with a mean gap of `mean_ns`, off time included. They begin in the stationary state.
    pub(super) fn new(
        mean_ns: f64,
        on_ns: u64,
        off_ns: u64,
        mut rng: Xoshiro256PlusPlus,
    ) -> Result<Self, String> {
        if on_ns == 0 {
            return Err("on-off arrivals need an on time above 0; give a longer on time".into());
        }
        let (on_ns, off_ns) = (on_ns as f64, off_ns as f64);
        let share_on = on_ns / (on_ns + off_ns);
        // The rest of an exponential time is distributed like a new one.
        let is_on = rng.random::<f64>() < share_on;
        let first_off_ns = if is_on { 0.0 } else { exponential(off_ns, &mut rng) };
        let on_left_ns = exponential(on_ns, &mut rng);
        Ok(Self { gap_ns: mean_ns * share_on, on_ns, off_ns, on_left_ns, first_off_ns, rng })
    }
}

impl Gaps for OnOff {
    fn next(&mut self) -> f64 {
        let mut on = exponential(self.gap_ns, &mut self.rng);
        let mut passed = std::mem::take(&mut self.first_off_ns);
        while on > self.on_left_ns {
            on -= self.on_left_ns;
            passed += self.on_left_ns + exponential(self.off_ns, &mut self.rng);
            self.on_left_ns = exponential(self.on_ns, &mut self.rng);
        }
        self.on_left_ns -= on;
        passed + on
    }
}

fn exponential(mean: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    mean * Distribution::<f64>::sample(&Exp1, rng)
}

/// The think time of a line.
#[derive(Debug)]
pub(super) enum Pause {
    /// A constant time in ns.
    Fixed(u64),
    /// An exponential time with this mean in ns.
    Exponential(f64),
    /// A lognormal time in ns.
    Lognormal(LogNormal<f64>),
    /// Quantiles of the pause, as pairs of a share and ns. Times between them are interpolated linearly.
    Quantiles(Vec<(f64, f64)>),
}

impl Pause {
    /// Compiles the think time of a line. Fails for an invalid distribution.
    pub(super) fn new(line: &Line) -> Result<Self, String> {
        let mean = line.delay_ns as f64;
        Ok(match &line.delay_law {
            _ if line.delay_ns == 0 => Self::Fixed(0),
            ThinkLaw::Fixed => Self::Fixed(line.delay_ns),
            ThinkLaw::Exponential => Self::Exponential(mean),
            ThinkLaw::Lognormal { median_ns } => {
                let median = *median_ns as f64;
                // For exp(N(m, s)) the mean is exp(m + s^2 / 2) and the median exp(m).
                let sigma = (2.0 * (mean / median).ln()).sqrt();
                let law = LogNormal::new(median.ln(), sigma).ok().filter(|_| sigma.is_finite());
                Self::Lognormal(
                    law.ok_or("a lognormal pause needs a median above 0 and a mean that is not smaller; change one of them")?,
                )
            }
            ThinkLaw::Quantiles(all) => {
                let rises = all.windows(2).all(|w| w[0].percent <= w[1].percent && w[0].ns <= w[1].ns);
                if all.is_empty() || !rises {
                    return Err("the quantiles of a pause are missing or do not rise; give at least one, in rising order".into());
                }
                Self::Quantiles(all.iter().map(|q| (q.percent / 100.0, q.ns as f64)).collect())
            }
        })
    }

    /// Whether the pause is always 0.
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::Fixed(0))
    }

    /// Draws a pause in ns.
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let ns = match self {
            Self::Fixed(ns) => return *ns,
            Self::Exponential(mean) => exponential(*mean, rng),
            Self::Lognormal(law) => law.sample(rng),
            Self::Quantiles(all) => quantile(all, rng.random()),
        };
        // Limit extreme draws.
        (ns as u64).min(MAX_TIME_NS)
    }
}

/// Interpolates the quantile at a share.
fn quantile(all: &[(f64, f64)], share: f64) -> f64 {
    let next = all.partition_point(|(at, _)| *at <= share);
    let last = all.last().map_or(0.0, |(_, ns)| *ns);
    let Some((low, from)) = next.checked_sub(1).and_then(|at| all.get(at)) else {
        return all.first().map_or(0.0, |(_, ns)| *ns);
    };
    all.get(next).map_or(last, |(high, to)| from + (to - from) * (share - low) / (high - low))
}

/// A source with bursts of a given duration and pauses between them.
pub(super) struct TimedBursts {
    inner: Box<dyn Source>,
    bursts: Bursts,
    /// An operation that was drawn and waits until nothing is in flight; `None` if none waits.
    next: Option<Op>,
    in_flight: u32,
    /// Number of operations of the current burst so far.
    done: u32,
    /// Start time of the current burst in ns.
    since_ns: u64,
    /// Whether the current burst is over.
    is_over: bool,
    /// Time of the last completion in ns.
    completed_ns: u64,
}

impl TimedBursts {
    pub(super) fn new(inner: Box<dyn Source>, bursts: Bursts) -> Self {
        Self {
            inner,
            bursts,
            next: None,
            in_flight: 0,
            done: 0,
            since_ns: 0,
            is_over: false,
            completed_ns: 0,
        }
    }
}

impl Source for TimedBursts {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op { flags: Op::CHOSEN, ..Op::NONE });
    }

    fn look_ahead(&self) -> usize {
        1
    }

    fn choose(&mut self, now_ns: u64) -> Choice {
        let Bursts { time_ns, pause_ns, operations } = self.bursts;
        let has_all = operations.is_some_and(|most| self.done >= most);
        self.is_over |= has_all || now_ns.saturating_sub(self.since_ns) >= time_ns;
        if self.is_over {
            if self.in_flight > 0 {
                return Choice::AfterCompletion;
            }
            let due_ns = self.completed_ns.saturating_add(pause_ns);
            if now_ns < due_ns {
                return Choice::At(due_ns);
            }
            (self.is_over, self.done, self.since_ns) = (false, 0, now_ns);
        }
        let op = self.next.take().unwrap_or_else(|| {
            let mut drawn = [Op::NONE];
            self.inner.refill(&mut drawn);
            drawn[0]
        });
        if op.flags & Op::DRAINED != 0 && self.in_flight > 0 {
            self.next = Some(op);
            return Choice::AfterCompletion;
        }
        self.done = self.done.saturating_add(1);
        self.in_flight += 1;
        Choice::Now(Op { flags: Op::CHOSEN, at_ns: 0, ..op }, now_ns)
    }

    fn completed(&mut self, _op: &Op, now_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.completed_ns = now_ns;
    }
}

/// A source of operations in a requested direction.
pub(super) trait DrawsKind: Send {
    /// Returns the next operation in this direction. The access must have the direction.
    fn next_of(&mut self, kind: Kind) -> Op;
}

/// A source that chooses the direction of each operation by its rate.
pub(super) struct RatesByKind {
    inner: Box<dyn DrawsKind>,
    kinds: Kinds,
    /// Rate limits by the index of the kind; `None` for a direction without its own rate.
    limits: [Option<Limited>; 3],
    syncs: Option<Syncs>,
    rng: Xoshiro256PlusPlus,
    /// An operation that was drawn and waits until nothing is in flight; `None` if none waits.
    next: Option<Op>,
    in_flight: u32,
}

impl RatesByKind {
    /// Creates the source with a limit for each direction; 0 means unlimited. Fails for several lines, for a setting that cannot
    /// be combined with separate rates, and for an invalid rate.
    pub(super) fn new(
        inner: Box<dyn DrawsKind>,
        stream: &Stream,
        iops: PerKind<f64>,
        bytes_per_s: PerKind<f64>,
        place: LanePlace,
    ) -> Result<Self, String> {
        let [line] = stream.access.lines.as_slice() else {
            return Err(
                "separate rates of reads, writes and trims need a single line; remove the other lines".into(),
            );
        };
        let waits = stream.waits().next().is_some();
        if waits || line.has_pairs() || line.reply_bytes > 0 || line.times > 1 || line.mix_by_run {
            return Err("separate rates of reads, writes and trims cannot be combined with shares of operations, serialized overlaps, replies, writes after trims, repeated offsets or runs of one direction; leave one of them out".into());
        }
        let limit = |kind| Limited::new(iops.for_kind(kind), bytes_per_s.for_kind(kind), place.lanes);
        let limits = [limit(Kind::Read)?, limit(Kind::Write)?, limit(Kind::Trim)?];
        let writes = line.does(Kind::Write);
        let syncs = stream.flush.filter(|_| writes).map(Syncs::new).transpose()?;
        let rng = Xoshiro256PlusPlus::seed_from_u64(place.seed);
        Ok(Self { inner, kinds: Kinds::new(line.mix)?, limits, syncs, rng, next: None, in_flight: 0 })
    }

    /// Returns the next direction. If none is due yet, the error is the time in ns at which the
    /// first one becomes due.
    fn kind(&mut self, now_ns: u64) -> Result<Kind, u64> {
        let due_ns =
            |kind: Kind| self.limits.get(kind as usize).and_then(Option::as_ref).map_or(0, Limited::due_ns);
        let drawn = self.kinds.draw(&mut self.rng);
        if due_ns(drawn) <= now_ns {
            return Ok(drawn);
        }
        let kinds = Kind::ALL.into_iter().filter(|kind| self.kinds.does(*kind));
        let first = kinds.min_by_key(|kind| due_ns(*kind)).unwrap_or(drawn);
        if due_ns(first) <= now_ns { Ok(first) } else { Err(due_ns(first)) }
    }

    /// Returns the next operation. If none is due yet, the error is the time in ns at which one becomes due.
    fn draw(&mut self, now_ns: u64) -> Result<Op, u64> {
        if let Some(sync) = self.syncs.as_mut().and_then(Syncs::next) {
            return Ok(sync);
        }
        let kind = self.kind(now_ns)?;
        let mut op = [self.inner.next_of(kind)];
        if let Some(Some(limit)) = self.limits.get_mut(kind as usize) {
            limit.count(&op[0]);
        }
        if let Some(syncs) = &mut self.syncs {
            syncs.count_writes(&mut op);
        }
        Ok(op[0])
    }
}

impl Source for RatesByKind {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op { flags: Op::CHOSEN, ..Op::NONE });
    }

    fn look_ahead(&self) -> usize {
        1
    }

    fn choose(&mut self, now_ns: u64) -> Choice {
        let op = match self.next.take().map_or_else(|| self.draw(now_ns), Ok) {
            Ok(op) => op,
            Err(due_ns) => return Choice::At(due_ns),
        };
        if op.flags & Op::DRAINED != 0 && self.in_flight > 0 {
            self.next = Some(op);
            return Choice::AfterCompletion;
        }
        self.in_flight += 1;
        Choice::Now(Op { flags: Op::CHOSEN, at_ns: 0, ..op }, now_ns)
    }

    fn completed(&mut self, _op: &Op, _now_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

#[cfg(test)]
fn drawn(law: ThinkLaw, mean_ns: u64) -> Vec<f64> {
    let mut line = model::job::Access::plain(model::job::Pattern::Random, 4096, 100).lines.remove(0);
    (line.delay_ns, line.delay_law) = (mean_ns, law);
    let pause = Pause::new(&line).unwrap_or_else(|e| panic!("{e}"));
    let mut rng = rand::SeedableRng::seed_from_u64(5);
    let mut all: Vec<f64> = (0..100_000).map(|_| pause.draw(&mut rng) as f64).collect();
    all.sort_unstable_by(f64::total_cmp);
    all
}

#[cfg(test)]
struct Same(Op);

#[cfg(test)]
impl Source for Same {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(self.0);
    }
}

#[cfg(test)]
fn mixed(pace: Pace) -> Box<dyn Source> {
    let mut access = model::job::Access::plain(model::job::Pattern::Random, 4096, 50);
    access.span_bytes = 1 << 20;
    let stream = Stream { pace, ..Stream::plain(access, 1, 1, "null") };
    let stream_state = std::sync::Arc::new(crate::source::StreamState::new(3));
    let context = crate::source::WorkerContext { worker: 0, workers: 1, seed: 7, stream_state };
    crate::source::lanes(&stream, &[1 << 20], &[512], &context).unwrap_or_else(|e| panic!("{e}")).remove(0)
}

#[cfg(test)]
fn each(read: f64, write: f64) -> model::job::PerKind<f64> {
    model::job::PerKind { read, write, trim: 0.0 }
}

#[cfg(test)]
fn kinds_over_time(pace: Pace, at_ns: impl Iterator<Item = u64>) -> Vec<(u64, Kind)> {
    let mut source = mixed(pace);
    at_ns
        .filter_map(|ns| match source.choose(ns) {
            Choice::Now(op, due_ns) => Some((due_ns, op.kind)),
            _ => None,
        })
        .collect()
}

#[test]
fn fractional_gaps_do_not_drift_over_a_day() {
    const DAY_S: u64 = 86_400;
    for rate in [3_u64, 7, 7000, 333_333, 9_999_991] {
        let gap = period(rate as f64).unwrap_or_else(|e| panic!("{e}"));
        // Multiplication is exact, so the result equals repeated addition.
        assert!(gap.times(DAY_S * rate).ns().abs_diff(DAY_S * 1_000_000_000) <= 1, "{rate}");
        let added = (0..1000).fold(Moment::default(), |sum, _| sum.plus(gap));
        assert_eq!(added, gap.times(1000));
    }
    assert_eq!(Moment::from_ns(1e300).plus(Moment::from_ns(1.0)).ns(), u64::MAX);
    assert_eq!(Moment::from_ns(2.5).times(3).ns(), 7);
}

#[test]
fn pauses_have_the_requested_mean_and_quantiles() {
    use model::job::{Quantile, Think};
    let check = |law: ThinkLaw, mean_ns: u64, quantiles: &[(f64, f64)]| {
        let all = drawn(law.clone(), mean_ns);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean / mean_ns as f64 - 1.0).abs() < 0.05, "{law:?}: mean {mean}");
        for (share, ns) in quantiles {
            let found = all[(share * all.len() as f64) as usize];
            assert!((found / ns - 1.0).abs() < 0.05, "{law:?}: {found} at {share}, not {ns}");
        }
    };
    check(ThinkLaw::Fixed, 5000, &[(0.0, 5000.0), (0.999, 5000.0)]);
    check(ThinkLaw::Exponential, 100_000, &[(0.5, 69_315.0), (0.9, 230_259.0)]);
    check(ThinkLaw::Lognormal { median_ns: 38_000 }, 161_000, &[(0.5, 38_000.0)]);
    let at = |percent, ns| Quantile { percent, ns };
    let think = Think::quantiles(vec![at(0.0, 1000), at(50.0, 2000), at(90.0, 10_000), at(100.0, 100_000)]);
    check(think.law, think.mean_ns, &[(0.25, 1500.0), (0.5, 2000.0), (0.7, 6000.0), (0.95, 55_000.0)]);
    assert!(drawn(ThinkLaw::Fixed, 0).iter().all(|ns| *ns == 0.0));
}

#[test]
fn a_burst_ends_by_time_or_operations_and_a_pause_follows_the_last_completion() {
    let bursts = Bursts { time_ns: 100, pause_ns: 50, operations: Some(3) };
    let mut source = TimedBursts::new(Box::new(Same(Op { length: 8, ..Op::NONE })), bursts);
    let op = Op { length: 8, flags: Op::CHOSEN, ..Op::NONE };
    assert_eq!([source.choose(0), source.choose(99)], [Choice::Now(op, 0), Choice::Now(op, 99)]);
    assert_eq!(source.choose(100), Choice::AfterCompletion, "the time is over, and two are in flight");
    source.completed(&op, 110);
    assert_eq!(source.choose(110), Choice::AfterCompletion);
    source.completed(&op, 120);
    assert_eq!([source.choose(120), source.choose(169)], [Choice::At(170); 2]);
    assert_eq!([170, 171, 172].map(|ns| source.choose(ns)), [170, 171, 172].map(|ns| Choice::Now(op, ns)));
    assert_eq!(source.choose(173), Choice::AfterCompletion, "three were submitted");
    for ns in [180, 181, 182] {
        source.completed(&op, ns);
    }
    assert_eq!([source.choose(183), source.choose(232)], [Choice::At(232), Choice::Now(op, 232)]);
}

#[test]
fn a_draining_operation_waits_for_operations_in_flight() {
    let bursts = Bursts { time_ns: 100, pause_ns: 50, operations: None };
    let drained = Op { flags: Op::DRAINED, ..Op::NONE };
    let mut source = TimedBursts::new(Box::new(Same(drained)), bursts);
    assert!(matches!(source.choose(0), Choice::Now(..)));
    assert_eq!(source.choose(1), Choice::AfterCompletion);
    source.completed(&drained, 2);
    assert!(matches!(source.choose(3), Choice::Now(..)));
}

#[test]
fn a_direction_keeps_its_rate_and_the_other_fills_the_time() {
    const MS: u64 = 1_000_000;
    let pace = Pace::Each { iops: each(0.0, 200.0), bytes_per_s: each(0.0, 0.0) };
    // The source is asked every 100 us, and an operation is submitted each time.
    let ops = kinds_over_time(pace, (0..10_000).map(|n| n * MS / 10));
    assert_eq!(ops.len(), 10_000);
    let writes = |until: u64| ops.iter().filter(|(ns, kind)| *ns < until && *kind == Kind::Write).count();
    for until in [100 * MS, 500 * MS, 1000 * MS] {
        let asked = (until / (5 * MS)) as usize;
        assert!(asked.abs_diff(writes(until)) <= 1, "{} writes until {until}", writes(until));
    }
    // After a stall of half a second the limited direction catches up when it is drawn.
    let stalled = kinds_over_time(pace, (0..4000).map(|n| if n < 1000 { n } else { n + 500 * MS }));
    let caught_up = stalled.iter().filter(|(_, kind)| *kind == Kind::Write).count();
    assert_eq!(caught_up, 101, "100 in half a second, and the first");
}

#[test]
fn if_all_directions_are_ahead_the_first_due_one_is_next() {
    let pace = Pace::Each { iops: each(10.0, 0.0), bytes_per_s: each(0.0, 4096.0 * 20.0) };
    let mut source = mixed(pace);
    let (mut now, mut ops) = (0, Vec::new());
    while ops.len() < 60 {
        match source.choose(now) {
            Choice::Now(op, _) => ops.push((now, op.kind)),
            Choice::At(ns) => now = ns,
            other => panic!("{other:?}"),
        }
    }
    let times = |kind| ops.iter().filter(|(_, is)| *is == kind).map(|(ns, _)| *ns).collect::<Vec<_>>();
    let (reads, writes) = (times(Kind::Read), times(Kind::Write));
    assert!(reads.iter().zip(0..).all(|(ns, n)| *ns == n * 100_000_000), "{reads:?}");
    assert!(writes.iter().zip(0..).all(|(ns, n)| *ns == n * 50_000_000), "{writes:?}");
}

#[test]
fn syncs_follow_their_writes_and_wait_for_them() {
    use model::job::{Access, Flow, Flush, Pattern, SyncCall};
    let mut access = Access::plain(Pattern::Random, 4096, 50);
    access.span_bytes = 1 << 20;
    let pace = Pace::Each { iops: each(0.0, 1000.0), bytes_per_s: each(0.0, 0.0) };
    let flush = Some(Flush { call: SyncCall::Fsync, every: 2, calls: 1, drain: true });
    let mut stream = Stream { pace, flush, ..Stream::plain(access, 1, 1, "null") };
    let stream_state = std::sync::Arc::new(crate::source::StreamState::new(3));
    let context = crate::source::WorkerContext { worker: 0, workers: 1, seed: 7, stream_state };
    let lanes = |stream: &Stream| crate::source::lanes(stream, &[1 << 20], &[512], &context);
    let mut source = lanes(&stream).unwrap_or_else(|e| panic!("{e}")).remove(0);
    let (mut kinds, mut in_flight, mut drained) = (Vec::new(), 0_u32, 0);
    for now_ns in (0..1000).map(|n| n * 500_000) {
        let op = loop {
            match source.choose(now_ns) {
                Choice::Now(op, _) => break op,
                Choice::AfterCompletion => {
                    assert!(in_flight > 0, "the source waits without an operation in flight");
                    drained += 1;
                    (0..std::mem::take(&mut in_flight)).for_each(|_| source.completed(&Op::NONE, now_ns));
                }
                other => panic!("{other:?}"),
            }
        };
        in_flight += 1;
        kinds.push(op.kind);
    }
    let mut writes = 0;
    for (kind, next) in kinds.iter().zip(&kinds[1..]).filter(|(kind, _)| **kind == Kind::Write) {
        writes += 1;
        assert_eq!(*next == Kind::Sync, writes % 2 == 0, "{kind:?} {next:?} after {writes} writes");
    }
    assert!(writes > 200 && drained >= writes / 2, "{writes} writes, {drained} waits");
    stream.flow = Some(Flow { weight: 1, group: 0, pause_ns: 0 });
    assert!(lanes(&stream).is_err());
    stream.flow = None;
    stream.access.lines[0].times = 2;
    assert!(lanes(&stream).is_err_and(|why| why.contains("leave one of them out")));
}
