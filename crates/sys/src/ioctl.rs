//! Small ioctls on files and block devices.
//!
//! For: sizes and attributes that no other call gives. Not for: anything that changes a device.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IOR(0x12, 114, size_t)`.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
/// `LOOP_GET_STATUS64`: its number is older than the scheme that encodes sizes.
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
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

/// `LO_FLAGS_READ_ONLY` and `LO_FLAGS_DIRECT_IO` of `linux/loop.h`.
const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// What is behind a loop device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopStatus {
    /// Device number of the file system that the backing file is in, as `stat` shows it.
    pub device: u64,
    /// Inode of the backing file there.
    pub inode: u64,
    /// Number of the backing device; 0 where a file is behind it.
    pub backing_device: u64,
    /// First byte that is used.
    pub offset_bytes: u64,
    /// Whether it was bound for reading only.
    pub read_only: bool,
    /// Whether it reads its file past the page cache.
    pub direct: bool,
    /// The name under which it was bound, at most 63 bytes of it.
    pub file_name: String,
}

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    /// Number, encryption type and length of the key.
    encryption: [u32; 3],
    flags: u32,
    file_name: [u8; 64],
    /// Another name; the key; two words of initialisation.
    rest: [u8; 64 + 32 + 16],
}

/// What is behind a loop device, in whichever mount namespace it was bound and whether the file still has a name.
///
/// # Errors
/// `ENXIO` where it is not bound, `ENOTTY` for anything else.
pub fn loop_status(file: &File) -> io::Result<LoopStatus> {
    let mut info = LoopInfo {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        encryption: [0; 3],
        flags: 0,
        file_name: [0; 64],
        rest: [0; 112],
    };
    // SAFETY: the kernel writes one `struct loop_info64`, whose layout and size this is; the descriptor is open.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let name = info.file_name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(LoopStatus {
        device: info.device,
        inode: info.inode,
        backing_device: info.rdevice,
        offset_bytes: info.offset,
        read_only: info.flags & LO_FLAGS_READ_ONLY != 0,
        direct: info.flags & LO_FLAGS_DIRECT_IO != 0,
        file_name: String::from_utf8_lossy(name).into_owned(),
    })
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

#[test]
fn what_is_no_loop_device_has_nothing_behind_it() -> io::Result<()> {
    assert_eq!(size_of::<LoopInfo>(), 232);
    assert!(loop_status(&File::open("/dev/null")?).is_err());
    Ok(())
}
