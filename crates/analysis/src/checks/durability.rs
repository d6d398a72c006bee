//! Group C: whether written data survive a power failure.
//!
//! Flushes are counted only at the lowest layers: the kernel does not count those of device mapper and RAID devices,
//! which have no request queue.
//!
//! - C01 compares the syncs with the flushes that disks with a volatile cache completed. It also fires if a layer
//!   with a volatile cache reports none (`write through`).
//! - C02 looks for `nobarrier` and similar mount options, and for libraries such as libeatmydata, which turn syncs off.
//! - C03 compares the mean time of a flush at the lowest disks with a minimum for flash, for spinning disks, or for virtual machines.
//! - C04 notes writes without syncs on a disk with a volatile cache, and fires if the final sync of
//!   a run failed.
//! - C05 notes file systems on which a server or a user-space program acknowledges writes, because
//!   this machine does not see whether the data are on media. On NFS, it relabels the result if
//!   syncs were requested but no WRITE or COMMIT was sent.
//! - C06 compares the time of the final syncs with the measured time. A09 reports writes that were still in memory.

use crate::checks::prelude::*;
use model::evidence::{Flushes, LIBRARIES, MOUNT_STATS};
use model::machine::FileSystem;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] =
    &[SYNC_WITHOUT_FLUSH, BARRIERS_OFF, FLUSH_TOO_CHEAP, NO_FINAL_SYNC, REMOTE_ACK, SYNC_HIDES_TAIL];

/// Content of `queue/write_cache` for a disk with a volatile cache.
const VOLATILE: &str = "write back";

/// Returns the finding for syncs that do not make data durable. It is a note if the job makes no
/// syncs, because then only the final sync is affected.
fn not_durable_finding(case: &Case, sentence: &str, numbers: Evidence) -> Known<Answer> {
    let sentence = format!("{sentence} Synced data can be lost in a power failure.");
    if !case.syncs_within_window() {
        return Detail::new(Severity::Note, sentence, numbers).found();
    }
    let not_durable = Rename::Condition("not durable".into());
    Detail::new(Severity::Relabels, sentence, numbers).relabelled(not_durable).found()
}

/// Whether a layer reports a volatile write cache.
///
/// # Errors
/// Fails if the layer has no file `queue/write_cache`.
fn is_volatile(layer: &Layer) -> Known<bool> {
    let text = layer.queue.get("write_cache");
    let text = text.ok_or_else(|| format!("{}/queue/write_cache does not exist", layer.name))?;
    Ok(text.trim() == VOLATILE)
}

/// Returns the lowest disks that report a volatile write cache, and why there may be others: a part of the stack is unknown, or
/// a disk does not report its cache.
fn volatile_disks<'a>(case: &Case<'a>) -> (Vec<&'a Layer>, Known<()>) {
    let (mut disks, mut completeness) = (Vec::new(), case.lowest_layers().map(drop));
    for disk in case.layers(|layer| layer.below.is_empty()) {
        match is_volatile(disk) {
            Ok(true) => disks.push(disk),
            Ok(false) => {}
            Err(why) => completeness = completeness.and(Err(why)),
        }
    }
    (disks, completeness)
}

/// Returns the number of syncs of the stream that must reach the disk: sync calls, and writes that are stable before
/// they complete.
fn count_requested_syncs(case: &Case) -> u64 {
    let ops_in_run = |ran: &CaseRun, kind| ran.stream.issued.get(&kind).map_or(0, |i| i.ops);
    let calls = (case.syncs_within_window() && case.calls_sync()).then_some(Kind::Sync);
    let writes = case.stream.cache.is_sync().then_some(Kind::Write);
    let kinds = || calls.into_iter().chain(writes);
    case.runs.iter().flat_map(|r| kinds().map(move |k| ops_in_run(r, k))).fold(0, u64::saturating_add)
}

/// Returns the number of syncs of the other streams that use these disks at the same time.
fn count_syncs_of_sharers(case: &Case, disks: &[&Layer]) -> u64 {
    let streams = case.phase_streams();
    let syncs_of_stream = |at: &usize| {
        let is_stable = streams.get(*at).is_some_and(|s| s.cache.is_sync());
        let writes = if is_stable { case.issued_by(*at, Kind::Write).ops } else { 0 };
        let syncs = case.runs.iter().flat_map(|r| &r.end.streams).filter(|s| s.stream == *at);
        let syncs = syncs.filter_map(|s| s.issued.get(&Kind::Sync)).map(|i| i.ops);
        syncs.fold(writes, u64::saturating_add)
    };
    case.sharers(disks).iter().map(syncs_of_stream).fold(0, u64::saturating_add)
}

/// Returns the flushes of one disk over these runs, from the start to `until`.
///
/// # Errors
/// Fails if they were not counted.
fn sum_flushes_of_disk(runs: &[&CaseRun], disk: &Layer, until: Moment) -> Known<Flushes> {
    let mut sum = Flushes::default();
    for ran in runs {
        let passed = BlockStat::between(ran.snapshot(Moment::Start)?, ran.snapshot(until)?, &disk.stat_file)?;
        let flushes = passed.flush.ok_or("this kernel does not count flushes (Linux 5.5 and later do)")?;
        sum.ios = sum.ios.saturating_add(flushes.ios);
        sum.ms = sum.ms.saturating_add(flushes.ms);
    }
    Ok(sum)
}

/// Minimum number of flushes per sync at depth 1, where each sync causes exactly one flush. At a higher depth, the
/// minimum is divided by the depth.
const FLUSHED_FROM: f64 = 0.5;
/// Largest number of flushes that a sync of another stream may cause: one for the data and one for the journal.
const FLUSHES_OF_A_SYNC: u64 = 2;

const SYNC_WITHOUT_FLUSH: Check = Check {
    id: CheckId::C01,
    name: "SYNC_WITHOUT_FLUSH",
    belief: "a sync made the disk empty its volatile cache",
    reads: "`/sys/block/*/queue/write_cache` and `fua` of every layer; the flushes in `/sys/block/*/stat` of \
            the lowest disks, from the start of a run to its stop, or to its final sync if the job itself \
            makes no syncs; the syncs and synchronous writes that fathom issued.",
    formula: formula!(
        "Flushes that the disks with `write back` completed together, for each sync. (One operation at a \
         time: 100 syncs cause 100 flushes.)\n\
         - Relabelled as not durable if there are fewer than {FLUSHED_FROM} flushes for each sync. With a \
         requested depth of d operations in flight, 1/d of that is enough, since one flush can serve all \
         operations that wait for it.\n\
         - Relabelled as not durable if `write through` cannot be true: on a loop device, on a layer above \
         one that reports `write back`, and on a layer that offers FUA, which only a disk with a volatile \
         cache needs.\n\
         - A note, instead of relabelled, if the job itself makes no syncs: then only the final sync is \
         affected.\n\
         - Not checked, instead of the first rule, after synchronous writes if the disk supports FUA: such \
         writes are durable without a flush.\n\
         - Not checked if the flushes may belong to the syncs of other streams.\n\
         - Does not apply if C02 has a finding."
    ),
    provoke: "truncate -s 1g disk.img && losetup --find --show disk.img\n\
              echo 'write through' > /sys/block/loop0/queue/write_cache   # then mkfs and mount it on /mnt\n\
              fathom run --rw randwrite --bs 4k --depth 1 --cache direct-dsync /mnt",
    fix: "Write `write back` into queue/write_cache of the layers that report otherwise, and mount without \
          `nobarrier`.",
    accept: "Accept it only if the disk has power-loss protection; then `write through` is true.",
    applies: |case| case.does(Kind::Write) && case.on_device(),
    ask: Ask::Unless(&[CheckId::C02], check_sync_without_flush),
    #[cfg(test)]
    fires: Some(|| with_flushes(&stable_writes(), "write back", 0, 0)),
    #[cfg(test)]
    blind: || Fixture { nothing_below: true, ..Fixture::honest_write() }.record(),
};

fn check_sync_without_flush(case: &Case) -> Known<Answer> {
    if let Some(layer) = find_layer_declared_safe(case) {
        let sentence = format!(
            "The cache of {} is only declared safe ({}/queue/write_cache is `write through`), so a sync \
             sends it no flush.",
            layer.name, layer.name
        );
        return not_durable_finding(case, &sentence, evidence([]));
    }
    let (disks, completeness) = volatile_disks(case);
    completeness?;
    if disks.is_empty() {
        return holds("The disk reports no volatile cache, so a sync needs no flush.", evidence([]));
    }
    // If the stream makes no syncs, only the final sync of each run counts.
    let (requested, runs, until): (_, Vec<&CaseRun>, _) = match count_requested_syncs(case) {
        0 => {
            let synced: Vec<_> = case.runs.iter().filter(|ran| final_sync_completed(case, ran)).collect();
            (synced.len() as u64, synced, Moment::Synced)
        }
        requested => (requested, case.runs.iter().collect(), Moment::Stop),
    };
    if requested == 0 {
        return Err("no sync completed".into());
    }
    // A file system on several disks may flush only the disks that were written.
    let flushed = disks.iter().try_fold(0_u64, |sum, disk| -> Known<u64> {
        Ok(sum.saturating_add(sum_flushes_of_disk(&runs, disk, until)?.ios))
    })?;
    let numbers = evidence([
        ("syncs", requested as f64),
        ("flushes", flushed as f64),
        ("flushes_per_sync", share(flushed as f64, requested as f64)),
    ]);
    let needed = FLUSHED_FROM * requested as f64 / requested_depth(&case.stream).max(1.0);
    let flushes_of_sharers = count_syncs_of_sharers(case, &disks).saturating_mul(FLUSHES_OF_A_SYNC);
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
        return not_checked(
            "the disk supports FUA writes, which are durable without a flush and which the kernel does not \
             count separately",
        );
    }
    let counted = |count: u64, one: &str, many: &str| {
        format!("{} {}", show_count(count as f64), if count == 1 { one } else { many })
    };
    let sentence = format!(
        "{} requested, but the disk got {}.",
        counted(requested, "sync was", "syncs were"),
        counted(flushed, "flush", "flushes")
    );
    not_durable_finding(case, &sentence, numbers)
}

/// Returns a layer that must have a volatile cache but reports none.
fn find_layer_declared_safe<'a>(case: &Case<'a>) -> Option<&'a Layer> {
    let is_declared_safe = |place: &Place, layer: &Layer| {
        let mut below = layer.below.iter().filter_map(|i| place.layers.get(*i));
        let has_volatile_cache = layer.kind == LayerKind::Loop
            || layer.queue_number("fua") == Ok(1)
            || below.any(|layer| is_volatile(layer) == Ok(true));
        has_volatile_cache && is_volatile(layer) == Ok(false)
    };
    case.places().find_map(|place| place.layers.iter().find(|layer| is_declared_safe(place, layer)))
}

/// Mount options that turn off syncs.
const SYNC_SKIPPING_OPTIONS: &[&str] =
    &["nobarrier", "barrier=0", "barrier=none", "fsync_mode=nobarrier", "volatile", "fsync=volatile"];
/// Libraries that skip syncs.
const SYNC_SKIPPING_LIBRARIES: &[&str] = &["eatmydata", "nosync", "libnofsync"];

const BARRIERS_OFF: Check = Check {
    id: CheckId::C02,
    name: "BARRIERS_OFF",
    belief: "no mount option and no library skips syncs",
    reads: "The options of the mounts in `/proc/self/mountinfo`; the libraries in `/proc/self/maps`, and \
            `LD_PRELOAD`.",
    formula: formula!(
        "Any of the mount options `nobarrier`, `barrier=0`, `barrier=none`, `fsync_mode=nobarrier` or \
         (overlay) `volatile` or `fsync=volatile`, or any of the libraries libeatmydata, nosync and \
         libnofsync. One is enough: with each of them, a sync sends no flush to the disk or does nothing at \
         all."
    ),
    provoke: "mount -o remount,nobarrier /mnt\nfathom run --rw randwrite --depth 1 --fsync 1 /mnt",
    fix: "Mount with barriers (`mount -o remount,barrier`), and start fathom without libraries that skip \
          syncs.",
    accept: "Accept it if the caches of all disks below are protected against power loss.",
    applies: |case| case.does(Kind::Write) && case.has_storage(),
    ask: Ask::Alone(check_barriers_off),
    #[cfg(test)]
    fires: Some(|| Fixture { options: "rw,relatime,nobarrier", ..stable_writes() }.record()),
    #[cfg(test)]
    blind: || {
        let mut record = stable_writes().record();
        record.header.hosts[0].facts.remove(LIBRARIES);
        record
    },
};

fn check_barriers_off(case: &Case) -> Known<Answer> {
    if let Some(what) = describe_sync_skipper(case) {
        let sentence = format!("Here, syncs send no flush to the disk: {what}.");
        return not_durable_finding(case, &sentence, evidence([]));
    }
    let machine = case.machine.ok_or("the record names no host")?;
    machine.fact(LIBRARIES)?;
    let (file_systems, completeness) = split_known(Ok(case.file_systems()));
    completeness?;
    if file_systems.iter().any(|fs| fs.kind == "zfs") {
        return not_checked(
            "zfs keeps `sync` as a property of the dataset, which no kernel file shows (zfs get sync)",
        );
    }
    holds("No mount option and no known library skips syncs.", evidence([]))
}

/// Returns the mount option or the library that skips syncs, or `None` without one.
fn describe_sync_skipper(case: &Case) -> Option<String> {
    let mut mounts = case.places().filter_map(|p| p.file_system.as_ref());
    let describe_skipping_mount = |fs: &FileSystem| {
        let option =
            SYNC_SKIPPING_OPTIONS.iter().find(|off| fs.options.split(',').any(|option| option == **off))?;
        Some(format!("{} is mounted with {option}", fs.mount_point))
    };
    if let Some(skipping) = mounts.find_map(describe_skipping_mount) {
        return Some(skipping);
    }
    let libraries = case.machine?.fact(LIBRARIES).ok()?;
    let line = libraries.lines().find(|l| SYNC_SKIPPING_LIBRARIES.iter().any(|s| l.contains(s)))?;
    Some(format!("fathom runs with {}", line.trim()))
}

/// Minimum mean time of a flush on flash, which programs a page in some hundred us. A faster answer came from memory.
const FLASH_NS: f64 = 60e3;
/// Minimum mean time of a flush on a spinning disk: half a turn at 15,000 rpm.
const SPINNING_NS: f64 = 2e6;
/// Minimum mean time of a flush in a virtual machine, which includes a round trip to the host.
const VIRTUAL_NS: f64 = 100e3;

const FLUSH_TOO_CHEAP: Check = Check {
    id: CheckId::C03,
    name: "FLUSH_TOO_CHEAP",
    belief: "a flush took as long as a medium needs",
    reads: "Flushes and their ms in `/sys/block/*/stat` of the lowest disks; `queue/write_cache` and \
            `queue/rotational`; whether the machine is virtual.",
    formula: formula!(
        "Mean time of a flush = time of all flushes / their number, for each disk that reports `write \
         back`.\n\
         - Biased below {flash} on flash (programming a page takes longer) and below {spinning} on a hard \
         disk (half a turn at 15,000 rpm): such a flush probably wrote nothing to a medium.\n\
         - A note below {guest} in a virtual machine (a round trip to the host and a medium), where \
         `rotational` means nothing.\n\
         - Not checked if the answer depends on rounding: the kernel shows whole ms, so each run may be \
         off by 1 ms.\n\
         - Does not apply if the job makes no syncs, or if C01 or C02 has a finding.",
        flash = Ns(FLASH_NS),
        spinning = Ns(SPINNING_NS),
        guest = Ns(VIRTUAL_NS)
    ),
    provoke: "fathom run --rw randwrite --bs 4k --depth 1 --fsync 1 .   # in a virtual machine whose host \
              caches writes",
    fix: "Find out whether the drive or the array protects its cache against power loss, or whether the host \
          honours flushes (cache=none or writethrough rather than cache=unsafe).",
    accept: "Accept it if you know that the cache is protected: drives with power-loss protection answer \
             flushes immediately.",
    applies: |case| case.does(Kind::Write) && case.on_device(),
    ask: Ask::After(&[CheckId::C01, CheckId::C02], check_flush_too_cheap),
    #[cfg(test)]
    fires: Some(|| with_flushes(&stable_writes(), "write back", 11_000, 200)),
    #[cfg(test)]
    blind: || {
        let mut record = with_flushes(&stable_writes(), "write back", 11_000, 2_000);
        record.header.hosts[0].virtual_by = Err("cpuinfo: not found".into());
        record
    },
};

fn check_flush_too_cheap(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let (disks, mut completeness) = volatile_disks(case);
    if disks.is_empty() {
        completeness?;
        return holds("The disk reports no volatile cache, so there is nothing to flush.", evidence([]));
    }
    if !case.syncs_within_window() || earlier.finds(CheckId::C02) || earlier.finds(CheckId::C01) {
        return Ok(Answer::DoesNotApply);
    }
    let is_virtual = case.machine.ok_or("the record names no host")?.virtual_by.clone()?.is_some();
    let mut flush_ns = None;
    for disk in disks {
        match time_flushes(case, disk, is_virtual) {
            Ok(FlushTime::Credible(ns)) => flush_ns = Some(ns),
            Ok(FlushTime::TooShort(finding)) => return finding.found(),
            Ok(FlushTime::NoFlush) => {}
            Err(why) => completeness = completeness.and(Err(why)),
        }
    }
    completeness?;
    // C01 reports missing flushes.
    let Some(flush_ns) = flush_ns else { return Ok(Answer::DoesNotApply) };
    holds("A flush took long enough to have reached a medium.", evidence([("flush_ns", flush_ns)]))
}

/// The mean time of a flush of one disk.
enum FlushTime {
    NoFlush,
    /// A flush took this many ns on average, which is credible.
    Credible(f64),
    /// The flushes were faster than the minimum for this kind of disk. Contains the finding.
    TooShort(Detail),
}

fn time_flushes(case: &Case, disk: &Layer, is_virtual: bool) -> Known<FlushTime> {
    let runs: Vec<&CaseRun> = case.runs.iter().collect();
    let Flushes { ios: count, ms } = sum_flushes_of_disk(&runs, disk, Moment::Stop)?;
    if count == 0 {
        return Ok(FlushTime::NoFlush);
    }
    let is_spinning = disk.queue_number("rotational")? == 1;
    let minimum_ns = match (is_virtual, is_spinning) {
        (true, _) => VIRTUAL_NS,
        (false, true) => SPINNING_NS,
        (false, false) => FLASH_NS,
    };
    let (flushes, ms, rounding_ms) = (count as f64, ms as f64, case.runs.len() as f64);
    let ns_per_flush = |ms: f64| ms * 1e6 / flushes;
    let numbers = evidence([("flushes", flushes), ("flush_ns", ns_per_flush(ms)), ("least_ns", minimum_ns)]);
    if ns_per_flush(ms - rounding_ms) >= minimum_ns {
        return Ok(FlushTime::Credible(ns_per_flush(ms)));
    }
    if ns_per_flush(ms + rounding_ms) >= minimum_ns {
        let flushes = show_count(flushes);
        return Err(format!(
            "too few flushes ({flushes}) to time them: the kernel counts whole milliseconds"
        ));
    }
    let cause = if is_virtual {
        "the host may not pass flushes on to its disk, and synced data may be lost in a power failure"
    } else {
        "the drive probably answered from its memory, which is safe only with power-loss protection"
    };
    let severity = if is_virtual { Severity::Note } else { Severity::Biases };
    let took = show_ns(ns_per_flush(ms));
    Ok(FlushTime::TooShort(detail!(
        severity,
        numbers,
        "A flush of {} took {took} on average: {cause}.",
        disk.name
    )))
}

const NO_FINAL_SYNC: Check = Check {
    id: CheckId::C04,
    name: "NO_FINAL_SYNC",
    belief: "an acknowledged write survives a power cut",
    reads: "The cache mode and the syncs of the job, the result and duration of the final sync of each run, \
            and `queue/write_cache` of the lowest disks.",
    formula: formula!(
        "Writes without O_SYNC, O_DSYNC, fsync or fdatasync on a disk that reports `write back`: a note, \
         since this is what most people measure. Also a note for replays, whose syncs may cover only some \
         writes. A run that wrote and whose final sync failed: biased, \
         since the writes may not have arrived. If A09 finds the writes in memory, only \
         A09 reports them."
    ),
    provoke: "fathom run --rw randwrite --bs 4k --cache direct .   # on a disk whose queue/write_cache is \
              `write back`",
    fix: "Use --cache direct-dsync, or --fsync N, to measure writes that survive a power cut.",
    accept: "A note needs no --accept.",
    applies: |case| case.does(Kind::Write) && case.on_device(),
    ask: Ask::Unless(&[CheckId::A09], check_no_final_sync),
    #[cfg(test)]
    fires: Some(|| with_flushes(&Fixture::honest_write(), "write back", 1, 1)),
    #[cfg(test)]
    blind: || Fixture { nothing_below: true, ..Fixture::honest_write() }.record(),
};

fn check_no_final_sync(case: &Case) -> Known<Answer> {
    // A replayed load syncs some of its writes.
    if case.syncs_within_window() && case.stream.replay.is_none() {
        return holds("The job makes its writes durable within the measured time.", evidence([]));
    }
    let failed = case.runs.iter().filter(|ran| final_sync_failed(case, ran)).count();
    if failed > 0 {
        return detail!(
            Severity::Biases,
            evidence([("runs_without_sync", failed as f64)]),
            "The final sync did not succeed in {failed} of {}: writes of {} may not be durable.",
            show_counted(case.runs.len() as u64, "run"),
            if failed == 1 { "this run" } else { "these runs" }
        )
        .with_fix("See the notes for the reason (`dmesg` shows disk errors), and measure again.".to_owned())
        .found();
    }
    let (disks, completeness) = volatile_disks(case);
    if disks.is_empty() {
        completeness?;
        let sentence = "The disk reports no volatile cache, so writes that reached it are durable.";
        return holds(sentence, evidence([]));
    }
    case.need_run()?;
    issued_bytes(case, Kind::Write)?;
    if !case.runs.iter().any(|ran| final_sync_completed(case, ran)) {
        return Err("no run has a final sync that succeeded".into());
    }
    let syncs: Vec<f64> = case.runs.iter().filter_map(|r| Some(r.end.sync_ns? as f64)).collect();
    let mean_ns = syncs.iter().sum::<f64>() / syncs.len() as f64;
    // If the sync of another stream failed, the time is unknown.
    let time =
        if syncs.is_empty() { String::new() } else { format!(" The final sync took {}.", show_ns(mean_ns)) };
    finding!(
        Severity::Note,
        evidence([("final_sync_ns", mean_ns)]),
        "When the clock stopped, acknowledged writes may still have been in the drive's volatile cache.{time}"
    )
}

/// Whether the final sync of a run failed on a target of the stream. Sessions of older versions do not list the
/// failures: in such a session, the sync of a run that wrote and has no sync time counts as failed.
fn final_sync_failed(case: &Case, ran: &CaseRun) -> bool {
    let is_unlisted = ran.end.sync_ns.is_none() && ran.end.sync_failures.is_empty();
    case.sync_failures(ran.end).next().is_some() || is_unlisted && ran.issued(Kind::Write).ops > 0
}

/// Whether the final sync of a run completed on every target of the stream. The sync of another stream's target may have
/// failed.
fn final_sync_completed(case: &Case, ran: &CaseRun) -> bool {
    let is_known = ran.end.sync_ns.is_some() || !ran.end.sync_failures.is_empty();
    is_known && case.sync_failures(ran.end).next().is_none()
}

/// File systems whose storage belongs to another machine or program, by the start of their names. `fuseblk` uses a
/// local block device, but a program acknowledges the writes.
const REMOTE: &[&str] = &[
    "nfs",
    "cifs",
    "smb3",
    "smbfs",
    "ceph",
    "9p",
    "virtiofs",
    "fuse",
    "glusterfs",
    "lustre",
    "afs",
    "gpfs",
    "beegfs",
    "orangefs",
];
/// Prefix of the file systems whose calls the kernel counts.
const COUNTED: &str = "nfs";

const REMOTE_ACK: Check = Check {
    id: CheckId::C05,
    name: "REMOTE_ACK",
    belief: "the server acknowledges a write once its own storage has it",
    reads: "The type of the file system in `/proc/self/mountinfo`. For NFS also the WRITE and COMMIT calls \
            in `/proc/self/mountstats` from the start of a run to its final sync.",
    formula: formula!(
        "Any network or user-space file system: a note, since the server may have answered from its memory. \
         If syncs were requested and NFS sent no WRITE or COMMIT, the result is relabelled: nothing left \
         this machine. A missing COMMIT alone proves nothing, since a client requests stable writes if one \
         call carries all data."
    ),
    provoke: "mount -t nfs server:/export /mnt && fathom run --rw randwrite --depth 1 --fsync 1 /mnt",
    fix: "Check the mount options (`nfsstat -m`) and the server's export options (`exportfs -v` must list \
          `sync`), and measure on the server.",
    accept: "A note needs no --accept.",
    applies: |case| case.does(Kind::Write) && case.has_storage(),
    ask: Ask::Alone(check_remote_ack),
    #[cfg(test)]
    fires: Some(|| nfs(Some((0, 11_000, 0)))),
    #[cfg(test)]
    blind: || nfs(None),
};

fn check_remote_ack(case: &Case) -> Known<Answer> {
    let (file_systems, completeness) = split_known(Ok(case.file_systems()));
    let kinds: BTreeSet<&str> = file_systems.iter().map(|fs| fs.kind.as_str()).collect();
    let remote = kinds.into_iter().filter(|kind| REMOTE.iter().any(|r| kind.starts_with(r)));
    let (counted, uncounted): (Vec<&str>, Vec<&str>) = remote.partition(|kind| kind.starts_with(COUNTED));
    let mut sentences = Vec::new();
    if !uncounted.is_empty() {
        sentences.push(format!(
            "{} acknowledged the writes, but this machine cannot see whether they are on media.",
            uncounted.join(" and ")
        ));
    }
    if !counted.is_empty() {
        let name = counted.join(" and ");
        match check_nfs_calls(case, &name) {
            Ok(found) if found.severity == Severity::Relabels => return found.found(),
            Ok(note) => sentences.push(note.sentence),
            Err(why) if sentences.is_empty() => return Err(why),
            Err(why) => sentences.push(format!("{name} acknowledged an unknown number of writes: {why}.")),
        }
    }
    if sentences.is_empty() {
        completeness?;
        return holds("No server is between a write and its storage.", evidence([]));
    }
    Detail::new(Severity::Note, sentences.join(" "), evidence([])).found()
}

/// Returns a note on the WRITE and COMMIT calls to NFS servers, or a relabelling finding if syncs were requested but no
/// call was sent. `name` lists the kinds of the NFS file systems.
///
/// # Errors
/// Why the calls are unknown.
fn check_nfs_calls(case: &Case, name: &str) -> Known<Detail> {
    let NfsCalls { writes, commits } = calls_in_runs(case)?;
    let syncs = if case.syncs_within_window() { count_requested_syncs(case) } else { 0 };
    if writes == 0 && commits == 0 && syncs > 0 {
        return Ok(detail!(
            Severity::Relabels,
            evidence([("writes_sent", 0.0), ("commits_sent", 0.0)]),
            "{name} sent no write to a server, although fathom requested {}.",
            show_counted(syncs, "sync")
        )
        .relabelled(Rename::Condition("not durable".into())));
    }
    Ok(detail!(
        Severity::Note,
        evidence([]),
        "{name} acknowledged {} and {}, but this machine cannot see whether a server has them \
         on its media.",
        show_counted(writes, "write"),
        show_counted(commits, "commit")
    ))
}

/// WRITE and COMMIT calls to NFS servers.
struct NfsCalls {
    writes: u64,
    commits: u64,
}

/// Returns the calls of all runs, from the start to the final sync.
fn calls_in_runs(case: &Case) -> Known<NfsCalls> {
    case.need_run()?;
    let calls_in_run = |count: fn(NfsCalls) -> u64| {
        sum_over_runs(case, |ran| {
            let before = count(calls_since_mount(ran.snapshot(Moment::Start)?)?);
            let passed = count(calls_since_mount(ran.snapshot(Moment::Synced)?)?).checked_sub(before);
            passed.ok_or_else(|| "the counters of the mount went backwards".into())
        })
    };
    Ok(NfsCalls {
        writes: calls_in_run(|calls| calls.writes)?,
        commits: calls_in_run(|calls| calls.commits)?,
    })
}

/// Returns the calls since the mount, over all mounts in the file. In a line `WRITE: 3 3 0 ...`,
/// the first number counts the calls.
fn calls_since_mount(snapshot: &Snapshot) -> Known<NfsCalls> {
    let text = snapshot.text(MOUNT_STATS)?;
    let calls_named = |name: &str| {
        let lines = text.lines().filter_map(|l| l.trim().strip_prefix(name)?.strip_prefix(':'));
        let counts = lines.filter_map(|l| l.split_ascii_whitespace().next()?.parse::<u64>().ok());
        counts.fold(None, |sum: Option<u64>, n| Some(sum.unwrap_or(0).saturating_add(n)))
    };
    let missing = || format!("{MOUNT_STATS} does not count both WRITE and COMMIT calls");
    let writes = calls_named("WRITE").ok_or_else(missing)?;
    Ok(NfsCalls { writes, commits: calls_named("COMMIT").ok_or_else(missing)? })
}

/// If the final syncs take more than this share of the measured time, the rate without them is biased.
const HIDDEN_ABOVE: Share = Share(0.1);
/// Syncs that are shorter than this on average are ignored: a journal commit and a flush take a spinning disk several
/// rotations, a large share of a short run.
const SYNC_FLOOR_NS: f64 = 50e6;

const SYNC_HIDES_TAIL: Check = Check {
    id: CheckId::C06,
    name: "SYNC_HIDES_TAIL",
    belief: "the work was done when the clock stopped",
    reads: "The time from the last completion of a run to the end of its final sync, by fathom's own clock.",
    formula: formula!(
        "Time of the final syncs / measured time, over all runs: biased above {HIDDEN_ABOVE}, \
         because the rate is off by as much. Syncs below {floor} on average are ignored: a commit \
         and a flush alone take up to that long. If A09 finds the writes in memory, it reports the rate that \
         includes the sync, and this check is silent.",
        floor = Ns(SYNC_FLOOR_NS)
    ),
    provoke: "`fathom run --rw write --bs 1m --depth 4 --size 240m --time 400ms --runs 1 /mnt` on a loop \
              device with its image in the page cache (`losetup --direct-io=off`), which behaves like a \
              drive with a large volatile cache.",
    fix: "Quote the rate with the final sync, or measure for longer (--time).",
    accept: "Accept it if your program does not sync either.",
    applies: |case| case.does(Kind::Write) && case.has_storage(),
    ask: Ask::Unless(&[CheckId::A09], check_sync_hides_tail),
    #[cfg(test)]
    fires: Some(|| {
        let sync_ns = Some(300_000_000);
        Fixture { sync_ns, ..Fixture::honest_write() }.record()
    }),
    #[cfg(test)]
    blind: || Fixture { sync_ns: None, ..Fixture::honest_write() }.record(),
};

fn check_sync_hides_tail(case: &Case) -> Known<Answer> {
    issued_bytes(case, Kind::Write)?;
    let sync_ns = case.sync_ns().ok_or("a run has no final sync that succeeded")?;
    let window = case.window_ns();
    if window <= 0.0 {
        return Err("no run has a measured window".into());
    }
    let (part, mean_ns) = (sync_ns / window, sync_ns / case.runs.len().max(1) as f64);
    let bytes = case.in_windows(Kind::Write).bytes as f64;
    let rate = share(bytes, window + sync_ns) * 1e3;
    let numbers = evidence([("final_sync_ns", mean_ns), ("share", part), ("mb_per_s_with_sync", rate)]);
    if part <= HIDDEN_ABOVE || mean_ns < SYNC_FLOOR_NS {
        return holds("The final sync was short compared with the measured time.", numbers);
    }
    if case.others_write() {
        return not_checked(
            "the final sync covers the writes of all streams, so its time for this stream is unknown",
        );
    }
    finding!(
        Severity::Biases,
        numbers,
        "The final sync took another {} ({} of the measured time). With it, the rate is {} MB/s.",
        show_ns(mean_ns),
        show_share(part),
        show_rate(rate)
    )
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

/// A record whose disks report this write cache and complete `flushes` flushes in `ms` ms per run.
#[cfg(test)]
fn with_flushes(fixture: &Fixture, write_cache: &str, flushes: u64, ms: u64) -> Record {
    let mut record = fixture.record();
    let places = record.header.hosts.iter_mut().flat_map(|h| &mut h.places);
    for layer in places.flat_map(|p| &mut p.layers) {
        layer.queue.insert("write_cache".into(), format!("{write_cache}\n"));
    }
    for (i, run) in record.runs.iter_mut().enumerate() {
        for snapshot in &mut run.evidence {
            let times = i as u64 + u64::from(snapshot.moment != Moment::Start);
            for (_, text) in snapshot.files.iter_mut().filter(|(path, _)| path.ends_with("/stat")) {
                let Ok(text) = text else { continue };
                let mut fields: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
                if let [.., n, t] = &mut fields[..] {
                    (*n, *t) = ((times * flushes).to_string(), (times * ms).to_string());
                }
                *text = fields.join(" ");
            }
        }
    }
    record
}

/// Ten thousand writes, one at a time, each stable before it completes.
#[cfg(test)]
fn stable_writes() -> Fixture {
    let cache = model::job::Cache::DirectDsync;
    Fixture { cache, depth: 1, depth_seen: 0.95, runs: 2, ..Fixture::honest_write() }
}

#[test]
fn fewer_flushes_than_half_of_the_syncs_relabel() {
    let at = |n| SYNC_WITHOUT_FLUSH.severity(&with_flushes(&stable_writes(), "write back", n, 1));
    assert_eq!((at(11_000), at(5_500), at(5_000)), (None, None, Some(Severity::Relabels)));
    // 32 operations in flight may share a flush.
    let deep = Fixture { depth: 32, depth_seen: 31.0, ..stable_writes() };
    let at = |n| SYNC_WITHOUT_FLUSH.severity(&with_flushes(&deep, "write back", n, 1));
    assert_eq!((at(180), at(150)), (None, Some(Severity::Relabels)));
}

#[test]
fn syncs_of_a_replayed_load_must_reach_the_disk_too() {
    let replayed = |flushes| {
        let mut record =
            with_flushes(&Fixture { depth: 1, ..Fixture::honest_write() }, "write back", flushes, 1);
        crate::figures::replay::make_replay(&mut record, model::job::ReplayPace::Timed, |replay| {
            let write = replay.original.kinds[0].clone();
            let kinds = [Kind::Write, Kind::Sync];
            replay.original.kinds =
                kinds.map(|kind| model::job::OriginalKind { kind, ..write.clone() }).to_vec();
        });
        for stream in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|end| &mut end.streams) {
            stream.issued.insert(Kind::Sync, model::record::Issued { ops: 1000, ..Default::default() });
        }
        record
    };
    let severity = |flushes| SYNC_WITHOUT_FLUSH.severity(&replayed(flushes));
    assert_eq!((severity(1000), severity(1)), (None, Some(Severity::Relabels)));
    // Only some of the writes are synced.
    assert_eq!(NO_FINAL_SYNC.severity(&replayed(1000)), Some(Severity::Note));
}

#[test]
fn a_final_sync_without_flush_is_a_note() {
    let plain = |n| SYNC_WITHOUT_FLUSH.severity(&with_flushes(&Fixture::honest_write(), "write back", n, 1));
    assert_eq!((plain(0), plain(1)), (Some(Severity::Note), None));
}

#[test]
fn a_loop_device_or_a_disk_with_fua_is_never_write_through() {
    let on_loop = Fixture { leaf_share: Some(1.0), ..stable_writes() };
    let mut record = with_flushes(&on_loop, "write back", 11_000, 1);
    assert_eq!(SYNC_WITHOUT_FLUSH.severity(&record), None);
    let switch = |r: &mut Record, i: usize, key: &str, text: &str| {
        r.header.hosts[0].places[0].layers[i].queue.insert(key.into(), text.into());
    };
    switch(&mut record, 0, "write_cache", "write through\n");
    assert_eq!(SYNC_WITHOUT_FLUSH.severity(&record), Some(Severity::Relabels));
    let mut record = stable_writes().record();
    assert_eq!(SYNC_WITHOUT_FLUSH.severity(&record), None);
    switch(&mut record, 0, "fua", "1\n");
    assert_eq!(SYNC_WITHOUT_FLUSH.severity(&record), Some(Severity::Relabels));
    // With its cache enabled, a disk with FUA need not flush after each write.
    switch(&mut record, 0, "write_cache", "write back\n");
    assert!(SYNC_WITHOUT_FLUSH.answer(&record).is_err());
}

#[test]
fn an_unknown_disk_does_not_hide_a_cache_that_is_only_declared_safe() {
    let mut record = stable_writes().record();
    let place = &mut record.header.hosts[0].places[0];
    place.layers[0].queue.insert("fua".into(), "1\n".into());
    place.unresolved_reason = Some("the other disks are hidden".into());
    assert_eq!(SYNC_WITHOUT_FLUSH.severity(&record), Some(Severity::Relabels));
    record.header.hosts[0].places[0].layers[0].queue.remove("fua");
    assert!(SYNC_WITHOUT_FLUSH.answer(&record).is_err_and(|why| why.contains("hidden")));
}

#[test]
fn kernels_that_do_not_count_flushes_are_not_checked() {
    let mut record = with_flushes(&stable_writes(), "write back", 0, 0);
    for text in record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| s.files.values_mut()) {
        let first: Option<Vec<String>> =
            text.as_ref().ok().map(|t| t.split_ascii_whitespace().take(11).map(str::to_owned).collect());
        *text = Ok(first.unwrap_or_default().join(" "));
    }
    let why = SYNC_WITHOUT_FLUSH.answer(&record);
    assert!(why.as_ref().is_err_and(|w| w.contains("5.5")), "{why:?}");
}

#[test]
fn a_library_relabels_and_similar_options_do_not() {
    let mut record = stable_writes().record();
    let library = |r: &mut Record, text: &str| {
        r.header.hosts[0].facts.insert(LIBRARIES.into(), Ok(text.into()));
    };
    library(&mut record, "LD_PRELOAD: libeatmydata.so\n/usr/lib/libc.so.6\n");
    assert_eq!(BARRIERS_OFF.severity(&record), Some(Severity::Relabels));
    library(&mut record, "/usr/lib/libc.so.6\n");
    assert_eq!(BARRIERS_OFF.severity(&record), None);
    let barrier = Fixture { options: "rw,barrier=1,x-nobarrier-not", ..stable_writes() };
    assert_eq!(BARRIERS_OFF.severity(&barrier.record()), None);
}

#[test]
fn a_job_without_syncs_gets_a_note_and_reads_do_not_apply() {
    let plain = Fixture { options: "rw,nobarrier", ..Fixture::honest_write() };
    assert_eq!(BARRIERS_OFF.severity(&plain.record()), Some(Severity::Note));
    let read = Fixture { options: "rw,nobarrier", ..Fixture::honest() };
    assert_eq!(BARRIERS_OFF.answer(&read.record()), Ok(Answer::DoesNotApply));
}

#[cfg(test)]
fn flushing_at(ms: u64, change: impl Fn(&mut Record)) -> Option<Severity> {
    let mut record = with_flushes(&stable_writes(), "write back", 11_000, ms);
    change(&mut record);
    FLUSH_TOO_CHEAP.severity(&record)
}

#[test]
fn flash_spinning_and_virtual_disks_have_their_own_limits() {
    // 11,000 flushes of 60 us are 660 ms.
    assert_eq!((flushing_at(600, |_| {}), flushing_at(700, |_| {})), (Some(Severity::Biases), None));
    let is_spinning = |r: &mut Record| {
        r.header.hosts[0].places[0].layers[0].queue.insert("rotational".into(), "1\n".into());
    };
    assert_eq!(
        (flushing_at(700, is_spinning), flushing_at(23_000, is_spinning)),
        (Some(Severity::Biases), None)
    );
    let is_virtual = |r: &mut Record| r.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!((flushing_at(473, is_virtual), flushing_at(1_200, is_virtual)), (Some(Severity::Note), None));
}

#[test]
fn the_answer_names_what_makes_its_syncs_doubtful() {
    use crate::{Judging, exit_code, judge};
    use model::report::{AnswerWord, Report, Verdict};
    let judged = |record: &Record, condition: &str, accept: &[CheckId]| {
        let mut record = record.clone();
        record.header.plan.fail_if = model::spec::conditions::conditions(condition).unwrap_or_default();
        judge(&record, &Judging { accept: accept.to_vec(), ..Judging::default() })
    };
    let answer = |report: &Report| report.answer.as_ref().map(|a| (a.word, a.sentence.contains(" But C0")));
    let synced = Fixture { runs: 8, ..stable_writes() };
    let on_guest = |fixture: &Fixture, ms| {
        let mut record = with_flushes(fixture, "write back", 11_000, ms);
        record.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
        record
    };
    let cheap = on_guest(&synced, 473);
    for (record, ids, doubtful) in [
        (&cheap, &[][..], true),
        (&cheap, &[CheckId::C03], false),
        // On hardware, the same finding biases the number.
        (&with_flushes(&synced, "write back", 11_000, 473), &[], true),
        (&on_guest(&synced, 1_200), &[], false),
    ] {
        let report = judged(record, "write.p99>10s", ids);
        assert_eq!(answer(&report), Some((AnswerWord::Pass, doubtful)), "{:?}", report.answer);
        assert_eq!(exit_code(&report), 0);
    }
    assert_eq!(answer(&judged(&cheap, "write.p99>1ns", &[])), Some((AnswerWord::Fail, false)));
    // Without a condition, the verdict names C03.
    let report = judged(&cheap, "", &[]);
    assert_eq!((report.verdict, report.verdict_by), (Verdict::Valid, Some(CheckId::C03)));
    assert!(
        report.verdict_reason.starts_with("The numbers hold, but C03 FLUSH_TOO_CHEAP: A flush of"),
        "{}",
        report.verdict_reason
    );
    // A note about the final sync casts no doubt on the latencies of a job that makes no syncs.
    let plain = Fixture { options: "rw,nobarrier", runs: 8, ..Fixture::honest_write() };
    let report = judged(&plain.record(), "write.p99>10s", &[]);
    assert_eq!((answer(&report), report.verdict_by), (Some((AnswerWord::Pass, false)), None));
}

#[test]
fn a_disk_with_unknown_flushes_does_not_hide_a_fast_one() {
    let with_uncounted_disk = |ms| {
        let mut record = with_flushes(&stable_writes(), "write back", 11_000, ms);
        let place = &mut record.header.hosts[0].places[0];
        let mut uncounted = place.layers[0].clone();
        (uncounted.name, uncounted.stat_file) = ("vdb".into(), "/sys/block/vdb/stat".into());
        place.layers.insert(0, uncounted);
        place.tops = vec![1];
        FLUSH_TOO_CHEAP.answer(&record)
    };
    let found = with_uncounted_disk(600);
    assert!(matches!(&found, Ok(Answer::Finding(f)) if f.sentence.contains("vda")), "{found:?}");
    assert!(with_uncounted_disk(700).is_err());
}

#[test]
fn few_flushes_are_not_checked() {
    let few = with_flushes(&Fixture { ops: 10, ..stable_writes() }, "write back", 11, 0);
    let why = FLUSH_TOO_CHEAP.answer(&few);
    assert!(why.as_ref().is_err_and(|w| w.contains("too few")), "{why:?}");
    let none = with_flushes(&stable_writes(), "write back", 0, 0);
    assert_eq!(FLUSH_TOO_CHEAP.answer(&none), Ok(Answer::DoesNotApply));
}

#[test]
fn syncs_of_the_job_hold_and_a_failed_final_sync_biases() {
    assert_eq!(
        NO_FINAL_SYNC.severity(&with_flushes(&Fixture::honest_write(), "write back", 1, 1)),
        Some(Severity::Note)
    );
    assert!(matches!(
        NO_FINAL_SYNC.answer(&with_flushes(&stable_writes(), "write back", 1, 1)),
        Ok(Answer::Holds(..))
    ));
    let failed = Fixture { sync_ns: None, ..Fixture::honest_write() };
    assert_eq!(NO_FINAL_SYNC.severity(&failed.record()), Some(Severity::Biases));
}

#[test]
fn only_a_failed_sync_of_a_written_target_of_the_stream_biases() {
    let answer = |wrote: bool, fixture: &Fixture, change: &dyn Fn(&mut model::record::RunEnd)| {
        let mut record = with_flushes(fixture, "write back", 1, 1);
        for end in record.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
            if !wrote {
                end.streams[0].issued.clear();
            }
            change(end);
        }
        NO_FINAL_SYNC.answer(&record)
    };
    let unsynced = Fixture { sync_ns: None, ..Fixture::honest_write() };
    let nothing_written = answer(false, &unsynced, &|_| ());
    assert!(nothing_written.as_ref().is_err_and(|why| why == "no write completed"), "{nothing_written:?}");
    let failed = Fixture { sync_errno: 5, ..Fixture::honest_write() };
    let severity = |answer| if let Ok(Answer::Finding(f)) = answer { Some(f.severity) } else { None };
    assert_eq!(severity(answer(true, &failed, &|_| ())), Some(Severity::Biases));
    // In the session of several hosts, the sync time is that of the hosts whose sync succeeded.
    assert_eq!(severity(answer(true, &failed, &|end| end.sync_ns = Some(1))), Some(Severity::Biases));
    // The sync of another stream's target failed.
    let other_target = |end: &mut model::record::RunEnd| end.sync_failures[0].target = 1;
    let found = answer(true, &failed, &other_target);
    assert!(matches!(&found, Ok(Answer::Finding(f)) if f.sentence.ends_with("volatile cache.")), "{found:?}");
    // C01 counts the syncs of this stream's targets.
    let flushed = |flushes: u64, target: usize| {
        let mut record = with_flushes(&failed, "write back", flushes, 1);
        let ends = record.runs.iter_mut().filter_map(|r| r.end.as_mut());
        ends.for_each(|end| end.sync_failures[0].target = target);
        SYNC_WITHOUT_FLUSH.answer(&record)
    };
    assert!(matches!(flushed(1, 1), Ok(Answer::Holds(..))), "{:?}", flushed(1, 1));
    assert!(matches!(flushed(0, 1), Ok(Answer::Finding(_))), "{:?}", flushed(0, 1));
    assert_eq!(flushed(1, 0), Err("no sync completed".into()));
}

#[test]
fn an_unknown_disk_hides_neither_a_fast_flush_nor_a_volatile_cache() {
    let next_to_unknown = |mut record: Record| {
        record.header.hosts[0].places[0].unresolved_reason = Some("the other disks are hidden".into());
        record
    };
    let fast = next_to_unknown(with_flushes(&stable_writes(), "write back", 11_000, 200));
    assert_eq!(FLUSH_TOO_CHEAP.severity(&fast), Some(Severity::Biases));
    let slow = next_to_unknown(with_flushes(&stable_writes(), "write back", 11_000, 2_000));
    assert!(FLUSH_TOO_CHEAP.answer(&slow).is_err_and(|why| why.contains("hidden")));
    let volatile = next_to_unknown(with_flushes(&Fixture::honest_write(), "write back", 1, 1));
    assert_eq!(NO_FINAL_SYNC.severity(&volatile), Some(Severity::Note));
    let stable = next_to_unknown(with_flushes(&Fixture::honest_write(), "write through", 1, 1));
    assert!(NO_FINAL_SYNC.answer(&stable).is_err_and(|why| why.contains("hidden")));
}

/// Adds a target on a file system of this kind; `None` for an unknown file system.
#[cfg(test)]
fn with_second_target(mut record: Record, kind: Option<&str>) -> Record {
    let plan = &mut record.header.plan;
    plan.targets.push(plan.targets[0].clone());
    plan.jobs[0].phases[0].streams[0].targets = vec![0, 1];
    let mut place = record.header.hosts[0].places[0].clone();
    if let (Some(kind), Some(fs)) = (kind, &mut place.file_system) {
        (fs.kind, fs.mount_point) = (kind.into(), "/second".into());
    } else {
        (place.file_system, place.unresolved_reason) = (None, Some("the mount is hidden".into()));
    }
    record.header.hosts[0].places.push(place);
    record
}

#[test]
fn every_remote_file_system_is_reported_and_an_unknown_one_is_not_checked() {
    let cifs = || Fixture { kind: "cifs", ..Fixture::honest_write() }.record();
    let sentence = |record: &Record| match REMOTE_ACK.answer(record) {
        Ok(Answer::Finding(f)) => f.sentence,
        other => panic!("{other:?}"),
    };
    let both = sentence(&with_second_target(cifs(), Some("lustre")));
    assert!(both.starts_with("cifs and lustre acknowledged"), "{both}");
    let next_to_local = sentence(&with_second_target(Fixture::honest_write().record(), Some("cifs")));
    assert!(next_to_local.starts_with("cifs acknowledged"), "{next_to_local}");
    let next_to_nfs = sentence(&with_second_target(nfs(Some((7, 11_000, 0))), Some("cifs")));
    let of_nfs = " nfs4 acknowledged 22,000 writes and 0 commits";
    assert!(next_to_nfs.starts_with("cifs ack") && next_to_nfs.contains(of_nfs), "{next_to_nfs}");
    let uncounted = sentence(&with_second_target(nfs(None), Some("cifs")));
    assert!(uncounted.contains(" nfs4 acknowledged an unknown number of writes: "), "{uncounted}");
    // The finding about a server that got no call replaces the note about another server.
    let nothing_sent = with_second_target(nfs(Some((7, 0, 0))), Some("cifs"));
    assert_eq!(REMOTE_ACK.severity(&nothing_sent), Some(Severity::Relabels));
    assert!(sentence(&nothing_sent).starts_with("nfs4 sent no write"), "{}", sentence(&nothing_sent));
    assert!(sentence(&with_second_target(cifs(), None)).starts_with("cifs acknowledged"));
    let unknown = with_second_target(Fixture::honest_write().record(), None);
    assert!(REMOTE_ACK.answer(&unknown).is_err_and(|why| why.contains("hidden")));
    assert!(BARRIERS_OFF.answer(&unknown).is_err_and(|why| why.contains("hidden")));
}

#[test]
fn c04_is_silent_if_a09_fires() {
    let in_memory = Fixture { delivered: 0.3, dirty_share: 0.7, ..Fixture::honest_write() };
    let record = with_flushes(&in_memory, "write back", 1, 1);
    assert_eq!(NO_FINAL_SYNC.answer(&record), Ok(Answer::DoesNotApply));
}

/// Synced writes on NFS. `calls` has the WRITE calls before the first run (and as many COMMIT calls), and the WRITE and
/// the COMMIT calls of each run; `None` if the calls were not recorded.
#[cfg(test)]
fn nfs(calls: Option<(u64, u64, u64)>) -> Record {
    let nothing_below = true;
    let mut record = Fixture { nothing_below, ..stable_writes() }.record();
    for fs in record.header.hosts[0].places.iter_mut().filter_map(|p| p.file_system.as_mut()) {
        fs.kind = "nfs4".into();
    }
    let (mut writes, mut commits) = calls.map_or((0, 0), |c| (c.0, c.0));
    for run in &mut record.runs {
        for snapshot in &mut run.evidence {
            if let (Moment::Stop, Some((_, w, c))) = (snapshot.moment, calls) {
                (writes, commits) = (writes + w, commits + c);
            }
            let text = format!(
                "device srv:/x mounted on /mnt with fstype nfs4 statvers=1.1\n\tper-op statistics\n\
                 \t        READ: 9 9 0 1 1 1 1 1 0\n\t       WRITE: {writes} {writes} 0 1 1 1 1 1 0\n\
                 \t      COMMIT: {commits} {commits} 0 1 1 1 1 1 0\n"
            );
            if calls.is_some() {
                snapshot.files.insert(MOUNT_STATS.into(), Ok(text));
            }
        }
    }
    record
}

#[test]
fn a_server_is_a_note_and_no_calls_relabel() {
    assert_eq!(REMOTE_ACK.severity(&nfs(Some((7, 11_000, 0)))), Some(Severity::Note));
    assert_eq!(REMOTE_ACK.severity(&nfs(Some((7, 0, 0)))), Some(Severity::Relabels));
    let Ok(Answer::Finding(f)) = REMOTE_ACK.answer(&nfs(Some((7, 11_000, 3)))) else { panic!("silent") };
    assert!(f.sentence.contains("22,000 writes and 6 commits"), "{}", f.sentence);
}

#[test]
fn every_network_file_system_is_a_note() {
    for kind in ["cifs", "smbfs", "lustre", "gpfs", "beegfs", "orangefs"] {
        assert!(crate::checks::is_remote(kind), "{kind}");
        let record = Fixture { kind, ..Fixture::honest_write() }.record();
        assert_eq!(REMOTE_ACK.severity(&record), Some(Severity::Note), "{kind}");
    }
    assert!(matches!(REMOTE_ACK.answer(&Fixture::honest_write().record()), Ok(Answer::Holds(..))));
}

#[test]
fn a_fuse_file_system_is_a_note_without_counters() {
    let fuse = Fixture { nothing_below: true, ..Fixture::honest_write() };
    assert_eq!(REMOTE_ACK.severity(&fuse.record()), Some(Severity::Note));
    let read = Fixture { nothing_below: true, ..Fixture::honest() };
    assert_eq!(REMOTE_ACK.answer(&read.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn more_than_ten_percent_of_the_time_biases_unless_the_sync_is_short() {
    let at = |ms: u64| {
        SYNC_HIDES_TAIL
            .severity(&Fixture { sync_ns: Some(ms * 1_000_000), ..Fixture::honest_write() }.record())
    };
    assert_eq!((at(95), at(105)), (None, Some(Severity::Biases)));
    // The window of a fixture is at least 1 s, so this record sets its own.
    let mut record = Fixture { sync_ns: Some(40_000_000), ..Fixture::honest_write() }.record();
    for stream in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.streams) {
        stream.window_ns = 300_000_000;
    }
    assert_eq!(SYNC_HIDES_TAIL.severity(&record), None);
}

#[test]
fn a_run_that_wrote_nothing_needs_no_sync() {
    let mut record = Fixture { sync_ns: Some(400_000_000), ..Fixture::honest_write() }.record();
    let idle = |record: &mut Record, run: usize| {
        let end = record.runs[run].end.as_mut().unwrap();
        end.sync_ns = None;
        end.streams[0].issued.clear();
        end.streams[0].kinds.clear();
    };
    idle(&mut record, 1);
    let Ok(Answer::Finding(f)) = SYNC_HIDES_TAIL.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("32 %") && !f.sentence.contains("could be checked"), "{}", f.sentence);
    (0..5).for_each(|run| idle(&mut record, run));
    assert_eq!(SYNC_HIDES_TAIL.answer(&record), Err("no write completed".into()));
}

#[test]
fn c06_is_silent_if_a09_fires() {
    let fixture = Fixture { delivered: 0.0, sync_ns: Some(3_000_000_000), ..Fixture::honest_write() };
    assert_eq!(SYNC_HIDES_TAIL.answer(&fixture.record()), Ok(Answer::DoesNotApply));
}
