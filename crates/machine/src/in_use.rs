//! Whether anybody uses a device or file: mounts, swap, volumes, loop devices.
//!
//! For: one sentence that names the user. Not for: what is stored on a device that nobody uses (that is `signature`).
//! Device and inode decide and not names: these differ between mount namespaces, and are linked, bound and removed.

use crate::error::describe;
use crate::loops::{self, Loop};
use crate::mountinfo::{self, Mount, unescape};
use crate::root::Root;
use crate::usage::Use;
use crate::{identity, others, overlays, same_content, stack, writers};
use model::machine::Identity;
use model::name;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What is said of swap files and devices.
const SWAP: &str = "swap space in use";

/// File systems that are mounted from a file as it is.
const OF_FILES: &[&str] = &["erofs"];

const O_NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// Deepest chain of holders that is followed to find a name for the user.
const MAX_HOLDERS: usize = 16;

/// Who uses a device, a part of it, what is built on it or what it is built on. `Err`: nobody can tell.
pub(crate) fn device(root: &Root, name: &str) -> Result<Use, String> {
    if let Some(user) = device_except(root, name, None, MAX_HOLDERS)? {
        return Ok(Use::By(user));
    }
    Ok(writers::of_devices(root, &below(root, name)))
}

/// Everything that a write to a device changes: its relatives, and those of the devices and files that they are built on.
fn below(root: &Root, name: &str) -> Vec<Identity> {
    let mut all = Vec::new();
    let mut left = vec![name.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(name) = left.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let family = relatives(root, &name);
        all.extend(family.iter().filter_map(|n| stack::number_of(root, n)).map(identity::of_device));
        let disk = stack::parent(root, &name).unwrap_or(name);
        left.extend(root.list(&format!("/sys/class/block/{disk}/slaves")).unwrap_or_default());
        let Some(own) = loops::find_loop(root, &disk) else { continue };
        if let Ok(Identity::Device { number, .. }) = &own.backing {
            left.extend(stack::name_of(root, number));
        }
        all.extend(own.backing.ok());
        all.extend(own.beneath);
    }
    all
}

/// A device, the partitions that share bytes with it, and its disk, where it is a partition itself.
fn relatives(root: &Root, name: &str) -> Vec<String> {
    let disk = stack::parent(root, name);
    let parts = partitions(root, disk.as_deref().unwrap_or(name));
    let parts = parts.into_iter().filter(|p| p != name && overlap(root, name, p));
    // A file system on the whole disk loses its data too when a partition is written.
    std::iter::once(name.to_owned()).chain(parts).chain(disk.clone()).collect()
}

/// Who uses a device, a part of it, what is built on it or what it is built on, without programs, and without the loop device `above`, from
/// which the question came down; `None` where nobody does. `Err`: nobody can tell.
fn device_except(
    root: &Root,
    name: &str,
    above: Option<&str>,
    depth: usize,
) -> Result<Option<String>, String> {
    let disk = stack::parent(root, name);
    for member in relatives(root, name) {
        let own = direct_user(root, &member, above)?;
        if let Some(user) = own.map_or_else(|| holder(root, &member), |own| Ok(Some(own)))? {
            return Ok(Some(format!("{member} is {user}")));
        }
    }
    if depth == 0 { Ok(None) } else { sharer(root, disk.as_deref().unwrap_or(name), depth) }
}

/// Who else uses what a loop device is over: another one on other bytes of it may be mounted.
fn sharer(root: &Root, name: &str, depth: usize) -> Result<Option<String>, String> {
    let Some(own) = loops::find_loop(root, name) else { return Ok(None) };
    let backing = own.backing.map_err(|why| format!("what is behind {name} is not known: {why}"))?;
    if let Identity::Device { number, .. } = &backing {
        let Some(below) = stack::name_of(root, number) else { return Ok(None) };
        let user = device_except(root, &below, Some(name), depth - 1)?;
        return Ok(user.map(|user| format!("{name} is over {below}, and {user}")));
    }
    let mut loops = loops::all(root)?;
    loops.retain(|l| l.name != name);
    Ok(over(&loops, &backing)
        .map(|l| format!("{name} is over a file that is also {}", behind(root, &l.name))))
}

/// The partitions of a disk.
pub(crate) fn partitions(root: &Root, name: &str) -> Vec<String> {
    let dir = format!("/sys/class/block/{name}");
    let names = root.list(&dir).unwrap_or_default();
    names.into_iter().filter(|n| root.has(&format!("{dir}/{n}/partition"))).collect()
}

/// Whether a partition of the same disk shares bytes with a device; also where nobody can tell.
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

/// What is built on the device, and what that is used for.
fn holder(root: &Root, name: &str) -> Result<Option<String>, String> {
    let mut at = name.to_owned();
    let mut names = Vec::new();
    let mut use_of_last = None;
    for _ in 0..MAX_HOLDERS {
        let Some(next) = root.list(&format!("/sys/class/block/{at}/holders")).unwrap_or_default().pop()
        else {
            break;
        };
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

/// `dm-0 (vg-root)`.
fn label(root: &Root, name: &str) -> String {
    match root.word(&format!("/sys/class/block/{name}/dm/name")) {
        Some(full) => format!("{name} ({full})"),
        None => name.to_owned(),
    }
}

/// Mounted in whichever mount namespace, swapped on, part of a mounted btrfs, or behind a loop device.
fn direct_user(root: &Root, name: &str, above: Option<&str>) -> Result<Option<String>, String> {
    let Some(number) = stack::number_of(root, name) else {
        return Err(format!("/sys shows no device number of {name}"));
    };
    if let Some(mount) = mounted(root, &number)? {
        return Ok(Some(mount));
    }
    let ours = identity::of_device(number);
    if swaps(root)?.iter().any(|s| s.is_same(&ours)) {
        return Ok(Some(SWAP.into()));
    }
    for id in root.list("/sys/fs/btrfs").unwrap_or_default() {
        if root.list(&format!("/sys/fs/btrfs/{id}/devices")).is_ok_and(|d| d.iter().any(|n| n == name)) {
            return Ok(Some(format!("part of the mounted btrfs {id}")));
        }
    }
    let mut loops = loops::all(root)?;
    loops.retain(|l| Some(l.name.as_str()) != above);
    if let Some(user) = over(&loops, &ours) {
        return Ok(Some(behind(root, &user.name)));
    }
    doubts(&loops, |_| true).map_or(Ok(None), Err)
}

/// The loop device that is over this.
fn over<'l>(loops: &'l [Loop], what: &Identity) -> Option<&'l Loop> {
    loops.iter().find(|l| l.is_over(what))
}

/// Where and by whom a device is mounted, over all mount namespaces that can be seen.
fn mounted(root: &Root, number: &str) -> Result<Option<String>, String> {
    let own = mountinfo::read(root).map_err(|why| format!("/proc/self/mountinfo: {why}"))?;
    if let Some(mount) = mount_of(root, &own, number, "") {
        return Ok(Some(format!("mounted on {} as {}", mount.point, mount.kind)));
    }
    Ok(mountinfo::elsewhere(root).into_iter().find_map(|(process, mounts)| {
        let mount = mount_of(root, &mounts, number, &format!("/proc/{process}/root"))?;
        let who = others::name(root, process);
        Some(format!("mounted on {} as {} in the mount namespace of {who}", mount.point, mount.kind))
    }))
}

/// The mount of a device. `inside` leads to the names of its namespace.
fn mount_of<'m>(root: &Root, mounts: &'m [Mount], number: &str, inside: &str) -> Option<&'m Mount> {
    mounts.iter().find(|m| is_of(root, m, number, inside))
}

/// Whether a mount is of a device. `inside` leads to the names of its namespace.
pub(crate) fn is_of(root: &Root, mount: &Mount, number: &str, inside: &str) -> bool {
    let source = || root.device_number(&format!("{inside}{}", mount.source));
    // File systems of several devices show an anonymous number, and the device as their source.
    mount.number == number || (mount.source.starts_with("/dev/") && source().as_deref() == Some(number))
}

/// Who uses a block device, without programs that have it open. A loop device is in use while it is bound.
fn user_of_device(root: &Root, name: &str) -> Result<Option<String>, String> {
    let disk = stack::parent(root, name).unwrap_or_else(|| name.to_owned());
    if loops::find_loop(root, &disk).is_some() {
        return Ok(Some(behind(root, name)));
    }
    device_except(root, name, None, 0)
}

/// Who uses an open file: swap, a mount, a loop device, or a program that has it open for writing; where an overlay shows it, also who
/// uses the file that holds its bytes; where a program mirrors a directory, what is mounted of the file of that name there (the program
/// itself has it open for writing as soon as anybody writes). `by_content` also compares what it holds with the devices in use, if its
/// file system shows files of another one or of another host. `Err`: nobody can tell.
pub(crate) fn file(root: &Root, file: &File, by_content: bool) -> Result<Use, String> {
    let own = itself(root, file)?;
    if matches!(own, Use::By(_)) {
        return Ok(own);
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let beneath = match overlays::beneath(root, &path) {
        Ok(all) => all,
        Err(why) => return Ok(Use::Unseen(why)),
    };
    let mut unseen = own;
    let mirrored = overlays::mirrored(root, &path);
    if let Some(mirrored) = &mirrored
        && let Ok(what) = identity::of_path(mirrored)
        && let Some(user) = mounted_of(root, &what)?
    {
        return Ok(Use::By(format!("{user} (as {})", name::shown(mirrored))));
    }
    let mut is_shared = writers::is_shared(file);
    for path in beneath {
        let shown = name::shown(&path);
        let below = open_to_read(&path)?;
        is_shared |= writers::is_shared(&below);
        match itself(root, &below)? {
            Use::By(user) => return Ok(Use::By(format!("{user} (as {shown})"))),
            Use::Unseen(why) => unseen = Use::Unseen(why),
            Use::Hidden(_) | Use::Nobody => {}
        }
    }
    // What the mirrored file is used for was found out above, if it is the same file.
    let mirrored = mirrored.and_then(|path| open_to_read(&path).ok()).filter(|m| !writers::is_shared(m));
    if !by_content || !is_shared || mirrored.is_some_and(|mirrored| same_content::is_same(file, &mirrored)) {
        return Ok(unseen);
    }
    match same_content::user(root, file, |name| user_of_device(root, name))? {
        Use::Nobody => Ok(unseen),
        found => Ok(found),
    }
}

fn open_to_read(path: &Path) -> Result<File, String> {
    let opened = File::options().read(true).custom_flags(O_NONBLOCK).open(path);
    opened.map_err(|e| format!("{}: {}", name::shown(path), describe(&e)))
}

/// Who uses an open file itself: swap, a mount, a loop device, or a program that has it open for writing. `Err`: nobody can tell.
fn itself(root: &Root, file: &File) -> Result<Use, String> {
    let ours = identity::of_file(file).map_err(|e| describe(&e))?;
    let swaps = swaps(root);
    if swaps.as_ref().is_ok_and(|all| all.iter().any(|s| s.is_same(&ours))) {
        return Ok(Use::By(SWAP.into()));
    }
    let mounted = mounted_file(root, &ours);
    if let Ok(Some(mount)) = mounted {
        return Ok(Use::By(mount));
    }
    let loops = loops::all(root)?;
    if let Some(user) = over(&loops, &ours) {
        return Ok(Use::By(behind(root, &user.name)));
    }
    let writers = writers::of_file(root, file);
    // Swap and a loop device that can be written have their file open for writing.
    let settled = matches!(writers, Use::Nobody);
    let unseen_swap = swaps.err().filter(|_| !settled);
    match unseen_swap.or_else(|| doubts(&loops, |l| l.read_only || !settled)) {
        Some(doubt) if !matches!(writers, Use::By(_)) => Err(doubt),
        // What is mounted without a loop device nobody has open for writing.
        _ => Ok(match (writers, mounted) {
            (Use::Nobody, Err(why)) => Use::Unseen(why),
            (writers, _) => writers,
        }),
    }
}

/// What is swapped on, mounted, or behind a loop device of a file, as far as that is known.
fn mounted_of(root: &Root, what: &Identity) -> Result<Option<String>, String> {
    if swaps(root).is_ok_and(|all| all.iter().any(|s| s.is_same(what))) {
        return Ok(Some(SWAP.into()));
    }
    if let Ok(Some(mount)) = mounted_file(root, what) {
        return Ok(Some(mount));
    }
    Ok(over(&loops::all(root)?, what).map(|user| behind(root, &user.name)))
}

/// Where and by whom a file is mounted without a loop device, as erofs can be and what programs in user space mount. `Err`: a file that
/// is mounted so is not known.
fn mounted_file(root: &Root, ours: &Identity) -> Result<Option<String>, String> {
    let own = mountinfo::read(root)
        .map_err(|why| format!("which files are mounted is not known: /proc/self/mountinfo: {why}"))?;
    let elsewhere = mountinfo::elsewhere(root);
    let spaces = std::iter::once((None, &own)).chain(elsewhere.iter().map(|(pid, all)| (Some(*pid), all)));
    let mut unknown = None;
    for (process, mounts) in spaces {
        let inside = process.map_or_else(String::new, |pid| format!("/proc/{pid}/root"));
        // Those of a device have its number.
        for mount in mounts.iter().filter(|m| m.number.starts_with("0:") && m.kind != "overlay") {
            let said = || format!("mounted on {} as {}", mount.point, mount.kind);
            if mount.source.starts_with('/') {
                let source = root.path(&format!("{inside}{}", mount.source));
                if identity::remembered(&source).is_ok_and(|it| it.is_same(ours)) {
                    return Ok(Some(said()));
                }
            } else if OF_FILES.contains(&mount.kind.as_str()) {
                unknown = Some(format!("what is {} has a relative name, {}", said(), mount.source));
            }
        }
    }
    unknown.map_or(Ok(None), Err)
}

/// A loop device, with what it is used for.
fn behind(root: &Root, name: &str) -> String {
    // What it is used for is told for the sake of the reader; that it is there is enough.
    let what = stack::number_of(root, name).and_then(|number| mounted(root, &number).ok().flatten());
    format!("behind {name}{}", what.map_or_else(String::new, |u| format!(", which is {u}")))
}

/// Which of these loop devices may have anything behind them, in words.
fn doubts(loops: &[Loop], counts: impl Fn(&Loop) -> bool) -> Option<String> {
    let (name, why) =
        loops.iter().filter(|l| counts(l)).find_map(|l| Some((&l.name, l.backing.as_ref().err()?)))?;
    Some(format!("what is behind {name} is not known: {why}"))
}

/// Devices and files swapped on that have a name here. The kernel itself keeps everybody from writing to any of them: the
/// device is claimed, and every write to the file is refused.
fn swaps(root: &Root) -> Result<Vec<Identity>, String> {
    let text = match root.read("/proc/swaps") {
        Ok(text) => text,
        // A kernel built without swap has no such file.
        Err(why) if why == "no such file" && root.has("/proc/self") => return Ok(Vec::new()),
        Err(why) => return Err(format!("/proc/swaps: {why}")),
    };
    let names = text.lines().skip(1).filter_map(|l| l.split_ascii_whitespace().next()).map(unescape);
    Ok(names.filter_map(|name| identity::of_name(root, &name).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::put;
    use std::fs;

    /// A disk `sda` with one partition, and whatever a test adds.
    fn fixture(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let base = [
            ("proc/self/mountinfo", "1 0 8:16 / / rw - ext4 /dev/sdb rw\n"),
            ("proc/swaps", "Filename Type Size Used Priority\n"),
            ("sys/class/block/sda/dev", "8:0\n"),
            ("sys/class/block/sda/sda1/partition", "1\n"),
            ("sys/class/block/sda1/dev", "8:1\n"),
            ("sys/class/block/dm-0/dev", "253:0\n"),
            ("sys/class/block/dm-0/dm/name", "vg-data\n"),
        ];
        for (path, text) in base.iter().chain(files) {
            put(dir.path(), path, text);
        }
        dir
    }

    fn user(files: &[(&str, &str)]) -> String {
        let dir = fixture(files);
        match device(&Root::at(dir.path().to_owned()), "sda").unwrap_or_else(|why| panic!("{why}")) {
            Use::By(user) => user,
            Use::Nobody | Use::Unseen(_) | Use::Hidden(_) => String::new(),
        }
    }

    #[test]
    fn each_kind_of_user_is_named() {
        assert_eq!(user(&[]), "");
        let mounted = "1 0 8:1 / /data rw - xfs /dev/sda1 rw\n";
        assert_eq!(user(&[("proc/self/mountinfo", mounted)]), "sda1 is mounted on /data as xfs");
        let btrfs = "1 0 0:40 / /b rw - btrfs /dev/sda rw\n";
        assert_eq!(user(&[("proc/self/mountinfo", btrfs)]), "sda is mounted on /b as btrfs");
        let swap = "Filename Type Size Used Priority\n/dev/sda1 partition 1 0 -2\n";
        assert_eq!(user(&[("proc/swaps", swap)]), "sda1 is swap space in use");
        let held = user(&[("sys/class/block/sda1/holders/dm-0", "")]);
        assert_eq!(held, "sda1 is part of dm-0 (vg-data)");
        let member = user(&[("sys/fs/btrfs/1234/devices/sda1", "")]);
        assert_eq!(member, "sda1 is part of the mounted btrfs 1234");
        let behind = user(&[("sys/class/block/loop3/loop/backing_file", "/dev/sda1\n")]);
        assert_eq!(behind, "sda1 is behind loop3");
    }

    #[test]
    fn a_container_an_overlapping_partition_and_other_bytes_of_a_loop_are_seen() {
        let dir = fixture(&[
            ("proc/7/mountinfo", "1 0 8:1 / /in rw - xfs /dev/sda1 rw\n"),
            ("proc/7/comm", "sh\n"),
        ]);
        crate::fixture::link(dir.path(), "mnt:[1]", "proc/self/ns/mnt");
        crate::fixture::link(dir.path(), "mnt:[2]", "proc/7/ns/mnt");
        let root = Root::at(dir.path().to_owned());
        let by = |words: &str| Ok(Use::By(words.to_owned()));
        let elsewhere = "sda1 is mounted on /in as xfs in the mount namespace of sh (7)";
        assert_eq!(device(&root, "sda"), by(elsewhere));

        let mounted = "1 0 8:1 / /data rw - xfs /dev/sda1 rw\n";
        let parts = |start: &str| {
            let dir = fixture(&[("proc/self/mountinfo", mounted)]);
            put(dir.path(), "sys/devices/sda/sda/dev", "8:0\n");
            put(dir.path(), "sys/devices/sda/sda/sda2/dev", "8:2\n");
            put(dir.path(), "sys/devices/sda/sda/sda2/partition", "2\n");
            put(dir.path(), "sys/class/block/sda/sda2/partition", "2\n");
            crate::fixture::link(dir.path(), "../../devices/sda/sda/sda2", "sys/class/block/sda2");
            for (name, start, size) in [("sda1", "0", "10"), ("sda2", start, "10")] {
                put(dir.path(), &format!("sys/class/block/{name}/start"), start);
                put(dir.path(), &format!("sys/class/block/{name}/size"), size);
            }
            device(&Root::at(dir.path().to_owned()), "sda2")
        };
        assert_eq!(parts("9"), by("sda1 is mounted on /data as xfs"));
        assert!(!matches!(parts("10"), Ok(Use::By(_))));

        let files = [
            ("sys/class/block/loop1/dev", "7:1\n"),
            ("sys/class/block/loop1/loop/backing_file", "/image\n"),
            ("sys/class/block/loop2/dev", "7:2\n"),
            ("sys/class/block/loop2/loop/backing_file", "/image\n"),
            ("image", ""),
        ];
        let dir = fixture(&files);
        let root = Root::at(dir.path().to_owned());
        assert_eq!(device(&root, "loop1"), by("loop1 is over a file that is also behind loop2"));
        // What is behind one of them is known to nobody: it may be any device.
        put(dir.path(), "sys/class/block/loop2/loop/backing_file", "/gone (deleted)\n");
        assert!(device(&root, "sda").is_err_and(|why| why.contains("behind loop2 is not known")));
    }

    #[test]
    fn a_machine_that_does_not_show_its_mounts_is_no_permission() {
        let dir = fixture(&[]);
        fs::remove_file(dir.path().join("proc/self/mountinfo")).unwrap_or_else(|e| panic!("{e}"));
        assert!(device(&Root::at(dir.path().to_owned()), "sda").is_err());
    }
}
