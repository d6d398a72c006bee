//! Engines whose calls are those of a library's streams.
//!
//! For: a seek only where an operation does not go on in the direction and at the offset of the last one, as a program would.
//! Operations are served from the stream's buffer: what is written may stay there until the buffer is full, the position jumps or
//! a sync comes. Not for: calls of the kernel alone ([`super::positions`]), nor for how each library opens its streams.

use super::one::Call;
use super::targets::Targets;
use crate::interface::Granted;
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use std::fs::File;
use std::io;
use sys::arena::Arena;
use sys::stream::Buffered;

/// A library with streams.
pub(super) trait Library: Buffered + Sized {
    /// How it opens a stream on a file by the options of the engine, and what it grants.
    ///
    /// # Errors
    /// What of the options cannot be.
    fn opener(spec: &WorkerSpec) -> io::Result<(impl Fn(&File) -> io::Result<Self>, Granted)>;
}

/// The call made of a library.
pub(super) struct Streams<S> {
    arena: Arena,
    targets: Targets,
    /// One stream per target, with the direction and the offset where it goes on; between the two directions it has to be told
    /// where.
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
        // A trim is mostly longer than a slot.
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        if op.kind == Kind::Write {
            self.targets.write(op);
        }
        let (stream, position) = &mut self.opened[op.file as usize];
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
