//! A file in memory whose pages are mapped too: slots that calls can reach both as memory and as a file.
//!
//! For: calls that move bytes between two files (`sendfile(2)`), one of which is to be memory. Not for: growing, nor sharing it
//! with another process.

use crate::arena::SLOT_ALIGN;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// A file of equal slots, mapped.
#[derive(Debug)]
pub struct MemoryFile {
    file: File,
    base: NonNull<u8>,
    stride: usize,
    slot_bytes: usize,
    slots: usize,
}

impl MemoryFile {
    /// Makes the file with all its pages.
    ///
    /// # Errors
    /// `InvalidInput` for no slots or too many bytes, `ENOSPC` where memory has no room; else what the kernel answers.
    pub fn new(slots: usize, slot_bytes: usize) -> io::Result<Self> {
        let too_big = || {
            let why = "buffers of this size and number do not fit the address space";
            io::Error::new(io::ErrorKind::InvalidInput, why)
        };
        let stride =
            slot_bytes.checked_next_multiple_of(SLOT_ALIGN).filter(|s| *s > 0).ok_or_else(too_big)?;
        let bytes = stride.checked_mul(slots).filter(|b| *b > 0 && isize::try_from(*b).is_ok());
        let bytes = bytes.ok_or_else(too_big)?;
        let file = File::from(memfd_create("fathom", MemfdFlags::CLOEXEC)?);
        // All pages now: without room for one, touching it later would be a fatal signal.
        fallocate(&file, FallocateFlags::empty(), 0, bytes as u64)?;
        // SAFETY: a fresh mapping at an address that the kernel chooses touches no memory that anyone has.
        let raw = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        let base = NonNull::new(raw.cast::<u8>()).filter(|_| raw != libc::MAP_FAILED);
        let base = base.ok_or_else(io::Error::last_os_error)?;
        Ok(Self { file, base, stride, slot_bytes, slots })
    }

    /// The file. Its length must stay what it is.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where a slot begins in the file.
    pub fn offset(&self, slot: usize) -> u64 {
        (slot * self.stride) as u64
    }

    /// The bytes of a slot.
    ///
    /// # Panics
    /// Where there is no such slot: a defect of the caller.
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        // SAFETY: the slot lies inside the mapping, whose pages are all there; nobody else has the file, and calls that move
        // bytes into it are made while no such reference lives, because that takes `&self` or `&mut self` again.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(slot * self.stride), self.slot_bytes) }
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped, unmapped once; no reference outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.stride * self.slots) };
    }
}

#[test]
fn a_slot_is_memory_and_file_at_once() -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut memory = MemoryFile::new(3, 5000)?;
    memory.slot_mut(2).fill(7);
    let mut seen = [0; 5000];
    memory.file().read_exact_at(&mut seen, memory.offset(2))?;
    assert_eq!(seen, [7; 5000]);
    memory.file().write_all_at(&[9; 100], memory.offset(1))?;
    assert!(memory.slot_mut(1)[..100].iter().all(|b| *b == 9) && memory.slot_mut(0)[0] == 0);
    assert!(MemoryFile::new(0, 4096).is_err() && MemoryFile::new(usize::MAX, usize::MAX).is_err());
    Ok(())
}
