//! The memory and the files of operations in flight, and which slots are.
//!
//! For: the one rule behind every asynchronous facility here: a slot in flight cannot be had, and a file that was not opened
//! for writing is not written. Not for: the kernel; whoever owns this submits operations and takes the answers.

use crate::arena::Arena;
use crate::done::Done;
use crate::open_file::OpenFile;
use std::os::fd::{AsRawFd, RawFd};

/// State of a slot that belongs to the loop. Any other value is the bytes to report where the kernel answers 0.
const FREE: u32 = u32::MAX;

/// An arena and files, with the state of each slot.
#[derive(Debug)]
pub(crate) struct Slots {
    arena: Arena,
    files: Vec<OpenFile>,
    states: Box<[u32]>,
    in_flight: u32,
}

impl Slots {
    pub(crate) fn new(arena: Arena, files: Vec<OpenFile>) -> Self {
        let states = vec![FREE; arena.slots()].into_boxed_slice();
        Self { arena, files, states, in_flight: 0 }
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    pub(crate) fn files(&self) -> &[OpenFile] {
        &self.files
    }

    /// How many slots are in flight.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The bytes of a slot that is not in flight.
    ///
    /// # Panics
    /// Where the slot is in flight or does not exist: a defect of the caller.
    #[inline]
    pub(crate) fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        assert!(self.states[slot as usize] == FREE, "slot {slot} is in flight");
        self.arena.slot_mut(slot as usize)
    }

    /// Marks a slot as in flight and gives its address. `credit` is what counts as moved where success is answered with 0,
    /// as for a trim.
    ///
    /// # Panics
    /// Where the slot is in flight, too small or does not exist: defects of the caller.
    #[inline]
    pub(crate) fn claim(&mut self, slot: u32, bytes: u32, credit: u32) -> *mut u8 {
        let state = &mut self.states[slot as usize];
        assert!(*state == FREE, "slot {slot} is in flight");
        assert!(bytes as usize <= self.arena.slot_bytes(), "{bytes} bytes do not fit slot {slot}");
        *state = credit.min(i32::MAX as u32);
        self.in_flight += 1;
        self.arena.address(slot as usize)
    }

    /// Gives a slot back to the loop, with the result as the loop is told it. `None` for a slot that does not exist or was
    /// not in flight.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32, result: i32) -> Option<Done> {
        let state = self.states.get_mut(slot as usize).filter(|s| **s != FREE)?;
        let credit = std::mem::replace(state, FREE);
        self.in_flight -= 1;
        Some(Done { slot, result: if result == 0 { credit as i32 } else { result } })
    }

    /// The last lock before the kernel.
    ///
    /// # Panics
    /// Where the file may not be written, or there is none: defects of the caller.
    #[inline]
    pub(crate) fn assert_writable(&self, file: u32) {
        assert!(self.files[file as usize].writable, "a write to a file that was opened for reading");
    }

    /// The descriptor of a file; open as long as this lives.
    ///
    /// # Panics
    /// Where there is no such file: a defect of the caller.
    #[inline]
    pub(crate) fn number(&self, file: u32) -> RawFd {
        self.files[file as usize].file.as_raw_fd()
    }
}

#[cfg(test)]
fn slots() -> Slots {
    Slots::new(Arena::new(2, 4096).unwrap_or_else(|e| panic!("{e}")), Vec::new())
}

#[test]
fn a_slot_is_released_once_and_a_zero_becomes_its_credit() {
    let mut slots = slots();
    slots.claim(0, 4096, 0);
    slots.claim(1, 0, 8192);
    assert_eq!(slots.in_flight(), 2);
    assert_eq!(slots.release(0, 0), Some(Done { slot: 0, result: 0 }));
    assert_eq!(slots.release(1, 0), Some(Done { slot: 1, result: 8192 }));
    assert_eq!((slots.release(1, 0), slots.release(7, 1), slots.in_flight()), (None, None, 0));
    slots.slot_mut(1).fill(1);
}
