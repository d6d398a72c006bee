//! One worker: places its thread, opens its engine, and runs the hot loop between two reads of the thread's counters.

use crate::hot::Loop;
use crate::interface::{CannotBegin, Engine, Time};
use crate::link::{Release, Task, WorkerOutcome};
use crate::recorder::Recorder;
use crate::spec::WorkerSpec;
use model::Known;
use model::job::{IoPriority, MemoryNodes};
use model::record::ThreadIo;
use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use sys::perf::{Calls, Counters};
use sys::thread::{self, MemoryPolicy, RunQueue, Usage};

/// Runs a task on engine `E` with recorder `R`. The engine table points to the instances of this function.
pub(crate) fn run<E: Engine, R: Recorder>(task: &mut Task) -> WorkerOutcome {
    let outcome = run_task::<E, R>(task);
    // Report a failure at once, because the load is a different one without this worker.
    task.link.failed.fetch_or(outcome.error.is_some(), Ordering::Relaxed);
    outcome
}

fn run_task<E: Engine, R: Recorder>(task: &mut Task) -> WorkerOutcome {
    let opened = place_thread(&task.spec).and_then(|()| E::open(&mut task.spec));
    let (mut engine, mut granted) = match opened {
        Ok(opened) => opened,
        Err(e) => {
            let why = CannotBegin::for_engine(task.spec.worker, task.spec.engine.name, &e);
            task.link.barrier.fail(why.clone());
            return WorkerOutcome::failed(why.sentence);
        }
    };
    // Open these files before the start: after the start every microsecond counts.
    let run_queue = RunQueue::open().map_err(|e| format!("/proc/thread-self/schedstat: {e}"));
    let waited_ns = || run_queue.as_ref().map_err(Clone::clone)?.waited_ns().map_err(|e| e.to_string());
    let io_file = IoFile::open();
    let has_ring_threads = task.spec.engine.name == "io_uring";
    if task.spec.fills_ahead() {
        granted.used.push(model::record::PREPARES_AHEAD.into());
    }
    let count_calls = task.spec.count_calls;
    let barrier = Arc::clone(&task.link.barrier);
    let mut hot_loop = Loop::<E, R>::new(task, &mut engine);
    if barrier.wait() == Release::End {
        return WorkerOutcome::failed("the workers were stopped before the start".into());
    }
    let (before, waited_before) = (thread::usage().unwrap_or_default(), waited_ns());
    let io_before = io_file.read();
    let counters = Counters::start();
    let mut calls = count_calls.then(Calls::start);
    barrier.wait_for_start_time();
    let start = hot_loop.time().now();
    let error = hot_loop.drive(start).err();
    let end = hot_loop.time().now();
    let system_calls = calls.as_mut().map(|c| c.as_mut().map_err(|e| e.clone())?.end());
    let cpu_counters = Some(counters.and_then(|mut c| c.end()));
    let (after, waited_after) = (thread::usage().unwrap_or_default(), waited_ns());
    let ring_threads = if has_ring_threads { ring_thread_counts() } else { ThreadIo::default() };
    let io_counts = io_before.and_then(|before| Ok(io_file.read()?.since(before).plus(ring_threads)));
    let ready_ns = waited_before.and_then(|before| Ok(waited_after?.saturating_sub(before)));
    let usage = Usage {
        user_ns: after.user_ns - before.user_ns,
        system_ns: after.system_ns - before.system_ns,
        voluntary_switches: after.voluntary_switches - before.voluntary_switches,
        forced_switches: after.forced_switches - before.forced_switches,
        minor_faults: after.minor_faults - before.minor_faults,
        major_faults: after.major_faults - before.major_faults,
    };
    let wall_ns = hot_loop.time().ns(end - start);
    let outcome = hot_loop.close();
    let depth_counts = engine.depth_counts();
    let with_worker = |e| format!("worker {} ({}): {e}", task.spec.worker, task.spec.engine.name);
    WorkerOutcome {
        error: error.map(with_worker),
        granted,
        wall_ns,
        usage,
        cpu_counters,
        ready_ns: Some(ready_ns),
        io_counts: Some(io_counts),
        system_calls,
        depth_counts,
        ..outcome
    }
}

/// Places the thread before it allocates memory, and makes its timers precise.
fn place_thread(spec: &WorkerSpec) -> io::Result<()> {
    thread::place(&spec.place.cpus, spec.place.node)?;
    match &spec.place.memory {
        Some(MemoryNodes::Local) => thread::set_memory_policy(MemoryPolicy::Local, &[])?,
        Some(MemoryNodes::Bind(nodes)) => thread::set_memory_policy(MemoryPolicy::Bind, nodes)?,
        Some(MemoryNodes::Prefer(node)) => thread::set_memory_policy(MemoryPolicy::Prefer, &[*node])?,
        Some(MemoryNodes::Interleave(nodes)) => thread::set_memory_policy(MemoryPolicy::Interleave, nodes)?,
        None => {
            spec.place.node.map_or(Ok(()), |node| thread::set_memory_policy(MemoryPolicy::Bind, &[node]))?;
        }
    }
    thread::prefer(spec.place.nice, spec.place.io_priority.map(IoPriority::number))?;
    // Without a slack of 1 ns a sleep may last up to 50 us longer. An error is ignored.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    Ok(())
}

/// Size in bytes of the buffer for `/proc/thread-self/io`, which has seven lines with numbers of at
/// most 20 digits.
const MAX_IO_FILE_BYTES: usize = 512;

/// Name prefixes of a ring's kernel threads. The id of the thread that owns the ring follows.
const RING_THREAD_PREFIXES: [&str; 2] = ["iou-wrk-", "iou-sqp-"];

/// The kernel's I/O counts of the calling thread (`/proc/thread-self/io`). Counts of threads,
/// unlike those of the process, can be added up for each stream. The file is opened before the
/// start and read at the first and last timestamp, outside the loop.
pub(crate) struct IoFile(Known<File>);

impl IoFile {
    /// Opens the counts of the calling thread.
    pub(crate) fn open() -> Self {
        Self(File::open("/proc/thread-self/io").map_err(|e| format!("/proc/thread-self/io: {e}")))
    }

    /// Reads the counts since the thread began.
    pub(crate) fn read(&self) -> Known<ThreadIo> {
        parse_io_file(self.0.as_ref().map_err(Clone::clone)?)
    }
}

/// Reads the counts of the kernel threads that io_uring started for the calling thread.
///
/// These threads have their own counts, which are read once, at the end of the run while the ring
/// still exists. The kernel charges threads that ended earlier, and the threads of a C library,
/// only to the process. The analysis treats that difference as unattributed.
pub(crate) fn ring_thread_counts() -> ThreadIo {
    let mut sum = ThreadIo::default();
    let Ok(own) = fs::read_link("/proc/thread-self") else { return sum };
    let Some(own) = own.file_name().and_then(|id| id.to_str()) else { return sum };
    let names = RING_THREAD_PREFIXES.map(|prefix| format!("{prefix}{own}"));
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let path = thread.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if names.iter().any(|ring_thread| ring_thread == name.trim_end()) {
            let io =
                File::open(path.join("io")).map_err(|e| e.to_string()).and_then(|file| parse_io_file(&file));
            sum = sum.plus(io.unwrap_or_default());
        }
    }
    sum
}

fn parse_io_file(file: &File) -> Known<ThreadIo> {
    let mut text = [0_u8; MAX_IO_FILE_BYTES];
    let count = file.read_at(&mut text, 0).map_err(|e| format!("/proc/thread-self/io: {e}"))?;
    ThreadIo::parse(&String::from_utf8_lossy(text.get(..count).unwrap_or_default()))
}

#[test]
fn io_of_other_threads_is_not_counted() {
    use std::io::Write;
    let Ok(before) = IoFile::open().read() else { return };
    let wrote = |bytes: usize| {
        let mut file = tempfile::tempfile().unwrap_or_else(|e| panic!("{e}"));
        file.write_all(&vec![1; bytes]).unwrap_or_else(|e| panic!("{e}"));
    };
    wrote(1 << 20);
    std::thread::spawn(move || wrote(1 << 24)).join().unwrap_or_else(|_| panic!("the thread panicked"));
    let own = IoFile::open().read().unwrap_or_else(|why| panic!("{why}")).since(before);
    assert!((1 << 20..1 << 23).contains(&own.wchar), "{own:?}");
    assert_eq!(ring_thread_counts(), ThreadIo::default());
}
