//! A capture as fio's log of I/O.
//!
//! For: `fathom export x.capture`, of any length, written as it is read. Not for: the log's form (crate `capture`).

use crate::capture_file::open;
use crate::failure::{Failure, cause};
use crate::output::{self, Replace, Rules};
use crate::spared::Spared;
use crate::{stderr, stdout};
use capture::foreign::iolog;
use model::captured::{Origin, Unit};
use model::name;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The name of the form, and the extension of its files.
pub const IOLOG: &str = "iolog";
/// Bytes that are written at once.
const EXPORT_BUFFER_BYTES: usize = 256 << 10;

/// What the user said.
#[derive(Debug)]
pub struct Export {
    /// The capture.
    pub file: PathBuf,
    /// A file, a stream, or a directory in which it gets the capture's name.
    pub to: PathBuf,
    /// What it may replace.
    pub replace: Replace,
}

/// Standard output as what is written to.
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

/// Writes the log, and prints where.
///
/// # Errors
/// [`Failure::Usage`] where the capture cannot be read or the place is taken, [`Failure::Refused`] where it cannot be written.
pub fn export(request: &Export) -> Result<ExitCode, Failure> {
    let to = if request.to.is_dir() {
        let mut name = request.file.file_stem().unwrap_or_default().to_owned();
        name.push(".");
        name.push(IOLOG);
        let place = request.to.join(name);
        if place.symlink_metadata().is_ok() {
            return Err(Failure::Usage(format!(
                "{} is there already and stays as it is; remove it, or name the file with -o",
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
        write(request, BufWriter::with_capacity(EXPORT_BUFFER_BYTES, Box::new(Standard)), &to)
    } else if output::is_stream(&to) {
        Err(Failure::Usage(format!("-o {}: type a file, or - for standard output", name::shown(&to))))
    } else {
        let cannot = |e: io::Error| cannot_write(&to, &e);
        let growing = outlet.grow(&rules)?;
        let file = growing.file().map_err(cannot)?;
        let code = write(request, BufWriter::with_capacity(EXPORT_BUFFER_BYTES, Box::new(file)), &to)?;
        growing.finish(&rules)?;
        stdout::text(&format!("{}\n", name::shown(&to)))?;
        Ok(code)
    }
}

fn write(request: &Export, to: BufWriter<Box<dyn Write>>, place: &Path) -> Result<ExitCode, Failure> {
    let refuse = |e: io::Error| cannot_write(place, &e);
    let mut reader = open(&request.file)?;
    // Who asked for flushes has rows of its own where the device has requests; elsewhere a flush is its owner's.
    let owned = reader.origin.imported.is_none() && reader.origin.unit == Unit::Requests;
    let mut log = iolog::Export::new(to, &device(&reader.origin), owned).map_err(refuse)?;
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
        stderr::say(&format!("{} requests were left out, which fio's log has no word for", log.left_out));
    }
    let finished = log.finish().map(|_| ());
    finished.or_else(|e| if e.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(refuse(e)) })?;
    if let Some(damage) = &reader.damage {
        stderr::say(&format!(
            "fathom: {}: {damage}; what is before that was exported",
            name::shown(&request.file)
        ));
    }
    Ok(super::code(reader.damage.as_deref()))
}

/// What the log is about: the device, or what a foreign trace was of.
fn device(origin: &Origin) -> String {
    let name = origin.partition.as_ref().map(|part| part.name.clone());
    let name = name.or_else(|| origin.device.as_ref().map(|device| device.name.clone()));
    // fio takes a name up to white space.
    name.map_or_else(|| origin.asked.replace(char::is_whitespace, "_"), |name| format!("/dev/{name}"))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("-o {} cannot be written: {error}{}", name::shown(path), cause(error)))
}
