//! The kernel's asynchronous I/O of 2002 (`io_submit(2)`, usually called libaio) with the files and buffers of its operations, used by
//! one thread.
//!
//! 1. Completions are read from the ring that the kernel maps into the process, if its header has the layout of `struct aio_ring` in the
//!    kernel's `fs/aio.c`. Otherwise a system call returns them.
//! 2. As in [`crate::ring`], a slot in flight cannot be borrowed, and operations that are still in flight five seconds after a drop are
//!    leaked with their files and buffers.
//!
//! The kernel executes buffered I/O inside the call that submits it.

use crate::arena::Arena;
use crate::check;
use crate::file_pages::Flush;
use crate::open_file::OpenFile;
use crate::slots::{DRAIN_LIMIT, Done, Granted, Slots, WAIT_LIMIT, take_ready};
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

// Commands of `linux/aio_abi.h`.
const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FSYNC: u16 = 2;
const IOCB_CMD_FDSYNC: u16 = 3;

/// Flag of an operation that has its own priority, `linux/aio_abi.h`.
const IOCB_FLAG_IOPRIO: u32 = 1 << 1;

/// Value of the field `magic` of a mapped ring with the known layout.
const RING_MAGIC: u32 = 0xa10a_10a1;

/// `struct iocb` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    data: u64,
    /// The key, which is zero, and the flags (`RWF_...`) in the upper half.
    key_and_flags: u64,
    command: u16,
    priority: i16,
    file: u32,
    address: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

/// `struct io_event` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    data: u64,
    control: u64,
    result: i64,
    result2: i64,
}

/// `struct aio_ring` of the kernel's `fs/aio.c`; the events follow.
#[repr(C)]
struct MappedRing {
    id: u32,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header_bytes: u32,
}

/// A context with the files and buffers of its operations.
#[derive(Debug)]
pub struct Aio {
    context: libc::c_ulong,
    slots: ManuallyDrop<Slots>,
    /// One control block per slot. Control blocks are accessed only by address, because the queue
    /// holds their addresses.
    controls: ManuallyDrop<Vec<Control>>,
    /// Addresses of the control blocks that are not submitted yet, in order.
    queued: Vec<*mut Control>,
    /// Buffer for the events that one call returns.
    events: Box<[Event]>,
    /// Completions that have not been reaped.
    ready: Vec<Done>,
    mapped: bool,
    /// `RWF_ATOMIC`, or 0.
    write_flags: u32,
}

impl Aio {
    /// Sets up a context for one operation per slot of the arena. `atomic_writes` sets `RWF_ATOMIC`
    /// (Linux 6.11).
    ///
    /// # Errors
    /// `EAGAIN` if the system's limit of operations (sysctl `fs.aio-max-nr`) is reached, `ENOSYS` if the kernel was built without
    /// asynchronous I/O, `ENOMEM`.
    pub fn new(arena: Arena, files: Vec<OpenFile>, atomic_writes: bool) -> io::Result<(Self, Granted)> {
        let count = arena.slots();
        let entries = u32::try_from(count).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context to a zeroed word of this frame.
        check(unsafe { libc::syscall(libc::SYS_io_setup, entries, &raw mut context) })?;
        let mapped = is_known_ring(context);
        let mut granted = Granted::default();
        if mapped {
            granted.used.push("completions read from the mapped ring".into());
        } else {
            granted
                .fallbacks
                .push("completions by system call: the mapped ring has an unknown layout".into());
        }
        let aio = Self {
            context,
            slots: ManuallyDrop::new(Slots::new(arena, files)),
            controls: ManuallyDrop::new(vec![Control::default(); count]),
            queued: Vec::with_capacity(count),
            events: vec![Event::default(); count].into_boxed_slice(),
            ready: Vec::with_capacity(count),
            mapped,
            write_flags: if atomic_writes { libc::RWF_ATOMIC as u32 } else { 0 },
        };
        Ok((aio, granted))
    }

    /// Returns the buffer of a slot.
    ///
    /// # Panics
    /// If the slot is in flight or does not exist: a defect of the caller.
    #[inline]
    pub fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.slots.slot_mut(slot)
    }

    /// Queues a read into a slot; [`Aio::submit`] submits it.
    ///
    /// # Panics
    /// If the slot is in flight, too small or does not exist, or the file does not exist: defects of the caller.
    #[inline]
    pub fn read(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.queue(slot, IOCB_CMD_PREAD, 0, file, offset, bytes);
    }

    /// Queues a write from a slot.
    ///
    /// # Panics
    /// If the file was opened for reading only (the last check before the kernel), or as [`Aio::read`].
    #[inline]
    pub fn write(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.slots.assert_writable(file);
        self.queue(slot, IOCB_CMD_PWRITE, self.write_flags, file, offset, bytes);
    }

    /// Queues a sync of the completed writes to a file. The kernel's asynchronous I/O has no [`Flush::Range`]: it would
    /// become an fdatasync, so callers refuse it earlier.
    ///
    /// # Panics
    /// As [`Aio::read`].
    #[inline]
    pub fn flush(&mut self, slot: u32, file: u32, flush: Flush) {
        let command = if flush == Flush::All { IOCB_CMD_FSYNC } else { IOCB_CMD_FDSYNC };
        self.queue(slot, command, 0, file, 0, 0);
    }

    #[inline]
    fn queue(&mut self, slot: u32, command: u16, flags: u32, file: u32, offset: u64, bytes: u32) {
        let address = self.slots.claim(slot, bytes, 0);
        let moves = command == IOCB_CMD_PREAD || command == IOCB_CMD_PWRITE;
        let control = Control {
            data: u64::from(slot),
            key_and_flags: u64::from(flags) << 32,
            command,
            file: self.slots.raw_fd(file) as u32,
            // The kernel refuses a sync with an address or a size.
            address: if moves { address as u64 } else { 0 },
            bytes: u64::from(bytes),
            offset: offset as i64,
            ..Control::default()
        };
        // SAFETY: there is a control per slot, `claim` checked that the slot exists, and no reference to a control ever exists.
        let place = unsafe {
            let place = self.controls.as_mut_ptr().add(slot as usize);
            place.write(control);
            place
        };
        self.queued.push(place);
    }

    /// Sets the priority of the operation that was queued last (class and level as in `ioprio_set(2)`).
    pub fn prioritize(&mut self, priority: u16) {
        let Some(place) = self.queued.last().copied() else { return };
        // SAFETY: `place` points to a control of this value. The control was written when it was queued and is not submitted yet, and no
        // reference to a control ever exists.
        unsafe {
            (*place).priority = priority as i16;
            (*place).flags |= IOCB_FLAG_IOPRIO;
        }
    }

    /// Submits the queued operations and waits until `wait` operations have completed, but no longer than [`WAIT_LIMIT`]. If the kernel
    /// refuses an operation, the operation completes with the errno of the refusal.
    ///
    /// # Errors
    /// `EAGAIN` if the kernel accepts no operation although none is in flight, or an error of the wait.
    #[inline]
    pub fn submit(&mut self, wait: u32) -> io::Result<()> {
        if !self.queued.is_empty() {
            self.submit_queued()?;
        }
        let completed = self.ready.len() + self.waiting();
        // Operations that could not be submitted do not complete.
        let flying = (self.slots.in_flight() as usize).saturating_sub(self.queued.len());
        let missing = (wait as usize).min(flying + self.ready.len()).saturating_sub(completed);
        if missing > 0 {
            let least = (wait as usize).saturating_sub(self.ready.len()).min(flying);
            self.fetch(least, WAIT_LIMIT.as_nanos() as libc::c_long)?;
        }
        Ok(())
    }

    fn submit_queued(&mut self) -> io::Result<()> {
        let mut taken = 0;
        while taken < self.queued.len() {
            let rest = &mut self.queued[taken..];
            // SAFETY: each pointer is to a control of this value. The control's buffer is in a slot that `claim` marked as in flight, so
            // no other code reads or writes the buffer until the kernel is done. Files and memory are freed only if nothing is in
            // flight. The kernel copies the controls during the call.
            let answer =
                unsafe { libc::syscall(libc::SYS_io_submit, self.context, rest.len(), rest.as_mut_ptr()) };
            if answer > 0 {
                taken += answer as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) if (self.slots.in_flight() as usize) > self.queued.len() - taken => break,
                Some(libc::EAGAIN) => return Err(error),
                errno => {
                    // SAFETY: a control of this value, and no reference to it exists.
                    let slot = unsafe { (*self.queued[taken]).data };
                    let result = -errno.unwrap_or(libc::EIO);
                    self.ready.extend(self.slots.release(slot as u32, result));
                    taken += 1;
                }
            }
        }
        self.queued.drain(..taken);
        Ok(())
    }

    /// Returns the number of operations whose completions have not been taken from the kernel.
    pub fn in_flight(&self) -> u32 {
        self.slots.in_flight()
    }

    /// Waits until an operation in flight has completed, but no longer than `ns` nanoseconds.
    ///
    /// # Errors
    /// An error of `io_getevents(2)`.
    pub fn wait_within(&mut self, ns: u64) -> io::Result<()> {
        if !self.ready.is_empty() || self.waiting() > 0 {
            return Ok(());
        }
        self.fetch(1, Duration::from_nanos(ns).min(WAIT_LIMIT).as_nanos() as libc::c_long)
    }

    /// Takes available completions and returns how many of `done` were filled. Makes a system call only if there is no mapped ring.
    #[inline]
    pub fn reap(&mut self, done: &mut [Done]) -> usize {
        if !self.mapped && self.ready.is_empty() && self.slots.in_flight() > 0 {
            // The next wait fails with the same error and returns it.
            let _ = self.fetch(0, 0);
        }
        let mut taken = take_ready(&mut self.ready, done);
        while taken < done.len() {
            let Some(event) = self.next_mapped() else { break };
            let Some(finished) = self.slots.release(event.data as u32, event.result as i32) else { continue };
            done[taken] = finished;
            taken += 1;
        }
        taken
    }

    /// Returns the number of events in the mapped ring.
    #[inline]
    fn waiting(&self) -> usize {
        if !self.mapped {
            return 0;
        }
        let ring = self.ring();
        let (head, tail) = (ring.head.load(Ordering::Relaxed), ring.tail.load(Ordering::Acquire));
        (if tail >= head { tail - head } else { ring.entries - head + tail }) as usize
    }

    /// Takes the next event from the mapped ring.
    #[inline]
    fn next_mapped(&mut self) -> Option<Event> {
        if self.waiting() == 0 {
            return None;
        }
        let ring = self.ring();
        let head = ring.head.load(Ordering::Relaxed);
        // SAFETY: the ring has the known layout: a header of the size of an event, then `entries` events, and the mapping is aligned to
        // pages. The index is below `entries` by the contract of the kernel. The kernel published this event with the tail that
        // `waiting` acquired, and overwrites it only after the head has passed it.
        let event = unsafe { (self.context as *const Event).add(1 + head as usize).read() };
        let next = if head + 1 == ring.entries { 0 } else { head + 1 };
        ring.head.store(next, Ordering::Release);
        Some(event)
    }

    #[inline]
    fn ring(&self) -> &MappedRing {
        // SAFETY: only called if `is_known_ring` returned true; the mapping lives as long as the context, which `self` owns. The kernel
        // changes only the two atomics.
        unsafe { &*(self.context as *const MappedRing) }
    }

    /// Fetches at least `least` events by a system call, fewer if the time limit is reached first.
    fn fetch(&mut self, least: usize, limit_ns: libc::c_long) -> io::Result<()> {
        let mut limit = libc::timespec { tv_sec: 0, tv_nsec: limit_ns };
        // SAFETY: the kernel writes at most as many events as the box has, and reads the time; both outlive the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                least,
                self.events.len(),
                self.events.as_mut_ptr(),
                &raw mut limit,
            )
        };
        if answer < 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::EINTR) { Ok(()) } else { Err(error) };
        }
        for event in &self.events[..answer as usize] {
            self.ready.extend(self.slots.release(event.data as u32, event.result as i32));
        }
        Ok(())
    }

    /// Waits for all submitted operations, but no longer than [`DRAIN_LIMIT`]. Returns whether none remains in flight. Operations on files
    /// cannot be cancelled (`io_cancel(2)` returns `EINVAL`).
    fn drain(&mut self) -> bool {
        let limit = Instant::now() + DRAIN_LIMIT;
        let mut done = [Done::default(); 64];
        // These operations were never submitted.
        for control in std::mem::take(&mut self.queued) {
            // SAFETY: a control of this value, and no reference to it exists.
            let slot = unsafe { (*control).data };
            self.slots.release(slot as u32, -libc::ECANCELED);
        }
        while self.slots.in_flight() > 0 && Instant::now() < limit {
            if self.reap(&mut done) == 0 && self.submit(1).is_err() {
                std::thread::sleep(WAIT_LIMIT / 100);
            }
        }
        self.slots.in_flight() == 0
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // A context with operations in flight would make io_destroy wait for them without a limit.
        if !self.drain() {
            return;
        }
        // SAFETY: each is freed once, here, and not used again; nothing is in flight.
        unsafe {
            libc::syscall(libc::SYS_io_destroy, self.context);
            ManuallyDrop::drop(&mut self.slots);
            ManuallyDrop::drop(&mut self.controls);
        }
    }
}

/// Returns whether a context is a mapped ring of the known layout, as in every kernel since 2.6. Such a ring can be read without system
/// calls, as libaio does.
fn is_known_ring(context: libc::c_ulong) -> bool {
    let head = context as *const MappedRing;
    if head.is_null() || !head.is_aligned() {
        return false;
    }
    // SAFETY: the context is the address of the ring's mapping (`io_setup` returns `ctx->user_id = ctx->mmap_base`), which is
    // at least a page and readable; the layout is checked before anything else is read.
    let head = unsafe { &*head };
    head.magic == RING_MAGIC
        && head.incompatible == 0
        && head.header_bytes as usize == size_of::<MappedRing>()
        && head.entries > 0
}

#[test]
fn structures_have_the_sizes_of_the_kernel() {
    assert_eq!((size_of::<Control>(), size_of::<Event>(), size_of::<MappedRing>()), (64, 32, 32));
}
