//! An io_uring with the files and buffers of its operations, used by one thread.
//!
//! 1. [`RingOptions`] select the set-up. If an older kernel refuses a flag, the next simpler set-up is tried.
//! 2. The ring owns its files and its arena, and a slot in flight cannot be borrowed. Therefore the ring is safe to use.
//! 3. The submission and completion queues, and the submitter, are borrowed from the ring once: only the submitter that registered the ring
//!    can use the registration. Queueing an operation is plain stores, and a call exchanges heads and tails with the kernel.
//! 4. A drop with operations in flight cancels and reaps them. If some are still in flight after five seconds, ring, files and arena are
//!    leaked: memory that a device may still write to must never be freed.

#[cfg(test)]
mod tests;

use crate::arena::Arena;
use crate::file_pages::{Flush, RANGE_FLAGS};
use crate::open_file::OpenFile;
use crate::slots::{DRAIN_LIMIT, Done, Granted, Slots, WAIT_LIMIT};
use io_uring::{
    Builder, CompletionQueue, IoUring, SubmissionQueue, Submitter, cqueue, opcode, squeue, types,
};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Maximum number of registered files, far above any number of targets.
const MAX_FILES: usize = 1 << 12;
/// Maximum number of buffers that the kernel registers.
const MAX_BUFFERS: usize = 1 << 14;
/// Discard command to a block device (`BLOCK_URING_CMD_DISCARD`, `_IO(0x12, 0)`; Linux 6.12).
const DISCARD: u32 = 0x1200;

/// A ring with the files and buffers of its operations.
pub struct Ring {
    // These three borrow from `ring`, which is dropped after them.
    submitter: ManuallyDrop<Submitter<'static>>,
    submission: ManuallyDrop<SubmissionQueue<'static, squeue::Entry>>,
    completion: ManuallyDrop<CompletionQueue<'static, cqueue::Entry>>,
    #[allow(clippy::struct_field_names)] // It is the ring itself.
    ring: *mut IoUring,
    slots: ManuallyDrop<Slots>,
    /// For each file: its index if files are registered, otherwise its descriptor.
    numbers: Box<[RawFd]>,
    /// `FIXED_FILE` if files are registered.
    file_flags: squeue::Flags,
    /// For each file: whether a trim is a discard of a block device.
    discards: Box<[bool]>,
    rw_flags: i32,
    write_flags: i32,
    fixed_buffers: bool,
    /// Whether the ring polls (`IORING_SETUP_IOPOLL`).
    polls: bool,
    /// Whether the kernel was entered since the last reap.
    entered: bool,
}

impl Ring {
    /// Sets up a ring with one entry per slot of the arena, or with two per slot if there is a submission thread. Only the calling
    /// thread can use the ring.
    ///
    /// # Errors
    /// The error of the kernel if it refuses even the simplest ring: `EPERM` or `ENOSYS` if io_uring is switched off, `EINVAL` for unknown
    /// flags. `InvalidInput` for contradictory options, or too many files or slots. Refused registrations are not errors but fallbacks.
    pub fn new(arena: Arena, files: Vec<OpenFile>, options: &RingOptions) -> io::Result<(Self, Granted)> {
        if files.is_empty() || files.len() > MAX_FILES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a ring takes 1 to 4096 files; use fewer targets per worker",
            ));
        }
        let file_count = files.len();
        // The submission thread publishes taken entries only at the end of each batch. Until then a slot that completed early
        // and was queued again is in the queue twice.
        let places =
            if options.thread == Thread::None { arena.slots() } else { arena.slots().saturating_mul(2) };
        let entries = u32::try_from(places).unwrap_or(u32::MAX).max(1);
        let mut granted = Granted::default();
        let ring = set_up(entries, options, &mut granted)?;
        if (ring.params().sq_entries() as usize) < places {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a ring cannot hold this many operations; use a smaller --depth or fewer targets per worker",
            ));
        }
        let ring = Box::into_raw(Box::new(ring));
        // SAFETY: the pointer is from a new box. Only `drop` frees the box, after it has dropped the three parts, or it leaks all of them.
        // Nothing else uses the pointer meanwhile, so the parts may borrow from it as long as they exist.
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
            entered: false,
        };
        this.register(options, &mut granted);
        Ok((this, granted))
    }

    /// Registers buffers, files and the ring, so that the kernel does not look them up for each operation.
    fn register(&mut self, options: &RingOptions, granted: &mut Granted) {
        self.numbers = (0..self.slots.files().len()).map(|file| self.slots.raw_fd(file as u32)).collect();
        if options.plain_buffers {
            granted.used.push("plain buffers".into());
        } else if self.slots.arena().slots() > MAX_BUFFERS {
            granted
                .fallbacks
                .push(format!("registered buffers: the kernel registers at most {MAX_BUFFERS} of them"));
        } else {
            let vectors = self.slots.arena().io_vectors();
            // SAFETY: the memory belongs to the arena, which is part of the same value as the ring and is freed only if nothing is
            // in flight.
            let outcome = unsafe { self.submitter.register_buffers(&vectors) };
            self.fixed_buffers = note_step(granted, "registered buffers", outcome);
        }
        if options.plain_files {
            granted.used.push("plain files".into());
        } else if note_step(granted, "registered files", self.submitter.register_files(&self.numbers)) {
            self.numbers = (0..self.numbers.len() as RawFd).collect();
            self.file_flags = squeue::Flags::FIXED_FILE;
        }
        note_step(granted, "registered ring", self.submitter.register_ring_fd());
    }

    /// Returns the number of files.
    pub fn files(&self) -> u32 {
        self.numbers.len() as u32
    }

    /// Returns the buffer of a slot.
    ///
    /// # Panics
    /// If the slot is in flight or does not exist: a defect of the caller.
    #[inline]
    pub fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.slots.slot_mut(slot)
    }

    /// Returns the number of operations that have not been reaped.
    pub fn in_flight(&self) -> u32 {
        self.slots.in_flight()
    }

    /// Queues a read into a slot; [`Ring::submit`] submits it.
    ///
    /// # Panics
    /// If the slot is in flight, too small or does not exist, or the file does not exist: defects of the caller.
    #[inline]
    pub fn read(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.read_with_priority(slot, file, offset, bytes, 0);
    }

    /// Queues a read into a slot. The read has this I/O priority (class and level as in `ioprio_set(2)`; 0 for the priority of the thread).
    ///
    /// # Panics
    /// As [`Ring::read`].
    #[expect(clippy::inline_always, reason = "without a priority this compiles to the plain operation")]
    #[inline(always)]
    pub fn read_with_priority(&mut self, slot: u32, file: u32, offset: u64, bytes: u32, priority: u16) {
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
    /// If the file was opened for reading only (the last check before the kernel), or as [`Ring::read`].
    #[inline]
    pub fn write(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.write_with_priority(slot, file, offset, bytes, 0);
    }

    /// Queues a write from a slot. The write has this I/O priority (class and level as in `ioprio_set(2)`; 0 for the priority of the
    /// thread).
    ///
    /// # Panics
    /// As [`Ring::write`].
    #[expect(clippy::inline_always, reason = "without a priority this compiles to the plain operation")]
    #[inline(always)]
    pub fn write_with_priority(&mut self, slot: u32, file: u32, offset: u64, bytes: u32, priority: u16) {
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

    /// Queues a trim: punches a hole in a file. On a block device the trim is a discard if [`Ring::trim_by_discards`] was called.
    /// Otherwise it requests zeroes without writing, and most devices that support discards then discard.
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

    /// Queues a discard of a block device. A discard of 0 bytes probes for support: `EINVAL` means that discards are supported,
    /// `EOPNOTSUPP` that they are not.
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

    /// Makes trims of this file discards from now on.
    pub fn trim_by_discards(&mut self, file: u32) {
        self.discards[file as usize] = true;
    }

    /// Queues a sync of the completed writes to a file.
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

    /// Queues an operation that does nothing and reports `bytes`, to measure the cost of the ring.
    ///
    /// # Panics
    /// If the slot is in flight or does not exist: a defect of the caller.
    #[inline]
    pub fn nop(&mut self, slot: u32, bytes: u32) {
        self.slots.claim(slot, 0, bytes);
        let entry = opcode::Nop::new().build().user_data(u64::from(slot));
        self.enqueue(&entry);
    }

    /// Submits the queued operations and waits until `wait` operations have completed, at most [`WAIT_LIMIT`]. Makes no system call if
    /// nothing is queued, `wait` is 0, and the kernel needs no call to publish completions.
    ///
    /// # Errors
    /// An error of the kernel. A signal, the time limit and a full queue are no errors, because the next call tries again.
    #[inline]
    pub fn submit(&mut self, wait: u32) -> io::Result<()> {
        self.submission.sync();
        let answer = if wait > 0 {
            let limit = types::Timespec::from(WAIT_LIMIT);
            let args = types::SubmitArgs::new().timespec(&limit);
            self.submitter.submit_with_args(wait as usize, &args)
        } else if self.submission.is_empty() && !self.needs_kernel_entry() {
            return Ok(());
        } else {
            self.submitter.submit()
        };
        self.entered = true;
        ignore_retryable(answer)
    }

    /// Submits the queued operations, and waits at most `ns` until an operation has completed.
    ///
    /// # Errors
    /// As [`Ring::submit`].
    pub fn wait_within(&mut self, ns: u64) -> io::Result<()> {
        let limit = types::Timespec::from(Duration::from_nanos(ns));
        let args = types::SubmitArgs::new().timespec(&limit);
        self.submission.sync();
        ignore_retryable(self.submitter.submit_with_args(1, &args))
    }

    /// Takes available completions and returns how many of `done` were filled. Makes a system call
    /// only if the kernel needs one to publish completions. Without polling it makes none directly
    /// after a submission, because the next submission publishes them.
    #[inline]
    pub fn reap(&mut self, done: &mut [Done]) -> usize {
        self.completion.sync();
        let entered = std::mem::take(&mut self.entered);
        if self.completion.is_empty()
            && self.slots.in_flight() > 0
            && self.needs_kernel_entry()
            && (self.polls || !entered)
        {
            // The next submission fails with the same error and returns it.
            let _ = self.submitter.submit();
            self.completion.sync();
        }
        let mut taken = 0;
        while taken < done.len() {
            let Some(entry) = self.completion.next() else { break };
            // The completion of a cancellation names a slot that does not exist.
            let Some(finished) = self.slots.release(entry.user_data() as u32, entry.result()) else {
                continue;
            };
            done[taken] = finished;
            taken += 1;
        }
        // Publish the head: the next wait counts from it.
        self.completion.sync();
        taken
    }

    /// Whether completions appear only after a system call: with polling, or if the kernel has task work for this thread.
    #[inline]
    fn needs_kernel_entry(&self) -> bool {
        self.polls || self.submission.taskrun()
    }

    #[inline]
    fn push(&mut self, slot: u32, entry: squeue::Entry) {
        let entry = entry.flags(self.file_flags).user_data(u64::from(slot));
        self.enqueue(&entry);
    }

    /// Puts an entry with a claimed slot into the queue.
    #[inline]
    fn enqueue(&mut self, entry: &squeue::Entry) {
        if self.submission.is_full() {
            // The known head is that of the last submission. The kernel has taken entries since then.
            self.submission.sync();
        }
        // SAFETY: address and length lie in a slot of the arena that `claim` marked as in flight, so no other code reads or writes it
        // until the kernel is done; the file is open as long as the ring lives. A registered buffer has the number of its slot, and at
        // most 2^14 can be registered, so the casts above lose nothing.
        let pushed = unsafe { self.submission.push(entry) };
        // The ring has an entry per slot, two with a submission thread, and a slot is queued once: there is always space.
        assert!(pushed.is_ok(), "a full submission queue");
    }

    /// Cancels all operations in flight and waits for their completions. Returns whether none remains.
    fn drain(&mut self) -> bool {
        let limit = Instant::now() + DRAIN_LIMIT;
        let mut done = [Done::default(); 64];
        let _ = self.submit(0);
        if self.slots.in_flight() > 0 {
            // Kernels before 6.0 do not have this call. With them, only wait.
            let soon = types::Timespec::from(WAIT_LIMIT);
            let _ = self.submitter.register_sync_cancel(Some(soon), types::CancelBuilder::any());
        }
        while self.slots.in_flight() > 0 && Instant::now() < limit {
            if self.reap(&mut done) == 0 && self.submit(1).is_err() {
                // Do not spin on a ring that refuses to wait.
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
        // SAFETY: each is dropped once, here, and not used again. The queues write to the ring's memory in their drop, so they are
        // dropped before it. The ring is dropped before the slots, so the kernel releases memory and files before they are freed. The
        // pointer is from `Box::into_raw`.
        unsafe {
            ManuallyDrop::drop(&mut self.submission);
            ManuallyDrop::drop(&mut self.completion);
            ManuallyDrop::drop(&mut self.submitter);
            drop(Box::from_raw(self.ring));
            ManuallyDrop::drop(&mut self.slots);
        }
    }
}

/// Ignores errors after which the next call tries again: a signal, the time limit, a full queue.
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

/// Adds the outcome of an optional step to `granted`. Returns whether it succeeded.
fn note_step(granted: &mut Granted, what: &str, outcome: io::Result<()>) -> bool {
    let refused = outcome.err();
    match &refused {
        None => granted.used.push(what.into()),
        Some(e) => granted.fallbacks.push(format!("{what}: {e}")),
    }
    refused.is_none()
}

/// Time in ms without work after which the kernel's submission thread sleeps. Pauses within a run are shorter.
const THREAD_IDLE_MS: u32 = 1000;

/// Options of a ring. The default is the fastest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingOptions {
    /// Polls for completions (`IORING_SETUP_IOPOLL`): only for direct I/O on a polling device.
    pub poll: bool,
    /// The kernel's submission thread (`IORING_SETUP_SQPOLL`).
    pub thread: Thread,
    /// When the kernel finishes operations.
    pub task_work: TaskWork,
    /// Whether pages that operations bring into the page cache remain in it.
    pub pages: Pages,
    /// Whether a write that a power failure interrupts may be partial.
    pub writes: Writes,
    /// Whether to leave buffers unregistered.
    pub plain_buffers: bool,
    /// Whether to leave files unregistered.
    pub plain_files: bool,
}

/// The kernel's submission thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thread {
    /// No thread: each submission is a system call.
    #[default]
    None,
    /// A thread on any CPU.
    Anywhere,
    /// A thread on this CPU.
    On(u32),
}

/// When the kernel finishes an operation on the submitting thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskWork {
    /// At the next system call of any kind (Linux 5.19).
    #[default]
    Cooperative,
    /// Only in a call that waits (Linux 6.1).
    Deferred,
    /// At once, by interrupting the thread, on every kernel.
    Interrupt,
}

/// Whether pages that operations bring into the page cache remain in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// The pages remain.
    #[default]
    Stay,
    /// The kernel drops the pages after the operation (`RWF_DONTCACHE`, Linux 6.14).
    Drop,
}

/// Whether a write that a power failure interrupts may be partial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// The write may be partial.
    #[default]
    Plain,
    /// The write is complete or absent (`RWF_ATOMIC`, Linux 6.11).
    Atomic,
}

/// A way to set up a ring: its name and its flags.
type SetUp = (&'static str, fn(&mut Builder));

// Deferred task work is not the default because it delays completions. On a virtio disk at depth 32 and equal IOPS, the mean number in
// flight was 12 % above the device's own queue with deferred task work, and 6 % above it with cooperative task work.
const COOPERATIVE: &[SetUp] = &[
    ("cooperative task work, single issuer", |b| {
        b.setup_single_issuer().setup_coop_taskrun().setup_taskrun_flag();
    }),
    ("cooperative task work", |b| {
        b.setup_coop_taskrun().setup_taskrun_flag();
    }),
    INTERRUPT,
];
const INTERRUPT: SetUp = ("task work by interrupt", |_| ());

const DEFERRED: &[SetUp] = &[("deferred task work, single issuer", |b| {
    b.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
})];

/// With a submission thread the kernel refuses flags about task work, because the thread does that work.
const THREAD: &[SetUp] = &[
    ("submission thread, single issuer", |b| {
        b.setup_single_issuer();
    }),
    ("submission thread", |_| ()),
];

/// Sets up the fastest ring that the options allow, and falls back on older kernels.
fn set_up(entries: u32, options: &RingOptions, granted: &mut Granted) -> io::Result<IoUring> {
    let steps: &[SetUp] = match (options.thread, options.task_work) {
        (Thread::None, TaskWork::Cooperative) => COOPERATIVE,
        (Thread::None, TaskWork::Deferred) => DEFERRED,
        (Thread::None, TaskWork::Interrupt) => &[INTERRUPT],
        (_, TaskWork::Cooperative) => THREAD,
        (_, _) => {
            let why = "with sqpoll the kernel's thread does the task work, so deferred and interrupt have no effect; leave them out";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    };
    let mut refused = io::Error::from(io::ErrorKind::InvalidInput);
    for (name, apply) in steps {
        let mut builder = IoUring::builder();
        builder.setup_clamp();
        if options.poll {
            builder.setup_iopoll();
        }
        match options.thread {
            Thread::None => {}
            Thread::Anywhere => {
                builder.setup_sqpoll(THREAD_IDLE_MS);
            }
            Thread::On(cpu) => {
                builder.setup_sqpoll(THREAD_IDLE_MS).setup_sqpoll_cpu(cpu);
            }
        }
        apply(&mut builder);
        match builder.build(entries) {
            Ok(ring) => {
                granted.used.push((*name).into());
                return Ok(ring);
            }
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                granted.fallbacks.push(format!("{name}: {e}"));
                refused = e;
            }
            Err(e) => return Err(e),
        }
    }
    Err(refused)
}
