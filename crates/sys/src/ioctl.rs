//! ioctls on files and block devices: size, discard, loop devices, and the extents of a file (`FS_IOC_FIEMAP`, kernel
//! `Documentation/filesystems/fiemap.rst`).

use crate::check;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IOR(0x12, 114, size_t)`.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
/// `LOOP_GET_STATUS64`. This number is older than the scheme that encodes the size of the argument.
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;

/// Returns the size of a block device in bytes.
///
/// # Errors
/// `ENOTTY` for anything else.
pub fn device_bytes(file: &File) -> io::Result<u64> {
    let mut bytes = 0_u64;
    // SAFETY: the kernel writes one u64 to the pointer; the descriptor is open.
    check(unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut bytes) })?;
    Ok(bytes)
}

/// `LO_FLAGS_READ_ONLY` of `linux/loop.h`: the loop device is read-only.
const LO_FLAGS_READ_ONLY: u32 = 1;
/// `LO_FLAGS_DIRECT_IO` of `linux/loop.h`: the loop device uses direct I/O on its backing file.
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// State of a loop device, and what backs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopStatus {
    /// Device number of the backing file's file system, as in `stat`.
    pub device: u64,
    /// Inode of the backing file.
    pub inode: u64,
    /// Device number of the backing block device; 0 if a file backs the loop device.
    pub backing_device: u64,
    /// Offset at which the loop device begins in its backing file.
    pub offset_bytes: u64,
    /// Whether the loop device is read-only.
    pub read_only: bool,
    /// Whether the loop device uses direct I/O on its backing file.
    pub direct: bool,
    /// Path of the backing file when it was bound, cut to 63 bytes.
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
    /// `lo_number`, `lo_encrypt_type` and `lo_encrypt_key_size`.
    encryption: [u32; 3],
    flags: u32,
    file_name: [u8; 64],
    /// `lo_crypt_name`, `lo_encrypt_key` and `lo_init`.
    rest: [u8; 64 + 32 + 16],
}

/// Returns what backs a loop device, even if the backing file was deleted or is in another mount namespace.
///
/// # Errors
/// `ENXIO` if the loop device is not bound, `ENOTTY` for any other file.
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
    check(unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) })?;
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

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
/// `FIEMAP_FLAG_SYNC`: write dirty pages back first, which ends delayed allocation.
const FIEMAP_FLAG_SYNC: u32 = 1;
/// Extents per call: 14 KiB of memory.
const EXTENTS_PER_CALL: usize = 256;
/// Maximum number of extents read per file.
const MAX_EXTENTS: usize = 1 << 20;
/// `FIEMAP_EXTENT_LAST`: the last extent of a file.
const LAST_EXTENT: u32 = 0x1;

/// An extent of a file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the first byte in the file.
    pub logical: u64,
    /// Offset of the first byte on the device.
    pub physical: u64,
    /// Length in bytes.
    pub length: u64,
    reserved64: [u64; 2],
    /// Bits `FIEMAP_EXTENT_*`; the constants of this type are some of them.
    pub flags: u32,
    reserved: [u32; 3],
}

impl Extent {
    /// The position on the device is unknown.
    pub const UNPLACED: u32 = 0x2;
    /// The blocks are not allocated yet.
    pub const DELAYED: u32 = 0x4;
    /// Compressed or otherwise encoded.
    pub const ENCODED: u32 = 0x8;
    /// Stored encrypted.
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
struct FiemapRequest {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; EXTENTS_PER_CALL],
}

/// Returns all extents that overlap the first `bytes` of a file. The kernel writes the file's dirty
/// pages back first.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTTY` on file systems without fiemap; an error without a number if the file has too many extents.
pub fn extents(file: &File, bytes: u64) -> io::Result<Vec<Extent>> {
    extents_up_to(file, bytes, MAX_EXTENTS)
}

fn extents_up_to(file: &File, bytes: u64, max_count: usize) -> io::Result<Vec<Extent>> {
    let mut out: Vec<Extent> = Vec::new();
    let mut start = 0;
    while start < bytes {
        if out.len() >= max_count {
            return Err(io::Error::other(format!("the file has more than {max_count} extents")));
        }
        let mut request = Box::new(FiemapRequest {
            start,
            length: bytes - start,
            flags: FIEMAP_FLAG_SYNC,
            mapped: 0,
            room: EXTENTS_PER_CALL as u32,
            reserved: 0,
            extents: [Extent::default(); EXTENTS_PER_CALL],
        });
        // SAFETY: the pointer is to a request with space for `room` extents, and the kernel fills no more; the descriptor is
        // open for the call.
        check(unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *request) })?;
        let found = &request.extents[..(request.mapped as usize).min(EXTENTS_PER_CALL)];
        out.extend_from_slice(found);
        let Some(last) = found.last().filter(|e| !e.has(LAST_EXTENT)) else { break };
        let next = last.logical.saturating_add(last.length);
        if next <= start {
            break;
        }
        start = next;
    }
    Ok(out)
}

/// `_IO(0x12, 119)`, from `linux/fs.h`.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// Discards bytes of a block device.
///
/// # Errors
/// `EOPNOTSUPP` if the device cannot discard, `EINVAL` for unaligned ranges, `EBADF` if the file was not opened for writing, `ENOTTY` for
/// any other file.
pub fn discard(device: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let range = [offset, bytes];
    // SAFETY: the kernel reads two u64, and the pointer is to two u64 of this frame; the descriptor is open.
    check(unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) })
}

#[test]
fn a_list_of_extents_is_whole_or_an_error() -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let path = std::env::temp_dir().join(format!("fathom-extents-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    let count = 2 * EXTENTS_PER_CALL;
    for at in 0..count as u64 {
        file.write_all_at(&[1; 4096], at * 65536)?;
    }
    match extents_up_to(&file, u64::MAX, count + 1) {
        Ok(all) if all.len() == count => {
            let cut = extents_up_to(&file, u64::MAX, EXTENTS_PER_CALL);
            assert!(cut.is_err_and(|e| e.to_string() == "the file has more than 256 extents"));
        }
        Ok(all) => println!("skipped: this file system keeps the file in {} extents", all.len()),
        Err(why) => println!("skipped: {why}"),
    }
    Ok(())
}

#[test]
fn loop_status_refuses_other_devices() -> io::Result<()> {
    assert_eq!(size_of::<LoopInfo>(), 232);
    assert!(loop_status(&File::open("/dev/null")?).is_err());
    Ok(())
}
