//! What follows what: sequential requests, their runs, and how many go on at once.
//!
//! For: requests of one direction in the order of their issue. Not for: offsets as such.
//!
//! A request is sequential where it starts at the end of one of the last 64 of its direction. So streams that are read side by side are
//! seen as what they are, as long as there are no more of them.

use crate::profile::share;
use crate::row::Row;
use model::captured::{Footprint, Op, Sequence};
use model::histogram::Histogram;
use roaring::RoaringTreemap;

/// Requests of a run from which it counts as a stream.
const STREAM: u64 = 3;

/// The end of a request that another one may begin at.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    requests: u64,
    bytes: u64,
    /// Whether one did.
    continued: bool,
}

/// Sequences of one direction.
#[derive(Debug)]
pub(crate) struct Following {
    last: Ends,
    ends: [End; BACK],
    requests: u64,
    bytes: u64,
    sequential: u64,
    sequential_bytes: u64,
    run_requests: Histogram,
    run_bytes: Histogram,
    alive: u64,
    alive_sum: u64,
    alive_most: u64,
}

impl Default for Following {
    fn default() -> Self {
        Self {
            last: Ends::default(),
            ends: [End::default(); BACK],
            requests: 0,
            bytes: 0,
            sequential: 0,
            sequential_bytes: 0,
            run_requests: Histogram::new(),
            run_bytes: Histogram::new(),
            alive: 0,
            alive_sum: 0,
            alive_most: 0,
        }
    }
}

/// Where a request stands in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    /// Its number in it, from 1.
    pub(crate) number: u64,
    /// How many requests ago the one was that it follows; 0 where it follows none.
    pub(crate) back: u64,
}

impl Following {
    /// Adds a request, and says what it follows.
    pub(crate) fn add(&mut self, row: &Row) -> Followed {
        let mut back = 0;
        let mut run = End { requests: 1, bytes: row.bytes(), continued: false };
        self.requests += 1;
        self.bytes += row.bytes();
        if let Some(at) = self.last.find(row.sector) {
            back = self.last.back(at);
            let before = &mut self.ends[at];
            self.sequential += 1;
            self.sequential_bytes += row.bytes();
            run.requests += before.requests;
            run.bytes += before.bytes;
            // What is continued a second time is a stream of its own.
            let goes_on = before.requests >= STREAM && !before.continued;
            self.alive += u64::from(run.requests >= STREAM && !goes_on);
            before.continued = true;
        }
        let at = self.last.push(row.end());
        self.close(at);
        self.ends[at] = run;
        self.alive_sum += self.alive;
        self.alive_most = self.alive_most.max(self.alive);
        Followed { number: run.requests, back }
    }

    /// Forgets an end; where nothing began there a run is over.
    fn close(&mut self, at: usize) {
        let end = std::mem::take(&mut self.ends[at]);
        if end.continued || end.requests < 2 {
            return;
        }
        self.run_requests.record(end.requests);
        self.run_bytes.record(end.bytes);
        if end.requests >= STREAM {
            self.alive = self.alive.saturating_sub(1);
        }
    }

    pub(super) fn finish(mut self) -> Option<Sequence> {
        if self.requests == 0 {
            return None;
        }
        for at in 0..BACK {
            self.close(at);
        }
        let figures = |of: &Histogram| {
            let of_all = [of.mean_ns(), of.quantile_ns(0.5).map(|m| m as f64), of.max_ns().map(|m| m as f64)];
            of_all.map(|figure| figure.unwrap_or(0.0))
        };
        Some(Sequence {
            share: share(self.sequential, self.requests),
            byte_share: share(self.sequential_bytes, self.bytes),
            runs: self.run_requests.count(),
            run_requests: figures(&self.run_requests),
            run_bytes: figures(&self.run_bytes),
            streams: [share(self.alive_sum, self.requests), self.alive_most as f64],
        })
    }
}

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

/// Requests that are looked back at: streams that are read side by side are seen as what they are, as long as there are no more of them.
pub(crate) const BACK: usize = 64;

/// The ends, in sectors, and which is the oldest.
#[derive(Debug)]
pub(crate) struct Ends {
    sectors: [u64; BACK],
    oldest: usize,
}

impl Default for Ends {
    fn default() -> Self {
        // Nothing starts there.
        Self { sectors: [u64::MAX; BACK], oldest: 0 }
    }
}

impl Ends {
    /// Which of the last requests ended there.
    pub(crate) fn find(&self, sector: u64) -> Option<usize> {
        // Mostly none did: all are compared first, several at once.
        let found: u64 = self.sectors.iter().map(|end| u64::from(*end == sector)).sum();
        if found > 0 { self.sectors.iter().position(|end| *end == sector) } else { None }
    }

    /// How many requests ago one ended that stands at this place: 1 for the last.
    pub(crate) fn back(&self, at: usize) -> u64 {
        ((self.oldest + BACK - at - 1) % BACK) as u64 + 1
    }

    /// Puts an end in the place of the oldest one, and gives that place.
    pub(crate) fn push(&mut self, end: u64) -> usize {
        let at = self.oldest;
        self.sectors[at] = end;
        self.oldest = (at + 1) % BACK;
        at
    }
}

#[test]
fn two_files_read_side_by_side_are_two_runs_and_random_requests_none() {
    let row = |sector| Row { sector, sectors: 8, ..Row::default() };
    let mut side_by_side = Following::default();
    for at in 0..100 {
        side_by_side.add(&row(at * 8));
        side_by_side.add(&row(1_000_000 + at * 8));
    }
    let told = side_by_side.finish().unwrap_or_default();
    assert_eq!((told.share, told.runs, told.run_requests), (0.99, 2, [100.0; 3]));
    assert_eq!(told.streams[1].to_bits(), 2.0_f64.to_bits());
    let mut random = Following::default();
    for at in 0..500_u64 {
        random.add(&row(at.wrapping_mul(7919) % 4096 * 16));
    }
    let told = random.finish().unwrap_or_default();
    assert_eq!((told.share, told.runs, told.streams), (0.0, 0, [0.0; 2]));
    assert_eq!(Following::default().finish(), None);
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

#[test]
fn an_end_is_known_until_as_many_others_came_behind_it() {
    let mut ends = Ends::default();
    assert_eq!(ends.find(8), None);
    assert_eq!(ends.push(8), 0);
    for end in 100..100 + BACK as u64 - 1 {
        ends.push(end);
    }
    assert_eq!((ends.find(8), ends.find(100)), (Some(0), Some(1)));
    assert_eq!((ends.back(0), ends.back(BACK - 1)), (BACK as u64, 1));
    assert_eq!(ends.push(7), 0);
    assert_eq!(ends.find(8), None);
}
