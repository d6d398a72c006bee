//! A15: spans that a cache could hold as a whole.
//!
//! For: the bytes that may be touched, against the memory of this machine and the caches of drives. Not for: what caches
//! really did (A01, A09, A12); where that was counted, this has nothing to fear but caches that nobody can see.

use crate::case::Case;
use crate::checks::{Answer, Ask, Check, Detail, Earlier, Evidence, Page, evidence, formula};
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::job::Kind;
use model::units::show_bytes;

/// Spans of so many times the memory leave the page cache no share worth having: half at best, and it needs some warming up.
const TIMES_MEMORY: f64 = 2.0;
/// The largest caches of hard disks are 512 MiB, and those of cheap RAID controllers 1 GiB.
const DRIVE_CACHE_BYTES: u64 = 1 << 30;

pub(super) const CHECK: Check = Check {
    id: CheckId::A15,
    name: "SPAN_FITS_CACHE",
    belief: "the span is larger than the caches below",
    page: Page {
        reads: "The span of the workload times its targets, MemTotal, and the answers of A01 and A09.",
        formula: formula!(
            "Through the page cache: biased where the span is below {TIMES_MEMORY} times MemTotal and nothing counted what \
             the page cache kept. Where A01 or A09 counted it, they report it. Past the page cache: a note below {drive}, \
             since hard disks have caches of up to 512 MiB and small RAID controllers of twice that. Larger caches of arrays \
             and of the hosts of virtual machines cannot be seen from here at all (D18).",
            drive = show_bytes(DRIVE_CACHE_BYTES)
        ),
        provoke: "`fathom run --rw randread --size 64m DIR`.",
        fix: "Use a --size well above all caches: 4g and more for one drive, twice the cache of an array.",
        accept: "Accept it where your real data are that small.",
    },
    ask: Ask::After(&[CheckId::A01, CheckId::A02, CheckId::A09], evaluate),
    #[cfg(test)]
    fires: Some(|| super::spanning(64 << 20, &crate::fixture::Fixture::honest())),
    #[cfg(test)]
    blind: || {
        let buffered = crate::fixture::Fixture {
            cache: model::job::Cache::Buffered,
            ..crate::fixture::Fixture::honest()
        };
        let mut record = buffered.record();
        record.header.hosts[0].memory_bytes = Err("unreadable".into());
        record
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let span = case.span_bytes();
    let mut numbers = evidence([("span_bytes", span as f64)]);
    if !case.stream.cache.is_direct() {
        let memory = case.machine.ok_or("the record names no host")?.memory_bytes.clone()?;
        numbers.insert("memory_bytes".into(), memory as f64);
        if (span as f64) < TIMES_MEMORY * memory as f64 {
            match counted(case, earlier) {
                Counted::Kept => return Ok(Answer::DoesNotApply),
                Counted::No => return Ok(Answer::Finding(fits_memory(span, memory, numbers))),
                Counted::Delivered => {}
            }
        }
    } else if earlier.finds(CheckId::A02) {
        return Ok(Answer::DoesNotApply);
    }
    if span >= DRIVE_CACHE_BYTES {
        return Ok(Answer::Holds("The span is larger than the caches that drives have.", numbers));
    }
    Ok(Answer::Finding(Detail::new(
        Severity::Note,
        format!(
            "The tested region is only {}: the cache of a drive or of a controller could hold it.",
            show_bytes(span)
        ),
        numbers,
    )))
}

fn fits_memory(span: u64, memory: u64, numbers: Evidence) -> Detail {
    Detail {
        severity: Severity::Biased,
        sentence: format!(
            "The tested region of {} was used through the page cache of a machine with {} of memory, which could hold all \
             or most of it; how much it kept was not counted.",
            show_bytes(span),
            show_bytes(memory)
        ),
        cure: Some("Use --cache direct, or a --size of more than twice the memory.".into()),
        evidence: numbers,
        renames: None,
    }
}

/// What is known about the work that the page cache kept from the device.
enum Counted {
    /// It kept some, and another check says so.
    Kept,
    /// The device did all of it.
    Delivered,
    /// Nobody counted.
    No,
}

fn counted(case: &Case, earlier: &Earlier) -> Counted {
    let asked = [(Kind::Read, CheckId::A01), (Kind::Write, CheckId::A09)];
    let answers = asked.into_iter().filter(|(kind, _)| case.does(*kind)).map(|(_, id)| earlier.answer(id));
    let mut all = Counted::Delivered;
    for answer in answers {
        match answer {
            Some(Ok(Answer::Finding(_))) => return Counted::Kept,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => all = Counted::No,
        }
    }
    all
}

#[cfg(test)]
use crate::checks::a::spanning;
#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn a_gibibyte_is_enough_for_a_drive_and_less_is_worth_a_note() {
    let at = |span| CHECK.severity(&spanning(span, &Fixture::honest()));
    assert_eq!(at(1 << 30), None);
    assert_eq!(at((1 << 30) - 4096), Some(Severity::Note));
}

#[test]
fn through_the_page_cache_it_biases_only_where_nobody_counted() {
    let buffered = || Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest() };
    // 1 GiB of 8: the device delivered all of it.
    assert!(matches!(CHECK.answer(&buffered().record()), Ok(Answer::Holds(..))));
    let uncounted = Fixture { stat_unreadable: true, ..buffered() };
    assert_eq!(CHECK.severity(&uncounted.record()), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&spanning(17 << 30, &uncounted)), None);
    let cached = Fixture { delivered: 0.3, ..buffered() };
    assert_eq!(CHECK.answer(&cached.record()), Ok(Answer::DoesNotApply));
}
