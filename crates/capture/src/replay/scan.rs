//! A first pass over a capture: what its load was like, and which of its tasks are kept apart.
//!
//! For: what must be known before the first operation: sizes, what was touched, how much was in flight, and the figures that a replay is
//! compared with. Not for: the profile that people read ([`crate::profile`]).

use super::extents::{Dense, Extents};
use super::operations::{Operation, Operations};
use crate::SECTOR;
use crate::names::Names;
use crate::row::Row;
use model::captured::Origin;
use model::histogram::Histogram;
use model::job::{Changes, Kind, Original, OriginalKind};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Operations from which on a task is kept apart from others that have few.
const OWN_FROM: u64 = 16;
/// Most operations in flight that are counted.
const MAX_IN_FLIGHT: usize = 1 << 16;
/// Bits of the largest alignment in sectors that is told: 1 MiB.
const MOST_ALIGNED: u32 = 11;

/// What one kind of operation was like.
#[derive(Debug, Default)]
struct KindFigures {
    operations: u64,
    bytes: u64,
    least: Option<u64>,
    most: u64,
    /// Those that begin where the last one ended, and where that was.
    sequential: u64,
    end_sector: u64,
    latency: Histogram,
}

/// A pass under way.
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
    /// Sum of the times in flight in ns.
    flown_ns: u128,
    /// When those in flight complete.
    flying: BinaryHeap<Reverse<u64>>,
    depth_max: usize,
    extents: Extents,
    end_sector: u64,
    /// All places and sizes in sectors, bit by bit.
    bits: u64,
    has_stable: bool,
    /// Operations of each task, by its number.
    of_task: Vec<u64>,
}

/// What a pass came to.
#[derive(Debug)]
pub struct Load {
    figures: Figures,
    left_out: u64,
    /// Lane of each task.
    pub(super) lanes: Vec<u16>,
    lane_count: u32,
    pub(super) dense: Dense,
}

impl Scan {
    /// Of a capture with this header, of which so much is changed.
    pub fn new(origin: &Origin, changes: &Changes) -> Self {
        Self { operations: Operations::from_origin(origin, changes), figures: Figures::default() }
    }

    /// Takes rows of a block, whose names these are.
    pub fn add(&mut self, rows: &[Row], names: &Names) {
        for row in rows {
            self.operations.add(row, names, &mut |operation| self.figures.add(operation));
        }
    }

    /// What it came to, with no more lanes than this. The first is that of all tasks that have no lane of their own.
    pub fn finish(self, most_lanes: u32) -> Load {
        let mut figures = self.figures;
        let mut by_count: Vec<(u64, usize)> =
            figures.of_task.iter().enumerate().map(|(task, count)| (*count, task)).collect();
        by_count.sort_unstable_by_key(|(count, task)| (Reverse(*count), *task));
        let mut lanes = vec![0; figures.of_task.len()];
        let own = by_count.iter().take_while(|(count, _)| *count >= OWN_FROM);
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
            self.fly(issue_ns, done_ns);
        }
        if kind != Kind::Sync {
            self.end_sector = self.end_sector.max(sector.saturating_add(u64::from(sectors)));
        }
        if Kind::MOVING.contains(&kind) {
            self.extents.add(sector, sectors);
            self.bits |= sector | u64::from(sectors);
            let seen = &mut self.kinds[kind as usize];
            seen.sequential += u64::from(seen.end_sector == sector);
            seen.end_sector = sector.saturating_add(u64::from(sectors));
        }
        self.has_stable |= operation.is_stable;
        let task = operation.task as usize;
        if self.of_task.len() <= task {
            self.of_task.resize(task + 1, 0);
        }
        self.of_task[task] += 1;
    }

    fn fly(&mut self, issue_ns: u64, done_ns: u64) {
        self.flown_ns += u128::from(done_ns.saturating_sub(issue_ns));
        while self.flying.peek().is_some_and(|done| done.0 <= issue_ns) {
            self.flying.pop();
        }
        if self.flying.len() < MAX_IN_FLIGHT {
            self.flying.push(Reverse(done_ns));
        }
        self.depth_max = self.depth_max.max(self.flying.len());
    }
}

impl Load {
    /// When its first operation began, ns since the capture began.
    pub(super) fn first_ns(&self) -> u64 {
        self.figures.first_ns.unwrap_or(0)
    }

    /// Operations that are replayed.
    pub fn operations(&self) -> u64 {
        self.figures.kinds.iter().map(|kind| kind.operations).sum()
    }

    /// Whether it is known when any of them completed.
    pub fn has_completions(&self) -> bool {
        self.figures.flown_ns > 0
    }

    /// Whether single writes were to be stable when they completed.
    pub fn has_stable_writes(&self) -> bool {
        self.figures.has_stable
    }

    /// Lanes of its tasks.
    pub fn lanes(&self) -> u32 {
        self.lane_count
    }

    /// Its figures, as far as they are those of its operations.
    pub fn original(&self) -> Original {
        let figures = &self.figures;
        let elapsed_ns = figures.last_ns.saturating_sub(self.first_ns());
        let of = |kind: Kind| {
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
            depth_mean: known.then(|| figures.flown_ns as f64 / elapsed_ns as f64),
            depth_max: figures.depth_max as u32,
            tasks: figures.of_task.iter().filter(|count| **count > 0).count() as u32,
            footprint_bytes: self.dense.sectors.saturating_mul(SECTOR),
            end_bytes: figures.end_sector.saturating_mul(SECTOR),
            align_bytes: SECTOR as u32 * (1 << figures.bits.trailing_zeros().min(MOST_ALIGNED)),
            sequential_percent: 100.0 * sequential as f64 / moving.max(1) as f64,
            kinds: Kind::ALL.into_iter().map(of).filter(|kind| kind.operations > 0).collect(),
            left_out: self.left_out,
            ..Original::default()
        }
    }
}
