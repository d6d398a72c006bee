//! Turns: stretches of operations of one kind each, that a stream goes through one after another, over and over.
//!
//! For: a program that does one thing, then another, such as commits and then a checkpoint. Not for: kinds of operations that are drawn
//! for each ([`super::Line`]), nor streams that run beside each other ([`super::Phase`]).

use super::access::{Access, Line};
use super::flush::{Flush, SyncCall};
use super::kind::Kind;
use super::mix::Percent;
use crate::spec::limits::MAX_SYNCS;
use serde::{Deserialize, Serialize};

/// A stretch of operations, and all of the kind. It begins when all operations of the one before have completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Turn {
    /// Reads, writes and trims in `turns` of them, evenly spread.
    pub operations: u32,
    /// At least 1, and no more than `operations`.
    pub turns: u32,
    /// Which blocks; one line.
    pub access: Access,
    /// Calls between its writes that make them stable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<Flush>,
}

impl Turn {
    /// Operations of one, in the mean.
    pub fn length(&self) -> f64 {
        f64::from(self.operations) / f64::from(self.turns.max(1))
    }

    /// `61.5 x 4K sequential write`.
    pub(super) fn describe(&self) -> String {
        format!("{} x {}", self.length(), self.access.describe())
    }

    /// Share of its operations that write.
    fn writes(&self) -> f64 {
        let writes = |line: &Line| match line.mix.read_percent.rest(line.mix.trim_percent) {
            _ if !line.does(Kind::Write) => 0.0,
            left => left.get() / Percent::ALL.get(),
        };
        self.access.lines.first().map_or(0.0, writes)
    }

    /// A summary of all of them: where they are together, each with its share, and how often one of the calls comes.
    pub fn together(turns: &[Self]) -> (Access, Option<Flush>) {
        let ends = turns.iter().map(|t| t.access.offset_bytes.saturating_add(t.access.span_bytes));
        let offset_bytes = turns.iter().map(|t| t.access.offset_bytes).min().unwrap_or(0);
        let span_bytes = ends.max().map_or(u64::MAX, |end| end.saturating_sub(offset_bytes));
        let all: f64 = turns.iter().map(Self::length).sum();
        let weight = |turn: &Self| (turn.length() / all * f64::from(WEIGHTS)).round().max(1.0) as u32;
        let lines = turns.iter().flat_map(|turn| turn.access.lines.iter().map(move |line| (turn, line)));
        let lines = lines.map(|(turn, line)| Line { weight: weight(turn), ..line.clone() }).collect();
        (Access { offset_bytes, span_bytes, strided: None, lines }, Self::flush(turns))
    }

    fn flush(turns: &[Self]) -> Option<Flush> {
        let writes: f64 = turns.iter().map(|turn| turn.length() * turn.writes()).sum();
        let (mut calls, mut call, mut drain) = (0.0, None::<SyncCall>, false);
        for (turn, flush) in turns.iter().filter_map(|turn| Some((turn, turn.flush?))) {
            calls += turn.length() * turn.writes() * f64::from(flush.calls) / f64::from(flush.every.max(1));
            drain |= flush.drain;
            call = call.or(Some(flush.call));
        }
        let every = (writes / calls * MAX_SYNCS).round().max(1.0) as u32;
        call.map(|call| Flush { call, every, calls: MAX_SYNCS as u32, drain })
    }
}

/// What weights of turns sum to, about: as fine as shares of sizes.
const WEIGHTS: u32 = 1_000_000;

#[cfg(test)]
fn plain_turn(operations: u32, turns: u32, offset_bytes: u64, every: u32) -> Turn {
    let access =
        Access { offset_bytes, span_bytes: 1 << 20, ..Access::plain(super::Pattern::Random, 4096, 0) };
    let flush = Flush { call: SyncCall::Fdatasync, every, calls: 1, drain: true };
    Turn { operations, turns, access, flush: Some(flush) }
}

#[test]
fn a_summary_spans_all_turns_and_has_their_shares_and_calls() {
    let turns = [plain_turn(60, 1, 1 << 20, 1), plain_turn(181, 2, 4 << 20, 90)];
    let (access, flush) = Turn::together(&turns);
    assert_eq!((access.offset_bytes, access.span_bytes), (1 << 20, 4 << 20));
    let weights: Vec<u32> = access.lines.iter().map(|line| line.weight).collect();
    assert_eq!(weights, [398_671, 601_329]);
    // 60 and one calls for 150.5 writes, and a little more than one.
    let often = flush.map(|f| f64::from(f.every) / f64::from(f.calls)).unwrap_or_default();
    assert!((often - 150.5 / (60.0 + 90.5 / 90.0)).abs() < 1e-3, "{often}");
    assert_eq!(turns.map(|turn| turn.describe()), ["60 x 4K random write", "90.5 x 4K random write"]);
}
