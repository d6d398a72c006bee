//! Turns: an access for so many operations, then another one, and over and over.
//!
//! For: which turn it is, and the syncs of each. Not for: which operation of a turn is next, which is drawn as if it were all there is.
//!
//! A turn begins with an operation that waits until all of the one before have completed, and with a burst of its own where it has
//! pauses or periods. Each goes on where it was when it has its next turn.

use super::evenly::Evenly;
use super::flush::Syncs;
use super::lines::Lines;
use super::span::Target;
use super::{Op, Share, Source};
use model::job::{self, Kind, Stream, Turn};
use model::payload::split_mix;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The turns of a stream.
pub(super) struct Turns {
    parts: Vec<Part>,
    now: usize,
    /// Flags of the next operation, where it is the first of its turn.
    behind: u8,
}

/// One of them.
struct Part {
    lines: Lines,
    length: Evenly,
    syncs: Option<Syncs>,
}

impl Turns {
    /// Fails where something of a turn fits nowhere, or means nothing.
    pub(super) fn new(stream: &Stream, targets: &[Target], share: &Share, seed: u64) -> Result<Self, String> {
        let part = |(at, turn): (u64, &Turn)| {
            let seed = split_mix(seed ^ split_mix(at));
            Part::new(&stream.of_turn(turn), turn, targets, share, Xoshiro256PlusPlus::seed_from_u64(seed))
        };
        let parts = (0..).zip(&stream.turns).map(part).collect::<Result<_, _>>()?;
        Ok(Self { parts, now: 0, behind: 0 })
    }

    #[inline]
    fn next(&mut self) -> Op {
        let count = self.parts.len();
        let part = &mut self.parts[self.now];
        if let Some(sync) = part.syncs.as_mut().and_then(Syncs::next) {
            return sync;
        }
        if part.length.take() {
            let before = self.now;
            self.now = if self.now + 1 == count { 0 } else { self.now + 1 };
            self.behind = Op::DRAINED;
            let clock_ns = self.parts[before].lines.clock_ns;
            self.parts[self.now].lines.begin_burst();
            // One clock for all of them.
            self.parts[self.now].lines.clock_ns = clock_ns;
        }
        let part = &mut self.parts[self.now];
        let mut op = part.lines.next();
        op.flags |= std::mem::take(&mut self.behind);
        part.length.count();
        if let Some(syncs) = &mut part.syncs {
            syncs.mark_syncs(std::slice::from_mut(&mut op));
        }
        op
    }
}

impl Part {
    fn new(
        alone: &Stream,
        turn: &Turn,
        targets: &[Target],
        share: &Share,
        rng: Xoshiro256PlusPlus,
    ) -> Result<Self, String> {
        if alone.access.lines.iter().any(|l| l.has_pairs() || l.reply_bytes > 0) {
            return Err(
                "a turn could end between two operations that belong together; leave pairs and replies out"
                    .into(),
            );
        }
        let length = Evenly::new(turn.operations, turn.turns).filter(|_| turn.turns <= turn.operations);
        let length = length.ok_or("a turn has no operation; give each 1 or more")?;
        let writes = |line: &job::Line| line.weight > 0 && line.does(Kind::Write);
        let flush = turn.flush.filter(|_| alone.access.lines.iter().any(writes));
        let syncs = flush.map(Syncs::new).transpose()?;
        let lines = Lines::new(alone, targets, share, rng)?;
        Ok(Self { lines, length, syncs })
    }
}

impl Source for Turns {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            *op = self.next();
        }
    }
}
