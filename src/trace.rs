//! Traces of other tools: finding their files.
//!
//! For: telling one by its first bytes, and opening all that belongs to it. Not for: what stands in them (crate `capture`), nor what becomes
//! of them.

use crate::failure::{Failure, cause};
use crate::input;
use capture::foreign::Language;
use model::captured::Origin;
use model::name;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const AT_ONCE: usize = 256 << 10;
/// Most CPUs whose files are looked for.
const MOST_CPUS: u32 = 4096;

/// A trace whose files are open.
pub(crate) struct Trace {
    /// What it is.
    pub(crate) language: Language,
    /// Its files: of blktrace those of all CPUs, of the others one.
    pub(crate) files: Vec<BufReader<File>>,
    /// What a capture of it begins with.
    pub(crate) origin: Origin,
}

/// Bytes in which a trace shows what it is.
const BEGINS: u64 = 512;

/// What kind of trace a file is, by its first bytes; what cannot be read is none.
pub(crate) fn trace_language(path: &Path) -> Option<Language> {
    let mut begins = Vec::new();
    input::open(path).ok()?.take(BEGINS).read_to_end(&mut begins).ok()?;
    Language::detect(&begins)
}

/// Opens a trace.
///
/// # Errors
/// [`Failure::Usage`] where it is none that is known, or cannot be read.
pub(crate) fn open_trace(from: &Path) -> Result<Trace, Failure> {
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(from)));
    let open = |path: &Path| -> Result<BufReader<File>, Failure> {
        let file = input::open(path).map_err(|e| usage(format!("{e}{}", cause(&e))))?;
        Ok(BufReader::with_capacity(AT_ONCE, file))
    };
    let mut first = open(from)?;
    let begins = first.fill_buf().map_err(|e| usage(e.to_string()))?;
    let language = Language::detect(begins).ok_or_else(|| {
        usage("it is no trace that fathom knows; type a log of fio (--write_iolog), a file of blktrace or of blkparse, or a CSV file of MSR Cambridge".into())
    })?;
    let mut files = vec![first];
    for other in siblings(from).into_iter().filter(|_| language == Language::Blktrace) {
        files.push(open(&other)?);
    }
    let origin = Origin {
        asked: name::text(from),
        imported: Some(language.name().into()),
        unit: language.unit(),
        queue: language == Language::Blktrace || language == Language::Blkparse,
        version: env!("CARGO_PKG_VERSION").into(),
        ..Origin::default()
    };
    Ok(Trace { language, files, origin })
}

impl Trace {
    /// Its files as they are converted.
    pub(crate) fn readers(files: Vec<BufReader<File>>) -> Vec<Box<dyn BufRead>> {
        files.into_iter().map(|file| Box::new(file) as Box<dyn BufRead>).collect()
    }
}

/// The other files of a trace: blktrace writes one for each CPU, `sda.blktrace.0`, `sda.blktrace.1`, ...
fn siblings(from: &Path) -> Vec<PathBuf> {
    const BEFORE: &[u8] = b".blktrace.";
    let name = from.file_name().unwrap_or_default().as_bytes();
    let Some(at) = name.windows(BEFORE.len()).rposition(|part| part == BEFORE) else {
        return Vec::new();
    };
    let stem = &name[..at + BEFORE.len()];
    let of = |cpu: u32| OsString::from_vec([stem, cpu.to_string().as_bytes()].concat());
    let all = (0..MOST_CPUS).map(|cpu| from.with_file_name(of(cpu)));
    all.filter(|path| path != from && path.is_file()).collect()
}

#[test]
fn the_files_of_all_cpus_are_found_whatever_the_folder_is_called() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    let folder = dir.path().join(OsString::from_vec(b"x.blktrace.y\xff".to_vec()));
    std::fs::create_dir(&folder)?;
    let files = ["sda.blktrace.0", "sda.blktrace.1", "sda.blktrace.12", "sdb.blktrace.2", "sda.blktrace.x"];
    files.iter().try_for_each(|name| std::fs::write(folder.join(name), ""))?;
    let of = |name: &str| siblings(&folder.join(name));
    assert_eq!(of("sda.blktrace.1"), [folder.join("sda.blktrace.0"), folder.join("sda.blktrace.12")]);
    assert_eq!((of("sdb.blktrace.2"), of("plain")), (Vec::new(), Vec::new()));
    Ok(())
}
