//! Distinct bytes that were touched.
//!
//! For: reads and writes, in blocks of 4 KiB as sets of bits that stay small where few or all are touched (Roaring). Not for: which
//! file the bytes belong to.

use super::figures::share;
use crate::row::Row;
use model::captured::{Footprint, Op};
use roaring::RoaringTreemap;

/// A block is of 4 KiB: smaller ones would cost memory, and devices seldom have them.
const BLOCK_SECTORS: u64 = 8;
/// Zones that a device is taken apart into.
const ZONES: usize = 1024;
/// Most blocks of one request: no request has more than 4 GiB.
const MOST_BLOCKS: u64 = 1 << 20;
/// Most bytes of a set. Beyond it nothing is added, and the figures are the least that they can be.
const MOST_BYTES: usize = 64 << 20;
/// Ranges after which its bytes are looked at.
const RANGES: u32 = 256;

/// Blocks of one request from which they are added as a range, without waiting for others.
const RANGE: u64 = 16;
/// Blocks that wait to be added together.
const WAITING: usize = 1 << 15;

/// A set that is added to in the order of its members, many at once: one by one each would be somewhere else in memory.
#[derive(Debug, Default)]
struct Blocks {
    set: RoaringTreemap,
    waiting: Vec<u64>,
    ranges: u32,
    is_full: bool,
}

impl Blocks {
    fn add(&mut self, first: u64, last: u64) {
        if self.is_full {
            return;
        }
        if last - first >= RANGE {
            self.set.insert_range(first..=last);
            self.ranges = self.ranges.wrapping_add(1);
            if self.ranges.is_multiple_of(RANGES) {
                self.settle();
            }
            return;
        }
        self.waiting.extend(first..=last);
        if self.waiting.len() >= WAITING {
            self.settle();
        }
    }

    fn settle(&mut self) {
        self.waiting.sort_unstable();
        self.waiting.dedup();
        // In order, so nothing is refused.
        if let Ok(new) = RoaringTreemap::from_sorted_iter(self.waiting.drain(..)) {
            self.set |= new;
        }
        self.is_full = self.set.serialized_size() > MOST_BYTES;
    }
}

/// Blocks that were touched.
#[derive(Debug)]
pub(super) struct Touched {
    reads: Blocks,
    writes: Blocks,
    touches: u64,
    first: u64,
    last: u64,
    device_bytes: Option<u64>,
    zones: Vec<u64>,
}

impl Touched {
    pub(super) fn new(device_bytes: Option<u64>) -> Self {
        Self {
            reads: Blocks::default(),
            writes: Blocks::default(),
            touches: 0,
            first: u64::MAX,
            last: 0,
            device_bytes,
            zones: vec![0; ZONES],
        }
    }

    pub(super) fn add(&mut self, op: Op, row: &Row) {
        let set = match op {
            Op::Read => &mut self.reads,
            Op::Write | Op::Zeroes => &mut self.writes,
            _ => return,
        };
        if row.sectors == 0 {
            return;
        }
        let first = row.sector / BLOCK_SECTORS;
        let last = (row.end().saturating_sub(1) / BLOCK_SECTORS).min(first.saturating_add(MOST_BLOCKS));
        set.add(first, last);
        self.touches += last - first + 1;
        self.first = self.first.min(first);
        self.last = self.last.max(last);
        if let Some(bytes) = self.device_bytes {
            let zone = u128::from(row.sector) * u128::from(crate::SECTOR) * ZONES as u128 / u128::from(bytes);
            let zone = usize::try_from(zone).unwrap_or(ZONES).min(ZONES - 1);
            self.zones[zone] += 1;
        }
    }

    pub(super) fn finish(mut self) -> Footprint {
        let bytes = |blocks: u64| blocks.saturating_mul(BLOCK_SECTORS * crate::SECTOR);
        self.reads.settle();
        self.writes.settle();
        let is_least = self.reads.is_full || self.writes.is_full;
        let (reads, writes) = (self.reads.set, self.writes.set);
        let distinct = reads.union_len(&writes);
        let span = if self.touches == 0 { 0 } else { self.last - self.first + 1 };
        self.zones.sort_unstable_by(|a, b| b.cmp(a));
        let all: u64 = self.zones.iter().sum();
        let mut seen = 0;
        let half = self.zones.iter().position(|zone| {
            seen += zone;
            seen * 2 >= all
        });
        Footprint {
            block_bytes: bytes(1),
            is_least,
            bytes: bytes(distinct),
            read_bytes: bytes(reads.len()),
            write_bytes: bytes(writes.len()),
            span_bytes: bytes(span),
            reuse: share(self.touches, distinct),
            half_in: half.filter(|_| all > 0).map(|zones| (zones + 1) as f64 / ZONES as f64),
        }
    }
}

#[test]
fn blocks_count_once_however_often_they_are_touched() {
    let mut touched = Touched::new(Some(1 << 30));
    let row = |sector, sectors| Row { sector, sectors, ..Row::default() };
    for _ in 0..3 {
        touched.add(Op::Read, &row(0, 16));
    }
    touched.add(Op::Write, &row(8, 8));
    touched.add(Op::Write, &row((1 << 21) - 9, 2));
    touched.add(Op::Discard, &row(0, 1 << 20));
    let told = touched.finish();
    assert_eq!((told.read_bytes, told.write_bytes, told.bytes), (8192, 12_288, 16_384));
    assert_eq!(told.span_bytes, 1 << 30);
    assert!((told.reuse - 9.0 / 4.0).abs() < 1e-9 && told.half_in == Some(1.0 / 1024.0));
    assert_eq!(Touched::new(None).finish().half_in, None);
}
