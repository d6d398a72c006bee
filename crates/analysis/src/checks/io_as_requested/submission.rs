//! Whether the engine submitted and completed operations in the way that it promises (B06, B07, B08).
//!
//! B06 compares the mean time of submission calls that should not wait with the mean latency: a long call
//! blocked. B07 counts the threads named `iou-wrk-` among fathom's threads; the kernel does not count the
//! operations that io_uring passes to them. B08 compares requests for polled completions with `queue/io_poll`
//! of the devices below the target.

use crate::checks::prelude::*;
use model::evidence::THREADS;

/// Engines whose calls submit operations and return without waiting for them.
const ASYNCHRONOUS: &[&str] = &["io_uring", "libaio"];
/// Harmless share of a latency that the submission takes. If only the cost of submission limits a queue of depth d, the share
/// is 1/d: half at depth two, without any blocking.
const FREE_UP_TO: f64 = 0.5;
/// Added to the limit of the submission share, because the clocks are not exact and means are compared.
const SLACK: f64 = 0.1;

pub(super) const SUBMIT_BLOCKS: Check = Check {
    id: CheckId::B06,
    name: "SUBMIT_BLOCKS",
    belief: "submitting an operation did not wait for it",
    reads: "The time inside each call that submitted operations without waiting for any, from one clock \
            stamp before it and one after it, and the latencies. Engines io_uring and libaio from depth 2.",
    formula: formula!(
        "Mean time of such a call / mean latency: biased above {limit}. If only the cost of submission \
         limits a queue of depth d, the ratio is 1/d, so {FREE_UP_TO} is allowed for depth 2, and \
         SUBMIT/DEPTH with --batch. {SLACK} is added for the clocks and the means. The time alone proves nothing: \
         notifying a virtual disk takes 20 us.",
        limit = FREE_UP_TO + SLACK
    ),
    provoke: "`fathom run --rw randread --bs 4k --depth 16 --cache buffered --engine libaio DIR`: each call \
              returns with its block already read. `--engine io_uring` shows it if the page cache answers.",
    fix: "Use --cache direct and overwrite allocated files, or use more --workers instead of --depth.",
    accept: "Accept it if the application does the same, and read the depth as one per worker.",
    applies: |case| ASYNCHRONOUS.contains(&case.stream.engine.as_str()) && case.has_storage(),
    ask: Ask::Alone(check_submit_blocks),
    #[cfg(test)]
    fires: Some(|| Fixture { latency_ns: Some(crate::fixture::SUBMIT_NS), ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || without_submit(&Fixture::honest()),
};

fn check_submit_blocks(case: &Case) -> Known<Answer> {
    let stream = &case.stream;
    let depth = u64::from(stream.depth).saturating_mul(stream.lanes()) as f64;
    let ops_per_call = f64::from(stream.batch.submit);
    // A call that fills the whole queue also waits, so its time proves nothing.
    let limit = share(ops_per_call, depth).max(FREE_UP_TO) + SLACK;
    if depth < 2.0 || limit >= 1.0 {
        return Ok(Answer::DoesNotApply);
    }
    let submit = case.submit().and_then(|h| h.mean_ns());
    let submit = submit.ok_or("no call submitted operations without also waiting for a completion")?;
    let latency = mean_latency_ns(case).ok_or("no operation completed")?;
    let part = share(submit, latency);
    let numbers =
        evidence([("submit_ns_mean", submit), ("latency_ns_mean", latency), ("submit_share", part)]);
    if part <= limit {
        return holds("Submitting operations did not wait for them.", numbers);
    }
    detail!(
        Severity::Biases,
        numbers,
        "Submission took {} of the {} of an operation ({}): the call waited instead of returning at once, so \
         the operation was not asynchronous.",
        show_ns(submit),
        show_ns(latency),
        show_share(part.min(1.0))
    )
    .with_fix(stream.cache.is_direct().then(|| {
        "Overwrite an allocated file, check whether the device's queue is full (B09), or use more --workers \
         instead of --depth."
            .into()
    }))
    .found()
}

/// Returns the mean latency of reads and writes in ns. In an open loop it starts at the submission.
fn mean_latency_ns(case: &Case) -> Option<f64> {
    let ends =
        case.runs.iter().flat_map(|ran| Kind::MOVING.iter().filter_map(|kind| ran.stream.kinds.get(kind)));
    let latencies: Vec<&Histogram> = ends.map(service_latency).collect();
    let count: f64 = latencies.iter().map(|latencies| latencies.count() as f64).sum();
    let sum: f64 = latencies.iter().map(|latencies| latencies.sum_ns() as f64).sum();
    (count > 0.0).then(|| sum / count)
}

/// Name prefix of the kernel threads that run operations that would block.
const WORKER_PREFIX: &str = "iou-wrk-";
/// At this number of kernel threads per worker or above, operations ran in parallel threads. Each worker has its own
/// ring, and a ring keeps one thread for five seconds after a single operation that would have blocked, such as a write
/// during a journal commit.
const PUNTED_FROM: usize = 2;

pub(super) const IOWQ_PUNTED: Check = Check {
    id: CheckId::B07,
    name: "IOWQ_PUNTED",
    belief: "io_uring performed the operations without kernel threads",
    reads: "The names of all threads of fathom in `/proc/self/task/*/comm`, every half second while workers \
            run. Engine io_uring.",
    formula: formula!(
        "Threads whose name begins with `iou-wrk-`: a note below {PUNTED_FROM} for each worker of the stream, \
         since each ring keeps one for five seconds after a single operation that would have blocked. Biased \
         from {PUNTED_FROM} each: then operations ran in parallel threads. Syncs and trims always go to such \
         threads, so jobs with them are not checked, nor are several streams that use io_uring."
    ),
    provoke: "`truncate -s 256m FILE`, then `fathom run --rw randwrite --bs 4k --depth 32 --time 2s \
              --destroy FILE FILE`: a write that allocates a block would wait for the journal.",
    fix: "Overwrite an allocated file with --cache direct, and keep --depth below the device's queue (B09).",
    accept: "Accept it if the application uses io_uring in the same way.",
    applies: |case| case.stream.engine == "io_uring" && case.has_storage(),
    ask: Ask::Alone(check_iowq_punted),
    #[cfg(test)]
    fires: Some(|| with_threads("100: fathom\n101: fathom-0\n102: iou-wrk-101\n103: iou-wrk-101\n")),
    #[cfg(test)]
    blind: || without_threads(),
};

fn check_iowq_punted(case: &Case) -> Known<Answer> {
    case.need_run()?;
    let (workers, completeness) = split_known(Ok(case.runs.iter().map(kernel_workers_in_run).collect()));
    let most_workers = workers.into_iter().max().unwrap_or(0);
    let numbers = evidence([("kernel_workers", most_workers as f64)]);
    if most_workers == 0 {
        completeness?;
        return holds("io_uring performed the operations without kernel threads.", numbers);
    }
    if case.phase_streams().iter().filter(|s| s.engine == case.stream.engine).count() > 1 {
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
    if most_workers >= PUNTED_FROM.saturating_mul(rings.max(1)) {
        return finding!(
            Severity::Biases,
            numbers,
            "io_uring passed operations that would have blocked to {} kernel threads: their latency includes \
             waking a thread.",
            show_count(most_workers as f64)
        );
    }
    finding!(
        Severity::Note,
        numbers,
        "io_uring sometimes used a kernel thread: at least one operation would have blocked at submission."
    )
}

/// Returns the number of kernel worker threads seen in a run.
fn kernel_workers_in_run(ran: &CaseRun) -> Known<usize> {
    let mut worker_ids: Option<BTreeSet<&str>> = None;
    for snapshot in ran.run.evidence.iter().filter(|s| s.files.contains_key(THREADS)) {
        worker_ids.get_or_insert_default().extend(kernel_worker_ids(snapshot.text(THREADS)?));
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
fn kernel_worker_ids(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|l| l.split_once(": "))
        .filter(|(_, name)| name.starts_with(WORKER_PREFIX))
        .map(|(tid, _)| tid)
}

pub(super) const NOT_POLLING: Check = Check {
    id: CheckId::B08,
    name: "NOT_POLLING",
    belief: "completions were polled, as requested",
    reads: "`queue/io_poll` of every device below the target that has it, and the options of the engine: \
            `iopoll` of io_uring, `hipri` of vsync.",
    formula: formula!(
        "Invalid if polling was requested and a device reports 0: the kernel then waits for the interrupt \
         and reports no error. The engine refuses such a run beforehand. This check also covers devices \
         below file systems and stacks that the engine cannot query."
    ),
    provoke: "`fathom run --engine io_uring:iopoll --cache direct DIR` on a disk without poll queues is \
              refused with that reason. `fathom run --engine vsync:hipri DIR` on a btrfs of such a disk, \
              which the engine cannot query, makes this check fire.",
    fix: "Omit the option, or give the driver poll queues (`nvme.poll_queues=2` on the kernel command line).",
    accept: "Do not accept it: the number was measured with interrupts.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_not_polling),
    #[cfg(test)]
    fires: Some(|| polled(Some("0\n"))),
    #[cfg(test)]
    blind: || polled(None),
};

fn check_not_polling(case: &Case) -> Known<Answer> {
    let Some(option) = case.polling_option() else { return Ok(Answer::DoesNotApply) };
    let layers = case.layers(|l| l.queue.contains_key("io_poll"));
    if let Some(layer) = layers.iter().find(|l| l.queue_number("io_poll") == Ok(0)) {
        return finding!(
            Severity::Invalidates,
            evidence([("io_poll", 0.0)]),
            "Option {option} requests polled completions, but {} completes by interrupt (its queue/io_poll \
             is 0).",
            layer.name
        );
    }
    case.need_resolved_stack()?;
    layers.iter().try_for_each(|layer| layer.queue_number("io_poll").map(drop))?;
    if !layers.is_empty() {
        let sentence = "The devices below can poll for completions, as requested.";
        return holds(sentence, evidence([("io_poll", 1.0)]));
    }
    Err(format!("option {option} requests polling, but no device below reports whether it polls"))
}

#[cfg(test)]
use crate::fixture::{Fixture, SUBMIT_NS};

#[cfg(test)]
fn without_submit(fixture: &Fixture) -> model::record::Record {
    let mut record = fixture.record();
    for run in &mut record.runs {
        let streams = run.end.iter_mut().flat_map(|e| &mut e.streams);
        streams.for_each(|s| s.submit.clear());
    }
    record
}

#[test]
fn a_call_as_long_as_the_operation_biases_and_half_at_depth_two_is_silent() {
    let at = |depth, latency| {
        let fixture = Fixture { depth, latency_ns: Some(latency), ..Fixture::honest() };
        SUBMIT_BLOCKS.severity(&fixture.record())
    };
    assert_eq!(at(32, SUBMIT_NS + 100), Some(Severity::Biases));
    assert_eq!(at(2, 2 * SUBMIT_NS), None);
    assert_eq!(at(1, SUBMIT_NS), None, "depth 1 is not asynchronous anyway");
}

#[test]
fn b06_does_not_apply_to_synchronous_engines_and_calls_that_fill_the_queue() {
    let sync = Fixture { engine: "sync", latency_ns: Some(SUBMIT_NS), ..Fixture::honest() };
    assert_eq!(SUBMIT_BLOCKS.answer(&sync.record()), Ok(Answer::DoesNotApply));
    let mut full = Fixture::honest().record();
    full.header.plan.jobs[0].phases[0].streams[0].batch.submit = 32;
    assert_eq!(SUBMIT_BLOCKS.answer(&full), Ok(Answer::DoesNotApply));
}

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
    let at = |text| IOWQ_PUNTED.severity(&with_threads(text));
    assert_eq!(at("101: fathom-0\n102: iou-wrk-101\n104: iou-wrk-101\n"), Some(Severity::Biases));
    assert_eq!(at("101: fathom-0\n102: iou-wrk-101\n"), Some(Severity::Note));
    assert_eq!(at("101: fathom-0\n102: iou-sqp-101\n"), None);
    // Single operations leave one thread for each of two rings.
    let mut two_rings = with_threads("103: iou-wrk-101\n104: iou-wrk-102\n");
    two_rings.header.plan.jobs[0].phases[0].streams[0].workers = 2;
    assert_eq!(IOWQ_PUNTED.severity(&two_rings), Some(Severity::Note));
}

#[test]
fn jobs_with_syncs_are_not_checked_and_other_engines_do_not_apply() {
    let mut record = with_threads("102: iou-wrk-101\n103: iou-wrk-101\n");
    let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
    stream.access.lines[0].mix = model::job::Mix::from_percents(90, 10);
    assert!(IOWQ_PUNTED.answer(&record).is_err());
    record.header.plan.jobs[0].phases[0].streams[0].engine = "sync".into();
    assert_eq!(IOWQ_PUNTED.answer(&record), Ok(Answer::DoesNotApply));
}

#[test]
fn a_run_without_a_thread_sample_is_not_checked() {
    let mut record = Fixture::honest().record();
    record.runs[1].evidence.iter_mut().for_each(|s| drop(s.files.remove(THREADS)));
    assert!(IOWQ_PUNTED.answer(&record).is_err_and(|why| why.contains("too short")));
    let mut punted = with_threads("102: iou-wrk-101\n103: iou-wrk-101\n");
    punted.runs[1].evidence.iter_mut().for_each(|s| drop(s.files.remove(THREADS)));
    assert_eq!(IOWQ_PUNTED.severity(&punted), Some(Severity::Biases), "another run shows it");
}

#[cfg(test)]
fn polled(io_poll: Option<&str>) -> model::record::Record {
    let mut record = Fixture::honest().record();
    record.header.plan.jobs[0].phases[0].streams[0].options.insert("iopoll".into(), None);
    let queue = &mut record.header.hosts[0].places[0].layers[0].queue;
    queue.remove("io_poll");
    io_poll.map(|text| queue.insert("io_poll".into(), text.into()));
    record
}

#[test]
fn a_polling_queue_holds_and_one_without_polling_is_void() {
    assert!(matches!(NOT_POLLING.answer(&polled(Some("1\n"))), Ok(Answer::Holds(..))));
    assert_eq!(NOT_POLLING.severity(&polled(Some("0\n"))), Some(Severity::Invalidates));
    assert!(NOT_POLLING.answer(&polled(Some("maybe"))).is_err());
    assert!(NOT_POLLING.answer(&polled(None)).is_err());
}
