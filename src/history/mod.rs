//! The history: earlier sessions, found again by a word that a person can type.
//!
//! For: from `last`, a part of an id, or a path to the session file it means. Not for: what is in the file
//! ([`crate::session`]), nor judging it.

use crate::failure::Failure;
use crate::session;
use std::path::{Path, PathBuf};

/// Extension of session files.
const EXTENSION: &str = "fathom";

/// The session file that a word means: a path, `last`, `last~2` (the second before the last), or any part of an id that
/// only one session has.
///
/// # Errors
/// [`Failure::Usage`] where there is none or several, with what could be typed instead.
pub fn find(word: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(word);
    if path.exists() || word.contains('/') {
        return Ok(path.to_owned());
    }
    let all = sessions();
    if let Some(back) = word.strip_prefix("last") {
        let back = match back.strip_prefix('~') {
            Some(n) => n.parse().map_err(|_| usage(word, "behind last~ stands a number"))?,
            None if back.is_empty() => 0_usize,
            None => return Err(usage(word, "type last, or last~1 for the one before")),
        };
        let at = all.len().checked_sub(back + 1);
        let file = at.and_then(|at| all.get(at)).cloned();
        return file.ok_or_else(|| usage(word, &format!("there are {} sessions", all.len())));
    }
    let mut hits = all.into_iter().filter(|p| id(p).contains(word));
    match (hits.next(), hits.count()) {
        (Some(only), 0) => Ok(only),
        (Some(_), more) => {
            Err(usage(word, &format!("{} sessions have that in their id; type more of it", more + 1)))
        }
        (None, _) => Err(usage(word, "neither a file nor a part of a session's id")),
    }
}

/// The id of a session file: its name without the extension.
pub fn id(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
}

/// All session files, oldest first.
fn sessions() -> Vec<PathBuf> {
    let dirs = session::directories();
    let entries = dirs.iter().filter_map(|d| std::fs::read_dir(d).ok()).flatten().flatten();
    let mut all: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == EXTENSION)).collect();
    all.sort_by_key(|p| id(p));
    all
}

fn usage(word: &str, why: &str) -> Failure {
    Failure::Usage(format!("{word}: {why}"))
}
