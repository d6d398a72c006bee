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

use super::event::{Event, Step};
use super::slots::{Slots, State};
use crate::names::Names;
use crate::row::{Flags, Row, RowKind};
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

#[cfg(test)]
mod tests;
