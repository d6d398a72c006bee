//! Where requests went: sequential runs, and the distinct bytes that were touched.
//!
//! 1. A request is sequential if it begins where one of the last 64 requests of its direction ended. So up to
//!    64 interleaved streams are recognised.
//! 2. A run is a request and the sequential requests that continue it. A stream is a run of three requests or
//!    more. Several streams may be active at the same time.
//! 3. The footprint is a set of 4 KiB blocks (Roaring bitmaps). The set remains small if few or nearly all
//!    blocks are touched.

use crate::profile::share;
use model::captured::{Footprint, Op, Sequence};
use model::histogram::Histogram;
use roaring::RoaringTreemap;
use trace::row::{Ends, RECENT_ENDS, Row};

/// Minimum number of requests for a run to count as a stream.
const MIN_STREAM_REQUESTS: u64 = 3;

/// The end of a request, where another request may begin.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    requests: u64,
    bytes: u64,
    /// Whether a later request began at this end.
    continued: bool,
}

/// Sequence statistics of one direction.
#[derive(Debug)]
pub(crate) struct SequenceCounter {
    last: Ends,
    ends: [End; RECENT_ENDS],
    requests: u64,
    bytes: u64,
    sequential: u64,
    sequential_bytes: u64,
    run_requests: Histogram,
    run_bytes: Histogram,
    active_streams: u64,
    active_streams_sum: u64,
    active_streams_max: u64,
}

impl Default for SequenceCounter {
    fn default() -> Self {
        Self {
            last: Ends::default(),
            ends: [End::default(); RECENT_ENDS],
            requests: 0,
            bytes: 0,
            sequential: 0,
            sequential_bytes: 0,
            run_requests: Histogram::new(),
            run_bytes: Histogram::new(),
            active_streams: 0,
            active_streams_sum: 0,
            active_streams_max: 0,
        }
    }
}

/// The position of a request in its sequential run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunPosition {
    /// Position of the request in its run, from 1.
    pub(crate) number: u64,
    /// How many requests ago the previous request of the run was issued; 0 for the first one.
    pub(crate) requests_ago: u64,
}

impl SequenceCounter {
    /// Adds a request, and returns its position in its run.
    pub(crate) fn add(&mut self, row: &Row) -> RunPosition {
        let mut requests_ago = 0;
        let mut run = End { requests: 1, bytes: row.bytes(), continued: false };
        self.requests += 1;
        self.bytes += row.bytes();
        if let Some(at) = self.last.find(row.sector) {
            let before = &mut self.ends[at];
            self.sequential += 1;
            self.sequential_bytes += row.bytes();
            // Only the first request that begins at an end continues the run. Another one, such as a block that is written
            // again, begins a run of its own.
            if !before.continued {
                requests_ago = self.last.requests_ago(at);
                run.requests += before.requests;
                run.bytes += before.bytes;
                let is_new = before.requests < MIN_STREAM_REQUESTS;
                self.active_streams += u64::from(run.requests >= MIN_STREAM_REQUESTS && is_new);
            }
            before.continued = true;
        }
        let at = self.last.push(row.end());
        self.close(at);
        self.ends[at] = run;
        self.active_streams_sum += self.active_streams;
        self.active_streams_max = self.active_streams_max.max(self.active_streams);
        RunPosition { number: run.requests, requests_ago }
    }

    /// Removes the end of a request. If no request began there, the run of this request is complete. Records
    /// runs of at least two requests.
    fn close(&mut self, at: usize) {
        let end = std::mem::take(&mut self.ends[at]);
        if end.continued || end.requests < 2 {
            return;
        }
        self.run_requests.record(end.requests);
        self.run_bytes.record(end.bytes);
        if end.requests >= MIN_STREAM_REQUESTS {
            self.active_streams = self.active_streams.saturating_sub(1);
        }
    }

    pub(super) fn finish(mut self) -> Option<Sequence> {
        if self.requests == 0 {
            return None;
        }
        for at in 0..RECENT_ENDS {
            self.close(at);
        }
        let figures = |histogram: &Histogram| {
            let all = [
                histogram.mean_ns(),
                histogram.quantile_ns(0.5).map(|m| m as f64),
                histogram.max_ns().map(|m| m as f64),
            ];
            all.map(|figure| figure.unwrap_or(0.0))
        };
        Some(Sequence {
            share: share(self.sequential, self.requests),
            byte_share: share(self.sequential_bytes, self.bytes),
            runs: self.run_requests.count(),
            run_requests: figures(&self.run_requests),
            run_bytes: figures(&self.run_bytes),
            streams: [share(self.active_streams_sum, self.requests), self.active_streams_max as f64],
        })
    }
}

/// A block has 4 KiB. Smaller blocks would need more memory, and devices rarely have them.
const BLOCK_SECTORS: u64 = 8;
/// Number of zones of a device.
const ZONES: usize = 1024;
/// Maximum number of blocks per request. No request is larger than 4 GiB.
const MAX_REQUEST_BLOCKS: u64 = 1 << 20;
/// Maximum size of a set in bytes. A full set takes no further blocks, so the figures become lower bounds.
const MAX_SET_BYTES: usize = 64 << 20;
/// Number of added ranges between two checks of the set's size.
const RANGES_BETWEEN_CHECKS: u32 = 256;
/// Minimum number of blocks of a request for adding them as a range.
const MIN_RANGE_BLOCKS: u64 = 16;
/// Maximum number of blocks that wait to be added together.
const MAX_WAITING_BLOCKS: usize = 1 << 15;

/// A set of blocks. New blocks are collected, sorted and added together, because adding single blocks would be slow: each would touch
/// another part of memory.
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
        if last - first >= MIN_RANGE_BLOCKS {
            self.set.insert_range(first..=last);
            self.ranges = self.ranges.wrapping_add(1);
            if self.ranges.is_multiple_of(RANGES_BETWEEN_CHECKS) {
                self.settle();
            }
            return;
        }
        self.waiting.extend(first..=last);
        if self.waiting.len() >= MAX_WAITING_BLOCKS {
            self.settle();
        }
    }

    fn settle(&mut self) {
        self.waiting.sort_unstable();
        self.waiting.dedup();
        // The blocks are in order, so the map refuses none.
        if let Ok(new) = RoaringTreemap::from_sorted_iter(self.waiting.drain(..)) {
            self.set |= new;
        }
        self.is_full = self.set.serialized_size() > MAX_SET_BYTES;
    }
}

/// Touched blocks.
#[derive(Debug, Default)]
pub(super) struct FootprintCounter {
    reads: Blocks,
    writes: Blocks,
    /// Sum over the requests: the number of blocks that each touches.
    touches: u64,
    /// The lowest touched block.
    first: u64,
    /// The highest touched block.
    last: u64,
    device_bytes: Option<u64>,
    /// Number of requests that begin in each zone of the device.
    zones: Vec<u64>,
}

impl FootprintCounter {
    pub(super) fn new(device_bytes: Option<u64>) -> Self {
        Self { first: u64::MAX, device_bytes, zones: vec![0; ZONES], ..Self::default() }
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
        let last =
            (row.end().saturating_sub(1) / BLOCK_SECTORS).min(first.saturating_add(MAX_REQUEST_BLOCKS));
        set.add(first, last);
        self.touches += last - first + 1;
        self.first = self.first.min(first);
        self.last = self.last.max(last);
        if let Some(bytes) = self.device_bytes {
            let zone = u128::from(row.sector) * u128::from(trace::SECTOR) * ZONES as u128 / u128::from(bytes);
            let zone = usize::try_from(zone).unwrap_or(ZONES).min(ZONES - 1);
            self.zones[zone] += 1;
        }
    }

    pub(super) fn finish(mut self) -> Footprint {
        let bytes = |blocks: u64| blocks.saturating_mul(BLOCK_SECTORS * trace::SECTOR);
        self.reads.settle();
        self.writes.settle();
        let is_lower_bound = self.reads.is_full || self.writes.is_full;
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
            is_lower_bound,
            bytes: bytes(distinct),
            read_bytes: bytes(reads.len()),
            write_bytes: bytes(writes.len()),
            span_bytes: bytes(span),
            reuse: share(self.touches, distinct),
            half_of_requests_in: half.filter(|_| all > 0).map(|zones| (zones + 1) as f64 / ZONES as f64),
        }
    }
}

#[test]
fn two_interleaved_files_are_two_runs_and_random_requests_none() {
    let row = |sector| Row { sector, sectors: 8, ..Row::default() };
    let mut side_by_side = SequenceCounter::default();
    for at in 0..100 {
        side_by_side.add(&row(at * 8));
        side_by_side.add(&row(1_000_000 + at * 8));
    }
    let sequence = side_by_side.finish().unwrap_or_default();
    assert_eq!((sequence.share, sequence.runs, sequence.run_requests), (0.99, 2, [100.0; 3]));
    assert_eq!(sequence.streams[1].to_bits(), 2.0_f64.to_bits());
    let mut random = SequenceCounter::default();
    for at in 0..500_u64 {
        random.add(&row(at.wrapping_mul(7919) % 4096 * 16));
    }
    let sequence = random.finish().unwrap_or_default();
    assert_eq!((sequence.share, sequence.runs, sequence.streams), (0.0, 0, [0.0; 2]));
    // Each block is written twice, as the last block of a log is: one run, and no request in two runs.
    let mut again = SequenceCounter::default();
    for at in 0..1000 {
        again.add(&row(at * 8));
        again.add(&row(at * 8));
    }
    let sequence = again.finish().unwrap_or_default();
    assert!(sequence.runs as f64 * sequence.run_requests[0] <= 2000.0, "{sequence:?}");
    assert!(sequence.streams[1] <= 2.0, "{sequence:?}");
    assert_eq!(SequenceCounter::default().finish(), None);
}

#[test]
fn touched_blocks_count_once() {
    let mut touched = FootprintCounter::new(Some(1 << 30));
    let row = |sector, sectors| Row { sector, sectors, ..Row::default() };
    for _ in 0..3 {
        touched.add(Op::Read, &row(0, 16));
    }
    touched.add(Op::Write, &row(8, 8));
    touched.add(Op::Write, &row((1 << 21) - 9, 2));
    touched.add(Op::Discard, &row(0, 1 << 20));
    let footprint = touched.finish();
    assert_eq!((footprint.read_bytes, footprint.write_bytes, footprint.bytes), (8192, 12_288, 16_384));
    assert_eq!(footprint.span_bytes, 1 << 30);
    assert!(
        (footprint.reuse - 9.0 / 4.0).abs() < 1e-9 && footprint.half_of_requests_in == Some(1.0 / 1024.0)
    );
    assert_eq!(FootprintCounter::new(None).finish().half_of_requests_in, None);
}
