//! A load that was captured, again: which of its operations is next is decided by when others completed.
//!
//! For: lanes of tasks in one lane of the loop, fed by a reader ahead of it through a ring. Not for: where operations come from and what
//! they wait for, which whoever fills the ring has worked out, nor for submitting them.
//!
//! All memory is taken before the first operation: a table of operations that were read and not submitted yet, in which those of a task
//! are chained, and for each task the stamps of its last [`REACH`] completions. A task's operations are submitted in their order; one that
//! waits for an earlier one is due so long after that one's completion.

use super::{Choice, Op, Source};
use model::job::Kind;
use model::record::Replayed;
use rtrb::{Consumer, Producer, RingBuffer};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far back the operation may be that another one waits for; less than this.
pub const REACH: u32 = 1024;
/// Most tasks that are kept apart.
pub const MOST_LANES: u32 = 256;
/// Operations between the reader and the loop.
const ROOM: usize = 1 << 14;
/// Operations that are held until they are due.
const HELD: usize = 1 << 16;
/// Operations that are taken over at once.
const AT_ONCE: usize = 64;
/// Time after which the reader is asked again where it had nothing, in ns.
const ASK_AGAIN_NS: u64 = 50_000;
/// How long after the one before an operation was issued, at most, where both were given to the kernel in one call, in ns: in a call of its
/// own it is no sooner.
const IN_A_CALL_NS: u64 = 3_000;
/// Most that waits make up of what ways took before, in ns.
const MOST_OWED_NS: u64 = 1_000_000;
/// Bits of an operation's number within its lane, in what the loop gives back of it.
const NUMBER_BITS: u32 = 48;
/// No place in the table.
const NONE: u32 = u32::MAX;
/// A stamp of what has not completed.
const UNDER_WAY: Stamp = Stamp { seen_ns: u64::MAX, way_ns: 0 };
/// That of the beginning.
const BEGINNING: Stamp = Stamp { seen_ns: 0, way_ns: 0 };

/// An operation of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// First byte.
    pub offset: u64,
    /// How long it waits in ns: since the completion of the operation that it waits for, or since the beginning.
    pub wait_ns: u64,
    /// Bytes; 0 for a sync.
    pub length: u32,
    /// How many operations of its lane ago the one was that it waits for, below [`REACH`]; 0 for none.
    pub after: u32,
    /// Index of its task, below [`MOST_LANES`].
    pub lane: u16,
    /// Index of the file among the worker's.
    pub file: u16,
    /// What it does.
    pub kind: Kind,
}

/// What the loop counts while it replays, and what it is told meanwhile; shared with whoever asks and tells.
#[derive(Debug, Default)]
pub struct Counts {
    /// How much longer operations of each kind take here than at the driver, in ns.
    way_ns: [AtomicU64; Kind::ALL.len()],
    starved: AtomicU64,
    starved_ns: AtomicU64,
    held_by_depth: AtomicU64,
    held_by_order: AtomicU64,
    outside: AtomicU64,
    is_over: AtomicU64,
}

impl Counts {
    /// Notes how many discards the reader left out, since they lie wholly outside what is touched.
    pub fn leave_out(&self, discards: u64) {
        self.outside.store(discards, Ordering::Relaxed);
    }

    /// Tells how much longer operations of a kind take, from being submitted until their completion is seen, than at the driver, in ns.
    /// Captured waits are those between requests at the driver, so what waits for such an operation waits so much less here.
    pub fn set_way(&self, kind: Kind, ns: u64) {
        self.way_ns[kind as usize].store(ns, Ordering::Relaxed);
    }

    /// What was counted.
    pub fn totals(&self) -> Replayed {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Replayed {
            starved: get(&self.starved),
            starved_ns: get(&self.starved_ns),
            held_by_depth: get(&self.held_by_depth),
            held_by_order: get(&self.held_by_order),
            outside: get(&self.outside),
            is_whole: get(&self.is_over) > 0,
        }
    }
}

/// So many more on a counter that this thread alone writes.
fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// The reader's end of the way to the loop.
pub struct Feed(Producer<Step>);

/// The loop's end.
pub struct Fed(Consumer<Step>);

/// What became of an operation that the reader gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The loop will have it.
    Taken,
    /// There was no room; give it again.
    Full,
    /// The loop is over.
    Gone,
}

/// The way from the reader to the loop.
pub fn feed() -> (Feed, Fed) {
    let (to, from) = RingBuffer::new(ROOM);
    (Feed(to), Fed(from))
}

impl Feed {
    /// Gives the next operation.
    pub fn give(&mut self, step: Step) -> Given {
        match self.0.push(step) {
            Ok(()) => Given::Taken,
            Err(_) if self.0.is_abandoned() => Given::Gone,
            Err(_) => Given::Full,
        }
    }
}

impl Fed {
    /// Whether the reader is as far ahead as it can be.
    pub fn is_full(&self) -> bool {
        self.0.is_abandoned() || self.0.slots() == ROOM
    }
}

/// Operations of a task that are not submitted yet, and when those before completed.
struct Task {
    /// First and last in the table.
    first: u32,
    last: u32,
    /// Number of the next one to be submitted.
    next: u64,
    /// When the last [`REACH`] of them completed, by their numbers.
    stamps: Box<[Stamp]>,
    /// What ways took beyond the waits that they are part of, in ns: the next waits make it up.
    owed_ns: u64,
    /// Number of the last operation whose way was counted.
    counted: Option<u64>,
}

/// The completion of an operation.
#[derive(Clone, Copy)]
struct Stamp {
    /// When it was seen, in ns.
    seen_ns: u64,
    /// What the way through the kernel and back took of that, in ns.
    way_ns: u64,
}

/// The source.
pub struct Replay {
    from: Fed,
    tasks: Vec<Task>,
    /// Operations that are held, each with the place of the next one of its task, or of the next free one.
    held: Box<[(Step, u32)]>,
    free: u32,
    count: usize,
    /// Tasks whose next operation has a time, by that.
    due: BinaryHeap<Reverse<(u64, u16)>>,
    /// Whether the reader had nothing when it was asked last, though there was room.
    is_dry: bool,
    in_flight: u32,
    depth: u32,
    /// The last operation of the call that is being made, and when it was due.
    beside: Option<(Step, u64)>,
    /// Whether operations have times at all.
    is_timed: bool,
    counts: Arc<Counts>,
}

impl Replay {
    /// Takes what `from` has, for so many lanes and at most so many operations in flight. `is_timed` is whether operations wait for
    /// anything but room.
    pub fn new(from: Fed, lanes: u32, depth: u32, is_timed: bool, counts: Arc<Counts>) -> Self {
        let task = |_| Task {
            first: NONE,
            last: NONE,
            next: 0,
            owed_ns: 0,
            counted: None,
            stamps: vec![UNDER_WAY; REACH as usize].into_boxed_slice(),
        };
        let nothing = Step { offset: 0, wait_ns: 0, length: 0, after: 0, lane: 0, file: 0, kind: Kind::Read };
        let place = |at: usize| (nothing, if at + 1 < HELD { at as u32 + 1 } else { NONE });
        let lanes = lanes.clamp(1, MOST_LANES);
        let mut new = Self {
            from,
            tasks: (0..lanes).map(task).collect(),
            held: (0..HELD).map(place).collect(),
            free: 0,
            count: 0,
            due: BinaryHeap::with_capacity(lanes as usize),
            is_dry: false,
            in_flight: 0,
            depth,
            beside: None,
            is_timed,
            counts,
        };
        while new.take_over(0) > 0 {}
        new
    }

    /// Takes some operations over from the reader, as far as there is room. How many they were.
    fn take_over(&mut self, now_ns: u64) -> usize {
        let mut taken = 0;
        while taken < AT_ONCE && self.free != NONE {
            let Ok(step) = self.from.0.pop() else {
                self.is_dry = !self.from.0.is_abandoned();
                return taken;
            };
            taken += 1;
            self.hold(step, now_ns);
        }
        if taken > 0 {
            self.is_dry = false;
        }
        taken
    }

    /// Puts an operation behind those of its task.
    fn hold(&mut self, step: Step, now_ns: u64) {
        let lane = usize::from(step.lane).min(self.tasks.len() - 1);
        let place = self.free;
        let (was_dry, was_full) = (self.is_dry, self.count + 1 == HELD);
        self.free = std::mem::replace(&mut self.held[place as usize], (step, NONE)).1;
        self.count += 1;
        let task = &mut self.tasks[lane];
        if task.first != NONE {
            self.held[task.last as usize].1 = place;
            task.last = place;
            return;
        }
        (task.first, task.last) = (place, place);
        let due = self.set_due(lane);
        let Some(late_ns) = due.and_then(|due| now_ns.checked_sub(due)).filter(|ns| *ns > 0) else { return };
        // What comes when it should have been submitted long ago was not read in time, or found no room in the table.
        if was_dry {
            count(&self.counts.starved, 1);
            let most = self.counts.starved_ns.load(Ordering::Relaxed).max(late_ns);
            self.counts.starved_ns.store(most, Ordering::Relaxed);
        } else if was_full && self.is_timed {
            count(&self.counts.held_by_order, 1);
        }
    }

    /// When the first operation of a task is due, where that is known by now.
    fn set_due(&mut self, lane: usize) -> Option<u64> {
        let task = &mut self.tasks[lane];
        let (step, _) = self.held.get(task.first as usize)?;
        let waited_for = waits_for(task, step);
        let stamp = match waited_for {
            None => BEGINNING,
            Some(number) => task.stamps[(number % u64::from(REACH)) as usize],
        };
        if stamp.seen_ns == UNDER_WAY.seen_ns {
            return None;
        }
        let due = stamp.seen_ns.saturating_add(task.shortened(waited_for, step.wait_ns, stamp.way_ns));
        self.due.push(Reverse((due, lane as u16)));
        Some(due)
    }

    /// Takes the first operation of a task out, which is due.
    fn release(&mut self, lane: usize) -> Op {
        let task = &mut self.tasks[lane];
        let place = task.first;
        let (step, next) = self.held[place as usize];
        self.held[place as usize].1 = self.free;
        self.free = place;
        self.count -= 1;
        task.first = next;
        let number = task.next;
        task.next += 1;
        task.stamps[(number % u64::from(REACH)) as usize] = UNDER_WAY;
        if next != NONE {
            self.set_due(lane);
        }
        self.in_flight += 1;
        let Step { offset, length, file, kind, .. } = step;
        Op { offset, at_ns: (lane as u64) << NUMBER_BITS | number, length, file, kind, flags: Op::CHOSEN }
    }
}

impl Source for Replay {
    /// Which one it is is asked when there is room for it.
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op { flags: Op::CHOSEN, ..Op::NONE });
    }

    fn look_ahead(&self) -> usize {
        1
    }

    fn begin_call(&mut self) {
        self.beside = None;
    }

    fn choose(&mut self, now_ns: u64) -> Choice {
        self.take_over(now_ns);
        if let Some(Reverse((due_ns, lane))) = self.due.peek().copied() {
            if due_ns > now_ns {
                // The reader may have something that is due before.
                return Choice::At(if self.is_dry { due_ns.min(now_ns + ASK_AGAIN_NS) } else { due_ns });
            }
            let first = self.tasks[usize::from(lane)].first;
            let next = self.held.get(first as usize).map(|(step, _)| (*step, due_ns));
            if self.beside.zip(next).is_some_and(|(last, next)| is_of_another_call(last, next)) {
                return Choice::At(now_ns);
            }
            self.beside = next;
            self.due.pop();
            return Choice::Now(self.release(usize::from(lane)), due_ns);
        }
        if self.count == 0 && self.from.0.is_abandoned() && self.from.0.is_empty() {
            self.counts.is_over.store(1, Ordering::Relaxed);
            return Choice::End;
        }
        if self.is_dry { Choice::At(now_ns + ASK_AGAIN_NS) } else { Choice::Later }
    }

    fn completed(&mut self, op: &Op, now_ns: u64) {
        let is_due = |due: &Reverse<(u64, u16)>| due.0.0 < now_ns;
        if self.is_timed && self.in_flight == self.depth && self.due.peek().is_some_and(is_due) {
            count(&self.counts.held_by_depth, 1);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        let (lane, number) = ((op.at_ns >> NUMBER_BITS) as usize, op.at_ns & ((1 << NUMBER_BITS) - 1));
        let Some(task) = self.tasks.get_mut(lane) else { return };
        // So long ago that its place is another one's by now, and nothing can wait for it any more.
        if number + u64::from(REACH) <= task.next.saturating_sub(1) {
            return;
        }
        let way_ns = self.counts.way_ns[op.kind as usize].load(Ordering::Relaxed);
        task.stamps[(number % u64::from(REACH)) as usize] = Stamp { seen_ns: now_ns, way_ns };
        let first = self.held.get(task.first as usize);
        if first.and_then(|(step, _)| waits_for(task, step)) == Some(number) {
            self.set_due(lane);
        }
    }
}

impl Task {
    /// A captured wait for an operation, less what the way took. Of several that wait for the same one the first has its way counted.
    fn shortened(&mut self, waited_for: Option<u64>, wait_ns: u64, way_ns: u64) -> u64 {
        let left_ns = wait_ns.saturating_sub(way_ns);
        if waited_for.is_none() || self.counted >= waited_for {
            return left_ns;
        }
        self.counted = waited_for;
        let owed_ns = self.owed_ns + way_ns.saturating_sub(wait_ns);
        let made_up_ns = owed_ns.min(left_ns);
        self.owed_ns = (owed_ns - made_up_ns).min(MOST_OWED_NS);
        left_ns - made_up_ns
    }
}

/// Whether two operations were not given to the kernel together: the second was issued later, or the kernel would make one request of both.
fn is_of_another_call((last, last_due_ns): (Step, u64), (next, due_ns): (Step, u64)) -> bool {
    let ends = |step: &Step| step.offset.saturating_add(u64::from(step.length));
    let meets = ends(&last) == next.offset || ends(&next) == last.offset;
    let is_merged = (last.kind, last.file) == (next.kind, next.file) && last.kind != Kind::Sync && meets;
    is_merged || due_ns > last_due_ns.saturating_add(IN_A_CALL_NS)
}

/// Number of the operation that the next one of a task waits for.
fn waits_for(task: &Task, step: &Step) -> Option<u64> {
    let back = Some(step.after.min(REACH - 1)).filter(|back| *back > 0)?;
    task.next.checked_sub(u64::from(back))
}

#[cfg(test)]
mod tests;
