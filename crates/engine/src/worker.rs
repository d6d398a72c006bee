//! Workers: their threads, and everything around the hot loop.
//!
//! 1. [`Workers::spawn`] starts one thread per spec. Each thread places itself, opens its engine and waits at the start barrier.
//! 2. [`Workers::open`] lets all workers begin together, or at a given time.
//! 3. [`run`] reads the counters of the thread, runs the loop, and reads them again.
//! 4. The collector takes blocks and logged operations, and names workers that are stuck in the kernel.
//! 5. [`Workers::finish`] returns the outcomes.

use crate::hot::Loop;
use crate::interface::{CannotBegin, Engine, Time};
use crate::recorder::Recorder;
use crate::spec::{STALL_LIMIT_NS, WorkerSpec};
use crate::tally::{Block, Outcome, Port, Tap, connect};
use crate::{engines, recorder};
use model::Known;
use model::job::{IoPriority, MemoryNodes};
use model::op_log::Operation;
use model::record::ThreadIo;
use rtrb::{Consumer, Producer};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fs, io};
use sys::open_file::OpenFile;
use sys::perf::{Calls, Counters};
use sys::thread;
use sys::thread::{MemoryPolicy, RunQueue, Usage};

/// The worker that a block or an outcome belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of its stream.
    pub stream: usize,
}

struct Worker {
    who: Who,
    /// The files of its spec. The worker uses duplicates in its own file table, so these must be closed here.
    files: Arc<Vec<OpenFile>>,
    engine: &'static str,
    thread: JoinHandle<Outcome>,
    tap: Tap,
    log: Option<Consumer<Operation>>,
    /// Shared by all workers of its stream.
    stop: Arc<AtomicBool>,
    heartbeat: Arc<AtomicU64>,
    last_heartbeat: (u64, Instant),
    patience: Duration,
}

/// The workers of one phase.
pub struct Workers {
    all: Vec<Worker>,
    barrier: Arc<StartBarrier>,
    failed: Arc<AtomicBool>,
}

impl Workers {
    /// Starts one thread per spec and returns when all are set up.
    ///
    /// # Errors
    /// The reason of the first worker that cannot begin; all others end.
    pub fn spawn(specs: Vec<WorkerSpec>) -> Result<Self, CannotBegin> {
        let mut started = Self { all: Vec::new(), barrier: Arc::default(), failed: Arc::default() };
        let count = specs.len();
        for spec in specs {
            match started.start(spec, count) {
                Ok(worker) => started.all.push(worker),
                Err(why) => started.barrier.fail(why.into()),
            }
        }
        if let Err(why) = started.barrier.all_ready(count) {
            started.barrier.open(false);
            started.all.into_iter().filter(|w| w.thread.is_finished()).for_each(|w| drop(w.thread.join()));
            return Err(why);
        }
        Ok(started)
    }

    /// Starts the thread of a spec. Finds the engine by its name, since the spec has only its facts.
    fn start(&self, mut spec: WorkerSpec, count: usize) -> Result<Worker, String> {
        let name = spec.engine.name;
        let entry = engines::find(name).ok_or_else(|| format!("there is no engine {name}"))?;
        let (port, tap) = connect(spec.sources.len(), spec.open_loop);
        let heartbeat = Arc::new(AtomicU64::new(0));
        let same_stream = self.all.iter().find(|w| w.who.stream == spec.stream);
        let stop = same_stream.map_or_else(Arc::default, |w| Arc::clone(&w.stop));
        let (to_log, log) = spec.log.then(|| recorder::connect(count)).unzip();
        let link = Link {
            port,
            log: to_log,
            barrier: Arc::clone(&self.barrier),
            stop: Arc::clone(&stop),
            failed: Arc::clone(&self.failed),
            heartbeat: Arc::clone(&heartbeat),
        };
        let who = Who { worker: spec.worker, stream: spec.stream };
        let (barrier, failed) = (Arc::clone(&self.barrier), Arc::clone(&self.failed));
        let patience = Duration::from_nanos(STALL_LIMIT_NS + spec.interval_ns);
        let files = Arc::new(std::mem::take(&mut spec.files));
        let shared = Arc::clone(&files);
        let run = if spec.is_watched() { entry.run_watched } else { entry.run };
        let mut task = Task { spec, link };
        let thread = std::thread::Builder::new().name(format!("fathom-{}", who.worker)).spawn(move || {
            let _ = sys::thread::block_signals();
            if !entry.library_threads {
                // If it is refused, descriptor lookups are slightly slower.
                let _ = sys::thread::own_file_table();
            }
            let copies: std::io::Result<Vec<OpenFile>> = shared.iter().map(OpenFile::copy).collect();
            drop(shared);
            task.spec.files = match copies {
                Ok(copies) => copies,
                Err(e) => {
                    let error = format!("worker {} cannot have its files: {e}{}", who.worker, sys::cause(&e));
                    barrier.fail(error.clone().into());
                    return Outcome::failed(error);
                }
            };
            catch_unwind(AssertUnwindSafe(|| run(&mut task))).unwrap_or_else(|panic| {
                let error =
                    format!("worker {} ({}) panicked: {}", who.worker, entry.name, panic_message(&*panic));
                barrier.fail(error.clone().into());
                failed.store(true, Ordering::Relaxed);
                Outcome::failed(error)
            })
        });
        let refused = |e| format!("a thread cannot be started: {e}; use fewer --workers{}", sys::cause(&e));
        let thread = thread.map_err(refused)?;
        Ok(Worker {
            who,
            files,
            engine: entry.name,
            thread,
            tap,
            log,
            stop,
            heartbeat,
            last_heartbeat: (0, Instant::now()),
            patience,
        })
    }

    /// Lets all workers begin.
    pub fn open(&mut self) {
        let now = Instant::now();
        self.all.iter_mut().for_each(|w| w.last_heartbeat.1 = now);
        self.barrier.open(true);
    }

    /// Lets all workers begin at a time; at once if it has passed.
    pub fn open_at(&mut self, at: Instant) {
        self.all.iter_mut().for_each(|w| w.last_heartbeat.1 = at.max(Instant::now()));
        self.barrier.open_at(at);
    }

    /// Returns the delay in ns of the last worker after the time given to [`Self::open_at`].
    pub fn late_ns(&self) -> u64 {
        self.barrier.late_ns()
    }

    /// Stops all workers after their current turn.
    pub fn stop(&self) {
        self.all.iter().for_each(|w| w.stop.store(true, Ordering::Relaxed));
    }

    /// Stops the workers of a stream after their current turn.
    pub fn stop_stream(&self, stream: usize) {
        let same_stream = self.all.iter().filter(|w| w.who.stream == stream);
        same_stream.for_each(|w| w.stop.store(true, Ordering::Relaxed));
    }

    /// Passes every block that has arrived to `read`.
    pub fn collect(&mut self, mut read: impl FnMut(Who, &Block)) {
        for worker in &mut self.all {
            let who = worker.who;
            worker.tap.take(|block| read(who, block));
        }
    }

    /// Passes the logged operations that have arrived to `read`, in chunks, in the order of each worker.
    pub fn take_logged(&mut self, mut read: impl FnMut(Who, &[Operation])) {
        for worker in &mut self.all {
            let Some(log) = &mut worker.log else { continue };
            // Only the present ones: a fast worker must not starve the others.
            if let Ok(chunk) = log.read_chunk(log.slots()) {
                let (first, second) = chunk.as_slices();
                read(worker.who, first);
                read(worker.who, second);
                chunk.commit_all();
            }
        }
    }

    /// Whether all workers have ended.
    pub fn is_done(&self) -> bool {
        self.all.iter().all(|w| w.thread.is_finished())
    }

    /// Whether all workers of a stream have ended.
    pub fn has_ended(&self, stream: usize) -> bool {
        self.all.iter().filter(|w| w.who.stream == stream).all(|w| w.thread.is_finished())
    }

    /// Whether any worker has ended with an error: the others alone are a different workload.
    pub fn any_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns a message about a worker without a heartbeat for too long: it is stuck in a system call.
    pub fn stuck(&mut self) -> Option<String> {
        let now = Instant::now();
        for worker in self.all.iter_mut().filter(|w| !w.thread.is_finished()) {
            let heartbeat = worker.heartbeat.load(Ordering::Relaxed);
            if heartbeat != worker.last_heartbeat.0 {
                worker.last_heartbeat = (heartbeat, now);
            }
            let silent = now - worker.last_heartbeat.1;
            if silent > worker.patience {
                return Some(format!(
                    "worker {} ({}) has not come back from the kernel for {} s; the target does not answer, and the kernel keeps \
                     this process until it does",
                    worker.who.worker,
                    worker.engine,
                    silent.as_secs()
                ));
            }
        }
        None
    }

    /// Returns the outcomes. A worker that has not ended is abandoned and reported as stuck.
    pub fn finish(self) -> Vec<(Who, Outcome)> {
        let outcomes = self.all.into_iter().map(|worker| {
            let outcome = if worker.thread.is_finished() {
                worker.thread.join().unwrap_or_else(|panic| Outcome::failed(panic_message(&*panic)))
            } else {
                Outcome::failed(format!(
                    "worker {} ({}) is stuck in the kernel",
                    worker.who.worker, worker.engine
                ))
            };
            if outcome.error.is_some() {
                // Closing a file may block on a file system that never answers; the exit of the process closes it too.
                std::mem::forget(worker.files);
            }
            (worker.who, outcome)
        });
        outcomes.collect()
    }
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "without words".into())
}

/// A worker's connections to the thread that started it; none needs a lock in the hot loop.
pub(crate) struct Link {
    pub(crate) port: Port,
    /// Ring for its logged operations.
    pub(crate) log: Option<Producer<Operation>>,
    pub(crate) barrier: Arc<StartBarrier>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) failed: Arc<AtomicBool>,
    pub(crate) heartbeat: Arc<AtomicU64>,
}

/// A worker about to start.
pub(crate) struct Task {
    pub(crate) spec: WorkerSpec,
    pub(crate) link: Link,
}

/// Longest set-up of rings and memory before the start fails.
const SET_UP_LIMIT: Duration = Duration::from_secs(30);
/// Workers sleep until this time before a given start, and then spin, since a sleep ends late.
const SPIN: Duration = Duration::from_millis(2);

/// The start barrier: workers wait until all are ready.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    state: Mutex<State>,
    changed: Condvar,
    /// Delay of the last worker after the given start, in ns.
    late_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    ready: usize,
    failure: Option<CannotBegin>,
    opened: Option<bool>,
    /// The given start; `None` to begin at once.
    at: Option<Instant>,
}

impl StartBarrier {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is valid even if a worker panicked with the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the worker as ready and waits. Returns whether to begin.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.lock();
        state.ready += 1;
        self.changed.notify_all();
        while state.opened.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.opened == Some(true)
    }

    /// Reports that a worker cannot begin.
    pub(crate) fn fail(&self, why: CannotBegin) {
        self.lock().failure.get_or_insert(why);
        self.changed.notify_all();
    }

    /// Lets all waiting workers begin, or end.
    pub(crate) fn open(&self, go: bool) {
        self.lock().opened = Some(go);
        self.changed.notify_all();
    }

    /// Lets all waiting workers begin at a time.
    pub(crate) fn open_at(&self, at: Instant) {
        self.lock().at = Some(at);
        self.open(true);
    }

    /// Waits for the given start, directly before the first operation.
    pub(crate) fn hold(&self) {
        let Some(at) = self.lock().at else { return };
        let left = at.saturating_duration_since(Instant::now());
        std::thread::sleep(left.saturating_sub(SPIN));
        while Instant::now() < at {
            std::hint::spin_loop();
        }
        let late = at.elapsed().as_nanos() as u64;
        self.late_ns.fetch_max(late, Ordering::Relaxed);
    }

    /// Returns the delay of the last worker after the given start, in ns.
    pub(crate) fn late_ns(&self) -> u64 {
        self.late_ns.load(Ordering::Relaxed)
    }

    /// Waits until `count` workers are ready.
    ///
    /// # Errors
    /// The first reason why a worker cannot begin, or how many were not ready in time.
    pub(crate) fn all_ready(&self, count: usize) -> Result<(), CannotBegin> {
        let limit = Instant::now() + SET_UP_LIMIT;
        let mut state = self.lock();
        while state.ready < count {
            if let Some(why) = &state.failure {
                return Err(why.clone());
            }
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let (late, seconds) = (count - state.ready, SET_UP_LIMIT.as_secs());
                return Err(format!("{late} of {count} workers were not ready after {seconds} s").into());
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

/// Runs a task on an engine, with or without recording single operations. The engine table points to instances of this function.
pub(crate) fn run<E: Engine, R: Recorder>(task: &mut Task) -> Outcome {
    let outcome = run_task::<E, R>(task);
    // Report a failure at once: the other workers alone are a different workload.
    task.link.failed.fetch_or(outcome.error.is_some(), Ordering::Relaxed);
    outcome
}

fn run_task<E: Engine, R: Recorder>(task: &mut Task) -> Outcome {
    let opened = place_thread(&task.spec).and_then(|()| E::open(&mut task.spec));
    let (mut engine, mut granted) = match opened {
        Ok(opened) => opened,
        Err(e) => {
            let why = CannotBegin::of_engine(task.spec.worker, task.spec.engine.name, &e);
            task.link.barrier.fail(why.clone());
            return Outcome::failed(why.sentence);
        }
    };
    // Opened before the start: after it, every microsecond counts.
    let queue = RunQueue::open().map_err(|e| format!("/proc/thread-self/schedstat: {e}"));
    let waited = || queue.as_ref().map_err(Clone::clone)?.waited_ns().map_err(|e| e.to_string());
    let io_counts = IoCounts::open();
    let has_helpers = task.spec.engine.name == "io_uring";
    if task.spec.fills_ahead() {
        granted.used.push(model::record::PREPARES_AHEAD.into());
    }
    let count_calls = task.spec.count_calls;
    let barrier = Arc::clone(&task.link.barrier);
    let mut hot_loop = Loop::<E, R>::new(task, &mut engine);
    if !barrier.wait() {
        return Outcome::failed("was not started".into());
    }
    let (before, waited_before) = (sys::thread::usage().unwrap_or_default(), waited());
    let io_before = io_counts.read();
    let counters = Counters::start();
    let mut calls = count_calls.then(Calls::start);
    barrier.hold();
    let start = hot_loop.time().now();
    let error = hot_loop.drive(start).err();
    let end = hot_loop.time().now();
    let calls = calls.as_mut().map(|c| c.as_mut().map_err(|e| e.clone())?.end());
    let counted = Some(counters.and_then(|mut c| c.end()));
    let (after, waited_after) = (sys::thread::usage().unwrap_or_default(), waited());
    let helpers = if has_helpers { ring_thread_counts() } else { ThreadIo::default() };
    let io = io_before.and_then(|before| Ok(io_counts.read()?.since(before).plus(helpers)));
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
    let name = |e| format!("worker {} ({}): {e}", task.spec.worker, task.spec.engine.name);
    let ready_ns = Some(ready_ns);
    let io = Some(io);
    Outcome {
        error: error.map(name),
        granted,
        wall_ns,
        usage,
        counted,
        ready_ns,
        io,
        calls,
        depth_counts,
        ..outcome
    }
}

/// Places the thread before it allocates memory, and makes its timers precise.
fn place_thread(spec: &WorkerSpec) -> io::Result<()> {
    sys::thread::place(&spec.place.cpus, spec.place.node)?;
    match &spec.place.memory {
        Some(MemoryNodes::Local) => thread::set_memory_policy(MemoryPolicy::Local, &[])?,
        Some(MemoryNodes::Bind(nodes)) => thread::set_memory_policy(MemoryPolicy::Bind, nodes)?,
        Some(MemoryNodes::Prefer(node)) => thread::set_memory_policy(MemoryPolicy::Prefer, &[*node])?,
        Some(MemoryNodes::Interleave(nodes)) => thread::set_memory_policy(MemoryPolicy::Interleave, nodes)?,
        None => {
            spec.place.node.map_or(Ok(()), |node| thread::set_memory_policy(MemoryPolicy::Bind, &[node]))?
        }
    }
    sys::thread::prefer(spec.place.nice, spec.place.io_priority.map(IoPriority::number))?;
    // Without this a sleep may last up to 50 us longer.
    let _ = sys::thread::precise_timers();
    Ok(())
}

/// Size of the buffer for the file: seven lines with numbers of at most 20 digits.
const MAX_IO_FILE_BYTES: usize = 512;
/// Names of the kernel threads of a ring, before the id of the thread that owns the ring.
const RING_THREAD_PREFIXES: [&str; 2] = ["iou-wrk-", "iou-sqp-"];

/// The kernel's I/O counts of the calling thread (`/proc/thread-self/io`), which are separate for each stream. The file is opened before the
/// start and read at the first and last timestamp, outside the loop.
pub(crate) struct IoCounts(Known<File>);

impl IoCounts {
    /// Opens the counts of the calling thread.
    pub(crate) fn open() -> Self {
        Self(File::open("/proc/thread-self/io").map_err(|e| format!("/proc/thread-self/io: {e}")))
    }

    /// Reads the counts since the thread began.
    pub(crate) fn read(&self) -> Known<ThreadIo> {
        parse_io_file(self.0.as_ref().map_err(Clone::clone)?)
    }
}

/// Reads the counts of the kernel threads that io_uring started for the calling thread. They have their own counts and live as long as the
/// ring, so they are read once, at the end. Threads that ended earlier, and those of a C library, count only for the process; the analysis
/// takes the difference as unattributed.
pub(crate) fn ring_thread_counts() -> ThreadIo {
    let mut sum = ThreadIo::default();
    let Ok(own) = fs::read_link("/proc/thread-self") else { return sum };
    let Some(own) = own.file_name().and_then(|id| id.to_str()) else { return sum };
    let names = RING_THREAD_PREFIXES.map(|before| format!("{before}{own}"));
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let path = thread.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if names.iter().any(|helper| helper == name.trim_end()) {
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
    let Ok(before) = IoCounts::open().read() else { return };
    let wrote = |bytes: usize| {
        let mut file = tempfile::tempfile().unwrap_or_else(|e| panic!("{e}"));
        file.write_all(&vec![1; bytes]).unwrap_or_else(|e| panic!("{e}"));
    };
    wrote(1 << 20);
    std::thread::spawn(move || wrote(1 << 24)).join().unwrap_or_else(|_| panic!("the thread panicked"));
    let own = IoCounts::open().read().unwrap_or_else(|why| panic!("{why}")).since(before);
    assert!((1 << 20..1 << 23).contains(&own.wchar), "{own:?}");
    assert_eq!(ring_thread_counts(), ThreadIo::default());
}

#[test]
fn no_worker_begins_before_the_given_time() {
    let barrier = std::sync::Arc::new(StartBarrier::default());
    let begun: Vec<_> = (0..2)
        .map(|_| {
            let barrier = std::sync::Arc::clone(&barrier);
            std::thread::spawn(move || {
                let go = barrier.wait();
                barrier.hold();
                (go, Instant::now())
            })
        })
        .collect();
    assert!(barrier.all_ready(2).is_ok());
    let at = Instant::now() + Duration::from_millis(20);
    barrier.open_at(at);
    for thread in begun {
        let (go, began) = thread.join().unwrap_or_else(|_| panic!("a worker panicked"));
        assert!(go && began >= at);
        assert!((began - at).as_nanos() as u64 >= barrier.late_ns() || barrier.late_ns() > 0);
    }
}
