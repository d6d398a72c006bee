//! D26: a stop or a tracer that halted fathom or its workers. A stop signal, a freezer or a paused machine stops
//! all threads; a debugger, `strace` or a freezer may stop single workers.
//!
//! Adds up how late a thread woke that only sleeps, and counts the samples that found a worker stopped or traced.
//! Waiting for a CPU is D08, a quota D11, and a sleep of the machine D13.

use crate::checks::prelude::*;
use model::record::WorkerStates;
use stats::intervals;

/// Share of the runs' time above which the stop is larger than the variation between runs.
const BIASED_ABOVE: Share = Share(0.01);
/// Share above which the stop decides the number.
const VOID_ABOVE: Share = Share(0.3);

/// One-sided confidence of the bound on the share of stopped samples.
const CONFIDENCE: Share = Share(0.95);

pub(super) const CHECK: Check = Check {
    id: CheckId::D26,
    name: "STOOD_STILL",
    belief: "neither fathom nor a worker was stopped or traced",
    reads: "The thread that watches the workers sleeps for 10 ms at a time. It records how much longer each \
            sleep took, how long it waited for a CPU in that time (`/proc/thread-self/schedstat`), and after \
            each sleep the state, the tracer and the wait channel of up to four workers in turn \
            (`/proc/self/task/TID/status` and `wchan`).",
    formula: formula!(
        "Sleeps that took at least 100 ms too long, less the wait for a CPU: biased above {BIASED_ABOVE} of \
         the runs' time, void above {VOID_ABOVE}. 100 ms is ten ticks of the slowest kernel. The workers \
         themselves cannot detect it: a stop halts all of them and their clocks, so it looks like a device \
         that does not answer. Any sample that finds a worker stopped (state T or t, or in a freezer) or \
         traced biases; void if certainly more than {VOID_ABOVE} of the samples found a worker stopped \
         (exact bound at {CONFIDENCE})."
    ),
    provoke: "`fathom run --rw randread --time 3s DIR`, and at the same time in another terminal `kill -STOP \
              PID; sleep 1; kill -CONT PID`. Or a freezer: `echo FROZEN > freezer.state`. Or a tracer: \
              `strace -f fathom run --rw randread DIR`.",
    fix: "Measure again without anything that stops fathom: job control (Ctrl-Z), a debugger, a freezer, a \
          snapshot of the virtual machine.",
    accept: "Do not accept it: no correction exists for the lost time.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| still(500_000_000)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        record
            .runs
            .iter_mut()
            .filter_map(|r| r.end.as_mut())
            .for_each(|e| e.still = Some(Err("no schedstat".into())));
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    case.need_run()?;
    let (mut total, mut longest, mut times, mut time) = (0.0_f64, 0_u64, 0_u64, 0.0);
    let mut workers = Ok(WorkerStates::default());
    for ran in &case.runs {
        let stall =
            ran.end.still.clone().unwrap_or_else(|| Err("stops of fathom were not recorded".into()))?;
        total += stall.total_ns as f64;
        longest = longest.max(stall.longest_ns);
        times += u64::from(stall.times);
        time += ran.active_ns()? as f64;
        workers = match (workers, stall.workers) {
            (Ok(sum), Some(states)) => states.map(|states| add_states(sum, states)),
            (sum, _) => sum,
        };
    }
    let part = share(total, time);
    let mut numbers = evidence([
        ("still_ns", total),
        ("longest_ns", longest as f64),
        ("times", times as f64),
        ("share", part),
    ]);
    if let Ok(states) = &workers {
        numbers.insert("worker_samples".into(), states.samples as f64);
        numbers.insert("worker_samples_stopped".into(), states.stopped as f64);
        numbers.insert("worker_samples_traced".into(), states.traced as f64);
    }
    let whole_process = (part > BIASED_ABOVE).then(|| {
        let repetitions = if times == 1 {
            String::new()
        } else {
            format!(" ({times} times, at most {})", show_ns(longest as f64))
        };
        let sentence = format!(
            "fathom itself stood still for {}{repetitions}, {} of the runs' time: a signal, a freezer or a \
             debugger stopped it, or the whole machine stopped. Stalls and gaps over time come from that, \
             not from the storage.",
            show_ns(total),
            show_share(part)
        );
        (if part > VOID_ABOVE { Severity::Void } else { Severity::Biased }, sentence)
    });
    let single_workers = workers.as_ref().ok().and_then(stopped_workers);
    let worst = [whole_process, single_workers].into_iter().flatten().min_by_key(|(severity, _)| *severity);
    if let Some((severity, sentence)) = worst {
        return Detail::new(severity, sentence, numbers).found();
    }
    workers?;
    holds("fathom and its workers were not traced, and not stopped for long enough to matter.", numbers)
}

/// Adds the samples of one run to those of the runs before.
fn add_states(sum: WorkerStates, states: WorkerStates) -> WorkerStates {
    WorkerStates {
        samples: sum.samples.saturating_add(states.samples),
        stopped: sum.stopped.saturating_add(states.stopped),
        traced: sum.traced.saturating_add(states.traced),
        tracer: sum.tracer.or(states.tracer),
    }
}

/// Returns the severity and a sentence if workers were stopped or traced, or `None` if no sample found that.
fn stopped_workers(states: &WorkerStates) -> Option<(Severity, String)> {
    if states.stopped == 0 && states.traced == 0 {
        return None;
    }
    let (stopped_at_least, _) = intervals::exact(states.stopped, states.samples, CONFIDENCE.0);
    let severity = if stopped_at_least > VOID_ABOVE.0 { Severity::Void } else { Severity::Biased };
    let stopped = format!(
        "{} of {} samples found a worker stopped ({})",
        show_count(states.stopped as f64),
        show_count(states.samples as f64),
        show_share(share(states.stopped as f64, states.samples as f64))
    );
    let sentence = match &states.tracer {
        Some(tracer) => {
            format!(
                "{tracer} traced fathom's workers, and {stopped}: the rate and the latencies include the \
                 time of each stop."
            )
        }
        None => format!(
            "A signal, a debugger or a freezer stopped fathom's workers: {stopped}. The rate and the \
             latencies include the time of each stop."
        ),
    };
    Some((severity, sentence))
}

/// The honest record of a program that stood still for `ns` in one run.
#[cfg(test)]
fn still(ns: u64) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    let stall = model::record::Still { times: 1, longest_ns: ns, total_ns: ns, workers: None };
    record.runs[0].end.as_mut().unwrap().still = Some(Ok(stall));
    record
}

#[test]
fn a_short_stop_is_silent_a_longer_one_biases_and_most_of_the_time_is_void() {
    let at = |ns| CHECK.severity(&still(ns));
    // Five runs of a second.
    assert_eq!(at(40_000_000), None);
    assert_eq!(at(500_000_000), Some(Severity::Biased));
    assert_eq!(at(3_000_000_000), Some(Severity::Void));
}

#[test]
fn a_tracer_or_a_stopped_worker_biases_and_many_stopped_samples_are_void() {
    let record = |states: Known<WorkerStates>| {
        let mut record = crate::fixture::Fixture::honest().record();
        let still = model::record::Still { workers: Some(states), ..Default::default() };
        record.runs[2].end.as_mut().unwrap().still = Some(Ok(still));
        record
    };
    let states = |stopped, traced| WorkerStates { samples: 100, stopped, traced, tracer: None };
    let at = |states| CHECK.severity(&record(Ok(states)));
    assert_eq!(at(states(0, 0)), None);
    assert_eq!(at(states(1, 0)), Some(Severity::Biased));
    assert_eq!(at(states(33, 0)), Some(Severity::Biased), "a third is not surely more than 30 %");
    assert_eq!(at(states(60, 0)), Some(Severity::Void));
    let gdb = WorkerStates { tracer: Some("gdb (pid 7)".into()), ..states(0, 3) };
    let Ok(Answer::Finding(f)) = CHECK.answer(&record(Ok(gdb))) else { panic!("silent") };
    assert!(f.severity == Severity::Biased && f.sentence.starts_with("gdb (pid 7) traced"), "{}", f.sentence);
    assert!(CHECK.answer(&record(Err("no /proc".into()))).is_err_and(|why| why == "no /proc"));
}
