//! Streams of the C library (stdio(3), setvbuf(3), unlocked_stdio(3)): `fread`, `fgetc` and others on an open file, with a buffer of any
//! size. [`Buffered`] is the interface that they share with the C++ streams of `cxx`.

use crate::check;
use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::ptr::{self, NonNull};

/// A stream with its own position and buffer.
pub trait Buffered {
    /// Reads from the position; fewer bytes at the end of the file.
    ///
    /// # Errors
    /// The error of the kernel if no byte was read.
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize>;

    /// Writes at the position, into the buffer while it has space.
    ///
    /// # Errors
    /// The error of the kernel.
    fn write(&mut self, data: &[u8]) -> io::Result<usize>;

    /// Writes the buffer to the kernel, then sets the position.
    ///
    /// # Errors
    /// The error of the kernel.
    fn seek(&mut self, offset: u64) -> io::Result<()>;

    /// Writes the buffer to the kernel.
    ///
    /// # Errors
    /// The error of the kernel.
    fn flush(&mut self) -> io::Result<()>;
}

unsafe extern "C" {
    // Not in the crate libc.
    fn getc_unlocked(stream: *mut libc::FILE) -> c_int;
    fn putc_unlocked(byte: c_int, stream: *mut libc::FILE) -> c_int;
}

/// The functions that move bytes between a stream and the caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// `fread` and `fwrite`: one call for each operation.
    Blocks,
    /// `fgetc` and `fputc`: one call for each byte, with the stream's lock.
    Bytes,
    /// `getc_unlocked` and `putc_unlocked`: one call for each byte. A C compiler would inline these calls.
    BytesUnlocked,
}

/// A stream that owns its descriptor.
#[derive(Debug)]
pub struct Stream {
    file: NonNull<libc::FILE>,
    calls: Calls,
    /// Memory of the stream's buffer, which must outlive the stream.
    _buffer: Vec<u8>,
}

impl Stream {
    /// Opens a stream on its own descriptor, which shares the position of `file`. `buffer_bytes`: `None` for the default of the C library,
    /// 0 for no buffer.
    ///
    /// # Errors
    /// An error of dup, fdopen or setvbuf.
    pub fn new(file: &File, buffer_bytes: Option<usize>, calls: Calls) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(file)?;
        let mode = match flags & rustix::fs::OFlags::RWMODE {
            rustix::fs::OFlags::RDONLY => c"r",
            rustix::fs::OFlags::WRONLY => c"w",
            _ => c"r+",
        };
        let fd = file.try_clone()?.into_raw_fd();
        // SAFETY: the descriptor is open and has no other owner; the mode is a C string. fdopen does not truncate.
        let raw = unsafe { libc::fdopen(fd, mode.as_ptr()) };
        let Some(stream) = NonNull::new(raw) else {
            let error = io::Error::last_os_error();
            // SAFETY: fdopen did not take the descriptor, which is still open and has no other owner.
            unsafe { libc::close(fd) };
            return Err(error);
        };
        let mut buffer = vec![0; buffer_bytes.unwrap_or(0)];
        let answer = match buffer_bytes {
            None => 0,
            // SAFETY: the stream is open and was not used yet; it gets no memory.
            Some(0) => unsafe { libc::setvbuf(raw, ptr::null_mut(), libc::_IONBF, 0) },
            // SAFETY: the stream is open and was not used yet; the memory has these bytes, is not touched here and is freed only
            // after the stream was closed, because fields are dropped after `drop`.
            Some(bytes) => unsafe { libc::setvbuf(raw, buffer.as_mut_ptr().cast(), libc::_IOFBF, bytes) },
        };
        let stream = Self { file: stream, calls, _buffer: buffer };
        if answer == 0 { Ok(stream) } else { Err(io::Error::other("setvbuf refuses the buffer")) }
    }
}

impl Buffered for Stream {
    #[inline]
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let stream = self.file.as_ptr();
        // SAFETY: the stream is open, and `&mut self` gives exclusive access; the memory is borrowed and has these bytes.
        let moved = unsafe {
            match self.calls {
                Calls::Blocks => libc::fread(data.as_mut_ptr().cast(), 1, data.len(), stream),
                Calls::Bytes => each(data, || libc::fgetc(stream)),
                Calls::BytesUnlocked => each(data, || getc_unlocked(stream)),
            }
        };
        self.answer(moved, data.len())
    }

    #[inline]
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let stream = self.file.as_ptr();
        // SAFETY: as in `read`.
        let moved = unsafe {
            match self.calls {
                Calls::Blocks => libc::fwrite(data.as_ptr().cast(), 1, data.len(), stream),
                Calls::Bytes => data.iter().take_while(|b| libc::fputc((**b).into(), stream) >= 0).count(),
                Calls::BytesUnlocked => {
                    data.iter().take_while(|b| putc_unlocked((**b).into(), stream) >= 0).count()
                }
            }
        };
        self.answer(moved, data.len())
    }

    #[inline]
    fn seek(&mut self, offset: u64) -> io::Result<()> {
        let offset = libc::off_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: the stream is open.
        check(unsafe { libc::fseeko(self.file.as_ptr(), offset, libc::SEEK_SET) })
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open.
        check(unsafe { libc::fflush(self.file.as_ptr()) })
    }
}

impl Stream {
    /// Returns the result of a call. Fewer bytes than requested mean the end of the file or an error; the stream keeps either state until
    /// it is cleared.
    #[inline]
    fn answer(&mut self, moved: usize, requested: usize) -> io::Result<usize> {
        if moved == requested {
            return Ok(moved);
        }
        let error = io::Error::last_os_error();
        let stream = self.file.as_ptr();
        // SAFETY: the stream is open.
        let failed = unsafe {
            let failed = libc::ferror(stream) != 0;
            libc::clearerr(stream);
            failed
        };
        if failed && moved == 0 { Err(error) } else { Ok(moved) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open and closed once, here; its buffer is freed after this.
        unsafe { libc::fclose(self.file.as_ptr()) };
    }
}

/// Fills `data` byte by byte until `data` is full or the stream ends.
#[inline]
fn each(data: &mut [u8], mut next: impl FnMut() -> c_int) -> usize {
    for (at, byte) in data.iter_mut().enumerate() {
        match u8::try_from(next()) {
            Ok(read) => *byte = read,
            Err(_) => return at,
        }
    }
    data.len()
}

/// Streams of the C++ library: `std::fstream` on an open file, with its own buffer. The feature `cxx` compiles the shim `fstream.cc`.
#[cfg(feature = "cxx")]
pub mod cxx {
    use super::Buffered;
    use std::ffi::{c_char, c_int, c_long};
    use std::fs::File;
    use std::io;
    use std::os::fd::IntoRawFd;
    use std::ptr::NonNull;

    /// The C++ stream, opaque to Rust.
    #[repr(C)]
    struct Raw {
        _opaque: [u8; 0],
    }

    unsafe extern "C" {
        fn fathom_fstream_open(
            fd: c_int,
            readable: c_int,
            writable: c_int,
            buffer_bytes: libc::size_t,
        ) -> *mut Raw;
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
            // SAFETY: the descriptor is open and has no other owner; the shim takes it, even if there is no stream.
            let raw = unsafe {
                fathom_fstream_open(fd, readable.into(), writable.into(), libc::BUFSIZ as libc::size_t)
            };
            NonNull::new(raw).map(Self).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
        }
    }

    impl Buffered for Stream {
        #[inline]
        fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
            // SAFETY: the stream is open, and `&mut self` gives exclusive access; the memory is borrowed and has these bytes. No exception
            // leaves the shim: it returns the error number instead.
            answer(unsafe {
                fathom_fstream_read(self.0.as_ptr(), data.as_mut_ptr().cast(), data.len() as c_long)
            })
        }

        #[inline]
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            // SAFETY: as in `read`.
            answer(unsafe {
                fathom_fstream_write(self.0.as_ptr(), data.as_ptr().cast(), data.len() as c_long)
            })
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

    /// Converts a count, or a negative errno.
    fn answer(value: c_long) -> io::Result<usize> {
        usize::try_from(value).map_err(|_| io::Error::from_raw_os_error(-value as i32))
    }

    #[test]
    fn a_descriptor_without_a_stream_is_closed_by_the_shim_alone() -> io::Result<()> {
        use rustix::io::{FdFlags, fcntl_dupfd_cloexec};
        use std::os::fd::BorrowedFd;
        let file = File::open("/dev/null")?;
        // The first open has no valid mode, and there is no memory for the second buffer.
        for (readable, buffer_bytes) in [(0, 4096), (1, usize::MAX / 2)] {
            // Other tests do not use numbers as high as this one.
            let fd = fcntl_dupfd_cloexec(&file, 900)?.into_raw_fd();
            // SAFETY: the descriptor is open and has no other owner.
            assert!(unsafe { fathom_fstream_open(fd, readable, 0, buffer_bytes) }.is_null());
            // SAFETY: the borrowed descriptor is used for one call, which reads its flags and fails
            // if it is closed.
            let flags = rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(fd) });
            assert_eq!(flags, Err::<FdFlags, _>(rustix::io::Errno::BADF), "{readable} {buffer_bytes}");
        }
        let mut seen = [0; 4];
        assert_eq!(Stream::new(&file)?.read(&mut seen)?, 0);
        Ok(())
    }
}

#[test]
fn writes_stay_in_the_buffer_until_it_is_flushed() -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    let path = std::env::temp_dir().join(format!("fathom-stdio-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(&[1; 10_000])?;
    for calls in [Calls::Blocks, Calls::Bytes, Calls::BytesUnlocked] {
        let mut stream = Stream::new(&file, Some(4096), calls)?;
        stream.seek(5000)?;
        assert_eq!(stream.write(&[2; 100])?, 100);
        let mut seen = [0; 100];
        file.read_exact_at(&mut seen, 5000)?;
        assert_eq!(seen, [1; 100], "{calls:?}");
        stream.flush()?;
        file.read_exact_at(&mut seen, 5000)?;
        assert_eq!(seen, [2; 100], "{calls:?}");
        stream.seek(9_950)?;
        assert_eq!(stream.read(&mut seen)?, 50, "{calls:?}");
        assert_eq!(stream.read(&mut seen)?, 0, "{calls:?}");
        file.write_all_at(&[1; 100], 5000)?;
    }
    Ok(())
}

#[test]
fn a_read_from_a_write_only_stream_returns_its_error() -> io::Result<()> {
    let file = File::options().write(true).open("/dev/null")?;
    let mut stream = Stream::new(&file, Some(0), Calls::Blocks)?;
    let error = stream.read(&mut [0; 10]).err().and_then(|e| e.raw_os_error());
    assert_eq!(error, Some(libc::EBADF));
    Ok(())
}
