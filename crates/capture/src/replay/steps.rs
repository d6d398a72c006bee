//! Steps: the operations of a load in the order in which they are submitted, with what each waits for.
//!
//! For: the second pass over a capture. Not for: handing them to the engine.

use super::chain::Chain;
use super::operations::{Operation, Operations};
use super::scan::Load;
use crate::SECTOR;
use crate::names::Names;
use crate::row::Row;
use model::captured::Origin;
use model::job::{Changes, Kind, ReplayPace};

/// Largest trim in sectors: its length must fit the kernel's answer.
const MOST_TRIMMED: u64 = (1 << 30) / SECTOR;

/// How a load is carried out again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplaySettings {
    /// What an operation waits for.
    pub pace: ReplayPace,
    /// What times are divided by.
    pub speed: f64,
    /// Whether what was touched is moved together.
    pub dense: bool,
    /// How many operations ago the one must be, at most, that another waits for; less than this.
    pub reach: u32,
}

/// An operation as it is submitted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// First byte.
    pub offset: u64,
    /// Bytes; 0 of a sync.
    pub length: u32,
    /// What it does.
    pub kind: Kind,
    /// Whether it must be stable when it completes.
    pub is_stable: bool,
    /// Lane of its task.
    pub lane: u16,
    /// How many operations of its lane ago the one was that it waits for; 0 for none.
    pub after: u32,
    /// How long it waits in ns: from that one's completion on, or from the beginning.
    pub wait_ns: u64,
}

/// A second pass under way.
#[derive(Debug)]
pub struct Steps {
    operations: Operations,
    load: Load,
    chains: Vec<Chain>,
    way: ReplaySettings,
    /// Discards that lie wholly outside what was read or written, where only that is kept.
    pub outside: u64,
}

impl Steps {
    /// Of a capture with this header, of which so much is changed, and whose first pass came to this.
    pub fn new((origin, changes): (&Origin, &Changes), load: Load, way: ReplaySettings) -> Self {
        let chains = (0..load.lanes()).map(|_| Chain::default()).collect();
        Self { operations: Operations::from_origin(origin, changes), load, chains, way, outside: 0 }
    }

    /// Lanes of its steps.
    pub fn lanes(&self) -> u32 {
        if self.way.pace == ReplayPace::Fast { 1 } else { self.load.lanes() }
    }

    /// Adds the steps of rows of a block, whose names these are.
    pub fn add(&mut self, rows: &[Row], names: &Names, into: &mut Vec<Step>) {
        let Self { operations, load, chains, way, outside } = self;
        for row in rows {
            operations.add(row, names, &mut |operation| {
                let (mut sector, mut left) = place(operation, load, way);
                if left == 0 && operation.kind != Kind::Sync {
                    *outside += 1;
                    return;
                }
                loop {
                    let sectors = if operation.kind == Kind::Trim { left.min(MOST_TRIMMED) } else { left };
                    into.push(step(operation, (sector, sectors), load, chains, way));
                    (sector, left) = (sector.saturating_add(sectors), left - sectors);
                    if left == 0 {
                        break;
                    }
                }
            });
        }
    }
}

/// First sector and number of sectors, on the target.
fn place(operation: &Operation, load: &Load, way: &ReplaySettings) -> (u64, u64) {
    let Operation { sector, sectors, kind, .. } = *operation;
    if !way.dense || kind == Kind::Sync {
        return (sector, u64::from(sectors));
    }
    let first = load.dense.place(sector);
    if kind != Kind::Trim {
        return (first, u64::from(sectors));
    }
    // What it discards beside may be more than the target has.
    let behind = load.dense.place(sector.saturating_add(u64::from(sectors)));
    (first, behind.saturating_sub(first))
}

/// An operation on these sectors, with when it is due by the capture.
fn step(
    operation: &Operation,
    (sector, sectors): (u64, u64),
    load: &Load,
    chains: &mut [Chain],
    way: &ReplaySettings,
) -> Step {
    let since_ns = operation.issue_ns.saturating_sub(load.first_ns());
    let at_speed = |ns: u64| (ns as f64 / way.speed) as u64;
    let lane = load.lanes.get(operation.task as usize).copied().unwrap_or(0);
    let (lane, after, wait_ns) = match way.pace {
        ReplayPace::Dependent => {
            let chain = chains.get_mut(usize::from(lane));
            match chain.and_then(|chain| chain.add(operation, u64::from(way.reach))) {
                Some((back, gap_ns)) => (lane, back as u32, at_speed(gap_ns)),
                None => (lane, 0, at_speed(since_ns)),
            }
        }
        // It and its flush were one request, whatever the time.
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
        after,
        wait_ns,
    }
}
