//! Clock readings: the offset of another host's clock from the clock of this host, and its largest possible error.
//!
//! A reading comes from a ping. The offset is taken at the middle of the round trip, and may be wrong by half of the round trip. Of
//! several readings, the one with the shortest round trip is the best. [`super::transport`] sends the pings.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Pings per series. The ping with the shortest round trip had the least delay.
pub(super) const PINGS: u32 = 24;
/// Maximum number of series. A further series is sent only if all round trips so far took longer than [`SHORT_NS`].
pub(super) const SERIES: u32 = 5;
/// A round trip of at most this many ns is short enough: the error of the offset is then at most 50 us.
pub(super) const SHORT_NS: u64 = 100_000;

/// The reading of another host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reading {
    /// How far the other clock is ahead of this host's clock, in ns.
    pub(super) offset_ns: i64,
    /// Time between ping and answer, in ns.
    pub(super) round_trip_ns: u64,
}

/// Clock readings, each with the rank of the host that was read. Offsets are relative to the clock of the host that sends the readings.
pub(super) type Readings = Vec<(usize, Reading)>;

impl Reading {
    /// The reading of this host's own clock.
    pub(super) const OURS: Self = Self { offset_ns: 0, round_trip_ns: 0 };

    /// Returns the reading of a ping. `sent_ns` is the time of the ping and `received_ns` the arrival of the answer, both of this host's
    /// clock. `remote_ns` is the other clock's time in the answer.
    pub(super) fn from_exchange(sent_ns: u64, remote_ns: u64, received_ns: u64) -> Self {
        let round_trip_ns = received_ns.saturating_sub(sent_ns);
        let middle = i128::from(sent_ns) + i128::from(round_trip_ns / 2);
        Self { offset_ns: (i128::from(remote_ns) - middle) as i64, round_trip_ns }
    }

    /// Returns the reading with the shorter round trip.
    pub(super) fn better(self, other: Option<Self>) -> Self {
        other.filter(|other| other.round_trip_ns <= self.round_trip_ns).unwrap_or(self)
    }

    /// Combines the reading of another host's clock with the reading `onward` that the other host took of a third clock. The errors add up.
    pub(super) fn then(self, onward: Self) -> Self {
        Self {
            offset_ns: self.offset_ns.saturating_add(onward.offset_ns),
            round_trip_ns: self.round_trip_ns.saturating_add(onward.round_trip_ns),
        }
    }

    /// The largest possible error of the offset, in ns.
    pub(super) fn error_ns(self) -> u64 {
        self.round_trip_ns / 2
    }

    /// Returns the time of the other clock when this host's clock is at `ns`.
    pub(super) fn there(self, ns: u64) -> u64 {
        (i128::from(ns) + i128::from(self.offset_ns)) as u64
    }

    /// Returns the largest of three values, in ns: the change of the offset since an earlier reading,
    /// and the error of each of the two readings.
    pub(super) fn error_since(self, before: Self) -> u64 {
        let moved = self.offset_ns.abs_diff(before.offset_ns);
        moved.max(self.error_ns()).max(before.error_ns())
    }
}

/// The monotonic clock of this host in ns. Its zero differs between hosts.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Converts a time of the monotonic clock to an `Instant`; a time that has passed becomes now.
pub(super) fn instant(ns: u64) -> Instant {
    // `Instant` uses CLOCK_MONOTONIC too, so only the time between the two calls must be corrected.
    let (before, now) = (now_ns(), Instant::now());
    let after = now_ns();
    now + Duration::from_nanos(ns.saturating_sub(before / 2 + after / 2))
}

#[test]
fn clock_offset_is_taken_at_the_middle_of_the_round_trip() {
    let reading = Reading::from_exchange(1_000, 501_100, 1_200);
    assert_eq!((reading.offset_ns, reading.round_trip_ns, reading.error_ns()), (500_000, 200, 100));
    assert_eq!(reading.there(2_000), 502_000);
    let slow_clock = Reading::from_exchange(900_000, 100, 900_010);
    assert_eq!((slow_clock.offset_ns, slow_clock.there(900_005)), (-899_905, 100));
    assert_eq!(reading.better(Some(slow_clock)), slow_clock);
    assert_eq!(slow_clock.better(None), slow_clock);
    let below = reading.then(slow_clock);
    assert_eq!((below.offset_ns, below.round_trip_ns), (500_000 - 899_905, 210));
    let later = Reading { offset_ns: 500_900, ..reading };
    assert_eq!(later.error_since(reading), 900);
    assert_eq!(reading.error_since(reading), 100);
}

#[test]
fn monotonic_times_convert_to_instants() {
    let at = instant(now_ns() + 3_000_000);
    let left = at.saturating_duration_since(Instant::now());
    assert!(left <= Duration::from_millis(3) && left > Duration::from_micros(500), "{left:?}");
    assert!(instant(1) <= Instant::now());
}
