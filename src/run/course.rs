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

/// Length of the intervals of a phase: no longer than what ends a stream looks at.
pub(super) fn interval_ns(phase: &Phase) -> u64 {
    let watched = phase.streams.iter().filter_map(ends::every_ns).min().unwrap_or(u64::MAX);
    // What a capture takes is known, and not when it has to end.
    let replayed = phase.streams.iter().filter_map(|s| s.replay.as_ref()?.expected_ns()).min();
    let time_ns = phase.time_ns.min(replayed.unwrap_or(u64::MAX));
    let interval = (time_ns / 100).min(watched).clamp(INTERVAL_NS.0, INTERVAL_NS.1);
    // Stretches of a worker are whole numbers of them, unless each operation is told apart.
    let by_block = phase.streams.iter().filter(|s| s.apart_ns().is_none());
    let stretch = by_block.filter_map(|s| s.each_worker_ns).filter(|ns| *ns > 0).min();
    stretch.map_or(interval, |ns| ns / ns.div_ceil(interval))
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
