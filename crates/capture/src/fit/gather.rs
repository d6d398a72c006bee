//! A second pass over a capture: what the operations of each part are like.
//!
//! For: figures of parts, in memory that does not grow with their number. Not for: what a job makes of them ([`super::stream`]).

use super::pace::Pacing;
use super::side::Side;
use super::sizes::Counted;
use super::survey::{MOST_SECTORS, Nothing, Part, Survey, Surveyed};
use super::zones::Bins;
use crate::names::Names;
use crate::profile::arrivals::Coming;
use crate::profile::sequence::Following;
use crate::replay::operations::{Operation, Operations};
use crate::row::Row;
use model::captured::Origin;
use model::job::Changes;
use model::job::Kind;

/// Kinds that have places, in the order of their indices.
pub(super) const DATA: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];
/// Operations of a run from which on it is a long one.
pub(super) const LONG: u64 = 8;
/// Operations of a stretch from which on they are many, and most that are kept until it ends.
const MANY_OPERATIONS: u64 = 8;
const MOST_IN_A_STRETCH: usize = 1 << 13;
/// How many times as many as numbers of one distribution these are, from which on they are of another.
const LARGER: f64 = 2.0;
/// Share of the operations of a task that few and many at once each have at least where it does two things.
const APART: f64 = 0.1;
/// Bits of the largest alignment in sectors that is told: 1 MiB.
const MOST_ALIGNED: u32 = 11;

/// A second pass under way.
#[derive(Debug)]
pub struct Gathering {
    operations: Operations,
    pub(super) surveyed: Surveyed,
    pub(super) parts: Vec<Gathered>,
}

/// What a part is like: all of it, and what is in stretches with few operations and with many, from nothing in flight to nothing again.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) whole: Load,
    few: Load,
    many: Load,
    /// Of the few and of the many, and which of them was last.
    pub(super) sides: [Side; 2],
    is_many: Option<bool>,
    /// When the stretch before ended, and when the one with data before began.
    ended_ns: u64,
    began_ns: Option<u64>,
    /// The present stretch: its operations with their times, data among them, and until when it goes on.
    stretch: Vec<(Operation, u64)>,
    data: u64,
    until_ns: u64,
}

/// What operations are like.
#[derive(Debug)]
pub(super) struct Load {
    /// Reads, writes and trims.
    pub(super) kinds: [OfKind; DATA.len()],
    pub(super) pacing: Pacing,
    pub(super) syncs: u64,
    /// Writes that are stable when they complete.
    pub(super) stable: u64,
}

/// Operations of one direction.
#[derive(Debug, Default)]
pub(super) struct OfKind {
    pub(super) arriving: Coming,
    /// All places and sizes in sectors, bit by bit.
    pub(super) bits: u64,
    following: Following,
    /// Those at random offsets and in short runs, and those in long runs.
    pub(super) classes: [Class; 2],
}

/// Operations that have sizes and places in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    pub(super) sizes: Counted,
    pub(super) bins: Bins,
    /// Runs that begin with one of them.
    pub(super) begun: u64,
    /// Operations that go on from another one, and the sum of how many operations ago that was.
    pub(super) continued: u64,
    pub(super) back: u64,
    /// First sector, and behind the last.
    pub(super) span: Option<(u64, u64)>,
}

impl Gathering {
    /// After a first pass over a capture with this header, all whose names these are.
    ///
    /// # Errors
    /// Why there is nothing to be fitted.
    pub fn new(origin: &Origin, survey: Survey, names: &Names) -> Result<Self, Nothing> {
        let surveyed = survey.finish(names)?;
        let parts = surveyed.parts.iter().map(Gathered::from_part).collect();
        Ok(Self { operations: Operations::from_origin(origin, &Changes::default()), surveyed, parts })
    }

    /// Takes rows of a block, whose names these are.
    pub fn add(&mut self, rows: &[Row], names: &Names) {
        let Self { operations, surveyed, parts } = self;
        let first_ns = surveyed.all.first_ns.unwrap_or(0);
        for row in rows {
            operations.add(row, names, &mut |operation| {
                let part = surveyed.of_task.get(operation.task as usize).copied().unwrap_or(0);
                if let Some(part) = parts.get_mut(usize::from(part)) {
                    part.add(operation, first_ns);
                }
            });
        }
    }
}

/// The multiple in sectors that places and sizes have.
pub(super) fn align(bits: u64) -> u64 {
    1 << bits.trailing_zeros().min(MOST_ALIGNED)
}

impl Gathered {
    fn from_part(part: &Part) -> Self {
        let load = || Load::from_part(part);
        let (stretch, data, until_ns) = (Vec::new(), 0, 0);
        let (sides, is_many, ended_ns, began_ns) = (Default::default(), None, 0, None);
        Self {
            whole: load(),
            few: load(),
            many: load(),
            sides,
            is_many,
            ended_ns,
            began_ns,
            stretch,
            data,
            until_ns,
        }
    }

    fn add(&mut self, operation: &Operation, first_ns: u64) {
        let at_ns = operation.issue_ns.saturating_sub(first_ns);
        self.whole.add(operation, at_ns);
        if at_ns >= self.until_ns || self.stretch.len() >= MOST_IN_A_STRETCH {
            self.end_stretch();
        }
        let took_ns = operation.done_ns.map_or(0, |done| done.saturating_sub(operation.issue_ns));
        self.until_ns = self.until_ns.max(at_ns.saturating_add(took_ns));
        self.data += u64::from(operation.kind != Kind::Sync);
        self.stretch.push((*operation, at_ns));
    }

    pub(super) fn end_stretch(&mut self) {
        let Some((_, since_ns)) = self.stretch.first() else { return };
        let idle_ns = since_ns.saturating_sub(self.ended_ns);
        // Syncs by themselves are about what was written before.
        let is_many = match std::mem::take(&mut self.data) {
            0 => self.is_many.unwrap_or(false),
            data => {
                let is_many = data >= MANY_OPERATIONS;
                if self.is_many.replace(is_many) != Some(is_many) {
                    self.sides[usize::from(!is_many)].end();
                    self.sides[usize::from(is_many)].begin();
                }
                if let Some(before_ns) = self.began_ns.replace(*since_ns) {
                    self.sides[usize::from(is_many)].begins_after(since_ns.saturating_sub(before_ns));
                }
                is_many
            }
        };
        self.sides[usize::from(is_many)].add(&self.stretch, idle_ns, self.until_ns);
        let load = if is_many { &mut self.many } else { &mut self.few };
        self.stretch.drain(..).for_each(|(operation, at_ns)| load.add(&operation, at_ns));
        self.ended_ns = self.until_ns;
    }

    /// Whether a task that does two things waits for its own operations in the one of few, so that it does one thing after the other.
    pub(super) fn goes_by_turns(&self) -> bool {
        let [few, many] = &self.sides;
        few.is_told() && many.is_told() && few.waits()
    }

    /// All as one load; or where a task does two things, some operations one by one and others many at once, each by itself.
    pub(super) fn loads(&self, tasks: u32) -> Vec<(&Load, &'static str)> {
        let part = |load: &Load| load.data() as f64 / self.whole.data().max(1) as f64;
        let both = part(&self.few) >= APART && part(&self.many) >= APART;
        // Of geometric numbers at once those that are many are longer by what they must have to be so.
        let expected = self.whole.pacing.at_once() + (MANY_OPERATIONS - 1) as f64;
        let is_apart = self.many.pacing.at_once() >= LARGER * expected;
        let is_filling = || self.sides[1].pacing.is_filling() && self.goes_by_turns();
        let is_in_bursts = self.many.pacing.is_at_once() || is_filling();
        if tasks == 1 && both && is_apart && is_in_bursts {
            return vec![(&self.few, " one by one"), (&self.many, " in bursts")];
        }
        vec![(&self.whole, "")]
    }
}

impl Load {
    fn from_part(part: &Part) -> Self {
        let (first, behind) = part.seen.span.unwrap_or((0, 1));
        let bins = Bins::over(first, behind, align(part.seen.bits));
        let class = || Class { bins: bins.clone(), ..Class::default() };
        let kind = |_| OfKind { classes: [class(), class()], ..OfKind::default() };
        Self { kinds: DATA.map(kind), pacing: Pacing::default(), syncs: 0, stable: 0 }
    }

    /// Reads, writes and trims.
    pub(super) fn data(&self) -> u64 {
        self.kinds.iter().map(OfKind::count).sum()
    }

    /// Of these.
    pub(super) fn bytes(&self) -> f64 {
        self.kinds.iter().flat_map(|of| &of.classes).map(|class| class.sizes.bytes()).sum()
    }

    fn add(&mut self, operation: &Operation, at_ns: u64) {
        self.pacing.add(operation, at_ns);
        self.stable += u64::from(operation.is_stable);
        let Some(of) = self.kinds.get_mut(operation.kind as usize) else {
            self.syncs += 1;
            return;
        };
        of.arriving.add(at_ns);
        of.bits |= operation.sector | u64::from(operation.sectors.min(MOST_SECTORS));
        let sectors = operation.sectors.min(MOST_SECTORS);
        let row = Row { sector: operation.sector, sectors, ..Row::default() };
        let followed = of.following.add(&row);
        let is_long = followed.number >= LONG;
        let class = &mut of.classes[usize::from(is_long)];
        class.sizes.add(sectors);
        class.bins.add(operation.sector);
        let (begin, end) = (operation.sector, row.end());
        class.span = Some(class.span.map_or((begin, end), |(a, b)| (a.min(begin), b.max(end))));
        class.begun += u64::from(followed.number == if is_long { LONG } else { 1 });
        if followed.back > 0 {
            class.continued += 1;
            class.back += followed.back;
        }
    }
}

impl Class {
    /// How many there are.
    pub(super) fn operations(&self) -> u64 {
        self.sizes.operations()
    }

    /// Both as one.
    pub(super) fn join(&mut self, other: &Self) {
        self.sizes.join(&other.sizes);
        self.bins.join(&other.bins);
        self.begun += other.begun;
        self.continued += other.continued;
        self.back += other.back;
        let spans = [self.span, other.span].into_iter().flatten();
        self.span = spans.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
    }

    /// Runs that go on at once: operations of one come so many behind each other.
    pub(super) fn at_once(&self) -> u32 {
        let mean = if self.continued == 0 { 1.0 } else { self.back as f64 / self.continued as f64 };
        mean.round().clamp(1.0, 64.0) as u32
    }

    /// Mean length of its runs.
    pub(super) fn run_length(&self) -> f64 {
        let operations = self.operations() as f64;
        operations / (operations - self.continued as f64).max(self.begun as f64).max(1.0)
    }
}
