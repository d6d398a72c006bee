//! Where the positions of files are, for engines whose calls go on from there.
//!
//! For: a seek only where an operation does not begin where the last one ended, as a program would. Not for: calls that name
//! their offset.

use crate::source::Op;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};

/// The position of each file; `None` where it has to be set anew.
pub(super) struct Positions(Vec<Option<u64>>);

impl Positions {
    /// Of so many files.
    pub(super) fn for_files(files: usize) -> Self {
        Self(vec![None; files])
    }

    /// Has the position of an operation's file where the operation begins.
    #[inline]
    pub(super) fn go(&mut self, mut file: &File, op: &Op) -> io::Result<()> {
        let at = &mut self.0[op.file as usize];
        if *at != Some(op.offset) {
            *at = None;
            *at = Some(file.seek(SeekFrom::Start(op.offset))?);
        }
        Ok(())
    }

    /// Takes note of what an operation moved. After an error nobody knows.
    #[inline]
    pub(super) fn moved(&mut self, op: &Op, answer: io::Result<usize>) -> io::Result<usize> {
        let bytes = answer.as_ref().ok().map(|moved| *moved as u64);
        self.0[op.file as usize] = bytes.and_then(|b| op.offset.checked_add(b));
        answer
    }
}
