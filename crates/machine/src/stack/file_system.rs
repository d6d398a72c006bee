//! From a file system down to the devices that it is on.
//!
//! For: each kind of file system, overlays and those of several devices included. Not for: what is below a device
//! ([`super::Stack`]), nor which file system a path is in ([`crate::mountinfo`]).

use super::Stack;
use crate::file_status;
use crate::mountinfo::{Mount, mount_of};
use crate::overlays;
use std::path::Path;

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

/// Follows a file system to its devices. `path` is a file or directory in it, for those that spread over several.
pub(crate) fn below_file_system(
    stack: &mut Stack<'_>,
    mount: Option<&Mount>,
    number: &str,
    path: Option<&Path>,
) -> Below {
    follow(stack, mount, number, path, overlays::MOST)
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
    let name = stack.root.device_number(&mount.source).and_then(|n| super::name_of(stack.root, &n));
    let ids = stack.root.list("/sys/fs/btrfs").unwrap_or_default();
    let devices = |id: &String| stack.root.list(&format!("/sys/fs/btrfs/{id}/devices")).unwrap_or_default();
    let all = name.and_then(|name| ids.iter().map(devices).find(|d| d.contains(&name)));
    let Some(all) = all else { return sources(stack, mount, std::iter::once(mount.source.as_str())) };
    let numbers: Vec<String> = all.iter().filter_map(|n| super::number_of(stack.root, n)).collect();
    Below { tops: numbers.iter().filter_map(|n| stack.add(n)).collect(), ..Below::default() }
}

/// The layer of an overlay that holds the path: the upper one for directories and files that were copied up, else a lower one.
fn overlay(stack: &mut Stack<'_>, mount: &Mount, path: Option<&Path>, more: usize) -> Below {
    let Some(more) = more.checked_sub(1) else {
        return Below::blind("overlays on overlays, too many to follow");
    };
    let point = Path::new(&mount.point);
    let inside = path.filter(|p| std::path::absolute(p).is_ok_and(|p| p.starts_with(point)));
    let there = match overlays::data_path(stack.root, mount, inside.unwrap_or(point)) {
        Ok(there) => there,
        Err(why) => return Below::blind(why),
    };
    let Ok(status) = file_status::by_path(&there) else {
        return Below::blind(overlays::hidden(mount));
    };
    let number = &status.file_system_number;
    let mounts = stack.mounts;
    let below = mount_of(mounts, status.mount_id, number, &there.to_string_lossy());
    // Its names may lead back into the overlay itself.
    if below.is_some_and(|b| b.id == mount.id) {
        return Below::blind(overlays::hidden(mount));
    }
    follow(stack, below, number, Some(&there), more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mountinfo;
    use crate::root::Root;

    #[test]
    fn memory_and_remote_file_systems_have_no_device() {
        let root = Root::at("/nonexistent-prefix".into());
        for (kind, ram) in
            [("tmpfs", true), ("fuse.sshfs", false), ("nfs4", false), ("9p", false), ("zfs", false)]
        {
            let mounts = mountinfo::parse(&format!("1 0 0:40 / /m rw - {kind} somewhere rw"));
            let mut stack = Stack::new(&root, &mounts);
            let found = below_file_system(&mut stack, mounts.first(), "0:40", None);
            assert_eq!(
                (found.ram.is_some(), found.blind.is_some(), found.tops.len()),
                (ram, !ram, 0),
                "{kind}"
            );
        }
    }
}
