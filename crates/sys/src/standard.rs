//! The standard streams as they were when the program was started.
//!
//! For: telling a closed stream from `/dev/null`, which Rust's start puts in its place before `main`, and the descriptors that
//! a caller handed over by number. Not for: writing to any of them.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU8, Ordering};

/// A bit for each of the first three descriptors that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: the loader calls every function of this section once, before `main` and before any other thread; the signature is one
// that it may call (its arguments are ignored), and the function only asks the kernel and stores into an atomic.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = restore_standard_streams;

extern "C" fn restore_standard_streams() {
    for descriptor in 0..3 {
        // SAFETY: asks for the flags of a descriptor and takes no memory; for one that is not open the answer is an error.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

/// Whether standard input (0), output (1) or error (2) was closed when the program was started.
pub fn was_closed(descriptor: RawFd) -> bool {
    (0..3).contains(&descriptor) && CLOSED.load(Ordering::Relaxed) & (1 << descriptor) != 0
}

/// The file behind a descriptor that the caller of the program named, as a file of its own.
///
/// # Errors
/// `EBADF` where there is none of that number.
pub fn duplicate(descriptor: RawFd) -> io::Result<File> {
    if descriptor < 0 || was_closed(descriptor) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is used for one call that only asks the kernel for a second descriptor of the same file, and answers EBADF where
    // this one is not open. Which file that is, is what the user said by its number.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(File::from(borrowed.try_clone_to_owned()?))
}

#[test]
fn what_is_not_open_is_an_error_and_what_is_can_be_had() {
    use std::os::fd::AsRawFd;
    assert_eq!(duplicate(-1).map_err(|e| e.raw_os_error()).err(), Some(Some(libc::EBADF)));
    assert_eq!(duplicate(1 << 20).map_err(|e| e.raw_os_error()).err(), Some(Some(libc::EBADF)));
    let file = File::open("/dev/null").unwrap_or_else(|e| panic!("{e}"));
    assert!(duplicate(file.as_raw_fd()).is_ok());
    assert!(!was_closed(7));
}
