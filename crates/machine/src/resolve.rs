//! Resolving a target: from a path to its file system, its devices, and how direct I/O works there.
//!
//! For: the whole chain, as data. Not for: what may be done to it (`safety`).

use crate::error::MachineError;
use crate::mountinfo::{self, Mount};
use crate::root::Root;
use crate::stack;
use model::machine::{DirectIo, FileSystem, Place};
use rustix::fs::{AtFlags, CWD, StatxFlags};
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use sys::ioctl::{self, attribute};

/// File systems that are memory.
const MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];

/// Finds where a path lives.
///
/// # Errors
/// Where the path cannot be looked at.
pub fn resolve(root: &Root, path: &Path) -> Result<Place, MachineError> {
    let facts = std::fs::metadata(path)
        .map_err(|e| MachineError::refused(format!("{} cannot be looked at: {e}", path.display())))?;
    let mut place = Place { path: path.display().to_string(), ..Place::default() };
    place.direct = direct_io_of_path(path);
    if facts.file_type().is_block_device() {
        let top = stack::add(root, &mut place, &number(facts.rdev()));
        place.tops.extend(top);
        if top.is_none() {
            place.blind.get_or_insert_with(|| format!("/sys does not know the device {}", path.display()));
        }
        return Ok(place);
    }
    let mount = mount_of(root, path)?;
    place.file_system = Some(FileSystem {
        kind: mount.kind.clone(),
        source: mount.source.clone(),
        mount_point: mount.point.clone(),
        options: join_options(&mount),
        attributes: attributes(path),
    });
    add_devices_of(root, &mut place, path, &mount);
    Ok(place)
}

/// What is known only of an open file: how direct I/O works, and its attributes. For test files, whose directory says less.
pub fn look_at_file(place: &mut Place, file: &File) {
    place.direct = statx(file, Path::new(""), AtFlags::EMPTY_PATH);
    if let Some(fs) = &mut place.file_system {
        fs.attributes = ioctl::attributes(file).map(attribute_words).unwrap_or_default();
    }
}

/// The mount that a path is on.
pub(crate) fn mount_of(root: &Root, path: &Path) -> Result<Mount, MachineError> {
    let refused =
        |why: String| MachineError::refused(format!("{}: its mount cannot be found: {why}", path.display()));
    let mounts = mountinfo::parse(&root.read("/proc/self/mountinfo").map_err(refused)?);
    let asked = StatxFlags::MNT_ID | StatxFlags::BASIC_STATS;
    let id = rustix::fs::statx(CWD, path, AtFlags::empty(), asked).ok();
    let id = id.filter(|s| s.stx_mask & StatxFlags::MNT_ID.bits() != 0).map(|s| s.stx_mnt_id);
    if let Some(mount) = id.and_then(|id| mounts.iter().find(|m| m.id == id)) {
        return Ok(mount.clone());
    }
    // Before kernel 5.8 statx does not tell: the longest mount point that the path begins with, the last mounted first.
    let real = path.canonicalize().map_err(|e| refused(e.to_string()))?;
    let over = mounts.into_iter().rev().filter(|m| real.starts_with(&m.point));
    over.max_by_key(|m| m.point.len()).ok_or_else(|| refused("no mount in /proc/self/mountinfo fits".into()))
}

/// Adds the devices below a mount to a place.
pub(crate) fn add_devices_of(root: &Root, place: &mut Place, path: &Path, mount: &Mount) {
    let kind = mount.kind.as_str();
    if MEMORY.contains(&kind) {
        place.ram.get_or_insert_with(|| kind.to_owned());
        return;
    }
    let numbers = match kind {
        "overlay" => return below_overlay(root, place, mount),
        "btrfs" => btrfs_devices(root, mount),
        _ => device_numbers(path, mount),
    };
    for number in &numbers {
        let top = stack::add(root, place, number);
        place.tops.extend(top);
    }
    if place.tops.is_empty() {
        let what = match kind {
            k if k.starts_with("fuse") => {
                "a program answers (FUSE), and what it does with the data cannot be seen"
            }
            "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "virtiofs" | "ceph" | "lustre" => {
                "another machine answers, and its devices cannot be seen"
            }
            _ => "no block device is known below",
        };
        place.blind.get_or_insert_with(|| format!("{kind}: {what}"));
    }
}

/// The device of `st_dev`, or that of the mount's source where the file system hides it behind an anonymous number.
fn device_numbers(path: &Path, mount: &Mount) -> Vec<String> {
    let seen = std::fs::metadata(path).map(|m| number(m.dev())).unwrap_or_default();
    let source = std::fs::metadata(&mount.source)
        .ok()
        .filter(|m| m.file_type().is_block_device())
        .map(|m| number(m.rdev()));
    let named = [Some(seen), Some(mount.number.clone()), source].into_iter().flatten();
    named.filter(|n| !n.is_empty() && !n.starts_with("0:")).take(1).collect()
}

/// btrfs shows an anonymous number; its devices are in `/sys/fs/btrfs`.
fn btrfs_devices(root: &Root, mount: &Mount) -> Vec<String> {
    let Ok(source) = std::fs::metadata(&mount.source) else { return Vec::new() };
    let source = number(source.rdev());
    for id in root.list("/sys/fs/btrfs") {
        let dir = format!("/sys/fs/btrfs/{id}/devices");
        let numbers: Vec<String> =
            root.list(&dir).iter().filter_map(|d| root.word(format!("{dir}/{d}/dev"))).collect();
        if numbers.contains(&source) {
            return numbers;
        }
    }
    vec![source]
}

/// Data of an overlay are on the file system of its upper directory (or of the lowers, where it is read only).
fn below_overlay(root: &Root, place: &mut Place, mount: &Mount) {
    let lower = || mount.super_option("lowerdir").and_then(|l| l.split(':').next());
    let dir = mount.super_option("upperdir").or_else(lower).map(Path::new);
    match dir.and_then(|d| Some((d, mount_of(root, d).ok()?))) {
        Some((dir, under)) if under.kind != "overlay" => add_devices_of(root, place, dir, &under),
        // Inside a container the directories of its overlay have no path; st_dev of a file is often the real one.
        _ => {
            let numbers = device_numbers(Path::new(&place.path.clone()), mount);
            for number in &numbers {
                let top = stack::add(root, place, number);
                place.tops.extend(top);
            }
            if place.tops.is_empty() {
                place.blind.get_or_insert_with(|| {
                    "overlay: its directories are not visible from here (a container)".into()
                });
            }
        }
    }
}

fn join_options(mount: &Mount) -> String {
    let mut words: Vec<&str> = mount.options.split(',').collect();
    words.extend(mount.super_options.split(',').filter(|w| !mount.options.split(',').any(|o| o == *w)));
    words.join(",")
}

fn attributes(path: &Path) -> Vec<String> {
    let flags = File::open(path).and_then(|f| ioctl::attributes(&f));
    flags.map(attribute_words).unwrap_or_default()
}

fn attribute_words(flags: u32) -> Vec<String> {
    let words = [
        (attribute::JOURNAL_DATA, "journal_data"),
        (attribute::COMPRESSED, "compressed"),
        (attribute::ENCRYPTED, "encrypted"),
        (attribute::NOCOW, "nocow"),
    ];
    words.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, word)| word.to_owned()).collect()
}

fn direct_io_of_path(path: &Path) -> Option<DirectIo> {
    statx(CWD, path, AtFlags::empty())
}

/// `None` where the file system does not say; both alignments zero where it says that there is no direct I/O.
fn statx(at: impl std::os::fd::AsFd, path: &Path, flags: AtFlags) -> Option<DirectIo> {
    let facts = rustix::fs::statx(at, path, flags, StatxFlags::DIOALIGN).ok()?;
    let said = facts.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    said.then_some(DirectIo {
        memory_align: facts.stx_dio_mem_align,
        offset_align: facts.stx_dio_offset_align,
    })
}

/// A device number as `/sys` writes it.
pub(crate) fn number(dev: u64) -> String {
    format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev))
}

#[test]
fn the_temporary_directory_and_shared_memory_are_resolved() {
    let root = Root::real();
    let place = resolve(&root, Path::new("/dev/shm")).unwrap_or_default();
    if place.kind() == "tmpfs" {
        assert_eq!(place.ram.as_deref(), Some("tmpfs"));
    }
    let place = resolve(&root, &std::env::temp_dir()).unwrap_or_default();
    assert!(place.ram.is_some() || place.blind.is_some() || !place.tops.is_empty(), "{place:?}");
    assert!(resolve(&root, Path::new("/nonexistent")).is_err());
}
