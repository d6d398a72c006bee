//! Whether anybody uses a device or file: mounts, swap, volumes, loop devices.
//!
//! For: one sentence that names the user. Not for: what is stored on a device that nobody uses (that is `signature`).

use crate::mountinfo::{self, unescape};
use crate::root::Root;
use crate::stack;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Deepest chain of holders that is followed to find a name for the user.
const MAX_HOLDERS: usize = 16;

/// Who uses a device, a part of it, or what is built on it. `Err`: nobody can tell.
pub(crate) fn device(root: &Root, name: &str) -> Result<Option<String>, String> {
    // A file system on the whole disk loses its data too when a partition is written.
    let family: Vec<String> = std::iter::once(name.to_owned())
        .chain(partitions(root, name))
        .chain(stack::parent(root, name))
        .collect();
    let disk = stack::parent(root, name);
    for member in &family {
        let own = direct_user(root, member)?;
        let held = if Some(member) == disk.as_ref() { None } else { holder(root, member)? };
        if let Some(user) = own.or(held) {
            return Ok(Some(format!("{member} is {user}")));
        }
    }
    Ok(None)
}

fn partitions(root: &Root, name: &str) -> Vec<String> {
    let dir = format!("/sys/class/block/{name}");
    let names = root.list(&dir).unwrap_or_default();
    names.into_iter().filter(|n| root.has(&format!("{dir}/{n}/partition"))).collect()
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
        use_of_last = direct_user(root, &next)?;
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

/// Mounted, swapped on, part of a mounted btrfs, or behind a loop device.
fn direct_user(root: &Root, name: &str) -> Result<Option<String>, String> {
    let Some(number) = stack::number_of(root, name) else {
        return Err(format!("/sys shows no device number of {name}"));
    };
    let mounts = mountinfo::read(root).map_err(|why| format!("/proc/self/mountinfo: {why}"))?;
    // File systems of several devices show an anonymous number, and the device as their source.
    let by = |m: &&mountinfo::Mount| {
        m.number == number
            || (m.source.starts_with("/dev/") && root.device_number(&m.source).as_ref() == Some(&number))
    };
    if let Some(mount) = mounts.iter().find(by) {
        return Ok(Some(format!("mounted on {} as {}", mount.point, mount.kind)));
    }
    let same = |device: &str| root.device_number(device).as_ref() == Some(&number);
    if swaps(root)?.iter().any(|s| same(s)) {
        return Ok(Some("swap space in use".into()));
    }
    for id in root.list("/sys/fs/btrfs").unwrap_or_default() {
        if root.list(&format!("/sys/fs/btrfs/{id}/devices")).is_ok_and(|d| d.iter().any(|n| n == name)) {
            return Ok(Some(format!("part of the mounted btrfs {id}")));
        }
    }
    let loops = loops(root);
    let user = loops.into_iter().find(|(_, file)| same(file));
    Ok(user.map(|(device, _)| format!("behind {device}")))
}

/// Who uses a file as a device: swap or a loop device.
pub(crate) fn file(root: &Root, path: &Path) -> Result<Option<String>, String> {
    let key = |p: &Path| std::fs::metadata(p).ok().map(|m| (m.dev(), m.ino()));
    let Some(ours) = key(path) else { return Ok(None) };
    let same = |other: &str| key(&root.path(other)) == Some(ours);
    if swaps(root)?.iter().any(|s| same(s)) {
        return Ok(Some("swap space in use".into()));
    }
    let user = loops(root).into_iter().find(|(_, file)| same(file));
    Ok(user.map(|(device, _)| format!("behind {device}")))
}

/// Devices and files swapped on.
fn swaps(root: &Root) -> Result<Vec<String>, String> {
    match root.read("/proc/swaps") {
        Ok(text) => {
            Ok(text.lines().skip(1).filter_map(|l| l.split_ascii_whitespace().next()).map(unescape).collect())
        }
        // A kernel built without swap has no such file.
        Err(why) if why == "no such file" => Ok(Vec::new()),
        Err(why) => Err(format!("/proc/swaps: {why}")),
    }
}

/// Loop devices in use with their files.
fn loops(root: &Root) -> Vec<(String, String)> {
    let names = root.list("/sys/class/block").unwrap_or_default();
    let backing = |n: &String| root.word(&format!("/sys/class/block/{n}/loop/backing_file"));
    names.into_iter().filter(|n| n.starts_with("loop")).filter_map(|n| backing(&n).map(|f| (n, f))).collect()
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
        let found = device(&Root::at(dir.path().to_owned()), "sda");
        found.unwrap_or_else(|why| panic!("{why}")).unwrap_or_default()
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
    fn a_machine_that_does_not_show_its_mounts_is_no_permission() {
        let dir = fixture(&[]);
        fs::remove_file(dir.path().join("proc/self/mountinfo")).unwrap_or_else(|e| panic!("{e}"));
        assert!(device(&Root::at(dir.path().to_owned()), "sda").is_err());
    }
}
