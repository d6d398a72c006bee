//! D11: a CPU quota that paused the workers. Divides the time in which the kernel throttled fathom's cgroup by
//! the time of the runs.

use crate::checks::prelude::*;
use crate::figures::kernel_text::pauses;
use model::evidence::{CPU_STAT, LIMITS};

/// Share of the runs' time above which pauses are part of the latencies: 50 ms in ten seconds.
const BIASED_ABOVE: Share = Share(0.005);
/// Share above which the quota decides the number.
const RENAMED_ABOVE: Share = Share(0.3);
const NOT_PAUSED: &str = "No quota paused the workers.";
const HARDLY_PAUSED: &str = "A quota paused the workers too briefly to matter.";

pub(in crate::checks) const CHECK: Check = Check {
    id: CheckId::D11,
    name: "CPU_QUOTA",
    belief: "no quota paused the test",
    reads: "`nr_throttled` and `throttled_usec` (version 1: `throttled_time`) in `cpu.stat` of fathom's \
            cgroup or the nearest one above that has them, at the start and stop of each run; `cpu.max` and \
            `cpu.cfs_quota_us` of all cgroups above.",
    formula: formula!(
        "Paused time of all threads together above {BIASED_ABOVE} of the runs' time: biased. Above \
         {RENAMED_ABOVE} the result is relabelled, since the quota decides it. Without a quota in any cgroup \
         above, there are no pauses. A quota that paused nothing is not reported."
    ),
    provoke: "systemd-run --scope -p CPUQuota=20% fathom run --rw randread --bs 4k --depth 32 .",
    fix: "Start fathom outside that cgroup, or raise its quota (`cpu.max`; in a container its CPU limit).",
    accept: "Accept it if the quota belongs to what you want to measure.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| with_pauses(3, 300_000)),
    #[cfg(test)]
    blind: || {
        let mut record = with_pauses(0, 0);
        record.header.hosts[0].facts.remove(LIMITS);
        let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
        snapshots.for_each(|s| drop(s.files.remove(CPU_STAT)));
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let Some(Pauses { times, paused_ns, passed_ns }) = pauses_in_runs(case)? else {
        return holds(NOT_PAUSED, evidence([]));
    };
    let part = share(paused_ns, passed_ns);
    let numbers = evidence([("pauses", times as f64), ("paused_ns", paused_ns), ("paused_share", part)]);
    if part <= BIASED_ABOVE {
        let sentence = if times == 0 { NOT_PAUSED } else { HARDLY_PAUSED };
        return holds(sentence, numbers);
    }
    let (severity, renames) = if part > RENAMED_ABOVE {
        (Severity::Rename, Some(Rename::Condition("limited by a CPU quota".into())))
    } else {
        (Severity::Biased, None)
    };
    detail!(
        severity,
        numbers,
        "A CPU quota paused fathom {} times for {} in total, {} of the runs' time.",
        show_count(times as f64),
        show_ns(paused_ns),
        show_share(part)
    )
    .relabelled(renames)
    .found()
}

/// Pauses in all runs.
struct Pauses {
    times: u64,
    paused_ns: f64,
    passed_ns: f64,
}

/// Returns the pauses of all runs, or `None` if there is no quota.
fn pauses_in_runs(case: &Case) -> Known<Option<Pauses>> {
    let mut sum = Pauses { times: 0, paused_ns: 0.0, passed_ns: 0.0 };
    for ran in &case.runs {
        let (start, stop) = (ran.at(Moment::Start)?, ran.at(Moment::Stop)?);
        let (before, after) = match (pauses(start), pauses(stop)) {
            (Ok(before), Ok(after)) => (before, after),
            // If pauses are not counted and no cgroup has a quota, there are none.
            (Err(_), _) | (_, Err(_)) if has_no_quota(case) => return Ok(None),
            (Err(why), _) | (_, Err(why)) => return Err(why),
        };
        let backwards = || format!("{CPU_STAT}: the counters went backwards");
        sum.times = sum.times.saturating_add(after.0.checked_sub(before.0).ok_or_else(backwards)?);
        sum.paused_ns += after.1.checked_sub(before.1).ok_or_else(backwards)? as f64;
        sum.passed_ns += stop.at_ns.saturating_sub(start.at_ns) as f64;
    }
    if sum.passed_ns > 0.0 { Ok(Some(sum)) } else { Err("no time passed in the runs".into()) }
}

/// Returns the ns that a quota paused fathom, if known. The kernel counts a paused thread as waiting for a CPU.
pub(super) fn paused_ns(case: &Case) -> f64 {
    pauses_in_runs(case).ok().flatten().map_or(0.0, |p| p.paused_ns)
}

/// Whether the limits are known and have none for the CPU.
fn has_no_quota(case: &Case) -> bool {
    let limits = case.machine.ok_or_else(String::new).and_then(|m| m.fact(LIMITS));
    limits.is_ok_and(|text| !text.contains("cpu.max") && !text.contains("cpu.cfs_quota"))
}

/// A record whose runs each have `pauses` pauses of `us` us in total.
#[cfg(test)]
pub(super) fn with_pauses(pauses: u64, us: u64) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    for (i, run) in record.runs.iter_mut().enumerate() {
        for snapshot in &mut run.evidence {
            let times = i as u64 + u64::from(snapshot.moment == Moment::Stop);
            let text = format!(
                "usage_usec 1\nnr_periods {times}\nnr_throttled {}\nthrottled_usec {}\n",
                times * pauses,
                times * us
            );
            snapshot.files.insert(CPU_STAT.into(), Ok(text));
        }
    }
    record
}

#[test]
fn more_than_half_a_percent_biases_and_cgroup_v1_counts_in_ns() {
    // A run lasts 1.1 s.
    let at = |us| CHECK.severity(&with_pauses(1, us));
    assert_eq!((at(5_000), at(6_000), at(400_000)), (None, Some(Severity::Biased), Some(Severity::Rename)));
    let mut record = with_pauses(1, 6_000);
    for text in record.runs.iter_mut().flat_map(|r| &mut r.evidence).filter_map(|s| s.files.get_mut(CPU_STAT))
    {
        *text = text.clone().map(|t| t.replace("throttled_usec ", "throttled_time "));
    }
    assert_eq!(CHECK.severity(&record), None, "6 us");
}

#[test]
fn a_counter_is_only_needed_with_a_quota() {
    let mut record = with_pauses(0, 0);
    let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
    snapshots.for_each(|s| drop(s.files.insert(CPU_STAT.into(), Ok("usage_usec 5\n".into()))));
    assert!(matches!(CHECK.answer(&record), Ok(Answer::Holds(..))));
    record.header.hosts[0].facts.insert(LIMITS.into(), Ok("/c/cpu.max: 20000 100000\n".into()));
    assert!(CHECK.answer(&record).is_err());
}
