//! The mark of files that fathom made and keeps: whose a file is that lies where fathom once made one.
//!
//! For: the extended attribute, read and written. Not for: making the files ([`crate::kept_file`], dd, ioping), nor what may be written
//! besides ([`crate::safety`]).
//!
//! The mark is the number of the inode, so that a copy of the file has none that counts; and the length and the time of the last
//! write as fathom left it, so that a file into which somebody else has put data since, under the same name and inode, is theirs.
//! Where a file system keeps no such attributes the file is the user's from then on.

use rustix::fs::{OFlags, XattrFlags, fgetxattr, fsetxattr, getxattr};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Name of the mark.
const MARK: &str = "user.fathom.kept";
/// More than a mark has bytes: the number of an inode, behind a word where it is of a copy, before a state where nothing is being written.
const MARK_BYTES: usize = 128;
/// What stands before the number where the file is a copy of somebody's data: dd may make it anew, and nobody else.
const COPY: &str = "copy ";
/// All words of marks.
const WORDS: [&str; 2] = ["", COPY];

/// Whether a path leads to a file that fathom made and kept.
pub fn is_ours(path: &Path) -> bool {
    at(path).is_some_and(|(mark, facts)| holds(&mark, "", &facts))
}

/// Whether a path leads to a copy of somebody's data that fathom made as dd does.
pub fn is_copy(path: &Path) -> bool {
    at(path).is_some_and(|(mark, facts)| holds(&mark, COPY, &facts))
}

/// Whether what a path leads to may be made, or made again: one that fathom made and kept, or one in which there is nothing.
pub fn may_be_made(path: &Path) -> bool {
    let is_empty = std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() == 0);
    is_empty || is_ours(path)
}

/// Whether fathom made a file, and something else has written it since.
pub fn was_ours(path: &Path) -> bool {
    at(path).is_some_and(|(mark, facts)| {
        let is_of_it = |word| mark.starts_with(format!("{} ", opened(word, &facts)).as_bytes());
        WORDS.into_iter().any(|word| is_of_it(word) && !holds(&mark, word, &facts))
    })
}

/// The mark of what is at a path itself, where that is a regular file and bears one.
fn at(path: &Path) -> Option<(Vec<u8>, Metadata)> {
    let facts = std::fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    let mut mark = [0; MARK_BYTES];
    let bytes = getxattr(path, MARK, &mut mark).ok()?;
    Some((mark.get(..bytes)?.to_vec(), facts))
}

/// The word of the mark of a file that is open: none of a file of ours, [`COPY`] of a copy; `None` where it bears no mark that holds.
fn word_of(file: &File) -> Option<&'static str> {
    let facts = file.metadata().ok()?;
    let mut mark = [0; MARK_BYTES];
    let bytes = fgetxattr(file, MARK, &mut mark).ok()?;
    WORDS.into_iter().find(|word| holds(mark.get(..bytes).unwrap_or_default(), word, &facts))
}

/// Whether a file that is open is ours, and no copy.
pub(crate) fn is_open(file: &File) -> bool {
    word_of(file) == Some("")
}

/// Whether a mark is of this file, and of what is in it now.
fn holds(mark: &[u8], word: &str, facts: &Metadata) -> bool {
    mark == opened(word, facts).as_bytes() || mark == closed(word, facts).as_bytes()
}

/// The mark of a file that is being written; and of one whose writer was killed.
fn opened(word: &str, facts: &Metadata) -> String {
    format!("{word}{}", facts.ino())
}

/// The mark of a file that nobody writes: with the state in which it was left.
fn closed(word: &str, facts: &Metadata) -> String {
    format!("{} {} {}.{:09}", opened(word, facts), facts.len(), facts.mtime(), facts.mtime_nsec())
}

/// A file of ours while it is written. At the end its mark says in which state it was left. A file of ours whose writer is killed has a
/// mark without a state, and stays ours.
#[derive(Debug)]
pub struct Writing {
    /// Open for reading: a second descriptor for writing would be taken for another user.
    file: File,
    word: &'static str,
    /// Whether somebody else had made it, with nothing in it, so that its name is not for fathom to remove.
    pub found_empty: bool,
}

impl Writing {
    /// From before the first byte is written; `None` where it is not ours, or cannot be opened for reading.
    pub fn begin(path: &Path) -> Option<Self> {
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        let word = word_of(&file)?;
        mark_as(&file, word).ok()?;
        Some(Self { file, word, found_empty: false })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Ok(facts) = self.file.metadata() {
            set(&self.file, &closed(self.word, &facts));
        }
    }
}

/// Marks a file as ours, which was made a moment ago.
///
/// # Errors
/// Where it cannot be looked at.
pub fn mark(file: &File) -> io::Result<()> {
    mark_as(file, "")
}

/// Marks a file, which was made a moment ago, as a copy of somebody's data.
///
/// # Errors
/// As [`mark`].
pub fn mark_copy(file: &File) -> io::Result<()> {
    mark_as(file, COPY)
}

fn mark_as(file: &File, word: &str) -> io::Result<()> {
    set(file, &opened(word, &file.metadata()?));
    Ok(())
}

/// Without a mark the next call asks before it writes, which is all that is lost where it cannot be set.
fn set(file: &File, mark: &str) {
    let _ = fsetxattr(file, MARK, mark.as_bytes(), XattrFlags::empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_has_written_since_is_theirs() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a");
        std::fs::write(&path, "made")?;
        assert!(!is_ours(&path) && !was_ours(&path));
        mark(&File::open(&path)?)?;
        assert!(is_ours(&path), "being written");
        for word in ["", COPY] {
            mark_as(&File::open(&path)?, word)?;
            let is_it = || if word.is_empty() { is_ours(&path) } else { is_copy(&path) };
            let writing = Writing::begin(&path).ok_or(io::ErrorKind::NotFound)?;
            std::fs::write(&path, "made by fathom")?;
            drop(writing);
            assert!(is_it() && !was_ours(&path), "{word:?} as it was left");
            // The same length, a later time.
            std::thread::sleep(std::time::Duration::from_millis(20));
            std::fs::write(&path, "of the user's ")?;
            assert!(!is_ours(&path) && !is_copy(&path) && was_ours(&path), "{word:?}");
            assert!(Writing::begin(&path).is_none(), "what is theirs is not taken back");
            // The same time, another length.
            mark_as(&File::open(&path)?, word)?;
            drop(Writing::begin(&path));
            let before = std::fs::metadata(&path)?.modified()?;
            std::fs::write(&path, "longer than it was before")?;
            File::options().write(true).open(&path)?.set_modified(before)?;
            assert!(!is_it() && was_ours(&path), "{word:?}");
        }
        Ok(())
    }
}
