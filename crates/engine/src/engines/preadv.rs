//! The engine `preadv`: preadv and pwritev of several adjacent operations. Adjacent operations of one submission form a row if they have
//! the same file and direction. One call executes a row and completes all its operations.

use crate::engines::targets::Targets;
use crate::interface::{Done, Engine, Granted, Queue};
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use std::io;
use std::ops::Range;
use sys::arena::Arena;
use sys::clock::Clock;
use sys::io_vectors::{MAX_BYTES_PER_CALL, MAX_VECTORS_PER_CALL, Vectors};
use sys::slots::take_ready;

pub(super) struct Preadv {
    arena: Arena,
    targets: Targets,
    clock: Clock,
    vectors: Vectors,
    queued: Vec<(u32, Op)>,
    done: Vec<Done>,
}

impl Engine for Preadv {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let slots = spec.slots();
        let engine = Self {
            arena: Arena::new(slots, spec.slot_bytes as usize)?,
            targets: Targets::take(spec)?,
            clock: spec.clock,
            vectors: Vectors::with_capacity(slots.min(MAX_VECTORS_PER_CALL)),
            queued: Vec::with_capacity(slots),
            done: Vec::with_capacity(slots),
        };
        Ok((engine, Granted::default()))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }
}

impl Queue for Preadv {
    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn queue(&mut self, slot: u32, op: &Op) {
        self.queued.push((slot, *op));
    }

    /// Executes all queued operations before it returns, so there is nothing to wait for.
    #[inline]
    fn submit(&mut self, _wait: u32) -> io::Result<()> {
        let mut from = 0;
        while from < self.queued.len() {
            let row = from..from + row_length(&self.queued[from..]);
            from = row.end;
            self.execute(row);
        }
        self.queued.clear();
        Ok(())
    }

    #[inline]
    fn reap(&mut self, done: &mut [Done]) -> usize {
        take_ready(&mut self.done, done)
    }
}

impl Preadv {
    /// Executes the operations of a row in one call.
    fn execute(&mut self, row: Range<usize>) {
        let (_, first) = self.queued[row.start];
        let answer = match first.kind {
            Kind::Read | Kind::Write => self.call(row.clone(), &first),
            Kind::Trim => self.targets.trim(&first),
            Kind::Sync => self.targets.sync(&first),
        };
        match answer {
            // Assign the moved bytes to the operations of the row from the first one on.
            Ok(mut moved) => {
                for (slot, op) in &self.queued[row] {
                    let own = moved.min(op.length as usize);
                    moved -= own;
                    self.done.push(Done { slot: *slot, result: own as i32 });
                }
            }
            Err(e) => {
                let result = -e.raw_os_error().unwrap_or(i32::MAX);
                let failed = self.queued[row].iter().map(|(slot, _)| Done { slot: *slot, result });
                self.done.extend(failed);
            }
        }
    }

    /// Reads or writes a row. Returns the number of moved bytes.
    fn call(&mut self, row: Range<usize>, first: &Op) -> io::Result<usize> {
        let parts = self.queued[row].iter().map(|(slot, op)| (*slot, op.length));
        if first.kind == Kind::Read {
            self.vectors.read(&mut self.arena, parts, self.targets.read(first), first.offset)
        } else {
            self.vectors.write(&self.arena, parts, self.targets.write(first), first.offset)
        }
    }
}

/// Returns the number of operations in the row at the start of the queue: the first operation and
/// those that continue it without a gap, up to the limits of one call.
fn row_length(queued: &[(u32, Op)]) -> usize {
    let moves = |op: &Op| matches!(op.kind, Kind::Read | Kind::Write);
    let mut bytes = queued.first().map_or(0, |(_, op)| u64::from(op.length));
    let is_adjacent = |pair: &&[(u32, Op)]| {
        let [(_, a), (_, b)] = pair else { return false };
        bytes += u64::from(b.length);
        let is_next = (a.file, a.kind) == (b.file, b.kind) && a.offset + u64::from(a.length) == b.offset;
        moves(a) && is_next && bytes <= MAX_BYTES_PER_CALL
    };
    (1 + queued.windows(2).take_while(is_adjacent).count()).min(MAX_VECTORS_PER_CALL)
}

#[test]
fn only_adjacent_operations_in_one_direction_are_a_row() {
    let op = |kind, file, offset| (0, Op { kind, file, offset, length: 4096, ..Op::NONE });
    let (r, w) = (Kind::Read, Kind::Write);
    let rows = |ops: &[(u32, Op)]| row_length(ops);
    assert_eq!(rows(&[op(r, 0, 0), op(r, 0, 4096), op(r, 0, 8192), op(r, 0, 4096)]), 3);
    assert_eq!(rows(&[op(r, 0, 0), op(w, 0, 4096)]), 1, "another direction");
    assert_eq!(rows(&[op(w, 0, 0), op(w, 1, 4096)]), 1, "another file");
    assert_eq!(rows(&[op(w, 0, 4096), op(w, 0, 0)]), 1, "backwards");
    assert_eq!(rows(&[op(Kind::Trim, 0, 0), op(Kind::Trim, 0, 4096)]), 1, "a trim has no vector");
    let many: Vec<_> = (0..2000).map(|i| op(r, 0, i * 4096)).collect();
    assert_eq!(rows(&many), MAX_VECTORS_PER_CALL);
    let large: Vec<_> = (0..4).map(|i| (0, Op { length: 1 << 30, ..op(w, 0, i << 30).1 })).collect();
    assert_eq!(rows(&large), 1, "two exceed the limit of a call");
}
