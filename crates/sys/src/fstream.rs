//! Streams of the C++ library.
//!
//! For: `std::fstream` on an open file, with its own buffer. Not for: formats, nor text. The shim is `fstream.cc`, which the
//! feature `cxx` compiles.

use crate::stream::Buffered;
use std::ffi::{c_char, c_int, c_long};
use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::ptr::NonNull;

/// The shim's object, of which nothing is known here.
#[repr(C)]
struct Raw {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn fathom_fstream_open(fd: c_int, readable: c_int, writable: c_int) -> *mut Raw;
    fn fathom_fstream_read(stream: *mut Raw, to: *mut c_char, bytes: c_long) -> c_long;
    fn fathom_fstream_write(stream: *mut Raw, from: *const c_char, bytes: c_long) -> c_long;
    fn fathom_fstream_seek(stream: *mut Raw, offset: c_long) -> c_long;
    fn fathom_fstream_flush(stream: *mut Raw) -> c_long;
    fn fathom_fstream_close(stream: *mut Raw);
}

/// A stream that owns its descriptor.
#[derive(Debug)]
pub struct Stream(NonNull<Raw>);

impl Stream {
    /// Opens a stream on a descriptor of its own, which shares the position of `file`.
    ///
    /// # Errors
    /// What dup answers; `ENOMEM` where there is no memory.
    pub fn new(file: &File) -> io::Result<Self> {
        use rustix::fs::OFlags;
        let mode = rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE;
        let (readable, writable) = (mode != OFlags::WRONLY, mode != OFlags::RDONLY);
        let fd = file.try_clone()?.into_raw_fd();
        // SAFETY: the descriptor is open and nobody else's; the stream closes it.
        let raw = unsafe { fathom_fstream_open(fd, readable.into(), writable.into()) };
        NonNull::new(raw).map(Self).ok_or_else(|| {
            // SAFETY: without a stream the descriptor is still ours.
            unsafe { libc::close(fd) };
            io::Error::from_raw_os_error(libc::ENOMEM)
        })
    }
}

impl Buffered for Stream {
    #[inline]
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the stream is open, and `&mut self` keeps others away; the memory is ours and has these bytes. The shim lets no
        // exception out: those of the buffer end in the stream's state.
        answer(unsafe {
            fathom_fstream_read(self.0.as_ptr(), data.as_mut_ptr().cast(), data.len() as c_long)
        })
    }

    #[inline]
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        // SAFETY: as in `read`.
        answer(unsafe { fathom_fstream_write(self.0.as_ptr(), data.as_ptr().cast(), data.len() as c_long) })
    }

    #[inline]
    fn seek(&mut self, offset: u64) -> io::Result<()> {
        let offset = c_long::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: the stream is open.
        answer(unsafe { fathom_fstream_seek(self.0.as_ptr(), offset) }).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open.
        answer(unsafe { fathom_fstream_flush(self.0.as_ptr()) }).map(drop)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open and closed once, here.
        unsafe { fathom_fstream_close(self.0.as_ptr()) };
    }
}

/// A count, or minus errno.
fn answer(value: c_long) -> io::Result<usize> {
    usize::try_from(value).map_err(|_| io::Error::from_raw_os_error(-value as i32))
}
