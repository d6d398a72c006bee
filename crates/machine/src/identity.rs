//! What a file or device is, asked of the kernel by name or by descriptor.
//!
//! For: an [`Identity`] to compare. Not for: who uses it (that is `in_use`), nor what more tells one device from another
//! ([`crate::marks`]).

use crate::error::describe;
use crate::file_status;
use crate::root::{Root, number_of};
use model::Known;
use model::machine::Identity;
use rustix::fs::FileType;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// What is at a path now, behind symbolic links. A device bears no marks.
///
/// # Errors
/// Why it cannot be looked at.
pub fn of_path(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|facts| of_facts(&facts))
}

/// What is at a path, behind symbolic links, as the kernel remembers it: a file server that is dead would never answer. For what others
/// have open, which is none of ours to wait for. A device bears no marks.
///
/// # Errors
/// Why it cannot be looked at.
pub(crate) fn remembered(path: &Path) -> io::Result<Identity> {
    let status = file_status::from_cache(path)?;
    if status.kind == FileType::BlockDevice {
        return Ok(of_device(status.node_number));
    }
    Ok(Identity::File { device: status.file_system_number, inode: status.inode })
}

/// What is open. What is asked of a descriptor cannot be exchanged before it is used. A device bears no marks.
///
/// # Errors
/// Why it cannot be looked at.
pub fn of_file(file: &File) -> io::Result<Identity> {
    file.metadata().map(|facts| of_facts(&facts))
}

/// What these facts are of.
pub fn of_facts(facts: &Metadata) -> Identity {
    if facts.file_type().is_block_device() {
        return of_device(number_of(facts.rdev()));
    }
    of_numbers(facts.dev(), facts.ino())
}

/// What has a name that the kernel shows, as in `/proc/swaps`.
pub(crate) fn of_name(root: &Root, name: &str) -> Known<Identity> {
    match root.device_number(name) {
        Some(number) => Ok(of_device(number)),
        None => of_path(&root.path(name)).map_err(|e| format!("{name}: {}", describe(&e))),
    }
}

/// A block device by its `major:minor`.
pub(crate) fn of_device(number: String) -> Identity {
    Identity::Device { number, marks: Vec::new() }
}

/// A file as `stat` shows it: the device that its file system has, and its inode.
pub(crate) fn of_numbers(device: u64, inode: u64) -> Identity {
    Identity::File { device: number_of(device), inode }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_link_and_a_symbolic_link_are_the_file_and_a_copy_is_not() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a"), "x")?;
        std::fs::hard_link(at("a"), at("hard"))?;
        std::os::unix::fs::symlink(at("a"), at("soft"))?;
        std::fs::copy(at("a"), at("copy"))?;
        let of = |name: &str| of_path(&at(name));
        let original = of_file(&File::open(at("a"))?)?;
        assert!(remembered(&at("soft"))?.is_same(&original) && !remembered(&at("copy"))?.is_same(&original));
        assert!(of("hard")?.is_same(&original) && of("soft")?.is_same(&original));
        assert!(!of("copy")?.is_same(&original));
        std::fs::rename(at("copy"), at("a"))?;
        assert!(of("a")?.change_from(&original).is_some_and(|words| words.contains("inode")));
        Ok(())
    }
}
