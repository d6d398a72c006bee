//! Where a path really is: path -> mount -> file system -> top devices -> block stack.
//!
//! For: the [`Place`] of a target. Not for: whether that place may be written, nor what it means for a number.
//! Device numbers of btrfs, overlay and FUSE are anonymous (`0:N`), so these go by way of mountinfo and `/sys/fs`.

use crate::error::MachineError;
use crate::mountinfo::{self, Mount};
use crate::root::Root;
use crate::stack::Stack;
use model::machine::{DirectIo, FileSystem, Place};
use rustix::fs::{AtFlags, CWD, FileType, IFlags, Mode, OFlags, Statx, StatxAttributes, StatxFlags};
use std::fs::File;
use std::path::Path;

/// Overlays on overlays; deeper ones are not followed.
const MAX_OVERLAYS: usize = 8;

/// Resolves a path.
///
/// # Errors
/// Where it cannot be looked at. What cannot be followed further down is said in the place itself.
pub fn resolve(root: &Root, path: &Path) -> Result<Place, MachineError> {
    let facts = rustix::fs::statx(CWD, path, AtFlags::empty(), asked())
        .map_err(|e| MachineError::at(path, "looked at", &e.into()))?;
    let kind = FileType::from_raw_mode(facts.stx_mode.into());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = matches!(kind, FileType::RegularFile | FileType::Directory)
        .then(|| rustix::fs::open(path, flags, Mode::empty()).ok())
        .flatten();
    Ok(place_of(root, path, &facts, file.map(File::from).as_ref()))
}

/// Resolves an open file, which may have no name; `path` is what the place is called and where its mount is looked for.
///
/// # Errors
/// Where it cannot be looked at.
pub fn resolve_open(root: &Root, file: &File, path: &Path) -> Result<Place, MachineError> {
    let facts = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, asked())
        .map_err(|e| MachineError::at(path, "looked at", &e.into()))?;
    Ok(place_of(root, path, &facts, Some(file)))
}

fn asked() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::MNT_ID | StatxFlags::DIOALIGN
}

fn place_of(root: &Root, path: &Path, facts: &Statx, file: Option<&File>) -> Place {
    let mounts = mountinfo::read(root);
    let unreadable = mounts.as_ref().err().map(|why| format!("/proc/self/mountinfo: {why}"));
    let unnamed = || Some("/proc/self/mountinfo does not name the file system that it is in".to_owned());
    let mounts = mounts.unwrap_or_default();
    let direct = direct(facts);
    if FileType::from_raw_mode(facts.stx_mode.into()) == FileType::BlockDevice {
        let number = format!("{}:{}", facts.stx_rdev_major, facts.stx_rdev_minor);
        return Place { direct, ..place_of_device(root, &mounts, path, &number) };
    }
    let number = format!("{}:{}", facts.stx_dev_major, facts.stx_dev_minor);
    let id = (facts.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(facts.stx_mnt_id);
    let shown = path.to_string_lossy();
    let mount = mount_of(&mounts, id, &number, &shown);
    let mut stack = Stack::new(root, &mounts);
    let found = below_file_system(&mut stack, mount, &number, Some(path));
    let file_system = mount.map(|m| FileSystem {
        kind: m.kind.clone(),
        source: m.source.clone(),
        mount_point: m.point.clone(),
        options: m.options.clone(),
        attributes: attributes(facts, file),
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

/// What is below a file system.
#[derive(Debug, Default)]
pub(crate) struct Below {
    /// Indices of the devices it talks to, in the stack.
    pub(crate) tops: Vec<usize>,
    /// Why it is memory.
    pub(crate) ram: Option<String>,
    /// Why it could not be followed.
    pub(crate) blind: Option<String>,
}

impl Below {
    fn blind(why: impl Into<String>) -> Self {
        Self { blind: Some(why.into()), ..Self::default() }
    }
}

/// The mount of a file: by the id that statx gave, else the longest mount point over the path with its device number.
pub(crate) fn mount_of<'m>(
    mounts: &'m [Mount],
    id: Option<u64>,
    number: &str,
    path: &str,
) -> Option<&'m Mount> {
    if let Some(mount) = mounts.iter().find(|m| Some(m.id) == id) {
        return Some(mount);
    }
    // The last of equals hides the others. A subvolume of btrfs has a number that no mount shows, hence the two ways after.
    let longest = |m: &&Mount| m.point.len();
    let same = || mounts.iter().filter(|m| m.number == number);
    let over = || mounts.iter().filter(|m| m.holds(path));
    same()
        .filter(|m| m.holds(path))
        .max_by_key(longest)
        .or_else(|| same().next_back())
        .or_else(|| over().max_by_key(longest))
}

/// Follows a file system to its devices. `path` is a file or directory in it, for those that spread over several.
pub(crate) fn below_file_system(
    stack: &mut Stack<'_>,
    mount: Option<&Mount>,
    number: &str,
    path: Option<&Path>,
) -> Below {
    follow(stack, mount, number, path, MAX_OVERLAYS)
}

fn follow(
    stack: &mut Stack<'_>,
    mount: Option<&Mount>,
    number: &str,
    path: Option<&Path>,
    overlays: usize,
) -> Below {
    let Some(mount) = mount else {
        if number.starts_with("0:") {
            return Below::blind("its file system is not among the mounts that this process sees");
        }
        return device(stack, number);
    };
    match mount.kind.as_str() {
        "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => {
            Below { ram: Some(mount.kind.clone()), ..Below::default() }
        }
        "overlay" => overlay(stack, mount, path, overlays),
        "btrfs" => btrfs(stack, mount),
        "bcachefs" => sources(stack, mount, mount.source.split(':')),
        "zfs" => Below::blind(format!(
            "zfs does not show the kernel's users which devices {} is on; `zpool status` does",
            mount.source
        )),
        "fuseblk" => Below {
            blind: Some("a program in user space (FUSE) stands between this file and its device".into()),
            ..sources(stack, mount, std::iter::once(mount.source.as_str()))
        },
        kind if kind == "fuse" || kind.starts_with("fuse.") => Below::blind(format!(
            "{kind}: a program in user space answers, so the kernel sees no device below"
        )),
        "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "ceph" | "lustre" | "afs" | "gfs2" | "ocfs2"
        | "gpfs" | "beegfs" | "orangefs" => {
            Below::blind(format!("{}: the data are on another machine ({})", mount.kind, mount.source))
        }
        "9p" | "virtiofs" => {
            Below::blind(format!("{}: the data are with the host of this virtual machine", mount.kind))
        }
        _ if !number.starts_with("0:") => device(stack, number),
        _ => sources(stack, mount, std::iter::once(mount.source.as_str())),
    }
}

fn device(stack: &mut Stack<'_>, number: &str) -> Below {
    Below { tops: stack.add(number).into_iter().collect(), ..Below::default() }
}

/// The devices that the mount itself names.
fn sources<'s>(stack: &mut Stack<'_>, mount: &Mount, names: impl Iterator<Item = &'s str>) -> Below {
    let numbers: Vec<String> = names.filter_map(|s| stack.root.device_number(s)).collect();
    let tops: Vec<usize> = numbers.iter().filter_map(|n| stack.add(n)).collect();
    let blind = tops
        .is_empty()
        .then(|| format!("{} shows no device: its source is '{}', which is none", mount.kind, mount.source));
    Below { tops, ram: None, blind }
}

/// All devices of the btrfs that has the mount's source among them.
fn btrfs(stack: &mut Stack<'_>, mount: &Mount) -> Below {
    let name = stack.root.device_number(&mount.source).and_then(|n| crate::stack::name_of(stack.root, &n));
    let ids = stack.root.list("/sys/fs/btrfs").unwrap_or_default();
    let devices = |id: &String| stack.root.list(&format!("/sys/fs/btrfs/{id}/devices")).unwrap_or_default();
    let all = name.and_then(|name| ids.iter().map(devices).find(|d| d.contains(&name)));
    let Some(all) = all else { return sources(stack, mount, std::iter::once(mount.source.as_str())) };
    let numbers: Vec<String> = all.iter().filter_map(|n| crate::stack::number_of(stack.root, n)).collect();
    Below { tops: numbers.iter().filter_map(|n| stack.add(n)).collect(), ..Below::default() }
}

/// The layer of an overlay that holds the path: the upper one for directories and what was copied up, else a lower one.
fn overlay(stack: &mut Stack<'_>, mount: &Mount, path: Option<&Path>, overlays: usize) -> Below {
    let hidden = || Below::blind("overlay: its directories cannot be seen from here (this is a container)");
    let Some(overlays) = overlays.checked_sub(1) else {
        return Below::blind("overlays on overlays, too many to follow");
    };
    let inside = path.and_then(|p| std::path::absolute(p).ok());
    let inside = inside.as_deref().and_then(|p| p.strip_prefix(&mount.point).ok());
    for dir in overlay_dirs(&mount.super_options) {
        let dir = stack.root.path(&dir);
        let Some(there) = inside.map(|i| dir.join(i)).filter(|p| p.exists()).or_else(|| {
            // Without a path inside, a new file would be made in the first of them.
            inside.is_none().then_some(dir)
        }) else {
            continue;
        };
        let Ok(facts) = rustix::fs::statx(CWD, &there, AtFlags::empty(), asked()) else { continue };
        let number = format!("{}:{}", facts.stx_dev_major, facts.stx_dev_minor);
        let mounts = stack.mounts;
        let below = mount_of(mounts, Some(facts.stx_mnt_id), &number, &there.to_string_lossy());
        // In a container the names lead back into the overlay itself.
        if below.is_some_and(|b| b.id == mount.id) {
            return hidden();
        }
        return follow(stack, below, &number, Some(&there), overlays);
    }
    hidden()
}

/// Upper directory first, then the lower ones from the top.
fn overlay_dirs(options: &str) -> Vec<String> {
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

fn direct(facts: &Statx) -> Option<DirectIo> {
    (facts.stx_mask & StatxFlags::DIOALIGN.bits() != 0).then_some(DirectIo {
        memory_align: facts.stx_dio_mem_align,
        offset_align: facts.stx_dio_offset_align,
    })
}

/// Attributes that change how the data are stored, from statx and from the inode's flags.
fn attributes(facts: &Statx, file: Option<&File>) -> Vec<String> {
    let flags = file.and_then(|f| rustix::fs::ioctl_getflags(f).ok()).unwrap_or(IFlags::empty());
    let has = |a: StatxAttributes| facts.stx_attributes.contains(a);
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
fn the_mount_is_found_by_id_then_by_number_then_by_path() {
    let text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                2 1 0:40 / /data rw - btrfs /dev/sdb rw\n\
                3 1 8:1 / /data/bind rw - ext4 /dev/sda1 rw\n";
    let mounts = mountinfo::parse(text);
    let id = |id, number, path| mount_of(&mounts, id, number, path).map(|m| m.id);
    assert_eq!(id(Some(2), "9:9", "/x"), Some(2));
    assert_eq!(id(None, "8:1", "/data/bind/f"), Some(3));
    assert_eq!(id(None, "8:1", "/etc"), Some(1));
    assert_eq!(id(None, "0:99", "/data/subvolume/f"), Some(2));
    assert_eq!(mount_of(&[], None, "8:1", "/"), None);
}

#[test]
fn overlays_name_their_directories_from_the_top() {
    let options = "rw,lowerdir=/c:/b:/a,upperdir=/up,workdir=/work";
    assert_eq!(overlay_dirs(options), ["/up", "/c", "/b", "/a"]);
    assert_eq!(overlay_dirs("ro,lowerdir+=/x,lowerdir+=/y"), ["/x", "/y"]);
}

#[test]
fn memory_and_remote_file_systems_have_no_device() {
    let root = Root::at("/nonexistent-prefix".into());
    for (kind, ram) in
        [("tmpfs", true), ("fuse.sshfs", false), ("nfs4", false), ("9p", false), ("zfs", false)]
    {
        let mounts = mountinfo::parse(&format!("1 0 0:40 / /m rw - {kind} somewhere rw"));
        let mut stack = Stack::new(&root, &mounts);
        let found = below_file_system(&mut stack, mounts.first(), "0:40", None);
        assert_eq!((found.ram.is_some(), found.blind.is_some(), found.tops.len()), (ram, !ram, 0), "{kind}");
    }
}

#[test]
fn this_directory_has_a_place() -> Result<(), MachineError> {
    let place = resolve(&Root::real(), Path::new("."))?;
    println!("{}", place.chain());
    assert!(place.file_system.is_some());
    assert!(!place.layers.is_empty() || place.ram.is_some() || place.blind.is_some());
    Ok(())
}
