//! `fathom delete`: the one way in which a session goes.
//!
//! For: removing exactly what was named, and saying what it was. Not for: clearing up by itself; nothing does that.

use super::files::{Files, SessionFile};
use super::find::find_in;
use super::{annotations, remember};
use crate::failure::Failure;
use crate::{session, stdout};
use model::name;
use model::units::show_bytes;
use std::process::ExitCode;

/// What is to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Words that mean sessions.
    pub sessions: Vec<String>,
    /// Whether a word that is not the whole id will do.
    pub sure: bool,
}

/// Removes sessions with what was said about them. Where one of the words is wrong, nothing is removed.
///
/// # Errors
/// [`Failure::Usage`] for a word that means none or is not the id of one, [`Failure::Refused`] for a session that is being
/// measured or cannot be removed.
pub fn delete(request: &Removal) -> Result<ExitCode, Failure> {
    let files = Files::scan();
    let mut meant: Vec<&SessionFile> = Vec::new();
    for word in &request.sessions {
        let found = resolve(&files, word, request.sure)?;
        if !meant.contains(&found) {
            meant.push(found);
        }
    }
    let removed = meant.iter().try_for_each(|found| remove(found));
    remember();
    removed.map(|()| ExitCode::SUCCESS)
}

fn resolve<'a>(files: &'a Files, word: &str, sure: bool) -> Result<&'a SessionFile, Failure> {
    if word.contains('/') {
        return Err(Failure::Usage(format!(
            "{word}: delete takes ids of sessions in the history, as `fathom list` shows them; a file elsewhere is removed with rm"
        )));
    }
    let id = find_in(files, word)?;
    if id != word && !sure {
        return Err(Failure::Usage(format!(
            "{word} means {id}; to remove it type `fathom delete {id}`, or add --yes"
        )));
    }
    let found = &files.by_id[&id];
    if session::is_running(&found.path) {
        return Err(Failure::Refused(format!("{id} is being measured right now; nothing was removed")));
    }
    Ok(found)
}

fn remove(found: &SessionFile) -> Result<(), Failure> {
    let words = annotations::annotations_path(&found.path);
    // The words first: alone they would be nobody's.
    if found.stamp.words_changed_ns.is_some() {
        std::fs::remove_file(&words)
            .map_err(|e| Failure::Refused(format!("{} cannot be removed: {e}", name::shown(&words))))?;
    }
    std::fs::remove_file(&found.path)
        .map_err(|e| Failure::Refused(format!("{} cannot be removed: {e}", name::shown(&found.path))))?;
    let said = if found.stamp.words_changed_ns.is_some() { " and what was said about it" } else { "" };
    let size = show_bytes(found.stamp.bytes.unsigned_abs());
    stdout::text(&format!("removed {}{said} ({size})\n", name::shown(&found.path)))
}
