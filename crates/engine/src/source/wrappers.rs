//! Sources that wrap another source and add to its operations or delay them.
//!
//! - [`Flushed`] adds syncs after writes, evenly spread ([`EvenSpread`]).
//! - [`Serial`] marks operations that wait for overlapping ones in flight.
//! - [`EachPass`] evicts a file before each pass over it except the first, as fio does
//!   (`loop_cache_invalidate` in `io_u.c`). In sequential order, a pass ends where the offsets of
//!   one direction restart. In any other order, it ends after as many bytes as the worker accesses
//!   in a pass. Pages in use remain, and dirty pages are only queued for write back.

use crate::source::{Choice, Op, Source, WorkerContext};
use model::job::{Flush, Kind, Order, Stream};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::sync::Arc;

/// A source that adds syncs after writes. Each sync goes to the file of the last write.
pub(super) struct Flushed {
    inner: Box<dyn Source>,
    syncs: Syncs,
}

/// Decides when syncs are due.
pub(super) struct Syncs {
    calls: EvenSpread,
    /// Flags of each sync, and of the operation after the sync.
    flags: u8,
    file: u16,
    /// Flags of the next operation if it follows a sync.
    next_flags: u8,
}

impl Flushed {
    /// Adds the syncs of `flush` to a source. Fails for a sync after every 0 writes.
    pub(super) fn new(inner: Box<dyn Source>, flush: Flush) -> Result<Self, String> {
        Ok(Self { inner, syncs: Syncs::new(flush)? })
    }
}

impl Syncs {
    /// Creates the schedule of syncs for `flush`. Fails for a sync after every 0 writes.
    pub(super) fn new(flush: Flush) -> Result<Self, String> {
        let Flush { call, every, calls, drain } = flush;
        let calls = EvenSpread::new(every, calls).ok_or_else(|| {
            format!("{} after every 0 writes is not possible; give 1 or more writes", call.word())
        })?;
        let flags = if drain { Op::DRAINED } else { 0 };
        Ok(Self { calls, flags, file: 0, next_flags: 0 })
    }

    /// Returns the next sync; `None` if none is due.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Op> {
        self.calls.take_due().then(|| {
            self.next_flags = self.flags;
            Op { file: self.file, kind: Kind::Sync, flags: self.flags, ..Op::NONE }
        })
    }

    /// Counts the writes, and flags the first operation if it follows a sync.
    #[inline]
    pub(super) fn count_writes(&mut self, ops: &mut [Op]) {
        if let Some(first) = ops.first_mut() {
            first.flags |= std::mem::take(&mut self.next_flags);
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
                // If all operations are writes, draw at most as many as precede the next sync. Otherwise operations after the sync would
                // be drawn too early.
                let end = ops.len().min(done.saturating_add(self.syncs.calls.until_due() as usize));
                self.inner.refill(&mut ops[done..end]);
                self.syncs.count_writes(&mut ops[done..end]);
                done = end;
            }
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }
}

/// Spreads `times` events evenly over each `every` operations.
pub(super) struct EvenSpread {
    every: u64,
    times: u64,
    /// Grows by `times` with each operation. At `every` an event is due. Taking the event subtracts `every`.
    due: u64,
}

impl EvenSpread {
    /// Creates the spread; `None` if a number is zero.
    pub(super) fn new(every: u32, times: u32) -> Option<Self> {
        (every > 0 && times > 0).then(|| Self { every: every.into(), times: times.into(), due: 0 })
    }

    /// Counts one operation.
    #[inline]
    pub(super) fn count(&mut self) {
        self.due += self.times;
    }

    /// Returns whether an event is due. If so, counts it as done.
    #[inline]
    pub(super) fn take_due(&mut self) -> bool {
        let is_due = self.due >= self.every;
        if is_due {
            self.due -= self.every;
        }
        is_due
    }

    /// Returns the number of operations before the next event.
    #[inline]
    pub(super) fn until_due(&self) -> u64 {
        self.every.saturating_sub(self.due).div_ceil(self.times)
    }
}

/// A source whose overlapping operations are never in flight together.
pub(super) struct Serial(pub(super) Box<dyn Source>);

impl Source for Serial {
    fn refill(&mut self, ops: &mut [Op]) {
        self.0.refill(ops);
        // Mark syncs too, so that the loop replaces the operation that it last noted for the slot.
        for op in ops {
            op.flags |= Op::SERIAL;
        }
    }

    fn look_ahead(&self) -> usize {
        self.0.look_ahead()
    }
}

/// A source that evicts a file before each pass except the first.
pub(super) struct EachPass {
    inner: Box<dyn Source>,
    pass_end: PassEnd,
    files: Arc<[File]>,
    passes: Vec<Pass>,
}

/// How a source detects the end of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassEnd {
    /// A pass ends when the next offset is not above the previous one.
    Lower,
    /// A pass ends when the next offset is not below the previous one.
    Higher,
    /// A pass ends when its bytes have been moved.
    Bytes,
}

/// The progress of a pass over one file.
struct Pass {
    bytes: u64,
    moved: u64,
    /// Offset of the last operation, by the index of its kind.
    last: [Option<u64>; 3],
}

impl EachPass {
    /// Wraps the source of a stream, with the files and lengths of its targets in the order of [`Op::file`].
    pub(super) fn new(
        inner: Box<dyn Source>,
        stream: &Stream,
        context: &WorkerContext,
        files: Arc<[File]>,
        lengths: &[u64],
    ) -> Self {
        let access = &stream.access;
        // In an order that visits each block once, workers divide a pass between them, but each clone has a whole pass.
        let parts = match stream.clones {
            None if access.lines.iter().any(|l| l.order == Order::Once) => u64::from(context.workers.max(1)),
            _ => 1,
        };
        let pass = |length: &u64| {
            let bytes = access.span_bytes.min(length.saturating_sub(access.offset_bytes)) / parts;
            Pass { bytes, moved: 0, last: [None; 3] }
        };
        Self {
            inner,
            pass_end: PassEnd::from_stream(stream),
            files,
            passes: lengths.iter().map(pass).collect(),
        }
    }

    /// Returns whether an operation begins another pass.
    fn begins_pass(&mut self, op: &Op) -> bool {
        let Some(pass) = self.passes.get_mut(usize::from(op.file)) else { return false };
        if op.kind == Kind::Sync {
            return false;
        }
        let last = pass.last[op.kind as usize].replace(op.offset);
        let begins_pass = match self.pass_end {
            PassEnd::Lower => last.is_some_and(|last| op.offset <= last),
            PassEnd::Higher => last.is_some_and(|last| op.offset >= last),
            PassEnd::Bytes => pass.moved >= pass.bytes,
        };
        pass.moved = if begins_pass { 0 } else { pass.moved } + u64::from(op.length);
        begins_pass
    }
}

impl PassEnd {
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
        // A placeholder is no operation of a pass. `choose` counts the operation that takes its place.
        for op in ops.iter_mut().filter(|op| op.flags & Op::CHOSEN == 0) {
            if self.begins_pass(op) {
                op.flags |= Op::EVICTED;
            }
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }

    fn admit_or_wait_ns(&self) -> Option<u64> {
        self.inner.admit_or_wait_ns()
    }

    fn begin_call(&mut self) {
        self.inner.begin_call();
    }

    fn choose(&mut self, now_ns: u64) -> Choice {
        let choice = self.inner.choose(now_ns);
        if let Choice::Now(op, _) = &choice
            && self.begins_pass(op)
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
            // Errors are ignored: the same call succeeded before the run.
            let _ = fadvise(file, 0, None, Advice::DontNeed);
        }
    }
}

#[test]
fn times_are_spread_evenly() {
    let mut evenly = EvenSpread::new(5, 2).unwrap_or_else(|| panic!("5 and 2 are valid"));
    let mut seen = Vec::new();
    for operation in 1..=10 {
        evenly.count();
        while evenly.take_due() {
            seen.push(operation);
        }
    }
    assert_eq!((seen, evenly.until_due()), (vec![3, 5, 8, 10], 3));
    assert!(EvenSpread::new(0, 1).is_none() && EvenSpread::new(1, 0).is_none());
}

#[test]
fn placeholders_are_no_operations_of_a_pass() {
    use model::job::{Access, Bursts, Pattern, Steps};
    let backwards = Steps { backwards: true, ..Steps::default() };
    for order in [Order::Sequential(Steps::default()), Order::Sequential(backwards), Order::Once] {
        let mut access = Access::plain(Pattern::Random, 4096, 100);
        access.lines[0].order = order.clone();
        (access.offset_bytes, access.span_bytes) = (8192, 4 * 4096);
        // The source of such bursts chooses each operation when there is room for it.
        let bursts = Some(Bursts { time_ns: u64::MAX, pause_ns: 0, operations: None });
        let stream = Stream { bursts, ..Stream::plain(access, 1, 1, "null") };
        let stream_state = Arc::new(crate::source::StreamState::new(3));
        let context = WorkerContext { worker: 0, workers: 1, seed: 7, stream_state };
        let inner = crate::source::lanes(&stream, &[1 << 20], &[512], &context)
            .unwrap_or_else(|e| panic!("{e}"))
            .remove(0);
        let file = tempfile::tempfile().unwrap_or_else(|e| panic!("{e}"));
        let mut each = EachPass::new(inner, &stream, &context, Arc::new([file]), &[1 << 20]);
        let mut begun = Vec::new();
        for n in 0..12 {
            let state = |each: &EachPass| (each.passes[0].moved, each.passes[0].last);
            let before = state(&each);
            each.refill(&mut [Op::NONE]);
            assert_eq!(state(&each), before, "{order:?}");
            assert!(matches!(each.choose(n), Choice::Now(..)));
            begun.extend((each.passes[0].moved == 4096).then_some(n));
        }
        assert_eq!(begun, [0, 4, 8], "{order:?}");
    }
}
