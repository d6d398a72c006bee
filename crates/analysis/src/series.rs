//! The course of a run as numbers of equal weight: operations per second in steps of equal length.
//!
//! For: what questions about time (warm-up, steps, drift, independence) are asked of. Not for: the answers, nor the table in
//! the report (that is `seconds`).

use crate::case::{Case, Ran, no_run};
use model::Known;
use model::job::Kind;
use model::record::Interval;

/// Steps below which a series says nothing: ten observations are the least that any rule here takes.
pub(crate) const FEWEST_STEPS: usize = 10;
/// Steps above which a longer series tells no more, and the quadratic search for a change gets slow.
const MOST_STEPS: usize = 120;
/// Operations that a step must hold on average, so that counting whole ones makes less noise than the storage does.
const OPS_PER_STEP: f64 = 10.0;
/// Latencies that a step must be long: within less, a full queue completes or it does not.
const LATENCIES_PER_STEP: f64 = 2.0;

/// Operations per second over a run's measured window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// ns from the workers' start to the first step.
    pub from_ns: f64,
    /// Length of a step in ns.
    pub step_ns: f64,
    /// One rate per step.
    pub rates: Vec<f64>,
}

impl Series {
    /// Length of all in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.step_ns * self.rates.len() as f64 / 1e9
    }

    /// Seconds from the first step to the beginning of another.
    pub(crate) fn second_of(&self, step: usize) -> f64 {
        self.step_ns * step as f64 / 1e9
    }
}

/// A share that depends on how long a run is: from a minute on, from ten seconds on, and below. A second holds the odd pause
/// of a scheduler, a minute hardly any.
pub(crate) struct ByLength {
    pub minute: f64,
    pub ten_seconds: f64,
    pub shorter: f64,
}

impl ByLength {
    /// The share for a run.
    pub(crate) fn of(&self, series: &Series) -> f64 {
        self.at(series.seconds())
    }

    /// The share for so many seconds. A window of a minute may end a few ms before it.
    pub(crate) fn at(&self, seconds: f64) -> f64 {
        match seconds {
            s if s >= 59.5 => self.minute,
            s if s >= 9.9 => self.ten_seconds,
            _ => self.shorter,
        }
    }
}

/// What counts as an operation of an interval: syncs are the price of writes and no rate.
pub(crate) fn moved(row: &Interval) -> (u64, u64) {
    let cells = row.cells.iter().filter(|(kind, _)| **kind != Kind::Sync);
    cells.fold((0, 0), |(ops, bytes), (_, c)| (ops.saturating_add(c.0), bytes.saturating_add(c.1)))
}

/// The intervals of a stream that have a length.
pub(crate) fn rows_of<'a>(ran: &Ran<'a>) -> impl Iterator<Item = &'a Interval> {
    let stream = ran.stream.stream;
    ran.run.intervals.iter().filter(move |r| r.stream == stream && r.end_ns > r.start_ns)
}

/// The series of every run.
///
/// # Errors
/// That there is no run, or why one of them has no series.
pub(crate) fn courses(case: &Case) -> Known<Vec<Series>> {
    if case.runs.is_empty() { Err(no_run()) } else { case.runs.iter().map(series).collect() }
}

/// The series of a run.
///
/// # Errors
/// That its course was not kept, or is too short for any conclusion.
pub(crate) fn series(ran: &Ran) -> Known<Series> {
    let rows: Vec<&Interval> = rows_of(ran).collect();
    let from = rows.iter().map(|r| r.start_ns).min().ok_or("the course of the run is not in the record")?;
    let to = rows.iter().map(|r| r.end_ns).max().unwrap_or(from);
    let span_ns = (to - from) as f64;
    let ops: f64 = rows.iter().map(|r| moved(r).0 as f64).sum();
    let latencies = || ran.stream.kinds.values().map(|k| &k.latency);
    let counted: f64 = latencies().map(|h| h.count() as f64).sum();
    let mean_ns = latencies().map(|h| h.sum_ns() as f64).sum::<f64>() / counted.max(1.0);
    let steps = (rows.len() as f64)
        .min(ops / OPS_PER_STEP)
        .min(span_ns / (LATENCIES_PER_STEP * mean_ns).max(1.0))
        .min(MOST_STEPS as f64) as usize;
    if steps < FEWEST_STEPS {
        return Err(format!(
            "the run is too short for that: stretches of time with enough operations in them are {steps}, and {FEWEST_STEPS} are needed"
        ));
    }
    Ok(spread(&rows, from as f64, span_ns / steps as f64, steps))
}

/// Divides the operations of each row among the steps that it overlaps.
fn spread(rows: &[&Interval], from_ns: f64, step_ns: f64, steps: usize) -> Series {
    let mut rates = vec![0.0; steps];
    for row in rows {
        let (a, b) = (row.start_ns as f64 - from_ns, row.end_ns as f64 - from_ns);
        let per_ns = moved(row).0 as f64 / (b - a).max(1.0);
        let first = (a / step_ns) as usize;
        for (i, rate) in rates.iter_mut().enumerate().skip(first) {
            let (begin, end) = (i as f64 * step_ns, (i + 1) as f64 * step_ns);
            if begin >= b {
                break;
            }
            *rate += (b.min(end) - a.max(begin)).max(0.0) * per_ns;
        }
    }
    for rate in &mut rates {
        *rate *= 1e9 / step_ns;
    }
    Series { from_ns, step_ns, rates }
}

/// The mean; 0 of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The variance around the mean, as estimated from a sample; 0 of fewer than two.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / values.len().saturating_sub(1).max(1) as f64
}

/// The middle one; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => at(n / 2),
        n => f64::midpoint(at(n / 2 - 1), at(n / 2)),
    }
}

/// Series whose truth is known, for the tests of what is concluded from series.
#[cfg(test)]
pub(crate) mod known {
    use model::payload::split_mix;

    /// Normal numbers from a seed (Box and Muller).
    pub(crate) struct Noise(pub(crate) u64);

    impl Noise {
        pub(crate) fn uniform(&mut self) -> f64 {
            self.0 = split_mix(self.0);
            ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        pub(crate) fn normal(&mut self) -> f64 {
            (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
        }
    }

    /// Around 1, with this deviation and this correlation of neighbours (AR(1)).
    pub(crate) fn flat(n: usize, deviation: f64, rho: f64, seed: u64) -> Vec<f64> {
        let mut noise = Noise(seed.wrapping_mul(0x9e37).wrapping_add(1));
        let mut last = noise.normal();
        let step = (1.0 - rho * rho).sqrt();
        let mut next = || {
            last = rho * last + step * noise.normal();
            (1.0 + deviation * last).max(0.01)
        };
        (0..n).map(|_| next()).collect()
    }
}

#[cfg(test)]
use crate::forge::Forge;

#[test]
fn rows_of_any_length_become_steps_that_lose_no_operation() {
    let mut record = Forge { runs: 1, ..Forge::honest() }.record();
    for (i, row) in record.runs[0].intervals.iter_mut().enumerate() {
        row.end_ns += (i as u64 % 3) * 7_000_000;
    }
    let case = &crate::case::cases(&record)[0];
    let s = series(&case.runs[0]).unwrap();
    assert_eq!(s.rates.len(), 10);
    let ops: f64 = s.rates.iter().sum::<f64>() * s.step_ns / 1e9;
    assert!((ops - 10_000.0).abs() < 1e-6, "{ops}");
}

#[test]
fn a_course_that_is_missing_or_short_is_a_reason() {
    let mut record = Forge { runs: 1, ops: 80, latency_ns: Some(1000), ..Forge::honest() }.record();
    assert!(series(&crate::case::cases(&record)[0].runs[0]).is_err_and(|why| why.contains("too short")));
    record.runs[0].intervals.clear();
    assert!(series(&crate::case::cases(&record)[0].runs[0]).is_err_and(|why| why.contains("record")));
}
