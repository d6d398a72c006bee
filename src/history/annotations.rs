//! The user's words beside a session file.
//!
//! For: a small file that is whole at every moment. Not for: what may be said (`model::annotations`), nor saying it ([`super::say`]).

use super::files::ANNOTATIONS_SUFFIX;
use super::id;
use crate::{input, stderr, whole};
use model::annotations::Annotations;
use std::io;
use std::path::{Path, PathBuf};

/// Far above what can be said; a larger file is something else.
const MOST_BYTES: u64 = 16 << 20;

/// What the user says about a session. Where that cannot be read, it is said, and the session stands without.
pub fn read_annotations(session: &Path) -> Annotations {
    read(session).unwrap_or_else(|why| {
        stderr::say(&format!("fathom: {}: {why}", id(session)));
        Annotations::default()
    })
}

/// What is said about a session; nothing where there is no such file.
///
/// # Errors
/// What is wrong with the file.
pub(super) fn read(session: &Path) -> Result<Annotations, String> {
    let path = annotations_path(session);
    let wrong = |why: &dyn std::fmt::Display| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("{name} beside it cannot be read: {why}; repair it or move it away")
    };
    match input::text(&path, MOST_BYTES) {
        Ok(text) => Annotations::parse(&text).map_err(|e| wrong(&e)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Annotations::default()),
        Err(e) => Err(wrong(&e)),
    }
}

/// Keeps what is said about a session; of nothing there is no file.
pub(super) fn write(session: &Path, words: &Annotations) -> io::Result<()> {
    let path = annotations_path(session);
    if !words.is_empty() {
        return whole::replace(&path, (serde_json::to_string_pretty(words)? + "\n").as_bytes());
    }
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// The file that holds what is said about a session.
pub(super) fn annotations_path(session: &Path) -> PathBuf {
    session.with_file_name(format!("{}{ANNOTATIONS_SUFFIX}", id(session)))
}
