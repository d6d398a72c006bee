//! The engine `fstream`: streams of the C++ library.
//!
//! For: what a C++ program pays that calls `read` and `write` of `std::fstream`. Operations are served from the stream's buffer:
//! what is written may stay there until the buffer is full, the position jumps or a sync comes. Not for: direct I/O. It is there
//! only where fathom was built with the feature `cxx`.

use super::Granted;
use super::one::Call;
use super::targets::Targets;
use crate::source::Op;
use crate::worker::Spec;
use model::job::Kind;
use std::io;
use sys::arena::Arena;
use sys::fstream::Stream;

pub(super) struct Fstream {
    arena: Arena,
    targets: Targets,
    /// With the direction and the offset where each goes on; between the two directions it has to be told where.
    streams: Vec<(Stream, Option<(Kind, u64)>)>,
}

impl Call for Fstream {
    fn open(spec: &mut Spec) -> io::Result<(Self, Granted)> {
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let targets = Targets::take(spec)?;
        let streams = targets.all().map(|t| Ok((Stream::new(&t.file)?, None))).collect::<io::Result<_>>()?;
        Ok((Self { arena, targets, streams }, Granted::default()))
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
