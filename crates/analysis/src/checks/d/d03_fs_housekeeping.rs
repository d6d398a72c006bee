//! D03: a file system that did its own work during the runs. Looks for kernel threads that initialise, move or
//! scrub data on the file system, for writes to the disk while fathom was idle, and for discards in runs that
//! trim nothing.

use crate::checks::prelude::*;
use crate::figures::kernel_text::{discarded_bytes, grown};
use model::evidence::HOUSEKEEPERS;

/// Threads that exist only during such work: start of their name, file system, and what they do. Other threads,
/// such as `btrfs-cleaner`, exist as long as the mount.
const WORKERS: &[(&str, &str, &str)] = &[
    ("ext4lazyinit", "ext4", "is still writing the inode tables of a fresh ext4"),
    ("btrfs-balance", "btrfs", "is moving the blocks of btrfs"),
    ("btrfs-scrub", "btrfs", "is reading all of btrfs"),
    ("xfs_scrub", "xfs", "is reading all of xfs"),
    ("bch-gc", "bcachefs", "is collecting garbage of bcachefs"),
];
/// Bytes per second written to the disk while fathom is idle that are harmless. A journal commit and a log line
/// are some KiB; a fresh ext4 writes tens of MiB.
const IDLE_BYTES_PER_S: f64 = (1 << 20) as f64;
/// A shorter idle watch does not give a rate.
const IDLE_FROM_NS: u64 = 500_000_000;
/// Bytes discarded per run that never count: a deleted log file.
const DISCARDED_FROM: u64 = 1 << 20;

pub(super) const CHECK: Check = Check {
    id: CheckId::D03,
    name: "FS_HOUSEKEEPING",
    belief: "the file system did only fathom's operations",
    reads: "Names of kernel threads in `/proc/*/comm` at the start and stop of each run; writes of the disk \
            in `/sys/block/*/stat` during the idle watch before the first run; discarded blocks (field 14) \
            during the runs.",
    formula: formula!(
        "A thread that exists only while it works (`ext4lazyinit`, `btrfs-balance`, `btrfs-scrub`, \
         `xfs_scrub`, `bch-gc`), with a target on such a file system: biased, or a note if the disk had no \
         writes in the idle watch, since the thread serves all mounts. More than {idle}/s written to the \
         disk while fathom was idle (for {watched} or longer), if D01 found no other process during the \
         runs: biased (a fresh ext4 of 4 GB writes 11 MB/s for seconds). More than {discarded} discarded per \
         run without trims: a note.",
        idle = show_bytes(IDLE_BYTES_PER_S as u64),
        discarded = show_bytes(DISCARDED_FROM),
        watched = Ns(IDLE_FROM_NS as f64)
    ),
    provoke: "mkfs.ext4 -E lazy_itable_init=1 /dev/X && mount -o init_itable=10000 /dev/X /mnt && fathom run \
              /mnt",
    fix: "Wait until the thread has ended (`ps -e | grep -e lazyinit -e balance -e scrub`), and measure \
          again.",
    accept: "Accept it if your machine always does that. To avoid it, make the file system with `-E \
             lazy_itable_init=0,lazy_journal_init=0`, mount without `discard`, and use fstrim between \
             measurements.",
    ask: Ask::After(&[CheckId::D01], evaluate),
    #[cfg(test)]
    fires: Some(|| with_thread("4711: ext4lazyinit")),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
        snapshots.for_each(|s| drop(s.files.remove(HOUSEKEEPERS)));
        record
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    case.need_run()?;
    let active_thread = active_thread(case)?;
    let idle = idle_bytes_per_s(case)?;
    let mut numbers = evidence([]);
    numbers.extend(idle.map(|rate| ("idle_write_bytes_per_s".to_owned(), rate)));
    if let Some((thread, action)) = active_thread {
        let mut sentence = format!("The kernel thread {thread} {action}.");
        let disk_was_quiet = idle.is_some_and(|rate| rate <= IDLE_BYTES_PER_S);
        if disk_was_quiet {
            sentence += " This disk was quiet while fathom was idle, so the thread may work on another disk.";
        }
        let severity = if disk_was_quiet { Severity::Note } else { Severity::Biased };
        return Detail::new(severity, sentence, numbers).found();
    }
    if let Some(rate) = idle.filter(|rate| *rate > IDLE_BYTES_PER_S && !earlier.finds(CheckId::D01)) {
        return finding!(
            Severity::Biased,
            numbers,
            "While fathom was idle, {} per second were written to the disk: a file system may still be \
             initialising.",
            show_bytes(rate as u64)
        );
    }
    let discarded = if case.with_sharers().does(Kind::Trim) { 0 } else { discarded(case)? };
    if discarded > DISCARDED_FROM.saturating_mul(case.runs.len() as u64) {
        numbers.insert("discarded_bytes".into(), discarded as f64);
        return finding!(
            Severity::Note,
            numbers,
            "{} of deleted files were discarded on the disk during the runs (mount option discard).",
            show_bytes(discarded)
        );
    }
    holds("The file system did no work of its own.", numbers)
}

/// Returns a thread that works for one of the target's file systems.
fn active_thread(case: &Case) -> Known<Option<(&'static str, &'static str)>> {
    for ran in &case.runs {
        for moment in [Moment::Start, Moment::Stop] {
            let text = ran.at(moment)?.text(HOUSEKEEPERS)?;
            let names = || text.lines().filter_map(|l| l.split_once(": ").map(|(_, name)| name.trim()));
            let is_in_use = |fs: &str| case.places().any(|p| p.kind() == fs);
            let worker =
                WORKERS.iter().find(|(begin, fs, _)| is_in_use(fs) && names().any(|n| n.starts_with(begin)));
            if let Some((name, _, action)) = worker {
                return Ok(Some((name, action)));
            }
        }
    }
    Ok(None)
}

/// Returns the bytes per second written to the shared disks during the idle watch, or `None` without one.
fn idle_bytes_per_s(case: &Case) -> Known<Option<f64>> {
    let at = |moment| case.record.evidence.iter().rev().find(|s: &&Snapshot| s.moment == moment);
    let (Some(start), Some(end)) = (at(Moment::IdleStart), at(Moment::IdleEnd)) else { return Ok(None) };
    let ns = end.at_ns.saturating_sub(start.at_ns);
    if ns < IDLE_FROM_NS {
        return Ok(None);
    }
    let mut bytes = 0.0;
    for disk in case.shared()? {
        bytes += BlockStat::between(start, end, &disk.stat_file)?.write.bytes as f64;
    }
    Ok(Some(bytes * 1e9 / ns as f64))
}

/// Returns the bytes discarded on the shared disks in all runs, or 0 if the kernel does not count them.
fn discarded(case: &Case) -> Known<u64> {
    let disks = case.shared()?;
    let count = |text: &str| Ok(discarded_bytes(text)?.unwrap_or(0));
    sum_over_runs(case, |ran| {
        disks.iter().try_fold(0_u64, |sum, disk| Ok(sum.saturating_add(grown(ran, &disk.stat_file, count)?)))
    })
}

#[cfg(test)]
use model::record::Record;

#[cfg(test)]
fn with_thread(line: &str) -> Record {
    let mut record = crate::fixture::Fixture::honest().record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.files.insert(HOUSEKEEPERS.into(), Ok(format!("12: kswapd0\n{line}\n")));
    }
    record
}

/// An idle watch of two seconds with `bytes` bytes written.
#[cfg(test)]
fn idle(bytes: u64) -> Record {
    let mut record = crate::fixture::Fixture::honest().record();
    for (moment, at_ns, sectors) in [(Moment::IdleStart, 0, 0), (Moment::IdleEnd, 2_000_000_000, bytes / 512)]
    {
        let mut snapshot = record.runs[0].evidence[0].clone();
        (snapshot.moment, snapshot.at_ns) = (moment, at_ns);
        let text = format!("0 0 0 0 9 0 {sectors} 9 0 0 9 0 0 0 0 0 0\n");
        snapshot.files.insert("/sys/block/vda/stat".into(), Ok(text));
        record.evidence.push(snapshot);
    }
    record
}

#[test]
fn a_thread_counts_only_for_its_own_file_system() {
    assert_eq!(CHECK.severity(&with_thread("9: ext4lazyinit")), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&with_thread("9: btrfs-balance")), None);
    assert_eq!(CHECK.severity(&with_thread("9: btrfs-cleaner")), None);
}

#[test]
fn writes_during_the_idle_watch_bias() {
    assert_eq!(CHECK.severity(&idle(1 << 20)), None);
    assert_eq!(CHECK.severity(&idle(20 << 20)), Some(Severity::Biased));
}

#[test]
fn a_thread_that_does_not_write_to_this_disk_is_a_note() {
    let with = |bytes| {
        let mut record = idle(bytes);
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            snapshot.files.insert(HOUSEKEEPERS.into(), Ok("9: ext4lazyinit\n".into()));
        }
        CHECK.severity(&record)
    };
    assert_eq!((with(1 << 20), with(20 << 20)), (Some(Severity::Note), Some(Severity::Biased)));
}

#[test]
fn discarded_blocks_are_a_note() {
    let after = |sectors: &str| {
        let mut record = crate::fixture::Fixture { runs: 1, ..crate::fixture::Fixture::honest() }.record();
        let stop = record.runs[0].evidence.iter_mut().find(|s| s.moment == Moment::Stop).unwrap();
        let text = stop.files["/sys/block/vda/stat"].clone().unwrap();
        let mut fields: Vec<&str> = text.split_ascii_whitespace().collect();
        fields[13] = sectors;
        stop.files.insert("/sys/block/vda/stat".into(), Ok(fields.join(" ")));
        CHECK.answer(&record)
    };
    assert!(matches!(after("2048"), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = after("4096") else { panic!("silent") };
    assert!(f.severity == Severity::Note && f.sentence.starts_with("2 MiB"), "{}", f.sentence);
    assert!(after("x").is_err());
}
