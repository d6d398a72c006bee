//! What the host did during a run: its CPUs, those of our workers, and what tasks waited for.
//!
//! For: figures that stand beside a run's rate. Not for: conclusions from them, which the checks draw (D06, D08, D11, D14).

use crate::case::{Case, CaseRun, share};
use crate::kernel_text::{busy_ticks, grown, pauses, pressure_us};
use crate::pressure::{CPU, IO, MEMORY};
use model::Known;
use model::evidence::Moment;
use model::report::HostFigures;

/// Ticks of 10 ms on all CPUs below which a share of them is rounding.
const LEAST_TICKS: u64 = 20;

/// Of a run; what was not counted is `None`.
pub(crate) fn host_figures(case: &Case, ran: &CaseRun) -> HostFigures {
    let Ok(passed) = passed_ns(ran) else { return HostFigures::default() };
    let waited = |file: &str| {
        let us = grown(ran, file, |text| pressure_us(text, "some")).ok()?;
        Some(share(us as f64 * 1e3, passed).min(1.0))
    };
    HostFigures {
        worker_cpu: busiest(case, ran, passed),
        cpu: cpu(ran).ok(),
        io_pressure: waited(IO),
        cpu_pressure: waited(CPU),
        memory_pressure: waited(MEMORY),
        quota_paused: paused_ns(ran).ok().map(|ns| share(ns, passed)),
    }
}

fn passed_ns(ran: &CaseRun) -> Known<f64> {
    let (start, stop) = (ran.at(Moment::Start)?, ran.at(Moment::Stop)?);
    let passed = stop.at_ns.checked_sub(start.at_ns).filter(|ns| *ns > 0);
    Ok(passed.ok_or("no time passed in the run")? as f64)
}

/// `None` where no worker says, or where they have a clock of their own, as those of the engine `sim` do.
fn busiest(case: &Case, ran: &CaseRun, passed: f64) -> Option<f64> {
    let workers = ran.end.workers.iter().filter(|w| w.stream == case.index && w.wall_ns > 0);
    let shares = workers
        .map(|w| (w.wall_ns as f64, share(w.user_ns.saturating_add(w.system_ns) as f64, w.wall_ns as f64)));
    let busiest = shares.filter(|(wall, _)| *wall <= passed).map(|(_, share)| share).max_by(f64::total_cmp);
    // A thread is on one CPU at a time; a bit more is the rounding of two clocks.
    busiest.filter(|share| *share > 0.0 && *share < 1.05).map(|share| share.min(1.0))
}

fn cpu(ran: &CaseRun) -> Known<f64> {
    let (before, after) = (busy_ticks(ran.at(Moment::Start)?)?, busy_ticks(ran.at(Moment::Stop)?)?);
    // Times of CPUs that are idle may go back by a tick.
    let [busy, all] = [0, 1].map(|at| after[at].saturating_sub(before[at]));
    if all < LEAST_TICKS {
        return Err("the kernel counts in ticks of 10 ms, and too few passed".into());
    }
    Ok(share(busy as f64, all as f64).min(1.0))
}

fn paused_ns(ran: &CaseRun) -> Known<f64> {
    let (before, after) = (pauses(ran.at(Moment::Start)?)?, pauses(ran.at(Moment::Stop)?)?);
    after.1.checked_sub(before.1).map(|ns| ns as f64).ok_or_else(|| "the counters went backwards".into())
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn host_figures_from(record: &model::record::Record) -> HostFigures {
    let case = &crate::case::cases(record)[0];
    host_figures(case, &case.runs[1])
}

#[cfg(test)]
fn with_ticks(fields: &str) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for run in &mut record.runs {
        for snapshot in &mut run.evidence {
            let text = if snapshot.moment == Moment::Stop { fields } else { "cpu  0 0 0 0 0 0 0 0 0 0\n" };
            snapshot.files.insert("/proc/stat".into(), Ok(text.into()));
        }
    }
    record
}

#[test]
fn shares_are_of_the_runs_time_and_waiting_for_io_is_no_work() {
    let mut record = with_ticks("cpu  30 0 20 100 40 5 5 0 0 0\n");
    crate::pressure::fixture(&mut record, IO, 0.25);
    let host = host_figures_from(&record);
    assert!(host.cpu.is_some_and(|share| (share - 0.3).abs() < 1e-9), "{host:?}");
    assert!(host.io_pressure.is_some_and(|share| (share - 0.25).abs() < 1e-3), "{host:?}");
    assert!(host.worker_cpu.is_some_and(|share| share > 0.0 && share <= 1.0), "{host:?}");
}

#[test]
fn what_was_not_counted_is_not_zero() {
    let mut record = with_ticks("cpu  1 0 1 2 0 0 0 0 0 0\n");
    assert_eq!(host_figures_from(&record).cpu, None, "four ticks are rounding");
    for run in &mut record.runs {
        run.evidence.iter_mut().for_each(|snapshot| snapshot.files.clear());
        for worker in run.end.iter_mut().flat_map(|end| &mut end.workers) {
            worker.wall_ns = worker.wall_ns.saturating_mul(1000);
        }
    }
    assert!(host_figures_from(&record).is_unknown(), "{:?}", host_figures_from(&record));
    record.runs.iter_mut().for_each(|run| run.evidence.clear());
    assert!(host_figures_from(&record).is_unknown());
}
