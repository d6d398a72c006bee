//! The way into a capture file.
//!
//! For: telling one by its first bytes, and opening it. Not for: what is in it (crate `capture`).

use crate::failure::{Failure, cause};
use crate::input;
use capture::capture_file::{MAGIC, Reader, Unreadable};
use model::name;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Bytes that are read at once.
const AT_ONCE: usize = 256 << 10;
/// How the first line of a capture begins, whatever its version.
const BEGINS: &[u8] = b"fathom capture ";

/// Whether a file is a capture, by its first bytes; what cannot be read is none.
pub(crate) fn is_capture(path: &Path) -> bool {
    let mut begins = Vec::new();
    let read = input::open(path).and_then(|file| file.take(BEGINS.len() as u64).read_to_end(&mut begins));
    read.is_ok() && begins == BEGINS && MAGIC.starts_with(BEGINS)
}

/// Opens a capture.
///
/// # Errors
/// [`Failure::Usage`] where it is none that can be read.
pub(crate) fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(path)));
    let file = input::open(path).map_err(|e| usage(format!("{e}{}", cause(&e))))?;
    Reader::new(BufReader::with_capacity(AT_ONCE, file)).map_err(|e: Unreadable| usage(e.to_string()))
}
