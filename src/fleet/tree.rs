//! The tree: each host adds up what those below it say, and sends one letter up; what rank 0 says goes down the same way.
//!
//! For: both ways through it. Rank 0 hears from a few hosts however many there are. Not for: who is above whom ([`super::floors`]), what is
//! added up ([`super::merge`], [`super::host_reports`]), nor what is said when somebody is lost, which goes straight to rank 0 ([`super::gather`]).

use super::floors::{above, below};
use super::host_reports::HostReports;
use super::hosts::Hosts;
use super::letter::Letter;
use super::merge::{self, RunParts, Times};
use crate::failure::Failure;

/// What is added up on its way to rank 0.
pub(super) trait Sum: Sized {
    /// Adds that of others.
    fn add(&mut self, other: Self);
    /// As it is sent.
    fn letter(self) -> Letter;
    /// Out of what was sent; the letter where it is another one.
    fn from_letter(letter: Letter) -> Result<Self, Letter>;
}

impl Sum for Times {
    fn add(&mut self, other: Self) {
        merge::add_times(self, other);
    }

    fn letter(self) -> Letter {
        Letter::Times(self)
    }

    fn from_letter(letter: Letter) -> Result<Self, Letter> {
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

    fn from_letter(letter: Letter) -> Result<Self, Letter> {
        if let Letter::RunParts(ran) = letter { Ok(*ran) } else { Err(letter) }
    }
}

impl Sum for HostReports {
    fn add(&mut self, other: Self) {
        self.add(other);
    }

    fn letter(self) -> Letter {
        Letter::Done(Box::new(self))
    }

    fn from_letter(letter: Letter) -> Result<Self, Letter> {
        if let Letter::Done(said) = letter { Ok(*said) } else { Err(letter) }
    }
}

impl Hosts {
    /// Adds what the hosts below say to what this one does, and sends it up: rank 0 gets the sum of all, the others nothing. `tell` is
    /// called now and then while others keep this one waiting, with what is to be told of them.
    pub(super) fn add_up<S: Sum>(&self, own: S, tell: &impl Fn(&[String])) -> Result<Option<S>, Failure> {
        let mut sum = own;
        for rank in below(self.rank, self.size) {
            match S::from_letter(self.hear_telling(rank, tell)?) {
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
