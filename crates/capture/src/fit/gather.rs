//! A second pass over a capture: what the operations of each part are like.
//!
//! For: figures of parts, in memory that does not grow with their number. Not for: what a job makes of them ([`super::stream`]).

use super::pace::Pacing;
use super::sizes::Counted;
use super::stream::Fitted;
use super::survey::{Nothing, Part, Survey, Surveyed};
use super::zones::Bins;
use crate::names::Names;
use crate::profile::arrivals::Coming;
use crate::profile::sequence::Following;
use crate::replay::operations::{Operation, Operations};
use crate::row::Row;
use model::captured::Origin;
use model::job::Kind;

/// Kinds that have places, in the order of their indices.
pub(super) const DATA: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];
/// Operations of a run from which on it is a long one.
pub(super) const LONG: u64 = 8;
/// Bits of the largest alignment in sectors that is told: 1 MiB.
const MOST_ALIGNED: u32 = 11;

/// A second pass under way.
#[derive(Debug)]
pub struct Gathering {
    operations: Operations,
    surveyed: Surveyed,
    parts: Vec<Gathered>,
}

/// What a part is like.
#[derive(Debug)]
pub(super) struct Gathered {
    /// Reads, writes and trims.
    pub(super) kinds: [OfKind; DATA.len()],
    pub(super) pacing: Pacing,
}

/// Operations of one direction.
#[derive(Debug, Default)]
pub(super) struct OfKind {
    pub(super) arriving: Coming,
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
        let parts = surveyed.parts.iter().map(Gathered::of).collect();
        Ok(Self { operations: Operations::of(origin), surveyed, parts })
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

    /// The job that it comes to.
    pub fn finish(self) -> Fitted {
        Fitted::of(&self.surveyed, &self.parts)
    }
}

/// The multiple in sectors that places and sizes have.
pub(super) fn align(bits: u64) -> u64 {
    1 << bits.trailing_zeros().min(MOST_ALIGNED)
}

impl Gathered {
    fn of(part: &Part) -> Self {
        let (first, behind) = part.seen.span.unwrap_or((0, 1));
        let bins = Bins::over(first, behind, align(part.seen.bits));
        let class = || Class { bins: bins.clone(), ..Class::default() };
        let kind = |_| OfKind { classes: [class(), class()], ..OfKind::default() };
        Self { kinds: DATA.map(kind), pacing: Pacing::default() }
    }

    fn add(&mut self, operation: &Operation, first_ns: u64) {
        let at_ns = operation.issue_ns.saturating_sub(first_ns);
        self.pacing.add(operation, at_ns);
        let Some(of) = self.kinds.get_mut(operation.kind as usize) else { return };
        of.arriving.add(at_ns);
        let row = Row { sector: operation.sector, sectors: operation.sectors, ..Row::default() };
        let followed = of.following.add(&row);
        let is_long = followed.number >= LONG;
        let class = &mut of.classes[usize::from(is_long)];
        class.sizes.add(operation.sectors);
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
