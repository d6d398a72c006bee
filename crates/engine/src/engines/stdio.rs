//! The engine `stdio`: streams of the C library.
//!
//! For: what a C program pays that calls `fread` and `fwrite`, or `fgetc` and `fputc`. Operations are served from the stream's
//! buffer: what is written may stay there until the buffer is full, the position jumps or a sync comes. Not for: direct I/O,
//! whose alignment such a buffer does not have.

use super::one::Call;
use super::targets::Targets;
use super::{EngineOption, Granted, Number};
use crate::source::Op;
use crate::worker::Spec;
use model::job::Kind;
use std::io;
use sys::arena::Arena;
use sys::stdio::{Calls, Stream};

/// Its options.
pub(super) const OPTIONS: &[EngineOption] = &[
    EngineOption {
        name: "buffer",
        about: "setvbuf with so many bytes; 0 for none [default: what the C library takes]",
        number: Number::Must,
    },
    EngineOption { name: "getc", about: "fgetc and fputc, byte by byte", number: Number::No },
    EngineOption {
        name: "getc-unlocked",
        about: "getc_unlocked and putc_unlocked, byte by byte without the stream's lock",
        number: Number::No,
    },
];

/// Larger buffers are a slip.
const MOST_BYTES: u64 = 1 << 30;

pub(super) struct Stdio {
    arena: Arena,
    targets: Targets,
    streams: Vec<(Stream, Position)>,
}

/// Where a stream goes on, and in which direction: between the two it has to be told where.
type Position = Option<(Kind, u64)>;

impl Call for Stdio {
    fn open(spec: &mut Spec) -> io::Result<(Self, Granted)> {
        let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()));
        let has = |name: &str| spec.options.contains_key(name);
        let calls = match (has("getc"), has("getc-unlocked")) {
            (true, true) => {
                return refuse("options getc and getc-unlocked exclude each other; leave one out");
            }
            (true, _) => Calls::Bytes,
            (_, true) => Calls::BytesUnlocked,
            _ => Calls::Blocks,
        };
        let buffer = spec.options.get("buffer").copied().flatten();
        if buffer.is_some_and(|b| b > MOST_BYTES) {
            return refuse("option buffer: type 1g or less");
        }
        let mut used: Vec<String> = buffer.map(|b| format!("buffer of {b} bytes")).into_iter().collect();
        used.extend((calls != Calls::Blocks).then(|| "byte by byte".into()));
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let targets = Targets::take(spec)?;
        let stream = |file| Ok((Stream::new(file, buffer.map(|b| b as usize), calls)?, None));
        let streams = targets.all().map(|t| stream(&t.file)).collect::<io::Result<_>>()?;
        Ok((Self { arena, targets, streams }, Granted { used, fallbacks: Vec::new() }))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        if op.kind == Kind::Write {
            self.targets.write(op);
        }
        let (stream, position) = &mut self.streams[op.file as usize];
        // After an error nobody knows where the stream is.
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
