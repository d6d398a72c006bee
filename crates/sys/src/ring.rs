//! An io_uring with the files and the memory that its operations use.
//!
//! For: reads and writes addressed by slot, handed over and reaped by one thread. Not for: deciding what to read, or when.
//!
//! The ring owns its files and its arena, and a slot in flight cannot be had: that is what makes this safe to use. Where it
//! is dropped with operations in flight, they are cancelled and reaped; after five seconds ring, files and arena are
//! leaked, since memory that a device may still write to must never be given back.

use crate::arena::Arena;
use io_uring::{IoUring, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Longest time a wait stays in the kernel, so that a stop is seen.
pub const WAIT_LIMIT: Duration = Duration::from_millis(100);
/// How long a drop waits for operations in flight before it leaks what they use.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// Most files that can be registered here; far above any number of targets.
const MAX_FILES: usize = 1 << 12;

/// A file of a ring.
#[derive(Debug)]
pub struct RingFile {
    /// The open file.
    pub file: File,
    /// Whether operations may write to it.
    pub writable: bool,
}

impl RingFile {
    /// The same open file under another number.
    ///
    /// # Errors
    /// What the kernel answers: mostly that there are too many.
    pub fn copy(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, writable: self.writable })
    }
}

/// What the kernel was asked for at set-up, and granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Features in use, in words.
    pub used: Vec<String>,
    /// Features refused, with the reason.
    pub fallbacks: Vec<String>,
}

/// An operation's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Its slot.
    pub slot: u32,
    /// Bytes moved, or minus errno.
    pub result: i32,
}

/// A ring with what its operations use.
pub struct Ring {
    #[allow(clippy::struct_field_names)] // It is the ring; everything else is what it uses.
    ring: ManuallyDrop<IoUring>,
    arena: ManuallyDrop<Arena>,
    files: ManuallyDrop<Vec<RingFile>>,
    busy: Box<[bool]>,
    in_flight: u32,
    fixed_buffers: bool,
    fixed_files: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("slots", &self.busy.len())
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

impl Ring {
    /// Sets a ring up for as many operations as the arena has slots. Must be called by the thread that will use it.
    ///
    /// # Errors
    /// What the kernel answers when it refuses even the plainest ring: `EPERM` or `ENOSYS` where io_uring is switched off.
    pub fn new(arena: Arena, files: Vec<RingFile>) -> io::Result<(Self, Granted)> {
        if files.is_empty() || files.len() > MAX_FILES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a ring needs between 1 and 4096 files"));
        }
        let entries = u32::try_from(arena.slots()).unwrap_or(u32::MAX).max(1);
        let mut granted = Granted::default();
        let ring = build(entries, &mut granted)?;
        let vectors = arena.io_vectors();
        // SAFETY: the memory belongs to the arena, which lives in the same value as the ring and is given back only when
        // nothing is in flight.
        let fixed_buffers =
            note(&mut granted, "registered buffers", unsafe { ring.submitter().register_buffers(&vectors) });
        let numbers: Vec<i32> = files.iter().map(|f| f.file.as_raw_fd()).collect();
        let fixed_files = note(&mut granted, "registered files", ring.submitter().register_files(&numbers));
        note(&mut granted, "registered ring", ring.submitter().register_ring_fd());
        let busy = vec![false; arena.slots()].into_boxed_slice();
        let (ring, arena, files) =
            (ManuallyDrop::new(ring), ManuallyDrop::new(arena), ManuallyDrop::new(files));
        Ok((Self { ring, arena, files, busy, in_flight: 0, fixed_buffers, fixed_files }, granted))
    }

    /// The bytes of a slot that is not in flight.
    ///
    /// # Panics
    /// Where the slot is in flight or does not exist: a defect of the caller.
    pub fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        assert!(!self.busy[slot as usize], "slot {slot} is in flight");
        self.arena.slot_mut(slot as usize)
    }

    /// Operations that have not been reaped yet.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Queues a read into a slot; [`Ring::submit`] hands it over.
    ///
    /// # Panics
    /// Where the slot is in flight, too small or does not exist, or there is no such file: defects of the caller.
    #[inline]
    pub fn read(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        let address = self.claim(slot, bytes);
        let entry = match (self.fixed_files, self.fixed_buffers) {
            (true, true) => {
                opcode::ReadFixed::new(types::Fixed(file), address, bytes, slot as u16).offset(offset).build()
            }
            (true, false) => opcode::Read::new(types::Fixed(file), address, bytes).offset(offset).build(),
            (false, true) => {
                opcode::ReadFixed::new(self.number(file), address, bytes, slot as u16).offset(offset).build()
            }
            (false, false) => opcode::Read::new(self.number(file), address, bytes).offset(offset).build(),
        };
        self.push(slot, entry);
    }

    /// Queues a write from a slot; [`Ring::submit`] hands it over.
    ///
    /// # Panics
    /// Where the file may not be written: the last lock before the kernel. Else as [`Ring::read`].
    #[inline]
    pub fn write(&mut self, slot: u32, file: u32, offset: u64, bytes: u32) {
        assert!(self.files[file as usize].writable, "a write to a file that was opened for reading");
        let address = self.claim(slot, bytes);
        let entry = match (self.fixed_files, self.fixed_buffers) {
            (true, true) => opcode::WriteFixed::new(types::Fixed(file), address, bytes, slot as u16)
                .offset(offset)
                .build(),
            (true, false) => opcode::Write::new(types::Fixed(file), address, bytes).offset(offset).build(),
            (false, true) => {
                opcode::WriteFixed::new(self.number(file), address, bytes, slot as u16).offset(offset).build()
            }
            (false, false) => opcode::Write::new(self.number(file), address, bytes).offset(offset).build(),
        };
        self.push(slot, entry);
    }

    /// Hands over what is queued and waits until `wait` operations have completed, [`WAIT_LIMIT`] at most. Nothing queued
    /// and nothing to wait for is no call.
    ///
    /// # Errors
    /// What the kernel answers, but for the answers that mean "look again": a signal, the time limit, a full queue.
    #[inline]
    pub fn submit(&mut self, wait: u32) -> io::Result<()> {
        let answer = if wait == 0 {
            self.ring.submitter().submit()
        } else {
            let limit = types::Timespec::from(WAIT_LIMIT);
            let args = types::SubmitArgs::new().timespec(&limit);
            self.ring.submitter().submit_with_args(wait as usize, &args)
        };
        again(answer)
    }

    /// Waits until an operation in flight has completed, `ns` at most.
    ///
    /// # Errors
    /// As [`Ring::submit`].
    pub fn wait(&mut self, ns: u64) -> io::Result<()> {
        let limit = types::Timespec::from(Duration::from_nanos(ns));
        let args = types::SubmitArgs::new().timespec(&limit);
        again(self.ring.submitter().submit_with_args(1, &args))
    }

    /// Takes completions that are there; no system call. Returns how many of `done` were filled.
    #[inline]
    pub fn reap(&mut self, done: &mut [Done]) -> usize {
        let mut taken = 0;
        let mut completions = self.ring.completion();
        while taken < done.len() {
            let Some(entry) = completions.next() else { break };
            let slot = entry.user_data() as u32;
            // A cancellation's own answer carries a slot that does not exist.
            let Some(busy) = self.busy.get_mut(slot as usize) else { continue };
            *busy = false;
            self.in_flight -= 1;
            done[taken] = Done { slot, result: entry.result() };
            taken += 1;
        }
        taken
    }

    /// Marks a slot as in flight and gives its address.
    #[inline]
    fn claim(&mut self, slot: u32, bytes: u32) -> *mut u8 {
        assert!(!self.busy[slot as usize], "slot {slot} is in flight");
        assert!(bytes as usize <= self.arena.slot_bytes(), "{bytes} bytes do not fit slot {slot}");
        self.busy[slot as usize] = true;
        self.in_flight += 1;
        self.arena.address(slot as usize)
    }

    #[inline]
    fn number(&self, file: u32) -> types::Fd {
        types::Fd(self.files[file as usize].file.as_raw_fd())
    }

    #[inline]
    fn push(&mut self, slot: u32, entry: squeue::Entry) {
        let entry = entry.user_data(u64::from(slot));
        // SAFETY: address and length lie in a slot of the arena that `claim` marked as in flight, so nobody else reads or
        // writes it until the kernel is done; the file is open as long as the ring lives. A registered buffer has the
        // slot's number, and at most 2^14 can be registered, so the cast above loses nothing.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // The ring has an entry per slot and a slot is queued once, so there is always room.
        assert!(pushed.is_ok(), "a full submission queue");
    }

    /// Cancels all that is in flight and waits for the answers. True when nothing is left.
    fn drain(&mut self) -> bool {
        let limit = Instant::now() + DRAIN_LIMIT;
        let mut done = [Done::default(); 64];
        let _ = self.ring.submit();
        if self.in_flight > 0 {
            // Kernels before 6.0 lack this call; waiting below is then all that can be done.
            let soon = types::Timespec::from(WAIT_LIMIT);
            let _ = self.ring.submitter().register_sync_cancel(Some(soon), types::CancelBuilder::any());
        }
        while self.in_flight > 0 && Instant::now() < limit {
            let _ = self.submit(1);
            self.reap(&mut done);
        }
        self.in_flight == 0
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.drain() {
            return;
        }
        // SAFETY: each is dropped once, here, and not used again; the ring goes first, so the kernel lets go of memory and
        // files before they are given back.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            ManuallyDrop::drop(&mut self.files);
            ManuallyDrop::drop(&mut self.arena);
        }
    }
}

/// Lets the answers pass that mean "look again": a signal, the time limit, a full queue.
#[inline]
fn again(answer: io::Result<usize>) -> io::Result<()> {
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

/// Asks for the quickest ring first and falls back, one feature at a time.
fn build(entries: u32, granted: &mut Granted) -> io::Result<IoUring> {
    type Wish = (&'static str, fn(&mut io_uring::Builder));
    // 6.0 and 5.19 brought these. Deferred task work (6.1) is left out on purpose: it shows completions later. On a virtio
    // disk at depth 32 it put the mean in flight 12 % above the device's own queue, cooperative task work 6 %, at equal IOPS.
    let wishes: [Wish; 2] = [
        ("cooperative task work, single issuer", |b| {
            b.setup_single_issuer().setup_coop_taskrun().setup_taskrun_flag();
        }),
        ("cooperative task work", |b| {
            b.setup_coop_taskrun().setup_taskrun_flag();
        }),
    ];
    for (name, apply) in wishes {
        let mut builder = IoUring::builder();
        builder.setup_clamp();
        apply(&mut builder);
        match builder.build(entries) {
            Ok(ring) => {
                granted.used.push(name.into());
                return Ok(ring);
            }
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                granted.fallbacks.push(format!("{name}: {e}"));
            }
            Err(e) => return Err(e),
        }
    }
    IoUring::builder().setup_clamp().build(entries)
}

#[cfg(test)]
fn scratch(writable: bool) -> io::Result<RingFile> {
    use std::io::Write;
    let path = std::env::temp_dir().join(format!("fathom-ring-{}-{writable}", std::process::id()));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(&[7; 8192])?;
    Ok(RingFile { file, writable })
}

#[cfg(test)]
fn ring_of(writable: bool) -> Option<Ring> {
    match Ring::new(Arena::new(2, 4096).ok()?, vec![scratch(writable).ok()?]) {
        Ok((ring, _)) => Some(ring),
        Err(e) => {
            println!("SKIPPED: io_uring cannot be set up here: {e}");
            None
        }
    }
}

#[test]
fn what_is_written_is_read_back() {
    let Some(mut ring) = ring_of(true) else { return };
    let mut done = [Done::default(); 4];
    ring.slot_mut(0).fill(42);
    ring.write(0, 0, 4096, 4096);
    ring.submit(1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((ring.reap(&mut done), done[0]), (1, Done { slot: 0, result: 4096 }));
    ring.read(1, 0, 4096, 4096);
    ring.submit(1).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ring.reap(&mut done), 1);
    assert!(ring.slot_mut(1).iter().all(|b| *b == 42));
}

/// The words of the panic that a misuse ends in; `None` where it did not.
#[cfg(test)]
fn panic_of(misuse: impl FnOnce()) -> Option<String> {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(misuse)).err()?;
    panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
}

#[test]
fn a_write_to_a_reading_file_is_stopped_before_the_kernel() {
    let Some(mut ring) = ring_of(false) else { return };
    let panic = panic_of(|| ring.write(0, 0, 0, 4096));
    assert!(panic.is_some_and(|p| p.contains("opened for reading")));
}

#[test]
fn a_slot_in_flight_cannot_be_had() {
    let Some(mut ring) = ring_of(true) else { return };
    ring.read(0, 0, 0, 4096);
    let panic = panic_of(|| {
        ring.slot_mut(0);
    });
    assert!(panic.is_some_and(|p| p.contains("in flight")));
}
