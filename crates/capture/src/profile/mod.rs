//! The profile of a load: what its requests were like.
//!
//! For: figures out of rows in the order of their issue, in memory that does not grow with their number. Not for: laying them out
//! (crate `report`).

pub(crate) mod offsets;
pub(crate) mod timing;

use crate::row::{Flags, Names, Row, RowKind, Task};
use model::captured::{
    Flushes, Latency, Op, Operation, Origin, OtherTasks, Owner, Profile, Restriction, Share, Sizes, TASKS,
    Task as TaskProfile, Unit,
};
use model::histogram::Histogram;
use offsets::{Following, Touched};
use std::collections::{BTreeMap, HashMap};
use timing::{Arriving, Going, InFlight};

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
        let worker = names.task_at(row.task).is_some_and(crate::row::Task::is_worker);
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

/// A restriction with what is known already of each task.
#[derive(Debug)]
struct Within {
    restriction: Restriction,
    tasks: Vec<bool>,
}

/// The rows that a restriction means, for whoever lists them.
#[derive(Debug)]
pub struct Selection(Within);

impl Selection {
    /// By what was said.
    pub fn new(restriction: &Restriction) -> Self {
        Self(Within::new(restriction))
    }

    /// Whether a row is meant.
    pub fn has(&mut self, row: &Row, names: &Names) -> bool {
        self.0.has(row, names)
    }
}

impl Within {
    fn new(restriction: &Restriction) -> Self {
        Self { restriction: restriction.clone(), tasks: Vec::new() }
    }

    fn has(&mut self, row: &Row, names: &Names) -> bool {
        let Restriction { from_ns, to_ns, task } = &self.restriction;
        if from_ns.is_some_and(|from| row.issue_ns < from) || to_ns.is_some_and(|to| row.issue_ns >= to) {
            return false;
        }
        let Some(word) = task else { return true };
        // Tasks are numbered as they come, so what is known of the first ones stays.
        let new = names.all_tasks().get(self.tasks.len()..).unwrap_or_default();
        self.tasks.extend(new.iter().map(|task: &Task| task.is(word)));
        self.tasks.get(row.task as usize).copied().unwrap_or(false)
    }

    /// How much of so long a capture it is.
    fn duration_ns(&self, captured_ns: u64) -> u64 {
        let to = self.restriction.to_ns.map_or(captured_ns, |to| to.min(captured_ns));
        to.saturating_sub(self.restriction.from_ns.unwrap_or(0))
    }
}

/// Percentiles that are told, with their names.
const LATENCY_PERCENTILES: [(&str, f64); 3] = [("50", 0.5), ("99", 0.99), ("99.9", 0.999)];

/// What was recorded; `None` where nothing was.
fn latency(of: &Histogram) -> Option<Latency> {
    let percentiles = LATENCY_PERCENTILES
        .iter()
        .map(|(name, q)| ((*name).to_owned(), of.supported_quantile_ns(*q)))
        .collect();
    Some(Latency {
        count: of.count(),
        min: of.min_ns()?,
        mean: of.mean_ns()?,
        percentiles,
        max: of.max_ns()?,
    })
}

/// A part of a whole; 0 of nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Requests of one kind.
#[derive(Debug)]
struct Of {
    requests: u64,
    bytes: u64,
    fua: u64,
    read_ahead: u64,
    metadata: u64,
    synchronous: u64,
    sizes: Counted,
    following: Following,
    latency: Histogram,
    queued: Histogram,
}

/// Of all kinds that there are.
#[derive(Debug, Default)]
struct Operations {
    of: BTreeMap<Op, Box<Of>>,
}

impl Operations {
    fn add(&mut self, op: Op, row: &Row, flags: &Flags) {
        let of = self.of.entry(op).or_insert_with(|| Box::new(Of::new()));
        of.requests += 1;
        of.bytes = of.bytes.saturating_add(row.bytes());
        for &letter in flags.rwbs.as_bytes().get(1..).unwrap_or_default() {
            match letter {
                b'A' => of.read_ahead += 1,
                b'M' => of.metadata += 1,
                b'S' => of.synchronous += 1,
                _ => {}
            }
        }
        of.fua += u64::from(op == Op::Write && flags.has_fua());
        of.sizes.add(row.sectors);
        if let Some(ns) = row.latency_ns {
            of.latency.record(ns);
        }
        if let Some(ns) = row.queued_ns {
            of.queued.record(ns);
        }
    }

    /// Adds a read or write, in the order of issue, to what tells which follow each other; other operations are left out.
    fn follow(&mut self, op: Op, row: &Row) {
        if let Some(of) = self.of.get_mut(&op).filter(|_| matches!(op, Op::Read | Op::Write)) {
            of.following.add(row);
        }
    }

    fn finish(self, requests: u64, duration_ns: u64) -> Vec<Operation> {
        let seconds = duration_ns as f64 / 1e9;
        let per_s = |figure: f64| if seconds > 0.0 { figure / seconds } else { 0.0 };
        let told = |(op, of): (Op, Box<Of>)| Operation {
            op,
            requests: of.requests,
            share: share(of.requests, requests),
            bytes: of.bytes,
            iops: per_s(of.requests as f64),
            mb_per_s: per_s(of.bytes as f64 / 1e6),
            fua: of.fua,
            read_ahead: of.read_ahead,
            metadata: of.metadata,
            synchronous: of.synchronous,
            sizes: of.sizes.finish(),
            sequence: of.following.finish(),
            latency_ns: latency(&of.latency),
            queued_ns: latency(&of.queued),
        };
        self.of.into_iter().map(told).collect()
    }
}

impl Of {
    fn new() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            fua: 0,
            read_ahead: 0,
            metadata: 0,
            synchronous: 0,
            sizes: Counted::default(),
            following: Following::default(),
            latency: Histogram::new(),
            queued: Histogram::new(),
        }
    }
}

/// Sizes that are told apart: all that a kernel makes. What comes beyond counts as the largest below it.
const MAX_DISTINCT_SIZES: usize = 1 << 16;
/// Most frequent sizes that are told.
const FREQUENT: usize = 6;
/// The least share at which a size is told as frequent.
const LEAST_SHARE: f64 = 0.005;
const SIZE_PERCENTILES: [(&str, f64); 4] = [("10", 0.1), ("50", 0.5), ("90", 0.9), ("99", 0.99)];

/// How often each size occurred, in sectors.
#[derive(Debug, Default)]
struct Counted {
    counts: BTreeMap<u32, u64>,
    last: (u32, u64),
}

impl Counted {
    fn add(&mut self, sectors: u32) {
        // Mostly the same again.
        if sectors == self.last.0 {
            self.last.1 += 1;
            return;
        }
        self.keep();
        self.last = (sectors, 1);
    }

    fn keep(&mut self) {
        let (sectors, count) = std::mem::take(&mut self.last);
        if count == 0 {
            return;
        }
        let known = self.counts.len() < MAX_DISTINCT_SIZES || self.counts.contains_key(&sectors);
        let below = || self.counts.range(..sectors).next_back().map_or(sectors, |(size, _)| *size);
        let sectors = if known { sectors } else { below() };
        *self.counts.entry(sectors).or_default() += count;
    }

    /// `None` where nothing has a size.
    fn finish(mut self) -> Option<Sizes> {
        self.keep();
        let all: u64 = self.counts.values().sum();
        let (min, max) = (*self.counts.keys().next()?, *self.counts.keys().next_back()?);
        if max == 0 {
            return None;
        }
        let bytes = |sectors: u32| u64::from(sectors) * crate::SECTOR;
        let sum: f64 = self.counts.iter().map(|(size, count)| bytes(*size) as f64 * *count as f64).sum();
        let quantile = |q: f64| {
            let rank = (q * all as f64).ceil().max(1.0) as u64;
            let mut seen = 0;
            let mut found = self.counts.iter().find(|(_, count)| {
                seen += **count;
                seen >= rank
            });
            found.take().map_or(0, |(size, _)| bytes(*size))
        };
        let percentiles =
            SIZE_PERCENTILES.iter().map(|(name, q)| ((*name).to_owned(), quantile(*q))).collect();
        let mut frequent: Vec<Share> = self
            .counts
            .iter()
            .map(|(size, count)| Share { bytes: bytes(*size), share: share(*count, all) })
            .collect();
        frequent.sort_by(|a, b| b.share.total_cmp(&a.share));
        frequent.retain(|size| size.share >= LEAST_SHARE);
        frequent.truncate(FREQUENT);
        Some(Sizes { mean: sum / all as f64, min: bytes(min), percentiles, max: bytes(max), frequent })
    }
}

/// Most owners that are told.
const OWNERS: usize = 5;

/// Flushes under way.
#[derive(Debug)]
struct Flushing {
    at_device: u64,
    empty: u64,
    with_data: u64,
    asked: Histogram,
    by: HashMap<u32, u64>,
}

impl Default for Flushing {
    fn default() -> Self {
        Self { at_device: 0, empty: 0, with_data: 0, asked: Histogram::new(), by: HashMap::new() }
    }
}

impl Flushing {
    fn at_device(&mut self) {
        self.at_device += 1;
    }

    fn asked(&mut self, row: &Row, flags: &Flags) {
        if row.sectors == 0 {
            self.empty += 1;
        } else if flags.has_preflush() || flags.has_fua() {
            self.with_data += 1;
        }
        if let Some(ns) = row.latency_ns {
            self.asked.record(ns);
        }
        *self.by.entry(row.task).or_default() += 1;
    }

    fn finish(self, names: &Names, writes: &dyn Fn(u32) -> u64) -> Flushes {
        let mut owners: Vec<(u32, u64)> = self.by.into_iter().collect();
        owners.sort_by_key(|(task, asked)| (std::cmp::Reverse(*asked), *task));
        owners.truncate(OWNERS);
        let owner = |(task, asked): (u32, u64)| {
            let of = names.task_at(task).cloned().unwrap_or_default();
            Owner { name: of.name, tid: of.tid, asked, writes_each: writes(task) as f64 / asked as f64 }
        };
        Flushes {
            at_device: self.at_device,
            asked: self.empty,
            with_data: self.with_data,
            asked_ns: latency(&self.asked),
            owners: owners.into_iter().map(owner).collect(),
        }
    }
}

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
struct Tasks {
    doing: Vec<Doing>,
    thinking: usize,
}

impl Tasks {
    fn add(&mut self, op: Op, row: &Row) {
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
    fn writes(&self, task: u32) -> u64 {
        self.doing.get(task as usize).map_or(0, |task| task.writes.0)
    }

    fn finish(&self, requests: u64, names: &Names) -> (Vec<TaskProfile>, OtherTasks) {
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

#[cfg(test)]
mod tests;
