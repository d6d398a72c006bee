//! Replay of a captured load: completions decide which operation is next.
//!
//! 1. A reader thread sends operations through a ring ([`connect`]). The thread has determined which
//!    earlier operation each one waits for.
//! 2. The source keeps a table of operations that are read but not submitted yet, chained by task.
//!    For each task it also keeps the completion times of the last [`REACH`] operations. All memory
//!    is allocated before the first operation.
//! 3. Operations of a task are submitted in order. An operation that waits for an earlier one is
//!    due when that one has completed and the captured wait has passed.

use super::{Choice, Op, Source};
use model::job::Kind;
use model::record::Replayed;
use rtrb::{Consumer, Producer, RingBuffer};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An operation may wait only for one of the last [`REACH`] - 1 operations of its task.
pub const REACH: u32 = 1024;
/// Maximum number of tasks of a replay.
pub const MAX_TASKS: u32 = 256;
/// Capacity of the ring between reader and loop, in operations.
const RING_CAPACITY: usize = 1 << 14;
/// Capacity of the table of operations that are read but not submitted yet.
const TABLE_CAPACITY: usize = 1 << 16;
/// Maximum number of operations taken from the ring at once.
const MAX_TAKEN: usize = 64;
/// Interval in ns at which an empty ring is polled.
const POLL_NS: u64 = 50_000;
/// Maximum time in ns between two operations of one submitting call. Operations that are further apart were submitted by separate calls.
const IN_A_CALL_NS: u64 = 3_000;
/// Maximum excess of a task in ns ([`Task::owed_ns`]).
const MAX_OWED_NS: u64 = 1_000_000;
/// Number of bits of [`Op::at_ns`] for the serial number of an operation in its task. The other bits have the index of the task.
const NUMBER_BITS: u32 = 48;
/// The end of a chain in the table.
const NONE: u32 = u32::MAX;
/// The stamp of an operation that is still in flight.
const IN_FLIGHT: Stamp = Stamp { seen_ns: u64::MAX, outside_driver_ns: 0 };
/// The start of the replay. The wait of an operation begins here if the operation waits for no other one.
const START: Stamp = Stamp { seen_ns: 0, outside_driver_ns: 0 };

/// An operation of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Offset of the first byte.
    pub offset: u64,
    /// Captured wait in ns: from the completion of the operation that this one waits for, or from the start, to the submission.
    pub wait_ns: u64,
    /// Length in bytes; 0 for a sync.
    pub length: u32,
    /// The operation that this one waits for, counted back in its task: 1 is the previous one. Below [`REACH`]; 0 if it waits for none.
    pub waits_back: u32,
    /// Index of the operation's task, below [`MAX_TASKS`].
    pub task: u16,
    /// Index of the file among the worker's files.
    pub file: u16,
    /// The direction: read, write, trim or sync.
    pub kind: Kind,
}

/// Counters of a replay, and the times by which its waits are shortened. Other threads read the counters.
#[derive(Debug, Default)]
pub struct ReplayCounts {
    /// Time in ns that one operation spends outside the driver, by kind.
    outside_driver_ns: [AtomicU64; Kind::ALL.len()],
    starved: AtomicU64,
    starved_ns: AtomicU64,
    held_by_depth: AtomicU64,
    held_by_order: AtomicU64,
    /// Number of discards that the reader skipped, because they are outside the target.
    skipped_discards: AtomicU64,
    is_over: AtomicU64,
}

impl ReplayCounts {
    /// Sets the number of discards that the reader skipped, because they are outside the target.
    pub fn set_skipped_discards(&self, discards: u64) {
        self.skipped_discards.store(discards, Ordering::Relaxed);
    }

    /// Sets how many ns longer an operation of a kind takes from submission to completion than in the driver. Captured
    /// waits were measured at the driver, so the replay shortens each wait for an operation of this kind by this time.
    pub fn set_outside_driver_ns(&self, kind: Kind, ns: u64) {
        self.outside_driver_ns[kind as usize].store(ns, Ordering::Relaxed);
    }

    /// Returns the counters.
    pub fn totals(&self) -> Replayed {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Replayed {
            starved: get(&self.starved),
            starved_ns: get(&self.starved_ns),
            held_by_depth: get(&self.held_by_depth),
            held_by_order: get(&self.held_by_order),
            outside: get(&self.skipped_discards),
            is_whole: get(&self.is_over) > 0,
        }
    }
}

/// Adds `more` to a counter that only this thread writes.
fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// The sending end of the ring, for the thread that reads the capture.
pub struct StepSender(Producer<Step>);

/// The receiving end of the ring, for the worker's loop.
pub struct StepReceiver(Consumer<Step>);

/// The result of sending a step to the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The step is in the ring.
    InRing,
    /// The ring is full; try again.
    Full,
    /// The loop has ended.
    LoopEnded,
}

/// Creates the ring from the reader to the loop.
pub fn connect() -> (StepSender, StepReceiver) {
    let (to, from) = RingBuffer::new(RING_CAPACITY);
    (StepSender(to), StepReceiver(from))
}

impl StepSender {
    /// Sends the next operation.
    pub fn send(&mut self, step: Step) -> Sent {
        match self.0.push(step) {
            Ok(()) => Sent::InRing,
            Err(_) if self.0.is_abandoned() => Sent::LoopEnded,
            Err(_) => Sent::Full,
        }
    }
}

impl StepReceiver {
    /// Whether the ring is full or the reader has ended.
    pub fn is_full(&self) -> bool {
        self.0.is_abandoned() || self.0.slots() == RING_CAPACITY
    }
}

/// Operations of one task that are not submitted yet, and the times of its completions.
struct Task {
    /// Table index of the first operation.
    first: u32,
    /// Table index of the last operation.
    last: u32,
    /// Serial number of the operation that is released next.
    next: u64,
    /// Completions of the last [`REACH`] operations. The index is the serial number modulo [`REACH`].
    stamps: Box<[Stamp]>,
    /// Excess in ns: time outside the driver that exceeded a wait. The next waits are shortened by it.
    owed_ns: u64,
    /// Serial number of the last operation whose time outside the driver was deducted from a wait;
    /// `None` if there was none yet.
    deducted_for: Option<u64>,
}

/// When an operation completed.
#[derive(Clone, Copy)]
struct Stamp {
    /// Time at which the loop saw the completion, in ns.
    seen_ns: u64,
    /// Time that the operation spent outside the driver, in ns.
    outside_driver_ns: u64,
}

/// An entry of the table of operations.
#[derive(Clone, Copy)]
struct Entry {
    step: Step,
    /// Table index of the next operation of the task, or of the next free entry.
    next: u32,
}

/// The source of a replay.
pub struct Replay {
    from: StepReceiver,
    tasks: Vec<Task>,
    /// The table of operations.
    table: Box<[Entry]>,
    /// Table index of the first free entry.
    free: u32,
    /// Number of operations in the table.
    count: usize,
    /// The due time and the index of each task whose next operation has a due time.
    due: BinaryHeap<Reverse<(u64, u16)>>,
    /// Whether the ring was empty at the last poll, and the reader has not ended.
    is_dry: bool,
    in_flight: u32,
    depth: u32,
    /// The last operation of the current call; `None` if the call has no operation yet.
    last_in_call: Option<DueStep>,
    /// Whether operations are due at captured times. If so, operations that the depth or the full table delays are counted.
    is_timed: bool,
    counts: Arc<ReplayCounts>,
}

/// An operation and the time at which it is due.
#[derive(Clone, Copy)]
struct DueStep {
    step: Step,
    due_ns: u64,
}

impl Replay {
    /// Creates the source of a replay of `tasks` tasks with at most `depth` operations in flight.
    /// `is_timed` is whether operations are due at captured times. If so, operations that the depth or
    /// the full table delays are counted.
    pub fn new(
        from: StepReceiver,
        tasks: u32,
        depth: u32,
        is_timed: bool,
        counts: Arc<ReplayCounts>,
    ) -> Self {
        let idle = |_| Task {
            first: NONE,
            last: NONE,
            next: 0,
            owed_ns: 0,
            deducted_for: None,
            stamps: vec![IN_FLIGHT; REACH as usize].into_boxed_slice(),
        };
        let nothing =
            Step { offset: 0, wait_ns: 0, length: 0, waits_back: 0, task: 0, file: 0, kind: Kind::Read };
        let free = |at: usize| Entry {
            step: nothing,
            next: if at + 1 < TABLE_CAPACITY { at as u32 + 1 } else { NONE },
        };
        let tasks = tasks.clamp(1, MAX_TASKS);
        let mut new = Self {
            from,
            tasks: (0..tasks).map(idle).collect(),
            table: (0..TABLE_CAPACITY).map(free).collect(),
            free: 0,
            count: 0,
            due: BinaryHeap::with_capacity(tasks as usize),
            is_dry: false,
            in_flight: 0,
            depth,
            last_in_call: None,
            is_timed,
            counts,
        };
        while new.take_from_ring(0) > 0 {}
        new
    }

    /// Takes up to [`MAX_TAKEN`] operations from the ring while the table has room. Returns their
    /// number.
    fn take_from_ring(&mut self, now_ns: u64) -> usize {
        let mut taken = 0;
        while taken < MAX_TAKEN && self.free != NONE {
            let Ok(step) = self.from.0.pop() else {
                self.is_dry = !self.from.0.is_abandoned();
                return taken;
            };
            taken += 1;
            self.append(step, now_ns);
        }
        if taken > 0 {
            self.is_dry = false;
        }
        taken
    }

    /// Appends an operation to its task.
    fn append(&mut self, step: Step, now_ns: u64) {
        let at = usize::from(step.task).min(self.tasks.len() - 1);
        let place = self.free;
        let (was_dry, was_full) = (self.is_dry, self.count + 1 == TABLE_CAPACITY);
        self.free = std::mem::replace(&mut self.table[place as usize], Entry { step, next: NONE }).next;
        self.count += 1;
        let task = &mut self.tasks[at];
        if task.first != NONE {
            self.table[task.last as usize].next = place;
            task.last = place;
            return;
        }
        (task.first, task.last) = (place, place);
        let due = self.schedule_first(at);
        let Some(late_ns) = due.and_then(|due| now_ns.checked_sub(due)).filter(|ns| *ns > 0) else { return };
        // An operation that is late here was read too late, or the table was full.
        if was_dry {
            count(&self.counts.starved, 1);
            let most = self.counts.starved_ns.load(Ordering::Relaxed).max(late_ns);
            self.counts.starved_ns.store(most, Ordering::Relaxed);
        } else if was_full && self.is_timed {
            count(&self.counts.held_by_order, 1);
        }
    }

    /// Schedules the first operation of a task and returns its due time; `None` if there is no such
    /// operation, or if it waits for another one that has not completed.
    fn schedule_first(&mut self, at: usize) -> Option<u64> {
        let task = &mut self.tasks[at];
        let step = &self.table.get(task.first as usize)?.step;
        let awaited = waited_for(task, step);
        let stamp = match awaited {
            None => START,
            Some(number) => task.stamps[(number % u64::from(REACH)) as usize],
        };
        if stamp.seen_ns == IN_FLIGHT.seen_ns {
            return None;
        }
        let due =
            stamp.seen_ns.saturating_add(task.shortened(awaited, step.wait_ns, stamp.outside_driver_ns));
        self.due.push(Reverse((due, at as u16)));
        Some(due)
    }

    /// Removes and returns the first operation of a task. The operation must be due.
    fn release(&mut self, at: usize) -> Op {
        let task = &mut self.tasks[at];
        let place = task.first;
        let Entry { step, next } = self.table[place as usize];
        self.table[place as usize].next = self.free;
        self.free = place;
        self.count -= 1;
        task.first = next;
        let number = task.next;
        task.next += 1;
        task.stamps[(number % u64::from(REACH)) as usize] = IN_FLIGHT;
        if next != NONE {
            self.schedule_first(at);
        }
        self.in_flight += 1;
        let Step { offset, length, file, kind, .. } = step;
        Op { offset, at_ns: (at as u64) << NUMBER_BITS | number, length, file, kind, flags: Op::CHOSEN }
    }
}

impl Source for Replay {
    /// Fills `ops` with placeholders, because operations are chosen when there is room for them.
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op { flags: Op::CHOSEN, ..Op::NONE });
    }

    fn look_ahead(&self) -> usize {
        1
    }

    fn begin_call(&mut self) {
        self.last_in_call = None;
    }

    fn choose(&mut self, now_ns: u64) -> Choice {
        self.take_from_ring(now_ns);
        if let Some(Reverse((due_ns, task))) = self.due.peek().copied() {
            if due_ns > now_ns {
                // The reader may still send an operation that is due earlier.
                return Choice::At(if self.is_dry { due_ns.min(now_ns + POLL_NS) } else { due_ns });
            }
            let first = self.tasks[usize::from(task)].first;
            let next = self.table.get(first as usize).map(|entry| DueStep { step: entry.step, due_ns });
            if self.last_in_call.zip(next).is_some_and(|(last, next)| needs_separate_call(&last, &next)) {
                return Choice::At(now_ns);
            }
            self.last_in_call = next;
            self.due.pop();
            return Choice::Now(self.release(usize::from(task)), due_ns);
        }
        if self.count == 0 && self.from.0.is_abandoned() && self.from.0.is_empty() {
            self.counts.is_over.store(1, Ordering::Relaxed);
            return Choice::End;
        }
        if self.is_dry { Choice::At(now_ns + POLL_NS) } else { Choice::AfterCompletion }
    }

    fn completed(&mut self, op: &Op, now_ns: u64) {
        let is_due = |due: &Reverse<(u64, u16)>| due.0.0 < now_ns;
        if self.is_timed && self.in_flight == self.depth && self.due.peek().is_some_and(is_due) {
            count(&self.counts.held_by_depth, 1);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        let (at, number) = ((op.at_ns >> NUMBER_BITS) as usize, op.at_ns & ((1 << NUMBER_BITS) - 1));
        let Some(task) = self.tasks.get_mut(at) else { return };
        // A newer operation uses this entry of `stamps`, and no operation can wait for this one.
        if number + u64::from(REACH) <= task.next.saturating_sub(1) {
            return;
        }
        let outside_driver_ns = self.counts.outside_driver_ns[op.kind as usize].load(Ordering::Relaxed);
        task.stamps[(number % u64::from(REACH)) as usize] = Stamp { seen_ns: now_ns, outside_driver_ns };
        let first = self.table.get(task.first as usize);
        if first.and_then(|entry| waited_for(task, &entry.step)) == Some(number) {
            self.schedule_first(at);
        }
    }
}

impl Task {
    /// Returns a captured wait minus the time outside the driver. If that time exceeds the wait,
    /// the excess shortens later waits. If several operations wait for the same one, only the first
    /// of them adds to the excess or uses it.
    fn shortened(&mut self, awaited: Option<u64>, wait_ns: u64, outside_driver_ns: u64) -> u64 {
        let left_ns = wait_ns.saturating_sub(outside_driver_ns);
        if awaited.is_none() || self.deducted_for >= awaited {
            return left_ns;
        }
        self.deducted_for = awaited;
        let owed_ns = self.owed_ns + outside_driver_ns.saturating_sub(wait_ns);
        let made_up_ns = owed_ns.min(left_ns);
        self.owed_ns = (owed_ns - made_up_ns).min(MAX_OWED_NS);
        left_ns - made_up_ns
    }
}

/// Returns whether two operations need separate calls: if the second one is due more than [`IN_A_CALL_NS`] after the first one, or if
/// the kernel would merge both into one request if they were in one call.
fn needs_separate_call(before: &DueStep, after: &DueStep) -> bool {
    let (last, next) = (before.step, after.step);
    let ends = |step: &Step| step.offset.saturating_add(u64::from(step.length));
    let meets = ends(&last) == next.offset || ends(&next) == last.offset;
    let is_merged = (last.kind, last.file) == (next.kind, next.file) && last.kind != Kind::Sync && meets;
    is_merged || after.due_ns > before.due_ns.saturating_add(IN_A_CALL_NS)
}

/// Returns the serial number of the operation that `step`, the next one of the task, waits for; `None` if it
/// waits for none.
fn waited_for(task: &Task, step: &Step) -> Option<u64> {
    let back = Some(step.waits_back.min(REACH - 1)).filter(|back| *back > 0)?;
    task.next.checked_sub(u64::from(back))
}

#[cfg(test)]
mod tests;
