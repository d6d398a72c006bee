//! E09: stalls that a closed loop hardly recorded because it issued no operations while they lasted (coordinated
//! omission). Weights each latency with itself to get the p99 of a request at a random moment, and compares it
//! with the p99 of the operations.

use super::{TIMED, has_step};
use crate::checks::prelude::*;

/// Factor by which the p99 of random moments must exceed the p99 of operations.
const OMITTED_FROM: f64 = 10.0;
/// Share of all waiting that must be inside stalls, in long and in short measurements: the few pauses of any busy
/// machine are a larger part of a short one.
const STALLED_FROM: [f64; 2] = [0.05, 0.10];
/// Least seconds of measuring for the first limit.
const LONG_S: f64 = 9.9;
/// An operation stalled if it took longer than this many medians.
const STALL_MEDIANS: f64 = 10.0;
/// Full queues of stalled operations below which the stalls are bad luck.
const STALLS_FROM: f64 = 5.0;
/// Share of the stall time that the threads' wait for a CPU must fill to be its cause.
const CPU_FROM: f64 = 0.5;
/// Fewest operations for a p99.
const FEWEST_OPS: u64 = 1_000;

pub(in crate::checks) const CHECK: Check = Check {
    id: CheckId::E09,
    name: "COORDINATED_OMISSION",
    belief: "one request in a hundred waits at least p99",
    reads: "The latency histograms of the measured windows of a closed loop, per direction.",
    formula: formula!(
        "Each latency is weighted with itself: the 99th percentile of the result is that of a request that \
         arrives at a random moment, instead of when the loop is ready. Fires if it is at least \
         {OMITTED_FROM} times the 99th percentile of operations, and at least {long} of all waiting ({short} \
         in less than ten seconds of measuring) exceeds {STALL_MEDIANS} medians, in at least {STALLS_FROM} \
         full queues of stalled operations. Runs with a step (E02) are reported there. Fewer than {fewest} \
         operations are not checked.",
        long = Share(STALLED_FROM[0]),
        short = Share(STALLED_FROM[1]),
        fewest = show_count(FEWEST_OPS as f64)
    ),
    provoke: "`fathom run --rw randread --depth 1 DIR` on storage that pauses, such as a FUSE file system \
              that stalls for 100 ms every 200 reads: p99 is 1 ms, but 100 ms for a user who arrives at \
              random.",
    fix: "Use --rate with the expected load: then latency counts from the intended start of an operation.",
    accept: "Accept it if you want the time that the storage took after submission.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| stalling(100_000_000, 200)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { ops: 100, ..crate::fixture::Fixture::honest() }.record(),
};

/// The stalls in a latency distribution.
struct Stalls {
    kind: Kind,
    /// 99th percentile of operations in ns.
    ops_p99: f64,
    moments_p99: f64,
    /// Share of the waiting that exceeds ten medians.
    share: f64,
    /// Number of stalled operations.
    stalled: u64,
    ops: u64,
}

fn evaluate(case: &Case) -> Known<Answer> {
    // A replay waits as its capture did.
    let is_replay = case.stream.replay.is_some();
    if is_replay || case.stream.is_open_loop() || !case.has_storage() || has_step(case) {
        return Ok(Answer::DoesNotApply);
    }
    let worst = TIMED
        .iter()
        .filter_map(|kind| stalls(*kind, &case.latency(*kind)?))
        .max_by(|a, b| (a.moments_p99 / a.ops_p99).total_cmp(&(b.moments_p99 / b.ops_p99)))
        .ok_or_else(|| format!("no direction has {FEWEST_OPS} operations in the measured windows"))?;
    let ratio = worst.moments_p99 / worst.ops_p99;
    let numbers: Evidence = evidence([
        ("p99_of_operations_ns", worst.ops_p99),
        ("p99_of_moments_ns", worst.moments_p99),
        ("stalled_share", worst.share),
        ("stalled_operations", worst.stalled as f64),
    ]);
    let stalled_from = STALLED_FROM[usize::from(case.window_ns() < LONG_S * 1e9)];
    let queues = worst.stalled as f64 / case.depth_mean()?.max(1.0);
    if ratio < OMITTED_FROM || worst.share < stalled_from || queues < STALLS_FROM {
        return holds("Percentiles of operations are close to those of requests at random moments.", numbers);
    }
    let cpu = if waited_for_cpu(case, worst.share) {
        " fathom's own threads waited for a CPU at the same time (D08)."
    } else {
        ""
    };
    finding!(
        Severity::Biased,
        numbers,
        "No new requests were issued during the stalls: {} of the waiting was inside stalls, but only {} of \
         {} {}s met one. Their p99 of {} counts from submission; requests arriving at random would see a p99 \
         of {}.{}",
        show_share(worst.share),
        show_count(worst.stalled as f64),
        show_count(worst.ops as f64),
        worst.kind.word(),
        show_ns(worst.ops_p99),
        show_ns(worst.moments_p99),
        cpu
    )
}

/// Whether the workers waited for a CPU for most of the stall time. False if unknown.
fn waited_for_cpu(case: &Case, share: f64) -> bool {
    let workers = || stream_workers(case);
    let wall: f64 = workers().map(|w| w.wall_ns as f64).sum();
    let ready: Known<f64> = workers().try_fold(0.0, |sum, w| Ok(sum + w.ready_ns.clone()? as f64));
    ready.is_ok_and(|ns| ns >= CPU_FROM * share * wall && ns > 0.0)
}

fn stalls(kind: Kind, latencies: &Histogram) -> Option<Stalls> {
    if latencies.count() < FEWEST_OPS {
        return None;
    }
    let stall_from_ns = STALL_MEDIANS * latencies.quantile_ns(0.5)? as f64;
    let weighted = || latencies.counts().map(|(ns, count)| (ns as f64, count));
    let total: f64 = weighted().map(|(ns, count)| ns * count as f64).sum();
    let excess: f64 = weighted().map(|(ns, count)| (ns - stall_from_ns).max(0.0) * count as f64).sum();
    let mut waited = 0.0;
    let moments = weighted().find_map(|(ns, count)| {
        waited += ns * count as f64;
        (waited >= 0.99 * total).then_some(ns)
    })?;
    (total > 0.0).then(|| Stalls {
        kind,
        ops_p99: (latencies.quantile_ns(0.99).unwrap_or(0) as f64).max(1.0),
        moments_p99: moments,
        share: excess / total,
        stalled: weighted().filter(|(ns, _)| *ns > stall_from_ns).map(|(_, count)| count).sum(),
        ops: latencies.count(),
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

/// Operations of 50 us, and every `every`-th stalls for `stall_ns`.
#[cfg(test)]
fn stalling(stall_ns: u64, every: u64) -> model::record::Record {
    let mut record = Fixture { depth: 1, depth_seen: 0.9, ..Fixture::honest() }.record();
    for end in record.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
        let latency = &mut end.streams[0].kinds.get_mut(&Kind::Read).unwrap().latency;
        latency.clear();
        (0..10_000).for_each(|i| latency.record(if i % every == 0 { stall_ns } else { 50_000 + i }));
    }
    record
}

#[test]
fn stalls_of_few_operations_bias_and_a_plain_tail_is_silent() {
    let Ok(Answer::Finding(f)) = CHECK.answer(&stalling(100_000_000, 200)) else { panic!("silent") };
    assert!((f.evidence["p99_of_moments_ns"] / 1e8 - 1.0).abs() < 0.02, "{:?}", f.evidence);
    assert!(f.sentence.contains("250 of 50,000 reads"), "{}", f.sentence);
    assert_eq!(CHECK.severity(&stalling(450_000, 200)), None, "nine medians");
    assert_eq!(CHECK.severity(&stalling(20_000_000, 10_000)), None, "less than 5 % of the waiting");
    assert_eq!(CHECK.severity(&stalling(100_000_000, 50)), None, "p99 itself shows the stalls");
    let mut deep = stalling(100_000_000, 2_000);
    assert!(CHECK.severity(&deep).is_some());
    let ends = deep.runs.iter_mut().filter_map(|r| r.end.as_mut());
    ends.for_each(|e| e.streams[0].depth_ns = 31_500_000_000);
    assert_eq!(CHECK.severity(&deep), None, "25 operations are less than one full queue");
}

#[test]
fn the_sentence_names_a_wait_for_cpus() {
    let mut record = stalling(100_000_000, 200);
    let workers = record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers);
    workers.for_each(|w| w.ready_ns = Ok(w.wall_ns));
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("D08"), "{}", f.sentence);
}

#[test]
fn an_open_loop_is_not_checked() {
    assert_eq!(CHECK.answer(&Fixture::honest_open().record()), Ok(Answer::DoesNotApply));
}
