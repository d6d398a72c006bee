//! Where a path really is: path -> mount -> file system -> top devices -> block stack.
//!
//! For: the [`Place`] of a target. Not for: whether that place may be written, nor what it means for a number.
//! Device numbers of btrfs, overlay and FUSE are anonymous (`0:N`), so these go by way of mountinfo and `/sys/fs`.

use crate::error::MachineError;
use crate::file_status::{self, FileStatus};
use crate::mountinfo::{self, Mount, mount_of};
use crate::root::Root;
use crate::stack::file_system::{Below, below_file_system};
use crate::stack::{self, Stack};
use model::machine::{FileSystem, Place};
use rustix::fs::{FileType, IFlags, Mode, OFlags, StatxAttributes};
use std::fs::File;
use std::path::Path;

/// Resolves a path.
///
/// # Errors
/// Where it cannot be looked at. What cannot be followed further down is said in the place itself.
pub fn resolve(root: &Root, path: &Path) -> Result<Place, MachineError> {
    let status = file_status::by_path(path).map_err(|e| MachineError::at(path, "looked at", &e))?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = matches!(status.kind, FileType::RegularFile | FileType::Directory)
        .then(|| rustix::fs::open(path, flags, Mode::empty()).ok())
        .flatten();
    Ok(place_of(root, path, &status, file.map(File::from).as_ref()))
}

/// Resolves a block device by its kernel name, whether it has a node or not; `None` where there is none of that name.
pub fn resolve_device(root: &Root, name: &str) -> Option<Place> {
    // A name in `/sys` is no path.
    let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    let number = stack::number_of(root, name).filter(|_| is_name)?;
    let mounts = mountinfo::read(root).unwrap_or_default();
    Some(place_of_device(root, &mounts, Path::new(&format!("/dev/{name}")), &number))
}

/// Resolves an open file, which may have no name; `path` is what the place is called and where its mount is looked for.
///
/// # Errors
/// Where it cannot be looked at.
pub fn resolve_open(root: &Root, file: &File, path: &Path) -> Result<Place, MachineError> {
    let status = file_status::by_file(file).map_err(|e| MachineError::at(path, "looked at", &e))?;
    Ok(place_of(root, path, &status, Some(file)))
}

fn place_of(root: &Root, path: &Path, status: &FileStatus, file: Option<&File>) -> Place {
    let mounts = mountinfo::read(root);
    let unreadable = mounts.as_ref().err().map(|why| format!("/proc/self/mountinfo: {why}"));
    let unnamed = || Some("/proc/self/mountinfo does not name the file system that it is in".to_owned());
    let mounts = mounts.unwrap_or_default();
    let direct = status.direct;
    if status.kind == FileType::BlockDevice {
        return Place { direct, ..place_of_device(root, &mounts, path, &status.node_number) };
    }
    let number = &status.file_system_number;
    let shown = path.to_string_lossy();
    let mount = mount_of(&mounts, status.mount_id, number, &shown);
    let mut stack = Stack::new(root, &mounts);
    let found = below_file_system(&mut stack, mount, number, Some(path));
    let file_system = mount.map(|m| FileSystem {
        kind: m.kind.clone(),
        source: m.source.clone(),
        mount_point: m.point.clone(),
        options: m.options.clone(),
        attributes: attributes(status.attributes, file),
        root: m.root.clone(),
    });
    let mut place = finish(stack, path, found);
    place.blind = place.blind.or(unreadable).or_else(|| unnamed().filter(|_| mount.is_none()));
    Place { file_system, direct, ..place }
}

/// The place of a block device that is itself the target.
pub(crate) fn place_of_device(root: &Root, mounts: &[Mount], path: &Path, number: &str) -> Place {
    let mut stack = Stack::new(root, mounts);
    let tops = stack.add(number).into_iter().collect();
    finish(stack, path, Below { tops, ..Below::default() })
}

fn finish(stack: Stack<'_>, path: &Path, found: Below) -> Place {
    let ram = found.ram.or_else(|| stack.memory());
    let blind: Vec<String> = found.blind.into_iter().chain(stack.blind.iter().cloned()).collect();
    let (layers, tops) = stack.into_order(&found.tops);
    Place {
        path: model::name::text(path),
        file_system: None,
        layers,
        tops,
        direct: None,
        ram,
        blind: (!blind.is_empty()).then(|| blind.join("; ")),
    }
}

/// Attributes that change how the data are stored, from statx and from the inode's flags.
fn attributes(known: StatxAttributes, file: Option<&File>) -> Vec<String> {
    let flags = file.and_then(|f| rustix::fs::ioctl_getflags(f).ok()).unwrap_or(IFlags::empty());
    let has = |a: StatxAttributes| known.contains(a);
    let all = [
        ("journal_data", flags.contains(IFlags::JOURNALING)),
        ("nocow", flags.contains(IFlags::NOCOW)),
        ("compressed", flags.contains(IFlags::COMPRESSED) || has(StatxAttributes::COMPRESSED)),
        ("encrypted", has(StatxAttributes::ENCRYPTED)),
        ("verity", has(StatxAttributes::VERITY)),
        ("dax", has(StatxAttributes::DAX)),
    ];
    all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn this_directory_has_a_place() -> Result<(), MachineError> {
    let place = resolve(&Root::real(), Path::new("."))?;
    println!("{}", place.chain());
    assert!(place.file_system.is_some());
    assert!(!place.layers.is_empty() || place.ram.is_some() || place.blind.is_some());
    Ok(())
}
