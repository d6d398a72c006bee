//! Signatures: what lies on a block device, by libblkid and by a table of our own where that is missing.
//!
//! For: a name before anything is overwritten. Not for: deciding; see `safety`.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A name, where its bytes lie, and the bytes.
type Magic = (&'static str, u64, &'static [u8]);

/// The common ones of util-linux's libblkid; good enough to stop, not to identify.
const MAGICS: &[Magic] = &[
    ("an ext2, ext3 or ext4 file system", 0x438, &[0x53, 0xef]),
    ("an XFS file system", 0, b"XFSB"),
    ("a btrfs file system", 0x10040, b"_BHRfS_M"),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("swap space", 4086, b"SWAP-SPACE"),
    ("swap space", 65526, b"SWAPSPACE2"),
    ("an LVM physical volume", 0x200, b"LABELONE"),
    ("an LVM physical volume", 0, b"LABELONE"),
    ("a LUKS container", 0, b"LUKS\xba\xbe"),
    ("a member of a Linux RAID", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("a member of a Linux RAID", 0, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("a GPT partition table", 512, b"EFI PART"),
    ("an MBR partition table or boot sector", 510, &[0x55, 0xaa]),
    ("an F2FS file system", 0x400, &[0x10, 0x20, 0xf5, 0xf2]),
    ("an NTFS file system", 3, b"NTFS    "),
    ("an exFAT file system", 3, b"EXFAT   "),
    ("a squashfs file system", 0, b"hsqs"),
    ("an ISO 9660 file system", 0x8001, b"CD001"),
    ("a bcache device", 0x1018, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca]),
    ("a UBIFS or JFFS2 file system", 0, &[0x31, 0x18, 0x10, 0x06]),
];

/// What lies on an open device, in words; `None` where neither libblkid nor the table knows anything there.
///
/// # Errors
/// Where the device cannot be read.
pub fn find(device: &File) -> std::io::Result<Option<String>> {
    if let Ok(Some(kind)) = sys::blkid::signature(device) {
        return Ok(Some(format!("a signature of type {kind}")));
    }
    for (name, at, bytes) in MAGICS {
        let mut there = vec![0; bytes.len()];
        match device.read_exact_at(&mut there, *at) {
            Ok(()) if there == *bytes => return Ok(Some((*name).to_owned())),
            Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => return Err(e),
            _ => {}
        }
    }
    Ok(None)
}

#[test]
fn a_file_with_a_signature_is_named_and_an_empty_one_is_not() {
    let path = std::env::temp_dir().join(format!("fathom-signature-{}", std::process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let _ = std::fs::remove_file(&path);
    let Ok(file) = file else { return };
    let _ = file.set_len(8 << 20);
    assert_eq!(find(&file).ok().flatten(), None);
    for (name, at, bytes) in MAGICS {
        let _ = file.set_len(0);
        let _ = file.set_len(8 << 20);
        let _ = file.write_all_at(bytes, *at);
        assert!(find(&file).ok().flatten().is_some(), "{name}");
    }
}
