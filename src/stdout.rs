//! Standard output: the one way to it.
//!
//! For: bytes that arrive whole or an error that says why not, and text that does nothing to a terminal. Not for: files
//! ([`crate::output`]), nor words about what is going on ([`crate::stderr`]).

use crate::failure::{Failure, cause};
use crate::stream::{has_colours, write};
use model::visible::{visible, visible_json};
use rustix::fs::FileType;
use std::io;

/// The end of a line in CSV.
const LINE_END: &str = "\r\n";
/// Its number.
const NUMBER: i32 = 1;

/// Prints text in which nothing is coloured.
///
/// # Errors
/// [`Failure::Refused`] where it cannot be written. A pipe that nobody reads any more is nobody's error.
pub fn text(text: &str) -> Result<(), Failure> {
    bytes(&harmless(text.as_bytes(), false))
}

/// Prints text with colours on a terminal: what renders it is told whether they are wanted.
///
/// # Errors
/// As [`text`].
pub fn coloured(render: impl Fn(bool) -> Vec<u8>) -> Result<(), Failure> {
    let plain = render(false);
    let shown = harmless(&plain, false);
    // Escape sequences are let through only where every one of them is ours.
    if shown == plain && has_colours(&io::stdout()) { bytes(&render(true)) } else { bytes(&shown) }
}

/// Prints JSON.
///
/// # Errors
/// As [`text`].
pub fn json(json: impl AsRef<[u8]>) -> Result<(), Failure> {
    bytes(&harmless(json.as_ref(), true))
}

/// Prints bytes as they are.
///
/// # Errors
/// As [`text`].
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let written = match () {
        () if sys::standard::was_closed(NUMBER) => Err(closed()),
        // What a shell sends there by a slip destroys what is stored.
        () if is_block_device() => Err(io::Error::other("it is a block device, which is never written to")),
        () => write(rustix::stdio::stdout(), bytes),
    };
    match written {
        // `fathom ... | head` closes the pipe early; there is nobody left to tell.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Refused(format!("standard output cannot be written: {e}{}", cause(&e))))
        }
        _ => Ok(()),
    }
}

/// A document as it may reach a terminal, which whoever reads a file of it does: text, or JSON that says the same.
pub(crate) fn harmless(document: &[u8], is_json: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(document);
    if is_json {
        return visible_json(&text).into_owned().into_bytes();
    }
    // The ends of lines in CSV are two characters, which together do no more than end a line.
    let lines: Vec<_> = text.split(LINE_END).map(visible).collect();
    lines.join(LINE_END).into_bytes()
}

fn is_block_device() -> bool {
    let facts = rustix::fs::fstat(rustix::stdio::stdout());
    facts.is_ok_and(|f| FileType::from_raw_mode(f.st_mode) == FileType::BlockDevice)
}

fn closed() -> io::Error {
    io::Error::other("it was closed when fathom was started")
}

#[test]
fn ends_of_lines_stay_and_what_acts_on_a_terminal_does_not() {
    let shown = |text: &str| String::from_utf8(harmless(text.as_bytes(), false)).unwrap_or_default();
    assert_eq!(shown("a,b\r\n1,\"x\ry\"\r\n"), "a,b\r\n1,\"x\\u{d}y\"\r\n");
    assert_eq!(shown("a\u{1b}[1m\n"), "a\\u{1b}[1m\n");
}
