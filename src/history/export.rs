//! `fathom export`: sessions handed on, as they are or as reports.
//!
//! For: files that `fathom import` and other programs read. Not for: laying a report out (crate `report`).

use super::{annotations, find, id};
use crate::failure::{Failure, cause};
use crate::files::output::{Replace, Rules, Spared};
use crate::files::{Readers, output};
use crate::session::{self, EXTENSION};
use crate::show::{self, Showing};
use crate::{files, stdout};
use model::name;
use model::report::Report;
use report::{Format, Style};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The form that is the session file itself.
pub const FORM: &str = "session";

/// What is to be handed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Words that mean sessions.
    pub sessions: Vec<String>,
    /// [`FORM`], or the name of a format of reports; `None` for what the extension of the file says.
    pub form: Option<String>,
    /// A directory, or a file or stream for one session.
    pub to: PathBuf,
    /// Whether a file that is no text may be replaced.
    pub force: bool,
}

/// Writes each session, and prints where. In a directory nothing is written over.
///
/// # Errors
/// [`Failure::Usage`] for words that mean no session and places that are taken, [`Failure::Refused`] where a file cannot be
/// written.
pub fn export(request: &Export) -> Result<ExitCode, Failure> {
    let sessions = request.sessions.iter().map(|word| find(word)).collect::<Result<Vec<_>, _>>()?;
    let format = format(request)?;
    if is_directory(&request.to) {
        into_directory(&sessions, format, &request.to)?;
    } else if let [only] = sessions.as_slice() {
        into_file(only, format, request)?;
    } else {
        return Err(several(&request.to));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes each under its id. Nothing is written over.
fn into_directory(sessions: &[PathBuf], format: Option<&'static Format>, dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|e| refuse(dir, &e))?;
    for session in sessions {
        let extension = format.map_or(EXTENSION, |f| f.extension);
        let place = dir.join(format!("{}.{extension}", id(session)));
        create(&place, &bytes(session, format)?)?;
        if format.is_none() {
            hand_on_words(session, &place)?;
        }
    }
    Ok(())
}

/// Writes one as `-o` of a measurement does: a file is replaced as a whole, and a stream is written to.
fn into_file(session: &Path, format: Option<&'static Format>, request: &Export) -> Result<(), Failure> {
    let mut spared = Spared::default();
    spared.add(session, "the session itself");
    spared.add(&annotations::annotations_path(session), "what is said about the session");
    let rules = Rules { flag: "-o", spared, replace: Replace::by(request.force) };
    let outlet = rules.decide(&request.to)?;
    outlet.write(&bytes(session, format)?, &rules)?;
    if output::is_stream(&request.to) {
        return Ok(());
    }
    tell(&request.to)?;
    if format.is_none() { hand_on_words(session, &request.to) } else { Ok(()) }
}

fn tell(place: &Path) -> Result<(), Failure> {
    stdout::text(&format!("{}\n", name::shown(place)))
}

/// Prints a JSON schema.
///
/// # Errors
/// If standard output cannot be written.
pub fn schema(text: &str) -> Result<ExitCode, Failure> {
    stdout::json(text)?;
    Ok(ExitCode::SUCCESS)
}

/// The format of a report that is wanted; `None` for the session itself.
fn format(request: &Export) -> Result<Option<&'static Format>, Failure> {
    if let Some(form) = &request.form {
        let known = report::find::<Report>(form);
        return if form == FORM || known.is_some() {
            Ok(known)
        } else {
            Err(Failure::Usage(format!("--format {form}: there is no such form")))
        };
    }
    let named = request.to.extension().filter(|e| *e != EXTENSION && !is_directory(&request.to));
    let named = named
        .filter(|_| !output::is_stream(&request.to) || report::by_extension::<Report>(&request.to).is_some());
    match (named, report::by_extension::<Report>(&request.to)) {
        (None, _) => Ok(None),
        (Some(_), Some(format)) => Ok(Some(format)),
        (Some(_), None) => Err(Failure::Usage(format!(
            "-o {}: no form has this extension; type .{EXTENSION}, {}, or a directory",
            name::shown(&request.to),
            report::extensions::<Report>()
        ))),
    }
}

fn bytes(session: &Path, format: Option<&'static Format>) -> Result<Vec<u8>, Failure> {
    let Some(format) = format else {
        return session::bytes(session).map_err(|e| Failure::Usage(format!("{}: {e}", name::shown(session))));
    };
    let report = show::judge(
        &session::read(session)?,
        Some(session),
        annotations::read_annotations(session),
        &Showing::plain(format),
    );
    stdout::rendered(format, &report, Style::default())
}

/// What was said goes with the session, under the name that `import` looks for.
fn hand_on_words(session: &Path, place: &Path) -> Result<(), Failure> {
    let said = annotations::read(session).map_err(|why| Failure::Usage(format!("{}: {why}", id(session))))?;
    if said.is_empty() {
        return Ok(());
    }
    let place = annotations::annotations_path(place);
    let bytes = serde_json::to_vec_pretty(&said).map_err(|e| refuse(&place, &e.into()))?;
    create(&place, &bytes)
}

fn create(place: &Path, bytes: &[u8]) -> Result<(), Failure> {
    files::create(place, bytes, Readers::Umask).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => Failure::Usage(format!(
            "{} is there already and stays as it is; remove it, or type another -o",
            name::shown(place)
        )),
        _ => refuse(place, &e),
    })?;
    tell(place)
}

/// A directory that is there, or a name that ends as one.
fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn several(to: &Path) -> Failure {
    Failure::Usage(format!(
        "-o {} takes one session; for several type a directory, which ends in /",
        name::shown(to)
    ))
}

fn refuse(place: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("{} cannot be written: {error}{}", name::shown(place), cause(error)))
}
