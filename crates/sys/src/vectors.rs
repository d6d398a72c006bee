//! Several slots of an arena in one call: `preadv(2)` and `pwritev(2)`.
//!
//! For: operations that lie beside each other in a file and anywhere in memory. Not for: flags per call, nor which operations go
//! together.

use crate::arena::Arena;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Most vectors of one call: `UIO_MAXIOV` of `linux/uio.h`.
pub const MOST_VECTORS: usize = 1024;

/// Most bytes that one call moves, whatever it is asked for: `MAX_RW_COUNT` of `linux/fs.h`.
pub const MOST_BYTES: u64 = 0x7fff_f000;

/// Room for the vectors of a call, so that none allocates.
#[derive(Debug)]
pub struct Vectors(Vec<libc::iovec>);

impl Vectors {
    /// Room for so many.
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Reads from an offset on into slots, each as far as its number of bytes.
    ///
    /// # Errors
    /// What the kernel answers.
    ///
    /// # Panics
    /// Where there is no such slot, or it is shorter: a defect of the caller.
    pub fn read(
        &mut self,
        arena: &mut Arena,
        parts: impl Iterator<Item = (u32, u32)>,
        file: &File,
        offset: u64,
    ) -> io::Result<usize> {
        self.gather(arena, parts);
        // SAFETY: the vectors were made above and lie inside the arena, which is borrowed mutably for as long as the call takes;
        // its bytes may have any value.
        let moved = unsafe { self.call(libc::SYS_preadv, file, offset) };
        usize::try_from(moved).map_err(|_| io::Error::last_os_error())
    }

    /// Writes slots from an offset on, of each so many bytes.
    ///
    /// # Errors
    /// What the kernel answers.
    ///
    /// # Panics
    /// Where there is no such slot, or it is shorter: a defect of the caller.
    pub fn write(
        &mut self,
        arena: &Arena,
        parts: impl Iterator<Item = (u32, u32)>,
        file: &File,
        offset: u64,
    ) -> io::Result<usize> {
        self.gather(arena, parts);
        // SAFETY: the vectors were made above and lie inside the arena, which is borrowed for as long as the call takes; the
        // kernel reads from them alone.
        let moved = unsafe { self.call(libc::SYS_pwritev, file, offset) };
        usize::try_from(moved).map_err(|_| io::Error::last_os_error())
    }

    /// Makes one of the two calls. By its number: the C library's function for it is a point of cancellation, for which every thread
    /// of several pays some 20 ns a call.
    ///
    /// # Safety
    /// The vectors must be of memory that lives through the call, and that nobody else uses where it is read into.
    unsafe fn call(&self, number: libc::c_long, file: &File, offset: u64) -> libc::c_long {
        // The kernel takes the offset in two words; one of 64 bits holds all of it, and the second is not looked at.
        let (low, high) = (offset as libc::c_ulong, (offset >> 32) as libc::c_ulong);
        // SAFETY: as the caller promises; the numbers are as long as words, and the vectors as many as are said.
        unsafe { libc::syscall(number, file.as_raw_fd(), self.0.as_ptr(), self.0.len(), low, high) }
    }

    fn gather(&mut self, arena: &Arena, parts: impl Iterator<Item = (u32, u32)>) {
        self.0.clear();
        self.0.extend(parts.map(|(slot, bytes)| {
            let (slot, bytes) = (slot as usize, bytes as usize);
            assert!(slot < arena.slots() && bytes <= arena.slot_bytes(), "{bytes} bytes of slot {slot}");
            libc::iovec { iov_base: arena.address(slot).cast(), iov_len: bytes }
        }));
    }
}

#[test]
fn slots_are_written_one_behind_the_other_and_read_back_in_any_order() {
    let file = rustix::fs::memfd_create("vectors", rustix::fs::MemfdFlags::CLOEXEC);
    let file = File::from(file.unwrap_or_else(|e| panic!("{e}")));
    let mut arena = Arena::new(3, 5000).unwrap_or_else(|e| panic!("{e}"));
    let mut vectors = Vectors::with_capacity(3);
    for slot in 0..3 {
        arena.slot_mut(slot).fill(slot as u8 + 1);
    }
    let parts = [(2, 10), (0, 5000), (1, 7)];
    assert_eq!(vectors.write(&arena, parts.into_iter(), &file, 3).ok(), Some(5017));
    let back = [(1, 10), (2, 5000), (0, 4000)];
    assert_eq!(vectors.read(&mut arena, back.into_iter(), &file, 3).ok(), Some(5017), "up to the end");
    assert!(
        arena.slot_mut(1)[..10].iter().all(|b| *b == 3) && arena.slot_mut(1)[10..].iter().all(|b| *b == 2)
    );
    assert!(arena.slot_mut(2).iter().all(|b| *b == 1));
    assert!(arena.slot_mut(0)[..7].iter().all(|b| *b == 2) && arena.slot_mut(0)[7..].iter().all(|b| *b == 1));
    let gone = std::panic::catch_unwind(move || vectors.write(&arena, [(3, 1)].into_iter(), &file, 0));
    assert!(gone.is_err(), "there is no such slot");
}
