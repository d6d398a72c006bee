//! A01: reads that the page cache answered. Compares the bytes read with the bytes that the device delivered.
//! Holes (A04) and targets in memory (A11) have their own checks.

use super::a07_encoded_extents::ENCODED_ABOVE;
use crate::case::SAME_BYTES;
use crate::checks::prelude::*;

/// Share of cached bytes above which the rate is biased. A smaller share can come from pages that other readers
/// left.
pub(crate) const BIASED_ABOVE: Share = Share(0.05);
/// Share of cached bytes at or above which the result is named after the page cache.
pub(crate) const RENAMED_FROM: Share = Share(0.5);
pub(super) const CHECK: Check = Check {
    id: CheckId::A01,
    name: "CACHE_SERVED",
    belief: "the reads measured the device, not memory",
    reads: "The `stat` files of the devices below the file system and the io counters of fathom's own \
            cgroup, from start to stop of every run, compared with the bytes that fathom read. Also \
            `read_bytes` in /proc/thread-self/io of each worker.",
    formula: formula!(
        "hit = 1 - bytes delivered / bytes read. The bytes delivered are the smaller of the device's count \
         and the cgroup's, or the device's count alone if it agrees with fathom's within {same}. Above \
         {BIASED_ABOVE} the number is biased: a smaller share can come from pages that other readers left. \
         From {RENAMED_FROM} on, it mostly measures the page cache and is relabelled. If other streams of \
         the phase use the same device, the kernel's counts of the reads that each stream's own workers \
         submitted (`read_bytes` in /proc/thread-self/io) give a lower and an upper bound, and the check \
         answers if both lead to one answer. A file with more than {ENCODED_ABOVE} stored compressed is not \
         checked: the bytes on its disk are not the bytes of the file.",
        same = Share(SAME_BYTES)
    ),
    provoke: "`dd if=/dev/urandom of=FILE bs=1M count=256`, `cat FILE > /dev/null` and `fathom run --rw \
              randread --cache buffered FILE`.",
    fix: "Use --cache direct, or a --size well above the memory of the machine.",
    accept: "Accept it if you want to measure the page cache.",
    ask: Ask::After(&[CheckId::A04], evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { delivered: 0.02, ..crate::fixture::Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Read) || !case.on_device() || earlier.finds(CheckId::A04) {
        return Ok(Answer::DoesNotApply);
    }
    let delivered = case.at_device(Kind::Read)?;
    let read = issued_bytes(case, Kind::Read)?;
    let cached_share = |delivered: u64| (1.0 - delivered as f64 / read as f64).max(0.0);
    // Where other streams share the device, both bounds must lead to the same answer.
    let at_most = cached_share(delivered.least);
    let delivered = if at_most <= BIASED_ABOVE { delivered.least } else { delivered.most };
    let share_cached = cached_share(delivered);
    let numbers = evidence([
        ("read_bytes", read as f64),
        ("device_read_bytes", delivered as f64),
        ("cached_share", share_cached),
    ]);
    let Some(severity) = severity(share_cached) else {
        if at_most <= BIASED_ABOVE {
            return holds("The device delivered all bytes that were read.", numbers);
        }
        return case.cannot_tell("how many of this stream's reads came from memory");
    };
    if delivered > 0 && is_encoded(case) {
        return not_checked(
            "the file is stored compressed, so the bytes at the device do not show what the cache served",
        );
    }
    let (renames, meaning) = match severity {
        Severity::Rename => {
            (Some(Rename::Medium("page cache".into())), "This is the speed of the page cache.")
        }
        _ => (None, "The rate mixes the device and memory."),
    };
    detail!(
        severity,
        numbers,
        "{} of the bytes read came from memory: {} were read, and the device delivered {}. {meaning}",
        show_share(share_cached),
        show_bytes(read),
        show_bytes(delivered)
    )
    .relabelled(renames)
    .found()
}

/// Returns the severity of a share of cached bytes among the bytes read, or `None` if it is harmless.
pub fn severity(cached_share: f64) -> Option<Severity> {
    // A share that is not a number is no pass.
    match cached_share {
        share if share <= BIASED_ABOVE.0 => None,
        share if share >= RENAMED_FROM.0 => Some(Severity::Rename),
        _ => Some(Severity::Biased),
    }
}

fn is_encoded(case: &Case) -> bool {
    let over =
        |e: &model::evidence::Extents| share(e.encoded_bytes as f64, e.span_bytes as f64) > ENCODED_ABOVE;
    case.extents().is_ok_and(|all| all.iter().any(over))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn the_cached_share_decides_between_biased_and_relabelled() {
    let at = |delivered| CHECK.severity(&Fixture { delivered, ..Fixture::honest() }.record());
    assert_eq!(at(0.97), None);
    assert_eq!(at(0.9), Some(Severity::Biased));
    assert_eq!(at(0.5), Some(Severity::Rename));
    assert_eq!(at(0.0), Some(Severity::Rename));
    let sentence = |delivered| match CHECK.answer(&Fixture { delivered, ..Fixture::honest() }.record()) {
        Ok(Answer::Finding(f)) => f.sentence,
        other => panic!("{other:?}"),
    };
    assert!(
        sentence(0.901).contains("9.9 %") && !sentence(0.901).contains("speed of the page cache"),
        "{}",
        sentence(0.901)
    );
    assert!(sentence(0.2).contains("speed of the page cache"));
}

#[test]
fn reads_by_other_processes_do_not_hide_the_cache() {
    let fixture = Fixture { delivered: 0.1, foreign_ios: 5_000, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&fixture.record()), Some(Severity::Rename));
}

#[test]
fn compressed_files_are_not_checked() {
    let fixture = Fixture { delivered: 0.6, encoded_share: 1.0, ..Fixture::honest() };
    assert!(CHECK.answer(&fixture.record()).is_err());
}
