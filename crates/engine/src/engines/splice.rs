//! The engine `splice`: from file to pipe to memory, and back.
//!
//! 1. A read splices from the file into a pipe and copies the bytes out with `read`. With the option `discard` it splices the pipe to /dev/null
//!    instead, so that no byte is copied.
//! 2. A write lends its memory to the pipe (`vmsplice`) and splices the pipe to the file.
//! 3. An operation that is larger than the pipe is executed in parts.

use super::targets::Targets;
use crate::engines::blocking_call::Call;
use crate::interface::{Granted, SYNC, refusal};
use crate::source::Op;
use crate::spec::WorkerSpec;
use crate::spec::{EngineOption, Number};
use model::job::Kind;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};
use std::fs::File;
use std::io;
use sys::arena::Arena;

/// Options of `splice`.
pub(super) const OPTIONS: &[EngineOption] = &[
    EngineOption {
        name: "discard",
        about: "splice what is read to /dev/null instead of copying it to memory",
        number: Number::No,
    },
    EngineOption { name: "pipe", about: "size of the pipe in bytes", number: Number::Must },
];

/// Sizes of a pipe: from a page to the largest power of two in 32 bits.
const PIPE_SIZES: std::ops::RangeInclusive<usize> = 4096..=1 << 31;

pub(super) struct Splice {
    arena: Arena,
    targets: Targets,
    pipe: Pipe,
    /// Destination of reads with `discard`.
    null: Option<File>,
}

impl Call for Splice {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let wanted = spec.options.get("pipe").copied().flatten();
        let pipe = Pipe::new(wanted).map_err(|e| explain(&e, wanted))?;
        let mut granted = Granted::default();
        granted.used.push(format!("pipe of {} bytes", pipe.bytes));
        let mut null = None;
        if spec.options.contains_key("discard") {
            let open = File::options().write(true).open("/dev/null");
            null =
                Some(open.map_err(|e| io::Error::new(e.kind(), format!("option discard: /dev/null: {e}")))?);
            granted.used.push("discard: what is read reaches no memory".into());
        }
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        Ok((Self { arena, targets: Targets::take(spec)?, pipe, null }, granted))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let data = self.arena.slot_mut(slot as usize);
        let (length, part) = (op.length as usize, self.pipe.bytes);
        match op.kind {
            Kind::Read => {
                let (file, null) = (self.targets.read(op), self.null.as_ref());
                in_parts(&mut data[..length], part, op.offset, |data, offset| {
                    self.pipe.read(file, offset, data, null)
                })
            }
            Kind::Write => {
                let file = self.targets.write(op);
                in_parts(&mut data[..length], part, op.offset, |data, offset| {
                    self.pipe.write(file, offset, data)
                })
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

/// Executes an operation in parts until one is short. Returns an error only if nothing was moved.
#[inline]
fn in_parts(
    data: &mut [u8],
    part: usize,
    offset: u64,
    mut execute: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut moved = 0;
    while moved < data.len() {
        let end = data.len().min(moved + part);
        match execute(&mut data[moved..end], offset + moved as u64) {
            Ok(0) => break,
            Ok(bytes) => moved += bytes,
            Err(_) if moved > 0 => break,
            Err(e) => return Err(e),
        }
    }
    Ok(moved)
}

/// A pipe that is empty between operations.
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

    /// Moves bytes from a file to memory, or to /dev/null.
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

    /// Moves bytes from memory to a file.
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

    /// Replaces the pipe after a short part: leftover bytes would be the start of the next part.
    #[cold]
    fn renew(&mut self, moved: usize, error: Option<Errno>) -> io::Result<usize> {
        *self = Self::new(Some(self.bytes as u64))?;
        match error {
            Some(e) if moved == 0 => Err(e.into()),
            _ => Ok(moved),
        }
    }
}

/// Explains why the kernel creates no such pipe.
fn explain(error: &io::Error, wanted: Option<u64>) -> io::Error {
    let (why, instead) = match (wanted, error.kind()) {
        (Some(bytes), io::ErrorKind::PermissionDenied) => (
            format!("option pipe: {bytes} bytes are more than sysctl fs.pipe-max-size allows without root"),
            "type less",
        ),
        (Some(bytes), _) => {
            (format!("option pipe: the kernel makes no pipe of {bytes} bytes"), "type a size from 4k to 2g")
        }
        (None, _) => ("the kernel makes no pipe".into(), SYNC),
    };
    refusal(error.kind(), format!("{why} ({error})"), instead)
}
