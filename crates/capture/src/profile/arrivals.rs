//! When requests came.
//!
//! For: gaps, and how bursty they are by the index of dispersion of counts. Not for: how many were in flight.

use super::figures::latency;
use model::captured::{Arrivals, Op};
use model::histogram::Histogram;

/// Stretches that requests are counted in, in ns.
const STRETCHES: [u64; 2] = [10_000_000, 100_000_000];
/// Fewer stretches than this say nothing about dispersion.
const FEWEST: u64 = 10;

/// Requests of one kind as they come.
#[derive(Debug, Default)]
pub(crate) struct Coming {
    of: &'static str,
    last_ns: Option<u64>,
    /// Times from one to the next.
    pub(crate) gaps: Histogram,
    counts: [Counts; 2],
}

/// Requests in stretches of one length: those of the current one, and sums over the ones before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    stretch: u64,
    current: f64,
    sum: f64,
    squares: f64,
}

/// All, reads and writes.
#[derive(Debug)]
pub(super) struct Arriving {
    from_ns: u64,
    coming: [Coming; 3],
}

impl Arriving {
    pub(super) fn new(from_ns: u64) -> Self {
        let coming = |of| Coming { of, ..Coming::default() };
        Self { from_ns, coming: ["all", "read", "write"].map(coming) }
    }

    pub(super) fn add(&mut self, op: Op, issue_ns: u64) {
        let at_ns = issue_ns.saturating_sub(self.from_ns);
        self.coming[0].add(at_ns);
        match op {
            Op::Read => self.coming[1].add(at_ns),
            Op::Write => self.coming[2].add(at_ns),
            _ => {}
        }
    }

    pub(super) fn finish(self, duration_ns: u64) -> Vec<Arrivals> {
        let told = self.coming.into_iter().filter_map(|coming| {
            let [idc_10ms, idc_100ms] = coming.dispersion(duration_ns);
            Some(Arrivals { of: coming.of.into(), gap_ns: latency(&coming.gaps)?, idc_10ms, idc_100ms })
        });
        told.collect()
    }
}

impl Coming {
    /// Index of dispersion of counts in 10 and in 100 ms, over so long.
    pub(crate) fn dispersion(&self, duration_ns: u64) -> [Option<f64>; 2] {
        [0, 1].map(|at| self.counts[at].dispersion(duration_ns / STRETCHES[at]))
    }

    /// One that came so long after the beginning.
    pub(crate) fn add(&mut self, at_ns: u64) {
        if let Some(last) = self.last_ns.replace(at_ns) {
            self.gaps.record(at_ns.saturating_sub(last));
        }
        for (counts, length) in self.counts.iter_mut().zip(STRETCHES) {
            counts.add(at_ns / length);
        }
    }
}

impl Counts {
    fn add(&mut self, stretch: u64) {
        if stretch != self.stretch {
            self.close();
            self.stretch = stretch;
        }
        self.current += 1.0;
    }

    fn close(&mut self) {
        self.sum += self.current;
        self.squares += self.current * self.current;
        self.current = 0.0;
    }

    /// Var N / E N over so many whole stretches, of which those without a request were not seen.
    fn dispersion(mut self, stretches: u64) -> Option<f64> {
        if stretches < FEWEST {
            return None;
        }
        // The last one may be cut off.
        if self.stretch < stretches {
            self.close();
        }
        let count = stretches as f64;
        let mean = self.sum / count;
        (mean > 0.0).then(|| (self.squares / count - mean * mean).max(0.0) / mean)
    }
}

#[test]
fn evenly_spaced_requests_have_no_dispersion_and_bursts_much() {
    let mut even = Arriving::new(0);
    (0..10_000_u64).for_each(|at| even.add(Op::Read, at * 100_000));
    let told = even.finish(1_000_000_000);
    assert_eq!((told.len(), told[0].of.as_str(), told[1].of.as_str()), (2, "all", "read"));
    assert_eq!((told[0].gap_ns.mean, told[0].idc_10ms), (100_000.0, Some(0.0)));
    let mut burst = Arriving::new(0);
    // Every tenth stretch has all of a thousand.
    (0..10_000_u64).for_each(|at| burst.add(Op::Write, at / 1000 * 100_000_000 + at % 1000));
    let told = burst.finish(1_000_000_000);
    assert!(told[0].idc_10ms.is_some_and(|idc| (idc - 900.0).abs() < 1.0), "{told:?}");
    let mut few = Arriving::new(0);
    (0..10).for_each(|at| few.add(Op::Read, at));
    assert_eq!(few.finish(50_000_000)[0].idc_10ms, None);
}
