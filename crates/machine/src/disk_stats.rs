//! The counters of all block devices at one moment.
//!
//! For: one read of `/proc/diskstats`, and what tells a device from another one of its name a moment later. Not for: what happened between
//! two moments (the crate `analysis`).

use crate::root::Root;
use crate::{in_use, stack};
use model::Known;
use model::evidence::{DiskCounters, lines};

/// Where they stand.
const FILE: &str = "/proc/diskstats";

/// A device with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Kernel name.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    /// Its counters since it is there.
    pub counters: DiskCounters,
}

/// Looks at all of them, in the kernel's order.
///
/// # Errors
/// Why they cannot be read.
pub fn read_disk_stats(root: &Root) -> Known<Vec<Counted>> {
    let text = root.read(FILE).map_err(|why| format!("{FILE}: {why}"))?;
    let own = |line: model::evidence::DiskLine<'_>| Counted {
        name: line.name.to_owned(),
        number: line.number,
        counters: line.counters,
    };
    Ok(lines(&text).map(own).collect())
}

/// Whether it is a disk or a volume, and no partition, and has a size: loop devices without a file have none.
pub fn is_whole(root: &Root, name: &str) -> bool {
    let sectors = root.word(&format!("/sys/class/block/{name}/size")).and_then(|w| w.parse::<u64>().ok());
    sectors.is_some_and(|n| n > 0) && stack::parent(root, name).is_none()
}

/// The kernel names of the partitions of a disk, by number.
pub fn partitions(root: &Root, disk: &str) -> Vec<String> {
    let mut names = in_use::partitions(root, disk);
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

/// How often the kernel has counted a new disk, a new medium or a new file behind a loop device up to this one (`diskseq`); `None` before
/// Linux 5.15. Of a partition that of its disk.
pub fn sequence(root: &Root, name: &str) -> Option<String> {
    let own = root.word(&format!("/sys/class/block/{name}/diskseq"));
    own.or_else(|| root.word(&format!("/sys/class/block/{}/diskseq", stack::parent(root, name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{link, put};

    #[test]
    fn partitions_and_what_has_no_size_are_no_disks() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        for (path, name, size) in [("vda", "vda", "8"), ("vda/vda1", "vda1", "4"), ("loop0", "loop0", "0")] {
            put(&format!("sys/devices/block/{path}/size"), size);
            link(dir.path(), &format!("../../devices/block/{path}"), &format!("sys/class/block/{name}"));
        }
        put("sys/devices/block/vda/vda1/partition", "1");
        put("sys/devices/block/vda/diskseq", "9\n");
        put("proc/diskstats", "254 0 vda 1 0 8 1 0 0 0 0 0 1 1\n254 1 vda1 1 0 8 1 0 0 0 0 0 1 1\n");
        let root = Root::at(dir.path().to_owned());
        let whole = ["vda", "vda1", "loop0", "gone"].map(|name| is_whole(&root, name));
        assert_eq!(whole, [true, false, false, false]);
        assert_eq!(sequence(&root, "vda1").as_deref(), Some("9"));
        let seen = read_disk_stats(&root).unwrap_or_else(|e| panic!("{e}"));
        let names: Vec<(&str, &str)> = seen.iter().map(|d| (d.name.as_str(), d.number.as_str())).collect();
        assert_eq!(names, [("vda", "254:0"), ("vda1", "254:1")]);
        assert!(
            read_disk_stats(&Root::at("/nonexistent-prefix".into()))
                .is_err_and(|why| why.contains("/proc/diskstats"))
        );
    }
}
