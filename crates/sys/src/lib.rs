//! All unsafe code of fathom: safe, owned types over Linux facilities, one file each. Every unsafe block states why it is sound.
//!
//! The crate depends on no other crate of fathom and decides nothing about what is measured.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

pub mod aio;
pub mod allocator;
pub mod arena;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod bpf;
pub mod clock;
pub mod error_advice;
pub mod file_pages;
pub mod file_use;
pub mod io_vectors;
pub mod ioctl;
pub mod mapping;
pub mod open_file;
pub mod perf;
pub mod posix_aio;
pub mod process;
pub mod ring;
pub mod slots;
pub mod stdio;
pub mod thread;
pub mod tracefs;

pub use error_advice::cause;
use std::io;

/// Converts the answer of a call of the C library: 0 is success, any other answer an error with the number in `errno`.
#[inline]
fn check(answer: impl Into<i64>) -> io::Result<()> {
    if answer.into() == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
