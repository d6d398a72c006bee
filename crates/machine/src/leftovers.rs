//! Test files that killed runs left behind.
//!
//! For: finding those that no live run holds. Not for: making test files, nor removing those of this process (`test_file`).

use crate::error::MachineError;
use crate::root::Root;
use crate::test_file::{PREFIX, SUFFIX};
use crate::usage::Use;
use crate::{file_systems, in_use};
use model::name;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A test file that a killed run left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes it takes.
    pub bytes: u64,
    /// Time since it was written last.
    pub age: Duration,
}

impl Leftover {
    /// Removes it, if still nobody uses it.
    ///
    /// # Errors
    /// Where it is in use by now, or may not be removed.
    pub fn remove(&self) -> Result<(), MachineError> {
        // The lock is held until after the name is gone.
        let Some(_lock) = lock_deserted(&self.path) else {
            return Err(MachineError::Refused(format!(
                "{} is in use or not yours, so it stays",
                name::shown(&self.path)
            )));
        };
        std::fs::remove_file(&self.path).map_err(|e| MachineError::at(&self.path, "removed", &e))
    }
}

/// Test files in a directory that no live run holds, sorted by name. Empty where nobody may look.
pub fn leftovers(dir: &Path) -> Vec<Leftover> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<Leftover> = entries.filter_map(|e| leftover(&e.path())).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn leftover(path: &Path) -> Option<Leftover> {
    let facts = lock_deserted(path)?.metadata().ok()?;
    let age = facts.modified().ok().and_then(|t| t.elapsed().ok()).unwrap_or_default();
    Some(Leftover { path: path.to_owned(), bytes: facts.blocks().saturating_mul(512), age })
}

/// Locks a file that is certainly a test file of fathom's, whose process is gone and that nothing uses; `None` for any other.
fn lock_deserted(path: &Path) -> Option<File> {
    let middle = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let (pid, random) = middle.split_once('-')?;
    // One that several hosts open has the name of its maker, and only there its process is known.
    let (random, host) = random.split_once('-').map_or((random, None), |(random, host)| (random, Some(host)));
    let ours = random.len() == 16
        && random.bytes().all(|b| b.is_ascii_hexdigit())
        && host.is_none_or(|host| host == crate::test_file::host());
    let pid: u32 = pid.parse().ok()?;
    // Between creating and locking it, a live run's file is not locked yet.
    if !ours || Path::new(&format!("/proc/{pid}")).exists() {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    // As fathom made it: of this user, under one name. What has become something else since is not fathom's.
    let user = rustix::process::geteuid().as_raw();
    let is_as_made = file.metadata().is_ok_and(|m| m.is_file() && m.uid() == user && m.nlink() == 1);
    // A lock of another machine, or in another container, may not be seen on a shared file system, and only there the name has the host.
    let is_seen = host.is_some() || file_systems::is_shared(&file) == Ok(false);
    let is_free = is_as_made && is_seen && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    // Where users cannot be seen, as on FUSE or in a container, its lock and the end of its process decide.
    let users = in_use::file(&Root::real(), &file, false);
    (is_free && matches!(users, Ok(Use::Nobody | Use::Unseen(_) | Use::Hidden(_)))).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn only_unlocked_files_of_dead_runs_are_left_over() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        // Above the largest process id that Linux gives.
        let dead = dir.path().join(format!("{PREFIX}4194999-00000000000000ff{SUFFIX}"));
        let live = dir.path().join(format!("{PREFIX}{}-00000000000000ff{SUFFIX}", std::process::id()));
        let host = crate::test_file::host();
        let of = |host: &str| dir.path().join(format!("{PREFIX}4194999-00000000000000ff-{host}{SUFFIX}"));
        let (common, others) = (of(&host), of("another.host"));
        for path in [
            &dead,
            &live,
            &common,
            &others,
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
        // The user keeps it under another name.
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
