//! Showing a capture: its profile, or its requests one a line.
//!
//! For: `fathom show` of a file that `fathom capture` wrote. Not for: the figures (crate `capture`) nor their layout (crate `report`).

mod iolog_export;

use crate::capture_file::open;
use crate::failure::Failure;
use crate::output::{self, Replace, Rules};
use crate::spared::Spared;
use crate::{stderr, stdout};
use capture::file::Reader;
use capture::profile::{Profiler, Selection};
use capture::row::RowKind;
use capture::verdict::completeness;
pub use self::iolog_export::{Export, IOLOG, export};
use model::captured::{Captured, FORMAT, Restriction};
use model::name;
use report::{EventLine, Format, Style};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

/// Bytes that are written at once.
const PRINT_BUFFER_BYTES: usize = 256 << 10;

/// What the user said.
#[derive(Debug)]
pub struct Request {
    /// Where the capture is.
    pub file: PathBuf,
    /// Which of its requests.
    pub restriction: Restriction,
    /// The form on standard output.
    pub format: &'static Format,
    /// Files to write too.
    pub outputs: Vec<PathBuf>,
    /// What they may replace.
    pub replace: Replace,
    /// Its requests instead of its profile.
    pub events: Option<Events>,
}

/// The form of requests that are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// To read.
    Text,
    /// For programs.
    Csv,
}

impl Events {
    /// By what was said.
    ///
    /// # Errors
    /// A usage failure where there is no such form.
    pub fn from_format(format: &Format, outputs: &[PathBuf]) -> Result<Self, Failure> {
        if !outputs.is_empty() {
            return Err(Failure::Usage(
                "--events goes to standard output; leave out -o, and send it into a file with >".into(),
            ));
        }
        match format.name {
            "text" => Ok(Self::Text),
            "csv" => Ok(Self::Csv),
            other => Err(Failure::Usage(format!(
                "--events with --format {other}: requests are listed as text or csv; type one of these"
            ))),
        }
    }
}

/// Prints the profile or the requests.
///
/// # Errors
/// [`Failure::Usage`] where it cannot be read, [`Failure::Refused`] where it cannot be printed.
pub fn show(request: &Request) -> Result<ExitCode, Failure> {
    let reader = open(&request.file)?;
    match request.events {
        Some(form) => list(reader, request, form),
        None => profile(reader, request),
    }
}

/// A file that is not whole is shown as far as it is, and not as if it were.
fn code(damage: Option<&str>) -> ExitCode {
    ExitCode::from(u8::from(damage.is_some()))
}

fn profile(mut reader: Reader<BufReader<File>>, request: &Request) -> Result<ExitCode, Failure> {
    let format = report::that_writes::<Captured>(request.format).map_err(Failure::Usage)?;
    let mut spared = Spared::default();
    spared.add(&request.file, "the capture itself");
    let rules = Rules { flag: "-o", spared, replace: request.replace };
    for path in &request.outputs {
        if report::by_extension::<Captured>(path).is_none() && !output::is_stream(path) {
            return Err(Failure::Usage(format!(
                "-o {}: no form of a capture has this extension; type {}",
                name::shown(path),
                report::extensions::<Captured>()
            )));
        }
    }
    let outlets = output::decide_all(&request.outputs, &rules)?;
    let mut profiler = Profiler::new(&reader.origin, &request.restriction);
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        profiler.add(rows, names);
    }
    let captured_ns = reader.ending.as_ref().map(|ending| ending.duration_ns);
    let captured = Captured {
        format: FORMAT,
        file: name::text(&request.file),
        completeness: completeness(&reader.origin, reader.ending.as_ref()),
        profile: profiler.finish(captured_ns.filter(|ns| *ns > 0), &reader.names),
        restricted: (request.restriction != Restriction::default()).then(|| request.restriction.clone()),
        origin: reader.origin,
        ending: reader.ending,
        damage: reader.damage,
    };
    for outlet in outlets.iter().filter(|outlet| !outlet.is_stdout()) {
        let form = report::of_file::<Captured>(outlet.path_as_typed(), format).unwrap_or(format);
        outlet.write(&stdout::rendered(form, &captured, Style::default())?, &rules)?;
    }
    stdout::report(format, &captured, Style::default())?;
    Ok(code(captured.damage.as_deref()))
}

fn list(mut reader: Reader<BufReader<File>>, request: &Request, form: Events) -> Result<ExitCode, Failure> {
    let mut selection = Selection::new(&request.restriction);
    let mut out = Vec::with_capacity(PRINT_BUFFER_BYTES + 1024);
    let heading = match form {
        Events::Text => EventLine::heading(),
        Events::Csv => EventLine::csv_heading(),
    };
    out.extend(heading.as_bytes());
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        for row in rows.iter().filter(|row| selection.has(row, names)) {
            let (Some(flags), Some(task)) = (names.flags_at(row.flags), names.task_at(row.task)) else {
                continue;
            };
            let line = EventLine {
                issue_ns: row.issue_ns,
                latency_ns: row.latency_ns,
                queued_ns: row.queued_ns,
                op: flags.op(row.sectors),
                asked: flags.kind == RowKind::Asked,
                letters: &flags.rwbs,
                error: flags.error,
                sector: row.sector,
                sectors: row.sectors,
                task: &task.name,
                tid: task.tid,
                pid: task.pid,
            };
            out.extend(if form == Events::Csv { line.csv() } else { line.text() }.as_bytes());
            if out.len() >= PRINT_BUFFER_BYTES && !print(&mut out)? {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    print(&mut out)?;
    if let Some(damage) = &reader.damage {
        stderr::say(&format!(
            "fathom: {}: {damage}; what is before that was listed",
            name::shown(&request.file)
        ));
    }
    Ok(code(reader.damage.as_deref()))
}

/// Whether anybody still reads.
fn print(out: &mut Vec<u8>) -> Result<bool, Failure> {
    let shown = stdout::harmless(out, report::Content::Text);
    out.clear();
    stdout::piece(&shown)
}
