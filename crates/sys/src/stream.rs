//! What the streams of a library do, whatever the language.
//!
//! For: one set of calls for C's and C++'s. Not for: opening them, which each does in its own way.

use std::io;

/// A stream with a position and a buffer of its own.
pub trait Buffered {
    /// Reads on from the position; fewer bytes where the file ends.
    ///
    /// # Errors
    /// What the kernel answered, where nothing was read before.
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize>;

    /// Writes on from the position, into the buffer as long as there is room.
    ///
    /// # Errors
    /// What the kernel answered.
    fn write(&mut self, data: &[u8]) -> io::Result<usize>;

    /// Goes to an offset; what is in the buffer is written before.
    ///
    /// # Errors
    /// What the kernel answers.
    fn seek(&mut self, offset: u64) -> io::Result<()>;

    /// Writes what is in the buffer to the kernel.
    ///
    /// # Errors
    /// What the kernel answers.
    fn flush(&mut self) -> io::Result<()>;
}
