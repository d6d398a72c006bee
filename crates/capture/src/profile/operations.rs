//! Requests by what they do.
//!
//! For: counts, bytes, sizes, latencies of reads, writes, discards, flushes. Not for: when they came.

use super::figures::{latency, share};
use super::sequence::Following;
use super::sizes::Counted;
use crate::row::{Flags, Row};
use model::captured::{Op, Operation};
use model::histogram::Histogram;
use std::collections::BTreeMap;

/// Requests of one kind.
#[derive(Debug)]
struct Of {
    requests: u64,
    bytes: u64,
    fua: u64,
    read_ahead: u64,
    metadata: u64,
    synchronous: u64,
    sizes: Counted,
    following: Following,
    latency: Histogram,
    queued: Histogram,
}

/// Of all kinds that there are.
#[derive(Debug, Default)]
pub(super) struct Operations {
    of: BTreeMap<Op, Box<Of>>,
}

impl Operations {
    pub(super) fn add(&mut self, op: Op, row: &Row, flags: &Flags) {
        let of = self.of.entry(op).or_insert_with(|| Box::new(Of::new()));
        of.requests += 1;
        of.bytes = of.bytes.saturating_add(row.bytes());
        for &letter in flags.rwbs.as_bytes().get(1..).unwrap_or_default() {
            match letter {
                b'A' => of.read_ahead += 1,
                b'M' => of.metadata += 1,
                b'S' => of.synchronous += 1,
                _ => {}
            }
        }
        of.fua += u64::from(op == Op::Write && flags.has_fua());
        of.sizes.add(row.sectors);
        if let Some(ns) = row.latency_ns {
            of.latency.record(ns);
        }
        if let Some(ns) = row.queued_ns {
            of.queued.record(ns);
        }
    }

    /// Adds a read or write, in the order of issue, to what tells which follow each other; other operations are left out.
    pub(super) fn follow(&mut self, op: Op, row: &Row) {
        if let Some(of) = self.of.get_mut(&op).filter(|_| matches!(op, Op::Read | Op::Write)) {
            of.following.add(row);
        }
    }

    pub(super) fn finish(self, requests: u64, duration_ns: u64) -> Vec<Operation> {
        let seconds = duration_ns as f64 / 1e9;
        let per_s = |figure: f64| if seconds > 0.0 { figure / seconds } else { 0.0 };
        let told = |(op, of): (Op, Box<Of>)| Operation {
            op,
            requests: of.requests,
            share: share(of.requests, requests),
            bytes: of.bytes,
            iops: per_s(of.requests as f64),
            mb_per_s: per_s(of.bytes as f64 / 1e6),
            fua: of.fua,
            read_ahead: of.read_ahead,
            metadata: of.metadata,
            synchronous: of.synchronous,
            sizes: of.sizes.finish(),
            sequence: of.following.finish(),
            latency_ns: latency(&of.latency),
            queued_ns: latency(&of.queued),
        };
        self.of.into_iter().map(told).collect()
    }
}

impl Of {
    fn new() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            fua: 0,
            read_ahead: 0,
            metadata: 0,
            synchronous: 0,
            sizes: Counted::default(),
            following: Following::default(),
            latency: Histogram::new(),
            queued: Histogram::new(),
        }
    }
}
