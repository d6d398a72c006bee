//! A10: writes that were never carried out, not even by the final sync.
//!
//! For: pages that our own process dropped while dirty, and bytes that are missing at the device after the final sync. Not for:
//! what was only late (A09), nor direct writes that did not arrive (A02, A22).

use crate::case::{Case, grown};
use crate::checks::{Answer, Ask, Check, Detail, Earlier, Page, evidence, formula};
use crate::threshold::Share;
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::job::Kind;
use model::units::{show_bytes, show_share};

/// Share of the written bytes that may have been dropped: a temporary file of our own, at most.
const VOID_ABOVE: Share = Share(0.01);
/// Share of the different blocks written that the device must have seen after the sync. How many are different is computed
/// from the order of offsets, to a few percent.
const ARRIVED_FROM: Share = Share(0.9);

pub(super) const CHECK: Check = Check {
    id: CheckId::A10,
    name: "NEVER_WRITTEN",
    belief: "what was written reached the device in the end",
    page: Page {
        reads: "cancelled_write_bytes in /proc/self/io and the device's stat file, both at the start of each run and after its \
                final sync.",
        formula: formula!(
            "Void where fathom's own operations dropped more than {VOID_ABOVE} of the written bytes while they were dirty. \
             The kernel charges that to the process that drops, so a file that another one truncates shows only at the device: \
             void too where, through the page cache, it wrote less than {ARRIVED_FROM} of the different blocks that were \
             written. Rewritten blocks may reach it once, every block must. How many are different follows from the order of \
             offsets, to a few percent, hence the slack; where the order does not tell, or the file is compressed, it is not \
             checked."
        ),
        provoke: "`fathom run --rw randwrite --cache buffered --destroy FILE FILE` and, while it runs, `truncate -s 0 FILE; truncate \
                  -s 1g FILE` in another terminal.",
        fix: "Measure again, and make sure that nothing deletes or truncates the file meanwhile.",
        accept: "Do not accept it: the data were never stored.",
    },
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
    let written = case.issued(Kind::Write).bytes;
    if written == 0 {
        return Err("no write completed".into());
    }
    let cancelled = case.cancelled_bytes()?;
    let mut numbers = evidence([("written_bytes", written as f64), ("cancelled_bytes", cancelled as f64)]);
    if cancelled as f64 > VOID_ABOVE.0 * written as f64 {
        if case.issued(Kind::Trim).ops > 0 || case.does(Kind::Trim) {
            return Err("the job trims what it writes, and trimmed pages count as dropped ones".into());
        }
        let sentence = format!(
            "{} of what was written were dropped from memory before they were ever stored.",
            show_bytes(cancelled)
        );
        return Ok(Answer::Finding(found(sentence, numbers)));
    }
    // Direct writes leave nothing for a sync to do.
    if case.stream.cache.is_direct() {
        return Ok(Answer::Holds("No write was dropped before it was stored.", numbers));
    }
    let tops = case.tops()?;
    let others = case.submitted_by_sharers(Kind::Write, &tops);
    let synced = case.synced_write_bytes()?;
    let arrived = synced.saturating_sub(others.least);
    let different = different_bytes(case)?;
    numbers.insert("device_write_bytes_after_sync".into(), arrived as f64);
    numbers.insert("different_bytes".into(), different);
    let surely = if others.most == 0 { arrived } else { synced.saturating_sub(grown(others.most)) };
    if arrived as f64 >= ARRIVED_FROM.0 * different && (surely as f64) < ARRIVED_FROM.0 * different {
        return Err(format!(
            "whether all that this stream wrote was stored is not known: {}",
            case.why_shared()?
        ));
    }
    if arrived as f64 >= ARRIVED_FROM.0 * different {
        return Ok(Answer::Holds("What was written was stored after the final sync.", numbers));
    }
    if case.extents_over_runs().is_err() || earlier.finds(CheckId::A07) {
        return Err(
            "the file may be stored compressed, so bytes at the device do not tell what was stored".into()
        );
    }
    let sentence = format!(
        "Even after the final sync the device had written only {} of {} of different blocks ({}): somebody deleted or truncated \
         the file, or a layer lost them.",
        show_bytes(arrived),
        show_bytes(different as u64),
        show_share(arrived as f64 / different)
    );
    Ok(Answer::Finding(found(sentence, numbers)))
}

fn found(sentence: String, numbers: crate::checks::Evidence) -> Detail {
    Detail::new(Severity::Void, sentence, numbers)
}

/// Bytes of different blocks that the stream wrote, all runs together.
fn different_bytes(case: &Case) -> Known<f64> {
    let of = |ran: &crate::case::CaseRun| {
        let written = ran.stream.issued.get(&Kind::Write).map_or(0, |i| i.bytes) as f64;
        Ok(written * (1.0 - super::repeated_share(case, written)?))
    };
    case.runs.iter().map(of).sum()
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
fn a_dropped_hundredth_is_nothing_and_more_is_never_written() {
    // 11,000 writes of 4 KiB a run.
    assert_eq!(CHECK.severity(&cancelled(440_000)), None);
    assert_eq!(CHECK.severity(&cancelled(460_000)), Some(Severity::Void));
}

#[test]
fn what_is_missing_at_the_device_after_the_sync_was_never_written() {
    let lost = Fixture { cache: model::job::Cache::Buffered, sync_works: false, ..Fixture::honest_write() };
    let buffered = |delivered| Fixture { delivered, ..lost.clone() };
    let at = |delivered| CHECK.severity(&buffered(delivered).record());
    assert_eq!(at(0.95), None);
    assert_eq!(at(0.8), Some(Severity::Void));
    let encoded = Fixture { encoded_share: 1.0, ..buffered(0.5) };
    assert!(CHECK.answer(&encoded.record()).is_err());
}

#[test]
fn trimmed_pages_are_not_held_against_anybody() {
    let mut record = cancelled(20_000_000);
    record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].mix = model::job::Mix::of_percents(0, 10);
    assert!(CHECK.answer(&record).is_err_and(|why| why.contains("trims")));
}
