//! POSIX asynchronous I/O (`aio(7)`) with the files and buffers of its operations.
//!
//! Threads of the C library execute the operations, in glibc at most 20 and one per file descriptor at a time: operations on one file are
//! serial at any depth. The CPU time of these threads is not in the calling thread's CPU time.
//!
//! As in [`crate::ring`], a slot in flight cannot be borrowed, and operations that are still in flight five seconds after a drop are leaked
//! with their files and buffers.

use crate::arena::Arena;
use crate::file_pages::Flush;
use crate::open_file::OpenFile;
use crate::slots::{DRAIN_LIMIT, Done, Slots, WAIT_LIMIT, take_ready};
use libc::aiocb;
use std::io;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// The operation that a control block (`aiocb`) requests.
#[derive(Clone, Copy, Debug)]
enum Command {
    Read,
    Write,
    /// `aio_fsync` with this `op`: `O_SYNC` or `O_DSYNC`.
    Sync(libc::c_int),
}

/// Control blocks (`aiocb`) with the files and buffers of their operations.
pub struct PosixAio {
    slots: ManuallyDrop<Slots>,
    /// One control block per slot. Control blocks are accessed only by address, because the library
    /// writes to those in flight.
    controls: ManuallyDrop<Vec<aiocb>>,
    queued: Vec<(u32, Command)>,
    /// Slots in flight.
    flying: Vec<u32>,
    /// The control blocks of the slots in flight, in the same order, for `aio_suspend`.
    list: Vec<*const aiocb>,
    /// Completions that have not been reaped.
    ready: Vec<Done>,
}

impl PosixAio {
    /// Takes buffers and files. The library starts its threads with the first operation.
    pub fn new(arena: Arena, files: Vec<OpenFile>) -> Self {
        let count = arena.slots();
        // SAFETY: integers and pointers, for which zero is a valid value; unused fields must be zero.
        let blank: aiocb = unsafe { std::mem::zeroed() };
        Self {
            slots: ManuallyDrop::new(Slots::new(arena, files)),
            controls: ManuallyDrop::new(vec![blank; count]),
            queued: Vec::with_capacity(count),
            flying: Vec::with_capacity(count),
            list: Vec::with_capacity(count),
            ready: Vec::with_capacity(count),
        }
    }

    /// Returns the buffer of a slot.
    ///
    /// # Panics
    /// If the slot is in flight or does not exist: a defect of the caller.
    #[inline]
    pub fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.slots.slot_mut(slot)
    }

    /// Queues a read into a slot; [`PosixAio::submit`] submits it.
    ///
    /// # Panics
    /// If the slot is in flight, too small or does not exist, or the file does not exist: defects of the caller.
    pub fn read(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.queue(slot, Command::Read, file, offset, bytes);
    }

    /// Queues a write from a slot.
    ///
    /// # Panics
    /// If the file was opened for reading only (the last check before the kernel), or as [`PosixAio::read`].
    pub fn write(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.slots.assert_writable(file);
        self.queue(slot, Command::Write, file, offset, bytes);
    }

    /// Queues a sync of a file. POSIX asynchronous I/O has no [`Flush::Range`], so such a sync becomes an fdatasync.
    /// Callers refuse `Range` earlier.
    ///
    /// # Panics
    /// As [`PosixAio::read`].
    pub fn flush(&mut self, slot: u32, file: u32, flush: Flush) {
        let call = if flush == Flush::All { libc::O_SYNC } else { libc::O_DSYNC };
        self.queue(slot, Command::Sync(call), file, 0, 0);
    }

    fn queue(&mut self, slot: u32, command: Command, file: u32, offset: u64, bytes: u32) {
        let address = self.slots.claim(slot, bytes, 0);
        // SAFETY: as in `new`.
        let mut control: aiocb = unsafe { std::mem::zeroed() };
        control.aio_fildes = self.slots.raw_fd(file);
        control.aio_buf = address.cast();
        control.aio_nbytes = bytes as usize;
        control.aio_offset = offset as libc::off_t;
        control.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        // SAFETY: `claim` checked that the slot exists and was not in flight, so the library does not use this control.
        unsafe { self.control(slot).write(control) };
        self.queued.push((slot, command));
    }

    /// Returns the address of a slot's control block. The caller ensures that the slot exists.
    fn control(&mut self, slot: u32) -> *mut aiocb {
        self.controls.as_mut_ptr().wrapping_add(slot as usize)
    }

    /// Submits the queued operations and waits until `wait` operations have completed, at most [`WAIT_LIMIT`]. If the library refuses an
    /// operation, the operation completes with the errno of the refusal.
    ///
    /// # Errors
    /// An error of `aio_suspend`, except a signal and the time limit.
    pub fn submit(&mut self, wait: u32) -> io::Result<()> {
        for index in 0..self.queued.len() {
            let (slot, command) = self.queued[index];
            let control = self.control(slot);
            // SAFETY: the control keeps its address and is not touched until `collect` has seen the end of the operation. Its buffer is
            // in a slot that `claim` marked as in flight, so no other code reads or writes the buffer. Files and memory are freed only
            // if nothing is in flight.
            let answer = unsafe {
                match command {
                    Command::Read => libc::aio_read(control),
                    Command::Write => libc::aio_write(control),
                    Command::Sync(call) => libc::aio_fsync(call, control),
                }
            };
            if answer == 0 {
                self.flying.push(slot);
                self.list.push(control);
            } else {
                let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
                self.ready.extend(self.slots.release(slot, -errno));
            }
        }
        self.queued.clear();
        if wait > 0 { self.wait(wait as usize, WAIT_LIMIT) } else { Ok(()) }
    }

    fn wait(&mut self, wanted: usize, limit: Duration) -> io::Result<()> {
        let end = Instant::now() + limit;
        loop {
            self.collect();
            if self.ready.len() >= wanted || self.flying.is_empty() {
                return Ok(());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let limit = libc::timespec { tv_sec: 0, tv_nsec: left.as_nanos() as libc::c_long };
            // SAFETY: the list has this many pointers, each to a control in flight; the time is in this frame.
            let answer = unsafe {
                libc::aio_suspend(self.list.as_ptr(), self.list.len() as libc::c_int, &raw const limit)
            };
            if answer != 0 {
                let error = io::Error::last_os_error();
                if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) {
                    return Err(error);
                }
            }
        }
    }

    /// Returns the number of operations whose results have not been taken from the library.
    pub fn in_flight(&self) -> u32 {
        self.slots.in_flight()
    }

    /// Waits until an operation in flight has completed, at most `ns`.
    ///
    /// # Errors
    /// An error of `aio_suspend`.
    pub fn wait_within(&mut self, ns: u64) -> io::Result<()> {
        self.wait(1, Duration::from_nanos(ns).min(WAIT_LIMIT))
    }

    /// Takes available completions without a system call and returns how many of `done` were filled.
    pub fn reap(&mut self, done: &mut [Done]) -> usize {
        if self.ready.is_empty() {
            self.collect();
        }
        take_ready(&mut self.ready, done)
    }

    /// Checks every operation in flight, because the interface cannot list the completed ones.
    fn collect(&mut self) {
        let mut index = 0;
        while let Some(&slot) = self.flying.get(index) {
            let control = self.control(slot);
            // SAFETY: a control that was submitted and whose result has not been taken.
            let state = unsafe { libc::aio_error(control) };
            if state == libc::EINPROGRESS {
                index += 1;
                continue;
            }
            // SAFETY: as above, and it has ended; its result is taken once, here.
            let answer = unsafe { libc::aio_return(control) };
            let result = if state == 0 { answer as i32 } else { -state };
            self.ready.extend(self.slots.release(slot, result));
            self.flying.swap_remove(index);
            self.list.swap_remove(index);
        }
    }

    /// Cancels operations that have not begun, and waits for the others. Returns whether none remains.
    fn drain(&mut self) -> bool {
        let end = Instant::now() + DRAIN_LIMIT;
        // These operations were never submitted.
        for (slot, _) in std::mem::take(&mut self.queued) {
            self.slots.release(slot, -libc::ECANCELED);
        }
        for file in 0..self.slots.files().len() {
            // SAFETY: takes a descriptor only; a null control selects all operations on it. No other value of this type uses the
            // descriptor, since it belongs to one `OpenFile`.
            unsafe { libc::aio_cancel(self.slots.raw_fd(file as u32), std::ptr::null_mut()) };
        }
        while !self.flying.is_empty() && Instant::now() < end {
            self.ready.clear();
            if self.wait(1, WAIT_LIMIT).is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.flying.is_empty()
    }
}

impl Drop for PosixAio {
    fn drop(&mut self) {
        if !self.drain() {
            return;
        }
        // SAFETY: each is dropped once, here, and not used again; nothing is in flight.
        unsafe {
            ManuallyDrop::drop(&mut self.slots);
            ManuallyDrop::drop(&mut self.controls);
        }
    }
}
