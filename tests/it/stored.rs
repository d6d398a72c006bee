//! What is stored: files that live in their inode, and compressed ones.
//!
//! For: real file systems that store bytes in their own way. Not for: holes and caches (`honesty`).

use crate::disk::{Disk, Image};
use crate::stage::{Stage, is_root};

const SHORT: &str = "--time 300ms --warmup 50ms --runs 1 --quiet --format json";

#[test]
fn a_file_in_its_inode_is_named_so() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4 inline", Image::Direct) else { return };
    disk.sh("head -c 100 /dev/urandom > tiny && sync");
    let words = format!("run --rw randread --bs 50 --cache buffered --depth 1 {SHORT}");
    let report = disk.fathom(&stage, &words, &disk.dir.join("tiny")).report();
    assert_eq!(report.must_say("A06", "finding")["severity"], "rename");
    disk.file("large", 16);
    disk.sh("sync");
    disk.fathom(&stage, &words, &disk.dir.join("large")).report().must_say("A06", "holds");
}

#[test]
fn a_compressed_file_is_fewer_bytes_on_the_disk() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "btrfs", Image::Direct) else { return };
    disk.sh("mkdir d && btrfs property set d compression zstd && yes fathom | head -c 32M > d/text && sync");
    let words = format!("run --rw randread --cache buffered --depth 1 {SHORT}");
    let report = disk.fathom(&stage, &words, &disk.dir.join("d/text")).report();
    assert_eq!(report.must_say("A07", "finding")["severity"], "biased");
    disk.file("plain", 16);
    disk.sh("sync");
    disk.fathom(&stage, &words, &disk.dir.join("plain")).report().must_say("A07", "holds");
}
