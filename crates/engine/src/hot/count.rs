//! Counting: what becomes of a completion.
//!
//! For: latencies and bytes of the measured window, the totals that the ledger is compared with, and operations that went wrong. Not for:
//! when completions are seen (the loop).

use super::{Loop, Slot};
use crate::interface::{Done, Engine, Time};
use crate::recorder::{Completion, Recorder};
use model::job::Kind;

/// What a read has for a result that found other data than should be there: EILSEQ, as in fio.
const DIFFERS: i32 = 84;

impl<E: Engine, R: Recorder> Loop<'_, E, R> {
    /// Counts a completion of the measured window at the last stamp.
    #[inline]
    pub(super) fn count(&mut self, done: Done) {
        let Slot { start, due, length, lane, kind } = self.slots[done.slot as usize];
        self.lanes[lane as usize].give_back(done.slot, self.now);
        if done.result != length as i32 {
            self.odd(kind, done.result);
            return;
        }
        if R::KEEPS && !self.is_right(done.slot, kind) {
            return;
        }
        let service = self.engine.time().ns(self.now - start);
        let of_lane = &mut self.block.lanes[lane as usize];
        let tally = &mut of_lane.kinds[kind as usize];
        tally.bytes += u64::from(length);
        let latency = if let Some(open) = &mut of_lane.open {
            let late = self.engine.time().ns(start.saturating_sub(due));
            tally.latency.record(service + late);
            open[kind as usize].service.record(service);
            open[kind as usize].lateness.record(late);
            service + late
        } else {
            tally.latency.record(service);
            service
        };
        if R::KEEPS {
            let end = self.engine.time().ns(self.now - self.start);
            self.recorder.end(done.slot, Completion { end, latency, service });
        }
    }

    /// Counts a completion outside the window at the last stamp: in the totals alone, which the ledger is compared with.
    pub(super) fn count_apart(&mut self, done: Done) {
        let Slot { start, length, lane, kind, .. } = self.slots[done.slot as usize];
        self.lanes[lane as usize].give_back(done.slot, self.now);
        if done.result != length as i32 {
            self.odd(kind, done.result);
            return;
        }
        if R::KEEPS && !self.is_right(done.slot, kind) {
            return;
        }
        let total = &mut self.totals[kind as usize];
        total.ops += 1;
        total.bytes += u64::from(length);
        total.max_ns = total.max_ns.max(self.engine.time().ns(self.now - start));
    }

    /// Whether an operation is no read that found something else than what should be there, which is an error of its own.
    fn is_right(&mut self, slot: u32, kind: Kind) -> bool {
        let right = kind != Kind::Read || self.recorder.is_right(slot, self.engine.slot_mut(slot));
        if !right {
            self.odd(kind, -DIFFERS);
        }
        right
    }

    /// Adds the present block to the totals, before the collector gets it.
    pub(super) fn add_up(&mut self) {
        for lane in &self.block.lanes {
            for (kind, tally) in lane.kinds.iter().enumerate() {
                let slowest = match &lane.open {
                    Some(open) => open[kind].service.max_ns(),
                    None => tally.latency.max_ns(),
                };
                let total = &mut self.totals[kind];
                total.ops += tally.latency.count();
                total.bytes += tally.bytes;
                total.max_ns = total.max_ns.max(slowest.unwrap_or(0));
            }
        }
    }

    /// Counts an operation that failed or moved too little. It gets no latency: failed I/O is often the quickest.
    #[cold]
    fn odd(&mut self, kind: Kind, result: i32) {
        let errno = (result < 0).then_some(-result);
        let is_ignored = self.spec.ignored_errors.iter().any(|ignored| ignored.is(kind, errno));
        self.failures_left = self.failures_left.saturating_sub(u64::from(!is_ignored));
        let total = &mut self.totals[kind as usize];
        if let Ok(bytes) = u64::try_from(result) {
            total.ops += 1;
            total.bytes += bytes;
            total.short += 1;
        } else {
            *total.errors.entry(-result).or_default() += 1;
        }
    }
}
