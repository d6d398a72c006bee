//! The course of a run: when it begins, how long its intervals are, and keeping them as they become whole.
//!
//! For: rows of the session file, and the same for whoever merges them with those of other hosts. Not for: adding up ([`crate::collector`]).

use super::{Measurement, ends};
use crate::collector::Collector;
use crate::failure::Failure;
use engine::workers::Workers;
use model::job::{Phase, SHORTEST_INTERVAL_NS};
use model::record::Frame;
use std::time::Instant;

/// Intervals: a hundredth of the window, within these bounds.
const INTERVAL_NS: (u64, u64) = (SHORTEST_INTERVAL_NS, 1_000_000_000);

impl Measurement {
    /// Keeps the course of the run up to a time of it, as far as it can change no more.
    pub(super) fn keep_rows(&mut self, collector: &mut Collector, until_ns: u64) -> Result<(), Failure> {
        let Some(rows) = collector.take_rows(until_ns) else { return Ok(()) };
        if let Some(course) = self.courses.last_mut() {
            course.extend(rows.rows.iter().cloned());
        }
        self.session.append(&Frame::Intervals(rows))
    }
}

/// Length of the intervals of a phase. What ends a stream looks at whole numbers of them, and stretches of a worker are made of such.
pub(super) fn interval_ns(phase: &Phase) -> u64 {
    // What a capture takes is known, and not when it has to end.
    let replayed = phase.streams.iter().filter_map(|s| s.replay.as_ref()?.expected_ns()).min();
    let time_ns = phase.time_ns.min(replayed.unwrap_or(u64::MAX));
    let (shortest, longest) = INTERVAL_NS;
    let interval = (time_ns / 100).clamp(shortest, longest);
    // A worker whose operations are each told apart needs no intervals for its stretches.
    let by_block = phase.streams.iter().filter(|s| s.apart_ns().is_none());
    let spans =
        phase.streams.iter().filter_map(ends::every_ns).chain(by_block.filter_map(|s| s.each_worker_ns));
    match spans.filter(|ns| *ns > 0).reduce(gcd) {
        None => interval,
        // What is shorter, or has nothing that long in common, is met as nearly as can be.
        Some(span) if span < shortest => shortest,
        Some(span) => span / span.div_ceil(interval),
    }
}

/// The greatest common divisor.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Lets workers begin: at a time that all hosts have agreed on, or at once. Gives when that is.
pub(super) fn open(workers: &mut Workers, begin: Option<Instant>) -> Instant {
    match begin {
        Some(at) => workers.open_at(at),
        None => workers.open(),
    }
    let now = Instant::now();
    begin.map_or(now, |at| at.max(now))
}

#[test]
fn intervals_are_whole_parts_of_what_ends_a_stream_and_of_stretches() {
    use model::job::{Access, MinRate, Pattern, PerKind, Quantity, Steady, Stream};
    let plain = Stream::plain(Access::plain(Pattern::Random, 4096, 100), 1, 1, "sync");
    let interval = |time_ms: u64, steady_ms: Option<u64>, least_ms: Option<u64>, stretches_ms: &[u64]| {
        let ns = |ms: u64| ms * 1_000_000;
        let steady = steady_ms.map(|every_ms| Steady {
            quantity: Quantity::Iops,
            slope: false,
            limit: 20.0,
            percent: true,
            window_ns: ns(every_ms) * 3,
            after_ns: 0,
            every_ns: ns(every_ms),
        });
        let least = PerKind { read: 1, write: 1, trim: 1 };
        let min_rate = least_ms.map(|ms| MinRate { quantity: Quantity::Iops, least, every_ns: ns(ms) });
        let mut streams = vec![Stream { steady, min_rate, ..plain.clone() }];
        streams
            .extend(stretches_ms.iter().map(|ms| Stream { each_worker_ns: Some(ns(*ms)), ..plain.clone() }));
        interval_ns(&Phase { warmup_ns: 0, time_ns: ns(time_ms), cooldown_ns: 0, streams }) / 1_000_000
    };
    // A hundredth of the time, from 10 ms to 1 s.
    assert_eq!([500, 30_000, 200_000].map(|ms| interval(ms, None, None, &[])), [10, 300, 1000]);
    // 300 ms are no whole part of a second, nor 70 of the tenth of it by which a least rate is told.
    assert_eq!(interval(30_000, Some(1000), None, &[]), 250);
    assert_eq!(interval(7_000, None, Some(1000), &[]), 50);
    assert_eq!(interval(30_000, Some(3000), Some(10_000), &[]), 250);
    assert_eq!(interval(90_000, None, None, &[500]), 500);
    assert_eq!(interval(90_000, Some(1500), None, &[1000, 700]), 100);
    // No interval is as short as that.
    assert_eq!(interval(30_000, Some(1), None, &[]), 10);
    assert_eq!(interval(30_000, Some(1000), None, &[333]), 10);
    // Totals alone have no stretches.
    assert_eq!(interval(30_000, None, None, &[0]), 300);
}
