//! The plain accesses: one line, one size, one target.
//!
//! For: the lowest cost where nothing is to be chosen but a place. Not for: anything else (`lines` does all).

use super::draw::Kinds;
use super::walk::Straight;
use super::{Op, Source};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Blocks one behind the other.
pub(super) struct Sequential {
    /// The operation at the span's first byte.
    pub(super) first: Op,
    pub(super) walk: Straight,
    pub(super) kinds: Kinds,
    pub(super) rng: Xoshiro256PlusPlus,
}

impl Source for Sequential {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            let kind = self.kinds.draw(&mut self.rng);
            *op = Op { offset: self.first.offset + self.walk.take(), kind, ..self.first };
        }
    }
}

/// Blocks anywhere.
pub(super) struct Random {
    /// The operation at the span's first byte.
    pub(super) first: Op,
    pub(super) align: u64,
    pub(super) count: u64,
    pub(super) kinds: Kinds,
    pub(super) rng: Xoshiro256PlusPlus,
}

impl Source for Random {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            let place = self.rng.random_range(0..self.count) * self.align;
            let kind = self.kinds.draw(&mut self.rng);
            *op = Op { offset: self.first.offset + place, kind, ..self.first };
        }
    }
}
