//! How a load went over time: requests, bytes and latencies of stretches, and where on the device they began.
//!
//! For: what is drawn, in memory that grows neither with the requests nor with the time. Not for: drawing it (crate `report`).
//!
//! Nobody knows beforehand how long a capture is, nor how far its offsets reach. So stretches and rows of the grid begin short, and
//! where something lies beyond the last one, two become one until it does not.

use crate::row::Row;
use model::captured::{Course, CourseOf, Op, Place, Places};

/// Stretches of time at most.
const STEPS: usize = 256;
/// Length of a stretch at the beginning, ns.
const STEP_NS: u64 = 1_000_000;
/// Rows of offsets at most, while requests come: far more than are drawn, since a load may lie in a small part of a large device.
const ROWS: usize = 4096;
/// Bytes of a row at the beginning.
const ROW_BYTES: u64 = 4096;
/// Rows of offsets at most that are told, of those between the first and the last that was touched.
const TOLD_ROWS: usize = 96;

/// The requests of one kind by stretches.
#[derive(Debug)]
struct OpSteps {
    op: Op,
    steps: Vec<Step>,
    /// Requests that began in a row within a stretch; of reads and writes, else empty.
    grid: Vec<u32>,
}

/// The requests of one kind in one stretch.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    requests: u64,
    bytes: u64,
    /// Those whose latency is known, and its sum.
    timed: u64,
    latency_ns: u64,
}

/// A course under way.
#[derive(Debug)]
pub(super) struct Going {
    from_ns: u64,
    step_ns: u64,
    row_bytes: u64,
    kinds: Vec<OpSteps>,
}

impl Going {
    pub(super) fn new(from_ns: u64) -> Self {
        Self { from_ns, step_ns: STEP_NS, row_bytes: ROW_BYTES, kinds: Vec::new() }
    }

    pub(super) fn add(&mut self, op: Op, row: &Row) {
        let at_ns = row.issue_ns.saturating_sub(self.from_ns);
        while at_ns / self.step_ns >= STEPS as u64 {
            self.step_ns *= 2;
            self.kinds.iter_mut().for_each(OpSteps::halve_steps);
        }
        let has_place = matches!(op, Op::Read | Op::Write);
        let offset = row.sector.saturating_mul(crate::SECTOR);
        while has_place && offset / self.row_bytes >= ROWS as u64 {
            self.row_bytes *= 2;
            self.kinds.iter_mut().for_each(OpSteps::halve_rows);
        }
        let step = (at_ns / self.step_ns) as usize;
        let at = self.kinds.iter().position(|kind| kind.op == op).unwrap_or_else(|| {
            let grid = if has_place { vec![0; STEPS * ROWS] } else { Vec::new() };
            self.kinds.push(OpSteps { op, steps: vec![Step::default(); STEPS], grid });
            self.kinds.len() - 1
        });
        let kind = &mut self.kinds[at];
        kind.steps[step].add(row);
        if has_place {
            let count = &mut kind.grid[step * ROWS + (offset / self.row_bytes) as usize];
            *count = count.saturating_add(1);
        }
    }

    /// All of it, of so long a time; `None` where nothing came.
    pub(super) fn finish(mut self, duration_ns: u64) -> Option<Course> {
        self.kinds.sort_by_key(|kind| kind.op);
        let last =
            self.kinds.iter().filter_map(|kind| kind.steps.iter().rposition(|s| s.requests > 0)).max()?;
        let steps = (duration_ns.div_ceil(self.step_ns) as usize).clamp(last + 1, STEPS.max(last + 1));
        let places = self.places(steps);
        let of = self.kinds.into_iter().map(|kind| kind.to_series(steps)).collect();
        Some(Course { step_ns: self.step_ns, steps, of, places })
    }

    /// Where reads and writes began, in rows of equal size between the first and the last that were touched.
    fn places(&self, steps: usize) -> Option<Places> {
        let touched = |row: &usize| {
            self.kinds.iter().any(|kind| kind.grid.iter().skip(*row).step_by(ROWS).any(|count| *count > 0))
        };
        let first = (0..ROWS).find(touched)?;
        let last = (0..ROWS).rev().find(touched)?;
        let together = (last + 1 - first).div_ceil(TOLD_ROWS);
        let rows = (last + 1 - first).div_ceil(together);
        let told = |kind: &OpSteps| {
            let mut cells = Vec::new();
            for step in 0..steps {
                for row in 0..rows {
                    let from = first + row * together;
                    let counts = &kind.grid[step * ROWS + from..step * ROWS + (from + together).min(ROWS)];
                    let requests: u64 = counts.iter().map(|count| u64::from(*count)).sum();
                    if requests > 0 {
                        cells.push(Place { step, row, requests });
                    }
                }
            }
            (kind.op, cells)
        };
        Some(Places {
            first_byte: first as u64 * self.row_bytes,
            row_bytes: self.row_bytes.saturating_mul(together as u64),
            rows,
            of: self.kinds.iter().filter(|kind| !kind.grid.is_empty()).map(told).collect(),
        })
    }
}

impl Step {
    fn add(&mut self, row: &Row) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(row.bytes());
        if let Some(ns) = row.latency_ns {
            self.timed += 1;
            self.latency_ns = self.latency_ns.saturating_add(ns);
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            bytes: self.bytes.saturating_add(other.bytes),
            timed: self.timed + other.timed,
            latency_ns: self.latency_ns.saturating_add(other.latency_ns),
        }
    }
}

impl OpSteps {
    /// Makes stretches twice as long.
    fn halve_steps(&mut self) {
        for at in 0..STEPS {
            let [one, other] = [2 * at, 2 * at + 1].map(|at| self.steps.get(at).copied().unwrap_or_default());
            self.steps[at] = one.with(other);
        }
        if self.grid.is_empty() {
            return;
        }
        for at in 0..STEPS {
            for row in 0..ROWS {
                let count = |step: usize| self.grid.get(step * ROWS + row).copied().unwrap_or(0);
                self.grid[at * ROWS + row] = count(2 * at).saturating_add(count(2 * at + 1));
            }
        }
    }

    /// Makes rows twice as large.
    fn halve_rows(&mut self) {
        for step in self.grid.chunks_mut(ROWS) {
            for row in 0..ROWS {
                let count = |row: usize| step.get(row).copied().unwrap_or(0);
                step[row] = count(2 * row).saturating_add(count(2 * row + 1));
            }
        }
    }

    fn to_series(self, steps: usize) -> CourseOf {
        let kept = || self.steps.iter().take(steps);
        let mean = |step: &Step| (step.timed > 0).then(|| step.latency_ns as f64 / step.timed as f64);
        CourseOf {
            op: self.op,
            requests: kept().map(|step| step.requests).collect(),
            bytes: kept().map(|step| step.bytes).collect(),
            latency_mean_ns: kept().map(mean).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(issue_ms: u64, mib: u64) -> Row {
        Row {
            issue_ns: issue_ms * 1_000_000,
            latency_ns: Some(issue_ms * 1000),
            sector: mib * 2048,
            sectors: 8,
            ..Row::default()
        }
    }

    #[test]
    fn nothing_is_lost_however_long_it_takes_and_wherever_it_goes() {
        let mut going = Going::new(0);
        for i in 0..10_000 {
            going.add(if i % 4 == 0 { Op::Write } else { Op::Read }, &row(i, 1000 + i % 64));
        }
        going.add(Op::Flush, &row(9_000, 0));
        let course = going.finish(10_000_000_000).unwrap_or_else(|| panic!("none"));
        assert_eq!((course.step_ns, course.steps), (64_000_000, 157));
        let all: Vec<(Op, u64, u64)> = course
            .of
            .iter()
            .map(|of| (of.op, of.requests.iter().sum(), of.bytes.iter().sum::<u64>()))
            .collect();
        assert_eq!(
            all,
            [(Op::Read, 7500, 7500 * 4096), (Op::Write, 2500, 2500 * 4096), (Op::Flush, 1, 4096)]
        );
        // Each stretch has 64 requests, whose latencies are their times.
        let mean = course.of[0].latency_mean_ns[10].unwrap_or_default();
        assert!((mean - 671_500.0).abs() < 1500.0, "{mean}");
        let places = course.places.unwrap_or_else(|| panic!("no places"));
        assert_eq!((places.row_bytes, places.rows), (1 << 20, 64));
        assert_eq!(places.first_byte, 1000 << 20);
        for (op, cells) in &places.of {
            let requests: u64 = cells.iter().map(|cell| cell.requests).sum();
            assert_eq!(requests, if *op == Op::Read { 7500 } else { 2500 });
            assert!(cells.iter().all(|cell| cell.row < places.rows && cell.step < course.steps));
        }
    }

    #[test]
    fn a_wide_device_is_told_in_few_rows_and_no_request_in_none() {
        let mut going = Going::new(0);
        going.add(Op::Read, &row(0, 0));
        going.add(Op::Read, &row(1, 8 << 20));
        let places = going.finish(0).and_then(|course| course.places).unwrap_or_else(|| panic!("no places"));
        assert!(places.rows <= TOLD_ROWS && places.row_bytes * places.rows as u64 > 8 << 40);
        assert_eq!(places.of[0].1.len(), 2);
        assert_eq!(Going::new(0).finish(1_000_000_000), None);
        // What has no place has a course all the same.
        let mut flushes = Going::new(5);
        flushes.add(Op::Flush, &row(0, 0));
        assert!(flushes.finish(1_000_000).is_some_and(|course| course.places.is_none() && course.steps == 1));
    }
}
