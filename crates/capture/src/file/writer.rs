//! Writing a capture file while rows come in.
//!
//! For: bounded memory, and a file that is readable up to its last whole block whenever it stops. Not for: where the file is.

use super::block::{self, BLOCK_ROWS};
use super::frame::{self, FrameKind, MAGIC};
use crate::names::Names;
use crate::row::Row;
use model::captured::{Ending, Origin};
use std::io::{self, Write};

/// A capture file that is being written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    to: W,
    rows: Vec<Row>,
    has_queue: bool,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Begins with the header.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn new(mut to: W, origin: &Origin) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        frame::write(&mut to, FrameKind::Header, &serde_json::to_vec(origin)?)?;
        to.flush()?;
        Ok(Self { to, rows: Vec::with_capacity(BLOCK_ROWS), has_queue: origin.queue, written: 0 })
    }

    /// Adds a row; every so many of them are written.
    ///
    /// # Errors
    /// Why they cannot be written.
    pub fn push(&mut self, row: &Row, names: &Names) -> io::Result<()> {
        self.rows.push(*row);
        if self.rows.len() < BLOCK_ROWS { Ok(()) } else { self.flush(names) }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.written + self.rows.len() as u64
    }

    /// Writes the rows that wait.
    ///
    /// # Errors
    /// Why they cannot be written.
    pub fn flush(&mut self, names: &Names) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        frame::write(&mut self.to, FrameKind::Block, &block::encode(&self.rows, names, self.has_queue))?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        self.to.flush()
    }

    /// Ends it.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn finish(mut self, names: &Names, ending: &Ending) -> io::Result<W> {
        self.flush(names)?;
        let ending = Ending { rows: self.written, ..ending.clone() };
        frame::write(&mut self.to, FrameKind::End, &serde_json::to_vec(&ending)?)?;
        self.to.flush()?;
        Ok(self.to)
    }
}
