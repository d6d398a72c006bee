//! B05: a queue that was never as deep as requested. Compares fathom's mean number of operations in flight, and
//! the device's own count, with the requested depth. Does not apply to depth 1.

use crate::checks::prelude::*;

/// Share of the requested depth that must be in flight on average.
const REACHED_FROM: f64 = 0.5;
/// Operations in flight per worker up to which an engine does one at a time. The excess over 1 allows for
/// rounding.
const ONE_AT_A_TIME: f64 = 1.05;
/// The fix if a limit keeps operations above the device.
const LIFT_THE_LIMIT: &str = "The limit that D04 names keeps operations above the device: raise or lift it.";

pub(super) const CHECK: Check = Check {
    id: CheckId::B05,
    name: "DEPTH_NOT_REACHED",
    belief: "as many operations were in flight as requested",
    reads: "fathom's own integral of operations in flight over each window. For direct I/O also requests, \
            bytes and time-in-queue in the `stat` file of the top device.",
    formula: formula!(
        "Mean operations in flight / (depth x workers x targets): below {REACHED_FROM}, the result is \
         relabelled to the measured depth. The device's own count is compared too: if it moved at least \
         {ARRIVED_FROM} of fathom's bytes and its time-in-queue gives less than {REACHED_FROM} of the depth, \
         allowing for merged requests, the rest waited above the device. Does not apply at depth 1, or if a \
         schedule, pauses or drains hold operations back."
    ),
    provoke: "`fathom run --rw randread --depth 32 --engine sync DIR`, or `--engine libaio --cache \
              buffered`: one operation at a time, whatever --depth requests.",
    fix: "Use --engine io_uring with --cache direct, or more --workers instead of --depth.",
    accept: "Accept it if the application uses this interface. The result's name keeps the true depth.",
    ask: Ask::After(&[CheckId::D04], evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { depth_seen: 0.98, engine: "sync", ..crate::fixture::Fixture::honest() }
            .record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let requested = asked_depth(&case.stream);
    // With a schedule, pauses or drains, the depth is an upper limit.
    if case.stream.depth <= 1 || !case.stream.is_unheld() {
        return Ok(Answer::DoesNotApply);
    }
    let reached = case.depth_mean()?;
    if reached < REACHED_FROM * requested {
        let mut sentence = format!(
            "Depth {requested:.0} was requested, but {} operations were in flight on average.",
            show_rate(reached)
        );
        if one_at_a_time(case, reached) {
            sentence += &format!(
                " Each worker had one at a time: {} completes each operation before it submits the next.",
                case.stream.engine
            );
        }
        return finding(
            sentence,
            reached,
            specific_fix(case),
            evidence([("asked_depth", requested), ("depth_mean", reached)]),
        );
    }
    let own = evidence([("asked_depth", requested), ("depth_mean", reached)]);
    if !case.stream.cache.is_direct() || !case.on_device() {
        // Through the page cache the kernel decides the device's queue, so only fathom's own count is checked.
        return holds("The queue was as deep as requested.", own);
    }
    // Operations above a limit wait for it, and more of them change nothing.
    let is_limited = matches!(earlier.answer(CheckId::D04), Some(Ok(Answer::Finding(f))) if f.severity == Severity::Biased);
    let cure = if is_limited { Some(LIFT_THE_LIMIT.into()) } else { specific_fix(case) };
    check_device_depth(case, requested, reached, cure, own)
}

/// Checks the device's own count. Operations in flight that the device never saw wait in a layer above it.
fn check_device_depth(
    case: &Case,
    requested: f64,
    reached: f64,
    cure: Option<String>,
    mut numbers: Evidence,
) -> Known<Answer> {
    let device = case.device()?;
    let issued = case.issued_total();
    let ms: f64 = case.runs.iter().map(|r| r.active_ns().map(|ns| ns as f64 / 1e6)).sum::<Known<f64>>()?;
    let total = device.total();
    let depth = share(device.queue_ms as f64, ms);
    numbers.extend(evidence([("device_depth_mean", depth)]));
    // If the kernel merges neighbours, fewer and larger requests are the same queue.
    let merged = share(total.ios as f64, issued.ops as f64).min(1.0);
    let is_ours = share(total.bytes as f64, issued.bytes as f64) >= ARRIVED_FROM;
    if is_ours && depth < REACHED_FROM * requested * merged {
        let sentence = format!(
            "Depth {requested:.0} was requested and {} operations were in flight on average, but the device \
             saw only {} requests at a time.",
            show_rate(reached),
            show_rate(depth)
        );
        return finding(sentence, depth, cure, numbers);
    }
    holds("The queue was as deep as requested.", numbers)
}

/// Returns a fix other than the page's if the job already follows that one, or if this machine denies io_uring.
fn specific_fix(case: &Case) -> Option<String> {
    let denial = case.io_uring_denial();
    let deepest = if denial.is_some() { "libaio" } else { "io_uring" };
    if case.stream.engine == deepest && case.stream.cache.is_direct() {
        return Some(
            "One worker cannot fill this queue on this machine: use more --workers, and check the limiter of \
             this result."
                .into(),
        );
    }
    denial.map(|cause| {
        format!(
            "Use --engine libaio with --cache direct, or more --workers instead of --depth. io_uring is not \
             available here: {cause}."
        )
    })
}

fn finding(sentence: String, depth: f64, cure: Option<String>, numbers: Evidence) -> Known<Answer> {
    Detail::new(Severity::Rename, sentence, numbers).with_cure(cure).relabelled(Rename::Depth(depth)).found()
}

/// Whether each worker had at most one operation in flight.
pub(crate) fn one_at_a_time(case: &Case, reached: f64) -> bool {
    case.stream.depth > 1 && reached > 0.0 && reached <= ONE_AT_A_TIME * f64::from(case.stream.workers)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn depth_one_is_not_checked() {
    let idle = Fixture { depth: 1, depth_seen: 0.2, ..Fixture::honest() };
    assert_eq!(CHECK.answer(&idle.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn operations_that_wait_above_the_device_are_found() {
    let throttled = Fixture { device_time_share: 0.1, ..Fixture::honest() };
    let Ok(Answer::Finding(f)) = CHECK.answer(&throttled.record()) else { panic!("silent") };
    assert!(f.sentence.contains("the device saw only"), "{}", f.sentence);
    assert!(f.cure.is_some_and(|cure| cure.contains("--workers")));
    // More workers do not lift a limit of a cgroup.
    let mut limited = throttled.record();
    let limit = "/sys/fs/cgroup/io.max: 254:0 rbps=max wbps=max riops=10000 wiops=max".to_owned();
    limited.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Ok(limit));
    let Ok(Answer::Finding(f)) = CHECK.answer(&limited) else { panic!("silent") };
    assert!(f.cure.is_some_and(|cure| cure.contains("D04") && !cure.contains("--workers")));
    // With four neighbours merged into each request, a quarter of the queue is all of it.
    let merged = Fixture { device_time_share: 0.9, merged: 4, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&merged.record()), None);
}

#[test]
fn the_fix_does_not_name_io_uring_if_it_is_denied() {
    let denied = |engine: &'static str| {
        let mut record = Fixture { depth_seen: 0.98, engine, ..Fixture::honest() }.record();
        let fact = "a seccomp filter denies it (EPERM)".to_owned();
        record.header.hosts[0].facts.insert(model::evidence::IO_URING.into(), Ok(fact));
        let Ok(Answer::Finding(finding)) = CHECK.answer(&record) else { panic!("silent") };
        finding.cure.unwrap_or_default()
    };
    let sync = denied("sync");
    assert!(sync.contains("--engine libaio") && !sync.contains("--engine io_uring"), "{sync}");
    assert!(denied("libaio").contains("more --workers"), "{}", denied("libaio"));
    assert!(!denied("libaio").contains("--engine"), "{}", denied("libaio"));
}
