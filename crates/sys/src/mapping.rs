//! A file mapped into memory: bytes of a range are loaded and stored by copying.
//!
//! No reference points into the mapping, because other processes may change the file at any time. A page may be missing because the file
//! was truncated or the device failed. Then an access behaves like read and write:
//!
//! 1. The kernel sends SIGBUS. The handler maps a page of zeros at the failed address and notes the failure. It uses only a thread-local
//!    word, `mmap` and `sigaction`. Any other SIGBUS goes to the previous handler.
//! 2. The access completes. The range is mapped to the file again, which loses advice given for the range.
//! 3. The operation ends short at the new end of the file, or with EIO.

use crate::check;
use crate::ioctl::device_bytes;
use crate::open_file::OpenFile;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileTypeExt;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence, fence};

/// Advice about a mapping (`madvise(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Advice {
    /// Pages are read in order.
    Sequential = libc::MADV_SEQUENTIAL,
    /// Pages are read in random order.
    Random = libc::MADV_RANDOM,
    /// All pages are needed soon.
    WillNeed = libc::MADV_WILLNEED,
    /// Use huge pages.
    HugePage = libc::MADV_HUGEPAGE,
}

/// A mapped file.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    /// A duplicate of the descriptor, to map a range again.
    file: File,
    writable: bool,
    /// `MAP_SHARED` or `MAP_PRIVATE`.
    sharing: MapFlags,
    /// Whether a range contains zeros because it could not be mapped again after a failed access.
    broken: bool,
}

// SAFETY: the mapping is private to this value. Other users of the file may change its bytes, which are only copied.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a whole file at its present length. `populate` reads and maps all pages first. With `private`, written pages are copies; this
    /// is refused for a writable file.
    ///
    /// # Errors
    /// `EACCES` if the file was not opened for reading, `EINVAL` for an empty file or a private mapping of a writable file, `ENODEV` on
    /// file systems without mappings, `ENOMEM` if the file does not fit into the address space.
    pub fn new(file: &OpenFile, populate: bool, private: bool) -> io::Result<Self> {
        if private && file.writable {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        install_bus_handler()?;
        let (file, writable) = (file.file.try_clone()?, file.writable);
        let bytes = length(&file)?;
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let sharing = if private { MapFlags::PRIVATE } else { MapFlags::SHARED };
        let flags = sharing | if populate { MapFlags::POPULATE } else { MapFlags::empty() };
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no memory in use.
        let raw = unsafe { mmap(ptr::null_mut(), bytes, protection(writable), flags, &file, 0) }?;
        let base = NonNull::new(raw.cast::<u8>()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, bytes, file, writable, sharing, broken: false })
    }

    /// Advises the kernel how the mapping will be used.
    ///
    /// # Errors
    /// `EINVAL` if the kernel was built without support for the advice.
    pub fn advise(&self, advice: Advice) -> io::Result<()> {
        // SAFETY: exactly the mapping of this value; this advice changes no byte.
        check(unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, advice as libc::c_int) })
    }

    /// Copies bytes from the file, fewer at its end. All loads are complete when this returns.
    ///
    /// # Errors
    ///
    /// `EIO` if pages could not be read.
    #[inline]
    pub fn load(&mut self, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        let Some((from, bytes)) = self.part(offset, to.len())? else { return Ok(0) };
        let hit = hits_missing_page(from as usize, from as usize + bytes, || {
            // SAFETY: `part` lies inside the mapping, which is readable. `to` is at least as long.
            // It does not overlap the mapping, because it is a reference and no reference points
            // into the mapping. If another process writes the file meanwhile, the copied bytes may
            // be partly old and partly new, as with read.
            unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), bytes) };
        });
        settle_loads();
        if hit { self.remap_after_fault(offset, bytes) } else { Ok(bytes) }
    }

    /// Copies bytes into the file, fewer at its end. All stores are visible when this returns.
    ///
    /// # Errors
    /// `EIO` if pages could not be mapped.
    ///
    /// # Panics
    /// If the file was opened for reading only: the last check before the kernel.
    #[inline]
    pub fn store(&mut self, offset: u64, from: &[u8]) -> io::Result<usize> {
        assert!(self.writable, "a write to a file that was opened for reading");
        let Some((to, bytes)) = self.part(offset, from.len())? else { return Ok(0) };
        let hit = hits_missing_page(to as usize, to as usize + bytes, || {
            // SAFETY: as in `load`, the other way around; the mapping of a writable file is writable.
            unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, bytes) };
        });
        settle_stores();
        if hit { self.remap_after_fault(offset, bytes) } else { Ok(bytes) }
    }

    /// Unmaps the pages of a range, but keeps them in the page cache: the next access to each page faults again.
    ///
    /// # Errors
    /// An error of `madvise(2)`.
    pub fn unmap_pages(&self, offset: u64, bytes: usize) -> io::Result<()> {
        let Some((from, bytes)) = self.part(offset, bytes)? else { return Ok(()) };
        let (start, bytes) = pages(from as usize, bytes);
        // SAFETY: whole pages of the mapping of this value; a shared mapping keeps what was stored in the file's pages.
        check(unsafe { libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_DONTNEED) })
    }

    /// Calls `msync(2)` for the whole mapping, with `MS_SYNC` if `wait`, else with `MS_ASYNC`.
    ///
    /// # Errors
    /// `EIO` if write back failed.
    pub fn sync(&self, wait: bool) -> io::Result<()> {
        let flag = if wait { libc::MS_SYNC } else { libc::MS_ASYNC };
        // SAFETY: exactly the mapping of this value; no byte of it changes.
        check(unsafe { libc::msync(self.base.as_ptr().cast(), self.bytes, flag) })
    }

    /// Returns address and length of the mapped part of a range; `None` if no part is mapped.
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

    /// Maps the file again after a failed access. Returns the result that `read` would have returned.
    #[cold]
    fn remap_after_fault(&mut self, offset: u64, bytes: usize) -> io::Result<usize> {
        let address = self.base.as_ptr().wrapping_add(offset as usize) as usize;
        let (start, mapped) = pages(address, bytes);
        let at = start - self.base.as_ptr() as usize;
        // SAFETY: whole pages of the mapping of this value, which is reached by address alone, are replaced by the same pages
        // of the file; only the last may go beyond the end of the file, as it did before.
        let remapped = unsafe {
            let (protection, flags) = (protection(self.writable), self.sharing | MapFlags::FIXED);
            mmap(start as *mut libc::c_void, mapped, protection, flags, &self.file, at as u64)
        };
        self.broken = remapped.is_err();
        let remaining = length(&self.file).unwrap_or(0).saturating_sub(offset);
        // A truncated file still has the bytes before its end. These were copied completely.
        if remaining < bytes as u64 {
            Ok(remaining as usize)
        } else {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped, unmapped once; no reference into it ever existed.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Returns start and length of the pages that overlap a range.
fn pages(address: usize, bytes: usize) -> (usize, usize) {
    let page = rustix::param::page_size();
    let start = address & !(page - 1);
    (start, (address + bytes).next_multiple_of(page) - start)
}

fn length(file: &File) -> io::Result<u64> {
    let about = file.metadata()?;
    if about.file_type().is_block_device() { device_bytes(file) } else { Ok(about.len()) }
}

fn protection(writable: bool) -> ProtFlags {
    ProtFlags::READ | if writable { ProtFlags::WRITE } else { ProtFlags::empty() }
}

/// Waits for all loads, so that the next timestamp is taken after them. `rdtsc` does not wait for earlier loads, but `lfence` does.
#[inline]
fn settle_loads() {
    fence(Ordering::Acquire);
    #[cfg(target_arch = "x86_64")]
    #[allow(unused_unsafe)] // Newer compilers know that every x86-64 CPU has `lfence`.
    // SAFETY: every x86-64 CPU has lfence.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
}

/// Waits until all stores are visible to other CPUs, so that the next timestamp is taken after them.
#[inline]
fn settle_stores() {
    fence(Ordering::SeqCst);
    settle_loads();
}

/// The address range that a thread watches, and whether an access to the range has failed.
#[derive(Clone, Copy)]
struct FaultWatch {
    from: usize,
    to: usize,
    hit: bool,
}

thread_local! {
    // Constant and without a destructor: reading it in a handler is a plain load.
    static WATCH: Cell<FaultWatch> = const { Cell::new(FaultWatch { from: 0, to: 0, hit: false }) };
}

/// For the SIGBUS handler: the page size, and the action that SIGBUS had before.
static PREVIOUS_ACTION: OnceLock<(usize, libc::sigaction)> = OnceLock::new();

/// Installs the SIGBUS handler for the process, and unblocks SIGBUS in the calling thread.
///
/// # Errors
/// An error of `sigaction(2)`; none is known for a valid call.
fn install_bus_handler() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is initialised by the first call and read by the others; all pointers are to this frame.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGBUS);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
    PREVIOUS_ACTION.get_or_init(|| {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: with a null action the call only writes the present action to this frame; zeros are a valid action.
        let before = unsafe {
            libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr());
            before.assume_init()
        };
        (rustix::param::page_size(), before)
    });
    // Install the handler only now, because it reads the previous action. Installing it again changes nothing.
    // SAFETY: zeros are a valid action, and the relevant fields are set; the handler has the signature of SA_SIGINFO and is
    // async-signal-safe.
    check(unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut())
    })
}

/// Runs `access` and returns whether a page in the address range was missing. In that case pages of zeros are mapped there, and stores to
/// them are lost.
#[inline]
fn hits_missing_page(from: usize, to: usize, access: impl FnOnce()) -> bool {
    WATCH.with(|watch| {
        watch.set(FaultWatch { from, to, hit: false });
        // The handler runs on this thread, so it is enough that the compiler does not move the accesses.
        compiler_fence(Ordering::SeqCst);
        access();
        compiler_fence(Ordering::SeqCst);
        watch.replace(FaultWatch { from: 0, to: 0, hit: false }).hit
    })
}

extern "C" fn on_bus(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let Some((page_bytes, before)) = PREVIOUS_ACTION.get() else { return };
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo, which has an address for this signal.
    let address = unsafe { (*info).si_addr() } as usize;
    let handled = WATCH.with(|cell| {
        let watch = cell.get();
        if address < watch.from || address >= watch.to {
            return false;
        }
        cell.set(FaultWatch { hit: true, ..watch });
        let page = address & !(page_bytes - 1);
        // SAFETY: the page contains an address of the watched range. The range is in a mapping that its owner watches through
        // `hits_missing_page` and accesses by raw address alone, so replacing the page invalidates no reference.
        let placed = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::FIXED;
            mmap_anonymous(page as *mut libc::c_void, *page_bytes, protection(true), flags)
        };
        placed.is_ok()
    });
    if !handled {
        // SAFETY: the kernel returned this action. After the return the access is repeated, and this action handles its signal.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
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
fn truncating_a_mapped_file_ends_accesses_and_not_the_process() {
    let mut map = mapped(65_536 + 100);
    let mut data = vec![1; 32_768];
    assert_eq!(map.load(0, &mut data).ok(), Some(32_768));
    map.file.set_len(20_000).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(map.load(16_384, &mut data).ok(), Some(20_000 - 16_384));
    assert!(data[..20_000 - 16_384].iter().all(|b| *b == 7));
    assert_eq!(map.store(40_960, &data).ok(), Some(0));
    // After the file has grown, it is read again; the store after its old end was lost.
    map.file.set_len(65_536).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(map.load(40_960, &mut data[..8192]).ok(), Some(8192));
    assert!(data[..8192].iter().all(|b| *b == 0));
    assert_eq!(map.store(40_960, &[9; 5]).ok(), Some(5));
    assert_eq!(map.load(40_960, &mut data[..5]).ok(), Some(5));
    assert_eq!(data[..5], [9; 5]);
}

#[test]
fn accesses_after_the_end_of_the_file_return_nothing() {
    let mut map = mapped(10_000);
    let mut data = vec![1; 8192];
    assert_eq!(map.load(8192, &mut data).ok(), Some(10_000 - 8192));
    assert_eq!(map.load(10_000, &mut data).ok(), Some(0));
    assert_eq!(map.load(u64::MAX, &mut data).ok(), Some(0));
    map.unmap_pages(1, 9_000).unwrap_or_else(|e| panic!("{e}"));
    map.sync(true).unwrap_or_else(|e| panic!("{e}"));
}
