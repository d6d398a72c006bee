//! Buffers of operations: one page-aligned piece of memory, divided into equal slots.
//!
//! [`Arena`] is private memory, on huge pages if available: with scattered 4 KiB pages, the segment limit of a device would split
//! large reads. [`Arena::new`] touches all pages of the slots. [`MemoryFile`] is a mapped file in memory, for calls that move bytes between
//! two files such as `sendfile(2)`.

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use std::fs::File;
use std::ptr::NonNull;
use std::{io, ptr};

/// Alignment of slots. It is enough for direct I/O on any device.
pub(crate) const SLOT_ALIGN: usize = 4096;
/// Size and alignment of a huge page on x86-64 and most other architectures. On other architectures the kernel ignores the request for huge
/// pages.
const HUGE: usize = 2 << 20;
const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Memory for `slots` buffers of `slot_bytes` each.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    mapped: usize,
    stride: usize,
    slot_bytes: usize,
    slots: usize,
}

// SAFETY: the memory belongs to this value or to the `MemoryFile` that contains it; it is reached only through `&self` (raw addresses) and
// `&mut self`.
unsafe impl Send for Arena {}

impl Arena {
    /// Maps and touches the memory.
    ///
    /// # Errors
    /// `InvalidInput` for no slots, empty slots or a size beyond the address space; or an error of `mmap(2)`.
    pub fn new(slots: usize, slot_bytes: usize) -> io::Result<Self> {
        let stride = stride(slots, slot_bytes)?;
        let wanted = stride.checked_mul(slots).ok_or_else(too_big)?;
        let mapped = wanted.checked_next_multiple_of(HUGE).ok_or_else(too_big)?;
        // One extra huge page, so that the mapping has an aligned part of the wanted size. The rest is unmapped below.
        let total = mapped.checked_add(HUGE).filter(|t| isize::try_from(*t).is_ok()).ok_or_else(too_big)?;
        // SAFETY: a new private anonymous mapping overlaps no memory in use.
        let raw = unsafe { mmap_anonymous(ptr::null_mut(), total, READ_WRITE, MapFlags::PRIVATE) }?;
        let start = raw as usize;
        let aligned = start.next_multiple_of(HUGE);
        let (head, tail) = (aligned - start, start + total - aligned - mapped);
        // SAFETY: head and tail lie inside the mapping just made and outside the part that is kept; both are whole pages.
        // madvise is advice on the kept part; a kernel without huge pages refuses it and nothing changes.
        unsafe {
            if head > 0 {
                libc::munmap(raw, head);
            }
            if tail > 0 {
                libc::munmap((aligned + mapped) as *mut libc::c_void, tail);
            }
            libc::madvise(aligned as *mut libc::c_void, mapped, libc::MADV_HUGEPAGE);
        }
        let base = NonNull::new(aligned as *mut u8).ok_or_else(too_big)?;
        let mut arena = Self { base, mapped, stride, slot_bytes, slots };
        (0..slots).for_each(|slot| arena.slot_mut(slot).fill(0));
        Ok(arena)
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the size of each slot in bytes.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Returns the buffer of a slot.
    ///
    /// # Panics
    /// If the slot does not exist: a defect of the caller.
    #[inline]
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        // SAFETY: the slot lies inside the mapping (slot < slots, stride * slots <= mapped), was zeroed by the kernel, and
        // `&mut self` makes this the only reference. The pages of a mapped file are all allocated, and no other process has the file. Calls
        // that move bytes into it use the reference that `MemoryFile::file` returns. The borrow checker allows no call of `file` while a
        // slot is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(slot * self.stride), self.slot_bytes) }
    }

    /// Returns the address of a slot, for the kernel. The caller is responsible for exclusive access.
    #[inline]
    pub(crate) fn address(&self, slot: usize) -> *mut u8 {
        debug_assert!(slot < self.slots);
        self.base.as_ptr().wrapping_add(slot * self.stride)
    }

    /// Returns address and length of each slot, to register them with the kernel.
    pub(crate) fn io_vectors(&self) -> Vec<libc::iovec> {
        (0..self.slots)
            .map(|slot| libc::iovec { iov_base: self.address(slot).cast(), iov_len: self.slot_bytes })
            .collect()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: exactly the part that `new` kept, or that `MemoryFile::new` mapped, unmapped once; no reference outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

/// Returns the distance between the starts of two slots.
fn stride(slots: usize, slot_bytes: usize) -> io::Result<usize> {
    if slots == 0 || slot_bytes == 0 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a buffer needs at least one slot of one byte",
        ));
    }
    slot_bytes.checked_next_multiple_of(SLOT_ALIGN).ok_or_else(too_big)
}

fn too_big() -> io::Error {
    let why = "buffers of this size and number do not fit the address space; use a smaller --depth or --bs";
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// A mapped file of equal slots.
#[derive(Debug)]
pub struct MemoryFile {
    /// The mapping of the whole file.
    memory: Arena,
    file: File,
}

impl MemoryFile {
    /// Creates the file with all its pages.
    ///
    /// # Errors
    /// `InvalidInput` for no slots or too many bytes, `ENOSPC` without memory; or another error of the kernel.
    pub fn new(slots: usize, slot_bytes: usize) -> io::Result<Self> {
        let stride = stride(slots, slot_bytes)?;
        let mapped = stride.checked_mul(slots).filter(|b| isize::try_from(*b).is_ok());
        let mapped = mapped.ok_or_else(too_big)?;
        let file = File::from(memfd_create("fathom", MemfdFlags::CLOEXEC)?);
        // Allocate all pages now: touching a page without memory later would be a fatal signal.
        fallocate(&file, FallocateFlags::empty(), 0, mapped as u64)?;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no memory in use.
        let raw = unsafe { mmap(ptr::null_mut(), mapped, READ_WRITE, MapFlags::SHARED, &file, 0) }?;
        let base = NonNull::new(raw.cast::<u8>()).ok_or_else(too_big)?;
        Ok(Self { memory: Arena { base, mapped, stride, slot_bytes, slots }, file })
    }

    /// Returns the file. Do not change its length, and do not duplicate it: a call on the duplicate could write to a borrowed slot.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the offset of a slot in the file.
    pub fn offset(&self, slot: usize) -> u64 {
        (slot * self.memory.stride) as u64
    }

    /// Returns the buffer of a slot.
    ///
    /// # Panics
    /// If the slot does not exist: a defect of the caller.
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        self.memory.slot_mut(slot)
    }
}

#[test]
fn slots_are_aligned_and_do_not_overlap() {
    let mut arena = Arena::new(3, 5000).unwrap_or_else(|e| panic!("{e}"));
    for slot in 0..3 {
        arena.slot_mut(slot).fill(slot as u8 + 1);
    }
    for slot in 0..3 {
        assert_eq!(arena.address(slot) as usize % SLOT_ALIGN, 0);
        assert!(arena.slot_mut(slot).iter().all(|b| *b == slot as u8 + 1));
    }
}

#[test]
fn no_slots_and_too_many_bytes_are_different_errors() {
    let errors = |slots, slot_bytes| {
        let arena = Arena::new(slots, slot_bytes).map(drop).map_err(|e| e.to_string());
        [arena, MemoryFile::new(slots, slot_bytes).map(drop).map_err(|e| e.to_string())]
    };
    for (slots, slot_bytes) in [(0, 4096), (1, 0)] {
        let none = errors(slots, slot_bytes);
        assert!(
            none.iter().all(|e| e.as_ref().is_err_and(|why| why.contains("at least one slot"))),
            "{none:?}"
        );
    }
    for (slots, slot_bytes) in [(usize::MAX, usize::MAX), (1 << 40, 1 << 30), (1 << 20, usize::MAX >> 20)] {
        let big = errors(slots, slot_bytes);
        assert!(big.iter().all(|e| e.as_ref().is_err_and(|why| why.contains("do not fit"))), "{big:?}");
    }
}

#[test]
fn a_slot_is_reachable_as_memory_and_as_file() -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut memory = MemoryFile::new(3, 5000)?;
    memory.slot_mut(2).fill(7);
    let mut seen = [0; 5000];
    memory.file().read_exact_at(&mut seen, memory.offset(2))?;
    assert_eq!(seen, [7; 5000]);
    memory.file().write_all_at(&[9; 100], memory.offset(1))?;
    assert!(memory.slot_mut(1)[..100].iter().all(|b| *b == 9) && memory.slot_mut(0)[0] == 0);
    Ok(())
}
