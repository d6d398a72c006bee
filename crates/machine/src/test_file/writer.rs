//! Writing the data of test files.
//!
//! For: data that nothing else has, at any place of a file. Not for: how much is written, and when it is enough ([`super::TestFile`]).

use super::{LOOK_EVERY, TestFile};
use model::job::Cache;
use model::payload::{fill, split_mix};
use model::units::MIB;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use sys::arena::Arena;

/// Keeps the data of test files apart from what workers write with the same seed.
const DATA: u64 = 0x7465_7374_2066_696c;

/// Writes one MiB after another, past the page cache where that works.
pub(crate) struct Writer {
    file: File,
    direct: bool,
    arena: Arena,
    key: u64,
}

impl Writer {
    pub(super) fn new(made: &TestFile, seed: u64) -> io::Result<Self> {
        match made.reopen(Cache::Direct, true) {
            Ok(file) => Self::over(file, true, seed),
            Err(_) => Self::over(made.file.try_clone()?, false, seed),
        }
    }

    /// One that writes to a file, past the page cache where that was opened so.
    pub(crate) fn over(file: File, direct: bool, seed: u64) -> io::Result<Self> {
        Ok(Self { file, direct, arena: Arena::new(1, MIB as usize)?, key: split_mix(seed ^ DATA) })
    }

    /// Writes so many bytes from here on, at most a MiB. No other call has this offset.
    pub(super) fn part(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let buffer = &mut self.arena.slot_mut(0)[..bytes.min(MIB) as usize];
        fill(buffer, self.key.wrapping_add(offset));
        self.file.write_all_at(buffer, offset)
    }

    /// Writes the MiB from here on.
    pub(crate) fn next(&mut self, offset: u64) -> io::Result<()> {
        let buffer = self.arena.slot_mut(0);
        // Every MiB has a key of its own, so no two are alike anywhere in the file.
        fill(buffer, self.key.wrapping_add(offset / MIB));
        let written = self.file.write_all_at(buffer, offset);
        if self.direct && written.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::InvalidInput) {
            // Some file systems take the flag and refuse the operation.
            self.direct = false;
            let without = rustix::fs::fcntl_getfl(&self.file)? - OFlags::DIRECT;
            rustix::fs::fcntl_setfl(&self.file, without)?;
            return self.next(offset);
        }
        written?;
        if !self.direct && offset.is_multiple_of(LOOK_EVERY) {
            // Else the time limit would only measure memory, and the sync after it take minutes.
            self.file.sync_data()?;
        }
        Ok(())
    }
}
