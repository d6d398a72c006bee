//! Replays: the operations of a capture, and what each waits for. They are computed from rows, in memory that does not grow with the
//! number of rows.
//!
//! 1. `Operations` turns rows into reads, writes, trims and syncs with their original times. A
//!    write with a preceding flush (REQ_PREFLUSH) becomes two operations: the sync, and the write as
//!    soon as the sync is done. On request-based devices this flush lasts from the queueing of the bio
//!    to the issue of the write. If the capture shows which tasks requested flushes, the replay
//!    issues these flushes instead of those that the device received.
//! 2. [`Scan`], the first pass, measures the load: sizes, touched extents, operations in flight, and the figures that a replay is
//!    compared with. Each task with enough operations gets a lane.
//! 3. [`Steps`], the second pass, decides what each operation waits for: the operation of its lane
//!    that completed last before this one was issued. From that completion to the issue, the replay
//!    waits as long as the capture did.
//! 4. `Dense` removes the gaps between the touched extents and keeps their order, so that the load fits a smaller target.
//!
//! The crate `engine` submits the steps.

use crate::file_requests::merge_ranges;
use model::captured::{Op, Origin, RowUnit};
use model::histogram::Histogram;
use model::job::{Changes, Kind, Original, OriginalKind, ReplayPace};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use trace::SECTOR;
use trace::row::{Names, Row, RowKind};

/// Maximum number of queued writes with a flush that were not issued yet. No kernel has more at once.
const MAX_REQUESTED_FLUSHES: usize = 1 << 16;

/// Longest time in ns from the queueing of a write with a flush to its issue, if its completion is unknown. The kernel resets a device
/// that does not answer within this time, so the capture lost the issue of an older write.
const LONGEST_FLUSH_NS: u64 = 60_000_000_000;

/// An operation of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// When the operation began, in ns since the capture began.
    pub(crate) issue_ns: u64,
    /// When the operation completed; `None` if unknown.
    pub(crate) done_ns: Option<u64>,
    /// Latency of this operation, without the flush before it; `None` if unknown. It may be unknown
    /// even if `done_ns` is known.
    pub(crate) latency_ns: Option<u64>,
    /// First sector of the operation.
    pub(crate) sector: u64,
    /// Number of sectors; 0 for a sync.
    pub(crate) sectors: u32,
    /// Read, write, trim or sync.
    pub(crate) kind: Kind,
    /// Whether the write must be stable at completion (FUA).
    pub(crate) is_stable: bool,
    /// Index of the task among the names.
    pub(crate) task: u32,
    /// Whether the previous operation is the flush before this write.
    pub(crate) is_flushed: bool,
}

/// Turns rows into operations.
#[derive(Debug)]
pub(crate) struct Operations {
    /// Whether requested flushes are separate rows.
    flushes_are_rows: bool,
    /// Queued writes with a flush that were not issued yet, as (sector, time of queueing, serial number, time of
    /// completion if known). A sector may have several.
    queued: BTreeSet<(u64, u64, u64, Option<u64>)>,
    /// Serial number that the next queued write with a flush gets.
    next_queued: u64,
    /// Changes to apply to the operations.
    changes: Changes,
    /// Whether the alignment in `changes` also rounds up the sizes. It does not for traces that
    /// have the operations of programs (iolog, MSR).
    sizes_change: bool,
    /// Number of requests that have no corresponding operation.
    pub(crate) left_out: u64,
}

impl Operations {
    pub(crate) fn from_origin(origin: &Origin, changes: &Changes) -> Self {
        let flushes_are_rows = origin.imported.is_none() && origin.unit == RowUnit::Requests;
        let sizes_change = origin.unit != RowUnit::Operations;
        let (queued, next_queued, changes) = (BTreeSet::new(), 0, changes.clone());
        Self { flushes_are_rows, queued, next_queued, changes, sizes_change, left_out: 0 }
    }

    /// Applies the changes to the first sector and the number of sectors.
    fn placed(&self, sector: u64, sectors: u32) -> (u64, u32) {
        let sector = sector / self.changes.divide.max(1);
        let align = self.changes.align_bytes / SECTOR;
        if align < 2 {
            return (sector, sectors);
        }
        let up = u64::from(sectors).next_multiple_of(align);
        let sectors = if self.sizes_change { u32::try_from(up).unwrap_or(sectors) } else { sectors };
        (sector / align * align, sectors)
    }

    /// Passes on the operations of a row: none, one, or a sync and a write.
    pub(crate) fn add(&mut self, row: &Row, names: &Names, each: &mut dyn FnMut(&Operation)) {
        let Some(flags) = names.flags_at(row.flags) else { return };
        let kind = match (flags.kind, flags.op(row.sectors)) {
            (RowKind::RequestedFlush, _) if row.sectors == 0 => Kind::Sync,
            (RowKind::RequestedFlush, _) => {
                if flags.has_preflush() && self.queued.len() < MAX_REQUESTED_FLUSHES {
                    let done_ns = row.latency_ns.map(|ns| row.issue_ns.saturating_add(ns));
                    self.queued.insert((row.sector, row.issue_ns, self.next_queued, done_ns));
                    self.next_queued += 1;
                }
                return;
            }
            // The request for the flush is a separate row.
            (_, Op::Flush) if self.flushes_are_rows => return,
            (_, Op::Flush) => Kind::Sync,
            (_, Op::Read) => Kind::Read,
            (_, Op::Write) => Kind::Write,
            (_, Op::Discard | Op::Zeroes) => Kind::Trim,
            (_, Op::Other) => {
                self.left_out += 1;
                return;
            }
        };
        let is_sync = kind == Kind::Sync;
        if !is_sync && row.sectors == 0 {
            self.left_out += 1;
            return;
        }
        let skips = |kind| self.changes.skip.contains(&kind);
        let is_flushed = kind == Kind::Write && flags.has_preflush() && !skips(Kind::Sync);
        if skips(kind) {
            return;
        }
        let (sector, sectors) = if is_sync { (0, 0) } else { self.placed(row.sector, row.sectors) };
        if is_flushed {
            each(&self.flush_before(row));
        }
        each(&Operation {
            issue_ns: row.issue_ns,
            done_ns: row.latency_ns.map(|ns| row.issue_ns.saturating_add(ns)),
            latency_ns: row.latency_ns,
            sector,
            sectors,
            kind,
            is_stable: kind == Kind::Write && flags.has_fua(),
            task: row.task,
            is_flushed,
        });
    }

    /// Removes the oldest queued write at the sector of an issued write, and returns when it was queued; `None` if the
    /// capture has none. Also removes queued writes that had completed before this issue, or are older than
    /// [`LONGEST_FLUSH_NS`] without a known completion: the capture lost their own issue.
    fn take_queued(&mut self, row: &Row) -> Option<u64> {
        let until = (row.sector, row.issue_ns, u64::MAX, None);
        loop {
            let oldest = self.queued.range((row.sector, 0, 0, None)..=until).next().copied()?;
            self.queued.remove(&oldest);
            let (_, queued_ns, _, done_ns) = oldest;
            let is_pending = match done_ns {
                Some(done_ns) => done_ns >= row.issue_ns,
                None => row.issue_ns - queued_ns <= LONGEST_FLUSH_NS,
            };
            if is_pending {
                return Some(queued_ns);
            }
        }
    }

    /// Returns the sync for the flush before a write.
    fn flush_before(&mut self, row: &Row) -> Operation {
        let queued_ns = self.take_queued(row).filter(|_| self.flushes_are_rows);
        Operation {
            issue_ns: queued_ns.unwrap_or(row.issue_ns),
            done_ns: Some(row.issue_ns),
            latency_ns: queued_ns.map(|ns| row.issue_ns - ns),
            sector: 0,
            sectors: 0,
            kind: Kind::Sync,
            is_stable: false,
            task: row.task,
            is_flushed: false,
        }
    }
}

/// Minimum number of operations for a task to have its own lane.
const MIN_LANE_OPERATIONS: u64 = 16;
/// If more operations are in flight, this number is counted instead.
const MAX_IN_FLIGHT: usize = 1 << 16;
/// Maximum number of low bits that are 0 in an alignment: alignments above 1 MiB count as 1 MiB.
const MAX_ALIGNMENT_BITS: u32 = 11;

/// Returns the alignment in sectors of offsets and sizes. `bits` is their bitwise OR.
pub(crate) fn alignment_sectors(bits: u64) -> u64 {
    1 << bits.trailing_zeros().min(MAX_ALIGNMENT_BITS)
}

/// Counts operations in flight. Add them in the order of their issue.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// Sum of the operations' times in flight, in ns.
    pub(crate) total_ns: u128,
    /// Maximum number of operations in flight at once.
    pub(crate) depth_max: usize,
    ends: BinaryHeap<Reverse<u64>>,
}

impl InFlight {
    pub(crate) fn add(&mut self, issue_ns: u64, done_ns: u64) {
        self.total_ns += u128::from(done_ns.saturating_sub(issue_ns));
        while self.ends.peek().is_some_and(|end| end.0 <= issue_ns) {
            self.ends.pop();
        }
        if self.ends.len() < MAX_IN_FLIGHT {
            self.ends.push(Reverse(done_ns));
        }
        self.depth_max = self.depth_max.max(self.ends.len());
    }
}

/// Figures of one kind of operation.
#[derive(Debug, Default)]
struct KindFigures {
    operations: u64,
    bytes: u64,
    least: Option<u64>,
    most: u64,
    /// Number of operations that begin where the previous one of this kind ended.
    sequential: u64,
    /// End of the last operation; `None` before the first one.
    end_sector: Option<u64>,
    latency: Histogram,
}

/// The first pass over a capture: measures its load.
#[derive(Debug)]
pub struct Scan {
    operations: Operations,
    figures: Figures,
}

#[derive(Debug, Default)]
struct Figures {
    first_ns: Option<u64>,
    last_ns: u64,
    kinds: [KindFigures; Kind::ALL.len()],
    in_flight: InFlight,
    extents: Extents,
    end_sector: u64,
    /// Bitwise OR of all sectors and sizes. The lowest set bit is their alignment.
    bits: u64,
    has_stable: bool,
    /// Number of operations of each task, by task index.
    operations_of_task: Vec<u64>,
}

/// The load of a capture, as the first pass measured it.
#[derive(Debug)]
pub struct Load {
    figures: Figures,
    left_out: u64,
    /// The lane of each task, by task index.
    lanes: Vec<u16>,
    lane_count: u32,
    dense: Dense,
}

impl Scan {
    /// Starts the first pass over a capture with this header and these changes.
    pub fn new(origin: &Origin, changes: &Changes) -> Self {
        Self { operations: Operations::from_origin(origin, changes), figures: Figures::default() }
    }

    /// Adds the rows of a block.
    pub fn add(&mut self, rows: &[Row], names: &Names) {
        for row in rows {
            self.operations.add(row, names, &mut |operation| self.figures.add(operation));
        }
    }

    /// Returns the load with at most `most_lanes` lanes. Tasks without their own lane share the first one.
    pub fn finish(self, most_lanes: u32) -> Load {
        let mut figures = self.figures;
        let mut by_count: Vec<(u64, usize)> =
            figures.operations_of_task.iter().enumerate().map(|(task, count)| (*count, task)).collect();
        by_count.sort_unstable_by_key(|(count, task)| (Reverse(*count), *task));
        let mut lanes = vec![0; figures.operations_of_task.len()];
        let own = by_count.iter().take_while(|(count, _)| *count >= MIN_LANE_OPERATIONS);
        let mut lane_count = 1;
        for (lane, (_, task)) in (1_u16..).zip(own.take(most_lanes.saturating_sub(1) as usize)) {
            lanes[*task] = lane;
            lane_count = u32::from(lane) + 1;
        }
        let dense = std::mem::take(&mut figures.extents).dense();
        Load { figures, left_out: self.operations.left_out, lanes, lane_count, dense }
    }
}

impl Figures {
    fn add(&mut self, operation: &Operation) {
        let Operation { issue_ns, done_ns, latency_ns, sector, sectors, kind, .. } = *operation;
        self.first_ns = Some(self.first_ns.map_or(issue_ns, |first| first.min(issue_ns)));
        self.last_ns = self.last_ns.max(done_ns.unwrap_or(issue_ns));
        let bytes = u64::from(sectors) * SECTOR;
        let seen = &mut self.kinds[kind as usize];
        seen.operations += 1;
        seen.bytes = seen.bytes.saturating_add(bytes);
        seen.least = Some(seen.least.map_or(bytes, |least| least.min(bytes)));
        seen.most = seen.most.max(bytes);
        if let Some(ns) = latency_ns {
            seen.latency.record(ns);
        }
        if let Some(done_ns) = done_ns {
            self.in_flight.add(issue_ns, done_ns);
        }
        let end = sector.saturating_add(u64::from(sectors));
        if kind != Kind::Sync {
            self.end_sector = self.end_sector.max(end);
        }
        if Kind::MOVING.contains(&kind) {
            self.extents.add(sector, sectors);
            self.bits |= sector | u64::from(sectors);
            seen.sequential += u64::from(seen.end_sector.replace(end) == Some(sector));
        }
        self.has_stable |= operation.is_stable;
        let task = operation.task as usize;
        if self.operations_of_task.len() <= task {
            self.operations_of_task.resize(task + 1, 0);
        }
        self.operations_of_task[task] += 1;
    }
}

impl Load {
    /// Returns when the first operation began, in ns since the capture began.
    fn first_ns(&self) -> u64 {
        self.figures.first_ns.unwrap_or(0)
    }

    /// Returns the number of replayed operations.
    pub fn operations(&self) -> u64 {
        self.figures.kinds.iter().map(|kind| kind.operations).sum()
    }

    /// Returns whether any completion time is known.
    pub fn has_completions(&self) -> bool {
        self.figures.in_flight.total_ns > 0
    }

    /// Returns whether the capture has writes that are stable at completion (FUA).
    pub fn has_stable_writes(&self) -> bool {
        self.figures.has_stable
    }

    /// Returns the number of lanes.
    pub fn lanes(&self) -> u32 {
        self.lane_count
    }

    /// Returns the figures of the original load.
    pub fn original(&self) -> Original {
        let figures = &self.figures;
        let elapsed_ns = figures.last_ns.saturating_sub(self.first_ns());
        let original_kind = |kind: Kind| {
            let seen = &figures.kinds[kind as usize];
            let at = |q| seen.latency.supported_quantile_ns(q);
            OriginalKind {
                kind,
                operations: seen.operations,
                bytes: seen.bytes,
                sizes: [seen.least.unwrap_or(0), seen.most],
                p50_ns: at(0.5),
                p99_ns: at(0.99),
            }
        };
        let moved = || Kind::MOVING.into_iter().map(|kind| &figures.kinds[kind as usize]);
        let moving: u64 = moved().map(|seen| seen.operations).sum();
        let sequential: u64 = moved().map(|seen| seen.sequential).sum();
        let known = self.has_completions() && elapsed_ns > 0;
        Original {
            elapsed_ns,
            depth_mean: known.then(|| figures.in_flight.total_ns as f64 / elapsed_ns as f64),
            depth_max: figures.in_flight.depth_max as u32,
            tasks: figures.operations_of_task.iter().filter(|count| **count > 0).count() as u32,
            footprint_bytes: self.dense.sectors.saturating_mul(SECTOR),
            end_bytes: figures.end_sector.saturating_mul(SECTOR),
            align_bytes: (SECTOR * alignment_sectors(figures.bits)) as u32,
            sequential_percent: 100.0 * sequential as f64 / moving.max(1) as f64,
            kinds: Kind::ALL.into_iter().map(original_kind).filter(|kind| kind.operations > 0).collect(),
            left_out: self.left_out,
            ..Original::default()
        }
    }
}

/// Sectors per block. A partly touched block counts as touched, so that 4 KiB alignment is kept.
const BLOCK_SECTORS: u64 = 8;
/// Maximum number of extents. Beyond it, neighbouring extents merge into larger and larger blocks.
const MAX_EXTENTS: usize = 1 << 20;
/// Number of extents that are collected before they are sorted.
const MAX_GATHERED: usize = MAX_EXTENTS * 2;

/// Touched extents.
#[derive(Clone, Debug, Default)]
struct Extents {
    /// Extents as (first block, block after the last); sorted and disjoint after [`Extents::settle`].
    all: Vec<(u64, u64)>,
    /// Number of bits by which blocks were enlarged: each bit doubles the size of a block.
    extra_bits: u32,
}

impl Extents {
    /// Adds an extent.
    fn add(&mut self, sector: u64, sectors: u32) {
        let first = sector / BLOCK_SECTORS;
        let after_last = sector.saturating_add(u64::from(sectors)).div_ceil(BLOCK_SECTORS);
        let (first, after_last) = self.round_to_blocks(first, after_last);
        match self.all.last_mut() {
            // In many loads most extents continue the previous one.
            Some((_, end)) if *end == first => *end = after_last,
            Some((begin, end)) if *begin <= first && after_last <= *end => {}
            _ => self.all.push((first, after_last)),
        }
        if self.all.len() >= MAX_GATHERED {
            self.settle();
        }
    }

    fn round_to_blocks(&self, first: u64, after_last: u64) -> (u64, u64) {
        let mask = (1_u64 << self.extra_bits) - 1;
        (first & !mask, after_last.saturating_add(mask) & !mask)
    }

    /// Sorts the extents, and merges those that touch. If more than [`MAX_EXTENTS`] remain, enlarges them to larger blocks
    /// until few enough remain.
    fn settle(&mut self) {
        self.all = merge_ranges(std::mem::take(&mut self.all));
        while self.all.len() > MAX_EXTENTS {
            self.extra_bits += 1;
            let enlarged =
                self.all.iter().map(|(first, after_last)| self.round_to_blocks(*first, *after_last));
            self.all = merge_ranges(enlarged.collect());
        }
    }

    /// Returns the extents without the gaps between them.
    fn dense(mut self) -> Dense {
        self.settle();
        let mut sum = 0;
        let place = |(first, after_last)| {
            let from = sum;
            sum += after_last - first;
            (first * BLOCK_SECTORS, from * BLOCK_SECTORS)
        };
        let moved = self.all.into_iter().map(place).collect();
        Dense { moved, sectors: sum * BLOCK_SECTORS }
    }
}

/// Maps extents to a contiguous range without the gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Dense {
    /// For each extent its first sector and its new first sector.
    moved: Vec<(u64, u64)>,
    /// Total number of sectors of all extents.
    sectors: u64,
}

impl Dense {
    /// Returns the sector to which a sector moves. A sector between two extents moves to the beginning of the second.
    fn place(&self, sector: u64) -> u64 {
        let following = self.moved.partition_point(|(first, _)| *first <= sector);
        let next = self.moved.get(following).map_or(self.sectors, |(_, to)| *to);
        match following.checked_sub(1).and_then(|at| self.moved.get(at)) {
            Some((first, to)) => to.saturating_add(sector - first).min(next),
            None => 0,
        }
    }
}

/// Maximum size of a trim in sectors. Its length in bytes must fit the kernel's 32-bit result.
const MAX_TRIM_SECTORS: u64 = (1 << 30) / SECTOR;

/// How a load is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplaySettings {
    /// What an operation waits for.
    pub pace: ReplayPace,
    /// Divisor of all captured times.
    pub speed: f64,
    /// Whether the gaps between touched extents are left out.
    pub dense: bool,
    /// How far back an operation can refer: it waits only for one of the last `reach` - 1 operations of its lane.
    pub reach: u32,
}

/// An operation to submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes; 0 for a sync.
    pub length: u32,
    /// Read, write, trim or sync.
    pub kind: Kind,
    /// Whether the write must be stable when it completes.
    pub is_stable: bool,
    /// Lane of the operation's task.
    pub lane: u16,
    /// Distance in the lane to the earlier operation that this one waits for: 1 for the previous one, 0 if this one waits for none.
    pub waits_back: u32,
    /// Time to wait in ns: after the completion of the operation that this one waits for, or after the start of the replay.
    pub wait_ns: u64,
}

/// The second pass over a capture: decides what each operation waits for.
#[derive(Debug)]
pub struct Steps {
    operations: Operations,
    load: Load,
    chains: Vec<Chain>,
    settings: ReplaySettings,
    /// With `dense`, number of discards that are completely outside of the read and written extents.
    pub outside: u64,
}

impl Steps {
    /// Starts the second pass over a capture with this header, these changes and this load.
    pub fn new(origin: &Origin, changes: &Changes, load: Load, settings: ReplaySettings) -> Self {
        let chains = (0..load.lanes()).map(|_| Chain::default()).collect();
        Self { operations: Operations::from_origin(origin, changes), load, chains, settings, outside: 0 }
    }

    /// Returns the number of lanes of the steps.
    pub fn lanes(&self) -> u32 {
        if self.settings.pace == ReplayPace::Fast { 1 } else { self.load.lanes() }
    }

    /// Appends the steps of the rows of a block.
    pub fn add(&mut self, rows: &[Row], names: &Names, into: &mut Vec<Step>) {
        let Self { operations, load, chains, settings, outside } = self;
        for row in rows {
            operations.add(row, names, &mut |operation| {
                let (mut sector, mut left) = place(operation, load, settings);
                if left == 0 && operation.kind != Kind::Sync {
                    *outside += 1;
                    return;
                }
                loop {
                    let sectors =
                        if operation.kind == Kind::Trim { left.min(MAX_TRIM_SECTORS) } else { left };
                    into.push(step(operation, sector, sectors, load, chains, settings));
                    (sector, left) = (sector.saturating_add(sectors), left - sectors);
                    if left == 0 {
                        break;
                    }
                }
            });
        }
    }
}

/// Returns first sector and number of sectors on the target.
fn place(operation: &Operation, load: &Load, settings: &ReplaySettings) -> (u64, u64) {
    let Operation { sector, sectors, kind, .. } = *operation;
    if !settings.dense || kind == Kind::Sync {
        return (sector, u64::from(sectors));
    }
    let first = load.dense.place(sector);
    if kind != Kind::Trim {
        return (first, u64::from(sectors));
    }
    // The end of a discard may be in a gap, so map it too: with its old length the discard could exceed the target.
    let end = load.dense.place(sector.saturating_add(u64::from(sectors)));
    (first, end.saturating_sub(first))
}

/// Returns the step of an operation on these sectors.
fn step(
    operation: &Operation,
    sector: u64,
    sectors: u64,
    load: &Load,
    chains: &mut [Chain],
    settings: &ReplaySettings,
) -> Step {
    let since_ns = operation.issue_ns.saturating_sub(load.first_ns());
    let at_speed = |ns: u64| (ns as f64 / settings.speed) as u64;
    let lane = load.lanes.get(operation.task as usize).copied().unwrap_or(0);
    let (lane, waits_back, wait_ns) = match settings.pace {
        ReplayPace::Dependent => {
            let chain = chains.get_mut(usize::from(lane));
            match chain.and_then(|chain| chain.add(operation, u64::from(settings.reach))) {
                Some((back, gap_ns)) => (lane, back as u32, at_speed(gap_ns)),
                None => (lane, 0, at_speed(since_ns)),
            }
        }
        // The write and its flush were one request in the capture.
        ReplayPace::Timed if operation.is_flushed => (lane, 1, 0),
        ReplayPace::Timed => (lane, 0, at_speed(since_ns)),
        ReplayPace::Fast => (0, u32::from(operation.is_flushed), 0),
    };
    Step {
        offset: sector.saturating_mul(SECTOR),
        length: u32::try_from(sectors.saturating_mul(SECTOR)).unwrap_or(u32::MAX),
        kind: operation.kind,
        is_stable: operation.is_stable,
        lane,
        waits_back,
        wait_ns,
    }
}

/// Maximum number of operations in flight of a lane that are followed. No device accepts more. The
/// limit bounds the memory that a hostile file can use.
const MAX_CHAINED: usize = 1 << 12;

/// The recent operations of a lane. Later operations of the lane may wait for them.
#[derive(Debug, Default)]
struct Chain {
    /// Serial number that the next operation gets.
    next: u64,
    /// Operations in flight, as (completion time, serial number).
    in_flight: BinaryHeap<Reverse<(u64, u64)>>,
    /// The operation that completed last, as (completion time, serial number); `None` before a completion.
    last: Option<(u64, u64)>,
}

impl Chain {
    /// Adds an operation. Returns the distance to the earlier operation that it waits for, and the time in ns between the completion of
    /// the earlier operation and the issue of the new one. `None` if no operation has completed yet, or if the earlier operation is
    /// `reach` or more operations back.
    fn add(&mut self, operation: &Operation, reach: u64) -> Option<(u64, u64)> {
        while let Some(Reverse((done_ns, number))) = self.in_flight.peek().copied() {
            if done_ns > operation.issue_ns {
                break;
            }
            self.in_flight.pop();
            self.last = self.last.max(Some((done_ns, number)));
        }
        let number = self.next;
        self.next += 1;
        if let Some(done_ns) = operation.done_ns.filter(|_| self.in_flight.len() < MAX_CHAINED) {
            self.in_flight.push(Reverse((done_ns, number)));
        }
        if operation.is_flushed {
            // A write waits for the flush before it, even if other operations completed in between.
            return Some((1, 0));
        }
        let (done_ns, waited_for) = self.last?;
        let back = number - waited_for;
        (back < reach).then_some((back, operation.issue_ns.saturating_sub(done_ns)))
    }
}

#[test]
fn dense_extents_keep_their_order_and_neighbours() {
    let mut extents = Extents::default();
    for (sector, sectors) in [(800, 8), (16, 8), (24, 16), (803, 2), (80_001, 1), (16, 8)] {
        extents.add(sector, sectors);
    }
    let dense = extents.dense();
    assert_eq!(dense.sectors, 24 + 8 + 8);
    // The touched blocks of 8 sectors are 16 to 40, 800 to 808, and 80,000 to 80,008.
    let placed = [16, 24, 39, 800, 803, 80_001].map(|sector| dense.place(sector));
    assert_eq!(placed, [0, 8, 23, 24, 27, 33]);
    // A discard that begins before the first extent and ends between the last two extents.
    assert_eq!((dense.place(0), dense.place(5000)), (0, 32));
    assert_eq!(dense.place(u64::MAX), 40);
}

#[test]
fn too_many_extents_become_fewer_and_larger_ones() {
    let mut extents = Extents::default();
    let many = MAX_GATHERED as u64 + 10;
    (0..many).for_each(|at| extents.add(at * 16, 8));
    let dense = extents.dense();
    assert!(dense.moved.len() <= MAX_EXTENTS && dense.sectors >= many * 8);
    let places = (0..many).map(|at| dense.place(at * 16));
    assert!(places.clone().zip(places.skip(1)).all(|(a, b)| b >= a + 8));
}

#[cfg(test)]
mod tests;
