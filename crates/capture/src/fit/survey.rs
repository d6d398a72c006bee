//! The two passes over a capture before fitting.
//!
//! 1. [`Survey`] adds up what each task did. A task with enough operations, bytes or syncs becomes
//!    a part. Many tasks of one name become one part. All other tasks together become one part.
//! 2. [`Gathering`] collects the figures of each part: arrivals, sizes, offsets, runs and pacing.
//!    Some tasks alternate between few and many operations at a time. So it separates busy
//!    intervals with few operations from those with many.

use crate::fit::histograms::{Bins, SizeCounts};
use crate::fit::pacing::{Pacing, Side};
use crate::profile::offsets::SequenceCounter;
use crate::profile::timing::ArrivalCounter;
use crate::replay::{Operation, Operations, alignment_sectors};
use model::captured::Origin;
use model::job::{Changes, Kind};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use trace::row::{Names, Row};

/// A task, or all tasks of one name together, become a separate part if they move data and have at least this
/// share of all operations, [`OWN_BYTES`] of all bytes or [`OWN_SYNCS`] of all syncs.
const OWN_OPERATIONS: f64 = 0.01;
/// Minimum share of all bytes for a separate part.
const OWN_BYTES: f64 = 0.02;
/// Minimum share of all syncs for a separate part.
const OWN_SYNCS: f64 = 0.05;
/// Maximum number of parts. Each part may become several streams, which are threads.
const MAX_PARTS: usize = 16;
/// Minimum number of tasks with one name that become one part: they are the workers of one program.
const MANY_TASKS: usize = 9;
/// Maximum size of a job's operation in sectors: 1 GiB. Larger operations, which are discards, count as this
/// size.
pub(super) const MAX_OPERATION_SECTORS: u32 = 1 << 21;
/// Name of the part with all tasks that are in no other part.
pub(super) const OTHER_TASKS: &str = "other tasks";

/// Figures of the operations of a part or a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observations {
    /// Number of reads, writes and trims.
    pub(super) data: u64,
    /// Bytes of reads, writes and trims.
    pub(super) bytes: u64,
    pub(super) syncs: u64,
    pub(super) writes: u64,
    pub(super) stable: u64,
    pub(super) first_ns: Option<u64>,
    pub(super) last_ns: u64,
    /// First sector, and the sector after the last one; `None` without operations.
    pub(super) span: Option<(u64, u64)>,
    /// Bitwise OR of all offsets and sizes in sectors.
    pub(super) bits: u64,
}

/// Tasks that are fitted together.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) tasks: u32,
    pub(super) seen: Observations,
}

/// The first pass over a capture: adds up what each task did.
#[derive(Debug)]
pub struct Survey {
    operations: Operations,
    tasks: Vec<Observations>,
    unfinished: u64,
    large: u64,
}

/// The parts of the capture, as the first pass found them.
#[derive(Clone, Debug, Default)]
pub(super) struct Surveyed {
    pub(super) parts: Vec<Part>,
    /// Index of each task's part, by task index.
    pub(super) part_of_task: Vec<u16>,
    pub(super) all: Observations,
    /// Number of operations without a known completion.
    pub(super) unfinished: u64,
    /// Number of operations larger than [`MAX_OPERATION_SECTORS`].
    pub(super) large: u64,
    /// Number of requests that a job cannot express.
    pub(super) left_out: u64,
}

/// Why a job cannot be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotFit {
    /// The capture has no requests.
    #[error("the capture contains no requests, so there is nothing to fit")]
    Requests,
    /// The capture has only flushes.
    #[error("the capture contains only flushes ({0}), and a job needs reads or writes")]
    Data(u64),
    /// All requests have the same time.
    #[error("all requests have the same time, so their rate is unknown")]
    Time,
}

impl Survey {
    /// Starts the first pass over a capture with this header.
    pub fn new(origin: &Origin) -> Self {
        Self {
            operations: Operations::from_origin(origin, &Changes::default()),
            tasks: Vec::new(),
            unfinished: 0,
            large: 0,
        }
    }

    /// Adds the rows of a block.
    pub fn add(&mut self, rows: &[Row], names: &Names) {
        let Self { operations, tasks, unfinished, large } = self;
        for row in rows {
            operations.add(row, names, &mut |operation| {
                let task = operation.task as usize;
                if tasks.len() <= task {
                    tasks.resize(task + 1, Observations::default());
                }
                tasks[task].add(operation);
                *unfinished += u64::from(operation.done_ns.is_none());
                *large += u64::from(operation.sectors > MAX_OPERATION_SECTORS);
            });
        }
    }

    pub(super) fn finish(self, names: &Names) -> Result<Surveyed, CannotFit> {
        let mut all = Observations::default();
        self.tasks.iter().for_each(|seen| all.join(seen));
        if all.data == 0 {
            return Err(if all.syncs > 0 { CannotFit::Data(all.syncs) } else { CannotFit::Requests });
        }
        if all.last_ns <= all.first_ns.unwrap_or(0) {
            return Err(CannotFit::Time);
        }
        let mut surveyed = Surveyed {
            all,
            unfinished: self.unfinished,
            large: self.large,
            left_out: self.operations.left_out,
            ..Surveyed::default()
        };
        surveyed.divide(&self.tasks, names);
        Ok(surveyed)
    }
}

impl Observations {
    fn add(&mut self, operation: &Operation) {
        let Operation { issue_ns, done_ns, sector, sectors, kind, .. } = *operation;
        self.first_ns = Some(self.first_ns.map_or(issue_ns, |first| first.min(issue_ns)));
        self.last_ns = self.last_ns.max(done_ns.unwrap_or(issue_ns));
        if kind == Kind::Sync {
            self.syncs += 1;
            return;
        }
        self.data += 1;
        self.writes += u64::from(kind == Kind::Write);
        self.stable += u64::from(operation.is_stable);
        self.bytes = self.bytes.saturating_add(u64::from(sectors) * trace::SECTOR);
        self.bits |= sector | u64::from(sectors);
        let end = sector.saturating_add(u64::from(sectors));
        self.span = Some(self.span.map_or((sector, end), |(a, b)| (a.min(sector), b.max(end))));
    }

    fn join(&mut self, other: &Self) {
        self.data += other.data;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.syncs += other.syncs;
        self.writes += other.writes;
        self.stable += other.stable;
        self.first_ns = [self.first_ns, other.first_ns].into_iter().flatten().min();
        self.last_ns = self.last_ns.max(other.last_ns);
        let spans = [self.span, other.span].into_iter().flatten();
        self.span = spans.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
        self.bits |= other.bits;
    }

    fn operations(&self) -> u64 {
        self.data + self.syncs
    }
}

impl Surveyed {
    /// Assigns tasks to parts. Kernel workers become one part, and so do many tasks of one name.
    /// Every other task becomes a separate part. If a part has too few operations, bytes and syncs,
    /// or if there are already [`MAX_PARTS`], its tasks join one part for all such tasks.
    fn divide(&mut self, tasks: &[Observations], names: &Names) {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (task, _) in tasks.iter().enumerate().filter(|(_, seen)| seen.operations() > 0) {
            let name = names.task_at(task as u32).map_or("", |task| stem(&task.name));
            groups.entry(name).or_default().push(task);
        }
        let mut drafts: Vec<(Part, Vec<usize>)> = Vec::new();
        for (name, members) in groups {
            if members.len() >= MANY_TASKS
                || names.task_at(members[0] as u32).is_some_and(trace::row::Task::is_worker)
            {
                drafts.push((Part::from_tasks(name, &members, tasks), members));
                continue;
            }
            for member in members {
                let own = names.task_at(member as u32).map_or(0, |task| task.tid);
                let name = if own > 0 { format!("{name} {own}") } else { name.to_owned() };
                drafts.push((Part::from_tasks(&name, &[member], tasks), vec![member]));
            }
        }
        drafts.sort_by_key(|(part, members)| (Reverse(part.seen.operations()), members[0]));
        self.part_of_task = vec![0; tasks.len()];
        let mut others = Part { name: OTHER_TASKS.into(), ..Part::default() };
        for (part, members) in drafts {
            let is_own = self.parts.len() < MAX_PARTS && self.is_own(&part.seen);
            let at = if is_own { self.parts.len() as u16 } else { u16::MAX };
            for member in members {
                self.part_of_task[member] = at;
            }
            if is_own {
                self.parts.push(part);
            } else {
                others.tasks += part.tasks;
                others.seen.join(&part.seen);
            }
        }
        if others.tasks > 0 {
            let at = self.parts.len() as u16;
            self.part_of_task.iter_mut().filter(|part| **part == u16::MAX).for_each(|part| *part = at);
            self.parts.push(others);
        }
    }

    /// Returns whether tasks with these operations become a separate part.
    fn is_own(&self, seen: &Observations) -> bool {
        let share = |own: u64, all: u64| if all == 0 { 0.0 } else { own as f64 / all as f64 };
        seen.data > 0
            && (share(seen.operations(), self.all.operations()) >= OWN_OPERATIONS
                || share(seen.bytes, self.all.bytes) >= OWN_BYTES
                || share(seen.syncs, self.all.syncs) >= OWN_SYNCS)
    }
}

impl Part {
    fn from_tasks(name: &str, members: &[usize], tasks: &[Observations]) -> Self {
        let mut seen = Observations::default();
        for member in members {
            seen.join(&tasks[*member]);
        }
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        Self { name: name.trim().to_owned(), tasks: members.len() as u32, seen }
    }
}

/// Returns the common name of similar tasks: `kworker` for `kworker/u4:3+flush`, `iou-wrk` for
/// `iou-wrk-4711`. A name that begins with a slash is the path of a file in an iolog, and remains.
fn stem(name: &str) -> &str {
    let name = name.split_once('/').map_or(name, |(before, _)| if before.is_empty() { name } else { before });
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    bare.strip_suffix('-').filter(|bare| !bare.is_empty()).unwrap_or(name)
}

/// Kinds with offsets, in the order of their indices.
pub(super) const DATA_KINDS: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];
/// The operation at this position of a sequential run (from 1), and all later ones of the run, count as part
/// of a long run.
pub(super) const LONG_RUN: u64 = 8;
/// A busy interval with at least this many reads, writes and trims is a burst.
const MANY_OPERATIONS: u64 = 8;
/// Maximum number of operations of a busy interval that are kept. A longer interval is split.
const MAX_KEPT_OPERATIONS: usize = 1 << 13;
/// A task has two loads, single operations and bursts, if the mean burst is at least this multiple of the
/// mean that geometric burst sizes would have.
const BURST_FACTOR: f64 = 2.0;
/// Minimum share of the task's operations for each of these two loads.
const MIN_SIDE_SHARE: f64 = 0.1;

/// The second pass over a capture: collects the figures of each part.
#[derive(Debug)]
pub struct Gathering {
    operations: Operations,
    pub(super) surveyed: Surveyed,
    pub(super) parts: Vec<Gathered>,
}

/// The figures of a part: of the whole part, of its busy intervals with few operations, and of its busy intervals with many. Nothing is in
/// flight between two busy intervals.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) whole: LoadFigures,
    few: LoadFigures,
    many: LoadFigures,
    /// The side of busy intervals with few operations, and the side of busy intervals with many.
    pub(super) sides: [Side; 2],
    /// Whether the side with many operations was active last; `None` before the first busy interval.
    is_many: Option<bool>,
    /// When the last busy interval ended.
    ended_ns: u64,
    /// When the last busy interval with data began.
    began_ns: Option<u64>,
    /// The operations of the current busy interval, with their times.
    busy_interval: Vec<(Operation, u64)>,
    /// Number of data operations of the current busy interval.
    data: u64,
    /// End of the current busy interval so far.
    until_ns: u64,
}

/// Figures of operations.
#[derive(Debug, Default)]
pub(super) struct LoadFigures {
    /// Reads, writes and trims.
    pub(super) kinds: [KindFigures; DATA_KINDS.len()],
    pub(super) pacing: Pacing,
    pub(super) syncs: u64,
    /// Number of writes that are stable at completion.
    pub(super) stable: u64,
}

/// Figures of one direction.
#[derive(Debug, Default)]
pub(super) struct KindFigures {
    pub(super) arriving: ArrivalCounter,
    /// Bitwise OR of all offsets and sizes in sectors.
    pub(super) bits: u64,
    following: SequenceCounter,
    /// First the operations at random offsets and in short sequential runs, then the operations in
    /// long runs.
    pub(super) classes: [Class; 2],
}

/// Sizes and offsets of similar operations.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    pub(super) sizes: SizeCounts,
    pub(super) bins: Bins,
    /// Number of sequential runs that begin in this class. In the class of long runs, a run begins with
    /// operation [`LONG_RUN`].
    pub(super) begun: u64,
    /// Number of operations that continue another one.
    pub(super) continued: u64,
    /// Sum over all operations that continue another one: the distance to that operation, in operations.
    pub(super) back: u64,
    /// First sector, and the sector after the last one; `None` without operations.
    pub(super) span: Option<(u64, u64)>,
}

impl Gathering {
    /// Starts the second pass over the same capture, after the first one.
    ///
    /// # Errors
    ///
    /// Why a job cannot be fitted.
    pub fn new(origin: &Origin, survey: Survey, names: &Names) -> Result<Self, CannotFit> {
        let surveyed = survey.finish(names)?;
        let parts = surveyed.parts.iter().map(Gathered::from_part).collect();
        Ok(Self { operations: Operations::from_origin(origin, &Changes::default()), surveyed, parts })
    }

    /// Adds the rows of a block.
    pub fn add(&mut self, rows: &[Row], names: &Names) {
        let Self { operations, surveyed, parts } = self;
        let first_ns = surveyed.all.first_ns.unwrap_or(0);
        for row in rows {
            operations.add(row, names, &mut |operation| {
                let part = surveyed.part_of_task.get(operation.task as usize).copied().unwrap_or(0);
                if let Some(part) = parts.get_mut(usize::from(part)) {
                    part.add(operation, first_ns);
                }
            });
        }
    }
}

impl Gathered {
    fn from_part(part: &Part) -> Self {
        let load = || LoadFigures::from_part(part);
        Self { whole: load(), few: load(), many: load(), ..Self::default() }
    }

    fn add(&mut self, operation: &Operation, first_ns: u64) {
        let at_ns = operation.issue_ns.saturating_sub(first_ns);
        self.whole.add(operation, at_ns);
        if at_ns >= self.until_ns || self.busy_interval.len() >= MAX_KEPT_OPERATIONS {
            self.end_busy_interval();
        }
        let took_ns = operation.done_ns.map_or(0, |done| done.saturating_sub(operation.issue_ns));
        self.until_ns = self.until_ns.max(at_ns.saturating_add(took_ns));
        self.data += u64::from(operation.kind != Kind::Sync);
        self.busy_interval.push((*operation, at_ns));
    }

    pub(super) fn end_busy_interval(&mut self) {
        let Some((_, since_ns)) = self.busy_interval.first() else { return };
        let idle_ns = since_ns.saturating_sub(self.ended_ns);
        // Syncs without data belong to the preceding writes, so the side stays the same.
        let is_many = match std::mem::take(&mut self.data) {
            0 => self.is_many.unwrap_or(false),
            data => {
                let is_many = data >= MANY_OPERATIONS;
                if self.is_many.replace(is_many) != Some(is_many) {
                    self.sides[usize::from(!is_many)].end();
                    self.sides[usize::from(is_many)].turns += 1;
                }
                if let Some(before_ns) = self.began_ns.replace(*since_ns) {
                    self.sides[usize::from(is_many)].periods.record(since_ns.saturating_sub(before_ns));
                }
                is_many
            }
        };
        self.sides[usize::from(is_many)].add(&self.busy_interval, idle_ns, self.until_ns);
        let load = if is_many { &mut self.many } else { &mut self.few };
        self.busy_interval.drain(..).for_each(|(operation, at_ns)| load.add(&operation, at_ns));
        self.ended_ns = self.until_ns;
    }

    /// Returns whether a task alternates between few and many operations at a time: both sides have
    /// enough turns, and in the busy intervals with few operations the operations wait for each
    /// other.
    pub(super) fn alternates(&self) -> bool {
        let [few, many] = &self.sides;
        few.is_known_enough() && many.is_known_enough() && few.waits()
    }

    /// Returns all operations as one load, or as two loads if there is only one task and it does some operations one by
    /// one and others in bursts.
    pub(super) fn loads(&self, tasks: u32) -> Vec<(&LoadFigures, &'static str)> {
        let part = |load: &LoadFigures| load.data() as f64 / self.whole.data().max(1) as f64;
        let both = part(&self.few) >= MIN_SIDE_SHARE && part(&self.many) >= MIN_SIDE_SHARE;
        // The mean size of bursts of at least `MANY_OPERATIONS` if the sizes of all busy intervals
        // were geometric.
        let expected = self.whole.pacing.mean_burst_operations() + (MANY_OPERATIONS - 1) as f64;
        let is_apart = self.many.pacing.mean_burst_operations() >= BURST_FACTOR * expected;
        let is_filling = || self.sides[1].pacing.is_filling() && self.alternates();
        let is_in_bursts = self.many.pacing.is_at_once() || is_filling();
        if tasks == 1 && both && is_apart && is_in_bursts {
            return vec![(&self.few, " one by one"), (&self.many, " in bursts")];
        }
        vec![(&self.whole, "")]
    }
}

impl LoadFigures {
    fn from_part(part: &Part) -> Self {
        let (first, after_last) = part.seen.span.unwrap_or((0, 1));
        let bins = Bins::over(first, after_last, alignment_sectors(part.seen.bits));
        let class = || Class { bins: bins.clone(), ..Class::default() };
        let kind = |_| KindFigures { classes: [class(), class()], ..KindFigures::default() };
        Self { kinds: DATA_KINDS.map(kind), ..Self::default() }
    }

    /// Returns the number of reads, writes and trims.
    pub(super) fn data(&self) -> u64 {
        self.kinds.iter().map(KindFigures::count).sum()
    }

    /// Returns the bytes of all reads, writes and trims.
    pub(super) fn bytes(&self) -> f64 {
        self.kinds.iter().flat_map(|kind| &kind.classes).map(|class| class.sizes.bytes()).sum()
    }

    fn add(&mut self, operation: &Operation, at_ns: u64) {
        self.pacing.add(operation, at_ns);
        self.stable += u64::from(operation.is_stable);
        let Some(figures) = self.kinds.get_mut(operation.kind as usize) else {
            self.syncs += 1;
            return;
        };
        figures.arriving.add(at_ns);
        figures.bits |= operation.sector | u64::from(operation.sectors.min(MAX_OPERATION_SECTORS));
        let sectors = operation.sectors.min(MAX_OPERATION_SECTORS);
        let row = Row { sector: operation.sector, sectors, ..Row::default() };
        let position = figures.following.add(&row);
        let is_long = position.number >= LONG_RUN;
        let class = &mut figures.classes[usize::from(is_long)];
        class.sizes.add(sectors);
        class.bins.add(operation.sector);
        let (begin, end) = (operation.sector, row.end());
        class.span = Some(class.span.map_or((begin, end), |(a, b)| (a.min(begin), b.max(end))));
        class.begun += u64::from(position.number == if is_long { LONG_RUN } else { 1 });
        if position.requests_ago > 0 {
            class.continued += 1;
            class.back += position.requests_ago;
        }
    }
}

impl Class {
    /// Returns the number of operations.
    pub(super) fn operations(&self) -> u64 {
        self.sizes.operations()
    }

    /// Adds the figures of another class.
    pub(super) fn join(&mut self, other: &Self) {
        self.sizes.join(&other.sizes);
        self.bins.join(&other.bins);
        self.begun += other.begun;
        self.continued += other.continued;
        self.back += other.back;
        let spans = [self.span, other.span].into_iter().flatten();
        self.span = spans.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
    }

    /// Returns how many sequential runs are interleaved: the mean distance, in operations, from one
    /// operation of a sequential run to its next.
    pub(super) fn interleaved_runs(&self) -> u32 {
        let mean = if self.continued == 0 { 1.0 } else { self.back as f64 / self.continued as f64 };
        mean.round().clamp(1.0, 64.0) as u32
    }

    /// Returns the mean number of operations of a sequential run.
    pub(super) fn mean_run_operations(&self) -> f64 {
        let operations = self.operations() as f64;
        operations / (operations - self.continued as f64).max(self.begun as f64).max(1.0)
    }
}

#[test]
fn names_of_workers_have_one_stem() {
    for (name, meant) in [
        ("kworker/u4:3+flush", "kworker"),
        ("iou-wrk-4711", "iou-wrk"),
        ("jbd2/loop0-8", "jbd2"),
        ("77", "77"),
        ("/mnt/db-1/data", "/mnt/db-1/data"),
        ("fio", "fio"),
    ] {
        assert_eq!(stem(name), meant);
    }
}
