//! Streams of the C++ library: `std::fstream` on an open file, with its own buffer. The feature `cxx` compiles the shim `fstream.cc`.

use crate::stdio::Buffered;
use std::ffi::{c_char, c_int, c_long};
use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::ptr::NonNull;

/// The shim's opaque object.
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

/// A C++ stream that owns its descriptor.
#[derive(Debug)]
pub struct Stream(NonNull<Raw>);

impl Stream {
    /// Opens a stream on its own descriptor, which shares the position of `file`.
    ///
    /// # Errors
    /// An error of dup; `ENOMEM` without memory.
    pub fn new(file: &File) -> io::Result<Self> {
        use rustix::fs::OFlags;
        let mode = rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE;
        let (readable, writable) = (mode != OFlags::WRONLY, mode != OFlags::RDONLY);
        let fd = file.try_clone()?.into_raw_fd();
        // SAFETY: the descriptor is open and has no other owner; the stream closes it.
        let raw = unsafe { fathom_fstream_open(fd, readable.into(), writable.into()) };
        NonNull::new(raw).map(Self).ok_or_else(|| {
            // SAFETY: without a stream the descriptor has no other owner.
            unsafe { libc::close(fd) };
            io::Error::from_raw_os_error(libc::ENOMEM)
        })
    }
}

impl Buffered for Stream {
    #[inline]
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the stream is open, and `&mut self` gives exclusive access; the memory is borrowed and has these bytes. No exception
        // leaves the shim: those of the buffer set the stream's state.
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

/// Converts a count, or minus errno.
fn answer(value: c_long) -> io::Result<usize> {
    usize::try_from(value).map_err(|_| io::Error::from_raw_os_error(-value as i32))
}
