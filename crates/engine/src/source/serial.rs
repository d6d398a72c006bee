//! Operations on the same bytes one after another.
//!
//! For: marking the operations of a lane that wait for those in flight that they overlap. Not for: waiting, which the loop does.

use super::{Op, Source};

/// A source of which no two operations are in flight on the same bytes.
pub(super) struct Serial(pub(super) Box<dyn Source>);

impl Source for Serial {
    fn refill(&mut self, ops: &mut [Op]) {
        self.0.refill(ops);
        // Syncs too, which overlap nothing: whatever takes a slot says what is on it.
        for op in ops {
            op.flags |= Op::SERIAL;
        }
    }

    fn look_ahead(&self) -> usize {
        self.0.look_ahead()
    }

    fn hold(&self) -> Option<u64> {
        self.0.hold()
    }
}
