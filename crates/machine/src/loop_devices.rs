//! Loop devices and the file or device that each is bound to.
//!
//! A loop device reports its backing file itself (`LOOP_GET_STATUS64`). Hard links, removed names, mount namespaces and a covered `/sys`
//! do not affect that report. The name in `/sys` is used only if the device cannot be opened.

use crate::error::describe;
use crate::root::{Root, number_of};
use crate::{file_systems, identity};
use model::Known;
use model::machine::Identity;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use sys::ioctl::LoopStatus;

const O_NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// A bound loop device.
pub(crate) struct Loop {
    /// Kernel name: `loop3`.
    pub(crate) name: String,
    /// The backing file or block device, or why it is unknown.
    pub(crate) backing: Known<Identity>,
    /// Files below an overlay or a mirrored directory that hold the same bytes as the backing file.
    pub(crate) beneath: Vec<Identity>,
    /// Whether the device is bound read-only, or may be. If not, the kernel has the backing file open for writing.
    pub(crate) read_only: bool,
}

/// Returns all bound loop devices.
///
/// # Errors
/// Why the devices cannot be listed.
pub(crate) fn bound_loops(root: &Root) -> Known<Vec<Loop>> {
    let names = root.list("/sys/class/block").map_err(|why| format!("/sys/class/block: {why}"))?;
    Ok(names.iter().filter_map(|name| find_loop(root, name)).collect())
}

/// Returns a loop device by its kernel name; `None` if the device is not a bound loop device.
pub(crate) fn find_loop(root: &Root, name: &str) -> Option<Loop> {
    let number = name.strip_prefix("loop")?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let dir = format!("/sys/class/block/{name}");
    let shown = root.has(&format!("{dir}/loop"));
    let status = loop_status(root, name);
    // The directory exists while the device is bound, unless another mount covers it.
    if !shown && status.is_err() && is_unbound(root, &dir) {
        return None;
    }
    let read_only = root.word(&format!("{dir}/ro")).is_none_or(|w| w != "0")
        || status.as_ref().is_ok_and(|status| status.read_only);
    let backing = status
        .map(|status| backing_identity(&status))
        .or_else(|why| backing_by_name(root, name).map_err(|also| format!("{why}; {also}")));
    // The device may have been unbound meanwhile.
    if backing.is_err() && shown && !root.has(&format!("{dir}/loop")) {
        return None;
    }
    Some(Loop { name: name.to_owned(), backing, beneath: files_beneath(root, name), read_only })
}

/// Returns whether `/sys` shows that a loop device is unbound: its size is 0, or the device has been removed.
fn is_unbound(root: &Root, dir: &str) -> bool {
    match root.read(&format!("{dir}/size")) {
        Ok(sectors) => sectors.trim() == "0",
        Err(why) => why == "no such file" && !root.has(dir),
    }
}

/// Returns the files that hold the loop device's data, if the name of its backing file is in an overlay or a mirrored directory. A
/// writable loop device has these files open for writing.
fn files_beneath(root: &Root, name: &str) -> Vec<Identity> {
    let Ok(file) = root.read(&format!("/sys/class/block/{name}/loop/backing_file")) else {
        return Vec::new();
    };
    let path = root.path(file.trim_end_matches('\n'));
    let mut files = file_systems::beneath(root, &path).unwrap_or_default();
    files.extend(file_systems::mirrored_file(root, &path));
    files.iter().filter_map(|path| identity::from_path(path).ok()).collect()
}

impl Loop {
    /// Returns whether the device has its data in this file or device.
    pub(crate) fn is_backed_by(&self, what: &Identity) -> bool {
        self.backing.as_ref().is_ok_and(|b| b.is_same(what)) || self.beneath.iter().any(|b| b.is_same(what))
    }
}

/// Returns the identity of a loop device's backing file or device; `None` if nothing backs the device or the backing is unknown.
pub fn backing(root: &Root, name: &str) -> Option<Identity> {
    find_loop(root, name)?.backing.ok()
}

/// Reads the status of a loop device, which names its backing file or device. Fails for a recorded
/// copy of a machine, which has no devices.
///
/// # Errors
/// Why the device cannot be opened or read, or that its node in `/dev` belongs to another device.
pub(crate) fn loop_status(root: &Root, name: &str) -> Known<LoopStatus> {
    let path = root.path(&format!("/dev/{name}"));
    let at = |why: String| format!("{}: {why}", model::name::shown(&path));
    let mut options = File::options();
    let file = options.read(true).custom_flags(O_NONBLOCK).open(&path).map_err(|e| at(describe(&e)))?;
    let metadata = file.metadata().map_err(|e| at(describe(&e)))?;
    if !metadata.file_type().is_block_device() {
        return Err(at("not a block device".into()));
    }
    let number = number_of(metadata.rdev());
    if root.word(&format!("/sys/class/block/{name}/dev")).is_some_and(|shown| shown != number) {
        return Err(at(format!("this node belongs to another device, {number}")));
    }
    sys::ioctl::loop_status(&file).map_err(|e| match rustix::io::Errno::from_io_error(&e) {
        Some(rustix::io::Errno::NXIO) => {
            at("no file is attached to it (`losetup -a` lists the loop devices that have one)".into())
        }
        _ => at(describe(&e)),
    })
}

/// Returns the file or block device that a loop device reported.
pub(crate) fn backing_identity(status: &LoopStatus) -> Identity {
    if status.backing_device == 0 {
        identity::from_inode(status.device, status.inode)
    } else {
        identity::from_device_number(number_of(status.backing_device))
    }
}

/// Returns the identity of the file or device that now has the name of the backing file.
fn backing_by_name(root: &Root, name: &str) -> Known<Identity> {
    let file = root.read(&format!("/sys/class/block/{name}/loop/backing_file"))?;
    identity::from_name(root, file.trim_end_matches('\n'))
}

#[test]
fn the_name_in_sys_counts_without_a_device_node_and_unreadable_facts_are_unknown() {
    use crate::fixture::put;
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let root = Root::at(dir.path().to_owned());
    put(dir.path(), "images/a", "x");
    put(dir.path(), "sys/class/block/loop0/loop/backing_file", "/images/a\n");
    put(dir.path(), "sys/class/block/loop1/loop/backing_file", "/images/b (deleted)\n");
    put(dir.path(), "sys/class/block/loop1/ro", "1\n");
    put(dir.path(), "sys/class/block/loop2/dev", "7:2\n");
    put(dir.path(), "sys/class/block/loop2/size", "0\n");
    put(dir.path(), "sys/class/block/loop0/ro", "0\n");
    // The directory of loop3 is covered. The device has a size, so it is bound, but its backing file is unknown.
    put(dir.path(), "sys/class/block/loop3/size", "2048\n");
    put(dir.path(), "sys/class/block/loop3p1/size", "1024\n");
    // The size of loop4 cannot be read, and loop5 has been removed.
    put(dir.path(), "sys/class/block/loop4/dev", "7:4\n");
    crate::fixture::link(dir.path(), "/gone", "sys/class/block/loop5");
    let loops = bound_loops(&root).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = loops.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["loop0", "loop1", "loop3", "loop4"]);
    assert!(loops[2].backing.is_err() && loops[3].backing.is_err());
    // If `ro` cannot be read, the device may be read-only.
    assert!(!loops[0].read_only && loops[3].read_only);
    assert_eq!(loops[0].backing.as_ref().ok(), identity::from_path(&root.path("/images/a")).ok().as_ref());
    assert!(loops[1].read_only && loops[1].backing.as_ref().is_err_and(|why| why.contains("(deleted)")));
    assert!(bound_loops(&Root::at("/nonexistent-prefix".into())).is_err());
}

#[test]
fn a_node_of_another_loop_device_does_not_answer() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    crate::fixture::put(dir.path(), "sys/class/block/loop3/dev", "7:3\n");
    std::fs::create_dir(dir.path().join("dev")).unwrap_or_else(|e| panic!("{e}"));
    let node = dir.path().join("dev/loop3");
    let made = mknodat(CWD, &node, FileType::BlockDevice, Mode::RUSR, makedev(7, 0));
    if made.is_err() || File::open(&node).is_err() {
        return println!("skipped: no device nodes or loop devices here");
    }
    let status = loop_status(&Root::at(dir.path().to_owned()), "loop3");
    assert!(status.is_err_and(|why| why.contains("this node belongs to another device, 7:0")));
}
