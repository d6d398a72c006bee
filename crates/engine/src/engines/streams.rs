//! Streams of a library, for engines whose calls go on from where a stream is.
//!
//! For: a seek only where an operation does not go on in the direction and at the offset of the last one, as a program would.
//! Operations are served from the stream's buffer: what is written may stay there until the buffer is full, the position jumps or
//! a sync comes. Not for: calls of the kernel alone ([`super::positions`]).

use super::targets::Targets;
use crate::source::Op;
use model::job::Kind;
use std::fs::File;
use std::io;

/// What a library does with a stream.
pub(super) trait Buffered: Sized {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize>;
    fn write(&mut self, data: &[u8]) -> io::Result<usize>;
    fn seek(&mut self, offset: u64) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()>;
}

/// One stream per target, with the direction and the offset where it goes on; between the two directions it has to be told where.
pub(super) struct Streams<S>(Vec<(S, Option<(Kind, u64)>)>);

impl<S: Buffered> Streams<S> {
    /// Opens them all.
    pub(super) fn open(targets: &Targets, open: impl Fn(&File) -> io::Result<S>) -> io::Result<Self> {
        targets.all().map(|t| Ok((open(&t.file)?, None))).collect::<io::Result<_>>().map(Self)
    }

    /// Carries an operation with the slot of its data; a trim is mostly longer than that.
    #[inline]
    pub(super) fn carry(&mut self, targets: &Targets, slot: &mut [u8], op: &Op) -> io::Result<usize> {
        let length = op.length as usize;
        if op.kind == Kind::Write {
            targets.write(op);
        }
        let (stream, position) = &mut self.0[op.file as usize];
        // After an error nobody knows where the stream is.
        let known = position.take() == Some((op.kind, op.offset));
        if matches!(op.kind, Kind::Read | Kind::Write) && !known {
            stream.seek(op.offset)?;
        }
        let moved = match op.kind {
            Kind::Read => stream.read(&mut slot[..length])?,
            Kind::Write => stream.write(&slot[..length])?,
            Kind::Trim => {
                stream.flush()?;
                return targets.trim(op);
            }
            Kind::Sync => {
                stream.flush()?;
                return targets.sync(op);
            }
        };
        *position = Some((op.kind, op.offset + moved as u64));
        Ok(moved)
    }
}
