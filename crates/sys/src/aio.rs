//! The kernel's asynchronous I/O of 2002 (`io_submit(2)`, known by its library libaio), with what its operations use.
//!
//! For: reads, writes and syncs addressed by slot, handed over and reaped by one thread. Not for: buffered I/O that shall not
//! block; there the kernel carries the operation inside the call that submits it.
//!
//! Completions are read from the ring that the kernel maps into the process, where its head says that it has the layout of
//! `struct aio_ring` in the kernel's `fs/aio.c`; else by system call. Ownership is as in [`crate::ring`]: a slot in flight
//! cannot be had, and what is still in flight five seconds after a drop is leaked.

use crate::arena::Arena;
use crate::done::{DRAIN_LIMIT, Done, WAIT_LIMIT};
use crate::granted::Granted;
use crate::open_file::OpenFile;
use crate::slots::Slots;
use crate::stable::Flush;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

// Commands of `linux/aio_abi.h`.
const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FSYNC: u16 = 2;
const IOCB_CMD_FDSYNC: u16 = 3;

/// Flag of an operation that has a priority of its own, `linux/aio_abi.h`.
const IOCB_FLAG_IOPRIO: u32 = 1 << 1;

/// What a mapped ring begins with where its layout is the one known here.
const RING_MAGIC: u32 = 0xa10a_10a1;

/// `struct iocb` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    data: u64,
    /// The key, which stays zero, and flags (`RWF_...`) in the upper half, whatever the byte order.
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

/// A context with what its operations use.
#[derive(Debug)]
pub struct Aio {
    context: libc::c_ulong,
    slots: ManuallyDrop<Slots>,
    /// One per slot, reached by address alone: the queue holds addresses too.
    controls: ManuallyDrop<Vec<Control>>,
    /// Addresses of controls not handed over yet, in order.
    queued: Vec<*mut Control>,
    /// Where a call puts events.
    events: Box<[Event]>,
    /// Finished, and not told yet.
    ready: Vec<Done>,
    mapped: bool,
    /// `RWF_ATOMIC`, or 0.
    write_flags: u32,
}

impl Aio {
    /// Sets a context up for as many operations as the arena has slots. Atomic writes are whole or not there (`RWF_ATOMIC`, 6.11).
    ///
    /// # Errors
    /// `EAGAIN` where the system's limit of operations (sysctl `fs.aio-max-nr`) leaves too few, `ENOSYS` for a kernel that was
    /// built without, `ENOMEM`.
    pub fn new(arena: Arena, files: Vec<OpenFile>, atomic_writes: bool) -> io::Result<(Self, Granted)> {
        let count = arena.slots();
        let entries = u32::try_from(count).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context to the pointer, which is to a zeroed word of this frame.
        if unsafe { libc::syscall(libc::SYS_io_setup, entries, &raw mut context) } != 0 {
            return Err(io::Error::last_os_error());
        }
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

    /// The bytes of a slot that is not in flight.
    ///
    /// # Panics
    /// Where the slot is in flight or does not exist: a defect of the caller.
    #[inline]
    pub fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.slots.slot_mut(slot)
    }

    /// Queues a read into a slot; [`Aio::submit`] submits it.
    ///
    /// # Panics
    /// Where the slot is in flight, too small or does not exist, or there is no such file: defects of the caller.
    #[inline]
    pub fn read(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.queue(slot, (IOCB_CMD_PREAD, 0), file, offset, bytes);
    }

    /// Queues a write from a slot.
    ///
    /// # Panics
    /// Where the file may not be written: the last lock before the kernel. Else as [`Aio::read`].
    #[inline]
    pub fn write(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        self.slots.assert_writable(file);
        self.queue(slot, (IOCB_CMD_PWRITE, self.write_flags), file, offset, bytes);
    }

    /// Queues making a file's writes stable: those that completed before. With [`Flush::Range`], which this interface lacks,
    /// it is an fdatasync; callers refuse that earlier.
    ///
    /// # Panics
    /// As [`Aio::read`].
    #[inline]
    pub fn flush(&mut self, slot: u32, file: u32, flush: Flush) {
        let command = if flush == Flush::All { IOCB_CMD_FSYNC } else { IOCB_CMD_FDSYNC };
        self.queue(slot, (command, 0), file, 0, 0);
    }

    #[inline]
    fn queue(&mut self, slot: u32, (command, flags): (u16, u32), file: u32, offset: u64, bytes: u32) {
        let address = self.slots.claim(slot, bytes, 0);
        let moves = command == IOCB_CMD_PREAD || command == IOCB_CMD_PWRITE;
        let control = Control {
            data: u64::from(slot),
            key_and_flags: u64::from(flags) << 32,
            command,
            file: self.slots.number(file) as u32,
            // A sync with an address or a size is refused.
            address: if moves { address as u64 } else { 0 },
            bytes: u64::from(bytes),
            offset: offset as i64,
            ..Control::default()
        };
        // SAFETY: there is a control per slot, `claim` checked that the slot exists, and no reference to a control ever is.
        let place = unsafe {
            let place = self.controls.as_mut_ptr().add(slot as usize);
            place.write(control);
            place
        };
        self.queued.push(place);
    }

    /// Gives the operation that was queued last a priority of its own (class and level as `ioprio_set(2)` takes them).
    pub fn prioritize(&mut self, priority: u16) {
        let Some(place) = self.queued.last().copied() else { return };
        // SAFETY: it is the place of a control of this value, written when it was queued and not handed over yet, and no reference to a
        // control ever is.
        unsafe {
            (*place).priority = priority as i16;
            (*place).flags |= IOCB_FLAG_IOPRIO;
        }
    }

    /// Submits what is queued and waits until `wait` operations have completed, [`WAIT_LIMIT`] at most. What the kernel
    /// refuses to take completes with its errno.
    ///
    /// # Errors
    /// `EAGAIN` where the kernel takes nothing although nothing is in flight; else a failure of the wait itself.
    #[inline]
    pub fn submit(&mut self, wait: u32) -> io::Result<()> {
        if !self.queued.is_empty() {
            self.hand_over()?;
        }
        let here = self.ready.len() + self.waiting();
        // What could not be handed over cannot be waited for.
        let flying = (self.slots.in_flight() as usize).saturating_sub(self.queued.len());
        let missing = (wait as usize).min(flying + self.ready.len()).saturating_sub(here);
        if missing > 0 {
            let least = (wait as usize).saturating_sub(self.ready.len()).min(flying);
            self.fetch(least, WAIT_LIMIT.as_nanos() as libc::c_long)?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let mut taken = 0;
        while taken < self.queued.len() {
            let rest = &mut self.queued[taken..];
            // SAFETY: each pointer is to a control of this value, whose buffer lies in a slot that `claim` marked as in
            // flight, so nobody else reads or writes it until the kernel is done; files and memory are given back only when
            // nothing is in flight. The kernel copies the controls during the call.
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

    /// Operations that have not been reaped yet.
    pub fn in_flight(&self) -> u32 {
        self.slots.in_flight()
    }

    /// Waits until an operation in flight has completed, `ns` at most.
    ///
    /// # Errors
    /// What the kernel answers when the interface itself fails.
    pub fn wait_within(&mut self, ns: u64) -> io::Result<()> {
        if !self.ready.is_empty() || self.waiting() > 0 {
            return Ok(());
        }
        self.fetch(1, Duration::from_nanos(ns).min(WAIT_LIMIT).as_nanos() as libc::c_long)
    }

    /// Takes completions that are there; a system call only without a mapped ring. Returns how many of `done` were filled.
    #[inline]
    pub fn reap(&mut self, done: &mut [Done]) -> usize {
        if !self.mapped && self.ready.is_empty() && self.slots.in_flight() > 0 {
            // A failure shows again at the next wait, which tells it.
            let _ = self.fetch(0, 0);
        }
        let mut taken = self.ready.len().min(done.len());
        let kept = self.ready.len() - taken;
        done[..taken].copy_from_slice(&self.ready[kept..]);
        self.ready.truncate(kept);
        while taken < done.len() {
            let Some(event) = self.next_mapped() else { break };
            let Some(finished) = self.slots.release(event.data as u32, event.result as i32) else { continue };
            done[taken] = finished;
            taken += 1;
        }
        taken
    }

    /// Events in the mapped ring.
    #[inline]
    fn waiting(&self) -> usize {
        if !self.mapped {
            return 0;
        }
        let ring = self.ring();
        let (head, tail) = (ring.head.load(Ordering::Relaxed), ring.tail.load(Ordering::Acquire));
        (if tail >= head { tail - head } else { ring.entries - head + tail }) as usize
    }

    /// The next event of the mapped ring.
    #[inline]
    fn next_mapped(&mut self) -> Option<Event> {
        if self.waiting() == 0 {
            return None;
        }
        let ring = self.ring();
        let head = ring.head.load(Ordering::Relaxed);
        // SAFETY: the ring was found to have the known layout: a head of the size of an event, then `entries` of them, and the
        // mapping is aligned to pages. The index is below `entries` as long as the kernel keeps its word. It published
        // this one with the tail that `waiting` has acquired, and overwrites it only once the head has passed it.
        let event = unsafe { (self.context as *const Event).add(1 + head as usize).read() };
        let next = if head + 1 == ring.entries { 0 } else { head + 1 };
        ring.head.store(next, Ordering::Release);
        Some(event)
    }

    #[inline]
    fn ring(&self) -> &MappedRing {
        // SAFETY: only called where `is_known_ring` held; the mapping lives as long as the context, which `self` owns. What
        // the kernel changes meanwhile are the two atomics.
        unsafe { &*(self.context as *const MappedRing) }
    }

    /// Fetches events by system call, at least `least` of them unless the time is over.
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

    /// Waits for all that the kernel has. True when nothing is left. Files cannot cancel (`io_cancel(2)`: `EINVAL`).
    fn drain(&mut self) -> bool {
        let limit = Instant::now() + DRAIN_LIMIT;
        let mut done = [Done::default(); 64];
        // Never handed over, so nobody has them.
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
        // SAFETY: each is given back once, here, and not used again; nothing is in flight.
        unsafe {
            libc::syscall(libc::SYS_io_destroy, self.context);
            ManuallyDrop::drop(&mut self.slots);
            ManuallyDrop::drop(&mut self.controls);
        }
    }
}

/// Whether a context is a mapped ring of the layout known here, as every kernel since 2.6 makes it. It can be read without
/// system calls then, as libaio itself does.
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
fn structures_have_the_sizes_of_the_kernels() {
    assert_eq!((size_of::<Control>(), size_of::<Event>(), size_of::<MappedRing>()), (64, 32, 32));
}
