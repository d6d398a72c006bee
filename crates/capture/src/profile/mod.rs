//! The profile of a load: what its requests were like.
//!
//! For: figures out of rows in the order of their issue, in memory that does not grow with their number. Not for: laying them out
//! (crate `report`).

pub(crate) mod arrivals;
mod course;
mod depth;
mod figures;
mod flushes;
mod footprint;
mod operations;
mod restriction;
pub(crate) mod sequence;
mod sizes;
mod tasks;

use crate::names::Names;
use crate::row::{Row, RowKind};
use self::arrivals::Arriving;
use self::course::Going;
use self::depth::InFlight;
use self::flushes::Flushing;
use self::footprint::Touched;
use model::captured::{Op, Origin, Profile, Restriction, Unit};
use self::operations::Operations;
use self::restriction::Within;
use self::tasks::Tasks;

pub use self::restriction::Selection;

/// A profile under way.
#[derive(Debug)]
pub struct Profiler {
    within: Within,
    has_bios: bool,
    requests: u64,
    failed: u64,
    without_completion: u64,
    late: u64,
    of_kernel_workers: u64,
    last_issue_ns: u64,
    last_end_ns: u64,
    operations: Operations,
    touched: Touched,
    arriving: Arriving,
    in_flight: InFlight,
    flushing: Flushing,
    going: Going,
    tasks: Tasks,
}

impl Profiler {
    /// Of a capture with this header, and of the requests that are asked for.
    pub fn new(origin: &Origin, restriction: &Restriction) -> Self {
        let bytes = origin.partition.as_ref().map(|part| part.sectors.saturating_mul(crate::SECTOR));
        let bytes = bytes.or_else(|| origin.device.as_ref().map(|device| device.bytes));
        Self {
            within: Within::new(restriction),
            has_bios: origin.unit == Unit::Bios,
            requests: 0,
            failed: 0,
            without_completion: 0,
            late: 0,
            of_kernel_workers: 0,
            last_issue_ns: restriction.from_ns.unwrap_or(0),
            last_end_ns: 0,
            operations: Operations::default(),
            touched: Touched::new(bytes.filter(|bytes| *bytes > 0)),
            arriving: Arriving::new(restriction.from_ns.unwrap_or(0)),
            in_flight: InFlight::default(),
            flushing: Flushing::default(),
            going: Going::new(restriction.from_ns.unwrap_or(0)),
            tasks: Tasks::default(),
        }
    }

    /// Adds rows of a block, whose names these are.
    pub fn add(&mut self, rows: &[Row], names: &Names) {
        for row in rows {
            self.add_one(row, names);
        }
    }

    fn add_one(&mut self, row: &Row, names: &Names) {
        if !self.within.has(row, names) {
            return;
        }
        let Some(flags) = names.flags_at(row.flags) else { return };
        if flags.kind == RowKind::Asked {
            self.flushing.asked(row, flags);
            return;
        }
        let op = flags.op(row.sectors);
        self.requests += 1;
        self.failed += u64::from(flags.error != 0);
        self.without_completion += u64::from(row.latency_ns.is_none());
        self.operations.add(op, row, flags);
        self.touched.add(op, row);
        self.going.add(op, row);
        let worker = names.task_at(row.task).is_some_and(crate::names::Task::is_worker);
        self.of_kernel_workers += u64::from(worker);
        self.last_end_ns = self.last_end_ns.max(row.issue_ns.saturating_add(row.latency_ns.unwrap_or(0)));
        if row.issue_ns < self.last_issue_ns {
            self.late += 1;
        } else {
            self.last_issue_ns = row.issue_ns;
            self.operations.follow(op, row);
            self.arriving.add(op, row.issue_ns);
            self.in_flight.add(row);
        }
        if op == Op::Flush {
            self.flushing.at_device();
            // A bio is its owner's.
            if self.has_bios {
                self.flushing.asked(row, flags);
            }
        } else {
            self.tasks.add(op, row);
        }
    }

    /// What all of it comes to. The time is that of the capture, or of the restriction; else up to the last completion.
    pub fn finish(self, captured_ns: Option<u64>, names: &Names) -> Profile {
        let duration_ns = self.within.duration_ns(captured_ns.unwrap_or(self.last_end_ns));
        let requests = self.requests;
        let (tasks, other_tasks) = self.tasks.finish(requests, names);
        let writes = |task| self.tasks.writes(task);
        Profile {
            requests,
            duration_ns,
            flushes: self.flushing.finish(names, &writes),
            operations: self.operations.finish(requests, duration_ns),
            footprint: self.touched.finish(),
            arrivals: self.arriving.finish(duration_ns),
            depth: self.in_flight.finish(duration_ns),
            course: self.going.finish(duration_ns),
            tasks,
            other_tasks,
            of_kernel_workers: self.of_kernel_workers,
            failed: self.failed,
            without_completion: self.without_completion,
            late: self.late,
        }
    }
}

#[cfg(test)]
mod tests;
