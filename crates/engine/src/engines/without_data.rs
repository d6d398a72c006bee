//! The engines `fallocate` and `ftruncate`, which change a file and move no data. They measure what it costs a file
//! system to allocate and free blocks, and to change the length of a file.

use crate::engines::targets::Targets;
use crate::interface::{Call, Granted};
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use rustix::fs::{FallocateFlags, fallocate};
use std::io;
use std::marker::PhantomData;

/// The engine `fallocate`.
pub(super) type Fallocate = WithoutData<AllocateBlocks>;

/// The engine `ftruncate`.
pub(super) type Ftruncate = WithoutData<SetLength>;

/// A call that changes files and moves no data.
pub(super) struct WithoutData<C> {
    /// One buffer for all slots. Operations never use its data.
    data: Vec<u8>,
    targets: Targets,
    change: PhantomData<C>,
}

/// The change to a file that one operation makes.
pub(super) trait Change {
    /// Changes the file of an operation. Returns the length of the operation, or 0 for a sync.
    fn apply(targets: &Targets, op: &Op) -> io::Result<usize>;
}

impl<C: Change> Call for WithoutData<C> {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let data = vec![0; spec.slot_bytes as usize];
        Ok((Self { data, targets: Targets::take_files(spec)?, change: PhantomData }, Granted::default()))
    }

    #[inline]
    fn slot_mut(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.data
    }

    #[inline]
    fn execute(&mut self, _slot: u32, op: &Op) -> io::Result<usize> {
        C::apply(&self.targets, op)
    }
}

/// A write allocates blocks and extends the file, a read allocates blocks and keeps the length, a trim punches a hole.
pub(super) struct AllocateBlocks;

impl Change for AllocateBlocks {
    #[inline]
    fn apply(targets: &Targets, op: &Op) -> io::Result<usize> {
        let how = match op.kind {
            Kind::Read => FallocateFlags::KEEP_SIZE,
            Kind::Write => FallocateFlags::empty(),
            Kind::Trim => return targets.trim(op),
            Kind::Sync => return targets.sync(op),
        };
        // A read allocates blocks too, so the file must be writable.
        fallocate(targets.write(op), how, op.offset, u64::from(op.length))?;
        Ok(op.length as usize)
    }
}

/// A write sets the length of the file to the offset of the write.
pub(super) struct SetLength;

impl Change for SetLength {
    #[inline]
    fn apply(targets: &Targets, op: &Op) -> io::Result<usize> {
        match op.kind {
            Kind::Write => {
                targets.write(op).set_len(op.offset)?;
                Ok(op.length as usize)
            }
            Kind::Sync => targets.sync(op),
            Kind::Read | Kind::Trim => unreachable!("the entry in ENGINES has no such kind"),
        }
    }
}
