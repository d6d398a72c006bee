//! `fathom tag`, `fathom note`: saying something about a session.
//!
//! For: changing what is said, under a lock. Not for: the file that keeps it ([`super::annotations`]).

use super::{annotations, find, id, remember};
use crate::failure::Failure;
use crate::{files, stdout};
use model::annotations::Annotations;
use model::name;
use model::record::frame::MAGIC;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

/// What is to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Give it tags.
    Tag(Vec<String>),
    /// Take tags away.
    Untag(Vec<String>),
    /// Add a note.
    Note(String),
}

/// Says something about a session, and prints what is said of it now.
///
/// # Errors
/// [`Failure::Usage`] for what cannot be said, [`Failure::Refused`] where it cannot be written.
pub fn say(word: &str, change: &Change) -> Result<ExitCode, Failure> {
    let session = find(word)?;
    if !is_session(&session) {
        return Err(Failure::Usage(format!("{}: there is no such session file", name::shown(&session))));
    }
    let words = change_of(&session, change)?;
    remember();
    let tags = if words.tags.is_empty() { String::new() } else { format!(", tags {}", words.tags.join(" ")) };
    let notes = match words.notes.len() {
        0 => String::new(),
        1 => ", one note".into(),
        n => format!(", {n} notes"),
    };
    stdout::text(&format!("{}{tags}{notes}\n", id(&session)))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a session begins there; what is no regular file is not opened, since it may wait for ever.
fn is_session(path: &Path) -> bool {
    let mut first = vec![0; MAGIC.len()];
    let begins = |mut file: File| file.read_exact(&mut first).is_ok() && first == MAGIC.as_bytes();
    path.is_file() && File::open(path).is_ok_and(begins)
}

fn change_of(session: &Path, change: &Change) -> Result<Annotations, Failure> {
    // Held until the end, so that of two fathoms neither loses the other's words; not every file system has locks.
    let held = File::open(files::directory(session)).map_err(|e| refuse(session, &e))?;
    let _ = held.lock();
    let usage = |why: String| Failure::Usage(format!("{}: {why}", id(session)));
    let mut words = annotations::read(session).map_err(usage)?;
    match change {
        Change::Tag(tags) => tags.iter().try_for_each(|t| words.tag(t)),
        Change::Untag(tags) => tags.iter().try_for_each(|t| words.untag(t)),
        Change::Note(text) => {
            words.note(jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(), text)
        }
    }
    .map_err(usage)?;
    annotations::write(session, &words).map_err(|e| refuse(session, &e))?;
    Ok(words)
}

fn refuse(session: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!(
        "{} cannot be written: {error}",
        name::shown(&annotations::annotations_path(session))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_lies_beside_the_session_and_nothing_said_is_no_file() -> Result<(), Failure> {
        let refuse = |e: io::Error| Failure::Refused(e.to_string());
        let dir = tempfile::tempdir().map_err(refuse)?;
        let session = dir.path().join("20261121-161226-1.fathom");
        let tags = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        change_of(&session, &Change::Tag(tags(&["b", "a"])))?;
        change_of(&session, &Change::Note("new cable".into()))?;
        let words = annotations::read(&session).map_err(Failure::Usage)?;
        assert_eq!((words.tags, words.notes[0].text.as_str()), (tags(&["a", "b"]), "new cable"));
        let names = std::fs::read_dir(dir.path()).map_err(refuse)?;
        let names: Vec<_> = names.flatten().map(|e| e.file_name()).collect();
        assert_eq!(names, ["20261121-161226-1.words.json"]);

        // What somebody else wrote there is neither read as nothing nor written over.
        std::fs::write(annotations::annotations_path(&session), "{").map_err(refuse)?;
        assert!(annotations::read(&session).is_err_and(|why| why.contains("20261121-161226-1.words.json")));
        assert!(matches!(change_of(&session, &Change::Tag(tags(&["c"]))), Err(Failure::Usage(_))));
        std::fs::remove_file(annotations::annotations_path(&session)).map_err(refuse)?;

        change_of(&session, &Change::Tag(tags(&["c"])))?;
        assert!(change_of(&session, &Change::Untag(tags(&["d"]))).is_err());
        change_of(&session, &Change::Untag(tags(&["c"])))?;
        assert!(!annotations::annotations_path(&session).exists());
        Ok(())
    }
}
