//! Loop devices that are bound, each with its backing file or device.
//!
//! The device itself is asked first (`LOOP_GET_STATUS64`, which needs no more than a descriptor for reading). Its answer holds over hard
//! links, removed names, mount namespaces and a `/sys` in which the directory of the device is covered. The name in `/sys` counts only
//! where the device cannot be opened.

use crate::error::describe;
use crate::root::{Root, number_of};
use crate::{identity, overlays};
use model::Known;
use model::machine::Identity;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use sys::ioctl::LoopStatus;

const O_NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// A loop device that is bound.
pub(crate) struct Loop {
    /// Kernel name: `loop3`.
    pub(crate) name: String,
    /// The file or block device behind it. Why nobody can tell, where neither the kernel nor a name does.
    pub(crate) backing: Known<Identity>,
    /// What holds the bytes of a file of an overlay, which has another identity there.
    pub(crate) beneath: Vec<Identity>,
    /// Whether it was bound for reading only: only then is its backing file not open for writing.
    pub(crate) read_only: bool,
}

/// All that are bound.
///
/// # Errors
/// Why nobody can tell which there are.
pub(crate) fn all(root: &Root) -> Known<Vec<Loop>> {
    let names = root.list("/sys/class/block").map_err(|why| format!("/sys/class/block: {why}"))?;
    Ok(names.iter().filter_map(|name| find_loop(root, name)).collect())
}

/// One of them, by its kernel name; `None` where it is none, or not bound.
pub(crate) fn find_loop(root: &Root, name: &str) -> Option<Loop> {
    let number = name.strip_prefix("loop")?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let dir = format!("/sys/class/block/{name}");
    let shown = root.has(&format!("{dir}/loop"));
    let status = status(root, name);
    // The directory is there as long as it is bound, unless something covers it. A device that is not bound has no bytes.
    let has_bytes = || root.word(&format!("{dir}/size")).is_some_and(|bytes| bytes != "0");
    if !shown && status.is_err() && !has_bytes() {
        return None;
    }
    let read_only = root.word(&format!("{dir}/ro")).is_some_and(|w| w == "1")
        || status.as_ref().is_ok_and(|status| status.read_only);
    let backing = status
        .map(|status| identity_behind(&status))
        .or_else(|why| by_name(root, name).map_err(|also| format!("{why}; {also}")));
    // Another process may have unbound it meanwhile.
    if backing.is_err() && shown && !root.has(&format!("{dir}/loop")) {
        return None;
    }
    Some(Loop { name: name.to_owned(), backing, beneath: beneath(root, name), read_only })
}

/// The files of an overlay's directories, or of one that a program mirrors, that hold what a loop device is over, as far as its name leads
/// there. Where it does not, a loop device that can be written has them open for writing.
fn beneath(root: &Root, name: &str) -> Vec<Identity> {
    let Ok(file) = root.read(&format!("/sys/class/block/{name}/loop/backing_file")) else {
        return Vec::new();
    };
    let path = root.path(file.trim_end_matches('\n'));
    let mut files = overlays::beneath(root, &path).unwrap_or_default();
    files.extend(overlays::mirrored(root, &path));
    files.iter().filter_map(|path| identity::of_path(path).ok()).collect()
}

impl Loop {
    /// Whether it is over this.
    pub(crate) fn is_over(&self, what: &Identity) -> bool {
        self.backing.as_ref().is_ok_and(|b| b.is_same(what)) || self.beneath.iter().any(|b| b.is_same(what))
    }
}

/// What is behind one of them, by its kernel name; `None` where it is none, or nobody can tell.
pub fn backing(root: &Root, name: &str) -> Option<Identity> {
    find_loop(root, name)?.backing.ok()
}

/// Returns the identity of a loop device's backing file or device, and the first byte of it that is used.
pub(crate) fn behind(root: &Root, name: &str) -> Known<(Identity, u64)> {
    status(root, name).map(|status| (identity_behind(&status), status.offset_bytes))
}

/// Asks a loop device for its backing file or device. A copy of another machine cannot be asked.
///
/// # Errors
/// Why the device cannot be opened, or does not answer.
pub(crate) fn status(root: &Root, name: &str) -> Known<LoopStatus> {
    let path = root.path(&format!("/dev/{name}"));
    let at = |why: String| format!("{}: {why}", model::name::shown(&path));
    let mut options = File::options();
    let file = options.read(true).custom_flags(O_NONBLOCK).open(&path).map_err(|e| at(describe(&e)))?;
    if !file.metadata().is_ok_and(|f| f.file_type().is_block_device()) {
        return Err(at("no block device".into()));
    }
    sys::ioctl::loop_status(&file).map_err(|e| at(describe(&e)))
}

/// The file or block device that a loop device named.
pub(crate) fn identity_behind(status: &LoopStatus) -> Identity {
    if status.backing_device == 0 {
        identity::of_numbers(status.device, status.inode)
    } else {
        identity::of_device(number_of(status.backing_device))
    }
}

/// What has the name that the file had when the device was bound, if anything here has.
fn by_name(root: &Root, name: &str) -> Known<Identity> {
    let file = root.read(&format!("/sys/class/block/{name}/loop/backing_file"))?;
    identity::of_name(root, file.trim_end_matches('\n'))
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
    let loops = all(&root).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = loops.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["loop0", "loop1", "loop3"]);
    assert!(loops[2].backing.is_err());
    assert_eq!(loops[0].backing.as_ref().ok(), identity::of_path(&root.path("/images/a")).ok().as_ref());
    assert!(loops[1].read_only && loops[1].backing.as_ref().is_err_and(|why| why.contains("(deleted)")));
    assert!(all(&Root::at("/nonexistent-prefix".into())).is_err());
}
