//! The reading back of a verification.
//!
//! Reads every block to which a write was begun, once, in random order, and examines every bit of it. Blocks beyond the end of a target that
//! was cut off are not read: they are lost.

use super::work::{Step, Work};
use super::{Through, carry_out};
use crate::source::Op;
use model::job::Kind;
use model::stamp::{self, Expected, Sound};
use model::verification::{LISTED, Lost, Mark, ReadBack, Verification};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
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
        end: end_of(&file),
        stop,
        progress,
        turn: 0,
        awaited: HashMap::new(),
        seen: ReadBack::default(),
    };
    carry_out(through, file, false, verification.block_bytes, &mut work)?;
    let Reader { mut seen, end, .. } = work;
    seen.lost = seen.lost.map(|lost| Lost { from_bytes: end, to_bytes: end_of_writes(verification), ..lost });
    seen.damage.sort_unstable_by_key(|(offset, _)| *offset);
    seen.partial.sort_unstable();
    Ok(seen)
}

/// Where a file or block device ends; nowhere if it is something else.
fn end_of(mut file: &File) -> u64 {
    let kind = file.metadata().map(|facts| facts.file_type());
    let has_an_end = kind.is_ok_and(|kind| kind.is_file() || kind.is_block_device());
    if has_an_end { file.seek(SeekFrom::End(0)).unwrap_or(u64::MAX) } else { u64::MAX }
}

fn end_of_writes(verification: &Verification) -> u64 {
    verification.offset_bytes.saturating_add(verification.span_bytes())
}

/// What is read back from a target that ends before the first block: nothing, and every block to which a write was begun is lost.
pub fn all_lost(verification: &Verification, mark: Mark, end: u64) -> ReadBack {
    let begun = mark.begun.min(verification.blocks);
    let lost = Lost { from_bytes: end, to_bytes: end_of_writes(verification), blocks: begun };
    ReadBack {
        unwritten: verification.blocks - begun,
        damaged: begun,
        lost: (begun > 0).then_some(lost),
        ..ReadBack::default()
    }
}

struct Reader<'a> {
    verification: &'a Verification,
    mark: Mark,
    /// Where the target ends.
    end: u64,
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
            let length = self.verification.block_bytes;
            if expected.offset.saturating_add(u64::from(length)) > self.end {
                self.seen.damaged += 1;
                let lost = self.seen.lost.get_or_insert(Lost { from_bytes: 0, to_bytes: 0, blocks: 0 });
                lost.blocks += 1;
                continue;
            }
            self.awaited.insert(expected.offset, expected);
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
