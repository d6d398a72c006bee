//! `fathom export`: sessions handed on, as they are or as reports.
//!
//! For: files that `fathom import` and other programs read. Not for: laying a report out (crate `report`).

use super::{find, id, words};
use crate::failure::Failure;
use crate::session::{self, EXTENSION};
use crate::show::{self, Showing};
use crate::stdout;
use model::visible::visible_name;
use report::{Format, Style};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The form that is the session file itself.
pub const FORM: &str = "session";
/// Standard output as a place.
const STANDARD_OUTPUT: &str = "-";

/// What is to be handed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Words that mean sessions.
    pub sessions: Vec<String>,
    /// [`FORM`], or the name of a format of reports; `None` for what the extension of the file says.
    pub form: Option<String>,
    /// A file, a directory, or `-` for standard output.
    pub to: PathBuf,
}

/// Writes each session, and prints where. Nothing is written over.
///
/// # Errors
/// [`Failure::Usage`] for words that mean no session and places that are taken, [`Failure::Refused`] where a file cannot be
/// written.
pub fn export(wish: &Export) -> Result<ExitCode, Failure> {
    let sessions = wish.sessions.iter().map(|word| find(word)).collect::<Result<Vec<_>, _>>()?;
    let format = format(wish)?;
    if wish.to == Path::new(STANDARD_OUTPUT) {
        let [only] = sessions.as_slice() else { return Err(several(&wish.to)) };
        stdout::bytes(&bytes(only, format)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let into = is_directory(&wish.to);
    if into {
        std::fs::create_dir_all(&wish.to).map_err(|e| refuse(&wish.to, &e))?;
    } else if sessions.len() > 1 {
        return Err(several(&wish.to));
    }
    for session in &sessions {
        let extension = format.map_or(EXTENSION, |f| f.extension);
        let name = format!("{}.{extension}", id(session));
        let place = if into { wish.to.join(name) } else { wish.to.clone() };
        create(&place, &bytes(session, format)?)?;
        stdout::text(&format!("{}\n", visible_name(place.as_os_str())))?;
        if format.is_none() {
            hand_on_words(session, &place)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The JSON schema of the report.
///
/// # Errors
/// Where it cannot be printed.
pub fn schema() -> Result<ExitCode, Failure> {
    stdout::json(report::schema())?;
    Ok(ExitCode::SUCCESS)
}

/// The format of a report that is wanted; `None` for the session itself.
fn format(wish: &Export) -> Result<Option<&'static Format>, Failure> {
    if let Some(form) = &wish.form {
        let known = report::find(form);
        return if form == FORM || known.is_some() {
            Ok(known)
        } else {
            Err(Failure::Usage(format!("--format {form}: there is no such form")))
        };
    }
    let named = wish.to.extension().filter(|e| *e != EXTENSION && !is_directory(&wish.to));
    match (named, report::by_extension(&wish.to)) {
        (None, _) => Ok(None),
        (Some(_), Some(format)) => Ok(Some(format)),
        (Some(_), None) => {
            let known: Vec<&str> = report::FORMATS.iter().map(|f| f.extension).collect();
            Err(Failure::Usage(format!(
                "-o {}: no form has this extension; type .{EXTENSION}, .{}, or a directory",
                wish.to.display(),
                known.join(", .")
            )))
        }
    }
}

fn bytes(session: &Path, format: Option<&Format>) -> Result<Vec<u8>, Failure> {
    let Some(format) = format else {
        return session::bytes(session).map_err(|e| Failure::Usage(format!("{}: {e}", session.display())));
    };
    let report = show::judge(&session::read(session)?, Some(session), &Showing::plain(format.name));
    Ok(stdout::harmless(&(format.render)(&report, Style::default()), format.is_json()))
}

/// What was said goes with the session, under the name that `import` looks for.
fn hand_on_words(session: &Path, place: &Path) -> Result<(), Failure> {
    let said = words::read(session).map_err(|why| Failure::Usage(format!("{}: {why}", id(session))))?;
    if said.is_empty() {
        return Ok(());
    }
    let place = words::beside(place);
    let bytes = std::fs::read(words::beside(session)).map_err(|e| refuse(&place, &e))?;
    create(&place, &bytes)?;
    stdout::text(&format!("{}\n", visible_name(place.as_os_str())))?;
    Ok(())
}

fn create(place: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = File::create_new(place).and_then(|mut file| file.write_all(bytes));
    written.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => Failure::Usage(format!(
            "{} is there already and stays as it is; remove it, or type another -o",
            place.display()
        )),
        _ => refuse(place, &e),
    })
}

/// A directory that is there, or a name that ends as one.
fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn several(to: &Path) -> Failure {
    Failure::Usage(format!(
        "-o {} takes one session; for several type a directory, which ends in /",
        to.display()
    ))
}

fn refuse(place: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("{} cannot be written: {error}", place.display()))
}
