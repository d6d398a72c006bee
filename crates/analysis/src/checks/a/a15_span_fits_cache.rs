//! A15: a tested region that a cache could hold completely. Compares it with the memory of the machine, unless
//! another check counted what the page cache kept (A01, A09), and with the caches that drives and controllers
//! have.

use crate::checks::prelude::*;

/// With a region of this multiple of the memory, the page cache reaches a hit rate of one half at best, after a
/// long warm-up.
const TIMES_MEMORY: f64 = 2.0;
/// Hard disks have caches of up to 512 MiB, and cheap RAID controllers of up to 1 GiB.
const DRIVE_CACHE_BYTES: u64 = 1 << 30;

pub(super) const CHECK: Check = Check {
    id: CheckId::A15,
    name: "SPAN_FITS_CACHE",
    belief: "the span is larger than the caches below",
    reads: "The span of the workload times its targets, MemTotal, and the answers of A01 and A09.",
    formula: formula!(
        "Through the page cache: biased if the span is below {TIMES_MEMORY} times MemTotal and no check \
         counted the bytes that the page cache served. If A01 or A09 counted them, those checks report them. \
         Direct I/O: a note below {drive}, since hard disks have caches of up to 512 MiB and small RAID \
         controllers of twice that. Larger caches of arrays and of the hosts of virtual machines are \
         invisible from here (D18).",
        drive = show_bytes(DRIVE_CACHE_BYTES)
    ),
    provoke: "`fathom run --rw randread --size 64m DIR`.",
    fix: "Use a --size well above all caches: at least 4g for one drive, twice the cache of an array.",
    accept: "Accept it if your real data are that small.",
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
            match page_cache_work(case, earlier) {
                PageCacheWork::Kept => return Ok(Answer::DoesNotApply),
                PageCacheWork::Unknown => return Ok(Answer::Finding(fits_memory(span, memory, numbers))),
                PageCacheWork::Delivered => {}
            }
        }
    } else if earlier.finds(CheckId::A02) {
        return Ok(Answer::DoesNotApply);
    }
    if span >= DRIVE_CACHE_BYTES {
        return holds("The span is larger than the caches of drives.", numbers);
    }
    finding!(
        Severity::Note,
        numbers,
        "The tested region is only {}: the cache of a drive or of a controller could hold it.",
        show_bytes(span)
    )
}

fn fits_memory(span: u64, memory: u64, numbers: Evidence) -> Detail {
    detail!(
        Severity::Biased,
        numbers,
        "The tested region of {} was accessed through the page cache of a machine with {} of memory, which \
         could hold all or most of it. The bytes served from memory were not counted.",
        show_bytes(span),
        show_bytes(memory)
    )
    .with_cure("Use --cache direct, or a --size of more than twice the memory.".to_owned())
}

/// How much of the work the page cache kept from the device.
enum PageCacheWork {
    /// It kept some. Another check reports it.
    Kept,
    /// It kept none.
    Delivered,
    /// Not counted.
    Unknown,
}

fn page_cache_work(case: &Case, earlier: &Earlier) -> PageCacheWork {
    let counting_checks = [(Kind::Read, CheckId::A01), (Kind::Write, CheckId::A09)];
    let answers =
        counting_checks.into_iter().filter(|(kind, _)| case.does(*kind)).map(|(_, id)| earlier.answer(id));
    let mut all = PageCacheWork::Delivered;
    for answer in answers {
        match answer {
            Some(Ok(Answer::Finding(_))) => return PageCacheWork::Kept,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => all = PageCacheWork::Unknown,
        }
    }
    all
}

#[cfg(test)]
use crate::checks::a::spanning;
#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn regions_below_one_gibibyte_are_a_note() {
    let at = |span| CHECK.severity(&spanning(span, &Fixture::honest()));
    assert_eq!(at(1 << 30), None);
    assert_eq!(at((1 << 30) - 4096), Some(Severity::Note));
}

#[test]
fn buffered_io_biases_only_if_the_page_cache_was_not_counted() {
    let buffered = || Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest() };
    // 1 GiB of 8: the device delivered all of it.
    assert!(matches!(CHECK.answer(&buffered().record()), Ok(Answer::Holds(..))));
    let uncounted = Fixture { stat_unreadable: true, ..buffered() };
    assert_eq!(CHECK.severity(&uncounted.record()), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&spanning(17 << 30, &uncounted)), None);
    let cached = Fixture { delivered: 0.3, ..buffered() };
    assert_eq!(CHECK.answer(&cached.record()), Ok(Answer::DoesNotApply));
}
