//! The engine `sendfile`: from one file to another inside the kernel.
//!
//! For: what a program pays at the file's end that serves files (`sendfile` from it) or receives into them. The other end is a
//! file in memory, whose pages are the slots: so every byte is moved once, by the kernel. Where an operation does not begin at
//! the position of the file that is written, `lseek` comes first. Not for: the cost of sockets.

use super::one::Call;
use super::positions::Positions;
use super::targets::Targets;
use crate::interface::Granted;
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use rustix::fs::sendfile;
use std::fs::File;
use std::io;
use sys::memory_file::MemoryFile;

pub(super) struct Sendfile {
    memory: MemoryFile,
    targets: Targets,
    positions: Positions,
    /// The position of the file in memory.
    place: Positions,
}

impl Call for Sendfile {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let memory = MemoryFile::new(spec.slots(), spec.slot_bytes as usize)?;
        let (positions, place) = (Positions::for_files(spec.files.len()), Positions::for_files(1));
        Ok((Self { memory, targets: Targets::take(spec)?, positions, place }, Granted::default()))
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
                self.place.go(file, &to)?;
                self.place.moved(&to, all(file, self.targets.read(op), op.offset, op.length as usize))
            }
            Kind::Write => {
                let target = self.targets.write(op);
                self.positions.go(target, op)?;
                self.positions.moved(op, all(target, file, inside, op.length as usize))
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

/// Sends until all is moved or one call ends early; an error counts where nothing was moved before it.
#[inline]
fn all(to: &File, from: &File, mut offset: u64, bytes: usize) -> io::Result<usize> {
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
