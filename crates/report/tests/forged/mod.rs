//! Observations for the results of golden reports, computed from their figures, because their JSON does not contain them.

use model::evidence::{BlockFlow, BlockStat};
use model::figures::{
    Observed, ObservedCpu, ObservedDisk, ObservedInterval, ObservedKind, ObservedTarget, ObservedWorkers,
};
use model::histogram::Distribution;
use model::job::Kind;
use model::report::{Figures, Latency, Measured, Report};
use std::collections::BTreeMap;

const RUN_NS: u64 = 1_000_000_000;

/// Returns the report with observations, as directly after a measurement.
pub(crate) fn with_seen(mut report: Report) -> Report {
    for result in &mut report.results {
        result.observed = Some(observed(result));
    }
    report
}

fn observed(result: &Measured) -> Observed {
    let runs = result.runs.len() as u64;
    let kinds = [
        (Kind::Read, &result.read),
        (Kind::Write, &result.write),
        (Kind::Trim, &result.trim),
        (Kind::Sync, &result.sync),
    ];
    let kinds =
        kinds.into_iter().filter_map(|(kind, figures)| Some((kind, observed_kind(figures.as_ref()?, runs))));
    let target = ObservedTarget { path: "/data/a:b".into(), is_made: false, bytes: 1 << 30 };
    let flow = BlockFlow { ios: 2000, merges: 3, bytes: 2000 * 4096, ms: 900 };
    let stat = BlockStat { read: flow, busy_ms: 450, queue_ms: 1800, ..BlockStat::default() };
    Observed {
        targets: vec![target],
        window_ns: runs * RUN_NS,
        ended_ns: runs * RUN_NS + 1,
        succeeded: runs > 0,
        is_from_incomplete_run: false,
        kinds: kinds.collect(),
        ignored_errors: 0,
        sync_error: None,
        errors: BTreeMap::from_iter((runs == 0).then_some((5, 2))),
        workers: ObservedWorkers {
            wall_ns: runs * RUN_NS,
            user_ns: runs * RUN_NS / 8,
            system_ns: runs * RUN_NS / 4,
            switches: 1234,
            faults: Some([77, 0]),
            depth_counts: None,
        },
        disks: vec![ObservedDisk { name: "vda".into(), stat, ns: 2 * RUN_NS }],
        found_depth: None,
        steadied: None,
        typed: None,
        lanes: Vec::new(),
        cpus: [0, 1].map(|cpu| ObservedCpu { cpu, user: 30, kernel: 25, idle: 45 }).to_vec(),
    }
}

fn observed_kind(figures: &Figures, runs: u64) -> ObservedKind {
    let Latency { min, mean, max, .. } = figures.latency_ns;
    let bins = vec![(min, 1), (mean as u64, figures.ops.saturating_sub(2)), (max, 1)];
    let latency = Distribution { count: figures.ops, min_ns: min, max_ns: max, mean_ns: mean, bins };
    let half = |at| ObservedInterval {
        start_ns: at * (RUN_NS / 2),
        ns: RUN_NS / 2,
        ops: figures.ops / runs.max(1) / 2,
        bytes: figures.bytes / runs.max(1) / 2,
    };
    ObservedKind {
        bytes: figures.bytes,
        short: 0,
        latency,
        service: None,
        time_series: (0..2 * runs).map(half).collect(),
        priorities: Vec::new(),
    }
}
