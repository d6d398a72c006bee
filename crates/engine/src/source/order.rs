//! Orders of offsets: where on a span the next operation is.
//!
//! - [`NextOffset`]: random orders, or [`Walk`] for sequential ones. A uniform draw uses every
//!   place where the operation's own size fits. All other random orders except [`BlockMap`] use only the
//!   places where the line's largest size fits.
//! - [`Walk`]: sequential order with strides, holes and directions. The next operation begins one
//!   stride after the beginning of the last one, or without a stride at the end of the last one.
//!   The hole is added, and the sum is rounded up to the grid. At the end of the span the walk
//!   restarts, as in diskspd. It restarts at the first place that is a whole number of steps from
//!   the worker's start, so each pass visits the same places. With drawn sizes and no stride, the last sizes of a pass are drawn
//!   until they fit, and the walk restarts at the first byte. Backwards is the mirror image.
//! - [`Permutation`]: a keyed permutation without memory, for visiting each block once and for
//!   scattering ranks. A balanced Feistel network permutes the next power of two; numbers outside
//!   the range are permuted again (Black and Rogaway, "Ciphers with Arbitrary Finite Domains",
//!   2002), less than twice on average.
//! - [`BlockMap`]: each block once with several sizes, like fio's random map. A block is drawn. The
//!   operation begins at the first untouched block at or after it, and ends before the next touched
//!   block. Each worker has its own part of the span.

use crate::source::draw::{Alias, Zipf};
use crate::source::sharing::{SharedPosition, StreamState};
use crate::source::span::Span;
use model::job::{Line, Order, Start, Steps, Zone, ZoneSize};
use model::payload::split_mix;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// At this standard deviation (as a fraction of the span) or above, uniform draws with rejection
/// replace normal draws. A normal draw is repeated until it is inside the span: this is cheaper for a
/// narrow bell, but would hardly ever end for a very wide one.
const WIDE_DEVIATION: f64 = 0.4;

/// How an order finds the next place.
#[derive(Debug)]
pub(super) enum NextOffset {
    /// Sequential: after the previous operation.
    Walk,
    /// Any position with equal probability.
    Uniform(Uniform),
    /// Uniform with this probability, otherwise sequential.
    Mixed(f64, Uniform),
    /// Each position once per pass. All operations have one size.
    Once(Once),
    /// Each block once per pass. Operations have several sizes, in blocks.
    BlockMap(BlockMap),
    /// Zipf's law. The permutation scatters the ranks over the span.
    Zipf(Arc<Zipf>, Permutation),
    /// Self-similar: rank = count * u^exponent, for u uniform between 0 and 1.
    Pareto { exponent: f64, permutation: Permutation },
    /// Normal around the middle of the span. The deviation is a fraction of the span.
    Normal { deviation: f64, count: u64 },
    /// Uniform in one of several ranges.
    Zones(Alias, Vec<Range<u64>>),
}

impl NextOffset {
    /// Compiles the order of a line over a span. `target` is the index of the span's target. The caller ensures that operations of these
    /// sizes fit.
    pub(super) fn new(
        line: &Line,
        span: Span,
        sizes: RangeInclusive<u64>,
        target: usize,
        worker: u32,
        workers: u32,
        stream_state: &StreamState,
    ) -> Result<Self, String> {
        let (least, most) = sizes.into_inner();
        let count = span.starts(most);
        let seed = stream_state.seed(target);
        // Derive a separate key from the seed. Otherwise the hot ranks would be the first blocks of a pass that visits each block once.
        let permutation = || {
            let scattered = Permutation::new(count, split_mix(seed ^ 0x7363_6174));
            // Without rounds of the permutation, the first ranks are the first blocks.
            if line.clustered { Permutation { rounds: 0, ..scattered } } else { scattered }
        };
        let uniform = || Uniform { span, fixed: if least == most { count } else { 0 } };
        Ok(match &line.order {
            Order::Sequential(_) => Self::Walk,
            // With `MixedEach`, the line decides which operations are random.
            Order::Random | Order::MixedEach(_) => Self::Uniform(uniform()),
            Order::Mixed(percent) if (0.0..=100.0).contains(percent) => {
                Self::Mixed(percent / 100.0, uniform())
            }
            Order::Mixed(percent) => {
                return Err(format!("{percent} % random is not possible; give 0 to 100"));
            }
            Order::Once if least < most => {
                // Count in units of the grid, not of the largest size, because shortened operations fill the gaps.
                Self::BlockMap(BlockMap::new(seed, worker.into(), workers.into(), span.bytes / span.align)?)
            }
            Order::Once if u64::from(worker) < count => {
                Self::Once(Once::new(seed, u64::from(worker), u64::from(workers), count))
            }
            Order::Once => {
                return Err(format!(
                    "worker {worker} gets no block: each block is visited once, and the span has only {count}; choose \
                     fewer workers or a larger span"
                ));
            }
            Order::Zipf(theta) => Self::Zipf(stream_state.zipf(*theta, count)?, permutation()),
            Order::Pareto(h) if *h > 0.0 && *h < 1.0 => {
                Self::Pareto { exponent: h.ln() / (-h).ln_1p(), permutation: permutation() }
            }
            Order::Pareto(h) => {
                return Err(format!(
                    "pareto needs a share of blocks above 0 and below 1, not {h}; 0.2 is usual"
                ));
            }
            Order::Normal(percent) if percent.is_finite() && *percent > 0.0 => {
                Self::Normal { deviation: percent / 100.0, count }
            }
            Order::Normal(percent) => {
                return Err(format!(
                    "normal needs a standard deviation above 0 in percent of the span, not {percent}; 10 is usual"
                ));
            }
            Order::Zones(zones) => {
                let (choice, ranges) = zone_ranges(zones, span, count)?;
                Self::Zones(choice, ranges)
            }
        })
    }

    /// Begins another pass, if the order has passes.
    pub(super) fn begin_again(&mut self) {
        match self {
            Self::Once(once) => once.index = u64::MAX,
            Self::BlockMap(map) => map.end_pass(),
            _ => {}
        }
    }

    /// Draws the next place, in bytes from the start of the span; `None` to continue sequentially.
    /// Reduces `size` if fewer bytes are free there ([`BlockMap`]).
    #[inline]
    pub(super) fn draw(&mut self, align: u64, size: &mut u64, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        let place = match self {
            Self::Walk => return None,
            Self::Uniform(uniform) => uniform.draw(*size, rng),
            Self::Mixed(chance, uniform) => {
                if rng.random::<f64>() >= *chance {
                    return None;
                }
                uniform.draw(*size, rng)
            }
            Self::Once(once) => once.next(),
            Self::BlockMap(map) => {
                let (place, run) = map.next(*size / align);
                *size = (*size).min(run * align);
                place
            }
            Self::Zipf(ranks, permutation) => permutation.position(ranks.draw(rng)),
            Self::Pareto { exponent, permutation } => {
                permutation.position(part_index(rng.random::<f64>().powf(*exponent), permutation.count()))
            }
            Self::Normal { deviation, count } => part_index(draw_normal(*deviation, rng), *count),
            Self::Zones(choice, ranges) => {
                let zone = choice.draw(rng);
                rng.random_range(ranges[zone].clone())
            }
        };
        Some(align * place)
    }
}

/// Divides the range from 0 to 1 into `count` equal parts, and returns the index of the part that contains `share`.
#[inline]
fn part_index(share: f64, count: u64) -> u64 {
    // Rounding may return the count itself.
    ((share * count as f64) as u64).min(count - 1)
}

/// Draws a share from 0 to 1, normal around 0.5.
#[inline]
fn draw_normal(deviation: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    loop {
        if deviation < WIDE_DEVIATION {
            let normal: f64 = StandardNormal.sample(rng);
            let share = 0.5 + normal * deviation;
            if (0.0..1.0).contains(&share) {
                return share;
            }
        } else {
            let share: f64 = rng.random();
            if rng.random::<f64>() < (-0.5 * ((share - 0.5) / deviation).powi(2)).exp() {
                return share;
            }
        }
    }
}

/// Draws places with equal probability; a place may be drawn repeatedly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uniform {
    span: Span,
    /// Number of places if all sizes are equal; 0 otherwise.
    fixed: u64,
}

impl Uniform {
    /// Returns the number of places for a size.
    #[inline]
    pub(super) fn count(&self, size: u64) -> u64 {
        if self.fixed > 0 { self.fixed } else { self.span.starts(size) }
    }

    #[inline]
    fn draw(&self, size: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        rng.random_range(0..self.count(size))
    }
}

/// Each position once per pass. All operations have one size. A worker takes the permuted indices `worker + k * workers`. So all
/// workers together visit each position once, even if one is faster than another. Each pass has its own permutation.
#[derive(Debug)]
pub(super) struct Once {
    seed: u64,
    worker: u64,
    workers: u64,
    pass: u64,
    index: u64,
    permutation: Permutation,
}

impl Once {
    fn new(seed: u64, worker: u64, workers: u64, count: u64) -> Self {
        Self { seed, worker, workers, pass: 0, index: worker, permutation: Self::order(seed, 0, count) }
    }

    fn order(seed: u64, pass: u64, count: u64) -> Permutation {
        Permutation::new(count, split_mix(seed).wrapping_add(pass))
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.index >= self.permutation.count() {
            self.pass += 1;
            self.index = self.worker;
            self.permutation = Self::order(self.seed, self.pass, self.permutation.count());
        }
        let place = self.permutation.position(self.index);
        self.index = self.index.saturating_add(self.workers);
        place
    }
}

/// Converts zones to ranges of places. The table draws the index of a range by the zones' shares of the operations.
fn zone_ranges(zones: &[Zone], span: Span, count: u64) -> Result<(Alias, Vec<Range<u64>>), String> {
    let mut ranges: Vec<Range<u64>> = Vec::with_capacity(zones.len());
    // Percentages are added before they are converted, so that three times 100 / 3 covers all places.
    let (mut percent, mut bytes) = (0.0, 0_u64);
    let mut shares: Vec<f64> = Vec::with_capacity(zones.len());
    for (i, zone) in zones.iter().enumerate() {
        let mut share = zone.access_percent;
        match zone.size {
            ZoneSize::Percent(p) if p.is_finite() && p >= 0.0 => percent += p,
            ZoneSize::Percent(p) => {
                return Err(format!("zone {} has a size of {p} %; give 0 to 100 %", i + 1));
            }
            ZoneSize::Bytes(b) | ZoneSize::UpTo(b) => bytes = bytes.saturating_add(b),
        }
        // Round down to a whole block, with tolerance for the rounding error of the sum.
        let percent_places = (percent / 100.0 * count as f64 + 1e-6) as u64;
        let start = ranges.last().map_or(0, |r| r.end);
        let end = percent_places.saturating_add(bytes.div_ceil(span.align)).min(count);
        if start >= end && matches!(zone.size, ZoneSize::UpTo(_)) {
            share = 0.0;
        }
        if share > 0.0 && start >= end {
            return Err(format!(
                "zone {} gets operations but has no block: the span has {count}, and the zones before it take {start}; \
                 enlarge this zone or shrink the zones before it",
                i + 1
            ));
        }
        ranges.push(start..end);
        shares.push(share);
    }
    let choice = Alias::new(&shares)
        .ok_or("the zones' shares of the operations must be 0 or more; give one of them a share above 0")?;
    Ok((choice, ranges))
}

/// The bytes of the last operation at a position, relative to the span.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastOp {
    start: u64,
    end: u64,
}

impl LastOp {
    /// The state before the first operation.
    pub(super) const NONE: Self = Self { start: SharedPosition::UNUSED, end: SharedPosition::UNUSED };

    /// Returns whether no operation has begun yet.
    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.start == SharedPosition::UNUSED
    }

    /// Returns whether the last operation began at or after `start`. A forward walk whose next place is `start` has then restarted.
    pub(super) fn is_after(self, start: u64) -> bool {
        !self.is_none() && self.start >= start
    }

    /// Creates the value for an operation that begins `start` bytes into the span.
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
    /// Distance between places if the walk has a stride or all sizes are equal, otherwise the
    /// alignment.
    lattice: u64,
    /// Distance of this worker's start from the edge where the walk begins: the start of the span,
    /// or its end if the walk goes backwards.
    first: u64,
    /// Distance from the same edge to the place where the walk restarts.
    restart: u64,
    shared_position: Option<Arc<SharedPosition>>,
}

/// A forward walk with one size and a position that is not shared, which needs only four numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForwardWalk {
    next: u64,
    step: u64,
    room: u64,
    restart: u64,
}

impl Walk {
    /// Compiles the walk of worker `worker` of `workers`. `fixed` is true if all sizes equal `least`. `shared_position` creates the
    /// position that interlocked workers share.
    pub(super) fn new(
        span: Span,
        steps: Steps,
        least: u64,
        fixed: bool,
        worker: u32,
        workers: u32,
        shared_position: impl FnOnce() -> Arc<SharedPosition>,
    ) -> Self {
        let Steps { stride_bytes: stride, hole_bytes: hole, backwards, start } = steps;
        let step = span.up((if stride > 0 { stride } else { least }).saturating_add(hole)).max(1);
        let lattice = if fixed || stride > 0 { step } else { span.align };
        let places = u128::from(span.room(least) / step + 1);
        let first = match start {
            Start::Spread => (places * u128::from(worker) / u128::from(workers)) as u64 * step,
            Start::Same | Start::Interlocked => 0,
            Start::Every(bytes) => {
                let distance = u128::from(bytes) * u128::from(worker) % u128::from(span.bytes.max(1));
                span.down(distance as u64)
            }
        };
        let restart = first % lattice;
        let shared_position = (start == Start::Interlocked && workers > 1).then(shared_position);
        Self { span, stride, hole, backwards, lattice, first, restart, shared_position }
    }

    /// Whether workers share the position.
    pub(super) fn is_shared(&self) -> bool {
        self.shared_position.is_some()
    }

    /// Returns the bytes from the next operation to the end of the span. Returns `u64::MAX` before
    /// the first operation, and for a walk that goes backwards, has a stride or shares its
    /// position.
    #[inline]
    pub(super) fn left(&self, last: LastOp) -> u64 {
        let fills = self.shared_position.is_none()
            && !self.backwards
            && self.stride == 0
            && last.start != SharedPosition::UNUSED;
        if !fills {
            return u64::MAX;
        }
        self.span.bytes.saturating_sub(self.span.up(last.end.saturating_add(self.hole)))
    }

    /// Returns where the next operation begins, relative to the span.
    #[inline]
    pub(super) fn next(&self, last: LastOp, size: u64) -> u64 {
        match &self.shared_position {
            None => self.step(last, size),
            Some(position) => position.advance(|seen| {
                let start = self.step(LastOp { start: seen, end: seen }, size);
                // A forward walk without a stride continues from the end of this operation, any
                // other walk from its start.
                let from_end = self.stride == 0 && !self.backwards;
                (if from_end { start + size } else { start }, start)
            }),
        }
    }

    #[inline]
    fn step(&self, last: LastOp, size: u64) -> u64 {
        if last.start == SharedPosition::UNUSED {
            return self.begin(self.first, size);
        }
        if self.backwards {
            let back = (if self.stride > 0 { self.stride } else { size }).saturating_add(self.hole);
            // The last operation of another line may be at a place where this size does not fit.
            let next = last.start.checked_sub(back).filter(|n| *n <= self.span.room(size));
            return next.map_or_else(|| self.begin(self.restart, size), |n| self.span.down(n));
        }
        let from = if self.stride > 0 { last.start.saturating_add(self.stride) } else { last.end };
        let next = self.span.up(from.saturating_add(self.hole));
        if next <= self.span.room(size) { next } else { self.begin(self.restart, size) }
    }

    /// Returns the place at a distance from the edge where the walk begins. If the size does not
    /// fit there, returns the place where the walk restarts. If it does not fit there either, returns
    /// the edge.
    #[cold]
    fn begin(&self, distance: u64, size: u64) -> u64 {
        let room = self.span.room(size);
        let top = room - room % self.lattice;
        let edge = if self.backwards { top } else { room };
        let distance = [distance, self.restart].into_iter().find(|f| *f <= edge).unwrap_or(0);
        if self.backwards { top - distance } else { distance }
    }

    /// Returns the simple form of this walk for operations of `size` bytes; `None` if it goes backwards or shares its position.
    pub(super) fn forward(&self, size: u64) -> Option<ForwardWalk> {
        (!self.backwards && self.shared_position.is_none()).then(|| ForwardWalk {
            next: self.begin(self.first, size),
            step: self.lattice,
            room: self.span.room(size),
            restart: self.begin(self.restart, size),
        })
    }
}

impl ForwardWalk {
    /// Returns where the next operation begins, relative to the span, and advances the walk.
    #[inline]
    pub(super) fn take(&mut self) -> u64 {
        let now = self.next;
        // `now` is never above `room`, so this neither overflows nor underflows.
        self.next = if self.room - now >= self.step { now + self.step } else { self.restart };
        now
    }
}

/// Rounds of the network. Four are enough for large halves (Luby and Rackoff, 1988). With halves of a few bits, neighbours stay correlated
/// after four rounds, but not after eight.
const ROUNDS: usize = 8;
/// Permutations with at least this number of bits need only half of the rounds.
const LARGE_BITS: u32 = 16;

/// A permutation of `0..count`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    count: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    rounds: usize,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Creates the permutation of a key. `count` is at least 1.
    pub(super) fn new(count: u64, key: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let low_bits = bits / 2;
        let mut keys = [0; ROUNDS];
        for (round, k) in keys.iter_mut().enumerate() {
            *k = split_mix(key ^ split_mix(round as u64));
        }
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let rounds = if bits < LARGE_BITS { ROUNDS } else { ROUNDS / 2 };
        Self { count, rounds, low_bits, low_mask: mask(low_bits), high_mask: mask(bits - low_bits), keys }
    }

    /// Returns the size of the range that is permuted.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the image of `index`. Both are below the count.
    #[inline]
    pub(super) fn position(&self, index: u64) -> u64 {
        let mut place = index;
        loop {
            place = self.network(place);
            if place < self.count {
                return place;
            }
        }
    }

    #[inline]
    fn network(&self, x: u64) -> u64 {
        let (mut high, mut low) = (x >> self.low_bits, x & self.low_mask);
        for pair in self.keys[..self.rounds].as_chunks::<2>().0 {
            low ^= mix(high, pair[0]) & self.low_mask;
            high ^= mix(low, pair[1]) & self.high_mask;
        }
        high << self.low_bits | low
    }
}

/// Returns 32 bits that depend on all bits of both numbers.
#[inline]
fn mix(x: u64, key: u64) -> u64 {
    let z = (x ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
}

/// Maximum number of blocks of a map, which then takes 1 GiB of memory.
const MAX_MAP_BLOCKS: u64 = 1 << 33;

/// A worker's part of the blocks, with the blocks that this pass has touched.
#[derive(Debug)]
pub(super) struct BlockMap {
    seed: u64,
    pass: u64,
    /// Index of the worker's first block.
    first: u64,
    /// One bit per block, set if this pass has touched the block.
    touched: Vec<u64>,
    /// Number of free blocks, which this pass has not touched.
    free: u64,
    /// The order in which blocks are drawn.
    order: Permutation,
    /// Number of blocks drawn from `order`.
    drawn: u64,
}

impl BlockMap {
    /// Creates the map of worker `worker` of `workers`. Fails without blocks, or with more than [`MAX_MAP_BLOCKS`] per worker.
    pub(super) fn new(seed: u64, worker: u64, workers: u64, blocks: u64) -> Result<Self, String> {
        let edge = |at: u64| (u128::from(blocks) * u128::from(at) / u128::from(workers.max(1))) as u64;
        let (first, end) = (edge(worker), edge(worker + 1));
        let count = end - first;
        if count == 0 || count > MAX_MAP_BLOCKS {
            return Err(format!(
                "visiting each block once with several sizes needs a map of 1 to {MAX_MAP_BLOCKS} blocks per worker, and worker {worker} has \
                 {count}; choose one size, larger blocks or another span"
            ));
        }
        let seed = split_mix(seed ^ worker);
        let touched = vec![0; count.div_ceil(64) as usize];
        Ok(Self {
            seed,
            pass: 0,
            first,
            touched,
            free: count,
            order: Permutation::new(count, seed),
            drawn: 0,
        })
    }

    /// Ends the pass: the next block is the first of another pass.
    pub(super) fn end_pass(&mut self) {
        self.free = 0;
    }

    /// Takes up to `most` consecutive free blocks. Returns the index of the first one, and how many
    /// were taken.
    #[inline]
    pub(super) fn next(&mut self, most: u64) -> (u64, u64) {
        let count = self.order.count();
        if self.free == 0 {
            self.touched.fill(0);
            self.free = count;
            self.drawn = count;
        }
        if self.drawn == count {
            self.pass += 1;
            self.drawn = 0;
            self.order = Permutation::new(count, self.seed.wrapping_add(self.pass));
        }
        let drawn = self.order.position(self.drawn);
        self.drawn += 1;
        let block = self.free_from(drawn, count).or_else(|| self.free_from(0, drawn)).unwrap_or(drawn);
        let end = block.saturating_add(most.max(1)).min(count);
        let run = (block..end).take_while(|b| !self.is_touched(*b)).count() as u64;
        for taken in block..block + run {
            self.touched[(taken / 64) as usize] |= 1 << (taken % 64);
        }
        self.free -= run;
        (self.first + block, run)
    }

    /// Returns the first free block from `from` to below `end`; `None` if none of them is free.
    fn free_from(&self, from: u64, end: u64) -> Option<u64> {
        let mut at = from;
        while at < end {
            // Free blocks of this word from `at` on. A completely touched word is skipped at once.
            let free = !(self.touched[(at / 64) as usize] >> (at % 64));
            let skip = u64::from(free.trailing_zeros());
            if skip < 64 - at % 64 {
                return Some(at + skip).filter(|block| *block < end);
            }
            at += 64 - at % 64;
        }
        None
    }

    fn is_touched(&self, block: u64) -> bool {
        self.touched[(block / 64) as usize] >> (block % 64) & 1 == 1
    }
}

#[cfg(test)]
use super::tests::goodness_of_fit;

#[cfg(test)]
fn walk_places(span: Span, steps: Steps, sizes: &[u64], who: (u32, u32), count: usize) -> Vec<u64> {
    let (least, most) = (sizes.iter().min(), sizes.iter().max());
    let walk = Walk::new(span, steps, *least.unwrap_or(&1), least == most, who.0, who.1, || {
        crate::source::sharing::StreamState::new(0).position(0)
    });
    let mut last = LastOp::NONE;
    let mut next = |size| {
        let start = walk.next(last, size);
        last = LastOp::at(start, size);
        span.base + start
    };
    let places: Vec<u64> = sizes.iter().cycle().take(count).map(|s| next(*s)).collect();
    if let Some(mut forward) = walk.forward(sizes[0]).filter(|_| least == most) {
        let short: Vec<u64> = (0..count).map(|_| span.base + forward.take()).collect();
        assert_eq!(short, places, "the simple form differs");
    }
    places
}

#[cfg(test)]
fn span(base: u64, bytes: u64, align: u64) -> Span {
    Span { base, bytes, align }
}

#[test]
fn walks_with_strides_and_holes_visit_the_expected_places() {
    let plain = Steps::default();
    let stride = |b| Steps { stride_bytes: b, ..plain };
    let hole = |b| Steps { hole_bytes: b, ..plain };
    assert_eq!(
        walk_places(span(1000, 2000, 1), stride(500), &[1000], (0, 1), 5),
        [1000, 1500, 2000, 1000, 1500]
    );
    assert_eq!(walk_places(span(0, 10, 1), plain, &[4], (0, 1), 4), [0, 4, 0, 4]);
    assert_eq!(walk_places(span(0, 40, 1), hole(6), &[4], (0, 1), 5), [0, 10, 20, 30, 0]);
    assert_eq!(
        walk_places(span(0, 40, 1), Steps { hole_bytes: 1, ..stride(9) }, &[4], (0, 1), 5),
        [0, 10, 20, 30, 0]
    );
    assert_eq!(walk_places(span(0, 40, 8), hole(1), &[4], (0, 1), 6), [0, 8, 16, 24, 32, 0]);
    assert_eq!(walk_places(span(0, 8, 1), stride(100), &[4], (0, 1), 3), [0, 0, 0]);
    assert_eq!(walk_places(span(0, 20, 1), plain, &[3, 8], (0, 1), 6), [0, 3, 11, 0, 8, 11]);
    assert_eq!(walk_places(span(5, 20, 4), plain, &[3, 8], (0, 1), 6), [5, 9, 17, 5, 13, 17]);
}

#[test]
fn backwards_is_the_mirror_image() {
    let back = Steps { backwards: true, ..Steps::default() };
    let stride = Steps { stride_bytes: 500, ..back };
    let hole = Steps { hole_bytes: 6, ..back };
    assert_eq!(walk_places(span(1000, 2000, 1), stride, &[1000], (0, 1), 4), [2000, 1500, 1000, 2000]);
    assert_eq!(walk_places(span(0, 10, 1), back, &[4], (0, 1), 3), [4, 0, 4]);
    assert_eq!(walk_places(span(0, 40, 1), hole, &[4], (0, 1), 5), [30, 20, 10, 0, 30]);
    assert_eq!(walk_places(span(0, 20, 1), back, &[3, 8], (0, 1), 5), [17, 9, 6, 12, 9]);
    assert_eq!(walk_places(span(0, 16, 4), back, &[3, 8], (0, 1), 4), [12, 4, 0, 8]);
    assert_eq!(walk_places(span(0, 1000, 4096), back, &[1000], (0, 1), 2), [0, 0]);
}

#[test]
fn workers_start_and_restart_at_their_own_places() {
    let start = |start| Steps { start, ..Steps::default() };
    let firsts = |steps, workers| -> Vec<u64> {
        (0..workers)
            .map(|w| walk_places(span(0, 100 * 4096, 512), steps, &[4096], (w, workers), 1)[0] / 4096)
            .collect()
    };
    assert_eq!(firsts(start(Start::Spread), 4), [0, 25, 50, 75]);
    assert_eq!(firsts(start(Start::Same), 3), [0, 0, 0]);
    assert_eq!(firsts(start(Start::Every(40 * 4096)), 4), [0, 40, 80, 20]);
    assert_eq!(firsts(Steps { backwards: true, ..start(Start::Spread) }, 4), [99, 74, 49, 24]);
    // As in diskspd, a pass restarts at the remainder of the worker's start divided by the stride.
    let odd = Steps { stride_bytes: 500, ..start(Start::Every(700)) };
    assert_eq!(walk_places(span(0, 2000, 1), odd, &[1000], (1, 2), 5), [700, 200, 700, 200, 700]);
    assert_eq!(
        walk_places(span(0, 2000, 1), Steps { backwards: true, ..odd }, &[1000], (1, 2), 3),
        [300, 800, 300]
    );
}

#[test]
fn a_shared_position_gives_each_block_once() {
    let stream_state = crate::source::sharing::StreamState::new(0);
    for (index, backwards) in [false, true].into_iter().enumerate() {
        let steps = Steps { start: Start::Interlocked, backwards, ..Steps::default() };
        let taken = std::thread::scope(|scope| {
            let run = |worker| {
                let walk =
                    Walk::new(span(0, 40_003, 1), steps, 4, true, worker, 4, || stream_state.position(index));
                scope.spawn(move || (0..2500).map(|_| walk.next(LastOp::NONE, 4)).collect::<Vec<_>>())
            };
            let threads: Vec<_> = (0..4).map(run).collect();
            threads.into_iter().flat_map(|t| t.join().unwrap_or_default()).collect::<Vec<_>>()
        });
        let mut sorted = taken;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10_000).map(|b| b * 4).collect::<Vec<_>>());
    }
}

#[test]
fn scatter_is_a_permutation() {
    for count in (1..130).chain([1000, 4096, 4097, 65_537]) {
        for key in 0..5 {
            let permutation = Permutation::new(count, key);
            let mut seen = vec![false; count as usize];
            for i in 0..count {
                assert!(
                    !std::mem::replace(&mut seen[permutation.position(i) as usize], true),
                    "{count} {key} {i}"
                );
            }
        }
    }
    for count in [1 << 40, u64::MAX] {
        let permutation = Permutation::new(count, 1);
        assert!(
            (0..1000).all(|i| permutation.position(i) < count && permutation.position(count - 1 - i) < count)
        );
    }
}

#[test]
fn scattered_places_are_uniform_and_neighbours_are_separated() {
    for count in [3_u64, 10, 100, 33_000, 40_000, 1 << 21] {
        let classes = count.min(100);
        let (mut places, mut distances) = (vec![0_u64; classes as usize], vec![0_u64; classes as usize]);
        for key in 0..2000 * classes {
            let permutation = Permutation::new(count, split_mix(key));
            let (a, b) = (permutation.position(count / 2), permutation.position(count / 2 - 1));
            let distance = (a + count - b) % count;
            assert_ne!(distance, 0);
            places[(a * classes / count) as usize] += 1;
            distances[(distance * classes / count) as usize] += 1;
        }
        // A distance of zero is impossible, so the first class is smaller.
        let weight = |class: u64| {
            let numbers = (class * count).div_ceil(classes)..((class + 1) * count).div_ceil(classes);
            (numbers.end - numbers.start) as f64
        };
        let mut weights: Vec<f64> = (0..classes).map(weight).collect();
        goodness_of_fit::assert_fit(&places, &weights);
        weights[0] -= 1.0;
        goodness_of_fit::assert_fit(&distances, &weights);
    }
}

#[test]
fn workers_together_touch_every_block_once_in_each_pass() -> Result<(), String> {
    for (blocks, workers) in [(1, 1), (64, 1), (1000, 3), (130, 130)] {
        let mut maps = Vec::new();
        for worker in 0..workers {
            maps.push(BlockMap::new(7, worker, workers, blocks)?);
        }
        for pass in 1..4_u32 {
            let mut times = vec![0; blocks as usize];
            for (worker, map) in (0..).zip(&mut maps) {
                let share = blocks * (worker + 1) / workers - blocks * worker / workers;
                let mut done = 0;
                for size in (1..).map(|n: u64| 1 + n * 7 % 13) {
                    let (first, run) = map.next(size);
                    assert!((1..=size).contains(&run));
                    times[first as usize..(first + run) as usize].iter_mut().for_each(|t| *t += 1);
                    done += run;
                    if done >= share {
                        break;
                    }
                }
                assert_eq!(done, share, "pass {pass}");
            }
            assert!(times.iter().all(|t| *t == 1), "{blocks} blocks of {workers} workers: {times:?}");
        }
    }
    assert!(BlockMap::new(7, 2, 3, 2).is_ok() && BlockMap::new(7, 0, 3, 2).is_err());
    Ok(())
}

#[test]
fn clustered_ranks_begin_at_the_first_block() {
    use rand::SeedableRng;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let scattered = Permutation::new(1000, 7);
    let clustered = Permutation { rounds: 0, ..scattered };
    assert!((0..1000).all(|rank| clustered.position(rank) == rank));
    assert!((0..1000).any(|rank| scattered.position(rank) != rank));
    // The first blocks of a skewed order get more than their share.
    let mut pareto =
        NextOffset::Pareto { exponent: 0.2_f64.ln() / (-0.2_f64).ln_1p(), permutation: clustered };
    let first = (0..1000).filter(|_| pareto.draw(1, &mut 1, &mut rng).is_some_and(|at| at < 200)).count();
    assert!((700..900).contains(&first), "80 % of the operations in 20 % of the blocks: {first}");
}
