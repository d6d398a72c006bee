//! The threads of a run, and what passes between them and the collector.
//!
//! For: starting workers together, taking their blocks, noticing those that panic or hang, ending them. Not for: the loop,
//! nor what becomes of the blocks.

use crate::tally::{Block, Tap, connect};
use crate::worker::{Link, Outcome, STALL_LIMIT_NS, Spec, Task};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::ring::RingFile;

/// Longest time that setting up rings and memory may take before the start is given up.
const SET_UP_LIMIT: Duration = Duration::from_secs(30);

/// Where workers wait until all are ready.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    ready: usize,
    failure: Option<String>,
    opened: Option<bool>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        // A worker that panicked holding the lock left plain numbers behind; they are still true.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports as ready and waits. False: do not begin.
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
    pub(crate) fn fail(&self, why: &str) {
        self.lock().failure.get_or_insert_with(|| why.to_owned());
        self.changed.notify_all();
    }

    fn open(&self, go: bool) {
        self.lock().opened = Some(go);
        self.changed.notify_all();
    }

    fn all_ready(&self, count: usize) -> Result<(), String> {
        let limit = Instant::now() + SET_UP_LIMIT;
        let mut state = self.lock();
        while state.ready < count {
            if let Some(why) = &state.failure {
                return Err(why.clone());
            }
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!(
                    "{} of {count} workers were not ready after {} s",
                    count - state.ready,
                    SET_UP_LIMIT.as_secs()
                ));
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

/// Which worker a block or an outcome is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of its stream.
    pub stream: usize,
}

struct Hand {
    who: Who,
    /// The files of its spec. The worker uses copies in a file table of its own, so these must be closed here.
    files: Arc<Vec<RingFile>>,
    engine: &'static str,
    thread: JoinHandle<Outcome>,
    tap: Tap,
    beats: Arc<AtomicU64>,
    last_beat: (u64, Instant),
    patience: Duration,
}

/// The workers of one phase.
pub struct Crew {
    hands: Vec<Hand>,
    gate: Arc<Gate>,
    stop: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
}

impl Crew {
    /// Starts one thread per spec and returns when all have set up and wait.
    ///
    /// # Errors
    /// The first worker's reason why it cannot begin; all others are sent home.
    pub fn hire(specs: Vec<Spec>) -> Result<Self, String> {
        let mut crew =
            Self { hands: Vec::new(), gate: Arc::default(), stop: Arc::default(), failed: Arc::default() };
        let count = specs.len();
        for spec in specs {
            match crew.start(spec) {
                Ok(hand) => crew.hands.push(hand),
                Err(e) => crew
                    .gate
                    .fail(&format!("a thread cannot be started: {e}; use fewer --workers{}", sys::cause(&e))),
            }
        }
        if let Err(why) = crew.gate.all_ready(count) {
            crew.gate.open(false);
            crew.hands.into_iter().filter(|h| h.thread.is_finished()).for_each(|h| drop(h.thread.join()));
            return Err(why);
        }
        Ok(crew)
    }

    fn start(&self, mut spec: Spec) -> std::io::Result<Hand> {
        let (port, tap) = connect(spec.sources.len(), spec.open_loop);
        let beats = Arc::new(AtomicU64::new(0));
        let link = Link {
            port,
            gate: Arc::clone(&self.gate),
            stop: Arc::clone(&self.stop),
            failed: Arc::clone(&self.failed),
            beats: Arc::clone(&beats),
        };
        let who = Who { worker: spec.worker, stream: spec.stream };
        let (entry, gate, failed) = (spec.engine, Arc::clone(&self.gate), Arc::clone(&self.failed));
        let patience = Duration::from_nanos(STALL_LIMIT_NS + spec.interval_ns);
        let files = Arc::new(std::mem::take(&mut spec.files));
        let shared = Arc::clone(&files);
        let mut task = Task { spec, link };
        let thread = std::thread::Builder::new().name(format!("fathom-{}", who.worker)).spawn(move || {
            let _ = sys::thread::block_signals();
            if !entry.library_threads {
                // Where it is refused, lookups of descriptors stay a little dearer.
                let _ = sys::thread::own_file_table();
            }
            let copies: std::io::Result<Vec<RingFile>> = shared.iter().map(RingFile::copy).collect();
            drop(shared);
            task.spec.files = match copies {
                Ok(copies) => copies,
                Err(e) => {
                    let error = format!("worker {} cannot have its files: {e}{}", who.worker, sys::cause(&e));
                    gate.fail(&error);
                    return Outcome::failed(error);
                }
            };
            catch_unwind(AssertUnwindSafe(|| (entry.run)(&mut task))).unwrap_or_else(|panic| {
                let error = format!("worker {} ({}) panicked: {}", who.worker, entry.name, words(&*panic));
                gate.fail(&error);
                failed.store(true, Ordering::Relaxed);
                Outcome::failed(error)
            })
        })?;
        Ok(Hand {
            who,
            files,
            engine: entry.name,
            thread,
            tap,
            beats,
            last_beat: (0, Instant::now()),
            patience,
        })
    }

    /// Lets all workers begin.
    pub fn open(&mut self) {
        let now = Instant::now();
        self.hands.iter_mut().for_each(|h| h.last_beat.1 = now);
        self.gate.open(true);
    }

    /// Asks all workers to stop after their current turn.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Shows every block that has arrived.
    pub fn collect(&mut self, mut look: impl FnMut(Who, &Block)) {
        for hand in &mut self.hands {
            let who = hand.who;
            hand.tap.take(|block| look(who, block));
        }
    }

    /// Whether all workers have ended; once one has failed, the others are asked to stop.
    pub fn is_done(&self) -> bool {
        self.hands.iter().all(|h| h.thread.is_finished())
    }

    /// Whether any worker has ended with an error: without it the rest is another workload.
    pub fn any_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Names a worker that has shown no sign of life for too long: it is stuck inside a system call.
    pub fn stuck(&mut self) -> Option<String> {
        let now = Instant::now();
        for hand in self.hands.iter_mut().filter(|h| !h.thread.is_finished()) {
            let beats = hand.beats.load(Ordering::Relaxed);
            if beats != hand.last_beat.0 {
                hand.last_beat = (beats, now);
            }
            let silent = now - hand.last_beat.1;
            if silent > hand.patience {
                return Some(format!(
                    "worker {} ({}) has not come back from the kernel for {} s; the target does not answer, and the kernel keeps \
                     this process until it does",
                    hand.who.worker,
                    hand.engine,
                    silent.as_secs()
                ));
            }
        }
        None
    }

    /// Takes what the workers leave behind. One that has not ended is left to itself and said to be stuck.
    pub fn finish(self) -> Vec<(Who, Outcome)> {
        let outcomes = self.hands.into_iter().map(|hand| {
            let outcome = if hand.thread.is_finished() {
                hand.thread.join().unwrap_or_else(|panic| Outcome::failed(words(&*panic)))
            } else {
                Outcome::failed(format!(
                    "worker {} ({}) is stuck in the kernel",
                    hand.who.worker, hand.engine
                ))
            };
            if outcome.error.is_some() {
                // Closing a file may wait for a file system that never answers; the end of the process does it as well.
                std::mem::forget(hand.files);
            }
            (hand.who, outcome)
        });
        outcomes.collect()
    }
}

/// The words of a panic.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "without words".into())
}
