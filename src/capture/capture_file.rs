//! Capture files: recognises and opens them, prints their profile or requests (`fathom show`), and exports them as an iolog
//! of fio (`fathom export`).
//!
//! Files of any length are processed while they are read. Crate `capture` has the format and the figures, crate `report`
//! the layout.

use crate::failure::{Failure, cause};
use crate::files::output;
use crate::files::output::{ProtectedPaths, Replace, Rules};
use crate::request::CaptureRequest;
use crate::show::{self, Outlets};
use crate::{files, stderr, stdout};
use capture::capture_file::{Reader, Unreadable};
use capture::completeness::completeness;
use capture::foreign;
use capture::profile::{Profiler, RowSelector};
use model::captured::{Captured, FORMAT, Origin, RequestFilter, RowUnit};
use model::name;
use report::{EventLine, ReportKind, Style};
use std::fs::File;
use std::io;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trace::row::{Names, Row, RowKind};

/// Bytes that are read, printed or exported at once.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// Start of the first line of a capture of any version.
const MAGIC_PREFIX: &[u8] = b"fathom capture ";

/// Whether a file is a capture, by its first bytes. Returns false if the file cannot be read.
pub(crate) fn is_capture(path: &Path) -> bool {
    files::begins_with(path, MAGIC_PREFIX)
}

/// Opens a capture.
///
/// # Errors
/// [`Failure::Usage`] if the file is not a readable capture.
pub(crate) fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(path)));
    let file = files::open(path).map_err(|e| usage(format!("{e}{}", cause(&e))))?;
    Reader::new(BufReader::with_capacity(BUFFER_BYTES, file)).map_err(|e: Unreadable| usage(e.to_string()))
}

/// Passes on the rows of a capture, block by block.
pub(crate) fn each_block(reader: &mut Reader<BufReader<File>>, mut take: impl FnMut(&[Row], &Names)) {
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        take(rows, names);
    }
}

/// Prints the profile of a capture, or with `--events` its requests.
///
/// # Errors
/// [`Failure::Usage`] if the capture cannot be read, [`Failure::Refused`] if the output cannot be written.
pub fn show(request: &CaptureRequest) -> Result<ExitCode, Failure> {
    if request.events { list(request) } else { profile(request) }
}

/// Returns the exit code for a capture: 0, or 1 if it is damaged. For a damaged capture, also prints a warning that only the part before
/// the damage was used. `was_used` is the end of the warning's sentence.
pub(crate) fn exit_code(file: &Path, damage: Option<&str>, was_used: &str) -> ExitCode {
    if let Some(damage) = damage {
        let file = name::shown(file);
        stderr::print(&format!("fathom: {file}: {damage}; only the part before the damage {was_used}"));
    }
    ExitCode::from(u8::from(damage.is_some()))
}

/// Checks the output files for this kind of report, before anything runs. No file may replace the capture.
///
/// # Errors
/// [`Failure::Usage`] if no format has the extension of a file. Also as [`output::decide_all`].
pub(crate) fn decide_outputs<K: ReportKind>(
    outputs: &[PathBuf],
    replace: Replace,
    capture: &Path,
) -> Result<Outlets, Failure> {
    for path in outputs {
        if report::format_by_extension::<K>(path).is_none() && !output::is_stream(path) {
            return Err(Failure::Usage(format!(
                "-o {}: no format of {} has this extension; type {}",
                name::shown(path),
                K::NAME,
                report::file_extensions::<K>()
            )));
        }
    }
    let mut protected = ProtectedPaths::default();
    protected.add(capture, "the capture itself");
    show::outlets(outputs, replace, protected)
}

fn profile(request: &CaptureRequest) -> Result<ExitCode, Failure> {
    let mut reader = open(&request.file)?;
    let format = report::require_writer::<Captured>(request.format).map_err(Failure::Usage)?;
    let outlets = decide_outputs::<Captured>(&request.outputs, request.replace, &request.file)?;
    let mut profiler = Profiler::new(&reader.origin, &request.filter);
    each_block(&mut reader, |rows, names| profiler.add(rows, names));
    let captured_ns = reader.ending.as_ref().map(|ending| ending.duration_ns);
    let captured = Captured {
        format: FORMAT,
        file: name::text(&request.file),
        completeness: completeness(&reader.origin, reader.ending.as_ref()),
        profile: profiler.finish(captured_ns.filter(|ns| *ns > 0), &reader.names),
        filter: (request.filter != RequestFilter::default()).then(|| request.filter.clone()),
        origin: reader.origin,
        ending: reader.ending,
        damage: reader.damage,
    };
    show::put(&captured, format, Style::default(), &outlets, Some(show::SAME_COMMAND))?;
    Ok(ExitCode::from(u8::from(captured.damage.is_some())))
}

fn list(request: &CaptureRequest) -> Result<ExitCode, Failure> {
    let is_csv = request.format.name == "csv";
    if !request.outputs.is_empty() {
        return Err(Failure::Usage(
            "--events lists the requests on standard output only; leave -o out, or redirect the output: `... > FILE`".into(),
        ));
    }
    if !is_csv && request.format.name != "text" {
        return Err(Failure::Usage(format!(
            "--events with --format {}: requests are listed as text or csv; type one of these",
            request.format.name
        )));
    }
    let mut reader = open(&request.file)?;
    let mut selector = RowSelector::new(&request.filter);
    let mut out = Vec::with_capacity(BUFFER_BYTES + 1024);
    out.extend(if is_csv { EventLine::csv_heading() } else { EventLine::heading() }.as_bytes());
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        for row in rows.iter().filter(|row| selector.selects(row, names)) {
            let (Some(flags), Some(task)) = (names.flags_at(row.flags), names.task_at(row.task)) else {
                continue;
            };
            let line = EventLine {
                issue_ns: row.issue_ns,
                latency_ns: row.latency_ns,
                queued_ns: row.queued_ns,
                op: flags.op(row.sectors),
                asked: flags.kind == RowKind::RequestedFlush,
                letters: &flags.rwbs,
                error: flags.error,
                sector: row.sector,
                sectors: row.sectors,
                task: &task.name,
                tid: task.tid,
                pid: task.pid,
            };
            out.extend(if is_csv { line.csv() } else { line.text() }.as_bytes());
            if out.len() >= BUFFER_BYTES && !print(&mut out)? {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    print(&mut out)?;
    Ok(exit_code(&request.file, reader.damage.as_deref(), "was listed"))
}

/// Prints the text so far and empties the buffer. Returns false if standard output is closed.
fn print(out: &mut Vec<u8>) -> Result<bool, Failure> {
    let shown = stdout::escape_control_characters(out, report::Content::Text);
    out.clear();
    stdout::print_piece(&shown)
}

/// Name of the export format, and extension of its files.
pub const IOLOG: &str = "iolog";

/// Standard output as a writer.
struct Standard;

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match stdout::print_piece(bytes) {
            Ok(true) => Ok(bytes.len()),
            Ok(false) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(why) => Err(io::Error::other(why.message().to_owned())),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a capture as an iolog of fio, and prints the path of the log unless it goes to standard
/// output. `to` is a file, standard output, or a directory, in which the log gets the name of the
/// capture.
///
/// # Errors
/// [`Failure::Usage`] if the capture cannot be read or the name of the log is taken, [`Failure::Refused`] if the log cannot be written.
pub fn export(capture: &Path, to: &Path, replace: Replace) -> Result<ExitCode, Failure> {
    let mut to = to.to_owned();
    if to.is_dir() {
        let mut name = capture.file_stem().unwrap_or_default().to_owned();
        name.push(".");
        name.push(IOLOG);
        to.push(name);
        if to.symlink_metadata().is_ok() {
            return Err(Failure::Usage(format!(
                "{} exists and is not replaced; remove it, or name another file with -o",
                name::shown(&to)
            )));
        }
    }
    let mut protected = ProtectedPaths::default();
    protected.add(capture, "the capture itself");
    let rules = Rules { flag: "-o", protected, replace };
    let outlet = rules.decide(&to)?;
    if outlet.is_stdout() {
        return write(capture, Box::new(Standard), &to);
    }
    if output::is_stream(&to) {
        return Err(Failure::Usage(format!(
            "-o {}: an iolog needs a regular file; type the name of one, or - for standard output",
            name::shown(&to)
        )));
    }
    let growing = outlet.grow(&rules)?;
    let file = growing.file().map_err(|e| cannot_write(&to, &e))?;
    let code = write(capture, Box::new(file), &to)?;
    growing.finish(&rules)?;
    stdout::print_text(&format!("{}\n", name::shown(&to)))?;
    Ok(code)
}

fn write(capture: &Path, to: Box<dyn Write>, place: &Path) -> Result<ExitCode, Failure> {
    let refuse = |e: io::Error| cannot_write(place, &e);
    let mut reader = open(capture)?;
    // On devices with requests, each flush that a task asked for has its own row; the flushes that
    // the device received have further rows. Captures of bios and other tools' traces have one row
    // for each flush.
    let owned = reader.origin.imported.is_none() && reader.origin.unit == RowUnit::Requests;
    // fio ends a name at white space.
    let foreign = || reader.origin.named_path.replace(char::is_whitespace, "_");
    let device = device_name(&reader.origin).map_or_else(foreign, |name| format!("/dev/{name}"));
    let to = BufWriter::with_capacity(BUFFER_BYTES, to);
    let mut log = foreign::Export::new(to, &device, owned).map_err(refuse)?;
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
        stderr::print(&format!(
            "fio's iolog cannot express every request; requests left out: {}",
            log.left_out
        ));
    }
    let finished = log.finish().map(|_| ());
    finished.or_else(|e| if e.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(refuse(e)) })?;
    Ok(exit_code(capture, reader.damage.as_deref(), "was exported"))
}

/// Name of the captured partition or device; `None` for another tool's trace.
pub(crate) fn device_name(origin: &Origin) -> Option<&str> {
    let partition = origin.partition.as_ref().map(|part| part.name.as_str());
    partition.or_else(|| origin.device.as_ref().map(|device| device.name.as_str()))
}

pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("-o {} cannot be written: {error}{}", name::shown(path), cause(error)))
}
