//! Small ioctls on files and block devices.
//!
//! For: sizes and attributes that no other call gives. Not for: anything that changes a device.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IOR(0x12, 114, size_t)`.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
/// `_IOR('f', 1, long)`.
const FS_IOC_GETFLAGS: libc::c_ulong = 0x8008_6601;

/// File attributes of `chattr(1)` that change how data are stored.
pub mod attribute {
    /// Stored compressed.
    pub const COMPRESSED: u32 = 0x4;
    /// Encrypted.
    pub const ENCRYPTED: u32 = 0x800;
    /// ext: data go through the journal.
    pub const JOURNAL_DATA: u32 = 0x4000;
    /// btrfs: overwritten in place, without checksums.
    pub const NOCOW: u32 = 0x0080_0000;
}

/// Bytes of a block device.
///
/// # Errors
/// `ENOTTY` for anything else.
pub fn device_bytes(file: &File) -> io::Result<u64> {
    let mut bytes = 0_u64;
    // SAFETY: the kernel writes one u64 to the pointer; the descriptor is open.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut bytes) };
    if answer == 0 { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}

/// Attributes of a file, see [`attribute`].
///
/// # Errors
/// `ENOTTY` or `EOPNOTSUPP` where the file system has none.
pub fn attributes(file: &File) -> io::Result<u32> {
    // The request is declared with a long, yet file systems write an int; zeroed memory for the larger serves both.
    let mut flags = 0_u64;
    // SAFETY: the kernel writes at most the eight bytes that the pointer is to; the descriptor is open.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETFLAGS, &raw mut flags) };
    if answer == 0 { Ok(flags as u32) } else { Err(io::Error::last_os_error()) }
}
