//! The session file: its location, appending frames, reading it back.
//!
//! Frames go to a file in the user's data directory, to one in the directory for temporary files, or to an unnamed file. If a write fails,
//! the session continues in memory, so that the report still follows. Crate `model` defines the frames.

use model::evidence::Moment;
use model::record::{Frame, MAGIC, MAX_FILE_BYTES, Record, Unreadable};
use model::{name, record};
use output::failure::{Failure, cause};
use output::session_directories::{session_directories, user_directory};
use output::{files, stderr};
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Extension of session files.
pub(crate) const EXTENSION: &str = "fathom";
/// Size at which a session stops storing its time series: intervals, and snapshots while workers run.
const TIME_SERIES_LIMIT_BYTES: u64 = 48 << 20;
/// Size at which a session stops storing the other snapshots too. The ends of runs are always stored.
const SNAPSHOTS_LIMIT_BYTES: u64 = 64 << 20;

/// Maximum number of names that are tried for a session.
const MAX_TRIES: u32 = 10_000;

/// An open session file.
#[derive(Debug)]
pub struct Session {
    store: Store,
    path: PathBuf,
    bytes: u64,
    /// Number of time series frames that were not stored, because the session was too large.
    omitted_series: u64,
    /// Number of other snapshots that were not stored, because the session was too large.
    omitted_snapshots: u64,
    /// Whether the file has a name and remains after this process.
    kept: bool,
    /// Number of runs in the file. A run counts when its first phase has ended.
    runs: u32,
    /// Index of the phase that began last.
    phase: usize,
}

/// Where the bytes of a session are.
#[derive(Debug)]
enum Store {
    File(File),
    /// A buffer of this process. A file in memory (`memfd_create`) would be subject to `ulimit -f`.
    Memory(Vec<u8>),
}

impl Session {
    /// Creates the session's file. It remains if `keep` is set.
    ///
    /// # Errors
    /// [`Failure::Refused`] if neither a file nor memory is available.
    pub fn open(started: &str, keep: bool) -> Result<Self, Failure> {
        if keep { Self::create(started) } else { Self::create_unkept() }
    }

    /// Creates the file of a session that began at `started`, which is part of the file name. The file is in the user's data directory,
    /// otherwise in the directory for temporary files. If neither works, prints a warning; the session is then lost when this value is
    /// dropped.
    fn create(started: &str) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        for dir in session_directories() {
            match Self::create_in(&dir, started) {
                Ok(session) => {
                    if let Some(home) = user_directory().filter(|home| *home != dir) {
                        stderr::print(&format!(
                            "fathom: {} cannot be written, so this session is kept in {}; set XDG_DATA_HOME to a directory that you can write to",
                            name::shown(&home),
                            name::shown(&dir)
                        ));
                    }
                    return Ok(session);
                }
                Err(e) => problems.push(format!("{}: {e}{}", name::shown(&dir), cause(&e))),
            }
        }
        stderr::print(&format!(
            "fathom: this session will not be kept ({}); set XDG_DATA_HOME to a \
             directory that you can write to",
            problems.join("; ")
        ));
        Self::create_unkept()
    }

    /// Creates the file of a session that is not kept. It has no name and disappears with the process. If no temporary file can be made,
    /// the session is in memory.
    fn create_unkept() -> Result<Self, Failure> {
        let store = tempfile::tempfile().map_or_else(|_| Store::Memory(Vec::new()), Store::File);
        Self::begin(store, PathBuf::new(), false)
            .map_err(|e| Failure::Refused(format!("the session cannot be stored: {e}{}", cause(&e))))
    }

    fn create_in(dir: &Path, started: &str) -> io::Result<Self> {
        create_directory(dir)?;
        let (path, file) = create_new(dir, started, std::process::id())?;
        // The lock only shows other processes that the session is still being written. Some file systems have no locks.
        let _ = file.lock();
        Self::begin(Store::File(file), path, true)
    }

    fn begin(store: Store, path: PathBuf, kept: bool) -> io::Result<Self> {
        let mut session =
            Self { store, path, bytes: 0, omitted_series: 0, omitted_snapshots: 0, kept, runs: 0, phase: 0 };
        session.put(MAGIC.as_bytes())?;
        Ok(session)
    }

    /// Reads back the appended frames through the descriptor, because the file may have no name.
    ///
    /// # Errors
    /// [`Failure::Refused`] if they cannot be read back.
    pub fn record(&self) -> Result<Record, Failure> {
        let decoded = self.content().map_err(Unreadable::from).and_then(|bytes| record::decode(&bytes));
        decoded
            .map(|decoded| decoded.record)
            .map_err(|e| Failure::Refused(format!("the session cannot be read back: {e}")))
    }

    /// Returns the bytes written so far.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn content(&self) -> io::Result<Vec<u8>> {
        match &self.store {
            Store::Memory(bytes) => Ok(bytes.clone()),
            Store::File(file) => {
                let mut bytes = vec![0; self.bytes as usize];
                file.read_exact_at(&mut bytes, 0)?;
                Ok(bytes)
            }
        }
    }

    /// Returns the path of the file; empty if it has no name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file remains after this process.
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Returns the number of runs in the file. A run of several phases counts when its first phase has ended.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Returns a note about the frames that were not stored, because the session was too large; `None` if all were stored.
    pub fn omitted_note(&self) -> Option<String> {
        let omitted = [
            (self.omitted_series, "frames of the time series"),
            (self.omitted_snapshots, "snapshots of the kernel's counters"),
        ];
        let omitted: Vec<String> =
            omitted.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what} ({n})")).collect();
        let list = || format!("the session file reached its size limit and lacks {}", omitted.join(" and "));
        (!omitted.is_empty()).then(list)
    }

    /// Appends a frame. The kernel has the frame when this returns, so a crash of fathom loses nothing. If the write fails, the session
    /// continues in memory.
    ///
    /// # Errors
    /// [`Failure::Refused`] if memory has no room either.
    pub fn append(&mut self, frame: &Frame) -> Result<(), Failure> {
        let line = record::encode(frame).map_err(|e| self.refuse(&e))?;
        if self.omits(frame, line.len() as u64) {
            return Ok(());
        }
        self.put(line.as_bytes()).map_err(|e| self.refuse(&e))?;
        match frame {
            Frame::RunStart(start) => self.phase = start.phase,
            Frame::RunEnd(_) => self.runs += u32::from(self.phase == 0),
            _ => {}
        }
        Ok(())
    }

    /// Returns whether a frame of this size is not stored because the session is too large. If so, counts the frame.
    fn omits(&mut self, frame: &Frame, bytes: u64) -> bool {
        let (limit_bytes, omitted) = match frame {
            Frame::Intervals(_) => (TIME_SERIES_LIMIT_BYTES, &mut self.omitted_series),
            Frame::Evidence(snapshot) if snapshot.moment == Moment::During => {
                (TIME_SERIES_LIMIT_BYTES, &mut self.omitted_series)
            }
            Frame::Evidence(_) => (SNAPSHOTS_LIMIT_BYTES, &mut self.omitted_snapshots),
            _ => return false,
        };
        let is_omitted = self.bytes + bytes > limit_bytes;
        *omitted += u64::from(is_omitted);
        is_omitted
    }

    /// Syncs the appended frames to the disk. Never call it inside a measured window.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the sync fails and memory has no room.
    pub fn sync(&mut self) -> Result<(), Failure> {
        match &self.store {
            Store::File(file) => match file.sync_data() {
                Err(e) => self.move_to_memory(&e).map_err(|e| self.refuse(&e)),
                Ok(()) => Ok(()),
            },
            Store::Memory(_) => Ok(()),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Store::File(file) = &mut self.store
            && let Err(e) = file.write_all(bytes)
        {
            self.move_to_memory(&e)?;
        }
        if let Store::Memory(all) = &mut self.store {
            all.try_reserve(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            all.extend_from_slice(bytes);
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Moves the session into memory, so that results survive a file error, usually a full disk.
    fn move_to_memory(&mut self, why: &io::Error) -> io::Result<()> {
        let content = self.content()?;
        if self.kept {
            // A session without a header is empty.
            let consequence = if self.bytes <= MAGIC.len() as u64 {
                let _ = std::fs::remove_file(&self.path);
                "this session is not kept: only the report that follows has its results"
            } else {
                // Remove a torn frame at the end of the file.
                if let Store::File(file) = &self.store {
                    let _ = file.set_len(self.bytes);
                }
                "the file keeps the results so far, and only the report that follows has the later ones"
            };
            stderr::print(&format!(
                "fathom: the session file {} cannot be written: {why}{}; {consequence}",
                name::shown(&self.path),
                cause(why)
            ));
        }
        (self.store, self.path, self.kept) = (Store::Memory(content), PathBuf::new(), false);
        Ok(())
    }

    fn refuse(&self, error: &dyn std::fmt::Display) -> Failure {
        let file = if self.kept { format!(" file {}", name::shown(&self.path)) } else { String::new() };
        Failure::Refused(format!("the session{file} cannot be written: {error}"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A session without a header is empty.
        if self.kept && self.bytes <= MAGIC.len() as u64 {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Creates the file of a session that began at `started`. The file name ends in the id of this process. If that name is taken, by a process
/// with the same id in another PID namespace, the name ends in the next free number.
fn create_new(dir: &Path, started: &str, process: u32) -> io::Result<(PathBuf, File)> {
    let mut number = process;
    loop {
        let id = format!("{started}-{number}");
        let path = dir.join(format!("{id}.{EXTENSION}"));
        match File::options().read(true).append(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(e)
                if e.kind() == io::ErrorKind::AlreadyExists && number.wrapping_sub(process) < MAX_TRIES =>
            {
                number = number.wrapping_add(1);
            }
            Err(e) => return Err(e),
        }
    }
}

/// Reads a session that the user named.
///
/// # Errors
/// [`Failure::Usage`] with the reason if the file is not a session; [`Failure::Refused`] if it has no measurement.
pub fn read(path: &Path) -> Result<Record, Failure> {
    load(path).map_err(|e| {
        let why = format!("{}: {e}", name::shown(path));
        if matches!(e, Unreadable::Headless) { Failure::Refused(why) } else { Failure::Usage(why) }
    })
}

/// Reads a session of the history.
///
/// # Errors
/// Why the file is not a valid session.
pub(crate) fn load(path: &Path) -> Result<Record, Unreadable> {
    Ok(record::decode(&bytes(path)?)?.record)
}

/// Reads the bytes of a file that may be a session.
///
/// # Errors
/// If the file cannot be read, or is larger than any session.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    files::read(path, MAX_FILE_BYTES)
}

/// Returns whether a running fathom still writes to the session.
pub(crate) fn is_running(path: &Path) -> bool {
    let locked = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    files::open(path).is_ok_and(locked)
}

/// Returns `still running (pid 4711)` if a running fathom writes to the session file; otherwise
/// `None`.
pub fn describe_running(path: &Path) -> Option<String> {
    if !is_running(path) {
        return None;
    }
    let inode = path.metadata().ok().map(|facts| facts.ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let writer = inode.and_then(|inode| flock_writer(&locks, inode));
    Some(writer.map_or_else(|| "still running".into(), |pid| format!("still running (pid {pid})")))
}

/// Returns whether a session file has no measurement yet.
pub fn is_headless(path: &Path) -> bool {
    matches!(load(path), Err(Unreadable::Headless))
}

/// Returns the process that locked a file with `flock(2)`, from `/proc/locks`: `1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF`.
/// `None` if locked files on two file systems have this inode number. Also `None` if the process is in another PID
/// namespace, which this process cannot see.
fn flock_writer(locks: &str, inode: u64) -> Option<u32> {
    let mut found = locks.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = fields.as_slice() else { return None };
        let is_same = file.rsplit(':').next()?.parse() == Ok(inode);
        pid.parse().ok().filter(|pid| is_same && *pid > 0)
    });
    let pid = found.next()?;
    found.next().is_none().then_some(pid)
}

/// Makes a private directory for sessions.
pub(crate) fn create_directory(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Returns whether a file of the history belongs to this user. Root can read the files of other users, but does not list them.
pub(crate) fn is_own(facts: &std::fs::Metadata) -> bool {
    facts.uid() == user()
}

/// Returns the id of the user who runs fathom.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[test]
fn a_session_takes_the_next_free_id() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let open = || create_new(dir.path(), "20260101-000009", 7).map(|(path, _)| path);
    let names = [open()?, open()?, open()?].map(|path| path.file_name().map(std::ffi::OsStr::to_owned));
    let id = |n: u32| Some(format!("20260101-000009-{n}.fathom").into());
    assert_eq!(names, [id(7), id(8), id(9)]);
    Ok(())
}

#[test]
fn a_large_session_omits_its_time_series_first_and_reports_it() -> Result<(), Failure> {
    use model::evidence::Snapshot;
    use model::record::{End, Intervals, RunEnd, RunEnding};
    let mut session = Session::open("", false)?;
    let snapshot = |moment| {
        let snapshot =
            Snapshot { moment, at_ns: 0, files: std::collections::BTreeMap::new(), targets: Vec::new() };
        Frame::Evidence(Box::new(snapshot))
    };
    let rows = || Frame::Intervals(Intervals { rows: Vec::new(), merged: 0 });
    let ends = [
        Frame::RunEnd(Box::new(RunEnd::without(RunEnding::Complete))),
        Frame::End(End { ending: RunEnding::Complete, notes: Vec::new(), clock_drift_ppm: None }),
    ];
    let stored = |session: &mut Session, bytes: u64, frame: &Frame| {
        session.bytes = bytes;
        session.append(frame).map(|()| session.bytes > bytes)
    };
    for moment in [Moment::Start, Moment::During] {
        assert!(stored(&mut session, TIME_SERIES_LIMIT_BYTES / 2, &snapshot(moment))?);
    }
    assert_eq!(session.omitted_note(), None);
    assert!(!stored(&mut session, TIME_SERIES_LIMIT_BYTES, &rows())?);
    assert!(!stored(&mut session, TIME_SERIES_LIMIT_BYTES, &snapshot(Moment::During))?);
    // The ledger needs the snapshots at both ends of a run.
    for moment in [Moment::Start, Moment::Stop, Moment::Synced] {
        assert!(stored(&mut session, TIME_SERIES_LIMIT_BYTES, &snapshot(moment))?);
    }
    let note = "the session file reached its size limit and lacks frames of the time series (2)";
    assert_eq!(session.omitted_note().as_deref(), Some(note));
    assert!(!stored(&mut session, SNAPSHOTS_LIMIT_BYTES, &snapshot(Moment::Stop))?);
    for end in &ends {
        assert!(stored(&mut session, SNAPSHOTS_LIMIT_BYTES, end)?);
    }
    let note = format!("{note} and snapshots of the kernel's counters (1)");
    assert_eq!(session.omitted_note(), Some(note));
    Ok(())
}

#[test]
fn a_session_with_many_ends_of_runs_can_be_read() -> io::Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    let runs_bytes = 100 << 20;
    file.as_file().set_len(SNAPSHOTS_LIMIT_BYTES + runs_bytes)?;
    assert_eq!(bytes(file.path())?.len() as u64, SNAPSHOTS_LIMIT_BYTES + runs_bytes);
    Ok(())
}

#[test]
fn a_run_of_several_phases_counts_once() -> Result<(), Failure> {
    use model::record::{RunEnd, RunEnding, RunStart};
    let mut session = Session::open("", false)?;
    for phase in [0, 1, 0] {
        let start = RunStart {
            job: 0,
            phase,
            repeat: 0,
            attempt: 0,
            offered_iops: None,
            host: 0,
            at_ns: 0,
            target_bytes: Vec::new(),
        };
        session.append(&Frame::RunStart(start))?;
        session.append(&Frame::RunEnd(Box::new(RunEnd::without(RunEnding::Complete))))?;
    }
    assert_eq!(session.runs(), 2);
    Ok(())
}

#[test]
fn the_writer_of_a_session_is_read_from_proc_locks() {
    let locks = "1: POSIX  ADVISORY  WRITE 11 fe:01:77 0 EOF\n2: FLOCK  ADVISORY  WRITE 12 fe:01:77 0 EOF\n\
                 2: -> FLOCK  ADVISORY  READ 13 fe:01:77 0 EOF\n3: FLOCK  ADVISORY  WRITE -1 fe:01:78 0 EOF\n\
                 4: FLOCK  ADVISORY  WRITE 14 fe:01:79 0 EOF\n5: FLOCK  ADVISORY  WRITE 15 fe:02:79 0 EOF\n";
    assert_eq!([77, 78, 79, 80].map(|inode| flock_writer(locks, inode)), [Some(12), None, None, None]);
}
