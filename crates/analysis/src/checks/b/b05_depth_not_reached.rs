//! B05: a queue that was never as deep as was asked.
//!
//! For: our own count of operations in flight, and the device's. Not for: depth 1, where thinking between operations
//! is part of the workload.

use crate::case::{Case, asked_depth, share};
use crate::checks::{Answer, Ask, Check, Detail, Evidence, Page, Rename, evidence, formula};
use crate::threshold::Share;
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::units::show_rate;

/// Share of the depth asked that must be in flight on average.
const REACHED_FROM: f64 = 0.5;
/// In flight per worker up to which an engine does one operation at a time; the slack is rounding.
const ONE_AT_A_TIME: f64 = 1.05;
/// Share of the issued bytes from which the device's queue is ours to judge.
const OURS_FROM: Share = Share(0.95);

pub(super) const CHECK: Check = Check {
    id: CheckId::B05,
    name: "DEPTH_NOT_REACHED",
    belief: "as many operations were in flight as were asked for",
    page: Page {
        reads: "Our own integral of operations in flight over each window; for direct I/O also requests, bytes and \
                time-in-queue in the `stat` file of the top device.",
        formula: formula!(
            "Mean operations in flight / (depth x workers x targets): below {REACHED_FROM} renamed to the depth that there \
             was. The device's own count is compared too: where it did at least {OURS_FROM} of our bytes, and its \
             time-in-queue gives less than {REACHED_FROM} of the depth, allowing for merged requests, the rest waited above \
             it. Not asked at depth 1, nor where a schedule, pauses or drains hold operations back."
        ),
        provoke: "`fathom run --rw randread --depth 32 --engine sync DIR`, or `--engine libaio --cache buffered`: one operation \
                  at a time, whatever the depth says.",
        fix: "Use --engine io_uring with --cache direct, or more --workers instead of --depth.",
        accept: "Accept it where the application's interface is that one; the name keeps the true depth.",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { depth_seen: 0.98, engine: "sync", ..crate::fixture::Fixture::honest() }
            .record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let asked = asked_depth(&case.stream);
    // With a schedule, pauses or drains the depth is room to use and no promise.
    if case.stream.depth <= 1 || !case.stream.is_unheld() {
        return Ok(Answer::DoesNotApply);
    }
    let reached = case.depth_mean()?;
    if reached < REACHED_FROM * asked {
        let mut sentence = format!(
            "Depth {asked:.0} was asked for, and {} operations were in flight on average.",
            show_rate(reached)
        );
        if one_at_a_time(case, reached) {
            sentence += &format!(
                " Each worker had one at a time: with {} each was completed before the next was submitted.",
                case.stream.engine
            );
        }
        return Ok(found(
            case,
            sentence,
            reached,
            evidence([("asked_depth", asked), ("depth_mean", reached)]),
        ));
    }
    let own = evidence([("asked_depth", asked), ("depth_mean", reached)]);
    if !case.stream.cache.is_direct() || !case.on_device() {
        // Through the page cache the kernel decides what the device sees; only our own count is ours to promise.
        return Ok(Answer::Holds("The queue was as deep as was asked.", own));
    }
    at_the_device(case, asked, reached, own)
}

/// The device's own count: operations that we count as in flight and the device never saw wait somewhere above it.
fn at_the_device(case: &Case, asked: f64, reached: f64, mut numbers: Evidence) -> Known<Answer> {
    let device = case.device()?;
    let issued = case.issued_total();
    let ms: f64 = case.runs.iter().map(|r| r.active_ns().map(|ns| ns as f64 / 1e6)).sum::<Known<f64>>()?;
    let total = device.total();
    let depth = share(device.queue_ms as f64, ms);
    numbers.extend(evidence([("device_depth_mean", depth)]));
    // The kernel may merge neighbours; then fewer and larger requests are the same queue.
    let merged = share(total.ios as f64, issued.ops as f64).min(1.0);
    let is_ours = share(total.bytes as f64, issued.bytes as f64) >= OURS_FROM;
    if is_ours && depth < REACHED_FROM * asked * merged {
        let sentence = format!(
            "Depth {asked:.0} was asked for, {} operations were in flight on average, and the device saw only {} requests at a time.",
            show_rate(reached),
            show_rate(depth)
        );
        return Ok(found(case, sentence, depth, numbers));
    }
    Ok(Answer::Holds("The queue was as deep as was asked.", numbers))
}

/// Advice where the page's advice is followed already, or where this machine does not allow it.
fn cure(case: &Case) -> Option<String> {
    let denial = case.io_uring_denial();
    let deepest = if denial.is_some() { "libaio" } else { "io_uring" };
    if case.stream.engine == deepest && case.stream.cache.is_direct() {
        return Some(
            "One worker cannot keep this queue full here: use more --workers, and see what limits the row."
                .into(),
        );
    }
    denial.map(|cause| {
        format!(
            "Use --engine libaio with --cache direct, or more --workers instead of --depth. io_uring cannot be used here: {cause}."
        )
    })
}

fn found(case: &Case, sentence: String, depth: f64, numbers: Evidence) -> Answer {
    Answer::Finding(Detail {
        severity: Severity::Rename,
        sentence,
        cure: cure(case),
        evidence: numbers,
        renames: Some(Rename::Depth(depth)),
    })
}

/// Whether each worker had one operation in flight at most.
pub(crate) fn one_at_a_time(case: &Case, reached: f64) -> bool {
    case.stream.depth > 1 && reached > 0.0 && reached <= ONE_AT_A_TIME * f64::from(case.stream.workers)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn thinking_at_depth_one_is_no_finding() {
    let idle = Fixture { depth: 1, depth_seen: 0.2, ..Fixture::honest() };
    assert_eq!(CHECK.answer(&idle.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn operations_that_wait_above_the_device_are_found() {
    let throttled = Fixture { device_time_share: 0.1, ..Fixture::honest() };
    let Ok(Answer::Finding(f)) = CHECK.answer(&throttled.record()) else { panic!("silent") };
    assert!(f.sentence.contains("the device saw only"), "{}", f.sentence);
    // Four neighbours merged into each request: a quarter of the queue is all of it.
    let merged = Fixture { device_time_share: 0.9, merged: 4, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&merged.record()), None);
}

#[test]
fn where_io_uring_is_denied_it_is_not_advised() {
    let denied = |engine: &'static str| {
        let mut record = Fixture { depth_seen: 0.98, engine, ..Fixture::honest() }.record();
        let fact = "a seccomp filter denies it (EPERM)".to_owned();
        record.header.hosts[0].facts.insert(model::kernel_files::IO_URING.into(), Ok(fact));
        let Ok(Answer::Finding(found)) = CHECK.answer(&record) else { panic!("silent") };
        found.cure.unwrap_or_default()
    };
    let sync = denied("sync");
    assert!(sync.contains("--engine libaio") && !sync.contains("--engine io_uring"), "{sync}");
    assert!(denied("libaio").contains("more --workers"), "{}", denied("libaio"));
    assert!(!denied("libaio").contains("--engine"), "{}", denied("libaio"));
}
