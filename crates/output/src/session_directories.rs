//! The directories of sessions. fathom writes no reports there, so the rules for output files use this list too.

use rustix::fs::{Access, AtFlags, CWD, accessat, statfs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Path of the sessions below a data directory.
const RELATIVE_PATH: &str = "fathom/sessions";
/// Mode bits that let users other than the owner write.
const OTHERS_WRITE: u32 = 0o022;

/// Returns the directories that may contain sessions, best first. Includes the one below the temporary
/// directory (`TMPDIR`) only if the user's data directory is not usable, because other users can
/// create files in the temporary directory.
pub fn session_directories() -> Vec<PathBuf> {
    let home = user_directory();
    let is_home_usable = home.as_deref().is_some_and(is_usable);
    home.into_iter().chain(temporary_directory().filter(|_| !is_home_usable)).collect()
}

/// Returns the session directory in the user's data directory: below `XDG_DATA_HOME`, otherwise
/// below `HOME`. `None` if neither is an absolute path.
pub fn user_directory() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let home = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|h| h.join(".local/share")));
    home.map(|d| d.join(RELATIVE_PATH))
}

/// Magic numbers of `/proc` and `/sys` in `statfs(2)`.
const PROC_SUPER_MAGIC: u64 = 0x9fa0;
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// Whether a directory is writable or can be created, as far as permissions and the file system show.
fn is_usable(dir: &Path) -> bool {
    let there = dir.ancestors().find(|d| d.symlink_metadata().is_ok());
    let writable = |d: &Path| accessat(CWD, d, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok();
    // Root has write permission everywhere in /proc and /sys, but cannot create files there.
    let makes_files =
        |d: &Path| statfs(d).is_ok_and(|fs| ![PROC_SUPER_MAGIC, SYSFS_MAGIC].contains(&(fs.f_type as u64)));
    there.is_some_and(|d| d.is_dir() && writable(d) && makes_files(d))
}

/// Returns the session directory below `fathom-UID` in the temporary directory, even if it does not
/// exist yet. `None` if `fathom-UID` is not a directory, or another user owns it or may write to it.
fn temporary_directory() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let dir = std::env::temp_dir().join(format!("fathom-{user}"));
    let facts = dir.symlink_metadata();
    let is_ours = facts.map_or(true, |m| m.is_dir() && m.uid() == user && m.mode() & OTHERS_WRITE == 0);
    is_ours.then(|| dir.join(RELATIVE_PATH))
}
