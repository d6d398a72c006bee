//! The session file: where it lies, appending frames to it, reading it back.
//!
//! For: the truth on disk before anything is concluded from it. Not for: what a frame holds (crate `model`), nor judging.

use crate::failure::Failure;
use model::record::frame::{self, MAGIC, MAX_FILE_BYTES, Unreadable};
use model::record::{Frame, Record};
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Extension of session files.
pub(crate) const EXTENSION: &str = "fathom";
/// Size at which a session stops keeping its course (intervals and evidence inside windows); ends of runs are always kept.
const LIMIT_BYTES: u64 = 64 << 20;

/// An open session file.
#[derive(Debug)]
pub struct Session {
    file: File,
    path: PathBuf,
    bytes: u64,
    left_out: u64,
}

impl Session {
    /// Creates the file of a session that began at `started` (a file name part), in the user's data directory, or in the
    /// directory for temporary files where there is none.
    ///
    /// # Errors
    /// [`Failure::Refused`] where neither can be written.
    pub fn create(started: &str) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        for dir in directories() {
            match Self::create_in(&dir, started) {
                Ok(session) => return Ok(session),
                Err(e) => problems.push(format!("{}: {e}", dir.display())),
            }
        }
        Err(Failure::Refused(format!(
            "the session file cannot be written ({}); set XDG_DATA_HOME to a directory of yours",
            problems.join("; ")
        )))
    }

    /// Creates the file of a session that nobody wants to keep: it has no name, and is gone when this is dropped or the
    /// process has ended, however it ends.
    ///
    /// # Errors
    /// [`Failure::Refused`] where the directory for temporary files cannot be written.
    pub fn create_unkept() -> Result<Self, Failure> {
        let begun = tempfile::tempfile().and_then(|file| {
            let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
            Self::begin(file, path)
        });
        begun.map_err(|e| {
            Failure::Refused(format!(
                "--no-history: a file in {} cannot be written: {e}; set TMPDIR to a directory of yours",
                std::env::temp_dir().display()
            ))
        })
    }

    fn create_in(dir: &Path, started: &str) -> io::Result<Self> {
        create_directory(dir)?;
        let path = dir.join(format!("{started}-{}.{EXTENSION}", std::process::id()));
        let file = File::options().append(true).create_new(true).mode(0o600).open(&path)?;
        // Only so that others see that it is still being written; not every file system has locks.
        let _ = file.lock();
        Self::begin(file, path)
    }

    fn begin(mut file: File, path: PathBuf) -> io::Result<Self> {
        file.write_all(MAGIC.as_bytes())?;
        Ok(Self { file, path, bytes: MAGIC.len() as u64, left_out: 0 })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Frames left out because the file had reached its limit.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Appends a frame: in the hands of the kernel when this returns, so a crash of fathom loses nothing.
    ///
    /// # Errors
    /// [`Failure::Refused`] where the file cannot be written: a full disk, mostly.
    pub fn append(&mut self, frame: &Frame) -> Result<(), Failure> {
        let line = frame::encode(frame).map_err(|e| self.refuse(&e))?;
        if self.bytes + line.len() as u64 > LIMIT_BYTES
            && matches!(frame, Frame::Intervals(_) | Frame::Evidence(_))
        {
            self.left_out += 1;
            return Ok(());
        }
        self.file.write_all(line.as_bytes()).map_err(|e| self.refuse(&e))?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Makes what was appended survive a crash of the machine. Never inside a measured window.
    ///
    /// # Errors
    /// [`Failure::Refused`] where the disk refuses.
    pub fn sync(&self) -> Result<(), Failure> {
        self.file.sync_data().map_err(|e| self.refuse(&e))
    }

    fn refuse(&self, error: &dyn std::fmt::Display) -> Failure {
        Failure::Refused(format!("the session file {} cannot be written: {error}", self.path.display()))
    }
}

/// Reads a session back.
///
/// # Errors
/// [`Failure::Usage`] for anything but a session file, with what is wrong with it.
pub fn read(path: &Path) -> Result<Record, Failure> {
    load(path).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// Reads a session back.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn load(path: &Path) -> Result<Record, Unreadable> {
    let (record, _torn) = frame::decode(&bytes(path)?)?;
    Ok(record)
}

/// The bytes of a file, where it may be a session's.
///
/// # Errors
/// Where it cannot be read, or is larger than any session.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!(
            "more than {} MiB, which no session file has",
            MAX_FILE_BYTES >> 20
        )));
    }
    Ok(bytes)
}

/// Whether a fathom that lives is still writing to it.
pub(crate) fn is_running(path: &Path) -> bool {
    let locked = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    File::open(path).is_ok_and(locked)
}

/// Where sessions may lie, best first.
pub(crate) fn directories() -> Vec<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let home = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|h| h.join(".local/share")));
    home.into_iter().chain(shared()).map(|d| d.join("fathom/sessions")).collect()
}

/// Makes a directory for sessions, which are nobody else's business.
pub(crate) fn create_directory(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Our directory among the temporary files; none where somebody else has made one of that name.
fn shared() -> Option<PathBuf> {
    let user = std::fs::metadata("/proc/self").ok().map(|m| owner(&m));
    let name = user.map_or_else(|| "nobody".into(), |u| u.to_string());
    let dir = std::env::temp_dir().join(format!("fathom-{name}"));
    let ours = dir.symlink_metadata().map_or(true, |m| m.is_dir() && Some(owner(&m)) == user);
    ours.then_some(dir)
}

fn owner(metadata: &std::fs::Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt;
    metadata.uid()
}
