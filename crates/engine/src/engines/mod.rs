//! Engines: the interfaces that carry operations, one file each and one line in [`ENGINES`].
//!
//! For: the table from which help, plans and workers are made. Not for: what an engine is ([`crate::interface`]), nor the loop,
//! which is compiled once per engine.

mod atomic;
mod boxed;
mod copy;
mod fallocate;
#[cfg(feature = "cxx")]
mod fstream;
mod ftruncate;
mod io_uring;
mod libaio;
mod mmap;
mod null;
mod one;
mod polling;
mod positions;
mod posixaio;
mod preadv;
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

use crate::facts::Facts;
pub use crate::facts::{EngineOption, Number};
use crate::interface::{Engine, Granted, Queue};
use crate::link::Task;
use crate::outcome::Outcome;
use crate::recorder::{Off, Watched};
use crate::spec::WorkerSpec;
use crate::worker;
use model::job::{Cache, Kind};
use model::spec::number::MAX_DEPTH;
use one::{Call, One};
use std::io;
use std::ops::Deref;

/// Everything that goes through a file descriptor.
const BY_DESCRIPTOR: &[Cache] =
    &[Cache::Direct, Cache::Buffered, Cache::Sync, Cache::Dsync, Cache::DirectSync, Cache::DirectDsync];

/// The page cache alone: buffers of a library, or pages handed around, have not the alignment that direct I/O needs.
const THROUGH_PAGES: &[Cache] = &[Cache::Buffered, Cache::Sync, Cache::Dsync];

/// What does not look at how the file was opened: the usual one first.
const IN_ANY_WAY: &[Cache] =
    &[Cache::Buffered, Cache::Direct, Cache::Sync, Cache::Dsync, Cache::DirectSync, Cache::DirectDsync];

/// What asynchronous interfaces before io_uring can do.
const READ_WRITE_SYNC: &[Kind] = &[Kind::Read, Kind::Write, Kind::Sync];

/// An engine: its facts, and the code compiled for it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    facts: Facts,
    /// Runs a worker with it.
    pub(crate) run: fn(&mut Task) -> Outcome,
    /// Runs a worker with it and looks at each operation: for a log, to verify reads, or to tell targets or priorities apart.
    pub(crate) run_watched: fn(&mut Task) -> Outcome,
    /// Opens it for whoever is not the hot loop.
    pub(crate) open: fn(&mut WorkerSpec) -> Opened,
}

/// An engine of any type, as it was opened.
pub(crate) type Opened = io::Result<(Box<dyn Queue>, Granted)>;

impl Deref for Entry {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl Entry {
    const fn of<E: Engine + 'static>(facts: Facts) -> Self {
        let run_watched = worker::run::<boxed::Boxed, Watched>;
        Self { facts, run: worker::run::<E, Off>, run_watched, open: open::<E> }
    }
}

fn open<E: Engine + 'static>(spec: &mut WorkerSpec) -> Opened {
    let (engine, granted) = E::open(spec)?;
    Ok((Box::new(engine), granted))
}

/// The facts of an interface that has a depth and moves bytes, unless its line says otherwise.
const fn deep(name: &'static str, about: &'static str) -> Facts {
    Facts {
        name,
        about,
        moves_bytes: true,
        library_threads: false,
        in_the_call: false,
        max_depth: MAX_DEPTH,
        default_batch: 1,
        kinds: &Kind::ALL,
        caches: BY_DESCRIPTOR,
        takes_priorities: false,
        options: &[],
    }
}

/// The line of a call that returns when its operation is done.
const fn one<C: Call + 'static>(
    name: &'static str,
    about: &'static str,
    options: &'static [EngineOption],
    caches: &'static [Cache],
) -> Entry {
    Entry::of::<One<C>>(Facts { max_depth: 1, in_the_call: true, options, caches, ..deep(name, about) })
}

/// The line of a call that changes a file and moves no data.
const fn without_data<C: Call + 'static>(
    name: &'static str,
    about: &'static str,
    kinds: &'static [Kind],
) -> Entry {
    let facts = Facts { moves_bytes: false, in_the_call: true, max_depth: 1, ..deep(name, about) };
    Entry::of::<One<C>>(Facts { kinds, caches: IN_ANY_WAY, ..facts })
}

/// Every engine there is. A static, since a constant, and with it the loop of every engine, is compiled again in other crates that use it.
pub static ENGINES: &[Entry] = &[
    Entry::of::<io_uring::Uring>(Facts {
        options: io_uring::OPTIONS,
        takes_priorities: true,
        ..deep("io_uring", "the kernel's submission and completion rings")
    }),
    Entry::of::<libaio::Libaio>(Facts {
        options: libaio::OPTIONS,
        takes_priorities: true,
        kinds: READ_WRITE_SYNC,
        ..deep("libaio", "io_submit and io_getevents, the kernel's asynchronous I/O before io_uring")
    }),
    Entry::of::<posixaio::Posixaio>(Facts {
        library_threads: true,
        kinds: READ_WRITE_SYNC,
        ..deep(
            "posixaio",
            "aio_read and aio_write: threads of the C library, one operation at a time per file",
        )
    }),
    one::<sync::Sync>(
        "sync",
        "pread and pwrite: one operation at a time per worker",
        sync::OPTIONS,
        BY_DESCRIPTOR,
    ),
    one::<vsync::Vsync>(
        "vsync",
        "preadv2 and pwritev2 with flags: one operation at a time per worker",
        vsync::OPTIONS,
        BY_DESCRIPTOR,
    ),
    Entry::of::<preadv::Preadv>(Facts {
        in_the_call: true,
        default_batch: 0,
        ..deep("preadv", "preadv and pwritev: adjacent operations of a batch in one call")
    }),
    one::<rw::Rw>(
        "rw",
        "read and write from the position of the file: one operation at a time per worker",
        rw::OPTIONS,
        BY_DESCRIPTOR,
    ),
    one::<stdio::Stdio>(
        "stdio",
        "fread and fwrite of the C library: one operation at a time per worker",
        stdio::OPTIONS,
        THROUGH_PAGES,
    ),
    #[cfg(feature = "cxx")]
    one::<fstream::Fstream>(
        "fstream",
        "read and write of C++'s std::fstream: one operation at a time per worker",
        &[],
        THROUGH_PAGES,
    ),
    one::<rust_std::RustStd>(
        "std",
        "Rust's File, BufReader and BufWriter: one operation at a time per worker",
        rust_std::OPTIONS,
        THROUGH_PAGES,
    ),
    one::<mmap::Mmap>(
        "mmap",
        "loads from and stores to a mapped file: one operation at a time per worker",
        mmap::OPTIONS,
        &[Cache::Mmap],
    ),
    one::<splice::Splice>(
        "splice",
        "splice through a pipe: one operation at a time per worker",
        splice::OPTIONS,
        BY_DESCRIPTOR,
    ),
    one::<sendfile::Sendfile>(
        "sendfile",
        "sendfile between the target and memory: one operation at a time per worker",
        &[],
        BY_DESCRIPTOR,
    ),
    one::<copy::CopyFileRange>(
        "copy_file_range",
        "copy_file_range between the target and another file: one operation at a time per worker",
        copy::OPTIONS,
        THROUGH_PAGES,
    ),
    without_data::<ftruncate::Ftruncate>(
        "ftruncate",
        "each write sets the length of a file to its offset: moves no data",
        &[Kind::Write, Kind::Sync],
    ),
    without_data::<fallocate::Fallocate>(
        "fallocate",
        "allocates blocks of a file by writes, and by reads that leave its length; trims give them back: moves no data",
        &Kind::ALL,
    ),
    Entry::of::<null::Null>(Facts {
        moves_bytes: false,
        default_batch: 0,
        ..deep("null", "completes at once and moves nothing: measures fathom itself")
    }),
    Entry {
        // It has its clock inside.
        run_watched: worker::run::<sim::Sim, Watched>,
        ..Entry::of::<sim::Sim>(Facts {
            moves_bytes: false,
            options: sim::OPTIONS,
            ..deep("sim", "a simulated device: 100 us per operation on a clock of its own")
        })
    },
];

/// The engine of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENGINES.iter().find(|e| e.name == name)
}
