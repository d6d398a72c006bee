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
}

impl Crew {
    /// Starts one thread per spec and returns when all have set up and wait.
    ///
    /// # Errors
    /// The first worker's reason why it cannot begin; all others are sent home.
    pub fn hire(specs: Vec<Spec>) -> Result<Self, String> {
        let mut crew = Self { hands: Vec::new(), gate: Arc::default(), stop: Arc::default() };
        let count = specs.len();
        for spec in specs {
            match crew.start(spec) {
                Ok(hand) => crew.hands.push(hand),
                Err(e) => crew.gate.fail(&format!("a thread cannot be started: {e}; type fewer --workers")),
            }
        }
        if let Err(why) = crew.gate.all_ready(count) {
            crew.gate.open(false);
            crew.hands.into_iter().filter(|h| h.thread.is_finished()).for_each(|h| drop(h.thread.join()));
            return Err(why);
        }
        Ok(crew)
    }

    fn start(&self, spec: Spec) -> std::io::Result<Hand> {
        let (port, tap) = connect(spec.sources.len());
        let beats = Arc::new(AtomicU64::new(0));
        let link = Link {
            port,
            gate: Arc::clone(&self.gate),
            stop: Arc::clone(&self.stop),
            beats: Arc::clone(&beats),
        };
        let who = Who { worker: spec.worker, stream: spec.stream };
        let (entry, gate) = (spec.engine, Arc::clone(&self.gate));
        let patience = Duration::from_nanos(STALL_LIMIT_NS + spec.interval_ns);
        let mut task = Task { spec, link };
        let thread = std::thread::Builder::new().name(format!("fathom-{}", who.worker)).spawn(move || {
            let _ = sys::thread::block_signals();
            catch_unwind(AssertUnwindSafe(|| (entry.run)(&mut task))).unwrap_or_else(|panic| {
                let error = format!("worker {} ({}) panicked: {}", who.worker, entry.name, words(&*panic));
                gate.fail(&error);
                Outcome::failed(error)
            })
        })?;
        Ok(Hand { who, engine: entry.name, thread, tap, beats, last_beat: (0, Instant::now()), patience })
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

    /// Whether any worker has ended, which is early unless all have.
    pub fn any_done(&self) -> bool {
        self.hands.iter().any(|h| h.thread.is_finished())
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

#[cfg(test)]
fn spec(engine: &str, depth: u32, time_ns: u64) -> Spec {
    use crate::source::{Share, compile};
    use model::job::{Access, Batch, Pattern};
    let access = Access::plain(Pattern::Random, 4096, 100);
    let share = Share { worker: 0, workers: 1, file: 0, seed: 1 };
    Spec {
        worker: 0,
        stream: 0,
        engine: crate::engines::find(engine).unwrap_or_else(|| panic!("no engine {engine}")),
        sources: vec![compile(&access, 1 << 30, share).unwrap_or_else(|e| panic!("{e}"))],
        files: Vec::new(),
        depth,
        slot_bytes: 4096,
        writes: false,
        options: model::job::Options::new(),
        cache: model::job::Cache::Direct,
        sync_call: model::job::SyncCall::Fsync,
        open_loop: false,
        delay_ns: 0,
        cooldown_ns: 0,
        limit: model::job::Limit::default(),
        place: model::job::Placement::default(),
        batch: Batch { submit: 1, complete: 1 },
        warmup_ns: 0,
        time_ns,
        interval_ns: time_ns / 100,
        payload_seed: 1,
        clock: sys::clock::Clock::calibrate(true).0,
    }
}

#[cfg(test)]
fn ran(spec: Spec) -> (u64, u64, model::histogram::Histogram, Outcome) {
    let mut crew = Crew::hire(vec![spec]).unwrap_or_else(|e| panic!("{e}"));
    crew.open();
    let (mut depth_ns, mut latency) = (0, model::histogram::Histogram::new());
    let mut add = |block: &Block| {
        if block.measured {
            depth_ns += block.depth_ns;
            block.lanes.iter().for_each(|l| latency.merge(&l[0].latency));
        }
    };
    while !crew.is_done() {
        crew.collect(|_, b| add(b));
        std::thread::sleep(Duration::from_millis(1));
    }
    crew.collect(|_, b| add(b));
    let (_, outcome) = crew.finish().remove(0);
    outcome.last.iter().for_each(|b| add(b));
    (outcome.window_ns, depth_ns, latency, outcome)
}

#[test]
fn a_simulated_device_is_measured_exactly() {
    let (window, depth, latency, outcome) = ran(spec("sim", 32, 1_000_000_000));
    assert_eq!(outcome.error, None);
    assert_eq!((window, depth), (1_000_000_000, 32_000_000_000));
    assert_eq!(latency.count(), 320_000);
    assert_eq!((latency.min_ns(), latency.max_ns()), (Some(100_000), Some(100_000)));
    assert_eq!(outcome.totals[0].ops, 320_000);
}

#[test]
fn a_warm_up_runs_and_does_not_count() {
    let mut spec = spec("sim", 4, 500_000_000);
    spec.warmup_ns = 250_000_000;
    let (window, depth, latency, outcome) = ran(spec);
    assert_eq!((window, depth, latency.count()), (500_000_000, 2_000_000_000, 20_000));
    assert_eq!(outcome.totals[0].ops, 30_000);
}

#[test]
fn a_panic_in_a_worker_is_a_named_error() {
    let mut spec = spec("sim", 4, 1_000_000_000);
    let inner = spec.sources.remove(0);
    spec.sources.push(Box::new(crate::source::Panicking(inner, 500)));
    let (_, _, _, outcome) = ran(spec);
    assert!(outcome.error.is_some_and(|e| e.contains("on purpose")));
}
