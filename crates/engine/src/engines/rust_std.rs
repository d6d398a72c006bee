//! The engine `std`: Rust's own `File`, or with the option `buffer` a `BufReader` and `BufWriter` around it.
//!
//! With a buffer, written data may stay there until the buffer is full, the position jumps or a sync comes. Direct I/O is impossible, since the
//! buffers are not aligned.

use super::targets::Targets;
use crate::engines::blocking_call::Call;
use crate::interface::Granted;
use crate::source::Op;
use crate::spec::WorkerSpec;
use crate::spec::{EngineOption, Number};
use model::job::Kind;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use sys::arena::Arena;

/// Options of `std`.
pub(super) const OPTIONS: &[EngineOption] = &[EngineOption {
    name: "buffer",
    about: "BufReader and BufWriter with a buffer of N bytes; 0 for their default of 8 KiB",
    number: Number::Must,
}];

/// Default buffer of a `BufReader`.
const DEFAULT_BUFFER_BYTES: u64 = 8192;
/// Largest buffer.
const MAX_BUFFER_BYTES: u64 = 1 << 30;

pub(super) struct RustStd {
    arena: Arena,
    targets: Targets,
    streams: Vec<Stream>,
}

impl Call for RustStd {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let bytes = match spec.options.get("buffer").copied().flatten() {
            Some(0) => Some(DEFAULT_BUFFER_BYTES),
            Some(b) if b > MAX_BUFFER_BYTES => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "option buffer: type 1g or less"));
            }
            bytes => bytes,
        };
        let used = bytes.map(|b| format!("buffer of {b} bytes")).into_iter().collect();
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let targets = Targets::take(spec)?;
        let streams = targets.all().map(|t| Stream::new(&t.file, bytes.map(|b| b as usize)));
        let streams = streams.collect::<io::Result<_>>()?;
        Ok((Self { arena, targets, streams }, Granted { used, fallbacks: Vec::new() }))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        let stream = &mut self.streams[op.file as usize];
        match op.kind {
            Kind::Read => stream.read(op.offset, &mut data[..length]),
            Kind::Write => {
                self.targets.write(op);
                stream.write(op.offset, &data[..length])
            }
            Kind::Trim => {
                stream.flush()?;
                self.targets.trim(op)
            }
            Kind::Sync => {
                stream.flush()?;
                self.targets.sync(op)
            }
        }
    }
}

/// A file for both directions, which share its position: after a change of direction it must be set again.
struct Stream {
    buffering: Buffering,
    reads_at: Option<u64>,
    writes_at: Option<u64>,
}

enum Buffering {
    Plain(File),
    Buffered(BufReader<File>, BufWriter<File>),
}

impl Stream {
    fn new(file: &File, buffer: Option<usize>) -> io::Result<Self> {
        let buffering = match buffer {
            None => Buffering::Plain(file.try_clone()?),
            Some(bytes) => Buffering::Buffered(
                BufReader::with_capacity(bytes, file.try_clone()?),
                BufWriter::with_capacity(bytes, file.try_clone()?),
            ),
        };
        Ok(Self { buffering, reads_at: None, writes_at: None })
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> io::Result<usize> {
        if self.writes_at.is_some() {
            self.flush()?;
        }
        let known = self.reads_at.take() == Some(offset);
        let moved = match &mut self.buffering {
            Buffering::Plain(file) => read_from(file, known, offset, data),
            Buffering::Buffered(reader, _) => read_from(reader, known, offset, data),
        }?;
        self.reads_at = Some(offset + moved as u64);
        Ok(moved)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.reads_at = None;
        let known = self.writes_at.take() == Some(offset);
        match &mut self.buffering {
            Buffering::Plain(file) => write_to(file, known, offset, data),
            Buffering::Buffered(_, writer) => write_to(writer, known, offset, data),
        }?;
        self.writes_at = Some(offset + data.len() as u64);
        Ok(data.len())
    }

    /// Flushes buffered writes, and discards what was read ahead.
    fn flush(&mut self) -> io::Result<()> {
        (self.reads_at, self.writes_at) = (None, None);
        if let Buffering::Buffered(_, writer) = &mut self.buffering { writer.flush() } else { Ok(()) }
    }
}

fn read_from(from: &mut (impl Read + Seek), known: bool, offset: u64, data: &mut [u8]) -> io::Result<usize> {
    if !known {
        from.seek(SeekFrom::Start(offset))?;
    }
    let mut moved = 0;
    // A buffer returns its remaining bytes first.
    while moved < data.len() {
        match from.read(&mut data[moved..])? {
            0 => break,
            bytes => moved += bytes,
        }
    }
    Ok(moved)
}

fn write_to(to: &mut (impl Write + Seek), known: bool, offset: u64, data: &[u8]) -> io::Result<()> {
    if !known {
        to.seek(SeekFrom::Start(offset))?;
    }
    to.write_all(data)
}
