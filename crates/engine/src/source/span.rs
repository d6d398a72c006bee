//! The part of a target that an access uses.
//!
//! - [`Span`] and [`Target`]: a range of bytes with a grid.
//! - [`Pieces`]: a span that is stored in several pieces of a target.
//! - [`own_blocks`], [`lanes_of_task`]: the blocks of one worker among the workers of all hosts (`model::job::OwnBlocks`). The source draws
//!   the access as if these blocks were one span.

use crate::source::{Choice, Op, Source, WorkerContext, lanes};
use model::job::{Access, Clones, OwnBlocks, Shared, Stream, TaskNumber};
use model::units::show_bytes;
use std::ops::Range;

/// Bytes of a target that an access may use. Offsets are relative to `base` and multiples of `align`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Offset of the first byte on the target.
    pub(super) base: u64,
    /// Length in bytes.
    pub(super) bytes: u64,
    /// Distance between grid points; at least 1.
    pub(super) align: u64,
}

impl Span {
    /// Rounds down to the grid.
    #[inline]
    pub(super) fn down(self, bytes: u64) -> u64 {
        if self.align.is_power_of_two() { bytes & !(self.align - 1) } else { bytes - bytes % self.align }
    }

    /// Rounds up to the grid, with saturation.
    #[inline]
    pub(super) fn up(self, bytes: u64) -> u64 {
        bytes.checked_add(self.align - 1).map_or(u64::MAX, |b| self.down(b))
    }

    /// Returns the last offset at which an operation of a size fits, ignoring the grid.
    #[inline]
    pub(super) fn room(self, size: u64) -> u64 {
        self.bytes.saturating_sub(size)
    }

    /// Returns the number of grid points at which an operation of a size fits; at least 1.
    #[inline]
    pub(super) fn starts(self, size: u64) -> u64 {
        if self.align.is_power_of_two() {
            // The addition saturates for 2^64 - 1 bytes, alignment 1 and size 1.
            (self.room(size) >> self.align.trailing_zeros()).saturating_add(1)
        } else {
            self.room(size) / self.align + 1
        }
    }
}

/// A target of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// Index of the target in the stream, and of the target's file in the worker's files.
    pub(super) index: usize,
    /// Size of the target in bytes.
    pub(super) bytes: u64,
    /// Alignment of offsets and lengths; at least 1.
    pub(super) align: u64,
}

impl Target {
    /// Returns the part of the span that is on the target, with a grid point at every byte. Fails if
    /// operations of `largest` bytes do not fit, or if the offset is not aligned.
    pub(super) fn span(&self, offset_bytes: u64, span_bytes: u64, largest: u64) -> Result<Span, String> {
        let bytes = span_bytes.min(self.bytes.saturating_sub(offset_bytes));
        if largest > bytes {
            return Err(format!(
                "no block of {} fits into the {} that begin at byte {offset_bytes} of target {}; \
                 choose smaller blocks, a larger target or span, or another offset",
                show_bytes(largest),
                show_bytes(bytes),
                self.number()
            ));
        }
        if !offset_bytes.is_multiple_of(self.align) {
            return Err(self.misfit("an offset", offset_bytes));
        }
        Ok(Span { base: offset_bytes, bytes, align: 1 })
    }

    /// Builds the error for a number that violates the alignment.
    pub(super) fn misfit(&self, what: &str, bytes: u64) -> String {
        format!(
            "target {} needs multiples of {} bytes, and {what} of {bytes} bytes is not a multiple; \
             choose a multiple, or type --cache buffered",
            self.number(),
            self.align
        )
    }

    /// Returns the place of the target among those of the stream, as messages count them: from 1.
    pub(super) fn number(&self) -> usize {
        self.index + 1
    }
}

/// Pieces of a target. The length of each is a multiple of the size of the largest operation, so that no operation crosses two pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// Start of each piece in the concatenation of all pieces.
    starts: Vec<u64>,
    places: Vec<Range<u64>>,
    bytes: u64,
}

impl Pieces {
    /// Creates pieces for operations of up to `largest` bytes.
    pub fn new(places: impl IntoIterator<Item = Range<u64>>, largest: u32) -> Self {
        let mut out = Self::default();
        let largest = u64::from(largest.max(1));
        for place in places {
            let bytes = place.end.saturating_sub(place.start) / largest * largest;
            if bytes > 0 {
                out.starts.push(out.bytes);
                out.places.push(place.start..place.start + bytes);
                out.bytes += bytes;
            }
        }
        out
    }

    /// Returns the total size of all pieces in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the largest piece; `None` without pieces.
    pub fn largest(&self) -> Option<Range<u64>> {
        self.places.iter().max_by_key(|p| p.end - p.start).cloned()
    }

    /// Converts an offset in the concatenated pieces to an offset on the target.
    fn place(&self, offset: u64, length: u64) -> u64 {
        let at = self.starts.partition_point(|s| *s <= offset).saturating_sub(1);
        let (Some(start), Some(place)) = (self.starts.get(at), self.places.get(at)) else { return offset };
        // If an operation would cross into the next piece, move it back to the end of its own piece.
        let room = (place.end - place.start).saturating_sub(length);
        place.start + (offset - start).min(room)
    }
}

/// A source that converts the offsets of another source to offsets on the target.
struct Placed<P> {
    inner: Box<dyn Source>,
    /// Returns the offset of an operation on the target.
    place: P,
}

impl<P: Fn(&Op) -> u64> Placed<P> {
    #[inline]
    fn place(&self, op: &mut Op) {
        if op.length > 0 {
            op.offset = (self.place)(op);
        }
    }
}

impl<P: Fn(&Op) -> u64 + Send> Source for Placed<P> {
    fn refill(&mut self, ops: &mut [Op]) {
        self.inner.refill(ops);
        for op in ops {
            self.place(op);
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }

    fn admit_or_wait_ns(&self) -> Option<u64> {
        self.inner.admit_or_wait_ns()
    }

    fn begin_call(&mut self) {
        self.inner.begin_call();
    }

    fn choose(&mut self, now_ns: u64) -> Choice {
        let mut choice = self.inner.choose(now_ns);
        if let Choice::Now(op, _) = &mut choice {
            self.place(op);
        }
        choice
    }

    fn completed(&mut self, op: &Op, now_ns: u64) {
        self.inner.completed(op, now_ns);
    }

    fn evict(&self, file: u16) {
        self.inner.evict(file);
    }
}

/// Wraps a source whose offsets are in the concatenated pieces of a target. The result has the
/// offsets on the target.
pub fn in_pieces(inner: Box<dyn Source>, pieces: Pieces) -> Box<dyn Source> {
    Box::new(Placed { inner, place: move |op: &Op| pieces.place(op.offset, op.length.into()) })
}

/// Returns the blocks of one worker in a span of a stream's target.
///
/// # Errors
/// A message if there is not a block for each worker, or operations do not fit into blocks.
pub fn own_blocks(
    stream: &Stream,
    shared: Shared,
    span_bytes: u64,
    task: TaskNumber,
) -> Result<OwnBlocks, String> {
    let access = &stream.access;
    let transfer = u64::from(access.largest_bytes());
    let layout = shared.layout.describe();
    let has_one_size = access.smallest_bytes() == access.largest_bytes()
        && access
            .lines
            .iter()
            .all(|l| l.reply_bytes == 0 && (l.align_bytes == 0 || l.align_bytes.is_multiple_of(transfer)));
    if let Some(blocks) = OwnBlocks::for_task(shared.layout, span_bytes, transfer, task) {
        // If an operation could cross the end of a block, it would enter the block of another worker.
        if blocks.segments > 1 && !(has_one_size && blocks.block_bytes.is_multiple_of(transfer)) {
            return Err(format!(
                "with --shared {layout} a file has blocks of {}, and each block must hold a whole number of operations of one size; use one --bs that divides the block, without --align, or type --shared segmented",
                show_bytes(blocks.block_bytes)
            ));
        }
        return Ok(blocks);
    }
    Err(format!(
        "with --shared {layout}, {} cannot give each of {} workers a block for operations of {}; use a larger --size, or fewer workers",
        show_bytes(span_bytes),
        task.count,
        show_bytes(transfer)
    ))
}

/// Builds the lanes of one worker like [`lanes`]. If the workers of all hosts share one file
/// (`stream.shared`), the lanes stay in the worker's own blocks of it. `task` is the worker's
/// place among the workers of all hosts.
///
/// # Errors
/// As [`lanes`], or if the worker has no block.
pub fn lanes_of_task(
    stream: &Stream,
    target_bytes: &[u64],
    target_align: &[u32],
    context: &WorkerContext,
    task: TaskNumber,
) -> Result<Vec<Box<dyn Source>>, String> {
    let (Some(shared), [bytes], [align]) = (stream.shared, target_bytes, target_align) else {
        return lanes(stream, target_bytes, target_align, context);
    };
    let (bytes, align) = (*bytes, *align);
    let access = &stream.access;
    let target = Target { index: 0, bytes, align: u64::from(align.max(1)) };
    let span = target.span(access.offset_bytes, access.span_bytes, access.largest_bytes().into())?;
    let blocks = own_blocks(stream, shared, span.bytes, task)?;
    if !blocks.block_bytes.is_multiple_of(target.align) {
        return Err(target.misfit("a block of each worker", blocks.block_bytes));
    }
    let own = blocks.bytes();
    let alone = Stream {
        // The worker uses only its own part, independent of other workers on the host.
        clones: Some(Clones::Same),
        shared: None,
        access: Access { offset_bytes: 0, span_bytes: own, ..access.clone() },
        ..stream.clone()
    };
    let lanes = lanes(&alone, &[own], &[align], context)?;
    let place = move |op: &Op| span.base + blocks.place(op.offset);
    Ok(lanes.into_iter().map(|inner| Box::new(Placed { inner, place }) as Box<dyn Source>).collect())
}

#[test]
fn every_operation_lies_in_one_piece() {
    let pieces = Pieces::new([1_000..1_250, 5_000..5_099, 9_000..9_300], 100);
    assert_eq!((pieces.bytes(), pieces.largest()), (500, Some(9_000..9_300)));
    let at = |offset| pieces.place(offset, 100);
    assert_eq!([0, 100, 200, 300, 400].map(at), [1_000, 1_100, 9_000, 9_100, 9_200]);
    // Offsets off the grid, as with drawn sizes, are moved inside their piece.
    assert_eq!([150, 450].map(at), [1_100, 9_200]);
    assert_eq!(Pieces::new(std::iter::once(7..8), 100).largest(), None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::StreamState;
    use model::job::{Layout, Order, PerKind, Sizes, Steps};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// Returns the offsets of a worker on one of two hosts with two workers each.
    fn offsets(order: &Order, layout: Layout, host: u64, worker: u32, count: usize) -> Vec<u64> {
        let access = Access::plain(model::job::Pattern::Sequential, 4096, 100);
        let mut stream = Stream::plain(access, 1, 2, "sync");
        stream.access.lines[0].order = order.clone();
        (stream.access.offset_bytes, stream.access.span_bytes) = (8192, 1 << 20);
        stream.shared = Some(Shared { layout, passes: None });
        let context = WorkerContext {
            worker,
            workers: 2,
            seed: u64::from(worker),
            stream_state: Arc::new(StreamState::new(1)),
        };
        let task = TaskNumber { index: host * 2 + u64::from(worker), count: 4 };
        let mut lanes =
            lanes_of_task(&stream, &[2 << 20], &[512], &context, task).unwrap_or_else(|why| panic!("{why}"));
        let mut ops = vec![Op::NONE; count];
        lanes[0].refill(&mut ops);
        ops.iter().map(|op| op.offset).collect()
    }

    #[test]
    fn workers_of_all_hosts_use_each_block_of_the_span_once() {
        // The span has 256 blocks, 64 for each worker.
        for layout in [Layout::Segmented, Layout::Strided, Layout::Blocks(16_384)] {
            for order in [Order::Sequential(Steps::default()), Order::Once] {
                let mut all = BTreeSet::new();
                for (host, worker) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let own = offsets(&order, layout, host, worker, 64);
                    assert_eq!(all.intersection(&own.iter().copied().collect()).count(), 0, "{layout:?}");
                    all.extend(own);
                }
                let span: BTreeSet<u64> = (0..256).map(|block| 8192 + block * 4096).collect();
                assert_eq!(all, span, "{layout:?} {order:?}");
            }
        }
    }

    #[test]
    fn sequential_order_matches_ior_and_wraps_in_its_own_blocks() {
        let order = Order::Sequential(Steps::default());
        let blocks = |layout, host, worker| -> Vec<u64> {
            let own = offsets(&order, layout, host, worker, 66);
            own.into_iter().map(|offset| (offset - 8192) / 4096).collect()
        };
        let strided: Vec<u64> = (0..66).map(|n| 2 + n % 64 * 4).collect();
        assert_eq!(blocks(Layout::Strided, 1, 0), strided);
        let segmented: Vec<u64> = (0..66).map(|n| 192 + n % 64).collect();
        assert_eq!(blocks(Layout::Segmented, 1, 1), segmented);
        assert_eq!(blocks(Layout::Blocks(8192), 0, 1)[..5], [2, 3, 10, 11, 18]);
    }

    #[test]
    fn random_operations_stay_in_the_blocks_of_their_worker() {
        for layout in [Layout::Segmented, Layout::Strided] {
            let own: BTreeSet<u64> = offsets(&Order::Once, layout, 1, 0, 64).into_iter().collect();
            assert!(offsets(&Order::Random, layout, 1, 0, 5_000).iter().all(|at| own.contains(at)));
        }
    }

    #[test]
    fn operations_that_cross_into_another_block_are_refused() {
        let mut stream =
            Stream::plain(Access::plain(model::job::Pattern::Sequential, 4096, 100), 1, 1, "sync");
        let ask = |stream: &Stream, layout| {
            own_blocks(stream, Shared { layout, passes: None }, 1 << 20, TaskNumber { index: 0, count: 2 })
                .err()
                .unwrap_or_default()
        };
        assert!(ask(&stream, Layout::Blocks(6_000)).contains("a whole number of operations"));
        assert!(ask(&stream, Layout::Blocks(1 << 20)).contains("cannot give each of 2 workers a block"));
        stream.access.lines[0].sizes = PerKind::all(Sizes::Range(4096, 8192));
        assert!(ask(&stream, Layout::Strided).contains("one --bs"));
        assert_eq!(ask(&stream, Layout::Segmented), "");
    }
}
