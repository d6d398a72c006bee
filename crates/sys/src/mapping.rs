//! A file mapped into memory, reached by copying.
//!
//! For: loads and stores of every byte of a range, with the answer that read and write would give. Not for: references into
//! the mapping; others change the file at any time, so there are none, and bytes are copied by address.
//!
//! Where a page cannot be had (the file was cut off, the device failed) the access ends with an error instead of the process:
//! see `fault`. The range is then mapped again; advice given for it is lost.

use crate::fault;
use crate::ioctl::device_bytes;
use crate::open_file::OpenFile;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};

/// What the kernel is told about a mapping (`madvise(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Pages are read in order.
    Sequential,
    /// Pages are read in random order.
    Random,
    /// All are needed soon.
    WillNeed,
    /// Huge pages are welcome.
    HugePage,
}

/// A mapped file.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    /// A descriptor of its own, to map a range again.
    file: File,
    writable: bool,
    /// `MAP_SHARED` or `MAP_PRIVATE`.
    sharing: libc::c_int,
    /// A range could not be mapped again, and holds zeros of no file.
    broken: bool,
}

// SAFETY: the mapping is private to this value, apart from what the file's other users do to its bytes, which are only ever
// copied.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a whole file as it is now, with its pages read ahead and mapped where `populate`; with copies of the pages that are
    /// written where `private`, which is refused for a file that may be written.
    ///
    /// # Errors
    /// `EINVAL` for such a file.
    /// `EACCES` where the file was not opened for reading too, `EINVAL` for an empty one, `ENODEV` where its file system maps no
    /// files, `ENOMEM` where it does not fit the address space.
    pub fn new(file: &OpenFile, populate: bool, private: bool) -> io::Result<Self> {
        if private && file.writable {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        fault::install()?;
        let (file, writable) = (file.file.try_clone()?, file.writable);
        let bytes = length(&file)?;
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let sharing = if private { libc::MAP_PRIVATE } else { libc::MAP_SHARED };
        let flags = sharing | if populate { libc::MAP_POPULATE } else { 0 };
        // SAFETY: a fresh mapping at an address that the kernel chooses touches no memory that anyone has.
        let raw =
            unsafe { libc::mmap(ptr::null_mut(), bytes, protection(writable), flags, file.as_raw_fd(), 0) };
        let base = NonNull::new(raw.cast::<u8>()).filter(|_| raw != libc::MAP_FAILED);
        let base = base.ok_or_else(io::Error::last_os_error)?;
        Ok(Self { base, bytes, file, writable, sharing, broken: false })
    }

    /// Tells the kernel how the mapping will be used.
    ///
    /// # Errors
    /// `EINVAL` where it was built without what the advice is about.
    pub fn advise(&self, advice: Advice) -> io::Result<()> {
        let number = match advice {
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::Random => libc::MADV_RANDOM,
            Advice::WillNeed => libc::MADV_WILLNEED,
            Advice::HugePage => libc::MADV_HUGEPAGE,
        };
        // SAFETY: exactly the mapping of this value; these advices change no byte.
        ok(unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, number) })
    }

    /// Copies bytes of the file; fewer where it ends. All loads are done when it returns.
    ///
    /// # Errors
    /// `EIO` where pages could not be read.
    #[inline]
    pub fn load(&mut self, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        let Some((from, bytes)) = self.part(offset, to.len())? else { return Ok(0) };
        let hit = fault::caught(from as usize, from as usize + bytes, || {
            // SAFETY: `part` lies inside the mapping, which is readable; `to` is at least as long and apart from it, being a
            // reference while there are none into the mapping. That others may write the file meanwhile gives torn bytes, as
            // it does with read.
            unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), bytes) };
        });
        settle_loads();
        if hit { self.mend(offset, bytes) } else { Ok(bytes) }
    }

    /// Copies bytes into the file; fewer where it ends. All stores are visible when it returns.
    ///
    /// # Errors
    /// `EIO` where pages could not be had.
    ///
    /// # Panics
    /// Where the file may not be written: the last lock before the kernel.
    #[inline]
    pub fn store(&mut self, offset: u64, from: &[u8]) -> io::Result<usize> {
        assert!(self.writable, "a write to a file that was opened for reading");
        let Some((to, bytes)) = self.part(offset, from.len())? else { return Ok(0) };
        let hit = fault::caught(to as usize, to as usize + bytes, || {
            // SAFETY: as in `load`, the other way around; the mapping of a writable file is writable.
            unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, bytes) };
        });
        settle_stores();
        if hit { self.mend(offset, bytes) } else { Ok(bytes) }
    }

    /// Lets the pages of a range go from this mapping, not from the page cache: the next access to each faults again.
    ///
    /// # Errors
    /// What madvise answers.
    pub fn let_go(&self, offset: u64, bytes: usize) -> io::Result<()> {
        let Some((from, bytes)) = self.part(offset, bytes)? else { return Ok(()) };
        let (start, bytes) = pages(from as usize, bytes);
        // SAFETY: whole pages of the mapping of this value; a shared mapping keeps what was stored in the file's pages.
        ok(unsafe { libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_DONTNEED) })
    }

    /// `msync(2)` over the whole mapping, with `MS_SYNC` where it shall wait and `MS_ASYNC` else.
    ///
    /// # Errors
    /// `EIO` where write back failed.
    pub fn sync(&self, wait: bool) -> io::Result<()> {
        let flag = if wait { libc::MS_SYNC } else { libc::MS_ASYNC };
        // SAFETY: exactly the mapping of this value; no byte of it changes.
        ok(unsafe { libc::msync(self.base.as_ptr().cast(), self.bytes, flag) })
    }

    /// The part of a range that is mapped: its address and length.
    #[inline]
    fn part(&self, offset: u64, bytes: usize) -> io::Result<Option<(*mut u8, usize)>> {
        if self.broken {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let Some(left) = usize::try_from(offset).ok().and_then(|o| self.bytes.checked_sub(o)) else {
            return Ok(None);
        };
        let address = self.base.as_ptr().wrapping_add(offset as usize);
        Ok(Some((address, bytes.min(left))).filter(|p| p.1 > 0))
    }

    /// After a failed access: maps the file again where zeros are now, and gives the answer that read would have given.
    #[cold]
    fn mend(&mut self, offset: u64, bytes: usize) -> io::Result<usize> {
        let address = self.base.as_ptr().wrapping_add(offset as usize) as usize;
        let (start, mapped) = pages(address, bytes);
        let at = start - self.base.as_ptr() as usize;
        // SAFETY: whole pages of the mapping of this value, which is reached by address alone, are replaced by the same pages
        // of the file; only the last may go beyond the end of the file, as it did before.
        let again = unsafe {
            libc::mmap(
                start as *mut libc::c_void,
                mapped,
                protection(self.writable),
                self.sharing | libc::MAP_FIXED,
                self.file.as_raw_fd(),
                at as libc::off_t,
            )
        };
        self.broken = again == libc::MAP_FAILED;
        let there = length(&self.file).unwrap_or(0).saturating_sub(offset);
        // A file that is shorter now has the bytes before its end; they were copied whole, page by page.
        if there < bytes as u64 { Ok(there as usize) } else { Err(io::Error::from_raw_os_error(libc::EIO)) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped, unmapped once; no reference into it ever existed.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The whole pages that a range touches.
fn pages(address: usize, bytes: usize) -> (usize, usize) {
    let page = rustix::param::page_size();
    let start = address & !(page - 1);
    (start, (address + bytes).next_multiple_of(page) - start)
}

fn length(file: &File) -> io::Result<u64> {
    let about = file.metadata()?;
    if about.file_type().is_block_device() { device_bytes(file) } else { Ok(about.len()) }
}

fn protection(writable: bool) -> libc::c_int {
    libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 }
}

fn ok(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits for all loads, so that a stamp taken next is later than they are: rdtsc does not wait by itself, lfence makes it.
#[inline]
fn settle_loads() {
    fence(Ordering::Acquire);
    #[cfg(target_arch = "x86_64")]
    #[allow(unused_unsafe)] // Newer compilers know by themselves that the target has it.
    // SAFETY: every x86-64 CPU has lfence.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
}

/// Waits until all stores are visible to other CPUs, so that a stamp taken next is later than that.
#[inline]
fn settle_stores() {
    fence(Ordering::SeqCst);
    settle_loads();
}

#[cfg(test)]
fn mapped(bytes: usize) -> Mapping {
    use std::io::Write;
    let path = std::env::temp_dir().join(format!("fathom-map-{}-{bytes}", std::process::id()));
    let opened = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let mut file = opened.unwrap_or_else(|e| panic!("{e}"));
    std::fs::remove_file(&path)
        .and_then(|()| file.write_all(&vec![7; bytes]))
        .unwrap_or_else(|e| panic!("{e}"));
    Mapping::new(&OpenFile::new(file, true), false, false).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_file_cut_off_below_its_mapping_ends_accesses_and_not_the_process() {
    let mut map = mapped(65_536 + 100);
    let mut data = vec![1; 32_768];
    assert_eq!(map.load(0, &mut data).ok(), Some(32_768));
    map.file.set_len(20_000).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(map.load(16_384, &mut data).ok(), Some(20_000 - 16_384));
    assert!(data[..20_000 - 16_384].iter().all(|b| *b == 7));
    assert_eq!(map.store(40_960, &data).ok(), Some(0));
    // Grown again it is read anew, and what was stored behind its end is not there.
    map.file.set_len(65_536).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(map.load(40_960, &mut data[..8192]).ok(), Some(8192));
    assert!(data[..8192].iter().all(|b| *b == 0));
    assert_eq!(map.store(40_960, &[9; 5]).ok(), Some(5));
    assert_eq!(map.load(40_960, &mut data[..5]).ok(), Some(5));
    assert_eq!(data[..5], [9; 5]);
}

#[test]
fn what_lies_behind_the_end_is_not_there() {
    let mut map = mapped(10_000);
    let mut data = vec![1; 8192];
    assert_eq!(map.load(8192, &mut data).ok(), Some(10_000 - 8192));
    assert_eq!(map.load(10_000, &mut data).ok(), Some(0));
    assert_eq!(map.load(u64::MAX, &mut data).ok(), Some(0));
    map.let_go(1, 9_000).unwrap_or_else(|e| panic!("{e}"));
    map.sync(true).unwrap_or_else(|e| panic!("{e}"));
}
