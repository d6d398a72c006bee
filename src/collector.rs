//! The collector: adds the workers' blocks up, to the rows of the session file and to the totals of the run.
//!
//! For: everything between a worker's block and a frame. Not for: writing frames, nor conclusions.

use engine::link::Block;
use engine::workers::Who;
use model::histogram::Histogram;
use model::job::{Kind, Phase, Stream};
use model::record::{Bucket, Cell, Interval, Intervals, Issued, KindEnd, LaneEnd, StreamEnd};
use std::collections::BTreeMap;

/// Most rows kept per second of a run: with about 100 bytes each they stay within the 4 KiB/s of a session file.
const ROWS_PER_SECOND: u64 = 32;

/// Sums of one run.
#[derive(Debug)]
pub struct Collector {
    streams: Vec<StreamEnd>,
    /// From the first to the last of each stream that was added, in ns since the run's start.
    spans: Vec<Option<(u64, u64)>>,
    rows: BTreeMap<(usize, u64), Row>,
    interval_ns: u64,
    operations: u64,
    /// By stream: length of the stretches of each worker, where its workers are told apart.
    each_worker: Vec<Option<u64>>,
}

/// A row that may still grow: blocks of several workers that begin in the same interval of the grid.
#[derive(Debug, Default)]
struct Row {
    start_ns: u64,
    end_ns: u64,
    depth_ns: u64,
    kinds: BTreeMap<Kind, (u64, Histogram)>,
}

impl Collector {
    /// For a run with so many streams, cut into intervals of this length.
    pub fn new(streams: usize, interval_ns: u64) -> Self {
        let spans = vec![None; streams];
        let streams = (0..streams).map(|stream| StreamEnd { stream, ..StreamEnd::default() }).collect();
        let interval_ns = interval_ns.max(1);
        Self { streams, spans, rows: BTreeMap::new(), interval_ns, operations: 0, each_worker: Vec::new() }
    }

    /// For the streams of a phase, of which some may tell their workers apart.
    pub fn for_phase(phase: &Phase, interval_ns: u64) -> Self {
        // Where workers tell each operation apart, blocks need not.
        let by_block = |s: &Stream| s.each_worker_ns.filter(|_| s.apart_ns().is_none());
        let each_worker = phase.streams.iter().map(by_block).collect();
        Self { each_worker, ..Self::new(phase.streams.len(), interval_ns) }
    }

    /// Adds a block.
    pub fn add(&mut self, who: Who, block: &Block) {
        let Some(stream) = self.streams.get_mut(who.stream) else { return };
        // What a failure cut off has no end.
        let end_ns = block.end_ns.max(block.start_ns);
        let span = self.spans[who.stream].get_or_insert((block.start_ns, end_ns));
        *span = (span.0.min(block.start_ns), span.1.max(end_ns));
        let from_ns = span.0;
        let middle = block.start_ns / 2 + end_ns / 2;
        if let Some(every_ns) = self.each_worker.get(who.stream).copied().flatten() {
            let bucket = (every_ns > 0).then(|| middle.saturating_sub(from_ns) / every_ns);
            add_lanes(&mut stream.lanes, who.worker, block, bucket);
        }
        let row = self
            .rows
            .entry((who.stream, middle / self.interval_ns))
            .or_insert_with(|| Row { start_ns: block.start_ns, ..Row::default() });
        row.start_ns = row.start_ns.min(block.start_ns);
        row.end_ns = row.end_ns.max(end_ns);
        row.depth_ns += block.depth_ns;
        stream.depth_ns += block.depth_ns;
        stream.submit.merge(&block.submit);
        for lane in &block.lanes {
            for (kind, tally) in Kind::ALL.into_iter().zip(&lane.kinds).filter(|(_, t)| !t.latency.is_empty())
            {
                self.operations += tally.latency.count();
                let end: &mut KindEnd = stream.kinds.entry(kind).or_default();
                end.bytes += tally.bytes;
                end.latency.merge(&tally.latency);
                if let Some(open) = &lane.open {
                    let parts = end.open.get_or_insert_default();
                    parts.service.merge(&open[kind as usize].service);
                    parts.lateness.merge(&open[kind as usize].lateness);
                }
                let (bytes, latency) = row.kinds.entry(kind).or_default();
                *bytes += tally.bytes;
                latency.merge(&tally.latency);
            }
        }
    }

    /// Length of the intervals that the run is cut into, in ns.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Operations counted so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// 99th percentile of the latencies of all reads, writes and trims counted so far, in ns; `None` where too few support one.
    pub fn p99_ns(&self) -> Option<u64> {
        let mut all = Histogram::new();
        let kinds = self.streams.iter().flat_map(|s| &s.kinds).filter(|(kind, _)| **kind != Kind::Sync);
        kinds.for_each(|(_, end)| all.merge(&end.latency));
        all.supported_quantile_ns(0.99)
    }

    /// Takes the rows that lie wholly before `until_ns` and can grow no more, merging neighbours to keep the file small.
    pub fn take_rows(&mut self, until_ns: u64) -> Option<Intervals> {
        let old: Vec<_> = self.rows.iter().filter(|(_, r)| r.end_ns < until_ns).map(|(k, _)| *k).collect();
        let mut rows: Vec<(usize, Row)> =
            old.into_iter().filter_map(|k| self.rows.remove(&k).map(|r| (k.0, r))).collect();
        let spans = rows.iter().map(|(_, r)| r.start_ns).min()?..rows.iter().map(|(_, r)| r.end_ns).max()?;
        let seconds = (spans.end - spans.start) as f64 / 1e9;
        let most = ((seconds * ROWS_PER_SECOND as f64) as usize).max(ROWS_PER_SECOND as usize);
        let before = rows.len();
        while rows.len() > most {
            let longer = rows.len();
            rows = merge_neighbours(rows);
            // Rows of as many streams as there are rows have no neighbours.
            if rows.len() == longer {
                break;
            }
        }
        let merged = (before - rows.len()) as u64;
        Some(Intervals { rows: rows.into_iter().map(|(stream, row)| row.close(stream)).collect(), merged })
    }

    /// The totals, one per stream.
    pub fn finish(self) -> Vec<StreamEnd> {
        self.streams
    }

    /// The totals as far as they have come. What was handed over is what completed, since workers tell more only when they end.
    pub fn so_far(&self) -> Vec<StreamEnd> {
        let issued = |end: &KindEnd| Issued {
            ops: end.latency.count(),
            bytes: end.bytes,
            max_ns: end.latency.max_ns().unwrap_or(0),
            ..Issued::default()
        };
        let stream = |(stream, span): (&StreamEnd, &Option<(u64, u64)>)| StreamEnd {
            window_ns: span.map_or(0, |(from, to)| to - from),
            issued: stream.kinds.iter().map(|(kind, end)| (*kind, issued(end))).collect(),
            ..stream.clone()
        };
        self.streams.iter().zip(&self.spans).map(stream).collect()
    }

    /// The totals while they still grow.
    pub fn streams_mut(&mut self) -> &mut [StreamEnd] {
        &mut self.streams
    }
}

/// Adds a block to what its worker did on each of its targets, as the stretch of this number.
fn add_lanes(lanes: &mut Vec<LaneEnd>, worker: u32, block: &Block, bucket: Option<u64>) {
    for (lane, tallies) in (0..).zip(&block.lanes) {
        let known = lanes.iter().position(|l| (l.worker, l.lane) == (worker, lane));
        let at = known.unwrap_or_else(|| {
            let at = lanes.partition_point(|l| (l.worker, l.lane) < (worker, lane));
            lanes.insert(at, LaneEnd { worker, lane, ..LaneEnd::default() });
            at
        });
        for (kind, tally) in Kind::ALL.into_iter().zip(&tallies.kinds).filter(|(_, t)| !t.latency.is_empty())
        {
            let end = lanes[at].kinds.entry(kind).or_default();
            end.bytes += tally.bytes;
            end.latency.merge(&tally.latency);
            let Some(number) = bucket.and_then(|number| usize::try_from(number).ok()) else { continue };
            if end.course.len() <= number {
                end.course.resize(number + 1, Bucket::default());
            }
            end.course[number] = end.course[number].plus(Bucket::from_histogram(&tally.latency));
        }
    }
}

/// Merges each row with the next of its stream, two and two.
fn merge_neighbours(rows: Vec<(usize, Row)>) -> Vec<(usize, Row)> {
    let mut out: Vec<(usize, Row)> = Vec::with_capacity(rows.len() / 2 + 1);
    let mut open = false;
    for (stream, row) in rows {
        match out.last_mut() {
            Some((last, into)) if open && *last == stream => {
                into.absorb(row);
                open = false;
            }
            _ => {
                out.push((stream, row));
                open = true;
            }
        }
    }
    out
}

impl Row {
    fn absorb(&mut self, other: Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.depth_ns += other.depth_ns;
        for (kind, (bytes, latency)) in other.kinds {
            let mine = self.kinds.entry(kind).or_default();
            mine.0 += bytes;
            mine.1.merge(&latency);
        }
    }

    fn close(self, stream: usize) -> Interval {
        let cell = |(bytes, h): &(u64, Histogram)| {
            let at = |q| h.quantile_ns(q).unwrap_or(0);
            Cell(h.count(), *bytes, at(0.5), at(0.99), h.max_ns().unwrap_or(0))
        };
        let cells = self.kinds.iter().map(|(kind, k)| (*kind, cell(k))).collect();
        let Self { start_ns, end_ns, depth_ns, .. } = self;
        Interval { stream, start_ns, end_ns, depth_ns, cells }
    }
}

#[cfg(test)]
fn block(start_ns: u64, end_ns: u64, ops: u64) -> Block {
    let mut block = *Block::new(1, false);
    (block.start_ns, block.end_ns, block.depth_ns) = (start_ns, end_ns, end_ns.saturating_sub(start_ns));
    for _ in 0..ops {
        block.lanes[0].kinds[0].latency.record(1000);
        block.lanes[0].kinds[0].bytes += 4096;
    }
    block
}

#[test]
fn blocks_of_workers_share_rows_and_totals_lose_nothing() {
    let mut collector = Collector::new(1, 10);
    for worker in 0..2 {
        for i in 0..200 {
            collector.add(Who { worker, stream: 0 }, &block(i * 10 + 1, i * 10 + 10, 3));
        }
    }
    let so_far = collector.so_far();
    assert_eq!((so_far[0].window_ns, so_far[0].issued[&Kind::Read].ops), (1999, 1200));
    let rows = collector.take_rows(u64::MAX).map_or(0, |i| {
        assert_eq!(i.rows.iter().map(|r| r.cells[&Kind::Read].0).sum::<u64>(), 1200);
        assert!(i.merged > 0);
        i.rows.len()
    });
    assert!(rows <= ROWS_PER_SECOND as usize, "{rows}");
    let totals = collector.finish();
    assert_eq!(totals[0].kinds[&Kind::Read].latency.count(), 1200);
    assert_eq!(totals[0].kinds[&Kind::Read].bytes, 1200 * 4096);
}

#[test]
fn workers_are_told_apart_where_that_is_asked_for() {
    use model::job::{Access, Pattern};
    let mut stream = Stream::plain(Access::plain(Pattern::Random, 4096, 100), 1, 2, "null");
    stream.each_worker_ns = Some(20_000_000);
    let phase = Phase { warmup_ns: 0, time_ns: 40_000_000, cooldown_ns: 0, streams: vec![stream] };
    let mut collector = Collector::for_phase(&phase, 10_000_000);
    for (worker, ops) in [(1, 5), (0, 3)] {
        for i in 0..4 {
            collector.add(Who { worker, stream: 0 }, &block(i * 10_000_000 + 1, (i + 1) * 10_000_000, ops));
        }
    }
    let lanes = collector.finish().remove(0).lanes;
    let of = |lane: &LaneEnd| {
        let read = &lane.kinds[&Kind::Read];
        let course: Vec<u64> = read.course.iter().map(|b| b.0).collect();
        (lane.worker, lane.lane, read.bytes, read.latency.count(), course)
    };
    let all: Vec<_> = lanes.iter().map(of).collect();
    assert_eq!(all, [(0, 0, 12 * 4096, 12, vec![6, 6]), (1, 0, 20 * 4096, 20, vec![10, 10])]);
}

#[test]
fn a_block_that_a_failure_cut_off_has_no_length_and_loses_no_operation() {
    let mut collector = Collector::new(1, 10);
    collector.add(Who { worker: 0, stream: 0 }, &block(75, 0, 2));
    let rows = collector.take_rows(u64::MAX).map(|i| i.rows).unwrap_or_default();
    let spans: Vec<_> = rows.iter().map(|r| (r.start_ns, r.end_ns, r.cells[&Kind::Read].0)).collect();
    assert_eq!(spans, [(75, 75, 2)]);
}
