//! The engine `sendfile`: from one file to another inside the kernel.
//!
//! The other end is a file in memory whose pages are the slots, so the kernel copies every byte once. It seeks the written file first if an
//! operation does not begin at its position. The cost of sockets is not included.

use super::targets::Targets;
use crate::engines::blocking_call::Call;
use crate::engines::targets::Positions;
use crate::interface::Granted;
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use rustix::fs::sendfile;
use std::fs::File;
use std::io;
use sys::arena::MemoryFile;

pub(super) struct Sendfile {
    memory: MemoryFile,
    targets: Targets,
    positions: Positions,
    /// The position of the file in memory.
    memory_position: Positions,
}

impl Call for Sendfile {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let memory = MemoryFile::new(spec.slots(), spec.slot_bytes as usize)?;
        let (positions, memory_position) = (Positions::for_files(spec.files.len()), Positions::for_files(1));
        Ok((Self { memory, targets: Targets::take(spec)?, positions, memory_position }, Granted::default()))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.memory.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (file, inside) = (self.memory.file(), self.memory.offset(slot as usize));
        match op.kind {
            Kind::Read => {
                let to = Op { offset: inside, file: 0, ..*op };
                self.memory_position.seek_to(file, &to)?;
                self.memory_position
                    .moved(&to, send_all(file, self.targets.read(op), op.offset, op.length as usize))
            }
            Kind::Write => {
                let target = self.targets.write(op);
                self.positions.seek_to(target, op)?;
                self.positions.moved(op, send_all(target, file, inside, op.length as usize))
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

/// Calls sendfile until all bytes are moved or the source ends. Returns an error only if nothing was moved.
#[inline]
fn send_all(to: &File, from: &File, mut offset: u64, bytes: usize) -> io::Result<usize> {
    let mut moved = 0;
    while moved < bytes {
        match sendfile(to, from, Some(&mut offset), bytes - moved) {
            Ok(0) => break,
            Ok(sent) => moved += sent,
            Err(_) if moved > 0 => break,
            Err(e) => return Err(e.into()),
        }
    }
    Ok(moved)
}
