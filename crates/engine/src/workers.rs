//! The threads of a phase: starts workers together, takes their blocks, notices those that panic or
//! hang, and ends them.
//!
//! 1. [`Workers::spawn`] starts one thread per spec and returns when all have set up.
//! 2. [`Workers::open`] lets all begin together, [`Workers::open_at`] at a given time.
//! 3. The collector takes blocks and logged operations, and reports workers that are stuck in the
//!    kernel.
//! 4. [`Workers::finish`] returns the outcomes.

use crate::interface::CannotBegin;
use crate::link::{Block, Link, Release, StartBarrier, Tap, Task, WorkerOutcome, connect};
use crate::spec::{STALL_LIMIT_NS, WorkerSpec};
use crate::{engines, recorder};
use model::figures::Operation;
use rtrb::Consumer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::open_file::OpenFile;

/// Identifies the worker of a block or outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerId {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of the worker's stream.
    pub stream: usize,
}

struct Worker {
    id: WorkerId,
    /// The files of the worker's spec. The worker uses duplicates, so this thread must close the
    /// originals.
    files: Arc<Vec<OpenFile>>,
    engine: &'static str,
    thread: JoinHandle<WorkerOutcome>,
    tap: Tap,
    log: Option<Consumer<Operation>>,
    /// Stop flag, shared by all workers of the stream.
    stop: Arc<AtomicBool>,
    heartbeat: Arc<AtomicU64>,
    last_heartbeat: u64,
    last_heartbeat_at: Instant,
    /// A worker without a heartbeat for longer than this is stuck.
    stuck_after: Duration,
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
    /// The reason of the first worker that cannot begin. All other workers end.
    pub fn spawn(specs: Vec<WorkerSpec>) -> Result<Self, CannotBegin> {
        let mut started = Self { all: Vec::new(), barrier: Arc::default(), failed: Arc::default() };
        let count = specs.len();
        for spec in specs {
            match started.start_worker(spec, count) {
                Ok(worker) => started.all.push(worker),
                Err(why) => started.barrier.fail(why.into()),
            }
        }
        if let Err(why) = started.barrier.wait_until_ready(count) {
            started.barrier.release(Release::End);
            started.all.into_iter().filter(|w| w.thread.is_finished()).for_each(|w| drop(w.thread.join()));
            return Err(why);
        }
        Ok(started)
    }

    /// Starts the thread of a spec, as one of `count` workers. Finds the engine by its name, because the spec contains only its facts.
    fn start_worker(&self, mut spec: WorkerSpec, count: usize) -> Result<Worker, String> {
        let name = spec.engine.name;
        let entry = engines::find(name).ok_or_else(|| format!("there is no engine {name}"))?;
        let (port, tap) = connect(spec.sources.len(), spec.open_loop);
        let heartbeat = Arc::new(AtomicU64::new(0));
        let same_stream = self.all.iter().find(|w| w.id.stream == spec.stream);
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
        let id = WorkerId { worker: spec.worker, stream: spec.stream };
        let (barrier, failed) = (Arc::clone(&self.barrier), Arc::clone(&self.failed));
        let stuck_after = Duration::from_nanos(STALL_LIMIT_NS + spec.interval_ns);
        let files = Arc::new(std::mem::take(&mut spec.files));
        let shared = Arc::clone(&files);
        let run = if spec.needs_recorder() { entry.run_recorded } else { entry.run };
        let mut task = Task { spec, link };
        let thread = std::thread::Builder::new().name(format!("fathom-{}", id.worker)).spawn(move || {
            let _ = sys::thread::block_signals();
            if !entry.library_threads {
                // If the kernel refuses a separate table, looking up descriptors is slightly
                // slower.
                let _ = sys::thread::own_file_table();
            }
            let copies: std::io::Result<Vec<OpenFile>> = shared.iter().map(OpenFile::copy).collect();
            drop(shared);
            task.spec.files = match copies {
                Ok(copies) => copies,
                Err(e) => {
                    let error = format!(
                        "worker {} cannot duplicate its file descriptors: {e}{}",
                        id.worker,
                        sys::cause(&e)
                    );
                    barrier.fail(error.clone().into());
                    return WorkerOutcome::failed(error);
                }
            };
            catch_unwind(AssertUnwindSafe(|| run(&mut task))).unwrap_or_else(|panic| {
                let error =
                    format!("worker {} ({}) panicked: {}", id.worker, entry.name, panic_message(&*panic));
                barrier.fail(error.clone().into());
                failed.store(true, Ordering::Relaxed);
                WorkerOutcome::failed(error)
            })
        });
        let refused = |e| format!("a thread cannot be started: {e}{}; use fewer --workers", sys::cause(&e));
        let thread = thread.map_err(refused)?;
        Ok(Worker {
            id,
            files,
            engine: entry.name,
            thread,
            tap,
            log,
            stop,
            heartbeat,
            last_heartbeat: 0,
            last_heartbeat_at: Instant::now(),
            stuck_after,
        })
    }

    /// Lets all workers begin.
    pub fn open(&mut self) {
        let now = Instant::now();
        self.all.iter_mut().for_each(|w| w.last_heartbeat_at = now);
        self.barrier.release(Release::Begin);
    }

    /// Lets all workers begin at `at`, or at once if `at` has passed.
    pub fn open_at(&mut self, at: Instant) {
        self.all.iter_mut().for_each(|w| w.last_heartbeat_at = at.max(Instant::now()));
        self.barrier.release_at(at);
    }

    /// Returns how long after the time given to [`Self::open_at`] the last worker began, in ns.
    pub fn late_ns(&self) -> u64 {
        self.barrier.late_ns()
    }

    /// Stops all workers after their current iteration of the hot loop.
    pub fn stop(&self) {
        self.all.iter().for_each(|w| w.stop.store(true, Ordering::Relaxed));
    }

    /// Stops the workers of a stream after their current iteration of the hot loop.
    pub fn stop_stream(&self, stream: usize) {
        let same_stream = self.all.iter().filter(|w| w.id.stream == stream);
        same_stream.for_each(|w| w.stop.store(true, Ordering::Relaxed));
    }

    /// Calls `read` with every block that has arrived.
    pub fn collect(&mut self, mut read: impl FnMut(WorkerId, &Block)) {
        for worker in &mut self.all {
            let id = worker.id;
            worker.tap.take(|block| read(id, block));
        }
    }

    /// Calls `read` with the logged operations that have arrived, in chunks of one worker. The
    /// operations of a worker are in the order of their completion.
    pub fn take_logged(&mut self, mut read: impl FnMut(WorkerId, &[Operation])) {
        for worker in &mut self.all {
            let Some(log) = &mut worker.log else { continue };
            // Read only the operations that have arrived by now: otherwise a fast worker would keep this thread away from the other
            // workers.
            if let Ok(chunk) = log.read_chunk(log.slots()) {
                let (first, second) = chunk.as_slices();
                read(worker.id, first);
                read(worker.id, second);
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
        self.all.iter().filter(|w| w.id.stream == stream).all(|w| w.thread.is_finished())
    }

    /// Returns whether any worker has ended with an error. The remaining workers would be a different load.
    pub fn any_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns a message about the first worker whose heartbeat has stopped for too long, usually
    /// because a system call does not return; `None` if there is none.
    pub fn find_stuck(&mut self) -> Option<String> {
        let now = Instant::now();
        for worker in self.all.iter_mut().filter(|w| !w.thread.is_finished()) {
            let heartbeat = worker.heartbeat.load(Ordering::Relaxed);
            if heartbeat != worker.last_heartbeat {
                (worker.last_heartbeat, worker.last_heartbeat_at) = (heartbeat, now);
            }
            let silent = now - worker.last_heartbeat_at;
            if silent > worker.stuck_after {
                return Some(format!(
                    "worker {} ({}) has made no progress for {} s: it is probably blocked in the kernel by a target that does \
                     not answer, and this process may be unable to end before the target answers",
                    worker.id.worker,
                    worker.engine,
                    silent.as_secs()
                ));
            }
        }
        None
    }

    /// Returns the outcomes. A worker that has not ended is abandoned and reported as stuck.
    pub fn finish(self) -> Vec<(WorkerId, WorkerOutcome)> {
        let outcomes = self.all.into_iter().map(|worker| {
            let outcome = if worker.thread.is_finished() {
                worker.thread.join().unwrap_or_else(|panic| WorkerOutcome::failed(panic_message(&*panic)))
            } else {
                WorkerOutcome::failed(format!(
                    "worker {} ({}) did not end; it is probably blocked in the kernel",
                    worker.id.worker, worker.engine
                ))
            };
            if outcome.error.is_some() {
                // Do not close the files: that may block forever if the file system does not answer. The exit of the process closes them.
                std::mem::forget(worker.files);
            }
            (worker.id, outcome)
        });
        outcomes.collect()
    }
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "no message".into())
}
