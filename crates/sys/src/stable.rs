//! Making a file's writes stable and giving its bytes back: the calls that no maintained crate offers safely.
//!
//! For: `sync_file_range(2)` and the discard of a block device. Not for: fsync and fallocate, which others offer.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IO(0x12, 119)`, from `linux/fs.h`.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// What makes writes stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// `fsync(2)`.
    #[default]
    All,
    /// `fdatasync(2)`.
    Data,
    /// `sync_file_range(2)` over the whole file, with [`RANGE_FLAGS`].
    Range,
}

/// Waits for write back under way, starts it for what is dirty, and waits for that.
pub const RANGE_FLAGS: u32 =
    libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Writes all dirty pages of a file back and waits for them. Neither metadata nor the device's own cache are flushed.
///
/// # Errors
/// What sync_file_range answers: `EIO` where write back failed, `ESPIPE` for what has no pages.
pub fn sync_range(file: &File) -> io::Result<()> {
    // SAFETY: takes no memory; the descriptor is open. A length of zero stands for the end of the file.
    let answer = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, RANGE_FLAGS) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Discards bytes of a block device.
///
/// # Errors
/// `EOPNOTSUPP` where the device cannot, `EINVAL` off its sectors, `EBADF` where the file was not opened for writing, `ENOTTY`
/// for anything but a block device.
pub fn discard(device: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let range = [offset, bytes];
    // SAFETY: the kernel reads two u64 from the pointer, which is to two of this frame; the descriptor is open.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
