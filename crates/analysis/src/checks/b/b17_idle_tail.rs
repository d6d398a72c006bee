//! B17: workers that did not share the load. Compares when the workers of a stream ended and how many operations
//! each did.

use super::DEVIATIONS;
use crate::checks::prelude::*;
use model::record::WorkerEnd;

/// Share of a run by which one worker may end before another.
const TAIL_ABOVE: Share = Share(0.02);
/// Nanoseconds that a busy machine may take to wake the threads: some turns of the scheduler.
const TAIL_NS: u64 = 50_000_000;
/// Operations of the least busy worker divided by those of the busiest, below which the load was uneven.
const UNEVEN_BELOW: f64 = 0.8;
/// The same ratio, below which the least busy worker did little. More workers than CPUs cause it too.
const IDLE_BELOW: f64 = 0.5;
pub(super) const CHECK: Check = Check {
    id: CheckId::B17,
    name: "IDLE_TAIL",
    belief: "all workers loaded the target for the whole run",
    reads: "For each worker of the stream, the time between its first and last clock stamp, and the \
            operations that it completed.",
    formula: formula!(
        "Biased if the first worker ended before the last one by more than {TAIL_ABOVE} of the run, by more \
         than {wake}, and by more than twice the slowest operation: less is waking and draining. Biased if \
         the least busy worker did less than {IDLE_BELOW} of the busiest one's operations, a note below \
         {UNEVEN_BELOW}; both only beyond {DEVIATIONS} standard deviations of such counts.",
        wake = Ns(TAIL_NS as f64)
    ),
    provoke: "`fathom run --rw randread --bs 4k --depth 1 --workers 3 --engine sync --cache buffered --cpus \
              0-1 --pin DIR`: two workers share a CPU, and one has its own.",
    fix: "Give every worker its own CPU (--cpus, --pin), or use more --depth instead of --workers.",
    accept: "Accept it if you want to measure unequal clients.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| uneven(&[2_750, 2_750, 2_750, 1_000], 0)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { no_cpu_times: true, ..crate::fixture::Fixture::honest() }.record(),
};

/// The imbalance between the workers of one run.
struct Imbalance {
    /// Operations of the least busy worker divided by those of the busiest, or 1 if chance explains the
    /// difference.
    least_by_most: f64,
    /// Time between the end of the first worker and that of the last, or 0 if waking and draining explain it.
    tail_ns: f64,
    tail: f64,
}

fn evaluate(case: &Case) -> Known<Answer> {
    let imbalances: Vec<Imbalance> =
        case.runs.iter().map(|ran| imbalance(case, ran)).collect::<Known<_>>()?;
    let least_by_most = imbalances.iter().map(|s| s.least_by_most).min_by(f64::total_cmp);
    let tail = imbalances.iter().max_by(|a, b| a.tail.total_cmp(&b.tail));
    let (Some(least_by_most), Some(tail)) = (least_by_most, tail) else { return Err(crate::case::no_run()) };
    let numbers = evidence([
        ("least_by_most_ops", least_by_most),
        ("tail_share", tail.tail),
        ("tail_ns", tail.tail_ns),
    ]);
    let (severity, sentence) = if tail.tail > 0.0 {
        let sentence = format!(
            "The first worker ended {} before the last ({} of the run): the target had less load in that \
             time.",
            show_ns(tail.tail_ns),
            show_share(tail.tail)
        );
        (Severity::Biased, sentence)
    } else if least_by_most < UNEVEN_BELOW {
        let severity = if least_by_most < IDLE_BELOW { Severity::Biased } else { Severity::Note };
        let sentence = format!(
            "Workers shared the load unevenly: the least busy one did {} of the busiest one's operations.",
            show_share(least_by_most)
        );
        (severity, sentence)
    } else {
        return holds("The workers shared the load evenly, and none ended early enough to count.", numbers);
    };
    Detail::new(severity, sentence, numbers).found()
}

fn imbalance(case: &Case, ran: &CaseRun) -> Known<Imbalance> {
    let workers: Vec<&WorkerEnd> = ran.end.workers.iter().filter(|w| w.stream == case.index).collect();
    let walls = workers.iter().map(|w| w.wall_ns);
    let (Some(first), Some(last)) = (walls.clone().min(), walls.max()) else {
        return Err("no worker recorded when it ended".into());
    };
    if first == 0 {
        return Err("a worker did not record how long it ran".into());
    }
    let ops = workers.iter().map(|w| w.ops);
    let (fewest, most) = (ops.clone().min().unwrap_or(0), ops.max().unwrap_or(0));
    if most == 0 {
        return Err("workers did not record how many operations they completed".into());
    }
    let slowest = ran.stream.issued.values().map(|i| i.max_ns).max().unwrap_or(0);
    let gap = last - first;
    let tolerated_gap = TAIL_NS.max(slowest.saturating_mul(2)).max((TAIL_ABOVE.0 * last as f64) as u64);
    let tail_ns = if gap > tolerated_gap { gap as f64 } else { 0.0 };
    let by_chance = DEVIATIONS * (fewest as f64 + most as f64).sqrt();
    let differs = (most - fewest) as f64 > by_chance;
    Ok(Imbalance {
        least_by_most: if differs { share(fewest as f64, most as f64) } else { 1.0 },
        tail_ns,
        tail: share(tail_ns, last as f64),
    })
}

/// A record whose workers did `ops` operations each. The last worker ends `early_ns` before the others.
#[cfg(test)]
fn uneven(ops: &[u64], early_ns: u64) -> model::record::Record {
    let workers = ops.len() as u32;
    let mut record = crate::fixture::Fixture { workers, ..crate::fixture::Fixture::honest() }.record();
    for end in record.runs.iter_mut().flat_map(|r| &mut r.end) {
        end.workers.iter_mut().zip(ops).for_each(|(w, n)| w.ops = *n);
        end.workers.last_mut().into_iter().for_each(|w| w.wall_ns -= early_ns);
    }
    record
}

#[test]
fn a_small_share_of_the_load_biases_and_a_larger_one_is_a_note() {
    let at = |last| CHECK.severity(&uneven(&[2_750, 2_750, 2_750, last], 0));
    assert_eq!(at(1_300), Some(Severity::Biased));
    assert_eq!(at(2_000), Some(Severity::Note));
    assert_eq!(at(2_400), None);
    // Chance explains ten against four.
    assert_eq!(CHECK.severity(&uneven(&[10, 4], 0)), None);
}

#[test]
fn a_worker_that_ends_early_biases_and_draining_does_not() {
    let at = |early| CHECK.severity(&uneven(&[2_750; 4], early));
    assert_eq!(at(100_000_000), Some(Severity::Biased));
    assert_eq!(at(40_000_000), None);
}

#[test]
fn workers_without_operation_counts_are_not_checked() {
    assert!(CHECK.answer(&uneven(&[0; 4], 0)).is_err());
}
