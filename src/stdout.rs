//! Standard output: the one way to it.
//!
//! For: bytes that arrive whole or an error that says why not, and text that does nothing to a terminal. Not for: files
//! ([`crate::output`]), nor words about what is going on ([`crate::stderr`]).

use crate::failure::{Failure, cause};
use model::visible::{visible, visible_json};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

/// Its number.
const NUMBER: i32 = 1;

/// Prints text in which nothing is coloured.
///
/// # Errors
/// [`Failure::Refused`] where it cannot be written. A pipe that nobody reads any more is nobody's error.
pub fn text(text: &str) -> Result<(), Failure> {
    bytes(visible(text).as_bytes())
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
    let written =
        if sys::standard::was_closed(NUMBER) { Err(closed()) } else { write(rustix::stdio::stdout(), bytes) };
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
    let shown = if is_json { visible_json(&text) } else { visible(&text) };
    shown.into_owned().into_bytes()
}

/// Whether colours are wanted on a stream: on a terminal, and not where `NO_COLOR` is set.
pub(crate) fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Writes all of it to a file of any kind, waiting where it was opened without.
pub(crate) fn write(file: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    let file: BorrowedFd<'_> = file.as_fd();
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut room = [PollFd::from_borrowed_fd(file, PollFlags::OUT)];
                rustix::io::retry_on_intr(|| poll(&mut room, None))?;
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

fn closed() -> io::Error {
    io::Error::other("it was closed when fathom was started")
}
