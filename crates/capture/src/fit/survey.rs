//! A first pass over a capture: which tasks become streams of their own, and where and when each is active.
//!
//! For: what must be known before figures are gathered. Not for: these figures ([`super::gather`]).

use crate::names::Names;
use crate::replay::operations::{Operation, Operations};
use crate::row::Row;
use model::captured::Origin;
use model::job::Changes;
use model::job::Kind;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Shares of all operations, of all bytes and of all syncs from which a task has a stream of its own.
const OWN_OPERATIONS: f64 = 0.01;
const OWN_BYTES: f64 = 0.02;
const OWN_SYNCS: f64 = 0.05;
/// Most parts that are told apart: each may become several streams, which are threads.
const MOST_PARTS: usize = 16;
/// Tasks of one name from which on they are one part: the workers of one program.
const MANY_TASKS: usize = 9;
/// Largest operation that a job has, in sectors: 1 GiB. Larger ones, which are discards, count as this.
pub(super) const MOST_SECTORS: u32 = 1 << 21;
/// Name of the part of all tasks that have no part of their own.
const OTHERS: &str = "other tasks";

/// What a part or a task did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observations {
    /// Reads, writes and trims.
    pub(super) data: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    pub(super) syncs: u64,
    pub(super) writes: u64,
    pub(super) stable: u64,
    pub(super) first_ns: Option<u64>,
    pub(super) last_ns: u64,
    /// First sector, and behind the last.
    pub(super) span: Option<(u64, u64)>,
    /// All places and sizes in sectors, bit by bit.
    pub(super) bits: u64,
}

/// Tasks that are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) tasks: u32,
    pub(super) seen: Observations,
}

/// A first pass under way.
#[derive(Debug)]
pub struct Survey {
    operations: Operations,
    tasks: Vec<Observations>,
    unfinished: u64,
    large: u64,
}

/// What it came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Surveyed {
    pub(super) parts: Vec<Part>,
    /// Part of each task.
    pub(super) of_task: Vec<u16>,
    pub(super) all: Observations,
    /// Operations without a known completion.
    pub(super) unfinished: u64,
    /// Operations that are larger than any that a job has.
    pub(super) large: u64,
    /// Requests that no job has an operation for.
    pub(super) left_out: u64,
}

/// Why nothing can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Nothing {
    /// It holds no requests.
    #[error("it holds no request, so there is nothing to fit a job to")]
    Requests,
    /// It holds flushes and nothing else.
    #[error(
        "it holds {0} flushes and no request that moves data; a job makes writes stable, and there are none"
    )]
    Data(u64),
    /// All of it happened at one moment.
    #[error("all of its requests have the same time, so no rate can be told")]
    Time,
}

impl Survey {
    /// Of a capture with this header.
    pub fn new(origin: &Origin) -> Self {
        Self {
            operations: Operations::from_origin(origin, &Changes::default()),
            tasks: Vec::new(),
            unfinished: 0,
            large: 0,
        }
    }

    /// Takes rows of a block, whose names these are.
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
                *large += u64::from(operation.sectors > MOST_SECTORS);
            });
        }
    }

    pub(super) fn finish(self, names: &Names) -> Result<Surveyed, Nothing> {
        let mut all = Observations::default();
        self.tasks.iter().for_each(|seen| all.join(seen));
        if all.data == 0 {
            return Err(if all.syncs > 0 { Nothing::Data(all.syncs) } else { Nothing::Requests });
        }
        if all.last_ns <= all.first_ns.unwrap_or(0) {
            return Err(Nothing::Time);
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
        self.bytes = self.bytes.saturating_add(u64::from(sectors) * crate::SECTOR);
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
    /// Gives each task its part: those with most first, those of one name together where they are many, the rest together.
    fn divide(&mut self, tasks: &[Observations], names: &Names) {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (task, seen) in tasks.iter().enumerate().filter(|(_, seen)| seen.operations() > 0) {
            let _ = seen;
            let name = names.task_at(task as u32).map_or("", |task| stem(&task.name));
            groups.entry(name).or_default().push(task);
        }
        let mut drafts: Vec<(Part, Vec<usize>)> = Vec::new();
        for (name, members) in groups {
            if members.len() >= MANY_TASKS
                || names.task_at(members[0] as u32).is_some_and(crate::names::Task::is_worker)
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
        self.of_task = vec![0; tasks.len()];
        let mut others = Part { name: OTHERS.into(), ..Part::default() };
        for (part, members) in drafts {
            if self.parts.len() < MOST_PARTS && self.is_own(&part.seen) {
                let at = self.parts.len() as u16;
                for member in &members {
                    self.of_task[*member] = at;
                }
                self.parts.push(part);
            } else {
                for member in &members {
                    self.of_task[*member] = u16::MAX;
                }
                others.tasks += part.tasks;
                others.seen.join(&part.seen);
            }
        }
        if others.tasks > 0 {
            let at = self.parts.len() as u16;
            self.of_task.iter_mut().filter(|of| **of == u16::MAX).for_each(|of| *of = at);
            self.parts.push(others);
        }
    }

    /// Whether it is enough for a stream.
    fn is_own(&self, seen: &Observations) -> bool {
        let part = |of: u64, all: u64| if all == 0 { 0.0 } else { of as f64 / all as f64 };
        seen.data > 0
            && (part(seen.operations(), self.all.operations()) >= OWN_OPERATIONS
                || part(seen.bytes, self.all.bytes) >= OWN_BYTES
                || part(seen.syncs, self.all.syncs) >= OWN_SYNCS)
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

/// What tasks of one kind have in common: `kworker` of `kworker/u4:3+flush`, `iou-wrk` of `iou-wrk-4711`.
fn stem(name: &str) -> &str {
    let name = name.split_once('/').map_or(name, |(before, _)| before);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    bare.strip_suffix('-').filter(|bare| !bare.is_empty()).unwrap_or(name)
}

#[test]
fn names_of_workers_have_one_stem() {
    for (name, meant) in [
        ("kworker/u4:3+flush", "kworker"),
        ("iou-wrk-4711", "iou-wrk"),
        ("jbd2/loop0-8", "jbd2"),
        ("77", "77"),
        ("fio", "fio"),
    ] {
        assert_eq!(stem(name), meant);
    }
}
