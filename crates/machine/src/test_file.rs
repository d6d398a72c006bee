//! Test files: created, filled, verified, and removed when fathom exits.
//!
//! 1. [`TestFile::make`] creates a file, without a name if the file system allows it (`O_TMPFILE`), and locks it.
//! 2. fathom reserves the space in one piece if the file system can, and fills the file with unique data, with direct I/O if that works.
//!    On a slow or full file system the file becomes smaller than requested.
//! 3. The extents and the cached pages of the file are checked. Each deviation becomes a note, which the checks evaluate.
//! 4. Dropping the `TestFile`, or a forced exit, removes the file. [`leftovers`] finds the files of killed runs.
//!
//! Several hosts can share a test file. One host creates it under a common name, and removes it. The other hosts remove it only if the
//! run ends early, because the creating host may then be lost.

use crate::error::MachineError;
use crate::in_use::Use;
use crate::root::Root;
use crate::{extents, file_systems, identity, in_use, page_cache, safety};
use model::evidence::{Extents, meminfo_bytes};
use model::job::Cache;
use model::machine::Identity;
use model::name;
use model::payload::{fill, split_mix};
use model::units::{MIB, minutes, show_bytes};
use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags, fallocate, flock, fstatvfs};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use sys::arena::Arena;

/// Minimum size of a test file. With a smaller file the run would measure caches.
pub const MIN_BYTES: u64 = 16 * MIB;
/// A test file leaves 1/20 of its file system free.
const FREE_SHARE: u64 = 20;
/// Interval in bytes at which filling checks the free space and syncs buffered data.
const CHECK_INTERVAL_BYTES: u64 = 16 * MIB;
pub(crate) const PREFIX: &str = ".fathom-test-";
pub(crate) const SUFFIX: &str = ".tmp";
/// Test files of this process that have a name. Dropping the [`TestFile`] or a forced exit removes
/// them.
static NAMED: Mutex<Vec<(PathBuf, Identity)>> = Mutex::new(Vec::new());

/// A test file. Dropping it removes the file, unless another host created the file and may still
/// use it.
#[derive(Debug)]
pub struct TestFile {
    file: File,
    /// Path of the file; `None` for a file without a name, which the kernel removes when it is closed.
    name: Option<PathBuf>,
    bytes: u64,
    notes: Vec<String>,
    /// Set if another host created the file. The flag becomes true if that host may be lost; then this host removes the file.
    creator_ended: Option<Arc<AtomicBool>>,
}

impl TestFile {
    /// Creates a file in `dir` and fills it with unique data. Fills less than `asked_bytes` if the
    /// space is too small, or if filling takes longer than `limit`. A file that several hosts share
    /// has the name `common_name`. `progress` gets the bytes written and the total.
    ///
    /// # Errors
    ///
    /// [`MachineError::Usage`] for less than 16 MiB; [`MachineError::Refused`] without permission, with less
    /// than 16 MiB of space, and if the stop flag is set.
    pub fn make(
        dir: &Path,
        common_name: Option<&str>,
        asked_bytes: u64,
        seed: u64,
        limit: Duration,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, MachineError> {
        refuse_too_small(asked_bytes)?;
        let (file, name) = common_name.map_or_else(|| create(dir), |name| create_as(dir, name))?;
        let mut made = Self::from_open(file, name);
        let target_bytes = made.limit_to_room(dir, asked_bytes)?;
        made.fill(dir, target_bytes, seed, limit, stop, progress)?;
        made.check_storage();
        Ok(made)
    }

    /// Creates a sparse file of this length in `dir`, to test what its file system supports.
    ///
    /// # Errors
    ///
    /// As [`Self::make`], if permission or space for a file is missing.
    pub fn make_sparse(dir: &Path, bytes: u64) -> Result<Self, MachineError> {
        let (file, name) = create(dir)?;
        let lent = Self::from_open(file, name);
        lent.file.set_len(bytes).map_err(|e| MachineError::at(dir, "written to", &e))?;
        Ok(lent)
    }

    /// Wraps an open file with its name, and locks it.
    fn from_open(file: File, name: Option<PathBuf>) -> Self {
        let mut made = Self { file, name, bytes: 0, notes: Vec::new(), creator_ended: None };
        // The lock shows later fathom processes that the file is in use. They cannot find a file without a name.
        let locked = flock(&made.file, FlockOperation::NonBlockingLockExclusive);
        if let (Err(e), Some(name)) = (locked, &made.name) {
            made.notes.push(format!(
                "{} cannot be locked ({e}); another fathom could remove it as a leftover",
                name::shown(name)
            ));
        }
        made
    }

    /// Returns the length of the test data in bytes; 0 for a file of [`Self::make_sparse`].
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the open file, for checking, syncing and evicting it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns all deviations from the request and everything that could not be checked, as sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Opens the file a second time. For a file without a name this needs no rights on the directory.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the file system has no direct I/O; `NotFound` if the name leads to another file.
    pub fn reopen(&self, cache: Cache, write: bool) -> io::Result<File> {
        let path = self.name.clone().unwrap_or_else(|| descriptor_path(&self.file));
        // Check the name first: opening another file, such as a FIFO, could block forever.
        let opened =
            if is_path_of(&path, &self.file) { Some(safety::open_file(&path, write, cache)?) } else { None };
        // The name may have been given to another file meanwhile.
        opened.filter(|opened| is_same(opened, &self.file)).ok_or_else(|| {
            let shown = name::shown(&path);
            let why = format!("{shown} no longer leads to the test file: it was removed or replaced");
            io::Error::new(ErrorKind::NotFound, why)
        })
    }

    /// Returns `asked` in whole MiB, or less if more would not leave enough free space. Fails if
    /// less than [`MIN_BYTES`] fit.
    fn limit_to_room(&mut self, dir: &Path, asked: u64) -> Result<u64, MachineError> {
        let Some(room) = writable_bytes(&self.file) else {
            self.notes
                .push(format!("the file system of {} does not report its free space", name::shown(dir)));
            return Ok(asked / MIB * MIB);
        };
        let target = asked.min(room) / MIB * MIB;
        if target < MIN_BYTES {
            return Err(no_room(dir, room));
        }
        if target < asked / MIB * MIB {
            self.notes.push(format!(
                "the test file is {} instead of {}: fathom leaves 5 % of a file system free, and on tmpfs half of the available memory",
                show_bytes(target),
                show_bytes(asked)
            ));
        }
        Ok(target)
    }

    /// Reserves the space of the file before the first write, so that the file is stored in one piece
    /// if the file system has a free piece of this size. If the reserved space is in several pieces,
    /// tries once more. Returns whether the space is reserved. Some file systems cannot do that.
    fn reserve(&self, bytes: u64) -> bool {
        let reserve = || fallocate(&self.file, FallocateFlags::empty(), 0, bytes).is_ok();
        let is_split = || {
            let stored = extents::map_file_extents(&self.file);
            stored.is_ok_and(|extents| extents.largest_share().is_some_and(|share| share < 1.0))
        };
        let is_reserved = reserve() && (!is_split() || (self.file.set_len(0).is_ok() && reserve()));
        if !is_reserved {
            // On a full disk, a part of the space may have been reserved.
            let _ = self.file.set_len(0);
        }
        is_reserved
    }

    /// Writes up to `target` bytes, truncates the file to the written length, and syncs it.
    fn fill(
        &mut self,
        dir: &Path,
        target: u64,
        seed: u64,
        limit: Duration,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), MachineError> {
        let is_reserved = self.reserve(target);
        let mut writer = Writer::new(self, seed).map_err(|e| MachineError::at(dir, "filled", &e))?;
        let start = Instant::now();
        let mut done = 0;
        // Give some space back, so that other programs do not find a full disk.
        let full = |done: u64| {
            (
                (done - done / 16) / MIB * MIB,
                Some("because the file system was full or a quota was reached".to_owned()),
            )
        };
        let (bytes, why) = loop {
            if done >= target {
                break (done, None);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(MachineError::Refused("interrupted while the test file was written".into()));
            }
            if start.elapsed() > limit && done >= MIN_BYTES {
                let limit = minutes(limit.as_nanos() as u64);
                break (done, Some(format!("because writing more would have taken longer than {limit}")));
            }
            // Other programs write here too, so free space may shrink.
            if !is_reserved
                && done.is_multiple_of(CHECK_INTERVAL_BYTES)
                && writable_bytes(&self.file).is_some_and(|r| r < MIB)
            {
                break full(done);
            }
            match writer.write_mib(done) {
                Ok(()) => done += MIB,
                Err(e) => match e.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => break full(done),
                    _ => return Err(MachineError::at(dir, "filled", &e)),
                },
            }
            progress(done, target);
        };
        drop(writer);
        if bytes < MIN_BYTES {
            return Err(MachineError::Refused(format!(
                "after {1} of the test file, {0} was full or a quota was reached, but a test file needs at least {2}; make room, or name another directory",
                name::shown(dir),
                show_bytes(done),
                show_bytes(MIN_BYTES)
            )));
        }
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

    /// Checks the extents and cached pages of the file, and adds a note for every deviation. If several hosts share the file, call this
    /// after all of them have written their parts.
    pub fn check_storage(&mut self) {
        match extents::map_file_extents(&self.file) {
            Ok(found) => self.notes.extend(extent_notes(&found)),
            Err(why) => self.notes.push(format!("could not check how the test file is stored: {why}")),
        }
        match page_cache::evict(&self.file).and_then(|_| page_cache::count_cached_pages(&self.file)) {
            Ok(pages) if pages.cached > 0 => self.notes.push(format!(
                "{} of the test file remain in the page cache after eviction",
                show_bytes(pages.cached.saturating_mul(pages.page_bytes))
            )),
            Ok(_) => {}
            Err(why) => {
                self.notes.push(format!("could not check that the test file left the page cache: {why}"));
            }
        }
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let is_ours = self.creator_ended.is_none();
        if is_ours {
            // A ring may release the file some time after the process has ended. An empty file takes no space until then.
            let _ = self.file.set_len(0);
        }
        if let Some(name) = self.name.take() {
            named_files().retain(|(n, _)| *n != name);
            // The host that created the file may be lost.
            let is_left = self.creator_ended.as_ref().is_some_and(|ended| ended.load(Ordering::Relaxed));
            if let (true, Ok(identity)) = (is_ours || is_left, identity::from_file(&self.file)) {
                let _ = remove(&name, &identity);
            }
        }
    }
}

/// Creates a file without a name, or with a name if the file system requires one.
fn create(dir: &Path) -> Result<(File, Option<PathBuf>), MachineError> {
    file_systems::refuse_synthetic_at(dir, dir)?;
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(dir, flags | OFlags::TMPFILE | OFlags::EXCL, mode) {
        // Without /proc the file could not be opened again, so it needs a name.
        Ok(file) => {
            let file = File::from(file);
            if is_path_of(&descriptor_path(&file), &file) {
                Ok((file, None))
            } else {
                create_as(dir, &unique_name())
            }
        }
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => create_as(dir, &unique_name()),
        Err(e) => Err(MachineError::at(dir, "written to", &e.into())),
    }
}

/// Returns a path in `/proc` to an open file.
fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Whether a path leads to this open file.
fn is_path_of(path: &Path, file: &File) -> bool {
    identity::from_path(path)
        .is_ok_and(|there| identity::from_file(file).is_ok_and(|open| there.is_same(&open)))
}

/// Whether two descriptors are of the same file.
fn is_same(a: &File, b: &File) -> bool {
    identity::from_file(a).is_ok_and(|a| identity::from_file(b).is_ok_and(|b| a.is_same(&b)))
}

/// Removes a file, unless another file has taken its name.
fn remove(path: &Path, identity: &Identity) -> io::Result<()> {
    if identity::from_metadata(&path.symlink_metadata()?).is_same(identity) {
        return std::fs::remove_file(path);
    }
    Err(io::Error::other("another file has its name"))
}

fn create_as(dir: &Path, name: &str) -> Result<(File, Option<PathBuf>), MachineError> {
    file_systems::refuse_synthetic_at(dir, dir)?;
    // The working directory may change before the file is removed.
    let dir = std::path::absolute(dir).map_err(|e| MachineError::at(dir, "accessed", &e))?;
    let path = dir.join(name);
    // Hold the lock over both steps: a forced exit between them waits, and then removes the file.
    let mut names = named_files();
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).map_err(|e| MachineError::at(&dir, "written to", &e))?;
    let identity = identity::from_file(&file).map_err(|e| MachineError::at(&path, "accessed", &e))?;
    names.push((path.clone(), identity));
    Ok((file, Some(path)))
}

/// Removes every named test file of this process, right before a forced exit.
pub fn remove_all_now() {
    for (name, identity) in named_files().drain(..) {
        let _ = remove(&name, &identity);
    }
}

fn named_files() -> std::sync::MutexGuard<'static, Vec<(PathBuf, Identity)>> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a number that distinguishes two files, or two cgroups, of one process.
pub(crate) fn unique() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    split_mix(now.map_or(0, |d| d.as_nanos() as u64))
}

/// Returns the bytes that may be written so that enough space remains free; `None` if the file system does not report its space.
fn writable_bytes(file: &File) -> Option<u64> {
    let space = fstatvfs(file).ok()?;
    let block = space.f_frsize.max(1);
    let on_disk = (space.f_blocks > 0).then(|| {
        let total = space.f_blocks.saturating_mul(block);
        space.f_bavail.saturating_mul(block).saturating_sub(total / FREE_SHARE)
    });
    if !file_systems::is_in_memory(file) {
        return on_disk;
    }
    // A file system in memory takes memory from every process, whatever size its mount reports.
    let text = Root::real().read("/proc/meminfo").ok()?;
    let half = meminfo_bytes(&text, "MemAvailable").ok()? / 2;
    Some(on_disk.map_or(half, |d| d.min(half)))
}

/// Checks without writing that a file of the typed size fits in a directory.
///
/// # Errors
///
/// A refusal that names the largest size that fits.
pub fn check_room(dir: &Path, asked_bytes: u64) -> Result<(), MachineError> {
    let Some(room) = File::open(dir).ok().and_then(|d| writable_bytes(&d)).filter(|r| *r < asked_bytes)
    else {
        return Ok(());
    };
    if room < MIN_BYTES {
        return Err(no_room(dir, room));
    }
    Err(MachineError::Refused(format!(
        "--size {} does not fit: {} has room for {} (fathom leaves 5 % of a file system free, and on tmpfs half of the available memory); type --size {}m or less, or make room",
        show_bytes(asked_bytes),
        name::shown(dir),
        show_bytes(room),
        room / MIB
    )))
}

fn refuse_too_small(asked_bytes: u64) -> Result<(), MachineError> {
    if asked_bytes >= MIN_BYTES {
        return Ok(());
    }
    Err(MachineError::Usage(format!(
        "a test file of {} would measure caches instead of storage; type --size 16m or more",
        show_bytes(asked_bytes)
    )))
}

fn no_room(dir: &Path, room: u64) -> MachineError {
    MachineError::Refused(format!(
        "{} has room for only {} (fathom leaves 5 % of a file system free, and on tmpfs half of the available memory), and a test \
         file needs at least {}; make room, or name another directory",
        name::shown(dir),
        show_bytes(room),
        show_bytes(MIN_BYTES)
    ))
}

fn extent_notes(found: &Extents) -> Vec<String> {
    let states = [
        (found.hole_bytes, "are holes"),
        (found.unwritten_bytes, "are allocated, but marked as unwritten"),
        (found.delayed_bytes, "are not allocated yet"),
        (found.inline_bytes, "are stored in its inode"),
        (found.encoded_bytes, "are stored compressed or encrypted"),
        (found.shared_bytes, "are shared with another file"),
    ];
    let present = states.into_iter().filter(|(bytes, _)| *bytes > 0);
    present.map(|(bytes, what)| format!("{} of the test file {what}", show_bytes(bytes))).collect()
}

/// Makes the data of test files different from what workers write with the same seed.
const DATA_SALT: u64 = 0x7465_7374_2066_696c;

/// Writes a file in pieces of 1 MiB, with direct I/O if that works.
pub(crate) struct Writer {
    file: File,
    direct: bool,
    arena: Arena,
    key: u64,
}

impl Writer {
    fn new(made: &TestFile, seed: u64) -> io::Result<Self> {
        match made.reopen(Cache::Direct, true) {
            Ok(file) => Self::over(file, true, seed),
            Err(_) => Self::over(made.file.try_clone()?, false, seed),
        }
    }

    /// Creates a writer to a file. `direct` is whether the file was opened for direct I/O.
    pub(crate) fn over(file: File, direct: bool, seed: u64) -> io::Result<Self> {
        Ok(Self { file, direct, arena: Arena::new(1, MIB as usize)?, key: split_mix(seed ^ DATA_SALT) })
    }

    /// Writes `bytes`, or 1 MiB if that is less, at an offset. The data depend on the offset, so they
    /// differ at every offset.
    fn write_part(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let buffer = &mut self.arena.slot_mut(0)[..bytes.min(MIB) as usize];
        fill(buffer, self.key.wrapping_add(offset));
        self.file.write_all_at(buffer, offset)
    }

    /// Writes 1 MiB at an offset.
    pub(crate) fn write_mib(&mut self, offset: u64) -> io::Result<()> {
        let buffer = self.arena.slot_mut(0);
        // Every MiB has its own key, so no two MiB of the file are alike.
        fill(buffer, self.key.wrapping_add(offset / MIB));
        let written = self.file.write_all_at(buffer, offset);
        if self.direct && written.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::InvalidInput) {
            // Some file systems accept the flag and refuse the operation.
            self.direct = false;
            let without = rustix::fs::fcntl_getfl(&self.file)? - OFlags::DIRECT;
            rustix::fs::fcntl_setfl(&self.file, without)?;
            return self.write_mib(offset);
        }
        written?;
        if !self.direct && offset.is_multiple_of(CHECK_INTERVAL_BYTES) {
            // Without this sync the time limit would measure memory, and the final sync would take minutes.
            self.file.sync_data()?;
        }
        Ok(())
    }
}

/// Maximum time until a file of another host becomes visible here. File systems usually remember
/// for a shorter time that a name was missing.
const VISIBLE_WITHIN: Duration = Duration::from_secs(10);
const VISIBILITY_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Returns a unique name for a test file. The name contains the host name, because process ids repeat on other hosts.
pub fn unique_name() -> String {
    format!("{PREFIX}{}-{:016x}-{}{SUFFIX}", std::process::id(), unique(), host_name())
}

/// Returns the host name in the form that file names use.
pub(crate) fn host_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    host.chars().filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c)).take(64).collect()
}

impl TestFile {
    /// Creates a file of this name and length, which all hosts fill.
    ///
    /// # Errors
    ///
    /// If permission or space is missing.
    pub fn begin_common(dir: &Path, file_name: &str, bytes: u64) -> Result<Self, MachineError> {
        refuse_too_small(bytes)?;
        check_room(dir, bytes)?;
        let (file, name) = create_as(dir, file_name)?;
        let mut made = Self::from_open(file, name);
        made.file.set_len(bytes).map_err(|e| MachineError::at(dir, "written to", &e))?;
        made.bytes = bytes;
        Ok(made)
    }

    /// Opens a file that another host has created under this name. `maker` is the name of that host. `ended` becomes true if the run ends
    /// early.
    ///
    /// # Errors
    ///
    /// If the file does not become visible here, which means that the hosts do not share the
    /// directory, or if this user is not allowed to open it.
    pub fn open_common(
        dir: &Path,
        file_name: &str,
        maker: &str,
        ended: &Arc<AtomicBool>,
    ) -> Result<Self, MachineError> {
        let dir = &std::path::absolute(dir).map_err(|e| MachineError::at(dir, "accessed", &e))?;
        let path = dir.join(file_name);
        let until = Instant::now() + VISIBLE_WITHIN;
        let file = loop {
            match safety::open_file(&path, true, Cache::Buffered) {
                Ok(file) => break file,
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    return Err(MachineError::at(&path, "opened", &e));
                }
                Err(_) if ended.load(Ordering::Relaxed) => {
                    return Err(MachineError::Refused(
                        "interrupted while waiting for the test file of another host".into(),
                    ));
                }
                Err(_) if Instant::now() >= until => {
                    return Err(MachineError::Refused(format!(
                        "{} seems not to be shared with {maker}: the test file of that host did not appear here within {1} s ({file_name}); name a directory on storage that all hosts share, or remove --shared and --shift-hosts",
                        name::shown(dir),
                        VISIBLE_WITHIN.as_secs()
                    )));
                }
                Err(_) => std::thread::sleep(VISIBILITY_CHECK_INTERVAL),
            }
        };
        let metadata = file.metadata().map_err(|e| MachineError::at(&path, "accessed", &e))?;
        let bytes = metadata.len();
        named_files().push((path.clone(), identity::from_metadata(&metadata)));
        Ok(Self { file, name: Some(path), bytes, notes: Vec::new(), creator_ended: Some(Arc::clone(ended)) })
    }

    /// Writes this host's parts, `total` bytes altogether, and syncs them.
    ///
    /// # Errors
    ///
    /// If a write fails, and if the stop flag is set.
    pub fn fill_parts(
        &mut self,
        parts: impl Iterator<Item = Range<u64>>,
        total: u64,
        seed: u64,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), MachineError> {
        let path = self.name.clone().unwrap_or_default();
        let failed = |e: std::io::Error| MachineError::at(&path, "filled", &e);
        let mut writer = self.file.try_clone().and_then(|f| Writer::over(f, false, seed)).map_err(failed)?;
        let mut done = 0;
        let mut synced = 0;
        for part in parts {
            for at in (part.start..part.end).step_by(MIB as usize) {
                if stop.load(Ordering::Relaxed) {
                    return Err(MachineError::Refused(format!(
                        "interrupted while the test file was written ({} of {})",
                        show_bytes(done),
                        show_bytes(total)
                    )));
                }
                let bytes = (part.end - at).min(MIB);
                writer.write_part(at, bytes).map_err(failed)?;
                done += bytes;
                if done - synced >= CHECK_INTERVAL_BYTES {
                    // Without this sync, write-back would take long at the end and show no progress.
                    self.file.sync_data().map_err(failed)?;
                    synced = done;
                    progress(done.min(total), total);
                }
            }
        }
        self.file.sync_all().map_err(failed)
    }
}

/// A test file that a killed run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Path of the file.
    pub path: PathBuf,
    /// Allocated bytes.
    pub bytes: u64,
    /// Time since the last write.
    pub age: Duration,
}

impl Leftover {
    /// Removes the file if it is still unused.
    ///
    /// # Errors
    ///
    /// If the file is in use by now, or cannot be removed.
    pub fn remove(&self) -> Result<(), MachineError> {
        // Hold the lock until the name is removed.
        let Some(lock) = lock_stale(&self.path) else {
            return Err(MachineError::Refused(format!(
                "{} was not removed: it may be in use by now, or has changed",
                name::shown(&self.path)
            )));
        };
        let removed = identity::from_file(&lock).and_then(|identity| remove(&self.path, &identity));
        removed.map_err(|e| MachineError::at(&self.path, "removed", &e))
    }
}

/// Returns the test files in a directory that no live run holds, sorted by name. Empty if the directory
/// cannot be read.
pub fn leftovers(dir: &Path) -> Vec<Leftover> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<Leftover> = entries.filter_map(|e| leftover(&e.path())).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn leftover(path: &Path) -> Option<Leftover> {
    let metadata = lock_stale(path)?.metadata().ok()?;
    let age = metadata.modified().ok().and_then(|t| t.elapsed().ok()).unwrap_or_default();
    Some(Leftover { path: path.to_owned(), bytes: metadata.blocks().saturating_mul(512), age })
}

/// Locks a file if it is a test file of an ended fathom process and unused; `None` for any other file.
fn lock_stale(path: &Path) -> Option<File> {
    let unique_part = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let (pid, random) = unique_part.split_once('-')?;
    // The name may contain the host that created the file. The process id is one of that host.
    let (random, host) = random.split_once('-').map_or((random, None), |(random, host)| (random, Some(host)));
    let is_our_name = random.len() == 16
        && random.bytes().all(|b| b.is_ascii_hexdigit())
        && host.is_none_or(|host| host == host_name());
    let pid: u32 = pid.parse().ok()?;
    // A live run's file has no lock for a moment after its creation, so its process is checked too.
    if !is_our_name || Path::new(&format!("/proc/{pid}")).exists() {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    // The file must be as fathom created it: owned by this user, with one name. Any other file is not
    // fathom's.
    let user = rustix::process::geteuid().as_raw();
    let is_as_made = file.metadata().is_ok_and(|m| m.is_file() && m.uid() == user && m.nlink() == 1);
    // On a shared file system the lock of another machine or container may be invisible. A name
    // with this host shows that the file is from here.
    let is_seen = host.is_some() || file_systems::is_shared(&file) == Ok(false);
    let is_free = is_as_made && is_seen && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    // If users are not visible, as on FUSE or in a container, the lock and the end of the process decide.
    let users = in_use::file(&Root::real(), &file, false);
    (is_free && matches!(users, Ok(Use::Unused | Use::CannotTell(_) | Use::NeedsConsent(_)))).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn made(dir: &Path, bytes: u64) -> Result<TestFile, MachineError> {
        let limit = Duration::from_secs(15);
        TestFile::make(dir, None, bytes, 7, limit, &AtomicBool::new(false), &mut |_, _| {})
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
    fn space_is_reserved_before_the_first_write() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (file, name) = create(dir.path())?;
        let empty = TestFile::from_open(file, name);
        if empty.reserve(16 * MIB) {
            assert_eq!(empty.file.metadata()?.len(), 16 * MIB);
            // tmpfs does not report how files are stored.
            if let Ok(stored) = extents::map_file_extents(&empty.file) {
                assert_eq!((stored.hole_bytes, stored.unwritten_bytes), (0, 16 * MIB), "{stored:?}");
            }
        }
        assert!(!empty.reserve(1 << 60));
        assert_eq!(empty.file.metadata()?.len(), 0, "a failed reservation leaves nothing");
        Ok(())
    }

    #[test]
    fn small_sizes_and_interruptions_make_no_file() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        assert!(matches!(made(dir.path(), MIB), Err(MachineError::Usage(_))));
        let stop = AtomicBool::new(true);
        assert!(TestFile::make(dir.path(), None, 64 * MIB, 7, Duration::MAX, &stop, &mut |_, _| {}).is_err());
        assert!(matches!(made(&dir.path().join("absent"), 64 * MIB), Err(MachineError::Usage(_))));
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
        Ok(())
    }

    #[test]
    fn a_file_that_replaced_a_test_file_is_neither_written_nor_removed()
    -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let other = dir.path().join("other");
        for is_link in [false, true] {
            // The test of forced exits removes all files that `create_as` made.
            let path = dir.path().join("made");
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            let identity = identity::from_file(&file)?;
            let made = TestFile::from_open(file, Some(path.clone()));
            made.reopen(Cache::Buffered, true)?.write_all_at(b"x", 0)?;
            if is_link {
                std::fs::rename(&path, &other)?;
                std::os::unix::fs::symlink(&other, &path)?;
            } else {
                std::fs::write(&other, "theirs")?;
                std::fs::rename(&other, &path)?;
                assert!(made.reopen(Cache::Buffered, true).is_err_and(|e| e.kind() == ErrorKind::NotFound));
            }
            // A forced exit removes files this way.
            assert!(remove(&path, &identity).is_err());
            drop(made);
            assert!(path.symlink_metadata().is_ok(), "{}", path.display());
            assert!(is_link || std::fs::read(&path)? == b"theirs");
            std::fs::remove_file(&path)?;
        }
        Ok(())
    }

    #[test]
    fn named_files_are_removed_by_a_forced_exit() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (_file, name) = create_as(dir.path(), &unique_name())?;
        let name = name.ok_or("no name")?;
        assert!(name.exists());
        remove_all_now();
        assert!(!name.exists() && named_files().is_empty());
        Ok(())
    }
}

#[cfg(test)]
mod common_tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn two_hosts_fill_one_file_and_its_creator_removes_it() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (at, ended) = (unique_name(), Arc::new(AtomicBool::new(false)));
        let at = (dir.path(), at.as_str());
        let mut ours = TestFile::begin_common(at.0, at.1, 16 * MIB)?;
        let mut theirs = TestFile::open_common(at.0, at.1, "a", &ended)?;
        let half = |file: &mut TestFile, part: Range<u64>, seed| {
            file.fill_parts(std::iter::once(part), 8 * MIB, seed, &AtomicBool::new(false), &mut |_, _| {})
        };
        half(&mut ours, 0..8 * MIB, 1)?;
        half(&mut theirs, 8 * MIB..16 * MIB, 2)?;
        ours.check_storage();
        assert_eq!((ours.bytes(), theirs.bytes()), (16 * MIB, 16 * MIB));
        let mut block = [0; 4096];
        for at in (0..16 * MIB).step_by(4096) {
            theirs.reopen(Cache::Buffered, false)?.read_exact_at(&mut block, at)?;
            assert!(block.iter().any(|byte| *byte != 0), "nothing was written at {at}");
        }
        drop(theirs);
        assert_eq!(std::fs::metadata(dir.path().join(at.1))?.len(), 16 * MIB, "it is its maker's");
        drop(ours);
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
        Ok(())
    }

    #[test]
    fn a_common_file_is_removed_by_the_host_that_is_left() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (at, ended) = (unique_name(), Arc::new(AtomicBool::new(false)));
        let at = (dir.path(), at.as_str());
        let ours = TestFile::begin_common(at.0, at.1, 16 * MIB)?;
        let theirs = TestFile::open_common(at.0, at.1, "a", &ended)?;
        ended.store(true, Ordering::Relaxed);
        drop(theirs);
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
        drop(ours);
        let missing =
            TestFile::open_common(at.0, at.1, "a", &ended).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(missing.contains("interrupted"), "it is no longer waited for: {missing}");
        Ok(())
    }
}

#[cfg(test)]
mod leftovers_tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn only_unlocked_files_of_dead_runs_are_left_over() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        // Above the largest process id that Linux gives.
        let dead = dir.path().join(format!("{PREFIX}4194999-00000000000000ff{SUFFIX}"));
        let live = dir.path().join(format!("{PREFIX}{}-00000000000000ff{SUFFIX}", std::process::id()));
        let host = super::host_name();
        let leftover =
            |host: &str| dir.path().join(format!("{PREFIX}4194999-00000000000000ff-{host}{SUFFIX}"));
        let (common, creator_ended) = (leftover(&host), leftover("another.host"));
        for path in [
            &dead,
            &live,
            &common,
            &creator_ended,
            &dir.path().join("other.tmp"),
            &dir.path().join(format!("{PREFIX}1-x{SUFFIX}")),
        ] {
            std::fs::write(path, "data")?;
        }
        let found = leftovers(dir.path());
        let mut of_here = [&dead, &common];
        of_here.sort();
        assert_eq!(found.iter().map(|l| &l.path).collect::<Vec<_>>(), of_here);
        std::fs::remove_file(&common)?;
        // The user has given the file a second name.
        let kept = dir.path().join("kept");
        std::fs::hard_link(&dead, &kept)?;
        assert!(leftovers(dir.path()).is_empty());
        std::fs::remove_file(&kept)?;
        let mut writer = Command::new("sh")
            .args(["-c", "exec 9>>\"$0\"; echo; exec sleep 60"])
            .arg(&dead)
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(out) = &mut writer.stdout {
            out.read_exact(&mut [0])?;
        }
        assert!(leftovers(dir.path()).is_empty(), "open for writing");
        writer.kill()?;
        writer.wait()?;
        let found = leftovers(dir.path());
        let holder = File::open(&dead)?;
        flock(&holder, FlockOperation::LockExclusive)?;
        assert!(leftovers(dir.path()).is_empty() && found[0].remove().is_err() && dead.exists());
        drop(holder);
        found[0].remove()?;
        assert!(!dead.exists() && live.exists());
        Ok(())
    }
}
