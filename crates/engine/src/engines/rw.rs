//! The engine `rw`: read and write from the position of the file. It seeks only if an operation does not begin where the last one ended. With
//! the option `vectors` an operation uses several buffers (`readv`, `writev`).

use super::targets::Targets;
use crate::engines::blocking_call::Call;
use crate::engines::targets::Positions;
use crate::interface::Granted;
use crate::source::Op;
use crate::spec::WorkerSpec;
use crate::spec::{EngineOption, Number};
use model::job::Kind;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use sys::arena::Arena;

/// Options of `rw`.
pub(super) const OPTIONS: &[EngineOption] = &[EngineOption {
    name: "vectors",
    about: "readv and writev with N buffers per operation; whole pages each with direct I/O",
    number: Number::Must,
}];

/// Most buffers of an operation.
const MAX_VECTORS: usize = 16;
/// Alignment of buffers for direct I/O, enough for every device.
const PAGE: usize = 4096;

pub(super) struct Rw {
    arena: Arena,
    targets: Targets,
    positions: Positions,
    vectors: usize,
    /// The length of each buffer is a multiple of this.
    granularity: usize,
}

impl Call for Rw {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let requested = spec.options.get("vectors").copied().flatten();
        let vectors =
            requested.map_or(Some(1), |n| usize::try_from(n).ok().filter(|n| (1..=MAX_VECTORS).contains(n)));
        let vectors = vectors.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("option vectors: type a number from 1 to {MAX_VECTORS}"),
            )
        })?;
        let used = requested.map(|n| format!("{n} vectors")).into_iter().collect();
        let granularity = if spec.cache.is_direct() { PAGE } else { 1 };
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let positions = Positions::for_files(spec.files.len());
        let call = Self { arena, targets: Targets::take(spec)?, positions, vectors, granularity };
        Ok((call, Granted { used, fallbacks: Vec::new() }))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        let part = length.div_ceil(self.vectors).next_multiple_of(self.granularity);
        match op.kind {
            Kind::Read => {
                let mut file = self.targets.read(op);
                self.positions.seek_to(file, op)?;
                let answer = if self.vectors == 1 {
                    file.read(&mut data[..length])
                } else {
                    let mut parts: [IoSliceMut; MAX_VECTORS] =
                        std::array::from_fn(|_| IoSliceMut::new(&mut []));
                    parts
                        .iter_mut()
                        .zip(data[..length].chunks_mut(part))
                        .for_each(|(p, d)| *p = IoSliceMut::new(d));
                    file.read_vectored(&mut parts[..self.vectors])
                };
                self.positions.moved(op, answer)
            }
            Kind::Write => {
                let mut file = self.targets.write(op);
                self.positions.seek_to(file, op)?;
                let answer = if self.vectors == 1 {
                    file.write(&data[..length])
                } else {
                    let mut parts = [IoSlice::new(&[]); MAX_VECTORS];
                    parts.iter_mut().zip(data[..length].chunks(part)).for_each(|(p, d)| *p = IoSlice::new(d));
                    file.write_vectored(&parts[..self.vectors])
                };
                self.positions.moved(op, answer)
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}
