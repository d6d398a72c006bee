//! The link between a worker and the thread that started it: start barrier, flags, blocks of counts, and the outcome.
//!
//! 1. A worker gets a `Task`: its spec and its `Link`. It waits at the `StartBarrier` until all are ready.
//! 2. The loop counts into a [`Block`]. Blocks travel to the collector and back through two rings. Each block has one owner at a time, so
//!    the loop counts without locks.
//! 3. At the end the worker returns its [`WorkerOutcome`].

use crate::interface::{CannotBegin, Granted};
use crate::spec::WorkerSpec;
use model::figures::Operation;
use model::histogram::Histogram;
use model::job::{FoundDepth, Kind};
use model::record::stream::DepthCounts;
use model::record::{Issued, LaneEnd, OpenLoop, PriorityEnd, Replayed, ThreadIo};
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::perf::CpuCounts;
use sys::thread::Usage;

/// A worker's connections to the thread that started it. The hot loop uses all but the barrier without locks.
pub(crate) struct Link {
    pub(crate) port: Port,
    /// Ring for the worker's logged operations; `None` if they are not logged.
    pub(crate) log: Option<Producer<Operation>>,
    pub(crate) barrier: Arc<StartBarrier>,
    /// Set to end the load.
    pub(crate) stop: Arc<AtomicBool>,
    /// Set if a worker ended with an error.
    pub(crate) failed: Arc<AtomicBool>,
    /// A counter that grows while the worker makes progress. If it stops growing, the worker is reported as stuck.
    pub(crate) heartbeat: Arc<AtomicU64>,
}

/// A worker about to start.
pub(crate) struct Task {
    pub(crate) spec: WorkerSpec,
    pub(crate) link: Link,
}

/// Time limit for setting up rings and memory.
const SET_UP_LIMIT: Duration = Duration::from_secs(30);
/// Before a given start time, workers sleep until this long before it and then spin, because a sleep ends late.
const SPIN_BEFORE_START: Duration = Duration::from_millis(2);

/// The start barrier: workers wait until all are ready.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
    /// How long after the start time the last worker began, in ns.
    late_ns: AtomicU64,
}

/// What released workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// Begin the load.
    Begin,
    /// End without a load, because a worker cannot begin.
    End,
}

#[derive(Debug, Default)]
struct BarrierState {
    /// Number of workers that wait.
    ready: usize,
    failure: Option<CannotBegin>,
    /// `None` while the workers wait.
    release: Option<Release>,
    /// The start time; `None` to begin at once.
    start_at: Option<Instant>,
}

impl StartBarrier {
    fn lock(&self) -> MutexGuard<'_, BarrierState> {
        // A worker that panicked while it held the lock leaves the state valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the worker as ready and waits for the release.
    pub(crate) fn wait(&self) -> Release {
        let mut state = self.lock();
        state.ready += 1;
        self.changed.notify_all();
        loop {
            if let Some(release) = state.release {
                return release;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reports that a worker cannot begin.
    pub(crate) fn fail(&self, why: CannotBegin) {
        self.lock().failure.get_or_insert(why);
        self.changed.notify_all();
    }

    /// Releases all waiting workers.
    pub(crate) fn release(&self, release: Release) {
        self.lock().release = Some(release);
        self.changed.notify_all();
    }

    /// Lets all waiting workers begin at the time `at`.
    pub(crate) fn release_at(&self, at: Instant) {
        self.lock().start_at = Some(at);
        self.release(Release::Begin);
    }

    /// Waits for the start time, directly before the first operation.
    pub(crate) fn wait_for_start_time(&self) {
        let Some(at) = self.lock().start_at else { return };
        let left = at.saturating_duration_since(Instant::now());
        std::thread::sleep(left.saturating_sub(SPIN_BEFORE_START));
        while Instant::now() < at {
            std::hint::spin_loop();
        }
        let late = at.elapsed().as_nanos() as u64;
        self.late_ns.fetch_max(late, Ordering::Relaxed);
    }

    /// Returns how long after the start time the last worker began, in ns.
    pub(crate) fn late_ns(&self) -> u64 {
        self.late_ns.load(Ordering::Relaxed)
    }

    /// Waits until `count` workers are ready.
    ///
    /// # Errors
    /// The reason of the first worker that cannot begin, or the number of workers that were not ready in time.
    pub(crate) fn wait_until_ready(&self, count: usize) -> Result<(), CannotBegin> {
        let limit = Instant::now() + SET_UP_LIMIT;
        let mut state = self.lock();
        while state.ready < count {
            if let Some(why) = &state.failure {
                return Err(why.clone());
            }
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let (missing, seconds) = (count - state.ready, SET_UP_LIMIT.as_secs());
                return Err(
                    format!("workers that were not ready after {seconds} s: {missing} of {count}").into()
                );
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

/// Spare blocks per worker. If the collector holds all of them, the current interval is extended.
const SPARE_BLOCKS: usize = 3;

/// Counts of one kind of operation in one lane and interval.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies of the operations that moved all their bytes.
    pub latency: Histogram,
}

/// Counts of a worker in one interval of the measured window.
#[derive(Clone, Debug)]
pub struct Block {
    /// Start of the interval in ns after the worker's start.
    pub start_ns: u64,
    /// End of the interval in ns after the worker's start.
    pub end_ns: u64,
    /// Integral of the operations in flight over time, in operations times ns.
    pub depth_ns: u64,
    /// Durations of the calls that submitted operations without waiting, in ns. Each includes the
    /// time in which completions were taken directly after the call.
    pub submit: Histogram,
    /// Counts by lane.
    pub lanes: Box<[LaneTally]>,
}

/// Counts of one lane in one interval.
#[derive(Clone, Debug, Default)]
pub struct LaneTally {
    /// Counts of each kind of operation.
    pub kinds: [Tally; Kind::ALL.len()],
    /// Service times and lateness of each kind of operation; `None` in a closed loop.
    pub open: Option<Box<[OpenLoop; Kind::ALL.len()]>>,
}

impl Block {
    /// Creates an empty block.
    pub fn new(lanes: usize, open_loop: bool) -> Box<Self> {
        let lane = |_| LaneTally { open: open_loop.then(Box::default), ..LaneTally::default() };
        let lanes = (0..lanes).map(lane).collect();
        let submit = Histogram::new();
        Box::new(Self { start_ns: 0, end_ns: 0, depth_ns: 0, submit, lanes })
    }

    /// Resets the counts and keeps the memory.
    pub fn clear(&mut self) {
        self.depth_ns = 0;
        self.submit.clear();
        for lane in &mut self.lanes {
            for tally in &mut lane.kinds {
                tally.bytes = 0;
                tally.latency.clear();
            }
            for open in lane.open.iter_mut().flat_map(|o| o.iter_mut()) {
                open.service.clear();
                open.lateness.clear();
            }
        }
    }
}

/// Totals of all operations of a worker by kind, including warm-up and drain.
pub type Totals = [Issued; Kind::ALL.len()];

/// The worker's end of the exchange of blocks. It swaps full blocks for empty ones without waiting.
pub struct Port {
    full: Producer<Box<Block>>,
    empty: Consumer<Box<Block>>,
}

/// The collector's end of the exchange of blocks.
pub struct Tap {
    full: Consumer<Box<Block>>,
    empty: Producer<Box<Block>>,
}

/// Creates both ends of the exchange between a worker and the collector, with the spare blocks.
pub fn connect(lanes: usize, open_loop: bool) -> (Port, Tap) {
    let (full_in, full_out) = RingBuffer::new(SPARE_BLOCKS);
    let (mut empty_in, empty_out) = RingBuffer::new(SPARE_BLOCKS);
    for _ in 0..SPARE_BLOCKS {
        // The rings have a place for every block, so a push always succeeds.
        let _ = empty_in.push(Block::new(lanes, open_loop));
    }
    (Port { full: full_in, empty: empty_out }, Tap { full: full_out, empty: empty_in })
}

impl Port {
    /// Returns whether a spare block has arrived. If so, an exchange succeeds.
    pub fn has_spare(&self) -> bool {
        !self.empty.is_empty()
    }

    /// Exchanges `block` for an empty one. If no spare block has arrived, changes nothing and returns false.
    pub fn exchange(&mut self, block: &mut Box<Block>) -> bool {
        let Ok(mut fresh) = self.empty.pop() else { return false };
        std::mem::swap(block, &mut fresh);
        self.full.push(fresh).is_ok()
    }
}

impl Tap {
    /// Calls `read` with every block that has arrived, and sends the block back empty.
    pub fn take(&mut self, mut read: impl FnMut(&Block)) {
        while let Ok(mut block) = self.full.pop() {
            read(&block);
            block.clear();
            let _ = self.empty.push(block);
        }
    }
}

/// The outcome of one worker.
#[derive(Debug, Default)]
pub struct WorkerOutcome {
    /// Why the worker ended early; `None` if it ran to its end.
    pub error: Option<String>,
    /// Features that the kernel granted.
    pub granted: Granted,
    /// The last block, which did not go to the collector; `None` if the worker did not begin.
    pub last_block: Option<Box<Block>>,
    /// Totals of all operations, including warm-up and drain.
    pub totals: Totals,
    /// Length of the measured window in ns.
    pub window_ns: u64,
    /// Time from the worker's first reading of the clock to its last, in ns.
    pub wall_ns: u64,
    /// Resources that the worker used during the load, including the wait for the start time.
    pub usage: Usage,
    /// CPU cycles and instructions during the load, or why they were not counted; `None` if the worker did not
    /// begin.
    pub cpu_counters: Option<Result<CpuCounts, String>>,
    /// Time that the worker waited for a CPU, in ns, or why it is unknown; `None` if the worker did not begin.
    pub ready_ns: Option<Result<u64, String>>,
    /// Bytes and calls that the kernel charged to the thread, or why they are unknown; `None` if the worker did not begin.
    pub io_counts: Option<Result<ThreadIo, String>>,
    /// Number of system calls, or why they were not counted; `None` if not requested.
    pub system_calls: Option<Result<u64, String>>,
    /// The depth that the search for a latency target found; `None` without a search.
    pub found_depth: Option<FoundDepth>,
    /// Distributions of the operations in flight and of the operations per call; `None` if not requested.
    pub depth_counts: Option<DepthCounts>,
    /// How closely the replay followed the capture; `None` without a replay.
    pub replayed: Option<Replayed>,
    /// Latencies by priority; empty if all operations have the priority of the worker.
    pub priorities: Vec<PriorityEnd>,
    /// Counts within the window by target; empty unless requested.
    pub by_target: Vec<LaneEnd>,
    /// Number of iterations of the hot loop.
    pub iterations: u64,
    /// The first read with wrong data; `None` without such a read.
    pub wrong_read: Option<WrongRead>,
    /// Number of operations that waited for space in the log ring.
    pub log_waits: u64,
}

/// A read with wrong data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongRead {
    /// Index of the file.
    pub file: u16,
    /// Offset of the read in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// The first wrong byte, relative to the offset.
    pub at: usize,
}

impl WorkerOutcome {
    pub(crate) fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

#[test]
fn blocks_return_empty_from_the_collector() {
    let (mut port, mut tap) = connect(1, false);
    let mut mine = Block::new(1, false);
    for turn in 0..10_u64 {
        mine.lanes[0].kinds[0].latency.record(turn);
        assert!(port.exchange(&mut mine));
        let mut seen = Vec::new();
        tap.take(|b| seen.push(b.lanes[0].kinds[0].latency.max_ns()));
        assert_eq!(seen, [Some(turn)]);
    }
    assert!((0..SPARE_BLOCKS).all(|_| port.exchange(&mut mine)));
    assert!(!port.exchange(&mut mine));
}

#[test]
fn no_worker_begins_before_the_given_time() {
    let barrier = std::sync::Arc::new(StartBarrier::default());
    let begun: Vec<_> = (0..2)
        .map(|_| {
            let barrier = std::sync::Arc::clone(&barrier);
            std::thread::spawn(move || {
                let release = barrier.wait();
                barrier.wait_for_start_time();
                (release, Instant::now())
            })
        })
        .collect();
    assert!(barrier.wait_until_ready(2).is_ok());
    let at = Instant::now() + Duration::from_millis(20);
    barrier.release_at(at);
    let mut latest = at;
    for thread in begun {
        let (release, began) = thread.join().unwrap_or_else(|_| panic!("a worker panicked"));
        assert!(release == Release::Begin && began >= at);
        latest = latest.max(began);
    }
    assert!(u128::from(barrier.late_ns()) <= (latest - at).as_nanos());
    // A worker begins at once if the time has passed. A later worker that is less late does not lower the maximum.
    let passed = Instant::now().checked_sub(Duration::from_millis(50)).unwrap_or(at);
    for at in [passed, Instant::now()] {
        barrier.release_at(at);
        barrier.wait_for_start_time();
        let late_ns = u128::from(barrier.late_ns());
        assert!((50_000_000..=passed.elapsed().as_nanos()).contains(&late_ns), "{late_ns}");
    }
}
