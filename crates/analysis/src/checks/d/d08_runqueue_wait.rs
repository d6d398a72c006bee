//! D08: workers that were ready but waited for a CPU while their operations completed. Divides the kernel's count
//! of that time, without pauses by a quota (D11), by the workers' time.

use super::d11_cpu_quota as d11;
use crate::checks::prelude::*;

/// Share of the workers' time above which waiting for a CPU is part of the latencies. Kernel threads also need
/// CPU time: 5.4 % were seen in one of 80 honest runs on two quiet CPUs.
pub(crate) const BIASED_ABOVE: Share = Share(0.10);
/// Share above which the number mostly depends on the CPUs.
const VOID_ABOVE: Share = Share(0.30);

pub(in crate::checks) const CHECK: Check = Check {
    id: CheckId::D08,
    name: "RUNQUEUE_WAIT",
    belief: "the workers waited for storage, not for a CPU",
    reads: "`/proc/thread-self/schedstat` of each worker at its start and end: the second field is the time \
            that it was ready but waited for a CPU.",
    formula: formula!(
        "That time, without pauses by a quota (D11), divided by the workers' time: above {BIASED_ABOVE} \
         biased. Above {VOID_ABOVE} void, since the number mostly depends on other users of the CPUs. If \
         fathom has more workers than there are CPUs, it competes with itself, and the result is relabelled \
         `limited by CPU` instead."
    ),
    provoke: "for i in $(seq $(nproc)); do timeout 5 sh -c 'while :; do :; done' & done\nfathom run --rw randread --depth 1 .",
    fix: "Stop other users of the CPUs, use fewer --workers, or give the workers their own CPUs (--cpus).",
    accept: "Accept it if you want to measure a busy machine.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| waiting(0.2)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        let workers = record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers);
        workers.for_each(|w| w.ready_ns = Err("schedstat: no such file".into()));
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let [ready, wall] = ready_and_wall_ns(case)?;
    let part = share((ready - d11::paused_ns(case)).max(0.0), wall);
    let numbers = evidence([("ready_share", share(ready, wall)), ("ready_share_without_quota", part)]);
    if part <= BIASED_ABOVE {
        return holds("The workers waited too little for a CPU to matter.", numbers);
    }
    let cpus = case.machine.map_or(0, |m| m.cpus);
    let is_overcommitted = case.stream.workers > cpus && cpus > 0;
    let (severity, renames) = match part {
        p if p <= VOID_ABOVE => (Severity::Biased, None),
        _ if is_overcommitted => (Severity::Rename, Some(Rename::Condition("limited by CPU".into()))),
        _ => (Severity::Void, None),
    };
    let why = if is_overcommitted {
        format!(" {} workers share {cpus} CPUs.", case.stream.workers)
    } else {
        " Something else used the CPUs.".to_owned()
    };
    detail!(
        severity,
        numbers,
        "The workers waited {} of their time for a CPU, not for storage, and the latencies include \
         that.{why}",
        show_share(part)
    )
    .relabelled(renames)
    .found()
}

/// Returns the share of the workers' time in which they were ready and waited for a CPU, including pauses by a
/// quota.
///
/// # Errors
/// Fails if that was not counted.
pub(crate) fn waited(case: &Case) -> Known<f64> {
    ready_and_wall_ns(case).map(|[ready, wall]| share(ready, wall))
}

/// Returns the ns that the workers were ready and waited for a CPU, and the ns of all their time.
fn ready_and_wall_ns(case: &Case) -> Known<[f64; 2]> {
    let (mut ready, mut wall) = (0.0, 0.0);
    for worker in stream_workers(case) {
        ready += *worker.ready_ns.as_ref().map_err(Clone::clone)? as f64;
        wall += worker.wall_ns as f64;
    }
    if wall > 0.0 {
        Ok([ready, wall])
    } else {
        Err("the record does not contain the time of the workers".into())
    }
}

/// The honest record with workers that waited `part` of their time.
#[cfg(test)]
fn waiting(part: f64) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    for worker in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers) {
        worker.ready_ns = Ok((worker.wall_ns as f64 * part) as u64);
    }
    record
}

#[test]
fn waiting_biases_and_a_lot_is_void() {
    let at = |part| CHECK.severity(&waiting(part));
    assert_eq!((at(0.09), at(0.11), at(0.29)), (None, Some(Severity::Biased), Some(Severity::Biased)));
    assert_eq!(at(0.31), Some(Severity::Void));
}

#[test]
fn more_workers_than_cpus_relabel() {
    let mut record = waiting(0.5);
    record.header.plan.jobs[0].phases[0].streams[0].workers = 8;
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Rename);
    assert!(f.sentence.contains("8 workers share 2 CPUs"), "{}", f.sentence);
}

#[test]
fn pauses_by_a_quota_do_not_count() {
    let mut record = d11::with_pauses(5, 400_000);
    for worker in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers) {
        worker.ready_ns = Ok(420_000_000);
    }
    assert_eq!(CHECK.severity(&record), None);
}
