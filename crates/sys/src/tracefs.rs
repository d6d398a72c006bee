//! Files of tracefs, also where nobody mounted it.
//!
//! For: small files such as a tracepoint's number, for whoever may read them, and its directory. Not for: tracing.
//!
//! A machine mounts tracefs below /sys when it boots, a minimal one or a container does not. Root then gets a mount that is
//! attached nowhere (fsopen(2), since Linux 5.2): no namespace shows it, and it is gone with its descriptor, however the process
//! ends.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::File;
use std::io;

/// Where it is mounted, by custom; automatically in the second place wherever debugfs is.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The text of a file, by its path below tracefs.
///
/// # Errors
/// A sentence with the path: this user may not, or the kernel has no such file.
pub(crate) fn read(path: &str) -> Result<String, String> {
    let place = |dir: &str| format!("{dir}/{path}");
    let first = match std::fs::read_to_string(place(MOUNTED[0])) {
        Ok(text) => return Ok(text),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            return Err(not_allowed(&place(MOUNTED[0]), &e));
        }
        Err(e) => format!("{}: {e}", place(MOUNTED[0])),
    };
    if let Ok(text) = std::fs::read_to_string(place(MOUNTED[1])) {
        return Ok(text);
    }
    let root = mount(MountAttrFlags::MOUNT_ATTR_RDONLY).map_err(|e| cannot_mount(&first, e))?;
    read_below(&root, path).map_err(|e| format!("{path} of tracefs: {e}"))
}

/// Its directory, to be read and written below: where it is mounted, else of a mount that is attached nowhere.
///
/// # Errors
/// A sentence: this user may not, or the kernel has none.
pub fn directory() -> Result<OwnedFd, String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |place: &str| {
        let dir = openat(rustix::fs::CWD, place, flags, Mode::empty())?;
        // An empty directory of sysfs stands there where nothing is mounted.
        openat(&dir, "instances", flags, Mode::empty()).map(|_| dir)
    };
    let refused = match open(MOUNTED[0]) {
        Ok(dir) => return Ok(dir),
        Err(Errno::ACCESS) => return Err(not_allowed(MOUNTED[0], &Errno::ACCESS.into())),
        Err(e) => format!("{}: {e}", MOUNTED[0]),
    };
    match open(MOUNTED[1]) {
        Ok(dir) => Ok(dir),
        Err(_) => mount(MountAttrFlags::empty()).map_err(|e| cannot_mount(&refused, e)),
    }
}

fn cannot_mount(first: &str, why: Errno) -> String {
    match why {
        Errno::PERM | Errno::ACCESS => not_allowed(first, &why.into()),
        _ => format!("{first}; mounting tracefs: {why}"),
    }
}

fn not_allowed(what: &str, why: &io::Error) -> String {
    let advice = crate::user::own_advice();
    let outside = if crate::user::is_root() { "" } else { ", outside of a container" };
    format!("{what}: this user may not read tracefs ({why}); {advice}{outside}")
}

/// A mount of it that is attached nowhere.
fn mount(access: MountAttrFlags) -> Result<OwnedFd, Errno> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let harmless = access
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, harmless)
}

fn read_below(root: &OwnedFd, path: &str) -> io::Result<String> {
    let file = openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::read_to_string(File::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_of_our_own_reads_the_same_and_no_list_of_mounts_has_it() {
        const ID: &str = "events/raw_syscalls/sys_enter/id";
        let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let before = mounts();
        match mount(MountAttrFlags::MOUNT_ATTR_RDONLY) {
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
    fn a_file_that_is_not_there_is_an_error_with_its_path() {
        let why = read("events/raw_syscalls/no_such/id").map_or_else(|why| why, |text| panic!("{text}"));
        assert!(why.contains("raw_syscalls/no_such/id"), "{why}");
    }
}
