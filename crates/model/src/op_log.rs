//! Logs of operations: when each of a measured window completed and how long it took, or what intervals of it came to.
//!
//! For: what workers hand over beside the figures where a log is asked for, and its files are made from. Not for: figures, which have
//! every operation with or without a log ([`crate::histogram`]); nor what logs look like (crate `report`).

use crate::job::Kind;

/// Memory of all logs of a measurement: what is longer is no longer read by people or their tools.
pub const MAX_BYTES: usize = 1 << 30;

/// An operation that was counted in a measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// When its completion was seen, in ns since the phase began.
    pub end_ns: u64,
    /// From its submission to that, in ns; in an open loop from the time at which it was due.
    pub latency_ns: u64,
    /// The part of it behind the submission, in ns.
    pub service_ns: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Index of its target among those of the worker.
    pub file: u16,
    /// What it did.
    pub kind: Kind,
    /// Number of the share of its stream's `op_priorities` that it is of, from 1; 0 for none.
    pub share: u8,
}

/// What the operations of one kind came to in an interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it was over, in ns since the phase began.
    pub end_ns: u64,
    /// What they did.
    pub kind: Kind,
    /// How many completed.
    pub operations: u64,
    /// What they moved.
    pub bytes: u64,
    /// The sum of their latencies in ns.
    pub latency_ns: u64,
    /// The largest of them in ns.
    pub max_ns: u64,
}

/// The log of a worker in one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All operations, in the order in which their completions were seen.
    Each(Vec<Operation>),
    /// What they came to, interval by interval.
    Intervals(Intervals),
}

/// Intervals of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    /// Where the first one begins, in ns since the phase began.
    pub from_ns: u64,
    /// Length of each in ns.
    pub length_ns: u64,
    /// Those in which anything completed, in their order.
    pub all: Vec<Interval>,
    /// When the last operation completed, in ns since the phase began.
    pub last_ns: u64,
}

/// Who did what a log tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLog {
    /// Number of the run, attempts counted, from 1.
    pub run: usize,
    /// Index of the job.
    pub job: usize,
    /// Index of its phase.
    pub phase: usize,
    /// Index of the stream in the phase.
    pub stream: usize,
    /// Number of the worker over all phases of the job, from 1.
    pub number: u32,
    /// When the phase began, in ms since 1970.
    pub began_unix_ms: u64,
    /// What it did.
    pub rows: Rows,
}

impl Rows {
    /// An empty log, of intervals that count from a time; of each operation by itself where they have no length.
    pub fn new(from_ns: u64, length_ns: u64) -> Self {
        let intervals = Intervals { from_ns, length_ns, ..Intervals::default() };
        if length_ns == 0 { Self::Each(Vec::new()) } else { Self::Intervals(intervals) }
    }

    /// Takes operations over that come behind those before. Gives the bytes of memory that it grew by.
    pub fn take(&mut self, operations: &[Operation]) -> usize {
        match self {
            Self::Each(all) => {
                all.extend_from_slice(operations);
                size_of_val(operations)
            }
            Self::Intervals(intervals) => {
                let before = intervals.all.len();
                for operation in operations {
                    intervals.add(operation);
                }
                (intervals.all.len() - before) * size_of::<Interval>()
            }
        }
    }

    /// The log as intervals of such a length from such a time on, both in ns; what are intervals already stays as it is.
    pub fn intervals(&self, from_ns: u64, length_ns: u64) -> Intervals {
        match self {
            Self::Each(operations) => {
                let mut intervals = Intervals { from_ns, length_ns, ..Intervals::default() };
                for operation in operations {
                    intervals.add(operation);
                }
                intervals
            }
            Self::Intervals(intervals) => intervals.clone(),
        }
    }
}

impl Intervals {
    /// Adds an operation to the interval that it ended in: one of the last, since they come in their order.
    fn add(&mut self, operation: &Operation) {
        let Operation { kind, latency_ns, length, .. } = *operation;
        let each = self.length_ns.max(1);
        let number = operation.end_ns.saturating_sub(self.from_ns) / each + 1;
        let end_ns = self.from_ns.saturating_add(number.saturating_mul(each));
        let first = self.all.iter().rposition(|i| i.end_ns < end_ns).map_or(0, |at| at + 1);
        let found = self.all[first..].iter().position(|i| i.kind == kind);
        let at = found.map_or(self.all.len(), |at| first + at);
        if at == self.all.len() {
            self.all.push(Interval { end_ns, kind, operations: 0, bytes: 0, latency_ns: 0, max_ns: 0 });
        }
        let interval = &mut self.all[at];
        interval.operations += 1;
        interval.bytes += u64::from(length);
        interval.latency_ns = interval.latency_ns.saturating_add(latency_ns);
        interval.max_ns = interval.max_ns.max(latency_ns);
        self.last_ns = operation.end_ns;
    }
}

#[cfg(test)]
fn operation(end_ns: u64, latency_ns: u64, kind: Kind) -> Operation {
    Operation { end_ns, latency_ns, service_ns: latency_ns, offset: 0, length: 512, file: 0, kind, share: 0 }
}

#[test]
fn intervals_lose_nothing_and_tell_kinds_apart() {
    let all: Vec<Operation> =
        (0..100).map(|i| operation(i * 7, i, if i % 3 == 0 { Kind::Write } else { Kind::Read })).collect();
    let mut taken = Rows::new(0, 50);
    let grown: usize = all.chunks(9).map(|some| taken.take(some)).sum();
    let mut each = Rows::new(0, 0);
    each.take(&all);
    assert_eq!(each.intervals(0, 50), taken.intervals(0, 1));
    let intervals = taken.intervals(0, 1).all;
    assert_eq!(grown, size_of_val(&intervals[..]));
    assert_eq!(intervals.iter().map(|s| s.operations).sum::<u64>(), 100);
    assert_eq!(intervals.iter().map(|s| s.latency_ns).sum::<u64>(), 4950);
    assert!(intervals.iter().all(|s| s.end_ns % 50 == 0 && s.max_ns < s.end_ns / 7 + 1));
    assert!(intervals.is_sorted_by_key(|s| s.end_ns));
    assert_eq!(intervals.iter().filter(|s| s.end_ns == 100).count(), 2);
}

#[test]
fn the_end_of_time_is_an_interval() {
    let mut rows = Rows::new(1, 3);
    rows.take(&[operation(u64::MAX, u64::MAX, Kind::Read), operation(u64::MAX, 7, Kind::Read)]);
    let intervals = rows.intervals(0, 0).all;
    assert_eq!((intervals.len(), intervals[0].operations, intervals[0].latency_ns), (1, 2, u64::MAX));
}
