//! B07: operations that io_uring passed to kernel threads. Counts the threads named `iou-wrk-` among fathom's
//! threads during the runs. The kernel does not count the operations that they do.

use crate::checks::prelude::*;
use model::evidence::THREADS;

/// Name prefix of the kernel threads that run operations that would block.
const WORKER_PREFIX: &str = "iou-wrk-";
/// Least threads per worker that show operations running in parallel threads. Each worker has its own ring, and a ring
/// keeps one thread for five seconds after a single operation that would have blocked, such as a write during a
/// journal commit.
const BIASED_FROM: usize = 2;

pub(super) const CHECK: Check = Check {
    id: CheckId::B07,
    name: "IOWQ_PUNTED",
    belief: "io_uring performed the operations without kernel threads",
    reads: "The names of all threads of fathom in `/proc/self/task/*/comm`, every half second while workers \
            run. Engine io_uring.",
    formula: formula!(
        "Threads whose name begins with `iou-wrk-`: a note below {BIASED_FROM} for each worker of the phase, \
         since each ring keeps one for five seconds after a single operation that would have blocked. Biased \
         from {BIASED_FROM} each: then operations ran in parallel threads. Syncs and trims always go to such \
         threads, so jobs with them are not checked."
    ),
    provoke: "`truncate -s 256m FILE`, then `fathom run --rw randwrite --bs 4k --depth 32 --time 2s \
              --destroy FILE FILE`: a write that allocates a block would wait for the journal.",
    fix: "Overwrite an allocated file with --cache direct, and keep --depth below the device's queue (B09).",
    accept: "Accept it if the application uses io_uring in the same way.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| with_threads("100: fathom\n101: fathom-0\n102: iou-wrk-101\n103: iou-wrk-101\n")),
    #[cfg(test)]
    blind: || without_threads(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if case.stream.engine != "io_uring" || !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let mut most_workers = 0;
    for ran in &case.runs {
        most_workers = most_workers.max(kernel_workers_in_run(ran)?);
    }
    case.need_run()?;
    let numbers = evidence([("kernel_workers", most_workers as f64)]);
    if most_workers == 0 {
        return holds("io_uring performed the operations without kernel threads.", numbers);
    }
    let streams = phase_streams(case);
    if streams.iter().filter(|s| s.engine == case.stream.engine).count() > 1 {
        return not_checked(
            "several streams use io_uring, and the kernel does not show for which of them its threads worked",
        );
    }
    if case.does(Kind::Sync) || case.does(Kind::Trim) {
        return not_checked(
            "io_uring always passes syncs and trims to kernel threads, so fathom cannot tell whether it \
             passed reads and writes too",
        );
    }
    let rings = case.stream.workers as usize;
    let (severity, sentence) = if most_workers >= BIASED_FROM.saturating_mul(rings.max(1)) {
        let sentence = format!(
            "io_uring passed operations that would have blocked to {} kernel threads: their latency includes \
             waking a thread.",
            show_count(most_workers as f64)
        );
        (Severity::Biased, sentence)
    } else {
        let sentence = "io_uring sometimes used a kernel thread: at least one operation would have blocked \
                        at submission.";
        (Severity::Note, sentence.to_owned())
    };
    Detail::new(severity, sentence, numbers).found()
}

/// Returns the number of kernel worker threads seen in a run.
fn kernel_workers_in_run(ran: &CaseRun) -> Known<usize> {
    let mut worker_ids: Option<BTreeSet<&str>> = None;
    for snapshot in ran.run.evidence.iter().filter(|s| s.files.contains_key(THREADS)) {
        worker_ids.get_or_insert_default().extend(workers(snapshot.text(THREADS)?));
    }
    let has_samples = ran.run.evidence.iter().any(|s| s.moment == Moment::During);
    let why = if has_samples {
        "fathom's threads were not sampled during the run"
    } else {
        "the run is too short: threads are sampled every half second"
    };
    Ok(worker_ids.ok_or(why)?.len())
}

/// Returns the ids of the kernel worker threads in a list of `tid: name`.
fn workers(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|l| l.split_once(": "))
        .filter(|(_, name)| name.starts_with(WORKER_PREFIX))
        .map(|(tid, _)| tid)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn with_threads(text: &str) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.files.insert(THREADS.into(), Ok(text.into()));
    }
    record
}

#[cfg(test)]
fn without_threads() -> model::record::Record {
    let mut record = Fixture::honest().record();
    record.runs.iter_mut().flat_map(|r| &mut r.evidence).for_each(|s| drop(s.files.remove(THREADS)));
    record
}

#[test]
fn two_kernel_workers_bias_and_one_is_a_note() {
    let at = |text| CHECK.severity(&with_threads(text));
    assert_eq!(at("101: fathom-0\n102: iou-wrk-101\n104: iou-wrk-101\n"), Some(Severity::Biased));
    assert_eq!(at("101: fathom-0\n102: iou-wrk-101\n"), Some(Severity::Note));
    assert_eq!(at("101: fathom-0\n102: iou-sqp-101\n"), None);
    // Single operations leave one thread for each of two rings.
    let mut two_rings = with_threads("103: iou-wrk-101\n104: iou-wrk-102\n");
    two_rings.header.plan.jobs[0].phases[0].streams[0].workers = 2;
    assert_eq!(CHECK.severity(&two_rings), Some(Severity::Note));
}

#[test]
fn jobs_with_syncs_and_other_engines_are_not_checked() {
    let mut record = with_threads("102: iou-wrk-101\n103: iou-wrk-101\n");
    let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
    stream.access.lines[0].mix = model::job::Mix::of_percents(90, 10);
    assert!(CHECK.answer(&record).is_err());
    record.header.plan.jobs[0].phases[0].streams[0].engine = "sync".into();
    assert_eq!(CHECK.answer(&record), Ok(Answer::DoesNotApply));
}

#[test]
fn a_run_without_a_thread_sample_is_not_checked() {
    let mut record = Fixture::honest().record();
    record.runs[1].evidence.iter_mut().for_each(|s| drop(s.files.remove(THREADS)));
    assert!(CHECK.answer(&record).is_err_and(|why| why.contains("too short")));
}
