//! The engine `fallocate`: allocates the blocks of an operation, or gives them back.
//!
//! For: what a file system pays to allocate. A write allocates and makes the file as long as it has to be, a read allocates and
//! leaves its length, a trim punches a hole. Not for: data, of which none is moved.

use super::one::Call;
use super::targets::Targets;
use crate::interface::Granted;
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use rustix::fs::{FallocateFlags, fallocate};
use std::io;

pub(super) struct Fallocate {
    /// The slot, which nobody reads.
    data: Vec<u8>,
    targets: Targets,
}

impl Call for Fallocate {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let data = vec![0; spec.slot_bytes as usize];
        Ok((Self { data, targets: Targets::files(spec)? }, Granted::default()))
    }

    #[inline]
    fn slot_mut(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.data
    }

    #[inline]
    fn carry(&mut self, _slot: u32, op: &Op) -> io::Result<usize> {
        let how = match op.kind {
            Kind::Read => FallocateFlags::KEEP_SIZE,
            Kind::Write => FallocateFlags::empty(),
            Kind::Trim => return self.targets.trim(op),
            Kind::Sync => return self.targets.sync(op),
        };
        // Whatever its direction is, it changes the file.
        fallocate(self.targets.write(op), how, op.offset, u64::from(op.length))?;
        Ok(op.length as usize)
    }
}
