//! Verifying together: whose data each host reads back, and what came of it on all of them.
//!
//! For: the two steps at which hosts that verify wait for each other. Not for: verifying (`crate::verify`), which each does for itself.

use super::hosts::Hosts;
use super::letter::Letter;
use crate::failure::Failure;
use model::Known;
use model::verification::{OnHost, State, Verdict, Verified};
use std::time::Instant;

impl Hosts {
    /// What the host so many behind this one has written, when all have written. `own` is what this one has.
    ///
    /// # Errors
    /// Where it is over before.
    pub(super) fn written(&self, own: State, behind: usize) -> Result<State, Failure> {
        if self.rank > 0 {
            self.send(0, Letter::Written(Box::new(own)));
            return match self.hear(0)? {
                Letter::Written(theirs) => Ok(*theirs),
                other => Err(self.misunderstood(0, &other)),
            };
        }
        let mut all = vec![own];
        for (rank, letter) in self.hear_each()? {
            match letter {
                Letter::Written(state) => all.push(*state),
                other => return Err(self.misunderstood(rank, &other)),
            }
        }
        let read_by = |rank: usize| all[(rank + behind) % self.size].clone();
        self.send_each(|rank| Letter::Written(Box::new(read_by(rank))));
        Ok(read_by(0))
    }

    /// What came of it on all hosts; of those that are lost, why it is not known. On rank 0: the others wait until that is told. Whoever has
    /// lost rank 0 tells what came of it there.
    ///
    /// # Errors
    /// [`Failure::Elsewhere`] on all other ranks where it ended before its time.
    pub(super) fn verified(&self, own: Verified) -> Result<Option<Vec<OnHost>>, Failure> {
        let interrupted = own.verdict() == Verdict::Interrupted;
        // If the measurement is over already, all hosts know.
        let mut by_signal = interrupted && self.shared.over().is_none();
        if self.rank > 0 {
            if by_signal {
                self.end_all(Failure::Interrupted);
            }
            self.send(0, Letter::Verified(Box::new(own.clone())));
            self.wait_for_bye(|| ());
            if self.is_orphan() {
                return Ok(Some(vec![self.on_host(self.rank, Some(own))]));
            }
            return self.told_elsewhere(interrupted).map(|()| None);
        }
        let mut all = vec![None; self.size];
        all[0] = Some(own);
        for (rank, of) in all.iter_mut().enumerate().skip(1).filter(|_| !interrupted) {
            match self.hear(rank) {
                Ok(Letter::Verified(its)) => *of = Some(*its),
                Ok(other) => drop(self.misunderstood(rank, &other)),
                Err(Failure::Interrupted) => {
                    by_signal = true;
                    break;
                }
                Err(why) => {
                    self.end_all(why);
                    break;
                }
            }
        }
        if by_signal {
            self.tell_of_signal();
        }
        let began = Instant::now();
        let after_signal = self.ended_by_signal(by_signal);
        while all.iter().any(Option::is_none) {
            match self.hear_any(self.end_of_last_words(began, after_signal, |rank| all[rank].is_some())) {
                Some((rank, Letter::Verified(of))) => all[rank] = Some(*of),
                Some(_) => {}
                None => break,
            }
        }
        self.decide_who_was_lost(began, |rank| all[rank].is_some());
        Ok(Some(all.into_iter().enumerate().map(|(rank, of)| self.on_host(rank, of)).collect()))
    }

    fn on_host(&self, rank: usize, of: Option<Verified>) -> OnHost {
        let outcome: Known<Verified> = of.ok_or_else(|| match self.shared.over() {
            Some((over, _)) if over.rank == rank => over.why,
            _ => "did not say what came of it".into(),
        });
        OnHost { host: Some(self.name(rank)), outcome }
    }
}
