//! An open file with the right to write to it.
//!
//! For: the last lock before a write, which every interface asks. Not for: opening files.

use std::fs::File;
use std::io;

/// A file that operations name by its index.
#[derive(Debug)]
pub struct OpenFile {
    /// What operations read and write.
    pub file: File,
    /// Whether operations may write to it.
    pub writable: bool,
}

impl OpenFile {
    /// The same open file under another number.
    ///
    /// # Errors
    /// What the kernel answers: mostly that there are too many.
    pub fn copy(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, writable: self.writable })
    }
}
