//! What came of a verification: what was written, what was read back, and what failed or was damaged.
//!
//! For: its data and the verdict on it, of one host and of several together. Not for: finding anything out (crate `engine`), nor laying it
//! out (crate `report`).

use crate::Known;
use crate::job::Kind;
use crate::machine::Place;
use crate::report::Producer;
use crate::stamp::Damage;
use crate::verification::{Mark, Verification};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most troubles that are kept one by one; beyond it they are only counted.
pub const LISTED: usize = 100;

/// What came of a verification, on one host or on several that verified together.
#[derive(Clone, Debug, PartialEq)]
pub struct Verifications {
    /// The program that verified.
    pub fathom: Producer,
    /// By rank.
    pub hosts: Vec<OnHost>,
}

/// What came of it on a host.
#[derive(Clone, Debug, PartialEq)]
pub struct OnHost {
    /// Its name; `None` where it verified alone.
    pub host: Option<String>,
    /// What came of it, or why that is not known.
    pub outcome: Known<Verified>,
}

/// Everything that one host knows at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verified {
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
    /// Where the state is kept, as [`crate::name::text`] of the path.
    pub state: Option<String>,
    /// Whose data were read back; `None` where they are its own.
    pub read_of: Option<String>,
}

/// The first word.
///
/// In the order of what it says of several hosts: damage that one of them found stands, whatever became of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All that was read back is as it must be.
    Verified,
    /// Not all was read back.
    Interrupted,
    /// Something is not, or could not be written or read.
    Damaged,
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

impl Verifications {
    /// What came of it where a host verified alone.
    pub fn only(&self) -> Option<&Verified> {
        match self.hosts.as_slice() {
            [OnHost { host: None, outcome: Ok(only) }] => Some(only),
            _ => None,
        }
    }

    /// What is known, host by host.
    pub fn known(&self) -> impl Iterator<Item = &Verified> {
        self.hosts.iter().filter_map(|on| on.outcome.as_ref().ok())
    }

    /// The first word about all of them.
    pub fn verdict(&self) -> Verdict {
        let each = self.hosts.iter().map(OnHost::verdict);
        each.max().unwrap_or(Verdict::Interrupted)
    }

    /// The names of the hosts with this verdict.
    pub fn named(&self, verdict: Verdict) -> Vec<&str> {
        let theirs = self.hosts.iter().filter(|on| on.verdict() == verdict);
        theirs.filter_map(|on| on.host.as_deref()).collect()
    }
}

impl OnHost {
    /// The first word about it: what is not known was not read back.
    pub fn verdict(&self) -> Verdict {
        self.outcome.as_ref().map_or(Verdict::Interrupted, Verified::verdict)
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// How far it got.
    pub mark: Mark,
    /// Why no further.
    pub ending: Ending,
    /// What failed. After the first failure nothing more is begun.
    pub failures: Failures,
}

/// What was read back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Blocks that are damaged, lost ones included.
    pub damaged: u64,
    /// What the target is too short for by now.
    #[serde(default)]
    pub lost: Option<Lost>,
    /// The first of them by their offsets.
    pub damage: Vec<(u64, Damage)>,
    /// Reads that failed.
    pub failures: Failures,
    /// The stop flag came up before all was read.
    pub interrupted: bool,
}

/// Bytes that were written and that the target no longer has: it was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Where the target ends.
    pub from_bytes: u64,
    /// The end of what was written.
    pub to_bytes: u64,
    /// Blocks of which a part or all is lost.
    pub blocks: u64,
}

/// Operations that failed or moved too little.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// How many, in the order of what they did and errno.
    pub counts: Vec<FailureCount>,
    /// The first of them.
    pub first: Vec<Failed>,
}

/// How many operations failed in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// What they were to do.
    pub kind: Kind,
    /// Why they failed; 0 for those that moved too little.
    pub errno: i32,
    /// How many.
    pub count: u64,
}

/// An operation that failed or moved too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        self.counts.iter().map(|c| c.count).sum()
    }

    /// Counts one, and keeps it where it is among the first.
    pub fn add(&mut self, kind: Kind, at: u64, result: i32) {
        let errno = result.saturating_neg().max(0);
        match self.counts.binary_search_by_key(&(kind, errno), |c| (c.kind, c.errno)) {
            Ok(at) => self.counts[at].count += 1,
            Err(at) => self.counts.insert(at, FailureCount { kind, errno, count: 1 }),
        }
        if self.first.len() < LISTED {
            self.first.push(Failed { kind, at, result });
        }
    }
}
