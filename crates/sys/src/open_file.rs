//! Open files: write permission, errors of `close(2)`, and files that the user names.
//!
//! [`OpenFile`] carries the permission to write, which every interface checks before a write. NFS and FUSE write back at `close(2)` and
//! report write errors only there. To get these errors, a file whose close is checked is first closed through a duplicate of its
//! descriptor.
//!
//! [`open`] opens a file that the user names as input. It accepts regular files only: a FIFO can
//! block forever, a device may never end or may act when it is opened, and some kernel files return
//! their text only once.

use crate::check;
use rustix::fs::{FsWord, OFlags, fstatfs};
use std::fs::{File, FileType};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// An open file of a worker.
#[derive(Debug)]
pub struct OpenFile {
    /// The file itself.
    pub file: File,
    /// Whether operations may write to the file.
    pub writable: bool,
    /// Index of the target, and the list that gets close errors; `None` if the close of this file is not checked.
    closing: Option<(usize, CloseErrors)>,
}

/// Close errors of several files.
#[derive(Clone, Debug, Default)]
pub struct CloseErrors(Arc<Mutex<Vec<(usize, i32)>>>);

impl CloseErrors {
    /// Returns the target and the error number of each close that failed since the last call.
    pub fn take(&self) -> Vec<(usize, i32)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl OpenFile {
    /// Wraps a file whose close is not checked.
    pub fn new(file: File, writable: bool) -> Self {
        Self { file, writable, closing: None }
    }

    /// Wraps a file of the target with index `target`. If the file is writable and its close fails, the error is added to `errors`.
    pub fn reporting(file: File, writable: bool, target: usize, errors: &CloseErrors) -> Self {
        Self { file, writable, closing: writable.then(|| (target, errors.clone())) }
    }

    /// Duplicates the descriptor.
    ///
    /// # Errors
    /// An error of `dup(2)`, usually too many open files.
    pub fn copy(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, writable: self.writable, closing: self.closing.clone() })
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let Some((target, errors)) = &self.closing else { return };
        // If no descriptor is free, the close is not checked. A sync before the close still reports write errors.
        if let Err(e) = self.file.try_clone().map_or(Ok(()), close) {
            let mut errors = errors.0.lock().unwrap_or_else(PoisonError::into_inner);
            errors.push((*target, e.raw_os_error().unwrap_or(0)));
        }
    }
}

/// Closes a file and returns the error that the standard library drops.
fn close(file: File) -> io::Result<()> {
    let number = file.into_raw_fd();
    // SAFETY: `into_raw_fd` gave up the only owner of this open descriptor, and Linux frees the
    // number even if the close fails.
    check(unsafe { libc::close(number) })
}

/// `O_DSYNC` of `open(2)`: each write waits until it is durable. `rustix::fs::OFlags` (1.1, `linux_raw`) has the value of `O_SYNC` instead,
/// which waits for metadata too.
pub const O_DSYNC: i32 = libc::O_DSYNC;

/// File systems with files that the kernel generates, by the numbers of `linux/magic.h`.
const KERNEL_FILE_SYSTEMS: [(FsWord, &str); 5] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x6367_7270, "cgroup"),
];

/// Opens a regular file that the user named, without blocking.
///
/// # Errors
/// A message with the kind of the file if it is not regular, or why it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    // Check before opening, which may have side effects. Check again after opening, because another file may have got the name.
    check_regular(std::fs::metadata(path)?.file_type())?;
    let without_blocking = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(without_blocking).open(path)?;
    check_regular(file.metadata()?.file_type())?;
    let system = fstatfs(&file).map(|facts| facts.f_type)?;
    match KERNEL_FILE_SYSTEMS.iter().find(|(number, _)| *number == system) {
        Some((_, name)) => Err(io::Error::other(format!(
            "this is a file of the kernel ({name}), which may never end; copy its text to a regular file and name that"
        ))),
        None => Ok(file),
    }
}

/// Describes a file that is not regular.
pub fn kind(kind: FileType) -> &'static str {
    match kind {
        k if k.is_dir() => "a directory",
        k if k.is_fifo() => "a FIFO",
        k if k.is_socket() => "a socket",
        k if k.is_char_device() => "a character device",
        k if k.is_block_device() => "a block device",
        _ => "not a regular file",
    }
}

fn check_regular(file_type: FileType) -> io::Result<()> {
    if file_type.is_file() {
        return Ok(());
    }
    Err(io::Error::other(format!("this is {}; name a regular file", kind(file_type))))
}

#[test]
fn o_dsync_is_part_of_o_sync() {
    assert_eq!(libc::O_SYNC & O_DSYNC, O_DSYNC);
    assert_ne!(libc::O_SYNC, O_DSYNC);
}
