//! The hot loop: one worker's time, from the start to the last completion.
//!
//! For: submitting operations, stamping them, and the depth; what is counted of each is `count`, which part of the run it falls in is
//! `stage`. Not for: choosing, preparing, judging, printing.
//!
//! Everything is decided and allocated before the first operation. A turn of the loop submits at most one batch, waits
//! only where no lane can go on, and takes what has completed. One stamp is taken immediately before each call that submits
//! operations and one whenever completions are first seen; depth is the integral of operations in flight over the same
//! stamps, kept apart from the latencies so that Little's law can be used as a check.

mod choose;
mod count;
mod depth;
mod stage;

use crate::interface::{Done, Engine, Time};
use crate::lane::{Lane, Turn};
use crate::link::{Link, Task};
use crate::outcome::Outcome;
use crate::recorder::Recorder;
use crate::source::Op;
use crate::spec::{STALL_LIMIT_NS, WorkerSpec};
use crate::tally::{Block, Totals};
use self::depth::Search;
use model::job::Kind;
use self::stage::Stage;
use std::sync::atomic::Ordering;

/// Longest time to wait for operations in flight at the end.
const DRAIN_LIMIT_NS: u64 = 5_000_000_000;
/// Longest single wait for an operation that is not due yet, so that a stop is seen.
const PAUSE_LIMIT_NS: u64 = 100_000_000;

/// An operation on its way: what its completion needs to know.
#[derive(Clone, Copy)]
struct Slot {
    /// Stamp of the submission.
    start: u64,
    /// Stamp from which latency counts in an open loop.
    due: u64,
    length: u32,
    lane: u16,
    kind: Kind,
}

/// What the next turn may do where nothing could be submitted.
#[derive(Clone, Copy)]
struct Held {
    /// Some lane has room and waits for a time or a completion.
    any: bool,
    /// The earliest such time; `u64::MAX` where there is none.
    due: u64,
}

const NOT_HELD: Held = Held { any: false, due: u64::MAX };

pub(crate) struct Loop<'a, E, R> {
    engine: &'a mut E,
    recorder: R,
    spec: &'a mut WorkerSpec,
    link: &'a mut Link,
    lanes: Vec<Lane>,
    turn_of: usize,
    slots: Vec<Slot>,
    batch: Vec<u32>,
    done: Vec<Done>,
    in_flight: u32,
    full: u32,
    fills_ahead: bool,
    held: Held,
    /// Operations and bytes that the stop rule still allows.
    left: (u64, u64),
    block: Box<Block>,
    totals: Totals,
    /// Operations that may still fail.
    failures_left: u64,
    /// Stamp up to which the depth was integrated, and the integral since the last cut, in ticks.
    depth: (u64, u64),
    last_completion: u64,
    /// The last stamp.
    now: u64,
    /// First stamp, the stamp that arrival times count from, and first and last stamp of the measured window.
    start: u64,
    begin: u64,
    window: (u64, u64),
    stage: Stage,
    edge: u64,
    /// Where the depth is searched for.
    search: Option<Search>,
    turn_count: u64,
}

impl<'a, E: Engine, R: Recorder> Loop<'a, E, R> {
    pub(crate) fn new(task: &'a mut Task, engine: &'a mut E) -> Self {
        let Task { spec, link } = task;
        let fills_ahead = spec.fills_ahead();
        let per_lane = spec.depth + u32::from(fills_ahead);
        let recorder = R::for_worker(spec, link);
        let sources = std::mem::take(&mut spec.sources);
        let lanes: Vec<Lane> =
            (0_u32..).zip(sources).map(|(i, s)| Lane::new(s, i * per_lane..(i + 1) * per_lane)).collect();
        let count = lanes.len() as u32;
        let slot = Slot { start: 0, due: 0, length: 0, lane: 0, kind: Kind::Read };
        let most = count * spec.depth;
        let search = spec.latency_target.map(|target| Search::new(target, spec.depth));
        if let Some(search) = &search {
            spec.depth = search.depth();
        }
        let full = count * spec.depth;
        Self {
            engine,
            recorder,
            block: Block::new(lanes.len(), spec.open_loop),
            lanes,
            turn_of: 0,
            slots: vec![slot; (count * per_lane) as usize],
            batch: Vec::with_capacity(most as usize),
            done: vec![Done::default(); most as usize],
            in_flight: 0,
            full,
            fills_ahead,
            held: NOT_HELD,
            left: (u64::MAX, u64::MAX),
            totals: Totals::default(),
            failures_left: spec.max_errors,
            depth: (0, 0),
            last_completion: 0,
            now: 0,
            start: 0,
            begin: 0,
            window: (0, 0),
            stage: Stage::WarmUp,
            edge: 0,
            search,
            turn_count: 0,
            spec,
            link,
        }
    }

    pub(crate) fn time(&self) -> &E::Time {
        self.engine.time()
    }

    /// What is left when all is over. Its error, cost and wall time are the caller's.
    pub(crate) fn close(self) -> Outcome {
        self.recorder.close(Outcome {
            window_ns: self.engine.time().ns(self.window.1 - self.window.0),
            last: Some(self.block),
            totals: self.totals,
            depth: self.search.as_ref().map(Search::found),
            replayed: self.spec.replay.as_ref().map(|counts| counts.totals()),
            turns: self.turn_count,
            ..Outcome::default()
        })
    }

    /// From the first operation to the last completion.
    #[inline(never)]
    pub(crate) fn drive(&mut self, start: u64) -> Result<(), String> {
        self.now = start;
        self.start = start;
        self.begin = start + self.ticks(self.spec.delay_ns);
        self.window = (start, start);
        self.wait_for_the_beginning()?;
        self.last_completion = self.now;
        self.lanes.iter_mut().for_each(|lane| lane.last_completion = self.now);
        if self.warmup_ns() == 0 || self.now >= self.start + self.ticks(self.warmup_ns()) {
            self.enter_window(self.now);
        }
        self.edge = self.next_edge(self.now);
        let ended = self.turns();
        if ended.is_err() && self.stage == Stage::Window {
            self.add_up();
        }
        ended?;
        self.drain()
    }

    /// Turn after turn until all is over.
    fn turns(&mut self) -> Result<(), String> {
        loop {
            self.turn()?;
            // A stop must be seen within a turn, and a relaxed load of a line that nobody writes costs nothing.
            if (self.now >= self.edge || self.link.stop.load(Ordering::Relaxed)) && self.at_edge() {
                return Ok(());
            }
        }
    }

    /// Passes the time before the first operation of a stream that begins later than its phase.
    fn wait_for_the_beginning(&mut self) -> Result<(), String> {
        while self.now < self.begin && !self.link.stop.load(Ordering::Relaxed) {
            self.link.heartbeat.fetch_add(1, Ordering::Relaxed);
            self.pause(self.begin)?;
            self.now = self.engine.time().now();
        }
        Ok(())
    }

    /// Submits what there is room for, waits where there is none, takes what has completed.
    #[inline]
    fn turn(&mut self) -> Result<(), String> {
        self.turn_count += 1;
        self.gather();
        let queued = self.batch.len() as u32;
        let flying = self.in_flight + queued;
        let mut wait = if flying == self.full { self.spec.batch.complete.min(flying) } else { 0 };
        if self.held.any {
            wait = self.wait_while_held(flying);
        }
        let mut seen = false;
        if queued > 0 {
            let now = self.engine.time().now();
            self.stamp(now, flying);
            if wait > 0 && self.fills_ahead {
                self.submit(0)?;
                self.prepare_ahead();
            }
            self.submit(wait)?;
            if wait == 0 {
                // What completed meanwhile is seen at this stamp too; nothing lies between it and the look.
                self.now = self.engine.time().now();
                if self.stage == Stage::Window {
                    self.block.submit.record(self.engine.time().ns(self.now - now));
                }
                seen = true;
            }
        } else if wait > 0 {
            self.submit(wait)?;
        }
        let taken = self.engine.reap(&mut self.done);
        if taken > 0 {
            if !seen {
                self.now = self.engine.time().now();
            }
            self.take(taken)?;
        } else if queued == 0 {
            self.idle()?;
        }
        Ok(())
    }

    /// Stamps a batch as submitted.
    #[inline]
    fn stamp(&mut self, now: u64, flying: u32) {
        self.now = now;
        self.integrate(now);
        self.in_flight = flying;
        for &slot in &self.batch {
            self.slots[slot as usize].start = now;
        }
        self.batch.clear();
    }

    /// Counts what has completed at the last stamp.
    #[inline]
    fn take(&mut self, taken: usize) -> Result<(), String> {
        self.integrate(self.now);
        self.in_flight -= taken as u32;
        self.last_completion = self.now;
        if self.stage == Stage::Window {
            for i in 0..taken {
                self.count(self.done[i]);
            }
        } else {
            for i in 0..taken {
                self.count_apart(self.done[i]);
            }
        }
        // Where its operations complete at once, a lane would leave the others none.
        if self.lanes.len() > 1 {
            self.pass_turn();
        }
        if self.in_flight == 0 && self.is_exhausted() {
            self.edge = self.now;
        }
        if R::KEEPS {
            self.tell(taken);
        }
        if R::KEEPS && self.recorder.is_fatal() {
            return Err(
                "ended with the first read that found something else than what should be there".into()
            );
        }
        if self.failures_left == 0 {
            return Err(format!("gave up after {} operations that failed", self.spec.max_errors));
        }
        Ok(())
    }

    /// Queues operations up to the batch size, lane after lane.
    #[inline]
    fn gather(&mut self) {
        let limit = self.spec.batch.submit as usize;
        let lanes = self.lanes.len();
        self.held = NOT_HELD;
        for _ in 0..lanes {
            let lane = self.turn_of;
            if !self.gather_from(lane, limit) {
                break;
            }
            self.turn_of = if lane + 1 == lanes { 0 } else { lane + 1 };
        }
    }

    /// Queues operations of a lane. False where the batch is full or the stop rule allows no more.
    #[inline]
    fn gather_from(&mut self, at: usize, limit: usize) -> bool {
        let room = (self.spec.depth - self.lanes[at].in_flight) as usize;
        for _ in 0..room.min(limit - self.batch.len()) {
            if self.is_exhausted() {
                self.held.any = true;
                return false;
            }
            let lane = &mut self.lanes[at];
            let op = lane.peek();
            // Without a time of its own an operation cannot be late.
            let mut due = u64::MAX;
            if op.flags != 0 {
                match self.look_at_clock(at, &op) {
                    Some(stamp) => due = stamp,
                    None => break,
                }
            }
            let (slot, fresh) = self.lanes[at].take();
            self.slots[slot as usize] =
                Slot { start: 0, due, length: op.length, lane: at as u16, kind: op.kind };
            if fresh && op.kind == Kind::Write {
                self.fill(slot, op.length);
            }
            self.left.0 -= u64::from(op.kind != Kind::Sync);
            self.left.1 = self.left.1.saturating_sub(u64::from(op.length));
            if R::KEEPS {
                self.queue_watched(slot, &op);
            } else {
                self.engine.queue(slot, &op);
            }
            self.batch.push(slot);
        }
        self.batch.len() < limit
    }

    /// Gives the turn to the next lane.
    #[cold]
    fn pass_turn(&mut self) {
        self.turn_of = if self.turn_of + 1 == self.lanes.len() { 0 } else { self.turn_of + 1 };
    }

    /// Puts the data of a write on its slot.
    #[inline]
    fn fill(&mut self, slot: u32, bytes: u32) {
        self.spec.maker.fill(&mut self.engine.slot_mut(slot)[..bytes as usize]);
    }

    /// The stamp from which an operation with conditions counts, where it may go now; else notes what its lane waits for.
    #[inline(never)]
    fn look_at_clock(&mut self, at: usize, op: &Op) -> Option<u64> {
        if R::KEEPS && op.flags & Op::CHOSEN != 0 {
            self.choose(at);
            return None;
        }
        let time = self.engine.time();
        let turn = |now| self.lanes[at].turn(op, self.begin, now, time);
        // The last stamp is old where the last turn waited or found nothing, so a look at the clock decides.
        let turn = match turn(self.now) {
            Turn::At(due) if due <= time.now() => turn(due),
            other => other,
        };
        match turn {
            Turn::Now(due) => {
                self.lanes[at].note(op);
                return Some(due);
            }
            Turn::At(due) => self.held.due = self.held.due.min(due),
            Turn::Later => {}
        }
        self.held.any = true;
        None
    }

    /// How many completions to wait for where a lane is held back: none where a time comes first, or where there is room.
    #[cold]
    fn wait_while_held(&self, flying: u32) -> u32 {
        let batch_is_full = self.batch.len() == self.spec.batch.submit as usize;
        if self.held.due == u64::MAX && !batch_is_full { flying.min(1) } else { 0 }
    }

    /// Nothing was submitted and nothing completed: passes the time until something can be, and gives up on the dead.
    #[cold]
    fn idle(&mut self) -> Result<(), String> {
        self.now = self.engine.time().now();
        if self.in_flight == 0 && self.is_exhausted() {
            self.edge = self.now;
        }
        if self.held.due != u64::MAX && self.now < self.held.due {
            self.pause(self.held.due.min(self.edge))?;
        }
        self.give_up_on_a_stall()
    }

    /// Passes time until about a stamp, or until something completes.
    fn pause(&mut self, until: u64) -> Result<(), String> {
        // Whoever keeps the CPU busy goes on looking at the clock.
        if self.spec.spin_ns > 0 && self.now < self.last_completion + self.ticks(self.spec.spin_ns) {
            return Ok(());
        }
        let ns = self.engine.time().ns(until.saturating_sub(self.now)).min(PAUSE_LIMIT_NS);
        self.engine.pause(ns).map_err(|e| format!("the kernel refused to wait: {e}"))
    }

    /// Prepares the data of the next operation of every lane while all queues are full.
    fn prepare_ahead(&mut self) {
        for at in 0..self.lanes.len() {
            if let Some((slot, op)) = self.lanes[at].prepare()
                && op.kind == Kind::Write
            {
                self.fill(slot, op.length);
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

    /// Whether the stop rule allows no more.
    #[inline]
    fn is_exhausted(&self) -> bool {
        self.left.0 == 0 || self.left.1 == 0
    }

    fn ticks(&self, ns: u64) -> u64 {
        self.engine.time().ticks_of(ns)
    }

    /// Waits for what is in flight, counting it in the totals alone.
    fn drain(&mut self) -> Result<(), String> {
        let limit = self.engine.time().now() + self.ticks(DRAIN_LIMIT_NS);
        while self.in_flight > 0 {
            self.submit(1)?;
            let taken = self.engine.reap(&mut self.done);
            self.now = self.engine.time().now();
            self.in_flight -= taken as u32;
            for i in 0..taken {
                self.count_apart(self.done[i]);
            }
            if self.now > limit && self.in_flight > 0 {
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
    fn give_up_on_a_stall(&self) -> Result<(), String> {
        let quiet = self.engine.time().ns(self.now.saturating_sub(self.last_completion));
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
