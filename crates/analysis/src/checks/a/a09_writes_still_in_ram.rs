//! A09: acknowledged writes that were still in memory when the clock stopped. Compares the bytes written with the
//! bytes at the device, and counts dirty pages, both before the final sync.

use crate::checks::prelude::*;

/// Share in memory that is normal: requests in flight and the last pages of a flush.
const RENAMED_ABOVE: Share = Share(0.05);

pub(super) const CHECK: Check = Check {
    id: CheckId::A09,
    name: "WRITES_STILL_IN_RAM",
    belief: "the writes had left memory when the clock stopped",
    reads: "The `stat` files of the devices and the dirty pages of the target (cachestat), both at the stop \
            of every run and before the final sync, compared with the bytes that fathom wrote. Also the \
            duration of that sync.",
    formula: formula!(
        "Share in memory = the larger of 1 - bytes at the device / bytes written and dirty bytes / bytes \
         written. Above {RENAMED_ABOVE} the number is relabelled to the page cache: smaller shares are \
         requests in flight and the last pages of a flush. The finding also gives the rate with the final \
         sync included. If other streams write to the same device, the bytes of this stream are known within \
         bounds. At least: direct writes that its own workers submitted, or pages that they dirtied and that \
         are clean again (`write_bytes` in /proc/thread-self/io). At most: the device's total less the other \
         streams' writes."
    ),
    provoke: "`fathom run --rw randwrite --cache buffered --time 1s DIR`.",
    fix: "Use --cache direct, sync or dsync, or measure for longer than memory can absorb the writes.",
    accept: "Accept it if your program also writes bursts into memory.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture {
            delivered: 0.3,
            dirty_share: 0.7,
            ..crate::fixture::Fixture::honest_write()
        }
        .record()
    }),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest_write() }.record()
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let written = issued_bytes(case, Kind::Write)? as f64;
    let bounds = case.at_device(Kind::Write);
    let device = bounds.as_ref().map(|d| d.most as f64);
    let share_missing = |device: Option<f64>| device.map_or(0.0, |d| 1.0 - d / written);
    let dirty = case.own_dirty_bytes(Moment::Stop).map(|bytes| bytes as f64);
    let share_in_memory =
        |device: Option<f64>| share_missing(device).max(dirty.unwrap_or(0.0) / written).clamp(0.0, 1.0);
    let device = device.ok();
    let in_memory = share_in_memory(device);
    let mut numbers = evidence([("written_bytes", written), ("in_memory_share", in_memory)]);
    numbers.extend(device.map(|d| ("device_write_bytes".to_owned(), d)));
    numbers.extend(dirty.map(|d| ("dirty_bytes".to_owned(), d)));
    if in_memory > RENAMED_ABOVE {
        return Ok(Answer::Finding(finding(case, in_memory, numbers)));
    }
    // If other streams share the device, both bounds must lead to the same answer.
    if share_in_memory(Some(bounds?.least as f64)) > RENAMED_ABOVE {
        return case.cannot_tell("how many of this stream's writes had left memory");
    }
    holds("The writes were at the device when the clock stopped.", numbers)
}

fn finding(case: &Case, in_memory: f64, mut numbers: Evidence) -> Detail {
    let mut sentence = format!(
        "{} of the written bytes were still in memory when the clock stopped.",
        show_share(in_memory)
    );
    if let Some(rate) = rate_with_sync(case) {
        sentence += &format!(" Including the final sync, the rate is {} MB/s.", show_rate(rate));
        numbers.insert("mb_per_s_with_sync".into(), rate);
    }
    Detail::new(Severity::Rename, sentence, numbers).relabelled(Rename::Medium("page cache".into()))
}

/// Returns the write rate in MB/s with the final sync counted as part of the time.
fn rate_with_sync(case: &Case) -> Option<f64> {
    // The final sync covers the writes of all streams.
    if case.others_write() {
        return None;
    }
    let mut ns = case.window_ns();
    for ran in &case.runs {
        ns += ran.end.sync_ns? as f64;
    }
    let bytes = case.in_windows(Kind::Write).bytes as f64;
    (ns > 0.0).then(|| bytes / ns * 1e3)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn the_sentence_contains_the_rate_with_the_final_sync() {
    let fixture = Fixture { delivered: 0.0, sync_ns: Some(3_000_000_000), ..Fixture::honest_write() };
    let Ok(Answer::Finding(f)) = CHECK.answer(&fixture.record()) else { panic!("silent") };
    // 10,000 operations of 4 KiB in 1 s and 3 s of sync.
    assert_eq!(f.evidence.get("mb_per_s_with_sync").map(|r| (r * 100.0).round()), Some(1024.0));
    assert!(f.sentence.contains("10.2 MB/s"), "{}", f.sentence);
}

#[test]
fn reads_are_not_checked_and_dirty_pages_suffice_without_counters() {
    assert_eq!(CHECK.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
    let dirty = Fixture { dirty_share: 0.5, stat_unreadable: true, ..Fixture::honest_write() };
    assert_eq!(CHECK.severity(&dirty.record()), Some(Severity::Rename));
}
