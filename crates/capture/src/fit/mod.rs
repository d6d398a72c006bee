//! Fitting: a job that behaves like a captured load. Fitting works on rows, in memory that does not grow with their number.
//!
//! 1. [`Survey`], the first pass, decides which tasks become streams, and where and when each is active.
//! 2. [`Gathering`], the second pass, collects the figures of each stream: sizes, offsets, sequential runs, arrivals, think times
//!    (`survey`).
//! 3. `pacing` decides between open and closed loops, `distributions` chooses arrivals and think times, `shape` chooses sizes and
//!    offsets.
//! 4. [`Fitted::toml`] writes the job file (`job_file`).
//!
//! [`Observed`] has the figures by which a load and its fit are compared. `replay` repeats a load request by request.

mod distributions;
mod histograms;
mod job_file;
mod pacing;
mod shape;
mod survey;

use crate::profile::count_size;
use crate::replay::{Operation, Operations};
pub use job_file::{Fitted, Head};
use model::captured::Origin;
use model::histogram::Histogram;
use model::job::{Changes, Kind};
use std::collections::BTreeMap;
pub use survey::{CannotFit, Gathering, Survey};
use trace::row::{Names, Row, Task};

/// Number of bins of offsets.
const BINS: usize = 1 << 16;
/// The depth is reported if at most one of this many operations has no known completion.
const MIN_PER_UNFINISHED: u64 = 1000;

/// Collects the figures of a capture's operations.
#[derive(Debug)]
pub struct Observed {
    operations: Operations,
    figures: Figures,
    in_flight_ns: u128,
    first_ns: Option<u64>,
    last_ns: u64,
    unfinished: u64,
}

/// Figures of the observed operations.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Time from the first issue to the last completion, in ns.
    pub elapsed_ns: u64,
    /// Numbers of reads, writes, trims and requested flushes.
    pub counts: [u64; Kind::ALL.len()],
    /// Bytes read and written.
    pub bytes: u64,
    /// Mean number of operations in flight; `None` if completions are unknown.
    pub depth: Option<f64>,
    /// Latencies by kind.
    pub latencies: [Histogram; Kind::ALL.len()],
    /// Number of operations of tasks that are not selected.
    pub of_others: u64,
    /// Number of reads and writes of each size in sectors.
    sizes: BTreeMap<u32, u64>,
    /// Number of reads and writes in each bin of offsets.
    offsets: Vec<u64>,
    /// Number of sectors per bin of offsets.
    width: u64,
}

impl Observed {
    /// Starts the observation of a capture with this header. Offsets beyond `end_sector` count in the last bin.
    pub fn new(origin: &Origin, end_sector: u64) -> Self {
        Self {
            operations: Operations::from_origin(origin, &Changes::default()),
            figures: Figures {
                offsets: vec![0; BINS],
                width: end_sector.div_ceil(BINS as u64).max(1),
                ..Figures::default()
            },
            in_flight_ns: 0,
            first_ns: None,
            last_ns: 0,
            unfinished: 0,
        }
    }

    /// Adds the rows of a block. Operations of tasks that are not selected are only counted.
    pub fn add(&mut self, rows: &[Row], names: &Names, is_selected: &dyn Fn(&Task) -> bool) {
        for row in rows {
            let mut all = Vec::new();
            self.operations.add(row, names, &mut |operation| all.push(*operation));
            let selected = names.task_at(row.task).is_some_and(is_selected);
            for operation in &all {
                if selected { self.add_operation(operation) } else { self.figures.of_others += 1 }
            }
        }
    }

    fn add_operation(&mut self, operation: &Operation) {
        let figures = &mut self.figures;
        self.first_ns = Some(self.first_ns.map_or(operation.issue_ns, |first| first.min(operation.issue_ns)));
        self.last_ns = self.last_ns.max(operation.done_ns.unwrap_or(operation.issue_ns));
        figures.counts[operation.kind as usize] += 1;
        match operation.done_ns {
            Some(done_ns) => self.in_flight_ns += u128::from(done_ns.saturating_sub(operation.issue_ns)),
            None => self.unfinished += 1,
        }
        if let Some(ns) = operation.latency_ns {
            figures.latencies[operation.kind as usize].record(ns);
        }
        if !Kind::MOVING.contains(&operation.kind) {
            return;
        }
        figures.bytes = figures.bytes.saturating_add(u64::from(operation.sectors) * trace::SECTOR);
        count_size(&mut figures.sizes, operation.sectors, 1);
        let bin = usize::try_from(operation.sector / figures.width).unwrap_or(BINS).min(BINS - 1);
        figures.offsets[bin] += 1;
    }

    /// Returns the latencies of a kind so far.
    pub fn latency(&self, kind: Kind) -> &Histogram {
        &self.figures.latencies[kind as usize]
    }

    /// Returns the figures of all operations that were added.
    pub fn finish(self) -> Figures {
        let elapsed_ns = self.last_ns.saturating_sub(self.first_ns.unwrap_or(0));
        let all: u64 = self.figures.counts.iter().sum();
        // A few operations may have been in flight when the capture ended.
        let known = self.in_flight_ns > 0 && elapsed_ns > 0 && self.unfinished <= all / MIN_PER_UNFINISHED;
        let depth = known.then(|| self.in_flight_ns as f64 / elapsed_ns as f64);
        Figures { elapsed_ns, depth, ..self.figures }
    }
}

impl Figures {
    /// Returns `count` per second of the elapsed time; `None` if no time has elapsed.
    pub fn rate(&self, count: u64) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| count as f64 / (self.elapsed_ns as f64 / 1e9))
    }

    /// Returns the distance (Kolmogorov-Smirnov) between the sizes of reads and writes of two loads; `None` if a load has no operations.
    pub fn distance_of_sizes(&self, other: &Self) -> Option<f64> {
        let all = self.sizes.keys().chain(other.sizes.keys());
        let mut keys: Vec<u32> = all.copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let counts = |figures: &Self| {
            keys.iter().map(|key| figures.sizes.get(key).copied().unwrap_or(0)).collect::<Vec<_>>()
        };
        distance(&counts(self), &counts(other))
    }

    /// Returns the distance (Kolmogorov-Smirnov) between the offsets of reads and writes of two loads, in 65,536 bins; `None` if a load
    /// has no operations.
    pub fn distance_of_offsets(&self, other: &Self) -> Option<f64> {
        distance(&self.offsets, &other.offsets)
    }
}

/// Returns the distance (Kolmogorov-Smirnov) between two lists of counts of the same classes; `None` if a list has only zeros.
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
fn distances_compare_distribution_functions() {
    assert_eq!(distance(&[1, 1, 0], &[2, 2, 0]), Some(0.0));
    assert_eq!(distance(&[1, 0, 1], &[0, 1, 1]), Some(0.5));
    assert_eq!(distance(&[0], &[1]), None);
}

#[cfg(test)]
mod tests;
