//! Writes that were acknowledged but had not reached the device (A09, A10).
//!
//! A09 checks the state before the final sync: it compares the bytes written with the bytes at the device, and
//! counts dirty pages. A10 checks the state after the sync: it counts dirty pages that fathom dropped, and
//! compares the bytes at the device with the distinct blocks written. A02 and A22 report direct writes that did not arrive.

use crate::case::amplified;
use crate::checks::prelude::*;

/// Harmless share of written bytes in memory: requests in flight and the last pages of a flush.
const IN_MEMORY_ABOVE: Share = Share(0.05);

pub(super) const WRITES_STILL_IN_RAM: Check = Check {
    id: CheckId::A09,
    name: "WRITES_STILL_IN_RAM",
    belief: "the writes had left memory when the clock stopped",
    reads: "The `stat` files of the devices and the dirty pages of the target (cachestat), both at the stop \
            of every run, before the final sync, compared with the bytes that fathom wrote. Also \
            the duration of that sync.",
    formula: formula!(
        "Share in memory = the larger of 1 - bytes at the device / bytes written and dirty bytes / bytes \
         written. For random writes through the page cache that are smaller than a page, it is at least 1 - \
         pages written by the device / writes.\n\
         - Relabelled to the page cache if the share is above {IN_MEMORY_ABOVE}. Smaller shares are \
         requests in flight and the last pages of a flush. The finding also gives the rate with the final \
         sync included, unless other streams write too.\n\
         - Not checked if other streams write to the same device and the bounds of this stream's bytes do \
         not decide. The lower bound is the direct writes that its own workers submitted, or the pages \
         that they dirtied and that are clean again (`write_bytes` in /proc/thread-self/io). The upper \
         bound is the device's total less the other streams' writes."
    ),
    provoke: "`fathom run --rw randwrite --cache buffered --time 1s DIR`.",
    fix: "Use --cache direct, sync or dsync, or measure for longer than memory can absorb the writes.",
    accept: "Accept it if your program also writes bursts into memory.",
    applies: |case| case.does(Kind::Write) && case.on_device(),
    ask: Ask::Alone(check_writes_still_in_ram),
    #[cfg(test)]
    fires: Some(|| Fixture { delivered: 0.3, dirty_share: 0.7, ..Fixture::honest_write() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest_write() }.record(),
};

fn check_writes_still_in_ram(case: &Case) -> Known<Answer> {
    let written = issued_bytes(case, Kind::Write)? as f64;
    let bounds = case.at_device(Kind::Write);
    let device = bounds.as_ref().ok().map(|d| d.most as f64);
    let dirty = case.own_dirty_bytes(Moment::Stop).map(|bytes| bytes as f64);
    // The device writes whole pages, so its bytes may hide that memory took most of the small writes.
    let share_combined = |device: f64| {
        super::page_cache::share_of_small_operations_in_memory(case, Kind::Write, device as u64)
    };
    let share_missing = |device: Option<f64>| {
        let missing = device.map_or(0.0, |device| 1.0 - device / written);
        missing.max(dirty.unwrap_or(0.0) / written).clamp(0.0, 1.0)
    };
    let share_in_memory = |device: Option<f64>| share_missing(device).max(device.map_or(0.0, share_combined));
    let in_memory = share_in_memory(device);
    let numbers = evidence([
        ("written_bytes", written),
        ("in_memory_share", in_memory),
        ("device_write_bytes", device.unwrap_or(f64::NAN)),
        ("dirty_bytes", dirty.unwrap_or(f64::NAN)),
    ]);
    if in_memory > IN_MEMORY_ABOVE {
        return in_memory_finding(case, in_memory, share_missing(device) < in_memory, numbers);
    }
    // If other streams share the device, both bounds must lead to the same answer.
    if share_in_memory(Some(bounds?.least as f64)) > IN_MEMORY_ABOVE {
        return undecided_by_sharing(case, "how many of this stream's writes had left memory");
    }
    holds("All or almost all writes were at the device when the clock stopped.", numbers)
}

fn in_memory_finding(case: &Case, in_memory: f64, is_combined: bool, mut numbers: Evidence) -> Known<Answer> {
    let part = show_share(in_memory);
    let mut sentence = if is_combined {
        format!(
            "{part} of the writes only changed pages in memory: they are smaller than a page, and the device wrote fewer pages."
        )
    } else {
        format!("{part} of the written bytes were still in memory when the clock stopped.")
    };
    if let Some(rate) = rate_with_sync(case) {
        sentence += &format!(" Including the final sync, the rate is {} MB/s.", show_rate(rate));
        numbers.insert("mb_per_s_with_sync".into(), rate);
    }
    Detail::new(Severity::Relabels, sentence, numbers).relabelled(Rename::Medium("page cache".into())).found()
}

/// Returns the write rate in MB/s with the final sync counted as part of the time. `None` if other streams write too, or if a final sync
/// failed.
fn rate_with_sync(case: &Case) -> Option<f64> {
    // The final sync covers the writes of all streams.
    if case.others_write() {
        return None;
    }
    let ns = case.window_ns() + case.sync_ns()?;
    let bytes = case.in_windows(Kind::Write).bytes as f64;
    (ns > 0.0).then(|| bytes / ns * 1e3)
}

/// Harmless share of dropped bytes among the written bytes: fathom may drop a temporary file of its own.
const DROPPED_ABOVE: Share = Share(0.01);
/// Share of the distinct blocks written that the device must have received by the end of the final sync. The number of distinct
/// blocks follows from the order of offsets, to a few percent.
const WRITTEN_FROM: Share = Share(0.9);

pub(super) const NEVER_WRITTEN: Check = Check {
    id: CheckId::A10,
    name: "NEVER_WRITTEN",
    belief: "the written data reached the device in the end",
    reads: "cancelled_write_bytes in /proc/self/io and the device's stat file, both at the start of each run \
            and after its final sync.",
    formula: formula!(
        "Counts the dirty bytes that were dropped from memory, and compares the bytes that the device \
         wrote by the end of the final sync with the distinct blocks.\n\
         - Invalid if fathom's own operations dropped more than {DROPPED_ABOVE} of the written bytes while \
         they were dirty. The kernel charges dropped pages to the process that drops them, so this rule \
         cannot find truncation by another process.\n\
         - Invalid for writes through the page cache if the device wrote less than {WRITTEN_FROM} of the \
         distinct blocks. A rewritten block may reach the device only once, but each block must reach it. \
         The number of distinct blocks follows from the order of offsets to a few percent, hence the \
         tolerance.\n\
         - Not checked if the job trims and dirty bytes were dropped: the kernel counts trimmed pages as \
         dropped.\n\
         - Not checked, instead of the second rule, if the order of offsets does not determine the number \
         of distinct blocks, or if the file may be stored compressed (A07).\n\
         - Not checked if other streams write to the device and their part does not decide."
    ),
    provoke: "`fathom run --rw randwrite --cache buffered --destroy FILE FILE` and, while it runs, `truncate \
              -s 0 FILE; truncate -s 1g FILE` in another terminal.",
    fix: "Measure again, and make sure that no process deletes or truncates the file during the run.",
    accept: "Do not accept it: the data were never stored.",
    applies: |case| case.does(Kind::Write) && case.on_device(),
    ask: Ask::After(&[CheckId::A07], check_never_written),
    #[cfg(test)]
    fires: Some(|| cancelled(20_000_000)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest_write().record();
        super::change_snapshots(&mut record, |s| drop(s.files.remove("/proc/self/io")));
        record
    },
};

fn check_never_written(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let written = issued_bytes(case, Kind::Write)?;
    let cancelled = case.cancelled_bytes();
    let dropped = cancelled.as_ref().ok().copied().unwrap_or(0);
    let mut numbers = evidence([("written_bytes", written as f64)]);
    numbers.extend(cancelled.is_ok().then(|| ("cancelled_bytes".to_owned(), dropped as f64)));
    if dropped as f64 > DROPPED_ABOVE.0 * written as f64 {
        if case.issued(Kind::Trim).ops > 0 || case.does(Kind::Trim) {
            return not_checked(
                "the job trims blocks that it wrote, and the kernel counts trimmed pages as dropped",
            );
        }
        return finding!(
            Severity::Invalidates,
            numbers,
            "{} of the written data were dropped from memory before they were stored.",
            show_bytes(dropped)
        );
    }
    // After direct writes, a sync has nothing to write.
    if case.stream.cache.is_direct() {
        cancelled?;
        if dropped > 0 {
            let dropped = show_bytes(dropped);
            return holds(
                format!("Only {dropped} of the written data were dropped before they were stored."),
                numbers,
            );
        }
        return holds("No write was dropped before it was stored.", numbers);
    }
    let tops = case.top_layers()?;
    let others = case.submitted_by_sharers(Kind::Write, &tops);
    let synced = case.synced_write_bytes()?;
    let arrived = synced.saturating_sub(others.least);
    let distinct = distinct_bytes(case)?;
    numbers.insert("device_write_bytes_after_sync".into(), arrived as f64);
    numbers.insert("different_bytes".into(), distinct);
    let arrived_at_least =
        if others.most == 0 { arrived } else { synced.saturating_sub(amplified(others.most)) };
    if arrived as f64 >= WRITTEN_FROM.0 * distinct {
        if (arrived_at_least as f64) < WRITTEN_FROM.0 * distinct {
            return undecided_by_sharing(case, "whether all of this stream's writes were stored");
        }
        cancelled?;
        return holds("The written data were stored after the final sync.", numbers);
    }
    if split_known(case.extents_over_runs()).1.is_err() || earlier.finds(CheckId::A07) {
        return not_checked(
            "the file may be stored compressed, so the bytes at the device do not show how much was stored",
        );
    }
    finding!(
        Severity::Invalidates,
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
    let distinct_in_run = |ran: &CaseRun| {
        let written = ran.stream.issued.get(&Kind::Write).map_or(0, |i| i.bytes) as f64;
        Ok(written * (1.0 - super::cacheable::repeated_share(case, written)?))
    };
    case.runs.iter().map(distinct_in_run).sum()
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn the_sentence_contains_the_rate_with_the_final_sync() {
    let fixture = Fixture { delivered: 0.0, sync_ns: Some(3_000_000_000), ..Fixture::honest_write() };
    let Ok(Answer::Finding(f)) = WRITES_STILL_IN_RAM.answer(&fixture.record()) else { panic!("silent") };
    // 10,000 operations of 4 KiB in 1 s and 3 s of sync.
    assert_eq!(f.evidence.get("mb_per_s_with_sync").map(|r| (r * 100.0).round()), Some(1024.0));
    assert!(f.sentence.contains("10.2 MB/s"), "{}", f.sentence);
}

#[test]
fn reads_do_not_apply_and_dirty_pages_suffice_without_counters() {
    assert_eq!(WRITES_STILL_IN_RAM.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
    let dirty = Fixture { dirty_share: 0.5, stat_unreadable: true, ..Fixture::honest_write() };
    assert_eq!(WRITES_STILL_IN_RAM.severity(&dirty.record()), Some(Severity::Relabels));
}

#[test]
fn small_random_writes_that_changed_pages_in_memory_are_counted() {
    let at = |block_bytes, delivered| {
        let cache = model::job::Cache::Buffered;
        Fixture { block_bytes, cache, delivered, ..Fixture::honest_write() }.record()
    };
    let Ok(Answer::Finding(found)) = WRITES_STILL_IN_RAM.answer(&at(512, 1.0)) else { panic!("silent") };
    assert!(
        found.sentence.starts_with("88 % of the writes only changed pages in memory"),
        "{}",
        found.sentence
    );
    assert_eq!(WRITES_STILL_IN_RAM.severity(&at(512, 8.0)), None, "a page for each write");
}

#[test]
fn rewrites_of_a_small_target_next_to_a_large_one_are_not_lost() {
    let lost = Fixture { cache: model::job::Cache::Buffered, sync_works: false, ..Fixture::honest_write() };
    let at = |small_bytes: u64| {
        let mut record = Fixture { delivered: 0.55, ..lost.clone() }.record();
        let plan = &mut record.header.plan;
        plan.targets = vec![plan.targets[0].clone(); 2];
        plan.targets[1].bytes = small_bytes;
        plan.jobs[0].phases[0].streams[0].targets = vec![0, 1];
        let places = &mut record.header.hosts[0].places;
        *places = vec![places[0].clone(); 2];
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence).chain(&mut record.evidence) {
            snapshot.targets = vec![snapshot.targets[0].clone(); 2];
        }
        NEVER_WRITTEN.severity(&record)
    };
    assert_eq!(at(1 << 30), Some(Severity::Invalidates));
    assert_eq!(at(64 << 10), None, "half of the writes went to the same 16 blocks");
}

#[cfg(test)]
fn cancelled(bytes: u64) -> model::record::Record {
    let mut record = Fixture::honest_write().record();
    super::change_snapshots(&mut record, |s| {
        let bytes = if s.moment == Moment::Synced { bytes } else { 0 };
        s.files
            .insert("/proc/self/io".into(), Ok(format!("write_bytes: 9\ncancelled_write_bytes: {bytes}\n")));
    });
    record
}

#[test]
fn more_than_one_percent_dropped_is_void() {
    // 11,000 writes of 4 KiB a run.
    let few = NEVER_WRITTEN.sentence(&cancelled(440_000));
    assert!(few.starts_with("Only 2.10 MiB of the written data were dropped"), "{few}");
    assert!(NEVER_WRITTEN.sentence(&cancelled(0)).starts_with("No write was dropped"));
    assert_eq!(NEVER_WRITTEN.severity(&cancelled(460_000)), Some(Severity::Invalidates));
}

#[test]
fn bytes_missing_at_the_device_after_the_sync_are_void() {
    let lost = Fixture { cache: model::job::Cache::Buffered, sync_works: false, ..Fixture::honest_write() };
    let buffered = |delivered| Fixture { delivered, ..lost.clone() };
    let at = |delivered| NEVER_WRITTEN.severity(&buffered(delivered).record());
    assert_eq!(at(0.95), None);
    assert_eq!(at(0.8), Some(Severity::Invalidates));
    let encoded = Fixture { encoded_share: 1.0, ..buffered(0.5) };
    assert!(NEVER_WRITTEN.answer(&encoded.record()).is_err());
}

#[test]
fn a_job_that_trims_is_not_checked() {
    let mut record = cancelled(20_000_000);
    record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].mix =
        model::job::Mix::from_percents(0, 10);
    assert!(NEVER_WRITTEN.answer(&record).is_err_and(|why| why.contains("trims")));
}

#[test]
fn an_unknown_count_of_dropped_pages_hides_no_missing_write() {
    let uncounted = |sync_works| {
        let cache = model::job::Cache::Buffered;
        let fixture = Fixture { cache, delivered: 0.1, sync_works, ..Fixture::honest_write() };
        let mut record = fixture.record();
        super::change_snapshots(&mut record, |s| drop(s.files.remove("/proc/self/io")));
        NEVER_WRITTEN.answer(&record)
    };
    assert!(matches!(uncounted(false), Ok(Answer::Finding(_))), "{:?}", uncounted(false));
    assert!(uncounted(true).is_err_and(|why| why.contains("/proc/self/io")));
}
