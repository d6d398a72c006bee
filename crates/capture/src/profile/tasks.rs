//! What each task did, and how long it thought between two requests.
//!
//! For: shares, and the gap from one completion to the next issue of tasks that do one at a time. Not for: who a kernel worker works for,
//! which nobody can tell.

use super::figures::{latency, share};
use crate::names::Names;
use crate::row::Row;
use model::captured::{Op, OtherTasks, TASKS, Task as TaskProfile};
use model::histogram::Histogram;

/// Requests from which a task's gaps are kept, and tasks for which they are.
const THINKING_FROM: u64 = 16;
const MOST_THINKING: usize = 256;
/// Share of overlapping requests from which a task does not do one after another.
const OVERLAPPING: f64 = 0.05;

/// One task.
#[derive(Debug, Default)]
struct Doing {
    requests: u64,
    reads: (u64, u64),
    writes: (u64, u64),
    timed: u64,
    overlapping: u64,
    last_end_ns: u64,
    thinking: Option<Box<Histogram>>,
}

/// All of them, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    doing: Vec<Doing>,
    thinking: usize,
}

impl Tasks {
    pub(super) fn add(&mut self, op: Op, row: &Row) {
        let at = row.task as usize;
        if self.doing.len() <= at {
            self.doing.resize_with(at + 1, Doing::default);
        }
        let task = &mut self.doing[at];
        task.requests += 1;
        match op {
            Op::Read => add(&mut task.reads, row.bytes()),
            Op::Write | Op::Zeroes => add(&mut task.writes, row.bytes()),
            _ => {}
        }
        let Some(latency_ns) = row.latency_ns else { return };
        if task.timed > 0 {
            match row.issue_ns.checked_sub(task.last_end_ns) {
                None => task.overlapping += 1,
                Some(gap) => {
                    if task.thinking.is_none()
                        && task.requests >= THINKING_FROM
                        && self.thinking < MOST_THINKING
                    {
                        self.thinking += 1;
                        task.thinking = Some(Box::default());
                    }
                    if let Some(thinking) = &mut task.thinking {
                        thinking.record(gap);
                    }
                }
            }
        }
        task.timed += 1;
        task.last_end_ns = task.last_end_ns.max(row.issue_ns.saturating_add(latency_ns));
    }

    /// Writes of a task.
    pub(super) fn writes(&self, task: u32) -> u64 {
        self.doing.get(task as usize).map_or(0, |task| task.writes.0)
    }

    pub(super) fn finish(&self, requests: u64, names: &Names) -> (Vec<TaskProfile>, OtherTasks) {
        let mut order: Vec<usize> = (0..self.doing.len()).filter(|at| self.doing[*at].requests > 0).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(self.doing[*at].requests), *at));
        let rest = order.get(TASKS..).unwrap_or_default();
        let others = OtherTasks {
            tasks: rest.len() as u64,
            requests: rest.iter().map(|at| self.doing[*at].requests).sum(),
        };
        order.truncate(TASKS);
        (order.into_iter().map(|at| self.doing[at].to_task(at as u32, requests, names)).collect(), others)
    }
}

fn add(sums: &mut (u64, u64), bytes: u64) {
    sums.0 += 1;
    sums.1 = sums.1.saturating_add(bytes);
}

impl Doing {
    fn to_task(&self, number: u32, requests: u64, names: &Names) -> TaskProfile {
        let task = names.task_at(number).cloned().unwrap_or_default();
        let overlapping = (self.timed > 1).then(|| share(self.overlapping, self.timed - 1));
        let one_by_one = overlapping.is_some_and(|share| share < OVERLAPPING);
        let thinking = self.thinking.as_deref().filter(|_| one_by_one && !task.is_worker());
        TaskProfile {
            name: task.name,
            tid: task.tid,
            pid: task.pid,
            kernel: task.kernel,
            requests: self.requests,
            share: share(self.requests, requests),
            reads: self.reads.0,
            read_bytes: self.reads.1,
            writes: self.writes.0,
            write_bytes: self.writes.1,
            overlapping,
            think_ns: thinking.and_then(latency),
        }
    }
}
