//! Which pages of a file are in memory: `cachestat(2)`, and `mincore(2)` where that is denied or lies.
//!
//! For: counts of pages. Not for: evicting them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `__NR_cachestat`, the same number on every architecture (kernel 6.5).
const SYS_CACHESTAT: libc::c_long = 451;

/// Counts of pages of a file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStat {
    /// Resident.
    pub cached: u64,
    /// Of these, dirty.
    pub dirty: u64,
    /// Of these, being written back.
    pub writeback: u64,
    /// Evicted.
    pub evicted: u64,
    /// Evicted not long ago.
    pub recently_evicted: u64,
}

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// Asks cachestat about a whole file.
///
/// # Errors
/// `EPERM` for a file that the caller neither owns nor may write, `ENOSYS` before kernel 6.5, `EOPNOTSUPP` elsewhere.
pub fn cachestat(file: &File) -> io::Result<CacheStat> {
    // A length of zero stands for the end of the file.
    let range = Range { offset: 0, length: 0 };
    let mut stat = CacheStat::default();
    // SAFETY: both pointers are to whole structures of this frame with the layout of the kernel's; the descriptor is open.
    let answer =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0) };
    if answer == 0 { Ok(stat) } else { Err(io::Error::last_os_error()) }
}

/// Counts resident pages of the first `bytes` of a file by mapping it. For files that the caller does not own the kernel
/// answers that all pages are resident; the caller of this function must know.
///
/// # Errors
/// What mmap or mincore answers.
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
        let map =
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let answer = libc::mincore(map, length, states.as_mut_ptr());
        let error = io::Error::last_os_error();
        libc::munmap(map, length);
        if answer == 0 { Ok(()) } else { Err(error) }
    };
    answer.map(|()| states.iter().filter(|s| **s & 1 == 1).count() as u64)
}
