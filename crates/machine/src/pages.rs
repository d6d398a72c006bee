//! Pages and extents of a file, as a snapshot keeps them.
//!
//! For: choosing the call that tells the truth here. Not for: the calls themselves (crate `sys`).

use crate::root::reason;
use model::Known;
use model::evidence::{Extents, Pages};
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use sys::cachestat::{cachestat, mincore};
use sys::fiemap::{self, Extent};

/// Magic number of overlayfs, whose files answer cachestat with zero although they are cached.
const OVERLAY_MAGIC: i64 = 0x794c_7630;

/// How much of a file is in memory.
///
/// # Errors
/// Why the kernel does not tell, or why its answer could not be believed.
pub fn pages(file: &File) -> Known<Pages> {
    let page_bytes = rustix::param::page_size() as u64;
    let overlay = rustix::fs::fstatfs(file).is_ok_and(|s| s.f_type == OVERLAY_MAGIC);
    if !overlay {
        match cachestat(file) {
            Ok(s) => return Ok(Pages { page_bytes, cached: s.cached, dirty: Some(s.dirty + s.writeback) }),
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => {}
            Err(e) => return Err(format!("cachestat: {}", reason(&e))),
        }
    }
    let facts = file.metadata().map_err(|e| reason(&e))?;
    let mine = facts.uid() == rustix::process::geteuid().as_raw() || rustix::process::geteuid().is_root();
    if !mine {
        return Err("the kernel tells only the file's owner which of its pages are in memory".into());
    }
    let cached = mincore(file, facts.len()).map_err(|e| format!("mincore: {}", reason(&e)))?;
    Ok(Pages { page_bytes, cached, dirty: None })
}

/// How the first `bytes` of a file are stored.
///
/// # Errors
/// Why the file system does not tell.
pub fn extents(file: &File, bytes: u64) -> Known<Extents> {
    if file.metadata().is_ok_and(|m| m.file_type().is_block_device()) {
        return Err("a block device has no extents".into());
    }
    let found = fiemap::extents(file, bytes).map_err(|e| format!("FIEMAP: {}", reason(&e)))?;
    Ok(sum(&found, bytes))
}

fn sum(found: &[Extent], span_bytes: u64) -> Extents {
    let mut out = Extents { span_bytes, count: found.len() as u64, ..Extents::default() };
    let mut covered = 0;
    for extent in found {
        let end = extent.logical.saturating_add(extent.length).min(span_bytes);
        let bytes = end.saturating_sub(extent.logical);
        covered += bytes;
        let mut add = |flags: u32, to: fn(&mut Extents) -> &mut u64| {
            if extent.has(flags) {
                *to(&mut out) += bytes;
            }
        };
        add(Extent::UNWRITTEN, |e| &mut e.unwritten_bytes);
        add(Extent::DELAYED, |e| &mut e.delayed_bytes);
        add(Extent::INLINE, |e| &mut e.inline_bytes);
        add(Extent::ENCODED | Extent::ENCRYPTED, |e| &mut e.encoded_bytes);
        add(Extent::SHARED, |e| &mut e.shared_bytes);
    }
    out.hole_bytes = span_bytes.saturating_sub(covered);
    out
}

#[test]
fn a_sparse_file_is_seen_as_holes_and_a_written_one_as_data() {
    let path = std::env::temp_dir().join(format!("fathom-extents-{}", std::process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let _ = std::fs::remove_file(&path);
    let Ok(file) = file else { return };
    let _ = file.set_len(1 << 20);
    match extents(&file, 1 << 20) {
        Ok(e) => assert_eq!(e.hole_bytes, 1 << 20),
        Err(why) => println!("SKIPPED: {why}"),
    }
    assert!(pages(&file).is_ok_and(|p| p.cached == 0));
}
