//! `fathom export`: its flags.

use crate::capture::capture_file;
use crate::capture::capture_file::is_capture;
use crate::cli::shared_flags::{OUTPUT, format_names};
use crate::failure::Failure;
use crate::files::output::Replace;
use crate::history::{Export, SESSION_FORM};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::report::Report;
use report::SCHEMAS;
use std::path::PathBuf;

/// Export sessions: as they are, for `fathom import` on another machine, or as reports; or a capture as fio's iolog.
///
/// Each is written under its id, with its tags and notes beside it, and the names are printed. In a directory nothing is written
/// over; the file for one session is replaced as a whole, unless it is a session or no text.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = OUTPUT)]
pub struct Args {
    /// Sessions: files, ids or parts of them, tags, `last`, `last~1`; or a capture
    #[arg(required_unless_present = "schema", conflicts_with = "schema", value_name = "SESSION")]
    sessions: Vec<String>,
    /// Where to: a directory; for one session also a file, a FIFO, or - for standard output
    #[arg(short, long, value_name = "PATH", default_value = ".")]
    output: PathBuf,
    /// Form [default: by the extension of the file, else session]
    #[arg(long, value_parser = forms())]
    format: Option<String>,
    /// Replace a file that is no text, too
    #[arg(long)]
    force: bool,
    /// Print the JSON schema of a report instead; =list, =table and =watch: of `fathom list`, of `fathom list --table`, of a line of
    /// `fathom watch`
    #[arg(
        long, value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "report",
        value_parser = schemas(), conflicts_with_all = ["output", "format", "force"]
    )]
    schema: Option<&'static str>,
}

fn forms() -> PossibleValuesParser {
    let session = PossibleValue::new(SESSION_FORM).help("the session file, which import takes");
    let iolog = PossibleValue::new(capture_file::IOLOG)
        .help("of a capture: fio's log of I/O, version 3, for --read_iolog");
    PossibleValuesParser::new([session].into_iter().chain(format_names::<Report>()).chain([iolog]))
}

/// Maps the name of a schema to its text.
fn schemas() -> impl TypedValueParser<Value = &'static str> {
    PossibleValuesParser::new(SCHEMAS.map(|(name, _)| name))
        .map(|name| SCHEMAS.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| *text))
}

/// What to export.
pub enum Action {
    /// The text of a JSON schema.
    Schema(&'static str),
    /// Sessions unchanged, or as reports.
    Sessions(Export),
    /// A capture as fio's log.
    Capture(capture_file::Export),
}

impl Args {
    /// Returns the request.
    ///
    /// # Errors
    /// A usage failure for a capture in an unsupported format, or along with other sessions.
    pub fn into_action(self) -> Result<Action, Failure> {
        if let Some(text) = self.schema {
            return Ok(Action::Schema(text));
        }
        let captures = self.sessions.iter().any(|word| is_capture(word.as_ref()));
        let as_iolog = self.format.as_deref().map(|form| form == capture_file::IOLOG);
        match (captures, as_iolog) {
            (false, Some(true)) => Err(Failure::Usage(format!(
                "--format {} is of captures, and {} is none; name what `fathom capture` wrote",
                capture_file::IOLOG,
                self.sessions.join(", ")
            ))),
            (false, _) => Ok(Action::Sessions(Export {
                sessions: self.sessions,
                form: self.format,
                to: self.output,
                force: self.force,
            })),
            (true, Some(false)) => Err(Failure::Usage(format!(
                "a capture is exported as {} alone; type --format {}, or `fathom show` for its profile",
                capture_file::IOLOG,
                capture_file::IOLOG
            ))),
            (true, _) if self.sessions.len() > 1 => {
                Err(Failure::Usage("a capture is exported by itself; name it alone".into()))
            }
            (true, _) => Ok(Action::Capture(capture_file::Export {
                file: self.sessions.into_iter().next().unwrap_or_default().into(),
                to: self.output,
                replace: Replace::by(self.force),
            })),
        }
    }
}
