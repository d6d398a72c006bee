//! Rows: what the runs of a job came to so far.
//!
//! For: a table that fills while it is measured, by the runs that count as of now. Not for: intervals and verdicts, which the report
//! has.

use crate::runs::Summary;
use crate::strategy::{Budget, disturbed};
use model::histogram::Histogram;
use model::plan::Strategy;
use stats::intervals;
use stats::steady_state::WINDOW;

/// What the runs of a job came to, at one load where the strategy chooses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the job.
    pub job: usize,
    /// Operations per second that were offered, where the strategy chose them.
    pub offered_iops: Option<u64>,
    /// Runs that count.
    pub runs: usize,
    /// Geometric mean of their operations per second; `None` where none counts.
    pub iops: Option<f64>,
    /// p50, p99 and maximum of all their latencies in ns; `None` where too few operations support it.
    pub latency_ns: [Option<u64>; 3],
}

/// p50, p99 and maximum in ns, each withheld where too few operations support it.
pub fn latencies(of: &Histogram) -> [Option<u64>; 3] {
    [of.supported_quantile_ns(0.5), of.supported_quantile_ns(0.99), of.max_ns()]
}

/// What the runs of a job came to.
pub fn job_row(done: &[Summary], budget: &Budget, (job, offered_iops): (usize, Option<u64>)) -> Row {
    let counting = disturbed::counting(done, budget);
    let mut runs: Vec<&Summary> =
        counting.iter().filter(|s| (s.job, s.offered_iops) == (job, offered_iops) && !s.refused).collect();
    if matches!(budget.strategy, Strategy::Steady { .. }) {
        // Rounds before the last ones are the way there.
        runs.drain(..runs.len().saturating_sub(WINDOW));
    }
    let rates: Vec<f64> = runs.iter().map(|s| s.iops).collect();
    let mut latency = Histogram::new();
    for run in &runs {
        latency.merge(&run.latency);
    }
    Row {
        job,
        offered_iops,
        runs: runs.len(),
        iops: intervals::mean(&rates).map(|mean| mean.value),
        latency_ns: latencies(&latency),
    }
}

#[cfg(test)]
use std::sync::Arc;

#[test]
fn a_row_is_of_the_runs_that_count_and_what_few_operations_support_is_withheld() {
    let run = |repeat: u32, iops: f64| {
        let mut latency = Histogram::new();
        (0..200).for_each(|ns| latency.record(1_000 + ns));
        Summary { iops, latency: Arc::new(latency), refused: false, ..Summary::refused(0, repeat) }
    };
    let budget = Budget {
        jobs: 2,
        runs: 2,
        strategy: Strategy::Fixed,
        seed: 1,
        paired: false,
        attempts: 1,
        ends_ns: None,
        blocks: Vec::new(),
    };
    let row = job_row(&[run(0, 4.0), run(1, 9.0), Summary::refused(1, 0)], &budget, (0, None));
    assert_eq!((row.runs, row.iops.map(f64::round)), (2, Some(6.0)));
    assert!(row.latency_ns[0].is_some() && row.latency_ns[1].is_none() && row.latency_ns[2] == Some(1_199));
    let refused = job_row(&[Summary::refused(1, 0)], &budget, (1, None));
    assert_eq!((refused.runs, refused.iops, refused.latency_ns), (0, None, [None; 3]));
}
