//! What the mean and the percentiles of latency do not show (E07, E08, E09).
//!
//! E07 looks for a deep valley between two peaks of the latency histogram on a logarithmic axis: no mean
//! describes two groups. E08 names the percentiles of the table that have too few operations beyond them. E09 finds
//! stalls that a closed loop hardly recorded because it issued no operations while they lasted (coordinated
//! omission): it weights each latency with itself to get the p99 of a request at a random moment, and compares
//! it with the p99 of the operations.

use super::{LONG_S, has_step, is_long};
use crate::checks::prelude::*;
use crate::checks::waited_for_cpu;
use crate::figures::RATED_KINDS;
use model::histogram::{FEWEST_ABOVE_PERCENTILE, supports_quantile};
use stats::bimodality::{MAX_VALLEY, MIN_GROUP_SHARE, MIN_OPS, MIN_RATIO, find_modes};

pub(super) const BIMODAL: Check = Check {
    id: CheckId::E07,
    name: "BIMODAL",
    belief: "the mean latency is typical",
    reads: "The latency histograms of the measured windows, for each direction, over all runs.",
    formula: formula!(
        "Looks for a valley between two peaks of the latencies of a direction, on a logarithmic axis of \
         quarter octaves, smoothed over neighbours.\n\
         - Biased if the valley is at most {MAX_VALLEY} times as high as the lower of the two peaks, with \
         at least {share} of the operations on each side and medians at least a factor of {MIN_RATIO} \
         apart.\n\
         - Not checked if a direction has fewer than {fewest} operations, unless another direction has two \
         groups.\n\
         - Does not apply if E02 found a step: such runs have two levels.",
        share = Share(MIN_GROUP_SHARE),
        fewest = show_count(MIN_OPS as f64)
    ),
    provoke: "`fathom run --rw randread --cache buffered --depth 1 FILE` with about half of FILE in memory \
              (`head -c 512M FILE > /dev/null`).",
    fix: "Quote both medians with their shares instead of the mean, and find the cause of the two groups: \
          cache hits (A01), unequal drives below one device, reads mixed with writes.",
    accept: "Accept it if you want to measure such a mixture.",
    applies: |case| case.has_storage() && !has_step(case),
    ask: Ask::Alone(check_bimodal),
    #[cfg(test)]
    fires: Some(|| mixed(40)),
    #[cfg(test)]
    blind: || Fixture { ops: 100, ..Fixture::honest() }.record(),
};

fn check_bimodal(case: &Case) -> Known<Answer> {
    let mut checked = 0;
    for kind in RATED_KINDS {
        let Some(latencies) = case.latency(kind).filter(|h| h.count() >= MIN_OPS) else { continue };
        checked += 1;
        let Some(groups) = find_modes(&latencies) else { continue };
        let mean = latencies.mean_ns().unwrap_or(0.0);
        let is_cached = kind == Kind::Read && has_cache_hits(case);
        let cached = if is_cached { " The faster group probably has the page cache hits (A01)." } else { "" };
        return finding!(
            Severity::Biases,
            evidence([
                ("fast_ns", groups.fast_ns),
                ("slow_ns", groups.slow_ns),
                ("slow_share", groups.slow_share),
                ("mean_ns", mean),
            ]),
            "Latencies of {}s form two groups: {} take about {} and {} about {}; the mean of {} describes \
             neither.{cached}",
            kind.word(),
            show_share(1.0 - groups.slow_share),
            show_ns(groups.fast_ns),
            show_share(groups.slow_share),
            show_ns(groups.slow_ns),
            show_ns(mean)
        );
    }
    if checked == 0 {
        return Err(format!("no direction has the {MIN_OPS} operations that a distribution needs"));
    }
    need_ops_of_each_direction(case, MIN_OPS)?;
    holds("Latencies form one group.", evidence([]))
}

/// Checks that a statement about all directions is possible.
///
/// # Errors
/// Fails if a direction of the stream has fewer than `fewest` operations in the measured windows.
fn need_ops_of_each_direction(case: &Case, fewest: u64) -> Known<()> {
    let stream = &case.stream;
    for kind in RATED_KINDS {
        let ops = case.in_windows(kind).ops;
        // The capture decides the directions of a replay.
        let is_planned = stream.replay.is_none() && stream.kinds().any(|planned| planned == kind);
        if ops < fewest && (ops > 0 || is_planned) {
            let word = kind.word();
            let completed = match ops {
                0 => format!("no {word}"),
                1 => format!("only 1 {word}"),
                _ => format!("only {} {word}s", show_count(ops as f64)),
            };
            let needed = match fewest {
                1 => String::new(),
                _ => format!(", and {} are needed", show_count(fewest as f64)),
            };
            return Err(format!("{completed} completed in the measured windows{needed}"));
        }
    }
    Ok(())
}

/// Whether the page cache is known to have answered a part of the reads.
fn has_cache_hits(case: &Case) -> bool {
    let read = case.issued(Kind::Read).bytes as f64;
    case.at_device(Kind::Read).is_ok_and(|delivered| (delivered.most as f64) < ARRIVED_FROM.0 * read)
}

/// The percentiles of the table in addition to the median. The JSON also has higher ones, as `null` if withheld.
const SHOWN: [(&str, f64); 2] = [("99", 0.99), ("99.9", 0.999)];

pub(super) const TAIL_UNSUPPORTED: Check = Check {
    id: CheckId::E08,
    name: "TAIL_UNSUPPORTED",
    belief: "a few operations are enough for the tail",
    reads: "The number of operations in the measured windows, for each direction, over all runs.",
    formula: formula!(
        "A percentile p of n operations is withheld if n (1 - p) is below {FEWEST_ABOVE_PERCENTILE}: then it depends on \
         single operations. p99 needs {p99} operations, p99.9 needs {p999}, p99.99 needs {p9999}. These are \
         minimums: dependent operations would need more. Not checked if a direction of the job has no \
         operation, unless another direction has too few.",
        p99 = show_count(FEWEST_ABOVE_PERCENTILE / 0.01),
        p999 = show_count(FEWEST_ABOVE_PERCENTILE / 0.001),
        p9999 = show_count(FEWEST_ABOVE_PERCENTILE / 0.0001)
    ),
    provoke: "`fathom run --rw randread --depth 1 --time 1s --runs 1 DIR` on a hard disk, which serves about \
              100 operations per second.",
    fix: "Use a longer --time or more --runs.",
    accept: "A note needs no --accept. It changes neither number nor exit code; fathom only withholds the \
             percentiles.",
    applies: |_| true,
    ask: Ask::Alone(check_tail_unsupported),
    #[cfg(test)]
    fires: Some(|| Fixture { ops: 200, runs: 1, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { ops: 0, ..Fixture::honest() }.record(),
};

fn check_tail_unsupported(case: &Case) -> Known<Answer> {
    let ops_by_kind: Vec<u64> = RATED_KINDS.iter().filter_map(|k| Some(case.latency(*k)?.count())).collect();
    let fewest = *ops_by_kind.iter().min().ok_or("no operation completed within a measured window")?;
    let withheld: Vec<&(&str, f64)> = SHOWN.iter().filter(|(_, q)| !supports_quantile(fewest, *q)).collect();
    let numbers = evidence([("operations", fewest as f64), ("withheld", withheld.len() as f64)]);
    let Some((_, hardest)) = withheld.last() else {
        // A direction without operations has no percentiles.
        need_ops_of_each_direction(case, 1)?;
        return holds("There are enough operations for the percentiles of the table.", numbers);
    };
    let names: Vec<&str> = withheld.iter().map(|(name, _)| *name).collect();
    let operations = match fewest {
        1 => "1 operation is".to_owned(),
        _ => format!("{} operations are", show_count(fewest as f64)),
    };
    detail!(
        Severity::Note,
        numbers,
        "{operations} too few for p{}, which would depend on single operations: withheld.",
        names.join(" and p")
    )
    .with_fix(format!(
        "{} {} operations are needed.",
        TAIL_UNSUPPORTED.fix,
        show_count(FEWEST_ABOVE_PERCENTILE / (1.0 - hardest))
    ))
    .found()
}

/// Factor by which the p99 of random moments must exceed the p99 of operations.
const OMITTED_FROM: f64 = 10.0;
/// Minimum share of the waiting time that is in excess of ten times the median: first for long measurements, then for
/// short ones. The few pauses of any busy machine are a larger part of a short measurement.
const STALLED_FROM: [f64; 2] = [0.05, 0.10];
/// An operation stalled if it took longer than this many times the median.
const STALL_MEDIANS: f64 = 10.0;
/// The stalled operations must fill the queue at least this many times; fewer may be chance.
const STALLS_FROM: f64 = 5.0;
/// At this share of the stall time or above, waiting for a CPU may be the cause of the stalls.
const CPU_FROM: f64 = 0.5;
/// Minimum number of operations for a p99.
const FEWEST_OPS_FOR_STALLS: u64 = 1_000;

pub(in crate::checks) const COORDINATED_OMISSION: Check = Check {
    id: CheckId::E09,
    name: "COORDINATED_OMISSION",
    belief: "one request in a hundred waits at least p99",
    reads: "The latency histograms of the measured windows of a closed loop, per direction.",
    formula: formula!(
        "Weights each latency with itself. The 99th percentile of the result is that of a request that \
         arrives at a random moment, instead of when the loop is ready.\n\
         - Biased under three conditions. This percentile is at least {OMITTED_FROM} times the 99th \
         percentile of operations. At least {long} of the waiting time ({short} in less than {LONG_S} \
         seconds of measuring) is in excess of {STALL_MEDIANS} times the median. The operations that took \
         longer than that fill the queue at least {STALLS_FROM} times.\n\
         - Not checked if a direction has fewer than {fewest} operations, unless another direction has \
         such stalls.\n\
         - Does not apply to open loops and replays, or if E02 found a step.",
        long = Share(STALLED_FROM[0]),
        short = Share(STALLED_FROM[1]),
        fewest = show_count(FEWEST_OPS_FOR_STALLS as f64)
    ),
    provoke: "`fathom run --rw randread --depth 1 DIR` on storage that pauses, such as a FUSE file system \
              that stalls for 100 ms every 200 reads: p99 is 1 ms, but 100 ms for a user who arrives at \
              random.",
    fix: "Use --rate with the expected load: then latency counts from the intended start of an operation.",
    accept: "Accept it if you want the time that the storage took after submission.",
    // In a replay, operations wait as in the capture.
    applies: |case| {
        let is_closed_loop = case.stream.replay.is_none() && !case.stream.is_open_loop();
        is_closed_loop && case.has_storage() && !has_step(case)
    },
    ask: Ask::Alone(check_coordinated_omission),
    #[cfg(test)]
    fires: Some(|| stalling(100_000_000, 200)),
    #[cfg(test)]
    blind: || Fixture { ops: 100, ..Fixture::honest() }.record(),
};

/// The stalls in a latency distribution.
struct Stalls {
    kind: Kind,
    /// 99th percentile of operations.
    ops_p99_ns: f64,
    /// 99th percentile of requests that arrive at random moments.
    moments_p99_ns: f64,
    /// Waiting time in excess of ten times the median, summed over all operations, as a share of
    /// all waiting time.
    share: f64,
    /// Number of stalled operations.
    stalled: u64,
    ops: u64,
}

fn check_coordinated_omission(case: &Case) -> Known<Answer> {
    let worst = RATED_KINDS
        .iter()
        .filter_map(|kind| find_stalls(*kind, &case.latency(*kind)?))
        .max_by(|a, b| (a.moments_p99_ns / a.ops_p99_ns).total_cmp(&(b.moments_p99_ns / b.ops_p99_ns)))
        .ok_or_else(|| {
            format!("no direction has {FEWEST_OPS_FOR_STALLS} operations in the measured windows")
        })?;
    let ratio = worst.moments_p99_ns / worst.ops_p99_ns;
    let numbers = evidence([
        ("p99_of_operations_ns", worst.ops_p99_ns),
        ("p99_of_moments_ns", worst.moments_p99_ns),
        ("stalled_share", worst.share),
        ("stalled_operations", worst.stalled as f64),
    ]);
    let stalled_from = STALLED_FROM[usize::from(!is_long(case.window_ns() / 1e9))];
    let queues = worst.stalled as f64 / case.depth_mean()?.max(1.0);
    let is_finding = ratio >= OMITTED_FROM && worst.share >= stalled_from && queues >= STALLS_FROM;
    if !is_finding {
        need_ops_of_each_direction(case, FEWEST_OPS_FOR_STALLS)?;
    }
    if ratio < OMITTED_FROM {
        let sentence = format!(
            "The p99 of requests at random moments is below {OMITTED_FROM} times that of operations."
        );
        return holds(sentence, numbers);
    }
    if !is_finding {
        return holds("Stalls are too few, or too small a part of the waiting, to count.", numbers);
    }
    let is_cause = |ready: f64| ready > 0.0 && ready >= CPU_FROM * worst.share;
    let cpu = if waited_for_cpu(case).is_ok_and(is_cause) {
        " fathom's own threads also waited for a CPU (D08), which may have caused the stalls."
    } else {
        ""
    };
    finding!(
        Severity::Biases,
        numbers,
        "A closed loop issues few requests during stalls: {} of the waiting was inside stalls, but only \
         {} of {} {}s met one. The p99 of {} counts from submission; for requests that arrive at random, the \
         p99 would be {}.{}",
        show_share(worst.share),
        show_count(worst.stalled as f64),
        show_count(worst.ops as f64),
        worst.kind.word(),
        show_ns(worst.ops_p99_ns),
        show_ns(worst.moments_p99_ns),
        cpu
    )
}

/// Returns the stalls in a distribution, or `None` with too few operations.
fn find_stalls(kind: Kind, latencies: &Histogram) -> Option<Stalls> {
    if latencies.count() < FEWEST_OPS_FOR_STALLS {
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
        ops_p99_ns: (latencies.quantile_ns(0.99).unwrap_or(0) as f64).max(1.0),
        moments_p99_ns: moments,
        share: excess / total,
        stalled: weighted().filter(|(ns, _)| *ns > stall_from_ns).map(|(_, count)| count).sum(),
        ops: latencies.count(),
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

/// 10,000 operations, of which `slow_percent` percent are slow.
#[cfg(test)]
fn mixed(slow_percent: u64) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for end in record.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
        let latency = &mut end.streams[0].kinds.get_mut(&Kind::Read).unwrap().latency;
        latency.clear();
        (0..10_000).for_each(|i| latency.record(if i % 100 < slow_percent { 400_000 } else { 5_000 } + i));
    }
    record
}

#[test]
fn both_medians_are_reported_and_a_tail_is_not_a_group() {
    let Ok(Answer::Finding(f)) = BIMODAL.answer(&mixed(40)) else { panic!("silent") };
    assert!((f.evidence["slow_share"] - 0.4).abs() < 0.01, "{:?}", f.evidence);
    assert!(f.sentence.contains("60 % take about") && !f.sentence.contains("A01"), "{}", f.sentence);
    assert_eq!(BIMODAL.severity(&mixed(8)), None, "8 % are a tail");
    assert_eq!(BIMODAL.severity(&mixed(100)), None);
}

#[test]
fn two_levels_of_a_run_are_left_to_e02() {
    let stepped = super::shaped(&Fixture::honest(), 25, 1, |_, t| if t < 0.5 { 20_000.0 } else { 1_000.0 });
    assert_eq!(BIMODAL.answer(&stepped), Ok(Answer::DoesNotApply));
}

#[test]
fn the_sentence_names_a_known_cache() {
    let mut record = mixed(40);
    let cached = Fixture { delivered: 0.4, ..Fixture::honest() }.record();
    for (run, other) in record.runs.iter_mut().zip(cached.runs) {
        run.evidence = other.evidence;
    }
    let Ok(Answer::Finding(f)) = BIMODAL.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("A01"), "{}", f.sentence);
}

#[test]
fn ten_operations_beyond_a_percentile_suffice() {
    let with_ops = |ops| Fixture { ops, runs: 1, ..Fixture::honest() }.record();
    assert_eq!(TAIL_UNSUPPORTED.severity(&with_ops(10_000)), None);
    assert_eq!(TAIL_UNSUPPORTED.severity(&with_ops(9_990)), Some(Severity::Note));
    let Ok(Answer::Finding(f)) = TAIL_UNSUPPORTED.answer(&with_ops(500)) else { panic!("silent") };
    assert!(f.sentence.contains("p99 and p99.9") && f.fix.as_ref().unwrap().contains("10,000"), "{f:?}");
}

/// The record with a plan that also writes, and with this many writes in each run.
#[cfg(test)]
fn with_writes(mut record: model::record::Record, ops: u64) -> model::record::Record {
    let plan = &mut record.header.plan;
    plan.jobs[0].phases[0].streams[0].access.lines[0].mix =
        model::job::Access::plain(Pattern::Random, 4096, 50).lines[0].mix;
    for end in record.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
        let mut writes = end.streams[0].kinds[&Kind::Read].clone();
        writes.latency.clear();
        (0..ops).for_each(|i| writes.latency.record(50_000 + i));
        end.streams[0].kinds.insert(Kind::Write, writes);
    }
    record
}

#[test]
fn a_direction_with_too_few_operations_never_holds_and_hides_no_finding() {
    let honest = || Fixture { runs: 1, ..Fixture::honest() }.record();
    for (check, few, completed) in [
        (TAIL_UNSUPPORTED, 0, "no write completed in the measured windows"),
        (BIMODAL, 0, "no write completed in the measured windows, and 1,000 are needed"),
        (BIMODAL, 1, "only 1 write completed in the measured windows, and 1,000 are needed"),
        (BIMODAL, 100, "only 100 writes completed in the measured windows, and 1,000 are needed"),
        (
            COORDINATED_OMISSION,
            100,
            "only 100 writes completed in the measured windows, and 1,000 are needed",
        ),
    ] {
        let answer = check.answer(&with_writes(honest(), few));
        let names_writes = answer.as_ref().is_err_and(|why| why == completed);
        assert!(names_writes, "{}: {answer:?}", check.id);
        let enough = check.answer(&with_writes(honest(), 10_000));
        assert!(matches!(enough, Ok(Answer::Holds(..))), "{}: {enough:?}", check.id);
    }
    let few_reads = Fixture { ops: 200, runs: 1, ..Fixture::honest() }.record();
    for (check, certain) in [
        (TAIL_UNSUPPORTED, few_reads),
        (BIMODAL, mixed(40)),
        (COORDINATED_OMISSION, stalling(100_000_000, 200)),
    ] {
        assert!(check.severity(&with_writes(certain, 0)).is_some(), "{}", check.id);
    }
}

/// Runs of 10,000 operations of 50 to 60 us, in which every `every`-th takes `stall_ns` instead.
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
    let Ok(Answer::Finding(f)) = COORDINATED_OMISSION.answer(&stalling(100_000_000, 200)) else {
        panic!("silent")
    };
    assert!((f.evidence["p99_of_moments_ns"] / 1e8 - 1.0).abs() < 0.02, "{:?}", f.evidence);
    assert!(f.sentence.contains("250 of 50,000 reads"), "{}", f.sentence);
    assert_eq!(COORDINATED_OMISSION.severity(&stalling(450_000, 200)), None, "eight medians");
    assert_eq!(
        COORDINATED_OMISSION.severity(&stalling(20_000_000, 10_000)),
        None,
        "less than 5 % of the waiting"
    );
    assert_eq!(
        COORDINATED_OMISSION.severity(&stalling(100_000_000, 50)),
        None,
        "p99 itself shows the stalls"
    );
    let mut deep = stalling(100_000_000, 2_000);
    assert!(COORDINATED_OMISSION.severity(&deep).is_some());
    let ends = deep.runs.iter_mut().filter_map(|r| r.end.as_mut());
    ends.for_each(|e| e.streams[0].depth_ns = 31_500_000_000);
    assert_eq!(COORDINATED_OMISSION.severity(&deep), None, "25 operations are less than one full queue");
}

#[test]
fn the_sentence_names_a_wait_for_cpus() {
    let mut record = stalling(100_000_000, 200);
    let workers = record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers);
    workers.for_each(|w| w.ready_ns = Ok(w.wall_ns));
    let Ok(Answer::Finding(f)) = COORDINATED_OMISSION.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("D08"), "{}", f.sentence);
}

#[test]
fn e09_does_not_apply_to_an_open_loop() {
    assert_eq!(COORDINATED_OMISSION.answer(&Fixture::honest_open().record()), Ok(Answer::DoesNotApply));
}
