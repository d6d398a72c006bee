//! One aligned piece of memory, cut into equal slots, for the data of operations.
//!
//! For: buffers whose layout does not change the I/O: page aligned, on huge pages where the kernel has them, touched before
//! use. Not for: growing. Why huge pages: with scattered 4 KiB pages a large read is split at the device's segment limit.

use std::io;
use std::ptr::NonNull;

/// Slots begin at multiples of this, which satisfies every alignment that direct I/O asks for.
pub(crate) const SLOT_ALIGN: usize = 4096;
/// Size and alignment of a huge page on x86-64 and most others; elsewhere the advice is simply not taken.
const HUGE: usize = 2 << 20;

/// Memory of `slots` buffers of `slot_bytes`.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    mapped: usize,
    stride: usize,
    slot_bytes: usize,
    slots: usize,
}

// SAFETY: the memory is private to this value; it is reached only through `&self` (raw addresses) and `&mut self`.
unsafe impl Send for Arena {}

impl Arena {
    /// Maps and touches the memory.
    ///
    /// # Errors
    /// `InvalidInput` for no slots, empty slots or a size beyond the address space; else what mmap answers.
    pub fn new(slots: usize, slot_bytes: usize) -> io::Result<Self> {
        let too_big = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "buffers of this size and number do not fit the address space",
            )
        };
        let stride =
            slot_bytes.checked_next_multiple_of(SLOT_ALIGN).filter(|s| *s > 0).ok_or_else(too_big)?;
        let wanted = stride.checked_mul(slots).filter(|b| *b > 0).ok_or_else(too_big)?;
        let mapped = wanted.checked_next_multiple_of(HUGE).ok_or_else(too_big)?;
        // One huge page more, so that an aligned part of the wanted size is inside; the rest is given back below.
        let total = mapped.checked_add(HUGE).filter(|t| isize::try_from(*t).is_ok()).ok_or_else(too_big)?;
        // SAFETY: a fresh private anonymous mapping touches no memory that anyone has.
        let raw = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                total,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if raw == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
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

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes of each slot.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// The bytes of a slot.
    ///
    /// # Panics
    /// Where there is no such slot: a defect of the caller.
    #[inline]
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        // SAFETY: the slot lies inside the mapping (slot < slots, stride * slots <= mapped), was zeroed by the kernel, and
        // `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(slot * self.stride), self.slot_bytes) }
    }

    /// Address of a slot, for the kernel. The caller answers for who else uses it.
    #[inline]
    pub(crate) fn address(&self, slot: usize) -> *mut u8 {
        debug_assert!(slot < self.slots);
        self.base.as_ptr().wrapping_add(slot * self.stride)
    }

    /// The slots as the kernel registers buffers: address and length of each.
    pub(crate) fn io_vectors(&self) -> Vec<libc::iovec> {
        (0..self.slots)
            .map(|slot| libc::iovec { iov_base: self.address(slot).cast(), iov_len: self.slot_bytes })
            .collect()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: exactly the part that `new` kept, unmapped once; no reference outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

#[test]
fn slots_are_aligned_apart_and_whole() {
    let mut arena = Arena::new(3, 5000).unwrap_or_else(|e| panic!("{e}"));
    for slot in 0..3 {
        arena.slot_mut(slot).fill(slot as u8 + 1);
    }
    for slot in 0..3 {
        assert_eq!(arena.address(slot) as usize % SLOT_ALIGN, 0);
        assert!(arena.slot_mut(slot).iter().all(|b| *b == slot as u8 + 1));
    }
    assert!(Arena::new(0, 4096).is_err());
    assert!(Arena::new(usize::MAX, usize::MAX).is_err());
}
