//! The session file: where it lies, appending frames to it, reading it back.
//!
//! For: the truth on disk before anything is concluded from it. Not for: what a frame holds (crate `model`), nor judging.

use crate::failure::Failure;
use model::record::frame::{self, MAGIC, MAX_FILE_BYTES};
use model::record::{Frame, Record};
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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

    fn create_in(dir: &Path, started: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let path = dir.join(format!("{started}-{}.fathom", std::process::id()));
        let mut file = File::options().append(true).create_new(true).mode(0o600).open(&path)?;
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
    let fail = |e: &dyn std::fmt::Display| Failure::Usage(format!("{}: {e}", path.display()));
    let file = File::open(path).map_err(|e| fail(&e))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| fail(&e))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(fail(&format!("more than {} MiB, which no session file has", MAX_FILE_BYTES >> 20)));
    }
    let (record, _torn) = frame::decode(&bytes).map_err(|e| fail(&e))?;
    Ok(record)
}

/// Where sessions may lie, best first.
pub(crate) fn directories() -> Vec<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let home = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|h| h.join(".local/share")));
    let user = std::fs::metadata("/proc/self").map_or_else(|_| "nobody".into(), |m| owner(&m).to_string());
    let shared = std::env::temp_dir().join(format!("fathom-{user}"));
    home.into_iter().chain([shared]).map(|d| d.join("fathom/sessions")).collect()
}

fn owner(metadata: &std::fs::Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt;
    metadata.uid()
}
