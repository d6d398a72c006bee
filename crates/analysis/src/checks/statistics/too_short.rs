//! Whether the measurement was long enough for what happens over time (E12, E13).
//!
//! E12 checks the operations and the length of each window, the total time of all runs, and, for
//! writes to flash drives, the bytes written against the drive's fast cache. E13 compares the bytes
//! written and discarded since the machine started with the capacity of a flash drive: a drive that
//! was just emptied is fast. No drive of a virtual machine counts as a flash drive (D18).

use crate::checks::prelude::*;
use crate::figures::kernel_text::discarded_bytes;
use crate::figures::{MAX_RATE_ERROR, MIN_WINDOW_NS, MIN_WINDOW_OPS, TICK_NS, TooShort, why_too_short};

/// Below this number of measured seconds, periodic work is missed: ext4 commits its journal and the kernel writes back
/// old pages every five seconds.
const SECONDS_FROM: f64 = 5.0;
/// Share of the capacity that a consumer flash drive may use as a fast cache.
const FAST_SHARE: Share = Share(0.10);
/// Largest fast cache of a drive.
const FAST_AT_MOST: u64 = 100_000_000_000;

pub(super) const TOO_SHORT: Check = Check {
    id: CheckId::E12,
    name: "TOO_SHORT",
    belief: "the measured rate continues",
    reads: "The lengths of the measured windows of all runs and the bytes written in them. For the drive: \
            `queue/rotational`, its driver and its capacity.",
    formula: formula!(
        "Checks that the windows are long enough for a rate, and all runs together for what happens over \
         time.\n\
         - Biased, and without an interval, if windows that end by the clock are shorter than {least}. In \
         less time, a delay of a worker by a scheduler tick (up to {tick}) changes the rate by more than \
         {wrong}.\n\
         - Biased, and without an interval, if the windows contain fewer than {MIN_WINDOW_OPS} operations \
         on average. With fewer, one operation at the edges of a window changes the rate by more than \
         {wrong}.\n\
         - Biased for writes to a flash drive if all runs of the result wrote less than {FAST_SHARE} of \
         its capacity, or less than {most} GB if that is less. Its fast cache (SLC) may have taken all of \
         it. A flash drive has the driver nvme or sd, is not rotational, and is not in a virtual machine. \
         A09 reports writes that memory took.\n\
         - A note if the windows of all runs total less than {SECONDS_FROM} s: journal commits and \
         writeback happen every five seconds.\n\
         - Runs that are equally short agree, so their variation does not show the first two errors.",
        wrong = Share(MAX_RATE_ERROR),
        least = Ns(MIN_WINDOW_NS),
        tick = Ns(TICK_NS),
        most = FAST_AT_MOST / 1_000_000_000
    ),
    provoke: "`fathom run --time 1ms --warmup 0 DIR`; `fathom run --time 1s --runs 1 DIR`; `fathom run --rw \
              write --bs 1m --time 5s DIR` on a consumer NVMe drive.",
    fix: "Use a longer --time or more --runs; for sustained writes, a --size and --time beyond the fast \
          cache.",
    accept: "Accept it if your load comes in bursts.",
    applies: |_| true,
    ask: Ask::Alone(check_too_short),
    #[cfg(test)]
    fires: Some(|| Fixture { runs: 2, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { runs: 0, ..Fixture::honest() }.record(),
};

fn check_too_short(case: &Case) -> Known<Answer> {
    case.need_run()?;
    let seconds = case.window_ns() / 1e9;
    let written = case.issued(Kind::Write).bytes;
    let mut numbers = evidence([("seconds", seconds), ("written_bytes", written as f64)]);
    if let Some(shortage) = why_too_short(case) {
        return match shortage {
            TooShort::Operations(ops) => {
                numbers.insert("operations_per_window".into(), ops);
                detail!(
                    Severity::Biases,
                    numbers,
                    "A window contains {ops:.1} operations on average: one more or less at its edges is {} \
                     of the rate, so fathom gives no interval.",
                    show_share(1.0 / ops)
                )
                .with_fix(format!("Use a longer --time: each run needs {MIN_WINDOW_OPS:.0} operations."))
            }
            TooShort::Time(ns) => {
                numbers.insert("window_ns".into(), ns);
                detail!(
                    Severity::Biases,
                    numbers,
                    "A window was {} long on average: a scheduler tick, at most 10 ms, is too large a part \
                     of that, so fathom gives no interval.",
                    show_ns(ns)
                )
                .with_fix(format!("Use a longer --time: at least {}.", show_ns(MIN_WINDOW_NS)))
            }
        }
        .found();
    }
    if case.does(Kind::Write)
        && let Some(fast) = fast_cache_bytes(case)
        && written < fast
    {
        return finding!(
            Severity::Biases,
            numbers,
            "{} were written in total, and the fast cache of a flash drive of this capacity may hold {}: \
             this may be the speed of that cache alone.",
            show_bytes(written),
            show_bytes(fast)
        );
    }
    // Measured windows are a little shorter than requested.
    if seconds < SECONDS_FROM - 0.05 {
        return finding!(
            Severity::Note,
            numbers,
            "Only {} were measured in total, so periodic work such as a journal commit every \
             five seconds is hardly included.",
            show_seconds(seconds)
        );
    }
    holds("All runs together are longer than the period of journal commits and writeback.", numbers)
}

/// Returns the bytes that the fast caches of the drives may hold. `None` if a drive is not flash or
/// has an unknown driver.
fn fast_cache_bytes(case: &Case) -> Option<u64> {
    let leaves = case.lowest_layers().ok()?;
    let is_known = |driver: Option<&str>| matches!(driver, Some("nvme" | "sd"));
    let flash = is_flash(case).ok()? && leaves.iter().all(|l| is_known(l.driver.as_deref()));
    let fast = |bytes: u64| ((bytes as f64 * FAST_SHARE.0) as u64).min(FAST_AT_MOST);
    flash.then(|| leaves.iter().map(|l| fast(l.bytes)).fold(0, u64::saturating_add))
}

/// Multiple of the capacity that must be written before a drive counts as used (SNIA preconditioning).
const WRITTEN_FROM: f64 = 2.0;
/// Minimum share of the capacity that must have been discarded for the drive to count as emptied.
const EMPTIED_FROM: Share = Share(0.5);

pub(super) const FRESH_FLASH: Check = Check {
    id: CheckId::E13,
    name: "FRESH_FLASH",
    belief: "the drive was in the state of normal use",
    reads: "The `stat` file of the lowest devices at the start of the first run: sectors written and \
            discarded since the machine started. Also `queue/rotational` and the capacity.",
    formula: formula!(
        "Compares the bytes written and discarded since the machine started with the capacity, for writes \
         and trims on drives that are not rotational, outside virtual machines.\n\
         - Relabelled if less than {WRITTEN_FROM} times the capacity was written (SNIA's preconditioning) \
         and at least {EMPTIED_FROM} of it was discarded: the drive was emptied.\n\
         - Holds if {WRITTEN_FROM} times the capacity was written.\n\
         - Holds, if the drive was not emptied, after --precondition wrote the measured region twice and \
         the rate settled.\n\
         - Not checked otherwise: the history before the machine started is unknown.\n\
         - Not checked if the kernel does not count discards."
    ),
    provoke: "`blkdiscard -f /dev/DRIVE && fathom run --rw randwrite --destroy DRIVE /dev/DRIVE`, which \
              erases the drive.",
    fix: "Measure the whole drive with --precondition (`fathom run --rw randwrite --precondition --destroy \
          DRIVE /dev/DRIVE`), which first erases it, writes it twice and runs the measured job \
          until the rate settles.",
    accept: "Accept it if you compare fresh drives. A file on an emptied drive leaves the rest of \
             the drive empty, however often the file is written.",
    applies: |case| (case.does(Kind::Write) || case.does(Kind::Trim)) && case.on_device(),
    ask: Ask::Alone(check_fresh_flash),
    #[cfg(test)]
    fires: Some(|| drive(1 << 34, 1 << 33)),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest_write() }.record(),
};

fn check_fresh_flash(case: &Case) -> Known<Answer> {
    if !is_flash(case)? {
        return Ok(Answer::DoesNotApply);
    }
    let start = case.runs.first().ok_or_else(no_run)?.snapshot(Moment::Start)?;
    let (mut capacity, mut written, mut discarded) = (0_u64, 0_u64, 0_u64);
    for leaf in case.lowest_layers()? {
        let text = start.text(&leaf.stat_file)?;
        capacity = capacity.saturating_add(leaf.bytes);
        written = written.saturating_add(BlockStat::parse(text)?.write.bytes);
        discarded =
            discarded.saturating_add(discarded_bytes(text)?.ok_or("this kernel does not count discards")?);
    }
    let numbers = evidence([
        ("capacity_bytes", capacity as f64),
        ("written_bytes", written as f64),
        ("discarded_bytes", discarded as f64),
    ]);
    if written as f64 >= WRITTEN_FROM * capacity as f64 {
        return holds("At least twice the drive's capacity was written since the machine started.", numbers);
    }
    let preconditioned = case.record.preconditioned.as_ref();
    if (discarded as f64) < EMPTIED_FROM.0 * capacity as f64 {
        if preconditioned.is_some_and(|d| d.settled == Some(true)) {
            let sentence = "Preconditioning wrote the measured region twice and ran until the rate settled.";
            return holds(sentence, numbers);
        }
        return Err(format!(
            "{} were written to the drive (capacity {}) since the machine started; its state before is \
             unknown",
            show_bytes(written),
            show_bytes(capacity)
        ));
    }
    detail!(
        Severity::Relabels,
        numbers,
        "The drive was probably emptied: {} were discarded (capacity {}) since the machine started, and only \
         {} written. A fresh flash drive writes faster than a used one.{}",
        show_bytes(discarded),
        show_bytes(capacity),
        show_bytes(written),
        if preconditioned.is_some() { " Preconditioning left the rest of the drive empty." } else { "" }
    )
    .relabelled(Rename::Condition("freshly emptied drive".into()))
    .found()
}

/// Whether no disk below the targets is rotational. False in a virtual machine, where the kernel's
/// flag means nothing.
///
/// # Errors
/// Fails if that is not known.
pub(super) fn is_flash(case: &Case) -> Known<bool> {
    let machine = case.machine.ok_or("the record names no host")?;
    if machine.virtual_by.as_ref().map_err(Clone::clone)?.is_some() {
        return Ok(false);
    }
    for leaf in case.lowest_layers()? {
        if leaf.queue_number("rotational")? != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn the_time_of_all_runs_counts() {
    assert_eq!(TOO_SHORT.severity(&Fixture { runs: 5, ..Fixture::honest() }.record()), None);
    assert_eq!(TOO_SHORT.severity(&Fixture { runs: 4, ..Fixture::honest() }.record()), Some(Severity::Note));
}

#[test]
fn windows_with_few_operations_bias_and_have_no_interval() {
    let few_ops = Fixture { ops: 1, ..Fixture::honest() }.record();
    let Ok(Answer::Finding(f)) = TOO_SHORT.answer(&few_ops) else { panic!("silent") };
    assert!(f.severity == Severity::Biases && f.sentence.contains("100 % of the rate"), "{}", f.sentence);
    let report = crate::judge(&few_ops, &crate::Judging::default());
    assert_eq!((report.headline.interval, report.verdict), (None, model::report::Verdict::Suspect));
    assert!(report.headline.value.is_some());
}

#[test]
fn writes_below_the_fast_cache_of_a_known_drive_bias() {
    let on = |driver: &str, bytes: u64| {
        let mut record = Fixture::honest_write().record();
        let disk = &mut record.header.hosts[0].places[0].layers[0];
        (disk.driver, disk.bytes) = (Some(driver.into()), bytes);
        record
    };
    // 55,000 operations of 4 KiB are 225 MB.
    assert_eq!(TOO_SHORT.severity(&on("nvme", 1 << 40)), Some(Severity::Biases));
    assert_eq!(TOO_SHORT.severity(&on("nvme", 2_000_000_000)), None);
    assert_eq!(TOO_SHORT.severity(&on("virtio_blk", 1 << 40)), None);
    let mut guest = on("nvme", 1 << 40);
    guest.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!(TOO_SHORT.severity(&guest), None);
}

/// A drive of 16 GiB with this many bytes discarded and written since the machine started.
#[cfg(test)]
fn drive(discarded: u64, written: u64) -> model::record::Record {
    let mut record = Fixture::honest_write().record();
    let start = &mut record.runs[0].evidence[0];
    let text = format!("0 0 0 0 9 0 {} 9 0 0 9 5 0 {} 0 0 0\n", written / 512, discarded / 512);
    start.files.insert("/sys/block/vda/stat".into(), Ok(text));
    record
}

#[test]
fn an_emptied_drive_relabels_and_a_used_drive_holds() {
    assert_eq!(FRESH_FLASH.severity(&drive(1 << 34, 1 << 33)), Some(Severity::Relabels));
    assert!(matches!(FRESH_FLASH.answer(&drive(1 << 34, 1 << 35)), Ok(Answer::Holds(..))));
    assert!(FRESH_FLASH.answer(&drive(1 << 32, 1 << 33)).is_err_and(|why| why.contains("is unknown")));
}

#[test]
fn preconditioning_holds_unless_most_of_the_drive_was_emptied() {
    use model::record::Preconditioned;
    let conditioned = |discarded, settled| {
        let mut record = drive(discarded, 1 << 33);
        record.preconditioned = Some(Preconditioned { settled, ..Preconditioned::default() });
        record
    };
    assert!(matches!(FRESH_FLASH.answer(&conditioned(1 << 32, Some(true))), Ok(Answer::Holds(..))));
    assert!(FRESH_FLASH.answer(&conditioned(1 << 32, Some(false))).is_err());
    let Ok(Answer::Finding(f)) = FRESH_FLASH.answer(&conditioned(1 << 34, Some(true))) else {
        panic!("silent")
    };
    assert!(f.sentence.contains("left the rest of the drive empty"), "{}", f.sentence);
}

#[test]
fn e13_does_not_apply_to_hard_disks_and_virtual_disks() {
    let mut disk = drive(1 << 34, 1 << 33);
    disk.header.hosts[0].places[0].layers[0].queue.insert("rotational".into(), "1\n".into());
    assert_eq!(FRESH_FLASH.answer(&disk), Ok(Answer::DoesNotApply));
    let mut guest = drive(1 << 34, 1 << 33);
    guest.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!(FRESH_FLASH.answer(&guest), Ok(Answer::DoesNotApply));
}
