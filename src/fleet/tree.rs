//! The tree: each host adds up what those below it say, and sends one letter up; what rank 0 says goes down the same way.
//!
//! For: who is above whom, and both ways through it. Rank 0 hears from a few hosts however many there are. Not for: what is added up
//! ([`super::merge`], [`super::said`]), nor for what is said when somebody is lost, which goes straight to rank 0 ([`super::gather`]).

use super::hosts::Hosts;
use super::letter::Letter;
use super::merge::{self, RunParts, Times};
use super::said::Said;
use crate::failure::Failure;
use std::ops::Range;

/// Hosts right below one. Three floors below rank 0 are four thousand hosts.
const BELOW: usize = 16;

/// The host right above one that is not rank 0.
fn above(rank: usize) -> usize {
    rank.saturating_sub(1) / BELOW
}

/// The hosts right below one, of so many.
pub(super) fn below(rank: usize, size: usize) -> Range<usize> {
    let first = rank * BELOW + 1;
    first.min(size)..(first + BELOW).min(size)
}

/// What is added up on its way to rank 0.
pub(super) trait Sum: Sized {
    /// Adds that of others.
    fn add(&mut self, other: Self);
    /// As it is sent.
    fn letter(self) -> Letter;
    /// Out of what was sent; the letter where it is another one.
    fn of(letter: Letter) -> Result<Self, Letter>;
}

impl Sum for Times {
    fn add(&mut self, other: Self) {
        merge::add_times(self, other);
    }

    fn letter(self) -> Letter {
        Letter::Times(self)
    }

    fn of(letter: Letter) -> Result<Self, Letter> {
        if let Letter::Times(times) = letter { Ok(times) } else { Err(letter) }
    }
}

impl Sum for RunParts {
    fn add(&mut self, other: Self) {
        self.add(other);
    }

    fn letter(self) -> Letter {
        Letter::RunParts(Box::new(self))
    }

    fn of(letter: Letter) -> Result<Self, Letter> {
        if let Letter::RunParts(ran) = letter { Ok(*ran) } else { Err(letter) }
    }
}

impl Sum for Said {
    fn add(&mut self, other: Self) {
        self.add(other);
    }

    fn letter(self) -> Letter {
        Letter::Done(Box::new(self))
    }

    fn of(letter: Letter) -> Result<Self, Letter> {
        if let Letter::Done(said) = letter { Ok(*said) } else { Err(letter) }
    }
}

impl Hosts {
    /// Adds what the hosts below say to what this one does, and sends it up: rank 0 gets the sum of all, the others nothing. `tell` is
    /// called now and then while others keep this one waiting, with what is to be told of them.
    pub(super) fn add_up<S: Sum>(&self, own: S, tell: &impl Fn(&[String])) -> Result<Option<S>, Failure> {
        let mut sum = own;
        for rank in below(self.rank, self.size) {
            match S::of(self.hear_telling(rank, tell)?) {
                Ok(its) => sum.add(its),
                Err(other) => return Err(self.misunderstood(rank, &other)),
            }
        }
        if self.rank == 0 {
            return Ok(Some(sum));
        }
        self.send(above(self.rank), sum.letter());
        Ok(None)
    }

    /// Sends down what rank 0 says, which alone gives it here; each host gets it.
    pub(super) fn hand_down(&self, from_rank_0: Option<Letter>) -> Result<Letter, Failure> {
        let letter = match from_rank_0 {
            Some(letter) => letter,
            None => self.hear(above(self.rank))?,
        };
        below(self.rank, self.size).for_each(|rank| self.send(rank, letter.clone()));
        Ok(letter)
    }
}

#[test]
fn every_host_is_below_one_other_and_few_floors_from_rank_0() {
    for size in [1, 2, 17, 18, 1_000, 10_000] {
        let mut all: Vec<usize> = (0..size).flat_map(|rank| below(rank, size)).collect();
        assert!((0..size).all(|rank| below(rank, size).all(|lower| above(lower) == rank)));
        all.sort_unstable();
        assert_eq!(all, (1..size).collect::<Vec<_>>());
        let floors =
            std::iter::successors(Some(size - 1), |rank| (*rank > 0).then(|| above(*rank))).count() - 1;
        assert!(floors <= 4, "{size} hosts: {floors}");
    }
}
