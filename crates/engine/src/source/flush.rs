//! Calls between writes that make them stable.
//!
//! For: putting a sync behind every so many writes of a lane, or several behind one, evenly spread. Not for: which call it is, nor when it is submitted.

use super::evenly::Evenly;
use super::{Op, Source};
use model::job::{Flush, Kind};

/// A source with syncs among its operations: each in the file of the write before it.
pub(super) struct Flushed {
    inner: Box<dyn Source>,
    syncs: Syncs,
}

/// Which syncs are due behind the writes that were seen.
pub(super) struct Syncs {
    calls: Evenly,
    /// Flags of each sync and of the operation behind it.
    flags: u8,
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
        let calls = Evenly::new(every, calls)
            .ok_or_else(|| format!("{} after every 0 writes means nothing; give 1 or more", call.word()))?;
        let flags = if drain { Op::DRAINED } else { 0 };
        Ok(Self { calls, flags, file: 0, behind: 0 })
    }

    /// The sync that is next; `None` where an operation is.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Op> {
        self.calls.take().then(|| {
            self.behind = self.flags;
            Op { file: self.file, kind: Kind::Sync, flags: self.flags, ..Op::NONE }
        })
    }

    /// Marks and counts operations that come next.
    #[inline]
    pub(super) fn mark_syncs(&mut self, ops: &mut [Op]) {
        if let Some(first) = ops.first_mut() {
            first.flags |= std::mem::take(&mut self.behind);
        }
        for op in ops.iter().filter(|o| o.kind == Kind::Write) {
            self.calls.count();
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
                // As many as may come before the next sync, were they all writes: so none is drawn too early.
                let end = ops.len().min(done.saturating_add(self.syncs.calls.left() as usize));
                self.inner.refill(&mut ops[done..end]);
                self.syncs.mark_syncs(&mut ops[done..end]);
                done = end;
            }
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }
}
