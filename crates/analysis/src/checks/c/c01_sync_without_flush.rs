//! C01: syncs that never reached the disk as a flush. Compares the syncs with the flushes that disks with a
//! volatile cache completed. Also fires if a volatile cache is only declared safe (`write through`).

use crate::checks::prelude::*;

/// Share of the syncs that must become flushes at depth 1, where each sync causes exactly one flush.
const FLUSHED_FROM: f64 = 0.5;
/// Largest number of flushes that a sync of another stream may cause: one for the data and one for the journal.
const FLUSHES_OF_A_SYNC: u64 = 2;

pub(super) const CHECK: Check = Check {
    id: CheckId::C01,
    name: "SYNC_WITHOUT_FLUSH",
    belief: "a sync made the disk empty its volatile cache",
    reads: "`/sys/block/*/queue/write_cache` and `fua` of every layer; the flushes in `/sys/block/*/stat` of \
            the lowest disks, from the start of a run to its final sync; the syncs and synchronous writes \
            that fathom issued.",
    formula: formula!(
        "A disk that reports `write back` must complete at least {FLUSHED_FROM} flushes for each sync, \
         divided by the operations that may be in flight, since one flush can serve all operations that wait \
         for it. (One at a time, both are equal: 100 syncs, 100 flushes.) Also, a cache is only declared \
         safe if `write through` is reported by a loop device, by a layer above one that reports `write \
         back`, or by a layer that offers FUA, which only a disk with a volatile cache needs."
    ),
    provoke: "truncate -s 1g disk.img && losetup --find --show disk.img\n\
              echo 'write through' > /sys/block/loop0/queue/write_cache   # then mkfs and mount it on /mnt\n\
              fathom run --rw randwrite --bs 4k --depth 1 --cache direct-dsync /mnt",
    fix: "Write `write back` into queue/write_cache of the layers that report otherwise, and mount without \
          `nobarrier`.",
    accept: "Accept it only if the disk has power-loss protection; then `write through` is true.",
    ask: Ask::After(&[CheckId::C02], evaluate),
    #[cfg(test)]
    fires: Some(|| super::with_flushes(&super::stable_writes(), "write back", 0, 0)),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture { nothing_below: true, ..crate::fixture::Fixture::honest_write() }.record()
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.on_device() || earlier.finds(CheckId::C02) {
        return Ok(Answer::DoesNotApply);
    }
    case.grounded()?;
    if let Some(layer) = declared_safe(case) {
        let sentence = format!(
            "The cache of {} is only declared safe ({}/queue/write_cache is `write through`), so a sync \
             sends it no flush.",
            layer.name, layer.name
        );
        return super::skipped_syncs(case, &sentence, evidence([]));
    }
    let disks = super::volatile_disks(case)?;
    if disks.is_empty() {
        return holds("The disk reports no volatile cache, so a sync needs no flush.", evidence([]));
    }
    // If the stream makes no syncs, only the final sync of each run counts.
    let (requested, until) = match super::syncs_requested(case) {
        0 if case.runs.iter().all(|r| r.end.sync_ns.is_some()) => (case.runs.len() as u64, Moment::Synced),
        requested => (requested, Moment::Stop),
    };
    if requested == 0 {
        return Err("no sync completed".into());
    }
    let counts: Vec<[u64; 2]> =
        disks.iter().map(|d| super::flushes_of_disk(case, d, until)).collect::<Known<_>>()?;
    // A file system on several disks may flush only the disks that were written.
    let flushed = counts.iter().map(|c| c[0]).fold(0, u64::saturating_add);
    let numbers = evidence([
        ("syncs", requested as f64),
        ("flushes", flushed as f64),
        ("flushes_per_sync", share(flushed as f64, requested as f64)),
    ]);
    let needed = FLUSHED_FROM * requested as f64 / asked_depth(&case.stream).max(1.0);
    let flushes_of_sharers = super::syncs_of_sharers(case, &disks).saturating_mul(FLUSHES_OF_A_SYNC);
    if flushes_of_sharers > 0
        && flushed as f64 >= needed
        && (flushed.saturating_sub(flushes_of_sharers) as f64) < needed.max(1.0)
    {
        return Err(case.not_alone(&case.sharers(&disks), &disks));
    }
    if flushed > 0 && flushed as f64 >= needed {
        return holds("Syncs reached the disk as flushes.", numbers);
    }
    if case.stream.cache.is_sync() && disks.iter().any(|d| d.queue_number("fua") == Ok(1)) {
        return Err("the disk supports FUA writes, which are durable without a flush and which the kernel \
                    does not count separately"
            .into());
    }
    let sentence = format!(
        "{} syncs were requested, but the disk got {} flushes.",
        show_count(requested as f64),
        show_count(flushed as f64)
    );
    super::skipped_syncs(case, &sentence, numbers)
}

/// Returns a layer that has a volatile cache by its nature but reports none.
fn declared_safe<'a>(case: &Case<'a>) -> Option<&'a Layer> {
    let in_place = |place: &'a Place| place.layers.iter().find(|l| is_declared_safe(place, l));
    case.places().find_map(in_place)
}

fn is_declared_safe(place: &Place, layer: &Layer) -> bool {
    let volatile = |l: &Layer| super::is_volatile(l).unwrap_or(false);
    let says_safe = super::is_volatile(layer) == Ok(false);
    let has_volatile_cache = layer.kind == LayerKind::Loop
        || layer.queue_number("fua") == Ok(1)
        || layer.below.iter().filter_map(|i| place.layers.get(*i)).any(volatile);
    says_safe && has_volatile_cache
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::finding::Severity;

#[test]
fn fewer_flushes_than_half_of_the_syncs_relabel() {
    let at = |n| CHECK.severity(&super::with_flushes(&super::stable_writes(), "write back", n, 1));
    assert_eq!((at(11_000), at(5_500), at(5_000)), (None, None, Some(Severity::Rename)));
    // 32 operations in flight may share a flush.
    let deep = Fixture { depth: 32, depth_seen: 31.0, ..super::stable_writes() };
    let at = |n| CHECK.severity(&super::with_flushes(&deep, "write back", n, 1));
    assert_eq!((at(180), at(150)), (None, Some(Severity::Rename)));
}

#[test]
fn a_final_sync_without_flush_is_a_note() {
    let plain = |n| CHECK.severity(&super::with_flushes(&Fixture::honest_write(), "write back", n, 1));
    assert_eq!((plain(0), plain(1)), (Some(Severity::Note), None));
}

#[test]
fn a_loop_device_or_a_disk_with_fua_is_never_write_through() {
    let on_loop = Fixture { leaf_share: Some(1.0), ..super::stable_writes() };
    let mut record = super::with_flushes(&on_loop, "write back", 11_000, 1);
    assert_eq!(CHECK.severity(&record), None);
    let switch = |r: &mut model::record::Record, i: usize, key: &str, text: &str| {
        r.header.hosts[0].places[0].layers[i].queue.insert(key.into(), text.into());
    };
    switch(&mut record, 0, "write_cache", "write through\n");
    assert_eq!(CHECK.severity(&record), Some(Severity::Rename));
    let mut record = super::stable_writes().record();
    assert_eq!(CHECK.severity(&record), None);
    switch(&mut record, 0, "fua", "1\n");
    assert_eq!(CHECK.severity(&record), Some(Severity::Rename));
    // With its cache enabled, a disk with FUA need not flush after each write.
    switch(&mut record, 0, "write_cache", "write back\n");
    assert!(CHECK.answer(&record).is_err());
}

#[test]
fn kernels_that_do_not_count_flushes_are_not_checked() {
    let mut record = super::with_flushes(&super::stable_writes(), "write back", 0, 0);
    for text in record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| s.files.values_mut()) {
        let first: Option<Vec<String>> =
            text.as_ref().ok().map(|t| t.split_ascii_whitespace().take(11).map(str::to_owned).collect());
        *text = Ok(first.unwrap_or_default().join(" "));
    }
    let why = CHECK.answer(&record);
    assert!(why.as_ref().is_err_and(|w| w.contains("5.5")), "{why:?}");
}
