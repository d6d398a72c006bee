//! Sequential order: from the place of the last operation to the next.
//!
//! For: strides, holes, direction, starts, the way around at the end. Not for: random places.
//!
//! The next operation begins one stride behind the beginning of the last one, or at the end of the last one where there is
//! no stride; behind a hole, if there are any; rounded up to the grid. Where it would pass the end of the span it begins
//! again: as in diskspd at the first place that is a whole number of steps from where this worker began, so that each pass
//! visits the same places (base 1000, blocks of 1000, stride 500, target of 3000 bytes: 1000, 1500, 2000, 1000, ...). Where
//! sizes are drawn without a stride there are no such places: the last ones of a pass are drawn until they fit what is left,
//! and it begins again at the first byte. Backwards is the mirror image: steps are counted from the last place that a step
//! from the first byte reaches.

use super::common::Head;
use super::span::Span;
use model::job::{Start, Steps};
use std::sync::Arc;

/// Where the last operation of a lane on a target was, whatever its order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    start: u64,
    end: u64,
}

impl Last {
    /// Before the first.
    pub(super) const NONE: Self = Self { start: Head::FRESH, end: Head::FRESH };

    /// Whether there was none.
    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.start == Head::FRESH
    }

    /// Whether it begins no lower than `start`, so that a walk forwards to `start` has begun again.
    pub(super) fn is_after(self, start: u64) -> bool {
        !self.is_none() && self.start >= start
    }

    /// An operation that begins `start` bytes into the span.
    #[inline]
    pub(super) fn at(start: u64, size: u64) -> Self {
        Self { start, end: start + size }
    }
}

/// The sequential order of one line on one target.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    span: Span,
    stride: u64,
    hole: u64,
    backwards: bool,
    /// From one place to the next where that is fixed, else the alignment.
    lattice: u64,
    /// From the edge to where this worker begins.
    first: u64,
    /// From the edge to where it begins again.
    again: u64,
    head: Option<Arc<Head>>,
}

/// A walk that needs three numbers: all of one size, forwards, by oneself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Straight {
    pub(super) next: u64,
    pub(super) step: u64,
    pub(super) room: u64,
    pub(super) again: u64,
}

impl Walk {
    /// The walk of worker `worker` of `workers`. `fixed` says whether all sizes are `least`; `head` is the position that
    /// workers share where they do.
    pub(super) fn new(
        span: Span,
        steps: Steps,
        least: u64,
        fixed: bool,
        (worker, workers): (u32, u32),
        head: impl FnOnce() -> Arc<Head>,
    ) -> Self {
        let Steps { stride_bytes: stride, hole_bytes: hole, backwards, start } = steps;
        let step = span.up((if stride > 0 { stride } else { least }).saturating_add(hole)).max(1);
        let lattice = if fixed || stride > 0 { step } else { span.align };
        let places = u128::from(span.room(least) / step + 1);
        let first = match start {
            Start::Spread => (places * u128::from(worker) / u128::from(workers)) as u64 * step,
            Start::Same | Start::Interlocked => 0,
            Start::Every(bytes) => {
                let far = u128::from(bytes) * u128::from(worker) % u128::from(span.bytes.max(1));
                span.down(far as u64)
            }
        };
        let again = first % lattice;
        let head = (start == Start::Interlocked && workers > 1).then(head);
        Self { span, stride, hole, backwards, lattice, first, again, head }
    }

    /// Whether workers share the position.
    pub(super) fn is_shared(&self) -> bool {
        self.head.is_some()
    }

    /// Bytes between the next operation's first byte and the end of the span, where those are to be filled: forwards, without a
    /// stride, by one worker. Else all there are.
    #[inline]
    pub(super) fn left(&self, last: Last) -> u64 {
        let fills = self.head.is_none() && !self.backwards && self.stride == 0 && last.start != Head::FRESH;
        if !fills {
            return u64::MAX;
        }
        self.span.bytes.saturating_sub(self.span.up(last.end.saturating_add(self.hole)))
    }

    /// Where the next operation begins, counted from the span's first byte.
    #[inline]
    pub(super) fn next(&self, last: Last, size: u64) -> u64 {
        match &self.head {
            None => self.step(last, size),
            Some(head) => head.advance(|seen| {
                let start = self.step(Last { start: seen, end: seen }, size);
                // Only without a stride and forwards do steps count from the end.
                let from_end = self.stride == 0 && !self.backwards;
                (if from_end { start + size } else { start }, start)
            }),
        }
    }

    #[inline]
    fn step(&self, last: Last, size: u64) -> u64 {
        if last.start == Head::FRESH {
            return self.begin(self.first, size);
        }
        if self.backwards {
            let back = (if self.stride > 0 { self.stride } else { size }).saturating_add(self.hole);
            // A last operation of another line may lie where none of this size fits.
            let next = last.start.checked_sub(back).filter(|n| *n <= self.span.room(size));
            return next.map_or_else(|| self.begin(self.again, size), |n| self.span.down(n));
        }
        let from = if self.stride > 0 { last.start.saturating_add(self.stride) } else { last.end };
        let next = self.span.up(from.saturating_add(self.hole));
        if next <= self.span.room(size) { next } else { self.begin(self.again, size) }
    }

    /// The place `far` from the edge, or where that is too far for the size, the place nearest to the edge.
    #[cold]
    fn begin(&self, far: u64, size: u64) -> u64 {
        let room = self.span.room(size);
        let top = room - room % self.lattice;
        let edge = if self.backwards { top } else { room };
        let far = [far, self.again].into_iter().find(|f| *f <= edge).unwrap_or(0);
        if self.backwards { top - far } else { far }
    }

    /// This walk for operations of `size` bytes alone, in short; `None` where it goes backwards or shares its position.
    pub(super) fn straight(&self, size: u64) -> Option<Straight> {
        (!self.backwards && self.head.is_none()).then(|| Straight {
            next: self.begin(self.first, size),
            step: self.lattice,
            room: self.span.room(size),
            again: self.begin(self.again, size),
        })
    }
}

impl Straight {
    /// Where the next operation begins, counted from the span's first byte.
    #[inline]
    pub(super) fn take(&mut self) -> u64 {
        let now = self.next;
        // Never past the room, so this neither overflows nor underflows.
        self.next = if self.room - now >= self.step { now + self.step } else { self.again };
        now
    }
}

#[cfg(test)]
fn walked(span: Span, steps: Steps, sizes: &[u64], who: (u32, u32), count: usize) -> Vec<u64> {
    let (least, most) = (sizes.iter().min(), sizes.iter().max());
    let walk = Walk::new(span, steps, *least.unwrap_or(&1), least == most, who, || {
        super::common::Common::new(0).head(0)
    });
    let mut last = Last::NONE;
    let mut next = |size| {
        let start = walk.next(last, size);
        last = Last::at(start, size);
        span.base + start
    };
    let places: Vec<u64> = sizes.iter().cycle().take(count).map(|s| next(*s)).collect();
    if let Some(mut straight) = walk.straight(sizes[0]).filter(|_| least == most) {
        let short: Vec<u64> = (0..count).map(|_| span.base + straight.take()).collect();
        assert_eq!(short, places, "the short way goes elsewhere");
    }
    places
}

#[cfg(test)]
fn span(base: u64, bytes: u64, align: u64) -> Span {
    Span { base, bytes, align }
}

#[test]
fn strides_holes_and_ends_are_those_written_out() {
    let plain = Steps::default();
    let stride = |b| Steps { stride_bytes: b, ..plain };
    let hole = |b| Steps { hole_bytes: b, ..plain };
    assert_eq!(walked(span(1000, 2000, 1), stride(500), &[1000], (0, 1), 5), [1000, 1500, 2000, 1000, 1500]);
    assert_eq!(walked(span(0, 10, 1), plain, &[4], (0, 1), 4), [0, 4, 0, 4]);
    assert_eq!(walked(span(0, 40, 1), hole(6), &[4], (0, 1), 5), [0, 10, 20, 30, 0]);
    assert_eq!(
        walked(span(0, 40, 1), Steps { hole_bytes: 1, ..stride(9) }, &[4], (0, 1), 5),
        [0, 10, 20, 30, 0]
    );
    assert_eq!(walked(span(0, 40, 8), hole(1), &[4], (0, 1), 6), [0, 8, 16, 24, 32, 0]);
    assert_eq!(walked(span(0, 8, 1), stride(100), &[4], (0, 1), 3), [0, 0, 0]);
    assert_eq!(walked(span(0, 20, 1), plain, &[3, 8], (0, 1), 6), [0, 3, 11, 0, 8, 11]);
    assert_eq!(walked(span(5, 20, 4), plain, &[3, 8], (0, 1), 6), [5, 9, 17, 5, 13, 17]);
}

#[test]
fn backwards_is_the_mirror_image() {
    let back = Steps { backwards: true, ..Steps::default() };
    let stride = Steps { stride_bytes: 500, ..back };
    let hole = Steps { hole_bytes: 6, ..back };
    assert_eq!(walked(span(1000, 2000, 1), stride, &[1000], (0, 1), 4), [2000, 1500, 1000, 2000]);
    assert_eq!(walked(span(0, 10, 1), back, &[4], (0, 1), 3), [4, 0, 4]);
    assert_eq!(walked(span(0, 40, 1), hole, &[4], (0, 1), 5), [30, 20, 10, 0, 30]);
    assert_eq!(walked(span(0, 20, 1), back, &[3, 8], (0, 1), 5), [17, 9, 6, 12, 9]);
    assert_eq!(walked(span(0, 16, 4), back, &[3, 8], (0, 1), 4), [12, 4, 0, 8]);
    assert_eq!(walked(span(0, 1000, 4096), back, &[1000], (0, 1), 2), [0, 0]);
}

#[test]
fn workers_begin_where_asked_and_go_around_on_their_own_places() {
    let start = |start| Steps { start, ..Steps::default() };
    let firsts = |steps, workers| -> Vec<u64> {
        (0..workers)
            .map(|w| walked(span(0, 100 * 4096, 512), steps, &[4096], (w, workers), 1)[0] / 4096)
            .collect()
    };
    assert_eq!(firsts(start(Start::Spread), 4), [0, 25, 50, 75]);
    assert_eq!(firsts(start(Start::Same), 3), [0, 0, 0]);
    assert_eq!(firsts(start(Start::Every(40 * 4096)), 4), [0, 40, 80, 20]);
    assert_eq!(firsts(Steps { backwards: true, ..start(Start::Spread) }, 4), [99, 74, 49, 24]);
    // diskspd: what is left of the worker's start on dividing by the stride.
    let odd = Steps { stride_bytes: 500, ..start(Start::Every(700)) };
    assert_eq!(walked(span(0, 2000, 1), odd, &[1000], (1, 2), 5), [700, 200, 700, 200, 700]);
    assert_eq!(
        walked(span(0, 2000, 1), Steps { backwards: true, ..odd }, &[1000], (1, 2), 3),
        [300, 800, 300]
    );
}

#[test]
fn a_shared_position_gives_each_block_once() {
    let common = super::common::Common::new(0);
    for (index, backwards) in [false, true].into_iter().enumerate() {
        let steps = Steps { start: Start::Interlocked, backwards, ..Steps::default() };
        let taken = std::thread::scope(|scope| {
            let run = |worker| {
                let walk = Walk::new(span(0, 40_003, 1), steps, 4, true, (worker, 4), || common.head(index));
                scope.spawn(move || (0..2500).map(|_| walk.next(Last::NONE, 4)).collect::<Vec<_>>())
            };
            let threads: Vec<_> = (0..4).map(run).collect();
            threads.into_iter().flat_map(|t| t.join().unwrap_or_default()).collect::<Vec<_>>()
        });
        let mut sorted = taken;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10_000).map(|b| b * 4).collect::<Vec<_>>());
    }
}
