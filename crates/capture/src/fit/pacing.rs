//! Pacing: whether a part is an open or a closed loop, and its think times.
//!
//! 1. [`Pacing`] follows the operations of a part: the operations that overlap, the busy intervals
//!    in which something is in flight, and the pauses between busy intervals.
//! 2. [`Pacing::choose`] decides: a full queue, a clock, a closed loop with think times and bursts,
//!    or an open loop.
//! 3. [`Side`] collects the busy intervals with few operations, or those with many, of a task that
//!    alternates between them. Its clock stops while the other side is active.

use crate::fit::distributions;
use crate::fit::distributions::Law;
use crate::profile::timing::ArrivalCounter;
use crate::replay::{InFlight, Operation};
use model::histogram::Histogram;
use model::job::Kind;

/// A part with a lower share of overlapping operations is serial.
const MAX_SERIAL_OVERLAP: f64 = 0.05;
/// Arrivals with a lower index of dispersion in 10 ms are not independent.
const MAX_REGULAR_IDC: f64 = 0.7;
/// Minimum share of time with operations in flight for a queue that is kept full.
const MIN_BUSY_SHARE: f64 = 0.9;
/// Minimum mean depth for a queue that is kept full, as a share of the maximum depth.
const MIN_FULL_DEPTH: f64 = 0.75;
/// Gaps with a lower squared coefficient of variation are even.
const MAX_EVEN_VARIATION: f64 = 0.05;
/// Maximum dispersion in 100 ms under a clock. If the gaps vary much, the limit is [`CLOCK_VARIATION_SHARE`] of their variation.
const MAX_CLOCK_IDC: f64 = 0.15;
/// Maximum dispersion in 100 ms under a clock, as a share of the squared coefficient of variation of the gaps.
const CLOCK_VARIATION_SHARE: f64 = 0.25;
/// Under a clock, at least half of the gaps deviate from the mean by at most this share of it.
const MAX_CLOCK_DEVIATION: f64 = 0.15;
/// Under a clock, the median gap deviates from the mean by at most this share of it.
const MAX_CLOCK_MEDIAN_DEVIATION: f64 = 0.03;
/// The operations of a busy interval are issued at once if, on average, the later ones begin at most this long
/// after the first one. Unit: the latency of the first one.
const MAX_AT_ONCE_DELAY: f64 = 0.25;
/// A task refills its queue if its mean depth while it is busy is at least this share of its maximum depth.
const MIN_FILLING_DEPTH: f64 = 0.25;
/// Operations wait for earlier ones if the share that overlaps is below this fraction of the share expected from
/// independent arrivals.
const MAX_WAITING_OVERLAP: f64 = 0.25;
/// The test with [`MAX_WAITING_OVERLAP`] is made only if, with independent arrivals, at least this many operations would overlap earlier
/// ones.
const MIN_EXPECTED_OVERLAPS: f64 = 20.0;
/// Maximum gap in ns between operations of one submitting call. Separate calls are further apart.
const MAX_CALL_GAP_NS: u64 = 3_000;
/// Minimum mean number of operations per call for a task that submits several at once.
const MIN_CALL_OPERATIONS: f64 = 1.5;
/// Minimum number of operations for a decision.
const MIN_OPERATIONS: u64 = 20;

/// The times at which a part's operations begin and end. They decide the pace of the part's stream.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    in_flight: InFlight,
    /// Begin and end of the current busy interval; `None` before the first operation.
    busy_interval: Option<(u64, u64)>,
    /// When the first operation of the busy interval completes, in ns.
    first_end_ns: u64,
    has_data: bool,
    /// Idle time since the last busy interval with data, in ns.
    idle_ns: u64,
    pub(super) think: Histogram,
    /// Arrivals of data operations.
    all: ArrivalCounter,
    /// Arrivals of busy intervals with data.
    busy_intervals: ArrivalCounter,
    busy_interval_count: u64,
    data: u64,
    /// When the last data operation was issued; `None` before the first one.
    issued_ns: Option<u64>,
    /// Number of submitting calls.
    calls: u64,
    overlapping: u64,
    /// Sum over the overlapping data operations: the time from the start of the busy interval to the operation, divided by the latency of
    /// the interval's first operation.
    delay_sum: f64,
    unfinished: u64,
    busy_ns: u128,
}

/// How operations of a part are submitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LoopKind {
    /// Operations do not depend on completions.
    Open,
    /// An operation begins as soon as the queue has room.
    Full,
    /// A clock starts the operations.
    Paced,
    /// A burst of operations, then a pause.
    Thinking {
        /// The pause.
        law: Law,
        /// Operations per burst: the observed mean as a whole number, or 1 if operations come one after another.
        burst: u32,
        /// Observed mean number of operations per burst.
        mean_burst: f64,
    },
}

/// The figures on which a decision is based.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PacingFigures {
    /// Share of operations that overlap others of the part.
    pub(super) overlapping: f64,
    /// Index of dispersion in 10 ms and in 100 ms: of the operations, or of the busy intervals if
    /// operations overlap.
    pub(super) idc: [Option<f64>; 2],
}

impl Pacing {
    pub(super) fn add(&mut self, operation: &Operation, at_ns: u64) {
        let is_data = operation.kind != Kind::Sync;
        if is_data {
            self.data += 1;
            self.all.add(at_ns);
            let before = self.issued_ns.replace(at_ns);
            let is_same_call = before.is_some_and(|before| at_ns.saturating_sub(before) <= MAX_CALL_GAP_NS);
            self.calls += u64::from(!is_same_call);
        }
        let Some(done_ns) = operation.done_ns else {
            self.unfinished += 1;
            return;
        };
        let length_ns = done_ns.saturating_sub(operation.issue_ns);
        let end_ns = at_ns.saturating_add(length_ns);
        match self.busy_interval {
            Some((since, until)) if at_ns < until => {
                if is_data {
                    self.overlapping += 1;
                    let first_ns = self.first_end_ns.saturating_sub(since).max(1);
                    self.delay_sum += at_ns.saturating_sub(since) as f64 / first_ns as f64;
                }
            }
            Some((since, until)) => {
                self.busy_ns += u128::from(until.saturating_sub(since));
                self.idle_ns = self.idle_ns.saturating_add(at_ns - until);
                self.begin(at_ns, end_ns);
            }
            None => self.begin(at_ns, end_ns),
        }
        if let Some((_, until)) = &mut self.busy_interval {
            *until = (*until).max(end_ns);
        }
        if is_data && !std::mem::replace(&mut self.has_data, true) {
            let idle_ns = std::mem::take(&mut self.idle_ns);
            if self.busy_interval_count > 0 {
                self.think.record(idle_ns);
            }
            self.busy_interval_count += 1;
            self.busy_intervals.add(at_ns);
        }
        self.in_flight.add(at_ns, end_ns);
    }

    fn begin(&mut self, at_ns: u64, end_ns: u64) {
        self.busy_interval = Some((at_ns, at_ns));
        self.first_end_ns = end_ns;
        self.has_data = false;
    }

    /// Returns the maximum number of operations in flight.
    pub(super) fn depth_max(&self) -> u32 {
        self.in_flight.depth_max as u32
    }

    /// Returns the figures of a part that is active for this time.
    pub(super) fn figures(&self, active_ns: u64) -> PacingFigures {
        let arrivals = if self.is_serial() { &self.all } else { &self.busy_intervals };
        PacingFigures { overlapping: self.overlaps(), idc: arrivals.dispersion(active_ns) }
    }

    /// Returns the share of data operations that begin while another one is in flight.
    fn overlaps(&self) -> f64 {
        self.overlapping as f64 / self.data.max(1) as f64
    }

    /// Whether operations come one after another.
    pub(super) fn is_serial(&self) -> bool {
        self.overlaps() < MAX_SERIAL_OVERLAP
    }

    /// Returns the kind of loop of a part with this many tasks and this active time.
    pub(super) fn choose(&self, tasks: u32, active_ns: u64) -> LoopKind {
        if tasks != 1 || self.unfinished > 0 || self.data < MIN_OPERATIONS {
            return LoopKind::Open;
        }
        let busy_ns = self.busy_ns();
        let depth = if busy_ns > 0.0 { self.in_flight.total_ns as f64 / busy_ns } else { 0.0 };
        let whole_ns = active_ns.max(1) as f64;
        let most = f64::from(self.depth_max());
        if busy_ns >= MIN_BUSY_SHARE * whole_ns
            && self.in_flight.depth_max >= 2
            && depth >= MIN_FULL_DEPTH * most
        {
            return LoopKind::Full;
        }
        let [short, long] = self.all.dispersion(active_ns);
        if short.is_some_and(|idc| idc < MAX_REGULAR_IDC) && self.has_a_clock(long) {
            return LoopKind::Paced;
        }
        let figures = self.figures(active_ns);
        let is_serial = self.is_serial();
        let is_regular = figures.idc[0].is_some_and(|idc| idc < MAX_REGULAR_IDC);
        let is_closed =
            (is_regular || is_serial && self.waits(active_ns)) && (is_serial || self.is_at_once());
        if !is_closed {
            return LoopKind::Open;
        }
        let mean_burst = self.mean_burst_operations();
        let burst = if is_serial { 1 } else { mean_burst.round().max(1.0) as u32 };
        match distributions::fit_observed_pauses(&self.think) {
            Some(law) => LoopKind::Thinking { law, burst, mean_burst },
            None => LoopKind::Full,
        }
    }

    /// Returns whether operations wait for earlier ones. If arrivals were independent, the share of operations that find another one in
    /// flight would equal the share of time in which one is in flight (Wolff, "Poisson arrivals see time averages", 1982).
    pub(super) fn waits(&self, active_ns: u64) -> bool {
        let busy = self.busy_ns() / active_ns.max(1) as f64;
        self.overlaps() < MAX_WAITING_OVERLAP * busy && busy * self.data as f64 >= MIN_EXPECTED_OVERLAPS
    }

    /// Whether all completions are known.
    pub(super) fn is_known(&self) -> bool {
        self.unfinished == 0
    }

    /// Whether the operations of a busy interval are issued together.
    pub(super) fn is_at_once(&self) -> bool {
        self.delay_sum < MAX_AT_ONCE_DELAY * self.overlapping as f64
    }

    /// Whether the operations of a busy interval are issued as soon as the queue has room.
    pub(super) fn is_filling(&self) -> bool {
        self.in_flight.total_ns as f64 >= MIN_FILLING_DEPTH * f64::from(self.depth_max()) * self.busy_ns()
    }

    /// Returns the mean number of data operations per busy interval.
    pub(super) fn mean_burst_operations(&self) -> f64 {
        self.data as f64 / self.busy_interval_count.max(1) as f64
    }

    /// Returns the mean number of data operations per call; `None` if they come one by one.
    pub(super) fn in_a_call(&self) -> Option<f64> {
        Some(self.data as f64 / self.calls.max(1) as f64).filter(|mean| *mean >= MIN_CALL_OPERATIONS)
    }

    /// Returns the time with operations in flight, in ns.
    fn busy_ns(&self) -> f64 {
        let last = self.busy_interval.map_or(0, |(since, until)| until.saturating_sub(since));
        (self.busy_ns + u128::from(last)) as f64
    }

    /// Returns whether a clock starts the operations. With a clock, a part is idle most of the time, and catches up after a delay.
    fn has_a_clock(&self, idc_100ms: Option<f64>) -> bool {
        let gaps = &self.all.gaps;
        let (Some(mean), Some(think)) = (gaps.mean_ns(), self.think.mean_ns()) else { return false };
        let squares: f64 = gaps.counts().map(|(ns, count)| (ns as f64 - mean).powi(2) * count as f64).sum();
        let variation = squares / gaps.count().max(1) as f64 / (mean * mean);
        let is_bound =
            idc_100ms.is_some_and(|idc| idc < MAX_CLOCK_IDC.max(CLOCK_VARIATION_SHARE * variation));
        // After a late operation a clock starts the next one at its usual time, so most gaps remain near the mean.
        let [from, to] =
            [mean * (1.0 - MAX_CLOCK_DEVIATION), mean * (1.0 + MAX_CLOCK_DEVIATION)].map(|ns| ns as u64);
        let is_near = gaps.count_between(from, to) * 2 >= gaps.count();
        let median = gaps.quantile_ns(0.5).unwrap_or(0) as f64;
        let is_centred = is_near && (median - mean).abs() <= MAX_CLOCK_MEDIAN_DEVIATION * mean;
        think > mean / 2.0 && (variation < MAX_EVEN_VARIATION || is_bound || is_centred)
    }
}

/// Minimum number of turns for a known turn length.
const MIN_TURNS: u64 = 3;

/// The busy intervals with few operations, or those with many, of a task that alternates between
/// them.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) pacing: Pacing,
    clock_ns: u64,
    /// For each busy interval of this side with data: the time since the previous busy interval with data of
    /// either side began.
    pub(super) periods: Histogram,
    /// Number of turns: sequences of busy intervals of this side without one of the other side.
    pub(super) turns: u64,
    /// Number of operations of the current turn.
    turn_operations: u64,
    /// Number of operations of the shortest and of the longest turn that has ended; `None` before a
    /// turn has ended.
    pub(super) lengths: Option<(u64, u64)>,
}

impl Side {
    /// Ends a turn.
    pub(super) fn end(&mut self) {
        let length = std::mem::take(&mut self.turn_operations);
        if length > 0 {
            self.lengths =
                Some(self.lengths.map_or((length, length), |(a, b)| (a.min(length), b.max(length))));
        }
    }

    /// Adds a busy interval. `busy_interval` has its operations with their times in ns, `idle_ns` is the idle time before it, and
    /// `until_ns` is its end.
    pub(super) fn add(&mut self, busy_interval: &[(Operation, u64)], idle_ns: u64, until_ns: u64) {
        let Some((_, since_ns)) = busy_interval.first() else { return };
        let begin_ns = self.clock_ns.saturating_add(idle_ns);
        for (operation, at_ns) in busy_interval {
            self.pacing.add(operation, begin_ns.saturating_add(at_ns.saturating_sub(*since_ns)));
            self.turn_operations += u64::from(operation.kind != Kind::Sync);
        }
        self.clock_ns = begin_ns.saturating_add(until_ns.saturating_sub(*since_ns));
    }

    /// Returns whether the operations of this side come one by one and wait for earlier ones.
    pub(super) fn waits(&self) -> bool {
        self.pacing.is_serial() && self.pacing.waits(self.clock_ns)
    }

    /// Returns whether there are enough turns and all completions are known.
    pub(super) fn is_known_enough(&self) -> bool {
        self.turns >= MIN_TURNS && self.pacing.is_known()
    }
}
