//! Flushes, and who asked for them.
//!
//! For: rows of what was asked beside those of what the device got. Not for: writes without a flush.

use super::figures::latency;
use crate::names::Names;
use crate::row::{Flags, Row};
use model::captured::{Flushes, Owner};
use model::histogram::Histogram;
use std::collections::HashMap;

/// Most owners that are told.
const OWNERS: usize = 5;

/// Flushes under way.
#[derive(Debug)]
pub(super) struct Flushing {
    at_device: u64,
    empty: u64,
    with_data: u64,
    asked: Histogram,
    by: HashMap<u32, u64>,
}

impl Default for Flushing {
    fn default() -> Self {
        Self { at_device: 0, empty: 0, with_data: 0, asked: Histogram::new(), by: HashMap::new() }
    }
}

impl Flushing {
    pub(super) fn at_device(&mut self) {
        self.at_device += 1;
    }

    pub(super) fn asked(&mut self, row: &Row, flags: &Flags) {
        if row.sectors == 0 {
            self.empty += 1;
        } else if flags.has_preflush() || flags.has_fua() {
            self.with_data += 1;
        }
        if let Some(ns) = row.latency_ns {
            self.asked.record(ns);
        }
        *self.by.entry(row.task).or_default() += 1;
    }

    pub(super) fn finish(self, names: &Names, writes: &dyn Fn(u32) -> u64) -> Flushes {
        let mut owners: Vec<(u32, u64)> = self.by.into_iter().collect();
        owners.sort_by_key(|(task, asked)| (std::cmp::Reverse(*asked), *task));
        owners.truncate(OWNERS);
        let owner = |(task, asked): (u32, u64)| {
            let of = names.task_at(task).cloned().unwrap_or_default();
            Owner { name: of.name, tid: of.tid, asked, writes_each: writes(task) as f64 / asked as f64 }
        };
        Flushes {
            at_device: self.at_device,
            asked: self.empty,
            with_data: self.with_data,
            asked_ns: latency(&self.asked),
            owners: owners.into_iter().map(owner).collect(),
        }
    }
}
