//! The page cache of a file: resident pages (`cachestat(2)`, `mincore(2)`), `readahead(2)` and `sync_file_range(2)`.
//!
//! Pages are evicted with `posix_fadvise`, which the crate `rustix` offers.

use crate::check;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `__NR_cachestat`, the same number on every architecture (kernel 6.5).
const SYS_CACHESTAT: libc::c_long = 451;

/// Page counts of a file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStat {
    /// Resident pages.
    pub cached: u64,
    /// Dirty pages among the resident ones.
    pub dirty: u64,
    /// Resident pages under write-back.
    pub writeback: u64,
    /// Pages that were evicted from the cache.
    pub evicted: u64,
    /// Pages evicted so recently that reading them again would indicate a lack of memory.
    pub recently_evicted: u64,
}

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// Counts the pages of a whole file.
///
/// # Errors
/// `EPERM` for a file that the caller neither owns nor may write, `ENOSYS` before kernel 6.5, `EOPNOTSUPP` on file systems without support.
pub fn cachestat(file: &File) -> io::Result<CacheStat> {
    // A length of zero extends to the end of the file.
    let range = Range { offset: 0, length: 0 };
    let mut stat = CacheStat::default();
    // SAFETY: both pointers are to whole structures of this frame with the kernel's layout; the descriptor is open.
    check(unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0) })?;
    Ok(stat)
}

/// Counts the resident pages of the first `bytes` of a file by mapping the file. Call it only for files that the caller owns: for other
/// files the kernel reports all pages as resident.
///
/// # Errors
/// An error of `mmap(2)` or `mincore(2)`.
pub fn mincore(file: &File, bytes: u64) -> io::Result<u64> {
    let page = rustix::param::page_size();
    let length = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    if length == 0 {
        return Ok(0);
    }
    let mut states = vec![0_u8; length.div_ceil(page)];
    // SAFETY: a fresh mapping without any access right; it is never read. `states` has a byte for each of its pages. It is
    // unmapped before the function returns.
    let answer = unsafe {
        let map = mmap(std::ptr::null_mut(), length, ProtFlags::empty(), MapFlags::SHARED, file, 0)?;
        let answer = check(libc::mincore(map, length, states.as_mut_ptr()));
        libc::munmap(map, length);
        answer
    };
    answer.map(|()| states.iter().filter(|s| **s & 1 == 1).count() as u64)
}

/// Starts to read `bytes` at an offset of the file, without waiting: the kernel reads them into the page cache. One call reads no
/// more than the larger of the device's `queue/read_ahead_kb` and `optimal_io_size`.
///
/// # Errors
/// `EBADF` if the file was not opened for reading, `EINVAL` for files without pages.
pub fn readahead(file: &File, offset: u64, bytes: usize) -> io::Result<()> {
    let offset = libc::off64_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: takes no memory; the descriptor is open.
    let answer = unsafe { libc::readahead(file.as_raw_fd(), offset, bytes) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The sync call after writes. Only `All` and `Data` make the writes durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// `fsync(2)`.
    #[default]
    All,
    /// `fdatasync(2)`.
    Data,
    /// `sync_file_range(2)` over the whole file, with [`RANGE_FLAGS`]. It flushes neither metadata nor the cache of the device.
    Range,
}

/// Flags that wait for write-back in progress, start write-back of dirty pages, and wait until it is complete.
pub const RANGE_FLAGS: u32 =
    libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Writes back all dirty pages of a file and waits for them. Flushes neither metadata nor the cache of the device.
///
/// # Errors
/// `EIO` if write-back failed, `ESPIPE` for files without pages.
pub fn sync_range(file: &File) -> io::Result<()> {
    // SAFETY: takes no memory; the descriptor is open. A length of zero extends to the end of the file.
    check(unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, RANGE_FLAGS) })
}

#[test]
fn readahead_needs_a_file_opened_for_reading() -> io::Result<()> {
    readahead(&File::open("/proc/self/exe")?, 0, 4096)?;
    let only_writes = File::options().write(true).open("/dev/null")?;
    let error = readahead(&only_writes, 0, 4096).err().and_then(|e| e.raw_os_error());
    assert_eq!(error, Some(libc::EBADF));
    Ok(())
}
