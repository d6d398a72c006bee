//! B02: large direct operations that the kernel split into several requests. Compares the requests that the
//! device completed with the operations, and names the queue limit or the file fragments that explain the split.

use crate::checks::b::{
    FLOOR_IOS, Requests, SAME_BYTES, incidental_requests, is_comparable, shared_bounds, worst_requests,
};
use crate::checks::prelude::*;

/// Requests per operation above which a latency covers a group of requests. One operation in ten may cross a
/// border of an extent or a boundary of the device.
const BIASED_ABOVE: f64 = 1.1;
/// The same limit if no known cause splits: small requests by other processes next to large operations look like
/// splitting, and their bytes do not show.
const UNEXPLAINED_ABOVE: f64 = 1.5;

pub(super) const CHECK: Check = Check {
    id: CheckId::B02,
    name: "SPLIT",
    belief: "one operation was one request to the device",
    reads: "fathom's own count of operations, and the requests in the `stat` file of the top device from the \
            start of a run to its last completion. Also `queue/max_sectors_kb`, `max_segments` and \
            `chunk_sectors`, and the map of the file's extents.",
    formula: formula!(
        "Device requests / operations, per direction: biased above {BIASED_ABOVE}, since up to a tenth of \
         the operations may cross a border of the file's extents. If neither the limits of the queue nor the \
         file's extents explain it, biased above {UNEXPLAINED_ABOVE}, since small requests of other \
         processes look the same. {FLOOR_IOS} requests per run are allowed for a journal. Checked \
         only if device and operations agree in bytes within {same}. If other streams use the device at the \
         same time, the check holds if the requests stay within the limit even if the others made as few as \
         possible; otherwise it does not answer.",
        same = Share(SAME_BYTES)
    ),
    provoke: "`echo 256 > /sys/block/DISK/queue/max_sectors_kb`, then `fathom run --rw read --bs 1m DIR`: \
              each operation becomes four requests. On most disks `--bs 8m` is enough without the first \
              command.",
    fix: "Raise queue/max_sectors_kb up to max_hw_sectors_kb, or use a --bs that fits.",
    accept: "The throughput is right either way; latency and depth are those of groups of requests. Accept \
             it if the application works like this.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| split(crate::fixture::Fixture::honest().record(), 4)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !is_comparable(case) {
        return Ok(Answer::DoesNotApply);
    }
    if let Some(bound) = shared_bounds(case)? {
        if bound.requests_per_op > BIASED_ABOVE {
            return Err(case.why_shared()?);
        }
        let numbers = evidence([("requests_per_op_at_most", bound.requests_per_op)]);
        return holds("One operation was one request to the device.", numbers);
    }
    let worst = worst_requests(case, Requests::requests_per_op)?;
    let per_op = worst.requests_per_op();
    let numbers = evidence([
        ("requests_per_op", per_op),
        ("operation_bytes_mean", worst.op_bytes()),
        ("request_bytes_mean", worst.request_bytes()),
    ]);
    if per_op <= BIASED_ABOVE {
        return holds("The device got about one request for each operation.", numbers);
    }
    let extra_requests = worst.device.ios.saturating_sub(worst.issued.ops);
    if extra_requests <= incidental_requests(case) {
        return Err(format!(
            "the device did {extra_requests} more requests than operations, too few to distinguish splitting \
             from a journal; measure for longer"
        ));
    }
    let known_cause = cause(case, &worst);
    if known_cause.is_none() && per_op <= UNEXPLAINED_ABOVE {
        return Err(format!(
            "the device did {} requests for each operation, which neither its queue limits nor the file's \
             extents explain; they may belong to other processes",
            show_rate(per_op)
        ));
    }
    let (cause, cure) = known_cause.unwrap_or_else(|| {
        let cure = "Check max_segments and chunk_sectors of the device's queue, or use a smaller --bs.";
        (String::new(), cure.into())
    });
    detail!(
        Severity::Biased,
        numbers,
        "Each {} of {} became {} requests to the device{cause}: its latency is that of the group, and the \
         device's queue is deeper than requested.",
        worst.kind.word(),
        show_bytes(worst.op_bytes() as u64),
        show_rate(per_op)
    )
    .with_cure(cure)
    .found()
}

/// Returns the cause and the fix if the queue limits or the file's extents explain the split.
fn cause(case: &Case, requests: &Requests) -> Option<(String, String)> {
    let largest = u64::from(case.stream.access.largest_bytes());
    for layer in case.shared().unwrap_or_default() {
        let Ok(limit) = layer.queue_number("max_sectors_kb").map(|kb| kb.saturating_mul(1024)) else {
            continue;
        };
        if limit < largest {
            let hardware = layer.queue_number("max_hw_sectors_kb").map_or(0, |kb| kb.saturating_mul(1024));
            let cure = if hardware > limit {
                format!(
                    "Raise /sys/block/{}/queue/max_sectors_kb, or use --bs {} or less.",
                    layer.name,
                    show_bytes(limit)
                )
            } else {
                format!(
                    "Use --bs {} or less, which is the largest request of {}.",
                    show_bytes(limit),
                    layer.name
                )
            };
            return Some((
                format!(" ({} takes at most {} per request)", layer.name, show_bytes(limit)),
                cure,
            ));
        }
    }
    // One operation in ten crosses a border if a piece is ten operations long.
    let ten_operations_bytes = (requests.op_bytes() as u64).saturating_mul(10);
    let has_short_pieces =
        |e: &model::evidence::Extents| e.count > 1 && e.span_bytes / e.count < ten_operations_bytes;
    case.extents().is_ok_and(|all| all.iter().any(has_short_pieces)).then(|| {
        let cure = "Let fathom make its own file on a file system with more contiguous free space.";
        (" (the file has small extents)".into(), cure.into())
    })
}

/// A record with `by` requests in place of each request, and the same bytes.
#[cfg(test)]
fn split(mut record: model::record::Record, by: u64) -> model::record::Record {
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
        let mut fields: Vec<u64> = text.split_ascii_whitespace().filter_map(|w| w.parse().ok()).collect();
        (fields[0], fields[4]) = (fields[0] * by, fields[4] * by);
        *text = fields.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    }
    record
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn the_sentence_names_the_queue_limit() {
    let mut record = split(Fixture { block_bytes: 4 << 20, ops: 200, ..Fixture::honest() }.record(), 4);
    record.header.hosts[0].places[0].layers[0].queue.insert("max_sectors_kb".into(), "1024\n".into());
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Biased);
    assert!(
        f.sentence.contains("4 MiB became 4.00 requests") && f.sentence.contains("vda takes at most 1 MiB"),
        "{}",
        f.sentence
    );
}

#[test]
fn a_journal_next_to_few_operations_is_not_a_split() {
    // 10 operations of 1 MiB and 40 requests of 4 KiB in each of five runs: the bytes agree within 2 %.
    let few_operations = Fixture { ops: 10, block_bytes: 1 << 20, foreign_ios: 40, ..Fixture::honest() };
    assert!(CHECK.answer(&few_operations.record()).is_err_and(|why| why.contains("too few")));
    // 100 requests per run: too many for a journal, and no cause that would split.
    let some_foreign = Fixture { ops: 400, foreign_ios: 100, block_bytes: 1 << 20, ..Fixture::honest() };
    assert!(
        CHECK.answer(&some_foreign.record()).is_err_and(|why| why.contains("may belong to other processes"))
    );
    let little_foreign = Fixture { foreign_ios: 400, ..Fixture::honest() };
    assert!(matches!(CHECK.answer(&little_foreign.record()), Ok(Answer::Holds(..))));
}

#[test]
fn flushes_after_stable_writes_are_not_a_split() {
    let stable = |flushes: u64| {
        let mut record = crate::fixture::Fixture::honest_write().record();
        let mut runs = 0;
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            runs += u64::from(snapshot.moment == model::evidence::Moment::Stop);
            let text = snapshot.files["/sys/block/vda/stat"].clone().unwrap();
            let mut fields: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
            fields[4] = (fields[4].parse::<u64>().unwrap() + runs * 11_000).to_string();
            fields[15] = (runs * flushes).to_string();
            snapshot.files.insert("/sys/block/vda/stat".into(), Ok(fields.join(" ")));
        }
        CHECK.severity(&record)
    };
    assert_eq!(stable(11_000), None);
    assert_eq!(stable(500), None, "that share flushes");
    assert_eq!(stable(0), Some(Severity::Biased));
}
