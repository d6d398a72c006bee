//! Slots in flight, the common part of all asynchronous interfaces in this crate.
//!
//! 1. `Slots` owns the buffers and files of the operations. A slot in flight cannot be borrowed, and a file that was opened for reading is
//!    never written.
//! 2. [`Done`] is a completion. A wait stays in the kernel for at most [`WAIT_LIMIT`].
//! 3. [`Granted`] lists the features that the kernel granted and refused at set-up.

use crate::arena::Arena;
use crate::open_file::OpenFile;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// A completed operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Slot of the operation.
    pub slot: u32,
    /// Bytes moved, or a negative errno.
    pub result: i32,
}

/// Moves completions from the end of `ready` to `done`, as many as fit, and returns their number.
#[inline]
pub fn take_ready(ready: &mut Vec<Done>, done: &mut [Done]) -> usize {
    let taken = ready.len().min(done.len());
    let kept = ready.len() - taken;
    done[..taken].copy_from_slice(&ready[kept..]);
    ready.truncate(kept);
    taken
}

/// Maximum time that a wait stays in the kernel, so that a stop is noticed.
pub const WAIT_LIMIT: Duration = Duration::from_millis(100);
/// How long a drop waits for operations in flight before it leaks their buffers and files.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// Optional features that were requested at set-up: those in use, and those that were refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Features in use, as text for the report.
    pub used: Vec<String>,
    /// Features refused, with the reason.
    pub fallbacks: Vec<String>,
}

/// State of a slot that is not in flight. Any other state is the number of bytes to report if the kernel returns 0.
const FREE: u32 = u32::MAX;

/// The buffers and files of operations, with the state of each slot.
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

    /// Returns the number of slots in flight.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the buffer of a slot.
    ///
    /// # Panics
    /// If the slot is in flight or does not exist: a defect of the caller.
    #[inline]
    pub(crate) fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        assert!(self.states[slot as usize] == FREE, "slot {slot} is in flight");
        self.arena.slot_mut(slot as usize)
    }

    /// Marks a slot as in flight and returns its address. For the success of some operations, such as trims, the kernel returns 0;
    /// `credit` is the number of bytes to report instead.
    ///
    /// # Panics
    /// If the slot is in flight, too small or does not exist: defects of the caller.
    #[inline]
    pub(crate) fn claim(&mut self, slot: u32, bytes: u32, credit: u32) -> *mut u8 {
        let state = &mut self.states[slot as usize];
        assert!(*state == FREE, "slot {slot} is in flight");
        assert!(bytes as usize <= self.arena.slot_bytes(), "{bytes} bytes do not fit slot {slot}");
        *state = credit.min(i32::MAX as u32);
        self.in_flight += 1;
        self.arena.address(slot as usize)
    }

    /// Releases a slot and returns its completion; `None` for a slot that does not exist or was not in flight.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32, result: i32) -> Option<Done> {
        let state = self.states.get_mut(slot as usize).filter(|s| **s != FREE)?;
        let credit = std::mem::replace(state, FREE);
        self.in_flight -= 1;
        Some(Done { slot, result: if result == 0 { credit as i32 } else { result } })
    }

    /// Asserts that a file may be written. This is the last check before a write reaches the kernel.
    ///
    /// # Panics
    /// If the file was opened for reading only or does not exist: defects of the caller.
    #[inline]
    pub(crate) fn assert_writable(&self, file: u32) {
        assert!(self.files[file as usize].writable, "a write to a file that was opened for reading");
    }

    /// Returns the descriptor of the file with this index. The file stays open as long as `self`
    /// lives.
    ///
    /// # Panics
    /// If the file does not exist: a defect of the caller.
    #[inline]
    pub(crate) fn raw_fd(&self, file: u32) -> RawFd {
        self.files[file as usize].file.as_raw_fd()
    }
}

#[cfg(test)]
fn slots() -> Slots {
    Slots::new(Arena::new(2, 4096).unwrap_or_else(|e| panic!("{e}")), Vec::new())
}

#[test]
fn a_slot_is_released_once_and_zero_becomes_its_credit() {
    let mut slots = slots();
    slots.claim(0, 4096, 0);
    slots.claim(1, 0, 8192);
    assert_eq!(slots.in_flight(), 2);
    assert_eq!(slots.release(0, 0), Some(Done { slot: 0, result: 0 }));
    assert_eq!(slots.release(1, 0), Some(Done { slot: 1, result: 8192 }));
    assert_eq!((slots.release(1, 0), slots.release(7, 1), slots.in_flight()), (None, None, 0));
    slots.slot_mut(1).fill(1);
}
