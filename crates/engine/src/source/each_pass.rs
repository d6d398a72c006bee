//! Passes that begin with nothing of the file in the page cache.
//!
//! For: telling where another pass over a file begins, and evicting it there, as fio does. Not for: evicting it before the run, which is
//! done while nothing runs.
//!
//! In sequential order a pass begins where the offsets of one direction begin again; in any other after as many bytes as a pass touches.
//! What is in flight then stays, and what is dirty is only asked to be written back, as in fio (`loop_cache_invalidate` in `io_u.c`).

use super::{Choice, Op, Share, Source};
use model::job::{Kind, Order, Stream};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::sync::Arc;

/// A source whose files are evicted before each of its passes over them but the first.
pub(super) struct EachPass {
    inner: Box<dyn Source>,
    border: Border,
    files: Arc<[File]>,
    passes: Vec<Pass>,
}

/// Where a pass ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Border {
    /// Where an offset is no higher than the one before.
    Lower,
    /// Where one is no lower.
    Higher,
    /// After so many bytes.
    Bytes,
}

/// A pass over one file.
struct Pass {
    bytes: u64,
    moved: u64,
    /// Offset of the last operation, by the index of its kind.
    last: [Option<u64>; 3],
}

impl EachPass {
    /// Around a source of a stream, with the files of its targets and their lengths, both as [`Op::file`] counts them.
    pub(super) fn new(
        inner: Box<dyn Source>,
        stream: &Stream,
        share: &Share,
        (files, lengths): (Arc<[File]>, &[u64]),
    ) -> Self {
        let access = &stream.access;
        // Workers divide what each block is touched once of, unless each is a clone that does all of it.
        let parts = match stream.clones {
            None if access.lines.iter().any(|l| l.order == Order::Once) => u64::from(share.workers.max(1)),
            _ => 1,
        };
        let pass = |length: &u64| {
            let bytes = access.span_bytes.min(length.saturating_sub(access.offset_bytes)) / parts;
            Pass { bytes, moved: 0, last: [None; 3] }
        };
        Self { inner, border: Border::from_stream(stream), files, passes: lengths.iter().map(pass).collect() }
    }

    /// Whether an operation is the first of another pass.
    fn begins(&mut self, op: &Op) -> bool {
        let Some(pass) = self.passes.get_mut(usize::from(op.file)) else { return false };
        if op.kind == Kind::Sync {
            return false;
        }
        let last = pass.last[op.kind as usize].replace(op.offset);
        let begins = match self.border {
            Border::Lower => last.is_some_and(|last| op.offset <= last),
            Border::Higher => last.is_some_and(|last| op.offset >= last),
            Border::Bytes => pass.moved >= pass.bytes,
        };
        pass.moved = if begins { 0 } else { pass.moved } + u64::from(op.length);
        begins
    }
}

impl Border {
    fn from_stream(stream: &Stream) -> Self {
        let mut lines = stream.access.lines.iter().filter(|l| l.weight > 0);
        let backwards = |line: &model::job::Line| match line.order {
            Order::Sequential(steps) => Some(steps.backwards),
            _ => None,
        };
        let first = lines.next().and_then(backwards);
        match first {
            Some(first) if stream.turns.is_empty() && lines.all(|l| backwards(l) == Some(first)) => {
                if first {
                    Self::Higher
                } else {
                    Self::Lower
                }
            }
            _ => Self::Bytes,
        }
    }
}

impl Source for EachPass {
    fn refill(&mut self, ops: &mut [Op]) {
        self.inner.refill(ops);
        for op in ops {
            if self.begins(op) {
                op.flags |= Op::EVICTED;
            }
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }

    fn hold(&self) -> Option<u64> {
        self.inner.hold()
    }

    fn begin_call(&mut self) {
        self.inner.begin_call();
    }

    fn choose(&mut self, now_ns: u64) -> Choice {
        let choice = self.inner.choose(now_ns);
        if let Choice::Now(op, _) = &choice
            && self.begins(op)
        {
            self.evict(op.file);
        }
        choice
    }

    fn completed(&mut self, op: &Op, now_ns: u64) {
        self.inner.completed(op, now_ns);
    }

    fn evict(&self, file: u16) {
        if let Some(file) = self.files.get(usize::from(file)) {
            // It was done before the run, and the kernel has no other reason to refuse it.
            let _ = fadvise(file, 0, None, Advice::DontNeed);
        }
    }
}
