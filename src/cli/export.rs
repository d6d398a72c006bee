//! `fathom export`: its flags.

use super::common::format_names;
use super::headings::OUTPUT;
use crate::history::{Export, SESSION_FORM};
use clap::builder::{PossibleValue, PossibleValuesParser};
use model::report::Report;
use std::path::PathBuf;

/// Export sessions: as they are, for `fathom import` on another machine, or as reports.
///
/// Each is written under its id, with its tags and notes beside it, and the names are printed. In a directory nothing is written
/// over; the file for one session is replaced as a whole, unless it is a session or no text.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = OUTPUT)]
pub struct Args {
    /// Sessions: files, ids or parts of them, tags, `last`, `last~1`
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
    /// Print the JSON schema of a report instead, for programs that read one
    #[arg(long)]
    schema: bool,
}

fn forms() -> PossibleValuesParser {
    let session = PossibleValue::new(SESSION_FORM).help("the session file, which import takes");
    PossibleValuesParser::new([session].into_iter().chain(format_names::<Report>()))
}

impl Args {
    /// What was said; `None` where the schema is asked for.
    pub fn request(self) -> Option<Export> {
        let request =
            Export { sessions: self.sessions, form: self.format, to: self.output, force: self.force };
        (!self.schema).then_some(request)
    }
}
