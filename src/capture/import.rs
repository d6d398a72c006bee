//! Traces of other tools as captures.
//!
//! For: finding the files of a trace, and writing the capture. Not for: what stands in them (crate `capture`).

use super::{Request, cannot_write};
use crate::failure::{Failure, cause};
use crate::input;
use capture::file::Writer;
use capture::foreign::{Language, Trouble};
use capture::names::Names;
use model::captured::{Ending, Origin};
use model::name;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const AT_ONCE: usize = 256 << 10;
/// Most CPUs whose files are looked for.
const MOST_CPUS: u32 = 4096;

/// Converts it; gives the language, header and trailer.
pub(super) fn convert(from: &Path, request: &Request) -> Result<(Origin, Ending), Failure> {
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(from)));
    let open = |path: &Path| -> Result<BufReader<File>, Failure> {
        let file = input::open(path).map_err(|e| usage(format!("{e}{}", cause(&e))))?;
        Ok(BufReader::with_capacity(AT_ONCE, file))
    };
    let mut first = open(from)?;
    let begins = first.fill_buf().map_err(|e| usage(e.to_string()))?;
    let language = Language::of(begins).ok_or_else(|| {
        usage("it is no trace that fathom knows; type a log of fio (--write_iolog), a file of blktrace or of blkparse, or a CSV file of MSR Cambridge".into())
    })?;
    let mut files: Vec<Box<dyn BufRead>> = vec![Box::new(first)];
    for other in siblings(from).into_iter().filter(|_| language == Language::Blktrace) {
        files.push(Box::new(open(&other)?));
    }
    let origin = Origin {
        asked: name::text(from),
        imported: Some(language.name().into()),
        unit: language.unit(),
        queue: language == Language::Blktrace || language == Language::Blkparse,
        version: env!("CARGO_PKG_VERSION").into(),
        ..Origin::default()
    };
    let refuse = |e: &std::io::Error| cannot_write(&request.output, e);
    let to = File::create(&request.output).map_err(|e| refuse(&e))?;
    let writer = RefCell::new(Writer::new(BufWriter::new(to), &origin).map_err(|e| refuse(&e))?);
    let converted = language.convert(files, &mut |row, names: &Names| writer.borrow_mut().push(row, names));
    let (names, ending) = match converted {
        Ok(done) => done,
        Err(why) => {
            // What was half converted is nothing.
            let _ = std::fs::remove_file(&request.output);
            return Err(match why {
                Trouble::Foreign(why) => usage(why),
                Trouble::Io(e) => {
                    Failure::Refused(format!("{} cannot be converted: {e}{}", name::shown(from), cause(&e)))
                }
            });
        }
    };
    writer.into_inner().finish(&names, &ending).map_err(|e| refuse(&e))?;
    Ok((origin, ending))
}

/// The other files of a trace: blktrace writes one for each CPU, `sda.blktrace.0`, `sda.blktrace.1`, ...
fn siblings(from: &Path) -> Vec<PathBuf> {
    let Some(stem) = from.to_str().and_then(|path| path.rsplit_once(".blktrace.")).map(|(stem, _)| stem)
    else {
        return Vec::new();
    };
    let all = (0..MOST_CPUS).map(|cpu| PathBuf::from(format!("{stem}.blktrace.{cpu}")));
    all.filter(|path| path != from && path.is_file()).collect()
}
