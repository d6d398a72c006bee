//! Signatures that real tools write: refused under the name that `blkid` prints, and accepted after `wipefs`.
//!
//! Each row of `TABLE` makes an image with a tool of Debian. `./test` runs the rows whose tools it installs anyway, `./test --long` all.

use crate::stage::{Stage, skip};
use std::fs::File;
use std::process::Command;

/// Name, MiB of the image, and the shell command that makes it in `$F`. `d` is a directory with a file, `data` a file.
struct Row(&'static str, u64, &'static str);

/// Rows of tools that every Debian has, or that `./test` installs for other tests too.
const USUAL: &[Row] = &[
    Row("ext2", 16, "mkfs.ext2 -q -F $F"),
    Row("ext3", 16, "mkfs.ext3 -q -F $F"),
    Row("ext4", 16, "mkfs.ext4 -q -F $F"),
    Row("a journal", 16, "mkfs.ext4 -q -F -O journal_dev $F"),
    Row("xfs", 320, "mkfs.xfs -q -f $F"),
    Row("btrfs", 128, "mkfs.btrfs -q -f $F"),
    Row("erofs", 1, "mkfs.erofs $F d"),
    Row("swap", 1, "mkswap $F"),
    Row("swap of 64 KiB pages", 1, "mkswap -p 65536 $F"),
    Row("minix 1", 1, "mkfs.minix -1 $F"),
    Row("minix 2", 1, "mkfs.minix -2 $F"),
    Row("minix 3", 16, "mkfs.minix -3 $F"),
    Row("bfs", 1, "mkfs.bfs $F"),
    Row("cramfs", 1, "mkfs.cramfs d $F"),
    Row("cramfs of the other byte order", 1, "mkfs.cramfs -N big d $F"),
];

/// Rows whose tools only `./test --long` installs.
const RARE: &[Row] = &[
    Row("f2fs", 64, "mkfs.f2fs -q $F"),
    Row("exfat", 16, "mkfs.exfat $F"),
    Row("FAT12", 4, "mkfs.vfat -F 12 $F"),
    Row("FAT16", 32, "mkfs.vfat -F 16 $F"),
    Row("FAT32", 64, "mkfs.vfat -F 32 $F"),
    Row("ntfs", 16, "mkfs.ntfs -q -F -f $F"),
    Row("jfs", 32, "mkfs.jfs -q $F"),
    Row("nilfs2", 256, "mkfs.nilfs2 -q $F"),
    Row("ocfs2", 300, "yes | mkfs.ocfs2 -q -F -M local -N 1 $F"),
    Row("gfs2", 256, "mkfs.gfs2 -O -q -p lock_nolock -j 1 $F"),
    Row("reiserfs", 64, "mkfs.reiserfs -q -f -f $F"),
    Row("reiser4", 64, "mkfs.reiser4 -y -f $F"),
    Row("udf", 16, "mkudffs $F"),
    Row("udf of 4 KiB blocks", 16, "mkudffs -b 4096 $F"),
    Row("iso9660", 1, "genisoimage -quiet -o $F d"),
    Row("squashfs", 1, "mksquashfs d $F -quiet -noappend"),
    Row("LUKS 1", 16, "echo secret | cryptsetup luksFormat -q --type luks1 --iter-time 1 $F -"),
    Row(
        "LUKS 2",
        32,
        "echo secret | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --iter-time 1 $F -",
    ),
    Row("verity", 1, "veritysetup format data $F"),
    Row("bcache", 16, "make-bcache -B $F"),
    Row("a cache of bcache", 64, "make-bcache -C $F"),
    Row("dos", 16, "echo '2048,' | sfdisk -q -X dos $F"),
    Row("dos without partitions", 16, "echo 'label: dos' | sfdisk -q $F"),
    Row("gpt", 16, "echo 'label: gpt' | sfdisk -q $F"),
    Row("sun", 16, "echo 'label: sun' | sfdisk -q $F"),
    Row("sgi", 16, "echo 'label: sgi' | sfdisk -q $F"),
    Row("mac", 16, "parted -s $F mklabel mac"),
    Row("atari", 16, "parted -s $F mklabel atari mkpart primary 1MiB 8MiB"),
];

/// Runs a shell command with the image as `$F`. Returns its output, or why it failed.
fn sh(stage: &Stage, image: &str, line: &str) -> Result<String, String> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("F", image).current_dir(stage.path(""));
    let out = command.output().map_err(|e| e.to_string())?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned());
    }
    Err(format!("{line}: {}", String::from_utf8_lossy(&out.stderr).trim()))
}

fn names(stage: &Stage, image: &str) -> Vec<String> {
    let file = File::open(stage.path(image)).unwrap();
    let bytes = file.metadata().unwrap().len();
    machine::signature::signatures(&file, bytes).unwrap()
}

#[track_caller]
fn agrees_with_blkid(rows: &[Row]) {
    let stage = Stage::shared();
    std::fs::write(stage.folder("d").join("file"), "content").unwrap();
    File::create(stage.path("data")).unwrap().set_len(1 << 20).unwrap();
    for Row(what, mib, line) in rows {
        File::create(stage.path("image")).unwrap().set_len(mib << 20).unwrap();
        assert_eq!(names(&stage, "image"), [""; 0], "an empty image");
        if let Err(why) = sh(&stage, "image", line) {
            skip(&format!("{what}: {why}"));
            continue;
        }
        let probed = sh(&stage, "image", "blkid -p -s TYPE -s PTTYPE -o value $F").unwrap();
        let mut probed: Vec<&str> = probed.lines().collect();
        // Older versions of blkid also report the boot sector of exfat as a partition table.
        if probed.len() > 1 {
            probed.retain(|name| *name != "dos");
        }
        assert_eq!(names(&stage, "image"), probed, "{what}");
        sh(&stage, "image", "wipefs --all --quiet --force $F").unwrap();
        assert_eq!(names(&stage, "image"), [""; 0], "{what}, wiped");
    }
}

#[test]
fn signatures_are_named_as_by_blkid_and_gone_after_wipefs() {
    agrees_with_blkid(USUAL);
}

#[test]
#[ignore = "makes every file system that Debian has tools for; ./test --long runs it"]
fn every_debian_signature_is_named_as_by_blkid() {
    agrees_with_blkid(RARE);
}
