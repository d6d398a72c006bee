//! `fathom import`: sessions of other machines into the history.
//!
//! For: copies that are whole or not there, each checked before. Not for: reports, which hold too little to be judged again.

use super::files::Files;
use super::{annotations, id, remember};
use crate::failure::Failure;
use crate::session::{self, EXTENSION};
use crate::stdout;
use crate::whole::{self, Readers};
use model::name;
use model::record::{Record, frame};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Copies sessions into the history, and says what became of each. What is wrong with one does not keep the others out.
///
/// # Errors
/// [`Failure::Usage`] after all were tried where one is no session, or another session has its id; [`Failure::Refused`] where
/// the history cannot be written.
pub fn import(paths: &[PathBuf]) -> Result<ExitCode, Failure> {
    let mut wrong = Vec::new();
    for path in paths {
        match import_one(path) {
            Ok(said) => stdout::text(&format!("{}: {said}\n", name::shown(path)))?,
            Err(Failure::Usage(why)) => wrong.push(format!("{}: {why}", name::shown(path))),
            Err(other) => return Err(other),
        }
    }
    remember();
    if wrong.is_empty() { Ok(ExitCode::SUCCESS) } else { Err(Failure::Usage(wrong.join("\n"))) }
}

/// One session; gives what became of it.
fn import_one(path: &Path) -> Result<String, Failure> {
    let bytes = session::bytes(path).map_err(|e| Failure::Usage(e.to_string()))?;
    let (record, torn) = frame::decode(&bytes)
        .map_err(|e| Failure::Usage(format!("{e}; import takes what `fathom export` writes")))?;
    let said = annotations::read(path).map_err(Failure::Usage)?;
    let id = id_of(path, &record, &bytes);
    if let Some(there) = Files::find_file(&id) {
        return same_id(&id, &there, &bytes);
    }
    let dir = writable_directory()?;
    let place = dir.join(format!("{id}.{EXTENSION}"));
    let refuse = |e: &io::Error| Failure::Refused(format!("{} cannot be written: {e}", name::shown(&place)));
    // The words first: once the session is there, it is not imported again.
    annotations::write(&place, &said).map_err(|e| refuse(&e))?;
    match whole::create(&place, &bytes, Readers::Owner) {
        Ok(()) if torn => Ok(format!("imported as {id}; its last frame is torn and left out")),
        Ok(()) => Ok(format!("imported as {id}")),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => same_id(&id, &place, &bytes),
        Err(e) => Err(refuse(&e)),
    }
}

fn same_id(id: &str, there: &Path, bytes: &[u8]) -> Result<String, Failure> {
    match session::bytes(there) {
        Ok(ours) if ours == bytes => Ok(format!("skipped: {id} is there already")),
        _ => Err(Failure::Usage(format!(
            "another session has the id {id}, and nothing was written over; under a name that is no id, such as other.{EXTENSION}, \
             it gets one of its own"
        ))),
    }
}

/// The name of the file where that is like an id, else one from when the session began and what it is.
fn id_of(path: &Path, record: &Record, bytes: &[u8]) -> String {
    let name = id(path);
    if looks_like_an_id(&name) {
        return name;
    }
    let digits: String = record.header.started.chars().take(19).filter(char::is_ascii_digit).collect();
    let begun = if digits.len() == 14 { digits } else { "0".repeat(14) };
    let (day, time) = begun.split_at(8);
    // The header's checksum: the same session has the same one, however its file is called.
    let sum = bytes.strip_prefix(frame::MAGIC.as_bytes()).and_then(|rest| rest.get(..8)).unwrap_or_default();
    format!("{day}-{time}-{}", String::from_utf8_lossy(sum))
}

/// Day, time and a third word, as every id of ours: `20261121-161226-4242`.
fn looks_like_an_id(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let word = |part: &str| (1..=16).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    matches!(parts.as_slice(), [day, time, third] if digits(day, 8) && digits(time, 6) && word(third))
}

/// The first directory that can be made and written.
fn writable_directory() -> Result<PathBuf, Failure> {
    let mut problems = Vec::new();
    for dir in session::directories() {
        match session::create_directory(&dir).and_then(|()| tempfile::tempfile_in(&dir)) {
            Ok(_) => return Ok(dir),
            Err(e) => problems.push(format!("{}: {e}", name::shown(&dir))),
        }
    }
    Err(Failure::Refused(format!(
        "the history cannot be written ({}); set XDG_DATA_HOME to a directory of yours",
        problems.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_told_from_another_name() {
        for good in ["20261121-161226-4242", "20261121-161226-00c0ffee"] {
            assert!(looks_like_an_id(good), "{good}");
        }
        for bad in
            ["", "report", "2026-161226-1", "20261121-161226", "20261121-161226-", "20261121-161226-1-2"]
        {
            assert!(!looks_like_an_id(bad), "{bad}");
        }
        assert!(!looks_like_an_id("20261121-161226-../x"));
    }
}
