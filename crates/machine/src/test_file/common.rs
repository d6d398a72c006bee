//! Test files that several hosts open: made by one of them, under a name that all of them know.
//!
//! For: beginning one, finding one that another host made, and writing the parts of it that are this host's. Not for: which parts these
//! are, nor for who makes which file. A file that another host made is removed by that host; by the others only where they end before
//! their time, since then that host may be the one that was lost.

use super::{LOOK_EVERY, PREFIX, SUFFIX, TestFile, Writer, create_as, large_enough, named, random};
use crate::error::MachineError;
use crate::safety;
use model::job::Cache;
use model::name;
use model::units::{MIB, show_bytes};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a file that another host has made may take to be seen here: longer than caches of names mostly keep that there is none.
const UNTIL_SEEN: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// A name for a file of this process that no other one has. It also has the name of the host, since a process id says nothing elsewhere.
pub fn common_name() -> String {
    format!("{PREFIX}{}-{:016x}-{}{SUFFIX}", std::process::id(), random(), host())
}

/// What this host is called in names of files.
pub(crate) fn host() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    host.chars().filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c)).take(64).collect()
}

impl TestFile {
    /// Makes a file under this name and fills it, as [`Self::make`] does.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub fn make_common(
        (dir, file_name): (&Path, &str),
        asked_bytes: u64,
        how: (u64, Duration),
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, MachineError> {
        large_enough(asked_bytes)?;
        Self::begun(create_as(dir, file_name)?).filled(dir, asked_bytes, how, stop, progress)
    }

    /// Begins a file of this length under this name, which all hosts fill.
    ///
    /// # Errors
    /// Where there is no permission, or not so much room.
    pub fn begin_common((dir, file_name): (&Path, &str), bytes: u64) -> Result<Self, MachineError> {
        large_enough(bytes)?;
        super::fits(dir, bytes)?;
        let mut made = Self::begun(create_as(dir, file_name)?);
        made.file.set_len(bytes).map_err(|e| MachineError::at(dir, "written to", &e))?;
        made.bytes = bytes;
        Ok(made)
    }

    /// Opens a file that another host has made under this name. `ended` says whether all is over before its time.
    ///
    /// # Errors
    /// Where it is not seen here, and so the directory is not shared; where this user may not open it.
    pub fn of_another(
        (dir, file_name): (&Path, &str),
        maker: &str,
        ended: &Arc<AtomicBool>,
    ) -> Result<Self, MachineError> {
        let dir = &std::path::absolute(dir).map_err(|e| MachineError::at(dir, "looked at", &e))?;
        let path = dir.join(file_name);
        let until = Instant::now() + UNTIL_SEEN;
        let file = loop {
            match safety::open_for_work(&path, true, Cache::Buffered) {
                Ok(file) => break file,
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    return Err(MachineError::at(&path, "opened", &e));
                }
                Err(_) if ended.load(Ordering::Relaxed) => {
                    return Err(MachineError::Refused("interrupted while a test file was waited for".into()));
                }
                Err(_) if Instant::now() >= until => {
                    return Err(MachineError::Refused(format!(
                        "{} is not shared with {maker}: the test file that was made there is not seen here ({file_name}, for {} s); name a directory on storage that all hosts share, or leave --shared and --shift-hosts out",
                        name::shown(dir),
                        UNTIL_SEEN.as_secs()
                    )));
                }
                Err(_) => std::thread::sleep(BETWEEN_LOOKS),
            }
        };
        let bytes = file.metadata().map_err(|e| MachineError::at(&path, "looked at", &e))?.len();
        named().push(path.clone());
        Ok(Self { file, name: Some(path), bytes, notes: Vec::new(), others: Some(Arc::clone(ended)) })
    }

    /// Writes these parts of it, which are so many bytes together and which no other host writes, and makes them stable.
    ///
    /// # Errors
    /// Where that fails, and where the stop flag came up.
    pub fn fill_parts(
        &mut self,
        parts: impl Iterator<Item = Range<u64>>,
        (total, seed): (u64, u64),
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
                writer.part(at, bytes).map_err(failed)?;
                done += bytes;
                if done - synced >= LOOK_EVERY {
                    // Else writing it out would take long at the end, and nobody would see how far it is.
                    self.file.sync_data().map_err(failed)?;
                    synced = done;
                    progress(done.min(total), total);
                }
            }
        }
        self.file.sync_all().map_err(failed)
    }

    /// Looks at the whole file once all hosts have written their parts, and says what is not as it should be.
    pub fn prove_common(&mut self) {
        self.prove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn two_hosts_fill_one_file_which_its_maker_removes() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (at, ended) = (common_name(), Arc::new(AtomicBool::new(false)));
        let at = (dir.path(), at.as_str());
        let mut ours = TestFile::begin_common(at, 16 * MIB)?;
        let mut theirs = TestFile::of_another(at, "a", &ended)?;
        let half = |file: &mut TestFile, part: Range<u64>, seed| {
            file.fill_parts(std::iter::once(part), (8 * MIB, seed), &AtomicBool::new(false), &mut |_, _| {})
        };
        half(&mut ours, 0..8 * MIB, 1)?;
        half(&mut theirs, 8 * MIB..16 * MIB, 2)?;
        ours.prove_common();
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
    fn a_file_whose_maker_may_be_lost_is_removed_by_whoever_is_left() -> Result<(), Box<dyn std::error::Error>>
    {
        let dir = tempfile::tempdir()?;
        let (at, ended) = (common_name(), Arc::new(AtomicBool::new(false)));
        let at = (dir.path(), at.as_str());
        let ours = TestFile::begin_common(at, 16 * MIB)?;
        let theirs = TestFile::of_another(at, "a", &ended)?;
        ended.store(true, Ordering::Relaxed);
        drop(theirs);
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
        drop(ours);
        let missing = TestFile::of_another(at, "a", &ended).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(missing.contains("interrupted"), "nobody waits for it any more: {missing}");
        Ok(())
    }
}
