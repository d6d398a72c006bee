//! The history: all sessions that were measured on this machine or imported.
//!
//! The session files contain the results. A file next to each session contains the user's tags and notes. The SQLite database
//! `history.db`, one directory above the session files, is an index of all these files and can be rebuilt from them at any time. Each
//! query compares the index with the files by name, size and time, and so detects sessions that were copied or removed without fathom.
//!
//! This file scans the directories of sessions and finds the session that the user names: a path, an id, `last` or `last~N`, a tag, or a
//! part of an id, in this order. `last` is the newest session that has ended, and `last~N` the N-th ended session before it.

#![forbid(unsafe_code)]

mod annotations;
mod index;
mod list;
pub mod session;
mod transfer;

pub use annotations::{Change, annotate, read_annotations};
pub use index::{Filter, capacities};
pub use list::{JudgedSession, Request as ListRequest, list, session_table, since, until};
pub use transfer::{DeleteRequest, Export, FORM as SESSION_FORM, delete, export, import, schema};

use crate::session::EXTENSION;
use model::name;
use model::record::Record;
use output::failure::Failure;
use output::session_directories::session_directories;
use output::stderr;
use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Returns the id of a session: the name of its file without the extension.
pub fn session_id(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
}

/// Refreshes the index after a change. Ignores errors: the next `fathom list` reports them.
pub fn refresh_index() {
    let _ = index::query(&Files { is_quiet: true, ..Files::scan() }, |_| Ok(()));
}

/// Maximum number of ids listed if a word matches several sessions.
const IDS_SHOWN: usize = 5;

/// Why a word names no session. Converts into the [`Failure`] to report.
#[derive(Debug)]
pub enum NoSession {
    /// The word is the path of a directory or a block device.
    Target(Failure),
    /// Any other reason.
    Other(Failure),
}

impl From<Failure> for NoSession {
    fn from(why: Failure) -> Self {
        Self::Other(why)
    }
}

impl From<NoSession> for Failure {
    fn from(why: NoSession) -> Self {
        match why {
            NoSession::Target(why) | NoSession::Other(why) => why,
        }
    }
}

/// Finds the session that a word names. The word is a path, an id, `last`, `last~2` for the second session before the
/// last one, a tag, or a part of an id. A tag and a part must match only one session.
///
/// # Errors
///
/// Why no session or several match, with what to type instead.
pub fn find_session(word: &str) -> Result<PathBuf, NoSession> {
    let path = Path::new(word);
    if word.contains('/') {
        return explain_target(word).map_or_else(|| Ok(path.to_owned()), Err);
    }
    if path.is_file() {
        return Ok(path.to_owned());
    }
    if let Some(path) = Files::find_file(word) {
        return Ok(path);
    }
    let files = Files::scan();
    Ok(files.get(&resolve_id(&files, word)?)?.path.clone())
}

/// Returns id and record of the newest session that measured exactly this path; `None` without one.
///
/// # Errors
/// Why the history or that session cannot be read.
pub fn last_session_on(path: &str) -> Result<Option<(String, Record)>, Failure> {
    let files = Files::scan();
    let named = Filter { target: Some(path.into()), ..Filter::default() };
    let entries = index::query(&files, |index| index.entries(&named, None))?;
    let Some(entry) = entries.into_iter().find(|e| e.targets.iter().any(|t| t == path)) else {
        return Ok(None);
    };
    let record = session::load(&files.get(&entry.id)?.path)
        .map_err(|why| Failure::Refused(format!("session {}: {why}", entry.id)))?;
    Ok(Some((entry.id, record)))
}

/// Finds the id that a word names.
fn resolve_id(files: &Files, word: &str) -> Result<String, NoSession> {
    if files.by_id.contains_key(word) {
        return Ok(word.to_owned());
    }
    if let Some(back) = sessions_back(word)? {
        let newest_first = index::query(files, |index| index.ids(&Filter::default()))?;
        return Ok(nth_ended(files, newest_first, word, back)?);
    }
    let tagged =
        index::query(files, |index| index.ids(&Filter { tag: Some(word.into()), ..Filter::default() }))?;
    if !tagged.is_empty() {
        return Ok(single_match(word, "this tag", tagged)?);
    }
    let parts: Vec<String> =
        files.by_id.keys().filter(|id| !word.is_empty() && id.contains(word)).cloned().collect();
    if parts.is_empty() {
        let unknown = || NoSession::Other(usage(word, &explain_unknown_word(files, word)));
        return Err(explain_target(word).unwrap_or_else(unknown));
    }
    Ok(single_match(word, "this in their id", parts)?)
}

/// Explains that a word names a directory or a block device, not a session; `None` if it names neither.
fn explain_target(word: &str) -> Option<NoSession> {
    let kind = target_kind(word)?;
    Some(NoSession::Target(Failure::Usage(format!(
        "{word} is {kind}, not a measurement; type fathom bench {} to measure it, or `fathom list` to see the sessions",
        name::line(&[word.to_owned()])
    ))))
}

/// Returns `a directory` or `a block device` if the word is the path of one.
pub fn target_kind(word: &str) -> Option<&'static str> {
    let kind = Path::new(word).metadata().ok()?.file_type();
    match kind {
        k if k.is_dir() => Some("a directory"),
        k if k.is_block_device() => Some("a block device"),
        _ => None,
    }
}

/// Explains that a word names no session, and what to type.
fn explain_unknown_word(files: &Files, word: &str) -> String {
    let advice = match nearest(files, word).join(" or ") {
        _ if files.by_id.is_empty() => session_count_text(0),
        similar if similar.is_empty() => {
            "type last for the newest session, or `fathom list` to see all".into()
        }
        similar => format!("type {similar}, or type `fathom list` to see all"),
    };
    format!("no file, tag or session has this name; {advice}")
}

/// Maximum number of sessions suggested for a misspelt id.
const MAX_NEAREST: usize = 3;

/// Returns the ids that are most similar to a misspelt one, the most similar first. Of equally similar ids, the newest is first. `last` is
/// a candidate too. Empty if none is similar. Also compares the word with both ends of each id, since `fathom list` may print only the end.
fn nearest<'f>(files: &'f Files, word: &str) -> Vec<&'f str> {
    const LIKENESS: f64 = 0.75;
    let length = word.chars().count();
    let likeness = |id: &str| {
        let chars: Vec<char> = id.chars().collect();
        // The word may have a character too few or too many.
        let lengths = length.saturating_sub(1).max(1)..=length.saturating_add(1).min(chars.len());
        let ends = lengths.flat_map(|n| [&chars[..n], &chars[chars.len() - n..]]);
        let ends = ends.map(|end| end.iter().collect::<String>()).chain([id.to_owned()]);
        ends.map(|end| strsim::normalized_damerau_levenshtein(word, &end)).fold(0.0, f64::max)
    };
    // Ids begin with the date, so the newest is the last one.
    let ids = ["last"].into_iter().chain(files.by_id.keys().rev().map(String::as_str));
    let mut alike: Vec<(f64, &str)> =
        ids.map(|id| (likeness(id), id)).filter(|(l, _)| *l >= LIKENESS).collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    alike.into_iter().map(|(_, id)| id).take(MAX_NEAREST).collect()
}

/// Returns the id of an ended session: with a `back` of 0 the newest one, with 1 the one before it, and so on.
fn nth_ended(files: &Files, newest_first: Vec<String>, word: &str, back: u32) -> Result<String, Failure> {
    let mut running = Vec::new();
    let mut left = back;
    for id in newest_first {
        let Some(found) = files.by_id.get(&id) else { continue };
        if let Some(state) = session::describe_running(&found.path) {
            running.push(format!("{id} is {state}"));
        } else if left > 0 {
            left -= 1;
        } else {
            for sentence in &running {
                stderr::print(&format!(
                    "fathom: {sentence}; a running session does not count, so {word} means {id}"
                ));
            }
            return Ok(id);
        }
    }
    let ended = files.by_id.len() - running.len();
    match running.first() {
        Some(sentence) if ended == 0 => {
            Err(Failure::Refused(format!("{word}: {sentence}, and no session has ended")))
        }
        Some(sentence) => {
            let have = if ended == 1 { "session has" } else { "sessions have" };
            Err(usage(word, &format!("{sentence}, and only {ended} {have} ended")))
        }
        None => Err(usage(word, &session_count_text(ended))),
    }
}

/// Parses `last` and `last~N`; `None` for another word.
fn sessions_back(word: &str) -> Result<Option<u32>, Failure> {
    match word.split_once('~') {
        None if word == "last" => Ok(Some(0)),
        Some(("last", back)) => {
            let why = "`last~` needs a number, such as last~1";
            back.parse().map(Some).map_err(|_| usage(word, why))
        }
        _ => Ok(None),
    }
}

/// Returns the only id of a list; fails if the list has none or several.
fn single_match(word: &str, what: &str, mut ids: Vec<String>) -> Result<String, Failure> {
    match ids.len() {
        1 => Ok(ids.remove(0)),
        n => {
            let more = if n > IDS_SHOWN { ", ..." } else { "" };
            ids.truncate(IDS_SHOWN);
            Err(usage(
                word,
                &format!("{n} sessions have {what}; type the id of one: {}{more}", ids.join(", ")),
            ))
        }
    }
}

fn session_count_text(sessions: usize) -> String {
    match sessions {
        0 => "there are no sessions yet; `fathom bench` makes one".into(),
        1 => "there is one session; type last".into(),
        n => format!("there are {n} sessions; type last~{} for the oldest", n - 1),
    }
}

fn usage(word: &str, why: &str) -> Failure {
    Failure::Usage(format!("{word}: {why}"))
}

/// Suffix of the name of an annotation file, after the id.
const ANNOTATIONS_SUFFIX: &str = ".words.json";
/// With at least this many files, two threads read sizes and times.
const TWO_THREADS_FROM: usize = 2000;

/// All session files, in all directories of sessions.
#[derive(Debug, Default)]
struct Files {
    /// The session files by id. Of two files with the same id, the one in the first directory is used.
    by_id: BTreeMap<String, SessionFile>,
    /// Messages about directories that could not be read, and about sessions that are not listed.
    problems: Vec<String>,
    /// Whether to omit the messages that many new sessions are read, and that no index can be used.
    is_quiet: bool,
}

/// A session file, with a stamp that shows whether the file or its annotations have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SessionFile {
    id: String,
    path: PathBuf,
    stamp: Stamp,
}

/// Values that change when a session or its annotations change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp {
    /// Size of the session file.
    bytes: i64,
    /// Last change of the session file, in ns since 1970.
    changed_ns: i64,
    /// Last change of the annotations, in ns since 1970; `None` without annotations.
    annotations_changed_ns: Option<i64>,
}

impl Files {
    /// Scans all directories.
    fn scan() -> Self {
        let mut files = Self::default();
        for dir in session_directories() {
            if let Err(e) = files.scan_directory(&dir)
                && e.kind() != io::ErrorKind::NotFound
            {
                files.problems.push(format!("{} cannot be read: {e}", name::shown(&dir)));
            }
        }
        files
    }

    /// Scans one directory.
    fn scan_directory(&mut self, dir: &Path) -> io::Result<()> {
        let mut annotation_times = BTreeMap::new();
        let mut found = Vec::new();
        let mut others = 0;
        let user = session::user();
        let entries = std::fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
        for (entry, facts) in entries.iter().zip(read_metadata(&entries)) {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let session = name.strip_suffix(EXTENSION).and_then(|n| n.strip_suffix('.'));
            // Ignore a file that was removed during the scan.
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
                annotation_times.insert(id.to_owned(), changed_ns(&facts));
            }
        }
        for (id, path, facts) in found {
            let stamp = Stamp {
                bytes: i64::try_from(facts.len()).unwrap_or(i64::MAX),
                changed_ns: changed_ns(&facts),
                annotations_changed_ns: annotation_times.get(&id).copied(),
            };
            self.by_id.entry(id.clone()).or_insert(SessionFile { id, path, stamp });
        }
        if others > 0 {
            let dir = name::shown(dir);
            self.problems.push(format!(
                "not listed: sessions of other users in {dir} ({others}); `fathom show FILE` shows one"
            ));
        }
        Ok(())
    }

    /// Returns the file of a session.
    ///
    /// # Errors
    /// If the session is only in the index, because another fathom stored it after the scan.
    fn get(&self, id: &str) -> Result<&SessionFile, Failure> {
        let refused =
            || Failure::Refused(format!("session {id} was stored just now; type the command again"));
        self.by_id.get(id).ok_or_else(refused)
    }

    /// Returns the path of the session with this id, without scanning the directories; `None` if this user has no such session.
    fn find_file(id: &str) -> Option<PathBuf> {
        let mut paths = session_directories().into_iter().map(|d| d.join(format!("{id}.{EXTENSION}")));
        paths.find(|p| p.symlink_metadata().is_ok_and(|facts| facts.is_file() && session::is_own(&facts)))
    }

    /// Returns the total size of all session files in bytes.
    fn bytes(&self) -> u64 {
        self.by_id.values().map(|f| f.stamp.bytes.unsigned_abs()).sum()
    }
}

/// Reads size, owner and times of each file; `None` for a file that was removed. With many files a second thread reads half of them.
fn read_metadata(entries: &[DirEntry]) -> Vec<Option<Metadata>> {
    let read = |part: &[DirEntry]| part.iter().map(|entry| entry.metadata().ok()).collect::<Vec<_>>();
    if entries.len() < TWO_THREADS_FROM {
        return read(entries);
    }
    let (first, second) = entries.split_at(entries.len() / 2);
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().spawn_scoped(scope, || read(second));
        let mut all = read(first);
        // A limit on threads may have refused the second thread.
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
    fn scan_finds_sessions_with_annotations_and_nothing_else() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in
            ["b.fathom", "a.fathom", "a.words.json", "c.words.json", ".fathom", "x.json", ".import-1.new"]
        {
            std::fs::write(dir.path().join(name), name)?;
        }
        std::fs::create_dir(dir.path().join("d.fathom"))?;
        let mut files = Files::default();
        files.scan_directory(dir.path())?;
        assert_eq!(files.by_id.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(files.by_id["a"].stamp.annotations_changed_ns.is_some());
        assert_eq!(files.by_id["b"].stamp.annotations_changed_ns, None);
        assert_eq!((files.by_id["a"].stamp.bytes, files.bytes()), (8, 16));
        assert_eq!(
            files.scan_directory(&dir.path().join("none")).map_err(|e| e.kind()),
            Err(io::ErrorKind::NotFound)
        );
        Ok(())
    }

    #[test]
    fn a_misspelt_id_or_end_of_an_id_suggests_the_nearest_sessions() {
        let mut files = Files::default();
        for id in [
            "20261129-143353-17843",
            "20261129-143437-19903",
            "20261129-143616-24147",
            "20261130-090000-24141",
        ] {
            let file = SessionFile { id: id.into(), path: PathBuf::new(), stamp: Stamp::default() };
            files.by_id.insert(id.into(), file);
        }
        for (word, advice) in [
            // One digit is wrong, two are swapped, one is missing, or one is too many.
            ("17844", "; type 20261129-143353-17843, or type `fathom list` to see all"),
            ("19930", "; type 20261129-143437-19903, or"),
            ("1783", "; type 20261129-143353-17843, or"),
            ("178433", "; type 20261129-143353-17843, or"),
            ("7-19904", "; type 20261129-143437-19903, or"),
            ("20261129-143353-17853", "; type 20261129-143353-17843, or"),
            ("24140", "; type 20261130-090000-24141 or 20261129-143616-24147, or"),
            ("lst", "; type last, or"),
            ("32017", "; type last for the newest session, or `fathom list` to see all"),
            ("", "; type last for the newest session, or"),
        ] {
            let why = explain_unknown_word(&files, word);
            assert!(why.contains(advice), "{word}: {why}");
        }
        assert!(explain_unknown_word(&Files::default(), "32017").contains("there are no sessions yet"));
    }

    #[test]
    fn a_directory_and_a_wrong_word_are_different_errors() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = |name: &str| name::text(dir.path().join(name));
        assert!(matches!(find_session(&path("")), Err(NoSession::Target(Failure::Usage(_)))));
        assert!(find_session(&path("missing.fathom")).is_ok(), "a missing file is reported when it is read");
        assert!(find_session("/dev/null").is_ok(), "a character device is no target");
        let files = Files::default();
        assert!(matches!(resolve_id(&files, "last~x"), Err(NoSession::Other(Failure::Usage(_)))));
        Ok(())
    }

    #[test]
    fn a_session_stored_after_the_scan_is_an_error() {
        let files = Files::default();
        let why = files.get("20261121-161226-1").map_err(|why| why.message().to_owned());
        assert!(why.is_err_and(|why| why.starts_with("session 20261121-161226-1 was stored just now")));
    }

    #[test]
    fn sizes_are_right_when_two_threads_read_them() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        for at in 0..=TWO_THREADS_FROM {
            std::fs::write(dir.path().join(format!("{at}.fathom")), "x".repeat(at % 97))?;
        }
        let mut files = Files::default();
        files.scan_directory(dir.path())?;
        assert_eq!(files.by_id.len(), TWO_THREADS_FROM + 1);
        for (id, file) in &files.by_id {
            let size = id.parse::<i64>().map_or(-1, |at| at % 97);
            assert_eq!((file.stamp.bytes, file.path.ends_with(format!("{id}.fathom"))), (size, true));
        }
        Ok(())
    }

    #[test]
    fn first_directory_wins_for_equal_ids() -> io::Result<()> {
        let dirs = [tempfile::tempdir()?, tempfile::tempdir()?];
        let mut files = Files::default();
        for (i, dir) in dirs.iter().enumerate() {
            std::fs::write(dir.path().join("a.fathom"), "x".repeat(i))?;
            files.scan_directory(dir.path())?;
        }
        assert_eq!((files.by_id.len(), files.by_id["a"].stamp.bytes), (1, 0));
        Ok(())
    }
}
