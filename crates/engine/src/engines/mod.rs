//! Engines: the interfaces that carry operations, one file each and one line in [`ENGINES`].
//!
//! For: the table from which help, plans and workers are made. Not for: the loop, which is compiled once per engine.

mod copy;
#[cfg(feature = "cxx")]
mod fstream;
mod io_uring;
mod libaio;
mod mmap;
mod null;
mod one;
mod polling;
mod positions;
mod posixaio;
mod rust_std;
mod rw;
mod sendfile;
mod sim;
mod splice;
mod stdio;
mod streams;
mod sync;
mod targets;
#[cfg(test)]
mod tests;
mod vsync;

use crate::source::Op;
use crate::verifier;
use crate::worker::{self, Outcome, Spec, Task};
use model::job::{Cache, Kind, SyncCall};
use model::wish::limits::MAX_DEPTH;
use one::{Call, One};
use std::io;
use sys::clock::Clock;
pub use sys::ring::{Done, Granted};

/// What the loop needs of an interface. All slots belong to the loop until `queue` and again after `reap`.
pub trait Engine: Sized {
    /// What tells the time; a simulation has a clock of its own.
    type Time: Time;
    /// Sets the interface up, on the thread that will use it: memory for its slots, files, registrations.
    ///
    /// # Errors
    /// What the kernel answers.
    fn open(spec: &mut Spec) -> io::Result<(Self, Granted)>;
    /// The clock of its stamps.
    fn time(&self) -> &Self::Time;
    /// The data of a slot that is not in flight.
    fn slot_mut(&mut self, slot: u32) -> &mut [u8];
    /// Prepares an operation on a slot; nothing is handed over yet.
    fn queue(&mut self, slot: u32, op: &Op);
    /// Hands over what is queued and waits for `wait` completions, a tenth of a second at most.
    ///
    /// # Errors
    /// What the kernel answers when the interface itself fails; an operation's own failure is in its result.
    fn submit(&mut self, wait: u32) -> io::Result<()>;
    /// Passes up to `ns` while no operation may be handed over, or less where something completes meanwhile. It may come
    /// back at once: the caller looks at the clock and asks again.
    ///
    /// # Errors
    /// What the kernel answers when the interface itself fails.
    fn pause(&mut self, ns: u64) -> io::Result<()> {
        pause(ns);
        Ok(())
    }
    /// Takes completions that are there.
    fn reap(&mut self, done: &mut [Done]) -> usize;
}

/// What a sleeper may come too late, in ns: the rest is spent looking at the clock.
const OVERSLEEP_NS: u64 = 100_000;

/// Passes most of `ns` asleep, and comes back at once where that is too short to sleep.
pub(crate) fn pause(ns: u64) {
    match ns.checked_sub(OVERSLEEP_NS) {
        Some(sleep @ 1..) => std::thread::sleep(std::time::Duration::from_nanos(sleep)),
        _ => std::hint::spin_loop(),
    }
}

/// Waits by `wait` for a completion, and comes back that much before `ns` have passed: timers ring late, and the last stretch
/// is spent looking.
pub(crate) fn wake_early(ns: u64, wait: impl FnOnce(u64) -> io::Result<()>) -> io::Result<()> {
    match ns.checked_sub(OVERSLEEP_NS) {
        Some(ns @ 1..) => wait(ns),
        _ => Ok(()),
    }
}

/// A clock that counts ticks.
pub trait Time {
    /// Now, in ticks.
    fn now(&self) -> u64;
    /// Ticks as ns.
    fn ns(&self, ticks: u64) -> u64;
    /// ns as ticks.
    fn ticks_of(&self, ns: u64) -> u64;
}

impl Time for Clock {
    #[inline]
    fn now(&self) -> u64 {
        self.ticks()
    }

    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        Self::ns(self, ticks)
    }

    fn ticks_of(&self, ns: u64) -> u64 {
        Self::ticks_of(self, ns)
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What `--engine` takes.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// Whether it moves bytes of a target.
    pub moves_bytes: bool,
    /// Whether threads of a library carry its operations out. They live on from run to run with the file table they were
    /// born with, so workers must share theirs.
    pub library_threads: bool,
    /// Most operations it can have in flight per worker, whatever is asked.
    pub max_depth: u32,
    /// Operations handed over per call unless asked otherwise; 0 stands for the whole depth.
    pub default_batch: u32,
    /// What it can do.
    pub kinds: &'static [Kind],
    /// What its files may be opened with; the first is its default.
    pub caches: &'static [Cache],
    /// What can be asked of it, as in `--engine io_uring:iopoll`.
    pub options: &'static [EngineOption],
    /// The loop, compiled for this engine.
    pub(crate) run: fn(&mut Task) -> Outcome,
    /// The verifier's loop, compiled for this engine.
    pub(crate) verify: fn(&mut Spec, &mut dyn verifier::Work) -> Result<(), String>,
}

/// Something that can be asked of an engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineOption {
    /// Its name.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// Whether a number follows it.
    pub number: Number,
}

/// Whether a number follows an option, as in `sqpoll=1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Never.
    No,
    /// It may.
    May,
    /// Always.
    Must,
}

/// Everything that goes through a file descriptor.
const BY_DESCRIPTOR: &[Cache] =
    &[Cache::Direct, Cache::Buffered, Cache::Sync, Cache::Dsync, Cache::DirectSync, Cache::DirectDsync];

/// The page cache alone: buffers of a library, or pages handed around, have not the alignment that direct I/O needs.
const THROUGH_PAGES: &[Cache] = &[Cache::Buffered, Cache::Sync, Cache::Dsync];

/// What asynchronous interfaces before io_uring can do.
const READ_WRITE_SYNC: &[Kind] = &[Kind::Read, Kind::Write, Kind::Sync];

/// The line of an interface that has a depth and moves bytes.
const fn deep<E: Engine>(name: &'static str, about: &'static str) -> Entry {
    Entry {
        name,
        about,
        moves_bytes: true,
        library_threads: false,
        max_depth: MAX_DEPTH,
        default_batch: 1,
        kinds: &Kind::ALL,
        caches: BY_DESCRIPTOR,
        options: &[],
        run: worker::run::<E>,
        verify: verifier::drive::<E>,
    }
}

/// The line of a call that returns when its operation is done.
const fn one<C: Call>(name: &'static str, about: &'static str, options: &'static [EngineOption]) -> Entry {
    Entry { max_depth: 1, options, ..deep::<One<C>>(name, about) }
}

/// Every engine there is.
pub const ENGINES: &[Entry] = &[
    Entry {
        options: io_uring::OPTIONS,
        ..deep::<io_uring::Uring>("io_uring", "the kernel's submission and completion rings")
    },
    Entry {
        kinds: READ_WRITE_SYNC,
        ..deep::<libaio::Libaio>(
            "libaio",
            "io_submit and io_getevents, the kernel's asynchronous I/O before io_uring",
        )
    },
    Entry {
        library_threads: true,
        kinds: READ_WRITE_SYNC,
        ..deep::<posixaio::Posixaio>(
            "posixaio",
            "aio_read and aio_write: threads of the C library, one operation at a time per file",
        )
    },
    one::<sync::Sync>("sync", "pread and pwrite: one operation at a time per worker", sync::OPTIONS),
    one::<vsync::Vsync>(
        "vsync",
        "preadv2 and pwritev2 with flags: one operation at a time per worker",
        vsync::OPTIONS,
    ),
    one::<rw::Rw>(
        "rw",
        "read and write from the position of the file: one operation at a time per worker",
        rw::OPTIONS,
    ),
    Entry {
        caches: THROUGH_PAGES,
        ..one::<stdio::Stdio>(
            "stdio",
            "fread and fwrite of the C library: one operation at a time per worker",
            stdio::OPTIONS,
        )
    },
    #[cfg(feature = "cxx")]
    Entry {
        caches: THROUGH_PAGES,
        ..one::<fstream::Fstream>(
            "fstream",
            "read and write of C++'s std::fstream: one operation at a time per worker",
            &[],
        )
    },
    Entry {
        caches: THROUGH_PAGES,
        ..one::<rust_std::RustStd>(
            "std",
            "Rust's File, BufReader and BufWriter: one operation at a time per worker",
            rust_std::OPTIONS,
        )
    },
    Entry {
        caches: &[Cache::Mmap],
        ..one::<mmap::Mmap>(
            "mmap",
            "loads from and stores to a mapped file: one operation at a time per worker",
            mmap::OPTIONS,
        )
    },
    one::<splice::Splice>(
        "splice",
        "splice through a pipe: one operation at a time per worker",
        splice::OPTIONS,
    ),
    one::<sendfile::Sendfile>(
        "sendfile",
        "sendfile between the target and memory: one operation at a time per worker",
        &[],
    ),
    Entry {
        caches: THROUGH_PAGES,
        ..one::<copy::CopyFileRange>(
            "copy_file_range",
            "copy_file_range between the target and another file: one operation at a time per worker",
            copy::OPTIONS,
        )
    },
    Entry {
        moves_bytes: false,
        default_batch: 0,
        ..deep::<null::Null>("null", "completes at once and moves nothing: measures fathom itself")
    },
    Entry {
        moves_bytes: false,
        options: sim::OPTIONS,
        ..deep::<sim::Sim>("sim", "a simulated device: 100 us per operation on a clock of its own")
    },
];

/// The engine of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENGINES.iter().find(|e| e.name == name)
}

/// For interfaces that know fsync and fdatasync only.
///
/// # Errors
/// Where the spec asks for sync_file_range.
fn no_range(spec: &Spec) -> io::Result<()> {
    if spec.sync_call != SyncCall::SyncFileRange {
        return Ok(());
    }
    let why = format!(
        "{} knows no sync_file_range; sync with fsync or fdatasync, or type --engine io_uring",
        spec.engine.name
    );
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}
