//! Streams: descriptors that take bytes one after another.
//!
//! For: writing all of something to whatever kind of file it is. Not for: which stream, nor what to do where it refuses.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

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
