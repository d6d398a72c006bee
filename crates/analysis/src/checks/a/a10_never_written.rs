//! A10: writes that never reached the device, not even with the final sync. Counts dirty pages that this process
//! dropped, and compares the bytes at the device after the sync with the distinct blocks written.
//!
//! A09 reports late writes. A02 and A22 report direct writes that did not arrive.

use crate::case::grown;
use crate::checks::prelude::*;

/// Share of the written bytes that may have been dropped: at most a temporary file of fathom itself.
const VOID_ABOVE: Share = Share(0.01);
/// Share of the distinct blocks written that the device must have seen after the sync. The number of distinct
/// blocks follows from the order of offsets, to a few percent.
const ARRIVED_FROM: Share = Share(0.9);

pub(super) const CHECK: Check = Check {
    id: CheckId::A10,
    name: "NEVER_WRITTEN",
    belief: "the written data reached the device in the end",
    reads: "cancelled_write_bytes in /proc/self/io and the device's stat file, both at the start of each run \
            and after its final sync.",
    formula: formula!(
        "Void if fathom's own operations dropped more than {VOID_ABOVE} of the written bytes while they were \
         dirty. The kernel charges dropped pages to the process that drops them, so truncation by another \
         process shows only at the device. Therefore also void if, for writes through the page cache, the \
         device wrote less than {ARRIVED_FROM} of the distinct blocks: a rewritten block may reach it only \
         once, but each block must reach it. The number of distinct blocks follows from the order of offsets \
         to a few percent, hence the tolerance. Not checked if the order does not determine it or if the \
         file is compressed."
    ),
    provoke: "`fathom run --rw randwrite --cache buffered --destroy FILE FILE` and, while it runs, `truncate \
              -s 0 FILE; truncate -s 1g FILE` in another terminal.",
    fix: "Measure again, and make sure that no process deletes or truncates the file during the run.",
    accept: "Do not accept it: the data were never stored.",
    ask: Ask::After(&[CheckId::A07], evaluate),
    #[cfg(test)]
    fires: Some(|| cancelled(20_000_000)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest_write().record();
        super::snapshots(&mut record, |s| drop(s.files.remove("/proc/self/io")));
        record
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let written = issued_bytes(case, Kind::Write)?;
    let cancelled = case.cancelled_bytes()?;
    let mut numbers = evidence([("written_bytes", written as f64), ("cancelled_bytes", cancelled as f64)]);
    if cancelled as f64 > VOID_ABOVE.0 * written as f64 {
        if case.issued(Kind::Trim).ops > 0 || case.does(Kind::Trim) {
            return not_checked(
                "the job trims blocks that it wrote, and the kernel counts trimmed pages as dropped",
            );
        }
        return finding!(
            Severity::Void,
            numbers,
            "{} of the written data were dropped from memory before they were stored.",
            show_bytes(cancelled)
        );
    }
    // A sync has nothing to write after direct writes.
    if case.stream.cache.is_direct() {
        return holds("No write was dropped before it was stored.", numbers);
    }
    let tops = case.tops()?;
    let others = case.submitted_by_sharers(Kind::Write, &tops);
    let synced = case.synced_write_bytes()?;
    let arrived = synced.saturating_sub(others.least);
    let distinct = distinct_bytes(case)?;
    numbers.insert("device_write_bytes_after_sync".into(), arrived as f64);
    numbers.insert("different_bytes".into(), distinct);
    let arrived_at_least = if others.most == 0 { arrived } else { synced.saturating_sub(grown(others.most)) };
    if arrived as f64 >= ARRIVED_FROM.0 * distinct && (arrived_at_least as f64) < ARRIVED_FROM.0 * distinct {
        return case.cannot_tell("whether all of this stream's writes were stored");
    }
    if arrived as f64 >= ARRIVED_FROM.0 * distinct {
        return holds("The written data were stored after the final sync.", numbers);
    }
    if case.extents_over_runs().is_err() || earlier.finds(CheckId::A07) {
        return not_checked(
            "the file may be stored compressed, so the bytes at the device do not show how much was stored",
        );
    }
    finding!(
        Severity::Void,
        numbers,
        "Even after the final sync, the device had written only {} of {} in distinct blocks ({}): another \
         process deleted or truncated the file, or a layer lost the data.",
        show_bytes(arrived),
        show_bytes(distinct as u64),
        show_share(arrived as f64 / distinct)
    )
}

/// Returns the bytes of distinct blocks that the stream wrote in all runs.
fn distinct_bytes(case: &Case) -> Known<f64> {
    let distinct_in_run = |ran: &crate::case::CaseRun| {
        let written = ran.stream.issued.get(&Kind::Write).map_or(0, |i| i.bytes) as f64;
        Ok(written * (1.0 - super::repeated_share(case, written)?))
    };
    case.runs.iter().map(distinct_in_run).sum()
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::evidence::Moment;

#[cfg(test)]
fn cancelled(bytes: u64) -> model::record::Record {
    let mut record = Fixture::honest_write().record();
    super::snapshots(&mut record, |s| {
        let bytes = if s.moment == Moment::Synced { bytes } else { 0 };
        s.files
            .insert("/proc/self/io".into(), Ok(format!("write_bytes: 9\ncancelled_write_bytes: {bytes}\n")));
    });
    record
}

#[test]
fn more_than_one_percent_dropped_is_void() {
    // 11,000 writes of 4 KiB a run.
    assert_eq!(CHECK.severity(&cancelled(440_000)), None);
    assert_eq!(CHECK.severity(&cancelled(460_000)), Some(Severity::Void));
}

#[test]
fn bytes_missing_at_the_device_after_the_sync_are_void() {
    let lost = Fixture { cache: model::job::Cache::Buffered, sync_works: false, ..Fixture::honest_write() };
    let buffered = |delivered| Fixture { delivered, ..lost.clone() };
    let at = |delivered| CHECK.severity(&buffered(delivered).record());
    assert_eq!(at(0.95), None);
    assert_eq!(at(0.8), Some(Severity::Void));
    let encoded = Fixture { encoded_share: 1.0, ..buffered(0.5) };
    assert!(CHECK.answer(&encoded.record()).is_err());
}

#[test]
fn a_job_that_trims_is_not_checked() {
    let mut record = cancelled(20_000_000);
    record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].mix = model::job::Mix::of_percents(0, 10);
    assert!(CHECK.answer(&record).is_err_and(|why| why.contains("trims")));
}
