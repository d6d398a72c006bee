//! Finds users of a file by its content, where device and inode say nothing: a server or a program in user space may show the same
//! file under another identity (FUSE, NFS, SMB, 9P ...).
//!
//! 1. Reads from every block device the bytes that identify its file system, or its first block if nothing identifies it.
//! 2. Compares them with the file, at every offset where that device's content would begin in an image of it.
//! 3. The file of a device that matches and is in use is in use too. Every bound loop device is in use.
//! 4. A file that matches none but has a signature may be in use where this machine cannot see it.

use crate::error::describe;
use crate::root::Root;
use crate::signature::{Content, signatures};
use crate::stack;
use crate::usage::Use;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// Bytes that are compared of a device that nothing identifies, and of two files.
const BLOCK: usize = 4096;
const SECTOR: u64 = model::evidence::SECTOR_BYTES;
const O_NONBLOCK_2: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// The user of an open file, as far as its content tells. `user_of` finds the user of a block device by its kernel name.
///
/// # Errors
/// Why the file cannot be read, or why the users of a device that holds the same are unknown.
pub(crate) fn user(
    root: &Root,
    file: &File,
    user_of: impl Fn(&str) -> Result<Option<String>, String>,
) -> Result<Use, String> {
    let bytes = file.metadata().map_err(|e| describe(&e))?.len();
    if bytes == 0 {
        return Ok(Use::Nobody);
    }
    for name in root.list("/sys/class/block").unwrap_or_default() {
        if holds_the_same(root, &name, file, bytes)
            && let Some(user) = user_of(&name)?
        {
            return Ok(Use::By(format!("{user}, and {name} holds the same file system")));
        }
    }
    let found = signatures(file, bytes)?;
    if found.is_empty() {
        return Ok(Use::Nobody);
    }
    Ok(Use::Hidden(format!(
        "it holds {}, and its file system may show it under another name, or to another host, where it is mounted",
        found.join(" and ")
    )))
}

/// Whether two files have the same length and the same bytes at their beginning and end.
pub(crate) fn is_same(a: &File, b: &File) -> bool {
    let parts = |file: &File| -> Option<(u64, Vec<u8>, Vec<u8>)> {
        let bytes = file.metadata().ok()?.len();
        let length = BLOCK.min(usize::try_from(bytes).ok()?);
        let read = |at: u64| {
            let mut block = vec![0; length];
            file.read_exact_at(&mut block, at).ok().map(|()| block)
        };
        Some((bytes, read(0)?, read(bytes - length as u64)?))
    };
    parts(a).is_some_and(|a| parts(b) == Some(a))
}

/// Whether a block device holds what an image of it in the file would hold. A device that cannot be read does not count.
fn holds_the_same(root: &Root, name: &str, file: &File, file_bytes: u64) -> bool {
    let number = |name: &str, what: &str| -> Option<u64> {
        root.word(&format!("/sys/class/block/{name}/{what}"))?.parse().ok()
    };
    let Some(bytes) = number(name, "size").filter(|s| *s > 0).map(|sectors| sectors * SECTOR) else {
        return false;
    };
    let path = root.path(&format!("/dev/{}", name.replace('!', "/")));
    let Ok(device) = File::options().read(true).custom_flags(O_NONBLOCK_2).open(path) else { return false };
    let Ok(identities) = Content::from(&device, 0, bytes).identities() else { return false };
    let disk = stack::parent(root, name).unwrap_or_else(|| name.to_owned());
    let in_disk = number(name, "start").unwrap_or(0).saturating_mul(SECTOR);
    let in_image = number(&disk, "loop/offset").unwrap_or(0).saturating_add(in_disk);
    BTreeSet::from([0, in_disk, in_image]).into_iter().filter(|start| *start < file_bytes).any(|start| {
        if identities.is_empty() {
            return same_block(&device, file, start);
        }
        let here = Content::from(file, start, file_bytes - start).identities().unwrap_or_default();
        identities.iter().any(|identity| here.contains(identity))
    })
}

/// Whether the first block of a device stands at an offset of a file. A block of one value, such as zeros, says nothing.
fn same_block(device: &File, file: &File, start: u64) -> bool {
    let (mut there, mut here) = ([0; BLOCK], [0; BLOCK]);
    device.read_exact_at(&mut there, 0).is_ok()
        && file.read_exact_at(&mut here, start).is_ok()
        && there == here
        && there.iter().any(|byte| *byte != there[0])
}

#[test]
fn two_files_are_the_same_only_with_the_same_length_and_ends() -> std::io::Result<()> {
    let file = |bytes: &[u8]| -> std::io::Result<File> {
        let file = tempfile::tempfile()?;
        file.write_all_at(bytes, 0)?;
        Ok(file)
    };
    let content = [1; 3 * BLOCK];
    let mut other = content;
    other[3 * BLOCK - 1] = 2;
    assert!(is_same(&file(&content)?, &file(&content)?) && is_same(&file(&[])?, &file(&[])?));
    assert!(!is_same(&file(&content)?, &file(&other)?));
    assert!(!is_same(&file(&content)?, &file(&content[1..])?));
    Ok(())
}
