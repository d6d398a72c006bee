//! The engines `stdio` and `fstream`: streams of the C and the C++ library. `fstream` needs the feature `cxx`.
//!
//! Operations use the stream's buffer: written data may stay there until the buffer is full, the position jumps or a sync comes. A seek is
//! needed only if an operation does not continue in the direction and at the offset of the last one. Direct I/O is impossible, since the
//! buffers are not aligned.

use super::targets::Targets;
use crate::engines::blocking_call::Call;
use crate::interface::{Granted, refusal};
use crate::source::Op;
use crate::spec::WorkerSpec;
use crate::spec::{EngineOption, Number};
use model::job::Kind;
use std::fs::File;
use std::io;
use sys::arena::Arena;
use sys::stdio::{Buffered, Calls, Stream};

/// A library with streams.
pub(super) trait Library: Buffered + Sized {
    /// Returns how to open a stream on a file with the options of the engine, and the granted features.
    ///
    /// # Errors
    /// A refusal of invalid options.
    fn opener(spec: &WorkerSpec) -> io::Result<(impl Fn(&File) -> io::Result<Self>, Granted)>;
}

/// The blocking call of a library.
pub(super) struct Streams<S> {
    arena: Arena,
    targets: Targets,
    /// One stream per target, with the direction and offset of its next operation: a change of direction needs a seek.
    opened: Vec<(S, Option<(Kind, u64)>)>,
}

impl<S: Library> Call for Streams<S> {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let targets = Targets::take(spec)?;
        let (open, granted) = S::opener(spec)?;
        let opened = targets.all().map(|t| Ok((open(&t.file)?, None))).collect::<io::Result<_>>()?;
        Ok((Self { arena, targets, opened }, granted))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        // A trim may be longer than a slot.
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        if op.kind == Kind::Write {
            self.targets.write(op);
        }
        let (stream, position) = &mut self.opened[op.file as usize];
        // After an error the position is unknown.
        let known = position.take() == Some((op.kind, op.offset));
        if matches!(op.kind, Kind::Read | Kind::Write) && !known {
            stream.seek(op.offset)?;
        }
        let moved = match op.kind {
            Kind::Read => stream.read(&mut data[..length])?,
            Kind::Write => stream.write(&data[..length])?,
            Kind::Trim => {
                stream.flush()?;
                return self.targets.trim(op);
            }
            Kind::Sync => {
                stream.flush()?;
                return self.targets.sync(op);
            }
        };
        *position = Some((op.kind, op.offset + moved as u64));
        Ok(moved)
    }
}

pub(super) const STDIO_OPTIONS: &[EngineOption] = &[
    EngineOption {
        name: "buffer",
        about: "setvbuf with N bytes; 0 for no buffer [default: that of the C library]",
        number: Number::Must,
    },
    EngineOption { name: "getc", about: "fgetc and fputc, byte by byte", number: Number::No },
    EngineOption {
        name: "getc-unlocked",
        about: "getc_unlocked and putc_unlocked, byte by byte without the stream's lock",
        number: Number::No,
    },
];
/// Largest buffer.
const MAX_BUFFER_BYTES: u64 = 1 << 30;

pub(super) type Stdio = Streams<Stream>;

impl Library for Stream {
    fn opener(spec: &WorkerSpec) -> io::Result<(impl Fn(&File) -> io::Result<Self>, Granted)> {
        let has = |name: &str| spec.options.contains_key(name);
        let calls = match (has("getc"), has("getc-unlocked")) {
            (true, true) => {
                let why = "options getc and getc-unlocked exclude each other";
                return Err(refusal(io::ErrorKind::InvalidInput, why, "leave one out"));
            }
            (true, _) => Calls::Bytes,
            (_, true) => Calls::BytesUnlocked,
            _ => Calls::Blocks,
        };
        let buffer = spec.options.get("buffer").copied().flatten();
        if buffer.is_some_and(|b| b > MAX_BUFFER_BYTES) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "option buffer: type 1g or less"));
        }
        let mut used: Vec<String> = buffer.map(|b| format!("buffer of {b} bytes")).into_iter().collect();
        used.extend((calls != Calls::Blocks).then(|| "byte by byte".into()));
        let buffer = buffer.map(|b| b as usize);
        Ok((move |file: &File| Self::new(file, buffer, calls), Granted { used, fallbacks: Vec::new() }))
    }
}

#[cfg(feature = "cxx")]
pub(super) type Fstream = Streams<sys::fstream::Stream>;

#[cfg(feature = "cxx")]
impl Library for sys::fstream::Stream {
    fn opener(_: &WorkerSpec) -> io::Result<(impl Fn(&File) -> io::Result<Self>, Granted)> {
        Ok((Self::new, Granted::default()))
    }
}
