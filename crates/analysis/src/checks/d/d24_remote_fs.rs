//! D24: a file system whose data are on another machine, on the host of a virtual machine, or served by a program
//! (FUSE). Decides by the kind of the file system. On NFS, also computes the share of the reads that the client's
//! cache answered.

use crate::checks::a::a01_cache_served::{BIASED_ABOVE, RENAMED_FROM, severity as severity_of_cached_share};
use crate::checks::prelude::*;
use model::evidence::MOUNT_STATS;
use model::machine::FileSystem;

/// Kinds of network file systems.
const NETWORK: &[&str] = &[
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "afs", "gfs2", "ocfs2", "gpfs", "beegfs",
    "orangefs",
];
/// Kinds whose data are on the host of a virtual machine.
const OF_HOST: &[&str] = &["9p", "virtiofs"];
/// FUSE programs that fetch the data from another machine, by the part of the kind after `fuse.`.
const FETCHING: &[&str] = &["sshfs", "rclone", "s3fs", "gcsfuse", "glusterfs", "ceph-fuse", "curlftpfs"];
/// FUSE programs that encrypt the data.
const ENCRYPTING: &[&str] = &["gocryptfs", "encfs", "cryfs", "securefs"];
/// Kinds whose client counts its cache hits.
const COUNTED: &[&str] = &["nfs", "nfs4"];
pub(super) const CHECK: Check = Check {
    id: CheckId::D24,
    name: "REMOTE_FS",
    belief: "the file is on a disk of this machine",
    reads: "The type of the file system in `/proc/self/mountinfo`. For NFS also the line `bytes:` of \
            `/proc/self/mountstats` at start and stop of each run: reads through the cache, direct reads, \
            and reads from the server.",
    formula: formula!(
        "The number is relabelled if the file system belongs to a network, to a virtual machine's host, or \
         to a program (FUSE). The name also states if the program is known to use the network (sshfs, \
         rclone, ...) or to encrypt (gocryptfs, encfs, ...). On NFS, 1 - server reads / (normal + direct \
         reads) is the share that this machine's cache answered: it is reported from {BIASED_ABOVE}, and from \
         {RENAMED_FROM} the number is named after that cache. Caches of the server are invisible."
    ),
    provoke: "`sshfs localhost:/var/tmp /mnt && fathom run --rw randread --size 64m /mnt`.",
    fix: "Measure on the server for its disks, and use --cache direct to bypass the client's cache.",
    accept: "Accept it if you want to measure the whole path.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| on_nfs(&Fixture::honest(), Ok(0))),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].places.clear();
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() || case.on_block_devices() {
        return Ok(Answer::DoesNotApply);
    }
    let mut places = 0;
    let mut remote: Option<(&FileSystem, &str)> = None;
    for place in case.places() {
        let why_unknown =
            || place.blind.clone().unwrap_or_else(|| format!("{} has no known file system", place.path));
        let Some(fs) = &place.file_system else { return Err(why_unknown()) };
        places += 1;
        remote = remote.or_else(|| location(&fs.kind).map(|w| (fs, w)));
    }
    if places == 0 {
        return Err("the record does not contain the file system of the target".into());
    }
    let Some((fs, location)) = remote else {
        return holds("The file system is on this machine, and the kernel serves it.", evidence([]));
    };
    let mut sentence = format!("This is {} ({}): {location}.", fs.kind, fs.source);
    let mut numbers = evidence([]);
    let mut rename = Rename::Condition(condition(&fs.kind));
    if COUNTED.contains(&fs.kind.as_str()) && case.does(Kind::Read) {
        match client_hit_share(case, fs) {
            Ok(share) => {
                numbers = evidence([("client_hit_share", share)]);
                let severity = severity_of_cached_share(share);
                if severity.is_some() {
                    sentence += &format!(" {} of the reads never left this machine.", show_share(share));
                }
                if severity == Some(Severity::Rename) {
                    rename = Rename::Medium(format!("page cache above {}", fs.kind));
                }
            }
            Err(why) => {
                sentence += &format!(" The share that this machine's own cache answered is unknown: {why}.");
            }
        }
    }
    Detail::new(Severity::Rename, sentence, numbers).relabelled(rename).found()
}

/// Whether another machine, the host of a virtual machine or a program (FUSE) has the data of a file system of this kind.
pub fn is_remote(kind: &str) -> bool {
    location(kind).is_some()
}

/// Describes what is between this machine and the data, or returns `None` for a local file system.
fn location(kind: &str) -> Option<&'static str> {
    match kind {
        k if NETWORK.contains(&k) => {
            Some("the data are on another machine, whose caches are invisible from here")
        }
        k if OF_HOST.contains(&k) => {
            Some("the data are on the host of this virtual machine, whose cache is invisible from here")
        }
        k if is_program(k, FETCHING) => Some(
            "a user-space program fetches the data from another machine; its cache and the network are \
             invisible",
        ),
        k if is_program(k, ENCRYPTING) => {
            Some("a user-space program encrypts the data, which takes CPU time; its own I/O is invisible")
        }
        k if k == "fuse" || k == "fuseblk" || k.starts_with("fuse.") => {
            Some("a user-space program answers; its own I/O is invisible")
        }
        _ => None,
    }
}

/// Returns the condition for the name of the result.
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
    for ran in &case.runs {
        let [a, s] = bytes_in_run(ran, fs)?;
        requested = requested.saturating_add(a);
        served = served.saturating_add(s);
    }
    if requested == 0 {
        return Err("the client counted no reads".into());
    }
    // With read-ahead, the server sends more than was requested.
    Ok((1.0 - served as f64 / requested as f64).max(0.0))
}

/// Returns the bytes read from the client, and the bytes that it read from the server, in a run.
fn bytes_in_run(ran: &CaseRun, fs: &FileSystem) -> Known<[u64; 2]> {
    let before = bytes_since_mount(ran.at(Moment::Start)?, fs)?;
    let after = bytes_since_mount(ran.at(Moment::Stop)?, fs)?;
    let growth =
        |i: usize| after[i].checked_sub(before[i]).ok_or_else(|| format!("{MOUNT_STATS} went backwards"));
    Ok([growth(0)?, growth(1)?])
}

/// Returns the bytes read from the client, and the bytes that it read from the server, since the mount: the line
/// `bytes:` after the line that names the mount.
fn bytes_since_mount(snapshot: &Snapshot, fs: &FileSystem) -> Known<[u64; 2]> {
    let name = format!(" mounted on {} with fstype ", fs.mount_point);
    let mut lines = snapshot.text(MOUNT_STATS)?.lines().skip_while(|l| !l.contains(&name));
    lines.next().ok_or_else(|| format!("{MOUNT_STATS} does not list {}", fs.mount_point))?;
    let mut own = lines.take_while(|l| !l.starts_with("device "));
    let bytes = own.find_map(|l| l.trim().strip_prefix("bytes:"));
    let numbers: Option<Vec<u64>> =
        bytes.and_then(|b| b.split_ascii_whitespace().map(|w| w.parse().ok()).collect());
    match numbers.as_deref() {
        Some([normal, _, direct, _, server, ..]) => Ok([normal.saturating_add(*direct), *server]),
        _ => Err(format!("{MOUNT_STATS} has no count of bytes for {}", fs.mount_point)),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

/// The start of the counters of an NFS 4.2 client, after another mount.
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

/// A record on NFS whose client answered `hit_percent` percent.
#[cfg(test)]
fn on_nfs(fixture: &Fixture, hit_percent: Result<u64, &str>) -> model::record::Record {
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
fn finding(record: &model::record::Record) -> Detail {
    let Ok(Answer::Finding(finding)) = CHECK.answer(record) else { panic!("silent") };
    finding
}

#[test]
fn client_cache_hits_are_reported_and_many_relabel() {
    let few_hits = finding(&on_nfs(&Fixture::honest(), Ok(4)));
    assert!(!few_hits.sentence.contains("never left"), "{}", few_hits.sentence);
    assert_eq!(few_hits.renames, Some(Rename::Condition("through nfs4".into())));
    let some_hits = finding(&on_nfs(&Fixture::honest(), Ok(6)));
    assert!(some_hits.sentence.contains("6.0 % of the reads never left"), "{}", some_hits.sentence);
    let most_hits = finding(&on_nfs(&Fixture::honest(), Ok(90)));
    assert_eq!(most_hits.renames, Some(Rename::Medium("page cache above nfs4".into())));
}

#[test]
fn without_nfs_counters_the_sentence_names_what_is_unknown() {
    let record = on_nfs(&Fixture::honest(), Err("Permission denied"));
    assert!(finding(&record).sentence.contains("is unknown: /proc/self/mountstats: Permission denied"));
    let writes = finding(&on_nfs(&Fixture::honest_write(), Err("Permission denied")));
    assert!(!writes.sentence.contains("is unknown:"), "{}", writes.sentence);
}

#[test]
fn known_fuse_programs_are_described() {
    let renames_of = |kind| finding(&Fixture { kind, ..Fixture::honest() }.record()).renames;
    for (kind, name) in [
        ("fuse.sshfs", "over the network through fuse.sshfs"),
        ("fuse.gocryptfs", "encrypted through fuse.gocryptfs"),
        ("fuse.bindfs", "through fuse.bindfs"),
    ] {
        assert_eq!(renames_of(kind), Some(Rename::Condition(name.into())));
    }
}

#[test]
fn remote_file_systems_relabel_and_local_ones_hold() {
    for kind in ["fuse.sshfs", "fuseblk", "fuse", "9p", "virtiofs", "cifs"] {
        let record = Fixture { kind, ..Fixture::honest() }.record();
        assert_eq!(CHECK.severity(&record), Some(Severity::Rename), "{kind}");
    }
    for kind in ["ext4", "xfs", "btrfs", "fusectl"] {
        let record = Fixture { kind, ..Fixture::honest() }.record();
        assert!(matches!(CHECK.answer(&record), Ok(Answer::Holds(..))), "{kind}");
    }
}
