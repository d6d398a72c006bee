//! `fathom export`, `fathom import` and `fathom delete`: copies sessions out of the history and into it, and removes them.
//!
//! A session is copied with its annotations, and no copy replaces another session. Import checks each session and creates it complete or
//! not at all. Delete removes only sessions that the user named; nothing else removes a session.

use crate::session::{self, EXTENSION};
use crate::{Files, SessionFile, annotations, find_session, refresh_index, resolve_id, session_id};
use analysis::Judging;
use model::record::{Decoded, Record, Unreadable};
use model::report::Report;
use model::units::show_bytes;
use model::{name, record};
use output::failure::{Failure, cause};
use output::files::Readers;
use output::files::output::{ProtectedPaths, Replace, Rules, is_stream};
use output::session_directories::session_directories;
use output::{files, stdout};
use report::{Format, Style};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Value of `--format` that exports the session file itself.
pub const FORM: &str = "session";

/// The request of `fathom export`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Names of the sessions.
    pub sessions: Vec<String>,
    /// [`FORM`], or the name of a report format; `None` to decide by the extension of the file.
    pub form: Option<String>,
    /// A directory. For a single session, also a file or a stream.
    pub to: PathBuf,
    /// Whether to replace a file even if it is not text.
    pub force: bool,
}

/// Writes each session to a file, and prints the path of the file. Does not replace existing files in a directory.
///
/// # Errors
/// [`Failure::Usage`] if a word names no session, or if a file exists that must not be replaced. [`Failure::Refused`] if a file cannot be
/// written.
pub fn export(request: &Export) -> Result<ExitCode, Failure> {
    let sessions = request.sessions.iter().map(|word| find_session(word)).collect::<Result<Vec<_>, _>>()?;
    let format = format(request)?;
    if is_directory(&request.to) {
        into_directory(&sessions, format, &request.to)?;
    } else if let [only] = sessions.as_slice() {
        into_file(only, format, request)?;
    } else {
        return Err(Failure::Usage(format!(
            "-o {} is not a directory, so it takes only one session; for several sessions type a directory, with / at its end",
            name::shown(&request.to)
        )));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes each session under its id into a directory. Does not replace existing files.
fn into_directory(sessions: &[PathBuf], format: Option<&'static Format>, dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|e| refuse(dir, &e))?;
    for session in sessions {
        let extension = format.map_or(EXTENSION, |f| f.extension);
        let place = dir.join(format!("{}.{extension}", session_id(session)));
        create(&place, &bytes(session, format)?)?;
        if format.is_none() {
            export_annotations(session, &place)?;
        }
    }
    Ok(())
}

/// Writes one session, like `-o` of a measurement: replaces a file atomically, and writes directly to a stream.
fn into_file(session: &Path, format: Option<&'static Format>, request: &Export) -> Result<(), Failure> {
    let mut protected = ProtectedPaths::default();
    protected.add(session, "the session itself");
    protected.add(&annotations::annotations_path(session), "the session's tags and notes");
    let rules = Rules { flag: "-o", protected, replace: Replace::with_force(request.force) };
    let outlet = rules.decide(&request.to)?;
    outlet.write(&bytes(session, format)?, &rules)?;
    if is_stream(&request.to) {
        return Ok(());
    }
    print_path(&request.to)?;
    if format.is_none() { export_annotations(session, &request.to) } else { Ok(()) }
}

fn print_path(place: &Path) -> Result<(), Failure> {
    stdout::print_text(&format!("{}\n", name::shown(place)))
}

/// Prints a JSON schema.
///
/// # Errors
/// If standard output cannot be written.
pub fn schema(text: &str) -> Result<ExitCode, Failure> {
    stdout::print_json(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the requested report format; `None` for the session file itself.
fn format(request: &Export) -> Result<Option<&'static Format>, Failure> {
    if let Some(form) = &request.form {
        let known = report::find_format::<Report>(form);
        return if form == FORM || known.is_some() {
            Ok(known)
        } else {
            Err(Failure::Usage(format!("--format {form}: there is no such format")))
        };
    }
    let named = request.to.extension().filter(|e| *e != EXTENSION && !is_directory(&request.to));
    let named = named
        .filter(|_| !is_stream(&request.to) || report::format_by_extension::<Report>(&request.to).is_some());
    match (named, report::format_by_extension::<Report>(&request.to)) {
        (None, _) => Ok(None),
        (Some(_), Some(format)) => Ok(Some(format)),
        (Some(_), None) => Err(Failure::Usage(format!(
            "-o {}: no format has this extension; type .{EXTENSION}, {}, or a directory",
            name::shown(&request.to),
            report::file_extensions::<Report>()
        ))),
    }
}

fn bytes(session: &Path, format: Option<&'static Format>) -> Result<Vec<u8>, Failure> {
    let Some(format) = format else {
        let fail = |e: Unreadable| Failure::Usage(format!("{}: {e}", name::shown(session)));
        let bytes = session::bytes(session).map_err(|e| fail(e.into()))?;
        // Export a damaged session unchanged, but no file of another kind.
        return match record::decode(&bytes) {
            Err(other @ Unreadable::NoMagic(_)) => Err(fail(other)),
            _ => Ok(bytes),
        };
    };
    let judging = Judging {
        session: Some(name::text(session)),
        annotations: annotations::read_annotations(session),
        version: env!("CARGO_PKG_VERSION").into(),
        ..Judging::default()
    };
    let report = analysis::judge(&session::read(session)?, &judging);
    stdout::render_for_file(format, &report, Style::default())
}

/// Exports the annotations next to the session, where `import` finds them.
fn export_annotations(session: &Path, place: &Path) -> Result<(), Failure> {
    let annotations_read = annotations::read(session)
        .map_err(|why| Failure::Usage(format!("{}: {why}", session_id(session))))?;
    if annotations_read.is_empty() {
        return Ok(());
    }
    let place = annotations::annotations_path(place);
    let bytes = serde_json::to_vec_pretty(&annotations_read).map_err(|e| refuse(&place, &e.into()))?;
    create(&place, &bytes)
}

fn create(place: &Path, bytes: &[u8]) -> Result<(), Failure> {
    files::create(place, bytes, Readers::Umask).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => Failure::Usage(format!(
            "{} exists already, so it is not replaced; remove it, or type another path for -o",
            name::shown(place)
        )),
        _ => refuse(place, &e),
    })?;
    print_path(place)
}

/// Whether the path is a directory, or ends with a slash.
fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn refuse(place: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("{} cannot be written: {error}{}", name::shown(place), cause(error)))
}

/// Copies sessions into the history, and prints the outcome for each. An invalid session does not prevent the import of
/// the others.
///
/// # Errors
/// [`Failure::Usage`] if a file is not a session, or if the history has another session with the same id. All other files are imported
/// first.
/// [`Failure::Refused`] if the history cannot be written.
pub fn import(paths: &[PathBuf]) -> Result<ExitCode, Failure> {
    let mut wrong = Vec::new();
    for path in paths {
        match import_one(path) {
            Ok(outcome) => stdout::print_text(&format!("{}: {outcome}\n", name::shown(path)))?,
            Err(Failure::Usage(why)) => wrong.push(format!("{}: {why}", name::shown(path))),
            Err(other) => return Err(other),
        }
    }
    refresh_index();
    if wrong.is_empty() { Ok(ExitCode::SUCCESS) } else { Err(Failure::Usage(wrong.join("\n"))) }
}

/// Imports one session, and returns the outcome.
fn import_one(path: &Path) -> Result<String, Failure> {
    let bytes = session::bytes(path).map_err(|e| Failure::Usage(e.to_string()))?;
    let Decoded { record, is_torn } = record::decode(&bytes)
        .map_err(|e| match e {
            Unreadable::NoMagic(_) => {
                "this is not a session file: type one that `fathom export` wrote".into()
            }
            other => other.to_string(),
        })
        .map_err(Failure::Usage)?;
    let annotations_read = annotations::read(path).map_err(Failure::Usage)?;
    let id = imported_id(path, &record, &bytes);
    if let Some(existing) = Files::find_file(&id) {
        return compare_with_existing(&id, &existing, &bytes);
    }
    let dir = writable_directory()?;
    let place = dir.join(format!("{id}.{EXTENSION}"));
    let refuse = |e: &io::Error| Failure::Refused(format!("{} cannot be written: {e}", name::shown(&place)));
    // Write the annotations first: an import skips a session that exists, and so could not add them after a crash.
    annotations::write(&place, &annotations_read).map_err(|e| refuse(&e))?;
    match files::create(&place, &bytes, Readers::Owner) {
        Ok(()) if is_torn => Ok(format!("imported as {id}; its last frame is incomplete and is ignored")),
        Ok(()) => Ok(format!("imported as {id}")),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => compare_with_existing(&id, &place, &bytes),
        Err(e) => Err(refuse(&e)),
    }
}

fn compare_with_existing(id: &str, existing: &Path, bytes: &[u8]) -> Result<String, Failure> {
    match session::bytes(existing) {
        Ok(ours) if ours == bytes => Ok(format!("skipped: {id} is already in the history")),
        _ => Err(Failure::Usage(format!(
            "the history already has the id {id}, and its file differs from this one or cannot be read; rename this \
             file, for example to other.{EXTENSION}, to import it under a new id"
        ))),
    }
}

/// Returns the name of the file if it is an id. Otherwise makes an id from the start time and the checksum of the header.
fn imported_id(path: &Path, record: &Record, bytes: &[u8]) -> String {
    let name = session_id(path);
    if is_session_id(&name) {
        return name;
    }
    let digits: String = record.header.started.chars().take(19).filter(char::is_ascii_digit).collect();
    let begun = if digits.len() == 14 { digits } else { "0".repeat(14) };
    let (day, time) = begun.split_at(8);
    // The checksum of the header is the same for every copy of a session, whatever the copy's name is.
    let sum = bytes.strip_prefix(record::MAGIC.as_bytes()).and_then(|rest| rest.get(..8)).unwrap_or_default();
    format!("{day}-{time}-{}", String::from_utf8_lossy(sum))
}

/// Whether a name is an id: a day, a time and a third word, such as `20261121-161226-4242`.
fn is_session_id(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let word = |part: &str| (1..=16).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    matches!(parts.as_slice(), [day, time, third] if digits(day, 8) && digits(time, 6) && word(third))
}

/// Returns the first directory for sessions that can be created and written.
fn writable_directory() -> Result<PathBuf, Failure> {
    let mut problems = Vec::new();
    for dir in session_directories() {
        match session::create_directory(&dir).and_then(|()| tempfile::tempfile_in(&dir)) {
            Ok(_) => return Ok(dir),
            Err(e) => problems.push(format!("{}: {e}", name::shown(&dir))),
        }
    }
    Err(Failure::Refused(format!(
        "the history cannot be written ({}); set XDG_DATA_HOME to a directory that you can write to",
        problems.join("; ")
    )))
}

/// The request of `fathom delete`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteRequest {
    /// Names of the sessions.
    pub sessions: Vec<String>,
    /// Whether to accept names other than complete ids: a tag, `last`, or a part of an id.
    pub accepts_any_name: bool,
}

/// Removes sessions and their annotations. If one of the words is wrong, removes nothing.
///
/// # Errors
/// [`Failure::Usage`] if a word names no session, or if it is not an id and `accepts_any_name` is not set.
/// [`Failure::Refused`] if a session is being measured, or cannot be removed.
pub fn delete(request: &DeleteRequest) -> Result<ExitCode, Failure> {
    let files = Files::scan();
    let mut meant: Vec<&SessionFile> = Vec::new();
    for word in &request.sessions {
        let found = resolve(&files, word, request.accepts_any_name)?;
        if !meant.contains(&found) {
            meant.push(found);
        }
    }
    let removed = meant.iter().try_for_each(|found| remove(found));
    refresh_index();
    removed.map(|()| ExitCode::SUCCESS)
}

fn resolve<'a>(files: &'a Files, word: &str, accepts_any_name: bool) -> Result<&'a SessionFile, Failure> {
    if word.contains('/') {
        return Err(Failure::Usage(format!(
            "{word}: delete needs the id of a session in the history, as `fathom list` shows it; remove other files with rm"
        )));
    }
    let id = resolve_id(files, word)?;
    if id != word && !accepts_any_name {
        return Err(Failure::Usage(format!(
            "{word} means {id}; to remove it type `fathom delete {id}`, or add --yes"
        )));
    }
    let found = files.get(&id)?;
    if session::is_running(&found.path) {
        return Err(Failure::Refused(format!("{id} is being measured right now; nothing was removed")));
    }
    Ok(found)
}

fn remove(found: &SessionFile) -> Result<(), Failure> {
    let annotations_file = annotations::annotations_path(&found.path);
    // The annotations are removed first: without the session they would belong to nothing.
    if found.stamp.annotations_changed_ns.is_some() {
        std::fs::remove_file(&annotations_file).map_err(|e| {
            Failure::Refused(format!("{} cannot be removed: {e}", name::shown(&annotations_file)))
        })?;
    }
    std::fs::remove_file(&found.path)
        .map_err(|e| Failure::Refused(format!("{} cannot be removed: {e}", name::shown(&found.path))))?;
    let annotations_note =
        if found.stamp.annotations_changed_ns.is_some() { " with its tags and notes" } else { "" };
    let size = show_bytes(found.stamp.bytes.unsigned_abs());
    stdout::print_text(&format!("removed {}{annotations_note} ({size})\n", name::shown(&found.path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_recognised() {
        for good in ["20261121-161226-4242", "20261121-161226-00c0ffee"] {
            assert!(is_session_id(good), "{good}");
        }
        for bad in
            ["", "report", "2026-161226-1", "20261121-161226", "20261121-161226-", "20261121-161226-1-2"]
        {
            assert!(!is_session_id(bad), "{bad}");
        }
        assert!(!is_session_id("20261121-161226-../x"));
    }
}
