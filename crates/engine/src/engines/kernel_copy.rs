//! The engines `splice`, `sendfile` and `copy_file_range`: the kernel moves the bytes of an
//! operation from one descriptor to another.
//!
//! `splice` moves bytes through a pipe:
//! 1. A read splices from the file into the pipe and copies the bytes out with `read`. With the
//!    option `discard` it splices the pipe to /dev/null instead, so that no byte is copied.
//! 2. A write lends its memory to the pipe (`vmsplice`) and splices the pipe to the file.
//! 3. An operation that is larger than the pipe is executed in parts.
//!
//! `sendfile` copies between the target and a file in memory whose pages are the slots, so the
//! kernel copies every byte once. sendfile writes at the file position, so an operation seeks first
//! if the position is elsewhere. No socket is involved, so the cost of sockets is not measured.
//!
//! `copy_file_range` copies between the target and an unnamed file in the same directory. The
//! unnamed file has a range for each slot. A read copies into the slot's range and reads the bytes
//! with `pread`. A write puts its bytes into the range with `pwrite` and copies from there. With
//! the option `bare` the calls of `pread` and `pwrite` are omitted, and no byte reaches memory. A
//! file system that can share blocks between files may move no data. Block devices and direct I/O
//! are not supported.

use crate::engines::targets::{Positions, Targets};
use crate::interface::{Call, Granted, USE_SYNC, refusal};
use crate::source::Op;
use crate::spec::{EngineOption, WorkerSpec};
use model::job::Kind;
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, copy_file_range, sendfile};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use sys::arena::{Arena, MemoryFile};

pub(super) const SPLICE_OPTIONS: &[EngineOption] = &[
    EngineOption::without_data("discard", "splice read data to /dev/null instead of copying them to memory"),
    EngineOption::with_number("pipe", "size of the pipe in bytes"),
];

/// Allowed pipe sizes in bytes: from one page to 2 GiB, the kernel's maximum.
const PIPE_SIZES: std::ops::RangeInclusive<usize> = 4096..=1 << 31;

pub(super) struct Splice {
    arena: Arena,
    targets: Targets,
    pipe: Pipe,
    /// An open `/dev/null`, to which the option `discard` sends read data; `None` without the
    /// option.
    null: Option<File>,
}

impl Call for Splice {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let wanted = spec.options.get("pipe").copied().flatten();
        let pipe = Pipe::new(wanted).map_err(|e| explain_pipe(&e, wanted))?;
        let mut granted = Granted::default();
        granted.used.push(format!("pipe of {} bytes", pipe.bytes));
        let mut null = None;
        if spec.options.contains_key("discard") {
            let open = File::options().write(true).open("/dev/null");
            null = Some(open.map_err(|e| {
                io::Error::new(e.kind(), format!("option discard: /dev/null cannot be opened: {e}"))
            })?);
            granted.used.push("discard: what is read goes to /dev/null, not to memory".into());
        }
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        Ok((Self { arena, targets: Targets::take(spec)?, pipe, null }, granted))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn execute(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let data = self.arena.slot_mut(slot as usize);
        let (length, pipe_bytes) = (op.length as usize, self.pipe.bytes);
        let part = |moved: usize| moved..length.min(moved + pipe_bytes);
        match op.kind {
            Kind::Read => {
                let (file, null) = (self.targets.read(op), self.null.as_ref());
                move_all(length, |moved| {
                    self.pipe.read(file, op.offset + moved as u64, &mut data[part(moved)], null)
                })
            }
            Kind::Write => {
                let file = self.targets.write(op);
                move_all(length, |moved| self.pipe.write(file, op.offset + moved as u64, &data[part(moved)]))
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

/// Repeats a call until all bytes are moved, or until the call moves nothing or fails. `call` gets the number of bytes moved so far.
/// Returns an error only if no byte was moved.
#[inline]
fn move_all(bytes: usize, mut call: impl FnMut(usize) -> io::Result<usize>) -> io::Result<usize> {
    let mut moved = 0;
    while moved < bytes {
        match call(moved) {
            Ok(0) => break,
            Ok(more) => moved += more,
            Err(_) if moved > 0 => break,
            Err(e) => return Err(e),
        }
    }
    Ok(moved)
}

/// A pipe. It is empty between operations.
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    bytes: usize,
}

impl Pipe {
    fn new(wanted: Option<u64>) -> io::Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        if let Some(bytes) = wanted {
            // The kernel would silently round small sizes up and truncate large ones.
            let bytes = usize::try_from(bytes).ok().filter(|b| PIPE_SIZES.contains(b)).ok_or(Errno::INVAL)?;
            fcntl_setpipe_size(&into, bytes)?;
        }
        let bytes = fcntl_getpipe_size(&into)?;
        Ok(Self { out, into, bytes })
    }

    /// Moves bytes from a file to memory, or to /dev/null. Returns the number of moved bytes.
    fn read(&mut self, file: &File, offset: u64, data: &mut [u8], null: Option<&File>) -> io::Result<usize> {
        let inside = splice(file, Some(&mut { offset }), &self.into, None, data.len(), SpliceFlags::empty())?;
        let mut taken = 0;
        while taken < inside {
            let answer = match null {
                None => rustix::io::read(&self.out, &mut data[taken..inside]),
                Some(null) => splice(&self.out, None, null, None, inside - taken, SpliceFlags::empty()),
            };
            match answer {
                Ok(bytes) if bytes > 0 => taken += bytes,
                early => return self.renew(taken, early.err()),
            }
        }
        Ok(inside)
    }

    /// Moves bytes from memory to a file. Returns the number of moved bytes.
    fn write(&mut self, file: &File, offset: u64, data: &[u8]) -> io::Result<usize> {
        let inside = sys::io_vectors::lend(&self.into, data)?;
        let mut moved = 0;
        while moved < inside {
            let at = offset + moved as u64;
            match splice(&self.out, None, file, Some(&mut { at }), inside - moved, SpliceFlags::empty()) {
                Ok(bytes) if bytes > 0 => moved += bytes,
                early => return self.renew(moved, early.err()),
            }
        }
        Ok(inside)
    }

    /// Replaces the pipe after a short call: bytes left in the pipe would be the start of the next
    /// part. Returns `moved`, or the error if no byte was moved.
    #[cold]
    fn renew(&mut self, moved: usize, error: Option<Errno>) -> io::Result<usize> {
        *self = Self::new(Some(self.bytes as u64))?;
        match error {
            Some(e) if moved == 0 => Err(e.into()),
            _ => Ok(moved),
        }
    }
}

/// Explains why the kernel did not create a pipe of the wanted size.
fn explain_pipe(error: &io::Error, wanted: Option<u64>) -> io::Error {
    let (why, instead) = match (wanted, error.kind()) {
        (Some(bytes), io::ErrorKind::PermissionDenied) => (
            format!(
                "option pipe: {bytes} bytes exceed a limit for users other than root (sysctl fs.pipe-max-size or fs.pipe-user-pages-soft)"
            ),
            "type a smaller size",
        ),
        (Some(bytes), _) => {
            (format!("option pipe: the kernel creates no pipe of {bytes} bytes"), "type a size from 4k to 2g")
        }
        (None, _) => ("the kernel creates no pipe".into(), USE_SYNC),
    };
    refusal(error.kind(), format!("{why} ({error})"), instead)
}

pub(super) struct Sendfile {
    memory: MemoryFile,
    targets: Targets,
    positions: Positions,
    /// The current position of the memory file.
    memory_position: Positions,
}

impl Call for Sendfile {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let memory = MemoryFile::new(spec.slots(), spec.slot_bytes as usize)?;
        let (positions, memory_position) = (Positions::for_files(spec.files.len()), Positions::for_files(1));
        Ok((Self { memory, targets: Targets::take(spec)?, positions, memory_position }, Granted::default()))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.memory.slot_mut(slot as usize)
    }

    #[inline]
    fn execute(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (file, inside) = (self.memory.file(), self.memory.offset(slot as usize));
        match op.kind {
            Kind::Read => {
                let to = Op { offset: inside, file: 0, ..*op };
                self.memory_position.seek_to(file, &to)?;
                self.memory_position
                    .moved(&to, send_all(file, self.targets.read(op), op.offset, op.length as usize))
            }
            Kind::Write => {
                let target = self.targets.write(op);
                self.positions.seek_to(target, op)?;
                self.positions.moved(op, send_all(target, file, inside, op.length as usize))
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

/// Calls sendfile until all bytes are moved or the source ends.
#[inline]
fn send_all(to: &File, from: &File, mut offset: u64, bytes: usize) -> io::Result<usize> {
    move_all(bytes, |moved| Ok(sendfile(to, from, Some(&mut offset), bytes - moved)?))
}

pub(super) const COPY_OPTIONS: &[EngineOption] = &[EngineOption::without_data(
    "bare",
    "copy only between the target and the other file: no byte enters or leaves this process",
)];

pub(super) struct CopyFileRange {
    arena: Arena,
    targets: Targets,
    /// The unnamed file at the other end of the copy, with a range for each slot.
    other_file: File,
    /// Distance between the ranges of consecutive slots in the unnamed file, in bytes.
    stride: u64,
    bare: bool,
}

impl Call for CopyFileRange {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let bare = spec.options.contains_key("bare");
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let stride = u64::from(spec.slot_bytes).next_multiple_of(4096);
        let other_file = unnamed_copy_file(spec)?;
        // Write zeros first, because a bare write would otherwise copy holes.
        let zeros = vec![0; stride as usize];
        (0..spec.slots() as u64).try_for_each(|slot| other_file.write_all_at(&zeros, slot * stride))?;
        let used = bare.then(|| "bare: no byte enters or leaves this process".into());
        let granted = Granted { used: used.into_iter().collect(), fallbacks: Vec::new() };
        Ok((Self { arena, targets: Targets::take(spec)?, other_file, stride, bare }, granted))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn execute(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let inside = u64::from(slot) * self.stride;
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        match op.kind {
            Kind::Read => {
                let moved = copy_all(self.targets.read(op), op.offset, &self.other_file, inside, length)?;
                if !self.bare {
                    self.other_file.read_exact_at(&mut data[..moved], inside)?;
                }
                Ok(moved)
            }
            Kind::Write => {
                let target = self.targets.write(op);
                if !self.bare {
                    self.other_file.write_all_at(&data[..length], inside)?;
                }
                copy_all(&self.other_file, inside, target, op.offset, length)
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

/// Creates an unnamed file in the directory of the target.
fn unnamed_copy_file(spec: &WorkerSpec) -> io::Result<File> {
    let refuse = |why: &str, instead: &str| Err(refusal(io::ErrorKind::Unsupported, why, instead));
    let Some(first) = spec.files.first() else { return refuse("the engine has no target", "name one") };
    let device = first.file.metadata()?;
    if !device.is_file() {
        return refuse(
            "copy_file_range works only between files",
            "name a file or a directory, or type --engine sync",
        );
    }
    // Each worker thread has its own file table, so use the thread's `/proc` entry.
    let link = format!("/proc/thread-self/fd/{}", first.file.as_raw_fd());
    let path = match std::fs::read_link(&link) {
        Ok(path) => path,
        Err(e) => {
            return refuse(
                &format!("the directory of the target is unknown ({link}: {e})"),
                "mount proc on /proc, or type --engine sync",
            );
        }
    };
    let dir = path.parent().unwrap_or(&path);
    let flags = OFlags::TMPFILE.bits().cast_signed();
    let created = File::options().read(true).write(true).mode(0o600).custom_flags(flags).open(dir);
    let created = match created {
        Ok(created) => created,
        Err(e) => {
            let dir = model::name::shown(dir);
            return refuse(
                &format!(
                    "the engine needs a second file next to the target, and {dir} allows no unnamed files ({e})"
                ),
                "type --engine sync",
            );
        }
    };
    for target in &spec.files {
        if target.file.metadata()?.dev() != created.metadata()?.dev() {
            return refuse("the targets are on several file systems", "name targets on one file system");
        }
    }
    Ok(created)
}

/// Copies until all bytes are moved or the source ends.
#[inline]
fn copy_all(from: &File, mut read_at: u64, to: &File, mut write_at: u64, bytes: usize) -> io::Result<usize> {
    move_all(bytes, |moved| {
        Ok(copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), bytes - moved)?)
    })
}
