//! Finds out what a device or file holds: file systems, members of RAIDs and volumes, encryption, swap space,
//! partition tables.
//!
//! The tables cover every type that libblkid of util-linux detects, under libblkid's names, without loading that library. Where libblkid
//! has several names for one magic number (`hsqs` of squashfs 3 and 4, the two devices of scoutfs), the tables have one.
//! 1. `MAGICS` has the magic numbers of four bytes and more. One of them at its offset proves the format.
//! 2. `CHECKED` has a function for each other format. If the magic number is short, further fields must be plausible too, so that random
//!    data do not match.
//! 3. Negative offsets count from the end, where some RAIDs and the second copy of GPT are.
//! 4. A read that fails is an error, never "nothing found".
//!
//! `IDENTITIES` has the bytes that distinguish two file systems of one type. `in_use` uses them to compare a
//! file with mounted devices.

use crate::error::describe;
use model::Known;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const SECTOR: u64 = 512;
const KIB: i64 = 1024;
const MIB: i64 = 1024 * KIB;

/// Fills a slice with the bytes from an offset on.
type ReadAt<'r> = Box<dyn Fn(&mut [u8], u64) -> io::Result<()> + 'r>;

/// A file or device that can be read at any offset. Keeps the first failed read.
pub(crate) struct Content<'r> {
    bytes: u64,
    read: ReadAt<'r>,
    failure: RefCell<Option<String>>,
}

impl<'r> Content<'r> {
    pub(crate) fn new(bytes: u64, read: impl Fn(&mut [u8], u64) -> io::Result<()> + 'r) -> Self {
        Self { bytes, read: Box::new(read), failure: RefCell::new(None) }
    }

    /// Returns the part of a file or device that begins at offset `start` and has `bytes` bytes.
    pub(crate) fn from_file(file: &'r File, start: u64, bytes: u64) -> Self {
        Self::new(bytes, move |into, at| file.read_exact_at(into, start.saturating_add(at)))
    }

    /// Reads the bytes from offset `at` on; `None` beyond the end. Keeps a failed read in `failure`.
    fn fill(&self, at: u64, into: &mut [u8]) -> Option<()> {
        if at.checked_add(into.len() as u64)? > self.bytes {
            return None;
        }
        if let Err(e) = (self.read)(into, at) {
            self.failure
                .borrow_mut()
                .get_or_insert_with(|| format!("reading at byte {at} failed: {}", describe(&e)));
            return None;
        }
        Some(())
    }

    fn slice(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        let mut into = vec![0; length];
        self.fill(at, &mut into).map(|()| into)
    }

    fn array<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut into = [0; N];
        self.fill(at, &mut into).map(|()| into)
    }

    fn le16(&self, at: u64) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn le32(&self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn be32(&self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_be_bytes)
    }

    fn starts(&self, at: u64, magic: &[u8]) -> bool {
        self.slice(at, magic.len()).is_some_and(|found| found == magic)
    }

    /// Converts an offset in [`MAGICS`] to an offset in the content. A negative offset counts from the end of the last whole sector.
    fn offset(&self, at: i64) -> Option<u64> {
        match u64::try_from(at) {
            Ok(at) => Some(at),
            Err(_) => (self.bytes / SECTOR * SECTOR).checked_sub(at.unsigned_abs()),
        }
    }

    /// Returns the offset of the last whole sector; `None` if there is none.
    fn last_sector(&self) -> Option<u64> {
        self.offset(-(SECTOR as i64))
    }

    /// Returns the names of all formats that are found.
    fn names(&self) -> Known<Vec<&'static str>> {
        if self.bytes == 0 {
            return Err("the size is 0 bytes".into());
        }
        let mut found: Vec<&str> = magics()
            .filter(|(_, at, magic)| self.offset(*at).is_some_and(|at| self.starts(at, magic)))
            .map(|(name, _, _)| name)
            .collect();
        found.extend(swap(self));
        found.extend(CHECKED.iter().filter_map(|check| check(self)));
        if let Some(why) = self.failure.take() {
            return Err(why);
        }
        Ok(without_doubles(found))
    }

    /// Returns bytes that distinguish this file system from any other: each type found, with its
    /// UUID or with other bytes that never change. Empty without a file system, or if the type has
    /// no such bytes.
    pub(crate) fn identities(&self) -> Known<Vec<(&'static str, Vec<u8>)>> {
        let names = self.names()?;
        let rows = IDENTITIES.iter().filter(|(name, _, _)| names.contains(name));
        let all = rows.filter_map(|(name, at, length)| Some((*name, self.slice(*at, *length)?)));
        // A UUID of zeros means that the file system has no UUID.
        let all = all.filter(|(_, bytes)| bytes.iter().any(|b| *b != 0)).collect();
        self.failure.take().map_or(Ok(all), Err)
    }
}

/// Signatures that other formats have too, each with the names of these formats. For example, boot
/// sectors of some file systems look like DOS partition tables.
const REPEATED: [(&str, &[&str]); 4] = [
    ("dos", &["vfat", "exfat", "ntfs", "BitLocker", "aix"]),
    ("xfs_external_log", &["xfs"]),
    ("PMBR", &["gpt"]),
    ("minix", &["ext2", "ext3", "ext4", "jbd", "erofs"]),
];

/// Keeps each signature once. Drops a signature of [`REPEATED`] if one of its formats was found
/// too.
fn without_doubles(mut found: Vec<&'static str>) -> Vec<&'static str> {
    let all = found.clone();
    let is_repeated = |name: &str| {
        let repeats = |others: &[&str]| others.iter().any(|other| all.contains(other));
        REPEATED.iter().any(|(repeated, others)| *repeated == name && repeats(others))
    };
    let mut kept = BTreeSet::new();
    found.retain(|name| !is_repeated(name) && kept.insert(*name));
    found
}

/// Returns the names of all formats found in the first `bytes` bytes of an open device or file; empty if no format is found.
///
/// # Errors
/// Why the content is unknown: a part of it cannot be read, or its size is 0.
pub fn signatures(file: &File, bytes: u64) -> Known<Vec<String>> {
    let names = Content::from_file(file, 0, bytes).names()?;
    Ok(names.into_iter().map(str::to_owned).collect())
}

const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";

/// A format: its name, the offsets of its magic number, and the values that may be at each of them.
type Magics = (&'static str, &'static [i64], &'static [&'static [u8]]);

/// Magic numbers that are long enough to prove a format.
const MAGICS: &[Magics] = &[
    // Members of RAIDs.
    ("linux_raid_member", &[0, 4 * KIB], &[MD]),
    ("ddf_raid_member", &[-512, -257 * 512], &[&[0xde, 0x11, 0xde, 0x11]]),
    ("isw_raid_member", &[-2 * 512, -2 * 4096], &[b"Intel Raid ISM Cfg Sig. "]),
    ("lsi_mega_raid_member", &[-512], &[b"$XIDE$"]),
    ("nvidia_raid_member", &[-2 * 512], &[b"NVIDIA"]),
    (
        "promise_fasttrack_raid_member",
        &[
            -63 * 512,
            -255 * 512,
            -256 * 512,
            -16 * 512,
            -399 * 512,
            -591 * 512,
            -675 * 512,
            -735 * 512,
            -911 * 512,
            -974 * 512,
            -991 * 512,
            -951 * 512,
            -3087 * 512,
        ],
        &[b"Promise Technology, Inc."],
    ),
    ("hpt45x_raid_member", &[-11 * 512], &[&[0xf3, 0x16, 0x78, 0x5a], &[0xfd, 0x16, 0x78, 0x5a]]),
    ("hpt37x_raid_member", &[4 * KIB + 544], &[&[0xf0, 0x16, 0x78, 0x5a], &[0xfd, 0x16, 0x78, 0x5a]]),
    ("adaptec_raid_member", &[-512], &[&[0x37, 0xfc, 0x4d, 0x1e]]),
    (
        "drbd",
        &[-4 * KIB + 60],
        &[&[0x83, 0x74, 0x02, 0x6b], &[0x83, 0x74, 0x02, 0x6c], &[0x83, 0x74, 0x02, 0x6d]],
    ),
    ("drbdmanage_control_volume", &[0], &[b"$DRBDmgr=q"]),
    ("drbdproxy_datalog", &[0], &[b"DRBDdlh*"]),
    // Members of volumes, caches and pools.
    ("LVM2_member", &[0x018, 0x218, KIB + 0x018, KIB + 0x218], &[b"LVM2 001"]),
    ("bcache", &[4 * KIB + 0x18], &[BCACHE]),
    ("bcachefs", &[4 * KIB + 0x18, 2 * MIB + 0x18, -MIB + 0x18], &[BCACHEFS]),
    ("ceph_bluestore", &[0], &[b"bluestore block device"]),
    ("stratis", &[512 + 4, 9 * 512 + 4], &[b"!Stra0tis\x86\xff\x02^\x41rh"]),
    ("vdo", &[0], &[b"dmvdo001"]),
    ("mpool", &[0], &[b"mpoolDev"]),
    ("ubi", &[0], &[b"UBI#"]),
    ("oracleasm", &[32], &[b"ORCLDISK"]),
    ("VMFS_volume_member", &[MIB], &[&[0x0d, 0xd0, 0x01, 0xc0]]),
    ("DM_snapshot_cow", &[0], &[b"SnAp"]),
    ("DM_verity_hash", &[0], &[b"verity\0\0"]),
    ("DM_integrity", &[0], &[b"integrt\0"]),
    // Encryption.
    ("crypto_LUKS", &[0], &[b"LUKS\xba\xbe"]),
    (
        "crypto_LUKS",
        &[0x4000, 0x8000, 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000],
        &[b"SKUL\xba\xbe"],
    ),
    ("BitLocker", &[3], &[b"-FVE-FS-"]),
    // Suspended systems. Swap space is in `swap`.
    ("swsuspend", &[0], &[b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c"]),
    // File systems.
    ("xfs", &[0], &[b"XFSB"]),
    ("exfs", &[0], &[b"EXFS"]),
    ("btrfs", &[64 * KIB + 0x40], &[b"_BHRfS_M"]),
    ("f2fs", &[KIB], &[&[0x10, 0x20, 0xf5, 0xf2]]),
    ("erofs", &[KIB], &[&[0xe2, 0xe1, 0xf5, 0xe0]]),
    ("reiserfs", &[8 * KIB + 0x34], &[b"ReIsErFs"]),
    ("reiserfs", &[64 * KIB + 0x34], &[b"ReIsEr2Fs", b"ReIsEr3Fs", b"ReIsErFs"]),
    ("reiserfs", &[8 * KIB + 20], &[b"ReIsErFs"]),
    ("reiser4", &[64 * KIB], &[b"ReIsEr4"]),
    ("jfs", &[32 * KIB], &[b"JFS1"]),
    ("vfat", &[0x52], &[b"MSWIN", b"FAT32   "]),
    ("vfat", &[0x36], &[b"MSDOS", b"FAT16   ", b"FAT12   ", b"FAT     "]),
    ("exfat", &[3], &[b"EXFAT   "]),
    ("ntfs", &[3], &[b"NTFS    "]),
    ("ReFS", &[0], &[b"\0\0\0ReFS\0"]),
    ("hpfs", &[8 * KIB], &[&[0x49, 0xe8, 0x95, 0xf9]]),
    ("iso9660", &[32 * KIB + 1], &[b"CD001"]),
    ("iso9660", &[32 * KIB + 9], &[b"CDROM"]),
    ("udf", &[32 * KIB + 1], &[b"BEA01", b"BOOT2", b"CDW02", b"NSR02", b"NSR03", b"TEA01"]),
    ("apfs", &[32], &[b"NXSB"]),
    ("ocfs", &[8 * KIB], &[b"OracleCFS"]),
    ("ocfs2", &[KIB, 2 * KIB, 4 * KIB, 8 * KIB], &[b"OCFSV2"]),
    ("vxfs", &[KIB], &[&[0xf5, 0xfc, 0x01, 0xa5]]),
    ("vxfs", &[8 * KIB], &[&[0xa5, 0x01, 0xfc, 0xf5]]),
    ("squashfs", &[0], &[b"hsqs"]),
    ("squashfs3", &[0], &[b"sqsh"]),
    ("cramfs", &[0], &[&[0x45, 0x3d, 0xcd, 0x28], &[0x28, 0xcd, 0x3d, 0x45]]),
    ("romfs", &[0], &[b"-rom1fs-"]),
    ("scoutfs", &[64 * KIB + 4], &[&[0x8b, 0x42, 0x3c, 0x10]]),
    ("nss", &[4 * KIB], &[b"SPB5"]),
    ("ubifs", &[0], &[&[0x31, 0x18, 0x10, 0x06]]),
    ("bfs", &[0], &[&[0xce, 0xfa, 0xad, 0x1b]]),
    ("befs", &[0x020, 0x220], &[b"BFS1", b"1SFB"]),
    ("VMFS", &[2 * MIB], &[&[0x5e, 0xf1, 0xab, 0x2f]]),
    ("zonefs", &[0], &[b"SFOZ"]),
    // Xenix has two possible offsets: where libblkid searches for the number, and where the kernel has it.
    ("xenix", &[2 * KIB], &[&[0x44, 0x55, 0x2b, 0x00], &[0x00, 0x2b, 0x55, 0x44], &[0x2b, 0x55, 0x44, 0x00]]),
    ("xenix", &[KIB + 0x3f8], &[&[0x44, 0x55, 0x2b, 0x00], &[0x00, 0x2b, 0x55, 0x44]]),
    // Partition tables.
    ("gpt", &[512, 1024, 2048, 4096, -512, -4096], &[b"EFI PART"]),
    ("bsd", &[64, 128, 512], &[&[0x57, 0x45, 0x56, 0x82]]),
    ("sgi", &[0], &[&[0x0b, 0xe5, 0xa9, 0x41]]),
    ("aix", &[0], &[&[0xc9, 0xc2, 0xd4, 0xc1]]),
    ("ultrix", &[16384 - 72], &[&[0x57, 0x29, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00]]),
    ("solaris", &[512 + 12], &[&[0xee, 0xde, 0x0d, 0x60]]),
    ("unixware", &[29 * 512 + 4], &[&[0x0d, 0x60, 0xe5, 0xca]]),
];

/// Each magic number of `MAGICS` at each of its offsets.
fn magics() -> impl Iterator<Item = (&'static str, i64, &'static [u8])> {
    MAGICS.iter().flat_map(|(name, offsets, magics)| {
        offsets.iter().flat_map(move |at| magics.iter().map(move |magic| (*name, *at, *magic)))
    })
}

/// The functions for formats that do not fit into [`MAGICS`], for example because their magic number is short or missing.
const CHECKED: &[fn(&Content<'_>) -> Option<&'static str>] = &[
    ext, fat, minix, nilfs2, hfs, ufs, sysv, gfs, zfs, xfs_log, old_md, via, silicon, jmicron, lvm1, fvault,
    dos, mac, sun, atari, dasd,
];

/// The bytes that distinguish a file system from all others of its type: name, offset, length. They never change while
/// it is mounted.
const IDENTITIES: &[(&str, u64, usize)] = &[
    ("ext2", 0x468, 16),
    ("ext3", 0x468, 16),
    ("ext4", 0x468, 16),
    ("jbd", 0x468, 16),
    ("xfs", 32, 16),
    ("btrfs", 0x1_0020, 16),
    ("bcachefs", 0x1038, 16),
    ("f2fs", 0x46c, 16),
    ("erofs", 0x430, 16),
    ("jfs", 0x8088, 16),
    ("nilfs2", 0x498, 16),
    ("reiserfs", 0x1_0054, 16),
    ("reiser4", 0x1_0014, 16),
    ("vfat", 0x27, 4),
    ("vfat", 0x43, 4),
    ("exfat", 0x64, 4),
    ("ntfs", 0x48, 8),
    ("swap", 0x40c, 16),
    ("gfs2", 0x1_0118, 16),
    ("squashfs", 0, 96),
    ("cramfs", 0, 64),
    ("romfs", 0, 32),
    ("iso9660", 0x8000, 2048),
    ("crypto_LUKS", 168, 40),
    ("linux_raid_member", 16, 16),
    ("linux_raid_member", 4112, 16),
    ("LVM2_member", 0x220, 32),
];

/// Swap space and suspended systems. The magic number is at the end of the first page, and the page size
/// depends on the machine.
fn swap(content: &Content<'_>) -> Option<&'static str> {
    let magics: [(&str, &[u8]); 6] = [
        ("swap", b"SWAPSPACE2"),
        ("swap", b"SWAP-SPACE"),
        ("swsuspend", b"S1SUSPEND"),
        ("swsuspend", b"S2SUSPEND"),
        ("swsuspend", b"ULSUSPEND"),
        ("swsuspend", b"LINHIB0001"),
    ];
    [0x1000_u64, 0x2000, 0x4000, 0x8000, 0x1_0000].iter().find_map(|page| {
        let found = content.slice(page - 10, 10)?;
        magics.iter().find(|(_, magic)| found.starts_with(magic)).map(|(name, _)| *name)
    })
}

/// ext2 to ext4, or an external journal: checks a magic number of two bytes, and the block size.
fn ext(content: &Content<'_>) -> Option<&'static str> {
    if content.le16(0x438)? != 0xef53 || content.le32(0x418)? > 6 {
        return None;
    }
    let (compatible, incompatible, read_only) =
        (content.le32(0x45c)?, content.le32(0x460)?, content.le32(0x464)?);
    // The bits are those of `fs/ext4/ext4.h`.
    Some(if incompatible & 0x8 != 0 {
        "jbd"
    } else if incompatible & !0x16 != 0 || read_only & !0x7 != 0 {
        "ext4"
    } else if compatible & 0x4 != 0 {
        "ext3"
    } else {
        "ext2"
    })
}

/// FAT without a name in its boot sector, as in MS-DOS up to version 3: the sizes must be
/// consistent.
fn fat(content: &Content<'_>) -> Option<&'static str> {
    let sector = content.array::<512>(0)?;
    let le16 = |at: usize| u16::from_le_bytes([sector[at], sector[at + 1]]);
    let fits = sector[510..] == [0x55, 0xaa]
        && matches!(le16(11), 512 | 1024 | 2048 | 4096)
        && sector[13].is_power_of_two()
        && le16(14) != 0
        && sector[16] != 0
        && (sector[21] >= 0xf8 || sector[21] == 0xf0);
    // JFS and HPFS of OS/2 have the same kind of boot sector.
    let other = sector[0x36..].starts_with(b"JFS     ") || sector[0x36..].starts_with(b"HPFS    ");
    (fits && !other).then_some("vfat")
}

/// Minix versions 1 to 3, in either byte order: checks a magic number of two bytes, and whether the bitmaps are large enough for the inodes
/// and zones.
fn minix(content: &Content<'_>) -> Option<&'static str> {
    let block = content.array::<32>(1024)?;
    let fits = |big: bool| {
        let u16_at = |at: usize| {
            let bytes = [block[at], block[at + 1]];
            u64::from(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
        };
        let u32_at = |at: usize| {
            if big { u16_at(at) << 16 | u16_at(at + 2) } else { u16_at(at + 2) << 16 | u16_at(at) }
        };
        let maps_fit = |inodes: u64, zones: u64, [inode_map, zone_map, first]: [u64; 3], block_bytes: u64| {
            let bits = block_bytes * 8;
            inodes != 0
                && inodes != u64::from(u32::MAX)
                && inode_map * bits > inodes
                && first <= zones
                && zone_map * bits > zones - first
        };
        match u16_at(16) {
            magic @ (0x137f | 0x138f | 0x2468 | 0x2478) => {
                let zones = if magic < 0x2000 { u16_at(2) } else { u32_at(20) };
                u16_at(18) <= 3
                    && u16_at(10) == 0
                    && maps_fit(u16_at(0), zones, [u16_at(4), u16_at(6), u16_at(8)], 1024)
            }
            _ if u16_at(24) == 0x4d5a => {
                let block_bytes = match u16_at(28) {
                    bytes @ (1024 | 2048 | 4096 | 8192) => bytes,
                    _ => 1024,
                };
                u16_at(12) == 0
                    && maps_fit(u32_at(0), u32_at(20), [u16_at(6), u16_at(8), u16_at(10)], block_bytes)
            }
            _ => false,
        }
    };
    (fits(false) || fits(true)).then_some("minix")
}

/// NILFS2, either copy of the super block: checks a magic number of two bytes, and the checksum.
fn nilfs2(content: &Content<'_>) -> Option<&'static str> {
    let is_at = |at: u64| -> Option<bool> {
        let block = content.array::<1024>(at)?;
        let le32 = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
        let bytes = usize::from(u16::from_le_bytes([block[8], block[9]]));
        if block[6..8] != [0x34, 0x34] || !(20..=1024).contains(&bytes) {
            return Some(false);
        }
        // Unlike the usual CRC-32, this one is inverted neither before nor after. The checksum field counts as zeros.
        let mut sum = crc32fast::Hasher::new_with_initial(!le32(12));
        for part in [&block[..16], &[0; 4], &block[20..bytes]] {
            sum.update(part);
        }
        Some(!sum.finalize() == le32(16))
    };
    let copies = [content.offset(1024), content.offset(-8 * 512)];
    copies.into_iter().flatten().any(|at| is_at(at) == Some(true)).then_some("nilfs2")
}

/// HFS and HFS+, which may be in an HFS wrapper: checks a magic number of two bytes, and the block
/// size.
fn hfs(content: &Content<'_>) -> Option<&'static str> {
    match &content.array::<2>(1024)? {
        b"BD" => {
            let block_bytes = content.be32(1024 + 20)?;
            let inside = content.array::<2>(1024 + 124)?;
            let is_plus = matches!(&inside, b"H+" | b"HX");
            (block_bytes != 0 && block_bytes % 512 == 0).then_some(if is_plus { "hfsplus" } else { "hfs" })
        }
        b"H+" | b"HX" => {
            content.be32(1024 + 40).filter(|b| *b >= 512 && b.is_power_of_two()).map(|_| "hfsplus")
        }
        _ => None,
    }
}

/// UFS of BSD and Solaris, in either byte order, at one of four offsets.
fn ufs(content: &Content<'_>) -> Option<&'static str> {
    let magics = [0x1954_0119_u32, 0x0001_1954, 0x0019_5612, 0x0009_5014, 0x0061_2195, 0x0523_1994];
    let is_at = |kib: u64| {
        let found = content.le32(kib * 1024 + 0x55c);
        found.is_some_and(|found| magics.contains(&found) || magics.contains(&found.swap_bytes()))
    };
    [0, 8, 64, 256].into_iter().any(is_at).then_some("ufs")
}

/// System V, in either byte order, at one of four offsets.
fn sysv(content: &Content<'_>) -> Option<&'static str> {
    let magic = 0xfd18_7e20_u32;
    let is_at = |kib: u64| {
        let found = content.le32(kib * 1024 + 512 + 504);
        found.is_some_and(|found| found == magic || found.swap_bytes() == magic)
    };
    [0, 9, 15, 18].into_iter().any(is_at).then_some("sysv")
}

/// GFS and GFS2: the same magic number, and different format numbers.
fn gfs(content: &Content<'_>) -> Option<&'static str> {
    let at = 64 * 1024;
    if content.be32(at)? != 0x0116_1970 {
        return None;
    }
    Some(if (1800..1900).contains(&content.be32(at + 24)?) { "gfs2" } else { "gfs" })
}

/// ZFS: one of the four labels has a list of named values with a valid header and a valid first name.
fn zfs(content: &Content<'_>) -> Option<&'static str> {
    const LABEL: u64 = 256 * 1024;
    let end = content.bytes / LABEL * LABEL;
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    let is_at = |label: u64| -> Option<bool> {
        let list = content.array::<32>(label + 16 * 1024)?;
        // XDR encoding, the host's byte order, and the list version, which is 0.
        if list[0] != 1 || list[1] > 1 || list[2..8] != [0; 6] {
            return Some(false);
        }
        let name_bytes = u32::from_be_bytes([list[20], list[21], list[22], list[23]]);
        let name = &list[24..24 + (name_bytes as usize).min(8)];
        Some((1..=64).contains(&name_bytes) && name.iter().all(|b| b.is_ascii_lowercase() || *b == b'_'))
    };
    labels.into_iter().flatten().any(|label| is_at(label) == Some(true)).then_some("zfs_member")
}

/// An external XFS log: one of the first 512 sectors begins with the header of a record.
fn xfs_log(content: &Content<'_>) -> Option<&'static str> {
    let is_at = |at: u64| {
        content.be32(at) == Some(0xfeed_babe)
            && matches!(content.be32(at + 8), Some(1..=3))
            && matches!(content.be32(at + 300), Some(1..=3))
    };
    (0..512).any(|sector| is_at(sector * SECTOR)).then_some("xfs_external_log")
}

/// MD formats 0.90 (in either byte order) and 1.0, which are at the end of the device.
fn old_md(content: &Content<'_>) -> Option<&'static str> {
    let reversed: Vec<u8> = MD.iter().rev().copied().collect();
    let old = (content.bytes & !0xffff).checked_sub(0x1_0000);
    let new = (content.bytes & !0xfff).checked_sub(0x2000);
    let is_old = old.is_some_and(|at| content.starts(at, MD) || content.starts(at, &reversed));
    (is_old || new.is_some_and(|at| content.starts(at, MD))).then_some("linux_raid_member")
}

/// VIA: checks a magic number of two bytes, a version and a checksum, all in the last sector.
fn via(content: &Content<'_>) -> Option<&'static str> {
    let sector = content.array::<51>(content.last_sector()?)?;
    let sum = sector[..50].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    (sector[..2] == [0x55, 0xaa] && sector[2] <= 2 && sum == sector[50]).then_some("via_raid_member")
}

/// Silicon Image: checks four bytes that are almost all zeros, the disk number and a checksum, all
/// in the last sector.
fn silicon(content: &Content<'_>) -> Option<&'static str> {
    let sector = content.array::<0x140>(content.last_sector()?)?;
    let (words, _) = sector.as_chunks::<2>();
    let sum = words.iter().fold(0_u16, |sum, word| sum.wrapping_add(u16::from_le_bytes(*word)));
    // The checksum makes the sum of the sector zero.
    (sector[0x60..0x64] == [0, 0, 0, 0x2f] && sector[0x116] < 8 && sum == 0)
        .then_some("silicon_medley_raid_member")
}

/// `JMicron`: checks a magic number of two bytes, a RAID level and a checksum, all in the last sector.
fn jmicron(content: &Content<'_>) -> Option<&'static str> {
    let sector = content.array::<128>(content.last_sector()?)?;
    let (words, _) = sector.as_chunks::<2>();
    let sum = words.iter().fold(0_u16, |sum, word| sum.wrapping_add(u16::from_le_bytes(*word)));
    (sector.starts_with(b"JM") && sector[0x30] <= 5 && sum <= 1).then_some("jmicron_raid_member")
}

/// LVM of version 1: checks a magic number of two bytes, and a version.
fn lvm1(content: &Content<'_>) -> Option<&'static str> {
    let head = content.array::<4>(0)?;
    (head.starts_with(b"HM") && matches!(head[2..], [1 | 2, 0])).then_some("LVM1_member")
}

/// FileVault 2 of macOS: checks a magic number of two bytes, and the fields of the only known
/// version.
fn fvault(content: &Content<'_>) -> Option<&'static str> {
    let is_known = content.array::<2>(88)? == *b"CS"
        && content.le16(8)? == 1
        && content.le16(10)? == 0x10
        && content.le32(90)? == 1;
    is_known.then_some("cs_fvault2")
}

/// A DOS partition table, with or without entries, or the table that protects GPT (PMBR).
fn dos(content: &Content<'_>) -> Option<&'static str> {
    let sector = content.array::<512>(0)?;
    let (entries, _) = sector[446..510].as_chunks::<16>();
    let is_table = sector[510..] == [0x55, 0xaa] && entries.iter().all(|entry| matches!(entry[0], 0 | 0x80));
    is_table.then_some(if entries.iter().any(|entry| entry[4] == 0xee) { "PMBR" } else { "dos" })
}

/// An Apple partition map: checks a magic number of two bytes, a block size, and two bytes of an
/// entry one block further.
fn mac(content: &Content<'_>) -> Option<&'static str> {
    let block_bytes =
        (content.array::<2>(0)? == *b"ER").then(|| content.array(2).map(u16::from_be_bytes)).flatten()?;
    let entry = content.array::<2>(block_bytes.into())?;
    (block_bytes >= 136 && matches!(&entry, b"PM" | b"TS")).then_some("mac")
}

/// A SunOS label: checks a magic number of two bytes, and a checksum.
fn sun(content: &Content<'_>) -> Option<&'static str> {
    let sector = content.array::<512>(0)?;
    let (words, _) = sector.as_chunks::<2>();
    let sum = words.iter().fold(0, |sum, word| sum ^ u16::from_be_bytes(*word));
    (sector[508..510] == [0xda, 0xbe] && sum == 0).then_some("sun")
}

/// An Atari root sector. It has no magic number, so its partitions must be within the disk.
fn atari(content: &Content<'_>) -> Option<&'static str> {
    let sector = content.array::<512>(0)?;
    let be32 = |at: usize| u32::from_be_bytes([sector[at], sector[at + 1], sector[at + 2], sector[at + 3]]);
    let disk = be32(0x1c2);
    if disk < 2 || u64::from(disk) > content.bytes / SECTOR {
        return None;
    }
    let lies_on_disk = |start: u32, sectors: u32| {
        start > 0 && sectors > 0 && start.checked_add(sectors).is_some_and(|end| end <= disk)
    };
    let bad_sectors = (be32(0x1f6), be32(0x1fa));
    let mut entries =
        [0x1c6_usize, 0x1d2, 0x1de, 0x1ea].into_iter().filter(|at| sector[*at] & 1 != 0).peekable();
    let is_table = entries.peek().is_some()
        && (bad_sectors == (0, 0) || lies_on_disk(bad_sectors.0, bad_sectors.1))
        && entries.all(|at| {
            sector[at + 1..at + 4].iter().all(u8::is_ascii_alphanumeric)
                && lies_on_disk(be32(at + 4), be32(at + 8))
        });
    is_table.then_some("atari")
}

/// A volume label of an IBM DASD, in the third block: `VOL1` after a key, or `LNX1` or `CMS1`, in EBCDIC.
fn dasd(content: &Content<'_>) -> Option<&'static str> {
    let is_at = |at: u64| {
        content.array::<8>(at).is_some_and(|label| {
            label[4..] == [0xe5, 0xd6, 0xd3, 0xf1]
                || matches!(label[..4], [0xd3, 0xd5, 0xe7, 0xf1] | [0xc3, 0xd4, 0xe2, 0xf1])
        })
    };
    [512, 1024, 2048, 4096].into_iter().any(|block| is_at(2 * block)).then_some("dasd")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the signatures of an image of `bytes` zeros with these pieces.
    fn names(bytes: u64, pieces: &[(u64, &[u8])]) -> Vec<&'static str> {
        content_of(bytes, pieces).names().unwrap_or_else(|e| panic!("{e}"))
    }

    fn content_of<'p>(bytes: u64, pieces: &'p [(u64, &'p [u8])]) -> Content<'p> {
        Content::new(bytes, move |into, from| {
            for (at, piece) in pieces {
                for (i, byte) in piece.iter().enumerate() {
                    let here = (at + i as u64).checked_sub(from).and_then(|i| into.get_mut(i as usize));
                    if let Some(here) = here {
                        *here = *byte;
                    }
                }
            }
            Ok(())
        })
    }

    #[test]
    fn every_magic_number_is_found_at_its_place_and_not_if_a_byte_differs() {
        let bytes = 64 << 20;
        for (name, at, magic) in magics() {
            let at = if at < 0 { bytes - at.unsigned_abs() } else { at.unsigned_abs() };
            let found = names(bytes, &[(at, magic)]);
            assert!(found.contains(&name), "{name} at {at}: {found:?}");
            let mut other = magic.to_vec();
            let last = other.len() - 1;
            other[last] ^= 0x55;
            assert!(!names(bytes, &[(at, &other)]).contains(&name), "{name} at {at}");
            // A device that ends in the middle of the magic number does not match.
            if at < bytes / 2 {
                assert!(
                    !names(at + magic.len() as u64 - 1, &[(at, magic)]).contains(&name),
                    "{name} cut off"
                );
            }
        }
    }

    /// Random bytes that depend on the offset only.
    fn random(seed: u64) -> impl Fn(&mut [u8], u64) -> io::Result<()> {
        move |into, from| {
            let mut at = from;
            let mut left = into;
            while !left.is_empty() {
                let mut word = ((seed << 40) ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                let bytes = (word ^ (word >> 31)).to_le_bytes();
                let bytes = &bytes[at as usize % 8..];
                let (now, later) = left.split_at_mut(bytes.len().min(left.len()));
                now.copy_from_slice(&bytes[..now.len()]);
                at += now.len() as u64;
                left = later;
            }
            Ok(())
        }
    }

    #[test]
    fn ten_thousand_devices_of_random_data_match_no_format() {
        // Sizes from 1 MiB to 8 TiB. The size decides which bytes are at the end, and which fields are within the disk.
        for seed in 0..10_000 {
            let bytes = (1 << (20 + seed % 24)) + seed % 97 * 512;
            let found = Content::new(bytes, random(seed)).names();
            assert_eq!(found, Ok(Vec::new()), "seed {seed}, {bytes} bytes");
        }
    }

    #[test]
    fn zeros_hold_nothing_and_unreadable_devices_are_unknown() {
        for bytes in [512, 1024, 4096, 65_536, 1 << 20, 1 << 30] {
            assert_eq!(names(bytes, &[]), [""; 0]);
            for broken in [0, 1080, bytes - 512] {
                let content = Content::new(bytes, move |into, at| {
                    let is_broken = (at..at + into.len() as u64).contains(&broken);
                    if is_broken { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
                });
                let is_there = broken < bytes;
                assert_eq!(
                    content.names().is_err_and(|why| why.contains("reading at")),
                    is_there,
                    "{bytes} {broken}"
                );
            }
        }
        assert!(Content::new(0, |_, _| Ok(())).names().is_err());
    }

    /// Superblocks that the tools of Debian 12 created: name, MiB of the image, and its bytes as
    /// `offset:bytes` in hexadecimal, mostly only the line with the magic number. The FAT image has
    /// no name in its boot sector.
    const MADE: &[(&str, u64, &str)] = &[
        ("f2fs", 128, "400:1020f5f201000f000900000003000000"),
        ("exfat", 16, "0:eb769045584641542020200000000000"),
        ("ntfs", 16, "0:eb52904e544653202020200002080000"),
        ("jfs", 32, "8000:4a4653310100000060f6000000000000"),
        ("ocfs2", 300, "800:4f43465356320000b1dac1e5ffffffff"),
        ("reiserfs", 64, "10030:02000100526549734572324673000000"),
        ("reiser4", 64, "10000:52654973457234000000000000000000"),
        ("udf", 16, "8000:00424541303101000000000000000000"),
        ("iso9660", 1, "8000:01434430303101004c494e5558202020"),
        ("squashfs", 1, "0:687371730200000052f1086b00000200"),
        ("crypto_LUKS", 32, "0:4c554b53babe00020000000000004000"),
        ("DM_verity_hash", 16, "0:76657269747900000100000001000000"),
        ("bcache", 16, "1010:0100000000000000c68573f64e1a45ca8265f57f48ba6d81558f44c1dd864735"),
        ("gfs2", 256, "10000:0116197000000001000000000000000000000064000000000000070a0000076c"),
        (
            "vfat",
            4,
            "0:eb3c906d6b66732e66617400020401000200020020f806002000020000000000 1f0:000000000000000000000000000055aa",
        ),
        ("minix", 16, "400:6015004001000200b0000000001c08108f130100000000000000000000000000"),
        ("minix", 16, "400:60150000010002005b010000ffffff7f78240100004000000000000000000000"),
        ("minix", 64, "400:60550000000003000800630500000000ffffff7f000001005a4d000000040000"),
        ("cramfs", 1, "0:453dcd28001000000300000000000000"),
        ("romfs", 1, "0:2d726f6d3166732d000000901a1a4a4c"),
        ("bfs", 16, "0:cefaad1b00520000ffffff00ffffffff"),
        (
            "nilfs2",
            256,
            "400:02000000000034341801000059e8047c5933d941020000001f00000000000000000000100000000001000000000000000008000005\
         00000001000000000000000100000000000000000000000000000000f000000000000051f1086b00000000000000000000000051f1086b\
         00000000000032000100010051f1086b00000000004eed0000000000000000000b00000080002000c00010000072b877ca254ff8b24f8e\
         32692c9ac70000000000000000",
        ),
        (
            "sun",
            64,
            "0:4c696e75782063796c203820616c742030206864203235352073656320363300 80:00000001000000000000000000080000 b0:0000\
         00000000000000000000600ddeee 1a0:000000001518000800000000000000010008000000ff003f0000000000000000 1f0:00000000\
         0000000000000000dabe12e1",
        ),
        ("mac", 16, "0:45520200000080000000000000000000 200:504d000000000002000000010000003f"),
        (
            "atari",
            16,
            "1c0:0000000080000152415700000800000038000050415254454441544152490050415254454441544152490050415254454441544152\
         490000000100000001be60",
        ),
        ("sgi", 64, "0:0be5a941000000012f756e6978000000"),
    ];

    fn from_hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.bytes().filter_map(|c| char::from(c).to_digit(16)).map(|d| d as u8).collect();
        digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect()
    }

    #[test]
    fn superblocks_of_real_tools_are_found() {
        for (name, mib, made) in MADE {
            let pieces: Vec<(u64, Vec<u8>)> = made
                .split_whitespace()
                .filter_map(|piece| piece.split_once(':'))
                .map(|(at, bytes)| (u64::from_str_radix(at, 16).unwrap_or(0), from_hex(bytes)))
                .collect();
            let pieces: Vec<(u64, &[u8])> =
                pieces.iter().map(|(at, bytes)| (*at, bytes.as_slice())).collect();
            assert_eq!(names(mib << 20, &pieces), [*name], "{made}");
        }
    }

    /// A name, the pieces of an image with its format, and the index of a byte of the last piece: if that byte changes, the format is not
    /// found.
    type Row<'p> = (&'static str, Vec<(u64, &'p [u8])>, usize);

    #[test]
    fn short_numbers_need_plausible_values() {
        let bytes: u64 = 64 << 20;
        let end = bytes - 512;
        let mut via = [0_u8; 51];
        via[..3].copy_from_slice(&[0x55, 0xaa, 2]);
        via[50] = 0x55_u8.wrapping_add(0xaa).wrapping_add(2);
        let mut silicon = [0_u8; 0x140];
        silicon[0x63] = 0x2f;
        // The words of the sector add up to zero.
        silicon[0x13e..].copy_from_slice(&0x2f00_u16.wrapping_neg().to_le_bytes());
        let mut jmicron = *b"JM\0\0\0\0";
        jmicron[4..].copy_from_slice(&u16::from_le_bytes(*b"JM").wrapping_neg().to_le_bytes());
        let zfs = from_hex("010100000000000000000001000000240000002000000007") // version 0, flags 1, a name of 7 bytes
            .into_iter()
            .chain(*b"version\0")
            .collect::<Vec<u8>>();
        // One row for each format.
        let rows: Vec<Row<'_>> = vec![
            ("via_raid_member", vec![(end, &via)], 50),
            ("silicon_medley_raid_member", vec![(end, &silicon)], 0x13e),
            ("jmicron_raid_member", vec![(end, &jmicron)], 4),
            ("linux_raid_member", vec![((bytes & !0xffff) - 0x1_0000, &[0xa9, 0x2b, 0x4e, 0xfc])], 3),
            ("linux_raid_member", vec![(bytes - 0x2000, MD)], 3),
            ("LVM1_member", vec![(0, b"HM\x02\0")], 3),
            ("cs_fvault2", vec![(8, &[1, 0, 0x10, 0]), (88, b"CS\x01\0\0\0")], 2),
            ("hfs", vec![(1024, b"BD"), (1044, &[0, 0, 2, 0])], 3),
            ("hfsplus", vec![(1024, b"BD"), (1044, &[0, 0, 2, 0]), (1148, b"H+")], 0),
            ("hfsplus", vec![(1024, b"HX"), (1064, &[0, 0, 0x10, 0])], 3),
            ("ufs", vec![(0x1_055c, &[0x19, 0x01, 0x54, 0x19])], 0),
            ("ufs", vec![(0x255c, &[0x00, 0x01, 0x19, 0x54])], 1),
            ("sysv", vec![(15 * 1024 + 1016, &[0x20, 0x7e, 0x18, 0xfd])], 3),
            ("zfs_member", vec![(bytes - 256 * 1024 + 16 * 1024, &zfs)], 23),
            (
                "xfs_external_log",
                vec![(512, b"\xfe\xed\xba\xbe"), (520, &[0, 0, 0, 2]), (812, &[0, 0, 0, 1])],
                3,
            ),
            ("dasd", vec![(8196, &[0xe5, 0xd6, 0xd3, 0xf1])], 3),
            ("jbd", vec![(0x438, &[0x53, 0xef]), (0x460, &[8])], 9),
            ("PMBR", vec![(450, &[0xee]), (510, &[0x55, 0xaa])], 1),
        ];
        for (name, pieces, other) in rows {
            assert_eq!(names(bytes, &pieces), [name]);
            let Some(((at, last), before)) = pieces.split_last() else { continue };
            let mut changed = last.to_vec();
            let Some(byte) = changed.get_mut(other) else { continue };
            *byte ^= 0x41;
            let pieces: Vec<(u64, &[u8])> =
                before.iter().copied().chain([(*at, changed.as_slice())]).collect();
            assert!(!names(bytes, &pieces).contains(&name), "{name} with another byte {other}");
        }
    }
}
