//! Capture files: recognises and opens them, prints their profile or requests (`fathom show`), and exports them as an iolog
//! of fio (`fathom export`).
//!
//! Files of any length are processed while they are read. Crate `capture` has the format and the figures, crate `report`
//! the layout.

use crate::failure::{Failure, cause};
use crate::files::output;
use crate::files::output::{Outlet, Replace, Rules, Spared};
use crate::{files, stderr, stdout};
use capture::capture_file::{Reader, Unreadable};
use capture::completeness::completeness;
use capture::foreign;
use capture::profile::{Profiler, Selection};
use model::captured::{Captured, FORMAT, Origin, Restriction, Unit};
use model::name;
use report::{EventLine, Format, ReportKind, Style};
use std::fs::File;
use std::io;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trace::row::RowKind;

/// Bytes that are read, printed or exported at once.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// Start of the first line of a capture of any version.
const MAGIC_PREFIX: &[u8] = b"fathom capture ";

/// Whether a file is a capture, by its first bytes. An unreadable file is not.
pub(crate) fn is_capture(path: &Path) -> bool {
    files::begins_with(path, MAGIC_PREFIX)
}

/// Opens a capture.
///
/// # Errors
/// [`Failure::Usage`] if it is not a readable capture.
pub(crate) fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(path)));
    let file = files::open(path).map_err(|e| usage(format!("{e}{}", cause(&e))))?;
    Reader::new(BufReader::with_capacity(BUFFER_BYTES, file)).map_err(|e: Unreadable| usage(e.to_string()))
}

/// A request to show a capture.
#[derive(Debug)]
pub struct Request {
    /// The capture.
    pub file: PathBuf,
    /// Which of its requests to include.
    pub restriction: Restriction,
    /// Format on standard output.
    pub format: &'static Format,
    /// Additional output files.
    pub outputs: Vec<PathBuf>,
    /// Which files they may replace.
    pub replace: Replace,
    /// List the requests instead of the profile.
    pub events: Option<Events>,
}

/// The format of listed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// For people.
    Text,
    /// For programs.
    Csv,
}

impl Events {
    /// From the format option.
    ///
    /// # Errors
    /// A usage failure if requests cannot be listed in this format.
    pub fn from_format(format: &Format, outputs: &[PathBuf]) -> Result<Self, Failure> {
        if !outputs.is_empty() {
            return Err(Failure::Usage(
                "--events goes to standard output; leave -o out, and redirect the output with >".into(),
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
/// [`Failure::Usage`] if the capture cannot be read, [`Failure::Refused`] if it cannot be printed.
pub fn show(request: &Request) -> Result<ExitCode, Failure> {
    let reader = open(&request.file)?;
    match request.events {
        Some(form) => list(reader, request, form),
        None => profile(reader, request),
    }
}

/// Exit code of an incomplete capture: shown, but not a success.
fn code(damage: Option<&str>) -> ExitCode {
    ExitCode::from(u8::from(damage.is_some()))
}

/// Decides about output files of this kind of report, before anything runs.
///
/// # Errors
/// [`Failure::Usage`] if no format has the extension of a file, or a file may not be written.
pub(crate) fn decide_outputs<K: ReportKind>(
    outputs: &[PathBuf],
    rules: &Rules,
) -> Result<Vec<Outlet>, Failure> {
    for path in outputs {
        if report::by_extension::<K>(path).is_none() && !output::is_stream(path) {
            return Err(Failure::Usage(format!(
                "-o {}: no format of {} has this extension; type {}",
                name::shown(path),
                K::NAME,
                report::extensions::<K>()
            )));
        }
    }
    output::decide_all(outputs, rules)
}

/// Warns that a capture is damaged and only the part before the damage was used.
pub(crate) fn warn_of_damage(file: &Path, damage: &str, used: &str) {
    stderr::say(&format!("fathom: {}: {damage}; only the part before that {used}", name::shown(file)));
}

fn profile(mut reader: Reader<BufReader<File>>, request: &Request) -> Result<ExitCode, Failure> {
    let format = report::that_writes::<Captured>(request.format).map_err(Failure::Usage)?;
    let mut spared = Spared::default();
    spared.add(&request.file, "the capture itself");
    let rules = Rules { flag: "-o", spared, replace: request.replace };
    let outlets = decide_outputs::<Captured>(&request.outputs, &rules)?;
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
    let mut out = Vec::with_capacity(BUFFER_BYTES + 1024);
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
            if out.len() >= BUFFER_BYTES && !print(&mut out)? {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    print(&mut out)?;
    if let Some(damage) = &reader.damage {
        warn_of_damage(&request.file, damage, "was listed");
    }
    Ok(code(reader.damage.as_deref()))
}

/// Prints a piece. Returns false if standard output is closed.
fn print(out: &mut Vec<u8>) -> Result<bool, Failure> {
    let shown = stdout::harmless(out, report::Content::Text);
    out.clear();
    stdout::piece(&shown)
}

/// Name of the export format, and extension of its files.
pub const IOLOG: &str = "iolog";

/// A request to export a capture.
#[derive(Debug)]
pub struct Export {
    /// The capture.
    pub file: PathBuf,
    /// A file, a stream, or a directory, where the file gets the capture's name.
    pub to: PathBuf,
    /// Which file it may replace.
    pub replace: Replace,
}

/// Standard output as a writer.
struct Standard;

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match stdout::piece(bytes) {
            Ok(true) => Ok(bytes.len()),
            Ok(false) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(why) => Err(io::Error::other(why.message().to_owned())),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the log, and prints its path.
///
/// # Errors
/// [`Failure::Usage`] if the capture cannot be read or the name is taken, [`Failure::Refused`] if it cannot be written.
pub fn export(request: &Export) -> Result<ExitCode, Failure> {
    let to = if request.to.is_dir() {
        let mut name = request.file.file_stem().unwrap_or_default().to_owned();
        name.push(".");
        name.push(IOLOG);
        let place = request.to.join(name);
        if place.symlink_metadata().is_ok() {
            return Err(Failure::Usage(format!(
                "{} exists and is not replaced; remove it, or name another file with -o",
                name::shown(&place)
            )));
        }
        place
    } else {
        request.to.clone()
    };
    let mut spared = Spared::default();
    spared.add(&request.file, "the capture itself");
    let rules = Rules { flag: "-o", spared, replace: request.replace };
    let outlet = rules.decide(&to)?;
    if outlet.is_stdout() {
        write(request, BufWriter::with_capacity(BUFFER_BYTES, Box::new(Standard)), &to)
    } else if output::is_stream(&to) {
        Err(Failure::Usage(format!("-o {}: type a file, or - for standard output", name::shown(&to))))
    } else {
        let cannot = |e: io::Error| cannot_write(&to, &e);
        let growing = outlet.grow(&rules)?;
        let file = growing.file().map_err(cannot)?;
        let code = write(request, BufWriter::with_capacity(BUFFER_BYTES, Box::new(file)), &to)?;
        growing.finish(&rules)?;
        stdout::text(&format!("{}\n", name::shown(&to)))?;
        Ok(code)
    }
}

fn write(request: &Export, to: BufWriter<Box<dyn Write>>, place: &Path) -> Result<ExitCode, Failure> {
    let refuse = |e: io::Error| cannot_write(place, &e);
    let mut reader = open(&request.file)?;
    // On devices with requests, the task that asked for a flush has its own row; elsewhere a flush belongs to its owner.
    let owned = reader.origin.imported.is_none() && reader.origin.unit == Unit::Requests;
    let mut log = foreign::Export::new(to, &device(&reader.origin), owned).map_err(refuse)?;
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        for row in rows {
            match log.add(row, names) {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                other => other.map_err(refuse)?,
            }
        }
    }
    if log.left_out > 0 {
        stderr::say(&format!(
            "{} requests were left out, because fio's iolog cannot express them",
            log.left_out
        ));
    }
    let finished = log.finish().map(|_| ());
    finished.or_else(|e| if e.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(refuse(e)) })?;
    if let Some(damage) = &reader.damage {
        warn_of_damage(&request.file, damage, "was exported");
    }
    Ok(code(reader.damage.as_deref()))
}

/// Name of the captured partition or device; `None` for another tool's trace.
pub(crate) fn device_name(origin: &Origin) -> Option<&str> {
    let partition = origin.partition.as_ref().map(|part| part.name.as_str());
    partition.or_else(|| origin.device.as_ref().map(|device| device.name.as_str()))
}

/// The subject of the log: the device, or the name in another tool's trace.
fn device(origin: &Origin) -> String {
    // fio ends a name at white space.
    let foreign = || origin.asked.replace(char::is_whitespace, "_");
    device_name(origin).map_or_else(foreign, |name| format!("/dev/{name}"))
}

pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("-o {} cannot be written: {error}{}", name::shown(path), cause(error)))
}
