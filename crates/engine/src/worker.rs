//! The hot loop: one worker's time, from the opened gate to the last completion.
//!
//! For: handing operations over, stamping them, counting them and the depth. Not for: choosing, preparing, judging, printing.
//!
//! Everything is decided and allocated before the first operation. A turn of the loop hands over at most one batch, waits
//! only where every queue is full, and takes what has completed. One stamp is taken immediately before each call that hands
//! operations over and one whenever completions are first seen; depth is the integral of operations in flight over the same
//! stamps, kept apart from the latencies so that Little's law can be used as a check.

use crate::engines::{Done, Engine, Entry, Granted, Time};
use crate::source::{LOOK_AHEAD, Op, Source};
use crate::tally::{Block, Port, Totals};
use model::job::{Batch, Cache, Kind, Limit, Options, Placement, SyncCall};
use model::payload;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sys::clock::Clock;
use sys::ring::RingFile;
use sys::thread::Usage;

/// Block size from which the data of the next write are prepared while the queue is full instead of between two operations.
/// Below it the extra call costs more than filling does.
const FILL_AHEAD_BYTES: u32 = 32 * 1024;
/// Failed operations after which a worker gives up: enough to count, too few to fill a log or to run for long.
const ERROR_LIMIT: u64 = 1000;
/// Longest time without a completion before a worker gives up on the target.
pub const STALL_LIMIT_NS: u64 = 10_000_000_000;
/// Longest time to wait for operations in flight at the end.
const DRAIN_LIMIT_NS: u64 = 5_000_000_000;

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
    /// The call behind operations of the kind [`Kind::Sync`].
    pub sync_call: SyncCall,
    /// Whether latency counts from the time of [`Op::AT`] instead of the hand-over.
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
    /// Seed of the data written; no other worker of the session has it.
    pub payload_seed: u64,
    /// The clock of the stamps.
    pub clock: Clock,
}

impl Spec {
    /// Buffers needed: one per operation in flight, and one more per lane where data are prepared ahead.
    pub fn slots(&self) -> usize {
        self.sources.len() * (self.depth + u32::from(self.fills_ahead())) as usize
    }

    fn fills_ahead(&self) -> bool {
        self.writes && self.slot_bytes >= FILL_AHEAD_BYTES && self.engine.max_depth > 1
    }
}

/// A worker's connections to the rest of the program.
pub struct Link {
    pub(crate) port: Port,
    pub(crate) gate: Arc<crate::crew::Gate>,
    pub(crate) stop: Arc<AtomicBool>,
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
    let (mut engine, granted) = match E::open(&mut task.spec) {
        Ok(opened) => opened,
        Err(e) => {
            let error = format!("worker {} cannot set up {}: {e}", task.spec.worker, task.spec.engine.name);
            task.link.gate.fail(&error);
            return Outcome::failed(error);
        }
    };
    let mut turns = Loop::new(task, &mut engine);
    if !turns.link.gate.wait() {
        return Outcome::failed("was not started".into());
    }
    let before = sys::thread::usage().unwrap_or_default();
    let start = turns.engine.time().now();
    let error = turns.drive(start).err();
    let end = turns.engine.time().now();
    let after = sys::thread::usage().unwrap_or_default();
    Outcome {
        error: error.map(|e| format!("worker {} ({}): {e}", turns.spec.worker, turns.spec.engine.name)),
        granted,
        wall_ns: turns.engine.time().ns(end - start),
        window_ns: turns.engine.time().ns(turns.window.1 - turns.window.0),
        last: Some(turns.block),
        totals: turns.totals,
        usage: Usage {
            user_ns: after.user_ns - before.user_ns,
            system_ns: after.system_ns - before.system_ns,
            voluntary_switches: after.voluntary_switches - before.voluntary_switches,
            forced_switches: after.forced_switches - before.forced_switches,
        },
        turns: turns.turns,
    }
}

/// An operation on its way.
#[derive(Clone, Copy)]
struct Slot {
    start: u64,
    op: Op,
    lane: u32,
}

/// One source with its own depth.
struct Lane {
    source: Box<dyn Source>,
    ops: [Op; LOOK_AHEAD],
    next: usize,
    free: Vec<u32>,
    ready: Option<u32>,
    in_flight: u32,
}

struct Loop<'a, E> {
    engine: &'a mut E,
    spec: &'a Spec,
    link: &'a mut Link,
    lanes: Vec<Lane>,
    turn_of: usize,
    slots: Vec<Slot>,
    batch: Vec<u32>,
    done: Vec<Done>,
    in_flight: u32,
    full: u32,
    fills_ahead: bool,
    payload_key: u64,
    block: Box<Block>,
    totals: Totals,
    failures: u64,
    /// Stamp up to which the depth was integrated, and the integral since the last cut, in ticks.
    depth: (u64, u64),
    last_completion: u64,
    /// First stamp, and first and last stamp of the measured window.
    start: u64,
    window: (u64, u64),
    measuring: bool,
    edge: u64,
    turns: u64,
}

impl<'a, E: Engine> Loop<'a, E> {
    fn new(task: &'a mut Task, engine: &'a mut E) -> Self {
        let Task { spec, link } = task;
        let fills_ahead = spec.fills_ahead();
        let per_lane = spec.depth + u32::from(fills_ahead);
        let none = Op::NONE;
        let lanes: Vec<Lane> = std::mem::take(&mut spec.sources)
            .into_iter()
            .enumerate()
            .map(|(i, source)| Lane {
                source,
                ops: [none; LOOK_AHEAD],
                next: LOOK_AHEAD,
                free: (i as u32 * per_lane..(i as u32 + 1) * per_lane).rev().collect(),
                ready: None,
                in_flight: 0,
            })
            .collect();
        let count = lanes.len() as u32;
        let slots = (0..count * per_lane).map(|s| Slot { start: 0, op: none, lane: s / per_lane }).collect();
        let full = count * spec.depth;
        Self {
            engine,
            block: Block::new(lanes.len()),
            lanes,
            turn_of: 0,
            slots,
            batch: Vec::with_capacity(full as usize),
            done: vec![Done::default(); full as usize],
            in_flight: 0,
            full,
            fills_ahead,
            payload_key: payload::split_mix(spec.payload_seed),
            totals: Totals::default(),
            failures: 0,
            depth: (0, 0),
            last_completion: 0,
            start: 0,
            window: (0, 0),
            measuring: false,
            edge: 0,
            turns: 0,
            spec,
            link,
        }
    }

    /// From the first operation to the last completion.
    fn drive(&mut self, start: u64) -> Result<(), String> {
        self.start = start;
        self.depth = (start, 0);
        self.last_completion = start;
        self.window = (start, start);
        self.measuring = self.spec.warmup_ns == 0;
        self.block.measured = self.measuring;
        self.edge = self.next_edge(start);
        loop {
            let now = self.turn()?;
            // A stop must be seen within a turn, and a relaxed load of a line that nobody writes costs nothing.
            if (now >= self.edge || self.link.stop.load(Ordering::Relaxed)) && self.close_interval(now) {
                break;
            }
        }
        self.drain()
    }

    /// Hands over what there is room for, waits where there is none, takes what has completed. Returns the last stamp.
    #[inline]
    fn turn(&mut self) -> Result<u64, String> {
        self.turns += 1;
        self.gather();
        let handed = self.batch.len() as u32;
        let flying = self.in_flight + handed;
        let mut wait = if flying == self.full { self.spec.batch.complete.min(flying) } else { 0 };
        let mut now = 0;
        if handed > 0 {
            now = self.engine.time().now();
            self.integrate(now);
            self.in_flight = flying;
            for &slot in &self.batch {
                self.slots[slot as usize].start = now;
            }
            self.batch.clear();
            if wait > 0 && self.fills_ahead {
                self.submit(0)?;
                self.prepare_ahead();
            }
            self.submit(wait)?;
            wait = 0;
        }
        if wait > 0 {
            self.submit(wait)?;
        }
        let taken = self.engine.reap(&mut self.done);
        if taken > 0 {
            now = self.engine.time().now();
            self.integrate(now);
            self.in_flight -= taken as u32;
            self.last_completion = now;
            for i in 0..taken {
                self.complete(self.done[i], now, true);
            }
            if self.failures >= ERROR_LIMIT {
                return Err(format!("gave up after {} operations that failed", self.failures));
            }
        } else if handed == 0 {
            now = self.engine.time().now();
            self.give_up_on_a_stall(now)?;
        }
        Ok(now)
    }

    /// Queues operations up to the batch size, lane after lane.
    #[inline]
    fn gather(&mut self) {
        let limit = self.spec.batch.submit as usize;
        let lanes = self.lanes.len();
        for _ in 0..lanes {
            let lane = self.turn_of;
            while self.batch.len() < limit && self.lanes[lane].in_flight < self.spec.depth {
                let slot = match self.lanes[lane].ready.take() {
                    Some(slot) => slot,
                    None => self.prepare(lane),
                };
                self.engine.queue(slot, &self.slots[slot as usize].op);
                self.lanes[lane].in_flight += 1;
                self.batch.push(slot);
            }
            if self.batch.len() == limit {
                break;
            }
            self.turn_of = if lane + 1 == lanes { 0 } else { lane + 1 };
        }
    }

    /// Puts the next operation of a lane on a free slot, with its data.
    #[inline]
    fn prepare(&mut self, lane: usize) -> u32 {
        let supply = &mut self.lanes[lane];
        if supply.next == LOOK_AHEAD {
            supply.source.refill(&mut supply.ops);
            supply.next = 0;
        }
        let op = supply.ops[supply.next];
        supply.next += 1;
        // Callers see to it that fewer operations than the lane has slots are taken.
        let slot = supply.free.pop().unwrap_or_default();
        self.slots[slot as usize].op = op;
        if op.kind == Kind::Write {
            self.payload_key = self.payload_key.wrapping_add(1);
            payload::fill(&mut self.engine.slot_mut(slot)[..op.length as usize], self.payload_key);
        }
        slot
    }

    /// Prepares the next operation of every lane while all queues are full.
    fn prepare_ahead(&mut self) {
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].ready.is_none() && !self.lanes[lane].free.is_empty() {
                let slot = self.prepare(lane);
                self.lanes[lane].ready = Some(slot);
            }
        }
    }

    #[inline]
    fn submit(&mut self, wait: u32) -> Result<(), String> {
        self.engine.submit(wait).map_err(|e| format!("the kernel refused to take operations: {e}"))
    }

    #[inline]
    fn integrate(&mut self, now: u64) {
        let (since, sum) = &mut self.depth;
        *sum += u64::from(self.in_flight) * (now - *since);
        *since = now;
    }

    /// Counts a completion; into the interval too where `counts`.
    #[inline]
    fn complete(&mut self, done: Done, now: u64, counts: bool) {
        let Slot { start, op, lane } = self.slots[done.slot as usize];
        let supply = &mut self.lanes[lane as usize];
        supply.free.push(done.slot);
        supply.in_flight -= 1;
        let ns = self.engine.time().ns(now - start);
        let total = &mut self.totals[op.kind as usize];
        total.max_ns = total.max_ns.max(ns);
        if done.result == op.length as i32 {
            total.ops += 1;
            total.bytes += u64::from(op.length);
            if counts {
                let tally = &mut self.block.lanes[lane as usize][op.kind as usize];
                tally.bytes += u64::from(op.length);
                tally.latency.record(ns);
            }
        } else {
            self.odd(op.kind, done.result);
        }
    }

    /// Counts an operation that failed or moved too little. It gets no latency: failed I/O is often the quickest.
    #[cold]
    fn odd(&mut self, kind: Kind, result: i32) {
        let total = &mut self.totals[kind as usize];
        self.failures += 1;
        if let Ok(bytes) = u64::try_from(result) {
            total.ops += 1;
            total.bytes += bytes;
            total.short += 1;
        } else {
            *total.errors.entry(-result).or_default() += 1;
        }
    }

    /// The next stamp at which something has to be done: the end of an interval, of the warm-up or of the window.
    fn next_edge(&self, now: u64) -> u64 {
        let interval = self.engine.time().ticks_of(self.spec.interval_ns).max(1);
        let (from, length) = if self.measuring {
            (self.window.0, self.spec.time_ns)
        } else {
            (self.start, self.spec.warmup_ns)
        };
        // On a grid from the beginning, so that the intervals of all workers cover each other.
        let next = from + ((now - from) / interval + 1) * interval;
        next.min(from + self.engine.time().ticks_of(length))
    }

    /// At an edge or a stop: cuts the interval, enters the measured window, or ends it (true).
    #[cold]
    fn close_interval(&mut self, now: u64) -> bool {
        self.link.beats.fetch_add(1, Ordering::Relaxed);
        self.integrate(now);
        let stopped = self.link.stop.load(Ordering::Relaxed);
        let length = if self.measuring { self.spec.time_ns } else { self.spec.warmup_ns };
        let from = if self.measuring { self.window.0 } else { self.start };
        let over = now - from >= self.engine.time().ticks_of(length);
        self.block.end_ns = self.engine.time().ns(now - self.start);
        self.block.depth_ns = self.engine.time().ns(self.depth.1);
        if self.measuring {
            self.window.1 = now;
        }
        if stopped || (self.measuring && over) {
            return true;
        }
        let begins = over && !self.measuring;
        if self.link.port.exchange(&mut self.block) || begins {
            // Where the warm-up's block could not be handed over it is forgotten: it must not be taken for the window's.
            self.block.clear();
            self.depth.1 = 0;
            self.block.start_ns = self.engine.time().ns(now - self.start);
        }
        if begins {
            self.measuring = true;
            self.window = (now, now);
        }
        self.block.measured = self.measuring;
        self.edge = self.next_edge(now);
        false
    }

    /// Waits for what is in flight, counting it in the totals alone.
    fn drain(&mut self) -> Result<(), String> {
        let limit = self.engine.time().now() + self.engine.time().ticks_of(DRAIN_LIMIT_NS);
        while self.in_flight > 0 {
            self.submit(1)?;
            let taken = self.engine.reap(&mut self.done);
            let now = self.engine.time().now();
            self.in_flight -= taken as u32;
            for i in 0..taken {
                self.complete(self.done[i], now, false);
            }
            if now > limit && self.in_flight > 0 {
                return Err(format!(
                    "{} operations had not completed {} s after the end; the target does not answer",
                    self.in_flight,
                    DRAIN_LIMIT_NS / 1_000_000_000
                ));
            }
        }
        Ok(())
    }

    #[cold]
    fn give_up_on_a_stall(&self, now: u64) -> Result<(), String> {
        let quiet = self.engine.time().ns(now - self.last_completion);
        if quiet < STALL_LIMIT_NS || self.in_flight == 0 {
            return Ok(());
        }
        Err(format!(
            "no operation has completed for {} s and {} are in flight; the target does not answer",
            quiet / 1_000_000_000,
            self.in_flight
        ))
    }
}
