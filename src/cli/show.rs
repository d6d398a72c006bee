//! `fathom show`: its flags.

use crate::capture::capture_file::is_capture;
use crate::cli::shared_flags::{InconclusiveArgs, OUTPUT, ShowingArgs, WHAT};
use crate::failure::Failure;
use crate::history;
use crate::request::CaptureRequest;
use crate::show::Showing;
use model::captured::RequestFilter;
use model::name;
use model::units::parse_duration_ns;
use std::path::PathBuf;

/// Judge a session again with the checks of this version and print its report; or show several sessions in a table, or a capture.
///
/// For several sessions (A B C ...) it prints one table: a row for each session in the order typed, a column for each result that any
/// session has, and why a session is not VALID. JSON also has the complete reports. A page (-o page.html) plots each result, with all
/// sessions on one scale. `fathom compare` reports which session is faster.
///
/// For a capture from `fathom capture` it prints the profile of the load, as text or JSON, or with --events the requests, as text or CSV.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A session: its file, its id or a part of its id, a tag, `last`, or `last~1` for the one before; or several; or a capture
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    /// Captures: print the requests, one per line
    #[arg(long, help_heading = WHAT)]
    events: bool,
    /// Captures: leave out requests issued earlier than this time from the beginning of the capture
    #[arg(long, help_heading = WHAT, value_name = "DURATION", value_parser = parse_duration_ns)]
    from: Option<u64>,
    /// Captures: leave out requests issued at this time from the beginning of the capture, or later
    #[arg(long, help_heading = WHAT, value_name = "DURATION", value_parser = parse_duration_ns)]
    to: Option<u64>,
    /// Captures: only requests of tasks with this name, or of this thread or process
    #[arg(long, help_heading = WHAT, value_name = "NAME|PID")]
    task: Option<String>,
    /// Also print every run second by second, next to the device's own counts
    #[arg(long, help_heading = OUTPUT)]
    explain: bool,
    #[command(flatten)]
    inconclusive: InconclusiveArgs,
    #[command(flatten)]
    showing: ShowingArgs,
}

/// What to show.
pub enum Action {
    /// One session, or several in a table.
    Sessions(Vec<PathBuf>, Box<Showing>),
    /// A capture's profile or requests.
    Capture(CaptureRequest),
}

impl Args {
    /// Returns the action.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn into_action(self) -> Result<Action, Failure> {
        let files =
            self.sessions.iter().map(|word| history::find_session(word)).collect::<Result<Vec<_>, _>>()?;
        if let [file] = files.as_slice()
            && is_capture(file)
        {
            return self.capture_request(file.clone()).map(Action::Capture);
        }
        if let Some(capture) = files.iter().find(|file| is_capture(file)) {
            return Err(Failure::Usage(format!(
                "{} is a capture, and only sessions can be shown together; type fathom show {0}",
                name::shown(capture)
            )));
        }
        let flags_of_captures = [
            ("--events", self.events),
            ("--from", self.from.is_some()),
            ("--to", self.to.is_some()),
            ("--task", self.task.is_some()),
        ];
        if let Some((flag, _)) = flags_of_captures.into_iter().find(|(_, is_typed)| *is_typed) {
            return Err(Failure::Usage(format!(
                "{flag} applies to captures, and {} is not one; leave {flag} out, or name a file that `fathom capture` wrote",
                self.sessions.join(" ")
            )));
        }
        let showing = match files.as_slice() {
            [_] => self.showing.showing(self.explain, &self.inconclusive)?,
            _ => self.showing.showing_of_sessions(self.explain, &self.inconclusive)?,
        };
        Ok(Action::Sessions(files, Box::new(showing)))
    }

    fn capture_request(self, file: PathBuf) -> Result<CaptureRequest, Failure> {
        if self.explain || self.inconclusive.counts_as().is_some() {
            return Err(Failure::Usage(
                "--explain and --inconclusive apply to sessions, and this is a capture; leave --explain and --inconclusive out"
                    .into(),
            ));
        }
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(Failure::Usage("--from must be before --to; type a later --to".into()));
        }
        let (format, outputs, replace) = self.showing.showing_of_capture()?;
        let filter = RequestFilter { from_ns: self.from, to_ns: self.to, task: self.task };
        Ok(CaptureRequest { file, filter, format, outputs, replace, events: self.events })
    }
}
