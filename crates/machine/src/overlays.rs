//! Overlays: which file of which directory holds the bytes of a name in one; and what programs show that mirror a directory.
//!
//! An overlay, or a file system in user space, gives a file a device number of its own, so one file has two identities. `stack` follows
//! `data_path` to the device; `in_use` asks for [`beneath`].

use crate::error::describe;
use crate::mountinfo::{self, Mount};
use crate::root::Root;
use crate::{file_status, identity};
use model::Known;
use model::evidence::SECTOR_BYTES;
use model::machine::Identity;
use rustix::fs::statfs;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
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
    file_status::by_path(path).ok()?.mount_id
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

/// The path outside of an overlay that holds the data of a path inside of it. For a regular file that is the file of that name in the highest
/// directory; once it was opened for writing, the overlay has copied it to the upper one. For a directory it is the upper directory, since
/// new files are made there whichever layer shows the directory.
///
/// # Errors
/// Why that path cannot be seen, or that the file there may not be the one that the overlay shows.
pub(crate) fn data_path(root: &Root, mount: &Mount, path: &Path) -> Known<PathBuf> {
    let upper = directories(&mount.super_options).into_iter().next().filter(|_| has_upper(mount));
    let upper = upper.filter(|dir| dir.starts_with('/')).map(|dir| root.path(&dir));
    if !path.is_file()
        && let Some(upper) = &upper
    {
        let is_outside = upper.exists() && mount_id(upper) != Some(mount.id);
        return if is_outside { Ok(upper.clone()) } else { Err(hidden(mount)) };
    }
    let there = behind(root, mount, path).ok_or_else(|| hidden(mount))?;
    if let (Ok(shown), Ok(found)) = (path.metadata(), there.metadata())
        && shown.is_file()
    {
        let in_upper = upper.is_some_and(|upper| there.starts_with(upper));
        doubt(root, mount, &shown, &found, in_upper).map_or(Ok(()), Err)?;
    }
    Ok(there)
}

/// Why a file of an overlay's directories may not hold the data of the file that the overlay shows under that name.
fn doubt(root: &Root, mount: &Mount, shown: &Metadata, found: &Metadata, in_upper: bool) -> Option<String> {
    let facts = |of: &Metadata| (of.len(), of.mtime(), of.mtime_nsec());
    if facts(shown) != facts(found) {
        return Some(
            "overlay: the file of that name in its directories has another size or time, so it is another file (a directory above it \
             was renamed), or it is being written"
                .into(),
        );
    }
    if is_on(root, mount, "metacopy") && found.blocks() * SECTOR_BYTES < found.len() {
        return Some(
            "overlay: with metacopy a file may have its attributes in one directory and its data in another"
                .into(),
        );
    }
    if is_on(root, mount, "index") && !in_upper && found.nlink() > 1 {
        return Some(
            "overlay: with index a file of several names may have been copied to the upper directory under another name".into(),
        );
    }
    None
}

/// Whether an option of an overlay is on, by the mount or by the module's default, which the mount does not show.
fn is_on(root: &Root, mount: &Mount, option: &str) -> bool {
    let typed =
        mount.super_options.split(',').filter_map(|o| o.split_once('=')).find(|(key, _)| *key == option);
    match typed {
        Some((_, value)) => value == "on",
        None => root.word(&format!("/sys/module/overlay/parameters/{option}")).as_deref() == Some("Y"),
    }
}

/// Whether anything can be written to an overlay.
fn has_upper(mount: &Mount) -> bool {
    mount.super_options.split(',').any(|o| o.starts_with("upperdir="))
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

#[test]
fn new_files_of_an_overlay_are_on_the_upper_directory_and_doubtful_files_are_nowhere() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let root = Root::at(dir.path().to_owned());
    let at = |name: &str| dir.path().join(name);
    for name in ["lower/sub/file", "other"] {
        crate::fixture::put(dir.path(), name, "x");
    }
    std::fs::create_dir_all(at("upper")).unwrap_or_else(|e| panic!("{e}"));
    // The merged directory is that of the lower one here; nothing is mounted.
    let mount = |options: &str| {
        let point = at("lower").display().to_string();
        mountinfo::parse(&format!("1 0 0:40 / {point} rw - overlay o {options}")).remove(0)
    };
    let usual = mount("rw,lowerdir=/lower,upperdir=/upper,workdir=/w");
    assert_eq!(
        data_path(&root, &usual, &at("lower/sub")),
        Ok(at("upper")),
        "the directory is in no upper one"
    );
    assert_eq!(data_path(&root, &usual, &at("lower/sub/file")), Ok(at("lower/sub/file")));
    let readable = mount("ro,lowerdir=/lower:/second");
    assert_eq!(data_path(&root, &readable, &at("lower/sub")), Ok(at("lower/sub")));
    let hidden = mount("rw,lowerdir=/lower,upperdir=/elsewhere,workdir=/w");
    assert!(data_path(&root, &hidden, &at("lower/sub")).is_err_and(|why| why.contains("container")));

    // A file of several names, one whose data are elsewhere, and another one of that name.
    let facts = |name: &str| at(name).metadata().unwrap_or_else(|e| panic!("{e}"));
    std::fs::hard_link(at("lower/sub/file"), at("link")).unwrap_or_else(|e| panic!("{e}"));
    let (two_names, index) = (facts("link"), mount("rw,lowerdir=/lower,upperdir=/upper,index=on"));
    assert!(doubt(&root, &index, &two_names, &two_names, false).is_some_and(|why| why.contains("index")));
    assert_eq!(doubt(&root, &index, &two_names, &two_names, true), None);
    assert_eq!(doubt(&root, &usual, &two_names, &two_names, false), None);
    let file = std::fs::File::create(at("sparse")).unwrap_or_else(|e| panic!("{e}"));
    file.set_len(1 << 20).unwrap_or_else(|e| panic!("{e}"));
    crate::fixture::put(dir.path(), "sys/module/overlay/parameters/metacopy", "Y\n");
    let sparse = facts("sparse");
    assert!(doubt(&root, &usual, &sparse, &sparse, true).is_some_and(|why| why.contains("metacopy")));
    let off = mount("rw,lowerdir=/lower,upperdir=/upper,metacopy=off");
    assert_eq!(doubt(&root, &off, &sparse, &sparse, true), None);
    assert!(
        doubt(&root, &off, &sparse, &facts("other"), true).is_some_and(|why| why.contains("another file"))
    );
}
