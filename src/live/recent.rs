//! Recent: what workers handed in since it was last shown.
//!
//! For: rate, depth and latencies as they come. Not for: totals and rows of the record ([`crate::collector`]).
//!
//! Workers hand their blocks in at moments of their own, so each has a rate of its own, over the time that its blocks cover, and
//! these are added up.

use analysis::under_way::{SoFar, latencies};
use engine::tally::Block;
use engine::workers::Who;
use model::histogram::Histogram;
use model::job::Kind;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often it is shown at most.
const EVERY: Duration = Duration::from_millis(500);
/// Time behind the end of an interval after which a worker that has handed nothing in has done nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// What was handed in and not shown yet.
pub(crate) struct Recent {
    patience: Duration,
    workers: BTreeMap<u32, Hand>,
    latency: Histogram,
    so_far: SoFar,
    shown: Instant,
}

/// One worker.
struct Hand {
    /// Of the blocks not shown yet.
    open: Sum,
    /// Of those shown last.
    rate: Rate,
    heard: Instant,
}

#[derive(Default)]
struct Sum {
    ops: u64,
    bytes: u64,
    depth_ns: u64,
    ns: u64,
}

/// What is done in a second, and in flight meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rate {
    /// Operations per second.
    pub(crate) iops: f64,
    /// Bytes per second.
    pub(crate) bytes_per_s: f64,
    /// Mean operations in flight.
    pub(crate) depth: f64,
}

/// What is shown of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pulse {
    /// `None` where no worker has handed anything in.
    pub(crate) rate: Option<Rate>,
    /// p50, p99 and maximum in ns of what was handed in; `None` where too few operations support it.
    pub(crate) latency_ns: [Option<u64>; 3],
    /// Whether anything was handed in at all: an interval of workers may be longer than that of the view.
    pub(crate) is_new: bool,
    /// All since the run began.
    pub(crate) so_far: SoFar,
}

impl Recent {
    /// Of a run whose workers hand in blocks of this length.
    pub(crate) fn new(interval_ns: u64) -> Self {
        Self {
            patience: Duration::from_nanos(interval_ns) + PATIENCE,
            workers: BTreeMap::new(),
            latency: Histogram::new(),
            so_far: SoFar::default(),
            shown: Instant::now(),
        }
    }

    /// Takes a block.
    pub(crate) fn add(&mut self, who: Who, block: &Block) {
        let now = Instant::now();
        let hand = self.workers.entry(who.worker).or_insert_with(|| Hand {
            open: Sum::default(),
            rate: Rate::default(),
            heard: now,
        });
        hand.heard = now;
        hand.open.ns += block.end_ns.saturating_sub(block.start_ns);
        hand.open.depth_ns += block.depth_ns;
        let tallies = block.lanes.iter().flat_map(|lane| Kind::ALL.into_iter().zip(&lane.kinds));
        // As in the rate of a run, flushes are no operations of their own.
        for (kind, tally) in tallies.filter(|(kind, _)| *kind != Kind::Sync) {
            hand.open.ops += tally.latency.count();
            hand.open.bytes += tally.bytes;
            self.so_far.ops += tally.latency.count();
            self.so_far.bytes[kind as usize] += tally.bytes;
            self.latency.merge(&tally.latency);
        }
    }

    /// What is to be shown now; `None` where it is too soon.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Pulse> {
        if now.duration_since(self.shown) < EVERY {
            return None;
        }
        self.shown = now;
        let is_new = !self.latency.is_empty();
        let mut all = Rate::default();
        for hand in self.workers.values_mut() {
            let Sum { ops, bytes, depth_ns, ns } = std::mem::take(&mut hand.open);
            if ns > 0 {
                let per_s = |n: u64| n as f64 * 1e9 / ns as f64;
                hand.rate =
                    Rate { iops: per_s(ops), bytes_per_s: per_s(bytes), depth: depth_ns as f64 / ns as f64 };
            } else if now.duration_since(hand.heard) > self.patience {
                hand.rate = Rate::default();
            }
            all.iops += hand.rate.iops;
            all.bytes_per_s += hand.rate.bytes_per_s;
            all.depth += hand.rate.depth;
        }
        let latency_ns = latencies(&self.latency);
        self.latency.clear();
        let rate = (!self.workers.is_empty()).then_some(all);
        Some(Pulse { rate, latency_ns, is_new, so_far: self.so_far.clone() })
    }
}

#[cfg(test)]
fn block(ms: u64, ops: u64) -> Block {
    let mut block = *Block::new(1, false);
    (block.start_ns, block.end_ns, block.depth_ns) = (0, ms * 1_000_000, 4 * ms * 1_000_000);
    for _ in 0..ops {
        block.lanes[0].kinds[0].latency.record(1000);
        block.lanes[0].kinds[0].bytes += 4096;
    }
    block
}

#[test]
fn each_worker_counts_by_its_own_time_and_nothing_is_no_zero() {
    let mut recent = Recent::new(2_000_000_000);
    let begun = recent.shown;
    assert_eq!(recent.take(begun), None);
    let first = recent.take(begun + EVERY);
    assert_eq!(first.map(|p| (p.rate, p.latency_ns, p.is_new)), Some((None, [None; 3], false)));
    recent.add(Who { worker: 0, stream: 0 }, &block(100, 100));
    recent.add(Who { worker: 1, stream: 0 }, &block(200, 100));
    let pulse = recent.take(begun + 2 * EVERY).unwrap_or_default();
    assert_eq!(pulse.rate, Some(Rate { iops: 1_500.0, bytes_per_s: 1_500.0 * 4096.0, depth: 8.0 }));
    assert_eq!((pulse.latency_ns[0], pulse.latency_ns[2], pulse.so_far.ops), (Some(1000), Some(1000), 200));
    // Until the next blocks come they go on as before; one that is silent for long does nothing.
    let next = recent.take(begun + 3 * EVERY).unwrap_or_default();
    assert_eq!((next.rate, next.is_new), (pulse.rate, false));
    let silent = recent.take(begun + 20 * EVERY).unwrap_or_default();
    assert_eq!((silent.rate, silent.latency_ns), (Some(Rate::default()), [None; 3]));
}
