//! `fathom tag` and `fathom note`: the user's tags and notes, in a file next to the session.
//!
//! The file is replaced as a whole, under a lock on its directory, and removed when it would be empty.

use super::session_id;
use crate::{ANNOTATIONS_SUFFIX, find_session, refresh_index};
use model::name;
use model::record::MAGIC;
use model::report::Annotations;
use output::failure::Failure;
use output::{files, stderr, stdout};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum size of an annotation file in bytes. Real annotation files are far smaller.
const ANNOTATION_BYTES_MAX: u64 = 16 << 20;

/// Returns the annotations of a session. If they cannot be read, warns and returns none.
pub fn read_annotations(session: &Path) -> Annotations {
    read(session).unwrap_or_else(|why| {
        stderr::print(&format!("fathom: {}: {why}", session_id(session)));
        Annotations::default()
    })
}

/// Reads the annotations of a session; empty without a file.
///
/// # Errors
/// What is wrong with the file.
pub(super) fn read(session: &Path) -> Result<Annotations, String> {
    let path = annotations_path(session);
    let wrong = |why: &dyn std::fmt::Display| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("cannot read its tags and notes in {name}: {why}; fix the file or move it away")
    };
    match files::read_text(&path, ANNOTATION_BYTES_MAX) {
        Ok(text) => Annotations::parse(&text).map_err(|e| wrong(&e)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Annotations::default()),
        Err(e) => Err(wrong(&e)),
    }
}

/// Writes the annotations of a session. Removes the file if they are empty.
pub(super) fn write(session: &Path, annotations: &Annotations) -> io::Result<()> {
    let path = annotations_path(session);
    if !annotations.is_empty() {
        return files::replace(&path, (serde_json::to_string_pretty(annotations)? + "\n").as_bytes());
    }
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Returns the path of the file with the annotations of a session.
pub(super) fn annotations_path(session: &Path) -> PathBuf {
    session.with_file_name(format!("{}{ANNOTATIONS_SUFFIX}", session_id(session)))
}

/// A change to the annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Add tags.
    Tag(Vec<String>),
    /// Remove tags.
    Untag(Vec<String>),
    /// Add a note.
    Note(String),
}

/// Changes the annotations of a session. Prints the session's id, its tags and the number of its notes.
///
/// # Errors
///
/// [`Failure::Usage`] for an invalid change, or if no session or several have the name; [`Failure::Refused`] if the file cannot be written.
pub fn annotate(name: &str, change: &Change) -> Result<ExitCode, Failure> {
    let session = find_session(name)?;
    if !files::begins_with(&session, MAGIC.as_bytes()) {
        return Err(Failure::Usage(format!(
            "{} is not a session, or does not exist; type an id of `fathom list`",
            name::shown(&session)
        )));
    }
    let annotations = apply_change(&session, change)?;
    refresh_index();
    let tags = match annotations.tags.join(" ") {
        none if none.is_empty() => none,
        tags => format!(", tags {tags}"),
    };
    let notes = match annotations.notes.len() {
        0 => String::new(),
        1 => ", one note".into(),
        n => format!(", {n} notes"),
    };
    stdout::print_text(&format!("{}{tags}{notes}\n", session_id(&session)))?;
    Ok(ExitCode::SUCCESS)
}

fn apply_change(session: &Path, change: &Change) -> Result<Annotations, Failure> {
    // Hold a lock until the change is written, so that concurrent changes are not lost. Some file systems have no locks.
    let held = File::open(files::parent(session)).map_err(|e| refuse(session, &e))?;
    let _ = held.lock();
    let usage = |why: String| Failure::Usage(format!("{}: {why}", session_id(session)));
    let mut annotations = read(session).map_err(usage)?;
    match change {
        Change::Tag(tags) => tags.iter().try_for_each(|t| annotations.tag(t)),
        Change::Untag(tags) => tags.iter().try_for_each(|t| annotations.untag(t)),
        Change::Note(text) => {
            annotations.note(jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(), text)
        }
    }
    .map_err(usage)?;
    write(session, &annotations).map_err(|e| refuse(session, &e))?;
    Ok(annotations)
}

fn refuse(session: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("{} cannot be written: {error}", name::shown(&annotations_path(session))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_stored_next_to_the_session_and_removed_when_empty() -> Result<(), Failure> {
        let refuse = |e: io::Error| Failure::Refused(e.to_string());
        let dir = tempfile::tempdir().map_err(refuse)?;
        let session = dir.path().join("20261121-161226-1.fathom");
        let tags = |tags: &[&str]| tags.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        apply_change(&session, &Change::Tag(tags(&["b", "a"])))?;
        apply_change(&session, &Change::Note("new cable".into()))?;
        let annotations = read(&session).map_err(Failure::Usage)?;
        assert_eq!((annotations.tags, annotations.notes[0].text.as_str()), (tags(&["a", "b"]), "new cable"));
        let names = std::fs::read_dir(dir.path()).map_err(refuse)?;
        let names: Vec<_> = names.flatten().map(|e| e.file_name()).collect();
        assert_eq!(names, ["20261121-161226-1.words.json"]);

        // A file of another program is not overwritten.
        std::fs::write(annotations_path(&session), "{").map_err(refuse)?;
        assert!(read(&session).is_err_and(|why| why.contains("20261121-161226-1.words.json")));
        assert!(matches!(apply_change(&session, &Change::Tag(tags(&["c"]))), Err(Failure::Usage(_))));
        std::fs::remove_file(annotations_path(&session)).map_err(refuse)?;

        apply_change(&session, &Change::Tag(tags(&["c"])))?;
        assert!(apply_change(&session, &Change::Untag(tags(&["d"]))).is_err());
        apply_change(&session, &Change::Untag(tags(&["c"])))?;
        assert!(!annotations_path(&session).exists());
        Ok(())
    }
}
