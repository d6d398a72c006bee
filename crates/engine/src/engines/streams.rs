//! The engines `stdio`, `fstream` and `std`: the buffered files of the C, C++ and Rust libraries. `fstream` needs the feature `cxx`.
//! `std` is a plain `File`, or with the option `buffer` a `BufReader` and a `BufWriter` around it.
//!
//! Operations use the library's buffer: written data may stay there until the buffer is full, the position jumps or a sync comes. A seek is
//! needed only if an operation does not continue in the direction and at the offset of the last one. Direct I/O is impossible, since the
//! buffers are not aligned.

use crate::engines::targets::Targets;
use crate::interface::{Call, Granted, refusal};
use crate::source::Op;
use crate::spec::{EngineOption, WorkerSpec};
use model::job::Kind;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use sys::arena::Arena;
use sys::stdio::{Buffered, Calls, Stream};

/// A language's library for buffered files.
pub(super) trait Library: Buffered + Sized {
    /// Returns a function that opens a stream on a file, and the features that the library granted.
    ///
    /// # Errors
    ///
    /// A refusal of invalid options.
    fn opener(spec: &WorkerSpec) -> io::Result<(impl Fn(&File) -> io::Result<Self>, Granted)>;
}

/// The blocking call of a library with buffered files.
pub(super) struct Streams<S> {
    arena: Arena,
    targets: Targets,
    /// One stream per target, with the direction and offset at which it continues; `None` if unknown. Any other operation
    /// needs a seek first.
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
    fn execute(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        // The buffer is sliced only for reads and writes, because a trim may be longer than a slot.
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        if op.kind == Kind::Write {
            self.targets.write(op);
        }
        let (stream, position) = &mut self.opened[op.file as usize];
        // After an error the position is unknown.
        let is_in_place = position.take() == Some((op.kind, op.offset));
        if matches!(op.kind, Kind::Read | Kind::Write) && !is_in_place {
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

/// Maximum buffer size in bytes.
const MAX_BUFFER_BYTES: u64 = 1 << 30;

/// Returns the number of the option `buffer`; `None` without the option.
fn buffer_bytes(spec: &WorkerSpec) -> io::Result<Option<usize>> {
    let bytes = spec.options.get("buffer").copied().flatten();
    if let Some(bytes) = bytes.filter(|bytes| *bytes > MAX_BUFFER_BYTES) {
        let why = format!("option buffer={bytes}: type 1g or less");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(bytes.map(|b| b as usize))
}

pub(super) const STDIO_OPTIONS: &[EngineOption] = &[
    EngineOption::with_number(
        "buffer",
        "setvbuf with N bytes; 0 for no buffer [default: that of the C library]",
    ),
    EngineOption::new("getc", "fgetc and fputc, byte by byte"),
    EngineOption::new(
        "getc-unlocked",
        "getc_unlocked and putc_unlocked, byte by byte without the stream's lock",
    ),
];

pub(super) type Stdio = Streams<Stream>;

impl Library for Stream {
    fn opener(spec: &WorkerSpec) -> io::Result<(impl Fn(&File) -> io::Result<Self>, Granted)> {
        let has = |name: &str| spec.options.contains_key(name);
        let calls = match (has("getc"), has("getc-unlocked")) {
            (true, true) => {
                let why = "options getc and getc-unlocked exclude each other";
                return Err(refusal(io::ErrorKind::InvalidInput, why, "leave one of the two options out"));
            }
            (true, _) => Calls::Bytes,
            (_, true) => Calls::BytesUnlocked,
            _ => Calls::Blocks,
        };
        let buffer = buffer_bytes(spec)?;
        let mut used: Vec<String> = buffer.map(|b| format!("buffer of {b} bytes")).into_iter().collect();
        used.extend((calls != Calls::Blocks).then(|| "byte by byte".into()));
        Ok((move |file: &File| Self::new(file, buffer, calls), Granted { used, fallbacks: Vec::new() }))
    }
}

#[cfg(feature = "cxx")]
pub(super) type Fstream = Streams<sys::stdio::cxx::Stream>;

#[cfg(feature = "cxx")]
impl Library for sys::stdio::cxx::Stream {
    fn opener(_: &WorkerSpec) -> io::Result<(impl Fn(&File) -> io::Result<Self>, Granted)> {
        Ok((Self::new, Granted::default()))
    }
}

pub(super) const STD_OPTIONS: &[EngineOption] = &[EngineOption::with_number(
    "buffer",
    "BufReader and BufWriter with a buffer of N bytes; 0 for their default of 8 KiB",
)];

/// Default buffer size of a `BufReader` in bytes.
const DEFAULT_BUFFER_BYTES: usize = 8192;

pub(super) type RustStd = Streams<RustStream>;

/// A file with a reader and a writer that share its position.
pub(super) struct RustStream {
    buffering: Buffering,
    /// The position to which the reader or the writer must seek before its next use; `None` if no seek is
    /// needed.
    seek_to: Option<u64>,
    /// Whether the last use was a write that succeeded, so that its data may still be in the buffer.
    has_written: bool,
}

enum Buffering {
    Plain(File),
    Buffered(BufReader<File>, BufWriter<File>),
}

impl Library for RustStream {
    fn opener(spec: &WorkerSpec) -> io::Result<(impl Fn(&File) -> io::Result<Self>, Granted)> {
        let bytes = buffer_bytes(spec)?.map(|bytes| if bytes == 0 { DEFAULT_BUFFER_BYTES } else { bytes });
        let used = bytes.map(|b| format!("buffer of {b} bytes")).into_iter().collect();
        Ok((move |file: &File| Self::new(file, bytes), Granted { used, fallbacks: Vec::new() }))
    }
}

impl RustStream {
    fn new(file: &File, buffer: Option<usize>) -> io::Result<Self> {
        let buffering = match buffer {
            None => Buffering::Plain(file.try_clone()?),
            Some(bytes) => Buffering::Buffered(
                BufReader::with_capacity(bytes, file.try_clone()?),
                BufWriter::with_capacity(bytes, file.try_clone()?),
            ),
        };
        Ok(Self { buffering, seek_to: None, has_written: false })
    }
}

impl Buffered for RustStream {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        if self.has_written {
            self.flush()?;
        }
        let seek_to = self.seek_to.take();
        match &mut self.buffering {
            Buffering::Plain(file) => read_from(file, seek_to, data),
            Buffering::Buffered(reader, _) => read_from(reader, seek_to, data),
        }
    }

    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.has_written = false;
        let seek_to = self.seek_to.take();
        match &mut self.buffering {
            Buffering::Plain(file) => write_to(file, seek_to, data),
            Buffering::Buffered(_, writer) => write_to(writer, seek_to, data),
        }?;
        self.has_written = true;
        Ok(data.len())
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.seek_to = Some(offset);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.has_written = false;
        if let Buffering::Buffered(_, writer) = &mut self.buffering { writer.flush() } else { Ok(()) }
    }
}

fn read_from(from: &mut (impl Read + Seek), seek_to: Option<u64>, data: &mut [u8]) -> io::Result<usize> {
    if let Some(offset) = seek_to {
        from.seek(SeekFrom::Start(offset))?;
    }
    let mut moved = 0;
    // A read first returns what is left in the buffer, so several reads may be needed.
    while moved < data.len() {
        match from.read(&mut data[moved..])? {
            0 => break,
            bytes => moved += bytes,
        }
    }
    Ok(moved)
}

fn write_to(to: &mut (impl Write + Seek), seek_to: Option<u64>, data: &[u8]) -> io::Result<()> {
    if let Some(offset) = seek_to {
        to.seek(SeekFrom::Start(offset))?;
    }
    to.write_all(data)
}
