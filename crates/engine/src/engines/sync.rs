//! The engine `sync`: pread and pwrite.
//!
//! For: one operation at a time, the plainest interface there is. Not for: depth; threads are the only way to more.

use super::{Done, Engine, Granted};
use crate::source::Op;
use crate::worker::Spec;
use model::job::Kind;
use std::io;
use std::os::unix::fs::FileExt;
use sys::arena::Arena;
use sys::clock::Clock;
use sys::ring::RingFile;

pub(super) struct Sync {
    arena: Arena,
    files: Vec<RingFile>,
    clock: Clock,
    queued: Option<(u32, Op)>,
    done: Option<Done>,
}

impl Engine for Sync {
    type Time = Clock;

    fn open(spec: &mut Spec) -> io::Result<(Self, Granted)> {
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let files = std::mem::take(&mut spec.files);
        Ok((Self { arena, files, clock: spec.clock, queued: None, done: None }, Granted::default()))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn queue(&mut self, slot: u32, op: &Op) {
        debug_assert!(self.queued.is_none(), "the table says one operation at a time");
        self.queued = Some((slot, *op));
    }

    #[inline]
    fn submit(&mut self, _wait: u32) -> io::Result<()> {
        let Some((slot, op)) = self.queued.take() else { return Ok(()) };
        let data = &mut self.arena.slot_mut(slot as usize)[..op.length as usize];
        let target = &self.files[op.file as usize];
        let moved = match op.kind {
            Kind::Read => target.file.read_at(data, op.offset),
            Kind::Write => {
                assert!(target.writable, "a write to a file that was opened for reading");
                target.file.write_at(data, op.offset)
            }
            Kind::Trim | Kind::Sync => unreachable!("not in the table's kinds"),
        };
        let result = match moved {
            Ok(bytes) => bytes as i32,
            Err(e) => -e.raw_os_error().unwrap_or(i32::MAX),
        };
        self.done = Some(Done { slot, result });
        Ok(())
    }

    #[inline]
    fn reap(&mut self, done: &mut [Done]) -> usize {
        match self.done.take() {
            Some(d) => {
                done[0] = d;
                1
            }
            None => 0,
        }
    }
}
