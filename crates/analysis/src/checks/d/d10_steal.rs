//! D10: CPU time that the hypervisor took away during the runs. Divides the kernel's count of stolen ticks by all
//! ticks.

use crate::checks::prelude::*;
use crate::figures::kernel_text::stolen_ticks;
use crate::strategy::disturbed::STOLEN_ABOVE;

#[cfg(test)]
const STAT: &str = "/proc/stat";
/// Share of all CPU time above which the number is biased. fathom repeats a run above the same share.
const BIASED_ABOVE: Share = Share(STOLEN_ABOVE);
/// Share above which the number mostly depends on the other guests of the host.
const VOID_ABOVE: Share = Share(0.10);
/// Fewest ticks on all CPUs, so that one tick is less than the first threshold.
const LEAST_TICKS: u64 = 100;

pub(super) const CHECK: Check = Check {
    id: CheckId::D10,
    name: "STEAL",
    belief: "the host gave this machine its CPUs when needed",
    reads: "The first line of `/proc/stat` at the start and stop of each run: time of all CPUs in ticks of \
            10 ms. The eighth number is the time that the hypervisor took.",
    formula: formula!(
        "Stolen time / all time over the runs: above {BIASED_ABOVE} biased, above {VOID_ABOVE} void. One \
         tick per run is allowed, since the counter is rounded. Below {LEAST_TICKS} ticks in total it is not \
         checked."
    ),
    provoke: "stress-ng --cpu 0   # on the host or in a neighbouring guest; then here: fathom run --rw \
              randread .",
    fix: "Measure while the host is idle, pin the guest's CPUs, or use an instance with dedicated CPUs.",
    accept: "Accept it if you want to measure the crowded host.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| stolen(10, 200)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
        snapshots.for_each(|s| drop(s.files.remove(STAT)));
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let (mut stolen, mut all) = (0_u64, 0_u64);
    for ran in &case.runs {
        let (before, after) = (stolen_ticks(ran.at(Moment::Start)?)?, stolen_ticks(ran.at(Moment::Stop)?)?);
        // The kernel's idle time may decrease by a tick, so a difference may be slightly too small.
        stolen = stolen.saturating_add(after[0].saturating_sub(before[0]));
        all = all.saturating_add(after[1].saturating_sub(before[1]));
    }
    if all < LEAST_TICKS {
        return Err(format!(
            "the runs are too short: the kernel counts CPU time in ticks of 10 ms, and {all} passed"
        ));
    }
    let part = stolen as f64 / all as f64;
    let stolen_at_least = stolen.saturating_sub(case.runs.len() as u64) as f64 / all as f64;
    let numbers = evidence([("stolen_share", part), ("stolen_ticks", stolen as f64)]);
    let severity = match stolen_at_least {
        s if s > VOID_ABOVE => Severity::Void,
        s if s > BIASED_ABOVE => Severity::Biased,
        _ if stolen == 0 => return holds("The host took no CPU time away.", numbers),
        _ => return holds("The host took too little CPU time away to matter.", numbers),
    };
    finding!(severity, numbers, "The hypervisor took away {} of the CPU time.", show_share(part))
}

/// A record whose runs each have `steal` stolen ticks out of `all`.
#[cfg(test)]
fn stolen(steal: u64, all: u64) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    for (i, run) in record.runs.iter_mut().enumerate() {
        for snapshot in &mut run.evidence {
            let times = i as u64 + u64::from(snapshot.moment == Moment::Stop);
            let text =
                format!("cpu  5 0 5 {} 0 0 0 {} 0 0\ncpu0 1 1\n", times * (all - steal), times * steal);
            snapshot.files.insert(STAT.into(), Ok(text));
        }
    }
    record
}

#[test]
fn one_tick_per_run_is_silent_more_bias_and_many_are_void() {
    let at = |steal, all| CHECK.severity(&stolen(steal, all));
    assert_eq!((at(1, 60), at(2, 200), at(4, 200)), (None, None, Some(Severity::Biased)));
    assert_eq!((at(20, 200), at(22, 200)), (Some(Severity::Biased), Some(Severity::Void)));
}

#[test]
fn short_runs_are_not_checked() {
    assert!(CHECK.answer(&stolen(1, 15)).is_err());
}
