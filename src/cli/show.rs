//! `fathom show`: its flags. It also prints JSON reports.

use crate::capture::capture_file::is_capture;
use crate::cli::compare::{is_json, read_report};
use crate::cli::shared_flags::{OUTPUT, ShowingArgs, WHAT};
use crate::failure::Failure;
use crate::files::output::ProtectedPaths;
use crate::history;
use crate::request::CaptureRequest;
use crate::show::{self, SAME_COMMAND, Showing};
use model::captured::RequestFilter;
use model::name;
use model::report::{Measured, Report};
use model::units::parse_duration_ns;
use report::{Format, Style};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Judge a session again with the checks of this version and print its report; or show several sessions in a table, the JSON report of a
/// measurement, or a capture.
///
/// For several sessions (A B C ...) it prints one table: a row for each session in the order typed, a column for each result that any
/// session has, and why a session is not VALID. JSON also has the complete reports. A page (-o page.html) plots each result, with all
/// sessions on one scale. `fathom compare` reports which session is faster.
///
/// The JSON report of a measurement, which -o writes, is printed as it was judged, in any format except those of fio, DISKSPD and Iometer.
/// These, --accept and --inconclusive need the session.
///
/// For a capture from `fathom capture` it prints the profile of the load, as text or JSON, or with --events the requests, as text or CSV.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A session: its file, its id or a part of its id, a tag, `last`, or `last~1` for the one before; or several; or the
    /// JSON report of a measurement, or a capture
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    /// Captures: print the requests, one per line
    #[arg(long, help_heading = WHAT)]
    events: bool,
    /// Captures: leave out requests issued before this time, counted from the beginning of the capture
    #[arg(long, help_heading = WHAT, value_name = "DURATION", value_parser = parse_duration_ns)]
    from: Option<u64>,
    /// Captures: leave out requests issued at or after this time, counted from the beginning of the capture
    #[arg(long, help_heading = WHAT, value_name = "DURATION", value_parser = parse_duration_ns)]
    to: Option<u64>,
    /// Captures: only requests of tasks with this name, or of this thread or process
    #[arg(long, help_heading = WHAT, value_name = "NAME|PID")]
    task: Option<String>,
    /// Also print every run second by second, next to the device's own counts
    #[arg(long, help_heading = OUTPUT)]
    explain: bool,
    #[command(flatten)]
    showing: ShowingArgs,
}

/// What to show.
pub enum Action {
    /// One session, or several in a table.
    Sessions(Vec<PathBuf>, Box<Showing>),
    /// A JSON report.
    Report(PathBuf, Box<Showing>),
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
                "{flag} applies to captures; leave {flag} out, or name a file that `fathom capture` wrote instead of {}",
                self.sessions.join(" ")
            )));
        }
        if let Some(file) = files.iter().find(|file| is_json(file).unwrap_or(false)) {
            if files.len() > 1 {
                return Err(Failure::Usage(format!(
                    "{} is a JSON file, and a table needs sessions; type fathom show {0}, or `fathom compare` with the same names",
                    name::shown(file)
                )));
            }
            let showing = self.showing_of_report(file)?;
            return Ok(Action::Report(file.clone(), Box::new(showing)));
        }
        let showing = match files.as_slice() {
            [_] => self.showing.showing(self.explain)?,
            _ => self.showing.showing_of_sessions(self.explain)?,
        };
        Ok(Action::Sessions(files, Box::new(showing)))
    }

    /// Returns how to show a JSON report. Refuses flags and formats that need the record of the session.
    fn showing_of_report(self, file: &Path) -> Result<Showing, Failure> {
        let showing = self.showing.showing(self.explain)?;
        let printed = (showing.format, format!("--format {}", showing.format.name));
        let files = showing.outputs.iter().filter_map(|path| {
            let format = report::format_of_file::<Report>(path, showing.format)?;
            Some((format, format!("-o {}", name::quoted(&name::shown(path)))))
        });
        let needs_record = |(format, _): &(&'static Format, String)| {
            FORMATS_OF_RECORDS.iter().any(|tool| format.name.starts_with(tool))
        };
        let format = std::iter::once(printed).chain(files).find(needs_record);
        let needed = if !showing.accept.is_empty() {
            Some("--accept".to_owned())
        } else if showing.inconclusive.is_some() {
            Some("--inconclusive".to_owned())
        } else {
            format.map(|(_, typed)| typed)
        };
        match needed {
            Some(needed) => Err(Failure::Usage(format!(
                "{needed} needs the record of a session, and {} is a JSON report; name its session, or leave {needed} out",
                name::shown(file)
            ))),
            None => Ok(showing),
        }
    }

    fn capture_request(self, file: PathBuf) -> Result<CaptureRequest, Failure> {
        let of_sessions = [
            (self.explain, "--explain"),
            (self.showing.inconclusive.inconclusive.is_some(), "--inconclusive"),
        ];
        if let Some((_, flag)) = of_sessions.into_iter().find(|(is_typed, _)| *is_typed) {
            return Err(Failure::Usage(format!(
                "{flag} applies to sessions, and this is a capture; leave {flag} out"
            )));
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

/// Formats whose names begin like this need numbers that a JSON report does not have.
const FORMATS_OF_RECORDS: [&str; 3] = ["fio", "diskspd", "iometer"];

/// Prints a JSON report as it was judged, and returns the exit code of its verdict.
///
/// # Errors
/// [`Failure::Usage`] if the file is not a report, or has no time series for `--explain`.
pub fn show_report(file: &Path, showing: &Showing) -> Result<ExitCode, Failure> {
    let mut protected = ProtectedPaths::default();
    protected.add(file, "the report that is shown");
    let outlets = show::outlets(&showing.outputs, showing.replace, protected)?;
    let report = read_report(file, &[])?;
    let has_no_series = |result: &Measured| result.series.is_empty() && result.disturbed.is_empty();
    if showing.explain && report.results.iter().all(has_no_series) {
        return Err(Failure::Usage(format!(
            "--explain prints time series, and {} has none; name its session, or leave --explain out",
            name::shown(file)
        )));
    }
    let style = Style {
        ledger: showing.ledger,
        time_series: showing.explain,
        detail: showing.detail,
        ..Style::default()
    };
    show::put(&report, showing.format, style, &outlets, Some(SAME_COMMAND))?;
    show::confirm_files(&outlets);
    Ok(ExitCode::from(analysis::exit_code(&report)))
}

#[test]
fn formats_of_other_tools_need_the_record() {
    let names = report::formats_that_write::<Report>().map(|(format, _)| format.name);
    let without: Vec<&str> =
        names.filter(|name| FORMATS_OF_RECORDS.iter().all(|tool| !name.starts_with(tool))).collect();
    for name in ["text", "json", "csv", "markdown", "html", "cdm", "openmetrics"] {
        assert!(without.contains(&name), "{name}");
    }
    assert_eq!(without.len(), 7, "{without:?}");
}
