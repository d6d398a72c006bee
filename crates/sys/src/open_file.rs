//! An open file with the right to write to it.
//!
//! Every interface asks `writable` before a write. A file that reports its closing is closed once through a duplicate before the
//! descriptor itself goes: NFS and FUSE write back at `close(2)` and report what they lost there, and only there.

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::sync::{Arc, Mutex, PoisonError};

/// A file that operations name by its index.
#[derive(Debug)]
pub struct OpenFile {
    /// What operations read and write.
    pub file: File,
    /// Whether operations may write to it.
    pub writable: bool,
    /// The target that it is, and where a failing close is kept.
    closing: Option<(usize, CloseErrors)>,
}

/// Closes that failed, of all files that report to it.
#[derive(Clone, Debug, Default)]
pub struct CloseErrors(Arc<Mutex<Vec<(usize, i32)>>>);

impl CloseErrors {
    /// The target and the error number of each close that failed since the last call.
    pub fn take(&self) -> Vec<(usize, i32)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl OpenFile {
    /// An open file whose closing is not checked.
    pub fn new(file: File, writable: bool) -> Self {
        Self { file, writable, closing: None }
    }

    /// An open file that keeps the error of its close in `errors`, as that of this target.
    pub fn reporting(file: File, writable: bool, target: usize, errors: &CloseErrors) -> Self {
        Self { file, writable, closing: writable.then(|| (target, errors.clone())) }
    }

    /// The same open file under another number.
    ///
    /// # Errors
    /// What the kernel answers: mostly that there are too many.
    pub fn copy(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, writable: self.writable, closing: self.closing.clone() })
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let Some((target, errors)) = &self.closing else { return };
        // Without a free descriptor the close is not checked; the sync after it still is.
        if let Err(e) = self.file.try_clone().map_or(Ok(()), close) {
            let mut errors = errors.0.lock().unwrap_or_else(PoisonError::into_inner);
            errors.push((*target, e.raw_os_error().unwrap_or(0)));
        }
    }
}

/// Closes a file and returns the error that the standard library drops.
fn close(file: File) -> io::Result<()> {
    let number = file.into_raw_fd();
    // SAFETY: `into_raw_fd` gave up the only owner of this open descriptor, and Linux frees the number whatever close answers.
    if unsafe { libc::close(number) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
