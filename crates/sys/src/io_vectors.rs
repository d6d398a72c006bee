//! System calls with I/O vectors: `preadv(2)` and `pwritev(2)` with several slots of an arena, and `vmsplice(2)` into a pipe.

use crate::arena::Arena;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Maximum number of vectors per call: `UIO_MAXIOV` of `linux/uio.h`.
pub const MAX_VECTORS_PER_CALL: usize = 1024;
/// Maximum bytes per call: `MAX_RW_COUNT` of `linux/fs.h`.
pub const MAX_BYTES_PER_CALL: u64 = 0x7fff_f000;

/// Preallocated vectors of a call.
#[derive(Debug)]
pub struct Vectors(Vec<libc::iovec>);

impl Vectors {
    /// Allocates space for `count` vectors.
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Reads from a file at an offset, fills slots with the data, and returns the number of bytes
    /// read. `parts` are pairs of a slot and the number of bytes for this slot.
    ///
    /// # Errors
    /// An error of `preadv(2)`.
    ///
    /// # Panics
    /// If a slot does not exist or is too small: a defect of the caller.
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

    /// Writes slots to a file at an offset, and returns the number of bytes written. `parts` are
    /// pairs of a slot and the number of bytes from this slot.
    ///
    /// # Errors
    /// An error of `pwritev(2)`.
    ///
    /// # Panics
    /// If a slot does not exist or is too small: a defect of the caller.
    pub fn write(
        &mut self,
        arena: &Arena,
        parts: impl Iterator<Item = (u32, u32)>,
        file: &File,
        offset: u64,
    ) -> io::Result<usize> {
        self.gather(arena, parts);
        // SAFETY: the vectors were made above and lie inside the arena, which is borrowed for as long as the call takes; the
        // kernel only reads their memory.
        let moved = unsafe { self.call(libc::SYS_pwritev, file, offset) };
        usize::try_from(moved).map_err(|_| io::Error::last_os_error())
    }

    /// Makes the system call `number` on the vectors, without the C library: `preadv` and `pwritev` of the library are cancellation points,
    /// which cost about 20 ns per call in a process with several threads.
    ///
    /// # Safety
    /// The memory of the vectors must outlive the call. A call that reads into it needs exclusive access.
    unsafe fn call(&self, number: libc::c_long, file: &File, offset: u64) -> libc::c_long {
        // The kernel takes the offset as two words. On 64-bit machines the low word is the whole offset, and the high one is ignored.
        let (low, high) = (offset as libc::c_ulong, (offset >> 32) as libc::c_ulong);
        // SAFETY: the caller keeps the contract; the arguments have the size of words, and the length is that of the vectors.
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

/// Puts the pages of `data` into a pipe without copying, as many as fit, and returns the number of
/// bytes. Until the pipe is empty, readers of the pipe see later changes of `data`.
///
/// # Errors
/// `EAGAIN` if the pipe is full, `EBADF` if `pipe` is not the writing end of a pipe.
pub fn lend(pipe: impl AsFd, data: &[u8]) -> io::Result<usize> {
    let vector = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: the kernel only reads this memory. It keeps references to the pages, not to the
    // addresses. So a page that is freed meanwhile is not reused before the pipe releases it.
    // Without SPLICE_F_GIFT the pages remain those of this process.
    let answer =
        unsafe { libc::vmsplice(pipe.as_fd().as_raw_fd(), &raw const vector, 1, libc::SPLICE_F_NONBLOCK) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as usize) }
}

#[test]
fn slots_are_written_in_sequence_and_read_back_in_any_order() {
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
    let panicked = std::panic::catch_unwind(move || vectors.write(&arena, [(3, 1)].into_iter(), &file, 0));
    assert!(panicked.is_err(), "there is no such slot");
}

#[test]
fn lent_bytes_are_read_from_the_pipe_and_a_full_pipe_refuses_more() {
    use std::io::Read;
    let (mut end, pipe) = std::io::pipe().unwrap_or_else(|e| panic!("{e}"));
    let data: Vec<u8> = (0..5000_u32).map(|i| i as u8).collect();
    assert_eq!(lend(&pipe, &data).unwrap_or_else(|e| panic!("{e}")), 5000);
    let mut seen = vec![0; 5000];
    end.read_exact(&mut seen).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(seen, data);
    let full = std::iter::repeat_with(|| lend(&pipe, &data)).take(10_000).find_map(Result::err);
    assert_eq!(full.map(|e| e.kind()), Some(io::ErrorKind::WouldBlock));
}
