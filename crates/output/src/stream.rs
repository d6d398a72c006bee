//! Width, colours and complete writes of standard output, standard error and other streams.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

/// Minimum columns of a layout.
const NARROWEST: usize = 20;

/// Returns whether to use colours on a stream: it is a terminal with colours, and `NO_COLOR` is not set.
pub fn has_colours(stream: &impl IsTerminal) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    stream.is_terminal() && !is_dumb && std::env::var_os("NO_COLOR").is_none()
}

/// Returns the columns of a stream, at least 20: the value of `COLUMNS`, otherwise the width of the
/// terminal, otherwise [`report::WIDTH`].
pub fn columns(stream: Option<BorrowedFd<'_>>) -> usize {
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let of_terminal = || Some(usize::from(tcgetwinsize(stream?).ok()?.ws_col));
    let known = given.filter(|columns| *columns > 0).or_else(of_terminal).filter(|columns| *columns > 0);
    known.unwrap_or(report::WIDTH).max(NARROWEST)
}

/// Returns the number of lines of a terminal; `None` if it does not report them.
pub fn rows(terminal: BorrowedFd<'_>) -> Option<usize> {
    tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// Whether a stream is a block device, which a mistaken redirection would overwrite.
pub(crate) fn is_disk(stream: BorrowedFd<'_>) -> bool {
    fstat(stream).is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::BlockDevice)
}

/// Writes all bytes to a file of any kind. Waits while a non-blocking file accepts no more bytes.
///
/// # Errors
/// Why the bytes cannot be written.
pub fn write(file: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
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
