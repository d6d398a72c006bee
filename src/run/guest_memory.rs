//! The memory of a guest whose host takes what the guest frees (free page reporting).
//!
//! A buffered run on such a machine waits until the host gives the memory back, and how much of it the host has taken by then depends on
//! what was measured before. So each run of `fathom api` that goes through the page cache finds memory at hand: before its time begins,
//! fathom uses as much as it may need, and frees it again. The host takes it no earlier than two seconds later.

use super::Measurement;
use analysis::checks::gives_memory_up;
use model::job::Phase;
use model::units::MIB;
use std::hint::black_box;

/// More than a run moves: 0.3 s at 1.7 GB/s.
const MOST_BYTES: u64 = 512 * MIB;
/// Part of the memory, as a divisor, that may be used for this.
const MEMORY_PART: u64 = 8;
const PAGE_BYTES: usize = 4096;

impl Measurement {
    /// Gets memory from the host for a phase that goes through the page cache.
    pub(super) fn get_memory_from_host(&self, phase: &Phase) {
        let Some(machine) = self.last.header.hosts.first() else { return };
        let is_direct = phase.streams.iter().all(|stream| stream.cache.is_direct());
        if is_direct || gives_memory_up(machine) != Ok(true) {
            return;
        }
        let limit = machine::limits::memory(&self.root).map(|limit| limit.room_bytes());
        let Some(memory) = [machine.memory_bytes.as_ref().ok().copied(), limit].into_iter().flatten().min()
        else {
            return;
        };
        let span = phase.streams.iter().map(|stream| stream.access.span_bytes).max().unwrap_or(0);
        let mut pages = vec![0_u8; span.min(MOST_BYTES).min(memory / MEMORY_PART) as usize];
        // A page is there once it is written.
        pages.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1);
        black_box(&pages);
    }
}
