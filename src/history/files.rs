//! The files of the history: which sessions there are, where, and when they last changed.
//!
//! For: names, sizes and times of thousands of files in a moment. Not for: opening any of them.

use crate::session::{self, EXTENSION};
use model::name;
use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the names of files with the user's words end in, behind the id.
pub(super) const ANNOTATIONS_SUFFIX: &str = ".words.json";
/// Files of which it takes too long for one thread to read size and times.
const TWO_THREADS_FROM: usize = 2000;

/// Every session file, wherever sessions may lie.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// By id. Of two with one id the first directory's.
    pub(super) by_id: BTreeMap<String, SessionFile>,
    /// Directories that could not be read, with the reason, and what was left out.
    pub(super) problems: Vec<String>,
}

/// Where a session lies, and what tells that it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionFile {
    pub(super) id: String,
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// What changes when a session or the words about it change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Size of the session file.
    pub(super) bytes: i64,
    /// Its last change, ns since 1970.
    pub(super) changed_ns: i64,
    /// The last change of the file with the user's words; `None` where there is none.
    pub(super) words_changed_ns: Option<i64>,
}

impl Files {
    /// Looks at all directories.
    pub(super) fn scan() -> Self {
        let mut files = Self::default();
        for dir in session::directories() {
            if let Err(e) = files.look_in(&dir)
                && e.kind() != io::ErrorKind::NotFound
            {
                files.problems.push(format!("{} cannot be read: {e}", name::shown(&dir)));
            }
        }
        files
    }

    /// Looks at one directory.
    pub(super) fn look_in(&mut self, dir: &Path) -> io::Result<()> {
        let mut words = BTreeMap::new();
        let mut found = Vec::new();
        let mut others = 0;
        let user = session::user();
        let entries = std::fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
        for (entry, facts) in entries.iter().zip(facts_of(&entries)) {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let session = name.strip_suffix(EXTENSION).and_then(|n| n.strip_suffix('.'));
            // What is removed while we look is not there.
            let (Some(id), Some(facts)) = (session.or(name.strip_suffix(ANNOTATIONS_SUFFIX)), facts) else {
                continue;
            };
            if id.is_empty() || !facts.is_file() {
                continue;
            }
            if facts.uid() != user {
                others += usize::from(session.is_some());
                continue;
            }
            if session.is_some() {
                found.push((id.to_owned(), entry.path(), facts));
            } else {
                words.insert(id.to_owned(), changed_ns(&facts));
            }
        }
        for (id, path, facts) in found {
            let stamp = Stamp {
                bytes: i64::try_from(facts.len()).unwrap_or(i64::MAX),
                changed_ns: changed_ns(&facts),
                words_changed_ns: words.get(&id).copied(),
            };
            self.by_id.entry(id.clone()).or_insert(SessionFile { id, path, stamp });
        }
        if others > 0 {
            let left = format!("{others} of the sessions in {} are other users'", name::shown(dir));
            self.problems.push(format!("{left} and left out; `fathom show FILE` shows one"));
        }
        Ok(())
    }

    /// The file of a session, found without looking at the others.
    pub(super) fn find_file(id: &str) -> Option<PathBuf> {
        let mut paths = session::directories().into_iter().map(|d| d.join(format!("{id}.{EXTENSION}")));
        paths.find(|p| p.symlink_metadata().is_ok_and(|facts| facts.is_file() && session::is_own(&facts)))
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.by_id.values().map(|f| f.stamp.bytes.unsigned_abs()).sum()
    }
}

/// Reads size, owner and times of each file; `None` for one that has been removed meanwhile. Of many files a second thread reads one half.
fn facts_of(entries: &[DirEntry]) -> Vec<Option<Metadata>> {
    let read = |part: &[DirEntry]| part.iter().map(|entry| entry.metadata().ok()).collect::<Vec<_>>();
    if entries.len() < TWO_THREADS_FROM {
        return read(entries);
    }
    let (first, second) = entries.split_at(entries.len() / 2);
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().spawn_scoped(scope, || read(second));
        let mut all = read(first);
        // A limit on threads may have refused the second one.
        let rest = other.ok().and_then(|other| other.join().ok());
        all.extend(rest.unwrap_or_else(|| read(second)));
        all
    })
}

fn changed_ns(facts: &Metadata) -> i64 {
    facts.mtime().saturating_mul(1_000_000_000).saturating_add(facts.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_seen_with_their_words_and_nothing_else_is() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in
            ["b.fathom", "a.fathom", "a.words.json", "c.words.json", ".fathom", "x.json", ".import-1.new"]
        {
            std::fs::write(dir.path().join(name), name)?;
        }
        std::fs::create_dir(dir.path().join("d.fathom"))?;
        let mut files = Files::default();
        files.look_in(dir.path())?;
        assert_eq!(files.by_id.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(files.by_id["a"].stamp.words_changed_ns.is_some());
        assert_eq!(files.by_id["b"].stamp.words_changed_ns, None);
        assert_eq!((files.by_id["a"].stamp.bytes, files.bytes()), (8, 16));
        assert_eq!(
            files.look_in(&dir.path().join("none")).map_err(|e| e.kind()),
            Err(io::ErrorKind::NotFound)
        );
        Ok(())
    }

    #[test]
    fn of_many_files_each_has_its_own_size() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        for at in 0..=TWO_THREADS_FROM {
            std::fs::write(dir.path().join(format!("{at}.fathom")), "x".repeat(at % 97))?;
        }
        let mut files = Files::default();
        files.look_in(dir.path())?;
        assert_eq!(files.by_id.len(), TWO_THREADS_FROM + 1);
        for (id, file) in &files.by_id {
            let size = id.parse::<i64>().map_or(-1, |at| at % 97);
            assert_eq!((file.stamp.bytes, file.path.ends_with(format!("{id}.fathom"))), (size, true));
        }
        Ok(())
    }

    #[test]
    fn of_two_with_one_id_the_first_directorys_counts() -> io::Result<()> {
        let dirs = [tempfile::tempdir()?, tempfile::tempdir()?];
        let mut files = Files::default();
        for (i, dir) in dirs.iter().enumerate() {
            std::fs::write(dir.path().join("a.fathom"), "x".repeat(i))?;
            files.look_in(dir.path())?;
        }
        assert_eq!((files.by_id.len(), files.by_id["a"].stamp.bytes), (1, 0));
        Ok(())
    }
}
