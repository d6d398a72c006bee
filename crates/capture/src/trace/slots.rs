//! Requests under way, in the order of their issue.
//!
//! For: handing rows on in that order, in bounded memory. Not for: telling which completion belongs to which.

use crate::row::Row;
use std::collections::{HashMap, VecDeque};

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
