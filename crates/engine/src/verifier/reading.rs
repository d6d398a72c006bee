//! The reading back of a verification.
//!
//! For: every block that was begun, once, in random order, every bit of it examined. Not for: emptying caches before it.

use super::work::{Step, Work};
use super::{Through, carry_out};
use crate::source::Op;
use model::job::Kind;
use model::stamp::{self, Expected, Sound};
use model::verification::{Mark, Verification};
use model::verified::{LISTED, ReadBack};
use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reads a verification back from an open file, as far as its mark says that there is anything.
///
/// # Errors
/// Where the engine fails or the target does not answer.
pub fn read_back(
    through: &Through,
    file: File,
    verification: &Verification,
    mark: Mark,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64),
) -> Result<ReadBack, String> {
    let mut work = Reader {
        verification,
        mark,
        stop,
        progress,
        turn: 0,
        awaited: HashMap::new(),
        seen: ReadBack::default(),
    };
    carry_out(through, file, false, verification.block_bytes, &mut work)?;
    let mut seen = work.seen;
    seen.damage.sort_unstable_by_key(|(offset, _)| *offset);
    seen.partial.sort_unstable();
    Ok(seen)
}

struct Reader<'a> {
    verification: &'a Verification,
    mark: Mark,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(u64),
    turn: u64,
    /// What must be in the blocks that are in flight.
    awaited: HashMap<u64, Expected>,
    seen: ReadBack,
}

impl Reader<'_> {
    fn examine(&mut self, expected: &Expected, data: &[u8]) {
        self.seen.blocks += 1;
        self.seen.must += u64::from(expected.synced > 0);
        match stamp::examine(data, expected) {
            Ok(Sound::Whole(sequence)) => self.seen.newer += u64::from(expected.begun == Some(sequence)),
            Ok(Sound::PartOfBegun { .. }) => {
                self.seen.partials += 1;
                if self.seen.partial.len() < LISTED {
                    self.seen.partial.push(expected.offset);
                }
            }
            Err(damage) => {
                self.seen.damaged += 1;
                if self.seen.damage.len() < LISTED {
                    self.seen.damage.push((expected.offset, damage));
                }
            }
        }
    }
}

impl Work for Reader<'_> {
    fn next(&mut self) -> Step {
        while self.turn < self.verification.blocks {
            if self.stop.load(Ordering::Relaxed) {
                self.seen.interrupted = true;
                return Step::End;
            }
            self.turn += 1;
            let Some(expected) = self.verification.expected(self.turn - 1, self.mark) else {
                self.seen.unwritten += 1;
                continue;
            };
            self.awaited.insert(expected.offset, expected);
            let length = self.verification.block_bytes;
            return Step::Op(Op { offset: expected.offset, length, kind: Kind::Read, ..Op::NONE });
        }
        Step::End
    }

    fn fill(&mut self, _: &Op, _: &mut [u8]) {}

    fn done(&mut self, op: &Op, result: i32, data: &[u8]) {
        if let Some(expected) = self.awaited.remove(&op.offset) {
            if data.len() == op.length as usize {
                self.examine(&expected, data);
            } else {
                self.seen.failures.add(Kind::Read, op.offset, result);
            }
        }
        (self.progress)(self.turn);
    }

    fn synced(&mut self, _: i32) {}
}
