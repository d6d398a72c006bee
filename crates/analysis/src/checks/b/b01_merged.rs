//! B01: small direct operations that the kernel merged into larger requests. Compares the operations with the
//! requests that the device completed; if other streams share the device, decides by bounds.

use crate::checks::b::{Requests, SAME_BYTES, is_comparable, shared_bounds, worst_requests};
use crate::checks::prelude::*;

/// Operations per request above which the device did not see the requested size. If every second operation finds
/// one neighbour the ratio is 1.33, which a busy scheduler does to any sequential queue.
const BIASED_ABOVE: f64 = 1.5;
/// The engine that joins neighbours before the kernel sees them.
const JOINS: &str = "preadv";
/// Operations per request at or above which most operations share a request.
const RENAMED_FROM: f64 = 2.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::B01,
    name: "MERGED",
    belief: "the device saw operations of the requested size",
    reads: "fathom's own count of operations and bytes submitted, and requests, merges and bytes in the \
            `stat` file of the top device, both from the start of a run to its last completion. Only direct \
            I/O is checked.",
    formula: formula!(
        "Operations / device requests, per direction: biased above {BIASED_ABOVE}, relabelled from \
         {RENAMED_FROM}, where most operations share a request. Up to {BIASED_ABOVE}, a scheduler merges a \
         few neighbours in any sequential queue. Checked only if device and operations agree in bytes within \
         {same}, otherwise the requests are not fathom's. If other streams use the device at the same time, \
         the check holds if even all merges together could not exceed the limit for this stream; otherwise \
         it does not answer.",
        same = Share(SAME_BYTES)
    ),
    provoke: "`fathom run --rw read --bs 4k --depth 32 --batch 16 DIR`: sixteen neighbours are submitted in \
              one call, and the kernel makes one request of them.",
    fix: "Submit operations one at a time (`--batch 1`), use the size that the device really got as --bs, or \
          disable merging (`echo 2 > /sys/block/DISK/queue/nomerges`).",
    accept: "Accept it if you want to know what an application with small neighbouring operations gets, \
             merging included.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { merged: 4, ..crate::fixture::Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !is_comparable(case) {
        return Ok(Answer::DoesNotApply);
    }
    if let Some(bound) = shared_bounds(case)? {
        // The kernel counts no merges for an engine that joins neighbours itself.
        if bound.ops_per_request > BIASED_ABOVE || case.stream.engine == JOINS {
            return Err(case.why_shared()?);
        }
        let numbers = evidence([("ops_per_request_at_most", bound.ops_per_request)]);
        return holds("The device saw operations of the requested size.", numbers);
    }
    let worst = worst_requests(case, Requests::ops_per_request)?;
    let numbers = evidence([
        ("ops_per_request", worst.ops_per_request()),
        ("request_bytes_mean", worst.request_bytes()),
        ("operation_bytes_mean", worst.op_bytes()),
        ("merges", worst.device.merges as f64),
    ]);
    if worst.ops_per_request() <= BIASED_ABOVE {
        return holds("The device saw operations of the requested size.", numbers);
    }
    let is_relabelled = worst.ops_per_request() >= RENAMED_FROM;
    let disk = case.shared().map_or_else(|_| "DISK".into(), |l| layer_names(&l));
    detail!(
        if is_relabelled { Severity::Rename } else { Severity::Biased },
        numbers,
        "The job requested operations of {}, but the device got requests of {} on average: {} {} \
         neighbouring {}s into each.",
        round(worst.op_bytes()),
        round(worst.request_bytes()),
        if case.stream.engine == JOINS { "the engine joined" } else { "the kernel merged" },
        show_rate(worst.ops_per_request()),
        worst.kind.word()
    )
    .with_cure(if case.stream.engine == JOINS {
        "Submit operations one at a time (`--batch 1`), or use the size that the device really got as --bs."
            .into()
    } else {
        CHECK.fix.replace("DISK", &disk)
    })
    .relabelled(is_relabelled.then(|| Rename::Condition(describe_requests(&worst))))
    .found()
}

fn describe_requests(requests: &Requests) -> String {
    format!("merged to requests of ~{}", round(requests.request_bytes()))
}

/// Rounds a mean size to KiB.
fn round(bytes: f64) -> String {
    let kib = (bytes / 1024.0).round();
    if kib >= 1.0 { show_bytes((kib * 1024.0) as u64) } else { show_bytes(bytes as u64) }
}

#[cfg(test)]
use crate::checks::b::merge_some;
#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn half_merged_relabels_and_a_quarter_merged_is_silent() {
    let at = |part| CHECK.severity(&merge_some(Fixture::honest().record(), part));
    assert_eq!(at(0.5), Some(Severity::Rename));
    assert_eq!(at(0.4), Some(Severity::Biased));
    assert_eq!(at(0.25), None);
}

#[test]
fn the_sentence_names_the_engine_or_the_kernel() {
    let sentence_with = |engine| {
        let Ok(Answer::Finding(f)) =
            CHECK.answer(&Fixture { merged: 4, engine, ..Fixture::honest() }.record())
        else {
            panic!("silent")
        };
        f.sentence
    };
    assert!(
        sentence_with("io_uring").contains("the kernel merged 4")
            && sentence_with(JOINS).contains("the engine joined 4")
    );
}

#[test]
fn buffered_operations_and_foreign_bytes_are_not_checked() {
    let buffered = Fixture { merged: 4, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    assert_eq!(CHECK.answer(&buffered.record()), Ok(Answer::DoesNotApply));
    let foreign = Fixture { foreign_ios: 9_000, ..Fixture::honest() };
    assert!(CHECK.answer(&foreign.record()).is_err());
}
