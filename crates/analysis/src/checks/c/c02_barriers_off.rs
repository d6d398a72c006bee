//! C02: syncs that are turned off by a mount option or a preloaded library. Looks for `nobarrier` and similar
//! options, and for libraries such as libeatmydata.

use crate::checks::prelude::*;
use model::evidence::LIBRARIES;
use model::machine::FileSystem;

/// Mount options that turn off syncs.
const OFF: &[&str] =
    &["nobarrier", "barrier=0", "barrier=none", "fsync_mode=nobarrier", "volatile", "fsync=volatile"];
/// Libraries that skip syncs.
const SKIP_SYNCS: &[&str] = &["eatmydata", "nosync", "libnofsync"];

pub(super) const CHECK: Check = Check {
    id: CheckId::C02,
    name: "BARRIERS_OFF",
    belief: "no mount option and no library skips syncs",
    reads: "The options of the mounts in `/proc/self/mountinfo`; the libraries in `/proc/self/maps`, and \
            `LD_PRELOAD`.",
    formula: formula!(
        "Any of the mount options `nobarrier`, `barrier=0`, `barrier=none`, `fsync_mode=nobarrier` or \
         (overlay) `volatile` or `fsync=volatile`, or any of the libraries libeatmydata, nosync and \
         libnofsync. One is enough: each turns a sync into a no-op."
    ),
    provoke: "mount -o remount,nobarrier /mnt\nfathom run --rw randwrite --depth 1 --fsync 1 /mnt",
    fix: "Mount with barriers (`mount -o remount,barrier`), and start fathom without libraries that skip \
          syncs.",
    accept: "Accept it if the caches of all disks below are protected against power loss.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { options: "rw,relatime,nobarrier", ..super::stable_writes() }.record()
    }),
    #[cfg(test)]
    blind: || {
        let mut record = super::stable_writes().record();
        record.header.hosts[0].facts.remove(LIBRARIES);
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    if let Some(what) = skipped_by(case) {
        let sentence = format!("Syncs are skipped here: {what}.");
        return super::skipped_syncs(case, &sentence, evidence([]));
    }
    let machine = case.machine.ok_or("the record names no host")?;
    machine.fact(LIBRARIES)?;
    if case.places().next().is_none() {
        return Err("the record does not contain the mount of the target".into());
    }
    if case.places().any(|p| p.kind() == "zfs") {
        return not_checked(
            "zfs keeps `sync` as a property of the dataset, which no kernel file shows (zfs get sync)",
        );
    }
    holds("No mount option and no known library skips syncs.", evidence([]))
}

/// Describes what turns off syncs.
fn skipped_by(case: &Case) -> Option<String> {
    let mut mounts = case.places().filter_map(|p| p.file_system.as_ref());
    if let Some((option, fs)) = mounts.find_map(|fs| Some((skipping_option(fs)?, fs))) {
        return Some(format!("{} is mounted with {option}", fs.mount_point));
    }
    let libraries = case.machine?.fact(LIBRARIES).ok()?;
    let line = libraries.lines().find(|l| SKIP_SYNCS.iter().any(|s| l.contains(s)))?;
    Some(format!("fathom runs with {}", line.trim()))
}

fn skipping_option(fs: &FileSystem) -> Option<&'static str> {
    OFF.iter().copied().find(|off| fs.options.split(',').any(|o| o == *off))
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::finding::Severity;

#[test]
fn a_library_relabels_and_similar_options_do_not() {
    let mut record = super::stable_writes().record();
    let library = |r: &mut model::record::Record, text: &str| {
        r.header.hosts[0].facts.insert(LIBRARIES.into(), Ok(text.into()));
    };
    library(&mut record, "LD_PRELOAD: libeatmydata.so\n/usr/lib/libc.so.6\n");
    assert_eq!(CHECK.severity(&record), Some(Severity::Rename));
    library(&mut record, "/usr/lib/libc.so.6\n");
    assert_eq!(CHECK.severity(&record), None);
    let barrier = Fixture { options: "rw,barrier=1,x-nobarrier-not", ..super::stable_writes() };
    assert_eq!(CHECK.severity(&barrier.record()), None);
}

#[test]
fn a_job_without_syncs_gets_a_note_and_reads_are_not_checked() {
    let plain = Fixture { options: "rw,nobarrier", ..Fixture::honest_write() };
    assert_eq!(CHECK.severity(&plain.record()), Some(Severity::Note));
    let read = Fixture { options: "rw,nobarrier", ..Fixture::honest() };
    assert_eq!(CHECK.answer(&read.record()), Ok(Answer::DoesNotApply));
}
