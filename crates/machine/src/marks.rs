//! What tells a device from another one that has had its number: its serial number, how it was bound, where it begins.
//!
//! For: an [`Identity`] that is still right after a disk was exchanged. Not for: files, whose inodes say enough.

use crate::root::Root;
use crate::{loops, stack};
use model::machine::Identity;

/// An identity with all that tells a device from another one that has had its number.
pub fn marked(root: &Root, what: Identity) -> Identity {
    match what {
        Identity::Device { number, .. } => {
            let name = stack::name_of(root, &number);
            Identity::Device { marks: name.map(|n| marks(root, &n)).unwrap_or_default(), number }
        }
        file @ Identity::File { .. } => file,
    }
}

fn marks(root: &Root, name: &str) -> Vec<String> {
    let disk = stack::parent(root, name).unwrap_or_else(|| name.to_owned());
    let serial = stack::serial(root, name).map(|s| format!("serial number {s}"));
    // The kernel counts disks as they appear and as their medium changes, loop devices as they are bound.
    let sequence =
        root.word(&format!("/sys/class/block/{disk}/diskseq")).map(|n| format!("disk sequence {n}"));
    let start =
        root.word(&format!("/sys/class/block/{name}/start")).map(|s| format!("partition from sector {s}"));
    let words = |(what, offset): (Identity, u64)| match what {
        Identity::File { device, inode } => {
            format!("a loop over inode {inode} of {device} from byte {offset}")
        }
        Identity::Device { number, .. } => format!("a loop over device {number} from byte {offset}"),
    };
    let behind = disk.starts_with("loop").then(|| loops::behind(root, &disk).ok().map(words)).flatten();
    [serial, behind, start, sequence].into_iter().flatten().collect()
}
