//! The part of a target that a worker has to itself, among the workers of all hosts.
//!
//! For: any access that is drawn in the worker's own blocks as if they were one span, and found in the target block by block. Not for:
//! where blocks lie (`model::job::OwnBlocks`), nor spans that are stored in pieces (`placed`).

use super::span::Target;
use super::{Op, Share, Source, lanes};
use model::job::{Access, Clones, OwnBlocks, Shared, Stream};
use model::units::show_bytes;

/// A source whose offsets count through the blocks of one task.
struct Own {
    inner: Box<dyn Source>,
    blocks: OwnBlocks,
    /// First byte of the span that is shared.
    base: u64,
}

/// The blocks of a task of so many in a span of so many bytes of a stream's target.
///
/// # Errors
/// A sentence for people where there is not a block for each task, or operations do not fit into blocks.
pub fn own_blocks(
    (stream, shared): (&Stream, Shared),
    span_bytes: u64,
    (task, tasks): (u64, u64),
) -> Result<OwnBlocks, String> {
    let access = &stream.access;
    let transfer = u64::from(access.largest_bytes());
    let layout = shared.layout.describe();
    let of_one_size = access.smallest_bytes() == access.largest_bytes()
        && access
            .lines
            .iter()
            .all(|l| l.reply_bytes == 0 && (l.align_bytes == 0 || l.align_bytes.is_multiple_of(transfer)));
    if let Some(blocks) = OwnBlocks::for_task(shared.layout, span_bytes, transfer, (task, tasks)) {
        // One that is cut off by the end of a block would reach into that of somebody else.
        if blocks.segments > 1 && !(of_one_size && blocks.block_bytes.is_multiple_of(transfer)) {
            return Err(format!(
                "a file that is shared {layout} has blocks of {}, each of which takes a whole number of operations of one size; use one --bs that divides it, without --align, or --shared segmented",
                show_bytes(blocks.block_bytes)
            ));
        }
        return Ok(blocks);
    }
    Err(format!(
        "{} shared {layout} have no block for each of {tasks} workers, with operations of {}; use a larger --size, or fewer workers",
        show_bytes(span_bytes),
        show_bytes(transfer)
    ))
}

/// The lanes of one worker, which is this task of so many on all hosts: what [`lanes`] gives, in its part of a file that they share.
///
/// # Errors
/// As [`lanes`], and where it has no block of its own.
pub fn lanes_of_task(
    stream: &Stream,
    target_bytes: &[u64],
    target_align: &[u32],
    (share, who): (&Share, (u64, u64)),
) -> Result<Vec<Box<dyn Source>>, String> {
    match (stream.shared, target_bytes, target_align) {
        (Some(shared), [bytes], [align]) => shared_lanes((stream, shared), (*bytes, *align), share, who),
        _ => lanes(stream, target_bytes, target_align, share),
    }
}

fn shared_lanes(
    (stream, shared): (&Stream, Shared),
    (bytes, align): (u64, u32),
    share: &Share,
    who: (u64, u64),
) -> Result<Vec<Box<dyn Source>>, String> {
    let access = &stream.access;
    let target = Target { index: 0, bytes, align: u64::from(align.max(1)) };
    let span = target.span(access.offset_bytes, access.span_bytes, access.largest_bytes().into())?;
    let blocks = own_blocks((stream, shared), span.bytes, who)?;
    if !blocks.block_bytes.is_multiple_of(target.align) {
        return Err(target.misfit("a block of each worker", blocks.block_bytes));
    }
    let own = blocks.bytes();
    let alone = Stream {
        // Its part is all there is for it, whoever else is on the host.
        clones: Some(Clones::Same),
        shared: None,
        access: Access { offset_bytes: 0, span_bytes: own, ..access.clone() },
        ..stream.clone()
    };
    let lanes = lanes(&alone, &[own], &[align], share)?;
    let placed = |inner| Box::new(Own { inner, blocks, base: span.base }) as Box<dyn Source>;
    Ok(lanes.into_iter().map(placed).collect())
}

impl Own {
    #[inline]
    fn place(&self, op: &mut Op) {
        if op.length > 0 {
            op.offset = self.base + self.blocks.place(op.offset);
        }
    }
}

impl Source for Own {
    fn refill(&mut self, ops: &mut [Op]) {
        self.inner.refill(ops);
        for op in ops {
            self.place(op);
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }

    fn hold(&self) -> Option<u64> {
        self.inner.hold()
    }

    fn choose(&mut self, now_ns: u64) -> super::Choice {
        match self.inner.choose(now_ns) {
            super::Choice::Now(mut op, due_ns) => {
                self.place(&mut op);
                super::Choice::Now(op, due_ns)
            }
            other => other,
        }
    }

    fn completed(&mut self, op: &Op, now_ns: u64) {
        self.inner.completed(op, now_ns);
    }

    fn begin_call(&mut self) {
        self.inner.begin_call();
    }

    fn evict(&self, file: u16) {
        self.inner.evict(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Common;
    use model::job::{Layout, Order, PerKind, Sizes, Steps};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// What a worker of one of two hosts with two workers each touches.
    fn touched(order: &Order, layout: Layout, (host, worker): (u64, u32), count: usize) -> Vec<u64> {
        let access = Access::plain(model::job::Pattern::Sequential, 4096, 100);
        let mut stream = Stream::plain(access, 1, 2, "sync");
        stream.access.lines[0].order = order.clone();
        (stream.access.offset_bytes, stream.access.span_bytes) = (8192, 1 << 20);
        let shared = Shared { layout, passes: None };
        let share = Share { worker, workers: 2, seed: u64::from(worker), common: Arc::new(Common::new(1)) };
        let who = (host * 2 + u64::from(worker), 4);
        let mut lanes = shared_lanes((&stream, shared), (2 << 20, 512), &share, who)
            .unwrap_or_else(|why| panic!("{why}"));
        let mut ops = vec![Op::NONE; count];
        lanes[0].refill(&mut ops);
        ops.iter().map(|op| op.offset).collect()
    }

    #[test]
    fn workers_of_all_hosts_touch_each_block_of_the_span_once() {
        // 256 blocks of the span are 64 for each.
        for layout in [Layout::Segmented, Layout::Strided, Layout::Blocks(16_384)] {
            for order in [Order::Sequential(Steps::default()), Order::Once] {
                let mut all = BTreeSet::new();
                for who in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let own = touched(&order, layout, who, 64);
                    assert_eq!(all.intersection(&own.iter().copied().collect()).count(), 0, "{layout:?}");
                    all.extend(own);
                }
                let span: BTreeSet<u64> = (0..256).map(|block| 8192 + block * 4096).collect();
                assert_eq!(all, span, "{layout:?} {order:?}");
            }
        }
    }

    #[test]
    fn in_order_it_is_as_ior_goes_and_around_in_its_own_part() {
        let order = Order::Sequential(Steps::default());
        let at = |layout, who| -> Vec<u64> {
            touched(&order, layout, who, 66).into_iter().map(|at| (at - 8192) / 4096).collect()
        };
        let strided: Vec<u64> = (0..66).map(|n| 2 + n % 64 * 4).collect();
        assert_eq!(at(Layout::Strided, (1, 0)), strided);
        let segmented: Vec<u64> = (0..66).map(|n| 192 + n % 64).collect();
        assert_eq!(at(Layout::Segmented, (1, 1)), segmented);
        assert_eq!(at(Layout::Blocks(8192), (0, 1))[..5], [2, 3, 10, 11, 18]);
    }

    #[test]
    fn random_operations_stay_in_the_part_of_their_worker() {
        for layout in [Layout::Segmented, Layout::Strided] {
            let own: BTreeSet<u64> = touched(&Order::Once, layout, (1, 0), 64).into_iter().collect();
            assert!(touched(&Order::Random, layout, (1, 0), 5_000).iter().all(|at| own.contains(at)));
        }
    }

    #[test]
    fn operations_that_would_reach_into_the_block_of_another_are_refused() {
        let mut stream =
            Stream::plain(Access::plain(model::job::Pattern::Sequential, 4096, 100), 1, 1, "sync");
        let ask = |stream: &Stream, layout| {
            own_blocks((stream, Shared { layout, passes: None }), 1 << 20, (0, 2)).err().unwrap_or_default()
        };
        assert!(ask(&stream, Layout::Blocks(6_000)).contains("a whole number of operations"));
        assert!(ask(&stream, Layout::Blocks(1 << 20)).contains("no block for each of 2 workers"));
        stream.access.lines[0].sizes = PerKind::all(Sizes::Range(4096, 8192));
        assert!(ask(&stream, Layout::Strided).contains("one --bs"));
        assert_eq!(ask(&stream, Layout::Segmented), "");
    }
}
