//! The status of a file: its type, device, inode, mount, alignment of direct I/O and attributes.
//!
//! 1. statx answers everything at once.
//! 2. Linux before 4.11 lacks statx, and some container runtimes deny it. fstatat then gives type, device and inode; alignment and
//!    attributes remain unknown.
//! 3. statx reports mounts since Linux 5.8. Before that, `/proc/self/fdinfo` names the mount of an O_PATH descriptor.

use model::machine::DirectIo;
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, StatxAttributes, StatxFlags, major, minor, open, statat, statx,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// The status of a file as far as the kernel reports it.
pub(crate) struct FileStatus {
    /// Regular file, directory, block device ...
    pub(crate) kind: FileType,
    /// `major:minor` of a device node itself.
    pub(crate) node_number: String,
    /// `major:minor` of the file system that holds the file.
    pub(crate) file_system_number: String,
    /// Number of the file within its file system.
    pub(crate) inode: u64,
    /// The id of its mount in `mountinfo`.
    pub(crate) mount_id: Option<u64>,
    /// The alignment that direct I/O needs.
    pub(crate) direct: Option<DirectIo>,
    /// Attributes; empty if the kernel lacks statx.
    pub(crate) attributes: StatxAttributes,
}

/// The status of the file at a path, following symbolic links.
///
/// # Errors
/// Why the kernel refuses it.
pub(crate) fn by_path(path: &Path) -> io::Result<FileStatus> {
    let mut status = query(CWD, path, AtFlags::empty(), everything())?;
    if status.mount_id.is_none() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        status.mount_id = open(path, flags, Mode::empty()).ok().and_then(mount_id_of_descriptor);
    }
    Ok(status)
}

/// The status of an open file, which may have lost its name.
///
/// # Errors
/// Why the kernel refuses it.
pub(crate) fn by_file(file: &File) -> io::Result<FileStatus> {
    let mut status = query(file, Path::new(""), AtFlags::EMPTY_PATH, everything())?;
    status.mount_id = status.mount_id.or_else(|| mount_id_of_descriptor(file));
    Ok(status)
}

/// Type, device and inode from the kernel's memory, following symbolic links. With statx, an unreachable file server is not asked.
///
/// # Errors
/// Why the kernel refuses it.
pub(crate) fn from_cache(path: &Path) -> io::Result<FileStatus> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    query(CWD, path, flags, StatxFlags::TYPE | StatxFlags::INO)
}

fn everything() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::MNT_ID | StatxFlags::DIOALIGN
}

fn query(dir: impl AsFd, path: &Path, flags: AtFlags, wanted: StatxFlags) -> io::Result<FileStatus> {
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
        // Seccomp filters that are older than statx answer EPERM. If the file itself is forbidden, fstatat reports it.
        Err(Errno::NOSYS | Errno::PERM) => by_fstatat(dir, path, flags - AtFlags::STATX_DONT_SYNC),
        Err(why) => Err(why.into()),
    }
}

fn by_fstatat(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<FileStatus> {
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
        let (new, old) = (by_path(path)?, by_fstatat(CWD, path, AtFlags::empty())?);
        assert_eq!((new.kind, new.inode), (old.kind, old.inode));
        assert_eq!(new.node_number, old.node_number);
        assert_eq!(new.file_system_number, old.file_system_number);
        assert_eq!(new.mount_id, mount_id_of_descriptor(open(path, OFlags::PATH, Mode::empty())?));
        assert!(new.mount_id.is_some() && from_cache(path)?.inode == old.inode);
    }
    assert_eq!(by_file(&file)?.mount_id, by_path(dir.path())?.mount_id);
    assert_eq!(
        from_cache(&dir.path().join("none")).map_err(|e| e.kind()).err(),
        Some(io::ErrorKind::NotFound)
    );
    Ok(())
}
