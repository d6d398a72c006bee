//! The identity of a file or device ([`Identity`]) and its status, by name or by descriptor.
//!
//! The kernel reuses device numbers. So [`crate::stack::with_identifiers`] adds what distinguishes a device from a later one with the same
//! number: serial number, disk sequence, backing file and first sector. A file is identified by its file system's number and its inode.

use crate::error::describe;
use crate::root::{Root, number_of};
use model::Known;
use model::machine::{DirectIo, Identity};
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, StatxAttributes, StatxFlags, major, minor, open, statat, statx,
};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Returns the identity of the file or device at a path, following symbolic links. For a device, `identifiers` is empty.
///
/// # Errors
///
/// Why the path cannot be read.
pub fn from_path(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|metadata| from_metadata(&metadata))
}

/// Returns the identity of the file or device at a path as the kernel has cached it, for files that other processes have open. With statx
/// this does not ask a file server: an unreachable one would block the call. For a device, `identifiers` is empty:
/// [`crate::stack::with_identifiers`] adds them.
///
/// # Errors
///
/// Why the path cannot be read.
pub(crate) fn from_path_cached(path: &Path) -> io::Result<Identity> {
    let status = status_from_cache(path)?;
    if status.kind == FileType::BlockDevice {
        return Ok(from_device_number(status.node_number));
    }
    Ok(Identity::File { device: status.file_system_number, inode: status.inode })
}

/// Returns the identity of an open file or device. Unlike a path, a descriptor cannot be redirected before it is used. For a device,
/// `identifiers` is empty.
///
/// # Errors
///
/// Why the status cannot be read.
pub fn from_file(file: &File) -> io::Result<Identity> {
    file.metadata().map(|metadata| from_metadata(&metadata))
}

/// Returns the identity of the file or device with this metadata. For a device, `identifiers` is empty.
pub fn from_metadata(metadata: &Metadata) -> Identity {
    if metadata.file_type().is_block_device() {
        return from_device_number(number_of(metadata.rdev()));
    }
    from_inode(metadata.dev(), metadata.ino())
}

/// Returns the identity of a path that the kernel prints, as in `/proc/swaps`.
pub(crate) fn from_name(root: &Root, name: &str) -> Known<Identity> {
    match root.device_number(name) {
        Some(number) => Ok(from_device_number(number)),
        None => from_path(&root.path(name)).map_err(|e| format!("{name}: {}", describe(&e))),
    }
}

/// Returns the identity of the block device with this `major:minor`.
pub(crate) fn from_device_number(number: String) -> Identity {
    Identity::Device { number, identifiers: Vec::new() }
}

/// Returns the identity of a file: the device number of its file system, and its inode.
pub(crate) fn from_inode(device: u64, inode: u64) -> Identity {
    Identity::File { device: number_of(device), inode }
}

/// The status of a file: its type, device, inode, mount, direct I/O alignment and attributes.
///
/// 1. statx reports everything at once.
/// 2. Linux before 4.11 lacks statx, and some container runtimes deny it. fstatat then gives type, device and
///    inode.
/// 3. statx reports mounts since Linux 5.8. Before that, `/proc/self/fdinfo` names the mount of an O_PATH
///    descriptor.
pub(crate) struct FileStatus {
    /// Type: regular file, directory, block device ...
    pub(crate) kind: FileType,
    /// `major:minor` of the device, if the file is a device node.
    pub(crate) node_number: String,
    /// `major:minor` of the file system that holds the file.
    pub(crate) file_system_number: String,
    /// Inode of the file: its number within the file system.
    pub(crate) inode: u64,
    /// Mount id, as in `mountinfo`; `None` if the kernel does not report it.
    pub(crate) mount_id: Option<u64>,
    /// Alignment that direct I/O needs; `None` if the kernel does not report it.
    pub(crate) direct: Option<DirectIo>,
    /// Attributes; empty without statx.
    pub(crate) attributes: StatxAttributes,
}

/// Returns the status of the file at a path, following symbolic links.
///
/// # Errors
/// Why the kernel refuses the status.
pub(crate) fn status_by_path(path: &Path) -> io::Result<FileStatus> {
    let mut status = query_status(CWD, path, AtFlags::empty(), all_flags())?;
    if status.mount_id.is_none() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        status.mount_id = open(path, flags, Mode::empty()).ok().and_then(mount_id_of_descriptor);
    }
    Ok(status)
}

/// Returns the status of an open file, which may have lost its name.
///
/// # Errors
/// Why the kernel refuses the status.
pub(crate) fn status_by_file(file: &File) -> io::Result<FileStatus> {
    let mut status = query_status(file, Path::new(""), AtFlags::EMPTY_PATH, all_flags())?;
    status.mount_id = status.mount_id.or_else(|| mount_id_of_descriptor(file));
    Ok(status)
}

/// Returns type, device and inode of a path from the kernel's cache, following symbolic links. With statx
/// this does not query an unreachable file server.
///
/// # Errors
///
/// Why the kernel refuses the status.
pub(crate) fn status_from_cache(path: &Path) -> io::Result<FileStatus> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    query_status(CWD, path, flags, StatxFlags::TYPE | StatxFlags::INO)
}

fn all_flags() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::MNT_ID | StatxFlags::DIOALIGN
}

fn query_status(dir: impl AsFd, path: &Path, flags: AtFlags, wanted: StatxFlags) -> io::Result<FileStatus> {
    match statx(&dir, path, flags, wanted) {
        Ok(found) => {
            let has = |flag: StatxFlags| found.stx_mask & flag.bits() != 0;
            Ok(FileStatus {
                kind: FileType::from_raw_mode(found.stx_mode.into()),
                node_number: format!("{}:{}", found.stx_rdev_major, found.stx_rdev_minor),
                file_system_number: format!("{}:{}", found.stx_dev_major, found.stx_dev_minor),
                inode: found.stx_ino,
                mount_id: has(StatxFlags::MNT_ID).then_some(found.stx_mnt_id),
                direct: has(StatxFlags::DIOALIGN).then_some(DirectIo {
                    memory_align: found.stx_dio_mem_align,
                    offset_align: found.stx_dio_offset_align,
                }),
                attributes: found.stx_attributes,
            })
        }
        // Seccomp filters that are older than statx answer EPERM. If this user is not allowed to access the file itself, fstatat reports
        // that.
        Err(Errno::NOSYS | Errno::PERM) => status_by_fstatat(dir, path, flags - AtFlags::STATX_DONT_SYNC),
        Err(why) => Err(why.into()),
    }
}

fn status_by_fstatat(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<FileStatus> {
    let found = statat(dir, path, flags)?;
    Ok(FileStatus {
        kind: FileType::from_raw_mode(found.st_mode),
        node_number: format!("{}:{}", major(found.st_rdev), minor(found.st_rdev)),
        file_system_number: format!("{}:{}", major(found.st_dev), minor(found.st_dev)),
        inode: found.st_ino,
        mount_id: None,
        direct: None,
        attributes: StatxAttributes::empty(),
    })
}

fn mount_id_of_descriptor(descriptor: impl AsFd) -> Option<u64> {
    let number = descriptor.as_fd().as_raw_fd();
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

#[test]
fn fstatat_and_fdinfo_agree_with_statx() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let file = File::create(dir.path().join("file"))?;
    for path in [dir.path(), &dir.path().join("file"), Path::new("/dev/null")] {
        let (new, old) = (status_by_path(path)?, status_by_fstatat(CWD, path, AtFlags::empty())?);
        assert_eq!((new.kind, new.inode), (old.kind, old.inode));
        assert_eq!(new.node_number, old.node_number);
        assert_eq!(new.file_system_number, old.file_system_number);
        assert_eq!(new.mount_id, mount_id_of_descriptor(open(path, OFlags::PATH, Mode::empty())?));
        assert!(new.mount_id.is_some() && status_from_cache(path)?.inode == old.inode);
    }
    assert_eq!(status_by_file(&file)?.mount_id, status_by_path(dir.path())?.mount_id);
    assert_eq!(
        status_from_cache(&dir.path().join("none")).map_err(|e| e.kind()).err(),
        Some(io::ErrorKind::NotFound)
    );
    Ok(())
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
        let identity = |name: &str| from_path(&at(name));
        let original = from_file(&File::open(at("a"))?)?;
        assert!(
            from_path_cached(&at("soft"))?.is_same(&original)
                && !from_path_cached(&at("copy"))?.is_same(&original)
        );
        assert!(identity("hard")?.is_same(&original) && identity("soft")?.is_same(&original));
        assert!(!identity("copy")?.is_same(&original));
        std::fs::rename(at("copy"), at("a"))?;
        assert!(identity("a")?.change_from(&original).is_some_and(|words| words.contains("inode")));
        Ok(())
    }
}
