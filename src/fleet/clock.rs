//! The clocks of hosts: how far each is from that of rank 0, and how well that is known.
//!
//! For: readings out of pings and their answers. Not for: sending them ([`super::post`]).

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Pings of a series. The one that took least time is the one that waited least.
pub(super) const PINGS: u32 = 24;
/// Series until the round trip is short enough.
pub(super) const SERIES: u32 = 5;
/// Round trip in ns that is short enough: a start within the half of it is sooner than any storage answers.
pub(super) const SHORT_NS: u64 = 100_000;

/// A reading of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reading {
    /// ns that it is ahead of ours.
    pub(super) offset_ns: i64,
    /// ns between asking and hearing.
    pub(super) round_trip_ns: u64,
}

/// Readings of clocks by rank, as they are beside that of the host that says them.
pub(super) type Readings = Vec<(usize, Reading)>;

impl Reading {
    /// Our own.
    pub(super) const OURS: Self = Self { offset_ns: 0, round_trip_ns: 0 };

    /// Out of when it was asked, what it said, and when that was heard.
    pub(super) fn from_exchange(asked_ns: u64, said_ns: u64, heard_ns: u64) -> Self {
        let round_trip_ns = heard_ns.saturating_sub(asked_ns);
        let middle = i128::from(asked_ns) + i128::from(round_trip_ns / 2);
        Self { offset_ns: (i128::from(said_ns) - middle) as i64, round_trip_ns }
    }

    /// The better one of two.
    pub(super) fn better(self, other: Option<Self>) -> Self {
        other.filter(|other| other.round_trip_ns <= self.round_trip_ns).unwrap_or(self)
    }

    /// The clock that one of this reading reads so: neither is better known than both together.
    pub(super) fn then(self, its: Self) -> Self {
        Self {
            offset_ns: self.offset_ns.saturating_add(its.offset_ns),
            round_trip_ns: self.round_trip_ns.saturating_add(its.round_trip_ns),
        }
    }

    /// ns by which it may be wrong.
    pub(super) fn error_ns(self) -> u64 {
        self.round_trip_ns / 2
    }

    /// What that clock shows when ours shows `ns`.
    pub(super) fn there(self, ns: u64) -> u64 {
        (i128::from(ns) + i128::from(self.offset_ns)) as u64
    }

    /// How far it went off between two readings, in ns, with what either may be wrong by.
    pub(super) fn error_since(self, before: Self) -> u64 {
        let moved = self.offset_ns.abs_diff(before.offset_ns);
        moved.max(self.error_ns()).max(before.error_ns())
    }
}

/// ns of this host's clock, which only goes forward. Hosts count from different moments.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A time of that clock as one that threads wait for; now where it has passed.
pub(super) fn instant(ns: u64) -> Instant {
    // Both are CLOCK_MONOTONIC, so nothing but the time between the two calls is lost: it is taken off again.
    let (before, now) = (now_ns(), Instant::now());
    let after = now_ns();
    now + Duration::from_nanos(ns.saturating_sub(before / 2 + after / 2))
}

#[test]
fn the_offset_is_that_of_the_middle_of_the_round_trip() {
    let reading = Reading::from_exchange(1_000, 501_100, 1_200);
    assert_eq!((reading.offset_ns, reading.round_trip_ns, reading.error_ns()), (500_000, 200, 100));
    assert_eq!(reading.there(2_000), 502_000);
    let behind = Reading::from_exchange(900_000, 100, 900_010);
    assert_eq!((behind.offset_ns, behind.there(900_005)), (-899_905, 100));
    assert_eq!(reading.better(Some(behind)), behind);
    assert_eq!(behind.better(None), behind);
    let below = reading.then(behind);
    assert_eq!((below.offset_ns, below.round_trip_ns), (500_000 - 899_905, 210));
    let later = Reading { offset_ns: 500_900, ..reading };
    assert_eq!(later.error_since(reading), 900);
    assert_eq!(reading.error_since(reading), 100);
}

#[test]
fn a_time_of_the_clock_is_waited_for_as_one_of_the_threads() {
    let at = instant(now_ns() + 3_000_000);
    let left = at.saturating_duration_since(Instant::now());
    assert!(left <= Duration::from_millis(3) && left > Duration::from_micros(500), "{left:?}");
    assert!(instant(1) <= Instant::now());
}
