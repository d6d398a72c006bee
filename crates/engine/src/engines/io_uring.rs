//! The engine `io_uring`: operations through the kernel's rings, with registered buffers and files where granted.
//!
//! For: any depth on one thread. Not for: polling modes, which are not offered yet.

use super::{Done, Engine, Granted};
use crate::source::Op;
use crate::worker::Spec;
use model::job::Kind;
use std::io;
use sys::arena::Arena;
use sys::clock::Clock;
use sys::ring::Ring;

pub(super) struct Uring {
    ring: Ring,
    clock: Clock,
}

impl Engine for Uring {
    type Time = Clock;

    fn open(spec: &mut Spec) -> io::Result<(Self, Granted)> {
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let (ring, granted) = Ring::new(arena, std::mem::take(&mut spec.files)).map_err(|e| explain(&e))?;
        Ok((Self { ring, clock: spec.clock }, granted))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.ring.slot_mut(slot)
    }

    #[inline]
    fn queue(&mut self, slot: u32, op: &Op) {
        match op.kind {
            Kind::Read => self.ring.read(slot, u32::from(op.file), op.offset, op.length),
            Kind::Write => self.ring.write(slot, u32::from(op.file), op.offset, op.length),
            Kind::Trim | Kind::Sync => unreachable!("not in the table's kinds"),
        }
    }

    #[inline]
    fn submit(&mut self, wait: u32) -> io::Result<()> {
        self.ring.submit(wait)
    }

    /// With operations in flight the kernel wakes us at their completions. A timer rings some microseconds late, so the
    /// last stretch is spent looking.
    fn pause(&mut self, ns: u64) -> io::Result<()> {
        if self.ring.in_flight() == 0 || ns <= super::OVERSLEEP_NS {
            super::pause(ns);
            return Ok(());
        }
        self.ring.wait(ns - super::OVERSLEEP_NS)
    }

    #[inline]
    fn reap(&mut self, done: &mut [Done]) -> usize {
        self.ring.reap(done)
    }
}

/// Names the likely cause where the kernel refuses any ring at all.
fn explain(error: &io::Error) -> io::Error {
    let cause = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "io_uring is switched off here, by a container's seccomp filter or by sysctl kernel.io_uring_disabled; \
             type --engine sync, or set the sysctl to 0"
        }
        io::ErrorKind::Unsupported => "this kernel has no io_uring; type --engine sync",
        io::ErrorKind::OutOfMemory => "no memory for a ring of this depth; type a smaller --depth",
        _ => "the kernel refuses an io_uring; type --engine sync",
    };
    io::Error::new(error.kind(), format!("{cause} ({error})"))
}
