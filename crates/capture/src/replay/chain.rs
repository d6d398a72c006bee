//! Chains: which operation of its task one waits for.
//!
//! For: the last one that had completed when the next was issued, and how long ago that was. Not for: operations of other tasks.

use super::operations::Operation;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most operations of a task in flight that are known: more are none that a device takes. Bounds what a hostile file can take.
const MAX_CHAINED: usize = 1 << 12;

/// The operations of a task, as far as others may wait for them.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Number of the next one.
    next: u64,
    /// In flight, by when they completed, with their numbers.
    flying: BinaryHeap<Reverse<(u64, u64)>>,
    /// The last that had completed.
    last: Option<(u64, u64)>,
}

impl Chain {
    /// How many operations ago the one was that this one waited for, and the time in ns from that one's completion to this one's issue;
    /// `None` where there is none less than `reach` ago.
    pub(super) fn add(&mut self, operation: &Operation, reach: u64) -> Option<(u64, u64)> {
        while let Some(Reverse((done_ns, number))) = self.flying.peek().copied() {
            if done_ns > operation.issue_ns {
                break;
            }
            self.flying.pop();
            self.last = self.last.max(Some((done_ns, number)));
        }
        let number = self.next;
        self.next += 1;
        if let Some(done_ns) = operation.done_ns.filter(|_| self.flying.len() < MAX_CHAINED) {
            self.flying.push(Reverse((done_ns, number)));
        }
        if operation.is_flushed {
            // Its own flush, however others completed meanwhile.
            return Some((1, 0));
        }
        let (done_ns, waited_for) = self.last?;
        let back = number - waited_for;
        (back < reach).then_some((back, operation.issue_ns.saturating_sub(done_ns)))
    }
}
