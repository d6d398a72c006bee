//! Fitting: a job that behaves like a captured load.
//!
//! For: pure work on rows, in memory that does not grow with their number: one pass that says which tasks become streams ([`Survey`]), a
//! second one that gathers what each is like ([`Gathering`]), and the job file that says it ([`Fitted::toml`]). [`Observed`] is what a load
//! and its fit are compared by. Not for: the load again request by request ([`crate::replay`]), nor for running a job.

mod distributions;
mod job_file;
mod pace;
mod shape;
mod survey;

use crate::replay::{Operation, Operations};
use crate::row::{Names, Row, Task};
use model::captured::Origin;
use model::histogram::Histogram;
use model::job::{Changes, Kind};
use std::collections::BTreeMap;
pub use job_file::{Fitted, Head};
pub use survey::{Gathering, Nothing, Survey};

/// Bins of offsets.
const BINS: usize = 1 << 16;
/// Sizes that are told apart.
const MOST_SIZES: usize = 1 << 16;
/// Part of the operations whose completion may be unknown: one in so many.
const UNFINISHED: u64 = 1000;

/// Operations under way.
#[derive(Debug)]
pub struct Observed {
    operations: Operations,
    figures: Figures,
    flown_ns: u128,
    first_ns: Option<u64>,
    last_ns: u64,
    unfinished: u64,
}

/// What they were like.
#[derive(Clone, Debug)]
pub struct Figures {
    /// From the first issue to the last completion, in ns.
    pub elapsed_ns: u64,
    /// Reads, writes, trims and flushes that were asked for.
    pub counts: [u64; Kind::ALL.len()],
    /// Bytes that were read and written.
    pub bytes: u64,
    /// Operations in flight in the mean; `None` where completions are not known.
    pub depth: Option<f64>,
    /// Latencies by kind.
    pub latencies: [Histogram; Kind::ALL.len()],
    /// Operations of tasks that were left out.
    pub of_others: u64,
    sizes: BTreeMap<u32, u64>,
    offsets: Vec<u64>,
    /// Sectors of a bin of offsets.
    width: u64,
}

impl Observed {
    /// Of a capture with this header, with offsets up to this sector.
    pub fn new(origin: &Origin, end_sector: u64) -> Self {
        Self {
            operations: Operations::from_origin(origin, &Changes::default()),
            figures: Figures {
                elapsed_ns: 0,
                counts: [0; Kind::ALL.len()],
                bytes: 0,
                depth: None,
                latencies: Default::default(),
                of_others: 0,
                sizes: BTreeMap::new(),
                offsets: vec![0; BINS],
                width: end_sector.div_ceil(BINS as u64).max(1),
            },
            flown_ns: 0,
            first_ns: None,
            last_ns: 0,
            unfinished: 0,
        }
    }

    /// Takes rows of a block, of tasks that are meant.
    pub fn add(&mut self, rows: &[Row], names: &Names, is_meant: &dyn Fn(&Task) -> bool) {
        for row in rows {
            let mut all = Vec::new();
            self.operations.add(row, names, &mut |operation| all.push(*operation));
            let meant = names.task_at(row.task).is_some_and(is_meant);
            for operation in &all {
                if meant { self.take(operation) } else { self.figures.of_others += 1 }
            }
        }
    }

    fn take(&mut self, operation: &Operation) {
        let figures = &mut self.figures;
        self.first_ns = Some(self.first_ns.map_or(operation.issue_ns, |first| first.min(operation.issue_ns)));
        self.last_ns = self.last_ns.max(operation.done_ns.unwrap_or(operation.issue_ns));
        figures.counts[operation.kind as usize] += 1;
        match operation.done_ns {
            Some(done_ns) => self.flown_ns += u128::from(done_ns.saturating_sub(operation.issue_ns)),
            None => self.unfinished += 1,
        }
        if let Some(ns) = operation.latency_ns {
            figures.latencies[operation.kind as usize].record(ns);
        }
        if !Kind::MOVING.contains(&operation.kind) {
            return;
        }
        figures.bytes = figures.bytes.saturating_add(u64::from(operation.sectors) * crate::SECTOR);
        if figures.sizes.len() < MOST_SIZES || figures.sizes.contains_key(&operation.sectors) {
            *figures.sizes.entry(operation.sectors).or_default() += 1;
        }
        let bin = usize::try_from(operation.sector / figures.width).unwrap_or(BINS).min(BINS - 1);
        figures.offsets[bin] += 1;
    }

    /// How long operations of a kind took so far.
    pub fn latency(&self, kind: Kind) -> &Histogram {
        &self.figures.latencies[kind as usize]
    }

    /// What they were like.
    pub fn finish(self) -> Figures {
        let elapsed_ns = self.last_ns.saturating_sub(self.first_ns.unwrap_or(0));
        let all: u64 = self.figures.counts.iter().sum();
        // A few may have been in flight when the capture ended.
        let known = self.flown_ns > 0 && elapsed_ns > 0 && self.unfinished <= all / UNFINISHED;
        let depth = known.then(|| self.flown_ns as f64 / elapsed_ns as f64);
        Figures { elapsed_ns, depth, ..self.figures }
    }
}

impl Figures {
    /// So many a second.
    pub fn rate(&self, count: u64) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| count as f64 / (self.elapsed_ns as f64 / 1e9))
    }

    /// Distance (Kolmogorov-Smirnov) of the sizes of reads and writes; `None` where there are none.
    pub fn distance_of_sizes(&self, other: &Self) -> Option<f64> {
        let all = self.sizes.keys().chain(other.sizes.keys());
        let mut keys: Vec<u32> = all.copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let of = |figures: &Self| {
            keys.iter().map(|key| figures.sizes.get(key).copied().unwrap_or(0)).collect::<Vec<_>>()
        };
        distance(&of(self), &of(other))
    }

    /// Distance (Kolmogorov-Smirnov) of the offsets of reads and writes, in 65,536 bins; `None` where there are none.
    pub fn distance_of_offsets(&self, other: &Self) -> Option<f64> {
        distance(&self.offsets, &other.offsets)
    }
}

fn distance(a: &[u64], b: &[u64]) -> Option<f64> {
    let (all_a, all_b) = (a.iter().sum::<u64>(), b.iter().sum::<u64>());
    if all_a == 0 || all_b == 0 {
        return None;
    }
    let (mut sum_a, mut sum_b, mut worst) = (0, 0, 0.0_f64);
    for (a, b) in a.iter().zip(b) {
        (sum_a, sum_b) = (sum_a + a, sum_b + b);
        worst = worst.max((sum_a as f64 / all_a as f64 - sum_b as f64 / all_b as f64).abs());
    }
    Some(worst)
}

#[test]
fn distances_are_of_distribution_functions() {
    assert_eq!(distance(&[1, 1, 0], &[2, 2, 0]), Some(0.0));
    assert_eq!(distance(&[1, 0, 1], &[0, 1, 1]), Some(0.5));
    assert_eq!(distance(&[0], &[1]), None);
}

#[cfg(test)]
mod tests;
