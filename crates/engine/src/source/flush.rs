//! Calls between writes that make them stable.
//!
//! For: putting a sync behind every so many writes of a lane, or several behind one, evenly spread. Not for: which call it is, nor when it is submitted.

use super::{Op, Source};
use model::job::{Flush, Kind};

/// A source with syncs among its operations: each in the file of the write before it.
pub(super) struct Flushed {
    inner: Box<dyn Source>,
    syncs: Syncs,
}

/// Which syncs are due behind the writes that were seen.
pub(super) struct Syncs {
    every: u32,
    calls: u32,
    drain: bool,
    /// Calls that are due, in parts of `every`.
    due: u64,
    file: u16,
    /// Flags of the next operation, if it is the one behind a sync.
    behind: u8,
}

impl Flushed {
    /// Fails where a sync would come after no write.
    pub(super) fn new(inner: Box<dyn Source>, flush: Flush) -> Result<Self, String> {
        Ok(Self { inner, syncs: Syncs::new(flush)? })
    }
}

impl Syncs {
    /// Fails where a sync would come after no write.
    pub(super) fn new(flush: Flush) -> Result<Self, String> {
        let Flush { call, every, calls, drain } = flush;
        if every == 0 || calls == 0 {
            return Err(format!("{} after every 0 writes means nothing; give 1 or more", call.word()));
        }
        Ok(Self { every, calls, drain, due: 0, file: 0, behind: 0 })
    }

    /// The sync that is next; `None` where an operation is.
    pub(super) fn next(&mut self) -> Option<Op> {
        let every = u64::from(self.every);
        if self.due < every {
            return None;
        }
        let flags = if self.drain { Op::DRAINED } else { 0 };
        self.due -= every;
        self.behind = flags;
        Some(Op { file: self.file, kind: Kind::Sync, flags, ..Op::NONE })
    }

    /// As many operations as may come before the next sync, were they all writes.
    fn few(&self) -> usize {
        (u64::from(self.every) - self.due).div_ceil(u64::from(self.calls)) as usize
    }

    /// Marks and counts operations that come next.
    pub(super) fn look(&mut self, ops: &mut [Op]) {
        if let Some(first) = ops.first_mut() {
            first.flags |= std::mem::take(&mut self.behind);
        }
        for op in ops.iter().filter(|o| o.kind == Kind::Write) {
            self.due += u64::from(self.calls);
            self.file = op.file;
        }
    }
}

impl Source for Flushed {
    fn refill(&mut self, ops: &mut [Op]) {
        let mut done = 0;
        while done < ops.len() {
            if let Some(sync) = self.syncs.next() {
                ops[done] = sync;
                done += 1;
            } else {
                // So none is drawn too early.
                let end = ops.len().min(done.saturating_add(self.syncs.few()));
                self.inner.refill(&mut ops[done..end]);
                self.syncs.look(&mut ops[done..end]);
                done = end;
            }
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }
}
