//! Which file or device something is: its [`Identity`], its status, and what a loop device is bound to.
//!
//! An identity is asked by name or by descriptor. Device numbers are used again, so [`marked`] adds what
//! distinguishes a device from its successor: serial number, disk sequence, backing file and first sector.
//! The inode of a file is enough. `in_use` finds the users.
//!
//! Loop devices report their backing file themselves (`LOOP_GET_STATUS64`), which holds over hard links,
//! removed names, mount namespaces and a covered `/sys`. The name in `/sys` counts only if the device cannot
//! be opened.

use crate::error::describe;
use crate::root::{Root, number_of};
use crate::{file_systems, stack};
use model::Known;
use model::machine::{DirectIo, Identity};
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, StatxAttributes, StatxFlags, major, minor, open, statat, statx,
};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use sys::ioctl::LoopStatus;

/// Returns what a path leads to now, following symbolic links. A device has no marks.
///
/// # Errors
/// Why it cannot be read.
pub fn of_path(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|metadata| of_facts(&metadata))
}

/// Returns what a path leads to, from the kernel's cache: an unreachable file server would never answer. For
/// files that other processes have open. A device has no marks.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn of_path_cached(path: &Path) -> io::Result<Identity> {
    let status = status_from_cache(path)?;
    if status.kind == FileType::BlockDevice {
        return Ok(of_device(status.node_number));
    }
    Ok(Identity::File { device: status.file_system_number, inode: status.inode })
}

/// Returns what a descriptor leads to. It cannot be exchanged before it is used. A device has no marks.
///
/// # Errors
/// Why it cannot be read.
pub fn of_file(file: &File) -> io::Result<Identity> {
    file.metadata().map(|metadata| of_facts(&metadata))
}

/// Returns the identity from metadata.
pub fn of_facts(metadata: &Metadata) -> Identity {
    if metadata.file_type().is_block_device() {
        return of_device(number_of(metadata.rdev()));
    }
    of_numbers(metadata.dev(), metadata.ino())
}

/// Returns what a name that the kernel prints leads to, as in `/proc/swaps`.
pub(crate) fn of_name(root: &Root, name: &str) -> Known<Identity> {
    match root.device_number(name) {
        Some(number) => Ok(of_device(number)),
        None => of_path(&root.path(name)).map_err(|e| format!("{name}: {}", describe(&e))),
    }
}

/// Returns the identity of the block device with this `major:minor`.
pub(crate) fn of_device(number: String) -> Identity {
    Identity::Device { number, marks: Vec::new() }
}

/// Returns the identity of a file: the device number of its file system, and its inode.
pub(crate) fn of_numbers(device: u64, inode: u64) -> Identity {
    Identity::File { device: number_of(device), inode }
}

/// Adds the marks that distinguish a device from another one that had its number.
pub fn marked(root: &Root, what: Identity) -> Identity {
    match what {
        Identity::Device { number, .. } => {
            let name = stack::name_of(root, &number);
            Identity::Device { marks: name.map(|n| marks(root, &n)).unwrap_or_default(), number }
        }
        file @ Identity::File { .. } => file,
    }
}

fn marks(root: &Root, name: &str) -> Vec<String> {
    let disk = stack::disk_of_partition(root, name).unwrap_or_else(|| name.to_owned());
    let serial = stack::serial(root, name).map(|s| format!("serial number {s}"));
    // The kernel counts disks as they appear and change their medium, and loop devices as they are bound.
    let sequence =
        root.word(&format!("/sys/class/block/{disk}/diskseq")).map(|n| format!("disk sequence {n}"));
    let start =
        root.word(&format!("/sys/class/block/{name}/start")).map(|s| format!("partition from sector {s}"));
    let words = |(what, offset): (Identity, u64)| match what {
        Identity::File { device, inode } => {
            format!("a loop over inode {inode} of {device} from byte {offset}")
        }
        Identity::Device { number, .. } => format!("a loop over device {number} from byte {offset}"),
    };
    let behind = disk.starts_with("loop").then(|| backing_and_offset(root, &disk).ok().map(words)).flatten();
    [serial, behind, start, sequence].into_iter().flatten().collect()
}

/// The status of a file: its type, device, inode, mount, direct I/O alignment and attributes.
///
/// 1. statx reports everything at once.
/// 2. Linux before 4.11 lacks statx, and some container runtimes deny it. fstatat then gives type, device and
///    inode.
/// 3. statx reports mounts since Linux 5.8. Before that, `/proc/self/fdinfo` names the mount of an O_PATH
///    descriptor.
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

/// Returns the status of the file at a path, following symbolic links.
///
/// # Errors
/// Why the kernel refuses it.
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
/// Why the kernel refuses it.
pub(crate) fn status_by_file(file: &File) -> io::Result<FileStatus> {
    let mut status = query_status(file, Path::new(""), AtFlags::EMPTY_PATH, all_flags())?;
    status.mount_id = status.mount_id.or_else(|| mount_id_of_descriptor(file));
    Ok(status)
}

/// Returns type, device and inode from the kernel's cache, following symbolic links. With statx, an
/// unreachable file server is not asked.
///
/// # Errors
/// Why the kernel refuses it.
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
        // Seccomp filters that are older than statx answer EPERM. If the file itself is forbidden, fstatat reports it.
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

const O_NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// A loop device that is bound.
pub(crate) struct Loop {
    /// Kernel name: `loop3`.
    pub(crate) name: String,
    /// The backing file or block device, or why neither the kernel nor a name tells it.
    pub(crate) backing: Known<Identity>,
    /// Files below an overlay that hold the same bytes under another identity.
    pub(crate) beneath: Vec<Identity>,
    /// Whether it was bound read-only. Only then is its backing file not open for writing.
    pub(crate) read_only: bool,
}

/// Returns all bound loop devices.
///
/// # Errors
/// Why they cannot be listed.
pub(crate) fn bound_loops(root: &Root) -> Known<Vec<Loop>> {
    let names = root.list("/sys/class/block").map_err(|why| format!("/sys/class/block: {why}"))?;
    Ok(names.iter().filter_map(|name| find_loop(root, name)).collect())
}

/// Returns a loop device by its kernel name; `None` if it is not one, or not bound.
pub(crate) fn find_loop(root: &Root, name: &str) -> Option<Loop> {
    let number = name.strip_prefix("loop")?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let dir = format!("/sys/class/block/{name}");
    let shown = root.has(&format!("{dir}/loop"));
    let status = loop_status(root, name);
    // The directory exists while the device is bound, unless something covers it. An unbound device has no
    // bytes.
    let has_bytes = || root.word(&format!("{dir}/size")).is_some_and(|bytes| bytes != "0");
    if !shown && status.is_err() && !has_bytes() {
        return None;
    }
    let read_only = root.word(&format!("{dir}/ro")).is_some_and(|w| w == "1")
        || status.as_ref().is_ok_and(|status| status.read_only);
    let backing = status
        .map(|status| backing_identity(&status))
        .or_else(|why| backing_by_name(root, name).map_err(|also| format!("{why}; {also}")));
    // Another process may have unbound it meanwhile.
    if backing.is_err() && shown && !root.has(&format!("{dir}/loop")) {
        return None;
    }
    Some(Loop { name: name.to_owned(), backing, beneath: files_beneath(root, name), read_only })
}

/// Returns the files below an overlay, or of a mirrored directory, that hold the loop device's data, if its
/// file name leads there. Otherwise a writable loop device has them open for writing.
fn files_beneath(root: &Root, name: &str) -> Vec<Identity> {
    let Ok(file) = root.read(&format!("/sys/class/block/{name}/loop/backing_file")) else {
        return Vec::new();
    };
    let path = root.path(file.trim_end_matches('\n'));
    let mut files = file_systems::beneath(root, &path).unwrap_or_default();
    files.extend(file_systems::mirrored_file(root, &path));
    files.iter().filter_map(|path| of_path(path).ok()).collect()
}

impl Loop {
    /// Whether its data is in this file or device.
    pub(crate) fn is_over(&self, what: &Identity) -> bool {
        self.backing.as_ref().is_ok_and(|b| b.is_same(what)) || self.beneath.iter().any(|b| b.is_same(what))
    }
}

/// Returns the backing file or device of a loop device by its kernel name; `None` if it has none or it is
/// unknown.
pub fn backing(root: &Root, name: &str) -> Option<Identity> {
    find_loop(root, name)?.backing.ok()
}

/// Returns the identity of a loop device's backing file or device, and the first byte of it that is used.
pub(crate) fn backing_and_offset(root: &Root, name: &str) -> Known<(Identity, u64)> {
    loop_status(root, name).map(|status| (backing_identity(&status), status.offset_bytes))
}

/// Asks a loop device for its backing file or device. A recorded copy of a machine cannot be asked.
///
/// # Errors
/// Why the device cannot be opened, or does not answer.
pub(crate) fn loop_status(root: &Root, name: &str) -> Known<LoopStatus> {
    let path = root.path(&format!("/dev/{name}"));
    let at = |why: String| format!("{}: {why}", model::name::shown(&path));
    let mut options = File::options();
    let file = options.read(true).custom_flags(O_NONBLOCK).open(&path).map_err(|e| at(describe(&e)))?;
    if !file.metadata().is_ok_and(|f| f.file_type().is_block_device()) {
        return Err(at("no block device".into()));
    }
    sys::ioctl::loop_status(&file).map_err(|e| at(describe(&e)))
}

/// Returns the file or block device that a loop device reported.
pub(crate) fn backing_identity(status: &LoopStatus) -> Identity {
    if status.backing_device == 0 {
        of_numbers(status.device, status.inode)
    } else {
        of_device(number_of(status.backing_device))
    }
}

/// Returns what the name of the backing file leads to now.
fn backing_by_name(root: &Root, name: &str) -> Known<Identity> {
    let file = root.read(&format!("/sys/class/block/{name}/loop/backing_file"))?;
    of_name(root, file.trim_end_matches('\n'))
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

#[test]
fn a_name_counts_where_the_kernel_is_not_asked_and_a_removed_one_is_not_known() {
    use crate::fixture::put;
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let root = Root::at(dir.path().to_owned());
    put(dir.path(), "images/a", "x");
    put(dir.path(), "sys/class/block/loop0/loop/backing_file", "/images/a\n");
    put(dir.path(), "sys/class/block/loop1/loop/backing_file", "/images/b (deleted)\n");
    put(dir.path(), "sys/class/block/loop1/ro", "1\n");
    put(dir.path(), "sys/class/block/loop2/dev", "7:2\n");
    put(dir.path(), "sys/class/block/loop2/size", "0\n");
    // Its directory is covered: it has bytes, so it is bound, and to what is not known.
    put(dir.path(), "sys/class/block/loop3/size", "2048\n");
    put(dir.path(), "sys/class/block/loop3p1/size", "1024\n");
    let loops = bound_loops(&root).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = loops.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["loop0", "loop1", "loop3"]);
    assert!(loops[2].backing.is_err());
    assert_eq!(loops[0].backing.as_ref().ok(), of_path(&root.path("/images/a")).ok().as_ref());
    assert!(loops[1].read_only && loops[1].backing.as_ref().is_err_and(|why| why.contains("(deleted)")));
    assert!(bound_loops(&Root::at("/nonexistent-prefix".into())).is_err());
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
        assert!(
            of_path_cached(&at("soft"))?.is_same(&original)
                && !of_path_cached(&at("copy"))?.is_same(&original)
        );
        assert!(of("hard")?.is_same(&original) && of("soft")?.is_same(&original));
        assert!(!of("copy")?.is_same(&original));
        std::fs::rename(at("copy"), at("a"))?;
        assert!(of("a")?.change_from(&original).is_some_and(|words| words.contains("inode")));
        Ok(())
    }
}
