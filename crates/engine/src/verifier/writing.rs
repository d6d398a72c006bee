//! The writing of a verification.
//!
//! For: all passes, made stable from mark to mark. Not for: keeping the marks; whoever asks is told of each.

use super::work::{Step, Work};
use super::{Through, carry_out};
use crate::source::Op;
use model::job::Kind;
use model::stamp;
use model::verification::{Ending, Failures, Mark, Verification, Written};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What the writing needs beside its target.
pub struct Writing<'a> {
    /// What is to be written.
    pub verification: &'a Verification,
    /// When to begin no further write; at least one mark is made whatever it says.
    pub until: Option<Instant>,
    /// Ends it early.
    pub stop: &'a AtomicBool,
    /// Is told how many writes have completed.
    pub progress: &'a mut dyn FnMut(u64),
    /// Is told after everything up to a mark is stable and before any further write; why it could not keep the mark ends all.
    pub marked: &'a mut dyn FnMut(Mark) -> Result<(), String>,
}

/// Writes a verification to a file that is open for it. Every block is written once a pass, and nothing is in flight between two
/// passes, so that no two writes to a block are ever under way together.
///
/// # Errors
/// Where the engine fails, the target does not answer or a mark could not be kept.
pub fn write(through: &Through, file: File, writing: Writing) -> Result<Written, String> {
    let block_bytes = writing.verification.block_bytes;
    let mut work = Writer {
        writing,
        begun: 0,
        completed: 0,
        synced: 0,
        ending: None,
        failures: Failures::default(),
        lost: None,
    };
    carry_out(through, file, true, block_bytes, &mut work)?;
    let Writer { begun, synced, ending, failures, lost, .. } = work;
    match lost {
        Some(why) => Err(why),
        None => {
            Ok(Written { mark: Mark { synced, begun }, ending: ending.unwrap_or(Ending::Complete), failures })
        }
    }
}

struct Writer<'a> {
    writing: Writing<'a>,
    begun: u64,
    completed: u64,
    synced: u64,
    ending: Option<Ending>,
    failures: Failures,
    /// Why a mark could not be kept.
    lost: Option<String>,
}

impl Writer<'_> {
    fn time_is_over(&self) -> bool {
        self.writing.until.is_some_and(|until| Instant::now() >= until)
    }

    fn fail(&mut self, kind: Kind, at: u64, result: i32) {
        self.failures.add(kind, at, result);
        self.ending = Some(Ending::Failed);
    }
}

impl Work for Writer<'_> {
    fn next(&mut self) -> Step {
        let Writing { verification, stop, .. } = &self.writing;
        if self.ending.is_none() && stop.load(Ordering::Relaxed) {
            self.ending = Some(Ending::Interrupted);
        }
        if self.ending.is_some() {
            return Step::End;
        }
        let unsynced = self.begun > self.synced;
        if self.begun == verification.next_sync(self.synced) || (unsynced && self.time_is_over()) {
            return Step::Sync;
        }
        self.begun += 1;
        let offset = verification.stamp(self.begun).offset;
        // The number of the write travels with it; the loop here has no use for times.
        Step::Op(Op {
            offset,
            at_ns: self.begun,
            length: verification.block_bytes,
            kind: Kind::Write,
            ..Op::NONE
        })
    }

    fn fill(&mut self, op: &Op, data: &mut [u8]) {
        stamp::write(data, &self.writing.verification.stamp(op.at_ns));
    }

    fn done(&mut self, op: &Op, result: i32, _: &[u8]) {
        self.completed += 1;
        if u32::try_from(result) != Ok(op.length) {
            self.fail(Kind::Write, op.offset, result);
        }
        (self.writing.progress)(self.completed);
    }

    fn synced(&mut self, result: i32) {
        // A write before it may have failed after this was asked for.
        if result < 0 {
            self.fail(Kind::Sync, self.begun, result);
        }
        if self.ending.is_some() {
            return;
        }
        self.synced = self.begun;
        let verification = self.writing.verification;
        let over = self.synced == verification.writes();
        if over || self.time_is_over() {
            self.ending = Some(if over { Ending::Complete } else { Ending::Time });
        }
        let begun = if self.ending.is_some() { self.synced } else { verification.next_sync(self.synced) };
        if let Err(why) = (self.writing.marked)(Mark { synced: self.synced, begun }) {
            self.lost = Some(why);
            self.ending = Some(Ending::Failed);
        }
    }

    fn closed(&mut self, result: i32) {
        self.fail(Kind::Sync, self.begun, result);
    }
}
