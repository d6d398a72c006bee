//! The engine `stdio`: streams of the C library.
//!
//! For: what a C program pays that calls `fread` and `fwrite`, or `fgetc` and `fputc`. Not for: direct I/O, whose alignment the
//! stream's buffer does not have.

use super::one::Call;
use super::streams::{Buffered, Streams};
use super::targets::Targets;
use super::{EngineOption, Granted, Number};
use crate::source::Op;
use crate::worker::Spec;
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
    streams: Streams<Stream>,
}

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
        let streams = Streams::open(&targets, |file| Stream::new(file, buffer.map(|b| b as usize), calls))?;
        Ok((Self { arena, targets, streams }, Granted { used, fallbacks: Vec::new() }))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        self.streams.carry(&self.targets, self.arena.slot_mut(slot as usize), op)
    }
}

impl Buffered for Stream {
    #[inline]
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        Self::read(self, data)
    }

    #[inline]
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Self::write(self, data)
    }

    #[inline]
    fn seek(&mut self, offset: u64) -> io::Result<()> {
        Self::seek(self, offset)
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::flush(self)
    }
}
