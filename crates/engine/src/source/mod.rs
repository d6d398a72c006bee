//! Sources: which operation is next.
//!
//! For: compiling an access of the plan into a stream of operations. Not for: when they are handed over, nor their data.
//! A source fills a batch at a time, so a virtual call is paid once for many operations and the loop never waits for one.

use model::job::{Access, Kind, Pattern};
use rand::RngExt;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// One operation to come. 32 bytes, copied and never shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// First byte.
    pub offset: u64,
    /// A time in ns whose meaning `flags` says; 0 without [`Op::AT`] and [`Op::AFTER`].
    pub at_ns: u64,
    /// Bytes; 0 for a sync.
    pub length: u32,
    /// Index of the file among the worker's files.
    pub file: u16,
    /// What it does.
    pub kind: Kind,
    /// Conditions of handing it over: [`Op::AT`], [`Op::AFTER`], [`Op::DRAINED`]. Mostly none.
    pub flags: u8,
}

impl Op {
    /// Not before `at_ns` since the lane's first operation. In an open loop its latency counts from there.
    pub const AT: u8 = 1;
    /// Not before `at_ns` have passed since the lane's last completion, with nothing of the lane in flight.
    pub const AFTER: u8 = 2;
    /// Not while anything of the lane is in flight.
    pub const DRAINED: u8 = 4;

    /// A read of nothing, to fill places with.
    pub const NONE: Self = Self { offset: 0, at_ns: 0, length: 0, file: 0, kind: Kind::Read, flags: 0 };
}

/// Most operations that a source is asked for at once.
pub const LOOK_AHEAD: usize = 64;

/// An endless supply of operations.
pub trait Source: Send {
    /// Overwrites all of `ops` with the next operations.
    fn refill(&mut self, ops: &mut [Op]);

    /// How many operations may be drawn ahead of their hand-over. Fewer where workers share a position.
    fn look_ahead(&self) -> usize {
        LOOK_AHEAD
    }
}

/// Who asks, where several workers share one access.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Index of the worker in its stream.
    pub worker: u32,
    /// Workers of the stream.
    pub workers: u32,
    /// Index of the file among the worker's files.
    pub file: u16,
    /// Seed that no other lane of the session has.
    pub seed: u64,
}

/// Compiles an access into a source. `bytes` is the size of the target; the span is cut to it.
///
/// # Errors
/// Where not a single block fits.
pub fn compile(access: &Access, bytes: u64, share: Share) -> Result<Box<dyn Source>, String> {
    let (Some(block_bytes), Some(pattern), Some(read_percent)) =
        (access.block_bytes(), access.pattern(), access.read_percent())
    else {
        return Err("not yet".into());
    };
    let length = u64::from(block_bytes);
    let span = access.span_bytes.min(bytes.saturating_sub(access.offset_bytes));
    let blocks = span.checked_div(length).unwrap_or(0);
    if blocks == 0 {
        return Err(format!(
            "no block of {length} bytes fits into the {span} bytes from offset {}",
            access.offset_bytes
        ));
    }
    let common = Blocks { base: access.offset_bytes, length: block_bytes, file: share.file, blocks };
    let kinds = Kinds { read_percent, rng: Xoshiro256PlusPlus::seed_from_u64(share.seed ^ 0x6b69) };
    Ok(match pattern {
        Pattern::Sequential => {
            let next = u128::from(blocks) * u128::from(share.worker) / u128::from(share.workers.max(1));
            Box::new(Sequential { common, kinds, next: next as u64 })
        }
        Pattern::Random => {
            Box::new(Random { common, kinds, rng: Xoshiro256PlusPlus::seed_from_u64(share.seed) })
        }
    })
}

/// The blocks of a span.
#[allow(clippy::struct_field_names)] // A count of blocks among their other properties.
struct Blocks {
    base: u64,
    length: u32,
    file: u16,
    blocks: u64,
}

impl Blocks {
    #[inline]
    fn op(&self, block: u64, kind: Kind) -> Op {
        Op {
            offset: self.base + block * u64::from(self.length),
            length: self.length,
            file: self.file,
            kind,
            ..Op::NONE
        }
    }
}

/// Directions by an exact draw per operation; no draw where there is only one.
struct Kinds {
    read_percent: u8,
    rng: Xoshiro256PlusPlus,
}

impl Kinds {
    #[inline]
    fn draw(&mut self) -> Kind {
        match self.read_percent {
            100.. => Kind::Read,
            0 => Kind::Write,
            p if self.rng.random_range(0..100_u8) < p => Kind::Read,
            _ => Kind::Write,
        }
    }
}

struct Sequential {
    common: Blocks,
    kinds: Kinds,
    next: u64,
}

impl Source for Sequential {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            *op = self.common.op(self.next, self.kinds.draw());
            self.next += 1;
            if self.next == self.common.blocks {
                self.next = 0;
            }
        }
    }
}

struct Random {
    common: Blocks,
    kinds: Kinds,
    rng: Xoshiro256PlusPlus,
}

impl Source for Random {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            let block = self.rng.random_range(0..self.common.blocks);
            *op = self.common.op(block, self.kinds.draw());
        }
    }
}

/// Panics after some hundred operations: the fault that fathom's own tests put in.
pub struct Panicking(pub Box<dyn Source>, pub u32);

impl Source for Panicking {
    fn refill(&mut self, ops: &mut [Op]) {
        self.0.refill(ops);
        self.1 = self.1.saturating_sub(ops.len() as u32);
        assert!(self.1 > 0, "a fault that was put in on purpose (--test-hook panic-worker)");
    }
}

#[cfg(test)]
fn drawn(access: Access, bytes: u64, worker: u32, workers: u32, count: usize) -> Vec<Op> {
    let share = Share { worker, workers, file: 0, seed: 7 + u64::from(worker) };
    let mut source = compile(&access, bytes, share).unwrap_or_else(|e| panic!("{e}"));
    let mut ops = vec![Op::NONE; count];
    ops.chunks_mut(64).for_each(|c| source.refill(c));
    ops
}

#[cfg(test)]
fn access(pattern: Pattern, read_percent: u8) -> Access {
    Access { offset_bytes: 8192, span_bytes: 100 * 4096, ..Access::plain(pattern, 4096, read_percent) }
}

#[test]
fn sequential_visits_each_block_in_order_and_goes_around() {
    let ops = drawn(access(Pattern::Sequential, 100), 1 << 20, 1, 4, 250);
    assert_eq!(ops[0].offset, 8192 + 25 * 4096);
    assert!(ops.windows(2).all(|w| w[1].offset == w[0].offset + 4096 || w[1].offset == 8192));
    assert_eq!(ops[75].offset, 8192);
}

#[test]
fn random_covers_the_span_evenly_and_stays_inside() {
    let ops = drawn(access(Pattern::Random, 100), 1 << 20, 0, 1, 100_000);
    let mut hits = [0_f64; 100];
    for op in &ops {
        assert!((op.offset - 8192).is_multiple_of(4096));
        hits[((op.offset - 8192) / 4096) as usize] += 1.0;
    }
    // Chi-squared over 100 blocks; 99 degrees of freedom have 0.999 quantile 148.
    let chi: f64 = hits.iter().map(|h| (h - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi < 148.0, "{chi}");
}

#[test]
fn mixes_are_drawn_exactly_and_the_span_is_cut_to_the_target() {
    let reads = drawn(access(Pattern::Random, 70), 1 << 20, 0, 1, 100_000)
        .iter()
        .filter(|o| o.kind == Kind::Read)
        .count();
    // Five standard deviations of a binomial draw of 70 %.
    assert!((reads as f64 - 70_000.0).abs() < 5.0 * 145.0, "{reads}");
    let cut = drawn(access(Pattern::Random, 0), 8192 + 4096 * 3, 0, 1, 1000);
    assert!(cut.iter().all(|o| o.offset < 8192 + 4096 * 3 && o.kind == Kind::Write));
    let share = Share { worker: 0, workers: 1, file: 0, seed: 1 };
    assert!(compile(&access(Pattern::Random, 0), 8192, share).is_err());
}
