//! Width, colours and complete writes of standard output, standard error and other streams.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

/// Narrowest layout.
const NARROWEST: usize = 20;

/// Whether to use colours on a stream: it is a terminal with colours, and `NO_COLOR` is unset.
pub fn has_colours(stream: &impl IsTerminal) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    stream.is_terminal() && !is_dumb && std::env::var_os("NO_COLOR").is_none()
}

/// Columns of a stream: `COLUMNS`, else the terminal's width, else the default width.
pub fn columns(stream: Option<BorrowedFd<'_>>) -> usize {
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let of_terminal = || Some(usize::from(tcgetwinsize(stream?).ok()?.ws_col));
    let known = given.filter(|columns| *columns > 0).or_else(of_terminal).filter(|columns| *columns > 0);
    known.unwrap_or(report::WIDTH).max(NARROWEST)
}

/// Lines of a terminal, if it reports them.
pub fn rows(terminal: BorrowedFd<'_>) -> Option<usize> {
    tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// Writes all bytes to a file of any kind. Waits if it is non-blocking.
///
/// # Errors
/// Why they cannot be written.
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
