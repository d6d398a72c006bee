//! The engine `fstream`: streams of the C++ library.
//!
//! For: what a C++ program pays that calls `read` and `write` of `std::fstream`. Not for: direct I/O. It is there only where fathom
//! was built with the feature `cxx`.

use super::Granted;
use super::one::Call;
use super::streams::{Buffered, Streams};
use super::targets::Targets;
use crate::source::Op;
use crate::worker::Spec;
use std::io;
use sys::arena::Arena;
use sys::fstream::Stream;

pub(super) struct Fstream {
    arena: Arena,
    targets: Targets,
    streams: Streams<Stream>,
}

impl Call for Fstream {
    fn open(spec: &mut Spec) -> io::Result<(Self, Granted)> {
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let targets = Targets::take(spec)?;
        let streams = Streams::open(&targets, Stream::new)?;
        Ok((Self { arena, targets, streams }, Granted::default()))
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
