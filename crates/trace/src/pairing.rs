//! Pairing: events become requests, and requests become rows in the order of their issue.
//!
//! 1. [`Merge`] orders the events of all CPUs. Each CPU's buffer is in order. When all buffers have been read, every event older than the
//!    start of the previous reading is present: a record that was being written at that time has been finished since.
//! 2. [`Pairing`] matches a completion with the oldest request in flight that has the same operation and sector.
//! 3. `Slots` holds requests in flight, and releases rows in the order of their issue.
//!
//! Special cases:
//! * A flush is issued at sector 0 and completes at 2^64-1.
//! * The kernel splits a requested flush, and a write that needs a flush before or after it. A kernel worker issues the flushes to the
//!   device. The write's data is issued without the letters for the flush. Finally there is a completion without sectors, at the write's
//!   sector or at 0 for a flush without data. Only `block_bio_queue` has the task that requested the flush, and its letters.
//! * A request may complete in parts, and the driver may return it.

use crate::row::{Flags, Names, Row, RowKind};
use crate::{Event, EventKind};
use model::captured::{Completed, Op, RowUnit};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

/// How long to wait for requests in flight after events were lost.
pub const PATIENCE_NS: u64 = 5_000_000_000;
/// Longest time in the scheduler before a request counts as merged into another one. The scheduler's own deadlines are a few seconds.
const MAX_QUEUED_NS: u64 = 60_000_000_000;
/// Maximum delay between the completion event and the kernel's counting of the request, unless a task is stopped in between.
const COUNTING_DELAY_NS: u64 = 1_000_000;

/// First sector and operation of a request in flight.
type RequestKey = (u64, Op);

/// The requests in flight with one [`RequestKey`], as a linked list: the serial numbers of the oldest and of the newest request. Each
/// request has the number of the next one.
#[derive(Clone, Copy, Debug)]
struct InFlightAtPlace {
    oldest: u64,
    newest: u64,
}

/// The part of a device that is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Requests or bios.
    pub unit: RowUnit,
    /// First sector and number of sectors; `None` for the whole device. In rows, sector 0 is the first sector of the span.
    pub span: Option<(u64, u64)>,
    /// When the capture began, by the clock of the trace.
    pub start_ns: u64,
}

/// Numbers of events and requests that the pairing has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Completions without an issue.
    pub without_issue: u64,
    /// Issues without a completion.
    pub without_completion: u64,
    /// Requests that the driver returned.
    pub requeued: u64,
    /// Completions between the two readings of the counters.
    pub completed: Completed,
}

/// Pairs events with requests.
#[derive(Debug, Default)]
pub struct Pairing {
    scope: Scope,
    slots: Slots,
    in_flight: HashMap<RequestKey, InFlightAtPlace>,
    /// Requests that were inserted and not issued yet: the time of insertion in ns, and the index of the task.
    inserted: HashMap<RequestKey, (u64, u32)>,
    /// Serial numbers of the requests that the driver returned and that were not issued again yet.
    requeued: HashMap<RequestKey, VecDeque<u64>>,
    /// By sector: serial numbers of the writes with a flush that were requested and not issued yet.
    requested_flush_writes: HashMap<u64, VecDeque<u64>>,
    /// By sector: serial numbers of the writes with a flush that were issued and have not ended yet.
    ending: HashMap<u64, VecDeque<u64>>,
    /// Serial numbers of the requested flushes without data that have not ended yet.
    empty_flushes: VecDeque<u64>,
    /// Set after events were lost: the serial number of the first request after the loss, and a time in ns. At that time, the pending
    /// requests from before the loss are given up, because their completions may be among the lost events.
    lossy_until: Option<(u64, u64)>,
    /// Times before and after reading the device's counters, at the beginning and at the end of the capture.
    counters_read_at: [Option<(u64, u64)>; 2],
    /// Counts of the events taken so far.
    pub counts: Counts,
}

impl Pairing {
    /// Creates a pairing without events.
    pub fn new(scope: Scope) -> Self {
        Self { scope, ..Self::default() }
    }

    /// Sets the times before and after the counters were read at the beginning of the capture.
    pub fn counters_read_first(&mut self, before_ns: u64, after_ns: u64) {
        self.counters_read_at[0] = Some((before_ns, after_ns));
    }

    /// Sets the times before and after the counters were read at the end of the capture. Call this before adding events from after these
    /// times.
    pub fn counters_read_last(&mut self, before_ns: u64, after_ns: u64) {
        self.counters_read_at[1] = Some((before_ns, after_ns));
    }

    /// Handles the next event, and releases finished rows.
    pub fn add_event(&mut self, event: &Event, names: &mut Names, each: &mut dyn FnMut(&Row)) {
        if self.lossy_until.is_some_and(|(_, until_ns)| event.at_ns > until_ns) {
            self.give_up();
        }
        let Some(event) = self.relative_to_span(event) else { return };
        match event.step {
            EventKind::Lost => {
                self.lossy_until = Some((self.slots.next(), event.at_ns.saturating_add(PATIENCE_NS)));
                self.inserted.clear();
            }
            EventKind::Inserted => self.insert(&event),
            EventKind::FlushRequested => self.request_flush(&event, names),
            EventKind::Issued => self.issue(&event, names),
            EventKind::Requeued => self.requeue(&event),
            EventKind::Completed => self.complete(&event, names),
        }
        self.slots.release(event.at_ns.saturating_sub(self.scope.start_ns), each);
    }

    /// Limits how long rows wait for an older request that has not completed. After that time they
    /// no longer wait, and the older request is released when it completes.
    pub fn wait_at_most(&mut self, ns: u64) {
        self.slots.patience_ns = Some(ns);
    }

    /// Releases the rows that have waited long enough at `at_ns`, even without a new event.
    pub fn pass_on(&mut self, at_ns: u64, each: &mut dyn FnMut(&Row)) {
        self.slots.release(at_ns.saturating_sub(self.scope.start_ns), each);
    }

    /// Releases all remaining rows, including requests in flight.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Row)) {
        for number in self.slots.pending_below(u64::MAX) {
            self.give_up_one(number);
        }
        self.slots.release(u64::MAX, each);
    }

    /// Returns the event with sectors relative to the captured span; `None` if the event is outside of the span. Events without a place,
    /// such as flushes, are never outside.
    fn relative_to_span(&self, event: &Event) -> Option<Event> {
        let Some((first, sectors)) = self.scope.span else { return Some(*event) };
        // The end event of a write with a flush has a sector but no length.
        let has_place = event.sectors > 0 || (event.op == Op::Write && event.sector > 0);
        if event.step == EventKind::Lost || !has_place {
            return Some(*event);
        }
        let sector = event.sector.checked_sub(first).filter(|at| *at < sectors)?;
        Some(Event { sector, ..*event })
    }

    fn row(&self, event: &Event) -> Row {
        Row {
            issue_ns: event.at_ns.saturating_sub(self.scope.start_ns),
            latency_ns: None,
            queued_ns: None,
            sector: if event.sectors == 0 { 0 } else { event.sector },
            sectors: event.sectors,
            flags: event.flags,
            task: event.task,
        }
    }

    fn request_flush(&mut self, event: &Event, names: &mut Names) {
        let Some(requested_flags) = names.flags_at(event.flags) else { return };
        if !requested_flags.has_preflush() && !requested_flags.has_fua() {
            return;
        }
        let rwbs = requested_flags.rwbs.clone();
        let flags = names.flags(&Flags { kind: RowKind::RequestedFlush, rwbs, error: 0 });
        let number = self.slots.push(Row { flags, ..self.row(event) });
        if event.sectors == 0 {
            self.empty_flushes.push_back(number);
        } else {
            self.requested_flush_writes.entry(event.sector).or_default().push_back(number);
        }
    }

    fn insert(&mut self, event: &Event) {
        // The kernel never issues a request that it merged into another one. Remove such requests before the map would grow.
        if self.inserted.len() == self.inserted.capacity() {
            let first_ns = event.at_ns.saturating_sub(MAX_QUEUED_NS);
            self.inserted.retain(|_, (at_ns, _)| *at_ns >= first_ns);
            self.inserted.reserve(self.inserted.len());
        }
        self.inserted.insert(place(event), (event.at_ns, event.task));
    }

    fn issue(&mut self, event: &Event, names: &mut Names) {
        let place = place(event);
        // The kernel inserts a returned request again.
        let inserted = self.inserted.remove(&place);
        if let Some(number) = pop(&mut self.requeued, &place) {
            self.append_in_flight(place, number);
            return;
        }
        self.give_up_at(place);
        let mut row = self.row(event);
        if let Some((at_ns, task)) = inserted {
            row.queued_ns = Some(event.at_ns.saturating_sub(at_ns));
            row.task = task;
        }
        if event.op == Op::Write && self.scope.unit == RowUnit::Requests {
            self.find_owner(event, names, &mut row);
        }
        let number = self.slots.push(row);
        self.append_in_flight(place, number);
    }

    /// Finds the event by which a task requested this write with a flush. Copies the task and the letters of that event to the row of the
    /// write's data.
    fn find_owner(&mut self, event: &Event, names: &mut Names, row: &mut Row) {
        let Some(number) = pop(&mut self.requested_flush_writes, &event.sector) else { return };
        let issued_with_fua = names.flags_at(event.flags).is_some_and(Flags::has_fua);
        let Some(slot) = self.slots.pending(number) else { return };
        row.task = slot.row.task;
        let requested = names.flags_at(slot.row.flags).cloned().unwrap_or_default();
        row.flags = names.flags(&Flags::parse(&requested.rwbs));
        if issued_with_fua && !requested.has_preflush() {
            // The device itself makes the write stable (FUA), so no separate end follows.
            self.slots.finish(number, State::Dropped);
        } else {
            self.ending.entry(event.sector).or_default().push_back(number);
        }
    }

    fn requeue(&mut self, event: &Event) {
        let place = place(event);
        if let Some(number) = self.take_oldest(place) {
            self.counts.requeued += 1;
            self.requeued.entry(place).or_default().push_back(number);
        }
    }

    fn complete(&mut self, event: &Event, names: &mut Names) {
        if event.sectors == 0 && event.op == Op::Write && self.scope.unit == RowUnit::Requests {
            self.finish_flush(event);
            return;
        }
        let place = place(event);
        let Some(number) = self.take_oldest(place) else {
            self.counts.without_issue += 1;
            self.count(event.op, event.at_ns);
            return;
        };
        let Some(slot) = self.slots.pending(number) else { return };
        let whole =
            self.scope.unit == RowUnit::Bios || event.op == Op::Flush || event.sectors >= slot.remaining;
        if !whole && event.sectors > 0 {
            slot.remaining -= event.sectors;
            let rest = (event.sector.saturating_add(u64::from(event.sectors)), event.op);
            self.append_in_flight(rest, number);
            return;
        }
        let issued = slot.row.issue_ns.saturating_add(self.scope.start_ns);
        slot.row.latency_ns = Some(event.at_ns.saturating_sub(issued));
        let error = names.flags_at(event.flags).map_or(0, |flags| flags.error);
        if error != 0 {
            let flags = names.flags_at(slot.row.flags).cloned().unwrap_or_default();
            slot.row.flags = names.flags(&Flags { error, ..flags });
        }
        self.slots.finish(number, State::Done);
        self.count(event.op, event.at_ns);
    }

    /// Handles the completion that follows all parts of a flush.
    fn finish_flush(&mut self, event: &Event) {
        let mut number = pop(&mut self.ending, &event.sector);
        if number.is_none() && event.sector == 0 {
            if self.is_between(event.at_ns) {
                self.counts.completed.empty_flushes += 1;
            }
            number = self.empty_flushes.pop_front();
        }
        let Some(number) = number else { return };
        let Some(slot) = self.slots.pending(number) else { return };
        let requested_ns = slot.row.issue_ns.saturating_add(self.scope.start_ns);
        slot.row.latency_ns = Some(event.at_ns.saturating_sub(requested_ns));
        self.slots.finish(number, State::Done);
    }

    /// Counts a completion in the same group as the kernel does (`op_stat_group`).
    fn count(&mut self, op: Op, at_ns: u64) {
        if !self.is_between(at_ns) {
            return;
        }
        let completed = &mut self.counts.completed;
        match op {
            Op::Read => completed.reads += 1,
            Op::Write | Op::Zeroes => completed.writes += 1,
            Op::Discard => completed.discards += 1,
            Op::Flush => completed.flushes += 1,
            Op::Other => {}
        }
    }

    /// Returns whether a completion is between the two readings of the counters. If the completion is during a reading or shortly before
    /// it, also counts it in `at_edges`: the kernel may or may not have counted it by then.
    fn is_between(&mut self, at_ns: u64) -> bool {
        let mut readings = self.counters_read_at.into_iter().flatten();
        let at_edge = readings
            .any(|(before, after)| (before.saturating_sub(COUNTING_DELAY_NS)..=after).contains(&at_ns));
        self.counts.completed.at_edges += u64::from(at_edge);
        let began = self.counters_read_at[0].is_none_or(|(before, _)| at_ns >= before);
        began && self.counters_read_at[1].is_none_or(|(before, _)| at_ns < before)
    }

    /// Appends a request to those in flight at its place.
    fn append_in_flight(&mut self, key: RequestKey, number: u64) {
        if let Some(slot) = self.slots.pending(number) {
            slot.next = None;
        }
        let Some(queue) = self.in_flight.get_mut(&key) else {
            self.in_flight.insert(key, InFlightAtPlace { oldest: number, newest: number });
            return;
        };
        let newest = std::mem::replace(&mut queue.newest, number);
        match self.slots.pending(newest) {
            Some(slot) => slot.next = Some(number),
            // The newest request was given up meanwhile.
            None => queue.oldest = number,
        }
    }

    /// Removes the oldest request in flight at a place.
    fn take_oldest(&mut self, key: RequestKey) -> Option<u64> {
        loop {
            let queue = self.in_flight.get_mut(&key)?;
            let number = queue.oldest;
            match self.slots.next_at_place(number) {
                Some(next) => queue.oldest = next,
                None => {
                    self.in_flight.remove(&key);
                }
            }
            if self.slots.pending(number).is_some() {
                return Some(number);
            }
        }
    }

    /// Gives up requests at this place whose completions may be among the lost events. A new
    /// request at the place proves that they have completed.
    fn give_up_at(&mut self, key: RequestKey) {
        let Some((below, _)) = self.lossy_until else { return };
        while self.in_flight.get(&key).is_some_and(|queue| queue.oldest < below) {
            if let Some(number) = self.take_oldest(key) {
                self.give_up_one(number);
            }
        }
    }

    /// Gives up all requests that were in flight when events were lost and are still pending.
    fn give_up(&mut self) {
        let Some((below, _)) = self.lossy_until.take() else { return };
        for number in self.slots.pending_below(below) {
            self.give_up_one(number);
        }
        let slots = &mut self.slots;
        self.in_flight.retain(|_, queue| slots.pending(queue.newest).is_some());
        self.empty_flushes.retain(|number| slots.pending(*number).is_some());
        retain_pending(&mut self.requested_flush_writes, slots);
        retain_pending(&mut self.ending, slots);
        retain_pending(&mut self.requeued, slots);
    }

    /// Finishes a request whose completion was not seen.
    fn give_up_one(&mut self, number: u64) {
        if self.slots.pending(number).is_some() {
            self.slots.finish(number, State::Done);
            self.counts.without_completion += 1;
        }
    }
}

fn place(event: &Event) -> RequestKey {
    match event.op {
        Op::Flush => (0, Op::Flush),
        op => (event.sector, op),
    }
}

/// Removes and returns the oldest request number of a place. Removes the queue of the place when it becomes empty.
fn pop<K: Eq + Hash>(queues: &mut HashMap<K, VecDeque<u64>>, place: &K) -> Option<u64> {
    let queue = queues.get_mut(place)?;
    let number = queue.pop_front();
    if queue.is_empty() {
        queues.remove(place);
    }
    number
}

/// Removes the requests that are no longer pending.
fn retain_pending<K: Eq + Hash>(queues: &mut HashMap<K, VecDeque<u64>>, slots: &mut Slots) {
    queues.retain(|_, queue| {
        queue.retain(|number| slots.pending(*number).is_some());
        !queue.is_empty()
    });
}

/// Events of all CPUs that wait to be ordered.
#[derive(Debug, Default)]
pub struct Merge {
    /// Events that were not passed on yet. Callers append events here.
    pub waiting: Vec<Event>,
}

impl Merge {
    /// Passes on all events before this time, in order.
    pub fn before(&mut self, at_ns: u64, each: impl FnMut(&Event)) {
        self.sort();
        self.pass_on(self.waiting.partition_point(|event| event.at_ns < at_ns), each);
    }

    /// Passes on the `count` oldest events, in order.
    pub fn oldest(&mut self, count: usize, each: impl FnMut(&Event)) {
        self.sort();
        self.pass_on(count.min(self.waiting.len()), each);
    }

    fn sort(&mut self) {
        // The list consists of sorted pieces, which a stable sort merges quickly.
        self.waiting.sort_by_key(|event| event.at_ns);
    }

    fn pass_on(&mut self, count: usize, mut each: impl FnMut(&Event)) {
        self.waiting.drain(..count).for_each(|event| each(&event));
    }
}

/// Maximum number of requests that wait for an older one to complete. When there are more, they no longer wait for the older one.
const MAX_WAITING_REQUESTS: usize = 1 << 20;

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In flight, or back in the queue.
    Pending,
    /// Finished, to be released.
    Done,
    /// Omitted: there is no row for this request.
    Dropped,
}

/// A request that was issued and not released yet.
#[derive(Clone, Copy, Debug)]
struct Slot {
    row: Row,
    state: State,
    /// Sectors that have not completed yet.
    remaining: u32,
    /// The next request in flight at the same place; `None` if this request is the last one there.
    next: Option<u64>,
}

/// Requests in the order of their issue. At its issue, each request gets the next serial number.
#[derive(Debug, Default)]
struct Slots {
    queue: VecDeque<Slot>,
    /// Serial number of the first request in the queue.
    first: u64,
    /// Requests that later requests no longer wait for, by serial number.
    late: BTreeMap<u64, Slot>,
    /// Serial numbers of the late requests that are no longer pending.
    late_finished: Vec<u64>,
    /// How long requests wait for an older one, in ns; `None` for no limit.
    patience_ns: Option<u64>,
}

impl Slots {
    /// Returns the serial number that the next request will get.
    fn next(&self) -> u64 {
        self.first + self.queue.len() as u64
    }

    /// Adds a request, and returns its serial number.
    fn push(&mut self, row: Row) -> u64 {
        let number = self.next();
        self.queue.push_back(Slot { row, state: State::Pending, remaining: row.sectors, next: None });
        number
    }

    /// Returns a request if it is pending.
    fn pending(&mut self, number: u64) -> Option<&mut Slot> {
        let slot = match number.checked_sub(self.first) {
            Some(at) => self.queue.get_mut(usize::try_from(at).ok()?),
            None => self.late.get_mut(&number),
        };
        slot.filter(|slot| slot.state == State::Pending)
    }

    /// Ends a pending request.
    fn finish(&mut self, number: u64, state: State) {
        let Some(slot) = self.pending(number) else { return };
        slot.state = state;
        if number < self.first {
            self.late_finished.push(number);
        }
    }

    /// Returns the serial number of the next request at the same place, in any state; `None` if the request is the last one there.
    fn next_at_place(&self, number: u64) -> Option<u64> {
        match number.checked_sub(self.first) {
            Some(at) => self.queue.get(usize::try_from(at).ok()?)?.next,
            None => self.late.get(&number)?.next,
        }
    }

    fn is_too_old(&self, slot: &Slot, now_ns: u64) -> bool {
        self.patience_ns.is_some_and(|patience_ns| now_ns.saturating_sub(slot.row.issue_ns) > patience_ns)
    }

    /// Returns the serial numbers of the pending requests before the request with this number.
    fn pending_below(&self, number: u64) -> Vec<u64> {
        let queued = (self.first..).zip(&self.queue).take_while(|(at, _)| *at < number);
        let queued = queued.filter(|(_, slot)| slot.state == State::Pending).map(|(at, _)| at);
        self.late.keys().copied().filter(|at| *at < number).chain(queued).collect()
    }

    /// Releases the finished requests that no longer wait for an older pending request, and the finished late requests.
    fn release(&mut self, now_ns: u64, each: &mut dyn FnMut(&Row)) {
        loop {
            match self.queue.front() {
                Some(slot) if slot.state != State::Pending => {
                    if slot.state == State::Done {
                        each(&slot.row);
                    }
                }
                Some(slot) if self.queue.len() > MAX_WAITING_REQUESTS || self.is_too_old(slot, now_ns) => {
                    self.late.insert(self.first, *slot);
                }
                _ => break,
            }
            self.queue.pop_front();
            self.first += 1;
        }
        for number in self.late_finished.drain(..) {
            if let Some(slot) = self.late.remove(&number).filter(|slot| slot.state == State::Done) {
                each(&slot.row);
            }
        }
    }
}

#[test]
fn events_come_in_order_once_none_can_precede_them() {
    use crate::EventKind;
    use model::captured::Op;
    let event = |at_ns| Event {
        at_ns,
        step: EventKind::Issued,
        op: Op::Read,
        sector: 0,
        sectors: 8,
        flags: 0,
        task: 0,
        device: 0,
    };
    let mut merge = Merge::default();
    merge.waiting.extend([1, 5, 9, 2, 3, 12].map(event));
    let mut seen = Vec::new();
    merge.before(6, |event| seen.push(event.at_ns));
    assert_eq!(seen, [1, 2, 3, 5]);
    merge.waiting.extend([7, 13].map(event));
    merge.before(u64::MAX, |event| seen.push(event.at_ns));
    assert_eq!(seen, [1, 2, 3, 5, 7, 9, 12, 13]);
}

#[test]
fn rows_leave_in_the_order_of_their_issue_and_a_stuck_one_does_not_block_them() {
    let row = |issue_ns| Row { issue_ns, ..Row::default() };
    let mut slots = Slots::default();
    let [stuck, two, three] = [1, 2, 3].map(|at| slots.push(row(at)));
    let mut seen: Vec<u64> = Vec::new();
    let mut done = |slots: &mut Slots, number| {
        slots.finish(number, State::Done);
        slots.release(0, &mut |row| seen.push(row.issue_ns));
        seen.clone()
    };
    assert!(done(&mut slots, three).is_empty());
    assert!(done(&mut slots, two).is_empty());
    for at in 4..MAX_WAITING_REQUESTS as u64 + 3 {
        slots.push(row(at));
    }
    assert_eq!(done(&mut slots, 999_999), [2, 3], "the first is late by now");
    assert_eq!(slots.pending_below(two), [stuck]);
    assert_eq!(done(&mut slots, stuck), [2, 3, 1]);
}

#[test]
fn with_a_limit_a_slow_request_leaves_after_the_others() {
    let mut slots = Slots { patience_ns: Some(50), ..Slots::default() };
    let [slow, quick] = [10, 20].map(|issue_ns| slots.push(Row { issue_ns, ..Row::default() }));
    let left = |slots: &mut Slots, done: Option<u64>, now_ns| {
        if let Some(number) = done {
            slots.finish(number, State::Done);
        }
        let mut seen = Vec::new();
        slots.release(now_ns, &mut |row| seen.push(row.issue_ns));
        seen
    };
    assert!(left(&mut slots, Some(quick), 30).is_empty());
    assert!(left(&mut slots, None, 60).is_empty());
    assert_eq!(left(&mut slots, None, 61), [20]);
    assert_eq!(left(&mut slots, Some(slow), 900), [10]);
}

#[test]
fn late_requests_leave_as_they_end() {
    let mut slots = Slots { patience_ns: Some(50), ..Slots::default() };
    let numbers: Vec<u64> =
        (0..20_000).map(|issue_ns| slots.push(Row { issue_ns, ..Row::default() })).collect();
    let mut seen = Vec::new();
    slots.release(100_000, &mut |row| seen.push(row.issue_ns));
    assert!(seen.is_empty());
    // The cost of an event does not depend on the number of late requests, or this would take minutes.
    for two in numbers.rchunks(2) {
        for number in two {
            slots.finish(*number, State::Done);
        }
        (0..10).for_each(|_| slots.release(100_000, &mut |row| seen.push(row.issue_ns)));
    }
    let expected: Vec<u64> = numbers.rchunks(2).flatten().copied().collect();
    assert_eq!(seen, expected);
    assert!(slots.late.is_empty());
}

#[cfg(test)]
mod tests;
