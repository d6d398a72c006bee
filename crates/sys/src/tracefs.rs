//! Files of tracefs, even if tracefs is not mounted, and the numbers of the system calls that move data.
//!
//! Most machines mount tracefs below /sys at boot. Where it is not mounted, root creates a detached mount (`fsopen(2)`,
//! Linux 5.2). No namespace shows a detached mount, and it disappears with its descriptor.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::File;
use std::io;

/// Usual mount points of tracefs. The kernel mounts the second one by itself when debugfs is mounted.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Reads a file, by its path below tracefs.
///
/// # Errors
/// A message with the path if the user is not allowed to read it, or the kernel has no such file.
pub(crate) fn read(path: &str) -> Result<String, String> {
    read_below(&directory()?, path).map_err(|e| format!("{path} of tracefs: {e}"))
}

/// Opens the directory of tracefs. Mounts tracefs detached if necessary.
///
/// # Errors
///
/// A message if the user is not allowed to open it, or the kernel has no tracefs.
pub fn directory() -> Result<OwnedFd, String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |place: &str| {
        let dir = openat(rustix::fs::CWD, place, flags, Mode::empty())?;
        // If tracefs is not mounted, `dir` is an empty directory of sysfs.
        openat(&dir, "instances", flags, Mode::empty()).map(|_| dir)
    };
    let refused = match open(MOUNTED[0]) {
        Ok(dir) => return Ok(dir),
        Err(Errno::ACCESS) => return Err(not_allowed(MOUNTED[0], &Errno::ACCESS.into())),
        Err(e) => format!("{}: {e}", MOUNTED[0]),
    };
    match open(MOUNTED[1]) {
        Ok(dir) => Ok(dir),
        Err(_) => mount().map_err(|e| cannot_mount(&refused, e)),
    }
}

fn cannot_mount(first: &str, why: Errno) -> String {
    match why {
        Errno::PERM | Errno::ACCESS => not_allowed(first, &why.into()),
        _ => format!("{first}; mounting tracefs failed: {why}"),
    }
}

fn not_allowed(what: &str, why: &io::Error) -> String {
    let advice = crate::error_advice::own_advice();
    let outside = if crate::error_advice::is_root() { "" } else { ", outside of a container" };
    format!("{what}: this user is not allowed to read tracefs ({why}); {advice}{outside}")
}

/// Mounts tracefs detached from every namespace.
fn mount() -> Result<OwnedFd, Errno> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let harmless = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, harmless)
}

fn read_below(root: &OwnedFd, path: &str) -> io::Result<String> {
    let file = openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::read_to_string(File::from(file))
}

/// Number and name of a system call.
pub type IoCall = (i64, &'static str);

/// System calls that move data or make it durable.
pub const IO_CALLS: [IoCall; 22] = [
    (libc::SYS_read, "read"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_preadv, "preadv"),
    (libc::SYS_preadv2, "preadv2"),
    (libc::SYS_write, "write"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_pwritev2, "pwritev2"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_sync_file_range, "sync_file_range"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_io_uring_enter, "io_uring_enter"),
    (libc::SYS_io_submit, "io_submit"),
    (libc::SYS_io_getevents, "io_getevents"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_splice, "splice"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_readahead, "readahead"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detached_mount_reads_the_same_files_and_is_not_listed() {
        const ID: &str = "events/raw_syscalls/sys_enter/id";
        let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let before = mounts();
        match mount() {
            Ok(root) => {
                assert_eq!(mounts(), before);
                let number = read_below(&root, ID).map_err(|e| e.to_string());
                assert!(number.as_ref().is_ok_and(|n| n.trim().parse::<u64>().is_ok()), "{number:?}");
                assert_eq!(number, read(ID));
            }
            Err(why) => println!("SKIPPED: {why}"),
        }
    }

    #[test]
    fn a_missing_file_is_an_error_with_its_path() {
        let why = read("events/raw_syscalls/no_such/id").map_or_else(|why| why, |text| panic!("{text}"));
        assert!(why.contains("raw_syscalls/no_such/id"), "{why}");
    }
}

#[test]
fn every_system_call_has_its_own_number() {
    let mut numbers = IO_CALLS.map(|(number, _)| number);
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|two| two[0] < two[1]));
}
