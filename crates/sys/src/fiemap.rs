//! Extents of a file, as its file system maps them (`FS_IOC_FIEMAP`, kernel `Documentation/filesystems/fiemap.rst`).
//!
//! For: the raw extents. Not for: concluding whether reads reach the device.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
/// Flush dirty pages first, so that delayed allocation is over.
const FLAG_SYNC: u32 = 1;
/// Extents asked for per call: 14 KiB of memory.
const BATCH: usize = 256;
/// Most extents read of one file; more say nothing new.
const MOST: usize = 1 << 20;

/// Set on the last extent of a file.
const LAST: u32 = 0x1;

/// One extent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// First byte in the file.
    pub logical: u64,
    /// First byte on the device.
    pub physical: u64,
    /// Bytes.
    pub length: u64,
    reserved64: [u64; 2],
    /// `FIEMAP_EXTENT_*`.
    pub flags: u32,
    reserved: [u32; 3],
}

impl Extent {
    /// Where it is on the device is not told.
    pub const UNPLACED: u32 = 0x2;
    /// Not allocated yet.
    pub const DELAYED: u32 = 0x4;
    /// Compressed or otherwise encoded.
    pub const ENCODED: u32 = 0x8;
    /// Encrypted.
    pub const ENCRYPTED: u32 = 0x80;
    /// Inside the inode, or packed with other files' data.
    pub const INLINE: u32 = 0x200 | 0x400;
    /// Allocated and never written.
    pub const UNWRITTEN: u32 = 0x800;
    /// Shared with another file.
    pub const SHARED: u32 = 0x2000;

    /// Whether any of these flags is set.
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }
}

#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}

/// All extents that touch the first `bytes` of a file, after its dirty pages were flushed.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTTY` where the file system has no such map.
pub fn extents(file: &File, bytes: u64) -> io::Result<Vec<Extent>> {
    let mut out: Vec<Extent> = Vec::new();
    let mut start = 0;
    while start < bytes && out.len() < MOST {
        let mut request = Box::new(Request {
            start,
            length: bytes - start,
            flags: FLAG_SYNC,
            mapped: 0,
            room: BATCH as u32,
            reserved: 0,
            extents: [Extent::default(); BATCH],
        });
        // SAFETY: the pointer is to a request whose `room` is the number of extents that follow it, which is what the
        // kernel fills at most; the descriptor is open for the call.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *request) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &request.extents[..(request.mapped as usize).min(BATCH)];
        out.extend_from_slice(found);
        let Some(last) = found.last().filter(|e| !e.has(LAST)) else { break };
        let next = last.logical.saturating_add(last.length);
        if next <= start {
            break;
        }
        start = next;
    }
    Ok(out)
}
