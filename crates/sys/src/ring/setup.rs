//! Setting a ring up: what is asked of the kernel, and what it grants.
//!
//! For: the flags of `io_uring_setup(2)`. Not for: operations; that is the ring.

use crate::granted::Granted;
use io_uring::{Builder, IoUring};
use std::io;

/// Milliseconds without work after which the kernel's submission thread sleeps; a run's pauses are shorter.
const THREAD_IDLE_MS: u32 = 1000;

/// What is asked of a ring. The default is what measures best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingOptions {
    /// Completions are polled for (`IORING_SETUP_IOPOLL`): direct I/O on a polling device only.
    pub poll: bool,
    /// A kernel thread takes submissions (`IORING_SETUP_SQPOLL`).
    pub thread: Thread,
    /// Where the kernel finishes operations.
    pub task_work: TaskWork,
    /// What becomes of pages that operations bring into the page cache.
    pub pages: Pages,
    /// What becomes of a write that is cut off.
    pub writes: Writes,
    /// Buffers are not registered.
    pub plain_buffers: bool,
    /// Files are not registered.
    pub plain_files: bool,
}

/// The kernel's submission thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thread {
    /// None: submission is a system call.
    #[default]
    None,
    /// On any CPU.
    Anywhere,
    /// On this one.
    On(u32),
}

/// When the kernel finishes an operation on the submitting thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskWork {
    /// At its next transition into the kernel, whatever that is for (5.19).
    #[default]
    Cooperative,
    /// Only in a call that waits (6.1).
    Deferred,
    /// At once, by interrupting it: what every kernel can do.
    Interrupt,
}

/// What becomes of pages that operations bring into the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// They stay.
    #[default]
    Stay,
    /// They are dropped after the operation (`RWF_DONTCACHE`, 6.14).
    Drop,
}

/// What becomes of a write that a power failure cuts off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// A part of it may be there.
    #[default]
    Plain,
    /// It is whole or not there (`RWF_ATOMIC`, 6.11).
    Atomic,
}

/// A way to set a ring up, in words and flags.
type Step = (&'static str, fn(&mut Builder));

// Deferred task work is not the default on purpose: it shows completions later. On a virtio disk at depth 32 it put the mean
// in flight 12 % above the device's own queue, cooperative task work 6 %, at equal IOPS.
const COOPERATIVE: &[Step] = &[
    ("cooperative task work, single issuer", |b| {
        b.setup_single_issuer().setup_coop_taskrun().setup_taskrun_flag();
    }),
    ("cooperative task work", |b| {
        b.setup_coop_taskrun().setup_taskrun_flag();
    }),
    INTERRUPT,
];
const INTERRUPT: Step = ("task work by interrupt", |_| ());
const DEFERRED: &[Step] = &[("deferred task work, single issuer", |b| {
    b.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
})];
/// With a submission thread the kernel refuses any word about task work: the thread does it.
const THREAD: &[Step] = &[
    ("submission thread, single issuer", |b| {
        b.setup_single_issuer();
    }),
    ("submission thread", |_| ()),
];

/// Asks for the quickest ring that the options allow, and falls back where an older kernel knows less.
pub(super) fn build(entries: u32, options: &RingOptions, granted: &mut Granted) -> io::Result<IoUring> {
    let steps: &[Step] = match (options.thread, options.task_work) {
        (Thread::None, TaskWork::Cooperative) => COOPERATIVE,
        (Thread::None, TaskWork::Deferred) => DEFERRED,
        (Thread::None, TaskWork::Interrupt) => &[INTERRUPT],
        (_, TaskWork::Cooperative) => THREAD,
        (_, _) => {
            let why =
                "with sqpoll the kernel's thread does the task work, so deferred and interrupt mean nothing";
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
