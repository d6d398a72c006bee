//! B06: submission calls that block until the operation is done, in engines that promise not to block. Compares
//! the mean time of calls that wait for nothing with the mean latency.

use crate::checks::prelude::*;

/// Engines whose calls submit and return.
const ASYNCHRONOUS: &[&str] = &["io_uring", "libaio"];
/// Share of a latency that its submission may take. A queue of depth d limited only by the cost of submission
/// shows 1/d, so depth two shows half without blocking.
const FREE_UP_TO: f64 = 0.5;
/// Allowance for clocks and means.
const SLACK: f64 = 0.1;

pub(super) const CHECK: Check = Check {
    id: CheckId::B06,
    name: "SUBMIT_BLOCKS",
    belief: "submitting an operation did not wait for it",
    reads: "The time inside each call that submitted operations without waiting for any, from one clock \
            stamp before it and one after it, and the latencies. Engines io_uring and libaio from depth 2.",
    formula: formula!(
        "Mean time of such a call / mean latency: biased above {limit}. A queue of depth d that only the \
         cost of submission limits shows 1/d, so depth 2 may show {FREE_UP_TO}, and --batch SUBMIT/DEPTH. \
         Clocks and means get {SLACK}. Microseconds alone prove nothing: notifying a virtual disk takes \
         twenty.",
        limit = FREE_UP_TO + SLACK
    ),
    provoke: "`fathom run --rw randread --bs 4k --depth 16 --cache buffered --engine libaio DIR`: each call \
              returns with its block already read. `--engine io_uring` shows it if the page cache answers.",
    fix: "Use --cache direct and overwrite allocated files, or use more --workers instead of --depth.",
    accept: "Accept it if the application does the same, and read the depth as one per worker.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture {
            latency_ns: Some(crate::fixture::SUBMIT_NS),
            ..crate::fixture::Fixture::honest()
        }
        .record()
    }),
    #[cfg(test)]
    blind: || without_submit(&crate::fixture::Fixture::honest()),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let stream = &case.stream;
    let depth = u64::from(stream.depth).saturating_mul(stream.lanes()) as f64;
    let ops_per_call = f64::from(stream.batch.submit);
    let asynchronous = ASYNCHRONOUS.contains(&stream.engine.as_str()) && case.has_storage();
    // A call that fills the whole queue also waits, so its time proves nothing.
    let limit = share(ops_per_call, depth).max(FREE_UP_TO) + SLACK;
    if !asynchronous || depth < 2.0 || limit >= 1.0 {
        return Ok(Answer::DoesNotApply);
    }
    let submit = case.submit().and_then(|h| h.mean_ns());
    let submit = submit.ok_or("no call submitted operations without waiting for one")?;
    let latency = latency_mean(case).ok_or("no operation completed")?;
    let part = share(submit, latency);
    let numbers =
        evidence([("submit_ns_mean", submit), ("latency_ns_mean", latency), ("submit_share", part)]);
    if part <= limit {
        return holds("Submitting operations did not wait for them.", numbers);
    }
    detail!(
        Severity::Biased,
        numbers,
        "Submission took {} of the {} of an operation ({}): the operation ran inside the submission call, so \
         it was not asynchronous.",
        show_ns(submit),
        show_ns(latency),
        show_share(part.min(1.0))
    )
    .with_cure(stream.cache.is_direct().then(|| {
        "Overwrite an allocated file, check whether the device's queue is full (B09), or use more --workers \
         instead of --depth."
            .into()
    }))
    .found()
}

/// Returns the mean latency of reads and writes in ns. In an open loop it starts at the submission.
fn latency_mean(case: &Case) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for ran in &case.runs {
        for end in Kind::MOVING.iter().filter_map(|k| ran.stream.kinds.get(k)) {
            let h = service_latency(end);
            sum += h.sum_ns() as f64;
            count += h.count() as f64;
        }
    }
    (count > 0.0).then(|| sum / count)
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
        CHECK.severity(&fixture.record())
    };
    assert_eq!(at(32, SUBMIT_NS + 100), Some(Severity::Biased));
    assert_eq!(at(2, 2 * SUBMIT_NS), None);
    assert_eq!(at(1, SUBMIT_NS), None, "depth 1 is not asynchronous anyway");
}

#[test]
fn synchronous_engines_and_calls_that_fill_the_queue_are_not_checked() {
    let sync = Fixture { engine: "sync", latency_ns: Some(SUBMIT_NS), ..Fixture::honest() };
    assert_eq!(CHECK.answer(&sync.record()), Ok(Answer::DoesNotApply));
    let mut full = Fixture::honest().record();
    full.header.plan.jobs[0].phases[0].streams[0].batch.submit = 32;
    assert_eq!(CHECK.answer(&full), Ok(Answer::DoesNotApply));
}
