//! What was copied so far, in dd's counts.
//!
//! For: one thread that counts, and any that tell. Not for: how they are told (`lines`).

use std::sync::atomic::{AtomicU64, Ordering};

/// What was copied so far: one thread writes, any may read.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) full_reads: AtomicU64,
    pub(super) partial_reads: AtomicU64,
    pub(super) full_writes: AtomicU64,
    pub(super) partial_writes: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// What was copied up to a moment: full and partial reads and writes, and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) full_reads: u64,
    pub(super) partial_reads: u64,
    pub(super) full_writes: u64,
    pub(super) partial_writes: u64,
    /// Bytes written.
    pub(super) bytes: u64,
}

impl Counts {
    pub(super) fn totals(&self) -> Totals {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Totals {
            full_reads: of(&self.full_reads),
            partial_reads: of(&self.partial_reads),
            full_writes: of(&self.full_writes),
            partial_writes: of(&self.partial_writes),
            bytes: of(&self.bytes),
        }
    }
}

/// One writer: no other thread adds.
pub(super) fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}
