//! Operations: what requests are to whoever submits them again.
//!
//! For: rows to reads, writes, trims and syncs, with the times that they had. Not for: what they wait for ([`super::chain`]).
//!
//! A write that asks for a flush before it is two operations: the sync, and the write as soon as that is done. Where the device has
//! requests, the flush began when the bio was queued, and ended when the write was issued.

use crate::SECTOR;
use crate::names::Names;
use crate::row::{Row, RowKind};
use model::captured::{Op, Origin, Unit};
use model::job::{Changes, Kind};
use std::collections::HashMap;

/// Most writes with a flush that are asked for and not issued. More are none that a kernel has at once.
const MOST_ASKED: usize = 1 << 16;

/// An operation as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// When it began, ns since the capture began.
    pub(crate) issue_ns: u64,
    /// When it completed, where that is known.
    pub(crate) done_ns: Option<u64>,
    /// How long it took, where that is known of it alone.
    pub(crate) latency_ns: Option<u64>,
    /// First sector.
    pub(crate) sector: u64,
    /// Sectors; 0 of a sync.
    pub(crate) sectors: u32,
    /// What it does.
    pub(crate) kind: Kind,
    /// Whether it must be stable when it completes (FUA).
    pub(crate) is_stable: bool,
    /// Number of its task among the names.
    pub(crate) task: u32,
    /// Whether the one before it is the flush that it needs.
    pub(crate) is_flushed: bool,
}

/// Rows that become operations.
#[derive(Debug)]
pub(crate) struct Operations {
    /// Whether whoever asked for flushes has rows of its own.
    is_owned: bool,
    /// When writes with a flush were queued, by their sector.
    asked: HashMap<u64, u64>,
    /// What is changed of them, and whether sizes are.
    changes: Changes,
    sizes_change: bool,
    /// Requests without a counterpart.
    pub(crate) left_out: u64,
}

impl Operations {
    pub(crate) fn from_origin(origin: &Origin, changes: &Changes) -> Self {
        let is_owned = origin.imported.is_none() && origin.unit == Unit::Requests;
        let sizes_change = origin.unit != Unit::Operations;
        Self { is_owned, asked: HashMap::new(), changes: changes.clone(), sizes_change, left_out: 0 }
    }

    /// First sector and number of sectors after the changes.
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

    /// Hands the operations of a row on: none, one, or a sync and a write.
    pub(crate) fn add(&mut self, row: &Row, names: &Names, each: &mut dyn FnMut(&Operation)) {
        let Some(flags) = names.flags_at(row.flags) else { return };
        let kind = match (flags.kind, flags.op(row.sectors)) {
            (RowKind::Asked, _) if row.sectors == 0 => Kind::Sync,
            (RowKind::Asked, _) => {
                if flags.has_preflush() && self.asked.len() < MOST_ASKED {
                    self.asked.insert(row.sector, row.issue_ns);
                }
                return;
            }
            // Whoever asked for it has a row.
            (_, Op::Flush) if self.is_owned => return,
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

    /// The flush that a write needs before it.
    fn flush_before(&mut self, row: &Row) -> Operation {
        let asked_ns = self.asked.remove(&row.sector).filter(|ns| self.is_owned && *ns <= row.issue_ns);
        Operation {
            issue_ns: asked_ns.unwrap_or(row.issue_ns),
            done_ns: Some(row.issue_ns),
            latency_ns: asked_ns.map(|ns| row.issue_ns - ns),
            sector: 0,
            sectors: 0,
            kind: Kind::Sync,
            is_stable: false,
            task: row.task,
            is_flushed: false,
        }
    }
}
