//! Engines: the table [`ENGINES`], from which help, plans and workers are built, and what engines
//! share.
//!
//! The loop is compiled for each engine. The loop that records single operations is compiled only
//! for `sim`, which has its own clock, and for `Boxed`. `Boxed` is a pointer to any engine, and
//! each call goes through the pointer. [`probe`] sets up an engine without running operations.

mod aio;
mod io_uring;
mod kernel_copy;
mod mmap;
mod no_storage;
mod preadv;
mod read_write;
mod streams;
mod targets;
mod without_data;

#[cfg(test)]
mod tests;

use crate::interface::{BlockingEngine, Call, CannotBegin, Done, Engine, Granted, Queue};
use crate::link::{Task, WorkerOutcome};
use crate::recorder::{NoRecorder, OperationRecorder};
use crate::source::{NoOperations, Op};
use crate::spec::{EngineFacts, WorkerSpec};
pub use crate::spec::{EngineOption, TakesNumber};
use crate::worker;
use model::job::{Cache, Kind, Options};
use model::record::stream::DepthCounts;
use model::spec::number::MAX_DEPTH;
use std::io;
use std::ops::Deref;
use sys::clock::Clock;
use sys::open_file::OpenFile;

/// Cache modes that an engine with file descriptors supports.
const DESCRIPTOR_MODES: &[Cache] =
    &[Cache::Direct, Cache::Buffered, Cache::Sync, Cache::Dsync, Cache::DirectSync, Cache::DirectDsync];
/// Cache modes without direct I/O. The buffers of a library, and pages that the kernel moves, do not have the required alignment.
const PAGE_CACHE_MODES: &[Cache] = &[Cache::Buffered, Cache::Sync, Cache::Dsync];
/// Cache modes of an engine that behaves the same with each of them. The first is the default.
const EQUIVALENT_MODES: &[Cache] =
    &[Cache::Buffered, Cache::Direct, Cache::Sync, Cache::Dsync, Cache::DirectSync, Cache::DirectDsync];
/// Kinds of operations that the asynchronous interfaces older than io_uring support.
const READ_WRITE_SYNC: &[Kind] = &[Kind::Read, Kind::Write, Kind::Sync];

/// A table entry: the facts of an engine and the functions compiled for it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    facts: EngineFacts,
    /// Runs a worker with this engine.
    pub(crate) run: fn(&mut Task) -> WorkerOutcome,
    /// Runs a worker with this engine and records single operations, for settings that `WorkerSpec::needs_recorder` lists.
    pub(crate) run_recorded: fn(&mut Task) -> WorkerOutcome,
    /// Opens this engine outside the hot loop.
    pub(crate) open: fn(&mut WorkerSpec) -> Opened,
}

/// The result of opening an engine: a pointer to the engine, and the features that the kernel
/// granted.
pub(crate) type Opened = io::Result<(Box<dyn Queue>, Granted)>;

impl Deref for Entry {
    type Target = EngineFacts;

    fn deref(&self) -> &EngineFacts {
        &self.facts
    }
}

impl Entry {
    const fn new<E: Engine + 'static>(facts: EngineFacts) -> Self {
        let run_recorded = worker::run::<Boxed, OperationRecorder>;
        Self { facts, run: worker::run::<E, NoRecorder>, run_recorded, open: open::<E> }
    }
}

fn open<E: Engine + 'static>(spec: &mut WorkerSpec) -> Opened {
    let (engine, granted) = E::open(spec)?;
    Ok((Box::new(engine), granted))
}

/// Returns the default facts: the engine moves bytes and supports any depth up to [`MAX_DEPTH`].
const fn default_facts(name: &'static str, about: &'static str) -> EngineFacts {
    EngineFacts {
        name,
        about,
        moves_bytes: true,
        library_threads: false,
        completes_in_submit: false,
        max_depth: MAX_DEPTH,
        default_batch: 1,
        kinds: &Kind::ALL,
        caches: DESCRIPTOR_MODES,
        takes_priorities: false,
        options: &[],
    }
}

/// Builds the table entry of an engine with blocking calls.
const fn blocking<C: Call + 'static>(
    name: &'static str,
    about: &'static str,
    options: &'static [EngineOption],
    caches: &'static [Cache],
) -> Entry {
    Entry::new::<BlockingEngine<C>>(EngineFacts {
        max_depth: 1,
        completes_in_submit: true,
        options,
        caches,
        ..default_facts(name, about)
    })
}

/// Builds the table entry of an engine that changes a file and moves no data.
const fn without_data<C: Call + 'static>(
    name: &'static str,
    about: &'static str,
    kinds: &'static [Kind],
) -> Entry {
    let facts = EngineFacts {
        moves_bytes: false,
        completes_in_submit: true,
        max_depth: 1,
        ..default_facts(name, about)
    };
    Entry::new::<BlockingEngine<C>>(EngineFacts { kinds, caches: EQUIVALENT_MODES, ..facts })
}

/// All engines. This is a static because a constant would be compiled again in every crate, with the loop of every engine.
pub static ENGINES: &[Entry] = &[
    Entry::new::<io_uring::Uring>(EngineFacts {
        options: io_uring::OPTIONS,
        takes_priorities: true,
        ..default_facts("io_uring", "the kernel's submission and completion rings")
    }),
    Entry::new::<aio::Libaio>(EngineFacts {
        options: aio::LIBAIO_OPTIONS,
        takes_priorities: true,
        kinds: READ_WRITE_SYNC,
        ..default_facts("libaio", "io_submit and io_getevents, the kernel's asynchronous I/O before io_uring")
    }),
    Entry::new::<aio::Posixaio>(EngineFacts {
        library_threads: true,
        kinds: READ_WRITE_SYNC,
        ..default_facts(
            "posixaio",
            "aio_read and aio_write: threads of the C library, in glibc one operation at a time per file",
        )
    }),
    blocking::<read_write::Sync>(
        "sync",
        "pread and pwrite: one operation at a time per worker",
        read_write::SYNC_OPTIONS,
        DESCRIPTOR_MODES,
    ),
    blocking::<read_write::Vsync>(
        "vsync",
        "preadv2 and pwritev2 with flags: one operation at a time per worker",
        read_write::VSYNC_OPTIONS,
        DESCRIPTOR_MODES,
    ),
    Entry::new::<preadv::Preadv>(EngineFacts {
        completes_in_submit: true,
        default_batch: 0,
        ..default_facts("preadv", "preadv and pwritev: adjacent operations of a batch in one call")
    }),
    blocking::<read_write::Rw>(
        "rw",
        "read and write from the position of the file: one operation at a time per worker",
        read_write::RW_OPTIONS,
        DESCRIPTOR_MODES,
    ),
    blocking::<streams::Stdio>(
        "stdio",
        "fread and fwrite of the C library: one operation at a time per worker",
        streams::STDIO_OPTIONS,
        PAGE_CACHE_MODES,
    ),
    #[cfg(feature = "cxx")]
    blocking::<streams::Fstream>(
        "fstream",
        "read and write of C++'s std::fstream: one operation at a time per worker",
        &[],
        PAGE_CACHE_MODES,
    ),
    blocking::<streams::RustStd>(
        "std",
        "Rust's File, BufReader and BufWriter: one operation at a time per worker",
        streams::STD_OPTIONS,
        PAGE_CACHE_MODES,
    ),
    blocking::<mmap::Mmap>(
        "mmap",
        "loads from and stores to a mapped file: one operation at a time per worker",
        mmap::OPTIONS,
        &[Cache::Mmap],
    ),
    blocking::<kernel_copy::Splice>(
        "splice",
        "splice through a pipe: one operation at a time per worker",
        kernel_copy::SPLICE_OPTIONS,
        DESCRIPTOR_MODES,
    ),
    blocking::<kernel_copy::Sendfile>(
        "sendfile",
        "sendfile between the target and memory: one operation at a time per worker",
        &[],
        DESCRIPTOR_MODES,
    ),
    blocking::<kernel_copy::CopyFileRange>(
        "copy_file_range",
        "copy_file_range between the target and another file: one operation at a time per worker",
        kernel_copy::COPY_OPTIONS,
        PAGE_CACHE_MODES,
    ),
    without_data::<without_data::Ftruncate>(
        "ftruncate",
        "each write sets the file's length to the offset of the write: moves no data",
        &[Kind::Write, Kind::Sync],
    ),
    without_data::<without_data::Fallocate>(
        "fallocate",
        "writes allocate blocks and extend the file, reads only allocate, trims free blocks: moves no data",
        &Kind::ALL,
    ),
    Entry::new::<no_storage::Null>(EngineFacts {
        moves_bytes: false,
        default_batch: 0,
        ..default_facts("null", "completes at once and moves nothing: measures fathom itself")
    }),
    Entry {
        // Not `Boxed`, because the simulated device has its own clock.
        run_recorded: worker::run::<no_storage::Sim, OperationRecorder>,
        ..Entry::new::<no_storage::Sim>(EngineFacts {
            moves_bytes: false,
            options: no_storage::SIM_OPTIONS,
            ..default_facts("sim", "a simulated device: 100 us per operation on a clock of its own")
        })
    },
];

/// Returns the engine of this name; `None` if there is none.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENGINES.iter().find(|e| e.name == name)
}

/// Sets up an engine for `depth` operations of `bytes` on an open file.
///
/// # Errors
/// The reason why the engine cannot be set up, such as a missing kernel feature.
pub fn probe(
    engine: &'static Entry,
    options: &Options,
    file: OpenFile,
    cache: Cache,
    depth: u32,
    bytes: u32,
) -> Result<(), CannotBegin> {
    let (clock, _) = Clock::calibrate(false);
    let mut spec = WorkerSpec {
        depth: depth.clamp(1, engine.max_depth),
        slot_bytes: bytes,
        options: options.clone(),
        cache,
        ..WorkerSpec::plain(engine, vec![Box::new(NoOperations)], vec![file], 0, clock)?
    };
    let opened = (engine.open)(&mut spec);
    opened.map(drop).map_err(|error| CannotBegin::for_engine(0, engine.name, &error))
}

/// A pointer to an engine of any type.
struct Boxed {
    queue: Box<dyn Queue>,
    clock: Clock,
    depth: Option<DepthCounter>,
}

/// Counts the operations in flight at each submission, and the operations that each call submits or
/// completes. It is part of [`Boxed`], so the hot loop needs no code for it.
#[derive(Default)]
struct DepthCounter {
    queued: u32,
    in_flight: u32,
    counts: DepthCounts,
}

impl DepthCounter {
    /// Counts the submission of the queued operations. A call that only waits is not counted.
    fn submit(&mut self) {
        if self.queued > 0 {
            self.in_flight += self.queued;
            self.counts.submitted(self.queued, self.in_flight);
            self.queued = 0;
        }
    }

    fn complete(&mut self, operations: usize) {
        if operations > 0 {
            self.in_flight = self.in_flight.saturating_sub(operations as u32);
            self.counts.completed(operations as u32);
        }
    }
}

impl Engine for Boxed {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let name = spec.engine.name;
        let entry = find(name).ok_or_else(|| io::Error::other(format!("there is no engine {name}")))?;
        let (queue, granted) = (entry.open)(spec)?;
        let depth = spec.count_depth.then(DepthCounter::default);
        Ok((Self { queue, clock: spec.clock, depth }, granted))
    }

    fn time(&self) -> &Clock {
        &self.clock
    }

    fn depth_counts(&self) -> Option<DepthCounts> {
        self.depth.as_ref().map(|depth| depth.counts)
    }
}

impl Queue for Boxed {
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.queue.slot_mut(slot)
    }

    fn queue(&mut self, slot: u32, op: &Op) {
        self.depth.iter_mut().for_each(|depth| depth.queued += 1);
        self.queue.queue(slot, op);
    }

    fn queue_with_priority(&mut self, slot: u32, op: &Op, priority: u16) {
        self.depth.iter_mut().for_each(|depth| depth.queued += 1);
        self.queue.queue_with_priority(slot, op, priority);
    }

    fn submit(&mut self, wait: u32) -> io::Result<()> {
        self.depth.iter_mut().for_each(DepthCounter::submit);
        self.queue.submit(wait)
    }

    fn pause(&mut self, ns: u64) -> io::Result<()> {
        self.queue.pause(ns)
    }

    fn reap(&mut self, done: &mut [Done]) -> usize {
        let taken = self.queue.reap(done);
        self.depth.iter_mut().for_each(|depth| depth.complete(taken));
        taken
    }
}

#[test]
fn a_probe_sets_up_or_refuses_an_engine_like_a_worker() -> std::io::Result<()> {
    let find = |name: &str| find(name).unwrap_or_else(|| panic!("no {name}"));
    let file = tempfile::tempfile()?;
    file.set_len(4096)?;
    let with = |name: &str, option: &str| {
        let options =
            if option.is_empty() { Options::new() } else { Options::from([(option.to_owned(), None)]) };
        probe(find(name), &options, OpenFile::new(file.try_clone()?, false), Cache::Buffered, 4, 4096)
            .map_err(|why| std::io::Error::other(why.sentence))
    };
    assert!(with("libaio", "").is_ok());
    let refused = with("io_uring", "iopoll").err().map(|e| e.to_string()).unwrap_or_default();
    assert!(refused.contains("--cache direct"), "{refused}");
    Ok(())
}

#[test]
fn operations_in_flight_are_counted_per_submission() {
    let mut depth = DepthCounter { queued: 4, ..DepthCounter::default() };
    depth.submit();
    depth.submit();
    depth.complete(0);
    depth.complete(3);
    depth.queued = 1;
    depth.submit();
    let DepthCounts { level, submit, complete } = depth.counts;
    assert_eq!((level[2], level[1], submit[1], complete[1]), (4, 1, 2, 1));
    assert_eq!(level.iter().chain(&submit).chain(&complete).sum::<u64>(), 8);
}
