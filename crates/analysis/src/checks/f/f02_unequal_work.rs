//! F02: hosts that did not do the same work. Compares the sizes of their targets, and the time in which all hosts
//! ran with the longest run.

use super::{hosts, runs};
use crate::checks::prelude::*;

/// Share of a run in which all hosts must run, so that its percentiles describe the load of all.
const TOGETHER_FROM: Share = Share(0.9);

pub(super) const CHECK: Check = Check {
    id: CheckId::F02,
    name: "UNEQUAL_WORK",
    belief: "all hosts did the same work for the same time",
    reads: "The sizes of the targets on each host, and for each run the time in which all hosts ran and the \
            time in which any host ran.",
    formula: formula!(
        "Biased if a target has another size on one host than on another: fewer blocks are easier to cache. \
         Also biased if, in most runs, all hosts ran in less than {TOGETHER_FROM} of the time: the rate \
         covers only the time in which all ran, but the percentiles include operations of hosts that had the \
         storage to themselves."
    ),
    provoke: "`mpirun ... fathom run --rw randread --ops 20k DIR` with one host throttled to a third: the \
              others end earlier.",
    fix: "Give all hosts the same --size and the same free space. Use --time instead of --ops or --bytes, so \
          that all hosts run for the same time.",
    accept: "Accept it if you want the time that a fixed amount of work takes.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| super::with(|f| f.hosts[1].target_bytes = vec![1 << 29])),
    #[cfg(test)]
    blind: || super::with(|f| f.runs.clear()),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let hosts = hosts(case);
    if hosts.is_empty() {
        return Ok(Answer::DoesNotApply);
    }
    let runs = runs(case);
    if runs.is_empty() {
        return Err("no run ended on all hosts".into());
    }
    let sizes = |rank: usize| -> Vec<Option<u64>> {
        let on_host = hosts.get(rank).map(|h| h.target_bytes.as_slice()).unwrap_or_default();
        case.stream.targets.iter().map(|target| on_host.get(*target).copied()).collect()
    };
    // A lost host reports no targets.
    let has_targets = |rank: &usize| !hosts[*rank].target_bytes.is_empty();
    let first = (0..hosts.len()).find(has_targets).unwrap_or(0);
    let shares: Vec<f64> = runs.iter().map(|r| r.common_ns as f64 / r.longest_ns as f64).collect();
    let apart = shares.iter().filter(|share| **share < TOGETHER_FROM).count();
    let least_together = shares.iter().copied().fold(1.0, f64::min);
    let numbers = evidence([
        ("least_share_together", least_together),
        ("runs", runs.len() as f64),
        ("runs_apart", apart as f64),
    ]);
    if let Some(rank) = (0..hosts.len()).filter(has_targets).find(|rank| sizes(*rank) != sizes(first)) {
        let describe = |rank: usize| -> String {
            let sum = sizes(rank).into_iter().flatten().fold(0, u64::saturating_add);
            format!("{} on {}", show_bytes(sum), hosts[rank].name)
        };
        return finding!(
            Severity::Biased,
            numbers,
            "The work was unequal: the targets have {} and {}.",
            describe(first),
            describe(rank)
        );
    }
    if 2 * apart > runs.len() {
        return finding!(
            Severity::Biased,
            numbers,
            "In {apart} of {} runs, hosts did not run for the same time; in the worst run all ran in {} of \
             the time. The rate covers that time, the percentiles cover everything.",
            runs.len(),
            show_share(least_together)
        );
    }
    holds("All hosts did the same work for the same time.", numbers)
}

#[test]
fn a_long_tail_in_most_runs_biases() {
    let severity = |common, runs| {
        CHECK.severity(&super::with(|f| f.runs.iter_mut().take(runs).for_each(|r| r.common_ns = common)))
    };
    assert_eq!(severity(910_000_000, 5), None);
    assert_eq!(severity(890_000_000, 5), Some(Severity::Biased));
    assert_eq!(severity(890_000_000, 2), None, "two runs of five");
    let lost = super::with(|f| f.hosts[1].target_bytes.clear());
    assert_eq!(CHECK.severity(&lost), None, "a host that was lost has no sizes");
}
