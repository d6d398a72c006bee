//! What came of a verification: what was written, what was read back, and what failed or was damaged.
//!
//! For: its data and the verdict on it. Not for: finding anything out (crate `engine`), nor laying it out (crate `report`).

use crate::job::Kind;
use crate::machine::Place;
use crate::report::Producer;
use crate::stamp::Damage;
use crate::verification::{Mark, Verification};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Most troubles that are kept one by one; beyond it they are only counted.
pub const LISTED: usize = 100;

/// Everything that is known at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The program that verified.
    pub fathom: Producer,
    /// What was asked.
    pub verification: Verification,
    /// How far the writer had got.
    pub mark: Mark,
    /// Path of the target.
    pub target: String,
    /// What is below it.
    pub place: Place,
    /// What was written and how long that took; `None` for a check.
    pub written: Option<(Written, Duration)>,
    /// What was read back and how long that took; `None` where the writing was interrupted.
    pub read: Option<(ReadBack, Duration)>,
    /// Where the reads came from, in words.
    pub source: String,
    /// What a reader has to know beside it.
    pub notes: Vec<String>,
    /// Where the state is kept.
    pub state: Option<PathBuf>,
}

/// The first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All that was read back is as it must be.
    Verified,
    /// Something is not, or could not be written or read.
    Damaged,
    /// Not all was read back.
    Interrupted,
}

impl Verdict {
    /// As it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verified => "VERIFIED",
            Self::Damaged => "DAMAGED",
            Self::Interrupted => "INTERRUPTED",
        }
    }
}

impl Verified {
    /// The first word about it.
    pub fn verdict(&self) -> Verdict {
        let stopped = self.read.as_ref().is_none_or(|(r, _)| r.interrupted);
        if stopped {
            return Verdict::Interrupted;
        }
        if self.damaged() == 0 && self.failed_writes() == 0 { Verdict::Verified } else { Verdict::Damaged }
    }

    /// Blocks that are not as they must be, or cannot be read.
    pub fn damaged(&self) -> u64 {
        self.read.as_ref().map_or(0, |(r, _)| r.damaged + r.failures.count())
    }

    /// Writes and syncs that failed.
    pub fn failed_writes(&self) -> u64 {
        self.written.as_ref().map_or(0, |(w, _)| w.failures.count())
    }

    /// Bytes of so many blocks.
    pub fn bytes_of(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(u64::from(self.verification.block_bytes))
    }
}

/// Why the writing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All was written.
    Complete,
    /// The time was over.
    Time,
    /// The stop flag came up.
    Interrupted,
    /// A write or a sync failed. What was begun since the last mark may be there or not.
    Failed,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// How far it got.
    pub mark: Mark,
    /// Why no further.
    pub ending: Ending,
    /// What failed. After the first failure nothing more is begun.
    pub failures: Failures,
}

/// What was read back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// Blocks that were read and examined.
    pub blocks: u64,
    /// Blocks to which no write was begun: they are not read.
    pub unwritten: u64,
    /// Blocks in which a write must be. Without any, nothing is verified.
    pub must: u64,
    /// Blocks of a write that was begun and not made stable, which is there whole.
    pub newer: u64,
    /// Blocks of such a write that is there in part: their offsets, the first of them.
    pub partial: Vec<u64>,
    /// How many there are.
    pub partials: u64,
    /// Blocks that are damaged.
    pub damaged: u64,
    /// The first of them by their offsets.
    pub damage: Vec<(u64, Damage)>,
    /// Reads that failed.
    pub failures: Failures,
    /// The stop flag came up before all was read.
    pub interrupted: bool,
}

/// Operations that failed or moved too little.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// How many, by what they did and errno; errno 0 for those that moved too little.
    pub counts: BTreeMap<(&'static str, i32), u64>,
    /// The first of them.
    pub first: Vec<Failed>,
}

/// An operation that failed or moved too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What it was to do.
    pub kind: Kind,
    /// Where, in bytes; for a sync the number of the last write before it.
    pub at: u64,
    /// Bytes moved, or minus errno.
    pub result: i32,
}

impl Failures {
    /// How many, of every kind.
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Counts one, and keeps it where it is among the first.
    pub fn add(&mut self, kind: Kind, at: u64, result: i32) {
        *self.counts.entry((kind.word(), result.saturating_neg().max(0))).or_default() += 1;
        if self.first.len() < LISTED {
            self.first.push(Failed { kind, at, result });
        }
    }
}
