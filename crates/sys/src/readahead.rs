//! Asking for pages before they are needed: a call that no maintained crate offers safely.
//!
//! For: `readahead(2)`. Not for: advice about a whole file (`posix_fadvise`), which others offer.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Starts reading so many bytes from an offset into the page cache, and does not wait for them. The kernel may read less: no
/// more at once than the device's `queue/read_ahead_kb` or `optimal_io_size`.
///
/// # Errors
/// `EBADF` where the file was not opened for reading, `EINVAL` for what has no pages.
pub fn readahead(file: &File, offset: u64, bytes: usize) -> io::Result<()> {
    let offset = libc::off64_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: takes no memory; the descriptor is open.
    let answer = unsafe { libc::readahead(file.as_raw_fd(), offset, bytes) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn pages_are_asked_for_or_the_reason_is_said() -> io::Result<()> {
    readahead(&File::open("/proc/self/exe")?, 0, 4096)?;
    let only_writes = File::options().write(true).open("/dev/null")?;
    let error = readahead(&only_writes, 0, 4096).err().and_then(|e| e.raw_os_error());
    assert_eq!(error, Some(libc::EBADF));
    Ok(())
}
