//! Events of all CPUs in one order.
//!
//! For: handing on what is surely complete up to a time. Not for: reading buffers.
//!
//! Each CPU has a buffer of its own, whose records are in order. Once all buffers were read, whatever is older than the time at which
//! the reading before that began is there: a record that was being written then has been finished since.

use super::event::Event;

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

#[test]
fn events_come_in_order_and_no_sooner_than_they_are_sure() {
    use super::event::Step;
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
