//! The engine `ftruncate`: each write sets the length of the file to the offset of the operation.
//!
//! For: what a file system pays to cut files off and to make them longer. Not for: data, of which none is moved: the length of an
//! operation counts for nothing but the next offset.

use super::one::Call;
use super::targets::Targets;
use crate::interface::Granted;
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use std::io;

pub(super) struct Ftruncate {
    /// The slot, which nobody reads.
    data: Vec<u8>,
    targets: Targets,
}

impl Call for Ftruncate {
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
        match op.kind {
            Kind::Write => {
                self.targets.write(op).set_len(op.offset)?;
                Ok(op.length as usize)
            }
            Kind::Sync => self.targets.sync(op),
            Kind::Read | Kind::Trim => unreachable!("not in the table's kinds"),
        }
    }
}
