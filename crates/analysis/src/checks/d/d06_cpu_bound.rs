//! D06: workers without spare CPU time, so that the CPU limits the number. Checks the share of time that the
//! busiest worker was on a CPU or ready for one, and compares the rate with fathom's own ceiling, measured with
//! no storage.

use crate::checks::prelude::*;

/// Share of a worker's time on a CPU or waiting for one above which waiting for storage is negligible.
pub(crate) const BOUND_ABOVE: Share = Share(0.9);
/// Share of fathom's own ceiling, measured before the first run, above which the ceiling is what was measured.
const CEILING_ABOVE: Share = Share(0.8);

pub(in crate::checks) const CHECK: Check = Check {
    id: CheckId::D06,
    name: "CPU_BOUND",
    belief: "the storage limits the number, not the CPU",
    reads: "User and system time of each worker (`getrusage` of the thread) and the time that it was ready \
            but waited for a CPU (`/proc/thread-self/schedstat`, if it exists), compared with the clock. The \
            self test before the first run: a job of the same shape without storage.",
    formula: formula!(
        "The busiest worker above {BOUND_ABOVE} of its time on a CPU or waiting for one, or the rate above \
         {CEILING_ABOVE} of the rate of all workers without storage. Waiting for storage is negligible then. \
         Jobs held back by a rate, pauses or drains are not checked."
    ),
    provoke: "fathom run --rw randread --bs 4k --cache buffered --size 64m --workers 1 .   # twice: the \
              second time all of it is cached",
    fix: "Use more --workers, or a larger --bs; --engine io_uring costs least per operation.",
    accept: "Accept it if you want to measure one busy thread.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { cpu_share: 0.99, ..crate::fixture::Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { no_cpu_times: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    // With a schedule or a pause, a worker spends its time reading the clock.
    if !case.has_storage() || !case.stream.is_unheld() {
        return Ok(Answer::DoesNotApply);
    }
    let busiest_worker = cpu_shares(case).into_iter().max_by(|a, b| (a[0] + a[1]).total_cmp(&(b[0] + b[1])));
    let [on_cpu, ready] = busiest_worker.ok_or("the record does not contain the CPU time of the workers")?;
    let busiest = (on_cpu + ready).min(1.0);
    let share_of_ceiling = share_of_ceiling(case);
    let mut numbers = evidence([("busiest_worker_cpu_share", on_cpu), ("busiest_worker_ready_share", ready)]);
    numbers.extend(share_of_ceiling.map(|share| ("share_of_own_ceiling".to_owned(), share)));
    let at_ceiling = share_of_ceiling.filter(|share| *share > CEILING_ABOVE);
    if busiest <= BOUND_ABOVE && at_ceiling.is_none() {
        return holds("The workers had CPU time to spare.", numbers);
    }
    let why = match at_ceiling {
        Some(share) => format!(
            "This is {} of the rate that fathom reaches through this interface without storage",
            show_share(share)
        ),
        None if on_cpu > BOUND_ABOVE => {
            format!("A worker used a CPU {} of its time", show_share(on_cpu))
        }
        None => format!(
            "A worker used a CPU {} of its time and waited for one {}",
            show_share(on_cpu),
            show_share(ready)
        ),
    };
    detail!(Severity::Rename, numbers, "{why}: the CPU limits the result, not the storage.")
        .with_cure(case.io_uring_denial().map(|_| "Use more --workers, or a larger --bs.".to_owned()))
        .relabelled(Rename::Condition("limited by CPU".into()))
        .found()
}

/// Returns the rate as a share of what all workers can do with no storage, or `None` if that was not measured.
fn share_of_ceiling(case: &Case) -> Option<f64> {
    let ceiling = case.ceiling().ok()?;
    let ns = [&ceiling.loop_ns, &ceiling.interface_ns].into_iter().filter_map(|n| n.as_ref().ok());
    let slowest = ns.copied().max_by(f64::total_cmp).filter(|ns| *ns > 0.0)?;
    let ops: u64 = case.stream.kinds().map(|k| case.in_windows(k).ops).sum();
    let per_worker = ops as f64 / case.window_ns() / f64::from(case.stream.workers.max(1));
    Some(per_worker * slowest).filter(|share| share.is_finite())
}

/// Returns the CPU share of the busiest worker over all runs.
pub(crate) fn busiest(case: &Case) -> Option<f64> {
    cpu_shares(case).into_iter().map(|[cpu, _]| cpu).max_by(f64::total_cmp)
}

/// Returns, for each worker over all runs, its shares of time on a CPU, and ready but waiting for one. Neither is
/// waiting for storage. Without a kernel count of the second (D08), it is 0.
fn cpu_shares(case: &Case) -> Vec<[f64; 2]> {
    let mut sums: BTreeMap<u32, [f64; 3]> = BTreeMap::new();
    for worker in stream_workers(case) {
        let [cpu, ready, wall] = sums.entry(worker.worker).or_default();
        *cpu += worker.user_ns as f64 + worker.system_ns as f64;
        *ready += worker.ready_ns.as_ref().map_or(0.0, |ns| *ns as f64);
        *wall += worker.wall_ns as f64;
    }
    let measured = sums.into_values().filter(|[cpu, _, wall]| *cpu > 0.0 && *wall > 0.0);
    measured.map(|[cpu, ready, wall]| [cpu / wall, ready / wall]).collect()
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn waiting_for_a_cpu_is_not_waiting_for_storage() {
    let mut record = Fixture { cpu_share: 0.8, ..Fixture::honest() }.record();
    assert_eq!(CHECK.severity(&record), None);
    for worker in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers) {
        worker.ready_ns = Ok(worker.wall_ns / 8);
    }
    assert_eq!(CHECK.severity(&record), Some(Severity::Rename));
}

#[test]
fn a_rate_near_fathoms_ceiling_relabels() {
    // 10,000 operations per second take 0.1 ms each.
    let near = Fixture { tool_ns: Some([20.0, 90_000.0]), ..Fixture::honest() };
    assert_eq!(CHECK.severity(&near.record()), Some(Severity::Rename));
    let far = Fixture { tool_ns: Some([20.0, 50_000.0]), ..Fixture::honest() };
    assert_eq!(CHECK.severity(&far.record()), None);
}

#[test]
fn the_null_engine_is_not_checked() {
    let null = Fixture { role: model::plan::Role::None, engine: "null", cpu_share: 1.0, ..Fixture::honest() };
    assert_eq!(CHECK.answer(&null.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn the_fix_does_not_name_io_uring_if_it_is_denied() {
    let mut record = Fixture { cpu_share: 0.99, ..Fixture::honest() }.record();
    let fact = "kernel 4.19.0 is too old (ENOSYS)".to_owned();
    record.header.hosts[0].facts.insert(model::evidence::IO_URING.into(), Ok(fact));
    let Ok(Answer::Finding(found)) = CHECK.answer(&record) else { panic!("silent") };
    assert!(found.cure.is_some_and(|cure| !cure.contains("io_uring")));
}
