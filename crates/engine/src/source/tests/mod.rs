//! Tests of whole lanes, as workers compile them.

mod diskspd;
#[cfg(test)]
pub(super) mod goodness_of_fit;
mod orders;
mod passes;
mod property;
mod refusals;
mod runs;
mod times;
mod turns;
mod zones;

use super::{LOOK_AHEAD, Op, Source, StreamState, WorkerContext, lanes};
use model::job::{
    Access, Arrivals, Clones, Flush, Kind, Order, Pace, Pattern, Positions, Sharing, Sizes, Start, Steps,
    Stream, SyncCall, Zone, ZoneSize,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Operations of 4 KiB in a hundred blocks from byte 8192 on.
fn stream(order: Order) -> Stream {
    let mut access = Access::plain(Pattern::Random, 4096, 100);
    access.lines[0].order = order;
    let access = Access { offset_bytes: 8192, span_bytes: 100 * 4096, ..access };
    Stream::plain(access, 1, 1, "null")
}

/// Operations of 4 KiB from byte 0 to the end of the target.
fn endless(order: Order) -> Stream {
    let mut stream = stream(order);
    stream.access.offset_bytes = 0;
    stream.access.span_bytes = u64::MAX;
    stream
}

/// Sets all sizes of the first line.
fn resize(stream: &mut Stream, sizes: &Sizes) {
    let line_sizes = &mut stream.access.lines[0].sizes;
    (line_sizes.read, line_sizes.write, line_sizes.trim) = (sizes.clone(), sizes.clone(), sizes.clone());
}

fn worker_context(worker: u32, workers: u32) -> WorkerContext {
    WorkerContext {
        worker,
        workers,
        seed: 7 + u64::from(worker),
        stream_state: Arc::new(StreamState::new(3)),
    }
}

/// The lanes of a worker on targets of 1 MiB.
fn compiled(stream: &Stream, context: &WorkerContext) -> Vec<Box<dyn Source>> {
    let count = stream.targets.len();
    lanes(stream, &vec![1 << 20; count], &vec![512; count], context).unwrap_or_else(|e| panic!("{e}"))
}

/// Draws the next operations in batches, like the hot loop.
fn taken(source: &mut dyn Source, count: usize) -> Vec<Op> {
    let mut ops = vec![Op::NONE; count];
    let ahead = source.look_ahead();
    assert!((1..=LOOK_AHEAD).contains(&ahead));
    ops.chunks_mut(ahead).for_each(|c| source.refill(c));
    ops
}

/// Operations of the only worker's first lane.
fn drawn(stream: &Stream, count: usize) -> Vec<Op> {
    taken(&mut *compiled(stream, &worker_context(0, 1))[0], count)
}

/// How often each block of 4 KiB from byte 8192 on was drawn.
fn hits(ops: &[Op], blocks: usize) -> Vec<u64> {
    let mut hits = vec![0; blocks];
    for op in ops {
        assert!((op.offset - 8192).is_multiple_of(4096));
        hits[(op.offset - 8192) as usize / 4096] += 1;
    }
    hits
}

/// Counts of each value.
fn counts<T: std::hash::Hash + Eq>(values: impl Iterator<Item = T>) -> HashMap<T, usize> {
    let mut counts = HashMap::new();
    values.for_each(|v| *counts.entry(v).or_default() += 1);
    counts
}
