//! A worker: what it is told, what it leaves behind, and its time from set-up to the last completion.
//!
//! For: everything around the hot loop. Not for: the loop itself (`hot`), nor starting threads ([`crate::crew`]).

use crate::engines::{Engine, Entry, Granted, Time};
use crate::hot::Loop;
use crate::source::Source;
use crate::tally::{Block, Port, Totals};
use model::job::{Batch, Cache, Limit, Options, Placement, SyncCall};
use model::payload::Maker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sys::calls::Calls;
use sys::clock::Clock;
use sys::perf::{Counted, Counters};
use sys::ring::RingFile;
use sys::thread::{RunQueue, Usage};

/// Block size from which the data of the next write are prepared while the queue is full instead of between two operations.
/// Below it the extra call costs more than filling does.
const FILL_AHEAD_BYTES: u32 = 32 * 1024;
/// Longest time without a completion before a worker gives up on the target.
pub const STALL_LIMIT_NS: u64 = 10_000_000_000;

/// Everything a worker is told, and owns.
pub struct Spec {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index of its stream.
    pub stream: usize,
    /// Its engine.
    pub engine: &'static Entry,
    /// One source per lane.
    pub sources: Vec<Box<dyn Source>>,
    /// Files that its operations name by index.
    pub files: Vec<RingFile>,
    /// Operations in flight per lane.
    pub depth: u32,
    /// Bytes of the largest operation.
    pub slot_bytes: u32,
    /// Whether any operation writes.
    pub writes: bool,
    /// Options of the engine, from its table.
    pub options: Options,
    /// What the files were opened with.
    pub cache: Cache,
    /// The call behind operations of the kind `Sync`.
    pub sync_call: SyncCall,
    /// Whether latency counts from the time of [`crate::source::Op::AT`] instead of the hand-over.
    pub open_loop: bool,
    /// Time from the opened gate to the first operation.
    pub delay_ns: u64,
    /// Time after the measured window in which operations still run.
    pub cooldown_ns: u64,
    /// What ends it before its time; this worker's part.
    pub limit: Limit,
    /// Where its thread and its memory are.
    pub place: Placement,
    /// How operations are handed over.
    pub batch: Batch,
    /// Time before the measured window.
    pub warmup_ns: u64,
    /// Length of the measured window.
    pub time_ns: u64,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Whether system calls are counted, which costs time in each.
    pub count_calls: bool,
    /// Makes the data that are written; no other worker of the session has the same.
    pub maker: Maker,
    /// The clock of the stamps.
    pub clock: Clock,
}

impl Spec {
    /// Buffers needed: one per operation in flight, and one more per lane where data are prepared ahead.
    pub fn slots(&self) -> usize {
        self.sources.len() * (self.depth + u32::from(self.fills_ahead())) as usize
    }

    pub(crate) fn fills_ahead(&self) -> bool {
        self.writes && self.slot_bytes >= FILL_AHEAD_BYTES && self.engine.max_depth > 1
    }
}

/// A worker's connections to the rest of the program.
pub struct Link {
    pub(crate) port: Port,
    pub(crate) gate: Arc<crate::crew::Gate>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) failed: Arc<AtomicBool>,
    pub(crate) beats: Arc<AtomicU64>,
}

/// A worker about to start.
pub struct Task {
    pub(crate) spec: Spec,
    pub(crate) link: Link,
}

/// What a worker leaves behind.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it ended early.
    pub error: Option<String>,
    /// What the engine asked the kernel for.
    pub granted: Granted,
    /// The last block, which was not handed over.
    pub last: Option<Box<Block>>,
    /// All its operations.
    pub totals: Totals,
    /// Length of the window really measured.
    pub window_ns: u64,
    /// ns from its first stamp to its last.
    pub wall_ns: u64,
    /// What it cost in that time.
    pub usage: Usage,
    /// The same in cycles and instructions, or why they were not counted; `None` where it did not begin.
    pub counted: Option<Result<Counted, String>>,
    /// ns of that time that it was ready to run and waited for a CPU, or why that is not known; `None` where it did not begin.
    pub ready_ns: Option<Result<u64, String>>,
    /// System calls in that time, or why they were not counted; `None` where that was not asked for.
    pub calls: Option<Result<u64, String>>,
    /// Turns of the loop.
    pub turns: u64,
}

impl Outcome {
    pub(crate) fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// Runs a task on an engine; the function pointer of the engine table.
pub(crate) fn run<E: Engine>(task: &mut Task) -> Outcome {
    let outcome = whole::<E>(task);
    // The others learn of it at once: without this worker the rest is another workload.
    task.link.failed.fetch_or(outcome.error.is_some(), Ordering::Relaxed);
    outcome
}

fn whole<E: Engine>(task: &mut Task) -> Outcome {
    let opened = settle(&task.spec).and_then(|()| E::open(&mut task.spec));
    let (mut engine, mut granted) = match opened {
        Ok(opened) => opened,
        Err(e) => {
            let (name, cause) = (task.spec.engine.name, sys::cause(&e));
            let error = format!("worker {} cannot set up {name}: {e}{cause}", task.spec.worker);
            task.link.gate.fail(&error);
            return Outcome::failed(error);
        }
    };
    // Opened before the gate: after it, every microsecond counts.
    let queue = RunQueue::open().map_err(|e| format!("/proc/thread-self/schedstat: {e}"));
    let waited = || queue.as_ref().map_err(Clone::clone)?.waited_ns().map_err(|e| e.to_string());
    if task.spec.fills_ahead() {
        granted.used.push(model::record::PREPARES_AHEAD.into());
    }
    let count_calls = task.spec.count_calls;
    let mut turns = Loop::new(task, &mut engine);
    if !turns.gate().wait() {
        return Outcome::failed("was not started".into());
    }
    let (before, waited_before) = (sys::thread::usage().unwrap_or_default(), waited());
    let counters = Counters::start();
    let mut calls = count_calls.then(Calls::start);
    let start = turns.time().now();
    let error = turns.drive(start).err();
    let end = turns.time().now();
    let calls = calls.as_mut().map(|c| c.as_mut().map_err(|e| e.clone())?.end());
    let counted = Some(counters.and_then(|mut c| c.end()));
    let (after, waited_after) = (sys::thread::usage().unwrap_or_default(), waited());
    let ready_ns = waited_before.and_then(|before| Ok(waited_after?.saturating_sub(before)));
    let usage = Usage {
        user_ns: after.user_ns - before.user_ns,
        system_ns: after.system_ns - before.system_ns,
        voluntary_switches: after.voluntary_switches - before.voluntary_switches,
        forced_switches: after.forced_switches - before.forced_switches,
        minor_faults: after.minor_faults - before.minor_faults,
        major_faults: after.major_faults - before.major_faults,
    };
    let wall_ns = turns.time().ns(end - start);
    let outcome = turns.close();
    let name = |e| format!("worker {} ({}): {e}", task.spec.worker, task.spec.engine.name);
    let ready_ns = Some(ready_ns);
    Outcome { error: error.map(name), granted, wall_ns, usage, counted, ready_ns, calls, ..outcome }
}

/// Puts the thread where it belongs before it allocates anything, and has its timers ring when they are due.
fn settle(spec: &Spec) -> io::Result<()> {
    sys::thread::place(&spec.place.cpus, spec.place.node)?;
    // Without this the kernel may let a sleeper wait 50 us longer; on refusal it just does.
    let _ = sys::thread::precise_timers();
    Ok(())
}
