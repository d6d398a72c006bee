//! An io_uring with the files and the memory that its operations use.
//!
//! For: operations addressed by slot, submitted and reaped by one thread. Not for: deciding what to read, or when.
//!
//! The ring owns its files and its arena, and a slot in flight cannot be had: that is what makes this safe to use. Where it
//! is dropped with operations in flight, they are cancelled and reaped; after five seconds ring, files and arena are
//! leaked, since memory that a device may still write to must never be given back.
//!
//! The two queues are borrowed from the ring once and for all, so that an operation costs plain stores and a call one
//! exchange of heads and tails with the kernel; and only the handle that registered the ring can use the registration.

mod setup;

use crate::arena::Arena;
use crate::done::{DRAIN_LIMIT, Done, WAIT_LIMIT};
use crate::granted::Granted;
use crate::open_file::OpenFile;
use crate::slots::Slots;
use crate::stable::{Flush, RANGE_FLAGS};
use io_uring::{CompletionQueue, IoUring, SubmissionQueue, Submitter, cqueue, opcode, squeue, types};
pub use self::setup::{Pages, RingOptions, TaskWork, Thread, Writes};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Most files that can be registered here; far above any number of targets.
const MAX_FILES: usize = 1 << 12;
/// Most buffers that the kernel registers.
const MAX_BUFFERS: usize = 1 << 14;
/// Command of a ring to a block device: discard (`BLOCK_URING_CMD_DISCARD`, `_IO(0x12, 0)`; Linux 6.12).
const DISCARD: u32 = 0x1200;

/// A ring with what its operations use.
pub struct Ring {
    // These three borrow from `ring`, which is given back after them.
    submitter: ManuallyDrop<Submitter<'static>>,
    submission: ManuallyDrop<SubmissionQueue<'static, squeue::Entry>>,
    completion: ManuallyDrop<CompletionQueue<'static, cqueue::Entry>>,
    #[allow(clippy::struct_field_names)] // It is the ring; everything else is what it uses.
    ring: *mut IoUring,
    slots: ManuallyDrop<Slots>,
    /// By file: its index where files are registered, else its descriptor.
    numbers: Box<[RawFd]>,
    /// Says which of the two.
    file_flags: squeue::Flags,
    /// By file: whether trims are discards of a block device.
    discards: Box<[bool]>,
    rw_flags: i32,
    write_flags: i32,
    fixed_buffers: bool,
    /// Completions appear only when asked for.
    polls: bool,
    /// The kernel was entered since the last look.
    asked: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl Ring {
    /// Sets a ring up for as many operations as the arena has slots. Only the thread that calls this can use it.
    ///
    /// # Errors
    /// What the kernel answers when it refuses even the plainest ring: `EPERM` or `ENOSYS` where io_uring is switched off,
    /// `EINVAL` where it does not know what was wished for. Registrations that it refuses are not errors but fall backs.
    pub fn new(arena: Arena, files: Vec<OpenFile>, options: &RingOptions) -> io::Result<(Self, Granted)> {
        if files.is_empty() || files.len() > MAX_FILES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a ring needs between 1 and 4096 files"));
        }
        let file_count = files.len();
        // The kernel's thread says what it has taken at the end of each batch alone. Until then what completed early in it, and
        // was queued again, stands in the queue twice.
        let places =
            if options.thread == Thread::None { arena.slots() } else { arena.slots().saturating_mul(2) };
        let entries = u32::try_from(places).unwrap_or(u32::MAX).max(1);
        let mut granted = Granted::default();
        let ring = self::setup::build(entries, options, &mut granted)?;
        if (ring.params().sq_entries() as usize) < places {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no ring holds so many operations; use a smaller --depth or fewer targets per worker",
            ));
        }
        let ring = Box::into_raw(Box::new(ring));
        // SAFETY: the pointer is fresh from a box that only `drop` turns back, after the three parts are gone or never;
        // nothing else uses it meanwhile, so the parts borrow from it for as long as they exist.
        let (submitter, submission, completion) = unsafe { (*ring).split() };
        let rw_flags = if options.pages == Pages::Drop { libc::RWF_DONTCACHE } else { 0 };
        let mut this = Self {
            submitter: ManuallyDrop::new(submitter),
            submission: ManuallyDrop::new(submission),
            completion: ManuallyDrop::new(completion),
            ring,
            slots: ManuallyDrop::new(Slots::new(arena, files)),
            numbers: Box::default(),
            discards: vec![false; file_count].into(),
            file_flags: squeue::Flags::empty(),
            rw_flags,
            write_flags: rw_flags | if options.writes == Writes::Atomic { libc::RWF_ATOMIC } else { 0 },
            fixed_buffers: false,
            polls: options.poll,
            asked: false,
        };
        this.register(options, &mut granted);
        Ok((this, granted))
    }

    /// Registers what the kernel then need not look up for each operation.
    fn register(&mut self, options: &RingOptions, granted: &mut Granted) {
        self.numbers = (0..self.slots.files().len()).map(|file| self.slots.number(file as u32)).collect();
        if options.plain_buffers {
            granted.used.push("plain buffers".into());
        } else if self.slots.arena().slots() > MAX_BUFFERS {
            granted.fallbacks.push(format!("registered buffers: the kernel takes {MAX_BUFFERS} at most"));
        } else {
            let vectors = self.slots.arena().io_vectors();
            // SAFETY: the memory belongs to the arena, which lives in the same value as the ring and is given back only
            // when nothing is in flight.
            let outcome = unsafe { self.submitter.register_buffers(&vectors) };
            self.fixed_buffers = note(granted, "registered buffers", outcome);
        }
        if options.plain_files {
            granted.used.push("plain files".into());
        } else if note(granted, "registered files", self.submitter.register_files(&self.numbers)) {
            self.numbers = (0..self.numbers.len() as RawFd).collect();
            self.file_flags = squeue::Flags::FIXED_FILE;
        }
        note(granted, "registered ring", self.submitter.register_ring_fd());
    }

    /// How many files operations can name.
    pub fn files(&self) -> u32 {
        self.numbers.len() as u32
    }

    /// The bytes of a slot that is not in flight.
    ///
    /// # Panics
    /// Where the slot is in flight or does not exist: a defect of the caller.
    #[inline]
    pub fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.slots.slot_mut(slot)
    }

    /// Operations that have not been reaped yet.
    pub fn in_flight(&self) -> u32 {
        self.slots.in_flight()
    }

    /// Queues a read into a slot; [`Ring::submit`] submits it.
    ///
    /// # Panics
    /// Where the slot is in flight, too small or does not exist, or there is no such file: defects of the caller.
    #[inline]
    pub fn read(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.read_prior(slot, file, offset, bytes, 0);
    }

    /// Queues a read into a slot with a priority of its own (class and level as `ioprio_set(2)` takes them; 0 for that of the thread);
    /// [`Ring::submit`] submits it.
    ///
    /// # Panics
    /// As [`Ring::read`].
    #[expect(clippy::inline_always, reason = "without a priority it is what it was before")]
    #[inline(always)]
    pub fn read_prior(&mut self, slot: u32, file: u32, offset: u64, bytes: u32, priority: u16) {
        let address = self.slots.claim(slot, bytes, 0);
        let number = types::Fd(self.numbers[file as usize]);
        let entry = if self.fixed_buffers {
            opcode::ReadFixed::new(number, address, bytes, slot as u16)
                .offset(offset)
                .ioprio(priority)
                .rw_flags(self.rw_flags)
                .build()
        } else {
            let read = opcode::Read::new(number, address, bytes).offset(offset);
            read.ioprio(priority).rw_flags(self.rw_flags).build()
        };
        self.push(slot, entry);
    }

    /// Queues a write from a slot; [`Ring::submit`] submits it.
    ///
    /// # Panics
    /// Where the file may not be written: the last lock before the kernel. Else as [`Ring::read`].
    #[inline]
    pub fn write(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.write_prior(slot, file, offset, bytes, 0);
    }

    /// Queues a write from a slot with a priority of its own (class and level as `ioprio_set(2)` takes them; 0 for that of the thread);
    /// [`Ring::submit`] submits it.
    ///
    /// # Panics
    /// As [`Ring::write`].
    #[expect(clippy::inline_always, reason = "without a priority it is what it was before")]
    #[inline(always)]
    pub fn write_prior(&mut self, slot: u32, file: u32, offset: u64, bytes: u32, priority: u16) {
        self.slots.assert_writable(file);
        let address = self.slots.claim(slot, bytes, 0);
        let number = types::Fd(self.numbers[file as usize]);
        let entry = if self.fixed_buffers {
            opcode::WriteFixed::new(number, address, bytes, slot as u16)
                .offset(offset)
                .ioprio(priority)
                .rw_flags(self.write_flags)
                .build()
        } else {
            let write = opcode::Write::new(number, address, bytes).offset(offset);
            write.ioprio(priority).rw_flags(self.write_flags).build()
        };
        self.push(slot, entry);
    }

    /// Queues giving bytes of a file back: a punched hole; of a block device a discard where the kernel has that
    /// ([`Ring::trim_by_discards`]), else zeroes without being written, which those that can discard mostly do.
    ///
    /// # Panics
    /// As [`Ring::write`].
    #[inline]
    pub fn trim(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        if self.discards[file as usize] {
            return self.discard(slot, file, offset, bytes);
        }
        self.slots.assert_writable(file);
        self.slots.claim(slot, 0, bytes);
        let number = types::Fd(self.numbers[file as usize]);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let entry = opcode::Fallocate::new(number, u64::from(bytes)).offset(offset).mode(mode).build();
        self.push(slot, entry);
    }

    /// Queues a discard of a block device. Of 0 bytes it is a question: `EINVAL` from a kernel and a device that have it, `EOPNOTSUPP` from
    /// others.
    ///
    /// # Panics
    /// As [`Ring::write`].
    pub fn discard(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.slots.assert_writable(file);
        self.slots.claim(slot, 0, bytes);
        let number = types::Fd(self.numbers[file as usize]);
        let mut length = [0; 16];
        length[..8].copy_from_slice(&u64::from(bytes).to_ne_bytes());
        let entry = opcode::UringCmd16::new(number, DISCARD).addr(Some(offset)).cmd(length).build();
        self.push(slot, entry);
    }

    /// From now on trims of this file are discards.
    pub fn trim_by_discards(&mut self, file: u32) {
        self.discards[file as usize] = true;
    }

    /// Queues making a file's writes stable: those that completed before.
    ///
    /// # Panics
    /// As [`Ring::read`].
    #[inline]
    pub fn flush(&mut self, slot: u32, file: u32, flush: Flush) {
        self.slots.claim(slot, 0, 0);
        let number = types::Fd(self.numbers[file as usize]);
        let entry = match flush {
            Flush::All => opcode::Fsync::new(number).build(),
            Flush::Data => opcode::Fsync::new(number).flags(types::FsyncFlags::DATASYNC).build(),
            Flush::Range => opcode::SyncFileRange::new(number, 0).flags(RANGE_FLAGS).build(),
        };
        self.push(slot, entry);
    }

    /// Queues an operation that does nothing and answers `bytes`, for the cost of the ring alone.
    ///
    /// # Panics
    /// Where the slot is in flight or does not exist: a defect of the caller.
    #[inline]
    pub fn nop(&mut self, slot: u32, bytes: u32) {
        self.slots.claim(slot, 0, bytes);
        let entry = opcode::Nop::new().build().user_data(u64::from(slot));
        self.enqueue(&entry);
    }

    /// Submits what is queued and waits until `wait` operations have completed, [`WAIT_LIMIT`] at most. Nothing queued
    /// and nothing to wait for is no call.
    ///
    /// # Errors
    /// What the kernel answers, but for the answers that mean "look again": a signal, the time limit, a full queue.
    #[inline]
    pub fn submit(&mut self, wait: u32) -> io::Result<()> {
        self.submission.sync();
        let answer = if wait > 0 {
            let limit = types::Timespec::from(WAIT_LIMIT);
            let args = types::SubmitArgs::new().timespec(&limit);
            self.submitter.submit_with_args(wait as usize, &args)
        } else if self.submission.is_empty() && !self.must_ask() {
            return Ok(());
        } else {
            self.submitter.submit()
        };
        self.asked = true;
        ignore_retryable(answer)
    }

    /// Waits until an operation in flight has completed, `ns` at most.
    ///
    /// # Errors
    /// As [`Ring::submit`].
    pub fn wait_within(&mut self, ns: u64) -> io::Result<()> {
        let limit = types::Timespec::from(Duration::from_nanos(ns));
        let args = types::SubmitArgs::new().timespec(&limit);
        self.submission.sync();
        ignore_retryable(self.submitter.submit_with_args(1, &args))
    }

    /// Takes completions that are there. A system call only where the kernel says that it needs one to show them, and none
    /// directly behind a submission: what completed since then is shown by the next. Returns how many of `done` were filled.
    #[inline]
    pub fn reap(&mut self, done: &mut [Done]) -> usize {
        self.completion.sync();
        let asked = std::mem::take(&mut self.asked);
        if self.completion.is_empty()
            && self.slots.in_flight() > 0
            && self.must_ask()
            && (self.polls || !asked)
        {
            // An error shows at the next submission, which is told.
            let _ = self.submitter.submit();
            self.completion.sync();
        }
        let mut taken = 0;
        while taken < done.len() {
            let Some(entry) = self.completion.next() else { break };
            // A cancellation's own answer carries a slot that does not exist.
            let Some(finished) = self.slots.release(entry.user_data() as u32, entry.result()) else {
                continue;
            };
            done[taken] = finished;
            taken += 1;
        }
        // A wait counts from the head that the kernel has seen.
        self.completion.sync();
        taken
    }

    /// Whether completions stay away until the kernel is entered for them.
    #[inline]
    fn must_ask(&self) -> bool {
        self.polls || self.submission.taskrun()
    }

    #[inline]
    fn push(&mut self, slot: u32, entry: squeue::Entry) {
        let entry = entry.flags(self.file_flags).user_data(u64::from(slot));
        self.enqueue(&entry);
    }

    /// Puts an entry into the queue whose slot is claimed.
    #[inline]
    fn enqueue(&mut self, entry: &squeue::Entry) {
        if self.submission.is_full() {
            // The queue as it was at the last submission; the kernel has taken entries since.
            self.submission.sync();
        }
        // SAFETY: address and length lie in a slot of the arena that `claim` marked as in flight, so nobody else reads or
        // writes it until the kernel is done; the file is open as long as the ring lives. A registered buffer has the
        // slot's number, and at most 2^14 can be registered, so the casts above lose nothing.
        let pushed = unsafe { self.submission.push(entry) };
        // The ring has an entry per slot, and with a thread two, and a slot is queued once: there is always room.
        assert!(pushed.is_ok(), "a full submission queue");
    }

    /// Cancels all that is in flight and waits for the answers. True when nothing is left.
    fn drain(&mut self) -> bool {
        let limit = Instant::now() + DRAIN_LIMIT;
        let mut done = [Done::default(); 64];
        let _ = self.submit(0);
        if self.slots.in_flight() > 0 {
            // Kernels before 6.0 lack this call; waiting below is then all that can be done.
            let soon = types::Timespec::from(WAIT_LIMIT);
            let _ = self.submitter.register_sync_cancel(Some(soon), types::CancelBuilder::any());
        }
        while self.slots.in_flight() > 0 && Instant::now() < limit {
            if self.reap(&mut done) == 0 && self.submit(1).is_err() {
                // A ring that cannot even be waited for must not be asked without a pause.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.slots.in_flight() == 0
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.drain() {
            return;
        }
        let _ = self.submitter.unregister_ring_fd();
        // SAFETY: each is dropped once, here, and not used again. The queues write to the ring's memory when they go, so
        // they go before it; the ring goes before the rest, so the kernel lets go of memory and files before they are given
        // back. The pointer is from `Box::into_raw`.
        unsafe {
            ManuallyDrop::drop(&mut self.submission);
            ManuallyDrop::drop(&mut self.completion);
            ManuallyDrop::drop(&mut self.submitter);
            drop(Box::from_raw(self.ring));
            ManuallyDrop::drop(&mut self.slots);
        }
    }
}

/// Lets the answers pass that mean "look again": a signal, the time limit, a full queue.
#[inline]
fn ignore_retryable(answer: io::Result<usize>) -> io::Result<()> {
    match answer {
        Ok(_) => Ok(()),
        Err(e) => match e.raw_os_error() {
            Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(e),
        },
    }
}

/// Adds the outcome of an optional step to `granted`.
fn note(granted: &mut Granted, what: &str, outcome: io::Result<()>) -> bool {
    let refused = outcome.err();
    match &refused {
        None => granted.used.push(what.into()),
        Some(e) => granted.fallbacks.push(format!("{what}: {e}")),
    }
    refused.is_none()
}

#[cfg(test)]
mod tests;
