//! Lending memory to a pipe: the one call about pipes that no crate offers safely.
//!
//! For: `vmsplice(2)` towards the pipe. Not for: splice and pipes themselves, which others offer.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Puts the pages of `data` into a pipe without copying them, as many as there is room for. What the pipe gives later are the
/// bytes that are there then: whoever changes `data` before the pipe is empty changes them.
///
/// # Errors
/// `EAGAIN` where there is no room, `EBADF` for what is not the writing end of a pipe.
pub fn lend(pipe: impl AsFd, data: &[u8]) -> io::Result<usize> {
    let vector = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: towards a pipe the kernel only reads the memory. It keeps references to the pages, not to the addresses, so
    // memory that is given back meanwhile is not reused before the pipe lets go; without SPLICE_F_GIFT they stay ours.
    let answer =
        unsafe { libc::vmsplice(pipe.as_fd().as_raw_fd(), &raw const vector, 1, libc::SPLICE_F_NONBLOCK) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as usize) }
}

#[test]
fn lent_bytes_come_out_of_the_pipe_and_a_full_pipe_takes_no_more() {
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
