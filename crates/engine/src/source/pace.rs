//! Times before which operations are not submitted.
//!
//! For: arrivals of an open loop, and limits of rates. Not for: waiting; a source has no clock.
//!
//! Times are fixed in advance and count from the lane's first operation. So a limited closed loop catches up after a stall,
//! as those of fio and diskspd do: its rate over the run is the one asked for. All its lanes begin at once.
//!
//! Times are kept in 2^-64 ns, so gaps that are no whole number of nanoseconds do not add up to a drift. Syncs are no
//! operations of a rate: they take the time of the operation before them and cost nothing.

use super::arrive::{Batches, OnOff};
use super::{Op, Source};
use model::job::{Arrivals, Kind, Pace};
use rand::SeedableRng;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

const NS_PER_S: f64 = 1e9;
const FRACTION_BITS: u32 = 64;

/// A time or a distance in 2^-64 ns. Stays at its end, after 584 years, instead of beginning again.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct Moment(u128);

impl Moment {
    /// From a number of ns, exactly; what is beyond the end is the end.
    fn from_ns(ns: f64) -> Self {
        let whole = ns as u64;
        let fraction = ((ns - whole as f64) * 2_f64.powi(FRACTION_BITS.cast_signed())) as u64;
        Self(u128::from(whole) << FRACTION_BITS | u128::from(fraction))
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

/// Which of the lanes of a stream, over all its workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Its index.
    pub(super) lane: u64,
    /// How many there are.
    pub(super) lanes: u64,
    /// A seed that no other lane has.
    pub(super) seed: u64,
}

/// Gives the operations of a lane their part of a stream's pace.
pub(super) fn paced(inner: Box<dyn Source>, pace: Pace, place: Place) -> Result<Box<dyn Source>, String> {
    Ok(match pace {
        Pace::Closed => inner,
        Pace::Limited { iops, bytes_per_s } => match Limited::new(iops, bytes_per_s, place.lanes)? {
            Some(limited) => Box::new(Paced::new(inner, limited)),
            None => inner,
        },
        Pace::Each { .. } => return Err("rates of directions were put around something else".into()),
        Pace::Open { iops, arrivals: Arrivals::Constant } => {
            let period = period(iops)?;
            Box::new(Paced::new(
                inner,
                Constant { next: period.times(place.lane), gap: period.times(place.lanes) },
            ))
        }
        Pace::Open { iops, arrivals: Arrivals::Poisson } => {
            period(iops)?;
            let rng = Xoshiro256PlusPlus::seed_from_u64(place.seed);
            let mean_ns = NS_PER_S / iops * place.lanes as f64;
            Box::new(Paced::new(inner, Poisson { last: Moment::default(), mean_ns, rng }))
        }
        Pace::Open { iops, arrivals: Arrivals::Batch { mean } } => {
            period(iops)?;
            let rng = Xoshiro256PlusPlus::seed_from_u64(place.seed);
            let gaps = Batches::new(NS_PER_S / iops * place.lanes as f64, mean, rng)?;
            Box::new(Paced::new(inner, BurstArrivals { last: Moment::default(), gaps }))
        }
        Pace::Open { iops, arrivals: Arrivals::OnOff { on_ns, off_ns } } => {
            period(iops)?;
            if place.lanes > 1 {
                return Err("arrivals that are on and off are those of one worker on one target; take the others away".into());
            }
            let rng = Xoshiro256PlusPlus::seed_from_u64(place.seed);
            let gaps = OnOff::new(NS_PER_S / iops, (on_ns, off_ns), rng)?;
            Box::new(Paced::new(inner, BurstArrivals { last: Moment::default(), gaps }))
        }
    })
}

/// The distance at a rate per second.
fn period(rate: f64) -> Result<Moment, String> {
    if rate.is_finite() && rate > 0.0 {
        Ok(Moment::from_ns(NS_PER_S / rate))
    } else {
        Err(format!("{rate} per second is no rate; give a number above 0"))
    }
}

/// The times of a lane's operations.
trait Times: Send {
    fn next(&mut self, op: &Op) -> Moment;
}

/// A source whose operations carry [`Op::AT`].
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

/// Evenly spaced; the lanes of a stream take turns, so that all of it is evenly spaced.
struct Constant {
    next: Moment,
    gap: Moment,
}

impl Times for Constant {
    #[inline]
    fn next(&mut self, _: &Op) -> Moment {
        let now = self.next;
        self.next = now.plus(self.gap);
        now
    }
}

/// Exponential distances. Several such lanes together are again one such stream, with the sum of their rates.
struct Poisson {
    last: Moment,
    mean_ns: f64,
    rng: Xoshiro256PlusPlus,
}

impl Times for Poisson {
    #[inline]
    fn next(&mut self, _: &Op) -> Moment {
        let gap: f64 = Exp1.sample(&mut self.rng);
        self.last = self.last.plus(Moment::from_ns(gap * self.mean_ns));
        self.last
    }
}

/// Distances of bursts.
trait Gaps: Send {
    fn next(&mut self) -> f64;
}

impl Gaps for Batches {
    fn next(&mut self) -> f64 {
        Self::next(self)
    }
}

impl Gaps for OnOff {
    fn next(&mut self) -> f64 {
        Self::next(self)
    }
}

/// Arrivals in bursts.
struct BurstArrivals<G> {
    last: Moment,
    gaps: G,
}

impl<G: Gaps> Times for BurstArrivals<G> {
    fn next(&mut self, _: &Op) -> Moment {
        self.last = self.last.plus(Moment::from_ns(self.gaps.next()));
        self.last
    }
}

/// Not before all operations before it, and all their bytes, are paid for.
pub(super) struct Limited {
    per_op: Moment,
    per_byte: Moment,
    ops: Moment,
    bytes: Moment,
}

impl Limited {
    /// One lane's part of so many operations and bytes a second, 0 for any number; `None` where there is no limit.
    pub(super) fn new(iops: f64, bytes_per_s: f64, lanes: u64) -> Result<Option<Self>, String> {
        let gap = |rate: f64| if rate == 0.0 { Ok(Moment::default()) } else { period(rate) };
        let (per_op, per_byte) = (gap(iops)?.times(lanes), gap(bytes_per_s)?.times(lanes));
        let start = Moment::default();
        let is_none = per_op == per_byte && per_op == start;
        Ok((!is_none).then_some(Self { per_op, per_byte, ops: start, bytes: start }))
    }

    /// When the next operation may go.
    #[inline]
    fn due(&self) -> Moment {
        if self.ops > self.bytes { self.ops } else { self.bytes }
    }

    /// When the next operation may go, in ns.
    pub(super) fn due_ns(&self) -> u64 {
        self.due().ns()
    }

    /// Counts an operation that goes.
    #[inline]
    pub(super) fn pay(&mut self, op: &Op) {
        self.ops = self.ops.plus(self.per_op);
        self.bytes = self.bytes.plus(self.per_byte.times(u64::from(op.length)));
    }
}

impl Times for Limited {
    #[inline]
    fn next(&mut self, op: &Op) -> Moment {
        let now = self.due();
        self.pay(op);
        now
    }
}

#[test]
fn a_day_of_gaps_that_are_no_whole_number_does_not_drift() {
    const DAY_S: u64 = 86_400;
    for rate in [3_u64, 7, 7000, 333_333, 9_999_991] {
        let gap = period(rate as f64).unwrap_or_else(|e| panic!("{e}"));
        // Adding is exact, so so many times is what so many additions give.
        assert!(gap.times(DAY_S * rate).ns().abs_diff(DAY_S * 1_000_000_000) <= 1, "{rate}");
        let added = (0..1000).fold(Moment::default(), |sum, _| sum.plus(gap));
        assert_eq!(added, gap.times(1000));
    }
    assert_eq!(Moment::from_ns(1e300).plus(Moment::from_ns(1.0)).ns(), u64::MAX);
    assert_eq!(Moment::from_ns(2.5).times(3).ns(), 7);
}
