//! The two sides of a copy: what is read and what is written, opened as dd opens them.
//!
//! For: who may be written, decided before anything is cut off. Not for: reading and writing.
//!
//! As everywhere, a device is written only where it is named, and a file only where it is new, empty, fathom's own or named
//! (`machine::safety`); never one that anybody uses. Nothing is at stake in a pipe, a terminal or `/dev/null`.

use crate::plain::may_write::{Allowed, in_words};
use crate::plain::words::reason;
use dialect::dd::{Amount, Conversion, Copy, Flag};
use machine::root::Root;
use machine::{identity, safety};
use model::job::Cache;
use model::name;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a new file may be, before the user's mask: `rw-rw-rw-`.
const NEW_FILE: u32 = 0o666;
/// Standard streams by their numbers.
const STREAMS: [(i32, &str); 2] = [(0, "standard input"), (1, "standard output")];
/// Character devices that keep nothing: null, zero, full, random, urandom; the terminal of the caller.
const KEEP_NOTHING: [(u32, u32); 6] = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0)];
/// Majors of terminals: consoles with serial lines, and pseudo terminals.
const TERMINALS: [RangeInclusive<u32>; 2] = [4..=4, 136..=143];

/// One side.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) file: File,
    /// Its name as dd shows it.
    pub(super) shown: String,
    /// Its name as dd shows it where that is the subject of a sentence.
    pub(super) bare: String,
    /// Where it is; `None` of a standard stream.
    pub(super) path: Option<PathBuf>,
}

impl Side {
    /// Where it is read or written next; `None` where it cannot seek.
    pub(super) fn position(&self) -> Option<u64> {
        rustix::fs::tell(&self.file).ok()
    }
}

/// A name as dd shows it where that is the subject: in quotes only where a shell would need them.
fn bare(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_^".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) { name.to_owned() } else { quoted(name) }
}

/// A name as dd shows it.
fn quoted(name: &str) -> String {
    format!("'{}'", model::visible::visible(name))
}

fn side(file: File, shown: String, path: PathBuf) -> Side {
    Side { file, shown, bare: bare(&name::text(&path)), path: Some(path) }
}

fn failed(shown: &str, error: &io::Error) -> String {
    format!("dd: failed to open {shown}: {}", reason(error))
}

/// What is asked of the kernel when a side is opened.
fn open_flags(flags: &BTreeSet<Flag>) -> OFlags {
    let of = |flag: &Flag| match flag {
        Flag::Append => OFlags::APPEND,
        Flag::Direct => OFlags::DIRECT,
        Flag::Directory => OFlags::DIRECTORY,
        Flag::Dsync => OFlags::from_bits_retain(sys::open_flags::O_DSYNC.cast_unsigned()),
        Flag::Sync => OFlags::SYNC,
        Flag::NonBlock => OFlags::NONBLOCK,
        Flag::NoAtime => OFlags::NOATIME,
        Flag::NoCtty => OFlags::NOCTTY,
        Flag::NoFollow => OFlags::NOFOLLOW,
        Flag::FullBlock | Flag::NoCache | Flag::CountBytes | Flag::SkipBytes | Flag::SeekBytes => {
            OFlags::empty()
        }
    };
    flags.iter().map(of).fold(OFlags::CLOEXEC, |all, one| all | one)
}

/// Opens what is read.
pub(super) fn input(said: &Copy) -> Result<Side, String> {
    let Some(text) = &said.input else { return stream(0, &said.reading, "iflag", "if=") };
    let (path, shown) = (name::path(text), quoted(text));
    let flags = open_flags(&said.reading) | OFlags::RDONLY;
    let file = rustix::fs::open(&path, flags, Mode::empty()).map_err(|e| failed(&shown, &e.into()))?;
    Ok(side(file.into(), shown, path))
}

/// A standard stream, with the flags that can be given to what is open already.
fn stream(number: i32, flags: &BTreeSet<Flag>, operand: &str, instead: &str) -> Result<Side, String> {
    let name = STREAMS.iter().find(|(n, _)| *n == number).map_or("", |(_, name)| name);
    let shown = quoted(name);
    let file = sys::standard::duplicate(number).map_err(|e| failed(&shown, &e))?;
    let later = [Flag::Append, Flag::Direct, Flag::NoAtime, Flag::NonBlock];
    let of_reading = [Flag::FullBlock, Flag::NoCache, Flag::CountBytes, Flag::SkipBytes, Flag::SeekBytes];
    if let Some(flag) = flags.iter().find(|f| !later.contains(f) && !of_reading.contains(f)) {
        return Err(format!(
            "fathom: {operand}={} is given to a file when it is opened, and {name} is open; name it with {instead}",
            format!("{flag:?}").to_lowercase()
        ));
    }
    let wanted = open_flags(flags) - OFlags::CLOEXEC;
    if !wanted.is_empty() {
        fcntl_getfl(&file)
            .and_then(|before| fcntl_setfl(&file, before | wanted))
            .map_err(|e| format!("dd: setting flags for {shown}: {}", reason(&e.into())))?;
    }
    Ok(Side { file, bare: shown.clone(), shown, path: None })
}

/// Opens what is written, where it may be, and cuts it off as dd does.
pub(super) fn output(root: &Root, said: &Copy, allowed: &Allowed) -> Result<Side, String> {
    let Some(text) = &said.output else { return standard_output(said) };
    let (path, shown) = (name::path(text), quoted(text));
    let what = std::fs::metadata(&path);
    let side = match &what {
        Err(e) if e.kind() == io::ErrorKind::NotFound && !said.conversion.contains(&Conversion::NoCreat) => {
            new_file(said, path, shown)?
        }
        Err(e) => return Err(failed(&shown, e)),
        Ok(_) if said.conversion.contains(&Conversion::Excl) => {
            return Err(failed(&shown, &rustix::io::Errno::EXIST.into()));
        }
        Ok(facts) if facts.is_file() => old_file(root, said, path, shown, allowed)?,
        Ok(facts) if facts.file_type().is_block_device() => device(root, said, &path, shown, allowed)?,
        Ok(facts) => {
            if facts.file_type().is_char_device() {
                may_write_character_device(&path, facts.rdev(), allowed)?;
            }
            plain(said, path, shown)?
        }
    };
    cut_off(said, &side)?;
    Ok(side)
}

/// Standard output goes where the shell has sent it, which is for the shell to say; but not over what is stored.
fn standard_output(said: &Copy) -> Result<Side, String> {
    let side = stream(1, &said.writing, "oflag", "of=")?;
    let facts = rustix::fs::fstat(&side.file).map_err(|e| failed(&side.shown, &e.into()))?;
    if FileType::from_raw_mode(facts.st_mode) == FileType::BlockDevice {
        return Err("fathom: standard output is a block device, which a shell may send there by a slip; name it with of= and \
                    --destroy="
            .into());
    }
    Ok(side)
}

/// Creates a file that is not there yet. It gets no mark: what dd copies is the user's data.
fn new_file(said: &Copy, path: PathBuf, shown: String) -> Result<Side, String> {
    // A link that leads nowhere yet cannot be made anew.
    let excl = if std::fs::symlink_metadata(&path).is_ok() { OFlags::empty() } else { OFlags::EXCL };
    let flags = open_flags(&said.writing) | OFlags::WRONLY | OFlags::CREATE | excl;
    let file: File = rustix::fs::open(&path, flags, Mode::from_raw_mode(NEW_FILE))
        .map_err(|e| failed(&shown, &e.into()))?
        .into();
    Ok(side(file, shown, path))
}

/// Whether anything of the output is changed: `count=0 conv=notrunc` only drops it from the page cache, or syncs it.
fn changes(said: &Copy) -> bool {
    !said.conversion.contains(&Conversion::NoTrunc) || said.count.is_none_or(|n| n.bytes(1) != Some(0))
}

/// One that is there: fathom's own, empty, or named.
fn old_file(
    root: &Root,
    said: &Copy,
    path: PathBuf,
    shown: String,
    allowed: &Allowed,
) -> Result<Side, String> {
    let real = path.canonicalize().map_err(|e| failed(&shown, &e))?;
    let planned = identity::of_path(&real).map_err(|e| failed(&shown, &e))?;
    if changes(said) {
        allowed.file(root, &path, &real)?;
    }
    let side = plain(said, path, shown)?;
    safety::must_be_open(root, &real, &side.file, Some(&planned)).map_err(|e| in_words(&e))?;
    Ok(side)
}

/// A block device: only where it is named, and claimed before.
fn device(root: &Root, said: &Copy, path: &Path, shown: String, allowed: &Allowed) -> Result<Side, String> {
    allowed.device(root, path)?;
    let claimed = safety::open_device(root, path, None, true, Cache::Buffered).map_err(|e| in_words(&e))?;
    let is = identity::of_file(&claimed).map_err(|e| failed(&shown, &e))?;
    let side = plain(said, path.to_owned(), shown)?;
    safety::must_be_open(root, path, &side.file, Some(&is)).map_err(|e| in_words(&e))?;
    Ok(side)
}

fn may_write_character_device(path: &Path, device: u64, allowed: &Allowed) -> Result<(), String> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let is_terminal = TERMINALS.iter().any(|majors| majors.contains(&major));
    if is_terminal || allowed.names(path) || KEEP_NOTHING.contains(&(major, minor)) {
        return Ok(());
    }
    Err(format!(
        "fathom: {0} is a device ({major}:{minor}), and writing may change what is stored behind it; if that is meant, type \
         '--destroy={0}'",
        name::shown(path)
    ))
}

fn plain(said: &Copy, path: PathBuf, shown: String) -> Result<Side, String> {
    let flags = open_flags(&said.writing) | OFlags::WRONLY;
    let file = rustix::fs::open(&path, flags, Mode::empty()).map_err(|e| failed(&shown, &e.into()))?;
    Ok(side(file.into(), shown, path))
}

/// Cuts the output off where it is written from, as dd does unless it is told not to.
fn cut_off(said: &Copy, side: &Side) -> Result<(), String> {
    let at = said.seek.bytes(said.output_block_bytes).unwrap_or(u64::MAX);
    let is_to_be = side.file.metadata().is_ok_and(|facts| facts.is_file() && facts.len() != at);
    if said.conversion.contains(&Conversion::NoTrunc) || !is_to_be {
        return Ok(());
    }
    rustix::fs::ftruncate(&side.file, at).map_err(|e| {
        let to =
            if matches!(said.seek, Amount::Blocks(0)) { String::new() } else { format!(" to {at} bytes") };
        format!("dd: failed to truncate{to} in output file {}: {}", side.shown, reason(&e.into()))
    })
}
