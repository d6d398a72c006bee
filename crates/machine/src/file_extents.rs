//! Where files lie on the device of their file system.
//!
//! For: the extents of a file, or of all files below a directory, as stretches of that device. Not for: how one file is stored (that is
//! `extents`), nor where its bytes are on devices further below (`stored`).

use crate::error::describe;
use crate::stored::counts_from_device;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use sys::fiemap::{self, Extent};

/// Most files that are looked at, and most extents that are kept.
const MOST_FILES: u64 = 1 << 20;
const MOST_EXTENTS: usize = 1 << 22;
/// Most extents that a file's map is read to.
const MOST_OF_A_FILE: usize = 1 << 20;
/// States of an extent in which it is nowhere on the device that is its own.
const NOWHERE: u32 = Extent::UNPLACED | Extent::DELAYED | Extent::INLINE;

/// Where files lay at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileExtents {
    /// How many files there were.
    pub files: u64,
    /// First byte of the device and the byte behind the last, in order; none touches another.
    pub stretches: Vec<(u64, u64)>,
    /// Bytes of these files without a place of their own: inside inodes, or not allocated yet.
    pub unplaced_bytes: u64,
}

/// Looks at a file, or at all files below a directory on the same file system. Their dirty pages are written back first.
///
/// # Errors
/// Why they cannot be told, in words.
pub fn locate_file_extents(target: &Path) -> Result<FileExtents, String> {
    let facts = target.metadata().map_err(|e| describe(&e))?;
    let mut found = FileExtents::default();
    if facts.is_file() {
        found.add(target)?;
    } else if facts.is_dir() {
        below(target, facts.dev(), &mut found)?;
    } else {
        return Err("it is neither a file nor a directory, and only files have extents".into());
    }
    found.stretches = merge_touching(std::mem::take(&mut found.stretches));
    Ok(found)
}

/// Goes through a tree without following links or leaving its file system.
fn below(top: &Path, device: u64, found: &mut FileExtents) -> Result<(), String> {
    let mut open: Vec<PathBuf> = vec![top.to_owned()];
    let why = |path: &Path, e: &std::io::Error| format!("{}: {}", path.display(), describe(e));
    while let Some(dir) = open.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            // What goes away meanwhile is nobody's any more.
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(why(&dir, &e)),
        };
        for entry in entries {
            let path = entry.map_err(|e| why(&dir, &e))?.path();
            match path.symlink_metadata() {
                Ok(facts) if facts.dev() != device => {}
                Ok(facts) if facts.is_dir() => open.push(path),
                Ok(facts) if facts.is_file() => found.add(&path)?,
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(why(&path, &e)),
            }
        }
    }
    Ok(())
}

impl FileExtents {
    fn add(&mut self, path: &Path) -> Result<(), String> {
        let why = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file: File =
            match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path) {
                Ok(file) => file,
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(why(&describe(&e))),
            };
        counts_from_device(&file).map_err(|e| why(&e))?;
        // What is allocated behind its end belongs to it too.
        let all = fiemap::extents(&file, u64::MAX).map_err(|e| why(&crate::extents::why(&e)))?;
        self.files += 1;
        for extent in &all {
            if extent.has(NOWHERE) {
                self.unplaced_bytes = self.unplaced_bytes.saturating_add(extent.length);
            } else if extent.length > 0 {
                self.stretches.push((extent.physical, extent.physical.saturating_add(extent.length)));
            }
        }
        if self.stretches.len() > MOST_EXTENTS {
            self.stretches = merge_touching(std::mem::take(&mut self.stretches));
        }
        if all.len() >= MOST_OF_A_FILE || self.stretches.len() > MOST_EXTENTS || self.files > MOST_FILES {
            return Err(why(&format!(
                "there are too many files or extents; name less (at most {MOST_FILES} files, {MOST_OF_A_FILE} extents in one and {MOST_EXTENTS} in all)"
            )));
        }
        Ok(())
    }
}

/// In order, those that touch being one.
fn merge_touching(mut stretches: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    stretches.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in stretches {
        match out.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => out.push((begin, end)),
        }
    }
    out
}

#[test]
fn stretches_that_touch_are_one() {
    let all = merge_touching(vec![(50, 60), (0, 10), (10, 20), (15, 18), (55, 70)]);
    assert_eq!(all, [(0, 20), (50, 70)]);
    let none = locate_file_extents(Path::new("/dev/null")).map_err(|e| e.contains("neither a file"));
    assert_eq!(none, Err(true));
}
