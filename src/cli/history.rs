//! The commands on the history, `fathom list`, `tag`, `note`, `export`, `import` and `delete`: their flags.

use crate::capture::capture_file::{self, is_capture};
use crate::cli::shared_flags::{OUTPUT, SAFETY, WHAT, format_names, formats_of, one_named, one_of};
use crate::failure::Failure;
use crate::files::output::Replace;
use crate::history::{self, Change, DeleteRequest, Export, Filter, ListRequest, SESSION_FORM};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::history::{Listing, RowsOf};
use model::report::{Report, Verdict};
use report::{Format, SCHEMAS};
use std::path::PathBuf;

/// List earlier sessions, newest first.
///
/// The list comes from an index next to the session files (history.db, SQLite), which fathom can make again from these files. fathom
/// notices session files that were copied there or removed by hand. A verdict is from the version that indexed the session; --rebuild
/// judges every session again.
///
/// Sessions remain until `fathom delete` removes them.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = WHAT)]
pub struct ListArgs {
    /// Only sessions with this text in the path of a target
    #[arg(long, value_name = "PATH")]
    target: Option<String>,
    /// Only sessions with this text in the name, model or serial number of a device
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Only sessions with this text in the title or in the name of a job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Only sessions with this verdict
    #[arg(long, value_parser = one_of(&VERDICTS), ignore_case = true)]
    verdict: Option<Verdict>,
    /// Only sessions with this tag
    #[arg(long, value_name = "WORD")]
    tag: Option<String>,
    /// Only sessions that began at this time or later: 2026-11-21, or 2026-11-21T16:00
    #[arg(long, value_name = "DATE", value_parser = history::since)]
    since: Option<i64>,
    /// Only sessions that began at this time or earlier; a date without a time includes the whole day
    #[arg(long, value_name = "DATE", value_parser = history::until)]
    until: Option<i64>,
    /// Print one table with a row for each session and a column for each result of the newest session's workload; --job chooses another
    /// workload. With =devices: a row for each device, from its newest session. If that session is a sweep, the row has the device's
    /// rate at its own best setting, and at the best setting of each other device
    #[arg(
        long, value_name = "ROWS", help_heading = OUTPUT, value_parser = one_of(&ROWS), num_args = 0..=1, require_equals = true,
        default_missing_value = "sessions"
    )]
    table: Option<RowsOf>,
    /// With --table=devices: random access in IOPS instead of MB/s. With --table=sessions it is always in IOPS
    #[arg(long, requires = "table", help_heading = OUTPUT)]
    iops: bool,
    /// Number of sessions, the newest first; 0 for all [default: 40 as text, otherwise all]
    #[arg(long, value_name = "N", help_heading = OUTPUT)]
    limit: Option<u32>,
    /// First read and judge every session again
    #[arg(long, help_heading = OUTPUT)]
    rebuild: bool,
    /// Output format
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Listing>())]
    format: &'static Format,
}

const VERDICTS: [(&str, &str, Verdict); 3] =
    [("valid", "", Verdict::Valid), ("suspect", "", Verdict::Suspect), ("invalid", "", Verdict::Invalid)];

const ROWS: [(&str, &str, RowsOf); 2] = [
    ("sessions", "A row for each session", RowsOf::Sessions),
    ("devices", "A row for each device, from its newest session", RowsOf::Devices),
];

impl ListArgs {
    /// Returns the request.
    pub fn request(self) -> ListRequest {
        let Self { target, device, job, verdict, tag, since, until, limit, rebuild, table, iops, format } =
            self;
        let filter = Filter { target, device, job, verdict, tag, since, until };
        ListRequest { filter, limit, rebuild, table, iops, format }
    }
}

/// Tag a session.
///
/// A tag that only one session has can be typed wherever a command takes a session. Tags are in a file next to the session
/// (ID.words.json), which `fathom export` and `fathom import` copy too.
#[derive(clap::Args, Debug)]
pub struct TagArgs {
    /// The session: its file, its id or a part of its id, a tag, `last`, or `last~1` for the one before
    pub session: String,
    /// Tags to add
    #[arg(required = true, value_name = "WORD")]
    tags: Vec<String>,
    /// Remove these tags instead
    #[arg(long, help_heading = WHAT)]
    remove: bool,
}

impl TagArgs {
    /// Returns the change of the session's tags.
    pub fn change(&self) -> Change {
        let tags = self.tags.clone();
        if self.remove { Change::Untag(tags) } else { Change::Tag(tags) }
    }
}

/// Add a note that the reports of a session show.
///
/// Notes are in a file next to the session (ID.words.json), which `fathom export` and `fathom import` copy too.
#[derive(clap::Args, Debug)]
pub struct NoteArgs {
    /// The session: its file, its id or a part of its id, a tag, `last`, or `last~1` for the one before
    pub session: String,
    /// Text to add
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
}

impl NoteArgs {
    /// Returns the change of the session's notes.
    pub fn change(&self) -> Change {
        Change::Note(self.text.join(" "))
    }
}

/// Export sessions as files for `fathom import` on another machine, or as reports; or a capture as an iolog of fio.
///
/// In a directory, each session gets a file that is named after its id, and existing files are never replaced. If PATH is a file, it is
/// replaced if it is text, or with --force, but never if it is a session. The tags and notes of a session file are in a
/// file next to it; a report has them itself. fathom prints the names of the files.
#[derive(clap::Args, Debug)]
pub struct ExportArgs {
    /// Sessions: files, ids or parts of them, tags, `last`, `last~1`; or a capture
    #[arg(required_unless_present = "schema", conflicts_with = "schema", value_name = "SESSION")]
    sessions: Vec<String>,
    /// A directory; for one session also a file, a FIFO, or - for standard output
    #[arg(short, long, value_name = "PATH", default_value = ".", help_heading = OUTPUT)]
    output: PathBuf,
    /// Format [default: by the extension of the file, otherwise session]
    #[arg(long, value_parser = forms(), help_heading = OUTPUT)]
    format: Option<String>,
    /// Also replace a file that is not text. A session is never replaced
    #[arg(long, help_heading = OUTPUT)]
    force: bool,
    /// Print the JSON schema of a report and stop. With =list, =table or =watch: the schema of `fathom list`, of `fathom list --table`, or
    /// of a line of `fathom watch`
    #[arg(
        long, value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "report",
        value_parser = schemas(), conflicts_with_all = ["output", "format", "force"], help_heading = OUTPUT
    )]
    schema: Option<&'static str>,
}

fn forms() -> PossibleValuesParser {
    let session = PossibleValue::new(SESSION_FORM).help("the session file, for `fathom import`");
    let iolog = PossibleValue::new(capture_file::IOLOG)
        .help("for a capture: fio's iolog, version 3, for --read_iolog");
    PossibleValuesParser::new([session].into_iter().chain(format_names::<Report>()).chain([iolog]))
}

/// Maps the name of a schema to its text.
fn schemas() -> impl TypedValueParser<Value = &'static str> {
    one_named(&SCHEMAS, |(name, _)| (name, "")).map(|(_, text)| *text)
}

/// What to export.
pub enum ExportAction {
    /// The text of a JSON schema.
    Schema(&'static str),
    /// Sessions, either as unchanged files or as reports.
    Sessions(Export),
    /// A capture as an iolog of fio: the capture, the log, and which file it may replace.
    Capture(PathBuf, PathBuf, Replace),
}

impl ExportArgs {
    /// Returns the action.
    ///
    /// # Errors
    /// A usage failure if a capture is named along with something else or has another format than the iolog, or if the format is iolog
    /// and the file is not a capture.
    pub fn into_action(self) -> Result<ExportAction, Failure> {
        const IOLOG: &str = capture_file::IOLOG;
        if let Some(text) = self.schema {
            return Ok(ExportAction::Schema(text));
        }
        let has_capture = self.sessions.iter().any(|word| is_capture(word.as_ref()));
        let is_iolog = self.format.as_deref().map(|form| form == IOLOG);
        match (has_capture, is_iolog) {
            (false, Some(true)) => Err(Failure::Usage(format!(
                "--format {IOLOG} is for captures; name a file that `fathom capture` wrote instead of {}",
                self.sessions.join(", ")
            ))),
            (false, _) => Ok(ExportAction::Sessions(Export {
                sessions: self.sessions,
                form: self.format,
                to: self.output,
                force: self.force,
            })),
            (true, Some(false)) => Err(Failure::Usage(format!(
                "a capture can be exported only as {IOLOG}; type --format {IOLOG}, or `fathom show` for its profile"
            ))),
            (true, _) if self.sessions.len() > 1 => {
                Err(Failure::Usage("a capture is exported alone; name nothing else".into()))
            }
            (true, _) => {
                let capture = self.sessions.into_iter().next().unwrap_or_default();
                Ok(ExportAction::Capture(capture.into(), self.output, Replace::with_force(self.force)))
            }
        }
    }
}

/// Import sessions from other machines into the history.
///
/// Each file is read and checked before it is copied, with the tags and notes next to it. A session that the history already has is
/// skipped, and no file is overwritten.
#[derive(clap::Args, Debug)]
pub struct ImportArgs {
    /// Session files that `fathom export` wrote
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Delete sessions from the history permanently, with their tags and notes.
///
/// There is no prompt. A complete id is deleted at once; a part of an id, a tag or `last` requires --yes.
#[derive(clap::Args, Debug)]
pub struct DeleteArgs {
    /// Ids of sessions
    #[arg(required = true, value_name = "ID")]
    sessions: Vec<String>,
    /// Also accept a part of an id, a tag or `last`
    #[arg(long, help_heading = SAFETY)]
    yes: bool,
}

impl DeleteArgs {
    /// Returns the request.
    pub fn request(self) -> DeleteRequest {
        DeleteRequest { sessions: self.sessions, accepts_any_name: self.yes }
    }
}
