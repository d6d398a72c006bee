//! Reading a capture file.
//!
//! For: its rows block by block, as far as it is whole, and why not further. Not for: files of other tools ([`crate::foreign`]).

use super::block;
use super::frame::{self, FrameKind, HEAD, MAGIC, Next};
use crate::names::Names;
use crate::row::Row;
use model::captured::{Ending, Origin};
use std::io::Read;

/// Why a file is no capture that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It begins as no capture does.
    #[error("it is no capture of fathom's")]
    NoCapture,
    /// It is of a version that this one does not know.
    #[error("it is a capture of format {0}, and this fathom reads format 1; use the fathom that wrote it")]
    Version(String),
    /// Its header is not there.
    #[error("it is a capture whose header is {0}, so nothing in it can be read")]
    Header(String),
}

/// A capture file that is being read.
#[derive(Debug)]
pub struct Reader<R: Read> {
    from: R,
    at: u64,
    inside: Vec<u8>,
    rows: Vec<Row>,
    is_over: bool,
    /// Its header.
    pub origin: Origin,
    /// Tasks and flags of the rows so far.
    pub names: Names,
    /// Its trailer, once it was read.
    pub ending: Option<Ending>,
    /// Why it ends before the trailer, once that was met.
    pub damage: Option<String>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// Why it is no capture that can be read.
    pub fn new(mut from: R) -> Result<Self, Unreadable> {
        let mut magic = Vec::new();
        let line = MAGIC.len() as u64;
        let read = from.by_ref().take(line).read_to_end(&mut magic);
        if read.is_err() || magic != MAGIC {
            return Err(unknown(&magic));
        }
        let mut inside = Vec::new();
        let header = |why: &str| Unreadable::Header(why.into());
        match frame::read(&mut from, &mut inside) {
            Next::Frame(FrameKind::Header) => {}
            Next::Frame(_) | Next::Damaged(_) => return Err(header("damaged")),
            Next::Nothing | Next::Cut => return Err(header("cut off")),
        }
        let origin = serde_json::from_slice(&inside).map_err(|_| header("damaged"))?;
        let at = line + (HEAD + inside.len()) as u64;
        let (rows, names) = (Vec::new(), Names::default());
        Ok(Self { from, at, inside, rows, is_over: false, origin, names, ending: None, damage: None })
    }

    /// The rows of the block that was read last, with the names that they refer to.
    pub fn last(&self) -> (&[Row], &Names) {
        (&self.rows, &self.names)
    }

    /// The rows of the next block; `None` at the end, whichever that is.
    pub fn block(&mut self) -> Option<&[Row]> {
        if self.is_over {
            return None;
        }
        let why = match frame::read(&mut self.from, &mut self.inside) {
            Next::Frame(FrameKind::Block) => {
                self.rows.clear();
                match block::decode(&self.inside, &mut self.names, &mut self.rows) {
                    Ok(()) => {
                        self.at += (HEAD + self.inside.len()) as u64;
                        return Some(&self.rows);
                    }
                    Err(why) => Some(format!("damaged at byte {}: {why}", self.at)),
                }
            }
            Next::Frame(FrameKind::End) => match serde_json::from_slice(&self.inside) {
                Ok(ending) => {
                    self.ending = Some(ending);
                    None
                }
                Err(_) => Some(format!("damaged at byte {}: its end is not understood", self.at)),
            },
            Next::Frame(FrameKind::Header) => Some(format!("damaged at byte {}: a second header", self.at)),
            Next::Nothing => Some(format!("cut off at byte {}: its end is missing", self.at)),
            Next::Cut => Some(format!("cut off within the block at byte {}", self.at)),
            Next::Damaged(why) => Some(format!("damaged at byte {}: {why}", self.at)),
        };
        self.damage = why;
        self.is_over = true;
        None
    }
}

/// What begins so.
fn unknown(magic: &[u8]) -> Unreadable {
    let same = MAGIC.len() - 2;
    match magic.strip_prefix(&MAGIC[..same]) {
        Some(version) => Unreadable::Version(String::from_utf8_lossy(version).trim().to_owned()),
        None => Unreadable::NoCapture,
    }
}

#[cfg(test)]
mod tests;
