//! Overlays: which file of which directory holds the bytes of a name in one; and what programs show that mirror a directory.
//!
//! For: one file under two identities, since an overlay, or a file system in user space, gives it a device number of its own. Not for: which
//! device that file is on (`stack`), nor who uses it (`in_use`).

use crate::error::describe;
use crate::identity;
use crate::mountinfo::{self, Mount};
use crate::root::Root;
use model::Known;
use model::identity::Identity;
use rustix::fs::{AtFlags, CWD, StatxFlags, statfs, statx};
use std::path::{Path, PathBuf};

/// Overlays on overlays; deeper ones are not followed.
pub(crate) const MOST: usize = 8;
/// `OVERLAYFS_SUPER_MAGIC`, `FUSE_SUPER_MAGIC` and `ECRYPTFS_SUPER_MAGIC` (`include/uapi/linux/magic.h`).
const MAGIC: u64 = 0x794c_7630;
const OF_PROGRAMS: u64 = 0x6573_5546;
const ENCRYPTING: u64 = 0xf15f;

/// The files that hold the bytes of a name, from the next one down; none where it is in no overlay.
///
/// # Errors
/// Why they cannot be seen, where it is in one.
pub fn beneath(root: &Root, path: &Path) -> Known<Vec<PathBuf>> {
    let mut all = Vec::new();
    // What is open has its name behind a link.
    let mut at = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    while magic(&at)? == MAGIC {
        if all.len() == MOST {
            return Err("overlays on overlays, too many to follow".into());
        }
        let id = mount_id(&at).ok_or("the kernel does not say in which mount it is")?;
        let mounts = mountinfo::read(root).map_err(|why| format!("/proc/self/mountinfo: {why}"))?;
        let mount = mounts.iter().find(|m| m.id == id).ok_or("its mount is not seen from here")?;
        at = behind(root, mount, &at).ok_or_else(|| hidden(mount))?;
        all.push(at.clone());
    }
    Ok(all)
}

/// What a path leads to, and where an overlay shows it also what holds its bytes: two paths that have one of these in common are one file.
pub fn identities(root: &Root, path: &Path) -> Vec<Identity> {
    let beneath = beneath(root, path).unwrap_or_default();
    std::iter::once(path.to_owned()).chain(beneath).filter_map(|path| identity::of_path(&path).ok()).collect()
}

/// Why the directories of an overlay are not found.
pub(crate) fn hidden(mount: &Mount) -> String {
    let dirs = directories(&mount.super_options);
    if dirs.iter().any(|dir| !dir.starts_with('/')) {
        return "overlay: it was mounted with relative names of its directories, which lead nowhere from here".into();
    }
    "overlay: its directories cannot be seen from here (this is a container)".into()
}

/// The file of the same name in the directory that a file system in user space, or an encrypting one, is mounted of: in all likelihood what
/// is used there is used here. `None` where there is no such file, as behind sshfs; what such a program does with it nobody can see.
pub(crate) fn mirrored(root: &Root, path: &Path) -> Option<PathBuf> {
    let at = path.canonicalize().ok()?;
    if !matches!(magic(&at), Ok(OF_PROGRAMS | ENCRYPTING)) {
        return None;
    }
    let id = mount_id(&at)?;
    let mounts = mountinfo::read(root).ok()?;
    let mount = mounts.iter().find(|m| m.id == id)?;
    in_one_of(root, mount, &at, vec![mount.source.clone()])
}

fn magic(path: &Path) -> Known<u64> {
    let facts = statfs(path).map_err(|e| describe(&e.into()))?;
    Ok(facts.f_type as u64 & 0xffff_ffff)
}

fn mount_id(path: &Path) -> Option<u64> {
    let facts = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    Some(facts.stx_mnt_id)
}

/// The first of an overlay's directories that has a path of it, the upper one before the lower ones. `None` where none can be seen: in a
/// container the names lead back into the overlay itself.
pub(crate) fn behind(root: &Root, mount: &Mount, path: &Path) -> Option<PathBuf> {
    in_one_of(root, mount, path, directories(&mount.super_options))
}

fn in_one_of(root: &Root, mount: &Mount, path: &Path, directories: Vec<String>) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    let inside = whole.strip_prefix(&mount.point).ok()?;
    // Of a directory that is mounted by itself the rest of the way is the mount's.
    let inside = Path::new(mount.root.trim_start_matches('/')).join(inside);
    let there = directories.into_iter().filter(|dir| dir.starts_with('/'));
    let there = there.map(|dir| root.path(&dir).join(&inside)).find(|path| path.exists())?;
    (mount_id(&there) != Some(mount.id)).then_some(there)
}

/// Upper directory first, then the lower ones from the top.
pub(crate) fn directories(options: &str) -> Vec<String> {
    let mut upper = Vec::new();
    let mut lower = Vec::new();
    for (key, value) in options.split(',').filter_map(|o| o.split_once('=')) {
        match key {
            "upperdir" => upper.push(value.to_owned()),
            "lowerdir" | "lowerdir+" => lower.extend(value.split(':').map(str::to_owned)),
            _ => {}
        }
    }
    upper.extend(lower);
    upper
}

#[test]
fn overlays_name_their_directories_from_the_top() {
    let options = "rw,lowerdir=/c:/b:/a,upperdir=/up,workdir=/work";
    assert_eq!(directories(options), ["/up", "/c", "/b", "/a"]);
    assert_eq!(directories("ro,lowerdir+=/x,lowerdir+=/y"), ["/x", "/y"]);
}

#[test]
fn the_file_behind_a_name_is_the_one_of_the_highest_directory_that_has_it() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let root = Root::at(dir.path().to_owned());
    crate::fixture::put(dir.path(), "lower/sub/both", "x");
    crate::fixture::put(dir.path(), "lower/sub/low", "x");
    crate::fixture::put(dir.path(), "upper/sub/both", "x");
    let mounts = mountinfo::parse(
        "1 0 0:40 / /m rw - overlay o rw,lowerdir=/lower,upperdir=/upper\n\
         2 0 0:40 /sub /bound rw - overlay o rw,lowerdir=/lower,upperdir=/upper\n\
         3 0 0:41 / /r rw - overlay o rw,lowerdir=lower\n",
    );
    let of = |at: usize, path: &str| behind(&root, &mounts[at], Path::new(path));
    let is = |path: &str| Some(dir.path().join(path));
    assert_eq!(of(0, "/m/sub/both"), is("upper/sub/both"));
    assert_eq!(of(0, "/m/sub/low"), is("lower/sub/low"));
    assert_eq!(of(1, "/bound/both"), is("upper/sub/both"));
    assert_eq!((of(0, "/m/none"), of(0, "/elsewhere"), of(2, "/r/sub/low")), (None, None, None));
    assert!(hidden(&mounts[2]).contains("relative") && hidden(&mounts[0]).contains("container"));
    assert_eq!(beneath(&root, dir.path()), Ok(Vec::new()), "in no overlay");
}
