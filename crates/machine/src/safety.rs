//! Safety: what may be written, asked twice.
//!
//! For: refusing to destroy anything that somebody uses or has not named. Not for: reading, which harms nothing.
//! The plan asks `may_write_*` before anything is touched; `claim_device` asks again on the opened descriptor.

use crate::error::MachineError;
use crate::mountinfo;
use crate::resolve::{self, number};
use crate::root::Root;
use crate::signature;
use model::machine::Place;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Whether an existing file of the user's may be overwritten. `said` is the path as typed, `path` the same without links.
///
/// # Errors
/// A usage error where `destroy` does not name it; a refusal where it is in use or lies on a read-only mount.
pub fn may_write_file(
    root: &Root,
    said: &Path,
    path: &Path,
    destroy: Option<&str>,
) -> Result<(), MachineError> {
    let named = destroy.is_some_and(|d| Path::new(d) == said || Path::new(d) == path);
    if !named {
        return Err(MachineError::usage(format!(
            "{} exists, and writing would overwrite what is in it; type --destroy {} if it may, or name its directory, and \
             fathom makes a test file there",
            said.display(),
            said.display()
        )));
    }
    refuse_read_only(path)?;
    let swapped = swaps(root).iter().any(|s| Path::new(s) == path);
    if swapped {
        return Err(MachineError::refused(format!(
            "{} is swap space in use; swapoff would free it",
            path.display()
        )));
    }
    let under_loop = root.list("/sys/block").into_iter().find(|name| {
        root.word(format!("/sys/block/{name}/loop/backing_file")).is_some_and(|f| Path::new(&f) == path)
    });
    match under_loop {
        Some(device) => Err(MachineError::refused(format!(
            "{} is the backing file of /dev/{device}; losetup -d /dev/{device} would free it",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Whether a directory can take a test file at all, as far as its mount says.
///
/// # Errors
/// A refusal where the mount is read only.
pub fn refuse_read_only(path: &Path) -> Result<(), MachineError> {
    let read_only =
        rustix::fs::statvfs(path).is_ok_and(|s| s.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
    if read_only {
        return Err(MachineError::refused(format!(
            "{} lies on a read-only mount; name another place, or remount it with: mount -o remount,rw MOUNTPOINT",
            path.display()
        )));
    }
    Ok(())
}

/// Whether a block device may be overwritten.
///
/// # Errors
/// A usage error where `destroy` does not name it; a refusal where it is mounted, held, swapped on, or bears a signature.
pub fn may_write_device(root: &Root, path: &Path, destroy: Option<&str>) -> Result<(), MachineError> {
    let place = resolve::resolve(root, path)?;
    let names = names(&place, path);
    // What is in use is said first: no flag changes it.
    refuse_in_use(root, &place, path)?;
    let device = File::open(path).map_err(|e| cannot_open(path, &e))?;
    refuse_signature(&device, path)?;
    match destroy {
        Some(word) if names.iter().any(|n| n == word) => Ok(()),
        Some(word) => Err(MachineError::usage(format!(
            "--destroy {word} does not name {}; type one of: {}",
            path.display(),
            names.join(", ")
        ))),
        None => Err(MachineError::usage(format!(
            "writing to {} destroys what is on it; type --destroy {} if it may",
            path.display(),
            names.first().map_or("NAME", String::as_str)
        ))),
    }
}

/// Opens a device for this process alone, and looks again that nothing is on it. The claim lasts as long as the file.
///
/// # Errors
/// As [`may_write_device`], and where the kernel says that somebody else holds it.
pub fn claim_device(root: &Root, path: &Path) -> Result<File, MachineError> {
    let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
    let device = File::options().read(true).write(true).custom_flags(exclusive).open(path).map_err(|e| {
        if e.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) {
            MachineError::refused(format!(
                "{} is in use (mounted, or held by another program)",
                path.display()
            ))
        } else {
            cannot_open(path, &e)
        }
    })?;
    refuse_in_use(root, &resolve::resolve(root, path)?, path)?;
    refuse_signature(&device, path)?;
    Ok(device)
}

/// Opens a target for a worker. A device that is written must be claimed already.
///
/// # Errors
/// What the kernel answers.
pub fn open(path: &Path, write: bool, direct: bool, sync: bool) -> io::Result<File> {
    File::options().read(true).write(write).custom_flags(flags(direct, sync)).open(path)
}

/// Open flags beside the access mode.
pub(crate) fn flags(direct: bool, sync: bool) -> i32 {
    use rustix::fs::OFlags;
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, direct);
    flags.set(OFlags::DSYNC, sync);
    flags.bits() as i32
}

/// What a device may be called: serial, kernel name, paths.
fn names(place: &Place, path: &Path) -> Vec<String> {
    let top = place.tops.first().and_then(|t| place.layers.get(*t));
    let of_layer = top
        .into_iter()
        .flat_map(|l| [l.serial.clone(), Some(format!("/dev/{}", l.name)), Some(l.name.clone())]);
    let mut names: Vec<String> = of_layer.flatten().chain([path.display().to_string()]).collect();
    names.dedup();
    names
}

fn refuse_in_use(root: &Root, place: &Place, path: &Path) -> Result<(), MachineError> {
    let Some(top) = place.tops.first().and_then(|t| place.layers.get(*t)) else {
        let why = place.blind.as_deref().unwrap_or("no reason");
        return Err(MachineError::refused(format!(
            "{}: whether it is in use cannot be seen ({why})",
            path.display()
        )));
    };
    let refuse = |how: String| {
        Err(MachineError::refused(format!("{} is in use: {how}; nothing was written", path.display())))
    };
    // The device itself, its partitions, and where it is a partition the disk is somebody's too but other partitions are not.
    let dir = format!("/sys/dev/block/{}", top.number);
    let mut family = vec![(top.name.clone(), top.number.clone(), dir.clone())];
    for part in root.list(&dir).into_iter().filter(|n| root.has(format!("{dir}/{n}/partition"))) {
        let number = root.word(format!("{dir}/{part}/dev")).unwrap_or_default();
        family.push((part.clone(), number, format!("{dir}/{part}")));
    }
    let mounts = root.read("/proc/self/mountinfo").map_err(|why| {
        MachineError::refused(format!(
            "{}: whether it is mounted cannot be seen (/proc/self/mountinfo: {why})",
            path.display()
        ))
    })?;
    let mounts = mountinfo::parse(&mounts);
    let rdev = |p: &str| std::fs::metadata(p).map(|m| number(m.rdev())).unwrap_or_default();
    let swaps = swaps(root);
    for (name, device, dir) in &family {
        if let Some(mount) = mounts.iter().find(|m| m.number == *device || rdev(&m.source) == *device) {
            return refuse(format!("{name} is mounted at {}", mount.point));
        }
        if let Some(holder) = root.list(format!("{dir}/holders")).first() {
            return refuse(format!("{name} is held by {holder}"));
        }
        if swaps.iter().any(|s| rdev(s) == *device) {
            return refuse(format!("{name} is swap space"));
        }
    }
    Ok(())
}

fn refuse_signature(device: &File, path: &Path) -> Result<(), MachineError> {
    match signature::find(device) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => Err(MachineError::refused(format!(
            "{} bears {what}; nothing was written. If it may be lost, type wipefs -a {} yourself first",
            path.display(),
            path.display()
        ))),
        Err(e) => {
            Err(MachineError::refused(format!("{}: what is on it cannot be read: {e}", path.display())))
        }
    }
}

/// Paths of swap files and devices in use.
fn swaps(root: &Root) -> Vec<String> {
    let text = root.read("/proc/swaps").unwrap_or_default();
    text.lines().skip(1).filter_map(|l| l.split_whitespace().next()).map(str::to_owned).collect()
}

fn cannot_open(path: &Path, error: &io::Error) -> MachineError {
    let cure = if error.kind() == io::ErrorKind::PermissionDenied {
        "; devices are root's, try with sudo"
    } else {
        ""
    };
    MachineError::refused(format!("{} cannot be opened: {error}{cure}", path.display()))
}
