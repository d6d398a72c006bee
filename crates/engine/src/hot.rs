//! The hot loop: one worker's time from the first operation to the last completion.
//!
//! 1. Everything is decided and allocated before the first operation.
//! 2. One iteration fills a batch, lane after lane, and submits it. It waits for a completion only
//!    if no lane may submit another operation until one completes.
//! 3. It reaps completions and counts them: in the measured window into the current block,
//!    otherwise only into the totals.
//! 4. One timestamp is taken directly before each call that submits operations, and one directly
//!    after completions were reaped. The depth is integrated from the operations in flight at these
//!    timestamps, not from the latencies, so that Little's law is a real check.
//! 5. At the end of an interval the block goes to the collector. Stages are warm-up, measured
//!    window and cool-down.

mod depth_search;

use crate::interface::{Done, Engine, Time};
use crate::link::{Block, Link, Task, Totals, WorkerOutcome};
use crate::recorder::{Completion, Recorder};
use crate::source::{Choice, LOOK_AHEAD, Op, Source};
use crate::spec::{STALL_LIMIT_NS, WorkerSpec};
use depth_search::Search;
use model::job::Kind;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Time limit in ns for operations in flight at the end.
const DRAIN_LIMIT_NS: u64 = 5_000_000_000;
/// Maximum length of one pause in ns, so that a stop is noticed.
const PAUSE_LIMIT_NS: u64 = 100_000_000;

/// The loop's data about an operation in flight.
#[derive(Clone, Copy)]
struct Slot {
    /// Timestamp of the submission.
    submitted_at: u64,
    /// Timestamp from which latency counts in an open loop; `u64::MAX` for an operation without conditions.
    due: u64,
    length: u32,
    lane: u16,
    kind: Kind,
}

/// Why lanes could not submit in this iteration.
#[derive(Clone, Copy)]
struct Held {
    /// Whether a lane has room for an operation that must not be submitted yet. Also set if the stop
    /// rule allows no more operations.
    is_blocked: bool,
    /// The earliest time at which a waiting lane may submit; `u64::MAX` if none waits for a time.
    retry_at: u64,
}

/// The operations and bytes that the stop rule still allows.
#[derive(Clone, Copy, Default)]
struct Budget {
    operations: u64,
    bytes: u64,
}

const NOT_HELD: Held = Held { is_blocked: false, retry_at: u64::MAX };

pub(crate) struct Loop<'a, E, R> {
    engine: &'a mut E,
    recorder: R,
    spec: &'a mut WorkerSpec,
    link: &'a mut Link,
    lanes: Vec<Lane>,
    next_lane: usize,
    slots: Vec<Slot>,
    batch: Vec<u32>,
    done: Vec<Done>,
    in_flight: u32,
    max_in_flight: u32,
    fills_ahead: bool,
    held: Held,
    budget: Budget,
    block: Box<Block>,
    totals: Totals,
    /// Number of further failed operations until the worker gives up. Ignored errors do not count.
    failures_left: u64,
    /// The timestamp up to which the depth integral is complete, and the integral since the start
    /// of the interval, in operations times ticks.
    depth_integral: (u64, u64),
    last_completion: u64,
    /// The most recent timestamp.
    now: u64,
    /// Timestamp at which the worker started.
    start: u64,
    /// Timestamp of the end of the start delay. Arrival times count from it.
    arrivals_start: u64,
    /// First and last timestamp of the measured window.
    window: Range<u64>,
    stage: Stage,
    /// Timestamp at which the current interval or stage ends.
    interval_end: u64,
    /// The depth search of `--latency-target`; `None` without it.
    search: Option<Search>,
    iterations: u64,
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
        let slot = Slot { submitted_at: 0, due: 0, length: 0, lane: 0, kind: Kind::Read };
        // A depth search starts with a smaller depth. So compute the maximum before the search lowers the
        // depth.
        let in_flight_limit = count * spec.depth;
        let search = spec.latency_target.map(|target| Search::new(target, spec.depth));
        if let Some(search) = &search {
            spec.depth = search.depth();
        }
        let max_in_flight = count * spec.depth;
        Self {
            engine,
            recorder,
            block: Block::new(lanes.len(), spec.open_loop),
            lanes,
            next_lane: 0,
            slots: vec![slot; (count * per_lane) as usize],
            batch: Vec::with_capacity(in_flight_limit as usize),
            done: vec![Done::default(); in_flight_limit as usize],
            in_flight: 0,
            max_in_flight,
            fills_ahead,
            held: NOT_HELD,
            budget: Budget { operations: u64::MAX, bytes: u64::MAX },
            totals: Totals::default(),
            failures_left: spec.max_errors,
            depth_integral: (0, 0),
            last_completion: 0,
            now: 0,
            start: 0,
            arrivals_start: 0,
            window: 0..0,
            stage: Stage::WarmUp,
            interval_end: 0,
            search,
            iterations: 0,
            spec,
            link,
        }
    }

    pub(crate) fn time(&self) -> &E::Time {
        self.engine.time()
    }

    /// Returns what the loop counted. The caller adds what it measured around the loop, such as
    /// resource usage and wall time.
    pub(crate) fn close(self) -> WorkerOutcome {
        self.recorder.close(WorkerOutcome {
            window_ns: self.engine.time().ns(self.window.end - self.window.start),
            last_block: Some(self.block),
            totals: self.totals,
            found_depth: self.search.as_ref().map(Search::found),
            replayed: self.spec.replay.as_ref().map(|counts| counts.totals()),
            iterations: self.iterations,
            ..WorkerOutcome::default()
        })
    }

    /// Runs from the first operation to the last completion.
    #[inline(never)]
    pub(crate) fn drive(&mut self, start: u64) -> Result<(), String> {
        self.now = start;
        self.start = start;
        self.arrivals_start = start + self.ticks(self.spec.delay_ns);
        self.window = start..start;
        self.wait_for_start_delay()?;
        self.last_completion = self.now;
        self.lanes.iter_mut().for_each(|lane| lane.last_completion = self.now);
        if self.warmup_ns() == 0 || self.now >= self.start + self.ticks(self.warmup_ns()) {
            self.enter_window(self.now);
        }
        self.interval_end = self.next_interval_end(self.now);
        let ended = self.run_iterations();
        if ended.is_err() && self.stage == Stage::Window {
            self.add_block_to_totals();
        }
        ended?;
        self.drain()
    }

    /// Iterates until the run ends. `finish_interval` is in [`depth_search`].
    fn run_iterations(&mut self) -> Result<(), String> {
        loop {
            self.iterate()?;
            // A stop must be noticed within one iteration. A relaxed load of an unmodified cache line costs nothing.
            if (self.now >= self.interval_end || self.link.stop.load(Ordering::Relaxed))
                && self.finish_interval()
            {
                return Ok(());
            }
        }
    }

    /// Waits until the stream's start delay is over or a stop is requested.
    fn wait_for_start_delay(&mut self) -> Result<(), String> {
        while self.now < self.arrivals_start && !self.link.stop.load(Ordering::Relaxed) {
            self.link.heartbeat.fetch_add(1, Ordering::Relaxed);
            self.pause(self.arrivals_start)?;
            self.now = self.engine.time().now();
        }
        Ok(())
    }

    /// Runs one iteration: submits a batch, waits if no lane may submit more, and reaps completions.
    #[inline]
    fn iterate(&mut self) -> Result<(), String> {
        self.iterations += 1;
        self.fill_batch();
        let queued = self.batch.len() as u32;
        let in_flight_after = self.in_flight + queued;
        let mut wait = if in_flight_after == self.max_in_flight {
            self.spec.batch.complete.min(in_flight_after)
        } else {
            0
        };
        if self.held.is_blocked {
            wait = self.completions_to_await(in_flight_after);
        }
        let reaped;
        if queued > 0 {
            let submitted_at = self.engine.time().now();
            self.stamp_batch(submitted_at, in_flight_after);
            if wait > 0 && self.fills_ahead {
                self.submit(0)?;
                self.prepare_ahead();
            }
            self.submit(wait)?;
            reaped = self.engine.reap(&mut self.done);
            // Read the clock after the reap. A timestamp from before the reap would be too early
            // for an operation that completed in between.
            self.now = self.engine.time().now();
            // The time of a submission that did not wait, including the reap.
            if wait == 0 && self.stage == Stage::Window {
                self.block.submit.record(self.engine.time().ns(self.now - submitted_at));
            }
        } else {
            if wait > 0 {
                self.submit(wait)?;
            }
            reaped = self.engine.reap(&mut self.done);
            if reaped == 0 {
                return self.idle();
            }
            self.now = self.engine.time().now();
        }
        if reaped > 0 { self.handle_completions(reaped) } else { Ok(()) }
    }

    /// Marks the operations of a batch as submitted at `now`.
    #[inline]
    fn stamp_batch(&mut self, now: u64, in_flight_after: u32) {
        self.now = now;
        self.integrate(now);
        self.in_flight = in_flight_after;
        for &slot in &self.batch {
            self.slots[slot as usize].submitted_at = now;
        }
        self.batch.clear();
    }

    /// Counts the first `reaped` completions in `done`, as completed at `now`.
    #[inline]
    fn handle_completions(&mut self, reaped: usize) -> Result<(), String> {
        self.integrate(self.now);
        self.in_flight -= reaped as u32;
        self.last_completion = self.now;
        if self.stage == Stage::Window {
            for i in 0..reaped {
                self.count_in_window(self.done[i]);
            }
        } else {
            for i in 0..reaped {
                self.count_in_totals(self.done[i]);
            }
        }
        // Alternate the lanes, because a lane whose operations complete at once would keep the
        // other lanes from submitting.
        if self.lanes.len() > 1 {
            self.rotate_lanes();
        }
        // Without further operations, end the interval, and with it the run, after this iteration.
        if self.in_flight == 0 && self.is_exhausted() {
            self.interval_end = self.now;
        }
        if R::RECORDS_OPERATIONS {
            self.report_completions(reaped);
        }
        if R::RECORDS_OPERATIONS && self.recorder.is_fatal() {
            return Err("a read returned wrong data, and the first wrong read ends the run".into());
        }
        if self.failures_left == 0 {
            return Err(format!("gave up: the number of failed operations reached {}", self.spec.max_errors));
        }
        Ok(())
    }

    /// Queues operations up to the batch size, lane by lane.
    #[inline]
    fn fill_batch(&mut self) {
        let limit = self.spec.batch.submit as usize;
        let lanes = self.lanes.len();
        self.held = NOT_HELD;
        for _ in 0..lanes {
            let lane = self.next_lane;
            if !self.fill_batch_from(lane, limit) {
                break;
            }
            self.next_lane = if lane + 1 == lanes { 0 } else { lane + 1 };
        }
    }

    /// Queues operations of one lane. Returns false if the batch is full or the stop rule allows no more operations.
    #[inline]
    fn fill_batch_from(&mut self, lane_index: usize, limit: usize) -> bool {
        let room = (self.spec.depth - self.lanes[lane_index].in_flight) as usize;
        for _ in 0..room.min(limit - self.batch.len()) {
            if self.is_exhausted() {
                self.held.is_blocked = true;
                return false;
            }
            let lane = &mut self.lanes[lane_index];
            let op = lane.peek();
            // An operation without an arrival time is never late.
            let mut due = u64::MAX;
            if op.flags != 0 {
                match self.admit_or_note_wait(lane_index, &op) {
                    Some(latency_start) => due = latency_start,
                    None => break,
                }
            }
            let (slot, fresh) = self.lanes[lane_index].take();
            self.slots[slot as usize] =
                Slot { submitted_at: 0, due, length: op.length, lane: lane_index as u16, kind: op.kind };
            if fresh && op.kind == Kind::Write {
                self.fill(slot, op.length);
            }
            self.budget.operations -= u64::from(op.kind != Kind::Sync);
            self.budget.bytes = self.budget.bytes.saturating_sub(u64::from(op.length));
            if R::RECORDS_OPERATIONS {
                self.queue_recorded(slot, &op);
            } else {
                self.engine.queue(slot, &op);
            }
            self.batch.push(slot);
        }
        self.batch.len() < limit
    }

    /// Advances to the next lane, which is the first to submit in the next iteration.
    #[cold]
    fn rotate_lanes(&mut self) {
        self.next_lane = if self.next_lane + 1 == self.lanes.len() { 0 } else { self.next_lane + 1 };
    }

    /// Fills a slot with `bytes` bytes of data to write.
    #[inline]
    fn fill(&mut self, slot: u32, bytes: u32) {
        self.spec.maker.fill(&mut self.engine.slot_mut(slot)[..bytes as usize]);
    }

    /// Checks the conditions of an operation. If it may be submitted now, returns the timestamp from
    /// which its latency counts. Otherwise notes in `held` what the lane waits for.
    ///
    /// A placeholder ([`Op::CHOSEN`]) is never submitted itself: the operations that its source
    /// chooses are queued instead.
    #[inline(never)]
    fn admit_or_note_wait(&mut self, lane_index: usize, op: &Op) -> Option<u64> {
        if R::RECORDS_OPERATIONS && op.flags & Op::CHOSEN != 0 {
            self.choose(lane_index);
            return None;
        }
        let time = self.engine.time();
        let admit = |now| self.lanes[lane_index].admit(op, self.arrivals_start, now, time);
        // `self.now` may be old, for example after a pause. So read the clock before holding the operation
        // back.
        let admission = match admit(self.now) {
            Admission::At(earliest) if earliest <= time.now() => admit(earliest),
            other => other,
        };
        match admission {
            Admission::Now(due) => {
                self.lanes[lane_index].before_submission(op);
                return Some(due);
            }
            Admission::At(earliest) => self.held.retry_at = self.held.retry_at.min(earliest),
            Admission::AfterCompletion => {}
        }
        self.held.is_blocked = true;
        None
    }

    /// Returns how many completions to wait for while a lane is held back, usually 1. Returns 0 if
    /// nothing is in flight, if a lane waits for a time, or if the batch is full, because another
    /// lane may then have room.
    #[cold]
    fn completions_to_await(&self, in_flight_after: u32) -> u32 {
        let batch_is_full = self.batch.len() == self.spec.batch.submit as usize;
        if self.held.retry_at == u64::MAX && !batch_is_full { in_flight_after.min(1) } else { 0 }
    }

    /// Waits after an iteration that submitted and reaped nothing. Fails if the target has stalled.
    #[cold]
    fn idle(&mut self) -> Result<(), String> {
        self.now = self.engine.time().now();
        // Without further operations, end the interval, and with it the run, after this iteration.
        if self.in_flight == 0 && self.is_exhausted() {
            self.interval_end = self.now;
        }
        if self.held.retry_at != u64::MAX && self.now < self.held.retry_at {
            self.pause(self.held.retry_at.min(self.interval_end))?;
        }
        self.check_for_stall()
    }

    /// Waits until about the timestamp `until`, or until an operation completes.
    fn pause(&mut self, until: u64) -> Result<(), String> {
        // Wait busily for some time after a completion: the caller reads the clock and calls again.
        if self.spec.spin_ns > 0 && self.now < self.last_completion + self.ticks(self.spec.spin_ns) {
            return Ok(());
        }
        let ns = self.engine.time().ns(until.saturating_sub(self.now)).min(PAUSE_LIMIT_NS);
        self.engine.pause(ns).map_err(|e| format!("waiting for completions failed: {e}"))
    }

    /// Fills the buffer of the next write of every lane while all queues are full.
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
        self.engine.submit(wait).map_err(|e| format!("submitting operations failed: {e}"))
    }

    #[inline]
    fn integrate(&mut self, now: u64) {
        let (since, sum) = &mut self.depth_integral;
        *sum += u64::from(self.in_flight) * (now - *since);
        *since = now;
    }

    /// Whether the stop rule allows no more operations.
    #[inline]
    fn is_exhausted(&self) -> bool {
        self.budget.operations == 0 || self.budget.bytes == 0
    }

    fn ticks(&self, ns: u64) -> u64 {
        self.engine.time().ticks_of(ns)
    }

    /// Waits for operations in flight and counts them only in the totals.
    fn drain(&mut self) -> Result<(), String> {
        let limit = self.engine.time().now() + self.ticks(DRAIN_LIMIT_NS);
        while self.in_flight > 0 {
            self.submit(1)?;
            let reaped = self.engine.reap(&mut self.done);
            self.now = self.engine.time().now();
            self.in_flight -= reaped as u32;
            for i in 0..reaped {
                self.count_in_totals(self.done[i]);
            }
            if self.now > limit && self.in_flight > 0 {
                return Err(format!(
                    "{} of the operations had not completed {} s after the end; the target does not answer",
                    self.in_flight,
                    DRAIN_LIMIT_NS / 1_000_000_000
                ));
            }
        }
        Ok(())
    }

    #[cold]
    fn check_for_stall(&self) -> Result<(), String> {
        let quiet = self.engine.time().ns(self.now.saturating_sub(self.last_completion));
        if quiet < STALL_LIMIT_NS || self.in_flight == 0 {
            return Ok(());
        }
        Err(format!(
            "no operation has completed for {} s, with {} in flight; the target does not answer",
            quiet / 1_000_000_000,
            self.in_flight
        ))
    }
}

impl<E: Engine, R: Recorder> Loop<'_, E, R> {
    /// Queues the operations that the source of a lane chooses, until the batch or the lane is
    /// full. If the source stops earlier, notes what the lane waits for.
    // Inlining this function would change the code layout even of loops that never call it.
    #[inline(never)]
    fn choose(&mut self, lane_index: usize) {
        let batch_limit = self.spec.batch.submit as usize;
        if self.batch.is_empty() {
            self.lanes[lane_index].begin_call();
        }
        loop {
            let time = self.engine.time();
            let stamp = |ns| self.arrivals_start.saturating_add(time.ticks_of(ns));
            match self.lanes[lane_index].choose(time.ns(time.now().saturating_sub(self.arrivals_start))) {
                Choice::Now(op, due_ns) => {
                    let due = stamp(due_ns);
                    self.queue_chosen(lane_index, &op, due);
                    let is_full = self.batch.len() >= batch_limit
                        || self.lanes[lane_index].in_flight == self.spec.depth;
                    if is_full || self.is_exhausted() {
                        return;
                    }
                    continue;
                }
                Choice::At(ns) => self.held.retry_at = self.held.retry_at.min(stamp(ns)),
                Choice::AfterCompletion => {}
                Choice::End => self.budget.operations = 0,
            }
            self.held.is_blocked = true;
            return;
        }
    }

    /// Queues a chosen operation, as `fill_batch_from` does with a drawn one. A shared function would cost plain operations 5 % more
    /// instructions.
    #[inline(never)]
    fn queue_chosen(&mut self, lane_index: usize, op: &Op, due: u64) {
        let (slot, _) = self.lanes[lane_index].take();
        self.budget.operations = self.budget.operations.saturating_sub(u64::from(op.kind != Kind::Sync));
        self.budget.bytes = self.budget.bytes.saturating_sub(u64::from(op.length));
        self.slots[slot as usize] =
            Slot { submitted_at: 0, due, length: op.length, lane: lane_index as u16, kind: op.kind };
        if op.kind == Kind::Write {
            self.fill(slot, op.length);
        }
        self.queue_recorded(slot, op);
        self.batch.push(slot);
    }

    /// Passes an operation to the recorder and queues it, with its own priority if the recorder gives it one.
    fn queue_recorded(&mut self, slot: u32, op: &Op) {
        self.recorder.begin(slot, op, self.engine.slot_mut(slot));
        match self.recorder.priority(slot) {
            0 => self.engine.queue(slot, op),
            priority => self.engine.queue_with_priority(slot, op, priority),
        }
    }

    /// Reports the reaped completions to the sources of their lanes.
    #[cold]
    fn report_completions(&mut self, reaped: usize) {
        let now_ns = self.engine.time().ns(self.now.saturating_sub(self.arrivals_start));
        for done in &self.done[..reaped] {
            let lane = self.slots[done.slot as usize].lane;
            self.lanes[lane as usize].report_completion(&self.recorder.op(done.slot), now_ns);
        }
    }
}

/// The errno that a read with wrong data counts as: EILSEQ, as in fio.
const WRONG_DATA_ERRNO: i32 = 84;

impl<E: Engine, R: Recorder> Loop<'_, E, R> {
    /// Counts an operation that completed in the measured window, at `now`.
    #[inline]
    fn count_in_window(&mut self, done: Done) {
        let Slot { submitted_at, due, length, lane, kind } = self.slots[done.slot as usize];
        self.lanes[lane as usize].give_back(done.slot, self.now);
        if done.result != length as i32 {
            self.count_failure(kind, done.result);
            return;
        }
        if R::RECORDS_OPERATIONS && !self.has_right_data(done.slot, kind) {
            return;
        }
        let service = self.engine.time().ns(self.now - submitted_at);
        let lane_tally = &mut self.block.lanes[lane as usize];
        let tally = &mut lane_tally.kinds[kind as usize];
        tally.bytes += u64::from(length);
        let latency = if let Some(open) = &mut lane_tally.open {
            let late = self.engine.time().ns(submitted_at.saturating_sub(due));
            tally.latency.record(service + late);
            open[kind as usize].service.record(service);
            open[kind as usize].lateness.record(late);
            service + late
        } else {
            tally.latency.record(service);
            service
        };
        if R::RECORDS_OPERATIONS {
            let end = self.engine.time().ns(self.now - self.start);
            self.recorder
                .record(done.slot, Completion { end_ns: end, latency_ns: latency, service_ns: service });
        }
    }

    /// Counts a completion outside the window, only in the totals that the ledger is compared with.
    fn count_in_totals(&mut self, done: Done) {
        let Slot { submitted_at, length, lane, kind, .. } = self.slots[done.slot as usize];
        self.lanes[lane as usize].give_back(done.slot, self.now);
        if done.result != length as i32 {
            self.count_failure(kind, done.result);
            return;
        }
        if R::RECORDS_OPERATIONS && !self.has_right_data(done.slot, kind) {
            return;
        }
        let total = &mut self.totals[kind as usize];
        total.ops += 1;
        total.bytes += u64::from(length);
        total.max_ns = total.max_ns.max(self.engine.time().ns(self.now - submitted_at));
    }

    /// Returns false for a read with wrong data, and counts the read as an error.
    fn has_right_data(&mut self, slot: u32, kind: Kind) -> bool {
        let is_right = kind != Kind::Read || self.recorder.has_right_data(slot, self.engine.slot_mut(slot));
        if !is_right {
            self.count_failure(kind, -WRONG_DATA_ERRNO);
        }
        is_right
    }

    /// Adds the current block to the totals before the block goes to the collector.
    fn add_block_to_totals(&mut self) {
        for lane in &self.block.lanes {
            for (kind, tally) in lane.kinds.iter().enumerate() {
                let slowest = match &lane.open {
                    Some(open) => open[kind].service.max_ns(),
                    None => tally.latency.max_ns(),
                };
                let total = &mut self.totals[kind];
                total.ops += tally.latency.count();
                total.bytes += tally.bytes;
                total.max_ns = total.max_ns.max(slowest.unwrap_or(0));
            }
        }
    }

    /// Counts a failed or short operation. The latency is not recorded, because failed I/O is often
    /// the fastest.
    #[cold]
    fn count_failure(&mut self, kind: Kind, result: i32) {
        let errno = (result < 0).then_some(-result);
        let is_ignored = self.spec.ignored_errors.iter().any(|ignored| ignored.is(kind, errno));
        self.failures_left = self.failures_left.saturating_sub(u64::from(!is_ignored));
        let total = &mut self.totals[kind as usize];
        if let Ok(bytes) = u64::try_from(result) {
            total.ops += 1;
            total.bytes += bytes;
            total.short += 1;
        } else {
            *total.errors.entry(-result).or_default() += 1;
        }
    }
}

/// The stages of a run, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    WarmUp,
    Window,
    CoolDown,
}

impl<E: Engine, R: Recorder> Loop<'_, E, R> {
    /// Returns the time in ns from the start to the measured window. If a stream starts after the warm-up,
    /// its window begins when it starts.
    fn warmup_ns(&self) -> u64 {
        self.spec.warmup_ns.max(self.spec.delay_ns)
    }

    /// Returns the timestamp at which the current stage ends.
    fn end_of_stage(&self) -> u64 {
        let WorkerSpec { warmup_ns, time_ns, cooldown_ns, .. } = *self.spec;
        self.start
            + match self.stage {
                Stage::WarmUp => self.ticks(self.warmup_ns()),
                // All streams of a phase end together.
                Stage::Window => self.ticks(warmup_ns + time_ns),
                Stage::CoolDown => self.ticks(warmup_ns + time_ns + cooldown_ns),
            }
    }

    /// Returns the end of the current interval or of the stage, whichever is first.
    fn next_interval_end(&self, now: u64) -> u64 {
        let interval = self.ticks(self.spec.interval_ns).max(1);
        // Intervals count from the start of the window, so that those of all workers coincide.
        let from = if self.stage == Stage::Window { self.window.start } else { self.start };
        let next = from + ((now - from) / interval + 1) * interval;
        next.min(self.end_of_stage())
    }

    fn enter_window(&mut self, now: u64) {
        self.stage = Stage::Window;
        self.window = now..now;
        let limit = self.spec.limit;
        self.budget = Budget {
            operations: limit.operations.unwrap_or(u64::MAX),
            bytes: limit.bytes.unwrap_or(u64::MAX),
        };
        self.begin_interval(now);
    }

    /// Ends an interval, at its regular end or at a stop. Gives the block to the collector, or
    /// extends the interval if no spare block has arrived. At the end of a stage enters the next
    /// one. Returns whether the run has ended.
    #[cold]
    fn close_interval(&mut self) -> bool {
        let now = self.now;
        self.link.heartbeat.fetch_add(1, Ordering::Relaxed);
        let stopped = self.link.stop.load(Ordering::Relaxed);
        let stage_is_over = now >= self.end_of_stage();
        let mut ended = stopped || self.is_exhausted();
        match self.stage {
            Stage::WarmUp if stage_is_over && !ended => self.enter_window(now),
            Stage::WarmUp => {}
            Stage::Window => {
                self.integrate(now);
                self.window.end = now;
                self.block.end_ns = self.engine.time().ns(now - self.start);
                self.block.depth_ns = self.engine.time().ns(self.depth_integral.1);
                let hands_over_block = !stage_is_over && !ended && self.link.port.has_spare();
                if stage_is_over || ended || hands_over_block {
                    self.add_block_to_totals();
                }
                if stage_is_over {
                    // Keep the last block here. Nothing is counted into it any more.
                    self.stage = Stage::CoolDown;
                    ended |= self.spec.cooldown_ns == 0;
                } else if hands_over_block && self.link.port.exchange(&mut self.block) {
                    self.begin_interval(now);
                }
            }
            Stage::CoolDown => ended |= stage_is_over,
        }
        self.interval_end = self.next_interval_end(now);
        ended
    }

    /// Returns whether no further operation may begin: the window is over, the stop rule is met, or a stop was requested.
    fn must_end(&self) -> bool {
        self.now >= self.end_of_stage() || self.is_exhausted() || self.link.stop.load(Ordering::Relaxed)
    }

    /// Restarts the window and discards its counts. The totals and the stop rule keep them.
    fn restart_window(&mut self) {
        self.add_block_to_totals();
        self.block.clear();
        self.window = self.now..self.now;
        self.begin_interval(self.now);
        self.extend_interval();
    }

    /// Extends the current interval to the next regular end.
    fn extend_interval(&mut self) {
        self.link.heartbeat.fetch_add(1, Ordering::Relaxed);
        self.interval_end = self.next_interval_end(self.now);
    }

    fn begin_interval(&mut self, now: u64) {
        self.depth_integral = (now, 0);
        self.block.start_ns = self.engine.time().ns(now - self.start);
    }
}

/// A source of operations with its own slots. The number of slots that it may use at once is its
/// queue depth.
pub(crate) struct Lane {
    source: Box<dyn Source>,
    /// Operations that the source has drawn. Only the first `ahead` are used.
    ops: [Op; LOOK_AHEAD],
    /// Index of the next operation in `ops`.
    next: usize,
    /// Number of operations that the source draws at once.
    ahead: usize,
    /// Slots that are not in use.
    free: Vec<u32>,
    /// The slot that [`Self::prepare`] reserved for the next operation; otherwise `None`.
    prepared: Option<u32>,
    /// Operations for which later operations wait. Boxed to keep a lane without conditions small.
    awaited: Box<Awaited>,
    /// Operations in flight.
    pub(crate) in_flight: u32,
    /// Timestamp of the last completion, or of the start if nothing has completed.
    pub(crate) last_completion: u64,
}

/// Operations whose completion later operations wait for.
#[derive(Default)]
struct Awaited {
    /// The slot of the trim for which the write of a pair waits; `None` if no trim of a pair is in
    /// flight.
    trim: Option<u32>,
    /// The last operation on each slot, for operations that must not overlap others in flight.
    serial: Vec<(u32, Op)>,
}

/// When the next operation of a lane may be submitted.
pub(crate) enum Admission {
    /// Now. In an open loop the operation's latency counts from this timestamp.
    Now(u64),
    /// Not before this timestamp.
    At(u64),
    /// Not before an operation of the lane completes.
    AfterCompletion,
}

impl Lane {
    pub(crate) fn new(source: Box<dyn Source>, slots: Range<u32>) -> Self {
        let ahead = source.look_ahead().clamp(1, LOOK_AHEAD);
        let (ops, free) = ([Op::NONE; LOOK_AHEAD], slots.rev().collect());
        let (prepared, awaited) = (None, Box::default());
        Self { source, ops, next: ahead, ahead, free, prepared, awaited, in_flight: 0, last_completion: 0 }
    }

    /// Returns the next operation without taking it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Op {
        // `new` has limited `ahead`. The minimum shows the compiler that the index is in bounds.
        if self.next >= self.ahead.min(LOOK_AHEAD) {
            self.source.refill(&mut self.ops[..self.ahead]);
            self.next = 0;
        }
        self.ops[self.next]
    }

    /// Takes the next operation. Returns its slot, and whether the slot's buffer must still be filled. The caller ensures that a slot is
    /// free.
    #[inline]
    pub(crate) fn take(&mut self) -> (u32, bool) {
        self.next += 1;
        self.in_flight += 1;
        match self.prepared.take() {
            Some(slot) => (slot, false),
            None => (self.free.pop().unwrap_or_default(), true),
        }
    }

    /// Returns a slot to the free ones after its operation completed at `now`.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: u32, now: u64) {
        self.free.push(slot);
        self.in_flight -= 1;
        self.last_completion = now;
    }

    /// Reserves a slot for the next operation, so that the slot's buffer can be filled. Returns the
    /// slot and the operation; `None` if a slot is already reserved or no slot is free.
    pub(crate) fn prepare(&mut self) -> Option<(u32, Op)> {
        if self.prepared.is_some() {
            return None;
        }
        let slot = self.free.pop()?;
        self.prepared = Some(slot);
        Some((slot, self.peek()))
    }

    /// Signals the source that a new submitting call begins.
    pub(crate) fn begin_call(&mut self) {
        self.source.begin_call();
    }

    /// Asks the source for its choice at `now_ns` after the end of the start delay.
    pub(crate) fn choose(&mut self, now_ns: u64) -> Choice {
        self.source.choose(now_ns)
    }

    /// Passes a completion to the source.
    pub(crate) fn report_completion(&mut self, op: &Op, now_ns: u64) {
        self.source.completed(op, now_ns);
    }

    /// Evicts the operation's file if required. If later operations wait for this one, notes its
    /// slot. Called before the operation is taken.
    pub(crate) fn before_submission(&mut self, op: &Op) {
        if op.flags & Op::EVICTED != 0 {
            self.source.evict(op.file);
        }
        let Some(slot) = self.prepared.or(self.free.last().copied()) else { return };
        if op.flags & Op::PAIR != 0 && op.kind == Kind::Trim {
            self.awaited.trim = Some(slot);
        }
        if op.flags & Op::SERIAL != 0 {
            match self.awaited.serial.iter_mut().find(|(at, _)| *at == slot) {
                Some((_, last)) => *last = *op,
                None => self.awaited.serial.push((slot, *op)),
            }
        }
    }

    /// Whether the operation on a slot is in flight: the slot is neither free nor reserved.
    fn is_in_flight(&self, slot: u32) -> bool {
        self.prepared != Some(slot) && !self.free.iter().rev().any(|free| *free == slot)
    }

    /// Returns whether the operation overlaps one in flight.
    // Inlining this function would cost operations without conditions one instruction.
    #[inline(never)]
    fn overlaps(&self, op: &Op) -> bool {
        let meets = |other: &Op| {
            other.file == op.file
                && other.offset < op.offset.saturating_add(u64::from(op.length))
                && op.offset < other.offset.saturating_add(u64::from(other.length))
        };
        self.awaited.serial.iter().any(|(slot, other)| meets(other) && self.is_in_flight(*slot))
    }

    /// Decides when an operation with conditions may be submitted. [`Op::AT`] counts from
    /// `arrivals_start`. For an operation with [`Op::SHARED`], [`Source::admit_or_wait_ns`] decides
    /// last and counts the operation.
    pub(crate) fn admit(&self, op: &Op, arrivals_start: u64, now: u64, time: &impl Time) -> Admission {
        let is = |flag| op.flags & flag != 0;
        if is(Op::DRAINED | Op::AFTER) && self.in_flight > 0 {
            return Admission::AfterCompletion;
        }
        let is_trimming = || self.awaited.trim.is_some_and(|slot| self.is_in_flight(slot));
        if is(Op::PAIR) && op.kind != Kind::Trim && is_trimming() {
            return Admission::AfterCompletion;
        }
        if is(Op::SERIAL) && self.overlaps(op) {
            return Admission::AfterCompletion;
        }
        let ticks = time.ticks_of(op.at_ns);
        let after = if is(Op::AFTER) { self.last_completion + ticks } else { 0 };
        let due = if is(Op::AT) { arrivals_start + ticks } else { 0 };
        match due.max(after) {
            earliest if earliest > now => Admission::At(earliest),
            _ if is(Op::SHARED) => match self.source.admit_or_wait_ns() {
                Some(0) => Admission::AfterCompletion,
                Some(ns) => Admission::At(now + time.ticks_of(ns)),
                None => Admission::Now(if is(Op::AT) { due } else { now }),
            },
            _ if is(Op::AT) => Admission::Now(due),
            _ => Admission::Now(now),
        }
    }
}
