//! Captures of block requests: `record` makes them, `capture_file` shows and exports them, `replay` repeats them, `fit` makes jobs
//! from them.
//!
//! Here: opens another tool's trace, which `fathom capture --import` converts and `fathom run` replays.

pub mod capture_file;
pub mod fit;
pub mod record;
pub(crate) mod replay;

use crate::failure::{Failure, cause};
use crate::files;
use capture::foreign::{Language, Trouble};
use capture_file::BUFFER_BYTES;
use model::captured::Origin;
use model::name;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Returns the failure for a trace that cannot be used. `done` completes its message `cannot be
/// ...`: `read` or `converted`.
pub(crate) fn trouble(path: &Path, why: Trouble, done: &str) -> Failure {
    let path = name::shown(path);
    match why {
        Trouble::Foreign(why) => Failure::Usage(format!("{path}: {why}")),
        Trouble::Io(e) => Failure::Refused(format!("{path} cannot be {done}: {e}{}", cause(&e))),
    }
}

/// Maximum number of files of one trace: blktrace writes one for each CPU.
const MAX_CPUS: u32 = 4096;

/// An open trace.
pub(crate) struct Trace {
    /// Format of the trace.
    pub(crate) language: Language,
    /// Files of the trace: one for each CPU for blktrace, otherwise one.
    pub(crate) files: Vec<BufReader<File>>,
    /// Header of the capture that the trace is converted to.
    pub(crate) origin: Origin,
}

/// Number of bytes at the beginning of a trace by which its format is recognised.
const HEADER_BYTES: u64 = 512;

/// Detects the format of a trace by its first bytes; `None` for other or unreadable files.
pub(crate) fn trace_language(path: &Path) -> Option<Language> {
    let mut first_bytes = Vec::new();
    files::open(path).ok()?.take(HEADER_BYTES).read_to_end(&mut first_bytes).ok()?;
    Language::detect(&first_bytes)
}

/// Opens a trace.
///
/// # Errors
/// [`Failure::Usage`] if its format is unknown or it cannot be read.
pub(crate) fn open_trace(from: &Path) -> Result<Trace, Failure> {
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(from)));
    let open = |path: &Path| -> Result<BufReader<File>, Failure> {
        let file = files::open(path).map_err(|e| usage(format!("{e}{}", cause(&e))))?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    };
    let mut first = open(from)?;
    let first_bytes = first.fill_buf().map_err(|e| usage(e.to_string()))?;
    let language = Language::detect(first_bytes).ok_or_else(|| {
        usage("its format is unknown; name an iolog of fio (--write_iolog), a file of blktrace or blkparse, or a CSV file of MSR Cambridge".into())
    })?;
    let mut files = vec![first];
    for other in siblings(from).into_iter().filter(|_| language == Language::Blktrace) {
        files.push(open(&other)?);
    }
    let origin = Origin {
        named_path: name::text(from),
        imported: Some(language.name().into()),
        unit: language.unit(),
        queue: language == Language::Blktrace || language == Language::Blkparse,
        version: env!("CARGO_PKG_VERSION").into(),
        ..Origin::default()
    };
    Ok(Trace { language, files, origin })
}

impl Trace {
    /// The files of the trace as readers.
    pub(crate) fn readers(files: Vec<BufReader<File>>) -> Vec<Box<dyn BufRead>> {
        files.into_iter().map(|file| Box::new(file) as Box<dyn BufRead>).collect()
    }
}

/// The other files of a trace: blktrace writes one for each CPU, `sda.blktrace.0`, `sda.blktrace.1`, ...
fn siblings(from: &Path) -> Vec<PathBuf> {
    const CPU_MARK: &[u8] = b".blktrace.";
    let name = from.file_name().unwrap_or_default().as_bytes();
    let Some(at) = name.windows(CPU_MARK.len()).rposition(|part| part == CPU_MARK) else {
        return Vec::new();
    };
    let stem = &name[..at + CPU_MARK.len()];
    let file_name = |cpu: u32| OsString::from_vec([stem, cpu.to_string().as_bytes()].concat());
    let all = (0..MAX_CPUS).map(|cpu| from.with_file_name(file_name(cpu)));
    all.filter(|path| path != from && path.is_file()).collect()
}

#[test]
fn blktrace_files_of_all_cpus_are_found() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    let folder = dir.path().join(OsString::from_vec(b"x.blktrace.y\xff".to_vec()));
    std::fs::create_dir(&folder)?;
    let files = ["sda.blktrace.0", "sda.blktrace.1", "sda.blktrace.12", "sdb.blktrace.2", "sda.blktrace.x"];
    files.iter().try_for_each(|name| std::fs::write(folder.join(name), ""))?;
    let others = |name: &str| siblings(&folder.join(name));
    assert_eq!(others("sda.blktrace.1"), [folder.join("sda.blktrace.0"), folder.join("sda.blktrace.12")]);
    assert_eq!((others("sdb.blktrace.2"), others("plain")), (Vec::new(), Vec::new()));
    Ok(())
}
