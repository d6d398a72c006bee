//! Pace: whether a part waits for its own operations, and how long it thinks.
//!
//! For: overlap, stretches in which something is in flight, and the pauses between them. Not for: what arrivals of an open loop are like
//! ([`super::bursts`]).

use crate::fit::distributions;
use crate::fit::distributions::Law;
use crate::profile::timing::Coming;
use crate::replay::Operation;
use model::histogram::Histogram;
use model::job::Kind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most in flight that are counted.
const MOST_IN_FLIGHT: usize = 1 << 14;
/// Share of overlapping operations below which a part does one after another.
const OVERLAPPING: f64 = 0.05;
/// Index of dispersion in 10 ms below which a part is no crowd of independent users.
const REGULAR: f64 = 0.7;
/// Share of the time in flight, and of the deepest queue in the mean, from which on a queue is kept full.
const ALWAYS_BUSY: f64 = 0.9;
const KEPT_FULL: f64 = 0.75;
/// Variance of the times from one operation to the next, in squares of their mean, below which they are even.
const EVEN: f64 = 0.05;
/// Dispersion in 100 ms that a clock leaves at most, and part of that variance that it leaves.
const BY_A_CLOCK: f64 = 0.15;
const BOUND: f64 = 0.25;
/// Part of the mean by which half of the gaps, and their median, may be off it where a clock makes them.
const NEAR: f64 = 0.15;
const CENTRED: f64 = 0.03;
/// How far behind the first operation of a stretch the others are issued, in its latencies, below which they are issued at once.
const AT_ONCE: f64 = 0.25;
/// Part of the deepest queue that is in flight, in the mean while anything is, syncs too, where a task submits as much as it may.
const FILLED: f64 = 0.25;
/// Part of the overlap that independent arrivals would have, below which operations wait for each other; and fewest of these.
const WAITING: f64 = 0.25;
const TELLING: f64 = 20.0;
/// How long after the one before an operation is issued, at most, where both were given to the kernel in one call, in ns: in a call of its
/// own it is no sooner.
const IN_A_CALL_NS: u64 = 3_000;
/// Operations of a call, in the mean, from which on calls have several.
const SEVERAL: f64 = 1.5;
/// Fewest operations that say something.
const MIN_OPERATIONS: u64 = 20;

/// Operations of a part in time.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    flying: BinaryHeap<Reverse<u64>>,
    /// Most in flight at once.
    pub(super) most: u32,
    /// Since when something is in flight, and until when.
    stretch: Option<(u64, u64)>,
    /// When the first operation of the stretch completes.
    first_end_ns: u64,
    has_data: bool,
    /// Idle time since the last stretch with data.
    idle_ns: u64,
    pub(super) think: Histogram,
    /// Data operations, and the stretches of these.
    all: Coming,
    stretches: Coming,
    stretch_count: u64,
    data: u64,
    /// When the last of these was issued, and calls that they came in.
    issued_ns: Option<u64>,
    calls: u64,
    overlapping: u64,
    /// Sum of how far overlapping operations are behind the first of their stretch, in latencies of that.
    behind: f64,
    unfinished: u64,
    busy_ns: u128,
    flown_ns: u128,
}

/// How operations of a part are submitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Loop {
    /// Whatever completes.
    Open,
    /// As soon as there is room.
    Full,
    /// By a clock.
    Paced,
    /// So many at once, then a pause.
    Thinking {
        /// The pause.
        law: Law,
        /// At once.
        burst: u32,
        /// Mean of that, as it was.
        mean_burst: f64,
    },
}

/// What decided it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Signs {
    /// Share of the operations that overlap others of the part.
    pub(super) overlapping: f64,
    /// Index of dispersion of its operations, or of its stretches where they overlap.
    pub(super) idc: [Option<f64>; 2],
}

impl Pacing {
    pub(super) fn add(&mut self, operation: &Operation, at_ns: u64) {
        let is_data = operation.kind != Kind::Sync;
        if is_data {
            self.data += 1;
            self.all.add(at_ns);
            let before = self.issued_ns.replace(at_ns);
            let is_beside = before.is_some_and(|before| at_ns.saturating_sub(before) <= IN_A_CALL_NS);
            self.calls += u64::from(!is_beside);
        }
        let Some(done_ns) = operation.done_ns else {
            self.unfinished += 1;
            return;
        };
        let length_ns = done_ns.saturating_sub(operation.issue_ns);
        let end_ns = at_ns.saturating_add(length_ns);
        match self.stretch {
            Some((since, until)) if at_ns < until => {
                if is_data {
                    self.overlapping += 1;
                    let first_ns = self.first_end_ns.saturating_sub(since).max(1);
                    self.behind += at_ns.saturating_sub(since) as f64 / first_ns as f64;
                }
            }
            Some((since, until)) => {
                self.busy_ns += u128::from(until.saturating_sub(since));
                self.idle_ns = self.idle_ns.saturating_add(at_ns - until);
                self.begin(at_ns, end_ns);
            }
            None => self.begin(at_ns, end_ns),
        }
        if let Some((_, until)) = &mut self.stretch {
            *until = (*until).max(end_ns);
        }
        if is_data && !std::mem::replace(&mut self.has_data, true) {
            let idle_ns = std::mem::take(&mut self.idle_ns);
            if self.stretch_count > 0 {
                self.think.record(idle_ns);
            }
            self.stretch_count += 1;
            self.stretches.add(at_ns);
        }
        self.fly(at_ns, end_ns);
    }

    fn begin(&mut self, at_ns: u64, end_ns: u64) {
        self.stretch = Some((at_ns, at_ns));
        self.first_end_ns = end_ns;
        self.has_data = false;
    }

    fn fly(&mut self, at_ns: u64, end_ns: u64) {
        self.flown_ns += u128::from(end_ns - at_ns);
        while self.flying.peek().is_some_and(|end| end.0 <= at_ns) {
            self.flying.pop();
        }
        if self.flying.len() < MOST_IN_FLIGHT {
            self.flying.push(Reverse(end_ns));
        }
        self.most = self.most.max(self.flying.len() as u32);
    }

    /// What it says over so long.
    pub(super) fn signs(&self, active_ns: u64) -> Signs {
        let of = if self.is_serial() { &self.all } else { &self.stretches };
        Signs { overlapping: self.overlaps(), idc: of.dispersion(active_ns) }
    }

    /// Share of the data operations that begin while another one is in flight.
    fn overlaps(&self) -> f64 {
        self.overlapping as f64 / self.data.max(1) as f64
    }

    /// Whether one comes after another.
    pub(super) fn is_serial(&self) -> bool {
        self.overlaps() < OVERLAPPING
    }

    /// The loop of a part, of one task or several, that is active for so long.
    pub(super) fn choose(&self, tasks: u32, active_ns: u64) -> Loop {
        if tasks != 1 || self.unfinished > 0 || self.data < MIN_OPERATIONS {
            return Loop::Open;
        }
        let busy_ns = self.busy_ns();
        let depth = if busy_ns > 0.0 { self.flown_ns as f64 / busy_ns } else { 0.0 };
        let whole_ns = active_ns.max(1) as f64;
        let most = f64::from(self.most);
        if busy_ns >= ALWAYS_BUSY * whole_ns && self.most >= 2 && depth >= KEPT_FULL * most {
            return Loop::Full;
        }
        let [short, long] = self.all.dispersion(active_ns);
        if short.is_some_and(|idc| idc < REGULAR) && self.has_a_clock(long) {
            return Loop::Paced;
        }
        let signs = self.signs(active_ns);
        let is_serial = self.is_serial();
        let is_regular = signs.idc[0].is_some_and(|idc| idc < REGULAR);
        let is_closed =
            (is_regular || is_serial && self.waits(active_ns)) && (is_serial || self.is_at_once());
        if !is_closed {
            return Loop::Open;
        }
        let mean_burst = self.at_once();
        let burst = if is_serial { 1 } else { mean_burst.round().max(1.0) as u32 };
        match distributions::of_seen(&self.think) {
            Some(law) => Loop::Thinking { law, burst, mean_burst },
            None => Loop::Full,
        }
    }

    /// Whether operations wait for those before: independent arrivals find something in flight as often as something is (Wolff, "Poisson
    /// arrivals see time averages", 1982).
    pub(super) fn waits(&self, active_ns: u64) -> bool {
        let busy = self.busy_ns() / active_ns.max(1) as f64;
        self.overlaps() < WAITING * busy && busy * self.data as f64 >= TELLING
    }

    /// Whether all completions are known.
    pub(super) fn is_known(&self) -> bool {
        self.unfinished == 0
    }

    /// Whether operations of a stretch are issued together.
    pub(super) fn is_at_once(&self) -> bool {
        self.behind < AT_ONCE * self.overlapping as f64
    }

    /// Whether operations of a stretch are issued as soon as there is room.
    pub(super) fn is_filling(&self) -> bool {
        self.flown_ns as f64 >= FILLED * f64::from(self.most) * self.busy_ns()
    }

    /// Data operations of a stretch, in the mean.
    pub(super) fn at_once(&self) -> f64 {
        self.data as f64 / self.stretch_count.max(1) as f64
    }

    /// Data operations of a call, in the mean; `None` where they come one by one.
    pub(super) fn in_a_call(&self) -> Option<f64> {
        Some(self.data as f64 / self.calls.max(1) as f64).filter(|mean| *mean >= SEVERAL)
    }

    /// Time with something in flight, in ns.
    fn busy_ns(&self) -> f64 {
        let last = self.stretch.map_or(0, |(since, until)| until.saturating_sub(since));
        (self.busy_ns + u128::from(last)) as f64
    }

    /// Whether it waits for times and not for completions: it is idle for most of the time, and what is late is made up for.
    fn has_a_clock(&self, idc_100ms: Option<f64>) -> bool {
        let gaps = &self.all.gaps;
        let (Some(mean), Some(think)) = (gaps.mean_ns(), self.think.mean_ns()) else { return false };
        let squares: f64 = gaps.counts().map(|(ns, count)| (ns as f64 - mean).powi(2) * count as f64).sum();
        let variation = squares / gaps.count().max(1) as f64 / (mean * mean);
        let is_bound = idc_100ms.is_some_and(|idc| idc < BY_A_CLOCK.max(BOUND * variation));
        // What is late is made up for, so stalls leave the mean where most are.
        let [from, to] = [mean * (1.0 - NEAR), mean * (1.0 + NEAR)].map(|ns| ns as u64);
        let is_near = gaps.count_between(from, to) * 2 >= gaps.count();
        let median = gaps.quantile_ns(0.5).unwrap_or(0) as f64;
        let is_centred = is_near && (median - mean).abs() <= CENTRED * mean;
        think > mean / 2.0 && (variation < EVEN || is_bound || is_centred)
    }
}

/// Turns from which on their length says something.
const MIN_TURNS: u64 = 3;

/// One of the two things.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) pacing: Pacing,
    clock_ns: u64,
    /// Times from the stretch of either side before to one of its own, from beginning to beginning.
    pub(super) periods: Histogram,
    /// How often it had its turn, the operations of the present one, and those of the shortest and the longest before.
    pub(super) turns: u64,
    present: u64,
    pub(super) lengths: Option<(u64, u64)>,
}

impl Side {
    /// It is its turn.
    pub(super) fn begin(&mut self) {
        self.turns += 1;
    }

    /// It is the other one's.
    pub(super) fn end(&mut self) {
        let length = std::mem::take(&mut self.present);
        if length > 0 {
            self.lengths =
                Some(self.lengths.map_or((length, length), |(a, b)| (a.min(length), b.max(length))));
        }
    }

    /// A stretch with data of its own begins so long after the one before.
    pub(super) fn begins_after(&mut self, ns: u64) {
        self.periods.record(ns);
    }

    /// A stretch of its operations with their times in ns, so long after the stretch before, until a time.
    pub(super) fn add(&mut self, stretch: &[(Operation, u64)], idle_ns: u64, until_ns: u64) {
        let Some((_, since_ns)) = stretch.first() else { return };
        let begin_ns = self.clock_ns.saturating_add(idle_ns);
        for (operation, at_ns) in stretch {
            self.pacing.add(operation, begin_ns.saturating_add(at_ns.saturating_sub(*since_ns)));
            self.present += u64::from(operation.kind != Kind::Sync);
        }
        self.clock_ns = begin_ns.saturating_add(until_ns.saturating_sub(*since_ns));
    }

    /// Whether its operations come one by one and wait for those before.
    pub(super) fn waits(&self) -> bool {
        self.pacing.is_serial() && self.pacing.waits(self.clock_ns)
    }

    /// Whether there are enough turns, and all completions are known.
    pub(super) fn is_told(&self) -> bool {
        self.turns >= MIN_TURNS && self.pacing.is_known()
    }
}
