//! Verification: the data and place of each write, how far the writer got, and the result of reading everything back.
//!
//! Places of writes are computed from a seed, so no table can be lost in a crash. Writes are numbered from 1. A pass
//! writes every block of the span once, in its own order. After every `sync_every` writes, and at the end of each pass,
//! nothing is in flight and a sync makes everything stable. Only then does the [`WriterProgress`] advance.

use crate::Known;
use crate::job::Kind;
use crate::machine::Place;
use crate::payload::split_mix;
use crate::stamp::{Damage, Expected, SECTOR, Stamp};
use crate::units::show_counted;
use crate::verdict::Producer;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The only format of a state.
const FORMAT: u32 = 1;
/// Maximum size of a block in bytes. Operations of a benchmark have the same limit.
pub const MAX_BLOCK_BYTES: u32 = 1 << 30;
/// Number of the pass whose order is used to read blocks back. No pass of writes has this number.
const READ_BACK_PASS: u64 = u64::MAX;

/// The settings of a verification, from which the data, the places and the order of its writes are
/// computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Unique id of this verification.
    pub id: u64,
    /// Seed of the orders in which the passes write the blocks.
    pub seed: u64,
    /// Offset of the span on the target in bytes.
    pub offset_bytes: u64,
    /// Length of each write in bytes.
    pub block_bytes: u32,
    /// Number of blocks in the span.
    pub blocks: u64,
    /// Number of times that each block is written.
    pub passes: u32,
    /// Number of writes between two syncs. A sync also ends each pass, even after fewer writes.
    pub sync_every: u64,
}

/// How far the writer got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriterProgress {
    /// All writes up to this sequence number are stable; 0 if no write is stable.
    pub synced: u64,
    /// Sequence number of the last write that may have begun; 0 if certainly no write has begun.
    pub begun: u64,
}

/// Everything needed to check a target after a crash of the writer or of its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Format of the state.
    pub fathom_verify: u32,
    /// Path of the target when it was written.
    pub target: String,
    /// The writes of the verification.
    pub verification: Verification,
    /// How far the writer got.
    #[serde(rename = "mark")]
    pub writer_progress: WriterProgress,
}

impl Verification {
    /// Returns the total number of writes.
    pub fn writes(&self) -> u64 {
        self.blocks.saturating_mul(u64::from(self.passes))
    }

    /// Returns the size of the span in bytes.
    pub fn span_bytes(&self) -> u64 {
        self.blocks.saturating_mul(u64::from(self.block_bytes))
    }

    /// Returns the sequence number of the last write before the next sync, if the writes up to `synced` are stable.
    pub fn next_sync(&self, synced: u64) -> u64 {
        let end_of_pass = (synced / self.blocks).saturating_add(1).saturating_mul(self.blocks);
        synced.saturating_add(self.sync_every).min(end_of_pass).min(self.writes())
    }

    /// Returns the progress of a writer that last reported all writes up to `synced` as stable.
    pub fn progress_after(&self, synced: u64) -> WriterProgress {
        WriterProgress { synced, begun: self.next_sync(synced) }
    }

    /// Returns the data and place of a write. Writes are numbered from 1 to [`Verification::writes`].
    pub fn stamp(&self, sequence: u64) -> Stamp {
        let (pass, place) = ((sequence - 1) / self.blocks, (sequence - 1) % self.blocks);
        Stamp { id: self.id, offset: self.offset_of(self.order(pass).block(place)), sequence }
    }

    /// Returns the required and the allowed content of the block at `index`, from 0, in the order of reading back; `None`
    /// if no write to that block was begun.
    pub fn expected(&self, index: u64, writer_progress: WriterProgress) -> Option<Expected> {
        let block = self.order(READ_BACK_PASS).block(index);
        let pass = writer_progress.synced / self.blocks;
        let first = pass * self.blocks;
        // A sync follows each pass, so since the last sync at most one write to each block has begun.
        let here = first + self.order(pass).place(block) + 1;
        let before = || (first - self.blocks) + self.order(pass - 1).place(block) + 1;
        let synced = match here {
            here if here <= writer_progress.synced => here,
            _ if pass > 0 => before(),
            _ => 0,
        };
        let begun = (here > writer_progress.synced && here <= writer_progress.begun).then_some(here);
        (synced > 0 || begun.is_some()).then(|| Expected {
            id: self.id,
            offset: self.offset_of(block),
            synced,
            begun,
        })
    }

    /// Checks that the numbers are consistent.
    ///
    /// # Errors
    /// Which numbers are inconsistent.
    pub fn check(&self) -> Result<(), String> {
        let Self { block_bytes, blocks, passes, sync_every, .. } = *self;
        if block_bytes == 0 || block_bytes > MAX_BLOCK_BYTES || !(block_bytes as usize).is_multiple_of(SECTOR)
        {
            return Err(format!(
                "a block size of {block_bytes} bytes is not a multiple of {SECTOR} up to 1 GiB"
            ));
        }
        let end = blocks.checked_mul(u64::from(block_bytes)).and_then(|b| b.checked_add(self.offset_bytes));
        let writes = blocks.checked_mul(u64::from(passes));
        let fits = |n: Option<u64>| n.is_some_and(|n| i64::try_from(n).is_ok());
        if blocks == 0 || passes == 0 || sync_every == 0 || !fits(end) || !fits(writes) {
            return Err(format!(
                "{} from byte {}, {} and a sync after {} are not possible",
                show_counted(blocks, "block"),
                self.offset_bytes,
                show_counted(passes.into(), "pass"),
                show_counted(sync_every, "write")
            ));
        }
        Ok(())
    }

    fn offset_of(&self, block: u64) -> u64 {
        self.offset_bytes + block * u64::from(self.block_bytes)
    }

    fn order(&self, pass: u64) -> Order {
        Order::new(self.blocks, split_mix(self.seed ^ split_mix(pass)))
    }
}

impl State {
    /// Creates the state of a verification of the target at this path.
    pub fn new(target: String, verification: Verification, writer_progress: WriterProgress) -> Self {
        Self { fathom_verify: FORMAT, target, verification, writer_progress }
    }

    /// Parses the text made by [`State::text`].
    ///
    /// # Errors
    /// Why the text is not a state.
    pub fn parse(text: &str) -> Result<Self, String> {
        let state: Self = serde_json::from_str(text)
            .map_err(|e| format!("the file is not the state of a verification: {e}"))?;
        if state.fathom_verify != FORMAT {
            return Err(format!(
                "the format of the state is {}, but this fathom reads {FORMAT}; use the fathom that wrote it",
                state.fathom_verify
            ));
        }
        state.verification.check()?;
        let WriterProgress { synced, begun } = state.writer_progress;
        let writes = state.verification.writes();
        if synced > writes || begun < synced || begun > state.verification.next_sync(synced) {
            return Err(format!(
                "the state counts {synced} stable and {begun} begun writes of {writes}, which is not possible"
            ));
        }
        Ok(state)
    }

    /// Formats the state as JSON on several lines.
    pub fn text(&self) -> String {
        // Numbers and strings always have a JSON form.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// A random permutation without a table: a Feistel network over the next power of four, repeated until the result is a
/// valid block (cycle walking; Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
struct Order {
    count: u64,
    half_bits: u32,
    key: u64,
}

impl Order {
    const ROUNDS: u64 = 4;

    fn new(count: u64, key: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), key }
    }

    /// Returns the block at a position of the permutation.
    fn block(&self, place: u64) -> u64 {
        self.walk(place, |(left, right), round| (right, left ^ self.mix(round, right)), &(0..Self::ROUNDS))
    }

    /// Returns the position of a block in the permutation.
    fn place(&self, block: u64) -> u64 {
        let backwards = (0..Self::ROUNDS).rev();
        self.walk(block, |(left, right), round| (right ^ self.mix(round, left), left), &backwards)
    }

    fn walk(
        &self,
        from: u64,
        step: impl Fn((u64, u64), u64) -> (u64, u64),
        rounds: &(impl Iterator<Item = u64> + Clone),
    ) -> u64 {
        let mut at = from;
        loop {
            let halves = (at >> self.half_bits, at & self.mask());
            let (left, right) = rounds.clone().fold(halves, &step);
            at = left << self.half_bits | right;
            // The walk is a cycle through `from`, which is a valid block, so the walk ends.
            if at < self.count {
                return at;
            }
        }
    }

    fn mix(&self, round: u64, half: u64) -> u64 {
        split_mix(self.key ^ split_mix(half << 3 | round)) & self.mask()
    }

    fn mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }
}

/// Maximum number of listed failures, and of listed damaged blocks. Further ones are only counted.
pub const LISTED: usize = 100;

/// The result of a verification, on one host or on several that verified together.
#[derive(Clone, Debug, PartialEq)]
pub struct Verifications {
    /// The program that verified.
    pub fathom: Producer,
    /// The results of the hosts, in the order of ranks.
    pub hosts: Vec<HostVerification>,
}

/// The result on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostVerification {
    /// Name of the host; `None` if it verified alone.
    pub host: Option<String>,
    /// The result, or why it is unknown.
    pub outcome: Known<Verified>,
}

/// The result of a verification on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// The verification that was requested.
    pub verification: Verification,
    /// How far the writer got.
    #[serde(rename = "mark")]
    pub writer_progress: WriterProgress,
    /// Path of the target.
    pub target: String,
    /// The storage stack below the target.
    pub place: Place,
    /// The writes and their duration; `None` with `--check`, which only reads.
    pub written: Option<(Written, Duration)>,
    /// The reads and their duration; `None` if the verification ended before reading back.
    pub read: Option<(ReadBack, Duration)>,
    /// Where the data came from when it was read, such as the device or the page cache, as text. Empty if nothing was read back.
    pub source: String,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Path of the state file, formatted by [`crate::name::text`]; `None` if the file was not kept.
    pub state: Option<String>,
    /// Name of the host whose data was read back; `None` if it was this host.
    pub read_of: Option<String>,
}

/// Start of [`Verified::source`] if all data came from the devices below the target.
pub const FROM_DEVICE: &str = "the device:";

/// The verdict on a verification, ordered by severity. Over several hosts the worst one decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All blocks that were read back are correct, and nothing failed.
    Verified,
    /// Not all blocks were read back, and no damage was found before the interruption.
    Interrupted,
    /// A block is damaged, or a write or read failed.
    Damaged,
}

impl Verdict {
    /// Returns the printed form.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verified => "VERIFIED",
            Self::Damaged => "DAMAGED",
            Self::Interrupted => "INTERRUPTED",
        }
    }
}

impl Verifications {
    /// Returns the result if one host verified alone and its result is known, otherwise `None`.
    pub fn only(&self) -> Option<&Verified> {
        match self.hosts.as_slice() {
            [HostVerification { host: None, outcome: Ok(only) }] => Some(only),
            _ => None,
        }
    }

    /// Returns the results that are known, in the order of the hosts.
    pub fn known(&self) -> impl Iterator<Item = &Verified> {
        self.hosts.iter().filter_map(|on| on.outcome.as_ref().ok())
    }

    /// Returns the worst verdict of all hosts; [`Verdict::Interrupted`] without hosts.
    pub fn verdict(&self) -> Verdict {
        let each = self.hosts.iter().map(HostVerification::verdict);
        each.max().unwrap_or(Verdict::Interrupted)
    }

    /// Returns the names of the hosts with this verdict.
    pub fn named(&self, verdict: Verdict) -> Vec<&str> {
        let theirs = self.hosts.iter().filter(|on| on.verdict() == verdict);
        theirs.filter_map(|on| on.host.as_deref()).collect()
    }
}

impl HostVerification {
    /// Returns the verdict on this host. An unknown result counts as interrupted.
    pub fn verdict(&self) -> Verdict {
        self.outcome.as_ref().map_or(Verdict::Interrupted, Verified::verdict)
    }
}

impl Verified {
    /// Returns the verdict on this verification. Damage that was found before an interruption
    /// counts.
    pub fn verdict(&self) -> Verdict {
        if self.damaged() > 0 || self.failed_writes() > 0 {
            Verdict::Damaged
        } else if self.is_interrupted() {
            Verdict::Interrupted
        } else {
            Verdict::Verified
        }
    }

    /// Whether some blocks were not read back.
    pub fn is_interrupted(&self) -> bool {
        self.read.as_ref().is_none_or(|(r, _)| r.interrupted)
    }

    /// Returns the number of blocks that are damaged or cannot be read.
    pub fn damaged(&self) -> u64 {
        self.read.as_ref().map_or(0, |(r, _)| r.damaged + r.failures.count())
    }

    /// Returns the number of writes and syncs that failed.
    pub fn failed_writes(&self) -> u64 {
        self.written.as_ref().map_or(0, |(w, _)| w.failures.count())
    }

    /// Returns the size of `blocks` blocks in bytes.
    pub fn bytes_of(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(u64::from(self.verification.block_bytes))
    }
}

/// Why the writing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Everything was written.
    Complete,
    /// The time was up.
    Time,
    /// The stop flag was set.
    Interrupted,
    /// A write or a sync failed. Writes begun since the last sync may or may not be stored.
    Failed,
}

/// The result of writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// How far the writer got.
    #[serde(rename = "mark")]
    pub writer_progress: WriterProgress,
    /// Why the writing ended.
    pub ending: Ending,
    /// Failed operations. After the first failure no further operation begins.
    pub failures: Failures,
}

/// The result of reading back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBack {
    /// Number of blocks that were read and examined.
    pub blocks: u64,
    /// Number of blocks that are not read, because no write to them was begun.
    pub unwritten: u64,
    /// Number of blocks that must contain data, because a write to the block was made stable. If it
    /// is 0, the verification proves nothing.
    pub must: u64,
    /// Number of blocks that contain a complete write that was begun but not made stable.
    pub newer: u64,
    /// Offsets of the first blocks that contain a part of a write that was begun but not made stable.
    pub partial: Vec<u64>,
    /// Number of blocks that contain a part of a write that was begun but not made stable.
    pub partials: u64,
    /// Number of blocks that are damaged, including lost ones.
    pub damaged: u64,
    /// The part of the written range that the target no longer has; `None` if nothing is lost.
    #[serde(default)]
    pub lost: Option<Lost>,
    /// The first damaged blocks, as offset and damage.
    pub damage: Vec<(u64, Damage)>,
    /// Reads that failed.
    pub failures: Failures,
    /// Whether the stop flag was set before everything was read.
    pub interrupted: bool,
}

/// Written bytes that the target no longer has because it was truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Start of the lost bytes: the current size of the target.
    pub from_bytes: u64,
    /// End of the lost bytes: the end of the written range, in bytes from the start of the target.
    pub to_bytes: u64,
    /// Number of blocks that are lost partly or completely.
    pub blocks: u64,
}

/// Operations that failed or moved fewer bytes than requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// Number of failures of each kind and errno, ordered by kind and then by errno.
    pub counts: Vec<FailureCount>,
    /// Details of the first [`LISTED`] failures.
    pub first: Vec<Failed>,
}

/// Number of operations of one kind that failed with the same error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// Kind of operation.
    pub kind: Kind,
    /// Error number; 0 for operations that moved fewer bytes than requested.
    pub errno: i32,
    /// Number of operations that failed with this kind and error.
    pub count: u64,
}

/// An operation that failed or moved fewer bytes than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Kind of operation.
    pub kind: Kind,
    /// Offset in bytes; for a sync, the sequence number of the last write before the sync.
    pub at: u64,
    /// Bytes moved, or a negative errno.
    pub result: i32,
}

impl Failures {
    /// Returns the number of failures of all kinds.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|c| c.count).sum()
    }

    /// Counts a failure, and lists it if it is one of the first.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn verification(blocks: u64, passes: u32, sync_every: u64) -> Verification {
        Verification { id: 5, seed: 9, offset_bytes: 8192, block_bytes: 4096, blocks, passes, sync_every }
    }

    #[test]
    fn an_order_is_an_invertible_permutation() {
        for count in [1, 2, 3, 4, 5, 16, 17, 1000, 4096, 65_537] {
            let order = Order::new(count, 3 + count);
            let mut seen = vec![false; count as usize];
            for place in 0..count {
                let block = order.block(place);
                assert!(!std::mem::replace(&mut seen[block as usize], true), "{block} of {count} twice");
                assert_eq!(order.place(block), place);
            }
        }
        // This order is far too large for a table.
        let order = Order::new(u64::MAX >> 9, 1);
        assert_eq!(order.place(order.block(123_456_789)), 123_456_789);
    }

    #[test]
    fn orders_are_random_and_differ_between_passes() {
        let v = verification(10_000, 2, 100);
        let first: Vec<u64> = (1..=10_000).map(|s| v.stamp(s).offset).collect();
        let second: Vec<u64> = (10_001..=20_000).map(|s| v.stamp(s).offset).collect();
        let fixed = first.iter().zip(&second).filter(|(a, b)| a == b).count();
        let upwards = first.windows(2).filter(|w| w[0] < w[1]).count();
        // On average one block has the same place in both orders. Half of the steps go upwards,
        // with a standard deviation of 29.
        assert!(fixed < 10, "{fixed}");
        assert!(upwards.abs_diff(5000) < 290, "{upwards}");
    }

    /// A table of every write gives the same expected content.
    #[test]
    fn expected_content_equals_that_of_a_table() {
        for (blocks, sync_every) in [(1, 1), (7, 3), (16, 5), (16, 100)] {
            let v = verification(blocks, 3, sync_every);
            let mut synced = 0;
            loop {
                let writer_progress = v.progress_after(synced);
                let last = |from: u64, to: u64, offset: u64| {
                    (from..=to).filter(|s| v.stamp(*s).offset == offset).max()
                };
                let mut seen = 0;
                for turn in 0..blocks {
                    let Some(e) = v.expected(turn, writer_progress) else { continue };
                    seen += 1;
                    assert_eq!(e.synced, last(1, synced, e.offset).unwrap_or(0));
                    assert_eq!(e.begun, last(synced + 1, writer_progress.begun, e.offset));
                }
                assert_eq!(seen, blocks.min(writer_progress.begun), "{v:?} {writer_progress:?}");
                if synced == v.writes() {
                    break;
                }
                synced = v.next_sync(synced);
            }
        }
    }

    #[test]
    fn a_state_survives_a_round_trip_and_invalid_text_is_rejected() {
        let v = verification(100, 2, 30);
        let state = State::new("/somewhere".into(), v, v.progress_after(60));
        let text = state.text();
        assert_eq!(State::parse(&text), Ok(state.clone()));
        let broken = |change: fn(&mut State)| {
            let mut state = state.clone();
            change(&mut state);
            State::parse(&state.text()).expect_err("it is broken")
        };
        assert!(broken(|s| s.fathom_verify = 2).contains("format of the state is 2"));
        assert!(broken(|s| s.verification.blocks = 0).contains("0 blocks"));
        assert!(broken(|s| s.verification.blocks = u64::MAX).contains("not possible"));
        assert!(broken(|s| s.verification.offset_bytes = u64::MAX).contains("not possible"));
        assert!(broken(|s| s.verification.sync_every = 0).contains("after 0 writes"));
        assert!(broken(|s| s.verification.block_bytes = 100).contains("multiple of 512"));
        assert!(broken(|s| s.writer_progress.synced = 201).contains("not possible"));
        assert!(broken(|s| s.writer_progress.begun = 91).contains("91 begun"));
        assert!(broken(|s| s.writer_progress.begun = 59).contains("59 begun"));
        for text in ["", "{}", "[1]", &text[..text.len() / 2]] {
            assert!(State::parse(text).is_err_and(|e| e.contains("not the state")));
        }
    }

    #[test]
    fn accepted_states_do_not_overflow() {
        let mut key = 0;
        let mut draw = |edges: &[u64]| {
            key = split_mix(key);
            edges[(key % edges.len() as u64) as usize].wrapping_add((key >> 32) % 3).wrapping_sub(1)
        };
        let edges =
            [1, 2, 3, 512, 4096, 1 << 20, 1 << 30, 1 << 32, 1 << 53, 1 << 54, 1 << 62, 1 << 63, u64::MAX];
        let mut accepted = 0;
        for _ in 0..50_000 {
            let verification = Verification {
                id: draw(&edges),
                seed: draw(&edges),
                offset_bytes: draw(&[1, 513, 1 << 40, 1 << 62, 1 << 63]),
                block_bytes: (draw(&[512, 4096, 1 << 30]) as u32).next_multiple_of(512),
                blocks: draw(&edges),
                passes: draw(&[1, 2, 1 << 20, u64::from(u32::MAX)]) as u32,
                sync_every: draw(&edges),
            };
            let writer_progress = WriterProgress { synced: draw(&edges), begun: 0 };
            let begun =
                if verification.blocks > 0 { verification.next_sync(writer_progress.synced) } else { 0 };
            let state = State::new(String::new(), verification, WriterProgress { begun, ..writer_progress });
            let Ok(State { verification: v, writer_progress, .. }) = State::parse(&state.text()) else {
                continue;
            };
            accepted += 1;
            for turn in [0, v.blocks / 2, v.blocks - 1] {
                if let Some(expected) = v.expected(turn, writer_progress) {
                    assert!(expected.offset - v.offset_bytes < v.span_bytes());
                    assert!(
                        expected.synced <= writer_progress.synced
                            && expected.begun.is_none_or(|b| b <= writer_progress.begun)
                    );
                }
            }
            for sequence in [1, v.writes() / 2 + 1, v.writes()] {
                assert!(v.stamp(sequence).offset - v.offset_bytes < v.span_bytes());
            }
        }
        assert!(accepted > 500, "{accepted}");
    }
}
