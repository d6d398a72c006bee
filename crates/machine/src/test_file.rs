//! Test files: made whole, of unique data, proven, and gone at the end.
//!
//! For: a file whose reads must reach the device, that no way out of the program leaves behind. Not for: files of the user's.
//! Where the file system has `O_TMPFILE` the file never has a name, so even `kill -9` leaves nothing. Elsewhere it has a name
//! of ours and a lock for as long as it is in use; what a killed run left is unlocked, and is found by the next.

use crate::error::MachineError;
use crate::pages;
use crate::rest;
use crate::safety::{self, flags};
use model::payload;
use model::units::{MIB, show_bytes};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use sys::arena::Arena;

const PREFIX: &str = ".fathom-test-";
const SUFFIX: &str = ".tmp";
/// Share of a file system that is never filled: one twentieth.
const KEEP_FREE: u64 = 20;
/// Longest time to write a test file; a slower device gets a smaller one.
const WRITE_LIMIT: Duration = Duration::from_secs(15);
/// Smallest test file that is worth measuring: room for every profile at its depth.
const LEAST_BYTES: u64 = 16 * MIB;
/// Bytes per write.
const CHUNK: usize = MIB as usize;
/// Share of a file that may be stored otherwise than as plain written blocks before it is said: the metadata of its last block.
const PROOF_SHARE: f64 = 0.001;

/// Names of files that are to be removed whatever happens.
static NAMED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Tells test files of one process apart.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A test file. Removed when dropped.
#[derive(Debug)]
pub struct TestFile {
    file: File,
    name: Option<PathBuf>,
    bytes: u64,
    notes: Vec<String>,
}

/// A test file that a killed run left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was last written.
    pub modified: Option<SystemTime>,
}

impl TestFile {
    /// Makes a file of `wish` bytes, or fewer where space or time ask for it: then a note says so.
    ///
    /// `stop` ends it between writes; `progress` is told bytes done and bytes to do.
    ///
    /// # Errors
    /// Why no file of a useful size can be made: rights, space, a read-only mount, a signal.
    pub fn make(
        dir: &Path,
        wish: u64,
        seed: u64,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, MachineError> {
        safety::refuse_read_only(dir)?;
        let (goal, note) = room(dir, wish)?;
        let (file, name) = create(dir)?;
        let mut made = Self { file, name, bytes: 0, notes: note.into_iter().collect() };
        made.bytes = made.write(goal, seed, stop, progress).map_err(|e| {
            MachineError::refused(format!("the test file in {} cannot be written: {e}", dir.display()))
        })?;
        if stop.load(Ordering::Relaxed) {
            return Err(MachineError::refused("interrupted while the test file was written; it is removed"));
        }
        if made.bytes < goal {
            made.notes.push(format!(
                "the test file has {} instead of {}: writing more would have taken over {} s",
                show_bytes(made.bytes),
                show_bytes(goal),
                WRITE_LIMIT.as_secs()
            ));
        }
        if made.bytes < LEAST_BYTES.min(goal) {
            return Err(MachineError::refused(format!(
                "{} takes less than {} in {} s; type a smaller --size to measure it all the same",
                dir.display(),
                show_bytes(LEAST_BYTES),
                WRITE_LIMIT.as_secs()
            )));
        }
        made.prove();
        Ok(made)
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The open file, for looking at it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// What had to be said: a smaller size, a proof that failed or could not be made.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Opens it once more with other flags; works without a name.
    ///
    /// # Errors
    /// What the kernel answers: `EINVAL` where there is no direct I/O.
    pub fn reopen(&self, direct: bool, sync: bool, write: bool) -> io::Result<File> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        File::options().read(true).write(write).custom_flags(flags(direct, sync)).open(path)
    }

    /// Writes it whole, past the page cache where that works. Returns the bytes written, whole MiB but for the goal itself.
    fn write(
        &self,
        goal: u64,
        seed: u64,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> io::Result<u64> {
        let mut memory = Arena::new(1, CHUNK)?;
        let start = Instant::now();
        let mut direct = self.reopen(true, false, true).ok();
        let mut done = 0;
        while done < goal && !stop.load(Ordering::Relaxed) && start.elapsed() < WRITE_LIMIT {
            let length = (goal - done).min(CHUNK as u64) as usize;
            let data = &mut memory.slot_mut(0)[..length];
            payload::fill(data, seed.wrapping_add(done / CHUNK as u64));
            let past_cache = direct.as_ref().map(|f| f.write_all_at(data, done));
            match past_cache {
                Some(Ok(())) => {}
                // The file system refuses direct writes, or this length of them: the page cache takes the rest.
                Some(Err(e)) if e.kind() == ErrorKind::InvalidInput => {
                    direct = None;
                    self.file.write_all_at(data, done)?;
                }
                Some(Err(e)) => return Err(e),
                None => self.file.write_all_at(data, done)?,
            }
            done += length as u64;
            progress(done, goal);
        }
        self.file.sync_all()?;
        Ok(done)
    }

    /// Evicts it and looks that every byte is a written block on the device and none is in memory.
    fn prove(&mut self) {
        match rest::evict(&self.file) {
            Ok(p) if p.cached > 0 => {
                self.notes.push(format!("{} pages of the test file stay in the page cache", p.cached));
            }
            Ok(_) => {}
            Err(why) => {
                self.notes
                    .push(format!("whether the test file is out of the page cache is not known: {why}"));
            }
        }
        match pages::extents(&self.file, self.bytes) {
            Ok(e) => {
                let odd = [
                    (e.hole_bytes, "not allocated"),
                    (e.unwritten_bytes, "allocated and not written"),
                    (e.delayed_bytes, "not allocated yet"),
                    (e.inline_bytes, "inside the inode"),
                    (e.encoded_bytes, "compressed or encrypted by the file system"),
                ];
                for (bytes, how) in odd {
                    if bytes as f64 > self.bytes as f64 * PROOF_SHARE {
                        self.notes.push(format!("{} of the test file are {how}", show_bytes(bytes)));
                    }
                }
            }
            Err(why) => self.notes.push(format!("how the test file is stored is not known: {why}")),
        }
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = std::fs::remove_file(&name);
            named(|all| all.retain(|n| *n != name));
        }
    }
}

/// Removes every test file that still has a name. For leaving at once.
pub fn remove_all_now() {
    named(|all| {
        for name in all.drain(..) {
            let _ = std::fs::remove_file(name);
        }
    });
}

/// Test files in a directory that no live run holds.
pub fn leftovers(dir: &Path) -> Vec<Leftover> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let ours = entries.filter(|e| {
        let name = e.file_name();
        let name = name.to_string_lossy();
        name.starts_with(PREFIX) && name.ends_with(SUFFIX)
    });
    ours.filter_map(|e| {
        let file = File::open(e.path()).ok()?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
        let facts = file.metadata().ok()?;
        Some(Leftover { path: e.path(), bytes: facts.len(), modified: facts.modified().ok() })
    })
    .collect()
}

fn named<T>(change: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    change(&mut NAMED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether a file of a size that the user asked for fits at all.
///
/// # Errors
/// A refusal that names the largest size that does.
pub fn fits(dir: &Path, wish: u64) -> Result<(), MachineError> {
    match room(dir, wish)? {
        (most, Some(_)) => Err(MachineError::refused(format!(
            "--size {}: {} has room for {}, since 5 % of a file system stays free; type --size {}m or less, or make room",
            show_bytes(wish),
            dir.display(),
            show_bytes(most),
            most / MIB
        ))),
        (_, None) => Ok(()),
    }
}

/// How large a file may be, and a sentence where that is less than wished for.
fn room(dir: &Path, wish: u64) -> Result<(u64, Option<String>), MachineError> {
    let facts = rustix::fs::statvfs(dir).map_err(|e| {
        MachineError::refused(format!("the free space of {} is not known: {e}", dir.display()))
    })?;
    let keep = facts.f_blocks.saturating_mul(facts.f_frsize) / KEEP_FREE;
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    let most = free.saturating_sub(keep) / MIB * MIB;
    if wish <= most {
        return Ok((wish, None));
    }
    if most < LEAST_BYTES {
        return Err(MachineError::refused(format!(
            "{} has {} free, and fathom leaves 5 % of a file system ({}) free; make room, or name another place",
            dir.display(),
            show_bytes(free),
            show_bytes(keep)
        )));
    }
    let note = format!(
        "the test file has {} instead of {}: 5 % of the file system stays free",
        show_bytes(most),
        show_bytes(wish)
    );
    Ok((most, Some(note)))
}

/// A file without a name, or with one of ours and a lock.
fn create(dir: &Path) -> Result<(File, Option<PathBuf>), MachineError> {
    let mode = Mode::RUSR | Mode::WUSR;
    if let Ok(fd) = rustix::fs::open(dir, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        return Ok((File::from(fd), None));
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    let odd = payload::split_mix(now ^ COUNTER.fetch_add(1, Ordering::Relaxed));
    let path = dir.join(format!("{PREFIX}{}-{odd:016x}{SUFFIX}", std::process::id()));
    let file =
        File::options().read(true).write(true).create_new(true).mode(0o600).open(&path).map_err(|e| {
            let cure = match e.kind() {
                ErrorKind::PermissionDenied => "this user may not write there; name a directory of yours",
                ErrorKind::ReadOnlyFilesystem => "the mount is read only; name another place",
                ErrorKind::StorageFull => "there is no space; make room or name another place",
                _ => "name another place",
            };
            MachineError::refused(format!("no test file can be made in {}: {e}; {cure}", dir.display()))
        })?;
    named(|all| all.push(path.clone()));
    // Without locks (some network file systems) a leftover of ours may be offered while it is in use; it says whose pid it has.
    let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok((file, Some(path)))
}

#[cfg(test)]
fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("fathom-{name}-{}", std::process::id()));
    let _ = std::fs::create_dir_all(&dir);
    dir
}

#[test]
fn a_test_file_is_whole_unique_and_leaves_nothing() {
    let dir = scratch("whole");
    let made = TestFile::make(&dir, 32 * MIB, 1, &AtomicBool::new(false), &mut |_, _| {})
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(made.bytes(), 32 * MIB);
    let (mut a, mut b) = (vec![0; 4096], vec![0; 4096]);
    made.file().read_exact_at(&mut a, 0).unwrap_or_else(|e| panic!("{e}"));
    made.file().read_exact_at(&mut b, 31 * MIB).unwrap_or_else(|e| panic!("{e}"));
    assert_ne!(a, b);
    assert!(made.reopen(false, false, true).is_ok_and(|f| f.write_all_at(&a, 0).is_ok()));
    assert!(made.reopen(false, false, false).is_ok_and(|f| f.write_all_at(&a, 0).is_err()));
    drop(made);
    assert_eq!(std::fs::read_dir(&dir).map_or(9, Iterator::count), 0);
    let _ = std::fs::remove_dir(&dir);
}

#[test]
fn only_files_of_dead_runs_are_left_over() {
    let dir = scratch("leftover");
    let path = dir.join(format!("{PREFIX}1-00{SUFFIX}"));
    let held = File::create(&path).unwrap_or_else(|e| panic!("{e}"));
    rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(leftovers(&dir), []);
    drop(held);
    assert_eq!(leftovers(&dir).first().map(|l| l.path.clone()), Some(path.clone()));
    let _ = std::fs::remove_dir_all(&dir);
}
