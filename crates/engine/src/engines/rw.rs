//! The engine `rw`: read and write, which go on from the position of the file.
//!
//! For: what most programs do. The position is set (`lseek`) only where an operation does not begin where the last one ended.
//! With `vectors` an operation is scattered over several buffers (`readv`, `writev`). Not for: naming offsets; that is `sync`.

use super::one::Call;
use super::positions::Positions;
use super::targets::Targets;
use crate::facts::{EngineOption, Number};
use crate::interface::Granted;
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use sys::arena::Arena;

/// Its options.
pub(super) const OPTIONS: &[EngineOption] = &[EngineOption {
    name: "vectors",
    about: "readv and writev with N buffers per operation; whole pages each with direct I/O",
    number: Number::Must,
}];

/// Most buffers of an operation.
const MOST: usize = 16;
/// Direct I/O needs buffers of whole blocks; a page is enough for every device.
const PAGE: usize = 4096;

pub(super) struct Rw {
    arena: Arena,
    targets: Targets,
    positions: Positions,
    vectors: usize,
    /// Bytes of which each buffer has a multiple.
    grain: usize,
}

impl Call for Rw {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let said = spec.options.get("vectors").copied().flatten();
        let vectors = said.map_or(Some(1), |n| usize::try_from(n).ok().filter(|n| (1..=MOST).contains(n)));
        let vectors = vectors.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("option vectors: type a number from 1 to {MOST}"),
            )
        })?;
        let used = said.map(|n| format!("{n} vectors")).into_iter().collect();
        let grain = if spec.cache.is_direct() { PAGE } else { 1 };
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let positions = Positions::for_files(spec.files.len());
        let call = Self { arena, targets: Targets::take(spec)?, positions, vectors, grain };
        Ok((call, Granted { used, fallbacks: Vec::new() }))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        let part = length.div_ceil(self.vectors).next_multiple_of(self.grain);
        match op.kind {
            Kind::Read => {
                let mut file = self.targets.read(op);
                self.positions.go(file, op)?;
                let answer = if self.vectors == 1 {
                    file.read(&mut data[..length])
                } else {
                    let mut parts: [IoSliceMut; MOST] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
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
                self.positions.go(file, op)?;
                let answer = if self.vectors == 1 {
                    file.write(&data[..length])
                } else {
                    let mut parts = [IoSlice::new(&[]); MOST];
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
