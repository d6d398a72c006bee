//! Other processes of this program: a capture, and a run beside it.
//!
//! For: starting and ending them so that nothing is left behind. Not for: what is made of what they leave ([`super::fit_check`]).

use crate::capture_file;
use crate::failure::{Failure, cause};
use crate::signals::INTERRUPTED;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// Where files in between are best kept: in memory, and on no device that is captured.
const MEMORY: &str = "/dev/shm";
/// When a capture ends by itself, where nobody is left to end it.
const LONGEST: &str = "25h";
/// How often it is looked whether a capture has begun.
const EVERY: Duration = Duration::from_millis(5);

/// A folder that is gone with this.
pub(super) struct Between(PathBuf);

impl Between {
    pub(super) fn new() -> Result<Self, Failure> {
        let memory = Path::new(MEMORY);
        let dir = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let dir = dir.join(format!("fathom-fit-{}", std::process::id()));
        std::fs::create_dir(&dir)
            .map_err(|e| Failure::Refused(format!("{} cannot be made: {e}{}", dir.display(), cause(&e))))?;
        Ok(Self(dir))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A capture that runs beside; ended with this.
pub(super) struct Capturing {
    child: Child,
    said: ChildStderr,
}

impl Capturing {
    /// Begins one, and waits until it records: then its file has a beginning.
    ///
    /// # Errors
    /// What it said where it does not begin.
    pub(super) fn begin(target: &Path, into: &Path) -> Result<Self, Failure> {
        let mut command = itself()?;
        command.args(["capture", "--time", LONGEST, "-o"]).arg(into).arg("--").arg(target);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| not_started(&e))?;
        let Some(said) = child.stderr.take() else {
            return Err(Failure::Refused("a capture cannot be heard".into()));
        };
        let mut capturing = Self { child, said };
        while matches!(capturing.child.try_wait(), Ok(None)) {
            if capture_file::open(into).is_ok() {
                return Ok(capturing);
            }
            std::thread::sleep(EVERY);
        }
        let mut words = String::new();
        let _ = capturing.said.read_to_string(&mut words);
        let why = words.trim().trim_start_matches("fathom: ").to_owned();
        match capturing.child.wait().ok().and_then(|status| status.code()) {
            Some(2) => Err(Failure::Usage(why)),
            Some(code) if code == i32::from(INTERRUPTED) => Err(Failure::Interrupted),
            _ => Err(Failure::Refused(why)),
        }
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// Where it cannot be ended, or left no capture.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.interrupt();
        let mut words = String::new();
        let _ = self.said.read_to_string(&mut words);
        let status = self.child.wait().map_err(|e| not_started(&e))?;
        match status.code() {
            // Whether it is complete stands in the file.
            Some(0 | 1) => Ok(()),
            Some(code) if code == i32::from(INTERRUPTED) => Ok(()),
            _ => Err(Failure::Refused(format!("the capture of the job ended early: {}", words.trim()))),
        }
    }

    fn interrupt(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        // Waited for already, or not ended: then it may not go on alone.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.interrupt();
            let _ = self.child.wait();
        }
    }
}

/// Runs a job, its report into a file; gives its number as a process.
///
/// # Errors
/// Where it was refused, whose words are on standard error already, or interrupted.
pub(super) fn run(
    job: &Path,
    target: &Path,
    (destroy, unseen_users): (Option<&OsString>, &[PathBuf]),
    report: &Path,
) -> Result<u32, Failure> {
    let refuse = |e: io::Error| not_started(&e);
    let mut command = itself()?;
    command.args(["run", "--format", "json", "--quiet", "--no-history", "--runs", "1", "--attempts", "1"]);
    // The requests are compared, not the number.
    command.args(["--accept", "A04", "--accept", "A05"]);
    if let Some(destroy) = destroy {
        command.arg("--destroy").arg(destroy);
    }
    for path in unseen_users {
        command.arg("--unseen-users").arg(path);
    }
    command.arg("--").arg(job).arg(target);
    command.stdin(Stdio::null()).stdout(File::create(report).map_err(refuse)?).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(refuse)?;
    let pid = child.id();
    let mut words = String::new();
    if let Some(mut said) = child.stderr.take() {
        let _ = said.read_to_string(&mut words);
    }
    let why = words.trim().trim_start_matches("fathom: ").to_owned();
    match child.wait().map_err(refuse)?.code() {
        // A finding about the measurement is none about the fit.
        Some(0 | 1 | 4) => Ok(pid),
        Some(2) => Err(Failure::Usage(why)),
        Some(code) if code == i32::from(INTERRUPTED) => Err(Failure::Interrupted),
        _ => Err(Failure::Refused(why)),
    }
}

/// This program once more.
fn itself() -> Result<Command, Failure> {
    std::env::current_exe().map(Command::new).map_err(|e| not_started(&e))
}

fn not_started(error: &io::Error) -> Failure {
    Failure::Refused(format!("fathom cannot be started once more: {error}{}", cause(error)))
}
