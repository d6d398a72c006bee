//! The engine `io_uring`: the kernel's submission and completion rings, with registered buffers and files if granted. Each variant of the
//! ring's set-up is an engine option.

use super::targets::flush_of;
use crate::engines::targets;
use crate::interface::{self, Done, Engine, Granted, LEAVE_OUT, Queue, USE_SYNC, refusal};
use crate::source::Op;
use crate::spec::{EngineOption, TakesNumber, WorkerSpec};
use model::job::Kind;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};
use sys::arena::Arena;
use sys::clock::Clock;
use sys::file_pages::Flush;
use sys::open_file::OpenFile;
use sys::ring::{Pages, Ring, RingOptions, TaskWork, Thread, Writes};

/// Options of `io_uring`.
pub(super) const OPTIONS: &[EngineOption] = &[
    EngineOption::new(
        "iopoll",
        "poll the device for completions; needs direct I/O and a device with poll queues",
    ),
    EngineOption {
        name: "sqpoll",
        about: "a kernel thread submits the operations, pinned to CPU N if given",
        number: TakesNumber::Optional,
        delivers_data: true,
    },
    EngineOption::new("plain-buffers", "do not register buffers"),
    EngineOption::new("plain-files", "do not register files"),
    EngineOption::new("deferred", "finish operations only in calls that wait (DEFER_TASKRUN)"),
    EngineOption::new("interrupt", "interrupt the thread to finish each operation at once"),
    EngineOption::without_data(
        "nop",
        "submit IORING_OP_NOP, which moves no bytes: the cost of io_uring itself",
    ),
    EngineOption::new("dontcache", "drop pages from the page cache after each operation (RWF_DONTCACHE)"),
    EngineOption::new(targets::ATOMIC, targets::ABOUT_ATOMIC),
];

/// Time limit for one trial operation.
const TRIAL_LIMIT: Duration = Duration::from_secs(5);

pub(super) struct Uring {
    ring: Ring,
    clock: Clock,
    flush: Flush,
    nop: bool,
}

impl Engine for Uring {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let options = ring_options(spec)?;
        let nop = spec.options.contains_key("nop");
        let polling = if options.poll { targets::check_polling(spec, "iopoll")? } else { Granted::default() };
        let devices: Vec<bool> = spec.files.iter().map(is_writable_device).collect();
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let (ring, mut granted) =
            Ring::new(arena, std::mem::take(&mut spec.files), &options).map_err(|e| explain(&e, &options))?;
        granted.fallbacks.extend(polling.fallbacks);
        for (is_set, text) in [
            (options.poll, "polled completions"),
            (nop, "nop: no bytes are moved"),
            (options.pages == Pages::Drop, "RWF_DONTCACHE"),
            (options.writes == Writes::Atomic, "RWF_ATOMIC, from buffers that are not registered"),
        ] {
            if is_set {
                granted.used.push(text.into());
            }
        }
        let mut engine = Self { ring, clock: spec.clock, flush: flush_of(spec.sync_call), nop };
        for file in (0..).zip(devices).filter_map(|(file, is_device)| is_device.then_some(file)) {
            engine.try_discard(file)?;
        }
        if options.poll {
            engine.try_reads(spec.slot_bytes, "option iopoll: this target cannot be polled")?;
        }
        if options.pages == Pages::Drop {
            let why = "option dontcache: the kernel (6.14 or newer is needed) or the file system does not support RWF_DONTCACHE";
            engine.try_reads(spec.slot_bytes, why)?;
        }
        Ok((engine, granted))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }
}

impl Queue for Uring {
    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.ring.slot_mut(slot)
    }

    #[expect(
        clippy::inline_always,
        reason = "two loops use it, and a call costs 7 % of an operation in a batch"
    )]
    #[inline(always)]
    fn queue(&mut self, slot: u32, op: &Op) {
        let file = u32::from(op.file);
        match op.kind {
            _ if self.nop => self.ring.nop(slot, op.length),
            Kind::Read => self.ring.read(slot, file, op.offset, op.length),
            Kind::Write => self.ring.write(slot, file, op.offset, op.length),
            Kind::Trim => self.ring.trim(slot, file, op.offset, op.length),
            Kind::Sync => self.ring.flush(slot, file, self.flush),
        }
    }

    fn queue_with_priority(&mut self, slot: u32, op: &Op, priority: u16) {
        let file = u32::from(op.file);
        match op.kind {
            Kind::Read if !self.nop => {
                self.ring.read_with_priority(slot, file, op.offset, op.length, priority);
            }
            Kind::Write if !self.nop => {
                self.ring.write_with_priority(slot, file, op.offset, op.length, priority);
            }
            _ => self.queue(slot, op),
        }
    }

    #[inline]
    fn submit(&mut self, wait: u32) -> io::Result<()> {
        self.ring.submit(wait)
    }

    fn pause(&mut self, ns: u64) -> io::Result<()> {
        if self.ring.in_flight() == 0 {
            interface::pause(ns);
            return Ok(());
        }
        interface::wake_early(ns, |ns| self.ring.wait_within(ns))
    }

    #[inline]
    fn reap(&mut self, done: &mut [Done]) -> usize {
        self.ring.reap(done)
    }
}

impl Uring {
    /// Reads once from each file, because the kernel checks the flags of a read only when it executes the read. Fails
    /// with `why` if the kernel does not support the flags.
    fn try_reads(&mut self, bytes: u32, why: &str) -> io::Result<()> {
        for file in 0..self.ring.files() {
            self.ring.read(0, file, 0, bytes);
            let Some(result) = self.trial_result()? else {
                let why = format!(
                    "{why}, or the target does not answer (a test read did not complete within {} s)",
                    TRIAL_LIMIT.as_secs()
                );
                return Err(refusal(io::ErrorKind::TimedOut, why, LEAVE_OUT));
            };
            // Ignore other errors here: the measured operations report them.
            if result == -rustix::io::Errno::OPNOTSUPP.raw_os_error() {
                return Err(refusal(io::ErrorKind::Unsupported, why, LEAVE_OUT));
            }
        }
        Ok(())
    }

    /// Tests with an empty discard whether kernel and device support discards. If so, trims of this device are sent as discards.
    fn try_discard(&mut self, file: u32) -> io::Result<()> {
        self.ring.discard(0, file, 0, 0);
        match self.trial_result()? {
            None => {
                let why =
                    format!("the device did not answer an empty discard within {} s", TRIAL_LIMIT.as_secs());
                return Err(refusal(io::ErrorKind::TimedOut, why, USE_SYNC));
            }
            // EINVAL: the kernel supports discards and refuses only the empty range.
            Some(known) if known == -rustix::io::Errno::INVAL.raw_os_error() => {
                self.ring.trim_by_discards(file);
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Returns the result of the one queued operation; `None` after the time limit.
    fn trial_result(&mut self) -> io::Result<Option<i32>> {
        let mut done = [Done::default()];
        let limit = Instant::now() + TRIAL_LIMIT;
        self.ring.submit(1)?;
        while self.ring.reap(&mut done) == 0 {
            if Instant::now() > limit {
                return Ok(None);
            }
            self.ring.submit(1)?;
        }
        Ok(Some(done[0].result))
    }
}

/// Whether a file is a block device that is open for writing.
fn is_writable_device(file: &OpenFile) -> bool {
    file.writable && file.file.metadata().is_ok_and(|facts| facts.file_type().is_block_device())
}

/// Converts the options of the engine to options of the ring.
fn ring_options(spec: &WorkerSpec) -> io::Result<RingOptions> {
    let has = |name: &str| spec.options.contains_key(name);
    for (one, other) in
        [("deferred", "interrupt"), ("nop", "dontcache"), ("nop", "iopoll"), ("iopoll", "dontcache")]
    {
        if has(one) && has(other) {
            let why = format!("options {one} and {other} exclude each other");
            return Err(refusal(io::ErrorKind::InvalidInput, why, "leave one of the two options out"));
        }
    }
    if has("dontcache") && spec.cache.is_direct() {
        let why = "option dontcache: direct I/O leaves nothing in the page cache";
        return Err(refusal(io::ErrorKind::InvalidInput, why, "type --cache buffered"));
    }
    let writes = if targets::check_atomic_writes(spec)? { Writes::Atomic } else { Writes::Plain };
    Ok(RingOptions {
        poll: has("iopoll"),
        thread: match spec.options.get("sqpoll") {
            None => Thread::None,
            Some(None) => Thread::Anywhere,
            Some(Some(cpu)) => Thread::On(u32::try_from(*cpu).unwrap_or(u32::MAX)),
        },
        task_work: match (has("deferred"), has("interrupt")) {
            (true, _) => TaskWork::Deferred,
            (_, true) => TaskWork::Interrupt,
            _ => TaskWork::Cooperative,
        },
        pages: if has("dontcache") { Pages::Drop } else { Pages::Stay },
        writes,
        // File systems accept atomic writes only from plain user buffers, not from registered ones
        // (`generic_atomic_write_valid`).
        plain_buffers: has("plain-buffers") || writes == Writes::Atomic,
        plain_files: has("plain-files"),
    })
}

/// Explains why the kernel refuses a ring.
fn explain(error: &io::Error, options: &RingOptions) -> io::Error {
    let (why, instead) = match (error.kind(), options.thread, options.task_work) {
        // This error already has a message.
        _ if error.raw_os_error().is_none() => return io::Error::new(error.kind(), error.to_string()),
        (io::ErrorKind::PermissionDenied, ..) => (
            "io_uring is not permitted here, usually because of a seccomp filter or sysctl kernel.io_uring_disabled",
            "type --engine libaio",
        ),
        (io::ErrorKind::Unsupported, ..) => {
            ("this kernel has no io_uring, or a seccomp filter hides it", "type --engine libaio")
        }
        (io::ErrorKind::OutOfMemory, ..) => (
            "no memory for a ring of this depth, or the limit of locked memory is too low",
            "use a smaller --depth, or raise ulimit -l",
        ),
        (io::ErrorKind::InvalidInput, Thread::On(_), _) => (
            "option sqpoll: this CPU does not exist, or this process is not allowed to use it",
            "type sqpoll alone, or sqpoll=N with a CPU from `taskset -cp $$`",
        ),
        (io::ErrorKind::InvalidInput, _, TaskWork::Deferred) => {
            ("option deferred: this kernel does not support it (Linux 6.1 does)", LEAVE_OUT)
        }
        _ if rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::MFILE) => {
            ("this process has reached its limit of open files", "raise the limit that `ulimit -n` shows")
        }
        _ => ("the kernel refuses to set up a ring", USE_SYNC),
    };
    refusal(error.kind(), format!("{why} ({error})"), instead)
}
