//! `fathom show`: its flags.

use crate::capture::capture_file;
use crate::capture::capture_file::{Events, is_capture};
use crate::cli::shared_flags::{InconclusiveArgs, OUTPUT, ShowingArgs, WHAT};
use crate::failure::Failure;
use crate::history;
use crate::show::Showing;
use model::captured::Restriction;
use model::name;
use model::units::parse_duration_ns;
use std::path::PathBuf;

/// Judge and print a session again, with the checks of this version; or several side by side; or the profile of a capture.
///
/// Of several (A B C ...) it is one table: a row for each session in the order typed, a column for whatever one of them measured, and why
/// one is not VALID. As JSON the whole reports stand beside it, and as a page (-o page.html) plots of each result, all sessions on one
/// scale. `fathom compare` says which is faster.
///
/// A file that `fathom capture` wrote is told by its content. Of that the profile of the load is printed, as text or JSON, or with
/// --events its requests, as text or CSV.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The session: its file, its id or a part of that, a tag, `last`, or `last~1` for the one before; several side by side; or a capture
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    /// Captures: print its requests, one a line
    #[arg(long, help_heading = WHAT)]
    events: bool,
    /// Captures: only requests issued after this time since it began
    #[arg(long, help_heading = WHAT, value_name = "DURATION", value_parser = parse_duration_ns)]
    from: Option<u64>,
    /// Captures: only requests issued before this time
    #[arg(long, help_heading = WHAT, value_name = "DURATION", value_parser = parse_duration_ns)]
    to: Option<u64>,
    /// Captures: only requests of tasks with this name, or of this thread or process
    #[arg(long, help_heading = WHAT, value_name = "NAME|PID")]
    task: Option<String>,
    /// Also print every run second by second, beside the device's own counts
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
    Capture(capture_file::Request),
}

impl Args {
    /// Returns the action.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn into_action(self) -> Result<Action, Failure> {
        let files = self.sessions.iter().map(|word| history::find(word)).collect::<Result<Vec<_>, _>>()?;
        if let [file] = files.as_slice()
            && is_capture(file)
        {
            return self.of_a_capture(file.clone()).map(Action::Capture);
        }
        if let Some(capture) = files.iter().find(|file| is_capture(file)) {
            return Err(Failure::Usage(format!(
                "{} is a capture, and what stands side by side are sessions; type fathom show {0}",
                name::shown(capture)
            )));
        }
        let of_captures = [
            ("--events", self.events),
            ("--from", self.from.is_some()),
            ("--to", self.to.is_some()),
            ("--task", self.task.is_some()),
        ];
        if let Some((flag, _)) = of_captures.into_iter().find(|(_, given)| *given) {
            return Err(Failure::Usage(format!(
                "{flag} is about captures, and {} is none; leave it out, or name what `fathom capture` wrote",
                self.sessions.join(" ")
            )));
        }
        let showing = match files.as_slice() {
            [_] => self.showing.gated(self.explain, &self.inconclusive)?,
            _ => self.showing.of_several(self.explain, &self.inconclusive)?,
        };
        Ok(Action::Sessions(files, Box::new(showing)))
    }

    fn of_a_capture(self, file: PathBuf) -> Result<capture_file::Request, Failure> {
        if self.explain || self.inconclusive.counts_as().is_some() {
            return Err(Failure::Usage(
                "--explain and --inconclusive are about the report of a measurement, and this is a capture; leave them out"
                    .into(),
            ));
        }
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(Failure::Usage("--from is not before --to; type a later --to".into()));
        }
        let (format, outputs, replace) = self.showing.of_a_capture()?;
        let events = if self.events { Some(Events::from_format(format, &outputs)?) } else { None };
        let restriction = Restriction { from_ns: self.from, to_ns: self.to, task: self.task };
        Ok(capture_file::Request { file, restriction, format, outputs, replace, events })
    }
}
