//! Who uses a device or file: mounts, swap, volumes, loop devices, exports to other machines, and programs that
//! have it open for writing.
//!
//! The answer is [`Use`]: a sentence that names the user, no user, or the reason why users may be hidden.
//! Files are compared by device and inode, not by name: a file can have several names, other names in another
//! mount namespace, or none.
//!
//! 1. A device: everything that shares bytes with it (its disk, partitions, what is built on it and what it
//!    is built on) is compared with mounts of all visible namespaces, swap, btrfs members, loop devices and exports.
//! 2. A file: swap, mounts without a loop device, loop devices, exports, then writers. Overlays and mirrored
//!    directories lead to further files.
//! 3. Writers: a lease asks the kernel whether any other descriptor is open for writing. If the
//!    kernel cannot answer, the open files and mappings of all processes are compared.
//! 4. Content: a server or a FUSE program may show a file under another identity (FUSE, NFS, SMB, 9P). If the
//!    file contains a file system, its identifying bytes are compared with those of every block device. If a
//!    matching device is in use, the file counts as used.
//!
//! Programs that only read are not users. `signature` finds out what an unused device holds.

use crate::error::describe;
use crate::exports::{Export, export_of, exports, hidden_exports, unknown_export};
use crate::file_systems::{Mount, unescape};
use crate::loop_devices::Loop;
use crate::processes::parse_mapping;
use crate::root::Root;
use crate::signature::{Content, signatures};
use crate::{file_systems, identity, processes, stack};
use model::machine::Identity;
use model::name;
use rustix::fs::Mode;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How messages describe swap files and devices.
const SWAP: &str = "swap space in use";
/// File systems that can be mounted from a file without a loop device.
const MOUNTED_FROM_FILES: &[&str] = &["erofs"];
const O_NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
/// Maximum number of devices built on each other that are followed upwards to name the user.
const MAX_HOLDERS: usize = 16;
/// Maximum number of levels below a device in which users are searched. With more levels, the use is unknown.
const MAX_LEVELS: usize = 16;

/// Finds the user of a device, of its [`relatives`], of the devices built on them, or of the devices and files below them.
///
/// # Errors
///
/// Why the use is unknown.
pub(crate) fn device(root: &Root, name: &str) -> Result<Use, String> {
    if let Some(user) = user_in_stack(root, name, None, MAX_LEVELS)? {
        return Ok(Use::By(user));
    }
    Ok(writer_of_devices(root, &changed_by_writes(root, name)?).or(hidden_use(root)))
}

/// Returns [`Use::NeedsConsent`] if the kernel may export files and devices that are not visible here.
fn hidden_use(root: &Root) -> Use {
    hidden_exports(root).map_or(Use::Unused, Use::NeedsConsent)
}

/// Returns everything that a write to a device changes: the device and its [`relatives`], the devices and files below it, and the relatives
/// of these devices.
///
/// # Errors
/// Why one of them is unknown.
fn changed_by_writes(root: &Root, name: &str) -> Result<Vec<Identity>, String> {
    let mut all = Vec::new();
    let mut left = vec![name.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(name) = left.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        for member in relatives(root, &name)? {
            all.push(identity::from_device_number(number_of(root, &member)?));
        }
        let disk = stack::disk_of_partition(root, &name).unwrap_or(name);
        left.extend(root.list_if_there(&format!("/sys/class/block/{disk}/slaves"))?);
        let Some(own) = crate::loop_devices::find_loop(root, &disk) else { continue };
        if let Ok(Identity::Device { number, .. }) = &own.backing {
            left.extend(stack::name_of(root, number));
        }
        all.extend(own.backing.ok());
        all.extend(own.beneath);
    }
    Ok(all)
}

/// Returns the kernel names of a device and its relatives: the partitions that share bytes with it,
/// and the disk if the device is a partition.
///
/// # Errors
/// Why the partitions are unknown.
fn relatives(root: &Root, name: &str) -> Result<Vec<String>, String> {
    let disk = stack::disk_of_partition(root, name);
    let parts = partitions(root, disk.as_deref().unwrap_or(name))?;
    let parts = parts.into_iter().filter(|p| p != name && overlap(root, name, p));
    // Writing a partition also destroys a file system on the whole disk.
    Ok(std::iter::once(name.to_owned()).chain(parts).chain(disk.clone()).collect())
}

/// Finds what uses a device, such as a mount, swap or an array; `None` if nothing does. Searches the device and its [`relatives`], the
/// devices built on them, and the devices and files below, at most `levels` levels down. Ignores programs, and the loop device `above`,
/// from which the search came here.
///
/// # Errors
///
/// Why the use is unknown.
fn user_in_stack(
    root: &Root,
    name: &str,
    above: Option<&str>,
    levels: usize,
) -> Result<Option<String>, String> {
    if let Some(user) = user_of_relatives(root, name, above)? {
        return Ok(Some(user));
    }
    user_below(root, name, levels)
}

/// Finds a user of the devices and files below a device. The members of a volume or an array can be
/// in use only by loop devices, exports and other volumes: the kernel keeps mounts and swap away from
/// them. Other volumes do not count, because they use other bytes of the members.
fn user_below(root: &Root, name: &str, levels: usize) -> Result<Option<String>, String> {
    let disk = stack::disk_of_partition(root, name).unwrap_or_else(|| name.to_owned());
    let deeper = || {
        let why = || format!("more than {MAX_LEVELS} devices are on top of each other at {disk}");
        levels.checked_sub(1).ok_or_else(why)
    };
    if let Some(user) = backing_user(root, &disk, deeper)? {
        return Ok(Some(user));
    }
    let slaves = root.list_if_there(&format!("/sys/class/block/{disk}/slaves"))?;
    let loops = if slaves.is_empty() { Vec::new() } else { crate::loop_devices::bound_loops(root)? };
    for slave in slaves {
        for member in relatives(root, &slave)? {
            if let Some(user) = loop_or_export(root, &loops, &member)? {
                return Ok(Some(format!("{disk} is stored on {slave}, and {member} is {user}")));
            }
        }
        if let Some(user) = user_below(root, &slave, deeper()?)? {
            return Ok(Some(format!("{disk} is stored on {slave}, and {user}")));
        }
    }
    Ok(None)
}

/// Finds a user of a device, of one of its [`relatives`], or of a device built on one of them.
fn user_of_relatives(root: &Root, name: &str, above: Option<&str>) -> Result<Option<String>, String> {
    for member in relatives(root, name)? {
        let own = direct_user(root, &member, above)?;
        if let Some(user) = own.map_or_else(|| describe_holders(root, &member), |own| Ok(Some(own)))? {
            return Ok(Some(format!("{member} is {user}")));
        }
    }
    Ok(None)
}

/// Finds another user of a loop device's backing file or device. For example, another loop device on other
/// bytes of the same file may be mounted.
fn backing_user(
    root: &Root,
    name: &str,
    deeper: impl Fn() -> Result<usize, String>,
) -> Result<Option<String>, String> {
    let Some(own) = crate::loop_devices::find_loop(root, name) else { return Ok(None) };
    let backing = own.backing.map_err(|why| format!("the backing file of {name} is unknown: {why}"))?;
    if let Identity::Device { number, .. } = &backing {
        let below = stack::name_of(root, number)
            .ok_or_else(|| format!("/sys shows no name of the device {number}, which backs {name}"))?;
        let user = user_in_stack(root, &below, Some(name), deeper()?)?;
        return Ok(user.map(|user| format!("{name} is backed by {below}, and {user}")));
    }
    let mut loops = crate::loop_devices::bound_loops(root)?;
    loops.retain(|l| l.name != name);
    let user = match loop_over(&loops, &backing) {
        Some(other) => Some(describe_loop(root, &other.name)),
        None => export_of(&exports(root)?, &backing).map(Export::describe),
    };
    Ok(user.map(|user| format!("{name} is backed by a file that is also {user}")))
}

/// Returns the partitions of a disk.
///
/// # Errors
/// Why they are unknown.
pub(crate) fn partitions(root: &Root, name: &str) -> Result<Vec<String>, String> {
    let dir = format!("/sys/class/block/{name}");
    let names = root.list_if_there(&dir)?;
    Ok(names.into_iter().filter(|n| root.has(&format!("{dir}/{n}/partition"))).collect())
}

/// Returns whether a partition of the same disk shares bytes with a device. True also if this is unknown.
fn overlap(root: &Root, device: &str, partition: &str) -> bool {
    let number =
        |name: &str, file: &str| root.word(&format!("/sys/class/block/{name}/{file}"))?.parse::<u64>().ok();
    let range = |name: &str| {
        let start = number(name, "start")?;
        Some(start..start.saturating_add(number(name, "size")?))
    };
    let Some((a, b)) = range(device).zip(range(partition)) else { return true };
    a.start < b.end && b.start < a.end
}

/// Describes the devices that are built on a device, and the use of the topmost one; `None` if no
/// device is built on it.
fn describe_holders(root: &Root, name: &str) -> Result<Option<String>, String> {
    let mut at = name.to_owned();
    let mut names = Vec::new();
    let mut use_of_last = None;
    for _ in 0..MAX_HOLDERS {
        let Some(next) = root.list_if_there(&format!("/sys/class/block/{at}/holders"))?.pop() else { break };
        use_of_last = direct_user(root, &next, None)?;
        names.push(label(root, &next));
        at = next;
    }
    if names.is_empty() {
        return Ok(None);
    }
    let what = use_of_last.map_or_else(String::new, |u| format!(", which is {u}"));
    Ok(Some(format!("part of {}{what}", names.join(" below "))))
}

/// Formats a device with its volume: `dm-0 (vg-root)`.
fn label(root: &Root, name: &str) -> String {
    match root.word(&format!("/sys/class/block/{name}/dm/name")) {
        Some(full) => format!("{name} ({full})"),
        None => name.to_owned(),
    }
}

/// Finds a direct user: a mount in any visible namespace, swap, a mounted btrfs, a loop device, or an export.
fn direct_user(root: &Root, name: &str, above: Option<&str>) -> Result<Option<String>, String> {
    let number = number_of(root, name)?;
    if let Some(mount) = mounted(root, &number)? {
        return Ok(Some(mount));
    }
    let ours = identity::from_device_number(number);
    if swaps(root)?.iter().any(|s| s.is_same(&ours)) {
        return Ok(Some(SWAP.into()));
    }
    for id in root.list_if_there("/sys/fs/btrfs")? {
        // `/sys/fs/btrfs/features` has no devices.
        if root.list_if_there(&format!("/sys/fs/btrfs/{id}/devices"))?.iter().any(|n| n == name) {
            return Ok(Some(format!("part of the mounted btrfs {id}")));
        }
    }
    let mut loops = crate::loop_devices::bound_loops(root)?;
    loops.retain(|l| Some(l.name.as_str()) != above);
    loop_or_export(root, &loops, name)
}

fn number_of(root: &Root, name: &str) -> Result<String, String> {
    stack::number_of(root, name).ok_or_else(|| format!("/sys shows no device number of {name}"))
}

/// Describes a loop device among `loops` that has its data on the device `name`, or an export of the
/// device; `None` if there is neither.
///
/// # Errors
/// Why this cannot be determined.
fn loop_or_export(root: &Root, loops: &[Loop], name: &str) -> Result<Option<String>, String> {
    let device = identity::from_device_number(number_of(root, name)?);
    if let Some(user) = loop_over(loops, &device) {
        return Ok(Some(describe_loop(root, &user.name)));
    }
    let exports = exports(root)?;
    if let Some(export) = export_of(&exports, &device) {
        return Ok(Some(export.describe()));
    }
    unknown_backing(loops, |_| true).or_else(|| unknown_export(&exports)).map_or(Ok(None), Err)
}

/// Returns the loop device that has its data in this file or device.
fn loop_over<'l>(loops: &'l [Loop], what: &Identity) -> Option<&'l Loop> {
    loops.iter().find(|l| l.is_backed_by(what))
}

/// Describes where a device is mounted, in any visible mount namespace; `None` if it is not mounted.
fn mounted(root: &Root, number: &str) -> Result<Option<String>, String> {
    let own = file_systems::read(root).map_err(|why| format!("/proc/self/mountinfo: {why}"))?;
    if let Some(mount) = mount_of_device(root, &own, number, "") {
        return Ok(Some(format!("mounted on {} as {}", mount.point, mount.kind)));
    }
    Ok(file_systems::other_namespaces(root)?.into_iter().find_map(|(process, mounts)| {
        let mount = mount_of_device(root, &mounts, number, &format!("/proc/{process}/root"))?;
        let who = processes::name_and_id(root, process);
        Some(format!("mounted on {} as {} in the mount namespace of {who}", mount.point, mount.kind))
    }))
}

/// Returns the mount of the device `number`. `inside` is the root directory of the mount namespace,
/// empty for that of this process.
fn mount_of_device<'m>(root: &Root, mounts: &'m [Mount], number: &str, inside: &str) -> Option<&'m Mount> {
    mounts.iter().find(|m| is_mount_of(root, m, number, inside))
}

/// Returns whether a mount is of the device `number`. `inside` is the root directory of the mount
/// namespace, empty for that of this process.
pub(crate) fn is_mount_of(root: &Root, mount: &Mount, number: &str, inside: &str) -> bool {
    let source = || root.device_number(&format!("{inside}{}", mount.source));
    // A file system on several devices shows an anonymous number, and one device as its source.
    mount.number == number || (mount.source.starts_with("/dev/") && source().as_deref() == Some(number))
}

/// Finds the user of a block device, but not programs that have it open. A bound loop device counts as in use.
fn user_of_device(root: &Root, name: &str) -> Result<Option<String>, String> {
    let disk = stack::disk_of_partition(root, name).unwrap_or_else(|| name.to_owned());
    if crate::loop_devices::find_loop(root, &disk).is_some() {
        return Ok(Some(describe_loop(root, name)));
    }
    user_of_relatives(root, name, None)
}

/// Finds the user of an open file. Fails if the use is unknown.
///
/// 1. The file itself: swap, a mount, a loop device, an export, or a program that has it open for writing.
/// 2. If a program mirrors a directory: swap, mounts, loop devices and exports of the mirrored file.
///    Writers of the mirrored file do not count, because the mirroring program itself opens that file for
///    writing as soon as a user writes.
/// 3. If the file is in an overlay: the file that holds its data.
/// 4. With `by_content`: devices in use that have the same content, if the file system may show files of another file system or host.
pub(crate) fn file(root: &Root, file: &File, by_content: bool) -> Result<Use, String> {
    let own = direct_user_of_file(root, file)?;
    if matches!(own, Use::By(_)) {
        return Ok(own);
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let beneath = match file_systems::beneath(root, &path) {
        Ok(all) => all,
        Err(why) => return Ok(own.or(Use::CannotTell(why))),
    };
    let mut unseen = own;
    let mirrored = file_systems::mirrored_file(root, &path);
    if let Some(mirrored) = &mirrored
        && let Ok(what) = identity::from_path(mirrored)
    {
        if let Some(user) = kernel_user_of_file(root, &what)? {
            return Ok(Use::By(format!("{user} (under the name {})", name::shown(mirrored))));
        }
        unseen = unseen.or(hidden_use(root));
    }
    let mut is_shared = may_be_shared(file);
    for path in beneath {
        let shown = name::shown(&path);
        let below = open_to_read(&path)?;
        is_shared |= may_be_shared(&below);
        match direct_user_of_file(root, &below)? {
            Use::By(user) => return Ok(Use::By(format!("{user} (under the name {shown})"))),
            other => unseen = unseen.or(other),
        }
    }
    // If the mirrored file is the same file, its users were found above.
    let mirrored = mirrored.and_then(|path| open_to_read(&path).ok()).filter(|m| !may_be_shared(m));
    if !by_content || !is_shared || mirrored.is_some_and(|mirrored| is_same(file, &mirrored)) {
        return Ok(unseen);
    }
    let has_match = Cell::new(false);
    let user_of_match = |name: &str| {
        has_match.set(true);
        user_of_device(root, name)
    };
    match user_by_content(root, file, user_of_match)? {
        Use::Unused if has_match.get() => Ok(unseen.or(hidden_use(root))),
        found => Ok(unseen.or(found)),
    }
}

fn open_to_read(path: &Path) -> Result<File, String> {
    let opened = File::options().read(true).custom_flags(O_NONBLOCK).open(path);
    opened.map_err(|e| format!("{}: {}", name::shown(path), describe(&e)))
}

/// Finds the user of an open file itself: swap, a mount, a loop device, an export, or a program that has it open
/// for writing.
///
/// # Errors
///
/// Why the use is unknown.
fn direct_user_of_file(root: &Root, file: &File) -> Result<Use, String> {
    let ours = identity::from_file(file).map_err(|e| describe(&e))?;
    let swaps = swaps(root);
    if swaps.as_ref().is_ok_and(|all| all.iter().any(|s| s.is_same(&ours))) {
        return Ok(Use::By(SWAP.into()));
    }
    let mounted = mounted_file(root, &ours);
    if let Ok(Some(mount)) = mounted {
        return Ok(Use::By(mount));
    }
    let loops = crate::loop_devices::bound_loops(root)?;
    if let Some(user) = loop_over(&loops, &ours) {
        return Ok(Use::By(describe_loop(root, &user.name)));
    }
    let exports = exports(root);
    if let Ok(exports) = &exports
        && let Some(export) = export_of(exports, &ours)
    {
        return Ok(Use::By(export.describe()));
    }
    let writers = writer_of_file(root, file);
    // If the kernel reports no writer, the file is neither swap, nor below a writable loop device, nor exported for writing, because the
    // kernel has such files open for writing. A search of all processes cannot rule these users out.
    let settled = matches!(writers, Use::Unused) && lease(file) == Ok(false);
    let unseen_export = exports.map_or_else(Some, |all| unknown_export(&all));
    let unseen = swaps.err().or(unseen_export).filter(|_| !settled);
    match unseen.or_else(|| unknown_backing(&loops, |l| l.read_only || !settled)) {
        Some(doubt) if !matches!(writers, Use::By(_)) => Err(doubt),
        _ => {
            let found = match (writers, mounted) {
                // A file that is mounted without a loop device is not open for writing.
                (Use::Unused, Err(why)) => Use::CannotTell(why),
                (writers, _) => writers,
            };
            Ok(if settled { found } else { found.or(hidden_use(root)) })
        }
    }
}

/// Returns how the kernel uses a file, as far as known: as swap, as a mount, below a loop device, or as an export.
fn kernel_user_of_file(root: &Root, what: &Identity) -> Result<Option<String>, String> {
    if swaps(root).is_ok_and(|all| all.iter().any(|s| s.is_same(what))) {
        return Ok(Some(SWAP.into()));
    }
    if let Ok(Some(mount)) = mounted_file(root, what) {
        return Ok(Some(mount));
    }
    if let Some(user) = loop_over(&crate::loop_devices::bound_loops(root)?, what) {
        return Ok(Some(describe_loop(root, &user.name)));
    }
    Ok(export_of(&exports(root)?, what).map(Export::describe))
}

/// Returns where a file is mounted without a loop device, and as which file system. erofs and FUSE
/// programs need no loop device.
///
/// # Errors
///
/// Why the mounts are unknown.
fn mounted_file(root: &Root, ours: &Identity) -> Result<Option<String>, String> {
    let own = file_systems::read(root)
        .map_err(|why| format!("which files are mounted is unknown: /proc/self/mountinfo: {why}"))?;
    let elsewhere = file_systems::other_namespaces(root)
        .map_err(|why| format!("which files are mounted is unknown: {why}"))?;
    let spaces = std::iter::once((None, &own)).chain(elsewhere.iter().map(|(pid, all)| (Some(*pid), all)));
    let mut unknown = None;
    for (process, mounts) in spaces {
        let inside = process.map_or_else(String::new, |pid| format!("/proc/{pid}/root"));
        // Only a mount without a block device has a number `0:N`.
        for mount in mounts.iter().filter(|m| m.number.starts_with("0:") && m.kind != "overlay") {
            let describe_mount = || format!("mounted on {} as {}", mount.point, mount.kind);
            let source = root.path(&format!("{inside}{}", mount.source));
            let is_absolute = mount.source.starts_with('/');
            let file = is_absolute.then(|| identity::from_path_cached(&source).ok()).flatten();
            if file.as_ref().is_some_and(|file| file.is_same(ours)) {
                return Ok(Some(describe_mount()));
            }
            if file.is_none() && MOUNTED_FROM_FILES.contains(&mount.kind.as_str()) {
                let (what, source) = (describe_mount(), &mount.source);
                unknown = Some(format!("the file that is {what} cannot be found by its name, {source}"));
            }
        }
    }
    unknown.map_or(Ok(None), Err)
}

/// Describes a loop device and its use.
fn describe_loop(root: &Root, name: &str) -> String {
    // The use only informs the reader: a bound loop device is enough to refuse.
    let what = stack::number_of(root, name).and_then(|number| mounted(root, &number).ok().flatten());
    format!("the backing file of {name}{}", what.map_or_else(String::new, |u| format!(", which is {u}")))
}

/// Finds the first loop device for which `counts` is true and whose backing file is unknown.
/// Returns the reason as text; `None` without such a device.
fn unknown_backing(loops: &[Loop], counts: impl Fn(&Loop) -> bool) -> Option<String> {
    let (name, why) =
        loops.iter().filter(|l| counts(l)).find_map(|l| Some((&l.name, l.backing.as_ref().err()?)))?;
    Some(format!("the backing file of {name} is unknown: {why}"))
}

/// Returns the active swap devices and files that are visible here. The kernel itself protects the others: it claims swap devices, and
/// refuses writes to swap files.
fn swaps(root: &Root) -> Result<Vec<Identity>, String> {
    let text = match root.read("/proc/swaps") {
        Ok(text) => text,
        // A kernel without swap support has no `/proc/swaps`. A `/proc` that shows only processes has no `/proc/filesystems` either.
        Err(why) if why == "no such file" && root.has("/proc/filesystems") => return Ok(Vec::new()),
        Err(why) => return Err(format!("/proc/swaps: {why}")),
    };
    let names = text.lines().skip(1).filter_map(|l| l.split_ascii_whitespace().next()).map(unescape);
    Ok(names.filter_map(|name| identity::from_name(root, &name).ok()).collect())
}

/// The result of a search for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A user was found. The text completes "the target is ...".
    By(String),
    /// No user was found, and no user can be hidden.
    Unused,
    /// No user was found, but users may be hidden for this reason.
    CannotTell(String),
    /// No user was found, but users may be hidden for this reason, and the search is the only protection. Only `--unseen-users` allows
    /// writing a device, or a file with content that fathom did not write.
    NeedsConsent(String),
}

impl Use {
    /// Combines the results of two searches: the one that forbids more decides.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::By(user), _) | (_, Self::By(user)) => Self::By(user),
            (Self::NeedsConsent(why), _) | (_, Self::NeedsConsent(why)) => Self::NeedsConsent(why),
            (Self::CannotTell(why), _) | (_, Self::CannotTell(why)) => Self::CannotTell(why),
            (Self::Unused, Self::Unused) => Self::Unused,
        }
    }
}

#[test]
fn of_two_searches_the_one_that_forbids_more_decides() {
    // From the mildest to the strictest. An overlay with unknown layers (`CannotTell`) must not weaken `NeedsConsent`.
    let text = String::new;
    let all = [Use::Unused, Use::CannotTell(text()), Use::NeedsConsent(text()), Use::By(text())];
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate() {
            assert_eq!(a.clone().or(b.clone()), all[i.max(j)], "{a:?} and {b:?}");
        }
    }
}

/// How long to wait for files that the kernel is still closing, before all processes are searched. The kernel closes the files of a
/// thread or a ring a moment after its end, and fathom checks before every run.
const BRIEF_WAIT: Duration = Duration::from_millis(100);
/// Maximum wait for the kernel to close a file that no other process has open. A busy machine closes files slowly.
const CLOSING_WAIT: Duration = Duration::from_secs(5);
/// Interval at which [`holds_for`] checks its condition.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum number of further searches of the processes if some hide their files. A program that is just starting can have other rights for
/// a moment.
const HIDDEN_RETRIES: usize = 10;
const BETWEEN_RETRIES: Duration = Duration::from_millis(20);
/// Access mode of a descriptor that is open for reading only.
const READ_ONLY: u32 = 0;
/// Bits of the access mode.
const ACCESS_MODE: u32 = 3;

/// Process 1 hides its open files from other users, and on some machines even from root. This hides hardly any use: process 1 uses disks
/// through mounts, which the kernel shows, and opens other files for writing only briefly.
const FILES_OF_INIT_HIDDEN: &str = "the kernel does not show the open files of process 1";

/// Finds a program that has a file open for writing, or a writable mapping of it. Searches all processes only
/// if the kernel cannot rule out a writer.
pub(crate) fn writer_of_file(root: &Root, file: &File) -> Use {
    let ours = match identity::from_file(file) {
        Ok(ours) => [ours],
        Err(e) => return Use::CannotTell(describe(&e)),
    };
    let lease_answer = lease(file);
    let by_ourselves = || writes(root, own_pid(root), &ours).is_ok_and(|it_does| it_does);
    let is_open = || if lease_answer.is_ok() { lease(file) != Ok(false) } else { by_ourselves() };
    if lease_answer.is_ok() && !holds_for(is_open, BRIEF_WAIT) {
        return Use::Unused;
    }
    let seen = search_processes(root, &ours);
    if let Ok(WriterSearch { writer: Some(who), .. }) = seen {
        return Use::By(format!("open for writing by {who}"));
    }
    if holds_for(is_open, CLOSING_WAIT) {
        // The writer may be fathom itself, through its standard output.
        let ourselves = by_ourselves().then(|| processes::name_and_id(root, own_pid(root)));
        let who =
            ourselves.unwrap_or_else(|| "a program that is not visible from here, or by the kernel".into());
        return Use::By(format!("open for writing by {who}"));
    }
    let Err(why) = lease_answer else { return Use::Unused };
    match (seen, sees_all_processes(root)) {
        (Ok(WriterSearch { hidden: 0, init_is_hidden: false, .. }), Ok(())) => Use::Unused,
        (Ok(WriterSearch { hidden: 0, .. }), Ok(())) => {
            Use::CannotTell(format!("{why}, and {FILES_OF_INIT_HIDDEN}"))
        }
        (Ok(WriterSearch { hidden, .. }), Ok(())) => {
            Use::NeedsConsent(format!("{why}, and {}", others_files(hidden)))
        }
        (Err(also), _) | (Ok(_), Err(also)) => Use::NeedsConsent(format!("{why}, and {also}")),
    }
}

/// Returns whether a condition holds during the whole `duration`.
fn holds_for(condition: impl Fn() -> bool, duration: Duration) -> bool {
    let since = Instant::now();
    while condition() {
        if since.elapsed() > duration {
            return true;
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    false
}

/// Finds a program that has one of these devices or files open for writing. Ignores this process,
/// which claims the devices.
pub(crate) fn writer_of_devices(root: &Root, all: &[Identity]) -> Use {
    let mut seen = search_processes(root, all);
    for _ in 0..HIDDEN_RETRIES {
        if !matches!(seen, Ok(WriterSearch { writer: None, hidden: 1.., .. })) {
            break;
        }
        std::thread::sleep(BETWEEN_RETRIES);
        seen = search_processes(root, all);
    }
    match (seen, sees_all_processes(root)) {
        (Ok(WriterSearch { writer: Some(who), .. }), _) => Use::By(format!("open for writing by {who}")),
        (Ok(WriterSearch { hidden: 0, init_is_hidden: false, .. }), Ok(())) => Use::Unused,
        (Ok(WriterSearch { hidden: 0, .. }), Ok(())) => Use::CannotTell(FILES_OF_INIT_HIDDEN.into()),
        (Ok(WriterSearch { hidden, .. }), Ok(())) => Use::NeedsConsent(others_files(hidden)),
        (Ok(_), Err(why)) | (Err(why), _) => Use::NeedsConsent(why),
    }
}

/// Succeeds if `/proc` shows the processes of the whole machine. In a PID namespace it shows only the processes inside.
fn sees_all_processes(root: &Root) -> Result<(), String> {
    let ours = root.link("/proc/self/ns/pid").map_err(|why| format!("/proc/self/ns/pid: {why}"))?;
    if ours == processes::INITIAL_PID_NAMESPACE {
        return Ok(());
    }
    Err("processes outside this PID namespace are not visible, as in a container".into())
}

fn others_files(hidden: usize) -> String {
    format!("the kernel does not show the open files of {hidden} or more processes")
}

/// Returns whether a file may be used outside this kernel: through a server, from another host, or by the
/// program that serves its file system.
pub(crate) fn may_be_shared(file: &File) -> bool {
    // An unknown file system may be a shared one.
    file_systems::is_shared(file).unwrap_or(true)
}

/// Returns whether any descriptor of a file is open for writing, according to the kernel.
///
/// # Errors
///
/// Why the kernel cannot answer, for example because other machines can use the file system too.
fn lease(file: &File) -> Result<bool, String> {
    if file_systems::is_shared(file)? {
        return Err("other machines or programs can use the file's file system too".into());
    }
    sys::file_use::is_open_for_writing(file).map_err(|e| match e.kind() {
        io::ErrorKind::PermissionDenied => {
            "only the file's owner may ask the kernel whether the file is open for writing".into()
        }
        io::ErrorKind::InvalidInput => "the file's file system has no leases".into(),
        _ => describe(&e),
    })
}

/// The result of searching all processes.
struct WriterSearch {
    /// The first process found that has one of the files open for writing; `None` if no such
    /// process was found.
    writer: Option<String>,
    /// Lower bound of the number of processes that hide their files. Process 1 counts here if it is not listed; if it
    /// is listed and hides its files, only `init_is_hidden` is set.
    hidden: usize,
    /// Whether process 1 is listed and hides its files.
    init_is_hidden: bool,
}

/// Searches the files of all other processes.
fn search_processes(root: &Root, what: &[Identity]) -> Result<WriterSearch, String> {
    let names = root.list("/proc").map_err(|why| format!("/proc: {why}"))?;
    let own = own_pid(root);
    let all: Vec<u32> = names.iter().filter_map(|n| n.parse().ok()).collect();
    if all.is_empty() {
        return Err("/proc shows no processes".into());
    }
    // If other users' processes are hidden completely (hidepid), process 1 is hidden too.
    let mut hidden = usize::from(!all.contains(&1));
    let mut init_is_hidden = false;
    for pid in all.into_iter().filter(|pid| *pid != own) {
        match writes(root, pid, what) {
            Ok(true) => {
                return Ok(WriterSearch {
                    writer: Some(processes::name_and_id(root, pid)),
                    hidden,
                    init_is_hidden,
                });
            }
            Ok(false) => {}
            // A process that ended after it was listed has nothing open.
            Err(_) if !root.has(&format!("/proc/{pid}")) => {}
            Err(_) if pid == 1 => init_is_hidden = true,
            Err(_) => hidden += 1,
        }
    }
    Ok(WriterSearch { writer: None, hidden, init_is_hidden })
}

/// Returns the id of this process in the PID namespace that `/proc` shows. The process itself may be in another one.
fn own_pid(root: &Root) -> u32 {
    root.link("/proc/self").ok().and_then(|pid| pid.parse().ok()).unwrap_or_else(std::process::id)
}

/// Returns whether a process has one of these files open for writing or mapped writable.
fn writes(root: &Root, pid: u32, what: &[Identity]) -> Result<bool, String> {
    let is_sought = |found: &Identity| what.iter().any(|w| w.is_same(found));
    let leads_to_sought =
        |path: &str| identity::from_path_cached(&root.path(path)).is_ok_and(|found| is_sought(&found));
    // Each thread may have its own file table.
    for task in root.list(&format!("/proc/{pid}/task"))? {
        let dir = format!("/proc/{pid}/task/{task}");
        let fds = match root.list(&format!("{dir}/fd")) {
            Ok(fds) => fds,
            // A thread that ended after it was listed has nothing open.
            Err(_) if !root.has(&dir) => continue,
            Err(why) => return Err(why),
        };
        if fds.iter().any(|fd| can_write(root, &dir, fd) && leads_to_sought(&format!("{dir}/fd/{fd}"))) {
            return Ok(true);
        }
    }
    // A mapping outlives its descriptor.
    let maps = root.read(&format!("/proc/{pid}/maps"))?;
    let shared = maps.lines().filter_map(parse_mapping).filter(|m| m.permissions.ends_with('s'));
    Ok(shared.into_iter().any(|m| {
        // The kernel pads the addresses in `maps`, but not in the names of these links.
        let link = root.path(&format!("/proc/{pid}/map_files/{:x}-{:x}", m.addresses.start, m.addresses.end));
        if !m.permissions.contains('w') && !may_become_writable(&link) {
            return false;
        }
        let is_mapped = match identity::from_path_cached(&link) {
            Ok(found) => is_sought(&found),
            // Only a privileged user may follow the link.
            Err(_) => m.path.is_some_and(|path| leads_to_sought(&format!("/proc/{pid}/root{path}"))),
        };
        is_mapped || is_sought(&m.file)
    }))
}

/// Returns whether a file was mapped from a descriptor that could write. The process can then make even a read-only mapping writable
/// (`mprotect(2)`). True also if this is unknown.
fn may_become_writable(link: &Path) -> bool {
    link.symlink_metadata().map_or(true, |link| Mode::from_raw_mode(link.mode()).contains(Mode::WUSR))
}

fn can_write(root: &Root, dir: &str, fd: &str) -> bool {
    let text = root.read(&format!("{dir}/fdinfo/{fd}")).unwrap_or_default();
    let flags = text.lines().find_map(|l| l.strip_prefix("flags:"));
    let flags = flags.and_then(|f| u32::from_str_radix(f.trim(), 8).ok());
    // If the flags cannot be read, the descriptor may be open for writing.
    flags.is_none_or(|f| f & ACCESS_MODE != READ_ONLY)
}

/// Number of bytes that are compared at each position.
const BLOCK: usize = 4096;
/// Unit of `size` and `start` in sysfs, in bytes. `loop/offset` is in bytes already.
const SECTOR: u64 = model::evidence::SECTOR_BYTES;

/// Finds the user of an open file by its content: a device in use that holds the same file system.
/// If there is none but the file has a signature, the result is [`Use::NeedsConsent`]. `user_of` finds
/// the user of a block device by its kernel name.
///
/// # Errors
/// Why the file cannot be read, or why the use of a matching device is unknown.
pub(crate) fn user_by_content(
    root: &Root,
    file: &File,
    user_of: impl Fn(&str) -> Result<Option<String>, String>,
) -> Result<Use, String> {
    let bytes = file.metadata().map_err(|e| describe(&e))?.len();
    if bytes == 0 {
        return Ok(Use::Unused);
    }
    for name in root.list_if_there("/sys/class/block")? {
        if may_be_image_of(root, &name, file, bytes)
            && let Some(user) = user_of(&name)?
        {
            return Ok(Use::By(format!(
                "{name} appears to hold the same file system, and is in use: {user}"
            )));
        }
    }
    let found = signatures(file, bytes)?;
    if found.is_empty() {
        return Ok(Use::Unused);
    }
    Ok(Use::NeedsConsent(format!(
        "the file holds {}, and may be mounted under another name or on another host",
        found.join(" and ")
    )))
}

/// Whether two files have the same length and the same bytes at their beginning and end.
pub(crate) fn is_same(a: &File, b: &File) -> bool {
    let parts = |file: &File| -> Option<(u64, Vec<u8>, Vec<u8>)> {
        let bytes = file.metadata().ok()?.len();
        let length = BLOCK.min(usize::try_from(bytes).ok()?);
        let read = |at: u64| {
            let mut block = vec![0; length];
            file.read_exact_at(&mut block, at).ok().map(|()| block)
        };
        Some((bytes, read(0)?, read(bytes - length as u64)?))
    };
    parts(a).is_some_and(|a| parts(b) == Some(a))
}

/// Whether the file looks like an image of this block device. False if the device cannot be read.
fn may_be_image_of(root: &Root, name: &str, file: &File, file_bytes: u64) -> bool {
    let number = |name: &str, what: &str| -> Option<u64> {
        root.word(&format!("/sys/class/block/{name}/{what}"))?.parse().ok()
    };
    let Some(bytes) = number(name, "size").filter(|s| *s > 0).map(|sectors| sectors * SECTOR) else {
        return false;
    };
    let path = root.path(&format!("/dev/{}", name.replace('!', "/")));
    let Ok(device) = File::options().read(true).custom_flags(O_NONBLOCK).open(path) else { return false };
    let Ok(identities) = Content::from_file(&device, 0, bytes).identities() else { return false };
    let disk = stack::disk_of_partition(root, name).unwrap_or_else(|| name.to_owned());
    let in_disk = number(name, "start").unwrap_or(0).saturating_mul(SECTOR);
    let in_image = number(&disk, "loop/offset").unwrap_or(0).saturating_add(in_disk);
    BTreeSet::from([0, in_disk, in_image]).into_iter().filter(|start| *start < file_bytes).any(|start| {
        if identities.is_empty() {
            return same_block(&device, file, start);
        }
        let here = Content::from_file(file, start, file_bytes - start).identities().unwrap_or_default();
        identities.iter().any(|identity| here.contains(identity))
    })
}

/// Returns whether a file has the first block of a device at offset `start`. A block of one repeated byte,
/// such as zeros, proves nothing.
fn same_block(device: &File, file: &File, start: u64) -> bool {
    let (mut there, mut here) = ([0; BLOCK], [0; BLOCK]);
    device.read_exact_at(&mut there, 0).is_ok()
        && file.read_exact_at(&mut here, start).is_ok()
        && there == here
        && there.iter().any(|byte| *byte != there[0])
}

#[test]
fn two_files_are_the_same_only_with_the_same_length_and_ends() -> std::io::Result<()> {
    let file = |bytes: &[u8]| -> std::io::Result<File> {
        let file = tempfile::tempfile()?;
        file.write_all_at(bytes, 0)?;
        Ok(file)
    };
    let content = [1; 3 * BLOCK];
    let mut other = content;
    other[3 * BLOCK - 1] = 2;
    assert!(is_same(&file(&content)?, &file(&content)?) && is_same(&file(&[])?, &file(&[])?));
    assert!(!is_same(&file(&content)?, &file(&other)?));
    assert!(!is_same(&file(&content)?, &file(&content[1..])?));
    Ok(())
}

#[cfg(test)]
mod tests;
