//! What is stored on a device: libblkid where it is, and a table of our own beside it.
//!
//! For: names of file systems, RAID and volume members, encryption and partition tables. Not for: deciding what follows.
//! Why both are asked: the library may be missing or older than a format, and the table knows fewer formats.

use model::Known;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes read from the beginning: every fixed place of the table, and the ring of ZFS uberblocks.
const HEAD_BYTES: usize = 256 << 10;
/// Bytes read from the end: the old RAID superblock is up to 128 KiB away from it.
const TAIL_BYTES: u64 = 128 << 10;

/// What the table knows of a file system whose superblock bears the same magic in all its versions.
const ANY_EXT: &str = "ext2, ext3 or ext4";

/// Magic numbers at fixed offsets. Names are those of libblkid.
const FIXED: [(&str, usize, &[u8]); 31] = [
    ("xfs", 0, b"XFSB"),
    ("btrfs", 0x1_0040, b"_BHRfS_M"),
    ("f2fs", 0x400, &[0x10, 0x20, 0xf5, 0xf2]),
    ("swap", 0xff6, b"SWAPSPACE2"),
    ("swap", 0xff6, b"SWAP-SPACE"),
    ("swap", 0x3ff6, b"SWAPSPACE2"),
    ("swap", 0xfff6, b"SWAPSPACE2"),
    ("swsuspend", 0xff6, b"S1SUSPEND"),
    ("LVM2_member", 0x18, b"LVM2 001"),
    ("LVM2_member", 0x218, b"LVM2 001"),
    ("LVM2_member", 0x418, b"LVM2 001"),
    ("LVM2_member", 0x618, b"LVM2 001"),
    ("crypto_LUKS", 0, b"LUKS\xba\xbe"),
    ("crypto_LUKS", 0x4000, b"SKUL\xba\xbe"),
    ("BitLocker", 3, b"-FVE-FS-"),
    ("linux_raid_member", 0, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("linux_raid_member", 0x1000, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("gpt", 0x200, b"EFI PART"),
    ("gpt", 0x1000, b"EFI PART"),
    ("ntfs", 3, b"NTFS    "),
    ("exfat", 3, b"EXFAT   "),
    ("vfat", 0x52, b"FAT32   "),
    ("vfat", 0x36, b"FAT16   "),
    ("vfat", 0x36, b"FAT12   "),
    ("iso9660", 0x8001, b"CD001"),
    ("udf", 0x8001, b"BEA01"),
    ("squashfs", 0, b"hsqs"),
    ("erofs", 0x400, &[0xe2, 0xe1, 0xf5, 0xe0]),
    ("bcache", 0x1018, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f]),
    ("bcachefs", 0x1018, &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf]),
    ("ceph_bluestore", 0, b"bluestore block device"),
];

/// Names of what is stored on an open device of `bytes`; empty where both found nothing.
///
/// # Errors
/// Why nobody could look: the device cannot be read.
pub fn look(file: &File, bytes: u64) -> Known<Vec<String>> {
    let mut found = by_table(file, bytes)?;
    // A library that is missing or fails leaves the table, which has read the device.
    if let Some(name) = sys::blkid::signature(file).ok().flatten() {
        add(&mut found, name);
    }
    Ok(found)
}

/// Adds the library's name to those of the table.
fn add(found: &mut Vec<String>, name: String) {
    // The library tells which of the three it is.
    found.retain(|known| known != ANY_EXT || !name.starts_with("ext"));
    if !found.contains(&name) {
        found.push(name);
    }
}

fn by_table(file: &File, bytes: u64) -> Known<Vec<String>> {
    let head = read(file, 0, (HEAD_BYTES as u64).min(bytes))?;
    let start = bytes.saturating_sub(TAIL_BYTES) / 512 * 512;
    let tail = read(file, start, bytes - start)?;
    let mut found = in_head(&head);
    found.extend(in_tail(&tail, start, bytes));
    found.dedup();
    Ok(found.into_iter().map(str::to_owned).collect())
}

fn read(file: &File, offset: u64, length: u64) -> Known<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset).map_err(|e| format!("reading at {offset}: {e}"))?;
    Ok(bytes)
}

/// Names found in the first bytes of a device.
pub fn in_head(head: &[u8]) -> Vec<&'static str> {
    let fixed = FIXED.iter().filter(|(_, at, magic)| head.get(*at..*at + magic.len()) == Some(*magic));
    let mut found: Vec<&str> = fixed.map(|(name, _, _)| *name).collect();
    let more = [(ANY_EXT, is_ext(head)), ("dos", is_dos(head)), ("zfs_member", is_zfs(head))];
    found.extend(more.into_iter().filter(|(_, is)| *is).map(|(name, _)| name));
    found.dedup();
    found
}

/// Two bytes of magic are too few, so the revision and the block size have to make sense as well.
fn is_ext(head: &[u8]) -> bool {
    let at = |offset: usize| number(head, 0x400 + offset);
    head.get(0x438..0x43a) == Some(&[0x53, 0xef])
        && at(0x18).is_some_and(|log_block| log_block <= 6)
        && at(0x4c).is_some_and(|revision| revision <= 1)
}

/// Boot signature, and four entries that could be partitions, at least one of which is.
fn is_dos(head: &[u8]) -> bool {
    let entries = head.get(446..510).unwrap_or_default().as_chunks::<16>().0;
    head.get(510..512) == Some(&[0x55, 0xaa])
        && entries.iter().all(|e| matches!(e[0], 0 | 0x80))
        && entries.iter().any(|e| e[4] != 0)
}

/// Any uberblock of the first label.
fn is_zfs(head: &[u8]) -> bool {
    let ring = head.get(128 << 10..256 << 10).unwrap_or_default();
    let magic = 0x00ba_b10c_u64;
    ring.as_chunks::<1024>()
        .0
        .iter()
        .any(|block| block.starts_with(&magic.to_le_bytes()) || block.starts_with(&magic.to_be_bytes()))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// RAID superblocks of formats 0.90 and 1.0, and the second partition table of GPT. `tail` begins at byte `start`.
fn in_tail(tail: &[u8], start: u64, bytes: u64) -> Vec<&'static str> {
    let sectors = bytes / 512;
    let old = (bytes & !0xffff).checked_sub(0x1_0000);
    let new = (sectors.saturating_sub(16) & !7).checked_mul(512).filter(|_| sectors >= 24);
    let at = |offset: Option<u64>, magic: &[u8]| {
        let from = offset.and_then(|o| usize::try_from(o.checked_sub(start)?).ok());
        from.and_then(|f| tail.get(f..f + magic.len())) == Some(magic)
    };
    let raid = [0xfc, 0x4e, 0x2b, 0xa9];
    let mut found = Vec::new();
    if at(old, &raid) || at(new, &raid) {
        found.push("linux_raid_member");
    }
    if at(bytes.checked_sub(512), b"EFI PART") || at(bytes.checked_sub(4096), b"EFI PART") {
        found.push("gpt");
    }
    found
}

#[test]
fn every_entry_of_the_table_is_found_where_it_belongs() {
    for (name, at, magic) in FIXED {
        let mut head = vec![0; HEAD_BYTES];
        head[at..at + magic.len()].copy_from_slice(magic);
        assert_eq!(in_head(&head), [name]);
        assert_eq!(in_head(&head[..at + magic.len() - 1]), [""; 0], "{name} cut off");
    }
}

#[test]
fn random_data_and_zeros_bear_no_signature() {
    let mut head = vec![0; HEAD_BYTES];
    assert_eq!(in_head(&head), [""; 0]);
    for key in 0..50 {
        model::payload::fill(&mut head, key);
        assert_eq!(in_head(&head), [""; 0]);
        assert_eq!(in_tail(&head[..TAIL_BYTES as usize], 0, TAIL_BYTES), [""; 0]);
    }
    assert_eq!(in_head(&[]), [""; 0]);
    assert_eq!(in_tail(&[], 0, 0), [""; 0]);
}

#[test]
fn tables_of_partitions_and_ext_need_more_than_their_two_bytes() {
    let mut head = vec![0; HEAD_BYTES];
    head[510..512].copy_from_slice(&[0x55, 0xaa]);
    head[0x438..0x43a].copy_from_slice(&[0x53, 0xef]);
    head[0x44c] = 9;
    assert_eq!(in_head(&head), [""; 0]);
    head[0x44c] = 1;
    head[450] = 0x83;
    assert_eq!(in_head(&head), [ANY_EXT, "dos"]);
    let mut found: Vec<String> = in_head(&head).into_iter().map(str::to_owned).collect();
    add(&mut found, "ext4".into());
    assert_eq!(found, ["dos", "ext4"], "the library tells it more exactly");
}

#[test]
fn raid_at_the_end_is_found() {
    let bytes = 10 << 20;
    let start = bytes - TAIL_BYTES;
    for at in [bytes - 0x1_0000, bytes - 8192] {
        let mut tail = vec![0; TAIL_BYTES as usize];
        let from = (at - start) as usize;
        tail[from..from + 4].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9]);
        assert_eq!(in_tail(&tail, start, bytes), ["linux_raid_member"]);
    }
}
