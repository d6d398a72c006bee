//! What a verification does: which operation is next, and what came of it.
//!
//! For: the contract between the loop and writing or reading. Not for: carrying operations out.

use crate::source::Op;

/// What the loop is to do next.
pub(super) enum Step {
    /// This operation.
    Op(Op),
    /// Wait for all that is in flight, then make everything stable.
    Sync,
    /// Wait for all that is in flight, then end.
    End,
}

/// Says what is next, and looks at what came of it.
pub(super) trait Work {
    fn next(&mut self) -> Step;
    /// Makes the data of a write.
    fn fill(&mut self, op: &Op, data: &mut [u8]);
    /// Looks at a completion; `data` is what a read brought, as far as it got.
    fn done(&mut self, op: &Op, result: i32, data: &[u8]);
    /// Everything before it is stable, or not: 0 or minus errno.
    fn synced(&mut self, result: i32);
    /// Closing the target failed after everything else: minus errno.
    fn closed(&mut self, _result: i32) {}
}
