//! Waiting for every host at a step, and learning what any of them has against going on.
//!
//! Each host sends its reason, or none, to rank 0. Rank 0 takes the first reason by rank, puts the name of that host in front, and sends it
//! to all, so that all of them decide alike.

use super::hosts::Hosts;
use super::letter::Letter;
use crate::failure::Failure;

impl Hosts {
    /// Waits until every host is here; gives the first reason that one of them has, after its name.
    pub(super) fn any_reason(&self, own: Option<String>) -> Result<Option<String>, Failure> {
        if self.rank > 0 {
            self.send(0, Letter::Reason(own));
            return match self.hear(0)? {
                Letter::Reason(first) => Ok(first),
                other => Err(self.misunderstood(0, &other)),
            };
        }
        let mut first = own.map(|why| (0, why));
        for (rank, letter) in self.hear_each()? {
            let Letter::Reason(why) = letter else { return Err(self.misunderstood(rank, &letter)) };
            first = first.or(why.map(|why| (rank, why)));
        }
        let first = first.map(|(rank, why)| format!("{}: {why}", self.name(rank)));
        self.send_each(|_| Letter::Reason(first.clone()));
        Ok(first)
    }
}
