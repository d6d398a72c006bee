//! Test files of our own: made, filled, proven, and gone at the end.
//!
//! For: files whose every byte was written once, is stored and is not cached, and that no exit leaves behind. Not for: files of
//! the user's. What cannot be proven is a note, which the checks judge.

mod common;
mod writer;

pub use self::common::common_name;
pub(crate) use self::common::host;
pub(crate) use self::writer::Writer;

use crate::error::MachineError;
use crate::root::Root;
use crate::{extents, file_systems, identity, pages, rest, safety};
use model::evidence::{Extents, meminfo_bytes};
use model::job::Cache;
use model::name;
use model::payload::split_mix;
use model::units::{MIB, minutes, show_bytes};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstatfs, fstatvfs};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Smaller files say nothing about storage.
pub const LEAST_BYTES: u64 = 16 * MIB;
/// Share of a file system that stays free: one in twenty.
const KEPT_FREE: u64 = 20;
/// How often free space is looked at and buffered data are pushed to the device while filling.
const LOOK_EVERY: u64 = 16 * MIB;
pub(crate) const PREFIX: &str = ".fathom-test-";
pub(crate) const SUFFIX: &str = ".tmp";
/// `TMPFS_MAGIC`, `RAMFS_MAGIC`.
const MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Test files with a name, for whoever removes them first: their owner or a forced exit.
static NAMED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A test file; dropping it removes it.
#[derive(Debug)]
pub struct TestFile {
    file: File,
    /// `None` where the file never had a name, so that nothing at all can leave it behind.
    name: Option<PathBuf>,
    bytes: u64,
    notes: Vec<String>,
    /// Of a file that another host made and removes: whether that host may be lost, so that this one has to.
    others: Option<Arc<AtomicBool>>,
}

impl TestFile {
    /// Makes a file in `dir` and fills it with data that nothing else has; with fewer than asked where that takes longer than
    /// `limit`. `progress` gets bytes done and bytes in all.
    ///
    /// # Errors
    /// [`MachineError::Usage`] where less than 16 MiB is asked for; refused where there is no permission or less room than that, and
    /// where the stop flag came up.
    pub fn make(
        dir: &Path,
        asked_bytes: u64,
        (seed, limit): (u64, Duration),
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, MachineError> {
        large_enough(asked_bytes)?;
        Self::begun(create(dir)?).filled(dir, asked_bytes, (seed, limit), stop, progress)
    }

    /// Makes an empty file of this length in `dir`, to find out what its file system can do.
    ///
    /// # Errors
    /// As [`Self::make`], where there is no permission or no room for a file at all.
    pub fn lend(dir: &Path, bytes: u64) -> Result<Self, MachineError> {
        let lent = Self::begun(create(dir)?);
        lent.file.set_len(bytes).map_err(|e| MachineError::at(dir, "written to", &e))?;
        Ok(lent)
    }

    /// One that is open, with its name.
    fn begun((file, name): (File, Option<PathBuf>)) -> Self {
        let mut made = Self { file, name, bytes: 0, notes: Vec::new(), others: None };
        // The lock tells later runs that this file is alive. It only matters where the file has a name.
        let locked = flock(&made.file, FlockOperation::NonBlockingLockExclusive);
        if let (Err(e), Some(name)) = (locked, &made.name) {
            made.notes.push(format!(
                "{} cannot be locked ({e}); run nothing that cleans up here",
                name::shown(name)
            ));
        }
        made
    }

    /// Fills the file with up to `asked_bytes` of data, and notes what is not as asked or cannot be proven.
    fn filled(
        mut self,
        dir: &Path,
        asked_bytes: u64,
        (seed, limit): (u64, Duration),
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, MachineError> {
        let target = self.fitting(dir, asked_bytes)?;
        self.fill(dir, target, (seed, limit), stop, progress)?;
        self.prove();
        Ok(self)
    }

    /// Bytes of the file: all of them written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// For looking at it, syncing and evicting it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// What was not as asked or cannot be proven, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Opens it once more. One that never had a name is opened without rights on the directory.
    ///
    /// # Errors
    /// `InvalidInput` where the file system has no direct I/O; not found where its name leads to it no more.
    pub fn reopen(&self, cache: Cache, write: bool) -> io::Result<File> {
        let path = self.name.clone().unwrap_or_else(|| by_descriptor(&self.file));
        // What stands there may wait for ever to be opened, so it is looked at before too.
        if !leads_to(&path, &self.file) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("{} does not lead to the test file any more", name::shown(&path)),
            ));
        }
        safety::open_for_work(&path, write, cache)
    }

    /// The largest whole number of MiB that leaves enough free.
    fn fitting(&mut self, dir: &Path, asked: u64) -> Result<u64, MachineError> {
        let Some(room) = room(&self.file) else {
            self.notes.push(format!("the file system of {} does not say how much is free", name::shown(dir)));
            return Ok(asked / MIB * MIB);
        };
        let target = asked.min(room) / MIB * MIB;
        if target < LEAST_BYTES {
            return Err(no_room(dir, room));
        }
        if target < asked / MIB * MIB {
            self.notes.push(format!(
                "the test file is {} instead of {}, so that 5 % of its file system stay free",
                show_bytes(target),
                show_bytes(asked)
            ));
        }
        Ok(target)
    }

    fn fill(
        &mut self,
        dir: &Path,
        target: u64,
        (seed, limit): (u64, Duration),
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), MachineError> {
        let mut writer = Writer::new(self, seed).map_err(|e| MachineError::at(dir, "filled", &e))?;
        let start = Instant::now();
        let mut done = 0;
        let ended = loop {
            if done >= target {
                break Filled::Whole;
            }
            if stop.load(Ordering::Relaxed) {
                return Err(MachineError::Refused("interrupted while the test file was written".into()));
            }
            if start.elapsed() > limit && done >= LEAST_BYTES {
                break Filled::Slow;
            }
            // Others write here too; what was free at the beginning may be gone.
            if done.is_multiple_of(LOOK_EVERY) && room(&self.file).is_some_and(|r| r < MIB) {
                break Filled::Full;
            }
            match writer.next(done) {
                Ok(()) => done += MIB,
                Err(e) if is_full(&e) => break Filled::Full,
                Err(e) => return Err(MachineError::at(dir, "filled", &e)),
            }
            progress(done, target);
        };
        drop(writer);
        self.finish(dir, done, target, (ended, limit))
    }

    /// Cuts the file to what was written and makes it stable.
    fn finish(
        &mut self,
        dir: &Path,
        done: u64,
        target: u64,
        (ended, limit): (Filled, Duration),
    ) -> Result<(), MachineError> {
        let bytes = match ended {
            // Nothing may be left with a full disk, so a part is given back.
            Filled::Full => (done - done / 16) / MIB * MIB,
            Filled::Whole | Filled::Slow => done,
        };
        if bytes < LEAST_BYTES {
            return Err(no_room(dir, bytes));
        }
        let why = match ended {
            Filled::Whole => None,
            Filled::Slow => Some(format!(
                "because writing more would have taken longer than {}",
                minutes(limit.as_nanos() as u64)
            )),
            Filled::Full => Some("because the file system or a quota had no more room".into()),
        };
        if let Some(why) = why {
            self.notes.push(format!(
                "the test file is {} instead of {}, {why}",
                show_bytes(bytes),
                show_bytes(target)
            ));
        }
        let settled = self.file.set_len(bytes).and_then(|()| self.file.sync_all());
        settled.map_err(|e| MachineError::at(dir, "filled", &e))?;
        self.bytes = bytes;
        Ok(())
    }

    /// Looks at what was made, and says what is not as it should be.
    fn prove(&mut self) {
        match extents::map_file_extents(&self.file) {
            Ok(found) => self.notes.extend(extent_notes(&found)),
            Err(why) => self.notes.push(format!("how the test file is stored cannot be proven: {why}")),
        }
        match rest::evict(&self.file).and_then(|_| pages::count_cached_pages(&self.file)) {
            Ok(pages) if pages.cached > 0 => self.notes.push(format!(
                "{} of the test file stay in memory after eviction",
                show_bytes(pages.cached.saturating_mul(pages.page_bytes))
            )),
            Ok(_) => {}
            Err(why) => {
                self.notes.push(format!("that the test file left the page cache cannot be proven: {why}"));
            }
        }
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let is_ours = self.others.is_none();
        if is_ours {
            // A ring may give the file back a while after the process has ended. Empty, it takes no room until then.
            let _ = self.file.set_len(0);
        }
        if let Some(name) = self.name.take() {
            named().retain(|n| *n != name);
            // Whoever made it may not be there any more to remove it.
            let is_left = self.others.as_ref().is_some_and(|ended| ended.load(Ordering::Relaxed));
            if is_ours || (is_left && leads_to(&name, &self.file)) {
                let _ = std::fs::remove_file(name);
            }
        }
    }
}

/// Why filling ended.
#[derive(Clone, Copy)]
enum Filled {
    Whole,
    Slow,
    Full,
}

/// Opens a file without a name, or else one with a name of ours.
fn create(dir: &Path) -> Result<(File, Option<PathBuf>), MachineError> {
    file_systems::refuse_synthetic_at(dir, dir)?;
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(dir, flags | OFlags::TMPFILE | OFlags::EXCL, mode) {
        // Opened again it is through /proc. Where that is not to be had, it needs a name.
        Ok(file) => {
            let file = File::from(file);
            if leads_to(&by_descriptor(&file), &file) { Ok((file, None)) } else { create_named(dir) }
        }
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => create_named(dir),
        Err(e) => Err(MachineError::at(dir, "written to", &e.into())),
    }
}

/// A name for whatever is open, where `/proc` is mounted.
fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Whether a path leads to an open file.
fn leads_to(path: &Path, file: &File) -> bool {
    identity::of_path(path).is_ok_and(|there| identity::of_file(file).is_ok_and(|ours| there.is_same(&ours)))
}

fn create_named(dir: &Path) -> Result<(File, Option<PathBuf>), MachineError> {
    create_as(dir, &common_name())
}

fn create_as(dir: &Path, name: &str) -> Result<(File, Option<PathBuf>), MachineError> {
    file_systems::refuse_synthetic_at(dir, dir)?;
    // The working directory may change before the file is removed.
    let dir = std::path::absolute(dir).map_err(|e| MachineError::at(dir, "looked at", &e))?;
    let path = dir.join(name);
    // Held over both steps, so that a forced exit between them still knows the name.
    let mut names = named();
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).map_err(|e| MachineError::at(&dir, "written to", &e))?;
    names.push(path.clone());
    Ok((file, Some(path)))
}

/// Removes every test file with a name that this process still has: for a forced exit, right before it.
pub fn remove_all_now() {
    for name in named().drain(..) {
        let _ = std::fs::remove_file(name);
    }
}

fn named() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn random() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    split_mix(now.map_or(0, |d| d.as_nanos() as u64))
}

/// Bytes that may be written so that enough stays free; `None` where the file system does not say.
fn room(file: &File) -> Option<u64> {
    let space = fstatvfs(file).ok()?;
    let memory = fstatfs(file).is_ok_and(|s| MEMORY.contains(&s.f_type));
    let block = space.f_frsize.max(1);
    let on_disk = (space.f_blocks > 0).then(|| {
        let total = space.f_blocks.saturating_mul(block);
        space.f_bavail.saturating_mul(block).saturating_sub(total / KEPT_FREE)
    });
    if !memory {
        return on_disk;
    }
    // What is written here takes memory from everybody, whatever size the mount claims.
    let text = Root::real().read("/proc/meminfo").ok()?;
    let half = meminfo_bytes(&text, "MemAvailable").ok()? / 2;
    Some(on_disk.map_or(half, |d| d.min(half)))
}

/// Whether a file of a size that the user typed fits in a directory. Looks only, so nothing has to be written to find out.
///
/// # Errors
/// A refusal that names the largest size that does.
pub fn fits(dir: &Path, asked_bytes: u64) -> Result<(), MachineError> {
    let Some(room) = File::open(dir).ok().and_then(|d| room(&d)).filter(|r| *r < asked_bytes) else {
        return Ok(());
    };
    if room < LEAST_BYTES {
        return Err(no_room(dir, room));
    }
    Err(MachineError::Refused(format!(
        "--size {} does not fit: {} has room for {}, since 5 % of its file system stay free; type --size {}m or less, or make room",
        show_bytes(asked_bytes),
        name::shown(dir),
        show_bytes(room),
        room / MIB
    )))
}

fn large_enough(asked_bytes: u64) -> Result<(), MachineError> {
    if asked_bytes >= LEAST_BYTES {
        return Ok(());
    }
    Err(MachineError::Usage(format!(
        "a test file of {} is too small to say anything about storage; type --size 16m or more",
        show_bytes(asked_bytes)
    )))
}

fn no_room(dir: &Path, room: u64) -> MachineError {
    MachineError::Refused(format!(
        "{} has room for {} only (5 % of its file system stay free), and a test file needs {}; make room, or name another \
         directory",
        name::shown(dir),
        show_bytes(room),
        show_bytes(LEAST_BYTES)
    ))
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn extent_notes(found: &Extents) -> Vec<String> {
    let states = [
        (found.hole_bytes, "are holes"),
        (found.unwritten_bytes, "count as never written"),
        (found.delayed_bytes, "have no place yet"),
        (found.inline_bytes, "are inside an inode"),
        (found.encoded_bytes, "are stored compressed or encrypted"),
        (found.shared_bytes, "are shared with another file"),
    ];
    let some = states.into_iter().filter(|(bytes, _)| *bytes > 0);
    some.map(|(bytes, what)| format!("{} of the test file {what}", show_bytes(bytes))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn made(dir: &Path, bytes: u64) -> Result<TestFile, MachineError> {
        let limit = Duration::from_secs(15);
        TestFile::make(dir, bytes, (7, limit), &AtomicBool::new(false), &mut |_, _| {})
    }

    #[test]
    fn a_test_file_is_whole_unique_and_gone_at_the_end() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let file = made(dir.path(), 20 * MIB + 5)?;
        println!("{:?}", file.notes());
        assert_eq!((file.bytes(), file.file().metadata()?.len()), (20 * MIB, 20 * MIB));
        let mut seen = std::collections::HashSet::new();
        let mut block = vec![0; 4096];
        let reader = file.reopen(Cache::Buffered, false)?;
        for at in (0..file.bytes()).step_by(4096) {
            reader.read_exact_at(&mut block, at)?;
            assert!(seen.insert(block.clone()), "the block at {at} was there before");
        }
        assert!(reader.write_at(&block, 0).is_err());
        file.reopen(Cache::Dsync, true)?.write_all_at(&block, 0)?;
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
        Ok(())
    }

    #[test]
    fn small_wishes_and_interruptions_make_no_file() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        assert!(made(dir.path(), MIB).is_err_and(|e| e.class() == crate::error::Class::Usage));
        let stop = AtomicBool::new(true);
        assert!(TestFile::make(dir.path(), 64 * MIB, (7, Duration::MAX), &stop, &mut |_, _| {}).is_err());
        assert!(
            made(&dir.path().join("absent"), 64 * MIB)
                .is_err_and(|e| e.class() == crate::error::Class::Usage)
        );
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
        Ok(())
    }

    #[test]
    fn named_files_are_removed_by_a_forced_exit() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (_file, name) = create_named(dir.path())?;
        let name = name.ok_or("no name")?;
        assert!(name.exists());
        remove_all_now();
        assert!(!name.exists() && named().is_empty());
        Ok(())
    }
}
