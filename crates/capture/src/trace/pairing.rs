//! Which events are one request.
//!
//! For: rows out of events in order. Not for: decoding or ordering them.
//!
//! A completion belongs to the oldest request in flight of its operation at its sector. What else there is:
//! * a flush is issued at sector 0 and completes at 2^64-1;
//! * a flush that a program asks for, and a write that needs one before or behind it, is taken apart by the kernel: the device's flushes
//!   are issued by a worker, the write's data without its letters for it, and behind all of it comes a completion without sectors at the
//!   write's place, or at 0 of a flush without data. `block_bio_queue` alone names who asked, and with which letters;
//! * a request may complete in parts, and may be given back by the driver.

use crate::row::{Flags, Names, Row, RowKind};
use crate::trace::{Event, Step};
use model::captured::{Completed, Op, Unit};
use std::collections::{HashMap, VecDeque};

/// After the kernel lost events, whatever was in flight before is waited for no longer than this.
pub const PATIENCE_NS: u64 = 5_000_000_000;
/// By how much the kernel may count a request later than it says that it completed, as far as a task is not stopped in between.
const COUNTING_NS: u64 = 1_000_000;

/// Place and kind of a request in flight.
type Place = (u64, Op);

/// Numbers of requests in flight of one place, oldest and newest.
#[derive(Clone, Copy, Debug)]
struct Line {
    oldest: u64,
    newest: u64,
}

/// What is captured of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Requests or bios.
    pub unit: Unit,
    /// First sector and number of sectors; rows count from there.
    pub span: Option<(u64, u64)>,
    /// When the capture began, by the clock of the trace.
    pub start_ns: u64,
}

/// What was counted beside the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Completions without an issue.
    pub without_issue: u64,
    /// Issues without a completion.
    pub without_completion: u64,
    /// Requests given back.
    pub requeued: u64,
    /// What completed between the two readings of the counters.
    pub completed: Completed,
}

/// Requests under way.
#[derive(Debug)]
pub struct Pairing {
    scope: Scope,
    slots: Slots,
    in_flight: HashMap<Place, Line>,
    /// When and by which task a request was inserted that is not issued yet.
    inserted: HashMap<Place, (u64, u32)>,
    /// Requests that were given back.
    requeued: HashMap<Place, u64>,
    /// Writes with a flush that were asked for and are not issued yet, by their sector.
    asked: HashMap<u64, VecDeque<u64>>,
    /// Writes with a flush that are issued and have not ended yet, by their sector.
    ending: HashMap<u64, VecDeque<u64>>,
    /// Flushes without data.
    empty: VecDeque<u64>,
    /// Requests below this number may miss events, and when they are given up.
    doubtful: Option<(u64, u64)>,
    /// Before and after the counters were read at the beginning and at the end.
    read_at: [Option<(u64, u64)>; 2],
    /// What was counted.
    pub counts: Counts,
}

impl Pairing {
    /// Nothing yet.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            slots: Slots::default(),
            in_flight: HashMap::new(),
            inserted: HashMap::new(),
            requeued: HashMap::new(),
            asked: HashMap::new(),
            ending: HashMap::new(),
            empty: VecDeque::new(),
            doubtful: None,
            read_at: [None; 2],
            counts: Counts::default(),
        }
    }

    /// Between which times the counters were read when it began.
    pub fn counters_read_first(&mut self, before_ns: u64, after_ns: u64) {
        self.read_at[0] = Some((before_ns, after_ns));
    }

    /// Between which times the counters were read when it ended; to be said before the events of that time are taken.
    pub fn counters_read_last(&mut self, before_ns: u64, after_ns: u64) {
        self.read_at[1] = Some((before_ns, after_ns));
    }

    /// Takes the next event, and hands on the rows that are done.
    pub fn take(&mut self, event: &Event, names: &mut Names, each: &mut dyn FnMut(&Row)) {
        if self.doubtful.is_some_and(|(_, until_ns)| event.at_ns > until_ns) {
            self.give_up();
        }
        let Some(event) = self.within(event) else { return };
        match event.step {
            Step::Lost => {
                self.doubtful = Some((self.slots.next(), event.at_ns.saturating_add(PATIENCE_NS)));
                self.inserted.clear();
            }
            Step::Inserted => {
                self.inserted.insert(place(&event), (event.at_ns, event.task));
            }
            Step::Asked => self.ask(&event, names),
            Step::Issued => self.issue(&event, names),
            Step::Requeued => self.give_back(&event),
            Step::Completed => self.complete(&event, names),
        }
        self.slots.release(event.at_ns.saturating_sub(self.scope.start_ns), each);
    }

    /// From now on rows wait for an older one to complete no longer than this; who takes longer leaves behind them.
    pub fn wait_at_most(&mut self, ns: u64) {
        self.slots.wait_at_most(ns);
    }

    /// Hands on the rows that have waited long enough by this time, where no event comes.
    pub fn hand_on(&mut self, at_ns: u64, each: &mut dyn FnMut(&Row)) {
        self.slots.release(at_ns.saturating_sub(self.scope.start_ns), each);
    }

    /// Hands on what is left: requests in flight.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Row)) {
        for number in self.slots.pending_below(u64::MAX) {
            self.leave(number);
        }
        self.slots.release(u64::MAX, each);
    }

    /// The event with sectors counted from the beginning of the span; `None` outside of it. What has no sectors has no place.
    fn within(&self, event: &Event) -> Option<Event> {
        let Some((first, sectors)) = self.scope.span else { return Some(*event) };
        // The end of a write with a flush has a place, and no sectors.
        let has_place = event.sectors > 0 || (event.op == Op::Write && event.sector > 0);
        if event.step == Step::Lost || !has_place {
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

    fn ask(&mut self, event: &Event, names: &mut Names) {
        let Some(said) = names.flags_at(event.flags) else { return };
        if !said.has_preflush() && !said.has_fua() {
            return;
        }
        let rwbs = said.rwbs.clone();
        let flags = names.flags(&Flags { kind: RowKind::Asked, rwbs, error: 0 });
        let number = self.slots.push(Row { flags, ..self.row(event) });
        if event.sectors == 0 {
            self.empty.push_back(number);
        } else {
            self.asked.entry(event.sector).or_default().push_back(number);
        }
    }

    fn issue(&mut self, event: &Event, names: &mut Names) {
        let place = place(event);
        if let Some(number) = self.requeued.remove(&place) {
            self.line_up(place, number);
            return;
        }
        self.give_up_at(place);
        let mut row = self.row(event);
        if let Some((at_ns, task)) = self.inserted.remove(&place) {
            row.queued_ns = Some(event.at_ns.saturating_sub(at_ns));
            row.task = task;
        }
        if event.op == Op::Write && self.scope.unit == Unit::Requests {
            self.find_owner(event, names, &mut row);
        }
        let number = self.slots.push(row);
        self.line_up(place, number);
    }

    /// A write with a flush gets the task and the letters of whoever asked for it.
    fn find_owner(&mut self, event: &Event, names: &mut Names, row: &mut Row) {
        let Some(number) = pop(&mut self.asked, event.sector) else { return };
        let issued_with_fua = names.flags_at(event.flags).is_some_and(Flags::has_fua);
        let Some(slot) = self.slots.pending(number) else { return };
        row.task = slot.row.task;
        let asked = names.flags_at(slot.row.flags).cloned().unwrap_or_default();
        row.flags = names.flags(&Flags::parse(&asked.rwbs));
        if issued_with_fua && !asked.has_preflush() {
            // The device does it at once, and no end of its own will come.
            slot.state = State::Dropped;
        } else {
            self.ending.entry(event.sector).or_default().push_back(number);
        }
    }

    fn give_back(&mut self, event: &Event) {
        let place = place(event);
        if let Some(number) = self.oldest(place) {
            self.counts.requeued += 1;
            self.requeued.insert(place, number);
        }
    }

    fn complete(&mut self, event: &Event, names: &mut Names) {
        if event.sectors == 0 && event.op == Op::Write && self.scope.unit == Unit::Requests {
            self.end(event);
            return;
        }
        let place = place(event);
        let Some(number) = self.oldest(place) else {
            self.counts.without_issue += 1;
            self.count(event.op, event.at_ns);
            return;
        };
        let Some(slot) = self.slots.pending(number) else { return };
        let whole = self.scope.unit == Unit::Bios || event.op == Op::Flush || event.sectors >= slot.remaining;
        if !whole && event.sectors > 0 {
            slot.remaining -= event.sectors;
            let rest = (event.sector.saturating_add(u64::from(event.sectors)), event.op);
            self.line_up(rest, number);
            return;
        }
        slot.state = State::Done;
        let issued = slot.row.issue_ns.saturating_add(self.scope.start_ns);
        slot.row.latency_ns = Some(event.at_ns.saturating_sub(issued));
        let error = names.flags_at(event.flags).map_or(0, |flags| flags.error);
        if error != 0 {
            let flags = names.flags_at(slot.row.flags).cloned().unwrap_or_default();
            slot.row.flags = names.flags(&Flags { error, ..flags });
        }
        self.count(event.op, event.at_ns);
    }

    /// The completion behind all that a flush was taken apart into.
    fn end(&mut self, event: &Event) {
        let number = match pop(&mut self.ending, event.sector) {
            Some(number) => Some(number),
            None if event.sector > 0 => return,
            None => {
                if self.is_between(event.at_ns) {
                    self.counts.completed.empty_flushes += 1;
                }
                self.empty.pop_front()
            }
        };
        let start_ns = self.scope.start_ns;
        if let Some(slot) = number.and_then(|number| self.slots.pending(number)) {
            slot.state = State::Done;
            let asked = slot.row.issue_ns.saturating_add(start_ns);
            slot.row.latency_ns = Some(event.at_ns.saturating_sub(asked));
        }
    }

    /// Counts what the kernel counts, as it does (`op_stat_group`).
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

    /// Whether a time lies between the two readings of the counters. What completes while one is made is noted.
    fn is_between(&mut self, at_ns: u64) -> bool {
        let edge =
            |(before, after): (u64, u64)| (before.saturating_sub(COUNTING_NS)..=after).contains(&at_ns);
        let at_edge = self.read_at.into_iter().flatten().any(edge);
        self.counts.completed.at_edges += u64::from(at_edge);
        let began = self.read_at[0].is_none_or(|(before, _)| at_ns >= before);
        began && self.read_at[1].is_none_or(|(before, _)| at_ns < before)
    }

    /// Puts a request behind those in flight of its place.
    fn line_up(&mut self, place: Place, number: u64) {
        if let Some(slot) = self.slots.pending(number) {
            slot.next = None;
        }
        let Some(line) = self.in_flight.get_mut(&place) else {
            self.in_flight.insert(place, Line { oldest: number, newest: number });
            return;
        };
        let newest = std::mem::replace(&mut line.newest, number);
        match self.slots.pending(newest) {
            Some(slot) => slot.next = Some(number),
            // Given up meanwhile.
            None => line.oldest = number,
        }
    }

    /// Takes the oldest request in flight of a place out of its line.
    fn oldest(&mut self, place: Place) -> Option<u64> {
        loop {
            let line = self.in_flight.get_mut(&place)?;
            let number = line.oldest;
            match self.slots.behind(number) {
                Some(next) => line.oldest = next,
                None => {
                    self.in_flight.remove(&place);
                }
            }
            if self.slots.pending(number).is_some() {
                return Some(number);
            }
        }
    }

    /// A request at the place of one that may miss its completion: that one did.
    fn give_up_at(&mut self, place: Place) {
        let Some((below, _)) = self.doubtful else { return };
        while self.in_flight.get(&place).is_some_and(|line| line.oldest < below) {
            if let Some(number) = self.oldest(place) {
                self.leave(number);
            }
        }
    }

    /// Gives up all that were in flight when events were lost.
    fn give_up(&mut self) {
        let Some((below, _)) = self.doubtful.take() else { return };
        for number in self.slots.pending_below(below) {
            self.leave(number);
        }
        let slots = &mut self.slots;
        self.in_flight.retain(|_, line| slots.pending(line.newest).is_some());
        for lines in [&mut self.asked, &mut self.ending] {
            for line in lines.values_mut() {
                line.retain(|number| slots.pending(*number).is_some());
            }
            lines.retain(|_, line| !line.is_empty());
        }
        self.empty.retain(|number| slots.pending(*number).is_some());
        self.requeued.retain(|_, number| slots.pending(*number).is_some());
    }

    /// A request whose completion was not seen.
    fn leave(&mut self, number: u64) {
        if let Some(slot) = self.slots.pending(number) {
            slot.state = State::Done;
            self.counts.without_completion += 1;
        }
    }
}

fn place(event: &Event) -> Place {
    match event.op {
        Op::Flush => (0, Op::Flush),
        op => (event.sector, op),
    }
}

fn pop(lines: &mut HashMap<u64, VecDeque<u64>>, sector: u64) -> Option<u64> {
    let line = lines.get_mut(&sector)?;
    let number = line.pop_front();
    if line.is_empty() {
        lines.remove(&sector);
    }
    number
}

/// Events that wait for their turn.
#[derive(Debug, Default)]
pub struct Merge {
    waiting: Vec<Event>,
}

impl Merge {
    /// Where the events of the next pages go.
    pub fn waiting(&mut self) -> &mut Vec<Event> {
        &mut self.waiting
    }

    /// Hands on, in order, all events before this time.
    pub fn before(&mut self, at_ns: u64, mut each: impl FnMut(&Event)) {
        // A stable sort of what are runs in order already merges them.
        self.waiting.sort_by_key(|event| event.at_ns);
        let count = self.waiting.partition_point(|event| event.at_ns < at_ns);
        self.waiting.drain(..count).for_each(|event| each(&event));
    }
}

/// Most requests that wait for an older one to complete. Beyond it the older one is handed on behind them.
const MAX_WAITING_REQUESTS: usize = 1 << 20;

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In flight, or in the queue again.
    Pending,
    /// To be handed on.
    Done,
    /// Left out.
    Dropped,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) row: Row,
    pub(super) state: State,
    /// Sectors that have not completed yet.
    pub(super) remaining: u32,
    /// The next one in flight of the same place and kind.
    pub(super) next: Option<u64>,
}

/// All of them, by the number that each got when it was issued.
#[derive(Debug)]
pub(super) struct Slots {
    queue: VecDeque<Slot>,
    /// Number of the first in the queue.
    first: u64,
    /// Those that were too old to wait for.
    late: HashMap<u64, Slot>,
    /// How long the others wait for one, in ns.
    patience_ns: u64,
}

impl Default for Slots {
    fn default() -> Self {
        Self { queue: VecDeque::new(), first: 0, late: HashMap::new(), patience_ns: u64::MAX }
    }
}

impl Slots {
    /// From now on the others wait for one no longer than this.
    pub(super) fn wait_at_most(&mut self, ns: u64) {
        self.patience_ns = ns;
    }

    /// The number that the next one gets.
    pub(super) fn next(&self) -> u64 {
        self.first + self.queue.len() as u64
    }

    /// Adds one, and gives its number.
    pub(super) fn push(&mut self, row: Row) -> u64 {
        let number = self.next();
        self.queue.push_back(Slot { row, state: State::Pending, remaining: row.sectors, next: None });
        number
    }

    /// One of them, while it is pending.
    pub(super) fn pending(&mut self, number: u64) -> Option<&mut Slot> {
        let slot = match number.checked_sub(self.first) {
            Some(at) => self.queue.get_mut(usize::try_from(at).ok()?),
            None => self.late.get_mut(&number),
        };
        slot.filter(|slot| slot.state == State::Pending)
    }

    /// The one behind it in the line of its place, whatever became of it.
    pub(super) fn behind(&self, number: u64) -> Option<u64> {
        match number.checked_sub(self.first) {
            Some(at) => self.queue.get(usize::try_from(at).ok()?)?.next,
            None => self.late.get(&number)?.next,
        }
    }

    fn is_too_old(&self, slot: &Slot, now_ns: u64) -> bool {
        now_ns.saturating_sub(slot.row.issue_ns) > self.patience_ns
    }

    /// Numbers of those that are pending, below a number.
    pub(super) fn pending_below(&self, number: u64) -> Vec<u64> {
        let queued = (self.first..).zip(&self.queue).take_while(|(at, _)| *at < number);
        let queued = queued.filter(|(_, slot)| slot.state == State::Pending).map(|(at, _)| at);
        self.late.keys().copied().filter(|at| *at < number).chain(queued).collect()
    }

    /// Hands on what is done, up to the first that is pending and was issued not too long before this; and every late one that is done.
    pub(super) fn release(&mut self, now_ns: u64, each: &mut dyn FnMut(&Row)) {
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
        if !self.late.is_empty() {
            let done = |slot: &Slot| slot.state == State::Done;
            self.late.values().filter(|slot| done(slot)).for_each(|slot| each(&slot.row));
            self.late.retain(|_, slot| slot.state == State::Pending);
        }
    }
}

#[test]
fn events_come_in_order_and_no_sooner_than_they_are_sure() {
    use crate::trace::Step;
    use model::captured::Op;
    let event = |at_ns| Event {
        at_ns,
        step: Step::Issued,
        op: Op::Read,
        sector: 0,
        sectors: 8,
        flags: 0,
        task: 0,
        device: 0,
    };
    let mut merge = Merge::default();
    merge.waiting().extend([1, 5, 9, 2, 3, 12].map(event));
    let mut seen = Vec::new();
    merge.before(6, |event| seen.push(event.at_ns));
    assert_eq!(seen, [1, 2, 3, 5]);
    merge.waiting().extend([7, 13].map(event));
    merge.before(u64::MAX, |event| seen.push(event.at_ns));
    assert_eq!(seen, [1, 2, 3, 5, 7, 9, 12, 13]);
}

#[test]
fn rows_leave_in_the_order_of_their_issue_and_one_that_never_ends_holds_nobody_up_for_ever() {
    let row = |issue_ns| Row { issue_ns, ..Row::default() };
    let mut slots = Slots::default();
    let [stuck, two, three] = [1, 2, 3].map(|at| slots.push(row(at)));
    let mut seen: Vec<u64> = Vec::new();
    let mut done = |slots: &mut Slots, number| {
        if let Some(slot) = slots.pending(number) {
            slot.state = State::Done;
        }
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
fn where_nobody_waits_for_long_one_that_takes_long_leaves_behind_the_others() {
    let mut slots = Slots::default();
    slots.wait_at_most(50);
    let [slow, quick] = [10, 20].map(|issue_ns| slots.push(Row { issue_ns, ..Row::default() }));
    let left = |slots: &mut Slots, done: Option<u64>, now_ns| {
        if let Some(slot) = done.and_then(|number| slots.pending(number)) {
            slot.state = State::Done;
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

#[cfg(test)]
mod tests;
