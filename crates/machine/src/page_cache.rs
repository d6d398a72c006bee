//! The page cache before a run: counts a target's cached pages, evicts them, and waits until write-back is at rest.
//!
//! On overlayfs `cachestat` reports 0 cached pages even if pages are cached. `mincore` reports
//! every page of another user's file as cached. So `cachestat` is not used on overlays, and
//! `mincore` only by root and by the owner of the file. Caches of other files are never dropped.

use crate::error::describe;
use crate::file_systems::OVERLAY_MAGIC;
use crate::root::Root;
use model::Known;
use model::evidence::{BACKLOG_BYTES, Pages, meminfo_bytes};
use model::units::show_bytes;
use rustix::fs::{Advice, fadvise, fstatfs};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sys::file_pages;

/// Maximum number of attempts to evict a file. The first attempt does not evict pages that are in a
/// per-CPU list.
const MAX_EVICTIONS: u32 = 5;
const BETWEEN_EVICTIONS: Duration = Duration::from_millis(2);
const POLL: Duration = Duration::from_millis(20);
/// If the unwritten bytes fall by less than this within [`PATIENCE`], waiting longer is useless.
const MIN_FALL_BYTES: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_millis(300);

/// Writes a file's dirty pages back, evicts it from the page cache, and counts the pages that remain.
///
/// # Errors
/// Why the file could not be written back or evicted, or why the remaining pages are unknown.
pub fn evict(file: &File) -> Known<Pages> {
    match file.sync_data() {
        // A read-only file system has nothing to write back.
        Err(e) if !matches!(e.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::InvalidInput) => {
            return Err(format!("writing the file's dirty pages back failed: {}", describe(&e)));
        }
        _ => {}
    }
    let mut attempts = 0;
    loop {
        attempts += 1;
        fadvise(file, 0, None, Advice::DontNeed)
            .map_err(|e| format!("evicting the file from the page cache failed: {}", describe(&e.into())))?;
        let pages = count_cached_pages(file)?;
        if pages.cached == 0 || attempts == MAX_EVICTIONS {
            return Ok(pages);
        }
        std::thread::sleep(BETWEEN_EVICTIONS);
    }
}

/// Writes back all dirty data of the file's file system, so that the kernel does not do so during the run.
///
/// # Errors
///
/// Why the file system could not be synced.
pub fn write_back(file: &File) -> Known<()> {
    rustix::fs::syncfs(file).map_err(|e| format!("syncfs: {}", describe(&e.into())))
}

/// Reads a range of a file into the page cache. Ends early at the end of the file, or if the stop
/// flag is set.
///
/// # Errors
/// Why the range could not be read.
pub fn fill(file: &File, from: u64, bytes: u64, stop: &AtomicBool) -> Known<()> {
    let mut buffer = vec![0; 1 << 20];
    let end = from.saturating_add(bytes);
    let mut at = from;
    while at < end && !stop.load(Ordering::Relaxed) {
        let part = (end - at).min(buffer.len() as u64) as usize;
        match file.read_at(&mut buffer[..part], at) {
            Ok(0) => break,
            Ok(read) => at = at.saturating_add(read as u64),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(format!("reading the file into the page cache failed: {}", describe(&e))),
        }
    }
    Ok(())
}

/// How waiting for write-back ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Duration of the wait.
    pub waited: Duration,
    /// Bytes that are dirty or in write-back on the whole machine at the end.
    pub left_bytes: Known<u64>,
}

impl Settled {
    /// Returns a note for the report if the machine was not at rest.
    pub fn note(&self) -> Option<String> {
        let waited = self.waited.as_secs_f64();
        match &self.left_bytes {
            Ok(left) if *left < BACKLOG_BYTES => None,
            Ok(left) => Some(format!(
                "the machine still had {} of unwritten data when the run began, after a wait of {waited:.1} s",
                show_bytes(*left)
            )),
            Err(why) => Some(format!("could not check whether write-back had finished: {why}")),
        }
    }
}

/// Waits until less than [`BACKLOG_BYTES`] are dirty or in write-back. Ends earlier if these bytes
/// no longer fall or are unknown, after `limit`, and if the stop flag is set.
pub fn settle(root: &Root, limit: Duration, stop: &AtomicBool) -> Settled {
    let start = Instant::now();
    let mut lowest = u64::MAX;
    let mut fell = start;
    loop {
        let left = unwritten(root);
        let waited = start.elapsed();
        let Ok(bytes) = left else { return Settled { waited, left_bytes: left } };
        if bytes.saturating_add(MIN_FALL_BYTES) <= lowest {
            lowest = bytes;
            fell = Instant::now();
        }
        let hopeless = fell.elapsed() >= PATIENCE;
        if bytes < BACKLOG_BYTES || hopeless || waited >= limit || stop.load(Ordering::Relaxed) {
            return Settled { waited, left_bytes: left };
        }
        std::thread::sleep(POLL);
    }
}

fn unwritten(root: &Root) -> Known<u64> {
    let text = root.read("/proc/meminfo")?;
    Ok(meminfo_bytes(&text, "Dirty")?.saturating_add(meminfo_bytes(&text, "Writeback")?))
}

/// Counts the cached pages of a file or block device.
///
/// # Errors
/// Why the number is unknown.
pub fn count_cached_pages(file: &File) -> Known<Pages> {
    let page_bytes = rustix::param::page_size() as u64;
    if fstatfs(file).is_ok_and(|facts| facts.f_type as u64 == OVERLAY_MAGIC) {
        return by_mincore(file, page_bytes);
    }
    match file_pages::cachestat(file) {
        Ok(seen) => Ok(Pages { page_bytes, cached: seen.cached, dirty: Some(seen.dirty + seen.writeback) }),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(
            "the kernel denies cachestat, because this user neither owns the file nor may write it, or because a seccomp filter denies the call"
                .into(),
        ),
        Err(_) => by_mincore(file, page_bytes),
    }
}

fn by_mincore(file: &File, page_bytes: u64) -> Known<Pages> {
    let metadata = file.metadata().map_err(|e| describe(&e))?;
    let user = rustix::process::geteuid();
    if !user.is_root() && metadata.uid() != user.as_raw() {
        return Err("mincore reports the cached pages of a file only to its owner and to root".into());
    }
    let device = metadata.file_type().is_block_device();
    let bytes =
        if device { sys::ioctl::device_bytes(file).map_err(|e| describe(&e))? } else { metadata.len() };
    let cached = file_pages::mincore(file, bytes).map_err(|e| format!("mincore: {}", describe(&e)))?;
    Ok(Pages { page_bytes, cached, dirty: None })
}

#[test]
fn written_pages_are_evicted() -> io::Result<()> {
    use std::io::Write;
    let mut file = tempfile::tempfile()?;
    file.write_all(&vec![1; 4 << 20])?;
    match evict(&file) {
        Ok(pages) if pages.cached > 0 => println!("skipped: {} pages stay here (tmpfs?)", pages.cached),
        Ok(pages) => assert_eq!(pages.cached, 0),
        Err(why) => println!("skipped: {why}"),
    }
    Ok(())
}

#[test]
fn an_evicted_file_is_filled_again_to_its_end() -> io::Result<()> {
    use std::io::Write;
    let mut file = tempfile::tempfile()?;
    file.write_all(&vec![1; 4 << 20])?;
    if !matches!(evict(&file), Ok(pages) if pages.cached == 0) {
        println!("skipped: pages stay here (tmpfs?)");
        return Ok(());
    }
    assert_eq!(fill(&file, 0, u64::MAX, &AtomicBool::new(false)), Ok(()));
    assert_eq!(count_cached_pages(&file).map(|p| p.cached * p.page_bytes), Ok(4 << 20));
    Ok(())
}

#[test]
fn waiting_ends_if_dirty_bytes_do_not_fall_or_are_unknown() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let root = Root::at(dir.path().to_owned());
    let stop = AtomicBool::new(false);
    let blind = settle(&root, Duration::from_secs(5), &stop);
    assert!(blind.left_bytes.is_err() && blind.note().is_some() && blind.waited < Duration::from_secs(1));
    std::fs::create_dir_all(dir.path().join("proc"))?;
    std::fs::write(dir.path().join("proc/meminfo"), "Dirty: 999999 kB\nWriteback: 0 kB\n")?;
    let stuck = settle(&root, Duration::from_secs(5), &stop);
    assert!(stuck.waited >= PATIENCE && stuck.waited < Duration::from_secs(2) && stuck.note().is_some());
    std::fs::write(dir.path().join("proc/meminfo"), "Dirty: 12 kB\nWriteback: 0 kB\n")?;
    assert_eq!(settle(&root, Duration::from_secs(5), &stop).note(), None);
    Ok(())
}

#[test]
fn written_pages_are_counted() -> io::Result<()> {
    use std::io::Write;
    let mut file = tempfile::tempfile()?;
    file.write_all(&vec![1; 1 << 20])?;
    assert_eq!(count_cached_pages(&file).map(|p| p.cached * p.page_bytes), Ok(1 << 20));
    Ok(())
}
