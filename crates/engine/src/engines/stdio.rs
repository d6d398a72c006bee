//! The engine `stdio`: streams of the C library.
//!
//! For: what a C program pays that calls `fread` and `fwrite`, or `fgetc` and `fputc`. Not for: direct I/O, whose alignment the
//! stream's buffer does not have.

use super::streams::{Library, Streams};
use crate::facts::{EngineOption, Number};
use crate::interface::Granted;
use crate::refusal::refusal;
use crate::spec::WorkerSpec;
use std::fs::File;
use std::io;
use sys::stdio::{Calls, Stream};

/// Its options.
pub(super) const OPTIONS: &[EngineOption] = &[
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

/// Larger buffers are a slip.
const MOST_BYTES: u64 = 1 << 30;

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
        if buffer.is_some_and(|b| b > MOST_BYTES) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "option buffer: type 1g or less"));
        }
        let mut used: Vec<String> = buffer.map(|b| format!("buffer of {b} bytes")).into_iter().collect();
        used.extend((calls != Calls::Blocks).then(|| "byte by byte".into()));
        let buffer = buffer.map(|b| b as usize);
        Ok((move |file: &File| Self::new(file, buffer, calls), Granted { used, fallbacks: Vec::new() }))
    }
}
