//! The target of ioping's requests: a file that is made in a directory, a file, a device.
//!
//! For: opening it, as far as it may be written, and what its lines call it. Not for: requests.

use super::lines::Target;
use crate::plain::buffer::Buffer;
use crate::plain::look::Subject;
use crate::plain::may_write::{Allowed, in_words};
use crate::plain::words::reason;
use dialect::ioping::{Direction, Opened, Ping};
use machine::root::Root;
use machine::{identity, kept_mark, safety, test_file};
use model::name;
use model::payload::split_mix;
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a file that is kept is called, as there.
const KEPT: &str = "ioping.tmp";
/// Most bytes that are written at once while a file is filled.
const FILL_BYTES: u64 = 1 << 20;
/// What a file that is made may be: `rw-------`.
const MODE: u32 = 0o600;
/// How often writes to what is there have to be asked for, as there.
const INSIST: u32 = 3;

/// What is opened.
pub(super) struct Ready {
    pub(super) file: File,
    pub(super) target: Target,
    pub(super) subject: Option<Subject>,
    /// Bytes that requests stay in, from the offset on.
    pub(super) work_bytes: u64,
    /// Of a file that fathom made: its mark is of what the last request left.
    _written: Option<kept_mark::Writing>,
}

/// Opens a target; why not, in ioping's words or fathom's.
pub(super) fn open(root: &Root, said: &Ping, allowed: &Allowed) -> Result<Ready, String> {
    let path = name::path(&said.target);
    let shown = name::shown(&path);
    let facts =
        std::fs::metadata(&path).map_err(|e| format!("ioping: stat \"{shown}\" failed: {}", reason(&e)))?;
    let kind = facts.file_type();
    if !(kind.is_dir() || kind.is_file() || kind.is_block_device()) {
        return Err(format!(
            "ioping: unsupported destination: \"{shown}\"; name a directory, a file or a block device"
        ));
    }
    let writes = said.way != Direction::Read;
    if !kind.is_dir() && writes && said.insisted < INSIST {
        return Err("ioping: think twice, then use -WWW to shred this target".into());
    }
    let (file, bytes, written) = if kind.is_dir() {
        let end =
            said.offset_bytes.checked_add(said.made_bytes).ok_or("ioping: target is too small for this")?;
        let (file, written) = made(root, said, &path, end)?;
        (file, end, written)
    } else {
        there(root, said, &path, &facts, allowed)?
    };
    let wanted = said.work_bytes.unwrap_or(0).checked_add(said.offset_bytes);
    if wanted.is_none_or(|end| end > bytes) {
        return Err("ioping: target is too small for this".into());
    }
    let work_bytes = said.work_bytes.unwrap_or(bytes - said.offset_bytes);
    if said.request_bytes > work_bytes {
        return Err("ioping: request size is too big for this target".into());
    }
    if said.direct {
        fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags | OFlags::DIRECT)).map_err(|e| {
            format!("ioping: fcntl(O_DIRECT) failed, please retry without option -D: {}", reason(&e.into()))
        })?;
    }
    let subject = Subject::of(root, &file, &path);
    let target = Target { path: shown, ..described(&file, subject.as_ref(), bytes) };
    Ok(Ready { file, target, subject, work_bytes, _written: written })
}

/// Flags of opening it.
fn flags(said: &Ping) -> OFlags {
    let sync = match said.opened {
        Opened::Plain => OFlags::empty(),
        Opened::Sync => OFlags::SYNC,
        Opened::Dsync => OFlags::from_bits_retain(sys::open_flags::O_DSYNC.cast_unsigned()),
    };
    let way = if said.way == Direction::Read { OFlags::RDONLY } else { OFlags::RDWR };
    OFlags::CLOEXEC | sync | way
}

fn opened(path: &Path, flags: OFlags) -> Result<File, String> {
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(MODE));
    file.map(File::from)
        .map_err(|e| format!("ioping: failed to open \"{}\": {}", name::shown(path), reason(&e.into())))
}

/// A file or device that is there, with its bytes.
fn there(
    root: &Root,
    said: &Ping,
    path: &Path,
    facts: &Metadata,
    allowed: &Allowed,
) -> Result<(File, u64, Option<kept_mark::Writing>), String> {
    let real = path
        .canonicalize()
        .map_err(|e| format!("ioping: failed to open \"{}\": {}", name::shown(path), reason(&e)))?;
    let planned = identity::of_facts(facts);
    let is_device = facts.file_type().is_block_device();
    if said.way != Direction::Read {
        if is_device {
            allowed.device(root, path)?;
            safety::open_device(root, path, Some(&planned), true, model::job::Cache::Buffered)
                .map_err(|e| in_words(&e))?;
        } else {
            allowed.file(root, path, &real)?;
        }
    }
    let file = opened(&real, flags(said))?;
    safety::must_be_open(root, path, &file, Some(&planned)).map_err(|e| in_words(&e))?;
    let bytes = if is_device {
        sys::ioctl::device_bytes(&file)
            .map_err(|e| format!("ioping: block get size ioctl failed: {}", reason(&e)))?
    } else {
        facts.len()
    };
    let written = (said.way != Direction::Read).then(|| kept_mark::Writing::begin(&real)).flatten();
    Ok((file, bytes, written))
}

/// A file in a directory, full of data, which is gone at the end unless it is to be kept.
fn made(
    root: &Root,
    said: &Ping,
    dir: &Path,
    end: u64,
) -> Result<(File, Option<kept_mark::Writing>), String> {
    test_file::fits(dir, end).map_err(|e| in_words(&e))?;
    let failed = |e: io::Error| {
        format!("ioping: failed to create temporary file at \"{}\": {}", name::shown(dir), reason(&e))
    };
    let flags = (flags(said) - OFlags::RDONLY) | OFlags::RDWR;
    let file = if said.keep { kept(root, dir, flags)? } else { nameless(dir, flags).map_err(failed)? };
    let written = said.keep.then(|| kept_mark::Writing::begin_on(&dir.join(KEPT), &file)).flatten();
    let facts = file.metadata().map_err(failed)?;
    if facts.len() < end || facts.blocks() < facts.len().div_ceil(model::evidence::SECTOR_BYTES) {
        fill(&file, said, end).map_err(|e| format!("ioping: preparation write failed: {}", reason(&e)))?;
    }
    file.sync_all().map_err(|e| format!("ioping: fsync failed: {}", reason(&e)))?;
    Ok((file, written))
}

/// One without a name, or whose name is gone at once.
fn nameless(dir: &Path, flags: OFlags) -> io::Result<File> {
    let mode = Mode::from_raw_mode(MODE);
    if let Ok(file) = rustix::fs::open(dir, flags | OFlags::TMPFILE, mode) {
        return Ok(file.into());
    }
    let path = dir.join(format!("{KEPT}.{}", std::process::id()));
    let file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
    std::fs::remove_file(path)?;
    Ok(file.into())
}

/// One that stays, which is fathom's.
fn kept(root: &Root, dir: &Path, flags: OFlags) -> Result<File, String> {
    let path: PathBuf = dir.join(KEPT);
    if std::fs::symlink_metadata(&path).is_err() {
        return opened(&path, flags | OFlags::CREATE | OFlags::EXCL);
    }
    Allowed::default().file(root, &path, &path)?;
    opened(&path, flags | OFlags::NOFOLLOW)
}

/// In pieces of a request, as there: what the kernel caches in larger pieces it does not drop piece by piece, and reads would find it.
fn fill(file: &File, said: &Ping, end: u64) -> io::Result<()> {
    let piece = said.request_bytes.min(FILL_BYTES);
    let mut buffer = Buffer::new(piece as usize).ok_or(io::ErrorKind::OutOfMemory)?;
    let mut at = said.offset_bytes;
    while at < end {
        let part = (end - at).min(piece) as usize;
        randomize(&mut buffer.bytes()[..part], at);
        file.write_all_at(&buffer.bytes()[..part], at)?;
        at += part as u64;
    }
    Ok(())
}

/// Fills memory with bytes that nothing makes smaller.
pub(super) fn randomize(bytes: &mut [u8], seed: u64) {
    for (at, word) in bytes.chunks_mut(size_of::<u64>()).enumerate() {
        let random = split_mix(seed ^ split_mix(at as u64)).to_le_bytes();
        word.copy_from_slice(&random[..word.len()]);
    }
}

/// What its lines call it.
fn described(file: &File, subject: Option<&Subject>, bytes: u64) -> Target {
    let system = subject.and_then(|s| s.place().file_system.clone());
    let Some(system) = system else {
        return Target { path: String::new(), kind: "block".into(), device: "device".into(), bytes };
    };
    let all = rustix::fs::fstatvfs(file).map_or(0, |s| s.f_blocks.saturating_mul(s.f_frsize));
    Target { path: String::new(), kind: system.kind, device: system.source, bytes: all }
}
