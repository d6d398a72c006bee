//! Loop devices that are bound, each with what is behind it.
//!
//! For: the device and inode of a backing file, which hold over hard links, removed names and mount namespaces. Not for: whether
//! that matters to anybody (`in_use`, `marks`).

use crate::error::describe;
use crate::root::{Root, number_of};
use crate::{identity, overlays};
use model::Known;
use model::identity::Identity;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

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
    Ok(names.iter().filter_map(|name| of(root, name)).collect())
}

/// One of them, by its kernel name; `None` where it is none, or not bound.
pub(crate) fn of(root: &Root, name: &str) -> Option<Loop> {
    let dir = format!("/sys/class/block/{name}");
    // The directory is there as long as it is bound. That its name cannot be read is no reason to think that it is not.
    if !name.starts_with("loop") || !root.has(&format!("{dir}/loop")) {
        return None;
    }
    let read_only = root.word(&format!("{dir}/ro")).is_some_and(|w| w == "1");
    let backing = behind(root, name)
        .map(|(what, _)| what)
        .or_else(|why| by_name(root, name).map_err(|also| format!("{why}; {also}")));
    // What somebody unbound while it was asked has nothing behind it any more.
    if backing.is_err() && !root.has(&format!("{dir}/loop")) {
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
    of(root, name)?.backing.ok()
}

/// What the kernel says is behind a loop device, and the first byte of that which is used. A copy of another machine cannot be
/// asked.
pub(crate) fn behind(root: &Root, name: &str) -> Known<(Identity, u64)> {
    let path = root.path(&format!("/dev/{name}"));
    let at = |why: String| format!("{}: {why}", model::name::shown(&path));
    let mut options = File::options();
    let file = options.read(true).custom_flags(O_NONBLOCK).open(&path).map_err(|e| at(describe(&e)))?;
    if !file.metadata().is_ok_and(|f| f.file_type().is_block_device()) {
        return Err(at("no block device".into()));
    }
    let status = sys::ioctl::loop_status(&file).map_err(|e| at(describe(&e)))?;
    let what = if status.backing_device == 0 {
        identity::of_numbers(status.device, status.inode)
    } else {
        identity::of_device(number_of(status.backing_device))
    };
    Ok((what, status.offset_bytes))
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
    let loops = all(&root).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = loops.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["loop0", "loop1"]);
    assert_eq!(loops[0].backing.as_ref().ok(), identity::of_path(&root.path("/images/a")).ok().as_ref());
    assert!(loops[1].read_only && loops[1].backing.as_ref().is_err_and(|why| why.contains("(deleted)")));
    assert!(all(&Root::at("/nonexistent-prefix".into())).is_err());
}
