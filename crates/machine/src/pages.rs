//! Pages of a target in the page cache, from whichever call tells the truth about it.
//!
//! For: one count with the right source. Not for: changing what is cached.
//! `cachestat` answers 0 on overlayfs although pages are there; `mincore` claims every page of a file that is not the
//! caller's. So the first is not asked on overlays, and the second only where the caller may write or owns the file.

use crate::error::describe;
use model::Known;
use model::evidence::Pages;
use rustix::fs::fstatfs;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use sys::page_cache;

/// `OVERLAYFS_SUPER_MAGIC`.
const OVERLAY: i64 = 0x794c_7630;

/// Counts the pages of a file or block device.
///
/// # Errors
/// Why nobody can say.
pub fn count_cached_pages(file: &File) -> Known<Pages> {
    let page_bytes = rustix::param::page_size() as u64;
    let overlay = fstatfs(file).is_ok_and(|s| s.f_type == OVERLAY);
    if overlay {
        return by_mincore(file, page_bytes);
    }
    match page_cache::cachestat(file) {
        Ok(seen) => Ok(Pages { page_bytes, cached: seen.cached, dirty: Some(seen.dirty + seen.writeback) }),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(not_ours()),
        Err(_) => by_mincore(file, page_bytes),
    }
}

fn by_mincore(file: &File, page_bytes: u64) -> Known<Pages> {
    let facts = file.metadata().map_err(|e| describe(&e))?;
    let user = rustix::process::geteuid();
    if !user.is_root() && facts.uid() != user.as_raw() {
        return Err(not_ours());
    }
    let device = facts.file_type().is_block_device();
    let bytes = if device { sys::ioctl::device_bytes(file).map_err(|e| describe(&e))? } else { facts.len() };
    let cached = page_cache::mincore(file, bytes).map_err(|e| format!("mincore: {}", describe(&e)))?;
    Ok(Pages { page_bytes, cached, dirty: None })
}

fn not_ours() -> String {
    "the kernel tells only the owner of a file, or who may write it, which of its pages are cached".into()
}

#[test]
fn written_pages_are_seen() -> io::Result<()> {
    use std::io::Write;
    let mut file = tempfile::tempfile()?;
    file.write_all(&vec![1; 1 << 20])?;
    assert_eq!(count_cached_pages(&file).map(|p| p.cached * p.page_bytes), Ok(1 << 20));
    Ok(())
}
