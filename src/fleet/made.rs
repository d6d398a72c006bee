//! Made files: waiting until every host has made those that are its own to make.
//!
//! For: the step between making files and opening those of other hosts. Not for: who makes which ([`super::files`]).

use super::hosts::Hosts;
use super::letter::Letter;
use crate::failure::Failure;

impl Hosts {
    /// Waits until every host has made the files that are its own to make.
    pub(super) fn all_made(&self) -> Result<(), Failure> {
        if self.rank > 0 {
            self.send(0, Letter::Made);
            return match self.hear(0)? {
                Letter::Made => Ok(()),
                other => Err(self.misunderstood(0, &other)),
            };
        }
        for (rank, letter) in self.hear_each()? {
            let Letter::Made = letter else { return Err(self.misunderstood(rank, &letter)) };
        }
        self.send_each(|_| Letter::Made);
        Ok(())
    }
}
