//! Streams: descriptors that take bytes one after another.
//!
//! For: writing all of something to whatever kind of file it is. Not for: which stream, nor what to do where it refuses.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

/// Fewest columns that text is laid out for.
const NARROWEST: usize = 20;

/// Whether a terminal can place text, as far as its name says; one without a name is not known to.
pub(crate) fn places_text() -> bool {
    std::env::var_os("TERM").is_some_and(|kind| !kind.is_empty() && kind != "dumb")
}

/// Whether colours are wanted on a stream: on a terminal that has some, and not where `NO_COLOR` is set.
pub(crate) fn has_colours(stream: &impl IsTerminal) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    stream.is_terminal() && !is_dumb && std::env::var_os("NO_COLOR").is_none()
}

/// Columns of a stream: as many as `COLUMNS` says, else as the terminal has; of anything else as many as fit one that says nothing.
pub(crate) fn columns(stream: Option<BorrowedFd<'_>>) -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let of_terminal = || Some(usize::from(tcgetwinsize(stream?).ok()?.ws_col));
    let known = said.filter(|columns| *columns > 0).or_else(of_terminal).filter(|columns| *columns > 0);
    known.unwrap_or(report::WIDTH).max(NARROWEST)
}

/// Lines of a terminal, as far as it says.
pub(crate) fn rows(terminal: BorrowedFd<'_>) -> Option<usize> {
    tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0)
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
