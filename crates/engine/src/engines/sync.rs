//! The engine `sync`: pread and pwrite.
//!
//! For: one operation at a time, the plainest interface there is. Not for: flags per operation; that is `vsync`.

use super::Granted;
use super::one::Call;
use super::targets::Targets;
use crate::source::Op;
use crate::worker::Spec;
use model::job::Kind;
use std::io;
use std::os::unix::fs::FileExt;
use sys::arena::Arena;

pub(super) struct Sync {
    arena: Arena,
    targets: Targets,
}

impl Call for Sync {
    fn open(spec: &mut Spec) -> io::Result<(Self, Granted)> {
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        Ok((Self { arena, targets: Targets::take(spec)? }, Granted::default()))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        match op.kind {
            Kind::Read => self.targets.read(op).read_at(&mut data[..length], op.offset),
            Kind::Write => self.targets.write(op).write_at(&data[..length], op.offset),
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}
