//! The file system below the target (D03, D20, D24).
//!
//! D03 looks for kernel threads that initialise or move data, for writes to the disk while fathom was
//! idle, and for discards in runs that trim nothing. D20 checks the free share of the file system at the start
//! of the runs; how full a drive is inside is unknown. D24 finds data on another machine, on the host of a
//! virtual machine, served by a program (FUSE), or on a disk that a cluster shares, by the kind of the file system. On
//! NFS, it also computes the share of the reads that the client's cache answered.

use crate::case::written_between;
use crate::checks::prelude::*;
use crate::checks::storage_reached::page_cache::{
    CACHED_ABOVE, CACHED_RELABELLED_FROM, severity_of_cached_share,
};
use crate::figures::kernel_text::{discarded_bytes, growth_in_run};
use model::evidence::{HOUSEKEEPERS, MOUNT_STATS, Room};
use model::machine::FileSystem;
use model::plan::Role;

/// Recorded kernel threads that exist only while they work for a file system: start of the name, file system, and work.
/// Other threads, such as `btrfs-cleaner`, exist as long as the mount. Programs and work queues, such as those that scrub,
/// are not recorded.
const WORKERS: &[(&str, &str, &str)] = &[
    ("ext4lazyinit", "ext4", "was writing the inode tables of a fresh ext4"),
    ("btrfs-balance", "btrfs", "was moving blocks of a btrfs"),
];
/// Harmless rate of writes to the disk while fathom is idle, in bytes per second. A journal commit and a log line are
/// some KiB; a fresh ext4 writes tens of MiB.
const IDLE_BYTES_PER_S: f64 = (1 << 20) as f64;
/// Minimum length of the idle watch in ns. A shorter watch gives no write rate.
const IDLE_FROM_NS: u64 = 500_000_000;
/// Largest number of discarded bytes per run that is harmless: those of a deleted log file.
const DISCARDED_ABOVE: u64 = 1 << 20;
/// The fix for writes to the disk while fathom was idle, if no thread was seen that may have caused them.
const QUIET_FIX: &str = "Wait until the disk is quiet (`iotop -o` and `pidstat -d 1` show who writes), and \
                         measure again. D01 shows whether other processes also used the disk during the runs.";

pub(super) const FS_HOUSEKEEPING: Check = Check {
    id: CheckId::D03,
    name: "FS_HOUSEKEEPING",
    belief: "the file system did only fathom's operations",
    reads: "Names of kernel threads in `/proc/*/comm` at the start and stop of each run; writes of the disk \
            in `/sys/block/*/stat` during the idle watch before the first run; discarded blocks (field 14) \
            during the runs.",
    formula: formula!(
        "Looks for I/O of the file system that fathom did not request.\n\
         - Biased if a thread that exists only while it works (`ext4lazyinit`, `btrfs-balance`) ran, and a \
         target is on such a file system. A note if no more than {idle}/s were written to the disk in the \
         idle watch: the thread may work on another disk.\n\
         - Biased if more than {idle}/s were written to the disk while fathom was idle (for {watched} or \
         longer), and D01 found no other process during the runs. A fresh ext4 of 4 GB writes 11 MB/s for \
         seconds.\n\
         - A note if more than {discarded} per run were discarded although the job does not trim. The note \
         names the mount option `discard` if the file system has it.\n\
         - Not checked, without a finding, if one of these could not be read.",
        idle = show_bytes(IDLE_BYTES_PER_S as u64),
        discarded = show_bytes(DISCARDED_ABOVE),
        watched = Ns(IDLE_FROM_NS as f64)
    ),
    provoke: "mkfs.ext4 -E lazy_itable_init=1 /dev/X && mount -o init_itable=10000 /dev/X /mnt && fathom run \
              /mnt",
    fix: "Wait until the disk is quiet (`iotop -o`, `pidstat -d 1`), and until a thread that the finding \
          names has ended (`ps -e | grep -e lazyinit -e balance`). Measure again.",
    accept: "Accept it if your machine always does that. `mkfs.ext4 -E lazy_itable_init=0` \
             initialises the next new file system at once. Mount without `discard`, and use \
             fstrim between measurements.",
    applies: |case| case.on_device(),
    ask: Ask::After(&[CheckId::D01], check_fs_housekeeping),
    #[cfg(test)]
    fires: Some(|| with_thread("4711: ext4lazyinit")),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
        snapshots.for_each(|s| drop(s.files.remove(HOUSEKEEPERS)));
        record
    },
};

fn check_fs_housekeeping(case: &Case, earlier: &Earlier) -> Known<Answer> {
    case.need_run()?;
    let (active_thread, idle_rate) = (find_active_thread(case), idle_bytes_per_s(case));
    let idle = idle_rate.as_ref().ok().copied().flatten();
    let mut numbers = evidence([("idle_write_bytes_per_s", idle.unwrap_or(f64::NAN))]);
    if let Ok(Some((thread, action))) = active_thread {
        let mut sentence = format!("The kernel thread {thread} {action}.");
        let disk_was_quiet = was_quiet_while_idle(case);
        if disk_was_quiet {
            sentence += " This disk was quiet while fathom was idle, so the thread may work on another disk.";
        }
        let severity = if disk_was_quiet { Severity::Note } else { Severity::Biases };
        let fix = format!("Wait until the thread has ended (`ps -e | grep {thread}`), and measure again.");
        return Detail::new(severity, sentence, numbers).with_fix(fix).found();
    }
    if let Some(rate) = idle.filter(|rate| *rate > IDLE_BYTES_PER_S && !earlier.finds(CheckId::D01)) {
        return detail!(
            Severity::Biases,
            numbers,
            "{} per second were written to the disk while fathom was idle: by other processes, by kernel \
             threads, or because earlier writes were still in memory.",
            show_bytes(rate as u64)
        )
        .with_fix(QUIET_FIX.to_owned())
        .found();
    }
    let discarded = if case.with_sharers().does(Kind::Trim) { Ok(0) } else { count_discarded_bytes(case) };
    let most = DISCARDED_ABOVE.saturating_mul(case.runs.len() as u64);
    if let Some(discarded) = discarded.as_ref().ok().copied().filter(|bytes| *bytes > most) {
        numbers.insert("discarded_bytes".into(), discarded as f64);
        return describe_discards(case, discarded, numbers).found();
    }
    active_thread?;
    idle_rate?;
    discarded?;
    holds("fathom saw no background work of the file system.", numbers)
}

/// Returns the name and the work of a kernel thread that works for a file system of the same kind as a target's; `None` if
/// there was no such thread.
pub(super) fn find_active_thread(case: &Case) -> Known<Option<(&'static str, &'static str)>> {
    let snapshots =
        case.runs.iter().flat_map(|ran| [Moment::Start, Moment::Stop].map(|moment| ran.snapshot(moment)));
    let (texts, completeness) = split_known(Ok(snapshots.map(|s| s?.text(HOUSEKEEPERS)).collect()));
    let names = || {
        let lines = texts.iter().flat_map(|text| text.lines());
        lines.filter_map(|l| l.split_once(": ").map(|(_, name)| name.trim()))
    };
    let is_in_use = |fs: &str| case.places().any(|p| p.kind() == fs);
    let worker = WORKERS.iter().find(|(begin, fs, _)| is_in_use(fs) && names().any(|n| n.starts_with(begin)));
    match worker {
        Some((name, _, action)) => Ok(Some((name, action))),
        None => completeness.map(|()| None),
    }
}

/// Returns the bytes per second written to the shared disks during the idle watch; `None` without an idle watch, or if it is too short.
fn idle_bytes_per_s(case: &Case) -> Known<Option<f64>> {
    let at = |moment| case.record.evidence.iter().rev().find(|s: &&Snapshot| s.moment == moment);
    let (Some(start), Some(end)) = (at(Moment::IdleStart), at(Moment::IdleEnd)) else { return Ok(None) };
    let ns = end.at_ns.saturating_sub(start.at_ns);
    if ns < IDLE_FROM_NS {
        return Ok(None);
    }
    Ok(Some(written_between(&case.shared_layers()?, start, end)? as f64 * 1e9 / ns as f64))
}

/// Whether the rate of writes to the shared disks while fathom was idle is known and harmless. If a thread worked
/// nevertheless, it probably worked on another disk.
fn was_quiet_while_idle(case: &Case) -> bool {
    matches!(idle_bytes_per_s(case), Ok(Some(rate)) if rate <= IDLE_BYTES_PER_S)
}

/// Describes discards that no operation of fathom caused, and names the mount option `discard` if a target's file system has it.
fn describe_discards(case: &Case, discarded: u64, numbers: Evidence) -> Detail {
    // Btrfs has `discard=async`.
    let is_discard = |option: &str| option.split('=').next() == Some("discard");
    let discards = |fs: &&FileSystem| fs.options.split(',').any(is_discard);
    let mounted = case.file_systems().into_iter().flatten().find(discards);
    let (cause, fix) = match mounted {
        Some(fs) => (
            format!(
                "{} is mounted with the option discard, so the blocks of deleted files are discarded",
                fs.mount_point
            ),
            "Mention the mount option `discard` with the result, or mount the file system without `discard` \
             and measure again.",
        ),
        None => (
            "fstrim, another program or a file system with the mount option discard may have discarded them"
                .to_owned(),
            "Wait until fstrim and other programs that discard blocks have ended, and measure again.",
        ),
    };
    detail!(
        Severity::Note,
        numbers,
        "{} were discarded on the disk, although no operation of fathom discards blocks: {cause}.",
        show_bytes(discarded)
    )
    .with_fix(fix.to_owned())
}

/// Returns the bytes discarded on the shared disks in all runs, or 0 if the kernel does not count them.
fn count_discarded_bytes(case: &Case) -> Known<u64> {
    let disks = case.shared_layers()?;
    let count = |text: &str| Ok(discarded_bytes(text)?.unwrap_or(0));
    sum_over_runs(case, |ran| {
        disks
            .iter()
            .try_fold(0_u64, |sum, disk| Ok(sum.saturating_add(growth_in_run(ran, &disk.stat_file, count)?)))
    })
}

/// Below this share of free space, allocators search long and scatter new blocks. Space reserved for root (up to 5 %)
/// is not free.
const FREE_BELOW: Share = Share(0.1);

pub(super) const NEARLY_FULL: Check = Check {
    id: CheckId::D20,
    name: "NEARLY_FULL",
    belief: "the file system had enough free space",
    reads: "`statvfs` of the targets' file systems at the start of each run: their size, and the space that \
            users other than root may still use.",
    formula: formula!(
        "If less than {FREE_BELOW} is free: biased for writes, because the allocator may scatter them; a \
         note for reads, which depend only on the layout of the file. The fill level inside a drive is \
         invisible."
    ),
    provoke: "`fallocate -l $(($(df --output=avail -B1 DIR | tail -1) * 95 / 100)) DIR/fill && fathom run \
              --rw randwrite --size 64m DIR; rm DIR/fill`.",
    fix: "Free some space, run `fstrim` on flash, and measure again.",
    accept: "Accept it if the disk will be as full in use.",
    applies: |case| case.on_device() && !case.on_block_devices(),
    ask: Ask::Alone(check_nearly_full),
    #[cfg(test)]
    fires: Some(|| with_free(&Fixture::honest_write(), 5)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest_write().record();
        let states = record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets);
        states.for_each(|t| t.room = Some(Err("Permission denied (os error 13)".into())));
        record
    },
};

fn check_nearly_full(case: &Case) -> Known<Answer> {
    let states = case.states(Moment::Start)?.into_iter().flatten();
    let (rooms, completeness): (Vec<Room>, _) =
        split_known(Ok(states.filter_map(|s| s.room.clone()).collect()));
    let free = |room: &Room| share(room.free_bytes as f64, room.total_bytes as f64);
    // Some network file systems report a size of 0.
    let known = rooms.iter().filter(|r| r.total_bytes > 0);
    let fullest = known.min_by(|a, b| free(a).total_cmp(&free(b)));
    let Some(fullest) = fullest else {
        return completeness.and(not_checked("the free space of the file system was not recorded"));
    };
    let part = free(fullest);
    let numbers = evidence([("free_share", part), ("free_bytes", fullest.free_bytes as f64)]);
    if part >= FREE_BELOW {
        completeness?;
        return holds("The file system had enough free space.", numbers);
    }
    let (severity, effect) = if case.does(Kind::Write) {
        (Severity::Biases, "the allocator may scatter writes over the rest")
    } else {
        (Severity::Note, "the file is probably scattered")
    };
    finding!(
        severity,
        numbers,
        "Only {} of the file system is free ({} of {}): {effect}.",
        show_share(part),
        show_bytes(fullest.free_bytes),
        show_bytes(fullest.total_bytes)
    )
}

/// Kinds of network file systems.
const NETWORK: &[&str] =
    &["nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "afs", "gpfs", "beegfs", "orangefs"];
/// Kinds of cluster file systems: several machines use one disk.
const ON_SHARED_DISK: &[&str] = &["gfs2", "ocfs2"];
/// Kinds of file systems whose data are on the host of a virtual machine.
const OF_HOST: &[&str] = &["9p", "virtiofs"];
/// Names of FUSE programs that fetch the data from another machine. The kind of the file system is `fuse.` and the name.
const FETCHING: &[&str] = &["sshfs", "rclone", "s3fs", "gcsfuse", "glusterfs", "ceph-fuse", "curlftpfs"];
/// FUSE programs that encrypt the data.
const ENCRYPTING: &[&str] = &["gocryptfs", "encfs", "cryfs", "securefs"];
/// Kinds of network file systems whose client counts the bytes that programs read and those that the server sent.
const WITH_READ_COUNTS: &[&str] = &["nfs", "nfs4"];
pub(super) const REMOTE_FS: Check = Check {
    id: CheckId::D24,
    name: "REMOTE_FS",
    belief: "the file is on a disk of this machine",
    reads: "The type of the file system in `/proc/self/mountinfo`. For NFS also the line `bytes:` of \
            `/proc/self/mountstats` at start and stop of each run: reads through the cache, direct reads, \
            and reads from the server.",
    formula: formula!(
        "Decides by the type of the file system where the data are.\n\
         - Relabelled if the file system belongs to a network, to a virtual machine's host, to a program \
         (FUSE), or to a cluster that shares the disk (gfs2, ocfs2). The name also states if the program \
         is known to use the network (sshfs, rclone, ...) or to encrypt (gocryptfs, encfs, ...).\n\
         - On NFS, this machine's cache answered the share 1 - server reads / (normal + direct reads). The \
         finding reports a share above {CACHED_ABOVE}. If it is at least {CACHED_RELABELLED_FROM} on the \
         mount of every target, the number is named after that cache.\n\
         - Caches of the server are invisible."
    ),
    provoke: "`sshfs localhost:/var/tmp /mnt && fathom run --rw randread --size 64m /mnt`.",
    fix: "To measure the disks, run fathom on the machine that has them. --cache direct bypasses the \
          client's cache.",
    accept: "Accept it if you want to measure the whole path.",
    applies: |case| case.on_device() && !case.on_block_devices(),
    ask: Ask::Alone(check_remote_fs),
    #[cfg(test)]
    fires: Some(|| on_nfs(&Fixture::honest(), Ok(0))),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].places.clear();
        record
    },
};

fn check_remote_fs(case: &Case) -> Known<Answer> {
    let (mut file_systems, completeness) = split_known(Ok(case.file_systems()));
    // Whether the caches of network file systems answered most reads of every target.
    let has_device = case.targets().iter().any(|(_, target)| target.role == Role::Device);
    let counts_reads = |fs: &FileSystem| WITH_READ_COUNTS.contains(&fs.kind.as_str());
    let all_count_reads = file_systems.iter().all(|fs| counts_reads(fs));
    let mut is_cached = completeness.is_ok() && !has_device && all_count_reads && case.does(Kind::Read);
    file_systems.retain(|fs| describe_location(&fs.kind).is_some());
    file_systems.sort_by(|a, b| (&a.kind, &a.mount_point).cmp(&(&b.kind, &b.mount_point)));
    file_systems.dedup_by(|a, b| (&a.kind, &a.mount_point) == (&b.kind, &b.mount_point));
    if file_systems.is_empty() {
        completeness?;
        return holds("By its type, the file system is a local one that the kernel serves.", evidence([]));
    }
    let counted = file_systems.iter().filter(|fs| counts_reads(fs)).count();
    let (mut sentences, mut numbers) = (Vec::new(), evidence([]));
    for fs in &file_systems {
        let location = describe_location(&fs.kind).unwrap_or_default();
        sentences.push(format!("A target is on {} ({}): {location}.", fs.kind, fs.source));
        if !counts_reads(fs) || !case.does(Kind::Read) {
            continue;
        }
        match client_hit_share(case, fs) {
            Ok(share) => {
                let mount = if counted == 1 { String::new() } else { format!(" {}", fs.mount_point) };
                numbers.insert(format!("client_hit_share{mount}"), share);
                let severity = severity_of_cached_share(share);
                if severity.is_some() {
                    sentences.push(format!(
                        "{} of the reads from {} never left this machine.",
                        show_share(share),
                        fs.mount_point
                    ));
                }
                is_cached &= severity == Some(Severity::Relabels);
            }
            Err(why) => {
                sentences.push(format!(
                    "The share of the reads from {} that this machine's own cache answered is unknown: {why}.",
                    fs.mount_point
                ));
                is_cached = false;
            }
        }
    }
    let joined = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(" and ");
    let rename = if is_cached {
        let kinds = joined(file_systems.iter().map(|fs| fs.kind.clone()).collect());
        Rename::Medium(format!("page cache above {kinds}"))
    } else {
        Rename::Condition(joined(file_systems.iter().map(|fs| condition(&fs.kind)).collect()))
    };
    let fix = file_systems.iter().any(|fs| ON_SHARED_DISK.contains(&fs.kind.as_str())).then(|| {
        "Make sure that no other machine of the cluster uses the disk, and measure again.".to_owned()
    });
    Detail::new(Severity::Relabels, sentences.join(" "), numbers).with_fix(fix).relabelled(rename).found()
}

/// Whether another machine, the host of a virtual machine or a program (FUSE) has the data of a file system of this kind.
pub fn is_remote(kind: &str) -> bool {
    !ON_SHARED_DISK.contains(&kind) && describe_location(kind).is_some()
}

/// Describes what is between this machine and the data, or who else uses the disk. `None` for a local file system.
fn describe_location(kind: &str) -> Option<&'static str> {
    Some(match kind {
        k if NETWORK.contains(&k) => "a server has the data, and its caches are invisible from here",
        k if ON_SHARED_DISK.contains(&k) => {
            "other machines of its cluster may use the same disk, and their I/O is invisible from here"
        }
        k if OF_HOST.contains(&k) => {
            "the data are on the host of this virtual machine, whose cache is invisible from here"
        }
        k if is_program(k, FETCHING) => {
            "a user-space program fetches the data from a server; its cache and the network are invisible"
        }
        k if is_program(k, ENCRYPTING) => {
            "a user-space program encrypts the data, which takes CPU time; its own I/O is invisible"
        }
        k if k == "fuse" || k == "fuseblk" || k.starts_with("fuse.") => {
            "a user-space program answers; its own I/O is invisible"
        }
        _ => return None,
    })
}

/// Returns the condition for the result's name: how the data are reached, such as `over the network through
/// fuse.sshfs`.
fn condition(kind: &str) -> String {
    let prefix = match kind {
        k if is_program(k, FETCHING) => "over the network ",
        k if is_program(k, ENCRYPTING) => "encrypted ",
        _ => "",
    };
    format!("{prefix}through {kind}")
}

fn is_program(kind: &str, names: &[&str]) -> bool {
    kind.strip_prefix("fuse.").is_some_and(|name| names.contains(&name))
}

/// Returns the share of the bytes read that the client's cache answered, over all runs.
fn client_hit_share(case: &Case, fs: &FileSystem) -> Known<f64> {
    if case.others_read_from(&fs.mount_point) {
        return Err("other streams read from the same mount, and the client counts them together".into());
    }
    let (mut requested, mut served) = (0_u64, 0_u64);
    for ran in case.runs.iter() {
        let (before, after) = (
            bytes_since_mount(ran.snapshot(Moment::Start)?, fs)?,
            bytes_since_mount(ran.snapshot(Moment::Stop)?, fs)?,
        );
        let backwards = || format!("{MOUNT_STATS}: a counter went backwards");
        let growth = |before: u64, after: u64| after.checked_sub(before).ok_or_else(backwards);
        requested = requested.saturating_add(growth(before.requested, after.requested)?);
        served = served.saturating_add(growth(before.from_server, after.from_server)?);
    }
    if requested == 0 {
        return Err("the NFS client counted no reads".into());
    }
    // With read-ahead, the server sends more than was requested.
    Ok((1.0 - served as f64 / requested as f64).max(0.0))
}

/// Bytes read since an NFS mount.
struct NfsBytes {
    /// Bytes that programs read, from the client's cache or from the server.
    requested: u64,
    /// Bytes that the client read from the server.
    from_server: u64,
}

/// Parses the bytes read since the mount: the line `bytes:` after the line that names the mount.
fn bytes_since_mount(snapshot: &Snapshot, fs: &FileSystem) -> Known<NfsBytes> {
    let name = format!(" mounted on {} with fstype ", fs.mount_point);
    let mut lines = snapshot.text(MOUNT_STATS)?.lines().skip_while(|l| !l.contains(&name));
    lines.next().ok_or_else(|| format!("{MOUNT_STATS} does not list {}", fs.mount_point))?;
    let mut own = lines.take_while(|l| !l.starts_with("device "));
    let bytes = own.find_map(|l| l.trim().strip_prefix("bytes:"));
    let numbers: Option<Vec<u64>> =
        bytes.and_then(|b| b.split_ascii_whitespace().map(|w| w.parse().ok()).collect());
    match numbers.as_deref() {
        Some([normal, _, direct, _, from_server, ..]) => {
            Ok(NfsBytes { requested: normal.saturating_add(*direct), from_server: *from_server })
        }
        _ => Err(format!("{MOUNT_STATS} has no count of bytes for {}", fs.mount_point)),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

#[cfg(test)]
fn with_thread(line: &str) -> Record {
    let mut record = Fixture::honest().record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.files.insert(HOUSEKEEPERS.into(), Ok(format!("12: kswapd0\n{line}\n")));
    }
    record
}

/// An idle watch of two seconds with `bytes` bytes written.
#[cfg(test)]
fn idle(bytes: u64) -> Record {
    let mut record = Fixture::honest().record();
    add_idle_watch(&mut record, bytes);
    record
}

/// Adds an idle watch of two seconds with `bytes` bytes written.
#[cfg(test)]
fn add_idle_watch(record: &mut Record, bytes: u64) {
    for (moment, at_ns, sectors) in [(Moment::IdleStart, 0, 0), (Moment::IdleEnd, 2_000_000_000, bytes / 512)]
    {
        let mut snapshot = record.runs[0].evidence[0].clone();
        (snapshot.moment, snapshot.at_ns) = (moment, at_ns);
        let text = format!("0 0 0 0 9 0 {sectors} 9 0 0 9 0 0 0 0 0 0\n");
        snapshot.files.insert("/sys/block/vda/stat".into(), Ok(text));
        record.evidence.push(snapshot);
    }
}

#[test]
fn a_thread_counts_only_for_its_own_file_system() {
    assert_eq!(FS_HOUSEKEEPING.severity(&with_thread("9: ext4lazyinit")), Some(Severity::Biases));
    assert_eq!(FS_HOUSEKEEPING.severity(&with_thread("9: btrfs-balance")), None);
    assert_eq!(FS_HOUSEKEEPING.severity(&with_thread("9: btrfs-cleaner")), None);
}

#[test]
fn writes_during_the_idle_watch_bias() {
    assert_eq!(FS_HOUSEKEEPING.severity(&idle(1 << 20)), None);
    let Ok(Answer::Finding(f)) = FS_HOUSEKEEPING.answer(&idle(20 << 20)) else { panic!("silent") };
    // No kernel thread was seen, so the finding names none.
    assert_eq!(f.severity, Severity::Biases);
    assert!(f.sentence.contains("by kernel threads, or because earlier writes"), "{}", f.sentence);
    assert!(f.fix.is_some_and(|fix| fix.contains("D01") && !fix.contains("thread")), "{}", f.sentence);
}

#[test]
fn a_thread_that_does_not_write_to_this_disk_is_a_note() {
    let with = |bytes| {
        let mut record = idle(bytes);
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            snapshot.files.insert(HOUSEKEEPERS.into(), Ok("9: ext4lazyinit\n".into()));
        }
        FS_HOUSEKEEPING.severity(&record)
    };
    assert_eq!((with(1 << 20), with(20 << 20)), (Some(Severity::Note), Some(Severity::Biases)));
    let mut uncounted = idle(20 << 20);
    uncounted.evidence.iter_mut().for_each(|s| drop(s.files.remove("/sys/block/vda/stat")));
    assert!(FS_HOUSEKEEPING.answer(&uncounted).is_err());
    for snapshot in uncounted.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.files.insert(HOUSEKEEPERS.into(), Ok("9: ext4lazyinit\n".into()));
    }
    assert_eq!(FS_HOUSEKEEPING.severity(&uncounted), Some(Severity::Biases));
}

#[test]
fn discarded_blocks_are_a_note() {
    let after_with = |sectors: &str, options: &str| {
        let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
        record.header.hosts[0].places[0].file_system.as_mut().unwrap().options = options.into();
        let stop = record.runs[0].evidence.iter_mut().find(|s| s.moment == Moment::Stop).unwrap();
        let text = stop.files["/sys/block/vda/stat"].clone().unwrap();
        let mut fields: Vec<&str> = text.split_ascii_whitespace().collect();
        fields[13] = sectors;
        stop.files.insert("/sys/block/vda/stat".into(), Ok(fields.join(" ")));
        FS_HOUSEKEEPING.answer(&record)
    };
    let after = |sectors: &str| after_with(sectors, "rw,relatime,nodiscard");
    assert!(matches!(after("2048"), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = after("4096") else { panic!("silent") };
    assert!(f.severity == Severity::Note && f.sentence.starts_with("2 MiB"), "{}", f.sentence);
    assert!(f.sentence.contains("fstrim") && f.sentence.contains("may have discarded"), "{}", f.sentence);
    for options in ["rw,discard", "rw,discard=async,ssd"] {
        let Ok(Answer::Finding(f)) = after_with("4096", options) else { panic!("silent") };
        assert!(f.sentence.contains("is mounted with the option discard"), "{}", f.sentence);
        assert!(f.fix.is_some_and(|fix| fix.contains("without `discard`")), "{}", f.sentence);
    }
    assert!(after("x").is_err());
}

/// A record whose file system has `percent` percent of free space.
#[cfg(test)]
fn with_free(fixture: &Fixture, percent: u64) -> Record {
    let mut record = fixture.record();
    let states = record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets);
    states.for_each(|t| t.room = Some(Ok(Room { total_bytes: 100 << 30, free_bytes: percent << 30 })));
    record
}

#[test]
fn below_ten_percent_writes_bias_and_reads_are_a_note() {
    assert_eq!(NEARLY_FULL.severity(&with_free(&Fixture::honest_write(), 9)), Some(Severity::Biases));
    assert_eq!(NEARLY_FULL.severity(&with_free(&Fixture::honest(), 9)), Some(Severity::Note));
    assert!(matches!(NEARLY_FULL.answer(&with_free(&Fixture::honest_write(), 10)), Ok(Answer::Holds(..))));
}

#[test]
fn devices_do_not_apply_and_a_size_of_zero_is_not_checked() {
    let device = Fixture { role: model::plan::Role::Device, ..Fixture::honest_write() };
    assert_eq!(NEARLY_FULL.answer(&with_free(&device, 1)), Ok(Answer::DoesNotApply));
    let mut network = with_free(&Fixture::honest(), 0);
    let states = network.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets);
    states.for_each(|t| t.room = Some(Ok(Room::default())));
    assert!(NEARLY_FULL.answer(&network).is_err());
    let mut old = Fixture::honest().record();
    old.runs
        .iter_mut()
        .flat_map(|r| &mut r.evidence)
        .flat_map(|s| &mut s.targets)
        .for_each(|t| t.room = None);
    assert!(NEARLY_FULL.answer(&old).is_err());
}

/// The text of `/proc/self/mountstats` with an NFS 4.2 mount at `/` between two other mounts.
#[cfg(test)]
fn mountstats(normal: u64, direct: u64, server: u64) -> String {
    format!(
        "device tmpfs mounted on /run with fstype tmpfs\n\
         device server:/export mounted on / with fstype nfs4 statvers=1.1\n\
         \topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,acregmin=3,hard,proto=tcp,timeo=600,retrans=2\n\
         \tage:\t1234\n\
         \tcaps:\tcaps=0xfffbc0bf,wtmult=512,dtsize=1048576,bsize=0,namlen=255\n\
         \tevents:\t42 180 0 0 12 9 191 0 0 0 0 2 0 0 3 0 0 0 0 0 0 0 0 0 0 0 0\n\
         \tbytes:\t{normal} 0 {direct} 0 {server} 0 100 0\n\
         \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\
         device server:/other mounted on /other with fstype nfs4 statvers=1.1\n\tbytes:\t9 9 9 9 9 9 9 9\n"
    )
}

/// A record on NFS. The client's cache answered `hit_percent` percent of the bytes read. With `Err`, the client's counts could not be read.
#[cfg(test)]
fn on_nfs(fixture: &Fixture, hit_percent: Result<u64, &str>) -> Record {
    let mut record = Fixture { kind: "nfs4", ..fixture.clone() }.record();
    record.header.hosts[0].places[0].file_system.as_mut().unwrap().source = "server:/export".into();
    let mut requested = 0;
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = hit_percent
            .map(|percent| mountstats(requested / 2, requested / 2, requested / 100 * (100 - percent)));
        snapshot.files.insert(MOUNT_STATS.into(), text.map_err(str::to_owned));
        requested += 100_000_000;
    }
    record
}

#[cfg(test)]
fn remote_finding(record: &Record) -> Detail {
    let Ok(Answer::Finding(finding)) = REMOTE_FS.answer(record) else { panic!("silent") };
    finding
}

#[test]
fn every_remote_file_system_is_named_and_an_unknown_one_is_not_checked() {
    let with_second = |kind: Option<&str>| {
        let mut record = Fixture { kind: "fuse.sshfs", ..Fixture::honest() }.record();
        if kind.is_none() {
            record = Fixture::honest().record();
        }
        let plan = &mut record.header.plan;
        plan.targets.push(plan.targets[0].clone());
        plan.jobs[0].phases[0].streams[0].targets = vec![0, 1];
        let mut place = record.header.hosts[0].places[0].clone();
        if let (Some(kind), Some(fs)) = (kind, &mut place.file_system) {
            fs.kind = kind.into();
        } else {
            (place.file_system, place.unresolved_reason) = (None, Some("the mount is hidden".into()));
        }
        record.header.hosts[0].places.push(place);
        record
    };
    let both = remote_finding(&with_second(Some("cifs")));
    assert!(both.sentence.contains("on cifs") && both.sentence.contains("fuse.sshfs"), "{}", both.sentence);
    let condition = "over the network through fuse.sshfs and through cifs";
    assert_eq!(both.renames, Some(Rename::Condition(condition.into())));
    assert!(REMOTE_FS.answer(&with_second(None)).is_err_and(|why| why.contains("hidden")));
}

#[test]
fn only_the_caches_above_all_targets_relabel() {
    /// Reads from an NFS mount at `/` and from a file system of this kind at `/other`. The client's cache answered `hit_percent` and
    /// `second_hit_percent` percent of the bytes.
    fn with_second(hit_percent: u64, kind: &str, second_hit_percent: u64) -> Record {
        let mut record = on_nfs(&Fixture::honest(), Ok(hit_percent));
        let plan = &mut record.header.plan;
        plan.targets.push(plan.targets[0].clone());
        plan.jobs[0].phases[0].streams[0].targets = vec![0, 1];
        let mut place = record.header.hosts[0].places[0].clone();
        let fs = place.file_system.as_mut().unwrap();
        (fs.kind, fs.mount_point) = (kind.into(), "/other".into());
        record.header.hosts[0].places.push(place);
        let mut requested = 0;
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            let Some(Ok(text)) = snapshot.files.get_mut(MOUNT_STATS) else { continue };
            let served = requested / 100 * (100 - second_hit_percent);
            *text = text.replace("\tbytes:\t9 9 9 9 9 ", &format!("\tbytes:\t{requested} 0 0 0 {served} "));
            requested += 100_000_000;
        }
        record
    }
    let cached = || Some(Rename::Medium("page cache above nfs4".into()));
    let both = remote_finding(&with_second(90, "nfs4", 80));
    assert_eq!(both.renames, cached());
    assert!(both.sentence.contains("90 % of the reads from / never left this machine"), "{}", both.sentence);
    assert!(both.sentence.contains("80 % of the reads from /other never left"), "{}", both.sentence);
    let shares: Vec<f64> = both.evidence.values().copied().collect();
    assert_eq!(shares.len(), 2, "{:?}", both.evidence);
    assert!((shares[0] - 0.9).abs() < 1e-3 && (shares[1] - 0.8).abs() < 1e-3, "{shares:?}");
    let condition = |name: &str| Some(Rename::Condition(name.into()));
    assert_eq!(remote_finding(&with_second(90, "nfs4", 0)).renames, condition("through nfs4"));
    for local in ["ext4", "cifs"] {
        let renames = remote_finding(&with_second(90, local, 0)).renames;
        assert!(matches!(renames, Some(Rename::Condition(_))), "{local}: {renames:?}");
    }
    let mut unknown = with_second(90, "nfs4", 90);
    let place = &mut unknown.header.hosts[0].places[1];
    (place.file_system, place.unresolved_reason) = (None, Some("the mount is hidden".into()));
    assert_eq!(remote_finding(&unknown).renames, condition("through nfs4"));
    let mut device = with_second(90, "nfs4", 90);
    device.header.plan.targets[1].role = model::plan::Role::Device;
    assert_eq!(remote_finding(&device).renames, condition("through nfs4"));
}

#[test]
fn what_was_not_read_hides_no_work_of_the_file_system() {
    let mut record = with_thread("4711: ext4lazyinit");
    let is_start = |s: &&mut Snapshot| s.moment == Moment::Start;
    let starts = record.runs.iter_mut().flat_map(|r| &mut r.evidence).filter(is_start);
    starts.for_each(|s| drop(s.files.insert(HOUSEKEEPERS.into(), Err("hidden".into()))));
    assert_eq!(FS_HOUSEKEEPING.severity(&record), Some(Severity::Biases));
}

#[test]
fn client_cache_hits_are_reported_and_many_relabel() {
    let few_hits = remote_finding(&on_nfs(&Fixture::honest(), Ok(4)));
    assert!(!few_hits.sentence.contains("never left"), "{}", few_hits.sentence);
    assert_eq!(few_hits.renames, Some(Rename::Condition("through nfs4".into())));
    let some_hits = remote_finding(&on_nfs(&Fixture::honest(), Ok(6)));
    assert!(some_hits.sentence.contains("6.0 % of the reads from / never left"), "{}", some_hits.sentence);
    let most_hits = remote_finding(&on_nfs(&Fixture::honest(), Ok(90)));
    assert_eq!(most_hits.renames, Some(Rename::Medium("page cache above nfs4".into())));
}

#[test]
fn without_nfs_counters_the_sentence_names_what_is_unknown() {
    let record = on_nfs(&Fixture::honest(), Err("Permission denied"));
    assert!(
        remote_finding(&record).sentence.contains("is unknown: /proc/self/mountstats: Permission denied")
    );
    let writes = remote_finding(&on_nfs(&Fixture::honest_write(), Err("Permission denied")));
    assert!(!writes.sentence.contains("is unknown:"), "{}", writes.sentence);
}

#[test]
fn known_fuse_programs_are_described() {
    let renames_of = |kind| remote_finding(&Fixture { kind, ..Fixture::honest() }.record()).renames;
    for (kind, name) in [
        ("fuse.sshfs", "over the network through fuse.sshfs"),
        ("fuse.gocryptfs", "encrypted through fuse.gocryptfs"),
        ("fuse.bindfs", "through fuse.bindfs"),
    ] {
        assert_eq!(renames_of(kind), Some(Rename::Condition(name.into())));
    }
}

#[test]
fn a_cluster_file_system_is_on_a_shared_disk_of_this_machine() {
    for kind in ["gfs2", "ocfs2"] {
        let found = remote_finding(&Fixture { kind, ..Fixture::honest() }.record());
        assert!(!found.sentence.contains("server"), "{}", found.sentence);
        assert!(found.sentence.contains("may use the same disk"), "{}", found.sentence);
        assert!(found.fix.is_some_and(|fix| !fix.contains("server")));
        assert_eq!(found.renames, Some(Rename::Condition(format!("through {kind}"))));
        assert!(!is_remote(kind), "{kind}");
    }
    assert!(
        remote_finding(&Fixture { kind: "gpfs", ..Fixture::honest() }.record())
            .sentence
            .contains("a server has the data")
    );
}

#[test]
fn remote_file_systems_relabel_and_local_ones_hold() {
    for kind in ["fuse.sshfs", "fuseblk", "fuse", "9p", "virtiofs", "cifs"] {
        let record = Fixture { kind, ..Fixture::honest() }.record();
        assert_eq!(REMOTE_FS.severity(&record), Some(Severity::Relabels), "{kind}");
    }
    for kind in ["ext4", "xfs", "btrfs", "fusectl"] {
        let record = Fixture { kind, ..Fixture::honest() }.record();
        assert!(matches!(REMOTE_FS.answer(&record), Ok(Answer::Holds(..))), "{kind}");
    }
}
