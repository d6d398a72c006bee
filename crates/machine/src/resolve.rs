//! Where a path is stored: path -> mount -> file system -> top devices -> block stack.
//!
//! 1. [`resolve`] finds the mount of a path by its mount id or device number.
//! 2. The file system leads to its devices. Device numbers of btrfs, overlay and FUSE are anonymous (`0:N`), so the devices of these file
//!    systems are found through mountinfo and `/sys/fs`.
//! 3. `Stack` follows the devices down.
//!
//! [`OnDevices`] answers the reverse question for many files: is this open file on one of these devices?

use crate::error::MachineError;
use crate::file_systems::{Mount, mount_of};
use crate::identity::FileStatus;
use crate::root::Root;
use crate::stack::{Below, Stack, below_file_system};
use crate::{file_systems, identity, stack};
use model::machine::{FileSystem, Layer, Place};
use rustix::fs::{FileType, IFlags, Mode, OFlags, StatxAttributes};
use std::fs::File;
use std::path::Path;

/// Finds the file system and the block devices that store a path.
///
/// # Errors
/// If the status of the path cannot be read. [`Place::unresolved_reason`] has the reason if a device could not be
/// followed.
pub fn resolve(root: &Root, path: &Path) -> Result<Place, MachineError> {
    resolve_another(root, path, &[])
}

/// Resolves a path as [`resolve`] does, but does not read the devices of the known places again. Reading takes 2 ms
/// for each device.
///
/// # Errors
///
/// As [`resolve`].
pub fn resolve_another(root: &Root, path: &Path, known: &[Place]) -> Result<Place, MachineError> {
    let status = identity::status_by_path(path).map_err(|e| MachineError::at(path, "accessed", &e))?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = matches!(status.kind, FileType::RegularFile | FileType::Directory)
        .then(|| rustix::fs::open(path, flags, Mode::empty()).ok())
        .flatten();
    Ok(place_of(root, path, &status, file.map(File::from).as_ref(), known))
}

/// Finds the block stack of a device by its kernel name. The device needs no node in `/dev`. `None` if there is no such device.
pub fn resolve_device(root: &Root, name: &str) -> Option<Place> {
    // Only a name counts here: a path would lead elsewhere in `/sys`.
    let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    let number = stack::number_of(root, name).filter(|_| is_name)?;
    let mounts = file_systems::read(root).unwrap_or_default();
    Some(place_of_device(root, &mounts, Path::new(&format!("/dev/{name}")), &number))
}

/// Resolves an open file, which may have no name. `path` is a path in the same directory, which determines the mount.
///
/// # Errors
///
/// If the status of the file cannot be read.
pub fn resolve_open(root: &Root, file: &File, path: &Path) -> Result<Place, MachineError> {
    let status = identity::status_by_file(file).map_err(|e| MachineError::at(path, "accessed", &e))?;
    Ok(place_of(root, path, &status, Some(file), &[]))
}

fn place_of(root: &Root, path: &Path, status: &FileStatus, file: Option<&File>, known: &[Place]) -> Place {
    let mounts = file_systems::read(root);
    let unreadable = mounts.as_ref().err().map(|why| format!("/proc/self/mountinfo: {why}"));
    let unnamed = || Some("/proc/self/mountinfo does not name the file system of the target".to_owned());
    let mounts = mounts.unwrap_or_default();
    let direct = status.direct;
    if status.kind == FileType::BlockDevice {
        return Place { direct, ..place_of_device(root, &mounts, path, &status.node_number) };
    }
    let number = &status.file_system_number;
    let shown = path.to_string_lossy();
    let mount = mount_of(&mounts, status.mount_id, number, &shown);
    let mut stack = Stack { known, ..Stack::new(root, &mounts) };
    let found = below_file_system(&mut stack, mount, number, Some(path));
    let file_system = mount.map(|m| FileSystem {
        kind: m.kind.clone(),
        source: m.source.clone(),
        mount_point: m.point.clone(),
        options: m.options.clone(),
        attributes: attributes(status.attributes, file),
        root: m.root.clone(),
    });
    let mut place = to_place(stack, path, found);
    place.unresolved_reason =
        place.unresolved_reason.or(unreadable).or_else(|| unnamed().filter(|_| mount.is_none()));
    Place { file_system, direct, ..place }
}

/// Returns the place of a block device that is the target itself.
pub(crate) fn place_of_device(root: &Root, mounts: &[Mount], path: &Path, number: &str) -> Place {
    let mut stack = Stack::new(root, mounts);
    let tops = stack.add(number).into_iter().collect();
    to_place(stack, path, Below { tops, ..Below::default() })
}

fn to_place(stack: Stack<'_>, path: &Path, found: Below) -> Place {
    let ram = found.ram.or_else(|| stack.memory_of_all_data());
    let unresolved_reasons: Vec<String> =
        found.unresolved_reason.into_iter().chain(stack.unresolved_reasons.iter().cloned()).collect();
    let (layers, tops) = stack.into_order(&found.tops);
    Place {
        path: model::name::text(path),
        file_system: None,
        layers,
        tops,
        direct: None,
        ram,
        unresolved_reason: (!unresolved_reasons.is_empty()).then(|| unresolved_reasons.join("; ")),
    }
}

/// Returns the attributes that change how data is stored, from statx and from the inode's flags.
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
    all.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned()).collect()
}

/// The mounts of this process.
const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Block devices, and the mounts that have their files on them.
#[derive(Clone, Debug, Default)]
pub struct OnDevices {
    /// `major:minor` of the devices.
    devices: Vec<String>,
    /// Text of [`MOUNTINFO`] from which `mounts` was made.
    text: String,
    /// The mounts on these devices: the `major:minor` of their files, and the mount id in this
    /// namespace.
    mounts: Vec<(String, u64)>,
}

impl OnDevices {
    /// Finds the mounts that are on these devices.
    pub fn new(root: &Root, devices: Vec<String>) -> Self {
        let mut on_devices = Self { devices, ..Self::default() };
        on_devices.follow(root.read(MOUNTINFO).unwrap_or_default(), root);
        on_devices
    }

    /// Finds the mounts again if the mounts of this process or the devices have changed.
    pub fn renew(&mut self, root: &Root, devices: &[String]) {
        let text = root.read(MOUNTINFO).unwrap_or_default();
        if text != self.text || devices != self.devices {
            devices.clone_into(&mut self.devices);
            self.follow(text, root);
        }
    }

    /// Returns whether one of the devices has this number.
    pub(crate) fn is_device(&self, number: &str) -> bool {
        self.devices.iter().any(|d| d == number)
    }

    /// Returns whether a file is on one of the devices. `number` is the `major:minor` of the file's
    /// file system, and `mount` the id of the mount through which the file was opened. A match of
    /// either is enough.
    pub(crate) fn contains_file(&self, number: &str, mount: Option<u64>) -> bool {
        self.mounts.iter().any(|(n, id)| n == number || Some(*id) == mount)
    }

    fn follow(&mut self, text: String, root: &Root) {
        let all = file_systems::parse(&text);
        self.text = text;
        // One stack for all mounts, so that each device is read only once.
        let mut stack = Stack::new(root, &all);
        let mut below: Vec<(&Mount, Vec<usize>)> = Vec::new();
        for mount in &all {
            let found =
                below_file_system(&mut stack, Some(mount), &mount.number, Some(Path::new(&mount.point)));
            below.push((mount, found.tops));
        }
        let reaches = |tops: &[usize]| any_reaches(&stack.layers, tops, &self.devices);
        let held = below.into_iter().filter(|(_, tops)| reaches(tops));
        self.mounts = held.map(|(mount, _)| (mount.number.clone(), mount.id)).collect();
    }
}

/// Returns whether any of the layers `tops`, or a layer below them, is one of the devices.
fn any_reaches(layers: &[Layer], tops: &[usize], devices: &[String]) -> bool {
    let mut is_visited = vec![false; layers.len()];
    let mut open = tops.to_vec();
    while let Some(at) = open.pop() {
        let Some(layer) = layers.get(at).filter(|_| !is_visited[at]) else { continue };
        is_visited[at] = true;
        if devices.contains(&layer.number) {
            return true;
        }
        open.extend(&layer.below);
    }
    false
}

#[test]
fn this_directory_has_a_place() -> Result<(), MachineError> {
    let place = resolve(&Root::real(), Path::new("."))?;
    println!("{}", place.chain());
    assert!(place.file_system.is_some());
    assert!(!place.layers.is_empty() || place.ram.is_some() || place.unresolved_reason.is_some());
    Ok(())
}

#[test]
fn files_of_a_volume_are_on_the_disk_below_it_and_not_on_others() {
    use crate::fixture::{link, put};
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let put = |path: &str, text: &str| put(dir.path(), path, text);
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), ("dm-0", "253:0")] {
        put(&format!("sys/devices/virtual/block/{name}/dev"), number);
        link(dir.path(), &format!("../../devices/virtual/block/{name}"), &format!("sys/dev/block/{number}"));
        link(dir.path(), &format!("../../devices/virtual/block/{name}"), &format!("sys/class/block/{name}"));
    }
    put("sys/devices/virtual/block/dm-0/dm/name", "data");
    put("sys/devices/virtual/block/dm-0/slaves/sda", "");
    let mounts = "20 1 253:0 / /data rw - ext4 /dev/mapper/data rw\n\
                  21 1 8:16 / /other rw - ext4 /dev/sdb rw\n\
                  22 1 0:5 / /proc rw - proc proc rw\n";
    put("proc/self/mountinfo", mounts);
    let root = Root::at(dir.path().to_owned());
    let mut on_devices = OnDevices::new(&root, vec!["8:0".into()]);
    assert!(on_devices.contains_file("253:0", None) && on_devices.contains_file("0:99", Some(20)));
    assert!(!on_devices.contains_file("8:16", Some(21)) && !on_devices.contains_file("0:5", None));
    assert!(on_devices.is_device("8:0") && !on_devices.is_device("253:0"));
    put("proc/self/mountinfo", mounts.split_inclusive('\n').next().unwrap_or_default());
    on_devices.renew(&root, &["8:16".into()]);
    assert!(!on_devices.contains_file("8:16", None) && !on_devices.contains_file("253:0", None));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_systems;
    use crate::root::Root;

    #[test]
    fn memory_and_remote_file_systems_have_no_device() {
        let root = Root::at("/nonexistent-prefix".into());
        for (kind, ram) in
            [("tmpfs", true), ("fuse.sshfs", false), ("nfs4", false), ("9p", false), ("zfs", false)]
        {
            let mounts = file_systems::parse(&format!("1 0 0:40 / /m rw - {kind} somewhere rw"));
            let mut stack = Stack::new(&root, &mounts);
            let found = below_file_system(&mut stack, mounts.first(), "0:40", None);
            assert_eq!(
                (found.ram.is_some(), found.unresolved_reason.is_some(), found.tops.len()),
                (ram, !ram, 0),
                "{kind}"
            );
        }
    }
}
