//! A file that somebody named to be read: the one way to open it.
//!
//! For: regular files alone, and without waiting. Not for: targets, nor kernel files that fathom reads by itself (crate `machine`).
//!
//! A FIFO blocks for ever where nobody writes, a device may never end or do something when it is opened, and some files of the
//! kernel give their text only once.

use rustix::fs::{FsWord, OFlags, fstatfs};
use std::fs::{File, FileType};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// File systems whose files are answers of the kernel, by the numbers of `linux/magic.h`.
const KERNEL: [(FsWord, &str); 5] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x6367_7270, "cgroup"),
];

/// Opens a regular file.
///
/// # Errors
/// What it is instead, or why it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    // Before it is opened, which may do something, and once more for what has the name then.
    regular(std::fs::metadata(path)?.file_type())?;
    let waits_never = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(waits_never).open(path)?;
    regular(file.metadata()?.file_type())?;
    let system = fstatfs(&file).map(|facts| facts.f_type)?;
    match KERNEL.iter().find(|(number, _)| *number == system) {
        Some((_, name)) => Err(io::Error::other(format!(
            "it is a file of the kernel's ({name}), which may never end; copy its text into a regular file and name that"
        ))),
        None => Ok(file),
    }
}

/// What a file is that is no regular file, and stays unread.
pub fn kind(kind: FileType) -> &'static str {
    match kind {
        k if k.is_dir() => "a directory",
        k if k.is_fifo() => "a FIFO",
        k if k.is_socket() => "a socket",
        k if k.is_char_device() => "a character device",
        k if k.is_block_device() => "a block device",
        _ => "no regular file",
    }
}

fn regular(of: FileType) -> io::Result<()> {
    if of.is_file() {
        return Ok(());
    }
    Err(io::Error::other(format!("it is {}; name a regular file", kind(of))))
}
