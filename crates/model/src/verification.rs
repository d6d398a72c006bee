//! A verification: which write puts what where, in which order, as arithmetic; and how far its writer had got.
//!
//! For: whoever writes blocks, and whoever has to know later what must be in each of them, without any table that could be lost
//! with the machine. Not for: I/O.
//!
//! Writes are numbered from 1. A pass writes every block of the span once, in an order of its own. After every `sync_every`
//! writes, and at the end of each pass, nothing is in flight and everything is made stable; only then the [`Mark`] moves on.

use crate::payload::split_mix;
use crate::stamp::{Expected, SECTOR, Stamp};
use serde::{Deserialize, Serialize};

/// The only format of a state.
const FORMAT: u32 = 1;
/// Largest block: as large as operations get.
pub const MAX_BLOCK_BYTES: u32 = 1 << 30;
/// Stands for the order in which blocks are read back.
const READING: u64 = u64::MAX;

/// What is written, where, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// No other verification has it.
    pub id: u64,
    /// Seed of the orders.
    pub seed: u64,
    /// First byte of the span.
    pub offset_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks of the span.
    pub blocks: u64,
    /// Times each block is written.
    pub passes: u32,
    /// Writes after which everything is made stable.
    pub sync_every: u64,
}

/// How far the writer had got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// All writes up to this one are stable.
    pub synced: u64,
    /// No write behind this one was begun.
    pub begun: u64,
}

/// All that is needed to check a target after a crash of the writer or of its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Format of this value.
    pub fathom_verify: u32,
    /// Path of the target when it was written.
    pub target: String,
    /// What was written.
    pub verification: Verification,
    /// How far.
    pub mark: Mark,
}

impl Verification {
    /// Writes in all.
    pub fn writes(&self) -> u64 {
        self.blocks.saturating_mul(u64::from(self.passes))
    }

    /// Bytes of the span.
    pub fn span_bytes(&self) -> u64 {
        self.blocks.saturating_mul(u64::from(self.block_bytes))
    }

    /// Where nothing is in flight next, if all is stable up to the write `synced`.
    pub fn next_sync(&self, synced: u64) -> u64 {
        let end_of_pass = (synced / self.blocks).saturating_add(1).saturating_mul(self.blocks);
        synced.saturating_add(self.sync_every).min(end_of_pass).min(self.writes())
    }

    /// How far a writer may have got whose last report was that all is stable up to the write `synced`.
    pub fn mark(&self, synced: u64) -> Mark {
        Mark { synced, begun: self.next_sync(synced) }
    }

    /// What the write of this number puts where. From 1 to [`Verification::writes`].
    pub fn stamp(&self, sequence: u64) -> Stamp {
        let (pass, place) = ((sequence - 1) / self.blocks, (sequence - 1) % self.blocks);
        Stamp { id: self.id, offset: self.offset_of(self.order(pass).block(place)), sequence }
    }

    /// What must be, and what may be, in the block that is read back at this turn, from 0; `None` where no write to it was begun.
    pub fn expected(&self, turn: u64, mark: Mark) -> Option<Expected> {
        let block = self.order(READING).block(turn);
        let pass = mark.synced / self.blocks;
        let first = pass * self.blocks;
        // No pass ends between a mark and the next one, so at most one write to each block was under way.
        let here = first + self.order(pass).place(block) + 1;
        let before = || (first - self.blocks) + self.order(pass - 1).place(block) + 1;
        let synced = match here {
            here if here <= mark.synced => here,
            _ if pass > 0 => before(),
            _ => 0,
        };
        let begun = (here > mark.synced && here <= mark.begun).then_some(here);
        (synced > 0 || begun.is_some()).then(|| Expected {
            id: self.id,
            offset: self.offset_of(block),
            synced,
            begun,
        })
    }

    /// Whether the numbers make sense together.
    ///
    /// # Errors
    /// Which does not.
    pub fn check(&self) -> Result<(), String> {
        let Self { block_bytes, blocks, passes, sync_every, .. } = *self;
        if block_bytes == 0 || block_bytes > MAX_BLOCK_BYTES || !(block_bytes as usize).is_multiple_of(SECTOR)
        {
            return Err(format!("blocks of {block_bytes} bytes are no multiple of {SECTOR} up to 1 GiB"));
        }
        let end = blocks.checked_mul(u64::from(block_bytes)).and_then(|b| b.checked_add(self.offset_bytes));
        let writes = blocks.checked_mul(u64::from(passes));
        let fits = |n: Option<u64>| n.is_some_and(|n| i64::try_from(n).is_ok());
        if blocks == 0 || passes == 0 || sync_every == 0 || !fits(end) || !fits(writes) {
            return Err(format!(
                "{blocks} blocks from byte {}, {passes} passes and a sync after {sync_every} writes are no verification",
                self.offset_bytes
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
    /// The state of a verification of a target.
    pub fn new(target: String, verification: Verification, mark: Mark) -> Self {
        Self { fathom_verify: FORMAT, target, verification, mark }
    }

    /// Reads a state that [`State::text`] gave.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let state: Self =
            serde_json::from_str(text).map_err(|e| format!("it is no state of a verification: {e}"))?;
        if state.fathom_verify != FORMAT {
            return Err(format!(
                "its format is {}, and this fathom reads {FORMAT}; use the fathom that wrote it",
                state.fathom_verify
            ));
        }
        state.verification.check()?;
        let Mark { synced, begun } = state.mark;
        let writes = state.verification.writes();
        if synced > writes || begun < synced || begun > state.verification.next_sync(synced) {
            return Err(format!("of {writes} writes, {synced} stable and {begun} begun cannot be"));
        }
        Ok(state)
    }

    /// As text: JSON on several lines.
    pub fn text(&self) -> String {
        // Numbers and a string always have a text.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// A random order of some things, without a table: a Feistel network over the next power of four, walked along until it comes
/// back inside (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
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

    /// The block at a place of the order.
    fn block(&self, place: u64) -> u64 {
        self.walk(place, |(left, right), round| (right, left ^ self.mix(round, right)), &(0..Self::ROUNDS))
    }

    /// The place of a block in the order.
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
            // It goes round in a circle through `from`, which is inside, so this ends.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn verification(blocks: u64, passes: u32, sync_every: u64) -> Verification {
        Verification { id: 5, seed: 9, offset_bytes: 8192, block_bytes: 4096, blocks, passes, sync_every }
    }

    #[test]
    fn an_order_has_everything_once_and_can_be_asked_both_ways() {
        for count in [1, 2, 3, 4, 5, 16, 17, 1000, 4096, 65_537] {
            let order = Order::new(count, 3 + count);
            let mut seen = vec![false; count as usize];
            for place in 0..count {
                let block = order.block(place);
                assert!(!std::mem::replace(&mut seen[block as usize], true), "{block} of {count} twice");
                assert_eq!(order.place(block), place);
            }
        }
        // Far beyond any table.
        let order = Order::new(u64::MAX >> 9, 1);
        assert_eq!(order.place(order.block(123_456_789)), 123_456_789);
    }

    #[test]
    fn an_order_is_random_and_another_in_each_pass() {
        let v = verification(10_000, 2, 100);
        let first: Vec<u64> = (1..=10_000).map(|s| v.stamp(s).offset).collect();
        let second: Vec<u64> = (10_001..=20_000).map(|s| v.stamp(s).offset).collect();
        let fixed = first.iter().zip(&second).filter(|(a, b)| a == b).count();
        let upwards = first.windows(2).filter(|w| w[0] < w[1]).count();
        // One is expected; half with a deviation of 29.
        assert!(fixed < 10, "{fixed}");
        assert!(upwards.abs_diff(5000) < 290, "{upwards}");
    }

    /// What a table would say that saw every write.
    #[test]
    fn what_is_expected_is_what_a_table_would_say() {
        for (blocks, sync_every) in [(1, 1), (7, 3), (16, 5), (16, 100)] {
            let v = verification(blocks, 3, sync_every);
            let mut synced = 0;
            loop {
                let mark = v.mark(synced);
                let last = |from: u64, to: u64, offset: u64| {
                    (from..=to).filter(|s| v.stamp(*s).offset == offset).max()
                };
                let mut seen = 0;
                for turn in 0..blocks {
                    let Some(e) = v.expected(turn, mark) else { continue };
                    seen += 1;
                    assert_eq!(e.synced, last(1, synced, e.offset).unwrap_or(0));
                    assert_eq!(e.begun, last(synced + 1, mark.begun, e.offset));
                }
                assert_eq!(seen, blocks.min(mark.begun), "{v:?} {mark:?}");
                if synced == v.writes() {
                    break;
                }
                synced = v.next_sync(synced);
            }
        }
    }

    #[test]
    fn a_state_comes_back_as_it_was_and_nonsense_is_refused() {
        let v = verification(100, 2, 30);
        let state = State::new("/somewhere".into(), v, v.mark(60));
        let text = state.text();
        assert_eq!(State::parse(&text), Ok(state.clone()));
        let broken = |change: fn(&mut State)| {
            let mut state = state.clone();
            change(&mut state);
            State::parse(&state.text()).expect_err("it is broken")
        };
        assert!(broken(|s| s.fathom_verify = 2).contains("format is 2"));
        assert!(broken(|s| s.verification.blocks = 0).contains("0 blocks"));
        assert!(broken(|s| s.verification.blocks = u64::MAX).contains("no verification"));
        assert!(broken(|s| s.verification.offset_bytes = u64::MAX).contains("no verification"));
        assert!(broken(|s| s.verification.sync_every = 0).contains("after 0 writes"));
        assert!(broken(|s| s.verification.block_bytes = 100).contains("multiple of 512"));
        assert!(broken(|s| s.mark.synced = 201).contains("cannot be"));
        assert!(broken(|s| s.mark.begun = 91).contains("91 begun"));
        assert!(broken(|s| s.mark.begun = 59).contains("59 begun"));
        for text in ["", "{}", "[1]", &text[..text.len() / 2]] {
            assert!(State::parse(text).is_err_and(|e| e.contains("no state")));
        }
    }

    #[test]
    fn no_state_that_is_accepted_is_too_large_for_the_arithmetic() {
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
            let mark = Mark { synced: draw(&edges), begun: 0 };
            let begun = if verification.blocks > 0 { verification.next_sync(mark.synced) } else { 0 };
            let state = State::new(String::new(), verification, Mark { begun, ..mark });
            let Ok(State { verification: v, mark, .. }) = State::parse(&state.text()) else { continue };
            accepted += 1;
            for turn in [0, v.blocks / 2, v.blocks - 1] {
                if let Some(expected) = v.expected(turn, mark) {
                    assert!(expected.offset - v.offset_bytes < v.span_bytes());
                    assert!(expected.synced <= mark.synced && expected.begun.is_none_or(|b| b <= mark.begun));
                }
            }
            for sequence in [1, v.writes() / 2 + 1, v.writes()] {
                assert!(v.stamp(sequence).offset - v.offset_bytes < v.span_bytes());
            }
        }
        assert!(accepted > 500, "{accepted}");
    }
}
